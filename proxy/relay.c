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
 * bytes).  A direction is moved when that can make progress:
 *
 *	source readable		while the direction is open and holds nothing
 *	sink writable		while it holds something
 *
 * What the kernel said last of either is kept by half.c, and nothing changes in
 * what it watches.  What stands
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
	r->reset[side] = true;
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
	if (shutdown(r->half[other(side)]->fd, SHUT_WR) == -1)
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
	if (r->reset[APP])
		return half_reset_reason(r, APP);
	if (r->reset[NET])
		return half_reset_reason(r, NET);
	return r->closed;
}

static void hold_cb(evutil_socket_t fd, short what, void *arg);

static void relay_stop(struct relay *r)
{
	sched_cancel(&r->work[APP]);
	sched_cancel(&r->work[NET]);
	if (r->hold)
		(void)!event_del(r->hold);
	r->holding = false;
}

/* Let go of what is held when its rate has room again.  Return: false when there
 * is no memory for that. */
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
	if (!r->hold)
		r->hold = event_new(r->base, -1, 0, hold_cb, r);
	r->holding = true;
	tv = (struct timeval){ ms / 1000, ms % 1000 * 1000 };
	return r->hold && event_add(r->hold, &tv) == 0;
}

/* Of a direction that stands still, what the kernels hold of it. */
static void note_still(struct relay *r, enum relay_side side, bool stands)
{
	struct relay_store *s = r->dir[side].store;

	if (s)
		sock_still_set(&s->still, r->memory, stands,
			       (struct sock_way){ r->half[side]->fd,
						  r->half[other(side)]->fd,
						  s->pipe.size,
						  r->dir[side].moved });
}

static bool stands(const struct relay_dir *d)
{
	return !d->done && dir_holds(d);
}

static void dir_note(struct relay *r, enum relay_side side)
{
	const struct relay_dir *d = &r->dir[side];

	note_still(r, side, stands(d));
	if (!stands(d) && !d->held)
		half_unmute(r->half[side]);
}

/* May be the last thing that a callback does: then @r may be gone, and it says
 * false. */
static bool relay_settle(struct relay *r, enum reason fault)
{
	dir_close(r, APP);
	dir_close(r, NET);
	if (fault == REASON_ALLOWED &&
	    !(r->dir[APP].done && r->dir[NET].done)) {
		dir_note(r, APP);
		dir_note(r, NET);
		if (relay_hold(r))
			return true;
		fault = REASON_MEMORY_EXCEEDED;
	}
	relay_stop(r);
	r->fn(r->arg, fault != REASON_ALLOWED ? fault : end_reason(r));
	return false;
}

/* As relay_settle(). */
static bool relay_pump(struct relay *r, enum relay_side side)
{
	enum reason fault = REASON_ALLOWED;

	if (r->dir[side].done)
		return relay_settle(r, fault);
	switch (relay_move(r, side)) {
	case STEP_SOURCE_GONE:
		half_gone(r, side);
		relay_drop(r, side);
		break;
	case STEP_SINK_GONE:
		half_gone(r, other(side));
		/* What it had sent before it went is delivered first. */
		if (!r->dir[other(side)].done)
			return relay_pump(r, other(side));
		break;
	case STEP_NO_MEMORY:
		fault = REASON_MEMORY_EXCEEDED;
		break;
	case STEP_OVER:
		fault = r->over;
		break;
	case STEP_MORE:
		sched_again(r->turn, &r->work[side]);
		break;
	case STEP_HELD:
	case STEP_IDLE:
	case STEP_BLOCKED:
		break;
	}
	return relay_settle(r, fault);
}

/* --- events -------------------------------------------------------------------- */

static bool is_ready(const struct relay *r, enum relay_side side)
{
	const struct relay_dir *d = &r->dir[side];

	if (d->done || d->held || sched_waits(&r->work[side]))
		return false;
	return dir_holds(d) ? r->half[other(side)]->writable :
			      !d->eof && r->half[side]->readable;
}

/* Move what can be moved, when it is the sandbox's turn.  What is done at once
 * ends here again, for the other direction. */
static void relay_go(struct relay *r)
{
	if (is_ready(r, APP) && !sched_run(r->turn, &r->work[APP]))
		return;
	if (is_ready(r, NET))
		(void)sched_run(r->turn, &r->work[NET]);
}

static struct relay *relay_of(void *arg)
{
	struct relay *r = arg;

	REQUIRE(r->magic == RELAY_MAGIC);
	return r;
}

static void pump_app(void *arg)
{
	if (relay_pump(relay_of(arg), APP))
		relay_go(arg);
}

static void pump_net(void *arg)
{
	if (relay_pump(relay_of(arg), NET))
		relay_go(arg);
}

/* Something was said of a half that has nothing more to say, nor is anything
 * about to be told it: that it has gone altogether? */
static bool has_gone(const struct relay *r, enum relay_side side)
{
	const struct relay_dir *out = &r->dir[side];

	return r->half[side]->failed && (out->eof || out->done) &&
	       !stands(&r->dir[other(side)]) &&
	       sock_is_dead(r->half[side]->fd);
}

static void relay_said(struct relay *r, enum relay_side side)
{
	const struct relay_dir *d = &r->dir[side];
	struct half *h = r->half[side];

	/* It goes on talking to somebody who is not listened to. */
	if (h->readable && !h->ending && (stands(d) || d->held))
		half_mute(h);
	if (has_gone(r, side)) {
		half_gone(r, side);
		relay_drop(r, side);
		if (!relay_settle(r, REASON_ALLOWED))
			return;
	}
	relay_go(r);
}

static void app_said(void *arg)
{
	relay_said(relay_of(arg), APP);
}

static void net_said(void *arg)
{
	relay_said(relay_of(arg), NET);
}

static void hold_cb(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct relay *r = relay_of(arg);

	r->holding = false;
	r->dir[APP].held = r->dir[NET].held = false;
	if (relay_settle(r, REASON_ALLOWED))
		relay_go(r);
}

/* What was said before is looked at from the loop. */
static void take_half(struct relay *r, enum relay_side side, half_fn *fn)
{
	struct half *h = r->half[side];

	h->fn = fn;
	h->arg = r;
	if (h->readable || stands(&r->dir[other(side)]))
		half_kick(h);
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
	r->half[APP] = config->app;
	r->half[NET] = config->net;
	sched_work_init(&r->work[APP], pump_app, r);
	sched_work_init(&r->work[NET], pump_net, r);
	r->said = config->down.n;
	err = relay_early(r, APP, config->up);
	err_net = relay_early(r, NET, config->down);
	if (err || err_net || !relay_hold(r)) {
		relay_free(r);
		return -ENOMEM;
	}
	take_half(r, APP, app_said);
	take_half(r, NET, net_said);
	*ret = r;
	return 0;
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	REQUIRE(r->magic == RELAY_MAGIC);
	relay_stop(r);
	relay_drop(r, APP);
	relay_drop(r, NET);
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
