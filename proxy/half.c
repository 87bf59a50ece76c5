/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.c - one socket of a flow, as the loop sees it
 *
 * Theory of operation
 * ===================
 *
 * Each change of what the kernel watches is a system call, and where entering
 * the kernel is dear those calls were a tenth of a new tunnel.  So a socket is
 * watched once, edge-triggered and for everything, from its connect() or
 * accept() to its close(), whoever owns it meanwhile; what was said of it is
 * remembered here instead of asked again:
 *
 *	readable, writable	said by an edge; taken back by a call that finds
 *				the socket empty, or full
 *	ending			the peer's FIN is in, or an error: a short read
 *				has then not emptied the socket, since its end
 *				is still to be read, and no edge will tell of it
 *
 * Whoever does not want to read now just does not: nothing is reported twice,
 * so nothing has to be taken out of the loop either, whether a reader is slow,
 * a rate has no room or the sandbox has to wait for its turn.  Only where bytes
 * keep coming meanwhile, each of which is an edge, it is worth a call to be
 * told of them no more (half_mute()).  Whoever takes a
 * half over looks at the flags first, or asks to be called (half_kick()).
 *
 * This set of the kernel's is our own, and the loop's (libevent's) has one
 * descriptor of it: the loop's own events have no place for an error beside
 * bytes, which a reader of edges must know of, take 128 bytes each, and want a
 * system call to be removed before their descriptor is closed.
 *
 *	socket --edge--> our epoll --readable--> the loop's epoll --> loop_cb()
 *
 * A closed socket leaves the set by itself, if nobody else has a duplicate of it.
 * So that what is said of a duplicate, or was said of one that is closed by now,
 * reaches nobody, an edge bears descriptor and serial number, and counts where
 * both are those of a half that is watched.
 */
#include "proxy/half.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "proxy/sock.h"

/*
 * Edges that are asked for at once; where as many as HALF_BUSY came more are
 * likely to be there by now, and asking again spares the way round the loop.
 * After HALF_TURN the others that it serves have their turn.
 */
#define HALF_EDGES	64
#define HALF_BUSY	4
#define HALF_TURN	128
/* What is heard of a socket. */
#define HALF_HEARS	(EPOLLOUT | EPOLLRDHUP | EPOLLET)
#define HALF_TABLE_MIN	64

struct half_loop {
	int epoll_fd;
	struct event *ready, *kick;
	struct list kicked;		/* struct half.kicked */
	struct half **at;		/* by descriptor: who is watched */
	size_t nat;
	size_t nwatched;
	uint32_t serial;		/* the last one that was given */
};

/* --- the set -------------------------------------------------------------------- */

static void half_note(struct half *h, uint32_t edge)
{
	h->failed |= (edge & (EPOLLERR | EPOLLHUP)) != 0;
	h->ending |= h->failed || (edge & EPOLLRDHUP);
	h->readable |= h->ending || (edge & EPOLLIN);
	h->writable |= h->failed || (edge & EPOLLOUT);
}

static struct half *loop_find(const struct half_loop *l, uint64_t key)
{
	size_t fd = (uint32_t)key;
	struct half *h = fd < l->nat ? l->at[fd] : NULL;

	return h && h->serial == (uint32_t)(key >> 32) ? h : NULL;
}

/* Return: how many edges there were. */
static int loop_look(struct half_loop *l)
{
	struct epoll_event edge[HALF_EDGES];
	int n = epoll_wait(l->epoll_fd, edge, HALF_EDGES, 0);

	for (int i = 0; i < n; i++) {
		struct half *h = loop_find(l, edge[i].data.u64);

		if (!h)
			continue;
		half_note(h, edge[i].events);
		h->fn(h->arg);
	}
	return n;
}

static void loop_cb(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	int n, served = 0;

	do {
		n = loop_look(arg);
		served += n;
	} while (n >= HALF_BUSY && served < HALF_TURN);
}

/* Those that are kicked meanwhile wait for the next time. */
static void kick_cb(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct half_loop *l = arg;
	const struct list *last = l->kicked.prev;
	bool more = !list_empty(&l->kicked);

	while (more && !list_empty(&l->kicked)) {
		struct half *h = list_first(&l->kicked, struct half, kicked);

		more = &h->kicked != last;
		list_del(&h->kicked);
		h->fn(h->arg);
	}
}

int half_loop_new(struct event_base *base, struct half_loop **ret)
{
	struct half_loop *l = mem_new(sizeof(*l));
	int err = 0;

	if (!l)
		return -ENOMEM;
	list_init(&l->kicked);
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0)
		err = -errno;
	if (err == 0) {
		l->kick = event_new(base, -1, 0, kick_cb, l);
		l->ready = event_new(base, l->epoll_fd, EV_READ | EV_PERSIST,
				     loop_cb, l);
		if (!l->kick || !l->ready || event_add(l->ready, NULL))
			err = -ENOMEM;
	}
	if (err < 0) {
		half_loop_free(l);
		return err;
	}
	*ret = l;
	return 0;
}

