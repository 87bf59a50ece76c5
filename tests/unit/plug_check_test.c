/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_check_test.c - nothing that a launcher brings is believed unseen
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "proxy/plug_check.h"
#include "tests/unit/plug_lab.h"
#include "tests/unit/proxy_lab.h"

static uint64_t own;

/* --- the message --------------------------------------------------------------- */

static const int only_policy[PLUG_FDS] = {
	[PLUG_FD_POLICY] = 7,
	-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
};

static void expect_bad(const struct plug_open *o, size_t nfds,
		       const char *want)
{
	struct plug_open got;
	struct plug_why why;

	assert_int_equal(plug_parse_open(str_make(o, sizeof(*o)), nfds, &got,
					 &why), -EPROTO);
	if (!strstr(why.text, want))
		fail_msg("wanted \"%s\", said \"%s\"", want, why.text);
}

static void a_right_message_is_taken_as_it_is(void **state)
{
	struct plug_open o = plug_lab_open(only_policy), got;
	struct plug_why why;
	int fd[PLUG_FDS];

	(void)state;
	assert_int_equal(plug_parse_head(str_make(&o, sizeof(o)), &why),
			 PLUG_OPEN);
	assert_int_equal(plug_parse_open(str_make(&o, sizeof(o)), 1, &got,
					 &why), 0);
	assert_memory_equal(&o, &got, sizeof(o));
	plug_place_fds(&got, (const int[]){ 9 }, fd);
	assert_int_equal(fd[PLUG_FD_POLICY], 9);
	assert_int_equal(fd[PLUG_FD_RECORDS], -1);
}

static void descriptors_stand_in_the_order_of_their_bits(void **state)
{
	struct plug_open o = {
		.fds = BIT(PLUG_FD_RECORDS) | BIT(PLUG_FD_DIAG) |
		       BIT(PLUG_FD_HTTP),
	};
	int fd[PLUG_FDS];

	(void)state;
	plug_place_fds(&o, (const int[]){ 4, 5, 6 }, fd);
	assert_int_equal(fd[PLUG_FD_RECORDS], 4);
	assert_int_equal(fd[PLUG_FD_HTTP], 5);
	assert_int_equal(fd[PLUG_FD_DIAG], 6);
	assert_int_equal(fd[PLUG_FD_POLICY], -1);
}

static void a_swap_is_one_message_with_one_policy(void **state)
{
	struct plug_swap m = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_SWAP }, .serial = 3,
	}, got;
	struct str msg = str_make(&m, sizeof(m));
	struct plug_why why;

	(void)state;
	assert_int_equal(plug_parse_head(msg, &why), PLUG_SWAP);
	assert_int_equal(plug_parse_swap(msg, 1, &got, &why), 0);
	assert_int_equal(got.serial, 3);
	assert_int_equal(plug_parse_swap(msg, 0, &got, &why), -EPROTO);
	assert_int_equal(plug_parse_swap(msg, 2, &got, &why), -EPROTO);
	assert_int_equal(plug_parse_swap(str_make(&m, sizeof(m) - 1), 1, &got,
					 &why), -EPROTO);
	m.reserved = 1;
	assert_int_equal(plug_parse_swap(msg, 1, &got, &why), -EPROTO);
	m.reserved = 0;
	m.serial = 0;
	assert_int_equal(plug_parse_swap(msg, 1, &got, &why), -EPROTO);
	m.head.type = PLUG_RELOAD;
	assert_int_equal(plug_parse_head(msg, &why), -EPROTO);
	assert_int_equal(plug_parse_head(str_make(&m, sizeof(m.head)), &why),
			 PLUG_RELOAD);
}

