/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_test.c - requests, answers, and the connections that they go on
 */
#include "tests/unit/forward_kit.h"

/* --- requests and answers ------------------------------------------------------ */

static void an_absolute_request_goes_on_in_origin_form(void **state)
{
	(void)state;
	start();
	say(t.app, "GET http://A.example.com:8080/x?y HTTP/1.1\r\n"
	    "Host: a.example.com:8080\r\nAccept: */*\r\n\r\n");
	expect(t.origin[0], "GET /x?y HTTP/1.1\r\n"
	       "Host: a.example.com:8080\r\nAccept: */*\r\n" VIA "\r\n");
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
	expect_notes("dial a.example.com:8080\n"
		     "allow allowed GET a.example.com:8080 /x 200\n");
	close_fd(&t.app);
	turn();
	expect_notes("net client_closed\nfinish client_closed\n");
}

static void early_bytes_are_the_first_to_be_read(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\nHo");
	say(t.app, "st: a.example.com\r\n\r\n");
	expect(t.origin[0], "GET / HTTP/1.1\r\n" H VIA "\r\n");
}

static void an_empty_path_becomes_a_slash(void **state)
{
	(void)state;
	start_with("GET http://a.example.com?q HTTP/1.0\r\n\r\n");
	expect(t.origin[0], "GET /?q HTTP/1.1\r\n" H "Via: 1.0 penstock\r\n"
	       "Connection: close\r\n\r\n");
}

static void http_31_order_case_and_number_of_fields_are_kept(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\nX-A: 1\r\n"
		   "hOsT: a.example.com\r\nx-a: 2\r\nCookie: c\r\nX-A: 1\r\n"
		   "ACCEPT:*/*\r\nX-Empty:\r\n\r\n");
	expect(t.origin[0], "GET / HTTP/1.1\r\nX-A: 1\r\n"
	       "hOsT: a.example.com\r\nx-a: 2\r\nCookie: c\r\nX-A: 1\r\n"
	       "ACCEPT: */*\r\nX-Empty: \r\n" VIA "\r\n");
	say(t.origin[0], "HTTP/1.1 200 fine\r\nSet-Cookie: a\r\n"
	    "SET-COOKIE: b\r\nSet-Cookie: a\r\nContent-Length: 0\r\n\r\n");
	expect(t.app, "HTTP/1.1 200 fine\r\nSet-Cookie: a\r\n"
	       "SET-COOKIE: b\r\nSet-Cookie: a\r\nContent-Length: 0\r\n"
	       VIA "\r\n");
}

static void http_13_connection_takes_what_it_names_but_no_framing(void **state)
{
	(void)state;
	start_with("POST http://a.example.com/ HTTP/1.1\r\n" H
		   "Content-Length: 2\r\nX-Api-Key: k\r\nX-Other: o\r\n"
		   "Connection: X-Api-Key, Host, Content-Length,"
		   " Transfer-Encoding, keep-alive\r\n\r\nab");
	expect(t.origin[0], "POST / HTTP/1.1\r\n" H "Content-Length: 2\r\n"
	       "X-Other: o\r\n" VIA "\r\nab");
}

static void http_14_http_15_what_is_the_hops_stays_on_the_hop(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H
		   "Proxy-Authorization: Basic eDp5\r\nproxy-connection: x\r\n"
		   "Keep-Alive: 5\r\nTE: trailers, gzip\r\nTrailer: x\r\n"
		   "Upgrade: foo\r\nConnection: Upgrade, TE\r\n"
		   "HTTP2-Settings: AAMAAABk\r\n\r\n");
	expect(t.origin[0], "GET / HTTP/1.1\r\n" H VIA "TE: trailers\r\n"
	       "Connection: TE\r\n\r\n");
	say(t.origin[0], "HTTP/1.1 200 OK\r\nProxy-Authenticate: Basic\r\n"
	    "Proxy-Status: penstock; error=x\r\nKeep-Alive: 5\r\n"
	    "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nUpgrade: h2c\r\n"
	    "Trailer: x\r\nContent-Length: 0\r\n\r\n");
	expect(t.app, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" VIA "\r\n");
}

