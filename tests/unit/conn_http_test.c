/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_http_test.c - HTTP on a connection: who may be asked, and what is kept
 *
 * The engine has tests of its own; here it works on real rules, dials and
 * records, on each of the ways in.
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
#include "tests/unit/conn_kit.h"
#include "tests/unit/proxy_lab.h"

#define ANSWER	"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

static void expect_answer(int fd)
{
	kit_expect_head(fd, "HTTP/1.1 200 OK\r\n");
	lab_expect(BASE, fd, "hello");
}

/* A refusal's status and reason word, and its body to the end. */
static void expect_refusal(int fd, const char *status, const char *word)
{
	char got[4096], want[128];
	size_t n = 0;

	assert_true(snprintf(want, sizeof(want), "HTTP/1.1 %s %s\r\n", status,
			     word) > 0);
	do {
		assert_true(n < sizeof(got) - 1);
		lab_recv(BASE, fd, got + n, 1);
		got[++n] = '\0';
	} while (!strstr(got, "}\n"));
	if (strncmp(got, want, strlen(want)))
		fail_msg("not '%s' but:\n%s", want, got);
}

static void a_request_by_absolute_form_is_a_flow_of_its_own(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), origin;
	int client = kit_explicit();
	const struct record *r;

	(void)state;
	kit_request(client, "http://api.example.org/a?secret", "api.example.org");
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET /a?secret HTTP/1.1\r\n");
	lab_send(BASE, origin, STR(ANSWER));
	expect_answer(client);
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	kit_expect_record(1, RECORD_HTTP, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	r = kit_record(1);
	assert_int_equal(r->via, RECORD_VIA_FORWARD);
	assert_string_equal(r->path.p, "/a");
	assert_int_equal(r->dst.addr.b[0], 203);
	assert_int_equal(kit_record(2)->event, RECORD_FLOW_CLOSE);
	assert_true(kit_record(2)->bytes_down >= sizeof(ANSWER) - 1);
	assert_true(kit_same_id(0, 1) && kit_same_id(1, 2));
	close(door);
}

static void a_refused_request_has_words_and_one_record(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL);
	int client = kit_explicit();

	(void)state;
	kit_request(client, "http://evil.example.net/", "evil.example.net");
	expect_refusal(client, "403", "host_not_allowed");
	kit_expect_record(0, RECORD_HTTP, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "evil.example.net");
	/* The connection goes on, and is judged anew. */
	kit_request(client, "http://inside.example.org/", "inside.example.org");
	expect_refusal(client, "403", "address_private");
	kit_expect_record(1, RECORD_HTTP, RECORD_DENY, REASON_ADDRESS_PRIVATE,
			  "inside.example.org");
	kit_request(client, "http://gone.example.org/", "gone.example.org");
	expect_refusal(client, "502", "dns_nxdomain");
	/* HTTP in clear to a port whose rule says TLS. */
	kit_request(client, "http://api.example.org:443/", "api.example.org:443");
	expect_refusal(client, "403", "protocol_not_allowed");
	assert_int_equal(kit_records(), 4);
	assert_false(kit_was_dialled(door));
	close(client);
	close(door);
}

