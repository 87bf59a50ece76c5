/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_path_fuzz.c - any bytes as a pattern and a path
 *
 * The input is a pattern, a NUL and a request target.  What must hold:
 *
 * - a path that is not ambiguous has no dot segment, no empty one but the last,
 *   no control byte and nothing that is still encoded;
 * - what an allow takes a deny takes as well;
 * - to encode a letter of the path changes nothing.
 */
#include <stdint.h>

#include "rules/rules_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_form(struct str path)
{
	struct str rest = str_make(path.p + 1, path.n - 1), segment;

	REQUIRE(path.n > 0 && path.p[0] == '/');
	for (size_t i = 0; i < path.n; i++) {
		unsigned char c = (unsigned char)path.p[i];

		REQUIRE(c >= ' ' && c != 0x7f && c != '\\');
	}
	while (str_cut(&rest, '/', &segment)) {
		REQUIRE(!str_eq(segment, STR(".")) &&
			!str_eq(segment, STR("..")));
		REQUIRE(!str_empty(segment) || str_empty(rest));
	}
}

/* The same path with its last plain letter encoded. */
static void check_encoded(struct str target, const struct rules_path *path)
{
	static char text[RULES_PATH_MAX + 2];
	static struct rules_path again;
	size_t end = str_chr(target, '?'), at = end;

	while (at > 1 && !(target.p[at - 1] >= 'g' && target.p[at - 1] <= 'z'))
		at--;
	if (at <= 1 || end + 2 > RULES_PATH_MAX ||
	    (at > 1 && target.p[at - 2] == '%'))
		return;
	memcpy(text, target.p, at - 1);
	text[at - 1] = '%';
	text[at] = "0123456789abcdef"[(unsigned char)target.p[at - 1] >> 4];
	text[at + 1] = "0123456789abcdef"[target.p[at - 1] & 15];
	memcpy(text + at + 2, target.p + at, end - at);
	REQUIRE(rules_path_read(str_make(text, end + 2), &again) == 0);
	REQUIRE(again.forms == path->forms);
	for (unsigned i = 0; i < path->forms; i++)
		REQUIRE(str_eq(str_make(again.text[i], again.n[i]),
			       str_make(path->text[i], path->n[i])));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char pattern[1 << 16];
	static struct rules_path path;
	struct str text = str_make(data, n);
	size_t cut = str_chr(text, '\0');
	struct str word = str_make(text.p, cut);
	struct str target = str_make(text.p + MIN(cut + 1, n),
				     n - MIN(cut + 1, n));
	const char *why = NULL;
	bool is_pattern;
	size_t len = 0;

	if (word.n > sizeof(pattern))
		return 0;
	is_pattern = rules_path_pattern(word, pattern, &len, &why) == 0;
	REQUIRE(is_pattern || why);
	if (rules_path_read(target, &path) < 0)
		return 0;
	REQUIRE(path.forms <= 2);
	for (unsigned i = 0; i < path.forms; i++)
		check_form(str_make(path.text[i], path.n[i]));
	if (path.forms > 0)
		check_encoded(target, &path);
	if (is_pattern && rules_path_is_in(&path, str_make(pattern, len)))
		REQUIRE(rules_path_may_be_in(&path, str_make(pattern, len)));
	return 0;
}
