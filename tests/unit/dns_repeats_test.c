/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_repeats_test.c - which questions are counted, and when that is told
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "resolver/dns_repeats.h"

#define START	1000000

static struct dns_repeats *table;
static struct record told;
static char told_host[256];
static struct ip_addr told_answer;
static unsigned tellings;

static void tell(void *arg, const struct record *r)
{
	(void)arg;
	told = *r;
	memcpy(told_host, r->host.p, r->host.n);
	told.host.p = told_host;
	if (r->nanswers)
		told_answer = r->answers[0];
	tellings++;
}

static int setup(void **state)
{
	(void)state;
	tellings = 0;
	return dns_repeats_new(DNS_REPEATS_BYTES, tell, NULL, &table);
}

static int teardown(void **state)
{
	(void)state;
	dns_repeats_free(table);
	return 0;
}

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(str_from(text), &a), 0);
	return a;
}

static struct dns_repeat_key key_of(const char *name)
{
	struct dns_repeat_key key = {
		.name = str_from(name), .type = 1, .asked = addr("127.0.0.9"),
	};

	key.hash = dns_repeat_hash(&key);
	return key;
}

static struct record record_of(const char *name, unsigned char id)
{
	return (struct record){
		.event = RECORD_DNS, .act = RECORD_ALLOW,
		.reason = REASON_ALLOWED, .via = RECORD_VIA_DNS,
		.id = { .b = { id } }, .rule = "web", .host = str_from(name),
		.asked = addr("127.0.0.9"), .transport = "udp", .qtype = "A",
	};
}

/* Was it there, and under which id? */
static bool finds(const struct dns_repeat_key *key, struct id *ret)
{
	struct dns_repeat_found found;

	return dns_repeats_find(table, key, ret, &found);
}

static bool count_at(const struct dns_repeat_key *key, const struct record *r,
		     int64_t now_ms, struct id *ret)
{
	struct dns_repeat_found found;
	struct id id;

	(void)dns_repeats_find(table, key, &id, &found);
	(void)dns_repeats_close(table, now_ms);
	return dns_repeats_count(table, key, &found, r, ret);
}

static bool counts(const struct dns_repeat_key *key, const struct record *r)
{
	struct id id;

	return count_at(key, r, START + 1, &id);
}

static void add(const struct dns_repeat_key *key, const struct record *r,
		int64_t now_ms)
{
	struct dns_repeat_found found;
	struct id id;

	(void)dns_repeats_find(table, key, &id, &found);
	dns_repeats_add(table, key, &found, r, now_ms);
}

static void equals_are_told_of_once_when_their_time_is_over(void **state)
{
	struct dns_repeat_key key = key_of("api.example.com");
	struct record r = record_of("api.example.com", 7);
	struct ip_addr answer = addr("198.18.1.0");
	struct id id;

	(void)state;
	r.answers = &answer;
	r.nanswers = 1;
	assert_false(finds(&key, &id));
	assert_false(counts(&key, &r));
	add(&key, &r, START);
	for (int i = 1; i <= 3; i++)
		assert_true(count_at(&key, &r, START + i, &id));
	assert_int_equal(id.b[0], 7);
	assert_true(finds(&key, &id));
	assert_int_equal(dns_repeats_close(table, START + DNS_REPEAT_MS - 1),
			 START + DNS_REPEAT_MS);
	assert_int_equal(tellings, 0);
	assert_int_equal(dns_repeats_close(table, START + DNS_REPEAT_MS), -1);
	assert_int_equal(tellings, 1);
	assert_int_equal(told.count, 3);
	assert_int_equal(told.id.b[0], 7);
	assert_int_equal(told.act, RECORD_ALLOW);
	assert_int_equal(told.event, RECORD_DNS);
	assert_string_equal(told.rule, "web");
	assert_string_equal(told.transport, "udp");
	assert_true(str_eq(told.host, STR("api.example.com")));
	assert_int_equal(told.nanswers, 1);
	assert_true(ip_addr_eq(&told_answer, &answer));
	/* The next one is a first one again. */
	assert_false(finds(&key, &id));
	assert_int_equal(dns_repeats_bytes(table), 0);
}

static void what_did_not_come_again_is_not_told_of(void **state)
{
	struct dns_repeat_key key = key_of("api.example.com");
	struct record r = record_of("api.example.com", 7);

	(void)state;
	add(&key, &r, START);
	assert_int_equal(dns_repeats_close(table, START + DNS_REPEAT_MS), -1);
	assert_int_equal(tellings, 0);
}

