/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_limits.c - what a run's [limits] mean for one connection
 *
 * A connection that is one too many is accepted all the same, for it is to hear
 * of it in its own protocol: it has CONN_LISTEN_MS to say which that is, asks
 * for what it wants, and is refused.  How many such there are at once is bounded
 * by the listener, see SANDBOX_REFUSED_MAX, and how many of one client, see
 * CLIENT_REFUSED_MAX.
 *
 * Memory is charged by the piece (mem_account.h).  At its limit nothing new
 * begins: no connection, no request on one that is there, no head beyond what
 * the first read brought.  What was begun goes on with what it holds.
 *
 * Silence and the length of a flow are looked at by one slow timer, that costs
 * the bytes themselves nothing: what is silent for idle_time ends within a
 * quarter of it more.  What the kernels move of what they hold already is no
 * silence.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "proxy/conn_own.h"
#include "proxy/dial.h"
#include "proxy/forward.h"
#include "proxy/http1.h"
#include "proxy/quota.h"
#include "proxy/relay.h"
#include "proxy/sock.h"
#include "proxy/worker.h"

/* Looks at a silent flow before it ends. */
#define IDLE_LOOKS	4

/* A client's share of the listener, before what all of them may have. */
static enum reason enter_share(struct conn *c)
{
	struct client_whole whole;

	if (!c->s->shares)
		return REASON_ALLOWED;
	whole = client_whole_of(c->s->quota, c->s->rules);
	return client_table_enter(c->s->shares, &c->src.addr, &whole,
				  clock_mono_us(), &c->hold);
}

static void uncount(struct conn *c)
{
	if (c->counted)
		quota_leave(c->s->quota);
	c->counted = false;
}

static enum reason enter_run(struct conn *c)
{
	enum reason why = quota_enter(c->s->quota, clock_mono_ms());

	if (why != REASON_ALLOWED)
		return why;
	c->counted = true;
	why = mem_account_take(&c->s->memory, CONN_MEMORY);
	if (why != REASON_ALLOWED) {
		uncount(c);
		c->lean = true;
		c->s->nlean++;
	}
	return why;
}

static enum reason admit(struct conn *c)
{
	enum reason why;

	if (fd_is_reserved(c->app.fd))
		return REASON_DESCRIPTORS_EXCEEDED;
	if (c->s->worker->draining)
		return REASON_SHUTDOWN;
	why = enter_share(c);
	if (why != REASON_ALLOWED)
		return why;
	why = enter_run(c);
	if (why != REASON_ALLOWED && c->s->shares)
		client_table_refuse(c->s->shares, &c->hold);
	return why;
}

void conn_enter(struct conn *c)
{
	c->admission = admit(c);
	c->charged = c->counted ? CONN_MEMORY : CONN_REFUSED_MEMORY;
	if (!c->counted)
		mem_account_owe(&c->s->memory, CONN_REFUSED_MEMORY);
}

void conn_leave(struct conn *c)
{
	uncount(c);
	if (c->s->shares)
		client_table_leave(c->s->shares, &c->hold);
}

void conn_discharge(struct conn *c)
{
	mem_account_give(&c->s->memory, c->charged);
	c->charged = 0;
	if (c->lean)
		c->s->nlean--;
	c->lean = false;
}

enum reason conn_may_hold(const struct conn *c)
{
	return mem_account_why(&c->s->memory);
}

/* What a policy is compared by. */
_Static_assert(CONN_HEAD_MS == RULES_LIMIT_HEADER_S * 1000, "penstock.ini(5)");
_Static_assert(HTTP1_HEAD_MAX == RULES_LIMIT_HEADER_BYTES, "penstock.ini(5)");
_Static_assert(DIAL_DEADLINE_MS == RULES_LIMIT_CONNECT_S * 1000,
	       "penstock.ini(5)");

unsigned conn_head_ms(const struct conn *c)
{
	uint32_t s = rules_limits(c->rules)->header_s;

	if (c->admission != REASON_ALLOWED)
		return CONN_LISTEN_MS;
	return s ? s * 1000 : CONN_HEAD_MS;
}

size_t conn_head_max(const struct conn *c)
{
	uint32_t max = rules_limits(c->rules)->header_bytes;

	return max && max < CONN_IN_MAX ? max : CONN_IN_MAX;
}

enum reason conn_begin_flow(struct conn *c, const struct rules_answer *answer)
{
	return quota_flow_begin(&c->account, c->s->quota, c->rules,
				answer->rule_number);
}

struct forward_limits conn_http_limits(const struct conn *c)
{
	const struct rules_limits *l = rules_limits(c->rules);

	return (struct forward_limits){
		.head_ms = l->header_s * 1000,
		.head_bytes = (unsigned)conn_head_max(c),
		.response_ms = l->response_s * 1000,
		.unheard_ms = c->s->unheard_ms,
	};
}

/*
 * The rule that names the flow in the records has its times, but for silence in
 * an HTTP exchange, and in what it became: those are of the rule that permitted
 * the request.
 */
struct rules_times conn_times(const struct conn *c)
{
	struct rules_times t = rules_times(c->rules, c->answer.rule_number);

	if (c->request_rule)
		t.idle_s = rules_times(c->rules, c->request_rule).idle_s;
	return t;
}

/* --- silence, and the length of a flow ------------------------------------------ */

static void watch_cb(evutil_socket_t fd, short what, void *arg);

static void watch(struct conn *c)
{
	const struct rules_times t = conn_times(c);
	int64_t ms = (int64_t)t.idle_s * 1000 / IDLE_LOOKS;
	int64_t left = c->began_ms + (int64_t)t.flow_s * 1000 -
		       clock_mono_ms();
	struct timeval tv;

	if (t.flow_s && (ms == 0 || left < ms))
		ms = MAX(left, (int64_t)1);
	if (ms == 0) {
		if (c->watch)
			(void)!event_del(c->watch);
		return;
	}
	tv.tv_sec = ms / 1000;
	tv.tv_usec = ms % 1000 * 1000;
	if (!c->watch)
		c->watch = event_new(c->s->worker->base, -1, 0, watch_cb, c);
	/* A limit that cannot be watched is one that is reached. */
	if (!c->watch || event_add(c->watch, &tv))
		conn_finish(c, REASON_MEMORY_EXCEEDED, true);
}

static uint64_t passed(const struct conn *c)
{
	uint64_t up, down;

	relay_bytes(c->relay, &up, &down);
	return up + down + sock_acked(c->app.fd) + sock_acked(c->net->fd);
}

static void look(struct conn *c)
{
	uint64_t sum = passed(c);

	if (sum == c->moved)
		return;
	c->moved = sum;
	c->moved_ms = clock_mono_ms();
}

void conn_watch_relay(struct conn *c)
{
	/* What was watched has been silent for as long as it has. */
	bool watched = c->watch && event_pending(c->watch, EV_TIMEOUT, NULL);

	if (watched) {
		look(c);
	} else if (conn_times(c).idle_s) {
		c->moved = passed(c);
		c->moved_ms = clock_mono_ms();
	}
	watch(c);
}

static void watch_cb(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct conn *c = arg;
	const struct rules_times t = conn_times(c);
	int64_t now = clock_mono_ms();

	look(c);
	if (t.flow_s && now - c->began_ms >= (int64_t)t.flow_s * 1000)
		conn_finish(c, REASON_FLOW_TIME_EXCEEDED, true);
	else if (t.idle_s && now - c->moved_ms >= (int64_t)t.idle_s * 1000)
		conn_finish(c, REASON_IDLE_TIMEOUT, true);
	else
		watch(c);
}
