/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_limits.c - what a run's [limits] mean for its HTTP exchanges
 *
 * What crosses the net half is asked of the flow's account, chunk by chunk
 * (forward_half.c): a budget that is used up refuses the request (429), or breaks
 * its answer off where that has begun; a rate holds a half until a timer lets it
 * go.
 *
 * Silence is looked at by a slow timer, a quarter of the shortest limit long, so
 * that a byte costs nothing for it: what comes to a stop ends within a quarter
 * more.  How long a body takes that keeps coming is nobody's business (OPS-04),
 * and an answer that is read slowly keeps going, also when all of it is here.
 */
#include <event2/event.h>

#include "base/clock.h"
#include "proxy/forward_int.h"
#include "proxy/quota.h"
#include "proxy/sock.h"
#include "proxy/sock_still.h"

#define LOOKS	4
/* Until it is looked whether there is memory again to read on. */
#define LEAN_MS	100

#define HEAD_MS			60000
#define IDLE_MS			(5 * 60000)
#define NET_IDLE_MS		15000
#define LINGER_MS		5000
#define GONE_MS			(15 * 60000)
#define UNHEARD_MS		10000

static void timer_set(struct event *ev, unsigned ms)
{
	const struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	/* A limit that cannot be watched is one that is reached. */
	if (event_add(ev, &tv) < 0)
		event_active(ev, EV_TIMEOUT, 0);
}

/* --- rates and budgets -------------------------------------------------------- */

void forward_hold(struct forward *f)
{
	const struct forward_half *h = &f->net;
	bool lean = h->lean || f->app.lean;
	int64_t now;
	unsigned ms = lean ? LEAN_MS : 60000;

	if (!(lean || h->held_in || h->held_out) ||
	    event_pending(f->hold, EV_TIMEOUT, NULL))
		return;
	now = clock_mono_ms();
	if (h->held_in)
		ms = MIN(ms, quota_wait_ms(f->account, QUOTA_DOWN, now));
	if (h->held_out)
		ms = MIN(ms, quota_wait_ms(f->account, QUOTA_UP, now));
	timer_set(f->hold, ms);
}

void forward_let_go(struct forward *f)
{
	f->net.held_in = f->net.held_out = false;
	f->net.lean = f->app.lean = false;
}

bool forward_over_step(struct forward *f)
{
	enum reason why = f->net.over;

	if (!stream_is_open(&f->net.io) || why == REASON_ALLOWED)
		return false;
	f->net.over = REASON_ALLOWED;
	if (f->state == FORWARD_EXCHANGE)
		forward_exchange_revoke(f, why);
	else
		forward_net_close(f, why);
	return true;
}

/* --- silence ------------------------------------------------------------------- */

static struct forward_times times(const struct forward *f)
{
	struct forward_times t = { 0 };

	f->ops->times(f->arg, &t);
	return t;
}

static uint64_t passed(const struct forward *f)
{
	return f->app.bytes_in + f->app.bytes_out + f->net.bytes_in +
	       f->net.bytes_out;
}

/*
 * Who half-closes may wait for its answer (RFC 9112 9.6), and who has gone looks
 * the same until something is sent: a silent origin would hold the connection
 * of nobody for ever.
 */
static unsigned stall_ms(const struct forward *f)
{
	unsigned ms = times(f).stall_ms;

	return f->app.eof && (ms == 0 || ms > f->limits.gone_ms) ?
		f->limits.gone_ms : ms;
}

/*
 * A kept connection can have died without a word, in a router that forgot it or
 * with its host.  TCP sends a request into it for a quarter of an hour (TUN-22).
 */
static unsigned unheard_ms(const struct forward *f)
{
	return f->net_reused && !f->x.answered ? f->limits.unheard_ms : 0;
}

static unsigned shortest(const struct forward *f)
{
	const unsigned all[] = {
		f->limits.response_ms, stall_ms(f), times(f).flow_ms,
		unheard_ms(f),
	};
	unsigned ms = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i] && (ms == 0 || all[i] < ms))
			ms = all[i];
	}
	return ms;
}

static void watch_on(struct forward *f)
{
	unsigned ms = shortest(f);

	if (ms)
		timer_set(f->timer, MAX(ms / LOOKS, 1u));
	else
		event_del(f->timer);
}

/* With what the kernels move of what they hold already. */
static uint64_t moved_by_now(const struct forward *f)
{
	uint64_t sum = passed(f) + sock_acked(f->app.io.fd);

	if (stream_is_open(&f->net.io))
		sum += sock_acked(f->net.io.fd);
	return sum;
}

static void look(struct forward *f)
{
	uint64_t sum = moved_by_now(f);

	if (sum != f->moved) {
		f->moved = sum;
		f->moved_ms = clock_mono_ms();
	}
}

