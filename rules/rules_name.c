/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_name.c - may a name be asked for, and which of its addresses be given
 *
 * DNS knows no port, so a name is let through when a flow to it could be on
 * some port: of each allow that speaks of it the first port is looked for that
 * no deny shuts.  Nothing here takes memory, a lock or writes to the log.
 */
#include "rules/rules_judge.h"

/* --- a name alone --------------------------------------------------------- */

struct shut {
	const struct ruleset *rs;
	int64_t now;
	uint32_t port, until;
};

static bool shuts_port(const struct rule *r, struct shut *s)
{
	/* Of those that shut some requests, others are left. */
	if (!rule_holds(r, s->now) || r->observe || rule_is_limited(r))
		return false;
	for (size_t i = 0; i < r->n_ports; i++) {
		if (r->port[i].lo <= s->port && s->port <= r->port[i].hi) {
			s->until = r->port[i].hi;
			return true;
		}
	}
	return false;
}

static void on_shut_span(void *arg, const struct span *span)
{
	struct shut *s = arg;

	(void)shuts_port(&s->rs->rule[span->owner], s);
}

/*
 * The highest port from @port on that is shut by a deny of the whole host, or
 * of the address of @j where there is one; or 0.
 */
static uint32_t shut_until(const struct host_rules *start,
			   const struct judge *j, uint32_t port)
{
	struct host_rules it = *start;
	struct shut s = { .rs = start->rs, .now = j->now, .port = port };
	const struct rule *r;

	while ((r = host_rules_next(&it))) {
		if (r->deny && (r->n_ranges == 0 || in_ranges(j, r)) &&
		    shuts_port(r, &s))
			return s.until;
	}
	for (unsigned i = 0; i < j->n_forms && s.until == 0; i++)
		span_tree_find(&start->rs->deny_spans, &j->form[i],
			       on_shut_span, &s);
	return s.until;
}

/* The first of these ports that no deny shuts, or 0. */
static uint16_t open_from(const struct host_rules *start,
			  const struct judge *j, const struct port_range *among)
{
	uint32_t port = among->lo;

	while (port <= among->hi) {
		uint32_t until = shut_until(start, j, port);

		if (until == 0)
			return (uint16_t)port;
		port = until + 1;
	}
	return 0;
}

/* The first port of @r that no deny shuts, or 0. */
static uint16_t open_port(const struct host_rules *start,
			  const struct judge *j, const struct rule *r)
{
	static const struct port_range all = { 1, UINT16_MAX };
	uint16_t port = 0;

	for (size_t i = 0; i < r->n_ports && port == 0; i++) {
		if (!rule_is_limited(r) || rule_is_seen(r, r->port[i].lo))
			port = open_from(start, j, &r->port[i]);
	}
	/* What it would refuse for a port goes on. */
	return port == 0 && r->observe ? open_from(start, j, &all) : port;
}

/* What the rules say of @host on any port. */
static bool some_port_open(const struct host_rules *start, int64_t now,
			   struct rules_answer *ret)
{
	struct judge no_address UNINITIALIZED;
	struct host_rules it = *start;
	const struct rule *r, *deny = NULL, *expired = NULL;
	const struct rule *unseen = NULL;
	bool named = false;

	judge_clear(&no_address, start->rs, now);
	while ((r = host_rules_next(&it))) {
		uint16_t port;

		if (r->deny) {
			if (r->n_ranges == 0 && rule_holds(r, now) &&
			    !r->observe && !rule_is_limited(r))
				first(&deny, r);
			continue;
		}
		port = open_port(start, &no_address, r);
		if (!rule_holds(r, now)) {
			if (port > 0)
				first(&expired, r);
			continue;
		}
		named = true;
		if (port == 0 && rule_is_limited(r))
			first(&unseen, r);
		if (port == 0)
			continue;
		ret->reason = REASON_ALLOWED;
		name_rule(start->rs, r, ret);
		ret->protocol = rule_protocol(r, port);
		return true;
	}
	/* A deny of some ports says nothing of a host that nothing allows. */
	if (deny && (named || rule_denies_all(deny))) {
		ret->reason = REASON_HOST_DENIED;
		name_rule(start->rs, deny, ret);
	} else if (unseen) {
		ret->reason = REASON_INSPECTION_REQUIRED;
		name_rule(start->rs, unseen, ret);
	} else if (expired) {
		ret->reason = REASON_RULE_EXPIRED;
		name_rule(start->rs, expired, ret);
	}
	return false;
}

/* Is the name itself above one that an allow has, and not all are denied? */
static bool leads_on(const struct ruleset *rs, const struct host_path *path,
		     int64_t now)
{
	if (!path->whole || !rs->mark[path->mark[path->n - 1]].leads)
		return false;
	for (size_t i = 0; i < rs->n_any; i++) {
		const struct rule *r = &rs->rule[rs->any[i]];

		if (rule_denies_all(r) && rule_holds(r, now))
			return false;
	}
	return true;
}

static enum rules_name_verdict judge_name(const struct ruleset *rs,
					  const struct host_path *path,
					  int64_t now, struct rules_answer *ret)
{
	struct host_rules start;

	*ret = (struct rules_answer){
		.reason = REASON_HOST_NOT_ALLOWED, .parent = rs->parent,
	};
	host_rules_start(&start, rs, path);
	if (some_port_open(&start, now, ret))
		return RULES_NAME_ALLOWED;
	if (rs->observe) {
		ret->would_deny = true;
		return RULES_NAME_ALLOWED;
	}
	return leads_on(rs, path, now) ? RULES_NAME_ANCESTOR : RULES_NAME_DENIED;
}

enum rules_name_verdict rules_judge_name(const struct ruleset *rs,
					 struct str host, int64_t now,
					 struct rules_answer *ret)
{
	struct host_path path UNINITIALIZED;

