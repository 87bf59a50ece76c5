/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_leave.c - the runs of this process, to another one
 *
 * What happens when is said in handover.c; this is the part of it that knows
 * runs.  A run that goes on is FROZEN: nothing is read from its launcher, and
 * its sandbox accepts nothing.  From there it goes back to RUNNING, or, when the
 * other process has it, on to LEAVING: the connection to the launcher and the
 * sandbox's sockets are closed here (the other one has them), the flows that
 * are open go on, and their records go by a pipe to the other one.  Runs that
 * are ending stay and end here.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "audit/writer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/plug_own.h"
#include "proxy/quota.h"
#include "proxy/worker.h"
#include "rules/rules.h"

/* For the disk to take the last records before a run changes hands. */
#define LEAVE_FLUSH_MS	1000

#define each_conn(p, c)							\
	for (struct list *it_ = (p)->conns.next, *tmp_ = it_->next;	\
	     it_ != &(p)->conns &&					\
	     ((c) = container_of(it_, struct plug_conn, node), true);	\
	     it_ = tmp_, tmp_ = it_->next)

void plug_on_hello(struct plug_conn *c, struct str msg, int *fds, size_t nfds)
{
	const struct plug_config *config = &c->plug->config;
	struct plug_why why;

	while (nfds > 0)
		fd_closep(&fds[--nfds]);
	if (!config->on_hello || !c->peer.may_upgrade) {
		plug_refuse(&why, "uid %u may not take this service over: be root, or the service's own user",
			    (unsigned)c->peer.uid);
		plug_conn_refuse(c, &why);
		return;
	}
	event_del(c->read);
	config->on_hello(config->arg, msg, fd_take(&c->fd));
	plug_conn_gone(c);
}

bool plug_leave_busy(const struct plug *p)
{
	const struct list *it;

	for (it = p->conns.next; it != &p->conns; it = it->next) {
		const struct plug_conn *c =
			container_of((struct list *)(uintptr_t)it,
				     struct plug_conn, node);

		if (c->state == PLUG_ASKING || c->state == PLUG_COMPILING ||
		    c->state == PLUG_PLACING || !list_empty(&c->swaps))
			return true;
	}
	return false;
}

void plug_leave_begin(struct plug *p, plug_leave_fn *fn, void *arg)
{
	struct plug_conn *c;

	plug_pause_listening(p, true);
	each_conn(p, c) {
		if (c->state == PLUG_WAITING) {
			event_del(c->read);
			event_del(c->timer);
		}
		if (c->state != PLUG_RUNNING)
			continue;
		event_del(c->read);
		plug_set_state(c, PLUG_FROZEN);
		c->leave.home = p->mailbox;
		c->leave.worker = p->config.worker[c->worker];
		c->leave.sandbox = c->sandbox;
		c->leave.writer = p->config.writer;
		c->leave.ledger = &c->ledger;
		c->leave.generation = c->generation;
		c->leave.conn = c;
		fn(arg, &c->leave);
	}
}

/* --- back ----------------------------------------------------------------------- */

/* What went into the pipe meanwhile comes back out of it. */
static void take_back(struct plug_conn *c)
{
	struct plug_tail *t;
	int fd = fd_take(&c->leave.pipe);

	if (fd >= 0 && (plug_tail_add(c, NULL, fd, 0, &t) < 0 ||
			plug_tail_watch(t) < 0))
		log_error("run %s: out of memory: records are lost",
			  c->open.run);
}

size_t plug_leave_abort(struct plug *p)
{
	static const struct timeval wait = { .tv_sec = PLUG_OPEN_MS / 1000 };
	struct plug_conn *c;
	size_t n = 0;

	each_conn(p, c) {
		if (c->state == PLUG_WAITING &&
		    (event_add(c->read, NULL) < 0 ||
		     event_add(c->timer, &wait) < 0))
			log_error("out of memory: a plug is not heard");
		if (c->state != PLUG_FROZEN)
			continue;
		plug_set_state(c, PLUG_RUNNING);
		leave_thaw(&c->leave);
		n++;
		take_back(c);
		buf_done(&c->leave.state);
		if (c->end_asked)
			plug_conn_start_end(c);
		else if (event_add(c->read, NULL) < 0)
			plug_conn_end(c, REASON_INTERNAL_ERROR);
	}
	plug_pause_listening(p, false);
	return n;
}

/* --- telling -------------------------------------------------------------------- */

/* Which socket of the plug one of the sandbox's is: as plug_to_sandbox() has
 * put them, in that order. */
