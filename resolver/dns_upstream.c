/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_upstream.c - one question to the configured servers, with c-ares
 *
 * Theory of operation
 * ===================
 * c-ares is the transport and nothing else: sockets, UDP with a fall-back to
 * TCP when an answer was cut, framing, the time-out of one attempt.  It is
 * given whole packets (ares_send()), one server, one try.  Which server is
 * asked, how often and for how long is decided here, as is what is believed.
 *
 * Against forged answers: the id, the case of each letter of the question
 * ("0x20") and the source port are random.  c-ares keeps one UDP socket open as
 * long as a channel has questions in flight and closes it when there are none;
 * so there is a pool of channels, a question goes to an idle one if there is
 * one, and a busy one whose socket has carried CHAN_WORN questions is left
 * alone until it is drained.  An answer with the right id that does not repeat
 * the question exactly, or is malformed, is not believed: the same server is
 * asked again over TCP, where the case need not be kept.
 *
 *   UDP attempt --answer--> done
 *     | not believed -> TCP attempt on the same server --answer--> done
 *     | time-out, error, SERVFAIL, REFUSED, ... -> the next server
 *   all servers tried, DNS_ROUNDS times, or too late -> done, with the last fault
 *
 * A server that timed out or could not be reached is asked after the others for
 * SERVER_REST_MS.
 *
 * c-ares calls back from inside ares_send(), ares_process_fd() and
 * ares_destroy().  The call-back only notes what came and puts its job on the
 * ready list; an event of our own takes it from there, with no c-ares frame
 * below it.
 *
 * Traps of c-ares 1.18.1 that shape this file: without ARES_FLAG_EDNS all UDP
 * answers over 512 bytes are asked again by TCP; with it, a FORMERR makes it
 * take the last 11 bytes off the packet, so a bare OPT must be last
 * (dns_ask_encode() sees to it).  ares_init_options() reads resolv.conf and the
 * host's name unless everything is given, and opens /dev/urandom for ids that
 * we do not use (it goes on without when that fails).
 */
#include "resolver/dns_upstream.h"

#include <ares.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"

#define CHANS_UDP_MAX	16
#define CHANS_TCP_MAX	4
#define CHAN_WORN	64	/* questions over one source port */
#define CHAN_FDS	4	/* c-ares opens at most two for one server */
#define SERVER_REST_MS	30000

#define CHAN_MAGIC	0x6368616eu
#define JOB_MAGIC	0x6a6f6221u

struct server {
	struct ip_endpoint at;
	int64_t rests_until_ms;
};

struct chan_fd {
	struct event ev;
	int fd;			/* -1: free */
};

struct chan {
	unsigned magic;
	struct list node;
	struct dns_upstream *up;
	ares_channel ares;
	struct event timer;
	struct chan_fd fd[CHAN_FDS];
	struct ip_endpoint server;
	bool tcp;
	unsigned pending;	/* questions whose call-back has not run */
	unsigned sent;		/* since it was last idle */
};

struct job {
	unsigned magic;
	struct list node;	/* on up->waiting or up->ready */
	struct dns_upstream *up;
	struct dns_name name;
	uint16_t type;
	dns_upstream_fn *fn;
	void *arg;
	int64_t start_ms;
	unsigned generation;	/* of the server list that @tried speaks of */
	unsigned tried;		/* servers of this round, as bits */
	unsigned round;
	unsigned server;	/* of the attempt that runs */
	bool tcp, bare;		/* how it is made */
	struct chan *chan;	/* NULL: no attempt runs */
	struct dns_ask ask;
	/* What the attempt brought, noted by the call-back. */
	int status;		/* ARES_... */
	int verdict;		/* of dns_answer_parse() */
	enum dns_outcome fault;	/* the last one */
	struct dns_answer answer;
};

struct dns_upstream {
	struct event_base *base;
	int attempt_ms, attempts_until_ms;
	struct server server[RESOLVER_SERVERS_MAX];
	unsigned nservers;
	unsigned generation;
	struct list chans;
	unsigned nchans[2];	/* by tcp */
	struct list waiting, ready;
	unsigned njobs;
	struct event run;	/* takes jobs off @ready */
	bool closing;
};

/* --- channels -------------------------------------------------------------- */

static void chan_rearm(struct chan *c)
{
	struct timeval tv, *next = ares_timeout(c->ares, NULL, &tv);

	if (next)
		event_add(&c->timer, next);
	else
		event_del(&c->timer);
}

