/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.c - the callers' side of a sink: posting, flushing, replacing
 *
 * Theory in writer.c.  Everything here returns without waiting for a
 * descriptor, but audit_sink_flush().
 */
#include "audit/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"

/* For the thread to look at a sink, not for a disk. */
#define TAKEN_MAX_MS	100

/* Under the lock: append a line.  0 or -ENOBUFS. */
int sink_add(struct audit_sink *s, const struct record *r,
	     const struct record_labels *labels)
{
	if (record_render(r, labels, s->seq + 1, clock_wall_us(),
			  &s->fill) < 0)
		return -ENOBUFS;
	s->seq++;
	atomic_store(&s->queued, s->fill.n);
	return 0;
}

/* Under the lock: say what was lost, where there is room to. */
int sink_add_gap(struct audit_sink *s)
{
	struct record gap = {
		.event = RECORD_LOG_GAP,
		.act = RECORD_ACT_NONE,
		.rcode = -1,
		.dur_ms = -1,
		.count = (uint32_t)MIN(s->lost, UINT32_MAX),
	};
	int err;

	if (s->lost == 0)
		return 0;
	err = sink_add(s, &gap, &s->labels);
	if (err == 0)
		s->lost = 0;
	return err;
}

static const char *copy_label(char *to, size_t size, const char *from)
{
	size_t n;

	if (!from)
		return NULL;
	n = MIN(strlen(from), size - 1);
	memcpy(to, from, n);
	to[n] = '\0';
	return to;
}

static void copy_labels(struct audit_sink *s,
			const struct record_labels *labels)
{
	s->labels = (struct record_labels){
		.run = copy_label(s->run, sizeof(s->run), labels->run),
		.sandbox = copy_label(s->sandbox, sizeof(s->sandbox),
				      labels->sandbox),
		.policy = copy_label(s->policy, sizeof(s->policy),
				     labels->policy),
		.mode = copy_label(s->mode, sizeof(s->mode), labels->mode),
		.generation = labels->generation,
	};
	record_labels_render(&s->labels, s->members);
}

/* The one whose queue it is. */
static struct audit_sink *sink_of(struct audit_sink *s)
{
	return s->of ? s->of : s;
}

static int sink_init_sync(struct audit_sink *s)
{
	pthread_condattr_t attr;
	int err;

	err = pthread_condattr_init(&attr);
	if (err)
		return -err;
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	err = pthread_cond_init(&s->moved, &attr);
	pthread_condattr_destroy(&attr);
	if (err == 0)
		err = pthread_mutex_init(&s->lock, NULL);
	return -err;
}

/**
 * audit_sink_new() - A destination for records
 * @w:		writer, which must outlive the sink
 * @fd:		taken, also on failure; -1 for a sink that drops everything
 * @labels:	copied
 * Return: 0 or -errno
 */
int audit_sink_new(struct audit_writer *w, int fd,
		   const struct record_labels *labels, struct audit_sink **ret)
{
	CLEANUP(fd_closep) int owned = fd;
	struct audit_sink *s;
	size_t i;
	int err;

	if (fd >= 0 && fcntl(fd, F_GETFD) == -1)
		return -errno;
	s = mem_new(sizeof(*s));
	if (!s)
		return -ENOMEM;
	err = sink_init_sync(s);
	if (err < 0) {
		mem_free(s);
		return err;
	}
	s->writer = w;
	s->fill = BUF_INIT(SINK_QUEUE_MAX);
	s->drain = BUF_INIT(SINK_QUEUE_MAX);
	list_init(&s->node);
	list_init(&s->ready_node);
	for (i = 0; i < DESTS; i++) {
		dest_init(&s->dest[i], &w->env, s, s->run);
		s->wanted_fd[i] = -1;
	}
	copy_labels(s, labels);
	s->dropping = fd < 0;
	s->wanted_fd[0] = fd_take(&owned);
	writer_call(s);
	*ret = s;
	return 0;
}

