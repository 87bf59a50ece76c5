/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_pool_test.c - connections to origins that outlive their program's half
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <event2/event.h>
#include <linux/filter.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "proxy/conn.h"
#include "proxy/conn_own.h"
#include "tests/unit/conn_kit.h"
#include "tests/unit/proxy_lab.h"

#define ANSWER	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define API	"api.example.org"
#define REQUEST	"GET http://" API "/ HTTP/1.1\r\nHost: " API "\r\n\r\n"
#define LONG_MS	600000

static int door, origin;

static int setup(void **state)
{
	int err = kit_setup(state);

	kit.sandbox.pool_ms = LONG_MS;
	door = lab_listen(KIT_ORIGIN, 80, NULL);
	origin = -1;
	return err;
}

static int teardown(void **state)
{
	conn_end_all(&kit.sandbox, REASON_RUN_ENDED);
	if (origin >= 0)
		close(origin);
	close(door);
	return kit_teardown(state);
}

/* The request is answered on @origin, or on a new one that is dialled. */
static void answer_on(int client)
{
	if (origin < 0)
		origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET ");
	lab_send(BASE, origin, STR(ANSWER));
	kit_expect_head(client, "HTTP/1.1 200 OK\r\n");
	lab_expect(BASE, client, "hello");
}

/* The connection has gone back to the pool, or is gone. */
static void leave(int client)
{
	close(client);
	while (kit.sandbox.nconns)
		lab_turn(BASE);
}

static void ask(const char *host)
{
	char target[128];
	int client = kit_explicit();

	assert_true(snprintf(target, sizeof(target), "http://%s/", host) > 0);
	kit_request(client, target, host);
	answer_on(client);
	leave(client);
}

static void drop_origin(void)
{
	close(origin);
	origin = -1;
}

static void one_connection_serves_program_after_program(void **state)
{
	uint64_t up = 0, down = 0;
	const struct record *r;

	(void)state;
	for (int i = 0; i < 3; i++)
		ask(API);
	assert_false(kit_was_dialled(door));
	assert_int_equal(kit.sandbox.npooled, 1);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  API);
	for (size_t i = 1; i < 4; i++) {
		kit_expect_record(i, RECORD_HTTP, RECORD_ALLOW, REASON_ALLOWED,
				  API);
		assert_true(kit_same_id(0, i));
		assert_int_equal(kit_record(i)->dst.addr.b[0], 203);
		up += kit_record(i)->bytes_up;
		down += 3;
	}
	/* Each request is its program's own, the flow the first one's. */
	assert_int_not_equal(kit_record(1)->src.port, kit_record(3)->src.port);
	assert_int_equal(kit_records(), 4);
	conn_end_all(&kit.sandbox, REASON_RUN_ENDED);
	kit_expect_record(4, RECORD_FLOW_CLOSE, RECORD_ALLOW, REASON_RUN_ENDED,
			  API);
	r = kit_record(4);
	assert_true(kit_same_id(0, 4));
	assert_int_equal(r->src.port, kit_record(0)->src.port);
	assert_int_equal(r->bytes_up, up);
	assert_int_equal(r->bytes_down, down / 3 * (sizeof(ANSWER) - 1));
	assert_int_equal(kit.sandbox.bytes_up, up);
	lab_expect_fin(BASE, origin);
}

static void a_program_that_goes_elsewhere_leaves_its_connection(void **state)
{
	int client = kit_explicit(), first;

	(void)state;
	kit_request(client, "http://" API "/", API);
	answer_on(client);
	first = origin;
	origin = -1;
	kit_request(client, "http://both.example.org/", "both.example.org");
	answer_on(client);
	assert_false(kit_same_id(0, 2));
	/* Back again: what waited is taken, what is left waits. */
	close(origin);
	origin = first;
	kit_request(client, "http://" API "/", API);
	answer_on(client);
	assert_false(kit_was_dialled(door));
	leave(client);
}

static void one_beside_its_program_is_its_own(void **state)
{
	int client = kit_explicit(), other = kit_explicit(), first, second;

	(void)state;
	kit_request(client, "http://" API "/", API);
	answer_on(client);
	first = origin;
	origin = -1;
	kit_request(other, "http://" API "/", API);
	answer_on(other);
	second = origin;
	assert_false(kit_same_id(0, 2));
	assert_int_equal(kit.sandbox.npooled, 0);
	/* Each goes on with what it has. */
	origin = first;
	kit_request(client, "http://" API "/", API);
	answer_on(client);
	assert_true(kit_same_id(0, 4));
	origin = second;
	kit_request(other, "http://" API "/", API);
	answer_on(other);
	assert_true(kit_same_id(2, 5));
	close(other);
	close(first);
	assert_false(kit_was_dialled(door));
	leave(client);
}

