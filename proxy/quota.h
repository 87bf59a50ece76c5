/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota.h - what one run may use, counted where all its instances see it
 *
 * A run is served by one sandbox on one worker, or by an instance on each of
 * several workers (listeners on host addresses): all of these hold one struct
 * quota.  It has no lock: counters are atomics, and whoever takes something
 * reserves it first and gives back what it did not use.  Pure: time is the
 * caller's.
 *
 *	a sandbox	quota_new() or quota_ref(); quota_set_rules() when its
 *			policy is another
 *	a connection	quota_enter() when it is accepted, quota_leave()
 *	a flow		quota_flow_begin(), then for each chunk quota_take()
 *			before it is read and quota_settle() behind
 */
#ifndef PROXY_QUOTA_H
#define PROXY_QUOTA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/mem_account.h"
#include "base/reason.h"
#include "rules/rules.h"

/* Where the policy does not say. */
#define QUOTA_CONNECTIONS	RULES_LIMIT_CONNECTIONS
#define QUOTA_MEMORY		((size_t)RULES_LIMIT_MEMORY)
/* No quota_take() asks for more: what another worker may hold meanwhile. */
#define QUOTA_CHUNK_MAX		(1u << 20)
/* Rules with budgets of their own that one run remembers. */
#define QUOTA_RULES_MAX		4096

enum quota_way { QUOTA_UP, QUOTA_DOWN, QUOTA_WAYS };

struct quota_rule;

/* What many runs may hold together, all or those of a user; 0: no limit. */
struct quota_whole {
	struct quota_whole *whole;	/* that it is part of; or NULL */
	enum reason why;		/* at its limit; ALLOWED: OVERLOADED */
	uint32_t max;			/* before the first run, then constant */
	atomic_uint connections;
	struct mem_pot memory;
};

/* The shared part is private to quota.c but for what every chunk looks at. */
struct quota {
	atomic_bool limited[QUOTA_WAYS];	/* some limit is there */
	atomic_uint_fast64_t used[QUOTA_WAYS];
};

/**
 * quota_new() - The counters of a run that begins
 * @rules:	read for their limits, not kept
 * @whole:	of all runs, outlives them; NULL: no bound
 * @ret:	one reference, the caller's
 */
NODISCARD int quota_new(const struct ruleset *rules, struct quota_whole *whole,
			struct quota **ret);
struct quota *quota_ref(struct quota *q);	/* on any thread */
void quota_unref(struct quota *q);		/* on any thread; NULL is fine */

/* Another policy's limits from now on; what was used stays used. */
void quota_set_rules(struct quota *q, const struct ruleset *rules);

/* --- connections -------------------------------------------------------------- */

/**
 * quota_enter() - May there be one connection more?
 *
 * Return: ALLOWED, and it counts until quota_leave(); CONNECTIONS_EXCEEDED,
 * CONNECTION_RATE_EXCEEDED, or OVERLOADED for all runs together, or what the
 * whole has for it that is at its limit
 */
enum reason quota_enter(struct quota *q, int64_t now_ms);
void quota_leave(struct quota *q);
unsigned quota_connections(const struct quota *q);
/* How many there may be. */
unsigned quota_connections_max(const struct quota *q);

/* What may be held for it, by all its instances: for mem_account_init(). */
struct mem_pot *quota_memory(struct quota *q);

/* --- what is used elsewhere ---------------------------------------------------- */

/* Bytes by a rule's account; @rule "": by the run as a whole. */
typedef int quota_fn(void *arg, const char *rule,
		     const uint64_t used[QUOTA_WAYS]);

/* The run's own first, then each rule's that was used.  @fn: 0 to go on, or an
 * error to stop with.  Return: 0 or what @fn returned */
NODISCARD int quota_tell(struct quota *q, quota_fn *fn, void *arg);
/* So many more were used by the run, in another process; also over a limit.
 * -EDQUOT where there is no room for another rule's account. */
