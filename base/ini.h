/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ini.h - INI through inih, with every line seen by us first
 *
 * inih cuts section names at 49 characters, never reports empty or doubled
 * sections, joins continuation lines and strips inline comments.  Here the
 * reader that feeds inih sees each line itself and refuses what inih would
 * quietly change: NUL, a lone CR, bytes that are not UTF-8, control bytes, lines over
 * INI_LINE_MAX, section names over INI_SECTION_MAX, continuation lines,
 * anything behind "]".  A byte order mark and CRLF are accepted.  Comments are
 * whole lines that begin with ';' or '#'.
 */
#ifndef BASE_INI_H
#define BASE_INI_H

#include "base/compiler.h"
#include "base/str.h"

#define INI_LINE_MAX	8192
#define INI_SECTION_MAX	48

struct ini_handler {
	/* Each section line, empty and doubled ones too. */
	void (*on_section)(void *arg, unsigned line, struct str name);
	/* Trimmed; @value may be empty. @section is the last section line's. */
	void (*on_key)(void *arg, unsigned line, struct str section,
		       struct str key, struct str value);
	/* Each fault, in the order of lines; reading goes on behind it. */
	void (*on_error)(void *arg, unsigned line, unsigned column,
			 const char *message);
};

/**
 * ini_read() - Read a whole text
 * Return: 0, -EINVAL when on_error() was called, -ENOMEM
 */
NODISCARD int ini_read(struct str text, const struct ini_handler *h, void *arg);

/* The nearest of @words to @given by edit distance, or NULL when none is near. */
const char *ini_did_you_mean(struct str given, const char *const *words);

#endif /* BASE_INI_H */
