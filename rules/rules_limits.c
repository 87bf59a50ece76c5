/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_limits.c - [limits]: what a run may use, as numbers, and what is more
 *
 * One table has every key, where its number is kept and how it is written, so
 * that what can be said can also be shown and compared.  A number that is
 * larger than its field counts as the largest that there is: a limit never
 * becomes smaller than it was meant by turning around.
 */
#include <stdio.h>

#include "base/buf.h"
#include "rules/rules_ast.h"
#include "rules/rules_diff.h"
#include "rules/ruleset.h"

/* What a number may be in a text, before a letter behind it. */
#define NUMBER_MAX	1000000000

enum unit { UNIT_COUNT, UNIT_BYTES, UNIT_SPAN };

static const struct limit {
	const char *key;
	enum unit unit;
	bool wide;			/* a uint64_t, else a uint32_t */
	size_t offset;			/* into struct rules_limits */
	uint64_t otherwise;		/* where nothing is said; 0: any number */
	uint64_t most;			/* that counts; 0: there is none */
} limits[] = {
#define HOLDS(key, unit, field, otherwise, most) \
	{ key, unit, false, offsetof(struct rules_limits, field), otherwise, \
	  most }
#define NARROW(key, unit, field)	HOLDS(key, unit, field, 0, 0)
#define WIDE(key, field) \
	{ key, UNIT_BYTES, true, offsetof(struct rules_limits, field), 0, 0 }
	HOLDS("connections", UNIT_COUNT, connections,
	      RULES_LIMIT_CONNECTIONS, 0),
	NARROW("new_connections", UNIT_COUNT, new_connections),
	HOLDS("queries", UNIT_COUNT, queries, RULES_LIMIT_QUERIES, 0),
	HOLDS("names", UNIT_COUNT, names, RULES_LIMIT_NAMES,
	      RULES_LIMIT_NAMES_MAX),
	HOLDS("label_bytes", UNIT_BYTES, label_bytes,
	      RULES_LIMIT_LABEL_BYTES, 0),
	HOLDS("nxdomain", UNIT_COUNT, nxdomain, RULES_LIMIT_NXDOMAIN, 0),
	WIDE("bytes_up", bytes.up),
	WIDE("bytes_down", bytes.down),
	WIDE("flow_bytes_up", flow_bytes.up),
	WIDE("flow_bytes_down", flow_bytes.down),
	WIDE("rate_up", rate.up),
	WIDE("rate_down", rate.down),
	{ "memory", UNIT_BYTES, true, offsetof(struct rules_limits, memory),
	  RULES_LIMIT_MEMORY, 0 },
	HOLDS("header_bytes", UNIT_BYTES, header_bytes,
	      RULES_LIMIT_HEADER_BYTES, RULES_LIMIT_HEADER_BYTES),
	HOLDS("header_time", UNIT_SPAN, header_s, RULES_LIMIT_HEADER_S,
	      0),
	HOLDS("connect_time", UNIT_SPAN, connect_s,
	      RULES_LIMIT_CONNECT_S, 0),
	NARROW("response_time", UNIT_SPAN, response_s),
	NARROW("idle_time", UNIT_SPAN, times.idle_s),
	NARROW("flow_time", UNIT_SPAN, times.flow_s),
#undef HOLDS
#undef NARROW
#undef WIDE
};

const struct rules_limits *rules_limits(const struct ruleset *rs)
{
	return &rs->limits;
}

struct rules_bytes rules_rule_bytes(const struct ruleset *rs, size_t number)
{
	REQUIRE(number <= rs->n_rules);
	return number ? rs->rule[number - 1].bytes :
			(struct rules_bytes){ 0 };
}

/* 0 is any length. */
static uint32_t shorter(uint32_t a, uint32_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

static struct rules_times times_of(const struct ruleset *rs,
				   const struct rule *r)
{
	const struct rules_times *all = &rs->limits.times;

	return (struct rules_times){
		.idle_s = shorter(r->times.idle_s, all->idle_s),
		.flow_s = shorter(r->times.flow_s, all->flow_s),
	};
}

struct rules_times rules_times(const struct ruleset *rs, size_t number)
{
	REQUIRE(number <= rs->n_rules);
	return number ? times_of(rs, &rs->rule[number - 1]) :
			rs->limits.times;
}

/* --- reading ---------------------------------------------------------------- */

uint64_t rules_bytes_parse(struct str word)
{
	unsigned shift = 0;
	unsigned long n;
	char last = word.n > 1 ? word.p[word.n - 1] : '0';

	if (last == 'K' || last == 'M' || last == 'G') {
		shift = last == 'K' ? 10 : last == 'M' ? 20 : 30;
		word.n--;
	}
	return str_to_uint(word, NUMBER_MAX, &n) == 0 ?
		       (uint64_t)n << shift : 0;
}

uint32_t rules_span_parse(struct str word)
{
	static const struct {
		char letter;
		uint32_t seconds;
	} units[] = {
		{ 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 },
	};
	unsigned long n;

	if (word.n < 2 ||
	    str_to_uint(str_make(word.p, word.n - 1), NUMBER_MAX, &n) < 0)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (word.p[word.n - 1] == units[i].letter)
			return (uint32_t)MIN((uint64_t)n * units[i].seconds,
					     RULES_SPAN_MAX_S);
	}
	return 0;
}

