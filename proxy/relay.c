/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.c - bytes between the two halves of a flow
 *
 * Theory of operation
 * ===================
 *
 * Two directions, up (app to net) and down (net to app), are the same code
 * twice.  A direction reads only while it holds nothing: what its reader has
 * not taken yet stands in @wait (copied bytes) or in a pipe, and until that is
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
#include "proxy/relay.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/mem_account.h"
#include "proxy/quota.h"
#include "proxy/relay_pool.h"
#include "proxy/sched.h"
#include "proxy/sock.h"
#include "proxy/sock_still.h"

#define RELAY_MAGIC	0x524c4159u	/* "RLAY" */
/* Chunks from here on are worth a pipe, and below this they are not. */
#define RELAY_LARGE	(RELAY_CHUNK / 4)
#define RELAY_SMALL	(RELAY_CHUNK / 16)
/* Small ones in a row before a direction copies again. */
#define RELAY_SMALL_ENOUGH	4
/* One read where memory is tight: what may be left over of it. */
#define CHUNK_TIGHT	(RELAY_CHUNK / 8)

enum relay_side { APP, NET, RELAY_SIDES };

struct relay_half {
	int fd;
	bool reset;		/* the peer is gone without a FIN, or after it */
	bool reading, writing;	/* what the events stand at */
	struct event rd, wr;
};

/* From the half of the same index to the other one. */
struct relay_dir {
	struct buf wait;	/* read, not taken yet */
	size_t unpaced;		/* the last ones of @wait: the rate was not asked */
	struct relay_pipe pipe;
	size_t in_pipe;
	struct sock_still still;
	uint64_t moved;
	uint8_t run;		/* large or small chunks in a row */
	bool bulk;		/* through a pipe */
	bool held;		/* until its rate has room again */
	bool eof;		/* the source sent its FIN */
	bool done;		/* ... and it was passed on, or nobody is there */
};

struct relay {
	uint32_t magic;
	struct event_base *base;
	struct relay_pool *pool;
	relay_fn *fn;
	void *arg;
	struct relay_half half[RELAY_SIDES];
	struct relay_dir dir[RELAY_SIDES];
	struct quota_flow *account;
	struct sched_queue *turn;
	struct mem_account *memory;
	struct sched_work work[RELAY_SIDES];	/* to pump that direction */
	enum reason over;	/* a budget that is used up; ALLOWED: none */
	enum reason closed;	/* by whose FIN came first; ALLOWED: none yet */
	bool checking, holding;
	struct event check, hold;
};

enum step {
	STEP_MORE,		/* moved something, there may be more */
	STEP_IDLE,		/* the source has nothing now, or is at its end */
	STEP_BLOCKED,		/* the sink takes no more now */
	STEP_SOURCE_GONE,
	STEP_SINK_GONE,
	STEP_NO_MEMORY,
	STEP_HELD,		/* its rate has no room now */
	STEP_OVER,		/* a budget is used up, and there is more */
};

static enum relay_side other(enum relay_side side)
{
	return side == APP ? NET : APP;
}

static enum quota_way way_of(enum relay_side side)
{
	return side == APP ? QUOTA_UP : QUOTA_DOWN;
}

static bool dir_holds(const struct relay_dir *d)
{
	return d->wait.n || d->in_pipe;
}

static bool would_block(int err)
{
	return err == EAGAIN || err == EINTR;
}

/* --- one chunk --------------------------------------------------------------- */

static enum step pump_pipe(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];
	ssize_t n;

	while (d->in_pipe) {
		n = splice(d->pipe.rd, NULL, r->half[other(side)].fd, NULL,
			   d->in_pipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n <= 0)
			return n < 0 && would_block(errno) ? STEP_BLOCKED :
							     STEP_SINK_GONE;
		d->in_pipe -= (size_t)n;
		d->moved += (uint64_t)n;
		relay_pool_count(r->pool, (size_t)n);
	}
	return STEP_MORE;
}

