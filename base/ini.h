/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ini.h - INI through inih, with every line seen by us first
 *
 * inih cuts section names at 49 characters, never reports empty or doubled
 * sections, joins continuation lines, takes ':' for '=' and strips inline
 * comments.  Here the reader that feeds inih sees each line itself and refuses
 * what inih would quietly change: NUL, a lone CR, bytes that are not UTF-8,
 * control bytes and hidden characters, lines over INI_LINE_MAX, section names
 * over INI_SECTION_MAX, continuations (a line that begins with a blank and has
 * no '='), ':' before '=', anything behind "]".  A byte order mark, CRLF and
 * blanks around a line are accepted and mean nothing.
 * Comments are whole lines whose first character is ';' or '#'; in a value
 * both are ordinary.
 */
#ifndef BASE_INI_H
#define BASE_INI_H

#include "base/compiler.h"
#include "base/str.h"

#define INI_LINE_MAX	8192	/* bytes, without the line's end */
#define INI_SECTION_MAX	48	/* bytes */
#define INI_ERRORS_MAX	64	/* then the reading stops */

struct ini_handler {
	/* Each section line, empty and doubled ones too. */
	void (*on_section)(void *arg, unsigned line, struct str name);
	/*
	 * Trimmed; @value may be empty, and is a part of the text that is
	 * read, as @key is.  @section is the last section line's.
	 */
	void (*on_key)(void *arg, unsigned line, struct str section,
		       struct str key, struct str value);
	/*
	 * Each fault, in the order of lines, one a line; @column counts bytes
	 * from 1.  Reading goes on behind it; keys under a section line that
	 * was refused are passed over.
	 */
	void (*on_error)(void *arg, unsigned line, unsigned column,
			 const char *message);
};

/**
 * ini_read() - Read a whole text
 *
 * What the handlers are given lives until they return.
 *
 * Return: 0, -EINVAL when on_error() was called, -ENOMEM
 */
NODISCARD int ini_read(struct str text, const struct ini_handler *h, void *arg);

/**
 * ini_did_you_mean() - The word that was probably meant
 * @words:	known words, behind the last one NULL
 *
 * Return: the nearest of @words by edit distance without regard to case, the
 * first of equals, or NULL when none is near
 */
const char *ini_did_you_mean(struct str given, const char *const *words);

#endif /* BASE_INI_H */
