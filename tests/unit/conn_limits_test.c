/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_limits_test.c - [limits] of a run, as its connections meet them (OPS-13)
 *
 * Each is refused or cut with a reason of its own, with 429 and Retry-After in
 * HTTP, 0x01 in SOCKS, an alert in TLS, and never with 403; and each test begins
 * with the same that is let through.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <event2/event.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "proxy/conn.h"
#include "proxy/conn_own.h"
#include "tests/unit/conn_kit.h"
#include "tests/unit/proxy_lab.h"

#define OK_200		"HTTP/1.1 200 OK\r\n\r\n"
#define INTERNAL_ERROR	STR("\x15\x03\x01\x00\x02\x02\x50")
#define BIG		(4u << 20)

#define RULES_TEXT \
	"[policy]\nname = lab\n[allow ssh]\nhosts = ssh.example.org\n" \
	"addresses = 203.0.113.0/24\nreason = lab\nports = 22\n%s" \
	"[allow web]\nhosts = web.example.org api.example.org\n" \
	"addresses = 203.0.113.0/24\nreason = lab\nports = 80 443\n" \
	"[limits]\n%s\n"

static void limits(const char *of_ssh, const char *of_run)
{
	char text[1024];
	int n = snprintf(text, sizeof(text), RULES_TEXT, of_ssh, of_run);

	assert_true(n > 0 && (size_t)n < sizeof(text));
	(void)kit_set_policy(text);
}

/* A tunnel of the rule ssh, whose bytes nobody looks at. */
static void tunnel(int door, int *ret_client, int *ret_origin)
{
	*ret_client = kit_connect_to("ssh.example.org:22");
	lab_expect(BASE, *ret_client, OK_200);
	*ret_origin = lab_accept(door);
}

static void expect_429(int fd, const char *word)
{
	char want[128];

	assert_true(snprintf(want, sizeof(want), "HTTP/1.1 429 %s\r\n", word) >
		    0);
	kit_expect_head(fd, want);
	close(fd);
}

static void expect_429_later(int fd, const char *word)
{
	char got[4096], want[128];
	size_t n = lab_recv_all(BASE, fd, got, sizeof(got) - 1);

	got[n] = '\0';
	assert_true(snprintf(want, sizeof(want), "HTTP/1.1 429 %s\r\n", word) >
		    0);
	assert_int_equal(strncmp(got, want, strlen(want)), 0);
	assert_non_null(strstr(got, "\r\nRetry-After: "));
	close(fd);
}

/* Read what comes until an end of either kind. */
static size_t read_all(int fd)
{
	char *got = malloc(BIG + 1);
	size_t n;

	assert_non_null(got);
	n = lab_recv_all(BASE, fd, got, BIG + 1);
	free(got);
	return n;
}

/* As much as goes, while nobody reads: more than any limit of a test. */
static void stuff(int fd, size_t n)
{
	static const char bytes[65536];

	while (n) {
		ssize_t sent = send(fd, bytes, MIN(n, sizeof(bytes)),
				    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0)
			break;
		n -= (size_t)sent;
	}
}

/* The last record, waited for: of a flow that ended for @why. */
static const struct record *expect_close(enum reason why)
{
	size_t i = 0;

	while (kit_record(i)->event != RECORD_FLOW_CLOSE)
		i++;
	assert_string_equal(reason_word(kit_record(i)->reason),
			    reason_word(why));
	assert_int_equal(kit_record(i)->act, RECORD_DENY);
	return kit_record(i);
}

/* --- connections ------------------------------------------------------------------ */

static void one_connection_too_many_is_told_in_each_protocol(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin, other;

	(void)state;
	limits("", "connections = 1");
	tunnel(door, &client, &origin);
	expect_429_later(kit_connect_to("ssh.example.org:22"),
			 "connections_exceeded");
	kit_expect_record(1, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_CONNECTIONS_EXCEEDED, "ssh.example.org");
	other = kit_explicit();
	kit_request(other, "http://web.example.org/", "web.example.org");
	expect_429_later(other, "connections_exceeded");
	other = kit_transparent(kit_synthetic("api.example.org"), 443);
	lab_send(BASE, other, kit_hello("api.example.org"));
	kit_expect_bytes(other, INTERNAL_ERROR);
	close(other);
	other = kit_transparent(kit_synthetic("ssh.example.org"), 22);
	lab_expect_reset(BASE, other);
	close(other);
	assert_false(kit_was_dialled(door));
	/* Those that were refused hold no place. */
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	while (kit.sandbox.nconns > 0)
		event_base_loop(BASE, EVLOOP_ONCE);
	tunnel(door, &client, &origin);
	close(client);
	close(origin);
	close(door);
}

