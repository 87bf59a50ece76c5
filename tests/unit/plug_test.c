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
#include "proxy/compiler.h"
#include "proxy/plug.h"
#include "proxy/plug_check.h"
#include "proxy/plug_peer.h"
#include "proxy/policies.h"
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
	struct policies policies;
	uint32_t asked;
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

static int on_reload(void *arg, uint32_t serial)
{
	(void)arg;
	lab.asked = serial;
	return 0;
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

/* Every policy is compiled on a thread of its own. */
static int open_compiling_lab(void **state)
{
	open_lab(state);
	return compiler_new(lab.base, 0, &lab.config.compiler);
}

static void start(void)
{
	assert_int_equal(plug_new(&lab.config, &lab.plug), 0);
}

static void start_service(uid_t may_bring, uid_t may_name)
{
	static char policies[] = "/etc/penstock/policies";
	const struct policy_file file = { STR("ci"), "ci.ini", 0, STR(POLICY),
					  NULL };
	struct policy *policy;
	struct plug_why why;

	lab.service.bring.uid[0] = (struct config_range){ may_bring,
							  may_bring };
	lab.service.name.uid[0] = (struct config_range){ may_name, may_name };
	lab.service.bring.nuids = lab.service.name.nuids = 1;
	lab.service.policies = policies;
	assert_int_equal(policies_take(&lab.policies, &file, false, &policy,
				       &why), 1);
	lab.config.service = &lab.service;
	lab.config.policies = &lab.policies;
	lab.config.on_reload = on_reload;
	start();
}

static int close_lab(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lab.worker); i++)
		worker_join(lab.worker[i]);
	compiler_free(lab.config.compiler);
	plug_free(lab.plug);
	for (i = 0; i < ARRAY_SIZE(lab.worker); i++)
		worker_free(lab.worker[i]);
	policies_done(&lab.policies);
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
	struct plug_swapped swapped;
	struct plug_reloaded reloaded;
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
	assert_int_equal(count_in(lab.records, "\"ev\":\"run_") % 2, 0);
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

static void many_mistakes_are_told_in_whole_lines_and_counted(void **state)
{
	struct buf text = BUF_INIT(1 << 16);

	(void)state;
	start();
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(buf_printf(&text, "[allow r%u]\nhosts = "
					    "a.example\nports = 70000\n", i),
				 0);
	expect_refused(plug_in(0, buf_str(&text), 0), "policy:3:9: ");
	expect_refused(plug_in(0, buf_str(&text), 0),
		       " more errors: penstock policy check tells them all");
	buf_done(&text);
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

static int name_policy_in(unsigned which, const char *name, uint32_t flags)
{
	int fd[PLUG_FDS], sock = connect_plug();
	struct plug_open o;

	plug_lab_sockets(which, fd);
	o = plug_lab_open(fd);
	o.flags = flags;
	memcpy(o.policy, name, strlen(name) + 1);
	send_open(sock, &o, fd);
	plug_lab_close(fd);
	return sock;
}

static int name_policy(const char *name, uint32_t flags)
{
	return name_policy_in(0, name, flags);
}

static void a_stranger_is_told_so_and_sent_away(void **state)
{
	(void)state;
	start_service(getuid() + 1, getuid() + 2);
	/* The service's own user comes in, to take it over, but has no run. */
	expect_refused(plug_in(0, STR(POLICY), 0), "may not use this service");
	expect_refused(name_policy("ci", 0), "may not use this service");
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
	assert_false(rules_observe(lab.policies.policy[0].rules));
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

/* --- another policy ------------------------------------------------------------------ */

#define OTHER	"[policy]\nname = o\n[allow b]\nhosts = example.net\n" \
		"[deny c]\nhosts = c.example.net\n"
#define BROKEN	"[policy]\nname = t\nfoo = 1\n"

static void send_swap(int sock, uint32_t serial, const char *policy)
{
	const struct plug_swap m = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_SWAP },
		.serial = serial,
	};
	int fd;

	assert_int_equal(fd_memfd("policy", str_from(policy), &fd), 0);
	assert_int_equal(fd_send_msg(sock, &m, sizeof(m), &fd, 1), 0);
	close(fd);
}

static void expect_swapped(int sock, uint32_t serial, uint32_t generation,
			   const char *name)
{
	union answer a;

	assert_int_equal(hear(sock, &a), PLUG_SWAPPED);
	assert_int_equal(a.swapped.ok, 1);
	assert_int_equal(a.swapped.serial, serial);
	assert_int_equal(a.swapped.generation, generation);
	assert_string_equal(a.swapped.name, name);
}

