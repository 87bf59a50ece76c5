/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward.c - HTTP/1 exchanges of one connection, every request judged
 *
 * Theory of operation
 * ===================
 *
 * Two halves: app, the program's connection, and net, the one to the origin of
 * the request in hand.  Each has a buffer for what was read from it and one
 * for what it is to be sent, both bounded; a half whose peer is slow is simply
 * not read.  A request that arrives before the last one was answered waits in
 * app's buffer.
 *
 *	HEAD ---> DIAL ---> EXCHANGE ---> HEAD ...
 *	  |         |           |  \-----> TUNNEL
 *	  |         |           |
 *	  +---------+-----------+--> DRAIN ---> HEAD ...
 *	  |         |           |      |
 *	  +---------+-----------+------+--> FLUSH ---> LINGER ---> ENDED
 *
 *   from       to         by                    because
 *   HEAD       DIAL       forward_admit()       allowed, no connection there
 *   HEAD       EXCHANGE   forward_admit()       allowed, the kept one is right
 *   DIAL       EXCHANGE   dial_step()           net is connected
 *   DIAL       DIAL       dial_step()           the one that was found spoke
 *   EXCHANGE   DIAL       forward_exchange_step()  the kept one was dead
 *   EXCHANGE   HEAD       forward_next()        answered, both go on
 *   EXCHANGE   TUNNEL     forward_exchange_step()  101 that was asked for
 *   any        DRAIN      forward_drain()       answered by us, and its end
 *                                               is certain
 *   DRAIN      HEAD       forward_next()        the body that nobody wants is over
 *   any        FLUSH      forward_close_after_flush()
 *   FLUSH      LINGER     flush_step()          all is sent, FIN too
 *   any        ENDED      forward_end()
 *
 * LINGER keeps reading for a while, because closing with unread bytes would
 * make the kernel reset the connection and the client lose the answer
 * (RFC 9112 9.6).
 *
 * Sockets are read in their callbacks only, one read each; forward_run() then
 * takes steps until nothing changes, which the buffers bound.  The last two
 * operations, tunnel and finish, are called by forward_run() when no other
 * frame of the engine is on the stack, so that the owner may free it there.
 */
#include "proxy/forward.h"

#include <assert.h>
#include <errno.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/mem.h"
#include "proxy/forward_int.h"

#define LINGER_BYTES_MAX	(256u << 20)

static const struct {
	const char *name;
	uint32_t next;		/* states that may follow, as bits */
} forward_states[] = {
	[FORWARD_HEAD]     = { "head", BIT(FORWARD_DIAL) |
			       BIT(FORWARD_EXCHANGE) | BIT(FORWARD_DRAIN) |
			       BIT(FORWARD_FLUSH) | BIT(FORWARD_ENDED) },
	[FORWARD_DIAL]     = { "dial", BIT(FORWARD_DIAL) |
			       BIT(FORWARD_EXCHANGE) | BIT(FORWARD_DRAIN) |
			       BIT(FORWARD_FLUSH) | BIT(FORWARD_ENDED) },
	[FORWARD_EXCHANGE] = { "exchange", BIT(FORWARD_HEAD) |
			       BIT(FORWARD_DIAL) | BIT(FORWARD_DRAIN) |
			       BIT(FORWARD_TUNNEL) | BIT(FORWARD_FLUSH) |
			       BIT(FORWARD_ENDED) },
	[FORWARD_DRAIN]    = { "drain", BIT(FORWARD_HEAD) |
			       BIT(FORWARD_FLUSH) | BIT(FORWARD_ENDED) },
	[FORWARD_FLUSH]    = { "flush", BIT(FORWARD_LINGER) |
			       BIT(FORWARD_ENDED) },
	[FORWARD_LINGER]   = { "linger", BIT(FORWARD_ENDED) },
	[FORWARD_TUNNEL]   = { "tunnel", BIT(FORWARD_ENDED) },
	[FORWARD_ENDED]    = { "ended", 0 },
};
static_assert(ARRAY_SIZE(forward_states) == FORWARD_STATES,
	      "name every state");

/* --- deadlines -------------------------------------------------------------- */

static void deadline_set(struct forward *f, unsigned ms)
{
	const struct timeval tv = {
		.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000,
	};

	/* A timer that cannot be set is a connection without a limit: end it
	 * at the next turn instead. */
	if (event_add(f->timer, &tv) < 0)
		event_active(f->timer, EV_TIMEOUT, 0);
}

