/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewrite.h - what of an HTTP/1 message goes on to the next hop; pure
 *
 * RFC 9110 7.6: fields that speak of one connection are taken out, Via is
 * added, framing is written anew as it was understood.  All other fields keep
 * their order, case and number.
 */
#ifndef PROXY_REWRITE_H
#define PROXY_REWRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "proxy/http1.h"

/* What a rewritten head may be longer than the one that came in. */
#define REWRITE_EXTRA_MAX	2048
/* Free bytes that rewrite_body() wants before it takes another piece: every
 * line of a body fits, whatever its limits let through. */
#define REWRITE_ROOM_MIN	(HTTP1_TRAILERS_MAX + 64)

struct rewrite_request {
	struct str path;	/* target in origin-form, or "*" */
	struct str host;	/* the Host field: canonical authority */
	bool websocket;		/* pass the Upgrade on */
	bool expect;		/* the client waits for a 100 */
	bool close;		/* no other request follows on this connection */
	int max_forwards;	/* to send; -1: as it came */
};

/* 0, -ENOSPC or -ENOMEM; on failure @out is as before. */
NODISCARD int rewrite_request(const struct http1_head *h,
			      const struct rewrite_request *how,
			      struct buf *out);

/**
 * rewrite_hop() - A head of rewrite_request(), for whoever is the next hop
 * @authority:	of a parent proxy: where it goes, so that the target becomes
 *		http://AUTHORITY/PATH; empty: the origin, as it stands
 * @basic:	credentials of ours for the parent, or empty
 *
 * 0, -ENOSPC or -ENOMEM; on failure @out is as before.
 */
NODISCARD int rewrite_hop(struct str head, struct str authority,
			  struct str basic, struct buf *out);

struct rewrite_answer {
	uint8_t minor;			/* HTTP/1.minor of the client */
	enum http1_framing framing;	/* how the client is told its length */
	bool websocket;			/* the 101 that was asked for */
	struct str date;		/* for an answer without one */
	bool keep_alive;		/* the client's connection goes on */
};

/* How an answer is framed for a client of HTTP/1.@minor. */
enum http1_framing rewrite_framing(const struct http1_head *h, uint8_t minor);
NODISCARD int rewrite_answer(const struct http1_head *h,
			     const struct rewrite_answer *how,
			     struct buf *out);

/**
 * rewrite_body() - Move what there is of a body from @in to @out
 * @b:		state of the incoming body
 * @as:		framing of the outgoing one: HTTP1_CHUNKED keeps chunks and
 *		permitted trailers, or makes chunks of a body that ends with
 *		its stream; anything else keeps only the data
 * @out:	NULL: the body is thrown away
 * @limit:	stop when @out holds so many bytes
 * @ret_used:	bytes taken from @in; the caller consumes them
 *
 * Return: HTTP1_DONE when the body is over, HTTP1_MORE, HTTP1_BAD (a broken
 * body, or out of memory)
 */
enum http1_result rewrite_body(struct http1_body *b, struct str in,
			       enum http1_framing as, struct buf *out,
			       size_t limit, size_t *ret_used);

/**
 * rewrite_body_end() - What is still to be said when the stream ended in order
 *
 * Where it did not, nothing may be: that there is no last chunk tells of it.
 * @b:	may end here
 * Return: 0, -ENOSPC or -ENOMEM
 */
NODISCARD int rewrite_body_end(const struct http1_body *b,
			       enum http1_framing as, struct buf *out);

/* May this field stand behind a body (RFC 9110 6.5.1)? */
bool rewrite_trailer_passes(struct str name);

#endif /* PROXY_REWRITE_H */
