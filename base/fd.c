/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd.c - descriptors: handing over, reading whole files
 */
#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/socket.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL	0x0008U		/* Linux 6.3 */
#endif

#define READ_STEP	4096

/* From these numbers on; written before threads, read by them. */
static int fd_reserve_from = INT_MAX, fd_last_from = INT_MAX;

void fd_set_reserve(unsigned limit, unsigned reserve)
{
	limit = MIN(limit, (unsigned)INT_MAX);
	REQUIRE(reserve <= limit);
	fd_reserve_from = (int)(limit - reserve);
	fd_last_from = (int)(limit - reserve / 2);
}

bool fd_is_reserved(int fd)
{
	return fd >= fd_reserve_from;
}

bool fd_is_last(int fd)
{
	return fd >= fd_last_from;
}

union fd_control {
	struct cmsghdr align;
	char b[CMSG_SPACE(FD_PASS_MAX * sizeof(int))];
};

int fd_send_msg(int sock, const void *data, size_t n, const int *fds,
		size_t nfds)
{
	struct iovec iov = { (void *)(uintptr_t)data, n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union fd_control control = { .b = { 0 } };
	ssize_t sent;

	/* An empty message could not be told from the end of the stream. */
	if (n == 0 || nfds > FD_PASS_MAX)
		return -EINVAL;
	if (nfds > 0) {
		struct cmsghdr *c;

		msg.msg_control = control.b;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	do {
		sent = sendmsg(sock, &msg, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return (size_t)sent == n ? 0 : -EMSGSIZE;
}

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

/* Every descriptor in @msg, up to FD_PASS_MAX; more cannot fit its buffer. */
static size_t take_fds(struct msghdr *msg, int fds[FD_PASS_MAX])
{
	struct cmsghdr *c;
	size_t total = 0;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		REQUIRE(n <= FD_PASS_MAX - total);
		memcpy(fds + total, CMSG_DATA(c), n * sizeof(int));
		total += n;
	}
	return total;
}

int fd_recv_msg(int sock, void *data, size_t cap, size_t *ret_n,
		int fds[FD_PASS_MAX], size_t *ret_nfds)
{
	struct iovec iov = { data, cap };
	union fd_control control = { .b = { 0 } };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.b,
		.msg_controllen = sizeof(control.b),
	};
	ssize_t got;
	size_t nfds;

	do {
		got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	nfds = take_fds(&msg, fds);
	/* MSG_CTRUNC also says that our descriptor table was full. */
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		close_all(fds, nfds);
		return -EMSGSIZE;
	}
	*ret_n = (size_t)got;
	*ret_nfds = nfds;
	return 0;
}

int fd_write_all(int fd, const void *p, size_t n)
{
	const char *from = p;

	while (n > 0) {
		ssize_t done = write(fd, from, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		from += done;
		n -= (size_t)done;
	}
	return 0;
}

/* One read(2) of at most @n bytes: their number, 0 at the end, or -errno. */
static ssize_t read_some(int fd, void *p, size_t n)
{
	ssize_t got;

	do {
		got = read(fd, p, n);
	} while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

static int read_to_end(int fd, struct buf *out)
{
	for (;;) {
		size_t room = MIN(out->max - out->n, READ_STEP);
		ssize_t got;
		char beyond;
		int err;

		if (room == 0) {
			got = read_some(fd, &beyond, 1);
			return got > 0 ? -EFBIG : (int)got;
		}
		err = buf_reserve(out, room);
		if (err)
			return err;
		got = read_some(fd, out->p + out->n, out->cap - out->n);
		if (got <= 0)
			return (int)got;
		out->n += (size_t)got;
	}
}

int fd_read_all(int fd, struct buf *out)
{
	size_t before = out->n;
	int err = read_to_end(fd, out);

	if (err)
		out->n = before;
	return err;
}

int fd_set_nonblock(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0)
		return -errno;
	flags = on ? flags | O_NONBLOCK : flags & ~O_NONBLOCK;
	return fcntl(fd, F_SETFL, flags) ? -errno : 0;
}

int fd_memfd(const char *name, struct str text, int *ret_fd)
{
	const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	CLEANUP(fd_closep) int fd = -1;
	int err;

	fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	if (fd < 0)
		return -errno;
	err = fd_write_all(fd, text.p, text.n);
	if (err)
		return err;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return -errno;
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE |
				   F_SEAL_SEAL))
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}
