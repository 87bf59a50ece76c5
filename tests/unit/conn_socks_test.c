/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_socks_test.c - the SOCKS port: the same judgement as of a CONNECT
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

#include "proxy/conn.h"
#include "proxy/conn_own.h"
#include "tests/unit/conn_kit.h"
#include "tests/unit/proxy_lab.h"

#define HELLO		STR("\x05\x01\x00")
#define HELLO_ANSWER	STR("\x05\x00")
#define ANSWER		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define ACCESS_DENIED	"\x15\x03\x01\x00\x02\x02\x31"
#define DECODE_ERROR	"\x15\x03\x01\x00\x02\x02\x32"

/* A policy that allows addresses where the lab has no route to. */
#define NOWHERE \
	"[policy]\nname = nowhere\n[allow far]\naddresses = 192.0.2.0/24\n" \
	"ports = 22\nprotocol = ssh\nreason = no route to it\n"

/* --- a client ------------------------------------------------------------------ */

static int socks(void)
{
	uint16_t port;
	int door = lab_listen("127.0.0.1", 0, &port);
	int client = lab_connect("127.0.0.1", port);

	conn_start_socks(&kit.sandbox, lab_accept(door), &lab_src);
	close(door);
	return client;
}

/* A CONNECT of version 5 to a name as it stands; good until the next one. */
static struct str request(const char *name, uint16_t port)
{
	static char m[5 + 255 + 2];
	size_t n = strlen(name);

	assert_true(n <= 255);
	memcpy(m, "\x05\x01\x00\x03", 4);
	m[4] = (char)n;
	memcpy(m + 5, name, n);
	m[5 + n] = (char)(port >> 8);
	m[6 + n] = (char)port;
	return str_make(m, 7 + n);
}

/* The same to an IPv4 address. */
static struct str request_v4(const char *addr, uint16_t port)
{
	static char m[10] = { 5, 1, 0, 1 };
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(str_from(addr), &a), 0);
	memcpy(m + 4, a.b, 4);
	m[8] = (char)(port >> 8);
	m[9] = (char)port;
	return str_make(m, sizeof(m));
}

/* Greeted, and the request is sent. */
static int ask(struct str message)
{
	int client = socks();

	lab_send(BASE, client, HELLO);
	kit_expect_bytes(client, HELLO_ANSWER);
	lab_send(BASE, client, message);
	return client;
}

/* SOCKS-10: whatever was asked for and came of it, the address is 0.0.0.0:0. */
static void expect_reply(int client, unsigned reply)
{
	char want[10] = { 5, (char)reply, 0, 1 };

	kit_expect_bytes(client, str_make(want, sizeof(want)));
}

static void expect_refused(int client, unsigned reply)
{
	expect_reply(client, reply);
	lab_expect_fin(BASE, client);
	close(client);
}

static void expect_alert(int client, const char *alert)
{
	kit_expect_bytes(client, str_make(alert, 7));
	lab_expect_fin(BASE, client);
	close(client);
}

/* --- what is granted --------------------------------------------------------------- */

static void a_server_may_speak_first_TUN_14(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), origin;
	int client = ask(request("SSH.example.org.", 22));

	(void)state;
	expect_reply(client, 0);
	origin = lab_accept(door);
	lab_send(BASE, origin, STR("SSH-2.0-origin\r\n"));
	lab_expect(BASE, client, "SSH-2.0-origin\r\n");
	lab_send(BASE, client, STR("SSH-2.0-client\r\n"));
	lab_expect(BASE, origin, "SSH-2.0-client\r\n");
	shutdown(client, SHUT_WR);
	lab_expect_fin(BASE, origin);
	lab_send(BASE, origin, STR("bye"));
	lab_expect(BASE, client, "bye");
	close(origin);
	lab_expect_fin(BASE, client);
	close(client);
	close(door);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "ssh.example.org");
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, "ssh.example.org");
	assert_int_equal(kit_record(1)->via, RECORD_VIA_SOCKS);
	assert_string_equal(kit_record(1)->proto, "ssh");
	assert_string_equal(kit_record(1)->rule, "ssh");
	assert_int_equal(kit_record(1)->dst.port, 22);
	assert_int_equal(kit_record(1)->dst.addr.b[3], 10);
	assert_int_equal(kit_record(1)->src.addr.b[0], 127);
}

