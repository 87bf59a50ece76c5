/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_request_fuzz.c - any bytes as a request: what is accepted must stand
 *                        inside the input, be decided by its last byte only,
 *                        and come out of the rewriting as the same request
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "proxy/rewrite.h"
#include "proxy/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct http1_head head, again;

static void check_inside(struct str in, struct str part)
{
	REQUIRE(part.n == 0 || (part.p >= in.p && part.p + part.n <= in.p + in.n));
}

static void check_head(struct str in)
{
	enum reason why;

	REQUIRE(head.bytes <= in.n && head.nfields <= HTTP1_FIELDS_MAX);
	check_inside(in, head.method);
	check_inside(in, head.target);
	check_inside(in, head.host);
	for (size_t i = 0; i < head.nfields; i++) {
		check_inside(in, head.field[i].name);
		check_inside(in, head.field[i].value);
		REQUIRE(http1_is_token(head.field[i].name));
	}
	REQUIRE(http1_parse_request(str_make(in.p, head.bytes - 1), &again,
				    &why) == HTTP1_MORE);
}

static void check_rewritten(const struct http1_target *t)
{
	char accept[WEBSOCKET_ACCEPT_SIZE];
	struct rewrite_request how = {
		.path = t->path, .host = STR("judged.example.com"),
		.websocket = websocket_asked(&head, accept),
		.max_forwards = -1,
	};
	struct buf out = BUF_INIT(HTTP1_HEAD_MAX + REWRITE_EXTRA_MAX);
	enum reason why = REASON_ALLOWED;

	REQUIRE(rewrite_request(&head, &how, &out) == 0);
	/* Only by what was added may it have become too large. */
	if (http1_parse_request(buf_str(&out), &again, &why) == HTTP1_DONE) {
		REQUIRE(again.bytes == out.n);
		REQUIRE(str_eq(again.method, head.method));
		REQUIRE(str_eq(again.host, how.host));
		REQUIRE(again.framing == head.framing);
		REQUIRE(again.length == head.length);
		REQUIRE(!http1_field(&again, STR("proxy-authorization")));
	} else {
		REQUIRE(why == REASON_HEADER_TOO_LARGE ||
			why == REASON_URI_TOO_LONG);
	}
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str in = str_make(data, n);
	struct http1_target t;
	enum reason why = REASON_ALLOWED;

	switch (http1_parse_request(in, &head, &why)) {
	case HTTP1_MORE:
		REQUIRE(n < HTTP1_HEAD_MAX);
		return 0;
	case HTTP1_BAD:
		REQUIRE(why != REASON_ALLOWED);
		return 0;
	case HTTP1_DONE:
		break;
	}
	check_head(in);
	if (!http1_parse_target(&head, &t, &why)) {
		REQUIRE(why != REASON_ALLOWED);
		return 0;
	}
	REQUIRE(t.form != HTTP1_ABSOLUTE_FORM || t.kind != HOST_BAD);
	if (t.form != HTTP1_AUTHORITY_FORM)
		check_rewritten(&t);
	return 0;
}
