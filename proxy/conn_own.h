/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_own.h - what the files of a connection share; no one else includes it
 *
 *	conn.c			states, events, beginning and end
 *	conn_target.c		which name or address, and is it permitted?
 *	conn_names.c		the names that a real address may stand for
 *	conn_transparent.c	what did the program ask for, and may it?
 *	conn_explicit.c		the same of a CONNECT
 *	conn_socks.c		the same of a SOCKS request
 *	conn_hello.c		do the first bytes agree? (TLS)
 *	conn_net.c		dialling, and the tunnel
 *	conn_http.c		what the HTTP engine asks of us
 *	conn_pool.c		connections to origins between two requests
 *	conn_limits.c		how many, how much, how long
 *	conn_rejudge.c		the same questions again, for another policy
 *	conn_refuse.c		saying no in the client's own protocol
 *	conn_record.c		the audit records of it all
 */
#ifndef PROXY_CONN_OWN_H
#define PROXY_CONN_OWN_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdbool.h>
#include <stdint.h>

#include "audit/record.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "base/id.h"
#include "base/ip_addr.h"
#include "base/list.h"
#include "base/reason.h"
#include "proxy/client_table.h"
#include "proxy/conn.h"
#include "proxy/dial.h"
#include "proxy/half.h"
#include "proxy/quota.h"
#include "proxy/sandbox.h"
#include "proxy/sched.h"
#include "proxy/socks.h"
#include "rules/host_name.h"
#include "rules/rules.h"

struct forward;
struct forward_target;
struct name_pin;
struct relay;

#define CONN_MAGIC		0x434f4e4eu	/* "CONN" */

/* For a whole CONNECT head, all of SOCKS, and the first bytes of TLS. */
#define CONN_HEAD_MS		60000
/* A refused program may say in which protocol it wants to hear it. */
#define CONN_LISTEN_MS		2000
/* After the answer: read on, so that no reset overtakes it. */
#define CONN_DRAIN_MS		5000
#define CONN_DRAIN_MAX		(256u << 10)
/* Bytes read before there is someone to send them to. */
#define CONN_IN_MAX		(64u << 10)
/* Idle connections to origins, of one sandbox, and for how long. */
#define CONN_POOL_MAX		32
#define CONN_POOL_MS		15000
/*
 * What a connection is charged beside its buffers: itself, its dial or its HTTP
 * engine with their events, and what the kernel has for a socket, 4 KiB as
 * measured, twice.  One that is refused has neither engine nor second socket.
 */
#define CONN_SOCKET_MEMORY	4096
#define CONN_MEMORY		(24u << 10)
#define CONN_REFUSED_MEMORY	(2048 + CONN_SOCKET_MEMORY)
#define CONN_SNI_MAX		255	/* of an SNI as sent, for the record */

enum conn_state {
	CONN_START,
	CONN_HEAD,
	CONN_SOCKS,
	CONN_HELLO,
	CONN_DIAL,
	CONN_HTTP,
	CONN_RELAY,
	CONN_LISTEN,
	CONN_REFUSE,
	CONN_ENDED,

	CONN_STATES
};

/*
 * What is asked for: a name, or an address when there is no name.  Of one that
 * will not change any more there may be no memory behind the end of its name:
 * it is copied by conn_target_copy(), and never assigned from.
 */
struct conn_target {
	struct ip_addr addr;		/* the literal; with a name: none */
	struct ip_addr wish;		/* the real address that led to the name */
	bool alone;			/* no other of the name's may be dialled */
	uint16_t port;
	struct host_name name;		/* n == 0: none */
};

/* The message of SOCKS that is awaited. */
enum conn_socks_step {
	CONN_SOCKS_GREETING,
	CONN_SOCKS_LOGIN,
	CONN_SOCKS_REQUEST,
};

struct conn_socks {
	uint8_t version;		/* 0: nothing of it was said */
	uint8_t reply;			/* to say instead of the reason's; or 0 */
	enum conn_socks_step step;
};

/* One connection to an origin, as records and rules see it: the part of a
 * connection that goes on when its program's half is another. */
struct conn_flow {
	struct id id, dns;
	enum record_via via;
	struct ip_endpoint src;		/* the program's end that opened it */
	struct ip_endpoint asked;
	const struct conn_target *target;	/* borrowed */
	struct ip_endpoint dst;
	struct dial_way way;
	unsigned parent_status;
	struct rules_answer answer;	/* borrows from the rules it is by */
	int64_t began_ms;
	uint64_t bytes_up, bytes_down;
	struct quota_flow account;
};

/* What a connection needs until its tunnel stands, and has no use for then:
 * the first bytes, and who waits for more. */
struct conn_ask {
	struct buf in, out;
	size_t seen;			/* of @in, by the parser of heads */
	size_t need;			/* of @in, for the next hello record */
	size_t drained;
	struct conn_socks socks;
	struct event timer;
	struct sched_work read;		/* when it is the sandbox's turn */
};

