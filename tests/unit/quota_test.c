/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota_test.c - what one run may use, and not a byte more (OPS-13)
 */
#include "tests/unit/rules_kit.h"

#include <pthread.h>

#include "base/mem.h"
#include "proxy/quota.h"

#define RULE	"[allow a]\nhosts = a.example\n"
#define THREADS	4

static struct ruleset *rules;

static struct quota *make(const char *text)
{
	struct quota *q = NULL;

	rules_unref(rules);
	rules = compile_good(text);
	assert_int_equal(quota_new(rules, NULL, &q), 0);
	return q;
}

static int clean(void **state)
{
	(void)state;
	rules_unref(rules);
	rules = NULL;
	return 0;
}

static struct quota_flow flow_of(struct quota *q, size_t rule)
{
	struct quota_flow f;

	assert_int_equal(quota_flow_begin(&f, q, rules, rule),
			 REASON_ALLOWED);
	return f;
}

/* Take @want and use all that is given. */
static enum reason move(struct quota_flow *f, enum quota_way way, size_t want,
			int64_t now_ms, size_t *ret)
{
	enum reason why = quota_take(f, way, want, now_ms, ret);

	if (why == REASON_ALLOWED)
		quota_settle(f, way, *ret);
	return why;
}

static void expect_move(struct quota_flow *f, enum quota_way way, size_t want,
			size_t given)
{
	size_t room;

	assert_int_equal(move(f, way, want, 0, &room), REASON_ALLOWED);
	assert_int_equal(room, given);
}

static void expect_over(struct quota_flow *f, enum quota_way way,
			enum reason why)
{
	size_t room = 1;

	assert_int_equal(move(f, way, 1, 0, &room), why);
	assert_int_equal(room, 0);
}

static void connections_are_counted_and_let_go(void **state)
{
	struct quota *q = make(RULE "[limits]\nconnections = 2\n");

	(void)state;
	assert_int_equal(quota_connections_max(q), 2);
	assert_int_equal(quota_enter(q, 0), REASON_ALLOWED);
	assert_int_equal(quota_enter(q, 0), REASON_ALLOWED);
	assert_int_equal(quota_enter(q, 0), REASON_CONNECTIONS_EXCEEDED);
	assert_int_equal(quota_connections(q), 2);
	quota_leave(q);
	assert_int_equal(quota_enter(q, 0), REASON_ALLOWED);
	quota_leave(q);
	quota_leave(q);
	quota_unref(q);
	q = make(RULE);
	assert_int_equal(quota_connections_max(q), QUOTA_CONNECTIONS);
	quota_unref(q);
}

static void all_runs_together_have_a_bound_of_their_own(void **state)
{
	struct quota_whole whole = { .max = 3 };
	struct quota *q[2] = { NULL, NULL };

	(void)state;
	rules_unref(rules);
	rules = compile_good(RULE "[limits]\nconnections = 2\n");
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(quota_new(rules, &whole, &q[i]), 0);
	assert_int_equal(quota_enter(q[0], 0), REASON_ALLOWED);
	assert_int_equal(quota_enter(q[0], 0), REASON_ALLOWED);
	assert_int_equal(quota_enter(q[1], 0), REASON_ALLOWED);
	assert_int_equal(quota_enter(q[1], 0), REASON_OVERLOADED);
	/* One that is refused for the whole holds nothing of its own. */
	assert_int_equal(quota_connections(q[1]), 1);
	quota_leave(q[0]);
	assert_int_equal(quota_enter(q[1], 0), REASON_ALLOWED);
	quota_leave(q[0]);
	quota_leave(q[1]);
	quota_leave(q[1]);
	assert_int_equal(whole.connections, 0);
	quota_unref(q[0]);
	quota_unref(q[1]);
}

