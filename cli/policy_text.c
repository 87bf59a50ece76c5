/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_text.c - reading policies, and saying what is wrong in them
 */
#include "cli/policy_text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/opts.h"

int policy_text_load(const char *path, struct buf *out)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd == -1 ? -errno : fd_read_all(fd, out);
}

void policy_text_fault(const char *path, const struct buf *out, int e)
{
	if (e == -EFBIG)
		say("cannot read the policy %s: it has more than %zu bytes",
		    path, out->max);
	else
		say("cannot read the policy %s: %s", path, strerror(-e));
}

int policy_text_read(const char *path, struct buf *out)
{
	int e = policy_text_load(path, out);

	if (e)
		policy_text_fault(path, out, e);
	return e;
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
