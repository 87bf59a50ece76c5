/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_table.c - host names and all names above them, found label by label
 */
#include "rules/host_table.h"

#include <errno.h>

#include "base/mem.h"
#include "rules/host_name.h"
#include "rules/host_record.h"

#define LINE		64		/* bytes of a cache line, mostly */

/* --- asking --------------------------------------------------------------- */

/* The record of @label below the record @above, or 0. */
static inline uint32_t find_record(const struct host_table *t, uint32_t bucket,
				   uint32_t above, struct str label,
				   uint16_t want)
{
	const uint8_t *p = t->data + bucket;
	const unsigned n = *p;
	uint32_t at = bucket + 1 + 2 * n;

	/* No record has such a label, and its key would say another length. */
	if (label.n > HOST_LABEL_MAX_LEN)
		return 0;
	for (unsigned i = 0; i < n; i++) {
		uint16_t key = load_key(p, i);

		if (key == want) {
			const uint8_t *r = t->data + at + t->mark_bytes;

			if (load_32(r) == above &&
			    memcmp(r + 4, label.p, label.n) == 0)
				return at;
		}
		at += t->mark_bytes + 4 + key_label_n(key);
	}
	return 0;
}

/* Up to HOST_ABREAST levels; false when the name has no more below them. */
static inline __attribute__((always_inline)) bool
find_levels(const struct host_table *t, struct walk *w, uint32_t *above,
	    struct host_path *path)
{
	struct level level[HOST_ABREAST] UNINITIALIZED;
	uint32_t bucket[HOST_ABREAST] UNINITIALIZED;
	unsigned n = 0, most = t->depth - path->n;

	for (; n < HOST_ABREAST && n < most && walk_next(w, &level[n]); n++) {
		bucket[n] = place_of(level[n].tag, t->n_buckets);
		__builtin_prefetch(&t->directory[bucket[n]]);
	}
	for (unsigned i = 0; i < n; i++) {
		bucket[i] = t->directory[bucket[i]];
		__builtin_prefetch(t->data + bucket[i]);
		__builtin_prefetch(t->data + bucket[i] + LINE);
	}
	for (unsigned i = 0; i < n; i++) {
		const struct level *l = &level[i];

		*above = find_record(t, bucket[i], *above,
				     str_make(w->host.p + l->at, l->n),
				     key_of(l->tag, l->n));
		if (*above == 0)
			return false;
		path->mark[path->n++] = le32toh(load_32(t->data + *above)) &
					t->mark_mask;
		path->whole = l->at == 0;
	}
	return n == HOST_ABREAST;
}

void host_table_find(const struct host_table *t, struct str host,
		     struct host_path *ret)
{
	uint32_t above = 0;
	struct walk w;

	ret->n = 0;
	ret->whole = false;
	/* Not canonical, and the empty label would go unseen below. */
	if (str_starts(host, STR(".")))
		return;
	walk_start(&w, &t->start, host);
	while (find_levels(t, &w, &above, ret))
		;
}

void host_table_done(struct host_table *t)
{
	mem_free((void *)(uintptr_t)t->directory);
	*t = (struct host_table){ 0 };
}

/* --- reading back --------------------------------------------------------- */

struct reading {
	const struct host_table *t;
	uint8_t *label_n;	/* by the place of a record; 0: none */
};

static uint32_t records_of(const struct reading *r, uint32_t bucket)
{
	const uint8_t *p = r->t->data + bucket;

	return bucket + 1 + 2 * (uint32_t)*p;
}

static void note_lengths(struct reading *r, uint32_t bucket)
{
	uint32_t at = records_of(r, bucket);

	for (unsigned i = 0; i < r->t->data[bucket]; i++) {
		uint32_t n = key_label_n(load_key(r->t->data + bucket, i));

		r->label_n[at] = (uint8_t)n;
		at += r->t->mark_bytes + 4 + n;
	}
}

static int tell_name(const struct reading *r, uint32_t at, host_table_fn *fn,
		     void *arg)
{
	const struct host_table *t = r->t;
	uint32_t mark = le32toh(load_32(t->data + at)) & t->mark_mask;
	char name[HOST_NAME_MAX_LEN + 1];
	size_t n = 0;

	while (at != 0) {
		const uint8_t *above = t->data + at + t->mark_bytes;

		memcpy(name + n, above + 4, r->label_n[at]);
		n += r->label_n[at];
		name[n++] = '.';
		at = load_32(above);
	}
	return fn(arg, str_make(name, n - 1), mark);
}

int host_table_each(const struct host_table *t, host_table_fn *fn, void *arg)
{
	CLEANUP(mem_freep) uint8_t *label_n = mem_new(t->data_n);
	struct reading r = { .t = t, .label_n = label_n };
	int err = 0;

	if (!label_n)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_buckets; i++)
		note_lengths(&r, t->directory[i]);
	for (uint32_t i = 0; i < t->data_n && !err; i++) {
		if (label_n[i] != 0)
			err = tell_name(&r, i, fn, arg);
	}
	return err;
}
