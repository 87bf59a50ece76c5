/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_property_test.c - the matcher against a naive one, on random policies
 *
 * Policies are drawn out of few labels, ports and addresses, so that their
 * rules meet often.  The naive matcher reads the drawn rules, not the text that
 * is made of them, and follows penstock.ini(5) sentence by sentence, in loops
 * over all rules.  Seeds are fixed: a failure names its policy and comes again.
 */
#include <stdlib.h>

#include "tests/unit/rules_kit.h"

#define POLICIES	4000	/* or PENSTOCK_CASES: make stress */
#define NOW		1800000000	/* in 2027 */
#define QUESTIONS	60
#define RULES_DRAWN	8
#define HOSTS_DRAWN	3
#define RANGES_DRAWN	3
#define PORTS_DRAWN	2

struct drawn_host {
	bool any, wild;
	char name[32];
};

struct drawn_range {
	char lo[IP_TEXT_SIZE], hi[IP_TEXT_SIZE];
};

struct drawn_rule {
	bool deny;
	char name[8];
	unsigned n_hosts, n_ranges, n_ports;
	struct drawn_host host[HOSTS_DRAWN];
	struct drawn_range range[RANGES_DRAWN];
	unsigned port[PORTS_DRAWN][2];
	const char *protocol;		/* or NULL */
	bool listed;			/* its hosts are in a list of their own */
	bool observe;
	enum { NEVER, ENDED, ENDS } end;
};

struct drawn {
	bool observe;
	bool revive;			/* as if no allow had ended */
	unsigned n;
	struct drawn_rule rule[RULES_DRAWN];
};

static uint64_t seed;

static unsigned draw(unsigned below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (unsigned)(seed >> 20) % below;
}

static void print(char *out, size_t size, const char *fmt, ...)
	PRINTF(3, 4);
static void print(char *out, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out, size, fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < size);
}

/* --- drawing -------------------------------------------------------------- */

static void draw_name(char out[32], unsigned least)
{
	static const char *const tops[] = { "x", "y" };
	static const char *const labels[] = { "a", "b", "aa" };
	unsigned n = least + draw(4 - least + 1);

	print(out, 32, "%s", tops[draw(2)]);
	for (unsigned i = 1; i < n; i++) {
		char tail[32];

		memcpy(tail, out, sizeof(tail));
		print(out, 32, "%s.%s", labels[draw(3)], tail);
	}
}

static const char *const bases[] = {
	"8.8.8.%u", "10.0.0.%u", "2600::%x", "fd00::%x", "169.254.169.%u",
	"64:ff9b::808:8%02x",
};

