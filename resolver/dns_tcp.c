/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_tcp.c - the stream side of a sandbox's door (RFC 7766)
 *
 * Theory
 * ======
 * A connection carries messages behind two bytes of length.  They may come
 * split anywhere or many in one segment; each is judged for itself, several
 * are worked on at once, and replies go back as they are ready.  What is read
 * ahead is bounded: with CONN_PENDING_MAX questions under way, or CONN_OUT_FULL
 * bytes that the client does not take, reading stops.
 *
 * What clients do not take is bounded for the door as a whole: beyond
 * DNS_TCP_OUT_MAX the connection that has the most goes.  The kernel would take
 * megabytes more for each, in memory of ours, and so is told how much it may.
 * Room that one long reply needed is given back when it has left.
 *
 * A client that shuts down its side still gets the replies it waits for; then
 * we close.  So does one that sends what is no question: from there on the
 * stream is not read.  A connection on which nothing is completed for
 * DNS_TCP_IDLE_MS is closed, unless questions are under way: those have a
 * deadline of their own.  When a client comes and there are DNS_CONNS_MAX, the
 * one that has been idle for longest goes (RFC 7766 6.2.3); the new one does
 * when all have work, and before that when its client has a quarter of them.
 *
 * All of it is done in the sandbox's turns, by the message: one that finds the
 * share used up leaves the rest where it stands, and comes back for it.
 *
 * conn_pump() does all the work and is the only place where a connection is
 * ended, so that nothing is freed below a caller that still holds it.
 */
#include <errno.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/mem_account.h"
#include "resolver/dns_door.h"
#include "resolver/dns_query.h"

#define CONN_MAGIC		0x74637021u
#define CONN_PENDING_MAX	32
#define CONN_OUT_FULL		(32u << 10)	/* reading stops */
#define CONN_OUT_MAX		(CONN_OUT_FULL + \
				 (CONN_PENDING_MAX + 1) * (2 + DNS_MSG_MAX))
#define CONN_READ		4096
#define CONN_KEPT		4096	/* of room that is not in use */
#define CONN_KERNEL		(32 << 10)	/* unsent or unread; it doubles it */
/* What one is charged beside @in and @out: itself, its socket, and what may
 * stand in that unsent and unread. */
#define CONN_MEMORY		((8u << 10) + 4 * CONN_KERNEL)
#define ACCEPTS_A_WAKE		16
#define ACCEPT_RETRY_MS		200

struct dns_conn {
	unsigned magic;
	struct list node;		/* on door->conns, by last work */
	struct dns_door *door;
	struct dns_due due;
	int fd;
	struct event rd, wr, idle;
	struct buf in, out;
	size_t counted;			/* of @out, in door->tcp_out */
	struct list queries;		/* struct dns_client.conn_node */
	unsigned pending;
	bool eof;			/* the client sends no more */
	bool deaf;			/* it sent what is no question */
	bool broken;			/* end it as soon as nobody is inside */
	bool pumping;
	struct ip_endpoint peer;
	struct ip_addr asked;
};

/* --- one connection -------------------------------------------------------- */

/* What waits for the client is not what it was. */
static void conn_count(struct dns_conn *c)
{
	c->door->tcp_out += c->out.n;
	c->door->tcp_out -= c->counted;
	c->counted = c->out.n;
}

/* Give back room of which little is in use. */
static void trim(struct buf *b)
{
	struct buf less = BUF_FOR(b->max, b->owner);

	if (b->cap <= CONN_KEPT || b->n > b->cap / 4 ||
	    buf_add(&less, b->p, b->n) != 0)
		return;
	buf_done(b);
	*b = less;
}

static void conn_end(struct dns_conn *c)
{
	struct list *it, *tmp;

	/* Its questions go on, are recorded, and find nobody to answer. */
	list_each(&c->queries, it, tmp) {
		struct dns_client *client =
			container_of(it, struct dns_client, conn_node);

		client->conn = NULL;
		list_del(&client->conn_node);
	}
	event_del(&c->rd);
	event_del(&c->wr);
	event_del(&c->idle);
	close(c->fd);
	buf_done(&c->in);
	buf_done(&c->out);
	conn_count(c);
	list_del(&c->node);
	list_del(&c->due.node);
	c->door->nconns--;
	c->magic = 0;
	mem_account_give(c->door->owner, CONN_MEMORY);
	mem_free(c);
}

static void conn_touch(struct dns_conn *c)
{
	int ms = c->door->tcp_idle_ms;
	const struct timeval idle = {
		.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000,
	};

	if (event_add(&c->idle, &idle) != 0)
		c->broken = true;
	list_del(&c->node);
	list_add(&c->door->conns, &c->node);
}

