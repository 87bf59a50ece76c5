/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socks_test.c - the messages of SOCKS, each whole, short, and with one wrong
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "proxy/socks.h"

/* Of a request: the result for all of it; a part of it always wants more. */
static enum socks_result ask(uint8_t version, struct str in,
			     struct socks_request *ret, enum reason *ret_why)
{
	struct socks_request part;
	enum reason why;

	*ret_why = REASON_ALLOWED;
	for (size_t n = 0; n < in.n; n++) {
		/* At the end of its own bytes, so that a tool sees more read. */
		char *p = malloc(n + 1);

		assert_non_null(p);
		memcpy(p, in.p, n);
		(void)socks_request(version, str_make(p, n), &part, &why);
		free(p);
	}
	return socks_request(version, in, ret, ret_why);
}

static void expect_more_before_the_end(uint8_t version, struct str in)
{
	struct socks_request r;
	enum reason why;

	for (size_t n = 0; n < in.n; n++)
		assert_int_equal(socks_request(version, str_make(in.p, n), &r,
					       &why), SOCKS_MORE);
}

static void expect_host(const struct socks_request *r, const char *host,
			uint16_t port)
{
	char text[IP_TEXT_SIZE];

	assert_int_equal(r->port, port);
	if (r->kind == HOST_NAME) {
		assert_string_equal(r->name.p, host);
		return;
	}
	assert_int_equal(r->kind, HOST_ADDRESS);
	ip_addr_text(&r->addr, text);
	assert_string_equal(text, host);
}

static void a_greeting_takes_no_login_before_a_password(void **state)
{
	static const struct {
		struct str in;
		enum socks_method method;
	} good[] = {
		{ { "\x05\x01\x00", 3 }, SOCKS_NO_LOGIN },
		{ { "\x05\x02\x00\x02", 4 }, SOCKS_NO_LOGIN },
		{ { "\x05\x03\x01\x02\x00", 5 }, SOCKS_NO_LOGIN },
		{ { "\x05\x01\x02", 3 }, SOCKS_PASSWORD },
		{ { "\x05\x01\x01", 3 }, SOCKS_NO_METHOD },
		{ { "\x05\x00", 2 }, SOCKS_NO_METHOD },
	};
	enum socks_method method;
	size_t i, n, bytes;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		for (n = 0; n < good[i].in.n; n++)
			assert_int_equal(socks_greeting(
				str_make(good[i].in.p, n), &method, &bytes),
				SOCKS_MORE);
		assert_int_equal(socks_greeting(good[i].in, &method, &bytes),
				 SOCKS_DONE);
		assert_int_equal(method, good[i].method);
		assert_int_equal(bytes, good[i].in.n);
	}
	assert_int_equal(socks_greeting(STR("\x04\x01"), &method, &bytes),
			 SOCKS_BAD);
}

/* SOCKS-07: RFC 1929 has a version of its own, which is 1. */
static void a_login_is_bounded_and_its_version_is_one_SOCKS_07(void **state)
{
	static const struct str good[] = {
		{ "\x01\x00\x00", 3 },
		{ "\x01\x01u\x00", 4 },
		{ "\x01\x00\x02pw", 5 },
		{ "\x01\x04user\x08password", 15 },
	};
	char most[SOCKS_LOGIN_MAX + 1] = "\x01\xff";
	size_t i, n, bytes;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		for (n = 0; n < good[i].n; n++)
			assert_int_equal(socks_login(str_make(good[i].p, n),
						     &bytes), SOCKS_MORE);
		assert_int_equal(socks_login(good[i], &bytes), SOCKS_DONE);
		assert_int_equal(bytes, good[i].n);
	}
	most[2 + 255] = '\xff';
	for (n = 0; n < SOCKS_LOGIN_MAX; n++)
		assert_int_equal(socks_login(str_make(most, n), &bytes),
				 SOCKS_MORE);
	assert_int_equal(socks_login(str_make(most, sizeof(most)), &bytes),
			 SOCKS_DONE);
	assert_int_equal(bytes, SOCKS_LOGIN_MAX);
	assert_int_equal(socks_login(STR("\x05\x01u\x01p"), &bytes),
			 SOCKS_BAD);
}

