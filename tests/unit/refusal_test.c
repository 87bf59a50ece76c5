/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal_test.c - refusals in HTTP and TLS; TUN-02: a denial and an outage
 * never look alike
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "proxy/http1.h"
#include "proxy/refusal.h"

static struct buf out = BUF_INIT(1 << 16);
static struct http1_head head;

static const struct refusal denied = {
	.reason = REASON_HOST_NOT_ALLOWED,
	.host = { "telemetry.example.com", 21 },
	.port = 80,
	.policy = "coding-agent",
	.run = "7f3a91",
};

static void make(const struct refusal *r)
{
	enum reason why;

	buf_reset(&out);
	assert_int_equal(refusal_http(r, &out), 0);
	assert_true(out.n <= 2048);
	assert_int_equal(http1_parse_answer(buf_str(&out), STR("GET"), &head,
					    &why), HTTP1_DONE);
}

static json_t *body(void)
{
	json_t *j;

	assert_int_equal(out.n - head.bytes, head.length);
	j = json_loadb(out.p + head.bytes, head.length, 0, NULL);
	assert_non_null(j);
	return j;
}

static void assert_field(const char *name, const char *value)
{
	const struct http1_field *f = http1_field(&head, str_from(name));

	if (!value) {
		assert_null(f);
		return;
	}
	assert_non_null(f);
	if (!str_eq(f->value, str_from(value)))
		fail_msg("%s: %.*s", name, STR_ARG(f->value));
}

static void assert_json(const json_t *j, const char *key, const char *value)
{
	const char *got = json_string_value(json_object_get(j, key));

	if (!value) {
		assert_null(got);
		return;
	}
	assert_non_null(got);
	assert_string_equal(got, value);
}

static void a_denial_says_why_and_what_to_ask_for(void **state)
{
	json_t *j;

	(void)state;
	make(&denied);
	assert_int_equal(head.status, 403);
	assert_true(str_eq(head.phrase, STR("host_not_allowed")));
	assert_field("proxy-status", "penstock; error=http_request_denied; "
		     "details=\"host_not_allowed\"");
	assert_field("content-type", "application/json");
	assert_field("cache-control", "no-store");
	assert_field("retry-after", NULL);
	assert_field("connection", NULL);
	j = body();
	assert_json(j, "error", "host_not_allowed");
	assert_json(j, "message", "telemetry.example.com:80 is not in this "
		    "sandbox's policy 'coding-agent'.");
	assert_json(j, "host", "telemetry.example.com");
	assert_int_equal(json_integer_value(json_object_get(j, "port")), 80);
	assert_json(j, "run", "7f3a91");
	assert_json(j, "request", "Ask the operator for: host "
		    "telemetry.example.com port 80, with a reason.");
	json_decref(j);
}

static void tun_02_an_outage_is_not_a_denial(void **state)
{
	struct refusal r = denied;
	json_t *j;

	(void)state;
	r.reason = REASON_CONNECT_REFUSED;
	make(&r);
	assert_int_equal(head.status, 502);
	assert_field("proxy-status", "penstock; error=connection_refused; "
		     "details=\"connect_refused\"");
	j = body();
	assert_json(j, "error", "connect_refused");
	assert_json(j, "request", NULL);
	json_decref(j);
	r.reason = REASON_DNS_NXDOMAIN;
	make(&r);
	assert_int_equal(head.status, 502);
}

static void an_answer_of_ours_has_the_date_that_it_is_given(void **state)
{
	struct refusal r = denied;

	(void)state;
	make(&r);
	assert_field("date", NULL);
	r.date = STR("Sun, 06 Nov 1994 08:49:37 GMT");
	make(&r);
	assert_field("date", "Sun, 06 Nov 1994 08:49:37 GMT");
}

static void a_limit_says_when_to_come_back(void **state)
{
	struct refusal r = denied;

	(void)state;
	r.reason = REASON_CONNECTIONS_EXCEEDED;
	r.close = true;
	make(&r);
	assert_int_equal(head.status, 429);
	assert_field("retry-after", "5");
	assert_field("connection", "close");
}

