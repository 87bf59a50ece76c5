/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewrite.c - what of an HTTP/1 message goes on to the next hop
 *
 * A field is looked up once in a table that says what becomes of it; a field
 * that Connection names goes too, but for those by which the next hop finds
 * the host and the end of the message.
 */
#include "proxy/rewrite.h"

#include <errno.h>

/* What a chunk that is made here takes beside its data: size, two line ends. */
#define CHUNK_ROOM	32

enum fate {
	FATE_PASS,
	FATE_DROP,		/* of this connection only */
	FATE_HOST,
	FATE_TE,
	FATE_LENGTH,
	FATE_CODING,
	FATE_UPGRADE,
	FATE_FORWARDS,
	FATE_EXPECT,
};

static const struct {
	struct str name;
	enum fate fate;
} fates[] = {
	{ { "host", 4 }, FATE_HOST },
	{ { "content-length", 14 }, FATE_LENGTH },
	{ { "transfer-encoding", 17 }, FATE_CODING },
	{ { "te", 2 }, FATE_TE },
	{ { "upgrade", 7 }, FATE_UPGRADE },
	{ { "max-forwards", 12 }, FATE_FORWARDS },
	{ { "expect", 6 }, FATE_EXPECT },
	{ { "connection", 10 }, FATE_DROP },
	{ { "keep-alive", 10 }, FATE_DROP },
	{ { "trailer", 7 }, FATE_DROP },
	{ { "http2-settings", 14 }, FATE_DROP },
};

static bool starts_ci(struct str s, struct str prefix)
{
	return s.n >= prefix.n && str_ieq(str_make(s.p, prefix.n), prefix);
}

/* Proxy-Connection, Proxy-Authorization, Proxy-Status and their kin: between
 * client and us, or ours to say. */
static bool is_proxy_field(struct str name)
{
	return starts_ci(name, STR("proxy-"));
}

static enum fate field_fate(const struct http1_head *h, struct str name)
{
	for (size_t i = 0; i < ARRAY_SIZE(fates); i++) {
		if (str_ieq(name, fates[i].name))
			return fates[i].fate;
	}
	if (is_proxy_field(name) ||
	    http1_list_has(h, STR("connection"), name))
		return FATE_DROP;
	return FATE_PASS;
}

static int add_field(struct buf *out, struct str name, struct str value)
{
	int err = buf_add_str(out, name);

	if (err == 0)
		err = buf_add_str(out, STR(": "));
	if (err == 0)
		err = buf_add_str(out, value);
	return err < 0 ? err : buf_add_str(out, STR("\r\n"));
}

static int add_via(struct buf *out, const struct http1_head *h)
{
	return buf_printf(out, "Via: 1.%u penstock\r\n", h->minor);
}

/* --- requests --------------------------------------------------------------- */

static int request_field(const struct http1_head *h,
			 const struct http1_field *f,
			 const struct rewrite_request *how, struct buf *out)
{
	switch (field_fate(h, f->name)) {
	case FATE_PASS:
	case FATE_LENGTH:
		return add_field(out, f->name, f->value);
	case FATE_HOST:
		return add_field(out, f->name, how->host);
	case FATE_CODING:
		return add_field(out, f->name, STR("chunked"));
	case FATE_UPGRADE:
		if (!how->websocket)
			return 0;
		return add_field(out, f->name, STR("websocket"));
	case FATE_FORWARDS:
		if (how->max_forwards < 0)
			return add_field(out, f->name, f->value);
		return buf_printf(out, "Max-Forwards: %d\r\n",
				  how->max_forwards);
	case FATE_EXPECT:
		/* A 1.0 client waits for nothing (RFC 9110 10.1.1). */
		return how->expect ? add_field(out, f->name, f->value) : 0;
	case FATE_TE:		/* written with Connection */
	case FATE_DROP:
		break;
	}
	return 0;
}

static int request_line(const struct http1_head *h,
			const struct rewrite_request *how, struct buf *out)
{
	int err = buf_printf(out, "%.*s ", STR_ARG(h->method));

	/* "http://host?query": the path itself is empty (RFC 9112 3.2.1). */
	if (err == 0 && !str_empty(how->path) && how->path.p[0] == '?')
		err = buf_add_char(out, '/');
	if (err == 0)
		err = buf_add_str(out, how->path);
	if (err == 0)
		err = buf_add_str(out, STR(" HTTP/1.1\r\n"));
	if (err == 0 && !h->has_host)
		err = add_field(out, STR("Host"), how->host);
	return err;
}

/* What we say of the connection to the origin. */
static int request_connection(const struct http1_head *h,
			      const struct rewrite_request *how,
			      struct buf *out)
{
	bool te = http1_list_has(h, STR("te"), STR("trailers"));
	int err = 0;

	if (te)
		err = buf_add_str(out, STR("TE: trailers\r\n"));
	if (err < 0 || (!te && !how->websocket && !how->close))
		return err;
	return buf_printf(out, "Connection: %s%s%s\r\n",
			  how->websocket ? "Upgrade" :
			  how->close ? "close" : "",
			  te && (how->websocket || how->close) ? ", " : "",
			  te ? "TE" : "");
}

