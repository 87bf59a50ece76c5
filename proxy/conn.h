/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.h - the life of one connection of a sandbox (theory in conn.c)
 *
 * Halves: app, the socket the sandboxed program opened; net, the one we open
 * for it in the host's namespace.
 */
#ifndef PROXY_CONN_H
#define PROXY_CONN_H

#include "base/compiler.h"
#include "base/reason.h"

struct ip_endpoint;
struct sandbox;
struct worker;
struct conn;

/* A connection from @src accepted on a transparent listener: getsockname() is
 * what the program asked for.  Takes @fd.  On failure it is reset and recorded. */
void conn_start_transparent(struct sandbox *s, int fd,
			    const struct ip_endpoint *src);
/* The same of the explicit proxy's listener. */
void conn_start_explicit(struct sandbox *s, int fd,
			 const struct ip_endpoint *src);
/* The same of the SOCKS port. */
void conn_start_socks(struct sandbox *s, int fd,
		      const struct ip_endpoint *src);

/* Mark as ended with a reason; freed after this turn of the loop. */
void conn_end(struct conn *c, enum reason why);
void conn_end_all(struct sandbox *s, enum reason why);

/* What became of flows that were open when they were judged again. */
struct conn_rejudged {
	unsigned kept, ended;
};

/**
 * conn_rejudge_all() - The sandbox's policy is another, or says something else
 * @why:	what is told and recorded of flows that end by it
 *
 * By the time it returns nothing flows that s->rules do not allow.  What is
 * not open yet is refused with the rules' own reason.
 */
void conn_rejudge_all(struct sandbox *s, enum reason why,
		      struct conn_rejudged *ret);
/* Tunnels that have lived for a while get keepalive; called by the worker. */
void conn_keep_alive(struct worker *w);
/* Free what ended in this turn; called by the worker. */
void conn_reclaim(struct worker *w);

#endif /* PROXY_CONN_H */
