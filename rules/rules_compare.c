/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_compare.c - what the rules of a policy are to each other
 *
 * Through the compiled ruleset: what a deny shuts for good, what another rule
 * already says, and (an error) where the protocol of a flow would hang on the
 * address, which is not known when the protocol must be.
 *
 * Comparing is bounded by PAIRS_MAX; a policy that needs more is refused, since
 * judging by it would be as slow.
 */
#include "rules/rules_ast.h"
#include "rules/ruleset.h"

#define PAIRS_MAX	(8u << 20)	/* comparisons of rules, or of ports */

#define RULE_FMT	"[%s %s]"
#define RULE_ARG(r)	(r)->deny ? "deny" : "allow", (r)->name

struct compare {
	const struct ruleset *rs;
	struct rules_report *report;
	unsigned pairs_left;
	bool gave_up;
};

static bool spend(struct compare *c)
{
	if (c->pairs_left > 0) {
		c->pairs_left--;
		return true;
	}
	if (!c->gave_up)
		report_error(c->report, (struct rules_place){ 0 },
			     "too many rules speak of the same hosts and "
			     "addresses; join some of them");
	c->gave_up = true;
	return false;
}

static struct rules_place place_of_rule(const struct rule *r)
{
	return (struct rules_place){ .source = r->source, .line = r->line };
}

static bool covers_ranges(struct compare *c, const struct rule *outer,
			  const struct rule *inner)
{
	if (outer->n_ranges == 0)
		return true;
	for (size_t i = 0, o = 0; i < inner->n_ranges; i++) {
		while (o < outer->n_ranges && spend(c) &&
		       ip_addr_cmp(&outer->range[o].hi,
				   &inner->range[i].hi) < 0)
			o++;
		if (o == outer->n_ranges ||
		    !addr_range_covers(&outer->range[o], &inner->range[i]))
			return false;
	}
	return inner->n_ranges > 0;
}

/* A port that both take with different protocols, or 0. */
static uint32_t torn_port(struct compare *c, const struct rule *a,
			  const struct rule *b)
{
	if (a->protocol == b->protocol)
		return 0;
	for (size_t i = 0; i < a->n_ports; i++) {
		for (size_t k = 0; k < b->n_ports; k++) {
			uint32_t lo = MAX(a->port[i].lo, b->port[k].lo);
			uint32_t hi = MIN(a->port[i].hi, b->port[k].hi);

			for (uint32_t p = lo; p <= hi && spend(c); p++) {
				if (rule_protocol(a, (uint16_t)p) !=
				    rule_protocol(b, (uint16_t)p))
					return p;
			}
			if (!spend(c))
				return 0;
		}
	}
	return 0;
}

/*
 * Of two allow rules for a host the one with addresses decides only after the
 * name is resolved; which protocol holds must be known before.
 */
static void check_torn(struct compare *c, const struct ast_host *h,
		       const struct rule *r, const struct rule *other,
		       bool same_host)
{
	char where[PLACE_SIZE];
	uint32_t port;

	if (r->n_ranges == 0 && other->n_ranges == 0 &&
	    (!same_host || r->own_ports != other->own_ports))
		return;
	port = torn_port(c, r, other);
	if (port == 0)
		return;
	place_text(c->report, place_of_rule(other), where);
	if (r->n_ranges == 0 && other->n_ranges == 0)
		report_warning(c->report, h->place,
			       RULE_FMT " gives port %u of a host another "
			       "protocol than " RULE_FMT " (%s), which stands "
			       "first and wins", RULE_ARG(r), (unsigned)port,
			       RULE_ARG(other), where);
	else
		report_error(c->report, h->place,
			     RULE_FMT " and " RULE_FMT " (%s) give port %u of "
			     "the same host different protocols (%s, %s), and "
			     "which holds would hang on the address; write one "
			     "'protocol' in both", RULE_ARG(r),
			     RULE_ARG(other), where, (unsigned)port,
			     rule_protocol(r, (uint16_t)port)->name,
			     rule_protocol(other, (uint16_t)port)->name);
}

static void start_hosts(struct host_rules *it, const struct compare *c,
			const struct ast_host *h)
{
	if (h->kind == HOST_EXACT)
		host_rules_start(it, c->rs, h->name);
	else
		host_rules_start_below(it, c->rs, h->name);
}

static void check_protocols(struct compare *c, const struct ast_host *h,
			    const struct rule *r)
{
	const struct rule *other;
	struct host_rules it;
	unsigned own_rank = 0;

	start_hosts(&it, c, h);
	while (spend(c) && (other = host_rules_next(&it))) {
		bool same_host;

		/* The walk begins with the rules that say the same host. */
		if (own_rank == 0)
			own_rank = it.rank;
		same_host = it.rank == own_rank;
		if (!other->deny && other != r && (!same_host || other < r))
			check_torn(c, h, r, other, same_host);
	}
}

/* Does @other permit all that @r does for a host that both speak of? */
static bool makes_pointless(struct compare *c, const struct rule *r,
			    const struct rule *other)
{
	if (r->deny != other->deny || !rule_covers_ports(other, r))
		return false;
	if (r->deny)
		return covers_ranges(c, other, r);
	/* Without addresses only public ones pass: others need their rule. */
	if ((other->n_ranges == 0) != (r->n_ranges == 0))
		return false;
	return covers_ranges(c, other, r) && torn_port(c, r, other) == 0;
}

static bool shuts(const struct rule *r, const struct rule *other)
{
	return !r->deny && other->deny && other->n_ranges == 0 &&
	       rule_covers_ports(other, r);
}

