/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem_account.c - what somebody makes us hold, counted against limits
 *
 * A pot's counter goes up first and down again when that was too much, so that
 * the sum of what is handed out is never over the limit but for what is owed,
 * whoever asks at the same time.
 */
#include "base/mem_account.h"

#define GET(p)	atomic_load_explicit(p, memory_order_relaxed)

static void pots_add(struct mem_pot *pot, size_t n)
{
	for (; pot; pot = pot->whole)
		atomic_fetch_add_explicit(&pot->used, n, memory_order_relaxed);
}

/* Up to @end, exclusive: NULL for all of them. */
static void pots_sub(struct mem_pot *pot, const struct mem_pot *end, size_t n)
{
	for (; pot != end; pot = pot->whole)
		atomic_fetch_sub_explicit(&pot->used, n, memory_order_relaxed);
}

static enum reason reason_of(const struct mem_account *a,
			     const struct mem_pot *pot)
{
	if (pot->why != REASON_ALLOWED)
		return pot->why;
	return pot == a->pot ? REASON_MEMORY_EXCEEDED : REASON_OVERLOADED;
}

/* All of the pots have @n for it, or none. */
static enum reason pots_take(const struct mem_account *a, size_t n)
{
	struct mem_pot *pot;

	for (pot = a->pot; pot; pot = pot->whole) {
		size_t limit = GET(&pot->limit);
		size_t before = atomic_fetch_add_explicit(
			&pot->used, n, memory_order_relaxed);

		if (limit == 0 || before + n <= limit)
			continue;
		pots_sub(a->pot, pot->whole, n);
		return reason_of(a, pot);
	}
	return REASON_ALLOWED;
}

static void look(struct mem_account *a)
{
	a->tight = false;
	for (struct mem_pot *pot = a->pot; pot; pot = pot->whole) {
		size_t limit = GET(&pot->limit);

		if (limit && GET(&pot->used) >= limit / 2)
			a->tight = true;
	}
}

enum reason mem_account_get(struct mem_account *a, size_t n, bool anyway)
{
	size_t need = n - (a->granted - a->used);
	size_t more = (need + MEM_GRAIN - 1) / MEM_GRAIN * MEM_GRAIN;
	enum reason why = pots_take(a, more);

	/* The last of a limit is less than a grain. */
	if (why != REASON_ALLOWED) {
		more = need;
		why = pots_take(a, more);
	}
	if (why != REASON_ALLOWED && anyway) {
		pots_add(a->pot, more);
		why = REASON_ALLOWED;
	}
	if (why == REASON_ALLOWED)
		a->granted += more;
	look(a);
	return why;
}

void mem_account_put(struct mem_account *a)
{
	size_t less = a->granted - a->used - MEM_GRAIN;

	pots_sub(a->pot, NULL, less);
	a->granted -= less;
	look(a);
}

enum reason mem_account_why(struct mem_account *a)
{
	for (struct mem_pot *pot = a ? a->pot : NULL; pot; pot = pot->whole) {
		size_t limit = GET(&pot->limit);

		if (limit && GET(&pot->used) >= limit)
			return reason_of(a, pot);
	}
	return REASON_ALLOWED;
}

void mem_account_init(struct mem_account *a, struct mem_pot *pot)
{
	*a = (struct mem_account){ .pot = pot };
}

void mem_account_done(struct mem_account *a)
{
	REQUIRE(a->used == 0);
	pots_sub(a->pot, NULL, a->granted);
	*a = (struct mem_account){ .pot = NULL };
}
