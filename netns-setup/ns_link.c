/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns_link.c - lo and "AnyIP" routes, through rtnetlink
 *
 *	ip link set lo up
 *	ip addr add 192.0.2.1/32 dev lo
 *	ip addr add 2001:db8:0:ffff::1/128 dev lo nodad
 *	ip route add local default dev lo src 192.0.2.1
 *	ip -6 route add local default dev lo src 2001:db8:0:ffff::1
 *
 * The addresses are there so that getaddrinfo()'s AI_ADDRCONFIG sees a family;
 * the routes deliver every address to this namespace.  Without nodad the IPv6
 * address would stay tentative and the first connections would fail.
 */
#include "netns-setup/ns_link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>

#include "base/fd.h"
#include "netns-setup/fault.h"
#include "netns-setup/nl.h"

#define LO_INDEX	1	/* of lo, in every network namespace */
#define BATCH_SIZE	1024	/* bytes: an address, a route and the link */

struct family {
	int af;
	const char *addr;
	uint8_t bits;
	size_t size;
	uint32_t flags;
};

static const struct family families[] = {
	{ AF_INET, NS_ADDR4, 32, sizeof(struct in_addr), 0 },
	{ AF_INET6, NS_ADDR6, 128, sizeof(struct in6_addr), IFA_F_NODAD },
};

static struct nlmsghdr *put_head(struct mnl_nlmsg_batch *b, uint16_t type,
				 uint32_t *seq)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(mnl_nlmsg_batch_current(b));

	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	if (type != RTM_SETLINK)
		h->nlmsg_flags |= NLM_F_CREATE | NLM_F_REPLACE;
	h->nlmsg_seq = (*seq)++;
	return h;
}

static void put_lo_up(struct mnl_nlmsg_batch *b, uint32_t *seq)
{
	struct nlmsghdr *h = put_head(b, RTM_SETLINK, seq);
	struct ifinfomsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));

	m->ifi_family = AF_UNSPEC;
	m->ifi_index = LO_INDEX;
	m->ifi_change = IFF_UP;
	m->ifi_flags = IFF_UP;
	mnl_nlmsg_batch_next(b);
}

static void put_addr(struct mnl_nlmsg_batch *b, const struct family *f,
		     const void *addr, uint32_t *seq)
{
	struct nlmsghdr *h = put_head(b, RTM_NEWADDR, seq);
	struct ifaddrmsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));

	m->ifa_family = (uint8_t)f->af;
	m->ifa_prefixlen = f->bits;
	m->ifa_scope = RT_SCOPE_UNIVERSE;
	m->ifa_index = LO_INDEX;
	mnl_attr_put(h, IFA_LOCAL, f->size, addr);
	mnl_attr_put(h, IFA_ADDRESS, f->size, addr);
	if (f->flags)
		mnl_attr_put_u32(h, IFA_FLAGS, f->flags);
	mnl_nlmsg_batch_next(b);
}

static void put_route(struct mnl_nlmsg_batch *b, const struct family *f,
		      const void *addr, uint32_t *seq)
{
	struct nlmsghdr *h = put_head(b, RTM_NEWROUTE, seq);
	struct rtmsg *m = mnl_nlmsg_put_extra_header(h, sizeof(*m));

	m->rtm_family = (uint8_t)f->af;
	m->rtm_table = RT_TABLE_LOCAL;
	m->rtm_protocol = RTPROT_STATIC;
	m->rtm_scope = f->af == AF_INET ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
	m->rtm_type = RTN_LOCAL;
	mnl_attr_put_u32(h, RTA_OIF, LO_INDEX);
	mnl_attr_put(h, RTA_PREFSRC, f->size, addr);
	mnl_nlmsg_batch_next(b);
}

/* lo goes up with the first family; an address and a route for each. */
static int family_up(int fd, const struct family *f)
{
	char msgs[2 * BATCH_SIZE];
	struct mnl_nlmsg_batch *b;
	uint8_t addr[sizeof(struct in6_addr)];
	uint32_t first = f->af == AF_INET ? 1 : 100, seq = first;
	int err;

	if (inet_pton(f->af, f->addr, addr) != 1)
		return -EINVAL;
	b = mnl_nlmsg_batch_start(msgs, BATCH_SIZE);
	if (!b)
		return -ENOMEM;
	if (f->af == AF_INET)
		put_lo_up(b, &seq);
	put_addr(b, f, addr, &seq);
	put_route(b, f, addr, &seq);
	err = nl_commit(fd, mnl_nlmsg_batch_head(b), mnl_nlmsg_batch_size(b),
			first, seq - 1, NULL);
	mnl_nlmsg_batch_stop(b);
	return err;
}

/* Compiled out, ipv6.disable=1, or disable_ipv6 set for the namespace. */
static bool means_no_ipv6(int err)
{
	return err == -EOPNOTSUPP || err == -EAFNOSUPPORT || err == -EACCES ||
	       err == -ENODEV;
}

int ns_link_up(bool *ret_v6, struct launch_error *err)
{
	CLEANUP(fd_closep) int fd = -1;
	int e = nl_open(NETLINK_ROUTE, &fd);

	if (e)
		return fault(err, -e, "cannot open a route socket");
	e = family_up(fd, &families[0]);
	if (e)
		return fault(err, -e, "cannot set up the sandbox's lo");
	e = family_up(fd, &families[1]);
	if (e && !means_no_ipv6(e))
		return fault(err, -e, "cannot set up IPv6 on the sandbox's lo");
	*ret_v6 = !e;
	return 0;
}