struct conn {
	uint32_t magic;
	enum conn_state state;
	struct list node;		/* sandbox.conns */
	struct list dead;		/* worker.dead, once ended */
	struct sandbox *s;
	struct ruleset *rules;		/* one reference: answers borrow from it */
	struct half app, *net;		/* @net NULL: none */
	enum record_via via;
	struct ip_endpoint src;
	struct ip_endpoint asked;	/* transparent; else family IP_NONE */

	struct conn_target *target;	/* owned; cut behind its name in RELAY */
	struct rules_answer answer;	/* the last judgement of it */
	uint32_t request_rule;		/* that permits the request, or 0 */
	enum rules_speech speech;	/* what is demanded of the first bytes */
	bool by_first_bytes;		/* only they can name what is meant */
	bool established;		/* who asked for a tunnel was told */
	bool rules_changed;		/* while it was being dialled */
	struct name_pin *pin;		/* held: the address that was asked for
					 * is the name's; or NULL */
	enum reason why;		/* of a refusal that is being told */
	enum reason admission;		/* why it may ask for nothing */
	bool counted;			/* among the run's connections, */
	struct client_hold hold;	/* and among its client's */
	bool lean;			/* refused for want of memory */
	uint32_t charged;		/* to the sandbox's memory */
	struct quota_flow account;	/* what the flow moves */
	uint64_t moved;			/* by the relay, when it was looked at, */
	int64_t moved_ms;		/* and when that changed */

	struct id id, dns;		/* of the flow, of its DNS answer */
	int64_t began_ms;
	bool opened;			/* flow_open is posted, flow_close is not */
	struct ip_endpoint opener;	/* src in the flow_open */
	bool recorded;			/* something was */
	struct ip_endpoint dst;		/* dialled */
	struct dial_way way;		/* and through which parent */
	unsigned parent_status;		/* that it refused with, or 0 */
	uint64_t base_up, base_down;	/* of the flow, before what counts now */
	uint64_t bytes_up, bytes_down;
	char *sni;			/* as it was sent, for the record */
	size_t sni_n;

	struct conn_ask *ask;		/* NULL in RELAY */
	struct dial *dial;
	struct relay *relay;
	struct event *watch;		/* of the relay: silence and length; NULL:
					 * there has been no limit */
	struct forward *forward;
	bool forward_over;		/* it has called finish() */
	bool kept;			/* @net has keepalive */
};

/* --- conn.c -------------------------------------------------------------------- */

/* Takes @fd. NULL after it was reset and recorded, for want of memory. */
struct conn *conn_new(struct sandbox *s, int fd,
		      const struct ip_endpoint *src, enum record_via via);
/* Tries all once; false when not all was taken (then the client is gone). */
NODISCARD bool conn_send(struct conn *c, struct str s);
/* Enter a state that reads bytes of app's into @in, for at most @ms; what is
 * there already is looked at by the caller. */
void conn_read_in(struct conn *c, enum conn_state state, unsigned ms);
/* The same for one that was just accepted: its first bytes are often there. */
void conn_begin_in(struct conn *c, enum conn_state state, unsigned ms);
/* Events of app's stop; for those who hand app on. */
void conn_quiet(struct conn *c);
void conn_set_state(struct conn *c, enum conn_state to);
/* Its tunnel stands: what is not needed for that is given back. */
void conn_settle_down(struct conn *c);
static inline struct str conn_sni(const struct conn *c)
{
	return str_make(c->sni, c->sni_n);
}
/* The end: what is not recorded yet is, and the sockets close. */
void conn_finish(struct conn *c, enum reason why, bool reset);

/* --- judging: conn_target.c ------------------------------------------------------ */

/**
 * conn_target_set() - A name, or a literal, or the name behind a synthetic one
 *
 * What names a literal may stand for is for conn_names.c to say.
 * @name:	canonical; NULL or empty: @addr counts
 * @ret_dns:	the DNS record that gave the name, all 0 when there was none
 * Return: ALLOWED, or ADDRESS_NOT_ALLOWED for a synthetic address that was
 * never given out
 */
enum reason conn_target_set(const struct sandbox *s,
			    const struct host_name *name,
			    const struct ip_addr *addr, uint16_t port,
			    struct conn_target *ret, struct id *ret_dns);
void conn_target_name(struct conn_target *t, struct str name);
void conn_target_copy(struct conn_target *to, const struct conn_target *from);
/* One that will not change any more; NULL: no memory. */
struct conn_target *conn_target_dup(const struct conn_target *t);
/* It borrows @t and the worker's addresses. */
struct rules_question conn_target_question(const struct conn *c,
					   const struct conn_target *t);
void conn_target_judge(const struct conn *c, const struct conn_target *t,
		       struct rules_answer *ret);