static void socks_hears_of_it_as_a_failure(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin, other;
	int listener;
	uint16_t port;

	(void)state;
	limits("", "connections = 1");
	tunnel(door, &client, &origin);
	listener = lab_listen("127.0.0.1", 0, &port);
	other = lab_connect("127.0.0.1", port);
	conn_start_socks(&kit.sandbox, lab_accept(listener), &lab_src);
	lab_send(BASE, other, STR("\x05\x01\x00"));
	kit_expect_bytes(other, STR("\x05\x00"));
	lab_send(BASE, other, STR("\x05\x01\x00\x03\x0f" "ssh.example.org"
				  "\x00\x16"));
	kit_expect_bytes(other, STR("\x05\x01\x00"));
	close(other);
	close(listener);
	close(client);
	close(origin);
	close(door);
}

static void a_silent_one_too_many_is_not_waited_for(void **state)
{
	int first, second;

	(void)state;
	limits("", "connections = 1\nheader_time = 1h");
	first = kit_explicit();
	second = kit_explicit();
	/* The listening time of a refusal, not an hour. */
	kit_expect_head(second, "connections_exceeded");
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_CONNECTIONS_EXCEEDED, "");
	close(first);
	close(second);
}

static void new_connections_come_at_their_rate(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;

	(void)state;
	clock_test_set_ms(50000);
	limits("", "new_connections = 1");
	tunnel(door, &client, &origin);
	expect_429(kit_connect_to("ssh.example.org:22"),
		   "connection_rate_exceeded");
	close(client);
	close(origin);
	clock_test_set_ms(51000);
	tunnel(door, &client, &origin);
	close(client);
	close(origin);
	clock_test_set_ms(-1);
	close(door);
}

static void short_of_descriptors_nobody_is_dialled_OPS_01(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client;

	(void)state;
	limits("", "connections = 9");
	fd_set_reserve(INT_MAX, INT_MAX);
	client = kit_connect_to("ssh.example.org:22");
	kit_expect_head(client, "HTTP/1.1 503 descriptors_exceeded\r\n");
	close(client);
	client = kit_explicit();
	fd_set_reserve(INT_MAX, 0);
	/* It keeps what it was told when it came. */
	lab_send(BASE, client, STR("GET http://web.example.org/ HTTP/1.1\r\n"
				   "Host: web.example.org\r\n\r\n"));
	kit_expect_head(client, "\r\nRetry-After: ");
	close(client);
	/* One that was let in, and has no descriptor for its other half. */
	client = kit_explicit();
	fd_set_reserve(INT_MAX, INT_MAX);
	lab_send(BASE, client, STR("CONNECT ssh.example.org:22 HTTP/1.1\r\n"
				   "Host: ssh.example.org:22\r\n\r\n"));
	kit_expect_head(client, "HTTP/1.1 503 descriptors_exceeded\r\n");
	fd_set_reserve(INT_MAX, 0);
	assert_false(kit_was_dialled(door));
	close(client);
	close(door);
}

/* --- bytes ------------------------------------------------------------------------ */

static void a_run_is_cut_behind_its_last_byte(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;
	size_t got;

	(void)state;
	limits("", "bytes_down = 300001");
	tunnel(door, &client, &origin);
	lab_send(BASE, client, STR("up is free"));
	lab_expect(BASE, origin, "up is free");
	stuff(origin, BIG);
	got = read_all(client);
	assert_true(got <= 300001);
	assert_int_equal(expect_close(REASON_BYTES_EXCEEDED)->bytes_down,
			 300001);
	close(client);
	close(origin);
	/* And nothing new is dialled for a run that may move no byte. */
	expect_429_later(kit_connect_to("ssh.example.org:22"),
			 "bytes_exceeded");
	assert_false(kit_was_dialled(door));
	close(door);
}

