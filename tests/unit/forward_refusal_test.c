/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_refusal_test.c - where a request goes, and what is refused or fails
 */
#include "tests/unit/forward_kit.h"

/* --- where a request goes ---------------------------------------------------------- */

static void host_14_host_must_be_the_target(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n"
		   "Host: denied.example.net\r\n\r\n");
	expect_refusal(400, true);
	expect_notes("deny host_mismatch GET a.example.com:80 / 400"
		     " said denied.example.net\n");
}

static void host_16_a_pinned_name_and_port_are_the_ones(void **state)
{
	static const char *const bad[] = {
		"Host: b.example.com\r\n", "Host: a.example.com:8080\r\n",
		"Host: 192.0.2.1\r\n", "Host:\r\n", "Host: a.example.com.x\r\n",
	};
	char text[256];

	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start();
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n"
				 "%s\r\n", bad[i]);

		say_bytes(t.app, text, (size_t)n);
		expect_refusal(403, false);
	}
	say(t.app, "GET http://b.example.com/ HTTP/1.1\r\n" H "\r\n");
	expect_refusal(403, false);
	assert_int_equal(t.dials, 0);
	say(t.app, "GET http://a.example.com/x HTTP/1.1\r\n"
	    "Host: A.EXAMPLE.com:80\r\n\r\n");
	expect(t.origin[0], "GET /x HTTP/1.1\r\n" H VIA "\r\n");
}

static void a_request_without_host_gets_the_pinned_one(void **state)
{
	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 8080);
	start_with("GET / HTTP/1.0\r\n\r\n");
	expect(t.origin[0], "GET / HTTP/1.1\r\nHost: a.example.com:8080\r\n"
	       "Via: 1.0 penstock\r\nConnection: close\r\n\r\n");
}