static bool conn_has_room(const struct dns_conn *c)
{
	return c->pending < CONN_PENDING_MAX && c->out.n < CONN_OUT_FULL;
}

/* Does it wait for its turn? */
static bool conn_is_late(const struct dns_conn *c)
{
	return !list_empty(&c->due.node);
}

/* Length of the first whole message at @p with its prefix, or 0. */
static size_t whole_message(const char *p, size_t n)
{
	size_t size;

	if (n < 2)
		return 0;
	size = 2 + (size_t)dns_get16((const uint8_t *)p);
	return size <= n ? size : 0;
}

static void conn_take_message(struct dns_conn *c, const char *p, size_t size)
{
	struct dns_client client = {
		.tcp = true, .src = c->peer, .asked = c->asked, .conn = c,
	};

	list_init(&client.conn_node);
	c->pending++;
	conn_touch(c);
	if (dns_door_turns_down(c->door, (const uint8_t *)p + 2, size - 2,
				&client))
		return;
	/* What gets no answer breaks the stream's purpose: it ends here. */
	if (!dns_query_start(c->door, (const uint8_t *)p + 2, size - 2,
			     &client)) {
		c->pending--;
		c->deaf = true;
	}
}

static void conn_take_messages(struct dns_conn *c)
{
	size_t at = 0, size;

	while (!c->broken && !c->deaf && conn_has_room(c) &&
	       (size = whole_message(c->in.p + at, c->in.n - at)) > 0) {
		if (!dns_door_spend(c->door, 0)) {
			dns_door_due(c->door, &c->due);
			break;
		}
		(void)dns_door_spend(c->door, 1);
		conn_take_message(c, c->in.p + at, size);
		at += size;
	}
	if (c->deaf)
		at = c->in.n;
	if (at) {
		buf_consume(&c->in, at);
		trim(&c->in);
	}
}

static void conn_write(struct dns_conn *c)
{
	ssize_t n;

	if (c->out.n == 0)
		return;
	n = send(c->fd, c->out.p, c->out.n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n > 0) {
		buf_consume(&c->out, (size_t)n);
		trim(&c->out);
		conn_count(c);
	} else if (errno != EAGAIN && errno != EINTR) {
		c->broken = true;
	}
	if (c->out.n == 0)
		conn_touch(c);
}

static bool conn_is_done(const struct dns_conn *c)
{
	return c->broken ||
	       ((c->eof || c->deaf) && c->pending == 0 && c->out.n == 0 &&
		whole_message(c->in.p, c->in.n) == 0);
}

static void conn_watch(struct dns_conn *c)
{
	bool read = !c->door->frozen && !c->eof && !c->deaf &&
		    conn_has_room(c) &&
		    whole_message(c->in.p, c->in.n) == 0;

	if ((read ? event_add(&c->rd, NULL) : event_del(&c->rd)) != 0 ||
	    (c->out.n ? event_add(&c->wr, NULL) : event_del(&c->wr)) != 0)
		c->broken = true;
}

/* Work off what is there; ends the connection when that is due. */
static void conn_pump(struct dns_conn *c)
{
	c->pumping = true;
	do {
		conn_take_messages(c);
		conn_write(c);
	} while (!c->broken && conn_has_room(c) && !conn_is_late(c) &&
		 whole_message(c->in.p, c->in.n) > 0);
	if (!conn_is_done(c))
		conn_watch(c);
	c->pumping = false;
	if (conn_is_done(c))
		conn_end(c);
}

/* Until there is room for what @c is to be told; it may be the one that goes. */
static void make_out_room(struct dns_conn *c, size_t n)
{
	struct dns_door *d = c->door;

	while (!c->broken && d->tcp_out + n > DNS_TCP_OUT_MAX) {
		struct dns_conn *most = c;
		struct list *it, *tmp;

		list_each(&d->conns, it, tmp) {
			struct dns_conn *other =
				container_of(it, struct dns_conn, node);

			if (other->out.n > most->out.n)
				most = other;
		}
		if (most == c)
			c->broken = true;
		else
			conn_end(most);
	}
}

void dns_conn_reply(struct dns_conn *c, struct list *conn_node,
		    const uint8_t *p, size_t n)
{
	uint8_t prefix[2];

	REQUIRE(c->magic == CONN_MAGIC && c->pending > 0);
	list_del(conn_node);
	c->pending--;
	dns_put16(prefix, (uint16_t)n);
	make_out_room(c, sizeof(prefix) + n);
	if (c->broken || buf_reserve(&c->out, sizeof(prefix) + n) != 0 ||
	    buf_add(&c->out, prefix, sizeof(prefix)) != 0 ||
	    buf_add(&c->out, p, n) != 0)
		c->broken = true;
	conn_count(c);
	if (!c->pumping)
		conn_pump(c);
}

