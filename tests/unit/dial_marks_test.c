/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial_marks_test.c - dials whose sockets bear a mark wait for them, use them
 *                     and no others, and fail where there are none
 *
 * The test plays the marker.  Nothing is judged: these are literals, as those
 * of parents.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "proxy/dial.h"
#include "proxy/half.h"
#include "proxy/marker.h"
#include "proxy/marks.h"
#include "proxy/parent_dial.h"
#include "proxy/parents.h"
#include "tests/unit/proxy_lab.h"

#define PORT	4430
#define MARK	77

static struct event_base *base;
static struct half_loop *halves;
static struct marks *marks;
static int marker = -1, four, six;

static struct {
	bool over;
	enum reason reason;
	int fd;
} got;

static void over(void *arg, const struct dial_result *result)
{
	assert_ptr_equal(arg, &got);
	assert_false(got.over);
	got.over = true;
	got.reason = result->reason;
	got.fd = result->fd;
}

static void parent_over(void *arg, const struct parent_dial_result *r)
{
	assert_ptr_equal(arg, &got);
	got.over = true;
	got.reason = r->reason;
	got.fd = r->fd;
}

static int setup(void **state)
{
	int pair[2];

	(void)state;
	got.over = false;
	base = event_base_new();
	assert_int_equal(half_loop_new(base, &halves), 0);
	assert_non_null(base);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				    pair), 0);
	marker = pair[1];
	four = lab_listen("203.0.113.10", PORT, NULL);
	six = lab_listen("2001:db8:3::1", PORT, NULL);
	return marks_new(base, pair[0], &marks);
}

static int teardown(void **state)
{
	(void)state;
	marks_free(marks);
	fd_closep(&marker);
	close(four);
	close(six);
	half_loop_free(halves);
	event_base_free(base);
	return 0;
}

static struct dial_config literal(const char *addr)
{
	static const struct ip_hosts *no_hosts;
	struct dial_config c = {
		.base = base, .halves = halves,
		.hosts = &no_hosts, .port = PORT,
		.marks = marks, .fn = over, .arg = &got,
	};

	assert_int_equal(ip_addr_parse(str_from(addr), &c.addr), 0);
	return c;
}

static struct dial *start(const struct dial_config *c)
{
	struct dial *d;

	assert_int_equal(dial_start(c, &d), 0);
	assert_false(got.over);
	return d;
}

static void finish(enum reason reason)
{
	while (!got.over)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(got.reason, reason);
}

static bool was_dialled(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool was_asked(void)
{
	struct marker_ask ask;

	return recv(marker, &ask, sizeof(ask), MSG_DONTWAIT) == sizeof(ask);
}

/* As the marker answers: with one socket, or none. */
static void answer(int family, int err)
{
	const struct marker_answer a = { (uint32_t)family, err };
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int mark = MARK;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_MARK, &mark,
				    sizeof(mark)), 0);
	assert_int_equal(fd_send_msg(marker, &a, sizeof(a), &fd, err == 0), 0);
	close(fd);
}

static void is_marked_then_close(int fd)
{
	int mark = 0;
	socklen_t n = sizeof(mark);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_MARK, &mark, &n), 0);
	assert_int_equal(mark, MARK);
	close(fd);
}

static void a_dial_waits_for_a_marked_socket_and_uses_it(void **state)
{
	struct dial_config c = literal("203.0.113.10");

	(void)state;
	start(&c);
	lab_turn(base);
	assert_false(was_dialled(four));
	answer(AF_INET, 0);
	finish(REASON_ALLOWED);
	is_marked_then_close(got.fd);
	assert_true(was_dialled(four));
	c = literal("2001:db8:3::1");
	got.over = false;
	start(&c);
	answer(AF_INET6, 0);
	finish(REASON_ALLOWED);
	is_marked_then_close(got.fd);
	assert_true(was_dialled(six));
}

/* The marker is not asked where nobody wants a mark. */
static void a_dial_without_marks_asks_nobody(void **state)
{
	struct dial_config c = literal("203.0.113.10");

	(void)state;
	c.marks = NULL;
	start(&c);
	finish(REASON_ALLOWED);
	close(got.fd);
	assert_false(was_asked());
}

static void a_parent_is_reached_by_a_marked_socket(void **state)
{
	struct parent corp = { .name = "corp", .port = PORT };
	const struct dial_config c = literal("198.51.100.1");
	const struct parent_dial_config config = {
		.dial = &c, .parent = &corp, .addr = c.addr, .port = 443,
		.bare = true, .fn = parent_over, .arg = &got,
	};
	struct parent_dial *p;

	(void)state;
	assert_int_equal(ip_addr_parse(STR("203.0.113.10"), &corp.addr), 0);
	assert_int_equal(parent_dial_start(&config, &p), 0);
	lab_turn(base);
	assert_false(was_dialled(four));
	answer(AF_INET, 0);
	finish(REASON_ALLOWED);
	is_marked_then_close(got.fd);
	assert_true(was_dialled(four));
}

static void the_markers_refusal_is_told_as_what_it_is(void **state)
{
	static const struct {
		int err;
		enum reason reason;
	} each[] = {
		{ -EAFNOSUPPORT, REASON_CONNECT_UNREACHABLE },
		{ -EMFILE, REASON_DESCRIPTORS_EXCEEDED },
		{ -ENOBUFS, REASON_MEMORY_EXCEEDED },
		{ -EPERM, REASON_INTERNAL_ERROR },
	};
	const struct dial_config c = literal("2001:db8:3::1");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		got.over = false;
		start(&c);
		answer(AF_INET6, each[i].err);
		finish(each[i].reason);
	}
	assert_false(was_dialled(six));
}

/* Never an unmarked one instead. */
static void without_a_marker_nothing_is_dialled(void **state)
{
	const struct dial_config c = literal("203.0.113.10");

	(void)state;
	start(&c);
	fd_closep(&marker);
	finish(REASON_INTERNAL_ERROR);
	got.over = false;
	start(&c);
	finish(REASON_INTERNAL_ERROR);
	assert_false(was_dialled(four));
}

static void the_deadline_goes_on_while_a_dial_waits(void **state)
{
	struct dial_config c = literal("203.0.113.10");

	(void)state;
	c.limits.deadline_ms = 20;
	start(&c);
	finish(REASON_INTERNAL_ERROR);
	/* It waits no more: what comes goes into stock. */
	answer(AF_INET, 0);
	lab_turn(base);
	assert_false(was_dialled(four));
}

static void a_dial_that_waits_can_be_cancelled(void **state)
{
	const struct dial_config c = literal("203.0.113.10");

	(void)state;
	dial_cancel(start(&c));
	answer(AF_INET, 0);
	lab_turn(base);
	assert_false(got.over);
	assert_false(was_dialled(four));
}

#define unit(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit(a_dial_waits_for_a_marked_socket_and_uses_it),
		unit(a_dial_without_marks_asks_nobody),
		unit(a_parent_is_reached_by_a_marked_socket),
		unit(the_markers_refusal_is_told_as_what_it_is),
		unit(without_a_marker_nothing_is_dialled),
		unit(the_deadline_goes_on_while_a_dial_waits),
		unit(a_dial_that_waits_can_be_cancelled),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
