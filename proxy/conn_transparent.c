/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_transparent.c - what did the program ask for, and may it?
 *
 * getsockname() of the accepted socket is the address the program dialled.
 *
 *	a synthetic address	the name it was given for: exact
 *	given for names		what its candidates come to (conn_names.c); with
 *				TLS or HTTP the first bytes say which, or name
 *				another host, as below
 *	permitted as it is	a rule with addresses and no hosts
 *	neither, on a port	nothing is known yet; the first bytes may name a
 *	of TLS or HTTP		permitted host, which we then resolve ourselves:
 *				the asked address is dialled only if it is
 *				among our own answers (ADDR-18)
 *	neither			refused
 *
 * A rule for tcp, ssh and the like dials at once, so that a server may speak
 * first; the rule says so, never the bytes or a clock.
 */
#include "proxy/conn.h"
#include "proxy/conn_names.h"
#include "proxy/conn_own.h"
#include "proxy/sock.h"

/*
 * Could a name still open it?  A class that no program has honest business
 * with is refused at once, in its own words, and so is what a deny rule names;
 * documentation addresses lead nowhere, so that there is nothing to gain by it.
 */
static bool may_name_itself(const struct conn *c)
{
	switch ((int)c->answer.reason) {
	case REASON_HOST_NOT_ALLOWED:
	case REASON_PORT_NOT_ALLOWED:
	case REASON_ADDRESS_NOT_ALLOWED:
	case REASON_RULE_EXPIRED:
	case REASON_ADDRESS_DOCUMENTATION:
		return rules_protocol_by_port(c->target->port)->speech !=
		       SPEECH_OPAQUE;
	default:
		return false;
	}
}

static void begin(struct conn *c, enum rules_speech speech)
{
	c->speech = speech;
	switch (c->speech) {
	case SPEECH_TLS:
		if (c->state != CONN_HELLO)
			conn_read_in(c, CONN_HELLO, conn_head_ms(c));
		break;
	case SPEECH_HTTP:
		conn_start_http(c);
		break;
	case SPEECH_OPAQUE:
		conn_dial(c);
		break;
	}
}

/* By c->answer, which is of what c->target is. */
static void begin_answered(struct conn *c)
{
	if (c->target->name.n == 0 && c->answer.reason != REASON_ALLOWED &&
	    may_name_itself(c)) {
		c->by_first_bytes = true;
		begin(c, rules_protocol_by_port(c->target->port)->speech);
	} else if (rules_passes(&c->answer)) {
		begin(c, conn_protocol(c, &c->answer)->speech);
	} else {
		conn_refuse(c, c->answer.reason);
	}
}

static void begin_settled(struct conn *c)
{
	enum reason why = conn_names_settle(c, c->target, &c->dns);

	if (why != REASON_ALLOWED) {
		conn_refuse(c, why);
		return;
	}
	conn_target_judge(c, c->target, &c->answer);
	begin_answered(c);
}

/* No candidate passes: the first bytes may still name another host. */
static void begin_without_pass(struct conn *c, const struct conn_votes *v)
{
	c->answer = v->fail_answer;
	if (may_name_itself(c))
		begin_answered(c);
	else
		begin_settled(c);
}

/* What holds for a flow whose first bytes name nothing. */
static struct rules_answer answer_unnamed(const struct conn_votes *v)
{
	struct rules_answer a = v->literal;

	if (v->denied)
		return v->fail_answer;
	if (conn_votes_literal(v))
		return a;
	return (struct rules_answer){
		.reason = REASON_SNI_MISSING, .klass = a.klass,
		.rule = v->pass_answer.rule,
		.rule_number = v->pass_answer.rule_number,
		.file = v->pass_answer.file, .line = v->pass_answer.line,
	};
}

/* The address may stand for names: what do those demand of the first bytes? */
static void begin_candidates(struct conn *c, const struct conn_votes *v)
{
	const unsigned showing = BIT(SPEECH_TLS) | BIT(SPEECH_HTTP);
	unsigned literal = 0, named;

	if (conn_votes_literal(v))
		literal = BIT(conn_protocol(c, &v->literal)->speech);
	named = (v->speeches | literal) & showing;
	if ((v->speeches | literal) == 0) {
		begin_without_pass(c, v);
	} else if (literal == BIT(SPEECH_OPAQUE) && (v->speeches & showing)) {
		/* Whatever is said there may be, by whomever. */
		c->answer = v->literal;
		begin_answered(c);
	} else if (named == 0 || (literal && v->speeches == BIT(SPEECH_OPAQUE))) {
		begin_settled(c);
	} else if (named == (BIT(SPEECH_TLS) | BIT(SPEECH_HTTP))) {
		conn_refuse(c, REASON_NAME_AMBIGUOUS);
	} else {
		c->by_first_bytes = true;
		c->answer = answer_unnamed(v);
		begin(c, named == BIT(SPEECH_TLS) ? SPEECH_TLS : SPEECH_HTTP);
	}
}

void conn_begin_transparent(struct conn *c)
{
	struct conn_votes v;

	c->by_first_bytes = false;
	if (conn_names_vote(c, c->target, &v)) {
		begin_candidates(c, &v);
	} else {
		conn_target_judge(c, c->target, &c->answer);
		begin_answered(c);
	}
}

void conn_start_transparent(struct sandbox *s, int fd,
			    const struct ip_endpoint *src)
{
	struct conn *c = conn_new(s, fd, src, RECORD_VIA_TRANSPARENT);
	enum reason why;

	if (!c)
		return;
	if (sock_local(c->app.fd, &c->asked)) {
		conn_refuse(c, REASON_INTERNAL_ERROR);
		return;
	}
	why = conn_target_set(s, NULL, &c->asked.addr, c->asked.port,
			      c->target, &c->dns);
	if (why == REASON_ALLOWED)
		why = c->admission;
	if (why != REASON_ALLOWED) {
		conn_refuse(c, why);
		return;
	}
	conn_begin_transparent(c);
}
