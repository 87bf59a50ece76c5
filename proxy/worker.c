/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - one thread, one event base, and the sandboxes that live on it
 *
 * A worker is made on the main thread, before the process is sealed, and from
 * worker_start() on touched only by its own thread.  One that is lodged with a
 * base of the caller's has no thread: it lives on the one that runs that base,
 * and its mail comes and is done there like any other event.  Things that ended are
 * freed by the reclaim event, which runs after the callback that ended them
 * has returned; then paused listeners are asked whether they may go on.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <event2/event.h>

#include "base/log.h"
#include "base/mem.h"
#include "proxy/conn.h"
#include "proxy/half.h"
#include "proxy/listener.h"
#include "proxy/marks.h"
#include "proxy/relay.h"
#include "proxy/sched.h"
#include "proxy/worker.h"
#include "resolver/resolver.h"

/* What lives shorter pays nothing for a keepalive. */
#define WORKER_KEEP_S	30

struct worker_own {
	struct worker pub;
	struct mailbox *mailbox;
	struct mail stop;
	pthread_t thread;
	bool lodger;		/* no base and no thread of its own */
	pthread_mutex_t gate;	/* locked while the thread must wait */
	bool held;
	bool started, stopping;
};

struct worker_call {
	struct mail mail;
	worker_fn *fn;
	void *arg;
};

static struct worker_own *worker_own(struct worker *w)
{
	return container_of(w, struct worker_own, pub);
}

static void worker_reclaim_cb(evutil_socket_t fd, short what, void *arg)
{
	struct worker *w = arg;

	(void)fd;
	(void)what;
	conn_reclaim(w);
	listener_resume_paused(w);
}

void worker_reclaim(struct worker *w)
{
	event_active(w->reclaim, 0, 0);
}

static void worker_keep_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	conn_keep_alive(arg);
}

void worker_keep(struct worker *w)
{
	static const struct timeval after = { .tv_sec = WORKER_KEEP_S };

	/* Without memory for a timer the next tunnel asks again. */
	if (w->keep && !event_pending(w->keep, EV_TIMEOUT, NULL))
		(void)event_add(w->keep, &after);
}

static int worker_base_new(struct event_base **ret)
{
	struct event_config *config = event_config_new();

	if (!config)
		return -ENOMEM;
	/* One thread each, and nothing of ours comes from the environment. */
	if (event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK |
				  EVENT_BASE_FLAG_IGNORE_ENV) == 0)
		*ret = event_base_new_with_config(config);
	event_config_free(config);
	return *ret ? 0 : -ENOMEM;
}

/* @base: to lodge with, or NULL */
static int worker_make(unsigned index, struct event_base *base,
		       struct worker **ret)
{
	struct worker_own *o = mem_new(sizeof(*o));
	struct worker *w;
	int err = 0;

	if (!o)
		return -ENOMEM;
	if (pthread_mutex_init(&o->gate, NULL) != 0) {
		mem_free(o);
		return -ENOMEM;
	}
	w = &o->pub;
	w->index = index;
	list_init(&w->sandboxes);
	list_init(&w->dead);
	list_init(&w->paused);
	w->base = base;
	o->lodger = base != NULL;
	if (!base)
		err = worker_base_new(&w->base);
	if (err == 0)
		err = mailbox_new(w->base, w, &o->mailbox);
	if (err == 0) {
		w->reclaim = event_new(w->base, -1, 0, worker_reclaim_cb, w);
		w->keep = event_new(w->base, -1, 0, worker_keep_cb, w);
		err = w->reclaim && w->keep ? 0 : -ENOMEM;
	}
	if (err == 0)
		err = half_loop_new(w->base, &w->halves);
	if (err == 0)
		err = resolver_new(w->base, &w->resolver);
	if (err == 0)
		err = relay_pool_new(&w->relay);
	if (err == 0)
		err = sched_new(w->base, &w->sched);
	if (err < 0) {
		worker_free(w);
		return err;
	}
	*ret = w;
	return 0;
}

/**
 * worker_new() - Everything but the thread
 * @ret:	the caller's, for worker_free()
 * Return: 0 or -errno
 */
int worker_new(unsigned index, struct worker **ret)
{
	return worker_make(index, NULL, ret);
}

