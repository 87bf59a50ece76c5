/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover_state.h - what a sandbox remembers, as bytes for another process
 *
 * A list of items, each a type, a length and as many bytes.  What is there:
 * names that were given, each with the address that it has; what the run has
 * used of its budgets.  What is not: what can be asked anew (the DNS cache, idle
 * connections to origins) and what is of the moment (the shares of clients,
 * what fills up again within a second).
 */
#ifndef PROXY_HANDOVER_STATE_H
#define PROXY_HANDOVER_STATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

struct dns_budget;
struct name_map;
struct name_pins;
struct quota;

/* All that one run remembers, at most: two budgets of names, and the rest. */
#define HANDOVER_STATE_ALL_MAX	(160u << 20)

/* Whose it is; what is NULL is not told, and not taken. */
struct handover_memory {
	struct name_map *names;
	struct name_pins *pins;
	struct dns_budget *budget;
	struct quota *quota;
};

/* Append all that @m remembers; 0 or -errno (-ENOSPC: more than @out may have) */
NODISCARD int handover_tell(const struct handover_memory *m, struct buf *out);

/* How many bytes of whole items come first in @bytes, not above @max; 0: none
 * is left, or the first one has no end. */
size_t handover_cut(struct str bytes, size_t max);

/* Take in whole items: 0, -EPROTO for what is none, or -errno. */
NODISCARD int handover_remember(const struct handover_memory *m,
				struct str bytes);

#endif /* PROXY_HANDOVER_STATE_H */
