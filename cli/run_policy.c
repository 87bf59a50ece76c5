/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_policy.c - the policy of a run, from its file and its --allow options
 */
#include "cli/run_policy.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/opts.h"
#include "cli/policy_text.h"
#include "cli/steady.h"
#include "netns-setup/launch.h"
#include "rules/rules_load.h"

#define PROOF_MAX	(1u << 20)	/* bytes of a text that is compiled here */

static int on_files(const struct rules_bundle *b, run_policy_file_fn *fn,
		    void *arg)
{
	int e = 0;

	for (size_t i = 0; i < b->n && !e; i++) {
		if (rules_source_is_file(b->source, i))
			e = fn(arg, b->source[i].name);
	}
	return e;
}

static int fault(FILE *to, const struct policy_said *said, int e)
{
	if (!said->errors)
		fprintf(to, "cannot read the policy: %s\n", strerror(-e));
	return e == -ENOMEM ? e : -EINVAL;
}

int run_policy_load(const struct run_opts *o, struct buf *out, FILE *to,
		    run_policy_file_fn *fn, void *arg)
{
	CLEANUP(rules_loaded_done) struct rules_loaded l = { .n_texts = 0 };
	CLEANUP(rules_unrefp) struct ruleset *rules = NULL;
	struct policy_said said = { .to = to, .errors_only = true };
	const struct rules_wanted wanted = {
		.policy = o->policy,
		.preset = o->preset,
		.n_presets = o->npresets,
		.allow = buf_str(&o->allow),
	};
	int e = policy_text_load(&wanted, o->preset_dir, policy_text_diag,
				 &said, &l);

	if (!e)
		e = rules_bundle_write(l.b.source, l.b.n, out);
	if (e)
		return fault(to, &said, e);
	e = on_files(&l.b, fn, arg);
	if (e || out->n > PROOF_MAX)
		return e;
	e = rules_compile(l.b.source, l.b.n, policy_text_diag, &said, &rules);
	return e ? fault(to, &said, e) : 0;
}

/* --- again ------------------------------------------------------------------ */

struct again {
	const struct run_policy_place *place;
	FILE *to;
};

static bool is_steady(const struct run_policy_place *p, const char *path)
{
	char link[PATH_MAX], real[PATH_MAX];

	if (!p->cwd)
		return true;
	return steady_find_link(path, p->cwd, link) == 0 &&
	       realpath(path, real) && !path_is_in(real, p->cwd);
}

static int on_file_again(void *arg, const char *path)
{
	const struct again *a = arg;

	if (is_steady(a->place, path))
		return 0;
	fprintf(a->to, "%s is where the command can write, so that it may not "
		"be yours any more: look at it, and give it with --policy\n",
		path);
	return -EPERM;
}

int run_policy_again(void *arg, struct buf *out, char *why, size_t cap)
{
	const struct run_policy_place *p = arg;
	struct again a = { .place = p, .to = fmemopen(why, cap, "w") };
	int e = 0;

	if (!a.to)
		return -errno;
	/* Before it is opened: it could be a link to something else by now. */
	if (p->opts->policy)
		e = on_file_again(&a, p->opts->policy);
	if (!e)
		e = run_policy_load(p->opts, out, a.to, on_file_again, &a);
	fclose(a.to);
	why[cap - 1] = '\0';
	return e;
}
