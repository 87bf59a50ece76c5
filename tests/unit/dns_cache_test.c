/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_cache_test.c - the cache, and the nameserver lines of resolv.conf
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "resolver/dns_cache.h"

#define NAME	STR("api.example")

static struct dns_cache *cache(size_t budget)
{
	struct dns_cache *c = NULL;

	assert_int_equal(dns_cache_new(budget, &c), 0);
	return c;
}

static void put(struct dns_cache *c, enum reason reason, uint32_t ttl_s)
{
	struct ip_addr a = ip_addr_v4(0xcb007109);
	struct resolver_answer answer = {
		.reason = reason, .addr = &a, .n = reason == REASON_ALLOWED,
		.ttl_s = ttl_s,
	};

	dns_cache_put(c, 1, NAME, RESOLVER_A, 1000, &answer);
}

static bool has(struct dns_cache *c, int64_t now_ms)
{
	struct resolver_answer got;

	return dns_cache_get(c, 1, NAME, RESOLVER_A, now_ms, &got);
}

static void an_answer_is_kept_until_its_time_is_up(void **state)
{
	struct dns_cache *c = cache(1 << 16);
	struct resolver_answer got;

	(void)state;
	put(c, REASON_ALLOWED, 30);
	assert_true(dns_cache_get(c, 1, NAME, RESOLVER_A, 30999, &got));
	assert_int_equal(got.reason, REASON_ALLOWED);
	assert_int_equal(got.n, 1);
	assert_int_equal(ip_addr_v4_bits(&got.addr[0]), 0xcb007109);
	/* A constant: what is left of it would tell of others' lookups. */
	assert_int_equal(got.ttl_s, 30);
	assert_false(has(c, 31000));
	assert_int_equal(dns_cache_bytes(c), 0);
	dns_cache_free(c);
}

static bool wants_renewal(struct dns_cache *c, int64_t now_ms)
{
	struct resolver_answer got;

	assert_true(dns_cache_get(c, 1, NAME, RESOLVER_A, now_ms, &got));
	return got.renew;
}

static void what_is_asked_for_near_its_end_is_renewed_once(void **state)
{
	struct dns_cache *c = cache(1 << 16);

	(void)state;
	put(c, REASON_ALLOWED, 100);
	assert_false(wants_renewal(c, 1000));
	assert_false(wants_renewal(c, 90999));
	assert_true(wants_renewal(c, 91000));
	assert_false(wants_renewal(c, 91001));
	assert_false(wants_renewal(c, 100999));
	put(c, REASON_ALLOWED, 100);
	assert_true(wants_renewal(c, 100999));
	/* Short lives, and what is not there, would only cost questions. */
	put(c, REASON_ALLOWED, DNS_RENEW_LIFE_S - 1);
	assert_false(wants_renewal(c, DNS_RENEW_LIFE_S * 1000 - 1));
	put(c, REASON_DNS_NXDOMAIN, 60);
	assert_false(wants_renewal(c, 60999));
	dns_cache_free(c);
}

static void a_failure_does_not_replace_what_still_holds(void **state)
{
	struct dns_cache *c = cache(1 << 16);
	struct resolver_answer got, failure = {
		.reason = REASON_DNS_TIMEOUT, .ttl_s = 5,
	};

	(void)state;
	put(c, REASON_ALLOWED, 100);
	dns_cache_put(c, 1, NAME, RESOLVER_A, 95000, &failure);
	assert_true(dns_cache_get(c, 1, NAME, RESOLVER_A, 100999, &got));
	assert_int_equal(got.reason, REASON_ALLOWED);
	/* It is over by then; and a name that is gone is gone at once. */
	dns_cache_put(c, 1, NAME, RESOLVER_A, 101000, &failure);
	assert_true(dns_cache_get(c, 1, NAME, RESOLVER_A, 101001, &got));
	assert_int_equal(got.reason, REASON_DNS_TIMEOUT);
	put(c, REASON_ALLOWED, 100);
	put(c, REASON_DNS_NXDOMAIN, 60);
	assert_true(dns_cache_get(c, 1, NAME, RESOLVER_A, 2000, &got));
	assert_int_equal(got.reason, REASON_DNS_NXDOMAIN);
	dns_cache_free(c);
}

