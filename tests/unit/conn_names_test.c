/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_names_test.c - flows to real addresses, which may stand for names
 *
 * A program's door and the origin are one address in this lab, so a listener
 * gives first the program's connection and then the one that is dialled.
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
#include "resolver/name_pins.h"
#include "tests/unit/conn_kit.h"
#include "tests/unit/proxy_lab.h"

#define OK_200		"HTTP/1.1 200 OK\r\n\r\n"
#define ACCESS_DENIED	"\x15\x03\x01\x00\x02\x02\x31"
#define HOUR		INT64_C(3600000)
#define DAY		(24 * HOUR)

#define RANGES	"addresses = 203.0.113.0/24 2001:db8:3::/48\nreason = lab\n"
static const char policy[] =
	"[policy]\nname = lab\n"
	"[allow web]\nhosts = api.example.org both.example.org"
	" gone.example.org\n" RANGES
	"[allow ssh]\nhosts = ssh.example.org\nports = 22\nprotocol = ssh\n"
	RANGES
	"[allow tcp]\nhosts = both.example.org\nports = 22\nprotocol = tcp\n"
	RANGES
	"[allow literal]\naddresses = 203.0.113.40\nports = 22 443\n"
	"reason = lab\n";

static const struct id question = { { 0xd5, 1 } };

static int setup(void **state)
{
	int err = kit_setup(state);

	(void)kit_set_policy(policy);
	clock_test_set_ms(DAY);
	return err;
}

static int teardown(void **state)
{
	clock_test_set_ms(-1);
	return kit_teardown(state);
}

static void pin(const char *name, const char *at)
{
	struct ip_addr a;
	const struct name_pins_answer answer = {
		.name = str_from(name), .addr = &a, .n = 1, .ttl_s = 60,
		.question = &question,
	};

	assert_int_equal(ip_addr_parse(str_from(at), &a), 0);
	assert_int_equal(name_pins_give(kit.sandbox.pins, &answer,
					clock_mono_ms()), 0);
}

/* A program connects to where @door listens, which stays. */
static int program(int door, const char *at, uint16_t port)
{
	int client = lab_connect(at, port);

	conn_start_transparent(&kit.sandbox, lab_accept(door), &lab_src);
	return client;
}

/* What was closed is on record, so that the next record is the next flow's. */
static void await(size_t n)
{
	while (kit_records() < n)
		lab_turn(BASE);
}

static void expect_alert(int fd)
{
	kit_expect_bytes(fd, str_make(ACCESS_DENIED, 7));
	lab_expect_fin(BASE, fd);
	close(fd);
}

static void expect_reset(int fd)
{
	lab_expect_reset(BASE, fd);
	close(fd);
}

static void expect_http(int fd, const char *status)
{
	kit_expect_head(fd, status);
	close(fd);
}

/* Record @i opens a flow of @name, dialled at 203.0.113.@last. */
static void expect_open(size_t i, const char *name, uint8_t last)
{
	kit_expect_record(i, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  name);
	assert_int_equal(kit_record(i)->dst.addr.b[3], last);
}

/* --- one name ---------------------------------------------------------------- */

static void the_first_bytes_say_the_name_that_the_address_was_given_for(
	void **state)
{
	struct str hello = kit_hello("api.example.org");
	int door = lab_listen(KIT_OTHER, 443, NULL), origin, client;

	(void)state;
	pin("api.example.org", KIT_OTHER);
	client = program(door, KIT_OTHER, 443);
	lab_send(BASE, client, hello);
	origin = kit_accept_turning(door);
	kit_expect_bytes(origin, hello);
	/* The very address that was asked for, and its question's id. */
	expect_open(0, "api.example.org", 66);
	assert_memory_equal(&kit_record(0)->dns, &question, sizeof(question));
	assert_int_equal(kit_record(0)->asked.b[3], 66);
	close(client);
	close(origin);
	close(door);
}

