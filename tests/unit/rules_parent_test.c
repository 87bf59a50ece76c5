/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_parent_test.c - by which proxy a policy wants flows to leave
 */
#include <string.h>

#include "rules/rules_diff.h"
#include "rules/rules_show.h"
#include "tests/unit/rules_kit.h"

#define NOW	1796000000

static const char policy[] =
	"[policy]\nname = p\n"
	"[defaults]\nparent = corp\n"
	"[allow plain]\nhosts = api.example.com\n"
	"[allow lab]\nhosts = lab.example.com\nparent = lab\n"
	"[allow near]\nhosts = near.example.com\nparent = none\n"
	"[allow two]\nhosts = lab.example.com\nports = 22\n"
	"[allow ranged]\nhosts = ranged.example.com\n"
	"addresses = 203.0.113.0/24\nreason = the lab\n"
	"[deny ranged]\nhosts = denied.example.com\n"
	"addresses = 203.0.113.0/24\nports = 443\n"
	"[allow denied]\nhosts = denied.example.com\n";

static struct rules_answer judged(const struct ruleset *rs, const char *host,
				  uint16_t port, bool unresolved)
{
	const struct rules_question q = {
		.host = str_from(host), .port = port, .now = NOW,
		.unresolved = unresolved,
	};
	struct rules_answer a;

	rules_judge(rs, &q, &a);
	return a;
}

static const char *parent(const struct ruleset *rs, const char *host)
{
	struct rules_answer a = judged(rs, host, 443, false);

	assert_int_equal(a.reason, REASON_ALLOWED);
	return a.parent;
}

static void a_rule_says_which_parent_and_defaults_say_for_the_rest(void **state)
{
	struct ruleset *rs = compile_good(policy);
	const char *file = NULL;
	unsigned line = 0;

	(void)state;
	assert_string_equal(parent(rs, "api.example.com"), "corp");
	assert_string_equal(parent(rs, "lab.example.com"), "lab");
	assert_string_equal(parent(rs, "near.example.com"), RULES_PARENT_NONE);
	assert_string_equal(rules_default_parent(rs, &file, &line), "corp");
	assert_int_equal(line, 4);
	rules_unref(rs);
	rs = compile_good("[allow a]\nhosts = api.example.com\n");
	assert_null(parent(rs, "api.example.com"));
	assert_null(rules_default_parent(rs, &file, &line));
	rules_unref(rs);
}

static void what_is_only_observed_goes_the_default_way(void **state)
{
	struct ruleset *rs = compile_good(
		"[policy]\nmode = observe\nreason = r\n"
		"[defaults]\nparent = corp\n"
		"[allow lab]\nhosts = lab.example.com\nparent = lab\n"
		"[deny lab]\nhosts = lab.example.com\n");
	struct rules_answer a = judged(rs, "any.example.net", 443, false);

	(void)state;
	assert_true(a.would_deny);
	assert_string_equal(a.parent, "corp");
	a = judged(rs, "lab.example.com", 443, false);
	assert_true(a.would_deny);
	assert_string_equal(a.parent, "lab");
	rules_unref(rs);
}

/* With the name looked up elsewhere, no address will ever be judged. */
static void addresses_permit_nothing_where_none_is_known(void **state)
{
	struct ruleset *rs = compile_good(policy);

	(void)state;
	assert_int_equal(judged(rs, "ranged.example.com", 443, false).reason,
			 REASON_ALLOWED);
	assert_int_equal(judged(rs, "ranged.example.com", 443, true).reason,
			 REASON_ADDRESS_NOT_ALLOWED);
	assert_int_equal(judged(rs, "api.example.com", 443, true).reason,
			 REASON_ALLOWED);
	rules_unref(rs);
}

static void addresses_deny_whatever_they_may_mean(void **state)
{
	struct ruleset *rs = compile_good(policy);

	(void)state;
	assert_int_equal(judged(rs, "denied.example.com", 443, false).reason,
			 REASON_ALLOWED);
	assert_int_equal(judged(rs, "denied.example.com", 443, true).reason,
			 REASON_ADDRESS_DENIED);
	assert_int_equal(judged(rs, "denied.example.com", 80, true).reason,
			 REASON_ALLOWED);
	rules_unref(rs);
	rs = compile_good("[allow a]\nhosts = api.example.com\n"
			  "[deny net]\naddresses = 198.51.100.0/24\n");
	assert_int_equal(judged(rs, "api.example.com", 443, false).reason,
			 REASON_ALLOWED);
	assert_int_equal(judged(rs, "api.example.com", 443, true).reason,
			 REASON_ADDRESS_DENIED);
	rules_unref(rs);
}

