/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_pool.c - connections to origins between two requests
 *
 * A program that asks once for each connection (a script of curls) would have
 * us dial as often.  So a connection whose answer was read to its end, and
 * which the origin keeps open, waits here for another request of its sandbox:
 * of the same way in, for the same name and port, by the same rules, and only
 * where those let the address pass anew.  It is then a connection that the
 * request might have opened itself.  The flow goes with it: one id, one open,
 * one close, whoever uses it.  One that a program logged in on (NTLM), or sent
 * a body on, is its own and never comes here.
 *
 * One that is idle beside a program's half that lives is that half's, and is not
 * lent out: no more connections are open than the program itself would have, eight
 * threads that ask 200 times open eight (with a session of theirs, one for all, or
 * none), and whoever keeps a connection open is about to use it.  Lending would
 * save a dial where many wait and another comes, and cost one where its owner
 * comes back, with a POST also the owner's certainty that it lives.
 *
 * The latest goes first, since it is the most likely to live.  What speaks or
 * ends while it waits is closed, and so is what has waited for too long, or for
 * longest when there are too many.  A request that must not be sent twice
 * takes none (forward.h): that one died just now cannot be seen from here.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "proxy/conn_own.h"
#include "proxy/parents.h"
#include "proxy/sock.h"
#include "proxy/worker.h"

#define POOL_MAGIC	0x504f4f4cu	/* "POOL" */
#define POOL_MEMORY	(sizeof(struct pooled) + sizeof(struct conn_target) + \
			 CONN_SOCKET_MEMORY)

struct pooled {
	uint32_t magic;
	struct list node;		/* sandbox.pool */
	struct sandbox *s;
	struct ruleset *rules;		/* one reference: the flow's */
	struct conn_target *target;	/* owned: the flow's */
	struct conn_flow flow;
	struct event silence;		/* its end, by a byte or the clock */
	int fd;
};

static void pooled_drop(struct pooled *p)
{
	mem_free(p->target);
	mem_free(p);
}

/* Nothing watches it, and its descriptor was taken or closed. */
static void pooled_free(struct pooled *p)
{
	REQUIRE(p->magic == POOL_MAGIC && p->fd < 0);
	list_del(&p->node);
	p->s->npooled--;
	rules_unref(p->rules);
	p->magic = 0;
	mem_account_give(&p->s->memory, POOL_MEMORY);
	pooled_drop(p);
}

static void pooled_close(struct pooled *p, enum reason why)
{
	(void)!event_del(&p->silence);
	fd_closep(&p->fd);
	conn_flow_record_close(p->s, &p->flow, why);
	pooled_free(p);
}

