/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_kit.h - a resolver in a network of the test's own, and lookups
 *
 * What files of tests of one resolver share.  An answer comes from the loop,
 * which the test turns until it is there.
 */
#ifndef TESTS_UNIT_RESOLVER_KIT_H
#define TESTS_UNIT_RESOLVER_KIT_H

#include "resolver/resolver_priv.h"
#include "tests/unit/dns_lab.h"

#define PORT		5300
#define ATTEMPT_MS	60	/* short, so that tests of silence are */
#define UNTIL_MS	(8 * ATTEMPT_MS)

struct CMUnitTest;

extern struct event_base *base;
extern struct resolver *resolver;
extern struct fake *first, *second, *third;
extern const struct resolver_asker anyone;	/* has no budget */

struct result {
	bool done;
	unsigned calls;
	enum reason reason;
	struct ip_addr addr[RESOLVER_ADDRS_MAX];
	size_t n;
	uint32_t ttl_s;
	struct resolver_lookup *cancel;		/* from inside the call-back */
};

void on_answer(void *arg, const struct resolver_answer *a);
struct resolver_lookup *start(struct result *r, uint64_t tenant,
			      const char *name, enum resolver_type type);
void turn_until(const bool *flag);
/* Start, and turn until it is there. */
void lookup(struct result *r, const char *name, enum resolver_type type);

/* Servers at PORT of these addresses. */
void use(const char *const *server, size_t n);
/* One server, @first, on 127.0.0.1. */
void use_one(fake_fn *fn, void *arg);

/* 203.0.113.7 for 120 s, or 2001:db8:3::7 for 240 s. */
#define HONEST_V4	0xcb007107u
void honest(void *arg, const struct fake_ask *ask);
void silent(void *arg, const struct fake_ask *ask);
void with_rcode(void *arg, const struct fake_ask *ask);	/* *@arg, unsigned */

/* Another resolver, with these times. */
void renew(int attempt_ms, int attempts_until_ms);
int setup(void **state);
int teardown(void **state);
#define T(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

/* In namespaces of its own; skipped where there are none. */
int run_in_lab(const struct CMUnitTest *tests, size_t n);

#endif /* TESTS_UNIT_RESOLVER_KIT_H */