static void without_a_known_name_host_says_where(void **state)
{
	(void)state;
	pin(FORWARD_BY_HOST, NULL, 80);
	start_with(A_GET);
	hear(t.origin[0]);
	say(t.origin[0], OK_2);
	hear(t.app);
	say(t.app, "GET / HTTP/1.1\r\nHost: denied.example.net\r\n\r\n");
	expect_refusal(403, false);
	say(t.app, "GET / HTTP/1.1\r\nHost: a.example.com:81\r\n\r\n");
	expect_refusal(403, false);
	say(t.app, "GET http://b.example.com/ HTTP/1.1\r\n" H "\r\n");
	expect_refusal(403, false);
	say(t.app, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n");
	expect_refusal(400, true);
	assert_int_equal(t.dials, 1);
}

static void http_29_each_form_has_its_answer_at_the_explicit_door(void **state)
{
	static const struct { const char *line; unsigned status; } cases[] = {
		{ "GET / HTTP/1.1", 400 },
		{ "GET https://a.example.com/ HTTP/1.1", 400 },
		{ "GET ftp://a.example.com/ HTTP/1.1", 400 },
		{ "connect a.example.com:443 HTTP/1.1", 400 },
		{ "GET * HTTP/1.1", 400 },
		{ "GET http://u@a.example.com/ HTTP/1.1", 400 },
	};
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int n = snprintf(text, sizeof(text), "%s\r\n" H "\r\n",
				 cases[i].line);

		start();
		say_bytes(t.app, text, (size_t)n);
		/* 400: not believed about where it ends, either. */
		expect_refusal(cases[i].status, cases[i].status == 400);
		assert_int_equal(forward_kit_close(state), 0);
		assert_int_equal(forward_kit_open(state), 0);
	}
	start();
	say(t.app, "FOO http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	expect(t.origin[0], "FOO / HTTP/1.1\r\n" H VIA "\r\n");
}

static void a_connect_between_requests_ends_the_connection(void **state)
{
	(void)state;
	start_with("CONNECT a.example.com:443 HTTP/1.1\r\n"
		   "Host: a.example.com:443\r\n\r\n\x16\x03\x01");
	expect_refusal(501, true);
}

static void observed_requests_pass_and_say_so(void **state)
{
	(void)state;
	start_with("GET http://watched.example.com/ HTTP/1.1\r\n"
		   "Host: watched.example.com\r\n\r\n");
	hear(t.origin[0]);
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
	expect_notes("dial watched.example.com:80\n"
		     "would_deny host_not_allowed GET watched.example.com:80"
		     " / 200\n");
}

/* --- refusals and failures ------------------------------------------------------ */

static void a_refused_body_is_drained_and_the_next_request_read(void **state)
{
	(void)state;
	start_with("POST http://denied.example.net/ HTTP/1.1\r\n"
		   "Host: denied.example.net\r\nContent-Length: 10\r\n\r\n"
		   "GET /");
	expect_refusal(403, false);
	say(t.app, " HTTPGET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	expect(t.origin[0], "GET / HTTP/1.1\r\n" H VIA "\r\n");
}

static void a_refused_body_without_bound_ends_the_connection(void **state)
{
	(void)state;
	start_with("POST http://denied.example.net/ HTTP/1.1\r\n"
		   "Host: denied.example.net\r\n"
		   "Content-Length: 1000000000\r\n\r\n");
	expect_refusal(403, true);
}

static void a_refused_endless_chunked_body_ends_the_connection(void **state)
{
	static char block[16384];
	bool closed;

	(void)state;
	memset(block, 'x', sizeof(block));
	start_with("POST http://denied.example.net/ HTTP/1.1\r\n"
		   "Host: denied.example.net\r\n"
		   "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n");
	assert_int_equal(refusal_status(&closed), 403);
	assert_false(closed);
	for (int i = 0; i < 20; i++)
		say_bytes(t.app, block, sizeof(block));
	expect_end(t.app);
}

static void a_client_that_waits_for_100_is_refused_and_closed(void **state)
{
	(void)state;
	start_with("POST http://denied.example.net/ HTTP/1.1\r\n"
		   "Host: denied.example.net\r\nExpect: 100-continue\r\n"
		   "Content-Length: 10\r\n\r\n");
	expect_refusal(403, true);
}

static void a_literal_is_recorded_as_the_address_that_it_is(void **state)
{
	(void)state;
	start_with("GET http://[2001:DB8::0:1]/ HTTP/1.1\r\n"
		   "Host: [2001:db8::1]:80\r\n\r\n");
	expect_refusal(403, false);
	expect_notes("deny host_not_allowed GET 2001:db8::1:80 / 403\n");
}

static void tun_02_a_failed_dial_is_told_from_a_denial(void **state)
{
	(void)state;
	t.dial_fails = REASON_CONNECT_REFUSED;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	expect_refusal(502, false);
	t.dial_fails = REASON_ADDRESS_METADATA;
	say(t.app, "GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	expect_refusal(403, false);
	expect_notes("dial a.example.com:80\n"
		     "error connect_refused GET a.example.com:80 / 502\n"
		     "dial a.example.com:80\n"
		     "deny address_metadata GET a.example.com:80 / 403\n");
}

static void http_01_an_ambiguous_request_reaches_nobody(void **state)
{
	(void)state;
	start_with("POST http://a.example.com/ HTTP/1.1\r\n" H
		   "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
		   "0\r\n\r\nGET http://denied.example.net/ HTTP/1.1\r\n\r\n");
	expect_refusal(400, true);
	expect_notes("deny framing_invalid  :0  400\n");
}

static void http_09_a_broken_upload_is_refused_and_the_origin_cut(void **state)
{
	(void)state;
	start_with("POST http://a.example.com/ HTTP/1.1\r\n" H
		   "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF1\r\n");
	expect_refusal(400, true);
	hear(t.origin[0]);
	expect_end(t.origin[0]);
}

static void http_30_tls_on_the_plain_port_is_told_and_closed(void **state)
{
	(void)state;
	start();
	say_bytes(t.app, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9);
	expect_refusal(400, true);
	expect_notes("deny tls_on_plain_port  :0  400\n");
}

static void http_19_a_101_that_nobody_asked_for_is_an_error(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 101 Switching Protocols\r\n"
	    "Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n");
	expect_refusal(502, false);
	expect_notes("dial a.example.com:80\n"
		     "net origin_protocol\n"
		     "error origin_protocol GET a.example.com:80 / 502\n");
}

static void an_answer_that_is_no_http_is_an_error(void **state)
{
	static const char *const bad[] = {
		"SSH-2.0-x\r\n",
		("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
		 "Transfer-Encoding: chunked\r\n\r\n"),
		"HTTP/1.1 407 x\r\nContent-Length: 0\r\n\r\n",
	};

	(void)state;
	start();
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		say(t.app, "GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
		say(t.origin[i], bad[i]);
		expect_refusal(502, false);
	}
}

static void an_origin_that_closes_without_an_answer_is_truncated(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	say(t.origin[0], "HTTP/1.1 200 OK\r\nX: ");
	close_fd(&t.origin[0]);
	turn();
	expect_refusal(502, false);
	expect_notes("dial a.example.com:80\n"
		     "net origin_truncated\n"
		     "error origin_truncated GET a.example.com:80 / 502\n");
}

static void http_23_a_truncated_answer_is_never_ended_cleanly(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
	close_fd(&t.origin[0]);
	turn();
	expect(t.app, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n" VIA
	       "\r\nhalf");
	expect_end(t.app);
	expect_notes("dial a.example.com:80\n"
		     "error origin_truncated GET a.example.com:80 / 200\n"
		     "net origin_truncated\n");
}

static void http_23_chunks_without_a_last_one_are_truncated(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "2\r\nab\r\n1");
	close_fd(&t.origin[0]);
	turn();
	expect(t.app, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" VIA
	       "\r\n2\r\nab\r\n");
	expect_end(t.app);
}

static void http_23_without_a_length_only_a_reset_tells(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.0\r\n\r\n");
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "2\r\nab\r\n");
	close_fd(&t.origin[0]);
	turn();
	expect_notes("dial a.example.com:80\n"
		     "error origin_truncated GET a.example.com:80 / 200\n"
		     "net origin_truncated\n"
		     "finish origin_truncated reset\n");
}

