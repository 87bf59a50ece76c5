/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward.h - HTTP/1 exchanges of one connection, every request judged
 *
 * For absolute-form requests on the explicit proxy, for transparent HTTP, and
 * for HTTP inside a CONNECT to a port whose rule says http.  The engine reads
 * requests off the app half, asks its owner about each, has the net half
 * dialled by it, and moves heads and bodies.  It knows no rules, no resolver
 * and no audit: all of that is behind the operations.  What its two halves are
 * made of is behind those of stream.h.  Theory in forward.c.
 */
#ifndef PROXY_FORWARD_H
#define PROXY_FORWARD_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/record.h"
#include "base/compiler.h"
#include "base/reason.h"
#include "base/str.h"
#include "proxy/stream.h"
#include "rules/host_name.h"
#include "rules/rules.h"

struct event_base;
struct forward;
struct quota_flow;
struct mem_account;
struct sched_queue;

/* Bytes read ahead of what the other side has taken, for each direction. */
#define FORWARD_BUF		(64u << 10)
/* Bytes of a refused request's body that are read to keep its connection. */
#define FORWARD_DRAIN_MAX	(256u << 10)
/* Interim (1xx) answers to one request. */
#define FORWARD_INTERIM_MAX	32
#define FORWARD_PATH_MAX	1024	/* of a path that is recorded */

/* Where a request goes: what is judged, dialled and compared with Host. */
struct forward_target {
	enum host_kind kind;		/* never HOST_BAD once judged */
	struct host_name name;		/* HOST_NAME */
	struct ip_addr addr;		/* HOST_ADDRESS */
	uint16_t port;
};

enum forward_mode {
	/* The explicit proxy: absolute-form only, the target says where. */
	FORWARD_EXPLICIT,
	/* The name is known (synthetic address, CONNECT): every request is for
	 * @pinned, and its Host must agree (else host_mismatch). */
	FORWARD_PINNED,
	/* Transparent, and no name is known for the address: Host says where;
	 * its port must be @pinned.port.  The owner resolves the name. */
	FORWARD_BY_HOST,
};

/* Milliseconds; 0: without end. */
struct forward_times {
	unsigned stall_ms;	/* without a byte, in an exchange */
	unsigned flow_ms;	/* of a connection to an origin, in all */
};

/*
 * What the owner does for the engine.  All are called from the loop and none
 * inside forward_start(), forward_dialed(), forward_dial_failed() or
 * forward_free(), but times, which may be at any time; inside forward_cut() and
 * forward_revoke() only record, dial_cancel and net_closed.  Of the calls above
 * only the two about the dial may be made inside an operation, and forward_cut()
 * and forward_free() inside tunnel and finish, the last ones.
 */
struct forward_ops {
	/*
	 * May a request go to @t, as far as is known before its resolution?
	 * Also the place to refuse when audit is not to be had or the rule's
	 * protocol is not HTTP.  @request has all but its flow, which is the
	 * owner's to fill in.  @ret as by rules_judge_request().
	 */
	void (*judge)(void *arg, const struct forward_target *t,
		      struct rules_request *request,
		      struct rules_answer *ret);
	/*
	 * Resolve, judge each address and connect; then call forward_dialed()
	 * or forward_dial_failed(), now or later.  One at a time.  The owner
	 * posts RECORD_FLOW_OPEN before it connects, and keeps the flow's id
	 * for the records that follow, until the next dial.  Unless @fresh,
	 * a connection that net_idle() took will do as well, if it may lead
	 * there: then it calls forward_dial_found().
	 */
	void (*dial)(void *arg, const struct forward_target *t, bool fresh);
	/* The dial is not wanted any more; no result is to come. */
	void (*dial_cancel)(void *arg);
	/*
	 * The connection of the last dial was closed: for RECORD_FLOW_CLOSE,
	 * with the bytes that crossed it.  Not called when it was handed to
	 * tunnel().
	 */
	void (*net_closed)(void *arg, enum reason why, uint64_t bytes_up,
			   uint64_t bytes_down);
	/*
	 * The connection of the last dial is left whole: nothing of an
	 * exchange is on it, and the origin keeps it open.  True: @net was
	 * taken, with the bytes that crossed it here, and net_closed is not
	 * called; false: it is.  Only where @outlives says so.
	 */
	bool (*net_idle)(void *arg, struct stream *net, uint64_t bytes_up,
			 uint64_t bytes_down);
	/*
	 * Post one RECORD_HTTP.  Set are: event, act, reason, rule, host
	 * (or dst.addr, for a literal), dst.port, http_host, method, path, status,
	 * bytes, dur_ms; the owner adds the flow's id (a new one where no dial
	 * was made), via and its own ends.  A refused request (also one whose
	 * dial failed before a flow was open) has this record and no other.
	 */
	void (*record)(void *arg, struct record *r);
	/*
	 * The request asked for a WebSocket and the origin agreed: both halves
	 * are a tunnel from now on.  @net is the callee's, @up and @down were
	 * read already and are to be sent first, to net and to app, and are
	 * borrowed for this call.  @bytes_*: what crossed net before.  The
	 * engine is silent after; it may be freed inside.
	 */
	void (*tunnel)(void *arg, struct stream net, struct str up, struct str down,
		       uint64_t bytes_up, uint64_t bytes_down);
	/*
	 * How long the exchange may be silent, and the connection to the
	 * origin may last, as it is now.  Asked whenever it matters; the owner
	 * says when it has changed under way (forward_watch_anew()).
	 */
	void (*times)(void *arg, struct forward_times *ret);
	/*
	 * The connection is over: close app, with a reset when @reset.  Called
	 * once, last; forward_free() may be called inside.
	 */
	void (*finish)(void *arg, enum reason why, bool reset);
};