static void what_is_answered_here_is_judged_by_its_method_too(void **state)
{
	int client = kit_explicit();

	(void)state;
	kit_set_policy("[policy]\nname = tests\n[allow web]\n"
		       "hosts = api.example.org\nmethods = TRACE\n"
		       "reason = r\n");
	lab_send(BASE, client, STR(
		"OPTIONS http://api.example.org/ HTTP/1.1\r\n"
		"Host: api.example.org\r\nMax-Forwards: 0\r\n\r\n"));
	expect_refusal(client, "403", "method_not_allowed");
	kit_expect_record(0, RECORD_HTTP, RECORD_DENY,
			  REASON_METHOD_NOT_ALLOWED, "api.example.org");
	lab_send(BASE, client, STR(
		"TRACE http://api.example.org/ HTTP/1.1\r\n"
		"Host: api.example.org\r\nMax-Forwards: 0\r\n\r\n"));
	kit_expect_head(client, "Content-Type: message/http\r\n");
	kit_expect_record(1, RECORD_HTTP, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	kit_expect_head(client, "TRACE http://api.example.org/ HTTP/1.1\r\n");
	/* About us, not about the host that a program thinks it asks. */
	lab_send(BASE, client, STR("OPTIONS * HTTP/1.1\r\n"
				   "Host: evil.example.net\r\n\r\n"));
	kit_expect_head(client, "OPTIONS, TRACE, CONNECT\r\n");
	kit_expect_record(2, RECORD_HTTP, RECORD_ALLOW, REASON_ALLOWED, "");
	assert_int_equal(kit_record(2)->dst.port, 0);
	assert_int_equal(kit_records(), 3);
	close(client);
}

static void a_connection_without_a_request_is_recorded_LOG_07(void **state)
{
	int client = kit_transparent(kit_synthetic("api.example.org"), 80);

	(void)state;
	close(client);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_CLIENT_CLOSED_EARLY, "api.example.org");
	client = kit_explicit();
	lab_send(BASE, client, STR("GET http://api"));
	close(client);
	assert_int_equal(kit_record(1)->act, RECORD_DENY);
}

static void each_request_of_a_named_flow_is_judged_by_its_host(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), origin;
	int client = kit_transparent(kit_synthetic("api.example.org"), 80);

	(void)state;
	kit_request(client, "/1", "api.example.org");
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET /1 HTTP/1.1\r\n");
	lab_send(BASE, origin, STR(ANSWER));
	expect_answer(client);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	assert_int_equal(kit_record(0)->dns.b[0], 0xd5);
	/* Another Host behind the first one: the front end never sees it. */
	kit_request(client, "/2", "evil.example.net");
	expect_refusal(client, "403", "host_mismatch");
	assert_int_equal(kit_record(2)->reason, REASON_HOST_MISMATCH);
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	close(door);
}

static void a_known_address_is_only_as_good_as_the_host_said_ADDR_18(
	void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), origin, client;

	(void)state;
	client = kit_transparent(KIT_OTHER, 80);
	kit_request(client, "/", "api.example.org");
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "Host: api.example.org\r\n");
	lab_send(BASE, origin, STR(ANSWER));
	expect_answer(client);
	assert_int_equal(kit_record(0)->asked.b[3], 66);
	assert_int_equal(kit_record(0)->dst.addr.b[3], 10);
	kit_request(client, "/", "evil.example.net");
	expect_refusal(client, "403", "host_not_allowed");
	close(client);
	close(origin);

	client = kit_transparent(KIT_OTHER, 80);
	kit_request(client, "/", KIT_OTHER);
	expect_refusal(client, "403", "address_documentation");
	close(client);
	client = kit_transparent(KIT_OTHER, 80);
	kit_request(client, "/", "203.0.113.67");
	expect_refusal(client, "403", "host_mismatch");
	close(client);
	assert_false(kit_was_dialled(door));
	close(door);
}

static void http_inside_a_connect_is_judged_too_TUN_15(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), origin;
	int client = kit_explicit();

	(void)state;
	lab_send(BASE, client, STR("CONNECT api.example.org:80 HTTP/1.1\r\n"
				   "Host: api.example.org:80\r\n\r\n"));
	lab_expect(BASE, client, "HTTP/1.1 200 OK\r\n\r\n");
	origin = lab_accept(door);	/* connected before the 200 */
	kit_request(client, "/in", "api.example.org");
	kit_expect_head(origin, "GET /in HTTP/1.1\r\n");
	lab_send(BASE, origin, STR(ANSWER));
	expect_answer(client);
	kit_request(client, "/out", "evil.example.net");
	expect_refusal(client, "403", "host_mismatch");
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	assert_int_equal(kit_record(1)->event, RECORD_HTTP);
	assert_int_equal(kit_record(1)->via, RECORD_VIA_CONNECT);
	assert_true(kit_same_id(0, 1));
	assert_false(kit_was_dialled(door));
	close(door);
}

