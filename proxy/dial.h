/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial.h - from a permitted name or literal to a connected socket
 *
 * Looks the name up, has each address judged when it is about to be dialled,
 * and races what passes (RFC 8305).  Theory in dial.c.
 */
#ifndef PROXY_DIAL_H
#define PROXY_DIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/ip_class.h"
#include "base/reason.h"
#include "base/str.h"
#include "resolver/resolver.h"
#include "rules/rules.h"

struct event_base;
struct half;
struct half_loop;
struct marks;
struct own_doors;
struct parent;
struct parents;
struct source;

#define DIAL_DEADLINE_MS	30000	/* for the whole */
#define DIAL_CONNECT_MS		10000	/* for one attempt */
#define DIAL_NEXT_MS		250	/* RFC 8305 5: Connection Attempt Delay */
#define DIAL_PARENT_NEXT	4	/* times that, behind one by a parent */
#define DIAL_RESOLUTION_MS	50	/* RFC 8305 3: Resolution Delay */
#define DIAL_ATTEMPTS_MAX	16	/* connects, over the whole dial */

struct dial;

struct dial_way {
	const struct parent *parent;	/* the proxy in between; NULL: none */
	bool there;			/* it was given the name: no address of
					 * the destination is known */
	bool bare;			/* it was asked for nothing yet: each
					 * request must say where it goes */
};

/**
 * dial_permit_fn - The first address that passed is about to be dialled
 * @dst:	without an address where the name goes to a parent
 * @answer:	what the rules said of it; borrowed for the call
 *
 * Called at most once, maybe inside dial_start().  Here the caller records
 * that the flow opens.  Must not cancel the dial.
 * Return: ALLOWED, or the reason to give up with
 */
typedef enum reason dial_permit_fn(void *arg, const struct ip_endpoint *dst,
				   const struct dial_way *way,
				   const struct rules_answer *answer);

struct dial_result {
	enum reason reason;	/* ALLOWED: connected */
	int fd;			/* the callee's now; -1 otherwise, and where
				 * dial_config.watched asked for @half */
	struct half *half;	/* the same then, nobody hears of it yet */
	/* Connected; else the last one tried; else one that was refused by the
	 * rules; else family IP_NONE. */
	struct ip_endpoint dst;
	struct dial_way way;	/* of it */
	unsigned parent_status;	/* that the parent refused with, or 0 */
	const char *rule;	/* that decided, when the rules refused all */
	bool permitted;		/* dial_permit_fn was called and said ALLOWED */
};

/* Called once, from the loop, never inside dial_start() nor after
 * dial_cancel().  The dial is gone when it is called. */
typedef void dial_fn(void *arg, const struct dial_result *result);

/* Milliseconds; 0 takes the default above. */
struct dial_limits {
	unsigned deadline_ms, connect_ms, next_ms, resolution_ms;
};

/* What an address is to a name that is dialled. */
enum dial_use {
	DIAL_ADDR_IF_ITS_OWN,	/* tried first when it is among the answers */
	DIAL_ADDR_FIRST,	/* tried first, at once */
	DIAL_ADDR_ALONE,	/* the only one, and nobody is asked */
};

struct dial_config {
	struct event_base *base;
	struct half_loop *halves;		/* on that base */
	struct resolver *resolver;
	const struct ruleset *rules;		/* borrowed while it lasts; NULL:
						 * of a parent, nothing is judged */
	const struct parents *parents;		/* or NULL: there are none */
	const struct source *source;		/* to leave from; or NULL */
	struct marks *marks;	/* where sockets come from; NULL: unmarked */
	const struct ip_hosts *const *hosts;	/* current snapshot; may hold NULL */
	const struct own_doors *doors;	/* never dialled; NULL: none */
	struct resolver_asker asker;
	struct str host;	/* canonical and judged; copied. Empty: @addr */
	struct ip_addr addr;	/* the literal; with @host: one to be used as
				 * @use says; IP_NONE: no wish */
	enum dial_use use;
	enum ip_family prefer;	/* which family first; IP_NONE: v6 */
	bool v4_only;		/* the name's other addresses are not asked for */
	uint16_t port;
	bool http;		/* plain HTTP is to be spoken, request by request */
	bool watched;		/* the result is to be a half */
	struct dial_limits limits;
	dial_permit_fn *permit;
	dial_fn *fn;
	void *arg;
};

/* 0 or -ENOMEM. */
NODISCARD int dial_start(const struct dial_config *config, struct dial **ret);
void dial_cancel(struct dial *d);	/* NULL is fine */

/**
 * dial_set_rules() - The policy changed while it lasts
 * @rules:	borrowed from now on, instead of those it had
 *
 * What is still to be tried is judged by them, and so is what is being tried
 * or is connected: an address that they refuse is given up at once.  Whether
 * the name itself is still allowed is for the caller to ask.  @permit is not
 * called again where it was, and maybe inside where it was not.
 */
void dial_set_rules(struct dial *d, const struct ruleset *rules);

#endif /* PROXY_DIAL_H */
