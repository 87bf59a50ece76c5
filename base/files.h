/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files.h - whole files and names in directories, by their paths
 */
#ifndef BASE_FILES_H
#define BASE_FILES_H

#include "base/buf.h"
#include "base/compiler.h"

/**
 * files_read() - Append a file's bytes
 * @unused:	so that it can stand where a callback reads files
 *
 * Regular files and pipes; a device or a directory is -EINVAL, and so that
 * nobody waits for ever, is a FIFO without a writer empty.
 * Return: 0, -EFBIG when it is over @out's maximum, or -errno
 */
NODISCARD int files_read(void *unused, const char *path, struct buf *out);

typedef void files_name_fn(void *arg, const char *name);

/* Each name in a directory but "." and ".."; one that is not there has
 * none.  Return: 0 or -errno */
NODISCARD int files_list(void *unused, const char *dir, files_name_fn *fn,
			 void *arg);

#endif /* BASE_FILES_H */
