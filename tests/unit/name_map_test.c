/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_map_test.c - one address for a name, one name for an address
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "resolver/name_map.h"

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(str_from(text), &a), 0);
	return a;
}

static void assert_text(const struct ip_addr *a, const char *want)
{
	char text[IP_TEXT_SIZE];

	ip_addr_text(a, text);
	assert_string_equal(text, want);
}

static void a_name_keeps_its_address_and_each_its_own(void **state)
{
	struct id q1, q2, got;
	struct name_map *m;
	struct ip_addr a, b;
	struct str name;

	(void)state;
	id_new(&q1);
	id_new(&q2);
	assert_int_equal(name_map_new(1 << 20, &m), 0);
	assert_int_equal(name_map_give(m, STR("a.example"), IP_V4, &q1, &a), 0);
	assert_text(&a, "198.18.1.0");
	assert_int_equal(name_map_give(m, STR("b.example"), IP_V4, &q1, &b), 0);
	assert_text(&b, "198.18.1.1");
	assert_int_equal(name_map_give(m, STR("a.example"), IP_V4, &q2, &b), 0);
	assert_true(ip_addr_eq(&a, &b));
	assert_int_equal(name_map_count(m), 2);
	assert_true(name_map_find(m, &a, &name, &got));
	assert_true(str_eq(name, STR("a.example")));
	assert_memory_equal(&got, &q2, sizeof(got));
	assert_true(name_map_question(m, STR("b.example"), &got));
	assert_memory_equal(&got, &q1, sizeof(got));
	assert_false(name_map_question(m, STR("c.example"), &got));
	name_map_free(m);
}

static void a_family_that_was_not_given_is_not_found(void **state)
{
	struct id q, got;
	struct name_map *m;
	struct ip_addr a, v4;
	struct str name;

	(void)state;
	id_new(&q);
	assert_int_equal(name_map_new(1 << 20, &m), 0);
	assert_int_equal(name_map_give(m, STR("a.example"), IP_V6, &q, &a), 0);
	assert_text(&a, "fd70:656e:7374:6f63::100");
	assert_true(name_map_find(m, &a, &name, &got));
	v4 = addr("198.18.1.0");
	assert_false(name_map_find(m, &v4, &name, &got));
	assert_int_equal(name_map_give(m, STR("a.example"), IP_V4, &q, &a), 0);
	assert_true(name_map_find(m, &v4, &name, &got));
	name_map_free(m);
}

static void what_was_never_given_is_not_found(void **state)
{
	static const char *const never[] = {
		"198.18.0.0", "198.18.0.255", "198.18.1.1", "198.19.255.255",
		"198.17.255.255", "198.20.0.0", "192.0.2.1",
		"fd70:656e:7374:6f63::", "fd70:656e:7374:6f63::101",
		"fd70:656e:7374:6f63:1::100", "fd70:656e:7374:6f63:0:1:0:100",
		"fd70:656e:7374:6f64::100", "::ffff:198.18.1.0",
	};
	struct id q, got;
	struct name_map *m;
	struct ip_addr a;
	struct str name;

	(void)state;
	id_new(&q);
	assert_int_equal(name_map_new(1 << 20, &m), 0);
	assert_int_equal(name_map_give(m, STR("a.example"), IP_V4, &q, &a), 0);
	assert_int_equal(name_map_give(m, STR("a.example"), IP_V6, &q, &a), 0);
	for (size_t i = 0; i < ARRAY_SIZE(never); i++) {
		a = addr(never[i]);
		assert_false(name_map_find(m, &a, &name, &got));
	}
	name_map_free(m);
}

static void the_prefixes_are_synthetic_given_or_not(void **state)
{
	struct ip_addr a;

	(void)state;
	a = addr("198.18.0.0");
	assert_true(name_map_is_synthetic(&a));
	a = addr("198.19.255.255");
	assert_true(name_map_is_synthetic(&a));
	a = addr("198.20.0.0");
	assert_false(name_map_is_synthetic(&a));
	a = addr("fd70:656e:7374:6f63:ffff::1");
	assert_true(name_map_is_synthetic(&a));
	a = addr("fd70:656e:7374:6f64::1");
	assert_false(name_map_is_synthetic(&a));
}

static void names_end_with_the_addresses(void **state)
{
	const unsigned all = (1u << 17) - 512;
	struct id q;
	struct name_map *m;
	struct ip_addr a;
	char name[32];

	(void)state;
	id_new(&q);
	assert_int_equal(name_map_new(64u << 20, &m), 0);
	for (unsigned i = 0; i < all; i++) {
		int n = snprintf(name, sizeof(name), "n%u.example", i);

		if (name_map_give(m, str_make(name, (size_t)n), IP_V4, &q, &a))
			fail_msg("name %u was refused", i);
	}
	assert_text(&a, "198.19.254.255");
	assert_int_equal(name_map_give(m, STR("x.example"), IP_V4, &q, &a),
			 -ENOSPC);
	assert_int_equal(name_map_give(m, STR("n7.example"), IP_V4, &q, &a), 0);
	assert_text(&a, "198.18.1.7");
	assert_int_equal(name_map_count(m), all);
	name_map_free(m);
}

static void names_end_with_the_budget(void **state)
{
	struct id q, got;
	struct name_map *m;
	struct ip_addr a;
	struct str found;
	char name[32];
	unsigned given = 0;

	(void)state;
	id_new(&q);
	assert_int_equal(name_map_new(64 << 10, &m), 0);
	for (;; given++) {
		int n = snprintf(name, sizeof(name), "n%u.example", given);

		if (name_map_give(m, str_make(name, (size_t)n), IP_V4, &q, &a))
			break;
	}
	assert_in_range(given, 100, 2000);
	assert_int_equal(name_map_count(m), given);
	a = ip_addr_v4(0xc6120100u + given);
	assert_false(name_map_find(m, &a, &found, &got));
	a = ip_addr_v4(0xc6120100u + given - 1);
	assert_true(name_map_find(m, &a, &found, &got));
	name_map_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_keeps_its_address_and_each_its_own),
		cmocka_unit_test(a_family_that_was_not_given_is_not_found),
		cmocka_unit_test(what_was_never_given_is_not_found),
		cmocka_unit_test(the_prefixes_are_synthetic_given_or_not),
		cmocka_unit_test(names_end_with_the_addresses),
		cmocka_unit_test(names_end_with_the_budget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
