/* SPDX-License-Identifier: Apache-2.0 */
/*
 * origin.c - the servers behind what the bench measures, as cheap as can be
 *
 *	origin ADDRESS
 *
 * Listens on ADDRESS, says "ready", and serves until it is ended:
 *
 *	4007		echo
 *	4019		"N\n" is answered with N bytes, and the end
 *	4080, 4081	HTTP/1.1 with keep-alive: every request has 1 KB for an answer
 *
 * It shares the machine with who is measured.  So bytes are sent from a file in
 * memory without being copied, one that is larger than a cache of the processor:
 * a proxy that copies shall read them from where it would in life.  HTTP is
 * looked at only for where a head ends; a request has no body.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/net.h"

#define BLOCK		65536
#define FILE_BYTES	(64u << 20)
#define BODY_BYTES	1024
#define ACCEPTED_MAX	64		/* in a row */
#define EVENTS		256

enum service { ECHO, BYTES, HTTP };

static const struct {
	const char *port;
	enum service service;
} doors[] = {
	{ "4007", ECHO }, { "4019", BYTES }, { "4080", HTTP }, { "4081", HTTP },
};

struct peer {
	int fd;
	enum service service;
	bool listens;
	bool asked;		/* BYTES: how many are wanted is known */
	unsigned ended;		/* HTTP: of "\r\n\r\n", what was seen last */
	off_t at;		/* BYTES: in the file */
	uint64_t left;
};

static struct {
	int ep;
	int file;
	char block[BLOCK];
	char answer[BODY_BYTES + 256];
	size_t answer_n;
} origin;

static void peer_watch(struct peer *p, uint32_t events, int op)
{
	struct epoll_event ev = { .events = events, .data.ptr = p };

	if (epoll_ctl(origin.ep, op, p->fd, &ev))
		net_fail("epoll_ctl");
}

/* Return: false when the peer is finished; so do all that serve. */
static bool serve_echo(struct peer *p)
{
	ssize_t n = recv(p->fd, origin.block, BLOCK, 0);

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	return send(p->fd, origin.block, (size_t)n, MSG_NOSIGNAL) == n;
}

static bool serve_bytes(struct peer *p)
{
	ssize_t n;

	if (!p->asked) {
		n = recv(p->fd, origin.block, 31, 0);
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		origin.block[n] = '\0';
		p->left = strtoull(origin.block, NULL, 10);
		p->asked = true;
		peer_watch(p, EPOLLOUT, EPOLL_CTL_MOD);
	}
	while (p->left > 0) {
		if (p->at >= FILE_BYTES)
			p->at = 0;
		n = sendfile(p->fd, origin.file, &p->at,
			     p->left < FILE_BYTES ? p->left : FILE_BYTES);
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		p->left -= (uint64_t)n;
	}
	return false;
}

/* Heads that end in these @n bytes. */
static unsigned heads(struct peer *p, const char *text, size_t n)
{
	static const char end[] = "\r\n\r\n";
	unsigned found = 0;

	for (size_t i = 0; i < n; i++) {
		if (text[i] == end[p->ended])
			p->ended++;
		else
			p->ended = text[i] == end[0];
		if (p->ended == 4) {
			p->ended = 0;
			found++;
		}
	}
	return found;
}

static bool serve_http(struct peer *p)
{
	ssize_t n = recv(p->fd, origin.block, BLOCK, 0);

	if (n <= 0)
		return n < 0 && errno == EAGAIN;
	for (unsigned asked = heads(p, origin.block, (size_t)n); asked > 0;
	     asked--) {
		if (send(p->fd, origin.answer, origin.answer_n,
			 MSG_NOSIGNAL) != (ssize_t)origin.answer_n)
			return false;
	}
	return true;
}

static void peer_serve(struct peer *p)
{
	static bool (*const serve[])(struct peer *) = {
		[ECHO] = serve_echo, [BYTES] = serve_bytes, [HTTP] = serve_http,
	};

	if (!serve[p->service](p)) {
		close(p->fd);
		free(p);
	}
}

static struct peer *peer_new(int fd, enum service service, bool listens)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		net_fail("memory");
	p->fd = fd;
	p->service = service;
	p->listens = listens;
	peer_watch(p, EPOLLIN, EPOLL_CTL_ADD);
	return p;
}

static void peer_accept(struct peer *door)
{
	for (int i = 0; i < ACCEPTED_MAX; i++) {
		int fd = accept4(door->fd, NULL, NULL, SOCK_NONBLOCK);

		if (fd < 0)
			return;
		net_no_delay(fd);
		peer_new(fd, door->service, false);
	}
}

static void make_answer(void)
{
	int n = snprintf(origin.answer, sizeof(origin.answer),
			 "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
			 "Content-Length: %d\r\n\r\n", BODY_BYTES);

	if (n < 0 || (size_t)n + BODY_BYTES > sizeof(origin.answer))
		exit(2);
	memset(origin.answer + n, 'x', BODY_BYTES);
	origin.answer_n = (size_t)n + BODY_BYTES;
}

static void make_file(void)
{
	origin.file = memfd_create("bytes", MFD_CLOEXEC);
	if (origin.file < 0)
		net_fail("memfd");
	memset(origin.block, 'x', BLOCK);
	for (size_t n = 0; n < FILE_BYTES; n += BLOCK)
		if (write(origin.file, origin.block, BLOCK) != BLOCK)
			net_fail("memfd");
}

int main(int argc, char **argv)
{
	if (argc != 2)
		net_usage("usage: origin ADDRESS\n");
	net_begin();
	make_answer();
	make_file();
	origin.ep = epoll_create1(EPOLL_CLOEXEC);
	if (origin.ep < 0)
		net_fail("epoll");
	for (size_t i = 0; i < ARRAY_SIZE(doors); i++) {
		char at[80];
		int n = snprintf(at, sizeof(at), "%s:%s", argv[1], doors[i].port);

		if (n < 0 || (size_t)n >= sizeof(at))
			net_usage("usage: origin ADDRESS\n");
		peer_new(net_listen(at), doors[i].service, true);
	}
	net_ready();
	for (;;) {
		struct epoll_event ev[EVENTS];
		int n = epoll_wait(origin.ep, ev, EVENTS, -1);

		for (int i = 0; i < n; i++) {
			struct peer *p = ev[i].data.ptr;

			if (p->listens)
				peer_accept(p);
			else
				peer_serve(p);
		}
	}
}
