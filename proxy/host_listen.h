/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_listen.h - listeners on addresses of this host, and their lives
 *
 * To all else a listener is a run that nobody plugged: it has a policy of the
 * service's, records, a beginning and an end.  Theory in host_listen.c.
 */
#ifndef PROXY_HOST_LISTEN_H
#define PROXY_HOST_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/reason.h"
#include "base/str.h"

struct audit_writer;
struct config;
struct event_base;
struct handover_part;
struct host_listens;
struct host_socks;
struct leave;
struct plug_reload;
struct plug_why;
struct policies;
struct policy;
struct worker;
union handover_msg;

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
/* --- from one process to the next: host_listen_leave.c -------------------------------- */

/* Sockets of listeners that serve, and the @i-th of them as SOCKET tells it,
 * borrowed; 0: there are no more. */
size_t host_listens_sockets(const struct host_listens *h);
size_t host_listens_socket(const struct host_listens *h, size_t i,
			   union handover_msg *m, int *ret_fd);
/* Is one on its way into service, or to another policy? */
bool host_listens_busy(const struct host_listens *h);
/* @fn is called for each part of those that serve. */
typedef void host_listens_leave_fn(void *arg, struct leave *l);
void host_listens_leave(struct host_listens *h, host_listens_leave_fn *fn,
			void *arg);
/* Which part that is, and what all parts know; 0 or -errno */
NODISCARD int host_listens_fill(struct leave *l, union handover_msg *m);
/* All of them are as before.  Return: how many parts are told so. */
size_t host_listens_thaw(struct host_listens *h);

/* In place of host_listens_start(), while the workers' threads wait: 0, or
 * -errno, was said; host_listens_serve() is to follow. */
NODISCARD int host_listens_place_here(struct host_listens *h);
void host_listens_serve(struct host_listens *h);
/* What a part of the process before knows, into one of ours. */
NODISCARD int host_listens_adopt_state(struct host_listens *h,
				       const struct handover_part *m,
				       struct str bytes, struct plug_why *why);

/* The workers have ended.  NULL is fine. */
void host_listens_free(struct host_listens *h);

#endif /* PROXY_HOST_LISTEN_H */
