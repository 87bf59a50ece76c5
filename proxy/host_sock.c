/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_sock.c - the sockets of listeners on addresses of this host
 *
 * Theory of operation
 * ===================
 *
 * With several workers an address has as many sockets, which share it by
 * SO_REUSEPORT.  That option also lets another process of the same user in,
 * silently: a second daemon would take half of the clients.  So the first
 * socket of an address is bound without it, which fails where anybody has the
 * address, and listens; it gets the option behind that, and only then come the
 * others.  From there on whoever else begins in this way fails.
 *
 * SO_REUSEADDR is for TCP connections of a daemon before us that linger in
 * TIME_WAIT; it does not let anybody share an address that is listened on.
 *
 * The kernel spreads connections by a hash of both ends.  A client that asks
 * us for a name and then connects to the address it was told must find the
 * worker that told it, so where a listener answers DNS the hash is one of the
 * client's address alone (SO_ATTACH_REUSEPORT_CBPF).
 */
#include "proxy/host_sock.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/own_doors.h"

#define HOST_BACKLOG	1024
/* Sockets of one listener and worker: DNS has two for each address. */
#define HOST_SOCKS_EACH	SANDBOX_FDS_MAX

_Static_assert(4 * CONFIG_DOORS_MAX <= SANDBOX_FDS_MAX,
	       "http, socks, and dns twice");

struct opening {
	const struct config *c;
	size_t nworkers;
	struct host_socks *out;
	struct host_handeds *handed;	/* or NULL */
	size_t room;
	bool ipv6_told;
};

static int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0
		? -errno : 0;
}

/* --- one socket -------------------------------------------------------------- */

/* Up to what must be set before bind(). */
static int sock_make(const struct ip_endpoint *at, bool udp, int *ret_fd)
{
	bool v6 = at->addr.family == IP_V6;
	CLEANUP(fd_closep) int fd = -1;
	int err = 0;

	fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_CLOEXEC | SOCK_NONBLOCK |
		    (udp ? SOCK_DGRAM : SOCK_STREAM), 0);
	if (fd < 0)
		return -errno;
	if (v6)
		err = set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	if (err == 0 && !udp)
		err = set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/* An answer leaves from the address that was asked. */
	if (err == 0 && udp)
		err = v6 ? set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
			 : set_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
	if (err == 0)
		*ret_fd = fd_take(&fd);
	return err;
}

static int sock_bind(int fd, const struct ip_endpoint *at, bool udp)
{
	struct sockaddr_storage ss;
	socklen_t n = ip_endpoint_to_sockaddr(at, &ss);

	if (bind(fd, (const struct sockaddr *)&ss, n) < 0 ||
	    (!udp && listen(fd, HOST_BACKLOG) < 0))
		return -errno;
	return 0;
}

/* The first has the address to itself until it listens. */
static int sock_open(const struct ip_endpoint *at, bool udp, size_t worker,
		     size_t nworkers, int *ret_fd)
{
	CLEANUP(fd_closep) int fd = -1;
	int err = sock_make(at, udp, &fd);

	if (err == 0 && worker > 0)
		err = set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (err == 0)
		err = sock_bind(fd, at, udp);
	if (err == 0 && worker == 0 && nworkers > 1)
		err = set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
	if (err == 0)
		*ret_fd = fd_take(&fd);
	return err;
}

/* --- one worker for one client ------------------------------------------------- */

#define NET(offset)	((uint32_t)(SKF_NET_OFF + (offset)))
#define LOAD(offset)	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, NET(offset))
#define KEEP()		BPF_STMT(BPF_MISC | BPF_TAX, 0)
#define MIX()		BPF_STMT(BPF_ALU | BPF_XOR | BPF_X, 0)
#define V4_SADDR	12
#define V6_SADDR	8

/* Multiply, and take upper bits: neighbours go to different workers. */
#define SPREAD(n)						\
	BPF_STMT(BPF_ALU | BPF_MUL | BPF_K, 0x9e3779b1u),	\
	BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),		\
	BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, (n)),		\
	BPF_STMT(BPF_RET | BPF_A, 0)

