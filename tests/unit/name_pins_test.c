/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_pins_test.c - the names that a real address may stand for
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "resolver/name_pins.h"

#define MINUTE	INT64_C(60000)
#define HOUR	(60 * MINUTE)

static struct name_pins *pins;
static struct name_pin *found[NAME_PINS_NAMES_MAX];

static int setup(void **state)
{
	(void)state;
	return name_pins_new(1 << 20, &pins);
}

static int teardown(void **state)
{
	(void)state;
	name_pins_free(pins);
	return 0;
}

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(str_from(text), &a), 0);
	return a;
}

static int give(const char *name, const struct ip_addr *a, size_t n,
		const struct id *question, int64_t now_ms)
{
	const struct name_pins_answer answer = {
		.name = str_from(name), .addr = a, .n = n, .ttl_s = 60,
		.question = question,
	};

	return name_pins_give(pins, &answer, now_ms);
}

static int give_at(const char *name, const char *at, uint32_t ttl_s,
		   int64_t now_ms)
{
	struct ip_addr a = addr(at);
	struct id question;
	const struct name_pins_answer answer = {
		.name = str_from(name), .addr = &a, .n = 1, .ttl_s = ttl_s,
		.question = &question,
	};

	id_new(&question);
	return name_pins_give(pins, &answer, now_ms);
}

static size_t names_at(const char *at, int64_t now_ms)
{
	struct ip_addr a = addr(at);

	return name_pins_at(pins, &a, now_ms, found);
}

static bool has(const char *name, const char *at, int64_t now_ms)
{
	struct ip_addr a = addr(at);

	return name_pins_find(pins, &a, str_from(name), now_ms) != NULL;
}

static void an_address_has_a_set_of_names_the_last_one_first(void **state)
{
	(void)state;
	assert_int_equal(give_at("a.example", "203.0.113.1", 60, 0), 0);
	assert_int_equal(give_at("b.example", "203.0.113.1", 60, 1), 0);
	assert_int_equal(give_at("b.example", "2001:db8::1", 60, 1), 0);
	assert_int_equal(names_at("203.0.113.1", 2), 2);
	assert_true(str_eq(name_pin_name(found[0]), STR("b.example")));
	assert_true(str_eq(name_pin_name(found[1]), STR("a.example")));
	assert_int_equal(give_at("a.example", "203.0.113.1", 60, 3), 0);
	assert_int_equal(names_at("203.0.113.1", 3), 2);
	assert_true(str_eq(name_pin_name(found[0]), STR("a.example")));
	assert_int_equal(names_at("2001:db8::1", 3), 1);
	assert_int_equal(names_at("203.0.113.2", 3), 0);
	assert_true(has("a.example", "203.0.113.1", 3));
	assert_false(has("a.example", "2001:db8::1", 3));
	assert_int_equal(name_pins_count(pins), 3);
}

/* DNS-10: sixty addresses, in one answer. */
static void every_address_of_an_answer_is_pinned_DNS_10(void **state)
{
	struct ip_addr a[60];
	struct id q1 = { { 1 } }, q2 = { { 2 } }, got;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(a); i++)
		a[i] = ip_addr_v4(0xcb007100u + i);
	assert_int_equal(give("m.example", a, 60, &q1, 0), 0);
	assert_int_equal(name_pins_count(pins), 60);
	for (unsigned i = 0; i < ARRAY_SIZE(a); i++) {
		assert_int_equal(name_pins_at(pins, &a[i], 1, found), 1);
		got = name_pin_question(found[0]);
		assert_memory_equal(&got, &q1, sizeof(got));
	}
	/* The next answer has but some of them. */
	assert_int_equal(give("m.example", a, 5, &q2, 1), 0);
	assert_int_equal(name_pins_count(pins), 60);
	assert_int_equal(name_pins_at(pins, &a[4], 1, found), 1);
	got = name_pin_question(found[0]);
	assert_memory_equal(&got, &q2, sizeof(got));
	assert_int_equal(name_pins_at(pins, &a[5], 1, found), 1);
	got = name_pin_question(found[0]);
	assert_memory_equal(&got, &q1, sizeof(got));
	assert_true(name_pins_question(pins, STR("m.example"), &got));
	assert_memory_equal(&got, &q2, sizeof(got));
	assert_false(name_pins_question(pins, STR("n.example"), &got));
}

static void an_address_twice_in_an_answer_is_one_pin(void **state)
{
	struct ip_addr a[2] = { addr("203.0.113.1"), addr("203.0.113.1") };
	struct id q = { { 1 } };

	(void)state;
	assert_int_equal(give("m.example", a, 2, &q, 0), 0);
	assert_int_equal(name_pins_count(pins), 1);
}

