/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_final_test.c - OPTIONS and TRACE: how far they go, and what they are
 * told where they end
 */
#include "tests/unit/forward_kit.h"

#define ALLOW	"Allow: GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS, TRACE"
#define OPTIONS_ANSWER(more, close)	\
	"HTTP/1.1 200 OK\r\n" ALLOW more "\r\nContent-Length: 0\r\n" close \
	"\r\n"

/* A TRACE that ends here is shown @want. */
static void expect_trace(const char *want)
{
	char text[4096];
	int n = snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n"
			 "Content-Type: message/http\r\n"
			 "Content-Length: %zu\r\n\r\n%s", strlen(want), want);

	assert_true(n > 0 && n < (int)sizeof(text));
	expect(t.app, text);
}

static void options_of_everything_asks_the_explicit_door_itself(void **state)
{
	(void)state;
	start_with("OPTIONS * HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n");
	assert_non_null(strstr(hear(t.app), "200 OK\r\n" DATE ALLOW));
	expect_notes("allow allowed OPTIONS :0 * 200\n");
	/* Whoever its Host may be: nobody is asked, and nothing is judged. */
	say(t.app, "OPTIONS * HTTP/1.1\r\nHost: denied.example.net\r\n\r\n");
	expect(t.app, OPTIONS_ANSWER(", CONNECT", ""));
	say(t.app, "OPTIONS * HTTP/1.1\r\nHost:\r\nMax-Forwards: 7\r\n\r\n");
	expect(t.app, OPTIONS_ANSWER(", CONNECT", ""));
	expect_notes("allow allowed OPTIONS :0 * 200\n"
		     "allow allowed OPTIONS :0 * 200\n");
	assert_int_equal(t.dials, 0);
	say(t.app, "GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	expect(t.origin[0], "GET / HTTP/1.1\r\n" H VIA "\r\n");
}

static void what_is_wrong_with_a_request_is_so_with_one_for_us(void **state)
{
	static const struct { const char *fields; unsigned status; } bad[] = {
		{ "Host: a b\r\n", 400 },
		{ "", 400 },
		{ H "Max-Forwards: x\r\n", 400 },
		{ H "Expect: 200-ok\r\n", 417 },
		{ H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400 },
	};
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int n = snprintf(text, sizeof(text), "OPTIONS * HTTP/1.1\r\n"
				 "%s\r\n", bad[i].fields);

		start();
		say_bytes(t.app, text, (size_t)n);
		expect_refusal(bad[i].status, bad[i].status == 400);
		assert_int_equal(forward_kit_close(state), 0);
		assert_int_equal(forward_kit_open(state), 0);
	}
}

static void the_body_of_what_ends_here_is_read_and_lost(void **state)
{
	(void)state;
	start_with("OPTIONS * HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhe");
	expect(t.app, OPTIONS_ANSWER(", CONNECT", ""));
	say(t.app, "lloGET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	expect(t.origin[0], "GET / HTTP/1.1\r\n" H VIA "\r\n");
}

static void who_waits_to_send_a_body_has_the_connection_closed(void **state)
{
	(void)state;
	start_with("OPTIONS * HTTP/1.1\r\n" H "Content-Length: 5\r\n"
		   "Expect: 100-continue\r\n\r\n");
	expect(t.app, OPTIONS_ANSWER(", CONNECT", "Connection: close\r\n"));
	expect_end(t.app);
}

static void a_1_0_client_is_answered_and_closed(void **state)
{
	(void)state;
	start_with("OPTIONS * HTTP/1.0\r\n\r\n");
	expect(t.app, OPTIONS_ANSWER(", CONNECT", "Connection: close\r\n"));
	expect_end(t.app);
}

static void at_0_max_forwards_ends_here(void **state)
{
	(void)state;
	start_with("OPTIONS http://a.example.com HTTP/1.1\r\n" H
		   "Max-Forwards: 0\r\n\r\n");
	expect(t.app, OPTIONS_ANSWER(", CONNECT", ""));
	say(t.app, "TRACE http://a.example.com/x?y HTTP/1.1\r\n" H
	    "Max-Forwards: 00\r\n\r\n");
	expect_trace("TRACE http://a.example.com/x?y HTTP/1.1\r\n" H
		     "Max-Forwards: 00\r\n\r\n");
	expect_notes("allow allowed OPTIONS a.example.com:80 * 200\n"
		     "allow allowed TRACE a.example.com:80 /x 200\n");
	/* Of other methods it is none of ours (RFC 9110 7.6.2). */
	say(t.app, "GET http://a.example.com/ HTTP/1.1\r\n" H
	    "Max-Forwards: 0\r\n\r\n");
	expect(t.origin[0], "GET / HTTP/1.1\r\n" H "Max-Forwards: 0\r\n" VIA
	       "\r\n");
	assert_int_equal(t.dials, 1);
}

static void a_door_without_a_proxy_does_not_speak_of_connect(void **state)
{
	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start_with("OPTIONS * HTTP/1.1\r\n" H "Max-Forwards: 0\r\n\r\n");
	expect(t.app, OPTIONS_ANSWER("", ""));
	assert_int_equal(t.dials, 0);
}

/* What is refused is refused before anybody answers it. */
static void the_rules_come_before_an_answer_of_ours(void **state)
{
	(void)state;
	start_with("OPTIONS http://denied.example.net/ HTTP/1.1\r\n"
		   "Host: denied.example.net\r\nMax-Forwards: 0\r\n\r\n");
	expect_refusal(403, false);
	expect_notes("deny host_not_allowed OPTIONS denied.example.net:80 /"
		     " 403\n");
	say(t.app, "TRACE http://watched.example.com/ HTTP/1.1\r\n"
	    "Host: watched.example.com\r\nMax-Forwards: 0\r\n\r\n");
	expect_trace("TRACE http://watched.example.com/ HTTP/1.1\r\n"
		     "Host: watched.example.com\r\nMax-Forwards: 0\r\n\r\n");
	expect_notes("would_deny host_not_allowed TRACE"
		     " watched.example.com:80 / 200\n");
}

static void before_0_max_forwards_is_counted_down(void **state)
{
	static const struct { const char *said, *sent; } cases[] = {
		{ "1", "0" }, { "3", "2" }, { "010", "9" }, { "255", "254" },
		{ "256", "254" }, { "99999999999999999999", "254" },
	};
	char said[128], sent[128];

	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int n = snprintf(said, sizeof(said), "OPTIONS * HTTP/1.1\r\n" H
				 "Max-Forwards: %s\r\n\r\n", cases[i].said);

		assert_true(snprintf(sent, sizeof(sent), "OPTIONS * HTTP/1.1"
				     "\r\n" H "Max-Forwards: %s\r\n" VIA "\r\n",
				     cases[i].sent) > 0);
		say_bytes(t.app, said, (size_t)n);
		expect(t.origin[0], sent);
		say(t.origin[0], OK_2);
		hear(t.app);
	}
	assert_int_equal(t.dials, 1);
}

