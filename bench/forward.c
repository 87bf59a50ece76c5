/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward.c - the least that a process between two connections can do
 *
 *	forward ADDRESS:PORT=ADDRESS:PORT...
 *
 * What it accepts on the left it connects to the right, says "ready" when it
 * listens, and goes on until it is ended.  It judges, resolves, parses and records
 * nothing: whatever a proxy costs beyond this is what it does for that, and what
 * it wastes.
 *
 * One thread and one epoll set.  A descriptor is put there once, edge-triggered for
 * both directions, and never changed; so a direction is read until a read comes
 * back short, or says that there is no more.  (A FIN that came with the last
 * bytes is told by EPOLLRDHUP, which is remembered until it was read.)
 *
 * Bytes are copied through one buffer until a read has filled it: then the
 * direction is taken for a stream and spliced, through a pipe that it has only
 * while there are bytes in it, until little comes at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/net.h"

#define BLOCK		65536
#define PIPE_BYTES	(1 << 20)
#define LITTLE		16384		/* a splice of less ends splicing */
#define ROUNDS		4		/* of one direction, then others */
#define ACCEPTED_MAX	64
#define EVENTS		256
#define PIPES_MAX	64		/* that are kept for the next */

struct pipe {
	int fd[2];
	struct pipe *next;
};

/* One end of a flow, and the bytes that were read from it. */
struct end {
	int fd;
	uint8_t side;		/* of flow.end */
	bool finishing;		/* EPOLLRDHUP was seen */
	bool finished;		/* its FIN was read */
	bool told;		/* ... and passed on */
	bool splices;
	struct pipe *pipe;
	size_t piped;		/* bytes in the pipe */
	char *rest;		/* what the other end did not take */
	size_t rest_at, rest_n;
};

struct flow {
	struct end end[2];	/* who connected, and where to */
	bool connecting;
	struct flow *next_dead;
};

struct door {
	struct end end;		/* the first, as in a flow: epoll knows ends */
	struct net_addr to;
};

static struct {
	int ep;
	struct pipe *pipes;
	unsigned pipes_n;
	struct flow *dead;	/* freed when no event can speak of them */
	char block[BLOCK];
} fwd;

enum { DOOR = 2 };		/* end.side of what listens */

static struct flow *flow_of(struct end *e)
{
	return (struct flow *)(void *)((char *)(e - e->side) -
				       offsetof(struct flow, end));
}

static struct end *other(struct end *e)
{
	return &flow_of(e)->end[!e->side];
}

/* Bytes were read of it that the other end did not take yet. */
static bool is_stuck(const struct end *e)
{
	return e->piped > 0 || e->rest_n > 0;
}

/* --- pipes ------------------------------------------------------------------- */

static bool pipe_get(struct end *e)
{
	struct pipe *p = fwd.pipes;

	if (p) {
		fwd.pipes = p->next;
		fwd.pipes_n--;
	} else {
		p = calloc(1, sizeof(*p));
		if (!p || pipe2(p->fd, O_NONBLOCK | O_CLOEXEC)) {
			free(p);
			return false;
		}
		(void)fcntl(p->fd[0], F_SETPIPE_SZ, PIPE_BYTES);
	}
	e->pipe = p;
	return true;
}

static void pipe_put(struct end *e)
{
	struct pipe *p = e->pipe;

	e->pipe = NULL;
	if (!p)
		return;
	if (e->piped == 0 && fwd.pipes_n < PIPES_MAX) {
		p->next = fwd.pipes;
		fwd.pipes = p;
		fwd.pipes_n++;
		return;
	}
	close(p->fd[0]);
	close(p->fd[1]);
	free(p);
}

/* --- flows ------------------------------------------------------------------- */

static void watch(struct end *e, uint32_t events, int op)
{
	struct epoll_event ev = { .events = events, .data.ptr = e };

	if (epoll_ctl(fwd.ep, op, e->fd, &ev))
		net_fail("epoll_ctl");
}

static void flow_end(struct flow *f)
{
	if (f->end[0].fd < 0)
		return;
	for (int i = 0; i < 2; i++) {
		struct end *e = &f->end[i];

		close(e->fd);
		e->fd = -1;
		pipe_put(e);
		free(e->rest);
	}
	f->next_dead = fwd.dead;
	fwd.dead = f;
}

/* What was read of @e and is still here goes on.
 * Return: 1 all is gone, 0 the other end takes no more now, -1 it is gone */
