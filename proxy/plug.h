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

#include "base/compiler.h"
#include "base/reason.h"
#include "base/str.h"
#include "proxy/config.h"
#include "proxy/ctl_proto.h"

struct audit_writer;
struct event_base;
struct plug;
struct ruleset;
struct worker;

#define PLUG_CONNS_MAX		16384	/* runs at once */
#define PLUG_OPEN_MS		10000	/* for PLUG_OPEN after connecting */
#define PLUG_FLUSH_MAX_MS	3000	/* for the last record to be written */
#define PLUG_BATCH		16	/* connections accepted in one turn */

/* A policy of the service's own, compiled at its start. */
struct plug_policy {
	const char *name;
	struct str text;
	struct ruleset *rules;
};

struct plug_config {
	struct event_base *base;
	struct worker *const *worker;
	size_t nworkers;
	struct audit_writer *writer;
	uint64_t own_netns;		/* cookie of our network namespace */
	/* NULL: private, whoever holds the connection may bring a policy. */
	const struct config *service;
	const struct plug_policy *policy;
	size_t npolicies;
	int log_fd;			/* the service's own log, or -1; borrowed */
	/* The last run is gone; may free nothing. */
	void (*on_idle)(void *arg);
	void *arg;
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
/* No run may be left but those whose workers have ended. */
void plug_free(struct plug *p);		/* NULL is fine */

#endif /* PROXY_PLUG_H */
