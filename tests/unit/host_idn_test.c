/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_idn_test.c - names with letters outside ASCII, and public suffixes
 */
#include <errno.h>

#include "rules/host_idn.h"
#include "tests/unit/rules_kit.h"

/* HOST-09 */
static void a_name_and_its_a_labels_are_one(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = b\xc3\xbc" "cher.example "
		"*.B\xc3\x9c" "CHER.example.org\n"
		"[deny d]\nhosts = xn--bcher-kva.example\nports = 80\n"
		"[deny e]\nhosts = x.b\xc3\xbc" "cher.example.org\n");

	(void)state;
	assert_int_equal(ask(rs, "xn--bcher-kva.example", 443, NULL).reason,
			 REASON_ALLOWED);
	assert_int_equal(ask(rs, "xn--bcher-kva.example", 80, NULL).reason,
			 REASON_HOST_DENIED);
	assert_int_equal(ask(rs, "y.xn--bcher-kva.example.org", 443,
			     NULL).reason, REASON_ALLOWED);
	assert_int_equal(ask(rs, "x.xn--bcher-kva.example.org", 443,
			     NULL).reason, REASON_HOST_DENIED);
	rules_unref(rs);
}

static void names_are_converted_as_people_expect(void **state)
{
	static const char *const names[][2] = {
		{ "b\xc3\xbc" "cher.example", "xn--bcher-kva.example" },
		/* u and a combining diaeresis are the letter. */
		{ "bu\xcc\x88" "cher.example", "xn--bcher-kva.example" },
		{ "stra\xc3\x9f" "e.example", "xn--strae-oqa.example" },
		{ "\xe4\xbe\x8b\xe3\x81\x88.example",
		  "xn--r8jz45g.example" },
		{ "example.\xd1\x80\xd1\x84", "example.xn--p1ai" },
	};
	struct host_name host;
	const char *why;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		assert_int_equal(host_idn_parse(str_from(names[i][0]), &host,
						&why), 0);
		assert_string_equal(host.p, names[i][1]);
	}
	assert_int_equal(host_idn_parse(STR("plain.example"), &host, &why),
			 -ENOENT);
}

static void names_that_deceive_are_refused_with_their_place(void **state)
{
	static const struct {
		const char *host, *told;
	} f[] = {
		{ "api\xef\xbc\x8e" "example", "2:9: error: 'api\\xef\\xbc"
		  "\\x8eexample' has a dot of another script" },
		{ "api\xe3\x80\x82" "example.com", "has a dot of another" },
		{ "\xef\xbd\x81pi.example", "spells ASCII letters in another "
		  "way; write them in ASCII" },
		{ "\xe2\x84\xaa" "x.example", "spells ASCII letters" },
		{ "a\xe2\x98\xba.example", "is no name that can be registered" },
		{ "\xcc\x88" "a.example", "is no name that can be registered" },
		{ "b\xc3\xbc" "cher.example/x", "2:9: error: " },
		{ "b\xc3\xbc*.example", "2:9: error: " },
	};
	struct told told;
	char text[128];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(f); i++) {
		int n = snprintf(text, sizeof(text), "[allow a]\nhosts = %s\n",
				 f[i].host);

		assert_true(n > 0 && n < (int)sizeof(text));
		assert_null(compile_told(text, &told));
		if (!strstr(buf_cstr(&told.text), f[i].told))
			fail_msg("told: %s", buf_cstr(&told.text));
		buf_done(&told.text);
	}
}

static void suffixes_are_those_of_the_list(void **state)
{
	static const char *const yes[] = {
		"com", "co.uk", "github.io", "xn--p1ai", "unknown-top",
		"kawasaki.jp", "anything.ck",
	};
	static const char *const no[] = {
		"example.com", "example.co.uk", "me.github.io", "www.ck",
		"city.kawasaki.jp", "a.b.c.d.e.f.g.co.uk", "example.xn--p1ai",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		if (!host_is_public_suffix(str_from(yes[i])))
			fail_msg("%s is none", yes[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		if (host_is_public_suffix(str_from(no[i])))
			fail_msg("%s is one", no[i]);
	}
}

/* POL-12 */
static void a_public_suffix_takes_a_word_and_a_reason(void **state)
{
	static const struct {
		const char *text, *told;
		bool error;
	} f[] = {
		{ "[allow a]\nhosts = x.example *.co.uk\n", "p.ini:2:19: "
		  "error: '*.co.uk' would allow all that anybody registers "
		  "there: a public suffix; name the hosts, or say "
		  "'public_suffix = yes' with a reason", true },
		{ "[allow a]\nhosts = github.io\n", "2:9: error: 'github.io' is "
		  "a public suffix", true },
		{ "[allow a]\nhosts = *.com\nports = 22\n", "2:9: error: "
		  "'*.com' would allow a whole top-level domain", true },
		{ "[allow a]\nhosts = *.co.uk\npublic_suffix = yes\n",
		  "3:0: error: [allow a] opens a public suffix; say why", true },
		{ "[allow a]\nhosts = *.co.uk\npublic_suffix = maybe\n",
		  "3:17: error: 'maybe' is neither 'yes' nor 'no'", true },
		{ "[allow a]\nhosts = *.co.uk\npublic_suffix = no\n",
		  "2:9: error: '*.co.uk'", true },
		{ "[allow a]\nhosts = a.example.com\npublic_suffix = yes\n"
		  "reason = x\n", "3:0: warning: [allow a] has no public "
		  "suffix among its hosts", false },
		{ "[deny a]\nhosts = a.example\npublic_suffix = yes\n",
		  "3:0: error: 'public_suffix' has no place in [deny a]; it "
		  "belongs in [allow NAME]", true },
	};
	struct ruleset *rs;
	struct told told;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(f); i++) {
		rs = compile_told(f[i].text, &told);
		if ((rs == NULL) != f[i].error ||
		    !strstr(buf_cstr(&told.text), f[i].told))
			fail_msg("of:\n%s\ntold: %s", f[i].text,
				 buf_cstr(&told.text));
		rules_unref(rs);
		buf_done(&told.text);
	}
	rs = compile_told("[allow a]\nhosts = *.co.uk *.com github.io\n"
			  "public_suffix = yes\nreason = a crawler\n", &told);
	assert_non_null(rs);
	assert_int_equal(told.text.n, 0);
	assert_int_equal(ask(rs, "any.co.uk", 443, NULL).reason,
			 REASON_ALLOWED);
	assert_int_equal(ask(rs, "any.com", 443, NULL).reason, REASON_ALLOWED);
	rules_unref(rs);
	buf_done(&told.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_and_its_a_labels_are_one),
		cmocka_unit_test(names_are_converted_as_people_expect),
		cmocka_unit_test(
			names_that_deceive_are_refused_with_their_place),
		cmocka_unit_test(suffixes_are_those_of_the_list),
		cmocka_unit_test(a_public_suffix_takes_a_word_and_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
