/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_bundle_test.c - a policy of many parts as one text, and back
 */
#include <errno.h>

#include "base/mem.h"
#include "rules/rules_bundle.h"
#include "tests/unit/rules_kit.h"

static void write_bundle(const struct rules_source *s, size_t n,
			 struct buf *out)
{
	assert_int_equal(rules_bundle_write(s, n, out), 0);
}

static void a_plain_policy_is_its_own_text(void **state)
{
	const struct rules_source s = {
		.name = "p.ini", .text = STR("[allow a]\nhosts = a.example\n"),
	};
	struct rules_bundle b;
	struct buf text = BUF_INIT(1 << 16);

	(void)state;
	write_bundle(&s, 1, &text);
	assert_true(str_eq(buf_str(&text), s.text));
	assert_int_equal(rules_bundle_read(buf_str(&text), "policy", &b), 0);
	assert_int_equal(b.n, 1);
	assert_string_equal(b.source[0].name, "policy");
	assert_true(str_eq(b.source[0].text, s.text));
	rules_bundle_done(&b);
	buf_done(&text);
}

static void every_part_comes_back_as_it_was(void **state)
{
	const struct rules_source s[] = {
		{ .name = "p.ini", .text = STR("include = b.ini\n") },
		{ .name = "/etc/a file.ini", .text = STR("[allow b]\n"),
		  .kind = RULES_SOURCE_INCLUDE, .parent = 1, .line = 7,
		  .word = STR("b.ini") },
		{ .name = "preset open", .text = STR(""),
		  .kind = RULES_SOURCE_PRESET },
		{ .name = "list", .text = STR("policy 0 0 0 9 - x\n\n"),
		  .kind = RULES_SOURCE_HOSTS, .parent = 2, .line = 3,
		  .word = STR("@list") },
		{ .name = "list", .text = STR("policy 0 0 0 9 - x\n\n"),
		  .kind = RULES_SOURCE_HOSTS, .parent = 2, .line = 9,
		  .word = STR("@list"), .same = 4 },
		{ .name = "--allow", .text = STR("x"),
		  .kind = RULES_SOURCE_ALLOW },
	};
	struct buf text = BUF_INIT(1 << 16);
	struct rules_bundle b;

	(void)state;
	write_bundle(s, ARRAY_SIZE(s), &text);
	assert_int_equal(rules_bundle_read(buf_str(&text), "policy", &b), 0);
	assert_int_equal(b.n, ARRAY_SIZE(s));
	for (size_t i = 0; i < b.n; i++) {
		const struct rules_source *got = &b.source[i];

		assert_string_equal(got->name, s[i].name);
		assert_true(str_eq(got->text, s[i].text));
		assert_true(str_eq(got->word, s[i].word));
		assert_int_equal(got->kind, s[i].kind);
		assert_int_equal(got->parent, s[i].parent);
		assert_int_equal(got->line, s[i].line);
		assert_int_equal(got->same, s[i].same);
	}
	rules_bundle_done(&b);
	buf_done(&text);
}

static void a_line_feed_in_a_name_adds_no_part(void **state)
{
	const struct rules_source s[] = {
		{ .name = "a\npolicy 0 0 0 0 - x", .text = STR("") },
		{ .name = "b", .text = STR(""), .kind = RULES_SOURCE_ALLOW },
	};
	struct buf text = BUF_INIT(1 << 16);
	struct rules_bundle b;

	(void)state;
	write_bundle(s, 2, &text);
	assert_int_equal(rules_bundle_read(buf_str(&text), "policy", &b), 0);
	assert_int_equal(b.n, 2);
	assert_string_equal(b.source[0].name, "a?policy 0 0 0 0 - x");
	rules_bundle_done(&b);
	buf_done(&text);
}

#define M	"#!penstock-policies 1\n"

static void what_is_no_bundle_is_refused(void **state)
{
	static const char *const bad[] = {
		M "x",
		M "policy 0 0 0 0 - x",			/* no end */
		M "policy 0 0 0 0 - x\n",		/* no part */
		M "policy 0 0 0 9 - x\nshort\n",
		M "policy 0 0 0 2 - x\nlong\n",
		M "police 0 0 0 0 - x\n\n",
		M "policy 1 0 0 0 - x\n\n",		/* its own parent */
		M "policy 0 0 1 0 - x\n\n",		/* itself again */
		M "policy 0 0 0 0 - \n\n",		/* no name */
		M "policy 0 0 0 0 x\n\n",
		M "policy 0 -1 0 0 - x\n\n",
		M "policy 0 0 0 18446744073709551615 - x\n\n",
		M "policy 0 0 0 0 - x\n\nhosts 1 1 1 1 - y\nz\n",
	};
	struct rules_bundle b;
	struct told told = { .text = BUF_INIT(1 << 16) };
	struct ruleset *rs = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (rules_bundle_read(str_from(bad[i]), "p", &b) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
	}
	assert_int_equal(rules_compile_text(str_from(bad[0]), "p", told_one,
					    &told, &rs), -EINVAL);
	assert_non_null(strstr(buf_cstr(&told.text),
			       "p:0:0: error: is no bundle of policies; it was "
			       "cut"));
	buf_done(&told.text);
}

static void more_parts_than_the_limit_are_refused(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	struct rules_bundle b;
	int err = buf_add_str(&text, STR(M));

	(void)state;
	for (int i = 0; i < 256 && !err; i++)
		err = buf_add_str(&text, STR("preset 0 0 0 0 - x\n\n"));
	assert_int_equal(err, 0);
	assert_int_equal(rules_bundle_read(buf_str(&text), "p", &b), 0);
	rules_bundle_done(&b);
	assert_int_equal(buf_add_str(&text, STR("preset 0 0 0 0 - x\n\n")), 0);
	assert_int_equal(rules_bundle_read(buf_str(&text), "p", &b), -EINVAL);
	buf_done(&text);
}

static void without_memory_nothing_is_half_done(void **state)
{
	struct rules_bundle b = RULES_BUNDLE_INIT;
	struct str text = STR(M "policy 0 0 0 0 - x\n\n");
	unsigned nth = 0;
	int err;

	(void)state;
	do {
		mem_test_fail_at(++nth);
		err = rules_bundle_read(text, "p", &b);
		mem_test_fail_at(0);
		assert_true(err == 0 || err == -ENOMEM);
	} while (err && nth < 100);
	assert_true(nth > 1);
	assert_int_equal(err, 0);
	rules_bundle_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_policy_is_its_own_text),
		cmocka_unit_test(every_part_comes_back_as_it_was),
		cmocka_unit_test(a_line_feed_in_a_name_adds_no_part),
		cmocka_unit_test(what_is_no_bundle_is_refused),
		cmocka_unit_test(more_parts_than_the_limit_are_refused),
		cmocka_unit_test(without_memory_nothing_is_half_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
