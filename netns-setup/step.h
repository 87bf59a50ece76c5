/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - what the launcher and the setup process say to each other
 *
 * A SOCK_SEQPACKET pair between `penstock run` (P) and the sandbox's init (S).
 * Failures go another way: the report pipe, whose end without a word means
 * that the command was executed.
 *
 *	P			S
 *	STEP_MAPPED	 ->		user ids are there
 *			 <-	STEP_SOCKETS	with descriptors
 *			 <-	STEP_TERMINAL	with the pty's master
 *			 <-	STEP_NOTE	a line for the user, any time
 *	STEP_GO		 ->		the daemon is plugged
 *	STEP_SIGNAL	 ->		to the command's process group
 *			 <-	STEP_EXITED	the command's wait status; then
 *						S ends, and with it the rest
 */
#ifndef NETNS_SETUP_STEP_H
#define NETNS_SETUP_STEP_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/fd.h"
#include "netns-setup/launch.h"

enum step_type {
	STEP_MAPPED = 1,
	STEP_SOCKETS,	/* number: BIT(enum plug_fd); flags: enum step_flag */
	STEP_TERMINAL,
	STEP_NOTE,	/* text */
	STEP_GO,
	STEP_SIGNAL,	/* number */
	STEP_EXITED,	/* number: as from waitpid(2) */
};

enum step_flag {
	STEP_HAS_V6 = 1u << 0,
	STEP_WILDCARD = 1u << 1,	/* no tproxy in this kernel */
};

struct step {
	uint32_t type, number, flags;
	char text[244];
};

NODISCARD int step_send(int sock, const struct step *s, const int *fds,
			size_t nfds);
/* 0, -EPIPE at the end of the stream, or -errno; @fds may be NULL: none. */
NODISCARD int step_recv(int sock, struct step *ret, int fds[FD_PASS_MAX],
			size_t *ret_nfds);
void step_note(int sock, const char *fmt, ...) PRINTF(2, 3);

/* The report pipe: one struct launch_error, written whole. */
void step_report(int fd, const struct launch_error *err);

#endif /* NETNS_SETUP_STEP_H */
