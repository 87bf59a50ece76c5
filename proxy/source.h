/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - the addresses that flows leave from, where the operator says so
 */
#ifndef PROXY_SOURCE_H
#define PROXY_SOURCE_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/str.h"

/* Family IP_NONE: as the kernel chooses. */
struct source {
	struct ip_addr v4, v6;
};

static inline bool source_is_set(const struct source *s)
{
	return s->v4.family != IP_NONE || s->v6.family != IP_NONE;
}

/**
 * source_parse() - One address, or one of each family
 * Return: 0, or -EINVAL with @ret_why as the end of a sentence
 */
NODISCARD int source_parse(struct str text, struct source *ret,
			   const char **ret_why);
/**
 * source_check() - Are they this host's own?
 * @ret_addr:	that is not, on failure
 * Return: 0 or -errno (-EADDRNOTAVAIL)
 */
NODISCARD int source_check(const struct source *s, struct ip_addr *ret_addr);
/* The same of @s or NULL, at the start; says what is wrong. */
NODISCARD int source_open(const struct source *s);
/* Before connect(); @s may be NULL.  0 or -errno. */
NODISCARD int source_bind(const struct source *s, int fd, int family);

#endif /* PROXY_SOURCE_H */
