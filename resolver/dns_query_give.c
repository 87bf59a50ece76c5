/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query_give.c - which addresses a name is answered with
 *
 * What the world says is filtered by the class of each address and by what
 * rules say of the name there.  If one is left, the answer is
 *
 *	synthetic	the name's own stand-in address, of the name map
 *	real		all that are left, pinned under the name that was asked
 *
 * and where the name is for a parent proxy to look up, its stand-in address
 * without any question: what is not known cannot be given.  Otherwise it is
 * as [dns] answers has it; where it says nothing, a door in a sealed sandbox is
 * synthetic, one on an address of the host real.  Either is remembered before
 * the reply leaves, so that a program that connects at once is known (DNS-32),
 * and both go on to be understood when a new policy has it the other way.
 */
#include "resolver/dns_query_own.h"

#include <errno.h>

#include "base/clock.h"
#include "resolver/name_map.h"
#include "resolver/name_pins.h"

static bool addr_passes(const struct dns_query *q, const struct ip_addr *addr,
			enum reason *ret_why)
{
	const struct rules_question question = {
		.host = host_name_str(&q->host), .addr = addr,
		.hosts = *q->door->hosts,
		.now = clock_wall_s(),
	};
	struct rules_answer verdict;

	/* Ours are not the world's to give. */
	if (name_map_is_synthetic(addr)) {
		*ret_why = REASON_ADDRESS_RESERVED;
		return false;
	}
	rules_judge_name_addr(q->door->rules, &question, &verdict);
	*ret_why = verdict.reason;
	return rules_passes(&verdict);
}

bool dns_query_any_passes(const struct dns_query *q,
			  const struct resolver_answer *a, enum reason *ret_why)
{
	enum reason why;

	for (size_t i = 0; i < a->n; i++) {
		if (addr_passes(q, &a->addr[i], &why))
			return true;
		if (i == 0)
			*ret_why = why;
	}
	return false;
}

static int give_synthetic(struct dns_query *q)
{
	enum ip_family family = q->q.type == DNS_TYPE_A ? IP_V4 : IP_V6;

	return name_map_give(q->door->names, host_name_str(&q->host), family,
			     &q->id, &q->result.addr);
}

/* Under the id of @q, for as long as the answer is good at the least. */
static int pin_given(struct dns_query *q, size_t n, uint32_t ttl_s)
{
	const struct name_pins_answer answer = {
		.name = host_name_str(&q->host), .addr = q->door->given, .n = n,
		.ttl_s = MAX(ttl_s, DNS_DOOR_TTL_S), .question = &q->id,
	};

	return name_pins_give(q->door->pins, &answer, clock_mono_ms());
}

static int give_real(struct dns_query *q, const struct resolver_answer *a)
{
	struct dns_door *d = q->door;
	enum reason why;
	size_t n = 0;
	int err;

	for (size_t i = 0; i < a->n; i++) {
		if (addr_passes(q, &a->addr[i], &why))
			d->given[n++] = a->addr[i];
	}
	err = pin_given(q, n, a->ttl_s);
	if (err)
		return err;
	q->result.given = d->given;
	q->result.ngiven = n;
	return 0;
}

bool dns_query_may_hint(const struct dns_query *q, const struct ip_addr *addr)
{
	enum reason why;

	return dns_door_is_real(q->door) &&
	       (addr->family == IP_V4 ||
		rules_has_ipv6(q->door->rules, *q->door->hosts)) &&
	       addr_passes(q, addr, &why);
}

int dns_query_pin_hints(struct dns_query *q, size_t n, uint32_t ttl_s)
{
	return n > 0 ? pin_given(q, n, ttl_s) : 0;
}

void dns_query_deny_given(struct dns_query *q, int err)
{
	if (err == -ENOMEM)
		dns_query_deny(q, DNS_SERVFAIL, REASON_MEMORY_EXCEEDED);
	else
		dns_query_deny(q, DNS_REFUSED, REASON_NAMES_EXCEEDED);
}

void dns_query_give(struct dns_query *q, const struct resolver_answer *a)
{
	int err;

	if (dns_door_is_real(q->door))
		err = give_real(q, a);
	else
		err = give_synthetic(q);
	if (err)
		dns_query_deny_given(q, err);
	else
		dns_query_allow(q, REASON_ALLOWED);
}

/* Clients elsewhere have no way to an address of a sandbox: a name like this is
 * for them to ask a proxy of ours for. */
void dns_query_give_stand_in(struct dns_query *q)
{
	int err = q->door->clients ? 0 : give_synthetic(q);

	if (q->door->clients)
		dns_query_allow(q, REASON_DNS_NO_ADDRESS);
	else if (err)
		dns_query_deny_given(q, err);
	else
		dns_query_allow(q, REASON_ALLOWED);
}

/* What is there needs no room: neither of the two can fail. */
void dns_query_stamp(struct dns_query *q)
{
	struct ip_addr same;

	if (q->result.ngiven > 0)
		REQUIRE(pin_given(q, q->result.ngiven, DNS_DOOR_TTL_S) == 0);
	else if (name_map_is_synthetic(&q->result.addr))
		REQUIRE(name_map_give(q->door->names, host_name_str(&q->host),
				      (enum ip_family)q->result.addr.family,
				      &q->id, &same) == 0);
}
