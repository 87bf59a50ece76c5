/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns_listen.c - sockets born inside the sandbox's network namespace
 *
 * A table says what each socket is; one function makes them.  None of them has
 * SO_REUSEADDR or SO_REUSEPORT: with either, a process in the sandbox could
 * bind the same port on a narrower address and take our connections over.
 *
 * The IPv6 DNS sockets answer from whatever address was asked, and that needs
 * IPV6_FREEBIND, which only a privileged process can set later on: so here.
 */
#include "netns-setup/ns_listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "netns-setup/fault.h"
#include "netns-setup/nl.h"

#define BACKLOG		4096	/* the kernel cuts it at net.core.somaxconn */
#define NFLOG_SNAPLEN	128	/* bytes of a refused packet: its headers */
#define DIAG_PROTOCOL	NETLINK_SOCK_DIAG

struct option_on {
	int level, name;
};

struct birth {
	enum plug_fd slot;
	int af, type;
	const char *addr;
	uint16_t port;
	struct option_on on[4];	/* switched on before bind(); name 0 ends */
	const char *what;
};

static const struct birth births[] = {
	{ PLUG_FD_DNS_UDP4, AF_INET, SOCK_DGRAM, "0.0.0.0", PLUG_DNS_PORT,
	  { { IPPROTO_IP, IP_PKTINFO } }, "DNS over UDP" },
	{ PLUG_FD_DNS_TCP4, AF_INET, SOCK_STREAM, "0.0.0.0", PLUG_DNS_PORT,
	  { { 0, 0 } }, "DNS over TCP" },
	{ PLUG_FD_HTTP, AF_INET, SOCK_STREAM, PLUG_HTTP_ADDR, PLUG_HTTP_PORT,
	  { { 0, 0 } }, "the HTTP proxy" },
	{ PLUG_FD_SOCKS, AF_INET, SOCK_STREAM, PLUG_SOCKS_ADDR,
	  PLUG_SOCKS_PORT, { { 0, 0 } }, "the SOCKS proxy" },
	{ PLUG_FD_DNS_UDP6, AF_INET6, SOCK_DGRAM, "::", PLUG_DNS_PORT,
	  { { IPPROTO_IPV6, IPV6_V6ONLY }, { IPPROTO_IPV6, IPV6_RECVPKTINFO },
	    { IPPROTO_IPV6, IPV6_FREEBIND } }, "DNS over UDP (IPv6)" },
	{ PLUG_FD_DNS_TCP6, AF_INET6, SOCK_STREAM, "::", PLUG_DNS_PORT,
	  { { IPPROTO_IPV6, IPV6_V6ONLY }, { IPPROTO_IPV6, IPV6_FREEBIND } },
	  "DNS over TCP (IPv6)" },
};

static const struct birth tproxies[] = {
	{ PLUG_FD_TPROXY4, AF_INET, SOCK_STREAM, PLUG_TPROXY_ADDR4, 0,
	  { { IPPROTO_IP, IP_TRANSPARENT } }, "the transparent listener" },
	{ PLUG_FD_TPROXY6, AF_INET6, SOCK_STREAM, PLUG_TPROXY_ADDR6, 0,
	  { { IPPROTO_IPV6, IPV6_V6ONLY }, { IPPROTO_IPV6, IPV6_TRANSPARENT } },
	  "the transparent listener (IPv6)" },
};

static const struct birth wildcards[] = {
	{ PLUG_FD_TPROXY4, AF_INET, SOCK_STREAM, "0.0.0.0", NS_WILDCARD_PORT,
	  { { 0, 0 } }, "the wildcard listener" },
	{ PLUG_FD_TPROXY6, AF_INET6, SOCK_STREAM, "::", NS_WILDCARD_PORT,
	  { { IPPROTO_IPV6, IPV6_V6ONLY } }, "the wildcard listener (IPv6)" },
};

static socklen_t birth_addr(const struct birth *b, struct sockaddr_storage *ret)
{
	struct sockaddr_in *a4 = (void *)ret;
	struct sockaddr_in6 *a6 = (void *)ret;

	memset(ret, 0, sizeof(*ret));
	ret->ss_family = (sa_family_t)b->af;
	if (b->af == AF_INET) {
		a4->sin_port = htons(b->port);
		REQUIRE(inet_pton(AF_INET, b->addr, &a4->sin_addr) == 1);
		return sizeof(*a4);
	}
	a6->sin6_port = htons(b->port);
	REQUIRE(inet_pton(AF_INET6, b->addr, &a6->sin6_addr) == 1);
	return sizeof(*a6);
}

