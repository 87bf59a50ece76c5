/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_name_test.c - the one spelling of a host, and what is none
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "rules/host_name.h"

struct spelling {
	const char *text;
	const char *canonical;	/* NULL: refused */
};

static void check_names(const struct spelling *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct host_name h = { .n = 3, .p = "was" };
		int err = host_name_parse(str_from(s[i].text), &h);

		if (!s[i].canonical) {
			if (err != -EINVAL)
				fail_msg("'%s' was taken", s[i].text);
			assert_string_equal(h.p, "was");
			continue;
		}
		if (err)
			fail_msg("'%s' was refused", s[i].text);
		assert_string_equal(h.p, s[i].canonical);
		assert_int_equal(h.n, strlen(s[i].canonical));
	}
}

/* HOST-20: case and the root's dot are no differences. */
static void a_name_has_one_spelling(void **state)
{
	static const struct spelling s[] = {
		{ "api.example.com", "api.example.com" },
		{ "Api.Example.COM.", "api.example.com" },
		{ "EXAMPLE", "example" },
		{ "a-b.3com.example", "a-b.3com.example" },
		{ "1.2.3.4.example", "1.2.3.4.example" },
		{ "-a-.example", "-a-.example" },
		/* HOST-05: underscores are in use. */
		{ "my_bucket.example.com", "my_bucket.example.com" },
		{ "_dmarc.example.com", "_dmarc.example.com" },
	};

	(void)state;
	check_names(s, ARRAY_SIZE(s));
}

static void what_is_no_name_is_refused(void **state)
{
	static const struct spelling s[] = {
		{ "", NULL }, { ".", NULL }, { "..", NULL },
		{ ".example.com", NULL }, { "example.com..", NULL },
		{ "a..example.com", NULL }, { "a b.example.com", NULL },
		{ " example.com", NULL }, { "example.com ", NULL },
		{ "example.com\n", NULL }, { "example.com\t", NULL },
		{ "*.example.com", NULL }, { "example.com:443", NULL },
		{ "user@example.com", NULL }, { "example.com/x", NULL },
		{ "example.com\\", NULL }, { "a,b", NULL }, { "a;b", NULL },
		{ "ex'ample.com", NULL }, { "ex\"ample.com", NULL },
		{ "[example.com]", NULL },
		/* HOST-17: nobody decodes percent signs. */
		{ "exampl%65.com", NULL }, { "%65xample.com", NULL },
		/* HOST-18: no zone looks like a name. */
		{ "::1%25.example.com", NULL },
		/* HOST-10: look-alike dots and letters. */
		{ "api\xef\xbc\x8e" "example.com", NULL },
		{ "b\xc3\xbc" "cher.example", NULL },
		{ "example\xe3\x80\x82" "com", NULL },
	};

	(void)state;
	check_names(s, ARRAY_SIZE(s));
	assert_int_equal(host_name_parse(str_make("a\0b.example", 11),
					 &(struct host_name){ 0 }), -EINVAL);
}

/* ADDR-08: what inet_aton() would take for an address is no name either. */
static void a_last_label_that_is_a_number_is_refused(void **state)
{
	static const struct spelling s[] = {
		{ "127.1", NULL }, { "127.0.0.1", NULL }, { "127.0.0.1.",
		  NULL },
		{ "2130706433", NULL }, { "0x7f000001", NULL },
		{ "0X7F.1", NULL }, { "0177.0.0.1", NULL }, { "010.0.0.1",
		  NULL },
		{ "1.2.3.4.5", NULL }, { "example.0x", NULL },
		{ "example.0xab", NULL }, { "example.1", NULL },
		{ "example.1a", "example.1a" },
	};

	(void)state;
	check_names(s, ARRAY_SIZE(s));
}

/* HOST-08: an A-label decodes to something that is not ASCII, or is none. */
static void an_a_label_must_be_one(void **state)
{
	static const struct spelling s[] = {
		{ "xn--bcher-kva.example", "xn--bcher-kva.example" },
		{ "XN--BCHER-KVA.example", "xn--bcher-kva.example" },
		{ "xn--fiqs8s", "xn--fiqs8s" },
		{ "xn--mgberp4a5d4ar", "xn--mgberp4a5d4ar" },
		{ "xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai" },
		{ "xn--ls8h.example", "xn--ls8h.example" },	/* U+1F4A9 */
		{ "xn--example-.com", NULL },
		{ "xn--.example", NULL },
		{ "xn---.example", NULL },
		{ "xn---kva.example", NULL },
		{ "xn--bcher-kv.example", NULL },	/* ends in mid-number */
		{ "xn--a_b.example", NULL },
		{ "xn--99999999.example", NULL },	/* far beyond Unicode */
		{ "a.xn--example-", NULL },
		/* Only in front does it mean anything. */
		{ "a-xn--.example", "a-xn--.example" },
	};

	(void)state;
	check_names(s, ARRAY_SIZE(s));
}