static void tls_is_granted_when_connected_and_judged_by_its_hello(
	void **state)
{
	struct str hello = kit_hello("api.example.org");
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	int client = ask(request("api.example.org", 443));
	char byte;

	(void)state;
	expect_reply(client, 0);
	origin = lab_accept(door);
	lab_send(BASE, client, hello);
	kit_expect_bytes(origin, hello);
	lab_send(BASE, origin, STR("server hello"));
	lab_expect(BASE, client, "server hello");
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	assert_string_equal(kit_record(1)->sni.p, "api.example.org");

	client = ask(request("api.example.org", 443));
	expect_reply(client, 0);
	origin = lab_accept(door);
	lab_send(BASE, client, kit_hello("evil.example.net"));
	expect_alert(client, ACCESS_DENIED);
	lab_wait_readable(BASE, origin);
	assert_true(recv(origin, &byte, 1, 0) <= 0);
	kit_expect_record(3, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_NAME_MISMATCH, "api.example.org");
	close(origin);
	close(door);
}

static void http_behind_a_grant_is_judged_request_by_request(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), origin;
	int client = ask(request("api.example.org", 80));

	(void)state;
	expect_reply(client, 0);
	origin = lab_accept(door);	/* connected before it was granted */
	kit_request(client, "/in", "api.example.org");
	kit_expect_head(origin, "GET /in HTTP/1.1\r\n");
	lab_send(BASE, origin, STR(ANSWER));
	kit_expect_head(client, "HTTP/1.1 200 OK\r\n");
	lab_expect(BASE, client, "hello");
	kit_request(client, "/out", "evil.example.net");
	kit_expect_head(client, "HTTP/1.1 403 host_mismatch\r\n");
	close(client);
	close(origin);
	kit_expect_record(1, RECORD_HTTP, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	assert_int_equal(kit_record(1)->via, RECORD_VIA_SOCKS);
	assert_true(kit_same_id(0, 1));
	close(door);
}

/* All in one segment, the ClientHello too; then each byte by itself. */
static void messages_come_in_any_pieces_SOCKS_08(void **state)
{
	struct str hello = kit_hello("api.example.org");
	struct str asked = request("api.example.org", 443);
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin, client;
	char all[1024];
	size_t n = 0, i;

	(void)state;
	memcpy(all, HELLO.p, HELLO.n);
	n += HELLO.n;
	memcpy(all + n, asked.p, asked.n);
	n += asked.n;
	memcpy(all + n, hello.p, hello.n);
	n += hello.n;

	client = socks();
	lab_send(BASE, client, str_make(all, n));
	kit_expect_bytes(client, HELLO_ANSWER);
	expect_reply(client, 0);
	origin = lab_accept(door);
	kit_expect_bytes(origin, hello);
	lab_reset(client);
	lab_expect_reset(BASE, origin);
	close(origin);

	client = socks();
	for (i = 0; i < n; i++)
		lab_send(BASE, client, str_make(all + i, 1));
	kit_expect_bytes(client, HELLO_ANSWER);
	expect_reply(client, 0);
	origin = lab_accept(door);
	kit_expect_bytes(origin, hello);
	lab_reset(client);
	lab_expect_reset(BASE, origin);
	close(origin);
	close(door);
}

static void a_password_is_let_pass_whatever_it_is_SOCKS_07(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), origin, client = socks();

	(void)state;
	lab_send(BASE, client, STR("\x05\x01\x02"));
	kit_expect_bytes(client, STR("\x05\x02"));
	lab_send(BASE, client, STR("\x01\x04user\x00"));
	kit_expect_bytes(client, STR("\x01\x00"));
	lab_send(BASE, client, request("ssh.example.org", 22));
	expect_reply(client, 0);
	origin = lab_accept(door);
	close(client);
	close(origin);

	client = socks();
	lab_send(BASE, client, STR("\x05\x01\x02"));
	kit_expect_bytes(client, STR("\x05\x02"));
	lab_send(BASE, client, STR("\x05\x04user\x00"));
	kit_expect_bytes(client, STR("\x01\x01"));
	lab_expect_fin(BASE, client);
	close(client);
	kit_expect_record(2, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_REQUEST_MALFORMED, "");

	/* GSSAPI alone, and nothing at all. */
	client = socks();
	lab_send(BASE, client, STR("\x05\x01\x01"));
	kit_expect_bytes(client, STR("\x05\xff"));
	lab_expect_fin(BASE, client);
	close(client);
	client = socks();
	lab_send(BASE, client, STR("\x05\x00"));
	kit_expect_bytes(client, STR("\x05\xff"));
	close(client);
	kit_expect_record(3, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_METHOD_NOT_SUPPORTED, "");
	close(door);
}

