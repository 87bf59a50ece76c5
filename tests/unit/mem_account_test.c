/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem_account_test.c - what is held for somebody, against limits
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/mem_account.h"

#define MIB	((size_t)1 << 20)

static void expect(enum reason is, enum reason wanted)
{
	assert_string_equal(reason_word(is), reason_word(wanted));
}

static void without_a_pot_all_is_counted_and_nothing_refused(void **state)
{
	struct mem_account a = { .pot = NULL };

	(void)state;
	expect(mem_account_take(&a, 3 * MIB), REASON_ALLOWED);
	mem_account_owe(&a, MIB);
	assert_int_equal(a.used, 4 * MIB);
	mem_account_give(&a, 4 * MIB);
	assert_int_equal(a.used, 0);
	assert_int_equal(a.peak, 4 * MIB);
	expect(mem_account_why(&a), REASON_ALLOWED);
	mem_account_done(&a);
	expect(mem_account_take(NULL, 1), REASON_ALLOWED);
	mem_account_owe(NULL, 1);
	mem_account_give(NULL, 1);
	expect(mem_account_why(NULL), REASON_ALLOWED);
}

static void what_is_new_stops_at_the_limit_and_what_goes_on_does_not(void **state)
{
	struct mem_pot pot = { .limit = MIB };
	struct mem_account a;
	size_t n;

	(void)state;
	mem_account_init(&a, &pot);
	for (n = 0; mem_account_take(&a, 4096) == REASON_ALLOWED; n++)
		;
	assert_int_equal(n, MIB / 4096);
	expect(mem_account_why(&a), REASON_MEMORY_EXCEEDED);
	mem_account_owe(&a, 100000);
	assert_int_equal(a.used, MIB + 100000);
	assert_in_range(pot.used, a.used, a.used + 2 * MEM_GRAIN);
	expect(mem_account_take(&a, 1 + 2 * MEM_GRAIN),
	       REASON_MEMORY_EXCEEDED);
	mem_account_give(&a, 100000 + MIB / 2);
	expect(mem_account_why(&a), REASON_ALLOWED);
	expect(mem_account_take(&a, 4096), REASON_ALLOWED);
	mem_account_give(&a, MIB / 2 + 4096);
	mem_account_done(&a);
	assert_int_equal(pot.used, 0);
}

/* Which limit it was makes the reason: one's own, or everybody's. */
static void a_pot_that_is_part_of_another_is_bounded_by_both(void **state)
{
	struct mem_pot whole = { .limit = 2 * MIB };
	struct mem_pot one = { .whole = &whole, .limit = MIB };
	struct mem_pot two = { .whole = &whole, .limit = 4 * MIB };
	struct mem_account a, b;

	(void)state;
	mem_account_init(&a, &one);
	mem_account_init(&b, &two);
	expect(mem_account_take(&a, MIB), REASON_ALLOWED);
	expect(mem_account_take(&a, 1), REASON_MEMORY_EXCEEDED);
	expect(mem_account_take(&b, MIB), REASON_ALLOWED);
	expect(mem_account_take(&b, 1), REASON_OVERLOADED);
	expect(mem_account_why(&b), REASON_OVERLOADED);
	/* What was refused left nothing behind in either. */
	assert_int_equal(one.used, MIB);
	assert_int_equal(two.used, MIB);
	assert_int_equal(whole.used, 2 * MIB);
	mem_account_give(&a, MIB);
	expect(mem_account_take(&b, 4096), REASON_ALLOWED);
	mem_account_give(&b, MIB + 4096);
	mem_account_done(&a);
	mem_account_done(&b);
	assert_int_equal(whole.used, 0);
}

static void it_is_tight_from_half_of_a_limit_on(void **state)
{
	struct mem_pot pot = { .limit = MIB };
	struct mem_account a;

	(void)state;
	mem_account_init(&a, &pot);
	mem_account_owe(&a, MIB / 4);
	assert_false(a.tight);
	mem_account_owe(&a, MIB / 2);
	assert_true(a.tight);
	mem_account_give(&a, MIB / 2);
	assert_false(a.tight);
	mem_account_give(&a, MIB / 4);
	mem_account_done(&a);
}

static void small_things_ask_the_pot_once_a_grain(void **state)
{
	struct mem_pot pot = { .limit = 0 };
	struct mem_account a;
	size_t changes = 0, was = 0;

	(void)state;
	mem_account_init(&a, &pot);
	for (unsigned i = 0; i < 1024; i++) {
		mem_account_owe(&a, 1024);
		changes += pot.used != was;
		was = pot.used;
	}
	assert_in_range(changes, 1, MIB / MEM_GRAIN);
	/* Nor does one that comes and goes at a border. */
	for (unsigned i = 0; i < 1000; i++) {
		mem_account_owe(&a, 1024);
		mem_account_give(&a, 1024);
		changes += pot.used != was;
		was = pot.used;
	}
	assert_in_range(changes, 1, MIB / MEM_GRAIN + 1);
	mem_account_give(&a, MIB);
	mem_account_done(&a);
}

static void a_buf_owes_its_room_to_its_owner(void **state)
{
	struct mem_account a = { .pot = NULL };
	struct buf b = BUF_FOR(100000, &a);

	(void)state;
	assert_int_equal(buf_add(&b, "x", 1), 0);
	assert_int_equal(a.used, b.cap);
	assert_int_equal(buf_reserve(&b, 50000), 0);
	assert_true(b.cap >= 50001);
	assert_int_equal(a.used, b.cap);
	mem_test_fail_at(1);
	assert_int_not_equal(buf_reserve(&b, 90000), 0);
	assert_int_equal(a.used, b.cap);
	buf_done(&b);
	assert_int_equal(a.used, 0);
	mem_account_done(&a);
}

/* --- two threads -------------------------------------------------------------- */

#define ROUNDS	20000

static atomic_size_t held;
static atomic_bool was_over;

static void *take_and_give(void *arg)
{
	struct mem_pot *pot = arg;
	struct mem_account a;

	mem_account_init(&a, pot);
	for (unsigned i = 0; i < ROUNDS; i++) {
		size_t n = MEM_GRAIN * (1 + i % 7);

		if (mem_account_take(&a, n) != REASON_ALLOWED)
			continue;
		if (atomic_fetch_add(&held, n) + n > 8 * MEM_GRAIN)
			atomic_store(&was_over, true);
		atomic_fetch_sub(&held, n);
		mem_account_give(&a, n);
	}
	mem_account_done(&a);
	return NULL;
}

static void accounts_of_two_threads_share_one_limit(void **state)
{
	struct mem_pot pot = { .limit = 8 * MEM_GRAIN };
	pthread_t thread[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL,
						take_and_give, &pot), 0);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_false(was_over);
	assert_int_equal(pot.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_pot_all_is_counted_and_nothing_refused),
		cmocka_unit_test(what_is_new_stops_at_the_limit_and_what_goes_on_does_not),
		cmocka_unit_test(a_pot_that_is_part_of_another_is_bounded_by_both),
		cmocka_unit_test(it_is_tight_from_half_of_a_limit_on),
		cmocka_unit_test(small_things_ask_the_pot_once_a_grain),
		cmocka_unit_test(a_buf_owes_its_room_to_its_owner),
		cmocka_unit_test(accounts_of_two_threads_share_one_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
