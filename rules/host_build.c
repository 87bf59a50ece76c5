/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_build.c - a host table in the making
 *
 * Names go into the table's own cells as they come, so that a host of a list
 * costs one wait for memory, and that one is fetched ahead (host_build_probe()).
 *
 * How many cells are needed hangs on how much the names have in common, and
 * nothing says that before.  So the table begins small, and when it is full the
 * first time, what the names so far have taken is scaled up to all that are
 * expected.  Where that was wrong it grows again, by half; where it was very
 * wrong the other way, the table is made smaller at the end.  To grow is to add
 * all names to another table.
 */
#include <errno.h>

#include "base/id.h"
#include "base/mem.h"
#include "rules/host_cell.h"
#include "rules/host_name.h"
#include "rules/host_table.h"

/*
 * Per cent of the cells' room that records take: as many as are wanted, and
 * from when on the table grows.  The fuller it is, the more records are not in
 * the cell where they are looked for first.
 */
#define FILL		66
#define FILL_MAX	76
#define CELL_ROOM	(CELL_BYTES - CELL_HEAD)
#define CELLS_MAX	(UINT32_MAX / CELL_BYTES)

/* Names that room is made for before it is known what they take. */
#define SAMPLE		4096u
#define NAME_GUESS	24
/* More than a text of so many bytes takes in the table, mostly. */
#define BYTES_MAX(text)	(2 * (text))

/* Cells behind the places of hashes: with a keyed hash no chain is so long. */
#define MORE_MAX	64
/* Tables that are made to measure, and how much too large others may be. */
#define EXACT_BELOW	4096u
#define TOO_LARGE(n)	((n) + (n) / 2)

/* Cells for records of so many bytes; too many: CELLS_MAX. */
static uint32_t cells_for(size_t bytes)
{
	size_t n = bytes / (CELL_ROOM * FILL / 100) + 1;

	return (uint32_t)MIN(n, CELLS_MAX);
}

static bool is_full(const struct host_build *b)
{
	return (uint64_t)b->used * 100 >=
	       (uint64_t)b->t.n_cells * CELL_ROOM * FILL_MAX;
}

/* An empty table with the same key. */
static int make_cells(struct host_table *t, uint32_t n_cells)
{
	const uint32_t n_more = MIN(n_cells, MORE_MAX) + 1;
	size_t bytes;

	if (n_cells > CELLS_MAX - n_more)
		return -ENOMEM;
	bytes = ((size_t)n_cells + n_more + 1) * CELL_BYTES;
	t->block = mem_new(bytes);
	if (!t->block)
		return -ENOMEM;
	mem_prefer_large_pages(t->block, bytes);
	t->cell = (uint8_t *)t->block +
		  (0 - (uintptr_t)t->block) % CELL_BYTES;
	t->n_cells = n_cells;
	t->n_more = n_more;
	t->depth = 0;
	return 0;
}

int host_build_init(struct host_build *b, size_t names, size_t bytes)
{
	uint8_t key[16];

	*b = (struct host_build){ .expected = names, .text = bytes };
	random_bytes(key, sizeof(key));
	hash_state_start(&b->t.start, key);
	return make_cells(&b->t, cells_for(MIN(names, SAMPLE) * NAME_GUESS));
}

void host_build_done(struct host_build *b)
{
	host_table_done(&b->t);
	*b = (struct host_build){ 0 };
}

/* --- adding --------------------------------------------------------------- */

void host_build_probe(const struct host_build *b, struct str name,
		      struct host_probe *ret)
{
	REQUIRE(name.n > 0 && name.n <= HOST_NAME_MAX_LEN);
	ret->n = 0;
	host_walk_start(&ret->walk, &b->t.start, name);
	while (ret->n < HOST_ABREAST &&
	       host_walk_next(&ret->walk, &ret->level[ret->n]))
		fetch_cell(&b->t, ret->level[ret->n++].tag);
}

/* A record in the first cell from its own on that has room; 0: none has. */
static uint32_t put_record(struct host_build *b, const struct host_level *level,
			   uint32_t above, struct str label)
{
	const struct host_table *t = &b->t;
	const unsigned size = RECORD_HEAD + (unsigned)label.n;
	uint8_t *cell = cell_at(t, cell_of(level->tag, t->n_cells));
	uint8_t *last = cell_at(t, t->n_cells + t->n_more - 1);
	uint64_t head = htole64((uint64_t)above << HOST_MARK_BITS_MAX);
	unsigned n;

	while (!cell_has_room(cell, size)) {
		if (cell == last)
			return 0;
		cell[0] |= spill_of(level->tag);
		cell += CELL_BYTES;
	}
	n = cell[0]++ & CELL_N;
	cell[CELL_HEAD - 1] = CELL_BYTES;
	cell[1 + n] = key_of(level->tag);
	cell[CELL_HEAD + n] = (uint8_t)(cell[CELL_HEAD + n - 1] - size);
	cell += cell[CELL_HEAD + n];
	memcpy(cell, &head, RECORD_HEAD);
	memcpy(cell + RECORD_HEAD, label.p, label.n);
	b->used += size + 1;
	b->records++;
	return (uint32_t)(cell - t->cell);
}