static void draw_range(struct drawn_range *r)
{
	unsigned base = draw(ARRAY_SIZE(bases));
	unsigned from = draw(4) ? 250 + draw(5) : 254;
	unsigned to = draw(2) ? from : from + draw(256 - from);

	/* The formats above take one number each. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	print(r->lo, sizeof(r->lo), bases[base], from);
	print(r->hi, sizeof(r->hi), bases[base], to);
#pragma GCC diagnostic pop
}

static void draw_address(char out[IP_TEXT_SIZE])
{
	struct drawn_range r;

	draw_range(&r);
	if (draw(10) == 0 && strchr(r.lo, '.') && !strchr(r.lo, ':'))
		print(out, IP_TEXT_SIZE, "::ffff:%s", r.lo);
	else
		print(out, IP_TEXT_SIZE, "%s", r.lo);
}

static unsigned draw_port(void)
{
	static const unsigned ports[] = { 22, 80, 443, 444, 8080 };

	return ports[draw(ARRAY_SIZE(ports))];
}

static void draw_rule(struct drawn_rule *r, unsigned number)
{
	static const char *const protocols[] = { "https", "http", "ssh" };

	*r = (struct drawn_rule){ .deny = draw(3) == 0 };
	print(r->name, sizeof(r->name), "r%u", number);
	r->n_hosts = draw(4) ? 1 + draw(HOSTS_DRAWN) : 0;
	r->n_ranges = r->n_hosts == 0 || draw(3) == 0 ?
		      1 + draw(RANGES_DRAWN) : 0;
	r->n_ports = draw(2) ? 1 + draw(PORTS_DRAWN) : 0;
	for (unsigned i = 0; i < r->n_hosts; i++) {
		r->host[i].wild = draw(2);
		r->host[i].any = r->deny && draw(8) == 0;
		draw_name(r->host[i].name, 2);
	}
	for (unsigned i = 0; i < r->n_ranges; i++)
		draw_range(&r->range[i]);
	for (unsigned i = 0; i < r->n_ports; i++) {
		unsigned a = draw_port(), b = draw(2) ? a : draw_port();

		r->port[i][0] = MIN(a, b);
		r->port[i][1] = MAX(a, b);
	}
	if (draw(4) == 0 && !(r->deny && r->n_ports > 0))
		r->protocol = protocols[draw(3)];
	else if (draw(6) == 0 && !r->deny && r->n_ports > 0)
		r->protocol = "tcp";
	r->listed = r->n_hosts > 0 && draw(3) == 0;
	r->observe = draw(8) == 0;
	r->end = draw(5) == 0 ? ENDED : draw(5) == 0 ? ENDS : NEVER;
}

static void draw_policy(struct drawn *d)
{
	d->observe = draw(6) == 0;
	d->n = draw(RULES_DRAWN + 1);
	for (unsigned i = 0; i < d->n; i++)
		draw_rule(&d->rule[i], i);
}

static void add(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
static void add(struct buf *b, const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	assert_true(n >= 0 && (size_t)n < sizeof(line));
	assert_int_equal(buf_add(b, line, (size_t)n), 0);
}

/* A policy and its lists of hosts, as sources. */
struct written {
	struct buf text[1 + RULES_DRAWN];
	char word[1 + RULES_DRAWN][12];
	struct rules_source source[1 + RULES_DRAWN];
	size_t n;
};

static uint32_t lines_in(const struct buf *b)
{
	struct str rest = buf_str(b), line;
	uint32_t n = 0;

	while (str_cut(&rest, '\n', &line))
		n++;
	return n;
}

static void write_hosts(const struct drawn_rule *r, const char *before,
			struct buf *b)
{
	for (unsigned k = 0; k < r->n_hosts; k++) {
		if (r->host[k].any)
			add(b, "%s*\n", before);
		else
			add(b, "%s%s%s\n", before, r->host[k].wild ? "*." : "",
			    r->host[k].name);
	}
}

static void write_list(const struct drawn_rule *r, struct written *w)
{
	size_t i = w->n++;

	print(w->word[i], sizeof(w->word[i]), "@%s", r->name);
	add(&w->text[0], "hosts = %s\n", w->word[i]);
	w->text[i] = (struct buf)BUF_INIT(1 << 16);
	add(&w->text[i], "# of %s\n\n", r->name);
	write_hosts(r, "", &w->text[i]);
	w->source[i] = (struct rules_source){
		.name = r->name, .text = buf_str(&w->text[i]),
		.kind = RULES_SOURCE_HOSTS, .parent = 1,
		.line = lines_in(&w->text[0]), .word = str_from(w->word[i]),
	};
}

static void write_rule(const struct drawn_rule *r, struct written *w)
{
	struct buf *b = &w->text[0];

	add(b, "[%s %s]\nreason = x\n", r->deny ? "deny" : "allow", r->name);
	if (r->listed)
		write_list(r, w);
	else
		write_hosts(r, "hosts = ", b);
	for (unsigned k = 0; k < r->n_ranges; k++)
		add(b, "addresses = %s-%s\n", r->range[k].lo, r->range[k].hi);
	for (unsigned k = 0; k < r->n_ports; k++)
		add(b, "ports = %u-%u\n", r->port[k][0], r->port[k][1]);
	if (r->protocol)
		add(b, "protocol = %s\n", r->protocol);
	if (r->observe)
		add(b, "mode = observe\n");
	if (r->end != NEVER)
		add(b, "expires = %s-01-01T00:00:00Z\n",
		    r->end == ENDED ? "2020" : "2040");
}

static void write_policy(const struct drawn *d, struct written *w)
{
	*w = (struct written){ .n = 1 };
	w->text[0] = (struct buf)BUF_INIT(1 << 16);
	if (d->observe)
		add(&w->text[0], "[policy]\nmode = observe\n");
	for (unsigned i = 0; i < d->n; i++)
		write_rule(&d->rule[i], w);
	w->source[0].name = "drawn";
	w->source[0].text = buf_str(&w->text[0]);
}

static void written_done(struct written *w)
{
	for (size_t i = 0; i < w->n; i++)
		buf_done(&w->text[i]);
}

/* --- the naive matcher ---------------------------------------------------- */

/* Specificity of the host: 1000 for the name itself, labels of a wildcard, 0
 * for "*"; -1 when the rule does not speak of it. */
static int naive_host(const struct drawn_rule *r, const char *host)
{
	size_t n = strlen(host);
	int best = -1;

	for (unsigned i = 0; i < r->n_hosts; i++) {
		const struct drawn_host *h = &r->host[i];
		size_t k = strlen(h->name);
		int score = -1, labels = 1;

		for (const char *p = h->name; *p; p++)
			labels += *p == '.';
		if (h->any)
			score = 0;
		else if (!h->wild && strcmp(h->name, host) == 0)
			score = 1000;
		else if (h->wild && n > k && host[n - k - 1] == '.' &&
			 strcmp(host + n - k, h->name) == 0)
			score = labels;
		best = MAX(best, score);
	}
	return best;
}

static bool naive_port(const struct drawn_rule *r, unsigned port)
{
	for (unsigned i = 0; i < r->n_ports; i++) {
		if (port >= r->port[i][0] && port <= r->port[i][1])
			return true;
	}
	if (r->n_ports > 0)
		return false;
	if (r->protocol)
		return rules_protocol_by_name(str_from(r->protocol))->port ==
		       port;
	return r->deny || port == 80 || port == 443;
}

static struct ip_addr address(const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(str_from(text), &a), 0);
	return ip_addr_unmapped(&a);
}

