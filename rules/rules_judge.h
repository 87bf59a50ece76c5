/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_judge.h - one question while it is judged, and what single rules say
 *
 * For rules_match.c, which judges flows, and rules_name.c, which judges names.
 * Inline, since a decision takes as long as some tens of calls.
 */
#ifndef RULES_RULES_JUDGE_H
#define RULES_RULES_JUDGE_H

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

static inline bool names_itself(const struct rule *r, const struct ip_addr *a)
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

static inline bool in_ranges(const struct judge *j, const struct rule *r)
{
	for (unsigned i = 0; i < j->n_forms; i++) {
		if (rule_has_addr(r, &j->form[i]))
			return true;
	}
	return false;
}

/* Does this allow let the address pass? */
static inline bool lets_pass(const struct judge *j, const struct rule *r)
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

static inline void first(const struct rule **kept, const struct rule *r)
{
	if (!*kept)
		*kept = r;
}

/* --- one question --------------------------------------------------------- */

static inline bool is_nat64(const struct ip_addr *a)
{
	static const uint8_t prefix[12] = { 0x00, 0x64, 0xff, 0x9b };

	return a->family == IP_V6 && memcmp(a->b, prefix, sizeof(prefix)) == 0;
}

/*
 * One of this host's own addresses, and not merely a neighbour's: whoever
 * excepts 10.0.0.0/8 means the services there, not what listens on this host.
 */
static inline bool is_own(const struct judge *j, const struct ip_hosts *hosts)
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
static inline void judge_clear(struct judge *j, const struct ruleset *rs,
			       int64_t now)
{
	const size_t half = offsetof(struct judge, host_deny);

	memset(j, 0, half);
	memset((char *)j + half, 0, sizeof(*j) - half);
	j->rs = rs;
	j->now = now;
	j->klass = IP_PUBLIC;
}

static inline void judge_start(struct judge *j, const struct ruleset *rs,
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

/* "ipv6 = off" holds for whatever may have the address, and when observing. */
static inline bool is_shut_family(const struct ruleset *rs,
				  const struct ip_addr *addr)
{
	return addr && rs->dns.ipv6 == RULES_IPV6_OFF &&
	       ip_addr_unmapped(addr).family == IP_V6;
}

/* --- the answer ----------------------------------------------------------- */

static inline void name_rule(const struct ruleset *rs, const struct rule *r,
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

#endif /* RULES_RULES_JUDGE_H */
