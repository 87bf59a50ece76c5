/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marks.h - a worker's stock of marked sockets, and who waits for one
 */
#ifndef PROXY_MARKS_H
#define PROXY_MARKS_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/fd.h"
#include "base/list.h"

struct event_base;
struct marks;
struct marks_queue;

#define MARKS_STOCK		FD_PASS_MAX	/* sockets of a family, at most */
#define MARKS_LOW		(MARKS_STOCK / 2)	/* then more are asked for */
#define MARKS_WAITING_MAX	1024		/* of a worker */

struct marks_wait;

/* @fd_or_err: a socket, the callee's now, or -errno.  From the loop; @w waits
 * no more, and may be gone when it returns. */
typedef void marks_fn(struct marks_wait *w, int fd_or_err);

/* Zeroed but for @fn: waits for nothing. */
struct marks_wait {
	marks_fn *fn;
	struct marks_queue *queue;	/* NULL: waits no more */
	struct list node;
};

/* @sock: one of marker_fork()'s; taken, also on failure.  0 or -errno. */
NODISCARD int marks_new(struct event_base *base, int sock, struct marks **ret);

/**
 * marks_take() - A marked socket
 * @family:	AF_INET or AF_INET6
 * @w:		called where there is none yet
 *
 * Return: the socket, the caller's; -EINPROGRESS when @w waits; -EPIPE when the
 * marker is gone, -ENOBUFS when too many wait, or -errno
 */
NODISCARD int marks_take(struct marks *m, int family, struct marks_wait *w);
void marks_cancel(struct marks_wait *w);	/* also of one that waits not */
void marks_free(struct marks *m);	/* NULL is fine; nobody may wait */

#endif /* PROXY_MARKS_H */
