/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main_own.h - what the files of penstockd's main share; no one else includes it
 *
 *	main.c		the order in which it starts, serves and ends
 *	main_upgrade.c	from the daemon before, and to the next one
 */
#ifndef PROXY_MAIN_OWN_H
#define PROXY_MAIN_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"
#include "proxy/config.h"
#include "proxy/handover_proto.h"
#include "proxy/isolate.h"
#include "proxy/opts.h"
#include "proxy/quota.h"
#include "proxy/reading.h"
#include "proxy/service.h"
#include "proxy/takeover.h"
#include "proxy/upstreams.h"

struct audit_writer;
struct broker;
struct compiler;
struct event;
struct event_base;
struct handover;
struct host_addrs;
struct host_listens;
struct parents;
struct plug;
struct source;
struct worker;

struct daemon {
	struct opts opts;
	struct service service;		/* zeroed when private */
	struct isolate_ids ids;
	bool has_ids;
	struct upstreams upstreams;
	const struct parents *parents;
	const struct source *source;	/* NULL: any */
	uint32_t mark;			/* of sockets; 0: none */
	int marks[CONFIG_WORKERS_MAX];	/* the workers' ends to the marker */
	struct buf conf;		/* its text as of the start */
	uint64_t own_netns;
	int signal_fd, notify_fd, log_fd;
	struct event_base *base;
	struct event *signals, *drain;
	struct broker *broker;
	struct host_addrs *hosts;
	struct audit_writer *writer;
	struct worker *worker[CONFIG_WORKERS_MAX];
	size_t nworkers;
	struct quota_whole whole;	/* what all runs have together */
	struct plug *plug;
	struct host_listens *listens;	/* NULL when private */
	struct compiler *compiler;	/* NULL when private */
	struct reading reading;		/* of policies */
	struct handover *handover;	/* to the next one; NULL when private */
	struct takeover takeover;	/* from the one before */
	int detached_fd;		/* the command that waits; or -1 */
	int typed_fd;			/* where that was typed; or -1 */
	bool over;			/* nothing is left to be taken over */
	bool serving;			/* and all listeners serve */
	char cgroup[HANDOVER_CGROUP_MAX];
	bool draining;
	int err;			/* why the loop ended early */
};

/* --- main.c --------------------------------------------------------------------- */

/* What must have ended before we do. */
size_t main_left(const struct daemon *d);
/* Everything ends, through its last records. */
void main_end_runs(struct daemon *d);
/* All that is to be served is. */
void main_ready(struct daemon *d);

/* --- main_upgrade.c --------------------------------------------------------------- */

/* In place of service_listen(): from the daemon before. */
NODISCARD int main_take_sockets(struct daemon *d);
/* Everything that it has; does not return where that fails. */
void main_take_over(struct daemon *d);
/* As plug_config has it. */
void main_on_over(void *arg);
void main_on_hello(void *arg, struct str msg, int fd);
NODISCARD int main_make_handover(struct daemon *d);

#endif /* PROXY_MAIN_OWN_H */
