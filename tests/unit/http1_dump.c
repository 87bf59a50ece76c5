/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_dump.c - say how requests are read, for the differential test
 *
 * Standard input: cases, each a decimal length, a newline and so many bytes.
 * Standard output: a line for each, either "more", "bad REASON" or
 * "ok METHOD TARGET FRAMING BODY", with framing none, length or chunked, and
 * body the hex of what was decoded of it, "-" when it did not end well.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "proxy/http1.h"
#include "proxy/rewrite.h"

#define CASE_MAX	(1u << 20)

static struct http1_head head;

static void print_body(struct str in)
{
	struct buf out = BUF_INIT(2 * CASE_MAX);
	struct http1_body b;
	size_t used;

	http1_body_init(&b, &head, false);
	if (rewrite_body(&b, in, HTTP1_UNTIL_CLOSE, &out, out.max, &used) !=
	    HTTP1_DONE) {
		printf("-\n");
		buf_done(&out);
		return;
	}
	printf("=");
	for (size_t i = 0; i < out.n; i++)
		printf("%02x", (unsigned char)out.p[i]);
	printf("\n");
	buf_done(&out);
}

static void dump(struct str in)
{
	static const char *const framings[] = {
		[HTTP1_NO_BODY] = "none", [HTTP1_LENGTH] = "length",
		[HTTP1_CHUNKED] = "chunked", [HTTP1_UNTIL_CLOSE] = "close",
	};
	enum reason why = REASON_ALLOWED;

	switch (http1_parse_request(in, &head, &why)) {
	case HTTP1_MORE:
		printf("more\n");
		return;
	case HTTP1_BAD:
		printf("bad %s\n", reason_word(why));
		return;
	case HTTP1_DONE:
		break;
	}
	printf("ok %.*s %.*s %s ", STR_ARG(head.method), STR_ARG(head.target),
	       framings[head.framing]);
	print_body(str_make(in.p + head.bytes, in.n - head.bytes));
}

int main(void)
{
	unsigned long n;
	char line[32];

	while (fgets(line, sizeof(line), stdin)) {
		struct str digits = str_make(line, strcspn(line, "\n"));
		char *p;

		if (str_to_uint(digits, CASE_MAX, &n) < 0)
			return 1;
		p = mem_new(n + 1);
		if (!p || fread(p, 1, n, stdin) != n)
			return 1;
		dump(str_make(p, n));
		mem_free(p);
	}
	return 0;
}
