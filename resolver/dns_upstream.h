/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_upstream.h - one question to the configured servers, until one answers
 *
 * Belongs to one worker.  Knows servers and attempts; no cache, no policy, and
 * no chain that goes on in another answer (resolver.c has those).
 */
#ifndef RESOLVER_DNS_UPSTREAM_H
#define RESOLVER_DNS_UPSTREAM_H

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "resolver/dns_answer.h"

struct event_base;

#define DNS_ATTEMPT_MS		1500	/* an attempt over one transport */
#define DNS_ATTEMPTS_UNTIL_MS	3400	/* no attempt starts later than this */
#define DNS_ROUNDS		2	/* over all servers */
#define DNS_TLS_IDLE_MS		10000	/* then a connection is closed */
#define DNS_JOBS_MAX		2048	/* questions in flight on one worker */

struct dns_upstream;	/* opaque */

struct dns_upstream_config {
	struct event_base *base;
	int attempt_ms;		/* 0: the constants above */
	int attempts_until_ms;
	int tls_idle_ms;
};

enum dns_outcome {
	DNS_ANSWERED,		/* NOERROR or NXDOMAIN, believed */
	DNS_UNANSWERED,		/* no server, errors, nothing to believe */
	DNS_TIMED_OUT,
	DNS_NO_TLS,		/* a server could not be verified */
	DNS_LOOPED,		/* the chain of CNAMEs has no end */
};

/*
 * Called once for each accepted question, from the loop, never inside
 * dns_upstream_ask(); not after dns_upstream_free().  May ask again.  It comes
 * within the sum of the two times above, whatever servers do.
 * @answer is good for the call, and NULL for all but DNS_ANSWERED.
 */
typedef void dns_upstream_fn(void *arg, enum dns_outcome outcome,
			     const struct dns_answer *answer);

NODISCARD int dns_upstream_new(const struct dns_upstream_config *config,
			       struct dns_upstream **ret);
void dns_upstream_free(struct dns_upstream *u);
void dns_upstream_set_servers(struct dns_upstream *u,
			      const struct resolver_servers *servers);

/* Return: 0, -ENOMEM, or -EAGAIN: DNS_JOBS_MAX are in flight */
NODISCARD int dns_upstream_ask(struct dns_upstream *u,
			       const struct dns_name *name, uint16_t type,
			       dns_upstream_fn *fn, void *arg);

/**
 * dns_upstream_cancel() - What was asked with @arg is asked no further
 *
 * It is not called back.  Nothing happens when it is not under way.
 */
void dns_upstream_cancel(struct dns_upstream *u, const void *arg);

/* Open sockets, but for connections of TLS: 0 when nothing is in flight. */
size_t dns_upstream_sockets(const struct dns_upstream *u);

#endif /* RESOLVER_DNS_UPSTREAM_H */
