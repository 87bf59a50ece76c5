/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_budget.h - what one run may tell the world by the names that it asks for
 *
 * Pure: time is the caller's.  Making one, giving it another policy and reading
 * its count are in resolver.h.
 */
#ifndef RESOLVER_DNS_BUDGET_H
#define RESOLVER_DNS_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/reason.h"
#include "base/str.h"
#include "resolver/resolver.h"

/* Where the policy does not say; penstock.ini(5) has these numbers. */
#define DNS_BUDGET_QUERIES	RESOLVER_QUERIES	/* a second, ... */
#define DNS_BUDGET_BURST	RESOLVER_QUERIES_BURST	/* ... and at once */
#define DNS_BUDGET_NAMES	1000
#define DNS_BUDGET_LABEL_BYTES	16384
#define DNS_BUDGET_NXDOMAIN	250
/* Labels that a name may have below the wildcard that lets it through. */
#define DNS_BUDGET_DEPTH	8
/* Names that are remembered, whatever the policy says: 2 MiB of a run. */
#define DNS_BUDGET_NAMES_MAX	131072

struct dns_budget_ask {
	struct str name;	/* canonical, and let through */
	unsigned chosen;	/* as rules_name_chosen() has it */
	bool leaves;		/* neither the cache nor a flight has it */
};

/**
 * dns_budget_charge() - May this be asked, and if so, count it
 *
 * What is refused is not charged, but counted for dns_budget_refused().
 * Return: ALLOWED, or why not: QUERIES_, NAMES_, LABEL_BYTES_,
 * NXDOMAIN_EXCEEDED, NAME_TOO_DEEP, MEMORY_EXCEEDED.  ALLOWED always under a
 * policy that observes.
 */
enum reason dns_budget_charge(struct dns_budget *b,
			      const struct dns_budget_ask *ask, int64_t now_ms);

/* The same with what the policy and the clock say now; NULL: all is free. */
enum reason dns_budget_ask(struct dns_budget *b, struct str name, bool leaves);

/*
 * May a name that the cache knows be asked for anew before it runs out?  It
 * leaves like any other, and is charged so; a no is not the run's fault.
 */
bool dns_budget_renew(struct dns_budget *b, struct str name);

/* The run is told that @name does not exist; NULL is fine. */
void dns_budget_on_nxdomain(struct dns_budget *b, struct str name);

#endif /* RESOLVER_DNS_BUDGET_H */
