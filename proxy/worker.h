/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - one thread, one event base, and the sandboxes that live on it
 *
 * Everything that belongs to a sandbox is touched only by its worker's thread,
 * so nothing here is locked but the mailbox.  Other threads talk to a worker
 * through worker_call() or worker_post().
 */
#ifndef PROXY_WORKER_H
#define PROXY_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_class.h"
#include "base/list.h"
#include "proxy/mailbox.h"

struct event;
struct event_base;
struct marks;
struct own_doors;
struct parents;
struct quota_whole;
struct relay_pool;
struct source;
struct sched;
struct half_loop;
struct resolver;

struct worker {
	unsigned index;
	struct event_base *base;
	struct half_loop *halves;	/* sockets of flows */
	struct resolver *resolver;
	const struct own_doors *doors;	/* where we listen; or NULL */
	const struct ip_hosts *hosts;	/* current snapshot; replaced, never changed */
	const struct parents *parents;	/* the daemon's; NULL: none */
	const struct source *source;	/* that flows leave from; NULL: any */
	struct marks *marks;		/* sockets for flows; ours; NULL: unmarked */
	struct list sandboxes;		/* struct sandbox.node */
	struct list dead;		/* struct conn.dead: reclaimed after the turn */
	struct event *reclaim;		/* active while @dead has something */
	struct event *keep;		/* pending while a tunnel is young */
	struct relay_pool *relay;	/* pipes for splice, see relay.h */
	struct list paused;		/* struct listener.paused, see listener.h */
	bool draining;			/* no new flows: it ends soon */
	struct sched *sched;		/* whose turn it is */
	struct quota_whole *whole;	/* of all runs; NULL: no bound */
};

typedef void worker_fn(struct worker *w, void *arg);

NODISCARD int worker_new(unsigned index, struct worker **ret);
/* On the caller's base and thread. */
NODISCARD int worker_lodge(unsigned index, struct event_base *base,
			   struct worker **ret);
NODISCARD int worker_start(struct worker *w);		/* starts the thread */
/* The same, but that it waits for worker_go(): until then what is the worker's
 * may be used here. */
NODISCARD int worker_start_held(struct worker *w);
void worker_go(struct worker *w);
/* Run @fn(@arg) on the worker's thread; any thread; never blocks; 0 or -ENOMEM. */
NODISCARD int worker_call(struct worker *w, worker_fn *fn, void *arg);
/* The same without allocation: @fn gets the struct worker as its owner. */
void worker_post(struct worker *w, struct mail *mail, mail_fn *fn);
/* A tunnel is new: conn_keep_alive() comes after a while. */
void worker_keep(struct worker *w);
/* Ask for the reclaim at the end of this turn; on the worker's thread. */
void worker_reclaim(struct worker *w);
/* No new flows from some time soon on; any thread. */
void workers_drain(struct worker *const *w, size_t n);
void worker_stop(struct worker *w);	/* asks; what was posted before is done */
void worker_join(struct worker *w);	/* asks and waits */
void worker_free(struct worker *w);	/* joins first; no sandbox may be left */

#endif /* PROXY_WORKER_H */
