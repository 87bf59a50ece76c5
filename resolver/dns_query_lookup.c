/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query_lookup.c - asking the world, and what its answer comes to
 *
 * What the world says is filtered by the class of each address; if one is left,
 * the answer is the name's synthetic address, which is in the name map, and in
 * the record, before the reply leaves.
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

/* A question that must wait: what stood on the stack moves to the heap. */
static struct dns_query *query_keep(struct dns_query *q)
{
	struct dns_query *kept;

	if (q->kept)
		return q;
	kept = mem_new(sizeof(*kept));
	if (!kept)
		return NULL;
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
		d->tenant, host_name_str(&q->host), type,
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
		if (kept != q)
			mem_free(kept);
		return err;
	}
	query_wait(kept);
	if (kept != q)
		q->magic = 0;
	return 0;
}

/*
 * Does an address pass, on any port?  @ret_why tells of the first that did not.
 */
static bool any_passes(const struct dns_query *q,
		       const struct resolver_answer *a, enum reason *ret_why)
{
	bool said = false;

	for (size_t i = 0; i < a->n; i++) {
		struct rules_question question = {
			.host = host_name_str(&q->host), .addr = &a->addr[i],
			.hosts = *q->door->hosts,
			.now = clock_wall_s(),
		};
		struct rules_answer verdict;

		/* Ours are not the world's to give. */
		if (name_map_is_synthetic(&a->addr[i])) {
			verdict = (struct rules_answer){
				.reason = REASON_ADDRESS_RESERVED };
		} else {
			rules_judge_name_addr(q->door->rules, &question,
					      &verdict);
			if (rules_passes(&verdict))
				return true;
		}
		if (!said)
			*ret_why = verdict.reason;
		said = true;
	}
	return false;
}

static void query_give(struct dns_query *q)
{
	enum ip_family family = q->q.type == DNS_TYPE_A ? IP_V4 : IP_V6;

	if (name_map_give(q->door->names, host_name_str(&q->host), family,
			  &q->id, &q->result.addr) != 0) {
		dns_query_deny(q, DNS_REFUSED, REASON_NAMES_EXCEEDED);
		return;
	}
	dns_query_allow(q, REASON_ALLOWED);
}

void dns_query_stamp(struct dns_query *q)
{
	struct ip_addr same;

	if (name_map_is_synthetic(&q->result.addr))
		REQUIRE(name_map_give(q->door->names, host_name_str(&q->host),
				      (enum ip_family)q->result.addr.family,
				      &q->id, &same) == 0);
}

/* The other family is known: does the name live on in it? */
static void query_on_sibling(struct dns_query *q,
			     const struct resolver_answer *a)
{
	enum reason why;
	bool lives = a->reason == REASON_ALLOWED && any_passes(q, a, &why);
	bool unknown = reason_info(a->reason)->kind == REASON_NETWORK &&
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

	if (q->q.type != DNS_TYPE_A && q->q.type != DNS_TYPE_AAAA) {
		dns_query_on_records(q, a);
	} else if (a->reason == REASON_ALLOWED) {
		if (any_passes(q, a, &why))
			query_give(q);
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

void dns_query_resolve(struct dns_query *q)
{
	struct resolver_answer now;
	int err;

	/* The record comes before the packet, so it must be possible. */
	if (!audit_ok(q->door->sink)) {
		dns_query_deny(q, DNS_SERVFAIL, REASON_AUDIT_UNAVAILABLE);
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
