/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.c - what the programs of the bench share: addresses, time, ends
 */
#include "bench/net.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG		65535
#define LABEL_MAX	63

void net_fail(const char *what)
{
	perror(what);
	exit(1);
}

void net_usage(const char *text)
{
	fputs(text, stderr);
	exit(2);
}

void net_begin(void)
{
	struct rlimit limit;

	signal(SIGPIPE, SIG_IGN);
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
		net_fail("descriptors");
}

double net_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

unsigned long net_number(const char *text, unsigned long max)
{
	char *end;
	unsigned long v = strtoul(text, &end, 10);

	if (*end || v == 0 || v > max) {
		fprintf(stderr, "'%s' is not a number from 1 to %lu\n", text, max);
		exit(2);
	}
	return v;
}

/* Where getaddrinfo() puts what @text says. */
static void look_up(const char *text, const char *port, int flags,
		    struct net_addr *ret)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
				  .ai_flags = flags }, *found;
	const char *end = port ? text + strlen(text) : strrchr(text, ':');
	char host[256];
	int n;

	if (!end) {
		fprintf(stderr, "NAME:PORT expected, not '%s'\n", text);
		exit(2);
	}
	if (!port)
		port = end + 1;
	if (*text == '[' && end > text && end[-1] == ']') {
		text++;
		end--;
	}
	n = snprintf(host, sizeof(host), "%.*s", (int)(end - text), text);
	if (n < 0 || (size_t)n >= sizeof(host) ||
	    getaddrinfo(host, port, &hints, &found)) {
		fprintf(stderr, "no address for '%s'\n", text);
		exit(1);
	}
	memcpy(&ret->sa, found->ai_addr, found->ai_addrlen);
	ret->n = found->ai_addrlen;
	freeaddrinfo(found);
}

void net_resolve(const char *text, const char *port, struct net_addr *ret)
{
	look_up(text, port, 0, ret);
}

int net_listen(const char *text)
{
	struct net_addr at = { 0 };
	int one = 1, fd;

	look_up(text, NULL, AI_NUMERICHOST, &at);
	fd = socket(at.sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (struct sockaddr *)&at.sa, at.n) || listen(fd, BACKLOG))
		net_fail(text);
	return fd;
}

void net_no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

bool net_is_over(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&in, 1, 0) > 0;
}

void net_ready(void)
{
	puts("ready");
	fflush(stdout);
}

size_t net_question(uint16_t id, const char *name, char out[NET_QUESTION_MAX])
{
	const char head[12] = { (char)(id >> 8), (char)id, 1, 0, 0, 1 };
	const char type[5] = { 0, 0, 1, 0, 1 };
	size_t n = sizeof(head), label;

	memcpy(out, head, n);
	for (; *name; name += label + (name[label] == '.')) {
		label = strcspn(name, ".");
		if (label == 0 || label > LABEL_MAX ||
		    n + label + 1 + sizeof(type) > NET_QUESTION_MAX)
			net_usage("that is no name\n");
		out[n++] = (char)label;
		memcpy(out + n, name, label);
		n += label;
	}
	memcpy(out + n, type, sizeof(type));
	return n + sizeof(type);
}
