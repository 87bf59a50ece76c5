/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_own.h - what the files of the plug share; no one else includes it
 *
 *	plug.c		states, beginning and end of a run
 *	plug_listen.c	the socket that launchers connect to
 *	plug_roles.c	what it brought, as its sandbox takes it
 *	plug_records.c	where its records go
 *	plug_swap.c	another policy for a run, or for all that named one
 *	plug_leave.c	all of them, to another process
 *	plug_adopt.c	all of them, from another process
 *	plug_tail.c	flows of theirs that stay in a process before
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
#include "proxy/handover_proto.h"
#include "proxy/leave.h"
#include "proxy/ledger.h"
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
	PLUG_FROZEN,
	PLUG_LEAVING,
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
	struct list preds;		/* struct plug_pred.node */
	struct event *reports;		/* to them, while there are any */
	int line;			/* to who has the runs now; borrowed, or -1 */
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
	uint64_t tails_up, tails_down;	/* of flows in processes before */
	/* on its way between two processes, and from one before */
	struct leave leave;
	struct mail drained;		/* LEAVING: sent once, by the worker */
	bool left;			/* another process has the run */
	int records_fd, policy_fd;	/* its own, to be handed on; or -1 */
	struct ledger ledger;		/* LEAVING */
	unsigned told;			/* LEAVING: connections */
	struct list tails;		/* struct plug_tail.node */
	/* adopted, until it is ours */
	bool swapped;			/* under another policy */
	int adopted_pipe;		/* of who had it last, or -1 */
	unsigned adopted_connections;
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
/* A connection in WAITING, but for the waiting; @fd is taken, also on failure. */
NODISCARD int plug_conn_new(struct plug *p, int fd, struct plug_conn **ret);
/* May free the connection. */
void plug_conn_end(struct plug_conn *c, enum reason why);
void plug_conn_start_end(struct plug_conn *c);
/* ENDING: the last flow has ended, wherever it was. */
void plug_conn_finish(struct plug_conn *c);
void plug_conn_fill_ready(struct plug_conn *c);
/* Keep the policy that it brought for a process to come; takes *@fd. */
void plug_conn_keep_policy(struct plug_conn *c, int *fd);
void plug_conn_drop_opened(struct plug_conn *c);
size_t plug_least_loaded(const struct plug *p);

/* --- plug_listen.c ----------------------------------------------------------------- */

/* Let connections wait for a moment, or no longer. */
void plug_pause_listening(struct plug *p, bool pause);

/* --- plug_records.c ---------------------------------------------------------------- */

/* With c->config.rules; the sink is the sandbox's as well. */
NODISCARD int plug_conn_open_sink(struct plug_conn *c, struct plug_why *why);
NODISCARD int plug_conn_record_start(struct plug_conn *c,
				     struct plug_why *why);

/* --- plug_leave.c ------------------------------------------------------------------ */

/* HELLO came on a connection without a run; takes @fds, and the connection. */
void plug_on_hello(struct plug_conn *c, struct str msg, int *fds,
		   size_t nfds);
/* What is left of the run here has ended. */
void plug_leave_tell_end(struct plug_conn *c);

/* plug_swap.c: a LEAVING run's flows, by the policy in @fd; borrowed. */
void plug_leave_swap(struct plug_conn *c, int fd);

/* --- plug_tail.c -------------------------------------------------------------------- */

/* A process before, and the line to it. */
struct plug_pred {
	struct list node;		/* plug.preds */
	struct plug *plug;
	int fd;
	struct event *event;
	uint32_t index;			/* while it is told of */
};

/* A run's flows in a process before, and the pipe that their records come by. */
struct plug_tail {
	struct list node;		/* plug_conn.tails */
	struct plug_conn *conn;
	struct plug_pred *pred;		/* NULL: it is gone, or is this one */
	int fd;
	struct event *event;
	struct buf cut;			/* a line that has not ended */
	unsigned connections;		/* that it has open */
	struct ledger ledger;		/* what it knows */
};

/* @fd is taken, also on failure. */
NODISCARD int plug_pred_add(struct plug *p, int fd, struct plug_pred **ret);
/* With @pipe, taken also on failure; its quota counts @connections. */
NODISCARD int plug_tail_add(struct plug_conn *c, struct plug_pred *pred,
			    int pipe, unsigned connections,
			    struct plug_tail **ret);
/* From here on they are listened to; 0 or -ENOMEM. */
NODISCARD int plug_tail_watch(struct plug_tail *t);
NODISCARD int plug_preds_watch(struct plug *p);
void plug_tails_free(struct plug_conn *c);
/* The run's flows there end, or are judged by another policy. */
void plug_tails_end(struct plug_conn *c);
void plug_tails_swap(struct plug_conn *c);
void plug_preds_reload(struct plug *p);
void plug_preds_free(struct plug *p);
/* The quota of a run that changed hands, or is about to; NULL of others. */
struct quota *plug_conn_quota(const struct plug_conn *c);

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