static void deadline_for(struct forward *f, enum forward_state state)
{
	switch (state) {
	case FORWARD_HEAD:
		if (f->app.out.n > 0)
			forward_watch_taken(f);
		else
			deadline_set(f, f->served ? f->limits.idle_ms :
						    f->limits.head_ms);
		break;
	case FORWARD_DRAIN:
		deadline_set(f, f->limits.head_ms);
		break;
	case FORWARD_FLUSH:
		forward_watch_taken(f);
		break;
	case FORWARD_LINGER:
		deadline_set(f, f->limits.linger_ms);
		break;
	case FORWARD_EXCHANGE:
		forward_watch(f);
		break;
	case FORWARD_DIAL:	/* the owner's to bound */
	case FORWARD_TUNNEL:
	case FORWARD_ENDED:
	case FORWARD_STATES:
		event_del(f->timer);
		break;
	}
}

static void forward_check(const struct forward *f)
{
	bool net = stream_is_open(&f->net.io);

	REQUIRE(net || f->state != FORWARD_EXCHANGE);
	REQUIRE(!net || (f->state != FORWARD_DIAL &&
			 f->state != FORWARD_ENDED));
}

void forward_set_state(struct forward *f, enum forward_state to)
{
	REQUIRE(forward_states[f->state].next & BIT(to));
	f->state = to;
	f->head_begun = false;
	f->discarded = 0;
	forward_check(f);
	deadline_for(f, to);
}

/* --- ends ------------------------------------------------------------------- */

void forward_end(struct forward *f, enum reason why, bool reset)
{
	forward_net_leave(f, why);
	f->end_why = why;
	f->end_reset = reset;
	forward_set_state(f, FORWARD_ENDED);
}

void forward_close_after_flush(struct forward *f, enum reason why, bool reset)
{
	forward_net_leave(f, why);
	f->end_why = why;
	f->end_reset = reset;
	forward_set_state(f, FORWARD_FLUSH);
}

void forward_next(struct forward *f)
{
	f->served++;
	buf_done(&f->request);
	forward_set_state(f, FORWARD_HEAD);
}

/* The client is gone in the middle of a request. */
static void client_lost(struct forward *f)
{
	enum reason why = f->app.broken || f->app.deaf ?
		REASON_CLIENT_RESET : REASON_CLIENT_CLOSED;

	if (f->state == FORWARD_DIAL && !f->dial_over)
		f->ops->dial_cancel(f->arg);
	forward_net_take(f);
	forward_record(f, f->x.would_deny ? RECORD_WOULD_DENY : RECORD_ALLOW,
		       why);
	forward_end(f, why, false);
}

/* --- steps: each returns whether something changed --------------------------- */

/* The client left in the middle of a head, or before the first one. */
static void head_ended(struct forward *f)
{
	if (f->app.in.n > 0) {
		forward_refuse_head(f, REASON_CLIENT_CLOSED_EARLY);
		return;
	}
	forward_end(f, f->app.broken ? REASON_CLIENT_RESET :
		    f->served ? REASON_CLIENT_CLOSED :
		    REASON_CLIENT_CLOSED_EARLY, false);
}

static bool head_step(struct forward *f)
{
	struct str in = buf_str(&f->app.in);
	enum http1_result result = HTTP1_MORE;
	enum reason why;

	forward_net_check(f);
	if (f->app.deaf) {
		forward_end(f, REASON_CLIENT_RESET, false);
		return true;
	}
	if (f->app.out.n > 0)
		return false;	/* the last answer is still on its way */
	if (in.n > 0 && !f->head_begun) {
		f->head_begun = true;
		deadline_set(f, f->limits.head_ms);
	}
	if (in.n > 0 && http1_head_grew(in, f->app.seen)) {
		result = http1_parse_request(in, &f->head, &why);
		f->app.seen = in.n;
	}
	if (result != HTTP1_BAD &&
	    (result == HTTP1_DONE ? f->head.bytes : in.n) >
	    f->limits.head_bytes) {
		result = HTTP1_BAD;
		why = REASON_HEADER_TOO_LARGE;
	}
	if (result == HTTP1_DONE)
		forward_admit(f);
	else if (result == HTTP1_BAD)
		forward_refuse_head(f, why);
	else if (f->app.eof)
		head_ended(f);
	else
		return false;
	return true;
}

static void net_read_cb(evutil_socket_t fd, short what, void *arg);
static void write_cb(evutil_socket_t fd, short what, void *arg);

