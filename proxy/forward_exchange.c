/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_exchange.c - one request: refused or answered, and recorded
 *
 * The bytes of a request that is refused never reach anyone; an answer is read
 * as strictly, written anew, and is the only one.
 */
#include "proxy/forward_int.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "proxy/refusal.h"

/* --- records ---------------------------------------------------------------- */

void forward_record(struct forward *f, enum record_act act, enum reason why)
{
	struct forward_exchange *x = &f->x;
	struct record r = {
		.event = RECORD_HTTP,
		.act = act,
		.reason = why,
		.rule = x->rule[0] ? x->rule : NULL,
		.dst = { .port = x->target.port },
		.http_host = str_make(x->http_host, x->http_host_n),
		.method = str_make(x->method, x->method_n),
		.path = str_make(x->path, x->path_n),
		.status = (int)x->status,
		.rcode = -1,
		.bytes_up = x->bytes_up,
		.bytes_down = x->bytes_down,
		.dur_ms = clock_mono_ms() - x->started_ms,
	};

	if (!x->open)
		return;
	x->open = false;
	if (x->target.kind == HOST_NAME)
		r.host = host_name_str(&x->target.name);
	else if (x->target.kind == HOST_ADDRESS)
		r.dst.addr = x->target.addr;
	f->ops->record(f->arg, &r);
}

void forward_record_answered(struct forward *f)
{
	if (f->x.would_deny)
		forward_record(f, RECORD_WOULD_DENY, f->x.observed);
	else
		forward_record(f, RECORD_ALLOW, REASON_ALLOWED);
}

/* --- refusals --------------------------------------------------------------- */

static enum record_act act_of(enum reason why)
{
	switch (reason_info(why)->kind) {
	case REASON_POLICY:
	case REASON_REQUEST:
	case REASON_LIMIT:
		return RECORD_DENY;
	case REASON_OK:
	case REASON_NETWORK:
	case REASON_INTERNAL:
		break;
	}
	return RECORD_ERROR;
}

/* Only where it is certain which byte begins the next request; a client that
 * waits for 100 may send its body or not.  Whoever sent a malformed or
 * contradictory request (400) is not believed about where it ends either. */
bool forward_may_go_on(const struct forward_exchange *x)
{
	if (x->status == 400 || !x->framed || !x->keep_alive || x->minor == 0)
		return false;
	if (http1_body_over(&x->up))
		return true;
	return !x->expect && x->up.left <= FORWARD_DRAIN_MAX;
}

void forward_drain(struct forward *f, enum reason why, bool close)
{
	if (close) {
		forward_close_after_flush(f, why, false);
		return;
	}
	f->end_why = why;
	forward_set_state(f, FORWARD_DRAIN);
}

void forward_refuse(struct forward *f, enum reason why, unsigned status)
{
	struct forward_exchange *x = &f->x;
	bool silent = reason_info(why)->http_status == 0;
	struct refusal r = {
		.reason = silent ? REASON_INTERNAL_ERROR : why,
		.host = str_from(x->host),
		.port = x->target.port,
		.policy = f->policy,
		.run = f->run,
		.rule = x->rule[0] ? x->rule : NULL,
		.date = str_make(clock_imf_now(), CLOCK_IMF_SIZE - 1),
		.status = (uint16_t)status,
		.head_only = str_eq(str_make(x->method, x->method_n),
				    STR("HEAD")),
	};

	x->status = status ? status : reason_info(r.reason)->http_status;
	r.close = !forward_may_go_on(x);
	forward_record(f, act_of(why), why);
	if (refusal_http(&r, &f->app.out) < 0) {
		forward_end(f, REASON_MEMORY_EXCEEDED, true);
		return;
	}
	forward_drain(f, why, r.close);
}

void forward_refuse_head(struct forward *f, enum reason why)
{
	struct forward_exchange *x = &f->x;

	memset(x, 0, sizeof(*x));
	x->open = true;
	x->started_ms = clock_mono_ms();
	if (f->mode != FORWARD_EXPLICIT) {
		x->target = f->pinned;
		forward_host_text(x);
	}
	if (why != REASON_CLIENT_CLOSED_EARLY) {
		forward_refuse(f, why, 0);
		return;
	}
	forward_record(f, RECORD_DENY, why);	/* nobody is there to be told */
	forward_end(f, why, false);
}

/* An answer that was begun cannot be finished: the client must see that. */
static void abort_answer(struct forward *f, enum reason why)
{
	bool by_close = f->x.as_down == HTTP1_UNTIL_CLOSE;

	forward_record(f, act_of(why), why);
	forward_close_after_flush(f, why, by_close);
}