static void another_name_of_the_address_has_its_own(void **state)
{
	(void)state;
	ask(API);
	drop_origin();
	ask("both.example.org");
	assert_int_equal(kit.sandbox.npooled, 1);
	assert_string_equal(kit_record(kit_records() - 1)->host.p,
			    "both.example.org");
}

static void another_way_in_has_its_own(void **state)
{
	const char *synthetic = kit_synthetic(API);
	int client, first;

	(void)state;
	ask(API);
	first = origin;
	origin = -1;
	client = kit_transparent(synthetic, 80);
	kit_request(client, "/", API);
	answer_on(client);
	leave(client);
	assert_int_equal(kit.sandbox.npooled, 2);
	/* And finds that one again. */
	client = kit_transparent(synthetic, 80);
	kit_request(client, "/", API);
	answer_on(client);
	leave(client);
	assert_false(kit_was_dialled(door));
	close(first);
}

static void inside_a_connect_nothing_is_taken_or_left(void **state)
{
	int client, first;

	(void)state;
	ask(API);
	first = origin;
	client = kit_connect_to(API ":80");
	kit_expect_head(client, "HTTP/1.1 200 ");
	origin = kit_accept_turning(door);
	kit_request(client, "/", API);
	answer_on(client);
	leave(client);
	lab_expect_fin(BASE, origin);
	assert_int_equal(kit.sandbox.npooled, 1);
	close(first);
}

/* TUN-22: only what may be sent twice goes where somebody may have left. */
static void a_post_dials(void **state)
{
	int client, first;

	(void)state;
	ask(API);
	first = origin;
	client = kit_explicit();
	lab_send(BASE, client, STR("POST http://" API "/ HTTP/1.1\r\n"
				   "Host: " API "\r\n"
				   "Content-Length: 2\r\n\r\nhi"));
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "POST / HTTP/1.1\r\n");
	close(client);
	close(first);
}

static void an_origin_that_ends_or_speaks_is_not_waited_with_TUN_22(
	void **state)
{
	(void)state;
	ask(API);
	drop_origin();
	kit_expect_record(2, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_ORIGIN_CLOSED, API);
	ask(API);
	lab_send(BASE, origin, STR(ANSWER));
	kit_expect_record(5, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_ORIGIN_CLOSED, API);
	drop_origin();
	assert_int_equal(kit.sandbox.npooled, 0);
	ask(API);
}

/* The word comes in the same turn of the loop, behind the request. */
static void what_was_said_unasked_answers_nobody(void **state)
{
	int client, stale;

	(void)state;
	ask(API);
	stale = origin;
	origin = -1;
	client = kit_explicit();
	kit_request(client, "http://both.example.org/", "both.example.org");
	answer_on(client);
	close(origin);
	origin = -1;
	assert_int_equal(send(client, REQUEST, strlen(REQUEST), MSG_NOSIGNAL),
			 strlen(REQUEST));
	assert_int_equal(send(stale, ANSWER, strlen(ANSWER), MSG_NOSIGNAL),
			 strlen(ANSWER));
	answer_on(client);
	leave(client);
	close(stale);
}

static void one_that_waits_too_long_is_closed(void **state)
{
	(void)state;
	kit.sandbox.pool_ms = 1;
	ask(API);
	kit_expect_record(2, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, API);
	lab_expect_fin(BASE, origin);
}

static void there_is_a_bound_and_the_oldest_goes(void **state)
{
	int client[CONN_POOL_MAX + 1], net[CONN_POOL_MAX + 1];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(client); i++) {
		client[i] = kit_explicit();
		kit_request(client[i], "http://" API "/", API);
		origin = -1;
		answer_on(client[i]);
		net[i] = origin;
	}
	/* The one that left first waits for longest. */
	for (size_t i = 0; i < ARRAY_SIZE(client); i++) {
		close(client[i]);
		while (kit.sandbox.nconns > CONN_POOL_MAX - i)
			lab_turn(BASE);
	}
	assert_int_equal(kit.sandbox.npooled, CONN_POOL_MAX);
	lab_expect_fin(BASE, net[0]);
	/* The latest is the first to be used again. */
	origin = net[CONN_POOL_MAX];
	ask(API);
	conn_end_all(&kit.sandbox, REASON_RUN_ENDED);
	for (size_t i = 0; i < ARRAY_SIZE(net); i++)
		close(net[i]);
	origin = -1;
}