/* Of two users, one cannot take what is for both. */
static void the_runs_of_one_user_have_a_part_of_the_whole(void **state)
{
	struct quota_whole whole = { .max = 3 };
	struct quota_whole user[2] = {
		{ .whole = &whole, .max = 2, .why = REASON_USER_EXCEEDED },
		{ .whole = &whole, .max = 2, .why = REASON_USER_EXCEEDED },
	};
	struct quota *q[3] = { NULL, NULL, NULL };

	(void)state;
	rules_unref(rules);
	rules = compile_good(RULE);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(quota_new(rules, &user[i / 2], &q[i]), 0);
	assert_int_equal(quota_enter(q[0], 0), REASON_ALLOWED);
	assert_int_equal(quota_enter(q[1], 0), REASON_ALLOWED);
	assert_int_equal(quota_enter(q[0], 0), REASON_USER_EXCEEDED);
	assert_int_equal(quota_enter(q[2], 0), REASON_ALLOWED);
	assert_int_equal(quota_enter(q[2], 0), REASON_OVERLOADED);
	/* What the whole refused holds nothing of the user's. */
	assert_int_equal(user[1].connections, 1);
	for (size_t i = 0; i < 3; i++) {
		quota_leave(q[i]);
		quota_unref(q[i]);
	}
	assert_int_equal(whole.connections, 0);
}

static void new_connections_come_at_a_rate(void **state)
{
	struct quota *q = make(RULE "[limits]\nnew_connections = 3\n");

	(void)state;
	for (int64_t second = 100; second < 103; second++) {
		/* As many at once as in a second, then one by one. */
		for (unsigned i = 0; i < (second == 100 ? 3 : 1); i++) {
			assert_int_equal(quota_enter(q, second * 1000),
					 REASON_ALLOWED);
			quota_leave(q);
		}
		if (second > 100) {
			assert_int_equal(quota_enter(q, second * 1000),
					 REASON_ALLOWED);
			quota_leave(q);
			assert_int_equal(quota_enter(q, second * 1000),
					 REASON_ALLOWED);
			quota_leave(q);
		}
		assert_int_equal(quota_enter(q, second * 1000),
				 REASON_CONNECTION_RATE_EXCEEDED);
		assert_int_equal(quota_connections(q), 0);
	}
	/* A third of a second brings one. */
	assert_int_equal(quota_enter(q, 102 * 1000 + 334), REASON_ALLOWED);
	quota_leave(q);
	quota_unref(q);
}

static void nothing_said_is_no_limit_and_counts(void **state)
{
	struct quota *q = make(RULE);
	struct quota_flow f = flow_of(q, 1), none = { 0 };

	(void)state;
	assert_false(quota_is_limited(&f, QUOTA_UP));
	expect_move(&f, QUOTA_UP, QUOTA_CHUNK_MAX, QUOTA_CHUNK_MAX);
	expect_move(&f, QUOTA_DOWN, 7, 7);
	assert_int_equal(q->used[QUOTA_UP], QUOTA_CHUNK_MAX);
	assert_int_equal(q->used[QUOTA_DOWN], 7);
	assert_int_equal(f.used[QUOTA_DOWN], 7);
	/* A policy that sets a limit later knows what was used before. */
	rules_unref(rules);
	rules = compile_good(RULE "[limits]\nbytes_down = 10\n");
	quota_set_rules(q, rules);
	expect_move(&f, QUOTA_DOWN, 100, 3);
	expect_over(&f, QUOTA_DOWN, REASON_BYTES_EXCEEDED);
	rules_unref(rules);
	rules = compile_good(RULE);
	quota_set_rules(q, rules);
	expect_move(&f, QUOTA_DOWN, 100, 100);
	/* And who has no quota at all has no limit either. */
	expect_move(&none, QUOTA_UP, 100, 100);
	quota_unref(q);
}

static void a_budget_is_exact_and_of_its_direction(void **state)
{
	struct quota *q = make(RULE "[limits]\nbytes_up = 1000\n");
	struct quota_flow a = flow_of(q, 1), b = flow_of(q, 1);
	size_t room;

	(void)state;
	expect_move(&a, QUOTA_UP, 600, 600);
	/* What is reserved and not used is there again. */
	assert_int_equal(quota_take(&b, QUOTA_UP, 600, 0, &room),
			 REASON_ALLOWED);
	assert_int_equal(room, 400);
	expect_over(&a, QUOTA_UP, REASON_BYTES_EXCEEDED);
	quota_settle(&b, QUOTA_UP, 100);
	expect_move(&a, QUOTA_UP, 600, 300);
	expect_over(&a, QUOTA_UP, REASON_BYTES_EXCEEDED);
	expect_over(&b, QUOTA_UP, REASON_BYTES_EXCEEDED);
	assert_int_equal(q->used[QUOTA_UP], 1000);
	assert_int_equal(a.used[QUOTA_UP] + b.used[QUOTA_UP], 1000);
	expect_move(&a, QUOTA_DOWN, 5000, 5000);
	quota_unref(q);
}

