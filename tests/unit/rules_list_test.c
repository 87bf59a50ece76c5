/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_list_test.c - lists of hosts, from a line to a million
 */
#include <errno.h>
#include <stdlib.h>

#include "rules/ruleset.h"
#include "tests/unit/rules_kit.h"

#define LISTS_MAX	4

/* A policy, and what its line @at[i] names as "@list-i". */
struct with_lists {
	const char *policy;
	const char *list[LISTS_MAX];
	uint32_t at[LISTS_MAX];
};

static int compile_lists(const struct with_lists *w, struct told *told,
			 struct ruleset **ret)
{
	static const char *const words[LISTS_MAX] = {
		"@list-0", "@list-1", "@list-2", "@list-3",
	};
	struct rules_source source[1 + LISTS_MAX] = {
		{ .name = "p.ini", .text = str_from(w->policy) },
	};
	size_t n = 1;

	for (size_t i = 0; i < LISTS_MAX && w->list[i]; i++)
		source[n++] = (struct rules_source){
			.name = words[i] + 1, .text = str_from(w->list[i]),
			.kind = RULES_SOURCE_HOSTS, .parent = 1,
			.line = w->at[i], .word = str_from(words[i]),
		};
	*told = (struct told){ .text = BUF_INIT(1 << 20) };
	*ret = NULL;
	return rules_compile(source, n, told_one, told, ret);
}

/* What is told, line for line, and whether it compiles. */
static void check_told(const struct with_lists *w, bool good, const char *want)
{
	struct ruleset *rs;
	struct told told;
	int err = compile_lists(w, &told, &rs);
	struct str got = buf_str(&told.text);

	assert_int_equal(err, good ? 0 : -EINVAL);
	if (!str_eq(got, str_from(want)))
		fail_msg("told:\n%.*swanted:\n%s", STR_ARG(got), want);
	rules_unref(rs);
	buf_done(&told.text);
}

static struct ruleset *compile_quiet(const struct with_lists *w)
{
	struct ruleset *rs;
	struct told told;
	int err = compile_lists(w, &told, &rs);

	if (err || told.warnings)
		fail_msg("%d: %s", err, buf_cstr(&told.text));
	buf_done(&told.text);
	return rs;
}

