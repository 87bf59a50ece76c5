/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_load.c - from a policy's path to what it means
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "cli/opts.h"
#include "cli/policy_text.h"

static bool is_daemons(struct str text)
{
	struct str line;

	while (str_cut(&text, '\n', &line)) {
		line = str_trim(line);
		if (str_eq(line, STR("[service]")) ||
		    str_eq(line, STR("[plug]")))
			return true;
	}
	return false;
}

struct told {
	rules_diag_fn *fn;
	void *arg;
	unsigned errors;
};

static void tell(void *arg, const struct rules_diag *d)
{
	struct told *told = arg;

	told->errors += d->severity == RULES_ERROR;
	told->fn(told->arg, d);
}

int policy_load(const char *path, rules_diag_fn *diag, void *arg,
		struct ruleset **ret)
{
	return policy_load_text(path, diag, arg, NULL, ret);
}

int policy_load_text(const char *path, rules_diag_fn *diag, void *arg,
		     struct buf *out, struct ruleset **ret)
{
	CLEANUP(rules_loaded_done) struct rules_loaded l = { .n_texts = 0 };
	const struct rules_wanted wanted = { .policy = path };
	struct policy_said said = { .to = stderr, .errors_only = true };
	struct told told = {
		.fn = diag ? diag : policy_text_diag,
		.arg = diag ? arg : &said,
	};
	int e = policy_text_load(&wanted, NULL, tell, &told, &l);

	if (!e)
		e = rules_compile(l.b.source, l.b.n, tell, &told, ret);
	if (!e && out)
		e = rules_bundle_write(l.b.source, l.b.n, out);
	if (e && !told.errors)
		say("%s: %s", path, strerror(-e));
	else if (e && l.b.n > 0 && is_daemons(l.b.source[0].text))
		say("%s is a configuration of the service, no policy: "
		    "penstockd --check --config %s", path, path);
	return e;
}
