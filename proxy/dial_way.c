/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial_way.c - may an address be dialled, and through which parent?
 *
 * The rules are asked when it is about to be, with the name, the port and this
 * host's own addresses as they are now.  The rule that answers says which parent
 * the connection goes through, and where that parent looks names up itself
 * (resolve = parent), the name is all that is sent: nobody is asked about it
 * here, no address is judged, and whatever a policy hangs on addresses neither
 * permits nor can be passed over.  An address is sent as it was judged.
 */
#include "proxy/dial_own.h"

#include "base/clock.h"
#include "proxy/own_doors.h"
#include "proxy/parents.h"
#include "resolver/resolver.h"

static struct rules_question question(const struct dial *d)
{
	return (struct rules_question){
		.host = host_name_str(&d->host),
		.port = d->c.port,
		.hosts = *d->c.hosts,
		.now = clock_wall_s(),
	};
}

/* The parent that @answer sends to; false: one that is not there. */
static bool pick(const struct dial *d, const struct rules_answer *answer,
		 const struct ip_addr *addr, const struct parent **ret)
{
	return parents_pick(d->c.parents, answer->parent,
			    host_name_str(&d->host), addr, ret) == 0;
}

bool dial_goes_by_name(const struct dial *d)
{
	const struct rules_question q = question(d);
	const struct parent *parent;
	struct rules_answer answer;

	if (d->host.n == 0 || !d->c.rules || !d->c.parents ||
	    d->c.parents->n == 0)
		return false;
	rules_judge(d->c.rules, &q, &answer);
	return rules_passes(&answer) && pick(d, &answer, NULL, &parent) &&
	       parent && parent->there;
}

bool dial_way_of(struct dial *d, const struct ip_addr *addr,
		 struct rules_answer *ret, struct dial_way *ret_way)
{
	struct rules_question q;
	enum reason why;

	*ret_way = (struct dial_way){ .there = !addr };
	*ret = (struct rules_answer){ .reason = REASON_ALLOWED };
	/* Whatever the rules say, where they merely observe, and of a parent. */
	if (addr && own_doors_have(d->c.doors, *d->c.hosts, addr, d->c.port)) {
		ret->reason = REASON_ADDRESS_SELF;
		dial_why_refused(d, ret->reason, addr, NULL);
		return false;
	}
	if (!d->c.rules)
		return true;	/* a parent's own: the operator's word */
	q = question(d);
	q.addr = addr;
	q.unresolved = !addr;
	rules_judge(d->c.rules, &q, ret);
	why = ret->reason;
	if (rules_passes(ret)) {
		if (!pick(d, ret, addr, &ret_way->parent))
			why = REASON_INTERNAL_ERROR;
		/* By the rule that would do without addresses, the name goes
		 * where nobody looks it up. */
		else if (!addr && !(ret_way->parent && ret_way->parent->there))
			why = REASON_ADDRESS_NOT_ALLOWED;
		else
			return true;
		*ret = (struct rules_answer){ .reason = why };
	}
	dial_why_refused(d, why, addr, ret->rule);
	return false;
}

bool dial_is_hidden(const struct dial *d)
{
	struct str host = host_name_str(&d->host);
	struct rules_answer answer;

	return d->c.rules && resolver_hides(host) &&
	       rules_judge_name(d->c.rules, host, clock_wall_s(), &answer) ==
		       RULES_NAME_ALLOWED && answer.would_deny;
}
