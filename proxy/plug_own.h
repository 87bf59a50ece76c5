/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_own.h - what the files of the plug share; no one else includes it
 *
 *	plug.c		states, beginning and end of a run
 *	plug_listen.c	the socket that launchers connect to
 *	plug_roles.c	what it brought, as its sandbox takes it
 *	plug_swap.c	another policy for a run, or for all that named one
 */
#ifndef PROXY_PLUG_OWN_H
#define PROXY_PLUG_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/list.h"
#include "base/reason.h"
#include "base/str.h"
#include "proxy/compiler.h"
#include "proxy/ctl_proto.h"
#include "proxy/mailbox.h"
#include "proxy/plug.h"
#include "proxy/plug_check.h"
#include "proxy/plug_peer.h"
#include "proxy/plug_users.h"
#include "proxy/sandbox.h"

struct audit_sink;
struct event;

enum plug_state {
	PLUG_WAITING,
	PLUG_ASKING,
	PLUG_COMPILING,
	PLUG_PLACING,
	PLUG_RUNNING,
	PLUG_ENDING,
	PLUG_FLUSHING,
	PLUG_GONE,

	PLUG_STATES
};

struct plug {
	struct plug_config config;
	struct mailbox *mailbox;
	struct list conns;
	size_t nconns;
	struct list users;		/* struct plug_user.node */
	int listen_fd;
	struct event *accepting, *backoff;
	size_t *load;			/* sandboxes of each worker */
	uint32_t serial;		/* of the last reload that was asked for */
	uid_t uid;			/* ours; a sealed daemon cannot ask */
};

struct plug_conn {
	struct list node;
	struct plug *plug;
	enum plug_state state;
	int fd;
	bool peer_gone, end_asked;
	enum reason why;		/* of the end */
	struct plug_peer peer;
	struct plug_user *user;		/* whose it is; NULL: not bounded */
	struct event *read, *timer;
	/* from COMPILING, or PLACING, on */
	struct mail mail;
	struct plug_open open;
	struct compile compile;		/* COMPILING: the policy */
	int passed[PLUG_FDS];		/* that came with it; -1: none */
	struct sandbox_config config;
	size_t worker;			/* index */
	struct sandbox *sandbox;
	struct audit_sink *sink;
	bool own_records;		/* a log of its own, ours is the tee */
	int placed;			/* sandbox_new()'s return */
	struct plug_ready ready;
	int64_t started_ms, flush_until_ms;
	int flush_step_ms;
	uint64_t bytes_up, bytes_down;
	uint64_t over_budget, memory_peak;
	/* its policy since: plug_swap.c */
	uint32_t generation;
	bool own_policy;		/* brought, not the service's by name */
	struct list swaps;		/* struct swap.node: on their way */
	uint32_t asked;			/* ASKING: serial of its reload */
};

/* --- plug.c -------------------------------------------------------------------- */

void plug_set_state(struct plug_conn *c, enum plug_state to);
/* A peer that does not take our few words in time goes without them. */
void plug_conn_send(struct plug_conn *c, const void *msg, size_t n);
/* Say why, and go; a connection that carries no run. */
void plug_conn_refuse(struct plug_conn *c, const struct plug_why *why);
/* To the state GONE, and freed as soon as no swap is on its way. */
void plug_conn_gone(struct plug_conn *c);
void plug_conn_free(struct plug_conn *c);

/* --- plug_roles.c ---------------------------------------------------------------- */

/* Names, self-test and sockets of a checked plug; takes @fd but the policy and
 * the records.  @ret borrows from @open. */
void plug_to_sandbox(const struct plug_open *open, int fd[PLUG_FDS],
		     struct sandbox_config *ret);

/* --- plug_swap.c ----------------------------------------------------------------- */

/* PLUG_SWAP and PLUG_RELOAD; take @fds.  May free the connection. */
void plug_on_swap(struct plug_conn *c, struct str msg, int *fds, size_t nfds);
void plug_on_reload(struct plug_conn *c);
/* Swaps whose mail will never come back; the workers have ended. */
void plug_drop_swaps(struct plug_conn *c);

#endif /* PROXY_PLUG_OWN_H */
