/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_budget_test.c - what one run may tell the world by names, and no more
 */
#include "tests/unit/rules_kit.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "resolver/dns_budget.h"

#define RULE	"[allow wide]\nhosts = *.example.com exact.example.net\n"

static struct dns_budget *make(const char *text)
{
	struct ruleset *rs = compile_good(text);
	struct dns_budget *b = NULL;

	assert_int_equal(dns_budget_new(rs, &b), 0);
	rules_unref(rs);
	return b;
}

/* As resolver_lookup() asks for what neither cache nor flight has. */
static enum reason leave(struct dns_budget *b, const char *name,
			 unsigned chosen, int64_t now_ms)
{
	struct dns_budget_ask ask = {
		.name = str_from(name), .chosen = chosen, .leaves = true,
	};

	return dns_budget_charge(b, &ask, now_ms);
}

/* The name number @i, all of one length; its first 6 bytes are chosen. */
static const char *numbered(unsigned i)
{
	static char name[32];

	assert_int_equal(snprintf(name, sizeof(name), "%06u.example.com", i),
			 18);
	return name;
}

static void names_are_counted_once_and_end_at_the_limit(void **state)
{
	struct dns_budget *b = make(RULE "[limits]\nnames = 100\n");

	(void)state;
	for (unsigned round = 0; round < 3; round++)
		for (unsigned i = 0; i < 100; i++)
			assert_int_equal(leave(b, numbered(i), 6, 0),
					 REASON_ALLOWED);
	assert_int_equal(dns_budget_refused(b), 0);
	for (unsigned i = 100; i < 110; i++)
		assert_int_equal(leave(b, numbered(i), 6, 0),
				 REASON_NAMES_EXCEEDED);
	assert_int_equal(dns_budget_refused(b), 10);
	/* What has left is known, and goes on. */
	assert_int_equal(leave(b, numbered(99), 6, 0), REASON_ALLOWED);
	/* A whole name of a rule says nothing. */
	assert_int_equal(leave(b, "exact.example.net", 0, 0), REASON_ALLOWED);
	dns_budget_free(b);
}

static void bytes_are_counted_once_and_end_at_the_limit(void **state)
{
	struct dns_budget *b = make(RULE "[limits]\nlabel_bytes = 64\n");

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(leave(b, numbered(i), 6, 0), REASON_ALLOWED);
	assert_int_equal(leave(b, numbered(0), 6, 0), REASON_ALLOWED);
	/* 60 are spent: six more do not fit, four do. */
	assert_int_equal(leave(b, numbered(10), 6, 0),
			 REASON_LABEL_BYTES_EXCEEDED);
	assert_int_equal(leave(b, "abcd.example.com", 4, 0), REASON_ALLOWED);
	assert_int_equal(leave(b, "a.example.com", 1, 0),
			 REASON_LABEL_BYTES_EXCEEDED);
	dns_budget_free(b);
}

static void names_that_do_not_exist_are_counted_once(void **state)
{
	struct dns_budget *b = make(RULE "[limits]\nnxdomain = 2\n");

	(void)state;
	/* Never asked for, or of a rule: not the budget's. */
	dns_budget_on_nxdomain(b, STR("exact.example.net"));
	dns_budget_on_nxdomain(NULL, STR("exact.example.net"));
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(leave(b, numbered(i), 6, 0), REASON_ALLOWED);
	dns_budget_on_nxdomain(b, STR("exact.example.net"));
	dns_budget_on_nxdomain(b, str_from(numbered(0)));
	dns_budget_on_nxdomain(b, str_from(numbered(0)));
	assert_int_equal(leave(b, numbered(3), 6, 0), REASON_ALLOWED);
	dns_budget_on_nxdomain(b, str_from(numbered(1)));
	assert_int_equal(leave(b, numbered(4), 6, 0),
			 REASON_NXDOMAIN_EXCEEDED);
	assert_int_equal(leave(b, numbered(0), 6, 0), REASON_ALLOWED);
	assert_int_equal(leave(b, numbered(3), 6, 0), REASON_ALLOWED);
	dns_budget_free(b);
}

