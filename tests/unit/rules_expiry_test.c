/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_expiry_test.c - rules that end, and what can be learnt of a rule
 */
#include "base/clock.h"
#include "rules/rules_value.h"
#include "tests/unit/rules_kit.h"

#define END	INT64_C(1798761600)	/* 2027-01-01T00:00:00Z */

static struct rules_answer ask_at(const struct ruleset *rs, const char *host,
				  const char *addr, int64_t now)
{
	struct rules_question q = {
		.host = str_from(host), .port = 443, .now = now,
	};
	struct rules_answer a;
	struct ip_addr parsed;

	if (addr) {
		assert_int_equal(ip_addr_parse(str_from(addr), &parsed), 0);
		q.addr = &parsed;
	}
	rules_judge(rs, &q, &a);
	return a;
}

static void times_are_rfc_3339(void **state)
{
	static const struct {
		const char *text;
		int64_t s;
	} good[] = {
		{ "1970-01-01", 0 },
		{ "2027-01-01", END },
		{ "2027-01-01T00:00:00Z", END },
		{ "2027-01-01t00:00:00z", END },
		{ "2027-01-01T01:30:00+01:30", END },
		{ "2026-12-31T19:00:00-05:00", END },
		{ "2027-01-01T00:00:00.999Z", END },
		{ "2026-12-31T23:59:60Z", END - 1 },
		{ "2024-02-29", INT64_C(1709164800) },
		{ "2000-02-29", INT64_C(951782400) },
		{ "9999-12-31T23:59:59Z", INT64_C(253402300799) },
	};
	static const char *const bad[] = {
		"", "tomorrow", "2027", "2027-1-1", "2027-13-01", "2027-00-01",
		"2027-01-00", "2027-04-31", "2027-02-29", "2100-02-29",
		"1969-12-31", "2027-01-01T", "2027-01-01T24:00:00Z",
		"2027-01-01T00:60:00Z", "2027-01-01T00:00:61Z",
		"2027-01-01T00:00Z", "2027-01-01T00:00:00",
		"2027-01-01T00:00:00.Z", "2027-01-01T00:00:00+1",
		"2027-01-01T00:00:00+24:00", "2027-01-01T00:00:00Zx",
		"2027-01-01 00:00:00Z", "2027-01-01Z", "+027-01-01",
		"01/01/2027",
	};
	const char *why = NULL;
	int64_t s;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		if (rules_time_parse(str_from(good[i].text), &s, &why) ||
		    s != good[i].s)
			fail_msg("%s is not %lld", good[i].text,
				 (long long)good[i].s);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		why = NULL;
		if (!rules_time_parse(str_from(bad[i]), &s, &why) || !why)
			fail_msg("taken: '%s'", bad[i]);
	}
}

static void an_expired_allow_says_so_and_opens_nothing(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example\nexpires = 2027-01-01\n"
		"[allow lits]\naddresses = 10.0.0.1\nreason = x\nowner = y\n"
		"expires = 2027-01-01\n");
	struct rules_answer a = ask_at(rs, "a.example", NULL, END - 1);

	(void)state;
	assert_int_equal(a.reason, REASON_ALLOWED);
	a = ask_at(rs, "a.example", "8.8.8.8", END - 1);
	assert_int_equal(a.reason, REASON_ALLOWED);
	a = ask_at(rs, "a.example", NULL, END);
	assert_int_equal(a.reason, REASON_RULE_EXPIRED);
	assert_string_equal(a.rule, "a");
	assert_string_equal(a.file, "p.ini");
	assert_int_equal(a.line, 1);
	assert_false(rules_passes(&a));
	a = ask_at(rs, "a.example", "8.8.8.8", END);
	assert_int_equal(a.reason, REASON_RULE_EXPIRED);
	assert_int_equal(rules_judge_name(rs, STR("a.example"), END, &a),
			 RULES_NAME_DENIED);
	assert_int_equal(a.reason, REASON_RULE_EXPIRED);
	assert_int_equal(rules_judge_name(rs, STR("a.example"), END - 1, &a),
			 RULES_NAME_ALLOWED);
	a = ask_at(rs, NULL, "10.0.0.1", END - 1);
	assert_int_equal(a.reason, REASON_ALLOWED);
	a = ask_at(rs, NULL, "10.0.0.1", END);
	assert_int_equal(a.reason, REASON_RULE_EXPIRED);
	/* What it would not have taken is not its refusal. */
	a = ask_at(rs, "b.example", NULL, END);
	assert_int_equal(a.reason, REASON_HOST_NOT_ALLOWED);
	rules_unref(rs);
	rs = compile_good("[allow a]\nhosts = a.example\n"
			  "[allow b]\nhosts = a.example\nreason = x\n"
			  "addresses = 10.0.0.1\nowner = y\n"
			  "expires = 2027-01-01\n");
	a = ask_at(rs, "a.example", "10.0.0.1", END - 1);
	assert_int_equal(a.reason, REASON_ALLOWED);
	a = ask_at(rs, "a.example", "10.0.0.1", END);
	assert_int_equal(a.reason, REASON_RULE_EXPIRED);
	a = ask_at(rs, "a.example", "10.0.0.2", END);
	assert_int_equal(a.reason, REASON_ADDRESS_PRIVATE);
	rules_unref(rs);
}

