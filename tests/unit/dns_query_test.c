/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query_test.c - questions that are answered at once, and those that wait
 */
#include "tests/unit/dns_door_lab.h"

#include "base/mem.h"

static void a_question_that_there_is_no_memory_to_keep_is_told_so(void **state)
{
	struct reply r;

	(void)state;
	/* The room of the door's first wake-up is taken. */
	ask(&r, "denied.example.net", DNS_TYPE_A);
	mem_test_fail_at(1);
	ask(&r, "api.example.com", DNS_TYPE_A);
	mem_test_fail_at(0);
	assert_int_equal(r.rcode, DNS_SERVFAIL);
	LAST("\"deny\"", "\"memory_exceeded\"", "\"api.example.com\"");
	assert_int_equal(fake_count(upstream), 0);
	assert_true(list_empty(&door->queries));
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
}

static void what_is_known_is_answered_though_as_many_wait_as_may(void **state)
{
	struct reply r;
	struct msg m;

	(void)state;
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	hold = true;
	for (unsigned i = 0; i < DNS_QUERIES_MAX; i++) {
		question(&m, "late.example.com", DNS_TYPE_A, true);
		assert_int_equal(send(client, m.p, m.n, 0), m.n);
		turn_idle();
	}
	assert_int_equal(door->nqueries, DNS_QUERIES_MAX);
	ask(&r, "b.wide.example.com", DNS_TYPE_A);
	assert_int_equal(r.rcode, DNS_SERVFAIL);
	LAST("\"queries_exceeded\"");
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		DOOR_TEST(a_question_that_there_is_no_memory_to_keep_is_told_so),
		DOOR_TEST(what_is_known_is_answered_though_as_many_wait_as_may),
	};
	int failed;

	if (!door_lab_enter())
		return 0;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	door_lab_leave();
	return failed;
}