static int pass_on(struct end *e)
{
	int to = other(e)->fd;
	ssize_t n;

	while (e->piped > 0) {
		n = splice(e->pipe->fd[0], NULL, to, NULL, e->piped,
			   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? 0 : -1;
		e->piped -= (size_t)n;
	}
	while (e->rest_n > 0) {
		n = send(to, e->rest + e->rest_at, e->rest_n, MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		e->rest_at += (size_t)n;
		e->rest_n -= (size_t)n;
	}
	free(e->rest);
	e->rest = NULL;
	return 1;
}

static int keep_rest(struct end *e, const char *text, size_t n)
{
	e->rest = malloc(n);
	if (!e->rest)
		return -1;
	memcpy(e->rest, text, n);
	e->rest_at = 0;
	e->rest_n = n;
	return 0;
}

/* Both return: 1 there may be more, 0 not now, -1 an end is gone. */
static int move_copied(struct end *e)
{
	ssize_t n = recv(e->fd, fwd.block, BLOCK, 0), sent;

	if (n < 0)
		return errno == EAGAIN ? 0 : -1;
	e->finished = n == 0;
	if (n == 0)
		return 0;
	sent = send(other(e)->fd, fwd.block, (size_t)n, MSG_NOSIGNAL);
	if (sent < 0 && errno != EAGAIN)
		return -1;
	if (sent < n) {
		sent = sent < 0 ? 0 : sent;
		return keep_rest(e, fwd.block + sent, (size_t)(n - sent));
	}
	e->splices = n == BLOCK;
	return n == BLOCK || e->finishing;
}

static int move_spliced(struct end *e)
{
	ssize_t n;
	int passed;

	if (!e->pipe && !pipe_get(e)) {
		e->splices = false;
		return 1;
	}
	n = splice(e->fd, NULL, e->pipe->fd[1], NULL, PIPE_BYTES,
		   SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0 && errno != EAGAIN)
		return -1;
	e->finished = n == 0;
	if (n > 0)
		e->piped += (size_t)n;
	passed = pass_on(e);
	if (passed == 1)
		pipe_put(e);
	if (n <= 0 || passed != 1)
		return passed < 0 ? -1 : 0;
	e->splices = n >= LITTLE;
	return 1;
}

/* Read @e as far as it goes, and pass on its end. */
static void pump(struct end *e)
{
	int moved = pass_on(e);

	for (int i = 0; moved == 1 && !e->finished; i++) {
		if (i == ROUNDS) {	/* to be told of it once more */
			watch(e, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
			      EPOLL_CTL_MOD);
			return;
		}
		moved = e->splices ? move_spliced(e) : move_copied(e);
	}
	if (moved < 0) {
		flow_end(flow_of(e));
		return;
	}
	if (!e->finished || e->told || is_stuck(e))
		return;
	e->told = true;
	if (other(e)->told)
		flow_end(flow_of(e));
	else
		shutdown(other(e)->fd, SHUT_WR);
}

static void flow_start(const struct door *door, int fd)
{
	struct flow *f = calloc(1, sizeof(*f));
	int to = socket(door->to.sa.ss_family,
			SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (!f || to < 0)
		net_fail("a new flow");
	net_no_delay(fd);
	net_no_delay(to);
	f->connecting = true;
	f->end[0] = (struct end){ .fd = fd, .side = 0 };
	f->end[1] = (struct end){ .fd = to, .side = 1 };
	if (connect(to, (const struct sockaddr *)&door->to.sa, door->to.n) &&
	    errno != EINPROGRESS) {
		close(fd);
		close(to);
		free(f);
		return;
	}
	for (int i = 0; i < 2; i++)
		watch(&f->end[i], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET,
		      EPOLL_CTL_ADD);
}

static void door_accept(const struct door *door)
{
	for (int i = 0; i < ACCEPTED_MAX; i++) {
		int fd = accept4(door->end.fd, NULL, NULL,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		flow_start(door, fd);
	}
}

static void on_event(struct end *e, uint32_t events)
{
	struct flow *f = flow_of(e);

	if (e->fd < 0)
		return;
	if (events & EPOLLERR) {
		flow_end(f);
		return;
	}
	if (events & EPOLLRDHUP)
		e->finishing = true;
	if (f->connecting) {
		if (e->side == 0 || !(events & EPOLLOUT))
			return;
		f->connecting = false;
		pump(other(e));		/* who often has spoken already */
		return;
	}
	if (events & EPOLLOUT && is_stuck(other(e)))
		pump(other(e));
	if (e->fd >= 0 && events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP) &&
	    !is_stuck(e))
		pump(e);
}

static void door_open(char *text)
{
	struct door *door = calloc(1, sizeof(*door));
	char *to = strchr(text, '=');

	if (!door || !to)
		net_usage("usage: forward ADDRESS:PORT=ADDRESS:PORT...\n");
	*to = '\0';
	net_resolve(to + 1, NULL, &door->to);
	door->end.fd = net_listen(text);
	door->end.side = DOOR;
	watch(&door->end, EPOLLIN, EPOLL_CTL_ADD);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		net_usage("usage: forward ADDRESS:PORT=ADDRESS:PORT...\n");
	net_begin();
	fwd.ep = epoll_create1(EPOLL_CLOEXEC);
	if (fwd.ep < 0)
		net_fail("epoll");
	for (int i = 1; i < argc; i++)
		door_open(argv[i]);
	net_ready();
	for (;;) {
		struct epoll_event ev[EVENTS];
		int n = epoll_wait(fwd.ep, ev, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct end *e = ev[i].data.ptr;

			if (e->side == DOOR)
				door_accept(container_of(e, struct door, end));
			else
				on_event(e, ev[i].events);
		}
		while (fwd.dead) {
			struct flow *f = fwd.dead;

			fwd.dead = f->next_dead;
			free(f);
		}
	}
}