static void http_22_lengths_are_kept(void **state)
{
	(void)state;
	start_with("PUT http://a.example.com/ HTTP/1.1\r\n" H
		   "Content-Length: 0\r\n\r\n");
	expect(t.origin[0], "PUT / HTTP/1.1\r\n" H "Content-Length: 0\r\n" VIA
	       "\r\n");
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
	say(t.app, "PUT http://a.example.com/ HTTP/1.1\r\n" H
	    "Content-Length: 5\r\n\r\nhello");
	expect(t.origin[0], "PUT / HTTP/1.1\r\n" H "Content-Length: 5\r\n" VIA
	       "\r\nhello");
}

static void http_20_no_body_is_waited_for_where_there_is_none(void **state)
{
	static const struct { const char *method, *sent, *heard; } cases[] = {
		{ "HEAD", "HTTP/1.1 200 x\r\nContent-Length: 10\r\n\r\n",
		  "HTTP/1.1 200 x\r\nContent-Length: 10\r\n" VIA "\r\n" },
		{ "GET", "HTTP/1.1 304 x\r\nContent-Length: 10\r\n\r\n",
		  "HTTP/1.1 304 x\r\n" VIA "\r\n" },
		{ "GET", "HTTP/1.1 304 x\r\nTransfer-Encoding: chunked\r\n\r\n",
		  "HTTP/1.1 304 x\r\n" VIA "\r\n" },
		{ "GET", "HTTP/1.1 204 x\r\nTransfer-Encoding: chunked\r\n\r\n",
		  "HTTP/1.1 204 x\r\n" VIA "\r\n" },
		{ "GET", "HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\n",
		  "HTTP/1.1 204 x\r\n" VIA "\r\n" },
	};
	char text[256];

	(void)state;
	start();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int n = snprintf(text, sizeof(text), "%s http://a.example.com/"
				 " HTTP/1.1\r\n" H "\r\n", cases[i].method);

		say_bytes(t.app, text, (size_t)n);
		hear(t.origin[0]);
		say(t.origin[0], cases[i].sent);
		expect(t.app, cases[i].heard);
	}
	assert_int_equal(t.dials, 1);
}

static void http_18_interim_answers_pass_and_leave_nothing_behind(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
	    "HTTP/1.1 100 Continue\r\nTransfer-Encoding: chunked\r\n\r\n"
	    OK_2);
	expect(t.app, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n" VIA "\r\n"
	       "HTTP/1.1 100 Continue\r\n" VIA "\r\n" SENT_2);
}

static void http_18_a_1_0_client_gets_the_final_answer_only(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.0\r\n\r\n");
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 100 Continue\r\n\r\n" OK_2);
	expect(t.app, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" VIA
	       "Connection: close\r\n\r\nok");
	expect_end(t.app);
}

static void interim_answers_do_not_go_on_for_ever(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	for (int i = 0; i <= FORWARD_INTERIM_MAX; i++)
		say(t.origin[0], "HTTP/1.1 100 x\r\n\r\n");
	assert_non_null(strstr(hear(t.app), "HTTP/1.1 502 origin_protocol"));
}

static void http_17_expect_is_passed_on_at_once(void **state)
{
	(void)state;
	start_with("PUT http://a.example.com/ HTTP/1.1\r\n" H
		   "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n");
	expect(t.origin[0], "PUT / HTTP/1.1\r\n" H "Content-Length: 4\r\n"
	       "Expect: 100-continue\r\n" VIA "\r\n");
	say(t.origin[0], "HTTP/1.1 100 Continue\r\n\r\n");
	expect(t.app, "HTTP/1.1 100 Continue\r\n" VIA "\r\n");
	say(t.app, "body");
	expect(t.origin[0], "body");
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
}

static void http_17_a_417_comes_through_without_the_body(void **state)
{
	(void)state;
	start_with("PUT http://a.example.com/ HTTP/1.1\r\n" H
		   "Content-Length: 4\r\nExpect: 100-continue\r\n\r\n");
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 417 no\r\nContent-Length: 0\r\n\r\n");
	expect(t.app, "HTTP/1.1 417 no\r\nContent-Length: 0\r\n" VIA
	       "Connection: close\r\n\r\n");
	expect_end(t.app);
	expect_end(t.origin[0]);
}

