/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_dns_test.c - what a policy says of DNS, and of a run's budgets
 */
#include "tests/unit/rules_kit.h"

#include "rules/rules_diff.h"
#include "rules/rules_show.h"

#define NOW	1
#define QTYPE_A		1
#define QTYPE_NULL	10
#define QTYPE_TXT	16
#define QTYPE_SRV	33
#define QTYPE_HTTPS	65
#define QTYPE_ANY	255
#define QTYPE_CAA	257

static uint32_t bits(const char *a, const char *b)
{
	return rules_type_bit(rules_type_by_name(str_from(a))) |
	       rules_type_bit(rules_type_by_name(str_from(b)));
}

static void types_have_names_and_bits(void **state)
{
	static const uint16_t shut[] = { 0, QTYPE_A, QTYPE_NULL, 28, 41, 252,
					 QTYPE_ANY, 65280 };
	uint32_t all = 0;

	(void)state;
	assert_int_equal(rules_type_by_name(STR("txt")), QTYPE_TXT);
	assert_int_equal(rules_type_by_name(STR("HTTPS")), QTYPE_HTTPS);
	assert_int_equal(rules_type_by_name(STR("ANY")), 0);
	assert_int_equal(rules_type_by_name(STR("")), 0);
	for (size_t i = 0; i < ARRAY_SIZE(shut); i++)
		assert_int_equal(rules_type_bit(shut[i]), 0);
	for (unsigned qtype = 0; qtype <= UINT16_MAX; qtype++) {
		uint32_t bit = rules_type_bit((uint16_t)qtype);

		assert_int_equal(all & bit, 0);
		all |= bit;
		if (bit)
			assert_int_equal(rules_type_by_name(str_from(
				rules_type_name(bit))), qtype);
	}
	assert_string_equal(rules_type_name(rules_type_bit(QTYPE_CAA)), "CAA");
}

static void a_type_is_opened_by_rules_that_speak_of_the_name(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow web]\nhosts = *.example.com a.example.net\n"
		"[allow mail]\nhosts = mail.example.com\ntypes = MX TXT\n"
		"reason = x\n"
		"[allow srv]\nhosts = _sip._tcp.example.com\ntypes = srv\n"
		"reason = x\n"
		"[deny no]\nhosts = shut.example.com\n"
		"[allow gone]\nhosts = a.example.net\ntypes = NS\n"
		"expires = 1970-01-01T00:00:01Z\n");

	(void)state;
	assert_int_equal(rules_name_types(rs, STR("mail.example.com"), NOW),
			 bits("MX", "TXT"));
	assert_int_equal(rules_name_types(rs, STR("www.example.com"), NOW), 0);
	assert_int_equal(rules_name_types(rs, STR("a.mail.example.com"), NOW),
			 0);
	assert_int_equal(rules_name_types(rs, STR("_sip._tcp.example.com"),
					  NOW), rules_type_bit(QTYPE_SRV));
	assert_int_equal(rules_name_types(rs, STR("a.example.net"), NOW), 0);
	rules_unref(rs);
}

static void dns_opens_types_for_what_is_allowed_and_no_more(void **state)
{
	struct ruleset *rs = compile_good(
		"[dns]\ntypes = HTTPS A\ntypes = CAA\n"
		"[allow a]\nhosts = *.example.com\ntypes = TXT\n"
		"[deny d]\nhosts = shut.example.com\n");
	uint32_t web = bits("HTTPS", "CAA");

	(void)state;
	assert_int_equal(rules_name_types(rs, STR("a.example.com"), NOW),
			 web | rules_type_bit(QTYPE_TXT));
	assert_int_equal(rules_name_types(rs, STR("shut.example.com"), NOW),
			 0);
	assert_int_equal(rules_name_types(rs, STR("example.com"), NOW), 0);
	assert_int_equal(rules_name_types(rs, STR("other.example"), NOW), 0);
	rules_unref(rs);
}

/* What is let through only to see what it would have been opens no channel. */
static void observing_opens_no_types(void **state)
{
	struct ruleset *rs = compile_good(
		"[policy]\nmode = observe\n[dns]\ntypes = TXT\n"
		"[allow a]\nhosts = a.example\n");

	(void)state;
	assert_int_equal(rules_name_types(rs, STR("a.example"), NOW),
			 rules_type_bit(QTYPE_TXT));
	assert_int_equal(rules_name_types(rs, STR("b.example"), NOW), 0);
	rules_unref(rs);
}

