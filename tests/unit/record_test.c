/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record_test.c - an event becomes one bounded line of valid JSON
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <jansson.h>

#include "audit/record.h"
#include "base/mem.h"

#define WALL_US		1795995067412345	/* 2026-11-29T23:31:07.412345Z */

static const struct record_labels labels = {
	.run = "7f3a91",
	.sandbox = "box-1",
	.policy = "ci@sha256:0123456789abcdef",
	.mode = "enforce",
	.generation = 3,
};

static const struct id some_id = { { 0x01, 0x93, 0, 0, 0, 0, 0x70, 0, 0x80 } };

static struct record flow(enum record_event event)
{
	return (struct record){
		.event = event,
		.act = RECORD_ALLOW,
		.reason = REASON_ALLOWED,
		.via = RECORD_VIA_CONNECT,
		.id = some_id,
		.rule = "pypi",
		.host = STR("pypi.org"),
		.dst = { ip_addr_v4(0xcb007109), 443 },
		.proto = "https",
		.rcode = -1,
		.dur_ms = -1,
	};
}

/* The line of @r as text without its newline; the caller frees. */
static char *rendered(const struct record *r)
{
	struct buf out = BUF_INIT(2 * RECORD_LINE_MAX);

	assert_int_equal(record_render(r, &labels, 7, WALL_US, &out), 0);
	assert_true(out.n <= RECORD_LINE_MAX);
	assert_int_equal(out.p[out.n - 1], '\n');
	/* LOG-01: one event is one line. */
	assert_ptr_equal(memchr(out.p, '\n', out.n), out.p + out.n - 1);
	out.p[out.n - 1] = '\0';
	return out.p;
}

/* The same, parsed by somebody else's parser. */
static json_t *parsed(const struct record *r)
{
	char *line = rendered(r);
	json_error_t err;
	json_t *o = json_loads(line, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &err);
	size_t i;

	assert_non_null(o);
	for (i = 0; line[i]; i++)
		assert_true((unsigned char)line[i] >= 0x20 && line[i] != 0x7f);
	mem_free(line);
	return o;
}

static const char *text_of(json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key));
}

static void an_open_names_everything_in_fixed_order(void **state)
{
	struct record r = flow(RECORD_FLOW_OPEN);
	char *line = rendered(&r);

	(void)state;
	assert_string_equal(line,
		"{\"v\":1,\"ts\":\"2026-11-29T23:31:07.412345Z\",\"seq\":7,"
		"\"id\":\"01930000-0000-7000-8000-000000000000\","
		"\"ev\":\"flow_open\",\"act\":\"allow\",\"reason\":\"allowed\","
		"\"rule\":\"pypi\",\"policy\":\"ci@sha256:0123456789abcdef\","
		"\"gen\":3,\"mode\":\"enforce\",\"run\":\"7f3a91\","
		"\"sandbox\":\"box-1\","
		"\"via\":\"connect\",\"host\":\"pypi.org\","
		"\"dst_ip\":\"203.0.113.9\",\"dst_port\":443,"
		"\"transport\":\"tcp\",\"proto\":\"https\"}");
	mem_free(line);
}

/* LOG-10 */
static void a_refusal_has_port_and_way_in_even_without_a_name(void **state)
{
	struct record r = flow(RECORD_FLOW_DENY);
	json_t *o;

	(void)state;
	r.act = RECORD_DENY;
	r.reason = REASON_ADDRESS_METADATA;
	r.via = RECORD_VIA_TRANSPARENT;
	r.rule = NULL;
	r.host = STR_NONE;
	r.asked = ip_addr_v4(0xa9fea9fe);
	r.dst = (struct ip_endpoint){ .port = 80 };
	o = parsed(&r);
	assert_string_equal(text_of(o, "act"), "deny");
	assert_string_equal(text_of(o, "reason"), "address_metadata");
	assert_string_equal(text_of(o, "via"), "transparent");
	assert_string_equal(text_of(o, "asked"), "169.254.169.254");
	assert_string_equal(text_of(o, "transport"), "tcp");
	assert_int_equal(json_integer_value(json_object_get(o, "dst_port")), 80);
	assert_true(json_is_null(json_object_get(o, "rule")));
	assert_null(json_object_get(o, "dst_ip"));
	assert_null(json_object_get(o, "host"));
	json_decref(o);
}

