/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_chan.c - packets to servers by UDP and TCP, through a pool of channels
 *
 * Theory of operation
 * ===================
 * c-ares is the transport and nothing else: sockets, UDP with a fall-back to
 * TCP when an answer was cut, framing, the time-out of one attempt.  It is
 * given whole packets (ares_send()), one server, one try.
 *
 * Against forged answers the id, the case of each letter and the source port
 * are random.  c-ares keeps one UDP socket open as long as a channel has
 * questions in flight and closes it when there are none.  So there is a pool of
 * channels: a question goes to an idle one if there is one, whose port is then
 * new; and a busy one that has carried DNS_CHAN_WORN questions takes no more
 * until it is drained, so that no load keeps a port open.  When all are worn,
 * questions wait.
 *
 *	idle --send--> busy --send...--> worn
 *	  ^             |                  |
 *	  +--drained----+------------------+	(socket closed, port forgotten)
 *
 * c-ares calls back from inside ares_send(), ares_process_fd() and
 * ares_destroy(); what is called here only notes.
 *
 * Traps of c-ares 1.18.1 that shape this file: without ARES_FLAG_EDNS all UDP
 * answers over 512 bytes are asked again by TCP; with it, a FORMERR makes it
 * take the last 11 bytes off the packet, so a bare OPT must be last
 * (dns_ask_encode() sees to it), and clears the flag for the whole channel,
 * whatever server it is turned to later.  ares_init_options() reads resolv.conf
 * and the host's name unless everything is given, and opens /dev/urandom for
 * ids that we do not use (it goes on without when that fails).  The second is
 * why a channel is not made for each question, the first why it is made anew
 * after CHAN_RENEW of them.
 */
#include "resolver/dns_chan.h"

#include <ares.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/time.h>

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"

#define CHAN_FDS	4	/* c-ares opens at most two for one server */
#define CHAN_RENEW	1024	/* questions over one channel */
#define CHAN_MAGIC	0x6368616eu

struct chan_fd {
	struct event ev;
	int fd;			/* -1: free */
};

struct dns_chan {
	unsigned magic;
	struct list node;
	struct dns_chans *pool;
	ares_channel ares;
	struct event timer;
	struct chan_fd fd[CHAN_FDS];
	struct resolver_server server;
	bool tcp;
	unsigned pending;	/* questions whose call-back has not run */
	unsigned sent;		/* since it was last idle */
	unsigned total;
};

struct dns_chans {
	struct event_base *base;
	int attempt_ms;
	struct list all;
	unsigned n[2];		/* by tcp */
};

/* --- events ---------------------------------------------------------------- */

static void chan_rearm(struct dns_chan *c)
{
	struct timeval tv, *next = ares_timeout(c->ares, NULL, &tv);

	if (next)
		event_add(&c->timer, next);
	else
		event_del(&c->timer);
}

static void chan_timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_chan *c = arg;

	(void)fd;
	(void)what;
	REQUIRE(c->magic == CHAN_MAGIC);
	ares_process_fd(c->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	chan_rearm(c);
}

static void chan_fd_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_chan *c = arg;

	REQUIRE(c->magic == CHAN_MAGIC);
	ares_process_fd(c->ares, what & EV_READ ? fd : ARES_SOCKET_BAD,
			what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	chan_rearm(c);
}

static struct chan_fd *chan_fd_find(struct dns_chan *c, int fd)
{
	for (size_t i = 0; i < CHAN_FDS; i++) {
		if (c->fd[i].fd == fd)
			return &c->fd[i];
	}
	return NULL;
}

