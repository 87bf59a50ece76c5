/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ruleset_hosts.c - the hosts of a ruleset, read back
 */
#include "rules/ruleset.h"

struct walk {
	const struct ruleset *rs;
	ruleset_host_fn *fn;
	void *arg;
};

static int tell(const struct walk *w, struct str name,
		enum host_pattern_kind kind, uint32_t from, uint32_t n)
{
	int e = 0;

	for (uint32_t i = 0; i < n && !e; i++)
		e = w->fn(w->arg, w->rs->entry[from + i] + 1, kind, name);
	return e;
}

static int on_name(void *arg, struct str name, uint32_t mark)
{
	const struct walk *w = arg;
	const struct host_mark *m = &w->rs->mark[mark];
	int e = tell(w, name, HOST_EXACT, m->exact, m->n_exact);

	return e ? e : tell(w, name, HOST_BELOW, m->below, m->n_below);
}

int ruleset_each_host(const struct ruleset *rs, ruleset_host_fn *fn, void *arg)
{
	struct walk w = { .rs = rs, .fn = fn, .arg = arg };
	int e = host_table_each(&rs->hosts, on_name, &w);

	for (size_t i = 0; i < rs->n_any && !e; i++)
		e = fn(arg, rs->any[i] + 1, HOST_ANY, STR_NONE);
	return e;
}
