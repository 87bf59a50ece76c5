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
 *   from     to        by                  because
 *   JUDGE    REPLY     query_judge()       malformed, refused, or answered here
 *   JUDGE    LOOKUP    query_judge()       the policy allows the name
 *   LOOKUP   REPLY     query_on_answer()   the world answered
 *   LOOKUP   SIBLING   query_on_answer()   it depends on the other family
 *   SIBLING  REPLY     query_on_sibling()  that is known now
 *   LOOKUP   REPLY     query_rejudge()     the policy changed, and denies it
 *   SIBLING  JUDGE     query_rejudge()     the policy changed: all anew
 *
 * Policy comes first: a name that it denies leads to no packet.  What the world
 * says is filtered by the class of each address; if one is left, the answer is
 * the name's synthetic address, which is in the name map, and in the record,
 * before the reply leaves.  A question that cannot be recorded is not resolved.
 *
 * NXDOMAIN speaks of all types of a name: stubs (musl, systemd-resolved) give
 * the whole name up on it, and musl does so on an error too.  So when the
 * addresses of one family were all filtered, or AAAA failed, the other family
 * decides: as long as it has an address, this one is answered with NODATA.
 *
 *	verdict				rcode		act		reason
 *	type of questions only, NULL	REFUSED		deny		type_not_allowed
 *	class is not IN			REFUSED		deny		type_not_allowed
 *	another opcode			NOTIMP		deny		query_malformed
 *	denied name			NXDOMAIN	deny		host_...
 *	ancestor of an allowed name	NODATA		deny		host_not_allowed
 *	allowed name, other type	NODATA		deny		type_not_allowed
 *	all addresses filtered		NXDOMAIN (NODATA)  deny		address_...
 *	names used up			REFUSED		deny		names_exceeded
 *	too many wait			SERVFAIL	deny		queries_exceeded
 *	no record possible		SERVFAIL	deny		audit_unavailable
 *	the world says no		NXDOMAIN	error		dns_nxdomain
 *	the world has no such type	NODATA		allow		dns_no_address
 *	the world fails			SERVFAIL	error		dns_failed, ...
 */
#include "resolver/dns_query.h"

#include <assert.h>
#include <errno.h>

#include "audit/record.h"
#include "audit/writer.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "resolver/dns_door.h"
#include "resolver/dns_local.h"
#include "resolver/name_map.h"
#include "rules/rules.h"

#define QUERY_MAGIC	0x71756572u
/* Any reply of ours: one question, one record, SOA, OPT with a reason. */
#define REPLY_MAX	DNS_EDNS_SIZE

enum dns_query_state {
	DQ_JUDGE,
	DQ_LOOKUP,
	DQ_SIBLING,
	DQ_REPLY,

	DQ_STATES
};

static const struct {
	const char *name;
	unsigned next;		/* states that may follow, as bits */
} query_states[] = {
	[DQ_JUDGE]   = { "judge",   BIT(DQ_LOOKUP) | BIT(DQ_REPLY) },
	[DQ_LOOKUP]  = { "lookup",  BIT(DQ_SIBLING) | BIT(DQ_REPLY) },
	[DQ_SIBLING] = { "sibling", BIT(DQ_JUDGE) | BIT(DQ_REPLY) },
	[DQ_REPLY]   = { "reply",   0 },
};
static_assert(ARRAY_SIZE(query_states) == DQ_STATES, "name every state");

struct dns_result {
	enum dns_rcode rcode;
	enum record_act act;
	enum reason reason;
	bool internal;
	struct ip_addr addr;		/* family IP_NONE: none */
	struct dns_name ptr;		/* .n 0: none */
};

struct dns_query {
	unsigned magic;
	enum dns_query_state state;
	struct list node;		/* on door->queries while it waits */
	struct dns_door *door;
	struct dns_client client;
	struct dns_question q;
	struct host_name host;
	struct id id;
	int64_t start_ms;
	struct rules_answer verdict;	/* on the name */
	struct resolver_lookup *lookup;
	struct dns_result result;
};

static void query_run(struct dns_query *q);

static void query_check(const struct dns_query *q)
{
	REQUIRE(q->magic == QUERY_MAGIC);
	REQUIRE(!q->lookup);
	REQUIRE(q->state != DQ_LOOKUP || q->host.n > 0);
}

/* The only place a question changes state. */
static void query_set_state(struct dns_query *q, enum dns_query_state to)
{
	REQUIRE(query_states[q->state].next & BIT(to));
	log_debug("dns: %s: %s -> %s", q->q.text, query_states[q->state].name,
		  query_states[to].name);
	q->state = to;
	query_check(q);
}

/* --- results --------------------------------------------------------------- */

