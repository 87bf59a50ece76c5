/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ip_class_test.c - every class, by the registries and their edges
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/ip_class.h"
#include "base/mem.h"

struct line {
	const char *text;
	enum ip_class class;
};

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	if (ip_addr_parse(str_from(text), &a))
		fail_msg("not an address: %s", text);
	return a;
}

static void assert_classes(const struct line *line, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct ip_addr a = addr(line[i].text);
		enum ip_class got = ip_classify(&a);

		if (got != line[i].class)
			fail_msg("%s is %s, not %s", line[i].text,
				 ip_class_name(got),
				 ip_class_name(line[i].class));
	}
}

/* The first and last address of each block, and their neighbours outside. */
static void ipv4_blocks_begin_and_end_where_the_registry_says(void **state)
{
	static const struct line lines[] = {
		/* ADDR-05 */
		{ "0.0.0.0", IP_UNSPECIFIED }, { "0.1.2.3", IP_UNSPECIFIED },
		{ "0.255.255.255", IP_UNSPECIFIED }, { "1.0.0.0", IP_PUBLIC },
		{ "9.255.255.255", IP_PUBLIC }, { "10.0.0.0", IP_PRIVATE },
		{ "10.255.255.255", IP_PRIVATE }, { "11.0.0.0", IP_PUBLIC },
		{ "100.63.255.255", IP_PUBLIC }, { "100.64.0.0", IP_CGNAT },
		{ "100.127.255.255", IP_CGNAT }, { "100.128.0.0", IP_PUBLIC },
		{ "126.255.255.255", IP_PUBLIC }, { "127.0.0.0", IP_LOOPBACK },
		{ "127.0.0.1", IP_LOOPBACK }, { "127.255.255.255", IP_LOOPBACK },
		{ "128.0.0.0", IP_PUBLIC }, { "169.253.255.255", IP_PUBLIC },
		{ "169.254.0.0", IP_LINK_LOCAL },
		{ "169.254.169.253", IP_LINK_LOCAL },
		{ "169.254.255.255", IP_LINK_LOCAL }, { "169.255.0.0", IP_PUBLIC },
		{ "172.15.255.255", IP_PUBLIC }, { "172.16.0.0", IP_PRIVATE },
		{ "172.31.255.255", IP_PRIVATE }, { "172.32.0.0", IP_PUBLIC },
		{ "191.255.255.255", IP_PUBLIC }, { "192.0.0.0", IP_RESERVED },
		{ "192.0.0.9", IP_RESERVED }, { "192.0.0.10", IP_RESERVED },
		{ "192.0.0.170", IP_RESERVED }, { "192.0.0.255", IP_RESERVED },
		{ "192.0.1.0", IP_PUBLIC }, { "192.0.2.0", IP_DOCUMENTATION },
		{ "192.0.2.255", IP_DOCUMENTATION }, { "192.0.3.0", IP_PUBLIC },
		/* AS112 and AMT are globally reachable. */
		{ "192.31.196.1", IP_PUBLIC }, { "192.52.193.1", IP_PUBLIC },
		{ "192.175.48.1", IP_PUBLIC },
		{ "192.88.98.255", IP_PUBLIC }, { "192.88.99.0", IP_RESERVED },
		{ "192.88.99.1", IP_RESERVED }, { "192.88.100.0", IP_PUBLIC },
		{ "192.167.255.255", IP_PUBLIC }, { "192.168.0.0", IP_PRIVATE },
		{ "192.168.255.255", IP_PRIVATE }, { "192.169.0.0", IP_PUBLIC },
		{ "198.17.255.255", IP_PUBLIC }, { "198.18.0.0", IP_BENCHMARK },
		{ "198.19.255.255", IP_BENCHMARK }, { "198.20.0.0", IP_PUBLIC },
		{ "198.51.100.0", IP_DOCUMENTATION }, { "198.51.101.0", IP_PUBLIC },
		{ "203.0.113.255", IP_DOCUMENTATION }, { "203.0.114.0", IP_PUBLIC },
		{ "223.255.255.255", IP_PUBLIC }, { "224.0.0.0", IP_MULTICAST },
		{ "239.255.255.255", IP_MULTICAST }, { "240.0.0.0", IP_RESERVED },
		{ "255.255.255.255", IP_RESERVED },
		{ "8.8.8.8", IP_PUBLIC }, { "1.1.1.1", IP_PUBLIC },
	};

	(void)state;
	assert_classes(lines, ARRAY_SIZE(lines));
}

