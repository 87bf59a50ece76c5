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
#include "rules/rules_judge.h"

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