static bool is_silent(const struct pooled *p)
{
	char byte;

	return recv(p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN;
}

/* The flow goes on, and with it the time that it may last. */
static int64_t time_left_ms(const struct pooled *p)
{
	const struct rules_times t = rules_times(p->rules,
						 p->flow.answer.rule_number);

	return t.flow_s ? p->flow.began_ms + (int64_t)t.flow_s * 1000 -
			  clock_mono_ms() : INT64_MAX;
}

static void silence_cb(evutil_socket_t fd UNUSED, short what, void *arg)
{
	struct pooled *p = arg;

	REQUIRE(p->magic == POOL_MAGIC);
	pooled_close(p, !(what & EV_TIMEOUT) ? REASON_ORIGIN_CLOSED :
			time_left_ms(p) <= 0 ? REASON_FLOW_TIME_EXCEEDED :
					       REASON_CLIENT_CLOSED);
}

/* That it waits for nobody for as long as its rule has it is no fault of the
 * program: it ends as one that has waited. */
static bool pooled_watch(struct pooled *p)
{
	const struct rules_times t = rules_times(p->rules,
						 p->flow.answer.rule_number);
	int64_t ms = p->s->pool_ms ? p->s->pool_ms : CONN_POOL_MS;
	struct timeval tv;

	if (t.idle_s)
		ms = MIN(ms, (int64_t)t.idle_s * 1000);
	ms = MAX(MIN(ms, time_left_ms(p)), (int64_t)1);
	tv.tv_sec = ms / 1000;
	tv.tv_usec = ms % 1000 * 1000;
	return event_add(&p->silence, &tv) == 0;
}

bool conn_pool_give(struct conn *c, int fd)
{
	struct sandbox *s = c->s;
	struct pooled *p;

	/* What was judged by a name's one address is not the name's. */
	if (s->ending || !c->opened || c->target->alone || c->rules != s->rules)
		return false;
	/* What a parent makes of a connection is its own to say, each time. */
	if (c->way.parent)
		return false;
	p = mem_new(sizeof(*p));
	if (!p)
		return false;
	*p = (struct pooled){
		.magic = POOL_MAGIC, .s = s, .fd = fd, .flow = conn_flow_of(c),
		.rules = c->rules,
	};
	p->target = conn_target_dup(c->target);
	p->flow.target = p->target;
	if (!p->target ||
	    event_assign(&p->silence, s->worker->base, fd, EV_READ,
			 silence_cb, p) || !pooled_watch(p)) {
		pooled_drop(p);
		return false;
	}
	if (mem_account_take(&s->memory, POOL_MEMORY) != REASON_ALLOWED) {
		(void)!event_del(&p->silence);
		pooled_drop(p);
		return false;
	}
	(void)rules_ref(p->rules);
	list_add(s->pool.next, &p->node);	/* in front */
	s->npooled++;
	conn_flow_leave(c);
	id_new(&c->id);
	if (s->npooled > CONN_POOL_MAX)
		pooled_close(container_of(s->pool.prev, struct pooled, node),
			     REASON_CLIENT_CLOSED);
	return true;
}

/* May a flow that is open go on to its address, by @rules as they are now? */
static bool flow_passes(const struct sandbox *s, const struct ruleset *rules,
			const struct conn_flow *f, struct rules_answer *ret)
{
	const struct rules_question q = {
		.host = host_name_str(&f->target->name),
		.addr = &f->dst.addr,
		.port = f->target->port,
		.hosts = s->worker->hosts,
		.now = clock_wall_s(),
	};
	const struct parent *parent;

	rules_judge(rules, &q, ret);
	return rules_passes(ret) &&
	       parents_pick(s->worker->parents, ret->parent, q.host, q.addr,
			    &parent) == 0 && !parent &&
	       !(ret->protocol && ret->protocol->speech == SPEECH_TLS);
}

/* The proxy that the policy names for the flow, or NULL. */
static struct str parent_of(const struct ruleset *rules,
			    const struct rules_answer *answer)
{
	const char *file;
	unsigned line;

	return str_from(answer->parent ? answer->parent :
			rules_default_parent(rules, &file, &line));
}

static bool is_wanted(const struct pooled *p, const struct conn *c,
		      const struct conn_target *t)
{
	const struct conn_flow *f = &p->flow;

	return p->rules == c->rules && f->via == c->via && !t->alone &&
	       conn_target_eq(f->target, t) &&
	       ip_addr_eq(&f->target->wish, &t->wish) &&
	       ip_addr_eq(&f->asked.addr, &c->asked.addr);
}

/* By the same rule, and let through for the same reason. */
static bool is_still_allowed(const struct pooled *p)
{
	const struct rules_answer *then = &p->flow.answer;
	struct rules_answer now;

	return flow_passes(p->s, p->rules, &p->flow, &now) &&
	       now.rule_number == then->rule_number &&
	       now.would_deny == then->would_deny;
}

int conn_pool_take(struct conn *c, const struct conn_target *t)
{
	struct list *it, *tmp;
	int fd;

	list_each(&c->s->pool, it, tmp) {
		struct pooled *p = container_of(it, struct pooled, node);

		if (!is_wanted(p, c, t) || !is_still_allowed(p))
			continue;
		if (time_left_ms(p) <= 0) {
			pooled_close(p, REASON_FLOW_TIME_EXCEEDED);
			continue;
		}
		if (!is_silent(p)) {
			pooled_close(p, REASON_ORIGIN_CLOSED);
			continue;
		}
		(void)!event_del(&p->silence);
		fd = fd_take(&p->fd);
		conn_flow_resume(c, &p->flow);
		pooled_free(p);
		return fd;
	}
	return -1;
}

void conn_pool_end(struct sandbox *s, enum reason why)
{
	struct list *it, *tmp;

	list_each(&s->pool, it, tmp)
		pooled_close(container_of(it, struct pooled, node), why);
}

void conn_pool_rejudge(struct sandbox *s, enum reason why,
		       struct conn_rejudged *ret)
{
	struct list *it, *tmp;

	list_each(&s->pool, it, tmp) {
		struct pooled *p = container_of(it, struct pooled, node);
		struct ruleset *old = p->rules;
		struct str parent = parent_of(old, &p->flow.answer);

		p->rules = rules_ref(s->rules);
		/* What goes another way now was not opened by these rules. */
		if (flow_passes(s, p->rules, &p->flow, &p->flow.answer) &&
		    str_eq(parent, parent_of(p->rules, &p->flow.answer)) &&
		    pooled_watch(p)) {
			ret->kept++;
		} else {
			(void)!event_del(&p->silence);
			sock_reset(&p->fd);
			pooled_close(p, why);
			ret->ended++;
		}
		rules_unref(old);
	}
}
