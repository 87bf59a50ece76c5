/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_listen_own.h - what the files of listeners share; no one else includes it
 *
 *	host_listen.c		states, beginning and end
 *	host_listen_swap.c	another policy, another log
 *	host_listen_leave.c	from one process to the next
 */
#ifndef PROXY_HOST_LISTEN_OWN_H
#define PROXY_HOST_LISTEN_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ip_addr.h"
#include "base/list.h"
#include "proxy/config.h"
#include "proxy/ctl_proto.h"
#include "proxy/host_listen.h"
#include "proxy/leave.h"
#include "proxy/mailbox.h"
#include "proxy/sandbox.h"

struct audit_sink;
struct dns_budget;
struct client_table;
struct quota;

enum listen_state {
	LISTEN_PLACING,
	LISTEN_SERVING,
	LISTEN_DRAINING,
	LISTEN_ENDING,
	LISTEN_GONE,

	LISTEN_STATES
};

/* Its place on one worker. */
struct part {
	struct listen *listen;
	struct worker *worker;
	struct mail mail;		/* there and back */
	struct mail drained;		/* sent once, by the worker */
	struct leave leave;		/* to another process */
	struct sandbox_config config;
	struct sandbox *sandbox;
	int placed;			/* sandbox_new()'s return */
	uint64_t bytes_up, bytes_down;
};

struct listen {
	struct host_listens *all;
	const struct config_listen *c;
	enum listen_state state;
	struct ip_nets clients;
	struct audit_sink *sink;
	struct dns_budget *budget;	/* ours to share with the parts, */
	struct quota *quota;		/* as this is, */
	struct client_table *shares;	/* and this */
	struct ruleset *rules;		/* one reference */
	uint32_t generation;
	enum reason why;		/* of the end */
	bool end_asked;
	int64_t started_ms;
	size_t out;			/* mails of the parts */
	struct list swaps;		/* struct swap.node: on their way */
	size_t draining;		/* parts that have flows left */
	char run[PLUG_RUN_MAX];
	struct part *part;		/* one a worker */
};

struct host_listens {
	struct host_listens_config c;
	struct mailbox *mailbox;
	size_t left, placing;
	int err;			/* of the start */
	size_t n;
	struct listen listen[];
};

/* Policies whose mail will never come back; the workers have ended. */
void host_listen_drop_swaps(struct listen *l);

#endif /* PROXY_HOST_LISTEN_OWN_H */