static void a_connect_whose_origin_left_is_dialled_anew(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), origin;
	int client = kit_explicit();

	(void)state;
	lab_send(BASE, client, STR("CONNECT api.example.org:80 HTTP/1.1\r\n"
				   "Host: api.example.org:80\r\n\r\n"));
	lab_expect(BASE, client, "HTTP/1.1 200 OK\r\n\r\n");
	close(lab_accept(door));
	kit_request(client, "/", "api.example.org");
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET / HTTP/1.1\r\n");
	lab_send(BASE, origin, STR(ANSWER));
	expect_answer(client);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_ORIGIN_CLOSED, "api.example.org");
	kit_expect_record(2, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	assert_false(kit_same_id(0, 2));
	close(client);
	close(origin);
	close(door);
}

static void a_websocket_becomes_a_tunnel_TUN_17(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), origin;
	int client = kit_transparent(kit_synthetic("api.example.org"), 80);
	const struct record *r;

	(void)state;
	lab_send(BASE, client,
		 STR("GET /ws HTTP/1.1\r\nHost: api.example.org\r\n"
		     "Connection: Upgrade\r\nUpgrade: websocket\r\n"
		     "Sec-WebSocket-Version: 13\r\n"
		     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"));
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET /ws HTTP/1.1\r\n");
	/* The first frame comes in the segment of the 101. */
	lab_send(BASE, origin,
		 STR("HTTP/1.1 101 Switching Protocols\r\n"
		     "Connection: Upgrade\r\nUpgrade: websocket\r\n"
		     "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
		     "\r\n\x81\x05hello"));
	kit_expect_head(client, "HTTP/1.1 101 ");
	lab_expect(BASE, client, "\x81\x05hello");
	lab_send(BASE, client, STR("\x81\x85" "mask" "xxxxx"));
	lab_expect(BASE, origin, "\x81\x85" "mask" "xxxxx");
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	assert_int_equal(kit_record(1)->event, RECORD_HTTP);
	r = kit_record(2);
	kit_expect_record(2, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, "api.example.org");
	assert_true(r->bytes_up > 11 && r->bytes_down > 7);
	assert_true(kit_same_id(0, 1) && kit_same_id(1, 2));
	close(door);
}

static void a_run_that_ends_cuts_a_request_in_flight(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), origin;
	int client = kit_explicit();

	(void)state;
	kit_request(client, "http://api.example.org/slow", "api.example.org");
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET /slow HTTP/1.1\r\n");
	conn_end_all(&kit.sandbox, REASON_RUN_ENDED);
	lab_expect_reset(BASE, client);
	lab_wait_readable(BASE, origin);
	close(client);
	close(origin);
	close(door);
	assert_int_equal(kit_records(), 3);
	kit_expect_record(2, RECORD_FLOW_CLOSE, RECORD_ALLOW, REASON_RUN_ENDED,
			  "api.example.org");
}

#define http_unit(f)	cmocka_unit_test_setup_teardown(f, kit_setup, \
							kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		http_unit(a_request_by_absolute_form_is_a_flow_of_its_own),
		http_unit(a_refused_request_has_words_and_one_record),
		http_unit(what_is_answered_here_is_judged_by_its_method_too),
		http_unit(a_connection_without_a_request_is_recorded_LOG_07),
		http_unit(each_request_of_a_named_flow_is_judged_by_its_host),
		http_unit(
		    a_known_address_is_only_as_good_as_the_host_said_ADDR_18),
		http_unit(http_inside_a_connect_is_judged_too_TUN_15),
		http_unit(a_connect_whose_origin_left_is_dialled_anew),
		http_unit(a_websocket_becomes_a_tunnel_TUN_17),
		http_unit(a_run_that_ends_cuts_a_request_in_flight),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
