/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compiler.h - large policies, compiled on a thread of their own
 *
 * A million hosts take a second, in which the main thread would start no run
 * and answer nobody.  What is small is compiled where it is, which is over
 * before a thread would have been woken for it.
 *
 * There is one thread, made before the daemon is sealed, and one policy at a
 * time, in the order of asking.  Who asks holds the text, so that what waits
 * is bounded by who may ask: a connection once each, and a reading once.
 */
#ifndef PROXY_COMPILER_H
#define PROXY_COMPILER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/str.h"
#include "proxy/mailbox.h"
#include "proxy/plug_check.h"

struct compiler;
struct event_base;
struct ruleset;

#define COMPILER_HERE_MAX	(64u << 10)	/* bytes: some milliseconds */

/* One policy on its way; it sits in what it is for, and its maker frees it. */
struct compile {
	struct compile *next;		/* the compiler's, as is the mail */
	struct mail mail;
	void (*done)(struct compile *c);	/* on the main thread, once */
	/* What to compile; lives until it is done. */
	const char *name;		/* for messages */
	int fd;				/* sealed memfd; -1: @text */
	struct str text;
	bool observe;
	/* What became of it. */
	int err;			/* 0, or -errno with @why */
	struct ruleset *rules;		/* one reference; NULL: taken, or none */
	struct plug_why why;
};

/* @base: of the thread that is told; @here_max: bytes of a policy that it is not
 * for. */
NODISCARD int compiler_new(struct event_base *base, size_t here_max,
			   struct compiler **ret);
/* Is it for the compiler?  false where there is none. */
bool compiler_wants(const struct compiler *c, size_t bytes);
bool compiler_wants_fd(const struct compiler *c, int fd);
/* Never blocks, cannot fail. */
void compiler_post(struct compiler *c, struct compile *job);
/* Ends the thread when it is through with its policy.  What was posted and not
 * told is never told.  NULL is fine. */
void compiler_free(struct compiler *c);

#endif /* PROXY_COMPILER_H */
