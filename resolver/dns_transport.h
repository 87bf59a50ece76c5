/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_transport.h - what the transports to upstream servers have in common
 *
 * A transport takes one packet to one server and says, once, what came of it.
 * It knows nothing of other servers, of further tries or of what an answer
 * means: dns_upstream.c does.
 */
#ifndef RESOLVER_DNS_TRANSPORT_H
#define RESOLVER_DNS_TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum dns_sent {
	DNS_SENT_HEARD,		/* something with our id and name came */
	DNS_SENT_TIMEOUT,
	DNS_SENT_FAILED,	/* refused, unreachable, broken off */
	DNS_SENT_NO_TLS,	/* no TLS, or not with whom it should be */
};

/*
 * Called once for each packet that was taken.  It may be called from inside the
 * function that sent or that frees the transport, so it must only note.
 * @p and @n, for DNS_SENT_HEARD, are good for the call.
 */
typedef void dns_sent_fn(void *arg, enum dns_sent how, const uint8_t *p,
			 size_t n);

/**
 * dns_zone_bind() - Let a socket reach link-local servers on one interface
 * @zone:	its name or number; "": nothing is done
 */
NODISCARD int dns_zone_bind(int fd, const char *zone);

#endif /* RESOLVER_DNS_TRANSPORT_H */