static int birth_make(const struct birth *b, int *ret_fd)
{
	CLEANUP(fd_closep) int fd = -1;
	struct sockaddr_storage addr;
	socklen_t n = birth_addr(b, &addr);
	const int one = 1;

	fd = socket(b->af, b->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd == -1)
		return -errno;
	for (size_t i = 0; i < ARRAY_SIZE(b->on) && b->on[i].name; i++) {
		if (setsockopt(fd, b->on[i].level, b->on[i].name, &one,
			       sizeof(one)) == -1)
			return -errno;
	}
	if (bind(fd, (const struct sockaddr *)&addr, n) == -1)
		return -errno;
	if (b->type == SOCK_STREAM && listen(fd, BACKLOG) == -1)
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}

static int births_make(struct ns_sockets *s, const struct birth *b, size_t n,
		       bool v6, struct launch_error *err)
{
	for (size_t i = 0; i < n; i++) {
		int e;

		if (b[i].af == AF_INET6 && !v6)
			continue;
		e = birth_make(&b[i], &s->fd[b[i].slot]);
		if (e)
			return fault(err, -e, "cannot open the socket for %s",
				     b[i].what);
	}
	return 0;
}

static struct nlmsghdr *nflog_head(char *buf, uint32_t seq)
{
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct nfgenmsg *g;

	h->nlmsg_type = (NFNL_SUBSYS_ULOG << 8) | NFULNL_MSG_CONFIG;
	h->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	h->nlmsg_seq = seq;
	g = mnl_nlmsg_put_extra_header(h, sizeof(*g));
	g->nfgen_family = AF_UNSPEC;
	g->version = NFNETLINK_V0;
	g->res_id = htons(PLUG_NFLOG_GROUP);
	return h;
}

/* A socket that receives what the firewall logs, headers only, at once. */
static int nflog_open(int *ret_fd)
{
	CLEANUP(fd_closep) int fd = -1;
	char buf[512];
	struct nfulnl_msg_config_cmd bind_cmd = { NFULNL_CFG_CMD_BIND };
	struct nfulnl_msg_config_mode mode = {
		.copy_range = htonl(NFLOG_SNAPLEN),
		.copy_mode = NFULNL_COPY_PACKET,
	};
	struct nlmsghdr *h;
	int err = nl_open(NETLINK_NETFILTER, &fd);

	if (err)
		return err;
	h = nflog_head(buf, 1);
	mnl_attr_put(h, NFULA_CFG_CMD, sizeof(bind_cmd), &bind_cmd);
	err = nl_commit(fd, h, h->nlmsg_len, 1, 1, NULL);
	if (err)
		return err;
	h = nflog_head(buf, 2);
	mnl_attr_put(h, NFULA_CFG_MODE, sizeof(mode), &mode);
	mnl_attr_put_u32(h, NFULA_CFG_QTHRESH, htonl(1));
	err = nl_commit(fd, h, h->nlmsg_len, 2, 2, NULL);
	if (!err)
		err = fd_set_nonblock(fd, true);
	if (err)
		return err;
	*ret_fd = fd_take(&fd);
	return 0;
}

static int diag_open(int *ret_fd)
{
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			DIAG_PROTOCOL);

	if (fd == -1)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int ns_listen_open(struct ns_sockets *s, bool v6, struct launch_error *err)
{
	int e = births_make(s, births, ARRAY_SIZE(births), v6, err);

	if (e)
		return e;
	e = diag_open(&s->fd[PLUG_FD_DIAG]);
	if (e)
		return fault(err, -e, "cannot open a socket diagnosis socket");
	/* Without it refused UDP and ICMP are only not recorded. */
	e = nflog_open(&s->fd[PLUG_FD_NFLOG]);
	if (e && !nl_means_absent(e))
		return fault(err, -e, "cannot listen to the firewall's log");
	return 0;
}

static int port_of(int fd, uint16_t *ret)
{
	struct sockaddr_storage ss = { 0 };
	const struct sockaddr_in *a4 = (const void *)&ss;
	const struct sockaddr_in6 *a6 = (const void *)&ss;
	socklen_t n = sizeof(ss);

	if (fd < 0)
		return 0;
	if (getsockname(fd, (struct sockaddr *)&ss, &n) == -1)
		return -errno;
	*ret = ntohs(ss.ss_family == AF_INET ? a4->sin_port : a6->sin6_port);
	return 0;
}

int ns_listen_tproxy(struct ns_sockets *s, bool v6, bool wildcard,
		     struct launch_error *err)
{
	int e;

	fd_closep(&s->fd[PLUG_FD_TPROXY4]);
	fd_closep(&s->fd[PLUG_FD_TPROXY6]);
	e = births_make(s, wildcard ? wildcards : tproxies,
			ARRAY_SIZE(tproxies), v6, err);
	if (e)
		return e;
	e = port_of(s->fd[PLUG_FD_TPROXY4], &s->tproxy4);
	if (!e)
		e = port_of(s->fd[PLUG_FD_TPROXY6], &s->tproxy6);
	if (e)
		return fault(err, -e, "cannot read a listener's port");
	return 0;
}

void ns_sockets_close(struct ns_sockets *s)
{
	for (size_t i = 0; i < PLUG_FDS; i++)
		fd_closep(&s->fd[i]);
}