/* c-ares opened, wants something else of, or is about to close a socket. */
static void chan_socket_cb(void *arg, ares_socket_t fd, int readable,
			   int writable)
{
	struct dns_chan *c = arg;
	struct chan_fd *slot = chan_fd_find(c, fd);
	short what = (short)((readable ? EV_READ : 0) |
			     (writable ? EV_WRITE : 0));

	REQUIRE(c->magic == CHAN_MAGIC);
	if (slot) {
		event_del(&slot->ev);
		slot->fd = -1;
	}
	if (!what)
		return;
	slot = chan_fd_find(c, -1);
	if (!slot || event_assign(&slot->ev, c->pool->base, fd,
				  what | EV_PERSIST, chan_fd_cb, c) != 0 ||
	    event_add(&slot->ev, NULL) != 0) {
		/* Unwatched, the attempt times out. */
		log_warn("dns: cannot watch an upstream socket");
		return;
	}
	slot->fd = fd;
}

/* Before a socket is connected: a link-local server is behind one interface. */
static int chan_configure_cb(ares_socket_t fd, int type, void *arg)
{
	const struct dns_chan *c = arg;

	(void)type;
	REQUIRE(c->magic == CHAN_MAGIC);
	return dns_zone_bind(fd, c->server.zone) == 0 ? 0 : -1;
}

/* --- the pool -------------------------------------------------------------- */

static int chan_open(struct dns_chan *c)
{
	static char lookups[] = "b";
	struct ares_options options = {
		.flags = ARES_FLAG_EDNS | ARES_FLAG_NOSEARCH |
			 ARES_FLAG_NOALIASES | ARES_FLAG_NOCHECKRESP |
			 (c->tcp ? ARES_FLAG_USEVC : 0),
		.timeout = c->pool->attempt_ms, .tries = 1, .ndots = 1,
		.ednspsz = DNS_EDNS_SIZE, .lookups = lookups,
		.sock_state_cb = chan_socket_cb, .sock_state_cb_data = c,
	};
	/* No servers, domains or sort list: given, so not looked for. */
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
		   ARES_OPT_NDOTS | ARES_OPT_EDNSPSZ | ARES_OPT_LOOKUPS |
		   ARES_OPT_SOCK_STATE_CB | ARES_OPT_SERVERS |
		   ARES_OPT_DOMAINS | ARES_OPT_SORTLIST;
	int status = ares_init_options(&c->ares, &options, mask);

	if (status != ARES_SUCCESS) {
		log_warn("dns: no channel: %s", ares_strerror(status));
		return -ENOMEM;
	}
	ares_set_socket_configure_callback(c->ares, chan_configure_cb, c);
	return 0;
}

static struct dns_chan *chan_new(struct dns_chans *pool, bool tcp)
{
	struct dns_chan *c;

	if (pool->n[tcp] == (tcp ? DNS_CHANS_TCP_MAX : DNS_CHANS_UDP_MAX))
		return NULL;
	c = mem_new(sizeof(*c));
	if (!c)
		return NULL;
	c->magic = CHAN_MAGIC;
	c->pool = pool;
	c->tcp = tcp;
	for (size_t i = 0; i < CHAN_FDS; i++)
		c->fd[i].fd = -1;
	if (evtimer_assign(&c->timer, pool->base, chan_timer_cb, c) != 0 ||
	    chan_open(c) != 0) {
		mem_free(c);
		return NULL;
	}
	list_add(&pool->all, &c->node);
	pool->n[tcp]++;
	return c;
}

static void chan_free(struct dns_chan *c)
{
	ares_destroy(c->ares);	/* calls back for each question in flight */
	event_del(&c->timer);
	list_del(&c->node);
	c->pool->n[c->tcp]--;
	c->magic = 0;
	mem_free(c);
}

static bool chan_is_for(const struct dns_chan *c,
			const struct resolver_server *s)
{
	return c->server.at.port == s->at.port &&
	       ip_addr_eq(&c->server.at.addr, &s->at.addr) &&
	       strcmp(c->server.zone, s->zone) == 0;
}

