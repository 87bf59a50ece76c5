/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_tunnels_test.c - every way in, and every way to end (TUN-04, 10, 11, 14)
 *
 * A tunnel is a tunnel, whether it was asked for by CONNECT, by SOCKS or by
 * connecting straight, in either family: each end comes through as it is, a FIN as
 * a FIN behind the last byte and a reset as a reset, what was sent is there to the
 * byte and so are the records of it, and nothing is left of it afterwards.
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

#include "base/ip_addr.h"
#include "proxy/conn.h"
#include "proxy/conn_own.h"
#include "resolver/name_map.h"
#include "tests/unit/conn_kit.h"
#include "tests/unit/proxy_lab.h"

#define OK_200	"HTTP/1.1 200 OK\r\n\r\n"
#define GRANTED	STR("\x05\x00\x05\x00\x00\x01\0\0\0\0\0\0")
#define NAME	"both.example.org"
#define MUCH	(300u << 10)

static const char policy[] =
	"[policy]\nname = lab\n"
	"[allow shell]\nhosts = " NAME "\nports = 22\nprotocol = ssh\n"
	"addresses = 203.0.113.0/24 2001:db8:3::/48\nreason = lab\n"
	"[allow web]\nhosts = " NAME "\nports = 443\n"
	"addresses = 203.0.113.0/24 2001:db8:3::/48\nreason = lab\n";

enum way { CONNECT, SOCKS, STRAIGHT, WAYS };

/* Where a program stands, and where the origin does. */
struct road {
	enum way way;
	enum ip_family app, net;
};

struct tunnel {
	const struct road *road;
	int client, origin;
	size_t first;			/* of its records */
};

/* --- ways in ---------------------------------------------------------------------- */

static int enter(enum ip_family family,
		 void (*start)(struct sandbox *s, int fd,
			       const struct ip_endpoint *src))
{
	const char *lo = family == IP_V4 ? "127.0.0.1" : "::1";
	uint16_t port;
	int door = lab_listen(lo, 0, &port), client = lab_connect(lo, port);

	start(&kit.sandbox, lab_accept(door), &lab_src);
	close(door);
	return client;
}

static int enter_straight(enum ip_family family, uint16_t port)
{
	const struct id question = { { 0xd5 } };
	char text[IP_TEXT_SIZE];
	struct ip_addr a;

	assert_int_equal(name_map_give(kit.sandbox.names, STR(NAME), family,
				       &question, &a), 0);
	ip_addr_text(&a, text);
	return kit_transparent(text, port);
}

/* What a program says to be let through to @port of NAME; good until the next. */
static struct str asking(enum way way, uint16_t port)
{
	static char m[256];
	int n;

	if (way == CONNECT) {
		n = snprintf(m, sizeof(m), "CONNECT " NAME ":%u HTTP/1.1\r\n"
			     "Host: " NAME ":%u\r\n\r\n", port, port);
		assert_true(n > 0 && n < (int)sizeof(m));
		return str_make(m, (size_t)n);
	}
	memcpy(m, "\x05\x01\x00" "\x05\x01\x00\x03", 7);
	m[7] = (char)strlen(NAME);
	memcpy(m + 8, NAME, strlen(NAME));
	m[8 + strlen(NAME)] = (char)(port >> 8);
	m[9 + strlen(NAME)] = (char)port;
	return str_make(m, 10 + strlen(NAME));
}

static void expect_granted(enum way way, int client)
{
	if (way == CONNECT)
		lab_expect(BASE, client, OK_200);
	else if (way == SOCKS)
		kit_expect_bytes(client, GRANTED);
}

static const char *origin_of(enum ip_family family)
{
	return family == IP_V4 ? KIT_ORIGIN : "2001:db8:3::10";
}

/* With the first byte of the client's at the origin. */
static struct tunnel dig(const struct road *road)
{
	struct tunnel t = { .road = road, .first = kit_records() };
	int door = lab_listen(origin_of(road->net), 22, NULL);
	char byte;

	if (road->way == STRAIGHT) {
		t.client = enter_straight(road->app, 22);
	} else {
		t.client = enter(road->app, road->way == CONNECT ?
				 conn_start_explicit : conn_start_socks);
		lab_send(BASE, t.client, asking(road->way, 22));
	}
	t.origin = kit_accept_turning(door);
	expect_granted(road->way, t.client);
	lab_send(BASE, t.client, STR("x"));
	lab_recv(BASE, t.origin, &byte, 1);
	close(door);
	return t;
}

/* --- ways to end ------------------------------------------------------------------ */

static char pattern(size_t at)
{
	return (char)(at % 251);
}

