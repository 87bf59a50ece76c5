/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strangers.c - who tried to use a listener in vain, and was told nothing
 */
#include "proxy/strangers.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdint.h>

#include "audit/record.h"
#include "base/mem.h"
#include "proxy/sandbox.h"
#include "proxy/worker.h"

struct stranger {
	struct ip_endpoint src;		/* as of the first time */
	struct ip_endpoint at;
	bool tcp;
	uint32_t more;			/* times that are not told yet */
};

struct strangers {
	struct sandbox *sandbox;
	enum reason why;
	struct event ev;		/* pending while somebody is noted */
	size_t n;
	struct stranger who[STRANGERS_MAX];
	struct stranger rest;		/* of whom there was no room to note */
};

static void tell(struct strangers *st, const struct stranger *who,
		 uint32_t count)
{
	struct record r;

	sandbox_record(RECORD_FLOW_DENY, RECORD_DENY, st->why,
		       RECORD_VIA_NONE, &r);
	r.src = who->src;
	r.dst = who->at;
	r.transport = who->tcp ? NULL : "udp";
	r.count = count > 1 ? count : 0;
	sandbox_deny(st->sandbox, &r);
}

static void flush(struct strangers *st)
{
	size_t i;

	for (i = 0; i < st->n; i++)
		if (st->who[i].more)
			tell(st, &st->who[i], st->who[i].more);
	if (st->rest.more)
		tell(st, &st->rest, st->rest.more);
	st->n = 0;
	st->rest.more = 0;
}

static void flush_cb(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	flush(arg);
}

int strangers_new(struct sandbox *s, enum reason why, struct strangers **ret)
{
	struct strangers *st = mem_new(sizeof(*st));

	if (!st)
		return -ENOMEM;
	st->sandbox = s;
	st->why = why;
	if (event_assign(&st->ev, s->worker->base, -1, 0, flush_cb, st)) {
		mem_free(st);
		return -ENOMEM;
	}
	*ret = st;
	return 0;
}

static struct stranger *find(struct strangers *st,
			     const struct ip_endpoint *src, bool tcp)
{
	size_t i;

	for (i = 0; i < st->n; i++)
		if (st->who[i].tcp == tcp &&
		    ip_addr_eq(&st->who[i].src.addr, &src->addr))
			return &st->who[i];
	return NULL;
}

static void note_more(struct stranger *who)
{
	if (who->more < UINT32_MAX)
		who->more++;
}

void strangers_note(struct strangers *st, const struct ip_endpoint *src,
		    const struct ip_endpoint *at, bool tcp)
{
	static const struct timeval window = { .tv_sec = STRANGERS_MS / 1000 };
	struct stranger who = {
		.src = { ip_addr_unmapped(&src->addr), src->port },
		.at = *at, .tcp = tcp,
	};
	struct stranger *known = find(st, &who.src, tcp);

	/* Should there be no timer, what is counted is told at the end. */
	if (st->n == 0 && st->rest.more == 0)
		(void)!event_add(&st->ev, &window);
	if (known) {
		note_more(known);
	} else if (st->n < STRANGERS_MAX) {
		st->who[st->n++] = who;
		tell(st, &who, 1);
	} else {
		st->rest.at = *at;
		st->rest.tcp = tcp;
		note_more(&st->rest);
	}
}

void strangers_free(struct strangers *st)
{
	if (!st)
		return;
	flush(st);
	(void)!event_del(&st->ev);
	mem_free(st);
}
