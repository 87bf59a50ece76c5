/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query.h - reading records back: what a run reached and what it was refused
 *
 * The home of jansson.  Used by the CLI after a run and for `penstock flows`.
 */
#ifndef AUDIT_QUERY_H
#define AUDIT_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/reason.h"

/* Longer lines are bad ones: none of ours is longer than RECORD_LINE_MAX. */
#define QUERY_LINE_MAX	16384
/* Rows of a summary; what comes after is only counted in @more. */
#define QUERY_ROWS_MAX	4096
#define QUERY_RUN_SIZE	42

/* One line of the summary: all flows to one host and port with one outcome. */
struct query_row {
	char *host;		/* name, else address text, else "-" */
	uint16_t port;
	bool refused;		/* denied or failed; else reached */
	bool would_deny;	/* reached only because the policy observes */
	char *reason;		/* word; "" when reached */
	char *transport;	/* "tcp", "udp", "icmp", or "dns" for a refused lookup */
	uint64_t count;
	uint64_t bytes_up, bytes_down;
};

struct query_summary {
	struct query_row *row;	/* reached first, then refused; most bytes/count first */
	size_t n;
	uint64_t records;	/* lines read */
	uint64_t bad;		/* lines that are not records */
	uint64_t lost;		/* by log_gap */
	uint64_t full;		/* times that new connections had to wait */
	uint64_t over_budget;	/* names asked for over the run's budget */
	uint64_t more;		/* flows beyond QUERY_ROWS_MAX rows */
	bool ended;		/* a run_end record was there */
	char run[QUERY_RUN_SIZE];	/* its id; "": none, or several */
	bool several;		/* records of more than one run */
};

/**
 * query_summarise() - Read JSON lines from @fd to its end
 *
 * Internal records are passed over.  A refused DNS lookup whose name is also
 * refused as a flow is counted once, as the flow.  A flow that was opened and
 * then could not be connected is a refused one, with the network's reason.  A
 * refused HTTP request counts, and not the close of the flow that it ended; so
 * does one that failed before anything was dialled for it.
 * Return: 0 or -errno
 */
NODISCARD int query_summarise(int fd, struct query_summary *ret);
void query_summary_done(struct query_summary *s);

/*
 * One record as read, for tables and filters.  Strings live during the call;
 * absent ones are "", and one that is not plain printable ASCII is "?", so that
 * all may be shown on a terminal.
 */
struct query_flow {
	char ts[28];
	const char *id, *event, *act, *reason, *rule, *host, *via, *proto, *run;
	const char *src, *dst_ip, *asked, *parent, *transport;
	const char *policy, *error;	/* error: of policy_reload_failed */
	uint64_t generation, flows_kept, flows_ended;
	uint64_t over_budget;	/* of run_end */
	uint16_t port;
	uint64_t bytes_up, bytes_down;
	int64_t dur_ms;
	uint32_t count;
	bool again;		/* dns: it repeats a question told of before */
	bool internal;
};
/* Called once a record, in the order of the file. */
typedef bool query_flow_fn(void *arg, const struct query_flow *f); /* false: stop */
NODISCARD int query_each(int fd, query_flow_fn *fn, void *arg, uint64_t *ret_bad);

/* What of a run becomes a policy. */
struct query_wish {
	const char *run;	/* its id, for the reasons and the name */
	bool reached;		/* what policy allowed, too: a minimal policy */
	bool refused;		/* what was refused, for lack of a rule */
	bool wildcards;		/* one *.NAME for many hosts below NAME */
};

/**
 * query_policy() - A policy text from what a run did, for a person to review
 *
 * What was let through by observing is always in it.  One rule a host, its
 * evidence as comments; nothing of an address class.
 */
NODISCARD int query_policy(const struct query_summary *s,
			   const struct query_wish *wish, struct buf *out);

#endif /* AUDIT_QUERY_H */
