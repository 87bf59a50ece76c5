/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_test.c - a run from its plug to its last record
 *
 * Real workers, resolver and records; what is missing is the launcher, whose
 * part this test plays, and the seal.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "audit/writer.h"
#include "base/fd.h"
#include "proxy/plug.h"
#include "proxy/plug_check.h"
#include "proxy/plug_peer.h"
#include "proxy/worker.h"
#include "rules/rules.h"
#include "tests/unit/plug_lab.h"
#include "tests/unit/proxy_lab.h"

#define POLICY	"[policy]\nname = t\n[allow a]\nhosts = example.org\n"

static struct lab {
	struct event_base *base;
	struct worker *worker[2];
	struct audit_writer *writer;
	struct config service;
	struct plug_policy policy;
	struct plug_config config;
	struct plug *plug;
	unsigned idle;
	int log, records;
} lab;

static void on_idle(void *arg)
{
	(void)arg;
	lab.idle++;
	event_base_loopbreak(lab.base);
}

static int memory_file(void)
{
	char path[] = "/tmp/penstock-plug-XXXXXX";
	int fd = mkostemp(path, O_APPEND | O_CLOEXEC);

	assert_true(fd >= 0);
	unlink(path);
	return fd;
}

static int open_lab(void **state)
{
	size_t i;

	(void)state;
	lab = (struct lab){ .log = memory_file(), .records = memory_file() };
	lab.base = event_base_new();
	assert_int_equal(audit_writer_new(&lab.writer), 0);
	for (i = 0; i < ARRAY_SIZE(lab.worker); i++) {
		assert_int_equal(worker_new((unsigned)i, &lab.worker[i]), 0);
		assert_int_equal(worker_start(lab.worker[i]), 0);
	}
	lab.config = (struct plug_config){
		.base = lab.base,
		.worker = lab.worker,
		.nworkers = ARRAY_SIZE(lab.worker),
		.writer = lab.writer,
		.log_fd = -1,
		.on_idle = on_idle,
	};
	assert_int_equal(plug_own_netns(&lab.config.own_netns), 0);
	return 0;
}

static void start(void)
{
	assert_int_equal(plug_new(&lab.config, &lab.plug), 0);
}

static void start_service(uid_t may_bring, uid_t may_name)
{
	struct plug_why why;

	lab.service.bring.uid[0] = (struct config_range){ may_bring,
							  may_bring };
	lab.service.name.uid[0] = (struct config_range){ may_name, may_name };
	lab.service.bring.nuids = lab.service.name.nuids = 1;
	lab.policy = (struct plug_policy){ .name = "ci", .text = STR(POLICY) };
	assert_int_equal(plug_compile("ci.ini", STR(POLICY), false,
				      &lab.policy.rules, &why), 0);
	lab.config.service = &lab.service;
	lab.config.policy = &lab.policy;
	lab.config.npolicies = 1;
	start();
}

static int close_lab(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lab.worker); i++)
		worker_join(lab.worker[i]);
	plug_free(lab.plug);
	for (i = 0; i < ARRAY_SIZE(lab.worker); i++)
		worker_free(lab.worker[i]);
	rules_unref(lab.policy.rules);
	audit_writer_free(lab.writer, 5000);
	event_base_free(lab.base);
	close(lab.log);
	close(lab.records);
	return 0;
}

/* --- the launcher's part ------------------------------------------------------ */

static int connect_plug(void)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				    pair), 0);
	assert_int_equal(plug_attach(lab.plug, pair[0]), 0);
	return pair[1];
}

static void send_open(int sock, const struct plug_open *o,
		      const int fd[PLUG_FDS])
{
	int list[PLUG_FDS];
	size_t i, n = 0;

	for (i = 0; i < PLUG_FDS; i++)
		if (fd[i] >= 0)
			list[n++] = fd[i];
	assert_int_equal(fd_send_msg(sock, o, sizeof(*o), list, n), 0);
}

static void bring(int fd[PLUG_FDS], unsigned which, struct str policy)
{
	plug_lab_sockets(which, fd);
	assert_int_equal(fd_memfd("policy", policy, &fd[PLUG_FD_POLICY]), 0);
	fd[PLUG_FD_RECORDS] = fcntl(lab.records, F_DUPFD_CLOEXEC, 0);
}

