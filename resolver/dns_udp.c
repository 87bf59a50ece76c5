/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_udp.c - the datagram side of a sandbox's door
 *
 * The socket is bound to every address, so each datagram says which one the
 * program asked (IP_PKTINFO), and the reply leaves from that one: a program
 * that was told to use any resolver finds it.  A wake-up reads and answers in
 * batches; replies that come later, from a lookup, are sent one by one.
 */
#include <errno.h>
#include <event2/event.h>
#include <unistd.h>

#include "base/log.h"
#include "resolver/dns_door.h"
#include "resolver/dns_query.h"

#define BATCHES_A_WAKE	4	/* then the sandbox's other sockets are seen */

/* The address that was asked; false when the kernel did not say. */
static bool asked_address(struct msghdr *mh, struct ip_addr *ret)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo i;

			memcpy(&i, CMSG_DATA(c), sizeof(i));
			*ret = ip_addr_v4(ntohl(i.ipi_addr.s_addr));
			return true;
		}
		if (c->cmsg_level == IPPROTO_IPV6 &&
		    c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo i;

			memcpy(&i, CMSG_DATA(c), sizeof(i));
			*ret = (struct ip_addr){ .family = IP_V6 };
			memcpy(ret->b, &i.ipi6_addr, sizeof(i.ipi6_addr));
			return true;
		}
	}
	return false;
}

/* The control message that makes a reply leave from @from. */
static void set_source(struct dns_datagram *g, const struct ip_addr *from)
{
	struct msghdr mh = { .msg_control = g->control,
			     .msg_controllen = sizeof(g->control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&mh);

	memset(g->control, 0, sizeof(g->control));
	if (from->family == IP_V4) {
		struct in_pktinfo i = { .ipi_ifindex = 0 };

		i.ipi_spec_dst.s_addr = htonl(ip_addr_v4_bits(from));
		c->cmsg_level = IPPROTO_IP;
		c->cmsg_type = IP_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(i));
		memcpy(CMSG_DATA(c), &i, sizeof(i));
		g->control_n = CMSG_SPACE(sizeof(i));
	} else {
		struct in6_pktinfo i = { .ipi6_ifindex = 0 };

		memcpy(&i.ipi6_addr, from->b, sizeof(i.ipi6_addr));
		c->cmsg_level = IPPROTO_IPV6;
		c->cmsg_type = IPV6_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(i));
		memcpy(CMSG_DATA(c), &i, sizeof(i));
		g->control_n = CMSG_SPACE(sizeof(i));
	}
}

static void fill_header(struct msghdr *mh, struct dns_datagram *g,
			struct iovec *iov)
{
	*mh = (struct msghdr){
		.msg_name = &g->peer, .msg_namelen = g->peer_n,
		.msg_iov = iov, .msg_iovlen = 1,
		.msg_control = g->control, .msg_controllen = g->control_n,
	};
}