static void http_35_an_early_answer_to_an_upload_is_delivered(void **state)
{
	static char block[32768];

	(void)state;
	memset(block, 'x', sizeof(block));
	start_with("PUT http://a.example.com/ HTTP/1.1\r\n" H
		   "Content-Length: 52428800\r\n\r\n");
	say_bytes(t.app, block, sizeof(block));
	say(t.origin[0], "HTTP/1.1 413 too large\r\nContent-Length: 2\r\n"
	    "Connection: close\r\n\r\nno");
	close_fd(&t.origin[0]);		/* with the upload unread: a reset */
	turn();
	/* The client goes on sending, and is not reset for it. */
	say_bytes(t.app, block, sizeof(block));
	say_bytes(t.app, block, sizeof(block));
	expect(t.app, "HTTP/1.1 413 too large\r\nContent-Length: 2\r\n" VIA
	       "Connection: close\r\n\r\nno");
	expect_end(t.app);
	close_fd(&t.app);
	turn();
	assert_true(t.over);
}

static void http_05_http_11_chunks_are_written_anew(void **state)
{
	(void)state;
	start_with("POST http://a.example.com/ HTTP/1.1\r\n" H
		   "Transfer-Encoding: CHUNKED\r\n\r\n"
		   "005;ext=1\r\nhello\r\n0\r\n\r\n");
	expect(t.origin[0], "POST / HTTP/1.1\r\n" H
	       "Transfer-Encoding: chunked\r\n" VIA "\r\n"
	       "5\r\nhello\r\n0\r\n\r\n");
	say(t.origin[0], "HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"
	    "5  \r\nhel");
	expect(t.app, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n" VIA
	       "\r\n5\r\nhel");
	say(t.origin[0], "lo\r\n0;x\r\n\r\n");
	expect(t.app, "lo\r\n0\r\n\r\n");
	expect_notes("dial a.example.com:80\n"
		     "allow allowed POST a.example.com:80 / 200\n");
}

static void http_32_trailers_pass_but_for_those_that_must_not(void **state)
{
	(void)state;
	start_with("POST http://a.example.com/ HTTP/1.1\r\n" H
		   "Transfer-Encoding: chunked\r\n\r\n"
		   "0\r\nAuthorization: x\r\nX-Sum: 1\r\nhost: y\r\n\r\n");
	expect(t.origin[0], "POST / HTTP/1.1\r\n" H
	       "Transfer-Encoding: chunked\r\n" VIA "\r\n"
	       "0\r\nX-Sum: 1\r\n\r\n");
	say(t.origin[0], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "0\r\nGrpc-Status: 0\r\nProxy-Status: x\r\nSet-Cookie: a\r\n\r\n");
	expect(t.app, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" VIA
	       "\r\n0\r\nGrpc-Status: 0\r\n\r\n");
}

static void a_1_0_client_gets_chunks_as_plain_bytes(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.0\r\n"
		   "Connection: keep-alive\r\n\r\n");
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "5\r\nhello\r\n0\r\nX: y\r\n\r\n");
	expect(t.app, "HTTP/1.1 200 OK\r\n" VIA "Connection: close\r\n\r\n"
	       "hello");
	expect_end(t.app);
}

/* RFC 9112 9.3: a proxy must not, whatever the client asks for. */
static void a_1_0_client_is_closed_behind_its_answer(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.0\r\n"
		   "Connection: keep-alive\r\n\r\n");
	hear(t.origin[0]);
	say(t.origin[0], OK_2);
	expect(t.app, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" VIA
	       "Connection: close\r\n\r\nok");
	expect_end(t.app);
}

static void tun_18_bytes_are_passed_as_they_come(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
	    "\r\n");
	hear(t.app);
	for (int i = 0; i < 5; i++) {
		say(t.origin[0], "3\r\ne");
		expect(t.app, "3\r\ne");
		say(t.origin[0], "v\n\r\n");
		expect(t.app, "v\n\r\n");
	}
}

/* --- connections ----------------------------------------------------------------- */

