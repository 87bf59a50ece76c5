/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.c - the audit thread: queues in, whole lines out, nothing lost unsaid
 *
 * Theory of operation
 * ===================
 *
 * Each sink has two buffers.  Posts append lines to "fill" under the sink's
 * lock; the thread swaps it for the empty "drain" and writes that without the
 * lock.  A drain is finished when every destination of the sink (the run's own
 * file and perhaps a tee) has taken it to its end; only then the next swap.
 * So a full disk or a reader that does not read fills one queue and stops one
 * sink, never the thread and never the others.
 *
 *	post -> fill --swap--> drain --write--> destination 0, destination 1
 *
 * How a destination takes its bytes is told in dest.c.
 *
 * A sink is handed to the thread through the writer's "ready" list when its
 * fill stops being empty, at its birth, and when something is asked of it
 * (flush, tee, reopen, free).  All other lists belong to the thread alone.
 * Locks are taken in the order sink, writer.
 *
 * Loss
 * ----
 * What could not be queued is counted; as soon as there is room again and the
 * destinations work, a log_gap record with the count is queued, also when no
 * other record follows.  Lost records take no sequence number.
 */
#include "audit/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "audit/dest.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"

/* Bytes that wait in one sink: as much again may be on its way out. */
#define SINK_QUEUE_MAX	(512u << 10)
/* Above this only audit_tell() gets in, so that open flows can be closed. */
#define SINK_POST_MAX	(SINK_QUEUE_MAX / 4 * 3)
/* A buffer that grew beyond this is given back once it is empty. */
#define SINK_KEEP_MAX	(32u << 10)

/* How long a sink that was freed may still try to get rid of its lines. */
#define LINGER_MS	5000
/* Swaps of one sink in a row before the others have their turn. */
#define PUMP_ROUNDS	4
#define EVENTS_MAX	32
/* Sinks served between two looks at the clock. */
#define READY_MAX	64
#define STACK_BYTES	(512u << 10)
#define THREAD_NAME_SIZE	16	/* prctl(2) */

#define DESTS	2		/* the sink's own, and the tee */

struct audit_sink {
	struct audit_writer *writer;

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
	struct dest dest[DESTS];
	bool known;			/* is in audit_writer.sinks */
	bool closing;
	int64_t linger_until_ms;

	/* @labels points into the rest; never changes. */
	struct record_labels labels;
	char run[48], sandbox[72], policy[104], mode[16];
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
	struct list sinks;		/* audit_sink.node */
	int64_t due_ms;			/* when one of them wants to be looked at */
};

/* --- locks that cannot fail ----------------------------------------------- */

static void lock(pthread_mutex_t *m)
{
	int err = pthread_mutex_lock(m);

	REQUIRE(err == 0);
}

static void unlock(pthread_mutex_t *m)
{
	int err = pthread_mutex_unlock(m);

	REQUIRE(err == 0);
}

/* --- waking the thread ---------------------------------------------------- */

static void writer_wake(struct audit_writer *w)
{
	uint64_t one = 1;

	/* One write(2) however many posts come before it looks. */
	if (atomic_exchange(&w->woken, true))
		return;
	while (write(w->wake_fd, &one, sizeof(one)) == -1 && errno == EINTR)
		;
}

static void sink_ready(struct audit_sink *s)
{
	struct audit_writer *w = s->writer;

	lock(&w->lock);
	if (!s->in_ready) {
		s->in_ready = true;
		list_add(&w->ready, &s->ready_node);
	}
	unlock(&w->lock);
	writer_wake(w);
}

/* --- one sink, on the thread ---------------------------------------------- */

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

/* Under the lock: append a line.  0 or -ENOBUFS. */
static int fill_add(struct audit_sink *s, const struct record *r)
{
	if (record_render(r, &s->labels, s->seq + 1, clock_wall_us(),
			  &s->fill) < 0)
		return -ENOBUFS;
	s->seq++;
	atomic_store(&s->queued, s->fill.n);
	return 0;
}

/* Under the lock: say what was lost, where there is room to. */
static int fill_add_gap(struct audit_sink *s)
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
	err = fill_add(s, &gap);
	if (err == 0)
		s->lost = 0;
	return err;
}

