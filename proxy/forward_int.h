/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_int.h - what the files of the HTTP engine share
 *
 * forward.c has the states and the events; forward_half.c a stream with its
 * buffers; forward_net.c the one to the origin; forward_admit.c the judgement of
 * a request; forward_exchange.c its refusal, its answer and its record;
 * forward_final.c what is answered here.
 */
#ifndef PROXY_FORWARD_INT_H
#define PROXY_FORWARD_INT_H

#include <event2/event.h>

#include "base/buf.h"
#include "proxy/forward.h"
#include "proxy/http1.h"
#include "proxy/rewrite.h"
#include "proxy/sched.h"
#include "proxy/sock_still.h"
#include "proxy/stream.h"
#include "proxy/websocket.h"

struct quota_flow;

#define FORWARD_MAGIC		0x46574844u	/* "FWHD" */
/* Bytes that wait for a peer: what is pumped stops at FORWARD_BUF, a whole
 * rewritten head still fits behind that, and behind a 101 what the other side
 * said already. */
#define FORWARD_OUT_MAX \
	(2 * FORWARD_BUF + HTTP1_HEAD_MAX + REWRITE_EXTRA_MAX)
/* An authority as a Host field says it: "[...]:65535" or a name. */
#define FORWARD_HOST_SIZE	(HOST_NAME_MAX_LEN + 9)

enum forward_state {
	FORWARD_HEAD,		/* a request head is awaited */
	FORWARD_DIAL,		/* its destination is being dialled */
	FORWARD_EXCHANGE,	/* it is with the origin */
	FORWARD_DRAIN,		/* answered by us: its body is thrown away */
	FORWARD_FLUSH,		/* the last bytes go to app */
	FORWARD_LINGER,		/* app was told that no more comes */
	FORWARD_TUNNEL,		/* handed over */
	FORWARD_ENDED,

	FORWARD_STATES
};

/* What its sockets are ready for. */
enum forward_due { FORWARD_APP_READ = 1, FORWARD_NET_READ = 2 };

/* How a half is read: not, as it comes, or with a limit on its silence. */
enum forward_reading { READ_OFF, READ_ON, READ_IDLE };

/* One stream with its buffers; app and net are twins. */
struct forward_half {
	struct stream io;	/* app: borrowed; net: ours, or none */
	struct event *rd, *wr;	/* of its descriptor */
	uint8_t reading;	/* enum forward_reading: how @rd is armed */
	bool writing;		/* @wr is armed */
	bool shutting;		/* it could not be told yet that no more comes */
	bool eof;		/* nothing more comes from it */
	bool broken;		/* by a reset or another error, not a FIN */
	bool deaf;		/* it takes nothing more */
	bool held_in, held_out;	/* until the rate has room again */
	bool lean;		/* not read until there is memory */
	enum reason over;	/* a budget that is used up; ALLOWED: none */
	struct quota_flow *account;	/* net: of the flow; app: NULL */
	size_t seen;		/* bytes of @in that a head parser has seen */
	struct buf in, out;
	uint64_t bytes_in, bytes_out;
};

/* One request and what became of it. */
struct forward_exchange {
	bool open;		/* its record is still to be posted */
	bool framed;		/* where it ends is known */
	bool keep_alive;	/* the client wants to go on */
	bool goes_on;		/* it was told that it may */
	bool expect;
	bool websocket;
	bool final;		/* it goes no further: the answer is ours */
	bool hostless;		/* it asks about the proxy, and has no target */
	bool last;		/* no other request goes to net behind it */
	bool binds;		/* net is its client's own from here on */
	bool answered;		/* the final head went to app */
	bool replayable;	/* may be sent twice (RFC 9110 9.2.2) */
	bool replayed;		/* and was */
	bool would_deny;
	bool down_over;		/* the answer ended with the connection */
	uint8_t minor;
	unsigned interim, status;
	enum reason observed;	/* what observe mode let through */
	struct forward_target target;
	struct http1_body up, down;
	enum http1_framing as_up, as_down;
	uint64_t bytes_up, bytes_down;
	int64_t started_ms;
	size_t method_n, path_n, http_host_n;
	char method[HTTP1_METHOD_MAX];
	char path[FORWARD_PATH_MAX];
	char http_host[FORWARD_HOST_SIZE];	/* Host, when it disagreed */
	char host[FORWARD_HOST_SIZE];		/* target's, for words */
	char accept[WEBSOCKET_ACCEPT_SIZE];	/* that a 101 must say */
	char rule[64];
};

