/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.h - a worker's time, shared between its sandboxes (theory in sched.c)
 */
#ifndef PROXY_SCHED_H
#define PROXY_SCHED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/list.h"

struct event_base;
struct sched;
struct sched_work;

/* What a sandbox may spend in a round, and one that is alone on its worker.
 * Units are bytes that are moved; some half a millisecond, and two: so long
 * does a neighbour wait who says something after a silence. */
#define SCHED_QUANTUM		(1 << 20)
#define SCHED_QUANTUM_ALONE	(4 << 20)
/* Rounds after which one whose neighbours were silent counts as alone. */
#define SCHED_ALONE_AFTER	64

/* What things cost beside their bytes: about their time, in bytes. */
#define SCHED_COST_CALL		(32 << 10)	/* one event of a flow */
#define SCHED_COST_QUESTION	(16 << 10)	/* DNS, answered at once */
#define SCHED_COST_ACCEPT	(128 << 10)	/* a new connection */

/* A sandbox's share; embedded. */
struct sched_queue {
	struct sched *sched;
	struct list active;	/* sched.active, while it waits for a round */
	struct list work;	/* struct sched_work.node: first come */
	uint64_t round;		/* that @credit is of */
	int64_t credit;		/* may be overdrawn, by one piece of work */
	uint64_t spent;		/* in all, for tests and figures */
};

/* Called at once or in a later round; it may free @arg and whatever is in it,
 * but not the queue. */
typedef void sched_fn(void *arg);

/* Something that can be due; embedded, one for each thing that may happen. */
struct sched_work {
	struct list node;	/* sched_queue.work, while it waits */
	sched_fn *fn;
	void *arg;
};

NODISCARD int sched_new(struct event_base *base, struct sched **ret);
void sched_free(struct sched *s);		/* NULL is fine; no queue is left */

/* @s NULL, and a queue of zeroes: all is done at once. */
void sched_queue_init(struct sched_queue *q, struct sched *s);
void sched_queue_done(struct sched_queue *q);	/* nothing waits in it */

void sched_work_init(struct sched_work *w, sched_fn *fn, void *arg);
void sched_cancel(struct sched_work *w);
static inline bool sched_waits(const struct sched_work *w)
{
	return !list_empty(&w->node);
}

/**
 * sched_run() - @w is due
 *
 * Now, where its sandbox has something left and nobody of it waits; else behind
 * those who wait.  What waits already stays where it is.
 *
 * Return: true: it waits, and what made it due is not to be reported again until
 * it is done (a half's edge is not, another event is taken out of the loop);
 * false: it was done, and may be gone
 */
bool sched_run(struct sched_queue *q, struct sched_work *w);

/* @w was done, inside a turn, and has more to do: behind those who wait.  Without
 * a schedule there are no turns, and nothing happens. */
void sched_again(struct sched_queue *q, struct sched_work *w);

/* Bytes that one piece of work may move before others come: what its sandbox has
 * left, but @least. */
uint64_t sched_turn(const struct sched_queue *q, uint64_t least);

/* Is there something left?  For work that has many parts, inside it. */
bool sched_has_credit(struct sched_queue *q);
/* Work was done, and this is what it took; inside it.  NULL is fine. */
void sched_spend(struct sched_queue *q, int64_t cost);

#endif /* PROXY_SCHED_H */
