/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_test.c - bytes between the two halves of a flow, over real TCP
 *
 * client <-> [app relay net] <-> origin, all in this process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "proxy/half.h"
#include "proxy/relay.h"
#include "proxy/sock.h"
#include "tests/unit/proxy_lab.h"

#define BULK	((size_t)24 << 20)

static struct event_base *base;
static struct half_loop *halves;
static struct relay_pool *pool;

/* The linker sends every recv() of the relay through here. */
static unsigned long reads;
ssize_t __real_recv(int fd, void *p, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *p, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *p, size_t n, int flags)
{
	reads++;
	return __real_recv(fd, p, n, flags);
}

struct flow {
	int client, origin;
	struct half *app, *net;
	struct relay *relay;
	enum reason why;	/* REASONS: not over */
};

/* What the owner of a relay does when it is over. */
static void flow_over(void *arg, enum reason why)
{
	struct flow *f = arg;

	assert_int_equal(f->why, REASONS);
	f->why = why;
	relay_free(f->relay);
	f->relay = NULL;
	half_closep(&f->app, why != REASON_CLIENT_CLOSED &&
			     why != REASON_ORIGIN_CLOSED);
	half_closep(&f->net, why != REASON_CLIENT_CLOSED &&
			     why != REASON_ORIGIN_CLOSED);
}

static void flow_open(struct flow *f, struct str up, struct str down)
{
	struct relay_config config = {
		.base = base, .pool = pool, .up = up, .down = down,
		.fn = flow_over, .arg = f,
	};
	int pair[2];

	lab_pair(pair);
	f->client = pair[0];
	f->app = config.app = half_new(halves, pair[1], half_ignore, NULL);
	lab_pair(pair);
	f->origin = pair[0];
	f->net = config.net = half_new(halves, pair[1], half_ignore, NULL);
	f->why = REASONS;
	assert_int_equal(relay_start(&config, &f->relay), 0);
}

static void flow_wait(struct flow *f, enum reason why)
{
	while (f->why == REASONS)
		lab_turn(base);
	assert_int_equal(f->why, why);
}

static int setup(void **state)
{
	(void)state;
	base = event_base_new();
	return !base || half_loop_new(base, &halves) || relay_pool_new(&pool);
}

static int teardown(void **state)
{
	(void)state;
	relay_pool_free(pool);
	half_loop_free(halves);
	event_base_free(base);
	return 0;
}

static void early_bytes_go_first_and_all_are_counted_TUN_04(void **state)
{
	uint64_t up, down;
	struct flow f;

	(void)state;
	flow_open(&f, STR("hello "), STR("220 "));
	lab_send(base, f.client, STR("world"));
	lab_expect(base, f.origin, "hello world");
	lab_send(base, f.origin, STR("ready"));
	lab_expect(base, f.client, "220 ready");
	relay_bytes(f.relay, &up, &down);
	assert_int_equal(up, 11);
	assert_int_equal(down, 5);
	close(f.client);
	lab_expect_fin(base, f.origin);
	close(f.origin);
	flow_wait(&f, REASON_CLIENT_CLOSED);
}

static void early_bytes_beyond_the_bound_are_refused(void **state)
{
	struct relay_config config = { .base = base, .pool = pool };
	char *much = mem_new(RELAY_EARLY_MAX + 1);
	struct relay *r = NULL;

	(void)state;
	config.up = str_make(much, RELAY_EARLY_MAX + 1);
	assert_int_equal(relay_start(&config, &r), -EMSGSIZE);
	assert_null(r);
	mem_free(much);
}

static void a_client_that_stops_sending_still_hears_the_answer_TUN_10(
	void **state)
{
	struct flow f;

	(void)state;
	flow_open(&f, STR_NONE, STR_NONE);
	lab_send(base, f.client, STR("question"));
	shutdown(f.client, SHUT_WR);
	lab_expect(base, f.origin, "question");
	lab_expect_fin(base, f.origin);
	assert_int_equal(f.why, REASONS);
	lab_send(base, f.origin, STR("late answer"));
	lab_expect(base, f.client, "late answer");
	close(f.origin);
	lab_expect_fin(base, f.client);
	flow_wait(&f, REASON_CLIENT_CLOSED);
	close(f.client);
}

static void an_origin_that_stops_sending_still_hears_the_client_TUN_10(
	void **state)
{
	struct flow f;

	(void)state;
	flow_open(&f, STR_NONE, STR_NONE);
	lab_send(base, f.origin, STR("greeting"));
	shutdown(f.origin, SHUT_WR);
	lab_expect(base, f.client, "greeting");
	lab_expect_fin(base, f.client);
	lab_send(base, f.client, STR("upload"));
	lab_expect(base, f.origin, "upload");
	close(f.client);
	lab_expect_fin(base, f.origin);
	flow_wait(&f, REASON_ORIGIN_CLOSED);
	close(f.origin);
}