static bool naive_in_one(const struct drawn_rule *r, const struct ip_addr *a,
			 bool exact)
{
	for (unsigned i = 0; i < r->n_ranges; i++) {
		struct ip_addr lo = address(r->range[i].lo);
		struct ip_addr hi = address(r->range[i].hi);

		if (lo.family == a->family && ip_addr_cmp(&lo, a) <= 0 &&
		    ip_addr_cmp(a, &hi) <= 0 &&
		    (!exact || ip_addr_eq(&lo, &hi)))
			return true;
	}
	return false;
}

static bool naive_range(const struct drawn_rule *r, const struct ip_addr *a,
			bool exact)
{
	static const struct ip_addr nat64 = {
		.family = IP_V6, .b = { 0, 0x64, 0xff, 0x9b },
	};

	if (naive_in_one(r, a, exact))
		return true;
	if (a->family == IP_V6 && memcmp(a->b, nat64.b, 12) == 0) {
		struct ip_addr inside = { .family = IP_V4 };

		memcpy(inside.b, a->b + 12, 4);
		return naive_in_one(r, &inside, exact);
	}
	return false;
}

struct naive {
	enum reason reason;
	bool would_deny;
	/* The rules that may be named, as bits; 0: none. */
	unsigned rules;
};

static bool naive_lets(const struct drawn_rule *r, const struct ip_addr *a,
		       enum ip_class class)
{
	if (r->n_ranges == 0)
		return class == IP_PUBLIC;
	return naive_range(r, a, class == IP_METADATA);
}

static bool naive_holds(const struct drawn *d, const struct drawn_rule *r)
{
	return r->end != ENDED || (d->revive && !r->deny);
}

/* Of the allow rules that match, those of the highest rank. */
static unsigned naive_best(const struct drawn *d, const char *host,
			   unsigned port, const struct ip_addr *a,
			   enum ip_class class)
{
	unsigned best = 0;
	int best_rank = -1;

	for (unsigned i = 0; i < d->n; i++) {
		const struct drawn_rule *r = &d->rule[i];
		int rank = host ? naive_host(r, host) : 0;

		if (r->deny || rank < 0 || !naive_port(r, port) ||
		    !naive_holds(d, r) ||
		    (!host && r->n_hosts > 0) ||
		    (a && !naive_lets(r, a, class)))
			continue;
		/* Which range is narrowest is not looked at here. */
		rank = host ? 2 * rank + (r->n_ports > 0) : 0;
		if (rank > best_rank) {
			best_rank = rank;
			best = 0;
		}
		/* Within a rank the first counts; among literals any. */
		if (rank == best_rank && (best == 0 || !host))
			best |= BIT(i);
	}
	return best;
}