/* The origin failed this exchange. */
static void origin_failed(struct forward *f, enum reason why)
{
	if (f->x.answered) {
		abort_answer(f, why);
		return;
	}
	forward_net_close(f, why);
	forward_refuse(f, why, 0);
}

void forward_exchange_revoke(struct forward *f, enum reason why)
{
	origin_failed(f, why);
}

/* The client's body is not what it said. */
static void upload_broken(struct forward *f)
{
	f->x.framed = false;
	origin_failed(f, REASON_FRAMING_INVALID);
}

/* --- the body up ------------------------------------------------------------ */

/* Its answer shows the request as the last hop had it, and a parent can be made
 * the last (Max-Forwards): RFC 9110 9.3.8 forbids to send secrets with it. */
static bool shows_login(const struct forward *f)
{
	return f->net_basic.n > 0 &&
	       str_eq(str_make(f->x.method, f->x.method_n), STR("TRACE"));
}

void forward_send(struct forward *f)
{
	size_t before = f->net.out.n;
	char to[FORWARD_HOST_SIZE];
	int n = f->net_absolute ? forward_authority(&f->x, to) : 0;

	f->net_whole = false;
	f->net_bound |= f->x.binds;
	f->net.account = f->account;
	forward_set_state(f, FORWARD_EXCHANGE);
	if (shows_login(f)) {
		origin_failed(f, REASON_METHOD_NOT_SUPPORTED);
		return;
	}
	if (n < 0 || rewrite_hop(buf_str(&f->request), str_make(to, (size_t)n),
				 f->net_basic, &f->net.out) < 0) {
		origin_failed(f, REASON_MEMORY_EXCEEDED);
		return;
	}
	f->x.bytes_up += f->net.out.n - before;
}

/* An origin that takes no more may still have something to say: what comes
 * for it is thrown away meanwhile. */
static bool pump_up(struct forward *f)
{
	struct forward_exchange *x = &f->x;
	struct buf *out = f->net.deaf ? NULL : &f->net.out;
	size_t before = f->net.out.n, used;
	enum http1_result result;

	if (http1_body_over(&x->up))
		return false;
	result = rewrite_body(&x->up, buf_str(&f->app.in), x->as_up, out,
			      FORWARD_BUF, &used);
	forward_half_consume(&f->app, used);
	x->bytes_up += f->net.out.n - before;
	if (result != HTTP1_BAD)
		return used > 0;
	upload_broken(f);
	return true;
}

/* --- the answer ------------------------------------------------------------- */

static int pass_head(struct forward *f, bool keep_alive, bool websocket)
{
	struct forward_exchange *x = &f->x;
	const struct rewrite_answer how = {
		.minor = x->minor,
		.framing = x->as_down,
		.websocket = websocket,
		.keep_alive = keep_alive,
		.date = str_make(clock_imf_now(), CLOCK_IMF_SIZE - 1),
	};
	size_t before = f->app.out.n;
	int err;

	err = rewrite_answer(&f->head, &how, &f->app.out);
	x->bytes_down += f->app.out.n - before;
	return err;
}

/* The origin agreed to a WebSocket: what each side said already goes along. */
static void become_tunnel(struct forward *f)
{
	f->x.status = f->head.status;
	if (pass_head(f, true, true) < 0) {
		origin_failed(f, REASON_MEMORY_EXCEEDED);
		return;
	}
	forward_half_consume(&f->net, f->head.bytes);
	if (buf_add_str(&f->app.out, buf_str(&f->net.in)) < 0 ||
	    buf_add_str(&f->net.out, buf_str(&f->app.in)) < 0) {
		forward_record(f, RECORD_ERROR, REASON_MEMORY_EXCEEDED);
		forward_end(f, REASON_MEMORY_EXCEEDED, true);
		return;
	}
	forward_record_answered(f);
	forward_set_state(f, FORWARD_TUNNEL);
}

static void interim_answer(struct forward *f)
{
	if (++f->x.interim > FORWARD_INTERIM_MAX) {
		origin_failed(f, REASON_ORIGIN_PROTOCOL);
		return;
	}
	if (f->x.minor > 0 && pass_head(f, true, false) < 0) {
		origin_failed(f, REASON_MEMORY_EXCEEDED);
		return;
	}
	forward_half_consume(&f->net, f->head.bytes);
}

static void final_answer(struct forward *f)
{
	struct forward_exchange *x = &f->x;

	x->as_down = rewrite_framing(&f->head, x->minor);
	x->goes_on = x->keep_alive && x->as_down != HTTP1_UNTIL_CLOSE &&
		     http1_body_over(&x->up);
	if (pass_head(f, x->goes_on, false) < 0) {
		origin_failed(f, REASON_MEMORY_EXCEEDED);
		return;
	}
	x->answered = true;
	x->status = f->head.status;
	f->net_keep = f->head.keep_alive && !x->last;
	http1_body_init(&x->down, &f->head, true);
	forward_half_consume(&f->net, f->head.bytes);
}

