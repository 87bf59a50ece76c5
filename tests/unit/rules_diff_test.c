/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_diff_test.c - nothing becomes reachable, or is lost, untold
 *
 * Two random policies out of few hosts, ports, ranges and paths are asked the
 * same random questions.  Where what goes on differs, the comparison must have
 * told of a change in that direction; where nothing is told, nothing may.
 */
#include "rules/rules_diff.h"
#include "tests/unit/rules_kit.h"

#define NOW		1800000000	/* in January of 2027 */
#define PAIRS		800
#define QUESTIONS	200

struct heard {
	unsigned gained, lost;
	struct rules_change last;
};

static bool hear(void *arg, const struct rules_change *c)
{
	struct heard *h = arg;

	if (c->gained)
		h->gained++;
	else
		h->lost++;
	h->last = *c;
	return true;
}

static struct heard compare(const struct ruleset *from,
			    const struct ruleset *to)
{
	struct heard h = { 0 };

	assert_int_equal(rules_diff(from, to, NOW, hear, &h), 0);
	return h;
}

/* --- what is easily overlooked ------------------------------------------------ */

#define ALLOW	"[allow a]\nhosts = a.example.com\n"
#define HTTP	"[allow a]\nhosts = a.example.com\nprotocol = http\n"
#define FAR	"[allow w]\nhosts = *.example.com\naddresses = 10.0.0.0/8\n" \
		"reason = x\n"

static void a_widening_is_told_whatever_makes_it(void **state)
{
	static const struct {
		const char *narrow, *wide;
	} t[] = {
		{ ALLOW "[deny d]\nhosts = a.example.com\n",
		  ALLOW "[deny d]\nhosts = a.example.com\nmode = observe\n" },
		{ ALLOW, ALLOW "mode = observe\n" },
		{ FAR, FAR ALLOW },
		{ ALLOW "[deny d]\nhosts = *\naddresses = 8.8.8.0/24\n",
		  ALLOW },
		{ HTTP, ALLOW "ports = 80\nprotocol = tcp\n" },
		{ HTTP "methods = GET\n", ALLOW "ports = 80\nprotocol = tcp\n" },
		{ ALLOW "protocol = https\n",
		  ALLOW "ports = 443\nprotocol = tcp\n" },
		{ ALLOW "expires = 2027-06-01\n", ALLOW },
		{ ALLOW "expires = 2027-06-01\n",
		  ALLOW "expires = 2027-06-02\n" },
		{ ALLOW "[deny d]\nhosts = a.example.com\n", ALLOW
		  "[deny d]\nhosts = a.example.com\nexpires = 2027-06-01\n" },
		{ HTTP "paths = /x/**\n[deny d]\nhosts = a.example.com\n"
		  "protocol = http\npaths = /*/secret\n",
		  HTTP "paths = /x/**\n" },
		{ HTTP "paths = /*.js\n[deny d]\nhosts = a.example.com\n"
		  "protocol = http\npaths = /admin*\n",
		  HTTP "paths = /*.js\n" },
		{ HTTP "[deny d]\nhosts = a.example.com\nprotocol = http\n"
		  "methods = PUT\n", HTTP "[deny d]\nhosts = a.example.com\n"
		  "protocol = http\nmethods = PUT\nexpires = 2027-06-01\n" },
		{ "[allow a]\naddresses = 8.8.8.8\nexpires = 2027-06-01\n",
		  "[allow a]\naddresses = 8.8.8.8\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct ruleset *from = compile_good(t[i].narrow);
		struct ruleset *to = compile_good(t[i].wide);
		struct heard there = compare(from, to);
		struct heard back = compare(to, from);

		if (there.gained == 0 || there.lost > 0 || back.lost == 0 ||
		    back.gained > 0)
			fail_msg("%s\nto:\n%s\ntold: %u %u, %u %u", t[i].narrow,
				 t[i].wide, there.gained, there.lost,
				 back.gained, back.lost);
		there = compare(to, to);
		assert_int_equal(there.gained + there.lost, 0);
		rules_unref(from);
		rules_unref(to);
	}
}

static void a_change_says_when_and_how(void **state)
{
	struct ruleset *from = compile_good(ALLOW "protocol = https\n"
					    "expires = 2027-06-01\n");
	struct ruleset *to = compile_good(ALLOW "protocol = https\n");
	struct heard h = compare(from, to);

	(void)state;
	assert_int_equal(h.gained, 1);
	assert_int_equal(h.last.since, INT64_C(1811808000));
	assert_int_equal(h.last.reason, REASON_RULE_EXPIRED);
	assert_null(h.last.was);
	rules_unref(from);
	from = compile_good(ALLOW "ports = 443\nprotocol = tcp\n");
	h = compare(to, from);
	assert_int_equal(h.gained, 1);
	assert_string_equal(h.last.was->name, "https");
	assert_string_equal(h.last.is->name, "tcp");
	assert_int_equal(h.last.since, 0);
	rules_unref(from);
	/* The mode of a policy is told by whoever asks. */
	from = compile_good("[policy]\nmode = observe\n" ALLOW
			    "protocol = https\n");
	h = compare(from, to);
	assert_int_equal(h.gained + h.lost, 0);
	assert_true(rules_observe(from));
	rules_unref(from);
	rules_unref(to);
}

static void what_opens_all_is_told_as_all(void **state)
{
	const struct rules_source open[] = {
		{ .name = "p.ini", .text = STR("[policy]\npreset = open\n") },
		{ .name = "preset", .kind = RULES_SOURCE_PRESET, .parent = 1,
		  .text = STR("[allow open]\nhosts = *\nports = *\n"),
		  .line = 2, .word = STR("open") },
	};
	struct ruleset *from = compile_good(""), *to = NULL;
	struct heard h;

	(void)state;
	assert_int_equal(rules_compile(open, 2, NULL, NULL, &to), 0);
	h = compare(from, to);
	assert_true(h.gained > 1);
	assert_int_equal(h.lost, 0);
	/* Of literals last; of names in one. */
	assert_int_equal(h.last.lo.family, IP_V6);
	assert_int_equal(h.last.port_lo, 1);
	assert_int_equal(h.last.port_hi, 65535);
	h = compare(to, from);
	assert_int_equal(h.gained, 0);
	assert_true(h.lost > 1);
	rules_unref(from);
	rules_unref(to);
}

/* --- random policies ------------------------------------------------------------ */

static uint64_t seed;

static unsigned draw(unsigned below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 20) % below;
}