/* No timer has to have come by for a time to be over. */
static void a_count_after_its_time_begins_anew(void **state)
{
	struct dns_repeat_key key = key_of("api.example.com");
	struct record r = record_of("api.example.com", 7);
	struct id id;

	(void)state;
	add(&key, &r, START);
	assert_true(counts(&key, &r));
	assert_false(count_at(&key, &r, START + DNS_REPEAT_MS, &id));
	assert_int_equal(tellings, 1);
	assert_int_equal(told.count, 1);
}

static void another_question_or_answer_is_no_equal(void **state)
{
	struct dns_repeat_key key = key_of("api.example.com"), other;
	struct record r = record_of("api.example.com", 7), differs;
	struct ip_addr answer = addr("198.18.1.0"), answer2 = addr("198.18.1.1");

	(void)state;
	r.answers = &answer;
	r.nanswers = 1;
	add(&key, &r, START);
	assert_true(counts(&key, &r));
	other = key;
	other.type = 28;
	other.hash = dns_repeat_hash(&other);
	assert_false(counts(&other, &r));
	other = key;
	other.tcp = true;
	assert_false(counts(&other, &r));
	other = key;
	other.asked = addr("127.0.0.8");
	assert_false(counts(&other, &r));
	other = key_of("api.example.net");
	assert_false(counts(&other, &r));
#define DIFFERS(field, value) do { \
		differs = r; \
		differs.field = value; \
		assert_false(counts(&key, &differs)); \
	} while (0)
	DIFFERS(act, RECORD_WOULD_DENY);
	DIFFERS(reason, REASON_DNS_FAILED);
	DIFFERS(rcode, 2);
	DIFFERS(internal, true);
	DIFFERS(rule, "other");
	DIFFERS(rule, NULL);
	DIFFERS(qtype, NULL);
	DIFFERS(nanswers, 0);
	DIFFERS(answers, &answer2);
	assert_true(counts(&key, &r));
	assert_int_equal(tellings, 0);
	/* What it is answered now takes its place; the count is not lost. */
	DIFFERS(rcode, 3);
	differs.id.b[0] = 8;
	add(&key, &differs, START + 2);
	assert_int_equal(tellings, 1);
	assert_int_equal(told.count, 2);
	assert_int_equal(told.id.b[0], 7);
	assert_true(counts(&key, &differs));
}

/* A question that waited: others came and went since it was born. */
static void what_was_found_before_others_came_is_looked_for_again(void **state)
{
	struct dns_repeat_key key = key_of("api.example.com");
	struct record r = record_of("api.example.com", 7);
	struct dns_repeat_found before, after;
	struct id id;

	(void)state;
	assert_false(dns_repeats_find(table, &key, &id, &before));
	add(&key, &r, START);
	assert_true(dns_repeats_count(table, &key, &before, &r, &id));
	assert_int_equal(id.b[0], 7);
	assert_true(dns_repeats_find(table, &key, &id, &after));
	dns_repeats_flush(table);
	assert_false(dns_repeats_count(table, &key, &after, &r, &id));
	dns_repeats_add(table, &key, &before, &r, START);
	assert_true(counts(&key, &r));
}

static void bytes_are_bounded_and_the_oldest_goes_first(void **state)
{
	struct dns_repeat_key key = key_of("first.example.com");
	struct record r = record_of("first.example.com", 7);
	char name[64];

	(void)state;
	add(&key, &r, START);
	assert_true(counts(&key, &r));
	for (unsigned i = 0; i < 20000; i++) {
		snprintf(name, sizeof(name), "n%u.example.com", i);
		key = key_of(name);
		r = record_of(name, 9);
		add(&key, &r, START);
		assert_true(dns_repeats_bytes(table) <= DNS_REPEATS_BYTES);
	}
	assert_int_equal(tellings, 1);
	assert_true(str_eq(told.host, STR("first.example.com")));
	assert_true(dns_repeats_bytes(table) > DNS_REPEATS_BYTES / 2);
	assert_true(counts(&key, &r));
	dns_repeats_flush(table);
	assert_int_equal(tellings, 2);
	assert_int_equal(dns_repeats_bytes(table), 0);
}

static void without_memory_nothing_is_counted(void **state)
{
	struct dns_repeat_key key = key_of("api.example.com");
	struct record r = record_of("api.example.com", 7);

	(void)state;
	mem_test_fail_at(1);
	add(&key, &r, START);
	mem_test_fail_at(0);
	assert_false(counts(&key, &r));
	add(&key, &r, START);
	assert_true(counts(&key, &r));
}

int main(void)
{
#define T(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)
	static const struct CMUnitTest tests[] = {
		T(equals_are_told_of_once_when_their_time_is_over),
		T(what_did_not_come_again_is_not_told_of),
		T(a_count_after_its_time_begins_anew),
		T(another_question_or_answer_is_no_equal),
		T(what_was_found_before_others_came_is_looked_for_again),
		T(bytes_are_bounded_and_the_oldest_goes_first),
		T(without_memory_nothing_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
