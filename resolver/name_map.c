/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_map.c - which synthetic address a sandbox was given for a name
 *
 * Theory
 * ======
 * Names are numbered in the order in which they are first given, and the
 * number is the address: entry i has 198.18.0.0 + FIRST + i and the same low
 * bits under the IPv6 prefix.  So an address leads to its entry by arithmetic,
 * through pages of pointers that are added as they are needed and never move.
 * Nothing is ever removed; everything is charged to one arena, whose budget is
 * the sandbox's (the hash buckets come on top: at most 16 bytes a name).
 */
#include "resolver/name_map.h"

#include <errno.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/mem_account.h"

#define FIRST		256u		/* low bits of the first address */
#define V4_BASE		0xc6120000u	/* 198.18.0.0 */
#define V4_MASK		0xfffe0000u	/* /15 */
#define ADDRESSES	(0x20000u - 2 * FIRST)
#define PAGE		256u		/* entries of a page */
#define PAGES		(ADDRESSES / PAGE)
#define BUCKETS		16u		/* bytes of the table, a name */

static const uint8_t v6_prefix[12] = {
	0xfd, 0x70, 0x65, 0x6e, 0x73, 0x74, 0x6f, 0x63, 0, 0, 0, 0,
};
#define V6_NET_BYTES	8		/* the prefix is a /64 */

struct entry {
	struct hash_node node;		/* by name */
	struct str name;
	struct id question;		/* last one that handed it out */
	uint32_t index;
	bool given_v4, given_v6;
};

struct name_map {
	struct arena *arena;
	struct hash_table by_name;
	struct entry **page[PAGES];
	uint32_t n;
	struct mem_account *owner;	/* or NULL */
	size_t charged;
};

int name_map_new(size_t budget_bytes, struct name_map **ret)
{
	struct name_map *m = mem_new(sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->arena = arena_new(budget_bytes);
	if (!m->arena || hash_init(&m->by_name, 64) != 0) {
		arena_free(m->arena);
		mem_free(m);
		return -ENOMEM;
	}
	*ret = m;
	return 0;
}

void name_map_free(struct name_map *m)
{
	if (!m)
		return;
	mem_account_give(m->owner, m->charged);
	hash_done(&m->by_name);
	arena_free(m->arena);
	mem_free(m);
}

void name_map_set_owner(struct name_map *m, struct mem_account *owner)
{
	REQUIRE(m->charged == 0);
	m->owner = owner;
}

static struct entry *find_name(const struct name_map *m, struct str name)
{
	struct hash_node *node = hash_first(&m->by_name, hash_str(name));

	for (; node; node = hash_next(node)) {
		struct entry *e = container_of(node, struct entry, node);

		if (str_eq(e->name, name))
			return e;
	}
	return NULL;
}

static struct entry *entry_new(struct name_map *m, struct str name)
{
	struct entry ***page = &m->page[m->n / PAGE];
	struct entry *e;

	if (!*page)
		*page = arena_get_array(m->arena, PAGE, sizeof(**page));
	if (!*page)
		return NULL;
	e = arena_get(m->arena, sizeof(*e));
	if (!e)
		return NULL;
	e->name = arena_str(m->arena, name);
	if (!e->name.p)
		return NULL;
	e->index = m->n;
	(*page)[m->n % PAGE] = e;
	m->n++;
	hash_add(&m->by_name, &e->node, hash_str(name));
	return e;
}

/* What an entry took of the arena, and of the buckets. */
static void charge(struct name_map *m, size_t before)
{
	size_t n = arena_used(m->arena) - before;

	if (n > 0)
		n += BUCKETS;
	mem_account_owe(m->owner, n);
	m->charged += n;
}

static struct ip_addr entry_addr(const struct entry *e, enum ip_family family)
{
	struct ip_addr a = { .family = (uint8_t)family };
	uint32_t low = FIRST + e->index;

	if (family == IP_V4)
		return ip_addr_v4(V4_BASE + low);
	memcpy(a.b, v6_prefix, sizeof(v6_prefix));
	a.b[12] = (uint8_t)(low >> 24);
	a.b[13] = (uint8_t)(low >> 16);
	a.b[14] = (uint8_t)(low >> 8);
	a.b[15] = (uint8_t)low;
	return a;
}

int name_map_give(struct name_map *m, struct str name, enum ip_family family,
		  const struct id *question, struct ip_addr *ret)
{
	struct entry *e = find_name(m, name);
	size_t before = arena_used(m->arena);

	REQUIRE(family == IP_V4 || family == IP_V6);
	if (!e && mem_account_why(m->owner) != REASON_ALLOWED)
		return -ENOMEM;
	if (!e && m->n < ADDRESSES) {
		e = entry_new(m, name);
		charge(m, before);
	}
	if (!e)
		return -ENOSPC;
	if (family == IP_V4)
		e->given_v4 = true;
	else
		e->given_v6 = true;
	e->question = *question;
	*ret = entry_addr(e, family);
	return 0;
}

bool name_map_is_synthetic(const struct ip_addr *a)
{
	if (a->family == IP_V4)
		return (ip_addr_v4_bits(a) & V4_MASK) == V4_BASE;
	return a->family == IP_V6 &&
	       memcmp(a->b, v6_prefix, V6_NET_BYTES) == 0;
}

/* The entry whose address in @a's family is @a, given or not. */
static const struct entry *find_addr(const struct name_map *m,
				     const struct ip_addr *a)
{
	uint32_t low;

	if (!name_map_is_synthetic(a))
		return NULL;
	if (a->family == IP_V4)
		low = ip_addr_v4_bits(a) & ~V4_MASK;
	else if (memcmp(a->b, v6_prefix, sizeof(v6_prefix)) == 0)
		low = (uint32_t)a->b[12] << 24 | (uint32_t)a->b[13] << 16 |
		      (uint32_t)a->b[14] << 8 | a->b[15];
	else
		return NULL;
	if (low < FIRST || low - FIRST >= m->n)
		return NULL;
	low -= FIRST;
	return m->page[low / PAGE][low % PAGE];
}

bool name_map_find(const struct name_map *m, const struct ip_addr *a,
		   struct str *ret_name, struct id *ret_question)
{
	const struct entry *e = find_addr(m, a);

	if (!e || !(a->family == IP_V4 ? e->given_v4 : e->given_v6))
		return false;
	*ret_name = e->name;
	*ret_question = e->question;
	return true;
}

bool name_map_question(const struct name_map *m, struct str name,
		       struct id *ret_question)
{
	const struct entry *e = find_name(m, name);

	if (!e)
		return false;
	*ret_question = e->question;
	return true;
}

size_t name_map_count(const struct name_map *m)
{
	return m->n;
}

void name_map_entry(const struct name_map *m, size_t i,
		    struct name_map_entry *ret)
{
	const struct entry *e;

	REQUIRE(i < m->n);
	e = m->page[i / PAGE][i % PAGE];
	*ret = (struct name_map_entry){
		.name = e->name, .question = e->question,
		.v4 = e->given_v4, .v6 = e->given_v6,
	};
}
