/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_exchange.c - one request: judged, refused or answered, recorded
 *
 * The bytes of a request that is refused never reach anyone.  What is sent on
 * is written anew from what was understood (rewrite.h), with the authority that
 * was judged in its Host field, so that the origin cannot understand another.
 */
#include "proxy/forward_int.h"

#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "proxy/refusal.h"

#define HTTP_PORT	80

/* --- where it goes ---------------------------------------------------------- */

static bool same_target(const struct forward_target *a,
			const struct forward_target *b)
{
	if (a->kind != b->kind || a->port != b->port)
		return false;
	if (a->kind == HOST_ADDRESS)
		return ip_addr_eq(&a->addr, &b->addr);
	return str_eq(host_name_str(&a->name), host_name_str(&b->name));
}

static struct forward_target target_of(const struct http1_target *t)
{
	return (struct forward_target){ t->kind, t->name, t->addr, t->port };
}

/* The name or address without port, for records and refusals. */
static void host_text(struct forward_exchange *x)
{
	x->host[0] = '\0';
	if (x->target.kind == HOST_ADDRESS)
		ip_addr_text(&x->target.addr, x->host);
	else if (x->target.kind == HOST_NAME)
		memcpy(x->host, x->target.name.p, x->target.name.n + 1u);
}

/* The canonical authority; an absent port means 80. */
static int authority_text(const struct forward_exchange *x,
			  char out[FORWARD_HOST_SIZE])
{
	bool v6 = x->target.kind == HOST_ADDRESS &&
		  x->target.addr.family == IP_V6;
	char port[8] = "";
	int n = 0;

	if (x->target.port != HTTP_PORT)
		n = snprintf(port, sizeof(port), ":%u", x->target.port);
	if (n < 0 || n >= (int)sizeof(port))
		return -EINVAL;
	n = snprintf(out, FORWARD_HOST_SIZE, v6 ? "[%s]%s" : "%s%s", x->host,
		     port);
	return n < 0 || n >= FORWARD_HOST_SIZE ? -EINVAL : n;
}

static bool host_agrees(const struct http1_head *h,
			const struct forward_target *t)
{
	return http1_host_agrees(h, t->kind, &t->name, &t->addr, t->port,
				 HTTP_PORT);
}

/* An absolute-form target of a request that did not come by a proxy's door
 * (RFC 9112 3.2.2) may only repeat what is known. */
static enum reason check_repeated(const struct http1_target *t,
				  const struct forward_target *known)
{
	struct forward_target said = target_of(t);

	if (t->form != HTTP1_ABSOLUTE_FORM)
		return REASON_ALLOWED;
	if (t->https)
		return REASON_REQUEST_MALFORMED;
	return same_target(&said, known) ? REASON_ALLOWED :
					   REASON_HOST_MISMATCH;
}

static enum reason where_explicit(struct forward *f,
				  const struct http1_target *t,
				  unsigned *ret_status)
{
	if (t->form == HTTP1_ASTERISK_FORM)
		return REASON_METHOD_NOT_SUPPORTED;
	if (t->form != HTTP1_ABSOLUTE_FORM || t->https)
		return REASON_REQUEST_MALFORMED;
	f->x.target = target_of(t);
	if (f->head.has_host && !host_agrees(&f->head, &f->x.target)) {
		*ret_status = 400;
		return REASON_HOST_MISMATCH;
	}
	return REASON_ALLOWED;
}

static enum reason where_pinned(struct forward *f,
				const struct http1_target *t)
{
	f->x.target = f->pinned;
	if (f->head.has_host && !host_agrees(&f->head, &f->pinned))
		return REASON_HOST_MISMATCH;
	return check_repeated(t, &f->pinned);
}

static enum reason where_by_host(struct forward *f,
				 const struct http1_target *t)
{
	struct forward_target *to = &f->x.target;

	if (!f->head.has_host)
		return REASON_REQUEST_MALFORMED;
	to->kind = authority_parse(f->head.host, HTTP_PORT, &to->name,
				   &to->addr, &to->port);
	if (to->kind == HOST_BAD)
		return REASON_AUTHORITY_INVALID;
	if (to->port != f->pinned.port)
		return REASON_HOST_MISMATCH;
	return check_repeated(t, to);
}

static enum reason where(struct forward *f, const struct http1_target *t,
			 unsigned *ret_status)
{
	switch (f->mode) {
	case FORWARD_EXPLICIT:
		return where_explicit(f, t, ret_status);
	case FORWARD_PINNED:
		return where_pinned(f, t);
	case FORWARD_BY_HOST:
		return where_by_host(f, t);
	}
	return REASON_INTERNAL_ERROR;
}

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

/* The exchange ended as it should. */
static void record_answered(struct forward *f)
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

