/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_compare.c - what the rules of a policy are to each other
 *
 * Through the compiled ruleset: what a deny shuts for good, what another rule
 * already says, and (an error) where the protocol of a flow would hang on the
 * address, which is not known when the protocol must be.
 *
 * What becomes of a host depends on the rules on its path alone, and a million
 * hosts of a list have few paths: it is kept for the paths met last.  Where no
 * name has two rules and no rule has a wildcard, nothing can be said of hosts.
 *
 * Comparing is bounded by PAIRS_MAX; a policy that needs more is refused, since
 * judging by it would be as slow.
 */
#include <errno.h>
#include <stdio.h>

#include "rules/host_list.h"
#include "rules/rules_ast.h"
#include "rules/ruleset.h"

#define PAIRS_MAX	(8u << 20)	/* comparisons of rules, or of ports */
#define MEMOS		256		/* paths that are kept */
#define MEMO_MARKS	6		/* on a path, or it is not kept */

#define RULE_FMT	"[%s %s]"
#define RULE_ARG(r)	(r)->deny ? "deny" : "allow", (r)->name

/* One host of a rule, out of the policy or of a list. */
struct member {
	enum host_pattern_kind kind;
	struct str name;		/* as long as the next is not asked for */
	struct rules_place place;
	bool twice;
};

/* What other rules make of it. */
struct fate {
	const struct rule *shut_by;	/* a deny */
	const struct rule *said_by;	/* one that says it already */
	bool said_here;			/* by another pattern of the rule */
	bool torn;			/* between protocols */
};

/* All that a fate hangs on. */
struct path_key {
	const struct rule *rule;
	enum host_pattern_kind kind;
	unsigned n;
	uint32_t mark[MEMO_MARKS];
};

struct memo {
	struct path_key key;
	struct fate fate;
};

