/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_show.c - a ruleset as one policy text again
 */
#include "rules/rules_show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "rules/rules_path.h"
#include "rules/ruleset.h"

#define NAMES_MAX	(1u << 30)	/* bytes of the names of hosts */
#define VALUE_COLUMN	9	/* "hosts     = " */

struct shown_host {
	size_t rule;
	struct str name;
	enum host_pattern_kind kind;
};

struct hosts {
	struct arena *names;
	struct shown_host *host;
	size_t n, max;
};

static int add_host(void *arg, size_t rule, enum host_pattern_kind kind,
		    struct str name)
{
	struct hosts *h = arg;

	if (h->n == h->max) {
		size_t max = h->max ? 2 * h->max : 64;
		struct shown_host *more = mem_grow(h->host, max, sizeof(*more));

		if (!more)
			return -ENOMEM;
		h->host = more;
		h->max = max;
	}
	name = arena_str(h->names, name);
	if (!name.p)
		return -ENOMEM;
	h->host[h->n++] = (struct shown_host){ rule, name, kind };
	return 0;
}

static int by_rule(const void *a, const void *b)
{
	const struct shown_host *x = a, *y = b;
	int c;

	if (x->rule != y->rule)
		return x->rule < y->rule ? -1 : 1;
	c = str_cmp(x->name, y->name);
	return c ? c : (int)x->kind - (int)y->kind;
}

static bool is_of(const struct hosts *h, size_t at, size_t rule)
{
	return at < h->n && h->host[at].rule == rule;
}

static int put_hosts(const struct hosts *h, size_t *at, size_t rule,
		     struct buf *out)
{
	int e = 0;

	for (; is_of(h, *at, rule) && !e; ++*at) {
		const struct shown_host *s = &h->host[*at];

		e = buf_printf(out, "%-*s = %s%.*s\n", VALUE_COLUMN, "hosts",
			       s->kind == HOST_ANY ? "*" :
			       s->kind == HOST_BELOW ? "*." : "",
			       STR_ARG(s->name));
	}
	return e;
}

static bool is_range(const struct rule *r, const struct ip_addr *a)
{
	for (size_t i = 0; i < r->n_ranges; i++) {
		if (addr_range_is_single(&r->range[i]) &&
		    ip_addr_eq(&r->range[i].lo, a))
			return true;
	}
	return false;
}

static int put_ranges(const struct rule *r, struct buf *out)
{
	char lo[IP_TEXT_SIZE], hi[IP_TEXT_SIZE];
	int e = 0;

	for (size_t i = 0; i < r->n_ranges && !e; i++) {
		bool one = addr_range_is_single(&r->range[i]);

		ip_addr_text(&r->range[i].lo, lo);
		ip_addr_text(&r->range[i].hi, hi);
		e = buf_printf(out, "%-*s = %s%s%s\n", VALUE_COLUMN,
			       "addresses", lo, one ? "" : "-", one ? "" : hi);
	}
	/* One that a range holds, too, is opened by its own only. */
	for (size_t i = 0; i < r->n_single && !e; i++) {
		if (is_range(r, &r->single[i]))
			continue;
		ip_addr_text(&r->single[i], lo);
		e = buf_printf(out, "%-*s = %s\n", VALUE_COLUMN, "addresses",
			       lo);
	}
	return e;
}

static int put_ports(const struct rule *r, struct buf *out)
{
	/* An allow that says its ports is more specific than one that does not:
	 * what was not said is a comment. */
	int e = buf_printf(out, "%s%-*s =", r->deny || r->own_ports ? "" : "; ",
			   VALUE_COLUMN, "ports");

	for (size_t i = 0; i < r->n_ports && !e; i++) {
		const struct port_range *p = &r->port[i];

		if (p->lo <= 1 && p->hi == UINT16_MAX)
			e = buf_printf(out, " *");
		else if (p->lo == p->hi)
			e = buf_printf(out, " %u", p->lo);
		else
			e = buf_printf(out, " %u-%u", p->lo, p->hi);
	}
	return e ? e : buf_add_char(out, '\n');
}

static int put_types(uint32_t types, struct buf *out)
{
	int e = buf_printf(out, "%-*s =", VALUE_COLUMN, "types");

	for (unsigned i = 0; i < 32 && !e; i++) {
		if (types & BIT(i))
			e = buf_printf(out, " %s", rules_type_name(BIT(i)));
	}
	return e ? e : buf_add_char(out, '\n');
}

