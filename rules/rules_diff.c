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
 */
#include "rules/rules_diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/ip_class.h"
#include "base/mem.h"
#include "rules/rules_path.h"
#include "rules/ruleset.h"

#define SAMPLE_MAX	(3 * RULES_PATH_MAX)	/* percent-encoded */

/* Nobody's label: 27 bytes, so that no list has it by chance. */
#define NAMES_MAX	(1u << 30)	/* bytes of the names of hosts */
#define ANY_LABEL	"any-name-that-no-rule-names."

struct pattern {
	struct str name;
	bool wild;
	bool ranged;		/* a rule that names it has addresses */
};

struct diff {
	const struct ruleset *set[2];	/* from, to */
	int64_t now;
	rules_change_fn *fn;
	void *arg;
	bool stopped;
	struct arena *names;
	struct pattern *pattern;
	size_t n_patterns, max_patterns;
	uint32_t *port;			/* where a span begins */
	bool *told;			/* by port: differs by name already */
	size_t n_ports;
	struct str *method, *path;	/* that requests are tried with */
	size_t n_methods, n_paths;
	struct ip_addr *addr;		/* where a range begins */
	size_t n_addrs;
	bool ranges;			/* some rule has addresses */
	bool nameless_deny;		/* a deny of addresses alone */
	struct rules_change open;	/* a change that may go on */
	bool is_open;
};

/* --- cuts --------------------------------------------------------------------- */

static int by_port(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int by_addr(const void *a, const void *b)
{
	return ip_addr_cmp(a, b);
}

static int by_text(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static int by_pattern(const void *a, const void *b)
{
	const struct pattern *x = a, *y = b;
	int c = str_cmp(x->name, y->name);

	return c ? c : (int)x->wild - (int)y->wild;
}

static bool rule_has_ranges(const struct ruleset *rs, size_t i)
{
	return rs->rule[i].n_ranges > 0;
}

static int cut_ports(struct diff *d)
{
	size_t n = 1, kept = 0;

	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < d->set[s]->n_rules; i++)
			n += 2 * d->set[s]->rule[i].n_ports;
	}
	d->port = mem_new_array(n, sizeof(*d->port));
	if (!d->port)
		return -ENOMEM;
	n = 0;
	d->port[n++] = 1;
	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < d->set[s]->n_rules; i++) {
			const struct rule *r = &d->set[s]->rule[i];

			for (size_t k = 0; k < r->n_ports; k++) {
				d->port[n++] = r->port[k].lo;
				d->port[n++] = r->port[k].hi + 1u;
			}
		}
	}
	qsort(d->port, n, sizeof(*d->port), by_port);
	for (size_t i = 0; i < n; i++) {
		if (d->port[i] <= UINT16_MAX && d->port[i] > 0 &&
		    (kept == 0 || d->port[kept - 1] != d->port[i]))
			d->port[kept++] = d->port[i];
	}
	d->n_ports = kept;
	d->told = mem_new_array(kept, sizeof(*d->told));
	return d->told ? 0 : -ENOMEM;
}

static uint16_t port_end(const struct diff *d, size_t i)
{
	return i + 1 < d->n_ports ? (uint16_t)(d->port[i + 1] - 1) :
	       UINT16_MAX;
}

/* false: there is none in the family. */
static bool addr_next(struct ip_addr *a)
{
	for (size_t i = a->family == IP_V4 ? 4 : 16; i-- > 0; ) {
		if (++a->b[i] != 0)
			return true;
	}
	return false;
}

static void addr_before(struct ip_addr *a)
{
	for (size_t i = a->family == IP_V4 ? 4 : 16; i-- > 0; ) {
		if (a->b[i]-- != 0)
			return;
	}
}

static void cut_range(struct diff *d, struct ip_addr lo, struct ip_addr hi)
{
	d->addr[d->n_addrs++] = lo;
	if (addr_next(&hi))
		d->addr[d->n_addrs++] = hi;
}