static size_t sockets_of(const struct plug_conn *c, int *fd)
{
	const struct sandbox *s = c->sandbox;
	size_t i;

	for (i = 0; i < s->ndoors; i++)
		fd[i] = s->door[i].fd;
	return s->ndoors;
}

static unsigned connections_of_tails(const struct plug_conn *c)
{
	const struct list *it;
	unsigned n = 0;

	for (it = c->tails.next; it != &c->tails; it = it->next)
		n += container_of((struct list *)(uintptr_t)it,
				  struct plug_tail, node)->connections;
	return n;
}

static void fill_figures(const struct plug_conn *c, struct handover_run *m)
{
	const struct leave *l = &c->leave;

	m->generation = c->generation;
	m->self_tests = l->self_tests;
	m->connections = l->connections - connections_of_tails(c);
	m->seq = audit_seq(l->sink);
	m->started_ms = c->started_ms;
	m->bytes_up = l->bytes_up + c->tails_up;
	m->bytes_down = l->bytes_down + c->tails_down;
	m->memory_peak = MAX(l->memory_peak, c->memory_peak);
	memcpy(m->digest, l->digest, sizeof(m->digest));
}

int plug_leave_fill(struct leave *l, union handover_msg *msg,
		    int fd[FD_PASS_MAX], size_t *ret_nfds)
{
	struct handover_run *m = &msg->run;
	struct plug_conn *c = l->conn;
	size_t n = 0;

	/* All of them are written before anybody else writes there. */
	if (audit_sink_flush(l->sink, LEAVE_FLUSH_MS) < 0)
		return -EIO;
	c->told = l->connections - connections_of_tails(c);
	(void)handover_begin(HANDOVER_RUN, msg);
	m->open = c->open;
	fill_figures(c, m);
	fd[n++] = c->fd;
	fd[n++] = l->pipe;
	if (c->policy_fd >= 0) {
		m->flags |= HANDOVER_OWN_POLICY;
		fd[n++] = c->policy_fd;
	}
	if (c->records_fd >= 0) {
		m->flags |= HANDOVER_OWN_RECORDS;
		fd[n++] = c->records_fd;
	}
	n += sockets_of(c, fd + n);
	*ret_nfds = n;
	return n == handover_run_fds(m) ? 0 : -EPROTO;
}

size_t plug_leave_tails(struct leave *l, union handover_msg *msg, size_t i,
			int *ret_fd)
{
	struct handover_tail *m = &msg->tail;
	struct plug_conn *c = l->conn;
	struct list *it, *tmp;
	size_t n;

	list_each(&c->tails, it, tmp) {
		struct plug_tail *t = container_of(it, struct plug_tail, node);

		/* Of a process that has gone, or one's own: read to its end. */
		if (!t->pred || i-- > 0)
			continue;
		n = handover_begin(HANDOVER_TAIL, msg);
		m->pred = t->pred->index;
		m->connections = t->connections;
		m->n = (uint32_t)MIN(t->cut.n, sizeof(m->cut));
		if (m->n)
			memcpy(m->cut, t->cut.p, m->n);
		*ret_fd = t->fd;
		return n;
	}
	return 0;
}

int plug_leave_conn(const struct plug *p, size_t i)
{
	struct plug_conn *c;

	each_conn(p, c)
		if (c->state == PLUG_WAITING && i-- == 0)
			return c->fd;
	return -1;
}

int plug_leave_pred(const struct plug *p, size_t i)
{
	struct list *it, *tmp;
	size_t at = 0;

	list_each(&p->preds, it, tmp) {
		struct plug_pred *pred = container_of(it, struct plug_pred,
						      node);

		if (at++ != i)
			continue;
		pred->index = (uint32_t)i + 1;
		return pred->fd;
	}
	return -1;
}

int plug_listen_fd(const struct plug *p)
{
	return p->listen_fd;
}

/* --- gone ------------------------------------------------------------------------- */

static void on_drained(void *owner, struct mail *mail)
{
	struct plug_conn *c = container_of(mail, struct plug_conn, drained);

	(void)owner;
	if (c->state == PLUG_LEAVING)
		plug_conn_end(c, REASON_SHUTDOWN);
}

/* On the worker's thread. */
static void tell_drained(struct sandbox *s, void *arg)
{
	struct plug_conn *c = arg;

	(void)s;
	mailbox_post(c->plug->mailbox, &c->drained, on_drained);
}

