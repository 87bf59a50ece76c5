/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.c - connections accepted from one listening socket of a sandbox
 *
 * No error of accept() ends a listener (OPS-01, OPS-02); what differs is when
 * it tries again:
 *
 *	this connection is broken (ECONNABORTED and kin)	at once
 *	nothing is waiting					on the next event
 *	the sandbox holds as many connections as it may		when some ended
 *	no descriptors or memory (EMFILE, ENFILE, ...)		after a pause
 *	the last ones of the descriptors' reserve (fd.h)	after a pause
 *
 * One of the others of the reserve is for a connection that is refused in
 * words.  The last two would spin, since the socket stays readable.  Where there
 * is none at all, a spare descriptor is
 * given up for a moment, so that one waiting connection can be accepted and
 * reset instead of hanging; then the listener sleeps LISTENER_BACKOFF_MS.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/listener.h"
#include "proxy/sandbox.h"
#include "proxy/sched.h"
#include "proxy/sock.h"
#include "proxy/worker.h"

enum listener_result {
	LISTENER_AGAIN,		/* try the next one now */
	LISTENER_IDLE,		/* nothing waits */
	LISTENER_SHORT,		/* of descriptors or memory */
	LISTENER_LAST,		/* of descriptors, but for a reserve */
};

struct listener {
	struct list node;	/* sandbox.listeners */
	struct list paused;	/* worker.paused, while the sandbox is full */
	struct sandbox *sandbox;
	int fd;
	struct ip_endpoint at;	/* where it listens */
	int spare;		/* given up when descriptors run out; or -1 */
	listener_fn *fn;
	struct event *event;
	struct event *backoff;
	bool complained;	/* once a shortage */
	struct sched_work accept;	/* when it is the sandbox's turn */
};

static void listener_pause_full(struct listener *l)
{
	sandbox_on_full(l->sandbox);
	event_del(l->event);
	if (list_empty(&l->paused))
		list_add(&l->sandbox->worker->paused, &l->paused);
}

static enum listener_result listener_judge(int err)
{
	switch (err) {
	case EAGAIN:
		return LISTENER_IDLE;
	case EMFILE:
	case ENFILE:
	case ENOBUFS:
	case ENOMEM:
		return LISTENER_SHORT;
	default:
		/*
		 * The connection died while it waited (accept(2) passes its
		 * pending network error on), or a signal came.
		 */
		return LISTENER_AGAIN;
	}
}

/* Whoever is not a client is told nothing, and costs nothing. */
static bool listener_admits(const struct listener *l,
			    const struct ip_endpoint *src)
{
	return !l->sandbox->clients ||
	       sandbox_admits(l->sandbox, src, &l->at);
}

/* Without an address it is nobody, who can still be judged and recorded. */
static struct ip_endpoint listener_src(const struct sockaddr_storage *peer,
				       socklen_t n)
{
	struct ip_endpoint src;

	if (ip_endpoint_from_sockaddr((const struct sockaddr *)peer, n,
				      &src) < 0)
		return (struct ip_endpoint){ .port = 0 };
	src.addr = ip_addr_unmapped(&src.addr);
	return src;
}

/* Reset a connection that there is no room for, and record it. */
static void listener_drop(struct listener *l, int fd)
{
	struct record r;

	sock_reset(&fd);
	sandbox_record(RECORD_FLOW_DENY, RECORD_DENY,
		       REASON_DESCRIPTORS_EXCEEDED, RECORD_VIA_NONE, &r);
	sandbox_deny(l->sandbox, &r);
}

static enum listener_result listener_accept(struct listener *l)
{
	/* Its size is set anew each time: the families differ (OPS-07). */
	struct sockaddr_storage peer = { 0 };
	socklen_t n = sizeof(peer);
	struct ip_endpoint src;
	int fd = accept4(l->fd, (struct sockaddr *)&peer, &n,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return listener_judge(errno);
	if (fd_is_last(fd)) {
		listener_drop(l, fd);
		return LISTENER_LAST;
	}
	l->complained = l->complained && fd_is_reserved(fd);
	src = listener_src(&peer, n);
	if (listener_admits(l, &src))
		l->fn(l->sandbox, fd, &src);
	else
		sock_reset(&fd);
	return LISTENER_AGAIN;
}

/* One that waits, with the spare descriptor. */
static void listener_shed(struct listener *l)
{
	int fd;

	if (l->spare < 0)
		return;
	fd_closep(&l->spare);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		listener_drop(l, fd);
	l->spare = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);
}

