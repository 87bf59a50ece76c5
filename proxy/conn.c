/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn.c - the life of one connection of a sandbox
 *
 * Theory of operation
 * ===================
 *
 * A connection has two halves: app, the socket the sandboxed program opened,
 * and net, the one we open for it in the host's namespace.  No byte crosses
 * from one to the other before the name, the address and, where the rule says
 * so, the first bytes have been judged, and before a record of it is queued.
 *
 *	START -+-> HEAD ---+-> DIAL --> HELLO --> RELAY		CONNECT
 *	       |           +-> HTTP --> RELAY			absolute-form
 *	       +-> SOCKS --> DIAL, and on as a CONNECT		SOCKS
 *	       +-> HELLO ----> DIAL --> RELAY			transparent TLS
 *	       +-> HTTP					transparent HTTP
 *	       +-> DIAL -----> RELAY			the rest, at once
 *	       +-> LISTEN ---> REFUSE			refused
 *
 *   from       to        because
 *   START      HEAD      accepted on the explicit proxy
 *   START      SOCKS     accepted on the SOCKS port
 *   START      HELLO     the rule says TLS, or only a ClientHello can name it
 *   START      HTTP      the rule says HTTP: the engine judges each request
 *   START      DIAL      the rule leaves the bytes alone: server-first works
 *   HEAD       DIAL      a CONNECT that the rules permit
 *   HEAD       HTTP      anything but CONNECT
 *   SOCKS      DIAL      a request that the rules permit
 *   HELLO      DIAL      SNI agrees, and nobody has been dialled; or the
 *                        policy changed, and leaves the bytes alone now
 *   HELLO      HTTP      the policy changed, and says HTTP now
 *   HELLO      RELAY     ... inside a tunnel, whose origin is connected
 *   DIAL       HELLO     connected, who asked for a tunnel was told, the rule
 *                        says TLS
 *   DIAL       HTTP      the same, and the rule says HTTP
 *   DIAL       RELAY     connected
 *   HTTP       RELAY     a WebSocket was agreed on
 *   any        LISTEN    refused, and the program may say in which protocol
 *   any        REFUSE    refused, the answer is on its way
 *   any        ENDED     conn_end(), see enum reason
 *
 * Another policy, or the end of a rule's time, has every connection judged
 * again where it stands: conn_rejudge.c.
 *
 * What holds in each state is asserted by conn_check().  A refusal is recorded
 * when it is decided, not when it has been told.  Every connection leaves at
 * least one record.
 */
#include "proxy/conn.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/conn_names.h"
#include "proxy/conn_own.h"
#include "proxy/dial.h"
#include "proxy/forward.h"
#include "proxy/relay.h"
#include "proxy/sock.h"
#include "proxy/worker.h"

/* One read of first bytes; a ClientHello of today fits. */
#define READ_CHUNK	4096

#define MAY(state)	BIT(CONN_##state)
#define MAY_END		(MAY(LISTEN) | MAY(REFUSE) | MAY(ENDED))

static const struct {
	const char *name;
	uint32_t next;		/* states that may follow, as bits */
} conn_states[] = {
	[CONN_START] = { "start", MAY(HEAD) | MAY(SOCKS) | MAY(HELLO) |
				  MAY(HTTP) | MAY(DIAL) | MAY_END },
	[CONN_HEAD] = { "head", MAY(DIAL) | MAY(HTTP) | MAY_END },
	[CONN_SOCKS] = { "socks", MAY(DIAL) | MAY_END },
	[CONN_HELLO] = { "hello", MAY(DIAL) | MAY(HTTP) | MAY(RELAY) |
				  MAY_END },
	[CONN_DIAL] = { "dial", MAY(HELLO) | MAY(HTTP) | MAY(RELAY) |
				MAY_END },
	[CONN_HTTP] = { "http", MAY(RELAY) | MAY_END },
	[CONN_RELAY] = { "relay", MAY_END },
	[CONN_LISTEN] = { "listen", MAY(REFUSE) | MAY(ENDED) },
	[CONN_REFUSE] = { "refuse", MAY(ENDED) },
	[CONN_ENDED] = { "ended", 0 },
};
static_assert(ARRAY_SIZE(conn_states) == CONN_STATES, "name every state");

static void conn_check(const struct conn *c)
{
	bool over = c->state == CONN_ENDED;
	bool told = c->state == CONN_LISTEN || c->state == CONN_REFUSE;

	REQUIRE(c->magic == CONN_MAGIC);
	REQUIRE((c->app.fd >= 0) == !over);
	/* Who is refused, or gone, reaches nobody and is on record. */
	if (over || told)
		REQUIRE(!c->net && c->recorded && !c->opened && !c->dial &&
			!c->relay && !c->forward);
	/* Nobody is reached without a record of it. */
	REQUIRE(!c->net || c->opened);
	if (c->state == CONN_RELAY)
		REQUIRE(c->net);
	else
		REQUIRE(c->ask || over);
	if (c->state == CONN_HEAD || c->state == CONN_SOCKS ||
	    c->state == CONN_START)
		REQUIRE(!c->net);
}