static bool naive_named(const struct drawn *d, const char *host,
			const struct ip_addr *a)
{
	for (unsigned i = 0; i < d->n; i++) {
		const struct drawn_rule *r = &d->rule[i];

		if (r->deny || !naive_holds(d, r))
			continue;
		if (host ? naive_host(r, host) >= 0 :
			   r->n_hosts == 0 && naive_range(r, a, false))
			return true;
	}
	return false;
}

/* Deny rules that match; @with_ranges: because of the address. */
static unsigned naive_denies(const struct drawn *d, const char *host,
			     unsigned port, const struct ip_addr *a,
			     bool with_ranges)
{
	unsigned found = 0;

	for (unsigned i = 0; i < d->n; i++) {
		const struct drawn_rule *r = &d->rule[i];

		if (!r->deny || !naive_port(r, port) || !naive_holds(d, r) ||
		    r->observe ||
		    with_ranges != (r->n_ranges > 0))
			continue;
		if (r->n_hosts > 0 && naive_host(r, host ? host : "") < 0)
			continue;
		if (with_ranges && !(a && naive_range(r, a, false)))
			continue;
		found |= BIT(i);
	}
	return found;
}

static struct naive naive_rules(const struct drawn *d, const char *host,
				unsigned port, const struct ip_addr *a)
{
	enum ip_class class = a ? ip_classify(a) : IP_PUBLIC;
	unsigned by_host = naive_denies(d, host, port, a, false);
	unsigned by_addr = naive_denies(d, host, port, a, true);
	/* As if the address were of no class: of a name any, else a range's. */
	unsigned can = naive_best(d, host, port, host ? NULL : a, IP_PUBLIC);
	unsigned may = a ? naive_best(d, host, port, a, class) : can;
	enum reason by_class = class == IP_PUBLIC ? REASON_ADDRESS_NOT_ALLOWED :
						    ip_class_reason(class);
	struct naive v = { .reason = REASON_ALLOWED, .rules = may };

	if (host && by_host)
		v = (struct naive){ REASON_HOST_DENIED, false, by_host };
	else if (by_addr || by_host)
		v = (struct naive){ REASON_ADDRESS_DENIED, false,
				    by_addr ? by_addr : by_host };
	else if (host && !naive_named(d, host, NULL))
		v = (struct naive){ REASON_HOST_NOT_ALLOWED, false, 0 };
	else if (host && !can)
		v = (struct naive){ REASON_PORT_NOT_ALLOWED, false, 0 };
	else if (!may && host)
		v = (struct naive){ by_class, false, can };
	else if (!may && class == IP_PUBLIC && naive_named(d, NULL, a))
		v = (struct naive){ REASON_PORT_NOT_ALLOWED, false, 0 };
	else if (!may)
		v = (struct naive){ by_class, false, can };
	return v;
}

/* Allow rules that have ended and would take the name and port. */
static unsigned naive_ended(const struct drawn *d, const char *host,
			    unsigned port)
{
	unsigned found = 0;

	for (unsigned i = 0; i < d->n; i++) {
		const struct drawn_rule *r = &d->rule[i];

		if (!r->deny && r->end == ENDED && naive_port(r, port) &&
		    (host ? naive_host(r, host) >= 0 : r->n_hosts == 0))
			found |= BIT(i);
	}
	return found;
}

/* Says of a refusal that only the end of a rule stands in the way. */
static struct naive naive_end(const struct drawn *d, const char *host,
			      unsigned port, const struct ip_addr *a)
{
	struct naive v = naive_rules(d, host, port, a);
	struct drawn all = *d;

	all.revive = true;
	if (v.reason == REASON_ALLOWED || v.reason == REASON_HOST_DENIED ||
	    v.reason == REASON_ADDRESS_DENIED)
		return v;
	if (naive_rules(&all, host, port, a).reason == REASON_ALLOWED ||
	    (host && !naive_named(d, host, NULL) &&
	     naive_ended(d, host, port)))
		return (struct naive){ REASON_RULE_EXPIRED, false,
				       naive_ended(d, host, port) };
	return v;
}