static void expect_not_swapped(int sock, uint32_t serial, const char *want)
{
	union answer a;

	assert_int_equal(hear(sock, &a), PLUG_SWAPPED);
	assert_int_equal(a.swapped.ok, 0);
	assert_int_equal(a.swapped.serial, serial);
	if (!strstr(a.swapped.text, want))
		fail_msg("wanted \"%s\", said \"%s\"", want, a.swapped.text);
}

static void expect_closed(int sock)
{
	union answer a;

	say_close(sock);
	assert_int_equal(hear(sock, &a), PLUG_CLOSED);
	assert_int_equal(hear(sock, &a), 0);
	close(sock);
}

static void a_run_gets_another_policy_and_records_say_so_POL_04(void **state)
{
	union answer a;
	int sock;

	(void)state;
	start();
	sock = plug_in(0, STR(POLICY), 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	send_swap(sock, 7, OTHER);
	expect_swapped(sock, 7, 2, "o");
	/* The same text again is a generation of its own. */
	send_swap(sock, 8, OTHER);
	send_swap(sock, 9, POLICY);
	expect_swapped(sock, 8, 3, "o");
	expect_swapped(sock, 9, 4, "t");
	assert_int_equal(reach_proxy(0), 0);
	expect_closed(sock);
	wait_until_idle();
	assert_int_equal(count_in(lab.records, "\"ev\":\"policy_reload\""), 3);
	assert_int_equal(count_in(lab.records, "\"gen\":2,"), 1);
	assert_int_equal(count_in(lab.records, "\"policy\":\"o@sha256:"), 2);
}

static void a_policy_that_is_none_leaves_the_old_one_in_force(void **state)
{
	union answer a;
	int sock;

	(void)state;
	start();
	sock = plug_in(0, STR(POLICY), 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	send_swap(sock, 1, BROKEN);
	expect_not_swapped(sock, 1, "policy:3: ");
	send_swap(sock, 2, OTHER);
	expect_swapped(sock, 2, 2, "o");
	expect_closed(sock);
	wait_until_idle();
	assert_int_equal(count_in(lab.records, "policy_reload_failed"), 1);
	assert_int_equal(count_in(lab.records, "\"error\":\"policy:3: "), 1);
}

static void observing_goes_on_under_another_policy(void **state)
{
	union answer a;
	int sock;

	(void)state;
	start();
	sock = plug_in(0, STR(POLICY), PLUG_FLAG_OBSERVE);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	send_swap(sock, 1, OTHER);
	expect_swapped(sock, 1, 2, "o");
	expect_closed(sock);
	wait_until_idle();
	assert_int_equal(count_in(lab.records, "\"mode\":\"enforce\""), 0);
}

static void swaps_without_a_run_or_a_policy_are_violations(void **state)
{
	struct plug_swap m = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_SWAP }, .serial = 1,
	};
	union answer a;
	int sock;

	(void)state;
	start();
	sock = connect_plug();
	send_swap(sock, 1, OTHER);
	expect_refused(sock, "when there is a run");
	sock = connect_plug();
	assert_int_equal(fd_send_msg(sock, &m, sizeof(m), NULL, 0), 0);
	expect_refused(sock, "carries one policy, and 0");
	/* Within a run it is passed over, and the run lives. */
	sock = plug_in(0, STR(POLICY), 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	assert_int_equal(fd_send_msg(sock, &m, sizeof(m), NULL, 0), 0);
	send_swap(sock, 3, OTHER);
	expect_swapped(sock, 3, 2, "o");
	expect_closed(sock);
}

static void a_run_that_ends_takes_its_swaps_along(void **state)
{
	union answer a;
	unsigned i;
	int sock;

	(void)state;
	start();
	sock = plug_in(0, STR(POLICY), 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	for (i = 1; i < 20; i++)
		send_swap(sock, i, OTHER);
	close(sock);
	wait_until_idle();
	assert_int_equal(count_in(lab.records, "\"ev\":\"run_end\""), 1);
}

static void who_may_only_name_a_policy_may_not_swap_it(void **state)
{
	union answer a;
	int sock;

	(void)state;
	lab.config.log_fd = lab.log;
	start_service(getuid() + 1, getuid());
	sock = name_policy("ci", 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	send_swap(sock, 5, "[policy]\nname = mine\npreset = open\n");
	expect_not_swapped(sock, 5, "not bring one");
	expect_closed(sock);
	wait_until_idle();
	assert_int_equal(count_in(lab.log, "\"gen\":2,"), 0);
}

/* --- the service's own policies ---------------------------------------------------------- */

static int ask_reload(void)
{
	static const struct plug_head head = { PLUG_MAGIC, PLUG_VERSION,
					       PLUG_RELOAD };
	int sock = connect_plug();

	assert_int_equal(fd_send_msg(sock, &head, sizeof(head), NULL, 0), 0);
	return sock;
}

static void wait_until_asked(uint32_t serial)
{
	while (lab.asked < serial)
		assert_true(event_base_loop(lab.base, EVLOOP_ONCE) >= 0);
}

/* One reading, with at most one file in the directory. */
static void read_policies(const char *name, const char *text, bool anew,
			  uint32_t serial)
{
	const struct policy_file file = { str_from(name), "/p/x.ini",
					  text ? 0 : -EACCES, str_from(text),
					  NULL };
	struct plug_reload *r;

	assert_int_equal(plug_reload_begin(lab.plug, &r), 0);
	if (name)
		plug_reload_file(r, &file, anew);
	plug_reload_end(r, serial, "/p", 0);
}

static void runs_follow_the_policy_that_they_named(void **state)
{
	int one, two, own, asking;
	union answer a;

	(void)state;
	lab.config.log_fd = lab.log;
	start_service(getuid(), getuid());
	one = name_policy("ci", 0);
	assert_int_equal(hear(one, &a), PLUG_READY);
	two = name_policy_in(1, "ci", PLUG_FLAG_OBSERVE);
	assert_int_equal(hear(two, &a), PLUG_READY);
	own = plug_in(2, STR(POLICY), 0);
	assert_int_equal(hear(own, &a), PLUG_READY);
	asking = ask_reload();
	wait_until_asked(1);
	/* One that began before the question does not answer it. */
	read_policies("ci", POLICY, false, 0);
	read_policies("ci", OTHER, false, 1);
	expect_swapped(one, 0, 2, "o");
	expect_swapped(two, 0, 2, "o");
	assert_int_equal(hear(asking, &a), PLUG_RELOADED);
	assert_int_equal(a.reloaded.ok, 1);
	assert_int_equal(a.reloaded.policies, 1);
	assert_int_equal(a.reloaded.changed, 1);
	assert_int_equal(a.reloaded.runs, 2);
	assert_int_equal(hear(asking, &a), 0);
	close(asking);
	/* A policy of its own follows nobody's. */
	send_swap(one, 4, POLICY);
	expect_swapped(one, 4, 3, "t");
	read_policies("ci", POLICY "\n", false, 1);
	expect_swapped(two, 0, 3, "t");
	send_swap(own, 5, OTHER);
	expect_swapped(own, 5, 2, "o");
	expect_closed(one);
	expect_closed(two);
	expect_closed(own);
	wait_until_idle();
	assert_int_equal(count_in(lab.log, "\"ev\":\"policy_reload\""), 5);
}

static void the_same_text_is_another_policy_only_when_asked_for(void **state)
{
	union answer a;
	int sock;

	(void)state;
	lab.config.log_fd = lab.log;
	start_service(getuid() + 1, getuid());
	sock = name_policy("ci", 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	read_policies("ci", POLICY, false, 0);
	read_policies("ci", POLICY, true, 0);
	expect_swapped(sock, 0, 2, "t");
	expect_closed(sock);
	wait_until_idle();
}

static void a_file_with_a_mistake_leaves_its_policy_in_force_loudly(
	void **state)
{
	static const char *const text[] = { BROKEN, NULL };
	static const char *const words[] = {
		"/p/x.ini:3: unknown key", "/p/x.ini: Permission denied",
	};
	int sock, asking;
	union answer a;
	unsigned i;

	(void)state;
	lab.config.log_fd = lab.log;
	start_service(getuid(), getuid());
	sock = name_policy("ci", 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	for (i = 0; i < ARRAY_SIZE(text); i++) {
		asking = ask_reload();
		wait_until_asked(i + 1);
		read_policies("ci", text[i], true, i + 1);
		assert_int_equal(hear(asking, &a), PLUG_RELOADED);
		assert_int_equal(a.reloaded.ok, 0);
		assert_int_equal(a.reloaded.failed, 1);
		assert_int_equal(a.reloaded.policies, 1);
		if (!strstr(a.reloaded.text, words[i]))
			fail_msg("said \"%s\"", a.reloaded.text);
		close(asking);
	}
	/* Whoever names it now gets the old one too. */
	close(sock);
	wait_until_idle();
	sock = name_policy("ci", 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	expect_closed(sock);
	wait_until_idle();
	assert_int_equal(count_in(lab.log, "policy_reload_failed"), 2);
	assert_int_equal(count_in(lab.log, "\"error\":\"/p/x.ini:3: unknown"),
			 1);
}

static void a_policy_that_is_gone_is_kept_by_its_runs_and_by_nobody_else(
	void **state)
{
	union answer a;
	int sock;

	(void)state;
	lab.config.log_fd = lab.log;
	start_service(getuid() + 1, getuid());
	sock = name_policy("ci", 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	read_policies(NULL, NULL, false, 0);
	expect_refused(name_policy_in(1, "ci", 0), "no policy 'ci'");
	/* Once is enough to say it. */
	read_policies(NULL, NULL, false, 0);
	read_policies("ci", OTHER, false, 0);
	expect_swapped(sock, 0, 2, "o");
	expect_closed(sock);
	wait_until_idle();
	assert_int_equal(count_in(lab.log, "policy_reload_failed"), 1);
	assert_int_equal(count_in(lab.log, "ci.ini is gone"), 1);
}

static void a_directory_that_cannot_be_read_changes_nothing(void **state)
{
	struct plug_reload *r;
	union answer a;
	int asking;

	(void)state;
	start_service(getuid(), getuid());
	asking = ask_reload();
	wait_until_asked(1);
	assert_int_equal(plug_reload_begin(lab.plug, &r), 0);
	plug_reload_end(r, 1, "/p", -ENOENT);
	assert_int_equal(hear(asking, &a), PLUG_RELOADED);
	assert_int_equal(a.reloaded.ok, 0);
	assert_int_equal(a.reloaded.policies, 1);
	assert_non_null(strstr(a.reloaded.text, "/p: No such file"));
	close(asking);
	asking = ask_reload();
	wait_until_asked(2);
	plug_reload_fail(lab.plug, "the reader is gone");
	expect_refused(asking, "the reader is gone");
}

static void a_private_daemon_has_nothing_to_reload(void **state)
{
	(void)state;
	start();
	expect_refused(ask_reload(), "serves one run");
}

static void a_run_that_is_being_placed_gets_the_new_policy_too(void **state)
{
	union answer a;
	int sock;

	(void)state;
	lab.config.log_fd = lab.log;
	start_service(getuid() + 1, getuid());
	sock = name_policy("ci", 0);
	/* One turn reads its message, and the mail is on its way. */
	while (list_empty(&lab.worker[0]->sandboxes))
		assert_true(event_base_loop(lab.base, EVLOOP_NONBLOCK) >= 0);
	read_policies("ci", OTHER, false, 0);
	assert_int_equal(hear(sock, &a), PLUG_READY);
	expect_swapped(sock, 0, 2, "o");
	/* Its launcher may be gone before the answer is. */
	read_policies("ci", POLICY, false, 0);
	close(sock);
	wait_until_idle();
}

#define IN_LAB(f)							\
	cmocka_unit_test_setup_teardown(f, open_lab, close_lab),	\
	cmocka_unit_test_setup_teardown(f, open_compiling_lab, close_lab)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(a_run_goes_from_its_plug_to_its_last_record),
		IN_LAB(a_launcher_that_vanishes_ends_its_run),
		IN_LAB(one_that_vanishes_while_it_is_placed_leaves_nothing),
		IN_LAB(one_that_never_speaks_leaves_nothing),
		IN_LAB(a_policy_with_a_mistake_is_refused_with_its_line),
		IN_LAB(many_mistakes_are_told_in_whole_lines_and_counted),
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
		IN_LAB(a_run_gets_another_policy_and_records_say_so_POL_04),
		IN_LAB(a_policy_that_is_none_leaves_the_old_one_in_force),
		IN_LAB(observing_goes_on_under_another_policy),
		IN_LAB(swaps_without_a_run_or_a_policy_are_violations),
		IN_LAB(a_run_that_ends_takes_its_swaps_along),
		IN_LAB(who_may_only_name_a_policy_may_not_swap_it),
		IN_LAB(runs_follow_the_policy_that_they_named),
		IN_LAB(the_same_text_is_another_policy_only_when_asked_for),
		IN_LAB(a_file_with_a_mistake_leaves_its_policy_in_force_loudly),
		IN_LAB(
	a_policy_that_is_gone_is_kept_by_its_runs_and_by_nobody_else),
		IN_LAB(a_directory_that_cannot_be_read_changes_nothing),
		IN_LAB(a_private_daemon_has_nothing_to_reload),
		IN_LAB(a_run_that_is_being_placed_gets_the_new_policy_too),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