/* ADDR-18: of what is at an address, only what the bytes name is reached. */
static void another_name_at_the_address_is_judged_and_resolved_ADDR_18(
	void **state)
{
	struct str hello = kit_hello("both.example.org");
	int door = lab_listen(KIT_OTHER, 443, NULL), client, origin;
	int own = lab_listen(KIT_ORIGIN, 443, NULL);

	(void)state;
	pin("api.example.org", KIT_OTHER);
	/* Allowed: at our own addresses of it. */
	client = program(door, KIT_OTHER, 443);
	lab_send(BASE, client, hello);
	origin = kit_accept_turning(own);
	kit_expect_bytes(origin, hello);
	assert_false(kit_was_dialled(door));
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "both.example.org");
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	/* Denied, and none at all. */
	client = program(door, KIT_OTHER, 443);
	lab_send(BASE, client, kit_hello("evil.example.net"));
	expect_alert(client);
	kit_expect_record(2, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "evil.example.net");
	client = program(door, KIT_OTHER, 443);
	lab_send(BASE, client, kit_hello(NULL));
	expect_alert(client);
	kit_expect_record(3, RECORD_FLOW_DENY, RECORD_DENY, REASON_SNI_MISSING,
			  "");
	client = program(door, KIT_OTHER, 443);
	lab_send(BASE, client, STR("GET / HTTP/1.1\r\n"));
	expect_http(client, "403 protocol_mismatch");
	assert_false(kit_was_dialled(door));
	assert_false(kit_was_dialled(own));
	close(door);
	close(own);
}

static void each_request_says_which_host_is_meant(void **state)
{
	int door = lab_listen(KIT_OTHER, 80, NULL), client, origin;
	int own = lab_listen(KIT_ORIGIN, 80, NULL);

	(void)state;
	pin("api.example.org", KIT_OTHER);
	client = program(door, KIT_OTHER, 80);
	kit_request(client, "/a", "api.example.org");
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET /a HTTP/1.1\r\nHost: api.example.org\r\n");
	expect_open(0, "api.example.org", 66);
	assert_memory_equal(&kit_record(0)->dns, &question, sizeof(question));
	lab_send(BASE, origin, STR("HTTP/1.1 204 No Content\r\n\r\n"));
	kit_expect_head(client, "204");
	kit_request(client, "/b", "evil.example.net");
	expect_http(client, "403 host_not_allowed");
	close(origin);
	/* A third host, which is allowed: where we find it. */
	client = program(door, KIT_OTHER, 80);
	kit_request(client, "/c", "both.example.org");
	origin = kit_accept_turning(own);
	kit_expect_head(origin, "GET /c HTTP/1.1\r\nHost: both.example.org");
	assert_false(kit_was_dialled(door));
	close(client);
	close(origin);
	/* The address itself: that is the one name that it has. */
	client = program(door, KIT_OTHER, 80);
	kit_request(client, "/d", KIT_OTHER);
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET /d HTTP/1.1\r\n");
	close(client);
	close(origin);
	/* Another address: no. */
	client = program(door, KIT_OTHER, 80);
	kit_request(client, "/e", KIT_ORIGIN);
	expect_http(client, "403 host_mismatch");
	assert_false(kit_was_dialled(door));
	assert_false(kit_was_dialled(own));
	close(door);
	close(own);
}

static void a_server_may_speak_first_to_the_one_name_TUN_14(void **state)
{
	int door = lab_listen(KIT_OTHER, 22, NULL), client, origin;

	(void)state;
	pin("ssh.example.org", KIT_OTHER);
	client = program(door, KIT_OTHER, 22);
	origin = kit_accept_turning(door);
	lab_send(BASE, origin, STR("SSH-2.0-origin\r\n"));
	lab_expect(BASE, client, "SSH-2.0-origin\r\n");
	expect_open(0, "ssh.example.org", 66);
	assert_string_equal(kit_record(0)->rule, "ssh");
	close(client);
	close(origin);
	await(2);
	/* The name has not this port, and then neither has its address. */
	pin("api.example.org", KIT_HOLE);
	client = kit_transparent(KIT_HOLE, 22);
	expect_reset(client);
	kit_expect_record(2, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_PORT_NOT_ALLOWED, "api.example.org");
	close(door);
}

static void an_address_whose_pin_is_over_means_nothing(void **state)
{
	int door = lab_listen(KIT_OTHER, 22, NULL), client;

	(void)state;
	pin("ssh.example.org", KIT_OTHER);
	clock_test_set_ms(DAY + HOUR - 1);
	client = program(door, KIT_OTHER, 22);
	close(kit_accept_turning(door));
	close(client);
	await(2);
	/* That was a use. */
	clock_test_set_ms(DAY + 2 * HOUR - 2);
	client = program(door, KIT_OTHER, 22);
	close(kit_accept_turning(door));
	close(client);
	await(4);
	clock_test_set_ms(DAY + 4 * HOUR);
	client = program(door, KIT_OTHER, 22);
	expect_reset(client);
	kit_expect_record(4, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_ADDRESS_DOCUMENTATION, "");
	expect_http(kit_connect_to(KIT_OTHER ":22"),
		    "403 address_documentation");
	assert_false(kit_was_dialled(door));
	close(door);
}

