/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_policy.h - the policy of a run, from its file and its --allow options
 */
#ifndef CLI_RUN_POLICY_H
#define CLI_RUN_POLICY_H

#include <stdio.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "cli/run_opts.h"

/* A file that makes the policy; what is not 0 is returned at once. */
typedef int run_policy_file_fn(void *arg, const char *path);

/**
 * run_policy_load() - What --policy, --preset and --allow stand for, as one text
 * @out:	appended
 * @to:		where faults are told, by lines
 * @fn:		told of each file that was read
 *
 * Compiled as a proof, unless it is long: what is wrong in a long one is for
 * the daemon to say, which compiles it anyway.
 * Return: 0, or -errno
 */
NODISCARD int run_policy_load(const struct run_opts *o, struct buf *out,
			      FILE *to, run_policy_file_fn *fn, void *arg);

/* Where the command of a run could have changed the policy's file. */
struct run_policy_place {
	const struct run_opts *opts;
	const char *cwd;		/* where the command can write; NULL: nowhere */
};

/**
 * run_policy_again() - The same while the command runs
 * @arg:	struct run_policy_place
 * @why:	faults, by lines
 *
 * A file in a directory that the command can write is refused: it may have
 * been changed, or another one be in its place.
 */
NODISCARD int run_policy_again(void *arg, struct buf *out, char *why,
			       size_t cap);

#endif /* CLI_RUN_POLICY_H */