static void http_25_every_request_of_a_connection_is_judged(void **state)
{
	(void)state;
	start();
	say(t.app, "GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
	say(t.app, "GET http://denied.example.net/x HTTP/1.1\r\n"
	    "Host: denied.example.net\r\n\r\n");
	expect_refusal(403, false);
	say(t.app, "GET http://b.example.com/ HTTP/1.1\r\n"
	    "Host: b.example.com\r\n\r\n");
	expect_end(t.origin[0]);
	hear(t.origin[1]);
	say(t.origin[1], OK_2);
	expect(t.app, SENT_2);
	expect_notes("dial a.example.com:80\n"
		     "allow allowed GET a.example.com:80 / 200\n"
		     "deny host_not_allowed GET denied.example.net:80 /x 403\n"
		     "net client_closed\n"
		     "dial b.example.com:80\n"
		     "allow allowed GET b.example.com:80 / 200\n");
}

static void tun_21_twenty_requests_use_one_connection(void **state)
{
	static const char *const methods[] = { "GET", "POST", "HEAD", "PUT" };
	char text[256];

	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start();
	for (int i = 0; i < 20; i++) {
		bool body = i % 2, head = i % 4 == 2;
		int n = snprintf(text, sizeof(text), "%s / HTTP/1.1\r\n" H
				 "%s\r\n%s", methods[i % 4],
				 body ? "Content-Length: 2\r\n" : "",
				 body ? "ab" : "");

		say_bytes(t.app, text, (size_t)n);
		assert_true(strlen(hear(t.origin[0])) > 20);
		say(t.origin[0], head ? "HTTP/1.1 200 OK\r\n\r\n" : OK_2);
		assert_true(strlen(hear(t.app)) > 20);
	}
	assert_int_equal(t.dials, 1);
}

static void a_pipelined_request_waits_for_its_turn(void **state)
{
	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start_with(A_GET "GET /2 HTTP/1.1\r\n" H "\r\n");
	expect(t.origin[0], "GET / HTTP/1.1\r\n" H VIA "\r\n");
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
	expect(t.origin[0], "GET /2 HTTP/1.1\r\n" H VIA "\r\n");
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
}

static void tun_22_a_kept_connection_that_died_is_dialled_anew(void **state)
{
	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start_with(A_GET);
	hear(t.origin[0]);
	say(t.origin[0], OK_2);
	hear(t.app);
	close_fd(&t.origin[0]);
	turn();
	say(t.app, A_GET);
	expect(t.origin[1], "GET / HTTP/1.1\r\n" H VIA "\r\n");
	expect_notes("dial a.example.com:80\n"
		     "allow allowed GET a.example.com:80 / 200\n"
		     "net origin_closed\n"
		     "dial a.example.com:80\n");
}

static void tun_22_a_safe_request_is_tried_once_more(void **state)
{
	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start_with(A_GET);
	hear(t.origin[0]);
	say(t.origin[0], OK_2);
	hear(t.app);
	/* It closes when the next request is already on its way. */
	say(t.app, A_GET);
	hear(t.origin[0]);
	close_fd(&t.origin[0]);
	turn();
	expect(t.origin[1], "GET / HTTP/1.1\r\n" H VIA "\r\n");
	/* The second one is not retried: it was fresh. */
	close_fd(&t.origin[1]);
	turn();
	expect_refusal(502, false);
	assert_int_equal(t.dials, 2);
}

static void a_post_on_a_dead_connection_is_not_sent_twice(void **state)
{
	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start_with(A_GET);
	hear(t.origin[0]);
	say(t.origin[0], OK_2);
	hear(t.app);
	say(t.app, "POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n");
	hear(t.origin[0]);
	close_fd(&t.origin[0]);
	turn();
	expect_refusal(502, false);
	assert_int_equal(t.dials, 1);
}

static void an_origin_that_speaks_unasked_loses_its_connection(void **state)
{
	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start_with(A_GET);
	hear(t.origin[0]);
	say(t.origin[0], OK_2 OK_2);
	expect(t.app, SENT_2);
	expect_end(t.origin[0]);
	say(t.app, A_GET);
	assert_int_equal(t.dials, 2);
}

static void a_client_that_wants_to_close_is_closed(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H
		   "Connection: close\r\n\r\n");
	hear(t.origin[0]);
	say(t.origin[0], OK_2);
	expect(t.app, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" VIA
	       "Connection: close\r\n\r\nok");
	expect_end(t.app);
}