/* A deny that only observes, the one that is met first. */
static struct naive naive_watched(const struct drawn *d, const char *host,
				  unsigned port, const struct ip_addr *a)
{
	struct naive v = { REASON_ALLOWED, true, 0 };
	int best = -1;

	for (unsigned i = 0; i < d->n; i++) {
		const struct drawn_rule *r = &d->rule[i];
		int rank = r->n_hosts > 0 ? naive_host(r, host ? host : "") : -1;

		if (!r->deny || !r->observe || !naive_port(r, port) ||
		    !naive_holds(d, r) || (r->n_hosts > 0 && rank < 0) ||
		    (r->n_ranges > 0 && !(a && naive_range(r, a, false))))
			continue;
		/* Those of addresses alone come last, and in no order. */
		if (rank == -1 && best == -1)
			v.rules |= BIT(i);
		else if (rank > best)
			v.rules = BIT(i);
		else
			continue;
		best = MAX(best, rank);
		v.reason = r->n_ranges > 0 ? REASON_ADDRESS_DENIED :
					     REASON_HOST_DENIED;
	}
	return v;
}

/* Allow rules that only observe, and would take it but for its port. */
static unsigned naive_lenient(const struct drawn *d, const char *host,
			      const struct ip_addr *a, enum ip_class class)
{
	unsigned found = 0;

	for (unsigned i = 0; i < d->n; i++) {
		const struct drawn_rule *r = &d->rule[i];

		if (!r->deny && r->observe && naive_holds(d, r) &&
		    (host ? naive_host(r, host) >= 0 : r->n_hosts == 0) &&
		    (!a || naive_lets(r, a, class)))
			found |= BIT(i);
	}
	return found;
}

static struct naive naive_judge(const struct drawn *d, const char *host,
				unsigned port, const struct ip_addr *a)
{
	enum ip_class class = a ? ip_classify(a) : IP_PUBLIC;
	unsigned by_addr = naive_denies(d, host, port, a, true);
	unsigned can = naive_best(d, host, port, host ? NULL : a, IP_PUBLIC);
	unsigned lenient = naive_lenient(d, host, a, class);
	struct naive v = naive_end(d, host, port, a), watched;

	if (v.reason == REASON_ALLOWED) {
		watched = naive_watched(d, host, port, a);
		return watched.reason == REASON_ALLOWED ? v : watched;
	}
	if (v.reason == REASON_PORT_NOT_ALLOWED && lenient)
		return (struct naive){ v.reason, true, lenient };
	if (!d->observe)
		return v;
	if (by_addr)
		return (struct naive){ REASON_ADDRESS_DENIED, false, by_addr };
	if (a && class != IP_PUBLIC && !naive_best(d, host, port, a, class))
		return (struct naive){ ip_class_reason(class), false, can };
	v.would_deny = true;
	return v;
}

/* --- comparing ------------------------------------------------------------ */

static struct rules_answer ask_now(const struct ruleset *rs, const char *host,
				   unsigned port, const struct ip_addr *addr)
{
	struct rules_question q = {
		.host = str_from(host), .addr = addr, .port = (uint16_t)port,
		.now = NOW,
	};
	struct rules_answer a;

	rules_judge(rs, &q, &a);
	return a;
}

static void compare(const struct drawn *d, const struct ruleset *rs,
		    struct buf *text)
{
	char host[32], addr_text[IP_TEXT_SIZE];
	bool literal = draw(4) == 0, resolved = literal || draw(2);
	unsigned port = draw_port(), named = 0;
	struct ip_addr a = { 0 };
	struct rules_answer got;
	struct naive want;

	draw_name(host, 1);
	draw_address(addr_text);
	a = address(addr_text);
	got = ask_now(rs, literal ? NULL : host, port, resolved ? &a : NULL);
	want = naive_judge(d, literal ? NULL : host, port,
			   resolved ? &a : NULL);
	for (unsigned i = 0; got.rule && i < d->n; i++) {
		if (strcmp(d->rule[i].name, got.rule) == 0)
			named = BIT(i);
	}
	if (got.reason != want.reason || got.would_deny != want.would_deny ||
	    (want.rules ? !(named & want.rules) : got.rule != NULL))
		fail_msg("%s port %u at %s: got %s by %s, wanted %s by %#x, "
			 "in:\n%s",
			 literal ? "-" : host, port,
			 resolved ? addr_text : "?", reason_word(got.reason),
			 got.rule ? got.rule : "none", reason_word(want.reason),
			 want.rules, buf_cstr(text));
}

