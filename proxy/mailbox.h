/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mailbox.h - work handed to the thread that runs an event base
 *
 * The only lock between threads of the daemon.  A mail is embedded in what it
 * speaks of, so that posting it can neither fail nor allocate: the end of a
 * run must always get through.
 */
#ifndef PROXY_MAILBOX_H
#define PROXY_MAILBOX_H

#include "base/compiler.h"

struct event_base;
struct mailbox;
struct mail;

/* Runs on the mailbox's thread, in the order of posting.  The mail belongs to
 * the function again: it may be freed or posted anew, here or elsewhere. */
typedef void mail_fn(void *owner, struct mail *mail);

struct mail {
	struct mail *next;
	mail_fn *fn;
};

/* @owner is given to every mail_fn. */
NODISCARD int mailbox_new(struct event_base *base, void *owner,
			  struct mailbox **ret);
/* Mail that nobody read is dropped: its owner frees what it sits in. */
void mailbox_free(struct mailbox *m);
/* From any thread; never blocks for longer than a few instructions of the
 * other side.  @mail must not be posted already. */
void mailbox_post(struct mailbox *m, struct mail *mail, mail_fn *fn);

#endif /* PROXY_MAILBOX_H */