void dns_conn_wait(struct dns_conn *c, struct list *conn_node)
{
	list_add(&c->queries, conn_node);
}

static void conn_read(struct dns_conn *c)
{
	size_t room = MIN(CONN_READ, c->in.max - c->in.n);
	ssize_t n;

	if (buf_reserve(&c->in, room) != 0) {
		c->broken = true;
	} else {
		n = recv(c->fd, c->in.p + c->in.n, room, MSG_DONTWAIT);
		if (n > 0)
			c->in.n += (size_t)n;
		else if (n == 0)
			c->eof = true;
		else if (errno != EAGAIN && errno != EINTR)
			c->broken = true;
	}
}

/* What was left of the last time comes before anything new. */
static void conn_on_turn(struct dns_due *due)
{
	struct dns_conn *c = container_of(due, struct dns_conn, due);

	REQUIRE(c->magic == CONN_MAGIC);
	(void)dns_door_spend(c->door, 1);
	if (!c->eof && !c->deaf && conn_has_room(c) &&
	    whole_message(c->in.p, c->in.n) == 0)
		conn_read(c);
	conn_pump(c);
}

static void conn_rd_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_conn *c = arg;

	(void)fd;
	(void)what;
	REQUIRE(c->magic == CONN_MAGIC);
	dns_door_due(c->door, &c->due);
}

static void conn_wr_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_conn *c = arg;

	(void)fd;
	(void)what;
	REQUIRE(c->magic == CONN_MAGIC);
	conn_pump(c);
}

static void conn_idle_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_conn *c = arg;

	(void)fd;
	(void)what;
	REQUIRE(c->magic == CONN_MAGIC);
	if (c->pending > 0 || conn_is_late(c))
		conn_touch(c);
	else
		c->broken = true;
	conn_pump(c);
}

/* --- accepting ------------------------------------------------------------- */

static int local_address(int fd, struct ip_addr *ret)
{
	struct sockaddr_storage ss;
	struct ip_endpoint at;
	socklen_t n = sizeof(ss);

	if (getsockname(fd, (struct sockaddr *)&ss, &n) != 0 ||
	    ip_endpoint_from_sockaddr((struct sockaddr *)&ss, n, &at) != 0)
		return -EINVAL;
	*ret = at.addr;
	return 0;
}

static int conn_new(struct dns_door *d, int fd,
		    const struct sockaddr_storage *peer, socklen_t peer_n)
{
	struct dns_conn *c = mem_new(sizeof(*c));
	int on = 1, most = CONN_KERNEL;

	if (!c)
		return -ENOMEM;
	c->magic = CONN_MAGIC;
	c->door = d;
	c->in = BUF_FOR(2 + DNS_MSG_MAX, d->owner);
	c->out = BUF_FOR(CONN_OUT_MAX, d->owner);
	list_init(&c->queries);
	list_init(&c->due.node);
	c->due.fn = conn_on_turn;
	if (ip_endpoint_from_sockaddr((const struct sockaddr *)peer, peer_n,
				      &c->peer) != 0 ||
	    local_address(fd, &c->asked) != 0 ||
	    event_assign(&c->rd, d->base, fd, EV_READ | EV_PERSIST, conn_rd_cb,
			 c) != 0 ||
	    event_assign(&c->wr, d->base, fd, EV_WRITE | EV_PERSIST, conn_wr_cb,
			 c) != 0 ||
	    evtimer_assign(&c->idle, d->base, conn_idle_cb, c) != 0) {
		mem_free(c);
		return -ENOMEM;
	}
	if (mem_account_take(d->owner, CONN_MEMORY) != REASON_ALLOWED) {
		mem_free(c);
		return -ENOMEM;
	}
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &most, sizeof(most));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &most, sizeof(most));
	c->fd = fd;
	list_add(&d->conns, &c->node);
	d->nconns++;
	conn_touch(c);
	conn_pump(c);		/* watches it */
	return 0;
}

/* Nothing to do, and nothing has come that was not read yet. */
static bool conn_is_idle(const struct dns_conn *c)
{
	char byte;

	return c->pending == 0 && c->out.n == 0 && c->in.n == 0 &&
	       recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN;
}

/*
 * When most are taken, a client that has a quarter of them gets no more: work
 * is easily made, and with all of them at work nobody else would be let in.
 * On loopback clients cannot be told apart.
 */
static bool has_its_share(const struct dns_door *d, const struct ip_addr *src)
{
	struct ip_net who = ip_net_of_machine(src);
	struct list *it, *tmp;
	unsigned n = 0;

	if (!d->share || d->nconns < DNS_CONNS_MAX / 4 * 3 ||
	    ip_classify(&who.addr) == IP_LOOPBACK)
		return false;
	list_each(&d->conns, it, tmp) {
		struct dns_conn *c = container_of(it, struct dns_conn, node);
		struct ip_addr peer = ip_addr_unmapped(&c->peer.addr);

		n += ip_net_has(&who, &peer);
	}
	return n >= DNS_CONNS_MAX / 4;
}

