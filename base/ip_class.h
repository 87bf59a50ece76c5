/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ip_class.h - what kind of address it is, and whether we ever dial it
 *
 * Every class but IP_PUBLIC is refused, after resolution and for literals,
 * unless a rule excepts a range (rules/).  Forms of IPv6 that carry an IPv4
 * address (mapped, compatible, NAT64 64:ff9b::/96 and 64:ff9b:1::/48, 6to4,
 * Teredo, ISATAP) get the class of what they carry when that is worse than
 * public, and IP_RESERVED where the form itself must not be dialled
 * (mapped is unwrapped first; compatible ::/96 is never dialled).
 * Source: IANA special-purpose registries (RFC 6890 and updates).
 */
#ifndef BASE_IP_CLASS_H
#define BASE_IP_CLASS_H

#include "base/ip_addr.h"
#include "base/reason.h"

enum ip_class {
	IP_PUBLIC,
	IP_UNSPECIFIED,		/* 0.0.0.0/8, :: */
	IP_LOOPBACK,
	IP_PRIVATE,		/* RFC 1918, fc00::/7, fec0::/10 */
	IP_LINK_LOCAL,
	IP_METADATA,		/* the cloud metadata services, by address */
	IP_CGNAT,		/* 100.64.0.0/10 */
	IP_MULTICAST,
	IP_DOCUMENTATION,
	IP_BENCHMARK,		/* 198.18.0.0/15, 2001:2::/48 */
	IP_RESERVED,		/* 240/4, 192.0.0.0/24 and the rest */
	IP_HOST,		/* this host's own, or in an on-link prefix */

	IP_CLASSES
};

enum ip_class ip_classify(const struct ip_addr *a);	/* never IP_HOST */
/*
 * A class other than public that an address in @lo..@hi (one family) has, or
 * IP_PUBLIC when there is none.  ISATAP forms inside are not looked for.
 */
enum ip_class ip_classify_range(const struct ip_addr *lo,
				const struct ip_addr *hi);
/*
 * The networks that classes are made of, by index: at their ends, and nowhere
 * else, the class of plain addresses changes.  False behind the last.
 */
bool ip_class_block(size_t index, struct ip_net *ret);
const char *ip_class_name(enum ip_class c);	/* "link_local" */
enum reason ip_class_reason(enum ip_class c);	/* REASON_ALLOWED for public */

/*
 * What the host itself answers to, addresses and whole prefixes; the on-link
 * prefixes of its neighbours; and whether it reaches others by IPv6: an
 * immutable snapshot, made anew whenever rtnetlink says that something changed.
 */
struct ip_hosts {
	bool no_ipv6;		/* it has no IPv6 route to anywhere else */
	size_t n_own;		/* the first of them: the host's own */
	size_t n;
	struct ip_net net[];	/* each part by itself from ip_net_tidy() */
};

/* Of the host, or a neighbour's.  False for NULL @h. */
bool ip_hosts_has(const struct ip_hosts *h, const struct ip_addr *a);
/* Of the host itself: a connection to @a is one to it.  False for NULL @h. */
bool ip_hosts_own(const struct ip_hosts *h, const struct ip_addr *a);

/* ip_classify(), then IP_HOST for a public address that @hosts holds. */
enum ip_class ip_classify_here(const struct ip_addr *a,
			       const struct ip_hosts *hosts);

#endif /* BASE_IP_CLASS_H */