static void settings_are_what_was_written(void **state)
{
	struct ruleset *rs = compile_good("[allow a]\nhosts = a.example\n");

	(void)state;
	assert_int_equal(rules_dns(rs)->answers, RULES_ANSWERS_DEFAULT);
	assert_int_equal(rules_dns(rs)->ipv6, RULES_IPV6_AUTO);
	assert_false(rules_dns(rs)->refused);
	assert_int_equal(rules_limits(rs)->queries, 0);
	rules_unref(rs);
	rs = compile_good("[dns]\nanswers = real\nipv6 = off\n"
			  "denied = refused\n[limits]\nqueries = 5\n"
			  "names = 1000000000\nlabel_bytes = 8K\n"
			  "nxdomain = 7\n");
	assert_int_equal(rules_dns(rs)->answers, RULES_ANSWERS_REAL);
	assert_int_equal(rules_dns(rs)->ipv6, RULES_IPV6_OFF);
	assert_true(rules_dns(rs)->refused);
	assert_int_equal(rules_limits(rs)->queries, 5);
	assert_int_equal(rules_limits(rs)->names, 1000000000);
	assert_int_equal(rules_limits(rs)->label_bytes, 8192);
	assert_int_equal(rules_limits(rs)->nxdomain, 7);
	rules_unref(rs);
	rs = compile_good("[dns]\nanswers = synthetic\nipv6 = on\n"
			  "denied = nxdomain\n[limits]\nlabel_bytes = 900G\n");
	assert_int_equal(rules_dns(rs)->answers, RULES_ANSWERS_SYNTHETIC);
	assert_int_equal(rules_dns(rs)->ipv6, RULES_IPV6_ON);
	assert_false(rules_dns(rs)->refused);
	/* Never less than was meant by turning around. */
	assert_int_equal(rules_limits(rs)->label_bytes, UINT32_MAX);
	rules_unref(rs);
}

static void nothing_that_is_used_is_warned_of(void **state)
{
	struct ruleset *rs;
	struct told told;

	(void)state;
	rs = compile_told("[dns]\nanswers = real\ntypes = TXT\n[limits]\n"
			  "queries = 5\nnames = 5\nlabel_bytes = 5\n"
			  "nxdomain = 5\n[allow a]\nhosts = a.example\n", &told);
	assert_non_null(rs);
	assert_int_equal(told.warnings, 0);
	buf_done(&told.text);
	rules_unref(rs);
	rs = compile_told("[limits]\nnames = 5\nbytes_up = 5\n[audit]\n"
			  "queries = show\n"
			  "[allow a]\nhosts = a.example\n", &told);
	assert_non_null(rs);
	assert_string_equal(buf_cstr(&told.text), "p.ini:5:0: warning: "
			    "'queries' has no effect: this version of Penstock "
			    "reads it and does nothing by it\n");
	buf_done(&told.text);
	rules_unref(rs);
}

