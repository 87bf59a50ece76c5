/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_test.c - heads of requests and answers
 *
 * Input is laid into memory of its exact size, so that a sanitizer build sees
 * any byte read beyond it; each accepted head is also fed byte by byte.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "proxy/http1.h"

#define REQUEST(text)	STR(text), __LINE__
#define H11		"Host: a.example.com\r\n"

static char *exact(struct str s)
{
	char *p = mem_new_array(s.n ? s.n : 1, 1);

	assert_non_null(p);
	if (s.n)
		memcpy(p, s.p, s.n);
	return p;
}

static struct http1_head head;
static char *held;

/* Borrowed fields stay good until the next call. */
static enum http1_result request(struct str in, enum reason *ret_why)
{
	mem_free(held);
	held = exact(in);
	return http1_parse_request(str_make(held, in.n), &head, ret_why);
}

static enum http1_result answer(struct str in, struct str method,
				enum reason *ret_why)
{
	mem_free(held);
	held = exact(in);
	return http1_parse_answer(str_make(held, in.n), method, &head, ret_why);
}

static void must_refuse(struct str in, int line, enum reason want)
{
	enum reason why = REASON_ALLOWED;
	enum http1_result got = request(in, &why);

	if (got != HTTP1_BAD || why != want)
		fail_msg("line %d: result %d reason %s, not %s", line, got,
			 reason_word(why), reason_word(want));
}

/* Whole: accepted; every shorter prefix: more. */
static void must_accept(struct str in, int line)
{
	enum reason why = REASON_ALLOWED;
	size_t whole;

	if (request(in, &why) != HTTP1_DONE)
		fail_msg("line %d: refused: %s", line, reason_word(why));
	whole = head.bytes;
	for (size_t n = 0; n < whole; n++) {
		if (request(str_make(in.p, n), &why) != HTTP1_MORE)
			fail_msg("line %d: decided after %zu bytes", line, n);
	}
	assert_int_equal(request(in, &why), HTTP1_DONE);
}

static void must_refuse_answer(struct str in, int line)
{
	enum reason why = REASON_ALLOWED;
	enum http1_result got = answer(in, STR("GET"), &why);

	if (got != HTTP1_BAD || why != REASON_ORIGIN_PROTOCOL)
		fail_msg("line %d: result %d reason %s", line, got,
			 reason_word(why));
}

static void must_accept_answer(struct str in, struct str method, int line)
{
	enum reason why = REASON_ALLOWED;

	if (answer(in, method, &why) != HTTP1_DONE)
		fail_msg("line %d: refused: %s", line, reason_word(why));
}

static void assert_str(struct str got, const char *want)
{
	if (!str_eq(got, str_from(want)))
		fail_msg("\"%.*s\" is not \"%s\"", STR_ARG(got), want);
}

/* --- requests --------------------------------------------------------------- */

static void a_request_head_is_taken_apart(void **state)
{
	(void)state;
	must_accept(REQUEST("POST http://a.example.com/x?y HTTP/1.1\r\n"
			    "Host: a.example.com\r\n"
			    "X-A:  one two\t \r\n"
			    "x-a:\r\n"
			    "Content-Length: 5\r\n"
			    "\r\nhello"));
	assert_str(head.method, "POST");
	assert_str(head.target, "http://a.example.com/x?y");
	assert_str(head.host, "a.example.com");
	assert_int_equal(head.minor, 1);
	assert_int_equal(head.framing, HTTP1_LENGTH);
	assert_int_equal(head.length, 5);
	assert_true(head.keep_alive);
	assert_int_equal(head.nfields, 4);
	assert_str(head.field[1].name, "X-A");
	assert_str(head.field[1].value, "one two");
	assert_str(head.field[2].value, "");
	assert_str(http1_field(&head, STR("X-a"))->value, "one two");
	assert_null(http1_field(&head, STR("x-b")));
	assert_true(str_starts(str_make(held + head.bytes, 5), STR("hello")));
}

