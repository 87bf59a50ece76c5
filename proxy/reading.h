/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reading.h - a service's policies read anew: from the broker to who has them
 *
 * The broker reads the files, whenever one changes or somebody asks; what it
 * brings goes to the runs by way of the plug, and to listeners.  There is one
 * reading at a time: the next one breaks off what is left of the last.  While
 * a large file is compiled elsewhere, the broker waits with the next.
 */
#ifndef PROXY_READING_H
#define PROXY_READING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

struct broker;
struct compiler;
struct host_listens;
struct plug;
struct plug_reload;
struct plug_why;
struct policies;
struct policy;
struct reading_file;

struct reading {
	const char *dir;		/* of the policies; NULL: there are none */
	/* All borrowed, and set as soon as they are there. */
	struct broker *broker;
	struct plug *plug;
	struct host_listens *listens;
	const struct policies *policies;
	struct compiler *compiler;
	/* Its own. */
	struct plug_reload *now;	/* while the broker reads */
	bool asked;
	struct reading_file *file;	/* that is being compiled; or NULL */
};

/* Somebody who does not wait for the end asks for one. */
void reading_ask(struct reading *r);
/* What is going on brings no more; after the compiler, before the plug. */
void reading_break_off(struct reading *r);

/* --- as broker_events has them ---------------------------------------------------- */

void reading_on_begin(struct reading *r, bool asked);
void reading_on_file(struct reading *r, struct str name, int err, int fd);
void reading_on_end(struct reading *r, uint32_t serial, int err);
void reading_on_gone(const struct reading *r);

/* --- for plug_config; @arg is the reading ----------------------------------------- */

int reading_on_asked(void *arg, uint32_t serial);
void reading_on_policy(void *arg, struct plug_reload *reload,
		       const struct policy *policy);
void reading_on_policy_failed(void *arg, struct str name,
			      const struct plug_why *why);

#endif /* PROXY_READING_H */
