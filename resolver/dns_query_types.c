/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query_types.c - questions for records that are not addresses
 *
 * They are opened type by type (rules_name_types()), and asked and kept like
 * addresses.  What a record says goes on as it is read (dns_rdata.h), but for
 * the hints of SVCB and HTTPS, which are addresses: where real ones are given,
 * those that pass as the name's own do go on, and are pinned like them; else
 * none does.
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

struct hints {
	struct dns_query *q;
	size_t n;		/* of the door's @given */
};

static bool hint_passes(void *arg, const struct ip_addr *hint)
{
	struct hints *h = arg;

	if (h->n == RESOLVER_ADDRS_MAX || !dns_query_may_hint(h->q, hint))
		return false;
	h->q->door->given[h->n++] = *hint;
	return true;
}

/* The hints that may be given are left, and remembered before they are. */
static int sift(struct dns_query *q, const struct resolver_answer *a)
{
	struct buf *out = &q->door->sifted;
	struct str rest = a->rdata, one;
	struct hints h = { .q = q };
	int err = 0;

	buf_reset(out);
	while (!err && dns_rdata_next(&rest, &one)) {
		err = dns_svcb_filter(one, hint_passes, &h, out);
		/* What is left of it makes no sense. */
		err = err == -ENOENT ? 0 : err;
	}
	return err ? -ENOMEM : dns_query_pin_hints(q, h.n, a->ttl_s);
}

static void query_hand_on(struct dns_query *q, const struct resolver_answer *a)
{
	struct str records = a->rdata;
	int err = 0;

	if (q->q.type == DNS_TYPE_HTTPS || q->q.type == DNS_TYPE_SVCB) {
		err = sift(q, a);
		records = buf_str(&q->door->sifted);
	}
	if (err) {
		dns_query_deny_given(q, err);
		return;
	}
	q->result.records = records;
	dns_query_allow(q, str_empty(records) ? REASON_DNS_NO_ADDRESS :
						REASON_ALLOWED);
}

void dns_query_on_records(struct dns_query *q, const struct resolver_answer *a)
{
	if (a->reason == REASON_ALLOWED)
		query_hand_on(q, a);
	else if (a->reason == REASON_DNS_NO_ADDRESS)
		dns_query_allow(q, a->reason);
	else
		dns_query_end(q, a->reason == REASON_DNS_NXDOMAIN ?
			      DNS_NXDOMAIN : DNS_SERVFAIL, RECORD_ERROR,
			      a->reason);
}
