/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_load.h - a policy with all that it names, read from files
 *
 * For whoever brings a policy: the launcher, the check, a service for its own.
 * Files are opened by the caller's reader, so that this is pure.  Paths in a file
 * are relative to the directory of that file; a preset names no files, but may
 * take hosts from how the machine is set up, behind an @:
 *
 *	apt-sources/FALLBACK	apt's sources, else the word FALLBACK
 *	npm-registry/FALLBACK	npm's registries, of the user and the machine
 *
 * What a project says of itself (its .npmrc) is not asked: who writes there
 * would write the policy.
 */
#ifndef RULES_RULES_LOAD_H
#define RULES_RULES_LOAD_H

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"
#include "rules/rules.h"
#include "rules/rules_bundle.h"

#define RULES_FILES_MAX		256	/* that make one policy */
#define RULES_DEPTH_MAX		8	/* includes in includes */
#define RULES_PATH_TEXT_MAX	4096	/* bytes of a file's path, with NUL */

typedef void rules_file_fn(void *arg, const char *name);

struct rules_reader {
	/* Append the file's bytes: 0, -EFBIG at @out->max, or -errno. */
	int (*read)(void *arg, const char *path, struct buf *out);
	/* Each name in a directory; one that is not there has none. */
	int (*list)(void *arg, const char *dir, rules_file_fn *fn,
		    void *fn_arg);
	void *arg;
	const char *presets;		/* their directory */
	const char *home;		/* with .npmrc; NULL: none */
	const char *npm_registry;	/* NPM_CONFIG_REGISTRY, or NULL */
};

/* What is to be loaded; without @policy the rest stands alone. */
struct rules_wanted {
	const char *policy;		/* path, or NULL */
	const char *const *preset;	/* of the command line */
	size_t n_presets;
	struct str allow;		/* what --allow stands for */
};

struct rules_loaded {
	struct rules_bundle b;		/* sources to compile, or to write */
	char *text[RULES_FILES_MAX];	/* of the sources, owned */
	size_t n_texts;
};

/**
 * rules_load() - Read a policy and all that it names
 * @diag:	what cannot be read, with the place that names it
 * @ret:	for rules_loaded_done(), also after an error
 * Return: 0, -EINVAL (@diag told why) or -ENOMEM
 */
NODISCARD int rules_load(const struct rules_reader *reader,
			 const struct rules_wanted *wanted,
			 rules_diag_fn *diag, void *arg,
			 struct rules_loaded *ret);
/* Is source @index a file of the user's, by its name? */
bool rules_source_is_file(const struct rules_source *source, size_t index);
void rules_loaded_done(struct rules_loaded *l);

#endif /* RULES_RULES_LOAD_H */
