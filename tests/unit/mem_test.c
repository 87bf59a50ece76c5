/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem_test.c - the heap's door, failures made to order, and arenas
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"

static void new_memory_is_zero_and_never_null_for_nothing(void **state)
{
	unsigned char *p = mem_new(100);
	void *none = mem_new(0);

	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(p[i], 0);
	assert_non_null(none);
	mem_free(none);
	mem_free(p);
}

static void a_product_that_overflows_is_no_memory(void **state)
{
	(void)state;
	assert_null(mem_new_array(SIZE_MAX / 2, 3));
	assert_null(mem_grow(NULL, SIZE_MAX / 2, 3));
	assert_null(mem_grow(NULL, SIZE_MAX, 1));
}

static void growing_keeps_what_was_there(void **state)
{
	char *p = mem_grow(NULL, 4, 1);

	(void)state;
	assert_non_null(p);
	memcpy(p, "abc", 4);
	p = mem_grow(p, 4000, 1);
	assert_non_null(p);
	assert_string_equal(p, "abc");
	mem_free(p);
}

static void the_nth_allocation_fails_and_only_that(void **state)
{
	void *p;

	(void)state;
	mem_test_fail_at(2);
	p = mem_new(1);
	assert_non_null(p);
	mem_free(p);
	assert_null(mem_new(1));
	p = mem_new(1);
	assert_non_null(p);
	mem_free(p);

	mem_test_fail_at(1);
	assert_null(mem_grow(NULL, 1, 1));
	mem_test_fail_at(1);
	assert_null(mem_dup_str(STR("x")));
	mem_test_fail_at(1);
	mem_test_fail_at(0);
	p = mem_new(1);
	assert_non_null(p);
	mem_free(p);
}

static void a_copied_string_ends_with_nul(void **state)
{
	char *p = mem_dup_str(str_make("abcdef", 3));
	char *empty = mem_dup_str(STR_NONE);

	(void)state;
	assert_string_equal(p, "abc");
	assert_string_equal(empty, "");
	mem_free(p);
	mem_free(empty);
}

static void pieces_are_zero_aligned_and_apart(void **state)
{
	struct arena *a = arena_new(1 << 20);
	unsigned char *last = NULL;

	(void)state;
	assert_non_null(a);
	for (unsigned i = 1; i < 200; i++) {
		unsigned char *p = arena_get(a, i);

		assert_non_null(p);
		assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
		for (unsigned k = 0; k < i; k++)
			assert_int_equal(p[k], 0);
		memset(p, 0xee, i);
		if (last)
			assert_int_equal(*last, 0xee);
		last = p;
	}
	arena_free(a);
}

static void an_arena_never_passes_its_budget(void **state)
{
	struct arena *a = arena_new(10000);
	size_t pieces = 0;

	(void)state;
	assert_non_null(a);
	assert_null(arena_get(a, 10001));
	assert_null(arena_get(a, SIZE_MAX));
	assert_null(arena_get_array(a, SIZE_MAX / 2, 3));
	assert_int_equal(arena_used(a), 0);
	while (arena_get(a, 16))
		pieces++;
	assert_true(pieces > 500);
	assert_true(arena_used(a) <= 10000);
	assert_int_equal(arena_used(a), pieces * 16);
	arena_free(a);
}

static void the_whole_budget_can_be_one_piece(void **state)
{
	struct arena *a = arena_new(65536);

	(void)state;
	assert_non_null(a);
	assert_non_null(arena_get(a, 65536));
	assert_null(arena_get(a, 1));
	arena_free(a);
}

static void a_large_piece_leaves_the_open_chunk_in_use(void **state)
{
	struct arena *a = arena_new(1 << 20);
	char *small = arena_get(a, 16);
	char *next;

	(void)state;
	assert_non_null(small);
	assert_non_null(arena_get(a, 20000));
	next = arena_get(a, 16);
	assert_ptr_equal(next, small + 16);
	arena_free(a);
}

static void an_arena_survives_a_failed_allocation(void **state)
{
	struct arena *a = arena_new(1 << 16);
	struct str s;

	(void)state;
	assert_non_null(a);
	mem_test_fail_at(1);
	assert_null(arena_get(a, 10));
	mem_test_fail_at(1);
	s = arena_str(a, STR("abc"));
	assert_null(s.p);
	s = arena_str(a, STR("abc"));
	assert_true(str_eq(s, STR("abc")));
	assert_int_equal(s.p[3], 0);
	arena_free(a);
	arena_free(NULL);
	mem_test_fail_at(1);
	assert_null(arena_new(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(new_memory_is_zero_and_never_null_for_nothing),
		cmocka_unit_test(a_product_that_overflows_is_no_memory),
		cmocka_unit_test(growing_keeps_what_was_there),
		cmocka_unit_test(the_nth_allocation_fails_and_only_that),
		cmocka_unit_test(a_copied_string_ends_with_nul),
		cmocka_unit_test(pieces_are_zero_aligned_and_apart),
		cmocka_unit_test(an_arena_never_passes_its_budget),
		cmocka_unit_test(the_whole_budget_can_be_one_piece),
		cmocka_unit_test(a_large_piece_leaves_the_open_chunk_in_use),
		cmocka_unit_test(an_arena_survives_a_failed_allocation),
	};

	return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
