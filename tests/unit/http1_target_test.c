/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_target_test.c - which host a request is for, read in one way only
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "proxy/http1.h"

static struct http1_head head;
static struct http1_target target;

static bool parse(const char *method, struct str text, enum reason *ret_why)
{
	memset(&head, 0, sizeof(head));
	head.method = str_from(method);
	head.target = text;
	return http1_parse_target(&head, &target, ret_why);
}

static void must_refuse(const char *method, struct str text, enum reason want)
{
	enum reason why = REASON_ALLOWED;

	if (parse(method, text, &why) || why != want)
		fail_msg("%s %.*s: %s", method, STR_ARG(text),
			 reason_word(why));
}

static void must_accept(const char *method, const char *text)
{
	enum reason why = REASON_ALLOWED;

	if (!parse(method, str_from(text), &why))
		fail_msg("%s %s: %s", method, text, reason_word(why));
}

static void assert_str(struct str got, const char *want)
{
	if (!str_eq(got, str_from(want)))
		fail_msg("\"%.*s\" is not \"%s\"", STR_ARG(got), want);
}

static void each_form_is_told_from_the_others(void **state)
{
	(void)state;
	must_accept("GET", "/a/b?c");
	assert_int_equal(target.form, HTTP1_ORIGIN_FORM);
	assert_str(target.path, "/a/b?c");
	must_accept("GET", "//a.example.com/b");
	assert_int_equal(target.form, HTTP1_ORIGIN_FORM);
	must_accept("OPTIONS", "*");
	assert_int_equal(target.form, HTTP1_ASTERISK_FORM);
	must_accept("CONNECT", "a.example.com:443");
	assert_int_equal(target.form, HTTP1_AUTHORITY_FORM);
	assert_int_equal(target.kind, HOST_NAME);
	assert_int_equal(target.port, 443);
	must_accept("GET", "HTTP://A.Example.com./x?y");
	assert_int_equal(target.form, HTTP1_ABSOLUTE_FORM);
	assert_false(target.https);
	assert_str(host_name_str(&target.name), "a.example.com");
	assert_int_equal(target.port, 80);
	assert_str(target.path, "/x?y");
	assert_str(target.authority, "A.Example.com.");
	must_accept("GET", "https://a.example.com");
	assert_true(target.https);
	assert_int_equal(target.port, 443);
	assert_str(target.path, "/");
	must_accept("GET", "http://a.example.com:8080?q");
	assert_int_equal(target.port, 8080);
	assert_str(target.path, "?q");
	must_accept("GET", "http://[2001:db8::1]:81/");
	assert_int_equal(target.kind, HOST_ADDRESS);
	assert_int_equal(target.addr.family, IP_V6);
	assert_int_equal(target.port, 81);
}

static void http_29_a_form_belongs_to_its_method(void **state)
{
	(void)state;
	must_refuse("GET", STR("*"), REASON_REQUEST_MALFORMED);
	must_refuse("GET", STR("a.example.com:443"), REASON_REQUEST_MALFORMED);
	must_refuse("connect", STR("a.example.com:443"),
		    REASON_REQUEST_MALFORMED);
	must_refuse("CONNECT", STR("/"), REASON_AUTHORITY_INVALID);
	must_refuse("CONNECT", STR("*"), REASON_AUTHORITY_INVALID);
	must_refuse("GET", STR("ftp://a.example.com/"),
		    REASON_REQUEST_MALFORMED);
	must_refuse("GET", STR("http:/a.example.com/"),
		    REASON_REQUEST_MALFORMED);
	must_refuse("GET", STR("a"), REASON_REQUEST_MALFORMED);
	must_refuse("GET", STR(""), REASON_REQUEST_MALFORMED);
}

