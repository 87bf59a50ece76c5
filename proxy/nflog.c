/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nflog.c - what the sandbox's own firewall refused, as records
 *
 * Reads NFULNL_MSG_PACKET messages (linux/netfilter/nfnetlink_log.h) and takes
 * addresses, protocol and ports from the head of the copied packet.
 *
 * The first refusal of a key (destination, port, protocol) is recorded at
 * once, so that it is seen while it happens.  Equal ones are then counted, and
 * the count is recorded when the key's window ends or the sandbox does.  With
 * NFLOG_KEYS_MAX keys open, further destinations share one key without an
 * address, so a port scan costs NFLOG_KEYS_MAX + 1 records a window, and none
 * of it goes uncounted.  What the kernel had to drop (ENOBUFS) is counted
 * there too.
 */
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/event.h>
#include <libmnl/libmnl.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/nflog.h"
#include "proxy/sandbox.h"
#include "proxy/worker.h"
#include "resolver/name_map.h"

#define NFLOG_DATAGRAM_MAX	16384	/* the kernel batches up to a page or two */

struct nflog_key {
	struct ip_endpoint dst;		/* family IP_NONE: the shared key */
	uint8_t proto;
	bool used;
	int64_t until_ms;
	uint32_t more;			/* counted since the record */
};

struct nflog {
	struct sandbox *sandbox;
	int fd;
	struct event *event, *timer;
	struct nflog_key key[NFLOG_KEYS_MAX];
	struct nflog_key rest;
};

/* --- the packet ------------------------------------------------------------- */

static uint16_t nflog_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static bool nflog_has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP ||
	       proto == IPPROTO_SCTP || proto == IPPROTO_DCCP ||
	       proto == IPPROTO_UDPLITE;
}

static void nflog_parse_ports(struct str rest, struct nflog_packet *p)
{
	const uint8_t *b = (const uint8_t *)rest.p;

	if (rest.n < 4 || !nflog_has_ports(p->proto))
		return;
	p->src.port = nflog_be16(b);
	p->dst.port = nflog_be16(b + 2);
}

static bool nflog_parse_v4(struct str in, struct nflog_packet *p)
{
	const uint8_t *b = (const uint8_t *)in.p;
	size_t head = (size_t)(b[0] & 15) * 4;

	if (in.n < 20 || head < 20)
		return false;
	p->proto = b[9];
	p->src.addr.family = p->dst.addr.family = IP_V4;
	memcpy(p->src.addr.b, b + 12, 4);
	memcpy(p->dst.addr.b, b + 16, 4);
	/* A later fragment has no ports. */
	if ((nflog_be16(b + 6) & 0x1fff) == 0 && in.n > head)
		nflog_parse_ports(str_make(in.p + head, in.n - head), p);
	return true;
}

static bool nflog_is_extension(uint8_t next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING ||
	       next == IPPROTO_DSTOPTS || next == IPPROTO_FRAGMENT;
}

static bool nflog_parse_v6(struct str in, struct nflog_packet *p)
{
	const uint8_t *b = (const uint8_t *)in.p;
	size_t at = 40;
	unsigned i;

	if (in.n < at)
		return false;
	p->proto = b[6];
	p->src.addr.family = p->dst.addr.family = IP_V6;
	memcpy(p->src.addr.b, b + 8, 16);
	memcpy(p->dst.addr.b, b + 24, 16);
	for (i = 0; i < NFLOG_EXT_MAX && nflog_is_extension(p->proto); i++) {
		bool fragment = p->proto == IPPROTO_FRAGMENT;

		if (in.n < at + 8)
			return true;
		if (fragment && (nflog_be16(b + at + 2) & 0xfff8) != 0) {
			p->proto = b[at];
			return true;
		}
		p->proto = b[at];
		at += fragment ? 8 : 8 + (size_t)b[at + 1] * 8;
	}
	if (in.n > at)
		nflog_parse_ports(str_make(in.p + at, in.n - at), p);
	return true;
}

bool nflog_parse_packet(struct str in, struct nflog_packet *ret)
{
	struct nflog_packet p = { 0 };
	bool ok = false;

	if (in.n >= 1 && (in.p[0] & 0xf0) == 0x40)
		ok = nflog_parse_v4(in, &p);
	else if (in.n >= 1 && (in.p[0] & 0xf0) == 0x60)
		ok = nflog_parse_v6(in, &p);
	if (ok)
		*ret = p;
	return ok;
}

