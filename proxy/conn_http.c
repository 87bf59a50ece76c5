/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_http.c - what the HTTP engine asks of a connection
 *
 * The engine reads requests and moves bodies; which of them may go where, the
 * dialling and the records are here.  One app half can have many net halves,
 * one after the other: each is a flow with an id, an open and a close of its
 * own, and each request a record that carries the id of its flow.  A net half
 * that is left whole waits for another app half of the sandbox (conn_pool.c).
 *
 * Inside a CONNECT the origin was dialled before the 200 went out, since a 200
 * says so; the engine's first dial is given that socket.
 */
#include <errno.h>
#include <sys/socket.h>

#include "audit/writer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "proxy/conn.h"
#include "proxy/conn_names.h"
#include "proxy/conn_own.h"
#include "proxy/dial.h"
#include "proxy/forward.h"
#include "proxy/parents.h"
#include "proxy/worker.h"

static enum reason http_target(const struct conn *c,
			       const struct forward_target *f,
			       struct conn_target *ret, struct id *ret_dns)
{
	enum reason why;

	why = conn_target_set(c->s, f->kind == HOST_NAME ? &f->name : NULL,
			      &f->addr, f->port, ret, ret_dns);
	if (why != REASON_ALLOWED || ret->name.n)
		return why;
	/* A Host that is an address can only be the one that was asked for. */
	if (c->by_first_bytes && !ip_addr_eq(&ret->addr, &c->asked.addr))
		return REASON_HOST_MISMATCH;
	return conn_names_settle(c, ret, ret_dns);
}

static void http_judge(void *arg, const struct forward_target *f,
		       struct rules_request *request, struct rules_answer *ret)
{
	struct conn *c = arg;
	struct conn_target t;
	struct id dns;
	enum reason why = http_target(c, f, &t, &dns);

	*ret = (struct rules_answer){ .reason = why };
	if (why != REASON_ALLOWED)
		return;
	request->flow = conn_target_question(c, &t);
	rules_judge_request(c->rules, request, ret);
	if (!rules_passes(ret))
		return;
	if (ret->protocol && ret->protocol->speech == SPEECH_TLS)
		ret->reason = REASON_PROTOCOL_NOT_ALLOWED;
	else if (!audit_ok(c->s->sink))
		ret->reason = REASON_AUDIT_UNAVAILABLE;
	else if (c->s->worker->draining)
		ret->reason = REASON_SHUTDOWN;
	else if ((why = conn_may_hold(c)) != REASON_ALLOWED)
		ret->reason = why;
	else {
		c->request_rule = (uint32_t)ret->rule_number;
		return;
	}
	ret->would_deny = false;
}

