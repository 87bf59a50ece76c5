/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff_test.c - ClientHellos made here byte by byte, whole, cut and broken
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "proxy/sniff.h"

static char scratch[SNIFF_HELLO_MAX];
static struct buf ext = BUF_INIT(1 << 17);	/* extensions */
static struct buf message = BUF_INIT(1 << 17);	/* handshake message */
static struct buf wire = BUF_INIT(1 << 18);	/* records */
static struct sniff_hello hello;

static void add(struct buf *b, struct str s)
{
	assert_int_equal(buf_add_str(b, s), 0);
}

static void add_number(struct buf *b, unsigned bytes, size_t v)
{
	while (bytes-- > 0)
		assert_int_equal(buf_add_char(b, (char)(v >> 8 * bytes)), 0);
}

static void add_extension(unsigned type, struct str data)
{
	add_number(&ext, 2, type);
	add_number(&ext, 2, data.n);
	add(&ext, data);
}

static void add_name(unsigned type, struct str name)
{
	add_number(&ext, 2, 0);
	add_number(&ext, 2, name.n + 5);
	add_number(&ext, 2, name.n + 3);
	add_number(&ext, 1, type);
	add_number(&ext, 2, name.n);
	add(&ext, name);
}

static void make_message(void)
{
	buf_reset(&message);
	add_number(&message, 1, 1);
	add_number(&message, 3, 2 + 32 + 1 + 32 + 2 + 4 + 2 + 2 + ext.n);
	add_number(&message, 2, 0x0303);
	for (int i = 0; i < 32; i++)
		add_number(&message, 1, (size_t)i);
	add_number(&message, 1, 32);
	for (int i = 0; i < 32; i++)
		add_number(&message, 1, 0xaa);
	add_number(&message, 2, 4);
	add_number(&message, 4, 0x13011302);
	add_number(&message, 1, 1);
	add_number(&message, 1, 0);
	add_number(&message, 2, ext.n);
	add(&message, buf_str(&ext));
}

/* Cut the message into records of at most @size bytes. */
static void make_records(size_t size)
{
	buf_reset(&wire);
	for (size_t at = 0; at < message.n; at += size) {
		size_t n = MIN(size, message.n - at);

		add(&wire, STR("\x16\x03\x01"));
		add_number(&wire, 2, n);
		add(&wire, str_make(message.p + at, n));
	}
}

static void make_named(struct str name)
{
	buf_reset(&ext);
	add_extension(0x000a, STR("\x00\x02\x00\x1d"));
	add_name(0, name);
	make_message();
	make_records(16384);
}

static enum sniff_result sniff(struct str in, enum reason *ret_why)
{
	return sniff_hello(in, scratch, &hello, ret_why);
}

static void must_name(const char *name)
{
	enum reason why = REASON_ALLOWED;

	assert_int_equal(sniff(buf_str(&wire), &why), SNIFF_DONE);
	assert_true(hello.has_sni);
	assert_true(str_eq(host_name_str(&hello.sni), str_from(name)));
}

static void must_refuse(struct str in, enum reason want)
{
	enum reason why = REASON_ALLOWED;
	enum sniff_result got = sniff(in, &why);

	if (got != SNIFF_BAD || why != want)
		fail_msg("result %d, %s", got, reason_word(why));
}

static void the_name_is_read_and_canonical(void **state)
{
	(void)state;
	make_named(STR("Api.Example.com"));
	must_name("api.example.com");
	assert_true(str_eq(hello.sni_raw, STR("Api.Example.com")));
	assert_false(hello.has_ech);
}

static void tls_04_a_hello_may_come_in_any_pieces(void **state)
{
	static const size_t sizes[] = { 16384, 100, 40, 3, 1 };
	enum reason why;

	(void)state;
	make_named(STR("api.example.com"));
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		make_records(sizes[i]);
		for (size_t n = 0; n < wire.n; n++) {
			assert_int_equal(sniff(str_make(wire.p, n), &why),
					 SNIFF_MORE);
		}
		must_name("api.example.com");
	}
}

