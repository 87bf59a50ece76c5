/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_check.h - is what came over the plug what ctl_proto.h says?
 *
 * Nothing that a launcher sends is trusted before it passed here.  Refusals
 * are words for the person at the launcher: what is wrong and the mend.
 */
#ifndef PROXY_PLUG_CHECK_H
#define PROXY_PLUG_CHECK_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"
#include "proxy/ctl_proto.h"

struct plug_why {
	char text[PLUG_TEXT_MAX];
};

/* Sets @why, cut to its size; returns -EPROTO for the caller to return. */
int plug_refuse(struct plug_why *why, const char *fmt, ...) PRINTF(2, 3);

/**
 * plug_parse_head() - What kind of message is it? Pure
 * Return: enum plug_type, or -EPROTO with @why when it is none of those that a
 *         launcher may send, in our version
 */
NODISCARD int plug_parse_head(struct str msg, struct plug_why *why);

/**
 * plug_parse_open() - A PLUG_OPEN message; pure
 * @nfds:	descriptors that came beside it
 * @ret:	a copy whose strings are NUL-terminated and of a sane charset
 */
NODISCARD int plug_parse_open(struct str msg, size_t nfds,
			      struct plug_open *ret, struct plug_why *why);

/* A PLUG_SWAP message; pure. @nfds as above. */
NODISCARD int plug_parse_swap(struct str msg, size_t nfds,
			      struct plug_swap *ret, struct plug_why *why);

/* Put descriptors from the message's order into their places; -1: absent. */
void plug_place_fds(const struct plug_open *open, const int *from,
		    int ret_fd[PLUG_FDS]);

/* The cookie of the network namespace that we live in; 0 or -errno. */
NODISCARD int plug_own_netns(uint64_t *ret_cookie);

/**
 * plug_check_fds() - Is each descriptor what it should be?
 *
 * Also makes each socket non-blocking.
 */
NODISCARD int plug_check_fds(const struct plug_open *open,
			     const int fd[PLUG_FDS], uint64_t own_netns,
			     struct plug_why *why);

/* The policy text out of its sealed memfd; at most PLUG_POLICY_MAX bytes. */
NODISCARD int plug_read_policy(int fd, struct buf *out,
			       struct plug_why *why);

#endif /* PROXY_PLUG_CHECK_H */
