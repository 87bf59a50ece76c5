/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_priv.h - what the files of this folder know of a resolver
 */
#ifndef RESOLVER_RESOLVER_PRIV_H
#define RESOLVER_RESOLVER_PRIV_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "resolver/dns_msg.h"
#include "resolver/dns_upstream.h"
#include "resolver/resolver.h"

/* resolver_new() with other time-outs than the usual ones. */
NODISCARD int resolver_new_with(const struct dns_upstream_config *config,
				struct resolver **ret);

size_t resolver_sockets(const struct resolver *r);	/* open ones */

/*
 * Room for one wake-up of a UDP door: questions in, replies out.  All doors of a
 * worker share it, since each is done with it before the next one wakes.
 */
#define DNS_BATCH	32	/* datagrams */
#define DNS_UDP_IN_MAX	4096	/* bytes of a question by UDP; more is cut */

struct dns_datagram {
	struct sockaddr_storage peer;
	socklen_t peer_n;
	/* IP_PKTINFO or IPV6_PKTINFO: where it was sent to, or comes from. */
	_Alignas(struct cmsghdr)
	char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	size_t control_n;
};

struct dns_batch {
	struct dns_datagram in[DNS_BATCH], out[DNS_BATCH];
	uint8_t question[DNS_BATCH][DNS_UDP_IN_MAX];
	uint8_t reply[DNS_BATCH][DNS_EDNS_SIZE];
	size_t reply_n[DNS_BATCH];
	unsigned nout;
};

/* Made on first use; NULL when out of memory. */
struct dns_batch *resolver_batch(struct resolver *r);

#endif /* RESOLVER_RESOLVER_PRIV_H */
