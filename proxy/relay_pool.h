/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay_pool.h - scratch memory and pipes that a worker's relays share
 *
 * For relay.c; conn_*.c use the scratch memory.  A pipe is lent while bytes are
 * inside it and comes back empty, so a worker with thousands of idle tunnels
 * has none.
 */
#ifndef PROXY_RELAY_POOL_H
#define PROXY_RELAY_POOL_H

#include "proxy/relay.h"

struct relay_pipe {
	int rd, wr;		/* -1: no pipe */
	size_t size;		/* bytes that it was made for */
};

#define RELAY_NO_PIPE	((struct relay_pipe){ -1, -1, 0 })

/* RELAY_CHUNK bytes, good until the caller returns to the loop. */
char *relay_pool_scratch(struct relay_pool *p);
/* Return: false when there is none to be had: copy then. */
NODISCARD bool relay_pool_lend(struct relay_pool *p, struct relay_pipe *ret);
/* Give back; @empty false closes it instead of keeping it. */
void relay_pool_return(struct relay_pool *p, struct relay_pipe *pipe,
		       bool empty);
void relay_pool_count(struct relay_pool *p, size_t spliced);

#endif /* PROXY_RELAY_POOL_H */
