/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_text.h - policy files and --allow words as texts for the engine
 */
#ifndef CLI_POLICY_TEXT_H
#define CLI_POLICY_TEXT_H

#include <stdio.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "rules/rules.h"
#include "rules/rules_load.h"

/* Read a file that an argument names; says on stderr what failed. */
NODISCARD int policy_text_read(const char *path, struct buf *out);

/**
 * policy_text_load() - Read a policy and all that it names
 * @presets:	their directory, or NULL for the one that is installed
 *
 * As rules_load(); @ret is for rules_loaded_done() in each case.
 */
NODISCARD int policy_text_load(const struct rules_wanted *wanted,
			       const char *presets, rules_diag_fn *diag,
			       void *arg, struct rules_loaded *ret);

struct policy_said {
	FILE *to;
	unsigned errors, warnings;
	bool errors_only;
};

/* A rules_diag_fn whose @arg is a struct policy_said: "FILE:LINE: error: ..." */
void policy_text_diag(void *said, const struct rules_diag *d);

/*
 * Read and compile a policy with all that it includes.  What is wrong in it
 * goes to @diag, or, when that is NULL, its errors to stderr; what cannot be
 * read is said on stderr.
 */
NODISCARD int policy_load(const char *path, rules_diag_fn *diag, void *arg,
			  struct ruleset **ret);
/* The same, and @out gets all of it as one text, to hand on. */
NODISCARD int policy_load_text(const char *path, rules_diag_fn *diag,
			       void *arg, struct buf *out,
			       struct ruleset **ret);

#endif /* CLI_POLICY_TEXT_H */
