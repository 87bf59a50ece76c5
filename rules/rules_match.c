/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_match.c - may this flow go on, as far as it is known
 *
 * Theory
 * ======
 *
 * One walk over the rules that speak of the host finds everything a verdict
 * needs: the first deny that stands in the way, whether any allow names the
 * host (named), the most specific allow that takes the port too (can), and the
 * most specific one of those that lets the address pass as well (may).  The
 * verdict is then read off, in the order in which a person would ask:
 *
 *	a deny names the host			host_denied
 *	a deny names the address		address_denied
 *	no allow names the host			host_not_allowed
 *	none takes the port			port_not_allowed
 *	the address is of a class that none
 *	excepts					address_private, ...
 *	the address lies outside the rules'	address_not_allowed
 *
 * A flow without a name is looked up by its address in the same way, among the
 * rules that have addresses and no hosts.
 *
 * An allow lets an address pass when it has ranges and the address lies in one,
 * or when it has none and the address is public.  Addresses of metadata
 * services and of this host are excepted by nothing but their own literal.
 *
 * NAT64's well-known prefix (RFC 6052) is only a way to write an IPv4 address:
 * a range that has the address inside has it as well.
 *
 * In observe mode all that policy says of names and ports is let through and
 * marked; what class an address is of, and which are denied, stays in force.
 */
#include "rules/ruleset.h"

struct pick {
	const struct rule *rule;
	unsigned rank;
};

struct judge {
	const struct ruleset *rs;
	int64_t now;
	uint16_t port;
	struct ip_addr form[2];		/* the address, and what it carries */
	unsigned n_forms;		/* 0: not known yet */
	bool by_itself;			/* opened by its own entry only */
	bool unresolved;		/* the address will not be known */
	enum ip_class klass;
	/* what the walk finds */
	const struct rule *host_deny, *addr_deny;
	struct seen_request *request;		/* NULL: of the flow alone */
	/* what requests have to do with it */
	enum reason not_in;		/* why an allow did not take it */
	const struct rule *not_in_rule;
	enum reason shut;		/* why a deny did */
	const struct rule *shut_rule;
	const struct rule *unseen_allow, *unseen_deny;
	/* what is only observed */
	const struct rule *watched_deny;
	enum reason watched_reason;
	const struct rule *lenient;	/* an allow that refuses nothing */
	const struct rule *expired;	/* an allow that would let it pass */
	const struct rule *ended;	/* one that took the name and port */
	bool named;
	struct pick can, may;
};

/* --- single rules --------------------------------------------------------- */

