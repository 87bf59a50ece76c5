/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_test.c - records reach their file whole and in order, or the loss
 *                 is said: full disks, slow and dead readers, many threads
 *
 * A disk that becomes full in the middle of a line is played by a limit on
 * file sizes, which can be lifted again.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "audit/writer.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

#define FLUSH_MS	20000	/* never reached when all is well */
#define FILE_MAX	(8u << 20)

static const struct record_labels labels = {
	.run = "7f3a91", .sandbox = "box", .policy = "p@sha256:0", .mode = "enforce",
};

struct rig {
	struct audit_writer *w;
	struct audit_sink *s;
};

static int set_up(void **state)
{
	struct rig *r = mem_new(sizeof(*r));

	log_set_level(LOG_ERROR);
	*state = r;
	return r ? audit_writer_new(&r->w) : -1;
}

static int tear_down(void **state)
{
	struct rig *r = *state;

	audit_writer_free(r->w, FLUSH_MS);
	mem_free(r);
	return 0;
}

static struct record record_of(const char *host)
{
	return (struct record){
		.event = RECORD_FLOW_DENY, .act = RECORD_DENY,
		.reason = REASON_HOST_NOT_ALLOWED, .via = RECORD_VIA_CONNECT,
		.host = str_from(host), .dst.port = 443,
		.rcode = -1, .dur_ms = -1,
	};
}

static int temp_file(void)
{
	char path[] = "writer_test.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC | O_APPEND);

	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	return fd;
}

/* A second descriptor for the test to read by; the first goes to the sink. */
static int keep(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	assert_true(copy >= 0);
	return copy;
}

/* What was found in a file of records. */
struct found {
	unsigned lines;		/* records, blank lines apart */
	unsigned gaps;
	uint64_t lost;		/* sum of the gaps' counts */
	uint64_t last_seq;
};

/* Every line must be valid, and the numbers follow each other from @seq. */
static struct found check_text(struct str text, uint64_t seq)
{
	struct found f = { .last_seq = seq };
	json_error_t err;
	struct str line;

	if (text.n > 0)
		assert_int_equal(text.p[text.n - 1], '\n');
	while (str_cut(&text, '\n', &line)) {
		if (line.n == 0)
			continue;
		json_t *o = json_loadb(line.p, line.n, JSON_REJECT_DUPLICATES,
				       &err);

		assert_non_null(o);
		assert_int_equal(json_integer_value(json_object_get(o, "seq")),
				 f.last_seq + 1);
		f.last_seq++;
		if (!strcmp(json_string_value(json_object_get(o, "ev")),
			    "log_gap")) {
			f.gaps++;
			f.lost += (uint64_t)json_integer_value(
				json_object_get(o, "count"));
		}
		f.lines++;
		json_decref(o);
	}
	return f;
}

static struct found check_file(int fd, uint64_t seq)
{
	struct buf text = BUF_INIT(FILE_MAX);
	struct found f;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_all(fd, &text), 0);
	f = check_text(buf_str(&text), seq);
	buf_done(&text);
	return f;
}

static void new_sink(struct rig *rig, int fd)
{
	assert_int_equal(audit_sink_new(rig->w, fd, &labels, &rig->s), 0);
}

static void records_are_in_the_file_after_a_flush(void **state)
{
	struct rig *rig = *state;
	struct record r = record_of("a.example");
	int i, fd = temp_file();

	new_sink(rig, keep(fd));
	assert_true(audit_ok(rig->s));
	for (i = 0; i < 100; i++)
		assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_seq(rig->s), 100);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	assert_int_equal(check_file(fd, 0).lines, 100);
	assert_int_equal(audit_lost(rig->s), 0);
	audit_sink_free(rig->s);
	close(fd);
}

static void records_behind_a_change_are_of_the_new_policy(void **state)
{
	const struct record_labels other = { .policy = "new@sha256:00",
					     .mode = "observe",
					     .generation = 2 };
	struct buf text = BUF_INIT(FILE_MAX);
	struct rig *rig = *state;
	struct record r = record_of("a.example");
	const char *second;
	int fd = temp_file();

	new_sink(rig, keep(fd));
	assert_int_equal(audit_post(rig->s, &r), 0);
	audit_sink_set_policy(rig->s, &other);
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	assert_int_equal(check_file(fd, 0).lines, 2);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_all(fd, &text), 0);
	assert_int_equal(buf_add_char(&text, '\0'), 0);
	second = strchr(text.p, '\n');
	assert_null(memmem(text.p, (size_t)(second - text.p), "new@", 4));
	assert_non_null(strstr(second, "\"policy\":\"new@sha256:00\","
			       "\"gen\":2,\"mode\":\"observe\","
			       "\"run\":\"7f3a91\""));
	buf_done(&text);
	audit_sink_free(rig->s);
	close(fd);
}

