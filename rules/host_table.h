/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_table.h - host names and all names above them, found label by label
 *
 * Each name that was added, and each name above one, is a record: its first
 * label, where the record of the name above stands, and a mark, a small number
 * that is the caller's.  Records lie in buckets by a hash of the whole name,
 * packed one behind the other; a directory says where each bucket begins.
 *
 *	directory	where, where, ...
 *	bucket		n, key[n], then n times { mark, above, label }
 *
 * A key is the length of the label and some bits of the hash: it says which
 * records to look at.  A name is found by its bytes or not at all, since its
 * label is compared, and the name above was found in the same way.
 *
 * A name is hashed once, from the right, and the hash is asked after each
 * label, so that all buckets on its path are known before the first is read:
 * they are fetched side by side, and a question waits about once for memory,
 * however large the table is.
 *
 * The hash's key is random for each table, so that no list can be written, nor
 * a name be asked for, that finds crowded buckets.
 *
 * Built once (struct host_build), then read by any number of threads.
 */
#ifndef RULES_HOST_TABLE_H
#define RULES_HOST_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/str.h"

/* Labels in 253 bytes: 126 of one byte and their dots, and one more. */
#define HOST_LABELS_MAX	127

/* The caller's: 0 is what a name has that was not given another. */
#define HOST_MARK_BITS_MAX	24

struct host_table {
	const uint32_t *directory;	/* where buckets begin in @data */
	const uint8_t *data;		/* in the same block */
	uint32_t data_n;
	uint32_t n_buckets;
	uint32_t mark_mask;		/* of the bytes that a mark takes */
	unsigned mark_bytes;
	unsigned depth;			/* labels of the deepest name */
	struct hash_state start;
};

/* The marks from the top label downwards that a name passes. */
struct host_path {
	uint32_t mark[HOST_LABELS_MAX];
	unsigned n;
	bool whole;		/* the last mark is the name's own */
};

/* @host is canonical; anything else finds nothing below its odd label. */
void host_table_find(const struct host_table *t, struct str host,
		     struct host_path *ret);
void host_table_done(struct host_table *t);	/* zeroed is fine */

/* @name lives until it returns; not 0 to stop with it. */
typedef int host_table_fn(void *arg, struct str name, uint32_t mark);
/*
 * Every name and each above one, in no useful order.
 * Return: 0, -ENOMEM, or what @fn returned
 */
NODISCARD int host_table_each(const struct host_table *t, host_table_fn *fn,
			      void *arg);

/* --- building ------------------------------------------------------------- */

/* By its number; who is above another one has a lower number. */
struct host_node {
	uint32_t name;			/* where in the blob */
	uint32_t above;			/* 0: none */
	uint32_t tag;			/* its hash */
	uint32_t mark;			/* the caller's to change */
};

struct host_slot {
	uint32_t node;			/* 0: empty */
	uint32_t tag;
};

struct host_build {
	char *blob;			/* names, each with a NUL behind it */
	size_t blob_n, blob_max;
	struct host_node *node;		/* [0] is none */
	uint32_t n, max;		/* of them, [0] included */
	struct host_slot *slot;		/* open-addressed */
	uint32_t n_slots;		/* places of hashes */
	unsigned depth;
	struct hash_state start;
};

/* A name and those above it as nodes, the top first. */
struct host_trail {
	uint32_t node[HOST_LABELS_MAX];
	unsigned n;
};

/**
 * host_build_init() - Begin, with room for some names
 * @names:	as many are expected; more and fewer will do
 * @bytes:	that they have together, likewise
 *
 * Return: 0 or -ENOMEM
 */
NODISCARD int host_build_init(struct host_build *b, size_t names, size_t bytes);
void host_build_done(struct host_build *b);	/* zeroed is fine */

/* Fetch what an add of @name will look at, so that it need not wait for it. */
void host_build_prefetch(const struct host_build *b, struct str name);

/**
 * host_build_add() - Add a canonical name, which may be there already
 * Return: 0 or -ENOMEM
 */
NODISCARD int host_build_add(struct host_build *b, struct str name,
			     struct host_trail *ret);

/**
 * host_build_take() - Make the table
 * @marks:	all marks of nodes are below it, and it is not above
 *		1 << HOST_MARK_BITS_MAX
 *
 * Return: 0 with @ret the caller's, or -ENOMEM; @b is for host_build_done()
 */
NODISCARD int host_build_take(struct host_build *b, uint32_t marks,
			      struct host_table *ret);

/* The hash of a whole name as the table has it, for tests of collisions. */
uint32_t host_build_tag(const struct host_build *b, struct str name);

#endif /* RULES_HOST_TABLE_H */
