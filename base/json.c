/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - append-only JSON writer into a buf
 */
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>

#include "base/utf8.h"

static void keep_first(struct json *j, int err)
{
	if (!j->err)
		j->err = err;
}

/* Where @n bytes more go, taken as written; NULL once something failed. */
static char *room(struct json *j, size_t n)
{
	struct buf *b = j->out;
	char *at;

	if (!j->err && (!b->p || n > b->cap - b->n))
		keep_first(j, buf_reserve(b, n));
	if (j->err)
		return NULL;
	at = b->p + b->n;
	b->n += n;
	return at;
}

static void put(struct json *j, struct str s)
{
	char *at = s.n ? room(j, s.n) : NULL;

	if (at)
		memcpy(at, s.p, s.n);
}

static void put_uint(struct json *j, uint64_t v)
{
	char digits[STR_UINT_MAX];

	put(j, str_make(digits, str_put_uint(v, digits)));
}

/* The ASCII that stands for itself: nearly all there is in a record. */
static bool is_plain(char c)
{
	return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}

static bool must_escape(uint32_t cp)
{
	return cp == '"' || cp == '\\' || utf8_is_hidden(cp);
}

/* Beyond U+FFFF JSON has two escapes (RFC 8259 7). */
static void put_code_units(struct json *j, uint32_t cp)
{
	if (j->err)
		return;
	if (cp <= 0xffff) {
		keep_first(j, buf_printf(j->out, "\\u%04" PRIx32, cp));
		return;
	}
	cp -= 0x10000;
	keep_first(j, buf_printf(j->out, "\\u%04" PRIx32 "\\u%04" PRIx32,
				 0xd800 | cp >> 10, 0xdc00 | (cp & 0x3ff)));
}

static void put_escaped(struct json *j, uint32_t cp)
{
	switch (cp) {
	case '"':
		put(j, STR("\\\""));
		break;
	case '\\':
		put(j, STR("\\\\"));
		break;
	case '\n':
		put(j, STR("\\n"));
		break;
	case '\r':
		put(j, STR("\\r"));
		break;
	case '\t':
		put(j, STR("\\t"));
		break;
	default:
		put_code_units(j, cp);
	}
}

/* Runs that need no escape are copied at once; the first @plain_n bytes do not. */
static void put_mixed(struct json *j, struct str s, size_t plain_n)
{
	size_t plain = 0;

	put(j, STR("\""));
	for (size_t i = plain_n; i < s.n && !j->err;) {
		uint32_t cp;
		size_t n;

		if (is_plain(s.p[i])) {
			i++;
			continue;
		}
		n = utf8_next(str_make(s.p + i, s.n - i), &cp);
		if (n > 0 && !must_escape(cp)) {
			i += n;
			continue;
		}
		put(j, str_make(s.p + plain, i - plain));
		put_escaped(j, n > 0 ? cp : (uint8_t)s.p[i]);
		i += n > 0 ? n : 1;
		plain = i;
	}
	if (s.n > plain)
		put(j, str_make(s.p + plain, s.n - plain));
	put(j, STR("\""));
}

static void put_string(struct json *j, struct str s)
{
	size_t n = 0;
	char *at;

	while (n < s.n && is_plain(s.p[n]))
		n++;
	if (n < s.n) {
		put_mixed(j, s, n);
		return;
	}
	at = room(j, n + 2);
	if (!at)
		return;
	at[0] = '"';
	if (n)
		memcpy(at + 1, s.p, n);
	at[n + 1] = '"';
}

/* The comma that the value needs, and its key. */
static void start(struct json *j, const char *key)
{
	bool comma = j->comma[j->depth];
	size_t n = key ? strlen(key) : 0;
	char *at;

	j->comma[j->depth] = true;
	if (!comma && !key)
		return;
	at = room(j, comma + (key ? n + 3 : 0));
	if (!at)
		return;
	if (comma)
		*at++ = ',';
	if (!key)
		return;
	*at++ = '"';
	memcpy(at, key, n);
	at[n] = '"';
	at[n + 1] = ':';
}

static void open(struct json *j, const char *key, struct str bracket)
{
	start(j, key);
	put(j, bracket);
	REQUIRE(j->depth < JSON_DEPTH_MAX);
	j->depth++;
	j->comma[j->depth] = false;
}

static void shut(struct json *j, struct str bracket)
{
	REQUIRE(j->depth > 0);
	j->depth--;
	put(j, bracket);
}

void json_begin(struct json *j, struct buf *out)
{
	*j = (struct json){ .out = out, .start = out->n };
}

int json_end(struct json *j)
{
	REQUIRE(j->depth == 0);
	if (j->err)
		j->out->n = j->start;
	return j->err;
}

void json_object_begin(struct json *j, const char *key)
{
	open(j, key, STR("{"));
}

void json_object_end(struct json *j)
{
	shut(j, STR("}"));
}

void json_array_begin(struct json *j, const char *key)
{
	open(j, key, STR("["));
}

void json_array_end(struct json *j)
{
	shut(j, STR("]"));
}

void json_str(struct json *j, const char *key, struct str value)
{
	start(j, key);
	put_string(j, value);
}

void json_cstr(struct json *j, const char *key, const char *value)
{
	json_str(j, key, str_from(value));
}

void json_members(struct json *j, struct str members)
{
	if (str_empty(members))
		return;
	start(j, NULL);
	put(j, members);
}

void json_str_opt(struct json *j, const char *key, struct str value)
{
	if (!str_empty(value))
		json_str(j, key, value);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	start(j, key);
	put_uint(j, value);
}

void json_int(struct json *j, const char *key, int64_t value)
{
	start(j, key);
	if (value < 0)
		put(j, STR("-"));
	put_uint(j, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

void json_bool(struct json *j, const char *key, bool value)
{
	start(j, key);
	put(j, value ? STR("true") : STR("false"));
}

void json_null_value(struct json *j, const char *key)
{
	start(j, key);
	put(j, STR("null"));
}