/**
 * audit_sink_share() - Another way into the queue of @s, for another thread
 * @ret:	for audit_sink_free(), before @s is freed
 * Return: 0 or -ENOMEM
 */
int audit_sink_share(struct audit_sink *s, struct audit_sink **ret)
{
	struct audit_sink *way = mem_new(sizeof(*way));

	if (!way)
		return -ENOMEM;
	way->writer = s->writer;
	way->of = sink_of(s);
	sink_lock(&way->of->lock);
	copy_labels(way, &s->labels);
	sink_unlock(&way->of->lock);
	*ret = way;
	return 0;
}

static struct timespec deadline_after(int timeout_ms)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	ts.tv_sec += timeout_ms / 1000;
	ts.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_sec++;
		ts.tv_nsec -= 1000000000;
	}
	return ts;
}

/*
 * Under the lock: a first descriptor that still waits to be taken would be
 * replaced, and what was posted meanwhile would miss it.  The thread takes it
 * at its next look, whatever the disk does.
 */
static void sink_wait_taken(struct audit_sink *s, size_t which)
{
	struct timespec deadline = deadline_after(TAKEN_MAX_MS);

	while (s->wanted_fd[which] >= 0 && !s->taken[which])
		if (pthread_cond_timedwait(&s->moved, &s->lock, &deadline))
			return;
}

static int sink_want(struct audit_sink *s, size_t which, int fd)
{
	if (fd < 0 || fcntl(fd, F_GETFD) == -1)
		return -EBADF;
	sink_lock(&s->lock);
	sink_wait_taken(s, which);
	fd_closep(&s->wanted_fd[which]);
	s->wanted_fd[which] = fd;
	s->wanted_after[which] = s->seq;
	s->dropping = false;
	sink_unlock(&s->lock);
	/* Soon: somebody may already wait to bring yet another one. */
	writer_enlist(s);
	writer_hurry(s->writer);
	return 0;
}

/**
 * audit_sink_tee() - A second descriptor that gets the same lines from now on
 * @fd:		taken when this succeeds; a second call replaces the first one's
 *
 * The sink is down when either of its descriptors is.
 * Return: 0 or -EBADF
 */
int audit_sink_tee(struct audit_sink *s, int fd)
{
	return sink_want(s, 1, fd);
}

/**
 * audit_sink_reopen() - Replace the sink's own descriptor, for log rotation
 * @fd:		taken when this succeeds; else the old one stays in use
 *
 * The old one first gets what was posted before, if it still takes it, and is
 * closed then.  A line of which it took only a part is written anew.
 * Return: 0 or -EBADF
 */
int audit_sink_reopen(struct audit_sink *s, int fd)
{
	return sink_want(s, 0, fd);
}

/**
 * audit_sink_set_policy() - Records from now on are of another policy
 * @labels:	policy, mode and generation count, and are copied
 */
void audit_sink_set_policy(struct audit_sink *s,
			   const struct record_labels *labels)
{
	sink_lock(&sink_of(s)->lock);
	s->labels.policy = copy_label(s->policy, sizeof(s->policy),
				      labels->policy);
	s->labels.mode = copy_label(s->mode, sizeof(s->mode), labels->mode);
	s->labels.generation = labels->generation;
	record_labels_render(&s->labels, s->members);
	sink_unlock(&sink_of(s)->lock);
}

static int sink_put(struct audit_sink *way, const struct record *r,
		    bool insist)
{
	struct audit_sink *s = sink_of(way);
	bool down = atomic_load(&s->down), was_empty, crowded;
	size_t before;
	int err = 0;

	sink_lock(&s->lock);
	before = s->fill.n;
	if (s->dropping)
		s->seq++;
	else if (down && !insist)
		err = -EIO;
	else if (!insist && s->fill.n + RECORD_LINE_MAX > SINK_POST_MAX)
		err = -ENOBUFS;
	else if (!down)
		err = sink_add_gap(s);
	if (err == 0 && !s->dropping)
		err = sink_add(s, r, &way->labels);
	if (err < 0) {
		s->lost++;
		s->lost_ever++;
	}
	was_empty = before == 0 && s->fill.n > 0;
	crowded = before < SINK_HURRY && s->fill.n >= SINK_HURRY;
	sink_unlock(&s->lock);
	if (was_empty)
		writer_call(s);
	else if (crowded)
		writer_hurry(s->writer);
	return err;
}