/**
 * worker_lodge() - The same on the caller's base, without a thread
 * @base:	outlives the worker, and is run by the caller
 */
int worker_lodge(unsigned index, struct event_base *base, struct worker **ret)
{
	return worker_make(index, base, ret);
}

static void *worker_main(void *arg)
{
	struct worker_own *o = arg;

	/* What was done to the worker before is seen behind it. */
	if (pthread_mutex_lock(&o->gate) != 0 ||
	    pthread_mutex_unlock(&o->gate) != 0)
		return NULL;
	event_base_loop(o->pub.base, EVLOOP_NO_EXIT_ON_EMPTY);
	return NULL;
}

/**
 * worker_start() - Start the thread; signals must be blocked already
 *
 * A lodger needs none.
 */
int worker_start(struct worker *w)
{
	struct worker_own *o = worker_own(w);
	int err;

	if (o->lodger)
		return 0;
	err = pthread_create(&o->thread, NULL, worker_main, o);

	o->started = err == 0;
	return -err;
}

int worker_start_held(struct worker *w)
{
	struct worker_own *o = worker_own(w);
	int err = o->lodger ? 0 : -pthread_mutex_lock(&o->gate);

	if (err < 0)
		return err;
	o->held = !o->lodger;
	err = worker_start(w);
	if (err < 0)
		worker_go(w);
	return err;
}

void worker_go(struct worker *w)
{
	struct worker_own *o = worker_own(w);

	if (o->held)
		pthread_mutex_unlock(&o->gate);
	o->held = false;
}

void worker_post(struct worker *w, struct mail *mail, mail_fn *fn)
{
	mailbox_post(worker_own(w)->mailbox, mail, fn);
}

static void worker_on_call(void *owner, struct mail *mail)
{
	struct worker_call *call = container_of(mail, struct worker_call,
						mail);

	call->fn(owner, call->arg);
	mem_free(call);
}

/**
 * worker_call() - Run @fn on the worker's thread, some time soon
 *
 * A call that the worker did not come to before its end is never made.
 */
int worker_call(struct worker *w, worker_fn *fn, void *arg)
{
	struct worker_call *call = mem_new(sizeof(*call));

	if (!call)
		return -ENOMEM;
	call->fn = fn;
	call->arg = arg;
	worker_post(w, &call->mail, worker_on_call);
	return 0;
}

static void worker_on_drain(struct worker *w, void *arg)
{
	(void)arg;
	w->draining = true;
}

void workers_drain(struct worker *const *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (worker_call(w[i], worker_on_drain, NULL) < 0)
			log_error("out of memory: runs may open new flows until they end");
}

static void worker_on_stop(void *owner, struct mail *mail)
{
	struct worker *w = owner;

	(void)mail;
	event_base_loopbreak(w->base);
}

/**
 * worker_stop() - Ask the thread to end after what was posted before
 */
void worker_stop(struct worker *w)
{
	struct worker_own *o = worker_own(w);

	if (!o->started || o->stopping)
		return;
	o->stopping = true;
	worker_post(w, &o->stop, worker_on_stop);
}

/**
 * worker_join() - Ask the thread to end, and wait until it has
 */
void worker_join(struct worker *w)
{
	struct worker_own *o = worker_own(w);

	worker_go(w);
	worker_stop(w);
	if (o->started)
		pthread_join(o->thread, NULL);
	o->started = false;
}

/**
 * worker_free() - Join the thread and free; no sandbox may be left on it
 */
void worker_free(struct worker *w)
{
	struct worker_own *o;

	if (!w)
		return;
	o = worker_own(w);
	worker_join(w);
	REQUIRE(list_empty(&w->sandboxes));
	if (w->base)
		conn_reclaim(w);
	marks_free(w->marks);
	relay_pool_free(w->relay);
	sched_free(w->sched);
	half_loop_free(w->halves);
	resolver_free(w->resolver);
	if (w->reclaim)
		event_free(w->reclaim);
	if (w->keep)
		event_free(w->keep);
	mailbox_free(o->mailbox);
	if (w->base && !o->lodger)
		event_base_free(w->base);
	pthread_mutex_destroy(&o->gate);
	mem_free(o);
}
