/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - keyed hashing (SipHash) and an intrusive chained table
 *
 * Keys come from the attacker, so the key is random per process.  The table
 * holds nodes that live inside the caller's objects; it owns only its buckets.
 *
 * Where many hashes are wanted of one text (each of its ends, say), a struct
 * hash_state is fed word by word and asked in between: SipHash-1-3, the lighter
 * member of the family, for tables that are read on a hot path.
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
uint64_t siphash13(const void *p, size_t n, const uint8_t key[16]);

struct hash_state {
	uint64_t v0, v1, v2, v3;
};

void hash_state_start(struct hash_state *s, const uint8_t key[16]);

static inline uint64_t hash_rotl(uint64_t x, unsigned by)
{
	return x << by | x >> (64 - by);
}

static inline void hash_state_round(struct hash_state *s)
{
	s->v0 += s->v1;
	s->v1 = hash_rotl(s->v1, 13) ^ s->v0;
	s->v0 = hash_rotl(s->v0, 32);
	s->v2 += s->v3;
	s->v3 = hash_rotl(s->v3, 16) ^ s->v2;
	s->v0 += s->v3;
	s->v3 = hash_rotl(s->v3, 21) ^ s->v0;
	s->v2 += s->v1;
	s->v1 = hash_rotl(s->v1, 17) ^ s->v2;
	s->v2 = hash_rotl(s->v2, 32);
}

/* One more word.  That words stand for one text alone is the caller's care. */
static inline void hash_state_word(struct hash_state *s, uint64_t word)
{
	s->v3 ^= word;
	hash_state_round(s);
	s->v0 ^= word;
}

/* The hash of all words so far; @s can be fed on. */
static inline uint64_t hash_state_value(const struct hash_state *s)
{
	struct hash_state end = *s;

	end.v2 ^= 0xff;
	hash_state_round(&end);
	hash_state_round(&end);
	hash_state_round(&end);
	return end.v0 ^ end.v1 ^ end.v2 ^ end.v3;
}

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
/**
 * hash_walk() - Every node, in no order
 * @bucket:	0 at the start, kept by the walk
 * @prev_next:	NULL at the start, then what ->next of the last node was
 *
 * Read ->next before the node given back is removed or freed; nothing may be
 * added and no other node removed on the way.  hash_each() does all of this.
 *
 * Return: the next node, or NULL behind the last
 */
struct hash_node *hash_walk(const struct hash_table *t, size_t *bucket,
			    struct hash_node *prev_next);

static inline struct hash_node *hash_node_next(const struct hash_node *node)
{
	return node ? node->next : NULL;
}

/* @it, @tmp: struct hash_node *, @at: size_t; @it may be removed or freed. */
#define hash_each(t, it, tmp, at) \
	for ((at) = 0, (it) = hash_walk((t), &(at), NULL), \
	     (tmp) = hash_node_next(it); (it); \
	     (it) = hash_walk((t), &(at), (tmp)), (tmp) = hash_node_next(it))

#endif /* BASE_HASH_H */
