/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_path.c - paths of requests, and the patterns that take them
 *
 * Theory
 * ======
 *
 * A filter of paths is passed by when it reads one path and the origin another.
 * What is forwarded are the client's bytes, so that nothing is to be gained by
 * repairing them here: a path that origins may read in different ways is not
 * judged at all.
 *
 *	/a/../b  /a/%2e%2e/b		some resolve it, some do not
 *	/a//b				some take the two slashes for one
 *	/a%2fb  /a%5cb  /a\b		a separator or not
 *	/a%252e				decoded twice by some (proxies in front)
 *	/a%00b, controls		cut by some
 *	/%c0%ae				no UTF-8: an old way to write a dot
 *	/..;x/b				a parameter, behind which stands ".."
 *
 * The rest is decoded byte by byte, so that "/%61" is "/a" to every rule.
 */
#include "rules/rules_path.h"

#include <errno.h>

#include "base/utf8.h"

static int hex_value(char c)
{
	if (ascii_is_digit(c))
		return c - '0';
	c = ascii_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte that stands at @at, perhaps encoded; -1: none that is plain. */
static int byte_at(struct str s, size_t at, size_t *ret_used)
{
	int hi, lo;

	*ret_used = 1;
	if (s.p[at] != '%')
		return (unsigned char)s.p[at];
	if (at + 2 >= s.n)
		return -1;
	hi = hex_value(s.p[at + 1]);
	lo = hex_value(s.p[at + 2]);
	*ret_used = 3;
	return hi < 0 || lo < 0 ? -1 : 16 * hi + lo;
}

static bool is_utf8(struct str s)
{
	uint32_t cp;

	for (size_t i = 0; i < s.n;) {
		size_t n = utf8_next(str_make(s.p + i, s.n - i), &cp);

		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

/* "%" and two digits that are left when all was decoded once. */
static bool is_encoded_twice(struct str s)
{
	for (size_t i = 0; i + 2 < s.n; i++) {
		if (s.p[i] == '%' && hex_value(s.p[i + 1]) >= 0 &&
		    hex_value(s.p[i + 2]) >= 0)
			return true;
	}
	return false;
}

static bool next_segment(struct str *rest, struct str *ret)
{
	size_t end;

	if (!rest->p)
		return false;
	end = str_chr(*rest, '/');
	*ret = str_make(rest->p, end);
	*rest = end < rest->n ?
		str_make(rest->p + end + 1, rest->n - end - 1) : STR_NONE;
	return true;
}

/* Behind the slash that every path begins with. */
static struct str segments_of(struct str path)
{
	return str_make(path.p + 1, path.n - 1);
}

static struct str trimmed(struct str segment)
{
	while (segment.n > 0 && (segment.p[segment.n - 1] == '.' ||
				 segment.p[segment.n - 1] == ' '))
		segment.n--;
	return segment;
}

/* No segment that is empty, but the last, or made of dots and blanks. */
static bool has_plain_segments(struct str path)
{
	struct str rest = segments_of(path), segment;

	while (next_segment(&rest, &segment)) {
		if (str_empty(segment) && rest.p)
			return false;
		if (!str_empty(segment) && str_empty(trimmed(segment)))
			return false;
	}
	return true;
}

static int decode(struct str in, struct rules_path *ret)
{
	size_t n = 0;

	for (size_t i = 0, used; i < in.n; i += used) {
		int c = byte_at(in, i, &used);

		/* A slash is one only where it stands as such. */
		if (c < ' ' || c == 0x7f || c == '\\' ||
		    (c == '/' && used > 1) || (c >= 0x80 && used == 1))
			return -EINVAL;
		ret->text[0][n++] = (char)c;
	}
	ret->n[0] = n;
	ret->forms = 1;
	return 0;
}

/* The second reading: segments end where their parameters begin. */
static void without_parameters(struct rules_path *path)
{
	struct str rest = segments_of(str_make(path->text[0], path->n[0]));
	struct str segment;
	size_t n = 0;

	while (next_segment(&rest, &segment)) {
		size_t end = str_chr(segment, ';');

		path->text[1][n++] = '/';
		if (end > 0)
			memcpy(path->text[1] + n, segment.p, end);
		n += end;
	}
	path->n[1] = n;
	path->forms = 2;
}

int rules_path_read(struct str target, struct rules_path *ret)
{
	struct str path = str_make(target.p, str_chr(target, '?'));

	ret->forms = 0;
	ret->steps_left = RULES_PATH_STEPS;
	if (str_eq(target, STR("*")))
		return 0;
	if (str_empty(path))
		path = STR("/");
	if (path.p[0] != '/' || path.n > RULES_PATH_MAX ||
	    str_chr(path, '#') < path.n || decode(path, ret) < 0)
		return -EINVAL;
	path = str_make(ret->text[0], ret->n[0]);
	if (!is_utf8(path) || is_encoded_twice(path) ||
	    !has_plain_segments(path))
		return -EINVAL;
	if (str_chr(path, ';') == path.n)
		return 0;
	without_parameters(ret);
	return has_plain_segments(str_make(ret->text[1], ret->n[1])) ?
	       0 : -EINVAL;
}

/* --- patterns --------------------------------------------------------------- */

static int refuse(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EINVAL;
}

static bool has_any(struct str s, const char *chars)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] != '\0' && strchr(chars, s.p[i]))
			return true;
	}
	return false;
}