void half_loop_free(struct half_loop *l)
{
	if (!l)
		return;
	REQUIRE(l->nwatched == 0);
	if (l->ready)
		event_free(l->ready);
	if (l->kick)
		event_free(l->kick);
	fd_closep(&l->epoll_fd);
	mem_free(l->at);
	mem_free(l);
}

/* --- one of them ------------------------------------------------------------------ */

void half_ignore(void *arg UNUSED)
{
}

void half_init(struct half *h, struct half_loop *l, int fd, half_fn *fn,
	       void *arg)
{
	*h = (struct half){ .fd = fd, .loop = l, .fn = fn, .arg = arg };
	list_init(&h->kicked);
}

static int loop_make_room(struct half_loop *l, size_t fd)
{
	size_t n = MAX(l->nat, (size_t)HALF_TABLE_MIN);
	struct half **at;

	if (fd < l->nat)
		return 0;
	while (n <= fd)
		n *= 2;
	at = mem_grow(l->at, n, sizeof(*at));
	if (!at)
		return -ENOMEM;
	memset(at + l->nat, 0, (n - l->nat) * sizeof(*at));
	l->at = at;
	l->nat = n;
	return 0;
}

static int half_ctl(struct half *h, int what, uint32_t more)
{
	struct epoll_event edge = {
		.events = HALF_HEARS | more,
		.data.u64 = (uint64_t)h->serial << 32 | (uint32_t)h->fd,
	};

	return epoll_ctl(h->loop->epoll_fd, what, h->fd, &edge);
}

int half_watch(struct half *h)
{
	struct half_loop *l = h->loop;

	if (h->watched)
		return 0;
	if (loop_make_room(l, (size_t)h->fd) < 0)
		return -ENOMEM;
	h->serial = ++l->serial;
	if (half_ctl(h, EPOLL_CTL_ADD, EPOLLIN) == -1)
		return -ENOMEM;
	l->at[h->fd] = h;
	l->nwatched++;
	h->watched = true;
	return 0;
}

/* Nothing that is said of it from now on, or was and is on its way, counts. */
static void half_forget(struct half *h)
{
	list_del(&h->kicked);
	if (!h->watched)
		return;
	h->loop->at[h->fd] = NULL;
	h->loop->nwatched--;
	h->watched = h->muted = h->readable = h->writable = false;
	h->ending = h->failed = false;
}

void half_rest(struct half *h)
{
	if (h->watched)
		(void)!epoll_ctl(h->loop->epoll_fd, EPOLL_CTL_DEL, h->fd, NULL);
	half_forget(h);
}

void half_mute(struct half *h)
{
	if (h->watched && !h->muted)
		h->muted = half_ctl(h, EPOLL_CTL_MOD, 0) == 0;
}

void half_unmute(struct half *h)
{
	/* It tells at once of what is there. */
	if (h->muted)
		h->muted = half_ctl(h, EPOLL_CTL_MOD, EPOLLIN) != 0;
}

void half_kick(struct half *h)
{
	if (!list_empty(&h->kicked))
		return;
	list_add(&h->loop->kicked, &h->kicked);
	event_active(h->loop->kick, 0, 0);
}

int half_take(struct half *h)
{
	half_rest(h);
	return fd_take(&h->fd);
}

void half_close(struct half *h, bool reset)
{
	half_forget(h);
	if (reset)
		sock_reset(&h->fd);
	else
		fd_closep(&h->fd);
}

struct half *half_new(struct half_loop *l, int fd, half_fn *fn, void *arg)
{
	struct half *h = mem_new(sizeof(*h));

	if (!h) {
		fd_closep(&fd);
		return NULL;
	}
	half_init(h, l, fd, fn, arg);
	if (half_watch(h) < 0)
		half_closep(&h, false);
	return h;
}

int half_takep(struct half **h)
{
	int fd = -1;

	if (*h)
		fd = half_take(*h);
	mem_free(*h);
	*h = NULL;
	return fd;
}

void half_closep(struct half **h, bool reset)
{
	if (*h)
		half_close(*h, reset);
	mem_free(*h);
	*h = NULL;
}

/* --- bytes -------------------------------------------------------------------------- */

ssize_t half_recv(struct half *h, void *p, size_t n)
{
	ssize_t got = recv(h->fd, p, n, MSG_DONTWAIT);

	if (got < 0 ? errno == EAGAIN :
		      got > 0 && (size_t)got < n && !h->ending)
		h->readable = false;
	return got;
}

ssize_t half_send(struct half *h, const void *p, size_t n)
{
	ssize_t sent = send(h->fd, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (sent < 0 ? errno == EAGAIN : (size_t)sent < n)
		h->writable = false;
	return sent;
}