static void host_03_a_connect_target_is_strictly_an_authority(void **state)
{
	static const char *const bad[] = {
		"[203.0.113.7]:443", "http://a.example.com:443",
		"a.example.com:443/x", "a.example.com", "a.example.com:",
		":443", "a.example.com:443:443", "user@a.example.com:443",
		"a.example.com:443?x", "a..example.com:443",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		must_refuse("CONNECT", str_from(bad[i]),
			    REASON_AUTHORITY_INVALID);
}

static void host_05_underscores_are_part_of_names(void **state)
{
	(void)state;
	must_accept("CONNECT", "my_bucket.example.com:443");
	assert_str(host_name_str(&target.name), "my_bucket.example.com");
}

static void host_08_a_label_in_plain_ascii_disguise_is_refused(void **state)
{
	(void)state;
	must_refuse("CONNECT", STR("xn--example-.com:443"),
		    REASON_AUTHORITY_INVALID);
	must_accept("CONNECT", "xn--bcher-kva.example:443");
}

static void host_10_non_ascii_is_malformed(void **state)
{
	(void)state;
	must_refuse("GET", STR("http://api\xEF\xBC\x8E" "example.com/"),
		    REASON_AUTHORITY_INVALID);
	must_refuse("GET", STR("http://api\xC2\xAD.example.com/"),
		    REASON_AUTHORITY_INVALID);
	must_refuse("GET", STR("http://api\xE3\x80\x82" "example.com/"),
		    REASON_AUTHORITY_INVALID);
	must_refuse("GET", STR("http://a.example.com/\xC3\xA4"),
		    REASON_REQUEST_MALFORMED);
}

static void host_11_what_parsers_disagree_on_is_refused(void **state)
{
	(void)state;
	must_refuse("GET", STR("http://api.example.com@denied.example.net/"),
		    REASON_AUTHORITY_INVALID);
	must_refuse("GET", STR("http://denied.example.net#@api.example.com/"),
		    REASON_AUTHORITY_INVALID);
	must_refuse("GET", STR("http://denied.example.net\\@api.example.com/"),
		    REASON_AUTHORITY_INVALID);
	must_refuse("GET", STR("http://a.example.com/#x"),
		    REASON_REQUEST_MALFORMED);
	must_refuse("GET", STR("http://a.example.com/a\\b"),
		    REASON_REQUEST_MALFORMED);
	must_refuse("GET", STR("/a\\b"), REASON_REQUEST_MALFORMED);
	must_refuse("GET", STR("/#a"), REASON_REQUEST_MALFORMED);
	must_refuse("GET", STR("\thttp://a.example.com/"),
		    REASON_REQUEST_MALFORMED);
	must_refuse("GET", STR("http:///x"), REASON_AUTHORITY_INVALID);
	must_refuse("GET", STR("http://"), REASON_AUTHORITY_INVALID);
	must_refuse("GET", STR("http://a.example.com\0b/"),
		    REASON_AUTHORITY_INVALID);
}

static void host_12_ports_are_five_digits_at_most(void **state)
{
	static const char *const ports[] = {
		"4294967739", "65979", "65536", "00000000000443", "0443", "0",
		"+443", "-1", "0x1bb", "44 3",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		char text[64];
		int n = snprintf(text, sizeof(text), "example.com:%s",
				 ports[i]);

		must_refuse("CONNECT", str_make(text, (size_t)n),
			    REASON_AUTHORITY_INVALID);
	}
	must_accept("CONNECT", "example.com:65535");
}

static void host_17_percent_never_stands_in_a_host(void **state)
{
	(void)state;
	must_refuse("GET", STR("http://%65xample.com/"),
		    REASON_AUTHORITY_INVALID);
	must_refuse("CONNECT", STR("exampl%65.com:443"),
		    REASON_AUTHORITY_INVALID);
}

static void host_18_zone_ids_are_refused(void **state)
{
	(void)state;
	must_refuse("CONNECT", STR("[::1%25.example.com]:80"),
		    REASON_AUTHORITY_INVALID);
	must_refuse("CONNECT", STR("[fe80::1%25eth0]:80"),
		    REASON_AUTHORITY_INVALID);
	must_refuse("CONNECT", STR("[fe80::1%eth0]:80"),
		    REASON_AUTHORITY_INVALID);
}

static void host_19_long_names_are_refused_before_any_copy(void **state)
{
	static char text[65536 + 8];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text + 64, ".example:443", 12);
	must_refuse("CONNECT", str_make(text, 76), REASON_AUTHORITY_INVALID);
	memset(text, 'a', sizeof(text));
	for (size_t i = 1; i < 254; i += 2)
		text[i] = '.';
	text[253] = 'a';
	memcpy(text + 254, ":443", 4);
	must_refuse("CONNECT", str_make(text, 258), REASON_AUTHORITY_INVALID);
	memset(text, 'a', sizeof(text));
	memcpy(text + 65536, ":443", 4);
	must_refuse("CONNECT", str_make(text, 65540),
		    REASON_AUTHORITY_INVALID);
}

