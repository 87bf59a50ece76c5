/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.h - the last steps before the command: rights, filter, proof, exec
 */
#ifndef NETNS_SETUP_COMMAND_H
#define NETNS_SETUP_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "netns-setup/idmap.h"
#include "netns-setup/launch.h"

struct command {
	const struct launch_spec *spec;
	const struct id_plan *ids;
	const char *start_dir;
	const char *nonce;	/* of the self-test */
	int std[3];		/* what becomes 0, 1, 2; each its own or above 2 */
	int terminal;		/* the pty's slave, or -1 */
	int go;			/* read side: a byte when mapped, one when plugged */
	int report;		/* write side */
	bool v6, firewall;
	mode_t umask;
	sigset_t signals;	/* the mask to restore */
};

/* What a byte on @go means; the end of the pipe means: never mind. */
#define COMMAND_MAPPED	'm'
#define COMMAND_PLUGGED	'p'

/**
 * command_run() - Become the command
 *
 * Runs in the child that was cloned into the command's user namespace.  Says
 * what failed on the report pipe; never returns.
 */
NORETURN void command_run(const struct command *c);

#endif /* NETNS_SETUP_COMMAND_H */