static bool names_itself(const struct rule *r, const struct ip_addr *a)
{
	size_t lo = 0, hi = r->n_single;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int cmp = ip_addr_cmp(a, &r->single[mid]);

		if (cmp == 0)
			return true;
		if (cmp < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return false;
}

static bool in_ranges(const struct judge *j, const struct rule *r)
{
	for (unsigned i = 0; i < j->n_forms; i++) {
		if (rule_has_addr(r, &j->form[i]))
			return true;
	}
	return false;
}

/* Does this allow let the address pass? */
static bool lets_pass(const struct judge *j, const struct rule *r)
{
	if (r->n_ranges == 0)
		return j->klass == IP_PUBLIC;
	if (!j->by_itself)
		return in_ranges(j, r);
	for (unsigned i = 0; i < j->n_forms; i++) {
		if (names_itself(r, &j->form[i]))
			return true;
	}
	return false;
}

/* --- one question --------------------------------------------------------- */

static bool is_nat64(const struct ip_addr *a)
{
	static const uint8_t prefix[12] = { 0x00, 0x64, 0xff, 0x9b };

	return a->family == IP_V6 && memcmp(a->b, prefix, sizeof(prefix)) == 0;
}

/*
 * One of this host's own addresses, and not merely a neighbour's: whoever
 * excepts 10.0.0.0/8 means the services there, not what listens on this host.
 */
static bool is_own(const struct judge *j, const struct ip_hosts *hosts)
{
	for (unsigned f = 0; f < j->n_forms; f++) {
		if (ip_hosts_own(hosts, &j->form[f]))
			return true;
	}
	return false;
}

/*
 * All zeros, in two parts: each is small enough for the compiler to write it
 * out, while the whole would be cleared by a string instruction, which takes
 * longer to start than most of what follows.
 */
static void judge_clear(struct judge *j, const struct ruleset *rs, int64_t now)
{
	const size_t half = offsetof(struct judge, host_deny);

	memset(j, 0, half);
	memset((char *)j + half, 0, sizeof(*j) - half);
	j->rs = rs;
	j->now = now;
	j->klass = IP_PUBLIC;
}

static void judge_start(struct judge *j, const struct ruleset *rs,
			const struct rules_question *q)
{
	judge_clear(j, rs, q->now);
	j->port = q->port;
	j->unresolved = q->unresolved && !q->addr;
	if (!q->addr)
		return;
	j->form[j->n_forms++] = ip_addr_unmapped(q->addr);
	j->klass = ip_classify_here(&j->form[0], q->hosts);
	if (is_nat64(&j->form[0])) {
		struct ip_addr *inside = &j->form[j->n_forms++];

		*inside = (struct ip_addr){ .family = IP_V4 };
		memcpy(inside->b, j->form[0].b + 12, 4);
	}
	j->by_itself = j->klass == IP_METADATA;
	/* Loopback and kin have words of their own, and are every host's. */
	if (j->klass != IP_LOOPBACK && j->klass != IP_UNSPECIFIED &&
	    j->klass != IP_METADATA && is_own(j, q->hosts)) {
		j->klass = IP_HOST;
		j->by_itself = true;
	}
}

/*
 * Rules come in no certain order of specificity within a host or range; ports
 * that were written beat those that were not, then the earlier rule wins.
 */
static void consider(struct pick *p, const struct rule *r, unsigned rank)
{
	rank = 2 * rank + r->own_ports;
	if (p->rule && (rank < p->rank || (rank == p->rank && r >= p->rule)))
		return;
	p->rule = r;
	p->rank = rank;
}

static void first(const struct rule **kept, const struct rule *r)
{
	if (!*kept)
		*kept = r;
}

/* A deny that would refuse, and only says so. */
static void watch(struct judge *j, const struct rule *r, enum reason why)
{
	if (j->watched_deny)
		return;
	j->watched_deny = r;
	j->watched_reason = why;
}

/* A deny with methods or paths: what of a flow whose requests are not seen? */
static void weigh_request_deny(struct judge *j, const struct rule *r)
{
	enum reason why = REASON_INSPECTION_REQUIRED;

	if (j->request)
		why = request_may_be_in(j->request, r);
	if (why == REASON_ALLOWED)
		return;
	if (r->observe) {
		watch(j, r, why);
	} else if (!j->request) {
		first(&j->unseen_deny, r);
	} else if (!j->shut_rule) {
		j->shut = why;
		j->shut_rule = r;
	}
}

static void weigh_deny(struct judge *j, const struct rule *r)
{
	if (!rule_has_port(r, j->port) || !rule_holds(r, j->now))
		return;
	if (r->n_ranges > 0 && !j->unresolved && !in_ranges(j, r))
		return;
	if (rule_is_limited(r))
		weigh_request_deny(j, r);
	else if (r->observe)
		watch(j, r, r->n_ranges > 0 ? REASON_ADDRESS_DENIED :
					      REASON_HOST_DENIED);
	else if (r->n_ranges == 0)
		first(&j->host_deny, r);
	else
		first(&j->addr_deny, r);
}

/* The nearest miss speaks: right but for its path, then but for its method. */
static bool takes_request(struct judge *j, const struct rule *r)
{
	static const uint8_t near[REASONS] = {
		[REASON_METHOD_NOT_ALLOWED] = 1, [REASON_PATH_NOT_ALLOWED] = 2,
		[REASON_PATH_AMBIGUOUS] = 3,
	};
	enum reason why;

	if (!rule_is_limited(r))
		return true;
	if (!j->request) {
		if (rule_is_seen(r, j->port))
			return true;
		first(&j->unseen_allow, r);
		return false;
	}
	why = request_is_in(j->request, r);
	if (near[why] > near[j->not_in]) {
		j->not_in = why;
		j->not_in_rule = r;
	}
	return why == REASON_ALLOWED;
}

/* @passes: it lets the address pass, when there is one. */
static void weigh_allow(struct judge *j, const struct rule *r, unsigned rank,
			bool passes)
{
	if (!rule_holds(r, j->now)) {
		if (rule_has_port(r, j->port))
			first(&j->ended, r);
		if (rule_has_port(r, j->port) && (passes || j->n_forms == 0))
			first(&j->expired, r);
		return;
	}
	j->named = true;
	if (r->observe && (passes || j->n_forms == 0))
		first(&j->lenient, r);
	if (!rule_has_port(r, j->port) || !takes_request(j, r))
		return;
	consider(&j->can, r, rank);
	if (passes)
		consider(&j->may, r, rank);
}

/* A deny that has addresses alone; the earliest speaks for all. */
static void weigh_deny_span(struct judge *j, const struct rule *r)
{
	if (!rule_has_port(r, j->port) || !rule_holds(r, j->now))
		return;
	if (r->observe)
		watch(j, r, REASON_ADDRESS_DENIED);
	else if (!j->addr_deny ||
		 (!j->addr_deny->has_hosts && r < j->addr_deny))
		j->addr_deny = r;
}

static void on_deny_span(void *arg, const struct span *s)
{
	struct judge *j = arg;

	weigh_deny_span(j, &j->rs->rule[s->owner]);
}

/* Leading bits that all of the range share: the more, the narrower. */
static unsigned range_rank(const struct addr_range *r)
{
	unsigned bits = 0, bytes = r->lo.family == IP_V4 ? 4 : 16;
	unsigned skipped = 128 - 8 * bytes;

	for (unsigned i = 0; i < bytes; i++) {
		unsigned differ = r->lo.b[i] ^ r->hi.b[i];

		if (differ) {
			bits += (unsigned)__builtin_clz(differ) - 24;
			break;
		}
		bits += 8;
	}
	return skipped + bits;
}

static void on_allow_span(void *arg, const struct span *s)
{
	struct judge *j = arg;

	const struct rule *r = &j->rs->rule[s->owner];

	/* The span holds the address, and need not be looked for again. */
	weigh_allow(j, r, range_rank(&s->r), !j->by_itself || lets_pass(j, r));
}

static void walk_spans(struct judge *j, const struct span_tree *tree,
		       span_fn *fn)
{
	for (unsigned i = 0; i < j->n_forms; i++)
		span_tree_find(tree, &j->form[i], fn, j);
}

static enum reason class_or(const struct judge *j, enum reason otherwise)
{
	if (j->n_forms > 0 && j->klass != IP_PUBLIC)
		return ip_class_reason(j->klass);
	return otherwise;
}

static void name_rule(const struct ruleset *rs, const struct rule *r,
		      struct rules_answer *ret)
{
	/* A deny that is only observed sends nothing another way. */
	if (!r || !r->deny)
		ret->parent = r && r->parent ? r->parent : rs->parent;
	ret->rule = r ? r->name : NULL;
	ret->rule_number = r ? (size_t)(r - rs->rule) + 1 : 0;
	ret->file = r ? rs->file[r->source] : NULL;
	ret->line = r ? r->line : 0;
}

/* No allow takes the port: or would one, if its requests could be seen? */
static enum reason none_takes(const struct judge *j, enum reason otherwise,
			      const struct rule **ret_rule)
{
	if (j->not_in_rule) {
		*ret_rule = j->not_in_rule;
		return j->not_in;
	}
	if (j->unseen_allow) {
		*ret_rule = j->unseen_allow;
		return REASON_INSPECTION_REQUIRED;
	}
	return otherwise;
}

/* What denies that name methods or paths make of an allowed flow or request. */
static enum reason unless_shut(const struct judge *j, const struct rule *allow,
			       const struct rule **ret_rule)
{
	*ret_rule = allow;
	if (j->shut_rule) {
		*ret_rule = j->shut_rule;
		return j->shut;
	}
	if (j->unseen_deny && !rule_is_seen(allow, j->port)) {
		*ret_rule = j->unseen_deny;
		return REASON_INSPECTION_REQUIRED;
	}
	return REASON_ALLOWED;
}

static enum reason verdict_named(const struct judge *j,
				 const struct rule **ret_rule)
{
	*ret_rule = j->host_deny;
	if (j->host_deny)
		return REASON_HOST_DENIED;
	*ret_rule = j->addr_deny;
	if (j->addr_deny)
		return REASON_ADDRESS_DENIED;
	if (!j->named)
		return REASON_HOST_NOT_ALLOWED;
	*ret_rule = j->can.rule;
	if (!j->can.rule)
		return none_takes(j, REASON_PORT_NOT_ALLOWED, ret_rule);
	if (j->n_forms == 0 && !j->unresolved)
		return unless_shut(j, j->can.rule, ret_rule);
	if (!j->may.rule)
		return class_or(j, REASON_ADDRESS_NOT_ALLOWED);
	return unless_shut(j, j->may.rule, ret_rule);
}

/* Of a flow without a name. */
static enum reason verdict_literal(const struct judge *j,
				   const struct rule **ret_rule)
{
	*ret_rule = j->addr_deny ? j->addr_deny : j->host_deny;
	if (*ret_rule)
		return REASON_ADDRESS_DENIED;
	if (j->may.rule)
		return unless_shut(j, j->may.rule, ret_rule);
	*ret_rule = j->can.rule;
	if (!j->can.rule && (j->not_in_rule || j->unseen_allow))
		return none_takes(j, REASON_PORT_NOT_ALLOWED, ret_rule);
	/* POL-24: the class says more than that another port is open. */
	return class_or(j, j->named ? REASON_PORT_NOT_ALLOWED :
				      REASON_ADDRESS_NOT_ALLOWED);
}

/*
 * Observing: what would be refused for its name or port goes on, and is marked.
 * What its address forbids does not, even where the name was the first reason.
 */
static void observe(const struct judge *j, struct rules_answer *ret)
{
	if (j->addr_deny) {
		ret->reason = REASON_ADDRESS_DENIED;
		name_rule(j->rs, j->addr_deny, ret);
		return;
	}
	if (j->n_forms > 0 && j->klass != IP_PUBLIC && !j->may.rule) {
		ret->reason = ip_class_reason(j->klass);
		name_rule(j->rs, j->can.rule, ret);
		return;
	}
	if (j->port == 0)
		return;
	if (j->can.rule && j->can.rule->parent)
		ret->parent = j->can.rule->parent;
	ret->would_deny = true;
	ret->protocol = rules_protocol_by_port(j->port);
}

/* The allow whose end alone stands in the way, as far as it is known. */
static const struct rule *was_let_pass(const struct judge *j, bool literal)
{
	if (j->expired || literal || j->named)
		return j->expired;
	return j->ended;
}

/* Is it only this rule's own to refuse, whose refusals are let through? */
static bool is_lenient(const struct judge *j, enum reason why)
{
	switch ((int)why) {
	case REASON_PORT_NOT_ALLOWED:
	case REASON_METHOD_NOT_ALLOWED:
	case REASON_PATH_NOT_ALLOWED:
	case REASON_PATH_AMBIGUOUS:
	case REASON_INSPECTION_REQUIRED:
		return j->lenient && !j->shut_rule && !j->unseen_deny;
	default:
		return false;
	}
}

/* Rules that observe: what they would refuse goes on, and is marked. */
static void observe_rules(const struct judge *j, struct rules_answer *ret)
{
	if (ret->reason == REASON_ALLOWED && j->watched_deny) {
		ret->reason = j->watched_reason;
		ret->would_deny = true;
		name_rule(j->rs, j->watched_deny, ret);
	} else if (j->port != 0 && is_lenient(j, ret->reason)) {
		ret->would_deny = true;
		ret->protocol = rule_protocol(j->lenient, j->port);
		name_rule(j->rs, j->lenient, ret);
	}
}

/* Of no address it can be said that it lies in none of theirs. */
static void walk_unresolved(struct judge *j)
{
	const struct span_tree *spans = &j->rs->deny_spans;

	for (size_t i = 0; i < spans->n; i++)
		weigh_deny_span(j, &j->rs->rule[spans->span[i].owner]);
}

/* Does this allow let what is known of the address pass? */
static bool passes(const struct judge *j, const struct rule *r)
{
	return j->unresolved ? r->n_ranges == 0 :
			       j->n_forms > 0 && lets_pass(j, r);
}

static void walk(struct judge *j, struct str host)
{
	struct host_path path UNINITIALIZED;
	const struct rule *r;
	struct host_rules it;

	/* Without a name only "*" is found. */
	host_table_find(&j->rs->hosts, host, &path);
	host_rules_start(&it, j->rs, &path);
	while ((r = host_rules_next(&it))) {
		if (r->deny)
			weigh_deny(j, r);
		else
			weigh_allow(j, r, it.rank, passes(j, r));
	}
	if (j->unresolved)
		walk_unresolved(j);
	walk_spans(j, &j->rs->deny_spans, on_deny_span);
	if (str_empty(host))
		walk_spans(j, &j->rs->allow_spans, on_allow_span);
}

/* "ipv6 = off" holds for whatever may have the address, and when observing. */
static bool is_shut_family(const struct ruleset *rs, const struct ip_addr *addr)
{
	return addr && rs->dns.ipv6 == RULES_IPV6_OFF &&
	       ip_addr_unmapped(addr).family == IP_V6;
}

static void judge(const struct ruleset *rs, const struct rules_question *q,
		  struct seen_request *request, struct rules_answer *ret)
{
	const struct rule *decided = NULL, *was;
	bool literal = str_empty(q->host);
	struct judge j UNINITIALIZED;

	judge_start(&j, rs, q);
	j.request = request;
	*ret = (struct rules_answer){
		.reason = REASON_ADDRESS_NOT_ALLOWED, .klass = j.klass,
		.parent = rs->parent,
	};
	if (literal && j.n_forms == 0)
		return;			/* nothing was asked */
	if (is_shut_family(rs, q->addr)) {
		ret->reason = REASON_IPV6_OFF;
		return;
	}
	walk(&j, q->host);
	ret->reason = literal ? verdict_literal(&j, &decided) :
				verdict_named(&j, &decided);
	was = was_let_pass(&j, literal);
	if (ret->reason != REASON_ALLOWED && was &&
	    !(decided && decided->deny)) {
		ret->reason = REASON_RULE_EXPIRED;
		decided = was;
	}
	name_rule(rs, decided, ret);
	if (decided && !decided->deny)
		ret->protocol = rule_protocol(decided, q->port);
	observe_rules(&j, ret);
	if (ret->reason != REASON_ALLOWED && !ret->would_deny && rs->observe)
		observe(&j, ret);
}

void rules_judge(const struct ruleset *rs, const struct rules_question *q,
		 struct rules_answer *ret)
{
	judge(rs, q, NULL, ret);
}

void rules_judge_request(const struct ruleset *rs,
			 const struct rules_request *request,
			 struct rules_answer *ret)
{
	struct seen_request seen;

	seen_request_init(&seen, request);
	judge(rs, &request->flow, &seen, ret);
}

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
