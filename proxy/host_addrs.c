/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_addrs.c - the addresses of this host, kept current by rtnetlink
 *
 * Two sockets, both made before the seal: one hears that something changed
 * (an address, or a route of IPv6), the other asks for all addresses, and
 * whether there is a way to the world by IPv6 (host_route.c).  Notices are
 * only a reason to look again, so that a lost one (ENOBUFS) is no error.  The
 * first notice is followed at once, those within HOST_ADDRS_GAP_MS after it
 * together.
 *
 * A snapshot is counted: one reference is ours while it is current, one is
 * each worker's.  It carries the mail by which it is delivered, one a worker,
 * so that delivery cannot fail.
 */
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/event.h>
#include <libmnl/libmnl.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/host_addrs.h"
#include "proxy/host_route.h"
#include "proxy/worker.h"

#define HOST_ADDRS_BUF		8192	/* a dump comes in pieces that fit */
#define HOST_ADDRS_TRIES	5	/* a dump that was overtaken by a change */

struct snapshot;

struct snapshot_mail {
	struct mail mail;
	struct snapshot *snapshot;
};

struct snapshot {
	atomic_uint refs;
	struct snapshot_mail *mail;	/* one a worker */
	struct ip_hosts hosts;		/* ends in its networks: last */
};

struct host_addrs {
	struct snapshot *current;
	struct worker *const *worker;
	size_t nworkers;
	int ask_fd, hear_fd;
	struct event *heard, *gap;
	uint32_t seq;
	bool again;			/* heard something during the gap */
};

struct host_dump {
	struct ip_net *net;
	size_t n, cap;
	unsigned lo;			/* index of the loopback interface */
	bool full;
	bool ipv6;			/* there is a way out by it */
	int err;
};

/* --- snapshots ----------------------------------------------------------- */

static void snapshot_unref(struct snapshot *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	mem_free(s->mail);
	mem_free(s);
}

static int snapshot_new(const struct host_dump *d, size_t nworkers,
			struct snapshot **ret)
{
	size_t bytes = d->n * sizeof(d->net[0]);
	struct snapshot *s = mem_new(sizeof(*s) + bytes);

	if (!s)
		return -ENOMEM;
	s->mail = mem_new_array(nworkers ? nworkers : 1, sizeof(s->mail[0]));
	if (!s->mail) {
		mem_free(s);
		return -ENOMEM;
	}
	atomic_init(&s->refs, 1);
	s->hosts.no_ipv6 = !d->ipv6;
	s->hosts.n = d->n;
	if (bytes)
		memcpy(s->hosts.net, d->net, bytes);
	*ret = s;
	return 0;
}

static struct snapshot *snapshot_of(const struct ip_hosts *hosts)
{
	struct ip_hosts *h = (struct ip_hosts *)(uintptr_t)hosts;

	return h ? container_of(h, struct snapshot, hosts) : NULL;
}

/* On the worker's thread. */
static void snapshot_on_mail(void *owner, struct mail *mail)
{
	struct snapshot_mail *m = container_of(mail, struct snapshot_mail,
					       mail);
	struct worker *w = owner;
	struct snapshot *old = snapshot_of(w->hosts);

	w->hosts = &m->snapshot->hosts;
	snapshot_unref(old);
}

static void host_addrs_deliver(struct host_addrs *h)
{
	size_t i;

	for (i = 0; i < h->nworkers; i++) {
		struct snapshot_mail *m = &h->current->mail[i];

		m->snapshot = h->current;
		atomic_fetch_add(&h->current->refs, 1);
		worker_post(h->worker[i], &m->mail, snapshot_on_mail);
	}
}

/* --- asking the kernel --------------------------------------------------- */

static int host_net_cmp(const void *a, const void *b)
{
	const struct ip_net *x = a, *y = b;
	int by_addr = ip_addr_cmp(&x->addr, &y->addr);

	return by_addr ? by_addr : (int)x->bits - (int)y->bits;
}

static void host_dump_add(struct host_dump *d, const struct ip_addr *a,
			  unsigned bits)
{
	struct ip_net *net;
	size_t cap;

	if (d->n >= HOST_ADDRS_MAX) {
		d->full = true;
		return;
	}
	if (d->n == d->cap) {
		cap = d->cap ? d->cap * 2 : 32;
		net = mem_grow(d->net, cap, sizeof(*net));
		if (!net) {
			d->err = -ENOMEM;
			return;
		}
		d->net = net;
		d->cap = cap;
	}
	net = &d->net[d->n++];
	*net = (struct ip_net){ .addr = *a, .bits = (uint8_t)bits };
	for (unsigned i = 0; i < sizeof(net->addr.b); i++) {
		unsigned from = i * 8;

		if (bits <= from)
			net->addr.b[i] = 0;
		else if (bits < from + 8)
			net->addr.b[i] &= (uint8_t)(0xff << (from + 8 - bits));
	}
}

