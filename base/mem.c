/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.c - the heap behind one door, and arenas
 *
 * An arena is a chain of chunks.  The newest ordinary chunk is filled from the
 * front; a piece too large for an ordinary chunk gets one of its own.  What
 * counts against the budget is what was taken from the heap for pieces, tails
 * that stay empty included, so that the budget bounds real memory.
 */
#include "base/mem.h"

#include <malloc.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ARENA_ALIGN	alignof(max_align_t)
#define LARGE_PAGE	(2u << 20)	/* of most machines */
#define ARENA_CHUNK	4096	/* bytes of an ordinary chunk, head included */

#ifndef __GLIBC__
/* Other C libraries do it by themselves, or not at all. */
static int malloc_trim(size_t pad)
{
	(void)pad;
	return 0;
}
#endif

static atomic_uint fail_in;	/* allocations until one fails; 0: none does */

void mem_test_fail_at(unsigned nth)
{
	atomic_store(&fail_in, nth);
}

static bool must_fail(void)
{
	unsigned left = atomic_load_explicit(&fail_in, memory_order_relaxed);

	while (left > 0) {
		if (atomic_compare_exchange_weak(&fail_in, &left, left - 1))
			return left == 1;
	}
	return false;
}

void *mem_new(size_t size)
{
	return mem_new_array(1, size);
}

/* The bytes of @n things; at least one, so that NULL always means failure. */
static bool count_bytes(size_t n, size_t size, size_t *ret)
{
	if (__builtin_mul_overflow(n, size, ret) || *ret > PTRDIFF_MAX)
		return false;
	*ret = MAX(*ret, 1);
	return true;
}

void *mem_new_array(size_t n, size_t size)
{
	size_t bytes;

	if (!count_bytes(n, size, &bytes) || must_fail())
		return NULL;
	return calloc(1, bytes);
}

void *mem_grow(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (!count_bytes(n, size, &bytes) || must_fail())
		return NULL;
	return realloc(p, bytes);
}

void mem_free(void *p)
{
	free(p);
}

void mem_give_back(void)
{
	(void)malloc_trim(0);
}

void mem_prefer_large_pages(void *p, size_t size)
{
	const uintptr_t large = LARGE_PAGE;
	uintptr_t begin = ((uintptr_t)p + large - 1) & ~(large - 1);
	uintptr_t end = ((uintptr_t)p + size) & ~(large - 1);

	/* Whole ones alone, so that no more memory is taken than was asked. */
	if (p && begin < end)
		(void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

char *mem_dup_str(struct str s)
{
	char *copy;

	if (s.n == SIZE_MAX)
		return NULL;
	copy = mem_new(s.n + 1);
	if (copy && s.n > 0)
		memcpy(copy, s.p, s.n);
	return copy;
}

struct arena_chunk {
	struct arena_chunk *next;
	size_t size;		/* bytes behind the head */
	size_t used;
	max_align_t data[];
};

struct arena {
	struct arena_chunk *chunk;	/* being filled, then the rest */
	size_t budget;
	size_t taken;			/* sum of the chunks' sizes */
	size_t used;			/* sum of the pieces */
};

struct arena *arena_new(size_t budget_bytes)
{
	struct arena *a = mem_new(sizeof(*a));

	if (a)
		a->budget = budget_bytes;
	return a;
}

void arena_free(struct arena *a)
{
	if (!a)
		return;
	while (a->chunk) {
		struct arena_chunk *gone = a->chunk;

		a->chunk = gone->next;
		mem_free(gone);
	}
	mem_free(a);
}

/* A chunk with room for @need bytes, already linked; NULL: budget or memory. */
static struct arena_chunk *arena_more(struct arena *a, size_t need)
{
	const size_t ordinary = ARENA_CHUNK - sizeof(struct arena_chunk);
	size_t left = a->budget - a->taken;
	struct arena_chunk *c;
	size_t size;

	if (need > left)
		return NULL;
	size = MAX(need, MIN(ordinary, left));
	c = mem_new(sizeof(*c) + size);
	if (!c)
		return NULL;
	c->size = size;
	a->taken += size;
	if (need > ordinary && a->chunk) {
		c->next = a->chunk->next;
		a->chunk->next = c;
	} else {
		c->next = a->chunk;
		a->chunk = c;
	}
	return c;
}

void *arena_get(struct arena *a, size_t size)
{
	struct arena_chunk *c = a->chunk;
	void *piece;
	size_t need;

	if (size > PTRDIFF_MAX)
		return NULL;
	need = (MAX(size, 1) + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);
	if (!c || need > c->size - c->used) {
		c = arena_more(a, need);
		if (!c)
			return NULL;
	}
	piece = (char *)c->data + c->used;
	c->used += need;
	a->used += need;
	return piece;
}

void *arena_get_array(struct arena *a, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	return arena_get(a, bytes);
}

struct str arena_str(struct arena *a, struct str s)
{
	char *copy;

	if (s.n >= PTRDIFF_MAX)
		return STR_NONE;
	copy = arena_get(a, s.n + 1);
	if (!copy)
		return STR_NONE;
	if (s.n > 0)
		memcpy(copy, s.p, s.n);
	return str_make(copy, s.n);
}

size_t arena_used(const struct arena *a)
{
	return a->used;
}
