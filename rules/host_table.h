/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_table.h - host names and all names above them, found label by label
 *
 * Theory
 * ======
 *
 * Each name that was added, and each name above one, is a record: its first
 * label, where the record of the name above stands, and a mark, a small number
 * that is the caller's.  Records lie in cells of fixed size (host_cell.h), in
 * the one that the hash of the whole name says, or where that one is full, in
 * the next one with room.  So the place of a record follows from its name
 * alone, with no directory to be read before.
 *
 * Eight bits of the hash say which records of a cell to look at.  A name is
 * found by its bytes or not at all, since its label is compared, and the name
 * above was found in the same way.
 *
 * What a question costs is waiting for memory, a hundred nanoseconds and more
 * for each read that hangs on one before.  A name is hashed once, from the
 * right, and the hash is asked after each label: all cells on its path are
 * known before the first is read, and are fetched side by side.  A question
 * waits about once, however large the table is and however deep the name, and
 * whether it is there or not.
 *
 * The hash's key is random for each table, so that no list can be written, nor
 * a name be asked for, that finds crowded cells.
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
#include "rules/host_walk.h"

/* Labels in 253 bytes: 126 of one byte and their dots, and one more. */
#define HOST_LABELS_MAX	127

/* The caller's: 0 is what a name has that was not given another. */
#define HOST_MARK_BITS_MAX	24

/* Levels that are fetched at once: deeper names are rare. */
#define HOST_ABREAST	8

struct host_table {
	uint8_t *cell;		/* in the block */
	void *block;
	uint32_t n_cells;	/* that names are spread over */
	uint32_t n_more;	/* behind them, for what the last ones spill */
	unsigned depth;		/* labels of the deepest name */
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
 * Return: 0, or what @fn returned
 */
NODISCARD int host_table_each(const struct host_table *t, host_table_fn *fn,
			      void *arg);

/* --- building ------------------------------------------------------------- */

struct host_build {
	struct host_table t;
	size_t records;
	size_t used;		/* bytes of cells that they take */
	size_t names;		/* that were added */
	size_t expected;	/* that there will be */
	size_t text;		/* bytes that they have together */
};

/* A name that was hashed, and is to be added. */
struct host_probe {
	struct host_walk walk;
	struct host_level level[HOST_ABREAST];
	unsigned n;		/* of them */
};

/* The records of a name and of those above it, the top first. */
struct host_trail {
	uint32_t at[HOST_LABELS_MAX];
	unsigned n;
};

/**
 * host_build_init() - Begin
 * @names:	as many are expected; more and fewer will do
 * @bytes:	that they have together, likewise
 *
 * Return: 0 or -ENOMEM
 */
NODISCARD int host_build_init(struct host_build *b, size_t names, size_t bytes);
void host_build_done(struct host_build *b);	/* zeroed is fine */

/**
 * host_build_probe() - Hash a name, and fetch what adding it will look at
 * @name:	canonical; lives until it is added
 *
 * Others may be added in between, so that nothing waits for memory.
 */
void host_build_probe(const struct host_build *b, struct str name,
		      struct host_probe *ret);

/**
 * host_build_add() - Add a name, which may be there already
 * @ret:	good until the next one is added
 *
 * Return: 0 or -ENOMEM
 */
NODISCARD int host_build_add(struct host_build *b,
			     const struct host_probe *probe,
			     struct host_trail *ret);

/* The mark of a record in a trail. */
uint32_t host_build_mark(const struct host_build *b, uint32_t at);
void host_build_set_mark(struct host_build *b, uint32_t at, uint32_t mark);

/**
 * host_build_number_marks() - Number the marks that some record has anew
 * @number:	in: zeros; out: by mark, the new one, from 1 in no certain
 *		order, or 0 where no record has it.  0 stays 0.
 *
 * Return: how many there are, 0 included
 */
uint32_t host_build_number_marks(struct host_build *b, uint32_t *number);

/**
 * host_build_take() - Make the table
 * Return: 0 with @ret the caller's, or -ENOMEM; @b is for host_build_done()
 */
NODISCARD int host_build_take(struct host_build *b, struct host_table *ret);

#endif /* RULES_HOST_TABLE_H */