static void requests_are_names_and_addresses(void **state)
{
	static const struct {
		struct str in;
		uint8_t version;
		const char *host;
		uint16_t port;
	} good[] = {
		{ { "\x05\x01\x00\x03\x0f""api.example.org\x01\xbb", 22 }, 5,
		  "api.example.org", 443 },
		{ { "\x05\x01\x00\x03\x10""API.Example.Org.\x00\x16", 23 }, 5,
		  "api.example.org", 22 },
		{ { "\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x50", 10 }, 5,
		  "192.0.2.1", 80 },
		{ { "\x05\x01\x00\x04\x20\x01\x0d\xb8\x00\x00\x00\x00\x00\x00"
		    "\x00\x00\x00\x00\x00\x01\xff\xff", 22 }, 5,
		  "2001:db8::1", 65535 },
		{ { "\x04\x01\x01\xbb\xc0\x00\x02\x01\x00", 9 }, 4,
		  "192.0.2.1", 443 },
		{ { "\x04\x01\x01\xbb\xc0\x00\x02\x01me\x00", 11 }, 4,
		  "192.0.2.1", 443 },
		{ { "\x04\x01\x00\x16\x00\x00\x00\x01\x00""a.example.org\x00",
		    23 }, 4, "a.example.org", 22 },
		{ { "\x04\x01\x00\x16\x00\x00\x00\xffme\x00""192.0.2.7\x00",
		    21 }, 4, "192.0.2.7", 22 },
		/* SOCKS-09: an address of version 4, not a name that follows. */
		{ { "\x04\x01\x01\xbb\x7f\x00\x00\x01\x00", 9 }, 4,
		  "127.0.0.1", 443 },
		{ { "\x04\x01\x01\xbb\x00\x00\x00\x00\x00", 9 }, 4,
		  "0.0.0.0", 443 },
	};
	struct socks_request r;
	enum reason why;
	char more[64];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		expect_more_before_the_end(good[i].version, good[i].in);
		assert_int_equal(ask(good[i].version, good[i].in, &r, &why),
				 SOCKS_DONE);
		expect_host(&r, good[i].host, good[i].port);
		assert_int_equal(r.bytes, good[i].in.n);
		/* SOCKS-08: what stands behind it is not its own. */
		memcpy(more, good[i].in.p, good[i].in.n);
		memcpy(more + good[i].in.n, "\x16\x03", 2);
		assert_int_equal(ask(good[i].version,
				     str_make(more, good[i].in.n + 2), &r,
				     &why), SOCKS_DONE);
		assert_int_equal(r.bytes, good[i].in.n);
	}
}

/* A request of version 5 for a name as it stands here, and port 443. */
static enum socks_result ask_name(const char *text, size_t n,
				  struct socks_request *ret,
				  enum reason *ret_why)
{
	char m[SOCKS_REQUEST_MAX] = { 5, 1, 0, 3, (char)n };

	memcpy(m + 5, text, n);
	m[5 + n] = 0x01;
	m[6 + n] = (char)0xbb;
	return ask(SOCKS_V5, str_make(m, 7 + n), ret, ret_why);
}

/* SOCKS-03: an address in a name's place is judged as an address. */
static void names_that_are_literals_are_addresses_SOCKS_03(void **state)
{
	static const char *const literals[][2] = {
		{ "127.0.0.1", "127.0.0.1" },
		{ "[::1]", "::1" },
		{ "::1", "::1" },
		{ "2001:DB8::1", "2001:db8::1" },
		{ "::ffff:169.254.169.254", "::ffff:169.254.169.254" },
	};
	static const char *const odd[] = {
		"2130706433", "0x7f.1", "0x7f000001", "127.1", "0177.0.0.1",
		"127.0.0.1:80", "[::1", "::1%lo", "fe80::1%25lo", "a b", "*",
		"user@a.example.org", "..", "a..b", "xn--example-",
	};
	struct socks_request r;
	enum reason why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(literals); i++) {
		assert_int_equal(ask_name(literals[i][0],
					  strlen(literals[i][0]), &r, &why),
				 SOCKS_DONE);
		assert_int_equal(r.kind, HOST_ADDRESS);
		expect_host(&r, literals[i][1], 443);
	}
	for (i = 0; i < ARRAY_SIZE(odd); i++) {
		assert_int_equal(ask_name(odd[i], strlen(odd[i]), &r, &why),
				 SOCKS_BAD);
		assert_int_equal(why, REASON_AUTHORITY_INVALID);
		assert_int_equal(r.reply, SOCKS_NOT_BY_RULES);
		assert_int_equal(r.kind, HOST_BAD);
	}
	assert_int_equal(ask_name("a\0b.example.org", 15, &r, &why),
			 SOCKS_BAD);
}

/* SOCKS-02: a length of one byte, and what may stand behind it. */
static void names_of_no_length_and_of_any_are_bounded_SOCKS_02(void **state)
{
	char name[256];
	struct socks_request r;
	enum reason why;
	size_t i;

	(void)state;
	assert_int_equal(ask_name("", 0, &r, &why), SOCKS_BAD);
	assert_int_equal(r.reply, SOCKS_FAILED);
	memset(name, 'a', sizeof(name));
	for (i = 50; i < sizeof(name); i += 50)
		name[i] = '.';
	assert_int_equal(ask_name(name, 255, &r, &why), SOCKS_BAD);
	assert_int_equal(why, REASON_AUTHORITY_INVALID);
	assert_int_equal(r.reply, SOCKS_FAILED);
	assert_int_equal(ask_name(name, HOST_NAME_MAX_LEN, &r, &why),
			 SOCKS_DONE);
	assert_int_equal(r.name.n, HOST_NAME_MAX_LEN);
}