void forward_watch(struct forward *f)
{
	/* Beside unheard_ms(), which asks the kernel itself, something counts. */
	f->moved = stall_ms(f) || f->limits.response_ms ? moved_by_now(f) : 0;
	f->moved_ms = clock_mono_ms();
	watch_on(f);
}

void forward_watch_end(struct forward *f)
{
	if (!event_pending(f->timer, EV_TIMEOUT, NULL))
		forward_watch(f);
}

/* The origin has all that it is to have, and has said nothing. */
static bool awaits_answer(const struct forward *f)
{
	return !f->x.answered && f->net.out.n == 0 &&
	       http1_body_over(&f->x.up);
}

static bool is_past(unsigned limit_ms, int64_t since_ms, int64_t now)
{
	return limit_ms && now - since_ms >= (int64_t)limit_ms;
}

bool forward_net_is_old(const struct forward *f)
{
	return stream_is_open(&f->net.io) &&
	       is_past(times(f).flow_ms, f->net_began_ms, clock_mono_ms());
}

unsigned forward_net_idle_ms(const struct forward *f)
{
	struct forward_times t = times(f);
	int64_t ms = f->limits.net_idle_ms;

	/* While an answer is taken, that is what may not come to a stop. */
	if (t.stall_ms && f->app.out.n == 0)
		ms = MIN(ms, (int64_t)t.stall_ms);
	if (t.flow_ms)
		ms = MIN(ms, f->net_began_ms + t.flow_ms - clock_mono_ms());
	return (unsigned)MAX(ms, (int64_t)1);
}

void forward_on_watch(struct forward *f)
{
	const struct forward_limits *l = &f->limits;
	int64_t now = clock_mono_ms();

	look(f);
	if (forward_net_is_old(f))
		forward_exchange_revoke(f, REASON_FLOW_TIME_EXCEEDED);
	else if (is_past(unheard_ms(f), f->moved_ms, now) &&
		 sock_is_unheard(f->net.io.fd, l->unheard_ms))
		forward_exchange_unheard(f);
	else if (awaits_answer(f) && is_past(l->response_ms, f->moved_ms, now))
		forward_exchange_revoke(f, REASON_ORIGIN_TIMEOUT);
	else if (is_past(stall_ms(f), f->moved_ms, now))
		forward_exchange_revoke(f, REASON_IDLE_TIMEOUT);
	else
		watch_on(f);
}

/* --- an answer that is on its way, and the exchange is over ----------------------- */

static unsigned taken_ms(const struct forward *f)
{
	unsigned ms = times(f).stall_ms;

	return ms ? ms : f->limits.gone_ms;
}

void forward_watch_taken(struct forward *f)
{
	f->moved = passed(f);
	f->moved_ms = clock_mono_ms();
	timer_set(f->timer, MAX(taken_ms(f) / LOOKS, 1u));
}

bool forward_is_not_taken(struct forward *f)
{
	look(f);
	if (is_past(taken_ms(f), f->moved_ms, clock_mono_ms()))
		return true;
	timer_set(f->timer, MAX(taken_ms(f) / LOOKS, 1u));
	return false;
}

/* --- what they are ---------------------------------------------------------------- */

static unsigned or_default(unsigned ms, unsigned otherwise)
{
	return ms ? ms : otherwise;
}

void forward_limits_take(struct forward *f, const struct forward_limits *l)
{
	f->limits = *l;
	f->limits.head_ms = or_default(l->head_ms, HEAD_MS);
	f->limits.idle_ms = or_default(l->idle_ms, IDLE_MS);
	f->limits.net_idle_ms = or_default(l->net_idle_ms, NET_IDLE_MS);
	f->limits.linger_ms = or_default(l->linger_ms, LINGER_MS);
	f->limits.gone_ms = or_default(l->gone_ms, GONE_MS);
	f->limits.unheard_ms = or_default(l->unheard_ms, UNHEARD_MS);
	f->limits.head_bytes = or_default(l->head_bytes, HTTP1_HEAD_MAX);
}

void forward_set_policy(struct forward *f, const char *policy,
			const struct forward_limits *limits)
{
	f->policy = policy;
	forward_limits_take(f, limits);
}

void forward_watch_anew(struct forward *f)
{
	bool watched = event_pending(f->timer, EV_TIMEOUT, NULL);

	if (f->state == FORWARD_EXCHANGE && watched) {
		look(f);
		watch_on(f);
	} else if (f->state == FORWARD_EXCHANGE) {
		forward_watch(f);
	} else if (f->state == FORWARD_FLUSH ||
		   (f->state == FORWARD_HEAD && f->app.out.n > 0)) {
		forward_watch_taken(f);
	}
	if (f->state == FORWARD_HEAD && stream_is_open(&f->net.io)) {
		forward_half_rest(&f->net, true);
		event_active(f->kick, 0, 0);
	}
}