static void another_rule_that_holds_is_not_hindered(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example\nexpires = 2027-01-01\n"
		"[allow wide]\nhosts = *.example.org a.example\n"
		"protocol = https\n");
	struct rules_answer a = ask_at(rs, "a.example", "8.8.8.8", END);

	(void)state;
	assert_int_equal(a.reason, REASON_ALLOWED);
	assert_string_equal(a.rule, "wide");
	rules_unref(rs);
}

static void a_deny_that_ends_opens_what_it_shut(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example b.example\n"
		"[deny d]\nhosts = a.example\nexpires = 2027-01-01\n"
		"[deny e]\naddresses = 8.8.8.8\nexpires = 2027-01-01\n");
	struct rules_answer a = ask_at(rs, "a.example", NULL, END - 1);
	struct ip_addr addr;
	struct rules_question q = {
		.host = STR("b.example"), .addr = &addr, .now = END,
	};

	(void)state;
	assert_int_equal(a.reason, REASON_HOST_DENIED);
	a = ask_at(rs, "a.example", NULL, END);
	assert_int_equal(a.reason, REASON_ALLOWED);
	a = ask_at(rs, "b.example", "8.8.8.8", END - 1);
	assert_int_equal(a.reason, REASON_ADDRESS_DENIED);
	a = ask_at(rs, "b.example", "8.8.8.8", END);
	assert_int_equal(a.reason, REASON_ALLOWED);
	assert_int_equal(ip_addr_parse(STR("8.8.8.8"), &addr), 0);
	rules_judge_name_addr(rs, &q, &a);
	assert_int_equal(a.reason, REASON_ALLOWED);
	q.now = END - 1;
	rules_judge_name_addr(rs, &q, &a);
	assert_int_equal(a.reason, REASON_ADDRESS_DENIED);
	/* Whoever does not know the time is refused by both kinds. */
	a = ask_at(rs, "a.example", NULL, 0);
	assert_int_equal(a.reason, REASON_HOST_DENIED);
	rules_unref(rs);
	rs = compile_good("[allow a]\nhosts = a.example\n"
			  "expires = 2027-01-01\n");
	a = ask_at(rs, "a.example", NULL, 0);
	assert_int_equal(a.reason, REASON_RULE_EXPIRED);
	rules_unref(rs);
}

static void observing_lets_an_expired_rule_through_but_no_class(void **state)
{
	struct ruleset *rs = compile_good(
		"[policy]\nmode = observe\nreason = x\n"
		"[allow a]\nhosts = a.example\naddresses = 10.0.0.0/8\n"
		"reason = x\nowner = y\nexpires = 2027-01-01\n");
	struct rules_answer a = ask_at(rs, "a.example", NULL, END);

	(void)state;
	assert_int_equal(a.reason, REASON_RULE_EXPIRED);
	assert_true(a.would_deny);
	a = ask_at(rs, "a.example", "10.0.0.1", END);
	assert_int_equal(a.reason, REASON_ADDRESS_PRIVATE);
	assert_false(rules_passes(&a));
	rules_unref(rs);
}

