/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ip_addr_test.c - reading and writing addresses
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/ip_addr.h"

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	if (ip_addr_parse(str_from(text), &a))
		fail_msg("not an address: %s", text);
	return a;
}

static void assert_text(const char *in, const char *want)
{
	struct ip_addr a = addr(in);
	char text[IP_TEXT_SIZE];

	ip_addr_text(&a, text);
	assert_string_equal(text, want);
}

/* ADDR-08: what inet_aton() takes is not an address here. */
static void ipv4_has_one_spelling(void **state)
{
	static const char *const bad[] = {
		"0177.0.0.1", "010.0.0.1", "2130706433", "0x7f000001",
		"0x7f.0.0.1", "127.1", "127.0.1", "1.2.3.4.5", "1.2.3", "",
		"1.2.3.4.", ".1.2.3.4", "1..2.3", "1.2.3.256", "1.2.3.1000",
		"1.2.3.-4", "+1.2.3.4", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4/32",
		"1.2.3.04", "1.2.3.4\n", "a.b.c.d", "1.2.3.4x", "00.0.0.0",
		"\xd9\xa1.2.3.4",
	};
	struct ip_addr a = { .family = 99 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (ip_addr_parse(str_from(bad[i]), &a) != -EINVAL)
			fail_msg("taken: '%s'", bad[i]);
	}
	/* What is given back stays untouched on failure. */
	assert_int_equal(a.family, 99);
	assert_int_equal(ip_addr_parse(str_make("1.2.3.4\0", 8), &a), -EINVAL);
	assert_text("0.0.0.0", "0.0.0.0");
	assert_text("255.255.255.255", "255.255.255.255");
	assert_text("192.0.2.1", "192.0.2.1");
}

static void ipv6_text_is_read_strictly(void **state)
{
	static const char *const bad[] = {
		":", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3",
		"1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", ":1::", "1:::2",
		"1:", ":1", "12345::", "g::", "::1%lo", "fe80::1%1",
		"[::1]", "::1 ", " ::1", "::1.2.3", "::1.2.3.4:5",
		"1.2.3.4::", "::01.2.3.4", "::1.2.3.256", "1:2:3:4:5:6:7:1.2.3.4",
		"::ffff:0x7f.0.0.1", "1:2:3:4:5:6:7:8:", "0:0:0:0:0:0:0:0:",
		"1::2:3:4:5:6:7:8", "::-1", "1:2:3:4:1.2.3.4:5:6",
	};
	struct ip_addr a;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (ip_addr_parse(str_from(bad[i]), &a) != -EINVAL)
			fail_msg("taken: '%s'", bad[i]);
	}
}

