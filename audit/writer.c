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
 * sink.c has the callers' side of this and sink_drain.c the thread's; how a
 * destination takes its bytes is told in dest.c.
 *
 * A sink is handed to the thread through the writer's "ready" list when its
 * fill stops being empty, at its birth, and when something is asked of it
 * (flush, tee, reopen, free).  All other lists belong to the thread alone.
 * Locks are taken in the order sink, writer.
 *
 * Records come in bursts, so after it has written the thread naps for a while
 * before it asks to be woken: what is posted meanwhile costs its poster no
 * system call and waits for the nap's end.  Whoever waits for the thread (a
 * flush, a new descriptor, the end) cuts the nap short, and so does a queue of
 * SINK_HURRY bytes.
 *
 * Loss
 * ----
 * What could not be queued is counted; as soon as there is room again and the
 * destinations work, a log_gap record with the count is queued, also when no
 * other record follows.  Lost records take no sequence number.
 */
#include "audit/writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "audit/sink.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"

/* How long a sink that was freed may still try to get rid of its lines. */
#define LINGER_MS	5000
#define EVENTS_MAX	32
/* After work: records of one burst go out in one write.  Where there is work
 * after each, a nap costs more than what is written, and the next is longer. */
#define NAP_MIN_MS	1
#define NAP_MAX_MS	8
/* Sinks served between two looks at the clock. */
#define READY_MAX	64
#define STACK_BYTES	(512u << 10)
#define THREAD_NAME_SIZE	16	/* prctl(2) */

/* --- waking the thread ---------------------------------------------------- */

static void writer_ring(struct audit_writer *w)
{
	uint64_t one = 1;

	while (write(w->wake_fd, &one, sizeof(one)) == -1 && errno == EINTR)
		;
}

/* One write(2) however many posts come before it looks. */
void writer_wake(struct audit_writer *w)
{
	if (!atomic_exchange(&w->woken, true))
		writer_ring(w);
}

/* Somebody waits: now, also when it naps. */
void writer_hurry(struct audit_writer *w)
{
	atomic_store(&w->woken, true);
	writer_ring(w);
}

void writer_enlist(struct audit_sink *s)
{
	struct audit_writer *w = s->writer;

	sink_lock(&w->lock);
	if (!s->in_ready) {
		s->in_ready = true;
		list_add(&w->ready, &s->ready_node);
	}
	sink_unlock(&w->lock);
}

void writer_call(struct audit_sink *s)
{
	writer_enlist(s);
	writer_wake(s->writer);
}

/* --- the thread ----------------------------------------------------------- */

static struct audit_sink *writer_pop(struct audit_writer *w)
{
	struct audit_sink *s = NULL;

	sink_lock(&w->lock);
	if (!list_empty(&w->ready)) {
		s = list_first(&w->ready, struct audit_sink, ready_node);
		list_del(&s->ready_node);
		s->in_ready = false;
		if (s->freed && !s->closing) {
			s->closing = true;
			s->linger_until_ms = clock_mono_ms() + LINGER_MS;
		}
	}
	sink_unlock(&w->lock);
	return s;
}

/* Return: how many sinks were served; READY_MAX: there may be more. */
static unsigned writer_run_ready(struct audit_writer *w)
{
	struct audit_sink *s;
	unsigned i;

	for (i = 0; i < READY_MAX; i++) {
		s = writer_pop(w);
		if (!s)
			break;
		if (!s->known) {
			list_add(&w->sinks, &s->node);
			s->known = true;
		}
		sink_pump(s, false);
	}
	return i;
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

	sink_lock(&w->lock);
	stop = w->stop;
	*ret_at_ms = w->stop_at_ms;
	sink_unlock(&w->lock);
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
			writer_call(ev[i].data.ptr);
		else if (read(w->wake_fd, &ignored, sizeof(ignored)) == -1)
			continue;
	}
}

static int until(int64_t at_ms)
{
	int64_t left = at_ms - clock_mono_ms();

	if (at_ms == INT64_MAX)
		return -1;
	return (int)MIN(MAX(left, 0), DEST_PAUSE_MAX_MS);
}

static int writer_nap(struct audit_writer *w)
{
	int ms = w->nap_ms;

	w->nap_ms = MIN(ms * 2, NAP_MAX_MS);
	return ms;
}

static void *writer_main(void *arg)
{
	struct audit_writer *w = arg;
	bool stopping = false;
	int64_t stop_at_ms;
	unsigned served;
	int wait_ms;

	for (;;) {
		served = writer_run_ready(w);
		writer_run_due(w, false);
		if (writer_stopping(w, &stop_at_ms)) {
			/* The first time: try all of them once more. */
			if (!stopping)
				writer_run_due(w, true);
			stopping = true;
			if ((served < READY_MAX && writer_idle(w)) ||
			    clock_mono_ms() >= stop_at_ms)
				return NULL;
			w->due_ms = MIN(w->due_ms, stop_at_ms);
		}
		wait_ms = until(w->due_ms);
		if (served == READY_MAX)
			wait_ms = 0;
		else if (served > 0)
			wait_ms = writer_nap(w);
		/* From here on whoever posts must wake us; look once more. */
		else if (atomic_exchange(&w->woken, false))
			continue;
		else
			w->nap_ms = NAP_MIN_MS;
		writer_wait(w, wait_ms);
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
	w->nap_ms = NAP_MIN_MS;
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
	sink_lock(&w->lock);
	w->stop = true;
	w->stop_at_ms = clock_mono_ms() + timeout_ms;
	sink_unlock(&w->lock);
	writer_hurry(w);
	pthread_join(w->thread, NULL);
	while ((s = writer_pop(w)))
		if (!s->known)
			sink_destroy(s);
	list_each(&w->sinks, it, tmp)
		sink_destroy(container_of(it, struct audit_sink, node));
	writer_close(w);
}
