/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_chunk.c - one chunk of one direction, copied or through a pipe
 *
 * Theory in relay.c.
 */
#include "proxy/relay_own.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/mem_account.h"
#include "proxy/quota.h"

/* Chunks from here on are worth a pipe, and below this they are not. */
#define RELAY_LARGE	(RELAY_CHUNK / 4)
#define RELAY_SMALL	(RELAY_CHUNK / 16)
/* Small ones in a row before a direction copies again. */
#define RELAY_SMALL_ENOUGH	4
/* One read where memory is tight: what may be left over of it. */
#define CHUNK_TIGHT	(RELAY_CHUNK / 8)

static bool would_block(int err)
{
	return err == EAGAIN || err == EINTR;
}

/* --- what waits --------------------------------------------------------------- */

/* A call that took nothing. */
static enum step sink_said(struct half *sink, ssize_t n)
{
	if (n == 0 || !would_block(errno))
		return STEP_SINK_GONE;
	sink->writable = false;
	return STEP_BLOCKED;
}

static enum step pump_pipe(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];
	struct relay_store *s = d->store;
	ssize_t n;

	while (s->in_pipe) {
		n = splice(s->pipe.rd, NULL, r->half[other(side)]->fd, NULL,
			   s->in_pipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n <= 0)
			return sink_said(r->half[other(side)], n);
		s->in_pipe -= (size_t)n;
		d->moved += (uint64_t)n;
		relay_pool_count(r->pool, (size_t)n);
	}
	return STEP_MORE;
}

static enum step pump_wait(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];
	struct relay_store *s = d->store;
	ssize_t n;

	while (s->wait.n) {
		if (s->unpaced)
			s->unpaced -= quota_pace(r->account, relay_way(side),
						 s->unpaced, clock_mono_ms());
		if (s->wait.n == s->unpaced)
			return STEP_HELD;
		n = half_send(r->half[other(side)], s->wait.p,
			      s->wait.n - s->unpaced);
		if (n < 0)
			return sink_said(r->half[other(side)], n);
		buf_consume(&s->wait, (size_t)n);
		d->moved += (uint64_t)n;
	}
	buf_done(&s->wait);
	s->wait = BUF_FOR(RELAY_EARLY_MAX, r->memory);
	return STEP_MORE;
}

static enum step dir_flush(struct relay *r, enum relay_side side)
{
	enum step step;

	if (!r->dir[side].store)
		return STEP_MORE;
	step = pump_wait(r, side);
	return step == STEP_MORE ? pump_pipe(r, side) : step;
}

/* Where bytes may stand; NULL: no memory. */
static struct relay_store *dir_store(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];

	if (d->store)
		return d->store;
	d->store = mem_new(sizeof(*d->store));
	if (!d->store)
		return NULL;
	d->store->wait = BUF_FOR(RELAY_EARLY_MAX, r->memory);
	d->store->pipe = RELAY_NO_PIPE;
	return d->store;
}

static int dir_keep(struct relay *r, enum relay_side side, const char *p,
		    size_t n)
{
	struct relay_store *s = dir_store(r, side);

	return s ? buf_add(&s->wait, p, n) : -ENOMEM;
}

/* --- one chunk --------------------------------------------------------------- */