/* What was not said is not shown: defaults are the manual page's. */
static int put_dns(const struct ruleset *rs, struct buf *out)
{
	static const char *const ipv6[] = {
		[RULES_IPV6_ON] = "on", [RULES_IPV6_OFF] = "off",
	};
	const struct rules_dns *d = &rs->dns;
	int e = 0;

	if (!d->answers && !d->ipv6 && !d->refused && !rs->types)
		return 0;
	e = buf_printf(out, "\n[dns]\n");
	if (!e && d->answers)
		e = buf_printf(out, "%-*s = %s\n", VALUE_COLUMN, "answers",
			       d->answers == RULES_ANSWERS_REAL ? "real" :
			       "synthetic");
	if (!e && d->ipv6)
		e = buf_printf(out, "%-*s = %s\n", VALUE_COLUMN, "ipv6",
			       ipv6[d->ipv6]);
	if (!e && d->refused)
		e = buf_printf(out, "%-*s = refused\n", VALUE_COLUMN,
			       "denied");
	return e || !rs->types ? e : put_types(rs->types, out);
}

static int put_parent(const char *parent, struct buf *out)
{
	return buf_printf(out, "%-*s = %s\n", VALUE_COLUMN, "parent", parent);
}

/* The rest of [defaults] is shown in the rules that have it. */
static int put_defaults(const struct ruleset *rs, struct buf *out)
{
	int e;

	if (!rs->parent)
		return 0;
	e = buf_printf(out, "\n[defaults]\n");
	return e ? e : put_parent(rs->parent, out);
}

static int put_request(const struct rule *r, struct buf *out)
{
	int e = 0;

	for (size_t i = 0; i < r->n_methods && !e; i++)
		e = buf_printf(out, "%-*s = %.*s\n", VALUE_COLUMN, "methods",
			       STR_ARG(r->method[i]));
	for (size_t i = 0; i < r->n_paths && !e; i++) {
		e = buf_printf(out, "%-*s = ", VALUE_COLUMN, "paths");
		if (!e)
			e = rules_path_write(r->path[i], "*", "**", out);
		if (!e)
			e = buf_add_char(out, '\n');
	}
	if (!e && r->types)
		e = put_types(r->types, out);
	if (!e)
		e = rules_rule_limits_show(r, out);
	if (!e && r->parent)
		e = put_parent(r->parent, out);
	if (!e && r->observe)
		e = buf_printf(out, "%-*s = observe\n", VALUE_COLUMN, "mode");
	return e;
}

static int put_words(const struct rules_rule_info *info, struct buf *out)
{
	char ends[CLOCK_RFC3339_SIZE];
	int e = 0;

	if (info->owner)
		e = buf_printf(out, "%-*s = %s\n", VALUE_COLUMN, "owner",
			       info->owner);
	if (!e && info->reason)
		e = buf_printf(out, "%-*s = %s\n", VALUE_COLUMN, "reason",
			       info->reason);
	if (!e && info->expires != RULES_NEVER) {
		clock_rfc3339(info->expires * 1000000, ends);
		e = buf_printf(out, "%-*s = %s\n", VALUE_COLUMN, "expires",
			       ends);
	}
	return e;
}

static int put_rule(const struct ruleset *rs, size_t i, const struct hosts *h,
		    size_t *at, struct buf *out)
{
	const struct rule *r = &rs->rule[i];
	struct rules_rule_info info;
	int e;

	rules_rule_info(rs, i + 1, &info);
	/* Without its hosts it would speak of every host. */
	if (r->has_hosts && !r->any_host && !is_of(h, *at, i + 1))
		return buf_printf(out, "\n; %s:%u\n; [%s %s] has no host in "
				  "its lists and matches nothing\n", info.file,
				  info.line, r->deny ? "deny" : "allow",
				  info.name);
	e = buf_printf(out, "\n; %s:%u\n[%s %s]\n", info.file, info.line,
		       r->deny ? "deny" : "allow", info.name);
	if (!e)
		e = put_hosts(h, at, i + 1, out);
	if (!e)
		e = put_ranges(r, out);
	if (!e)
		e = put_ports(r, out);
	if (!e && r->protocol && !r->deny)
		e = buf_printf(out, "%-*s = %s\n", VALUE_COLUMN, "protocol",
			       r->protocol->name);
	if (!e)
		e = put_request(r, out);
	return e ? e : put_words(&info, out);
}

int rules_show(const struct ruleset *rs, struct buf *out)
{
	struct hosts h = { .names = arena_new(NAMES_MAX) };
	size_t at = 0;
	int e = h.names ? ruleset_each_host(rs, add_host, &h) : -ENOMEM;

	if (h.n > 0)
		qsort(h.host, h.n, sizeof(*h.host), by_rule);
	if (!e)
		e = buf_printf(out, "[policy]\nname = %s\n%s", rs->name,
			       rs->observe ? "mode = observe\n" : "");
	if (!e)
		e = put_defaults(rs, out);
	if (!e)
		e = put_dns(rs, out);
	if (!e)
		e = rules_limits_show(&rs->limits, out);
	for (size_t i = 0; i < rs->n_rules && !e; i++)
		e = put_rule(rs, i, &h, &at, out);
	mem_free(h.host);
	arena_free(h.names);
	return e;
}
