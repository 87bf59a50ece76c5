/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_chan.h - packets to servers by UDP and TCP, through a pool of channels
 *
 * The home of c-ares.  Belongs to one worker.
 */
#ifndef RESOLVER_DNS_CHAN_H
#define RESOLVER_DNS_CHAN_H

#include <stdbool.h>

#include "base/compiler.h"
#include "resolver/dns_answer.h"
#include "resolver/dns_transport.h"
#include "resolver/resolver.h"

struct event_base;
struct dns_chan;
struct dns_chans;	/* opaque */

#define DNS_CHANS_UDP_MAX	32
#define DNS_CHANS_TCP_MAX	RESOLVER_SERVERS_MAX
#define DNS_CHAN_WORN		64	/* questions over one source port */

/* The caller's, for as long as a packet is under way. */
struct dns_chan_ask {
	struct dns_chan *chan;	/* NULL: not under way */
	dns_sent_fn *fn;
	void *arg;
};

NODISCARD int dns_chans_new(struct event_base *base, int attempt_ms,
			    struct dns_chans **ret);
/* Calls back for all that is under way, with DNS_SENT_FAILED. */
void dns_chans_free(struct dns_chans *c);

/**
 * dns_chans_send() - Send @ask to @server
 * @slot:	@fn and @arg are set; not under way
 *
 * By UDP, with TCP for an answer that was cut; or by TCP alone.
 * Return: 0, or -EAGAIN when no channel has room: one will have when something
 * that is under way has ended (or, without any, when there is memory again)
 */
NODISCARD int dns_chans_send(struct dns_chans *c,
			     const struct resolver_server *server, bool tcp,
			     const struct dns_ask *ask,
			     struct dns_chan_ask *slot);

size_t dns_chans_sockets(const struct dns_chans *c);	/* open ones */

#endif /* RESOLVER_DNS_CHAN_H */
