/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf_test.c - bytes with a hard maximum
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"

static void a_buf_grows_to_its_maximum_and_not_past_it(void **state)
{
	struct buf b = BUF_INIT(100);

	(void)state;
	for (int i = 0; i < 100; i++)
		assert_int_equal(buf_add_char(&b, (char)('a' + i % 26)), 0);
	assert_int_equal(buf_add_char(&b, 'x'), -ENOSPC);
	assert_int_equal(b.n, 100);
	assert_true(b.cap <= 100);
	assert_int_equal(b.p[99], 'a' + 99 % 26);
	buf_done(&b);
}

static void a_failed_append_changes_nothing(void **state)
{
	struct buf b = BUF_INIT(8);

	(void)state;
	assert_int_equal(buf_add_str(&b, STR("12345")), 0);
	assert_int_equal(buf_add_str(&b, STR("6789")), -ENOSPC);
	assert_int_equal(buf_printf(&b, "%s", "6789"), -ENOSPC);
	assert_true(str_eq(buf_str(&b), STR("12345")));
	assert_int_equal(buf_printf(&b, "%d", 678), 0);
	assert_true(str_eq(buf_str(&b), STR("12345678")));
	assert_int_equal(buf_printf(&b, "%s", ""), 0);
	assert_int_equal(buf_printf(&b, "%s", "9"), -ENOSPC);
	buf_done(&b);
}

static void sizes_that_would_overflow_are_refused(void **state)
{
	struct buf b = BUF_INIT(SIZE_MAX);

	(void)state;
	assert_int_equal(buf_add_char(&b, 'a'), 0);
	assert_int_equal(buf_reserve(&b, SIZE_MAX), -ENOSPC);
	assert_int_equal(buf_reserve(&b, SIZE_MAX - 1), -ENOMEM);
	assert_true(str_eq(buf_str(&b), STR("a")));
	buf_done(&b);
}

static void running_out_of_memory_leaves_the_contents(void **state)
{
	struct buf b = BUF_INIT(4096);

	(void)state;
	assert_int_equal(buf_add_str(&b, STR("kept")), 0);
	mem_test_fail_at(1);
	assert_int_equal(buf_printf(&b, "%200d", 1), -ENOMEM);
	assert_true(str_eq(buf_str(&b), STR("kept")));
	mem_test_fail_at(1);
	assert_int_equal(buf_reserve(&b, 1000), -ENOMEM);
	assert_true(str_eq(buf_str(&b), STR("kept")));
	assert_int_equal(buf_printf(&b, "%200d", 1), 0);
	assert_int_equal(b.n, 204);
	buf_done(&b);
}

static void a_zeroed_struct_with_a_maximum_is_a_buf(void **state)
{
	struct buf b = { .max = 16 };

	(void)state;
	assert_string_equal(buf_cstr(&b), "");
	assert_int_equal(buf_add(&b, NULL, 0), 0);
	assert_int_equal(buf_add_str(&b, STR("0123456789abcdef")), 0);
	/* There is room for the NUL even when the buf is full. */
	assert_string_equal(buf_cstr(&b), "0123456789abcdef");
	assert_int_equal(b.n, 16);
	buf_done(&b);
	mem_test_fail_at(1);
	assert_null(buf_cstr(&b));
	mem_test_fail_at(0);
}

static void consuming_moves_the_rest_to_the_front(void **state)
{
	struct buf b = BUF_INIT(64);

	(void)state;
	assert_int_equal(buf_add_str(&b, STR("GET / HTTP")), 0);
	buf_consume(&b, 4);
	assert_true(str_eq(buf_str(&b), STR("/ HTTP")));
	buf_consume(&b, 0);
	assert_int_equal(b.n, 6);
	buf_consume(&b, 6);
	assert_int_equal(b.n, 0);
	buf_done(&b);
	buf_consume(&b, 0);
}

static void a_buf_can_be_used_again_after_done(void **state)
{
	struct buf b = BUF_INIT(64);

	(void)state;
	assert_int_equal(buf_add_str(&b, STR("one")), 0);
	buf_done(&b);
	assert_int_equal(buf_add_str(&b, STR("two")), 0);
	assert_true(str_eq(buf_str(&b), STR("two")));
	buf_reset(&b);
	assert_int_equal(b.n, 0);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buf_grows_to_its_maximum_and_not_past_it),
		cmocka_unit_test(a_failed_append_changes_nothing),
		cmocka_unit_test(sizes_that_would_overflow_are_refused),
		cmocka_unit_test(running_out_of_memory_leaves_the_contents),
		cmocka_unit_test(a_zeroed_struct_with_a_maximum_is_a_buf),
		cmocka_unit_test(consuming_moves_the_rest_to_the_front),
		cmocka_unit_test(a_buf_can_be_used_again_after_done),
	};

	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