static void a_flow_is_cut_and_the_next_one_is_not(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;

	(void)state;
	limits("", "flow_bytes_up = 100K");
	for (unsigned i = 0; i < 2; i++) {
		tunnel(door, &client, &origin);
		stuff(client, BIG);
		assert_true(read_all(origin) <= 100 * 1024);
		assert_int_equal(expect_close(REASON_FLOW_BYTES_EXCEEDED)->
				 bytes_up, 100 * 1024);
		close(client);
		close(origin);
	}
	close(door);
}

static void a_rule_is_used_up_by_all_its_flows(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;

	(void)state;
	limits("bytes_down = 10\n", "");
	tunnel(door, &client, &origin);
	lab_send(BASE, origin, STR("123456"));
	lab_expect(BASE, client, "123456");
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	tunnel(door, &client, &origin);
	lab_send(BASE, origin, STR("7890X"));
	(void)read_all(client);
	close(client);
	close(origin);
	expect_429_later(kit_connect_to("ssh.example.org:22"),
			 "rule_bytes_exceeded");
	/* The other rule has none. */
	client = kit_connect_to("api.example.org:443");
	lab_recv_all(BASE, client, (char[16]){ 0 }, 12);
	close(client);
	close(door);
}

static void a_new_budget_of_its_rule_cuts_a_flow_that_is_open(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;

	(void)state;
	limits("", "");
	tunnel(door, &client, &origin);
	lab_send(BASE, origin, STR("123456"));
	lab_expect(BASE, client, "123456");
	limits("bytes_down = 10\n", "");
	lab_send(BASE, origin, STR("7890X"));
	assert_true(read_all(client) <= 4);
	assert_int_equal(expect_close(REASON_RULE_BYTES_EXCEEDED)->bytes_down,
			 10);
	close(client);
	close(origin);
	close(door);
}

static void the_last_byte_may_be_followed_by_an_end(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;

	(void)state;
	limits("", "bytes_down = 5\nbytes_up = 4");
	tunnel(door, &client, &origin);
	lab_send(BASE, client, STR("1234"));
	lab_expect(BASE, origin, "1234");
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	lab_expect_fin(BASE, origin);
	lab_send(BASE, origin, STR("hello"));
	lab_expect(BASE, client, "hello");
	close(origin);
	lab_expect_fin(BASE, client);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, "ssh.example.org");
	close(client);
	close(door);
}

static void first_bytes_count_as_well(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), client, origin;

	(void)state;
	limits("", "bytes_up = 20");
	client = kit_connect_to("api.example.org:443");
	lab_expect(BASE, client, OK_200);
	origin = lab_accept(door);
	lab_send(BASE, client, kit_hello("api.example.org"));
	lab_expect_reset(BASE, origin);
	assert_int_equal(expect_close(REASON_BYTES_EXCEEDED)->bytes_up, 0);
	close(client);
	close(origin);
	close(door);
}

static void a_rate_delays_and_loses_nothing(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;
	size_t left = 3u << 20, n;
	char *got = malloc(1 << 20);

	(void)state;
	assert_non_null(got);
	limits("", "rate_down = 2M");
	tunnel(door, &client, &origin);
	stuff(origin, 1 << 20);
	left = 1 << 20;
	while (left) {
		n = MIN(left, (size_t)65536);
		lab_recv(BASE, client, got, n);
		left -= n;
	}
	/* A bucket that is empty: whoever comes now must wait for it. */
	stuff(origin, 3 << 19);
	left = 3 << 19;
	while (left) {
		n = MIN(left, (size_t)65536);
		lab_recv(BASE, client, got, n);
		left -= n;
	}
	assert_true(kit.sandbox.nconns == 1);
	free(got);
	close(client);
	close(origin);
	close(door);
}