static enum step pump_wait(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];
	ssize_t n;

	while (d->wait.n) {
		if (d->unpaced)
			d->unpaced -= quota_pace(r->account, way_of(side),
						 d->unpaced, clock_mono_ms());
		if (d->wait.n == d->unpaced)
			return STEP_HELD;
		n = send(r->half[other(side)].fd, d->wait.p,
			 d->wait.n - d->unpaced, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0)
			return would_block(errno) ? STEP_BLOCKED :
						    STEP_SINK_GONE;
		buf_consume(&d->wait, (size_t)n);
		d->moved += (uint64_t)n;
	}
	buf_done(&d->wait);
	d->wait = BUF_FOR(RELAY_EARLY_MAX, r->memory);
	return STEP_MORE;
}

static enum step dir_flush(struct relay *r, enum relay_side side)
{
	enum step step = pump_wait(r, side);

	return step == STEP_MORE ? pump_pipe(r, side) : step;
}

static enum step source_ended(struct relay *r, enum relay_side side,
			      ssize_t n)
{
	if (n < 0)
		return would_block(errno) ? STEP_IDLE : STEP_SOURCE_GONE;
	/* Behind a reset the kernel says end of file: that is no FIN. */
	if (r->half[side].reset)
		return STEP_SOURCE_GONE;
	r->dir[side].eof = true;
	if (r->closed == REASON_ALLOWED)
		r->closed = side == APP ? REASON_CLIENT_CLOSED :
					  REASON_ORIGIN_CLOSED;
	return STEP_IDLE;
}

/* No byte may pass: is there one at all, or the end? */
static enum step dir_over(struct relay *r, enum relay_side side,
			  enum reason why)
{
	char byte;
	ssize_t n = recv(r->half[side].fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n <= 0)
		return source_ended(r, side, n);
	r->over = why;
	return STEP_OVER;
}

/* STEP_MORE: read up to *@ret, then settle; else nothing may be read now. */
static enum step dir_ask(struct relay *r, enum relay_side side, size_t want,
			 size_t *ret)
{
	struct quota_flow *a = r->account;
	enum reason why;

	*ret = want;
	if (!a || !quota_is_limited(a, way_of(side)))
		return STEP_MORE;
	why = quota_take(a, way_of(side), MIN(want, QUOTA_CHUNK_MAX),
			 clock_mono_ms(), ret);
	if (why != REASON_ALLOWED)
		return dir_over(r, side, why);
	return *ret ? STEP_MORE : STEP_HELD;
}

static void dir_settle(struct relay *r, enum relay_side side, ssize_t n)
{
	if (r->account)
		quota_settle(r->account, way_of(side), n > 0 ? (size_t)n : 0);
}

/* Little should be left over of what is read now. */
static bool is_tight(const struct relay *r)
{
	return r->memory && r->memory->tight;
}

static enum step dir_copy(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];
	char *scratch = relay_pool_scratch(r->pool);
	ssize_t n, sent;
	size_t room;
	size_t chunk = is_tight(r) ? CHUNK_TIGHT : RELAY_CHUNK;
	enum step step = dir_ask(r, side, chunk, &room);

	if (step != STEP_MORE)
		return step;
	n = recv(r->half[side].fd, scratch, room, MSG_DONTWAIT);
	dir_settle(r, side, n);
	if (n <= 0)
		return source_ended(r, side, n);
	d->run = (size_t)n >= RELAY_LARGE ? d->run + 1 : 0;
	if (d->run >= RELAY_BULK_AFTER) {
		d->bulk = true;
		d->run = 0;
	}
	sent = send(r->half[other(side)].fd, scratch, (size_t)n,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0) {
		if (!would_block(errno))
			return STEP_SINK_GONE;
		sent = 0;
	}
	d->moved += (uint64_t)sent;
	if (sent < n) {
		if (buf_add(&d->wait, scratch + sent, (size_t)(n - sent)))
			return STEP_NO_MEMORY;
		return STEP_BLOCKED;
	}
	/* A short read emptied the socket: no call to hear EAGAIN. */
	return (size_t)n == room ? STEP_MORE : STEP_IDLE;
}

