/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query_test.c - questions that are answered at once, and those that wait
 */
#include "tests/unit/dns_door_lab.h"

#include <event2/event.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "resolver/dns_repeats.h"

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

	(void)state;
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	hold = true;
	for (unsigned i = 0; i < DNS_QUERIES_MAX; i++) {
		ask_only("late.example.com", DNS_TYPE_A);
		turn_idle();
	}
	assert_int_equal(door->nqueries, DNS_QUERIES_MAX);
	ask(&r, "b.wide.example.com", DNS_TYPE_A);
	assert_int_equal(r.rcode, DNS_SERVFAIL);
	LAST("\"queries_exceeded\"");
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
}

/* --- the cache ---------------------------------------------------------------- */

static void a_name_in_use_is_asked_anew_before_it_runs_out(void **state)
{
	int64_t start = clock_mono_ms();
	struct reply r;

	(void)state;
	clock_test_set_ms(start);
	ask(&r, "api.example.com", DNS_TYPE_A);
	clock_test_set_ms(start + 269000);
	ask(&r, "api.example.com", DNS_TYPE_A);
	turn_idle();
	assert_int_equal(fake_count(upstream), 1);
	clock_test_set_ms(start + 271000);
	for (int i = 0; i < 3; i++) {
		ask(&r, "api.example.com", DNS_TYPE_A);
		/* The time that is left tells nothing. */
		assert_int_equal(r.ttl, 60);
	}
	while (fake_count(upstream) < 2 || resolver_sockets(resolver) > 0)
		turn();
	/* The first answer is over, and nobody has to wait. */
	clock_test_set_ms(start + 301000);
	hold = true;
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	assert_int_equal(fake_count(upstream), 2);
	clock_test_set_ms(-1);
}

static void a_name_that_policy_denies_by_now_is_not_asked_anew(void **state)
{
	struct ruleset *other = compile("[policy]\nname = none\n");
	int64_t start = clock_mono_ms();
	struct reply r;

	(void)state;
	clock_test_set_ms(start);
	ask(&r, "api.example.com", DNS_TYPE_A);
	dns_door_set_rules(door, other, 77);
	rules_unref(other);
	clock_test_set_ms(start + 290000);
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	turn_idle();
	assert_int_equal(fake_count(upstream), 1);
	assert_int_equal(resolver_sockets(resolver), 0);
	clock_test_set_ms(-1);
}

/* --- what nobody waits for any more ------------------------------------------ */

/* DNS-02: the server's silence would have it asked again. */
static void assert_asked_no_further(uint64_t tenant)
{
	struct ruleset *none = compile("[policy]\nname = none\n");
	struct reply r;

	ask_held("late.example.com", DNS_TYPE_A, 1);
	dns_door_set_rules(door, none, tenant);
	rules_unref(none);
	receive(client, &r);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	while (resolver_sockets(resolver) > 0)
		turn();
	turn_idle();
	assert_int_equal(fake_count(upstream), 1);
}

static void a_question_that_is_denied_by_now_is_asked_no_further(void **state)
{
	(void)state;
	assert_asked_no_further(7);
}

/* As when a rule expires: the policy is the same and says something else. */
static void the_same_policy_may_deny_a_question_by_now(void **state)
{
	(void)state;
	assert_asked_no_further(1);
}

static void a_run_that_is_over_asks_no_further(void **state)
{
	(void)state;
	ask_held("late.example.com", DNS_TYPE_A, 1);
	dns_door_free(door);
	door = NULL;
	while (resolver_sockets(resolver) > 0)
		turn();
	turn_idle();
	assert_int_equal(fake_count(upstream), 1);
}

static void what_a_new_policy_allows_too_is_still_asked_for(void **state)
{
	struct ruleset *same = compile(policy);
	struct reply r;

	(void)state;
	ask_held("late.example.com", DNS_TYPE_A, 1);
	dns_door_set_rules(door, same, 7);
	rules_unref(same);
	hold = false;
	receive(client, &r);
	assert_int_equal(r.answers, 1);
	assert_int_equal(fake_count(upstream), 2);
}

/* --- questions that come again ---------------------------------------------- */

static void id_of_name(const char *name, char text[ID_TEXT_SIZE])
{
	struct id id;

	assert_true(name_map_question(names, str_from(name), &id));
	id_text(&id, text);
}

static void repeats_are_one_record_with_the_id_that_flows_name(void **state)
{
	char first[ID_TEXT_SIZE], now[ID_TEXT_SIZE];
	struct reply r;

	(void)state;
	ask(&r, "api.example.com", DNS_TYPE_A);
	id_of_name("api.example.com", first);
	assert_int_equal(count_records(first), 1);
	for (int i = 0; i < 3; i++) {
		ask(&r, "api.example.com", DNS_TYPE_A);
		assert_int_equal(r.answers, 1);
		ask(&r, "denied.example.net", DNS_TYPE_A);
		assert_int_equal(r.rcode, DNS_NXDOMAIN);
	}
	assert_int_equal(count_records("\n"), 2);
	id_of_name("api.example.com", now);
	assert_string_equal(now, first);
	dns_door_flush_records(door);
	assert_int_equal(count_records("\n"), 4);
	assert_int_equal(count_records(first), 2);
	assert_int_equal(count_records("\"count\":3"), 1);
	LAST("\"count\":2", "\"denied.example.net\"", "\"host_not_allowed\"",
	     "\"deny\"", "\"rcode\":3", ASKED);
	/* What comes later is recorded at once again, under an id of its own. */
	ask(&r, "api.example.com", DNS_TYPE_A);
	id_of_name("api.example.com", now);
	assert_string_not_equal(now, first);
	assert_int_equal(count_records(now), 1);
}