static void limits_are_what_was_written(void **state)
{
	struct ruleset *rs = compile_good(
		"[limits]\nconnections = 7\nnew_connections = 8\n"
		"bytes_up = 9G\nbytes_down = 1000000000G\n"
		"flow_bytes_up = 5K\nflow_bytes_down = 6\nrate_up = 10M\n"
		"rate_down = 11\nheader_bytes = 8K\nheader_time = 30s\n"
		"connect_time = 2m\nresponse_time = 1h\nidle_time = 2d\n"
		"flow_time = 1000000000d\n"
		"[allow a]\nhosts = a.example\nbytes_up = 1M\n"
		"idle_time = 10m\n"
		"[allow b]\nhosts = b.example\nbytes_down = 2\n"
		"idle_time = 3d\nflow_time = 1h\n");
	const struct rules_limits *l = rules_limits(rs);

	(void)state;
	assert_int_equal(l->connections, 7);
	assert_int_equal(l->new_connections, 8);
	assert_int_equal(l->bytes.up, 9ull << 30);
	assert_int_equal(l->bytes.down, 1000000000ull << 30);
	assert_int_equal(l->flow_bytes.up, 5120);
	assert_int_equal(l->flow_bytes.down, 6);
	assert_int_equal(l->rate.up, 10 << 20);
	assert_int_equal(l->rate.down, 11);
	assert_int_equal(l->header_bytes, 8192);
	assert_int_equal(l->header_s, 30);
	assert_int_equal(l->connect_s, 120);
	assert_int_equal(l->response_s, 3600);
	assert_int_equal(l->times.idle_s, 2 * 86400);
	assert_int_equal(l->times.flow_s, RULES_SPAN_MAX_S);
	/* The shorter of both. */
	assert_int_equal(rules_times(rs, 0).idle_s, 2 * 86400);
	assert_int_equal(rules_times(rs, 1).idle_s, 600);
	assert_int_equal(rules_times(rs, 1).flow_s, RULES_SPAN_MAX_S);
	assert_int_equal(rules_times(rs, 2).idle_s, 2 * 86400);
	assert_int_equal(rules_times(rs, 2).flow_s, 3600);
	assert_int_equal(rules_rule_bytes(rs, 0).up, 0);
	assert_int_equal(rules_rule_bytes(rs, 1).up, 1 << 20);
	assert_int_equal(rules_rule_bytes(rs, 1).down, 0);
	assert_int_equal(rules_rule_bytes(rs, 2).down, 2);
	rules_unref(rs);
}

static void bad_limits_are_errors_with_their_place(void **state)
{
	static const struct {
		const char *text, *told;
	} cases[] = {
		{ "[limits]\nheader_time = 30\n", "p.ini:2:15: error: '30' is "
		  "no length of time; write 30s, 10m, 2h or 1d\n" },
		{ "[limits]\nidle_time = s\n", "p.ini:2:13: error: 's' is "
		  "no length of time; write 30s, 10m, 2h or 1d\n" },
		{ "[limits]\nbytes_up = 0\n", "p.ini:2:12: error: '0' is no "
		  "number of bytes; write 65536, 64K, 10M or 2G\n" },
		{ "[allow a]\nhosts = a.example\nbytes_up = K\n",
		  "p.ini:3:12: error: 'K' is no number of bytes; write 65536, "
		  "64K, 10M or 2G\n" },
		{ "[allow a]\nhosts = a.example\nbytes_up = 1\n"
		  "bytes_up = 2\n", "p.ini:4:0: error: 'bytes_up'" },
		{ "[allow a]\nhosts = a.example\nidle_time = 10\n",
		  "p.ini:3:13: error: '10' is no length of time; write 30s, "
		  "10m, 2h or 1d\n" },
		{ "[allow a]\nhosts = a.example\nflow_time = 1h 2h\n",
		  "p.ini:3:13: error: '1h 2h' is no length of time; write "
		  "30s, 10m, 2h or 1d\n" },
		{ "[allow a]\nhosts = a.example\nflow_time = 1h\n"
		  "flow_time = 2h\n", "p.ini:4:0: error: 'flow_time'" },
		{ "[allow a]\nhosts = a.example\nidel_time = 1h\n",
		  "did you mean 'idle_time'?" },
		{ "[deny a]\nhosts = a.example\nidle_time = 5s\n",
		  "p.ini:3:0: error: 'idle_time' has no place in [deny a]; it "
		  "belongs in [allow NAME]\n" },
		{ "[deny a]\nhosts = a.example\nbytes_up = 5\n",
		  "p.ini:3:0: error: 'bytes_up' has no place in [deny a]; it "
		  "belongs in [allow NAME]\n" },
	};
	struct told told;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_null(compile_told(cases[i].text, &told));
		assert_non_null(strstr(buf_cstr(&told.text), cases[i].told));
		buf_done(&told.text);
	}
}

static void a_time_that_is_longer_than_all_may_have_is_warned_of(void **state)
{
	struct told told;
	struct ruleset *rs = compile_told(
		"[allow a]\nhosts = a.example\nidle_time = 2h\n"
		"flow_time = 1h\n"
		"[allow b]\nhosts = b.example\nidle_time = 30m\n"
		"[limits]\nidle_time = 1h\nflow_time = 1h\n", &told);

	(void)state;
	assert_non_null(rs);
	assert_string_equal(buf_cstr(&told.text), "p.ini:3:0: warning: "
			    "'idle_time' of [allow a] has no effect: [limits] "
			    "has 3600s for all; give it less, or take it "
			    "out\n");
	buf_done(&told.text);
	rules_unref(rs);
}