static void a_pin_lasts_an_hour_after_its_last_use(void **state)
{
	(void)state;
	assert_int_equal(give_at("a.example", "203.0.113.1", 60, 0), 0);
	assert_true(has("a.example", "203.0.113.1", HOUR - 1));
	assert_false(has("a.example", "203.0.113.1", HOUR));
	assert_int_equal(names_at("203.0.113.1", HOUR), 0);
	assert_int_equal(name_pins_count(pins), 0);
	assert_int_equal(name_pins_bytes(pins), 0);

	/* Another answer is a use; one of another name is none. */
	assert_int_equal(give_at("a.example", "203.0.113.1", 60, 0), 0);
	assert_int_equal(give_at("b.example", "203.0.113.1", 60, 0), 0);
	assert_int_equal(give_at("a.example", "203.0.113.1", 60, 50 * MINUTE),
			 0);
	assert_int_equal(names_at("203.0.113.1", HOUR), 1);
	assert_true(str_eq(name_pin_name(found[0]), STR("a.example")));
	assert_false(has("a.example", "203.0.113.1", 50 * MINUTE + HOUR));
}

static void a_ttl_that_is_longer_than_that_counts(void **state)
{
	(void)state;
	assert_int_equal(give_at("a.example", "203.0.113.1", 7200, 0), 0);
	assert_true(has("a.example", "203.0.113.1", 2 * HOUR - 1));
	assert_false(has("a.example", "203.0.113.1", 2 * HOUR));
	/* A shorter one of a later answer takes nothing away. */
	assert_int_equal(give_at("b.example", "203.0.113.1", 7200, 0), 0);
	assert_int_equal(give_at("b.example", "203.0.113.1", 1, 1), 0);
	assert_true(has("b.example", "203.0.113.1", 2 * HOUR - 1));
}

static void a_connection_keeps_its_pin_and_its_end_is_a_use(void **state)
{
	struct ip_addr a = addr("203.0.113.1");
	struct name_pin *pin;

	(void)state;
	assert_int_equal(give_at("a.example", "203.0.113.1", 60, 0), 0);
	assert_int_equal(give_at("b.example", "203.0.113.1", 60, 0), 0);
	pin = name_pins_find(pins, &a, STR("a.example"), 0);
	assert_non_null(pin);
	name_pin_hold(pins, pin, 0);
	name_pin_hold(pins, pin, 0);
	assert_int_equal(names_at("203.0.113.1", 24 * HOUR), 1);
	assert_ptr_equal(found[0], pin);
	name_pin_release(pins, pin, 25 * HOUR);
	assert_int_equal(names_at("203.0.113.1", 48 * HOUR), 1);
	name_pin_release(pins, pin, 48 * HOUR);
	assert_true(has("a.example", "203.0.113.1", 49 * HOUR - 1));
	assert_false(has("a.example", "203.0.113.1", 49 * HOUR));
	/* Whoever is given next finds what is over, and frees it. */
	assert_int_equal(give_at("c.example", "203.0.113.9", 60, 49 * HOUR), 0);
	assert_int_equal(name_pins_count(pins), 1);
}

/* --- the budget -------------------------------------------------------------- */

static void number(char out[32], unsigned i)
{
	assert_true(snprintf(out, 32, "n%u.example", i) > 0);
}

/* Names n0, n1, ... at an address each, until it is refused. */
static unsigned fill(int64_t now_ms)
{
	char name[32], at[32];
	unsigned i;

	for (i = 0; i < 1000000; i++) {
		number(name, i);
		assert_true(snprintf(at, sizeof(at), "203.%u.%u.%u",
				     i >> 16 & 255, i >> 8 & 255,
				     i & 255) > 0);
		if (give_at(name, at, 60, now_ms) != 0)
			break;
	}
	return i;
}

static void a_budget_is_kept_and_a_name_over_it_is_refused(void **state)
{
	unsigned n;
	size_t bytes, count;

	(void)state;
	n = fill(0);
	assert_in_range(n, 1000, 100000);
	bytes = name_pins_bytes(pins);
	count = name_pins_count(pins);
	assert_true(bytes <= 1 << 20);
	assert_int_equal(count, n);
	/* All are within their TTL: none is given up for another. */
	assert_int_equal(give_at("x.example", "198.51.100.1", 60, 59999),
			 -ENOSPC);
	assert_int_equal(name_pins_count(pins), count);
	assert_int_equal(name_pins_bytes(pins), bytes);
	assert_true(has("n0.example", "203.0.0.0", 59999));
	/* What is there may be given again, also when all is full. */
	assert_int_equal(give_at("n0.example", "203.0.0.0", 60, 59999), 0);
}

static void what_is_used_longest_ago_is_given_up_first(void **state)
{
	struct ip_addr a = addr("203.0.0.1");
	struct name_pin *pin;
	unsigned n;

	(void)state;
	n = fill(0);
	/* 0 is young, 1 is in a connection: 2 has to go. */
	assert_int_equal(give_at("n0.example", "203.0.0.0", 60, 59000), 0);
	pin = name_pins_find(pins, &a, STR("n1.example"), 60000);
	name_pin_hold(pins, pin, 60000);
	assert_int_equal(give_at("x.example", "198.51.100.1", 60, 60000), 0);
	assert_true(has("n0.example", "203.0.0.0", 60000));
	assert_true(has("n1.example", "203.0.0.1", 60000));
	assert_false(has("n2.example", "203.0.0.2", 60000));
	assert_true(has("n9.example", "203.0.0.9", 60000));
	assert_in_range(name_pins_count(pins), n - 2, n + 1);
	assert_true(name_pins_bytes(pins) <= 1 << 20);
	name_pin_release(pins, pin, 60001);
}

