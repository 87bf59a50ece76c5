/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_rejudge.c - every connection judged again, by another policy
 *
 * A flow keeps what it was judged by: the name or literal, the port, the address
 * that was dialled, a server name beside a literal, what was demanded of its
 * first bytes.  So the same questions can be asked again of other rules.  Where
 * an address stands for several names and nothing shows which is meant, they are
 * asked of all of them.
 *
 *	HEAD, SOCKS		nothing was asked for yet
 *	HELLO			as at the beginning; what was read stays
 *	HELLO in a tunnel	cut, or on as the rule's protocol wants now
 *	DIAL			refused, or dialled on under the new rules
 *	HTTP			the connection to the origin is cut, the program's
 *				goes on: its next request hears of the new policy
 *	RELAY			cut with a reset
 *	LISTEN, REFUSE		they hear of the policy that refused them
 *
 * A flow that went through a parent proxy, or through none, goes on only where the
 * rules would have it go that way again.
 *
 * A tunnel whose first bytes nobody looked at cannot be known to be what a
 * rule demands that looks at them: it is not allowed by one.
 *
 * Connections to origins that wait for a request are judged like any other.
 *
 * An open flow ends with the reason that the caller gives; one that nobody has
 * been dialled for with that of the rules.
 */
#include "base/clock.h"
#include "base/fd.h"
#include "proxy/conn.h"
#include "proxy/conn_names.h"
#include "proxy/conn_own.h"
#include "proxy/dial.h"
#include "proxy/forward.h"
#include "proxy/parents.h"
#include "proxy/sock.h"
#include "proxy/worker.h"

/* What is known of the address, for the rules: dialled, or a literal. */
static const struct ip_addr *known_addr(const struct conn *c)
{
	if (c->dst.addr.family != IP_NONE)
		return &c->dst.addr;
	return c->target->name.n ? NULL : &c->target->addr;
}

static bool ask(const struct conn *c, struct str host,
		const struct ip_addr *addr, struct rules_answer *ret)
{
	const struct rules_question q = {
		.host = host,
		.addr = addr,
		.port = c->target->port,
		.hosts = c->s->worker->hosts,
		.now = clock_wall_s(),
		.unresolved = c->way.there && !addr,
	};

	rules_judge(c->rules, &q, ret);
	return rules_passes(ret);
}

/* Would a flow that is connected go through the same parent, or none, again? */
static bool way_passes(const struct conn *c, const struct ip_addr *addr)
{
	const struct parent *now;

	return c->dial ||
	       (parents_pick(c->s->worker->parents, c->answer.parent,
			     host_name_str(&c->target->name), addr, &now) == 0 &&
		now == c->way.parent);
}

/* The server name that was let through beside a literal. */
static bool sni_passes(const struct conn *c)
{
	struct rules_answer answer;
	struct host_name sni;

	if (c->target->name.n || c->sni_n == 0)
		return true;
	return host_name_parse(conn_sni(c), &sni) == 0 &&
	       ask(c, host_name_str(&sni), known_addr(c), &answer);
}

/* Is a flow whose first bytes were held to c->speech what @speech wants? */
static bool speech_passes(const struct conn *c, enum rules_speech speech)
{
	return speech == SPEECH_OPAQUE || speech == c->speech;
}

static enum rules_speech speech_now(const struct conn *c)
{
	return conn_protocol(c, &c->answer)->speech;
}

/* Will the first bytes still say which of an address' names is meant? */
static bool may_show_name(const struct conn *c)
{
	return conn_is_tunnel(c) && c->speech != SPEECH_OPAQUE &&
	       speech_now(c) != SPEECH_OPAQUE;
}

/**
 * judge_again() - Whatever is known of the flow, by the rules as they are now
 * @addr:	NULL: not dialled yet
 *
 * The answer is the flow's from now on, also for its record when it ends.
 */
static enum reason judge_again(struct conn *c, const struct ip_addr *addr)
{
	if (!ask(c, host_name_str(&c->target->name), addr, &c->answer))
		return c->answer.reason;
	if (c->target->alone && !may_show_name(c) && !conn_names_unanimous(c))
		return REASON_NAME_AMBIGUOUS;
	if (!way_passes(c, addr))
		return REASON_POLICY_RELOAD;
	return sni_passes(c) ? REASON_ALLOWED : REASON_NAME_MISMATCH;
}

/* --- each state ------------------------------------------------------------------ */

/* The client was told, the origin is connected, the first bytes are awaited. */
static void rejudge_established(struct conn *c, enum reason why)
{
	if (judge_again(c, known_addr(c)) != REASON_ALLOWED) {
		conn_refuse(c, why);
		return;
	}
	c->speech = speech_now(c);
	if (c->speech == SPEECH_OPAQUE)
		conn_start_relay(c, buf_str(&c->ask->in), STR_NONE);
	else if (c->speech == SPEECH_HTTP)
		conn_start_http(c);
}

/* A transparent flow was let in, or not, for its first bytes; a tunnel's are
 * still to come. */
static void rejudge_dial(struct conn *c, enum reason why)
{
	const struct ip_addr *literal = c->target->name.n ? NULL :
							    &c->target->addr;
	enum reason now = judge_again(c, literal);
	enum rules_speech speech = speech_now(c);

	if (now == REASON_ALLOWED && !conn_is_tunnel(c) &&
	    !speech_passes(c, speech))
		now = REASON_PROTOCOL_NOT_ALLOWED;
	if (now != REASON_ALLOWED) {
		dial_cancel(c->dial);
		c->dial = NULL;
		conn_refuse(c, c->opened ? why : now);
		return;
	}
	if (conn_is_tunnel(c))
		c->speech = speech;
	c->rules_changed = true;
	dial_set_rules(c->dial, c->rules);
}