/* May the connection go on behind a refusal?  Only where it is certain which
 * byte begins the next request; a client that waits for 100 may send its body
 * or not.  Whoever sent a malformed or contradictory request (400) is not
 * believed about where it ends either. */
static bool may_go_on(const struct forward_exchange *x)
{
	if (x->status == 400 || !x->framed || !x->keep_alive || x->minor == 0)
		return false;
	if (http1_body_over(&x->up))
		return true;
	return !x->expect && x->up.left <= FORWARD_DRAIN_MAX;
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
		.status = (uint16_t)status,
		.head_only = str_eq(str_make(x->method, x->method_n),
				    STR("HEAD")),
	};

	x->status = status ? status : reason_info(r.reason)->http_status;
	r.close = !may_go_on(x);
	forward_record(f, act_of(why), why);
	if (refusal_http(&r, &f->app.out) < 0) {
		forward_end(f, REASON_MEMORY_EXCEEDED, true);
		return;
	}
	if (r.close) {
		forward_close_after_flush(f, why, false);
		return;
	}
	f->end_why = why;
	forward_set_state(f, FORWARD_DRAIN);
}

void forward_refuse_head(struct forward *f, enum reason why)
{
	struct forward_exchange *x = &f->x;

	memset(x, 0, sizeof(*x));
	x->open = true;
	x->started_ms = clock_mono_ms();
	if (f->mode != FORWARD_EXPLICIT) {
		x->target = f->pinned;
		host_text(x);
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

/* --- admission -------------------------------------------------------------- */

static void copy_path(struct forward_exchange *x, struct str path)
{
	size_t n = str_chr(path, '?');

	if (n == 0)
		path = STR("/");
	else
		path.n = n;
	x->path_n = MIN(path.n, sizeof(x->path));
	memcpy(x->path, path.p, x->path_n);
}

/* Everything about the request that must outlive its bytes. */
static void exchange_begin(struct forward *f)
{
	const struct http1_head *h = &f->head;
	struct forward_exchange *x = &f->x;

	memset(x, 0, sizeof(*x));
	x->open = true;
	x->framed = true;
	x->started_ms = clock_mono_ms();
	x->minor = h->minor;
	x->keep_alive = h->keep_alive;
	x->expect = h->expect_continue;
	x->method_n = MIN(h->method.n, sizeof(x->method));
	memcpy(x->method, h->method.p, x->method_n);
	x->as_up = h->framing;
	http1_body_init(&x->up, h, false);
	x->replayable = h->framing == HTTP1_NO_BODY &&
			(str_eq(h->method, STR("GET")) ||
			 str_eq(h->method, STR("HEAD")) ||
			 str_eq(h->method, STR("OPTIONS")) ||
			 str_eq(h->method, STR("TRACE")));
}

static void copy_mismatch(struct forward_exchange *x,
			  const struct http1_head *h)
{
	x->http_host_n = MIN(h->host.n, sizeof(x->http_host));
	if (x->http_host_n)
		memcpy(x->http_host, h->host.p, x->http_host_n);
}

/* RFC 9110 7.6.2: for OPTIONS and TRACE; 0 is for whoever has it. */
static enum reason hops(const struct http1_head *h, int *ret_left)
{
	const struct http1_field *f = http1_field(h, STR("max-forwards"));
	unsigned long n;

	*ret_left = -1;
	if (!f || (!str_eq(h->method, STR("OPTIONS")) &&
		   !str_eq(h->method, STR("TRACE"))))
		return REASON_ALLOWED;
	if (str_to_uint(f->value, 255, &n) < 0)
		return REASON_REQUEST_MALFORMED;
	if (n == 0)
		return REASON_METHOD_NOT_SUPPORTED;
	*ret_left = (int)n - 1;
	return REASON_ALLOWED;
}

/* CGI and its heirs (RFC 3875 4.1.18) know no difference between - and _. */
static bool is_field_named(struct str name, struct str wanted)
{
	if (name.n != wanted.n)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i] == '_' ? '-' : ascii_lower(name.p[i]);

		if (c != wanted.p[i])
			return false;
	}
	return true;
}

/* Fields by which frameworks take another method or path than the line's. */
static bool is_renamed(const struct http1_head *h)
{
	static const char *const names[] = {
		"x-http-method-override", "x-http-method", "x-method-override",
		"x-original-url", "x-original-uri", "x-rewrite-url",
		"x-rewrite-uri", "x-override-url",
	};

	for (size_t i = 0; i < h->nfields; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			if (is_field_named(h->field[i].name,
					   str_from(names[k])))
				return true;
		}
	}
	return false;
}

static enum reason judge(struct forward *f, struct str path)
{
	struct forward_exchange *x = &f->x;
	struct rules_answer answer = { 0 };
	struct rules_request request = {
		.method = f->head.method,
		.target = path,
		.renamed = is_renamed(&f->head),
	};

