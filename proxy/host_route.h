/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_route.h - does this host reach the world by IPv6?
 */
#ifndef PROXY_HOST_ROUTE_H
#define PROXY_HOST_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"

/**
 * host_route_ipv6() - Ask the kernel for the way to a global address
 * @fd:		a non-blocking NETLINK_ROUTE socket with nothing to read
 * @seq:	of the question
 * @ret:	there is one, off this machine and from an address that others
 *		can answer to
 *
 * No packet leaves: it is a look into the tables.
 * Return: 0 or -errno
 */
NODISCARD int host_route_ipv6(int fd, uint32_t seq, bool *ret);

/* A prefix on a link of the host's that is a way by itself: global addresses,
 * more of them than the host's own one. */
bool host_route_is_global(const struct ip_addr *a, unsigned bits);

#endif /* PROXY_HOST_ROUTE_H */
