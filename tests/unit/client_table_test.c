/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_table_test.c - one client of a listener does not take what is others'
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/client_table.h"
#include "resolver/resolver.h"

#define SECOND		INT64_C(1000000)
#define START		(1000 * SECOND)
#define MAX_CONNS	64u

static struct client_table *table;
static struct client_whole whole;
static int64_t now;
static struct client_hold held[4 * CLIENT_TABLE_MAX];
static size_t nheld;

static void open_with(const struct client_limits *limits)
{
	assert_int_equal(client_table_new(limits, &table), 0);
	whole = (struct client_whole){ .max = MAX_CONNS };
	now = START;
	nheld = 0;
}

static int open_default(void **state)
{
	const struct client_limits none = { 0 };

	(void)state;
	open_with(&none);
	return 0;
}

static int close_table(void **state)
{
	(void)state;
	while (nheld > 0)
		client_table_leave(table, &held[--nheld]);
	client_table_free(table);
	table = NULL;
	return 0;
}

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(str_from(text), &a), 0);
	return a;
}

static enum reason enter_from(const struct ip_addr *a)
{
	enum reason why;

	assert_true(nheld < ARRAY_SIZE(held));
	why = client_table_enter(table, a, &whole, now, &held[nheld++]);
	whole.used += why == REASON_ALLOWED;
	return why;
}

static enum reason enter(const char *from)
{
	struct ip_addr a = addr(from);

	return enter_from(&a);
}

/* How many of @n are let in. */
static unsigned fill(const char *from, unsigned n)
{
	unsigned in = 0;

	while (n-- > 0 && whole.used < whole.max)
		in += enter(from) == REASON_ALLOWED;
	return in;
}

static enum client_answer ask(const char *from, bool tcp)
{
	struct ip_addr a = addr(from);

	return client_table_ask(table, &a, tcp, &whole, now);
}

static unsigned answered(const char *from, unsigned n, bool tcp)
{
	unsigned in = 0;

	while (n-- > 0)
		in += ask(from, tcp) == CLIENT_ANSWER;
	return in;
}

/* --- connections -------------------------------------------------------------- */

static void a_greedy_client_leaves_room_for_who_comes(void **state)
{
	(void)state;
	assert_int_equal(fill("192.0.2.1", MAX_CONNS), MAX_CONNS / 4 * 3);
	assert_int_equal(enter("192.0.2.1"),
			 REASON_CLIENT_CONNECTIONS_EXCEEDED);
	/* Others are let in, and have equal parts of what is left over. */
	assert_int_equal(enter("192.0.2.2"), REASON_ALLOWED);
	assert_int_equal(fill("192.0.2.3", 4), 4);
	assert_int_equal(fill("192.0.2.2", 8), 8);
	assert_int_equal(enter("192.0.2.1"),
			 REASON_CLIENT_CONNECTIONS_EXCEEDED);
	/* When there are none, that is what everybody is told. */
	fill("192.0.2.4", MAX_CONNS);
	fill("192.0.2.5", MAX_CONNS);
	whole.used = whole.max;
	assert_int_equal(enter("192.0.2.1"), REASON_ALLOWED);
}

static void what_is_given_back_can_be_had_again(void **state)
{
	unsigned n;

	(void)state;
	n = fill("192.0.2.1", MAX_CONNS / 4 * 3);
	assert_int_equal(enter("192.0.2.1"),
			 REASON_CLIENT_CONNECTIONS_EXCEEDED);
	client_table_leave(table, &held[0]);
	held[0] = held[--nheld];
	whole.used--;
	assert_int_equal(enter("192.0.2.1"), REASON_ALLOWED);
	assert_int_equal(n, whole.used);
}

static void clients_on_loopback_are_not_told_apart(void **state)
{
	(void)state;
	assert_int_equal(fill("127.0.0.1", MAX_CONNS / 2), MAX_CONNS / 2);
	assert_int_equal(fill("::1", MAX_CONNS), MAX_CONNS / 2);
}