static void a_foreign_head_is_refused(void **state)
{
	struct plug_open o = plug_lab_open(only_policy);
	struct plug_why why;

	(void)state;
	assert_int_equal(plug_parse_head(str_make(&o, 7), &why), -EPROTO);
	assert_int_equal(plug_parse_head(STR_NONE, &why), -EPROTO);
	o.head.version = PLUG_VERSION + 1;
	assert_int_equal(plug_parse_head(str_make(&o, sizeof(o)), &why),
			 -EPROTO);
	assert_non_null(strstr(why.text, "from one release"));
	o.head.version = PLUG_VERSION;
	o.head.type = PLUG_READY;
	assert_int_equal(plug_parse_head(str_make(&o, sizeof(o)), &why),
			 -EPROTO);
	o.head.type = PLUG_CLOSE;
	assert_int_equal(plug_parse_head(str_make(&o, sizeof(o)), &why),
			 -EPROTO);
	assert_int_equal(plug_parse_head(str_make(&o, sizeof(o.head)), &why),
			 PLUG_CLOSE);
	o.head.magic++;
	assert_int_equal(plug_parse_head(str_make(&o, sizeof(o)), &why),
			 -EPROTO);
}

static void strings_are_ended_and_of_few_characters(void **state)
{
	struct plug_open o = plug_lab_open(only_policy);

	(void)state;
	memset(o.run, 'a', sizeof(o.run));
	expect_bad(&o, 1, "the run id has no end");
	o = plug_lab_open(only_policy);
	memcpy(o.run, "a\nb", 4);
	expect_bad(&o, 1, "run id has a character that is not allowed at place 2");
	o = plug_lab_open(only_policy);
	memcpy(o.run, "../x", 5);
	expect_bad(&o, 1, "at place 1");
	o = plug_lab_open(only_policy);
	o.run[0] = '\0';
	expect_bad(&o, 1, "the run id is empty");
	o = plug_lab_open(only_policy);
	memcpy(o.sandbox, "b\"x", 4);
	expect_bad(&o, 1, "sandbox label");
	o = plug_lab_open(only_policy);
	memset(o.nonce, '.', 2);
	expect_bad(&o, 1, "nonce");
	o = plug_lab_open(only_policy);
	memcpy(o.nonce, "a.b", 4);	/* it becomes one label of a name */
	expect_bad(&o, 1, "nonce");
}

static void a_message_that_contradicts_itself_is_refused(void **state)
{
	struct plug_open o = plug_lab_open(only_policy), got;
	struct plug_why why;

	(void)state;
	expect_bad(&o, 2, "announces 1 descriptors, and 2 came");
	expect_bad(&o, 0, "announces 1 descriptors, and 0 came");
	memcpy(o.policy, "ci", 3);
	expect_bad(&o, 1, "two policies");
	o.policy[0] = '\0';
	o.fds = 0;
	expect_bad(&o, 0, "no policy");
	o = plug_lab_open(only_policy);
	o.fds |= BIT(PLUG_FDS);
	expect_bad(&o, 2, "unknown bits");
	o = plug_lab_open(only_policy);
	o.flags = 4;
	expect_bad(&o, 1, "unknown bits");
	assert_int_equal(plug_parse_open(str_make(&o, sizeof(o) - 1), 1, &got,
					 &why), -EPROTO);
}

/* --- the descriptors --------------------------------------------------------------- */

static void expect_fds(const int fd[PLUG_FDS], const char *want)
{
	struct plug_open o = plug_lab_open(fd);
	struct plug_why why = { "" };

	assert_int_equal(plug_check_fds(&o, fd, own, &why),
			 want ? -EPROTO : 0);
	if (want && !strstr(why.text, want))
		fail_msg("wanted \"%s\", said \"%s\"", want, why.text);
}

static int open_set(void **state)
{
	static int fd[PLUG_FDS];

	plug_lab_sockets(0, fd);
	*state = fd;
	return 0;
}

static int close_set(void **state)
{
	plug_lab_close(*state);
	return 0;
}

static void a_right_set_passes_and_never_blocks(void **state)
{
	int *fd = *state;
	size_t i;

	expect_fds(fd, NULL);
	for (i = PLUG_FD_DNS_UDP4; i < PLUG_FDS; i++)
		assert_true(fcntl(fd[i], F_GETFL) & O_NONBLOCK);
}

static void each_socket_must_be_of_its_kind(void **state)
{
	int *fd = *state;
	size_t i;

	/* Every other right socket in its place is wrong, all but the pairs
	 * that differ only by what their makers meant with them. */
	for (i = PLUG_FD_DNS_UDP4; i < PLUG_FDS; i++) {
		size_t j;

		for (j = PLUG_FD_DNS_UDP4; j < PLUG_FDS; j++) {
			int kept = fd[i];

			if (i == j)
				continue;
			fd[i] = fd[j];
			expect_fds(fd, "the ");
			fd[i] = kept;
		}
	}
	expect_fds(fd, NULL);
}

