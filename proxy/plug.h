/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug.h - the control socket: one connection is one run
 *
 * The daemon's end of ctl_proto.h, on the main thread: takes plugs, places
 * their sandboxes on workers, and sees each run to its last record.
 */
#ifndef PROXY_PLUG_H
#define PROXY_PLUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/fd.h"
#include "base/reason.h"
#include "base/str.h"
#include "proxy/config.h"
#include "proxy/ctl_proto.h"

struct audit_sink;
struct audit_writer;
struct compiler;
struct conn_rejudged;
struct event_base;
struct parents;
struct plug;
struct plug_reload;
struct plug_why;
struct policies;
struct policy;
struct policy_file;
struct ruleset;
struct worker;

#define PLUG_CONNS_MAX		16384	/* runs at once */
#define PLUG_OPEN_MS		10000	/* for PLUG_OPEN after connecting */
#define PLUG_FLUSH_MAX_MS	3000	/* for the last record to be written */
#define PLUG_BATCH		16	/* connections accepted in one turn */

struct plug_config {
	struct event_base *base;
	struct worker *const *worker;
	size_t nworkers;
	struct audit_writer *writer;
	uint64_t own_netns;		/* cookie of our network namespace */
	uid_t own_uid;			/* set by plug_new(): a sealed daemon cannot ask */
	/* NULL: private, whoever holds the connection may bring a policy. */
	const struct config *service;
	struct policies *policies;	/* the service's own; borrowed */
	const struct parents *parents;	/* that policies may name; or NULL */
	struct compiler *compiler;	/* of large policies; NULL: none */
	int log_fd;			/* the service's own log, or -1; borrowed */
	/* The last run is gone; may free nothing. */
	void (*on_idle)(void *arg);
	void *arg;			/* of it */
	/* Somebody asks for the service's policies to be read anew: a reading
	 * with @serial, or a higher one, answers it.  0 or -errno. */
	int (*on_reload)(void *arg, uint32_t serial);
	/* A policy of the service's is another, or stays as it was: for who has
	 * it and is no run on a plug.  NULL: there is nobody. */
	void (*on_policy)(void *arg, struct plug_reload *r,
			  const struct policy *policy);
	void (*on_policy_failed)(void *arg, struct str name,
				 const struct plug_why *why);
	void *reading;			/* their @arg */
	/* For @arg as well: somebody who may wants to take the service over;
	 * takes @fd.  NULL: nobody can. */
	void (*on_hello)(void *arg, struct str msg, int fd);
	/* The process before has given up all that we have, or has gone; may be
	 * called again. */
	void (*on_over)(void *arg);
};

NODISCARD int plug_new(const struct plug_config *config, struct plug **ret);
/* A connection that is there already; taken, also on failure. */
NODISCARD int plug_attach(struct plug *p, int fd);
/* Accept connections from @fd, listening; taken, also on failure. */
NODISCARD int plug_listen(struct plug *p, int fd);
void plug_stop_listening(struct plug *p);
/* End every run; each goes through its last record, on_idle() follows. */
void plug_end_all(struct plug *p, enum reason why);
size_t plug_runs(const struct plug *p);
/* Another log from now on (rotation); borrowed, each run gets a duplicate. */
void plug_set_log(struct plug *p, int log_fd);
/*
 * A reading of the service's policies: begun, told of each file, ended.  What
 * compiles is in force at once for who comes; the runs that named it are on
 * their way to it by the time of plug_reload_end(), and whoever asked is
 * answered when the last of them has it.
 */
NODISCARD int plug_reload_begin(struct plug *p, struct plug_reload **ret);
/* @anew: as of policies_take(). */
void plug_reload_file(struct plug_reload *r, const struct policy_file *file,
		      bool anew);
/* @serial: of the last question that this reading began after; @err: the
 * directory @dir could not be read to its end. */
void plug_reload_end(struct plug_reload *r, uint32_t serial, const char *dir,
		     int err);
