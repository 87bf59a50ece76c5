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

/* Read a policy file; says on stderr what failed. */
NODISCARD int policy_text_read(const char *path, struct buf *out);

/* Its two halves: -EFBIG is over @out's maximum. */
NODISCARD int policy_text_load(const char *path, struct buf *out);
void policy_text_fault(const char *path, const struct buf *out, int e);

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

#endif /* CLI_POLICY_TEXT_H */
