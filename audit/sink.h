/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - one queue of records and where it leads (inside audit/)
 *
 * Theory in writer.c.  What is under which lock stands beside each field.
 */
#ifndef AUDIT_SINK_H
#define AUDIT_SINK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "audit/dest.h"
#include "audit/writer.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/list.h"

/* Bytes that wait in one sink: as much again may be on its way out. */
#define SINK_QUEUE_MAX	(1u << 20)
/* Above this only audit_tell() gets in, so that open flows can be closed. */
#define SINK_POST_MAX	(SINK_QUEUE_MAX / 4 * 3)

/* So much makes the thread hurry. */
#define SINK_HURRY	(SINK_POST_MAX / 8)

#define DESTS	2		/* the sink's own, and the tee */

struct audit_sink {
	struct audit_writer *writer;
	struct audit_sink *of;		/* a way into this one; or NULL.  Then
					 * it has nothing but labels */

	/* Under @lock, also by the thread. */
	pthread_mutex_t lock;
	pthread_cond_t moved;		/* @written or @attempts changed */
	struct buf fill;
	uint64_t seq;			/* of the last line in @fill or before */
	uint64_t lost;			/* since the last gap */
	uint64_t written;		/* sequence number; all before are out */
	uint64_t attempts;		/* failed writes so far */
	uint64_t lost_ever;
	bool hurry;			/* somebody waits: no pause before a retry */
	bool dropping;			/* born without a destination */
	int wanted_fd[DESTS];		/* to be taken over; -1: nothing */
	bool taken[DESTS];		/* at least once */
	uint64_t wanted_after[DESTS];	/* sequence number the old one still gets */

	/* Read without a lock by audit_ok(). */
	atomic_bool down;
	atomic_size_t queued;

	/* Under the writer's lock. */
	struct list ready_node;
	bool in_ready;
	bool freed;

	/* The thread's own. */
	struct list node;		/* audit_writer.sinks */
	struct buf drain;
	uint64_t drain_seq;		/* of the last line in @drain */
	int64_t large_until_ms;		/* large buffers are kept so long */
	struct dest dest[DESTS];
	bool known;			/* is in audit_writer.sinks */
	bool closing;
	int64_t linger_until_ms;

	/* @labels points into the rest; @policy, @mode, the generation and
	 * @members change under @lock, the rest never does. */
	struct record_labels labels;
	char run[48], sandbox[72], policy[104], mode[16];
	char members[RECORD_LABELS_MAX + 1];	/* all of it, as text */
};

struct audit_writer {
	pthread_t thread;
	int wake_fd;			/* eventfd */
	struct dest_env env;
	atomic_bool woken;

	pthread_mutex_t lock;
	struct list ready;		/* audit_sink.ready_node */
	bool stop;
	int64_t stop_at_ms;		/* by then at the latest */

	/* The thread's own. */
	int nap_ms;			/* the next one */
	struct list sinks;		/* audit_sink.node */
	int64_t due_ms;			/* when one of them wants to be looked at */
};

static inline void sink_lock(pthread_mutex_t *m)
{
	int err = pthread_mutex_lock(m);

	REQUIRE(err == 0);
}

static inline void sink_unlock(pthread_mutex_t *m)
{
	int err = pthread_mutex_unlock(m);

	REQUIRE(err == 0);
}

/* writer.c, from any thread: have the sink looked at.  Call is enlist and wake;
 * hurry wakes from a nap, too. */
void writer_enlist(struct audit_sink *s);
void writer_wake(struct audit_writer *w);
void writer_hurry(struct audit_writer *w);
void writer_call(struct audit_sink *s);

/* sink.c, under the sink's lock. */
NODISCARD int sink_add(struct audit_sink *s, const struct record *r,
		       const struct record_labels *labels);
NODISCARD int sink_add_gap(struct audit_sink *s);

/* sink_drain.c, on the audit thread. */
void sink_pump(struct audit_sink *s, bool hurry);
int64_t sink_due_ms(const struct audit_sink *s);
bool sink_idle(struct audit_sink *s);
void sink_destroy(struct audit_sink *s);

#endif /* AUDIT_SINK_H */