static void what_is_no_socket_is_refused(void **state)
{
	int *fd = *state, pipes[2];

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	close(fd[PLUG_FD_HTTP]);
	fd[PLUG_FD_HTTP] = pipes[0];
	expect_fds(fd, "is no socket");
	close(pipes[1]);
}

static void a_socket_of_our_own_namespace_is_refused(void **state)
{
	int *fd = *state;

	close(fd[PLUG_FD_HTTP]);
	fd[PLUG_FD_HTTP] = lab_listen(PLUG_HTTP_ADDR, PLUG_HTTP_PORT, NULL);
	/* lab_listen() shares its port, which is refused too: undo that. */
	assert_int_equal(setsockopt(fd[PLUG_FD_HTTP], SOL_SOCKET, SO_REUSEADDR,
				    &(int){ 0 }, sizeof(int)), 0);
	expect_fds(fd, "penstockd's own network namespace");
	close(fd[PLUG_FD_DIAG]);
	fd[PLUG_FD_DIAG] = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, 4);
	close(fd[PLUG_FD_HTTP]);
	fd[PLUG_FD_HTTP] = -1;
	expect_fds(fd, "diagnosis socket was made in penstockd's own");
}

static void all_sockets_are_of_one_namespace(void **state)
{
	int *fd = *state, other[PLUG_FDS];

	plug_lab_sockets(1, other);
	close(fd[PLUG_FD_HTTP]);
	fd[PLUG_FD_HTTP] = fd_take(&other[PLUG_FD_HTTP]);
	expect_fds(fd, "from another network namespace");
	plug_lab_close(other);
}

static void a_port_that_can_be_shared_is_refused(void **state)
{
	static const int names[] = { SO_REUSEADDR, SO_REUSEPORT };
	int *fd = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(setsockopt(fd[PLUG_FD_DNS_UDP4], SOL_SOCKET,
					    names[i], &(int){ 1 },
					    sizeof(int)), 0);
		expect_fds(fd, "shares its port");
		assert_int_equal(setsockopt(fd[PLUG_FD_DNS_UDP4], SOL_SOCKET,
					    names[i], &(int){ 0 },
					    sizeof(int)), 0);
	}
	expect_fds(fd, NULL);
}

static void an_option_that_is_missing_is_named(void **state)
{
	int *fd = *state;

	assert_int_equal(setsockopt(fd[PLUG_FD_DNS_UDP4], IPPROTO_IP,
				    IP_PKTINFO, &(int){ 0 }, sizeof(int)), 0);
	expect_fds(fd, "without IP_PKTINFO");
}

static void a_connected_socket_is_refused(void **state)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = 9,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int *fd = *state;

	assert_int_equal(connect(fd[PLUG_FD_DNS_UDP4], (void *)&to,
				 sizeof(to)), 0);
	/* Connecting a wildcard socket also binds it to one address. */
	expect_fds(fd, "is bound to 127.0.0.1:53, not to 0.0.0.0 port 53");
}

static void wildcard_listeners_need_their_flag(void **state)
{
	int *fd = *state;
	struct plug_open o;
	struct plug_why why;

	close(fd[PLUG_FD_TPROXY4]);
	fd[PLUG_FD_TPROXY4] = fd_take(&fd[PLUG_FD_DNS_TCP4]);
	close(fd[PLUG_FD_TPROXY6]);
	fd[PLUG_FD_TPROXY6] = fd_take(&fd[PLUG_FD_DNS_TCP6]);
	expect_fds(fd, "transparent listener (IPv4) is bound to");
	o = plug_lab_open(fd);
	o.flags = PLUG_FLAG_NO_TPROXY;
	assert_int_equal(plug_check_fds(&o, fd, own, &why), 0);
}

