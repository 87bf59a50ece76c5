/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_body_test.c - bodies, in one piece and byte by byte
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "proxy/http1.h"

struct seen {
	struct buf data, trailers;
	enum http1_piece_kind end;	/* END, BAD, or NONE: wants more */
	size_t used;
};

static void seen_done(struct seen *s)
{
	buf_done(&s->data);
	buf_done(&s->trailers);
}

static void note(struct seen *s, const struct http1_piece *p)
{
	if (p->kind == HTTP1_PIECE_DATA)
		assert_int_equal(buf_add_str(&s->data, p->data), 0);
	if (p->kind == HTTP1_PIECE_TRAILER)
		assert_int_equal(buf_printf(&s->trailers, "%.*s=%.*s;",
					    STR_ARG(p->trailer.name),
					    STR_ARG(p->trailer.value)), 0);
}

/* Feed @in so that at most @step new bytes come at a time. */
static struct seen walk(struct http1_body b, struct str in, size_t step)
{
	struct seen s = {
		.data = BUF_INIT(1 << 20), .trailers = BUF_INIT(1 << 16),
	};
	size_t given = 0;

	for (;;) {
		struct http1_piece p;
		char *exact = mem_new_array(given - s.used + 1, 1);

		assert_non_null(exact);
		memcpy(exact, in.p + s.used, given - s.used);
		http1_body_next(&b, str_make(exact, given - s.used), &p);
		assert_true(p.used <= given - s.used);
		s.used += p.used;
		s.end = p.kind;
		note(&s, &p);
		mem_free(exact);
		if (p.kind == HTTP1_PIECE_END || p.kind == HTTP1_PIECE_BAD)
			return s;
		if (p.kind != HTTP1_PIECE_NONE)
			continue;
		if (given == in.n)
			return s;
		given = MIN(given + step, in.n);
	}
}

static struct http1_body body_of(enum http1_framing framing, uint64_t length,
				 bool from_origin)
{
	struct http1_head head = { .framing = framing, .length = length };
	struct http1_body b;

	http1_body_init(&b, &head, from_origin);
	return b;
}

static void check(struct http1_body b, struct str in, const char *data,
		  const char *trailers, size_t used)
{
	static const size_t steps[] = { 1, 2, 3, 7, 1 << 20 };

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct seen s = walk(b, in, steps[i]);

		assert_int_equal(s.end, HTTP1_PIECE_END);
		assert_true(str_eq(buf_str(&s.data), str_from(data)));
		assert_true(str_eq(buf_str(&s.trailers), str_from(trailers)));
		assert_int_equal(s.used, used);
		seen_done(&s);
	}
}

static void must_break(bool from_origin, struct str in)
{
	static const size_t steps[] = { 1, 1 << 20 };

	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct seen s = walk(body_of(HTTP1_CHUNKED, 0, from_origin),
				     in, steps[i]);

		if (s.end != HTTP1_PIECE_BAD)
			fail_msg("\"%.*s\" passed", STR_ARG(in));
		seen_done(&s);
	}
}

static void a_length_is_counted_to_its_last_byte(void **state)
{
	(void)state;
	check(body_of(HTTP1_LENGTH, 5, false), STR("helloGET /"), "hello", "",
	      5);
	check(body_of(HTTP1_NO_BODY, 0, false), STR("GET /"), "", "", 0);
}

static void a_length_may_not_end_early(void **state)
{
	struct http1_body b = body_of(HTTP1_LENGTH, 5, true);
	struct http1_piece p;

	(void)state;
	assert_false(http1_body_may_end(&b));
	http1_body_next(&b, STR("hell"), &p);
	assert_false(http1_body_may_end(&b));
	assert_false(http1_body_over(&b));
	http1_body_next(&b, STR("o"), &p);
	assert_true(http1_body_may_end(&b));
	assert_true(http1_body_over(&b));
}

static void a_body_until_the_close_takes_everything(void **state)
{
	struct http1_body b = body_of(HTTP1_UNTIL_CLOSE, 0, true);
	struct seen s = walk(b, STR("any\r\nthing"), 1);

	(void)state;
	assert_int_equal(s.end, HTTP1_PIECE_NONE);
	assert_int_equal(s.used, 10);
	assert_true(http1_body_may_end(&b));
	assert_false(http1_body_over(&b));
	seen_done(&s);
}