/* Plug sandbox @which with @policy; all copies of its sockets are the daemon's. */
static int plug_in(unsigned which, struct str policy, uint32_t flags)
{
	int fd[PLUG_FDS], sock = connect_plug();
	struct plug_open o;

	bring(fd, which, policy);
	o = plug_lab_open(fd);
	o.flags = flags;
	send_open(sock, &o, fd);
	plug_lab_close(fd);
	return sock;
}

union answer {
	struct plug_head head;
	struct plug_ready ready;
	struct plug_refused refused;
	struct plug_closed closed;
};

/* Turn until the daemon says something; 0 for the end of the connection. */
static int hear(int sock, union answer *ret)
{
	ssize_t n;

	while ((n = recv(sock, ret, sizeof(*ret), MSG_DONTWAIT)) < 0) {
		assert_int_equal(errno, EAGAIN);
		assert_true(event_base_loop(lab.base, EVLOOP_ONCE) >= 0);
	}
	if (n == 0)
		return 0;
	assert_int_equal(ret->head.magic, PLUG_MAGIC);
	return ret->head.type;
}

static void expect_refused(int sock, const char *want)
{
	union answer a;

	assert_int_equal(hear(sock, &a), PLUG_REFUSED);
	if (!strstr(a.refused.text, want))
		fail_msg("wanted \"%s\", said \"%s\"", want, a.refused.text);
	assert_int_equal(hear(sock, &a), 0);
	close(sock);
}

static void say_close(int sock)
{
	static const struct plug_head head = { PLUG_MAGIC, PLUG_VERSION,
					       PLUG_CLOSE };

	assert_int_equal(fd_send_msg(sock, &head, sizeof(head), NULL, 0), 0);
}

static void wait_until_idle(void)
{
	unsigned before = lab.idle;

	while (plug_runs(lab.plug) && lab.idle == before)
		assert_true(event_base_loop(lab.base, EVLOOP_ONCE) >= 0);
	assert_int_equal(plug_runs(lab.plug), 0);
}

static void connect_http(void *arg)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(PLUG_HTTP_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int *err = arg;

	*err = connect(fd, (void *)&to, sizeof(to)) < 0 ? errno : 0;
	close(fd);
}

/* What a program in sandbox @which gets when it connects to the proxy. */
static int reach_proxy(unsigned which)
{
	int err;

	plug_lab_in(which, connect_http, &err);
	return err;
}

static unsigned count_in(int file, const char *want)
{
	static char text[64 << 10];
	ssize_t n = pread(file, text, sizeof(text) - 1, 0);
	const char *at = text;
	unsigned found = 0;

	assert_true(n >= 0);
	text[n] = '\0';
	while ((at = strstr(at, want))) {
		at += strlen(want);
		found++;
	}
	return found;
}

/* --- tests ----------------------------------------------------------------------- */

