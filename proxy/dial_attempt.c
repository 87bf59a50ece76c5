/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial_attempt.c - one address, tried: straight, by a marked socket, or through
 *                  a parent
 */
#include "proxy/dial_own.h"

#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "proxy/parent_dial.h"
#include "proxy/parents.h"
#include "proxy/sock.h"
#include "proxy/source.h"

bool dial_attempt_is_open(const struct dial_attempt *a)
{
	return a->half || a->via || a->wait.queue;
}

void dial_attempt_close(struct dial_attempt *a)
{
	if (a->half)
		(void)!event_del(&a->timeout);
	half_closep(&a->half, false);
	marks_cancel(&a->wait);
	parent_dial_cancel(a->via);
	a->via = NULL;
}

static void attempt_over(struct dial_attempt *a, enum reason why,
			 unsigned status)
{
	struct dial *d = a->dial;

	dial_attempt_close(a);
	d->nopen--;
	dial_why_failed(d, why, status);
}

/* -EINPROGRESS: nothing is decided yet. */
static int attempt_error(const struct half *h)
{
	int err = 0;
	socklen_t n = sizeof(err);

	if (!h->failed)
		return h->writable ? 0 : -EINPROGRESS;
	return getsockopt(h->fd, SOL_SOCKET, SO_ERROR, &err, &n) == -1 ?
		       -errno : -err;
}

static void attempt_failed(struct dial_attempt *a, int err)
{
	struct dial *d = a->dial;

	attempt_over(a, sock_connect_reason(err), 0);
	dial_next(d);
}

static void attempt_timeout_cb(evutil_socket_t fd UNUSED, short what UNUSED,
			       void *arg)
{
	struct dial_attempt *a = arg;

	REQUIRE(a->dial->magic == DIAL_MAGIC);
	attempt_failed(a, ETIMEDOUT);
}

static void attempt_said(void *arg)
{
	struct dial_attempt *a = arg;
	struct dial *d = a->dial;
	int err;

	REQUIRE(d->magic == DIAL_MAGIC);
	err = attempt_error(a->half);
	if (err == -EINPROGRESS)
		return;
	if (err == 0) {
		(void)!event_del(&a->timeout);
		a->half->fn = half_ignore;
		d->result.half = a->half;
		a->half = NULL;
		dial_connected(d, a);
		return;
	}
	attempt_failed(a, -err);
}

static void on_parent(void *arg, const struct parent_dial_result *r)
{
	struct dial_attempt *a = arg;
	struct dial *d = a->dial;

	REQUIRE(d->magic == DIAL_MAGIC);
	a->via = NULL;
	if (r->reason == REASON_ALLOWED) {
		d->result.fd = r->fd;
		dial_connected(d, a);
		return;
	}
	attempt_over(a, r->reason, r->status);
	dial_next(d);
}

/* As dial_attempt_start(), through a parent. */
static enum reason attempt_start_via(struct dial *d, struct dial_attempt *a)
{
	const struct parent_dial_config config = {
		.dial = &d->c,
		.parent = a->way.parent,
		.host = a->way.there ? host_name_str(&d->host) : STR_NONE,
		.addr = a->addr,
		.port = d->c.port,
		.bare = a->way.bare,
		.fn = on_parent,
		.arg = a,
	};
	int err = parent_dial_start(&config, &a->via);

	return err < 0 ? sock_connect_reason(-err) : REASON_ALLOWED;
}

/* Takes @fd.  0, or the errno of one that failed at once. */
static int attempt_connect(struct dial_attempt *a, int fd)
{
	const struct dial_config *c = &a->dial->c;
	const struct ip_endpoint dst = { a->addr, c->port };
	struct sockaddr_storage ss;
	socklen_t n = ip_endpoint_to_sockaddr(&dst, &ss);
	CLEANUP(fd_closep) int own = fd;
	int err;

	if (fd_is_reserved(fd))
		return EMFILE;
	/* A tunnel gets keepalive when it has lived for a while. */
	(c->http ? sock_tune : sock_nodelay)(fd);
	err = source_bind(c->source, fd, ss.ss_family);
	if (err < 0)
		return -err;
	if (connect(fd, (const struct sockaddr *)&ss, n) == -1 &&
	    errno != EINPROGRESS)
		return errno;
	/* One that connected at once is writable at once. */
	a->half = half_new(c->halves, fd_take(&own), attempt_said, a);
	if (a->half && !event_assign(&a->timeout, c->base, -1, 0,
				     attempt_timeout_cb, a) &&
	    !dial_arm(&a->timeout, c->limits.connect_ms))
		return 0;
	half_closep(&a->half, false);
	return ENOMEM;
}

/* As dial_attempt_start(), with @fd_or_err as its socket. */
static enum reason attempt_with(struct dial_attempt *a, int fd_or_err)
{
	enum reason why;
	int err;

	if (fd_or_err >= 0) {
		err = attempt_connect(a, fd_or_err);
		return err ? sock_connect_reason(err) : REASON_ALLOWED;
	}
	/* Of the network this says nothing. */
	why = sock_connect_reason(-fd_or_err);
	return why == REASON_CONNECT_FAILED ? REASON_INTERNAL_ERROR : why;
}

static void on_marked(struct marks_wait *w, int fd_or_err)
{
	struct dial_attempt *a = container_of(w, struct dial_attempt, wait);
	struct dial *d = a->dial;
	enum reason why;

	REQUIRE(d->magic == DIAL_MAGIC);
	why = attempt_with(a, fd_or_err);
	if (why == REASON_ALLOWED)
		return;
	attempt_over(a, why, 0);
	dial_next(d);
}

/* As dial_attempt_start(), straight to the address. */
static enum reason attempt_start_direct(struct dial *d,
					struct dial_attempt *a)
{
	int family = a->addr.family == IP_V4 ? AF_INET : AF_INET6, fd;

	if (!d->c.marks) {
		fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			    IPPROTO_TCP);
		return attempt_with(a, fd < 0 ? -errno : fd);
	}
	a->wait.fn = on_marked;
	fd = marks_take(d->c.marks, family, &a->wait);
	return fd == -EINPROGRESS ? REASON_ALLOWED : attempt_with(a, fd);
}

enum reason dial_attempt_start(struct dial *d, const struct ip_addr *addr,
			       const struct dial_way *way)
{
	struct dial_attempt *a = mem_new(sizeof(*a));
	enum reason why;

	if (!a)
		return REASON_MEMORY_EXCEEDED;
	a->dial = d;
	a->way = *way;
	if (addr)
		a->addr = *addr;
	a->way.bare = way->parent && way->parent->absolute && d->c.http;
	why = way->parent ? attempt_start_via(d, a) :
			    attempt_start_direct(d, a);
	if (why != REASON_ALLOWED) {
		mem_free(a);
		return why;
	}
	d->attempt[d->nattempts++] = a;
	d->nopen++;
	return why;
}