static void http_01_length_with_coding_is_refused(void **state)
{
	(void)state;
	must_refuse(REQUEST("POST http://a.example.com/ HTTP/1.1\r\n" H11
			    "Content-Length: 4\r\n"
			    "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
			    "GET http://denied.example.net/ HTTP/1.1\r\n\r\n"),
		    REASON_FRAMING_INVALID);
	must_refuse(REQUEST("POST / HTTP/1.1\r\n" H11
			    "Transfer-Encoding: chunked\r\n"
			    "Content-Length: 0\r\n\r\n"),
		    REASON_FRAMING_INVALID);
}

static void http_03_lengths_are_one_run_of_digits(void **state)
{
	static const char *const values[] = {
		"", "+5", "-1", "0x5", "5 5", "1e3", "18446744073709551617",
		"18446744073709551615", "9223372036854775808", "5, 5", "5,",
		"005", "5;", "\"5\"", "5.0", "99999999999999999999999999",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		char in[256];
		int n = snprintf(in, sizeof(in), "POST / HTTP/1.1\r\n" H11
				 "Content-Length: %s\r\n\r\n", values[i]);

		must_refuse(str_make(in, (size_t)n), (int)i,
			    REASON_FRAMING_INVALID);
	}
	must_refuse(REQUEST("POST / HTTP/1.1\r\n" H11 "Content-Length: 5\r\n"
			    "Content-Length: 5\r\n\r\nhello"),
		    REASON_FRAMING_INVALID);
	must_accept(REQUEST("POST / HTTP/1.1\r\n" H11
			    "Content-Length: 9223372036854775807\r\n\r\n"));
	assert_true(head.length == INT64_MAX);
	must_accept(REQUEST("PUT / HTTP/1.1\r\n" H11
			    "Content-Length: 0\r\n\r\n"));
	assert_int_equal(head.framing, HTTP1_NO_BODY);
	assert_true(head.has_length);
}