/* An idle channel has no socket, and can be turned to another server. */
static int chan_aim(struct dns_chan *c, const struct resolver_server *s)
{
	const struct ip_endpoint *at = &s->at;
	struct ares_addr_port_node node = {
		.family = at->addr.family == IP_V4 ? AF_INET : AF_INET6,
		.udp_port = at->port, .tcp_port = at->port,
	};

	c->sent = 0;
	if (chan_is_for(c, s))
		return 0;
	if (at->addr.family == IP_V4)
		memcpy(&node.addr.addr4, at->addr.b, 4);
	else
		memcpy(&node.addr.addr6, at->addr.b, 16);
	if (ares_set_servers_ports(c->ares, &node) != ARES_SUCCESS) {
		memset(&c->server, 0, sizeof(c->server));
		return -ENOMEM;
	}
	c->server = *s;
	return 0;
}

/* TCP takes any number: there a port is no secret that wears out. */
static bool chan_has_room(const struct dns_chan *c,
			  const struct resolver_server *s)
{
	return chan_is_for(c, s) && (c->tcp || c->sent < DNS_CHAN_WORN);
}

/* Idle, else new, else the least busy one that has room for this server. */
static struct dns_chan *chan_pick(struct dns_chans *pool,
				  const struct resolver_server *s, bool tcp)
{
	struct dns_chan *idle = NULL, *busy = NULL;
	struct list *it, *tmp;

	list_each(&pool->all, it, tmp) {
		struct dns_chan *c = container_of(it, struct dns_chan, node);

		if (c->tcp != tcp)
			continue;
		if (c->pending == 0 && c->total >= CHAN_RENEW)
			chan_free(c);
		else if (c->pending == 0)
			idle = c;
		else if (chan_has_room(c, s) &&
			 (!busy || c->pending < busy->pending))
			busy = c;
	}
	/* Questions to one server share a TCP connection. */
	if (tcp && busy)
		return busy;
	if (!idle)
		idle = chan_new(pool, tcp);
	if (idle && chan_aim(idle, s) == 0)
		return idle;
	return busy;
}

/* --- packets --------------------------------------------------------------- */

static void chan_answer_cb(void *arg, int status, int timeouts,
			   unsigned char *p, int n)
{
	struct dns_chan_ask *slot = arg;
	struct dns_chan *c = slot->chan;

	(void)timeouts;
	REQUIRE(c && c->magic == CHAN_MAGIC);
	c->pending--;
	slot->chan = NULL;
	if (status == ARES_SUCCESS)
		slot->fn(slot->arg, DNS_SENT_HEARD, p, (size_t)n);
	else
		slot->fn(slot->arg, status == ARES_ETIMEOUT ?
			 DNS_SENT_TIMEOUT : DNS_SENT_FAILED, NULL, 0);
}

int dns_chans_send(struct dns_chans *pool,
		   const struct resolver_server *server, bool tcp,
		   const struct dns_ask *ask, struct dns_chan_ask *slot)
{
	struct dns_chan *c = chan_pick(pool, server, tcp);

	if (!c)
		return -EAGAIN;
	slot->chan = c;
	c->pending++;
	c->sent++;
	c->total++;
	ares_send(c->ares, ask->p, ask->n, chan_answer_cb, slot);
	chan_rearm(c);
	return 0;
}

/* --- the whole ------------------------------------------------------------- */

int dns_chans_new(struct event_base *base, int attempt_ms,
		  struct dns_chans **ret)
{
	struct dns_chans *pool = mem_new(sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pool->base = base;
	pool->attempt_ms = attempt_ms;
	list_init(&pool->all);
	*ret = pool;
	return 0;
}

void dns_chans_free(struct dns_chans *pool)
{
	if (!pool)
		return;
	while (!list_empty(&pool->all))
		chan_free(list_first(&pool->all, struct dns_chan, node));
	mem_free(pool);
}

size_t dns_chans_sockets(const struct dns_chans *pool)
{
	struct list *it, *tmp;
	size_t n = 0;

	list_each(&pool->all, it, tmp) {
		struct dns_chan *c = container_of(it, struct dns_chan, node);

		for (size_t i = 0; i < CHAN_FDS; i++)
			n += c->fd[i].fd >= 0;
	}
	return n;
}
