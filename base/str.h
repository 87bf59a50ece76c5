/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.h - a borrowed run of bytes: pointer and length, no NUL, no ownership
 */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

struct str {
	const char *p;
	size_t n;
};

#define STR(lit)	((struct str){ "" lit, sizeof(lit) - 1 })
#define STR_NONE	((struct str){ NULL, 0 })
/* For printf: "%.*s", STR_ARG(s) */
#define STR_ARG(s)	(int)(s).n, (s).p ? (s).p : ""

static inline struct str str_from(const char *cstr)
{
	return (struct str){ cstr, cstr ? strlen(cstr) : 0 };
}

static inline struct str str_make(const void *p, size_t n)
{
	return (struct str){ p, n };
}

static inline bool str_empty(struct str s)
{
	return s.n == 0;
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* ASCII only, never the locale. */
static inline char ascii_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static inline bool ascii_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool str_ieq(struct str a, struct str b);
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
struct str str_trim(struct str s);	/* SP and HTAB at both ends */

/**
 * str_chr() - Where @c stands first in @s
 * Return: the index, or @s.n when it does not stand there
 */
size_t str_chr(struct str s, char c);
/* Where @what, which is not empty, first stands in @s, or @s.n. */
size_t str_find(struct str s, struct str what);
/* Below, at or above 0 as @a sorts before, with or behind @b: by bytes. */
int str_cmp(struct str a, struct str b);

/**
 * str_cut() - Take what stands before the first @sep off the front of @rest
 * @rest:	in: what is left; out: what stands behind the separator
 * @ret:	the part before it; the whole when there is no separator
 * Return: false when @rest was empty (@ret is then empty too)
 */
bool str_cut(struct str *rest, char sep, struct str *ret);

/* The next run of bytes between blanks (SP, HTAB); false at the end. */
bool str_word(struct str *rest, struct str *ret);

/**
 * str_to_uint() - Decimal digits only: no sign, no blank, no leading zero
 *                 beyond "0" itself, at most @max
 * Return: 0, -EINVAL or -ERANGE
 */
NODISCARD int str_to_uint(struct str s, unsigned long max, unsigned long *ret);

/* The way back: @v in decimal digits, without a NUL.  Return: how many. */
#define STR_UINT_MAX	20
size_t str_put_uint(uint64_t v, char out[STR_UINT_MAX]);

#endif /* BASE_STR_H */
