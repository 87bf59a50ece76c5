/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover_proto.h - how one penstockd hands its service to the next
 *
 * The next one connects to the plug of the one that serves; only the service's
 * own user and root may.  Same machine, so that fields are in host order; the
 * two may be of different releases, so that a version is compared before
 * anything else.  Theory in handover.c (who gives) and takeover.c (who takes).
 *
 *	next				who serves
 *	HELLO			 ->
 *				 <-	OFFER + plug, stderr, notify socket
 *				 <-	SOCKET + one of a listener, each
 *	... it opens, forks, drops and seals all that it needs ...
 *	TAKE			 ->	from here on nothing new is accepted
 *				 <-	PRED + line to one before, each
 *				 <-	RUN + descriptors; STATE, TAIL of it
 *				 <-	PART of a listener; STATE of it
 *				 <-	CONN + connection without a run
 *				 <-	TOLD
 *	READY			 ->	all of it is taken in
 *				 <-	COMMIT
 *	SERVING			 ->	from here on it is the next one's
 *				 <-	OVER
 *
 * Until SERVING has come, the end of the connection leaves everything as it
 * was.  Behind it, the same connection is a line between the two for as long
 * as the old one has open flows.  Its end ends them.
 *
 *	END			 ->	of a run: end its flows
 *	POLICY + text		 ->	of a run: judge its flows by this one
 *	RELOAD			 ->	read the service's policies anew
 *	USED			<->	of a run: so much more was used
 *				 <-	LEFT: its last flow has ended
 */
#ifndef PROXY_HANDOVER_PROTO_H
#define PROXY_HANDOVER_PROTO_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/str.h"
#include "proxy/config.h"
#include "proxy/ctl_proto.h"

struct plug_why;

#define HANDOVER_MAGIC		0x50555350u	/* "PSUP" */
#define HANDOVER_VERSION	1

#define HANDOVER_CGROUP_MAX	512	/* bytes of a control group's path */
#define HANDOVER_RULE_MAX	128	/* of a rule's name; longer ones stay */
#define HANDOVER_STATE_MAX	32768	/* of state in one message */
#define HANDOVER_LINE_MAX	4096	/* of a record that was cut */
#define HANDOVER_PREDS_MAX	16	/* processes that still have flows */

enum handover_type {
	HANDOVER_HELLO = 1,
	HANDOVER_OFFER,
	HANDOVER_SOCKET,
	HANDOVER_TAKE,
	HANDOVER_PRED,
	HANDOVER_RUN,
	HANDOVER_STATE,
	HANDOVER_TAIL,
	HANDOVER_PART,
	HANDOVER_CONN,
	HANDOVER_TOLD,
	HANDOVER_READY,
	HANDOVER_COMMIT,
	HANDOVER_SERVING,
	HANDOVER_OVER,
	HANDOVER_FAILED,
	HANDOVER_END,
	HANDOVER_POLICY,
	HANDOVER_RELOAD,
	HANDOVER_USED,
	HANDOVER_LEFT,

	HANDOVER_TYPES
};

struct handover_head {
	uint32_t magic;
	uint16_t version;
	uint16_t type;
};

struct handover_hello {
	struct handover_head head;
	uint32_t plug_version;		/* of the plug, that runs speak */
	uint32_t reserved;		/* 0 */
};

/* Descriptors that come with an OFFER, in this order. */
enum handover_offered {
	HANDOVER_FD_PLUG,
	HANDOVER_FD_STDERR,
	HANDOVER_FD_NOTIFY,		/* where a service manager is told */
	HANDOVER_FDS_OFFERED,
};

struct handover_offer {
	struct handover_head head;
	uint32_t sockets;		/* SOCKET messages that follow */
	uint32_t reserved;		/* 0 */
	char cgroup[HANDOVER_CGROUP_MAX];	/* "": not known */
};

struct handover_socket {
	struct handover_head head;
	uint32_t role;			/* enum sandbox_role */
	uint32_t worker;		/* that had it */
	struct ip_endpoint at;
};

enum handover_run_flag {
	HANDOVER_OWN_POLICY = 1u << 0,	/* a text of its own comes along */
	HANDOVER_OWN_RECORDS = 1u << 1,	/* and a file of its own */
};

/*
 * Descriptors, in this order: the connection to its launcher, the pipe with
 * records of flows that stay, its policy, its records, then the sockets that
 * open.fds says.
 */
struct handover_run {
	struct handover_head head;
	struct plug_open open;		/* as it came */
	uint32_t flags;
	uint32_t generation;
	uint32_t self_tests;		/* that are still to come */
	uint32_t connections;		/* that stay */
	uint64_t seq;			/* of its last record */
	int64_t started_ms;
	uint64_t bytes_up, bytes_down;	/* of flows that have ended */
	uint64_t memory_peak;
	char digest[24];		/* of the policy in force */
};

struct handover_state {
	struct handover_head head;
	uint32_t n;
	uint32_t reserved;		/* 0 */
	uint8_t bytes[HANDOVER_STATE_MAX];	/* whole items: handover_state.h */
};

struct handover_pred {
	struct handover_head head;
	uint32_t index;			/* 1, 2, ...; 0 is who sends it */
	uint32_t reserved;		/* 0 */
};

/* Of the last RUN: a pipe with records of a process before. */
struct handover_tail {
	struct handover_head head;
	uint32_t pred;			/* index of its PRED */
	uint32_t connections;
	uint32_t n;
	uint32_t reserved;		/* 0 */
	char cut[HANDOVER_LINE_MAX];	/* read of a line that has not ended */
};

struct handover_part {
	struct handover_head head;
	uint32_t worker;
	uint32_t reserved;		/* 0 */
	char name[CONFIG_LISTEN_NAME_MAX + 7];	/* [listen NAME] */
};

struct handover_failed {
	struct handover_head head;
	char text[PLUG_TEXT_MAX];
};

/* END, POLICY, USED and LEFT. */
struct handover_about {
	struct handover_head head;
	uint32_t generation;		/* POLICY */
	uint32_t connections;		/* USED: that are open; LEFT: 0 */
	uint64_t bytes[2];		/* USED: more by enum quota_way; LEFT: in all */
	uint64_t memory_peak;		/* LEFT */
	char run[PLUG_RUN_MAX];
	char rule[HANDOVER_RULE_MAX];	/* USED: ""; or whose account it is */
};

union handover_msg {
	struct handover_head head;
	struct handover_hello hello;
	struct handover_offer offer;
	struct handover_socket socket;
	struct handover_run run;
	struct handover_state state;
	struct handover_pred pred;
	struct handover_tail tail;
	struct handover_part part;
	struct handover_failed failed;
	struct handover_about about;
};

/* Is it of this language at all?  Of any version. */
bool handover_speaks(struct str msg);

/**
 * handover_parse() - One message, whoever sent it; pure
 * @nfds:	descriptors that came beside it
 * @ret:	a copy, of which all strings have an end
 * Return: enum handover_type, or -EPROTO with @why
 */
NODISCARD int handover_parse(struct str msg, size_t nfds,
			     union handover_msg *ret, struct plug_why *why);

/* Begin a message of @type; @ret is zeroed.  Return: its size; of STATE
 * without its bytes. */
size_t handover_begin(enum handover_type type, union handover_msg *ret);

/* How many descriptors come with that RUN. */
size_t handover_run_fds(const struct handover_run *m);

#endif /* PROXY_HANDOVER_PROTO_H */