static void another_policy_closes_what_it_does_not_allow(void **state)
{
	static const char narrower[] =
		"[policy]\nname = narrower\n"
		"[allow web]\nhosts = both.example.org\n"
		"addresses = 203.0.113.0/24\nreason = lab origins\n";
	struct conn_rejudged what;

	(void)state;
	ask(API);
	what = kit_set_policy(narrower);
	assert_int_equal(what.ended, 1);
	assert_int_equal(what.kept, 0);
	assert_int_equal(kit.sandbox.npooled, 0);
	lab_expect_reset(BASE, origin);
	kit_expect_record(2, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_POLICY_RELOAD, API);
}

static void another_policy_keeps_what_it_allows(void **state)
{
	static const char renamed[] =
		"[policy]\nname = renamed\n"
		"[allow other]\nhosts = api.example.org\n"
		"addresses = 203.0.113.0/24\nreason = lab origins\n";
	struct conn_rejudged what;

	(void)state;
	ask(API);
	what = kit_set_policy(renamed);
	assert_int_equal(what.kept, 1);
	assert_int_equal(what.ended, 0);
	ask(API);
	assert_false(kit_was_dialled(door));
	assert_true(kit_same_id(0, 2));
	conn_end_all(&kit.sandbox, REASON_RUN_ENDED);
	assert_string_equal(kit_record(3)->rule, "other");
}

static void another_policy_closes_what_goes_another_way(void **state)
{
	static const char parent[] =
		"[policy]\nname = parent\n"
		"[allow web]\nhosts = api.example.org\nparent = corp\n"
		"addresses = 203.0.113.0/24\nreason = lab origins\n";
	struct conn_rejudged what;

	(void)state;
	ask(API);
	what = kit_set_policy(parent);
	assert_int_equal(what.ended, 1);
	assert_int_equal(kit.sandbox.npooled, 0);
	lab_expect_reset(BASE, origin);
}

/* The rule for its address has ended, and no timer has said so yet; the name
 * itself is still allowed. */
static void one_whose_address_is_refused_by_now_is_not_taken(void **state)
{
	static const char ending[] =
		"[policy]\nname = ending\n"
		"[allow name]\nhosts = api.example.org\n"
		"[allow address]\nhosts = api.example.org\n"
		"addresses = 203.0.113.0/24\nreason = lab origins\n"
		"expires = 1970-01-02T00:00:00Z\n";
	int client;

	(void)state;
	clock_test_set_ms(1000);
	kit_set_policy(ending);
	ask(API);
	clock_test_set_ms(INT64_C(24) * 3600 * 1000 + 1);
	client = kit_explicit();
	kit_request(client, "http://" API "/", API);
	kit_expect_head(client, "HTTP/1.1 403 rule_expired\r\n");
	close(client);
	clock_test_set_ms(-1);
}

/* Not the time of the half that found it, which has had no flow at all. */
static void a_flow_that_is_found_has_the_time_it_had(void **state)
{
	static const char timed[] =
		"[policy]\nname = timed\n"
		"[allow web]\nhosts = api.example.org\n"
		"addresses = 203.0.113.0/24\nreason = lab origins\n"
		"[limits]\nflow_time = 1s\n";
	/* Longer than it takes until the time is looked at. */
	static const struct timeval while_it_thinks = { .tv_usec = 400000 };
	int client;

	(void)state;
	clock_test_set_ms(1000000);
	kit_set_policy(timed);
	ask(API);
	client = kit_explicit();
	kit_request(client, "http://" API "/", API);
	kit_expect_head(origin, "GET ");
	assert_int_equal(event_base_loopexit(BASE, &while_it_thinks), 0);
	assert_int_equal(event_base_dispatch(BASE), 0);
	lab_send(BASE, origin, STR(ANSWER));
	kit_expect_head(client, "HTTP/1.1 200 OK\r\n");
	lab_expect(BASE, client, "hello");
	leave(client);
	client = kit_explicit();
	kit_request(client, "http://" API "/", API);
	kit_expect_head(origin, "GET ");
	clock_test_set_ms(1001000);
	kit_expect_head(client, "HTTP/1.1 429 flow_time_exceeded\r\n");
	assert_false(kit_was_dialled(door));
	close(client);
	clock_test_set_ms(-1);
}

