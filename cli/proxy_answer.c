/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_answer.c - what a proxy says to a CONNECT
 *
 * Any proxy may be asked, so little is expected of the head: a status, an end,
 * a length perhaps.  The body is read for people only, and only if it is a
 * JSON object of plain members, as ours is.
 */
#include "cli/proxy_answer.h"

#include <stdint.h>

#define STATUS_LINE_MIN	12	/* "HTTP/1.1 200" */

/* --- the head ----------------------------------------------------------------- */

static bool status_line(struct str line, struct proxy_answer *ret)
{
	unsigned long status;

	if (str_ends(line, STR("\r")))
		line.n--;
	if (line.n < STATUS_LINE_MIN || !str_starts(line, STR("HTTP/1.")) ||
	    !ascii_is_digit(line.p[7]) || line.p[8] != ' ' ||
	    str_to_uint(str_make(line.p + 9, 3), 999, &status) < 0)
		return false;
	if (line.n > STATUS_LINE_MIN && line.p[STATUS_LINE_MIN] != ' ')
		return false;
	ret->status = (unsigned)status;
	ret->phrase = str_trim(str_make(line.p + STATUS_LINE_MIN,
					line.n - STATUS_LINE_MIN));
	return true;
}

static void field(struct str line, struct proxy_answer *ret)
{
	struct str name;
	unsigned long length;

	if (!str_cut(&line, ':', &name) ||
	    !str_ieq(name, STR("Content-Length")))
		return;
	if (str_ends(line, STR("\r")))
		line.n--;
	if (str_to_uint(str_trim(line), UINT32_MAX, &length) == 0)
		ret->length = length;
}

enum proxy_answer_result proxy_answer_parse(struct str in,
					    struct proxy_answer *ret)
{
	static const struct str begin = { "HTTP/1.", 7 };
	size_t end = str_find(in, STR("\r\n\r\n"));
	struct str rest, line;

	*ret = (struct proxy_answer){ .length = SIZE_MAX };
	if (!str_starts(begin, str_make(in.p, MIN(in.n, begin.n))))
		return PROXY_ANSWER_BAD;
	if (end == in.n)
		return PROXY_ANSWER_MORE;
	rest = str_make(in.p, end);
	if (!str_cut(&rest, '\n', &line) || !status_line(line, ret))
		return PROXY_ANSWER_BAD;
	while (str_cut(&rest, '\n', &line))
		field(line, ret);
	ret->head = end + 4;
	return PROXY_ANSWER_DONE;
}

/* --- the body ----------------------------------------------------------------- */

struct reader {
	struct str in;
	size_t at;
};

static char peek(const struct reader *r)
{
	return r->at < r->in.n ? r->in.p[r->at] : '\0';
}

static bool is_of(struct str set, char c)
{
	return str_chr(set, c) < set.n;
}

static void skip_blanks(struct reader *r)
{
	while (r->at < r->in.n && is_of(STR(" \t\r\n"), peek(r)))
		r->at++;
}

static bool take(struct reader *r, char c)
{
	skip_blanks(r);
	if (r->at == r->in.n || peek(r) != c)
		return false;
	r->at++;
	return true;
}

/* Behind a backslash.  What has no place in a line is '?'. */
static char escaped(struct reader *r)
{
	char c = peek(r);

	r->at += r->at < r->in.n;
	if (c == 'u') {
		r->at = MIN(r->at + 4, r->in.n);
		return '?';
	}
	return c == '"' || c == '\\' || c == '/' ? c : '?';
}

struct text {
	char *p;
	size_t n, cap;		/* p == NULL: read over it */
};

static void text_add(struct text *t, char c)
{
	if (!t->p || t->n + 1 >= t->cap)
		return;
	t->p[t->n++] = c < 0x20 || c > 0x7e ? '?' : c;
}

static bool take_text(struct reader *r, struct text *t)
{
	if (!take(r, '"'))
		return false;
	while (r->at < r->in.n) {
		char c = r->in.p[r->at++];

		if (c == '"') {
			if (t->p)
				t->p[t->n] = '\0';
			return true;
		}
		text_add(t, c == '\\' ? escaped(r) : c);
	}
	return false;
}

/* A number, true, false, null. */
static bool skip_word(struct reader *r)
{
	size_t from;

	skip_blanks(r);
	from = r->at;
	while (r->at < r->in.n && !is_of(STR(",}]{[\" \t\r\n"), peek(r)))
		r->at++;
	return r->at > from;
}

/* One member; its value goes to @t when it is the one that is asked for. */
static bool take_member(struct reader *r, struct str name, struct text *t,
			bool *ret_found)
{
	char key[32];
	struct text k = { key, 0, sizeof(key) }, none = { NULL, 0, 0 };
	bool wanted;

	if (!take_text(r, &k) || !take(r, ':'))
		return false;
	wanted = str_eq(str_make(key, k.n), name);
	skip_blanks(r);
	if (peek(r) != '"')
		return skip_word(r);
	*ret_found = wanted;
	return take_text(r, wanted ? t : &none);
}

bool proxy_answer_member(struct str json, struct str name, char *out,
			 size_t cap)
{
	struct reader r = { json, 0 };
	struct text t = { out, 0, cap };
	bool found = false;

	REQUIRE(cap > 0);
	if (!take(&r, '{'))
		return false;
	do {
		if (!take_member(&r, name, &t, &found))
			return false;
	} while (!found && take(&r, ','));
	return found;
}