/* For plug_config.on_policy: the reading is not over before the release; @what
 * became of flows, NULL where the policy did not come to be used. */
void plug_reload_hold(struct plug_reload *r);
void plug_reload_release(struct plug_reload *r,
			 const struct conn_rejudged *what);
/* The same at the end of all, when nobody is answered any more. */
void plug_reload_drop(struct plug_reload *r);
/* The record of a policy that stays as it was. */
void plug_record_failed(struct audit_sink *sink, const struct plug_why *why);
/* There will be no reading: tell who waits. */
void plug_reload_fail(struct plug *p, const char *words);
/* A serial for a reading that nobody on a connection asked for. */
uint32_t plug_reload_serial(struct plug *p);
/* --- from another process: plug_adopt.c, for takeover.c ------------------------------ */

struct handover_run;
struct handover_tail;
struct plug_conn;

/*
 * While the workers' threads wait.  Each is 0, or -EPROTO with @why, and then
 * this process must end; descriptors are taken always.  @fd: as many as
 * handover_run_fds() says.
 */
NODISCARD int plug_adopt(struct plug *p, const struct handover_run *m,
			 int *fd, struct plug_conn **ret,
			 struct plug_why *why);
NODISCARD int plug_adopt_state(struct plug_conn *c, struct str bytes,
			       struct plug_why *why);
/* @index 0: the process that hands over. */
NODISCARD int plug_adopt_pred(struct plug *p, int fd, uint32_t index,
			      struct plug_why *why);
NODISCARD int plug_adopt_tail(struct plug_conn *c,
			      const struct handover_tail *m, int pipe,
			      struct plug_why *why);
/* All of them are ours; 0 or -ENOMEM, where something of theirs is lost. */
NODISCARD int plug_adopt_go(struct plug *p);
/* Processes before that still have flows. */
size_t plug_preds(const struct plug *p);
/* They have until then: end what is left of the runs there. */
void plug_preds_end(struct plug *p);

/* --- to another process: plug_leave.c, for handover.c ------------------------------ */

struct leave;
struct plug_conn;
union handover_msg;

/* Is a run on its way into a state, or to another policy? */
bool plug_leave_busy(const struct plug *p);
/* Take nothing new, hear nothing; @fn is called for each run that goes on. */
typedef void plug_leave_fn(void *arg, struct leave *l);
void plug_leave_begin(struct plug *p, plug_leave_fn *fn, void *arg);
/* All is as before; no step of a leave may be under way. Return: how many runs
 * are told so, each by a step of its own. */
size_t plug_leave_abort(struct plug *p);
/* The runs are another's, to whom @line leads: borrowed, until told otherwise. */
void plug_leave_commit(struct plug *p, int line);
void plug_leave_line_lost(struct plug *p);
/* A message that came by that line; @fd of its policy, taken, or -1. */
void plug_leave_on_about(struct plug *p, const union handover_msg *m, int fd);
/* Tell by the line what its runs have used here. */
void plug_leave_report(struct plug *p);
/* Whose run that is, as RUN tells it; descriptors are borrowed.
 * -EIO: its records cannot be written */
NODISCARD int plug_leave_fill(struct leave *l, union handover_msg *m,
			      int fd[FD_PASS_MAX], size_t *ret_nfds);
/* The @i-th of the run's tails as TAIL tells it, and its pipe; 0: no more. */
size_t plug_leave_tails(struct leave *l, union handover_msg *m, size_t i,
			int *ret_fd);
/* The @i-th connection that has no run yet; -1: there are no more. */
int plug_leave_conn(const struct plug *p, size_t i);
/* The same of lines to processes before; each gets its index. */
int plug_leave_pred(const struct plug *p, size_t i);
/* What the other one is given to accept from. */
int plug_listen_fd(const struct plug *p);

/* No run may be left but those whose workers have ended. */
void plug_free(struct plug *p);		/* NULL is fine */

#endif /* PROXY_PLUG_H */