static bool dial_step(struct forward *f)
{
	if (f->app.broken) {
		client_lost(f);
		return true;
	}
	if (!f->dial_over)
		return false;
	if (!stream_is_open(&f->dial_net)) {
		forward_refuse(f, f->dial_why, 0);
		return true;
	}
	forward_net_take(f);
	/* It said something, or ended, since the owner looked at it. */
	if (f->net_reused && !forward_half_silent(&f->net)) {
		forward_net_close(f, REASON_ORIGIN_CLOSED);
		forward_dial(f);
		return true;
	}
	if (forward_half_watch(&f->net, f->base, net_read_cb,
			       write_cb, f) < 0) {
		forward_net_close(f, REASON_MEMORY_EXCEEDED);
		forward_refuse(f, REASON_MEMORY_EXCEEDED, 0);
		return true;
	}
	forward_send(f);
	return true;
}

static bool exchange_step(struct forward *f)
{
	if (f->app.broken || f->app.deaf) {
		client_lost(f);
		return true;
	}
	if (forward_exchange_step(f))
		return true;
	/* All that came was taken, and it was not all. */
	if (f->app.eof && f->net.out.n == 0 && !http1_body_over(&f->x.up)) {
		client_lost(f);
		return true;
	}
	if (f->app.eof)
		forward_watch_end(f);
	return false;
}

static bool drain_step(struct forward *f)
{
	enum http1_result result;
	size_t used;

	result = rewrite_body(&f->x.up, buf_str(&f->app.in), HTTP1_NO_BODY,
			      NULL, 0, &used);
	forward_half_consume(&f->app, used);
	f->discarded += used;
	if (result == HTTP1_DONE)
		forward_next(f);
	else if (result == HTTP1_BAD || f->app.eof ||
		 f->discarded > FORWARD_DRAIN_MAX)
		forward_close_after_flush(f, f->end_why, false);
	else
		return used > 0;
	return true;
}

static bool flush_step(struct forward *f)
{
	int err = -EPIPE;

	if (f->app.out.n > 0)
		return false;
	if (!f->app.deaf && !f->app.broken && !f->end_reset)
		err = forward_half_shut(&f->app);
	if (err == -EAGAIN)
		return false;
	if (err < 0)
		forward_end(f, f->end_why, f->end_reset);
	else
		forward_set_state(f, FORWARD_LINGER);
	return true;
}

static bool linger_step(struct forward *f)
{
	size_t n = f->app.in.n;

	forward_half_consume(&f->app, n);
	f->discarded += n;
	if (!f->app.eof && f->discarded <= LINGER_BYTES_MAX)
		return false;
	forward_end(f, f->end_why, false);
	return true;
}

static bool forward_step(struct forward *f)
{
	if (forward_over_step(f))
		return true;
	switch (f->state) {
	case FORWARD_HEAD:
		return head_step(f);
	case FORWARD_DIAL:
		return dial_step(f);
	case FORWARD_EXCHANGE:
		return exchange_step(f);
	case FORWARD_DRAIN:
		return drain_step(f);
	case FORWARD_FLUSH:
		return flush_step(f);
	case FORWARD_LINGER:
		return linger_step(f);
	case FORWARD_TUNNEL:
	case FORWARD_ENDED:
	case FORWARD_STATES:
		break;
	}
	return false;
}

/* --- the driver ------------------------------------------------------------- */

static void forward_arm(struct forward *f)
{
	bool idle = f->state == FORWARD_HEAD, armed;

	if (idle) {
		forward_half_trim(&f->app);
		forward_half_trim(&f->net);
	}
	armed = forward_half_arm(&f->app, READ_ON, 0);
	if (stream_is_open(&f->net.io) &&
	    !forward_half_arm(&f->net, idle ? READ_IDLE : READ_ON,
			      idle ? forward_net_idle_ms(f) : 0))
		armed = false;
	/* What stands still before either stands in the kernel, too. */
	sock_still_set(&f->still_down, f->memory, f->app.writing,
		       (struct sock_way){ f->net.io.fd, f->app.io.fd,
					  0, f->app.bytes_out });
	sock_still_set(&f->still_up, f->memory, f->net.writing,
		       (struct sock_way){ f->app.io.fd, f->net.io.fd,
					  0, f->net.bytes_out });
	forward_hold(f);
	if (!armed)
		event_active(f->kick, 0, 0);
}

