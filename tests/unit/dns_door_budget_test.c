/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door_budget_test.c - a sandbox that asks for more names than it may
 */
#include "tests/unit/dns_door_lab.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define RULE \
	"[policy]\nname = p\n[allow lab]\n" \
	"hosts = api.example.com *.wide.example.com\n" \
	"types = TXT\n" \
	"addresses = 203.0.113.0/24 2001:db8:3::/48\nreason = the lab\n" \
	"[limits]\n"

static void limited(const char *limits)
{
	char text[512];
	int n = snprintf(text, sizeof(text), RULE "%s\n", limits);

	assert_true(n > 0 && (size_t)n < sizeof(text));
	open_with(text);
}

static void ask_nth(struct reply *r, const char *stem, unsigned i,
		    unsigned type)
{
	char name[64];

	snprintf(name, sizeof(name), "%s%u.wide.example.com", stem, i);
	ask(r, name, type);
}

/* DNS-03: nobody is asked for what is over the budget, and it is said so. */
static void dns_03_names_over_the_budget_do_not_leave(void **state)
{
	struct reply r;

	(void)state;
	limited("names = 3");
	for (unsigned i = 0; i < 3; i++) {
		ask_nth(&r, "n", i, DNS_TYPE_A);
		assert_int_equal(r.answers, 1);
	}
	assert_int_equal(fake_count(upstream), 3);
	for (unsigned i = 3; i < 10; i++) {
		ask_nth(&r, "n", i, i % 2 ? DNS_TYPE_A : DNS_TYPE_AAAA);
		assert_no(&r, DNS_NXDOMAIN, 18, "names_exceeded");
	}
	LAST("\"dns\"", "\"deny\"", "\"names_exceeded\"",
	     "\"n9.wide.example.com\"", "\"rcode\":3");
	/* Whatever type a policy opens. */
	ask_nth(&r, "n", 10, DNS_TYPE_TXT);
	assert_no(&r, DNS_NXDOMAIN, 18, "names_exceeded");
	assert_int_equal(fake_count(upstream), 3);
	assert_int_equal(dns_budget_refused(run_budget), 8);
	assert_int_equal(name_map_count(names), 3);
	/* The other family of a name that has left, and a rule's whole name. */
	ask_nth(&r, "n", 0, DNS_TYPE_AAAA);
	assert_int_equal(r.answers, 1);
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	assert_int_equal(fake_count(upstream), 5);
}

static void dns_03_label_bytes_over_the_budget_do_not_leave(void **state)
{
	struct reply r;

	(void)state;
	limited("label_bytes = 10");
	for (unsigned i = 0; i < 5; i++) {
		ask_nth(&r, "n", i, DNS_TYPE_A);
		assert_int_equal(r.answers, 1);
	}
	ask_nth(&r, "n", 5, DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 18, "label_bytes_exceeded");
	ask(&r, "1.2.3.4.5.6.7.8.9.wide.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "name_too_deep");
	assert_int_equal(fake_count(upstream), 5);
}

static void names_that_do_not_exist_use_their_budget_up(void **state)
{
	struct reply r;

	(void)state;
	limited("nxdomain = 2");
	for (unsigned i = 0; i < 2; i++) {
		ask_nth(&r, "gone-", i, DNS_TYPE_A);
		assert_no(&r, DNS_NXDOMAIN, -1, "");
		/* Again, out of the cache, and of the other family. */
		ask_nth(&r, "gone-", i, DNS_TYPE_A);
		ask_nth(&r, "gone-", i, DNS_TYPE_AAAA);
	}
	assert_int_equal(fake_count(upstream), 4);
	ask_nth(&r, "n", 1, DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 18, "nxdomain_exceeded");
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	assert_int_equal(fake_count(upstream), 5);
}

static void questions_over_the_rate_fail_for_now(void **state)
{
	struct reply r;

	(void)state;
	clock_test_set_ms(1000);
	limited("queries = 2");
	ask(&r, "api.example.com", DNS_TYPE_A);
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_SERVFAIL, 18, "queries_exceeded");
	/* What policy denies costs nothing, and says what policy says. */
	ask(&r, "denied.example.net", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	clock_test_set_ms(1500);
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_SERVFAIL, 18, "queries_exceeded");
	clock_test_set_ms(-1);
}

/* Honest use: thousands of names that rules have, each asked for twice. */
static void whole_names_of_rules_are_never_short(void **state)
{
	static char text[1 << 18];
	struct reply r;
	size_t n = 0;
	char name[64];

	(void)state;
	n += (size_t)snprintf(text, sizeof(text),
			      "[allow lab]\naddresses = 203.0.113.0/24\n"
			      "reason = the lab\n");
	for (unsigned i = 0; i < 5000; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "hosts = n%u.wide.example.com\n", i);
	reopen(text, 8 << 20, log_file());
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "n%u.wide.example.com", i);
		ask(&r, name, DNS_TYPE_AAAA);
		ask(&r, name, DNS_TYPE_A);
		assert_int_equal(r.answers, 1);
	}
	assert_int_equal(dns_budget_refused(run_budget), 0);
}

/* What is known is answered, what would have to wait or be remembered is not. */
static void at_the_limit_of_memory_nothing_new_is_remembered(void **state)
{
	struct reply r;
	size_t n;
	int fd;

	(void)state;
	limited("");
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	n = DOOR_MEMORY - held.used;
	mem_account_owe(&held, n);
	ask(&r, "n1.wide.example.com", DNS_TYPE_A);
	assert_int_equal(r.rcode, DNS_SERVFAIL);
	assert_int_equal(r.answers, 0);
	assert_last((const char *const[]){ "\"host\":\"n1.wide.example.com\"",
					   "\"memory_exceeded\"", NULL });
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	/* A connection is closed at once. */
	fd = connected(SOCK_STREAM, ASKED);
	turn_idle();
	assert_int_equal(door->nconns, 0);
	close(fd);
	mem_account_give(&held, n);
	ask(&r, "n1.wide.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	/* Beside names, nothing is held for a door that has nothing to do. */
	assert_true(held.used > 0 && held.used < 64 << 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DOOR_TEST(dns_03_names_over_the_budget_do_not_leave),
		DOOR_TEST(dns_03_label_bytes_over_the_budget_do_not_leave),
		DOOR_TEST(names_that_do_not_exist_use_their_budget_up),
		DOOR_TEST(questions_over_the_rate_fail_for_now),
		DOOR_TEST(whole_names_of_rules_are_never_short),
		DOOR_TEST(at_the_limit_of_memory_nothing_new_is_remembered),
	};

	return door_lab_run(tests, ARRAY_SIZE(tests));
}
