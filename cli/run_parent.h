/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_parent.h - the proxy that a run's own daemon sends flows through
 *
 * Options are handed on to penstockd, which knows what they mean.  "env" stands
 * for what the caller's own programs go by: HTTPS_PROXY and NO_PROXY.
 */
#ifndef CLI_RUN_PARENT_H
#define CLI_RUN_PARENT_H

#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

#define RUN_PARENT_WORDS	32	/* of penstockd's command line */

struct run_parent {
	const char *word[RUN_PARENT_WORDS + 1];	/* NULL-terminated */
	size_t n;
	bool named;		/* --parent with an URL */
	bool env;		/* --parent env: still to be asked for */
	struct buf url, bypass;	/* what it comes to */
	int login;		/* "user:password" out of the URL, or -1 */
};

#define RUN_PARENT_INIT	{ .url = BUF_INIT(4096), .bypass = BUF_INIT(65536), \
			  .login = -1 }

/* One of --parent, --parent-...: NULL, or what is wrong with @value. */
const char *run_parent_add(struct run_parent *p, const char *option,
			   const char *value);
/* Another option that penstockd is given as it is. */
const char *run_parent_add_word(struct run_parent *p, const char *option,
				const char *value);
/* Fill in what "env" stands for; says what is wrong.  0 or -errno. */
NODISCARD int run_parent_find(struct run_parent *p);
void run_parent_done(struct run_parent *p);

/* --- pure ------------------------------------------------------------------- */

/**
 * run_parent_url() - A proxy's URL as people write it in HTTPS_PROXY
 * @url:	appended: the same without a user, with scheme and port
 * @login:	appended: "user:password", decoded; nothing when there is none
 * Return: NULL, or what is wrong
 */
const char *run_parent_url(struct str text, struct buf *url,
			   struct buf *login);
/*
 * NO_PROXY's words as --parent-bypass has them, appended.  Return: how many of
 * them are none and were left out; *@ret_all: it says "*".
 */
size_t run_parent_bypass(struct str text, struct buf *out, bool *ret_all);

#endif /* CLI_RUN_PARENT_H */
