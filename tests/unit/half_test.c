/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half_test.c - what is said of a socket, once, and what is remembered of it
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "proxy/half.h"
#include "proxy/sock.h"
#include "tests/unit/proxy_lab.h"

static struct event_base *base;
static struct half_loop *halves;
static struct half *half;
static int peer;
static unsigned said;		/* how often half_fn() was called */

static void on_said(void *arg)
{
	assert_ptr_equal(arg, &said);
	said++;
}

static int setup(void **state)
{
	int pair[2];

	(void)state;
	base = event_base_new();
	assert_int_equal(half_loop_new(base, &halves), 0);
	lab_pair(pair);
	peer = pair[0];
	half = half_new(halves, pair[1], on_said, &said);
	said = 0;
	return !half;
}

static int teardown(void **state)
{
	(void)state;
	half_closep(&half, false);
	assert_null(half);
	fd_closep(&peer);
	half_loop_free(halves);
	event_base_free(base);
	return 0;
}

/* All that the kernel has to say by now. */
static void listen_to_it(void)
{
	unsigned before;

	do {
		before = said;
		lab_turn(base);
	} while (said != before);
}

static void wait_for(const bool *flag)
{
	while (!*flag)
		lab_turn(base);
}

static void what_is_not_taken_is_not_said_again_OPS_03(void **state)
{
	char got[8];

	(void)state;
	assert_int_equal(send(peer, "abc", 3, 0), 3);
	wait_for(&half->readable);
	listen_to_it();
	said = 0;
	for (unsigned i = 0; i < 20; i++)
		lab_turn(base);
	assert_int_equal(said, 0);
	assert_true(half->readable && half->writable && !half->ending);
	assert_int_equal(half_recv(half, got, 2), 2);
	assert_true(half->readable);
	assert_int_equal(half_recv(half, got, sizeof(got)), 1);
	assert_false(half->readable);
	assert_int_equal(send(peer, "d", 1, 0), 1);
	wait_for(&half->readable);
	assert_true(said >= 1);
}

static void a_fin_behind_bytes_is_not_missed_TUN_10(void **state)
{
	char got[64];

	(void)state;
	assert_int_equal(send(peer, "bye", 3, 0), 3);
	assert_int_equal(shutdown(peer, SHUT_WR), 0);
	wait_for(&half->ending);
	listen_to_it();
	/* A short read, behind which the end still is. */
	assert_int_equal(half_recv(half, got, sizeof(got)), 3);
	assert_true(half->readable);
	assert_int_equal(half_recv(half, got, sizeof(got)), 0);
}

static void an_end_that_comes_after_the_bytes_is_said(void **state)
{
	char got[64];

	(void)state;
	assert_int_equal(send(peer, "x", 1, 0), 1);
	wait_for(&half->readable);
	assert_int_equal(half_recv(half, got, sizeof(got)), 1);
	assert_false(half->readable);
	assert_int_equal(shutdown(peer, SHUT_WR), 0);
	wait_for(&half->readable);
	assert_true(half->ending);
	assert_int_equal(half_recv(half, got, sizeof(got)), 0);
}

static void a_full_socket_says_when_it_has_room(void **state)
{
	char *much = mem_new(1 << 20);
	ssize_t n = 0;

	(void)state;
	wait_for(&half->writable);
	while (half->writable)
		n += MAX(half_send(half, much, 1 << 20), (ssize_t)0);
	assert_true(n > 0);
	for (unsigned i = 0; i < 20; i++)
		lab_turn(base);
	assert_false(half->writable);
	while (!half->writable) {
		(void)!recv(peer, much, 1 << 20, MSG_DONTWAIT);
		lab_turn(base);
	}
	mem_free(much);
}

/* Behind both FINs, too, where nobody reads or writes any more. */
static void a_reset_is_said_always_TUN_11(void **state)
{
	char got[8];

	(void)state;
	assert_int_equal(shutdown(peer, SHUT_WR), 0);
	wait_for(&half->ending);
	assert_int_equal(half_recv(half, got, sizeof(got)), 0);
	listen_to_it();
	said = 0;
	sock_reset(&peer);
	while (said == 0)
		lab_turn(base);
	assert_true(sock_is_dead(half->fd));
}

static void who_takes_over_hears_of_it_by_asking(void **state)
{
	int fd;

	(void)state;
	listen_to_it();
	half->fn = half_ignore;
	assert_int_equal(send(peer, "x", 1, 0), 1);
	wait_for(&half->readable);
	listen_to_it();
	said = 0;
	half->fn = on_said;
	half_kick(half);
	lab_turn(base);
	assert_int_equal(said, 1);
	/* And of one that rests nothing at all is said, or remembered. */
	half_rest(half);
	assert_false(half->readable || half->writable || half->ending);
	lab_turn(base);
	assert_int_equal(said, 1);
	assert_int_equal(half_watch(half), 0);
	wait_for(&half->readable);
	fd = half_takep(&half);
	assert_null(half);
	assert_int_equal(close(fd), 0);
}

