/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_close_test.c - answers that end with their connection: whole or cut
 */
#include "proxy/rewrite.h"
#include "tests/unit/forward_kit.h"

#define OPEN_NOTE	"dial a.example.com:80\n"
#define CHUNKED		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" VIA \
			"\r\n"
#define CLOSING		"HTTP/1.1 200 OK\r\n" VIA "Connection: close\r\n\r\n"

static void ask(const char *method, unsigned minor)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "%s http://a.example.com/ "
			 "HTTP/1.%u\r\n" H "\r\n", method, minor);

	assert_true(n > 0 && n < (int)sizeof(text));
	say_bytes(t.app, text, (size_t)n);
}

static void a_client_that_reads_chunks_is_told_the_end(void **state)
{
	(void)state;
	start();
	ask("GET", 1);
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 200 OK\r\n\r\nall");
	expect(t.app, CHUNKED "3\r\nall\r\n");
	say(t.origin[0], " of it, as it comes");
	expect(t.app, "13\r\n of it, as it comes\r\n");
	close_fd(&t.origin[0]);
	turn();
	expect(t.app, "0\r\n\r\n");
	expect_notes(OPEN_NOTE
		     "allow allowed GET a.example.com:80 / 200\n"
		     "net origin_closed\n");
	/* Its connection goes on. */
	ask("GET", 1);
	hear(t.origin[1]);
	say(t.origin[1], "HTTP/1.0 200 OK\r\n\r\n");
	expect(t.app, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
	       "Via: 1.0 penstock\r\n\r\n");
	close_fd(&t.origin[1]);
	turn();
	expect(t.app, "0\r\n\r\n");
}

static void who_asks_for_a_close_has_both(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H
		   "Connection: close\r\n\r\n");
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 200 OK\r\n\r\nall");
	close_fd(&t.origin[0]);
	turn();
	expect(t.app, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" VIA
	       "Connection: close\r\n\r\n3\r\nall\r\n0\r\n\r\n");
	expect_end(t.app);
}

static void a_1_0_client_has_the_close(void **state)
{
	(void)state;
	start();
	ask("GET", 0);
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 200 OK\r\n\r\nall of it");
	expect(t.app, CLOSING "all of it");
	close_fd(&t.origin[0]);
	turn();
	expect_end(t.app);
	expect_notes(OPEN_NOTE "allow allowed GET a.example.com:80 / 200\n"
		     "net origin_closed\n");
}

/* With bytes of ours unread, its close is a reset. */
static void http_23_a_reset_is_not_the_end_of_an_answer(void **state)
{
	(void)state;
	start();
	ask("GET", 1);
	say(t.origin[0], "HTTP/1.1 200 OK\r\n\r\nhalf");
	close_fd(&t.origin[0]);
	turn();
	expect(t.app, CHUNKED "4\r\nhalf\r\n");
	expect_end(t.app);
	expect_notes(OPEN_NOTE
		     "error origin_truncated GET a.example.com:80 / 200\n"
		     "net origin_truncated\n");
}

static void http_23_a_1_0_client_is_reset_for_it(void **state)
{
	(void)state;
	start();
	ask("GET", 0);
	say(t.origin[0], "HTTP/1.1 200 OK\r\n\r\nhalf");
	close_fd(&t.origin[0]);
	turn();
	expect_notes(OPEN_NOTE
		     "error origin_truncated GET a.example.com:80 / 200\n"
		     "net origin_truncated\n"
		     "finish origin_truncated reset\n");
}

static void an_answer_that_we_cut_has_no_last_chunk(void **state)
{
	(void)state;
	start();
	ask("GET", 1);
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 200 OK\r\n\r\nhalf");
	forward_revoke(t.f, REASON_BYTES_EXCEEDED);
	turn();
	expect(t.app, CHUNKED "4\r\nhalf\r\n");
	expect_end(t.app);
	expect_notes(OPEN_NOTE
		     "deny bytes_exceeded GET a.example.com:80 / 200\n"
		     "net bytes_exceeded\n");
}

static void an_answer_without_content_has_no_chunks(void **state)
{
	static const struct { const char *method, *line, *want; } cases[] = {
		{ "HEAD", "HTTP/1.1 200 OK", "HTTP/1.1 200 OK\r\n" VIA "\r\n" },
		{ "HEAD", "HTTP/1.0 200 OK", "HTTP/1.1 200 OK\r\nVia: 1.0 "
		  "penstock\r\n\r\n" },
		{ "GET", "HTTP/1.1 204 x", "HTTP/1.1 204 x\r\n" VIA "\r\n" },
		{ "GET", "HTTP/1.1 304 x", "HTTP/1.1 304 x\r\n" VIA "\r\n" },
		/* It could have some, and must not. */
		{ "GET", "HTTP/1.1 205 x", "HTTP/1.1 205 x\r\n" VIA
		  "Connection: close\r\n\r\n" },
	};
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int n = snprintf(text, sizeof(text), "%s\r\n\r\n",
				 cases[i].line);

		start();
		ask(cases[i].method, 1);
		hear(t.origin[0]);
		say_bytes(t.origin[0], text, (size_t)n);
		close_fd(&t.origin[0]);
		turn();
		expect(t.app, cases[i].want);
		assert_int_equal(forward_kit_close(state), 0);
		assert_int_equal(forward_kit_open(state), 0);
	}
}

