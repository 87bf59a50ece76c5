/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - keyed hashing (SipHash-2-4) and an intrusive chained table
 *
 * Keys come from the attacker, so the key is random per process.  The table
 * holds nodes that live inside the caller's objects; it owns only its buckets.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

uint64_t hash_bytes(const void *p, size_t n);	/* per-process random key */
static inline uint64_t hash_str(struct str s) { return hash_bytes(s.p, s.n); }
/* With an explicit key: for tests against the published vectors. */
uint64_t siphash24(const void *p, size_t n, const uint8_t key[16]);

struct hash_node {
	struct hash_node *next;
	uint64_t hash;
};

struct hash_table {
	struct hash_node **bucket;
	size_t mask;		/* buckets - 1 */
	size_t n;		/* nodes */
};

NODISCARD int hash_init(struct hash_table *t, size_t expected);	/* 0, -ENOMEM */
void hash_done(struct hash_table *t);	/* nodes are the caller's */
/* First node with @hash; walk on with hash_next(); compare keys yourself. */
struct hash_node *hash_first(const struct hash_table *t, uint64_t hash);
struct hash_node *hash_next(const struct hash_node *node);
/* Grows when crowded; a failed growth only makes chains longer. */
void hash_add(struct hash_table *t, struct hash_node *node, uint64_t hash);
void hash_remove(struct hash_table *t, struct hash_node *node);
/* Every node, in no order: start with NULL; the node given back may be removed. */
struct hash_node *hash_walk(const struct hash_table *t, size_t *bucket,
			    struct hash_node *prev_next);

#endif /* BASE_HASH_H */