const char *nflog_transport(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_TCP: return "tcp";
	case IPPROTO_UDP: return "udp";
	case IPPROTO_UDPLITE: return "udplite";
	case IPPROTO_ICMP: return "icmp";
	case IPPROTO_ICMPV6: return "icmpv6";
	case IPPROTO_SCTP: return "sctp";
	case IPPROTO_DCCP: return "dccp";
	case IPPROTO_GRE: return "gre";
	case IPPROTO_IGMP: return "igmp";
	default: return "ip";
	}
}

/* --- the datagram ------------------------------------------------------------ */

static int nflog_attr_cb(const struct nlattr *attr, void *data)
{
	const struct nlattr **payload = data;

	if (mnl_attr_get_type(attr) == NFULA_PAYLOAD)
		*payload = attr;
	return MNL_CB_OK;
}

static bool nflog_parse_message(const struct nlmsghdr *h,
				struct nflog_packet *ret)
{
	const struct nlattr *payload = NULL;

	if (h->nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) ||
	    mnl_nlmsg_get_payload_len(h) < sizeof(struct nfgenmsg))
		return false;
	if (mnl_attr_parse(h, sizeof(struct nfgenmsg), nflog_attr_cb,
			   &payload) < 0 || !payload)
		return false;
	return nflog_parse_packet(
		str_make(mnl_attr_get_payload(payload),
			 mnl_attr_get_payload_len(payload)), ret);
}

unsigned nflog_parse_datagram(struct str bytes, nflog_packet_fn *fn, void *arg)
{
	const struct nlmsghdr *h = (const void *)bytes.p;
	int left = (int)bytes.n;
	unsigned n = 0;

	/* libmnl compares lengths as int: one over INT_MAX would pass there,
	 * and never end. */
	while (mnl_nlmsg_ok(h, left) && h->nlmsg_len <= (unsigned)left) {
		struct nflog_packet p;

		if (nflog_parse_message(h, &p)) {
			fn(arg, &p);
			n++;
		}
		h = mnl_nlmsg_next(h, &left);
	}
	return n;
}

/* --- the records -------------------------------------------------------------- */

static enum reason nflog_reason(const struct nflog *n,
				const struct nflog_key *k)
{
	enum ip_class klass;

	if (k->dst.addr.family == IP_NONE ||
	    name_map_is_synthetic(&k->dst.addr))
		return REASON_TRANSPORT_NOT_ALLOWED;
	klass = ip_classify_here(&k->dst.addr, n->sandbox->worker->hosts);
	return klass == IP_PUBLIC ? REASON_TRANSPORT_NOT_ALLOWED
				  : ip_class_reason(klass);
}

static void nflog_record(struct nflog *n, const struct nflog_key *k,
			 uint32_t count)
{
	struct sandbox *s = n->sandbox;
	struct record r;

	sandbox_record(RECORD_FLOW_DENY, RECORD_DENY, nflog_reason(n, k),
		       RECORD_VIA_FIREWALL, &r);
	r.dst = k->dst;
	r.transport = nflog_transport(k->proto);
	r.count = count;
	/* A synthetic address stands for a name; it is no destination. */
	if (name_map_is_synthetic(&k->dst.addr)) {
		r.asked = k->dst.addr;
		r.dst.addr = (struct ip_addr){ 0 };
		if (!name_map_find(s->names, &r.asked, &r.host, &r.dns))
			r.host = STR_NONE;
	}
	sandbox_deny(s, &r);
}

static void nflog_flush_key(struct nflog *n, struct nflog_key *k)
{
	if (k->used && k->more)
		nflog_record(n, k, k->more);
	k->used = false;
	k->more = 0;
}

/* Close what ran out before @now; returns how many keys are still open. */
static unsigned nflog_expire(struct nflog *n, int64_t now)
{
	unsigned open = 0;
	size_t i;

	for (i = 0; i < NFLOG_KEYS_MAX; i++) {
		struct nflog_key *k = &n->key[i];

		if (k->used && k->until_ms <= now)
			nflog_flush_key(n, k);
		open += k->used;
	}
	if (n->rest.used && n->rest.until_ms <= now)
		nflog_flush_key(n, &n->rest);
	return open + n->rest.used;
}