static void what_is_used_up_begins_no_flow(void **state)
{
	struct quota *q = make("[limits]\nbytes_down = 100\n[allow a]\n"
			       "hosts = a.example\nbytes_up = 60\n"
			       "[allow b]\nhosts = b.example\n");
	struct quota_flow a = flow_of(q, 1), b = flow_of(q, 2);

	(void)state;
	expect_move(&a, QUOTA_UP, 60, 60);
	assert_int_equal(quota_flow_begin(&a, q, rules, 1),
			 REASON_RULE_BYTES_EXCEEDED);
	expect_move(&b, QUOTA_DOWN, 100, 100);
	assert_int_equal(quota_flow_begin(&b, q, rules, 2),
			 REASON_BYTES_EXCEEDED);
	quota_unref(q);
}

static void a_flow_that_goes_on_has_the_budgets_of_its_rule_now(void **state)
{
	struct quota *q = make(RULE);
	struct quota_flow f = flow_of(q, 1), g;

	(void)state;
	expect_move(&f, QUOTA_UP, 100, 100);
	rules_unref(rules);
	rules = compile_good(RULE "bytes_up = 150\n");
	assert_int_equal(quota_flow_move(&f, rules, 1), REASON_ALLOWED);
	/* Again, as the same policy may come twice: nothing counts twice. */
	assert_int_equal(quota_flow_move(&f, rules, 1), REASON_ALLOWED);
	expect_move(&f, QUOTA_UP, 100, 50);
	expect_over(&f, QUOTA_UP, REASON_RULE_BYTES_EXCEEDED);
	assert_int_equal(quota_flow_begin(&g, q, rules, 1),
			 REASON_RULE_BYTES_EXCEEDED);
	/* A smaller one holds whom it finds; without one there is no bound. */
	rules_unref(rules);
	rules = compile_good(RULE "bytes_up = 120\n");
	assert_int_equal(quota_flow_move(&f, rules, 1), REASON_ALLOWED);
	expect_over(&f, QUOTA_UP, REASON_RULE_BYTES_EXCEEDED);
	rules_unref(rules);
	rules = compile_good(RULE);
	assert_int_equal(quota_flow_move(&f, rules, 1), REASON_ALLOWED);
	expect_move(&f, QUOTA_UP, 100, 100);
	quota_unref(q);
}

static void what_was_read_before_is_charged_whole_or_not(void **state)
{
	struct quota *q = make(RULE "[limits]\nbytes_up = 100\n"
			       "rate_up = 50\nflow_bytes_down = 10\n");
	struct quota_flow f = flow_of(q, 1);
	size_t room;

	(void)state;
	assert_int_equal(quota_charge(&f, QUOTA_UP, 0), REASON_ALLOWED);
	assert_int_equal(quota_charge(&f, QUOTA_UP, 101),
			 REASON_BYTES_EXCEEDED);
	assert_int_equal(quota_charge(&f, QUOTA_DOWN, 11),
			 REASON_FLOW_BYTES_EXCEEDED);
	assert_int_equal(q->used[QUOTA_DOWN], 0);
	assert_int_equal(quota_take(&f, QUOTA_UP, 50, 9000, &room),
			 REASON_ALLOWED);
	assert_int_equal(room, 50);
	quota_settle(&f, QUOTA_UP, 0);
	assert_int_equal(move(&f, QUOTA_UP, 1, 9000, &room), REASON_ALLOWED);
	assert_int_equal(quota_charge(&f, QUOTA_UP, 99), REASON_ALLOWED);
	assert_int_equal(f.used[QUOTA_UP], 100);
	/* Whatever was charged, the rate lets pass no more than its own. */
	assert_int_equal(quota_pace(&f, QUOTA_UP, 99, 9000), 49);
	assert_int_equal(quota_pace(&f, QUOTA_UP, 50, 9000), 0);
	assert_int_equal(quota_pace(&f, QUOTA_UP, 50, 9500), 25);
	assert_int_equal(move(&f, QUOTA_UP, 1, 9900, &room),
			 REASON_BYTES_EXCEEDED);
	quota_unref(q);
}

static void a_flow_has_its_own(void **state)
{
	struct quota *q = make(RULE "[limits]\nflow_bytes_down = 50\n");
	struct quota_flow a = flow_of(q, 1), b = flow_of(q, 1);

	(void)state;
	expect_move(&a, QUOTA_DOWN, 40, 40);
	expect_move(&a, QUOTA_DOWN, 40, 10);
	expect_over(&a, QUOTA_DOWN, REASON_FLOW_BYTES_EXCEEDED);
	expect_move(&b, QUOTA_DOWN, 40, 40);
	quota_unref(q);
}

