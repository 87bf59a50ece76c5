/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attack.c - what a hostile sandbox does, for as long as it is let
 *
 *	attack new HOW TARGET N		N connections at a time that ask for a
 *					tunnel, and are reset when it is there
 *	attack bulk HOW TARGET N	N tunnels that bring zeros without an end
 *	attack held HOW TARGET N	N connections that say nothing
 *	attack heads HOW TARGET N	N heads of requests, a byte more in each in
 *					turn, without a pause
 *	attack dns HOW SERVER N		questions, N in a batch, never the same name
 *
 * HOW is "direct", or "connect:ADDRESS:PORT" for an HTTP proxy; TARGET is
 * NAME:PORT, SERVER an address.  A connection that ends is made anew.  It says
 * "ready" when all N were begun, goes on until the end of standard input, and
 * then says how often it did its worst: one line of JSON.  Nothing runs longer
 * than TIME_MAX_S.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/net.h"

#define TIME_MAX_S	60
#define ONES_MAX	16384
#define BATCH_MAX	256
#define BLOCK		65536
#define ENDLESS		"1099511627776\n"

enum kind { NEW, BULK, HELD, HEADS, DNS, KINDS };

static const char *const kind_names[KINDS] = {
	[NEW] = "new", [BULK] = "bulk", [HELD] = "held", [HEADS] = "heads",
	[DNS] = "dns",
};

struct one {
	int fd;
	bool begun;		/* it has said its first */
	bool working;		/* bulk: zeros were asked for */
};

static struct {
	enum kind kind;
	bool proxy;
	struct net_addr peer;
	char request[512];
	size_t request_n;
	struct one one[ONES_MAX];
	unsigned n;
	unsigned long done;
	int ep;
} attack;

static char block[BLOCK];

/* --- connections ------------------------------------------------------------- */

static void one_start(struct one *o)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT, .data.ptr = o };

	o->begun = o->working = false;
	o->fd = socket(attack.peer.sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (o->fd < 0)
		net_fail("socket");
	if (connect(o->fd, (struct sockaddr *)&attack.peer.sa, attack.peer.n) &&
	    errno != EINPROGRESS)
		net_fail("connect");
	if (epoll_ctl(attack.ep, EPOLL_CTL_ADD, o->fd, &ev))
		net_fail("epoll_ctl");
}

static void one_again(struct one *o)
{
	struct linger now = { .l_onoff = 1 };

	setsockopt(o->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(o->fd);
	attack.done++;
	one_start(o);
}

/* It is connected: what it has to say, and then only listen. */
static void one_begin(struct one *o)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = o };
	const char *text = attack.request;
	size_t n = attack.kind == HELD ? 0 : attack.request_n;

	o->begun = true;
	if (attack.kind == BULK && !attack.proxy) {
		text = ENDLESS;
		n = strlen(text);
		o->working = true;
	}
	if (n && send(o->fd, text, n, MSG_NOSIGNAL) < 0) {
		one_again(o);
		return;
	}
	if (epoll_ctl(attack.ep, EPOLL_CTL_MOD, o->fd, &ev))
		net_fail("epoll_ctl");
}

static void one_read(struct one *o)
{
	ssize_t n = recv(o->fd, block, BLOCK, 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || attack.kind != BULK) {
		one_again(o);		/* it has what it wanted, or nothing */
		return;
	}
	attack.done += (unsigned long)n;
	if (!o->working) {
		o->working = true;
		if (send(o->fd, ENDLESS, strlen(ENDLESS), MSG_NOSIGNAL) < 0)
			one_again(o);
	}
}

static void serve(int ms)
{
	struct epoll_event ev[64];
	int n = epoll_wait(attack.ep, ev, 64, ms);

	for (int i = 0; i < n; i++) {
		struct one *o = ev[i].data.ptr;

		if (ev[i].events & (EPOLLERR | EPOLLHUP))
			one_again(o);
		else if (!o->begun)
			one_begin(o);
		else if (ev[i].events & EPOLLIN)
			one_read(o);
	}
}

/* A byte more in some of the heads. */
static void drip(unsigned *at)
{
	for (unsigned i = 0; i < 64; i++) {
		struct one *o = &attack.one[(*at)++ % attack.n];

		if (o->begun && send(o->fd, "x", 1, MSG_NOSIGNAL) == 1)
			attack.done++;
	}
}

static void connections(double end)
{
	unsigned at = 0;

	attack.ep = epoll_create1(0);
	if (attack.ep < 0)
		net_fail("epoll");
	for (unsigned i = 0; i < attack.n; i++)
		one_start(&attack.one[i]);
	for (unsigned i = 0; i < attack.n / 64 + 1; i++)
		serve(0);
	net_ready();
	attack.done = 0;
	while (!net_is_over() && net_now_s() < end) {
		serve(attack.kind == HEADS ? 0 : 10);
		if (attack.kind == HEADS)
			drip(&at);
	}
}

/* --- questions --------------------------------------------------------------- */

static size_t question(unsigned long number, char out[NET_QUESTION_MAX])
{
	char name[32];

	if (snprintf(name, sizeof(name), "%09lu.other.test",
		     number % 1000000000) != 20)
		exit(2);
	return net_question((uint16_t)number, name, out);
}

static void questions(double end)
{
	int fd = socket(attack.peer.sa.ss_family, SOCK_DGRAM, 0);
	char text[NET_QUESTION_MAX];

	if (fd < 0 ||
	    connect(fd, (struct sockaddr *)&attack.peer.sa, attack.peer.n))
		net_fail("server");
	net_ready();
	while (!net_is_over() && net_now_s() < end) {
		for (unsigned i = 0; i < attack.n; i++) {
			size_t n = question(attack.done++, text);

			(void)!send(fd, text, n, 0);
		}
		while (recv(fd, block, BLOCK, MSG_DONTWAIT) > 0)
			;
	}
}

/* --- beginning ----------------------------------------------------------------- */

static enum kind kind_of(const char *word)
{
	enum kind k = NEW;

	while (k < KINDS && strcmp(kind_names[k], word) != 0)
		k++;
	return k;
}

static void set_request(const char *target)
{
	int n = snprintf(attack.request, sizeof(attack.request),
			 "CONNECT %s HTTP/1.1\r\n%s", target,
			 attack.kind == HEADS ? "A: " : "\r\n");

	if (n < 0 || (size_t)n >= sizeof(attack.request))
		exit(2);
	attack.request_n = (size_t)n;
}

int main(int argc, char **argv)
{
	double end = net_now_s() + TIME_MAX_S;
	unsigned long n;

	attack.kind = argc == 5 ? kind_of(argv[1]) : KINDS;
	n = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
	if (attack.kind == KINDS || n == 0 ||
	    n > (attack.kind == DNS ? BATCH_MAX : ONES_MAX)) {
		net_usage("usage: attack new|bulk|held|heads|dns HOW TARGET N\n");
	}
	net_begin();
	attack.n = (unsigned)n;
	attack.proxy = strncmp(argv[2], "connect:", 8) == 0;
	set_request(argv[3]);
	if (attack.kind == DNS)
		net_resolve(argv[3], "53", &attack.peer);
	else
		net_resolve(attack.proxy ? argv[2] + 8 : argv[3], NULL,
			    &attack.peer);
	if (attack.kind == DNS)
		questions(end);
	else
		connections(end);
	printf("{\"done\":%lu}\n", attack.done);
	return 0;
}