static void listener_rest(struct listener *l)
{
	static const struct timeval pause = {
		.tv_usec = LISTENER_BACKOFF_MS * 1000,
	};

	if (!l->complained)
		log_warn("sandbox %s: out of descriptors or memory; new connections wait: raise LimitNOFILE",
			 l->sandbox->run);
	l->complained = true;
	event_del(l->event);
	/* Without a timer we would wait for ever: then rather spin. */
	if (event_add(l->backoff, &pause) < 0)
		(void)event_add(l->event, NULL);
}

static void listener_accept_all(void *arg)
{
	struct listener *l = arg;
	struct sched_queue *turn = &l->sandbox->turn;
	unsigned i;

	for (i = 0; i < LISTENER_BATCH; i++) {
		enum listener_result r;

		if (sandbox_is_full(l->sandbox)) {
			listener_pause_full(l);
			return;
		}
		if (!sched_has_credit(turn))
			return;
		r = listener_accept(l);
		if (r != LISTENER_IDLE)
			sched_spend(turn, SCHED_COST_ACCEPT);
		if (r == LISTENER_SHORT)
			listener_shed(l);
		if (r == LISTENER_SHORT || r == LISTENER_LAST)
			listener_rest(l);
		if (r != LISTENER_AGAIN)
			return;
	}
}

static void listener_cb(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;

	(void)fd;
	(void)what;
	/* There are few of them: it may be reported again. */
	(void)sched_run(&l->sandbox->turn, &l->accept);
}

static void listener_backoff_cb(evutil_socket_t fd, short what, void *arg)
{
	struct listener *l = arg;

	(void)fd;
	(void)what;
	if (l->spare < 0)
		l->spare = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);
	(void)event_add(l->event, NULL);
}

/**
 * listener_new() - Accept connections of @s from @fd and give them to @fn
 *
 * @fn may end other connections; it must not free the listener.
 */
int listener_new(struct sandbox *s, int fd, listener_fn *fn,
		 struct listener **ret)
{
	struct listener *l = mem_new(sizeof(*l));
	struct event_base *base = s->worker->base;

	if (!l) {
		fd_closep(&fd);
		return -ENOMEM;
	}
	list_init(&l->paused);
	sched_work_init(&l->accept, listener_accept_all, l);
	list_init(&l->node);
	list_add(&s->listeners, &l->node);
	l->sandbox = s;
	l->fd = fd;
	l->fn = fn;
	/* What is accepted inherits it: five system calls less for each. */
	sock_tune(fd);
	(void)!sock_local(fd, &l->at);
	l->spare = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	l->event = event_new(base, fd, EV_READ | EV_PERSIST, listener_cb, l);
	l->backoff = event_new(base, -1, 0, listener_backoff_cb, l);
	if (!l->event || !l->backoff || event_add(l->event, NULL) < 0) {
		listener_free(l);
		return -ENOMEM;
	}
	*ret = l;
	return 0;
}

void listener_free(struct listener *l)
{
	if (!l)
		return;
	list_del(&l->node);
	list_del(&l->paused);
	sched_cancel(&l->accept);
	if (l->event)
		event_free(l->event);
	if (l->backoff)
		event_free(l->backoff);
	fd_closep(&l->spare);
	fd_closep(&l->fd);
	mem_free(l);
}

void listener_free_all(struct sandbox *s)
{
	while (!list_empty(&s->listeners))
		listener_free(list_first(&s->listeners, struct listener,
					 node));
}

void listener_resume_paused(struct worker *w)
{
	struct list *it, *tmp;

	list_each(&w->paused, it, tmp) {
		struct listener *l = container_of(it, struct listener, paused);

		if (sandbox_is_full(l->sandbox))
			continue;
		list_del(it);
		(void)event_add(l->event, NULL);
	}
}