static bool host_attr_addr(const struct nlattr *attr, unsigned family,
			   struct ip_addr *ret)
{
	size_t need = family == AF_INET ? 4 : 16;

	if (!attr || mnl_attr_get_payload_len(attr) != need)
		return false;
	*ret = (struct ip_addr){
		.family = family == AF_INET ? IP_V4 : IP_V6,
	};
	memcpy(ret->b, mnl_attr_get_payload(attr), need);
	return true;
}

struct host_addr_attrs {
	const struct nlattr *local, *address;
};

static int host_attr_cb(const struct nlattr *attr, void *data)
{
	struct host_addr_attrs *a = data;

	if (mnl_attr_get_type(attr) == IFA_LOCAL)
		a->local = attr;
	else if (mnl_attr_get_type(attr) == IFA_ADDRESS)
		a->address = attr;
	return MNL_CB_OK;
}

static int host_dump_cb(const struct nlmsghdr *h, void *data)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(h);
	struct host_addr_attrs attrs = { NULL, NULL };
	struct host_dump *d = data;
	struct ip_addr own, prefix;
	unsigned whole;

	if (h->nlmsg_type != RTM_NEWADDR ||
	    mnl_nlmsg_get_payload_len(h) < sizeof(*ifa) ||
	    (ifa->ifa_family != AF_INET && ifa->ifa_family != AF_INET6))
		return MNL_CB_OK;
	if (mnl_attr_parse(h, sizeof(*ifa), host_attr_cb, &attrs) < 0)
		return MNL_CB_OK;
	whole = ifa->ifa_family == AF_INET ? 32 : 128;
	/* Point to point: IFA_LOCAL is ours, IFA_ADDRESS the other end's. */
	if (host_attr_addr(attrs.local ? attrs.local : attrs.address,
			   ifa->ifa_family, &own))
		host_dump_add(d, &own, whole);
	if (host_attr_addr(attrs.address ? attrs.address : attrs.local,
			   ifa->ifa_family, &prefix) &&
	    ifa->ifa_index != d->lo && ifa->ifa_prefixlen > 0 &&
	    ifa->ifa_prefixlen <= whole) {
		host_dump_add(d, &prefix, ifa->ifa_prefixlen);
		d->ipv6 |= host_route_is_global(&prefix, ifa->ifa_prefixlen);
	}
	return MNL_CB_OK;
}

static int host_addrs_request(struct host_addrs *h)
{
	char buf[MNL_NLMSG_HDRLEN + 64] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifaddrmsg *ifa;

	nlh->nlmsg_type = RTM_GETADDR;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = ++h->seq;
	ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));
	ifa->ifa_family = AF_UNSPEC;
	if (send(h->ask_fd, nlh, nlh->nlmsg_len, 0) < 0)
		return -errno;
	return 0;
}

/* The kernel answers a dump while we read it: nothing here waits. */
static int host_addrs_dump(struct host_addrs *h, struct host_dump *d)
{
	_Alignas(struct nlmsghdr) char buf[HOST_ADDRS_BUF];
	int err = host_addrs_request(h);

	while (err == 0) {
		ssize_t got = recv(h->ask_fd, buf, sizeof(buf), 0);
		int more;

		if (got < 0)
			return -errno;
		more = mnl_cb_run(buf, (size_t)got, h->seq, 0, host_dump_cb,
				  d);
		if (more < 0)
			return -errno;	/* EINTR: a change overtook us */
		if (more == MNL_CB_STOP)
			break;
	}
	return err ? err : d->err;
}

/* What an interrupted dump left behind would answer the next question. */
static void host_addrs_drain(struct host_addrs *h)
{
	char first;
	unsigned i;

	for (i = 0; i < 1024; i++)
		if (recv(h->ask_fd, &first, sizeof(first), 0) < 0)
			return;
}

/* Addresses, and the way out; -EINTR when a change fell in between. */
static int host_addrs_ask(struct host_addrs *h, struct host_dump *d)
{
	bool route = false;
	int err;

	d->n = 0;
	d->ipv6 = false;
	host_addrs_drain(h);
	err = host_addrs_dump(h, d);
	if (err == 0)
		err = host_route_ipv6(h->ask_fd, ++h->seq, &route);
	d->ipv6 |= route;
	return err;
}