static void the_next_end_is_known(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example\nexpires = 2027-01-01\n"
		"[deny b]\nhosts = b.example\nexpires = 2026-12-31\n"
		"[allow c]\nhosts = c.example\n");

	(void)state;
	assert_int_equal(rules_next_expiry(rs, 0), END - 86400);
	assert_int_equal(rules_next_expiry(rs, END - 86400), END);
	assert_int_equal(rules_next_expiry(rs, END), RULES_NEVER);
	rules_unref(rs);
}

static void a_rule_tells_where_it_stands_and_whose_it_is(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example\nowner = team\nreason = because\n"
		"expires = 2027-01-01\n\n[deny a]\nhosts = b.a.example\n");
	struct rules_rule_info info;

	(void)state;
	assert_int_equal(rules_rule_find(rs, false, STR("a")), 1);
	assert_int_equal(rules_rule_find(rs, true, STR("a")), 2);
	assert_int_equal(rules_rule_find(rs, true, STR("b")), 0);
	rules_rule_info(rs, 1, &info);
	assert_string_equal(info.name, "a");
	assert_string_equal(info.file, "p.ini");
	assert_int_equal(info.line, 1);
	assert_false(info.deny);
	assert_string_equal(info.owner, "team");
	assert_string_equal(info.reason, "because");
	assert_int_equal(info.expires, END);
	rules_rule_info(rs, 2, &info);
	assert_int_equal(info.line, 7);
	assert_true(info.deny);
	assert_null(info.owner);
	assert_null(info.reason);
	assert_int_equal(info.expires, RULES_NEVER);
	rules_unref(rs);
}

static void the_end_is_checked_with_its_place(void **state)
{
	static const struct {
		const char *text, *told;
	} f[] = {
		{ "[allow a]\nhosts = a.example\nexpires = soon\n",
		  "p.ini:3:11: error: 'soon' is no time; write a date" },
		{ "[allow a]\nhosts = a.example\nexpires = "
		  "2027-01-01T00:00:00\n", "3:11: error: '2027-01-01T00:00:00' "
		  "has no zone" },
		{ "[allow a]\nhosts = a.example\nexpires = 2027-01-01\n"
		  "expires = 2027-01-01\n", "4:0: error: 'expires' stands in "
		  "[allow a] twice, first in line 3" },
		{ "[policy]\nexpires = 2027-01-01\n",
		  "2:0: error: 'expires' has no place in [policy]" },
		{ "[allow a]\nhosts = a.example\nexpires = 2000-01-01\n",
		  "3:0: warning: [allow a] has expired and matches nothing any "
		  "more" },
	};
	struct told told;

	(void)state;
	clock_test_set_ms(1790000000000);
	for (size_t i = 0; i < ARRAY_SIZE(f); i++) {
		rules_unref(compile_told(f[i].text, &told));
		if (!strstr(buf_cstr(&told.text), f[i].told))
			fail_msg("of:\n%s\ntold: %s", f[i].text,
				 buf_cstr(&told.text));
		buf_done(&told.text);
	}
	rules_unref(compile_told("[allow a]\nhosts = a.example\n"
				 "expires = 2027-01-01\n", &told));
	assert_int_equal(told.text.n, 0);
	buf_done(&told.text);
	clock_test_set_ms(-1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_rfc_3339),
		cmocka_unit_test(an_expired_allow_says_so_and_opens_nothing),
		cmocka_unit_test(another_rule_that_holds_is_not_hindered),
		cmocka_unit_test(a_deny_that_ends_opens_what_it_shut),
		cmocka_unit_test(
			observing_lets_an_expired_rule_through_but_no_class),
		cmocka_unit_test(the_next_end_is_known),
		cmocka_unit_test(a_rule_tells_where_it_stands_and_whose_it_is),
		cmocka_unit_test(the_end_is_checked_with_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
