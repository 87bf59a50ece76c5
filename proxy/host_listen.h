/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_listen.h - listeners on addresses of this host, and their lives
 *
 * To all else a listener is a run that nobody plugged: it has a policy of the
 * service's, records, a beginning and an end.  Theory in host_listen.c.
 */
#ifndef PROXY_HOST_LISTEN_H
#define PROXY_HOST_LISTEN_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/reason.h"
#include "base/str.h"

struct audit_writer;
struct config;
struct event_base;
struct host_listens;
struct host_socks;
struct plug_reload;
struct plug_why;
struct policies;
struct policy;
struct worker;

struct host_listens_config {
	struct event_base *base;
	struct worker *const *worker;
	size_t nworkers;
	struct audit_writer *writer;
	const struct config *config;
	struct policies *policies;	/* the service's own; borrowed */
	struct host_socks *socks;	/* what is in it is taken */
	int log_fd;			/* the service's log; borrowed */
	/* Every one of them serves; or, with an error, none will. Called once. */
	void (*on_ready)(void *arg, int err);
	/* The last of them has ended. */
	void (*on_idle)(void *arg);
	void *arg;
};

/* On the main thread, all of them. */
NODISCARD int host_listens_new(const struct host_listens_config *config,
			       struct host_listens **ret);
/* Put them to their workers; on_ready() follows, maybe inside. */
void host_listens_start(struct host_listens *h);
/* How many have not ended. */
size_t host_listens_left(const struct host_listens *h);
/* Take nothing new; each ends when its last flow has. */
void host_listens_drain(struct host_listens *h);
void host_listens_end(struct host_listens *h, enum reason why);
/* Another log from now on; borrowed. */
void host_listens_set_log(struct host_listens *h, int log_fd);
/* A policy of the service's is another, as part of @r; or stays, for @why. */
void host_listens_on_policy(struct host_listens *h, struct plug_reload *r,
			    const struct policy *policy);
void host_listens_on_policy_failed(struct host_listens *h, struct str name,
				   const struct plug_why *why);
/* The workers have ended.  NULL is fine. */
void host_listens_free(struct host_listens *h);

#endif /* PROXY_HOST_LISTEN_H */
