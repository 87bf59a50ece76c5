/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_path_test.c - paths as origins read them, and patterns of them
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules/rules_path.h"

static bool reads(const char *target, struct rules_path *ret)
{
	return rules_path_read(str_from(target), ret) == 0;
}

static bool takes(const char *word, const char *target, bool loose)
{
	char pattern[RULES_PATH_MAX];
	struct rules_path path;
	const char *why;
	size_t n;

	if (rules_path_pattern(str_from(word), pattern, &n, &why) < 0)
		fail_msg("pattern '%s' %s", word, why);
	if (!reads(target, &path))
		fail_msg("'%s' is ambiguous", target);
	return loose ? rules_path_may_be_in(&path, str_make(pattern, n)) :
		       rules_path_is_in(&path, str_make(pattern, n));
}

static void a_path_is_compared_decoded(void **state)
{
	static const char *const same[][2] = {
		{ "/", "/" }, { "", "/" }, { "?x=1", "/" }, { "/?x", "/" },
		{ "/%61bc", "/abc" }, { "/%41", "/A" }, { "/a%20b", "/a b" },
		{ "/a?b=/../c", "/a" }, { "/100%25", "/100%" },
		{ "/%e4%bd%a0", "/\xe4\xbd\xa0" }, { "/a%2Bb", "/a+b" },
		{ "/~a/-._", "/~a/-._" }, { "/a/", "/a/" }, { "/a*", "/a*" },
		{ "/Inc.", "/Inc." }, { "/a..b", "/a..b" },
		{ "/%3fx", "/?x" }, { "/a:b@c,d", "/a:b@c,d" },
	};
	struct rules_path path;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
		if (!reads(same[i][0], &path) || path.forms != 1 ||
		    !str_eq(str_make(path.text[0], path.n[0]),
			    str_from(same[i][1])))
			fail_msg("'%s' is not '%s'", same[i][0], same[i][1]);
	}
	assert_true(reads("*", &path));
	assert_int_equal(path.forms, 0);
}

/* POL-22 */
static void what_origins_read_in_two_ways_is_ambiguous(void **state)
{
	static const char *const bad[] = {
		"/public/../secret", "/public/%2e%2e/secret",
		"/public/.%2E/secret", "//public/..//secret",
		"/public/..;a/secret", "/public/%2e%2e%2fsecret",
		"/public/./x", "/public/.", "/public/..", "/..", "/.", "//",
		"//a", "/a//b", "/a//", "/a%2fb", "/a%2Fb", "/a%5cb", "/a\\b",
		"/a%00b", "/a%0ab", "/a%7f", "/a\tb", "/a\x01", "/a%",
		"/a%2", "/a%zz", "/a%u002e", "/%252e%252e/x", "/%25252e",
		"/a%25%32%65", "/%c0%ae%c0%ae/x", "/%c0%af", "/%e4", "/\xe4",
		"/\xe4\xbd\xa0", "/a/;x/b", "/a/.;x", "/a/%3bx/b",
		"/.../x", "/a/.. /b", "/a/%20/b", "/a/. ", "/a#b", "a", "a/b",
		"http://x/", "/x/..;/y", "/x/;/../y", "/x/..%3b/y",
	};
	struct rules_path path;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (reads(bad[i], &path))
			fail_msg("taken: '%s'", bad[i]);
	}
}

static void a_path_has_a_longest_length(void **state)
{
	char text[RULES_PATH_MAX + 2];
	struct rules_path path;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	assert_int_equal(rules_path_read(str_make(text, RULES_PATH_MAX),
					 &path), 0);
	assert_true(rules_path_read(str_make(text, RULES_PATH_MAX + 1),
				    &path) < 0);
}