static int sock_steer(int fd, enum ip_family family, size_t nworkers)
{
	struct sock_filter v4[] = { LOAD(V4_SADDR), SPREAD((uint32_t)nworkers) };
	struct sock_filter v6[] = {
		LOAD(V6_SADDR), KEEP(), LOAD(V6_SADDR + 4), MIX(),
		KEEP(), LOAD(V6_SADDR + 8), MIX(),
		KEEP(), LOAD(V6_SADDR + 12), MIX(),
		SPREAD((uint32_t)nworkers),
	};
	struct sock_fprog prog = { .len = ARRAY_SIZE(v4), .filter = v4 };

	if (family == IP_V6)
		prog = (struct sock_fprog){ ARRAY_SIZE(v6), v6 };
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &prog,
			  sizeof(prog)) < 0 ? -errno : 0;
}

/* --- all of them ------------------------------------------------------------------ */

static int no_address(int err, const char *what, const char *text)
{
	const char *mend =
		err == -EADDRINUSE ? ": something listens there already, another penstockd perhaps: stop it, or take another port" :
		err == -EACCES ? ": a port below 1024 wants CAP_NET_BIND_SERVICE: start as root with a 'user' in [service], or add the capability to the unit (AmbientCapabilities=)" :
		err == -EADDRNOTAVAIL ? ": no interface of this host has that address, or none yet: start after the network is up (network-online.target)" :
		err == -EMFILE ? ": this process may open no more: raise its limit (LimitNOFILE=), or take fewer workers" :
		err == -EAFNOSUPPORT ? ": this kernel has no such addresses: leave it out" : "";

	log_error("%s %s: %s%s", what, text, strerror(-err), mend);
	return err;
}

/* All sockets of one address and transport, one a worker. */
static int open_shared(struct opening *o, const struct host_sock *like,
		       const struct config_door *door, bool udp)
{
	struct host_socks *out = o->out;
	int err = 0;
	size_t i;

	for (i = 0; err == 0 && i < o->nworkers; i++) {
		struct host_sock *s = &out->sock[out->n];

		*s = *like;
		s->worker = i;
		err = sock_open(&door->at, udp, i, o->nworkers, &s->fd);
		if (err == 0)
			out->n++;
	}
	if (err == 0 && o->nworkers > 1 && o->c->listen[like->listen].dns.n > 0)
		err = sock_steer(out->sock[out->n - 1].fd,
				 (enum ip_family)door->at.addr.family,
				 o->nworkers);
	return err;
}

static bool ipv6_is_off(int err)
{
	return err == -EAFNOSUPPORT || err == -EADDRNOTAVAIL;
}

/* Sockets of one listener on one worker. */
static size_t count_of(const struct host_socks *s, size_t listen,
		       size_t worker)
{
	size_t i, n = 0;

	for (i = 0; i < s->n; i++)
		n += s->sock[i].listen == listen && s->sock[i].worker == worker;
	return n;
}

/* What a process before has of it.  With other numbers of workers some have
 * several, or none. */
static int take_handed(struct opening *o, const struct host_sock *like,
		       size_t *ret_n)
{
	size_t i, n = 0;

	for (i = 0; o->handed && i < o->handed->n; i++) {
		struct host_handed *h = &o->handed->sock[i];
		struct host_sock *s = &o->out->sock[o->out->n];

		if (h->fd < 0 || h->role != like->role ||
		    h->at.port != like->at.port ||
		    !ip_addr_eq(&h->at.addr, &like->at.addr))
			continue;
		if (o->out->n == o->room ||
		    count_of(o->out, like->listen, h->worker % o->nworkers) ==
		    SANDBOX_FDS_MAX)
			return -EMFILE;
		*s = *like;
		s->worker = h->worker % o->nworkers;
		s->fd = fd_take(&h->fd);
		o->out->n++;
		n++;
	}
	*ret_n = n;
	return 0;
}

static int open_door(struct opening *o, const struct host_sock *like,
		     const struct config_door *door)
{
	size_t taken = 0;
	const char *const what[SANDBOX_ROLES] = {
		[SANDBOX_HTTP] = "http", [SANDBOX_SOCKS] = "socks",
		[SANDBOX_DNS_UDP] = "dns", [SANDBOX_DNS_TCP] = "dns (TCP)",
	};
	char text[IP_ENDPOINT_TEXT_SIZE];
	int err = take_handed(o, like, &taken);

	if (err == 0 && taken == 0)
		err = open_shared(o, like, door,
				  like->role == SANDBOX_DNS_UDP);
	if (err == 0)
		return 0;
	if (door->if_there && ipv6_is_off(err)) {
		if (!o->ipv6_told)
			log_warn("IPv6 is off here: 'localhost' and '*' of listeners stand for IPv4 alone");
		o->ipv6_told = true;
		return 0;
	}
	ip_endpoint_text(&door->at, text);
	return no_address(err, what[like->role], text);
}

