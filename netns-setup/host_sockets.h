/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_sockets.h - pathname sockets that lie outside the usual places
 *
 * /run, /tmp and their kin are fresh inside; a database or a mail server keeps
 * its socket elsewhere, and a read-only mount does not stop connect(2).  What
 * is bound when the sandbox starts is hidden, wherever it is.
 */
#ifndef NETNS_SETUP_HOST_SOCKETS_H
#define NETNS_SETUP_HOST_SOCKETS_H

#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"

#define HOST_SOCKETS_MAX	512	/* more in odd places than anybody has */

struct host_sockets {
	struct buf text;	/* of /proc/net/unix; @path point into it */
	const char *path[HOST_SOCKETS_MAX + 1];
	size_t n;
};

#define HOST_SOCKETS_INIT	{ .text = BUF_INIT(8u << 20) }

/**
 * host_sockets_find() - Those of our own network namespace
 * @workdir:	put back even where it is below /tmp; NULL: none
 * Return: 0; -E2BIG when there are more than HOST_SOCKETS_MAX; or -errno
 */
NODISCARD int host_sockets_find(struct host_sockets *s, const char *workdir);
/* The same from a text; for tests. */
NODISCARD int host_sockets_parse(struct host_sockets *s,
				 const char *workdir);
void host_sockets_done(struct host_sockets *s);

#endif /* NETNS_SETUP_HOST_SOCKETS_H */