/* Milliseconds; 0 takes the default. */
struct forward_limits {
	unsigned head_ms;	/* for a whole head, from its first byte or the
				 * connection's start: 60 s */
	unsigned idle_ms;	/* between requests: 5 minutes */
	unsigned net_idle_ms;	/* a kept upstream connection: 15 s */
	unsigned linger_ms;	/* reading on after the last answer: 5 s */
	unsigned gone_ms;	/* without a byte, in an exchange whose client
				 * has said its last, or does not take
				 * the rest of its answer: 15 minutes */
	unsigned unheard_ms;	/* a request on a kept connection, of which the
				 * origin's kernel confirms nothing: 10 s */
	/* Without these there is no such limit. */
	unsigned response_ms;	/* from a whole request to its answer */
	unsigned head_bytes;	/* of a request's head */
};

struct forward_config {
	struct event_base *base;
	struct stream app;		/* borrowed */
	struct str early;		/* already read from app; copied;
					 * at most FORWARD_BUF bytes */
	enum forward_mode mode;
	bool outlives;			/* net may be left to the owner */
	struct forward_target pinned;
	const char *policy, *run;	/* for refusals; outlive the engine */
	struct forward_limits limits;
	struct quota_flow *account;	/* of what crosses net; NULL: none */
	struct sched_queue *turn;	/* of the sandbox; NULL: none */
	struct mem_account *memory;	/* the same: what is held is its */
	const struct forward_ops *ops;
	void *arg;
};

/**
 * forward_start() - Serve requests until the connection is over
 *
 * Return: 0, -ENOMEM, or -EMSGSIZE for too many early bytes
 */
NODISCARD int forward_start(const struct forward_config *config,
			    struct forward **ret);

/* The dial's result, at any time after dial() was entered, also inside it.
 * @net: connected, its layer too; taken.  @began_ms: when its flow began. */
void forward_dialed(struct forward *f, struct stream net, int64_t began_ms);
/* It was used before. */
void forward_dial_found(struct forward *f, struct stream net,
			int64_t began_ms);
void forward_dial_failed(struct forward *f, enum reason why);
/*
 * Before forward_dialed(): the connection leads to a parent proxy, and each
 * request says where it goes (absolute-form).
 * @basic: credentials of ours for it, or empty; borrowed while it lasts
 */
void forward_set_parent(struct forward *f, bool absolute, struct str basic);

/**
 * forward_cut() - End from outside (run ended, policy changed)
 *
 * Records the exchange in flight with @why, cancels a dial, closes net.  No
 * operation is called afterwards; app stays the owner's.
 */
void forward_cut(struct forward *f, enum reason why);
/* The policy has another name from now on, for refusals, borrowed; and other
 * limits.  forward_watch_anew() makes them hold for what is under way. */
void forward_set_policy(struct forward *f, const char *policy,
			const struct forward_limits *limits);
/* Limits are others, or times() says something else.  What has been silent has
 * been so for as long as it has. */
void forward_watch_anew(struct forward *f);

/**
 * forward_revoke() - Where the net half leads is not allowed any more
 *
 * Net is closed at once.  A request whose answer has not begun is refused with
 * @why, one that is being answered is broken off; a connection between two
 * requests goes on, and what comes next on it is judged as ever.  Nothing
 * happens where there is no net half.  Inside, only record and net_closed are
 * called.
 */
void forward_revoke(struct forward *f, enum reason why);
void forward_free(struct forward *f);	/* NULL is fine */

/* Where the net half leads, for judging a live flow again; NULL: none. */
const struct forward_target *forward_net_target(const struct forward *f);

#endif /* PROXY_FORWARD_H */