static void cut_net(struct diff *d, const struct ip_net *net)
{
	struct ip_addr hi = net->addr;
	size_t bits = hi.family == IP_V4 ? 32 : 128;

	for (size_t i = net->bits; i < bits; i++)
		hi.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
	cut_range(d, net->addr, hi);
}

static size_t count_ranges(struct diff *d)
{
	size_t n = 0;

	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < d->set[s]->n_rules; i++) {
			const struct rule *r = &d->set[s]->rule[i];

			n += r->n_ranges;
			d->nameless_deny |= r->deny && r->n_ranges > 0 &&
					    !r->has_hosts;
		}
	}
	d->ranges = n > 0;
	return n;
}

static void keep_addrs(struct diff *d)
{
	size_t kept = 0;

	qsort(d->addr, d->n_addrs, sizeof(*d->addr), by_addr);
	for (size_t i = 0; i < d->n_addrs; i++) {
		if (kept == 0 || !ip_addr_eq(&d->addr[kept - 1], &d->addr[i]))
			d->addr[kept++] = d->addr[i];
	}
	d->n_addrs = kept;
}

static int cut_addrs(struct diff *d)
{
	size_t n = count_ranges(d), blocks = 0;
	struct ip_net net;

	if (!d->ranges)
		return 0;
	while (ip_class_block(blocks, &net))
		blocks++;
	d->addr = mem_new_array(2 * (n + blocks), sizeof(*d->addr));
	if (!d->addr)
		return -ENOMEM;
	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < d->set[s]->n_rules; i++) {
			const struct rule *r = &d->set[s]->rule[i];

			for (size_t k = 0; k < r->n_ranges; k++)
				cut_range(d, r->range[k].lo, r->range[k].hi);
		}
	}
	for (size_t i = 0; i < blocks; i++) {
		if (ip_class_block(i, &net))
			cut_net(d, &net);
	}
	keep_addrs(d);
	return 0;
}

static struct ip_addr addr_end(const struct diff *d, size_t i)
{
	struct ip_addr end = { .family = d->addr[i].family };

	if (i + 1 < d->n_addrs && d->addr[i + 1].family == end.family) {
		end = d->addr[i + 1];
		addr_before(&end);
	} else {
		memset(end.b, 0xff, end.family == IP_V4 ? 4 : 16);
	}
	return end;
}

/* --- patterns ------------------------------------------------------------------ */

struct collect {
	struct diff *d;
	const struct ruleset *set;
};

static int add_pattern(void *arg, size_t rule, enum host_pattern_kind kind,
		       struct str name)
{
	struct collect *c = arg;
	struct diff *d = c->d;
	struct pattern *p = d->pattern;

	if (kind == HOST_ANY)
		return 0;	/* every pattern is asked of it */
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
		.wild = kind == HOST_BELOW,
		.ranged = rule_has_ranges(c->set, rule - 1),
	};
	return 0;
}