/* A run on several threads: one numbering, and each under its own policy. */
static void ways_into_one_sink_have_labels_of_their_own(void **state)
{
	struct rig *rig = *state;
	const struct record_labels other = {
		.policy = "new@sha256:00", .mode = "observe", .generation = 2,
	};
	struct record r = record_of("a.example");
	struct buf text = BUF_INIT(1u << 16);
	struct audit_sink *way;
	int fd = temp_file();

	new_sink(rig, keep(fd));
	assert_int_equal(audit_sink_share(rig->s, &way), 0);
	assert_int_equal(audit_post(way, &r), 0);
	audit_sink_set_policy(way, &other);
	assert_int_equal(audit_post(way, &r), 0);
	assert_true(audit_ok(way));
	assert_int_equal(audit_post(rig->s, &r), 0);
	audit_sink_free(way);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	assert_int_equal(check_file(fd, 0).lines, 3);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_all(fd, &text), 0);
	assert_int_equal(buf_add_char(&text, '\0'), 0);
	/* The second, and no other. */
	assert_non_null(strstr(text.p, "new@"));
	assert_null(strstr(strstr(text.p, "new@") + 1, "new@"));
	assert_non_null(strstr(strstr(text.p, "\"seq\":2,"), "new@"));
	assert_null(strstr(strstr(text.p, "\"seq\":3,"), "new@"));
	buf_done(&text);
	audit_sink_free(rig->s);
	close(fd);
}

/* LOG-18: what is queued is written before the end, without a flush. */
static void freeing_the_writer_writes_what_is_queued(void **state)
{
	struct rig *rig = *state;
	struct record r = record_of("a.example");
	int i, fd = temp_file(), other = temp_file();
	struct audit_sink *left;

	new_sink(rig, keep(fd));
	assert_int_equal(audit_sink_new(rig->w, keep(other), &labels, &left), 0);
	for (i = 0; i < 1000; i++) {
		assert_int_equal(audit_post(rig->s, &r), 0);
		assert_int_equal(audit_post(left, &r), 0);
	}
	audit_sink_free(rig->s);	/* and @left is not freed at all */
	audit_writer_free(rig->w, FLUSH_MS);
	assert_int_equal(check_file(fd, 0).lines, 1000);
	assert_int_equal(check_file(other, 0).lines, 1000);
	close(fd);
	close(other);
	assert_int_equal(audit_writer_new(&rig->w), 0);
}

#define THREADS	4
#define EACH	2000

static void *poster(void *arg)
{
	struct record r = record_of("thread.example");
	int i;

	for (i = 0; i < EACH; i++)
		audit_tell(arg, &r);
	return NULL;
}

static void threads_share_a_sink_without_tearing_lines(void **state)
{
	struct rig *rig = *state;
	int i, fd = temp_file();
	pthread_t t[THREADS];
	struct found f;
	uint64_t lost;

	new_sink(rig, keep(fd));
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, poster, rig->s), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	lost = audit_lost(rig->s);
	f = check_file(fd, 0);
	/* On a slow disk the queue may run full: then the gaps say so. */
	assert_int_equal(f.lost, lost);
	assert_int_equal(f.lines - f.gaps + lost, THREADS * EACH);
	audit_sink_free(rig->s);
	close(fd);
}

/* LOG-12 */
static void a_full_disk_makes_the_sink_refuse_and_it_recovers(void **state)
{
	struct rig *rig = *state;
	struct record r = record_of("a.example");
	int full = open("/dev/full", O_WRONLY | O_CLOEXEC), fd = temp_file();
	struct found f;

	assert_true(full >= 0);
	new_sink(rig, full);
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), -EIO);
	assert_false(audit_ok(rig->s));
	assert_int_equal(audit_post(rig->s, &r), -EIO);
	assert_int_equal(audit_post(rig->s, &r), -EIO);
	audit_tell(rig->s, &r);		/* kept: there is room in the queue */
	assert_int_equal(audit_lost(rig->s), 2);

	assert_int_equal(audit_sink_reopen(rig->s, keep(fd)), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	assert_true(audit_ok(rig->s));
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	f = check_file(fd, 0);
	assert_int_equal(f.lines, 4);	/* posted, told, gap, posted */
	assert_int_equal(f.gaps, 1);
	assert_int_equal(f.lost, 2);
	audit_sink_free(rig->s);
	close(fd);
}

