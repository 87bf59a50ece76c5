/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_value_test.c - single words of rules, and the classes of ranges
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/ip_class.h"
#include "rules/rules_value.h"
#include "rules/span_tree.h"

/* One xorshift for all: the same numbers on each run. */
static uint64_t seed = 1;

static uint32_t next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 16);
}

static void a_shown_word_is_plain_ascii_and_short(void **state)
{
	char out[SHOWN_SIZE];
	char all[256];

	(void)state;
	assert_string_equal(shown(STR("plain"), out), "plain");
	assert_string_equal(shown(STR("a\nb\\\x7f\xc3"), out),
			    "a\\x0ab\\x5c\\x7f\\xc3");
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	shown(str_make(all, sizeof(all)), out);
	assert_true(strlen(out) < SHOWN_SIZE);
	assert_string_equal(out + strlen(out) - 3, "...");
	for (const char *p = out; *p; p++)
		assert_true(*p >= ' ' && *p < 0x7f);
}

static void ports_are_numbers_and_ranges(void **state)
{
	struct port_range r;
	const char *why = NULL;
	static const char *const bad[] = {
		"", "0", "65536", "00443", "0443", "443-", "-443", "443-80",
		"x",
		"https", "443,80", "4294967739", "1-70000", "0-10", "+1", "1 2",
		"**", "1-2-3",
	};

	(void)state;
	assert_int_equal(port_range_parse(STR("443"), &r, &why), 0);
	assert_true(r.lo == 443 && r.hi == 443);
	assert_int_equal(port_range_parse(STR("1-65535"), &r, &why), 0);
	assert_true(r.lo == 1 && r.hi == 65535);
	assert_int_equal(port_range_parse(STR("*"), &r, &why), 0);
	assert_true(r.lo == 1 && r.hi == 65535);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		why = NULL;
		if (port_range_parse(str_from(bad[i]), &r, &why) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
		assert_non_null(why);
	}
}

static void ranges_have_three_forms(void **state)
{
	static const struct {
		const char *text, *lo, *hi;
	} good[] = {
		{ "8.8.8.8", "8.8.8.8", "8.8.8.8" },
		{ "8.8.8.0/24", "8.8.8.0", "8.8.8.255" },
		{ "8.0.0.0/7", "8.0.0.0", "9.255.255.255" },
		{ "8.8.8.8/32", "8.8.8.8", "8.8.8.8" },
		{ "8.8.8.1-8.8.9.9", "8.8.8.1", "8.8.9.9" },
		{ "2600::/33", "2600::",
		  "2600:0:7fff:ffff:ffff:ffff:ffff:ffff" },
		{ "2600::1-2600::2", "2600::1", "2600::2" },
	};
	static const char *const bad[] = {
		"", "8.8.8", "8.8.8.8/33", "8.8.8.8/24", "08.8.8.8",
		"0x8.8.8.8",
		"8.8.8.9-8.8.8.8", "8.8.8.8-2600::1", "8.8.8.8-", "-8.8.8.8",
		"[2600::1]", "2600::1%eth0", "example.com", "*",
		"1.2.3.4,5.6.7.8",
		"::ffff:8.8.8.8", "::ffff:0:0/96", "8.8.8.8:80", "8.8.8.0/",
		"8.8.8.0/024", "1.1.1.1-2.2.2.2-3.3.3.3",
	};
	struct addr_range r;
	const char *why;
	char text[IP_TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		if (addr_range_parse(str_from(good[i].text), false, &r, &why))
			fail_msg("'%s' %s", good[i].text, why);
		ip_addr_text(&r.lo, text);
		assert_string_equal(text, good[i].lo);
		ip_addr_text(&r.hi, text);
		assert_string_equal(text, good[i].hi);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		why = NULL;
		if (addr_range_parse(str_from(bad[i]), false, &r, &why) !=
		    -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
		assert_non_null(why);
	}
}

static void synthetic_prefixes_are_nobodys(void **state)
{
	static const struct {
		const char *text;
		bool allow, deny;	/* may stand there */
	} cases[] = {
		{ "198.18.0.0/15", false, false },
		{ "198.19.255.255", false, false },
		{ "198.16.0.0/12", false, true },
		{ "198.17.255.255-198.18.0.0", false, true },
		{ "0.0.0.0/0", false, true },
		{ "198.17.255.255", true, true },
		{ "198.20.0.0", true, true },
		{ "fd70:656e:7374:6f63::1", false, false },
		{ "fd00::/8", false, true },
		{ "::/0", false, true },
		{ "fd70:656e:7374:6f62::/64", true, true },
		{ "fd70:656e:7374:6f64::/64", true, true },
	};
	struct addr_range r;
	const char *why;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct str text = str_from(cases[i].text);

		if ((addr_range_parse(text, false, &r, &why) == 0) !=
		    cases[i].allow)
			fail_msg("allow '%s'", cases[i].text);
		if ((addr_range_parse(text, true, &r, &why) == 0) !=
		    cases[i].deny)
			fail_msg("deny '%s'", cases[i].text);
	}
}

static struct addr_range range(const char *text)
{
	struct addr_range r;
	const char *why;

	if (addr_range_parse(str_from(text), true, &r, &why))
		fail_msg("'%s' %s", text, why);
	return r;
}

