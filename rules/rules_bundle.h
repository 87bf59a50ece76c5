/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_bundle.h - a policy with all that it names, in one text
 *
 * A policy may be made of many files (include, preset, lists of hosts).  They are
 * read on the side of the one who brings the policy, and travel to the daemon,
 * which opens no files, as one text that says of each part what it is, where it
 * is named, and what it is called, so that faults keep their file and line.
 *
 *	#!penstock-policies 1
 *	KIND PARENT LINE SAME BYTES WORD NAME		(struct rules_source)
 *	the part's BYTES bytes
 *	... and so on
 *
 * A text that does not begin with that line is a policy by itself.
 */
#ifndef RULES_RULES_BUNDLE_H
#define RULES_RULES_BUNDLE_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"
#include "rules/rules.h"

struct arena;

struct rules_bundle {
	struct arena *arena;		/* of the array and its names */
	struct rules_source *source;
	size_t n;
};

#define RULES_BUNDLE_INIT	{ NULL, NULL, 0 }

/* Append @source to @out; one plain policy is its own text. */
NODISCARD int rules_bundle_write(const struct rules_source *source, size_t n,
				 struct buf *out);

/**
 * rules_bundle_read() - Take a text apart
 * @name:	what a text that is a policy by itself is called
 * @ret:	for rules_bundle_done(); its texts and words are in @text
 * Return: 0, -EINVAL (it is no bundle) or -ENOMEM
 */
NODISCARD int rules_bundle_read(struct str text, const char *name,
				struct rules_bundle *ret);
void rules_bundle_done(struct rules_bundle *b);

/* rules_compile() of what is in @text. */
NODISCARD int rules_compile_text(struct str text, const char *name,
				 rules_diag_fn *diag, void *arg,
				 struct ruleset **ret);

#endif /* RULES_RULES_BUNDLE_H */
