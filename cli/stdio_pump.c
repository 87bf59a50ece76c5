/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_pump.c - standard input and output, copied to and from a socket
 *
 * Two lanes, each a buffer that is filled only when it is empty.  The streams
 * may be blocking and must stay so, so a lane reads when poll() says that there
 * is something, and writes no more than poll() vouches for: to a pipe PIPE_BUF
 * bytes, to a socket whatever it takes without waiting.
 */
#include "cli/stdio_pump.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

struct lane {
	int from, to;
	struct buf *b;
	bool ended;		/* @from is at its end */
	bool closed;		/* and @to knows */
};

static bool is_again(void)
{
	return errno == EAGAIN || errno == EINTR;
}

static int lane_read(struct lane *l)
{
	int e = buf_reserve(l->b, PUMP_CHUNK);
	ssize_t n;

	if (e)
		return e;
	n = read(l->from, l->b->p, PUMP_CHUNK);
	if (n < 0)
		return is_again() ? 0 : -errno;
	l->b->n = (size_t)n;
	l->ended = n == 0;
	return 0;
}

static int lane_write(struct lane *l)
{
	ssize_t n = send(l->to, l->b->p, l->b->n, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno == ENOTSOCK)
		n = write(l->to, l->b->p, MIN(l->b->n, (size_t)PIPE_BUF));
	if (n < 0)
		return is_again() ? 0 : -errno;
	buf_consume(l->b, (size_t)n);
	return 0;
}

/* All was written, and there will be no more. */
static int lane_close(struct lane *l)
{
	l->closed = true;
	if (shutdown(l->to, SHUT_WR) == 0 || errno == ENOTCONN)
		return 0;
	if (errno != ENOTSOCK)
		return -errno;
	close(l->to);
	l->to = -1;
	return 0;
}

/* What the lane waits for: of one descriptor at a time. */
static struct pollfd lane_wants(const struct lane *l)
{
	if (l->closed)
		return (struct pollfd){ -1, 0, 0 };
	if (l->b->n)
		return (struct pollfd){ l->to, POLLOUT, 0 };
	return (struct pollfd){ l->from, POLLIN, 0 };
}

static int lane_turn(struct lane *l, const struct pollfd *p)
{
	int e = 0;

	if (p->fd < 0 || p->revents == 0)
		return 0;
	if (p->revents & POLLNVAL)
		return -EBADF;
	if (p->events & POLLOUT)
		e = lane_write(l);
	else
		e = lane_read(l);
	if (!e && l->ended && l->b->n == 0)
		e = lane_close(l);
	return e;
}

int stdio_pump(int in, int out, int sock, struct buf *early)
{
	struct buf up = BUF_INIT(PUMP_CHUNK);
	struct lane lane[2] = {
		{ .from = in, .to = sock, .b = &up },
		{ .from = sock, .to = out, .b = early },
	};
	int e = 0;

	while (!e && !(lane[0].closed && lane[1].closed)) {
		struct pollfd p[2] = { lane_wants(&lane[0]),
				       lane_wants(&lane[1]) };

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			e = -errno;
		for (size_t i = 0; !e && i < 2; i++)
			e = lane_turn(&lane[i], &p[i]);
	}
	buf_done(&up);
	return e;
}
