/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_tail.c - flows of our runs that stay in a process before this one
 *
 * A process that handed its runs over keeps the flows that were open, and ends
 * with the last of them.  A line leads to it (struct plug_pred), by which it is
 * told of runs that end and of other policies, and by which either tells what
 * was used of a run's budgets.  The records of those flows come by a pipe for
 * each run (struct plug_tail) and get their numbers here.  The end of a pipe
 * says that the run has nothing left there; the end of the line, that the
 * process has gone.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "audit/relay.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/plug_own.h"
#include "proxy/quota.h"

#define TAIL_READ	16384	/* bytes of records in one turn */
#define REPORT_MS	250	/* between two reports of what was used */

struct quota *plug_conn_quota(const struct plug_conn *c)
{
	return c->leave.quota;
}

/* --- one tail ------------------------------------------------------------------- */

static void tail_free(struct plug_tail *t)
{
	struct quota *q = plug_conn_quota(t->conn);

	if (q)
		quota_note_connections(q, -(int)t->connections);
	list_del(&t->node);
	if (t->event)
		event_free(t->event);
	fd_closep(&t->fd);
	buf_done(&t->cut);
	ledger_done(&t->ledger);
	mem_free(t);
}

void plug_tails_free(struct plug_conn *c)
{
	while (!list_empty(&c->tails))
		tail_free(list_first(&c->tails, struct plug_tail, node));
}

/* May free the connection. */
static void tail_end(struct plug_tail *t)
{
	struct plug_conn *c = t->conn;

	if (t->cut.n > 0)
		log_error("run %s: the last record of a process before is cut",
			  c->open.run);
	tail_free(t);
	if (!list_empty(&c->tails) || c->state != PLUG_ENDING || c->sandbox)
		return;
	event_del(c->timer);
	plug_conn_finish(c);
}

static void tail_take_lines(struct plug_tail *t)
{
	struct str rest = buf_str(&t->cut), line;
	size_t end;

	while ((end = str_chr(rest, '\n')) < rest.n) {
		line = str_make(rest.p, end);
		rest = str_make(rest.p + end + 1, rest.n - end - 1);
		/* An empty one ends what was torn. */
		if (line.n > 0 && audit_relay(t->conn->sink, line) == -EPROTO)
			log_error("run %s: what a process before sent is no record",
				  t->conn->open.run);
	}
	buf_consume(&t->cut, t->cut.n - rest.n);
}

static void tail_cb(evutil_socket_t fd, short what, void *arg)
{
	struct plug_tail *t = arg;
	char bytes[TAIL_READ];
	ssize_t n = read(fd, bytes, sizeof(bytes));

	(void)what;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && buf_add(&t->cut, bytes, (size_t)n) == 0) {
		tail_take_lines(t);
		return;
	}
	if (n > 0)
		log_error("run %s: records of a process before are lost: a line without an end, or no memory",
			  t->conn->open.run);
	tail_end(t);
}

int plug_tail_add(struct plug_conn *c, struct plug_pred *pred, int pipe,
		  unsigned connections, struct plug_tail **ret)
{
	struct plug_tail *t = mem_new(sizeof(*t));
	struct quota *q = plug_conn_quota(c);

	if (!t) {
		fd_closep(&pipe);
		return -ENOMEM;
	}
	t->conn = c;
	t->pred = pred;
	t->fd = pipe;
	t->cut = BUF_INIT(TAIL_READ + RECORD_LINE_MAX);
	ledger_init(&t->ledger);
	list_add(&c->tails, &t->node);
	t->event = event_new(c->plug->config.base, pipe, EV_READ | EV_PERSIST,
			     tail_cb, t);
	if (!t->event || (q && ledger_start(&t->ledger, q) < 0)) {
		tail_free(t);
		return -ENOMEM;
	}
	t->connections = connections;
	if (q)
		quota_note_connections(q, (int)connections);
	*ret = t;
	return 0;
}

int plug_tail_watch(struct plug_tail *t)
{
	return event_add(t->event, NULL) < 0 ? -ENOMEM : 0;
}

/* --- the line to a process before --------------------------------------------------- */

size_t plug_preds(const struct plug *p)
{
	const struct list *it;
	size_t n = 0;

	for (it = p->preds.next; it != &p->preds; it = it->next)
		n++;
	return n;
}

static void pred_free(struct plug_pred *pred)
{
	list_del(&pred->node);
	if (pred->event)
		event_free(pred->event);
	fd_closep(&pred->fd);
	mem_free(pred);
}

