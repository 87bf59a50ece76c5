/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem_account.h - what somebody makes us hold, counted against limits
 *
 * An account is one thread's, a plain counter: everything that is held for its
 * owner is charged to it when it is got and given back when it is freed, in
 * bytes of ours or, where the kernel holds them for us, by a stated bound.  Pots
 * are what accounts share, on any thread: a pot may be part of another.  To
 * ask them for each piece would cost an atomic operation each time, so an
 * account gets MEM_GRAIN and more from them at once, and gives back what it has
 * too much of; so much of a limit may lie unused with each of its accounts.
 *
 *	new things	mem_account_take(), which may say no
 *	what goes on	mem_account_owe(): a limit ends nothing that was begun;
 *			who could wait asks mem_account_why() before
 */
#ifndef BASE_MEM_ACCOUNT_H
#define BASE_MEM_ACCOUNT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/reason.h"

#define MEM_GRAIN	((size_t)64 << 10)

/* Zeroed: without a limit, and part of nothing. */
struct mem_pot {
	struct mem_pot *whole;	/* that it is part of, outlives it; or NULL */
	enum reason why;	/* at its limit; ALLOWED: the ordinary ones */
	atomic_size_t limit;	/* 0: none */
	atomic_size_t used;	/* got by its accounts, in grains */
};

/* Zeroed: nothing is limited, all is counted. */
struct mem_account {
	struct mem_pot *pot;
	size_t used, peak;	/* bytes */
	size_t granted;		/* by the pot; at least @used where there is one */
	bool tight;		/* over half of a limit, when the pot was asked */
};

/* @pot: outlives it; NULL: there is no limit */
void mem_account_init(struct mem_account *a, struct mem_pot *pot);
/* All was given back. */
void mem_account_done(struct mem_account *a);

/* For the functions below. */
NODISCARD enum reason mem_account_get(struct mem_account *a, size_t n,
				      bool anyway);
void mem_account_put(struct mem_account *a);

/**
 * mem_account_why() - May something new be held?
 *
 * Return: ALLOWED; MEMORY_EXCEEDED: the account's own pot is at its limit;
 * OVERLOADED: one that it is part of is; or what that pot has for it
 */
enum reason mem_account_why(struct mem_account *a);

static inline void mem_account_count(struct mem_account *a, size_t n)
{
	a->used += n;
	if (a->used > a->peak)
		a->peak = a->used;
}

/**
 * mem_account_take() - @n bytes of something new, where there is room
 * @a:		NULL: nothing is counted
 * Return: ALLOWED, and they are charged; or as mem_account_why()
 */
NODISCARD static inline enum reason mem_account_take(struct mem_account *a,
						     size_t n)
{
	enum reason why = REASON_ALLOWED;

	if (!a)
		return why;
	if (a->pot && n > a->granted - a->used)
		why = mem_account_get(a, n, false);
	if (why == REASON_ALLOWED)
		mem_account_count(a, n);
	return why;
}

/* The same whether there is room or not. */
static inline void mem_account_owe(struct mem_account *a, size_t n)
{
	if (!a)
		return;
	if (a->pot && n > a->granted - a->used)
		(void)!mem_account_get(a, n, true);
	mem_account_count(a, n);
}

/* @n bytes that were charged are held no more. */
static inline void mem_account_give(struct mem_account *a, size_t n)
{
	if (!a)
		return;
	REQUIRE(n <= a->used);
	a->used -= n;
	if (a->granted - a->used > 2 * MEM_GRAIN && a->pot)
		mem_account_put(a);
}

#endif /* BASE_MEM_ACCOUNT_H */
