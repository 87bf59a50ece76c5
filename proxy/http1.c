/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1.c - heads of HTTP/1.0 and HTTP/1.1 messages
 *
 * Theory of operation
 * ===================
 *
 * A head is read line by line from the front of the input, as often as the
 * caller likes, until it is whole; nothing is kept between calls.  A line ends
 * in CRLF and holds no other CR or LF.  The checks run in the order in which
 * the bytes stand, so that a stream that cannot become a head (TLS, zeros, a
 * banner) is refused at its first bytes and not at a limit or a deadline.
 *
 * Framing is decided once, by frame_request() and frame_answer(), from the
 * fields that field_note() gathered.  Each ambiguity of RFC 9112 6.3 that the
 * RFC lets a recipient repair is refused instead: what we would read one way,
 * the next hop could read another.
 */
#include "proxy/http1.h"

/* One line longer than this is refused whatever the head's own limit says. */
#define FIELD_LINE_MAX	32768
/* Digits of a Content-Length: the largest is below 2^63. */
#define LENGTH_MAX	((unsigned long)INT64_MAX)

static const char tchar_marks[] = "!#$%&'*+-.^_`|~";

static bool is_alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_tchar(char c)
{
	return is_alpha(c) || ascii_is_digit(c) ||
	       (c != '\0' && strchr(tchar_marks, c));
}

bool http1_is_token(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!is_tchar(s.p[i]))
			return false;
	}
	return s.n > 0;
}