struct compare {
	const struct ruleset *rs;
	struct rules_report *report;
	struct memo *memo;
	bool plain;			/* no two rules meet at any host */
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
 * name is resolved; which protocol holds must be known before.  A port that is
 * torn between them, or 0.
 */
static uint32_t torn_between(struct compare *c, const struct rule *r,
			     const struct rule *other, bool same_host)
{
	if (r->deny || other->deny || other == r || (same_host && other > r))
		return 0;
	if (r->n_ranges == 0 && other->n_ranges == 0 &&
	    (!same_host || r->own_ports != other->own_ports))
		return 0;
	return torn_port(c, r, other);
}

static void tell_torn(struct compare *c, const struct member *m,
		      const struct rule *r, const struct rule *other,
		      uint32_t port)
{
	char where[PLACE_SIZE];

	place_text(c->report, place_of_rule(other), where);
	if (r->n_ranges == 0 && other->n_ranges == 0)
		report_warning(c->report, m->place,
			       RULE_FMT " gives port %u of a host another "
			       "protocol than " RULE_FMT " (%s), which stands "
			       "first and wins", RULE_ARG(r), (unsigned)port,
			       RULE_ARG(other), where);
	else
		report_error(c->report, m->place,
			     RULE_FMT " and " RULE_FMT " (%s) give port %u of "
			     "the same host different protocols (%s, %s), and "
			     "which holds would hang on the address; write one "
			     "'protocol' in both", RULE_ARG(r),
			     RULE_ARG(other), where, (unsigned)port,
			     rule_protocol(r, (uint16_t)port)->name,
			     rule_protocol(other, (uint16_t)port)->name);
}

static bool share_port(const struct rule *a, const struct rule *b)
{
	for (size_t i = 0; i < a->n_ports; i++) {
		if (rule_has_port(b, a->port[i].lo))
			return true;
	}
	for (size_t i = 0; i < b->n_ports; i++) {
		if (rule_has_port(a, b->port[i].lo))
			return true;
	}
	return false;
}

/*
 * A request is judged when its address is not known, or is already dialled.  It
 * must not be allowed by one rule and go to an address that only another has.
 */
static bool part_requests(struct compare *c, const struct rule *r,
			  const struct rule *other, bool same_host)
{
	if (r->deny || other->deny || other == r || (same_host && other > r))
		return false;
	if ((!rule_is_limited(r) && !rule_is_limited(other)) ||
	    (r->n_ranges == 0 && other->n_ranges == 0) ||
	    !share_port(r, other))
		return false;
	return r->n_ranges == 0 || other->n_ranges == 0 ||
	       !covers_ranges(c, r, other) || !covers_ranges(c, other, r);
}

static void tell_parted(struct compare *c, const struct member *m,
			const struct rule *r, const struct rule *other)
{
	char where[PLACE_SIZE];

	report_error(c->report, m->place,
		     RULE_FMT " and " RULE_FMT " (%s) allow the same host with "
		     "different 'addresses', and one of them limits methods or "
		     "paths; write the same addresses in both", RULE_ARG(r),
		     RULE_ARG(other),
		     place_text(c->report, place_of_rule(other), where));
}

static void start_member(struct host_rules *it, const struct compare *c,
			 const struct member *m, const struct host_path *path)
{
	if (m->kind == HOST_EXACT)
		host_rules_start(it, c->rs, path);
	else
		host_rules_start_below(it, c->rs, path);
}

/* As long as @r holds, of every request, and not only to be observed? */
static bool always_speaks(const struct rule *other, const struct rule *r)
{
	return !other->observe && !rule_is_limited(other) &&
	       other->expires >= r->expires;
}

/* Does it say more of its flows than that they are permitted? */
static bool is_for_more(const struct rule *r)
{
	return r->bytes.up || r->bytes.down || r->times.idle_s ||
	       r->times.flow_s;
}

/* Does @other permit all that @r does for a host that both speak of? */
static bool makes_pointless(struct compare *c, const struct rule *r,
			    const struct rule *other)
{
	if (r->deny != other->deny || !rule_covers_ports(other, r) ||
	    !always_speaks(other, r) || r->observe || is_for_more(r))
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
	       rule_covers_ports(other, r) && always_speaks(other, r);
}

static struct fate find_fate(struct compare *c, const struct member *m,
			     const struct rule *r, const struct host_path *path)
{
	struct fate fate = { 0 };
	const struct rule *other;
	struct host_rules it;
	unsigned own_rank = 0;

	start_member(&it, c, m, path);
	while (spend(c) && (other = host_rules_next(&it))) {
		bool wider;

		/* The walk begins with the rules that say the same host. */
		if (own_rank == 0)
			own_rank = it.rank;
		wider = it.rank < own_rank;
		if (other == r) {
			fate.said_here |= wider;
			continue;
		}
		fate.torn |= torn_between(c, r, other, !wider) != 0 ||
			     part_requests(c, r, other, !wider);
		if (!fate.shut_by && shuts(r, other))
			fate.shut_by = other;
		/* Of two that say the same the later is the one too many. */
		if (!fate.said_by && makes_pointless(c, r, other) &&
		    (wider || other < r || !makes_pointless(c, other, r)))
			fate.said_by = other;
	}
	return fate;
}

/* The marks on the path that have a rule to say; false: more than are kept. */
static bool make_key(const struct compare *c, const struct member *m,
		     const struct rule *r, const struct host_path *path,
		     struct path_key *ret)
{
	*ret = (struct path_key){ .rule = r, .kind = m->kind };
	for (unsigned i = 0; i < path->n; i++) {
		const struct host_mark *mark = &c->rs->mark[path->mark[i]];

		if (mark->n_below == 0 && !(path->whole && i + 1 == path->n))
			continue;
		if (ret->n == MEMO_MARKS)
			return false;
		ret->mark[ret->n++] = path->mark[i];
	}
	return true;
}

static bool same_key(const struct path_key *a, const struct path_key *b)
{
	return a->rule == b->rule && a->kind == b->kind && a->n == b->n &&
	       memcmp(a->mark, b->mark, sizeof(a->mark)) == 0;
}

static struct memo *memo_of(const struct compare *c, const struct path_key *key)
{
	uint32_t at = (uint32_t)(key->rule - c->rs->rule) + key->kind;

