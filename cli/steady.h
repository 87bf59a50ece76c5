/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady.h - does a path lead to the same file after the run?
 *
 * The command may write the working directory.  What it must not see or change
 * there is covered under its real name, but a link on the way to it is a file
 * like any other: the command could let it lead elsewhere, and the next run
 * would take its policy from there, or write its records there.
 */
#ifndef CLI_STEADY_H
#define CLI_STEADY_H

#include <limits.h>

#include "base/compiler.h"

/**
 * steady_find_link() - The first link on @path that lies in @dir or below
 * @path:	absolute, or relative to the current directory; need not exist
 * @dir:	absolute, without links
 * @ret_link:	the link's name, when there is one
 * Return: 0 when there is none, -ELOOP when there is one (or when there are too
 * many links to tell), -ENAMETOOLONG, -errno
 */
NODISCARD int steady_find_link(const char *path, const char *dir,
			       char ret_link[PATH_MAX]);

#endif /* CLI_STEADY_H */