/* On the worker's thread. */
static void drain_on_worker(void *owner, struct mail *mail)
{
	struct plug_conn *c = container_of(mail, struct plug_conn, drained);

	(void)owner;
	sandbox_drain(c->sandbox, tell_drained, c);
}

static void commit_run(struct plug_conn *c)
{
	struct leave *l = &c->leave;

	plug_set_state(c, PLUG_LEAVING);
	c->left = true;
	fd_closep(&c->fd);
	fd_closep(&c->records_fd);
	fd_closep(&c->policy_fd);
	fd_closep(&l->pipe);
	buf_done(&l->state);
	/* Its tails, and what they count, are the other one's. */
	plug_tails_free(c);
	audit_sink_free(l->sink);
	l->sink = NULL;
	c->sink = l->into;
	worker_post(l->worker, &c->drained, drain_on_worker);
}

void plug_leave_commit(struct plug *p, int line)
{
	struct plug_conn *c;

	p->line = line;
	plug_stop_listening(p);
	each_conn(p, c) {
		if (c->state == PLUG_FROZEN)
			commit_run(c);
		else if (c->state == PLUG_WAITING)
			plug_conn_gone(c);
	}
	plug_preds_free(p);
}

void plug_leave_line_lost(struct plug *p)
{
	p->line = -1;
}

/* --- after ------------------------------------------------------------------------- */

static void begin_about(enum handover_type type, const struct plug_conn *c,
			struct handover_about *ret)
{
	*ret = (struct handover_about){
		.head = { HANDOVER_MAGIC, HANDOVER_VERSION, (uint16_t)type },
	};
	memcpy(ret->run, c->open.run, sizeof(ret->run));
}

static int send_about(struct plug *p, const struct handover_about *m)
{
	if (p->line < 0)
		return -EPIPE;
	return fd_send_msg(p->line, m, sizeof(*m), NULL, 0);
}

void plug_leave_tell_end(struct plug_conn *c)
{
	struct handover_about m;
	int err;

	begin_about(HANDOVER_LEFT, c, &m);
	m.bytes[QUOTA_UP] = c->bytes_up - c->leave.bytes_up;
	m.bytes[QUOTA_DOWN] = c->bytes_down - c->leave.bytes_down;
	m.memory_peak = c->memory_peak;
	err = send_about(c->plug, &m);
	if (err < 0)
		log_debug("run %s: its end here is not told: %s", c->open.run,
			  strerror(-err));
}

struct reporting {
	struct plug_conn *conn;
	unsigned connections;
};

static int report(void *arg, const char *rule, const uint64_t used[QUOTA_WAYS])
{
	const struct reporting *r = arg;
	struct handover_about m;

	begin_about(HANDOVER_USED, r->conn, &m);
	m.connections = r->connections;
	m.bytes[QUOTA_UP] = used[QUOTA_UP];
	m.bytes[QUOTA_DOWN] = used[QUOTA_DOWN];
	if (strlen(rule) >= sizeof(m.rule))
		return 0;
	memcpy(m.rule, rule, strlen(rule));
	return send_about(r->conn->plug, &m);
}

void plug_leave_report(struct plug *p)
{
	static const uint64_t none[QUOTA_WAYS];
	struct plug_conn *c;

	each_conn(p, c) {
		struct reporting r = { .conn = c };
		int err = 0;

		if (c->state != PLUG_LEAVING)
			continue;
		r.connections = quota_connections(c->leave.quota);
		if (r.connections != c->told)
			err = report(&r, "", none);
		if (err == 0)
			c->told = r.connections;
		(void)!ledger_report(&c->ledger, c->leave.quota, report, &r);
	}
}

static struct plug_conn *leaving_run(struct plug *p, const char *run)
{
	struct plug_conn *c;

	each_conn(p, c)
		if (c->state == PLUG_LEAVING && strcmp(c->open.run, run) == 0)
			return c;
	return NULL;
}

void plug_leave_on_about(struct plug *p, const union handover_msg *m, int fd)
{
	struct plug_conn *c = leaving_run(p, m->about.run);
	CLEANUP(fd_closep) int policy = fd;

	if (!c)
		return;		/* it has ended meanwhile */
	if (m->head.type == HANDOVER_END)
		plug_conn_end(c, REASON_RUN_ENDED);
	else if (m->head.type == HANDOVER_POLICY)
		plug_leave_swap(c, policy);
	else if (ledger_note(&c->ledger, c->leave.quota, m->about.rule,
			     m->about.bytes) < 0)
		plug_conn_end(c, REASON_INTERNAL_ERROR);
}