/* The socket that the CONNECT was answered for, if it still lives. */
static bool net_is_alive(const struct conn *c)
{
	char byte;
	ssize_t n = recv(c->net->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n > 0 || (n < 0 && errno == EAGAIN);
}

/* What the engine is to say on the connection that it is given. */
static void tell_way(struct conn *c)
{
	forward_set_parent(c->forward, c->way.bare,
			   c->way.bare ? c->way.parent->basic : STR_NONE);
}

static bool take_connected(struct conn *c, const struct conn_target *t)
{
	if (!c->net)
		return false;
	if (conn_target_eq(c->target, t) && net_is_alive(c)) {
		tell_way(c);
		forward_dialed(c->forward, stream_plain(half_takep(&c->net)),
			       c->began_ms);
		return true;
	}
	half_closep(&c->net, false);
	conn_record_end(c, REASON_ORIGIN_CLOSED);
	return false;
}

static bool take_pooled(struct conn *c, const struct conn_target *t)
{
	int fd = conn_pool_take(c, t);

	if (fd < 0)
		return false;
	c->way = (struct dial_way){ .parent = NULL };
	c->parent_status = 0;
	tell_way(c);
	forward_dial_found(c->forward, stream_plain(fd), c->began_ms);
	return true;
}

static void http_dial(void *arg, const struct forward_target *f, bool fresh)
{
	struct conn *c = arg;
	struct conn_target t;
	struct id dns;
	enum reason why = http_target(c, f, &t, &dns);

	if (why != REASON_ALLOWED) {
		forward_dial_failed(c->forward, why);
		return;
	}
	if (take_connected(c, &t))
		return;
	if (c->opened)		/* the engine tells before it dials anew */
		conn_record_end(c, REASON_ORIGIN_CLOSED);
	if (!fresh && take_pooled(c, &t))
		return;
	conn_target_copy(c->target, &t);
	c->dns = dns;
	conn_target_judge(c, c->target, &c->answer);
	if (c->recorded)
		id_new(&c->id);
	c->began_ms = clock_mono_ms();
	if (conn_dial_target(c))
		forward_dial_failed(c->forward, REASON_MEMORY_EXCEEDED);
}

void conn_http_on_dialed(struct conn *c, const struct dial_result *r)
{
	enum reason why = r->reason;
	int fd = r->fd;

	if (why == REASON_ALLOWED)
		why = conn_judge_dialed(c);
	if (why == REASON_ALLOWED) {
		tell_way(c);
		forward_dialed(c->forward, stream_plain(fd), c->began_ms);
		return;
	}
	fd_closep(&fd);
	if (c->opened)
		conn_record_end(c, why);
	forward_dial_failed(c->forward, why);
}

static void http_dial_cancel(void *arg)
{
	struct conn *c = arg;

	dial_cancel(c->dial);
	c->dial = NULL;
	if (c->opened)
		conn_record_end(c, REASON_CLIENT_CLOSED);
}

static void http_net_closed(void *arg, enum reason why, uint64_t bytes_up,
			    uint64_t bytes_down)
{
	struct conn *c = arg;

	c->bytes_up = c->base_up + bytes_up;
	c->bytes_down = c->base_down + bytes_down;
	conn_record_end(c, why);
}

/* Behind a CONNECT the program was told that the connection is its own. */
static bool may_outlive(const struct conn *c)
{
	return c->via == RECORD_VIA_FORWARD ||
	       c->via == RECORD_VIA_TRANSPARENT;
}

static bool http_net_idle(void *arg, struct stream *net, uint64_t bytes_up,
			  uint64_t bytes_down)
{
	struct conn *c = arg;

	c->bytes_up = c->base_up + bytes_up;
	c->bytes_down = c->base_down + bytes_down;
	REQUIRE(stream_is_plain(net));
	if (!conn_pool_give(c, net->fd))
		return false;
	*net = STREAM_NONE;
	return true;
}

/* The target of the flow that is open, or what the address leads to. */
static bool http_name_behind(const struct conn *c, struct record *r,
			     struct conn_target *ret)
{
	if (c->target->name.n && c->target->port == r->dst.port &&
	    ip_addr_eq(&c->target->wish, &r->dst.addr)) {
		conn_target_copy(ret, c->target);
		return true;
	}
	return conn_target_set(c->s, NULL, &r->dst.addr, r->dst.port, ret,
			       &r->dns) == REASON_ALLOWED &&
	       (ret->name.n ||
		conn_names_settle(c, ret, &r->dns) == REASON_ALLOWED) &&
	       ret->name.n;
}

static void http_record(void *arg, struct record *r)
{
	struct conn *c = arg;
	struct conn_target t = { .port = 0 };
	bool of_flow;

	/* The engine does not know that an address can be a name. */
	if (r->host.n == 0 && r->dst.addr.family != IP_NONE &&
	    http_name_behind(c, r, &t)) {
		r->host = host_name_str(&t.name);
		r->dst.addr = (struct ip_addr){ .family = IP_NONE };
	}
	/* One that asked about the proxy has no target. */
	of_flow = r->dst.port && r->dst.port == c->target->port &&
		  (r->host.n ?
		   str_eq(r->host, host_name_str(&c->target->name)) :
		   ip_addr_eq(&r->dst.addr, &c->target->addr));
	conn_record_http(c, r, of_flow);
}

static void http_tunnel(void *arg, struct stream net, struct str up,
			struct str down, uint64_t bytes_up, uint64_t bytes_down)
{
	struct conn *c = arg;

	REQUIRE(stream_is_plain(&net));	/* what a relay can move */
	c->net = half_new(c->s->worker->halves, net.fd, half_ignore, NULL);
	c->base_up += bytes_up;
	c->base_down += bytes_down;
	c->forward_over = true;
	if (c->net && half_watch(&c->app) == 0)
		conn_start_relay(c, up, down);
	else
		conn_finish(c, REASON_MEMORY_EXCEEDED, true);
	forward_free(c->forward);
	c->forward = NULL;
}

static void http_finish(void *arg, enum reason why, bool reset)
{
	struct conn *c = arg;

	c->forward_over = true;
	conn_finish(c, why, reset);
}

static void http_times(void *arg, struct forward_times *ret)
{
	const struct rules_times t = conn_times(arg);

	ret->stall_ms = t.idle_s * 1000;
	ret->flow_ms = t.flow_s * 1000;
}

static const struct forward_ops http_ops = {
	.judge = http_judge,
	.dial = http_dial,
	.dial_cancel = http_dial_cancel,
	.net_closed = http_net_closed,
	.net_idle = http_net_idle,
	.record = http_record,
	.tunnel = http_tunnel,
	.times = http_times,
	.finish = http_finish,
};

static void http_pin(const struct conn *c, struct forward_config *config)
{
	struct forward_target *pinned = &config->pinned;

	pinned->port = c->target->port;
	if (c->by_first_bytes) {
		config->mode = FORWARD_BY_HOST;
	} else if (c->via == RECORD_VIA_FORWARD) {
		config->mode = FORWARD_EXPLICIT;
	} else {
		config->mode = FORWARD_PINNED;
		pinned->kind = c->target->name.n ? HOST_NAME : HOST_ADDRESS;
		pinned->name = c->target->name;
		pinned->addr = c->target->addr;
	}
}

void conn_start_http(struct conn *c)
{
	struct forward_config config = {
		.base = c->s->worker->base,
		.app = stream_plain(c->app.fd),
		.early = buf_str(&c->ask->in),
		.policy = rules_name(c->rules),
		.run = c->s->run,
		.limits = conn_http_limits(c),
		.account = &c->account,
		.turn = &c->s->turn,
		.memory = &c->s->memory,
		.ops = &http_ops,
		.arg = c,
	};

	c->speech = SPEECH_HTTP;
	http_pin(c, &config);
	config.outlives = may_outlive(c);
	conn_quiet(c);
	half_rest(&c->app);
	conn_set_state(c, CONN_HTTP);
	if (forward_start(&config, &c->forward)) {
		conn_finish(c, REASON_MEMORY_EXCEEDED, true);
		return;
	}
	buf_done(&c->ask->in);
	c->ask->in = BUF_FOR(CONN_IN_MAX, &c->s->memory);
}
