/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_path.h - which penstockd a run starts for itself
 */
#ifndef CLI_DAEMON_PATH_H
#define CLI_DAEMON_PATH_H

#include <limits.h>

#include "base/compiler.h"

/**
 * daemon_path_find() - Beside our own program, in ../sbin of it, or where it
 *                      was installed; never from the environment
 * @given:	a path of the user's choice, or NULL
 *
 * Says on stderr that there is none.  Return: 0 or -ENOENT
 */
NODISCARD int daemon_path_find(const char *given, char ret[PATH_MAX]);

#endif /* CLI_DAEMON_PATH_H */