static void chan_timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct chan *c = arg;

	(void)fd;
	(void)what;
	REQUIRE(c->magic == CHAN_MAGIC);
	ares_process_fd(c->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	chan_rearm(c);
}

static void chan_fd_cb(evutil_socket_t fd, short what, void *arg)
{
	struct chan *c = arg;

	REQUIRE(c->magic == CHAN_MAGIC);
	ares_process_fd(c->ares, what & EV_READ ? fd : ARES_SOCKET_BAD,
			what & EV_WRITE ? fd : ARES_SOCKET_BAD);
	chan_rearm(c);
}

static struct chan_fd *chan_fd_find(struct chan *c, int fd)
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
	struct chan *c = arg;
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
	if (!slot || event_assign(&slot->ev, c->up->base, fd,
				  what | EV_PERSIST, chan_fd_cb, c) != 0 ||
	    event_add(&slot->ev, NULL) != 0) {
		/* Unwatched, the attempt times out. */
		log_warn("dns: cannot watch an upstream socket");
		return;
	}
	slot->fd = fd;
}

static int chan_open(struct chan *c)
{
	static char lookups[] = "b";
	struct ares_options options = {
		.flags = ARES_FLAG_EDNS | ARES_FLAG_NOSEARCH |
			 ARES_FLAG_NOALIASES | ARES_FLAG_NOCHECKRESP |
			 (c->tcp ? ARES_FLAG_USEVC : 0),
		.timeout = c->up->attempt_ms, .tries = 1, .ndots = 1,
		.ednspsz = DNS_EDNS_SIZE, .lookups = lookups,
		.sock_state_cb = chan_socket_cb, .sock_state_cb_data = c,
	};
	/* No servers, domains or sort list: given, so not looked for. */
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
		   ARES_OPT_NDOTS | ARES_OPT_EDNSPSZ | ARES_OPT_LOOKUPS |
		   ARES_OPT_SOCK_STATE_CB | ARES_OPT_SERVERS |
		   ARES_OPT_DOMAINS | ARES_OPT_SORTLIST;
	int status = ares_init_options(&c->ares, &options, mask);

	if (status != ARES_SUCCESS)
		log_warn("dns: no channel: %s", ares_strerror(status));
	return status == ARES_SUCCESS ? 0 : -ENOMEM;
}

static struct chan *chan_new(struct dns_upstream *u, bool tcp)
{
	struct chan *c;

	if (u->nchans[tcp] == (tcp ? CHANS_TCP_MAX : CHANS_UDP_MAX))
		return NULL;
	c = mem_new(sizeof(*c));
	if (!c)
		return NULL;
	c->magic = CHAN_MAGIC;
	c->up = u;
	c->tcp = tcp;
	for (size_t i = 0; i < CHAN_FDS; i++)
		c->fd[i].fd = -1;
	if (evtimer_assign(&c->timer, u->base, chan_timer_cb, c) != 0 ||
	    chan_open(c) != 0) {
		mem_free(c);
		return NULL;
	}
	list_add(&u->chans, &c->node);
	u->nchans[tcp]++;
	return c;
}

static void chan_free(struct chan *c)
{
	ares_destroy(c->ares);	/* calls back for each question in flight */
	event_del(&c->timer);
	list_del(&c->node);
	c->magic = 0;
	mem_free(c);
}

/* An idle channel has no socket, and can be turned to another server. */
static int chan_aim(struct chan *c, const struct ip_endpoint *at)
{
	struct ares_addr_port_node node = {
		.family = at->addr.family == IP_V4 ? AF_INET : AF_INET6,
		.udp_port = at->port, .tcp_port = at->port,
	};

	c->sent = 0;
	if (c->server.port == at->port && ip_addr_eq(&c->server.addr, &at->addr))
		return 0;
	if (at->addr.family == IP_V4)
		memcpy(&node.addr.addr4, at->addr.b, 4);
	else
		memcpy(&node.addr.addr6, at->addr.b, 16);
	if (ares_set_servers_ports(c->ares, &node) != ARES_SUCCESS) {
		memset(&c->server, 0, sizeof(c->server));
		return -ENOMEM;
	}
	c->server = *at;
	return 0;
}

/* Of two busy channels the one whose use gives less away. */
static bool chan_is_better(const struct chan *a, const struct chan *b)
{
	bool a_worn = a->sent >= CHAN_WORN;

	if (!b || a_worn != (b->sent >= CHAN_WORN))
		return !b || !a_worn;
	return a->pending < b->pending;
}

