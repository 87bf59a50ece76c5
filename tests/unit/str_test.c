/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str_test.c - borrowed strings
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

static void cutting_takes_the_part_before_each_separator(void **state)
{
	struct str rest = STR("a,,b"), part;

	(void)state;
	assert_true(str_cut(&rest, ',', &part));
	assert_true(str_eq(part, STR("a")));
	assert_true(str_cut(&rest, ',', &part));
	assert_true(str_empty(part));
	assert_true(str_cut(&rest, ',', &part));
	assert_true(str_eq(part, STR("b")));
	assert_false(str_cut(&rest, ',', &part));
}

static void words_are_split_at_runs_of_blanks(void **state)
{
	struct str rest = STR("  one\t two "), word;

	(void)state;
	assert_true(str_word(&rest, &word));
	assert_true(str_eq(word, STR("one")));
	assert_true(str_word(&rest, &word));
	assert_true(str_eq(word, STR("two")));
	assert_false(str_word(&rest, &word));
}

static void numbers_are_digits_only_and_bounded(void **state)
{
	unsigned long v = 7;

	(void)state;
	assert_int_equal(str_to_uint(STR("65535"), 65535, &v), 0);
	assert_int_equal(v, 65535);
	assert_int_equal(str_to_uint(STR("0"), 9, &v), 0);
	assert_int_equal(v, 0);
	assert_int_equal(str_to_uint(STR("65536"), 65535, &v), -ERANGE);
	assert_int_equal(str_to_uint(STR("99999999999999999999999"), ~0ul, &v),
			 -ERANGE);
	assert_int_equal(str_to_uint(STR("9"), 5, &v), -ERANGE);
	assert_int_equal(str_to_uint(STR("01"), 9, &v), -EINVAL);
	assert_int_equal(str_to_uint(STR("+1"), 9, &v), -EINVAL);
	assert_int_equal(str_to_uint(STR(""), 9, &v), -EINVAL);
	assert_int_equal(str_to_uint(STR("1 "), 9, &v), -EINVAL);
}

static void comparing_without_case_is_ascii_only(void **state)
{
	(void)state;
	assert_true(str_ieq(STR("API.Example"), STR("api.eXAMPLE")));
	assert_false(str_ieq(STR("[a"), STR("{a")));
	assert_false(str_ieq(STR("\xc3\x84"), STR("\xc3\xa4")));
}

static void prefix_and_suffix_need_not_fit(void **state)
{
	(void)state;
	assert_true(str_starts(STR("abc"), STR("ab")));
	assert_false(str_starts(STR("a"), STR("ab")));
	assert_true(str_ends(STR("abc"), STR("bc")));
	assert_false(str_ends(STR("c"), STR("bc")));
	assert_true(str_ends(STR("c"), STR_NONE));
}

static void a_text_is_found_and_sorted(void **state)
{
	(void)state;
	assert_int_equal(str_find(STR("a://b"), STR("://")), 1);
	assert_int_equal(str_find(STR("a:/b"), STR("://")), 4);
	assert_int_equal(str_find(STR("://"), STR("://")), 0);
	assert_int_equal(str_find(STR_NONE, STR("x")), 0);
	assert_true(str_cmp(STR("a"), STR("b")) < 0);
	assert_true(str_cmp(STR("b"), STR("a")) > 0);
	assert_true(str_cmp(STR("a"), STR("ab")) < 0);
	assert_true(str_cmp(STR("ab"), STR("a")) > 0);
	assert_true(str_cmp(STR_NONE, STR("a")) < 0);
	assert_int_equal(str_cmp(STR("ab"), STR("ab")), 0);
	assert_int_equal(str_cmp(STR_NONE, STR("")), 0);
	assert_true(str_cmp(STR("\xff"), STR("a")) > 0);
}

static void numbers_are_written_as_they_are_read(void **state)
{
	static const struct {
		uint64_t v;
		const char *text;
	} cases[] = {
		{ 0, "0" }, { 9, "9" }, { 10, "10" }, { 65535, "65535" },
		{ UINT64_MAX, "18446744073709551615" },
	};
	char out[STR_UINT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t n = str_put_uint(cases[i].v, out);

		assert_true(str_eq(str_make(out, n), str_from(cases[i].text)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cutting_takes_the_part_before_each_separator),
		cmocka_unit_test(words_are_split_at_runs_of_blanks),
		cmocka_unit_test(numbers_are_digits_only_and_bounded),
		cmocka_unit_test(comparing_without_case_is_ascii_only),
		cmocka_unit_test(prefix_and_suffix_need_not_fit),
		cmocka_unit_test(a_text_is_found_and_sorted),
		cmocka_unit_test(numbers_are_written_as_they_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