static void a_rule_has_its_own_by_its_name(void **state)
{
	struct quota *q = make("[allow a]\nhosts = a.example\nbytes_up = 100\n"
			       "[allow b]\nhosts = b.example\n");
	struct quota_flow a = flow_of(q, 1), b = flow_of(q, 2);

	(void)state;
	expect_move(&a, QUOTA_UP, 60, 60);
	a = flow_of(q, 1);
	expect_move(&a, QUOTA_UP, 60, 40);
	expect_over(&a, QUOTA_UP, REASON_RULE_BYTES_EXCEEDED);
	expect_move(&a, QUOTA_DOWN, 60, 60);
	expect_move(&b, QUOTA_UP, 600, 600);
	/* Another policy has it elsewhere: it is known by its name. */
	rules_unref(rules);
	rules = compile_good("[allow c]\nhosts = c.example\nbytes_up = 100\n"
			     "[allow a]\nhosts = a.example\nbytes_up = 120\n");
	quota_set_rules(q, rules);
	a = flow_of(q, 2);
	b = flow_of(q, 1);
	expect_move(&a, QUOTA_UP, 60, 20);
	expect_over(&a, QUOTA_UP, REASON_RULE_BYTES_EXCEEDED);
	expect_move(&b, QUOTA_UP, 100, 100);
	quota_unref(q);
}

static void no_memory_for_a_rule_is_a_refusal(void **state)
{
	struct quota *q = make(RULE "bytes_up = 5\n");
	struct quota_flow f;

	(void)state;
	mem_test_fail_at(1);
	assert_int_equal(quota_flow_begin(&f, q, rules, 1),
			 REASON_MEMORY_EXCEEDED);
	mem_test_fail_at(0);
	f = flow_of(q, 1);
	expect_move(&f, QUOTA_UP, 6, 5);
	quota_unref(q);
}

static void a_refusal_by_one_budget_costs_no_other(void **state)
{
	struct quota *q = make("[limits]\nbytes_up = 100\n[allow a]\n"
			       "hosts = a.example\nbytes_up = 60\n"
			       "[allow b]\nhosts = b.example\n");
	struct quota_flow a = flow_of(q, 1), b = flow_of(q, 2);

	(void)state;
	expect_move(&b, QUOTA_UP, 90, 90);
	expect_move(&a, QUOTA_UP, 30, 10);
	expect_over(&a, QUOTA_UP, REASON_BYTES_EXCEEDED);
	rules_unref(rules);
	rules = compile_good("[limits]\nbytes_up = 1000\n[allow a]\n"
			     "hosts = a.example\nbytes_up = 60\n");
	quota_set_rules(q, rules);
	expect_move(&a, QUOTA_UP, 100, 50);
	expect_over(&a, QUOTA_UP, REASON_RULE_BYTES_EXCEEDED);
	quota_unref(q);
}

static void a_rate_makes_wait_and_cuts_nothing(void **state)
{
	struct quota *q = make(RULE "[limits]\nrate_down = 100K\n");
	struct quota_flow f = flow_of(q, 1);
	int64_t now = 5000, began = now;
	uint64_t moved = 0;
	size_t room;

	(void)state;
	while (moved < 1000 * 1024) {
		assert_int_equal(move(&f, QUOTA_DOWN, 64 * 1024, now, &room),
				 REASON_ALLOWED);
		moved += room;
		if (room == 0)
			now += quota_wait_ms(&f, QUOTA_DOWN, now);
		/* Never more than a second's worth ahead of the rate. */
		assert_true((uint64_t)(now - began + 1000) * 100 * 1024 >=
			    1000 * (moved - 1024));
	}
	assert_in_range(now - began, 8900, 9100);
	/* What is given back can be taken again. */
	now += 1000;
	assert_int_equal(quota_take(&f, QUOTA_DOWN, 100 * 1024, now, &room),
			 REASON_ALLOWED);
	assert_int_equal(room, 5 * 1024);
	quota_settle(&f, QUOTA_DOWN, 0);
	assert_int_equal(move(&f, QUOTA_DOWN, 100 * 1024, now, &room),
			 REASON_ALLOWED);
	assert_int_equal(room, 5 * 1024);
	quota_unref(q);
}

