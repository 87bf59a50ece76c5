/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_doors.h - where this daemon itself listens, so that it never asks itself
 *
 * A proxy that dials its own listener, or a resolver that asks its own, goes
 * round until something runs out.  Made once at the start, never changed.
 */
#ifndef PROXY_OWN_DOORS_H
#define PROXY_OWN_DOORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/ip_class.h"

struct own_doors {
	size_t n;
	struct ip_endpoint at[];
};

/**
 * own_doors_have() - Would a connection to @addr and @port come back to us?
 * @d:		NULL has nothing
 * @hosts:	the host's own addresses, for listeners on all of them; or NULL
 * @addr:	the unspecified one is loopback, as the kernel has it
 */
bool own_doors_have(const struct own_doors *d, const struct ip_hosts *hosts,
		    const struct ip_addr *addr, uint16_t port);

#endif /* PROXY_OWN_DOORS_H */
