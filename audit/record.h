/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - the one event struct and its JSON line
 *
 * Schema in penstock-audit(5).  A refusal is one "flow" record with act deny;
 * an allowed flow is an "open" and a "close" record with one id.  Strings are
 * borrowed for the length of the call.  Absent: NULL/empty string, port 0,
 * family IP_NONE, -1 where zero has a meaning.
 */
#ifndef AUDIT_RECORD_H
#define AUDIT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/id.h"
#include "base/ip_addr.h"
#include "base/reason.h"
#include "base/str.h"

#define RECORD_VERSION	1
#define RECORD_LINE_MAX	4096	/* bytes of a line, newline included */

enum record_event {
	RECORD_FLOW_OPEN,	/* "flow_open": allowed, about to dial */
	RECORD_FLOW_CLOSE,	/* "flow_close": its end; same id */
	RECORD_FLOW_DENY,	/* "flow_deny": refused or failed before it opened */
	RECORD_HTTP,		/* "http": one request on a flow */
	RECORD_DNS,		/* "dns": one question */
	RECORD_RUN_START,	/* "run_start": plugged; policy, mode */
	RECORD_RUN_END,		/* "run_end": totals */
	RECORD_LOG_GAP,		/* "log_gap": @count records were lost */
	RECORD_POLICY,		/* "policy_reload": another policy is in force */
	RECORD_POLICY_FAILED,	/* "policy_reload_failed": the old one stays */
	RECORD_LIMIT,		/* "limit": reached @count times; new flows wait */

	RECORD_EVENTS
};

enum record_act {
	RECORD_ALLOW,
	RECORD_DENY,
	RECORD_WOULD_DENY,	/* observe mode let it through */
	RECORD_ERROR,		/* allowed, but the network failed */
	RECORD_ACT_NONE,	/* "none": of events that decide nothing */
};

enum record_via {
	RECORD_VIA_NONE,
	RECORD_VIA_CONNECT,
	RECORD_VIA_FORWARD,	/* absolute-form HTTP */
	RECORD_VIA_TRANSPARENT,
	RECORD_VIA_SOCKS,
	RECORD_VIA_DNS,
	RECORD_VIA_FIREWALL,	/* seen by the sandbox's own nftables */
};

struct record {
	enum record_event event;
	enum record_act act;
	enum reason reason;	/* why denied, failed, or how it ended */
	enum record_via via;
	bool internal;		/* our own self-test: left out of summaries */
	struct id id;		/* of the flow, or of the DNS question */
	struct id dns;		/* flow: the DNS record that gave the name; all 0: none */
	const char *rule;
	struct str host;	/* canonical name, or "" */
	struct ip_endpoint src;	/* the program's socket, where it says something */
	struct ip_addr asked;	/* the address the program dialled, transparent */
	struct ip_endpoint dst;	/* judged and dialled; .port always set for flows */
	const char *parent;	/* the proxy that the flow goes through; NULL: none */
	const char *resolved;	/* with @parent: "here" or "parent" */
	int parent_status;	/* what it said instead of connecting; 0: nothing */
	const char *transport;	/* "tcp" (NULL means that), "udp", "icmp" */
	const char *proto;	/* rule's protocol: "https", ... */
	struct str sni;		/* as sent, escaped when written */
	struct str http_host;	/* Host, where it differs */
	struct str method;
	struct str path;	/* without the query string */
	int status;		/* HTTP status sent to the client; 0: none */
	const char *qtype;	/* dns: "A" */
	int rcode;		/* dns: -1 none */
	const struct ip_addr *answers;	/* dns: what was answered */
	size_t nanswers;
	uint64_t bytes_up, bytes_down;	/* close and http */
	int64_t dur_ms;		/* -1: none */
	uint32_t count;		/* equals that it stands for; 0: itself alone */
	uint32_t flows_kept, flows_ended;	/* policy_reload: open flows */
	uint64_t over_budget;	/* run_end: names asked for over the budget */
	uint64_t memory_peak;	/* run_end: bytes held for it; 0: not known */
	struct str error;	/* policy_reload_failed: place, fault and mend */
};

/* Who and what policy: the same for all records of a run, but that a run can
 * be given another policy. */
struct record_labels {
	const char *run;	/* run id */
	const char *sandbox;	/* its label, or NULL */
	const char *policy;	/* "name@sha256:0123456789abcdef" */
	const char *mode;	/* "enforce" or "observe" */
	uint32_t generation;	/* of the run's policy, from 1; 0: none */
	struct str members;	/* record_labels_render() of them; "": not made */
	bool members_cut;
};

/* Written many times: have it ready as text.  @out lasts as long as @labels. */
#define RECORD_LABELS_MAX	1536
void record_labels_render(struct record_labels *labels,
			  char out[RECORD_LABELS_MAX + 1]);

/**
 * record_render() - Append one JSON line, newline included
 *
 * Keys stand in the order of penstock-audit(5).  Never longer than
 * RECORD_LINE_MAX: long strings are cut and "cut":true says so.
 * Return: 0 or -ENOSPC
 */
NODISCARD int record_render(const struct record *r,
			    const struct record_labels *labels, uint64_t seq,
			    int64_t wall_us, struct buf *out);

const char *record_event_word(enum record_event e);
const char *record_act_word(enum record_act a);
const char *record_via_word(enum record_via v);

#endif /* AUDIT_RECORD_H */