static void a_user_id_without_an_end_is_refused_SOCKS_09(void **state)
{
	char m[SOCKS_REQUEST_MAX + 1];
	struct socks_request r;
	enum reason why;
	size_t n;

	(void)state;
	memset(m, 'u', sizeof(m));
	memcpy(m, "\x04\x01\x01\xbb\x00\x00\x00\x01", 8);
	for (n = 0; n < 8 + SOCKS_USER_MAX + 1; n++)
		assert_int_equal(socks_request(SOCKS_V4, str_make(m, n), &r,
					       &why), SOCKS_MORE);
	assert_int_equal(socks_request(SOCKS_V4, str_make(m, n), &r, &why),
			 SOCKS_BAD);
	assert_int_equal(why, REASON_REQUEST_MALFORMED);
	/* Nor may the name that follows lack one. */
	m[8 + SOCKS_USER_MAX] = '\0';
	assert_int_equal(socks_request(SOCKS_V4, str_make(m, sizeof(m) - 2),
				       &r, &why), SOCKS_MORE);
	assert_int_equal(socks_request(SOCKS_V4, str_make(m, sizeof(m) - 1),
				       &r, &why), SOCKS_BAD);
}

static void what_else_is_wrong_has_its_own_answer(void **state)
{
	static const struct {
		struct str in;
		uint8_t version;
		enum reason why;
		enum socks_reply reply;
	} bad[] = {
		/* SOCKS-05 */
		{ { "\x05\x02\x00\x01\xc0\x00\x02\x01\x00\x50", 10 }, 5,
		  REASON_METHOD_NOT_SUPPORTED, SOCKS_NO_COMMAND },
		{ { "\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", 10 }, 5,
		  REASON_METHOD_NOT_SUPPORTED, SOCKS_NO_COMMAND },
		{ { "\x05\x09\x00\x01\x00\x00\x00\x00\x00\x00", 10 }, 5,
		  REASON_METHOD_NOT_SUPPORTED, SOCKS_NO_COMMAND },
		{ { "\x04\x02\x00\x50\xc0\x00\x02\x01\x00", 9 }, 4,
		  REASON_METHOD_NOT_SUPPORTED, SOCKS_NO_COMMAND },
		{ { "\x05\x01\x00\x02", 4 }, 5, REASON_REQUEST_MALFORMED,
		  SOCKS_NO_ADDRESS_TYPE },
		{ { "\x05\x01\x01\x01", 4 }, 5, REASON_REQUEST_MALFORMED,
		  SOCKS_FAILED },
		{ { "\x04", 1 }, 5, REASON_REQUEST_MALFORMED, SOCKS_FAILED },
		{ { "\x05", 1 }, 4, REASON_REQUEST_MALFORMED, SOCKS_FAILED },
		{ { "\x05\x01\x00\x01\xc0\x00\x02\x01\x00\x00", 10 }, 5,
		  REASON_AUTHORITY_INVALID, SOCKS_FAILED },
		{ { "\x04\x01\x00\x16\x00\x00\x00\x01\x00\x00", 10 }, 4,
		  REASON_AUTHORITY_INVALID, SOCKS_FAILED },
	};
	struct socks_request r;
	enum reason why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(ask(bad[i].version, bad[i].in, &r, &why),
				 SOCKS_BAD);
		assert_int_equal(why, bad[i].why);
		assert_int_equal(r.reply, bad[i].reply);
	}
	/* Also of what is not done, the record says whom it was for. */
	assert_int_equal(ask(SOCKS_V5, bad[0].in, &r, &why), SOCKS_BAD);
	expect_host(&r, "192.0.2.1", 80);
}

static void an_answer_tells_nothing_of_the_host_SOCKS_10(void **state)
{
	char out[SOCKS_ANSWER_MAX];
	struct str s;

	(void)state;
	s = socks_answer(SOCKS_V5, SOCKS_GRANTED, out);
	assert_int_equal(s.n, 10);
	assert_memory_equal(s.p, "\x05\x00\x00\x01\0\0\0\0\0\0", 10);
	s = socks_answer(SOCKS_V5, 5, out);
	assert_memory_equal(s.p, "\x05\x05\x00\x01\0\0\0\0\0\0", 10);
	s = socks_answer(SOCKS_V4, SOCKS_GRANTED, out);
	assert_int_equal(s.n, 8);
	assert_memory_equal(s.p, "\x00\x5a\0\0\0\0\0\0", 8);
	s = socks_answer(SOCKS_V4, 5, out);
	assert_memory_equal(s.p, "\x00\x5b\0\0\0\0\0\0", 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_greeting_takes_no_login_before_a_password),
		cmocka_unit_test(
			a_login_is_bounded_and_its_version_is_one_SOCKS_07),
		cmocka_unit_test(requests_are_names_and_addresses),
		cmocka_unit_test(
			names_that_are_literals_are_addresses_SOCKS_03),
		cmocka_unit_test(
			names_of_no_length_and_of_any_are_bounded_SOCKS_02),
		cmocka_unit_test(
			a_user_id_without_an_end_is_refused_SOCKS_09),
		cmocka_unit_test(what_else_is_wrong_has_its_own_answer),
		cmocka_unit_test(
			an_answer_tells_nothing_of_the_host_SOCKS_10),
	};

	return cmocka_run_group_tests_name("socks", tests, NULL, NULL);
}
