/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_strict_test.c - what RFC 9110 and 9112 ask of a proxy, word by word
 */
#include "tests/unit/forward_kit.h"

#define ASK(method, fields) \
	method " http://a.example.com/ HTTP/1.1\r\n" H fields "\r\n"
#define OPEN_NOTE	"dial a.example.com:80\n"

/* RFC 9110 6.6.1 */
static void an_answer_without_a_date_is_given_one(void **state)
{
	(void)state;
	start_with(ASK("GET", ""));
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 103 x\r\n\r\n" OK_2);
	assert_string_equal(hear(t.app), "HTTP/1.1 103 x\r\n" VIA "\r\n"
			    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" DATE
			    VIA "\r\nok");
	say(t.app, ASK("GET", ""));
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 204 x\r\nDate: then\r\n\r\n");
	assert_string_equal(hear(t.app), "HTTP/1.1 204 x\r\nDate: then\r\n" VIA
			    "\r\n");
}

/* RFC 9112 3.2.4 */
static void options_of_a_whole_server_ends_in_an_asterisk(void **state)
{
	(void)state;
	start_with("OPTIONS http://a.example.com HTTP/1.1\r\n" H "\r\n");
	expect(t.origin[0], "OPTIONS * HTTP/1.1\r\n" H VIA "\r\n");
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
	say(t.app, "OPTIONS http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	expect(t.origin[0], "OPTIONS / HTTP/1.1\r\n" H VIA "\r\n");
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
	say(t.app, "GET http://a.example.com HTTP/1.1\r\n" H "\r\n");
	expect(t.origin[0], "GET / HTTP/1.1\r\n" H VIA "\r\n");
}

/* RFC 9110 7.6.2: which of two is meant? */
static void max_forwards_is_said_once(void **state)
{
	(void)state;
	start_with(ASK("TRACE", "Max-Forwards: 5\r\nMax-Forwards: 0\r\n"));
	expect_refusal(400, true);
	assert_int_equal(t.dials, 0);
}

/* RFC 9110 9.3.8 */
static void a_trace_has_no_body(void **state)
{
	(void)state;
	start_with(ASK("TRACE", "Content-Length: 2\r\n") "hi");
	expect_refusal(400, true);
	assert_int_equal(t.dials, 0);
}

/* RFC 9110 7.6.3 */
static void a_request_that_goes_in_a_circle_is_stopped(void **state)
{
	(void)state;
	start_with(ASK("GET", "Via: 1.1 penstock, 1.0 fred, 1.1 penstock (x)\r\n"
		       "Via: 1.1 penstock,1.1 penstock,1.1 penstock,"
		       "1.1 penstock,1.1 penstock\r\n"));
	hear(t.origin[0]);
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
	say(t.app, ASK("GET", "Via: 1.1 penstock, 1.0 fred, 1.1 penstock (x)\r\n"
		       "Via: 1.1 penstock,1.1 penstock,1.1 penstock,"
		       "1.1 penstock,1.1 penstock, HTTP/1.1 penstock\r\n"));
	expect_refusal(502, false);
	expect_notes(OPEN_NOTE "allow allowed GET a.example.com:80 / 200\n"
		     "error proxy_loop GET a.example.com:80 / 502\n");
}

/* RFC 9110 10.1.1 */
static void an_expectation_that_nobody_knows_is_417(void **state)
{
	(void)state;
	start_with(ASK("GET", "Expect: 200-ok\r\n"));
	expect_refusal(417, false);
	say(t.app, ASK("GET", "Expect: 100-continue, 200-ok\r\n"));
	expect_refusal(417, false);
	assert_int_equal(t.dials, 0);
}

static void a_1_0_client_waits_for_no_100(void **state)
{
	(void)state;
	start_with("PUT http://a.example.com/ HTTP/1.0\r\n"
		   "Expect: 100-continue\r\nContent-Length: 2\r\n\r\nhi");
	expect(t.origin[0], "PUT / HTTP/1.1\r\nHost: a.example.com\r\n"
	       "Content-Length: 2\r\nVia: 1.0 penstock\r\n"
	       "Connection: close\r\n\r\nhi");
}

/* An origin that does not read it would find the next request in it. */
static void behind_a_body_without_a_meaning_comes_no_request(void **state)
{
	static const char *const methods[] = { "GET", "HEAD", "DELETE" };
	char text[256], want[256];

	(void)state;
	start();
	for (unsigned i = 0; i < ARRAY_SIZE(methods); i++) {
		assert_true(snprintf(text, sizeof(text), "%s "
				     "http://a.example.com/ HTTP/1.1\r\n" H
				     "Content-Length: 2\r\n\r\nhi",
				     methods[i]) > 0);
		assert_true(snprintf(want, sizeof(want), "%s / HTTP/1.1\r\n" H
				     "Content-Length: 2\r\n" VIA
				     "Connection: close\r\n\r\nhi",
				     methods[i]) > 0);
		say(t.app, text);
		assert_int_equal(t.dials, i + 1);
		expect(t.origin[i], want);
		say(t.origin[i], "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		assert_true(strlen(hear(t.app)) > 0);
		expect_end(t.origin[i]);
	}
}

static void what_only_looks_like_framing_is_refused(void **state)
{
	static const char *const names[] = {
		"Transfer_Encoding: chunked", "Content_Length: 5",
		"TransferEncoding: chunked", "Transfer-Encodings: chunked",
		"Content-Length-: 5", "Content.Length: 5",
		"transfer-encoding_: chunked", "~Transfer-Encoding: chunked",
	};
	char text[256];

	for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
		assert_true(snprintf(text, sizeof(text), "POST "
				     "http://a.example.com/ HTTP/1.1\r\n" H
				     "%s\r\n\r\n", names[i]) > 0);
		start_with(text);
		expect_refusal(400, true);
		expect_notes("deny framing_invalid  :0  400\n");
		assert_int_equal(t.dials, 0);
		forward_kit_close(state);
		forward_kit_open(state);
	}
	/* And nothing else is. */
	start_with(ASK("POST", "X-Content-Length: 5\r\nContent-Len: 5\r\n"
		       "Transfer: chunked\r\nContent-Encoding: x\r\n"));
	assert_int_equal(t.dials, 1);
}

/* RFC 9110 15.3.6 */
static void a_205_has_no_body_however_it_is_framed(void **state)
{
	static const struct { const char *sent; bool passes; } cases[] = {
		{ "Content-Length: 0\r\n\r\n", true },
		{ "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", true },
		{ "Content-Length: 5\r\n\r\nhello", false },
		{ "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
		  false },
		{ "\r\nhello", false },
	};
	char text[256];

	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		start_with(ASK("GET", ""));
		hear(t.origin[0]);
		assert_true(snprintf(text, sizeof(text), "HTTP/1.1 205 x\r\n%s",
				     cases[i].sent) > 0);
		say(t.origin[0], text);
		assert_null(strstr(hear(t.app), "hello"));
		expect_notes(cases[i].passes ? OPEN_NOTE
			     "allow allowed GET a.example.com:80 / 205\n" :
			     i == 2 ? OPEN_NOTE "net origin_protocol\n"
			     "error origin_protocol GET a.example.com:80 / 502\n" :
			     i == 3 ? OPEN_NOTE
			     "error origin_protocol GET a.example.com:80 / 205\n"
			     "net origin_protocol\n" : OPEN_NOTE
			     "error origin_protocol GET a.example.com:80 / 205\n"
			     "net origin_protocol\n"
			     "finish origin_protocol reset\n");
		forward_kit_close(state);
		forward_kit_open(state);
	}
}