struct forward {
	uint32_t magic;
	enum forward_state state;
	enum forward_mode mode;
	struct forward_target pinned;
	const char *policy, *run;
	struct forward_limits limits;
	const struct forward_ops *ops;
	void *arg;
	struct event_base *base;
	struct event *timer, *kick, *hold;
	struct quota_flow *account;
	struct mem_account *memory;
	struct sock_still still_up, still_down;	/* app to net, net to app */
	struct sched_queue *turn;
	struct sched_work work;		/* what @due says, in its turn */
	unsigned due;			/* bits of enum forward_due */
	uint64_t moved;			/* by both halves, when it was looked at, */
	int64_t moved_ms;		/* and when that changed */
	int64_t net_began_ms;

	struct forward_half app, net;
	struct forward_target net_target;
	bool net_absolute;	/* a parent proxy, as of forward_set_parent() */
	struct str net_basic;
	bool net_keep;		/* the origin lets the connection go on */
	bool net_reused;	/* this exchange is not its first */
	bool net_whole;		/* no exchange is on it */
	bool net_bound;		/* it may answer to one client: nobody else's */
	bool outlives;		/* the owner may have use for it */

	bool dial_over;		/* result below; none, with a reason */
	struct stream dial_net;
	bool dial_found;	/* it was used before */
	enum reason dial_why;

	unsigned served;	/* requests answered or refused */
	bool head_begun;	/* the head's deadline runs */
	uint64_t discarded;	/* in DRAIN and LINGER */
	enum reason end_why;
	bool end_reset;
	struct buf request;	/* rewritten head, until the answer begins */
	struct http1_head head;	/* scratch; borrows from an in buffer */
	struct forward_exchange x;
};

/* --- forward.c ---------------------------------------------------------------- */

void forward_set_state(struct forward *f, enum forward_state to);
/* The connection is over at once. */
void forward_end(struct forward *f, enum reason why, bool reset);
/* Send what is left to app, then close. */
void forward_close_after_flush(struct forward *f, enum reason why, bool reset);
/* The exchange is over and the connection goes on. */
void forward_next(struct forward *f);

/* --- forward_half.c ----------------------------------------------------------- */

void forward_half_init(struct forward_half *h, struct stream io,
		       struct mem_account *memory);
void forward_half_done(struct forward_half *h);	/* the stream stays */
NODISCARD int forward_half_watch(struct forward_half *h,
				 struct event_base *base, event_callback_fn rd,
				 event_callback_fn wr, void *arg);
/* That event rests, until it is armed anew behind the work that it made due. */
void forward_half_rest(struct forward_half *h, bool reading);
/* No event comes any more. */
void forward_half_disarm(struct forward_half *h);
/* Watch for what is wanted of @h; false: it cannot be, and counts as lost. */
NODISCARD bool forward_half_arm(struct forward_half *h,
				enum forward_reading reading,
				unsigned idle_ms);
/* One read; what it brought is in @h->in, @h->eof and @h->broken. */
void forward_half_fill(struct forward_half *h);
/* Bytes of @h->in that are done with. */
void forward_half_consume(struct forward_half *h, size_t n);
/* Send what can be sent; true: some was. */
bool forward_half_flush(struct forward_half *h);
/* Has it said nothing that was not read yet, and not ended? */
bool forward_half_silent(struct forward_half *h);
/* What is ready was ready for writing: what is it good for? */
unsigned forward_half_due(const struct forward_half *h, enum forward_due read);
/* Say that no more comes: 0; -EAGAIN: not yet; or there is nobody to hear it. */
NODISCARD int forward_half_shut(struct forward_half *h);
/* Between requests nothing is held but what the client already sent. */
void forward_half_trim(struct forward_half *h);