static void a_client_that_leaves_during_the_answer_ends_it(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
	close_fd(&t.app);	/* with the answer unread: a reset */
	turn();
	expect_notes("dial a.example.com:80\n"
		     "allow client_reset GET a.example.com:80 / 200\n"
		     "net client_reset\nfinish client_reset\n");
	expect_end(t.origin[0]);
}

static void a_client_that_leaves_during_its_upload_ends_it(void **state)
{
	(void)state;
	start_with("POST http://a.example.com/ HTTP/1.1\r\n" H
		   "Content-Length: 100\r\n\r\nhalf");
	shutdown(t.app, SHUT_WR);
	turn();
	expect_notes("dial a.example.com:80\n"
		     "allow client_closed POST a.example.com:80 / 0\n"
		     "net client_closed\nfinish client_closed\n");
	hear(t.origin[0]);
	expect_end(t.origin[0]);
}

static void a_client_that_leaves_during_the_dial_cancels_it(void **state)
{
	(void)state;
	t.dial_later = true;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	say_bytes(t.engine_app, "x", 1);	/* so that its close resets */
	close_fd(&t.app);
	turn();
	expect_notes("dial a.example.com:80\ndial cancelled\n"
		     "allow client_reset GET a.example.com:80 / 0\n"
		     "finish client_reset\n");
}

static void a_client_that_leaves_in_its_head_is_recorded(void **state)
{
	(void)state;
	start_with("GET http://a.exam");
	close_fd(&t.app);
	turn();
	expect_notes("deny client_closed_early  :0  0\n"
		     "finish client_closed_early\n");
}

static void a_client_that_says_nothing_is_left_to_the_owner(void **state)
{
	(void)state;
	start();
	close_fd(&t.app);
	turn();
	expect_notes("finish client_closed_early\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(host_14_host_must_be_the_target),
		T(host_16_a_pinned_name_and_port_are_the_ones),
		T(a_request_without_host_gets_the_pinned_one),
		T(without_a_known_name_host_says_where),
		T(http_29_each_form_has_its_answer_at_the_explicit_door),
		T(a_connect_between_requests_ends_the_connection),
		T(observed_requests_pass_and_say_so),
		T(a_refused_body_is_drained_and_the_next_request_read),
		T(a_refused_body_without_bound_ends_the_connection),
		T(a_refused_endless_chunked_body_ends_the_connection),
		T(a_client_that_waits_for_100_is_refused_and_closed),
		T(a_literal_is_recorded_as_the_address_that_it_is),
		T(tun_02_a_failed_dial_is_told_from_a_denial),
		T(http_01_an_ambiguous_request_reaches_nobody),
		T(http_09_a_broken_upload_is_refused_and_the_origin_cut),
		T(http_30_tls_on_the_plain_port_is_told_and_closed),
		T(http_19_a_101_that_nobody_asked_for_is_an_error),
		T(an_answer_that_is_no_http_is_an_error),
		T(an_origin_that_closes_without_an_answer_is_truncated),
		T(http_23_a_truncated_answer_is_never_ended_cleanly),
		T(http_23_chunks_without_a_last_one_are_truncated),
		T(http_23_without_a_length_only_a_reset_tells),
		T(a_client_that_leaves_during_the_answer_ends_it),
		T(a_client_that_leaves_during_its_upload_ends_it),
		T(a_client_that_leaves_during_the_dial_cancels_it),
		T(a_client_that_leaves_in_its_head_is_recorded),
		T(a_client_that_says_nothing_is_left_to_the_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