static void ipv6_blocks_begin_and_end_where_the_registry_says(void **state)
{
	static const struct line lines[] = {
		{ "::", IP_UNSPECIFIED }, { "::1", IP_LOOPBACK },
		{ "100::1", IP_RESERVED }, { "100:0:0:1::1", IP_RESERVED },
		{ "200::1", IP_RESERVED }, { "400::1", IP_RESERVED },
		{ "1fff:ffff::1", IP_RESERVED },
		{ "2000::1", IP_PUBLIC }, { "2001:200::1", IP_PUBLIC },
		{ "2001:1ff::1", IP_RESERVED }, { "2001:1::1", IP_RESERVED },
		{ "2001:1::2", IP_RESERVED }, { "2001:1::3", IP_RESERVED },
		{ "2001:2::1", IP_BENCHMARK }, { "2001:2:0:ffff::", IP_BENCHMARK },
		{ "2001:2:1::1", IP_RESERVED },
		{ "2001:3::1", IP_PUBLIC }, { "2001:4:112::1", IP_PUBLIC },
		{ "2001:4:113::1", IP_RESERVED }, { "2001:10::1", IP_RESERVED },
		{ "2001:20::1", IP_RESERVED }, { "2001:30::1", IP_RESERVED },
		{ "2001:db7:ffff::1", IP_PUBLIC },
		{ "2001:db8::1", IP_DOCUMENTATION },
		{ "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", IP_DOCUMENTATION },
		{ "2001:db9::1", IP_PUBLIC }, { "2003::1", IP_PUBLIC },
		{ "2606:4700:4700::1111", IP_PUBLIC },
		{ "2620:4f:8000::1", IP_PUBLIC }, { "3ffe::1", IP_PUBLIC },
		{ "3fff::1", IP_DOCUMENTATION }, { "3fff:fff::1", IP_DOCUMENTATION },
		{ "3fff:1000::1", IP_PUBLIC }, { "4000::1", IP_RESERVED },
		{ "5f00::1", IP_RESERVED }, { "8000::1", IP_RESERVED },
		{ "fbff::1", IP_RESERVED }, { "fc00::1", IP_PRIVATE },
		{ "fdff:ffff::1", IP_PRIVATE }, { "fe00::1", IP_RESERVED },
		{ "fe7f::1", IP_RESERVED }, { "fe80::1", IP_LINK_LOCAL },
		{ "febf::1", IP_LINK_LOCAL }, { "fec0::1", IP_PRIVATE },
		{ "feff::1", IP_PRIVATE }, { "ff00::1", IP_MULTICAST },
		{ "ff02::1", IP_MULTICAST },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", IP_MULTICAST },
	};

	(void)state;
	assert_classes(lines, ARRAY_SIZE(lines));
}

/* ADDR-01 */
static void mapped_addresses_are_what_they_map(void **state)
{
	static const struct line lines[] = {
		{ "::ffff:127.0.0.1", IP_LOOPBACK },
		{ "::ffff:a9fe:a9fe", IP_METADATA },
		{ "::ffff:10.0.0.1", IP_PRIVATE },
		{ "::ffff:0.0.0.0", IP_UNSPECIFIED },
		{ "::ffff:203.0.113.10", IP_DOCUMENTATION },
		{ "::ffff:8.8.8.8", IP_PUBLIC },
		{ "::ffff:255.255.255.255", IP_RESERVED },
	};

	(void)state;
	assert_classes(lines, ARRAY_SIZE(lines));
}

/* ADDR-02 */
static void nat64_addresses_are_what_they_carry(void **state)
{
	static const struct line lines[] = {
		{ "64:ff9b::a9fe:a9fe", IP_METADATA },
		{ "64:ff9b::7f00:1", IP_LOOPBACK },
		{ "64:ff9b::10.1.2.3", IP_PRIVATE },
		{ "64:ff9b::100.64.0.1", IP_CGNAT },
		{ "64:ff9b::cb00:710a", IP_DOCUMENTATION },
		{ "64:ff9b::8.8.8.8", IP_PUBLIC },
		/* The local-use prefix: public is not believed. */
		{ "64:ff9b:1::a00:1", IP_PRIVATE },
		{ "64:ff9b:1:ffff::a9fe:a9fe", IP_METADATA },
		{ "64:ff9b:1::808:808", IP_RESERVED },
		{ "64:ff9b:2::808:808", IP_RESERVED },
		{ "64:ff9b:0:1::808:808", IP_RESERVED },
	};

	(void)state;
	assert_classes(lines, ARRAY_SIZE(lines));
}

/* ADDR-04 */
static void compatible_and_translated_forms_are_never_public(void **state)
{
	static const struct line lines[] = {
		{ "::127.0.0.1", IP_LOOPBACK }, { "::10.0.0.1", IP_PRIVATE },
		{ "::169.254.169.254", IP_METADATA },
		{ "::8.8.8.8", IP_RESERVED }, { "::2", IP_UNSPECIFIED },
		{ "::ffff:0:127.0.0.1", IP_LOOPBACK },
		{ "::ffff:0:10.0.0.1", IP_PRIVATE },
		{ "::ffff:0:8.8.8.8", IP_RESERVED },
		{ "::fffe:8.8.8.8", IP_RESERVED },
	};

	(void)state;
	assert_classes(lines, ARRAY_SIZE(lines));
}