static void query_end(struct dns_query *q, enum dns_rcode rcode,
		      enum record_act act, enum reason reason)
{
	q->result.rcode = rcode;
	q->result.act = act;
	q->result.reason = reason;
	query_set_state(q, DQ_REPLY);
}

static void query_deny(struct dns_query *q, enum dns_rcode rcode,
		       enum reason reason)
{
	query_end(q, rcode, RECORD_DENY, reason);
}

/* What the policy let through, marked where it only observes. */
static void query_allow(struct dns_query *q, enum reason reason)
{
	if (q->verdict.would_deny)
		query_end(q, DNS_NOERROR, RECORD_WOULD_DENY,
			  q->verdict.reason);
	else
		query_end(q, DNS_NOERROR, RECORD_ALLOW, reason);
}

/* --- the record and the reply ---------------------------------------------- */

static void query_fill_record(const struct dns_query *q, const char *qtype,
			      struct record *ret)
{
	const struct dns_result *r = &q->result;
	bool has_addr = r->addr.family != IP_NONE;

	*ret = (struct record){
		.event = RECORD_DNS, .act = r->act, .reason = r->reason,
		.via = RECORD_VIA_DNS, .internal = r->internal, .id = q->id,
		.rule = q->verdict.rule,
		.host = q->host.n ? host_name_str(&q->host) :
				    dns_question_text(&q->q),
		.src = q->client.src, .asked = q->client.asked,
		.transport = q->client.tcp ? "tcp" : "udp",
		.qtype = q->q.has_question ? qtype : NULL,
		.rcode = (int)r->rcode,
		.answers = has_addr ? &r->addr : NULL, .nanswers = has_addr,
		.dur_ms = clock_mono_ms() - q->start_ms,
	};
}

/* RFC 8914: say why, where there is something to say. */
static int result_ede(const struct dns_result *r)
{
	int ede = reason_info(r->reason)->ede;

	return r->act != RECORD_ALLOW && r->act != RECORD_WOULD_DENY && ede ?
		ede : -1;
}

static size_t query_encode(const struct dns_query *q, uint8_t out[REPLY_MAX])
{
	const struct dns_result *r = &q->result;
	bool has_addr = r->addr.family != IP_NONE, has_ptr = r->ptr.n > 0;
	bool none = r->rcode == DNS_NOERROR && !has_addr && !has_ptr;
	struct dns_reply reply = {
		.rcode = r->rcode,
		.addr = &r->addr, .naddr = has_addr,
		.ptr = has_ptr ? &r->ptr : NULL,
		.ttl_s = DNS_DOOR_TTL_S,
		.soa = none || r->rcode == DNS_NXDOMAIN,
		.soa_ttl_s = DNS_DOOR_NEGATIVE_TTL_S,
		.ede = result_ede(r),
		.ede_text = str_from(reason_word(r->reason)),
	};

	return dns_reply_encode(&q->q, &reply, q->client.tcp ? REPLY_MAX :
				dns_question_udp_limit(&q->q), out);
}

static void query_send(struct dns_query *q)
{
	uint8_t out[REPLY_MAX];
	size_t n = query_encode(q, out);

	if (!q->client.tcp)
		dns_udp_reply(q->door, &q->client, out, n);
	else if (q->client.conn)
		dns_conn_reply(q->client.conn, &q->client.conn_node, out, n);
}

static void query_free(struct dns_query *q)
{
	REQUIRE(!q->lookup);
	list_del(&q->client.conn_node);
	q->magic = 0;
	mem_free(q);
}

/* Record first; what cannot be recorded is not answered. */
static void query_reply(struct dns_query *q)
{
	char type[DNS_TYPE_TEXT_SIZE];
	struct record record;

	query_fill_record(q, dns_type_text(q->q.type, type), &record);
	if (audit_post(q->door->sink, &record) != 0) {
		q->result = (struct dns_result){
			.rcode = DNS_SERVFAIL, .act = RECORD_DENY,
			.reason = REASON_AUDIT_UNAVAILABLE,
		};
	}
	query_send(q);
	query_free(q);
}

/* --- waiting for the world -------------------------------------------------- */

static void query_wait(struct dns_query *q)
{
	struct dns_door *d = q->door;

	list_add(&d->queries, &q->node);
	d->nqueries++;
	if (q->client.conn && list_empty(&q->client.conn_node))
		dns_conn_wait(q->client.conn, &q->client.conn_node);
}

static void query_wake(struct dns_query *q)
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

/**
 * query_ask() - Start a lookup
 * @ret_now:	set when the answer is known already
 * Return: 1 (known), 0 (@fn will be called) or -errno
 */