int rewrite_request(const struct http1_head *h,
		    const struct rewrite_request *how, struct buf *out)
{
	size_t before = out->n;
	int err = request_line(h, how, out);

	for (size_t i = 0; i < h->nfields && err == 0; i++)
		err = request_field(h, &h->field[i], how, out);
	if (err == 0)
		err = add_via(out, h);
	if (err == 0)
		err = request_connection(h, how, out);
	if (err == 0)
		err = buf_add_str(out, STR("\r\n"));
	if (err < 0)
		out->n = before;
	return err;
}

int rewrite_hop(struct str head, struct str authority, struct str basic,
		struct buf *out)
{
	size_t before = out->n;
	struct str rest = head, method, line;
	int err;

	if (authority.n == 0)
		return buf_add_str(out, head);
	REQUIRE(str_cut(&rest, ' ', &method) && str_cut(&rest, '\n', &line));
	err = buf_printf(out, "%.*s http://%.*s", STR_ARG(method),
			 STR_ARG(authority));
	/* RFC 9112 3.2.4: of "*" the authority alone is left. */
	if (err == 0 && str_starts(line, STR("*")))
		line = str_make(line.p + 1, line.n - 1);
	if (err == 0)
		err = buf_add_str(out, line);
	if (err == 0)
		err = buf_add_char(out, '\n');
	if (err == 0 && basic.n)
		err = buf_printf(out, "Proxy-Authorization: Basic %.*s\r\n",
				 STR_ARG(basic));
	if (err == 0)
		err = buf_add_str(out, rest);
	if (err < 0)
		out->n = before;
	return err;
}

/* --- answers ---------------------------------------------------------------- */

/*
 * An end of the stream can be the end of the answer or that of a connection
 * which died; who understands chunks is told which (RFC 9112 8), and keeps its
 * connection.  Nothing of a 205 can be missing, and there are clients that do
 * not look for a chunk behind one.
 */
enum http1_framing rewrite_framing(const struct http1_head *h, uint8_t minor)
{
	if (h->framing == HTTP1_CHUNKED && minor == 0)
		return HTTP1_UNTIL_CLOSE;
	if (h->framing == HTTP1_UNTIL_CLOSE && minor > 0 && h->status != 205)
		return HTTP1_CHUNKED;
	return h->framing;
}

/* Interim answers and 204 have no length to tell (RFC 9110 8.6).  A 304 may
 * tell that of a body that is not sent, for which some clients would wait. */
static bool has_framing_fields(const struct http1_head *h)
{
	return h->status >= 200 && h->status != 204 && h->status != 304;
}

static int answer_field(const struct http1_head *h,
			const struct http1_field *f,
			const struct rewrite_answer *how, struct buf *out)
{
	switch (field_fate(h, f->name)) {
	case FATE_PASS:
	case FATE_HOST:
	case FATE_FORWARDS:
	case FATE_EXPECT:
		return add_field(out, f->name, f->value);
	case FATE_LENGTH:
		if (!has_framing_fields(h))
			return 0;
		return add_field(out, f->name, f->value);
	case FATE_CODING:
		if (!has_framing_fields(h) || how->minor == 0)
			return 0;
		return add_field(out, f->name, STR("chunked"));
	case FATE_UPGRADE:
		if (!how->websocket)
			return 0;
		return add_field(out, f->name, STR("websocket"));
	case FATE_TE:
	case FATE_DROP:
		break;
	}
	return 0;
}

/* The framing that is ours, and for which the origin said nothing. */
static int answer_coding(const struct http1_head *h,
			 const struct rewrite_answer *how, struct buf *out)
{
	if (h->framing != HTTP1_UNTIL_CLOSE || how->framing != HTTP1_CHUNKED)
		return 0;
	return add_field(out, STR("Transfer-Encoding"), STR("chunked"));
}

static int answer_connection(const struct http1_head *h,
			     const struct rewrite_answer *how,
			     struct buf *out)
{
	if (how->websocket)
		return buf_add_str(out, STR("Connection: Upgrade\r\n"));
	if (h->status < 200)
		return 0;
	if (!how->keep_alive)
		return buf_add_str(out, STR("Connection: close\r\n"));
	return 0;
}

/* RFC 9110 6.6.1: an origin without a clock has none. */
static int answer_date(const struct http1_head *h,
		       const struct rewrite_answer *how, struct buf *out)
{
	if (h->status < 200 || http1_field(h, STR("date")))
		return 0;
	return add_field(out, STR("Date"), how->date);
}