void conn_set_state(struct conn *c, enum conn_state to)
{
	REQUIRE(conn_states[c->state].next & BIT(to));
	log_debug("run %s: connection %p: %s -> %s", c->s->run, (void *)c,
		  conn_states[c->state].name, conn_states[to].name);
	c->state = to;
	conn_check(c);
}

/* --- events --------------------------------------------------------------------- */

void conn_quiet(struct conn *c)
{
	struct conn_ask *a = c->ask;

	if (!a)
		return;
	sched_cancel(&a->read);
	(void)!event_del(&a->timer);
}

static void conn_ask_free(struct conn *c)
{
	if (!c->ask)
		return;
	conn_quiet(c);
	buf_done(&c->ask->in);
	buf_done(&c->ask->out);
	mem_free(c->ask);
	c->ask = NULL;
}

void conn_settle_down(struct conn *c)
{
	struct conn_target *cut = conn_target_dup(c->target);

	conn_ask_free(c);
	/* Without memory for it, it stays as it was. */
	if (!cut)
		return;
	mem_free(c->target);
	c->target = cut;
}

void conn_read_in(struct conn *c, enum conn_state state, unsigned ms)
{
	const struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	conn_set_state(c, state);
	if (half_watch(&c->app) ||
	    event_add(&c->ask->timer, &tv)) {
		conn_finish(c, REASON_MEMORY_EXCEEDED, true);
		return;
	}
	if (c->app.readable)
		half_kick(&c->app);
}

bool conn_send(struct conn *c, struct str s)
{
	return half_send(&c->app, s.p, s.n) == (ssize_t)s.n;
}

/* It has asked for more than there is memory for: a dial goes on unread. */
static void conn_on_lean(struct conn *c, enum reason why)
{
	switch (c->state) {
	case CONN_HEAD:
	case CONN_SOCKS:
	case CONN_HELLO:
		conn_refuse(c, why);
		break;
	case CONN_LISTEN:
		conn_finish(c, c->why, true);
		break;
	case CONN_DIAL:
		break;
	case CONN_START:
	case CONN_HTTP:
	case CONN_RELAY:
	case CONN_REFUSE:
	case CONN_ENDED:
	case CONN_STATES:
		REQUIRE(!"a state that reads");
	}
}

/* Read once into @in. Return: false when there is nothing to look at. */
static bool conn_fill(struct conn *c, bool *ret_end)
{
	size_t room = MIN((size_t)READ_CHUNK, c->ask->in.max - c->ask->in.n);
	enum reason why = c->ask->in.n < READ_CHUNK ? REASON_ALLOWED :
						 conn_may_hold(c);
	ssize_t n;

	if (room == 0)
		return false;
	if (why != REASON_ALLOWED) {
		conn_on_lean(c, why);
		return false;
	}
	if (buf_reserve(&c->ask->in, room)) {
		conn_finish(c, REASON_MEMORY_EXCEEDED, true);
		return false;
	}
	n = half_recv(&c->app, c->ask->in.p + c->ask->in.n, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0) {
		conn_finish(c, REASON_CLIENT_RESET, true);
		return false;
	}
	c->ask->in.n += (size_t)n;
	*ret_end = n == 0;
	return true;
}

static void conn_on_bytes(struct conn *c, bool end)
{
	switch (c->state) {
	case CONN_HEAD:
		conn_on_head(c, end);
		break;
	case CONN_SOCKS:
		conn_on_socks(c, end);
		break;
	case CONN_HELLO:
		conn_on_hello(c, end);
		break;
	case CONN_DIAL:
		conn_on_dial_read(c, end);
		break;
	case CONN_LISTEN:
		conn_on_listen(c, end);
		break;
	case CONN_START:
	case CONN_HTTP:
	case CONN_RELAY:
	case CONN_REFUSE:
	case CONN_ENDED:
	case CONN_STATES:
		REQUIRE(!"a state that reads");
	}
}

static bool conn_reads(const struct conn *c)
{
	return BIT(c->state) & (MAY(HEAD) | MAY(SOCKS) | MAY(HELLO) |
				MAY(DIAL) | MAY(LISTEN));
}

/* Nothing that is not taken now is reported again. */
static void conn_on_said(struct conn *c)
{
	bool end = false;

	if (c->state == CONN_REFUSE) {
		conn_on_refuse(c);
		return;
	}
	while (!end && conn_reads(c) && c->app.readable) {
		if (!conn_fill(c, &end))
			return;
		conn_on_bytes(c, end);
	}
}

static void conn_on_timeout(struct conn *c)
{
	switch (c->state) {
	case CONN_HEAD:
	case CONN_SOCKS:
		conn_refuse(c, c->admission != REASON_ALLOWED ?
			    c->admission : REASON_HEADER_TIMEOUT);
		break;
	case CONN_HELLO:
		conn_refuse(c, c->ask->in.n ? REASON_HELLO_INCOMPLETE :
					 REASON_HEADER_TIMEOUT);
		break;
	case CONN_LISTEN:
		conn_finish(c, c->why, true);
		break;
	case CONN_REFUSE:
		conn_finish(c, c->why, false);
		break;
	case CONN_START:
	case CONN_DIAL:
	case CONN_HTTP:
	case CONN_RELAY:
	case CONN_ENDED:
	case CONN_STATES:
		REQUIRE(!"a state that waits");
	}
}

