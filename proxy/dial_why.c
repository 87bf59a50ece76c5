/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial_why.c - of all that went wrong with a dial, what is told
 *
 * One reason reaches the program, and it must be the one by which a person finds
 * the mend.  From the most to the least useful:
 *
 *	what the network said of an address that was tried
 *		internal_error, descriptors_exceeded, memory_exceeded
 *					ours, whatever else was
 *		parent_auth_failed	the operator must give other credentials
 *		parent_refused		a parent was asked for exactly this, and
 *					said why
 *		connect_refused		the host is there and the port is not
 *		connect_timeout		somebody drops packets
 *		parent_protocol, parent_timeout, parent_unreachable
 *					the way there failed; of one address it
 *					says less than what another was told
 *		connect_failed		an errno of its own: a local firewall
 *		connect_unreachable	as ordinary as a host without IPv6
 *	what policy said of an address that was not (403)
 *	what the resolver said
 *		dns_nxdomain		the name itself is wrong
 *		limits of the run	nobody was asked
 *		dns_tls_failed, dns_timeout, dns_failed, dns_no_address
 *
 * So a name whose every address is refused by policy never looks like a DNS
 * failure, and one of which some address was tried never like a refusal.
 */
#include "proxy/dial_own.h"

static int net_rank(enum reason r)
{
	static const enum reason worth[] = {
		REASON_CONNECT_UNREACHABLE, REASON_CONNECT_FAILED,
		REASON_PARENT_UNREACHABLE, REASON_PARENT_TIMEOUT,
		REASON_PARENT_PROTOCOL, REASON_CONNECT_TIMEOUT,
		REASON_CONNECT_REFUSED, REASON_PARENT_REFUSED,
		REASON_PARENT_AUTH_FAILED, REASON_MEMORY_EXCEEDED,
		REASON_DESCRIPTORS_EXCEEDED, REASON_INTERNAL_ERROR,
	};
	unsigned i;

	for (i = 0; i < ARRAY_SIZE(worth); i++)
		if (worth[i] == r)
			return (int)i + 1;
	return 0;
}

void dial_why_failed(struct dial *d, enum reason r, unsigned status)
{
	if (net_rank(r) <= net_rank(d->net_reason))
		return;
	d->net_reason = r;
	d->net_status = status;
}

void dial_why_refused(struct dial *d, enum reason r, const struct ip_addr *addr,
		      const char *rule)
{
	if (d->policy_reason != REASON_ALLOWED)
		return;
	d->policy_reason = r;
	d->policy_addr = addr ? *addr : (struct ip_addr){ .family = IP_NONE };
	d->policy_rule = rule;
}

static bool is_ours(enum reason r)
{
	return reason_info(r)->kind == REASON_LIMIT ||
	       reason_info(r)->kind == REASON_POLICY;
}

static enum reason dns_reason(const struct dial *d)
{
	static const enum reason worth[] = {
		REASON_DNS_TLS_FAILED, REASON_DNS_TIMEOUT, REASON_DNS_FAILED,
	};
	enum reason a = d->queue[V4].reason, aaaa = d->queue[V6].reason;

	/* "No such name" is of the name; the rest may be one family's. */
	if (a == REASON_DNS_NXDOMAIN || aaaa == REASON_DNS_NXDOMAIN)
		return REASON_DNS_NXDOMAIN;
	/* Nobody was asked, since the run is over its budget. */
	if (is_ours(a) || is_ours(aaaa))
		return is_ours(a) ? a : aaaa;
	for (size_t i = 0; i < ARRAY_SIZE(worth); i++)
		if (a == worth[i] || aaaa == worth[i])
			return worth[i];
	return REASON_DNS_NO_ADDRESS;
}

enum reason dial_why(struct dial *d)
{
	if (d->net_reason != REASON_ALLOWED) {
		d->result.parent_status = d->net_status;
		return d->net_reason;
	}
	if (d->policy_reason != REASON_ALLOWED) {
		d->result.dst.addr = d->policy_addr;
		d->result.rule = d->policy_rule;
		return d->policy_reason;
	}
	return dns_reason(d);
}
