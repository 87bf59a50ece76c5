/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.h - one plugged sandbox: its policy, its sockets, its flows
 */
#ifndef PROXY_SANDBOX_H
#define PROXY_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/record.h"
#include "audit/writer.h"
#include "base/compiler.h"
#include "base/list.h"
#include "base/mem_account.h"
#include "proxy/conn.h"
#include "proxy/ctl_proto.h"
#include "proxy/listener.h"
#include "proxy/sched.h"
#include "rules/rules.h"

struct event;
struct worker;
struct dns_door;
struct name_map;
struct name_pins;
struct dns_budget;
struct nflog;
struct strangers;
struct quota;
struct client_table;

/* Connections beyond what the run may have, which are there to be refused; over
 * that accept() is paused. */
#define SANDBOX_REFUSED_MAX	256
/* Records of that: the first at once, then one for all in this time. */
#define SANDBOX_FULL_MS		60000
/* Bytes of names that one sandbox may make us remember, each way to answer. */
#define SANDBOX_NAMES_BYTES	(32u << 20)
/* A wall clock that was set is noticed after so long, by rules that end. */
#define SANDBOX_EXPIRY_CHECK_S	60

struct sandbox_fd;

struct sandbox {
	struct list node;		/* worker.sandboxes */
	struct worker *worker;
	struct ruleset *rules;		/* one reference */
	struct audit_sink *sink;
	struct name_map *names;
	struct name_pins *pins;
	struct dns_budget *budget;	/* of names that it asks for */
	struct quota *quota;		/* of the run: one reference */
	struct dns_door *dns;
	struct list listeners;		/* struct listener.node */
	struct nflog *nflog;
	const struct ip_nets *clients;	/* who may use it; NULL: whoever can */
	struct strangers *strangers;	/* others, who tried; or NULL */
	struct client_table *shares;	/* what each client has; or NULL */
	struct strangers *crowd;	/* who came again after being refused */
	struct strangers *askers;	/* who asks too much of DNS */
	void (*on_drained)(struct sandbox *s, void *arg);
	void *drained_arg;
	struct event *expiry;		/* pending while a rule is to end */
	int64_t expires;		/* when the next one does, by the wall clock */
	int diag_fd;			/* NETLINK_SOCK_DIAG born inside, or -1 */
	struct sandbox_fd *door;	/* numbers of its sockets, whoever has them */
	size_t ndoors;
	struct sched_queue turn;	/* its share of the worker */
	struct sched_work dns_turn;	/* of which its DNS has a part */
	struct list conns;		/* struct conn.node */
	unsigned nconns, conns_max;	/* at conns_max accept() pauses */
	unsigned nlean;			/* of them, refused for want of memory */
	struct mem_account memory;	/* all that is held for it here */
	struct list pool;		/* of conn_pool.c, the latest first */
	unsigned npooled;
	unsigned pool_ms;		/* that they may wait; 0: the default */
	unsigned unheard_ms;		/* of forward_limits, the same */
	unsigned full_more;		/* times it was full, not recorded yet */
	enum reason full_why;		/* the last time */
	int64_t full_until_ms;		/* when they will be; 0: it never was */
	uint64_t tenant;		/* key of shared lookups */
	uint64_t flows_allowed, flows_denied;
	uint64_t bytes_up, bytes_down;
	unsigned self_tests_left;	/* its refusals that are still to come */
	bool ending;			/* no new flows */
	bool frozen;			/* accepts nothing for a while */
	char run[PLUG_RUN_MAX];
	char label[PLUG_LABEL_MAX];
};

/* Bytes of "NAME@sha256:DIGEST" with NUL. */
#define SANDBOX_POLICY_LABEL	(PLUG_NAME_MAX + 32)

/* What a descriptor of a sandbox's is for. */
enum sandbox_role {
	SANDBOX_HTTP,		/* listening: the explicit proxy */
	SANDBOX_SOCKS,		/* listening: the same for SOCKS */
	SANDBOX_TPROXY,		/* listening: whatever else is dialled */
	SANDBOX_DNS_UDP,	/* IP_PKTINFO or IPV6_RECVPKTINFO set */
	SANDBOX_DNS_TCP,	/* listening */
	SANDBOX_NFLOG,		/* the firewall's reports; at most one */
	SANDBOX_DIAG,		/* at most one */

	SANDBOX_ROLES
};

/* Descriptors of one sandbox. */
#define SANDBOX_FDS_MAX		64

struct sandbox_fd {
	enum sandbox_role role;
	int fd;
};