static void a_question_has_its_answers_and_its_code(void **state)
{
	struct ip_addr answers[2] = { ip_addr_v4(0xc6120001), { 0 } };
	struct record r = {
		.event = RECORD_DNS, .act = RECORD_ALLOW, .id = some_id,
		.via = RECORD_VIA_DNS, .host = STR("pypi.org"), .qtype = "A",
		.answers = answers, .nanswers = 2, .dur_ms = 3, .count = 2,
		.internal = true,
	};
	json_t *o, *list;

	(void)state;
	answers[1].family = IP_V6;
	answers[1].b[0] = 0xfd;
	o = parsed(&r);
	list = json_object_get(o, "answers");
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(json_string_value(json_array_get(list, 0)),
			    "198.18.0.1");
	assert_string_equal(json_string_value(json_array_get(list, 1)), "fd00::");
	assert_int_equal(json_integer_value(json_object_get(o, "rcode")), 0);
	assert_int_equal(json_integer_value(json_object_get(o, "count")), 2);
	assert_true(json_is_true(json_object_get(o, "internal")));
	assert_null(json_object_get(o, "dst_port"));
	assert_null(json_object_get(o, "transport"));
	json_decref(o);
	/* One repetition is one more than the record before. */
	r.count = 1;
	o = parsed(&r);
	assert_int_equal(json_integer_value(json_object_get(o, "count")), 1);
	json_decref(o);
	r.count = 0;
	o = parsed(&r);
	assert_null(json_object_get(o, "count"));
	json_decref(o);
}

static void a_close_says_its_bytes_even_when_none(void **state)
{
	struct record r = flow(RECORD_FLOW_CLOSE);
	json_t *o;

	(void)state;
	r.reason = REASON_CLIENT_CLOSED;
	r.dur_ms = 12;
	r.dns = some_id;
	o = parsed(&r);
	assert_int_equal(json_integer_value(json_object_get(o, "bytes_up")), 0);
	assert_true(json_is_integer(json_object_get(o, "bytes_down")));
	assert_int_equal(json_integer_value(json_object_get(o, "dur_ms")), 12);
	assert_string_equal(text_of(o, "dns"),
			    "01930000-0000-7000-8000-000000000000");
	json_decref(o);
}

static void records_about_the_run_have_no_verdict(void **state)
{
	struct record r = { .event = RECORD_LOG_GAP, .act = RECORD_ACT_NONE,
			    .rcode = -1, .dur_ms = -1, .count = 1 };
	json_t *o = parsed(&r);

	(void)state;
	assert_string_equal(text_of(o, "act"), "none");
	assert_null(json_object_get(o, "reason"));
	assert_null(json_object_get(o, "rule"));
	assert_null(json_object_get(o, "dst_port"));
	assert_int_equal(json_integer_value(json_object_get(o, "count")), 1);
	json_decref(o);
}

/* LOG-01 */
static void hostile_bytes_stay_inside_their_string(void **state)
{
	struct record r = flow(RECORD_FLOW_DENY);
	char all[256];
	json_t *o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(all); i++)
		all[i] = (char)i;
	r.host = STR("a\",\"act\":\"allow\"\n{\"v\":1}");
	r.sni = str_make(all, sizeof(all) - 1);
	r.path = STR("/%0d%0a{\"decision\":\"allow\"}\x1b[2J\x7f\xe2\x80\xa8");
	r.method = STR("GE\r\nT");
	o = parsed(&r);
	assert_string_equal(text_of(o, "act"), "allow");
	assert_string_equal(text_of(o, "host"),
			    "a\",\"act\":\"allow\"\n{\"v\":1}");
	assert_string_equal(text_of(o, "path"),
		"/%0d%0a{\"decision\":\"allow\"}\x1b[2J\x7f\xe2\x80\xa8");
	assert_string_equal(text_of(o, "method"), "GE\r\nT");
	json_decref(o);
}

