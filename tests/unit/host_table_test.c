/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_table_test.c - names found label by label, and hashes that decide nothing
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "rules/host_marks.h"
#include "rules/host_table.h"

#define MANY		60000u
#define NAME_SIZE	64

static struct str name_of(unsigned i, char out[NAME_SIZE])
{
	/* Every third one is above others, every fifth deep. */
	int n = snprintf(out, NAME_SIZE, "%s%x.n%x.%s", i % 3 ? "www." : "",
			 i, i / 7, i % 5 ? "example" : "a.b.c.example.net");

	assert_true(n > 0 && n < NAME_SIZE);
	return str_make(out, (size_t)n);
}

/* Adds the name with that mark. */
static void add(struct host_build *b, struct str name, uint32_t mark)
{
	struct host_probe probe;
	struct host_trail trail;

	host_build_probe(b, name, &probe);
	assert_int_equal(host_build_add(b, &probe, &trail), 0);
	host_build_set_mark(b, trail.at[trail.n - 1], mark);
}

/* The hash of the whole name, as the table has it. */
static uint32_t tag_of(const struct host_build *b, struct str name)
{
	struct host_probe probe;

	host_build_probe(b, name, &probe);
	return probe.level[probe.n - 1].tag;
}

static uint32_t find(const struct host_table *t, const char *name)
{
	struct host_path path;

	host_table_find(t, str_from(name), &path);
	return path.whole ? path.mark[path.n - 1] : UINT32_MAX;
}

/*
 * From a guess of 1, so that it grows all the way, of all, and of far too many,
 * so that it is made smaller in the end.
 */
static void every_name_is_found_with_its_mark(void **state)
{
	static const size_t guesses[] = { 1, MANY, 20 * MANY };

	(void)state;
	for (size_t g = 0; g < ARRAY_SIZE(guesses); g++) {
		struct host_build b;
		struct host_table t;
		char text[NAME_SIZE];

		assert_int_equal(host_build_init(&b, guesses[g],
						 guesses[g] * NAME_SIZE), 0);
		for (unsigned i = 0; i < MANY; i++)
			add(&b, name_of(i, text), 1 + i % 1000);
		assert_int_equal(host_build_take(&b, &t), 0);
		/* A cell has room for several. */
		assert_true(t.n_cells < MANY);
		for (unsigned i = 0; i < MANY; i++) {
			struct str name = name_of(i, text);

			assert_int_equal(find(&t, name.p), 1 + i % 1000);
		}
		for (unsigned i = MANY; i < 2 * MANY; i++) {
			struct str name = name_of(i, text);

			assert_int_equal(find(&t, name.p), UINT32_MAX);
		}
		host_table_done(&t);
	}
}

static void names_above_are_there_without_a_mark(void **state)
{
	struct host_build b;
	struct host_path path;
	struct host_table t;

	(void)state;
	assert_int_equal(host_build_init(&b, 0, 0), 0);
	add(&b, STR("a.b.example.com"), 1);
	add(&b, STR("example.com"), 2);
	add(&b, STR("xample.com"), 3);
	assert_int_equal(b.records, 5);
	assert_int_equal(host_build_take(&b, &t), 0);
	host_table_find(&t, STR("x.a.b.example.com"), &path);
	assert_int_equal(path.n, 4);
	assert_false(path.whole);
	assert_int_equal(path.mark[0], 0);
	assert_int_equal(path.mark[1], 2);
	assert_int_equal(path.mark[2], 0);
	assert_int_equal(path.mark[3], 1);
	assert_int_equal(find(&t, "b.example.com"), 0);
	/* The end of a name, but not at a label. */
	assert_int_equal(find(&t, "ample.com"), UINT32_MAX);
	assert_int_equal(find(&t, "com"), 0);
	host_table_done(&t);
}

/* Many policies have a handful of hosts, and there is one for each run. */
static void a_small_table_takes_little_memory(void **state)
{
	char text[NAME_SIZE];
	struct host_build b;
	struct host_table t;

	(void)state;
	assert_int_equal(host_build_init(&b, 5, 5 * NAME_SIZE), 0);
	for (unsigned i = 0; i < 5; i++)
		add(&b, name_of(i, text), 1);
	assert_int_equal(host_build_take(&b, &t), 0);
	assert_true((t.n_cells + t.n_more + 1) * 128 <= 1024);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(find(&t, name_of(i, text).p), 1);
	host_table_done(&t);
}

/* Marks are numbered without gaps, and equal ones stay equal. */
static void marks_are_numbered_anew(void **state)
{
	uint32_t number[3000] = { 0 };
	char text[NAME_SIZE];
	struct host_build b;
	struct host_table t;

	(void)state;
	assert_int_equal(host_build_init(&b, 0, 0), 0);
	for (unsigned i = 0; i < 1000; i++)
		add(&b, name_of(i, text), i % 2 ? 2999 : 1 + i);
	assert_int_equal(host_build_number_marks(&b, number), 502);
	assert_int_equal(number[0], 0);
	assert_int_equal(number[2], 0);
	assert_int_equal(host_build_take(&b, &t), 0);
	for (unsigned i = 0; i < 1000; i++) {
		uint32_t mark = find(&t, name_of(i, text).p);

		assert_in_range(mark, 1, 501);
		assert_int_equal(mark, number[i % 2 ? 2999 : 1 + i]);
	}
	host_table_done(&t);
}

