/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query_reply.c - the end of a question: its record, then its reply
 */
#include "resolver/dns_query_own.h"

#include <assert.h>

#include "audit/writer.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/mem_account.h"

/*
 * Any reply of ours: one question, and then an SOA, or the addresses of an
 * answer (compressed owner, head, 16 bytes) at the most; OPT with a reason.
 */
#define REPLY_MAX	(DNS_HEADER_SIZE + DNS_NAME_MAX + 4 + \
			 RESOLVER_ADDRS_MAX * (12 + 16) + \
			 11 + 6 + DNS_EDE_TEXT_MAX)
static_assert(REPLY_MAX >= DNS_EDNS_SIZE, "whatever UDP may carry fits");

struct addrs {
	const struct ip_addr *p;
	size_t n;
};

static struct addrs result_addrs(const struct dns_result *r)
{
	if (r->ngiven > 0)
		return (struct addrs){ r->given, r->ngiven };
	return (struct addrs){ &r->addr, r->addr.family != IP_NONE };
}

static void query_fill_record(const struct dns_query *q, const char *qtype,
			      struct record *ret)
{
	const struct dns_result *r = &q->result;
	struct addrs addrs = result_addrs(r);

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
		.answers = addrs.p, .nanswers = addrs.n,
		.dur_ms = q->kept ? clock_mono_ms() - q->start_ms : 0,
	};
}

/* RFC 8914: say why, where there is something to say. */
static int result_ede(const struct dns_result *r)
{
	int ede = reason_info(r->reason)->ede;

	return r->act != RECORD_ALLOW && r->act != RECORD_WOULD_DENY && ede ?
		ede : -1;
}

static size_t query_encode(const struct dns_query *q, size_t limit,
			   uint8_t *out)
{
	const struct dns_result *r = &q->result;
	struct addrs addrs = result_addrs(r);
	bool has_ptr = r->ptr.n > 0;
	bool none = r->rcode == DNS_NOERROR && addrs.n == 0 && !has_ptr &&
		    str_empty(r->records);
	struct dns_reply reply = {
		.rcode = r->rcode,
		.addr = addrs.p, .naddr = addrs.n,
		.ptr = has_ptr ? &r->ptr : NULL,
		.records = r->records,
		.ttl_s = DNS_DOOR_TTL_S,
		.soa = none || r->rcode == DNS_NXDOMAIN,
		.soa_ttl_s = DNS_DOOR_NEGATIVE_TTL_S,
		.ede = result_ede(r),
		.ede_text = str_from(reason_word(r->reason)),
	};

	return dns_reply_encode(&q->q, &reply, limit, out);
}

/* Records of other types than addresses may take as much as a message does. */
static void query_send_long(struct dns_query *q)
{
	CLEANUP(mem_freep) uint8_t *out = mem_new(DNS_MSG_MAX);
	uint8_t small[REPLY_MAX];
	size_t n = out ? query_encode(q, DNS_MSG_MAX, out) :
			 query_encode(q, REPLY_MAX, small);

	dns_conn_reply(q->client.conn, &q->client.conn_node, out ? out : small,
		       n);
}

static void query_send(struct dns_query *q)
{
	size_t limit = q->client.tcp ? REPLY_MAX :
				       dns_question_udp_limit(&q->q);
	uint8_t out[REPLY_MAX];

	if (!q->client.tcp)
		dns_udp_reply(q->door, &q->client, out,
			      query_encode(q, limit, out));
	else if (q->client.conn && q->result.records.n > 0)
		query_send_long(q);
	else if (q->client.conn)
		dns_conn_reply(q->client.conn, &q->client.conn_node, out,
			       query_encode(q, limit, out));
}

/* It is over with it. */
static void query_free(struct dns_query *q)
{
	REQUIRE(!q->lookup);
	list_del(&q->client.conn_node);
	q->magic = 0;
	if (!q->kept)
		return;
	mem_account_give(q->door->owner, DNS_QUERY_MEMORY);
	mem_free(q);
}

void dns_query_reply(struct dns_query *q)
{
	char type[DNS_TYPE_TEXT_SIZE];
	struct record record;

	query_fill_record(q, dns_type_text(q->q.type, type), &record);
	if (dns_query_record(q, &record) != 0) {
		q->result = (struct dns_result){
			.rcode = DNS_SERVFAIL, .act = RECORD_DENY,
			.reason = REASON_AUDIT_UNAVAILABLE,
		};
	}
	query_send(q);
	query_free(q);
}

void dns_query_drop(struct dns_query *q)
{
	char type[DNS_TYPE_TEXT_SIZE];
	struct record record;

	q->result = (struct dns_result){
		.act = RECORD_ERROR, .reason = REASON_RUN_ENDED,
	};
	dns_query_own_id(q);
	query_fill_record(q, dns_type_text(q->q.type, type), &record);
	record.rcode = -1;
	audit_tell(q->door->sink, &record);
	query_free(q);
}