static void tls_04_a_large_hello_is_read_and_a_larger_one_refused(void **state)
{
	static char padding[40000];

	(void)state;
	buf_reset(&ext);
	add_extension(0x0015, str_make(padding, 16000));
	add_name(0, STR("api.example.com"));
	make_message();
	make_records(16384);
	must_name("api.example.com");
	buf_reset(&ext);
	add_extension(0x0015, str_make(padding, 33000));
	make_message();
	make_records(16384);
	must_refuse(buf_str(&wire), REASON_HELLO_INCOMPLETE);
	/* Its head already says that it is too large. */
	must_refuse(str_make(wire.p, 9), REASON_HELLO_INCOMPLETE);
	/* More records than a hello is cut into. */
	buf_reset(&ext);
	add_extension(0x0015, str_make(padding, 1000));
	make_message();
	make_records(1);
	must_refuse(buf_str(&wire), REASON_HELLO_INCOMPLETE);
}

static void tls_05_bytes_behind_the_hello_are_not_looked_at(void **state)
{
	(void)state;
	make_named(STR("api.example.com"));
	add(&wire, STR("\x17\x03\x03\x00\x05hello"));
	must_name("api.example.com");
}

static void tls_06_a_name_is_a_host_name_or_the_hello_is_refused(void **state)
{
	static char long_name[300];
	const struct str bad[] = {
		STR("192.0.2.1:8443/x?y"), STR("a\r\nFAKE"), STR("a\0b"),
		STR("10.0.0.1"), STR(""), STR("2130706433"), STR("*.a.com"),
		STR("a b"), STR("::1"), STR("[::1]"), STR("b\xc3\xbc" "cher"),
		STR("a..b"), str_make(long_name, sizeof(long_name)),
	};

	(void)state;
	memset(long_name, 'a', sizeof(long_name));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		make_named(bad[i]);
		must_refuse(buf_str(&wire), REASON_SNI_INVALID);
	}
}

static void tls_06_two_names_or_another_type_are_refused(void **state)
{
	(void)state;
	buf_reset(&ext);
	add_name(0, STR("a.example.com"));
	add_name(0, STR("b.example.com"));
	make_message();
	make_records(16384);
	must_refuse(buf_str(&wire), REASON_SNI_INVALID);
	buf_reset(&ext);
	add_extension(0, STR("\x00\x08\x00\x00\x01" "a\x00\x00\x01" "b"));
	make_message();
	make_records(16384);
	must_refuse(buf_str(&wire), REASON_SNI_INVALID);
	buf_reset(&ext);
	add_name(1, STR("a.example.com"));
	make_message();
	make_records(16384);
	must_refuse(buf_str(&wire), REASON_SNI_INVALID);
	buf_reset(&ext);
	add_extension(0, STR_NONE);
	make_message();
	make_records(16384);
	must_refuse(buf_str(&wire), REASON_SNI_INVALID);
}

static void tls_07_encrypted_hello_is_noted_beside_the_outer_name(void **state)
{
	(void)state;
	buf_reset(&ext);
	add_extension(0xfe0d, STR("\x00grease"));
	add_name(0, STR("a.example.com"));
	make_message();
	make_records(16384);
	must_name("a.example.com");
	assert_true(hello.has_ech);
}

static void a_hello_may_have_no_name_and_no_extensions(void **state)
{
	enum reason why;

	(void)state;
	buf_reset(&ext);
	make_message();
	make_records(16384);
	assert_int_equal(sniff(buf_str(&wire), &why), SNIFF_DONE);
	assert_false(hello.has_sni);
	/* As TLS 1.0 had it: nothing behind the compression methods. */
	message.n -= 2;
	message.p[3] = (char)(message.n - 4);
	make_records(16384);
	assert_int_equal(sniff(buf_str(&wire), &why), SNIFF_DONE);
	assert_false(hello.has_sni);
}

static void tls_08_what_is_not_tls_is_a_mismatch_at_once(void **state)
{
	(void)state;
	must_refuse(STR("SSH-2.0-x\r\n"), REASON_PROTOCOL_MISMATCH);
	must_refuse(STR("G"), REASON_PROTOCOL_MISMATCH);
	must_refuse(STR("\x16\x02"), REASON_PROTOCOL_MISMATCH);
	must_refuse(STR("\x16\x03\x05"), REASON_PROTOCOL_MISMATCH);
	must_refuse(STR("\x16\x03\x01\x00\x00"), REASON_PROTOCOL_MISMATCH);
	must_refuse(STR("\x16\x03\x01\x40\x01"), REASON_PROTOCOL_MISMATCH);
	/* A handshake message that is no ClientHello. */
	must_refuse(STR("\x16\x03\x01\x00\x01\x02"), REASON_PROTOCOL_MISMATCH);
	/* A record of another type inside the hello. */
	must_refuse(STR("\x16\x03\x01\x00\x01\x01\x17"),
		    REASON_PROTOCOL_MISMATCH);
}

