/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_lab.c - a network of the test's own, and a server in it that obeys
 */
#include "tests/unit/dns_lab.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"

bool dns_lab_enter(void)
{
	struct ifreq ifr = { .ifr_name = "lo" };
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	REQUIRE(fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &ifr) == 0);
	ifr.ifr_flags |= IFF_UP;
	REQUIRE(ioctl(fd, SIOCSIFFLAGS, &ifr) == 0);
	close(fd);
	return true;
}

#define FAKE_CONNS	64
#define FAKE_IN		4096

struct fake_conn {
	struct fake *fake;
	struct event *ev;
	int fd;
	uint8_t in[FAKE_IN];
	size_t n;
};

struct fake {
	struct event_base *base;
	fake_fn *fn;
	void *arg;
	int udp, tcp;
	struct event *udp_ev, *tcp_ev;
	struct fake_conn *conn[FAKE_CONNS];
	unsigned count, questions;
	uint16_t last_port;
};

static uint16_t port_of(const struct sockaddr_storage *ss)
{
	struct ip_endpoint e = { .port = 0 };

	REQUIRE(ip_endpoint_from_sockaddr((const struct sockaddr *)ss,
					  sizeof(*ss), &e) == 0);
	return e.port;
}

static void fake_got(struct fake_ask *ask)
{
	ask->fake->count++;
	ask->fake->last_port = port_of(&ask->peer);
	ask->base = ask->fake->base;
	if (dns_question_parse(ask->p, ask->n, &ask->q) == DNS_PARSE_OK)
		ask->fake->questions++;
	ask->fake->fn(ask->fake->arg, ask);
}

static void udp_cb(evutil_socket_t fd, short what, void *arg)
{
	struct fake *f = arg;
	struct fake_ask ask = { .fake = f, .fd = fd };
	uint8_t in[FAKE_IN];
	socklen_t len = sizeof(ask.peer);
	ssize_t n;

	(void)what;
	n = recvfrom(fd, in, sizeof(in), MSG_DONTWAIT,
		     (struct sockaddr *)&ask.peer, &len);
	if (n < 0)
		return;
	ask.peer_n = len;
	ask.p = in;
	ask.n = (size_t)n;
	fake_got(&ask);
}

static void conn_end(struct fake_conn *c)
{
	for (size_t i = 0; i < FAKE_CONNS; i++) {
		if (c->fake->conn[i] == c)
			c->fake->conn[i] = NULL;
	}
	event_free(c->ev);
	close(c->fd);
	mem_free(c);
}

static void conn_cb(evutil_socket_t fd, short what, void *arg)
{
	struct fake_conn *c = arg;
	struct fake_ask ask = { .fake = c->fake, .tcp = true, .fd = fd };
	socklen_t len = sizeof(ask.peer);
	ssize_t n = recv(fd, c->in + c->n, sizeof(c->in) - c->n, MSG_DONTWAIT);

	(void)what;
	if (n <= 0) {
		conn_end(c);
		return;
	}
	c->n += (size_t)n;
	REQUIRE(getpeername(fd, (struct sockaddr *)&ask.peer, &len) == 0);
	while (c->n >= 2 && c->n >= 2u + dns_get16(c->in)) {
		size_t size = 2u + dns_get16(c->in);

		ask.p = c->in + 2;
		ask.n = size - 2;
		fake_got(&ask);
		memmove(c->in, c->in + size, c->n - size);
		c->n -= size;
	}
}

static void accept_cb(evutil_socket_t fd, short what, void *arg)
{
	struct fake *f = arg;
	struct fake_conn *c = mem_new(sizeof(*c));
	size_t i = 0;

	(void)what;
	REQUIRE(c);
	c->fake = f;
	c->fd = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	REQUIRE(c->fd >= 0);
	while (i < FAKE_CONNS && f->conn[i])
		i++;
	REQUIRE(i < FAKE_CONNS);
	f->conn[i] = c;
	c->ev = event_new(f->base, c->fd, EV_READ | EV_PERSIST, conn_cb, c);
	REQUIRE(c->ev && event_add(c->ev, NULL) == 0);
}