/* Send what was collected; a datagram that cannot be sent is lost, as in UDP. */
static void batch_flush(struct dns_door *d)
{
	struct dns_batch *b = d->batch;
	struct mmsghdr mm[DNS_BATCH];
	struct iovec iov[DNS_BATCH];
	unsigned at = 0;

	for (unsigned i = 0; i < b->nout; i++) {
		iov[i] = (struct iovec){ b->reply[i], b->reply_n[i] };
		fill_header(&mm[i].msg_hdr, &b->out[i], &iov[i]);
		mm[i].msg_len = 0;
	}
	while (at < b->nout) {
		int n = sendmmsg(d->udp[d->batch_udp].fd, mm + at, b->nout - at,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		at += n > 0 ? (unsigned)n : 1;
	}
	b->nout = 0;
}

void dns_udp_reply(struct dns_door *d, const struct dns_client *c,
		   const uint8_t *p, size_t n)
{
	struct dns_batch *b = d->batch;
	struct dns_datagram gram = c->gram;
	uint8_t copy[DNS_EDNS_SIZE];
	struct iovec iov = { copy, n };
	struct msghdr mh;

	REQUIRE(n <= DNS_EDNS_SIZE);
	if (b && d->batch_udp == c->udp) {
		if (b->nout == DNS_BATCH)
			batch_flush(d);
		b->out[b->nout] = c->gram;
		memcpy(b->reply[b->nout], p, n);
		b->reply_n[b->nout++] = n;
		return;
	}
	memcpy(copy, p, n);
	fill_header(&mh, &gram, &iov);
	if (sendmsg(d->udp[c->udp].fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		log_debug("dns: reply not sent: %s", strerror(errno));
}

static void on_datagram(struct dns_door *d, unsigned which, struct mmsghdr *mm,
			struct dns_datagram *g, const uint8_t *p)
{
	struct dns_client c = { .udp = which };

	/* No source port: there is nobody to answer (RFC 768). */
	if (ip_endpoint_from_sockaddr((const struct sockaddr *)&g->peer,
				      mm->msg_hdr.msg_namelen, &c.src) != 0 ||
	    c.src.port == 0 || !asked_address(&mm->msg_hdr, &c.asked) ||
	    !dns_door_admits(d, &c.src, d->udp[which].fd, false))
		return;
	c.gram.peer = g->peer;
	c.gram.peer_n = mm->msg_hdr.msg_namelen;
	set_source(&c.gram, &c.asked);
	if (!dns_door_turns_down(d, p, mm->msg_len, &c))
		dns_query_start(d, p, mm->msg_len, &c);
}

/* Return: how many there were */
static unsigned read_batch(struct dns_door *d, unsigned which)
{
	struct dns_batch *b = d->batch;
	struct mmsghdr mm[DNS_BATCH];
	struct iovec iov[DNS_BATCH];
	int n;

	for (unsigned i = 0; i < DNS_BATCH; i++) {
		b->in[i].peer_n = sizeof(b->in[i].peer);
		b->in[i].control_n = sizeof(b->in[i].control);
		iov[i] = (struct iovec){ b->question[i], DNS_UDP_IN_MAX };
		fill_header(&mm[i].msg_hdr, &b->in[i], &iov[i]);
		mm[i].msg_len = 0;
	}
	n = recvmmsg(d->udp[which].fd, mm, DNS_BATCH, MSG_DONTWAIT, NULL);
	/* A question longer than the room is cut, and so malformed. */
	for (int i = 0; i < n; i++)
		on_datagram(d, which, &mm[i], &b->in[i], b->question[i]);
	return n > 0 ? (unsigned)n : 0;
}

static void udp_on_readable(struct dns_due *due)
{
	struct dns_udp *u = container_of(due, struct dns_udp, due);
	struct dns_door *d = u->door;
	unsigned which = (unsigned)(u - d->udp);

	d->batch = resolver_batch(d->resolver);
	if (!d->batch) {
		(void)recv(u->fd, NULL, 0, MSG_DONTWAIT | MSG_TRUNC);
		(void)dns_door_spend(d, 1);
		return;
	}
	d->batch->nout = 0;
	d->batch_udp = which;
	for (int i = 0; i < BATCHES_A_WAKE; i++) {
		unsigned n = read_batch(d, which);

		/* The wake-up itself takes as long as a question or two. */
		if (!dns_door_spend(d, n + 1) || n < DNS_BATCH)
			break;
	}
	batch_flush(d);
	d->batch = NULL;
}

static void udp_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_udp *u = arg;

	(void)fd;
	(void)what;
	REQUIRE(u->door->magic == DNS_DOOR_MAGIC);
	dns_door_due(u->door, &u->due);
}

int dns_udp_open(struct dns_door *d, int fd)
{
	struct dns_udp *u = &d->udp[d->nudp];

	u->door = d;
	u->fd = fd;
	list_init(&u->due.node);
	u->due.fn = udp_on_readable;
	if (event_assign(&u->ev, d->base, fd, EV_READ | EV_PERSIST, udp_cb,
			 u) != 0 || event_add(&u->ev, NULL) != 0)
		return -ENOMEM;
	d->nudp++;
	return 0;
}

void dns_udp_close(struct dns_udp *u)
{
	event_del(&u->ev);
	list_del(&u->due.node);
	close(u->fd);
}

int dns_udp_watch(struct dns_udp *u)
{
	return u->door->frozen ? event_del(&u->ev) : event_add(&u->ev, NULL);
}