static void a_number_of_the_section_binds_whoever_it_is(void **state)
{
	const struct client_limits limits = { .connections = 3 };

	(void)state;
	close_table(state);
	open_with(&limits);
	assert_int_equal(fill("127.0.0.1", 10), 3);
	assert_int_equal(fill("192.0.2.1", 10), 3);
	assert_int_equal(fill("::ffff:192.0.2.1", 10), 0);
	/* All of a /64 is one client, its neighbour another. */
	assert_int_equal(fill("2001:db8::1", 2), 2);
	assert_int_equal(fill("2001:db8::ffff:2", 10), 1);
	assert_int_equal(fill("2001:db8:0:1::1", 10), 3);
}

static void who_is_refused_may_hear_it_so_often_and_no_more(void **state)
{
	const struct client_limits limits = { .connections = 1 };
	struct ip_addr a = addr("192.0.2.1"), b = addr("192.0.2.2");
	unsigned i;

	(void)state;
	close_table(state);
	open_with(&limits);
	assert_int_equal(enter("192.0.2.1"), REASON_ALLOWED);
	for (i = 0; i < CLIENT_REFUSED_MAX; i++) {
		assert_true(client_table_admits(table, &a));
		assert_int_equal(enter("192.0.2.1"),
				 REASON_CLIENT_CONNECTIONS_EXCEEDED);
	}
	assert_false(client_table_admits(table, &a));
	assert_true(client_table_admits(table, &b));
	/* What all are refused for counts the same. */
	client_table_leave(table, &held[nheld - 1]);
	nheld--;
	assert_true(client_table_admits(table, &a));
	client_table_refuse(table, &held[0]);
	assert_false(client_table_admits(table, &a));
}

static void new_ones_have_a_rate(void **state)
{
	const struct client_limits limits = { .new_connections = 5 };

	(void)state;
	close_table(state);
	open_with(&limits);
	assert_int_equal(fill("192.0.2.1", 20), 5);
	assert_int_equal(enter("192.0.2.1"), REASON_CLIENT_RATE_EXCEEDED);
	assert_int_equal(fill("192.0.2.2", 20), 5);
	now += SECOND / 5;
	assert_int_equal(fill("192.0.2.1", 20), 1);
}

static void half_of_the_policys_rate_is_one_clients_when_others_come(
	void **state)
{
	(void)state;
	whole.max = 10000;
	whole.new_connections = 20;
	/* Alone it has what the policy gives to all. */
	assert_int_equal(fill("192.0.2.1", 30), 30);
	assert_int_equal(fill("192.0.2.2", 30), 10);
	assert_int_equal(fill("192.0.2.1", 30), 0);
	now += SECOND;
	assert_int_equal(fill("192.0.2.1", 30), 10);
	/* On loopback nobody knows who is who. */
	assert_int_equal(fill("127.0.0.1", 100), 100);
}

/* --- questions ------------------------------------------------------------------ */

static void who_asks_alone_is_answered(void **state)
{
	unsigned burst = RESOLVER_QUERIES_BURST / 2;

	(void)state;
	assert_int_equal(answered("192.0.2.1", 5000, false), 5000);
	/* From here on there are two. */
	assert_int_equal(answered("192.0.2.2", 5000, false), burst);
	assert_int_equal(answered("192.0.2.1", 10, false), 0);
	now += SECOND;
	assert_int_equal(answered("192.0.2.2", 5000, false), 0);
	now += 10 * SECOND;
	assert_in_range(answered("192.0.2.2", 5000, false), 200, 300);
	/* Long after the other's last question it is alone again. */
	now += 120 * SECOND;
	assert_int_equal(answered("192.0.2.1", 1, false), 1);
	now += 120 * SECOND;
	assert_int_equal(answered("192.0.2.2", 5000, false), 5000);
	assert_int_equal(answered("127.0.0.1", 5000, false), 5000);
}

