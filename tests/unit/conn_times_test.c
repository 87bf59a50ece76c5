/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_times_test.c - idle_time and flow_time of a rule beside those of [limits]
 *
 * The clock is the test's.  Each end that is awaited has beside it a flow that
 * has been silent, or has lasted, for as long and goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "proxy/conn.h"
#include "proxy/conn_own.h"
#include "tests/unit/conn_kit.h"
#include "tests/unit/proxy_lab.h"

#define OK_200	"HTTP/1.1 200 OK\r\n\r\n"
#define API	"api.example.org"
#define ANSWER	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define LAB	"addresses = 203.0.113.0/24\nreason = lab\n"
#define LONG_MS	600000
#define BEGIN	100000

/* Keys of the rule ssh, of [limits], and rules for port 80. */
struct text {
	const char *ssh, *all, *web;
};

static void policy(struct text t)
{
	char text[1024];
	int n = snprintf(text, sizeof(text),
			 "[policy]\nname = lab\n"
			 "[allow ssh]\nhosts = ssh.example.org\nports = 22\n"
			 LAB "%s%s[limits]\nconnections = 99\n%s",
			 t.ssh ? t.ssh : "", t.web ? t.web : "",
			 t.all ? t.all : "");

	assert_true(n > 0 && (size_t)n < sizeof(text));
	(void)kit_set_policy(text);
}

static int at_22, at_80, client, origin;

static int setup(void **state)
{
	int err = kit_setup(state);

	kit.sandbox.pool_ms = LONG_MS;
	at_22 = lab_listen(KIT_ORIGIN, 22, NULL);
	at_80 = lab_listen(KIT_ORIGIN, 80, NULL);
	client = origin = -1;
	clock_test_set_ms(BEGIN);
	return err;
}

static int teardown(void **state)
{
	clock_test_set_ms(-1);
	conn_end_all(&kit.sandbox, REASON_RUN_ENDED);
	if (client >= 0)
		close(client);
	if (origin >= 0)
		close(origin);
	close(at_22);
	close(at_80);
	return kit_teardown(state);
}

/* One look of a timer, or whatever else happens first. */
static void look(void)
{
	assert_int_equal(event_base_loop(BASE, EVLOOP_ONCE), 0);
}

/* Silent from BEGIN on, what the kernels confirm included. */
static void tunnel(void)
{
	char byte;

	client = kit_connect_to("ssh.example.org:22");
	lab_expect(BASE, client, OK_200);
	origin = lab_accept(at_22);
	lab_send(BASE, client, STR("x"));
	lab_recv(BASE, origin, &byte, 1);
}

static const struct record *expect_close(enum reason why)
{
	size_t i = 0;

	while (kit_record(i)->event != RECORD_FLOW_CLOSE)
		i++;
	assert_string_equal(reason_word(kit_record(i)->reason),
			    reason_word(why));
	return kit_record(i);
}

static void expect_cut(enum reason why)
{
	const struct record *r;

	lab_expect_reset(BASE, client);
	r = expect_close(why);
	assert_int_equal(r->act, RECORD_DENY);
	assert_string_equal(r->rule, "ssh");
}

static void expect_alive(void)
{
	lab_send(BASE, origin, STR("alive"));
	lab_expect(BASE, client, "alive");
	assert_int_equal(kit_records(), 1);
}

/* --- tunnels ---------------------------------------------------------------------- */