/* --- connections that outlive their client ----------------------------------------- */

static void a_client_that_closes_leaves_the_origin_whole(void **state)
{
	(void)state;
	t.config.outlives = true;
	start_with(ASK("GET", "Connection: close\r\n"));
	expect(t.origin[0], "GET / HTTP/1.1\r\n" H VIA "\r\n");
	say(t.origin[0], OK_2);
	expect(t.app, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" VIA
	       "Connection: close\r\n\r\nok");
	expect_notes(OPEN_NOTE "allow allowed GET a.example.com:80 / 200\n"
		     "net idle\n");
}

static void what_is_not_whole_is_not_left(void **state)
{
	static const char *const said[] = {
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
		"Connection: close\r\n\r\nok",
		"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		OK_2 "more",
		OK_2 OK_2,
	};

	for (unsigned i = 0; i < ARRAY_SIZE(said); i++) {
		t.config.outlives = true;
		start_with(ASK("GET", "Connection: close\r\n"));
		hear(t.origin[0]);
		say(t.origin[0], said[i]);
		assert_string_equal(strstr(hear(t.app), "\r\n\r\n"),
				    "\r\n\r\nok");
		assert_int_equal(t.pooled, -1);
		forward_kit_close(state);
		forward_kit_open(state);
	}
}

/* The origin may take whoever asks on it for the one who logged in. */
static void what_a_client_logged_in_on_is_nobody_elses(void **state)
{
	static const char *const asked[] = {
		ASK("GET", "Authorization: NTLM TlRMTVNTUAAB\r\n"),
		ASK("GET", "authorization:\tnegotiate YII=\r\n"),
		ASK("GET", "Authorization: Basic YTpi\r\n"
		    "Authorization: Kerberos x\r\n"),
		ASK("GET", "Authorization: Nego2 x\r\n"),
	};

	for (unsigned i = 0; i < ARRAY_SIZE(asked); i++) {
		t.config.outlives = true;
		start_with(asked[i]);
		hear(t.origin[0]);
		say(t.origin[0], OK_2);
		assert_non_null(strstr(hear(t.app), "\r\n\r\nok"));
		/* Once is enough: the next request says nothing of it. */
		say(t.app, ASK("GET", "Connection: close\r\n"));
		expect(t.origin[0], "GET / HTTP/1.1\r\n" H VIA "\r\n");
		say(t.origin[0], OK_2);
		assert_non_null(strstr(hear(t.app), "\r\n\r\nok"));
		assert_int_equal(t.pooled, -1);
		forward_kit_close(state);
		forward_kit_open(state);
	}
}

