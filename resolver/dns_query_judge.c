/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query_judge.c - what policy and local names say of a question
 */
#include "resolver/dns_query_own.h"

#include "base/clock.h"
#include "resolver/dns_local.h"

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
		dns_query_allow(q, REASON_ALLOWED);
		return;
	case DNS_LOCAL_PTR:
		q->result.ptr = l->ptr;
		dns_query_allow(q, REASON_ALLOWED);
		return;
	case DNS_LOCAL_NODATA:
		dns_query_allow(q, REASON_DNS_NO_ADDRESS);
		return;
	case DNS_LOCAL_NXDOMAIN:
		dns_query_end(q, DNS_NXDOMAIN, RECORD_ERROR,
			      REASON_DNS_NXDOMAIN);
		return;
	case DNS_LOCAL_SHUT:
	case DNS_LOCAL_NOT:
		break;
	}
	dns_query_deny(q, DNS_NXDOMAIN, REASON_HOST_NOT_ALLOWED);
}

enum rules_name_verdict dns_query_ask_rules(struct dns_query *q)
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

void dns_query_deny_name(struct dns_query *q, enum rules_name_verdict v)
{
	dns_query_deny(q, v == RULES_NAME_ANCESTOR ? DNS_NOERROR : DNS_NXDOMAIN,
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
	v = dns_query_ask_rules(q);
	if (v != RULES_NAME_ALLOWED)
		dns_query_deny_name(q, v);
	else if (q->q.type == DNS_TYPE_A || q->q.type == DNS_TYPE_AAAA)
		dns_query_resolve(q);
	else
		dns_query_deny(q, DNS_NOERROR, REASON_TYPE_NOT_ALLOWED);
}

void dns_query_judge(struct dns_query *q)
{
	const struct dns_question *m = &q->q;

	if (m->klass != DNS_CLASS_IN || type_is_refused(m->type))
		dns_query_deny(q, DNS_REFUSED, REASON_TYPE_NOT_ALLOWED);
	else if (m->text_n == 0)
		/* The root is there, whatever is below it. */
		dns_query_deny(q, DNS_NOERROR, REASON_TYPE_NOT_ALLOWED);
	else if (!m->plain ||
		 host_name_parse(dns_question_text(m), &q->host) != 0)
		dns_query_deny(q, DNS_NXDOMAIN, REASON_HOST_NOT_ALLOWED);
	else
		query_judge_plain(q);
}