/* One name less would make the other look like the only one. */
static void an_address_is_given_up_with_all_its_names_or_not(void **state)
{
	(void)state;
	assert_int_equal(give_at("a.example", "198.51.100.1", 60, 0), 0);
	assert_int_equal(give_at("b.example", "198.51.100.1", 600, 0), 0);
	assert_int_equal(give_at("c.example", "198.51.100.2", 60, 0), 0);
	assert_int_equal(give_at("d.example", "198.51.100.2", 60, 0), 0);
	(void)fill(1);
	assert_int_equal(give_at("x.example", "192.0.2.1", 60, 61000), 0);
	assert_int_equal(names_at("198.51.100.1", 61000), 2);
	assert_int_equal(names_at("198.51.100.2", 61000), 0);
}

static void a_set_of_names_is_bounded_and_its_old_ones_make_room(void **state)
{
	char name[32];

	(void)state;
	for (unsigned i = 0; i < NAME_PINS_NAMES_MAX; i++) {
		number(name, i);
		assert_int_equal(give_at(name, "203.0.113.1", 60, i ? 1 : 0),
				 0);
	}
	assert_int_equal(give_at("x.example", "203.0.113.1", 60, 2), -ENOSPC);
	assert_false(has("x.example", "203.0.113.1", 2));
	assert_int_equal(names_at("203.0.113.1", 2), NAME_PINS_NAMES_MAX);
	assert_int_equal(give_at("x.example", "203.0.113.1", 60, HOUR), 0);
	assert_false(has("n0.example", "203.0.113.1", HOUR));
	assert_true(has("n1.example", "203.0.113.1", HOUR));
}

static void an_answer_is_pinned_whole_or_not_at_all(void **state)
{
	struct ip_addr a[3] = {
		addr("203.0.113.2"), addr("203.0.113.3"), addr("203.0.113.1"),
	};
	struct id q = { { 7 } }, got;
	char name[32];
	size_t bytes;

	(void)state;
	assert_int_equal(give_at("x.example", "203.0.113.2", 60, 0), 0);
	for (unsigned i = 0; i < NAME_PINS_NAMES_MAX; i++) {
		number(name, i);
		assert_int_equal(give_at(name, "203.0.113.1", 60, 0), 0);
	}
	bytes = name_pins_bytes(pins);
	assert_int_equal(give("x.example", a, 3, &q, 1), -ENOSPC);
	assert_true(has("x.example", "203.0.113.2", 1));
	assert_false(has("x.example", "203.0.113.3", 1));
	assert_false(has("x.example", "203.0.113.1", 1));
	assert_true(name_pins_question(pins, STR("x.example"), &got));
	assert_memory_not_equal(&got, &q, sizeof(got));
	assert_int_equal(name_pins_bytes(pins), bytes);
	assert_int_equal(give("y.example", a, 3, &q, 1), -ENOSPC);
	assert_false(name_pins_question(pins, STR("y.example"), &got));
	assert_int_equal(name_pins_bytes(pins), bytes);
}

static void no_memory_is_no_pin(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 3; i++) {
		mem_test_fail_at(i);
		assert_int_equal(give_at("a.example", "203.0.113.1", 60, 0),
				 -ENOMEM);
		mem_test_fail_at(0);
		assert_int_equal(name_pins_count(pins), 0);
		assert_int_equal(name_pins_bytes(pins), 0);
	}
	for (unsigned i = 1; i <= 4; i++) {
		struct name_pins *other = NULL;

		mem_test_fail_at(i);
		assert_int_equal(name_pins_new(1, &other), -ENOMEM);
		mem_test_fail_at(0);
		assert_null(other);
	}
}

#define PINS_TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PINS_TEST(an_address_has_a_set_of_names_the_last_one_first),
		PINS_TEST(every_address_of_an_answer_is_pinned_DNS_10),
		PINS_TEST(an_address_twice_in_an_answer_is_one_pin),
		PINS_TEST(a_pin_lasts_an_hour_after_its_last_use),
		PINS_TEST(a_ttl_that_is_longer_than_that_counts),
		PINS_TEST(a_connection_keeps_its_pin_and_its_end_is_a_use),
		PINS_TEST(a_budget_is_kept_and_a_name_over_it_is_refused),
		PINS_TEST(what_is_used_longest_ago_is_given_up_first),
		PINS_TEST(an_address_is_given_up_with_all_its_names_or_not),
		PINS_TEST(a_set_of_names_is_bounded_and_its_old_ones_make_room),
		PINS_TEST(an_answer_is_pinned_whole_or_not_at_all),
		PINS_TEST(no_memory_is_no_pin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