static enum step source_ended(struct relay *r, enum relay_side side,
			      ssize_t n)
{
	if (n < 0 && !would_block(errno))
		return STEP_SOURCE_GONE;
	if (n < 0) {
		r->half[side]->readable = false;
		return STEP_IDLE;
	}
	/* Behind a reset the kernel says end of file: that is no FIN. */
	if (r->reset[side])
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
	ssize_t n = recv(r->half[side]->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

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
	if (!a || !quota_is_limited(a, relay_way(side)))
		return STEP_MORE;
	why = quota_take(a, relay_way(side), MIN(want, QUOTA_CHUNK_MAX),
			 clock_mono_ms(), ret);
	if (why != REASON_ALLOWED)
		return dir_over(r, side, why);
	return *ret ? STEP_MORE : STEP_HELD;
}

static void dir_settle(struct relay *r, enum relay_side side, ssize_t n)
{
	if (r->account)
		quota_settle(r->account, relay_way(side), n > 0 ? (size_t)n : 0);
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
	n = half_recv(r->half[side], scratch, room);
	dir_settle(r, side, n);
	if (n <= 0)
		return source_ended(r, side, n);
	d->run = (size_t)n >= RELAY_LARGE ? d->run + 1 : 0;
	if (d->run >= RELAY_BULK_AFTER) {
		d->bulk = true;
		d->run = 0;
	}
	sent = half_send(r->half[other(side)], scratch, (size_t)n);
	if (sent < 0) {
		if (!would_block(errno))
			return STEP_SINK_GONE;
		sent = 0;
	}
	d->moved += (uint64_t)sent;
	if (sent < n) {
		if (dir_keep(r, side, scratch + sent, (size_t)(n - sent)))
			return STEP_NO_MEMORY;
		return STEP_BLOCKED;
	}
	/* A short read has emptied the socket: no call to hear EAGAIN. */
	return r->half[side]->readable ? STEP_MORE : STEP_IDLE;
}

/* Return: false when it has to be copied. */
static bool dir_has_pipe(struct relay *r, enum relay_side side)
{
	struct relay_store *s = dir_store(r, side);

	if (!s)
		return false;
	return s->pipe.rd >= 0 ||
	       (!is_tight(r) && relay_pool_lend(r->pool, &s->pipe));
}

static enum step dir_splice(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];
	enum step step;
	size_t room;
	ssize_t n;

	if (!dir_has_pipe(r, side)) {
		d->bulk = false;
		return dir_copy(r, side);
	}
	step = dir_ask(r, side, d->store->pipe.size, &room);
	if (step != STEP_MORE)
		return step;
	n = splice(r->half[side]->fd, NULL, d->store->pipe.wr, NULL, room,
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	dir_settle(r, side, n);
	if (n <= 0)
		return source_ended(r, side, n);
	d->store->in_pipe = (size_t)n;
	d->run = (size_t)n < RELAY_SMALL ? d->run + 1 : 0;
	if (d->run >= RELAY_SMALL_ENOUGH) {
		d->bulk = false;
		d->run = 0;
	}
	return pump_pipe(r, side);
}

/* --- a whole turn ------------------------------------------------------------- */

enum step relay_move(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];
	/* One flow at a time keeps the caches warm. */
	uint64_t before = d->moved,
		 most = sched_turn(r->turn, RELAY_TURN);
	enum step step;

	if (d->store)
		sock_still_done(&d->store->still, r->memory);
	step = dir_flush(r, side);
	while (step == STEP_MORE && !d->eof && d->moved - before < most &&
	       r->half[side]->readable)
		step = d->bulk ? dir_splice(r, side) : dir_copy(r, side);
	d->held = step == STEP_HELD;
	sched_spend(r->turn, SCHED_COST_CALL + (int64_t)(d->moved - before));
	if (d->store && d->store->in_pipe == 0)
		relay_pool_return(r->pool, &d->store->pipe, true);
	return step;
}

void relay_drop(struct relay *r, enum relay_side side)
{
	struct relay_dir *d = &r->dir[side];
	struct relay_store *s = d->store;

	d->done = true;
	d->store = NULL;
	if (!s)
		return;
	relay_pool_return(r->pool, &s->pipe, s->in_pipe == 0);
	sock_still_done(&s->still, r->memory);
	buf_done(&s->wait);
	mem_free(s);
}

/* Nothing limits what passes there. */
static bool is_free(const struct relay *r, enum relay_side side)
{
	return !r->account || !quota_is_limited(r->account, relay_way(side));
}

int relay_early(struct relay *r, enum relay_side side, struct str early)
{
	struct relay_dir *d = &r->dir[side];
	/* Ours to the client, and what no rate holds back. */
	bool at_once = side == NET || is_free(r, side);
	ssize_t n;
	int err;

	if (early.n == 0)
		return 0;
	n = at_once ? half_send(r->half[other(side)], early.p, early.n) : 0;
	n = MAX(n, 0);
	d->moved += (uint64_t)n;
	if ((size_t)n == early.n)
		return 0;
	err = dir_keep(r, side, early.p + n, early.n - (size_t)n);
	if (err < 0 || at_once)
		return err;
	d->store->unpaced = early.n;
	d->held = pump_wait(r, side) == STEP_HELD;
	return 0;
}
