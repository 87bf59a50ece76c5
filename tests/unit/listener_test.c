/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener_test.c - nothing that accept() says ends a listener (OPS-01, OPS-02)
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "audit/writer.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "proxy/listener.h"
#include "proxy/sandbox.h"
#include "proxy/sock.h"
#include "proxy/strangers.h"
#include "proxy/worker.h"
#include "tests/unit/proxy_lab.h"

#define CONNS_MAX	1000	/* of the sandbox */
#define FILES	256	/* this process's limit while it lasts */

static struct lab {
	struct worker *worker;
	struct audit_writer *writer;
	struct sandbox s;
	struct listener *listener;
	int records;		/* what the sink writes */
	uint16_t port;
	int accepted[FILES];
	unsigned n;
} lab;

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t n = sizeof(value);

	assert_int_equal(getsockopt(fd, level, name, &value, &n), 0);
	return value;
}

static void on_conn(struct sandbox *s, int fd,
		    const struct ip_endpoint *src UNUSED)
{
	assert_ptr_equal(s, &lab.s);
	/* Handed on by the listening socket. */
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_NODELAY), 1);
	assert_int_equal(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
	assert_int_equal(option(fd, IPPROTO_TCP, TCP_KEEPIDLE),
			 SOCK_KEEP_IDLE_S);
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_true(lab.n < FILES);
	lab.accepted[lab.n++] = fd;
	s->nconns++;
}

static int open_lab(void **state)
{
	static const struct record_labels labels = { .run = "r1" };

	lab = (struct lab){
		.s = { .diag_fd = -1, .conns_max = CONNS_MAX },
	};
	assert_int_equal(worker_new(0, &lab.worker), 0);
	assert_int_equal(audit_writer_new(&lab.writer), 0);
	lab.records = memfd_create("records", MFD_CLOEXEC);
	assert_true(lab.records >= 0);
	assert_int_equal(audit_sink_new(lab.writer, dup(lab.records), &labels,
					&lab.s.sink), 0);
	lab.s.worker = lab.worker;
	list_init(&lab.s.conns);
	list_init(&lab.s.listeners);
	list_init(&lab.s.pool);
	assert_int_equal(listener_new(&lab.s,
				      lab_listen("127.0.0.1", 0, &lab.port),
				      on_conn, &lab.listener), 0);
	*state = &lab;
	return 0;
}

static int close_lab(void **state)
{
	(void)state;
	listener_free(lab.listener);
	while (lab.n)
		close(lab.accepted[--lab.n]);
	audit_sink_free(lab.s.sink);
	audit_writer_free(lab.writer, 5000);
	worker_free(lab.worker);
	close(lab.records);
	return 0;
}

/* Turn, waiting for events, until @n connections were accepted. */
static void wait_for(unsigned n)
{
	while (lab.n < n)
		assert_int_equal(event_base_loop(lab.worker->base,
						 EVLOOP_ONCE), 0);
}

static void connections_are_taken_in_batches(void **state)
{
	int client[LISTENER_BATCH + 8];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(client); i++)
		client[i] = lab_connect("127.0.0.1", lab.port);
	assert_int_equal(event_base_loop(lab.worker->base, EVLOOP_ONCE), 0);
	assert_int_equal(lab.n, LISTENER_BATCH);
	wait_for(ARRAY_SIZE(client));
	for (i = 0; i < ARRAY_SIZE(client); i++)
		close(client[i]);
}

static void a_connection_that_died_waiting_harms_no_other(void **state)
{
	int client;

	(void)state;
	lab_reset(lab_connect("127.0.0.1", lab.port));
	client = lab_connect("127.0.0.1", lab.port);
	/* Linux hands a reset connection out all the same. */
	wait_for(2);
	close(client);
}

static unsigned use_up_descriptors(int fd[FILES])
{
	unsigned n = 0;

	while (n < FILES && (fd[n] = dup(STDERR_FILENO)) >= 0)
		n++;
	assert_true(n < FILES);
	assert_int_equal(errno, EMFILE);
	return n;
}