static struct nflog_key *nflog_find(struct nflog *n,
				    const struct nflog_packet *p)
{
	struct nflog_key *empty = NULL;
	size_t i;

	for (i = 0; i < NFLOG_KEYS_MAX; i++) {
		struct nflog_key *k = &n->key[i];

		if (!k->used)
			empty = empty ? empty : k;
		else if (k->proto == p->proto &&
			 k->dst.port == p->dst.port &&
			 ip_addr_eq(&k->dst.addr, &p->dst.addr))
			return k;
	}
	if (empty) {
		empty->dst = p->dst;
		empty->proto = p->proto;
		return empty;
	}
	n->rest.dst = (struct ip_endpoint){ 0 };
	n->rest.proto = 0;
	return &n->rest;
}

static void nflog_open_key(struct nflog *n, struct nflog_key *k)
{
	static const struct timeval window = {
		.tv_sec = NFLOG_WINDOW_MS / 1000,
	};

	k->used = true;
	k->more = 0;
	k->until_ms = clock_mono_ms() + NFLOG_WINDOW_MS;
	nflog_record(n, k, 1);
	/* Without a timer the next packet or the end of the run flushes. */
	if (!event_pending(n->timer, EV_TIMEOUT, NULL))
		(void)event_add(n->timer, &window);
}

void nflog_on_packet(struct nflog *n, const struct nflog_packet *p)
{
	struct nflog_key *k;

	nflog_expire(n, clock_mono_ms());
	k = nflog_find(n, p);
	if (k->used)
		k->more += k->more < UINT32_MAX;
	else
		nflog_open_key(n, k);
}

static void nflog_packet_cb(void *arg, const struct nflog_packet *p)
{
	nflog_on_packet(arg, p);
}

static void nflog_timer_cb(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval again = { .tv_sec = 1 };
	struct nflog *n = arg;

	(void)fd;
	(void)what;
	if (nflog_expire(n, clock_mono_ms()) > 0)
		(void)event_add(n->timer, &again);
}

/* The kernel's queue ran over: how much was lost is not said; one at least. */
static void nflog_on_overrun(struct nflog *n)
{
	if (n->rest.used)
		n->rest.more += n->rest.more < UINT32_MAX;
	else
		nflog_open_key(n, &n->rest);
}

static void nflog_cb(evutil_socket_t fd, short what, void *arg)
{
	_Alignas(struct nlmsghdr) char bytes[NFLOG_DATAGRAM_MAX];
	struct nflog *n = arg;
	unsigned i;

	(void)what;
	for (i = 0; i < NFLOG_BATCH; i++) {
		struct sockaddr_nl from = { 0 };
		socklen_t len = sizeof(from);
		ssize_t got = recvfrom(fd, bytes, sizeof(bytes), 0,
				       (struct sockaddr *)&from, &len);

		if (got < 0 && errno == ENOBUFS) {
			nflog_on_overrun(n);
			continue;
		}
		if (got < 0)
			return;
		/* Only the kernel speaks here (port id 0). */
		if (len == sizeof(from) && from.nl_pid == 0)
			nflog_parse_datagram(str_make(bytes, (size_t)got),
					     nflog_packet_cb, n);
	}
}

int nflog_new(struct sandbox *s, int fd, struct nflog **ret)
{
	struct nflog *n = mem_new(sizeof(*n));
	struct event_base *base = s->worker->base;

	if (!n) {
		fd_closep(&fd);
		return -ENOMEM;
	}
	n->sandbox = s;
	n->fd = fd;
	n->event = event_new(base, fd, EV_READ | EV_PERSIST, nflog_cb, n);
	n->timer = event_new(base, -1, 0, nflog_timer_cb, n);
	if (!n->event || !n->timer || event_add(n->event, NULL) < 0) {
		nflog_free(n);
		return -ENOMEM;
	}
	*ret = n;
	return 0;
}

void nflog_freeze(struct nflog *n, bool frozen)
{
	if ((frozen ? event_del(n->event) : event_add(n->event, NULL)) < 0)
		log_error("run %s: out of memory: what its firewall refuses is not seen",
			  n->sandbox->run);
}

void nflog_free(struct nflog *n)
{
	if (!n)
		return;
	nflog_expire(n, INT64_MAX);
	if (n->event)
		event_free(n->event);
	if (n->timer)
		event_free(n->timer);
	fd_closep(&n->fd);
	mem_free(n);
}
