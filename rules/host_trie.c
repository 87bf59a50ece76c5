/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_trie.c - host patterns by their labels, read from the right
 */
#include "rules/host_trie.h"

#include <errno.h>

#include "base/hash.h"

size_t host_labels(struct str name)
{
	size_t n = 1;

	for (size_t i = 0; i < name.n; i++)
		n += name.p[i] == '.';
	return n;
}

/* Take the last label off @rest. */
static bool last_label(struct str *rest, struct str *ret)
{
	size_t at = rest->n;

	if (str_empty(*rest))
		return false;
	while (at > 0 && rest->p[at - 1] != '.')
		at--;
	*ret = str_make(rest->p + at, rest->n - at);
	rest->n = at > 0 ? at - 1 : 0;
	return true;
}

int host_trie_init(struct host_trie *t, struct arena *arena, size_t labels)
{
	uint32_t slots = 16;

	if (labels >= UINT32_MAX / 4)
		return -ENOMEM;
	/* At most half full, so that a miss ends soon. */
	while (slots < 2 * labels)
		slots *= 2;
	t->node = arena_get_array(arena, labels + 1, sizeof(t->node[0]));
	t->slot = arena_get_array(arena, slots, sizeof(t->slot[0]));
	if (!t->node || !t->slot)
		return -ENOMEM;
	t->n = 1;
	t->max = (uint32_t)labels + 1;
	t->mask = slots - 1;
	return 0;
}

/* The slot that holds the edge, or the empty one where it belongs. */
static uint32_t find_slot(const struct host_trie *t, uint32_t parent,
			  struct str label)
{
	/* Odd, so that equal labels below different parents spread. */
	uint64_t hash = hash_str(label) + parent * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t at = (uint32_t)(hash ^ hash >> 32) & t->mask;

	while (t->slot[at] != 0) {
		const struct host_trie_node *node = &t->node[t->slot[at]];

		if (node->parent == parent && str_eq(node->label, label))
			break;
		at = (at + 1) & t->mask;
	}
	return at;
}

uint32_t host_trie_add(struct host_trie *t, struct str name)
{
	uint32_t node = HOST_TRIE_ROOT;
	struct str label;

	while (last_label(&name, &label)) {
		uint32_t at = find_slot(t, node, label);

		if (t->slot[at] == 0) {
			REQUIRE(t->n < t->max);
			t->node[t->n].label = label;
			t->node[t->n].parent = node;
			t->slot[at] = t->n++;
		}
		node = t->slot[at];
	}
	return node;
}

void host_trie_find(const struct host_trie *t, struct str host,
		    struct host_path *ret)
{
	uint32_t node = HOST_TRIE_ROOT;
	struct str label;

	ret->n = 0;
	ret->whole = false;
	/* Not canonical, and the empty label would go unseen below. */
	if (str_starts(host, STR(".")))
		return;
	while (ret->n < HOST_LABELS_MAX && last_label(&host, &label)) {
		node = t->slot[find_slot(t, node, label)];
		if (node == 0)
			return;
		ret->node[ret->n++] = node;
	}
	ret->whole = str_empty(host) && ret->n > 0;
}