/* As much of what is left as goes, and the FIN behind the last of it. */
static bool say_more(int from, size_t *sent)
{
	static char bytes[MUCH];
	ssize_t n;

	if (*sent == MUCH)
		return false;
	for (size_t i = *sent; i < MUCH; i++)
		bytes[i] = pattern(i);
	n = send(from, bytes + *sent, MUCH - *sent,
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	*sent += n > 0 ? (size_t)n : 0;
	if (*sent == MUCH)
		assert_int_equal(shutdown(from, SHUT_WR), 0);
	return n > 0;
}

/* MUCH, and then that this was all, of which @to reads nothing before no more of
 * it goes. */
static void pour(int from, int to)
{
	static char chunk[16 << 10];
	size_t sent = 0, got = 0;

	for (unsigned idle = 0; idle < 20; idle++) {
		if (say_more(from, &sent))
			idle = 0;
		lab_turn(BASE);
	}
	while (got < MUCH) {
		ssize_t n = recv(to, chunk, sizeof(chunk), MSG_DONTWAIT);

		assert_int_not_equal(n, 0);
		for (ssize_t i = 0; i < n; i++)
			assert_int_equal(chunk[i], pattern(got + (size_t)i));
		got += n > 0 ? (size_t)n : 0;
		(void)say_more(from, &sent);
		lab_turn(BASE);
	}
	lab_expect_fin(BASE, to);
}

/* So much for @to that it cannot be sent on, while it reads none of it. */
static void stuff(int from)
{
	static char bytes[64 << 10];

	for (unsigned idle = 0; idle < 50; idle++) {
		if (send(from, bytes, sizeof(bytes),
			 MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
			idle = 0;
		lab_turn(BASE);
	}
}

static void client_first(struct tunnel *t)
{
	close(t->client);
	lab_expect_fin(BASE, t->origin);
	close(t->origin);
}

static void origin_first(struct tunnel *t)
{
	close(t->origin);
	lab_expect_fin(BASE, t->client);
	close(t->client);
}

static void both_at_once(struct tunnel *t)
{
	shutdown(t->origin, SHUT_WR);
	shutdown(t->client, SHUT_WR);
	lab_expect_fin(BASE, t->client);
	lab_expect_fin(BASE, t->origin);
	close(t->client);
	close(t->origin);
}

static void client_resets(struct tunnel *t)
{
	lab_reset(t->client);
	lab_expect_reset(BASE, t->origin);
	close(t->origin);
}

static void origin_resets(struct tunnel *t)
{
	lab_reset(t->origin);
	lab_expect_reset(BASE, t->client);
	close(t->client);
}

static void client_says_all_and_hears_all(struct tunnel *t)
{
	pour(t->client, t->origin);
	pour(t->origin, t->client);
	close(t->client);
	close(t->origin);
}

static void origin_says_all_and_hears_all(struct tunnel *t)
{
	pour(t->origin, t->client);
	pour(t->client, t->origin);
	close(t->client);
	close(t->origin);
}

static void client_resets_behind_its_fin(struct tunnel *t)
{
	shutdown(t->client, SHUT_WR);
	lab_expect_fin(BASE, t->origin);
	lab_reset(t->client);
	while (kit.sandbox.nconns) {
		(void)!send(t->origin, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		lab_turn(BASE);
	}
	close(t->origin);
}

static void origin_resets_behind_its_fin(struct tunnel *t)
{
	shutdown(t->origin, SHUT_WR);
	lab_expect_fin(BASE, t->client);
	lab_reset(t->origin);
	while (kit.sandbox.nconns) {
		(void)!send(t->client, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		lab_turn(BASE);
	}
	close(t->client);
}

static void client_resets_with_bytes_waiting(struct tunnel *t)
{
	stuff(t->origin);
	lab_reset(t->client);
	while (kit.sandbox.nconns)
		lab_turn(BASE);
	lab_expect_reset(BASE, t->origin);
	close(t->origin);
}

static void origin_resets_with_bytes_waiting(struct tunnel *t)
{
	stuff(t->client);
	lab_reset(t->origin);
	while (kit.sandbox.nconns)
		lab_turn(BASE);
	lab_expect_reset(BASE, t->client);
	close(t->client);
}

/* Its kernel says so by a reset: what it had not read is lost to it. */
static void client_leaves_unread_bytes(struct tunnel *t)
{
	lab_send(BASE, t->origin, STR("unread"));
	lab_wait_readable(BASE, t->client);
	close(t->client);
	lab_expect_reset(BASE, t->origin);
	close(t->origin);
}

static void client_says_a_word_and_leaves(struct tunnel *t)
{
	(void)!send(t->client, "a last word", 11, MSG_NOSIGNAL);
	close(t->client);
	lab_expect(BASE, t->origin, "a last word");
	lab_expect_fin(BASE, t->origin);
	close(t->origin);
}

static void origin_says_a_word_and_leaves(struct tunnel *t)
{
	(void)!send(t->origin, "a last word", 11, MSG_NOSIGNAL);
	close(t->origin);
	lab_expect(BASE, t->client, "a last word");
	lab_expect_fin(BASE, t->client);
	close(t->client);
}

#define ANY	UINT64_MAX

static const struct ending {
	void (*end)(struct tunnel *t);
	enum reason why, or_why;	/* REASON_ALLOWED: only the first */
	uint64_t up, down;		/* or ANY */
} endings[] = {
	{ client_first, REASON_CLIENT_CLOSED, 0, 1, 0 },
	{ origin_first, REASON_ORIGIN_CLOSED, 0, 1, 0 },
	{ both_at_once, REASON_CLIENT_CLOSED, REASON_ORIGIN_CLOSED, 1, 0 },
	{ client_resets, REASON_CLIENT_RESET, 0, 1, 0 },
	{ origin_resets, REASON_ORIGIN_RESET, 0, 1, 0 },
	{ client_says_all_and_hears_all, REASON_CLIENT_CLOSED, 0, 1 + MUCH,
	  MUCH },
	{ origin_says_all_and_hears_all, REASON_ORIGIN_CLOSED, 0, 1 + MUCH,
	  MUCH },
	{ client_resets_behind_its_fin, REASON_CLIENT_CLOSED, 0, 1, ANY },
	{ origin_resets_behind_its_fin, REASON_ORIGIN_CLOSED, 0, ANY, 0 },
	{ client_resets_with_bytes_waiting, REASON_CLIENT_RESET, 0, 1, ANY },
	{ origin_resets_with_bytes_waiting, REASON_ORIGIN_RESET, 0, ANY, 0 },
	{ client_leaves_unread_bytes, REASON_CLIENT_RESET, 0, 1, 6 },
	{ client_says_a_word_and_leaves, REASON_CLIENT_CLOSED, 0, 12, 0 },
	{ origin_says_a_word_and_leaves, REASON_ORIGIN_CLOSED, 0, 1, 11 },
};

static const struct road roads[] = {
	{ CONNECT, IP_V4, IP_V4 }, { CONNECT, IP_V6, IP_V6 },
	{ SOCKS, IP_V4, IP_V6 }, { SOCKS, IP_V6, IP_V4 },
	{ STRAIGHT, IP_V4, IP_V4 }, { STRAIGHT, IP_V6, IP_V6 },
	{ STRAIGHT, IP_V6, IP_V4 },
};

static void expect_records(const struct tunnel *t, const struct ending *e)
{
	const struct record *r = kit_record(t->first + 1);

	kit_expect_record(t->first, RECORD_FLOW_OPEN, RECORD_ALLOW,
			  REASON_ALLOWED, NAME);
	assert_int_equal(r->event, RECORD_FLOW_CLOSE);
	assert_true(kit_same_id(t->first, t->first + 1));
	if (e->or_why == REASON_ALLOWED || r->reason != e->or_why)
		assert_string_equal(reason_word(r->reason),
				    reason_word(e->why));
	if (e->up != ANY)
		assert_int_equal(r->bytes_up, e->up);
	/* What we said ourselves is not among them. */
	if (e->down != ANY)
		assert_int_equal(r->bytes_down, e->down);
	assert_int_equal(kit_records(), t->first + 2);
}

/* Of this namespace, in a state in which only a close of ours can end them. */
static size_t lingering(const char *table)
{
	FILE *f = fopen(table, "re");
	char line[512];
	unsigned state;
	size_t n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*u: %*s %*s %x", &state) == 1)
			n += state == 5 || state == 8;
	}
	fclose(f);
	return n;
}

#define ROUNDS	12

static void dig_and_end(const struct road *road, const struct ending *e)
{
	struct tunnel t = dig(road);

	e->end(&t);
	expect_records(&t, e);
	lab_turn(BASE);
	assert_int_equal(kit.sandbox.nconns, 0);
}

/* Some thousand of them. */
static void each_end_of_each_way_leaves_nothing_behind_TUN_10_TUN_11(
	void **state)
{
	(void)kit_set_policy(policy);
	for (size_t i = 0; i < ARRAY_SIZE(roads); i++) {
		for (size_t k = 0; k < ARRAY_SIZE(endings) * ROUNDS; k++) {
			const struct ending *e =
				&endings[k % ARRAY_SIZE(endings)];

			/* What moves much is slow, and once is enough. */
			if (k < ARRAY_SIZE(endings) || e->up < MUCH)
				dig_and_end(&roads[i], e);
		}
		(void)kit_teardown(state);
		(void)kit_setup(state);
		(void)kit_set_policy(policy);
	}
	assert_int_equal(lingering("/proc/self/net/tcp"), 0);
	assert_int_equal(lingering("/proc/self/net/tcp6"), 0);
}

/* --- the beginning ----------------------------------------------------------------- */

/* All that a client of TLS says at first, in two segments. */
static void say_in_two(enum way way, struct str all, size_t at,
		       struct str hello)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin, client;

	client = enter(IP_V4, way == CONNECT ? conn_start_explicit :
					       conn_start_socks);
	lab_send(BASE, client, str_make(all.p, at));
	lab_turn(BASE);
	lab_send(BASE, client, str_make(all.p + at, all.n - at));
	expect_granted(way, client);
	origin = lab_accept(door);
	kit_expect_bytes(origin, hello);
	/* And no byte more. */
	lab_send(BASE, origin, STR("answer"));
	lab_expect(BASE, client, "answer");
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	close(door);
}

/* As "printf ... | nc -N" does: request, first bytes and FIN at once. */
static void say_all_at_once(enum way way)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), origin;
	int client = enter(IP_V4, way == CONNECT ? conn_start_explicit :
						   conn_start_socks);
	struct str request = asking(way, 22);
	char all[300];

	memcpy(all, request.p, request.n);
	memcpy(all + request.n, "early", 5);
	lab_send(BASE, client, str_make(all, request.n + 5));
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	origin = kit_accept_turning(door);
	kit_expect_bytes(origin, STR("early"));
	lab_expect_fin(BASE, origin);
	lab_send(BASE, origin, STR("late"));
	close(origin);
	expect_granted(way, client);
	kit_expect_bytes(client, STR("late"));
	lab_expect_fin(BASE, client);
	close(client);
	close(door);
}

static void who_says_all_and_then_listens_is_answered_TUN_04_TUN_10(
	void **state)
{
	(void)state;
	kit_set_policy(policy);
	say_all_at_once(CONNECT);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, NAME);
	assert_int_equal(kit_record(1)->bytes_up, 5);
	assert_int_equal(kit_record(1)->bytes_down, 4);
	say_all_at_once(SOCKS);
	kit_expect_record(3, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, NAME);
}

