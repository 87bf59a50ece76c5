/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sock.c - what every TCP socket of a flow gets, and how it goes
 */
#include "proxy/sock.h"

#include <errno.h>
#include <netinet/in.h>
/* Not netinet/tcp.h, whose tcp_info is that of Linux 2.6. */
#include <linux/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

#define SOCK_STATE_CLOSE	7	/* TCP_CLOSE of the kernel's states */

static void sock_set_int(int fd, int level, int option, int value)
{
	(void)!setsockopt(fd, level, option, &value, sizeof(value));
}

void sock_nodelay(int fd)
{
	sock_set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

void sock_keep_alive(int fd)
{
	sock_set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	sock_set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, SOCK_KEEP_IDLE_S);
	sock_set_int(fd, IPPROTO_TCP, TCP_KEEPINTVL, SOCK_KEEP_GAP_S);
	sock_set_int(fd, IPPROTO_TCP, TCP_KEEPCNT, SOCK_KEEP_PROBES);
}

void sock_tune(int fd)
{
	sock_nodelay(fd);
	sock_keep_alive(fd);
}

void sock_reset(int *fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	if (*fd >= 0)
		(void)!setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now,
				  sizeof(now));
	fd_closep(fd);
}

static bool sock_info(int fd, struct tcp_info *ret)
{
	socklen_t n = sizeof(*ret);

	*ret = (struct tcp_info){ 0 };
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, ret, &n) == 0;
}

bool sock_is_dead(int fd)
{
	struct tcp_info info;

	return sock_info(fd, &info) && info.tcpi_state == SOCK_STATE_CLOSE;
}

uint64_t sock_acked(int fd)
{
	struct tcp_info info;

	return sock_info(fd, &info) ? info.tcpi_bytes_acked : 0;
}

static int sock_end(int fd, int (*get)(int, struct sockaddr *, socklen_t *),
		    struct ip_endpoint *ret)
{
	struct sockaddr_storage ss = { 0 };
	socklen_t n = sizeof(ss);
	struct ip_endpoint end;
	int err;

	if (get(fd, (struct sockaddr *)&ss, &n) == -1)
		return -errno;
	err = ip_endpoint_from_sockaddr((const struct sockaddr *)&ss, n, &end);
	if (err)
		return err;
	end.addr = ip_addr_unmapped(&end.addr);
	*ret = end;
	return 0;
}

/* glibc declares both with a transparent union: plain wrappers take it off. */
static int get_local(int fd, struct sockaddr *sa, socklen_t *n)
{
	return getsockname(fd, sa, n);
}

static int get_peer(int fd, struct sockaddr *sa, socklen_t *n)
{
	return getpeername(fd, sa, n);
}

int sock_local(int fd, struct ip_endpoint *ret)
{
	return sock_end(fd, get_local, ret);
}

int sock_peer(int fd, struct ip_endpoint *ret)
{
	return sock_end(fd, get_peer, ret);
}

enum reason sock_connect_reason(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return REASON_CONNECT_REFUSED;
	case ETIMEDOUT:
		return REASON_CONNECT_TIMEOUT;
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EHOSTDOWN:
	case EADDRNOTAVAIL:
	case EAFNOSUPPORT:
		return REASON_CONNECT_UNREACHABLE;
	case EMFILE:
	case ENFILE:
		return REASON_DESCRIPTORS_EXCEEDED;
	case ENOMEM:
	case ENOBUFS:
		return REASON_MEMORY_EXCEEDED;
	default:
		return REASON_CONNECT_FAILED;
	}
}
