/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nl.c - sending netlink messages and reading what the kernel says of them
 */
#include "netns-setup/nl.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int nl_open(int protocol, int *ret_fd)
{
	struct sockaddr_nl self = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd == -1)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&self, sizeof(self)) == -1) {
		int e = errno;

		close(fd);
		return -e;
	}
	*ret_fd = fd;
	return 0;
}

bool nl_means_absent(int err)
{
	return err == -EPROTONOSUPPORT || err == -EOPNOTSUPP ||
	       err == -EAFNOSUPPORT || err == -ENOENT || err == -EINVAL;
}

static int nl_send(int fd, const void *p, size_t n)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };

	if (sendto(fd, p, n, 0, (const struct sockaddr *)&kernel,
		   sizeof(kernel)) == -1)
		return -errno;
	return 0;
}

/* One datagram of answers; its size, or -errno. */
static ssize_t nl_recv(int fd, void *p, size_t cap)
{
	ssize_t n = recv(fd, p, cap, MSG_DONTWAIT | MSG_TRUNC);

	if (n == -1)
		return -errno;
	return (size_t)n > cap ? -EMSGSIZE : n;
}

struct acks {
	uint32_t first, last, bad_seq;
	int err;
	bool done;
};

static void acks_note(struct acks *a, const struct nlmsghdr *h)
{
	const struct nlmsgerr *e = mnl_nlmsg_get_payload(h);

	if (h->nlmsg_type != NLMSG_ERROR ||
	    h->nlmsg_len < mnl_nlmsg_size(sizeof(*e)) ||
	    h->nlmsg_seq < a->first || h->nlmsg_seq > a->last)
		return;
	if (e->error && !a->err) {
		a->err = e->error;
		a->bad_seq = h->nlmsg_seq;
	}
	/* A batch whose head is refused is not answered any further. */
	if (h->nlmsg_seq == a->last || (e->error && h->nlmsg_seq == a->first))
		a->done = true;
}

int nl_commit(int fd, const void *msgs, size_t n, uint32_t first,
	      uint32_t last, uint32_t *ret_seq)
{
	struct acks a = { .first = first, .last = last };
	char answer[NL_ANSWER];
	int err = nl_send(fd, msgs, n);

	if (err)
		return err;
	while (!a.done) {
		ssize_t got = nl_recv(fd, answer, sizeof(answer));
		const struct nlmsghdr *h = (const void *)answer;
		int left = (int)got;

		if (got < 0) {
			err = got == -EAGAIN ? -EPROTO : (int)got;
			return a.err ? a.err : err;
		}
		for (; mnl_nlmsg_ok(h, left); h = mnl_nlmsg_next(h, &left))
			acks_note(&a, h);
	}
	if (a.err && ret_seq)
		*ret_seq = a.bad_seq;
	return a.err;
}

int nl_dump(int fd, const struct nlmsghdr *request, nl_dump_fn *fn, void *arg)
{
	char answer[NL_ANSWER];
	int err = nl_send(fd, request, request->nlmsg_len);

	while (!err) {
		ssize_t got = nl_recv(fd, answer, sizeof(answer));
		const struct nlmsghdr *h = (const void *)answer;
		int left = (int)got;

		if (got < 0)
			return got == -EAGAIN ? -EPROTO : (int)got;
		for (; mnl_nlmsg_ok(h, left) && !err;
		     h = mnl_nlmsg_next(h, &left)) {
			const struct nlmsgerr *e = mnl_nlmsg_get_payload(h);

			if (h->nlmsg_flags & NLM_F_DUMP_INTR)
				return -EINTR;
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			err = h->nlmsg_type == NLMSG_ERROR ? e->error :
							     fn(h, arg);
		}
	}
	return err;
}
