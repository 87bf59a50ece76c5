/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_admit.c - may a request go, where, and as what bytes
 *
 * The target alone says where; what else names a host must agree with it.  What
 * is sent on is written anew from what was understood (rewrite.h), with the
 * authority that was judged in its Host field, so that the origin cannot
 * understand another.
 */
#include <errno.h>
#include <stdio.h>

#include "base/clock.h"
#include "proxy/forward_int.h"

#define HTTP_PORT	80
/* So many of us in one Via are no chain of proxies. */
#define HOPS_MAX	8
/* Of Max-Forwards: a chain of so many hops has no end. */
#define FORWARDS_MAX	255

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

void forward_host_text(struct forward_exchange *x)
{
	x->host[0] = '\0';
	if (x->target.kind == HOST_ADDRESS)
		ip_addr_text(&x->target.addr, x->host);
	else if (x->target.kind == HOST_NAME)
		memcpy(x->host, x->target.name.p, x->target.name.n + 1u);
}

/* The canonical authority; an absent port means 80. */
int forward_authority(const struct forward_exchange *x,
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

/* About the proxy itself (RFC 9110 9.3.7).  Whoever may be meant by its Host
 * is not asked, but a Host that nobody can have is a fault of any request. */
static enum reason where_hostless(struct forward *f)
{
	struct host_name name;
	struct ip_addr addr;
	uint16_t port;

	f->x.final = f->x.hostless = true;
	if (f->head.host.n == 0 ||
	    authority_parse(f->head.host, HTTP_PORT, &name, &addr, &port) !=
	    HOST_BAD)
		return REASON_ALLOWED;
	return REASON_AUTHORITY_INVALID;
}

static enum reason where_explicit(struct forward *f,
				  const struct http1_target *t,
				  unsigned *ret_status)
{
	if (t->form == HTTP1_ASTERISK_FORM)
		return where_hostless(f);
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
	/* RFC 9112 9.3: a proxy keeps no connection with a 1.0 client. */
	x->keep_alive = h->keep_alive && h->minor > 0;
	x->expect = h->expect_continue && h->minor > 0;
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

/* 1*DIGIT; what is more than we count to is as much as we count to. */
static bool hops_parse(struct str s, int *ret)
{
	int n = 0;

	for (size_t i = 0; i < s.n; i++) {
		if (!ascii_is_digit(s.p[i]))
			return false;
		n = MIN(n * 10 + (s.p[i] - '0'), FORWARDS_MAX);
	}
	*ret = n;
	return s.n > 0;
}

/* RFC 9110 7.6.2, for OPTIONS and TRACE.  @ret_left: to be said to the next
 * hop, -1: nothing. */
static enum reason hops(const struct http1_head *h, int *ret_left,
			bool *ret_final)
{
	const struct http1_field *f = NULL;
	int n;

	*ret_left = -1;
	if (!str_eq(h->method, STR("OPTIONS")) &&
	    !str_eq(h->method, STR("TRACE")))
		return REASON_ALLOWED;
	for (size_t i = 0; i < h->nfields; i++) {
		if (!str_ieq(h->field[i].name, STR("max-forwards")))
			continue;
		if (f)
			return REASON_REQUEST_MALFORMED;
		f = &h->field[i];
	}
	if (!f)
		return REASON_ALLOWED;
	if (!hops_parse(f->value, &n))
		return REASON_REQUEST_MALFORMED;
	if (n == 0)
		*ret_final = true;
	*ret_left = n - 1;
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

static bool is_us(struct str hop)
{
	struct str protocol;

	hop = str_trim(hop);
	return str_cut(&hop, ' ', &protocol) &&
	       str_starts(str_trim(hop), STR("penstock"));
}

/* RFC 9110 7.6.3.  Nothing in a Via tells one of us from another, since an
 * origin could tell sandboxes apart by it; so a loop is seen by its length. */
static bool is_loop(const struct http1_head *h)
{
	unsigned hops = 0;

	for (size_t i = 0; i < h->nfields; i++) {
		struct str rest = h->field[i].value, hop;

		if (!str_ieq(h->field[i].name, STR("via")))
			continue;
		while (str_cut(&rest, ',', &hop))
			hops += is_us(hop);
	}
	return hops >= HOPS_MAX;
}

/* What cannot be sent on whoever it is for. */
static enum reason check_semantics(const struct http1_head *h, int *ret_left,
				   bool *ret_final)
{
	if (h->expect_other)
		return REASON_EXPECTATION_FAILED;
	/* RFC 9110 9.3.8 */
	if (str_eq(h->method, STR("TRACE")) && h->framing != HTTP1_NO_BODY)
		return REASON_REQUEST_MALFORMED;
	if (is_loop(h))
		return REASON_PROXY_LOOP;
	return hops(h, ret_left, ret_final);
}

/* RFC 9110 9.3.1, 9.3.2 and 9.3.5 give content no meaning here: an origin that
 * does not read it may take it for the next request, unless there is none. */
static bool is_odd_body(const struct http1_head *h)
{
	return h->framing != HTTP1_NO_BODY &&
	       (str_eq(h->method, STR("GET")) ||
		str_eq(h->method, STR("HEAD")) ||
		str_eq(h->method, STR("DELETE")));
}

/* Schemes that log the connection in, and not the request (RFC 4559 6, against
 * RFC 9110 11.4): whoever speaks on it behind that speaks as this client. */
static bool binds_connection(const struct http1_head *h)
{
	static const struct str schemes[] = {
		{ "ntlm", 4 }, { "negotiate", 9 }, { "nego2", 5 },
		{ "kerberos", 8 },
	};

	for (size_t i = 0; i < h->nfields; i++) {
		struct str rest = h->field[i].value, scheme = STR_NONE;

		if (!str_ieq(h->field[i].name, STR("authorization")) ||
		    !str_word(&rest, &scheme))
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(schemes); k++) {
			if (str_ieq(scheme, schemes[k]))
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

/* As what bytes it goes; they are left in f->request. */
static enum reason write_request(struct forward *f, struct str path,
				 int max_forwards)
{
	struct forward_exchange *x = &f->x;
	struct rewrite_request how = {
		.path = path, .max_forwards = max_forwards,
	};
	char authority[FORWARD_HOST_SIZE];
	int n = forward_authority(x, authority);

	if (n < 0)
		return REASON_INTERNAL_ERROR;
	x->websocket = websocket_asked(&f->head, x->accept);
	x->last = is_odd_body(&f->head);
	/* An origin that answered and left the body unread will take it for a
	 * request: its answer must not become somebody else's. */
	x->binds = f->head.framing != HTTP1_NO_BODY ||
		   binds_connection(&f->head);
	how.host = str_make(authority, (size_t)n);
	how.websocket = x->websocket;
	how.expect = x->expect;
	how.close = x->last || (!x->keep_alive && !f->outlives);
	buf_reset(&f->request);
	if (rewrite_request(&f->head, &how, &f->request) < 0)
		return REASON_MEMORY_EXCEEDED;
	return REASON_ALLOWED;
}

/* May it go, and as what; or be answered here, with what? */
static enum reason judge_request(struct forward *f, unsigned *ret_status)
{
	struct forward_exchange *x = &f->x;
	struct http1_target t;
	enum reason why;
	int left = -1;

	if (!http1_parse_target(&f->head, &t, &why))
		return why;
	if (t.form == HTTP1_AUTHORITY_FORM) {
		/* What follows may be the tunnel that it thinks it has. */
		x->framed = false;
		return REASON_METHOD_NOT_SUPPORTED;
	}
	copy_path(x, t.path);
	why = where(f, &t, ret_status);
	forward_host_text(x);
	if (why == REASON_HOST_MISMATCH)
		copy_mismatch(x, &f->head);
	if (why == REASON_ALLOWED)
		why = check_semantics(&f->head, &left, &x->final);
	if (why == REASON_ALLOWED && !x->hostless)
		why = judge(f, t.path);
	if (why != REASON_ALLOWED)
		return why;
	return x->final ? forward_final_answer(f) :
			  write_request(f, t.path, left);
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
	if (f->x.final) {
		forward_final_over(f);
		return;
	}
	if (stream_is_open(&f->net.io) && !forward_half_silent(&f->net))
		forward_net_close(f, REASON_ORIGIN_CLOSED);
	/* Its time was up between two requests: no fault of the next one. */
	if (forward_net_is_old(f))
		forward_net_close(f, REASON_FLOW_TIME_EXCEEDED);
	if (stream_is_open(&f->net.io) &&
	    same_target(&f->net_target, &f->x.target)) {
		f->net_reused = true;
		forward_send(f);
		return;
	}
	forward_net_leave(f, REASON_CLIENT_CLOSED);
	forward_dial(f);
}
