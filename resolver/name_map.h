/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_map.h - which synthetic address a sandbox was given for a name
 *
 * One map per sandbox, used only from its worker.  A name gets one IPv4 address out
 * of 198.18.0.0/15 and one IPv6 address out of the ULA prefix below, on first
 * use of each family; an address is never given to another name within the
 * run, so nothing ever expires.  When a family is used up, or the byte budget
 * is, the name is refused (REASON_NAMES_EXCEEDED).
 */
#ifndef RESOLVER_NAME_MAP_H
#define RESOLVER_NAME_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/id.h"
#include "base/ip_addr.h"
#include "base/str.h"

/* 198.18.0.0/15 less its first and last 256; fd70:656e:7374:6f63::/64. */
#define NAME_MAP_V4_PREFIX	"198.18.0.0/15"
#define NAME_MAP_V6_PREFIX	"fd70:656e:7374:6f63::/64"

struct mem_account;
struct name_map;	/* opaque */

NODISCARD int name_map_new(size_t budget_bytes, struct name_map **ret);
/* What it holds from now on is charged to @owner, who outlives it. */
void name_map_set_owner(struct name_map *m, struct mem_account *owner);
void name_map_free(struct name_map *m);

/**
 * name_map_give() - The address of @name in @family, made when there is none
 * @name:	canonical; copied inside
 * @question:	id of the DNS record that is about to carry the answer
 * Return: 0, -ENOSPC when the addresses or the budget are used up, or -ENOMEM
 * where its owner may hold no more
 */
NODISCARD int name_map_give(struct name_map *m, struct str name,
			    enum ip_family family, const struct id *question,
			    struct ip_addr *ret);

/* Does @a lie in one of the two prefixes, given or not? */
bool name_map_is_synthetic(const struct ip_addr *a);

/**
 * name_map_find() - The name behind a synthetic address
 * @ret_name:	borrowed from the map, good while the map lives
 * @ret_question: id of the last DNS record that handed it out
 * Return: false when the address was never given
 */
bool name_map_find(const struct name_map *m, const struct ip_addr *a,
		   struct str *ret_name, struct id *ret_question);

/* The id of the last question for @name, if any: joins explicit flows too. */
bool name_map_question(const struct name_map *m, struct str name,
		       struct id *ret_question);

size_t name_map_count(const struct name_map *m);

/* A name that was given, and how; for who takes the map over. */
struct name_map_entry {
	struct str name;		/* borrowed */
	struct id question;
	bool v4, v6;
};

/* The @i-th of all, below name_map_count().  Another map that is given the
 * names in this order gives each the address that it has here. */
void name_map_entry(const struct name_map *m, size_t i,
		    struct name_map_entry *ret);

#endif /* RESOLVER_NAME_MAP_H */
