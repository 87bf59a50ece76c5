/* SPDX-License-Identifier: Apache-2.0 */
/*
 * std_file.c - files on standard streams, see std_file.h
 */
#include "netns-setup/std_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "netns-setup/fault.h"

static int proc_path(int fd, char ret[32])
{
	int n = snprintf(ret, 32, "/proc/self/fd/%d", fd);

	return n < 0 || n >= 32 ? -ENAMETOOLONG : 0;
}

static int name_of(int fd, char ret[PATH_MAX])
{
	char link[32];
	int err = proc_path(fd, link);
	ssize_t n;

	if (err)
		return err;
	n = readlink(link, ret, PATH_MAX - 1);
	if (n == -1)
		return -errno;
	ret[n] = '\0';
	return ret[0] == '/' ? 0 : -ENOENT;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       S_ISREG(a->st_mode);
}

bool std_file_is_input(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags != -1 && (flags & O_ACCMODE) == O_RDONLY;
}

bool std_file_has_name(int fd)
{
	struct stat is, named;
	char name[PATH_MAX];

	return name_of(fd, name) == 0 && fstat(fd, &is) == 0 &&
	       stat(name, &named) == 0 && is_same(&is, &named);
}

/* A descriptor of the file @name on a read-only mount that nothing shows. */
static int open_readonly(const char *name, int *ret_fd)
{
	struct mount_attr a = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
			    MOUNT_ATTR_NODEV,
	};
	CLEANUP(fd_closep) int tree = open_tree(AT_FDCWD, name,
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	char link[32];
	int err;

	if (tree == -1 || mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE,
					&a, sizeof(a)))
		return -errno;
	err = proc_path(tree, link);
	if (err)
		return err;
	*ret_fd = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return *ret_fd == -1 ? -errno : 0;
}

static int replace(int fd)
{
	CLEANUP(fd_closep) int file = -1;
	struct stat is, found;
	char name[PATH_MAX];
	int err = name_of(fd, name);
	off_t at = lseek(fd, 0, SEEK_CUR);

	if (!err)
		err = open_readonly(name, &file);
	if (err)
		return err;
	if (at == -1 || fstat(fd, &is) || fstat(file, &found))
		return -errno;
	if (!is_same(&is, &found))
		return -ESTALE;
	if (lseek(file, at, SEEK_SET) == -1 || dup2(file, fd) == -1)
		return -errno;
	return 0;
}

int std_file_readonly(int fd, struct launch_error *err)
{
	int e = replace(fd);

	if (!e)
		return 0;
	fault(err, -e, "cannot pass the file on stream %d on for reading", fd);
	fault_mend(err, "Give it through a pipe:  cat FILE | penstock run ...");
	return e;
}
