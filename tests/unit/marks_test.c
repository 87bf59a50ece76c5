/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks_test.c - marked sockets come from the marker, into stock and to those
 *                who wait, and nothing comes from it where it may not mark
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "proxy/marker.h"
#include "proxy/marks.h"
#include "tests/unit/proxy_lab.h"

#define MARK	0x2a10u

static struct event_base *base;
static struct marks *marks;
static int peer;		/* where the test plays the marker; else -1 */

struct want {
	struct marks_wait wait;
	int got;		/* 0: nothing yet */
	unsigned turn;
};

static unsigned turns;

static void on_marked(struct marks_wait *w, int fd_or_err)
{
	struct want *want = container_of(w, struct want, wait);

	assert_int_equal(want->got, 0);
	assert_null(w->queue);
	want->got = fd_or_err;
	want->turn = ++turns;
}

static void take(struct want *w, int family)
{
	int r;

	*w = (struct want){ .wait.fn = on_marked };
	r = marks_take(marks, family, &w->wait);
	if (r != -EINPROGRESS)
		on_marked(&w->wait, r);
}

static void until_got(const struct want *w)
{
	while (w->got == 0)
		event_base_loop(base, EVLOOP_ONCE);
}

static int option(int fd, int name)
{
	int v = -1;
	socklen_t n = sizeof(v);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, name, &v, &n), 0);
	return v;
}

static void good(const struct want *w, int family)
{
	assert_true(w->got > 0);
	assert_int_equal(option(w->got, SO_MARK), MARK);
	assert_int_equal(option(w->got, SO_DOMAIN), family);
	assert_int_equal(option(w->got, SO_TYPE), SOCK_STREAM);
	assert_true(fcntl(w->got, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(w->got, F_GETFD) & FD_CLOEXEC);
	close(w->got);
}

/* --- with the marker --------------------------------------------------------- */

static int fork_marker(int (*drop)(void *arg))
{
	const struct marker_config config = {
		.mark = MARK, .npeers = 1, .drop = drop,
	};
	int sock;

	assert_int_equal(marker_fork(&config, &sock), 0);
	return sock;
}

static int setup_real(void **state)
{
	(void)state;
	peer = -1;
	base = event_base_new();
	assert_non_null(base);
	return marks_new(base, fork_marker(NULL), &marks);
}

static int setup_played(void **state)
{
	int pair[2];

	(void)state;
	base = event_base_new();
	assert_non_null(base);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				    pair), 0);
	peer = pair[1];
	return marks_new(base, pair[0], &marks);
}

static int teardown(void **state)
{
	(void)state;
	marks_free(marks);
	fd_closep(&peer);
	event_base_free(base);
	return 0;
}

static void sockets_of_both_families_bear_the_mark(void **state)
{
	struct want v4, v6;

	(void)state;
	take(&v4, AF_INET);
	take(&v6, AF_INET6);
	assert_int_equal(v4.got, 0);
	until_got(&v4);
	until_got(&v6);
	good(&v4, AF_INET);
	good(&v6, AF_INET6);
	/* The next is there already. */
	take(&v6, AF_INET6);
	good(&v6, AF_INET6);
}

static void the_stock_is_filled_again_without_end(void **state)
{
	struct want w;

	(void)state;
	for (unsigned i = 0; i < 10 * MARKS_STOCK; i++) {
		take(&w, AF_INET);
		until_got(&w);
		good(&w, AF_INET);
	}
}

static void many_wait_and_are_served_in_turn(void **state)
{
	static struct want w[3 * MARKS_STOCK];
	unsigned i;

	(void)state;
	turns = 0;
	for (i = 0; i < ARRAY_SIZE(w); i++)
		take(&w[i], AF_INET);
	for (i = 0; i < ARRAY_SIZE(w); i++) {
		until_got(&w[i]);
		assert_int_equal(w[i].turn, i + 1);
		good(&w[i], AF_INET);
	}
}