static uint64_t number_at(const void *where, size_t offset, bool wide)
{
	const void *at = (const char *)where + offset;

	return wide ? *(const uint64_t *)at : *(const uint32_t *)at;
}

static uint64_t get(const struct rules_limits *l, const struct limit *k)
{
	return number_at(l, k->offset, k->wide);
}

static void put(struct rules_limits *l, const struct limit *k, uint64_t value)
{
	char *at = (char *)l + k->offset;

	if (k->wide)
		*(uint64_t *)(void *)at = value;
	else
		*(uint32_t *)(void *)at = (uint32_t)MIN(value, UINT32_MAX);
}

void rules_limits_take(struct rules_limits *l, const char *key,
		       struct str value)
{
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		if (strcmp(limits[i].key, key) != 0)
			continue;
		put(l, &limits[i], limits[i].unit == UNIT_SPAN ?
		    rules_span_parse(value) : rules_bytes_parse(value));
	}
}

/* --- showing ---------------------------------------------------------------- */

/* As it can be read again: the largest letter that holds it exactly. */
static void bytes_text(uint64_t n, char out[RULES_LIMIT_TEXT])
{
	static const char letters[] = { '\0', 'K', 'M', 'G' };
	unsigned i = 0;
	int len;

	/* What a field holds at most stands for all that is more. */
	if (n == UINT32_MAX)
		n++;
	while (n > 0 && n % 1024 == 0 && i + 1 < ARRAY_SIZE(letters)) {
		n >>= 10;
		i++;
	}
	len = snprintf(out, RULES_LIMIT_TEXT, "%llu%.1s",
		       (unsigned long long)n, &letters[i]);
	REQUIRE(len > 0 && len < RULES_LIMIT_TEXT);
}

static void number_text(enum unit unit, uint64_t value,
			char out[RULES_LIMIT_TEXT])
{
	int len;

	if (unit == UNIT_BYTES) {
		bytes_text(value, out);
		return;
	}
	len = snprintf(out, RULES_LIMIT_TEXT, "%llu%s",
		       (unsigned long long)value,
		       unit == UNIT_SPAN ? "s" : "");
	REQUIRE(len > 0 && len < RULES_LIMIT_TEXT);
}

int rules_limits_show(const struct rules_limits *l, struct buf *out)
{
	char text[RULES_LIMIT_TEXT];
	bool begun = false;
	int e = 0;

	for (size_t i = 0; i < ARRAY_SIZE(limits) && !e; i++) {
		uint64_t value = get(l, &limits[i]);

		if (value == 0)
			continue;
		number_text(limits[i].unit, value, text);
		e = buf_printf(out, "%s%s = %s\n", begun ? "" : "\n[limits]\n",
			       limits[i].key, text);
		begun = true;
	}
	return e;
}

/* What an allow rule can have of its own. */
static const struct rule_limit {
	const char *key;
	enum unit unit;
	bool wide;			/* a uint64_t, else a uint32_t */
	size_t offset;			/* into struct rule */
} rule_limits[] = {
	{ "bytes_up", UNIT_BYTES, true, offsetof(struct rule, bytes.up) },
	{ "bytes_down", UNIT_BYTES, true, offsetof(struct rule, bytes.down) },
	{ "idle_time", UNIT_SPAN, false, offsetof(struct rule, times.idle_s) },
	{ "flow_time", UNIT_SPAN, false, offsetof(struct rule, times.flow_s) },
};

int rules_rule_limits_show(const struct rule *r, struct buf *out)
{
	char text[RULES_LIMIT_TEXT];
	int e = 0;

	for (size_t i = 0; i < ARRAY_SIZE(rule_limits) && !e; i++) {
		const struct rule_limit *k = &rule_limits[i];
		uint64_t value = number_at(r, k->offset, k->wide);

		if (value == 0)
			continue;
		number_text(k->unit, value, text);
		e = buf_printf(out, "%-10s = %s\n", k->key, text);
	}
	return e;
}

/* --- comparing -------------------------------------------------------------- */

const char *rules_direction_word(enum rules_direction d)
{
	static const char *const words[] = {
		[RULES_OTHER] = "other", [RULES_WIDER] = "wider",
		[RULES_NARROWER] = "narrower",
	};
	_Static_assert(ARRAY_SIZE(words) == RULES_DIRECTIONS, "name each");

	return words[d];
}

/* What holds in effect. */
static uint64_t in_force(const struct limit *k, uint64_t said)
{
	if (said == 0)
		return k->otherwise ? k->otherwise : UINT64_MAX;
	return k->most ? MIN(said, k->most) : said;
}