static void a_name_has_only_so_many_labels_below_its_wildcard(void **state)
{
	struct dns_budget *b = make(RULE);

	(void)state;
	assert_int_equal(leave(b, "1.2.3.4.5.6.7.8.example.com", 15, 0),
			 REASON_ALLOWED);
	assert_int_equal(leave(b, "1.2.3.4.5.6.7.8.9.example.com", 17, 0),
			 REASON_NAME_TOO_DEEP);
	assert_int_equal(dns_budget_refused(b), 1);
	dns_budget_free(b);
}

static unsigned burst(struct dns_budget *b, unsigned tries, int64_t now_ms)
{
	unsigned passed = 0;

	for (unsigned i = 0; i < tries; i++) {
		enum reason why = leave(b, "a.example.com", 1, now_ms);

		passed += why == REASON_ALLOWED;
		assert_true(why == REASON_ALLOWED ||
			    why == REASON_QUERIES_EXCEEDED);
	}
	return passed;
}

static void queries_come_at_once_and_then_by_the_second(void **state)
{
	struct dns_budget *b = make(RULE "[limits]\nqueries = 10\n");

	(void)state;
	assert_int_equal(burst(b, 50, 5000), 10);
	assert_int_equal(burst(b, 50, 5099), 0);
	assert_int_equal(burst(b, 50, 5100), 1);
	assert_int_equal(burst(b, 50, 5600), 5);
	/* A clock that stands still or steps back gives nothing. */
	assert_int_equal(burst(b, 50, 5600), 0);
	assert_int_equal(burst(b, 50, 5000), 0);
	/* A long pause fills it, and no more than that. */
	assert_int_equal(burst(b, 50, INT64_MAX), 10);
	dns_budget_free(b);
}

static void the_highest_limits_do_not_overflow(void **state)
{
	struct dns_budget *b = make(RULE
		"[limits]\nqueries = 1000000000\nnames = 1000000000\n"
		"label_bytes = 1000000000G\nnxdomain = 1000000000\n");

	(void)state;
	assert_int_equal(burst(b, 1000, 1), 1000);
	assert_int_equal(burst(b, 1000, INT64_MAX), 1000);
	for (unsigned i = 1; i < DNS_BUDGET_NAMES_MAX; i++)
		assert_int_equal(leave(b, numbered(i), 6, INT64_MAX),
				 REASON_ALLOWED);
	assert_int_equal(leave(b, numbered(DNS_BUDGET_NAMES_MAX), 6, INT64_MAX),
			 REASON_NAMES_EXCEEDED);
	/* Through every growth of the table each of them is known. */
	for (unsigned i = 1; i < DNS_BUDGET_NAMES_MAX; i++)
		assert_int_equal(leave(b, numbered(i), 6, INT64_MAX),
				 REASON_ALLOWED);
	dns_budget_free(b);
}

static enum reason once(struct dns_budget *b, bool leaves, unsigned chosen)
{
	struct dns_budget_ask ask = {
		.name = STR("a.example.com"), .chosen = chosen,
		.leaves = leaves,
	};

	return dns_budget_charge(b, &ask, 0);
}

