/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.h - descriptors and signals of a daemon that begins
 */
#ifndef PROXY_START_H
#define PROXY_START_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"

/**
 * start_clean_fds() - Standard input and output lead nowhere, the rest is closed
 * @plug_fd:	in: a descriptor to keep; out: its new number; NULL: none
 *
 * What a launcher left open is not ours to keep open.
 */
NODISCARD int start_clean_fds(int *plug_fd);

/**
 * start_open_signals() - All signals wait, those that mean something in @ret_fd
 * @service:	SIGINT and SIGHUP do: a private daemon's terminal means its
 *		command, whose end ends it
 *
 * Threads inherit that.
 */
NODISCARD int start_open_signals(bool service, int *ret_fd);

/* Before anything is made, and once, since two processes will drop the id: is it
 * another than root's that they run by?  Says so; 0 or -EPERM. */
NODISCARD int start_check_ids(bool has_ids, bool private);
/* Processors that we may run on. */
size_t start_cores(void);

#endif /* PROXY_START_H */