/* Both last operations may free @f: nothing touches it behind them. */
static void forward_leave(struct forward *f)
{
	struct stream net;

	event_del(f->timer);
	event_del(f->kick);
	event_del(f->hold);
	sched_cancel(&f->work);
	forward_half_disarm(&f->app);
	forward_half_disarm(&f->net);
	if (f->state == FORWARD_ENDED) {
		f->ops->finish(f->arg, f->end_why, f->end_reset);
		return;
	}
	net = stream_take(&f->net.io);
	f->ops->tunnel(f->arg, net, buf_str(&f->net.out), buf_str(&f->app.out),
		       f->net.bytes_out, f->net.bytes_in);
}

static bool is_over(const struct forward *f)
{
	return f->state == FORWARD_ENDED || f->state == FORWARD_TUNNEL;
}

/* App takes what it is told: until it has all, that is what is waited for. */
static void on_told(struct forward *f)
{
	if (f->state == FORWARD_FLUSH ||
	    (f->state == FORWARD_HEAD && !f->head_begun))
		deadline_for(f, f->state);
}

static void forward_run(struct forward *f)
{
	bool changed = true;

	while (changed && !is_over(f)) {
		changed = forward_step(f);
		if (is_over(f))
			break;
		if (forward_half_flush(&f->app)) {
			changed = true;
			on_told(f);
		}
		if (forward_half_flush(&f->net))
			changed = true;
	}
	if (is_over(f))
		forward_leave(f);
	else
		forward_arm(f);
}

static void forward_on_deadline(struct forward *f)
{
	switch (f->state) {
	case FORWARD_HEAD:
		if (f->app.out.n > 0) {
			if (forward_is_not_taken(f))
				forward_end(f, REASON_IDLE_TIMEOUT, true);
		} else if (f->app.in.n > 0 || f->served == 0) {
			forward_refuse_head(f, REASON_HEADER_TIMEOUT);
		} else {
			forward_end(f, REASON_CLIENT_CLOSED, false);
		}
		break;
	case FORWARD_DRAIN:
		forward_close_after_flush(f, f->end_why, false);
		break;
	case FORWARD_FLUSH:
		if (forward_is_not_taken(f))
			forward_end(f, f->end_why, true);
		break;
	case FORWARD_LINGER:
		forward_end(f, f->end_why, false);
		break;
	case FORWARD_EXCHANGE:
		forward_on_watch(f);
		break;
	case FORWARD_DIAL:
	case FORWARD_TUNNEL:
	case FORWARD_ENDED:
	case FORWARD_STATES:
		break;
	}
	forward_run(f);
}

/* --- trampolines ------------------------------------------------------------ */

static struct forward *forward_of(void *arg)
{
	struct forward *f = arg;

	REQUIRE(f->magic == FORWARD_MAGIC);
	return f;
}

/* What is ready is read when it is the sandbox's turn. */
static void due_fn(void *arg)
{
	struct forward *f = forward_of(arg);
	uint64_t before = f->app.bytes_in + f->net.bytes_in;
	unsigned due = f->due;

	f->due = 0;
	if (due & FORWARD_APP_READ)
		forward_half_fill(&f->app);
	if ((due & FORWARD_NET_READ) && stream_is_open(&f->net.io))
		forward_half_fill(&f->net);
	sched_spend(f->turn, SCHED_COST_CALL + (int64_t)
		    (f->app.bytes_in + f->net.bytes_in - before));
	forward_run(f);
}

/* When it is the sandbox's turn.  Return: the event is to rest until then, since
 * it was reported before: a turn that is near spares two system calls. */
static bool is_due(struct forward *f, unsigned due)
{
	bool again = sched_waits(&f->work) && (f->due & due) == due;

	f->due |= due;
	return sched_run(f->turn, &f->work) && again;
}

static void app_read_cb(evutil_socket_t fd, short what, void *arg)
{
	struct forward *f = forward_of(arg);

	(void)fd;
	(void)what;
	if (is_due(f, FORWARD_APP_READ))
		forward_half_rest(&f->app, true);
}

static void net_read_cb(evutil_socket_t fd, short what, void *arg)
{
	struct forward *f = forward_of(arg);

	(void)fd;
	if (what & EV_TIMEOUT) {	/* armed between requests only */
		forward_net_close(f, forward_net_is_old(f) ?
				  REASON_FLOW_TIME_EXCEEDED :
				  REASON_CLIENT_CLOSED);
		forward_run(f);
		return;
	}
	if (is_due(f, FORWARD_NET_READ))
		forward_half_rest(&f->net, true);
}