static void one_that_is_cancelled_is_not_called(void **state)
{
	struct want a, b;

	(void)state;
	take(&a, AF_INET);
	take(&b, AF_INET);
	marks_cancel(&a.wait);
	marks_cancel(&a.wait);
	until_got(&b);
	good(&b, AF_INET);
	assert_int_equal(a.got, 0);
}

/* The end of the marker's connection is its own end, too. */
static void ends(int sock)
{
	char c;

	assert_true(recv(sock, &c, 1, 0) <= 0);
	close(sock);
}

static void the_marker_gives_nothing_else(void **state)
{
	static const struct marker_ask wrong[] = {
		{ AF_UNIX, 1 }, { AF_PACKET, 1 }, { AF_INET, 0 },
		{ AF_INET6, FD_PASS_MAX + 1 },
	};
	int sock;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		sock = fork_marker(NULL);
		assert_int_equal(fd_send_msg(sock, &wrong[i], sizeof(wrong[i]),
					     NULL, 0), 0);
		ends(sock);
	}
	sock = fork_marker(NULL);
	assert_int_equal(fd_send_msg(sock, "?", 1, NULL, 0), 0);
	ends(sock);
}

static int drop_fails(void *arg)
{
	(void)arg;
	return -EPERM;
}

static void a_marker_that_keeps_its_rights_is_none(void **state)
{
	(void)state;
	ends(fork_marker(drop_fails));
}

/* --- playing it -------------------------------------------------------------- */

static struct marker_ask asked(void)
{
	struct marker_ask ask = { 0 };
	int fds[FD_PASS_MAX];
	size_t n, nfds;

	assert_int_equal(fd_recv_msg(peer, &ask, sizeof(ask), &n, fds, &nfds),
			 0);
	assert_int_equal(n, sizeof(ask));
	assert_int_equal(nfds, 0);
	return ask;
}

