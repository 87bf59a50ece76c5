/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takeover.h - this process takes the service of one before over
 */
#ifndef PROXY_TAKEOVER_H
#define PROXY_TAKEOVER_H

#include <stddef.h>

#include "base/compiler.h"
#include "proxy/host_sock.h"

struct host_listens;
struct plug;

/* For the one before to answer, and to bring its runs to rest and tell of them. */
#define TAKEOVER_WAIT_MS	30000

struct takeover {
	const char *path;		/* of the plug */
	int line;			/* to the process before; -1: none */
	int plug_fd, stderr_fd, notify_fd;	/* that it had; or -1 */
	struct host_handeds sockets;
};

/* -1 and nothing, for takeover_done(). */
void takeover_init(struct takeover *t);

/**
 * takeover_begin() - Ask the one that serves @path; with the rights to open
 *
 * What is wrong was said, with the mend.  Return: 0 or -errno
 */
NODISCARD int takeover_begin(struct takeover *t, const char *path);

/**
 * takeover_take() - Everything that it has, into @p and @h
 *
 * While the workers' threads wait; @h's parts are placed.  When it is done, the
 * service is ours, and nothing of it is served yet.  On failure this process
 * must end without another word to anybody: the one before goes on.
 */
NODISCARD int takeover_take(struct takeover *t, struct plug *p,
			    struct host_listens *h);

/* Closes what nobody has taken. */
void takeover_done(struct takeover *t);

/**
 * takeover_cgroup() - The control group that this process is in
 * @ret:	a path, or "" where it cannot be read
 */
void takeover_cgroup(char *ret, size_t size);

#endif /* PROXY_TAKEOVER_H */
