/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_cell.h - the cells of a host table, as it is asked and as it is built
 *
 *	byte		what
 *	0		how many records (4 bits), and which others had no room
 *	1 .. 14		keys: eight bits of each record's hash
 *	15		CELL_BYTES, where the first record ends
 *	16 ...		where each record begins, up to CELL_KEYS
 *	... 127		records, the first one last
 *
 * A record ends where the one before it begins, so that no lengths are kept,
 * and what was once written stays in its place while others come.
 *
 * A record that had no room in a cell leaves one of four bits there, which one
 * its hash says: most questions need not look further where cells are full.
 *
 *	record		mark (3 bytes), above (4 bytes), label
 *
 * Of host_table.c and host_build.c alone.
 */
#ifndef RULES_HOST_CELL_H
#define RULES_HOST_CELL_H

#include <stdbool.h>
#include <stdint.h>

#include "rules/host_table.h"

#define CELL_BYTES	128	/* two lines of most caches, fetched together */
#define CELL_LINE	64
#define CELL_KEYS	14
#define CELL_HEAD	16
#define CELL_N		0x0f	/* of the first byte */
#define RECORD_HEAD	7
#define MARK_MASK	((1u << HOST_MARK_BITS_MAX) - 1)

/* The cell of a name, whose tag is spread over all. */
static inline uint32_t cell_of(uint32_t tag, uint32_t n_cells)
{
	return (uint32_t)((uint64_t)tag * n_cells >> 32);
}

static inline uint8_t *cell_at(const struct host_table *t, uint32_t cell)
{
	return t->cell + (size_t)cell * CELL_BYTES;
}

/* Bits that do not say which cell; 0 is what an empty place has. */
static inline uint8_t key_of(uint32_t tag)
{
	return (uint8_t)tag ? (uint8_t)tag : 1;
}

/* The bit of the first byte that it leaves where it had no room. */
static inline uint8_t spill_of(uint32_t tag)
{
	return (uint8_t)(0x10 << (tag >> 8 & 3));
}

/* Mark and name above of a record, read at once. */
static inline uint64_t record_head(const uint8_t *record)
{
	/* A label has a byte at least, so it is within the record. */
	return host_load_word(record);
}

static inline uint32_t head_mark(uint64_t head)
{
	return (uint32_t)head & MARK_MASK;
}

static inline uint32_t head_above(uint64_t head)
{
	return (uint32_t)(head >> HOST_MARK_BITS_MAX);
}

/* As memcmp(), but short and inline: labels are. */
static inline bool same_bytes(const void *a, const void *b, size_t n)
{
	const char *p = a, *q = b;
	size_t i = 0;

	if (n >= 8) {
		for (; i + 8 <= n; i += 8) {
			if (host_load_word(p + i) != host_load_word(q + i))
				return false;
		}
		return host_load_word(p + n - 8) == host_load_word(q + n - 8);
	}
	for (; i < n; i++) {
		if (p[i] != q[i])
			return false;
	}
	return true;
}

/* Is it the record number @i of the cell? */
static inline bool is_record(const uint8_t *cell, unsigned i, uint32_t above,
			     struct str label)
{
	const uint8_t *start = cell + CELL_HEAD + i;
	const uint8_t *r = cell + start[0];

	return start[-1] - start[0] == RECORD_HEAD + (int)label.n &&
	       head_above(record_head(r)) == above &&
	       same_bytes(r + RECORD_HEAD, label.p, label.n);
}

/* Where in the table's bytes the record of @label below @above is, or 0. */
static inline uint32_t find_in_cell(const struct host_table *t,
				    const uint8_t *cell, uint32_t above,
				    struct str label, uint8_t key)
{
	/* Neither the first byte nor the last one is a key. */
	uint64_t low = host_bytes_eq(host_load_word(cell), key) &
		       ~UINT64_C(0xff);
	uint64_t high = host_bytes_eq(host_load_word(cell + 8), key) &
			UINT64_C(0x00ffffffffffffff);

	for (; low; low &= low - 1) {
		unsigned i = (unsigned)__builtin_ctzll(low) / 8 - 1;

		if (is_record(cell, i, above, label))
			return (uint32_t)(cell - t->cell) + cell[CELL_HEAD + i];
	}
	for (; high; high &= high - 1) {
		unsigned i = (unsigned)__builtin_ctzll(high) / 8 + 7;

		if (is_record(cell, i, above, label))
			return (uint32_t)(cell - t->cell) + cell[CELL_HEAD + i];
	}
	return 0;
}

/* The record of @label below the record @above, or 0. */
static inline uint32_t find_record(const struct host_table *t, uint32_t tag,
				   uint32_t above, struct str label)
{
	const uint8_t *cell = cell_at(t, cell_of(tag, t->n_cells));
	const uint8_t key = key_of(tag), spill = spill_of(tag);
	uint32_t at = find_in_cell(t, cell, above, label, key);

	/* The last cell of all spills nothing. */
	while (at == 0 && cell[0] & spill) {
		cell += CELL_BYTES;
		at = find_in_cell(t, cell, above, label, key);
	}
	return at;
}

static inline void fetch_cell(const struct host_table *t, uint32_t tag)
{
	const uint8_t *cell = cell_at(t, cell_of(tag, t->n_cells));

	__builtin_prefetch(cell);
	__builtin_prefetch(cell + CELL_LINE);
}

/* One more record of @size bytes, its key and where it begins. */
static inline bool cell_has_room(const uint8_t *cell, unsigned size)
{
	unsigned n = cell[0] & CELL_N;
	unsigned end = n ? cell[CELL_HEAD - 1 + n] : CELL_BYTES;

	return n < CELL_KEYS && end >= CELL_HEAD + n + 1 + size;
}

#endif /* RULES_HOST_CELL_H */
