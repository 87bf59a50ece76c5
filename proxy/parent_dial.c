/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parent_dial.c - a connection through a parent proxy
 *
 * Theory of operation
 * ===================
 *
 *	CONNECT ---> SAY <---> HEAR ---> (done)
 *
 *   CONNECT   the parent's own addresses are looked up and raced by a dial that
 *             has no rules: where it is, is the operator's word
 *   SAY       the socket does not take all that is to be said at once
 *   HEAR      an answer is awaited
 *
 * Not one byte behind the parent's last answer is taken off the socket, since it
 * is the destination's already: a server may speak first.  So what came is
 * looked at where it lies (MSG_PEEK); as much of it as is certain to belong to
 * the answer is then read: all, while more must come, else up to its end.
 *
 * What the parent says is never handed on, neither to the sandbox nor into a
 * log: there is a reason, and a number.
 */
#include "proxy/parent_dial.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "proxy/parent_msg.h"
#include "proxy/parents.h"

#define PARENT_DIAL_MAGIC	0x50444c4cu	/* "PDLL" */

/* Lookups of parents are nobody's run: they share what they know. */
#define PARENT_TENANT		0x706172656e747321u

struct parent_dial {
	uint32_t magic;
	struct parent_dial_config c;
	struct dial *dial;		/* in CONNECT */
	int fd;
	struct event ev;
	struct parent_talk talk;
	struct buf in, out;
	size_t sent;			/* of @out */
};

static void parent_dial_done(struct parent_dial *p)
{
	dial_cancel(p->dial);
	if (p->fd >= 0)
		(void)!event_del(&p->ev);
	fd_closep(&p->fd);
	/* It may hold a login. */
	if (p->out.p)
		explicit_bzero(p->out.p, p->out.cap);
	buf_done(&p->out);
	buf_done(&p->in);
	p->magic = 0;
	mem_free(p);
}

static void parent_dial_end(struct parent_dial *p, enum reason why,
			    unsigned status)
{
	struct parent_dial_result r = {
		.reason = why, .status = status, .fd = -1,
	};
	parent_dial_fn *fn = p->c.fn;
	void *arg = p->c.arg;

	if (why == REASON_ALLOWED) {
		if (p->fd >= 0)
			(void)!event_del(&p->ev);
		r.fd = fd_take(&p->fd);
	}
	parent_dial_done(p);
	fn(arg, &r);
}

/* --- talking ---------------------------------------------------------------- */

static void event_cb(evutil_socket_t fd, short what, void *arg);

static void await(struct parent_dial *p, short what)
{
	(void)!event_del(&p->ev);
	if (event_assign(&p->ev, p->c.dial->base, p->fd, what, event_cb, p) ||
	    event_add(&p->ev, NULL))
		parent_dial_end(p, REASON_MEMORY_EXCEEDED, 0);
}

/* It went away in the middle of our conversation. */
static enum reason why_lost(int err)
{
	if (err == ENOMEM || err == ENOBUFS)
		return REASON_MEMORY_EXCEEDED;
	return err == ETIMEDOUT ? REASON_PARENT_TIMEOUT :
				  REASON_PARENT_UNREACHABLE;
}

static void say(struct parent_dial *p)
{
	ssize_t n = send(p->fd, p->out.p + p->sent, p->out.n - p->sent,
			 MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		parent_dial_end(p, why_lost(errno), 0);
		return;
	}
	p->sent += n > 0 ? (size_t)n : 0;
	await(p, p->sent < p->out.n ? EV_WRITE : EV_READ | EV_PERSIST);
}

/* Take @n bytes that were only looked at. */
static bool take(struct parent_dial *p, size_t n)
{
	char *to = p->in.p + p->in.n;

	while (n > 0) {
		ssize_t got = recv(p->fd, to, n, MSG_DONTWAIT);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		n -= (size_t)got;
	}
	return true;
}

static void on_step(struct parent_dial *p, enum parent_step step,
		    size_t peeked, size_t used)
{
	/* Of @used bytes, those before p->in.n were taken earlier. */
	size_t fresh = step == PARENT_MORE ? peeked : used - p->in.n;

	if (step == PARENT_FAILED) {
		parent_dial_end(p, p->talk.why, p->talk.status);
		return;
	}
	if (!take(p, fresh)) {
		parent_dial_end(p, REASON_PARENT_UNREACHABLE, 0);
		return;
	}
	if (step == PARENT_MORE) {
		p->in.n += fresh;
		return;
	}
	buf_reset(&p->in);
	if (step == PARENT_OPEN)
		parent_dial_end(p, REASON_ALLOWED, 0);
	else
		say(p);
}

