/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_nets.h - networks that are the host's, as many as there are
 */
#ifndef PROXY_HOST_NETS_H
#define PROXY_HOST_NETS_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/ip_addr.h"

/* How many are kept one by one, at least; beyond it they are widened. */
#define HOST_NETS_KEPT	24576
#define HOST_NETS_MAX	(HOST_NETS_KEPT / 3 * 4)

struct host_nets {
	struct ip_net *net;	/* tidy after host_nets_tidy() */
	size_t n, cap;
	unsigned width;		/* how far they are widened; 0: not */
};

/* @bits: of @a's family, up to its whole length; 0 or -ENOMEM. */
NODISCARD int host_nets_add(struct host_nets *s, const struct ip_addr *a,
			    unsigned bits);
void host_nets_tidy(struct host_nets *s);
void host_nets_done(struct host_nets *s);

#endif /* PROXY_HOST_NETS_H */