static void a_query_string_is_never_written(void **state)
{
	struct record r = flow(RECORD_HTTP);
	json_t *o;

	(void)state;
	r.method = STR("GET");
	r.path = STR("/v1/x?token=secret#also");
	o = parsed(&r);
	assert_string_equal(text_of(o, "path"), "/v1/x");
	json_decref(o);
	r.path = STR("/v1/x#token=secret");
	o = parsed(&r);
	assert_string_equal(text_of(o, "path"), "/v1/x");
	json_decref(o);
}

static void the_longest_record_fits_and_says_that_it_was_cut(void **state)
{
	static char huge[70000];
	struct ip_addr answers[500];
	struct record_labels big = {
		.run = huge, .sandbox = huge, .policy = huge, .mode = huge,
		.generation = UINT32_MAX,
	};
	struct buf out = BUF_INIT(RECORD_LINE_MAX);
	struct record r = flow(RECORD_FLOW_CLOSE);
	struct str s = str_make(huge, sizeof(huge) - 1);
	json_error_t err;
	json_t *o;
	size_t i;

	(void)state;
	memset(huge, '\x01', sizeof(huge) - 1);
	for (i = 0; i < ARRAY_SIZE(answers); i++) {
		memset(&answers[i], 0xff, sizeof(answers[i]));
		answers[i].family = IP_V6;
	}
	r.host = r.sni = r.http_host = r.method = r.path = s;
	r.rule = r.transport = r.proto = r.qtype = huge;
	r.reason = REASON_METHOD_NOT_SUPPORTED;
	r.src = (struct ip_endpoint){ answers[0], 65535 };
	r.dst = r.src;
	r.asked = answers[0];
	r.dns = some_id;
	r.answers = answers;
	r.nanswers = ARRAY_SIZE(answers);
	r.status = 1 << 30;
	r.bytes_up = r.bytes_down = UINT64_MAX;
	r.dur_ms = INT64_MAX;
	r.count = UINT32_MAX;
	r.internal = true;
	assert_int_equal(record_render(&r, &big, UINT64_MAX, INT64_MAX, &out), 0);
	o = json_loadb(out.p, out.n, JSON_REJECT_DUPLICATES, &err);
	assert_non_null(o);
	assert_true(json_is_true(json_object_get(o, "cut")));
	assert_true(json_array_size(json_object_get(o, "answers")) >= 4);
	json_decref(o);
	buf_done(&out);
}

static void a_change_of_policy_says_what_became_of_flows_POL_04(void **state)
{
	struct record r = { .event = RECORD_POLICY, .act = RECORD_ACT_NONE,
			    .rcode = -1, .dur_ms = -1, .flows_kept = 7 };
	json_t *o = parsed(&r);

	(void)state;
	assert_string_equal(text_of(o, "ev"), "policy_reload");
	assert_int_equal(json_integer_value(json_object_get(o, "gen")), 3);
	assert_int_equal(json_integer_value(
			 json_object_get(o, "flows_kept")), 7);
	assert_true(json_is_integer(json_object_get(o, "flows_ended")));
	json_decref(o);
	r.event = RECORD_POLICY_FAILED;
	r.error = STR("ci.ini:3: unknown key");
	o = parsed(&r);
	assert_string_equal(text_of(o, "ev"), "policy_reload_failed");
	assert_string_equal(text_of(o, "error"), "ci.ini:3: unknown key");
	assert_null(json_object_get(o, "flows_kept"));
	json_decref(o);
}

