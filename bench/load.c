/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - origin and client of the tunnel bench, bounded in count and time
 *
 *	load origin ADDRESS		echo on 4007, "N\n" worth of zeros on 4019
 *	load tunnels HOW TARGET COUNT AT_ONCE [SECONDS]
 *	load bulk HOW TARGET BYTES AT_ONCE
 *	load names SERVER NAME COUNT [SECONDS]	one question after the other
 *
 * HOW is "direct", or "connect:ADDRESS:PORT" for an HTTP proxy; TARGET is
 * NAME:PORT.  "tunnels" opens COUNT of them, AT_ONCE at a time, echoes 64
 * bytes through each and closes it; "bulk" reads BYTES through each of AT_ONCE.
 * The client says "ready", waits for a line on standard input, works, says one
 * line of JSON, and waits for the end of standard input: the bench reads the
 * proxy's CPU time in between.  Of tunnels and names it says how long each took,
 * in microseconds, at the median and the 99th percentile; a question that has no
 * answer in LOST_MS has failed.  Nothing runs longer than TIME_MAX_S, or SECONDS.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define TIME_MAX_S	120
#define SLOTS_MAX	1024
#define COUNT_MAX	1000000
#define BLOCK		65536
#define LOST_MS		1000
#define ECHO_BYTES	64
#define ECHO_PORT	4007
#define ZEROS_PORT	4019

enum step { CONNECTING, ASKED, WORKING };

struct slot {
	int fd;
	enum step step;
	double began;
	size_t got;		/* bytes of the present step */
	uint64_t left;		/* bulk: bytes still to come */
	char head[512];
};

static struct {
	struct sockaddr_storage peer;
	socklen_t peer_n;
	bool connect;		/* through an HTTP proxy */
	char request[512];
	bool bulk;
	uint64_t bytes;
	unsigned long want, started, done, failed;
	struct slot slot[SLOTS_MAX];
	int ep;
	double time_max;
	double *took;		/* of each that is done, in seconds */
} load;

static char block[BLOCK];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* --- origin ------------------------------------------------------------------ */

struct peer {
	int fd;
	bool zeros;
	bool asked;
	uint64_t left;
};

static int listen_on(const char *address, uint16_t port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	int one = 1, fd;

	sa.sin_port = htons(port);
	if (inet_pton(AF_INET, address, &sa.sin_addr) != 1)
		fail("address");
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, 4096))
		fail("listen");
	return fd;
}

static void peer_watch(int ep, struct peer *p, uint32_t events, int op)
{
	struct epoll_event ev = { .events = events, .data.ptr = p };

	if (epoll_ctl(ep, op, p->fd, &ev))
		fail("epoll_ctl");
}

/* Return: false when the peer is finished. */
static bool peer_serve(int ep, struct peer *p)
{
	ssize_t n;

	if (!p->zeros || !p->asked) {
		n = recv(p->fd, block, p->zeros ? 32 : BLOCK, 0);
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		if (!p->zeros)
			return send(p->fd, block, (size_t)n, MSG_NOSIGNAL) == n;
		block[n] = '\0';
		p->left = strtoull(block, NULL, 10);
		p->asked = true;
		memset(block, 0, 32);
		peer_watch(ep, p, EPOLLOUT, EPOLL_CTL_MOD);
	}
	while (p->left > 0) {
		n = send(p->fd, block, p->left < BLOCK ? p->left : BLOCK,
			 MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN;
		p->left -= (uint64_t)n;
	}
	return false;
}

static void origin(const char *address)
{
	int echo = listen_on(address, ECHO_PORT);
	int zeros = listen_on(address, ZEROS_PORT);
	struct peer listeners[2] = { { .fd = echo }, { .fd = zeros } };
	int ep = epoll_create1(0);

	if (ep < 0)
		fail("epoll");
	peer_watch(ep, &listeners[0], EPOLLIN, EPOLL_CTL_ADD);
	peer_watch(ep, &listeners[1], EPOLLIN, EPOLL_CTL_ADD);
	puts("ready");
	fflush(stdout);
	for (;;) {
		struct epoll_event ev[64];
		int n = epoll_wait(ep, ev, 64, -1);

		for (int i = 0; i < n; i++) {
			struct peer *p = ev[i].data.ptr;

			if (p == &listeners[0] || p == &listeners[1]) {
				int fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK);
				struct peer *made;

				if (fd < 0)
					continue;
				made = calloc(1, sizeof(*made));
				if (!made)
					fail("memory");
				made->fd = fd;
				made->zeros = p == &listeners[1];
				peer_watch(ep, made, EPOLLIN, EPOLL_CTL_ADD);
			} else if (!peer_serve(ep, p)) {
				close(p->fd);
				free(p);
			}
		}
	}
}

