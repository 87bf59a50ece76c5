/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.c - whole files and names in directories, by their paths
 */
#include "base/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

int files_read(void *unused, const char *path, struct buf *out)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY |
					 O_NONBLOCK);
	size_t before = out->n;
	struct stat st;
	int e;

	(void)unused;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return -EINVAL;
	/* <(command) of a shell: its writer may still be at work. */
	if (S_ISFIFO(st.st_mode) && fd_set_nonblock(fd, false) < 0)
		return -EINVAL;
	e = fd_read_all(fd, out);
	/* Nobody writes there: that is not the same as an empty file. */
	if (!e && S_ISFIFO(st.st_mode) && out->n == before)
		return -ENODATA;
	return e;
}

static void dir_closep(DIR **d)
{
	if (*d)
		closedir(*d);
}

int files_list(void *unused, const char *dir, files_name_fn *fn, void *arg)
{
	CLEANUP(dir_closep) DIR *d = opendir(dir);
	const struct dirent *e;

	(void)unused;
	if (!d)
		return errno == ENOENT ? 0 : -errno;
	while ((errno = 0, e = readdir(d))) {
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			fn(arg, e->d_name);
	}
	return -errno;
}