static void a_connection_keeps_its_name_however_long_it_lasts(void **state)
{
	int door = lab_listen(KIT_OTHER, 22, NULL), client, origin, other;

	(void)state;
	pin("ssh.example.org", KIT_OTHER);
	client = program(door, KIT_OTHER, 22);
	origin = kit_accept_turning(door);
	clock_test_set_ms(5 * DAY);
	other = program(door, KIT_OTHER, 22);
	close(kit_accept_turning(door));
	close(other);
	expect_open(1, "ssh.example.org", 66);
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	await(4);
	kit_expect_record(3, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, "ssh.example.org");
	/* Its end was a use, and from there on it is an hour. */
	clock_test_set_ms(5 * DAY + HOUR - 1);
	other = program(door, KIT_OTHER, 22);
	close(kit_accept_turning(door));
	close(other);
	close(door);
}

/* The name moved between lookup and connect. */
static void a_name_that_moved_is_dialled_where_it_was_judged(void **state)
{
	int door = lab_listen(KIT_OTHER, 22, NULL), client, origin;
	int own = lab_listen(KIT_ORIGIN, 22, NULL);
	int bait = lab_listen("10.0.0.5", 22, NULL);

	(void)state;
	pin("ssh.example.org", KIT_OTHER);
	client = program(door, KIT_OTHER, 22);
	origin = kit_accept_turning(door);
	assert_false(kit_was_dialled(own));
	expect_open(0, "ssh.example.org", 66);
	close(client);
	close(origin);
	await(2);
	/* Where nobody is any more: the name's other addresses follow. */
	close(door);
	pin("ssh.example.org", KIT_HOLE);
	client = kit_transparent(KIT_HOLE, 22);
	origin = kit_accept_turning(own);
	close(client);
	close(origin);
	/* An address that may not be dialled (any more) is passed over. */
	pin("ssh.example.org", "10.0.0.5");
	client = kit_connect_to("10.0.0.5:22");
	kit_expect_head(client, "200 OK");
	origin = kit_accept_turning(own);
	assert_false(kit_was_dialled(bait));
	close(client);
	close(origin);
	close(own);
	close(bait);
}

/* --- several names ------------------------------------------------------------- */

static void of_several_names_the_first_bytes_pick_one(void **state)
{
	struct str hello = kit_hello("api.example.org");
	int door = lab_listen(KIT_OTHER, 443, NULL), client, origin;

	(void)state;
	pin("api.example.org", KIT_OTHER);
	pin("both.example.org", KIT_OTHER);
	pin("evil.example.net", KIT_OTHER);	/* allowed once, not now */
	client = program(door, KIT_OTHER, 443);
	lab_send(BASE, client, hello);
	origin = kit_accept_turning(door);
	kit_expect_bytes(origin, hello);
	expect_open(0, "api.example.org", 66);
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	client = program(door, KIT_OTHER, 443);
	lab_send(BASE, client, kit_hello("evil.example.net"));
	expect_alert(client);
	kit_expect_record(2, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "evil.example.net");
	client = program(door, KIT_OTHER, 443);
	lab_send(BASE, client, kit_hello(NULL));
	expect_alert(client);
	kit_expect_record(3, RECORD_FLOW_DENY, RECORD_DENY, REASON_SNI_MISSING,
			  "");
	assert_false(kit_was_dialled(door));
	close(door);
}

/* Both may be reached, in a protocol that is left alone; but it is not known
 * which, so nothing but the asked address may be. */
static void names_of_one_verdict_are_dialled_at_their_address(void **state)
{
	int door = lab_listen(KIT_OTHER, 22, NULL), client, origin;
	int own = lab_listen(KIT_ORIGIN, 22, NULL);

	(void)state;
	pin("both.example.org", KIT_OTHER);
	pin("ssh.example.org", KIT_OTHER);
	client = program(door, KIT_OTHER, 22);
	origin = kit_accept_turning(door);
	expect_open(0, "ssh.example.org", 66);
	lab_send(BASE, origin, STR("SSH"));
	lab_expect(BASE, client, "SSH");
	close(client);
	close(origin);
	lab_turn(BASE);
	close(door);
	pin("both.example.org", KIT_HOLE);
	pin("ssh.example.org", KIT_HOLE);
	client = kit_connect_to(KIT_HOLE ":22");
	expect_http(client, "502 connect_refused");
	assert_false(kit_was_dialled(own));
	close(own);
}

