/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_test.c - the writer's output, read back by another library
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <jansson.h>

#include "base/json.h"
#include "base/mem.h"

/* The text of { "k": @value } */
static void write_one(struct buf *b, struct str value)
{
	struct json j;

	json_begin(&j, b);
	json_object_begin(&j, NULL);
	json_str(&j, "k", value);
	json_object_end(&j);
	assert_int_equal(json_end(&j), 0);
}

static void assert_written(struct str value, const char *want)
{
	struct buf b = BUF_INIT(4096);

	write_one(&b, value);
	assert_string_equal(buf_cstr(&b), want);
	buf_done(&b);
}

static void commas_stand_between_values_only(void **state)
{
	struct buf b = BUF_INIT(4096);
	struct json j;

	(void)state;
	json_begin(&j, &b);
	json_object_begin(&j, NULL);
	json_cstr(&j, "a", "x");
	json_array_begin(&j, "b");
	json_uint(&j, NULL, UINT64_MAX);
	json_int(&j, NULL, INT64_MIN);
	json_object_begin(&j, NULL);
	json_object_end(&j);
	json_array_begin(&j, NULL);
	json_array_end(&j);
	json_array_end(&j);
	json_str_opt(&j, "none", STR_NONE);
	json_str_opt(&j, "some", STR("y"));
	json_bool(&j, "t", true);
	json_bool(&j, "f", false);
	json_null_value(&j, "n");
	json_cstr(&j, "e", NULL);
	json_object_end(&j);
	assert_int_equal(json_end(&j), 0);
	assert_string_equal(buf_cstr(&b),
		"{\"a\":\"x\",\"b\":[18446744073709551615,"
		"-9223372036854775808,{},[]],\"some\":\"y\",\"t\":true,"
		"\"f\":false,\"n\":null,\"e\":\"\"}");
	buf_done(&b);
}

static void what_json_and_terminals_demand_is_escaped(void **state)
{
	(void)state;
	assert_written(STR("a\"b\\c/"), "{\"k\":\"a\\\"b\\\\c/\"}");
	assert_written(str_make("\0\b\t\n\f\r\x1b\x7f", 8),
		"{\"k\":\"\\u0000\\u0008\\t\\n\\u000c\\r\\u001b\\u007f\"}");
	/* C1: U+009B is a terminal's CSI. */
	assert_written(STR("\xc2\x9b" "31m"), "{\"k\":\"\\u009b31m\"}");
	assert_written(STR("\xe2\x80\xa8\xe2\x80\xa9"),
		       "{\"k\":\"\\u2028\\u2029\"}");
	/* U+202E turns the text behind it around. */
	assert_written(STR("a\xe2\x80\xae" "b"), "{\"k\":\"a\\u202eb\"}");
	assert_written(STR("\xf3\xa0\x80\x81"), "{\"k\":\"\\udb40\\udc01\"}");
}

static void valid_utf8_is_left_as_it_is(void **state)
{
	(void)state;
	assert_written(STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x99"),
		       "{\"k\":\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x90\x99\"}");
}

static void each_byte_of_invalid_utf8_is_shown_as_itself(void **state)
{
	(void)state;
	assert_written(STR("\xff"), "{\"k\":\"\\u00ff\"}");
	assert_written(STR("a\xc3"), "{\"k\":\"a\\u00c3\"}");
	assert_written(STR("\xc3("), "{\"k\":\"\\u00c3(\"}");
	/* Overlong '/', a surrogate, beyond U+10FFFF */
	assert_written(STR("\xc0\xaf"), "{\"k\":\"\\u00c0\\u00af\"}");
	assert_written(STR("\xed\xa0\x80"), "{\"k\":\"\\u00ed\\u00a0\\u0080\"}");
	assert_written(STR("\xf4\x90\x80\x80"),
		       "{\"k\":\"\\u00f4\\u0090\\u0080\\u0080\"}");
}

static void every_byte_makes_a_line_that_others_can_read(void **state)
{
	(void)state;
	for (unsigned a = 0; a < 256; a++) {
		for (unsigned b = 0; b < 256; b += 5) {
			char raw[3] = { (char)a, (char)b, 'z' };
			struct buf out = BUF_INIT(256);
			json_error_t why;
			json_t *root;

			write_one(&out, str_make(raw, 3));
			for (size_t i = 0; i < out.n; i++)
				assert_true((uint8_t)out.p[i] >= 0x20);
			root = json_loadb(out.p, out.n, JSON_ALLOW_NUL, &why);
			assert_non_null(root);
			json_decref(root);
			buf_done(&out);
		}
	}
}

static void a_full_buffer_sticks_and_leaves_no_half_line(void **state)
{
	struct buf b = BUF_INIT(20);
	struct json j;

	(void)state;
	assert_int_equal(buf_add_str(&b, STR("before\n")), 0);
	json_begin(&j, &b);
	json_object_begin(&j, NULL);
	json_cstr(&j, "key", "a value too long");
	json_bool(&j, "b", true);
	json_object_end(&j);
	assert_int_equal(json_end(&j), -ENOSPC);
	assert_true(str_eq(buf_str(&b), STR("before\n")));
	buf_done(&b);
}

static void out_of_memory_is_reported_as_such(void **state)
{
	struct buf b = BUF_INIT(20);
	struct json j;

	(void)state;
	mem_test_fail_at(1);
	json_begin(&j, &b);
	json_array_begin(&j, NULL);
	json_array_end(&j);
	assert_int_equal(json_end(&j), -ENOMEM);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commas_stand_between_values_only),
		cmocka_unit_test(what_json_and_terminals_demand_is_escaped),
		cmocka_unit_test(valid_utf8_is_left_as_it_is),
		cmocka_unit_test(each_byte_of_invalid_utf8_is_shown_as_itself),
		cmocka_unit_test(every_byte_makes_a_line_that_others_can_read),
		cmocka_unit_test(a_full_buffer_sticks_and_leaves_no_half_line),
		cmocka_unit_test(out_of_memory_is_reported_as_such),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
