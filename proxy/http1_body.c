/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_body.c - the pieces of a message body as it stands on the wire
 *
 *   from       to         by
 *   LENGTH     OVER       the last byte
 *   CLOSE      (stays)    the end of the stream ends it
 *   SIZE       DATA       a size line that is not 0
 *   SIZE       TRAILERS   the size line 0
 *   DATA       DATA_END   the chunk's last byte
 *   DATA_END   SIZE       CRLF
 *   TRAILERS   OVER       an empty line
 *   any        BROKEN     whatever does not fit
 */
#include "proxy/http1.h"

#define SIZE_DIGITS_MAX	16

enum body_state {
	BODY_LENGTH,
	BODY_CLOSE,
	BODY_SIZE,
	BODY_DATA,
	BODY_DATA_END,
	BODY_TRAILERS,
	BODY_OVER,
	BODY_BROKEN,
};

void http1_body_init(struct http1_body *b, const struct http1_head *head,
		     bool from_origin)
{
	memset(b, 0, sizeof(*b));
	b->framing = head->framing;
	b->from_origin = from_origin;
	/* RFC 9110 15.3.6, and clients that do not look for more. */
	b->empty = head->status == 205;
	switch (head->framing) {
	case HTTP1_NO_BODY:
		b->state = BODY_OVER;
		break;
	case HTTP1_LENGTH:
		b->left = head->length;
		b->state = b->left ? BODY_LENGTH : BODY_OVER;
		break;
	case HTTP1_CHUNKED:
		b->state = BODY_SIZE;
		break;
	case HTTP1_UNTIL_CLOSE:
		b->state = BODY_CLOSE;
		break;
	}
}

bool http1_body_over(const struct http1_body *b)
{
	return b->state == BODY_OVER;
}

bool http1_body_may_end(const struct http1_body *b)
{
	return b->state == BODY_OVER || b->state == BODY_CLOSE;
}

static void broken(struct http1_body *b, struct http1_piece *ret)
{
	b->state = BODY_BROKEN;
	ret->kind = HTTP1_PIECE_BAD;
	ret->used = 0;
}

/* A whole line at the front of @in, at most @max bytes; false: none yet, or
 * broken (then the state says so). */
static bool line_get(struct http1_body *b, struct str in, size_t max,
		     struct str *ret_line, struct http1_piece *ret)
{
	size_t n = str_chr(in, '\n');

	if (n >= max || (n < in.n && (n == 0 || in.p[n - 1] != '\r'))) {
		broken(b, ret);
		return false;
	}
	if (n == in.n)
		return false;
	*ret_line = str_make(in.p, n - 1);
	ret->used = n + 1;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static bool is_line_text(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* 1*16HEXDIG, then nothing, an extension, or (from origins) padding. */
static bool size_parse(struct str line, bool from_origin, uint64_t *ret)
{
	uint64_t size = 0;
	size_t n = 0, digits;
	struct str rest;

	while (n < line.n && hex_digit(line.p[n]) >= 0) {
		if (n == SIZE_DIGITS_MAX)
			return false;
		size = size << 4 | (uint64_t)hex_digit(line.p[n]);
		n++;
	}
	digits = n;
	if (digits == 0 || size > INT64_MAX)
		return false;
	rest = str_make(line.p + digits, line.n - digits);
	if (from_origin)
		rest = str_trim(rest);
	if (!str_empty(rest) && (rest.p[0] != ';' || !is_line_text(rest)))
		return false;
	*ret = size;
	return true;
}

static void next_size(struct http1_body *b, struct str in,
		      struct http1_piece *ret)
{
	struct str line;

	if (!line_get(b, in, HTTP1_CHUNK_LINE_MAX, &line, ret))
		return;
	if (!size_parse(line, b->from_origin, &ret->size)) {
		broken(b, ret);
		return;
	}
	if (b->empty && ret->size) {
		broken(b, ret);
		return;
	}
	b->left = ret->size;
	b->state = b->left ? BODY_DATA : BODY_TRAILERS;
	ret->kind = b->left ? HTTP1_PIECE_CHUNK : HTTP1_PIECE_LAST_CHUNK;
}

static void next_data(struct http1_body *b, struct str in,
		      struct http1_piece *ret)
{
	if (str_empty(in))
		return;
	ret->kind = HTTP1_PIECE_DATA;
	ret->used = in.n < b->left ? in.n : (size_t)b->left;
	ret->data = str_make(in.p, ret->used);
	b->left -= ret->used;
	if (b->left == 0)
		b->state = b->state == BODY_DATA ? BODY_DATA_END : BODY_OVER;
}

static void next_data_end(struct http1_body *b, struct str in,
			  struct http1_piece *ret)
{
	static const struct str crlf = { "\r\n", 2 };

	if (memcmp(in.p ? in.p : "", crlf.p, MIN(in.n, crlf.n)) != 0) {
		broken(b, ret);
		return;
	}
	if (in.n < crlf.n)
		return;
	ret->kind = HTTP1_PIECE_CHUNK_END;
	ret->used = crlf.n;
	b->state = BODY_SIZE;
}

/* Behind the body, these can only be meant for somebody who reads otherwise. */
static bool is_framing(struct str name)
{
	return str_ieq(name, STR("content-length")) ||
	       str_ieq(name, STR("transfer-encoding"));
}

static void next_trailer(struct http1_body *b, struct str in,
			 struct http1_piece *ret)
{
	struct str line;
	size_t colon;

	if (!line_get(b, in, HTTP1_TRAILERS_MAX - b->trailer_bytes, &line, ret))
		return;
	if (str_empty(line)) {
		b->state = BODY_OVER;
		ret->kind = HTTP1_PIECE_END;
		return;
	}
	b->trailer_bytes = (uint16_t)(b->trailer_bytes + ret->used);
	colon = str_chr(line, ':');
	if (b->trailers++ == HTTP1_TRAILER_FIELDS || colon == line.n) {
		broken(b, ret);
		return;
	}
	ret->trailer.name = str_make(line.p, colon);
	ret->trailer.value = str_trim(str_make(line.p + colon + 1,
					       line.n - colon - 1));
	ret->kind = HTTP1_PIECE_TRAILER;
	if (!http1_is_token(ret->trailer.name) || !is_line_text(line) ||
	    is_framing(ret->trailer.name))
		broken(b, ret);
}

void http1_body_next(struct http1_body *b, struct str in,
		     struct http1_piece *ret)
{
	memset(ret, 0, sizeof(*ret));
	switch ((enum body_state)b->state) {
	case BODY_LENGTH:
	case BODY_DATA:
		next_data(b, in, ret);
		break;
	case BODY_CLOSE:
		if (b->empty && in.n) {
			broken(b, ret);
			break;
		}
		ret->kind = in.n ? HTTP1_PIECE_DATA : HTTP1_PIECE_NONE;
		ret->data = in;
		ret->used = in.n;
		break;
	case BODY_SIZE:
		next_size(b, in, ret);
		break;
	case BODY_DATA_END:
		next_data_end(b, in, ret);
		break;
	case BODY_TRAILERS:
		next_trailer(b, in, ret);
		break;
	case BODY_OVER:
		ret->kind = HTTP1_PIECE_END;
		break;
	case BODY_BROKEN:
		ret->kind = HTTP1_PIECE_BAD;
		break;
	}
}
