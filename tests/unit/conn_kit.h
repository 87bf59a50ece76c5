/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_kit.h - a sandbox to connect from, an Internet to connect to
 *
 * Rules, name map, dialling, relaying and the HTTP engine are the real ones and
 * so is TCP (in a lab).  The resolver answers from a table, and records are
 * kept in memory, where a test can look at them.
 */
#ifndef TESTS_UNIT_CONN_KIT_H
#define TESTS_UNIT_CONN_KIT_H

#include <stdbool.h>
#include <stddef.h>

#include "audit/record.h"
#include "proxy/conn.h"
#include "proxy/sandbox.h"
#include "proxy/worker.h"

/* What the table of names says, for all tests:
 *	api.example.org		203.0.113.10
 *	both.example.org	2001:db8:3::10 203.0.113.10
 *	ssh.example.org		203.0.113.10
 *	web.example.org		203.0.113.10
 *	dead.example.org	203.0.113.20	(where nobody listens)
 *	hole.example.org	203.0.113.11
 *	inside.example.org	10.0.0.5
 *	gone.example.org	NXDOMAIN
 * any other name fails the test: it must not be looked up. */

#define KIT_ORIGIN	"203.0.113.10"
/* An address that a program may know without having asked for a name. */
#define KIT_OTHER	"203.0.113.66"
#define KIT_LITERAL	"203.0.113.40"
/* Where a test may let a listener's queue run full. */
#define KIT_HOLE	"203.0.113.11"

struct kit {
	struct worker worker;
	struct sandbox sandbox;
	bool audit_down;
	bool keep;		/* worker_keep() was called */
	enum reason charge;	/* what the budget says of names that leave */
};

extern struct kit kit;
#define BASE	(kit.worker.base)

int kit_setup(void **state);
int kit_teardown(void **state);		/* nothing may be left over */

/* Connections to origins wait for a request for one millisecond, unless a test
 * says otherwise (kit.sandbox.pool_ms). */

/* Another policy from now on, for what is open too.  The one at the start is
 * kit_policy. */
extern const char kit_policy[];
struct conn_rejudged kit_set_policy(const char *policy);

/* A program's connection through the transparent door to @addr, and through
 * the proxy's port; both are the client's end, non-blocking. */
int kit_transparent(const char *addr, uint16_t port);
int kit_explicit(void);
/* The synthetic address that the sandbox's DNS gave for @name. */
const char *kit_synthetic(const char *name);

/* A ClientHello with @name as its SNI (NULL: none). */
struct str kit_hello(const char *name);

/* Record @i, waiting for it; its strings are good until the next setup. */
const struct record *kit_record(size_t i);
size_t kit_records(void);
void kit_expect_record(size_t i, enum record_event event, enum record_act act,
		       enum reason reason, const char *host);

/* What every conversation needs. */
bool kit_was_dialled(int listener);
/* Turn the loop until @listener has somebody. */
int kit_accept_turning(int listener);
void kit_expect_bytes(int fd, struct str want);
int kit_connect_to(const char *authority);
bool kit_same_id(size_t a, size_t b);
/* Read up to the end of a head, in which @want must stand. */
void kit_expect_head(int fd, const char *want);
void kit_request(int fd, const char *target, const char *host);

#endif /* TESTS_UNIT_CONN_KIT_H */
