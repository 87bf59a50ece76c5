/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nflog.h - what the sandbox's own firewall refused, as records
 *
 * UDP, ICMP, SCTP and the rest never reach a proxy; the nftables table inside
 * the sandbox rejects them and copies the packet's head to a netlink socket
 * that was handed over.  One record stands for all equal refusals within
 * NFLOG_WINDOW_MS, and there are bounds on all of it, since the sender of the
 * packets is the sandbox.
 */
#ifndef PROXY_NFLOG_H
#define PROXY_NFLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/str.h"

struct nflog;
struct sandbox;

#define NFLOG_WINDOW_MS		10000	/* equal refusals within it are one */
#define NFLOG_KEYS_MAX		64	/* different ones within a window */
#define NFLOG_BATCH		32	/* datagrams read in one turn */
#define NFLOG_EXT_MAX		8	/* IPv6 extension headers passed over */

/* The head of a refused packet. */
struct nflog_packet {
	struct ip_endpoint src, dst;	/* ports 0 where there are none */
	uint8_t proto;			/* IPPROTO_* of the last header seen */
};

/* Pure: a packet's first bytes, perhaps cut; false when it is no IP packet. */
NODISCARD bool nflog_parse_packet(struct str bytes, struct nflog_packet *ret);
/* "udp", "tcp", "icmp", "icmpv6", "sctp", ...; "ip" for what has no word. */
const char *nflog_transport(uint8_t proto);

/* Pure: each refused packet of one netlink datagram; malformed parts are
 * passed over.  Returns how many were given to @fn. */
typedef void nflog_packet_fn(void *arg, const struct nflog_packet *p);
unsigned nflog_parse_datagram(struct str bytes, nflog_packet_fn *fn,
			      void *arg);

/* @fd: a NETLINK_NETFILTER socket, bound and non-blocking; taken always. */
NODISCARD int nflog_new(struct sandbox *s, int fd, struct nflog **ret);
/* One refused packet was read; exposed for tests. */
void nflog_on_packet(struct nflog *n, const struct nflog_packet *p);
/* Read nothing for a while; what comes waits in the socket. */
void nflog_freeze(struct nflog *n, bool frozen);
/* Writes what is still counted, then closes; NULL is fine. */
void nflog_free(struct nflog *n);

#endif /* PROXY_NFLOG_H */
