/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nl.h - netlink requests that are answered while we wait
 *
 * rtnetlink and nfnetlink work inside sendmsg(2), so every answer is queued
 * when the call returns: nothing here ever waits.
 */
#ifndef NETNS_SETUP_NL_H
#define NETNS_SETUP_NL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct nlmsghdr;

#define NL_BUF	65536		/* bytes of one request batch */
#define NL_ANSWER	16384	/* bytes of one answer */

NODISCARD int nl_open(int protocol, int *ret_fd);

/* Is it that this kernel has none of what was asked for: compiled out, or a
 * module that is not there? */
bool nl_means_absent(int err);

/**
 * nl_commit() - Send messages of which the last asks for an acknowledgement
 * @first:	sequence number of the first message
 * @last:	and of the last
 * @ret_seq:	which message failed; may be NULL
 * Return: 0, or the first failure as -errno
 */
NODISCARD int nl_commit(int fd, const void *msgs, size_t n, uint32_t first,
			uint32_t last, uint32_t *ret_seq);

/* Called for each message of a dump; a negative return ends it. */
typedef int nl_dump_fn(const struct nlmsghdr *msg, void *arg);

NODISCARD int nl_dump(int fd, const struct nlmsghdr *request, nl_dump_fn *fn,
		      void *arg);

#endif /* NETNS_SETUP_NL_H */