static enum step dir_splice(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];
	enum step step;
	size_t room;
	ssize_t n;

	if (d->pipe.rd < 0 &&
	    (is_tight(r) || !relay_pool_lend(r->pool, &d->pipe))) {
		d->bulk = false;
		return dir_copy(r, side);
	}
	step = dir_ask(r, side, d->pipe.size, &room);
	if (step != STEP_MORE)
		return step;
	n = splice(r->half[side].fd, NULL, d->pipe.wr, NULL, room,
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	dir_settle(r, side, n);
	if (n <= 0)
		return source_ended(r, side, n);
	d->in_pipe = (size_t)n;
	d->run = (size_t)n < RELAY_SMALL ? d->run + 1 : 0;
	if (d->run >= RELAY_SMALL_ENOUGH) {
		d->bulk = false;
		d->run = 0;
	}
	return pump_pipe(r, side);
}

/* --- a whole turn ------------------------------------------------------------- */

static enum step dir_pump(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];
	uint64_t before = d->moved, until = before + RELAY_TURN;
	enum step step;

	sock_still_done(&d->still, r->memory);
	step = dir_flush(r, side);
	while (step == STEP_MORE && !d->eof && d->moved < until)
		step = d->bulk ? dir_splice(r, side) : dir_copy(r, side);
	d->held = step == STEP_HELD;
	sched_spend(r->turn, SCHED_COST_CALL + (int64_t)(d->moved - before));
	if (d->in_pipe == 0)
		relay_pool_return(r->pool, &d->pipe, true);
	return step;
}

static void dir_drop(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];

	relay_pool_return(r->pool, &d->pipe, d->in_pipe == 0);
	sock_still_done(&d->still, r->memory);
	d->in_pipe = 0;
	buf_done(&d->wait);
	d->done = true;
}

/* The peer of @side answers no more: nothing can be sent to it. */
static void half_gone(struct relay *r, enum relay_side side)
{
	r->half[side].reset = true;
	dir_drop(r, other(side));
}

/* Pass a FIN on once everything before it has been. */
static void dir_close(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];

	if (d->done || !d->eof || dir_holds(d))
		return;
	d->done = true;
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

/* Return: false when the kernel has no memory to watch the descriptor. */
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

static void relay_stop(struct relay *r)
{
	enum relay_side side;

	for (side = APP; side < RELAY_SIDES; side++) {
		(void)!interest(&r->half[side].rd, false,
				&r->half[side].reading);
		(void)!interest(&r->half[side].wr, false,
				&r->half[side].writing);
	}
	sched_cancel(&r->work[APP]);
	sched_cancel(&r->work[NET]);
	(void)!event_del(&r->check);
	(void)!event_del(&r->hold);
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
			ms = MIN(ms, quota_wait_ms(r->account, way_of(side),
						   clock_mono_ms()));
	}
	if (ms == UINT_MAX || r->holding)
		return true;
	r->holding = true;
	tv = (struct timeval){ ms / 1000, ms % 1000 * 1000 };
	return event_add(&r->hold, &tv) == 0;
}