static void answer_head(struct forward *f)
{
	unsigned status = f->head.status;

	/* 407 is a proxy's to say: it would ask the client for what is ours. */
	if (status == 407 && f->net_absolute)
		origin_failed(f, REASON_PARENT_AUTH_FAILED);
	else if (status == 407 ||
	    (status == 101 && !(f->x.websocket &&
				websocket_agreed(&f->head, f->x.accept))))
		origin_failed(f, REASON_ORIGIN_PROTOCOL);
	else if (status == 101)
		become_tunnel(f);
	else if (status < 200)
		interim_answer(f);
	else
		final_answer(f);
}

/* The connection ended before an answer.  A kept one may have been closed
 * while our request was on its way: that is worth a second, fresh one, where
 * it does no harm (RFC 9112 9.3.1). */
static void no_answer(struct forward *f, enum reason why)
{
	if (f->net_reused && f->x.replayable && f->x.interim == 0 &&
	    f->net.in.n == 0) {
		f->x.bytes_up = 0;
		f->x.replayed = true;
		forward_net_close(f, REASON_ORIGIN_CLOSED);
		forward_dial(f);
		return;
	}
	origin_failed(f, why);
}

void forward_exchange_unheard(struct forward *f)
{
	no_answer(f, REASON_ORIGIN_TIMEOUT);
}

static bool pump_head(struct forward *f)
{
	struct str in = buf_str(&f->net.in);
	struct str method = str_make(f->x.method, f->x.method_n);
	enum http1_result result = HTTP1_MORE;
	enum reason why = REASON_ORIGIN_PROTOCOL;

	if (f->app.out.n > FORWARD_BUF)
		return false;
	if (in.n > 0 && http1_head_grew(in, f->net.seen)) {
		result = http1_parse_answer(in, method, &f->head, &why);
		f->net.seen = in.n;
	}
	if (result == HTTP1_DONE)
		answer_head(f);
	else if (result == HTTP1_BAD)
		origin_failed(f, why);
	else if (f->net.eof)
		no_answer(f, REASON_ORIGIN_TRUNCATED);
	else
		return false;
	return true;
}

static void exchange_over(struct forward *f)
{
	bool up_over = http1_body_over(&f->x.up);
	bool net_ok = up_over && f->net_keep && !f->net.eof && !f->net.deaf &&
		      f->net.in.n == 0 && f->net.out.n == 0;

	forward_record_answered(f);
	f->net_whole = net_ok;
	if (!net_ok)
		forward_net_close(f, f->net.eof ? REASON_ORIGIN_CLOSED :
						  REASON_CLIENT_CLOSED);
	if (f->x.goes_on)
		forward_next(f);
	else
		forward_close_after_flush(f, REASON_CLIENT_CLOSED, false);
}

/* No more comes from net, and all that came was taken. */
static void answer_ended(struct forward *f)
{
	struct forward_exchange *x = &f->x;
	size_t before = f->app.out.n;

	if (!http1_body_may_end(&x->down) || f->net.broken) {
		abort_answer(f, REASON_ORIGIN_TRUNCATED);
		return;
	}
	if (rewrite_body_end(&x->down, x->as_down, &f->app.out) < 0) {
		abort_answer(f, REASON_MEMORY_EXCEEDED);
		return;
	}
	x->bytes_down += f->app.out.n - before;
	exchange_over(f);
}

static bool pump_down(struct forward *f)
{
	struct forward_exchange *x = &f->x;
	size_t before = f->app.out.n, used;
	enum http1_result result;

	result = rewrite_body(&x->down, buf_str(&f->net.in), x->as_down,
			      &f->app.out, FORWARD_BUF, &used);
	forward_half_consume(&f->net, used);
	x->bytes_down += f->app.out.n - before;
	if (result == HTTP1_DONE)
		exchange_over(f);
	else if (result == HTTP1_BAD)
		abort_answer(f, REASON_ORIGIN_PROTOCOL);
	else if (used == 0 && f->net.eof &&
		 f->app.out.n + REWRITE_ROOM_MIN <= FORWARD_BUF)
		answer_ended(f);
	else
		return used > 0;
	return true;
}

bool forward_exchange_step(struct forward *f)
{
	bool moved = pump_up(f);

	if (f->state != FORWARD_EXCHANGE)
		return true;
	return (f->x.answered ? pump_down(f) : pump_head(f)) || moved;
}