	if (str_empty(host)) {
		*ret = (struct rules_answer){
			.reason = REASON_HOST_NOT_ALLOWED,
		};
		return RULES_NAME_DENIED;
	}
	host_table_find(&rs->hosts, host, &path);
	return judge_name(rs, &path, now, ret);
}

uint32_t rules_name_types(const struct ruleset *rs, struct str host,
			  int64_t now)
{
	struct judge no_address UNINITIALIZED;
	struct host_path path UNINITIALIZED;
	struct host_rules start, it;
	struct rules_answer answer;
	const struct rule *r;
	uint32_t types = rs->types;

	host_table_find(&rs->hosts, host, &path);
	if (judge_name(rs, &path, now, &answer) != RULES_NAME_ALLOWED ||
	    answer.would_deny)
		return 0;
	judge_clear(&no_address, rs, now);
	host_rules_start(&start, rs, &path);
	it = start;
	while ((r = host_rules_next(&it))) {
		if (!r->deny && r->types && rule_holds(r, now) &&
		    open_port(&start, &no_address, r) > 0)
			types |= r->types;
	}
	return types;
}

bool rules_name_goes(const struct ruleset *rs, struct str host, int64_t now,
		     rules_parent_fn *is, void *arg)
{
	struct judge no_address UNINITIALIZED;
	struct host_path path UNINITIALIZED;
	struct host_rules start, it;
	struct rules_answer answer;
	const struct rule *r;

	host_table_find(&rs->hosts, host, &path);
	if (judge_name(rs, &path, now, &answer) != RULES_NAME_ALLOWED)
		return false;
	if (answer.would_deny)
		return is(arg, answer.parent);
	judge_clear(&no_address, rs, now);
	host_rules_start(&start, rs, &path);
	it = start;
	while ((r = host_rules_next(&it))) {
		if (!r->deny && rule_holds(r, now) &&
		    open_port(&start, &no_address, r) > 0 &&
		    is(arg, r->parent ? r->parent : rs->parent))
			return true;
	}
	return false;
}

/* Bytes in front of the last @labels labels of @host and their dot. */
static unsigned bytes_before(struct str host, unsigned labels)
{
	size_t n = host.n;

	while (n > 0) {
		if (host.p[--n] == '.' && --labels == 0)
			break;
	}
	return (unsigned)n;
}

unsigned rules_name_chosen(const struct ruleset *rs, struct str host,
			   int64_t now)
{
	struct judge no_address UNINITIALIZED;
	struct host_path path UNINITIALIZED;
	struct host_rules start, it;
	const struct rule *r;

	host_table_find(&rs->hosts, host, &path);
	judge_clear(&no_address, rs, now);
	host_rules_start(&start, rs, &path);
	it = start;
	while ((r = host_rules_next(&it))) {
		if (r->deny || !rule_holds(r, now) ||
		    open_port(&start, &no_address, r) == 0)
			continue;
		return it.rank == HOST_RANK_EXACT ? 0 :
						    bytes_before(host, it.rank);
	}
	return (unsigned)host.n;
}

/* --- a name and an address, on whatever port ------------------------------ */

struct found {
	const struct judge *j;
	bool any;
};

static void on_any_span(void *arg, const struct span *span)
{
	struct found *f = arg;
	const struct rule *r = &f->j->rs->rule[span->owner];

	f->any |= rule_holds(r, f->j->now) && !r->observe;
}

static bool addr_is_denied(const struct host_rules *start,
			   const struct judge *j)
{
	struct host_rules it = *start;
	struct found found = { .j = j };
	const struct rule *r;

	while ((r = host_rules_next(&it))) {
		if (r->deny && r->n_ranges > 0 && in_ranges(j, r) &&
		    !r->observe && rule_holds(r, j->now))
			return true;
	}
	for (unsigned i = 0; i < j->n_forms; i++)
		span_tree_find(&start->rs->deny_spans, &j->form[i],
			       on_any_span, &found);
	return found.any;
}

void rules_judge_name_addr(const struct ruleset *rs,
			   const struct rules_question *q,
			   struct rules_answer *ret)
{
	struct host_path path UNINITIALIZED;
	struct judge j UNINITIALIZED;
	struct host_rules start, it;
	const struct rule *r;
	bool passes = false;

	host_table_find(&rs->hosts, q->host, &path);
	(void)judge_name(rs, &path, q->now, ret);
	judge_start(&j, rs, q);
	ret->klass = j.klass;
	if (!rules_passes(ret) || !q->addr)
		return;
	if (is_shut_family(rs, q->addr)) {
		*ret = (struct rules_answer){
			.reason = REASON_IPV6_OFF, .klass = j.klass,
		};
		return;
	}
	host_rules_start(&start, rs, &path);
	it = start;
	while ((r = host_rules_next(&it))) {
		uint16_t port;

		if (r->deny || !rule_holds(r, j.now) || !lets_pass(&j, r))
			continue;
		passes = true;
		port = open_port(&start, &j, r);
		if (port == 0)
			continue;
		*ret = (struct rules_answer){
			.protocol = rule_protocol(r, port), .klass = j.klass,
		};
		name_rule(rs, r, ret);
		return;
	}
	/* As in observe(): what policy says of names may go on, this not. */
	if (j.klass != IP_PUBLIC && !passes)
		ret->reason = ip_class_reason(j.klass);
	else if (addr_is_denied(&start, &j))
		ret->reason = REASON_ADDRESS_DENIED;
	else if (ret->would_deny)
		return;
	else
		ret->reason = REASON_ADDRESS_NOT_ALLOWED;
	ret->would_deny = rs->observe &&
			  ret->reason == REASON_ADDRESS_NOT_ALLOWED;
}