/* Idle, else new, else the best one that is busy with the same server. */
static struct chan *chan_pick(struct dns_upstream *u,
			      const struct ip_endpoint *at, bool tcp)
{
	struct chan *idle = NULL, *busy = NULL;
	struct list *it, *tmp;

	list_each(&u->chans, it, tmp) {
		struct chan *c = container_of(it, struct chan, node);

		if (c->tcp != tcp)
			continue;
		if (c->pending == 0)
			idle = c;
		else if (c->server.port == at->port &&
			 ip_addr_eq(&c->server.addr, &at->addr) &&
			 chan_is_better(c, busy))
			busy = c;
	}
	if (!idle)
		idle = chan_new(u, tcp);
	if (idle && chan_aim(idle, at) == 0)
		return idle;
	return busy;
}

/* --- attempts -------------------------------------------------------------- */

static void job_ready(struct job *j)
{
	list_del(&j->node);
	list_add(&j->up->ready, &j->node);
	event_active(&j->up->run, EV_TIMEOUT, 0);
}

static void job_answer_cb(void *arg, int status, int timeouts,
			  unsigned char *p, int n)
{
	struct job *j = arg;

	(void)timeouts;
	REQUIRE(j->magic == JOB_MAGIC && j->chan);
	j->chan->pending--;
	j->chan = NULL;
	if (j->up->closing)
		return;
	j->status = status;
	dns_answer_done(&j->answer);
	if (status == ARES_SUCCESS)
		j->verdict = dns_answer_parse(p, (size_t)n, &j->ask, !j->tcp,
					      &j->answer);
	job_ready(j);
}

/* Not resting, not tried in this round, first in order; else any not tried. */
static bool server_pick(struct dns_upstream *u, unsigned tried, int64_t now_ms,
			unsigned *ret)
{
	bool found = false;

	for (unsigned i = 0; i < u->nservers; i++) {
		if (tried & BIT(i))
			continue;
		if (u->server[i].rests_until_ms <= now_ms) {
			*ret = i;
			return true;
		}
		if (!found)
			*ret = i;
		found = true;
	}
	return found;
}

/* The next server to ask; false when there is none or it is too late. */
static bool job_next_server(struct job *j)
{
	struct dns_upstream *u = j->up;
	int64_t now_ms = clock_mono_ms();

	if (j->generation != u->generation) {
		j->generation = u->generation;
		j->tried = 0;
	}
	if (now_ms - j->start_ms > u->attempts_until_ms)
		return false;
	if (!server_pick(u, j->tried, now_ms, &j->server)) {
		if (++j->round == DNS_ROUNDS)
			return false;
		j->tried = 0;
		if (!server_pick(u, 0, now_ms, &j->server))
			return false;
	}
	j->tried |= BIT(j->server);
	j->tcp = false;
	j->bare = false;
	return true;
}

/* Ask j->server; every end of it comes through job_answer_cb(). */
static bool job_send(struct job *j)
{
	struct dns_upstream *u = j->up;
	struct chan *c = chan_pick(u, &u->server[j->server].at, j->tcp);
	uint8_t dice[34];

	if (!c)
		return false;
	random_bytes(dice, sizeof(dice));
	dns_ask_encode(&j->name, j->type, dns_get16(dice), dice + 2, &j->ask);
	if (j->bare)
		dns_ask_strip(&j->ask);
	j->chan = c;
	c->pending++;
	c->sent++;
	list_del(&j->node);
	list_add(&u->waiting, &j->node);
	ares_send(c->ares, j->ask.p, j->ask.n, job_answer_cb, j);
	chan_rearm(c);
	return true;
}

static void job_free(struct job *j)
{
	dns_answer_done(&j->answer);
	j->magic = 0;
	mem_free(j);
}

static void job_end(struct job *j, enum dns_outcome outcome)
{
	list_del(&j->node);
	j->up->njobs--;
	j->fn(j->arg, outcome, outcome == DNS_ANSWERED ? &j->answer : NULL);
	job_free(j);
}

static void job_attempt(struct job *j)
{
	while (job_next_server(j)) {
		if (job_send(j))
			return;
	}
	job_end(j, j->fault);
}

static void server_rest(struct job *j, int64_t until_ms)
{
	if (j->generation == j->up->generation)
		j->up->server[j->server].rests_until_ms = until_ms;
}

/*
 * Is there another way to ask the same server?  TCP, when something came that
 * cannot be believed; without EDNS, when the server says it knows none (the
 * first time c-ares does that by itself, and then no more on that channel).
 */