static void a_reset_of_either_side_reaches_the_other(void **state)
{
	struct flow f;

	(void)state;
	flow_open(&f, STR_NONE, STR_NONE);
	lab_reset(f.client);
	lab_expect_reset(base, f.origin);
	flow_wait(&f, REASON_CLIENT_RESET);
	close(f.origin);

	flow_open(&f, STR_NONE, STR_NONE);
	lab_reset(f.origin);
	lab_expect_reset(base, f.client);
	flow_wait(&f, REASON_ORIGIN_RESET);
	close(f.client);
}

static void a_client_gone_after_its_fin_is_no_reset(void **state)
{
	struct flow f;

	(void)state;
	flow_open(&f, STR_NONE, STR_NONE);
	close(f.client);
	lab_expect_fin(base, f.origin);
	/* Its kernel answers the first bytes with a reset; ours hears it. */
	while (f.why == REASONS) {
		(void)!send(f.origin, "x", 1, MSG_NOSIGNAL);
		lab_turn(base);
	}
	assert_int_equal(f.why, REASON_CLIENT_CLOSED);
	close(f.origin);
}

/* An upload that is refused half way: the answer must get through although
 * the origin resets what it never read. */
static void an_answer_before_a_reset_is_delivered(void **state)
{
	static const char answer[] = "HTTP/1.1 413 Content Too Large\r\n\r\n";
	static char load[256 << 10];
	struct flow f;

	(void)state;
	flow_open(&f, STR_NONE, STR_NONE);
	(void)!send(f.client, load, sizeof(load), MSG_NOSIGNAL);
	lab_wait_readable(base, f.origin);
	assert_true(send(f.origin, answer, sizeof(answer) - 1, 0) > 0);
	close(f.origin);	/* unread bytes: the kernel sends a reset */
	/* More of the upload meets the reset before the answer is read. */
	(void)!send(f.client, load, sizeof(load), MSG_NOSIGNAL);
	lab_expect(base, f.client, answer);
	flow_wait(&f, REASON_ORIGIN_RESET);
	close(f.client);
}

/* --- bulk -------------------------------------------------------------------- */

static uint8_t pattern(size_t at)
{
	return (uint8_t)(at * 2654435761u >> 13 ^ at >> 16);
}

struct stream {
	int from, to;
	size_t sent, got, total;
};

static void stream_turn(struct stream *s)
{
	static char chunk[48 << 10];
	ssize_t n;
	size_t i, want = MIN(sizeof(chunk), s->total - s->sent);

	if (want) {
		for (i = 0; i < want; i++)
			chunk[i] = (char)pattern(s->sent + i);
		n = send(s->from, chunk, want, MSG_NOSIGNAL);
		if (n > 0)
			s->sent += (size_t)n;
		if (s->sent == s->total)
			shutdown(s->from, SHUT_WR);
	}
	n = recv(s->to, chunk, sizeof(chunk), 0);
	for (i = 0; n > 0 && i < (size_t)n; i++)
		if (chunk[i] != (char)pattern(s->got + i))
			fail_msg("byte %zu differs", s->got + i);
	if (n > 0)
		s->got += (size_t)n;
}

static void bulk_both_ways(void)
{
	struct stream up, down;
	uint64_t bytes_up, bytes_down;
	struct flow f;

	flow_open(&f, STR_NONE, STR_NONE);
	up = (struct stream){ f.client, f.origin, 0, 0, BULK };
	down = (struct stream){ f.origin, f.client, 0, 0, BULK + 12345 };
	while (up.got < up.total || down.got < down.total) {
		stream_turn(&up);
		stream_turn(&down);
		if (f.relay)
			relay_bytes(f.relay, &bytes_up, &bytes_down);
		lab_turn(base);
	}
	lab_expect_fin(base, f.client);
	lab_expect_fin(base, f.origin);
	while (f.why == REASONS)
		lab_turn(base);
	assert_true(f.why == REASON_CLIENT_CLOSED ||
		    f.why == REASON_ORIGIN_CLOSED);
	close(f.client);
	close(f.origin);
}

static void bulk_is_exact_through_pipes(void **state)
{
	uint64_t before = relay_pool_spliced(pool);

	(void)state;
	bulk_both_ways();
	assert_true(relay_pool_spliced(pool) - before > BULK);
}

static void bulk_is_exact_by_copying(void **state)
{
	(void)state;
	relay_pool_limit(pool, 0);
	bulk_both_ways();
	assert_int_equal(relay_pool_spliced(pool), 0);
}