/* --- client ------------------------------------------------------------------ */

static void slot_watch(struct slot *s, uint32_t events, int op)
{
	struct epoll_event ev = { .events = events, .data.ptr = s };

	if (epoll_ctl(load.ep, op, s->fd, &ev))
		fail("epoll_ctl");
}

static void slot_start(struct slot *s)
{
	int one = 1;

	s->step = CONNECTING;
	s->began = now_s();
	s->got = 0;
	s->left = load.bytes;
	s->fd = socket(load.peer.ss_family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (s->fd < 0)
		fail("socket");
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	load.started++;
	if (connect(s->fd, (struct sockaddr *)&load.peer, load.peer_n) &&
	    errno != EINPROGRESS)
		fail("connect");
	slot_watch(s, EPOLLOUT, EPOLL_CTL_ADD);
}

static void slot_end(struct slot *s, bool good)
{
	close(s->fd);
	s->fd = -1;
	if (good)
		load.took[load.done++] = now_s() - s->began;
	else
		load.failed++;
	if (load.started < load.want)
		slot_start(s);
}

static bool slot_work(struct slot *s)
{
	char text[ECHO_BYTES];
	int n = ECHO_BYTES;

	s->step = WORKING;
	s->got = 0;
	memset(text, 'x', sizeof(text));
	if (load.bulk)
		n = snprintf(text, sizeof(text), "%llu\n",
			     (unsigned long long)load.bytes);
	slot_watch(s, EPOLLIN, EPOLL_CTL_MOD);
	return send(s->fd, text, (size_t)n, MSG_NOSIGNAL) == n;
}

static bool slot_ask(struct slot *s)
{
	size_t n = strlen(load.request);

	s->step = ASKED;
	slot_watch(s, EPOLLIN, EPOLL_CTL_MOD);
	return send(s->fd, load.request, n, MSG_NOSIGNAL) == (ssize_t)n;
}

/* Return: 1 finished, 0 goes on, -1 failed. */
static int slot_step(struct slot *s)
{
	ssize_t n;

	switch (s->step) {
	case CONNECTING:
		return (load.connect ? slot_ask(s) : slot_work(s)) ? 0 : -1;
	case ASKED:
		n = recv(s->fd, s->head + s->got,
			 sizeof(s->head) - 1 - s->got, 0);
		if (n <= 0)
			return n < 0 && errno == EAGAIN ? 0 : -1;
		s->got += (size_t)n;
		s->head[s->got] = '\0';
		if (!strstr(s->head, "\r\n\r\n"))
			return s->got < sizeof(s->head) - 1 ? 0 : -1;
		if (strncmp(s->head, "HTTP/1.", 7) || strncmp(s->head + 8, " 200", 4))
			return -1;
		return slot_work(s) ? 0 : -1;
	case WORKING:
		n = recv(s->fd, block, BLOCK, 0);
		if (n < 0)
			return errno == EAGAIN ? 0 : -1;
		if (load.bulk) {
			s->left -= (uint64_t)n;
			return s->left == 0 ? 1 : n == 0 ? -1 : 0;
		}
		s->got += (size_t)n;
		return s->got >= ECHO_BYTES ? 1 : n == 0 ? -1 : 0;
	}
	return -1;
}

static void resolve(const char *text)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found;
	char host[256];
	const char *colon = strrchr(text, ':');

	if (!colon || (size_t)(colon - text) >= sizeof(host)) {
		fprintf(stderr, "load: NAME:PORT expected, not '%s'\n", text);
		exit(2);
	}
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	if (getaddrinfo(host, colon + 1, &hints, &found)) {
		fprintf(stderr, "load: no address for '%s'\n", host);
		exit(1);
	}
	memcpy(&load.peer, found->ai_addr, found->ai_addrlen);
	load.peer_n = found->ai_addrlen;
	freeaddrinfo(found);
}

