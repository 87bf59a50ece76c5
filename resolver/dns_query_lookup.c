/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query_lookup.c - asking the world, and what its answer comes to
 *
 * What the world says is filtered by the class of each address; if one is left,
 * the name is given its addresses (dns_query_give.c).
 *
 * NXDOMAIN speaks of all types of a name: stubs (musl, systemd-resolved) give
 * the whole name up on it, and musl does so on an error too.  So when the
 * addresses of one family were all filtered, or AAAA failed, the other family
 * decides: as long as it has an address, this one is answered with NODATA.
 */
#include "resolver/dns_query_own.h"

#include <errno.h>

#include "audit/writer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/mem_account.h"
#include "resolver/name_map.h"

/* --- waiting for the world -------------------------------------------------- */

static void query_wait(struct dns_query *q)
{
	struct dns_door *d = q->door;

	list_add(&d->queries, &q->node);
	d->nqueries++;
	if (q->client.conn && list_empty(&q->client.conn_node))
		dns_conn_wait(q->client.conn, &q->client.conn_node);
}

void dns_query_wake(struct dns_query *q)
{
	q->lookup = NULL;
	list_del(&q->node);
	q->door->nqueries--;
}

static enum reason lookup_fault(int err)
{
	if (err == -EAGAIN)
		return REASON_QUERIES_EXCEEDED;
	return err == -ENOMEM ? REASON_MEMORY_EXCEEDED : REASON_INTERNAL_ERROR;
}

/* Over the run's budget, or what no answer may lead to. */
static bool is_final(enum reason why)
{
	return reason_info(why)->kind == REASON_LIMIT ||
	       reason_info(why)->kind == REASON_POLICY;
}

/*
 * What is over for the whole run is said to be final: on SERVFAIL a stub asks
 * again, and its program perhaps for ever.  What may work in a second is not.
 */
static enum dns_rcode final_rcode(enum reason why)
{
	/* The name is there, and may have records of other types. */
	if (why == REASON_ALIAS_NOT_ALLOWED)
		return DNS_NOERROR;
	return why == REASON_QUERIES_EXCEEDED ||
	       why == REASON_MEMORY_EXCEEDED ? DNS_SERVFAIL : DNS_NXDOMAIN;
}

static void deny_for_good(struct dns_query *q, enum reason why)
{
	dns_query_deny(q, final_rcode(why), why);
}

/* A question that must wait: what stood on the stack moves to the heap. */
static struct dns_query *query_keep(struct dns_query *q)
{
	struct dns_query *kept;

	if (q->kept)
		return q;
	if (mem_account_take(q->door->owner, DNS_QUERY_MEMORY) !=
	    REASON_ALLOWED)
		return NULL;
	kept = mem_new(sizeof(*kept));
	if (!kept) {
		mem_account_give(q->door->owner, DNS_QUERY_MEMORY);
		return NULL;
	}
	*kept = *q;
	kept->kept = true;
	list_init(&kept->node);
	list_init(&kept->client.conn_node);
	return kept;
}

/**
 * query_ask() - Start a lookup, where the cache has no answer
 * @ret_now:	set when the answer is known already
 * Return: 1 (known), 0 (@q waits, or what was made of it does: @fn is called
 * with that, and @q is nothing any more) or -errno
 */
static int query_ask(struct dns_query *q, enum resolver_type type,
		     resolver_fn *fn, struct resolver_answer *ret_now)
{
	struct dns_door *d = q->door;
	const struct resolver_key key = {
		d->asker, host_name_str(&q->host), type,
	};
	struct dns_query *kept;
	int err;

	if (resolver_cached(d->resolver, &key, ret_now))
		return 1;
	if (d->nqueries >= DNS_QUERIES_MAX)
		return -EAGAIN;
	kept = query_keep(q);
	if (!kept)
		return -ENOMEM;
	err = resolver_start(d->resolver, &key, fn, kept, &kept->lookup);
	if (err) {
		if (kept != q) {
			mem_account_give(d->owner, DNS_QUERY_MEMORY);
			mem_free(kept);
		}
		if (err != -EDQUOT)
			return err;
		*ret_now = (struct resolver_answer){
			.reason = dns_budget_why(d->asker.budget) };
		return 1;
	}
	query_wait(kept);
	if (kept != q)
		q->magic = 0;
	return 0;
}