static void write_cb(evutil_socket_t fd, short what, void *arg)
{
	struct forward *f = forward_of(arg);
	struct forward_half *h = fd == f->app.io.fd ? &f->app : &f->net;

	(void)what;
	if (is_due(f, forward_half_due(&f->app, FORWARD_APP_READ) |
		   forward_half_due(&f->net, FORWARD_NET_READ)))
		forward_half_rest(h, false);
}

static void kick_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	forward_let_go(forward_of(arg));
	forward_run(forward_of(arg));
}

static void timer_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	forward_on_deadline(forward_of(arg));
}

/* --- from outside ------------------------------------------------------------- */

static int forward_init(struct forward *f, const struct forward_config *c)
{
	f->mode = c->mode;
	f->outlives = c->outlives;
	f->pinned = c->pinned;
	f->policy = c->policy;
	f->run = c->run;
	f->ops = c->ops;
	f->arg = c->arg;
	f->base = c->base;
	f->account = c->account;
	f->turn = c->turn;
	sched_work_init(&f->work, due_fn, f);
	forward_limits_take(f, &c->limits);
	f->request = BUF_FOR(HTTP1_HEAD_MAX + REWRITE_EXTRA_MAX,
			     c->memory);
	forward_half_init(&f->app, c->app, c->memory);
	f->timer = evtimer_new(c->base, timer_cb, f);
	f->kick = event_new(c->base, -1, 0, kick_cb, f);
	f->hold = evtimer_new(c->base, kick_cb, f);
	if (!f->timer || !f->kick || !f->hold ||
	    forward_half_watch(&f->app, c->base, app_read_cb,
			       write_cb, f) < 0 ||
	    buf_add_str(&f->app.in, c->early) < 0)
		return -ENOMEM;
	deadline_for(f, FORWARD_HEAD);
	event_active(f->kick, 0, 0);
	return 0;
}

int forward_start(const struct forward_config *config, struct forward **ret)
{
	struct forward *f;
	int err;

	if (config->early.n > FORWARD_BUF)
		return -EMSGSIZE;
	f = mem_new(sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->magic = FORWARD_MAGIC;
	f->dial_net = STREAM_NONE;
	f->memory = config->memory;
	forward_half_init(&f->net, STREAM_NONE, f->memory);
	err = forward_init(f, config);
	if (err < 0) {
		forward_free(f);
		return err;
	}
	*ret = f;
	return 0;
}

void forward_cut(struct forward *f, enum reason why)
{
	if (is_over(f))
		return;
	if (f->state == FORWARD_DIAL && !f->dial_over)
		f->ops->dial_cancel(f->arg);
	forward_net_take(f);
	forward_record(f, RECORD_ERROR, why);
	forward_net_close(f, why);
	forward_set_state(f, FORWARD_ENDED);
	forward_half_disarm(&f->app);
	event_del(f->kick);
	event_del(f->hold);
	sched_cancel(&f->work);
}

void forward_revoke(struct forward *f, enum reason why)
{
	switch (f->state) {
	case FORWARD_DIAL:
		if (!f->dial_over || !stream_is_open(&f->dial_net))
			return;
		/* Connected, and not taken yet: as if the dial had failed. */
		forward_net_take(f);
		forward_net_close(f, why);
		f->dial_why = why;
		break;
	case FORWARD_EXCHANGE:
		forward_exchange_revoke(f, why);
		break;
	case FORWARD_HEAD:
	case FORWARD_DRAIN:
		forward_net_close(f, why);
		break;
	case FORWARD_FLUSH:
	case FORWARD_LINGER:
	case FORWARD_TUNNEL:
	case FORWARD_ENDED:
	case FORWARD_STATES:
		return;
	}
	event_active(f->kick, 0, 0);
}

void forward_free(struct forward *f)
{
	if (!f)
		return;
	REQUIRE(f->magic == FORWARD_MAGIC);
	f->magic = 0;
	sched_cancel(&f->work);
	sock_still_done(&f->still_up, f->memory);
	sock_still_done(&f->still_down, f->memory);
	forward_half_done(&f->app);
	forward_half_done(&f->net);
	stream_close(&f->dial_net);
	stream_close(&f->net.io);
	if (f->timer)
		event_free(f->timer);
	if (f->kick)
		event_free(f->kick);
	if (f->hold)
		event_free(f->hold);
	buf_done(&f->request);
	mem_free(f);
}
