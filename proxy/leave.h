/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leave.h - one sandbox on its way to another process, as its worker is asked
 *
 * The sandbox is its worker's, so that each step goes there by mail and comes
 * back; between two of them nothing here is touched.
 *
 *	leave_freeze()	accept nothing new; how many questions still wait?
 *			May be asked again.
 *	leave_tell()	nothing is given out any more: what does it remember?
 *			Its records go into a pipe from here on.
 *	leave_thaw()	all as before; there is no way back
 */
#ifndef PROXY_LEAVE_H
#define PROXY_LEAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "proxy/mailbox.h"

struct audit_sink;
struct audit_writer;
struct ledger;
struct part;
struct plug_conn;
struct quota;
struct sandbox;
struct worker;

struct leave {
	struct mail mail;
	/* To be set before the first step. */
	struct mailbox *home;		/* where it comes back to */
	struct worker *worker;
	struct sandbox *sandbox;
	/* Whoever has it is told of each step, on the thread of @home. */
	void (*back)(struct leave *l);
	struct plug_conn *conn;		/* whose run it is; or NULL */
	struct part *part;		/* of which listener it is; or NULL */
	void *arg;
	/* NULL: its records stay where they are, and only names are told. */
	struct audit_writer *writer;
	struct ledger *ledger;		/* begun with what is told */
	uint32_t generation;		/* of its policy */
	/* What came of a step. */
	int err;
	unsigned waiting;		/* questions */
	struct buf state;		/* as handover_tell() wrote it */
	struct audit_sink *sink;	/* that it had before; the caller's */
	struct audit_sink *into;	/* that it has since */
	int pipe;			/* the other end of the new one's; or -1 */
	struct quota *quota;		/* one reference, kept for the next time */
	unsigned connections, self_tests;
	uint64_t bytes_up, bytes_down, memory_peak;
	char digest[24];		/* of its policy */
};

void leave_init(struct leave *l);
void leave_freeze(struct leave *l);
void leave_tell(struct leave *l);
/* @sink of @l is the sandbox's again, and the caller has no part in it. */
void leave_thaw(struct leave *l);
/* What was told and not taken; no step may be under way. */
void leave_done(struct leave *l);

#endif /* PROXY_LEAVE_H */
