/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_record.h - what asking a host table and making one must do alike
 *
 * How a name is hashed, where its record is, and what a record looks like; of
 * host_table.c and host_build.c alone, and inline for the first one's sake.
 */
#ifndef RULES_HOST_RECORD_H
#define RULES_HOST_RECORD_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/str.h"

/* What is read of a mark at once; behind the last record there is room. */
#define HOST_RECORD_PAD	8
/* Levels that are fetched at once: deeper names are rare. */
#define HOST_ABREAST	8

/* --- hashing from the right ----------------------------------------------- */

struct level {
	uint32_t tag;
	uint32_t at, n;		/* the label of this level */
};

struct walk {
	struct str host;
	size_t end;		/* of the next label */
	bool done;
	struct hash_state hash;
};

static inline void walk_start(struct walk *w, const struct hash_state *start,
		       struct str host)
{
	w->host = host;
	w->end = host.n;
	w->done = str_empty(host);
	w->hash = *start;
}

static inline uint64_t load_word(const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/*
 * The eight bytes before @end, the last one highest, and zeros for what is not
 * there; reads nothing but the name.
 */
static inline uint64_t word_before(struct str host, size_t end)
{
	uint64_t v = 0;

	if (end >= 8)
		return load_word(host.p + end - 8);
	if (host.n >= 8)
		return end ? load_word(host.p) << 8 * (8 - end) : 0;
	for (size_t i = 0; i < end; i++)
		v |= (uint64_t)(unsigned char)host.p[i] << 8 * (8 - end + i);
	return v;
}

/* The top bit of each byte that is a dot, and no other bit. */
static inline uint64_t dots_in(uint64_t word)
{
	const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
	uint64_t x = word ^ UINT64_C(0x2e2e2e2e2e2e2e2e);

	return ~(((x & low) + low) | x | low);
}

/*
 * A label goes into the hash from its end, in whole words, then in one of what
 * is left and its length.  The top bit, which no letter of a name has, marks
 * that one: labels cannot run together.
 */
static inline __attribute__((always_inline)) bool walk_next(struct walk *w, struct level *ret)
{
	size_t at = w->end, left;
	uint64_t word, dots;

	if (w->done)
		return false;
	for (;; at -= 8) {
		word = word_before(w->host, at);
		dots = dots_in(word);
		if (dots || at < 8)
			break;
		hash_state_word(&w->hash, word);
	}
	left = dots ? (size_t)__builtin_clzll(dots) / 8 : at;
	word = left ? word >> (64 - 8 * left) : 0;
	hash_state_word(&w->hash, word | (uint64_t)(0x80 | left) << 56);
	at -= left;
	ret->at = (uint32_t)at;
	ret->n = (uint32_t)(w->end - at);
	ret->tag = (uint32_t)hash_state_value(&w->hash);
	w->done = at == 0;
	w->end = at - !w->done;
	return true;
}

static inline uint32_t place_of(uint32_t tag, uint32_t n)
{
	return (uint32_t)((uint64_t)tag * n >> 32);
}

/* --- records -------------------------------------------------------------- */

/* Six bits of length and ten of the hash, those that say no bucket. */
static inline uint16_t key_of(uint32_t tag, uint32_t label_n)
{
	return (uint16_t)(tag << 6 | label_n);
}

static inline uint32_t key_label_n(uint16_t key)
{
	return key & 63;
}

static inline uint16_t load_key(const uint8_t *bucket, unsigned i)
{
	uint16_t key;

	memcpy(&key, bucket + 1 + 2 * (size_t)i, sizeof(key));
	return key;
}

static inline uint32_t load_32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

#endif /* RULES_HOST_RECORD_H */