/* What came with the request for the tunnel is no way past it. */
static void a_rate_holds_for_first_bytes_too(void **state)
{
	static const char head[] = "CONNECT ssh.example.org:22 HTTP/1.1\r\n"
				   "Host: ssh.example.org:22\r\n\r\n";
	static const struct timeval a_while = { .tv_usec = 200000 };
	const size_t n = sizeof(head) - 1 + 8192;
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;
	char said[sizeof(head) + 8192] = { 0 }, got[8193];

	(void)state;
	clock_test_set_ms(50000);
	limits("", "rate_up = 4K");
	client = kit_explicit();
	memcpy(said, head, sizeof(head) - 1);
	assert_int_equal(send(client, said, n, MSG_NOSIGNAL), n);
	lab_expect(BASE, client, OK_200);
	origin = lab_accept(door);
	assert_int_equal(event_base_loopexit(BASE, &a_while), 0);
	assert_int_equal(event_base_dispatch(BASE), 0);
	assert_int_equal(recv(origin, got, sizeof(got), MSG_DONTWAIT), 4096);
	clock_test_set_ms(51000);
	lab_recv(BASE, origin, got, 4000);
	lab_send(BASE, client, STR("behind"));
	clock_test_set_ms(52000);
	lab_recv(BASE, origin, got, 96);
	lab_expect(BASE, origin, "behind");
	clock_test_set_ms(-1);
	close(client);
	close(origin);
	close(door);
}

/* --- time ------------------------------------------------------------------------- */

/* A clock that the test moves: silence is measured by it. */
static void silence_ends_where_the_policy_says_so_TUN_09(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;

	(void)state;
	limits("", "idle_time = 1s");
	clock_test_set_ms(10000);
	tunnel(door, &client, &origin);
	clock_test_set_ms(10900);
	lab_send(BASE, origin, STR("x"));
	lab_expect(BASE, client, "x");
	/* The look that finds the byte is in the second it counts from. */
	assert_int_equal(event_base_loop(BASE, EVLOOP_ONCE), 0);
	clock_test_set_ms(11800);
	assert_int_equal(event_base_loop(BASE, EVLOOP_ONCE), 0);
	assert_int_equal(kit_records(), 1);
	clock_test_set_ms(11901);
	lab_expect_reset(BASE, client);
	(void)expect_close(REASON_IDLE_TIMEOUT);
	clock_test_set_ms(-1);
	close(client);
	close(origin);
	close(door);
}

/*
 * Megabytes wait in the kernel for a client that reads on: none of ours can be
 * sent before a third of them is gone, and yet nothing is silent (OPS-04).
 */
static void who_reads_slowly_is_not_silent_OPS_04(void **state)
{
	static char bytes[1 << 17];
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;
	int64_t now = 10000;

	(void)state;
	clock_test_set_ms(now);
	tunnel(door, &client, &origin);
	for (unsigned i = 0; i < 100; i++) {
		stuff(origin, BIG);
		lab_turn(BASE);
	}
	limits("", "idle_time = 1s");
	for (unsigned i = 0; i < 8; i++) {
		assert_true(recv(client, bytes, sizeof(bytes), 0) > 0);
		clock_test_set_ms(now += 400);
		assert_int_equal(event_base_loop(BASE, EVLOOP_ONCE), 0);
	}
	assert_int_equal(kit_records(), 1);
	while (kit_records() < 2) {
		clock_test_set_ms(now += 400);
		assert_int_equal(event_base_loop(BASE, EVLOOP_ONCE), 0);
	}
	(void)expect_close(REASON_IDLE_TIMEOUT);
	clock_test_set_ms(-1);
	close(client);
	close(origin);
	close(door);
}

static void a_flow_has_its_time(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;

	(void)state;
	limits("", "flow_time = 1s");
	clock_test_set_ms(10000);
	tunnel(door, &client, &origin);
	/* As the policy that is loaded then has it. */
	clock_test_set_ms(12000);
	limits("", "flow_time = 2s");
	lab_expect_reset(BASE, client);
	(void)expect_close(REASON_FLOW_TIME_EXCEEDED);
	clock_test_set_ms(-1);
	close(client);
	close(origin);
	close(door);
}

static void a_head_has_its_time_and_size_HTTP_27(void **state)
{
	int client, big;

	(void)state;
	limits("", "header_time = 1s\nheader_bytes = 1K");
	client = kit_explicit();
	lab_send(BASE, client, STR("CONNECT ssh.example.org:22 HTTP/1.1\r\nA"));
	big = kit_explicit();
	lab_send(BASE, big, STR("CONNECT ssh.example.org:22 HTTP/1.1\r\n"
				"Host: ssh.example.org:22\r\nA: "));
	while (kit_records() == 0) {
		lab_send(BASE, big, STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
		lab_turn(BASE);
	}
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HEADER_TOO_LARGE, "");
	kit_expect_head(big, "HTTP/1.1 431 ");
	kit_expect_head(client, "HTTP/1.1 408 header_timeout");
	close(client);
	close(big);
}

