/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_body_fuzz.c - any bytes as a chunked body: however it is cut, it comes
 *                     out the same, and what comes out is a body again, one
 *                     that the stricter of the two readers takes
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "proxy/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define OUT_MAX	(1u << 20)

struct walk {
	struct http1_body body;
	struct buf out;
	enum http1_result result;
	size_t used;
};

/* Give at most @step new bytes at a time, each time in exact memory. */
static void walk(struct walk *w, struct str in, bool from_origin,
		 enum http1_framing as, size_t step)
{
	const struct http1_head head = { .framing = HTTP1_CHUNKED };
	size_t given = 0;

	http1_body_init(&w->body, &head, from_origin);
	w->out = BUF_INIT(OUT_MAX);
	w->result = HTTP1_MORE;
	w->used = 0;
	while (w->result == HTTP1_MORE && given < in.n) {
		size_t used;
		char *exact;

		given = MIN(given + step, in.n);
		exact = mem_new(given - w->used + 1);
		if (!exact)
			abort();
		memcpy(exact, in.p + w->used, given - w->used);
		w->result = rewrite_body(&w->body,
					 str_make(exact, given - w->used), as,
					 &w->out, OUT_MAX, &used);
		w->used += used;
		mem_free(exact);
	}
}

static void compare(struct str in, bool from_origin, enum http1_framing as)
{
	struct walk whole, cut, second;

	walk(&whole, in, from_origin, as, in.n);
	walk(&cut, in, from_origin, as, 1 + in.n % 7);
	REQUIRE(whole.result == cut.result);
	REQUIRE(whole.used == cut.used);
	REQUIRE(str_eq(buf_str(&whole.out), buf_str(&cut.out)));
	if (as == HTTP1_CHUNKED && whole.result == HTTP1_DONE) {
		walk(&second, buf_str(&whole.out), false, as, whole.out.n);
		REQUIRE(second.result == HTTP1_DONE);
		REQUIRE(second.used == whole.out.n);
		REQUIRE(str_eq(buf_str(&second.out), buf_str(&whole.out)));
		buf_done(&second.out);
	}
	buf_done(&whole.out);
	buf_done(&cut.out);
}

/* A body that ends with its stream is given chunks, and is the same in them. */
static void compare_made(struct str in, size_t step)
{
	const struct http1_head close = { .framing = HTTP1_UNTIL_CLOSE };
	const struct http1_head chunked = { .framing = HTTP1_CHUNKED };
	struct buf made = BUF_INIT(OUT_MAX), again = BUF_INIT(OUT_MAX);
	struct http1_body b;
	size_t used;

	http1_body_init(&b, &close, true);
	for (size_t at = 0; at < in.n; at += used) {
		struct str part = str_make(in.p + at, MIN(step, in.n - at));

		REQUIRE(rewrite_body(&b, part, HTTP1_CHUNKED, &made, OUT_MAX,
				     &used) == HTTP1_MORE && used == part.n);
	}
	REQUIRE(rewrite_body_end(&b, HTTP1_CHUNKED, &made) == 0);
	http1_body_init(&b, &chunked, false);
	REQUIRE(rewrite_body(&b, buf_str(&made), HTTP1_UNTIL_CLOSE, &again,
			     OUT_MAX, &used) == HTTP1_DONE && used == made.n);
	REQUIRE(str_eq(buf_str(&again), in));
	buf_done(&made);
	buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n == 0 || n > OUT_MAX / 4)
		return 0;
	compare(str_make(data + 1, n - 1), data[0] & 1,
		data[0] & 2 ? HTTP1_UNTIL_CLOSE : HTTP1_CHUNKED);
	compare_made(str_make(data + 1, n - 1), 16u + data[0]);
	return 0;
}
