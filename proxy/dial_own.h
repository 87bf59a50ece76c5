/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial_own.h - what the files of a dial share; no one else includes it
 *
 *	dial.c		lookups, attempts, beginning and end
 *	dial_attempt.c	one address, tried
 *	dial_way.c	may an address be dialled, and through which parent?
 *	dial_why.c	which of all failures is told
 */
#ifndef PROXY_DIAL_OWN_H
#define PROXY_DIAL_OWN_H

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include "proxy/dial.h"
#include "proxy/half.h"
#include "proxy/marks.h"
#include "rules/host_name.h"

struct parent_dial;

enum { V6, V4, FAMILIES };

struct dial_queue {
	enum reason reason;	/* of the lookup, once it is over */
	bool over;		/* answered, failed, or never asked */
	unsigned n, next;
	struct resolver_lookup *lookup;
	struct ip_addr *addr;	/* owned; RESOLVER_ADDRS_MAX at most */
};

struct dial_attempt {
	struct dial *dial;
	struct half *half;	/* NULL: free, over, waits for a socket, or the
				 * parent's to connect */
	struct marks_wait wait;	/* for a marked socket */
	struct parent_dial *via;	/* under way there; or NULL */
	struct dial_way way;
	struct ip_addr addr;	/* IP_NONE: by name */
	struct event timeout;	/* of @half's connect */
};

struct dial {
	uint32_t magic;
	struct dial_config c;
	struct host_name host;
	struct dial_queue queue[FAMILIES];
	unsigned turn;		/* family to take from next */
	bool racing;		/* past the wait for answers */
	bool permitted, finished;
	unsigned nattempts, nopen;
	enum reason net_reason;	/* best of the attempts; ALLOWED: none failed */
	unsigned net_status;	/* that a parent said, of @net_reason */
	enum reason policy_reason;	/* of the first refused address */
	struct ip_addr policy_addr;
	const char *policy_rule;
	struct dial_result result;
	struct event deadline;	/* of the whole; then runs the end */
	struct event next;	/* resolution delay, then attempt delay */
	struct dial_attempt *attempt[DIAL_ATTEMPTS_MAX];	/* owned */
};

#define DIAL_MAGIC	0x4449414cu	/* "DIAL" */

static inline int dial_arm(struct event *ev, unsigned ms)
{
	const struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	return event_add(ev, &tv) ? -ENOMEM : 0;
}

/* --- dial.c ---------------------------------------------------------------------- */

/* With the socket in the result. */
void dial_connected(struct dial *d, const struct dial_attempt *a);
/* Begin the next attempt that gets under way, or see that it is over. */
void dial_next(struct dial *d);

/* --- dial_attempt.c --------------------------------------------------------------- */

/**
 * dial_attempt_start() - One more
 * @addr:	NULL: by name, through the parent of @way
 * Return: ALLOWED when it is under way, else why it failed at once (a family
 * without a route)
 */
enum reason dial_attempt_start(struct dial *d, const struct ip_addr *addr,
			       const struct dial_way *way);
bool dial_attempt_is_open(const struct dial_attempt *a);
void dial_attempt_close(struct dial_attempt *a);

/* --- dial_way.c ----------------------------------------------------------------- */

/**
 * dial_way_of() - May it be dialled, and which way does it go?
 * @addr:	NULL: nobody here knows one, the name goes to a parent
 *
 * A no is remembered, for dial_why().
 */
bool dial_way_of(struct dial *d, const struct ip_addr *addr,
		 struct rules_answer *ret, struct dial_way *ret_way);
/* Does the name go to a parent as it is, to be looked up there? */
bool dial_goes_by_name(const struct dial *d);
/* Names that lead inside are not asked for because a policy merely observes. */
bool dial_is_hidden(const struct dial *d);

/* --- dial_why.c ----------------------------------------------------------------- */

/* An attempt failed; @status: that a parent said, or 0. */
void dial_why_failed(struct dial *d, enum reason r, unsigned status);
/* A refusal of policy, the first of which may be told. */
void dial_why_refused(struct dial *d, enum reason r, const struct ip_addr *addr,
		      const char *rule);
/* Nothing worked: the reason, and what stands with it in the result. */
enum reason dial_why(struct dial *d);

#endif /* PROXY_DIAL_OWN_H */