/* A name is allowed when it is on some port, looked for one by one. */
static void compare_name(const struct drawn *d, const struct ruleset *rs,
			 struct buf *text)
{
	/* The ends of all ranges that are drawn, and their neighbours. */
	static const unsigned ports[] = {
		1, 21, 22, 23, 79, 80, 81, 442, 443, 444, 445, 8079, 8080, 8081,
		65535,
	};
	enum rules_name_verdict got;
	struct rules_answer a;
	bool open = false;
	char host[32];

	draw_name(host, 1);
	for (size_t i = 0; i < ARRAY_SIZE(ports); i++) {
		struct naive end = naive_end(d, host, ports[i], NULL);

		/* What an allow only observes goes on, and needs its name. */
		open |= end.reason == REASON_ALLOWED ||
			(end.reason == REASON_PORT_NOT_ALLOWED &&
			 naive_lenient(d, host, NULL, IP_PUBLIC));
	}
	got = rules_judge_name(rs, str_from(host), NOW, &a);
	if ((got == RULES_NAME_ALLOWED) != (open || d->observe) ||
	    (a.reason == REASON_ALLOWED) != open)
		fail_msg("name %s: got %d, %s, in:\n%s", host, got,
			 reason_word(a.reason), buf_cstr(text));
}

static unsigned policies(void)
{
	const char *text = getenv("PENSTOCK_CASES");
	unsigned long n = POLICIES;

	assert_false(text && str_to_uint(str_from(text), 10000000, &n));
	return (unsigned)n;
}

static void the_matcher_agrees_with_a_naive_one(void **state)
{
	unsigned compiled = 0, allowed = 0, wanted = policies();

	(void)state;
	for (unsigned i = 1; i <= wanted; i++) {
		struct ruleset *rs = NULL;
		struct drawn d = { 0 };
		struct written w;

		seed = i * UINT64_C(0x9e3779b97f4a7c15);
		draw_policy(&d);
		write_policy(&d, &w);
		/* Refused: two protocols would hang on an address. */
		if (rules_compile(w.source, w.n, NULL, NULL, &rs) == 0) {
			compiled++;
			for (unsigned q = 0; q < QUESTIONS; q++) {
				compare(&d, rs, &w.text[0]);
				compare_name(&d, rs, &w.text[0]);
			}
			allowed += ask_now(rs, "a.x", 443, NULL).reason ==
				   REASON_ALLOWED;
		}
		rules_unref(rs);
		written_done(&w);
	}
	/* Or nothing was compared at all. */
	assert_true(compiled > wanted / 2);
	assert_true(allowed > wanted / 50);
}

/* What is drawn by no rule is refused: the order of rules gives nothing. */
static void the_order_of_rules_permits_nothing(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 500; i++) {
		struct ruleset *a = NULL, *b = NULL;
		struct drawn d = { 0 }, turned;
		struct written forth, back;

		seed = i * UINT64_C(0xd1342543de82ef95);
		draw_policy(&d);
		turned = d;
		for (unsigned k = 0; k < d.n; k++)
			turned.rule[k] = d.rule[d.n - 1 - k];
		write_policy(&d, &forth);
		write_policy(&turned, &back);
		assert_int_equal(
			rules_compile(forth.source, forth.n, NULL, NULL, &a),
			rules_compile(back.source, back.n, NULL, NULL, &b));
		for (unsigned q = 0; a && q < QUESTIONS; q++) {
			char host[32], addr[IP_TEXT_SIZE];
			const char *name = draw(4) ? host : NULL;
			unsigned port = draw_port();
			struct ip_addr at;

			draw_name(host, 1);
			draw_address(addr);
			at = address(addr);
			assert_int_equal(ask_now(a, name, port, &at).reason,
					 ask_now(b, name, port, &at).reason);
		}
		rules_unref(a);
		rules_unref(b);
		written_done(&forth);
		written_done(&back);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_matcher_agrees_with_a_naive_one),
		cmocka_unit_test(the_order_of_rules_permits_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
