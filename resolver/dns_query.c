/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query.c - what becomes of one question
 *
 * Theory of operation
 * ===================
 *
 *	JUDGE ---> LOOKUP ---> SIBLING ---> REPLY
 *	  |          |                        ^
 *	  +----------+------------------------+
 *
 *   from     to        by                      because
 *   JUDGE    REPLY     dns_query_judge()       malformed, refused, or answered here
 *   JUDGE    LOOKUP    dns_query_resolve()     the policy allows the name
 *   LOOKUP   REPLY     query_on_answer()       the world answered
 *   LOOKUP   SIBLING   query_on_answer()       it depends on the other family
 *   SIBLING  REPLY     query_on_sibling()      that is known now
 *   LOOKUP   REPLY     query_rejudge()         the policy changed, and denies it
 *   LOOKUP   JUDGE     query_rejudge()         the same, its type alone
 *   SIBLING  JUDGE     query_rejudge()         the policy changed: all anew
 *
 * Policy comes first: a name that it denies leads to no packet.  A question
 * that cannot be recorded is not resolved.
 *
 *	verdict				rcode		act		reason
 *	type of questions only, NULL	REFUSED		deny		type_not_allowed
 *	class is not IN			REFUSED		deny		type_not_allowed
 *	another opcode			NOTIMP		deny		query_malformed
 *	denied name			NXDOMAIN (REFUSED)  deny	host_...
 *	ancestor of an allowed name	NODATA		deny		host_not_allowed
 *	allowed name, other type	NODATA		deny		type_not_allowed
 *	all addresses filtered		NXDOMAIN (NODATA)  deny		address_...
 *	names used up			REFUSED		deny		names_exceeded
 *	over a budget of the run	NXDOMAIN	deny		names_exceeded, ...
 *	an alias of an inner name	NODATA		deny		alias_not_allowed
 *	too many a second		SERVFAIL	deny		queries_exceeded
 *	too many wait			SERVFAIL	deny		queries_exceeded
 *	no record possible		SERVFAIL	deny		audit_unavailable
 *	the world says no		NXDOMAIN	error		dns_nxdomain
 *	the world has no such type	NODATA		allow		dns_no_address
 *	the world fails			SERVFAIL	error		dns_failed, ...
 */
#include "resolver/dns_query_own.h"

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"

static const struct {
	const char *name;
	unsigned next;		/* states that may follow, as bits */
} query_states[] = {
	[DQ_JUDGE]   = { "judge",   BIT(DQ_LOOKUP) | BIT(DQ_REPLY) },
	[DQ_LOOKUP]  = { "lookup",  BIT(DQ_JUDGE) | BIT(DQ_SIBLING) |
				    BIT(DQ_REPLY) },
	[DQ_SIBLING] = { "sibling", BIT(DQ_JUDGE) | BIT(DQ_REPLY) },
	[DQ_REPLY]   = { "reply",   0 },
};
static_assert(ARRAY_SIZE(query_states) == DQ_STATES, "name every state");

static void query_check(const struct dns_query *q)
{
	REQUIRE(q->magic == DNS_QUERY_MAGIC);
	REQUIRE(!q->lookup);
	REQUIRE(q->state != DQ_LOOKUP || q->host.n > 0);
}

void dns_query_set_state(struct dns_query *q, enum dns_query_state to)
{
	REQUIRE(query_states[q->state].next & BIT(to));
	log_debug("dns: %s: %s -> %s", q->q.text, query_states[q->state].name,
		  query_states[to].name);
	q->state = to;
	query_check(q);
}

void dns_query_end(struct dns_query *q, enum dns_rcode rcode,
		   enum record_act act, enum reason reason)
{
	q->result.rcode = rcode;
	q->result.act = act;
	q->result.reason = reason;
	dns_query_set_state(q, DQ_REPLY);
}

void dns_query_deny(struct dns_query *q, enum dns_rcode rcode,
		    enum reason reason)
{
	dns_query_end(q, rcode, RECORD_DENY, reason);
}

void dns_query_allow(struct dns_query *q, enum reason reason)
{
	if (q->verdict.would_deny)
		dns_query_end(q, DNS_NOERROR, RECORD_WOULD_DENY,
			      q->verdict.reason);
	else
		dns_query_end(q, DNS_NOERROR, RECORD_ALLOW, reason);
}

void dns_query_run(struct dns_query *q)
{
	for (;;) {
		switch (q->state) {
		case DQ_JUDGE:
			dns_query_judge(q);
			break;
		case DQ_LOOKUP:
		case DQ_SIBLING:
			return;		/* a lookup will wake it */
		case DQ_REPLY:
			dns_query_reply(q);
			return;
		case DQ_STATES:
			REQUIRE(false);
		}
	}
}

bool dns_query_start(struct dns_door *d, const uint8_t *msg, size_t n,
		     const struct dns_client *client)
{
	static const enum dns_rcode rcodes[] = {
		[DNS_PARSE_FORMERR] = DNS_FORMERR,
		[DNS_PARSE_NOTIMP] = DNS_NOTIMP,
		[DNS_PARSE_BADVERS] = DNS_BADVERS,
	};
	struct dns_query q = { .magic = DNS_QUERY_MAGIC, .door = d };
	enum dns_parse verdict = dns_question_parse(msg, n, &q.q);

	if (verdict == DNS_PARSE_DROP)
		return false;
	q.client = *client;
	list_init(&q.node);
	list_init(&q.client.conn_node);
	dns_query_identify(&q);
	q.start_ms = clock_mono_ms();
	if (verdict != DNS_PARSE_OK)
		dns_query_deny(&q, rcodes[verdict], REASON_QUERY_MALFORMED);
	dns_query_run(&q);
	return true;
}

/* What one family came to was filtered by the old rules: then all anew. */
static void query_rejudge(struct dns_query *q)
{
	enum rules_name_verdict v = dns_query_ask_rules(q);

	if (v == RULES_NAME_ALLOWED && q->state == DQ_LOOKUP &&
	    dns_query_type_is_open(q))
		return;
	if (v == RULES_NAME_ALLOWED)
		resolver_cancel(q->lookup);
	else
		resolver_abandon(q->lookup);
	dns_query_wake(q);
	q->result = (struct dns_result){ .internal = q->result.internal };
	if (v == RULES_NAME_ALLOWED)
		dns_query_set_state(q, DQ_JUDGE);
	else
		dns_query_deny_name(q, v);
	dns_query_run(q);
}

void dns_query_rejudge_all(struct dns_door *d)
{
	struct list *it, *tmp;

	list_each(&d->queries, it, tmp)
		query_rejudge(container_of(it, struct dns_query, node));
}

void dns_query_drop_all(struct dns_door *d)
{
	while (!list_empty(&d->queries)) {
		struct dns_query *q = list_first(&d->queries, struct dns_query,
						 node);

		resolver_cancel(q->lookup);
		dns_query_wake(q);
		dns_query_drop(q);
	}
}
