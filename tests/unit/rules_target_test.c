/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_target_test.c - what a person may ask about
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "rules/rules_target.h"

/* "HOST PORT given|default SCHEME PATH" of @text, or "why: ..." */
static const char *read_as(const char *text)
{
	static char out[400];
	struct rules_target t;
	const char *why = NULL;
	char addr[IP_TEXT_SIZE];

	if (rules_target_parse(str_from(text), &t, &why)) {
		assert_non_null(why);
		assert_true(snprintf(out, sizeof(out), "why: %s", why) > 0);
		return out;
	}
	if (t.addr.family != IP_NONE)
		ip_addr_text(&t.addr, addr);
	assert_true(snprintf(out, sizeof(out), "%s %u %s %s %.*s",
			     t.host.n ? t.host.p : addr, t.port,
			     t.port_given ? "given" : "default",
			     t.scheme ? t.scheme->name : "-",
			     STR_ARG(t.path)) > 0);
	return out;
}

static void names_and_addresses(void **state)
{
	(void)state;
	assert_string_equal(read_as("API.Example.com."),
			    "api.example.com 443 default - ");
	assert_string_equal(read_as("api.example.com:25"),
			    "api.example.com 25 given - ");
	assert_string_equal(read_as("192.0.2.1"), "192.0.2.1 443 default - ");
	assert_string_equal(read_as("192.0.2.1:80"), "192.0.2.1 80 given - ");
	assert_string_equal(read_as("2001:db8::1"),
			    "2001:db8::1 443 default - ");
	assert_string_equal(read_as("[2001:db8::1]:22"),
			    "2001:db8::1 22 given - ");
	assert_string_equal(read_as("[2001:db8::1]"),
			    "2001:db8::1 443 default - ");
}

static void urls(void **state)
{
	(void)state;
	assert_string_equal(read_as("https://example.com"),
			    "example.com 443 given https ");
	assert_string_equal(read_as("HTTP://example.com/a/b?c=d#e"),
			    "example.com 80 given http /a/b?c=d");
	assert_string_equal(read_as("http://example.com:8080/"),
			    "example.com 8080 given http /");
	assert_string_equal(read_as("https://user:pw@example.com/x"),
			    "example.com 443 given https /x");
	assert_string_equal(read_as("https://example.com?q"),
			    "example.com 443 given https ");
	assert_string_equal(read_as("ssh://git@git.example.com/repo"),
			    "git.example.com 22 given ssh ");
	assert_string_equal(read_as("https://[2001:db8::1]/x"),
			    "2001:db8::1 443 given https /x");
	assert_string_equal(read_as("tcp://example.com:9"),
			    "example.com 9 given tcp ");
	/* What follows the last '@' is the host that a client would take. */
	assert_string_equal(read_as("https://good.example@evil.example/"),
			    "evil.example 443 given https /");
}

static void what_is_none_is_told_why(void **state)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "gopher://example.com", "has a scheme that is no protocol" },
		{ "://example.com", "has a scheme that is no protocol" },
		{ "example.com/path", "has a path; write https://" },
		{ "", "names no host" },
		{ " ", "is no host name" },
		{ "https://", "names no host" },
		{ ":443", "names no host" },
		{ "a b", "is no host name" },
		{ "a,b", "has a comma in it" },
		{ "a..example", "has an empty label" },
		{ "*.example.com", "is a pattern" },
		{ "*", "is a pattern" },
		{ "example.com:", "has no port behind ':'" },
		{ "example.com:0", "has no port behind ':'" },
		{ "example.com:65536", "has no port behind ':'" },
		{ "example.com:https", "has no port behind ':'" },
		{ "git@git.example.com:team/x", "has a path" },
		{ "git@git.example.com:team", "has no port behind ':'" },
		{ "192.0.2.1:x", "has no port behind ':'" },
		{ "0x7f000001", "is no address; write four decimal numbers" },
		{ "010.0.0.1", "is no address; write four decimal numbers" },
		{ "127.1:80", "is no address; write four decimal numbers" },
		{ "[fe80::1%eth0]", "is neither a name nor an address" },
		{ "2001:db8::1:zz", "is neither a name nor an address" },
		{ "[2001:db8::1", "is neither a name nor an address" },
		{ "b\xc3\xbc" "cher.example:0", "has no port behind ':'" },
		{ "b\xc3" "cher.example", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		const char *said = read_as(wrong[i].text);

		if (strncmp(said, "why: ", 5) != 0 ||
		    strncmp(said + 5, wrong[i].why, strlen(wrong[i].why)) != 0)
			fail_msg("%s: %s", wrong[i].text, said);
	}
}

static void letters_outside_ascii(void **state)
{
	(void)state;
	assert_string_equal(read_as("https://b\xc3\xbc" "cher.example/x"),
			    "xn--bcher-kva.example 443 given https /x");
	assert_string_equal(read_as("B\xc3\x9c" "CHER.example:25"),
			    "xn--bcher-kva.example 25 given - ");
	assert_string_equal(read_as("b\xc3\xbc" "cher.example"),
			    "xn--bcher-kva.example 443 default - ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_addresses),
		cmocka_unit_test(urls),
		cmocka_unit_test(what_is_none_is_told_why),
		cmocka_unit_test(letters_outside_ascii),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
