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
#include "rules/rules.h"

static int read_file(const char *path, struct buf *out, FILE *to)
{
	int e = policy_text_load(path, out);

	if (e && to == stderr)
		policy_text_fault(path, out, e);
	else if (e)
		fprintf(to, "cannot read the policy %s: %s\n", path,
			strerror(-e));
	return e;
}

int run_policy_load(const struct run_opts *o, struct buf *out, FILE *to)
{
	CLEANUP(rules_unrefp) struct ruleset *rules = NULL;
	struct policy_said said = { .to = to, .errors_only = true };
	struct rules_source source[2];
	size_t n = 0;
	int e = 0;

	if (o->policy) {
		e = read_file(o->policy, out, to);
		if (e)
			return e;
		source[n++] = (struct rules_source){
			.name = o->policy, .text = buf_str(out),
		};
	}
	source[n++] = (struct rules_source){
		.name = "--allow", .text = buf_str(&o->allow),
	};
	e = rules_compile(source, n, policy_text_diag, &said, &rules);
	if (e && !said.errors)
		fprintf(to, "cannot compile the policy: %s\n", strerror(-e));
	if (e)
		return -EINVAL;
	/* A file's last line may have no end.  Alone it stays as it is, so that
	 * its digest in the records is that of the file. */
	if (out->n > 0 && o->nallow > 0)
		e = buf_add_char(out, '\n');
	if (!e)
		e = buf_add_str(out, buf_str(&o->allow));
	if (e)
		fprintf(to, "cannot join the policy: %s\n", strerror(-e));
	return e;
}

static bool is_steady(const struct run_policy_place *p)
{
	char link[PATH_MAX], real[PATH_MAX];

	if (!p->cwd)
		return true;
	return steady_find_link(p->opts->policy, p->cwd, link) == 0 &&
	       realpath(p->opts->policy, real) && !path_is_in(real, p->cwd);
}

int run_policy_again(void *arg, struct buf *out, char *why, size_t cap)
{
	const struct run_policy_place *p = arg;
	FILE *to = fmemopen(why, cap, "w");
	int e = -EPERM;

	if (!to)
		return -errno;
	if (p->opts->policy && !is_steady(p))
		fprintf(to, "%s is where the command can write, so that it may "
			"not be yours any more: look at it, and give it with "
			"--policy\n", p->opts->policy);
	else
		e = run_policy_load(p->opts, out, to);
	fclose(to);
	why[cap - 1] = '\0';
	return e;
}
