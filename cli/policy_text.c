/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_text.c - reading policies, and saying what is wrong in them
 */
#include "cli/policy_text.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/files.h"
#include "cli/caller.h"
#include "cli/opts.h"

int policy_text_read(const char *path, struct buf *out)
{
	int e = files_read(NULL, path, out);

	if (e == -EFBIG)
		say("cannot read %s: it has more than %zu bytes", path,
		    out->max);
	else if (e)
		say("cannot read %s: %s", path, strerror(-e));
	return e;
}

/* Beside the program, wherever both were put; else where they were meant to. */
static const char *find_presets(char out[PATH_MAX])
{
	static const char installed[] = PEN_DATADIR "/presets";
	static const char beside[] = "/../share/penstock/presets";
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
	char *slash;

	out[n > 0 ? n : 0] = '\0';
	slash = strrchr(out, '/');
	if (!slash || (size_t)(slash - out) + sizeof(beside) > PATH_MAX)
		return installed;
	memcpy(slash, beside, sizeof(beside));
	return access(out, R_OK) == 0 ? out : installed;
}

int policy_text_load(const struct rules_wanted *wanted, const char *presets,
		     rules_diag_fn *diag, void *arg, struct rules_loaded *ret)
{
	char found[PATH_MAX];
	const struct rules_reader reader = {
		.read = files_read,
		.list = files_list,
		.presets = presets ? presets : find_presets(found),
		.home = caller_path("HOME"),
		.npm_registry = caller_env("NPM_CONFIG_REGISTRY"),
	};

	return rules_load(&reader, wanted, diag, arg, ret);
}

void policy_text_diag(void *arg, const struct rules_diag *d)
{
	struct policy_said *said = arg;
	bool error = d->severity == RULES_ERROR;

	*(error ? &said->errors : &said->warnings) += 1;
	if (!error && said->errors_only)
		return;
	fprintf(said->to, "%s:", d->file);
	if (d->line)
		fprintf(said->to, "%u:", d->line);
	if (d->line && d->column)
		fprintf(said->to, "%u:", d->column);
	fprintf(said->to, " %s: %s\n", error ? "error" : "warning", d->message);
}