static void ranges_meet_and_cover_within_a_family(void **state)
{
	struct addr_range a = range("8.8.8.0/24"),
	b = range("8.8.8.255-8.9.0.0"),
			  c = range("8.8.8.7"), six = range("2600::/16");

	(void)state;
	assert_true(addr_range_meets(&a, &b));
	assert_true(addr_range_meets(&b, &a));
	assert_false(addr_range_meets(&b, &c));
	assert_false(addr_range_meets(&a, &six));
	assert_true(addr_range_covers(&a, &c));
	assert_false(addr_range_covers(&c, &a));
	assert_false(addr_range_covers(&a, &b));
	assert_true(addr_range_covers(&a, &a));
	assert_false(addr_range_covers(&six, &a));
}

static void the_class_of_a_range_is_that_of_its_worst(void **state)
{
	static const struct {
		const char *text;
		bool special;
	} cases[] = {
		{ "8.8.8.0/24", false }, { "9.255.255.255", false },
		{ "9.255.255.255-10.0.0.0", true }, { "10.1.2.3", true },
		{ "10.255.255.255-11.0.0.5", true }, { "11.0.0.0/8", false },
		{ "1.0.0.0-9.255.255.255", false }, { "0.0.0.0/0", true },
		{ "100.0.0.0/8", true }, { "168.63.0.0/16", true },
		{ "2600::/16", false }, { "2001:db8::/32", true },
		{ "2001::/16", true }, { "2002::/16", true },
		{ "3ffe::/16", false }, { "3fff::/20", true },
		{ "3ffe::-4000::", true }, { "fd00::/8", true },
		{ "2000::/3", true }, { "64:ff9b::/96", true },
		{ "64:ff9b::808:0-64:ff9b::808:ffff", false },
		{ "64:ff9b::900:0-64:ff9b::b00:0", true },
		{ "64:ff9b::-64:ff9b::1", true },
		{ "64:ff9b::808:0-64:ffff::", true },
		{ "::/0", true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct addr_range r = range(cases[i].text);
		enum ip_class class = ip_classify_range(&r.lo, &r.hi);

		if ((class != IP_PUBLIC) != cases[i].special)
			fail_msg("'%s' is %s", cases[i].text,
				 ip_class_name(class));
	}
}

/* No address of a range that is called public is anything else. */
static void no_special_address_hides_in_a_public_range(void **state)
{
	unsigned public = 0;

	(void)state;
	for (unsigned i = 0; i < 20000; i++) {
		uint32_t lo = next_random();
		uint32_t size = next_random() >> (8 + next_random() % 24);
		uint32_t hi = lo > UINT32_MAX - size ? UINT32_MAX : lo + size;
		struct ip_addr first = ip_addr_v4(lo), last = ip_addr_v4(hi);

		if (ip_classify_range(&first, &last) != IP_PUBLIC)
			continue;
		public++;
		for (unsigned k = 0; k < 20; k++) {
			struct ip_addr a;

			a = ip_addr_v4(lo + (uint32_t)((uint64_t)next_random() *
						       (hi - lo) >> 32));
			assert_int_equal(ip_classify(&a), IP_PUBLIC);
		}
	}
	assert_true(public > 5000);
}

struct count {
	unsigned n;
	uint64_t owners;
};

static void on_span(void *arg, const struct span *s)
{
	struct count *c = arg;

	c->n++;
	c->owners |= UINT64_C(1) << s->owner;
}

static void the_span_tree_finds_what_a_scan_finds(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 500; round++) {
		struct span span[40] = { 0 };
		struct span_tree t = { span, next_random() % 41 };

		for (size_t i = 0; i < t.n; i++) {
			uint32_t lo = next_random() % 100;

			span[i].owner = (uint32_t)i;
			span[i].r.lo = ip_addr_v4(lo);
			span[i].r.hi = ip_addr_v4(lo + next_random() % 30);
			if (next_random() % 4 == 0) {
				span[i].r.lo.family = IP_V6;
				span[i].r.hi.family = IP_V6;
			}
		}
		span_tree_build(&t);
		for (uint32_t a = 0; a < 140; a++) {
			struct count found = { 0 }, scanned = { 0 };
			struct ip_addr addr = ip_addr_v4(a);

			addr.family = a % 5 == 0 ? IP_V6 : IP_V4;
			span_tree_find(&t, &addr, on_span, &found);
			for (size_t i = 0; i < t.n; i++) {
				if (addr_range_has(&span[i].r, &addr))
					on_span(&scanned, &span[i]);
			}
			assert_int_equal(found.n, scanned.n);
			assert_true(found.owners == scanned.owners);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shown_word_is_plain_ascii_and_short),
		cmocka_unit_test(ports_are_numbers_and_ranges),
		cmocka_unit_test(ranges_have_three_forms),
		cmocka_unit_test(synthetic_prefixes_are_nobodys),
		cmocka_unit_test(ranges_meet_and_cover_within_a_family),
		cmocka_unit_test(the_class_of_a_range_is_that_of_its_worst),
		cmocka_unit_test(no_special_address_hides_in_a_public_range),
		cmocka_unit_test(the_span_tree_finds_what_a_scan_finds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
