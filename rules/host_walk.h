/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_walk.h - a name hashed from the right, and the hash asked at each label
 *
 * Of the host table alone (host_table.h); inline for its sake.
 */
#ifndef RULES_HOST_WALK_H
#define RULES_HOST_WALK_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/str.h"

struct host_level {
	uint32_t tag;		/* the hash of the name from here on */
	uint32_t at, n;		/* the label of this level */
};

struct host_walk {
	struct str host;
	size_t end;		/* of the next label */
	bool done;
	struct hash_state hash;
};

static inline void host_walk_start(struct host_walk *w,
				   const struct hash_state *start,
				   struct str host)
{
	w->host = host;
	w->end = host.n;
	w->done = str_empty(host);
	w->hash = *start;
}

static inline uint64_t host_load_word(const void *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/*
 * The eight bytes before @end, the last one highest, and zeros for what is not
 * there; reads nothing but the name.
 */
static inline uint64_t host_word_before(struct str host, size_t end)
{
	uint64_t v = 0;

	if (end >= 8)
		return host_load_word(host.p + end - 8);
	if (host.n >= 8)
		return end ? host_load_word(host.p) << 8 * (8 - end) : 0;
	for (size_t i = 0; i < end; i++)
		v |= (uint64_t)(unsigned char)host.p[i] << 8 * (8 - end + i);
	return v;
}

/* The top bit of each byte of @word that is @byte, and no other bit. */
static inline uint64_t host_bytes_eq(uint64_t word, uint8_t byte)
{
	const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
	uint64_t x = word ^ byte * UINT64_C(0x0101010101010101);

	return ~(((x & low) + low) | x | low);
}

/*
 * A label goes into the hash from its end, in whole words, then in one of what
 * is left and its length.  The top bit, which no letter of a name has, marks
 * that one: labels cannot run together.  False behind the last label.
 */
static inline __attribute__((always_inline)) bool
host_walk_next(struct host_walk *w, struct host_level *ret)
{
	size_t at = w->end, left;
	uint64_t word, dots;

	if (w->done)
		return false;
	for (;; at -= 8) {
		word = host_word_before(w->host, at);
		dots = host_bytes_eq(word, '.');
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

#endif /* RULES_HOST_WALK_H */
