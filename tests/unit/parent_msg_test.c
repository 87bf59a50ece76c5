/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parent_msg_test.c - what is said to a parent proxy, and what it may answer
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "proxy/parent_msg.h"

static struct parent_talk talk;
static char said[PARENT_SAY_MAX + 1];
static struct buf out = { said, 0, sizeof(said), PARENT_SAY_MAX, NULL };

static struct parent_ask ask_for(enum parent_kind kind, const char *host,
				 const char *addr)
{
	struct parent_ask a = {
		.kind = kind, .host = str_from(host), .port = 443,
	};

	if (addr)
		assert_int_equal(ip_addr_parse(str_from(addr), &a.addr), 0);
	return a;
}

static void begin(const struct parent_ask *a)
{
	buf_reset(&out);
	assert_int_equal(parent_talk_begin(&talk, a, &out), 0);
}

static void expect_said(const void *bytes, size_t n)
{
	assert_int_equal(out.n, n);
	assert_memory_equal(out.p, bytes, n);
	buf_reset(&out);
}

#define SAID(text)	expect_said(text, sizeof(text) - 1)

/* @used: bytes that must have been taken of @text. */
static void expect(struct str text, enum parent_step step, size_t used)
{
	size_t got;

	assert_int_equal(parent_talk_read(&talk, text, &got, &out), step);
	if (step != PARENT_FAILED)
		assert_int_equal(got, used);
}

#define HEARD(text, step, used)	\
	expect(str_make(text, sizeof(text) - 1), step, used)

static void failed(enum reason why, unsigned status)
{
	assert_int_equal(talk.why, why);
	assert_int_equal(talk.status, status);
}

/* --- HTTP ------------------------------------------------------------------- */

static void begin_http(void)
{
	const struct parent_ask a = ask_for(PARENT_HTTP, "api.example.org",
					    NULL);

	begin(&a);
	buf_reset(&out);
}

static void a_connect_names_what_was_judged_and_nothing_else(void **state)
{
	struct parent_ask a = ask_for(PARENT_HTTP, "api.example.org", NULL);

	(void)state;
	begin(&a);
	SAID("CONNECT api.example.org:443 HTTP/1.1\r\n"
	     "Host: api.example.org:443\r\n\r\n");
	a = ask_for(PARENT_HTTP, NULL, "203.0.113.9");
	a.basic = STR("dXNlcjpwYXNz");
	begin(&a);
	SAID("CONNECT 203.0.113.9:443 HTTP/1.1\r\nHost: 203.0.113.9:443\r\n"
	     "Proxy-Authorization: Basic dXNlcjpwYXNz\r\n\r\n");
	a = ask_for(PARENT_HTTP, NULL, "2001:db8:3::9");
	begin(&a);
	SAID("CONNECT [2001:db8:3::9]:443 HTTP/1.1\r\n"
	     "Host: [2001:db8:3::9]:443\r\n\r\n");
}

/* RFC 4648 10 */
static void logins_are_in_base64(void **state)
{
	static const char *const pairs[][2] = {
		{ "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" }, { "\xff\xfe\xfd", "//79" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		buf_reset(&out);
		assert_int_equal(parent_msg_basic(str_from(pairs[i][0]), &out),
				 0);
		expect_said(pairs[i][1], strlen(pairs[i][1]));
	}
}

static void what_stands_behind_a_2xx_is_the_tunnels(void **state)
{
	static const char answer[] = "HTTP/1.1 200 Connection established\r\n"
				     "Via: 1.1 corp\r\n\r\n";

	(void)state;
	begin_http();
	HEARD("HTTP/1.1 200 Connection established\r\nVia: 1.1 corp\r\n\r\n"
	      "SSH-2.0-OpenSSH_9\r\n", PARENT_OPEN, sizeof(answer) - 1);
	begin_http();
	HEARD("HTTP/1.0 200 OK\r\n\r\n", PARENT_OPEN, 19);
	begin_http();
	/* RFC 9110 9.3.6: of such an answer the length means nothing. */
	HEARD("HTTP/1.1 204 x\r\nContent-Length: 5\r\n\r\nhello", PARENT_OPEN,
	      37);
}

static void an_answer_may_come_byte_by_byte(void **state)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nX: y\r\n\r\n";

	(void)state;
	begin_http();
	for (size_t n = 0; n < sizeof(answer) - 1; n++)
		expect(str_make(answer, n), PARENT_MORE, 0);
	HEARD("HTTP/1.1 200 OK\r\nX: y\r\n\r\n", PARENT_OPEN,
	      sizeof(answer) - 1);
}