/* Room for one more, at the cost of the one that has been idle for longest. */
static bool make_room(struct dns_door *d)
{
	struct list *it, *tmp;

	if (d->nconns < DNS_CONNS_MAX)
		return true;
	list_each(&d->conns, it, tmp) {
		struct dns_conn *c = container_of(it, struct dns_conn, node);

		if (conn_is_idle(c)) {
			conn_end(c);
			return true;
		}
	}
	return false;
}

/* Whoever may not ask, or has enough, is reset, not even heard. */
static bool is_unwelcome(const struct dns_tcp *t, int fd,
			 const struct sockaddr_storage *peer, socklen_t n)
{
	static const struct linger reset = { .l_onoff = 1, .l_linger = 0 };
	struct ip_endpoint src;

	if (ip_endpoint_from_sockaddr((const struct sockaddr *)peer, n,
				      &src) != 0 ||
	    (dns_door_admits(t->door, &src, t->fd, true) &&
	     !has_its_share(t->door, &src.addr)))
		return false;
	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	return true;
}

/* Return: false when there is nobody more to accept now */
static bool accept_one(struct dns_tcp *t)
{
	static const struct timeval later = {
		.tv_usec = ACCEPT_RETRY_MS * 1000,
	};
	struct sockaddr_storage peer;
	socklen_t n = sizeof(peer);
	CLEANUP(fd_closep) int fd = accept4(t->fd, (struct sockaddr *)&peer,
					    &n, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
		    errno == ENOBUFS) {
			/* It stays readable: look away for a moment. */
			event_del(&t->ev);
			event_add(&t->retry, &later);
		}
		return false;
	}
	if (fd_is_reserved(fd) || is_unwelcome(t, fd, &peer, n))
		return true;
	/* Over the bound it is closed at once: the client sees an end. */
	if (make_room(t->door) &&
	    conn_new(t->door, fd, &peer, n) == 0)
		(void)fd_take(&fd);
	return true;
}

static void tcp_on_turn(struct dns_due *due)
{
	struct dns_tcp *t = container_of(due, struct dns_tcp, due);

	for (int i = 0; i < ACCEPTS_A_WAKE && accept_one(t); i++) {
		if (!dns_door_spend(t->door, DNS_COST_ACCEPT))
			break;
	}
}

static void tcp_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_tcp *t = arg;

	(void)fd;
	(void)what;
	REQUIRE(t->door->magic == DNS_DOOR_MAGIC);
	dns_door_due(t->door, &t->due);
}

static void tcp_retry_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_tcp *t = arg;

	(void)fd;
	(void)what;
	REQUIRE(t->door->magic == DNS_DOOR_MAGIC);
	if (event_add(&t->ev, NULL) != 0)
		log_error("dns: the TCP door is shut: no memory");
}

void dns_conn_end_all(struct dns_door *d)
{
	while (!list_empty(&d->conns))
		conn_end(list_first(&d->conns, struct dns_conn, node));
}

int dns_tcp_open(struct dns_door *d, int fd)
{
	struct dns_tcp *t = &d->tcp[d->ntcp];

	t->door = d;
	t->fd = fd;
	list_init(&t->due.node);
	t->due.fn = tcp_on_turn;
	if (event_assign(&t->ev, d->base, fd, EV_READ | EV_PERSIST, tcp_cb,
			 t) != 0 ||
	    evtimer_assign(&t->retry, d->base, tcp_retry_cb, t) != 0 ||
	    event_add(&t->ev, NULL) != 0)
		return -ENOMEM;
	d->ntcp++;
	return 0;
}

void dns_tcp_close(struct dns_tcp *t)
{
	event_del(&t->ev);
	event_del(&t->retry);
	list_del(&t->due.node);
	close(t->fd);
}

int dns_tcp_watch(struct dns_tcp *t)
{
	if (!t->door->frozen)
		return event_add(&t->ev, NULL);
	return event_del(&t->ev) | event_del(&t->retry);
}

void dns_conn_watch_all(struct dns_door *d)
{
	struct list *it, *tmp;

	list_each(&d->conns, it, tmp)
		conn_watch(container_of(it, struct dns_conn, node));
}

void dns_conn_end_waiting(struct dns_door *d)
{
	struct list *it, *tmp;

	list_each(&d->conns, it, tmp) {
		struct dns_conn *c = container_of(it, struct dns_conn, node);

		if (c->pending > 0)
			conn_end(c);
	}
}