static void records_are_only_appended(void **state)
{
	char path[] = "/tmp/penstock-records-XXXXXX";
	int fd[PLUG_FDS], made = mkstemp(path), pipes[2];

	(void)state;
	memset(fd, -1, sizeof(fd));
	assert_true(made >= 0);
	fd[PLUG_FD_RECORDS] = made;
	expect_fds(fd, "neither a file opened for appending nor a pipe");
	fd[PLUG_FD_RECORDS] = open(path, O_RDONLY | O_APPEND | O_CLOEXEC);
	expect_fds(fd, "open for reading only");
	close(fd[PLUG_FD_RECORDS]);
	fd[PLUG_FD_RECORDS] = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	expect_fds(fd, NULL);
	close(fd[PLUG_FD_RECORDS]);
	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	fd[PLUG_FD_RECORDS] = pipes[1];
	expect_fds(fd, NULL);
	assert_true(fcntl(pipes[1], F_GETFL) & O_NONBLOCK);
	close(pipes[0]);
	close(pipes[1]);
	close(made);
	unlink(path);
}

/* --- the policy ------------------------------------------------------------------------ */

static void a_policy_comes_sealed_and_whole(void **state)
{
	struct buf text = BUF_INIT(PLUG_POLICY_MAX);
	struct plug_why why;
	int fd;

	(void)state;
	assert_int_equal(fd_memfd("policy", STR("[policy]\n"), &fd), 0);
	/* Where the sender left the offset does not matter. */
	assert_int_equal(lseek(fd, 4, SEEK_SET), 4);
	assert_int_equal(plug_read_policy(fd, &text, &why), 0);
	assert_true(str_eq(buf_str(&text), STR("[policy]\n")));
	close(fd);
	buf_done(&text);
}

static void a_policy_that_could_still_change_is_refused(void **state)
{
	struct buf text = BUF_INIT(PLUG_POLICY_MAX);
	struct plug_why why;
	int fd = memfd_create("p", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	(void)state;
	assert_int_equal(plug_read_policy(fd, &text, &why), -EPROTO);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE),
			 0);
	assert_int_equal(plug_read_policy(fd, &text, &why), -EPROTO);
	assert_non_null(strstr(why.text, "sealed memfd"));
	close(fd);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(plug_read_policy(fd, &text, &why), -EPROTO);
	close(fd);
}

static void a_policy_over_its_bound_is_refused(void **state)
{
	struct buf text = BUF_INIT(PLUG_POLICY_MAX);
	struct plug_why why;
	int fd = memfd_create("p", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	(void)state;
	assert_int_equal(ftruncate(fd, PLUG_POLICY_MAX + 1), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW |
			       F_SEAL_WRITE), 0);
	assert_int_equal(plug_read_policy(fd, &text, &why), -EPROTO);
	assert_non_null(strstr(why.text, "more than"));
	close(fd);
	buf_done(&text);
}

#define WITH_SET(f)	cmocka_unit_test_setup_teardown(f, open_set, close_set)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_right_message_is_taken_as_it_is),
		cmocka_unit_test(descriptors_stand_in_the_order_of_their_bits),
		cmocka_unit_test(a_swap_is_one_message_with_one_policy),
		cmocka_unit_test(a_foreign_head_is_refused),
		cmocka_unit_test(strings_are_ended_and_of_few_characters),
		cmocka_unit_test(a_message_that_contradicts_itself_is_refused),
		WITH_SET(a_right_set_passes_and_never_blocks),
		WITH_SET(each_socket_must_be_of_its_kind),
		WITH_SET(what_is_no_socket_is_refused),
		WITH_SET(a_socket_of_our_own_namespace_is_refused),
		WITH_SET(all_sockets_are_of_one_namespace),
		WITH_SET(a_port_that_can_be_shared_is_refused),
		WITH_SET(an_option_that_is_missing_is_named),
		WITH_SET(a_connected_socket_is_refused),
		WITH_SET(wildcard_listeners_need_their_flag),
		cmocka_unit_test(records_are_only_appended),
		cmocka_unit_test(a_policy_comes_sealed_and_whole),
		cmocka_unit_test(a_policy_that_could_still_change_is_refused),
		cmocka_unit_test(a_policy_over_its_bound_is_refused),
	};

	lab_enter();
	assert_int_equal(plug_own_netns(&own), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
