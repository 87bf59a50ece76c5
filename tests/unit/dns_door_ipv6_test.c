/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door_ipv6_test.c - whether names have IPv6 addresses
 */
#include "tests/unit/dns_door_lab.h"

#include <stdio.h>

static struct ip_hosts here;

static int setup(void **state)
{
	here = (struct ip_hosts){ .no_ipv6 = true };
	return door_setup(state);
}

static void use(const char *ipv6)
{
	char text[2048];

	assert_true(snprintf(text, sizeof(text), "%s[dns]\nipv6 = %s\n",
			     policy, ipv6) < (int)sizeof(text));
	open_with(text);
	hosts = &here;
}

static void expect_none(const char *name)
{
	unsigned before = fake_count(upstream);
	struct reply r;

	ask(&r, name, DNS_TYPE_AAAA);
	assert_no(&r, DNS_NOERROR, -1, "");
	assert_int_equal(r.m.p[9], 1);		/* an SOA: it may be kept */
	assert_int_equal(fake_count(upstream), before);
	LAST("\"dns_no_address\"", "\"allow\"", "\"AAAA\"", name);
}

/* DNS-06: an error would take the name's A away in some stubs. */
static void dns_06_off_means_that_names_have_none(void **state)
{
	struct reply r;

	(void)state;
	use("off");
	here.no_ipv6 = false;
	expect_none("api.example.com");
	expect_none("v6.example.com");
	expect_none("gone.example.com");
	expect_none("fail.example.com");
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	/* Denied is denied, and what is answered here is. */
	ask(&r, "denied.example.net", DNS_TYPE_AAAA);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	ask(&r, "localhost", DNS_TYPE_AAAA);
	assert_addr(&r.addr, "::1");
}

static void dns_06_auto_follows_the_hosts_routes(void **state)
{
	struct reply r;

	(void)state;
	use("auto");
	expect_none("api.example.com");
	here.no_ipv6 = false;
	ask(&r, "api.example.com", DNS_TYPE_AAAA);
	assert_int_equal(r.answers, 1);
	here.no_ipv6 = true;
	expect_none("api.example.com");
	/* Not known is not "none". */
	hosts = NULL;
	ask(&r, "api.example.com", DNS_TYPE_AAAA);
	assert_int_equal(r.answers, 1);
}

static void auto_is_what_a_policy_says_that_says_nothing(void **state)
{
	(void)state;
	hosts = &here;
	expect_none("api.example.com");
}

static void on_means_on_whatever_the_host_has(void **state)
{
	struct reply r;

	(void)state;
	use("on");
	ask(&r, "api.example.com", DNS_TYPE_AAAA);
	assert_int_equal(r.answers, 1);
	ask(&r, "v4.example.com", DNS_TYPE_AAAA);
	assert_no(&r, DNS_NOERROR, -1, "");
}

/* A name whose one usable family is shut is not to be reached. */
static void a_family_that_is_shut_keeps_no_name_alive(void **state)
{
	unsigned before = fake_count(upstream);
	struct reply r;

	(void)state;
	use("off");
	ask(&r, "half.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "address_private");
	assert_int_equal(fake_count(upstream), before + 1);
	use("auto");
	ask(&r, "half.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "address_private");
	here.no_ipv6 = false;
	ask(&r, "half.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NOERROR, 15, "address_private");
}

#define IPV6_TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, \
							door_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IPV6_TEST(dns_06_off_means_that_names_have_none),
		IPV6_TEST(dns_06_auto_follows_the_hosts_routes),
		IPV6_TEST(auto_is_what_a_policy_says_that_says_nothing),
		IPV6_TEST(on_means_on_whatever_the_host_has),
		IPV6_TEST(a_family_that_is_shut_keeps_no_name_alive),
	};

	return door_lab_run(tests, ARRAY_SIZE(tests));
}
