/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_cuts.h - the ports and addresses at which a verdict can change
 *
 * Two rulesets judge all flows of a host alike between one cut and the next:
 * where a span of ports or a range of addresses begins or ends in a rule that
 * speaks of the host, in a deny that speaks of addresses alone, or where a
 * class of addresses does.  One point between two cuts stands for all.
 */
#ifndef RULES_RULES_CUTS_H
#define RULES_RULES_CUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"

struct rule;
struct ruleset;

struct cuts {
	/* Of the host at hand: each begins a span, sorted. */
	uint32_t *port;
	size_t n_ports;
	struct ip_addr *addr;		/* none where no rule has addresses */
	size_t n_addrs;
	bool nameless_deny;		/* there is a deny of addresses alone */
	/* Its own: what every host has, and room. */
	uint32_t *common_port;
	struct ip_addr *common_addr;
	size_t n_common_ports, n_common_addrs;
	size_t max_ports, max_addrs;
};

/* 0 or -ENOMEM, then with cuts_done() to follow as well. */
NODISCARD int cuts_init(struct cuts *c, const struct ruleset *const set[2]);
void cuts_done(struct cuts *c);
/* Of a host: begun, given each rule that speaks of it (some more than once, as
 * it may be), and made; @addrs: are they wanted? */
void cuts_start(struct cuts *c);
void cuts_add(struct cuts *c, const struct rule *r);
void cuts_make(struct cuts *c, bool addrs);
/* The last port, or address, of the span that begins there. */
uint16_t cuts_port_end(const struct cuts *c, size_t i);
struct ip_addr cuts_addr_end(const struct cuts *c, size_t i);

#endif /* RULES_RULES_CUTS_H */