/* HOST-19: limits are checked before any copy. */
static void lengths_are_bounded(void **state)
{
	const size_t huge = 65536;
	struct host_name h;
	char *text = mem_new(huge);

	(void)state;
	assert_non_null(text);
	memset(text, 'a', huge);
	assert_int_equal(host_name_parse(str_make(text, 63), &h), 0);
	assert_int_equal(host_name_parse(str_make(text, 64), &h), -EINVAL);
	assert_int_equal(host_name_parse(str_make(text, huge), &h), -EINVAL);
	for (size_t i = 63; i < huge; i += 64)
		text[i] = '.';
	/* 63 + . + 63 + . + 63 + . + 61 */
	assert_int_equal(host_name_parse(str_make(text, 253), &h), 0);
	assert_int_equal(h.n, 253);
	assert_int_equal(host_name_parse(str_make(text, 254), &h), -EINVAL);
	text[253] = '.';
	assert_int_equal(host_name_parse(str_make(text, 254), &h), 0);
	assert_int_equal(h.n, 253);
	assert_int_equal(host_name_parse(str_make(text, huge), &h), -EINVAL);
	mem_free(text);
}

struct hostcase {
	const char *text;
	enum host_kind kind;
	const char *canonical;	/* of the name or address */
	unsigned port;
};

static void check_host(const struct hostcase *c, enum host_kind kind,
		       const struct host_name *name, const struct ip_addr *addr)
{
	char text[IP_TEXT_SIZE];

	if (kind != c->kind)
		fail_msg("'%s' is of kind %d, not %d", c->text, kind, c->kind);
	if (kind == HOST_NAME)
		assert_string_equal(name->p, c->canonical);
	if (kind == HOST_ADDRESS) {
		ip_addr_text(addr, text);
		assert_string_equal(text, c->canonical);
	}
}

