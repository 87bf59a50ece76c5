/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.c - borrowed strings, and what happens when a REQUIRE() breaks
 */
#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

void require_failed(const char *cond, const char *file, int line)
{
	fprintf(stderr, "penstock: broken assumption: %s (%s:%d)\n", cond,
		file, line);
	abort();
}

bool str_ieq(struct str a, struct str b)
{
	if (a.n != b.n)
		return false;
	for (size_t i = 0; i < a.n; i++) {
		if (ascii_lower(a.p[i]) != ascii_lower(b.p[i]))
			return false;
	}
	return true;
}

bool str_starts(struct str s, struct str prefix)
{
	return s.n >= prefix.n && str_eq(str_make(s.p, prefix.n), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n &&
	       str_eq(str_make(s.p + s.n - suffix.n, suffix.n), suffix);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct str str_trim(struct str s)
{
	while (s.n > 0 && is_blank(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && is_blank(s.p[s.n - 1]))
		s.n--;
	return s;
}

size_t str_chr(struct str s, char c)
{
	const char *at = s.n ? memchr(s.p, c, s.n) : NULL;

	return at ? (size_t)(at - s.p) : s.n;
}

size_t str_find(struct str s, struct str what)
{
	const char *at = s.n ? memmem(s.p, s.n, what.p, what.n) : NULL;

	return at ? (size_t)(at - s.p) : s.n;
}

int str_cmp(struct str a, struct str b)
{
	size_t n = MIN(a.n, b.n);
	int c = n ? memcmp(a.p, b.p, n) : 0;

	return c || a.n == b.n ? c : a.n < b.n ? -1 : 1;
}

bool str_cut(struct str *rest, char sep, struct str *ret)
{
	size_t at;

	if (str_empty(*rest)) {
		*ret = STR_NONE;
		return false;
	}
	at = str_chr(*rest, sep);
	*ret = str_make(rest->p, at);
	if (at == rest->n)
		*rest = str_make(rest->p + at, 0);
	else
		*rest = str_make(rest->p + at + 1, rest->n - at - 1);
	return true;
}

bool str_word(struct str *rest, struct str *ret)
{
	size_t n = 0;

	*rest = str_trim(*rest);
	while (n < rest->n && !is_blank(rest->p[n]))
		n++;
	*ret = str_make(rest->p, n);
	*rest = str_make(rest->p + n, rest->n - n);
	return n > 0;
}

int str_to_uint(struct str s, unsigned long max, unsigned long *ret)
{
	unsigned long v = 0;

	if (s.n == 0 || (s.n > 1 && s.p[0] == '0'))
		return -EINVAL;
	for (size_t i = 0; i < s.n; i++) {
		unsigned long digit;

		if (!ascii_is_digit(s.p[i]))
			return -EINVAL;
		digit = (unsigned long)(s.p[i] - '0');
		if (digit > max || v > (max - digit) / 10)
			return -ERANGE;
		v = v * 10 + digit;
	}
	*ret = v;
	return 0;
}

size_t str_put_uint(uint64_t v, char out[STR_UINT_MAX])
{
	char digits[STR_UINT_MAX];
	size_t n = 0;

	do {
		digits[STR_UINT_MAX - ++n] = (char)('0' + v % 10);
		v /= 10;
	} while (v > 0);
	memcpy(out, digits + STR_UINT_MAX - n, n);
	return n;
}
