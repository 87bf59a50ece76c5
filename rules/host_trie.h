/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_trie.h - host patterns by their labels, read from the right
 *
 * A trie whose edges live in one open-addressed table keyed by (parent, label),
 * so that a lookup costs one keyed hash a label and ends at the first label
 * that no pattern has: most refused names end at their second.  What hangs at
 * the nodes is the caller's.
 *
 * Filled once, in an arena, then read by any number of threads.
 */
#ifndef RULES_HOST_TRIE_H
#define RULES_HOST_TRIE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/str.h"

/* Labels in 253 bytes: 126 of one byte and their dots, and one more. */
#define HOST_LABELS_MAX	127
#define HOST_TRIE_ROOT	0u

struct host_trie_node {
	struct str label;	/* borrowed from the name that was added */
	uint32_t parent;
};

struct host_trie {
	struct host_trie_node *node;	/* [0] is the root, above all names */
	uint32_t n, max;
	uint32_t *slot;			/* of edges: a node, or 0 for empty */
	uint32_t mask;
};

/* The nodes from the top label downwards that a name passes. */
struct host_path {
	uint32_t node[HOST_LABELS_MAX];
	unsigned n;
	bool whole;		/* the last node is the name itself */
};

/**
 * host_trie_init() - An empty trie
 * @labels:	at most so many labels will be added, in all names together
 * Return: 0 or -ENOMEM
 */
NODISCARD int host_trie_init(struct host_trie *t, struct arena *arena,
			     size_t labels);
/* The node of @name, made where it is missing; the bytes must outlive it. */
uint32_t host_trie_add(struct host_trie *t, struct str name);
/* @host is canonical; anything else finds nothing below its odd label. */
void host_trie_find(const struct host_trie *t, struct str host,
		    struct host_path *ret);
/* Labels in a canonical name, to size the trie. */
size_t host_labels(struct str name);

#endif /* RULES_HOST_TRIE_H */
