/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_record.c - the audit records of a connection
 *
 *	refused, or failed before an address was dialled	flow_deny
 *	about to dial the first address				flow_open
 *	the end of that, whatever it was			flow_close
 *
 * Open and close, and the http records between them, carry one id; so does the
 * refusal of what was wrong with the first bytes inside a tunnel (LOG-08).
 */
#include "audit/writer.h"
#include "base/clock.h"
#include "proxy/conn_own.h"

static enum record_act act_of(const struct conn *c, enum reason why)
{
	if (why == REASON_ORIGIN_RESET)		/* as ordinary as a close */
		return c->answer.would_deny ? RECORD_WOULD_DENY : RECORD_ALLOW;
	switch (reason_info(why)->kind) {
	case REASON_OK:
		return c->answer.would_deny ? RECORD_WOULD_DENY : RECORD_ALLOW;
	case REASON_NETWORK:
	case REASON_INTERNAL:
		return RECORD_ERROR;
	case REASON_POLICY:
	case REASON_REQUEST:
	case REASON_LIMIT:
		break;
	}
	return RECORD_DENY;
}

static void record_fill(const struct conn *c, enum record_event event,
			enum record_act act, enum reason reason,
			struct record *ret)
{
	*ret = (struct record){
		.event = event,
		.act = act,
		.reason = reason,
		.via = c->via,
		.id = c->id,
		.dns = c->dns,
		.rule = c->answer.rule,
		.host = host_name_str(&c->target.name),
		.src = c->src,
		.asked = c->asked.addr,
		.dst = c->dst,
		.proto = c->target.port ? conn_protocol(c, &c->answer)->name :
						   NULL,
		.sni = str_make(c->sni, c->sni_n),
		.rcode = -1,
		.dur_ms = -1,
	};
	if (ret->asked.family == IP_NONE)
		ret->asked = c->target.wish;
	ret->dst.port = c->target.port;
	if (ret->dst.addr.family == IP_NONE)
		ret->dst.addr = c->target.addr;
}

int conn_record_open(struct conn *c, const struct rules_answer *answer)
{
	struct record r;
	int err;

	c->answer = *answer;
	record_fill(c, RECORD_FLOW_OPEN, answer->would_deny ?
		    RECORD_WOULD_DENY : RECORD_ALLOW, answer->reason, &r);
	err = audit_post(c->s->sink, &r);
	if (err)
		return err;
	c->opened = true;
	c->recorded = true;
	c->s->flows_allowed++;
	return 0;
}

static void record_close(struct conn *c, enum reason why)
{
	struct record r;

	record_fill(c, RECORD_FLOW_CLOSE, act_of(c, why), why, &r);
	r.bytes_up = c->bytes_up;
	r.bytes_down = c->bytes_down;
	r.dur_ms = clock_mono_ms() - c->began_ms;
	c->s->bytes_up += c->bytes_up;
	c->s->bytes_down += c->bytes_down;
	c->bytes_up = c->bytes_down = 0;
	c->opened = false;
	audit_tell(c->s->sink, &r);
}

static void record_deny(struct conn *c, enum reason why)
{
	struct record r;

	/* Nothing was asked for yet, so nothing has ended in order. */
	if (reason_info(why)->kind == REASON_OK && why != REASON_RUN_ENDED)
		why = REASON_CLIENT_CLOSED_EARLY;
	record_fill(c, RECORD_FLOW_DENY, act_of(c, why), why, &r);
	if (r.act != RECORD_ERROR)
		r.act = RECORD_DENY;
	c->recorded = true;
	if (r.act == RECORD_DENY)
		sandbox_deny(c->s, &r);
	else
		audit_tell(c->s->sink, &r);
}

void conn_record_end(struct conn *c, enum reason why)
{
	if (c->opened)
		record_close(c, why);
	else if (!c->recorded)
		record_deny(c, why);
}

void conn_record_http(struct conn *c, struct record *r, bool of_flow)
{
	if (of_flow && c->recorded) {
		r->id = c->id;
		r->dns = c->dns;
		if (r->dst.addr.family == IP_NONE)
			r->dst.addr = c->dst.addr;
	} else {
		id_new(&r->id);
	}
	r->via = c->via;
	r->src = c->src;
	r->asked = c->asked.addr;
	if (!r->proto)
		r->proto = "http";
	c->recorded = true;
	if (r->act == RECORD_DENY)
		sandbox_deny(c->s, r);
	else
		audit_tell(c->s->sink, r);
}