static void first_words_may_be_cut_anywhere_TUN_04_SOCKS_08(void **state)
{
	static const enum way ways[] = { CONNECT, SOCKS };
	struct str hello = kit_hello(NAME);
	char all[1024];

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct str head = asking(ways[i], 443);
		size_t n = head.n + hello.n;

		memcpy(all, head.p, head.n);
		memcpy(all + head.n, hello.p, hello.n);
		(void)kit_set_policy("[policy]\nname = lab\n[allow web]\n"
				     "hosts = " NAME "\naddresses = "
				     "203.0.113.0/24\nreason = lab\n[dns]\n"
				     "ipv6 = off\n");
		for (size_t at = 1; at <= n; at++)
			say_in_two(ways[i], str_make(all, n), at, hello);
		(void)kit_teardown(state);
		(void)kit_setup(state);
	}
}

/* Nothing is waited for, of a protocol in which the server begins. */
static void a_server_may_speak_first_on_each_way_TUN_14(void **state)
{
	(void)state;
	(void)kit_set_policy(policy);
	for (size_t i = 0; i < ARRAY_SIZE(roads); i++) {
		int door = lab_listen(origin_of(roads[i].net), 22, NULL);
		int client, origin;

		if (roads[i].way == STRAIGHT) {
			client = enter_straight(roads[i].app, 22);
		} else {
			client = enter(roads[i].app, roads[i].way == CONNECT ?
				       conn_start_explicit : conn_start_socks);
			lab_send(BASE, client, asking(roads[i].way, 22));
		}
		origin = kit_accept_turning(door);
		lab_send(BASE, origin, STR("SSH-2.0-origin\r\n"));
		expect_granted(roads[i].way, client);
		lab_expect(BASE, client, "SSH-2.0-origin\r\n");
		close(client);
		lab_expect_fin(BASE, origin);
		close(origin);
		close(door);
	}
}

#define IN_KIT(f)	cmocka_unit_test_setup_teardown(f, kit_setup, \
							kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_KIT(each_end_of_each_way_leaves_nothing_behind_TUN_10_TUN_11),
		IN_KIT(who_says_all_and_then_listens_is_answered_TUN_04_TUN_10),
		IN_KIT(first_words_may_be_cut_anywhere_TUN_04_SOCKS_08),
		IN_KIT(a_server_may_speak_first_on_each_way_TUN_14),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
