/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_cuts.c - the ports and addresses at which a verdict can change
 *
 * A host's cuts are those of its own rules and the ones that all hosts share:
 * with those of all rules, thousands of rules would be tried at thousands of
 * points each.
 */
#include "rules/rules_cuts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/ip_class.h"
#include "base/mem.h"
#include "rules/ruleset.h"

static int by_port(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int by_addr(const void *a, const void *b)
{
	return ip_addr_cmp(a, b);
}

/* Sorted, each once, and none that is no port. */
static void keep_ports(struct cuts *c)
{
	size_t kept = 0;

	qsort(c->port, c->n_ports, sizeof(*c->port), by_port);
	for (size_t i = 0; i < c->n_ports; i++) {
		if (c->port[i] <= UINT16_MAX && c->port[i] > 0 &&
		    (kept == 0 || c->port[kept - 1] != c->port[i]))
			c->port[kept++] = c->port[i];
	}
	c->n_ports = kept;
}

static void keep_addrs(struct cuts *c)
{
	size_t kept = 0;

	if (c->n_addrs == 0)
		return;
	qsort(c->addr, c->n_addrs, sizeof(*c->addr), by_addr);
	for (size_t i = 0; i < c->n_addrs; i++) {
		if (kept == 0 || !ip_addr_eq(&c->addr[kept - 1], &c->addr[i]))
			c->addr[kept++] = c->addr[i];
	}
	c->n_addrs = kept;
}

/* --- one rule, one network ------------------------------------------------ */

/* false: there is none in the family. */
static bool addr_next(struct ip_addr *a)
{
	for (size_t i = a->family == IP_V4 ? 4 : 16; i-- > 0; ) {
		if (++a->b[i] != 0)
			return true;
	}
	return false;
}

static void addr_before(struct ip_addr *a)
{
	for (size_t i = a->family == IP_V4 ? 4 : 16; i-- > 0; ) {
		if (a->b[i]-- != 0)
			return;
	}
}

static void cut_range(struct cuts *c, struct ip_addr lo, struct ip_addr hi)
{
	c->addr[c->n_addrs++] = lo;
	if (addr_next(&hi))
		c->addr[c->n_addrs++] = hi;
}

static void cut_net(struct cuts *c, const struct ip_net *net)
{
	struct ip_addr hi = net->addr;
	size_t bits = hi.family == IP_V4 ? 32 : 128;

	for (size_t i = net->bits; i < bits; i++)
		hi.b[i / 8] |= (uint8_t)(0x80 >> i % 8);
	cut_range(c, net->addr, hi);
}

void cuts_add(struct cuts *c, const struct rule *r)
{
	/* Met before: when each is kept once, there is room for one rule. */
	if (c->n_ports + 2 * r->n_ports > c->max_ports)
		keep_ports(c);
	for (size_t i = 0; i < r->n_ports; i++) {
		c->port[c->n_ports++] = r->port[i].lo;
		c->port[c->n_ports++] = r->port[i].hi + 1u;
	}
	if (c->n_addrs + 2 * r->n_ranges > c->max_addrs)
		keep_addrs(c);
	for (size_t i = 0; i < r->n_ranges; i++)
		cut_range(c, r->range[i].lo, r->range[i].hi);
}

/* --- of every host -------------------------------------------------------- */

static bool is_nameless_deny(const struct rule *r)
{
	return r->deny && !r->has_hosts && r->n_ranges > 0;
}

/* Twice what all rules have. */
static int make_room(struct cuts *c, const struct ruleset *const set[2])
{
	size_t ports = 1, ranges = 0, blocks = 0;
	struct ip_net net;

	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < set[s]->n_rules; i++) {
			ports += 2 * set[s]->rule[i].n_ports;
			ranges += 2 * set[s]->rule[i].n_ranges;
		}
	}
	c->max_ports = 2 * ports;
	c->port = mem_new_array(c->max_ports, sizeof(*c->port));
	if (!c->port)
		return -ENOMEM;
	/* Where all is open, so are literals. */
	if (ranges == 0 && set[0]->n_any == 0 && set[1]->n_any == 0)
		return 0;
	while (ip_class_block(blocks, &net))
		blocks++;
	c->max_addrs = 2 * (ranges + 2 * blocks);
	c->addr = mem_new_array(c->max_addrs, sizeof(*c->addr));
	return c->addr ? 0 : -ENOMEM;
}

static void cut_common(struct cuts *c, const struct ruleset *const set[2])
{
	struct ip_net net;

	c->port[c->n_ports++] = 1;
	for (size_t i = 0; c->addr && ip_class_block(i, &net); i++)
		cut_net(c, &net);
	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < set[s]->n_rules; i++) {
			if (!is_nameless_deny(&set[s]->rule[i]))
				continue;
			c->nameless_deny = true;
			cuts_add(c, &set[s]->rule[i]);
		}
	}
	keep_ports(c);
	keep_addrs(c);
}

int cuts_init(struct cuts *c, const struct ruleset *const set[2])
{
	*c = (struct cuts){ .n_ports = 0 };
	if (make_room(c, set) < 0)
		return -ENOMEM;
	cut_common(c, set);
	c->n_common_ports = c->n_ports;
	c->n_common_addrs = c->n_addrs;
	c->common_port = mem_new_array(c->n_ports, sizeof(*c->port));
	c->common_addr = mem_new_array(MAX(c->n_addrs, 1), sizeof(*c->addr));
	if (!c->common_port || !c->common_addr)
		return -ENOMEM;
	memcpy(c->common_port, c->port, c->n_ports * sizeof(*c->port));
	if (c->n_addrs > 0)
		memcpy(c->common_addr, c->addr,
		       c->n_addrs * sizeof(*c->addr));
	return 0;
}

void cuts_done(struct cuts *c)
{
	mem_free(c->port);
	mem_free(c->addr);
	mem_free(c->common_port);
	mem_free(c->common_addr);
}

void cuts_start(struct cuts *c)
{
	c->n_ports = c->n_common_ports;
	memcpy(c->port, c->common_port, c->n_ports * sizeof(*c->port));
	c->n_addrs = 0;
}

void cuts_make(struct cuts *c, bool addrs)
{
	keep_ports(c);
	if (!addrs) {
		c->n_addrs = 0;
		return;
	}
	keep_addrs(c);
	if (c->n_common_addrs > 0)
		memcpy(c->addr + c->n_addrs, c->common_addr,
		       c->n_common_addrs * sizeof(*c->addr));
	c->n_addrs += c->n_common_addrs;
	keep_addrs(c);
}

/* --- reading -------------------------------------------------------------- */

uint16_t cuts_port_end(const struct cuts *c, size_t i)
{
	return i + 1 < c->n_ports ? (uint16_t)(c->port[i + 1] - 1) :
	       UINT16_MAX;
}

struct ip_addr cuts_addr_end(const struct cuts *c, size_t i)
{
	struct ip_addr end = { .family = c->addr[i].family };

	if (i + 1 < c->n_addrs && c->addr[i + 1].family == end.family) {
		end = c->addr[i + 1];
		addr_before(&end);
	} else {
		memset(end.b, 0xff, end.family == IP_V4 ? 4 : 16);
	}
	return end;
}
