/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query_judge.c - what policy and local names say of a question
 */
#include "resolver/dns_query_own.h"

#include "base/clock.h"
#include "resolver/dns_judge.h"

static void query_on_local(struct dns_query *q, const struct dns_judgement *j)
{
	const struct dns_local *l = &j->local;

	q->result.internal = l->self_test;
	if (l->kind == DNS_LOCAL_ADDRESS)
		q->result.addr = l->addr;
	else if (l->kind == DNS_LOCAL_PTR)
		q->result.ptr = l->ptr;
	if (l->kind == DNS_LOCAL_SHUT)
		dns_query_deny(q, j->rcode, j->reason);
	else if (j->rcode == DNS_NOERROR)
		dns_query_allow(q, j->reason);
	else
		dns_query_end(q, j->rcode, RECORD_ERROR, j->reason);
}

enum rules_name_verdict dns_query_ask_rules(struct dns_query *q)
{
	return dns_judge_name(q->door->rules, host_name_str(&q->host),
			      clock_wall_s(), &q->verdict);
}

void dns_query_deny_name(struct dns_query *q, enum rules_name_verdict v)
{
	dns_query_deny(q, dns_judge_rcode(q->door->rules, v),
		       q->verdict.reason);
}

void dns_query_judge(struct dns_query *q)
{
	const struct dns_door *d = q->door;
	const struct dns_local_names names = {
		.self_test = host_name_str(&d->self_test),
		.hostname = &d->hostname, .map = d->names, .rules = d->rules,
		.hosts = *d->hosts,
	};
	struct dns_judgement j;
	enum dns_judge by = dns_judge(&names, &q->q, clock_wall_s(), &q->host,
				      &j);

	q->verdict = j.verdict;
	if (by == DNS_JUDGE_WORLD)
		dns_query_resolve(q);
	else if (by == DNS_JUDGE_NO_IPV6)
		dns_query_allow(q, j.reason);
	else if (by == DNS_JUDGE_LOCAL)
		query_on_local(q, &j);
	else
		dns_query_deny(q, j.rcode, j.reason);
}
