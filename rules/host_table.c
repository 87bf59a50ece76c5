/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_table.c - host names and all names above them, found label by label
 */
#include "rules/host_table.h"

#include "base/mem.h"
#include "rules/host_cell.h"
#include "rules/host_name.h"

/* --- asking --------------------------------------------------------------- */

/* Up to HOST_ABREAST levels; false when the name has no more below them. */
static inline __attribute__((always_inline)) bool
find_levels(const struct host_table *t, struct host_walk *w, uint32_t *above,
	    struct host_path *path)
{
	struct host_level level[HOST_ABREAST] UNINITIALIZED;
	unsigned n = 0, most = t->depth - path->n;

	for (; n < HOST_ABREAST && n < most && host_walk_next(w, &level[n]);
	     n++)
		fetch_cell(t, level[n].tag);
	for (unsigned i = 0; i < n; i++) {
		const struct host_level *l = &level[i];

		*above = find_record(t, l->tag, *above,
				     str_make(w->host.p + l->at, l->n));
		if (*above == 0)
			return false;
		path->mark[path->n++] =
			head_mark(record_head(t->cell + *above));
		path->whole = l->at == 0;
	}
	return n == HOST_ABREAST;
}

void host_table_find(const struct host_table *t, struct str host,
		     struct host_path *ret)
{
	struct host_walk w UNINITIALIZED;
	uint32_t above = 0;

	ret->n = 0;
	ret->whole = false;
	/* Not canonical, and the empty label would go unseen below. */
	if (host.n > 0 && host.p[0] == '.')
		return;
	host_walk_start(&w, &t->start, host);
	while (find_levels(t, &w, &above, ret))
		;
}

void host_table_done(struct host_table *t)
{
	mem_free(t->block);
	*t = (struct host_table){ 0 };
}

/* --- reading back --------------------------------------------------------- */

static struct str label_of(const struct host_table *t, uint32_t at)
{
	const uint8_t *start = t->cell + (at & ~(CELL_BYTES - 1u)) + CELL_HEAD;

	while (*start != at % CELL_BYTES)
		start++;
	return str_make(t->cell + at + RECORD_HEAD,
			(size_t)(start[-1] - start[0] - RECORD_HEAD));
}

static int tell_name(const struct host_table *t, uint32_t at, host_table_fn *fn,
		     void *arg)
{
	uint32_t mark = head_mark(record_head(t->cell + at));
	char name[HOST_NAME_MAX_LEN + 1] UNINITIALIZED;
	size_t n = 0;

	while (at != 0) {
		struct str label = label_of(t, at);

		memcpy(name + n, label.p, label.n);
		n += label.n;
		name[n++] = '.';
		at = head_above(record_head(t->cell + at));
	}
	return fn(arg, str_make(name, n - 1), mark);
}

int host_table_each(const struct host_table *t, host_table_fn *fn, void *arg)
{
	const uint32_t cells = t->n_cells + t->n_more;
	int err = 0;

	for (uint32_t c = 0; c < cells; c++) {
		const uint8_t *cell = cell_at(t, c);

		for (unsigned i = 0; i < (cell[0] & CELL_N) && !err; i++)
			err = tell_name(t, c * CELL_BYTES + cell[CELL_HEAD + i],
					fn, arg);
	}
	return err;
}
