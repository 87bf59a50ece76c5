/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolate.h - the daemon gives up, in stages, all that it does not need
 *
 * Order: isolate_drop(), isolate_limits(), isolate_files(), then threads, then
 * isolate_seal().  What fails is named in @ret_what and ends the start.
 */
#ifndef PROXY_ISOLATE_H
#define PROXY_ISOLATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/compiler.h"

struct isolate_ids {
	uid_t uid;
	gid_t gid;
};

enum isolate_who {
	ISOLATE_DAEMON,		/* sockets and memory; opens nothing */
	ISOLATE_DAEMON_BINDS,	/* the same, with flows that leave from a source */
	ISOLATE_BROKER,		/* opens files; no network */
	ISOLATE_MARKER,		/* makes TCP sockets and marks them; dials nowhere */
};

/**
 * isolate_drop() - Other ids, no groups, no capability, no new privileges
 * @ids:	to change to when started as root; NULL keeps the ids
 *
 * Never leaves the process with uid 0.  Return: 0, -EPERM for uid 0 or for
 * ids that cannot be taken on, or -errno
 */
NODISCARD int isolate_drop(const struct isolate_ids *ids,
			   const char **ret_what);

/* The same, but for one capability (CAP_NET_RAW), which a process that is no
 * root any more keeps and can hand to no program.  -EPERM without it. */
NODISCARD int isolate_drop_but(const struct isolate_ids *ids, unsigned cap,
			       const char **ret_what);

/* No core dump, as many descriptors as the hard limit allows. */
NODISCARD int isolate_limits(const char **ret_what);

/* Descriptors that are kept free where nothing is said; of a process that may
 * have few, at most a quarter. */
#define ISOLATE_RESERVE		128
/* Keep that many, or ISOLATE_RESERVE with 0, for what must go on (fd.h); behind
 * isolate_limits(), before threads. */
void isolate_reserve(unsigned want);

/**
 * isolate_files() - Landlock: no file may be opened any more, by path
 *
 * @binds:	TCP sockets may be bound to an address, without choosing a port
 *
 * Holds for this thread and those started after.  Return: 0, also where the
 * kernel has no Landlock (@ret_active says), or -errno
 */
NODISCARD int isolate_files(bool binds, bool *ret_active,
			    const char **ret_what);

/**
 * isolate_seal() - Load the system call allow-list, for all threads
 *
 * What the list does not name ends the process.
 */
NODISCARD int isolate_seal(enum isolate_who who, const char **ret_what);

/* Ends the process without what atexit() holds: sealed, it could do nothing
 * but be killed for trying. */
NORETURN void isolate_exit(int code);

#endif /* PROXY_ISOLATE_H */
