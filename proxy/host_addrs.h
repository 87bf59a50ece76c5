/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_addrs.h - the addresses of this host, kept current by rtnetlink
 *
 * Every local address and each prefix that a route of type local makes the
 * host's own, the on-link prefixes of all interfaces but loopback, and whether
 * there is a way to the world by IPv6: the kernel has a route to global
 * addresses, or a network of them is on a link.  All of it as immutable
 * snapshots.  Lives on the main thread; workers get a snapshot each by mail and
 * drop the one before.
 */
#ifndef PROXY_HOST_ADDRS_H
#define PROXY_HOST_ADDRS_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/ip_class.h"

struct event_base;
struct host_addrs;
struct worker;

/* Two looks at the kernel's tables are at least this far apart. */
#define HOST_ADDRS_GAP_MS	50

/* Opens its sockets and takes the first snapshot; before the seal. */
NODISCARD int host_addrs_new(struct host_addrs **ret);
void host_addrs_free(struct host_addrs *h);	/* after its workers */

/**
 * host_addrs_start() - Give @worker the snapshot, now and after each change
 * @worker:	@n of them, borrowed, not started yet
 */
NODISCARD int host_addrs_start(struct host_addrs *h, struct event_base *base,
			       struct worker *const *worker, size_t n);

/* Takes back the snapshot of a worker whose thread has ended. */
void host_addrs_release(struct worker *w);

/* The current snapshot, borrowed until the loop runs again. */
const struct ip_hosts *host_addrs_peek(const struct host_addrs *h);

#endif /* PROXY_HOST_ADDRS_H */