static void bytes_and_a_reset_at_once_are_both_heard_TUN_11(void **state)
{
	char got[64];

	(void)state;
	/* Unread bytes of ours make its close a reset. */
	assert_int_equal(half_send(half, "ours", 4), 4);
	lab_wait_readable(base, peer);
	assert_int_equal(send(peer, "theirs", 6, 0), 6);
	fd_closep(&peer);
	wait_for(&half->failed);
	listen_to_it();
	assert_int_equal(half_recv(half, got, sizeof(got)), 6);
	assert_true(half->readable);
	assert_int_equal(half_recv(half, got, sizeof(got)), -1);
	assert_int_equal(errno, ECONNRESET);
}

static void what_is_said_of_a_duplicate_reaches_nobody(void **state)
{
	int fd = half->fd, dup_fd = dup(fd), pair[2];

	(void)state;
	listen_to_it();
	half_closep(&half, false);
	/* Another socket gets the number. */
	lab_pair(pair);
	assert_int_equal(dup2(pair[1], fd), fd);
	close(pair[1]);
	half = half_new(halves, fd, on_said, &said);
	listen_to_it();
	said = 0;
	assert_int_equal(send(peer, "x", 1, 0), 1);
	lab_wait_readable(base, dup_fd);
	for (unsigned i = 0; i < 20; i++)
		lab_turn(base);
	assert_int_equal(said, 0);
	assert_false(half->readable);
	assert_int_equal(send(pair[0], "y", 1, 0), 1);
	wait_for(&half->readable);
	close(pair[0]);
	close(dup_fd);
}

static void who_is_muted_hears_of_bytes_when_it_listens_again(void **state)
{
	char got[8];

	(void)state;
	listen_to_it();
	half_mute(half);
	assert_true(half->muted);
	listen_to_it();		/* of what it still hears */
	said = 0;
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(send(peer, "x", 1, 0), 1);
		lab_wait_readable(base, half->fd);
		lab_turn(base);
	}
	assert_int_equal(said, 0);
	half_unmute(half);
	assert_false(half->muted);
	wait_for(&half->readable);
	assert_int_equal(half_recv(half, got, sizeof(got)), 5);
	/* An end is heard of all the same. */
	half_mute(half);
	assert_int_equal(shutdown(peer, SHUT_WR), 0);
	wait_for(&half->ending);
	assert_true(half->readable);
}

static struct half *victim;

static void end_the_other(void *arg UNUSED)
{
	half_closep(&victim, false);
}

/* Both have said something when the first one's owner closes the second. */
static void who_is_closed_in_a_turn_is_not_told_of_it(void **state)
{
	int pair[2];

	(void)state;
	lab_pair(pair);
	victim = half_new(halves, pair[1], on_said, &said);
	listen_to_it();
	half->fn = end_the_other;
	said = 0;
	assert_int_equal(send(peer, "x", 1, 0), 1);
	assert_int_equal(send(pair[0], "y", 1, 0), 1);
	wait_for(&half->readable);
	listen_to_it();
	assert_null(victim);
	half_closep(&half, false);
	assert_in_range(said, 0, 1);	/* where it came first */
	close(pair[0]);
}

static void without_memory_the_socket_is_closed(void **state)
{
	int fd = dup(peer);

	(void)state;
	mem_test_fail_at(1);
	assert_null(half_new(halves, fd, on_said, &said));
	mem_test_fail_at(0);
	errno = 0;
	assert_int_equal(close(fd), -1);
	assert_int_equal(errno, EBADF);
}

#define HALF_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HALF_TEST(what_is_not_taken_is_not_said_again_OPS_03),
		HALF_TEST(a_fin_behind_bytes_is_not_missed_TUN_10),
		HALF_TEST(an_end_that_comes_after_the_bytes_is_said),
		HALF_TEST(a_full_socket_says_when_it_has_room),
		HALF_TEST(a_reset_is_said_always_TUN_11),
		HALF_TEST(who_takes_over_hears_of_it_by_asking),
		HALF_TEST(bytes_and_a_reset_at_once_are_both_heard_TUN_11),
		HALF_TEST(what_is_said_of_a_duplicate_reaches_nobody),
		HALF_TEST(who_is_muted_hears_of_bytes_when_it_listens_again),
		HALF_TEST(who_is_closed_in_a_turn_is_not_told_of_it),
		HALF_TEST(without_memory_the_socket_is_closed),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