static void version_4_has_the_same_policy_SOCKS_09(void **state)
{
	static const char granted[8] = { 0, 0x5a }, refused[8] = { 0, 0x5b };
	static const struct str no[] = {
		{ "\x04\x01\x01\xbb\x7f\x00\x00\x01\x00", 9 },
		{ "\x04\x01\x01\xbb\x00\x00\x00\x01\x00""a.example.net\x00",
		  23 },
		{ "\x04\x02\x00\x16\xcb\x00\x71\x0a\x00", 9 },	/* BIND */
	};
	static const enum reason why[] = {
		REASON_ADDRESS_LOOPBACK, REASON_HOST_NOT_ALLOWED,
		REASON_METHOD_NOT_SUPPORTED,
	};
	int door = lab_listen(KIT_ORIGIN, 22, NULL), origin, client;
	char endless[10 << 10];
	size_t i;

	(void)state;
	client = socks();
	lab_send(BASE, client, STR("\x04\x01\x00\x16\x00\x00\x00\x01me\x00"
				   "ssh.example.org\x00"));
	kit_expect_bytes(client, str_make(granted, 8));
	origin = lab_accept(door);
	lab_send(BASE, origin, STR("SSH-2.0-origin\r\n"));
	lab_expect(BASE, client, "SSH-2.0-origin\r\n");
	close(client);
	close(origin);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "ssh.example.org");
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, "ssh.example.org");
	for (i = 0; i < ARRAY_SIZE(no); i++) {
		client = socks();
		lab_send(BASE, client, no[i]);
		kit_expect_bytes(client, str_make(refused, 8));
		lab_expect_fin(BASE, client);
		close(client);
		assert_int_equal(kit_record(2 + i)->reason, why[i]);
	}
	memset(endless, 'u', sizeof(endless));
	memcpy(endless, "\x04\x01\x01\xbb\x00\x00\x00\x01", 8);
	client = socks();
	lab_send(BASE, client, str_make(endless, sizeof(endless)));
	kit_expect_bytes(client, str_make(refused, 8));
	close(client);
	kit_expect_record(5, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_REQUEST_MALFORMED, "");
	assert_false(kit_was_dialled(door));
	close(door);
}

/* --- what is not --------------------------------------------------------------- */

static void each_refusal_has_its_code_and_record_SOCKS_10(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL);

	(void)state;
	expect_refused(ask(request("evil.example.net", 443)), 2);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "evil.example.net");
	assert_int_equal(kit_record(0)->via, RECORD_VIA_SOCKS);
	assert_int_equal(kit_record(0)->dst.port, 443);
	expect_refused(ask(request("api.example.org", 8443)), 2);
	kit_expect_record(1, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_PORT_NOT_ALLOWED, "api.example.org");
	expect_refused(ask(request("inside.example.org", 443)), 2);
	kit_expect_record(2, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_ADDRESS_PRIVATE, "inside.example.org");
	expect_refused(ask(request("gone.example.org", 443)), 4);
	kit_expect_record(3, RECORD_FLOW_DENY, RECORD_ERROR,
			  REASON_DNS_NXDOMAIN, "gone.example.org");
	expect_refused(ask(request("dead.example.org", 443)), 5);
	kit_expect_record(5, RECORD_FLOW_CLOSE, RECORD_ERROR,
			  REASON_CONNECT_REFUSED, "dead.example.org");
	kit.audit_down = true;
	expect_refused(ask(request("api.example.org", 443)), 1);
	kit.audit_down = false;
	kit_set_policy(NOWHERE);
	expect_refused(ask(request_v4("192.0.2.7", 22)), 4);
	kit_expect_record(8, RECORD_FLOW_CLOSE, RECORD_ERROR,
			  REASON_CONNECT_UNREACHABLE, "");
	/* One that takes its time to fail. */
	assert_int_equal(reason_info(REASON_CONNECT_TIMEOUT)->socks_reply, 4);
	assert_false(kit_was_dialled(door));
	close(door);
}