/* A CONNECT or a SOCKS request for c->target, of which conn_target_set() said
 * @meant: settles its name, and judges it. */
enum reason conn_judge_tunnel(struct conn *c, enum reason meant);
bool conn_target_eq(const struct conn_target *a, const struct conn_target *b);
/* The protocol of the rule that answered, else the port's own. */
const struct rules_protocol *conn_protocol(const struct conn *c,
					   const struct rules_answer *answer);

/* --- what the run may use: conn_limits.c ------------------------------------------ */

/* Is it one too many?  Told once it is known what is asked for, and how. */
void conn_enter(struct conn *c);
void conn_leave(struct conn *c);
/* It is freed: what it was charged, but its buffers. */
void conn_discharge(struct conn *c);
/* May it hold more than it does, of what it has not asked for yet? */
enum reason conn_may_hold(const struct conn *c);
/* How long a head may take, or the first bytes of TLS. */
unsigned conn_head_ms(const struct conn *c);
struct forward_limits conn_http_limits(const struct conn *c);
/* How long it may be silent, and its flow may last. */
struct rules_times conn_times(const struct conn *c);
/* How large a head may be. */
size_t conn_head_max(const struct conn *c);
/* Bytes are counted from here on. ALLOWED, or what is used up already. */
enum reason conn_begin_flow(struct conn *c, const struct rules_answer *answer);
/* Silence and length of the tunnel, as the policy has them now. */
void conn_watch_relay(struct conn *c);

/* --- judging again: conn_rejudge.c ----------------------------------------------- */

/* Connected to c->dst, after the policy had changed meanwhile: may it be? */
enum reason conn_judge_dialed(struct conn *c);

/* --- the others ------------------------------------------------------------------ */

/* More of @in came, or app is at its @end. */
void conn_on_head(struct conn *c, bool end);		/* conn_explicit.c */
void conn_on_socks(struct conn *c, bool end);		/* conn_socks.c */
void conn_on_hello(struct conn *c, bool end);		/* conn_hello.c */
void conn_on_dial_read(struct conn *c, bool end);	/* conn_net.c */
void conn_on_listen(struct conn *c, bool end);		/* conn_refuse.c */

/* Judge what the program asked for, and go on as its protocol wants; from
 * START, and from HELLO when the policy changed. */
void conn_begin_transparent(struct conn *c);		/* conn_transparent.c */

/* Was it asked for in so many words, by somebody who waits for an answer? */
static inline bool conn_is_tunnel(const struct conn *c)
{
	return c->via == RECORD_VIA_CONNECT || c->via == RECORD_VIA_SOCKS;
}

/* Does @in begin as SOCKS does?  Then a refusal speaks it, too. */
bool conn_socks_begins(struct conn *c);			/* conn_socks.c */
struct str conn_socks_granted(const struct conn *c, char out[SOCKS_ANSWER_MAX]);
/* For c->why, in what the step that it is at has for that. */
struct str conn_socks_refused(const struct conn *c, char out[SOCKS_ANSWER_MAX]);

void conn_dial(struct conn *c);				/* conn_net.c */
NODISCARD int conn_dial_target(struct conn *c);
void conn_start_relay(struct conn *c, struct str up, struct str down);
void conn_take_relay(struct conn *c);

void conn_start_http(struct conn *c);			/* conn_http.c */
void conn_http_on_dialed(struct conn *c, const struct dial_result *r);

/*
 * conn_pool.c: the flow of @c is idle, and its program has no more use for it.
 * @fd:		connected, non-blocking; taken when it returns true, and @c has
 *		no open flow then
 */
bool conn_pool_give(struct conn *c, int fd);
/* A connection to @t that @c might have opened itself, and whose flow it has
 * from then on; -1: there is none. */
int conn_pool_take(struct conn *c, const struct conn_target *t);
void conn_pool_end(struct sandbox *s, enum reason why);
void conn_pool_rejudge(struct sandbox *s, enum reason why,
		       struct conn_rejudged *ret);

/* The flow is not to be: record it and tell the client. */
void conn_refuse(struct conn *c, enum reason why);	/* conn_refuse.c */
void conn_on_refuse(struct conn *c);

/* The flow begins, for its budgets too; or why not. */
enum reason conn_record_open(struct conn *c,		/* conn_record.c */
			     const struct rules_answer *answer);
void conn_record_end(struct conn *c, enum reason why);
void conn_record_http(struct conn *c, struct record *r, bool of_flow);
/* It borrows from @c's rules. */
struct conn_flow conn_flow_of(const struct conn *c);
/* @c has no flow any more, and has one that was another's. */
void conn_flow_leave(struct conn *c);
void conn_flow_resume(struct conn *c, const struct conn_flow *f);
void conn_flow_record_close(struct sandbox *s, const struct conn_flow *f,
			    enum reason why);

#endif /* PROXY_CONN_OWN_H */