/* HTAB, SP, VCHAR and obs-text (RFC 9110 5.5). */
static bool is_field_text(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

static struct str str_from_offset(struct str s, size_t at)
{
	return str_make(s.p + at, s.n - at);
}

/* --- lines ---------------------------------------------------------------- */

enum line_result { LINE_MORE, LINE_DONE, LINE_BAD, LINE_LONG };

/* The line at @at, without its CRLF; @ret_next: where the next one begins. */
static enum line_result line_get(struct str in, size_t at, size_t max,
				 struct str *ret, size_t *ret_next)
{
	struct str rest = str_from_offset(in, at);
	size_t n = str_chr(rest, '\n');

	if (n > max)
		return LINE_LONG;
	if (n == rest.n)
		return LINE_MORE;
	if (n == 0 || rest.p[n - 1] != '\r')
		return LINE_BAD;
	*ret = str_make(rest.p, n - 1);
	*ret_next = at + n + 1;
	return str_chr(*ret, '\r') == ret->n ? LINE_DONE : LINE_BAD;
}

bool http1_head_grew(struct str in, size_t seen)
{
	if (seen == 0 || seen > in.n)
		return true;
	if (in.n / 4096 != seen / 4096)
		return true;
	return memchr(in.p + seen, '\n', in.n - seen) != NULL;
}

/* --- fields --------------------------------------------------------------- */

/*
 * Not a framing field, but one that a lenient reader may take for it: CGI and
 * its heirs know no difference between - and _, and others stop at the end of
 * the name that they know.
 */
static bool looks_like(struct str name, struct str framing)
{
	size_t n = 0;

	for (size_t i = 0; i < name.n && n < framing.n; i++) {
		if (!is_alpha(name.p[i]) && !ascii_is_digit(name.p[i]))
			continue;
		while (framing.p[n] == '-')
			n++;
		if (ascii_lower(name.p[i]) != framing.p[n])
			return false;
		n++;
	}
	return n == framing.n;
}

/* What the framing rules need to know of the fields. */
struct notes {
	unsigned hosts, lengths, codings, options;
	struct str length, coding;
	bool close, keep_alive, upgrade_token, upgrade_field, odd;
};

static void note_connection(struct notes *n, struct str value)
{
	struct str item;

	while (str_cut(&value, ',', &item)) {
		item = str_trim(item);
		n->options++;
		if (str_ieq(item, STR("close")))
			n->close = true;
		else if (str_ieq(item, STR("keep-alive")))
			n->keep_alive = true;
		else if (str_ieq(item, STR("upgrade")))
			n->upgrade_token = true;
	}
}

static void field_note(struct http1_head *h, struct notes *n,
		       const struct http1_field *f)
{
	if (str_ieq(f->name, STR("host"))) {
		n->hosts++;
		h->has_host = true;
		h->host = f->value;
	} else if (str_ieq(f->name, STR("content-length"))) {
		n->lengths++;
		n->length = f->value;
	} else if (str_ieq(f->name, STR("transfer-encoding"))) {
		n->codings++;
		n->coding = f->value;
	} else if (str_ieq(f->name, STR("connection"))) {
		note_connection(n, f->value);
	} else if (str_ieq(f->name, STR("upgrade"))) {
		n->upgrade_field = true;
	} else if (str_ieq(f->name, STR("expect"))) {
		if (str_ieq(f->value, STR("100-continue")))
			h->expect_continue = true;
		else
			h->expect_other = true;
	} else if (looks_like(f->name, STR("content-length")) ||
		   looks_like(f->name, STR("transfer-encoding"))) {
		n->odd = true;
	}
}

/* "name: value" with nothing between name and colon. */
static bool field_split(struct str line, struct http1_field *ret)
{
	size_t colon = str_chr(line, ':');

	if (colon == line.n)
		return false;
	ret->name = str_make(line.p, colon);
	ret->value = str_trim(str_from_offset(line, colon + 1));
	return http1_is_token(ret->name) && is_field_text(ret->value);
}

static enum http1_result fields_get(struct str in, size_t at,
				    struct http1_head *h, struct notes *n,
				    enum reason *ret_why)
{
	for (;;) {
		struct str line;
		struct http1_field *f;

		switch (line_get(in, at, FIELD_LINE_MAX, &line, &at)) {
		case LINE_MORE:
			if (in.n < HTTP1_HEAD_MAX)
				return HTTP1_MORE;
			*ret_why = REASON_HEADER_TOO_LARGE;
			return HTTP1_BAD;
		case LINE_LONG:
			*ret_why = REASON_HEADER_TOO_LARGE;
			return HTTP1_BAD;
		case LINE_BAD:
			*ret_why = REASON_REQUEST_MALFORMED;
			return HTTP1_BAD;
		case LINE_DONE:
			break;
		}
		if (at > HTTP1_HEAD_MAX ||
		    (!str_empty(line) && h->nfields == HTTP1_FIELDS_MAX)) {
			*ret_why = REASON_HEADER_TOO_LARGE;
			return HTTP1_BAD;
		}
		if (str_empty(line)) {
			h->bytes = at;
			return HTTP1_DONE;
		}
		f = &h->field[h->nfields];
		if (!field_split(line, f)) {
			*ret_why = REASON_REQUEST_MALFORMED;
			return HTTP1_BAD;
		}
		h->nfields++;
		field_note(h, n, f);
		if (n->options > HTTP1_OPTIONS_MAX) {
			*ret_why = REASON_HEADER_TOO_LARGE;
			return HTTP1_BAD;
		}
	}
}

const struct http1_field *http1_field(const struct http1_head *head,
				      struct str name)
{
	for (size_t i = 0; i < head->nfields; i++) {
		if (str_ieq(head->field[i].name, name))
			return &head->field[i];
	}
	return NULL;
}

bool http1_list_has(const struct http1_head *head, struct str name,
		    struct str token)
{
	for (size_t i = 0; i < head->nfields; i++) {
		struct str rest = head->field[i].value, item;

		if (!str_ieq(head->field[i].name, name))
			continue;
		while (str_cut(&rest, ',', &item)) {
			if (str_ieq(str_trim(item), token))
				return true;
		}
	}
	return false;
}

/* --- framing (RFC 9112 6) --------------------------------------------------- */

static void head_persistence(struct http1_head *h, const struct notes *n)
{
	h->keep_alive = h->minor == 1 ? !n->close : n->keep_alive && !n->close;
	h->upgrade = h->minor == 1 && n->upgrade_token && n->upgrade_field;
}

/* Only a single "chunked" is a coding that we and the next hop read alike. */
static enum reason coding_check(struct str value)
{
	struct str last = value, item;
	bool others = false, odd = false;

	if (str_ieq(value, STR("chunked")))
		return REASON_ALLOWED;
	while (str_cut(&value, ',', &item)) {
		last = str_trim(item);
		if (!http1_is_token(last) || str_ieq(last, STR("identity")))
			odd = true;
		else if (!str_ieq(last, STR("chunked")))
			others = true;
	}
	if (others && !odd && str_ieq(last, STR("chunked")))
		return REASON_CODING_NOT_SUPPORTED;
	return REASON_FRAMING_INVALID;
}

/* Sets framing as the fields say it, whatever the message is. */
static enum reason frame_by_fields(struct http1_head *h, const struct notes *n,
				   enum http1_framing otherwise)
{
	unsigned long length;

	if (n->lengths > 1 || n->codings > 1 || (n->lengths && n->codings) ||
	    n->odd)
		return REASON_FRAMING_INVALID;
	if (n->codings) {
		if (h->minor == 0)
			return REASON_FRAMING_INVALID;
		h->framing = HTTP1_CHUNKED;
		return coding_check(n->coding);
	}
	if (!n->lengths) {
		h->framing = otherwise;
		return REASON_ALLOWED;
	}
	if (str_to_uint(n->length, LENGTH_MAX, &length) < 0)
		return REASON_FRAMING_INVALID;
	h->has_length = true;
	h->length = length;
	h->framing = length ? HTTP1_LENGTH : HTTP1_NO_BODY;
	return REASON_ALLOWED;
}

static enum reason frame_request(struct http1_head *h, const struct notes *n)
{
	bool connect = str_eq(h->method, STR("CONNECT"));
	enum reason why = frame_by_fields(h, n, HTTP1_NO_BODY);

	if (why != REASON_ALLOWED)
		return why;
	/* RFC 9110 9.3.6: what follows a CONNECT is the tunnel. */
	if (connect && h->framing != HTTP1_NO_BODY)
		return REASON_FRAMING_INVALID;
	/* A CONNECT without Host is old, but says all it has to in its target. */
	if (n->hosts > 1 || (n->hosts == 0 && h->minor == 1 && !connect))
		return REASON_REQUEST_MALFORMED;
	return REASON_ALLOWED;
}

static enum reason frame_answer(struct http1_head *h, const struct notes *n,
				struct str method)
{
	enum reason why = frame_by_fields(h, n, HTTP1_UNTIL_CLOSE);

	if (why != REASON_ALLOWED)
		return why;
	if (h->status == 205 && h->framing == HTTP1_LENGTH)
		return REASON_FRAMING_INVALID;
	if (h->status < 200 || h->status == 204 || h->status == 304 ||
	    str_eq(method, STR("HEAD")) ||
	    (str_eq(method, STR("CONNECT")) && h->status < 300))
		h->framing = HTTP1_NO_BODY;
	return REASON_ALLOWED;
}

/* --- requests --------------------------------------------------------------- */

/* "HTTP/" DIGIT "." DIGIT and nothing else. */
static enum reason version_get(struct str s, uint8_t *ret_minor)
{
	if (s.n != 8 || !str_starts(s, STR("HTTP/")) ||
	    !ascii_is_digit(s.p[5]) || s.p[6] != '.' ||
	    !ascii_is_digit(s.p[7]))
		return REASON_REQUEST_MALFORMED;
	if (s.p[5] != '1' || s.p[7] > '1')
		return REASON_VERSION_NOT_SUPPORTED;
	*ret_minor = (uint8_t)(s.p[7] - '0');
	return REASON_ALLOWED;
}

static bool is_target_text(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < 0x21 || s.p[i] > 0x7e)
			return false;
	}
	return s.n > 0;
}