static void names_that_are_literals_are_judged_as_such_SOCKS_03(void **state)
{
	static const struct {
		const char *host;
		enum reason why;
	} no[] = {
		{ "127.0.0.1", REASON_ADDRESS_LOOPBACK },
		{ "[::1]", REASON_ADDRESS_LOOPBACK },
		{ "::1", REASON_ADDRESS_LOOPBACK },
		{ "169.254.169.254", REASON_ADDRESS_METADATA },
		{ "::ffff:169.254.169.254", REASON_ADDRESS_METADATA },
		{ "2130706433", REASON_AUTHORITY_INVALID },
		{ "0x7f.1", REASON_AUTHORITY_INVALID },
	};
	int bait = lab_listen("127.0.0.1", 22, NULL);
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(no); i++) {
		expect_refused(ask(request(no[i].host, 22)), 2);
		assert_int_equal(kit_record(i)->event, RECORD_FLOW_DENY);
		assert_int_equal(kit_record(i)->reason, no[i].why);
		assert_int_equal(kit_record(i)->host.n, 0);
	}
	expect_refused(ask(request_v4("127.0.0.1", 22)), 2);
	assert_int_equal(kit_record(i)->dst.addr.b[0], 127);
	assert_false(kit_was_dialled(bait));
	close(bait);
}

static void an_address_is_the_name_it_was_given_for_SOCKS_04(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), origin, client;

	(void)state;
	client = ask(request_v4(kit_synthetic("ssh.example.org"), 22));
	expect_reply(client, 0);
	origin = lab_accept(door);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "ssh.example.org");
	assert_int_equal(kit_record(0)->dns.b[0], 0xd5);
	close(client);
	close(origin);
	(void)kit_record(1);
	/* Spelled out it is the same; one that was never given is nothing. */
	client = ask(request(kit_synthetic("ssh.example.org"), 22));
	expect_reply(client, 0);
	origin = lab_accept(door);
	close(client);
	close(origin);
	(void)kit_record(3);
	expect_refused(ask(request_v4("198.18.77.77", 22)), 2);
	kit_expect_record(4, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_ADDRESS_NOT_ALLOWED, "");
	/* Nor does knowing a good address help. */
	expect_refused(ask(request_v4(KIT_ORIGIN, 22)), 2);
	assert_false(kit_was_dialled(door));
	close(door);
}

static void commands_that_open_doors_are_not_there_SOCKS_05(void **state)
{
	static const unsigned char command[] = { 2, 3, 9 };
	size_t fds, i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(command); i++) {
		char m[10] = { 5, (char)command[i], 0, 1 };
		int client = socks();

		lab_send(BASE, client, HELLO);
		kit_expect_bytes(client, HELLO_ANSWER);
		fds = lab_open_fds();
		lab_send(BASE, client, str_make(m, sizeof(m)));
		expect_reply(client, 7);
		assert_true(lab_open_fds() <= fds);
		lab_expect_fin(BASE, client);
		close(client);
		kit_expect_record(i, RECORD_FLOW_DENY, RECORD_DENY,
				  REASON_METHOD_NOT_SUPPORTED, "");
	}
	/* An address of no known type. */
	expect_refused(ask(STR("\x05\x01\x00\x02")), 8);
	assert_int_equal(kit_record(3)->reason, REASON_REQUEST_MALFORMED);
}

static void half_a_message_is_answered_and_recorded_SOCKS_02(void **state)
{
	int client = ask(STR("\x05\x01\x00\x03\xc8" "0123456789"));

	(void)state;
	shutdown(client, SHUT_WR);
	expect_refused(client, 1);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_CLIENT_CLOSED_EARLY, "");
	expect_refused(ask(request("", 443)), 1);
	kit_expect_record(1, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_AUTHORITY_INVALID, "");
	client = socks();
	close(client);
	kit_expect_record(2, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_CLIENT_CLOSED_EARLY, "");
	client = ask(STR_NONE);
	close(client);
	kit_expect_record(3, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_CLIENT_CLOSED_EARLY, "");
}

/* The one connection there is. */
static struct conn *only(void)
{
	assert_int_equal(kit.sandbox.nconns, 1);
	return container_of(kit.sandbox.conns.next, struct conn, node);
}