static void host_dump_sort(struct host_dump *d)
{
	size_t i, n = 0;

	if (d->n == 0)
		return;
	qsort(d->net, d->n, sizeof(d->net[0]), host_net_cmp);
	for (i = 1; i < d->n; i++)
		if (host_net_cmp(&d->net[n], &d->net[i]) != 0)
			d->net[++n] = d->net[i];
	d->n = n + 1;
}

static int host_addrs_look(struct host_addrs *h)
{
	/* Loopback is the first device of every network namespace. */
	struct host_dump d = { .lo = 1 };
	struct snapshot *s = NULL;
	int tries, err = -EINTR;

	for (tries = 0; err == -EINTR && tries < HOST_ADDRS_TRIES; tries++)
		err = host_addrs_ask(h, &d);
	if (err == 0) {
		host_dump_sort(&d);
		err = snapshot_new(&d, h->nworkers, &s);
	}
	if (d.full)
		log_error("this host has more than %d addresses and prefixes; those beyond are not known as its own",
			  HOST_ADDRS_MAX);
	mem_free(d.net);
	if (err < 0)
		return err;
	snapshot_unref(h->current);
	h->current = s;
	host_addrs_deliver(h);
	return 0;
}

/* --- hearing of changes -------------------------------------------------- */

static void host_addrs_look_again(struct host_addrs *h)
{
	static const struct timeval gap = {
		.tv_usec = HOST_ADDRS_GAP_MS * 1000,
	};
	int err = host_addrs_look(h);

	if (err < 0)
		log_error("cannot read this host's addresses: %s; the old ones stay in force",
			  strerror(-err));
	h->again = err < 0;
	(void)event_add(h->gap, &gap);
}

static void host_addrs_gap_cb(evutil_socket_t fd, short what, void *arg)
{
	struct host_addrs *h = arg;

	(void)fd;
	(void)what;
	if (h->again)
		host_addrs_look_again(h);
}

static void host_addrs_heard_cb(evutil_socket_t fd, short what, void *arg)
{
	char buf[4096];
	struct host_addrs *h = arg;
	ssize_t got;
	unsigned i;

	(void)what;
	for (i = 0; i < 64; i++) {
		got = recv(fd, buf, sizeof(buf), 0);
		if (got < 0 && errno != ENOBUFS)
			break;
	}
	if (event_pending(h->gap, EV_TIMEOUT, NULL))
		h->again = true;
	else
		host_addrs_look_again(h);
}

static int host_addrs_open(unsigned groups, int *ret_fd)
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

int host_addrs_new(struct host_addrs **ret)
{
	struct host_addrs *h = mem_new(sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	h->ask_fd = h->hear_fd = -1;
	/* First hear, then ask: no change falls in between. */
	err = host_addrs_open(RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR |
			      RTMGRP_IPV6_ROUTE, &h->hear_fd);
	if (err == 0)
		err = host_addrs_open(0, &h->ask_fd);
	if (err == 0)
		err = host_addrs_look(h);
	if (err < 0) {
		host_addrs_free(h);
		return err;
	}
	*ret = h;
	return 0;
}

int host_addrs_start(struct host_addrs *h, struct event_base *base,
		     struct worker *const *worker, size_t n)
{
	size_t i;

	h->heard = event_new(base, h->hear_fd, EV_READ | EV_PERSIST,
			     host_addrs_heard_cb, h);
	h->gap = event_new(base, -1, 0, host_addrs_gap_cb, h);
	if (!h->heard || !h->gap || event_add(h->heard, NULL) < 0)
		return -ENOMEM;
	h->worker = worker;
	h->nworkers = n;
	/* They do not run yet: no mail is needed, and they never lack one. */
	for (i = 0; i < n; i++) {
		atomic_fetch_add(&h->current->refs, 1);
		worker[i]->hosts = &h->current->hosts;
	}
	return 0;
}

void host_addrs_release(struct worker *w)
{
	snapshot_unref(snapshot_of(w->hosts));
	w->hosts = NULL;
}

const struct ip_hosts *host_addrs_peek(const struct host_addrs *h)
{
	return &h->current->hosts;
}

void host_addrs_free(struct host_addrs *h)
{
	if (!h)
		return;
	if (h->heard)
		event_free(h->heard);
	if (h->gap)
		event_free(h->gap);
	fd_closep(&h->ask_fd);
	fd_closep(&h->hear_fd);
	snapshot_unref(h->current);
	mem_free(h);
}
