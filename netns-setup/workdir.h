/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workdir.h - where the command starts, and whether it may write there
 */
#ifndef NETNS_SETUP_WORKDIR_H
#define NETNS_SETUP_WORKDIR_H

#include "base/compiler.h"
#include "netns-setup/idmap.h"
#include "netns-setup/launch.h"

struct workdir {
	const char *back;	/* put back writable; NULL: none */
	int fd;			/* its mount, made here with shifted ids; -1 */
	const char *start;	/* where the command starts */
	const char *note;	/* NULL, or why it is not as one would think */
};

/**
 * workdir_plan() - Decide about spec->cwd
 *
 * Everywhere but in what is covered anyway: a directory that is the home, or
 * above it, would bring back what the sandbox hides.  Under root the files'
 * owner is shifted to the command's id by an idmapped mount, and directories of
 * the system stay read-only.
 */
NODISCARD int workdir_plan(const struct launch_spec *spec,
			   const struct id_plan *ids, struct workdir *ret,
			   struct launch_error *err);

/* The decision alone, from the path; for tests. */
enum workdir_kind {
	WORKDIR_BACK,		/* writable again */
	WORKDIR_AS_IS,		/* read-only, as the host shows it */
	WORKDIR_HOME,		/* start in the empty home instead */
};
enum workdir_kind workdir_kind(const char *cwd, const char *home,
			       bool all_homes);

#endif /* NETNS_SETUP_WORKDIR_H */