static enum reason request_line(struct str line, struct http1_head *h)
{
	size_t first = str_chr(line, ' '), second;
	struct str rest;

	h->method = str_make(line.p, first);
	if (first == line.n || !http1_is_token(h->method))
		return REASON_REQUEST_MALFORMED;
	if (h->method.n > HTTP1_METHOD_MAX)
		return REASON_METHOD_NOT_SUPPORTED;
	rest = str_from_offset(line, first + 1);
	second = str_chr(rest, ' ');
	h->target = str_make(rest.p, second);
	if (second == rest.n || !is_target_text(h->target))
		return REASON_REQUEST_MALFORMED;
	return version_get(str_from_offset(rest, second + 1), &h->minor);
}

/* What can be said of a line that has not ended yet. */
static enum reason request_begins(struct str part)
{
	if (str_empty(part) || part.p[0] == '\r')
		return REASON_ALLOWED;
	if (part.p[0] == 0x16)
		return REASON_TLS_ON_PLAIN_PORT;
	return is_tchar(part.p[0]) ? REASON_ALLOWED : REASON_REQUEST_MALFORMED;
}

static enum http1_result bad(enum reason why, enum reason *ret_why)
{
	*ret_why = why;
	return HTTP1_BAD;
}

enum http1_result http1_parse_request(struct str in, struct http1_head *ret,
				      enum reason *ret_why)
{
	struct notes notes = { 0 };
	enum http1_result result;
	enum reason why;
	struct str line;
	size_t at = 0;

