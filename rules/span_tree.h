/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span_tree.h - which ranges hold an address
 *
 * Ranges may nest and overlap.  They are kept in one array sorted by their
 * lower ends, read as a balanced tree (the middle of each part is its root) in
 * which every root also knows the highest end below it: a lookup skips what
 * ends too early or begins too late, and needs no memory of its own.
 */
#ifndef RULES_SPAN_TREE_H
#define RULES_SPAN_TREE_H

#include "rules/rules_value.h"

struct span {
	struct addr_range r;
	struct ip_addr highest;		/* the tree's: of this part of it */
	uint32_t owner;			/* the caller's */
};

struct span_tree {
	struct span *span;
	size_t n;
};

/* @t->span[0..n) are filled, of both families in any order. */
void span_tree_build(struct span_tree *t);

/* Called for each range that holds the address, in no useful order. */
typedef void span_fn(void *arg, const struct span *s);
void span_tree_find(const struct span_tree *t, const struct ip_addr *a,
		    span_fn *fn, void *arg);

#endif /* RULES_SPAN_TREE_H */
