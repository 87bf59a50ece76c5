/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choppy.c - a stream above a socket that is as awkward as TLS may be
 */
#include "tests/unit/choppy.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"

#define HELD_MAX	4096	/* bytes that the socket shows nothing of */
#define WRITE_MAX	3
#define WRITE_MAX_FAST	1000

struct layer {
	unsigned reads, writes, shuts;
	size_t at, n;
	char held[HELD_MAX];
};

struct choppy_world choppy;

/* An end that is the socket's and not the stream's. */
static int end_of(ssize_t got)
{
	return got < 0 ? -errno : choppy.cut ? -ECONNABORTED : 0;
}

static ssize_t choppy_read(struct stream *s, void *p, size_t n)
{
	struct layer *l = s->layer;
	size_t most = choppy.most ? choppy.most : 1;

	s->read_waits_write = choppy.settles || ++l->reads % 4 == 3;
	choppy.waits += s->read_waits_write;
	if (s->read_waits_write || l->reads % 4 == 1)
		return -EAGAIN;
	if (l->at == l->n) {
		ssize_t got = recv(s->fd, l->held,
				   MIN(7 * most, sizeof(l->held)), 0);

		if (got <= 0)
			return end_of(got);
		l->at = 0;
		l->n = (size_t)got;
	}
	n = MIN(MIN(n, most), l->n - l->at);
	memcpy(p, l->held + l->at, n);
	l->at += n;
	return (ssize_t)n;
}

static ssize_t choppy_write(struct stream *s, const void *p, size_t n)
{
	struct layer *l = s->layer;
	size_t most = choppy.most ? WRITE_MAX_FAST : WRITE_MAX;
	ssize_t sent;
	char byte;

	l->writes++;
	s->write_waits_read = choppy.asks || (l->writes % 3 == 2 &&
				recv(s->fd, &byte, 1, MSG_PEEK) > 0);
	choppy.waits += s->write_waits_read;
	if (s->write_waits_read || l->writes % 3 == 1)
		return -EAGAIN;
	sent = send(s->fd, p, MIN(n, most), MSG_NOSIGNAL);
	return sent < 0 ? -errno : sent;
}

static int choppy_peek(struct stream *s)
{
	struct layer *l = s->layer;
	ssize_t got;
	char byte;

	s->read_waits_write = false;
	if (l->at < l->n)
		return 1;
	got = recv(s->fd, &byte, 1, MSG_PEEK);
	return got > 0 ? 1 : end_of(got);
}

static bool choppy_pending(const struct stream *s)
{
	const struct layer *l = s->layer;

	return l->at < l->n;
}

static int choppy_shut(struct stream *s)
{
	struct layer *l = s->layer;

	if (l->shuts++ < 2)
		return -EAGAIN;
	return shutdown(s->fd, SHUT_WR) == -1 ? -errno : 0;
}

static void choppy_close(struct stream *s)
{
	choppy.open--;
	mem_free(s->layer);
	fd_closep(&s->fd);
}

static const struct stream_ops choppy_ops = {
	.read = choppy_read,
	.write = choppy_write,
	.peek = choppy_peek,
	.pending = choppy_pending,
	.shut = choppy_shut,
	.close = choppy_close,
};

struct stream choppy_stream(int fd)
{
	struct stream s = {
		.ops = &choppy_ops, .layer = mem_new(sizeof(struct layer)),
		.fd = fd,
	};

	REQUIRE(s.layer);
	choppy.open++;
	return s;
}