static void tenant_and_type_are_part_of_the_key(void **state)
{
	struct dns_cache *c = cache(1 << 16);
	struct resolver_answer got;

	(void)state;
	put(c, REASON_ALLOWED, 30);
	assert_false(dns_cache_get(c, 2, NAME, RESOLVER_A, 1000, &got));
	assert_false(dns_cache_get(c, 1, NAME, RESOLVER_AAAA, 1000, &got));
	assert_false(dns_cache_get(c, 1, STR("api.exampl"), RESOLVER_A, 1000,
				   &got));
	assert_true(dns_cache_get(c, 1, NAME, RESOLVER_A, 1000, &got));
	dns_cache_free(c);
}

static void dns_23_no_and_failure_are_kept_for_a_short_time_only(void **state)
{
	struct dns_cache *c = cache(1 << 16);

	(void)state;
	put(c, REASON_DNS_NXDOMAIN, 86400);
	assert_true(has(c, 60999));
	assert_false(has(c, 61000));
	put(c, REASON_DNS_NO_ADDRESS, 86400);
	assert_true(has(c, 60999));
	assert_false(has(c, 61000));
	put(c, REASON_DNS_FAILED, 86400);
	assert_true(has(c, 5999));
	assert_false(has(c, 6000));
	put(c, REASON_DNS_TIMEOUT, 86400);
	assert_false(has(c, 6000));
	put(c, REASON_ALLOWED, UINT32_MAX);
	assert_true(has(c, 300999));
	assert_false(has(c, 301000));
	put(c, REASON_ALLOWED, 0);
	assert_false(has(c, 1000));
	dns_cache_free(c);
}

static void a_new_answer_replaces_the_old_one(void **state)
{
	struct dns_cache *c = cache(1 << 16);
	struct resolver_answer got;

	(void)state;
	put(c, REASON_ALLOWED, 30);
	put(c, REASON_DNS_NXDOMAIN, 30);
	assert_true(dns_cache_get(c, 1, NAME, RESOLVER_A, 1000, &got));
	assert_int_equal(got.reason, REASON_DNS_NXDOMAIN);
	assert_int_equal(got.n, 0);
	dns_cache_flush(c);
	assert_false(has(c, 1000));
	dns_cache_free(c);
}

static void the_one_used_longest_ago_makes_room(void **state)
{
	struct dns_cache *c = cache(4096);
	struct resolver_answer got, no = {
		.reason = REASON_DNS_NXDOMAIN, .ttl_s = 60,
	};
	char name[16];

	(void)state;
	put(c, REASON_ALLOWED, 30);
	for (int i = 0; i < 500; i++) {
		int n = snprintf(name, sizeof(name), "n%d", i);

		dns_cache_put(c, 1, str_make(name, (size_t)n), RESOLVER_A,
			      1000, &no);
		assert_true(dns_cache_bytes(c) <= 4096);
		assert_true(has(c, 1000));	/* used, so it stays */
	}
	assert_false(dns_cache_get(c, 1, STR("n0"), RESOLVER_A, 1000, &got));
	assert_true(dns_cache_get(c, 1, STR("n499"), RESOLVER_A, 1000, &got));
	dns_cache_free(c);
}

static void an_answer_over_the_budget_is_not_kept(void **state)
{
	struct dns_cache *c = cache(64);

	(void)state;
	put(c, REASON_ALLOWED, 30);
	assert_false(has(c, 1000));
	dns_cache_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_is_kept_until_its_time_is_up),
		cmocka_unit_test(
			what_is_asked_for_near_its_end_is_renewed_once),
		cmocka_unit_test(a_failure_does_not_replace_what_still_holds),
		cmocka_unit_test(tenant_and_type_are_part_of_the_key),
		cmocka_unit_test(
			dns_23_no_and_failure_are_kept_for_a_short_time_only),
		cmocka_unit_test(a_new_answer_replaces_the_old_one),
		cmocka_unit_test(the_one_used_longest_ago_makes_room),
		cmocka_unit_test(an_answer_over_the_budget_is_not_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
