/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_table.h - what each client of a listener may have of it
 *
 * One table for a listener, used by all of its workers.  A client is an IPv4
 * address or an IPv6 /64, all of which one machine may have.  Theory in
 * client_table.c.  Time is the caller's, in microseconds.
 */
#ifndef PROXY_CLIENT_TABLE_H
#define PROXY_CLIENT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/reason.h"

struct client_table;
struct quota;
struct ruleset;

/* Refused connections that one client may have waiting for their answers;
 * who has more is reset when it connects. */
#define CLIENT_REFUSED_MAX	16
/* Clients that are told apart at once; those beyond share what one may have. */
#define CLIENT_TABLE_MAX	4096

/* What the section says for each client; 0: nothing. */
struct client_limits {
	uint32_t connections;
	uint32_t new_connections;	/* in a second */
	uint32_t queries;		/* in a second */
};

/* What all clients may have together, as the policy has it now. */
struct client_whole {
	unsigned used, max;		/* connections */
	uint32_t new_connections;	/* in a second; 0: any number */
	uint32_t queries;		/* in a second; 0: by the default */
};

/* As things stand. */
struct client_whole client_whole_of(const struct quota *quota,
				    const struct ruleset *rules);

/* A connection's entry in the table; zeroed: none. */
struct client_hold {
	uint16_t at;			/* its index and 1 */
	bool refused;			/* it is only there to be told so */
};

NODISCARD int client_table_new(const struct client_limits *limits,
			       struct client_table **ret);
void client_table_free(struct client_table *t);		/* NULL is fine */

/* May a connection from @src be heard, were it to be refused? */
bool client_table_admits(struct client_table *t, const struct ip_addr *src);

/**
 * client_table_enter() - One more connection from @src
 * @hold:	until client_table_leave(), also where it is refused
 * Return: ALLOWED, CLIENT_CONNECTIONS_EXCEEDED or CLIENT_RATE_EXCEEDED
 */
enum reason client_table_enter(struct client_table *t,
			       const struct ip_addr *src,
			       const struct client_whole *whole,
			       int64_t now_us, struct client_hold *hold);
/* It is refused for another reason. */
void client_table_refuse(struct client_table *t, struct client_hold *hold);
void client_table_leave(struct client_table *t, struct client_hold *hold);

enum client_answer {
	CLIENT_ANSWER,
	CLIENT_SLIP,		/* by UDP: "ask by TCP", which proves the address */
	CLIENT_REFUSE,		/* by TCP: no */
	CLIENT_SILENCE,
};

/* One more DNS question from @src. */
enum client_answer client_table_ask(struct client_table *t,
				    const struct ip_addr *src, bool tcp,
				    const struct client_whole *whole,
				    int64_t now_us);

#endif /* PROXY_CLIENT_TABLE_H */