static void tunnel_forms_are_judged_by_what_they_carry(void **state)
{
	static const struct line lines[] = {
		/* 6to4 */
		{ "2002:7f00:1::1", IP_LOOPBACK }, { "2002:a00:1::", IP_PRIVATE },
		{ "2002:a9fe:a9fe::1", IP_METADATA },
		{ "2002:808:808::1", IP_RESERVED },
		/* Teredo: the server in clear, the client's bits flipped. */
		{ "2001:0:a00:1::", IP_PRIVATE },
		{ "2001:0:808:808:0:0:5601:5601", IP_METADATA },
		{ "2001:0:808:808:0:0:80ff:fffe", IP_LOOPBACK },
		{ "2001:0:808:808:0:0:f7f7:f7f7", IP_RESERVED },
		/* ISATAP, with and without the universal bit */
		{ "2606:4700::5efe:10.0.0.1", IP_PRIVATE },
		{ "2606:4700::200:5efe:169.254.169.254", IP_METADATA },
		{ "2606:4700::5efe:8.8.8.8", IP_PUBLIC },
		{ "2606:4700::100:5efe:10.0.0.1", IP_PUBLIC },
		{ "fe80::5efe:8.8.8.8", IP_LINK_LOCAL },
		{ "fd00::5efe:8.8.8.8", IP_PRIVATE },
	};

	(void)state;
	assert_classes(lines, ARRAY_SIZE(lines));
}

/* ADDR-11 */
static void metadata_services_are_known_by_address(void **state)
{
	static const struct line lines[] = {
		{ "169.254.169.254", IP_METADATA },
		{ "169.254.170.2", IP_METADATA },
		{ "169.254.170.23", IP_METADATA },
		{ "169.254.0.23", IP_METADATA },
		{ "169.254.42.42", IP_METADATA },
		{ "100.100.100.200", IP_METADATA },
		{ "100.96.0.96", IP_METADATA },
		{ "168.63.129.16", IP_METADATA },
		{ "168.63.129.15", IP_PUBLIC }, { "168.63.129.17", IP_PUBLIC },
		{ "192.0.0.192", IP_METADATA },
		{ "fd00:ec2::254", IP_METADATA }, { "fd00:ec2::23", IP_METADATA },
		{ "fd00:ec2::253", IP_PRIVATE },
		{ "fd20:ce::254", IP_METADATA },
		{ "fd00:c1::a9fe:a9fe", IP_METADATA },
		{ "fd00:a9fe:a9fe::1", IP_METADATA },
		{ "fd00:42::42", IP_METADATA },
		{ "fe80::a9fe:a9fe", IP_METADATA },
		{ "64:ff9b::168.63.129.16", IP_METADATA },
	};

	(void)state;
	assert_classes(lines, ARRAY_SIZE(lines));
}

static void a_range_has_a_class_when_one_address_in_it_does(void **state)
{
	static const struct {
		const char *lo, *hi;
		enum ip_class class;
	} ranges[] = {
		{ "8.8.8.0", "8.8.8.255", IP_PUBLIC },
		/* The gravest comes first in the tables. */
		{ "100.0.0.0", "100.255.255.255", IP_METADATA },
		{ "100.0.0.0", "100.80.0.0", IP_CGNAT },
		{ "9.0.0.0", "10.0.0.0", IP_PRIVATE },
		{ "9.0.0.0", "9.255.255.255", IP_PUBLIC },
		{ "168.63.0.0", "168.63.255.255", IP_METADATA },
		{ "11.0.0.0", "100.63.255.255", IP_PUBLIC },
		{ "2001:200::", "2001:db7:ffff::", IP_PUBLIC },
		{ "2001:200::", "2001:db8::", IP_DOCUMENTATION },
		{ "64:ff9b::8.0.0.0", "64:ff9b::8.255.255.255", IP_PUBLIC },
		{ "64:ff9b::9.0.0.0", "64:ff9b::11.0.0.0", IP_PRIVATE },
		{ "64:ff9b::203.0.113.0", "64:ff9b::203.0.114.0",
		  IP_DOCUMENTATION },
		{ "64:ff9b::255.255.255.255", "64:ff9b::1:0:0", IP_RESERVED },
		{ "3fff:1000::", "4000::", IP_RESERVED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++) {
		struct ip_addr lo = addr(ranges[i].lo), hi = addr(ranges[i].hi);

		if (ip_classify_range(&lo, &hi) != ranges[i].class)
			fail_msg("%s to %s", ranges[i].lo, ranges[i].hi);
	}
}

static void no_address_at_all_is_not_public(void **state)
{
	struct ip_addr none = { .family = IP_NONE };

	(void)state;
	assert_int_equal(ip_classify(&none), IP_UNSPECIFIED);
}

static void addresses_of_the_host_are_recognised_in_every_form(void **state)
{
	static const struct line lines[] = {
		{ "198.20.7.9", IP_HOST }, { "::ffff:198.20.7.9", IP_HOST },
		{ "64:ff9b::198.20.7.9", IP_HOST },
		{ "2606:4700::5efe:198.20.7.9", IP_HOST },
		{ "198.20.8.1", IP_PUBLIC }, { "64:ff9b::8.8.8.8", IP_PUBLIC },
		{ "2a00:1:2:3::1", IP_HOST }, { "2a00:1:2:4::1", IP_PUBLIC },
		/* A class of its own says more. */
		{ "10.1.1.1", IP_PRIVATE }, { "127.0.0.1", IP_LOOPBACK },
	};
	static const char *const nets[] = {
		"198.20.7.0/24", "2a00:1:2:3::/64", "10.0.0.0/8",
	};
	struct ip_hosts *h = mem_new(sizeof(*h) + 3 * sizeof(h->net[0]));

	(void)state;
	assert_non_null(h);
	h->n = ARRAY_SIZE(nets);
	for (size_t i = 0; i < h->n; i++)
		assert_int_equal(ip_net_parse(str_from(nets[i]), &h->net[i]),
				 0);
	h->n = ip_net_tidy(h->net, h->n);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		struct ip_addr a = addr(lines[i].text);

		if (ip_classify_here(&a, h) != lines[i].class)
			fail_msg("%s", lines[i].text);
		if (lines[i].class == IP_HOST)
			assert_int_equal(ip_classify_here(&a, NULL), IP_PUBLIC);
	}
	mem_free(h);
}

