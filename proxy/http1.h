/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1.h - HTTP/1.x heads, targets and body framing; pure, strict
 *
 * RFC 9112.  Whatever two parsers could read in two ways is refused, never
 * repaired: bare CR or LF, obs-fold, blanks before a colon, CL with TE, two
 * Content-Length, any coding but one "chunked", NUL, non-token names.
 * Nothing is allocated; everything returned borrows from the input.
 */
#ifndef PROXY_HTTP1_H
#define PROXY_HTTP1_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/reason.h"
#include "base/str.h"
#include "rules/host_name.h"

#define HTTP1_HEAD_MAX		65536	/* bytes of a whole head */
#define HTTP1_LINE_MAX		16384	/* of the request line */
#define HTTP1_METHOD_MAX	32
#define HTTP1_FIELDS_MAX	128
#define HTTP1_OPTIONS_MAX	64	/* elements of all Connection fields */

struct http1_field {
	struct str name, value;		/* value trimmed of SP and HTAB */
};

enum http1_framing {
	HTTP1_NO_BODY,
	HTTP1_LENGTH,		/* @length bytes */
	HTTP1_CHUNKED,
	HTTP1_UNTIL_CLOSE,	/* answers only */
};

struct http1_head {
	/* request */
	struct str method;
	struct str target;		/* as sent */
	struct str host;		/* the one Host field's value, or empty */
	bool has_host;
	bool expect_continue;
	bool expect_other;		/* or something else */
	/* answer */
	unsigned status;
	struct str phrase;
	/* both */
	uint8_t minor;			/* HTTP/1.minor: 0 or 1 */
	bool keep_alive;		/* as version and Connection say */
	bool upgrade;			/* Connection: upgrade with an Upgrade field */
	bool has_length;		/* a Content-Length was there: @length */
	enum http1_framing framing;
	uint64_t length;
	struct http1_field field[HTTP1_FIELDS_MAX];
	size_t nfields;
	size_t bytes;			/* of the head in the input, CRLFCRLF included */
};

enum http1_result {
	HTTP1_MORE,	/* the head is not complete; feed more */
	HTTP1_DONE,
	HTTP1_BAD,	/* @ret_why says what */
};

/* @in begins at the first byte of the message; leading empty lines (at most
 * one CRLF) are passed over and counted in @ret->bytes. */
enum http1_result http1_parse_request(struct str in, struct http1_head *ret,
				      enum reason *ret_why);
/* @method: of the request that is answered (HEAD, CONNECT change framing). */
enum http1_result http1_parse_answer(struct str in, struct str method,
				     struct http1_head *ret,
				     enum reason *ret_why);

/*
 * Could a call of the parser have something new to say? @seen: bytes that the
 * last call was given.  Spares a client that sends byte by byte, and us, the
 * reading of the same lines for each byte.
 */
bool http1_head_grew(struct str in, size_t seen);

enum http1_form {
	HTTP1_ORIGIN_FORM,	/* "/path?query" */
	HTTP1_ABSOLUTE_FORM,	/* "http://host[:port]/path" */
	HTTP1_AUTHORITY_FORM,	/* "host:port", CONNECT only */
	HTTP1_ASTERISK_FORM,	/* "*", OPTIONS only */
};

struct http1_target {
	enum http1_form form;
	bool https;			/* absolute-form with https:// */
	enum host_kind kind;		/* HOST_BAD in origin and asterisk form */
	struct host_name name;
	struct ip_addr addr;
	uint16_t port;			/* with the scheme's default filled in */
	struct str authority;		/* as sent */
	struct str path;		/* with query; "/" when absent, or "*" in
					 * OPTIONS; begins
					 * with "?" when only the path is */
};

/* Userinfo, fragments, backslashes, controls and non-ASCII are refused. */
NODISCARD bool http1_parse_target(const struct http1_head *head,
				  struct http1_target *ret,
				  enum reason *ret_why);

/* Does the Host field agree with the authority (host and port)?  @port is
 * the real one; an absent port in Host means the scheme's default. */
bool http1_host_agrees(const struct http1_head *head, enum host_kind kind,
		       const struct host_name *name,
		       const struct ip_addr *addr, uint16_t port,
		       uint16_t default_port);

/* First value of a field by name, case-insensitively; NULL when absent. */
const struct http1_field *http1_field(const struct http1_head *head,
				      struct str name);

/* --- bodies ----------------------------------------------------------------- */

#define HTTP1_CHUNK_LINE_MAX	1024	/* bytes of a size line, extensions included */
#define HTTP1_TRAILERS_MAX	8192	/* bytes of all trailer lines */
#define HTTP1_TRAILER_FIELDS	32

/*
 * A body on the wire is taken apart into pieces, so that what is sent on can
 * be written anew: no extension, no padding and no forbidden trailer passes.
 * Nothing is copied; a line (chunk size, trailer) must stand whole in the
 * input before it becomes a piece, and has the limits above.
 */
enum http1_piece_kind {
	HTTP1_PIECE_NONE,	/* feed more (behind the bytes used) */
	HTTP1_PIECE_CHUNK,	/* a chunk of @size bytes begins */
	HTTP1_PIECE_DATA,	/* @data, part of the body or of the chunk */
	HTTP1_PIECE_CHUNK_END,
	HTTP1_PIECE_LAST_CHUNK,	/* the chunk of size 0: trailers follow */
	HTTP1_PIECE_TRAILER,	/* @trailer */
	HTTP1_PIECE_END,	/* the body is over */
	HTTP1_PIECE_BAD,	/* not a body: end the connection */
};

struct http1_piece {
	enum http1_piece_kind kind;
	uint64_t size;
	struct str data;
	struct http1_field trailer;
	size_t used;		/* bytes of the input that this piece took */
};

struct http1_body {
	enum http1_framing framing;
	uint64_t left;		/* of the body, or of the chunk */
	uint8_t state;
	uint8_t trailers;	/* lines seen */
	uint16_t trailer_bytes;
	bool empty;		/* it may be framed, but no byte comes */
	bool from_origin;	/* blanks behind a chunk size are let pass */
};

void http1_body_init(struct http1_body *b, const struct http1_head *head,
		     bool from_origin);
/* The next piece at the front of @in; after END and BAD always the same. */
void http1_body_next(struct http1_body *b, struct str in,
		     struct http1_piece *ret);
/* Is all of it seen? */
bool http1_body_over(const struct http1_body *b);
/* Is the end of the stream, now, a proper end of this body? */
bool http1_body_may_end(const struct http1_body *b);

/* --- fields ----------------------------------------------------------------- */

/* Is @token an element of the comma list in any field named @name? */
bool http1_list_has(const struct http1_head *head, struct str name,
		    struct str token);
/* RFC 9110 5.6.2: one or more tchar. */
bool http1_is_token(struct str s);

#endif /* PROXY_HTTP1_H */
