/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_check.c - is what came over the plug what ctl_proto.h says?
 *
 * A socket is looked at from outside, by getsockopt() and getsockname(): its
 * family, type and protocol, whether it listens, what it is bound to, that
 * nobody else can bind the same port (no SO_REUSEADDR or SO_REUSEPORT), that
 * it has the options which only its maker could set, and that it was born in a
 * network namespace which is the same for all and not our own: a listener of
 * the host's namespace would make the host's programs a sandbox.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/ip_addr.h"
#include "proxy/plug_check.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE	71		/* Linux 5.14 */
#endif

#define PLUG_ALL_FDS	(BIT(PLUG_FDS) - 1)
#define PLUG_ALL_FLAGS	(PLUG_FLAG_OBSERVE | PLUG_FLAG_NO_TPROXY)

int plug_refuse(struct plug_why *why, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(why->text, sizeof(why->text), fmt, ap);
	va_end(ap);
	/* A text that is too long is cut; it still says what is wrong. */
	if (n < 0)
		why->text[0] = '\0';
	return -EPROTO;
}

/* --- the message ---------------------------------------------------------------- */

int plug_parse_head(struct str msg, struct plug_why *why)
{
	struct plug_head head;

	if (msg.n < sizeof(head))
		return plug_refuse(why, "a message of %zu bytes is no message",
				   msg.n);
	memcpy(&head, msg.p, sizeof(head));
	if (head.magic != PLUG_MAGIC)
		return plug_refuse(why, "this is not the language of the plug");
	if (head.version != PLUG_VERSION)
		return plug_refuse(why, "the launcher speaks version %u of the plug, this penstockd version %d: install both from one release",
				   head.version, PLUG_VERSION);
	if (head.type != PLUG_OPEN && head.type != PLUG_CLOSE &&
	    head.type != PLUG_SWAP && head.type != PLUG_RELOAD)
		return plug_refuse(why, "a launcher never sends messages of type %u",
				   head.type);
	if ((head.type == PLUG_CLOSE || head.type == PLUG_RELOAD) &&
	    msg.n != sizeof(head))
		return plug_refuse(why, "the %s message has %zu bytes, not %zu",
				   head.type == PLUG_CLOSE ? "closing" :
				   "reloading", msg.n, sizeof(head));
	return head.type;
}

int plug_parse_swap(struct str msg, size_t nfds, struct plug_swap *ret,
		    struct plug_why *why)
{
	struct plug_swap s;

	if (msg.n != sizeof(s))
		return plug_refuse(why, "the swapping message has %zu bytes, not %zu: install penstock and penstockd from one release",
				   msg.n, sizeof(s));
	memcpy(&s, msg.p, sizeof(s));
	if (s.serial == 0 || s.reserved != 0)
		return plug_refuse(why, "the swapping message has the serial %u and unknown bits %#x",
				   s.serial, s.reserved);
	if (nfds != 1)
		return plug_refuse(why, "the swapping message carries one policy, and %zu descriptors came",
				   nfds);
	*ret = s;
	return 0;
}

static bool plug_char_ok(char c, const char *others)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       ascii_is_digit(c) || (c != '\0' && strchr(others, c));
}

/* NUL-terminated, of letters, digits and @others, not begun by a sign. */
static int plug_check_text(const char *text, size_t cap, const char *field,
			   const char *others, struct plug_why *why)
{
	size_t n = strnlen(text, cap), i;

	if (n == cap)
		return plug_refuse(why, "the %s has no end within %zu bytes",
				   field, cap);
	for (i = 0; i < n; i++)
		if (!plug_char_ok(text[i], i ? others : ""))
			return plug_refuse(why, "the %s has a character that is not allowed at place %zu: use letters, digits and \"%s\"",
					   field, i + 1, others);
	return 0;
}

static int plug_check_texts(const struct plug_open *o, struct plug_why *why)
{
	int err;

	err = plug_check_text(o->run, sizeof(o->run), "run id", "-._", why);
	if (err == 0)
		err = plug_check_text(o->sandbox, sizeof(o->sandbox),
				      "sandbox label", "-._", why);
	if (err == 0)
		err = plug_check_text(o->nonce, sizeof(o->nonce), "nonce",
				      "-", why);
	if (err == 0)
		err = plug_check_text(o->policy, sizeof(o->policy),
				      "policy name", "-._", why);
	if (err == 0 && !o->run[0])
		return plug_refuse(why, "the run id is empty");
	return err;
}