static void a_black_hole_ends_by_the_policy_TUN_07(void **state)
{
	int door = lab_listen(KIT_HOLE, 22, NULL), queued[2], client;

	(void)state;
	assert_int_equal(listen(door, 0), 0);
	queued[0] = lab_connect(KIT_HOLE, 22);
	limits("", "connect_time = 1s");
	(void)kit_set_policy("[policy]\nname = lab\n[allow hole]\n"
			     "hosts = hole.example.org\nports = 22\n"
			     "addresses = 203.0.113.0/24\nreason = lab\n"
			     "[limits]\nconnect_time = 1s\n");
	client = kit_connect_to("hole.example.org:22");
	kit_expect_head(client, "HTTP/1.1 504 connect_timeout");
	close(client);
	close(queued[0]);
	close(door);
}

/* --- the end ---------------------------------------------------------------------- */

static void a_daemon_that_drains_opens_nothing_and_cuts_nothing(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin, http;

	(void)state;
	tunnel(door, &client, &origin);
	http = kit_explicit();
	kit.worker.draining = true;
	kit_request(http, "http://api.example.org/", "api.example.org");
	kit_expect_head(http, "HTTP/1.1 503 shutdown");
	close(http);
	http = kit_connect_to("ssh.example.org:22");
	kit_expect_head(http, "HTTP/1.1 503 shutdown");
	close(http);
	lab_send(BASE, client, STR("still here"));
	lab_expect(BASE, origin, "still here");
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	close(door);
}

/* --- HTTP ------------------------------------------------------------------------- */

/* A request to the origin behind @door, which has read its head. */
static void request(int door, const char *head, int *ret_client,
		    int *ret_origin)
{
	*ret_client = kit_explicit();
	lab_send(BASE, *ret_client, str_from(head));
	*ret_origin = kit_accept_turning(door);
	kit_expect_head(*ret_origin, "api.example.org");
}

#define WEB_GET \
	"GET http://api.example.org/ HTTP/1.1\r\nHost: api.example.org\r\n\r\n"
#define WEB_PUT \
	"PUT http://api.example.org/ HTTP/1.1\r\nHost: api.example.org\r\n" \
	"Content-Length: 1000\r\n\r\n"

/* The record of the request, which comes before that of its flow. */
static void expect_http(enum reason why, enum record_act act, int status)
{
	size_t i = 0;

	while (kit_record(i)->event != RECORD_HTTP)
		i++;
	assert_string_equal(reason_word(kit_record(i)->reason),
			    reason_word(why));
	assert_int_equal(kit_record(i)->act, act);
	assert_int_equal(kit_record(i)->status, status);
}

static bool flow_is_closed(void)
{
	for (size_t i = 0; i < kit_records(); i++)
		if (kit_record(i)->event == RECORD_FLOW_CLOSE)
			return true;
	return false;
}

static void a_request_over_its_budget_is_refused(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), client, origin;

	(void)state;
	limits("", "bytes_up = 600");
	request(door, WEB_PUT, &client, &origin);
	while (!flow_is_closed()) {
		(void)!send(client, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 30,
			    MSG_NOSIGNAL | MSG_DONTWAIT);
		lab_turn(BASE);
	}
	kit_expect_head(client, "HTTP/1.1 429 bytes_exceeded");
	expect_http(REASON_BYTES_EXCEEDED, RECORD_DENY, 429);
	assert_int_equal(expect_close(REASON_BYTES_EXCEEDED)->bytes_up, 600);
	close(client);
	close(origin);
	close(door);
}