/* An origin that does not read it takes it for a request, and answers that
 * one to whoever asks next. */
static void where_a_body_went_nobody_else_asks(void **state)
{
	static const char *const body[] = {
		"Content-Length: 27\r\n\r\nGET /other HTTP/1.1\r\nX: y\r\n",
		"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		"Content-Length: 0\r\n\r\n",
	};
	char said[256];

	for (unsigned i = 0; i < ARRAY_SIZE(body); i++) {
		t.config.outlives = true;
		assert_true(snprintf(said, sizeof(said),
				     "POST http://a.example.com/ HTTP/1.1\r\n"
				     H "Connection: close\r\n%s",
				     body[i]) > 0);
		start_with(said);
		hear(t.origin[0]);
		say(t.origin[0], OK_2);
		assert_non_null(strstr(hear(t.app), "\r\n\r\nok"));
		assert_int_equal(t.pooled != -1, i == 2);
		forward_kit_close(state);
		forward_kit_open(state);
	}
}

/* Other schemes are of one request. */
static void what_is_said_of_one_request_binds_nothing(void **state)
{
	static const char *const asked[] = {
		ASK("GET", "Authorization: Basic YTpi\r\n"
		    "Connection: close\r\n"),
		ASK("GET", "Authorization: Bearer NTLM\r\n"
		    "Connection: close\r\n"),
		ASK("GET", "X-Authorization: NTLM x\r\n"
		    "Connection: close\r\n"),
	};

	for (unsigned i = 0; i < ARRAY_SIZE(asked); i++) {
		t.config.outlives = true;
		start_with(asked[i]);
		hear(t.origin[0]);
		say(t.origin[0], OK_2);
		hear(t.app);
		assert_int_not_equal(t.pooled, -1);
		forward_kit_close(state);
		forward_kit_open(state);
	}
}

static void a_found_connection_that_died_is_dialled_for_once(void **state)
{
	int origin;

	(void)state;
	t.config.outlives = true;
	t.pooled = nonblocking_pair(&origin);
	start_with(ASK("GET", ""));
	expect(origin, "GET / HTTP/1.1\r\n" H VIA "\r\n");
	expect_notes("found a.example.com:80\n");
	close_fd(&origin);
	turn();
	expect_notes("net origin_closed\n" OPEN_NOTE);
	expect(t.origin[0], "GET / HTTP/1.1\r\n" H VIA "\r\n");
	close_fd(&t.origin[0]);
	turn();
	expect_refusal(502, false);
}

/* Behind the pool's look, before the request: it is nobody's answer. */
static void a_found_connection_that_speaks_first_is_dialled_for(void **state)
{
	int origin;

	(void)state;
	t.config.outlives = true;
	t.pooled = nonblocking_pair(&origin);
	say_bytes(origin, OK_2, strlen(OK_2));
	start_with(ASK("GET", ""));
	expect(origin, "");
	expect_notes("found a.example.com:80\n"
		     "net origin_closed\n" OPEN_NOTE);
	expect(t.origin[0], "GET / HTTP/1.1\r\n" H VIA "\r\n");
	expect(t.app, "");
	close_fd(&origin);
}

static void what_must_not_be_sent_twice_takes_none(void **state)
{
	int origin;

	(void)state;
	t.config.outlives = true;
	t.pooled = nonblocking_pair(&origin);
	start_with(ASK("POST", "Content-Length: 2\r\n") "hi");
	expect_notes(OPEN_NOTE);
	expect(origin, "");
	close_fd(&origin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_answer_without_a_date_is_given_one),
		T(options_of_a_whole_server_ends_in_an_asterisk),
		T(max_forwards_is_said_once),
		T(a_trace_has_no_body),
		T(a_request_that_goes_in_a_circle_is_stopped),
		T(an_expectation_that_nobody_knows_is_417),
		T(a_1_0_client_waits_for_no_100),
		T(behind_a_body_without_a_meaning_comes_no_request),
		T(what_only_looks_like_framing_is_refused),
		T(a_205_has_no_body_however_it_is_framed),
		T(a_client_that_closes_leaves_the_origin_whole),
		T(what_is_not_whole_is_not_left),
		T(what_a_client_logged_in_on_is_nobody_elses),
		T(where_a_body_went_nobody_else_asks),
		T(what_is_said_of_one_request_binds_nothing),
		T(a_found_connection_that_died_is_dialled_for_once),
		T(a_found_connection_that_speaks_first_is_dialled_for),
		T(what_must_not_be_sent_twice_takes_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
