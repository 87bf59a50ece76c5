/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ruleset.c - what single rules say, and which speak of a host
 */
#include "rules/ruleset.h"

/* --- single rules --------------------------------------------------------- */

bool rule_has_port(const struct rule *r, uint16_t port)
{
	size_t lo = 0, hi = r->n_ports;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (port > r->port[mid].hi)
			lo = mid + 1;
		else if (port < r->port[mid].lo)
			hi = mid;
		else
			return true;
	}
	return false;
}

bool rule_denies_all(const struct rule *r)
{
	return r->deny && !r->observe && !rule_is_limited(r) &&
	       r->n_ranges == 0 && r->n_ports == 1 &&
	       r->port[0].lo <= 1 && r->port[0].hi == UINT16_MAX;
}

bool rule_covers_ports(const struct rule *outer, const struct rule *inner)
{
	size_t o = 0;

	for (size_t i = 0; i < inner->n_ports; i++) {
		while (o < outer->n_ports &&
		       outer->port[o].hi < inner->port[i].hi)
			o++;
		if (o == outer->n_ports ||
		    outer->port[o].lo > inner->port[i].lo)
			return false;
	}
	return true;
}

bool rule_has_addr(const struct rule *r, const struct ip_addr *a)
{
	size_t lo = 0, hi = r->n_ranges;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (ip_addr_cmp(a, &r->range[mid].hi) > 0)
			lo = mid + 1;
		else if (ip_addr_cmp(a, &r->range[mid].lo) < 0)
			hi = mid;
		else
			return true;
	}
	return false;
}

/* --- the rules that speak of a host --------------------------------------- */

void host_rules_start(struct host_rules *it, const struct ruleset *rs,
		      const struct host_path *path)
{
	it->rs = rs;
	it->path = path;
	it->exact_done = !path->whole;
	it->depth = path->whole ? path->n - 1 : path->n;
	it->any_done = false;
	it->n = 0;
	it->entry = NULL;
	it->rank = 0;
}

void host_rules_start_below(struct host_rules *it, const struct ruleset *rs,
			    const struct host_path *path)
{
	host_rules_start(it, rs, path);
	it->exact_done = true;
	it->depth = path->n;
}

/* Go to the next slice that may have rules; false behind the last. */
static bool next_slice(struct host_rules *it)
{
	const struct ruleset *rs = it->rs;
	const struct host_mark *mark;

	if (!it->exact_done) {
		mark = &rs->mark[it->path->mark[it->path->n - 1]];
		it->exact_done = true;
		it->entry = &rs->entry[mark->exact];
		it->n = mark->n_exact;
		it->rank = HOST_RANK_EXACT;
		return true;
	}
	if (it->depth > 0) {
		mark = &rs->mark[it->path->mark[it->depth - 1]];
		it->entry = &rs->entry[mark->below];
		it->n = mark->n_below;
		it->rank = it->depth--;
		return true;
	}
	if (!it->any_done) {
		it->any_done = true;
		it->entry = rs->any;
		it->n = rs->n_any;
		it->rank = 0;
		return true;
	}
	return false;
}

const struct rule *host_rules_next(struct host_rules *it)
{
	while (it->n == 0) {
		if (!next_slice(it))
			return NULL;
	}
	it->n--;
	return &it->rs->rule[*it->entry++];
}
