/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_state.h - where a run keeps its records on the host
 */
#ifndef CLI_RUN_STATE_H
#define CLI_RUN_STATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"

#define RUN_ID_SIZE	16
#define RUN_PATH_MAX	4096

/* Records of what root runs, under sudo too. */
#define RUN_ROOT_BASE	"/var/lib/penstock/runs"

struct run_state {
	char id[RUN_ID_SIZE];
	char base[RUN_PATH_MAX];	/* of all runs; "" with --records */
	char records[RUN_PATH_MAX];	/* the file's path */
	char dir[RUN_PATH_MAX];		/* the run's own; "": none */
	bool own_dir;			/* made for nothing but a socket */
	int fd;				/* O_APPEND */
	off_t start;			/* where this run's records begin */
};

#define RUN_STATE_INIT	{ .fd = -1 }

/**
 * run_state_open() - A run id and its records file
 * @records:	a file of the user's choice, or NULL
 *
 * Without a choice: /var/lib/penstock/runs/ID for root, and for others
 * $XDG_STATE_HOME or ~/.local/state, /penstock/ID; directories 0700, the file
 * 0600.  With a choice there is such a directory too, where one can be made,
 * for the socket that reaches the run; it goes with the run.
 *
 * Says on stderr what failed.  Return: 0 or -errno
 */
NODISCARD int run_state_open(const char *records, struct run_state *ret);
/* The same file for reading, whatever its path leads to by now. */
NODISCARD int run_state_reopen(const struct run_state *s, int *ret_fd);
/* The directory that was made for nothing but a socket is not wanted. */
void run_state_forget_dir(struct run_state *s);
void run_state_done(struct run_state *s);

/* The directory of a run of this user, by its id; returns as below. */
NODISCARD int run_state_find_dir(const char *id, char ret_path[RUN_PATH_MAX]);

/* The records file of an earlier run of this user, by its id.
 * Return: 0, -EINVAL (no run id), -ENOENT (neither HOME nor
 * XDG_STATE_HOME is set) or -errno */
NODISCARD int run_state_find(const char *id, char ret_path[RUN_PATH_MAX]);

/**
 * run_state_output() - Open a file that is written when the run is over
 *
 * Before the command starts, and not through a link in its last part: the
 * command may be able to write the directory.
 */
NODISCARD int run_state_output(const char *path, int *ret_fd);

#endif /* CLI_RUN_STATE_H */