static int count_name(void *arg, struct str name, uint32_t mark)
{
	unsigned *seen = arg;

	if (str_eq(name, STR("a.b.example.com")))
		seen[0] += mark == 1;
	else if (str_eq(name, STR("example.com")))
		seen[1] += mark == 2;
	else if (str_eq(name, STR("com")) || str_eq(name, STR("b.example.com")))
		seen[2] += mark == 0;
	else
		return -1;
	return 0;
}

static void names_are_read_back_with_those_above(void **state)
{
	unsigned seen[3] = { 0 };
	struct host_build b;
	struct host_table t;

	(void)state;
	assert_int_equal(host_build_init(&b, 0, 0), 0);
	add(&b, STR("a.b.example.com"), 1);
	add(&b, STR("example.com"), 2);
	assert_int_equal(host_build_take(&b, &t), 0);
	assert_int_equal(host_table_each(&t, count_name, seen), 0);
	assert_int_equal(seen[0], 1);
	assert_int_equal(seen[1], 1);
	assert_int_equal(seen[2], 2);
	host_table_done(&t);
}

static void what_is_not_canonical_finds_nothing(void **state)
{
	static const char *const bad[] = {
		"", ".", "..", ".a.example", "a.example.", "a..example",
		"A.example", "a.exampl", "example.a", "a.example\nb",
	};
	static const char nul[] = "example\0a.example";
	struct host_path path;
	struct host_build b;
	struct host_table t;
	char longest[400];

	(void)state;
	assert_int_equal(host_build_init(&b, 0, 0), 0);
	add(&b, STR("a.example"), 1);
	add(&b, STR("b.a.example"), 2);
	assert_int_equal(host_build_take(&b, &t), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(find(&t, bad[i]), UINT32_MAX);
	host_table_find(&t, STR(".a.example"), &path);
	assert_int_equal(path.n, 0);
	host_table_find(&t, str_make(nul, sizeof(nul) - 1), &path);
	assert_false(path.whole);
	/* Labels longer than any, of every length that a key might take. */
	for (size_t n = 1; n < sizeof(longest) - 10; n++) {
		memset(longest, 'a', n);
		memcpy(longest + n, ".a.example", 10);
		host_table_find(&t, str_make(longest, n + 10), &path);
		assert_false(path.whole);
		assert_int_equal(path.n, 2);
	}
	host_table_done(&t);
}

static void an_empty_table_finds_nothing(void **state)
{
	struct host_build b;
	struct host_table t;

	(void)state;
	assert_int_equal(host_build_init(&b, 0, 0), 0);
	assert_int_equal(host_build_take(&b, &t), 0);
	assert_int_equal(find(&t, "example.com"), UINT32_MAX);
	host_table_done(&t);
}

/*
 * Names are looked for until one has the whole tag of a name in the table: it
 * stands where that one stands, and only its bytes tell that it is another.
 */
static void a_collision_never_decides(void **state)
{
	enum { TAG_BITS = 32, SEEN_BITS = 22 };
	uint32_t *owner = mem_new_array(1u << SEEN_BITS, sizeof(*owner));
	char text[NAME_SIZE], other[NAME_SIZE];
	unsigned i, found = 0;
	struct host_build b;
	struct host_table t;

	(void)state;
	assert_non_null(owner);
	assert_int_equal(host_build_init(&b, MANY, 0), 0);
	for (i = 1; i < MANY; i++) {
		struct str name = name_of(i, text);

		add(&b, name, 1);
		owner[tag_of(&b, name) >> (TAG_BITS - SEEN_BITS)] = i;
	}
	/* One in 2^32 / MANY has one: some of 4 million. */
	for (; i < 4000000 && found < 10; i++) {
		struct str name = name_of(i, text);
		uint32_t tag = tag_of(&b, name);
		uint32_t o = owner[tag >> (TAG_BITS - SEEN_BITS)];
		struct host_table two;
		struct host_build c;

		if (o == 0 || tag_of(&b, name_of(o, other)) != tag)
			continue;
		found++;
		/* Alone, and both of them, by the same key. */
		assert_int_equal(host_build_init(&c, 0, 0), 0);
		c.t.start = b.t.start;
		add(&c, name_of(o, other), 1);
		add(&c, name, 2);
		assert_int_equal(host_build_take(&c, &two), 0);
		assert_int_equal(find(&two, other), 1);
		assert_int_equal(find(&two, text), 2);
		host_table_done(&two);
	}
	assert_true(found > 0);
	assert_int_equal(host_build_take(&b, &t), 0);
	for (unsigned k = i - 1; k > MANY; k -= 101)
		assert_int_equal(find(&t, name_of(k, text).p), UINT32_MAX);
	assert_int_equal(find(&t, name_of(i - 1, text).p), UINT32_MAX);
	host_table_done(&t);
	mem_free(owner);
}

/* However many labels: they are looked up a few at a time. */
static void the_deepest_name_is_found_level_by_level(void **state)
{
	struct host_build b;
	struct host_path path;
	struct host_table t;
	char name[254];

	(void)state;
	for (size_t i = 0; i < 253; i++)
		name[i] = i % 2 ? '.' : (char)('a' + i % 26);
	name[253] = '\0';
	assert_int_equal(host_build_init(&b, 0, 0), 0);
	add(&b, str_from(name), 1);
	assert_int_equal(b.records, HOST_LABELS_MAX);
	assert_int_equal(host_build_take(&b, &t), 0);
	for (size_t from = 0; from < 253; from += 2) {
		host_table_find(&t, str_from(name + from), &path);
		assert_true(path.whole);
		assert_int_equal(path.n, (253 - from + 1) / 2);
		assert_int_equal(path.mark[path.n - 1], from == 0);
	}
	host_table_done(&t);
}

static void running_out_of_memory_is_an_error(void **state)
{
	char text[NAME_SIZE];
	unsigned failed = 0;

	(void)state;
	for (unsigned nth = 1; nth < 40; nth++) {
		struct host_probe probe;
		struct host_trail trail;
		struct host_build b;
		struct host_table t;
		int err;

		mem_test_fail_at(nth);
		err = host_build_init(&b, 1, 0);
		for (unsigned i = 0; i < 3000 && !err; i++) {
			host_build_probe(&b, name_of(i, text), &probe);
			err = host_build_add(&b, &probe, &trail);
		}
		if (!err)
			err = host_build_take(&b, &t);
		mem_test_fail_at(0);
		failed += err != 0;
		if (err) {
			assert_int_equal(err, -ENOMEM);
			host_build_done(&b);
			continue;
		}
		assert_int_equal(find(&t, name_of(2999, text).p), 0);
		host_table_done(&t);
	}
	assert_true(failed > 5);
}

/* --- marks ---------------------------------------------------------------- */

static uint32_t step(struct host_marks *m, uint32_t from, enum host_step step,
		     uint32_t rule)
{
	assert_int_equal(host_marks_step(m, &from, step, rule), 0);
	return from;
}

static void equal_steps_lead_to_equal_marks(void **state)
{
	struct host_marks m;
	uint32_t a, b;

	(void)state;
	assert_int_equal(host_marks_init(&m), 0);
	a = step(&m, HOST_MARK_NONE, STEP_EXACT, 0);
	assert_int_not_equal(a, HOST_MARK_NONE);
	assert_int_equal(step(&m, HOST_MARK_NONE, STEP_EXACT, 0), a);
	assert_int_not_equal(step(&m, HOST_MARK_NONE, STEP_BELOW, 0), a);
	assert_int_not_equal(step(&m, HOST_MARK_NONE, STEP_LEADS, 0), a);
	/* Said already. */
	assert_int_equal(step(&m, a, STEP_EXACT, 0), a);
	b = step(&m, a, STEP_LEADS, 0);
	assert_int_equal(step(&m, b, STEP_LEADS, 0), b);
	assert_int_equal(step(&m, b, STEP_EXACT, 0), b);
	b = step(&m, b, STEP_BELOW, 3);
	assert_int_equal(m.draft[b].n_exact, 1);
	assert_int_equal(m.draft[b].n_below, 1);
	assert_true(m.draft[b].leads);
	host_marks_done(&m);
}

static void marks_grow_with_the_sets_there_are(void **state)
{
	struct host_marks m;
	uint32_t first[500];

	(void)state;
	assert_int_equal(host_marks_init(&m), 0);
	for (uint32_t r = 0; r < 500; r++)
		first[r] = step(&m, HOST_MARK_NONE, STEP_BELOW, r);
	assert_int_equal(m.n, 501);
	for (uint32_t r = 0; r < 500; r++)
		assert_int_equal(step(&m, HOST_MARK_NONE, STEP_BELOW, r),
				 first[r]);
	assert_int_equal(m.n, 501);
	host_marks_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_name_is_found_with_its_mark),
		cmocka_unit_test(names_above_are_there_without_a_mark),
		cmocka_unit_test(a_small_table_takes_little_memory),
		cmocka_unit_test(marks_are_numbered_anew),
		cmocka_unit_test(names_are_read_back_with_those_above),
		cmocka_unit_test(what_is_not_canonical_finds_nothing),
		cmocka_unit_test(an_empty_table_finds_nothing),
		cmocka_unit_test(a_collision_never_decides),
		cmocka_unit_test(the_deepest_name_is_found_level_by_level),
		cmocka_unit_test(running_out_of_memory_is_an_error),
		cmocka_unit_test(equal_steps_lead_to_equal_marks),
		cmocka_unit_test(marks_grow_with_the_sets_there_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
