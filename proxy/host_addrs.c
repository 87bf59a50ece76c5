/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_addrs.c - the addresses of this host, kept current by rtnetlink
 *
 * Two sockets, both made before the seal (host_nl.c): one hears that something
 * changed, the other asks for all addresses, for the routes that lead to this
 * host, and whether there is a way to the world by IPv6 (host_route.c).
 * Notices are only a reason to look again, so that a lost one (ENOBUFS) is no
 * error.  The first notice is followed at once, those in the gap after it
 * together.  The gap is HOST_ADDRS_GAP_MS, or as much longer as keeps us from
 * spending more than a tenth of our time on looking, where tables are large
 * and never at rest.
 *
 * A snapshot is counted: one reference is ours while it is current, one is
 * each worker's.  It carries the mail by which it is delivered, one a worker,
 * so that delivery cannot fail.
 */
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/event.h>
#include <libmnl/libmnl.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/host_addrs.h"
#include "proxy/host_nets.h"
#include "proxy/host_nl.h"
#include "proxy/host_route.h"
#include "proxy/worker.h"

#define HOST_ADDRS_TRIES	5	/* a dump that was overtaken by a change */
#define HOST_ADDRS_SHARE	10	/* of the time, one part is for looking */

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
	uint32_t said;			/* complaints that stand, as bits */
};

struct host_dump {
	struct host_nets own, link;
	unsigned lo;			/* index of the loopback interface */
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
	size_t n_own = d->own.n, n = n_own + d->link.n;
	struct snapshot *s = mem_new(sizeof(*s) +
				     n * sizeof(s->hosts.net[0]));

	if (!s)
		return -ENOMEM;
	s->mail = mem_new_array(nworkers ? nworkers : 1, sizeof(s->mail[0]));
	if (!s->mail) {
		mem_free(s);
		return -ENOMEM;
	}
	atomic_init(&s->refs, 1);
	s->hosts.no_ipv6 = !d->ipv6;
	s->hosts.n_own = n_own;
	s->hosts.n = n;
	if (n_own)
		memcpy(s->hosts.net, d->own.net,
		       n_own * sizeof(s->hosts.net[0]));
	if (d->link.n)
		memcpy(s->hosts.net + n_own, d->link.net,
		       d->link.n * sizeof(s->hosts.net[0]));
	*ret = s;
	return 0;
}

static bool snapshot_is_same(const struct snapshot *a,
			     const struct snapshot *b)
{
	const struct ip_hosts *x = &a->hosts, *y = &b->hosts;

	/* Networks are bytes without gaps. */
	return x->no_ipv6 == y->no_ipv6 && x->n_own == y->n_own &&
	       x->n == y->n &&
	       memcmp(x->net, y->net, x->n * sizeof(x->net[0])) == 0;
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

static void host_dump_add(struct host_dump *d, struct host_nets *to,
			  const struct ip_addr *a, unsigned bits)
{
	if (d->err == 0)
		d->err = host_nets_add(to, a, bits);
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
		host_dump_add(d, &d->own, &own, whole);
	if (host_attr_addr(attrs.address ? attrs.address : attrs.local,
			   ifa->ifa_family, &prefix) &&
	    ifa->ifa_index != d->lo && ifa->ifa_prefixlen > 0 &&
	    ifa->ifa_prefixlen <= whole) {
		host_dump_add(d, &d->link, &prefix, ifa->ifa_prefixlen);
		d->ipv6 |= host_route_is_global(&prefix, ifa->ifa_prefixlen);
	}
	return MNL_CB_OK;
}

static int host_addrs_dump(struct host_addrs *h, struct host_dump *d)
{
	_Alignas(struct nlmsghdr) char buf[MNL_NLMSG_HDRLEN + 64] = { 0 };
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct ifaddrmsg *ifa;
	int err;

	nlh->nlmsg_type = RTM_GETADDR;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	nlh->nlmsg_seq = ++h->seq;
	ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));
	ifa->ifa_family = AF_UNSPEC;
	err = host_nl_dump(h->ask_fd, nlh, host_dump_cb, d);
	return err ? err : d->err;
}