static rlim_t file_limit(rlim_t bytes)
{
	struct rlimit old, now;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	now = old;
	now.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	return old.rlim_cur;
}

/* A sink whose file ends within its second line; @ret_old: the real limit. */
static int tear_a_line(struct rig *rig, rlim_t *ret_old)
{
	struct record r = record_of("a.example");
	int fd = temp_file();
	off_t first;

	new_sink(rig, keep(fd));
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	first = lseek(fd, 0, SEEK_END);
	*ret_old = file_limit((rlim_t)first + 20);
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), -EIO);
	assert_int_equal(lseek(fd, 0, SEEK_END), first + 20);
	return fd;
}

static void a_torn_line_is_finished_when_there_is_room_again(void **state)
{
	struct rig *rig = *state;
	struct record r = record_of("b.example");
	rlim_t old;
	int fd = tear_a_line(rig, &old);
	struct found f;

	assert_int_equal(audit_post(rig->s, &r), -EIO);
	file_limit(old);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	f = check_file(fd, 0);
	assert_int_equal(f.lines, 3);
	assert_int_equal(f.lost, 1);
	audit_sink_free(rig->s);
	close(fd);
}

static void a_down_sink_recovers_without_being_called(void **state)
{
	struct rig *rig = *state;
	rlim_t old;
	int fd = tear_a_line(rig, &old);

	file_limit(old);
	/* No flush, no post: only the thread's own second attempt. */
	while (!audit_ok(rig->s))
		sched_yield();
	assert_int_equal(check_file(fd, 0).lines, 2);
	audit_sink_free(rig->s);
	close(fd);
}

static void a_torn_line_is_restarted_in_a_truncated_file(void **state)
{
	struct rig *rig = *state;
	rlim_t old;
	int fd = tear_a_line(rig, &old);

	assert_int_equal(ftruncate(fd, 0), 0);
	file_limit(old);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	assert_int_equal(check_file(fd, 1).lines, 1);
	audit_sink_free(rig->s);
	close(fd);
}

static void a_torn_line_is_restarted_in_another_file(void **state)
{
	struct rig *rig = *state;
	rlim_t old;
	int fd = tear_a_line(rig, &old), next = temp_file();

	file_limit(old);
	assert_int_equal(audit_sink_reopen(rig->s, keep(next)), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	/* The attempt that recovers may still find the old one. */
	if (lseek(next, 0, SEEK_END) > 0)
		assert_int_equal(check_file(next, 1).lines, 1);
	else
		assert_int_equal(check_file(fd, 0).lines, 2);
	audit_sink_free(rig->s);
	close(fd);
	close(next);
}

/* Lines of one sink in @text: the torn one must not eat another's. */
static unsigned count_lines_of(int fd, const char *host, unsigned *ret_bad)
{
	struct buf text = BUF_INIT(FILE_MAX);
	struct str rest, line;
	json_error_t err;
	unsigned n = 0;

	*ret_bad = 0;
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_all(fd, &text), 0);
	rest = buf_str(&text);
	while (str_cut(&rest, '\n', &line)) {
		json_t *o = json_loadb(line.p, line.n, 0, &err);
		const char *h = json_string_value(json_object_get(o, "host"));

		if (line.n > 0 && !o)
			(*ret_bad)++;
		if (h && !strcmp(h, host))
			n++;
		json_decref(o);
	}
	buf_done(&text);
	return n;
}

static void a_torn_line_does_not_eat_another_sinks_line(void **state)
{
	struct rig *rig = *state;
	struct record r = record_of("other.example");
	struct audit_sink *other;
	rlim_t old;
	int fd = tear_a_line(rig, &old);
	unsigned bad;

	assert_int_equal(audit_sink_new(rig->w, keep(fd), &labels, &other), 0);
	assert_int_equal(audit_post(other, &r), 0);
	assert_int_equal(audit_sink_flush(other, FLUSH_MS), -EIO);
	file_limit(old);
	assert_int_equal(audit_sink_flush(other, FLUSH_MS), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	assert_int_equal(count_lines_of(fd, "other.example", &bad), 1);
	assert_int_equal(count_lines_of(fd, "a.example", &bad), 2);
	assert_true(bad <= 1);		/* the torn piece, when it stays */
	audit_sink_free(other);
	audit_sink_free(rig->s);
	close(fd);
}

static void a_dead_reader_is_an_error_and_not_a_signal(void **state)
{
	struct rig *rig = *state;
	struct record r = record_of("a.example");
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	new_sink(rig, p[1]);
	close(p[0]);
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), -EIO);
	assert_false(audit_ok(rig->s));
	assert_int_equal(audit_sink_reopen(rig->s, temp_file()), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	audit_sink_free(rig->s);
}