static bool relay_update(struct relay *r)
{
	const struct timeval period = { .tv_sec = RELAY_CHECK_S };
	enum relay_side side;
	bool watched = relay_hold(r);

	for (side = APP; side < RELAY_SIDES; side++) {
		struct relay_half *h = &r->half[side];
		const struct relay_dir *out = &r->dir[side];
		struct relay_dir *in = &r->dir[other(side)];
		bool stands = !in->done && dir_holds(in);

		if (!interest(&h->rd, !out->done && !out->eof &&
			      !out->held && !dir_holds(out) &&
			      !sched_waits(&r->work[side]), &h->reading) ||
		    !interest(&h->wr, stands && !in->held &&
			      !sched_waits(&r->work[other(side)]),
			      &h->writing))
			watched = false;
		sock_still_set(&in->still, r->memory, stands,
			       (struct sock_way){ r->half[other(side)].fd,
						  h->fd, in->pipe.size,
						  in->moved });
	}
	if (!r->checking && (r->dir[APP].done || r->dir[NET].done)) {
		r->checking = true;
		if (event_add(&r->check, &period))
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
	switch (dir_pump(r, side)) {
	case STEP_SOURCE_GONE:
		half_gone(r, side);
		dir_drop(r, side);
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
	struct relay_half *h = &r->half[side];

	if (!sched_run(r->turn, &r->work[readable ? side : other(side)]))
		return;
	(void)!interest(readable ? &h->rd : &h->wr, false,
			readable ? &h->reading : &h->writing);
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
		dir_drop(r, side);
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

static int half_init(struct relay *r, enum relay_side side, int fd,
		     event_callback_fn readable, event_callback_fn writable)
{
	struct relay_half *h = &r->half[side];

	h->fd = fd;
	return event_assign(&h->rd, r->base, fd, EV_READ | EV_PERSIST,
			    readable, r) ||
	       event_assign(&h->wr, r->base, fd, EV_WRITE | EV_PERSIST,
			    writable, r) ? -EINVAL : 0;
}

static int dir_init(struct relay_dir *d, struct mem_account *memory,
		    struct str early)
{
	d->wait = BUF_FOR(RELAY_EARLY_MAX, memory);
	d->pipe = RELAY_NO_PIPE;
	if (early.n > RELAY_EARLY_MAX)
		return -EMSGSIZE;
	return early.n ? buf_add_str(&d->wait, early) : 0;
}

int relay_start(const struct relay_config *config, struct relay **ret)
{
	struct relay *r = mem_new(sizeof(*r));
	int err, err_net;

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
	sched_work_init(&r->work[APP], pump_app, r);
	sched_work_init(&r->work[NET], pump_net, r);
	err = dir_init(&r->dir[APP], r->memory, config->up);
	err_net = dir_init(&r->dir[NET], r->memory, config->down);
	if (!err)
		err = err_net;
	if (!err)
		err = half_init(r, APP, config->app, app_readable_cb,
				app_writable_cb);
	if (!err)
		err = half_init(r, NET, config->net, net_readable_cb,
				net_writable_cb);
	if (!err && (event_assign(&r->check, r->base, -1, EV_PERSIST, check_cb,
				  r) ||
		     event_assign(&r->hold, r->base, -1, 0, hold_cb, r)))
		err = -EINVAL;
	/* The early bytes mostly fit into their sink: sent here, they cost no
	 * event.  What does not pass is for the first one, as is a sink's end. */
	if (!err) {
		r->dir[APP].unpaced = r->account ? config->up.n : 0;
		r->dir[APP].held = pump_wait(r, APP) == STEP_HELD;
		(void)!pump_wait(r, NET);
	}
	if (!err && !relay_update(r)) {
		relay_stop(r);
		err = -ENOMEM;
	}
	if (err) {
		dir_drop(r, APP);
		dir_drop(r, NET);
		mem_free(r);
		return err;
	}
	*ret = r;
	return 0;
}

void relay_free(struct relay *r)
{
	if (!r)
		return;
	REQUIRE(r->magic == RELAY_MAGIC);
	relay_stop(r);
	dir_drop(r, APP);
	dir_drop(r, NET);
	r->magic = 0;
	mem_free(r);
}

void relay_bytes(const struct relay *r, uint64_t *ret_up, uint64_t *ret_down)
{
	*ret_up = r->dir[APP].moved;
	*ret_down = r->dir[NET].moved;
}