static bool job_ask_otherwise(struct job *j)
{
	if (j->generation != j->up->generation)
		return false;
	if (j->verdict != 0 && !j->tcp) {
		j->tcp = true;
		return true;
	}
	if (j->verdict == 0 && j->answer.rcode == DNS_FORMERR && !j->bare) {
		j->bare = true;
		return true;
	}
	return false;
}

/* The attempt got an answer with our id: believe it? */
static void job_on_answer(struct job *j)
{
	if (j->verdict == -ELOOP) {
		job_end(j, DNS_LOOPED);
		return;
	}
	if (j->verdict == 0 && (j->answer.rcode == DNS_NOERROR ||
				j->answer.rcode == DNS_NXDOMAIN)) {
		server_rest(j, 0);
		job_end(j, DNS_ANSWERED);
		return;
	}
	j->fault = DNS_UNANSWERED;
	if (!job_ask_otherwise(j) || !job_send(j))
		job_attempt(j);
}

static void job_on_fault(struct job *j)
{
	j->fault = j->status == ARES_ETIMEOUT ? DNS_TIMED_OUT : DNS_UNANSWERED;
	server_rest(j, clock_mono_ms() + SERVER_REST_MS);
	job_attempt(j);
}

/* One turn for what is ready now; what becomes ready in it comes next turn. */
static void run_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_upstream *u = arg;
	struct list *last = u->ready.prev;

	(void)fd;
	(void)what;
	while (!list_empty(&u->ready)) {
		struct job *j = list_first(&u->ready, struct job, node);
		bool end = &j->node == last;

		if (j->tried == 0)
			job_attempt(j);		/* new */
		else if (j->status == ARES_SUCCESS)
			job_on_answer(j);
		else
			job_on_fault(j);
		if (end)
			break;
	}
	if (!list_empty(&u->ready))
		event_active(&u->run, EV_TIMEOUT, 0);
}

int dns_upstream_ask(struct dns_upstream *u, const struct dns_name *name,
		     uint16_t type, dns_upstream_fn *fn, void *arg)
{
	struct job *j;

	if (u->njobs == DNS_JOBS_MAX)
		return -EAGAIN;
	j = mem_new(sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->magic = JOB_MAGIC;
	j->up = u;
	j->name = *name;
	j->type = type;
	j->fn = fn;
	j->arg = arg;
	j->start_ms = clock_mono_ms();
	j->generation = u->generation;
	j->fault = DNS_UNANSWERED;
	list_init(&j->node);
	u->njobs++;
	job_ready(j);
	return 0;
}

/* --- the whole ------------------------------------------------------------- */

int dns_upstream_new(const struct dns_upstream_config *config,
		     struct dns_upstream **ret)
{
	struct dns_upstream *u = mem_new(sizeof(*u));

	if (!u)
		return -ENOMEM;
	u->base = config->base;
	u->attempt_ms = config->attempt_ms ? config->attempt_ms :
					     DNS_ATTEMPT_MS;
	u->attempts_until_ms = config->attempts_until_ms ?
		config->attempts_until_ms : DNS_ATTEMPTS_UNTIL_MS;
	list_init(&u->chans);
	list_init(&u->waiting);
	list_init(&u->ready);
	if (event_assign(&u->run, u->base, -1, 0, run_cb, u) != 0) {
		mem_free(u);
		return -ENOMEM;
	}
	*ret = u;
	return 0;
}

void dns_upstream_free(struct dns_upstream *u)
{
	struct list *jobs[2];

	if (!u)
		return;
	jobs[0] = &u->waiting;
	jobs[1] = &u->ready;
	u->closing = true;
	while (!list_empty(&u->chans))
		chan_free(list_first(&u->chans, struct chan, node));
	event_del(&u->run);
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++) {
		while (!list_empty(jobs[i])) {
			struct job *j = list_first(jobs[i], struct job, node);

			list_del(&j->node);
			job_free(j);
		}
	}
	mem_free(u);
}

void dns_upstream_set_servers(struct dns_upstream *u,
			      const struct ip_endpoint *server, size_t n)
{
	u->nservers = (unsigned)MIN(n, RESOLVER_SERVERS_MAX);
	for (unsigned i = 0; i < u->nservers; i++)
		u->server[i] = (struct server){ .at = server[i] };
	u->generation++;
}

size_t dns_upstream_sockets(const struct dns_upstream *u)
{
	struct list *it, *tmp;
	size_t n = 0;

	list_each(&u->chans, it, tmp) {
		struct chan *c = container_of(it, struct chan, node);

		for (size_t i = 0; i < CHAN_FDS; i++)
			n += c->fd[i].fd >= 0;
	}
	return n;
}