static void patterns_go_segment_by_segment(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool in;
	} t[] = {
		{ "/", "/", true }, { "/", "/a", false },
		{ "/a", "/a", true }, { "/a", "/a/", false },
		{ "/a", "/A", false }, { "/a", "/ab", false },
		{ "/a/", "/a/", true }, { "/a/", "/a", false },
		{ "/*", "/a", true }, { "/*", "/", true },
		{ "/*", "/a/b", false }, { "/a*", "/a", true },
		{ "/a*c", "/abbc", true }, { "/a*c", "/acb", false },
		{ "/a*b*c", "/aXbYbZc", true }, { "/*.txt", "/x.txt", true },
		{ "/*.txt", "/x/y.txt", false }, { "/a/*/c", "/a/b/c", true },
		{ "/a/*/c", "/a/c", false }, { "/a/*/c", "/a/b/b/c", false },
		{ "/**", "/", true }, { "/**", "/a/b/c", true },
		{ "/a/**", "/a/b", true }, { "/a/**", "/a/b/c/", true },
		{ "/a/**", "/a/", true }, { "/a/**", "/a", false },
		{ "/a/**", "/ab/c", false }, { "/**/c", "/c", true },
		{ "/**/c", "/a/b/c", true }, { "/**/c", "/a/c/b", false },
		{ "/a/**/b/**/c", "/a/b/c", true },
		{ "/a/**/b/**/c", "/a/x/b/y/z/c", true },
		{ "/a/**/b/**/c", "/a/x/c", false },
		{ "/**/b/*", "/b/x/b/y", true },
		{ "/**/*.js", "/x/y.js", true },
				{ "/v2/projects/acme/**", "/v2/projects/acme/1", true },
		{ "/v2/projects/acme/**", "/v2/projects/other/1", false },
		/* Parameters: both readings must be taken. */
		{ "/a/*", "/a/b;v=1", true }, { "/a/b", "/a/b;v=1", false },
		{ "/a/b*", "/a/b;v=1", true },
		/* A pattern is decoded like a path. */
		{ "/%61", "/a", true }, { "/a%2ab", "/a*b", true },
		{ "/a%2ab", "/axb", false }, { "/\xe4\xbd\xa0", "/%e4%bd%a0",
		  true },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		if (takes(t[i].pattern, t[i].path, false) != t[i].in)
			fail_msg("'%s' and '%s'", t[i].pattern, t[i].path);
	}
}

static void a_deny_takes_what_any_origin_might(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool in;
	} t[] = {
		{ "/admin/**", "/ADMIN/x", true },
		{ "/Admin/**", "/admin/x", true },
		{ "/admin/**", "/admin./x", true },
		{ "/admin/**", "/admin%20/x", true },
		{ "/a/b", "/a/b;v=1", true },
		{ "/admin/**", "/administrator/x", false },
		{ "/admin", "/admin/", true }, { "/admin/", "/admin", true },
		{ "/admin/**", "/admin", true }, { "/admin", "/Admin./", true },
		{ "/a/b", "/a/b/;v=1", true }, { "/admin", "/admin/x", false },
		{ "/*/", "/", false }, { "/", "/a", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		if (takes(t[i].pattern, t[i].path, true) != t[i].in)
			fail_msg("'%s' and '%s'", t[i].pattern, t[i].path);
	}
}

/* A pattern of many stars, and a path that almost fits it in many ways. */
static void a_path_that_takes_too_long_is_in_doubt(void **state)
{
	char pattern[] = "/" "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
	char text[RULES_PATH_MAX + 1], plain[] = "/x";
	struct rules_path path;
	unsigned tries = 0;
	const char *why;
	size_t n;

	(void)state;
	memset(text, 'a', sizeof(text));
	text[0] = '/';
	assert_int_equal(rules_path_pattern(str_from(pattern), pattern, &n,
					    &why), 0);
	assert_int_equal(rules_path_read(str_make(text, RULES_PATH_MAX),
					 &path), 0);
	while (path.steps_left > 0 && tries++ < RULES_PATH_STEPS)
		assert_false(rules_path_is_in(&path, str_make(pattern, n)));
	assert_int_equal(path.steps_left, 0);
	assert_true(tries > 10);
	assert_true(rules_path_may_be_in(&path, str_make(plain, 2)));
	assert_false(rules_path_is_in(&path, str_make(text, path.n[0])));
	/* A slash more than the longest path has room. */
	assert_int_equal(rules_path_read(str_make(text, RULES_PATH_MAX),
					 &path), 0);
	assert_false(rules_path_may_be_in(&path, str_make(plain, 2)));
	/* The fewest bytes are a step, too. */
	assert_true(reads("/", &path));
	for (tries = 0; path.steps_left > 0; tries++)
		assert_false(rules_path_is_in(&path, str_make(plain, 2)));
	assert_true(tries <= RULES_PATH_STEPS);
}