int plug_parse_open(struct str msg, size_t nfds, struct plug_open *ret,
		    struct plug_why *why)
{
	struct plug_open o;
	bool by_fd;

	if (msg.n != sizeof(o))
		return plug_refuse(why, "the opening message has %zu bytes, not %zu: install penstock and penstockd from one release",
				   msg.n, sizeof(o));
	memcpy(&o, msg.p, sizeof(o));
	if (o.fds & ~PLUG_ALL_FDS || o.flags & ~PLUG_ALL_FLAGS)
		return plug_refuse(why, "the opening message has unknown bits (descriptors %#x, flags %#x)",
				   o.fds, o.flags);
	if ((size_t)__builtin_popcount(o.fds) != nfds)
		return plug_refuse(why, "the opening message announces %d descriptors, and %zu came",
				   __builtin_popcount(o.fds), nfds);
	if (plug_check_texts(&o, why) < 0)
		return -EPROTO;
	by_fd = o.fds & BIT(PLUG_FD_POLICY);
	if (by_fd == (o.policy[0] != '\0'))
		return plug_refuse(why, "%s: give either a policy text or the name of one",
				   by_fd ? "two policies" : "no policy");
	*ret = o;
	return 0;
}

void plug_place_fds(const struct plug_open *open, const int *from,
		    int ret_fd[PLUG_FDS])
{
	size_t i, next = 0;

	for (i = 0; i < PLUG_FDS; i++)
		ret_fd[i] = open->fds & BIT(i) ? from[next++] : -1;
}

/* --- the descriptors ------------------------------------------------------------------ */

struct plug_option {
	int level, name;
	const char *words;
};

struct plug_kind {
	const char *what;
	int domain, type, protocol;
	bool listens;
	const char *addr;		/* NULL: not looked at */
	uint16_t port;			/* 0: any but 0 */
	struct plug_option must[3];	/* words NULL ends */
};

#define MUST(level, name)	{ (level), (name), #name }

static const struct plug_kind plug_kinds[PLUG_FDS] = {
	[PLUG_FD_DNS_UDP4] = { "DNS UDP socket (IPv4)", AF_INET, SOCK_DGRAM,
		IPPROTO_UDP, false, "0.0.0.0", PLUG_DNS_PORT,
		{ MUST(IPPROTO_IP, IP_PKTINFO) } },
	[PLUG_FD_DNS_UDP6] = { "DNS UDP socket (IPv6)", AF_INET6, SOCK_DGRAM,
		IPPROTO_UDP, false, "::", PLUG_DNS_PORT,
		{ MUST(IPPROTO_IPV6, IPV6_V6ONLY),
		  MUST(IPPROTO_IPV6, IPV6_RECVPKTINFO),
		  MUST(IPPROTO_IPV6, IPV6_FREEBIND) } },
	[PLUG_FD_DNS_TCP4] = { "DNS TCP socket (IPv4)", AF_INET, SOCK_STREAM,
		IPPROTO_TCP, true, "0.0.0.0", PLUG_DNS_PORT, { { 0 } } },
	[PLUG_FD_DNS_TCP6] = { "DNS TCP socket (IPv6)", AF_INET6, SOCK_STREAM,
		IPPROTO_TCP, true, "::", PLUG_DNS_PORT,
		{ MUST(IPPROTO_IPV6, IPV6_V6ONLY) } },
	[PLUG_FD_TPROXY4] = { "transparent listener (IPv4)", AF_INET,
		SOCK_STREAM, IPPROTO_TCP, true, PLUG_TPROXY_ADDR4, 0,
		{ MUST(IPPROTO_IP, IP_TRANSPARENT) } },
	[PLUG_FD_TPROXY6] = { "transparent listener (IPv6)", AF_INET6,
		SOCK_STREAM, IPPROTO_TCP, true, PLUG_TPROXY_ADDR6, 0,
		{ MUST(IPPROTO_IPV6, IPV6_V6ONLY),
		  MUST(IPPROTO_IPV6, IPV6_TRANSPARENT) } },
	[PLUG_FD_HTTP] = { "HTTP proxy listener", AF_INET, SOCK_STREAM,
		IPPROTO_TCP, true, PLUG_HTTP_ADDR, PLUG_HTTP_PORT, { { 0 } } },
	[PLUG_FD_SOCKS] = { "SOCKS proxy listener", AF_INET, SOCK_STREAM,
		IPPROTO_TCP, true, PLUG_SOCKS_ADDR, PLUG_SOCKS_PORT,
		{ { 0 } } },
	[PLUG_FD_NFLOG] = { "firewall log socket", AF_NETLINK, 0,
		NETLINK_NETFILTER, false, NULL, 0, { { 0 } } },
	[PLUG_FD_DIAG] = { "socket diagnosis socket", AF_NETLINK, 0,
		NETLINK_SOCK_DIAG, false, NULL, 0, { { 0 } } },
};

