/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parent_dial.h - a connection through a parent proxy; theory in parent_dial.c
 */
#ifndef PROXY_PARENT_DIAL_H
#define PROXY_PARENT_DIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/reason.h"
#include "base/str.h"
#include "proxy/dial.h"

struct parent;
struct parent_dial;

struct parent_dial_result {
	enum reason reason;	/* ALLOWED: the next byte is the destination's */
	unsigned status;	/* that the parent said instead; 0: nothing */
	int fd;			/* the callee's now; -1 otherwise */
};

/* Called once, from the loop, never inside parent_dial_start() nor after
 * parent_dial_cancel().  It is gone when it is called. */
typedef void parent_dial_fn(void *arg, const struct parent_dial_result *r);

struct parent_dial_config {
	const struct dial_config *dial;	/* base, resolver, limits, sockets */
	const struct parent *parent;	/* outlives it */
	struct str host;		/* asked for; empty: @addr.  Borrowed
					 * while it lasts */
	struct ip_addr addr;
	uint16_t port;
	bool bare;			/* the parent itself is all that is wanted:
					 * requests will say where they go */
	parent_dial_fn *fn;
	void *arg;
};

/* Without a limit of time: that is the caller's.  0 or -ENOMEM. */
NODISCARD int parent_dial_start(const struct parent_dial_config *config,
				struct parent_dial **ret);
void parent_dial_cancel(struct parent_dial *p);	/* NULL is fine */

#endif /* PROXY_PARENT_DIAL_H */
