/* SPDX-License-Identifier: Apache-2.0 */
/*
 * span_tree.c - which ranges hold an address
 *
 * ip_addr_cmp() orders all of IPv4 before all of IPv6, so both live in one
 * tree.
 */
#include "rules/span_tree.h"

#include <stdlib.h>

static int span_cmp(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return ip_addr_cmp(&x->r.lo, &y->r.lo);
}

static struct ip_addr later(struct ip_addr a, struct ip_addr b)
{
	return ip_addr_cmp(&a, &b) < 0 ? b : a;
}

/* Depth is the logarithm of @n. */
static struct ip_addr mark_highest(struct span *s, size_t n)
{
	size_t mid = n / 2;
	struct ip_addr highest = s[mid].r.hi;

	if (mid > 0)
		highest = later(highest, mark_highest(s, mid));
	if (n - mid > 1)
		highest = later(highest,
				mark_highest(s + mid + 1, n - mid - 1));
	s[mid].highest = highest;
	return highest;
}

void span_tree_build(struct span_tree *t)
{
	if (t->n == 0)
		return;
	qsort(t->span, t->n, sizeof(t->span[0]), span_cmp);
	mark_highest(t->span, t->n);
}

static void find(const struct span *s, size_t n, const struct ip_addr *a,
		 span_fn *fn, void *arg)
{
	while (n > 0) {
		size_t mid = n / 2;

		if (ip_addr_cmp(&s[mid].highest, a) < 0)
			return;
		find(s, mid, a, fn, arg);
		/* All from here on begin behind the address. */
		if (ip_addr_cmp(a, &s[mid].r.lo) < 0)
			return;
		if (addr_range_has(&s[mid].r, a))
			fn(arg, &s[mid]);
		s += mid + 1;
		n -= mid + 1;
	}
}

void span_tree_find(const struct span_tree *t, const struct ip_addr *a,
		    span_fn *fn, void *arg)
{
	find(t->span, t->n, a, fn, arg);
}