static void a_slow_reader_stops_its_sender_and_nothing_spins(void **state)
{
	static char chunk[RELAY_CHUNK];
	struct flow f;
	size_t sent = 0, got = 0, bound;
	unsigned long before;
	unsigned i, idle;

	(void)state;
	flow_open(&f, STR_NONE, STR_NONE);
	lab_small_buffers(f.client);
	lab_small_buffers(f.app->fd);
	lab_small_buffers(f.net->fd);
	lab_small_buffers(f.origin);
	for (idle = 0; idle < 200; idle++) {
		ssize_t n = send(f.origin, chunk, sizeof(chunk), MSG_NOSIGNAL);

		if (n > 0) {
			sent += (size_t)n;
			idle = 0;
		}
		lab_turn(base);
	}
	/* Four kernel buffers (the kernel doubles what it is asked for), and
	 * one chunk in a pipe or buffer of ours. */
	bound = 4 * 2 * (32u << 10) + 2 * RELAY_CHUNK;
	assert_true(sent > 0 && sent <= bound);
	before = reads;
	for (i = 0; i < 500; i++)
		lab_turn(base);
	assert_int_equal(reads, before);
	while (got < sent) {
		ssize_t n = __real_recv(f.client, chunk, sizeof(chunk), 0);

		if (n > 0)
			got += (size_t)n;
		lab_turn(base);
	}
	assert_int_equal(got, sent);
	close(f.origin);
	lab_expect_fin(base, f.client);
	close(f.client);
	flow_wait(&f, REASON_ORIGIN_CLOSED);
}

/* Fill every buffer between the origin and a client that reads nothing. */
static void stuff(struct flow *f)
{
	static char chunk[RELAY_CHUNK];
	unsigned idle;

	for (idle = 0; idle < 200; idle++) {
		if (send(f->origin, chunk, sizeof(chunk), MSG_NOSIGNAL) > 0)
			idle = 0;
		lab_turn(base);
	}
}

/* The pipe holds bytes when its sink goes: an error, not a signal. */
static void a_client_that_resets_in_the_middle_of_bulk_ends_it(void **state)
{
	size_t before = lab_open_fds();
	struct flow f;

	(void)state;
	flow_open(&f, STR_NONE, STR_NONE);
	stuff(&f);
	assert_true(lab_open_fds() > before + 4);	/* a pipe is out */
	lab_reset(f.client);
	flow_wait(&f, REASON_CLIENT_RESET);
	lab_expect_reset(base, f.origin);
	close(f.origin);
	assert_int_equal(lab_open_fds(), before);
}

static void an_abandoned_relay_gives_its_pipe_back(void **state)
{
	size_t before = lab_open_fds();
	struct flow f;

	(void)state;
	flow_open(&f, STR_NONE, STR_NONE);
	stuff(&f);
	assert_true(lab_open_fds() > before + 4);	/* a pipe is out */
	relay_free(f.relay);
	half_closep(&f.app, true);
	half_closep(&f.net, true);
	close(f.client);
	close(f.origin);
	assert_int_equal(lab_open_fds(), before);
}

/* --- many --------------------------------------------------------------------- */

#define BATCH	50

static void end_one(struct flow *f, unsigned manner)
{
	switch (manner % 4) {
	case 0:
		close(f->client);
		lab_expect_fin(base, f->origin);
		close(f->origin);
		flow_wait(f, REASON_CLIENT_CLOSED);
		break;
	case 1:
		close(f->origin);
		lab_expect_fin(base, f->client);
		close(f->client);
		flow_wait(f, REASON_ORIGIN_CLOSED);
		break;
	case 2:
		close(f->client);
		close(f->origin);
		while (f->why == REASONS)
			lab_turn(base);
		break;
	default:
		lab_reset(f->client);
		flow_wait(f, REASON_CLIENT_RESET);
		close(f->origin);
		break;
	}
}

static void a_thousand_relays_leave_no_descriptor_behind_TUN_11(void **state)
{
	size_t before = lab_open_fds();
	static struct flow f[BATCH];
	unsigned round, i;

	(void)state;
	for (round = 0; round < 1000 / BATCH; round++) {
		for (i = 0; i < BATCH; i++)
			flow_open(&f[i], STR("early"), STR_NONE);
		for (i = 0; i < BATCH; i++) {
			lab_send(base, f[i].client, STR("."));
			lab_expect(base, f[i].origin, "early.");
		}
		for (i = 0; i < BATCH; i++)
			end_one(&f[i], i);
	}
	assert_int_equal(lab_open_fds(), before);
}

#define relay_unit(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		relay_unit(early_bytes_go_first_and_all_are_counted_TUN_04),
		relay_unit(early_bytes_beyond_the_bound_are_refused),
		relay_unit(
		    a_client_that_stops_sending_still_hears_the_answer_TUN_10),
		relay_unit(
		    an_origin_that_stops_sending_still_hears_the_client_TUN_10),
		relay_unit(a_reset_of_either_side_reaches_the_other),
		relay_unit(a_client_gone_after_its_fin_is_no_reset),
		relay_unit(an_answer_before_a_reset_is_delivered),
		relay_unit(bulk_is_exact_through_pipes),
		relay_unit(bulk_is_exact_by_copying),
		relay_unit(a_slow_reader_stops_its_sender_and_nothing_spins),
		relay_unit(
		    a_client_that_resets_in_the_middle_of_bulk_ends_it),
		relay_unit(an_abandoned_relay_gives_its_pipe_back),
		relay_unit(a_thousand_relays_leave_no_descriptor_behind_TUN_11),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
