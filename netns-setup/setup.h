/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup.h - the sandbox's first process
 */
#ifndef NETNS_SETUP_SETUP_H
#define NETNS_SETUP_SETUP_H

#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/types.h>
#include <termios.h>

#include "base/compiler.h"
#include "netns-setup/idmap.h"
#include "netns-setup/launch.h"

/* Everything it needs; made by the launcher before the clone. */
struct setup {
	const struct launch_spec *spec;
	struct id_plan ids;
	int step;		/* its end of the pair with the launcher */
	int report;		/* write side */
	int std[3];		/* the command's streams; -1: the terminal */
	bool input[3];		/* a file for reading, see std_file.h */
	bool terminal;
	struct termios termios;	/* for the terminal */
	struct winsize winsize;
	const char *workdir;	/* put back writable; NULL: none */
	int workdir_fd;		/* its mount, or -1 */
	const char *start_dir;
	const char *const *sockets;	/* of the host, to be hidden */
	const char *nonce;
	mode_t umask;
	sigset_t signals;	/* the mask before ours */
};

/**
 * setup_run() - Make the sandbox, start the command, and be its init
 *
 * Runs as pid 1 of the new namespaces.  Never returns: its end is the end of
 * every process in the sandbox.
 */
NORETURN void setup_run(struct setup *s);

#endif /* NETNS_SETUP_SETUP_H */