/**
 * audit_post() - Queue one record; from any thread; never waits for a disk
 * Return: 0, -ENOBUFS (queue full) or -EIO (sink down): in both cases the
 * record is counted as lost, and a new flow must be refused
 */
int audit_post(struct audit_sink *s, const struct record *r)
{
	return sink_put(s, r, false);
}

/**
 * audit_tell() - Queue a record whose loss changes nothing any more
 *
 * It may use the last quarter of the queue, and is kept for a sink that is
 * down as long as there is room.
 */
void audit_tell(struct audit_sink *s, const struct record *r)
{
	if (sink_put(s, r, true) < 0)
		log_debug("audit: run %s: a record was lost", s->run);
}

/**
 * audit_ok() - Would audit_post() work now?  Takes no lock
 */
bool audit_ok(const struct audit_sink *s)
{
	const struct audit_sink *to = s->of ? s->of : s;

	return !atomic_load(&to->down) &&
	       atomic_load(&to->queued) + RECORD_LINE_MAX <= SINK_POST_MAX;
}

/**
 * audit_seq() - The sequence number of the last record that was queued
 */
uint64_t audit_seq(struct audit_sink *s)
{
	uint64_t seq;

	sink_lock(&s->lock);
	seq = s->seq;
	sink_unlock(&s->lock);
	return seq;
}

/**
 * audit_lost() - How many records were lost since the sink was made
 */
uint64_t audit_lost(struct audit_sink *s)
{
	uint64_t lost;

	sink_lock(&s->lock);
	lost = s->lost_ever;
	sink_unlock(&s->lock);
	return lost;
}

/**
 * audit_sink_flush() - Wait until everything posted so far is written
 *
 * A sink that is down is tried at once, without its pause.
 * Return: 0, -ETIMEDOUT, or -EIO when it cannot be written
 */
int audit_sink_flush(struct audit_sink *s, int timeout_ms)
{
	struct timespec deadline = deadline_after(timeout_ms);
	uint64_t target, attempts;
	bool gap;
	int err = 0;

	sink_lock(&s->lock);
	target = s->seq;
	attempts = s->attempts;
	gap = s->lost > 0;
	s->hurry = true;
	if (s->dropping)
		target = 0;
	sink_unlock(&s->lock);
	writer_enlist(s);
	writer_hurry(s->writer);
	sink_lock(&s->lock);
	while (err == 0 && (s->written < target || s->lost > 0 || gap)) {
		if (gap && s->lost == 0) {
			/* The gap stands in the queue now: wait for it too. */
			gap = false;
			target = s->seq;
		} else if (s->attempts != attempts) {
			err = -EIO;
		} else {
			err = -pthread_cond_timedwait(&s->moved, &s->lock,
						      &deadline);
		}
	}
	sink_unlock(&s->lock);
	return err;
}

/**
 * audit_sink_free() - Write the rest in the background, then close
 * @s:		NULL is fine; must not be used afterwards, by any thread
 */
void audit_sink_free(struct audit_sink *s)
{
	struct audit_writer *w;

	if (!s)
		return;
	if (s->of) {
		mem_free(s);
		return;
	}
	w = s->writer;
	/* Once the lock is released the thread may free it at any time. */
	sink_lock(&w->lock);
	s->freed = true;
	if (!s->in_ready) {
		s->in_ready = true;
		list_add(&w->ready, &s->ready_node);
	}
	sink_unlock(&w->lock);
	writer_wake(w);
}