static void interim_answers_are_passed_over_in_bounds(void **state)
{
	char many[16 * (PARENT_INTERIM_MAX + 2)] = "";
	size_t n = 0;

	(void)state;
	begin_http();
	HEARD("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nx",
	      PARENT_OPEN, 44);
	begin_http();
	for (int i = 0; i <= PARENT_INTERIM_MAX; i++, n += 16)
		memcpy(many + n, "HTTP/1.1 1\x30\x32\r\n\r\n", 16);
	expect(str_make(many, n), PARENT_FAILED, 0);
	failed(REASON_PARENT_PROTOCOL, 0);
	begin_http();
	HEARD("HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
	      PARENT_FAILED, 0);
	failed(REASON_PARENT_PROTOCOL, 0);
}

static void each_refusal_has_its_reason_and_number(void **state)
{
	(void)state;
	begin_http();
	HEARD("HTTP/1.1 407 Who are you\r\n"
	      "Proxy-Authenticate: Basic realm=\"corp\"\r\n\r\n",
	      PARENT_FAILED, 0);
	failed(REASON_PARENT_AUTH_FAILED, 407);
	begin_http();
	HEARD("HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno!",
	      PARENT_FAILED, 0);
	failed(REASON_PARENT_REFUSED, 403);
	begin_http();
	HEARD("HTTP/1.1 302 x\r\nLocation: http://evil.example/\r\n\r\n",
	      PARENT_FAILED, 0);
	failed(REASON_PARENT_REFUSED, 302);
	begin_http();
	HEARD("HTTP/1.1 504 Gateway Timeout\r\n\r\n", PARENT_FAILED, 0);
	failed(REASON_PARENT_TIMEOUT, 504);
}

static void what_is_no_answer_opens_nothing(void **state)
{
	static const char *const bad[] = {
		"HTTP/1.1 200\nX: y\n\n", "HTTP/2 200 OK\r\n\r\n",
		"\x05\x00", "200 OK\r\n\r\n", "HTTP/1.1 2OO OK\r\n\r\n",
		"SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
		"<html>proxy</html>\r\n\r\n",
	};
	char *huge = malloc(PARENT_HEAD_MAX + 1);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		begin_http();
		expect(str_from(bad[i]), PARENT_FAILED, 0);
		failed(REASON_PARENT_PROTOCOL, 0);
	}
	assert_non_null(huge);
	memset(huge, 'a', PARENT_HEAD_MAX);
	memcpy(huge, "HTTP/1.1 200 OK\r\nX: ", 20);
	begin_http();
	expect(str_make(huge, PARENT_HEAD_MAX - 1), PARENT_MORE, 0);
	expect(str_make(huge, PARENT_HEAD_MAX), PARENT_FAILED, 0);
	failed(REASON_PARENT_PROTOCOL, 0);
	free(huge);
}

/* --- SOCKS ------------------------------------------------------------------ */

static void begin_socks(const char *user)
{
	struct parent_ask a = ask_for(PARENT_SOCKS5, "api.example.org", NULL);

	a.user = str_from(user);
	a.password = user ? STR("pw") : STR_NONE;
	begin(&a);
}

static void socks_asks_for_a_name_or_an_address(void **state)
{
	struct parent_ask a = ask_for(PARENT_SOCKS5, NULL, "203.0.113.9");

	(void)state;
	begin_socks(NULL);
	SAID("\x05\x01\x00");
	HEARD("\x05\x00", PARENT_SAY, 2);
	SAID("\x05\x01\x00\x03\x0f""api.example.org\x01\xbb");
	HEARD("\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00SSH-2.0", PARENT_OPEN,
	      10);
	begin(&a);
	buf_reset(&out);
	HEARD("\x05\x00", PARENT_SAY, 2);
	SAID("\x05\x01\x00\x01\xcb\x00\x71\x09\x01\xbb");
	a = ask_for(PARENT_SOCKS5, NULL, "2001:db8::9");
	begin(&a);
	buf_reset(&out);
	HEARD("\x05\x00", PARENT_SAY, 2);
	SAID("\x05\x01\x00\x04\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x09"
	     "\x01\xbb");
}

