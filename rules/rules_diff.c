/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_diff.c - what one policy permits and another does not
 *
 * Theory of operation
 * ===================
 *
 * A verdict can only change where some rule of either set begins or ends: at a
 * host pattern, at the ends of a span of ports, at the ends of a range of
 * addresses or of an address class.  Between two such cuts all points are
 * judged alike, so one of them stands for all.  A wildcard is tried with a
 * name below it that no pattern has.  Of each host, what differs by name and
 * port is told first; where that agrees, addresses and requests are tried.
 *
 * What is compared is what goes on, whether it is allowed or only observed, and
 * what is demanded of its first bytes.  It is asked for now and for each time
 * at which a rule that speaks of the host ends: the first difference is told.
 */
#include "rules/rules_diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rules/rules_cuts.h"
#include "rules/rules_samples.h"
#include "rules/ruleset.h"

/* Nobody's label: 27 bytes, so that no list has it by chance. */
#define NAMES_MAX	(1u << 30)	/* bytes of the names of hosts */
#define ANY_LABEL	"any-name-that-no-rule-names."

struct pattern {
	struct str name;
	bool wild;		/* with no name: all that no pattern has */
};

enum { GAINED = 1, LOST = 2, WAY = 4 };
struct diff {
	const struct ruleset *set[2];	/* from, to */
	struct ruleset enforcing[2];	/* what they are, but for [policy] mode */
	int64_t now;
	rules_change_fn *fn;
	void *arg;
	bool stopped;
	struct arena *names;
	struct pattern *pattern;
	size_t n_patterns, max_patterns;
	struct cuts cuts;		/* of the host at hand */
	bool *told;			/* by port: differs by name already */
	struct str *method, *path;	/* that requests are tried with */
	size_t n_methods, n_paths;
	/* Of the host at hand: when to ask, and do its rules say more? */
	int64_t *time;
	size_t n_times, max_times;
	int64_t *common_time;		/* of every host, now among them */
	size_t n_common_times;
	unsigned wanted;		/* GAINED, LOST, WAY */
	bool ranged, limited;
	struct rules_change open;	/* a change that may go on */
	bool is_open;
};

/* --- patterns ----------------------------------------------------------------- */

static int by_pattern(const void *a, const void *b)
{
	const struct pattern *x = a, *y = b;
	int c = str_cmp(x->name, y->name);

	return c ? c : (int)x->wild - (int)y->wild;
}

static int by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int add_pattern(void *arg, size_t rule, enum host_pattern_kind kind,
		       struct str name)
{
	struct diff *d = arg;
	struct pattern *p = d->pattern;

	(void)rule;
	if (d->n_patterns == d->max_patterns) {
		size_t max = d->max_patterns ? 2 * d->max_patterns : 64;

		p = mem_grow(p, max, sizeof(*p));
		if (!p)
			return -ENOMEM;
		d->pattern = p;
		d->max_patterns = max;
	}
	name = arena_str(d->names, name);
	if (!name.p)
		return -ENOMEM;
	p[d->n_patterns++] = (struct pattern){
		.name = name,
		.wild = kind != HOST_EXACT,
	};
	return 0;
}

static int collect_patterns(struct diff *d)
{
	size_t kept = 0;

	for (unsigned s = 0; s < 2; s++) {
		int e = ruleset_each_host(d->set[s], add_pattern, d);

		if (e)
			return e;
	}
	if (d->n_patterns > 0)
		qsort(d->pattern, d->n_patterns, sizeof(*d->pattern),
		      by_pattern);
	for (size_t i = 0; i < d->n_patterns; i++) {
		const struct pattern p = d->pattern[i];

		if (kept == 0 || by_pattern(&d->pattern[kept - 1], &p) != 0)
			d->pattern[kept++] = p;
	}
	d->n_patterns = kept;
	return 0;
}

/* --- judging -------------------------------------------------------------------- */

static void tell(struct diff *d)
{
	if (d->is_open && !d->stopped && !d->fn(d->arg, &d->open))
		d->stopped = true;
	d->is_open = false;
}

static const char *parent_of(const struct rules_answer *a)
{
	return a->parent ? a->parent : "";
}

static bool goes_on(const struct rules_change *a, const struct rules_change *b)
{
	return a->gained == b->gained && a->reason == b->reason &&
	       a->rule == b->rule && a->port_hi + 1u == b->port_lo &&
	       a->since == b->since && a->observed == b->observed &&
	       a->was == b->was && a->is == b->is &&
	       a->was_parent == b->was_parent && a->is_parent == b->is_parent;
}