	memset(ret, 0, offsetof(struct http1_head, field));
	ret->nfields = 0;
	ret->bytes = 0;
	if (str_starts(in, STR("\r\n")))
		at = 2;
	why = request_begins(str_from_offset(in, at));
	if (why != REASON_ALLOWED)
		return bad(why, ret_why);
	switch (line_get(in, at, HTTP1_LINE_MAX, &line, &at)) {
	case LINE_MORE:
		return HTTP1_MORE;
	case LINE_LONG:
		return bad(REASON_URI_TOO_LONG, ret_why);
	case LINE_BAD:
		return bad(REASON_REQUEST_MALFORMED, ret_why);
	case LINE_DONE:
		break;
	}
	why = request_line(line, ret);
	if (why != REASON_ALLOWED)
		return bad(why, ret_why);
	result = fields_get(in, at, ret, &notes, ret_why);
	if (result != HTTP1_DONE)
		return result;
	head_persistence(ret, &notes);
	why = frame_request(ret, &notes);
	return why == REASON_ALLOWED ? HTTP1_DONE : bad(why, ret_why);
}

/* --- answers ---------------------------------------------------------------- */

/* "HTTP/1.1 200 words"; the blank and the words may be missing. */
static bool status_line(struct str line, struct http1_head *h)
{
	unsigned long status;

	if (line.n < 12 || line.p[8] != ' ' ||
	    version_get(str_make(line.p, 8), &h->minor) != REASON_ALLOWED)
		return false;
	if (str_to_uint(str_make(line.p + 9, 3), 999, &status) < 0 ||
	    status < 100)
		return false;
	h->status = (unsigned)status;
	if (line.n == 12)
		return true;
	if (line.p[12] != ' ')
		return false;
	h->phrase = str_from_offset(line, 13);
	return is_field_text(h->phrase);
}

/* Every fault of an answer has one reason: it is not ours to repair. */
enum http1_result http1_parse_answer(struct str in, struct str method,
				     struct http1_head *ret,
				     enum reason *ret_why)
{
	static const struct str start = { "HTTP/1.", 7 };
	struct notes notes = { 0 };
	enum http1_result result;
	enum reason ignored;
	struct str line;
	size_t at = 0;

	memset(ret, 0, offsetof(struct http1_head, field));
	ret->nfields = 0;
	ret->bytes = 0;
	if (memcmp(in.p ? in.p : "", start.p, MIN(in.n, start.n)) != 0)
		return bad(REASON_ORIGIN_PROTOCOL, ret_why);
	switch (line_get(in, at, HTTP1_LINE_MAX, &line, &at)) {
	case LINE_MORE:
		return HTTP1_MORE;
	case LINE_LONG:
	case LINE_BAD:
		return bad(REASON_ORIGIN_PROTOCOL, ret_why);
	case LINE_DONE:
		break;
	}
	if (!status_line(line, ret))
		return bad(REASON_ORIGIN_PROTOCOL, ret_why);
	result = fields_get(in, at, ret, &notes, &ignored);
	if (result == HTTP1_BAD)
		return bad(REASON_ORIGIN_PROTOCOL, ret_why);
	if (result == HTTP1_MORE)
		return HTTP1_MORE;
	if (frame_answer(ret, &notes, method) != REASON_ALLOWED)
		return bad(REASON_ORIGIN_PROTOCOL, ret_why);
	head_persistence(ret, &notes);
	if (ret->framing == HTTP1_UNTIL_CLOSE)
		ret->keep_alive = false;
	return HTTP1_DONE;
}