static bool is(void *arg, const char *parent)
{
	return parent && strcmp(parent, arg) == 0;
}

static void a_name_goes_every_way_that_some_port_of_it_goes(void **state)
{
	struct ruleset *rs = compile_good(policy);
	static char corp[] = "corp", lab[] = "lab", near[] = "near";

	(void)state;
	assert_true(rules_name_goes(rs, STR("lab.example.com"), NOW, is, lab));
	assert_true(rules_name_goes(rs, STR("lab.example.com"), NOW, is,
				    corp));
	assert_false(rules_name_goes(rs, STR("lab.example.com"), NOW, is,
				     near));
	assert_false(rules_name_goes(rs, STR("api.example.com"), NOW, is,
				     lab));
	assert_false(rules_name_goes(rs, STR("other.example.com"), NOW, is,
				     corp));
	rules_unref(rs);
}

static void a_parent_is_named_and_nothing_more(void **state)
{
	struct told told;

	(void)state;
	assert_null(compile_told("[allow a]\nhosts = api.example.com\n"
				 "parent = http://192.0.2.1:3128\n", &told));
	assert_non_null(strstr(buf_cstr(&told.text),
			       "p.ini:3:10: error: 'http://192.0.2.1:3128' is "
			       "no name of a parent proxy"));
	buf_done(&told.text);
	assert_null(compile_told("[deny a]\nhosts = api.example.com\n"
				 "parent = corp\n", &told));
	assert_non_null(strstr(buf_cstr(&told.text), "'parent' has no place"));
	buf_done(&told.text);
	assert_null(compile_told("[parent corp]\nurl = http://192.0.2.1\n",
				 &told));
	assert_non_null(strstr(buf_cstr(&told.text), "unknown section"));
	buf_done(&told.text);
}

static void what_is_shown_goes_the_same_ways(void **state)
{
	struct ruleset *rs = compile_good(policy), *again;
	struct buf text = BUF_INIT(1 << 16);

	(void)state;
	assert_int_equal(rules_show(rs, &text), 0);
	again = compile_good(buf_cstr(&text));
	assert_string_equal(parent(again, "api.example.com"), "corp");
	assert_string_equal(parent(again, "lab.example.com"), "lab");
	assert_string_equal(parent(again, "near.example.com"), "none");
	rules_unref(again);
	rules_unref(rs);
	buf_done(&text);
}

static bool one_change(void *arg, const struct rules_change *c)
{
	struct rules_change *last = arg;

	last->types++;			/* counts them */
	last->was_parent = c->was_parent;
	last->is_parent = c->is_parent;
	last->gained |= !c->is_parent && c->gained;
	return true;
}

static void another_way_is_a_difference_and_hides_none(void **state)
{
	struct ruleset *from = compile_good("[allow a]\n"
		"hosts = api.example.com\nports = 443\n");
	struct ruleset *to = compile_good("[allow a]\n"
		"hosts = api.example.com\nports = 443\nparent = corp\n");
	struct ruleset *more = compile_good("[allow a]\n"
		"hosts = api.example.com\nports = 443\nparent = corp\n"
		"[allow b]\nhosts = api.example.com\nports = 443\n"
		"addresses = 10.0.0.0/8\nreason = r\nowner = o\n");
	struct rules_change last = { .types = 0 };

	(void)state;
	assert_int_equal(rules_diff(from, to, NOW, one_change, &last), 0);
	assert_int_equal(last.types, 1);
	assert_string_equal(last.was_parent, "");
	assert_string_equal(last.is_parent, "corp");
	assert_false(last.gained);
	assert_int_equal(rules_diff(from, more, NOW, one_change, &last), 0);
	assert_true(last.gained);
	rules_unref(from);
	rules_unref(to);
	rules_unref(more);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_rule_says_which_parent_and_defaults_say_for_the_rest),
		cmocka_unit_test(what_is_only_observed_goes_the_default_way),
		cmocka_unit_test(addresses_permit_nothing_where_none_is_known),
		cmocka_unit_test(addresses_deny_whatever_they_may_mean),
		cmocka_unit_test(
			a_name_goes_every_way_that_some_port_of_it_goes),
		cmocka_unit_test(a_parent_is_named_and_nothing_more),
		cmocka_unit_test(what_is_shown_goes_the_same_ways),
		cmocka_unit_test(another_way_is_a_difference_and_hides_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