void plug_preds_free(struct plug *p)
{
	while (!list_empty(&p->preds))
		pred_free(list_first(&p->preds, struct plug_pred, node));
	if (p->reports)
		event_free(p->reports);
	p->reports = NULL;
}

/* It has gone, or does not listen: then it ends what it has.  Its pipes end by
 * themselves. */
static void pred_lost(struct plug_pred *pred)
{
	struct plug *p = pred->plug;
	struct list *it, *tmp, *at, *next;

	list_each(&p->conns, it, tmp) {
		struct plug_conn *c = container_of(it, struct plug_conn, node);

		list_each(&c->tails, at, next) {
			struct plug_tail *t = container_of(at, struct plug_tail,
							   node);

			if (t->pred == pred)
				t->pred = NULL;
		}
	}
	pred_free(pred);
	/* Had it been about to say so, it will not any more. */
	if (p->config.on_over)
		p->config.on_over(p->config.arg);
	if (list_empty(&p->preds) && p->reports)
		event_del(p->reports);
	if (p->config.on_idle && list_empty(&p->preds))
		p->config.on_idle(p->config.arg);
}

static struct plug_tail *tail_of(const struct plug_pred *pred, const char *run)
{
	struct list *it, *tmp, *at, *next;

	list_each(&pred->plug->conns, it, tmp) {
		struct plug_conn *c = container_of(it, struct plug_conn, node);

		if (strcmp(c->open.run, run) != 0)
			continue;
		list_each(&c->tails, at, next) {
			struct plug_tail *t = container_of(at, struct plug_tail,
							   node);

			if (t->pred == pred)
				return t;
		}
	}
	return NULL;
}

static void tail_on_used(struct plug_tail *t, const struct handover_about *m)
{
	struct quota *q = plug_conn_quota(t->conn);
	int more = (int)m->connections - (int)t->connections;

	if (!q)
		return;
	quota_note_connections(q, more);
	t->connections = m->connections;
	if (ledger_note(&t->ledger, q, m->rule, m->bytes) < 0)
		log_error("run %s: what a process before used is not counted: out of memory",
			  t->conn->open.run);
}

static void tail_on_left(const struct plug_tail *t,
			 const struct handover_about *m)
{
	struct plug_conn *c = t->conn;

	c->tails_up += m->bytes[QUOTA_UP];
	c->tails_down += m->bytes[QUOTA_DOWN];
	c->memory_peak = MAX(c->memory_peak, m->memory_peak);
}

static void pred_on_about(const struct plug_pred *pred,
			  const struct handover_about *m)
{
	struct plug_tail *t = tail_of(pred, m->run);

	if (t && m->head.type == HANDOVER_USED)
		tail_on_used(t, m);
	else if (t)
		tail_on_left(t, m);
}

static void pred_cb(evutil_socket_t fd, short what, void *arg)
{
	static union handover_msg m;	/* on the main thread alone */
	char bytes[sizeof(struct handover_about) + 1];
	struct plug_pred *pred = arg;
	int fds[FD_PASS_MAX];
	struct plug_why why;
	size_t n = 0, nfds = 0;
	int err = fd_recv_msg(fd, bytes, sizeof(bytes), &n, fds, &nfds);
	int type;

	(void)what;
	if (err == -EAGAIN)
		return;
	if (err < 0 || n == 0) {
		pred_lost(pred);
		return;
	}
	type = handover_parse(str_make(bytes, n), nfds, &m, &why);
	while (nfds > 0)
		fd_closep(&fds[--nfds]);
	if (type == HANDOVER_OVER) {
		if (pred->plug->config.on_over)
			pred->plug->config.on_over(pred->plug->config.arg);
	} else if (type == HANDOVER_USED || type == HANDOVER_LEFT) {
		pred_on_about(pred, &m.about);
	} else {
		log_error("a process before said what is nothing to say: %s",
			  type < 0 ? why.text : "not now");
		pred_lost(pred);
	}
}

int plug_pred_add(struct plug *p, int fd, struct plug_pred **ret)
{
	struct plug_pred *pred = mem_new(sizeof(*pred));
	int err = fd_set_nonblock(fd, true);

	if (!pred || err < 0) {
		mem_free(pred);
		fd_closep(&fd);
		return err < 0 ? err : -ENOMEM;
	}
	pred->plug = p;
	pred->fd = fd;
	list_add(&p->preds, &pred->node);
	pred->event = event_new(p->config.base, fd, EV_READ | EV_PERSIST,
				pred_cb, pred);
	if (!pred->event) {
		pred_free(pred);
		return -ENOMEM;
	}
	*ret = pred;
	return 0;
}