/* It says what the wildcard does not: of its flows. */
static void a_rule_with_a_time_of_its_own_adds_something(void **state)
{
	static const struct {
		const char *key;
		unsigned warnings;
	} cases[] = {
		{ "", 1 }, { "idle_time = 1m\n", 0 }, { "flow_time = 1h\n", 0 },
		{ "bytes_up = 5\n", 0 }, { "bytes_down = 5\n", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[256];
		struct ruleset *rs;
		struct told told;

		assert_true(snprintf(text, sizeof(text),
				     "[allow all]\nhosts = *.a.example\n"
				     "[allow one]\nhosts = x.a.example\n%s",
				     cases[i].key) > 0);
		rs = compile_told(text, &told);
		assert_non_null(rs);
		assert_int_equal(told.warnings, cases[i].warnings);
		buf_done(&told.text);
		rules_unref(rs);
	}
}

struct limits_told {
	struct buf text;
	unsigned stop;
};

static bool on_limit(void *arg, const struct rules_limit_change *c)
{
	struct limits_told *t = arg;

	assert_int_equal(buf_printf(&t->text, "%s %s %s %s %s\n",
				    c->rule ? c->rule : c->section, c->key,
				    c->was ? c->was : "-",
				    c->is ? c->is : "-",
				    rules_direction_word(c->direction)), 0);
	return --t->stop > 0;
}

static void other_limits_are_told(void **state)
{
	struct ruleset *from = compile_good(
		"[limits]\nbytes_up = 5M\nnames = 9\nidle_time = 1m\n"
		"[allow a]\nhosts = a.example\nbytes_up = 5\n"
		"flow_time = 2m\n"
		"[allow b]\nhosts = b.example\nbytes_up = 5\n");
	struct ruleset *to = compile_good(
		"[limits]\nbytes_up = 3000000K\nnames = 9\nflow_time = 1m\n"
		"[allow a]\nhosts = a.example\nbytes_down = 6\n"
		"idle_time = 1h\nflow_time = 3m\n"
		"[allow c]\nhosts = b.example\nbytes_up = 7\n");
	struct limits_told t = { BUF_INIT(4096), 100 };

	(void)state;
	assert_true(rules_diff_limits(from, from, on_limit, &t));
	assert_int_equal(t.text.n, 0);
	assert_true(rules_diff_limits(from, to, on_limit, &t));
	assert_string_equal(buf_cstr(&t.text),
			    "limits bytes_up 5M 3000000K wider\n"
			    "limits idle_time 60s - wider\n"
			    "limits flow_time - 60s narrower\n"
			    "a bytes_up 5 - wider\n"
			    "a bytes_down - 6 narrower\n"
			    "a idle_time - 3600s narrower\n"
			    "a flow_time 120s 180s other\n");
	t.stop = 1;
	assert_false(rules_diff_limits(from, to, on_limit, &t));
	buf_done(&t.text);
	rules_unref(from);
	rules_unref(to);
}

/* What holds where nothing is said counts, and no more than what has effect. */
static void limits_are_told_with_their_direction(void **state)
{
	static const struct {
		const char *from, *to, *told;
	} cases[] = {
#define L "[limits]\n"
#define D "[dns]\n"
		{ "", L "connections = 4097\n",
		  "limits connections - 4097 wider\n" },
		{ "", L "memory = 1G\n", "limits memory - 1G wider\n" },
		{ L "connections = 9\n", "",
		  "limits connections 9 - wider\n" },
		{ "", L "connections = 4096\n",
		  "limits connections - 4096 other\n" },
		{ L "names = 1001\n", "", "limits names 1001 - narrower\n" },
		{ L "names = 131072\n", L "names = 131073\n",
		  "limits names 131072 131073 other\n" },
		{ "", L "header_bytes = 1M\n",
		  "limits header_bytes - 1M other\n" },
		{ "", L "header_time = 30s\n",
		  "limits header_time - 30s narrower\n" },
		{ "", L "connect_time = 31s\n",
		  "limits connect_time - 31s wider\n" },
		{ "", L "rate_up = 1G\n",
		  "limits rate_up - 1G narrower\n" },
		{ "", L "queries = 51\n", "limits queries - 51 other\n" },
		{ "", L "queries = 50\n", "limits queries - 50 narrower\n" },
		{ L "queries = 9\n", "", "limits queries 9 - wider\n" },
		{ L "queries = 51\n", L "queries = 52\n",
		  "limits queries 51 52 wider\n" },
		{ "", D "answers = real\n", "dns answers - real other\n" },
		{ D "answers = real\n", D "answers = synthetic\n",
		  "dns answers real synthetic other\n" },
		{ "", D "ipv6 = auto\n", "" },
		{ "", D "ipv6 = on\n", "dns ipv6 auto on wider\n" },
		{ D "ipv6 = auto\n", D "ipv6 = off\n",
		  "dns ipv6 auto off narrower\n" },
		{ "", D "denied = refused\n",
		  "dns denied nxdomain refused other\n" },
#undef L
#undef D
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ruleset *from = compile_good(cases[i].from);
		struct ruleset *to = compile_good(cases[i].to);
		struct limits_told t = { BUF_INIT(4096), 100 };

		assert_true(rules_diff_limits(from, to, on_limit, &t));
		assert_int_equal(buf_add_char(&t.text, '\0'), 0);
		assert_string_equal(t.text.p, cases[i].told);
		buf_done(&t.text);
		rules_unref(from);
		rules_unref(to);
	}
}

static void shown_it_is_the_same_policy(void **state)
{
	static const char text[] =
		"[dns]\nanswers = real\nipv6 = on\ndenied = refused\n"
		"types = CAA\n[limits]\nqueries = 9\nlabel_bytes = 900G\n"
		"bytes_up = 1000000000G\nrate_down = 3000001K\n"
		"flow_time = 2d\n"
		"[allow a]\nhosts = a.example\ntypes = TXT SRV\n"
		"bytes_up = 3G\nbytes_down = 9\nidle_time = 90s\n"
		"flow_time = 2h\n";
	struct ruleset *rs = compile_good(text), *again;
	struct buf out = BUF_INIT(1 << 16);

	(void)state;
	assert_int_equal(rules_show(rs, &out), 0);
	again = compile_good(buf_cstr(&out));
	assert_memory_equal(rules_dns(again), rules_dns(rs),
			    sizeof(struct rules_dns));
	assert_memory_equal(rules_limits(again), rules_limits(rs),
			    sizeof(struct rules_limits));
	assert_int_equal(rules_rule_bytes(again, 1).up, 3ull << 30);
	assert_int_equal(rules_rule_bytes(again, 1).down, 9);
	assert_int_equal(rules_times(again, 1).idle_s, 90);
	assert_int_equal(rules_times(again, 1).flow_s, 7200);
	assert_int_equal(rules_name_types(again, STR("a.example"), NOW),
			 bits("TXT", "SRV") | rules_type_bit(QTYPE_CAA));
	buf_done(&out);
	rules_unref(again);
	rules_unref(rs);
}

struct heard {
	unsigned n;
	uint32_t gained, lost;
};

static bool hear(void *arg, const struct rules_change *c)
{
	struct heard *h = arg;

	h->n++;
	*(c->gained ? &h->gained : &h->lost) |= c->types;
	return true;
}

static void a_difference_in_types_is_told(void **state)
{
	struct ruleset *from = compile_good(
		"[allow a]\nhosts = a.example\ntypes = TXT\n");
	struct ruleset *to = compile_good(
		"[dns]\ntypes = CAA\n[allow a]\nhosts = a.example\n");
	struct heard h = { 0 };

	(void)state;
	assert_int_equal(rules_diff(from, to, NOW, hear, &h), 0);
	assert_int_equal(h.n, 2);
	assert_int_equal(h.gained, rules_type_bit(QTYPE_CAA));
	assert_int_equal(h.lost, rules_type_bit(QTYPE_TXT));
	h = (struct heard){ 0 };
	assert_int_equal(rules_diff(to, to, NOW, hear, &h), 0);
	assert_int_equal(h.n, 0);
	rules_unref(from);
	rules_unref(to);
}

/* One address of each family, by name and as a literal. */
static void expect_v6(const char *text, enum reason v6, enum reason named)
{
	struct ruleset *rs = compile_good(text);
	struct rules_question q = { .port = 443, .now = NOW };
	struct rules_answer a;
	struct ip_addr addr;

	assert_int_equal(ip_addr_parse(STR("2600::1"), &addr), 0);
	q.addr = &addr;
	rules_judge(rs, &q, &a);
	assert_int_equal(a.reason, v6);
	q.host = STR("a.example.com");
	rules_judge(rs, &q, &a);
	assert_int_equal(a.reason, named);
	rules_judge_name_addr(rs, &q, &a);
	assert_int_equal(a.reason, named);
	assert_int_equal(rules_passes(&a), named == REASON_ALLOWED);
	/* A mapped address is one of IPv4, and a name has no family. */
	assert_int_equal(ip_addr_parse(STR("::ffff:8.8.8.8"), &addr), 0);
	rules_judge(rs, &q, &a);
	assert_true(rules_passes(&a));
	q.addr = NULL;
	rules_judge(rs, &q, &a);
	assert_true(rules_passes(&a));
	rules_unref(rs);
}

/* OPS-06: dialling and answers alike, whatever rule would permit it. */
static void ipv6_off_shuts_the_family_for_every_rule(void **state)
{
	(void)state;
	expect_v6("[dns]\nipv6 = off\n[allow a]\nhosts = a.example.com\n"
		  "[allow b]\naddresses = 2600::/16\nreason = x\n",
		  REASON_IPV6_OFF, REASON_IPV6_OFF);
	expect_v6("[policy]\nname = p\nmode = observe\n"
		  "[dns]\nipv6 = off\n[allow a]\nhosts = a.example.com\n",
		  REASON_IPV6_OFF, REASON_IPV6_OFF);
	expect_v6("[dns]\nipv6 = auto\n[allow a]\nhosts = a.example.com\n"
		  "[allow b]\naddresses = 2600::/16\nreason = x\n",
		  REASON_ALLOWED, REASON_ALLOWED);
}

static void names_have_ipv6_as_policy_or_host_say(void **state)
{
	static const struct {
		const char *text;
		bool without, with, unknown;
	} cases[] = {
		{ "", false, true, true },
		{ "[dns]\nipv6 = auto\n", false, true, true },
		{ "[dns]\nipv6 = on\n", true, true, true },
		{ "[dns]\nipv6 = off\n", false, false, false },
	};
	const struct ip_hosts none = { .no_ipv6 = true }, some = { .n = 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ruleset *rs = compile_good(cases[i].text);

		assert_int_equal(rules_has_ipv6(rs, &none), cases[i].without);
		assert_int_equal(rules_has_ipv6(rs, &some), cases[i].with);
		assert_int_equal(rules_has_ipv6(rs, NULL), cases[i].unknown);
		rules_unref(rs);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_have_names_and_bits),
		cmocka_unit_test(
			a_type_is_opened_by_rules_that_speak_of_the_name),
		cmocka_unit_test(
			dns_opens_types_for_what_is_allowed_and_no_more),
		cmocka_unit_test(observing_opens_no_types),
		cmocka_unit_test(settings_are_what_was_written),
		cmocka_unit_test(limits_are_what_was_written),
		cmocka_unit_test(bad_limits_are_errors_with_their_place),
		cmocka_unit_test(other_limits_are_told),
		cmocka_unit_test(limits_are_told_with_their_direction),
		cmocka_unit_test(nothing_that_is_used_is_warned_of),
		cmocka_unit_test(
			a_time_that_is_longer_than_all_may_have_is_warned_of),
		cmocka_unit_test(
			a_rule_with_a_time_of_its_own_adds_something),
		cmocka_unit_test(shown_it_is_the_same_policy),
		cmocka_unit_test(a_difference_in_types_is_told),
		cmocka_unit_test(ipv6_off_shuts_the_family_for_every_rule),
		cmocka_unit_test(names_have_ipv6_as_policy_or_host_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