static void a_login_is_given_where_it_is_asked_for(void **state)
{
	(void)state;
	begin_socks("me");
	SAID("\x05\x02\x00\x02");
	HEARD("\x05\x02", PARENT_SAY, 2);
	SAID("\x01\x02me\x02pw");
	HEARD("\x01\x00", PARENT_SAY, 2);
	SAID("\x05\x01\x00\x03\x0f""api.example.org\x01\xbb");
	begin_socks("me");
	buf_reset(&out);
	HEARD("\x05\x02", PARENT_SAY, 2);
	HEARD("\x01\x01", PARENT_FAILED, 0);
	failed(REASON_PARENT_AUTH_FAILED, 1);
	begin_socks("me");
	HEARD("\x05\xff", PARENT_FAILED, 0);
	failed(REASON_PARENT_AUTH_FAILED, 0xff);
	/* One that we did not offer. */
	begin_socks(NULL);
	HEARD("\x05\x02", PARENT_FAILED, 0);
	failed(REASON_PARENT_PROTOCOL, 0);
}

static void begin_reply(void)
{
	begin_socks(NULL);
	HEARD("\x05\x00", PARENT_SAY, 2);
	buf_reset(&out);
}

static void a_reply_is_taken_to_its_last_byte_and_no_further(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
	} replies[] = {
		{ "\x05\x00\x00\x01\x7f\x00\x00\x01\x04\x38", 10 },
		{ "\x05\x00\x00\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\x04\x38",
		  22 },
		{ "\x05\x00\x00\x03\x03""abc\x04\x38", 10 },
		{ "\x05\x00\x00\x03\x00\x04\x38", 7 },
	};
	char text[64];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
		memset(text, '\n', sizeof(text));
		memcpy(text, replies[i].bytes, replies[i].n);
		begin_reply();
		for (size_t n = 0; n < replies[i].n; n++)
			expect(str_make(text, n), PARENT_MORE, 0);
		expect(str_make(text, sizeof(text)), PARENT_OPEN,
		       replies[i].n);
	}
}

static void each_socks_refusal_has_its_reason(void **state)
{
	(void)state;
	begin_reply();
	HEARD("\x05\x02", PARENT_FAILED, 0);
	failed(REASON_PARENT_REFUSED, 2);
	begin_reply();
	HEARD("\x05\x06\x00\x01", PARENT_FAILED, 0);
	failed(REASON_PARENT_TIMEOUT, 6);
	begin_reply();
	HEARD("HTTP/1.1 400 Bad Request\r\n\r\n", PARENT_FAILED, 0);
	failed(REASON_PARENT_PROTOCOL, 0);
	begin_reply();
	HEARD("\x05\x00\x00\x02\x00\x00", PARENT_FAILED, 0);
	failed(REASON_PARENT_PROTOCOL, 0);
	begin_reply();
	HEARD("\x05\x00\x01\x01\x00\x00\x00\x00\x00\x00", PARENT_FAILED, 0);
	failed(REASON_PARENT_PROTOCOL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_connect_names_what_was_judged_and_nothing_else),
		cmocka_unit_test(logins_are_in_base64),
		cmocka_unit_test(what_stands_behind_a_2xx_is_the_tunnels),
		cmocka_unit_test(an_answer_may_come_byte_by_byte),
		cmocka_unit_test(interim_answers_are_passed_over_in_bounds),
		cmocka_unit_test(each_refusal_has_its_reason_and_number),
		cmocka_unit_test(what_is_no_answer_opens_nothing),
		cmocka_unit_test(socks_asks_for_a_name_or_an_address),
		cmocka_unit_test(a_login_is_given_where_it_is_asked_for),
		cmocka_unit_test(
			a_reply_is_taken_to_its_last_byte_and_no_further),
		cmocka_unit_test(each_socks_refusal_has_its_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