int rewrite_answer(const struct http1_head *h,
		   const struct rewrite_answer *how, struct buf *out)
{
	size_t before = out->n;
	int err = buf_printf(out, "HTTP/1.1 %03u ", h->status);

	if (err == 0)
		err = buf_add_str(out, h->phrase);
	if (err == 0)
		err = buf_add_str(out, STR("\r\n"));
	for (size_t i = 0; i < h->nfields && err == 0; i++)
		err = answer_field(h, &h->field[i], how, out);
	if (err == 0)
		err = answer_coding(h, how, out);
	if (err == 0)
		err = answer_date(h, how, out);
	if (err == 0)
		err = add_via(out, h);
	if (err == 0)
		err = answer_connection(h, how, out);
	if (err == 0)
		err = buf_add_str(out, STR("\r\n"));
	if (err < 0)
		out->n = before;
	return err;
}

/* --- bodies ----------------------------------------------------------------- */

/* What frames, routes, authenticates or says how the content is to be read
 * must be known before the body: behind it, it is an attempt. */
bool rewrite_trailer_passes(struct str name)
{
	static const struct str forbidden[] = {
		{ "age", 3 }, { "authorization", 13 }, { "cache-control", 13 },
		{ "connection", 10 }, { "content-encoding", 16 },
		{ "content-length", 14 }, { "content-range", 13 },
		{ "content-type", 12 }, { "cookie", 6 }, { "date", 4 },
		{ "expect", 6 }, { "expires", 7 }, { "host", 4 },
		{ "keep-alive", 10 }, { "location", 8 },
		{ "max-forwards", 12 }, { "pragma", 6 }, { "range", 5 },
		{ "retry-after", 11 }, { "set-cookie", 10 }, { "te", 2 },
		{ "trailer", 7 }, { "transfer-encoding", 17 },
		{ "upgrade", 7 }, { "vary", 4 }, { "via", 3 },
		{ "warning", 7 }, { "www-authenticate", 16 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(forbidden); i++) {
		if (str_ieq(name, forbidden[i]))
			return false;
	}
	return !is_proxy_field(name) && !starts_ci(name, STR("if-"));
}

/* The piece in chunked coding, as we write it. */
static int add_chunked(struct buf *out, const struct http1_piece *p)
{
	switch (p->kind) {
	case HTTP1_PIECE_CHUNK:
		return buf_printf(out, "%llx\r\n", (unsigned long long)p->size);
	case HTTP1_PIECE_DATA:
		return buf_add_str(out, p->data);
	case HTTP1_PIECE_LAST_CHUNK:
		return buf_add_str(out, STR("0\r\n"));
	case HTTP1_PIECE_TRAILER:
		if (!rewrite_trailer_passes(p->trailer.name))
			return 0;
		return add_field(out, p->trailer.name, p->trailer.value);
	case HTTP1_PIECE_CHUNK_END:
	case HTTP1_PIECE_END:
		return buf_add_str(out, STR("\r\n"));
	case HTTP1_PIECE_NONE:
	case HTTP1_PIECE_BAD:
		break;
	}
	return 0;
}

/* A piece of a body that has no chunks of its own. */
static int add_as_chunk(struct buf *out, struct str data)
{
	int err = buf_printf(out, "%zx\r\n", data.n);

	if (err == 0)
		err = buf_add_str(out, data);
	return err < 0 ? err : buf_add_str(out, STR("\r\n"));
}

/* Does the outgoing body get chunks that the incoming one has not? */
static bool makes_chunks(const struct http1_body *b, enum http1_framing as)
{
	return b->framing == HTTP1_UNTIL_CLOSE && as == HTTP1_CHUNKED;
}

static int add_piece(struct buf *out, const struct http1_piece *p,
		     const struct http1_body *b, enum http1_framing as)
{
	if (!out)
		return 0;
	if (makes_chunks(b, as))
		return add_as_chunk(out, p->data);
	if (as == HTTP1_CHUNKED)
		return add_chunked(out, p);
	return p->kind == HTTP1_PIECE_DATA ? buf_add_str(out, p->data) : 0;
}

enum http1_result rewrite_body(struct http1_body *b, struct str in,
			       enum http1_framing as, struct buf *out,
			       size_t limit, size_t *ret_used)
{
	*ret_used = 0;
	while (!http1_body_over(b)) {
		size_t left = in.n - *ret_used, room = left;
		struct http1_piece p;

		if (out) {
			if (out->n + REWRITE_ROOM_MIN > limit)
				return HTTP1_MORE;
			room = limit - out->n;
			if (makes_chunks(b, as))
				room -= CHUNK_ROOM;
		}
		http1_body_next(b, str_make(in.p + *ret_used,
					    MIN(left, room)), &p);
		if (p.kind == HTTP1_PIECE_NONE)
			return HTTP1_MORE;
		*ret_used += p.used;
		if (p.kind == HTTP1_PIECE_BAD || add_piece(out, &p, b, as) < 0)
			return HTTP1_BAD;
	}
	return HTTP1_DONE;
}

int rewrite_body_end(const struct http1_body *b, enum http1_framing as,
		     struct buf *out)
{
	REQUIRE(http1_body_may_end(b));
	return makes_chunks(b, as) ? buf_add_str(out, STR("0\r\n\r\n")) : 0;
}