/* What its writer probably meant. */
static const char *pattern_fault(struct str word)
{
	if (word.p[0] != '/')
		return "is no path; a path begins with '/'";
	if (has_any(word, "?#"))
		return "has a query or a fragment in it; rules are about the "
		       "path alone";
	if (has_any(word, "[]{}()|^$"))
		return "looks like a regular expression; there are '*' within "
		       "a segment and '**' for any segments";
	if (has_any(word, "\"'`"))
		return "has a quote in it; write paths without quotes, and "
		       "%22 or %27 for one that belongs to it";
	if (has_any(word, ";"))
		return "has a ';' in it; parameters of a segment belong to no "
		       "pattern";
	for (size_t i = 0; i < word.n; i++) {
		if (word.p[i] == ',' &&
		    (i + 1 == word.n || word.p[i + 1] == '/'))
			return "has a comma between paths; separate words by "
			       "blanks";
	}
	return NULL;
}

/* Its bytes, with the two marks for '*' and '**'. */
static int decode_pattern(struct str word, char *out, size_t *ret_n)
{
	size_t n = 0;

	for (size_t i = 0, used; i < word.n; i += used) {
		int c = byte_at(word, i, &used);

		if (c < ' ' || c == 0x7f || c == '\\' || (c == '/' && used > 1))
			return -EINVAL;
		if (c == '*' && used == 1)
			c = PATH_ANY_BYTES;
		/* Two stars are one mark, wherever they stand. */
		if (c == PATH_ANY_BYTES && n > 0 &&
		    out[n - 1] == PATH_ANY_BYTES)
			out[n - 1] = PATH_ANY_SEGMENTS;
		else
			out[n++] = (char)c;
	}
	*ret_n = n;
	return 0;
}

static bool has_whole_marks(struct str pattern)
{
	struct str rest = segments_of(pattern), segment;

	while (next_segment(&rest, &segment)) {
		if (segment.n > 1 &&
		    str_chr(segment, PATH_ANY_SEGMENTS) < segment.n)
			return false;
	}
	return true;
}

int rules_path_pattern(struct str word, char *out, size_t *ret_n,
		       const char **ret_why)
{
	const char *fault = str_empty(word) ? "is empty" : pattern_fault(word);
	struct str pattern;
	size_t n;

	if (fault)
		return refuse(ret_why, fault);
	if (word.n > RULES_PATH_MAX)
		return refuse(ret_why, "is longer than any path that is judged "
			      "(4096 bytes)");
	if (decode_pattern(word, out, &n) < 0)
		return refuse(ret_why, "has a '%' that is no %XX, or an "
			      "encoded slash, backslash or control byte, which "
			      "no path that is judged can have");
	pattern = str_make(out, n);
	if (!is_utf8(pattern) || is_encoded_twice(pattern))
		return refuse(ret_why, "is encoded twice, or no UTF-8");
	if (!has_plain_segments(pattern))
		return refuse(ret_why, "has an empty segment, \".\" or \"..\" "
			      "in it, which no path that is judged can have");
	if (!has_whole_marks(pattern))
		return refuse(ret_why, "has a '**' that is no whole segment; "
			      "write /**/ or use '*'");
	*ret_n = n;
	return 0;
}

/* --- matching ---------------------------------------------------------------- */

static bool same_byte(char a, char b, bool loose)
{
	return a == b || (loose && ascii_lower(a) == ascii_lower(b));
}

