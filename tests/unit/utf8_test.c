/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8_test.c - well-formed UTF-8 and characters that hide
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"

static size_t encode(uint32_t cp, char out[4])
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		out[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

static void every_character_is_read_and_surrogates_are_not(void **state)
{
	(void)state;
	for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
		bool surrogate = cp >= 0xd800 && cp <= 0xdfff;
		uint32_t got = 0;
		char b[4];
		size_t n = encode(cp, b);

		if (utf8_next(str_make(b, n), &got) != (surrogate ? 0 : n))
			fail_msg("U+%04X", cp);
		if (!surrogate && got != cp)
			fail_msg("U+%04X read as U+%04X", cp, got);
		if (n > 1 && utf8_next(str_make(b, n - 1), &got) != 0)
			fail_msg("U+%04X cut", cp);
	}
}

static void ill_formed_fronts_are_no_character(void **state)
{
	static const char *const bad[] = {
		"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80",
		"\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf",
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xfe", "\xff",
		"\xc3\x28", "\xe2\x28\xa1", "\xe2\x82\x28", "\xf0\x9f\x90\x28",
	};
	uint32_t cp = 77;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(utf8_next(str_from(bad[i]), &cp), 0);
	assert_int_equal(utf8_next(STR_NONE, &cp), 0);
	assert_int_equal(cp, 77);
}

static void controls_and_marks_are_hidden_and_letters_are_not(void **state)
{
	static const uint32_t hidden[] = {
		0, 0x1b, 0x1f, 0x7f, 0x80, 0x9b, 0x9f, 0xad, 0x200b, 0x200e,
		0x2028, 0x2029, 0x202e, 0x2066, 0x2069, 0xfeff, 0xe0001,
	};
	static const uint32_t seen[] = {
		' ', '~', 0xa0, 0xe9, 0x2010, 0x2027, 0x202f, 0x4e2d, 0x1f419,
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		assert_true(utf8_is_hidden(hidden[i]));
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++)
		assert_false(utf8_is_hidden(seen[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_character_is_read_and_surrogates_are_not),
		cmocka_unit_test(ill_formed_fronts_are_no_character),
		cmocka_unit_test(
			controls_and_marks_are_hidden_and_letters_are_not),
	};

	return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
