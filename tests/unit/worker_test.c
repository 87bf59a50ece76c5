/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_test.c - mail to a worker arrives once, in order, and before its end
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/mem.h"
#include "proxy/worker.h"
#include "tests/unit/proxy_lab.h"

#define SENDERS	4
#define MAILS	2000

struct letter {
	struct mail mail;
	unsigned sender, number;
};

static struct letter letters[SENDERS][MAILS];
static unsigned next_number[SENDERS];	/* the worker's thread */
static unsigned out_of_order;
static pthread_t worker_thread;
static struct worker *the_worker;

static void on_letter(void *owner, struct mail *mail)
{
	struct letter *l = container_of(mail, struct letter, mail);

	if (owner != the_worker || l->number != next_number[l->sender]++)
		out_of_order++;
	worker_thread = pthread_self();
}

static void *send_all(void *arg)
{
	struct letter *l = arg;
	unsigned i;

	for (i = 0; i < MAILS; i++)
		worker_post(the_worker, &l[i].mail, on_letter);
	return NULL;
}

static void mail_of_many_threads_arrives_in_order(void **state)
{
	pthread_t thread[SENDERS];
	unsigned i, j;

	(void)state;
	assert_int_equal(worker_new(3, &the_worker), 0);
	assert_int_equal(the_worker->index, 3);
	assert_int_equal(worker_start(the_worker), 0);
	for (i = 0; i < SENDERS; i++) {
		for (j = 0; j < MAILS; j++)
			letters[i][j] = (struct letter){ .sender = i,
							 .number = j };
		assert_int_equal(pthread_create(&thread[i], NULL, send_all,
						letters[i]), 0);
	}
	for (i = 0; i < SENDERS; i++)
		pthread_join(thread[i], NULL);
	/* What was posted before the end is done before the end. */
	worker_join(the_worker);
	assert_int_equal(out_of_order, 0);
	for (i = 0; i < SENDERS; i++)
		assert_int_equal(next_number[i], MAILS);
	assert_false(pthread_equal(worker_thread, pthread_self()));
	worker_free(the_worker);
}

static void call_twice(struct worker *w, void *arg)
{
	unsigned *n = arg;

	if (++*n > 1)
		return;
	assert_int_equal(worker_call(w, call_twice, arg), 0);
	assert_int_equal(*n, 1);
}

static void a_call_may_call_again_and_has_to_wait_its_turn(void **state)
{
	struct worker *w;
	unsigned n = 0;

	(void)state;
	assert_int_equal(worker_new(0, &w), 0);
	assert_int_equal(worker_call(w, call_twice, &n), 0);
	assert_int_equal(n, 0);
	lab_turn(w->base);
	assert_int_equal(n, 2);
	worker_free(w);
}

static void note_thread(struct worker *w, void *arg)
{
	pthread_t *ret = arg;

	(void)w;
	*ret = pthread_self();
}

/* Its base goes on when it has gone, and it never stops the loop. */
static void a_lodger_works_on_its_hosts_thread(void **state)
{
	struct event_base *base = event_base_new();
	struct worker *w;
	pthread_t thread;
	unsigned n = 0;

	(void)state;
	assert_non_null(base);
	memset(&thread, 0, sizeof(thread));
	assert_int_equal(worker_lodge(5, base, &w), 0);
	assert_int_equal(w->index, 5);
	assert_ptr_equal(w->base, base);
	assert_int_equal(worker_start(w), 0);
	assert_int_equal(worker_call(w, note_thread, &thread), 0);
	assert_int_equal(worker_call(w, call_twice, &n), 0);
	assert_int_equal(n, 0);
	lab_turn(base);
	assert_int_equal(n, 2);
	assert_true(pthread_equal(thread, pthread_self()));
	worker_stop(w);
	lab_turn(base);
	assert_false(event_base_got_break(base));
	worker_free(w);
	lab_turn(base);
	event_base_free(base);
}

static void a_call_without_memory_is_refused(void **state)
{
	struct worker *w;
	unsigned n = 0;

	(void)state;
	assert_int_equal(worker_new(0, &w), 0);
	mem_test_fail_at(1);
	assert_int_equal(worker_call(w, call_twice, &n), -12);
	mem_test_fail_at(0);
	worker_free(w);
}

static void a_worker_that_never_ran_is_freed(void **state)
{
	struct worker *w;

	(void)state;
	assert_int_equal(worker_new(0, &w), 0);
	worker_stop(w);
	worker_free(w);
	worker_free(NULL);
}

static void a_half_made_worker_leaks_nothing(void **state)
{
	size_t fds = lab_open_fds();
	struct worker *w;
	unsigned nth;
	int err = -1;

	(void)state;
	for (nth = 1; err != 0; nth++) {
		mem_test_fail_at(nth);
		err = worker_new(0, &w);
		mem_test_fail_at(0);
		if (err < 0)
			assert_int_equal(lab_open_fds(), fds);
	}
	assert_true(nth > 3);
	worker_free(w);
	assert_int_equal(lab_open_fds(), fds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mail_of_many_threads_arrives_in_order),
		cmocka_unit_test(a_call_may_call_again_and_has_to_wait_its_turn),
		cmocka_unit_test(a_lodger_works_on_its_hosts_thread),
		cmocka_unit_test(a_call_without_memory_is_refused),
		cmocka_unit_test(a_worker_that_never_ran_is_freed),
		cmocka_unit_test(a_half_made_worker_leaks_nothing),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