static int query_ask(struct dns_query *q, enum resolver_type type,
		     resolver_fn *fn, struct resolver_answer *ret_now)
{
	int err;

	if (q->door->nqueries >= DNS_QUERIES_MAX)
		return -EAGAIN;
	err = resolver_lookup(q->door->resolver, q->door->tenant,
			      host_name_str(&q->host), type, fn, q, &q->lookup,
			      ret_now);
	if (err == 0)
		query_wait(q);
	return err;
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
		query_deny(q, DNS_REFUSED, REASON_NAMES_EXCEEDED);
		return;
	}
	query_allow(q, REASON_ALLOWED);
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
		query_deny(q, lives || unknown ? DNS_NOERROR : DNS_NXDOMAIN,
			   q->result.reason);
	else
		query_end(q, lives ? DNS_NOERROR : DNS_SERVFAIL, RECORD_ERROR,
			  q->result.reason);
}

static void query_sibling_fn(void *arg, const struct resolver_answer *a)
{
	struct dns_query *q = arg;

	query_wake(q);
	query_on_sibling(q, a);
	query_run(q);
}

static void query_ask_sibling(struct dns_query *q, enum record_act act,
			      enum reason reason)
{
	struct resolver_answer now = { .reason = REASON_DNS_FAILED };
	enum resolver_type other = q->q.type == DNS_TYPE_A ? RESOLVER_AAAA :
							     RESOLVER_A;

	q->result.act = act;
	q->result.reason = reason;
	query_set_state(q, DQ_SIBLING);
	if (query_ask(q, other, query_sibling_fn, &now) != 0)
		query_on_sibling(q, &now);
}

static void query_on_answer(struct dns_query *q,
			    const struct resolver_answer *a)
{
	enum reason why = REASON_ADDRESS_NOT_ALLOWED;

	if (a->reason == REASON_ALLOWED) {
		if (any_passes(q, a, &why))
			query_give(q);
		else
			query_ask_sibling(q, RECORD_DENY, why);
	} else if (a->reason == REASON_DNS_NO_ADDRESS) {
		query_allow(q, a->reason);
	} else if (a->reason == REASON_DNS_NXDOMAIN) {
		query_end(q, DNS_NXDOMAIN, RECORD_ERROR, a->reason);
	} else if (q->q.type == DNS_TYPE_AAAA) {
		query_ask_sibling(q, RECORD_ERROR, a->reason);
	} else {
		query_end(q, DNS_SERVFAIL, RECORD_ERROR, a->reason);
	}
}

static void query_answer_fn(void *arg, const struct resolver_answer *a)
{
	struct dns_query *q = arg;

	query_wake(q);
	query_on_answer(q, a);
	query_run(q);
}

static void query_resolve(struct dns_query *q)
{
	struct resolver_answer now;
	int err;

	/* The record comes before the packet, so it must be possible. */
	if (!audit_ok(q->door->sink)) {
		query_deny(q, DNS_SERVFAIL, REASON_AUDIT_UNAVAILABLE);
		return;
	}
	query_set_state(q, DQ_LOOKUP);
	err = query_ask(q, q->q.type == DNS_TYPE_A ? RESOLVER_A : RESOLVER_AAAA,
			query_answer_fn, &now);
	if (err == 1)
		query_on_answer(q, &now);
	else if (err < 0)
		query_deny(q, DNS_SERVFAIL, lookup_fault(err));
}

/* --- judging --------------------------------------------------------------- */

/* Types that ask for no record of a name, or are a channel and nothing else. */
static bool type_is_refused(uint16_t type)
{
	return type == 0 || type == DNS_TYPE_OPT || type == DNS_TYPE_NULL ||
	       (type >= DNS_TYPE_META_FIRST && type <= DNS_TYPE_META_LAST);
}

static void query_on_local(struct dns_query *q, const struct dns_local *l)
{
	q->result.internal = l->self_test;
	switch (l->kind) {
	case DNS_LOCAL_ADDRESS:
		q->result.addr = l->addr;
		query_allow(q, REASON_ALLOWED);
		return;
	case DNS_LOCAL_PTR:
		q->result.ptr = l->ptr;
		query_allow(q, REASON_ALLOWED);
		return;
	case DNS_LOCAL_NODATA:
		query_allow(q, REASON_DNS_NO_ADDRESS);
		return;
	case DNS_LOCAL_NXDOMAIN:
		query_end(q, DNS_NXDOMAIN, RECORD_ERROR, REASON_DNS_NXDOMAIN);
		return;
	case DNS_LOCAL_SHUT:
	case DNS_LOCAL_NOT:
		break;
	}
	query_deny(q, DNS_NXDOMAIN, REASON_HOST_NOT_ALLOWED);
}