static void hear(struct parent_dial *p)
{
	size_t room = PARENT_HEAD_MAX - p->in.n, used;
	enum parent_step step;
	ssize_t n;

	if (buf_reserve(&p->in, room)) {
		parent_dial_end(p, REASON_MEMORY_EXCEEDED, 0);
		return;
	}
	n = recv(p->fd, p->in.p + p->in.n, room, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		parent_dial_end(p, n < 0 ? why_lost(errno) :
				   REASON_PARENT_UNREACHABLE, 0);
		return;
	}
	buf_reset(&p->out);
	p->sent = 0;
	step = parent_talk_read(&p->talk,
				str_make(p->in.p, p->in.n + (size_t)n), &used,
				&p->out);
	/* What was taken as part of an answer is part of it. */
	REQUIRE(step == PARENT_MORE || step == PARENT_FAILED ||
		(used >= p->in.n && used <= p->in.n + (size_t)n));
	on_step(p, step, (size_t)n, used);
}

static void event_cb(evutil_socket_t fd UNUSED, short what, void *arg)
{
	struct parent_dial *p = arg;

	REQUIRE(p->magic == PARENT_DIAL_MAGIC);
	if (what & EV_WRITE)
		say(p);
	else
		hear(p);
}

/* --- reaching it ------------------------------------------------------------ */

/* What became of the parent is told as such, not as the destination's fate. */
static enum reason why_not_reached(enum reason r)
{
	if (reason_info(r)->kind != REASON_NETWORK)
		return r;
	if (r == REASON_CONNECT_TIMEOUT || r == REASON_DNS_TIMEOUT)
		return REASON_PARENT_TIMEOUT;
	return REASON_PARENT_UNREACHABLE;
}

static void on_connected(void *arg, const struct dial_result *r)
{
	struct parent_dial *p = arg;

	REQUIRE(p->magic == PARENT_DIAL_MAGIC);
	p->dial = NULL;
	if (r->reason != REASON_ALLOWED) {
		parent_dial_end(p, why_not_reached(r->reason), 0);
		return;
	}
	p->fd = r->fd;
	if (event_assign(&p->ev, p->c.dial->base, p->fd, EV_WRITE, event_cb,
			 p)) {
		fd_closep(&p->fd);
		parent_dial_end(p, REASON_MEMORY_EXCEEDED, 0);
	} else if (p->c.bare) {
		parent_dial_end(p, REASON_ALLOWED, 0);
	} else {
		say(p);
	}
}

static int reach(struct parent_dial *p)
{
	const struct parent *parent = p->c.parent;
	struct dial_config config = *p->c.dial;

	config.rules = NULL;
	config.asker = (struct resolver_asker){ .tenant = PARENT_TENANT };
	config.host = host_name_str(&parent->host);
	config.addr = parent->addr;
	config.port = parent->port;
	config.use = DIAL_ADDR_IF_ITS_OWN;
	config.prefer = IP_NONE;
	config.v4_only = false;
	config.watched = false;
	config.parents = NULL;
	config.permit = NULL;
	config.fn = on_connected;
	config.arg = p;
	return dial_start(&config, &p->dial);
}

int parent_dial_start(const struct parent_dial_config *config,
		      struct parent_dial **ret)
{
	const struct parent *parent = config->parent;
	const struct parent_ask ask = {
		.kind = parent->kind, .host = config->host,
		.addr = config->addr, .port = config->port,
		.user = parent->user, .password = parent->password,
		.basic = parent->basic,
	};
	struct parent_dial *p = mem_new(sizeof(*p));
	int err = p ? 0 : -ENOMEM;

	if (err < 0)
		return err;
	p->magic = PARENT_DIAL_MAGIC;
	p->c = *config;
	p->fd = -1;
	p->in = BUF_INIT(PARENT_HEAD_MAX);
	p->out = BUF_INIT(PARENT_SAY_MAX);
	if (!config->bare)
		err = parent_talk_begin(&p->talk, &ask, &p->out);
	if (err == 0)
		err = reach(p);
	if (err < 0) {
		parent_dial_done(p);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

void parent_dial_cancel(struct parent_dial *p)
{
	if (!p)
		return;
	REQUIRE(p->magic == PARENT_DIAL_MAGIC);
	parent_dial_done(p);
}
