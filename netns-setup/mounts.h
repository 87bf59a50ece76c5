/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.h - what the command sees of the host's files
 */
#ifndef NETNS_SETUP_MOUNTS_H
#define NETNS_SETUP_MOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "netns-setup/launch.h"

#define MOUNTS_SHOW_MAX	16	/* files shown read-only in covered places */

struct mounts_plan {
	uint32_t uid, gid;	/* the command's, in the setup process's numbers */
	uint32_t inside_uid, inside_gid;	/* as the command sees itself */
	const char *user;	/* its name, where /etc/passwd has none */
	const char *hostname;
	const char *home;	/* covered by an empty one; NULL: none */
	const char *runtime_dir;	/* made inside /run; or covered; or NULL */
	bool all_homes;		/* cover /root and /home, too */
	const char *workdir;	/* put back writable; NULL: none */
	int workdir_fd;		/* its mount, made by who may; -1: make it here */
	const char *const *hide;	/* files and directories; NULL ends */
	const char *const *sockets;	/* hidden, too; NULL: none */
	const char *const *lock;	/* made read-only; NULL ends; may be NULL */
	const char *const *show;	/* files; NULL ends; may be NULL */
};

/**
 * mounts_make() - Turn the calling process's mount namespace into the sandbox
 *
 * The process must be root of the user namespace that owns it, and in a pid
 * namespace of its own (for /proc).  /run, /tmp, /var/tmp, /dev, /dev/shm and
 * the home are fresh, the rest of the host is there read-only.
 * Return: 0, or -errno with @err filled
 */
NODISCARD int mounts_make(const struct mounts_plan *plan,
			  struct launch_error *err);

#endif /* NETNS_SETUP_MOUNTS_H */