/* Wildcard mode: the same listeners, for every local address at once. */
static const struct plug_kind plug_wildcard4 = {
	"wildcard listener (IPv4)", AF_INET, SOCK_STREAM, IPPROTO_TCP, true,
	"0.0.0.0", 0, { { 0 } },
};
static const struct plug_kind plug_wildcard6 = {
	"wildcard listener (IPv6)", AF_INET6, SOCK_STREAM, IPPROTO_TCP, true,
	"::", 0, { MUST(IPPROTO_IPV6, IPV6_V6ONLY) },
};

static const struct plug_kind *plug_kind_of(const struct plug_open *o,
					    size_t which)
{
	if (o->flags & PLUG_FLAG_NO_TPROXY && which == PLUG_FD_TPROXY4)
		return &plug_wildcard4;
	if (o->flags & PLUG_FLAG_NO_TPROXY && which == PLUG_FD_TPROXY6)
		return &plug_wildcard6;
	return &plug_kinds[which];
}

/* An option's value, or -1 when there is none such on this descriptor. */
static int plug_option_of(int fd, int level, int name)
{
	int value = 0;
	socklen_t n = sizeof(value);

	return getsockopt(fd, level, name, &value, &n) < 0 ? -1 : value;
}

static int plug_check_type(int fd, const struct plug_kind *k,
			   struct plug_why *why)
{
	int domain = plug_option_of(fd, SOL_SOCKET, SO_DOMAIN);
	int type = plug_option_of(fd, SOL_SOCKET, SO_TYPE);
	int protocol = plug_option_of(fd, SOL_SOCKET, SO_PROTOCOL);
	int listens = plug_option_of(fd, SOL_SOCKET, SO_ACCEPTCONN);

	if (domain < 0)
		return plug_refuse(why, "the %s is no socket", k->what);
	if (domain != k->domain || (k->type && type != k->type) ||
	    protocol != k->protocol)
		return plug_refuse(why, "the %s has the wrong kind (family %d, type %d, protocol %d)",
				   k->what, domain, type, protocol);
	/* Netlink sockets do not know the option. */
	if (k->domain != AF_NETLINK && (listens == 1) != k->listens)
		return plug_refuse(why, "the %s %s", k->what, k->listens
				   ? "does not listen" : "listens");
	return 0;
}

static int plug_check_bound(int fd, const struct plug_kind *k,
			    struct plug_why *why)
{
	char found[IP_ENDPOINT_TEXT_SIZE], addr[IP_TEXT_SIZE];
	struct sockaddr_storage ss;
	socklen_t n = sizeof(ss);
	struct ip_endpoint at;

	if (getsockname(fd, (struct sockaddr *)&ss, &n) < 0 ||
	    ip_endpoint_from_sockaddr((struct sockaddr *)&ss, n, &at) < 0)
		return plug_refuse(why, "the %s has no address", k->what);
	ip_addr_text(&at.addr, addr);
	ip_endpoint_text(&at, found);
	if (strcmp(addr, k->addr) != 0 || at.port == 0 ||
	    (k->port && at.port != k->port))
		return plug_refuse(why, "the %s is bound to %s, not to %s port %u",
				   k->what, found, k->addr, k->port);
	n = sizeof(ss);
	if (getpeername(fd, (struct sockaddr *)&ss, &n) == 0)
		return plug_refuse(why, "the %s is connected", k->what);
	return 0;
}

static int plug_check_options(int fd, const struct plug_kind *k,
			      struct plug_why *why)
{
	size_t i;

	if (plug_option_of(fd, SOL_SOCKET, SO_REUSEADDR) != 0 ||
	    plug_option_of(fd, SOL_SOCKET, SO_REUSEPORT) != 0)
		return plug_refuse(why, "the %s shares its port (SO_REUSEADDR or SO_REUSEPORT): a program in the sandbox could take it over",
				   k->what);
	for (i = 0; i < ARRAY_SIZE(k->must) && k->must[i].words; i++)
		if (plug_option_of(fd, k->must[i].level,
				   k->must[i].name) != 1)
			return plug_refuse(why, "the %s was made without %s",
					   k->what, k->must[i].words);
	return 0;
}