/* What other rules make of one pattern of a rule. */
struct standing {
	const struct rule *shut_by;	/* a deny */
	const struct rule *said_by;	/* one that says it already */
	bool said_here;			/* by another pattern of the rule */
};

static struct standing compare_host(struct compare *c,
				    const struct ast_host *h,
				    const struct rule *r)
{
	struct standing st = { 0 };
	const struct rule *other;
	struct host_rules it;
	unsigned own_rank = 0;

	start_hosts(&it, c, h);
	while (spend(c) && (other = host_rules_next(&it))) {
		bool wider;

		if (own_rank == 0)
			own_rank = it.rank;
		wider = it.rank < own_rank;
		if (other == r) {
			st.said_here |= wider;
			continue;
		}
		if (!st.shut_by && shuts(r, other))
			st.shut_by = other;
		/* Of two that say the same the later is the one too many. */
		if (!st.said_by && makes_pointless(c, r, other) &&
		    (wider || other < r || !makes_pointless(c, other, r)))
			st.said_by = other;
	}
	return st;
}

static void tell_host(struct compare *c, const struct ast_host *h,
		      const struct rule *r, const struct standing *st)
{
	char host[SHOWN_SIZE], where[PLACE_SIZE];
	const char *star = h->kind == HOST_BELOW ? "*." :
			   h->kind == HOST_ANY ? "*" : "";

	shown(h->name, host);
	if (st->shut_by)
		report_warning(c->report, h->place,
			       "'%s%s' in " RULE_FMT " can never be reached: "
			       RULE_FMT " (%s) denies it", star, host,
			       RULE_ARG(r), RULE_ARG(st->shut_by),
			       place_text(c->report,
					  place_of_rule(st->shut_by), where));
	else if (h->twice)
		report_warning(c->report, h->place,
			       "'%s%s' stands in " RULE_FMT " twice", star,
			       host, RULE_ARG(r));
	else if (st->said_here)
		report_warning(c->report, h->place,
			       "'%s%s' adds nothing: a wildcard in the same "
			       "rule covers it", star, host);
	else if (st->said_by)
		report_warning(c->report, h->place,
			       "'%s%s' in " RULE_FMT " adds nothing: " RULE_FMT
			       " (%s) covers it", star, host, RULE_ARG(r),
			       RULE_ARG(st->said_by),
			       place_text(c->report,
					  place_of_rule(st->said_by), where));
}

/* One message for a rule of which nothing is left, true when it was given. */
static bool tell_rule(struct compare *c, const struct rule *r,
		      const struct standing *st, bool all_shut, bool all_said)
{
	char where[PLACE_SIZE];

	if (all_shut)
		report_warning(c->report, place_of_rule(r),
			       RULE_FMT " can never match: " RULE_FMT
			       " (%s) denies all of it", RULE_ARG(r),
			       RULE_ARG(st->shut_by),
			       place_text(c->report,
					  place_of_rule(st->shut_by), where));
	else if (all_said)
		report_warning(c->report, place_of_rule(r),
			       RULE_FMT " adds nothing: " RULE_FMT
			       " (%s) covers it", RULE_ARG(r),
			       RULE_ARG(st->said_by),
			       place_text(c->report,
					  place_of_rule(st->said_by), where));
	return all_shut || all_said;
}

/*
 * Twice over the hosts of a rule: first to see whether all of them share their
 * fate, then to tell of each that does not.
 */
static void compare_hosts(struct compare *c, const struct ast_rule *ast,
			  const struct rule *r)
{
	struct standing st = { 0 }, common = { 0 };
	bool all_shut = true, all_said = true;

	for (const struct ast_host *h = ast->hosts; h; h = h->next) {
		if (!r->deny)
			check_protocols(c, h, r);
		st = compare_host(c, h, r);
		if (h == ast->hosts)
			common = st;
		all_shut = all_shut && st.shut_by &&
			   st.shut_by == common.shut_by;
		all_said = all_said && st.said_by &&
			   st.said_by == common.said_by;
	}
	if (tell_rule(c, r, &common, all_shut, all_said))
		return;
	for (const struct ast_host *h = ast->hosts; h; h = h->next) {
		if (c->gave_up)
			return;
		st = compare_host(c, h, r);
		tell_host(c, h, r, &st);
	}
}

/* Rules without hosts: all pairs of them, within the bound. */
static void compare_ranges(struct compare *c, const struct rule *r)
{
	struct standing st = { 0 };

	for (size_t i = 0; i < c->rs->n_rules && spend(c); i++) {
		const struct rule *other = &c->rs->rule[i];
		bool everyone = other->any_host && other->n_ranges == 0;

		if (other == r || (other->has_hosts && !everyone))
			continue;
		if (!st.shut_by && !r->deny && other->deny &&
		    rule_covers_ports(other, r) && covers_ranges(c, other, r))
			st.shut_by = other;
		if (!st.said_by && makes_pointless(c, r, other) &&
		    (other < r || !makes_pointless(c, other, r)))
			st.said_by = other;
	}
	tell_rule(c, r, &st, st.shut_by, st.said_by);
}

void rules_check_together(const struct rules_ast *ast,
			  const struct ruleset *rs,
			  struct rules_report *report)
{
	struct compare c = {
		.rs = rs, .report = report, .pairs_left = PAIRS_MAX,
	};
	const struct rule *r = rs->rule;

	for (const struct ast_rule *a = ast->rules; a && !c.gave_up;
	     a = a->next, r++) {
		if (a->hosts)
			compare_hosts(&c, a, r);
		else
			compare_ranges(&c, r);
	}
}
