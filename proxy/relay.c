/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.c - bytes between the two halves of a flow
 *
 * Theory of operation
 * ===================
 *
 * Two directions, up (app to net) and down (net to app), are the same code
 * twice.  A direction reads only while it holds nothing: what its reader has
 * not taken yet stands in a store (copied bytes) or in a pipe, and until that is
 * gone its source is not looked at, so the sender feels the slow reader through
 * TCP's own window and we hold at most one chunk (at the start, the early
 * bytes).  Interest in events is exactly what can make progress:
 *
 *	source readable		while the direction is open and holds nothing
 *	sink writable		while it holds something
 *
 * Nothing is polled, and level-triggered readiness never spins.  What stands
 * still is charged to the sandbox, with what the kernel may hold of it
 * (sock_still.h), and where much is held already there are small reads only.
 *
 * Small things are copied through the worker's scratch memory: one recv, one
 * send, no allocation.  After RELAY_BULK_AFTER large chunks a direction goes
 * through a pipe with splice(2) until chunks become small again.  It pumps the
 * pipe empty before it fills it anew, so EAGAIN from the filling side always
 * means an empty socket, never a full pipe.
 *
 * The end of a stream is passed on (shutdown) when everything before it has
 * been; a relay is over when both directions are done.  A reset is passed on by
 * the caller, as a reset.  When a sink is found to be reset, what its owner had
 * sent before is still delivered first: a server that answers and hangs up
 * before it has read the whole request is understood by its client.
 *
 * What a direction may read is asked of the flow's account (quota.h).  Where its
 * rate has no room, the direction is held: its source is not looked at until a
 * timer lets it go, and early bytes of app's that the rate has no room for are not
 * sent.  A budget that is used up ends the relay when one byte more is there to be
 * read; a FIN may still pass.
 *
 * A half whose FIN was passed on may have no event of interest left.  Whether
 * its kernel is still there is found by keepalive, and seen by a slow timer.
 */
#include "proxy/relay_own.h"

#include <errno.h>
#include <event2/event.h>
#include <limits.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "proxy/quota.h"
#include "proxy/sock.h"

#define RELAY_MAGIC	0x524c4159u	/* "RLAY" */

/* --- the ends ------------------------------------------------------------------ */

/* The peer of @side answers no more: nothing can be sent to it. */
static void half_gone(struct relay *r, enum relay_side side)
{
	r->half[side].reset = true;
	relay_drop(r, other(side));
}

/* Pass a FIN on once everything before it has been. */
static void dir_close(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];

	if (d->done || !d->eof || dir_holds(d))
		return;
	d->done = true;
	/* The other one is over: closing the sockets will say it. */
	if (r->dir[other(side)].done)
		return;
	if (shutdown(r->half[other(side)].fd, SHUT_WR) == -1)
		half_gone(r, other(side));
}

static enum reason half_reset_reason(const struct relay *r,
				     enum relay_side side)
{
	/* It had said all it wanted: that it left later is no news. */
	if (r->dir[side].eof && r->closed != REASON_ALLOWED &&
	    (r->closed == REASON_CLIENT_CLOSED) == (side == APP))
		return r->closed;
	return side == APP ? REASON_CLIENT_RESET : REASON_ORIGIN_RESET;
}

static enum reason end_reason(const struct relay *r)
{
	if (r->half[APP].reset)
		return half_reset_reason(r, APP);
	if (r->half[NET].reset)
		return half_reset_reason(r, NET);
	return r->closed;
}

static void app_writable_cb(evutil_socket_t fd, short what, void *arg);
static void net_writable_cb(evutil_socket_t fd, short what, void *arg);
static void hold_cb(evutil_socket_t fd, short what, void *arg);
static void check_cb(evutil_socket_t fd, short what, void *arg);

/* Return: false when there is no memory to watch the descriptor. */
static bool interest(struct event *ev, bool want, bool *is)
{
	if (want == *is)
		return true;
	*is = want;
	if (want)
		return event_add(ev, NULL) == 0;
	(void)!event_del(ev);
	return true;
}

static bool want_read(struct relay_half *h, bool want)
{
	return interest(&h->rd, want, &h->reading);
}

static bool want_write(struct relay *r, enum relay_side side, bool want)
{
	static const event_callback_fn fn[RELAY_SIDES] = {
		[APP] = app_writable_cb, [NET] = net_writable_cb,
	};
	struct relay_half *h = &r->half[side];

	if (want == h->writing)
		return true;
	if (!h->wr)
		h->wr = event_new(r->base, h->fd, EV_WRITE | EV_PERSIST,
				  fn[side], r);
	return h->wr && interest(h->wr, want, &h->writing);
}