/* -EAGAIN: the table must grow. */
static int try_add(struct host_build *b, const struct host_probe *probe,
		   struct host_trail *ret)
{
	struct host_walk deeper = probe->walk;
	struct host_level level;
	uint32_t above = 0;

	ret->n = 0;
	while (ret->n < probe->n || host_walk_next(&deeper, &level)) {
		struct str label;
		uint32_t at;

		if (ret->n < probe->n)
			level = probe->level[ret->n];
		label = str_make(deeper.host.p + level.at, level.n);
		at = find_record(&b->t, level.tag, above, label);
		if (at == 0)
			at = put_record(b, &level, above, label);
		if (at == 0)
			return -EAGAIN;
		above = at;
		ret->at[ret->n++] = at;
	}
	b->t.depth = MAX(b->t.depth, ret->n);
	return 0;
}

static int move_name(void *arg, struct str name, uint32_t mark)
{
	struct host_build *b = arg;
	struct host_probe probe;
	struct host_trail trail;
	int err;

	host_build_probe(b, name, &probe);
	err = try_add(b, &probe, &trail);
	if (!err)
		host_build_set_mark(b, trail.at[trail.n - 1], mark);
	return err;
}

/* Another table of the same names; larger where that does not do. */
static int resize(struct host_build *b, uint32_t n_cells)
{
	int err;

	do {
		struct host_build to = *b;

		to.used = to.records = 0;
		err = make_cells(&to.t, n_cells);
		if (err)
			return err;
		err = host_table_each(&b->t, move_name, &to);
		host_table_done(err ? &to.t : &b->t);
		if (!err)
			*b = to;
		n_cells += n_cells / 2 + 1;
	} while (err == -EAGAIN);
	return err;
}

static int grow(struct host_build *b)
{
	uint64_t bytes = b->used + b->used / 2;
	uint64_t all = b->expected * (uint64_t)b->used / MAX(b->names, 1);

	/* A little more than by half, so that it ends. */
	bytes = MAX(bytes, MIN(all, BYTES_MAX(b->text)));
	return resize(b, MAX(cells_for(bytes), b->t.n_cells + 1));
}

int host_build_add(struct host_build *b, const struct host_probe *probe,
		   struct host_trail *ret)
{
	int err = 0;

	if (is_full(b))
		err = grow(b);
	b->names++;
	while (!err && (err = try_add(b, probe, ret)) == -EAGAIN)
		err = grow(b);
	return err;
}

/* --- marks ---------------------------------------------------------------- */

uint32_t host_build_mark(const struct host_build *b, uint32_t at)
{
	return head_mark(record_head(b->t.cell + at));
}

void host_build_set_mark(struct host_build *b, uint32_t at, uint32_t mark)
{
	uint8_t *p = b->t.cell + at;

	REQUIRE(mark <= MARK_MASK);
	p[0] = (uint8_t)mark;
	p[1] = (uint8_t)(mark >> 8);
	p[2] = (uint8_t)(mark >> 16);
}

uint32_t host_build_number_marks(struct host_build *b, uint32_t *number)
{
	const uint32_t cells = b->t.n_cells + b->t.n_more;
	uint32_t n = 1;

	for (uint32_t c = 0; c < cells; c++) {
		const uint8_t *cell = cell_at(&b->t, c);

		for (unsigned i = 0; i < (cell[0] & CELL_N); i++) {
			uint32_t at = c * CELL_BYTES + cell[CELL_HEAD + i];
			uint32_t mark = host_build_mark(b, at);

			if (mark != 0 && number[mark] == 0)
				number[mark] = n++;
			host_build_set_mark(b, at, number[mark]);
		}
	}
	return n;
}

/* --- the final form ------------------------------------------------------- */

int host_build_take(struct host_build *b, struct host_table *ret)
{
	uint32_t n = cells_for(b->used);
	int err = 0;

	if (b->t.n_cells > (n < EXACT_BELOW ? n : TOO_LARGE(n)))
		err = resize(b, n);
	if (err)
		return err;
	*ret = b->t;
	*b = (struct host_build){ 0 };
	return 0;
}
