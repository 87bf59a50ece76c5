/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_own.h - what the files of a relay share; no one else includes it
 *
 *	relay.c		whose turn it is, what is waited for, beginning and end
 *	relay_chunk.c	one chunk of one direction, copied or through a pipe
 *
 * Thousands of tunnels are silent at any time, so what most of them never need
 * is not there before they do: a place for bytes that a reader has not taken,
 * and a timer.
 */
#ifndef PROXY_RELAY_OWN_H
#define PROXY_RELAY_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/reason.h"
#include "base/str.h"
#include "proxy/half.h"
#include "proxy/quota.h"
#include "proxy/relay.h"
#include "proxy/relay_pool.h"
#include "proxy/sched.h"
#include "proxy/sock_still.h"

struct mem_account;

enum relay_side { APP, NET, RELAY_SIDES };

/* Bytes that were read and not taken yet, where they stand meanwhile. */
struct relay_store {
	struct buf wait;
	size_t unpaced;		/* the last ones of @wait: the rate was not asked */
	struct relay_pipe pipe;
	size_t in_pipe;
	struct sock_still still;
};

/* From the half of the same index to the other one. */
struct relay_dir {
	struct relay_store *store;	/* NULL: nothing has ever had to wait */
	uint64_t moved;
	uint8_t run;		/* large or small chunks in a row */
	bool bulk;		/* through a pipe */
	bool held;		/* until its rate has room again */
	bool eof;		/* the source sent its FIN */
	bool done;		/* ... and it was passed on, or nobody is there */
};

struct relay {
	uint32_t magic;
	enum reason over;	/* a budget that is used up; ALLOWED: none */
	enum reason closed;	/* by whose FIN came first; ALLOWED: none yet */
	bool holding;
	size_t said;		/* early bytes to app */
	struct event_base *base;
	struct relay_pool *pool;
	relay_fn *fn;
	void *arg;
	struct quota_flow *account;
	struct sched_queue *turn;
	struct mem_account *memory;
	struct half *half[RELAY_SIDES];
	bool reset[RELAY_SIDES];	/* gone without a FIN, or after it */
	struct relay_dir dir[RELAY_SIDES];
	struct sched_work work[RELAY_SIDES];	/* to pump that direction */
	struct event *hold;	/* NULL: not needed so far */
};

enum step {
	STEP_MORE,		/* moved something, there may be more */
	STEP_IDLE,		/* the source has nothing now, or is at its end */
	STEP_BLOCKED,		/* the sink takes no more now */
	STEP_SOURCE_GONE,
	STEP_SINK_GONE,
	STEP_NO_MEMORY,
	STEP_HELD,		/* its rate has no room now */
	STEP_OVER,		/* a budget is used up, and there is more */
};

static inline enum relay_side other(enum relay_side side)
{
	return side == APP ? NET : APP;
}

static inline enum quota_way relay_way(enum relay_side side)
{
	return side == APP ? QUOTA_UP : QUOTA_DOWN;
}

static inline bool dir_holds(const struct relay_dir *d)
{
	return d->store && (d->store->wait.n || d->store->in_pipe);
}

/**
 * relay_early() - Bytes that @side's half has said before the relay began
 * @early:	copied, as far as they cannot be passed on at once
 *
 * They mostly fit into their sink: sent here, they cost no event and no memory.
 * What does not pass is for the first event, as is a sink's end.
 * Return: 0 or -ENOMEM
 */
NODISCARD int relay_early(struct relay *r, enum relay_side side,
			  struct str early);
/* What waits first, then as much as may pass in one turn. */
enum step relay_move(struct relay *r, enum relay_side side);
/* Nothing will pass in that direction any more. */
void relay_drop(struct relay *r, enum relay_side side);

#endif /* PROXY_RELAY_OWN_H */
