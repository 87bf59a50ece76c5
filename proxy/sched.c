/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.c - a worker's time, shared between its sandboxes
 *
 * Theory of operation
 * ===================
 *
 * The event loop serves whatever is ready, so a sandbox with four thousand busy
 * connections would have four thousand shares of its worker.  Here each has one:
 * deficit round robin (Shreedhar and Varghese, 1995).  In a round each may spend
 * SCHED_QUANTUM, counted in bytes and in the price of calls; what was spent
 * beyond is owed to the next round.
 *
 * An event of a sandbox that has something left is served at once, in its own
 * callback: this costs a comparison.  One that comes too late in the round
 * enters its sandbox's queue, first come first served.  What waits is not to be
 * reported in each turn until then, or a thousand connections with a byte each
 * would make every turn, and with it each step of everybody else, as long as a
 * thousand reports: halves report an edge once (half.c), and owners of other
 * events take them out of the loop.  A flow that has more to move than its part
 * of a round comes back behind those who wait.
 *
 *	event ---> credit left, nobody waits ---> done at once
 *	  |
 *	  +------> queue ---> the next round --> done, while there is credit
 *
 * A round begins when the loop has come round once more: it has then heard of
 * everybody's new events.  That is a timer of no length, which is set only when
 * some sandbox has spent all it had.  So there is no round where nobody is short,
 * and a sandbox that moves little is served at once, whoever else is busy.
 *
 * One that had the worker for itself for some rounds gets larger ones, so that
 * its thousand connections need not wait for each other.
 */
#include "proxy/sched.h"

#include <errno.h>
#include <event2/event.h>

#include "base/mem.h"

struct sched {
	struct event *next;	/* the next round; pending while it is wanted */
	struct list active;	/* struct sched_queue.active */
	uint64_t round;
	unsigned seen;		/* queues that took part in it */
	uint64_t crowded;	/* the last round with more than one */
	unsigned queues;
};

/* --- rounds ------------------------------------------------------------------- */

static void want_round(struct sched *s)
{
	static const struct timeval now = { 0 };

	if (event_pending(s->next, EV_TIMEOUT, NULL))
		return;
	/* Without memory for it, in this turn of the loop: still in order. */
	if (event_add(s->next, &now) < 0)
		event_active(s->next, EV_TIMEOUT, 0);
}

static int64_t quantum(const struct sched *s)
{
	return s->round - s->crowded > SCHED_ALONE_AFTER ?
		       SCHED_QUANTUM_ALONE : SCHED_QUANTUM;
}

/* Take part in the round that is. */
static void join(struct sched_queue *q)
{
	struct sched *s = q->sched;

	if (q->round == s->round)
		return;
	q->round = s->round;
	q->credit = MIN(q->credit, (int64_t)0) + quantum(s);
	if (++s->seen == 2)
		s->crowded = s->round;
}

/* Its turn will come in the next round. */
static void wait_for_round(struct sched_queue *q)
{
	if (list_empty(&q->active))
		list_add(&q->sched->active, &q->active);
	want_round(q->sched);
}

bool sched_has_credit(struct sched_queue *q)
{
	if (!q->sched)
		return true;
	join(q);
	return q->credit > 0;
}

void sched_spend(struct sched_queue *q, int64_t cost)
{
	if (!q)
		return;
	q->credit -= cost;
	q->spent += (uint64_t)cost;
	/* Where it is short without work that waits, too: for what comes. */
	if (q->sched && q->credit <= 0)
		wait_for_round(q);
}

static void serve(struct sched_queue *q)
{
	join(q);
	while (q->credit > 0 && !list_empty(&q->work)) {
		struct sched_work *w = container_of(q->work.next,
						    struct sched_work, node);

		list_del(&w->node);
		w->fn(w->arg);
	}
	if (!list_empty(&q->work))
		wait_for_round(q);
}

static void round_cb(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct sched *s = arg;
	const struct list *last = s->active.prev;
	bool more = !list_empty(&s->active);

	s->round++;
	s->seen = 0;
	/* Who comes back on the list comes back for the next round. */
	while (more) {
		struct sched_queue *q = list_first(&s->active,
						   struct sched_queue, active);

		more = &q->active != last;
		list_del(&q->active);
		serve(q);
	}
}

/* --- work --------------------------------------------------------------------- */

void sched_work_init(struct sched_work *w, sched_fn *fn, void *arg)
{
	list_init(&w->node);
	w->fn = fn;
	w->arg = arg;
}

void sched_cancel(struct sched_work *w)
{
	list_del(&w->node);
}

bool sched_run(struct sched_queue *q, struct sched_work *w)
{
	if (!q || !q->sched ||
	    (list_empty(&q->work) && sched_has_credit(q))) {
		w->fn(w->arg);
		return false;
	}
	if (!sched_waits(w)) {
		list_add(&q->work, &w->node);
		wait_for_round(q);
	}
	return true;
}

uint64_t sched_turn(const struct sched_queue *q, uint64_t least)
{
	if (!q || !q->sched)
		return UINT64_MAX;
	return MAX(least, q->credit > 0 ? (uint64_t)q->credit : 0);
}

void sched_again(struct sched_queue *q, struct sched_work *w)
{
	if (!q || !q->sched || sched_waits(w))
		return;
	list_add(&q->work, &w->node);
	wait_for_round(q);
}

/* --- beginning and end ---------------------------------------------------------- */

int sched_new(struct event_base *base, struct sched **ret)
{
	struct sched *s = mem_new(sizeof(*s));

	if (!s)
		return -ENOMEM;
	list_init(&s->active);
	/* The first quantum is an ordinary one. */
	s->round = 1;
	s->crowded = 1;
	s->next = event_new(base, -1, 0, round_cb, s);
	if (!s->next) {
		mem_free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void sched_free(struct sched *s)
{
	if (!s)
		return;
	REQUIRE(s->queues == 0);
	event_free(s->next);
	mem_free(s);
}

void sched_queue_init(struct sched_queue *q, struct sched *s)
{
	*q = (struct sched_queue){ .sched = s };
	list_init(&q->active);
	list_init(&q->work);
	if (s)
		s->queues++;
}

void sched_queue_done(struct sched_queue *q)
{
	REQUIRE(list_empty(&q->work));
	list_del(&q->active);
	if (q->sched)
		q->sched->queues--;
	q->sched = NULL;
}