static void a_run_goes_from_its_plug_to_its_last_record(void **state)
{
	union answer a;
	int sock;

	(void)state;
	start();
	sock = plug_in(0, STR(POLICY), 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	assert_int_equal(a.ready.rules, 1);
	assert_int_equal(a.ready.observe, 0);
	assert_string_equal(a.ready.name, "t");
	assert_int_equal(strlen(a.ready.digest), 16);
	assert_int_equal(reach_proxy(0), 0);
	say_close(sock);
	assert_int_equal(hear(sock, &a), PLUG_CLOSED);
	assert_int_equal(a.closed.audit_ok, 1);
	assert_true(a.closed.records >= 2);
	assert_int_equal(hear(sock, &a), 0);
	close(sock);
	/* Nothing answers any more, and at once. */
	assert_int_equal(reach_proxy(0), ECONNREFUSED);
	wait_until_idle();
	assert_int_equal(count_in(lab.records, "\"ev\":\"run_start\""), 1);
	assert_int_equal(count_in(lab.records, "\"ev\":\"run_end\""), 1);
	assert_int_equal(count_in(lab.records, "\"run\":\"0193-run\""),
			 a.closed.records);
}

static void a_launcher_that_vanishes_ends_its_run(void **state)
{
	union answer a;
	int sock;

	(void)state;
	start();
	sock = plug_in(0, STR(POLICY), 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	close(sock);
	wait_until_idle();
	assert_int_equal(reach_proxy(0), ECONNREFUSED);
	assert_int_equal(count_in(lab.records, "\"ev\":\"run_end\""), 1);
}

static void one_that_vanishes_while_it_is_placed_leaves_nothing(void **state)
{
	int sock;

	(void)state;
	start();
	sock = plug_in(0, STR(POLICY), 0);
	close(sock);
	wait_until_idle();
	assert_int_equal(reach_proxy(0), ECONNREFUSED);
	assert_int_equal(count_in(lab.records, "\"ev\":\"run_end\""), 1);
}

static void one_that_never_speaks_leaves_nothing(void **state)
{
	(void)state;
	start();
	close(connect_plug());
	wait_until_idle();
}

static void a_policy_with_a_mistake_is_refused_with_its_line(void **state)
{
	(void)state;
	start();
	expect_refused(plug_in(0, STR("[policy]\nname = t\nfoo = 1\n"), 0),
		       "policy:3: ");
	assert_int_equal(reach_proxy(0), ECONNREFUSED);
	assert_int_equal(count_in(lab.records, "run_start"), 0);
}

static void an_empty_policy_denies_everything(void **state)
{
	union answer a;
	int sock;

	(void)state;
	start();
	sock = plug_in(0, STR_NONE, 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	assert_int_equal(a.ready.rules, 0);
	close(sock);
	wait_until_idle();
}

static void observing_can_be_asked_for(void **state)
{
	union answer a;
	int sock;

	(void)state;
	start();
	sock = plug_in(0, STR(POLICY), PLUG_FLAG_OBSERVE);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	assert_int_equal(a.ready.observe, 1);
	close(sock);
	wait_until_idle();
	assert_int_equal(count_in(lab.records, "\"mode\":\"observe\""), 2);
}

static void a_violation_ends_that_run_only(void **state)
{
	int good, bad, fd[PLUG_FDS];
	struct plug_open o;
	union answer a;

	(void)state;
	start();
	good = plug_in(0, STR(POLICY), 0);
	assert_int_equal(hear(good, &a), PLUG_READY);
	bad = plug_in(1, STR(POLICY), 0);
	assert_int_equal(hear(bad, &a), PLUG_READY);
	/* A second opening message, descriptors and all. */
	memset(fd, -1, sizeof(fd));
	assert_int_equal(fd_memfd("policy", STR(POLICY), &fd[PLUG_FD_POLICY]),
			 0);
	o = plug_lab_open(fd);
	send_open(bad, &o, fd);
	plug_lab_close(fd);
	assert_int_equal(hear(bad, &a), PLUG_CLOSED);
	close(bad);
	assert_int_equal(reach_proxy(1), ECONNREFUSED);
	assert_int_equal(reach_proxy(0), 0);
	/* And junk. */
	assert_int_equal(send(good, "junk", 4, MSG_NOSIGNAL), 4);
	assert_int_equal(hear(good, &a), PLUG_CLOSED);
	close(good);
	wait_until_idle();
}

static void a_run_without_a_place_for_records_is_refused(void **state)
{
	int fd[PLUG_FDS], sock;
	struct plug_open o;

	(void)state;
	start();
	sock = connect_plug();
	bring(fd, 0, STR(POLICY));
	fd_closep(&fd[PLUG_FD_RECORDS]);
	o = plug_lab_open(fd);
	send_open(sock, &o, fd);
	plug_lab_close(fd);
	expect_refused(sock, "no place for the records");
}

static void our_own_shutdown_ends_every_run_with_its_records(void **state)
{
	union answer a;
	int one, two;

	(void)state;
	start();
	one = plug_in(0, STR(POLICY), 0);
	two = plug_in(1, STR(POLICY), 0);
	assert_int_equal(hear(one, &a), PLUG_READY);
	assert_int_equal(hear(two, &a), PLUG_READY);
	plug_end_all(lab.plug, REASON_SHUTDOWN);
	assert_int_equal(hear(one, &a), PLUG_CLOSED);
	assert_int_equal(hear(two, &a), PLUG_CLOSED);
	close(one);
	close(two);
	wait_until_idle();
	assert_int_equal(count_in(lab.records, "\"reason\":\"shutdown\""), 2);
}

/* --- the service ------------------------------------------------------------------- */

static int name_policy(const char *name, uint32_t flags)
{
	int fd[PLUG_FDS], sock = connect_plug();
	struct plug_open o;

	plug_lab_sockets(0, fd);
	o = plug_lab_open(fd);
	o.flags = flags;
	memcpy(o.policy, name, strlen(name) + 1);
	send_open(sock, &o, fd);
	plug_lab_close(fd);
	return sock;
}

static void a_stranger_is_told_so_and_sent_away(void **state)
{
	(void)state;
	start_service(getuid() + 1, getuid() + 2);
	expect_refused(connect_plug(), "may not use this service");
}

static void who_may_only_name_a_policy_gets_that_one(void **state)
{
	union answer a;
	int sock;

	(void)state;
	lab.config.log_fd = lab.log;
	start_service(getuid() + 1, getuid());
	expect_refused(plug_in(0, STR(POLICY), 0), "not bring one");
	expect_refused(name_policy("ci", PLUG_FLAG_OBSERVE), "observe");
	expect_refused(name_policy("nightly", 0), "no policy 'nightly'");
	sock = name_policy("ci", 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	assert_string_equal(a.ready.name, "t");
	say_close(sock);
	assert_int_equal(hear(sock, &a), PLUG_CLOSED);
	close(sock);
	wait_until_idle();
	/* No descriptor came along: they are in the service's own log. */
	assert_int_equal(count_in(lab.log, "\"ev\":\"run_end\""), 1);
}

static void who_may_bring_a_policy_may_also_observe_a_named_one(void **state)
{
	union answer a;
	int sock;

	(void)state;
	lab.config.log_fd = lab.log;
	start_service(getuid(), getuid() + 1);
	sock = name_policy("ci", PLUG_FLAG_OBSERVE);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	assert_int_equal(a.ready.observe, 1);
	/* The shared one is as it was. */
	assert_false(rules_observe(lab.policy.rules));
	close(sock);
	wait_until_idle();
}

static void records_go_to_both_logs_and_follow_a_rotation(void **state)
{
	int sock, rotated = memory_file();
	union answer a;

	(void)state;
	lab.config.log_fd = lab.log;
	start_service(getuid(), getuid());
	sock = plug_in(0, STR(POLICY), 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	plug_set_log(lab.plug, rotated);
	say_close(sock);
	assert_int_equal(hear(sock, &a), PLUG_CLOSED);
	close(sock);
	wait_until_idle();
	assert_int_equal(count_in(lab.records, "\"ev\":"), 2);
	assert_int_equal(count_in(lab.log, "run_start"), 1);
	assert_int_equal(count_in(rotated, "run_start"), 0);
	assert_int_equal(count_in(rotated, "\"ev\":\"run_end\""), 1);
	close(rotated);
}

static void runs_are_spread_over_the_workers(void **state)
{
	union answer a;
	int one, two;

	(void)state;
	start();
	one = plug_in(0, STR(POLICY), 0);
	two = plug_in(1, STR(POLICY), 0);
	assert_int_equal(hear(one, &a), PLUG_READY);
	assert_int_equal(hear(two, &a), PLUG_READY);
	/* Their threads write these lists, but not while nothing happens. */
	assert_false(list_empty(&lab.worker[0]->sandboxes));
	assert_false(list_empty(&lab.worker[1]->sandboxes));
	close(one);
	close(two);
	wait_until_idle();
}

#define IN_LAB(f)	cmocka_unit_test_setup_teardown(f, open_lab, close_lab)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(a_run_goes_from_its_plug_to_its_last_record),
		IN_LAB(a_launcher_that_vanishes_ends_its_run),
		IN_LAB(one_that_vanishes_while_it_is_placed_leaves_nothing),
		IN_LAB(one_that_never_speaks_leaves_nothing),
		IN_LAB(a_policy_with_a_mistake_is_refused_with_its_line),
		IN_LAB(an_empty_policy_denies_everything),
		IN_LAB(observing_can_be_asked_for),
		IN_LAB(a_violation_ends_that_run_only),
		IN_LAB(a_run_without_a_place_for_records_is_refused),
		IN_LAB(our_own_shutdown_ends_every_run_with_its_records),
		IN_LAB(a_stranger_is_told_so_and_sent_away),
		IN_LAB(who_may_only_name_a_policy_gets_that_one),
		IN_LAB(who_may_bring_a_policy_may_also_observe_a_named_one),
		IN_LAB(records_go_to_both_logs_and_follow_a_rotation),
		IN_LAB(runs_are_spread_over_the_workers),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