/* Both of one host and range; spans of ports that touch become one. */
static void note(struct diff *d, const struct rules_change *c)
{
	if (d->is_open && goes_on(&d->open, c)) {
		d->open.port_hi = c->port_hi;
		return;
	}
	tell(d);
	d->open = *c;
	d->is_open = true;
}

static bool both_pass(const struct rules_answer a[2])
{
	return rules_passes(&a[0]) && rules_passes(&a[1]);
}

/* Where the protocol is another, are other first bytes demanded? */
static bool speak_otherwise(const struct rules_answer a[2])
{
	return a[0].protocol && a[1].protocol &&
	       a[0].protocol->speech != a[1].protocol->speech;
}

static bool go_otherwise(const struct rules_answer a[2])
{
	return strcmp(parent_of(&a[0]), parent_of(&a[1])) != 0;
}

static bool is_gain(const struct rules_answer a[2])
{
	/* The way alone is new; or one of them takes any first bytes. */
	if (both_pass(a))
		return !speak_otherwise(a) ||
		       a[0].protocol->speech != SPEECH_OPAQUE;
	return rules_passes(&a[1]);
}

static bool is_wanted(const struct diff *d, const struct rules_answer a[2])
{
	if (both_pass(a) && !speak_otherwise(a))
		return d->wanted & WAY;
	return d->wanted & (is_gain(a) ? GAINED : LOST);
}

/* What both say of the flow when they first differ in a way that is wanted. */
static bool flows_differ(const struct diff *d, struct rules_question *q,
			 struct rules_answer a[2], int64_t *ret_since)
{
	bool ways = !q->addr || str_empty(q->host);	/* once a name */

	for (size_t i = 0; i < d->n_times; i++) {
		q->now = d->time[i];
		rules_judge(d->set[0], q, &a[0]);
		rules_judge(d->set[1], q, &a[1]);
		*ret_since = i > 0 ? q->now : 0;
		if (both_pass(a) ?
		    !speak_otherwise(a) && !(ways && go_otherwise(a)) :
		    rules_passes(&a[0]) == rules_passes(&a[1]))
			continue;
		if (is_wanted(d, a))
			return true;
	}
	return false;
}

static void note_port(struct diff *d, const struct rules_answer a[2],
		      size_t port, struct rules_change *c)
{
	bool both = both_pass(a), speech = both && speak_otherwise(a);
	bool way = both && !speech;

	c->was = speech ? a[0].protocol : NULL;
	c->is = speech ? a[1].protocol : NULL;
	c->was_parent = way ? parent_of(&a[0]) : NULL;
	c->is_parent = way ? parent_of(&a[1]) : NULL;
	c->gained = is_gain(a);
	c->reason = speech ? REASON_PROTOCOL_NOT_ALLOWED :
			     a[c->gained ? 0 : 1].reason;
	c->rule = a[c->gained ? 1 : 0].rule_number;
	c->observed = a[c->gained ? 1 : 0].would_deny;
	c->port_lo = (uint16_t)d->cuts.port[port];
	c->port_hi = cuts_port_end(&d->cuts, port);
	note(d, c);
}

static void judge_ports(struct diff *d, struct rules_question *q,
			struct rules_change *c)
{
	struct rules_answer a[2];

	for (size_t i = 0; i < d->cuts.n_ports && !d->stopped; i++) {
		q->port = (uint16_t)d->cuts.port[i];
		if (d->told[i] || !flows_differ(d, q, a, &c->since))
			continue;
		note_port(d, a, i, c);
		d->told[i] = !q->addr && !c->is_parent;
	}
	tell(d);
}

static void judge_addrs(struct diff *d, struct rules_question *q,
			struct rules_change *c)
{
	for (size_t i = 0; i < d->cuts.n_addrs && !d->stopped; i++) {
		q->addr = &d->cuts.addr[i];
		c->lo = d->cuts.addr[i];
		c->hi = cuts_addr_end(&d->cuts, i);
		judge_ports(d, q, c);
	}
	q->addr = NULL;
	c->lo.family = c->hi.family = IP_NONE;
}

/* --- requests ------------------------------------------------------------------- */

/* Plain HTTP alone has requests to be seen. */
static bool shows_requests(const struct rules_answer *a)
{
	return rules_passes(a) && a->protocol &&
	       a->protocol->speech == SPEECH_HTTP;
}

/* Do both let the flow pass, to look at its requests? */
static bool both_show(const struct diff *d, const struct rules_question *q)
{
	struct rules_answer a[2];

	rules_judge(d->set[0], q, &a[0]);
	rules_judge(d->set[1], q, &a[1]);
	return shows_requests(&a[0]) && shows_requests(&a[1]);
}

