/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_allow_test.c - what `--allow` makes of its argument
 */
#include <errno.h>

#include "tests/unit/rules_kit.h"

#define REASON(arg)	"reason = --allow " arg "\n"

static void an_argument_becomes_a_rule(void **state)
{
	static const struct {
		const char *argument, *text;
	} cases[] = {
		{ "api.example.org", "[allow allow-7]\nhosts = "
				     "api.example.org\n"
		  REASON("api.example.org") },
		{ "Api.Example.ORG.", "[allow allow-7]\nhosts = "
				      "Api.Example.ORG.\n"
		  REASON("Api.Example.ORG.") },
		{ "a.example:22", "[allow allow-7]\nhosts = a.example\n"
		  "ports = 22\n" REASON("a.example:22") },
		{ "*.b.example:8000-8100", "[allow allow-7]\n"
		  "hosts = *.b.example\nports = 8000-8100\n"
		  REASON("*.b.example:8000-8100") },
		{ "a.example:*", "[allow allow-7]\nhosts = a.example\n"
		  "ports = *\n" REASON("a.example:*") },
		{ "8.8.8.8", "[allow allow-7]\naddresses = 8.8.8.8\n"
		  REASON("8.8.8.8") },
		{ "8.8.8.8:53", "[allow allow-7]\naddresses = 8.8.8.8\n"
		  "ports = 53\n" REASON("8.8.8.8:53") },
		{ "8.8.8.0/24:53", "[allow allow-7]\naddresses = 8.8.8.0/24\n"
		  "ports = 53\n" REASON("8.8.8.0/24:53") },
		{ "2600::1", "[allow allow-7]\naddresses = 2600::1\n"
		  REASON("2600::1") },
		{ "[2600::1]", "[allow allow-7]\naddresses = 2600::1\n"
		  REASON("[2600::1]") },
		{ "[2600::1]:22", "[allow allow-7]\naddresses = 2600::1\n"
		  "ports = 22\n" REASON("[2600::1]:22") },
		{ "2600::/32", "[allow allow-7]\naddresses = 2600::/32\n"
		  REASON("2600::/32") },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf out = BUF_INIT(4096);
		const char *why = NULL;

		if (rules_allow_text(str_from(cases[i].argument), 7, &out,
		&why))
			fail_msg("'%s' %s", cases[i].argument, why);
		assert_string_equal(buf_cstr(&out), cases[i].text);
		rules_unref(compile_good(buf_cstr(&out)));
		buf_done(&out);
	}
}

/* POL-18 and the rest: nothing is taken that is more than a host and a port. */
static void what_is_no_host_and_port_is_refused(void **state)
{
	static const struct {
		const char *argument, *why;
	} cases[] = {
		{ "", "is not one plain word" },
		{ "example.com\nhosts = evil.example",
		  "is not one plain word" },
		{ "example.com\n[allow x]", "is not one plain word" },
		{ "example.com\r", "is not one plain word" },
		{ "a.example\"; x'", "is not one plain word" },
		{ "a.example b.example", "is not one plain word" },
		{ "a.example\\", "is not one plain word" },
		{ "a.example;", "is not one plain word" },
		{ "a.example#x", "is not one plain word" },
		{ "hosts=a.example", "is not one plain word" },
		{ "b\xc3\xbc" "cher.example", "xn--" },
		{ "*", "would allow every host" },
		{ "*.com", "would allow a whole top-level domain" },
		{ "com", "is a top-level domain alone" },
		{ "https://a.example/", "is a URL" },
		{ "a.example/x", "has a path in it" },
		{ "a.example,b.example", "comma in it; give an --allow for" },
		{ "a.example:80,443", "comma in it; give an --allow for" },
		{ "a.example:", "has no port behind" },
		{ ":443", "has no host before" },
		{ "a.example:0", "is no port" },
		{ "a.example:65979", "is no port" },
		{ "a.example:https", "is no port" },
		{ "a.example:443:443", "has several colons" },
		{ "2600::12345:22", "has several colons" },
		{ "https://a.example:443", "is a URL" },
		{ "[8.8.8.8", "is not of the form" },
		{ "[2600::1]22", "is not of the form" },
		{ "[2600::1]:", "has no port behind" },
		{ "[2600::1]:x", "is no port" },
		{ "[]", "is empty" },
		{ "[a.example]", "is no address" },
		{ "fe80::1%eth0", "has several colons" },
		{ "127.1", "is no host name" },
		{ "localhost", "is never asked of the DNS" },
		{ "10.0.0.5", "is not a public address; open it in a policy" },
		{ "10.0.0.0/8", "is not a public address" },
		{ "9.0.0.0/7:80", "has bits set behind its prefix" },
		{ "127.0.0.1:8080", "is not a public address" },
		{ "[::1]:80", "is not a public address" },
		{ "203.0.113.5", "is not a public address" },
		{ "8.0.0.0/5", "is not a public address" },
		{ "::ffff:10.0.0.1", "is an IPv4 address written as IPv6" },
		{ "169.254.169.254", "metadata service, which --allow never" },
		{ "[fd00:ec2::254]:80",
		  "metadata service, which --allow never" },
		{ "198.18.0.1", "touches 198.18.0.0/15" },
		{ "0.0.0.0/0", "touches 198.18.0.0/15" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf out = BUF_INIT(4096);
		const char *why = "";

		assert_int_equal(buf_add_str(&out, STR("before")), 0);
		if (rules_allow_text(str_from(cases[i].argument), 1, &out,
				     &why) != -EINVAL)
			fail_msg("'%s' was taken", cases[i].argument);
		if (!strstr(why, cases[i].why))
			fail_msg("'%s' %s", cases[i].argument, why);
		assert_string_equal(buf_cstr(&out), "before");
		buf_done(&out);
	}
	assert_int_equal(rules_allow_text(str_make("a.example\0x", 11), 1,
					  &BUF_INIT(4096),
					  &(const char *){ NULL }), -EINVAL);
}

static void a_full_buffer_is_said_and_left_as_it_was(void **state)
{
	struct buf out = BUF_INIT(40);
	const char *why = NULL;

	(void)state;
	assert_int_equal(rules_allow_text(STR("a.example"), 1, &out, &why),
			 -EINVAL);
	assert_non_null(strstr(why, "too many --allow options"));
	assert_int_equal(out.n, 0);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_argument_becomes_a_rule),
		cmocka_unit_test(what_is_no_host_and_port_is_refused),
		cmocka_unit_test(a_full_buffer_is_said_and_left_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
