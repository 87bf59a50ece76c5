/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_net.c - dialling for a connection, and its tunnel
 */
#include <errno.h>

#include "base/fd.h"
#include "proxy/conn_names.h"
#include "proxy/conn_own.h"
#include "proxy/dial.h"
#include "proxy/relay.h"
#include "proxy/sock.h"
#include "proxy/worker.h"

/*
 * The first address that passed: from here on the flow is on record.  With an
 * address another rule may decide than without; it must not demand more of the
 * first bytes than is being done.
 */
static enum reason on_permit(void *arg, const struct ip_endpoint *dst,
			     const struct dial_way *way,
			     const struct rules_answer *answer)
{
	struct conn *c = arg;
	enum rules_speech speech = conn_protocol(c, answer)->speech;

	c->dst = *dst;
	c->way = *way;
	if (speech != c->speech && speech != SPEECH_OPAQUE)
		return REASON_PROTOCOL_NOT_ALLOWED;
	return conn_record_open(c, answer);
}

/* What the client of a tunnel waits for. */
static struct str established(const struct conn *c, char out[SOCKS_ANSWER_MAX])
{
	return c->via == RECORD_VIA_SOCKS ? conn_socks_granted(c, out) :
					    STR("HTTP/1.1 200 OK\r\n\r\n");
}

/* The origin is there: the client of a tunnel hears of it, then the rule's
 * protocol. */
static void on_connected(struct conn *c)
{
	char out[SOCKS_ANSWER_MAX];

	if (!conn_is_tunnel(c)) {
		conn_start_relay(c, buf_str(&c->ask->in), STR_NONE);
		return;
	}
	if (c->speech == SPEECH_OPAQUE) {
		conn_start_relay(c, buf_str(&c->ask->in), established(c, out));
		return;
	}
	conn_quiet(c);
	if (!conn_send(c, established(c, out))) {
		conn_finish(c, REASON_CLIENT_RESET, true);
		return;
	}
	c->established = true;
	if (c->speech == SPEECH_HTTP) {
		conn_start_http(c);
		return;
	}
	conn_read_in(c, CONN_HELLO, conn_head_ms(c));
	if (c->state == CONN_HELLO && c->ask->in.n)
		conn_on_hello(c, false);
}

static void on_dialed(void *arg, const struct dial_result *r)
{
	struct conn *c = arg;
	enum reason why;

	c->dial = NULL;
	if (r->dst.addr.family != IP_NONE)
		c->dst = r->dst;
	c->way = r->way;
	c->parent_status = r->parent_status;
	if (r->rule)
		c->answer.rule = r->rule;
	if (c->state == CONN_HTTP) {
		conn_http_on_dialed(c, r);
	} else if (r->reason != REASON_ALLOWED) {
		conn_refuse(c, r->reason);
	} else {
		c->net = r->half;
		why = conn_judge_dialed(c);
		if (why == REASON_ALLOWED)
			on_connected(c);
		else
			conn_refuse(c, why);
	}
}

int conn_dial_target(struct conn *c)
{
	struct worker *w = c->s->worker;
	const struct conn_target *t = c->target;
	/* Of a name's own addresses, the one that was asked for goes first: if
	 * it was given for the name, whatever the name has by now. */
	const struct ip_addr wish = ip_addr_unmapped(
		t->wish.family != IP_NONE ? &t->wish : &c->asked.addr);
	bool pinned = conn_names_hold(c, &wish);
	const struct dial_config config = {
		.base = w->base,
		.halves = w->halves,
		.resolver = w->resolver,
		.rules = c->rules,
		.parents = w->parents,
		.source = w->source,
		.marks = w->marks,
		.watched = c->state != CONN_HTTP,
		.http = c->state == CONN_HTTP || c->speech == SPEECH_HTTP,
		.hosts = &w->hosts,
		.doors = w->doors,
		.asker = { c->s->tenant, c->s->budget },
		.host = host_name_str(&t->name),
		.addr = t->name.n ? wish : t->addr,
		.use = t->alone ? DIAL_ADDR_ALONE :
		       pinned ? DIAL_ADDR_FIRST : DIAL_ADDR_IF_ITS_OWN,
		.prefer = (enum ip_family)wish.family,
		/* With "auto" a dial without a route fails at once, and says so. */
		.v4_only = rules_dns(c->rules)->ipv6 == RULES_IPV6_OFF,
		.port = t->port,
		.limits.deadline_ms = rules_limits(c->rules)->connect_s * 1000,
		.permit = on_permit,
		.fn = on_dialed,
		.arg = c,
	};

	c->dst = (struct ip_endpoint){ .port = t->port };
	c->way = (struct dial_way){ .parent = NULL };
	c->parent_status = 0;
	c->rules_changed = false;
	return dial_start(&config, &c->dial);
}

/*
 * App is read meanwhile, so that a program that has given up costs no dial.
 * An end of its stream means that, unless the protocol may be one in which a
 * client says all it has to say and then listens (TUN-10): in one that is dialled
 * at once, and behind a request for a tunnel where it has said something.
 */
void conn_on_dial_read(struct conn *c, bool end)
{
	if (!end)
		return;
	if (c->speech == SPEECH_OPAQUE && c->via == RECORD_VIA_TRANSPARENT)
		return;
	if (c->speech != SPEECH_TLS && c->ask->in.n)
		return;
	conn_finish(c, REASON_CLIENT_CLOSED, false);
}

void conn_dial(struct conn *c)
{
	/* Whoever was read goes on to be. */
	(void)!event_del(&c->ask->timer);
	conn_set_state(c, CONN_DIAL);
	if (half_watch(&c->app) || conn_dial_target(c))
		conn_refuse(c, REASON_MEMORY_EXCEEDED);
}

/* --- the tunnel ------------------------------------------------------------------- */

void conn_take_relay(struct conn *c)
{
	relay_bytes(c->relay, &c->bytes_up, &c->bytes_down);
	c->bytes_up += c->base_up;
	c->bytes_down += c->base_down;
	relay_free(c->relay);
	c->relay = NULL;
}

static void on_relayed(void *arg, enum reason why)
{
	struct conn *c = arg;

	REQUIRE(c->magic == CONN_MAGIC);
	conn_end(c, why);
}

void conn_start_relay(struct conn *c, struct str up, struct str down)
{
	const struct relay_config config = {
		.base = c->s->worker->base,
		.pool = c->s->worker->relay,
		.app = &c->app,
		.net = c->net,
		.account = &c->account,
		.turn = &c->s->turn,
		.memory = &c->s->memory,
		.up = up,
		.down = down,
		.fn = on_relayed,
		.arg = c,
	};

	enum reason why = quota_charge(&c->account, QUOTA_UP, up.n);

	if (why != REASON_ALLOWED) {
		conn_finish(c, why, true);
		return;
	}
	conn_set_state(c, CONN_RELAY);
	if (relay_start(&config, &c->relay)) {
		conn_finish(c, REASON_MEMORY_EXCEEDED, true);
		return;
	}
	conn_settle_down(c);
	worker_keep(c->s->worker);
	conn_watch_relay(c);
}

static void keep(struct conn *c)
{
	if (c->state != CONN_RELAY || c->kept)
		return;
	sock_keep_alive(c->net->fd);
	c->kept = true;
}

void conn_keep_alive(struct worker *w)
{
	struct list *s, *c, *tmp, *next;

	list_each(&w->sandboxes, s, tmp)
		list_each(&container_of(s, struct sandbox, node)->conns, c,
			  next)
			keep(container_of(c, struct conn, node));
}