	f->ops->judge(f->arg, &x->target, &request, &answer);
	if (answer.rule) {
		struct str rule = str_from(answer.rule);

		rule.n = MIN(rule.n, sizeof(x->rule) - 1);
		memcpy(x->rule, rule.p, rule.n);
	}
	if (!rules_passes(&answer))
		return answer.reason;
	x->would_deny = answer.would_deny;
	x->observed = answer.reason;
	return REASON_ALLOWED;
}

/* May it go, and as what bytes?  Those are left in f->request. */
static enum reason judge_request(struct forward *f, unsigned *ret_status)
{
	struct forward_exchange *x = &f->x;
	struct rewrite_request how = { 0 };
	char authority[FORWARD_HOST_SIZE];
	struct http1_target t;
	enum reason why;
	int n;

	if (!http1_parse_target(&f->head, &t, &why))
		return why;
	if (t.form == HTTP1_AUTHORITY_FORM) {
		/* What follows may be the tunnel that it thinks it has. */
		x->framed = false;
		return REASON_METHOD_NOT_SUPPORTED;
	}
	copy_path(x, t.path);
	why = where(f, &t, ret_status);
	host_text(x);
	if (why == REASON_HOST_MISMATCH)
		copy_mismatch(x, &f->head);
	if (why == REASON_ALLOWED)
		why = hops(&f->head, &how.max_forwards);
	if (why == REASON_ALLOWED)
		why = judge(f, t.path);
	if (why != REASON_ALLOWED)
		return why;
	n = authority_text(x, authority);
	if (n < 0)
		return REASON_INTERNAL_ERROR;
	x->websocket = rewrite_asks_websocket(&f->head);
	how.path = t.path;
	how.host = str_make(authority, (size_t)n);
	how.websocket = x->websocket;
	how.close = !x->keep_alive && !f->outlives;
	buf_reset(&f->request);
	if (rewrite_request(&f->head, &how, &f->request) < 0)
		return REASON_MEMORY_EXCEEDED;
	return REASON_ALLOWED;
}

void forward_admit(struct forward *f)
{
	unsigned status = 0;
	enum reason why;

	exchange_begin(f);
	why = judge_request(f, &status);
	forward_half_consume(&f->app, f->head.bytes);
	if (why != REASON_ALLOWED) {
		forward_refuse(f, why, status);
		return;
	}
	if (f->net.fd >= 0 && !forward_half_silent(&f->net))
		forward_net_close(f, REASON_ORIGIN_CLOSED);
	if (f->net.fd >= 0 && same_target(&f->net_target, &f->x.target)) {
		f->net_reused = true;
		forward_send(f);
		return;
	}
	forward_net_leave(f, REASON_CLIENT_CLOSED);
	forward_dial(f);
}

void forward_send(struct forward *f)
{
	f->net_whole = false;
	forward_set_state(f, FORWARD_EXCHANGE);
	if (buf_add_str(&f->net.out, buf_str(&f->request)) < 0) {
		origin_failed(f, REASON_MEMORY_EXCEEDED);
		return;
	}
	f->x.bytes_up += f->request.n;
}

/* --- the body up ------------------------------------------------------------ */

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
	};
	size_t before = f->app.out.n;
	int err = rewrite_answer(&f->head, &how, &f->app.out);

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
	record_answered(f);
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
	f->net_keep = f->head.keep_alive;
	http1_body_init(&x->down, &f->head, true);
	forward_half_consume(&f->net, f->head.bytes);
}

static void answer_head(struct forward *f)
{
	unsigned status = f->head.status;

	/* 407 is a proxy's to say: it would ask the client for what is ours. */
	if (status == 407 ||
	    (status == 101 && !(f->x.websocket &&
				rewrite_agrees_websocket(&f->head))))
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
static void no_answer(struct forward *f)
{
	if (f->net_reused && f->x.replayable && f->x.interim == 0 &&
	    f->net.in.n == 0) {
		f->x.bytes_up = 0;
		f->x.replayed = true;
		forward_net_close(f, REASON_ORIGIN_CLOSED);
		forward_dial(f);
		return;
	}
	origin_failed(f, REASON_ORIGIN_TRUNCATED);
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
		no_answer(f);
	else
		return false;
	return true;
}

static void exchange_over(struct forward *f)
{
	bool up_over = http1_body_over(&f->x.up);
	bool net_ok = up_over && f->net_keep && !f->net.eof && !f->net.deaf &&
		      f->net.in.n == 0 && f->net.out.n == 0;

	record_answered(f);
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
	if (http1_body_may_end(&f->x.down) && !f->net.broken)
		exchange_over(f);
	else
		abort_answer(f, REASON_ORIGIN_TRUNCATED);
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