/* The default routes, as they lead out or to this host itself. */
static int host_addrs_ask_far(struct host_addrs *h, struct host_dump *d)
{
	static const enum ip_family families[] = { IP_V4, IP_V6 };
	struct host_way way;
	size_t i;
	int err = 0;

	for (i = 0; err == 0 && i < ARRAY_SIZE(families); i++) {
		err = host_route_far(h->ask_fd, &h->seq, families[i], &way);
		if (err < 0)
			break;
		d->ipv6 |= families[i] == IP_V6 && way.out;
		/* If it is none of its own, it is so as all the rest is. */
		if (way.self && !ip_net_find(d->own.net, d->own.n, &way.to))
			host_dump_add(d, &d->own, &way.to, 0);
		host_nets_tidy(&d->own);
		err = d->err;
	}
	return err;
}

/* Addresses, and the ways; -EINTR when a change fell in between. */
static int host_addrs_ask(struct host_addrs *h, struct host_dump *d)
{
	int err;

	d->own.n = d->link.n = 0;
	d->own.width = d->link.width = 0;
	d->ipv6 = false;
	host_nl_drain(h->ask_fd);
	err = host_addrs_dump(h, d);
	if (err == 0)
		err = host_route_own(h->ask_fd, &h->seq, &d->own);
	if (err == 0) {
		host_nets_tidy(&d->own);
		host_nets_tidy(&d->link);
		err = host_addrs_ask_far(h, d);
	}
	return err;
}

static bool has_all(const struct host_nets *s, enum ip_family family)
{
	size_t i;

	for (i = 0; i < s->n; i++)
		if (s->net[i].bits == 0 && s->net[i].addr.family == family)
			return true;
	return false;
}

enum { SAID_V4, SAID_V6, SAID_WIDE };

/* Once for as long as it is so. */
static bool is_news(struct host_addrs *h, unsigned what, bool so)
{
	bool before = h->said & BIT(what);

	h->said = so ? h->said | BIT(what) : h->said & ~BIT(what);
	return so && !before;
}

static void host_addrs_complain(struct host_addrs *h,
				const struct host_dump *d)
{
	static const char all[] = "a local default route delivers every %s address to this host itself: all of them are its own, and refused as that; see ip route show table all type local";

	if (is_news(h, SAID_V4, has_all(&d->own, IP_V4)))
		log_error(all, "IPv4");
	if (is_news(h, SAID_V6, has_all(&d->own, IP_V6)))
		log_error(all, "IPv6");
	if (is_news(h, SAID_WIDE, d->own.width || d->link.width))
		log_error("this host has more than %d addresses or networks: some of those beside them are taken for its own, and refused",
			  HOST_NETS_KEPT);
}

static int host_addrs_look(struct host_addrs *h)
{
	/* Loopback is the first device of every network namespace. */
	struct host_dump d = { .lo = 1 };
	struct snapshot *s = NULL;
	int tries, err = -EINTR;

	for (tries = 0; err == -EINTR && tries < HOST_ADDRS_TRIES; tries++)
		err = host_addrs_ask(h, &d);
	if (err == 0)
		err = snapshot_new(&d, h->nworkers, &s);
	if (err == 0)
		host_addrs_complain(h, &d);
	host_nets_done(&d.own);
	host_nets_done(&d.link);
	if (err < 0)
		return err;
	if (h->current && snapshot_is_same(h->current, s)) {
		snapshot_unref(s);
		return 0;
	}
	snapshot_unref(h->current);
	h->current = s;
	host_addrs_deliver(h);
	return 0;
}

/* --- hearing of changes -------------------------------------------------- */

static void host_addrs_look_again(struct host_addrs *h)
{
	int64_t start = clock_mono_ms(), gap_ms;
	int err = host_addrs_look(h);
	struct timeval gap;

	if (err < 0)
		log_error("cannot read this host's addresses: %s; the old ones stay in force",
			  strerror(-err));
	h->again = err < 0;
	gap_ms = (clock_mono_ms() - start) * (HOST_ADDRS_SHARE - 1);
	if (gap_ms < HOST_ADDRS_GAP_MS)
		gap_ms = HOST_ADDRS_GAP_MS;
	gap.tv_sec = gap_ms / 1000;
	gap.tv_usec = gap_ms % 1000 * 1000;
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

int host_addrs_new(struct host_addrs **ret)
{
	struct host_addrs *h = mem_new(sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	h->ask_fd = h->hear_fd = -1;
	/* First hear, then ask: no change falls in between. */
	err = host_nl_hear(&h->hear_fd);
	if (err == 0)
		err = host_nl_open(&h->ask_fd);
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