/* RFC 5952: its examples, and RFC 4291's. */
static void ipv6_is_written_as_rfc_5952_says(void **state)
{
	static const char *const vectors[][2] = {
		{ "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
		{ "2001:0db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
		{ "2001:db8::1:0:0:1", "2001:db8::1:0:0:1" },
		{ "2001:DB8::AA", "2001:db8::aa" },
		{ "2001:db8:aaaa:bbbb:cccc:dddd:eeee:0001",
		  "2001:db8:aaaa:bbbb:cccc:dddd:eeee:1" },
		{ "2001:db8:0:0:0:0:2:1", "2001:db8::2:1" },
		/* One zero group is written out (4.2.2). */
		{ "2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1" },
		/* The longest run, the first of equals (4.2.3). */
		{ "2001:0:0:1:0:0:0:1", "2001:0:0:1::1" },
		{ "2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1" },
		{ "0:0:0:0:0:0:0:0", "::" },
		{ "0:0:0:0:0:0:0:1", "::1" },
		{ "1:0:0:0:0:0:0:0", "1::" },
		{ "1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0" },
		{ "::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8" },
		{ "ff01::101", "ff01::101" },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
		  "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
		/* Mapped addresses are written dotted (5). */
		{ "::ffff:c000:201", "::ffff:192.0.2.1" },
		{ "0:0:0:0:0:FFFF:129.144.52.38", "::ffff:129.144.52.38" },
		{ "::13.1.68.3", "::d01:4403" },
		{ "64:ff9b::192.0.2.33", "64:ff9b::c000:221" },
		{ "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vectors); i++)
		assert_text(vectors[i][0], vectors[i][1]);
}

static void what_is_written_is_read_back_the_same(void **state)
{
	struct ip_addr a = { .family = IP_V6 };
	uint32_t seed = 12345;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		struct ip_addr again;
		char text[IP_TEXT_SIZE];

		for (unsigned k = 0; k < 16; k += 2) {
			seed = seed * 1664525 + 1013904223;
			a.b[k] = seed & 0x10000000 ? (uint8_t)(seed >> 8) : 0;
			a.b[k + 1] = seed & 0x20000000 ?
				     (uint8_t)(seed >> 16) : 0;
		}
		ip_addr_text(&a, text);
		assert_int_equal(ip_addr_parse(str_from(text), &again), 0);
		assert_true(ip_addr_eq(&a, &again));
	}
}

static void networks_have_no_bits_behind_their_prefix(void **state)
{
	struct ip_addr in = addr("10.20.255.1"), out = addr("10.21.0.0");
	struct ip_addr v6 = addr("2001:db8:8000::1");
	struct ip_net net;

	(void)state;
	assert_int_equal(ip_net_parse(STR("10.20.0.0/16"), &net), 0);
	assert_int_equal(net.bits, 16);
	assert_true(ip_net_has(&net, &in));
	assert_false(ip_net_has(&net, &out));
	assert_false(ip_net_has(&net, &v6));
	assert_int_equal(ip_net_parse(STR("10.20.0.1/16"), &net), -ERANGE);
	assert_int_equal(ip_net_parse(STR("2001:db8::1/64"), &net), -ERANGE);
	assert_int_equal(ip_net_parse(STR("0.0.0.0/0"), &net), 0);
	assert_true(ip_net_has(&net, &in));
	assert_false(ip_net_has(&net, &v6));
	assert_int_equal(ip_net_parse(STR("192.0.2.7"), &net), 0);
	assert_int_equal(net.bits, 32);
	assert_int_equal(ip_net_parse(STR("2001:db8:8000::/33"), &net), 0);
	assert_true(ip_net_has(&net, &v6));
	assert_int_equal(ip_net_parse(STR("2001:db8::/33"), &net), 0);
	assert_false(ip_net_has(&net, &v6));
	assert_int_equal(ip_net_parse(STR("::1"), &net), 0);
	assert_int_equal(net.bits, 128);
}

static void networks_that_make_no_sense_are_refused(void **state)
{
	static const char *const bad[] = {
		"10.0.0.0/33", "10.0.0.0/", "10.0.0.0/08", "10.0.0.0/-1",
		"10.0.0.0/8/8", "/8", "::/129", "10/8", "10.0.0.0 /8",
		"10.0.0.0/255.0.0.0", "10.0.0.0/x",
	};
	struct ip_net net;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (ip_net_parse(str_from(bad[i]), &net) != -EINVAL)
			fail_msg("taken: '%s'", bad[i]);
	}
}

static void assert_endpoint(const char *in, const char *want)
{
	char text[IP_ENDPOINT_TEXT_SIZE];
	struct ip_endpoint e;

	assert_int_equal(ip_endpoint_parse(str_from(in), 53, &e), 0);
	ip_endpoint_text(&e, text);
	assert_string_equal(text, want);
}

static void endpoints_are_read_in_their_four_forms(void **state)
{
	(void)state;
	assert_endpoint("192.0.2.1", "192.0.2.1:53");
	assert_endpoint("192.0.2.1:8080", "192.0.2.1:8080");
	assert_endpoint("[2001:db8::1]:65535", "[2001:db8::1]:65535");
	assert_endpoint("[2001:db8::1]", "[2001:db8::1]:53");
	assert_endpoint("2001:db8::1", "[2001:db8::1]:53");
	assert_endpoint("::ffff:192.0.2.1", "[::ffff:192.0.2.1]:53");
	assert_endpoint("[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535",
			"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
}

static void endpoints_that_are_ambiguous_are_refused(void **state)
{
	static const char *const bad[] = {
		"", ":53", "192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536",
		"192.0.2.1:053", "192.0.2.1:53x", "[192.0.2.1]:53", "[::1",
		"[::1]53", "[::1]:", "[::1]:0", "::1]:53", "[]:53",
		"host:53", "192.0.2.1:53:53", "[[::1]]:53", "[::1]x:5",
	};
	struct ip_endpoint e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (ip_endpoint_parse(str_from(bad[i]), 53, &e) != -EINVAL)
			fail_msg("taken: '%s'", bad[i]);
	}
}

/* ADDR-01 rests on this. */
static void only_mapped_addresses_are_unwrapped(void **state)
{
	struct ip_addr v4 = addr("192.0.2.1"), a;

	(void)state;
	a = addr("::ffff:192.0.2.1");
	a = ip_addr_unmapped(&a);
	assert_true(ip_addr_eq(&a, &v4));
	a = addr("::192.0.2.1");
	a = ip_addr_unmapped(&a);
	assert_int_equal(a.family, IP_V6);
	a = addr("::fffe:192.0.2.1");
	a = ip_addr_unmapped(&a);
	assert_int_equal(a.family, IP_V6);
	a = ip_addr_unmapped(&v4);
	assert_true(ip_addr_eq(&a, &v4));
}

static void order_is_by_family_and_then_by_bits(void **state)
{
	struct ip_addr v4 = addr("255.255.255.255"), v6 = addr("::");
	struct ip_addr low = addr("10.0.0.1"), high = addr("10.0.1.0");
	struct ip_addr same_bytes = addr("a00:1::");

	(void)state;
	assert_true(ip_addr_cmp(&v4, &v6) < 0);
	assert_true(ip_addr_cmp(&low, &high) < 0);
	assert_true(ip_addr_cmp(&high, &low) > 0);
	assert_int_equal(ip_addr_cmp(&low, &low), 0);
	assert_false(ip_addr_eq(&low, &same_bytes));
	low = ip_addr_v4(0x0a000100);
	assert_true(ip_addr_eq(&low, &high));
	assert_true(ip_addr_v4_bits(&low) == 0x0a000100);
}

static void networks_that_lie_in_others_go_and_are_still_found(void **state)
{
	static const char *const text[] = {
		"2001:db8::/32", "192.0.2.7", "10.0.0.0/8", "10.1.0.0/16",
		"192.0.2.0/29", "10.255.255.255", "192.0.2.8", "192.0.2.7",
		"2001:db8:1::/48",
	};
	static const char *const kept[] = {
		"10.0.0.0/8", "192.0.2.0/29", "192.0.2.8", "2001:db8::/32",
	};
	static const char *const in[] = {
		"10.0.0.0", "10.255.255.255", "192.0.2.0", "192.0.2.7",
		"192.0.2.8", "2001:db8::", "2001:db8:ffff::1",
	};
	static const char *const out[] = {
		"9.255.255.255", "11.0.0.0", "192.0.1.255", "192.0.2.9",
		"2001:db7:ffff::", "2001:db9::", "::", "255.255.255.255",
		"a00::",
	};
	struct ip_net net[ARRAY_SIZE(text)], want;
	struct ip_addr a;
	size_t i, n;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(text); i++)
		assert_int_equal(ip_net_parse(str_from(text[i]), &net[i]), 0);
	n = ip_net_tidy(net, ARRAY_SIZE(text));
	assert_int_equal(n, ARRAY_SIZE(kept));
	for (i = 0; i < n; i++) {
		assert_int_equal(ip_net_parse(str_from(kept[i]), &want), 0);
		assert_true(ip_addr_eq(&net[i].addr, &want.addr));
		assert_int_equal(net[i].bits, want.bits);
	}
	for (i = 0; i < ARRAY_SIZE(in); i++) {
		a = addr(in[i]);
		assert_true(ip_net_find(net, n, &a));
	}
	for (i = 0; i < ARRAY_SIZE(out); i++) {
		a = addr(out[i]);
		if (ip_net_find(net, n, &a))
			fail_msg("found: %s", out[i]);
	}
	a = addr("10.0.0.1");
	assert_int_equal(ip_net_tidy(net, 0), 0);
	assert_false(ip_net_find(net, 0, &a));
}

static void everything_is_a_network_of_no_bits(void **state)
{
	struct ip_addr a = addr("203.0.113.9"), b = addr("2001:db8::9");
	struct ip_net net[2] = { ip_net_of(&b, 0), ip_net_of(&a, 0) };

	(void)state;
	assert_int_equal(ip_net_tidy(net, 2), 2);
	assert_true(ip_net_find(net, 2, &a));
	assert_true(ip_net_find(net, 2, &b));
	assert_false(ip_net_find(net, 1, &b));
	net[0] = ip_net_of(&a, 29);
	a = addr("203.0.113.8");
	assert_true(ip_addr_eq(&net[0].addr, &a));
	assert_int_equal(net[0].bits, 29);
}

static void socket_addresses_go_both_ways(void **state)
{
	static const char *const texts[] = {
		"192.0.2.1:1", "[2001:db8::1]:65535", "[::ffff:192.0.2.1]:80",
	};
	struct sockaddr_storage ss;
	struct ip_endpoint e, again;
	socklen_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char text[IP_ENDPOINT_TEXT_SIZE];

		assert_int_equal(ip_endpoint_parse(str_from(texts[i]), 9, &e),
				 0);
		n = ip_endpoint_to_sockaddr(&e, &ss);
		assert_int_equal(ip_endpoint_from_sockaddr(
			(struct sockaddr *)&ss, n, &again), 0);
		ip_endpoint_text(&again, text);
		assert_string_equal(text, texts[i]);
		assert_int_equal(ip_endpoint_from_sockaddr(
			(struct sockaddr *)&ss, n - 1, &again), -EAFNOSUPPORT);
	}
	ss.ss_family = AF_UNIX;
	assert_int_equal(ip_endpoint_from_sockaddr((struct sockaddr *)&ss,
						   sizeof(ss), &again),
			 -EAFNOSUPPORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_has_one_spelling),
		cmocka_unit_test(ipv6_text_is_read_strictly),
		cmocka_unit_test(ipv6_is_written_as_rfc_5952_says),
		cmocka_unit_test(what_is_written_is_read_back_the_same),
		cmocka_unit_test(networks_have_no_bits_behind_their_prefix),
		cmocka_unit_test(networks_that_make_no_sense_are_refused),
		cmocka_unit_test(endpoints_are_read_in_their_four_forms),
		cmocka_unit_test(endpoints_that_are_ambiguous_are_refused),
		cmocka_unit_test(only_mapped_addresses_are_unwrapped),
		cmocka_unit_test(order_is_by_family_and_then_by_bits),
		cmocka_unit_test(
			networks_that_lie_in_others_go_and_are_still_found),
		cmocka_unit_test(everything_is_a_network_of_no_bits),
		cmocka_unit_test(socket_addresses_go_both_ways),
	};

	return cmocka_run_group_tests_name("ip_addr", tests, NULL, NULL);
}