/* Nobody can say where it ends (RFC 9112 6.1). */
static void chunks_of_a_1_0_origin_are_a_fault(void **state)
{
	(void)state;
	start();
	ask("GET", 1);
	say(t.origin[0], "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n"
	    "\r\n2\r\nok\r\n0\r\n\r\n");
	expect_refusal(502, false);
}

/* What a slow client has of it at the end; its length. */
static size_t dechunk(char *wire, size_t n, char *out)
{
	const struct http1_head head = { .framing = HTTP1_CHUNKED };
	size_t used = 0, body = 0;
	struct http1_body b;
	struct http1_piece p;

	http1_body_init(&b, &head, false);
	while (!http1_body_over(&b)) {
		http1_body_next(&b, str_make(wire + used, n - used), &p);
		assert_true(p.kind != HTTP1_PIECE_BAD &&
			    p.kind != HTTP1_PIECE_NONE);
		used += p.used;
		if (p.data.n)
			memcpy(out + body, p.data.p, p.data.n);
		body += p.data.n;
	}
	assert_int_equal(used, n);
	return body;
}

static void a_large_one_is_whole_whatever_the_pieces(void **state)
{
	static char sent[3 * FORWARD_BUF], got[4 * FORWARD_BUF],
		    wire[4 * FORWARD_BUF];
	size_t at = 0, n = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(sent); i++)
		sent[i] = (char)(i * 31 + i / 251);
	start();
	ask("GET", 1);
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 200 OK\r\n\r\n");
	expect(t.app, CHUNKED);
	/* Pieces of many sizes, for a client that reads a little at times. */
	for (size_t step = 1; at < sizeof(sent); step = step * 3 % 7919) {
		size_t some = MIN(step, sizeof(sent) - at);
		ssize_t there;

		say_bytes(t.origin[0], sent + at, some);
		at += some;
		there = recv(t.app, wire + n, step % 4 ? 100 : 9000, 0);
		n += there > 0 ? (size_t)there : 0;
	}
	close_fd(&t.origin[0]);
	for (ssize_t there = 1; there > 0; n += there > 0 ? (size_t)there : 0) {
		turn();
		there = recv(t.app, wire + n, sizeof(wire) - n, 0);
	}
	assert_int_equal(dechunk(wire, n, got), sizeof(sent));
	assert_memory_equal(got, sent, sizeof(sent));
}

/* With as little room as it takes a piece for, it stays within. */
static void a_chunk_that_is_made_fits_its_limit(void **state)
{
	static char data[1 << 16];
	const struct http1_head head = { .framing = HTTP1_UNTIL_CLOSE };
	const size_t limit = 3 * REWRITE_ROOM_MIN;

	(void)state;
	memset(data, 'x', sizeof(data));
	for (size_t room = 0; room < 64; room++) {
		struct buf out = BUF_INIT(1 << 17);
		struct http1_body b;
		size_t used;

		http1_body_init(&b, &head, true);
		assert_int_equal(buf_add(&out, data, 2 * REWRITE_ROOM_MIN -
					 room), 0);
		assert_int_equal(rewrite_body(&b, str_make(data, sizeof(data)),
					      HTTP1_CHUNKED, &out, limit,
					      &used), HTTP1_MORE);
		assert_true(used > 0);
		assert_int_equal(rewrite_body_end(&b, HTTP1_CHUNKED, &out), 0);
		assert_true(out.n <= limit);
		buf_done(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_client_that_reads_chunks_is_told_the_end),
		T(who_asks_for_a_close_has_both),
		T(a_1_0_client_has_the_close),
		T(http_23_a_reset_is_not_the_end_of_an_answer),
		T(http_23_a_1_0_client_is_reset_for_it),
		T(an_answer_that_we_cut_has_no_last_chunk),
		T(an_answer_without_content_has_no_chunks),
		T(chunks_of_a_1_0_origin_are_a_fault),
		T(a_large_one_is_whole_whatever_the_pieces),
		T(a_chunk_that_is_made_fits_its_limit),
	};

	return cmocka_run_group_tests_name("forward_close", tests, NULL, NULL);
}