static int open_doors(struct opening *o, size_t listen, enum sandbox_role role,
		      const struct config_doors *doors)
{
	size_t i;
	int err = 0;

	for (i = 0; err == 0 && i < doors->n; i++) {
		struct host_sock like = {
			.listen = listen, .role = role,
			.at = doors->door[i].at, .fd = -1,
		};

		err = open_door(o, &like, &doors->door[i]);
	}
	return err;
}

static int open_listen(struct opening *o, size_t i)
{
	const struct config_listen *l = &o->c->listen[i];
	int err = open_doors(o, i, SANDBOX_HTTP, &l->http);

	if (err == 0)
		err = open_doors(o, i, SANDBOX_SOCKS, &l->socks);
	if (err == 0)
		err = open_doors(o, i, SANDBOX_DNS_UDP, &l->dns);
	if (err == 0)
		err = open_doors(o, i, SANDBOX_DNS_TCP, &l->dns);
	return err;
}

static int make_doors(struct host_socks *s)
{
	size_t i;

	s->doors = mem_new(sizeof(*s->doors) +
			   s->n * sizeof(s->doors->at[0]));
	if (!s->doors)
		return -ENOMEM;
	for (i = 0; i < s->n; i++)
		if (s->sock[i].worker == 0)
			s->doors->at[s->doors->n++] = s->sock[i].at;
	return 0;
}

static int int_of(int fd, int level, int option)
{
	int value = -1;
	socklen_t n = sizeof(value);

	return getsockopt(fd, level, option, &value, &n) < 0 ? -1 : value;
}

int host_handed_check(const struct host_handed *h)
{
	bool udp = h->role == SANDBOX_DNS_UDP;
	struct sockaddr_storage ss;
	socklen_t n = sizeof(ss);
	struct ip_endpoint at;

	if (h->role != SANDBOX_HTTP && h->role != SANDBOX_SOCKS && !udp &&
	    h->role != SANDBOX_DNS_TCP)
		return -EPROTO;
	if (int_of(h->fd, SOL_SOCKET, SO_TYPE) !=
	    (udp ? SOCK_DGRAM : SOCK_STREAM) ||
	    int_of(h->fd, SOL_SOCKET, SO_ACCEPTCONN) != !udp ||
	    getsockname(h->fd, (struct sockaddr *)&ss, &n) < 0 ||
	    ip_endpoint_from_sockaddr((struct sockaddr *)&ss, n, &at) < 0 ||
	    at.port != h->at.port || !ip_addr_eq(&at.addr, &h->at.addr))
		return -EPROTO;
	return fd_set_nonblock(h->fd, true) < 0 ? -EPROTO : 0;
}

int host_socks_open(const struct config *c, size_t nworkers,
		    struct host_socks *ret)
{
	return host_socks_open_with(c, nworkers, NULL, ret);
}

int host_socks_open_with(const struct config *c, size_t nworkers,
			 struct host_handeds *handed, struct host_socks *ret)
{
	struct opening o = {
		.c = c, .nworkers = nworkers, .out = ret, .handed = handed,
		.room = c->nlistens * nworkers * HOST_SOCKS_EACH,
	};
	size_t i;
	int err = 0;

	*ret = (struct host_socks){ NULL, 0, NULL };
	if (c->nlistens == 0)
		return 0;
	ret->sock = mem_new_array(c->nlistens * nworkers * HOST_SOCKS_EACH,
				  sizeof(ret->sock[0]));
	if (!ret->sock)
		return -ENOMEM;
	for (i = 0; err == 0 && i < c->nlistens; i++)
		err = open_listen(&o, i);
	return err < 0 ? err : make_doors(ret);
}

void host_socks_done(struct host_socks *s)
{
	while (s->n > 0)
		fd_closep(&s->sock[--s->n].fd);
	mem_free(s->sock);
	mem_free(s->doors);
	*s = (struct host_socks){ NULL, 0, NULL };
}