static void a_hello_whose_lengths_do_not_fit_is_refused(void **state)
{
	(void)state;
	for (size_t at = 0; at < 140; at++) {
		enum reason why;

		make_named(STR("api.example.com"));
		wire.p[5 + at % message.n] ^= 0x41;
		/* Whatever it is now: no crash, and never another name. */
		if (sniff(buf_str(&wire), &why) == SNIFF_DONE && hello.has_sni)
			assert_int_equal(hello.sni.n, 15);
	}
	make_named(STR("api.example.com"));
	message.p[3]++;		/* the message is one byte longer than its parts */
	add(&message, STR("x"));
	make_records(16384);
	must_refuse(buf_str(&wire), REASON_PROTOCOL_MISMATCH);
}

static void tls_is_recognised_by_two_bytes(void **state)
{
	(void)state;
	assert_true(sniff_looks_tls(STR("\x16\x03")));
	assert_false(sniff_looks_tls(STR("\x16")));
	assert_false(sniff_looks_tls(STR("GET")));
}

static void http_is_a_token_and_a_blank(void **state)
{
	static char long_token[64];

	(void)state;
	assert_int_equal(sniff_http(STR("")), SNIFF_MORE);
	assert_int_equal(sniff_http(STR("\r")), SNIFF_MORE);
	assert_int_equal(sniff_http(STR("G")), SNIFF_MORE);
	assert_int_equal(sniff_http(STR("GET ")), SNIFF_DONE);
	assert_int_equal(sniff_http(STR("\r\nGET /")), SNIFF_DONE);
	assert_int_equal(sniff_http(STR("M-SEARCH * ")), SNIFF_DONE);
	assert_int_equal(sniff_http(STR(" GET /")), SNIFF_BAD);
	assert_int_equal(sniff_http(STR("\x16\x03\x01")), SNIFF_BAD);
	assert_int_equal(sniff_http(STR("SSH-2.0-x\r\n")), SNIFF_BAD);
	assert_int_equal(sniff_http(STR("\0\0\0")), SNIFF_BAD);
	memset(long_token, 'A', sizeof(long_token));
	assert_int_equal(sniff_http(str_make(long_token, sizeof(long_token))),
			 SNIFF_BAD);
}

static void an_http2_preface_is_not_http_1(void **state)
{
	struct str preface = STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

	(void)state;
	for (size_t n = 0; n < 12; n++)
		assert_int_equal(sniff_http(str_make(preface.p, n)),
				 SNIFF_MORE);
	assert_int_equal(sniff_http(preface), SNIFF_BAD);
	assert_int_equal(sniff_http(STR("PRI /")), SNIFF_DONE);
}

static int drop(void **state)
{
	(void)state;
	buf_done(&ext);
	buf_done(&message);
	buf_done(&wire);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_is_read_and_canonical),
		cmocka_unit_test(tls_04_a_hello_may_come_in_any_pieces),
		cmocka_unit_test(
			tls_04_a_large_hello_is_read_and_a_larger_one_refused),
		cmocka_unit_test(
			tls_05_bytes_behind_the_hello_are_not_looked_at),
		cmocka_unit_test(
			tls_06_a_name_is_a_host_name_or_the_hello_is_refused),
		cmocka_unit_test(tls_06_two_names_or_another_type_are_refused),
		cmocka_unit_test(
			tls_07_encrypted_hello_is_noted_beside_the_outer_name),
		cmocka_unit_test(a_hello_may_have_no_name_and_no_extensions),
		cmocka_unit_test(tls_08_what_is_not_tls_is_a_mismatch_at_once),
		cmocka_unit_test(a_hello_whose_lengths_do_not_fit_is_refused),
		cmocka_unit_test(tls_is_recognised_by_two_bytes),
		cmocka_unit_test(http_is_a_token_and_a_blank),
		cmocka_unit_test(an_http2_preface_is_not_http_1),
	};

	return cmocka_run_group_tests(tests, NULL, drop);
}
