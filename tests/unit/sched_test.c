/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_test.c - each sandbox has one share of its worker, however busy it is
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "proxy/sched.h"

#define MANY	4000

static struct event_base *base;
static struct sched *sched;
static struct sched_queue queue[3];

/* What was done, in its order. */
static char done[64];
static size_t ndone;

struct job {
	struct sched_work work;
	struct sched_queue *q;
	int64_t cost;
	unsigned left;		/* times that it is due again at once */
	unsigned runs;
	char name;
};

static struct job jobs[MANY];

static void job_fn(void *arg)
{
	struct job *j = arg;

	j->runs++;
	if (j->name && ndone < sizeof(done) - 1)
		done[ndone++] = j->name;
	sched_spend(j->q, j->cost);
}

static void job_init(struct job *j, struct sched_queue *q, char name,
		     int64_t cost)
{
	*j = (struct job){ .q = q, .cost = cost, .name = name };
	sched_work_init(&j->work, job_fn, j);
}

static int setup(void **state)
{
	(void)state;
	base = event_base_new();
	assert_non_null(base);
	assert_int_equal(sched_new(base, &sched), 0);
	for (size_t i = 0; i < ARRAY_SIZE(queue); i++)
		sched_queue_init(&queue[i], sched);
	memset(done, 0, sizeof(done));
	ndone = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	/* What a test that failed left waiting. */
	for (size_t i = 0; i < ARRAY_SIZE(queue); i++)
		while (!list_empty(&queue[i].work))
			list_del(queue[i].work.next);
	for (size_t i = 0; i < ARRAY_SIZE(queue); i++)
		sched_queue_done(&queue[i]);
	sched_free(sched);
	event_base_free(base);
	return 0;
}

static void due(struct job *j)
{
	sched_run(j->q, &j->work);
}

/* One turn of the loop, and with it one round, if one was asked for. */
static void turn(void)
{
	assert_true(event_base_loop(base, EVLOOP_ONCE) >= 0);
}

static void what_is_due_is_done_at_once(void **state)
{
	struct sched_queue nobody = { .sched = NULL };
	struct job a, b;

	(void)state;
	job_init(&a, &queue[0], 'a', 1000);
	for (unsigned i = 0; i < 10; i++)
		due(&a);
	assert_int_equal(a.runs, 10);
	/* No round is asked for where nobody is short. */
	assert_int_equal(event_base_get_num_events(base,
			 EVENT_BASE_COUNT_ADDED), 0);
	/* And without a share, always. */
	job_init(&b, &nobody, 'b', SCHED_QUANTUM);
	for (unsigned i = 0; i < 10; i++)
		due(&b);
	assert_int_equal(b.runs, 10);
	job_init(&b, NULL, 'b', SCHED_QUANTUM);
	due(&b);
	assert_int_equal(b.runs, 1);
}

static void one_who_is_busy_does_not_delay_another(void **state)
{
	struct job small;

	(void)state;
	/* A quarter of a round's worth each: four are done, the rest waits. */
	for (unsigned i = 0; i < MANY; i++) {
		job_init(&jobs[i], &queue[0], 0, SCHED_QUANTUM / 4);
		due(&jobs[i]);
	}
	assert_int_equal(queue[0].spent, SCHED_QUANTUM);
	job_init(&small, &queue[1], 's', 1000);
	for (unsigned i = 1; i <= 100; i++) {
		due(&small);
		assert_int_equal(small.runs, i);
		turn();
		assert_int_equal(queue[0].spent, (i + 1) * SCHED_QUANTUM);
	}
	for (unsigned i = 0; i < MANY; i++)
		sched_cancel(&jobs[i].work);
}

static void first_come_is_first_served(void **state)
{
	struct job j[5];

	(void)state;
	job_init(&j[0], &queue[0], 'a', SCHED_QUANTUM);
	for (unsigned i = 1; i < 5; i++)
		job_init(&j[i], &queue[0], (char)('a' + i), SCHED_QUANTUM);
	for (unsigned i = 0; i < 5; i++)
		due(&j[i]);
	/* Who is due again while it waits keeps its place, ... */
	for (unsigned i = 5; i-- > 1;)
		due(&j[i]);
	turn();
	/* ... and who was served goes to the end. */
	due(&j[0]);
	for (unsigned i = 0; i < 6; i++)
		turn();
	assert_string_equal(done, "abcdea");
}

static void shares_are_equal_whatever_the_pieces(void **state)
{
	static const int64_t cost[3] = { 5000, SCHED_QUANTUM / 3,
					 SCHED_QUANTUM * 5 / 2 };
	struct job j[3][4];

	(void)state;
	for (unsigned q = 0; q < 3; q++)
		for (unsigned i = 0; i < 4; i++)
			job_init(&j[q][i], &queue[q], 0, cost[q]);
	for (unsigned n = 0; n < 1000; n++) {
		/* More of it is due than a round has room for. */
		for (unsigned again = 0; again < 300; again++)
			for (unsigned q = 0; q < 3; q++)
				for (unsigned i = 0; i < 4; i++)
					due(&j[q][i]);
		turn();
	}
	for (unsigned q = 0; q < 3; q++)
		assert_in_range(queue[q].spent,
				(uint64_t)1000 * SCHED_QUANTUM - cost[2],
				(uint64_t)1001 * SCHED_QUANTUM + cost[2]);
	for (unsigned q = 0; q < 3; q++)
		for (unsigned i = 0; i < 4; i++)
			sched_cancel(&j[q][i].work);
}

static void one_who_is_alone_has_larger_rounds(void **state)
{
	struct job j, other;

	(void)state;
	job_init(&j, &queue[0], 0, SCHED_QUANTUM);
	job_init(&other, &queue[1], 0, 1);
	for (unsigned i = 0; i < 4 * SCHED_ALONE_AFTER; i++) {
		due(&j);
		due(&j);
		turn();
	}
	/* Whatever is left of this round; the next one begins with one piece. */
	for (unsigned i = 0; i < 1000; i++)
		due(&j);
	turn();
	j.runs = 0;
	for (unsigned i = 0; i < 1000; i++)
		due(&j);
	assert_int_equal(j.runs, SCHED_QUANTUM_ALONE / SCHED_QUANTUM - 1);
	turn();
	/* Until somebody else is there. */
	due(&other);
	turn();
	j.runs = 0;
	for (unsigned i = 0; i < 1000; i++)
		due(&j);
	turn();
	due(&j);
	turn();
	j.runs = 0;
	for (unsigned i = 0; i < 1000; i++)
		due(&j);
	assert_in_range(j.runs, 0, 1);
	sched_cancel(&j.work);
}

static void what_is_cancelled_is_not_done(void **state)
{
	struct job a, b;

	(void)state;
	job_init(&a, &queue[0], 'a', SCHED_QUANTUM);
	job_init(&b, &queue[0], 'b', SCHED_QUANTUM);
	due(&a);
	due(&b);
	sched_cancel(&b.work);
	sched_cancel(&b.work);
	turn();
	turn();
	assert_string_equal(done, "a");
}

#define SCHED(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		SCHED(what_is_due_is_done_at_once),
		SCHED(one_who_is_busy_does_not_delay_another),
		SCHED(first_come_is_first_served),
		SCHED(shares_are_equal_whatever_the_pieces),
		SCHED(one_who_is_alone_has_larger_rounds),
		SCHED(what_is_cancelled_is_not_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
