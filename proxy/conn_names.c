/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_names.c - the names that a real address may stand for
 *
 * Where names are answered with real addresses, an address that a program asks
 * for leads back to those that it was given for, its candidates, before its
 * class is looked at.  Which of them is meant:
 *
 *	one				that is the name, unless the first bytes
 *					say another
 *	several, and the first		the one that SNI or Host say; when it is
 *	bytes show a name		none of them, that name is judged and
 *					resolved by us
 *	several, and nothing shows	any, if the rules say the same of all, and
 *	a name				then the asked address alone is dialled,
 *					not what else that name has; else refused
 *	none				as it is: rules with addresses and no hosts
 *
 * An address that the rules permit as it is needs no name: candidates then only
 * name it, unless a deny rule speaks of one.
 *
 * A CONNECT is answered before the first bytes inside it are seen, so there the
 * asked address is dialled for a candidate that passes, and a name inside must
 * be one that passes at that address: no byte crosses before it is.
 *
 * What a policy does not allow any more stays a candidate as long as its pin
 * lasts.  It is judged whenever it would be used; to forget it would make an
 * address look as if it stood for less names than the program was told.
 */
#include "proxy/conn_names.h"

#include "base/clock.h"
#include "proxy/worker.h"
#include "resolver/name_pins.h"

static void target_become(struct conn_target *t, const struct name_pin *pin,
			  bool alone, struct id *ret_dns)
{
	t->wish = t->addr;
	t->addr = (struct ip_addr){ .family = IP_NONE };
	t->alone = alone;
	conn_target_name(t, name_pin_name(pin));
	*ret_dns = name_pin_question(pin);
}

static void ask(const struct conn *c, struct str host,
		const struct ip_addr *addr, uint16_t port,
		struct rules_answer *ret)
{
	const struct rules_question q = {
		.host = host, .addr = addr, .port = port,
		.hosts = c->s->worker->hosts, .now = clock_wall_s(),
	};

	rules_judge(c->rules, &q, ret);
}

static bool is_deny(const struct rules_answer *a)
{
	return a->reason == REASON_HOST_DENIED ||
	       a->reason == REASON_ADDRESS_DENIED;
}

static enum rules_speech speech_of(const struct rules_answer *a, uint16_t port)
{
	return a->protocol ? a->protocol->speech :
			     rules_protocol_by_port(port)->speech;
}

static void vote(const struct conn *c, const struct conn_target *t,
		 const struct name_pin *pin, struct conn_votes *v)
{
	struct rules_answer a;

	/* With others beside it, no other address of it will be dialled. */
	ask(c, name_pin_name(pin), v->n > 1 ? &t->addr : NULL, t->port, &a);
	v->denied |= is_deny(&a);
	if (rules_passes(&a)) {
		v->passed++;
		v->speeches |= BIT(speech_of(&a, t->port));
		if (v->pass)
			return;
		v->pass = pin;
		v->pass_answer = a;
	} else if (!v->fail || (is_deny(&a) && !is_deny(&v->fail_answer))) {
		v->fail = pin;
		v->fail_answer = a;
	}
}

static void vote_all(const struct conn *c, const struct conn_target *t,
		     const struct ip_addr *addr, struct conn_votes *ret)
{
	struct name_pin *pin[NAME_PINS_NAMES_MAX];
	size_t n = name_pins_at(c->s->pins, addr, clock_mono_ms(), pin);

	*ret = (struct conn_votes){ .n = (unsigned)n };
	for (size_t i = 0; i < n; i++)
		vote(c, t, pin[i], ret);
}

bool conn_names_vote(const struct conn *c, const struct conn_target *t,
		     struct conn_votes *ret)
{
	*ret = (struct conn_votes){ .n = 0 };
	if (t->name.n > 0)
		return false;
	vote_all(c, t, &t->addr, ret);
	if (ret->n > 0)
		ask(c, STR_NONE, &t->addr, t->port, &ret->literal);
	return ret->n > 0;
}