/* --- forward_net.c ------------------------------------------------------------ */

void forward_dial(struct forward *f);
/* The socket that was dialled becomes the net half. */
void forward_net_take(struct forward *f);
/* A kept connection that speaks or ends unasked is of no use any more. */
void forward_net_check(struct forward *f);
/* Close the net half, if there is one, and tell the owner. */
void forward_net_close(struct forward *f, enum reason why);
/* The client has no more use for it: left to the owner if it is whole. */
void forward_net_leave(struct forward *f, enum reason why);

/* --- forward_limits.c --------------------------------------------------------- */

/* With the defaults of what they do not say. */
void forward_limits_take(struct forward *f, const struct forward_limits *l);
/* Something is held: let it go in time. */
void forward_hold(struct forward *f);
void forward_let_go(struct forward *f);
/* A budget of net's is used up: refuse or break off; true: so it was. */
bool forward_over_step(struct forward *f);
/* An exchange begins, or its limits are others: watch its silence. */
void forward_watch(struct forward *f);
/* The client has said its last, and its answer is still to come. */
void forward_watch_end(struct forward *f);
void forward_on_watch(struct forward *f);
/* Is there a connection to an origin that has had its flow_ms? */
bool forward_net_is_old(const struct forward *f);
/* How long it may wait for the next request, of a connection that is open. */
unsigned forward_net_idle_ms(const struct forward *f);
/* What app is to be told waits for it to read: watch that it does. */
void forward_watch_taken(struct forward *f);
/* At the timer: has it stopped?  If not, it is watched on. */
bool forward_is_not_taken(struct forward *f);

/* --- forward_admit.c ---------------------------------------------------------- */

/* The canonical authority of its target; its length, or -EINVAL. */
int forward_authority(const struct forward_exchange *x,
		      char out[FORWARD_HOST_SIZE]);
/* f->head is a request: judge it, then dial, exchange or refuse. */
void forward_admit(struct forward *f);
/* The target's name or address without port, for records and refusals. */
void forward_host_text(struct forward_exchange *x);

/* --- forward_exchange.c ------------------------------------------------------- */

/* What came is no request head. */
void forward_refuse_head(struct forward *f, enum reason why);
/* Refuse the request that was admitted; no answer has begun. */
void forward_refuse(struct forward *f, enum reason why, unsigned status);
/* It has its answer: read what is left of its body, then go on, or @close. */
void forward_drain(struct forward *f, enum reason why, bool close);
/* May the connection go on behind an answer of ours? */
bool forward_may_go_on(const struct forward_exchange *x);
/* Put the request on the wire of the net half. */
void forward_send(struct forward *f);
/* Move what can be moved of an exchange; true: something changed. */
bool forward_exchange_step(struct forward *f);
/* Its destination is not allowed any more: refuse it, or break it off. */
void forward_exchange_revoke(struct forward *f, enum reason why);
/* Nothing confirms that the request arrives: again by another connection, where
 * that does no harm, or 504. */
void forward_exchange_unheard(struct forward *f);
/* Post the record of the request in flight, if there is one. */
void forward_record(struct forward *f, enum record_act act, enum reason why);
/* It ended as it should. */
void forward_record_answered(struct forward *f);

/* --- forward_final.c ---------------------------------------------------------- */

/* Answer f->head, whose final recipient we are; ALLOWED, or why it cannot be. */
enum reason forward_final_answer(struct forward *f);
/* Behind that, when the head was taken off the input. */
void forward_final_over(struct forward *f);

#endif /* PROXY_FORWARD_INT_H */
