/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_route.c - which routes lead to this host itself, and which to the world
 *
 * To the world: the kernel is asked for the route to one global address,
 * instead of for all of its routes, which may be very many: policy routing,
 * metrics, unreachable routes and the choice of a source address are then its
 * business.  What it answers with counts when it is an ordinary route, by
 * another device than loopback, from an address that is not link-local: the
 * default route, or what does its work.
 *
 * To this host: a route of type local makes every address in it the host's
 * own, without being an address of a device ("ip route add local 203.0.113.0/24
 * dev lo"); so does one of type anycast in IPv6, which a router has for each of
 * its networks.  Those of the tables local and main are taken, since they are
 * what an unmarked flow of ours meets.  Other tables are not: what is in them
 * holds for flows that a rule sends there, and recipes for transparent proxies
 * have "local default" in one, for what others send through this host.
 *
 * A default route of type local would make the host's own whatever is not
 * routed elsewhere.  In the table local it comes before all that leads out,
 * and is taken at its word: everything that is dialled then arrives here.  In
 * main it may never be used, because an ordinary default route has a better
 * metric, and refusing the Internet for its sake would be a fault; whether it
 * is used the kernel knows, and is asked (host_route_far()).  That also finds
 * the one in a table of its own, should a rule send all there.
 *
 * Not the host's own: addresses in other network namespaces of this machine,
 * which are neighbours, known by the prefix of the link between; broadcast
 * addresses, which no TCP connection can be made to; multicast, a class of its
 * own.  Addresses of devices in a VRF are the host's, as all addresses are;
 * local routes by hand in a VRF's table are not seen, nor met by flows that
 * are not bound to it.
 */
#include "proxy/host_route.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

#include "proxy/host_nets.h"
#include "proxy/host_nl.h"

#define ROUTE_BUF	2048
#define LOOPBACK	1	/* the first device of every network namespace */

/* 192.0.0.8: the dummy address, which nobody has (RFC 7600 4.8). */
static const struct ip_addr far4 = { IP_V4, { 192, 0, 0, 8 } };
/* 2000::1: in 2000::/3, all that is global, and in no block of its own. */
static const struct ip_addr far6 = { IP_V6, { 0x20, [15] = 1 } };

struct route {
	uint8_t type;
	uint32_t device;
	bool has_source, source_is_local;
};

static size_t addr_bytes(unsigned af)
{
	return af == AF_INET ? 4 : 16;
}

/* --- to the world ---------------------------------------------------------- */

bool host_route_is_global(const struct ip_addr *a, unsigned bits)
{
	return a->family == IP_V6 && (a->b[0] & 0xe0) == 0x20 && bits < 128;
}

static int far_attr_cb(const struct nlattr *attr, void *data)
{
	struct route *r = data;
	const uint8_t *p = mnl_attr_get_payload(attr);

	if (mnl_attr_get_type(attr) == RTA_OIF &&
	    mnl_attr_get_payload_len(attr) == sizeof(r->device)) {
		r->device = mnl_attr_get_u32(attr);
	} else if (mnl_attr_get_type(attr) == RTA_PREFSRC &&
		   mnl_attr_get_payload_len(attr) == 16) {
		r->has_source = true;
		r->source_is_local = p[0] == 0xfe && (p[1] & 0xc0) == 0x80;
	}
	return MNL_CB_OK;
}

static int far_cb(const struct nlmsghdr *h, void *data)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(h);
	struct route *r = data;

	if (h->nlmsg_type != RTM_NEWROUTE ||
	    mnl_nlmsg_get_payload_len(h) < sizeof(*rtm))
		return MNL_CB_OK;
	r->type = rtm->rtm_type;
	if (mnl_attr_parse(h, sizeof(*rtm), far_attr_cb, r) < 0)
		return MNL_CB_ERROR;
	return MNL_CB_STOP;
}

static int far_request(int fd, uint32_t seq, const struct ip_addr *to)
{
	_Alignas(struct nlmsghdr) char buf[MNL_NLMSG_HDRLEN + 64] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct rtmsg *rtm;

	nlh->nlmsg_type = RTM_GETROUTE;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = seq;
	rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	rtm->rtm_family = to->family == IP_V4 ? AF_INET : AF_INET6;
	rtm->rtm_dst_len = (unsigned char)ip_addr_bits(to);
	mnl_attr_put(nlh, RTA_DST, addr_bytes(rtm->rtm_family), to->b);
	return send(fd, nlh, nlh->nlmsg_len, 0) < 0 ? -errno : 0;
}

/* "No route" comes as an error, and which one depends on what shuts the way, up
 * to a kernel without the family; only these say nothing of it. */
static bool is_no_route(int err)
{
	return err != ENOMEM && err != ENOBUFS && err != EINTR;
}

