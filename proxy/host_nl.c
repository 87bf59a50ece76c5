/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_nl.c - rtnetlink, as far as this host's own addresses are asked for
 *
 * The kernel answers before send() returns, and goes on with a dump while it
 * is read: nothing here waits.
 */
#include "proxy/host_nl.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/fd.h"

#define NL_BUF		8192	/* a dump comes in pieces that fit */
#define NL_DRAIN_MAX	1024

/* A network of global addresses that a default route may be made of is at most
 * that long; the table of a whole Internet has next to none of them. */
#define NL_WORLD_BITS	16

#ifndef SOL_NETLINK
#define SOL_NETLINK	270
#endif

static int nl_socket(unsigned groups, int *ret_fd)
{
	struct sockaddr_nl local = {
		.nl_family = AF_NETLINK,
		.nl_groups = groups,
	};
	CLEANUP(fd_closep) int fd = -1;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    NETLINK_ROUTE);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&local, sizeof(local)) < 0)
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}

int host_nl_open(int *ret_fd)
{
	int on = 1, err = nl_socket(0, ret_fd);

	/* Tables and types of routes are then chosen by the kernel; where it
	 * does not, all of them come, and those who asked choose. */
	if (err == 0)
		(void)setsockopt(*ret_fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK,
				 &on, sizeof(on));
	return err;
}

/* --- notices ------------------------------------------------------------- */

/* The low byte of a number: both architectures are little-endian. */
#define AT_TYPE		offsetof(struct nlmsghdr, nlmsg_type)
#define AT_ROUTE(field)	(NLMSG_HDRLEN + offsetof(struct rtmsg, field))
#define LOAD(at)	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (at))
/* Over the next @yes instructions where it holds, else over @no. */
#define IS(v, yes, no)	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (v), (yes), (no))
#define ABOVE(v, yes, no) BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (v), (yes), (no))
#define RETURN(v)	BPF_STMT(BPF_RET | BPF_K, (v))

static int nl_filter(int fd)
{
	static struct sock_filter insn[] = {
		LOAD(AT_TYPE),
		IS(RTM_NEWADDR, 12, 0),
		IS(RTM_DELADDR, 11, 0),
		/* It takes routes along, and IPv4 is silent about them. */
		IS(RTM_DELLINK, 10, 0),
		IS(RTM_NEWROUTE, 1, 0),
		IS(RTM_DELROUTE, 0, 7),
		LOAD(AT_ROUTE(rtm_type)),
		IS(RTN_LOCAL, 6, 0),
		IS(RTN_ANYCAST, 5, 0),
		LOAD(AT_ROUTE(rtm_family)),
		IS(AF_INET6, 0, 2),
		LOAD(AT_ROUTE(rtm_dst_len)),
		ABOVE(NL_WORLD_BITS, 0, 1),
		RETURN(0),
		RETURN(UINT32_MAX),
	};
	const struct sock_fprog prog = { ARRAY_SIZE(insn), insn };

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
		       sizeof(prog)) < 0)
		return -errno;
	return 0;
}

int host_nl_hear(int *ret_fd)
{
	CLEANUP(fd_closep) int fd = -1;
	int err = nl_socket(RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
			    RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE |
			    RTMGRP_LINK, &fd);

	if (err == 0)
		err = nl_filter(fd);
	if (err == 0)
		*ret_fd = fd_take(&fd);
	return err;
}

/* --- questions ----------------------------------------------------------- */

/* Its end may say that it failed, which libmnl does not look at. */
static int nl_on_done(const struct nlmsghdr *h, void *data UNUSED)
{
	const int *err = mnl_nlmsg_get_payload(h);

	if (mnl_nlmsg_get_payload_len(h) < sizeof(*err) || *err >= 0)
		return MNL_CB_STOP;
	errno = -*err;
	return MNL_CB_ERROR;
}

int host_nl_dump(int fd, const struct nlmsghdr *request, mnl_cb_t cb,
		 void *arg)
{
	static mnl_cb_t control[NLMSG_MIN_TYPE] = {
		[NLMSG_DONE] = nl_on_done,
	};
	_Alignas(struct nlmsghdr) char buf[NL_BUF];

	if (send(fd, request, request->nlmsg_len, 0) < 0)
		return -errno;
	for (;;) {
		ssize_t got = recv(fd, buf, sizeof(buf), 0);
		int more;

		if (got < 0)
			return -errno;
		more = mnl_cb_run2(buf, (size_t)got, request->nlmsg_seq, 0, cb,
				   arg, control, ARRAY_SIZE(control));
		if (more < 0)
			return -errno;	/* EINTR: a change overtook us */
		if (more == MNL_CB_STOP)
			return 0;
	}
}

void host_nl_drain(int fd)
{
	char first;
	unsigned i;

	for (i = 0; i < NL_DRAIN_MAX; i++)
		if (recv(fd, &first, sizeof(first), 0) < 0)
			return;
}