static void a_drip_of_bytes_does_not_move_the_deadline_SOCKS_02(void **state)
{
	struct timeval at, later;
	int client = ask(STR("\x05\x01\x00\x03\xff"));
	size_t i;

	(void)state;
	assert_true(event_pending(&only()->ask->timer, EV_TIMEOUT, &at));
	for (i = 0; i < 40; i++)
		lab_send(BASE, client, STR("a"));
	assert_true(event_pending(&only()->ask->timer, EV_TIMEOUT, &later));
	assert_true(evutil_timercmp(&at, &later, ==));
	event_active(&only()->ask->timer, EV_TIMEOUT, 1);
	expect_refused(client, 1);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HEADER_TIMEOUT, "");
}

static void other_protocols_are_told_so_in_their_own_words(void **state)
{
	int client = socks();

	(void)state;
	lab_send(BASE, client, kit_hello("api.example.org"));
	expect_alert(client, DECODE_ERROR);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_TLS_ON_PLAIN_PORT, "");
	client = socks();
	lab_send(BASE, client, STR("CONNECT api.example.org:443 HTTP/1.1\r\n"
				   "Host: api.example.org:443\r\n\r\n"));
	kit_expect_head(client, "HTTP/1.1 400 http_on_socks_port\r\n");
	close(client);
	kit_expect_record(1, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HTTP_ON_SOCKS_PORT, "");
	client = socks();
	lab_send(BASE, client, STR("\x06\x01\x00"));
	lab_expect_reset(BASE, client);
	close(client);
	kit_expect_record(2, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_REQUEST_MALFORMED, "");
	/* Version 4 in the middle of 5. */
	expect_refused(ask(STR("\x04\x01\x00\x16\xcb\x00\x71\x0a\x00")), 1);
}

static void socks_on_the_http_port_is_told_so(void **state)
{
	static const char refused[8] = { 0, 0x5b };
	int client = kit_explicit();

	(void)state;
	lab_send(BASE, client, HELLO);
	kit_expect_bytes(client, STR("\x05\xff"));
	lab_expect_fin(BASE, client);
	close(client);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_SOCKS_ON_HTTP_PORT, "");
	client = kit_explicit();
	lab_send(BASE, client, STR("\x04\x01\x00\x16\xcb\x00\x71\x0a\x00"));
	kit_expect_bytes(client, str_make(refused, 8));
	close(client);
	assert_int_equal(kit_record(1)->reason, REASON_SOCKS_ON_HTTP_PORT);
}

static void a_granted_flow_is_judged_again_with_the_policy_POL_06(
	void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	int waiting = ask(STR_NONE), client;
	struct conn_rejudged what;

	(void)state;
	client = ask(request("api.example.org", 443));
	expect_reply(client, 0);
	origin = lab_accept(door);
	what = kit_set_policy("[policy]\nname = shut\n");
	assert_int_equal(what.ended, 1);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_POLICY_RELOAD, "api.example.org");
	lab_send(BASE, client, kit_hello("api.example.org"));
	expect_alert(client, ACCESS_DENIED);
	close(origin);
	/* What has not asked yet is judged by the new one. */
	lab_send(BASE, waiting, request("api.example.org", 443));
	expect_refused(waiting, 2);
	close(door);
}

#define socks_unit(f)	cmocka_unit_test_setup_teardown(f, kit_setup, \
							kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		socks_unit(a_server_may_speak_first_TUN_14),
		socks_unit(
			tls_is_granted_when_connected_and_judged_by_its_hello),
		socks_unit(http_behind_a_grant_is_judged_request_by_request),
		socks_unit(messages_come_in_any_pieces_SOCKS_08),
		socks_unit(a_password_is_let_pass_whatever_it_is_SOCKS_07),
		socks_unit(version_4_has_the_same_policy_SOCKS_09),
		socks_unit(each_refusal_has_its_code_and_record_SOCKS_10),
		socks_unit(
			names_that_are_literals_are_judged_as_such_SOCKS_03),
		socks_unit(an_address_is_the_name_it_was_given_for_SOCKS_04),
		socks_unit(commands_that_open_doors_are_not_there_SOCKS_05),
		socks_unit(half_a_message_is_answered_and_recorded_SOCKS_02),
		socks_unit(
			a_drip_of_bytes_does_not_move_the_deadline_SOCKS_02),
		socks_unit(other_protocols_are_told_so_in_their_own_words),
		socks_unit(socks_on_the_http_port_is_told_so),
		socks_unit(a_granted_flow_is_judged_again_with_the_policy_POL_06),
	};

	lab_enter();
	return cmocka_run_group_tests_name("conn_socks", tests, NULL, NULL);
}