/* Under the lock, with the drain done: what was posted becomes the drain. */
static void sink_swap(struct audit_sink *s)
{
	struct buf empty = s->drain;
	size_t i;

	s->written = s->drain_seq;
	if (empty.cap > SINK_KEEP_MAX) {
		buf_done(&empty);
		empty = BUF_INIT(SINK_QUEUE_MAX);
	}
	buf_reset(&empty);
	if (fill_add_gap(s) < 0)
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

	lock(&s->lock);
	for (i = 0; i < DESTS; i++) {
		struct dest *d = &s->dest[i];

		off[i] = d->fd < 0 ? s->drain.n : dest_line_start(&s->drain, d->off);
		fd[i] = -1;
		if (d->fd < 0 || !done || s->drain_seq >= s->wanted_after[i]) {
			fd[i] = s->wanted_fd[i];
			s->wanted_fd[i] = -1;
		}
	}
	if (done)
		sink_swap(s);
	*ret_hurry |= s->hurry;
	s->hurry = false;
	unlock(&s->lock);
	for (i = 0; i < DESTS; i++)
		if (fd[i] >= 0)
			dest_open(&s->dest[i], fd[i], done ? 0 : off[i]);
	return !drain_done(s);
}

/* Let others see how it went. */
static void sink_publish(struct audit_sink *s, bool failed)
{
	atomic_store(&s->down, any_down(s));
	lock(&s->lock);
	if (failed)
		s->attempts++;
	pthread_cond_broadcast(&s->moved);
	unlock(&s->lock);
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
static int64_t sink_due_ms(const struct audit_sink *s)
{
	int64_t due = s->closing ? s->linger_until_ms : INT64_MAX;
	size_t i;

	for (i = 0; i < DESTS; i++)
		if (s->dest[i].state != DEST_UP)
			due = MIN(due, s->dest[i].retry_at_ms);
	return due;
}

static bool sink_idle(struct audit_sink *s)
{
	bool idle;

	lock(&s->lock);
	idle = s->fill.n == 0 && s->lost == 0 && s->wanted_fd[0] < 0 &&
	       s->wanted_fd[1] < 0;
	unlock(&s->lock);
	return idle && drain_done(s);
}

static void sink_destroy(struct audit_sink *s)
{
	struct audit_writer *w = s->writer;
	size_t i;

	lock(&w->lock);
	list_del(&s->ready_node);
	unlock(&w->lock);
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
static void sink_pump(struct audit_sink *s, bool hurry)
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
		sink_ready(s);
	w->due_ms = MIN(w->due_ms, sink_due_ms(s));
}

/* --- the thread ----------------------------------------------------------- */

static struct audit_sink *writer_pop(struct audit_writer *w)
{
	struct audit_sink *s = NULL;

	lock(&w->lock);
	if (!list_empty(&w->ready)) {
		s = list_first(&w->ready, struct audit_sink, ready_node);
		list_del(&s->ready_node);
		s->in_ready = false;
		if (s->freed && !s->closing) {
			s->closing = true;
			s->linger_until_ms = clock_mono_ms() + LINGER_MS;
		}
	}
	unlock(&w->lock);
	return s;
}

/* Return: is there more to do at once? */
static bool writer_run_ready(struct audit_writer *w)
{
	struct audit_sink *s;
	unsigned i;

	for (i = 0; i < READY_MAX; i++) {
		s = writer_pop(w);
		if (!s)
			return false;
		if (!s->known) {
			list_add(&w->sinks, &s->node);
			s->known = true;
		}
		sink_pump(s, false);
	}
	return true;
}

static void writer_run_due(struct audit_writer *w, bool all)
{
	int64_t now = clock_mono_ms();
	struct list *it, *tmp;

	if (!all && now < w->due_ms)
		return;
	w->due_ms = INT64_MAX;
	list_each(&w->sinks, it, tmp) {
		struct audit_sink *s = container_of(it, struct audit_sink, node);
		int64_t due = sink_due_ms(s);

		if (all || due <= now)
			sink_pump(s, all);
		else
			w->due_ms = MIN(w->due_ms, due);
	}
}

static bool writer_idle(struct audit_writer *w)
{
	struct list *it, *tmp;

	list_each(&w->sinks, it, tmp)
		if (!sink_idle(container_of(it, struct audit_sink, node)))
			return false;
	return true;
}

static bool writer_stopping(struct audit_writer *w, int64_t *ret_at_ms)
{
	bool stop;

	lock(&w->lock);
	stop = w->stop;
	*ret_at_ms = w->stop_at_ms;
	unlock(&w->lock);
	return stop;
}

static void writer_wait(struct audit_writer *w, int timeout_ms)
{
	struct epoll_event ev[EVENTS_MAX];
	uint64_t ignored;
	int i, n;

	n = epoll_wait(w->env.epoll_fd, ev, EVENTS_MAX, timeout_ms);
	for (i = 0; i < n; i++) {
		if (ev[i].data.ptr)
			sink_ready(ev[i].data.ptr);
		else if (read(w->wake_fd, &ignored, sizeof(ignored)) == -1)
			continue;
	}
	/* From here on whoever posts must wake us again. */
	atomic_store(&w->woken, false);
}

static int until(int64_t at_ms)
{
	int64_t left = at_ms - clock_mono_ms();

	if (at_ms == INT64_MAX)
		return -1;
	return (int)MIN(MAX(left, 0), DEST_PAUSE_MAX_MS);
}

static void *writer_main(void *arg)
{
	struct audit_writer *w = arg;
	bool busy, stopping = false;
	int64_t stop_at_ms;

	for (;;) {
		busy = writer_run_ready(w);
		writer_run_due(w, false);
		if (writer_stopping(w, &stop_at_ms)) {
			/* The first time: try all of them once more. */
			if (!stopping)
				writer_run_due(w, true);
			stopping = true;
			if ((!busy && writer_idle(w)) ||
			    clock_mono_ms() >= stop_at_ms)
				return NULL;
			w->due_ms = MIN(w->due_ms, stop_at_ms);
		}
		writer_wait(w, busy ? 0 : until(w->due_ms));
	}
}

/* --- from outside --------------------------------------------------------- */

static int thread_start(struct audit_writer *w)
{
	char name[THREAD_NAME_SIZE] = "";
	pthread_attr_t attr;
	sigset_t all, old;
	int err;

	err = pthread_attr_init(&attr);
	if (err)
		return -err;
	err = pthread_attr_setstacksize(&attr, STACK_BYTES);
	if (err == 0) {
		/*
		 * Signals are for the other threads; SIGPIPE and SIGXFSZ go to
		 * the thread that writes, and we prefer EPIPE and EFBIG.
		 */
		sigfillset(&all);
		pthread_sigmask(SIG_BLOCK, &all, &old);
		/*
		 * The name is inherited: a thread that names itself might do
		 * so only after its process has sealed itself against it.
		 */
		(void)prctl(PR_GET_NAME, name);
		(void)prctl(PR_SET_NAME, "audit");
		err = pthread_create(&w->thread, &attr, writer_main, w);
		(void)prctl(PR_SET_NAME, name);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	pthread_attr_destroy(&attr);
	return -err;
}

static void writer_close(struct audit_writer *w)
{
	fd_closep(&w->wake_fd);
	fd_closep(&w->env.epoll_fd);
	pthread_mutex_destroy(&w->lock);
	mem_free(w);
}

/**
 * audit_writer_new() - Start the audit thread
 * Return: 0 or -errno
 */
int audit_writer_new(struct audit_writer **ret)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct audit_writer *w = mem_new(sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	list_init(&w->ready);
	list_init(&w->sinks);
	list_init(&w->env.torn);
	w->due_ms = INT64_MAX;
	pthread_mutex_init(&w->lock, NULL);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->env.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->wake_fd == -1 || w->env.epoll_fd == -1 ||
	    epoll_ctl(w->env.epoll_fd, EPOLL_CTL_ADD, w->wake_fd, &ev) == -1) {
		err = -errno;
		writer_close(w);
		return err;
	}
	err = thread_start(w);
	if (err < 0) {
		writer_close(w);
		return err;
	}
	*ret = w;
	return 0;
}

/**
 * audit_writer_free() - Write what is queued, then end the thread
 * @w:		NULL is fine
 * @timeout_ms:	how long it may try; a write(2) that hangs is waited for
 *
 * Sinks that were not freed are closed with it, so nobody may post any more.
 */
void audit_writer_free(struct audit_writer *w, int timeout_ms)
{
	struct list *it, *tmp;
	struct audit_sink *s;

	if (!w)
		return;
	lock(&w->lock);
	w->stop = true;
	w->stop_at_ms = clock_mono_ms() + timeout_ms;
	unlock(&w->lock);
	writer_wake(w);
	pthread_join(w->thread, NULL);
	while ((s = writer_pop(w)))
		if (!s->known)
			sink_destroy(s);
	list_each(&w->sinks, it, tmp)
		sink_destroy(container_of(it, struct audit_sink, node));
	writer_close(w);
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
	s->labels = (struct record_labels){
		.run = copy_label(s->run, sizeof(s->run), labels->run),
		.sandbox = copy_label(s->sandbox, sizeof(s->sandbox),
				      labels->sandbox),
		.policy = copy_label(s->policy, sizeof(s->policy),
				     labels->policy),
		.mode = copy_label(s->mode, sizeof(s->mode), labels->mode),
	};
	s->dropping = fd < 0;
	s->wanted_fd[0] = fd_take(&owned);
	sink_ready(s);
	*ret = s;
	return 0;
}

static int sink_want(struct audit_sink *s, size_t which, int fd)
{
	if (fd < 0 || fcntl(fd, F_GETFD) == -1)
		return -EBADF;
	lock(&s->lock);
	fd_closep(&s->wanted_fd[which]);
	s->wanted_fd[which] = fd;
	s->wanted_after[which] = s->seq;
	s->dropping = false;
	unlock(&s->lock);
	sink_ready(s);
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

static int sink_put(struct audit_sink *s, const struct record *r, bool insist)
{
	bool down = atomic_load(&s->down), was_empty;
	int err = 0;

	lock(&s->lock);
	was_empty = s->fill.n == 0;
	if (s->dropping)
		s->seq++;
	else if (down && !insist)
		err = -EIO;
	else if (!insist && s->fill.n + RECORD_LINE_MAX > SINK_POST_MAX)
		err = -ENOBUFS;
	else if (!down)
		err = fill_add_gap(s);
	if (err == 0 && !s->dropping)
		err = fill_add(s, r);
	if (err < 0) {
		s->lost++;
		s->lost_ever++;
	}
	was_empty = was_empty && s->fill.n > 0;
	unlock(&s->lock);
	if (was_empty)
		sink_ready(s);
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
	return !atomic_load(&s->down) &&
	       atomic_load(&s->queued) + RECORD_LINE_MAX <= SINK_POST_MAX;
}

/**
 * audit_seq() - The sequence number of the last record that was queued
 */
uint64_t audit_seq(struct audit_sink *s)
{
	uint64_t seq;

	lock(&s->lock);
	seq = s->seq;
	unlock(&s->lock);
	return seq;
}

/**
 * audit_lost() - How many records were lost since the sink was made
 */
uint64_t audit_lost(struct audit_sink *s)
{
	uint64_t lost;

	lock(&s->lock);
	lost = s->lost_ever;
	unlock(&s->lock);
	return lost;
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

	lock(&s->lock);
	target = s->seq;
	attempts = s->attempts;
	gap = s->lost > 0;
	s->hurry = true;
	if (s->dropping)
		target = 0;
	unlock(&s->lock);
	sink_ready(s);
	lock(&s->lock);
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
	unlock(&s->lock);
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
	w = s->writer;
	/* Once the lock is released the thread may free it at any time. */
	lock(&w->lock);
	s->freed = true;
	if (!s->in_ready) {
		s->in_ready = true;
		list_add(&w->ready, &s->ready_node);
	}
	unlock(&w->lock);
	writer_wake(w);
}