static int shorter(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void tell(double seconds)
{
	unsigned long n = load.done;

	qsort(load.took, n, sizeof(load.took[0]), shorter);
	printf("{\"done\":%lu,\"failed\":%lu,\"seconds\":%.6f,"
	       "\"p50_us\":%.1f,\"p99_us\":%.1f}\n", n, load.want - n, seconds,
	       n ? load.took[n / 2] * 1e6 : 0, n ? load.took[n * 99 / 100] * 1e6 : 0);
	fflush(stdout);
	while (read(STDIN_FILENO, block, BLOCK) > 0)
		;
}

static void get_ready(void)
{
	load.took = calloc(load.want, sizeof(load.took[0]));
	if (!load.took)
		fail("memory");
	puts("ready");
	fflush(stdout);
	if (read(STDIN_FILENO, block, 1) != 1)
		exit(1);
}

static void client(const char *how, const char *target, unsigned long at_once)
{
	double begin;
	int left;

	load.connect = strncmp(how, "connect:", 8) == 0;
	left = snprintf(load.request, sizeof(load.request),
			"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target);
	if (left < 0 || (size_t)left >= sizeof(load.request))
		exit(2);
	resolve(load.connect ? how + 8 : target);
	load.ep = epoll_create1(0);
	get_ready();
	begin = now_s();
	for (unsigned long i = 0; i < at_once && load.started < load.want; i++)
		slot_start(&load.slot[i]);
	while (load.done + load.failed < load.want) {
		struct epoll_event ev[64];
		int n = epoll_wait(load.ep, ev, 64, 1000);

		for (int i = 0; i < n; i++) {
			int end_of = slot_step(ev[i].data.ptr);

			if (end_of)
				slot_end(ev[i].data.ptr, end_of > 0);
		}
		if (now_s() - begin > load.time_max)
			break;
	}
	tell(now_s() - begin);
}

/* --- names ------------------------------------------------------------------- */

/* A question for the address of @name. Return: its length. */
static size_t question(uint16_t id, const char *name, char out[512])
{
	const char head[12] = { (char)(id >> 8), (char)id, 1, 0, 0, 1 };
	const char type[5] = { 0, 0, 1, 0, 1 };
	size_t n = sizeof(head);

	memcpy(out, head, n);
	for (const char *dot = name; *name; name = dot + (*dot == '.')) {
		dot = name + strcspn(name, ".");
		if (dot == name || dot - name > 63 || n > 400)
			exit(2);
		out[n++] = (char)(dot - name);
		memcpy(out + n, name, (size_t)(dot - name));
		n += (size_t)(dot - name);
	}
	memcpy(out + n, type, sizeof(type));
	return n + sizeof(type);
}

/* Return: the answer to @id came. */
static bool answered(int fd, uint16_t id)
{
	for (;;) {
		ssize_t n = recv(fd, block, BLOCK, 0);

		if (n < 0)
			return false;
		if (n > 12 && (uint8_t)block[0] == id >> 8 &&
		    (uint8_t)block[1] == (id & 255))
			return true;
	}
}

static void names(const char *server, const char *name)
{
	const struct timeval lost = { .tv_usec = LOST_MS * 1000 % 1000000,
				      .tv_sec = LOST_MS / 1000 };
	struct sockaddr_in sa = { .sin_family = AF_INET, .sin_port = htons(53) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char text[512];
	double begin, asked;

	if (fd < 0 || inet_pton(AF_INET, server, &sa.sin_addr) != 1 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &lost, sizeof(lost)) ||
	    connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		fail("server");
	get_ready();
	begin = now_s();
	for (unsigned long i = 0; i < load.want; i++) {
		uint16_t id = (uint16_t)(i * 2654435761u >> 8);
		size_t n = question(id, name, text);

		asked = now_s();
		if (send(fd, text, n, 0) == (ssize_t)n && answered(fd, id))
			load.took[load.done++] = now_s() - asked;
		if (now_s() - begin > load.time_max)
			break;
	}
	tell(now_s() - begin);
}

static unsigned long number(const char *text, unsigned long max)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*end || v == 0 || v > max) {
		fprintf(stderr, "load: '%s' is not a number up to %lu\n", text, max);
		exit(2);
	}
	return v;
}

int main(int argc, char **argv)
{
	struct rlimit limit;

	signal(SIGPIPE, SIG_IGN);
	load.time_max = TIME_MAX_S;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (argc == 3 && strcmp(argv[1], "origin") == 0) {
		origin(argv[2]);
	} else if ((argc == 6 || argc == 7) && strcmp(argv[1], "tunnels") == 0) {
		if (argc == 7)
			load.time_max = (double)number(argv[6], TIME_MAX_S);
		load.want = number(argv[4], COUNT_MAX);
		client(argv[2], argv[3], number(argv[5], SLOTS_MAX));
	} else if (argc == 6 && strcmp(argv[1], "bulk") == 0) {
		load.bulk = true;
		load.bytes = number(argv[4], 1ul << 40);
		load.want = number(argv[5], SLOTS_MAX);
		client(argv[2], argv[3], load.want);
	} else if ((argc == 5 || argc == 6) && strcmp(argv[1], "names") == 0) {
		if (argc == 6)
			load.time_max = (double)number(argv[5], TIME_MAX_S);
		load.want = number(argv[4], COUNT_MAX);
		names(argv[2], argv[3]);
	} else {
		fprintf(stderr, "usage: load origin ADDRESS\n"
			"       load tunnels HOW TARGET COUNT AT_ONCE\n"
			"       load bulk HOW TARGET BYTES AT_ONCE\n"
			"       load names SERVER NAME COUNT\n");
		return 2;
	}
	return 0;
}