/* A pattern with many stars could be tried for ever: false when it was. */
static bool spend(unsigned *left, size_t steps)
{
	*left -= (unsigned)MIN(steps, *left);
	return *left > 0;
}

/* '*' takes as little as it can, then one byte more each time. */
static bool segment_matches(struct str pattern, struct str s, bool loose,
			    unsigned *left)
{
	size_t p = 0, at = 0, star = pattern.n, retry = 0;

	while (at < s.n) {
		if (!spend(left, 1))
			return false;
		if (p < pattern.n && pattern.p[p] == PATH_ANY_BYTES) {
			star = p++;
			retry = at;
		} else if (p < pattern.n &&
			   same_byte(pattern.p[p], s.p[at], loose)) {
			p++;
			at++;
		} else if (star < pattern.n) {
			p = star + 1;
			at = ++retry;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == PATH_ANY_BYTES)
		p++;
	return p == pattern.n;
}

static bool one_matches(struct str pattern, struct str segment, bool loose,
			unsigned *left)
{
	return segment_matches(pattern, segment, loose, left) ||
	       (loose && segment_matches(trimmed(pattern), trimmed(segment),
					 loose, left));
}

static bool is_any_segments(struct str pattern)
{
	return pattern.n == 1 && pattern.p[0] == PATH_ANY_SEGMENTS;
}

/*
 * As above, with segments for bytes.  At the end of a pattern '**' takes at
 * least one, so that /a/ ** is what is below /a, and not /a.
 */
static bool path_matches(struct str pattern, struct str path, bool loose,
			 unsigned *left)
{
	struct str p = segments_of(pattern), s = segments_of(path);
	struct str star = STR_NONE, retry = STR_NONE, word, segment, before;

	while (s.p && spend(left, 1 + str_chr(s, '/') / 32)) {
		before = p;
		if (next_segment(&p, &word) && is_any_segments(word)) {
			if (!p.p)
				return true;
			star = p;
			retry = s;
			continue;
		}
		next_segment(&s, &segment);
		if (before.p && one_matches(word, segment, loose, left))
			continue;
		if (!star.p)
			return false;
		p = star;
		s = retry;
		next_segment(&s, &segment);
		retry = s;
	}
	return !s.p && !p.p;
}

bool rules_path_is_in(struct rules_path *path, struct str pattern)
{
	for (unsigned i = 0; i < path->forms; i++) {
		if (!path_matches(pattern, str_make(path->text[i], path->n[i]),
				  false, &path->steps_left))
			return false;
	}
	return path->forms > 0;
}

/* "/a" and "/a/" are one to most that route by paths. */
static bool form_may_match(struct rules_path *path, unsigned form,
			   struct str pattern)
{
	struct str text = str_make(path->text[form], path->n[form]);
	bool ends = text.p[text.n - 1] == '/';

	if (path_matches(pattern, text, true, &path->steps_left))
		return true;
	if (text.n == 1)
		return false;
	if (ends)
		text.n--;
	else
		path->text[form][text.n++] = '/';
	return path_matches(pattern, text, true, &path->steps_left);
}

bool rules_path_may_be_in(struct rules_path *path, struct str pattern)
{
	for (unsigned i = 0; i < path->forms; i++) {
		if (form_may_match(path, i, pattern))
			return true;
	}
	return path->forms > 0 && path->steps_left == 0;
}

/* --- writing ---------------------------------------------------------------- */

/* RFC 3986 2.3 and 3.3, less what a pattern or a policy text would read. */
static bool is_plain(char c)
{
	return ascii_is_digit(c) || (ascii_lower(c) >= 'a' &&
	       ascii_lower(c) <= 'z') || (c && strchr("/-._~:@!$&'()+,=", c));
}

int rules_path_write(struct str pattern, const char *bytes,
		     const char *segments, struct buf *out)
{
	int e = 0;

	for (size_t i = 0; i < pattern.n && !e; i++) {
		char c = pattern.p[i];

		if (c == PATH_ANY_BYTES)
			e = buf_add_str(out, str_from(bytes));
		else if (c == PATH_ANY_SEGMENTS)
			e = buf_add_str(out, str_from(segments));
		else if (is_plain(c))
			e = buf_add_char(out, c);
		else
			e = buf_printf(out, "%%%02X", (unsigned char)c);
	}
	return e;
}