/* It would be cut off with the request of somebody who has done nothing. */
static void one_past_its_time_is_not_taken(void **state)
{
	static const char timed[] =
		"[policy]\nname = timed\n"
		"[allow web]\nhosts = api.example.org\n"
		"addresses = 203.0.113.0/24\nreason = lab origins\n"
		"[limits]\nflow_time = 10s\n";
	int first;

	(void)state;
	clock_test_set_ms(1000000);
	kit_set_policy(timed);
	ask(API);
	assert_int_equal(kit.sandbox.npooled, 1);
	clock_test_set_ms(1010000);
	first = origin;
	origin = -1;
	ask(API);
	close(first);
	kit_expect_record(2, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_FLOW_TIME_EXCEEDED, API);
	kit_expect_record(3, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  API);
	clock_test_set_ms(-1);
}

/* From now on nothing that is sent to @fd arrives, and nobody says so. */
static void cut_the_wire(int fd)
{
	struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = { .len = 1, .filter = &none };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
				    sizeof(filter)), 0);
}

static void one_that_has_died_without_a_word_is_given_up_TUN_22(void **state)
{
	int client, dead;

	(void)state;
	kit.sandbox.unheard_ms = 200;
	ask(API);
	cut_the_wire(origin);
	dead = origin;
	origin = -1;
	client = kit_explicit();
	kit_request(client, "http://" API "/", API);
	/* Dialled anew, of itself. */
	answer_on(client);
	kit_expect_record(2, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_ORIGIN_CLOSED, API);
	close(client);
	close(dead);
}

/* What must not be sent twice is not. */
static void a_post_into_a_dead_connection_is_504_TUN_22(void **state)
{
	int client = kit_explicit();

	(void)state;
	kit.sandbox.unheard_ms = 200;
	kit_request(client, "http://" API "/", API);
	answer_on(client);
	cut_the_wire(origin);
	lab_send(BASE, client, STR("POST http://" API "/ HTTP/1.1\r\n"
				   "Host: " API "\r\n"
				   "Content-Length: 2\r\n\r\nhi"));
	kit_expect_head(client, "HTTP/1.1 504 origin_timeout\r\n");
	assert_false(kit_was_dialled(door));
	close(client);
}

/* It has the request, and its reasons. */
static void one_that_is_slow_to_answer_is_waited_for_TUN_19(void **state)
{
	int client = kit_explicit();

	(void)state;
	kit.sandbox.unheard_ms = 40;
	kit_request(client, "http://" API "/", API);
	answer_on(client);
	kit_request(client, "http://" API "/slow", API);
	kit_expect_head(origin, "/slow");
	clock_test_set_ms(INT64_C(24) * 3600 * 1000);
	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(event_base_loop(BASE, EVLOOP_ONCE), 0);
	lab_send(BASE, origin, STR(ANSWER));
	kit_expect_head(client, "HTTP/1.1 200 OK\r\n");
	clock_test_set_ms(-1);
	close(client);
}

#define pool_unit(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		pool_unit(one_connection_serves_program_after_program),
		pool_unit(a_program_that_goes_elsewhere_leaves_its_connection),
		pool_unit(one_beside_its_program_is_its_own),
		pool_unit(another_name_of_the_address_has_its_own),
		pool_unit(another_way_in_has_its_own),
		pool_unit(inside_a_connect_nothing_is_taken_or_left),
		pool_unit(a_post_dials),
		pool_unit(
		    an_origin_that_ends_or_speaks_is_not_waited_with_TUN_22),
		pool_unit(what_was_said_unasked_answers_nobody),
		pool_unit(one_that_waits_too_long_is_closed),
		pool_unit(there_is_a_bound_and_the_oldest_goes),
		pool_unit(another_policy_closes_what_it_does_not_allow),
		pool_unit(another_policy_keeps_what_it_allows),
		pool_unit(another_policy_closes_what_goes_another_way),
		pool_unit(one_whose_address_is_refused_by_now_is_not_taken),
		pool_unit(a_flow_that_is_found_has_the_time_it_had),
		pool_unit(one_past_its_time_is_not_taken),
		pool_unit(
		    one_that_has_died_without_a_word_is_given_up_TUN_22),
		pool_unit(a_post_into_a_dead_connection_is_504_TUN_22),
		pool_unit(one_that_is_slow_to_answer_is_waited_for_TUN_19),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
