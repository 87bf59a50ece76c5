/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_route.c - does this host reach the world by IPv6?
 *
 * The kernel is asked for the route to one global address, instead of for all
 * of its routes, which may be very many: policy routing, metrics, unreachable
 * routes and the choice of a source address are then its business.  What it
 * answers with counts when it is an ordinary route, by another device than
 * loopback, from an address that is not link-local: the default route, or what
 * does its work.
 */
#include "proxy/host_route.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <libmnl/libmnl.h>

#define ROUTE_BUF	2048
#define LOOPBACK	1	/* the first device of every network namespace */

/* 2000::1: in 2000::/3, all that is global, and in no block of its own. */
static const uint8_t far_away[16] = { 0x20, [15] = 1 };

struct route {
	bool ordinary;
	uint32_t device;
	bool has_source, source_is_local;
};

bool host_route_is_global(const struct ip_addr *a, unsigned bits)
{
	return a->family == IP_V6 && (a->b[0] & 0xe0) == 0x20 && bits < 128;
}

static int route_attr_cb(const struct nlattr *attr, void *data)
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

static int route_cb(const struct nlmsghdr *h, void *data)
{
	const struct rtmsg *rtm = mnl_nlmsg_get_payload(h);
	struct route *r = data;

	if (h->nlmsg_type != RTM_NEWROUTE ||
	    mnl_nlmsg_get_payload_len(h) < sizeof(*rtm))
		return MNL_CB_OK;
	r->ordinary = rtm->rtm_type == RTN_UNICAST;
	if (mnl_attr_parse(h, sizeof(*rtm), route_attr_cb, r) < 0)
		return MNL_CB_ERROR;
	return MNL_CB_STOP;
}

static int route_request(int fd, uint32_t seq)
{
	_Alignas(struct nlmsghdr) char buf[MNL_NLMSG_HDRLEN + 64] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct rtmsg *rtm;

	nlh->nlmsg_type = RTM_GETROUTE;
	nlh->nlmsg_flags = NLM_F_REQUEST;
	nlh->nlmsg_seq = seq;
	rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	rtm->rtm_family = AF_INET6;
	rtm->rtm_dst_len = 128;
	mnl_attr_put(nlh, RTA_DST, sizeof(far_away), far_away);
	return send(fd, nlh, nlh->nlmsg_len, 0) < 0 ? -errno : 0;
}

/* "No route" comes as an error, and which one depends on what shuts the way, up
 * to a kernel without IPv6; only these say nothing of it. */
static bool is_no_route(int err)
{
	return err != ENOMEM && err != ENOBUFS && err != EINTR;
}

/* The kernel answers before send() returns: nothing here waits. */
int host_route_ipv6(int fd, uint32_t seq, bool *ret)
{
	_Alignas(struct nlmsghdr) char buf[ROUTE_BUF];
	struct route r = { .ordinary = false };
	ssize_t got;
	int err = route_request(fd, seq);

	if (err < 0 && !is_no_route(-err))
		return err;
	if (err == 0) {
		got = recv(fd, buf, sizeof(buf), 0);
		if (got < 0)
			return -errno;
		if (mnl_cb_run(buf, (size_t)got, seq, 0, route_cb, &r) < 0 &&
		    !is_no_route(errno))
			return -errno;
	}
	*ret = r.ordinary && r.device != LOOPBACK && r.has_source &&
	       !r.source_is_local;
	return 0;
}