/* Post until the queue is full; how many were taken. */
static unsigned fill_queue(struct audit_sink *s)
{
	struct record r = record_of("a.example");
	unsigned n = 0;
	int err;

	while ((err = audit_post(s, &r)) == 0)
		n++;
	assert_int_equal(err, -ENOBUFS);
	return n;
}

/* Read @fd in the background until it ends. */
static void *reader(void *arg)
{
	struct buf *text = arg;
	int fd = (int)text->n;

	text->n = 0;
	assert_int_equal(fd_read_all(fd, text), 0);
	return NULL;
}

static void check_slow_reader(struct rig *rig, int write_fd, int read_fd)
{
	struct record r = record_of("told.example");
	struct buf text = BUF_INIT(FILE_MAX);
	struct audit_sink *quick;
	int fd = temp_file();
	struct found f;
	unsigned posted;
	pthread_t t;

	new_sink(rig, write_fd);
	posted = fill_queue(rig->s);
	assert_false(audit_ok(rig->s));
	assert_int_equal(audit_sink_flush(rig->s, 1), -ETIMEDOUT);
	audit_tell(rig->s, &r);		/* the last quarter is for these */
	assert_int_equal(audit_lost(rig->s), 1);

	/* Others are not held up. */
	assert_int_equal(audit_sink_new(rig->w, keep(fd), &labels, &quick), 0);
	assert_int_equal(audit_post(quick, &r), 0);
	assert_int_equal(audit_sink_flush(quick, FLUSH_MS), 0);
	audit_sink_free(quick);
	close(fd);

	text.n = (size_t)read_fd;
	assert_int_equal(pthread_create(&t, NULL, reader, &text), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	audit_sink_free(rig->s);	/* closes the pipe: the reader ends */
	pthread_join(t, NULL);
	f = check_text(buf_str(&text), 0);
	assert_int_equal(f.lines, posted + 1 + f.gaps);
	assert_int_equal(f.lost, 1);
	buf_done(&text);
	close(read_fd);
}

static void a_slow_pipe_fills_its_own_queue_only(void **state)
{
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_true(fcntl(p[1], F_SETPIPE_SZ, 4096) >= 0);
	check_slow_reader(*state, p[1], p[0]);
}

static void a_nonblocking_pipe_is_no_different(void **state)
{
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(fd_set_nonblock(p[1], true), 0);
	check_slow_reader(*state, p[1], p[0]);
}

static void a_stream_socket_may_take_parts_of_lines(void **state)
{
	int p[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p),
			 0);
	check_slow_reader(*state, p[1], p[0]);
}

static void a_tee_gets_the_same_lines(void **state)
{
	struct rig *rig = *state;
	struct record r = record_of("a.example");
	int fd = temp_file(), log = temp_file(), next = temp_file();

	new_sink(rig, keep(fd));
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	assert_int_equal(audit_sink_tee(rig->s, keep(log)), 0);
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	/* LOG-14: the service's log is rotated. */
	assert_int_equal(audit_sink_tee(rig->s, keep(next)), 0);
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	assert_int_equal(check_file(fd, 0).lines, 3);
	assert_int_equal(check_file(log, 1).lines +
			 check_file(next, 2).lines, 2);
	audit_sink_free(rig->s);
	close(fd);
	close(log);
	close(next);
}

static void a_tee_that_fails_makes_the_sink_refuse(void **state)
{
	struct rig *rig = *state;
	struct record r = record_of("a.example");
	int fd = temp_file();

	new_sink(rig, keep(fd));
	assert_int_equal(audit_sink_tee(rig->s, open("/dev/full",
					O_WRONLY | O_CLOEXEC)), 0);
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), -EIO);
	assert_false(audit_ok(rig->s));
	/* The other one has its line all the same. */
	assert_int_equal(check_file(fd, 0).lines, 1);
	assert_int_equal(audit_sink_tee(rig->s, temp_file()), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	audit_sink_free(rig->s);
	close(fd);
}