static void a_client_may_close_its_half_behind_its_request(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	shutdown(t.app, SHUT_WR);
	turn();
	hear(t.origin[0]);
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
	expect_notes("dial a.example.com:80\n"
		     "allow allowed GET a.example.com:80 / 200\n"
		     "net client_closed\nfinish client_closed\n");
}

static void a_slow_reader_stops_the_origin(void **state)
{
	static char block[65536];
	size_t sent = 0, heard = 0;

	(void)state;
	memset(block, 'x', sizeof(block));
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n\r\n");
	while (sent < 8388608) {
		ssize_t n = send(t.origin[0], block,
				 MIN(sizeof(block), 8388608 - sent), 0);

		turn();
		if (n < 0)
			break;
		sent += (size_t)n;
	}
	/* Two sockets and two buffers hold it back, not 8 MiB. */
	assert_true(sent < 2 << 20);
	while (heard < 8388608) {
		ssize_t n = send(t.origin[0], block,
				 MIN(sizeof(block), 8388608 - sent), 0);

		if (n > 0)
			sent += (size_t)n;
		turn();
		heard += strlen(hear(t.app));
	}
	assert_int_equal(heard, 8388608 + strlen("HTTP/1.1 200 OK\r\n"
		"Content-Length: 8388608\r\n" DATE VIA "\r\n"));
}

/* The mirror image. */
static void a_slow_origin_stops_the_client(void **state)
{
	static char block[65536];
	size_t sent = 0, heard = 0, all = 8388608;

	(void)state;
	memset(block, 'x', sizeof(block));
	start_with("PUT http://a.example.com/ HTTP/1.1\r\n" H
		   "Content-Length: 8388608\r\n\r\n");
	while (sent < all) {
		ssize_t n = send(t.app, block, MIN(sizeof(block), all - sent),
				 0);

		turn();
		if (n < 0)
			break;
		sent += (size_t)n;
	}
	assert_true(sent < 2 << 20);
	while (sent < all) {
		ssize_t n = send(t.app, block, MIN(sizeof(block), all - sent),
				 0);

		if (n > 0)
			sent += (size_t)n;
		turn();
		heard += strlen(hear(t.origin[0]));
	}
	turn();
	heard += strlen(hear(t.origin[0]));
	assert_int_equal(heard, all + strlen("PUT / HTTP/1.1\r\n" H
		"Content-Length: 8388608\r\n" VIA "\r\n"));
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_absolute_request_goes_on_in_origin_form),
		T(early_bytes_are_the_first_to_be_read),
		T(an_empty_path_becomes_a_slash),
		T(http_31_order_case_and_number_of_fields_are_kept),
		T(http_13_connection_takes_what_it_names_but_no_framing),
		T(http_14_http_15_what_is_the_hops_stays_on_the_hop),
		T(http_22_lengths_are_kept),
		T(http_20_no_body_is_waited_for_where_there_is_none),
		T(http_18_interim_answers_pass_and_leave_nothing_behind),
		T(http_18_a_1_0_client_gets_the_final_answer_only),
		T(interim_answers_do_not_go_on_for_ever),
		T(http_17_expect_is_passed_on_at_once),
		T(http_17_a_417_comes_through_without_the_body),
		T(http_35_an_early_answer_to_an_upload_is_delivered),
		T(http_05_http_11_chunks_are_written_anew),
		T(http_32_trailers_pass_but_for_those_that_must_not),
		T(a_1_0_client_gets_chunks_as_plain_bytes),
		T(a_1_0_client_is_closed_behind_its_answer),
		T(tun_18_bytes_are_passed_as_they_come),
		T(http_25_every_request_of_a_connection_is_judged),
		T(tun_21_twenty_requests_use_one_connection),
		T(a_pipelined_request_waits_for_its_turn),
		T(tun_22_a_kept_connection_that_died_is_dialled_anew),
		T(tun_22_a_safe_request_is_tried_once_more),
		T(a_post_on_a_dead_connection_is_not_sent_twice),
		T(an_origin_that_speaks_unasked_loses_its_connection),
		T(a_client_that_wants_to_close_is_closed),
		T(a_client_may_close_its_half_behind_its_request),
		T(a_slow_reader_stops_the_origin),
		T(a_slow_origin_stops_the_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
