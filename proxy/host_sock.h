/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_sock.h - the sockets of listeners on addresses of this host
 *
 * Opened before the daemon gives up its rights, so that port 53 works.
 */
#ifndef PROXY_HOST_SOCK_H
#define PROXY_HOST_SOCK_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "proxy/config.h"
#include "proxy/sandbox.h"

struct own_doors;

struct host_sock {
	size_t listen;		/* index of its [listen NAME] */
	size_t worker;		/* whose it is */
	enum sandbox_role role;
	struct ip_endpoint at;
	int fd;			/* -1: taken */
};

struct host_socks {
	struct host_sock *sock;
	size_t n;
	struct own_doors *doors;	/* NULL: none */
};

/**
 * host_socks_open() - Bind and listen as the configuration says
 * @nworkers:	each gets a socket of its own for each address, and the kernel
 *		spreads among them what comes; all of one client to the same
 *		worker where the listener answers DNS, since names that were
 *		given to a client are known to that worker alone
 *
 * What cannot be had is said on the log, with the mend.
 * Return: 0 or -errno; @ret is for host_socks_done() always
 */
NODISCARD int host_socks_open(const struct config *c, size_t nworkers,
			      struct host_socks *ret);
/* One of a process before, for host_socks_open_with(). */
struct host_handed {
	enum sandbox_role role;
	size_t worker;
	struct ip_endpoint at;
	int fd;			/* -1: taken */
};

struct host_handeds {
	struct host_handed *sock;
	size_t n;
};

/**
 * host_socks_open_with() - The same, with what a process before has open
 * @handed:	those whose address and role are wanted are taken, and not opened
 *		anew; a worker gets that of its number, and what is over goes
 *		round.  NULL: there are none
 */
NODISCARD int host_socks_open_with(const struct config *c, size_t nworkers,
				   struct host_handeds *handed,
				   struct host_socks *ret);
/* Is @fd what it is said to be?  0 or -EPROTO */
NODISCARD int host_handed_check(const struct host_handed *h);
/* Closes what nobody has taken. */
void host_socks_done(struct host_socks *s);

#endif /* PROXY_HOST_SOCK_H */
