/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd.h - descriptors: closing, handing over, reading whole files
 */
#ifndef BASE_FD_H
#define BASE_FD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/compiler.h"

static inline void fd_closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static inline int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/*
 * A reserve of descriptors.  The kernel gives the lowest number that is free,
 * so a number says how many are taken: whoever was given one of the last for
 * something that can be refused closes it again and refuses.  What must go on
 * (control sockets, name servers, files) does not ask.
 */

/* The last @reserve of @limit are kept; for the process, before threads. */
void fd_set_reserve(unsigned limit, unsigned reserve);
/* It is one of the reserve: only to be refused in words. */
bool fd_is_reserved(int fd);
/* It is one of the last half of the reserve: not even for words. */
bool fd_is_last(int fd);

#define FD_PASS_MAX	16	/* descriptors in one message */

/**
 * fd_send_msg() - One SOCK_SEQPACKET message with descriptors beside it
 * Return: 0 or -errno (-EAGAIN when the peer's queue is full)
 */
NODISCARD int fd_send_msg(int sock, const void *data, size_t n,
			  const int *fds, size_t nfds);

/**
 * fd_recv_msg() - Receive one message
 * @fds:	room for FD_PASS_MAX; every received descriptor is CLOEXEC
 * @ret_n:	bytes received; 0 at the end of the stream
 * @ret_nfds:	descriptors received; the caller owns them
 *
 * A message that was cut (MSG_TRUNC, MSG_CTRUNC) closes what came and is
 * -EMSGSIZE.  Return: 0 or -errno
 */
NODISCARD int fd_recv_msg(int sock, void *data, size_t cap, size_t *ret_n,
			  int fds[FD_PASS_MAX], size_t *ret_nfds);

/* For a blocking descriptor. */
NODISCARD int fd_write_all(int fd, const void *p, size_t n);
/* Read to the end or @out->max; -EFBIG when there is more. */
NODISCARD int fd_read_all(int fd, struct buf *out);
NODISCARD int fd_set_nonblock(int fd, bool on);
/* A sealed memfd with @text, position 0; for policy texts. */
NODISCARD int fd_memfd(const char *name, struct str text, int *ret_fd);

#endif /* BASE_FD_H */
