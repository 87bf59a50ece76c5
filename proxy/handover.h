/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover.h - this process hands its service to the next one
 */
#ifndef PROXY_HANDOVER_H
#define PROXY_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/str.h"

struct event_base;
struct handover;
struct host_listens;
struct plug;

/* For the next one to prove itself, until anything here rests. */
#define HANDOVER_OPEN_MS	60000
/* For runs to come out of the middle of something. */
#define HANDOVER_SETTLE_MS	10000
/* For questions to be answered before their sandbox is told of. */
#define HANDOVER_QUIET_MS	300
/* All of the rest, in which nothing new is accepted. */
#define HANDOVER_REST_MS	15000

struct handover_config {
	struct event_base *base;
	struct plug *plug;
	struct host_listens *listens;
	int notify_fd;			/* where a service manager listens; or -1 */
	const char *cgroup;		/* that we run in; "": not known */
	/* Policies: are they being read?  Let them rest, or no longer. */
	bool (*reading)(void *arg);
	void (*rest)(void *arg, bool rest);
	/* All that we had is @pid's now, and what is left here is to drain.  Once;
	 * on_end() may follow. */
	void (*on_given)(void *arg, int pid);
	/* It has gone, or wants us to: what is left must end. */
	void (*on_end)(void *arg);
	/* Read the service's policies anew. */
	void (*on_reload)(void *arg);
	void *arg;
};

NODISCARD int handover_new(const struct handover_config *config,
			   struct handover **ret);
/* Somebody who may has said HELLO; takes @fd. */
void handover_on_hello(struct handover *h, struct str msg, int fd);
/* Should one be under way, all is as before. */
void handover_break_off(struct handover *h, const char *why);
void handover_free(struct handover *h);		/* NULL is fine */

#endif /* PROXY_HANDOVER_H */
