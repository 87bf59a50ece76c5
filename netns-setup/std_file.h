/* SPDX-License-Identifier: Apache-2.0 */
/*
 * std_file.h - a file given for reading stays a file for reading
 *
 * Whoever holds a descriptor can open its file anew through /proc, with other
 * rights, or change its mode: the descriptor brings the host's own, writable
 * mount with it.  So the command gets one on a read-only mount.
 */
#ifndef NETNS_SETUP_STD_FILE_H
#define NETNS_SETUP_STD_FILE_H

#include <stdbool.h>

#include "base/compiler.h"
#include "netns-setup/launch.h"

/* Was @fd opened for reading only? */
bool std_file_is_input(int fd);

/* Is its file still there under the name it was opened by? Without a name it
 * cannot be found in another mount namespace. */
bool std_file_has_name(int fd);

/**
 * std_file_readonly() - Put the same file on a read-only mount in place of @fd
 *
 * At the same offset, which is from now on its own.  For a process that may
 * mount, and before it changes its ids: it opens the file once more.
 * Return: 0, or -errno with @err filled
 */
NODISCARD int std_file_readonly(int fd, struct launch_error *err);

#endif /* NETNS_SETUP_STD_FILE_H */