NODISCARD int quota_note(struct quota *q, const char *rule,
			 const uint64_t used[QUOTA_WAYS]);
/* So many connections more, or less, are open in another process. */
void quota_note_connections(struct quota *q, int more);

/* --- bytes --------------------------------------------------------------------- */

/* One flow's account; embedded, zeroed is one without any limit. */
struct quota_flow {
	struct quota *quota;		/* borrowed */
	struct quota_rule *rule;	/* of the rule, or NULL */
	uint64_t used[QUOTA_WAYS];
	uint32_t reserved[QUOTA_WAYS];	/* between take and settle */
};

/**
 * quota_flow_begin() - A flow by a rule of @rules begins
 * @q:		outlives it; NULL: nothing is counted
 * @rule:	its number, 0: none
 * Return: ALLOWED; BYTES_, RULE_BYTES_EXCEEDED where one of them is used up
 * already; or MEMORY_EXCEEDED
 */
enum reason quota_flow_begin(struct quota_flow *f, struct quota *q,
			     const struct ruleset *rules, size_t rule);

/**
 * quota_flow_move() - The flow goes on, by a rule of other @rules
 * @rule:	its number there
 *
 * Between two chunks.  What the flow has moved counts in the new rule's budgets
 * as well, where it was not counted in them: the budget of a rule may be new.
 * Return: ALLOWED, also where a budget is used up: the next byte hears of it;
 * or MEMORY_EXCEEDED, and nothing is changed
 */
enum reason quota_flow_move(struct quota_flow *f, const struct ruleset *rules,
			    size_t rule);

/* For quota_take(). */
enum reason quota_reserve(struct quota_flow *f, enum quota_way way,
			  size_t want, int64_t now_ms, size_t *ret_room);
void quota_return(struct quota_flow *f, enum quota_way way, size_t used);

/* Is there something to ask at all? */
static inline bool quota_is_limited(const struct quota_flow *f,
				    enum quota_way way)
{
	return f->quota && (f->rule || atomic_load_explicit(
		&f->quota->limited[way], memory_order_relaxed));
}

/**
 * quota_take() - How many of @want bytes may pass now?
 * @want:	1 to QUOTA_CHUNK_MAX
 * @ret_room:	of these; 0 and ALLOWED: wait for quota_wait_ms()
 *
 * To be followed by quota_settle() with what was used.
 * Return: ALLOWED; or BYTES_, FLOW_BYTES_, RULE_BYTES_EXCEEDED with no room,
 * when not one byte more may pass
 */
static inline enum reason quota_take(struct quota_flow *f, enum quota_way way,
				     size_t want, int64_t now_ms,
				     size_t *ret_room)
{
	*ret_room = want;
	return quota_is_limited(f, way) ?
		       quota_reserve(f, way, want, now_ms, ret_room) :
		       REASON_ALLOWED;
}

/* @used: bytes of the room that quota_take() gave. */
static inline void quota_settle(struct quota_flow *f, enum quota_way way,
				size_t used)
{
	f->used[way] += used;
	if (f->reserved[way])
		quota_return(f, way, used);
	else if (f->quota && used)
		atomic_fetch_add_explicit(&f->quota->used[way], used,
					  memory_order_relaxed);
}

/**
 * quota_charge() - Bytes that were read before anybody was asked
 *
 * All of them or none, of the budgets; the rate is asked by quota_pace().
 * Return: as quota_take()
 */
enum reason quota_charge(struct quota_flow *f, enum quota_way way, size_t n);
/* How many of @n such bytes the rate lets pass now; 0: wait, as above. */
size_t quota_pace(struct quota_flow *f, enum quota_way way, size_t n,
		  int64_t now_ms);

/* Until the rate may have room again; at least 1. */
unsigned quota_wait_ms(const struct quota_flow *f, enum quota_way way,
		       int64_t now_ms);

#endif /* PROXY_QUOTA_H */
