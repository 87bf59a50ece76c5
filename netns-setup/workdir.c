/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workdir.c - the one place on the host that the command may write to
 */
#include "netns-setup/workdir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "netns-setup/fault.h"
#include "netns-setup/mounts.h"

/* Fresh in every sandbox; a directory below one can be put back. */
static const char *const covered[] = { "/run", "/tmp", "/var/tmp" };
/* Made by the kernel: never put back. */
static const char *const synthetic[] = { "/dev", "/proc", "/sys" };
/* Root's sandbox does not write here, where root is the owner. */
static const char *const systems[] = {
	"/bin", "/boot", "/etc", "/lib", "/lib32", "/lib64", "/libx32",
	"/opt", "/sbin", "/usr", "/var",
};

static bool is_in_any(const char *path, const char *const *dir, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (path_is_in(path, dir[i]))
			return true;
	}
	return false;
}

/* Is a covered directory this one or below it? */
static bool holds_any(const char *path, const char *const *dir, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (path_is_in(dir[i], path))
			return true;
	}
	return false;
}

enum workdir_kind workdir_kind(const char *cwd, const char *home,
			       bool all_homes)
{
	static const char *const homes[] = { "/root", "/home" };

	if (is_in_any(cwd, synthetic, ARRAY_SIZE(synthetic)) ||
	    holds_any(cwd, synthetic, ARRAY_SIZE(synthetic)) ||
	    holds_any(cwd, covered, ARRAY_SIZE(covered)) ||
	    (home && path_is_in(home, cwd)) ||
	    (all_homes && holds_any(cwd, homes, ARRAY_SIZE(homes))))
		return WORKDIR_HOME;
	if (all_homes && is_in_any(cwd, systems, ARRAY_SIZE(systems)) &&
	    !is_in_any(cwd, covered, ARRAY_SIZE(covered)))
		return WORKDIR_AS_IS;
	return WORKDIR_BACK;
}

static bool is_roots(const char *path)
{
	struct stat st;

	return stat(path, &st) || st.st_uid == 0;
}

bool launch_cwd_is_writable(const char *cwd, const char *home)
{
	enum workdir_kind kind = workdir_kind(cwd, home, geteuid() == 0);

	return kind == WORKDIR_BACK ||
	       (kind == WORKDIR_AS_IS && !is_roots(cwd));
}

/* A copy of the mount on which the files' owner is the command. */
static int shifted_mount(const char *path, const struct stat *st,
			 const struct id_plan *ids, int *ret_fd)
{
	CLEANUP(fd_closep) int fd = -1, userns = -1;
	struct mount_attr a = {
		.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID |
			    MOUNT_ATTR_NODEV,
	};
	int err = id_map_mount(ids, st->st_uid, st->st_gid, &userns);

	if (err)
		return err;
	fd = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (fd == -1)
		return -errno;
	a.userns_fd = (uint64_t)userns;
	if (mount_setattr(fd, "", AT_EMPTY_PATH, &a, sizeof(a)))
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}

static int plan_back(const struct launch_spec *spec, const struct id_plan *ids,
		     struct workdir *w, struct launch_error *err)
{
	struct stat st;
	int e;

	w->back = w->start = spec->cwd;
	if (!ids->privileged)
		return 0;
	if (stat(spec->cwd, &st))
		return fault(err, errno, "cannot look at %s", spec->cwd);
	e = shifted_mount(spec->cwd, &st, ids, &w->fd);
	if (e == -EINVAL || e == -EPERM || e == -EOPNOTSUPP) {
		/* This file system cannot: then the owner stays a stranger. */
		w->note = "the files of the working directory cannot be shifted "
			  "to the sandbox's user here: it is read-only for the "
			  "command unless its mode says otherwise";
		return 0;
	}
	if (e)
		return fault(err, -e, "cannot prepare the working directory "
			     "%s", spec->cwd);
	return 0;
}

int workdir_plan(const struct launch_spec *spec, const struct id_plan *ids,
		 struct workdir *ret, struct launch_error *err)
{
	struct workdir w = { NULL, -1, spec->home ? spec->home : "/", NULL };
	enum workdir_kind kind = WORKDIR_HOME;
	int e = 0;

	if (spec->cwd)
		kind = workdir_kind(spec->cwd, spec->home, ids->privileged);
	if (kind == WORKDIR_AS_IS && !is_roots(spec->cwd))
		kind = WORKDIR_BACK;
	switch (kind) {
	case WORKDIR_BACK:
		e = plan_back(spec, ids, &w, err);
		break;
	case WORKDIR_AS_IS:
		w.start = spec->cwd;
		w.note = "the working directory belongs to the system and is "
			 "read-only in root's sandbox";
		break;
	case WORKDIR_HOME:
		w.note = "the working directory would show what the sandbox "
			 "hides: the command starts in an empty home (start "
			 "from a project's directory to work on its files)";
		break;
	}
	if (!e)
		*ret = w;
	return e;
}
