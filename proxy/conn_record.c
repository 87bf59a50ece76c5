/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_record.c - the audit records of a connection
 *
 *	refused, or failed before an address was dialled	flow_deny
 *	about to dial the first address				flow_open
 *	the end of that, whatever it was			flow_close
 *
 * Open and close, and the http records between them, carry one id; so does the
 * refusal of what was wrong with the first bytes inside a tunnel (LOG-08).  A
 * flow that outlives its connection (conn_pool.c) keeps its id, and its records
 * name the program's end that opened it.
 */
#include "audit/writer.h"
#include "base/clock.h"
#include "proxy/conn_own.h"
#include "proxy/parents.h"

static enum record_act act_of(const struct rules_answer *answer,
			      enum reason why)
{
	if (why == REASON_ORIGIN_RESET)		/* as ordinary as a close */
		return answer->would_deny ? RECORD_WOULD_DENY : RECORD_ALLOW;
	switch (reason_info(why)->kind) {
	case REASON_OK:
		return answer->would_deny ? RECORD_WOULD_DENY : RECORD_ALLOW;
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

struct conn_flow conn_flow_of(const struct conn *c)
{
	return (struct conn_flow){
		.id = c->id,
		.dns = c->dns,
		.via = c->via,
		.src = c->opened ? c->opener : c->src,
		.asked = c->asked,
		.target = c->target,
		.dst = c->dst,
		.way = c->way,
		.parent_status = c->parent_status,
		.answer = c->answer,
		.began_ms = c->began_ms,
		.bytes_up = c->bytes_up,
		.bytes_down = c->bytes_down,
		.account = c->account,
	};
}

static const char *flow_protocol(const struct conn_flow *f)
{
	if (f->answer.protocol)
		return f->answer.protocol->name;
	return rules_protocol_by_port(f->target->port)->name;
}

static void record_way(const struct dial_way *way, unsigned status,
		       struct record *r)
{
	if (!way->parent)
		return;
	r->parent = way->parent->name;
	r->resolved = way->there ? "parent" : "here";
	r->parent_status = (int)status;
}

/* It borrows @f. */
static void record_fill(const struct conn_flow *f, enum record_event event,
			enum record_act act, enum reason reason,
			struct record *ret)
{
	*ret = (struct record){
		.event = event,
		.act = act,
		.reason = reason,
		.via = f->via,
		.id = f->id,
		.dns = f->dns,
		.rule = f->answer.rule,
		.host = host_name_str(&f->target->name),
		.src = f->src,
		.asked = f->asked.addr,
		.dst = f->dst,
		.proto = f->target->port ? flow_protocol(f) : NULL,
		.rcode = -1,
		.dur_ms = -1,
	};
	if (ret->asked.family == IP_NONE)
		ret->asked = f->target->wish;
	record_way(&f->way, f->parent_status, ret);
	ret->dst.port = f->target->port;
	if (ret->dst.addr.family == IP_NONE)
		ret->dst.addr = f->target->addr;
}

enum reason conn_record_open(struct conn *c, const struct rules_answer *answer)
{
	enum reason why = conn_begin_flow(c, answer);
	struct conn_flow f;
	struct record r;

	c->answer = *answer;
	if (why != REASON_ALLOWED)
		return why;
	f = conn_flow_of(c);
	record_fill(&f, RECORD_FLOW_OPEN, answer->would_deny ?
		    RECORD_WOULD_DENY : RECORD_ALLOW, answer->reason, &r);
	r.sni = conn_sni(c);
	if (audit_post(c->s->sink, &r))
		return REASON_AUDIT_UNAVAILABLE;
	c->opened = true;
	c->opener = c->src;
	c->recorded = true;
	c->s->flows_allowed++;
	return REASON_ALLOWED;
}

static void record_close(struct sandbox *s, const struct conn_flow *f,
			 struct str sni, enum reason why)
{
	struct record r;

	record_fill(f, RECORD_FLOW_CLOSE, act_of(&f->answer, why), why, &r);
	r.sni = sni;
	r.bytes_up = f->bytes_up;
	r.bytes_down = f->bytes_down;
	r.dur_ms = clock_mono_ms() - f->began_ms;
	s->bytes_up += f->bytes_up;
	s->bytes_down += f->bytes_down;
	audit_tell(s->sink, &r);
}

void conn_flow_record_close(struct sandbox *s, const struct conn_flow *f,
			    enum reason why)
{
	record_close(s, f, STR_NONE, why);
}

static void record_deny(struct conn *c, enum reason why)
{
	struct conn_flow f = conn_flow_of(c);
	struct record r;

	/* Nothing was asked for yet, so nothing has ended in order. */
	if (reason_info(why)->kind == REASON_OK && why != REASON_RUN_ENDED)
		why = REASON_CLIENT_CLOSED_EARLY;
	record_fill(&f, RECORD_FLOW_DENY, act_of(&f.answer, why), why, &r);
	r.sni = conn_sni(c);
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
	if (c->opened) {
		const struct conn_flow f = conn_flow_of(c);

		record_close(c->s, &f, conn_sni(c), why);
		conn_flow_leave(c);
	} else if (!c->recorded) {
		record_deny(c, why);
	}
}

void conn_flow_leave(struct conn *c)
{
	c->bytes_up = c->bytes_down = 0;
	c->base_up = c->base_down = 0;
	c->opened = false;
}

void conn_flow_resume(struct conn *c, const struct conn_flow *f)
{
	REQUIRE(!c->opened);
	c->id = f->id;
	c->dns = f->dns;
	c->opener = f->src;
	conn_target_copy(c->target, f->target);
	c->dst = f->dst;
	c->answer = f->answer;
	c->began_ms = f->began_ms;
	c->base_up = f->bytes_up;
	c->base_down = f->bytes_down;
	c->account = f->account;
	c->opened = true;
	c->recorded = true;
}

void conn_record_http(struct conn *c, struct record *r, bool of_flow)
{
	if (of_flow && c->recorded) {
		r->id = c->id;
		r->dns = c->dns;
		record_way(&c->way, c->parent_status, r);
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
