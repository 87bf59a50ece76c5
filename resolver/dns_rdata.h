/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_rdata.h - records that are not addresses, as they may go on: pure
 *
 * Of a type that a policy opened, RDATA is read field by field and written anew,
 * names without compression and in lower case: what cannot be read does not
 * reach the sandbox.  Records stand one behind the other, each behind its length
 * in two bytes, in network order.
 */
#ifndef RESOLVER_DNS_RDATA_H
#define RESOLVER_DNS_RDATA_H

#include <stdbool.h>

#include "base/buf.h"
#include "resolver/dns_msg.h"

/* Of all records of one answer, with their lengths. */
#define DNS_RDATA_MAX	16384

/**
 * dns_rdata_add() - Append what a record says
 * @rr:		of NS, PTR, MX, TXT, SRV, CAA, SVCB or HTTPS
 * @out:	untouched on failure
 *
 * SVCB and HTTPS (RFC 9460) keep the parameters that are known to be harmless
 * (mandatory, alpn, no-default-alpn, port) and the address hints, which
 * dns_svcb_filter() is about.  Never ech, with which the name of a connection
 * could not be seen, nor what nobody has looked at yet.
 * Return: 0; -EBADMSG: malformed, or of another type; -ENOENT: nothing is left,
 * since what was left out is mandatory; -ENOSPC: more than @out may have
 */
NODISCARD int dns_rdata_add(struct buf *out, const uint8_t *msg, size_t n,
			    const struct dns_record *rr);

/* The next record; false at the end. */
bool dns_rdata_next(struct str *rest, struct str *ret);

typedef bool dns_hint_fn(void *arg, const struct ip_addr *hint);

/**
 * dns_svcb_filter() - Append a record with the hints that pass alone
 * @rdata:	as from dns_rdata_next()
 * @passes:	asked of each address
 * Return: 0; -ENOENT: hints are mandatory, and none is left; -ENOSPC
 */
NODISCARD int dns_svcb_filter(struct str rdata, dns_hint_fn *passes, void *arg,
			      struct buf *out);

#endif /* RESOLVER_DNS_RDATA_H */
