/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_load.c - from a policy's path to what it means
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "cli/opts.h"
#include "cli/policy_text.h"
#include "proxy/ctl_proto.h"

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
	CLEANUP(buf_done) struct buf text = BUF_INIT(PLUG_POLICY_MAX);
	struct policy_said said = { .to = stderr, .errors_only = true };
	struct told told = {
		.fn = diag ? diag : policy_text_diag,
		.arg = diag ? arg : &said,
	};
	struct rules_source source = { .name = path, .text = STR_NONE };
	int e = policy_text_read(path, &text);

	if (e)
		return e;
	source.text = buf_str(&text);
	e = rules_compile(&source, 1, tell, &told, ret);
	if (e && !told.errors)
		say("%s: %s", path, strerror(-e));
	else if (e && is_daemons(source.text))
		say("%s is a configuration of the service, no policy: "
		    "penstockd --check --config %s", path, path);
	return e;
}
