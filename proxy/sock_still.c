/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sock_still.c - what the kernel holds of a direction that stands still
 *
 * Theory
 * ======
 * A flow that moves has little in its sockets.  When the reader stops, what it
 * does not take fills the send buffer before it, and what its sender sends on
 * fills the receive buffer of the other socket.  The kernel lets both grow with
 * the speed of a flow, to megabytes (tcp_wmem, tcp_rmem): a program that reads
 * fast for a while and then never again leaves that much behind, with each of
 * its connections.
 *
 * So a direction that stands still is charged both buffers' sizes as they are
 * by then, which bound what is in them: as long as nothing is taken out, neither
 * grows.  Nor can they have grown much unless many bytes have passed, so they are
 * asked anew only when twice as many have: a handful of calls for a connection,
 * however often it stops.
 *
 * Where the sandbox holds more than half of what it may, the buffers of what
 * stands still are made narrow, for good: so its other half cannot be taken by
 * stopping ever more of the connections that it has.
 */
#include "proxy/sock_still.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* As asked for; the kernel doubles it. */
#define NARROW		(64 << 10)
/* What has moved less than this has not made anything grow. */
#define ASK_AFTER	(64u << 10)

static size_t size_of(int fd, int option)
{
	int size = 0;
	socklen_t n = sizeof(size);

	if (fd < 0 || getsockopt(fd, SOL_SOCKET, option, &size, &n) != 0)
		return 0;
	return size > 0 ? (size_t)size : 0;
}

static void narrow(int fd, int option)
{
	int size = NARROW;

	/* One that is smaller stays so. */
	if (fd >= 0 && size_of(fd, option) > 2 * (size_t)size)
		(void)setsockopt(fd, SOL_SOCKET, option, &size, sizeof(size));
}

void sock_still_begin(struct sock_still *s, struct mem_account *a,
		      struct sock_way way)
{
	if (!a)
		return;
	if (a->tight && !s->narrow) {
		narrow(way.from, SO_RCVBUF);
		narrow(way.to, SO_SNDBUF);
		s->narrow = true;
		s->asked = 0;
	}
	if (s->asked == 0 || way.moved >= 2 * s->asked) {
		s->asked = way.moved > ASK_AFTER ? way.moved : ASK_AFTER;
		s->bound = size_of(way.from, SO_RCVBUF) +
			   size_of(way.to, SO_SNDBUF);
	}
	s->charged = s->bound + way.held;
	mem_account_owe(a, s->charged);
}

bool sock_is_unheard(int fd, unsigned ms)
{
	struct tcp_info info = { 0 };
	socklen_t n = sizeof(info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0 &&
	       info.tcpi_unacked > 0 && info.tcpi_last_ack_recv >= ms;
}