static void said_queries_count_every_question_and_unsaid_what_leaves(
							void **state)
{
	struct dns_budget *unsaid = make(RULE);
	struct dns_budget *said = make(RULE "[limits]\nqueries = 3\n");

	(void)state;
	for (unsigned i = 0; i < 5 * DNS_BUDGET_BURST; i++) {
		assert_int_equal(once(unsaid, false, 0), REASON_ALLOWED);
		assert_int_equal(once(unsaid, true, 0), REASON_ALLOWED);
	}
	assert_int_equal(burst(unsaid, 3 * DNS_BUDGET_BURST, 0),
			 DNS_BUDGET_BURST);
	assert_int_equal(burst(unsaid, 1000, 1000), DNS_BUDGET_QUERIES);
	assert_int_equal(once(said, false, 0), REASON_ALLOWED);
	assert_int_equal(once(said, true, 0), REASON_ALLOWED);
	assert_int_equal(once(said, true, 1), REASON_ALLOWED);
	assert_int_equal(once(said, false, 0), REASON_QUERIES_EXCEEDED);
	assert_int_equal(once(said, true, 0), REASON_QUERIES_EXCEEDED);
	dns_budget_free(said);
	dns_budget_free(unsaid);
}

static void another_policy_changes_limits_and_forgets_nothing(void **state)
{
	struct dns_budget *b = make(RULE "[limits]\nnames = 2\n");
	struct ruleset *more = compile_good(RULE "[limits]\nnames = 3\n");
	struct ruleset *less = compile_good(RULE "[limits]\nnames = 1\n");

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(leave(b, numbered(i), 6, 0), REASON_ALLOWED);
	dns_budget_set_rules(b, more);
	assert_int_equal(leave(b, numbered(2), 6, 0), REASON_ALLOWED);
	assert_int_equal(leave(b, numbered(3), 6, 0), REASON_NAMES_EXCEEDED);
	dns_budget_set_rules(b, less);
	assert_int_equal(leave(b, numbered(3), 6, 0), REASON_NAMES_EXCEEDED);
	assert_int_equal(leave(b, numbered(2), 6, 0), REASON_ALLOWED);
	assert_int_equal(dns_budget_refused(b), 2);
	rules_unref(less);
	rules_unref(more);
	dns_budget_free(b);
}