static void names_of_different_verdicts_are_refused_before_a_dial(void **state)
{
	int door = lab_listen(KIT_OTHER, 22, NULL), client;

	(void)state;
	pin("ssh.example.org", KIT_OTHER);
	pin("api.example.org", KIT_OTHER);
	client = program(door, KIT_OTHER, 22);
	expect_reset(client);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_NAME_AMBIGUOUS, "");
	assert_int_equal(kit_record(0)->dst.addr.b[3], 66);
	expect_http(kit_connect_to(KIT_OTHER ":22"), "403 name_ambiguous");
	client = kit_explicit();
	kit_request(client, "http://" KIT_OTHER ":22/", KIT_OTHER ":22");
	expect_http(client, "403 name_ambiguous");
	assert_false(kit_was_dialled(door));
	close(door);
}

static void names_that_all_fail_are_refused_for_what_they_are(void **state)
{
	int client;

	(void)state;
	pin("evil.example.net", KIT_OTHER);
	pin("api.example.org", KIT_OTHER);
	client = kit_transparent(KIT_OTHER, 22);
	expect_reset(client);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_PORT_NOT_ALLOWED, "api.example.org");
}

/* --- by the proxy's port --------------------------------------------------------- */

static void a_literal_is_its_name_to_the_proxy_too(void **state)
{
	struct str hello = kit_hello("api.example.org");
	int door = lab_listen(KIT_OTHER, 443, NULL), client, origin;

	(void)state;
	pin("api.example.org", KIT_OTHER);
	client = kit_connect_to(KIT_OTHER ":443");
	origin = kit_accept_turning(door);
	lab_expect(BASE, client, OK_200);
	lab_send(BASE, client, hello);
	kit_expect_bytes(origin, hello);
	expect_open(0, "api.example.org", 66);
	assert_memory_equal(&kit_record(0)->dns, &question, sizeof(question));
	assert_int_equal(kit_record(0)->asked.b[3], 66);
	close(client);
	close(origin);
	client = kit_connect_to(KIT_OTHER ":443");
	close(kit_accept_turning(door));
	lab_expect(BASE, client, OK_200);
	lab_send(BASE, client, kit_hello("both.example.org"));
	expect_alert(client);
	close(door);
	/* A request to it. */
	door = lab_listen(KIT_OTHER, 80, NULL);
	client = kit_explicit();
	kit_request(client, "http://" KIT_OTHER "/", KIT_OTHER);
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET / HTTP/1.1\r\n");
	lab_send(BASE, origin, STR("HTTP/1.1 204 No Content\r\n\r\n"));
	expect_http(client, "204");
	await(7);
	expect_open(4, "api.example.org", 66);
	kit_expect_record(5, RECORD_HTTP, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	assert_true(kit_same_id(4, 5));
	close(origin);
	close(door);
}

/* A CONNECT is answered before its bytes: they must name one that passes. */
static void inside_a_connect_the_bytes_pick_among_the_names(void **state)
{
	static const struct {
		const char *sni;
		enum reason end;
	} cases[] = {
		{ "api.example.org", REASON_CLIENT_CLOSED },
		{ "both.example.org", REASON_CLIENT_CLOSED },
		{ "evil.example.net", REASON_HOST_NOT_ALLOWED },
		{ "gone.example.org", REASON_NAME_MISMATCH },
		{ NULL, REASON_SNI_MISSING },
	};
	int door = lab_listen(KIT_OTHER, 443, NULL), client, origin;

	(void)state;
	pin("evil.example.net", KIT_OTHER);
	pin("api.example.org", KIT_OTHER);
	pin("both.example.org", KIT_OTHER);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct str hello = kit_hello(cases[i].sni);
		bool fine = cases[i].end == REASON_CLIENT_CLOSED;

		client = kit_connect_to(KIT_OTHER ":443");
		origin = kit_accept_turning(door);
		lab_expect(BASE, client, OK_200);
		lab_send(BASE, client, hello);
		if (fine) {
			kit_expect_bytes(origin, hello);
			close(client);
			lab_expect_fin(BASE, origin);
		} else {
			expect_alert(client);
		}
		close(origin);
		assert_string_equal(reason_word(kit_record(2 * i + 1)->reason),
				    reason_word(cases[i].end));
		/* The open could not know yet: the id joins them (LOG-08). */
		assert_memory_equal(&kit_record(2 * i)->id,
				    &kit_record(2 * i + 1)->id,
				    sizeof(struct id));
		assert_string_equal(kit_record(2 * i)->host.p,
				    "both.example.org");
		if (fine)
			assert_string_equal(kit_record(2 * i + 1)->host.p,
					    cases[i].sni);
	}
	close(door);
}

