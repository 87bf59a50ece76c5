/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_fuzz.c - any bytes as a JSON string: the line is one line, is shown
 *               safely, and another library reads the same bytes from it
 */
#include <jansson.h>

#include "base/json.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* What a reader must find: each byte that is no UTF-8 as its own character. */
static void expect(struct buf *out, struct str in)
{
	for (size_t i = 0; i < in.n;) {
		uint32_t cp;
		size_t n = utf8_next(str_make(in.p + i, in.n - i), &cp);
		uint8_t b = (uint8_t)in.p[i];

		if (n > 0) {
			REQUIRE(buf_add(out, in.p + i, n) == 0);
			i += n;
			continue;
		}
		REQUIRE(buf_add_char(out, (char)(0xc0 | b >> 6)) == 0);
		REQUIRE(buf_add_char(out, (char)(0x80 | (b & 0x3f))) == 0);
		i++;
	}
}

static void check_shown_safely(struct str line)
{
	for (size_t i = 0; i < line.n;) {
		uint32_t cp;
		size_t n = utf8_next(str_make(line.p + i, line.n - i), &cp);

		REQUIRE(n > 0 && !utf8_is_hidden(cp));
		i += n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct buf line = BUF_INIT(SIZE_MAX / 2), want = BUF_INIT(SIZE_MAX / 2);
	struct str in = str_make(data, n);
	json_t *root, *value;
	struct json j;

	json_begin(&j, &line);
	json_object_begin(&j, NULL);
	json_str(&j, "k", in);
	json_uint(&j, "n", n);
	json_object_end(&j);
	REQUIRE(json_end(&j) == 0);
	check_shown_safely(buf_str(&line));
	root = json_loadb(line.p, line.n, JSON_ALLOW_NUL, NULL);
	REQUIRE(root);
	value = json_object_get(root, "k");
	expect(&want, in);
	REQUIRE(str_eq(buf_str(&want), str_make(json_string_value(value),
						json_string_length(value))));
	json_decref(root);
	buf_done(&line);
	buf_done(&want);
	return 0;
}
