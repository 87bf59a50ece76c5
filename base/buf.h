/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.h - bytes with a hard maximum
 *
 * A buf grows by doubling up to the maximum given at its start and then says
 * -ENOSPC; it never moves past it.  After a failed append its contents are as
 * before the call.  A zeroed struct with @max set is a valid empty buf.  What one
 * holds for somebody is owed by their account, if it has one.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

struct mem_account;

struct buf {
	char *p;
	size_t n;	/* bytes in use */
	size_t cap;
	size_t max;
	struct mem_account *owner;	/* outlives it; or NULL */
};

#define BUF_FOR(max_bytes, owner)	\
	((struct buf){ NULL, 0, 0, (max_bytes), (owner) })
#define BUF_INIT(max_bytes)		BUF_FOR(max_bytes, NULL)

void buf_done(struct buf *b);			/* frees; reusable after */
static inline void buf_reset(struct buf *b) { b->n = 0; }
static inline struct str buf_str(const struct buf *b)
{
	return (struct str){ b->p, b->n };
}

/* Room for @n more bytes: 0, -ENOSPC (over max) or -ENOMEM. */
NODISCARD int buf_reserve(struct buf *b, size_t n);
NODISCARD int buf_add(struct buf *b, const void *p, size_t n);
NODISCARD int buf_add_str(struct buf *b, struct str s);
NODISCARD int buf_add_char(struct buf *b, char c);
NODISCARD int buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
/* Drop the first @n bytes and move the rest to the front. */
void buf_consume(struct buf *b, size_t n);
/* Append a NUL that does not count, and return the text. */
NODISCARD const char *buf_cstr(struct buf *b);	/* NULL when out of memory */

#endif /* BASE_BUF_H */