static int collect_patterns(struct diff *d)
{
	size_t kept = 0;

	for (unsigned s = 0; s < 2; s++) {
		struct collect c = { d, d->set[s] };
		int e = ruleset_each_host(d->set[s], add_pattern, &c);

		if (e)
			return e;
	}
	if (d->n_patterns > 0)
		qsort(d->pattern, d->n_patterns, sizeof(*d->pattern),
		      by_pattern);
	for (size_t i = 0; i < d->n_patterns; i++) {
		const struct pattern p = d->pattern[i];

		if (kept > 0 && by_pattern(&d->pattern[kept - 1], &p) == 0)
			d->pattern[kept - 1].ranged |= p.ranged;
		else
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

static bool goes_on(const struct rules_change *a, const struct rules_change *b)
{
	return a->gained == b->gained && a->reason == b->reason &&
	       a->rule == b->rule && a->port_hi + 1u == b->port_lo;
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

/* What both say of @q goes to @a; do they differ? */
static bool differ(const struct diff *d, const struct rules_question *q,
		   struct rules_answer a[2])
{
	for (unsigned s = 0; s < 2; s++)
		rules_judge(d->set[s], q, &a[s]);
	return (a[0].reason == REASON_ALLOWED) !=
	       (a[1].reason == REASON_ALLOWED);
}

static void note_port(struct diff *d, const struct rules_answer a[2],
		      size_t port, struct rules_change *c)
{
	c->gained = a[1].reason == REASON_ALLOWED;
	c->reason = a[c->gained ? 0 : 1].reason;
	c->rule = a[c->gained ? 1 : 0].rule_number;
	c->port_lo = (uint16_t)d->port[port];
	c->port_hi = port_end(d, port);
	note(d, c);
}

static void judge_ports(struct diff *d, struct rules_question *q,
			struct rules_change *c)
{
	struct rules_answer a[2];

	for (size_t i = 0; i < d->n_ports && !d->stopped; i++) {
		q->port = (uint16_t)d->port[i];
		if (d->told[i] || !differ(d, q, a))
			continue;
		note_port(d, a, i, c);
		d->told[i] = !q->addr;
	}
	tell(d);
}

static void judge_addrs(struct diff *d, struct rules_question *q,
			struct rules_change *c)
{
	for (size_t i = 0; i < d->n_addrs && !d->stopped; i++) {
		q->addr = &d->addr[i];
		c->lo = d->addr[i];
		c->hi = addr_end(d, i);
		judge_ports(d, q, c);
	}
	q->addr = NULL;
	c->lo.family = c->hi.family = IP_NONE;
}

/* --- requests ------------------------------------------------------------------- */

/* The methods of @request's path in which the two differ; all: one change. */
static void judge_methods(struct diff *d, struct rules_request *request,
			  size_t port, struct rules_change *c)
{
	struct rules_answer a[2], first[2];
	size_t gained = 0, lost = 0;

	for (unsigned pass = 0; pass < 2 && !d->stopped; pass++) {
		for (size_t m = 0; m < d->n_methods && !d->stopped; m++) {
			request->method = d->method[m];
			for (unsigned s = 0; s < 2; s++)
				rules_judge_request(d->set[s], request, &a[s]);
			if ((a[0].reason == REASON_ALLOWED) ==
			    (a[1].reason == REASON_ALLOWED))
				continue;
			memcpy(first, a, sizeof(first));
			gained += a[1].reason == REASON_ALLOWED;
			lost += a[0].reason == REASON_ALLOWED;
			if (pass == 0)
				continue;
			c->method = d->method[m];
			note_port(d, a, port, c);
			tell(d);
		}
		if (gained == d->n_methods || lost == d->n_methods) {
			c->method = STR_NONE;
			note_port(d, first, port, c);
			tell(d);
			return;
		}
		if (gained + lost == 0)
			return;
	}
}

/* Plain HTTP alone has requests to be seen. */
static bool shows_requests(const struct rules_answer *a)
{
	return a->reason == REASON_ALLOWED && a->protocol &&
	       a->protocol->speech == SPEECH_HTTP;
}

static void judge_requests(struct diff *d, struct rules_question *q,
			   struct rules_change *c)
{
	struct rules_answer a[2];

	for (size_t i = 0; i < d->n_ports && !d->stopped; i++) {
		q->port = (uint16_t)d->port[i];
		if (d->told[i] || differ(d, q, a) || !shows_requests(&a[0]) ||
		    !shows_requests(&a[1]))
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

static int add_sample(struct diff *d, struct str pattern)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(SAMPLE_MAX);
	int e = rules_path_write(pattern, "any-name", "any-name/any-name",
				 &text);

	if (e)
		return e == -ENOSPC ? 0 : e;	/* longer than any is judged */
	d->path[d->n_paths] = arena_str(d->names, buf_str(&text));
	return d->path[d->n_paths++].p ? 0 : -ENOMEM;
}

static void add_method(struct diff *d, struct str method)
{
	for (size_t i = 0; i < d->n_methods; i++) {
		if (str_eq(d->method[i], method))
			return;
	}
	d->method[d->n_methods++] = method;
}

static int add_requests(struct diff *d, const struct rule *r)
{
	int e = 0;

	for (size_t i = 0; i < r->n_methods; i++)
		add_method(d, r->method[i]);
	for (size_t i = 0; i < r->n_paths && !e; i++)
		e = add_sample(d, r->path[i]);
	return e;
}

static void keep_samples(struct diff *d)
{
	size_t kept = 0;

	qsort(d->path, d->n_paths, sizeof(*d->path), by_text);
	for (size_t i = 0; i < d->n_paths; i++) {
		if (kept == 0 || !str_eq(d->path[kept - 1], d->path[i]))
			d->path[kept++] = d->path[i];
	}
	d->n_paths = kept;
}

/* Nothing where no rule speaks of requests. */
static int cut_requests(struct diff *d)
{
	size_t methods = 0, paths = 0;
	int e;

	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < d->set[s]->n_rules; i++) {
			methods += d->set[s]->rule[i].n_methods;
			paths += d->set[s]->rule[i].n_paths;
		}
	}
	if (methods + paths == 0)
		return 0;
	d->method = mem_new_array(methods + 3, sizeof(*d->method));
	d->path = mem_new_array(paths + 1, sizeof(*d->path));
	if (!d->method || !d->path)
		return -ENOMEM;
	add_method(d, STR("GET"));
	add_method(d, STR("HEAD"));
	add_method(d, STR("ANY-OTHER"));
	e = add_sample(d, STR("/any-name"));
	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < d->set[s]->n_rules && !e; i++)
			e = add_requests(d, &d->set[s]->rule[i]);
	}
	if (!e)
		keep_samples(d);
	return e;
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

static void judge_pattern(struct diff *d, const struct pattern *p)
{
	char name[sizeof(ANY_LABEL) + HOST_NAME_MAX_LEN];
	struct rules_question q = { .host = p->name, .now = d->now };
	struct rules_change c = { .host = p->name, .wild = p->wild };

	if (p->wild) {
		memcpy(name, ANY_LABEL, sizeof(ANY_LABEL) - 1);
		memcpy(name + sizeof(ANY_LABEL) - 1, p->name.p, p->name.n);
		q.host = str_make(name, sizeof(ANY_LABEL) - 1 + p->name.n);
	}
	memset(d->told, 0, d->n_ports * sizeof(*d->told));
	judge_ports(d, &q, &c);
	if (p->ranged || d->nameless_deny)
		judge_addrs(d, &q, &c);
	if (d->n_paths > 0)
		judge_requests(d, &q, &c);
	judge_types(d, &q, &c);
}

int rules_diff(const struct ruleset *from, const struct ruleset *to,
	       int64_t now, rules_change_fn *fn, void *arg)
{
	struct diff d = {
		.set = { from, to }, .now = now, .fn = fn, .arg = arg,
		.names = arena_new(NAMES_MAX),
	};
	struct rules_question q = { .host = STR_NONE, .now = now };
	struct rules_change c = { .host = STR_NONE };
	int e = d.names ? collect_patterns(&d) : -ENOMEM;

	if (!e)
		e = cut_ports(&d);
	if (!e)
		e = cut_addrs(&d);
	if (!e)
		e = cut_requests(&d);
	for (size_t i = 0; !e && i < d.n_patterns && !d.stopped; i++)
		judge_pattern(&d, &d.pattern[i]);
	if (!e) {
		memset(d.told, 0, d.n_ports * sizeof(*d.told));
		judge_addrs(&d, &q, &c);
	}
	mem_free(d.pattern);
	arena_free(d.names);
	mem_free(d.port);
	mem_free(d.told);
	mem_free(d.method);
	mem_free(d.path);
	mem_free(d.addr);
	return e;
}
