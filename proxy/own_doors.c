/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_doors.c - where this daemon itself listens, so that it never asks itself
 */
#include "proxy/own_doors.h"

/* What a listener on every address hears: addresses and whole prefixes. */
static bool is_local(const struct ip_addr *a, const struct ip_hosts *hosts)
{
	return ip_classify(a) == IP_LOOPBACK || ip_hosts_own(hosts, a);
}

/* Where the kernel connects to when it is asked for no address. */
static struct ip_addr meant(const struct ip_addr *addr)
{
	struct ip_addr a = ip_addr_unmapped(addr);
	bool none = a.family == IP_V4 ? ip_addr_v4_bits(&a) == 0 :
					ip_classify(&a) == IP_UNSPECIFIED;

	if (none && a.family == IP_V4)
		return ip_addr_v4(INADDR_LOOPBACK);
	if (none)
		a.b[15] = 1;
	return a;
}

bool own_doors_have(const struct own_doors *d, const struct ip_hosts *hosts,
		    const struct ip_addr *addr, uint16_t port)
{
	struct ip_addr a = meant(addr);
	size_t i;

	for (i = 0; d && i < d->n; i++) {
		const struct ip_endpoint *at = &d->at[i];

		if (at->port != port || at->addr.family != a.family)
			continue;
		if (ip_addr_eq(&at->addr, &a) ||
		    (ip_classify(&at->addr) == IP_UNSPECIFIED &&
		     is_local(&a, hosts)))
			return true;
	}
	return false;
}
