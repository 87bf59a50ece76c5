/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.c - SipHash and an intrusive chained table
 *
 * SipHash is J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input
 * PRF" (2012): SipHash-c-d has c rounds for each word and d at the end.
 */
#include "base/hash.h"

#include <errno.h>
#include <pthread.h>

#include "base/id.h"
#include "base/mem.h"

#define HASH_BUCKETS_MIN	8
#define HASH_BUCKETS_MAX	((size_t)1 << 24)

/* @n bytes, the first one lowest. */
static inline uint64_t load_le(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

void hash_state_start(struct hash_state *s, const uint8_t key[16])
{
	uint64_t k0 = load_le(key, 8), k1 = load_le(key + 8, 8);

	s->v0 = k0 ^ UINT64_C(0x736f6d6570736575);
	s->v1 = k1 ^ UINT64_C(0x646f72616e646f6d);
	s->v2 = k0 ^ UINT64_C(0x6c7967656e657261);
	s->v3 = k1 ^ UINT64_C(0x7465646279746573);
}

/* What stands behind the last whole word, and the length of it all. */
static uint64_t last_word(const uint8_t *p, size_t n)
{
	size_t left = n & 7;

	return (uint64_t)n << 56 | (left ? load_le(p + n - left, left) : 0);
}

static void word_24(struct hash_state *s, uint64_t word)
{
	s->v3 ^= word;
	hash_state_round(s);
	hash_state_round(s);
	s->v0 ^= word;
}

uint64_t siphash24(const void *p, size_t n, const uint8_t key[16])
{
	const uint8_t *in = p;
	struct hash_state s;

	hash_state_start(&s, key);
	for (size_t i = 0; i + 8 <= n; i += 8)
		word_24(&s, load_le(in + i, 8));
	word_24(&s, last_word(in, n));
	s.v2 ^= 0xff;
	for (int i = 0; i < 4; i++)
		hash_state_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t siphash13(const void *p, size_t n, const uint8_t key[16])
{
	const uint8_t *in = p;
	struct hash_state s;

	hash_state_start(&s, key);
	for (size_t i = 0; i + 8 <= n; i += 8)
		hash_state_word(&s, load_le(in + i, 8));
	hash_state_word(&s, last_word(in, n));
	return hash_state_value(&s);
}

static uint8_t process_key[16];
static pthread_once_t process_key_once = PTHREAD_ONCE_INIT;

static void process_key_make(void)
{
	random_bytes(process_key, sizeof(process_key));
}

uint64_t hash_bytes(const void *p, size_t n)
{
	REQUIRE(pthread_once(&process_key_once, process_key_make) == 0);
	return siphash24(p, n, process_key);
}

int hash_init(struct hash_table *t, size_t expected)
{
	size_t buckets = HASH_BUCKETS_MIN;

	while (buckets < expected && buckets < HASH_BUCKETS_MAX)
		buckets *= 2;
	t->bucket = mem_new_array(buckets, sizeof(*t->bucket));
	if (!t->bucket)
		return -ENOMEM;
	t->mask = buckets - 1;
	t->n = 0;
	return 0;
}

void hash_done(struct hash_table *t)
{
	mem_free(t->bucket);
	t->bucket = NULL;
	t->mask = 0;
	t->n = 0;
}

static struct hash_node *same_hash(struct hash_node *node, uint64_t hash)
{
	while (node && node->hash != hash)
		node = node->next;
	return node;
}

struct hash_node *hash_first(const struct hash_table *t, uint64_t hash)
{
	if (!t->bucket)
		return NULL;
	return same_hash(t->bucket[hash & t->mask], hash);
}

struct hash_node *hash_next(const struct hash_node *node)
{
	return same_hash(node->next, node->hash);
}

static void hash_grow(struct hash_table *t)
{
	size_t buckets = (t->mask + 1) * 2;
	struct hash_node **wider;

	if (buckets > HASH_BUCKETS_MAX)
		return;
	wider = mem_new_array(buckets, sizeof(*wider));
	if (!wider)
		return;
	for (size_t i = 0; i <= t->mask; i++) {
		while (t->bucket[i]) {
			struct hash_node *node = t->bucket[i];
			struct hash_node **to;

			t->bucket[i] = node->next;
			to = &wider[node->hash & (buckets - 1)];
			node->next = *to;
			*to = node;
		}
	}
	mem_free(t->bucket);
	t->bucket = wider;
	t->mask = buckets - 1;
}

void hash_add(struct hash_table *t, struct hash_node *node, uint64_t hash)
{
	struct hash_node **to;

	if (t->n > t->mask)
		hash_grow(t);
	to = &t->bucket[hash & t->mask];
	node->hash = hash;
	node->next = *to;
	*to = node;
	t->n++;
}

void hash_remove(struct hash_table *t, struct hash_node *node)
{
	struct hash_node **at = &t->bucket[node->hash & t->mask];

	while (*at && *at != node)
		at = &(*at)->next;
	REQUIRE(*at == node);
	*at = node->next;
	node->next = NULL;
	t->n--;
}

struct hash_node *hash_walk(const struct hash_table *t, size_t *bucket,
			    struct hash_node *prev_next)
{
	struct hash_node *node = prev_next;

	while (!node && t->bucket && *bucket <= t->mask)
		node = t->bucket[(*bucket)++];
	return node;
}
