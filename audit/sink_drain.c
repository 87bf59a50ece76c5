/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_drain.c - the audit thread's side of a sink: from queue to descriptors
 *
 * Theory in writer.c.
 */
#include "audit/sink.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

/*
 * A buffer that grew beyond this is given back when none was that full for a
 * while: growing it anew for each burst would cost more than its lines.
 */
#define SINK_KEEP_MAX	(32u << 10)
#define SINK_KEEP_MS	1000
/* Swaps of one sink in a row before the others have their turn. */
#define PUMP_ROUNDS	4

static bool drain_done(const struct audit_sink *s)
{
	size_t i;

	for (i = 0; i < DESTS; i++)
		if (!dest_done(&s->dest[i], &s->drain))
			return false;
	return true;
}

static bool any_down(const struct audit_sink *s)
{
	size_t i;

	for (i = 0; i < DESTS; i++)
		if (s->dest[i].state == DEST_DOWN)
			return true;
	return false;
}

/* Under the lock, with the drain done: what was posted becomes the drain. */
static void sink_swap(struct audit_sink *s)
{
	struct buf empty = s->drain;
	size_t i;

	s->written = s->drain_seq;
	if (s->fill.n > SINK_KEEP_MAX)
		s->large_until_ms = clock_mono_ms() + SINK_KEEP_MS;
	if (empty.cap > SINK_KEEP_MAX &&
	    clock_mono_ms() >= s->large_until_ms) {
		buf_done(&empty);
		empty = BUF_INIT(SINK_QUEUE_MAX);
	}
	buf_reset(&empty);
	if (sink_add_gap(s) < 0)
		log_debug("audit: run %s: no room for a gap yet", s->run);
	s->drain = s->fill;
	s->drain_seq = s->seq;
	s->fill = empty;
	atomic_store(&s->queued, 0);
	for (i = 0; i < DESTS; i++)
		s->dest[i].off = 0;
	pthread_cond_broadcast(&s->moved);
}

/*
 * Get the next drain, and descriptors that came to replace others.  An old
 * descriptor that works first gets what was posted before.
 * Return: is there anything to write?
 */
static bool sink_next(struct audit_sink *s, bool *ret_hurry)
{
	bool done = drain_done(s);
	size_t i, off[DESTS];
	int fd[DESTS];

	sink_lock(&s->lock);
	for (i = 0; i < DESTS; i++) {
		struct dest *d = &s->dest[i];

		off[i] = d->fd < 0 ? s->drain.n : dest_line_start(&s->drain, d->off);
		fd[i] = -1;
		if (d->fd < 0 || !done || s->drain_seq >= s->wanted_after[i]) {
			fd[i] = s->wanted_fd[i];
			s->wanted_fd[i] = -1;
			if (fd[i] >= 0 && !s->taken[i]) {
				s->taken[i] = true;
				pthread_cond_broadcast(&s->moved);
			}
		}
	}
	if (done)
		sink_swap(s);
	*ret_hurry |= s->hurry;
	s->hurry = false;
	sink_unlock(&s->lock);
	for (i = 0; i < DESTS; i++)
		if (fd[i] >= 0)
			dest_open(&s->dest[i], fd[i], done ? 0 : off[i]);
	return !drain_done(s);
}

/* Let others see how it went. */
static void sink_publish(struct audit_sink *s, bool failed)
{
	atomic_store(&s->down, any_down(s));
	sink_lock(&s->lock);
	if (failed)
		s->attempts++;
	pthread_cond_broadcast(&s->moved);
	sink_unlock(&s->lock);
}

/* One attempt at each destination that may be tried now. */
static void sink_write(struct audit_sink *s, bool hurry)
{
	int64_t now = clock_mono_ms();
	bool failed = false;
	size_t i;

	for (i = 0; i < DESTS; i++) {
		struct dest *d = &s->dest[i];

		if (dest_done(d, &s->drain))
			continue;
		if (d->state == DEST_DOWN && !hurry && now < d->retry_at_ms)
			continue;
		if (hurry)
			d->pause_ms = 0;
		dest_pump(d, &s->drain);
		failed |= d->state == DEST_DOWN;
	}
	sink_publish(s, failed);
}

/* When the sink wants to be looked at without being called. */
int64_t sink_due_ms(const struct audit_sink *s)
{
	int64_t due = s->closing ? s->linger_until_ms : INT64_MAX;
	size_t i;

	/* One look gives back one buffer, and the next one the other. */
	if (s->drain.cap > SINK_KEEP_MAX && drain_done(s))
		due = MIN(due, s->large_until_ms);
	for (i = 0; i < DESTS; i++)
		if (s->dest[i].state != DEST_UP)
			due = MIN(due, s->dest[i].retry_at_ms);
	return due;
}

bool sink_idle(struct audit_sink *s)
{
	bool idle;

	sink_lock(&s->lock);
	idle = s->fill.n == 0 && s->lost == 0 && s->wanted_fd[0] < 0 &&
	       s->wanted_fd[1] < 0;
	sink_unlock(&s->lock);
	return idle && drain_done(s);
}

void sink_destroy(struct audit_sink *s)
{
	struct audit_writer *w = s->writer;
	size_t i;

	sink_lock(&w->lock);
	list_del(&s->ready_node);
	sink_unlock(&w->lock);
	if (s->known)
		list_del(&s->node);
	if (!s->dropping && (s->seq > s->written || s->lost > 0))
		log_error("audit: run %s: closed with %llu records unwritten",
			  s->run, (unsigned long long)(s->seq - s->written +
						       s->lost));
	for (i = 0; i < DESTS; i++) {
		dest_close(&s->dest[i]);
		fd_closep(&s->wanted_fd[i]);
	}
	buf_done(&s->fill);
	buf_done(&s->drain);
	pthread_cond_destroy(&s->moved);
	pthread_mutex_destroy(&s->lock);
	mem_free(s);
}

/* Serve one sink; it may be gone afterwards. */
void sink_pump(struct audit_sink *s, bool hurry)
{
	struct audit_writer *w = s->writer;
	unsigned round;
	bool more = true;

	for (round = 0; more && round < PUMP_ROUNDS; round++) {
		more = sink_next(s, &hurry);
		if (!more)
			break;
		sink_write(s, hurry);
		more = drain_done(s);
	}
	if (s->closing && (sink_idle(s) ||
			   clock_mono_ms() >= s->linger_until_ms)) {
		sink_destroy(s);
		return;
	}
	if (more)
		writer_call(s);
	w->due_ms = MIN(w->due_ms, sink_due_ms(s));
}