static void assert_same_line(const struct record_labels *plain)
{
	struct buf a = BUF_INIT(RECORD_LINE_MAX), b = BUF_INIT(RECORD_LINE_MAX);
	struct record_labels ready = *plain;
	struct record r = flow(RECORD_FLOW_OPEN);
	char text[RECORD_LABELS_MAX + 1];

	record_labels_render(&ready, text);
	assert_true(ready.members.n > 0);
	assert_int_equal(record_render(&r, plain, 1, WALL_US, &a), 0);
	assert_int_equal(record_render(&r, &ready, 1, WALL_US, &b), 0);
	assert_true(str_eq(buf_str(&a), buf_str(&b)));
	buf_done(&a);
	buf_done(&b);
}

static void labels_that_were_made_ready_are_written_the_same(void **state)
{
	static char huge[400];
	struct record_labels big = {
		.run = huge, .sandbox = huge, .policy = huge, .mode = huge,
		.generation = UINT32_MAX,
	};

	(void)state;
	memset(huge, '\x01', sizeof(huge) - 1);
	assert_same_line(&labels);
	assert_same_line(&big);
}

static void a_cut_never_splits_a_character(void **state)
{
	char name[300];
	struct record r = flow(RECORD_FLOW_DENY);
	const char *host;
	json_t *o;
	size_t i;

	(void)state;
	/* Characters of three bytes: 255 is a boundary, 254 and 253 are not. */
	for (i = 0; i + 3 <= sizeof(name); i += 3)
		memcpy(name + i, "\xe2\x82\xac", 3);
	r.host = str_make(name + 1, sizeof(name) - 1);
	r.sni = str_make("x", 1);
	o = parsed(&r);
	host = text_of(o, "host");
	assert_true(json_is_true(json_object_get(o, "cut")));
	/* Two stray bytes, each one U+00XX, then whole characters only. */
	assert_memory_equal(host, "\xc2\x82\xc2\xac\xe2\x82\xac", 7);
	assert_string_equal(host + strlen(host) - 3, "\xe2\x82\xac");
	json_decref(o);
}

static void a_full_buffer_stays_as_it_was(void **state)
{
	struct buf out = BUF_INIT(100);
	struct record r = flow(RECORD_FLOW_OPEN);

	(void)state;
	assert_int_equal(buf_add(&out, "before\n", 7), 0);
	assert_int_equal(record_render(&r, &labels, 1, WALL_US, &out), -ENOSPC);
	assert_int_equal(out.n, 7);
	buf_done(&out);
}

static void every_word_is_named_once(void **state)
{
	int a, b;

	(void)state;
	for (a = 0; a < RECORD_EVENTS; a++)
		for (b = 0; b < a; b++)
			assert_string_not_equal(record_event_word(a),
						record_event_word(b));
	assert_string_equal(record_act_word(RECORD_ACT_NONE), "none");
	assert_string_equal(record_act_word(RECORD_WOULD_DENY), "would_deny");
	assert_string_equal(record_via_word(RECORD_VIA_NONE), "");
	assert_string_equal(record_via_word(RECORD_VIA_FIREWALL), "firewall");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_open_names_everything_in_fixed_order),
		cmocka_unit_test(
			a_refusal_has_port_and_way_in_even_without_a_name),
		cmocka_unit_test(a_question_has_its_answers_and_its_code),
		cmocka_unit_test(a_close_says_its_bytes_even_when_none),
		cmocka_unit_test(records_about_the_run_have_no_verdict),
		cmocka_unit_test(hostile_bytes_stay_inside_their_string),
		cmocka_unit_test(a_query_string_is_never_written),
		cmocka_unit_test(
			the_longest_record_fits_and_says_that_it_was_cut),
		cmocka_unit_test(
		    a_change_of_policy_says_what_became_of_flows_POL_04),
		cmocka_unit_test(
		    labels_that_were_made_ready_are_written_the_same),
		cmocka_unit_test(a_cut_never_splits_a_character),
		cmocka_unit_test(a_full_buffer_stays_as_it_was),
		cmocka_unit_test(every_word_is_named_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