static int bound(int type, const struct ip_endpoint *at)
{
	struct sockaddr_storage ss;
	socklen_t n = ip_endpoint_to_sockaddr(at, &ss);
	int fd = socket(ss.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	REQUIRE(fd >= 0);
	REQUIRE(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	REQUIRE(bind(fd, (struct sockaddr *)&ss, n) == 0);
	return fd;
}

int fake_listen(const char *addr, uint16_t port)
{
	struct ip_endpoint at = { .port = port };
	int fd;

	REQUIRE(ip_addr_parse(str_from(addr), &at.addr) == 0);
	fd = bound(SOCK_STREAM, &at);
	REQUIRE(listen(fd, 64) == 0);
	return fd;
}

struct fake *fake_new(struct event_base *base, const char *addr, uint16_t port,
		      fake_fn *fn, void *arg)
{
	struct ip_endpoint at = { .port = port };
	struct fake *f = mem_new(sizeof(*f));

	REQUIRE(f && ip_addr_parse(str_from(addr), &at.addr) == 0);
	f->base = base;
	f->fn = fn;
	f->arg = arg;
	f->udp = bound(SOCK_DGRAM, &at);
	f->tcp = fake_listen(addr, port);
	f->udp_ev = event_new(base, f->udp, EV_READ | EV_PERSIST, udp_cb, f);
	f->tcp_ev = event_new(base, f->tcp, EV_READ | EV_PERSIST, accept_cb, f);
	REQUIRE(f->udp_ev && event_add(f->udp_ev, NULL) == 0);
	REQUIRE(f->tcp_ev && event_add(f->tcp_ev, NULL) == 0);
	return f;
}

void fake_close_tcp(struct fake *f)
{
	for (size_t i = 0; i < FAKE_CONNS; i++) {
		if (f->conn[i])
			conn_end(f->conn[i]);
	}
	if (f->tcp < 0)
		return;
	event_free(f->tcp_ev);
	close(f->tcp);
	f->tcp = -1;
}

void fake_free(struct fake *f)
{
	if (!f)
		return;
	fake_close_tcp(f);
	event_free(f->udp_ev);
	close(f->udp);
	mem_free(f);
}

void fake_set(struct fake *f, fake_fn *fn, void *arg)
{
	f->fn = fn;
	f->arg = arg;
}

unsigned fake_count(const struct fake *f)
{
	return f->count;
}

unsigned fake_questions(const struct fake *f)
{
	return f->questions;
}

uint16_t fake_last_port(const struct fake *f)
{
	return f->last_port;
}

void fake_send(const struct fake_ask *ask, const void *p, size_t n)
{
	uint8_t len[2] = { (uint8_t)(n >> 8), (uint8_t)n };

	if (ask->send) {
		ask->send(ask, p, n);
		return;
	}
	if (!ask->tcp) {
		(void)!sendto(ask->fd, p, n, 0,
			      (const struct sockaddr *)&ask->peer, ask->peer_n);
		return;
	}
	(void)!send(ask->fd, len, 2, MSG_NOSIGNAL);
	(void)!send(ask->fd, p, n, MSG_NOSIGNAL);
}

static void put(struct fake_records *r, const void *p, size_t n)
{
	REQUIRE(r->n + n <= sizeof(r->p));
	if (n)
		memcpy(r->p + r->n, p, n);
	r->n += n;
}

static void put16(struct fake_records *r, unsigned v)
{
	uint8_t b[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	put(r, b, 2);
}

static void put_name(struct fake_records *r, const char *text)
{
	struct dns_name name;

	REQUIRE(dns_name_from_text(str_from(text), &name) == 0);
	put(r, name.b, name.n);
}

static void put_record(struct fake_records *r, const char *owner, unsigned type,
		       uint32_t ttl, const void *data, size_t n)
{
	put_name(r, owner);
	put16(r, type);
	put16(r, 1);
	put16(r, ttl >> 16);
	put16(r, ttl & 0xffff);
	put16(r, (unsigned)n);
	put(r, data, n);
}

void fake_add(struct fake_records *r, const char *owner, unsigned type,
	      uint32_t ttl, const void *data, size_t n)
{
	put_record(r, owner, type, ttl, data, n);
	r->answers++;
}

void fake_add_a(struct fake_records *r, const char *owner, const char *addr,
		uint32_t ttl)
{
	struct ip_addr a;

	REQUIRE(ip_addr_parse(str_from(addr), &a) == 0);
	fake_add(r, owner, a.family == IP_V4 ? 1 : 28, ttl, a.b,
		 a.family == IP_V4 ? 4 : 16);
}

void fake_add_cname(struct fake_records *r, const char *owner,
		    const char *target, uint32_t ttl)
{
	struct dns_name name;

	REQUIRE(dns_name_from_text(str_from(target), &name) == 0);
	fake_add(r, owner, 5, ttl, name.b, name.n);
}

void fake_add_authority(struct fake_records *r, const char *owner,
			unsigned type, uint32_t ttl, const void *data, size_t n)
{
	put_record(r, owner, type, ttl, data, n);
	r->authority++;
}

void fake_add_soa(struct fake_records *r, const char *owner, uint32_t ttl)
{
	uint8_t data[22] = { 0 };

	data[18] = (uint8_t)(ttl >> 24);
	data[19] = (uint8_t)(ttl >> 16);
	data[20] = (uint8_t)(ttl >> 8);
	data[21] = (uint8_t)ttl;
	fake_add_authority(r, owner, DNS_TYPE_SOA, ttl, data, sizeof(data));
}

size_t fake_build(const struct fake_ask *ask, const struct fake_records *r,
		  unsigned flags, uint8_t *out, size_t cap)
{
	size_t q = DNS_HEADER_SIZE + ask->q.raw_n;

	REQUIRE(ask->q.has_question && q + r->n <= cap);
	memcpy(out, ask->p, q);
	dns_put16(out + 2, (uint16_t)(0x8180 | flags));
	dns_put16(out + 6, (uint16_t)r->answers);
	dns_put16(out + 8, (uint16_t)r->authority);
	dns_put16(out + 10, (uint16_t)r->additional);
	memcpy(out + q, r->p, r->n);
	return q + r->n;
}

void fake_answer(const struct fake_ask *ask, const struct fake_records *r,
		 unsigned flags)
{
	static uint8_t out[65535];

	fake_send(ask, out, fake_build(ask, r, flags, out, sizeof(out)));
}