static void http_04_no_coding_but_one_chunked_passes(void **state)
{
	static const struct {
		const char *fields;
		enum reason why;
	} cases[] = {
		{ "Transfer-Encoding: chunkedx", REASON_FRAMING_INVALID },
		{ "Transfer-Encoding: xchunked", REASON_FRAMING_INVALID },
		{ "Transfer-Encoding: chunked, identity",
		  REASON_FRAMING_INVALID },
		{ "Transfer-Encoding: identity", REASON_FRAMING_INVALID },
		{ "Transfer-Encoding: ,chunked", REASON_FRAMING_INVALID },
		{ "Transfer-Encoding: chunked,", REASON_FRAMING_INVALID },
		{ "Transfer-Encoding:", REASON_FRAMING_INVALID },
		{ "Transfer-Encoding: chunked\x0b", REASON_REQUEST_MALFORMED },
		{ "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
		  REASON_FRAMING_INVALID },
		{ "Transfer-Encoding: chunked, chunked",
		  REASON_FRAMING_INVALID },
		{ "Transfer-Encoding: \"chunked\"", REASON_FRAMING_INVALID },
		{ "Transfer-Encoding: chunked;q=1", REASON_FRAMING_INVALID },
		{ "Transfer-Encoding: gzip", REASON_FRAMING_INVALID },
		{ "Transfer-Encoding: gzip, chunked",
		  REASON_CODING_NOT_SUPPORTED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char in[256];
		int n = snprintf(in, sizeof(in), "POST / HTTP/1.1\r\n" H11
				 "%s\r\n\r\n", cases[i].fields);

		must_refuse(str_make(in, (size_t)n), (int)i, cases[i].why);
	}
	/* RFC 9112 6.1: a coding in an HTTP/1.0 message is faulty framing. */
	must_refuse(REQUEST("POST / HTTP/1.0\r\n" H11
			    "Transfer-Encoding: chunked\r\n\r\n"),
		    REASON_FRAMING_INVALID);
}

static void http_05_chunked_is_read_in_any_case(void **state)
{
	(void)state;
	must_accept(REQUEST("POST / HTTP/1.1\r\n" H11
			    "Transfer-Encoding: CHUNKED\r\n\r\n"));
	assert_int_equal(head.framing, HTTP1_CHUNKED);
	must_accept_answer(STR("HTTP/1.1 200 OK\r\n"
			       "transfer-encoding: Chunked\r\n\r\n"),
			   STR("GET"), __LINE__);
	assert_int_equal(head.framing, HTTP1_CHUNKED);
}

static void http_07_a_field_name_is_a_token_before_its_colon(void **state)
{
	static const char *const lines[] = {
		"Content-Length : 5", "Content Length: 5", " Host: x", "Foo",
		":v", "\tX: y", "X\x01: y", "X: a\x01", "X: a\x7f", "X: a\rb",
		"X\xc3\xa4: y", "(X): y", "X:\n y", "X: y\r\n folded",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		char in[256];
		int n = snprintf(in, sizeof(in), "GET / HTTP/1.1\r\n" H11
				 "%s\r\n\r\n", lines[i]);

		must_refuse(str_make(in, (size_t)n), (int)i,
			    REASON_REQUEST_MALFORMED);
	}
	must_refuse(REQUEST("GET / HTTP/1.1\r\n" H11 "X: a\0b\r\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_accept(REQUEST("GET / HTTP/1.1\r\n" H11 "X: caf\xc3\xa9\r\n\r\n"));
}

static void lines_end_in_crlf_and_in_nothing_else(void **state)
{
	(void)state;
	must_refuse(REQUEST("GET / HTTP/1.1\n" H11 "\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET / HTTP/1.1\r\n" H11 "\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET / HTTP/1.1\r\n" H11 "X: yz\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET / HTTP/1.1\r\nHost: a\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET / HTTP/1.1\r\n\rHost: x\r\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET / HTTP/1.1\r\r\n" H11 "\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("\nGET / HTTP/1.1\r\n" H11 "\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("\r\n\r\nGET / HTTP/1.1\r\n" H11 "\r\n"),
		    REASON_REQUEST_MALFORMED);
}

static void one_empty_line_before_a_request_is_passed_over(void **state)
{
	(void)state;
	must_accept(REQUEST("\r\nGET / HTTP/1.1\r\n" H11 "\r\nrest"));
	assert_str(head.method, "GET");
	assert_int_equal(head.bytes, 2 + 16 + 21 + 2);
}

static void the_request_line_has_exactly_three_parts(void **state)
{
	(void)state;
	must_refuse(REQUEST("GET  / HTTP/1.1\r\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET / HTTP/1.1 \r\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET / / HTTP/1.1\r\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET /\tHTTP/1.1\r\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST(" GET / HTTP/1.1\r\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("G(T / HTTP/1.1\r\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET / http/1.1\r\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET / HTTP/1.10\r\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n"),
		    REASON_METHOD_NOT_SUPPORTED);
}

static void http_27_each_limit_has_its_reason(void **state)
{
	static char big[200 * 1024];
	const size_t start = 16;
	enum reason why;
	size_t n;

	(void)state;
	memset(big, 'a', sizeof(big));
	memcpy(big, "GET /", 5);
	must_refuse(str_make(big, 70 * 1024), __LINE__, REASON_URI_TOO_LONG);
	/* One line without an end, then one that is whole but too long. */
	memcpy(big, "GET / HTTP/1.1\r\n", start);
	memcpy(big + start, "X: ", 3);
	must_refuse(str_make(big, sizeof(big)), __LINE__,
		    REASON_HEADER_TOO_LARGE);
	/* Short lines that are too large together. */
	for (n = start; n + 1026 < sizeof(big); n += 1026) {
		memset(big + n, 'a', 1024);
		memcpy(big + n, "X: ", 3);
		memcpy(big + n + 1024, "\r\n", 2);
	}
	assert_int_equal(request(str_make(big, HTTP1_HEAD_MAX - 1), &why),
			 HTTP1_MORE);
	must_refuse(str_make(big, HTTP1_HEAD_MAX), __LINE__,
		    REASON_HEADER_TOO_LARGE);
	/* 5000 lines. */
	for (n = start; n + 6 < start + 5000ul * 6; n += 6)
		memcpy(big + n, "X: y\r\n", 6);
	must_refuse(str_make(big, n), __LINE__, REASON_HEADER_TOO_LARGE);
	n = start + 6ul * HTTP1_FIELDS_MAX;
	assert_int_equal(request(str_make(big, n), &why), HTTP1_MORE);
	must_refuse(str_make(big, n + 6), __LINE__, REASON_HEADER_TOO_LARGE);
}

static void http_28_raw_controls_in_a_target_are_refused(void **state)
{
	(void)state;
	must_refuse(REQUEST("GET /a\rX:1 HTTP/1.1\r\n" H11 "\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET /a\x01 HTTP/1.1\r\n" H11 "\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET /a\xc3\xa4 HTTP/1.1\r\n" H11 "\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET /a\0b HTTP/1.1\r\n" H11 "\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_accept(REQUEST("GET /%0d%0aX:1 HTTP/1.1\r\n" H11 "\r\n"));
	assert_str(head.target, "/%0d%0aX:1");
}

static void http_30_what_is_not_http_1_is_refused_at_once(void **state)
{
	static char zeros[1 << 20];

	(void)state;
	must_refuse(REQUEST("\x16"), REASON_TLS_ON_PLAIN_PORT);
	must_refuse(REQUEST("\x16\x03\x01\x02\x00\x01"),
		    REASON_TLS_ON_PLAIN_PORT);
	must_refuse(REQUEST("GET /\r\n"), REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET / HTTP/3.0\r\n\r\n"),
		    REASON_VERSION_NOT_SUPPORTED);
	must_refuse(REQUEST("GET / HTTP/1.2\r\n\r\n"),
		    REASON_VERSION_NOT_SUPPORTED);
	must_refuse(REQUEST("GET / HTTP/0.9\r\n\r\n"),
		    REASON_VERSION_NOT_SUPPORTED);
	must_refuse(REQUEST("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
		    REASON_VERSION_NOT_SUPPORTED);
	must_refuse(REQUEST("SSH-2.0-x\r\n"), REASON_REQUEST_MALFORMED);
	must_refuse(str_make(zeros, sizeof(zeros)), __LINE__,
		    REASON_REQUEST_MALFORMED);
	must_refuse(str_make(zeros, 1), __LINE__, REASON_REQUEST_MALFORMED);
}

static void http_37_many_equal_names_cost_no_more_than_others(void **state)
{
	static char in[32 * 1024];
	size_t n = 0;

	(void)state;
	memcpy(in, "GET / HTTP/1.1\r\nHost: a\r\n", 25);
	n = 25;
	for (int i = 0; i < HTTP1_FIELDS_MAX - 1; i++) {
		memcpy(in + n, "Ey: FB\r\n", 8);
		n += 8;
	}
	memcpy(in + n, "\r\n", 2);
	must_accept(str_make(in, n + 2), __LINE__);
	assert_int_equal(head.nfields, HTTP1_FIELDS_MAX);
}

static void a_1_1_request_has_exactly_one_host(void **state)
{
	(void)state;
	must_refuse(REQUEST("GET / HTTP/1.1\r\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET / HTTP/1.1\r\n" H11 "host: b\r\n\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_refuse(REQUEST("GET / HTTP/1.0\r\n" H11 H11 "\r\n"),
		    REASON_REQUEST_MALFORMED);
	must_accept(REQUEST("GET / HTTP/1.0\r\n\r\n"));
	assert_false(head.has_host);
	assert_false(head.keep_alive);
	/* TUN-04: old clients leave it out of a CONNECT. */
	must_accept(REQUEST("CONNECT a.example.com:443 HTTP/1.1\r\n\r\n"));
}

static void tun_05_a_connect_with_a_body_is_refused(void **state)
{
	(void)state;
	must_refuse(REQUEST("CONNECT a.example.com:443 HTTP/1.1\r\n" H11
			    "Content-Length: 5\r\n\r\nhello"),
		    REASON_FRAMING_INVALID);
	must_refuse(REQUEST("CONNECT a.example.com:443 HTTP/1.1\r\n" H11
			    "Transfer-Encoding: chunked\r\n\r\n"),
		    REASON_FRAMING_INVALID);
	must_accept(REQUEST("CONNECT a.example.com:443 HTTP/1.1\r\n" H11
			    "Content-Length: 0\r\n\r\n"));
}

static void persistence_follows_version_and_connection(void **state)
{
	(void)state;
	must_accept(REQUEST("GET / HTTP/1.1\r\n" H11
			    "Connection: foo\r\nConnection: x , Close\r\n\r\n"));
	assert_false(head.keep_alive);
	assert_true(http1_list_has(&head, STR("connection"), STR("FOO")));
	assert_false(http1_list_has(&head, STR("connection"), STR("fo")));
	must_accept(REQUEST("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
	assert_true(head.keep_alive);
	must_accept(REQUEST("GET / HTTP/1.0\r\n"
			    "Connection: keep-alive, close\r\n\r\n"));
	assert_false(head.keep_alive);
}

static void an_upgrade_takes_field_and_option_and_1_1(void **state)
{
	(void)state;
	must_accept(REQUEST("GET / HTTP/1.1\r\n" H11 "Upgrade: websocket\r\n"
			    "Connection: keep-alive, Upgrade\r\n\r\n"));
	assert_true(head.upgrade);
	must_accept(REQUEST("GET / HTTP/1.1\r\n" H11
			    "Upgrade: websocket\r\n\r\n"));
	assert_false(head.upgrade);
	must_accept(REQUEST("GET / HTTP/1.0\r\nUpgrade: websocket\r\n"
			    "Connection: Upgrade\r\n\r\n"));
	assert_false(head.upgrade);
}

static void an_expectation_is_noted(void **state)
{
	(void)state;
	must_accept(REQUEST("PUT / HTTP/1.1\r\n" H11 "Content-Length: 1\r\n"
			    "Expect: 100-Continue\r\n\r\nx"));
	assert_true(head.expect_continue);
}

static void a_head_is_read_again_only_when_it_may_have_ended(void **state)
{
	static char in[8192];

	(void)state;
	memset(in, 'a', sizeof(in));
	assert_true(http1_head_grew(str_make(in, 1), 0));
	assert_false(http1_head_grew(str_make(in, 3000), 1));
	assert_true(http1_head_grew(str_make(in, 5000), 3000));
	in[3000] = '\n';
	assert_true(http1_head_grew(str_make(in, 3001), 3000));
	assert_false(http1_head_grew(str_make(in, 3002), 3001));
	/* The buffer was emptied in between. */
	assert_true(http1_head_grew(str_make(in, 10), 3000));
}

/* --- answers ---------------------------------------------------------------- */

static void an_answer_head_is_taken_apart(void **state)
{
	(void)state;
	must_accept_answer(STR("HTTP/1.1 404 Not Found\r\n"
			       "Content-Length: 3\r\n\r\nabc"),
			   STR("GET"), __LINE__);
	assert_int_equal(head.status, 404);
	assert_str(head.phrase, "Not Found");
	assert_int_equal(head.framing, HTTP1_LENGTH);
	assert_int_equal(head.length, 3);
	assert_true(head.keep_alive);
	must_accept_answer(STR("HTTP/1.1 200\r\n\r\n"), STR("GET"), __LINE__);
	assert_str(head.phrase, "");
	must_accept_answer(STR("HTTP/1.0 999 \r\n\r\n"), STR("GET"), __LINE__);
	assert_int_equal(head.status, 999);
}

static void http_01_answers_have_the_same_strictness(void **state)
{
	(void)state;
	must_refuse_answer(REQUEST("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n"
				   "Content-Length: 4\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/1.1 200 OK\r\n"
				   "Content-Length: 4, 4\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/1.1 200 OK\r\n"
				   "Transfer-Encoding: gzip\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/1.0 200 OK\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/1.1 200 OK\nX: a\n\n"));
	must_refuse_answer(REQUEST("HTTP/1.1 200 OK\r\nX : a\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/1.1 200 O\x01K\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/1.1 20\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/1.1 2000\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/1.1 099 x\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/1.1  200 x\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/1.2 200 x\r\n\r\n"));
	must_refuse_answer(REQUEST("HTTP/2 200\r\n\r\n"));
	must_refuse_answer(REQUEST("\r\nHTTP/1.1 200 OK\r\n\r\n"));
	must_refuse_answer(REQUEST("SSH-2.0"));
}

static void http_18_interim_and_204_have_no_body_whatever_they_say(void **state)
{
	(void)state;
	must_accept_answer(STR("HTTP/1.1 100 Continue\r\n"
			       "Transfer-Encoding: chunked\r\n\r\n"),
			   STR("PUT"), __LINE__);
	assert_int_equal(head.framing, HTTP1_NO_BODY);
	must_accept_answer(STR("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"),
			   STR("GET"), __LINE__);
	assert_int_equal(head.framing, HTTP1_NO_BODY);
	assert_true(head.keep_alive);
	must_accept_answer(STR("HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\n"),
			   STR("GET"), __LINE__);
	assert_int_equal(head.framing, HTTP1_NO_BODY);
}

static void http_20_head_and_304_leave_the_connection_usable(void **state)
{
	(void)state;
	must_accept_answer(STR("HTTP/1.1 200 x\r\nContent-Length: 10\r\n\r\n"),
			   STR("HEAD"), __LINE__);
	assert_int_equal(head.framing, HTTP1_NO_BODY);
	assert_int_equal(head.length, 10);
	assert_true(head.keep_alive);
	must_accept_answer(STR("HTTP/1.1 304 x\r\nContent-Length: 10\r\n\r\n"),
			   STR("GET"), __LINE__);
	assert_int_equal(head.framing, HTTP1_NO_BODY);
	assert_true(head.keep_alive);
	must_accept_answer(STR("HTTP/1.1 200 x\r\n\r\n"), STR("HEAD"),
			   __LINE__);
	assert_true(head.keep_alive);
}

static void an_answer_without_a_length_lasts_until_the_close(void **state)
{
	(void)state;
	must_accept_answer(STR("HTTP/1.1 200 OK\r\n\r\n"), STR("GET"),
			   __LINE__);
	assert_int_equal(head.framing, HTTP1_UNTIL_CLOSE);
	assert_false(head.keep_alive);
	must_accept_answer(STR("HTTP/1.1 200 OK\r\n\r\n"), STR("CONNECT"),
			   __LINE__);
	assert_int_equal(head.framing, HTTP1_NO_BODY);
}

static void an_answer_is_decided_only_when_whole(void **state)
{
	struct str in = STR("HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
	enum reason why;

	(void)state;
	for (size_t n = 0; n < in.n; n++)
		assert_int_equal(answer(str_make(in.p, n), STR("GET"), &why),
				 HTTP1_MORE);
	assert_int_equal(answer(in, STR("GET"), &why), HTTP1_DONE);
}

static int drop(void **state)
{
	(void)state;
	mem_free(held);
	held = NULL;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_head_is_taken_apart),
		cmocka_unit_test(http_01_length_with_coding_is_refused),
		cmocka_unit_test(http_03_lengths_are_one_run_of_digits),
		cmocka_unit_test(http_04_no_coding_but_one_chunked_passes),
		cmocka_unit_test(http_05_chunked_is_read_in_any_case),
		cmocka_unit_test(
			http_07_a_field_name_is_a_token_before_its_colon),
		cmocka_unit_test(lines_end_in_crlf_and_in_nothing_else),
		cmocka_unit_test(one_empty_line_before_a_request_is_passed_over),
		cmocka_unit_test(the_request_line_has_exactly_three_parts),
		cmocka_unit_test(http_27_each_limit_has_its_reason),
		cmocka_unit_test(http_28_raw_controls_in_a_target_are_refused),
		cmocka_unit_test(http_30_what_is_not_http_1_is_refused_at_once),
		cmocka_unit_test(
			http_37_many_equal_names_cost_no_more_than_others),
		cmocka_unit_test(a_1_1_request_has_exactly_one_host),
		cmocka_unit_test(tun_05_a_connect_with_a_body_is_refused),
		cmocka_unit_test(persistence_follows_version_and_connection),
		cmocka_unit_test(an_upgrade_takes_field_and_option_and_1_1),
		cmocka_unit_test(an_expectation_is_noted),
		cmocka_unit_test(
			a_head_is_read_again_only_when_it_may_have_ended),
		cmocka_unit_test(an_answer_head_is_taken_apart),
		cmocka_unit_test(http_01_answers_have_the_same_strictness),
		cmocka_unit_test(
			http_18_interim_and_204_have_no_body_whatever_they_say),
		cmocka_unit_test(
			http_20_head_and_304_leave_the_connection_usable),
		cmocka_unit_test(
			an_answer_without_a_length_lasts_until_the_close),
		cmocka_unit_test(an_answer_is_decided_only_when_whole),
	};

	return cmocka_run_group_tests(tests, NULL, drop);
}