/* Strings are borrowed for the call; NULL is "". */
struct sandbox_config {
	const char *run;
	const char *label;
	const char *hostname;		/* its own, that its DNS answers */
	const char *nonce;		/* of the launcher's self-test */
	unsigned self_tests;		/* refusals of it that will come by */
	struct sandbox_fd fd[SANDBOX_FDS_MAX];	/* taken, also on failure */
	size_t nfds;			/* several of a role are fine */
	struct ruleset *rules;		/* one reference, taken on success */
	struct audit_sink *sink;	/* taken on success */
	/* NULL: whoever reaches its sockets may use them, as in a namespace of
	 * its own.  Else borrowed for its life: they are on the host, and names
	 * are answered with real addresses where the policy does not say. */
	const struct ip_nets *clients;
	/* What each of them may have; borrowed for its life.  NULL: anything. */
	struct client_table *shares;
	/* One that other threads spend from as well; NULL: its own. */
	const struct dns_budget *budget;
	/* Of a run with other instances: one reference, taken always.  NULL:
	 * the sandbox is the run. */
	struct quota *quota;
};

/* One descriptor more, taken; -1 is none. */
void sandbox_config_add(struct sandbox_config *config, enum sandbox_role role,
			int fd);
/* Close and let go of what nobody has taken. */
void sandbox_config_close(struct sandbox_config *config);

/* On the worker's thread, all of them. */
NODISCARD int sandbox_new(struct worker *w, struct sandbox_config *config,
			  struct sandbox **ret);
/* Ends every flow with @why and closes every socket of the sandbox. */
void sandbox_end(struct sandbox *s, enum reason why);
/**
 * sandbox_drain() - Take nothing new; flows that are open go on
 * @fn:		called once, maybe inside, when there are no flows any more;
 *		never after sandbox_end()
 */
void sandbox_drain(struct sandbox *s, void (*fn)(struct sandbox *s, void *arg),
		   void *arg);
/* A connection of it was freed: it may be drained by now. */
static inline void sandbox_on_less(struct sandbox *s)
{
	void (*fn)(struct sandbox *s, void *arg) = s->on_drained;

	if (!fn || s->ending || s->nconns > 0)
		return;
	s->on_drained = NULL;
	fn(s, s->drained_arg);
}
/*
 * Accept and answer nothing new for a while: what comes waits in the sockets.
 * Flows that are open, and questions that wait for the world, go on.
 * 0 or -errno, and nothing is changed.
 */
NODISCARD int sandbox_freeze(struct sandbox *s);
void sandbox_thaw(struct sandbox *s);
/* Records go to @sink from now on; the old one, the caller's. */
struct audit_sink *sandbox_set_sink(struct sandbox *s,
				    struct audit_sink *sink);
/* Who takes a connection that is accepted there; NULL: it is no listener of
 * connections. */
listener_fn *sandbox_role_accepts(enum sandbox_role role);
/* What a frozen one holds of its sockets, closed; void for others. */
void sandbox_close_frozen(struct sandbox *s);

/**
 * sandbox_swap_rules() - Another policy from now on, for what is open too
 * @rules:	one reference, taken
 * @generation:	of the run's policies, counted up by the caller
 * @ret:	what became of the flows that were open
 *
 * Records from here on are of the new policy.
 */
void sandbox_swap_rules(struct sandbox *s, struct ruleset *rules,
			uint32_t generation, struct conn_rejudged *ret);
/* The same, and a record that tells of the change. */
void sandbox_set_policy(struct sandbox *s, struct ruleset *rules,
			uint32_t generation, struct conn_rejudged *ret);

/**
 * sandbox_rejudge() - Judge all that lives by the rules as they are now
 * @why:	told and recorded of open flows that end by it
 *
 * Flows, questions that wait and names that were given out.
 */
void sandbox_rejudge(struct sandbox *s, enum reason why,
		     struct conn_rejudged *ret);

/* "NAME@sha256:DIGEST", as records have it. */
void sandbox_policy_label(const struct ruleset *rules,
			  char out[SANDBOX_POLICY_LABEL]);

/* The most that was held for it at once, in bytes. */
uint64_t sandbox_memory_peak(const struct sandbox *s);
/* How often it has asked for names over its budget. */
uint64_t sandbox_over_budget(const struct sandbox *s);

/* After sandbox_end() and the turn's reclaim: frees the rest but the sink,
 * which the caller takes back to flush. */
struct audit_sink *sandbox_free(struct sandbox *s);

/**
 * sandbox_record() - A record with what all of its kind share
 * @ret:	zeroed, then event, act, reason and via as given, status and
 *		numbers "absent", and a new id
 */
void sandbox_record(enum record_event event, enum record_act act,
		    enum reason reason, enum record_via via,
		    struct record *ret);

/**
 * sandbox_deny() - Post a refusal and count it
 * @r:		of RECORD_FLOW_DENY; marked internal when its destination or
 *		asked address is the self-test's
 */
void sandbox_deny(struct sandbox *s, struct record *r);

/* May a client from @src use it?  If not, it was noted.
 * @at:		the end of ours that it came to */
bool sandbox_admits(struct sandbox *s, const struct ip_endpoint *src,
		    const struct ip_endpoint *at);

/* Does it have as many connections as it may, those that are refused included? */
static inline bool sandbox_is_full(const struct sandbox *s)
{
	return s->nconns >= s->conns_max || s->nlean >= SANDBOX_REFUSED_MAX;
}
/* It is full, and a listener stops accepting. */
void sandbox_on_full(struct sandbox *s);

#endif /* PROXY_SANDBOX_H */