/* LOG-14 */
static void reopening_keeps_the_order_and_a_bad_one_the_old_file(void **state)
{
	struct rig *rig = *state;
	struct record r = record_of("a.example");
	int i, fd = temp_file(), next = temp_file();
	struct found f;

	new_sink(rig, keep(fd));
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	for (i = 0; i < 49; i++)
		assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_reopen(rig->s, keep(next)), 0);
	for (i = 0; i < 50; i++)
		assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	f = check_file(fd, 0);
	assert_true(f.lines >= 50);	/* it gets what was posted before */
	assert_int_equal(check_file(next, f.last_seq).last_seq, 100);

	assert_int_equal(audit_sink_reopen(rig->s, -1), -EBADF);
	assert_int_equal(audit_sink_reopen(rig->s, 1 << 20), -EBADF);
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	assert_int_equal(check_file(next, f.last_seq).last_seq, 101);
	audit_sink_free(rig->s);
	close(fd);
	close(next);
}

static void a_sink_without_descriptor_drops_and_is_content(void **state)
{
	struct rig *rig = *state;
	struct record r = record_of("a.example");

	new_sink(rig, -1);
	assert_true(audit_ok(rig->s));
	assert_int_equal(audit_post(rig->s, &r), 0);
	assert_int_equal(audit_seq(rig->s), 1);
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	assert_int_equal(audit_lost(rig->s), 0);
	audit_sink_free(rig->s);
	assert_int_equal(audit_sink_new(rig->w, 1 << 20, &labels, &rig->s),
			 -EBADF);
}

static void many_sinks_come_and_go(void **state)
{
	struct rig *rig = *state;
	struct record r = record_of("a.example");
	int i, fd = temp_file();
	struct audit_sink *s;
	unsigned bad;

	for (i = 0; i < 500; i++) {
		assert_int_equal(audit_sink_new(rig->w, keep(fd), &labels, &s),
				 0);
		audit_tell(s, &r);
		audit_sink_free(s);
	}
	audit_writer_free(rig->w, FLUSH_MS);
	assert_int_equal(count_lines_of(fd, "a.example", &bad), 500);
	assert_int_equal(bad, 0);
	close(fd);
	assert_int_equal(audit_writer_new(&rig->w), 0);
}

/* A descriptor that is shared must not be watched after its sink is gone. */
static void a_freed_sink_with_a_blocked_shared_pipe_is_forgotten(void **state)
{
	struct rig *rig = *state;
	int p[2], copy;
	char drop[65536];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	new_sink(rig, keep(p[1]));
	copy = p[1];
	fill_queue(rig->s);
	audit_writer_free(rig->w, 0);	/* no time at all: lines are lost */
	assert_int_equal(audit_writer_new(&rig->w), 0);
	/* Room again, on the same open file: nobody must care. */
	assert_true(read(p[0], drop, sizeof(drop)) > 0);
	new_sink(rig, temp_file());
	assert_int_equal(audit_sink_flush(rig->s, FLUSH_MS), 0);
	audit_sink_free(rig->s);
	close(copy);
	close(p[0]);
}

#define T(f)	cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(records_are_in_the_file_after_a_flush),
		T(records_behind_a_change_are_of_the_new_policy),
		T(ways_into_one_sink_have_labels_of_their_own),
		T(freeing_the_writer_writes_what_is_queued),
		T(threads_share_a_sink_without_tearing_lines),
		T(a_full_disk_makes_the_sink_refuse_and_it_recovers),
		T(a_torn_line_is_finished_when_there_is_room_again),
		T(a_down_sink_recovers_without_being_called),
		T(a_torn_line_is_restarted_in_a_truncated_file),
		T(a_torn_line_is_restarted_in_another_file),
		T(a_torn_line_does_not_eat_another_sinks_line),
		T(a_dead_reader_is_an_error_and_not_a_signal),
		T(a_slow_pipe_fills_its_own_queue_only),
		T(a_nonblocking_pipe_is_no_different),
		T(a_stream_socket_may_take_parts_of_lines),
		T(a_tee_gets_the_same_lines),
		T(a_tee_that_fails_makes_the_sink_refuse),
		T(reopening_keeps_the_order_and_a_bad_one_the_old_file),
		T(a_sink_without_descriptor_drops_and_is_content),
		T(many_sinks_come_and_go),
		T(a_freed_sink_with_a_blocked_shared_pipe_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
