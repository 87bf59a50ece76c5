/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_nl.h - rtnetlink, as far as this host's own addresses are asked for
 *
 * Both sockets are opened before the seal, which allows no other of the kind.
 */
#ifndef PROXY_HOST_NL_H
#define PROXY_HOST_NL_H

#include <libmnl/libmnl.h>

#include "base/compiler.h"

/* A socket to ask by, non-blocking. */
NODISCARD int host_nl_open(int *ret_fd);

/*
 * A socket that hears of addresses that come and go, of routes to the host
 * itself, of what may lead to the world by IPv6, and of devices that go.  A
 * busy router's other routes are dropped before they are queued.
 */
NODISCARD int host_nl_hear(int *ret_fd);

/**
 * host_nl_dump() - Ask, and read all that the kernel has to say
 * @request:	a dump with a number of its own
 * @cb:		for each message; given @arg
 * Return: 0; -EINTR when a change fell in between; or another -errno
 */
NODISCARD int host_nl_dump(int fd, const struct nlmsghdr *request,
			   mnl_cb_t cb, void *arg);

/* What an interrupted dump left behind would answer the next question. */
void host_nl_drain(int fd);

#endif /* PROXY_HOST_NL_H */