static void the_hosts_own_are_told_from_its_neighbours(void **state)
{
	static const char *const nets[] = {
		"198.20.7.9", "198.20.9.0/24", "2a00:1:2:3::1",
		"198.20.7.0/24", "2a00:1:2:3::/64",
	};
	struct ip_hosts *h = mem_new(sizeof(*h) + 5 * sizeof(h->net[0]));
	struct ip_addr a;

	(void)state;
	assert_non_null(h);
	h->n_own = 3;
	h->n = ARRAY_SIZE(nets);
	for (size_t i = 0; i < h->n; i++)
		assert_int_equal(ip_net_parse(str_from(nets[i]), &h->net[i]),
				 0);
	a = addr("198.20.7.9");
	assert_true(ip_hosts_own(h, &a) && ip_hosts_has(h, &a));
	a = addr("198.20.9.200");
	assert_true(ip_hosts_own(h, &a) && ip_hosts_has(h, &a));
	a = addr("198.20.7.10");
	assert_true(!ip_hosts_own(h, &a) && ip_hosts_has(h, &a));
	a = addr("2a00:1:2:3::2");
	assert_true(!ip_hosts_own(h, &a) && ip_hosts_has(h, &a));
	a = addr("198.20.8.1");
	assert_false(ip_hosts_own(h, &a) || ip_hosts_has(h, &a));
	assert_false(ip_hosts_own(NULL, &a) || ip_hosts_has(NULL, &a));
	mem_free(h);
}

static void every_class_but_public_has_its_own_reason(void **state)
{
	(void)state;
	assert_int_equal(ip_class_reason(IP_PUBLIC), REASON_ALLOWED);
	for (enum ip_class c = IP_PUBLIC + 1; c < IP_CLASSES; c++) {
		enum reason r = ip_class_reason(c);

		assert_true(reason_is_address_class(r));
		assert_memory_equal(reason_word(r), "address_", 8);
		assert_string_equal(reason_word(r) + 8, ip_class_name(c));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			ipv4_blocks_begin_and_end_where_the_registry_says),
		cmocka_unit_test(
			ipv6_blocks_begin_and_end_where_the_registry_says),
		cmocka_unit_test(mapped_addresses_are_what_they_map),
		cmocka_unit_test(nat64_addresses_are_what_they_carry),
		cmocka_unit_test(
			compatible_and_translated_forms_are_never_public),
		cmocka_unit_test(tunnel_forms_are_judged_by_what_they_carry),
		cmocka_unit_test(metadata_services_are_known_by_address),
		cmocka_unit_test(
			a_range_has_a_class_when_one_address_in_it_does),
		cmocka_unit_test(no_address_at_all_is_not_public),
		cmocka_unit_test(
			addresses_of_the_host_are_recognised_in_every_form),
		cmocka_unit_test(the_hosts_own_are_told_from_its_neighbours),
		cmocka_unit_test(every_class_but_public_has_its_own_reason),
	};

	return cmocka_run_group_tests_name("ip_class", tests, NULL, NULL);
}
