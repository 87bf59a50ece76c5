/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_marks.c - what the rules say of a name, as one small number
 */
#include "rules/host_marks.h"

#include <errno.h>

#include "base/hash.h"
#include "base/mem.h"
#include "rules/host_table.h"

#define DRAFTS_MIN	64
#define EDGES_MIN	128		/* a power of two */
#define MARKS_MAX	(1u << HOST_MARK_BITS_MAX)
#define RULES_LIMIT	(1u << 30)	/* rules that a key has room for */

int host_marks_init(struct host_marks *m)
{
	*m = (struct host_marks){ .n = 1, .max = DRAFTS_MIN };
	m->draft = mem_new_array(DRAFTS_MIN, sizeof(m->draft[0]));
	m->edge = mem_new_array(EDGES_MIN, sizeof(m->edge[0]));
	m->mask = EDGES_MIN - 1;
	if (m->draft && m->edge)
		return 0;
	host_marks_done(m);
	return -ENOMEM;
}

void host_marks_done(struct host_marks *m)
{
	mem_free(m->draft);
	mem_free(m->edge);
	*m = (struct host_marks){ 0 };
}

/* Never 0: a step's two bits are 1, 2 or 3. */
static uint64_t key_of(uint32_t mark, enum host_step step, uint32_t rule)
{
	return (uint64_t)mark << 32 | (uint64_t)rule << 2 |
	       (uint64_t)(step + 1);
}

static struct host_mark_edge *find_edge(const struct host_marks *m,
					uint64_t key)
{
	size_t at = hash_bytes(&key, sizeof(key)) & m->mask;

	while (m->edge[at].key != 0 && m->edge[at].key != key)
		at = (at + 1) & m->mask;
	return &m->edge[at];
}

static int room_for_draft(struct host_marks *m)
{
	struct host_mark_draft *draft;

	if (m->n < m->max)
		return 0;
	if (m->n >= MARKS_MAX)
		return -ENOMEM;
	draft = mem_grow(m->draft, 2 * (size_t)m->max, sizeof(*draft));
	if (!draft)
		return -ENOMEM;
	m->draft = draft;
	m->max *= 2;
	return 0;
}

/* At most half of the edges are in use. */
static int room_for_edge(struct host_marks *m)
{
	struct host_marks wider = { .mask = 2 * m->mask + 1 };

	if (m->n_edges <= m->mask / 2)
		return 0;
	wider.edge = mem_new_array((size_t)wider.mask + 1, sizeof(*wider.edge));
	if (!wider.edge)
		return -ENOMEM;
	for (size_t i = 0; i <= m->mask; i++) {
		if (m->edge[i].key != 0)
			*find_edge(&wider, m->edge[i].key) = m->edge[i];
	}
	mem_free(m->edge);
	m->edge = wider.edge;
	m->mask = wider.mask;
	return 0;
}

static bool says_nothing_new(const struct host_mark_draft *d,
			     enum host_step step, uint32_t rule)
{
	switch (step) {
	case STEP_EXACT:
		return d->last_exact == rule + 1;
	case STEP_BELOW:
		return d->last_below == rule + 1;
	case STEP_LEADS:
		break;
	}
	return d->leads;
}

static struct host_mark_draft follow(const struct host_marks *m, uint32_t from,
				     enum host_step step, uint32_t rule)
{
	struct host_mark_draft d = m->draft[from];

	d.from = from;
	d.rule = rule;
	d.step = (uint8_t)step;
	if (step == STEP_EXACT) {
		d.last_exact = rule + 1;
		d.n_exact++;
	} else if (step == STEP_BELOW) {
		d.last_below = rule + 1;
		d.n_below++;
	} else {
		d.leads = true;
	}
	return d;
}

int host_marks_step(struct host_marks *m, uint32_t *mark, enum host_step step,
		    uint32_t rule)
{
	struct host_mark_edge *edge;

	REQUIRE(rule < RULES_LIMIT);
	if (says_nothing_new(&m->draft[*mark], step, rule))
		return 0;
	if (room_for_draft(m) < 0 || room_for_edge(m) < 0)
		return -ENOMEM;
	edge = find_edge(m, key_of(*mark, step, rule));
	if (edge->key == 0) {
		m->draft[m->n] = follow(m, *mark, step, rule);
		edge->key = key_of(*mark, step, rule);
		edge->to = m->n++;
		m->n_edges++;
	}
	*mark = edge->to;
	return 0;
}