static void a_host_is_a_name_or_a_literal(void **state)
{
	static const struct hostcase cases[] = {
		{ "example.com", HOST_NAME, "example.com", 0 },
		{ "203.0.113.7", HOST_ADDRESS, "203.0.113.7", 0 },
		{ "[2001:DB8::1]", HOST_ADDRESS, "2001:db8::1", 0 },
		/* ADDR-01: still mapped here; the judge unwraps it. */
		{ "[::ffff:127.0.0.1]", HOST_ADDRESS, "::ffff:127.0.0.1", 0 },
		/* HOST-03, HOST-18, ADDR-08, ADDR-17 */
		{ "[203.0.113.7]", HOST_BAD, NULL, 0 },
		{ "2001:db8::1", HOST_BAD, NULL, 0 },
		{ "::1", HOST_BAD, NULL, 0 },
		{ "[::1", HOST_BAD, NULL, 0 },
		{ "::1]", HOST_BAD, NULL, 0 },
		{ "[]", HOST_BAD, NULL, 0 },
		{ "[", HOST_BAD, NULL, 0 },
		{ "[fe80::1%25eth0]", HOST_BAD, NULL, 0 },
		{ "[fe80::1%eth0]", HOST_BAD, NULL, 0 },
		{ "[::1%25.example.com]", HOST_BAD, NULL, 0 },
		{ "[[::1]]", HOST_BAD, NULL, 0 },
		{ "[example.com]", HOST_BAD, NULL, 0 },
		{ "0177.0.0.1", HOST_BAD, NULL, 0 },
		{ "203.0.113.7.", HOST_BAD, NULL, 0 },
		{ "203.0.113", HOST_BAD, NULL, 0 },
		{ "", HOST_BAD, NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct host_name name = { 0 };
		struct ip_addr addr = { 0 };
		enum host_kind kind;

		kind = host_parse(str_from(cases[i].text), &name, &addr);
		check_host(&cases[i], kind, &name, &addr);
	}
}

static const struct hostcase authorities[] = {
	{ "Example.com:443", HOST_NAME, "example.com", 443 },
	{ "example.com.:1", HOST_NAME, "example.com", 1 },
	{ "example.com", HOST_NAME, "example.com", 80 },
	{ "203.0.113.7:65535", HOST_ADDRESS, "203.0.113.7", 65535 },
	{ "203.0.113.7", HOST_ADDRESS, "203.0.113.7", 80 },
	{ "[2001:db8::1]:22", HOST_ADDRESS, "2001:db8::1", 22 },
	{ "[2001:db8::1]", HOST_ADDRESS, "2001:db8::1", 80 },
	/* HOST-12: a port that would wrap to one that is allowed. */
	{ "example.com:4294967739", HOST_BAD, NULL, 0 },
	{ "example.com:65979", HOST_BAD, NULL, 0 },
	{ "example.com:65536", HOST_BAD, NULL, 0 },
	{ "example.com:00000000000443", HOST_BAD, NULL, 0 },
	{ "example.com:0443", HOST_BAD, NULL, 0 },
	{ "example.com:0", HOST_BAD, NULL, 0 },
	{ "example.com:", HOST_BAD, NULL, 0 },
	{ "example.com:+443", HOST_BAD, NULL, 0 },
	{ "example.com:-1", HOST_BAD, NULL, 0 },
	{ "example.com: 443", HOST_BAD, NULL, 0 },
	{ "example.com:443 ", HOST_BAD, NULL, 0 },
	{ "example.com:0x1bb", HOST_BAD, NULL, 0 },
	{ "example.com:https", HOST_BAD, NULL, 0 },
	{ "example.com:443:443", HOST_BAD, NULL, 0 },
	/* HOST-03, HOST-11, ADDR-17 */
	{ "http://a.example.com:443", HOST_BAD, NULL, 0 },
	{ "a.example.com:443/x", HOST_BAD, NULL, 0 },
	{ "a b:443", HOST_BAD, NULL, 0 },
	{ "user@a.example.com:443", HOST_BAD, NULL, 0 },
	{ "[203.0.113.7]:443", HOST_BAD, NULL, 0 },
	{ "::1:80", HOST_BAD, NULL, 0 },
	{ "2001:db8::1:443", HOST_BAD, NULL, 0 },
	{ "[::1]443", HOST_BAD, NULL, 0 },
	{ "[::1]x:443", HOST_BAD, NULL, 0 },
	{ "[::1:443", HOST_BAD, NULL, 0 },
	{ "[::1%25.example.com]:80", HOST_BAD, NULL, 0 },
	{ ":443", HOST_BAD, NULL, 0 },
	{ "", HOST_BAD, NULL, 0 },
	/* ADDR-08 */
	{ "2130706433:80", HOST_BAD, NULL, 0 },
	{ "0x7f000001:80", HOST_BAD, NULL, 0 },
};

static void an_authority_is_a_host_and_a_port(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(authorities); i++) {
		const struct hostcase *c = &authorities[i];
		struct host_name name = { 0 };
		struct ip_addr addr = { 0 };
		enum host_kind kind;
		uint16_t port = 7;

		kind = authority_parse(str_from(c->text), 80, &name, &addr,
				       &port);
		check_host(c, kind, &name, &addr);
		assert_int_equal(port, kind == HOST_BAD ? 7 : c->port);
	}
}

static void without_a_default_the_port_must_be_there(void **state)
{
	struct host_name name;
	struct ip_addr addr;
	uint16_t port = 7;

	(void)state;
	assert_int_equal(authority_parse(STR("example.com"), 0, &name, &addr,
					 &port), HOST_BAD);
	assert_int_equal(authority_parse(STR("[::1]"), 0, &name, &addr, &port),
			 HOST_BAD);
	assert_int_equal(port, 7);
	assert_int_equal(authority_parse(STR("example.com:22"), 0, &name, &addr,
					 &port), HOST_NAME);
	assert_int_equal(port, 22);
}

static void local_names_are_known_by_their_last_label(void **state)
{
	(void)state;
	assert_true(host_name_is_local(STR("localhost")));
	assert_true(host_name_is_local(STR("a.localhost")));
	assert_true(host_name_is_local(STR("printer.local")));
	assert_true(host_name_is_local(STR("nonce.invalid")));
	assert_true(host_name_is_local(STR("x.onion")));
	assert_false(host_name_is_local(STR("local.example.com")));
	assert_false(host_name_is_local(STR("notlocal")));
	assert_false(host_name_is_local(STR("db.internal")));
	assert_false(host_name_is_local(STR_NONE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_has_one_spelling),
		cmocka_unit_test(what_is_no_name_is_refused),
		cmocka_unit_test(a_last_label_that_is_a_number_is_refused),
		cmocka_unit_test(an_a_label_must_be_one),
		cmocka_unit_test(lengths_are_bounded),
		cmocka_unit_test(a_host_is_a_name_or_a_literal),
		cmocka_unit_test(an_authority_is_a_host_and_a_port),
		cmocka_unit_test(without_a_default_the_port_must_be_there),
		cmocka_unit_test(local_names_are_known_by_their_last_label),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
