/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.h - the only door to the heap
 *
 * Everything outside base/ allocates here (lint forbids malloc elsewhere), so
 * that failure can be injected in tests and budgets be kept in one place.
 * An arena gives many small pieces that die together, up to a byte budget.
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

#include "base/compiler.h"
#include "base/str.h"

/* Zeroed; NULL when out of memory. */
NODISCARD void *mem_new(size_t size);
NODISCARD void *mem_new_array(size_t n, size_t size);	/* checks overflow */
/* Like realloc() with an overflow check; new bytes are not zeroed. */
NODISCARD void *mem_grow(void *p, size_t n, size_t size);
void mem_free(void *p);
/*
 * After much was freed that had been taken in small pieces: give whole pages of
 * it back to the system.  It takes milliseconds.
 */
void mem_give_back(void);
/*
 * Of a large block that is fresh and will be read here and there: have it in
 * large pages where the kernel can.  Only a hint, and none for a small one.
 */
void mem_prefer_large_pages(void *p, size_t size);
static inline void mem_freep(void *pp) { mem_free(*(void **)pp); }
/* A NUL-terminated copy; NULL when out of memory. */
NODISCARD char *mem_dup_str(struct str s);

/* Test only: the @nth next allocation fails (0: never). */
void mem_test_fail_at(unsigned nth);

struct arena;
NODISCARD struct arena *arena_new(size_t budget_bytes);
void arena_free(struct arena *a);	/* NULL is fine */
/* Zeroed and aligned for any type; NULL when the budget or memory is spent. */
NODISCARD void *arena_get(struct arena *a, size_t size);
NODISCARD void *arena_get_array(struct arena *a, size_t n, size_t size);
/* A copy inside the arena, a NUL behind its end; .p is NULL on failure. */
NODISCARD struct str arena_str(struct arena *a, struct str s);
size_t arena_used(const struct arena *a);

#endif /* BASE_MEM_H */