/* Return: false when there is no memory for it. */
static bool timer_start(struct relay *r, struct event **ev, short kind,
			event_callback_fn fn, const struct timeval *tv)
{
	if (!*ev)
		*ev = event_new(r->base, -1, kind, fn, r);
	return *ev && event_add(*ev, tv) == 0;
}

static void timer_stop(struct event *ev)
{
	if (ev)
		(void)!event_del(ev);
}

static void relay_stop(struct relay *r)
{
	enum relay_side side;

	for (side = APP; side < RELAY_SIDES; side++) {
		(void)!want_read(&r->half[side], false);
		(void)!want_write(r, side, false);
	}
	sched_cancel(&r->work[APP]);
	sched_cancel(&r->work[NET]);
	timer_stop(r->check);
	timer_stop(r->hold);
	r->holding = false;
}

/* Let go of what is held when its rate has room again. */
static bool relay_hold(struct relay *r)
{
	unsigned ms = UINT_MAX;
	struct timeval tv;
	enum relay_side side;

	for (side = APP; side < RELAY_SIDES; side++) {
		if (r->dir[side].held)
			ms = MIN(ms, quota_wait_ms(r->account, relay_way(side),
						   clock_mono_ms()));
	}
	if (ms == UINT_MAX || r->holding)
		return true;
	r->holding = true;
	tv = (struct timeval){ ms / 1000, ms % 1000 * 1000 };
	return timer_start(r, &r->hold, 0, hold_cb, &tv);
}

/* Of a direction that stands still, what the kernels hold of it. */
static void note_still(struct relay *r, enum relay_side side, bool stands)
{
	struct relay_store *s = r->dir[side].store;

	if (s)
		sock_still_set(&s->still, r->memory, stands,
			       (struct sock_way){ r->half[side].fd,
						  r->half[other(side)].fd,
						  s->pipe.size,
						  r->dir[side].moved });
}

static bool relay_update(struct relay *r)
{
	const struct timeval period = { .tv_sec = RELAY_CHECK_S };
	enum relay_side side;
	bool watched = relay_hold(r);

	for (side = APP; side < RELAY_SIDES; side++) {
		const struct relay_dir *out = &r->dir[side];
		const struct relay_dir *in = &r->dir[other(side)];
		bool stands = !in->done && dir_holds(in);

		if (!want_read(&r->half[side], !out->done && !out->eof &&
			       !out->held && !dir_holds(out) &&
			       !sched_waits(&r->work[side])) ||
		    !want_write(r, side, stands && !in->held &&
				!sched_waits(&r->work[other(side)])))
			watched = false;
		note_still(r, other(side), stands);
	}
	if (!r->checking && (r->dir[APP].done || r->dir[NET].done)) {
		r->checking = true;
		if (!timer_start(r, &r->check, EV_PERSIST, check_cb, &period))
			watched = false;
	}
	return watched;
}

/* The last thing that a callback does: @r may be freed by it. */
static void relay_settle(struct relay *r, enum reason fault)
{
	dir_close(r, APP);
	dir_close(r, NET);
	if (fault == REASON_ALLOWED &&
	    !(r->dir[APP].done && r->dir[NET].done)) {
		if (relay_update(r))
			return;
		fault = REASON_MEMORY_EXCEEDED;
	}
	relay_stop(r);
	r->fn(r->arg, fault != REASON_ALLOWED ? fault : end_reason(r));
}

static void relay_pump(struct relay *r, enum relay_side side)
{
	enum reason fault = REASON_ALLOWED;

	if (r->dir[side].done) {
		relay_settle(r, fault);
		return;
	}
	switch (relay_move(r, side)) {
	case STEP_SOURCE_GONE:
		half_gone(r, side);
		relay_drop(r, side);
		break;
	case STEP_SINK_GONE:
		half_gone(r, other(side));
		/* What it had sent before it went is delivered first. */
		if (!r->dir[other(side)].done) {
			relay_pump(r, other(side));
			return;
		}
		break;
	case STEP_NO_MEMORY:
		fault = REASON_MEMORY_EXCEEDED;
		break;
	case STEP_OVER:
		fault = r->over;
		break;
	case STEP_HELD:
	case STEP_MORE:
	case STEP_IDLE:
	case STEP_BLOCKED:
		break;
	}
	relay_settle(r, fault);
}

