/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door_hostile_test.c - zones and programs that mean harm, at the door
 */
#include "tests/unit/dns_door_lab.h"

#include <stdio.h>

/* --- aliases to what stays inside ------------------------------------------- */

/* Every name that is asked for stands for @target; the records of that are
 * there, too, or are left for another question. */
struct leading {
	const char *target;
	bool whole;
};

static void leading(void *arg, const struct fake_ask *ask)
{
	const struct leading *l = arg;
	struct fake_records r = { .n = 0 };
	bool alias = strcmp(ask->q.text, l->target) != 0;

	if (alias)
		fake_add_cname(&r, ask->q.text, l->target, 300);
	if (alias && !l->whole)
		;
	else if (ask->q.type == DNS_TYPE_A)
		fake_add_a(&r, l->target, "203.0.113.7", 300);
	else if (ask->q.type == DNS_TYPE_PTR)
		fake_add(&r, l->target, DNS_TYPE_PTR, 300,
			 "\4name\7example\0", 14);
	else
		fake_add(&r, l->target, ask->q.type, 300, "\6secret", 7);
	fake_answer(ask, &r, 0);
}

#define PRIVATE_V6	"1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0." \
			"0.0.0.0.0.d.f.ip6.arpa"

static const char *const inside[] = {
	"db.corp.internal", "metadata.google.internal", "printer.local",
	"1.0.0.10.in-addr.arpa", "0-25.0.16.172.in-addr.arpa", "in-addr.arpa",
	PRIVATE_V6, "localhost", "nas.home.arpa", "intranet",
};

/* Who serves the zone of an allowed name does not choose what is read. */
static void records_of_inner_names_do_not_come_by_an_alias(void **state)
{
	struct leading l = { .whole = true };
	struct reply r;
	char name[64];

	(void)state;
	open_with("[allow a]\nhosts = *.example.com\ntypes = TXT\n");
	fake_set(upstream, leading, &l);
	for (size_t i = 0; i < ARRAY_SIZE(inside); i++) {
		l.target = inside[i];
		snprintf(name, sizeof(name), "n%zu.example.com", i);
		ask(&r, name, DNS_TYPE_TXT);
		assert_no(&r, DNS_NOERROR, 15, "alias_not_allowed");
	}
	LAST("\"deny\"", "\"alias_not_allowed\"", "\"qtype\":\"TXT\"");
	/* An alias of what the world has is as good as the name. */
	l.target = "records.example.net";
	ask(&r, "open.example.com", DNS_TYPE_TXT);
	assert_int_equal(r.answers, 1);
}

/* DNS-02, DNS-30: what is never asked is not asked for an alias either. */
static void nobody_is_asked_about_an_inner_name_for_an_alias(void **state)
{
	struct leading l = { .whole = false };
	struct reply r;
	char name[64];

	(void)state;
	open_with("[allow a]\nhosts = *.example.com\n"
		  "addresses = 203.0.113.0/24\nreason = the lab\n");
	fake_set(upstream, leading, &l);
	for (unsigned i = 0; i < ARRAY_SIZE(inside); i++) {
		l.target = inside[i];
		snprintf(name, sizeof(name), "n%u.example.com", i);
		ask(&r, name, DNS_TYPE_A);
		assert_no(&r, DNS_NOERROR, 15, "alias_not_allowed");
		assert_int_equal(fake_count(upstream), i + 1);
	}
	l.target = "edge.example.net";
	ask(&r, "open.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	assert_int_equal(fake_count(upstream), ARRAY_SIZE(inside) + 2);
}

/* RFC 2317: part of a reverse tree is served by way of aliases. */
static void public_reverse_names_may_be_aliases_of_each_other(void **state)
{
	struct leading l = { "9.8-15.8.8.8.in-addr.arpa", true };
	struct reply r;

	(void)state;
	open_with("[allow a]\nhosts = *.8.in-addr.arpa\ntypes = PTR\n");
	fake_set(upstream, leading, &l);
	ask(&r, "9.8.8.8.in-addr.arpa", DNS_TYPE_PTR);
	assert_int_equal(r.answers, 1);
	l.target = "9.0.0.10.in-addr.arpa";
	ask(&r, "8.8.8.8.in-addr.arpa", DNS_TYPE_PTR);
	assert_no(&r, DNS_NOERROR, 15, "alias_not_allowed");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		DOOR_TEST(records_of_inner_names_do_not_come_by_an_alias),
		DOOR_TEST(nobody_is_asked_about_an_inner_name_for_an_alias),
		DOOR_TEST(public_reverse_names_may_be_aliases_of_each_other),
	};

	return door_lab_run(tests, ARRAY_SIZE(tests));
}