	for (unsigned i = 0; i < key->n; i++)
		at = at * 0x9e3779b1u + key->mark[i];
	return &c->memo[(at ^ at >> 16) % MEMOS];
}

static struct fate fate_of(struct compare *c, const struct member *m,
			   const struct rule *r)
{
	struct host_path path UNINITIALIZED;
	struct path_key key;
	struct memo *memo;

	if (c->plain)
		return (struct fate){ 0 };
	host_table_find(&c->rs->hosts, m->name, &path);
	if (!make_key(c, m, r, &path, &key))
		return find_fate(c, m, r, &path);
	memo = memo_of(c, &key);
	if (!same_key(&memo->key, &key)) {
		memo->fate = find_fate(c, m, r, &path);
		memo->key = key;
	}
	return memo->fate;
}

static void tell_protocols(struct compare *c, const struct member *m,
			   const struct rule *r)
{
	struct host_path path UNINITIALIZED;
	const struct rule *other;
	struct host_rules it;
	unsigned own_rank = 0;

	host_table_find(&c->rs->hosts, m->name, &path);
	start_member(&it, c, m, &path);
	while (spend(c) && (other = host_rules_next(&it))) {
		uint32_t port;

		if (own_rank == 0)
			own_rank = it.rank;
		port = torn_between(c, r, other, it.rank == own_rank);
		if (port != 0)
			tell_torn(c, m, r, other, port);
		if (part_requests(c, r, other, it.rank == own_rank))
			tell_parted(c, m, r, other);
	}
}

static bool is_clean(const struct fate *f)
{
	return !f->shut_by && !f->said_by && !f->said_here;
}

/* @others: hosts of the same list of which the same is to be said. */
static void tell_member(struct compare *c, const struct member *m,
			const struct rule *r, const struct fate *fate,
			size_t others)
{
	char name[SHOWN_SIZE], host[SHOWN_SIZE + 64], where[PLACE_SIZE];
	const char *front = host_pattern_front(m->kind);
	int n;

	shown(m->name, name);
	if (others == 0)
		n = snprintf(host, sizeof(host), "'%s%s'", front, name);
	else
		n = snprintf(host, sizeof(host),
			     "'%s%s' (and %zu more of the list)", front, name,
			     others);
	REQUIRE(n > 0 && (size_t)n < sizeof(host));
	if (fate->shut_by)
		report_warning(c->report, m->place,
			       "%s in " RULE_FMT " can never be reached: "
			       RULE_FMT " (%s) denies it", host,
			       RULE_ARG(r), RULE_ARG(fate->shut_by),
			       place_text(c->report,
					  place_of_rule(fate->shut_by), where));
	else if (m->twice)
		report_warning(c->report, m->place,
			       "%s stands in " RULE_FMT " twice", host,
			       RULE_ARG(r));
	else if (fate->said_here)
		report_warning(c->report, m->place,
			       "%s adds nothing: a wildcard in the same rule "
			       "covers it", host);
	else if (fate->said_by)
		report_warning(c->report, m->place,
			       "%s in " RULE_FMT " adds nothing: " RULE_FMT
			       " (%s) covers it", host, RULE_ARG(r),
			       RULE_ARG(fate->said_by),
			       place_text(c->report,
					  place_of_rule(fate->said_by), where));
}

/* One message for a rule of which nothing is left, true when it was given. */
static bool tell_rule(struct compare *c, const struct rule *r,
		      const struct fate *st, bool all_shut, bool all_said)
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

/* --- all hosts of a rule -------------------------------------------------- */

static struct member member_of_host(const struct ast_host *h)
{
	return (struct member){
		.kind = h->kind, .name = h->name, .place = h->place,
		.twice = h->twice,
	};
}

struct list_walk {
	struct host_list reader;
	struct host_pattern pattern;
	uint16_t source;
};

static void list_walk_start(struct list_walk *w, const struct compare *c,
			    const struct ast_list *list, const struct rule *r)
{
	host_list_start(&w->reader, c->report->source[list->source].text,
			r->deny, true);
	w->source = list->source;
}

/* Its faults were told, and a list with any is not compared. */
static bool list_walk_next(struct list_walk *w, struct member *ret)
{
	if (host_list_next(&w->reader, &w->pattern) != LIST_HOST)
		return false;
	*ret = (struct member){
		.kind = w->pattern.kind,
		.place = { .source = w->source, .line = w->reader.line },
	};
	if (ret->kind != HOST_ANY)
		ret->name = host_name_str(&w->pattern.name);
	return true;
}

/* Do all hosts of a rule share one fate? */
struct shared {
	struct fate first;
	bool any, shut, said;
};

static void share(struct shared *s, const struct fate *fate)
{
	if (!s->any)
		*s = (struct shared){ *fate, true, true, true };
	s->shut = s->shut && fate->shut_by && fate->shut_by == s->first.shut_by;
	s->said = s->said && fate->said_by && fate->said_by == s->first.said_by;
}

static struct shared shared_fate(struct compare *c, const struct ast_rule *ast,
				 const struct rule *r)
{
	struct shared s = { .shut = true, .said = true };
	struct list_walk walk;
	struct member m;
	struct fate fate;

	for (const struct ast_host *h = ast->hosts; h && (s.shut || s.said);
	     h = h->next) {
		m = member_of_host(h);
		fate = fate_of(c, &m, r);
		share(&s, &fate);
	}
	for (const struct ast_list *l = ast->lists; l && !c->plain;
	     l = l->next) {
		list_walk_start(&walk, c, l, r);
		while ((s.shut || s.said) && list_walk_next(&walk, &m)) {
			fate = fate_of(c, &m, r);
			share(&s, &fate);
		}
	}
	s.shut &= s.any;
	s.said &= s.any;
	return s;
}

static void tell_hosts(struct compare *c, const struct ast_rule *ast,
		       const struct rule *r, bool told)
{
	for (const struct ast_host *h = ast->hosts; h && !c->gave_up;
	     h = h->next) {
		struct member m = member_of_host(h);
		struct fate fate = fate_of(c, &m, r);

		if (fate.torn)
			tell_protocols(c, &m, r);
		if (!told && (m.twice || !is_clean(&fate)))
			tell_member(c, &m, r, &fate, 0);
	}
}

/* The first host of a list of which something is to be said, and how many. */
struct tally {
	size_t n;
	struct member first;
	struct host_pattern pattern;	/* has its name */
	struct fate fate;
};

static void count(struct tally *t, const struct list_walk *walk,
		  const struct member *m, const struct fate *fate)
{
	if (t->n++ > 0)
		return;
	t->first = *m;
	t->fate = *fate;
	t->pattern = walk->pattern;
	if (m->kind != HOST_ANY)
		t->first.name = host_name_str(&t->pattern.name);
}

/* A list is told of once for each thing there is to say. */
static void tell_list(struct compare *c, const struct ast_list *list,
		      const struct rule *r, bool told)
{
	enum { SHUT, HERE, SAID, KINDS };
	struct tally tally[KINDS] = { { 0 } };
	struct list_walk walk;
	struct member m;

	list_walk_start(&walk, c, list, r);
	while (!c->gave_up && list_walk_next(&walk, &m)) {
		struct fate fate = fate_of(c, &m, r);

		if (fate.torn && c->report->errors <= RULES_DIAGS_MAX)
			tell_protocols(c, &m, r);
		if (!is_clean(&fate))
			count(&tally[fate.shut_by ? SHUT :
				     fate.said_here ? HERE : SAID], &walk, &m,
			      &fate);
	}
	for (size_t i = 0; i < KINDS && !told && !c->gave_up; i++) {
		if (tally[i].n > 0)
			tell_member(c, &tally[i].first, r, &tally[i].fate,
				    tally[i].n - 1);
	}
}

static void compare_hosts(struct compare *c, const struct ast_rule *ast,
			  const struct rule *r)
{
	struct shared s = shared_fate(c, ast, r);
	bool told = tell_rule(c, r, &s.first, s.shut, s.said);

	tell_hosts(c, ast, r, told);
	for (const struct ast_list *l = ast->lists; l && !c->plain; l = l->next)
		tell_list(c, l, r, told);
}

/* --- rules without hosts -------------------------------------------------- */

struct ranges_walk {
	struct compare *c;
	const struct rule *rule;
	struct fate fate;
};

/* Of those that say it the first in the policy is named. */
static void be_first(const struct rule **kept, const struct rule *r)
{
	if (!*kept || r < *kept)
		*kept = r;
}

static void weigh_other(struct ranges_walk *w, const struct rule *other)
{
	const struct rule *r = w->rule;
	struct compare *c = w->c;

	if (other == r || !spend(c))
		return;
	if (!r->deny && other->deny && rule_covers_ports(other, r) &&
	    always_speaks(other, r) && covers_ranges(c, other, r))
		be_first(&w->fate.shut_by, other);
	if (makes_pointless(c, r, other) &&
	    (other < r || !makes_pointless(c, other, r)))
		be_first(&w->fate.said_by, other);
}

static void on_span(void *arg, const struct span *s)
{
	struct ranges_walk *w = arg;

	weigh_other(w, &w->c->rs->rule[s->owner]);
}

/*
 * Whoever covers all of a rule's ranges has its first address too, so that only
 * the rules which have that are looked at, and those that deny everybody.
 */
static void compare_ranges(struct compare *c, const struct rule *r)
{
	struct ranges_walk w = { .c = c, .rule = r };
	const struct ruleset *rs = c->rs;

	span_tree_find(&rs->deny_spans, &r->range[0].lo, on_span, &w);
	if (!r->deny)
		span_tree_find(&rs->allow_spans, &r->range[0].lo, on_span, &w);
	for (size_t i = 0; i < rs->n_any && !c->gave_up; i++) {
		if (rs->rule[rs->any[i]].n_ranges == 0)
			weigh_other(&w, &rs->rule[rs->any[i]]);
	}
	tell_rule(c, r, &w.fate, w.fate.shut_by, w.fate.said_by);
}

/* Can no two rules meet at a host? */
static bool is_plain(const struct ruleset *rs)
{
	for (uint32_t i = 0; i < rs->n_marks; i++) {
		if (rs->mark[i].n_below > 0 || rs->mark[i].n_exact > 1)
			return false;
	}
	return rs->n_any == 0;
}

int rules_check_together(const struct rules_ast *ast, const struct ruleset *rs,
			 struct rules_report *report)
{
	struct compare c = {
		.rs = rs, .report = report, .pairs_left = PAIRS_MAX,
		.plain = is_plain(rs),
		.memo = arena_get_array(ast->arena, MEMOS, sizeof(struct memo)),
	};
	const struct rule *r = rs->rule;

	if (!c.memo)
		return -ENOMEM;
	for (const struct ast_rule *a = ast->rules; a && !c.gave_up;
	     a = a->next, r++) {
		if (a->hosts || a->lists)
			compare_hosts(&c, a, r);
		else
			compare_ranges(&c, r);
	}
	return 0;
}