static const char *any(const char *const *words, unsigned n)
{
	return words[draw(n)];
}

#define ANY(words)	any(words, ARRAY_SIZE(words))

static const char *const hosts[] = {
	"a.example.com", "b.example.com", "*.example.com", "*.a.example.com",
	"c.a.example.com",
};
static const char *const ranges[] = {
	"8.8.8.0/24", "8.8.0.0/16", "10.0.0.0/24", "10.0.0.128/25", "8.8.8.8",
};
static const char *const ports[] = { "80", "443", "80-443", "8080", "*" };
static const char *const paths[] = {
	"/x/**", "/*/y", "/x/y", "/**", "/x*", "/*y", "/x/*",
};
static const char *const ends[] = { "2027-02-01", "2027-03-01" };
static const char *const methods[] = { "GET", "PUT" };

static void draw_requests(struct buf *text)
{
	int e = buf_add_str(text, STR("protocol = http\n"));

	if (draw(2))
		e |= buf_printf(text, "methods = %s\n", ANY(methods));
	if (draw(2))
		e |= buf_printf(text, "paths = %s\n", ANY(paths));
	assert_int_equal(e, 0);
}

static void draw_rule(struct buf *text, unsigned number)
{
	bool deny = draw(3) == 0, named = draw(5) > 0, http = draw(3) == 0;
	int e = buf_printf(text, "[%s r%u]\nreason = x\nowner = y\n",
			   deny ? "deny" : "allow", number);

	if (named)
		e |= buf_printf(text, "hosts = %s\n", deny && draw(4) == 0 ?
				"*" : ANY(hosts));
	if (!named || (!http && draw(3) == 0))
		e |= buf_printf(text, "addresses = %s\n", ANY(ranges));
	if (http && named)
		draw_requests(text);
	else if (draw(2))
		e |= buf_printf(text, "ports = %s\n", ANY(ports));
	if (draw(3) == 0)
		e |= buf_printf(text, "expires = %s\n", ANY(ends));
	if (draw(6) == 0)
		e |= buf_add_str(text, STR("mode = observe\n"));
	assert_int_equal(e, 0);
}