static void the_doors_timer_tells_of_repeats(void **state)
{
	int64_t now = clock_mono_ms();
	struct reply r;

	(void)state;
	ask(&r, "denied.example.net", DNS_TYPE_A);
	ask(&r, "denied.example.net", DNS_TYPE_A);
	assert_true(event_pending(&door->repeats_ev, EV_TIMEOUT, NULL));
	event_active(&door->repeats_ev, EV_TIMEOUT, 0);
	turn_idle();
	assert_int_equal(count_records("\"count\""), 0);
	clock_test_set_ms(now + 2 * DNS_REPEAT_MS);
	event_active(&door->repeats_ev, EV_TIMEOUT, 0);
	turn_idle();
	clock_test_set_ms(-1);
	LAST("\"count\":1", "\"denied.example.net\"");
	assert_false(event_pending(&door->repeats_ev, EV_TIMEOUT, NULL));
}

static void questions_that_waited_together_are_one_record(void **state)
{
	char id[ID_TEXT_SIZE];
	struct reply r;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		ask_only("api.example.com", DNS_TYPE_A);
	}
	for (unsigned i = 0; i < 3; i++)
		receive(client, &r);
	assert_int_equal(fake_count(upstream), 1);
	id_of_name("api.example.com", id);
	assert_int_equal(count_records(id), 1);
	assert_int_equal(count_records("\n"), 1);
	dns_door_flush_records(door);
	assert_int_equal(count_records("\"count\":2"), 1);
}

/* DNS-32: the id that the name was given with is that of the record. */
static void another_answer_to_the_same_words_has_its_own_id(void **state)
{
	struct resolver_servers servers = {
		.n = 1, .server = { { .at.port = 5300 } },
	};
	const struct resolver_servers none = { .n = 0 };
	char id[ID_TEXT_SIZE];
	struct reply r;

	(void)state;
	assert_int_equal(resolver_set_servers(resolver, &none), 0);
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.rcode, DNS_SERVFAIL);
	LAST("\"dns_failed\"");
	assert_int_equal(ip_addr_parse(STR("127.0.0.1"), &servers.server[0].at.addr), 0);
	assert_int_equal(resolver_set_servers(resolver, &servers), 0);
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	id_of_name("api.example.com", id);
	LAST("\"allow\"", id);
	assert_int_equal(count_records(id), 1);
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(count_records("\n"), 2);
}

static void counts_are_told_under_the_policy_that_they_are_of(void **state)
{
	struct ruleset *other = compile("[policy]\nname = none\n");
	struct reply r;

	(void)state;
	ask(&r, "api.example.com", DNS_TYPE_A);
	ask(&r, "api.example.com", DNS_TYPE_A);
	dns_door_set_rules(door, other, 77);
	rules_unref(other);
	LAST("\"count\":1", "\"allow\"", "\"api.example.com\"");
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	LAST("\"deny\"", "\"api.example.com\"");
}

static void a_door_that_shuts_tells_of_repeats(void **state)
{
	struct reply r;

	(void)state;
	ask(&r, "denied.example.net", DNS_TYPE_A);
	ask(&r, "denied.example.net", DNS_TYPE_A);
	dns_door_free(door);
	door = NULL;
	LAST("\"count\":1", "\"denied.example.net\"");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		DOOR_TEST(a_question_that_there_is_no_memory_to_keep_is_told_so),
		DOOR_TEST(what_is_known_is_answered_though_as_many_wait_as_may),
		DOOR_TEST(a_name_in_use_is_asked_anew_before_it_runs_out),
		DOOR_TEST(
		 a_name_that_policy_denies_by_now_is_not_asked_anew),
		DOOR_TEST(a_question_that_is_denied_by_now_is_asked_no_further),
		DOOR_TEST(the_same_policy_may_deny_a_question_by_now),
		DOOR_TEST(a_run_that_is_over_asks_no_further),
		DOOR_TEST(what_a_new_policy_allows_too_is_still_asked_for),
		DOOR_TEST(repeats_are_one_record_with_the_id_that_flows_name),
		DOOR_TEST(the_doors_timer_tells_of_repeats),
		DOOR_TEST(questions_that_waited_together_are_one_record),
		DOOR_TEST(another_answer_to_the_same_words_has_its_own_id),
		DOOR_TEST(counts_are_told_under_the_policy_that_they_are_of),
		DOOR_TEST(a_door_that_shuts_tells_of_repeats),
	};

	return door_lab_run(tests, ARRAY_SIZE(tests));
}