static void not_asked(void)
{
	char c;

	assert_int_equal(recv(peer, &c, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static void answer(int family, int err, size_t nfds)
{
	const struct marker_answer a = { (uint32_t)family, err };
	int fds[FD_PASS_MAX] = { 0 };
	size_t i;

	for (i = 0; i < nfds; i++) {
		fds[i] = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(fds[i] >= 0);
	}
	assert_int_equal(fd_send_msg(peer, &a, sizeof(a), fds, nfds), 0);
	for (i = 0; i < nfds; i++)
		close(fds[i]);
}

static void it_is_asked_once_and_again_below_half(void **state)
{
	struct want w[3];
	unsigned i;

	(void)state;
	take(&w[0], AF_INET6);
	take(&w[1], AF_INET6);
	assert_int_equal(asked().n, MARKS_STOCK);
	not_asked();
	answer(AF_INET6, 0, MARKS_STOCK);
	until_got(&w[1]);
	close(w[0].got);
	close(w[1].got);
	for (i = MARKS_STOCK - 2; i > MARKS_LOW; i--) {
		take(&w[2], AF_INET6);
		assert_true(w[2].got > 0);
		close(w[2].got);
	}
	not_asked();
	take(&w[2], AF_INET6);
	close(w[2].got);
	assert_int_equal(asked().n, MARKS_STOCK - MARKS_LOW + 1);
}

static void more_than_was_asked_for_is_closed(void **state)
{
	size_t before = lab_open_fds();
	struct want w;

	(void)state;
	take(&w, AF_INET);
	for (unsigned i = 0; i < 3; i++)
		answer(AF_INET, 0, MARKS_STOCK);
	until_got(&w);
	close(w.got);
	lab_turn(base);
	lab_turn(base);
	lab_turn(base);
	assert_int_equal(lab_open_fds(), before + MARKS_STOCK);
}

static void a_refusal_fails_all_who_wait_and_the_next_asks_again(void **state)
{
	struct want a, b, six, next;

	(void)state;
	take(&a, AF_INET);
	take(&b, AF_INET);
	take(&six, AF_INET6);
	assert_int_equal(asked().family, AF_INET);
	assert_int_equal(asked().family, AF_INET6);
	answer(AF_INET, -EMFILE, 0);
	until_got(&b);
	assert_int_equal(a.got, -EMFILE);
	assert_int_equal(b.got, -EMFILE);
	assert_int_equal(six.got, 0);
	not_asked();
	take(&next, AF_INET);
	assert_int_equal(asked().family, AF_INET);
	answer(AF_INET, 0, 1);
	until_got(&next);
	assert_true(next.got > 0);
	close(next.got);
	marks_cancel(&six.wait);
}

static void an_answer_of_nothing_is_a_refusal(void **state)
{
	struct want w;

	(void)state;
	take(&w, AF_INET);
	answer(AF_INET, 0, 0);
	until_got(&w);
	assert_int_equal(w.got, -EPROTO);
}

static void without_a_marker_there_is_none(void **state)
{
	struct want w, next;

	(void)state;
	take(&w, AF_INET);
	fd_closep(&peer);
	until_got(&w);
	/* It went with our question unread. */
	assert_true(w.got == -EPIPE || w.got == -ECONNRESET);
	take(&next, AF_INET);
	assert_int_equal(next.got, -EPIPE);
	take(&next, AF_INET6);
	assert_int_equal(next.got, -EPIPE);
}

static void who_waits_is_bounded(void **state)
{
	static struct want w[MARKS_WAITING_MAX];
	struct want more;
	unsigned i;

	(void)state;
	for (i = 0; i < MARKS_WAITING_MAX; i++)
		take(&w[i], i % 2 ? AF_INET : AF_INET6);
	take(&more, AF_INET);
	assert_int_equal(more.got, -ENOBUFS);
	marks_cancel(&w[0].wait);
	take(&more, AF_INET);
	assert_int_equal(more.got, 0);
	marks_cancel(&more.wait);
	for (i = 0; i < MARKS_WAITING_MAX; i++)
		marks_cancel(&w[i].wait);
}

/* --- the mark ----------------------------------------------------------------- */

static void a_mark_is_a_number_but_zero(void **state)
{
	static const char *const wrong[] = {
		"", "0", "0x0", "0x", "-1", "x", "0x1g", "0x100000000",
		"4294967296", "1 ", "010",
	};
	const char *why = NULL;
	uint32_t mark;

	(void)state;
	assert_int_equal(marker_parse(STR("16"), &mark, &why), 0);
	assert_int_equal(mark, 16);
	assert_int_equal(marker_parse(STR("0xFFffFFff"), &mark, &why), 0);
	assert_int_equal(mark, 0xffffffffu);
	assert_int_equal(marker_parse(STR("0X10"), &mark, &why), 0);
	assert_int_equal(mark, 16);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		why = NULL;
		assert_int_equal(marker_parse(str_from(wrong[i]), &mark, &why),
				 -EINVAL);
		assert_non_null(why);
	}
}

static void in_the_lab_sockets_may_be_marked(void **state)
{
	(void)state;
	assert_int_equal(marker_check(MARK, false), 0);
}

#define real(f)		cmocka_unit_test_setup_teardown(f, setup_real, teardown)
#define played(f)	cmocka_unit_test_setup_teardown(f, setup_played, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		real(sockets_of_both_families_bear_the_mark),
		real(the_stock_is_filled_again_without_end),
		real(many_wait_and_are_served_in_turn),
		real(one_that_is_cancelled_is_not_called),
		cmocka_unit_test(the_marker_gives_nothing_else),
		cmocka_unit_test(a_marker_that_keeps_its_rights_is_none),
		played(it_is_asked_once_and_again_below_half),
		played(more_than_was_asked_for_is_closed),
		played(a_refusal_fails_all_who_wait_and_the_next_asks_again),
		played(an_answer_of_nothing_is_a_refusal),
		played(without_a_marker_there_is_none),
		played(who_waits_is_bounded),
		cmocka_unit_test(a_mark_is_a_number_but_zero),
		cmocka_unit_test(in_the_lab_sockets_may_be_marked),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
