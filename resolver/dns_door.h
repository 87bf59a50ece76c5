/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door.h - one sandbox's door, as the files of this folder see it
 *
 *	dns_udp.c, dns_tcp.c	bytes in, bytes out
 *	dns_query.c		what becomes of one question
 *	dns_query_record.c	the records, and those that repeat others
 *	dns_local.c		what is answered without asking anybody
 *	dns_door.c		birth and end of the whole
 */
#ifndef RESOLVER_DNS_DOOR_H
#define RESOLVER_DNS_DOOR_H

#include <event2/event_struct.h>

#include "base/list.h"
#include "resolver/dns_msg.h"
#include "resolver/resolver.h"
#include "resolver/resolver_priv.h"
#include "rules/host_name.h"

/* Bounds of one sandbox. */
#define DNS_QUERIES_MAX		256	/* questions that wait for the world */
#define DNS_CONNS_MAX		64	/* TCP connections */
#define DNS_TCP_IDLE_MS		10000
#define DNS_QUERY_MEMORY	8192	/* of one that waits, with its lookup */
#define DNS_TCP_OUT_MAX		(1u << 20)	/* bytes that TCP clients do not take */

/* Constant, so that a life says nothing of who asked before. */
#define DNS_DOOR_TTL_S		60
#define DNS_DOOR_NEGATIVE_TTL_S	5

#define DNS_DOOR_MAGIC		0x646f6f72u

struct dns_conn;

/* Something that is ready to be read, and waits for its turn. */
struct dns_due {
	struct list node;		/* door->dues */
	void (*fn)(struct dns_due *due);	/* it may free what it is in */
};

/* What accepting a connection takes, in questions. */
#define DNS_COST_ACCEPT		8

struct dns_udp {
	struct dns_door *door;
	struct dns_due due;
	struct event ev;
	int fd;
};

struct dns_tcp {
	struct dns_door *door;
	struct dns_due due;
	struct event ev, retry;
	int fd;
};

struct dns_door {
	unsigned magic;
	struct event_base *base;
	struct resolver *resolver;
	struct ruleset *rules;
	struct name_map *names;
	struct name_pins *pins;
	struct ip_addr given[RESOLVER_ADDRS_MAX];	/* while it answers */
	struct audit_sink *sink;
	const struct ip_hosts *const *hosts;
	struct resolver_asker asker;
	struct mem_account *owner;	/* or NULL */
	bool (*elsewhere)(void *arg, const struct ruleset *rules,
			  struct str name);
	void *elsewhere_arg;
	struct dns_name hostname;	/* .n 0: none */
	struct host_name self_test;	/* the nonce's whole name; .n 0: none */
	bool real;			/* answers, where the policy does not say */
	bool frozen;			/* nothing new is heard */
	const struct ip_nets *clients;	/* NULL: all */
	dns_stranger_fn *on_stranger;
	dns_share_fn *share;		/* NULL: no bound */
	void *arg;
	void (*turn_due)(void *arg);	/* NULL: its turn is always */
	bool (*spend)(void *arg, unsigned questions);
	struct list dues;		/* struct dns_due.node: first come */
	struct dns_udp *udp;
	struct dns_tcp *tcp;
	size_t nudp, ntcp;		/* that are open */
	int tcp_idle_ms;		/* a connection without work is closed */
	struct list conns;		/* struct dns_conn.node */
	unsigned nconns;
	size_t tcp_out;			/* bytes that wait for their clients */
	struct list queries;		/* struct dns_query.node, those that wait */
	unsigned nqueries;
	struct dns_batch *batch;	/* while a UDP wake-up collects replies */
	unsigned batch_udp;		/* whose */
	struct dns_repeats *repeats;	/* questions that come again */
	struct event repeats_ev;
	bool repeats_watched;		/* the timer runs */
	struct buf sifted;		/* what is left of records, until the reply */
};

/* Who asked, and how the reply gets there. */
struct dns_client {
	bool tcp;
	struct ip_endpoint src;
	struct ip_addr asked;		/* the server's address, as the client sees it */
	unsigned udp;			/* index of the socket */
	struct dns_datagram gram;	/* UDP: peer, and the address to send from */
	struct dns_conn *conn;		/* TCP; NULL once it is gone */
	struct list conn_node;		/* on conn->queries */
};

/* dns_door.c: may @src ask?  If not, it was told of. */
bool dns_door_admits(const struct dns_door *d, const struct ip_endpoint *src,
		     int fd, bool tcp);
/* Is it more than the client's share?  Then it is answered or dropped. */
bool dns_door_turns_down(struct dns_door *d, const uint8_t *msg, size_t n,
			 struct dns_client *c);
/* @due is ready: done now, or in the sandbox's turn; once, however often it is
 * said. */
void dns_door_due(struct dns_door *d, struct dns_due *due);
/* Questions were answered; false: enough for this turn. */
static inline bool dns_door_spend(struct dns_door *d, unsigned questions)
{
	return !d->frozen && (!d->spend || d->spend(d->arg, questions));
}
/* Real addresses, or stand-ins? */
bool dns_door_is_real(const struct dns_door *d);

/* dns_query_record.c */
NODISCARD int dns_door_open_repeats(struct dns_door *d);
void dns_door_shut_repeats(struct dns_door *d);	/* half built is fine */

/* dns_udp.c */
/* The next of the door's; @fd is taken on success. */
NODISCARD int dns_udp_open(struct dns_door *d, int fd);
void dns_udp_close(struct dns_udp *u);
void dns_udp_reply(struct dns_door *d, const struct dns_client *c,
		   const uint8_t *p, size_t n);

/* Whether it is heard at all: as the door is frozen, or not. */
NODISCARD int dns_udp_watch(struct dns_udp *u);

/* dns_tcp.c */
NODISCARD int dns_tcp_watch(struct dns_tcp *t);
void dns_conn_watch_all(struct dns_door *d);
/* End those of which a question is dropped. */
void dns_conn_end_waiting(struct dns_door *d);
NODISCARD int dns_tcp_open(struct dns_door *d, int fd);
void dns_tcp_close(struct dns_tcp *t);
/* The question stays; its node leaves the connection's list when it ends. */
void dns_conn_wait(struct dns_conn *c, struct list *conn_node);
void dns_conn_reply(struct dns_conn *c, struct list *conn_node,
		    const uint8_t *p, size_t n);
void dns_conn_end_all(struct dns_door *d);

#endif /* RESOLVER_DNS_DOOR_H */