static void a_kept_flow_past_its_time_gives_way_to_a_new_one(void **state)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\n"
				     "Content-Length: 2\r\n\r\n";
	int door = lab_listen(KIT_ORIGIN, 80, NULL), client, origin, next;

	(void)state;
	limits("", "flow_time = 10s");
	clock_test_set_ms(50000);
	request(door, WEB_GET, &client, &origin);
	lab_send(BASE, origin, str_from(answer));
	lab_send(BASE, origin, STR("hi"));
	kit_expect_head(client, "HTTP/1.1 200 OK\r\n");
	lab_expect(BASE, client, "hi");
	clock_test_set_ms(61000);
	lab_send(BASE, client, STR(WEB_GET));
	next = kit_accept_turning(door);
	kit_expect_head(next, "api.example.org");
	lab_send(BASE, next, str_from(answer));
	lab_send(BASE, next, STR("ho"));
	kit_expect_head(client, "HTTP/1.1 200 OK\r\n");
	(void)expect_close(REASON_FLOW_TIME_EXCEEDED);
	clock_test_set_ms(-1);
	close(client);
	close(origin);
	close(next);
	close(door);
}

static void an_answer_over_its_budget_is_broken_off(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), client, origin;
	char got[8192];
	size_t n;

	(void)state;
	limits("", "flow_bytes_down = 1000");
	request(door, WEB_GET, &client, &origin);
	lab_send(BASE, origin, STR("HTTP/1.1 200 OK\r\n"
				   "Content-Length: 4000\r\n\r\n"));
	stuff(origin, 4000);
	n = lab_recv_all(BASE, client, got, sizeof(got));
	assert_in_range(n, 500, 1400);
	expect_http(REASON_FLOW_BYTES_EXCEEDED, RECORD_DENY, 200);
	assert_int_equal(expect_close(REASON_FLOW_BYTES_EXCEEDED)->bytes_down,
			 1000);
	close(client);
	close(origin);
	close(door);
}

static void a_rate_delays_an_answer_and_loses_nothing(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), client, origin;
	char got[1024];

	(void)state;
	limits("", "rate_down = 400K\nrate_up = 1K");
	request(door, WEB_GET, &client, &origin);
	lab_send(BASE, origin, STR("HTTP/1.1 200 OK\r\n"
				   "Content-Length: 500000\r\n\r\n"));
	stuff(origin, 500000);
	kit_expect_head(client, "HTTP/1.1 200 OK");
	for (unsigned i = 0; i < 500; i++)
		lab_recv(BASE, client, got, 1000);
	close(client);
	close(origin);
	close(door);
}

static void an_origin_that_thinks_has_as_long_as_it_takes_TUN_19(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), client, origin;

	(void)state;
	clock_test_set_ms(10000);
	request(door, WEB_GET, &client, &origin);
	/* Nothing waits for a clock, where no limit is said. */
	clock_test_set_ms(10000 + 24 * 3600 * 1000);
	lab_turn(BASE);
	lab_send(BASE, origin, STR("HTTP/1.1 204 No Content\r\n\r\n"));
	kit_expect_head(client, "HTTP/1.1 204 ");
	clock_test_set_ms(-1);
	close(client);
	close(origin);
	close(door);
}

/* TUN-19: where the policy sets response_time, and else never. */
static void an_origin_that_says_nothing_is_504_TUN_19(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), client, origin;

	(void)state;
	limits("", "response_time = 1s");
	clock_test_set_ms(10000);
	request(door, WEB_GET, &client, &origin);
	clock_test_set_ms(10999);
	assert_int_equal(event_base_loop(BASE, EVLOOP_ONCE), 0);
	assert_int_equal(kit_records(), 1);
	clock_test_set_ms(12000);	/* silence counts from a look */
	kit_expect_head(client, "HTTP/1.1 504 origin_timeout");
	expect_http(REASON_ORIGIN_TIMEOUT, RECORD_ERROR, 504);
	clock_test_set_ms(-1);
	close(client);
	close(origin);
	close(door);
}

/* An upload that comes byte by byte is none of response_time's business, nor
 * of header_time's; silence is idle_time's (OPS-04, OPS-08). */