static void running_out_of_descriptors_passes_again(void **state)
{
	struct rlimit before, few;
	int client[2], hog[FILES];
	unsigned hogs;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = FILES;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	client[0] = lab_connect("127.0.0.1", lab.port);
	client[1] = lab_connect("127.0.0.1", lab.port);
	hogs = use_up_descriptors(hog);
	assert_int_equal(event_base_loop(lab.worker->base, EVLOOP_ONCE), 0);
	/* One is told at once, by the spare; the other may still wait. */
	assert_int_equal(lab.n, 0);
	lab_expect_reset(NULL, client[0]);
	assert_int_equal(lab.s.flows_denied, 1);
	/* It rests meanwhile: nothing is ready although one waits. */
	lab_turn(lab.worker->base);
	assert_int_equal(lab.n, 0);
	while (hogs)
		close(hog[--hogs]);
	wait_for(1);
	assert_int_equal(lab.s.flows_denied, 1);
	/* And its spare is there again for the next time. */
	hogs = use_up_descriptors(hog);
	close(client[0]);
	client[0] = lab_connect("127.0.0.1", lab.port);
	while (lab.s.flows_denied == 1)
		assert_int_equal(event_base_loop(lab.worker->base,
						 EVLOOP_ONCE), 0);
	lab_expect_reset(NULL, client[0]);
	while (hogs)
		close(hog[--hogs]);
	close(client[0]);
	close(client[1]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static void the_last_descriptors_are_not_for_connections(void **state)
{
	int client = lab_connect("127.0.0.1", lab.port);

	(void)state;
	/* Each number is one of the last. */
	fd_set_reserve(2, 2);
	while (lab.s.flows_denied == 0)
		assert_int_equal(event_base_loop(lab.worker->base,
						 EVLOOP_ONCE), 0);
	assert_int_equal(lab.n, 0);
	lab_expect_reset(NULL, client);
	close(client);
	/* It rests, and goes on: one of the reserve may be told. */
	fd_set_reserve(INT_MAX, INT_MAX);
	client = lab_connect("127.0.0.1", lab.port);
	wait_for(1);
	fd_set_reserve(INT_MAX, 0);
	close(client);
}

static void a_full_sandbox_leaves_the_rest_waiting(void **state)
{
	int client = lab_connect("127.0.0.1", lab.port);

	(void)state;
	lab.s.nconns = CONNS_MAX;
	assert_int_equal(event_base_loop(lab.worker->base, EVLOOP_ONCE), 0);
	lab_turn(lab.worker->base);
	assert_int_equal(lab.n, 0);
	listener_resume_paused(lab.worker);
	lab_turn(lab.worker->base);
	assert_int_equal(lab.n, 0);
	lab.s.nconns--;
	listener_resume_paused(lab.worker);
	wait_for(1);
	close(client);
}

/* The last record says that it was full for the @count-th time in a row. */
static void expect_limit(unsigned records, const char *count)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(65536);
	struct str rest, line, last = STR_NONE;
	char all[512];
	unsigned n = 0;

	assert_int_equal(audit_sink_flush(lab.s.sink, 5000), 0);
	assert_int_equal(lseek(lab.records, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_all(lab.records, &text), 0);
	for (rest = buf_str(&text); str_cut(&rest, '\n', &line); n++)
		last = line;
	assert_int_equal(n, records);
	assert_in_range(last.n, 1, sizeof(all) - 1);
	memcpy(all, last.p, last.n);
	all[last.n] = '\0';
	assert_non_null(strstr(all, "\"ev\":\"limit\",\"act\":\"none\","
				    "\"reason\":\"connections_exceeded\""));
	assert_true(count ? !!strstr(all, count) : !strstr(all, "\"count\""));
}

static void fill_up_again(void)
{
	int client = lab_connect("127.0.0.1", lab.port);

	lab.s.nconns = CONNS_MAX;
	assert_int_equal(event_base_loop(lab.worker->base, EVLOOP_ONCE), 0);
	lab_turn(lab.worker->base);
	lab.s.nconns = 0;
	listener_resume_paused(lab.worker);
	wait_for(lab.n + 1);
	close(client);
}

static void a_full_sandbox_is_recorded_once_and_then_by_the_minute(void **state)
{
	(void)state;
	clock_test_set_ms(1000);
	fill_up_again();
	expect_limit(1, NULL);
	fill_up_again();
	clock_test_set_ms(1000 + SANDBOX_FULL_MS - 1);
	fill_up_again();
	expect_limit(1, NULL);
	clock_test_set_ms(1000 + SANDBOX_FULL_MS);
	fill_up_again();
	expect_limit(2, "\"count\":3");
	fill_up_again();
	/* What is left is told at the end. */
	sandbox_end(&lab.s, REASON_RUN_ENDED);
	lab.listener = NULL;	/* it went with its sandbox */
	expect_limit(3, NULL);
	clock_test_set_ms(-1);
}

static void a_listener_that_waits_can_be_freed(void **state)
{
	int client = lab_connect("127.0.0.1", lab.port);

	(void)state;
	lab.s.nconns = CONNS_MAX;
	assert_int_equal(event_base_loop(lab.worker->base, EVLOOP_ONCE), 0);
	listener_free(lab.listener);
	lab.listener = NULL;
	listener_resume_paused(lab.worker);
	/* What waited in its queue is refused at once. */
	lab_expect_reset(NULL, client);
	close(client);
}

static void who_is_no_client_is_reset_and_given_to_nobody(void **state)
{
	struct ip_net net[2];
	const struct ip_nets others = { net, 1 }, both = { net, 2 };
	int client;

	(void)state;
	assert_int_equal(ip_net_parse(STR("192.0.2.0/24"), &net[0]), 0);
	assert_int_equal(ip_net_parse(STR("127.0.0.1"), &net[1]), 0);
	assert_int_equal(strangers_new(&lab.s, REASON_CLIENT_NOT_ALLOWED,
				       &lab.s.strangers), 0);
	lab.s.clients = &others;
	client = lab_connect("127.0.0.1", lab.port);
	assert_int_equal(event_base_loop(lab.worker->base, EVLOOP_ONCE), 0);
	lab_expect_reset(NULL, client);
	close(client);
	assert_int_equal(lab.n, 0);
	assert_int_equal(lab.s.flows_denied, 1);
	/* The control. */
	lab.s.clients = &both;
	client = lab_connect("127.0.0.1", lab.port);
	wait_for(1);
	assert_int_equal(lab.s.flows_denied, 1);
	close(client);
	strangers_free(lab.s.strangers);
}

#define IN_LAB(f)	cmocka_unit_test_setup_teardown(f, open_lab, close_lab)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(connections_are_taken_in_batches),
		IN_LAB(a_connection_that_died_waiting_harms_no_other),
		IN_LAB(running_out_of_descriptors_passes_again),
		IN_LAB(the_last_descriptors_are_not_for_connections),
		IN_LAB(a_full_sandbox_leaves_the_rest_waiting),
		IN_LAB(a_full_sandbox_is_recorded_once_and_then_by_the_minute),
		IN_LAB(a_listener_that_waits_can_be_freed),
		IN_LAB(who_is_no_client_is_reset_and_given_to_nobody),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
