/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_listen_leave.c - listeners from one process to the next
 *
 * Their sockets go along (host_sock.c), and what their runs have used of their
 * budgets and know of names.  The runs do not: nobody waits for the end of one,
 * so each process has runs of its own, with records of their own, of which the
 * older one ends with the last flow that it has open.
 */
#include <errno.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "proxy/handover_proto.h"
#include "proxy/handover_state.h"
#include "proxy/host_listen_own.h"
#include "proxy/host_sock.h"
#include "proxy/plug_check.h"
#include "proxy/worker.h"

/* --- to the next ------------------------------------------------------------------ */

size_t host_listens_sockets(const struct host_listens *h)
{
	size_t i, n = 0;

	for (i = 0; i < h->c.socks->n; i++)
		n += h->listen[h->c.socks->sock[i].listen].state ==
		     LISTEN_SERVING;
	return n;
}

/* Its number in the sandbox that has it: there they stand in this order. */
static int number_of(const struct host_listens *h, size_t which)
{
	const struct host_sock *sock = h->c.socks->sock, *s = &sock[which];
	const struct sandbox *sandbox =
		h->listen[s->listen].part[s->worker].sandbox;
	size_t i, at = 0;

	for (i = 0; i < which; i++)
		at += sock[i].listen == s->listen &&
		      sock[i].worker == s->worker;
	REQUIRE(at < sandbox->ndoors);
	return sandbox->door[at].fd;
}

size_t host_listens_socket(const struct host_listens *h, size_t i,
			   union handover_msg *m, int *ret_fd)
{
	const struct host_socks *socks = h->c.socks;
	size_t at, n;

	for (at = 0; at < socks->n; at++) {
		const struct host_sock *s = &socks->sock[at];

		if (h->listen[s->listen].state != LISTEN_SERVING || i-- > 0)
			continue;
		n = handover_begin(HANDOVER_SOCKET, m);
		m->socket.role = s->role;
		m->socket.worker = (uint32_t)s->worker;
		m->socket.at = s->at;
		*ret_fd = number_of(h, at);
		return n;
	}
	return 0;
}

bool host_listens_busy(const struct host_listens *h)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		if (h->listen[i].state == LISTEN_PLACING ||
		    !list_empty(&h->listen[i].swaps))
			return true;
	return false;
}

void host_listens_leave(struct host_listens *h, host_listens_leave_fn *fn,
			void *arg)
{
	size_t i, j;

	for (i = 0; i < h->n; i++) {
		struct listen *l = &h->listen[i];

		if (l->state != LISTEN_SERVING)
			continue;
		for (j = 0; j < h->c.nworkers; j++) {
			struct part *p = &l->part[j];

			leave_init(&p->leave);
			p->leave.home = h->mailbox;
			p->leave.worker = p->worker;
			p->leave.sandbox = p->sandbox;
			p->leave.part = p;
			fn(arg, &p->leave);
		}
	}
}

int host_listens_fill(struct leave *l, union handover_msg *m)
{
	struct part *p = l->part;
	const struct listen *listen = p->listen;
	const struct handover_memory memory = {
		.budget = listen->budget, .quota = listen->quota,
	};
	size_t worker = (size_t)(p - listen->part);

	(void)handover_begin(HANDOVER_PART, m);
	m->part.worker = (uint32_t)worker;
	memcpy(m->part.name, listen->c->name, sizeof(listen->c->name));
	/* What all parts have together goes with the first. */
	return worker == 0 ? handover_tell(&memory, &l->state) : 0;
}

size_t host_listens_thaw(struct host_listens *h)
{
	size_t i, j, n = 0;

	for (i = 0; i < h->n; i++)
		for (j = 0; h->listen[i].state == LISTEN_SERVING &&
		     j < h->c.nworkers; j++) {
			struct leave *l = &h->listen[i].part[j].leave;

			if (!l->sandbox)
				continue;
			leave_thaw(l);
			buf_done(&l->state);
			n++;
		}
	return n;
}

/* --- from the one before ------------------------------------------------------------ */

int host_listens_place_here(struct host_listens *h)
{
	size_t i, j;

	h->left = h->placing = h->n;
	for (i = 0; i < h->n; i++)
		for (j = 0; j < h->c.nworkers; j++) {
			struct part *p = &h->listen[i].part[j];

			p->placed = sandbox_new(p->worker, &p->config,
						&p->sandbox);
			if (p->placed == 0)
				continue;
			log_error("[listen %s]: %s", h->listen[i].c->name,
				  strerror(-p->placed));
			return p->placed;
		}
	return 0;
}

static struct listen *listen_named(struct host_listens *h, const char *name)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		if (strcmp(h->listen[i].c->name, name) == 0)
			return &h->listen[i];
	return NULL;
}

int host_listens_adopt_state(struct host_listens *h,
			     const struct handover_part *m, struct str bytes,
			     struct plug_why *why)
{
	struct listen *l = listen_named(h, m->name);
	struct handover_memory memory = { .names = NULL };
	const struct sandbox *s;
	int err;

	if (!l)
		return 0;	/* not in the new configuration */
	s = l->part[m->worker % h->c.nworkers].sandbox;
	memory.names = s->names;
	memory.pins = s->pins;
	memory.budget = l->budget;
	memory.quota = l->quota;
	err = handover_remember(&memory, bytes);
	if (err < 0)
		return plug_refuse(why, "[listen %s]: what it remembers cannot be taken in: %s",
				   l->c->name, strerror(-err));
	return 0;
}