/* May lose the process. */
static int pred_send(struct plug_pred *pred, const void *m, size_t n, int fd)
{
	int err = fd_send_msg(pred->fd, m, n, &fd, fd >= 0 ? 1 : 0);

	if (err < 0) {
		log_warn("a process before does not listen: %s; its flows end",
			 strerror(-err));
		pred_lost(pred);
	}
	return err;
}

static void about(enum handover_type type, const struct plug_conn *c,
		  struct handover_about *ret)
{
	*ret = (struct handover_about){
		.head = { HANDOVER_MAGIC, HANDOVER_VERSION, (uint16_t)type },
		.generation = c->generation,
	};
	memcpy(ret->run, c->open.run, sizeof(ret->run));
}

/* Losing a process changes no list of tails, but what they point to. */
static void tails_send(struct plug_conn *c, enum handover_type type, int fd)
{
	struct handover_about m;
	struct list *it, *tmp;

	about(type, c, &m);
	list_each(&c->tails, it, tmp) {
		struct plug_tail *t = container_of(it, struct plug_tail, node);

		if (t->pred)
			(void)!pred_send(t->pred, &m, sizeof(m), fd);
	}
}

void plug_tails_end(struct plug_conn *c)
{
	tails_send(c, HANDOVER_END, -1);
}

void plug_tails_swap(struct plug_conn *c)
{
	if (c->policy_fd >= 0)
		tails_send(c, HANDOVER_POLICY, c->policy_fd);
	else
		tails_send(c, HANDOVER_END, -1);
}

void plug_preds_reload(struct plug *p)
{
	const struct handover_head m = { HANDOVER_MAGIC, HANDOVER_VERSION,
					 HANDOVER_RELOAD };
	struct list *it, *tmp;

	list_each(&p->preds, it, tmp)
		(void)!pred_send(container_of(it, struct plug_pred, node), &m,
				 sizeof(m), -1);
}

/* --- what was used -------------------------------------------------------------------- */

static int tail_report(void *arg, const char *rule,
		       const uint64_t used[QUOTA_WAYS])
{
	struct plug_tail *t = arg;
	struct handover_about m;

	about(HANDOVER_USED, t->conn, &m);
	m.bytes[QUOTA_UP] = used[QUOTA_UP];
	m.bytes[QUOTA_DOWN] = used[QUOTA_DOWN];
	if (!t->pred || strlen(rule) >= sizeof(m.rule))
		return 0;
	memcpy(m.rule, rule, strlen(rule));
	return pred_send(t->pred, &m, sizeof(m), -1);
}

static void reports_cb(evutil_socket_t fd, short what, void *arg)
{
	struct plug *p = arg;
	struct list *it, *tmp, *at, *next;

	(void)fd;
	(void)what;
	list_each(&p->conns, it, tmp) {
		struct plug_conn *c = container_of(it, struct plug_conn, node);
		struct quota *q = c->state == PLUG_RUNNING ?
			plug_conn_quota(c) : NULL;

		list_each(&c->tails, at, next) {
			struct plug_tail *t = container_of(at, struct plug_tail,
							   node);

			if (q && t->pred)
				(void)!ledger_report(&t->ledger, q,
						     tail_report, t);
		}
	}
}

int plug_preds_watch(struct plug *p)
{
	static const struct timeval every = { .tv_usec = REPORT_MS * 1000 };
	struct list *it, *tmp;
	int err = 0;

	list_each(&p->preds, it, tmp)
		err |= event_add(container_of(it, struct plug_pred,
					      node)->event, NULL);
	if (!list_empty(&p->preds) && !p->reports) {
		p->reports = event_new(p->config.base, -1, EV_PERSIST,
				       reports_cb, p);
		err |= p->reports ? event_add(p->reports, &every) : -1;
	}
	return err ? -ENOMEM : 0;
}

void plug_preds_end(struct plug *p)
{
	struct list *it, *tmp;

	/* No more is said, and what is said is heard to its end. */
	list_each(&p->preds, it, tmp)
		(void)!shutdown(container_of(it, struct plug_pred, node)->fd,
				SHUT_WR);
}