bool conn_votes_literal(const struct conn_votes *v)
{
	return v->literal.reason == REASON_ALLOWED && !v->denied;
}

/* What the rules say is the same of all. */
static bool is_unanimous(const struct conn_votes *v)
{
	return v->passed == 0 ||
	       (v->passed == v->n && (v->speeches & (v->speeches - 1)) == 0);
}

static enum reason settle(struct conn_target *t, const struct conn_votes *v,
			  struct id *ret_dns)
{
	if (v->passed < v->n && conn_votes_literal(v))
		return REASON_ALLOWED;
	if (v->n > 1 && !is_unanimous(v))
		return REASON_NAME_AMBIGUOUS;
	target_become(t, v->pass ? v->pass : v->fail, v->n > 1, ret_dns);
	return REASON_ALLOWED;
}

enum reason conn_names_settle(const struct conn *c, struct conn_target *t,
			      struct id *ret_dns)
{
	struct conn_votes v;

	return conn_names_vote(c, t, &v) ? settle(t, &v, ret_dns) :
					   REASON_ALLOWED;
}

enum reason conn_names_connect(struct conn *c)
{
	struct conn_votes v;

	if (!conn_names_vote(c, c->target, &v))
		return REASON_ALLOWED;
	if (v.n == 1 || (v.passed < v.n && conn_votes_literal(&v)) ||
	    (v.speeches != BIT(SPEECH_TLS) && v.speeches != BIT(SPEECH_HTTP)))
		return settle(c->target, &v, &c->dns);
	target_become(c->target, v.pass, true, &c->dns);
	/* Then each request's Host picks. */
	c->by_first_bytes = v.speeches == BIT(SPEECH_HTTP);
	return REASON_ALLOWED;
}

enum reason conn_names_pick(struct conn *c, const struct host_name *name)
{
	const struct ip_addr asked = c->target->wish;
	struct rules_answer a;
	struct name_pin *pin;

	if (str_eq(host_name_str(name), host_name_str(&c->target->name))) {
		c->target->alone = false;
		return REASON_ALLOWED;
	}
	pin = name_pins_find(c->s->pins, &asked, host_name_str(name),
			     clock_mono_ms());
	if (!pin)
		return REASON_NAME_MISMATCH;
	ask(c, host_name_str(name), &asked, c->target->port, &a);
	if (!rules_passes(&a))
		return a.reason;
	if (speech_of(&a, c->target->port) == SPEECH_HTTP)
		return REASON_PROTOCOL_MISMATCH;
	c->target->name = *name;
	c->target->alone = false;
	c->answer = a;
	(void)conn_names_hold(c, &asked);
	return REASON_ALLOWED;
}

bool conn_names_unanimous(const struct conn *c)
{
	struct conn_target t = { .addr = c->target->wish,
				 .port = c->target->port };
	struct conn_votes v;

	vote_all(c, &t, &t.addr, &v);
	return v.n < 2 || is_unanimous(&v);
}

bool conn_names_literal_passes(const struct conn *c)
{
	struct rules_answer a;

	if (c->target->wish.family == IP_NONE)
		return false;
	ask(c, STR_NONE, &c->target->wish, c->target->port, &a);
	return a.reason == REASON_ALLOWED;
}

bool conn_names_hold(struct conn *c, const struct ip_addr *asked)
{
	int64_t now = clock_mono_ms();

	conn_names_release(c);
	if (c->target->name.n == 0 || asked->family == IP_NONE)
		return false;
	c->pin = name_pins_find(c->s->pins, asked,
				host_name_str(&c->target->name), now);
	if (!c->pin)
		return false;
	name_pin_hold(c->s->pins, c->pin, now);
	c->dns = name_pin_question(c->pin);
	return true;
}

void conn_names_release(struct conn *c)
{
	if (c->pin)
		name_pin_release(c->s->pins, c->pin, clock_mono_ms());
	c->pin = NULL;
}