/* --- events -------------------------------------------------------------------- */

static struct relay *relay_of(void *arg)
{
	struct relay *r = arg;

	REQUIRE(r->magic == RELAY_MAGIC);
	return r;
}

static void pump_app(void *arg)
{
	relay_pump(relay_of(arg), APP);
}

static void pump_net(void *arg)
{
	relay_pump(relay_of(arg), NET);
}

/* When it is the sandbox's turn; until then its event rests, which
 * relay_update() wakes.  A sink that takes bytes again moves the direction that
 * comes from beyond. */
static void relay_due(struct relay *r, enum relay_side side, bool readable)
{
	if (!sched_run(r->turn, &r->work[readable ? side : other(side)]))
		return;
	if (readable)
		(void)!want_read(&r->half[side], false);
	else
		(void)!want_write(r, side, false);
}

static void app_readable_cb(evutil_socket_t fd UNUSED, short what UNUSED,
			    void *arg)
{
	relay_due(relay_of(arg), APP, true);
}

static void net_readable_cb(evutil_socket_t fd UNUSED, short what UNUSED,
			    void *arg)
{
	relay_due(relay_of(arg), NET, true);
}

static void app_writable_cb(evutil_socket_t fd UNUSED, short what UNUSED,
			    void *arg)
{
	relay_due(relay_of(arg), APP, false);
}

static void net_writable_cb(evutil_socket_t fd UNUSED, short what UNUSED,
			    void *arg)
{
	relay_due(relay_of(arg), NET, false);
}

static void check_cb(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct relay *r = relay_of(arg);
	enum relay_side side;

	for (side = APP; side < RELAY_SIDES; side++) {
		const struct relay_half *h = &r->half[side];

		if (h->reading || h->writing || sched_waits(&r->work[APP]) ||
		    sched_waits(&r->work[NET]) || !sock_is_dead(h->fd))
			continue;
		half_gone(r, side);
		relay_drop(r, side);
	}
	relay_settle(r, REASON_ALLOWED);
}

static void hold_cb(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct relay *r = relay_of(arg);
	bool up = r->dir[APP].held, down = r->dir[NET].held;

	r->holding = false;
	r->dir[APP].held = r->dir[NET].held = false;
	/* A pump may be the last thing; what else was held is looked at then,
	 * since its source is readable. */
	if (up)
		relay_due(r, APP, true);
	else if (down)
		relay_due(r, NET, true);
	else
		relay_settle(r, REASON_ALLOWED);
}

int relay_start(const struct relay_config *config, struct relay **ret)
{
	struct relay *r;
	int err, err_net;

	if (MAX(config->up.n, config->down.n) > RELAY_EARLY_MAX)
		return -EMSGSIZE;
	r = mem_new(sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->magic = RELAY_MAGIC;
	r->base = config->base;
	r->pool = config->pool;
	r->fn = config->fn;
	r->arg = config->arg;
	r->account = config->account;
	r->turn = config->turn;
	r->memory = config->memory;
	r->half[APP].fd = config->app;
	r->half[NET].fd = config->net;
	sched_work_init(&r->work[APP], pump_app, r);
	sched_work_init(&r->work[NET], pump_net, r);
	if (event_assign(&r->half[APP].rd, r->base, config->app,
			 EV_READ | EV_PERSIST, app_readable_cb, r) ||
	    event_assign(&r->half[NET].rd, r->base, config->net,
			 EV_READ | EV_PERSIST, net_readable_cb, r)) {
		mem_free(r);
		return -EINVAL;
	}
	r->said = config->down.n;
	err = relay_early(r, APP, config->up);
	err_net = relay_early(r, NET, config->down);
	if (err || err_net || !relay_update(r)) {
		relay_free(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

void relay_free(struct relay *r)
{
	enum relay_side side;

	if (!r)
		return;
	REQUIRE(r->magic == RELAY_MAGIC);
	relay_stop(r);
	for (side = APP; side < RELAY_SIDES; side++) {
		relay_drop(r, side);
		if (r->half[side].wr)
			event_free(r->half[side].wr);
	}
	if (r->check)
		event_free(r->check);
	if (r->hold)
		event_free(r->hold);
	r->magic = 0;
	mem_free(r);
}

void relay_bytes(const struct relay *r, uint64_t *ret_up, uint64_t *ret_down)
{
	*ret_up = r->dir[APP].moved;
	/* What was said before the relay is counted by who knows whose it was. */
	*ret_down = r->dir[NET].moved - MIN(r->dir[NET].moved, r->said);
}
