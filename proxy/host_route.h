/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_route.h - which routes lead to this host itself, and which to the world
 */
#ifndef PROXY_HOST_ROUTE_H
#define PROXY_HOST_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"

struct host_nets;

/* All of these look into the kernel's tables: no packet leaves.  @fd is one of
 * host_nl_open() with nothing to read; each question counts @seq up. */

/**
 * host_route_own() - Add what local routes make the host's own to @own
 * Return: 0, -EINTR when a change fell in between, or another -errno
 */
NODISCARD int host_route_own(int fd, uint32_t *seq, struct host_nets *own);

struct host_way {
	struct ip_addr to;	/* what was asked for: of no network */
	bool out;		/* off this machine, and from an address that
				 * others can answer to */
	bool self;		/* it is delivered to this host */
};

/**
 * host_route_far() - Ask for the way to where no particular network is
 * Return: 0 or -errno
 */
NODISCARD int host_route_far(int fd, uint32_t *seq, enum ip_family family,
			     struct host_way *ret);

/* A prefix on a link of the host's that is a way by itself: global addresses,
 * more of them than the host's own one. */
bool host_route_is_global(const struct ip_addr *a, unsigned bits);

#endif /* PROXY_HOST_ROUTE_H */