static void a_max_forwards_that_is_no_number_is_refused(void **state)
{
	static const char *const bad[] = { "x", "-1", "+1", "1.0", "", "1 1" };
	char text[256];

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int n = snprintf(text, sizeof(text), "TRACE "
				 "http://a.example.com/ HTTP/1.1\r\n" H
				 "Max-Forwards: %s\r\n\r\n", bad[i]);

		start();
		say_bytes(t.app, text, (size_t)n);
		expect_refusal(400, true);
		assert_int_equal(t.dials, 0);
		assert_int_equal(forward_kit_close(state), 0);
		assert_int_equal(forward_kit_open(state), 0);
	}
}

static void a_trace_is_not_shown_what_is_secret(void **state)
{
	(void)state;
	start_with("TRACE http://a.example.com/ HTTP/1.1\r\n" H
		   "Max-Forwards: 0\r\nAuthorization: Basic eDp5\r\n"
		   "proxy-authorization: Basic eDp5\r\nCookie: a=b\r\n"
		   "X-Api-Key: k\r\nX-Vault-Token: t\r\nX-Amz-Signature: s\r\n"
		   "Private-Session: s\r\nX-Plain: p\r\nVia: 1.1 x\r\n\r\n");
	expect_trace("TRACE http://a.example.com/ HTTP/1.1\r\n" H
		     "Max-Forwards: 0\r\nX-Plain: p\r\nVia: 1.1 x\r\n\r\n");
}

static void the_largest_trace_is_shown_whole(void **state)
{
	static char said[HTTP1_HEAD_MAX + 1];
	const char *heard;
	size_t n;

	(void)state;
	n = (size_t)snprintf(said, sizeof(said), "TRACE http://a.example.com/"
			     " HTTP/1.1\r\n" H "Max-Forwards: 0\r\n");
	while (n + 16390 < HTTP1_HEAD_MAX) {
		n += (size_t)snprintf(said + n, sizeof(said) - n, "X-%zu: ", n);
		memset(said + n, 'x', 16000);
		n += 16000;
		n += (size_t)snprintf(said + n, sizeof(said) - n, "\r\n");
	}
	n += (size_t)snprintf(said + n, sizeof(said) - n, "\r\n");
	start();
	say_bytes(t.app, said, n);
	heard = strstr(hear(t.app), "\r\n\r\n");
	assert_non_null(heard);
	assert_string_equal(heard + 4, said);
}

static void without_memory_it_is_refused_and_recorded_once(void **state)
{
	(void)state;
	start();
	mem_test_fail_at(2);
	say(t.app, "TRACE http://a.example.com/ HTTP/1.1\r\n" H
	    "Max-Forwards: 0\r\n\r\n");
	mem_test_fail_at(0);
	assert_null(strstr(buf_cstr(&t.notes), "allow"));
	assert_non_null(strstr(buf_cstr(&t.notes), "memory_exceeded"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(options_of_everything_asks_the_explicit_door_itself),
		T(what_is_wrong_with_a_request_is_so_with_one_for_us),
		T(the_body_of_what_ends_here_is_read_and_lost),
		T(who_waits_to_send_a_body_has_the_connection_closed),
		T(a_1_0_client_is_answered_and_closed),
		T(at_0_max_forwards_ends_here),
		T(a_door_without_a_proxy_does_not_speak_of_connect),
		T(the_rules_come_before_an_answer_of_ours),
		T(before_0_max_forwards_is_counted_down),
		T(a_max_forwards_that_is_no_number_is_refused),
		T(a_trace_is_not_shown_what_is_secret),
		T(the_largest_trace_is_shown_whole),
		T(without_memory_it_is_refused_and_recorded_once),
	};

	return cmocka_run_group_tests_name("forward_final", tests, NULL, NULL);
}