/* POL-16: blanks, CRLF, a byte order mark and no last LF change nothing. */
static void a_list_has_a_host_a_line(void **state)
{
	static const struct with_lists w = {
		.policy = "[allow a]\nhosts = own.example.com @list-0\n",
		.list = { "\xef\xbb\xbf# a list\r\n\r\none.example.com\r\n"
			  "  Two.Example.COM.  \n; more\n*.three.example.com\n"
			  "last.example.com" },
		.at = { 2 },
	};
	static const struct verdict v[] = {
		{ "own.example.com", 443, NULL, REASON_ALLOWED, "a", "https" },
		{ "one.example.com", 443, NULL, REASON_ALLOWED, "a", "https" },
		{ "two.example.com", 443, NULL, REASON_ALLOWED, "a", "https" },
		{ "x.three.example.com", 443, NULL, REASON_ALLOWED, "a",
		  "https" },
		{ "three.example.com", 443, NULL, REASON_HOST_NOT_ALLOWED,
		  NULL, NULL },
		{ "last.example.com", 443, NULL, REASON_ALLOWED, "a", "https" },
		{ "more.example.com", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
	};
	struct ruleset *rs = compile_quiet(&w);
	struct rules_answer a;

	(void)state;
	check_verdicts(rs, v, ARRAY_SIZE(v));
	assert_int_equal(rules_judge_name(rs, STR("three.example.com"), 1, &a),
			 RULES_NAME_ANCESTOR);
	rules_unref(rs);
}

static void faults_of_a_list_have_their_place(void **state)
{
	static const struct with_lists w = {
		.policy = "[allow a]\nhosts = @list-0\n",
		.list = { "good.example.com\n  http://x.example/\n"
			  "a.example.com b.example.com\n\n192.0.2.1\n*\n" },
		.at = { 2 },
	};

	(void)state;
	check_told(&w, false,
		   "list-0:2:3: error: 'http://x.example/' is a URL; write its "
		   "host alone, and 'ports' or 'protocol' where they are not "
		   "the web's\n"
		   "list-0:3:15: error: 'b.example.com' stands behind a host; "
		   "write one host a line, and comments on lines of their own\n"
		   "list-0:5:1: error: '192.0.2.1' is an address, not a name; "
		   "write it under 'addresses'\n"
		   "list-0:6:1: error: '*' would allow every host; name the "
		   "hosts, or try 'mode = observe' in [policy] to find out "
		   "which are needed\n");
}

/* POL-12: a list is no way around what a rule must say. */
static void a_public_suffix_in_a_list_needs_a_word_too(void **state)
{
	struct with_lists w = {
		.policy = "[allow a]\nhosts = @list-0\n",
		.list = { "*.com\nco.uk\n*.co.uk\nexample.co.uk\n" },
		.at = { 2 },
	};
	struct rules_answer a;
	struct ruleset *rs;

	(void)state;
	check_told(&w, false,
		   "list-0:1:1: error: '*.com' would allow a whole top-level "
		   "domain; a wildcard needs at least two labels behind "
		   "\"*.\"\n"
		   "list-0:2:1: error: 'co.uk' is a public suffix, no host of "
		   "anybody's own; name the host, or say 'public_suffix = yes' "
		   "with a reason\n"
		   "list-0:3:1: error: '*.co.uk' would allow all that anybody "
		   "registers there: a public suffix; name the hosts, or say "
		   "'public_suffix = yes' with a reason\n");
	w.policy = "[allow a]\nhosts = @list-0\npublic_suffix = yes\n"
		   "reason = a test\n";
	w.list[0] = "*.co.uk\n";
	rs = compile_quiet(&w);
	a = ask(rs, "example.co.uk", 443, NULL);
	assert_int_equal(a.reason, REASON_ALLOWED);
	rules_unref(rs);
	/* A deny may say it. */
	w.policy = "[deny a]\nhosts = @list-0\n";
	rs = compile_quiet(&w);
	a = ask(rs, "example.co.uk", 443, NULL);
	assert_int_equal(a.reason, REASON_HOST_DENIED);
	rules_unref(rs);
}

static void they_are_told_beside_those_of_the_policy(void **state)
{
	static const struct with_lists w = {
		.policy = "[allow a]\nhosts = @list-0\nhots = b.example.com\n",
		.list = { "bad..example.com\n" },
		.at = { 2 },
	};

	(void)state;
	check_told(&w, false,
		   "p.ini:3:0: error: unknown key 'hots' in [allow a]; did you "
		   "mean 'hosts'?\n"
		   "list-0:1:1: error: 'bad..example.com' has an empty label "
		   "in it (two dots in a row)\n");
}

static void of_endless_faults_some_are_told(void **state)
{
	struct with_lists w = {
		.policy = "[allow a]\nhosts = @list-0\n", .at = { 2 },
	};
	char *list = malloc(2 * 100000 + 1);
	struct ruleset *rs;
	struct told told;

	(void)state;
	assert_non_null(list);
	for (size_t i = 0; i < 100000; i++)
		memcpy(list + 2 * i, "?\n", 3);
	w.list[0] = list;
	assert_int_equal(compile_lists(&w, &told, &rs), -EINVAL);
	assert_in_range(told.errors, 100, 101);
	buf_done(&told.text);
	free(list);
}

/* A rule that had no hosts would take every name's addresses. */
static void an_empty_list_opens_nothing(void **state)
{
	static const struct with_lists w = {
		.policy = "[allow a]\nhosts = @list-0\naddresses = 8.8.8.8\n",
		.list = { "# nothing yet\n" },
		.at = { 2 },
	};
	struct ruleset *rs;
	struct told told;

	(void)state;
	check_told(&w, true, "p.ini:2:0: warning: list-0 has no host in it\n");
	assert_int_equal(compile_lists(&w, &told, &rs), 0);
	assert_int_equal(ask(rs, NULL, 443, "8.8.8.8").reason,
			 REASON_ADDRESS_NOT_ALLOWED);
	assert_int_equal(ask(rs, "a.example.com", 443, "8.8.8.8").reason,
			 REASON_HOST_NOT_ALLOWED);
	rules_unref(rs);
	buf_done(&told.text);
}

/* What adds nothing is said, and of a list but once. */
static void a_list_is_told_of_once_for_each_thing(void **state)
{
	static const struct with_lists w = {
		.policy = "[deny d]\nhosts = *.shut.example.com\n"
			  "[allow wide]\nhosts = *.wide.example.com\n"
			  "[allow a]\nhosts = @list-0\n",
		.list = { "good.example.com\ngood.example.com\n"
			  "a.shut.example.com\nb.shut.example.com\n"
			  "c.shut.example.com\n"
			  "a.wide.example.com\nb.wide.example.com\n"
			  "*.here.example.com\nx.here.example.com\n"
			  "GOOD.example.com\n" },
		.at = { 6 },
	};

	(void)state;
	check_told(&w, true,
		   "list-0:2:1: warning: 'good.example.com' (and 1 more of the "
		   "list) stands in [allow a] twice\n"
		   "list-0:3:0: warning: 'a.shut.example.com' (and 2 more of "
		   "the list) in [allow a] can never be reached: [deny d] "
		   "(p.ini:1) denies it\n"
		   "list-0:9:0: warning: 'x.here.example.com' adds nothing: a "
		   "wildcard in the same rule covers it\n"
		   "list-0:6:0: warning: 'a.wide.example.com' (and 1 more of "
		   "the list) in [allow a] adds nothing: [allow wide] "
		   "(p.ini:3) covers it\n");
}

static void a_list_that_is_shut_as_a_whole_is_told_of_as_a_rule(void **state)
{
	static const struct with_lists w = {
		.policy = "[deny d]\nhosts = *.example.com\n"
			  "[allow a]\nhosts = @list-0\n",
		.list = { "a.example.com\nb.example.com\n" },
		.at = { 4 },
	};

	(void)state;
	check_told(&w, true,
		   "p.ini:3:0: warning: [allow a] can never match: [deny d] "
		   "(p.ini:1) denies all of it\n");
}

static void protocols_that_are_torn_are_told_by_line(void **state)
{
	static const struct with_lists w = {
		.policy = "[allow a]\nhosts = @list-0\nports = 8080\n"
			  "protocol = http\naddresses = 8.8.8.8\n"
			  "[allow b]\nhosts = *.example.com\nports = 8080\n"
			  "protocol = https\n",
		.list = { "one.example.net\ntwo.example.com\n" },
		.at = { 2 },
	};

	(void)state;
	check_told(&w, false,
		   "list-0:2:0: error: [allow a] and [allow b] (p.ini:6) give "
		   "port 8080 of the same host different protocols (http, "
		   "https), and which holds would hang on the address; write "
		   "one 'protocol' in both\n");
}

/* --- large ones ----------------------------------------------------------- */

#define MANY		200000u

/* "n.top\n" for each number, every one with the same top. */
static char *many_hosts(unsigned n, const char *top)
{
	size_t room = (size_t)n * (strlen(top) + 12) + 1, at = 0;
	char *text = malloc(room);

	assert_non_null(text);
	for (unsigned i = 0; i < n; i++) {
		int k = snprintf(text + at, room - at, "h%x.%s\n", i, top);

		assert_true(k > 0 && (size_t)k < room - at);
		at += (size_t)k;
	}
	return text;
}

/*
 * Each host of the first list lies below a wildcard, is named by two rules, and
 * the second of them is shut: were each compared anew, the bound would be met.
 */
static void many_hosts_below_wildcards_are_compared_by_path(void **state)
{
	char *hosts = many_hosts(MANY, "b.example.com");
	struct with_lists w = {
		.policy = "[allow wide]\nhosts = *.example.com\n"
			  "[allow a]\nhosts = @list-0\nports = 8443\n"
			  "[allow b]\nhosts = @list-1\n"
			  "[deny d]\nhosts = *.b.example.com\nports = 443 80\n",
		.list = { hosts, hosts }, .at = { 4, 7 },
	};
	struct ruleset *rs;
	struct told told;

	(void)state;
	assert_int_equal(compile_lists(&w, &told, &rs), 0);
	/* [allow b] can never match. */
	assert_int_equal(told.warnings, 1);
	/* Few sets of rules, however many hosts. */
	assert_in_range(rs->n_marks, 3, 10);
	assert_int_equal(ask(rs, "h0.b.example.com", 8443, NULL).reason,
			 REASON_ALLOWED);
	assert_int_equal(ask(rs, "h1234.b.example.com", 443, NULL).reason,
			 REASON_HOST_DENIED);
	assert_string_equal(ask(rs, "h30d3f.b.example.com", 8443, NULL).rule,
			    "a");
	assert_int_equal(ask(rs, "h30d40.b.example.com", 8443, NULL).reason,
			 REASON_PORT_NOT_ALLOWED);
	rules_unref(rs);
	buf_done(&told.text);
	free(hosts);
}

/* The most rules there can be, with hosts of their own and shared ones. */
static void many_rules_with_many_hosts_each(void **state)
{
	enum { RULES = 4096, EACH = 20, SHARED = 16 };
	struct buf text = BUF_INIT(16 << 20);
	struct rules_source source = { .name = "p.ini" };
	struct ruleset *rs = NULL;
	int err = 0;

	(void)state;
	for (unsigned r = 0; r < RULES && !err; r++) {
		err = buf_printf(&text, "[allow r%u]\nports = %u\nhosts =", r,
				 1000 + r);
		for (unsigned h = 0; h < EACH && !err; h++)
			err = buf_printf(&text, " h%u.r%u.example.com", h, r);
		if (!err)
			err = buf_printf(&text, " s%u.example.com\n",
					 r / SHARED);
	}
	assert_int_equal(err, 0);
	source.text = buf_str(&text);
	assert_int_equal(rules_compile(&source, 1, NULL, NULL, &rs), 0);
	for (unsigned r = 0; r < RULES; r += 41) {
		char host[64];

		assert_true(snprintf(host, sizeof(host), "h7.r%u.example.com",
				     r) > 0);
		assert_int_equal(ask(rs, host, 1000 + r, NULL).reason,
				 REASON_ALLOWED);
		assert_int_equal(ask(rs, host, 1001 + r, NULL).reason,
				 REASON_PORT_NOT_ALLOWED);
		assert_true(snprintf(host, sizeof(host), "s%u.example.com",
				     r / SHARED) > 0);
		assert_int_equal(ask(rs, host, 1000 + r, NULL).reason,
				 REASON_ALLOWED);
	}
	rules_unref(rs);
	buf_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_has_a_host_a_line),
		cmocka_unit_test(faults_of_a_list_have_their_place),
		cmocka_unit_test(a_public_suffix_in_a_list_needs_a_word_too),
		cmocka_unit_test(they_are_told_beside_those_of_the_policy),
		cmocka_unit_test(of_endless_faults_some_are_told),
		cmocka_unit_test(an_empty_list_opens_nothing),
		cmocka_unit_test(a_list_is_told_of_once_for_each_thing),
		cmocka_unit_test(
			a_list_that_is_shut_as_a_whole_is_told_of_as_a_rule),
		cmocka_unit_test(protocols_that_are_torn_are_told_by_line),
		cmocka_unit_test(
			many_hosts_below_wildcards_are_compared_by_path),
		cmocka_unit_test(many_rules_with_many_hosts_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
