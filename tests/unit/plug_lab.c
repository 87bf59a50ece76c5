/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_lab.c - what a launcher would bring, made in a namespace beside ours
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "base/fd.h"
#include "base/ip_addr.h"
#include "tests/unit/plug_lab.h"

#define SANDBOXES	3

static int sandbox_ns[SANDBOXES] = { -1, -1, -1 };

static void make_ns(unsigned which)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd;

	assert_int_equal(unshare(CLONE_NEWNET), 0);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
	close(fd);
	sandbox_ns[which] = open("/proc/thread-self/ns/net",
				 O_RDONLY | O_CLOEXEC);
	assert_true(sandbox_ns[which] >= 0);
}

void plug_lab_in(unsigned which, plug_lab_fn *fn, void *arg)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	assert_true(home >= 0);
	if (sandbox_ns[which] < 0)
		make_ns(which);
	else
		assert_int_equal(setns(sandbox_ns[which], CLONE_NEWNET), 0);
	fn(arg);
	assert_int_equal(setns(home, CLONE_NEWNET), 0);
	close(home);
}

static int make(const char *addr, uint16_t port, int type,
		const int (*on)[2])
{
	struct ip_endpoint e = { .port = port };
	struct sockaddr_storage ss;
	const int one = 1;
	socklen_t n;
	int fd;

	assert_int_equal(ip_addr_parse(str_from(addr), &e.addr), 0);
	n = ip_endpoint_to_sockaddr(&e, &ss);
	fd = socket(ss.ss_family, type | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	for (; (*on)[1]; on++)
		assert_int_equal(setsockopt(fd, (*on)[0], (*on)[1], &one,
					    sizeof(one)), 0);
	assert_int_equal(bind(fd, (void *)&ss, n), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 64), 0);
	return fd;
}

#define ON(...)	((const int [][2]){ __VA_ARGS__ __VA_OPT__(,) { 0, 0 } })
#define V6ONLY	{ IPPROTO_IPV6, IPV6_V6ONLY }

static void make_sockets(void *arg)
{
	int *fd = arg;

	fd[PLUG_FD_DNS_UDP4] = make("0.0.0.0", 53, SOCK_DGRAM,
				    ON({ IPPROTO_IP, IP_PKTINFO }));
	fd[PLUG_FD_DNS_UDP6] = make("::", 53, SOCK_DGRAM,
				    ON(V6ONLY,
				       { IPPROTO_IPV6, IPV6_RECVPKTINFO },
				       { IPPROTO_IPV6, IPV6_FREEBIND }));
	fd[PLUG_FD_DNS_TCP4] = make("0.0.0.0", 53, SOCK_STREAM, ON());
	fd[PLUG_FD_DNS_TCP6] = make("::", 53, SOCK_STREAM, ON(V6ONLY));
	fd[PLUG_FD_TPROXY4] = make(PLUG_TPROXY_ADDR4, 0, SOCK_STREAM,
				   ON({ IPPROTO_IP, IP_TRANSPARENT }));
	fd[PLUG_FD_TPROXY6] = make(PLUG_TPROXY_ADDR6, 0, SOCK_STREAM,
				   ON(V6ONLY,
				      { IPPROTO_IPV6, IPV6_TRANSPARENT }));
	fd[PLUG_FD_HTTP] = make(PLUG_HTTP_ADDR, PLUG_HTTP_PORT, SOCK_STREAM,
				ON());
	fd[PLUG_FD_SOCKS] = make(PLUG_SOCKS_ADDR, PLUG_SOCKS_PORT, SOCK_STREAM,
				 ON());
	fd[PLUG_FD_NFLOG] = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
				   NETLINK_NETFILTER);
	fd[PLUG_FD_DIAG] = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC,
				  NETLINK_SOCK_DIAG);
}

void plug_lab_sockets(unsigned which, int fd[PLUG_FDS])
{
	memset(fd, -1, PLUG_FDS * sizeof(fd[0]));
	plug_lab_in(which, make_sockets, fd);
}

void plug_lab_close(int fd[PLUG_FDS])
{
	size_t i;

	for (i = 0; i < PLUG_FDS; i++)
		fd_closep(&fd[i]);
}

struct plug_open plug_lab_open(const int fd[PLUG_FDS])
{
	struct plug_open o = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_OPEN },
		.run = "0193-run", .sandbox = "box.1", .nonce = "n0nce",
	};
	size_t i;

	for (i = 0; i < PLUG_FDS; i++)
		if (fd[i] >= 0)
			o.fds |= BIT(i);
	return o;
}
