/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_hop.h - a connection through a proxy, by CONNECT or SOCKS 5
 */
#ifndef CLI_PROXY_HOP_H
#define CLI_PROXY_HOP_H

#include "base/buf.h"
#include "base/compiler.h"
#include "cli/proxy_url.h"
#include "rules/rules_target.h"

#define HOP_TEXT_MAX	512

enum hop_fault {
	HOP_REFUSED,		/* the proxy says no */
	HOP_FAILED,		/* it may be, and does not work */
	HOP_NO_PROXY,		/* there is no proxy that we could ask */
};

/* In words; "" where there is nothing to say. */
struct hop_why {
	enum hop_fault fault;
	char word[HOP_TEXT_MAX];	/* the reason, in one word where it is
					 * Penstock that says it */
	char sentence[HOP_TEXT_MAX];
	char mend[HOP_TEXT_MAX];
};

/**
 * hop_open() - Reach @to through @proxy
 * @to:		with a port
 * @ret_fd:	non-blocking
 * @early:	empty; gets what the far end said right behind the answer
 * @ret_why:	set on failure
 *
 * Names are the proxy's to look up; that of the proxy itself is ours.  All of
 * it has HOP_MS.
 * Return: 0 or -errno
 */
#define HOP_MS	90000		/* longer than Penstock's own dial takes */
NODISCARD int hop_open(const struct proxy_url *proxy,
		       const struct rules_target *to, int *ret_fd,
		       struct buf *early, struct hop_why *ret_why);

#endif /* CLI_PROXY_HOP_H */
