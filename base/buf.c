/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf.c - bytes with a hard maximum
 *
 * One byte more than @cap is always allocated, so that buf_cstr() and
 * vsnprintf() have room for their NUL even in a full buf.
 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/mem_account.h"

#define BUF_FIRST	64	/* smallest capacity that is allocated */

void buf_done(struct buf *b)
{
	mem_free(b->p);
	mem_account_give(b->owner, b->cap);
	b->p = NULL;
	b->n = 0;
	b->cap = 0;
}

/* Capacity for at least @need bytes, @need <= max. */
static int buf_set_cap(struct buf *b, size_t need)
{
	size_t cap = b->cap > b->max / 2 ? b->max : b->cap * 2;
	char *p;

	cap = MIN(MAX(MAX(cap, need), BUF_FIRST), b->max);
	if (cap == SIZE_MAX)
		return -ENOMEM;
	p = mem_grow(b->p, cap + 1, 1);
	if (!p)
		return -ENOMEM;
	mem_account_owe(b->owner, cap - b->cap);
	b->p = p;
	b->cap = cap;
	return 0;
}

int buf_reserve(struct buf *b, size_t n)
{
	if (b->n > b->max || n > b->max - b->n)
		return -ENOSPC;
	if (b->p && n <= b->cap - b->n)
		return 0;
	return buf_set_cap(b, b->n + n);
}

int buf_add(struct buf *b, const void *p, size_t n)
{
	int err;

	if (n == 0)
		return 0;
	err = buf_reserve(b, n);
	if (err)
		return err;
	memcpy(b->p + b->n, p, n);
	b->n += n;
	return 0;
}

int buf_add_str(struct buf *b, struct str s)
{
	return buf_add(b, s.p, s.n);
}

int buf_add_char(struct buf *b, char c)
{
	return buf_add(b, &c, 1);
}

/* What vsnprintf() says, at the end of @b; -1 is a broken format or charset. */
static int buf_try_vprintf(struct buf *b, const char *fmt, va_list ap)
	PRINTF(2, 0);

static int buf_try_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	if (!b->p)
		return vsnprintf(NULL, 0, fmt, ap);
	return vsnprintf(b->p + b->n, b->cap - b->n + 1, fmt, ap);
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	int err, n;

	va_start(ap, fmt);
	n = buf_try_vprintf(b, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -EINVAL;
	if (!b->p || (size_t)n > b->cap - b->n) {
		err = buf_reserve(b, (size_t)n);
		if (err)
			return err;
		va_start(ap, fmt);
		n = buf_try_vprintf(b, fmt, ap);
		va_end(ap);
		if (n < 0)
			return -EINVAL;
	}
	b->n += (size_t)n;
	return 0;
}

void buf_consume(struct buf *b, size_t n)
{
	REQUIRE(n <= b->n);
	b->n -= n;
	if (b->n > 0 && n > 0)
		memmove(b->p, b->p + n, b->n);
}

const char *buf_cstr(struct buf *b)
{
	if (!b->p && buf_set_cap(b, 0))
		return NULL;
	b->p[b->n] = '\0';
	return b->p;
}
