/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_marks.h - what the rules say of a name, as one small number
 *
 * A million hosts of a list have the same rules, so a name keeps a number, its
 * mark, and the rules stand once at the mark.  While hosts are added a name
 * goes from mark to mark, each reached by one step (this rule names it, names
 * all below it, leads to it) from one before; the same step from the same mark
 * leads to the same mark.  A set of rules is thus a chain of steps, and sets
 * that begin alike share what they have in common.
 */
#ifndef RULES_HOST_MARKS_H
#define RULES_HOST_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define HOST_MARK_NONE	0u	/* no rule speaks of the name */

enum host_step {
	STEP_EXACT,	/* the rule names it */
	STEP_BELOW,	/* the rule names every name below it */
	STEP_LEADS,	/* to names that an allow has; of no certain rule */
};

struct host_mark_draft {
	uint32_t from, rule;
	uint32_t last_exact, last_below;	/* rule + 1; 0: none */
	uint16_t n_exact, n_below;
	uint8_t step;
	bool leads;
};

struct host_mark_edge {
	uint64_t key;		/* of mark, step and rule; 0: empty */
	uint32_t to;
};

struct host_marks {
	struct host_mark_draft *draft;	/* [0] is HOST_MARK_NONE */
	uint32_t n, max;
	struct host_mark_edge *edge;	/* open-addressed */
	uint32_t n_edges, mask;
};

NODISCARD int host_marks_init(struct host_marks *m);	/* 0 or -ENOMEM */
void host_marks_done(struct host_marks *m);		/* zeroed is fine */

/**
 * host_marks_step() - Where a step leads
 * @mark:	in: from where; out: to where, the same if it says nothing new
 * @rule:	its index; rules come in order. 0 for STEP_LEADS.
 *
 * Return: 0 or -ENOMEM
 */
NODISCARD int host_marks_step(struct host_marks *m, uint32_t *mark,
			      enum host_step step, uint32_t rule);

#endif /* RULES_HOST_MARKS_H */
