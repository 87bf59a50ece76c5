/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_lab.c - a network of a test's own, and ends of connections to pull at
 */
#include "tests/unit/proxy_lab.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "base/ip_addr.h"

#define LAB_WATCHDOG_S	120

static void lo_up(void)
{
	struct ifreq ifr = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	REQUIRE(fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &ifr) == 0);
	close(fd);
}

/* ip route add local @net dev lo table local */
static void local_route(const char *net)
{
	struct {
		struct nlmsghdr h;
		struct rtmsg rt;
		char attr[64];
	} m = { 0 };
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct ip_net parsed;
	struct rtattr *a;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int lo = (int)if_nametoindex("lo");
	char answer[512];
	struct nlmsghdr *ack = (void *)answer;
	size_t n;

	REQUIRE(fd >= 0 && ip_net_parse(str_from(net), &parsed) == 0);
	n = parsed.addr.family == IP_V4 ? 4 : 16;
	m.h.nlmsg_type = RTM_NEWROUTE;
	m.h.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK;
	m.h.nlmsg_len = NLMSG_LENGTH(sizeof(m.rt));
	m.rt.rtm_family = n == 4 ? AF_INET : AF_INET6;
	m.rt.rtm_dst_len = parsed.bits;
	m.rt.rtm_table = RT_TABLE_LOCAL;
	m.rt.rtm_type = RTN_LOCAL;
	m.rt.rtm_scope = RT_SCOPE_HOST;
	m.rt.rtm_protocol = RTPROT_STATIC;
	a = (void *)((char *)&m + NLMSG_ALIGN(m.h.nlmsg_len));
	a->rta_type = RTA_DST;
	a->rta_len = (unsigned short)RTA_LENGTH(n);
	memcpy(RTA_DATA(a), parsed.addr.b, n);
	m.h.nlmsg_len += RTA_SPACE(n);
	a = (void *)((char *)&m + NLMSG_ALIGN(m.h.nlmsg_len));
	a->rta_type = RTA_OIF;
	a->rta_len = RTA_LENGTH(sizeof(lo));
	memcpy(RTA_DATA(a), &lo, sizeof(lo));
	m.h.nlmsg_len += RTA_SPACE(sizeof(lo));
	REQUIRE(sendto(fd, &m, m.h.nlmsg_len, 0, (void *)&kernel,
		       sizeof(kernel)) > 0);
	REQUIRE(recv(fd, answer, sizeof(answer), 0) > 0);
	REQUIRE(ack->nlmsg_type == NLMSG_ERROR &&
		((struct nlmsgerr *)NLMSG_DATA(ack))->error == 0);
	close(fd);
}

void lab_enter_bare(void)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) == -1 &&
	    unshare(CLONE_NEWNET) == -1) {
		printf("1..0 # SKIP no namespaces here: %s\n",
		       strerror(errno));
		exit(0);
	}
	alarm(LAB_WATCHDOG_S);
	lo_up();
}

void lab_enter(void)
{
	static const char *const nets[] = {
		"203.0.113.0/24", "198.51.100.0/24", "198.18.0.0/15",
		"169.254.0.0/16", "10.0.0.0/8", "2001:db8:3::/48",
		"fd70:656e:7374:6f63::/64",
	};
	size_t i;

	lab_enter_bare();
	for (i = 0; i < ARRAY_SIZE(nets); i++)
		local_route(nets[i]);
}

static socklen_t lab_address(const char *addr, uint16_t port,
			     struct sockaddr_storage *ret)
{
	struct ip_endpoint e = { .port = port };

	assert_int_equal(ip_addr_parse(str_from(addr), &e.addr), 0);
	return ip_endpoint_to_sockaddr(&e, ret);
}

int lab_listen(const char *addr, uint16_t port, uint16_t *ret_port)
{
	struct sockaddr_storage ss;
	socklen_t n = lab_address(addr, port, &ss);
	struct ip_endpoint e;
	int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC |
			SOCK_NONBLOCK, 0);
	int on = 1;

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	/* A local route is no address of an interface to IPv6's bind(). */
	if (ss.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &on, sizeof(on));
	assert_int_equal(bind(fd, (void *)&ss, n), 0);
	assert_int_equal(listen(fd, 512), 0);
	n = sizeof(ss);
	assert_int_equal(getsockname(fd, (void *)&ss, &n), 0);
	assert_int_equal(ip_endpoint_from_sockaddr((void *)&ss, n, &e), 0);
	if (ret_port)
		*ret_port = e.port;
	return fd;
}

int lab_connect(const char *addr, uint16_t port)
{
	struct sockaddr_storage ss;
	socklen_t n = lab_address(addr, port, &ss);
	int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (void *)&ss, n), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

struct ip_endpoint lab_src;

int lab_accept(int listener)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	struct sockaddr_storage ss = { 0 };
	socklen_t n = sizeof(ss);
	int fd;

	assert_int_equal(poll(&p, 1, -1), 1);
	fd = accept4(listener, (void *)&ss, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
	assert_true(fd >= 0);
	assert_int_equal(ip_endpoint_from_sockaddr((void *)&ss, n, &lab_src),
			 0);
	lab_src.addr = ip_addr_unmapped(&lab_src.addr);
	return fd;
}

void lab_pair(int ret[2])
{
	uint16_t port;
	int listener = lab_listen("127.0.0.1", 0, &port);

	ret[0] = lab_connect("127.0.0.1", port);
	ret[1] = lab_accept(listener);
	close(listener);
}

void lab_small_buffers(int fd)
{
	int small = 32 << 10;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
}

void lab_reset(int fd)
{
	struct linger now = { .l_onoff = 1, .l_linger = 0 };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now,
				    sizeof(now)), 0);
	close(fd);
}

size_t lab_open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

void lab_turn(struct event_base *base)
{
	if (base)
		event_base_loop(base, EVLOOP_NONBLOCK);
}

void lab_wait_readable(struct event_base *base, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	do
		lab_turn(base);
	while (poll(&p, 1, 0) == 0);
}

void lab_send(struct event_base *base, int fd, struct str s)
{
	while (s.n) {
		ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL);

		if (n < 0) {
			assert_int_equal(errno, EAGAIN);
			n = 0;
		}
		s.p += n;
		s.n -= (size_t)n;
		lab_turn(base);
	}
}

void lab_recv(struct event_base *base, int fd, char *out, size_t n)
{
	while (n) {
		ssize_t got;

		lab_wait_readable(base, fd);
		got = recv(fd, out, n, 0);
		if (got < 0)
			fail_msg("reading: %s", strerror(errno));
		assert_int_not_equal(got, 0);
		out += got;
		n -= (size_t)got;
	}
}

void lab_expect(struct event_base *base, int fd, const char *text)
{
	char got[4096];
	size_t n = strlen(text);

	assert_true(n < sizeof(got));
	lab_recv(base, fd, got, n);
	got[n] = '\0';
	assert_string_equal(got, text);
}

void lab_expect_fin(struct event_base *base, int fd)
{
	char c;

	lab_wait_readable(base, fd);
	assert_int_equal(recv(fd, &c, 1, 0), 0);
}

void lab_expect_reset(struct event_base *base, int fd)
{
	char c;

	lab_wait_readable(base, fd);
	assert_int_equal(recv(fd, &c, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
}

size_t lab_recv_all(struct event_base *base, int fd, char *out, size_t cap)
{
	size_t n = 0;

	while (n < cap) {
		ssize_t got;

		lab_wait_readable(base, fd);
		got = recv(fd, out + n, cap - n, 0);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return n;
}