static void host_20_one_canonical_value_leaves_here(void **state)
{
	(void)state;
	must_accept("CONNECT", "Api.Example.COM.:443");
	assert_str(host_name_str(&target.name), "api.example.com");
}

/* --- Host ------------------------------------------------------------------- */

static bool agrees(const char *host, const char *authority, uint16_t port)
{
	struct host_name name = { 0 };
	struct ip_addr addr = { 0 };
	enum host_kind kind = host_parse(str_from(authority), &name, &addr);

	assert_int_not_equal(kind, HOST_BAD);
	memset(&head, 0, sizeof(head));
	head.has_host = host != NULL;
	head.host = str_from(host);
	return http1_host_agrees(&head, kind, &name, &addr, port, 80);
}

static void host_14_host_must_be_the_target(void **state)
{
	(void)state;
	assert_true(agrees("Api.example.com.", "api.example.com", 80));
	assert_false(agrees("denied.example.net", "api.example.com", 80));
	assert_false(agrees("xapi.example.com", "api.example.com", 80));
	assert_false(agrees("", "api.example.com", 80));
	assert_false(agrees(NULL, "api.example.com", 80));
	assert_false(agrees("user@api.example.com", "api.example.com", 80));
	assert_false(agrees("api.example.com, denied.example.net",
			    "api.example.com", 80));
	assert_false(agrees("192.0.2.1", "api.example.com", 80));
}

static void host_16_the_real_port_decides(void **state)
{
	(void)state;
	assert_true(agrees("example.com", "example.com", 80));
	assert_true(agrees("example.com:80", "example.com", 80));
	assert_false(agrees("example.com:8080", "example.com", 80));
	assert_true(agrees("example.com:8080", "example.com", 8080));
	assert_false(agrees("example.com", "example.com", 8080));
}

static void an_address_agrees_in_any_spelling(void **state)
{
	(void)state;
	assert_true(agrees("[2001:DB8:0::1]", "[2001:db8::1]", 80));
	assert_false(agrees("[2001:db8::2]", "[2001:db8::1]", 80));
	assert_true(agrees("192.0.2.1:80", "192.0.2.1", 80));
	assert_false(agrees("example.com", "192.0.2.1", 80));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_form_is_told_from_the_others),
		cmocka_unit_test(http_29_a_form_belongs_to_its_method),
		cmocka_unit_test(
			host_03_a_connect_target_is_strictly_an_authority),
		cmocka_unit_test(host_05_underscores_are_part_of_names),
		cmocka_unit_test(
			host_08_a_label_in_plain_ascii_disguise_is_refused),
		cmocka_unit_test(host_10_non_ascii_is_malformed),
		cmocka_unit_test(host_11_what_parsers_disagree_on_is_refused),
		cmocka_unit_test(host_12_ports_are_five_digits_at_most),
		cmocka_unit_test(host_17_percent_never_stands_in_a_host),
		cmocka_unit_test(host_18_zone_ids_are_refused),
		cmocka_unit_test(
			host_19_long_names_are_refused_before_any_copy),
		cmocka_unit_test(host_20_one_canonical_value_leaves_here),
		cmocka_unit_test(host_14_host_must_be_the_target),
		cmocka_unit_test(host_16_the_real_port_decides),
		cmocka_unit_test(an_address_agrees_in_any_spelling),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