static void inside_a_connect_each_host_is_judged(void **state)
{
	int door = lab_listen(KIT_OTHER, 80, NULL), client, origin;
	int own = lab_listen(KIT_ORIGIN, 80, NULL);

	(void)state;
	pin("evil.example.net", KIT_OTHER);
	pin("api.example.org", KIT_OTHER);
	client = kit_connect_to(KIT_OTHER ":80");
	origin = kit_accept_turning(door);
	lab_expect(BASE, client, OK_200);
	kit_request(client, "/a", "api.example.org");
	kit_expect_head(origin, "GET /a HTTP/1.1\r\n");
	lab_send(BASE, origin, STR("HTTP/1.1 204 No Content\r\n\r\n"));
	kit_expect_head(client, "204");
	kit_request(client, "/b", "evil.example.net");
	expect_http(client, "403 host_not_allowed");
	close(origin);
	client = kit_connect_to(KIT_OTHER ":80");
	close(kit_accept_turning(door));
	lab_expect(BASE, client, OK_200);
	kit_request(client, "/c", "both.example.org");
	origin = kit_accept_turning(own);
	kit_expect_head(origin, "GET /c HTTP/1.1\r\n");
	close(client);
	close(origin);
	close(door);
	/* Where all of them pass, too. */
	door = lab_listen(KIT_HOLE, 80, NULL);
	pin("api.example.org", KIT_HOLE);
	pin("gone.example.org", KIT_HOLE);
	client = kit_connect_to(KIT_HOLE ":80");
	close(kit_accept_turning(door));
	lab_expect(BASE, client, OK_200);
	kit_request(client, "/d", "api.example.org");
	origin = kit_accept_turning(own);
	kit_expect_head(origin, "GET /d HTTP/1.1\r\n");
	close(client);
	close(origin);
	close(door);
	close(own);
}

/* --- addresses that rules permit ---------------------------------------------------- */

static void an_address_that_is_permitted_needs_no_name(void **state)
{
	int door = lab_listen(KIT_LITERAL, 22, NULL), client, origin;

	(void)state;
	pin("api.example.org", KIT_LITERAL);
	client = program(door, KIT_LITERAL, 22);
	origin = kit_accept_turning(door);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "");
	assert_string_equal(kit_record(0)->rule, "literal");
	close(client);
	close(origin);
	close(door);
	door = lab_listen(KIT_LITERAL, 443, NULL);
	client = program(door, KIT_LITERAL, 443);
	lab_send(BASE, client, kit_hello(NULL));
	origin = kit_accept_turning(door);
	close(client);
	close(origin);
	client = kit_connect_to(KIT_LITERAL ":443");
	origin = kit_accept_turning(door);
	lab_expect(BASE, client, OK_200);
	lab_send(BASE, client, kit_hello(NULL));
	kit_expect_bytes(origin, kit_hello(NULL));
	close(client);
	close(origin);
	close(door);
}

static void a_deny_rule_for_one_of_its_names_shuts_it(void **state)
{
	char text[2048];
	int client;

	(void)state;
	assert_true(snprintf(text, sizeof(text), "%s[deny no]\n"
			     "hosts = api.example.org\n", policy) > 0);
	(void)kit_set_policy(text);
	pin("api.example.org", KIT_LITERAL);
	client = kit_transparent(KIT_LITERAL, 22);
	expect_reset(client);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_DENIED, "api.example.org");
	expect_http(kit_connect_to(KIT_LITERAL ":443"), "403 host_denied");
	client = kit_transparent(KIT_LITERAL, 443);
	expect_reset(client);
	kit_expect_record(2, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_DENIED, "api.example.org");
}

/* --- another policy ------------------------------------------------------------------ */