/* What does the policy say of the name? */
static enum rules_name_verdict query_ask_rules(struct dns_query *q)
{
	struct str host = host_name_str(&q->host);
	enum rules_name_verdict v;

	v = rules_judge_name(q->door->rules, host, clock_wall_s(),
			     &q->verdict);
	if (v == RULES_NAME_ALLOWED && q->verdict.would_deny &&
	    dns_local_hidden(host)) {
		q->verdict.would_deny = false;
		v = RULES_NAME_DENIED;
	}
	return v;
}

static void query_deny_name(struct dns_query *q, enum rules_name_verdict v)
{
	query_deny(q, v == RULES_NAME_ANCESTOR ? DNS_NOERROR : DNS_NXDOMAIN,
		   q->verdict.reason);
}

static void query_judge_plain(struct dns_query *q)
{
	const struct dns_door *d = q->door;
	const struct dns_local_names names = {
		.self_test = host_name_str(&d->self_test),
		.hostname = &d->hostname, .map = d->names, .rules = d->rules,
	};
	enum rules_name_verdict v;
	struct dns_local local;

	dns_local_find(&names, host_name_str(&q->host), q->q.type, &local);
	if (local.kind != DNS_LOCAL_NOT) {
		query_on_local(q, &local);
		return;
	}
	v = query_ask_rules(q);
	if (v != RULES_NAME_ALLOWED)
		query_deny_name(q, v);
	else if (q->q.type == DNS_TYPE_A || q->q.type == DNS_TYPE_AAAA)
		query_resolve(q);
	else
		query_deny(q, DNS_NOERROR, REASON_TYPE_NOT_ALLOWED);
}

static void query_judge(struct dns_query *q)
{
	const struct dns_question *m = &q->q;

	if (m->klass != DNS_CLASS_IN || type_is_refused(m->type))
		query_deny(q, DNS_REFUSED, REASON_TYPE_NOT_ALLOWED);
	else if (m->text_n == 0)
		/* The root is there, whatever is below it. */
		query_deny(q, DNS_NOERROR, REASON_TYPE_NOT_ALLOWED);
	else if (!m->plain ||
		 host_name_parse(dns_question_text(m), &q->host) != 0)
		query_deny(q, DNS_NXDOMAIN, REASON_HOST_NOT_ALLOWED);
	else
		query_judge_plain(q);
}

static void query_run(struct dns_query *q)
{
	for (;;) {
		switch (q->state) {
		case DQ_JUDGE:
			query_judge(q);
			break;
		case DQ_LOOKUP:
		case DQ_SIBLING:
			return;		/* a lookup will wake it */
		case DQ_REPLY:
			query_reply(q);
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
	struct dns_query *q = mem_new(sizeof(*q));
	enum dns_parse verdict;

	if (!q)
		return false;
	verdict = dns_question_parse(msg, n, &q->q);
	if (verdict == DNS_PARSE_DROP) {
		mem_free(q);
		return false;
	}
	q->magic = QUERY_MAGIC;
	q->door = d;
	q->client = *client;
	list_init(&q->node);
	list_init(&q->client.conn_node);
	id_new(&q->id);
	q->start_ms = clock_mono_ms();
	if (verdict != DNS_PARSE_OK)
		query_deny(q, rcodes[verdict], REASON_QUERY_MALFORMED);
	query_run(q);
	return true;
}

/* What one family came to was filtered by the old rules: then all anew. */
static void query_rejudge(struct dns_query *q)
{
	enum rules_name_verdict v = query_ask_rules(q);

	if (v == RULES_NAME_ALLOWED && q->state == DQ_LOOKUP)
		return;
	resolver_cancel(q->lookup);
	query_wake(q);
	q->result = (struct dns_result){ .internal = q->result.internal };
	if (v == RULES_NAME_ALLOWED)
		query_set_state(q, DQ_JUDGE);
	else
		query_deny_name(q, v);
	query_run(q);
}

void dns_query_rejudge_all(struct dns_door *d)
{
	struct list *it, *tmp;

	list_each(&d->queries, it, tmp)
		query_rejudge(container_of(it, struct dns_query, node));
}

void dns_query_drop_all(struct dns_door *d)
{
	char type[DNS_TYPE_TEXT_SIZE];
	struct record record;

	while (!list_empty(&d->queries)) {
		struct dns_query *q = list_first(&d->queries, struct dns_query,
						 node);

		resolver_cancel(q->lookup);
		query_wake(q);
		q->result = (struct dns_result){
			.act = RECORD_ERROR, .reason = REASON_RUN_ENDED,
		};
		query_fill_record(q, dns_type_text(q->q.type, type), &record);
		record.rcode = -1;
		audit_tell(d->sink, &record);
		query_free(q);
	}
}