/* Until one is taken: rules may contradict each other. */
static struct ruleset *draw_policy(struct buf *text)
{
	struct rules_source source = { .name = "p.ini" };
	struct ruleset *rs = NULL;

	while (!rs) {
		unsigned n = 1 + draw(5);

		buf_reset(text);
		for (unsigned i = 0; i < n; i++)
			draw_rule(text, i);
		source.text = buf_str(text);
		if (rules_compile(&source, 1, NULL, NULL, &rs) < 0)
			rs = NULL;
	}
	return rs;
}

struct question {
	struct rules_request request;
	struct ip_addr addr;
	const char *text;
};

static void draw_question(struct question *q)
{
	static const char *const names[] = {
		"a.example.com", "b.example.com", "c.a.example.com",
		"z.example.com", "z.a.example.com", "",
	};
	static const char *const addrs[] = {
		"8.8.8.8", "8.8.8.9", "8.8.9.9", "10.0.0.1", "10.0.0.200",
		"9.9.9.9", "2600::1",
	};
	static const uint16_t at[] = { 80, 443, 8080, 81, 22 };
	static const char *const targets[] = {
		"/x/y", "/x/z", "/z/y", "/x", "/xy", "/", "/x/z/y", "/q",
	};
	static const char *const said[] = { "GET", "PUT", "POST" };
	static const int64_t when[] = { NOW, 1801526400, 1803859200 };

	*q = (struct question){ .text = ANY(addrs) };
	assert_int_equal(ip_addr_parse(str_from(q->text), &q->addr), 0);
	q->request = (struct rules_request){
		.flow.host = str_from(ANY(names)),
		.flow.port = at[draw(ARRAY_SIZE(at))],
		.flow.now = when[draw(ARRAY_SIZE(when))],
		.method = str_from(ANY(said)),
		.target = str_from(ANY(targets)),
	};
	if (str_empty(q->request.flow.host) || draw(2))
		q->request.flow.addr = &q->addr;
}

/* As the proxy asks: of the flow, and of requests where they are seen. */
static bool goes_on(const struct ruleset *rs, const struct question *q)
{
	struct rules_answer a;

	rules_judge(rs, &q->request.flow, &a);
	if (!rules_passes(&a))
		return false;
	if (a.protocol && a.protocol->speech == SPEECH_HTTP)
		rules_judge_request(rs, &q->request, &a);
	return rules_passes(&a);
}

static void no_difference_is_overlooked(void **state)
{
	struct buf text[2] = { BUF_INIT(1 << 16), BUF_INIT(1 << 16) };
	unsigned differing = 0;

	(void)state;
	for (unsigned i = 1; i <= PAIRS; i++) {
		struct ruleset *rs[2];
		struct heard h;

		seed = i * UINT64_C(0xd1342543de82ef95);
		rs[0] = draw_policy(&text[0]);
		rs[1] = draw_policy(&text[1]);
		h = compare(rs[0], rs[1]);
		for (unsigned k = 0; k < QUESTIONS; k++) {
			struct question q;
			bool was, is;

			draw_question(&q);
			was = goes_on(rs[0], &q);
			is = goes_on(rs[1], &q);
			differing += was != is;
			if (was == is || (is ? h.gained : h.lost) > 0)
				continue;
			fail_msg("%u: untold: %s %s:%u %s (%s %s) at %lld\n%s"
				 "to:\n%s", i, is ? "gained" : "lost",
				 q.request.flow.host.p,
				 (unsigned)q.request.flow.port,
				 q.request.flow.addr ? q.text : "-",
				 q.request.method.p, q.request.target.p,
				 (long long)q.request.flow.now,
				 buf_cstr(&text[0]), buf_cstr(&text[1]));
		}
		rules_unref(rs[0]);
		rules_unref(rs[1]);
	}
	assert_true(differing > PAIRS);
	buf_done(&text[0]);
	buf_done(&text[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_widening_is_told_whatever_makes_it),
		cmocka_unit_test(a_change_says_when_and_how),
		cmocka_unit_test(what_opens_all_is_told_as_all),
		cmocka_unit_test(no_difference_is_overlooked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