static struct conn *conn_of(void *arg)
{
	struct conn *c = arg;

	REQUIRE(c->magic == CONN_MAGIC);
	return c;
}

static void app_said(void *arg)
{
	struct conn *c = conn_of(arg);

	(void)sched_run(&c->s->turn, &c->ask->read);
}

static void read_fn(void *arg)
{
	struct conn *c = conn_of(arg);

	sched_spend(&c->s->turn, SCHED_COST_CALL);
	conn_on_said(c);
}

static void timer_cb(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	conn_on_timeout(conn_of(arg));
}

void conn_begin_in(struct conn *c, enum conn_state state, unsigned ms)
{
	conn_read_in(c, state, ms);
	if (c->state != state)
		return;
	c->app.readable = true;
	conn_on_said(c);
}

/* --- beginning ------------------------------------------------------------------- */

static struct conn_ask *conn_ask_new(struct conn *c)
{
	struct event_base *base = c->s->worker->base;
	struct conn_ask *a = mem_new(sizeof(*a));

	if (!a)
		return NULL;
	a->in = BUF_FOR(CONN_IN_MAX, &c->s->memory);
	a->out = BUF_FOR(CONN_IN_MAX, &c->s->memory);
	sched_work_init(&a->read, read_fn, c);
	if (event_assign(&a->timer, base, -1, 0, timer_cb, c)) {
		mem_free(a);
		return NULL;
	}
	return a;
}

static void conn_free(struct conn *c)
{
	if (!c)
		return;
	conn_ask_free(c);
	if (c->watch)
		event_free(c->watch);
	mem_free(c->sni);
	mem_free(c->target);
	c->magic = 0;
	mem_free(c);
}

static bool conn_init(struct conn *c, struct sandbox *s, int fd,
		      enum record_via via)
{
	c->magic = CONN_MAGIC;
	c->s = s;
	half_init(&c->app, s->worker->halves, fd, app_said, c);
	c->via = via;
	c->began_ms = clock_mono_ms();
	id_new(&c->id);
	list_init(&c->dead);
	c->target = mem_new(sizeof(*c->target));
	c->ask = conn_ask_new(c);
	if (!c->target || !c->ask)
		return false;
	c->rules = rules_ref(s->rules);
	list_add(&s->conns, &c->node);
	s->nconns++;
	conn_enter(c);
	return true;
}

struct conn *conn_new(struct sandbox *s, int fd,
		      const struct ip_endpoint *src, enum record_via via)
{
	struct conn *c = mem_new(sizeof(*c));
	struct record r;

	if (c) {
		c->src = *src;
		if (conn_init(c, s, fd, via))
			return c;
	}
	conn_free(c);
	sandbox_record(RECORD_FLOW_DENY, RECORD_DENY, REASON_MEMORY_EXCEEDED,
		       via, &r);
	sandbox_deny(s, &r);
	sock_reset(&fd);
	return NULL;
}

/* --- end ------------------------------------------------------------------------- */

/* Nobody but us holds app or net behind this. */
static void conn_release(struct conn *c, enum reason why)
{
	dial_cancel(c->dial);
	c->dial = NULL;
	conn_names_release(c);
	if (c->relay)
		conn_take_relay(c);
	if (c->forward && !c->forward_over)
		forward_cut(c->forward, why);
	forward_free(c->forward);
	c->forward = NULL;
}

void conn_finish(struct conn *c, enum reason why, bool reset)
{
	if (c->state == CONN_ENDED)
		return;
	conn_quiet(c);
	if (c->watch)
		(void)!event_del(c->watch);
	conn_release(c, why);
	conn_record_end(c, why);
	conn_leave(c);
	half_closep(&c->net, reset);
	half_close(&c->app, reset);
	conn_set_state(c, CONN_ENDED);
	list_add(&c->s->worker->dead, &c->dead);
	worker_reclaim(c->s->worker);
}

void conn_end(struct conn *c, enum reason why)
{
	conn_finish(c, why, why != REASON_CLIENT_CLOSED &&
			    why != REASON_ORIGIN_CLOSED);
}

void conn_end_all(struct sandbox *s, enum reason why)
{
	struct list *it, *tmp;

	list_each(&s->conns, it, tmp)
		conn_end(container_of(it, struct conn, node), why);
	conn_pool_end(s, why);
}

void conn_reclaim(struct worker *w)
{
	struct list *it, *tmp;

	list_each(&w->dead, it, tmp) {
		struct conn *c = container_of(it, struct conn, dead);
		struct sandbox *s = c->s;

		REQUIRE(c->magic == CONN_MAGIC && c->state == CONN_ENDED);
		list_del(&c->dead);
		list_del(&c->node);
		s->nconns--;
		rules_unref(c->rules);
		conn_discharge(c);
		conn_free(c);
		sandbox_on_less(s);
	}
}