/* The other family is known: does the name live on in it? */
static void query_on_sibling(struct dns_query *q,
			     const struct resolver_answer *a)
{
	enum reason why;
	bool lives = a->reason == REASON_ALLOWED &&
		     dns_query_any_passes(q, a, &why);
	bool unknown = a->reason != REASON_ALLOWED &&
		       a->reason != REASON_DNS_NXDOMAIN &&
		       a->reason != REASON_DNS_NO_ADDRESS;

	/* q->result holds what this family came to. */
	if (q->result.act == RECORD_DENY)
		dns_query_deny(q, lives || unknown ? DNS_NOERROR : DNS_NXDOMAIN,
			       q->result.reason);
	else
		dns_query_end(q, lives ? DNS_NOERROR : DNS_SERVFAIL,
			      RECORD_ERROR, q->result.reason);
}

static void query_sibling_fn(void *arg, const struct resolver_answer *a)
{
	struct dns_query *q = arg;

	dns_query_wake(q);
	query_on_sibling(q, a);
	dns_query_run(q);
}

static void query_ask_sibling(struct dns_query *q, enum record_act act,
			      enum reason reason)
{
	struct resolver_answer now = { .reason = REASON_DNS_FAILED };
	enum resolver_type other = q->q.type == DNS_TYPE_A ? RESOLVER_AAAA :
							     RESOLVER_A;

	q->result.act = act;
	q->result.reason = reason;
	dns_query_set_state(q, DQ_SIBLING);
	if (other == RESOLVER_AAAA &&
	    !rules_has_ipv6(q->door->rules, *q->door->hosts))
		now.reason = REASON_DNS_NO_ADDRESS;
	else if (query_ask(q, other, query_sibling_fn, &now) == 0)
		return;
	query_on_sibling(q, &now);
}

static void query_on_answer(struct dns_query *q,
			    const struct resolver_answer *a)
{
	enum reason why = REASON_ADDRESS_NOT_ALLOWED;

	if (is_final(a->reason)) {
		deny_for_good(q, a->reason);
	} else if (q->q.type != DNS_TYPE_A && q->q.type != DNS_TYPE_AAAA) {
		dns_query_on_records(q, a);
	} else if (a->reason == REASON_ALLOWED) {
		if (dns_query_any_passes(q, a, &why))
			dns_query_give(q, a);
		else
			query_ask_sibling(q, RECORD_DENY, why);
	} else if (a->reason == REASON_DNS_NO_ADDRESS) {
		dns_query_allow(q, a->reason);
	} else if (a->reason == REASON_DNS_NXDOMAIN) {
		dns_query_end(q, DNS_NXDOMAIN, RECORD_ERROR, a->reason);
	} else if (q->q.type == DNS_TYPE_AAAA) {
		query_ask_sibling(q, RECORD_ERROR, a->reason);
	} else {
		dns_query_end(q, DNS_SERVFAIL, RECORD_ERROR, a->reason);
	}
}

static void query_answer_fn(void *arg, const struct resolver_answer *a)
{
	struct dns_query *q = arg;

	dns_query_wake(q);
	query_on_answer(q, a);
	dns_query_run(q);
}

/* Other types than addresses are asked for here, where a rule opens them. */
static bool is_elsewhere(const struct dns_query *q)
{
	const struct dns_door *d = q->door;

	return d->elsewhere &&
	       (q->q.type == DNS_TYPE_A || q->q.type == DNS_TYPE_AAAA) &&
	       d->elsewhere(d->elsewhere_arg, d->rules,
			    host_name_str(&q->host));
}

void dns_query_resolve(struct dns_query *q)
{
	struct resolver_answer now;
	int err;

	/* The record comes before the packet, so it must be possible. */
	if (!audit_ok(q->door->sink)) {
		dns_query_deny(q, DNS_SERVFAIL, REASON_AUDIT_UNAVAILABLE);
		return;
	}
	if (is_elsewhere(q)) {
		dns_query_give_stand_in(q);
		return;
	}
	dns_query_set_state(q, DQ_LOOKUP);
	err = query_ask(q, (enum resolver_type)q->q.type, query_answer_fn,
			&now);
	if (err == 1)
		query_on_answer(q, &now);
	else if (err < 0)
		dns_query_deny(q, DNS_SERVFAIL, lookup_fault(err));
}
