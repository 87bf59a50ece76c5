/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_test.c - who reaches a launcher, and what they are told
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "netns-setup/control.h"
#include "netns-setup/launch.h"

static struct lab {
	char dir[64];
	struct control control;
	uint32_t serial[16];		/* as asked */
	bool with_policy[16];
	size_t n;
} lab;

static void on_question(void *arg, uint32_t serial, int policy_fd)
{
	assert_ptr_equal(arg, &lab);
	assert_true(lab.n < 16);
	lab.serial[lab.n] = serial;
	lab.with_policy[lab.n++] = policy_fd >= 0;
}

static int set_up(void **state)
{
	(void)state;
	lab = (struct lab){ .dir = "/tmp/penstock-control-XXXXXX" };
	assert_non_null(mkdtemp(lab.dir));
	control_init(&lab.control, on_question, &lab);
	assert_int_equal(control_open(&lab.control, lab.dir), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	control_done(&lab.control);
	/* Nothing is left in it. */
	assert_int_equal(rmdir(lab.dir), 0);
	return 0;
}

/* Everything that is ready now. */
static void turn(void)
{
	struct pollfd p[CONTROL_POLLS];

	for (;;) {
		control_poll(&lab.control, p);
		if (poll(p, CONTROL_POLLS, 0) <= 0)
			return;
		control_run(&lab.control, p);
	}
}

static int knock(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int n = snprintf(a.sun_path, sizeof(a.sun_path), "%s/" CONTROL_NAME,
			 lab.dir);

	assert_true(n > 0 && (size_t)n < sizeof(a.sun_path));
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	turn();
	return fd;
}

static struct plug_swap question(uint32_t serial)
{
	return (struct plug_swap){
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_SWAP },
		.serial = serial,
	};
}

static void ask(int fd, uint32_t serial)
{
	struct plug_swap m = question(serial);

	assert_int_equal(fd_send_msg(fd, &m, sizeof(m), NULL, 0), 0);
	turn();
}

static void expect_told(int fd, uint32_t serial, const char *text)
{
	struct plug_swapped m;

	assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	assert_int_equal(m.serial, serial);
	assert_string_equal(m.text, text);
	assert_int_equal(recv(fd, &m, sizeof(m), MSG_DONTWAIT), 0);
	close(fd);
}

static void a_question_is_answered_with_its_own_number(void **state)
{
	int one = knock(), two = knock();

	(void)state;
	ask(one, 77);
	ask(two, 77);
	assert_int_equal(lab.n, 2);
	assert_int_not_equal(lab.serial[0], lab.serial[1]);
	assert_false(lab.with_policy[0]);
	control_refuse(&lab.control, lab.serial[1], "second");
	control_refuse(&lab.control, lab.serial[0], "first");
	expect_told(one, 77, "first");
	expect_told(two, 77, "second");
}

static void an_answer_whose_asker_is_gone_reaches_nobody(void **state)
{
	int one = knock(), two;

	(void)state;
	ask(one, 1);
	close(one);
	turn();
	two = knock();
	ask(two, 1);
	control_refuse(&lab.control, lab.serial[0], "stale");
	control_refuse(&lab.control, 0, "nobody's");
	control_refuse(&lab.control, lab.serial[1], "fresh");
	expect_told(two, 1, "fresh");
}

static void what_is_no_question_is_sent_away(void **state)
{
	struct plug_swap m = question(1);
	int fd = knock();
	char byte;

	(void)state;
	m.head.type = PLUG_CLOSE;
	assert_int_equal(fd_send_msg(fd, &m, sizeof(m), NULL, 0), 0);
	turn();
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	close(fd);
	/* Nor a second one on the same connection. */
	fd = knock();
	ask(fd, 1);
	ask(fd, 2);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), 0);
	close(fd);
	assert_int_equal(lab.n, 1);
}

static void a_policy_comes_along_as_one_descriptor(void **state)
{
	struct plug_swap m = question(5);
	int fd = knock(), policy[2];

	(void)state;
	policy[0] = policy[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd_send_msg(fd, &m, sizeof(m), policy, 1), 0);
	turn();
	assert_int_equal(lab.n, 1);
	assert_true(lab.with_policy[0]);
	close(fd);
	fd = knock();
	assert_int_equal(fd_send_msg(fd, &m, sizeof(m), policy, 2), 0);
	turn();
	assert_int_equal(lab.n, 1);
	close(fd);
	close(policy[0]);
}

static void silent_ones_make_room_for_who_has_something_to_ask(void **state)
{
	int asking, silent[CONTROL_CONNS];
	size_t i;

	(void)state;
	asking = knock();
	ask(asking, 3);
	for (i = 0; i < CONTROL_CONNS; i++)
		silent[i] = knock();
	/* The one that waits for its answer was not sent away for them. */
	control_refuse(&lab.control, lab.serial[0], "here");
	expect_told(asking, 3, "here");
	for (i = 0; i < CONTROL_CONNS; i++)
		close(silent[i]);
	turn();
}

static void the_socket_is_its_owners_alone(void **state)
{
	char path[128];
	struct stat st;

	(void)state;
	assert_true(snprintf(path, sizeof(path), "%s/" CONTROL_NAME,
			     lab.dir) > 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static int no_policy(void *arg, struct buf *out, char *why)
{
	(void)arg;
	(void)out;
	memcpy(why, "x.ini:3: no", 12);
	return -EINVAL;
}

static int a_policy(void *arg, struct buf *out, char *why)
{
	(void)arg;
	(void)why;
	return buf_add_str(out, STR("[policy]\n"));
}

static void what_cannot_be_read_anew_is_refused_in_words(void **state)
{
	struct launch_spec spec = { .policy_name = "house" };
	struct plug_swap got;
	int pair[2], fd, fds[FD_PASS_MAX];
	size_t n, nfds;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				    pair), 0);
	fd = knock();
	ask(fd, 9);
	control_pass_on(&lab.control, &spec, pair[0], lab.serial[0], -1);
	expect_told(fd, 9, "it follows the service's policy that it was given "
		    "by name: penstock reload, without --run");
	spec = (struct launch_spec){ .policy_again = no_policy };
	fd = knock();
	ask(fd, 9);
	control_pass_on(&lab.control, &spec, pair[0], lab.serial[1], -1);
	expect_told(fd, 9, "x.ini:3: no");
	spec.policy_again = a_policy;
	fd = knock();
	ask(fd, 9);
	control_pass_on(&lab.control, &spec, pair[0], lab.serial[2], -1);
	assert_int_equal(fd_recv_msg(pair[1], &got, sizeof(got), &n, fds,
				     &nfds), 0);
	assert_int_equal(n, sizeof(got));
	assert_int_equal(nfds, 1);
	assert_int_equal(got.serial, lab.serial[2]);
	close(fds[0]);
	close(fd);
	close(pair[0]);
	close(pair[1]);
	turn();
}

#define T(f)	cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_question_is_answered_with_its_own_number),
		T(an_answer_whose_asker_is_gone_reaches_nobody),
		T(what_is_no_question_is_sent_away),
		T(a_policy_comes_along_as_one_descriptor),
		T(silent_ones_make_room_for_who_has_something_to_ask),
		T(the_socket_is_its_owners_alone),
		T(what_cannot_be_read_anew_is_refused_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
