/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_answer_fuzz.c - any bytes as an answer to the method that the first
 *                       byte picks, and what a client is given of it
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "proxy/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct http1_head head, again;

static void check_rewritten(struct str method, uint8_t minor)
{
	struct rewrite_answer how = {
		.minor = minor, .framing = rewrite_framing(&head, minor),
		.keep_alive = true,
	};
	struct buf out = BUF_INIT(HTTP1_HEAD_MAX + REWRITE_EXTRA_MAX);
	enum reason why;

	REQUIRE(rewrite_answer(&head, &how, &out) == 0);
	if (http1_parse_answer(buf_str(&out), method, &again, &why) ==
	    HTTP1_DONE) {
		REQUIRE(again.bytes == out.n);
		REQUIRE(again.status == head.status);
		REQUIRE(again.framing == how.framing);
		REQUIRE(!http1_field(&again, STR("proxy-authenticate")));
		REQUIRE(!http1_field(&again, STR("upgrade")));
	} else {
		REQUIRE(out.n > HTTP1_LINE_MAX ||
			again.nfields == HTTP1_FIELDS_MAX);
	}
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct str methods[] = {
		{ "GET", 3 }, { "HEAD", 4 }, { "CONNECT", 7 }, { "POST", 4 },
	};
	enum reason why = REASON_ALLOWED;
	struct str method, in;
	enum http1_result result;

	if (n == 0)
		return 0;
	method = methods[data[0] % ARRAY_SIZE(methods)];
	in = str_make(data + 1, n - 1);
	result = http1_parse_answer(in, method, &head, &why);
	REQUIRE(result != HTTP1_BAD || why == REASON_ORIGIN_PROTOCOL);
	REQUIRE(result != HTTP1_MORE || in.n < HTTP1_HEAD_MAX);
	if (result != HTTP1_DONE)
		return 0;
	REQUIRE(head.bytes <= in.n && head.status >= 100 && head.status < 1000);
	REQUIRE(http1_parse_answer(str_make(in.p, head.bytes - 1), method,
				   &again, &why) == HTTP1_MORE);
	check_rewritten(method, data[0] >> 7);
	return 0;
}
