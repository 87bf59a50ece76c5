/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_tls.h - packets to one server by DNS over TLS (RFC 7858)
 *
 * Belongs to one worker.  One connection, made when there is something to ask,
 * verified before anything is said, shared by all questions, and closed when
 * idle.  Never anything but TLS.
 */
#ifndef RESOLVER_DNS_TLS_H
#define RESOLVER_DNS_TLS_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/list.h"
#include "resolver/dns_answer.h"
#include "resolver/dns_transport.h"
#include "resolver/resolver.h"

#define DNS_TLS_ASKS_MAX	256	/* on the way to one server */
#define DNS_TLS_QUIET_MS	200	/* no new attempt after a failure */

struct event_base;
struct dns_tls;		/* opaque */

/* The caller's, for as long as a packet is under way. */
struct dns_tls_ask {
	struct list node;
	const struct dns_ask *ask;
	dns_sent_fn *fn;
	void *arg;
	int64_t sent_ms, until_ms;
	bool again;		/* over a second connection */
};

struct dns_tls_config {
	struct event_base *base;
	const struct resolver_tls *tls;
	const struct resolver_server *server;	/* copied */
	int attempt_ms;
	int idle_ms;		/* then the connection is closed */
};

NODISCARD int dns_tls_new(const struct dns_tls_config *config,
			  struct dns_tls **ret);
/* Calls back for all that is under way, with DNS_SENT_FAILED. */
void dns_tls_free(struct dns_tls *t);

/**
 * dns_tls_send() - Send @ask
 * @ask:	borrowed until the call-back; dns_tls_has_id() is false for its id
 * @slot:	@fn and @arg are set; not under way
 * Return: 0, or -EAGAIN: DNS_TLS_ASKS_MAX are under way
 */
NODISCARD int dns_tls_send(struct dns_tls *t, const struct dns_ask *ask,
			   struct dns_tls_ask *slot);

bool dns_tls_has_id(const struct dns_tls *t, uint16_t id);
bool dns_tls_is_open(const struct dns_tls *t);	/* has a socket */

#endif /* RESOLVER_DNS_TLS_H */