static void chunks_extensions_and_trailers_are_taken_apart(void **state)
{
	(void)state;
	check(body_of(HTTP1_CHUNKED, 0, false),
	      STR("5\r\nhello\r\n0\r\n\r\nGET"), "hello", "", 15);
	check(body_of(HTTP1_CHUNKED, 0, false),
	      STR("A;x=\"y\"\r\n0123456789\r\n00;z\r\nGrpc-Status:  0 \r\n"
		  "B:\r\n\r\n"),
	      "0123456789", "Grpc-Status=0;B=;", 51);
	check(body_of(HTTP1_CHUNKED, 0, false),
	      STR("0000000000000002\r\n\r\n\r\n0\r\n\r\n"), "\r\n", "", 27);
}

static void a_chunked_body_ends_only_behind_its_trailers(void **state)
{
	struct http1_body b = body_of(HTTP1_CHUNKED, 0, true);
	struct http1_piece p;

	(void)state;
	assert_false(http1_body_may_end(&b));
	http1_body_next(&b, STR("0\r\n"), &p);
	assert_int_equal(p.kind, HTTP1_PIECE_LAST_CHUNK);
	assert_false(http1_body_may_end(&b));
	http1_body_next(&b, STR("\r\n"), &p);
	assert_int_equal(p.kind, HTTP1_PIECE_END);
	assert_true(http1_body_may_end(&b));
}

static void http_09_sizes_neither_overflow_nor_stretch(void **state)
{
	(void)state;
	must_break(true, STR("FFFFFFFFFFFFFFFF1\r\n"));
	must_break(true, STR("FFFFFFFFFFFFFFFF\r\n"));
	must_break(true, STR("8000000000000000\r\n"));
	must_break(true, STR("-1\r\n"));
	must_break(true, STR("+1\r\n"));
	must_break(true, STR("0x5\r\n"));
	must_break(true, STR("\r\n"));
	must_break(true, STR("00000000000000000000\r\n"));
	must_break(true, STR("5_\r\n"));
	must_break(true, STR(" 5\r\n"));
	must_break(true, STR("5;\x01\r\n"));
	must_break(true, STR("5;\r\r\n"));
	must_break(true, STR("g\r\n"));
	must_break(true, STR("5\nhello"));
}

static void http_11_padding_is_let_pass_from_origins_only(void **state)
{
	(void)state;
	check(body_of(HTTP1_CHUNKED, 0, true),
	      STR("5  \r\nhello\r\n0\t\r\n\r\n"), "hello", "", 18);
	must_break(false, STR("5  \r\nhello\r\n0\r\n\r\n"));
	must_break(false, STR("5 ;x\r\nhello\r\n0\r\n\r\n"));
}

static void a_chunk_ends_in_crlf(void **state)
{
	(void)state;
	must_break(true, STR("5\r\nhello!\r\n"));
	must_break(true, STR("5\r\nhello\n0\r\n\r\n"));
	must_break(true, STR("5\r\nhello\r0\r\n\r\n"));
}

static void trailers_are_fields_and_bounded(void **state)
{
	static char in[HTTP1_TRAILERS_MAX + 64];
	size_t n = 3;

	(void)state;
	must_break(true, STR("0\r\nno colon\r\n\r\n"));
	must_break(true, STR("0\r\n X: y\r\n\r\n"));
	must_break(true, STR("0\r\nX : y\r\n\r\n"));
	must_break(true, STR("0\r\nX: \x01\r\n\r\n"));
	must_break(true, STR("0\r\n\n"));
	must_break(true, STR("0\r\nContent-Length: 5\r\n\r\n"));
	must_break(true, STR("0\r\ntransfer-encoding: chunked\r\n\r\n"));
	memcpy(in, "0\r\n", 3);
	for (int i = 0; i <= HTTP1_TRAILER_FIELDS; i++, n += 6)
		memcpy(in + n, "X: y\r\n", 6);
	must_break(true, str_make(in, n));
	memset(in + 3, 'a', sizeof(in) - 3);
	must_break(true, str_make(in, sizeof(in)));
	memset(in, 'a', sizeof(in));
	memcpy(in, "1;", 2);
	must_break(true, str_make(in, HTTP1_CHUNK_LINE_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_length_is_counted_to_its_last_byte),
		cmocka_unit_test(a_length_may_not_end_early),
		cmocka_unit_test(a_body_until_the_close_takes_everything),
		cmocka_unit_test(
			chunks_extensions_and_trailers_are_taken_apart),
		cmocka_unit_test(a_chunked_body_ends_only_behind_its_trailers),
		cmocka_unit_test(http_09_sizes_neither_overflow_nor_stretch),
		cmocka_unit_test(http_11_padding_is_let_pass_from_origins_only),
		cmocka_unit_test(a_chunk_ends_in_crlf),
		cmocka_unit_test(trailers_are_fields_and_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
