/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ini_fuzz.c - any bytes as INI: lines come in order, in bounds and unchanged
 */
#include <errno.h>

#include "base/ini.h"
#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct reading {
	struct str text;
	unsigned line;		/* of what was told last */
	unsigned errors;
	char section[INI_SECTION_MAX];
	size_t section_n;
};

/* What is told has a line, and one thing only is told of a line. */
static void on_line(struct reading *r, unsigned line, bool error)
{
	REQUIRE(line > r->line || (error && line == r->line));
	REQUIRE(line <= r->text.n + 1);
	r->line = line;
}

/* Printable, without blanks at its ends, and a part of the text. */
static void check_part(const struct reading *r, struct str s)
{
	struct str trimmed = str_trim(s);

	REQUIRE(trimmed.n == s.n);
	REQUIRE(s.n == 0 || memmem(r->text.p, r->text.n, s.p, s.n));
	for (size_t i = 0; i < s.n;) {
		uint32_t cp;
		size_t len = utf8_next(str_make(s.p + i, s.n - i), &cp);

		REQUIRE(len > 0 && (cp == '\t' || !utf8_is_hidden(cp)));
		i += len;
	}
}

static void on_section(void *arg, unsigned line, struct str name)
{
	struct reading *r = arg;

	on_line(r, line, false);
	check_part(r, name);
	REQUIRE(name.n > 0 && name.n <= INI_SECTION_MAX);
	memcpy(r->section, name.p, name.n);
	r->section_n = name.n;
}

static void on_key(void *arg, unsigned line, struct str section, struct str key,
		   struct str value)
{
	struct reading *r = arg;

	on_line(r, line, false);
	REQUIRE(str_eq(section, str_make(r->section, r->section_n)));
	REQUIRE(key.n > 0 && str_chr(key, '=') == key.n);
	check_part(r, key);
	check_part(r, value);
}

static void on_error(void *arg, unsigned line, unsigned column,
		     const char *message)
{
	struct reading *r = arg;

	r->errors++;
	on_line(r, line, r->errors > INI_ERRORS_MAX);
	REQUIRE(column >= 1 && column <= r->text.n + 1);
	REQUIRE(message[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct ini_handler handler = {
		on_section, on_key, on_error,
	};
	static const char *const words[] = {
		"hosts", "addresses", "ports", NULL,
	};
	struct reading r = { .text = str_make(data, n) };
	int err = ini_read(r.text, &handler, &r);

	REQUIRE(err == (r.errors > 0 ? -EINVAL : 0));
	REQUIRE(r.errors <= INI_ERRORS_MAX + 1);
	(void)ini_did_you_mean(r.text, words);
	return 0;
}