int host_route_far(int fd, uint32_t *seq, enum ip_family family,
		   struct host_way *ret)
{
	_Alignas(struct nlmsghdr) char buf[ROUTE_BUF];
	const struct ip_addr *to = family == IP_V4 ? &far4 : &far6;
	struct route r = { .type = RTN_UNSPEC };
	ssize_t got;
	int err = far_request(fd, ++*seq, to);

	if (err < 0 && !is_no_route(-err))
		return err;
	if (err == 0) {
		got = recv(fd, buf, sizeof(buf), 0);
		if (got < 0)
			return -errno;
		if (mnl_cb_run(buf, (size_t)got, *seq, 0, far_cb, &r) < 0 &&
		    !is_no_route(errno))
			return -errno;
	}
	*ret = (struct host_way){
		.to = *to,
		.out = r.type == RTN_UNICAST && r.device != LOOPBACK &&
		       r.has_source && !r.source_is_local,
		.self = r.type == RTN_LOCAL,
	};
	return 0;
}

/* --- to this host ---------------------------------------------------------- */

/* What is asked for; the table local is small, main may be all the Internet's. */
static const struct own_question {
	uint8_t family, table, type;
} own_questions[] = {
	{ AF_INET, RT_TABLE_LOCAL, RTN_UNSPEC },
	{ AF_INET, RT_TABLE_MAIN, RTN_LOCAL },
	{ AF_INET6, RT_TABLE_LOCAL, RTN_UNSPEC },
	{ AF_INET6, RT_TABLE_MAIN, RTN_LOCAL },
	{ AF_INET6, RT_TABLE_MAIN, RTN_ANYCAST },
};

struct own_dump {
	const struct own_question *q;
	struct host_nets *own;
	int err;
};

static int own_attr_cb(const struct nlattr *attr, void *data)
{
	const struct nlattr **dst = data;

	if (mnl_attr_get_type(attr) == RTA_DST)
		*dst = attr;
	return MNL_CB_OK;
}

/* Is it one that was asked for?  An old kernel gives all it has. */
static bool is_own(const struct rtmsg *rtm, const struct own_question *q)
{
	if (rtm->rtm_family != q->family || rtm->rtm_table != q->table ||
	    rtm->rtm_flags & RTM_F_CLONED)
		return false;
	if (rtm->rtm_dst_len == 0 && q->table == RT_TABLE_MAIN)
		return false;
	return rtm->rtm_type == RTN_LOCAL ||
	       (rtm->rtm_type == RTN_ANYCAST && q->family == AF_INET6);
}

static int own_cb(const struct nlmsghdr *h, void *data)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(h);
	const struct nlattr *dst = NULL;
	struct own_dump *d = data;
	struct ip_addr a = {
		.family = d->q->family == AF_INET ? IP_V4 : IP_V6,
	};

	if (h->nlmsg_type != RTM_NEWROUTE ||
	    mnl_nlmsg_get_payload_len(h) < sizeof(*rtm) ||
	    !is_own(rtm, d->q) || rtm->rtm_dst_len > ip_addr_bits(&a))
		return MNL_CB_OK;
	if (mnl_attr_parse(h, sizeof(*rtm), own_attr_cb, &dst) < 0)
		return MNL_CB_OK;
	if (dst && mnl_attr_get_payload_len(dst) == addr_bytes(d->q->family))
		memcpy(a.b, mnl_attr_get_payload(dst),
		       addr_bytes(d->q->family));
	else if (rtm->rtm_dst_len > 0)
		return MNL_CB_OK;
	if (d->err == 0)
		d->err = host_nets_add(d->own, &a, rtm->rtm_dst_len);
	return MNL_CB_OK;
}

/* There is no such table, or no such family: nothing is in it. */
static bool is_nothing(int err)
{
	return err == -ENOENT || err == -EOPNOTSUPP || err == -EAFNOSUPPORT ||
	       err == -EPFNOSUPPORT;
}

static int own_ask(int fd, uint32_t seq, const struct own_question *q,
		   struct host_nets *own)
{
	_Alignas(struct nlmsghdr) char buf[MNL_NLMSG_HDRLEN + 64] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct own_dump d = { .q = q, .own = own };
	struct rtmsg *rtm;
	int err;

	nlh->nlmsg_type = RTM_GETROUTE;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = seq;
	rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	rtm->rtm_family = q->family;
	rtm->rtm_table = q->table;
	rtm->rtm_type = q->type;
	err = host_nl_dump(fd, nlh, own_cb, &d);
	if (is_nothing(err))
		return 0;
	return err ? err : d.err;
}

int host_route_own(int fd, uint32_t *seq, struct host_nets *own)
{
	size_t i;
	int err = 0;

	for (i = 0; err == 0 && i < ARRAY_SIZE(own_questions); i++)
		err = own_ask(fd, ++*seq, &own_questions[i], own);
	return err;
}