static void an_answer_to_head_has_no_body_but_its_length(void **state)
{
	struct refusal r = denied;

	(void)state;
	make(&r);
	r.head_only = true;
	buf_reset(&out);
	assert_int_equal(refusal_http(&r, &out), 0);
	assert_int_equal(out.n, head.bytes);
	assert_true(head.length > 0);
}

static void an_address_stands_in_brackets_before_its_port(void **state)
{
	struct refusal r = denied;
	json_t *j;

	(void)state;
	r.reason = REASON_ADDRESS_METADATA;
	r.host = STR("fd00:ec2::254");
	make(&r);
	j = body();
	assert_true(str_starts(str_from(json_string_value(
		json_object_get(j, "message"))), STR("[fd00:ec2::254]:80: ")));
	assert_json(j, "request", NULL);
	json_decref(j);
}

static void whatever_the_host_is_the_answer_is_bounded_and_json(void **state)
{
	static char hostile[5000];
	struct refusal r = denied;

	(void)state;
	for (int c = 0; c < 256; c++) {
		memset(hostile, c, sizeof(hostile));
		r.date = STR("Sun, 06 Nov 1994 08:49:37 GMT");
		r.host = str_make(hostile, sizeof(hostile));
		make(&r);
		json_decref(body());
	}
}

static void every_reason_that_is_sent_makes_a_whole_answer(void **state)
{
	(void)state;
	for (int i = 0; i < REASONS; i++) {
		struct refusal r = denied;

		r.reason = (enum reason)i;
		if (reason_info(r.reason)->http_status == 0) {
			assert_int_equal(refusal_http(&r, &out), -EINVAL);
			continue;
		}
		make(&r);
		json_decref(body());
		/* The word stands in an sf-string unescaped (RFC 9651). */
		assert_true(http1_is_token(str_from(reason_word(r.reason))));
	}
}

static void a_full_buffer_is_left_as_it_was(void **state)
{
	struct buf small = BUF_INIT(100);

	(void)state;
	assert_int_equal(buf_add_str(&small, STR("before")), 0);
	assert_int_equal(refusal_http(&denied, &small), -ENOSPC);
	assert_true(str_eq(buf_str(&small), STR("before")));
	buf_done(&small);
}

static void policy_is_access_denied_in_tls(void **state)
{
	(void)state;
	assert_true(str_eq(refusal_tls_alert(REASON_HOST_NOT_ALLOWED),
			   STR("\x15\x03\x01\x00\x02\x02\x31")));
	assert_true(str_eq(refusal_tls_alert(REASON_CONNECT_REFUSED),
			   STR("\x15\x03\x01\x00\x02\x02\x50")));
	assert_true(str_eq(refusal_tls_alert(REASON_HELLO_INCOMPLETE),
			   STR("\x15\x03\x01\x00\x02\x02\x32")));
}

static int drop(void **state)
{
	(void)state;
	buf_done(&out);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_denial_says_why_and_what_to_ask_for),
		cmocka_unit_test(tun_02_an_outage_is_not_a_denial),
		cmocka_unit_test(
			an_answer_of_ours_has_the_date_that_it_is_given),
		cmocka_unit_test(a_limit_says_when_to_come_back),
		cmocka_unit_test(an_answer_to_head_has_no_body_but_its_length),
		cmocka_unit_test(an_address_stands_in_brackets_before_its_port),
		cmocka_unit_test(
			whatever_the_host_is_the_answer_is_bounded_and_json),
		cmocka_unit_test(
			every_reason_that_is_sent_makes_a_whole_answer),
		cmocka_unit_test(a_full_buffer_is_left_as_it_was),
		cmocka_unit_test(policy_is_access_denied_in_tls),
	};

	return cmocka_run_group_tests(tests, NULL, drop);
}