static int plug_netns(int fd, uint64_t *ret)
{
	uint64_t cookie = 0;
	socklen_t n = sizeof(cookie);

	if (getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &n) < 0)
		return -errno;
	*ret = cookie;
	return 0;
}

int plug_own_netns(uint64_t *ret_cookie)
{
	CLEANUP(fd_closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC,
					   0);

	if (fd < 0)
		return -errno;
	return plug_netns(fd, ret_cookie);
}

static int plug_check_netns(int fd, const struct plug_kind *k, uint64_t own,
			    uint64_t *first, struct plug_why *why)
{
	uint64_t cookie;

	if (plug_netns(fd, &cookie) < 0)
		return plug_refuse(why, "the %s does not say its network namespace: Linux 5.14 or newer is needed",
				   k->what);
	if (cookie == own)
		return plug_refuse(why, "the %s was made in penstockd's own network namespace, not in a sandbox's",
				   k->what);
	if (*first && cookie != *first)
		return plug_refuse(why, "the %s is from another network namespace than the sockets before it",
				   k->what);
	*first = cookie;
	return 0;
}

static int plug_check_socket(int fd, const struct plug_kind *k, uint64_t own,
			     uint64_t *netns, struct plug_why *why)
{
	int err = plug_check_type(fd, k, why);

	if (err == 0 && k->addr)
		err = plug_check_bound(fd, k, why);
	if (err == 0 && k->addr)
		err = plug_check_options(fd, k, why);
	if (err == 0)
		err = plug_check_netns(fd, k, own, netns, why);
	if (err == 0 && fd_set_nonblock(fd, true) < 0)
		return plug_refuse(why, "the %s cannot be made non-blocking",
				   k->what);
	return err;
}

/* Records go to the end of a file, or into a pipe that cannot block us. */
static int plug_check_records(int fd, struct plug_why *why)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags < 0 || fstat(fd, &st) < 0)
		return plug_refuse(why, "the descriptor for records is unusable");
	if ((flags & O_ACCMODE) == O_RDONLY)
		return plug_refuse(why, "the descriptor for records is open for reading only");
	if (S_ISREG(st.st_mode) && flags & O_APPEND)
		return 0;
	if (S_ISFIFO(st.st_mode) && fd_set_nonblock(fd, true) == 0)
		return 0;
	return plug_refuse(why, "the descriptor for records is neither a file opened for appending nor a pipe");
}

int plug_check_fds(const struct plug_open *open, const int fd[PLUG_FDS],
		   uint64_t own_netns, struct plug_why *why)
{
	uint64_t netns = 0;
	size_t i;
	int err = 0;

	if (fd[PLUG_FD_RECORDS] >= 0)
		err = plug_check_records(fd[PLUG_FD_RECORDS], why);
	for (i = PLUG_FD_DNS_UDP4; err == 0 && i < PLUG_FDS; i++)
		if (fd[i] >= 0)
			err = plug_check_socket(fd[i], plug_kind_of(open, i),
						own_netns, &netns, why);
	return err;
}

int plug_read_policy(int fd, struct buf *out, struct plug_why *why)
{
	static const int sealed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	size_t size, at = 0;

	/* Unsealed, it could change after it was judged; also no file that
	 * could make us wait has seals. */
	if (seals < 0 || (seals & sealed) != sealed || fstat(fd, &st) < 0)
		return plug_refuse(why, "the policy text is not in a sealed memfd");
	if (st.st_size < 0 || st.st_size > PLUG_POLICY_MAX)
		return plug_refuse(why, "the policy text has more than %u bytes: split it among runs",
				   PLUG_POLICY_MAX);
	size = (size_t)st.st_size;
	if (buf_reserve(out, size) < 0)
		return plug_refuse(why, "out of memory for a policy text of %zu bytes",
				   size);
	while (at < size) {
		ssize_t got = pread(fd, out->p + out->n, size - at,
				    (off_t)at);

		if (got <= 0)
			return plug_refuse(why, "the policy text cannot be read");
		at += (size_t)got;
		out->n += (size_t)got;
	}
	return 0;
}