static enum reason judge_http(struct conn *c, const struct ip_addr *addr)
{
	enum reason now = judge_again(c, addr);

	if (now == REASON_ALLOWED && c->answer.protocol &&
	    c->answer.protocol->speech == SPEECH_TLS)
		now = REASON_PROTOCOL_NOT_ALLOWED;
	return now;
}

static void rejudge_http_dial(struct conn *c, enum reason why)
{
	enum reason now = judge_http(c, c->target->name.n ? NULL :
							   &c->target->addr);

	if (now == REASON_ALLOWED) {
		c->rules_changed = true;
		dial_set_rules(c->dial, c->rules);
		return;
	}
	dial_cancel(c->dial);
	c->dial = NULL;
	if (c->opened) {
		now = why;
		conn_record_end(c, why);
	}
	forward_dial_failed(c->forward, now);
}

static void rejudge_http_flow(struct conn *c, enum reason why)
{
	if (c->dial) {
		rejudge_http_dial(c, why);
		return;
	}
	if (!c->opened) {
		/* The last flow's, which is over: it was the old rules'. */
		c->answer = (struct rules_answer){ .rule = NULL };
		return;
	}
	if (judge_http(c, known_addr(c)) == REASON_ALLOWED)
		return;
	if (c->net) {
		/* Dialled for a tunnel, and no request has come yet. */
		half_closep(&c->net, true);
		conn_record_end(c, why);
	} else {
		forward_revoke(c->forward, why);
	}
}

/* The engine asks for the times of the rules that hold by now. */
static void rejudge_http(struct conn *c, enum reason why)
{
	const struct forward_limits limits = conn_http_limits(c);

	forward_set_policy(c->forward, rules_name(c->rules), &limits);
	rejudge_http_flow(c, why);
	forward_watch_anew(c->forward);
}

static void rejudge_relay(struct conn *c, enum reason why)
{
	if (judge_again(c, known_addr(c)) != REASON_ALLOWED ||
	    !speech_passes(c, speech_now(c)))
		conn_end(c, why);
	else
		conn_watch_relay(c);
}

enum reason conn_judge_dialed(struct conn *c)
{
	enum reason now;

	if (!c->rules_changed)
		return REASON_ALLOWED;
	c->rules_changed = false;
	now = c->state == CONN_HTTP ? judge_http(c, known_addr(c)) :
				      judge_again(c, known_addr(c));
	if (now == REASON_ALLOWED && conn_is_tunnel(c) &&
	    c->state != CONN_HTTP)
		c->speech = speech_now(c);
	else if (now == REASON_ALLOWED && !speech_passes(c, speech_now(c)) &&
		 c->state != CONN_HTTP)
		now = REASON_PROTOCOL_NOT_ALLOWED;
	return now;
}

static void conn_rejudge(struct conn *c, enum reason why)
{
	switch (c->state) {
	case CONN_HELLO:
		if (c->established)
			rejudge_established(c, why);
		else
			conn_begin_transparent(c);
		break;
	case CONN_DIAL:
		rejudge_dial(c, why);
		break;
	case CONN_HTTP:
		rejudge_http(c, why);
		break;
	case CONN_RELAY:
		rejudge_relay(c, why);
		break;
	case CONN_HEAD:
	case CONN_SOCKS:
		break;
	case CONN_START:
	case CONN_LISTEN:
	case CONN_REFUSE:
	case CONN_ENDED:
	case CONN_STATES:
		REQUIRE(!"a state that is judged again");
	}
}

/* Who is being told, or gone, has been judged. */
static bool is_over(const struct conn *c)
{
	return c->state == CONN_LISTEN || c->state == CONN_REFUSE ||
	       c->state == CONN_ENDED;
}

/* The rule of that name in @to, where rule @number of @from has it. */
static uint32_t rule_by_now(const struct ruleset *from,
			    const struct ruleset *to, uint32_t number)
{
	struct rules_rule_info info;

	if (number == 0)
		return 0;
	rules_rule_info(from, number, &info);
	return (uint32_t)rules_rule_find(to, info.deny, str_from(info.name));
}

/* A flow that goes on is held to the budgets of the rule that it has now. */
static void move_account(struct conn *c)
{
	enum reason why;

	if (!c->opened)
		return;
	why = quota_flow_move(&c->account, c->rules, c->answer.rule_number);
	if (why != REASON_ALLOWED)
		conn_end(c, why);
}

void conn_rejudge_all(struct sandbox *s, enum reason why,
		      struct conn_rejudged *ret)
{
	struct list *it, *tmp;

	*ret = (struct conn_rejudged){ 0, 0 };
	list_each(&s->conns, it, tmp) {
		struct conn *c = container_of(it, struct conn, node);
		struct ruleset *old = c->rules;
		bool was_open = c->opened;

		if (is_over(c))
			continue;
		c->rules = rules_ref(s->rules);
		c->request_rule = rule_by_now(old, c->rules, c->request_rule);
		conn_rejudge(c, why);
		move_account(c);
		if (was_open && c->opened)
			ret->kept++;
		else if (was_open)
			ret->ended++;
		/* Every answer that borrowed from them is another by now. */
		rules_unref(old);
	}
	conn_pool_rejudge(s, why, ret);
}