/* As flows_differ(), of requests in flows that both let pass. */
static bool requests_differ(const struct diff *d,
			    struct rules_request *request,
			    struct rules_answer a[2], int64_t *ret_since)
{
	for (size_t i = 0; i < d->n_times; i++) {
		request->flow.now = d->time[i];
		rules_judge_request(d->set[0], request, &a[0]);
		rules_judge_request(d->set[1], request, &a[1]);
		*ret_since = i > 0 ? d->time[i] : 0;
		if (rules_passes(&a[0]) != rules_passes(&a[1]) &&
		    is_wanted(d, a) && both_show(d, &request->flow))
			return true;
	}
	return false;
}

/* The methods of @request's path in which the two differ; all: one change. */
static void judge_methods(struct diff *d, struct rules_request *request,
			  size_t port, struct rules_change *c)
{
	struct rules_answer a[2], first[2];
	size_t gained = 0, lost = 0;
	int64_t since = 0;

	for (unsigned pass = 0; pass < 2 && !d->stopped; pass++) {
		for (size_t m = 0; m < d->n_methods && !d->stopped; m++) {
			request->method = d->method[m];
			if (!requests_differ(d, request, a, &c->since))
				continue;
			/* All at one time, or each by itself. */
			if (gained + lost == 0)
				since = c->since;
			memcpy(first, a, sizeof(first));
			gained += rules_passes(&a[1]) && since == c->since;
			lost += rules_passes(&a[0]) && since == c->since;
			if (pass == 0)
				continue;
			c->method = d->method[m];
			note_port(d, a, port, c);
			tell(d);
		}
		if (gained == d->n_methods || lost == d->n_methods) {
			c->method = STR_NONE;
			c->since = since;
			note_port(d, first, port, c);
			tell(d);
			return;
		}
		if (gained + lost == 0)
			return;
	}
}

static void judge_requests(struct diff *d, struct rules_question *q,
			   struct rules_change *c)
{
	for (size_t i = 0; i < d->cuts.n_ports && !d->stopped; i++) {
		bool shown = false;

		q->port = (uint16_t)d->cuts.port[i];
		for (size_t t = 0; t < d->n_times && !shown; t++) {
			q->now = d->time[t];
			shown = both_show(d, q);
		}
		if (d->told[i] || !shown)
			continue;
		for (size_t k = 0; k < d->n_paths && !d->stopped; k++) {
			struct rules_request request = {
				.flow = *q, .target = d->path[k],
			};

			c->path = d->path[k];
			judge_methods(d, &request, i, c);
		}
	}
	c->path = c->method = STR_NONE;
}

/* Nothing where no rule speaks of requests. */
static int cut_requests(struct diff *d)
{
	int e = rules_samples(d->set, d->names, &d->path, &d->n_paths);

	return e || d->n_paths == 0 ? e :
	       rules_sample_methods(d->set, &d->method, &d->n_methods);
}

/* What the world may be asked of the name, beside its addresses. */
static void judge_types(struct diff *d, const struct rules_question *q,
			const struct rules_change *at)
{
	uint32_t from = rules_name_types(d->set[0], q->host, d->now);
	uint32_t to = rules_name_types(d->set[1], q->host, d->now);
	struct rules_change c = *at;

	c.reason = REASON_TYPE_NOT_ALLOWED;
	c.gained = true;
	c.types = to & ~from;
	if (c.types && !d->stopped)
		d->stopped = !d->fn(d->arg, &c);
	c.gained = false;
	c.types = from & ~to;
	if (c.types && !d->stopped)
		d->stopped = !d->fn(d->arg, &c);
}

static void keep_times(struct diff *d)
{
	size_t kept = 1;

	qsort(d->time, d->n_times, sizeof(*d->time), by_time);
	for (size_t i = 1; i < d->n_times; i++) {
		if (d->time[i] != d->time[kept - 1])
			d->time[kept++] = d->time[i];
	}
	d->n_times = kept;
}

static void see_end(struct diff *d, const struct rule *r)
{
	if (r->expires <= d->now || r->expires == RULES_NEVER)
		return;
	/* A rule may be met at each of its wildcards. */
	if (d->n_times == d->max_times)
		keep_times(d);
	d->time[d->n_times++] = r->expires;
}

static void see_rule(struct diff *d, const struct rule *r)
{
	d->ranged |= r->n_ranges > 0;
	d->limited |= rule_is_limited(r);
	cuts_add(&d->cuts, r);
	see_end(d, r);
}

/* A deny of addresses alone is about every host. */
static int see_common(struct diff *d)
{
	d->time[d->n_times++] = d->now;
	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < d->set[s]->n_rules; i++) {
			const struct rule *r = &d->set[s]->rule[i];

			if (r->deny && !r->has_hosts)
				see_end(d, r);
		}
	}
	keep_times(d);
	d->common_time = mem_new_array(d->n_times, sizeof(*d->time));
	if (!d->common_time)
		return -ENOMEM;
	memcpy(d->common_time, d->time, d->n_times * sizeof(*d->time));
	d->n_common_times = d->n_times;
	return 0;
}

