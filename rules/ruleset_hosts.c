/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ruleset_hosts.c - the hosts of a ruleset, read back
 */
#include "rules/ruleset.h"

/* The labels of a node follow each other in the text that made it. */
static struct str node_name(const struct host_trie *t, uint32_t node)
{
	struct str name = t->node[node].label;

	for (node = t->node[node].parent; node != HOST_TRIE_ROOT;
	     node = t->node[node].parent)
		name.n += 1 + t->node[node].label.n;
	return name;
}

struct walk {
	const struct ruleset *rs;
	ruleset_host_fn *fn;
	void *arg;
	struct str name;
};

static int tell(const struct walk *w, enum host_pattern_kind kind,
		uint32_t from, uint32_t n)
{
	int e = 0;

	for (uint32_t i = 0; i < n && !e; i++)
		e = w->fn(w->arg, w->rs->entry[from + i] + 1, kind, w->name);
	return e;
}

int ruleset_each_host(const struct ruleset *rs, ruleset_host_fn *fn, void *arg)
{
	struct walk w = { .rs = rs, .fn = fn, .arg = arg };
	int e = 0;

	for (uint32_t i = HOST_TRIE_ROOT + 1; i < rs->trie.n && !e; i++) {
		const struct host_mark *m = &rs->mark[i];

		w.name = node_name(&rs->trie, i);
		e = tell(&w, HOST_EXACT, m->exact, m->n_exact);
		if (!e)
			e = tell(&w, HOST_BELOW, m->below, m->n_below);
	}
	for (size_t i = 0; i < rs->n_any && !e; i++)
		e = fn(arg, rs->any[i] + 1, HOST_ANY, STR_NONE);
	return e;
}
