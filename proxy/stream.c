/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - a socket as a stream
 */
#include "proxy/stream.h"

#include <errno.h>
#include <sys/socket.h>

#include "base/fd.h"

/* A call that was interrupted is one to repeat when it is ready, as it is. */
static int error_now(void)
{
	return errno == EINTR ? -EAGAIN : -errno;
}

static ssize_t plain_read(struct stream *s, void *p, size_t n)
{
	ssize_t got = recv(s->fd, p, n, 0);

	return got < 0 ? error_now() : got;
}

static ssize_t plain_write(struct stream *s, const void *p, size_t n)
{
	ssize_t sent = send(s->fd, p, n, MSG_NOSIGNAL);

	return sent < 0 ? error_now() : sent;
}

static int plain_peek(struct stream *s)
{
	char byte;
	ssize_t n = recv(s->fd, &byte, 1, MSG_PEEK);

	return n < 0 ? error_now() : (int)n;
}

static bool plain_pending(const struct stream *s)
{
	(void)s;
	return false;
}

static int plain_shut(struct stream *s)
{
	return shutdown(s->fd, SHUT_WR) == -1 ? -errno : 0;
}

static void plain_close(struct stream *s)
{
	fd_closep(&s->fd);
}

const struct stream_ops stream_plain_ops = {
	.read = plain_read,
	.write = plain_write,
	.peek = plain_peek,
	.pending = plain_pending,
	.shut = plain_shut,
	.close = plain_close,
};

void stream_close(struct stream *s)
{
	if (stream_is_open(s))
		s->ops->close(s);
	*s = STREAM_NONE;
}
