/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns_files.h - the sandbox's own files in /etc
 *
 * So that names are looked up by our resolver alone: no nss-resolve, no mdns,
 * no search list, and none of the host's own hosts entries.
 */
#ifndef NETNS_SETUP_NS_FILES_H
#define NETNS_SETUP_NS_FILES_H

#include "base/compiler.h"
#include "netns-setup/launch.h"

struct mounts_plan;

enum ns_file {
	NS_FILE_HOSTS,
	NS_FILE_NSSWITCH,
	NS_FILE_RESOLV,
	NS_FILE_PASSWD,
	NS_FILE_GROUP,

	NS_FILES
};

struct ns_files {
	int fd[NS_FILES];	/* detached read-only mounts; -1: none */
};

#define NS_FILES_INIT	{ .fd = { [0 ... NS_FILES - 1] = -1 } }

/* Write them on the stage, a private file system at /run. */
NODISCARD int ns_files_write(struct ns_files *f, const struct mounts_plan *plan,
			     struct launch_error *err);
/* Lay them over the host's, once everything else is mounted. */
NODISCARD int ns_files_lay(struct ns_files *f, struct launch_error *err);
void ns_files_done(struct ns_files *f);

#endif /* NETNS_SETUP_NS_FILES_H */
