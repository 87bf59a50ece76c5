/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query_types.c - questions for records that are not addresses
 *
 * They are opened type by type (rules_name_types()), and asked and kept like
 * addresses.  What a record says goes on as it is read (dns_rdata.h), but for
 * the hints of SVCB and HTTPS: these are addresses, which a name has by A and
 * AAAA alone, where they are judged and remembered.
 */
#include "resolver/dns_query_own.h"

#include <errno.h>

#include "base/clock.h"
#include "resolver/dns_judge.h"
#include "resolver/dns_rdata.h"
#include "resolver/resolver.h"

bool dns_query_type_is_open(const struct dns_query *q)
{
	return dns_judge_type(q->door->rules, host_name_str(&q->host),
			      q->q.type, clock_wall_s());
}

static bool no_hint(void *arg, const struct ip_addr *hint)
{
	(void)arg;
	(void)hint;
	return false;
}

/* Those without their hints, and without those that make no sense then. */
static int sift(struct str records, struct buf *out)
{
	struct str one;
	int err = 0;

	buf_reset(out);
	while (!err && dns_rdata_next(&records, &one)) {
		err = dns_svcb_filter(one, no_hint, NULL, out);
		err = err == -ENOENT ? 0 : err;
	}
	return err;
}

static void query_hand_on(struct dns_query *q, struct str records)
{
	struct buf *sifted = &q->door->sifted;

	if (q->q.type == DNS_TYPE_HTTPS || q->q.type == DNS_TYPE_SVCB) {
		if (sift(records, sifted) != 0) {
			dns_query_deny(q, DNS_SERVFAIL, REASON_MEMORY_EXCEEDED);
			return;
		}
		records = buf_str(sifted);
	}
	q->result.records = records;
	dns_query_allow(q, str_empty(records) ? REASON_DNS_NO_ADDRESS :
						REASON_ALLOWED);
}

void dns_query_on_records(struct dns_query *q, const struct resolver_answer *a)
{
	if (a->reason == REASON_ALLOWED)
		query_hand_on(q, a->rdata);
	else if (a->reason == REASON_DNS_NO_ADDRESS)
		dns_query_allow(q, a->reason);
	else
		dns_query_end(q, a->reason == REASON_DNS_NXDOMAIN ?
			      DNS_NXDOMAIN : DNS_SERVFAIL, RECORD_ERROR,
			      a->reason);
}