static void threads_of_one_run_spend_one_budget(void **state)
{
	struct dns_budget *a = make(RULE "[limits]\nnames = 10\n"), *b;

	(void)state;
	assert_int_equal(leave(a, numbered(0), 6, 0), REASON_ALLOWED);
	assert_int_equal(dns_budget_share(a, &b), 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(leave(i % 2 ? a : b, numbered(i), 6, 0),
				 REASON_ALLOWED);
	assert_int_equal(leave(a, numbered(10), 6, 0), REASON_NAMES_EXCEEDED);
	assert_int_equal(leave(b, numbered(11), 6, 0), REASON_NAMES_EXCEEDED);
	assert_int_equal(dns_budget_refused(a), 2);
	/* Whichever goes first. */
	dns_budget_free(a);
	assert_int_equal(leave(b, numbered(12), 6, 0), REASON_NAMES_EXCEEDED);
	assert_int_equal(dns_budget_refused(b), 3);
	dns_budget_free(b);
}

static void a_policy_that_observes_counts_and_refuses_nothing(void **state)
{
	struct dns_budget *b = make("[policy]\nmode = observe\nreason = x\n"
				    RULE "[limits]\nnames = 1\n");

	(void)state;
	assert_int_equal(leave(b, numbered(0), 6, 0), REASON_ALLOWED);
	assert_int_equal(dns_budget_refused(b), 0);
	assert_int_equal(leave(b, numbered(1), 6, 0), REASON_ALLOWED);
	assert_int_equal(leave(b, numbered(1), 6, 0), REASON_ALLOWED);
	assert_int_equal(dns_budget_refused(b), 2);
	dns_budget_free(b);
}

static void without_memory_a_new_name_is_refused(void **state)
{
	struct dns_budget *b = make(RULE);

	(void)state;
	mem_test_fail_at(1);
	assert_int_equal(leave(b, numbered(0), 6, 0), REASON_MEMORY_EXCEEDED);
	mem_test_fail_at(0);
	assert_int_equal(leave(b, numbered(0), 6, 0), REASON_ALLOWED);
	dns_budget_free(b);
}

/* What a rule has whole costs nothing, whatever else would let it through. */
static void what_the_asker_chose_is_read_from_the_rules(void **state)
{
	static const struct {
		const char *name;
		unsigned chosen;
	} cases[] = {
		{ "exact.example.net", 0 },
		{ "www.example.com", 0 },
		{ "x.example.com", 1 },
		{ "a.b.c.example.com", 5 },
		{ "ab.deep.example.com", 2 },
		{ "a.ended.example.com", 7 },
		{ "ssh.example.com", 0 },
		{ "other.example.org", 17 },
		{ "com", 3 },
	};
	struct ruleset *rs = compile_good(RULE
		"[allow www]\nhosts = www.example.com *.deep.example.com\n"
		"[allow ended]\nhosts = *.ended.example.com\n"
		"expires = 1970-01-01T00:00:01Z\n"
		"[allow ssh]\nhosts = ssh.example.com\nports = 22\n");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(rules_name_chosen(rs, str_from(cases[i].name),
						   100), cases[i].chosen);
	rules_unref(rs);
}

static void the_rules_and_the_clock_are_asked(void **state)
{
	struct dns_budget *b = make(RULE "[limits]\nlabel_bytes = 3\n");

	(void)state;
	clock_test_set_ms(1000);
	assert_int_equal(dns_budget_ask(NULL, STR("abcd.example.com"), true),
			 REASON_ALLOWED);
	assert_int_equal(dns_budget_ask(b, STR("abcd.example.com"), false),
			 REASON_ALLOWED);
	assert_int_equal(dns_budget_ask(b, STR("exact.example.net"), true),
			 REASON_ALLOWED);
	assert_int_equal(dns_budget_ask(b, STR("abcd.example.com"), true),
			 REASON_LABEL_BYTES_EXCEEDED);
	assert_int_equal(dns_budget_ask(b, STR("abc.example.com"), true),
			 REASON_ALLOWED);
	clock_test_set_ms(-1);
	dns_budget_free(b);
}

/* A cache that asks ahead tells the zone as much as a question does. */
static void renewals_are_questions_that_leave_too(void **state)
{
	struct dns_budget *b = make(RULE "[limits]\nqueries = 2\n");

	(void)state;
	clock_test_set_ms(1000);
	assert_true(dns_budget_renew(NULL, STR("a.example.com")));
	for (unsigned i = 0; i < 10; i++)
		assert_true(dns_budget_renew(b, STR("exact.example.net")));
	assert_true(dns_budget_renew(b, STR("a.example.com")));
	assert_int_equal(dns_budget_ask(b, STR("a.example.com"), true),
			 REASON_ALLOWED);
	assert_false(dns_budget_renew(b, STR("a.example.com")));
	assert_int_equal(dns_budget_refused(b), 0);
	clock_test_set_ms(1500);
	assert_true(dns_budget_renew(b, STR("a.example.com")));
	clock_test_set_ms(-1);
	dns_budget_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_counted_once_and_end_at_the_limit),
		cmocka_unit_test(bytes_are_counted_once_and_end_at_the_limit),
		cmocka_unit_test(names_that_do_not_exist_are_counted_once),
		cmocka_unit_test(
			a_name_has_only_so_many_labels_below_its_wildcard),
		cmocka_unit_test(queries_come_at_once_and_then_by_the_second),
		cmocka_unit_test(the_highest_limits_do_not_overflow),
		cmocka_unit_test(
		    said_queries_count_every_question_and_unsaid_what_leaves),
		cmocka_unit_test(
			another_policy_changes_limits_and_forgets_nothing),
		cmocka_unit_test(threads_of_one_run_spend_one_budget),
		cmocka_unit_test(
			a_policy_that_observes_counts_and_refuses_nothing),
		cmocka_unit_test(without_memory_a_new_name_is_refused),
		cmocka_unit_test(what_the_asker_chose_is_read_from_the_rules),
		cmocka_unit_test(the_rules_and_the_clock_are_asked),
		cmocka_unit_test(renewals_are_questions_that_leave_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