/* The rules that speak of @host, or of flows without a name. */
static void see_rules(struct diff *d, struct str host)
{
	struct host_path path UNINITIALIZED;
	const struct rule *r;
	bool literal = str_empty(host);
	struct host_rules it;

	d->n_times = d->n_common_times;
	memcpy(d->time, d->common_time, d->n_times * sizeof(*d->time));
	cuts_start(&d->cuts);
	d->ranged = d->cuts.nameless_deny;
	d->limited = false;
	for (unsigned s = 0; s < 2; s++) {
		host_table_find(&d->set[s]->hosts, host, &path);
		host_rules_start(&it, d->set[s], &path);
		while ((r = host_rules_next(&it)))
			see_rule(d, r);
		for (size_t i = 0; literal && i < d->set[s]->n_rules; i++) {
			r = &d->set[s]->rule[i];
			if (!r->has_hosts)
				see_rule(d, r);
		}
	}
	keep_times(d);
	cuts_make(&d->cuts, d->ranged || literal);
}

/*
 * At one time there is one difference; over several, what is gained now may be
 * lost later, so that each is looked for by itself.  False: all was looked for.
 */
static bool look_again(struct diff *d)
{
	bool once = d->n_times == 1;

	if (d->wanted & WAY || d->stopped) {
		d->wanted = 0;
		return false;
	}
	d->wanted = once ? GAINED | LOST | WAY :
		    d->wanted ? d->wanted << 1 : GAINED;
	memset(d->told, 0, d->cuts.n_ports * sizeof(*d->told));
	return true;
}

static void judge_pattern(struct diff *d, const struct pattern *p)
{
	char name[sizeof(ANY_LABEL) + HOST_NAME_MAX_LEN];
	struct rules_question q = { .host = p->name, .now = d->now };
	struct rules_change c = { .host = p->name, .wild = p->wild };
	size_t label = sizeof(ANY_LABEL) - 1;

	if (p->wild) {
		memcpy(name, ANY_LABEL, label);
		memcpy(name + label, p->name.p, p->name.n);
		q.host = p->name.n > 0 ? str_make(name, label + p->name.n) :
					 str_make(name, label - 1);
	}
	see_rules(d, q.host);
	while (look_again(d)) {
		judge_ports(d, &q, &c);
		if (d->ranged)
			judge_addrs(d, &q, &c);
		if (d->limited)
			judge_requests(d, &q, &c);
	}
	judge_types(d, &q, &c);
}

/* The mode of a policy is no rule's. */
static int begin(struct diff *d, const struct ruleset *from,
		 const struct ruleset *to)
{
	memcpy(&d->enforcing[0], from, sizeof(*from));
	memcpy(&d->enforcing[1], to, sizeof(*to));
	for (unsigned s = 0; s < 2; s++) {
		d->enforcing[s].observe = false;
		d->set[s] = &d->enforcing[s];
	}
	/* Now, when each rule ends, and one that is there already. */
	d->max_times = from->n_rules + to->n_rules + 2;
	d->time = mem_new_array(d->max_times, sizeof(*d->time));
	d->names = arena_new(NAMES_MAX);
	if (!d->time || !d->names || cuts_init(&d->cuts, d->set) < 0)
		return -ENOMEM;
	d->told = mem_new_array(d->cuts.max_ports, sizeof(*d->told));
	if (!d->told || see_common(d) < 0)
		return -ENOMEM;
	return collect_patterns(d);
}

int rules_diff(const struct ruleset *from, const struct ruleset *to,
	       int64_t now, rules_change_fn *fn, void *arg)
{
	struct diff d = {
		.now = now, .fn = fn, .arg = arg,
	};
	struct rules_question q = { .host = STR_NONE, .now = now };
	struct rules_change c = { .host = STR_NONE };
	int e = begin(&d, from, to);

	if (!e)
		e = cut_requests(&d);
	for (size_t i = 0; !e && i < d.n_patterns && !d.stopped; i++)
		judge_pattern(&d, &d.pattern[i]);
	if (!e) {
		see_rules(&d, q.host);
		while (look_again(&d))
			judge_addrs(&d, &q, &c);
	}
	mem_free(d.time);
	mem_free(d.common_time);
	mem_free(d.pattern);
	arena_free(d.names);
	cuts_done(&d.cuts);
	mem_free(d.told);
	mem_free(d.method);
	mem_free(d.path);
	return e;
}