static void the_smallest_and_the_largest_rate_move(void **state)
{
	struct quota *q = make(RULE "[limits]\nrate_down = 1\n"
			       "rate_up = 1000000000G\n");
	struct quota_flow f = flow_of(q, 1);
	size_t room;

	(void)state;
	assert_int_equal(move(&f, QUOTA_DOWN, 9, 7000, &room), REASON_ALLOWED);
	assert_int_equal(room, 1);
	assert_int_equal(move(&f, QUOTA_DOWN, 9, 7000, &room), REASON_ALLOWED);
	assert_int_equal(room, 0);
	assert_in_range(quota_wait_ms(&f, QUOTA_DOWN, 7000), 1000, 1001);
	assert_int_equal(move(&f, QUOTA_DOWN, 9, 8001, &room), REASON_ALLOWED);
	assert_int_equal(room, 1);
	for (unsigned i = 0; i < 1000; i++) {
		assert_int_equal(move(&f, QUOTA_UP, QUOTA_CHUNK_MAX, 7000,
				      &room), REASON_ALLOWED);
		assert_int_equal(room, QUOTA_CHUNK_MAX);
	}
	quota_unref(q);
}

/* --- several workers -------------------------------------------------------------- */

#define BUDGET	(1u << 20)

struct taker {
	pthread_t thread;
	struct quota *q;
	struct quota_flow f;
	enum reason why;
};

static void *take_all(void *arg)
{
	struct taker *t = arg;
	size_t room;

	do {
		t->why = quota_take(&t->f, QUOTA_UP, 97, 0, &room);
		if (t->why == REASON_ALLOWED)
			quota_settle(&t->f, QUOTA_UP, room / 2 + 1);
		if (quota_enter(t->q, 0) == REASON_ALLOWED)
			quota_leave(t->q);
	} while (t->why == REASON_ALLOWED);
	quota_unref(t->q);
	return NULL;
}

static void instances_share_a_budget_to_the_byte(void **state)
{
	struct quota *q = make("[limits]\nbytes_up = 1M\nconnections = 2\n"
			       "[allow a]\nhosts = a.example\n"
			       "bytes_up = 2M\n");
	struct taker t[THREADS];
	struct quota_flow last = flow_of(q, 1);
	uint64_t sum = 0;
	size_t room;

	(void)state;
	for (size_t i = 0; i < THREADS; i++)
		t[i] = (struct taker){ .q = quota_ref(q),
				       .f = flow_of(q, 1) };
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&t[i].thread, NULL, take_all,
						&t[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(t[i].thread, NULL), 0);
		assert_int_equal(t[i].why, REASON_BYTES_EXCEEDED);
		sum += t[i].f.used[QUOTA_UP];
	}
	assert_true(sum <= BUDGET && sum > BUDGET / 2);
	while (move(&last, QUOTA_UP, 4096, 0, &room) == REASON_ALLOWED)
		sum += room;
	assert_int_equal(sum, BUDGET);
	assert_int_equal(quota_connections(q), 0);
	quota_unref(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_are_counted_and_let_go),
		cmocka_unit_test(all_runs_together_have_a_bound_of_their_own),
		cmocka_unit_test(the_runs_of_one_user_have_a_part_of_the_whole),
		cmocka_unit_test(new_connections_come_at_a_rate),
		cmocka_unit_test(nothing_said_is_no_limit_and_counts),
		cmocka_unit_test(a_budget_is_exact_and_of_its_direction),
		cmocka_unit_test(what_is_used_up_begins_no_flow),
		cmocka_unit_test(
			a_flow_that_goes_on_has_the_budgets_of_its_rule_now),
		cmocka_unit_test(what_was_read_before_is_charged_whole_or_not),
		cmocka_unit_test(a_flow_has_its_own),
		cmocka_unit_test(a_rule_has_its_own_by_its_name),
		cmocka_unit_test(no_memory_for_a_rule_is_a_refusal),
		cmocka_unit_test(a_refusal_by_one_budget_costs_no_other),
		cmocka_unit_test(a_rate_makes_wait_and_cuts_nothing),
		cmocka_unit_test(the_smallest_and_the_largest_rate_move),
		cmocka_unit_test(instances_share_a_budget_to_the_byte),
	};

	return cmocka_run_group_tests(tests, NULL, clean);
}
