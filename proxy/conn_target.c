/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_target.c - which name or address is meant, and is it permitted?
 *
 * A synthetic address is a name in disguise: the mapping back comes first on
 * every way in, before address classes.  One that was never given out means
 * nothing, and is refused.  What a real address may stand for: conn_names.c.
 */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "proxy/conn_names.h"
#include "proxy/conn_own.h"
#include "proxy/worker.h"
#include "resolver/name_map.h"
#include "resolver/name_pins.h"

void conn_target_name(struct conn_target *t, struct str name)
{
	REQUIRE(name.n <= HOST_NAME_MAX_LEN);
	t->name.n = (uint8_t)name.n;
	memcpy(t->name.p, name.p, name.n);
	t->name.p[name.n] = '\0';
}

static size_t target_size(const struct conn_target *t)
{
	return (size_t)(t->name.p + t->name.n + 1 - (const char *)t);
}

void conn_target_copy(struct conn_target *to, const struct conn_target *from)
{
	memcpy(to, from, target_size(from));
}

struct conn_target *conn_target_dup(const struct conn_target *t)
{
	struct conn_target *copy = mem_grow(NULL, target_size(t), 1);

	if (copy)
		conn_target_copy(copy, t);
	return copy;
}

/* The last question for a name, whichever way it was answered: ids are in the
 * order of time. */
static void target_question(const struct sandbox *s, struct str name,
			    struct id *ret)
{
	struct id pinned;

	(void)name_map_question(s->names, name, ret);
	if (name_pins_question(s->pins, name, &pinned) &&
	    memcmp(&pinned, ret, sizeof(pinned)) > 0)
		*ret = pinned;
}

enum reason conn_target_set(const struct sandbox *s,
			    const struct host_name *name,
			    const struct ip_addr *addr, uint16_t port,
			    struct conn_target *ret, struct id *ret_dns)
{
	struct ip_addr bare;
	struct str found;

	*ret = (struct conn_target){ .port = port };
	*ret_dns = (struct id){ { 0 } };
	if (name && name->n) {
		ret->name = *name;
		target_question(s, host_name_str(name), ret_dns);
		return REASON_ALLOWED;
	}
	bare = ip_addr_unmapped(addr);
	if (!name_map_is_synthetic(&bare)) {
		ret->addr = bare;
		return REASON_ALLOWED;
	}
	if (!name_map_find(s->names, &bare, &found, ret_dns)) {
		ret->addr = bare;
		return REASON_ADDRESS_NOT_ALLOWED;
	}
	conn_target_name(ret, found);
	return REASON_ALLOWED;
}

struct rules_question conn_target_question(const struct conn *c,
					   const struct conn_target *t)
{
	return (struct rules_question){
		.host = host_name_str(&t->name),
		.addr = t->name.n ? NULL : &t->addr,
		.port = t->port,
		.hosts = c->s->worker->hosts,
		.now = clock_wall_s(),
	};
}

void conn_target_judge(const struct conn *c, const struct conn_target *t,
		       struct rules_answer *ret)
{
	const struct rules_question q = conn_target_question(c, t);

	rules_judge(c->rules, &q, ret);
}

enum reason conn_judge_tunnel(struct conn *c, enum reason meant)
{
	if (c->admission != REASON_ALLOWED)
		return c->admission;
	if (meant == REASON_ALLOWED)
		meant = conn_names_connect(c);
	if (meant != REASON_ALLOWED)
		return meant;
	conn_target_judge(c, c->target, &c->answer);
	return rules_passes(&c->answer) ? REASON_ALLOWED : c->answer.reason;
}

bool conn_target_eq(const struct conn_target *a, const struct conn_target *b)
{
	return a->port == b->port &&
	       str_eq(host_name_str(&a->name), host_name_str(&b->name)) &&
	       ip_addr_eq(&a->addr, &b->addr);
}

const struct rules_protocol *conn_protocol(const struct conn *c,
					   const struct rules_answer *answer)
{
	if (answer->protocol)
		return answer->protocol;
	return rules_protocol_by_port(c->target->port);
}
