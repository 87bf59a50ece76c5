/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detach.h - a daemon that goes to the background, and a command that waits
 */
#ifndef PROXY_DETACH_H
#define PROXY_DETACH_H

#include "base/compiler.h"

/**
 * detach() - Go on in a process of its own, without terminal and parent
 * @ret_fd:	for detach_tell()
 *
 * The caller's process waits there and never returns: it exits with 0 when it
 * is told so, and with 1 when the other one has ended without.  What is wrong
 * is said by that one.  Return: 0 in the new process, or -errno in the old one
 */
NODISCARD int detach(int *ret_fd);

/* All went well: let the command end. */
void detach_tell(int fd);

#endif /* PROXY_DETACH_H */