static void patterns_are_refused_with_the_mend(void **state)
{
	static const struct {
		const char *word, *why;
	} bad[] = {
		{ "", "is empty" },
		{ "v1/*", "is no path; a path begins with '/'" },
		{ "https://x/", "is no path" },
		/* POL-14 */
		{ "/v1/*,/v2/*", "has a comma between paths; separate words" },
		{ "/v1/*,", "has a comma between paths" },
		{ "/a?b", "has a query or a fragment" },
		{ "/a#b", "has a query or a fragment" },
		{ "/[ab]", "looks like a regular expression" },
		{ "/{a,b}", "looks like a regular expression" },
		{ "/a$", "looks like a regular expression" },
		{ "\"/a\"", "is no path" }, { "/\"a\"", "has a quote in it" },
		{ "/a;x", "has a ';' in it" },
		{ "/a**", "has a '**' that is no whole segment" },
		{ "/**b", "has a '**' that is no whole segment" },
		{ "/***", "has a '**' that is no whole segment" },
		{ "/a//b", "has an empty segment" },
		{ "/a/../b", "has an empty segment, \".\" or \"..\"" },
		{ "/./b", "has an empty segment" },
		{ "/%2e%2e/b", "has an empty segment" },
		{ "/a%2fb", "has a '%' that is no %XX, or an encoded slash" },
		{ "/a\\b", "has a '%' that is no %XX, or an encoded slash" },
		{ "/a%", "has a '%' that is no %XX" },
		{ "/a%01", "has a '%' that is no %XX" },
		{ "/%252e", "is encoded twice" }, { "/%e4", "or no UTF-8" },
	};
	char pattern[64];
	const char *why;
	size_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		why = "";
		if (rules_path_pattern(str_from(bad[i].word), pattern, &n,
				       &why) == 0)
			fail_msg("taken: '%s'", bad[i].word);
		if (strncmp(why, bad[i].why, strlen(bad[i].why)) != 0 &&
		    !strstr(why, bad[i].why))
			fail_msg("'%s' %s", bad[i].word, why);
	}
}

/* --- against a naive matcher ------------------------------------------------- */

static uint64_t seed;

static unsigned draw(unsigned below)
{
	seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

static bool naive_segment(const char *p, const char *s)
{
	if (*p == '\0' || *p == '/')
		return *s == '\0' || *s == '/';
	if (*p == '*')
		return naive_segment(p + 1, s) ||
		       (*s && *s != '/' && naive_segment(p, s + 1));
	return *p == *s && naive_segment(p + 1, s + 1);
}

/* Both at the beginning of a segment, or NULL behind the last. */
static bool naive(const char *p, const char *s)
{
	const char *next_p = p ? strchr(p, '/') : NULL;
	const char *next_s = s ? strchr(s, '/') : NULL;

	if (next_p)
		next_p++;
	if (next_s)
		next_s++;
	if (!p)
		return !s;
	if (strncmp(p, "**", 2) == 0) {
		if (!next_p)
			return s != NULL;
		return naive(next_p, s) || (s && naive(p, next_s));
	}
	return s && naive_segment(p, s) && naive(next_p, next_s);
}

static void draw_path(char *out, bool pattern)
{
	static const char *const words[] = { "a", "b", "ab", "ba", "aa", "*",
					     "a*", "*b", "a*b", "**" };
	unsigned segments = 1 + draw(5), n = 0;

	for (unsigned i = 0; i < segments; i++) {
		const char *w = words[draw(pattern ? ARRAY_SIZE(words) : 5)];

		out[n++] = '/';
		memcpy(out + n, w, strlen(w));
		n += (unsigned)strlen(w);
	}
	if (draw(4) == 0)
		out[n++] = '/';
	out[n] = '\0';
}

static void patterns_match_as_a_naive_matcher_does(void **state)
{
	unsigned in = 0;

	(void)state;
	for (unsigned i = 1; i <= 20000; i++) {
		char word[64], path[64];
		bool got, wanted;

		seed = i * UINT64_C(0xd1342543de82ef95);
		draw_path(word, true);
		draw_path(path, false);
		got = takes(word, path, false);
		wanted = naive(word + 1, path + 1);
		if (got != wanted)
			fail_msg("'%s' and '%s': %d", word, path, got);
		assert_true(!got || takes(word, path, true));
		in += got;
	}
	assert_true(in > 500 && in < 19500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_compared_decoded),
		cmocka_unit_test(what_origins_read_in_two_ways_is_ambiguous),
		cmocka_unit_test(a_path_has_a_longest_length),
		cmocka_unit_test(patterns_go_segment_by_segment),
		cmocka_unit_test(a_deny_takes_what_any_origin_might),
		cmocka_unit_test(a_path_that_takes_too_long_is_in_doubt),
		cmocka_unit_test(patterns_are_refused_with_the_mend),
		cmocka_unit_test(patterns_match_as_a_naive_matcher_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