static void all_names_of_an_open_flow_are_judged_again(void **state)
{
	int door = lab_listen(KIT_OTHER, 22, NULL), client, origin;
	struct conn_rejudged what;

	(void)state;
	pin("both.example.org", KIT_OTHER);
	pin("ssh.example.org", KIT_OTHER);
	client = program(door, KIT_OTHER, 22);
	origin = kit_accept_turning(door);
	lab_send(BASE, origin, STR("SSH"));
	lab_expect(BASE, client, "SSH");
	what = kit_set_policy(policy);
	assert_int_equal(what.kept, 1);
	/* The flow is one of ssh.example.org, or of the other: who knows? */
	what = kit_set_policy("[allow ssh]\nhosts = ssh.example.org\n"
			      "ports = 22\nprotocol = ssh\n" RANGES);
	assert_int_equal(what.ended, 1);
	expect_reset(client);
	close(origin);
	client = program(door, KIT_OTHER, 22);
	expect_reset(client);
	kit_expect_record(2, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_NAME_AMBIGUOUS, "");
	close(door);
}

/* The rule of the one that was dialled for leaves the bytes alone now: they
 * will not say any more which it is. */
static void a_name_that_will_not_be_shown_any_more_must_not_differ(void **state)
{
	int door = lab_listen(KIT_OTHER, 443, NULL), client, origin;
	struct conn_rejudged what;

	(void)state;
	pin("both.example.org", KIT_OTHER);
	pin("api.example.org", KIT_OTHER);
	client = kit_connect_to(KIT_OTHER ":443");
	origin = kit_accept_turning(door);
	lab_expect(BASE, client, OK_200);
	what = kit_set_policy(
		"[allow tcp]\nhosts = api.example.org\nports = 443\n"
		"protocol = tcp\n" RANGES
		"[allow web]\nhosts = both.example.org\n" RANGES);
	assert_int_equal(what.ended, 1);
	expect_reset(client);
	close(origin);
	close(door);
}

static void a_name_that_is_denied_by_now_has_no_address(void **state)
{
	int door = lab_listen(KIT_OTHER, 22, NULL), client;

	(void)state;
	pin("ssh.example.org", KIT_OTHER);
	(void)kit_set_policy("[allow web]\nhosts = api.example.org\n" RANGES);
	client = program(door, KIT_OTHER, 22);
	expect_reset(client);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "ssh.example.org");
	assert_false(kit_was_dialled(door));
	close(door);
}

static void a_hello_that_is_awaited_is_judged_by_the_new_policy(void **state)
{
	int door = lab_listen(KIT_OTHER, 443, NULL), client;

	(void)state;
	pin("api.example.org", KIT_OTHER);
	client = program(door, KIT_OTHER, 443);
	(void)kit_set_policy("[allow web]\nhosts = both.example.org\n" RANGES);
	lab_send(BASE, client, kit_hello("api.example.org"));
	expect_alert(client);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "api.example.org");
	assert_false(kit_was_dialled(door));
	close(door);
}

#define NAMES_TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		NAMES_TEST(
		 the_first_bytes_say_the_name_that_the_address_was_given_for),
		NAMES_TEST(
		 another_name_at_the_address_is_judged_and_resolved_ADDR_18),
		NAMES_TEST(each_request_says_which_host_is_meant),
		NAMES_TEST(a_server_may_speak_first_to_the_one_name_TUN_14),
		NAMES_TEST(an_address_whose_pin_is_over_means_nothing),
		NAMES_TEST(a_connection_keeps_its_name_however_long_it_lasts),
		NAMES_TEST(a_name_that_moved_is_dialled_where_it_was_judged),
		NAMES_TEST(of_several_names_the_first_bytes_pick_one),
		NAMES_TEST(names_of_one_verdict_are_dialled_at_their_address),
		NAMES_TEST(
		 names_of_different_verdicts_are_refused_before_a_dial),
		NAMES_TEST(names_that_all_fail_are_refused_for_what_they_are),
		NAMES_TEST(a_literal_is_its_name_to_the_proxy_too),
		NAMES_TEST(inside_a_connect_the_bytes_pick_among_the_names),
		NAMES_TEST(inside_a_connect_each_host_is_judged),
		NAMES_TEST(an_address_that_is_permitted_needs_no_name),
		NAMES_TEST(a_deny_rule_for_one_of_its_names_shuts_it),
		NAMES_TEST(all_names_of_an_open_flow_are_judged_again),
		NAMES_TEST(
		 a_name_that_will_not_be_shown_any_more_must_not_differ),
		NAMES_TEST(a_name_that_is_denied_by_now_has_no_address),
		NAMES_TEST(a_hello_that_is_awaited_is_judged_by_the_new_policy),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