static void a_slow_body_is_no_slow_answer_OPS_04(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), client, origin;
	int64_t now = 10000;

	(void)state;
	limits("", "response_time = 1s\nheader_time = 1s\nidle_time = 1s");
	clock_test_set_ms(now);
	request(door, WEB_PUT, &client, &origin);
	for (unsigned i = 0; i < 5; i++) {
		lab_send(BASE, client, STR("b"));
		lab_expect(BASE, origin, "b");
		clock_test_set_ms(now += 900);
		assert_int_equal(event_base_loop(BASE, EVLOOP_ONCE), 0);
	}
	assert_int_equal(kit_records(), 1);
	clock_test_set_ms(now += 1100);
	kit_expect_head(client, "HTTP/1.1 503 idle_timeout");
	clock_test_set_ms(-1);
	close(client);
	close(origin);
	close(door);
}

static void an_origin_that_never_reads_is_not_waited_for_OPS_08(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), client, origin;
	int64_t now = 10000;

	(void)state;
	limits("", "idle_time = 1s");
	clock_test_set_ms(now);
	client = kit_explicit();
	lab_send(BASE, client, STR("PUT http://api.example.org/ HTTP/1.1\r\n"
				   "Host: api.example.org\r\n"
				   "Content-Length: 100000000\r\n\r\n"));
	origin = kit_accept_turning(door);
	while (kit_records() < 2) {
		stuff(client, BIG);
		clock_test_set_ms(now += 300);
		assert_int_equal(event_base_loop(BASE, EVLOOP_ONCE), 0);
	}
	(void)expect_close(REASON_IDLE_TIMEOUT);
	assert_int_equal(kit.sandbox.nconns, 1);
	clock_test_set_ms(-1);
	close(client);
	close(origin);
	close(door);
}

static void a_request_head_has_its_size_HTTP_27(void **state)
{
	int client = kit_explicit(), door = lab_listen(KIT_ORIGIN, 80, NULL);

	(void)state;
	limits("", "header_bytes = 1K");
	lab_send(BASE, client, STR("GET http://api.example.org/ HTTP/1.1\r\n"
				   "Host: api.example.org\r\nA: "));
	for (unsigned i = 0; i < 40; i++)
		lab_send(BASE, client,
			 STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
	kit_expect_head(client, "HTTP/1.1 431 header_too_large");
	assert_false(kit_was_dialled(door));
	close(client);
	close(door);
}

#define IN_KIT(f)	cmocka_unit_test_setup_teardown(f, kit_setup, \
							kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_KIT(one_connection_too_many_is_told_in_each_protocol),
		IN_KIT(socks_hears_of_it_as_a_failure),
		IN_KIT(a_silent_one_too_many_is_not_waited_for),
		IN_KIT(new_connections_come_at_their_rate),
		IN_KIT(short_of_descriptors_nobody_is_dialled_OPS_01),
		IN_KIT(a_run_is_cut_behind_its_last_byte),
		IN_KIT(a_flow_is_cut_and_the_next_one_is_not),
		IN_KIT(a_rule_is_used_up_by_all_its_flows),
		IN_KIT(a_new_budget_of_its_rule_cuts_a_flow_that_is_open),
		IN_KIT(the_last_byte_may_be_followed_by_an_end),
		IN_KIT(first_bytes_count_as_well),
		IN_KIT(a_rate_delays_and_loses_nothing),
		IN_KIT(a_rate_holds_for_first_bytes_too),
		IN_KIT(silence_ends_where_the_policy_says_so_TUN_09),
		IN_KIT(who_reads_slowly_is_not_silent_OPS_04),
		IN_KIT(a_flow_has_its_time),
		IN_KIT(a_head_has_its_time_and_size_HTTP_27),
		IN_KIT(a_black_hole_ends_by_the_policy_TUN_07),
		IN_KIT(a_daemon_that_drains_opens_nothing_and_cuts_nothing),
		IN_KIT(a_request_over_its_budget_is_refused),
		IN_KIT(a_kept_flow_past_its_time_gives_way_to_a_new_one),
		IN_KIT(an_answer_over_its_budget_is_broken_off),
		IN_KIT(a_rate_delays_an_answer_and_loses_nothing),
		IN_KIT(an_origin_that_thinks_has_as_long_as_it_takes_TUN_19),
		IN_KIT(an_origin_that_says_nothing_is_504_TUN_19),
		IN_KIT(a_slow_body_is_no_slow_answer_OPS_04),
		IN_KIT(an_origin_that_never_reads_is_not_waited_for_OPS_08),
		IN_KIT(a_request_head_has_its_size_HTTP_27),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