static enum rules_direction way_of(uint64_t was, uint64_t is)
{
	return is > was ? RULES_WIDER : is < was ? RULES_NARROWER :
	       RULES_OTHER;
}

static enum rules_direction direction_of(const struct limit *k,
					 const uint64_t value[2])
{
	uint64_t was = in_force(k, value[0]), is = in_force(k, value[1]);

	/* Unsaid, only some questions count, and many may come at once. */
	if (strcmp(k->key, "queries") == 0 && value[0] == 0)
		return is <= was ? RULES_NARROWER : RULES_OTHER;
	if (strcmp(k->key, "queries") == 0 && value[1] == 0)
		return was <= is ? RULES_WIDER : RULES_OTHER;
	return way_of(was, is);
}

static bool tell_change(struct rules_limit_change *c, enum unit unit,
			const uint64_t value[2], rules_limit_fn *fn, void *arg)
{
	char was[RULES_LIMIT_TEXT], is[RULES_LIMIT_TEXT];

	if (value[0] == value[1])
		return true;
	number_text(unit, value[0], was);
	number_text(unit, value[1], is);
	c->was = value[0] ? was : NULL;
	c->is = value[1] ? is : NULL;
	return fn(arg, c);
}

/* Where @rs has a shorter time for all, that is what holds. */
static uint64_t rule_in_force(const struct ruleset *rs, const struct rule *r,
			      const struct rule_limit *k)
{
	const struct rule held = {
		.bytes = r->bytes, .times = times_of(rs, r),
	};
	uint64_t value = number_at(&held, k->offset, k->wide);

	return value ? value : UINT64_MAX;
}

/* Each key by itself, so both under the limits of @to. */
static bool tell_rule(const struct ruleset *to, const struct rule *was,
		      const struct rule *is, rules_limit_fn *fn, void *arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(rule_limits); i++) {
		const struct rule_limit *k = &rule_limits[i];
		const uint64_t value[] = {
			number_at(was, k->offset, k->wide),
			number_at(is, k->offset, k->wide),
		};
		struct rules_limit_change c = {
			.rule = is->name, .key = k->key,
			.direction = way_of(rule_in_force(to, was, k),
					    rule_in_force(to, is, k)),
		};

		if (!tell_change(&c, k->unit, value, fn, arg))
			return false;
	}
	return true;
}

/* One key of [dns], whose values are numbers of @word. */
struct word_change {
	const char *key;
	const char *const *word;
	unsigned was, is;
	bool sized;			/* from the narrowest to the widest */
};

static bool tell_word(const struct word_change *w, rules_limit_fn *fn,
		      void *arg)
{
	const struct rules_limit_change c = {
		.section = "dns", .key = w->key, .was = w->word[w->was],
		.is = w->word[w->is],
		.direction = !w->sized ? RULES_OTHER :
			     w->is > w->was ? RULES_WIDER : RULES_NARROWER,
	};

	return w->was == w->is || fn(arg, &c);
}

static bool tell_dns(const struct rules_dns *was, const struct rules_dns *is,
		     rules_limit_fn *fn, void *arg)
{
	static const char *const answers[] = {
		[RULES_ANSWERS_SYNTHETIC] = "synthetic",
		[RULES_ANSWERS_REAL] = "real",
	};
	/* From none to all. */
	static const char *const ipv6[] = { "off", "auto", "on" };
	static const unsigned much[] = {
		[RULES_IPV6_OFF] = 0, [RULES_IPV6_AUTO] = 1,
		[RULES_IPV6_ON] = 2,
	};
	static const char *const denied[] = { "nxdomain", "refused" };
	const struct word_change changes[] = {
		{ "answers", answers, was->answers, is->answers, false },
		{ "ipv6", ipv6, much[was->ipv6], much[is->ipv6], true },
		{ "denied", denied, was->refused, is->refused, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		if (!tell_word(&changes[i], fn, arg))
			return false;
	}
	return true;
}

bool rules_diff_limits(const struct ruleset *from, const struct ruleset *to,
		       rules_limit_fn *fn, void *arg)
{
	size_t was;

	if (!tell_dns(&from->dns, &to->dns, fn, arg))
		return false;

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		const uint64_t value[] = { get(&from->limits, &limits[i]),
					   get(&to->limits, &limits[i]) };
		struct rules_limit_change c = {
			.section = "limits", .key = limits[i].key,
			.direction = direction_of(&limits[i], value),
		};

		if (!tell_change(&c, limits[i].unit, value, fn, arg))
			return false;
	}
	for (size_t i = 0; i < to->n_rules; i++) {
		const struct rule *r = &to->rule[i];

		was = r->deny ? 0 :
		      rules_rule_find(from, false, str_from(r->name));
		if (was && !tell_rule(to, &from->rule[was - 1], r, fn, arg))
			return false;
	}
	return true;
}