/* Amplification: by forged addresses, or by a client's own. */
static void over_the_rate_udp_is_asked_to_come_by_tcp_and_then_nothing(
	void **state)
{
	const struct client_limits limits = { .queries = 10 };
	unsigned slips = 0, i;

	(void)state;
	close_table(state);
	open_with(&limits);
	assert_int_equal(answered("192.0.2.1", 10, false), 10);
	for (i = 0; i < 1000; i++) {
		enum client_answer a = ask("192.0.2.1", false);

		assert_int_not_equal(a, CLIENT_ANSWER);
		assert_int_not_equal(a, CLIENT_REFUSE);
		slips += a == CLIENT_SLIP;
	}
	assert_int_equal(slips, 10);
	/* By TCP it is itself, and has its share yet. */
	assert_int_equal(answered("192.0.2.1", 20, true), 10);
	assert_int_equal(ask("192.0.2.1", true), CLIENT_REFUSE);
	assert_int_equal(answered("192.0.2.2", 20, false), 10);
}

static void forged_addresses_push_nobody_out(void **state)
{
	const struct client_limits limits = { .queries = 10,
					      .connections = 2 };
	struct ip_addr a = addr("10.0.0.1");
	unsigned i, n = 0;

	(void)state;
	close_table(state);
	open_with(&limits);
	whole.max = 100000;
	assert_int_equal(fill("192.0.2.1", 5), 2);
	assert_int_equal(answered("192.0.2.1", 20, false), 10);
	for (i = 0; i < 20 * CLIENT_TABLE_MAX; i++) {
		a = ip_addr_v4(0x0a000000 + i);
		n += client_table_ask(table, &a, false, &whole, now) ==
		     CLIENT_ANSWER;
	}
	/* One each, as far as there is room, and one share for the rest. */
	assert_in_range(n, CLIENT_TABLE_MAX / 2, CLIENT_TABLE_MAX + 10);
	assert_int_equal(fill("192.0.2.1", 5), 0);
	assert_int_equal(answered("192.0.2.1", 20, false), 0);
	/* When they are gone there is room again. */
	now += 10 * SECOND;
	a = addr("172.16.0.1");
	for (i = 0; i < 5; i++)
		assert_int_equal(client_table_ask(table, &a, false, &whole,
						  now), CLIENT_ANSWER);
	assert_int_equal(enter_from(&a), REASON_ALLOWED);
}

/* --- workers --------------------------------------------------------------------- */

static void *come_and_go(void *arg)
{
	struct client_whole w = { .max = 1000000 };
	struct ip_addr a = addr("192.0.2.7");
	struct client_hold h;
	unsigned i, *most = arg;

	for (i = 0; i < 20000; i++) {
		if (client_table_enter(table, &a, &w, START, &h) ==
		    REASON_ALLOWED)
			++*most;
		client_table_leave(table, &h);
	}
	return NULL;
}

static void workers_count_together(void **state)
{
	const struct client_limits limits = { .connections = 4 };
	pthread_t thread[3];
	unsigned in[3] = { 0 };
	size_t i;

	(void)state;
	close_table(state);
	open_with(&limits);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		assert_int_equal(pthread_create(&thread[i], NULL, come_and_go,
						&in[i]), 0);
	for (i = 0; i < ARRAY_SIZE(thread); i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	/* Three at once are never too many, and leave nothing behind. */
	assert_int_equal(in[0] + in[1] + in[2], 60000);
	assert_int_equal(fill("192.0.2.7", 10), 4);
}

#define TABLE_TEST(f) \
	cmocka_unit_test_setup_teardown(f, open_default, close_table)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TABLE_TEST(a_greedy_client_leaves_room_for_who_comes),
		TABLE_TEST(what_is_given_back_can_be_had_again),
		TABLE_TEST(clients_on_loopback_are_not_told_apart),
		TABLE_TEST(a_number_of_the_section_binds_whoever_it_is),
		TABLE_TEST(who_is_refused_may_hear_it_so_often_and_no_more),
		TABLE_TEST(new_ones_have_a_rate),
		TABLE_TEST(
		 half_of_the_policys_rate_is_one_clients_when_others_come),
		TABLE_TEST(who_asks_alone_is_answered),
		TABLE_TEST(
		 over_the_rate_udp_is_asked_to_come_by_tcp_and_then_nothing),
		TABLE_TEST(forged_addresses_push_nobody_out),
		TABLE_TEST(workers_count_together),
	};

	return cmocka_run_group_tests_name("client_table", tests, NULL, NULL);
}
