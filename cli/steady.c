/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady.c - a walk along a path, link by link, see steady.h
 */
#include "cli/steady.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "netns-setup/launch.h"

#define LINKS_MAX	40	/* what the kernel follows */

static int print(char out[PATH_MAX], const char *a, const char *b,
		 const char *c)
{
	int n = snprintf(out, PATH_MAX, "%s%s%s", a, b, c);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* Bytes of @path up to the end of the first part that is a link, or 0. */
static size_t link_end(const char *path)
{
	char part[PATH_MAX];
	size_t n = strlen(path);
	struct stat st;

	for (size_t i = 1; i <= n; i++) {
		if ((path[i] != '/' && path[i] != '\0') || path[i - 1] == '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (lstat(part, &st))
			return 0;	/* nothing is there, so no link either */
		if (S_ISLNK(st.st_mode))
			return i;
	}
	return 0;
}

/* The real directory that holds @link. */
static int holder(const char *link, char ret[PATH_MAX])
{
	char parent[PATH_MAX];
	size_t n = (size_t)(strrchr(link, '/') - link);

	memcpy(parent, link, n + 1);
	parent[n ? n : 1] = '\0';
	return realpath(parent, ret) ? 0 : -errno;
}

/* @link, a path that ends in one, replaced by what it says; then @rest. */
static int follow(const char *link, const char *rest, const char *parent,
		  char ret[PATH_MAX])
{
	char target[PATH_MAX], to[PATH_MAX];
	ssize_t n = readlink(link, target, sizeof(target) - 1);
	int err;

	if (n == -1)
		return -errno;
	target[n] = '\0';
	err = target[0] == '/' ? print(to, target, "", "") :
				 print(to, parent, "/", target);
	return err ? err : print(ret, to, rest, "");
}

int steady_find_link(const char *path, const char *dir, char ret_link[PATH_MAX])
{
	char at[PATH_MAX], next[PATH_MAX], parent[PATH_MAX], cwd[PATH_MAX];
	int err = 0;

	if (path[0] == '/')
		err = print(at, path, "", "");
	else if (!getcwd(cwd, sizeof(cwd)))
		err = -errno;
	else
		err = print(at, cwd, "/", path);
	for (unsigned i = 0; !err && i < LINKS_MAX; i++) {
		size_t n = link_end(at);

		if (n == 0)
			return 0;
		memcpy(ret_link, at, n);
		ret_link[n] = '\0';
		err = holder(ret_link, parent);
		if (!err && path_is_in(parent, dir))
			return -ELOOP;
		if (!err)
			err = follow(ret_link, at + n, parent, next);
		if (!err)
			memcpy(at, next, sizeof(at));
	}
	return err ? err : -ELOOP;
}