static void silence_is_bounded_by_the_rule_and_by_the_policy(void **state)
{
	static const struct text bounded[] = {
		{ .ssh = "idle_time = 1s\n" },
		{ .ssh = "idle_time = 1s\n", .all = "idle_time = 1h\n" },
		/* A rule loosens nothing. */
		{ .ssh = "idle_time = 1h\n", .all = "idle_time = 1s\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bounded); i++) {
		clock_test_set_ms(BEGIN);
		policy(bounded[i]);
		tunnel();
		look();
		clock_test_set_ms(BEGIN + 999);
		look();
		assert_int_equal(kit_records(), 1);
		clock_test_set_ms(BEGIN + 1000);
		expect_cut(REASON_IDLE_TIMEOUT);
		(void)teardown(state);
		(void)setup(state);
	}
}

static void another_rule_s_times_are_none_of_a_flow_s(void **state)
{
	(void)state;
	policy((struct text){ .web = "[allow web]\nhosts = " API "\n" LAB
				     "idle_time = 1s\nflow_time = 1s\n" });
	tunnel();
	clock_test_set_ms(BEGIN + LONG_MS);
	expect_alive();
}

static void a_flow_has_the_time_of_its_rule(void **state)
{
	static const struct text bounded[] = {
		{ .ssh = "flow_time = 1s\n" },
		{ .ssh = "flow_time = 1s\n", .all = "flow_time = 1h\n" },
		{ .ssh = "flow_time = 1h\n", .all = "flow_time = 1s\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bounded); i++) {
		clock_test_set_ms(BEGIN);
		policy((struct text){ .ssh = "idle_time = 1s\n" });
		tunnel();
		look();
		clock_test_set_ms(BEGIN + 999);
		policy(bounded[i]);
		expect_alive();
		clock_test_set_ms(BEGIN + 1000);
		expect_cut(REASON_FLOW_TIME_EXCEEDED);
		(void)teardown(state);
		(void)setup(state);
	}
}

/* What was silent before has been so for as long, however often it is judged. */
static void another_policy_does_not_begin_the_silence_anew(void **state)
{
	(void)state;
	policy((struct text){ .ssh = "idle_time = 2s\n" });
	tunnel();
	look();
	for (int64_t ms = 500; ms < 2000; ms += 500) {
		clock_test_set_ms(BEGIN + ms);
		policy((struct text){ .ssh = "idle_time = 2s\n" });
	}
	assert_int_equal(kit_records(), 1);
	clock_test_set_ms(BEGIN + 2000);
	expect_cut(REASON_IDLE_TIMEOUT);
}

static void another_policy_can_take_the_times_away(void **state)
{
	(void)state;
	policy((struct text){ .ssh = "idle_time = 1s\nflow_time = 1s\n" });
	tunnel();
	look();
	policy((struct text){ .ssh = "idle_time = 1d\n" });
	clock_test_set_ms(BEGIN + LONG_MS);
	expect_alive();
}

/* --- HTTP ------------------------------------------------------------------------- */

#define SLOW	"[allow slow]\nhosts = " API "\nprotocol = http\n" \
		"paths = /slow/**\n" LAB
#define FAST	"[allow fast]\nhosts = " API "\nprotocol = http\n" \
		"paths = /fast/**\nidle_time = 1s\n" LAB

static void request(const char *path)
{
	char target[128];

	client = kit_explicit();
	assert_true(snprintf(target, sizeof(target), "http://" API "%s",
			     path) > 0);
	kit_request(client, target, API);
	origin = kit_accept_turning(at_80);
	kit_expect_head(origin, path);
}

/* Both rules permit the flow, and one of them, the first, names it. */
static void an_exchange_is_held_to_the_rule_of_its_request(void **state)
{
	static const char *const both[] = { SLOW FAST, FAST SLOW };

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		policy((struct text){ .web = both[i] });
		request("/slow/a");
		clock_test_set_ms(BEGIN + LONG_MS);
		lab_turn(BASE);
		lab_send(BASE, origin, STR(ANSWER));
		kit_expect_head(client, "HTTP/1.1 200 OK\r\n");
		(void)teardown(state);
		(void)setup(state);

		policy((struct text){ .web = both[i] });
		request("/fast/a");
		look();
		clock_test_set_ms(BEGIN + 1000);
		kit_expect_head(client, "HTTP/1.1 503 idle_timeout\r\n");
		(void)teardown(state);
		(void)setup(state);
	}
}

static void another_policy_holds_for_a_request_under_way(void **state)
{
	(void)state;
	policy((struct text){ .web = SLOW });
	request("/slow/a");
	clock_test_set_ms(BEGIN + LONG_MS);
	policy((struct text){ .web = FAST SLOW "idle_time = 1s\n" });
	lab_turn(BASE);
	assert_int_equal(kit_records(), 1);
	clock_test_set_ms(BEGIN + LONG_MS + 1000);
	kit_expect_head(client, "HTTP/1.1 503 idle_timeout\r\n");
}

static void a_websocket_is_held_to_the_rule_of_its_request(void **state)
{
	(void)state;
	policy((struct text){ .web = SLOW FAST });
	client = kit_explicit();
	lab_send(BASE, client,
		 STR("GET http://" API "/fast/ws HTTP/1.1\r\nHost: " API "\r\n"
		     "Connection: Upgrade\r\nUpgrade: websocket\r\n"
		     "Sec-WebSocket-Version: 13\r\n"
		     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
	origin = kit_accept_turning(at_80);
	kit_expect_head(origin, "/fast/ws");
	lab_send(BASE, origin,
		 STR("HTTP/1.1 101 Switching Protocols\r\n"
		     "Connection: Upgrade\r\nUpgrade: websocket\r\n"
		     "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
		     "\r\n"));
	kit_expect_head(client, "HTTP/1.1 101 ");
	look();
	policy((struct text){ .web = SLOW FAST });
	clock_test_set_ms(BEGIN + 1000);
	lab_expect_reset(BASE, client);
	/* The record names the rule of the flow, as it did when it opened. */
	assert_string_equal(expect_close(REASON_IDLE_TIMEOUT)->rule, "slow");
}

/* --- connections that wait for a request ------------------------------------------- */

#define TIMED(keys)	"[allow web]\nhosts = " API "\nports = 80\n" LAB keys

static void answer(void)
{
	lab_send(BASE, origin, STR(ANSWER));
	kit_expect_head(client, "HTTP/1.1 200 OK\r\n");
	lab_expect(BASE, client, "hello");
}

static void leave(void)
{
	close(client);
	client = -1;
	while (kit.sandbox.nconns)
		lab_turn(BASE);
	assert_int_equal(kit.sandbox.npooled, 1);
}

static void expect_unpooled(enum reason why)
{
	while (kit.sandbox.npooled)
		look();
	assert_string_equal(expect_close(why)->rule, "web");
}

static void a_flow_that_waits_in_the_pool_has_its_time(void **state)
{
	(void)state;
	policy((struct text){ .web = TIMED("flow_time = 1s\n") });
	request("/");
	answer();
	clock_test_set_ms(BEGIN + 990);
	leave();
	clock_test_set_ms(BEGIN + 1000);
	expect_unpooled(REASON_FLOW_TIME_EXCEEDED);
}

static void another_policy_gives_it_another_time(void **state)
{
	(void)state;
	policy((struct text){ .web = TIMED("flow_time = 1h\n") });
	request("/");
	answer();
	leave();
	clock_test_set_ms(BEGIN + 1000);
	policy((struct text){ .web = TIMED("flow_time = 1s\n") });
	expect_unpooled(REASON_FLOW_TIME_EXCEEDED);
}

static void nothing_waits_in_the_pool_for_longer_than_it_may_be_silent(
	void **state)
{
	(void)state;
	policy((struct text){ .web = TIMED("idle_time = 1s\n") });
	request("/");
	answer();
	leave();
	expect_unpooled(REASON_CLIENT_CLOSED);
}

/* Beside a program that is silent itself. */
static void a_kept_flow_is_not_kept_beyond_its_time(void **state)
{
	int first;

	(void)state;
	policy((struct text){ .web = TIMED("flow_time = 1s\n") });
	request("/");
	clock_test_set_ms(BEGIN + 990);
	answer();
	clock_test_set_ms(BEGIN + 1000);
	(void)expect_close(REASON_FLOW_TIME_EXCEEDED);
	first = origin;
	kit_request(client, "http://" API "/2", API);
	origin = kit_accept_turning(at_80);
	kit_expect_head(origin, "/2");
	answer();
	close(first);
}

static void a_kept_flow_has_the_time_of_another_policy(void **state)
{
	(void)state;
	policy((struct text){ .web = TIMED("flow_time = 1h\n") });
	request("/");
	answer();
	clock_test_set_ms(BEGIN + 1000);
	policy((struct text){ .web = TIMED("flow_time = 1s\n") });
	(void)expect_close(REASON_FLOW_TIME_EXCEEDED);
}

#define IN_KIT(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_KIT(silence_is_bounded_by_the_rule_and_by_the_policy),
		IN_KIT(another_rule_s_times_are_none_of_a_flow_s),
		IN_KIT(a_flow_has_the_time_of_its_rule),
		IN_KIT(another_policy_does_not_begin_the_silence_anew),
		IN_KIT(another_policy_can_take_the_times_away),
		IN_KIT(an_exchange_is_held_to_the_rule_of_its_request),
		IN_KIT(another_policy_holds_for_a_request_under_way),
		IN_KIT(a_websocket_is_held_to_the_rule_of_its_request),
		IN_KIT(a_flow_that_waits_in_the_pool_has_its_time),
		IN_KIT(another_policy_gives_it_another_time),
		IN_KIT(
		    nothing_waits_in_the_pool_for_longer_than_it_may_be_silent),
		IN_KIT(a_kept_flow_is_not_kept_beyond_its_time),
		IN_KIT(a_kept_flow_has_the_time_of_another_policy),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
