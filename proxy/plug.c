/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug.c - the control socket: one connection is one run
 *
 * Theory of operation
 * ===================
 *
 * A run is a connection.  What it brings is checked (plug_check.c), its policy
 * compiled, its sandbox made on the least loaded worker; the launcher hears
 * PLUG_READY only when all of that is done.  The end of the connection, however
 * it comes about, is the end of the run.
 *
 *	WAITING --> PLACING --> RUNNING --> ENDING --> FLUSHING --> GONE
 *	   |           |                      ^           ^          ^
 *	   |           +----------------------+           |          |
 *	   |           +----------------------------------+          |
 *	   +---------------------------------------------------------+
 *
 *   from       to         by                   because
 *   WAITING    PLACING    plug_on_open()       the plug is as it should be
 *   WAITING    GONE       plug_conn_refuse()   it is not; or nobody spoke
 *   WAITING    ASKING     plug_on_reload()     no run: the service's policies are
 *                                              to be read anew (plug_swap.c)
 *   ASKING     GONE       reload_answer()      and every worker has them
 *   WAITING    COMPILING  plug_on_open()       its policy is a large one
 *   COMPILING  PLACING    plug_on_compiled()   and is one
 *   COMPILING  GONE       plug_on_compiled()   it is none; or nobody wants it
 *                                              any more
 *   PLACING    RUNNING    plug_on_placed()     the worker has the sandbox
 *   PLACING    ENDING     plug_on_placed()     but the launcher is gone again
 *   PLACING    FLUSHING   plug_on_placed()     the worker could not make it
 *   RUNNING    ENDING     plug_conn_end()      end of connection, PLUG_CLOSE,
 *                                              a violation, our own shutdown
 *   RUNNING    FROZEN     plug_leave_begin()   another process is to have it
 *   FROZEN     RUNNING    plug_leave_abort()   and will not
 *   FROZEN     LEAVING    plug_leave_commit()  and has: open flows stay
 *   LEAVING    ENDING     plug_on_drained()    the last of them has ended; or
 *                         plug_conn_end()      it must
 *   WAITING    FROZEN     plug_adopt_go()      it is from a process before, and
 *   FROZEN     RUNNING                         this one's from here on
 *   ENDING     FLUSHING   plug_on_ended()      the worker closed everything
 *   ENDING     GONE       plug_on_ended()      the same, and another has the run
 *   FLUSHING   GONE       plug_conn_flush()    the last record is written, or
 *                                              PLUG_FLUSH_MAX_MS went by
 *
 * While PLACING and ENDING the connection's mail is on its way to the worker
 * and back, while COMPILING to the compiler, and what it sits in must live; in
 * all other states it is ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "audit/writer.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/plug_own.h"
#include "proxy/worker.h"
#include "rules/rules.h"

/* The audit thread needs far less, where the disk takes it: no timer then. */
#define PLUG_FLUSH_WAIT_MS	1
#define PLUG_FLUSH_STEP_MS	1	/* doubled each time */

static const struct {
	const char *name;
	uint32_t next;
} plug_states[] = {
	[PLUG_WAITING]   = { "waiting",   BIT(PLUG_ASKING) |
					  BIT(PLUG_COMPILING) |
					  BIT(PLUG_FROZEN) |
					  BIT(PLUG_PLACING) | BIT(PLUG_GONE) },
	[PLUG_ASKING]    = { "asking",    BIT(PLUG_GONE) },
	[PLUG_COMPILING] = { "compiling", BIT(PLUG_PLACING) | BIT(PLUG_GONE) },
	[PLUG_PLACING]   = { "placing",   BIT(PLUG_RUNNING) |
					  BIT(PLUG_ENDING) |
					  BIT(PLUG_FLUSHING) },
	[PLUG_RUNNING]   = { "running",   BIT(PLUG_FROZEN) |
					  BIT(PLUG_ENDING) },
	[PLUG_FROZEN]    = { "frozen",    BIT(PLUG_RUNNING) |
					  BIT(PLUG_LEAVING) |
					  BIT(PLUG_GONE) },
	[PLUG_LEAVING]   = { "leaving",   BIT(PLUG_ENDING) },
	[PLUG_ENDING]    = { "ending",    BIT(PLUG_FLUSHING) |
					  BIT(PLUG_GONE) },
	[PLUG_FLUSHING]  = { "flushing",  BIT(PLUG_GONE) },
	[PLUG_GONE]      = { "gone",      0 },
};
_Static_assert(ARRAY_SIZE(plug_states) == PLUG_STATES, "name every state");

static void plug_conn_check(const struct plug_conn *c)
{
	REQUIRE(c->fd >= 0 || c->left || c->state == PLUG_GONE);
	REQUIRE(c->sink || c->state == PLUG_WAITING ||
		c->state == PLUG_ASKING || c->state == PLUG_COMPILING ||
		c->state == PLUG_GONE);
	REQUIRE(c->sandbox || (c->state != PLUG_RUNNING &&
			       c->state != PLUG_LEAVING));
}

void plug_set_state(struct plug_conn *c, enum plug_state to)
{
	REQUIRE(plug_states[c->state].next & BIT(to));
	log_debug("run %s: %s -> %s", c->open.run[0] ? c->open.run : "-",
		  plug_states[c->state].name, plug_states[to].name);
	c->state = to;
	plug_conn_check(c);
}

/* --- the end of a connection ---------------------------------------------------- */

void plug_conn_free(struct plug_conn *c)
{
	struct plug *p = c->plug;

	if (c->read)
		event_free(c->read);
	if (c->timer)
		event_free(c->timer);
	fd_closep(&c->fd);
	fd_closep(&c->records_fd);
	fd_closep(&c->policy_fd);
	fd_closep(&c->adopted_pipe);
	plug_tails_free(c);
	leave_done(&c->leave);
	ledger_done(&c->ledger);
	plug_drop_swaps(c);
	/* Of a compiler that has ended before it told. */
	rules_unref(c->compile.rules);
	/* It writes on in the background, should anything be left. */
	if (c->sink)
		audit_sink_free(c->sink);
	list_del(&c->node);
	plug_user_leave(c->user);
	mem_free(c);
	p->nconns--;
	if (p->nconns == 0 && p->config.on_idle)
		p->config.on_idle(p->config.arg);
}

void plug_conn_gone(struct plug_conn *c)
{
	plug_set_state(c, PLUG_GONE);
	event_del(c->read);
	event_del(c->timer);
	fd_closep(&c->fd);
	if (list_empty(&c->swaps))
		plug_conn_free(c);
}

void plug_conn_send(struct plug_conn *c, const void *msg, size_t n)
{
	int err;

	if (c->peer_gone || c->left)
		return;
	err = fd_send_msg(c->fd, msg, n, NULL, 0);
	if (err < 0)
		log_debug("run %s: %s", c->open.run, strerror(-err));
}

static void plug_conn_say_refused(struct plug_conn *c,
				  const struct plug_why *why)
{
	struct plug_refused m = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_REFUSED },
	};

	memcpy(m.text, why->text, sizeof(m.text));
	m.text[sizeof(m.text) - 1] = '\0';
	log_warn("refused a plug from uid %u: %s", (unsigned)c->peer.uid,
		 m.text);
	plug_conn_send(c, &m, sizeof(m));
}

void plug_conn_refuse(struct plug_conn *c, const struct plug_why *why)
{
	plug_conn_say_refused(c, why);
	plug_conn_gone(c);
}

static void plug_conn_flush(struct plug_conn *c, int wait_ms)
{
	struct plug_closed m = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_CLOSED },
	};
	int err = audit_sink_flush(c->sink, wait_ms);
	struct timeval step = { .tv_usec = c->flush_step_ms * 1000 };

	if (err < 0 && clock_mono_ms() < c->flush_until_ms &&
	    event_add(c->timer, &step) == 0) {
		c->flush_step_ms = MIN(c->flush_step_ms * 2, 100);
		return;
	}
	if (err < 0)
		log_error("run %s: records are not written: %s", c->open.run,
			  strerror(-err));
	m.audit_ok = err == 0;
	m.records = audit_seq(c->sink);
	plug_conn_send(c, &m, sizeof(m));
	plug_conn_gone(c);
}

void plug_conn_finish(struct plug_conn *c)
{
	struct record r;

	sandbox_record(RECORD_RUN_END, RECORD_ACT_NONE, c->why,
		       RECORD_VIA_NONE, &r);
	r.bytes_up = c->bytes_up + c->tails_up;
	r.bytes_down = c->bytes_down + c->tails_down;
	r.over_budget = c->over_budget;
	r.memory_peak = c->memory_peak;
	r.dur_ms = clock_mono_ms() - c->started_ms;
	audit_tell(c->sink, &r);
	c->flush_until_ms = clock_mono_ms() + PLUG_FLUSH_MAX_MS;
	c->flush_step_ms = PLUG_FLUSH_STEP_MS;
	plug_set_state(c, PLUG_FLUSHING);
	plug_conn_flush(c, PLUG_FLUSH_WAIT_MS);
}

/* What is left of it here has ended, and whoever has the run is told. */
static void plug_conn_on_left(struct plug_conn *c)
{
	plug_leave_tell_end(c);
	audit_sink_free(c->sink);
	c->sink = NULL;
	plug_conn_gone(c);
}

/* Its flows in processes before were told to end; not for ever. */
static void plug_conn_await_tails(struct plug_conn *c)
{
	static const struct timeval wait = { PLUG_FLUSH_MAX_MS / 1000, 0 };

	if (event_add(c->timer, &wait) < 0)
		plug_conn_finish(c);
}

/* On the main thread, with the mail's return. */
static void plug_on_ended(void *owner, struct mail *mail)
{
	struct plug_conn *c = container_of(mail, struct plug_conn, mail);

	(void)owner;
	c->plug->load[c->worker]--;
	if (c->left)
		plug_conn_on_left(c);
	else if (list_empty(&c->tails))
		plug_conn_finish(c);
	else
		plug_conn_await_tails(c);
}

/* On the worker's thread, outside any connection's callback: what ended is
 * freed here and not at the end of the turn. */
static void plug_end_on_worker(void *owner, struct mail *mail)
{
	struct plug_conn *c = container_of(mail, struct plug_conn, mail);
	struct worker *w = owner;

	sandbox_end(c->sandbox, c->why);
	conn_reclaim(w);
	c->bytes_up = c->sandbox->bytes_up;
	c->bytes_down = c->sandbox->bytes_down;
	c->over_budget = sandbox_over_budget(c->sandbox);
	c->memory_peak = MAX(c->memory_peak, sandbox_memory_peak(c->sandbox));
	sandbox_free(c->sandbox);
	c->sandbox = NULL;
	mailbox_post(c->plug->mailbox, mail, plug_on_ended);
}

void plug_conn_start_end(struct plug_conn *c)
{
	plug_set_state(c, PLUG_ENDING);
	plug_tails_end(c);
	worker_post(c->plug->config.worker[c->worker], &c->mail,
		    plug_end_on_worker);
}

/* May free the connection. */
void plug_conn_end(struct plug_conn *c, enum reason why)
{
	if (!c->end_asked)
		c->why = why;
	c->end_asked = true;
	if (c->state == PLUG_WAITING || c->state == PLUG_ASKING)
		plug_conn_gone(c);
	else if (c->state == PLUG_RUNNING || c->state == PLUG_LEAVING)
		plug_conn_start_end(c);
	/* PLACING, COMPILING: plug_on_placed() and plug_on_compiled() look at
	 * end_asked; else it ends already */
}

/* --- the beginning ----------------------------------------------------------------- */

static void plug_on_placed(void *owner, struct mail *mail)
{
	struct plug_conn *c = container_of(mail, struct plug_conn, mail);
	struct plug_why why;

	(void)owner;
	if (c->placed < 0) {
		c->plug->load[c->worker]--;
		rules_unref(c->config.rules);
		c->config.rules = NULL;
		plug_refuse(&why, "cannot take the sandbox in: %s",
			    strerror(-c->placed));
		plug_conn_say_refused(c, &why);
		c->why = REASON_INTERNAL_ERROR;
		plug_conn_finish(c);
		return;
	}
	if (c->end_asked) {
		plug_conn_start_end(c);
		return;
	}
	plug_set_state(c, PLUG_RUNNING);
	plug_conn_send(c, &c->ready, sizeof(c->ready));
}

/* On the worker's thread. */
static void plug_place_on_worker(void *owner, struct mail *mail)
{
	struct plug_conn *c = container_of(mail, struct plug_conn, mail);

	c->placed = sandbox_new(owner, &c->config, &c->sandbox);
	mailbox_post(c->plug->mailbox, mail, plug_on_placed);
}

size_t plug_least_loaded(const struct plug *p)
{
	size_t i, best = 0;

	for (i = 1; i < p->config.nworkers; i++)
		if (p->load[i] < p->load[best])
			best = i;
	return best;
}

static void plug_conn_place(struct plug_conn *c)
{
	struct plug *p = c->plug;

	c->worker = plug_least_loaded(p);
	p->load[c->worker]++;
	event_del(c->timer);
	plug_to_sandbox(&c->open, c->passed, &c->config);
	plug_set_state(c, PLUG_PLACING);
	worker_post(p->config.worker[c->worker], &c->mail,
		    plug_place_on_worker);
}

void plug_conn_fill_ready(struct plug_conn *c)
{
	const struct ruleset *rules = c->config.rules;

	c->ready.head = (struct plug_head){ PLUG_MAGIC, PLUG_VERSION,
					    PLUG_READY };
	c->ready.rules = (uint32_t)rules_count(rules);
	c->ready.observe = rules_observe(rules);
	/* Longer names are cut; the digest tells policies apart. */
	(void)!snprintf(c->ready.digest, sizeof(c->ready.digest), "%s",
			rules_digest(rules));
	(void)!snprintf(c->ready.name, sizeof(c->ready.name), "%s",
			rules_name(rules));
}

void plug_conn_keep_policy(struct plug_conn *c, int *fd)
{
	if (c->plug->config.service && *fd >= 0) {
		fd_closep(&c->policy_fd);
		c->policy_fd = fd_take(fd);
	}
	fd_closep(fd);
}

/* With c->config.rules. */
static int plug_conn_open(struct plug_conn *c, struct plug_why *why)
{
	int err;

	plug_conn_keep_policy(c, &c->passed[PLUG_FD_POLICY]);
	plug_conn_fill_ready(c);
	err = plug_conn_open_sink(c, why);
	if (err == 0)
		err = plug_user_quota(c->user, c->config.rules,
				      &c->config.quota, why);
	if (err == 0)
		err = plug_conn_record_start(c, why);
	return err;
}

void plug_conn_drop_opened(struct plug_conn *c)
{
	size_t i;

	for (i = 0; i < PLUG_FDS; i++)
		fd_closep(&c->passed[i]);
	sandbox_config_close(&c->config);
	rules_unref(c->config.rules);
	c->config.rules = NULL;
}

/* Its policy is there, or @err and @why.  May free the connection. */
static void plug_conn_go_on(struct plug_conn *c, int err, struct plug_why *why)
{
	if (err == 0)
		err = plug_conn_open(c, why);
	if (err == 0) {
		plug_conn_place(c);
		return;
	}
	plug_conn_drop_opened(c);
	plug_conn_refuse(c, why);
}

static void plug_on_compiled(struct compile *job)
{
	struct plug_conn *c = container_of(job, struct plug_conn, compile);
	int err = job->err;

	if (err == 0)
		err = plug_suits(c->plug->config.parents, job->rules,
				 &job->why);
	c->config.rules = job->rules;
	job->rules = NULL;
	if (!c->end_asked) {
		plug_conn_go_on(c, err, &job->why);
		return;
	}
	plug_conn_drop_opened(c);
	plug_conn_gone(c);
}

/* Does the policy take long, and is theirs to bring?  Then it is on its way. */
static bool plug_conn_compile(struct plug_conn *c)
{
	struct compiler *compiler = c->plug->config.compiler;
	int fd = c->passed[PLUG_FD_POLICY];

	if (fd < 0 || !c->peer.may_bring || !compiler_wants_fd(compiler, fd))
		return false;
	c->compile = (struct compile){
		.done = plug_on_compiled,
		.name = PLUG_BROUGHT_NAME,
		.fd = fd,
		.observe = c->open.flags & PLUG_FLAG_OBSERVE,
	};
	event_del(c->timer);
	plug_set_state(c, PLUG_COMPILING);
	compiler_post(compiler, &c->compile);
	return true;
}

/* Takes @fds.  May free the connection. */
static void plug_on_open(struct plug_conn *c, struct str msg, int *fds,
			 size_t nfds)
{
	const struct plug_config *config = &c->plug->config;
	struct plug_why why;
	size_t i;
	int err;

	if (c->state != PLUG_WAITING) {
		for (i = 0; i < nfds; i++)
			fd_closep(&fds[i]);
		log_warn("run %s: a second opening message ends it",
			 c->open.run);
		plug_conn_end(c, REASON_RUN_ENDED);
		return;
	}
	err = plug_peer_may_run(config, &c->peer, &why);
	if (err == 0)
		err = plug_parse_open(msg, nfds, &c->open, &why);
	if (err < 0) {
		for (i = 0; i < nfds; i++)
			fd_closep(&fds[i]);
		plug_conn_refuse(c, &why);
		return;
	}
	plug_place_fds(&c->open, fds, c->passed);
	err = plug_check_fds(&c->open, c->passed, config->own_netns, &why);
	if (err == 0 && plug_conn_compile(c))
		return;
	if (err == 0)
		err = plug_peer_policy(config, &c->peer, &c->open,
				       c->passed[PLUG_FD_POLICY],
				       &c->config.rules, &why);
	plug_conn_go_on(c, err, &why);
}

/* --- messages ------------------------------------------------------------------------- */

/* Takes @fds.  May free the connection. */
static void plug_conn_on_message(struct plug_conn *c, struct str msg,
				 int *fds, size_t nfds)
{
	struct plug_why why;
	int type = plug_parse_head(msg, &why);
	size_t i;

	if (c->state == PLUG_WAITING && handover_speaks(msg)) {
		plug_on_hello(c, msg, fds, nfds);
		return;
	}
	if (type == PLUG_OPEN || type == PLUG_SWAP) {
		(type == PLUG_OPEN ? plug_on_open : plug_on_swap)(c, msg, fds,
								  nfds);
		return;
	}
	for (i = 0; i < nfds; i++)
		fd_closep(&fds[i]);
	if (type < 0 && c->state == PLUG_WAITING) {
		plug_conn_refuse(c, &why);
		return;
	}
	if (type == PLUG_RELOAD && nfds == 0 && c->state == PLUG_WAITING) {
		plug_on_reload(c);
		return;
	}
	if (type < 0 || type == PLUG_RELOAD || nfds > 0)
		log_warn("run %s: ended by a message that is none: %s",
			 c->open.run, type < 0 ? why.text
			 : type == PLUG_RELOAD
			 ? "PLUG_RELOAD comes alone, where there is no run"
			 : "PLUG_CLOSE carries no descriptor");
	plug_conn_end(c, REASON_RUN_ENDED);
}

static void plug_read_cb(evutil_socket_t fd, short what, void *arg)
{
	_Alignas(struct plug_open) char msg[sizeof(struct plug_open) + 1];
	struct plug_conn *c = arg;
	int fds[FD_PASS_MAX];
	size_t n = 0, nfds = 0;
	int err = fd_recv_msg(fd, msg, sizeof(msg), &n, fds, &nfds);

	(void)what;
	if (err == -EAGAIN)
		return;
	if (err == 0 && n > 0) {
		plug_conn_on_message(c, str_make(msg, n), fds, nfds);
		return;
	}
	if (err < 0)
		log_warn("run %s: plug: %s", c->open.run, strerror(-err));
	/* It stays readable for ever now. */
	event_del(c->read);
	c->peer_gone = err == 0 || err == -ECONNRESET;
	plug_conn_end(c, REASON_RUN_ENDED);
}

static void plug_timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct plug_conn *c = arg;
	struct plug_why why;

	(void)fd;
	(void)what;
	if (c->state == PLUG_FLUSHING) {
		plug_conn_flush(c, 0);
		return;
	}
	if (c->state == PLUG_ENDING) {
		log_error("run %s: a process before did not end its flows in time",
			  c->open.run);
		plug_tails_free(c);
		plug_conn_finish(c);
		return;
	}
	if (c->state != PLUG_WAITING)
		return;		/* who asks for a reload waits for its end */
	plug_refuse(&why, "nothing was said for %d seconds",
		    PLUG_OPEN_MS / 1000);
	plug_conn_refuse(c, &why);
}

int plug_conn_new(struct plug *p, int fd, struct plug_conn **ret)
{
	struct plug_conn *c;
	int err;

	if (p->nconns >= PLUG_CONNS_MAX ||
	    !(c = mem_new(sizeof(*c)))) {
		fd_closep(&fd);
		return p->nconns >= PLUG_CONNS_MAX ? -EUSERS : -ENOMEM;
	}
	c->plug = p;
	c->fd = fd;
	memset(c->passed, -1, sizeof(c->passed));
	c->generation = 1;
	c->records_fd = c->policy_fd = c->adopted_pipe = -1;
	leave_init(&c->leave);
	ledger_init(&c->ledger);
	list_init(&c->swaps);
	list_init(&c->tails);
	list_add(&p->conns, &c->node);
	p->nconns++;
	c->read = event_new(p->config.base, fd, EV_READ | EV_PERSIST,
			    plug_read_cb, c);
	c->timer = event_new(p->config.base, -1, 0, plug_timer_cb, c);
	err = fd_set_nonblock(fd, true);
	if (err == 0 && (!c->read || !c->timer))
		err = -ENOMEM;
	if (err < 0) {
		plug_conn_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

int plug_attach(struct plug *p, int fd)
{
	static const struct timeval wait = { .tv_sec = PLUG_OPEN_MS / 1000 };
	struct plug_conn *c;
	struct plug_why why;
	int err = plug_conn_new(p, fd, &c);

	if (err < 0)
		return err;
	if (event_add(c->read, NULL) < 0 || event_add(c->timer, &wait) < 0) {
		plug_conn_free(c);
		return -ENOMEM;
	}
	if (plug_peer_init(&p->config, fd, &c->peer, &why) < 0 ||
	    plug_user_enter(&p->users, &p->config, c->peer.uid, &c->user,
			    &why) < 0)
		plug_conn_refuse(c, &why);
	return 0;
}

/* --- all of them ----------------------------------------------------------------------------- */

int plug_new(const struct plug_config *config, struct plug **ret)
{
	struct plug *p = mem_new(sizeof(*p));
	int err = -ENOMEM;

	if (!p)
		return -ENOMEM;
	p->config = *config;
	p->listen_fd = p->line = -1;
	p->config.own_uid = geteuid();
	list_init(&p->users);
	list_init(&p->preds);
	list_init(&p->conns);
	p->load = mem_new_array(config->nworkers, sizeof(p->load[0]));
	if (p->load)
		err = mailbox_new(config->base, p, &p->mailbox);
	if (err < 0) {
		plug_free(p);
		return err;
	}
	*ret = p;
	return 0;
}

void plug_end_all(struct plug *p, enum reason why)
{
	struct list *it, *tmp;

	list_each(&p->conns, it, tmp)
		plug_conn_end(container_of(it, struct plug_conn, node), why);
}

size_t plug_runs(const struct plug *p)
{
	return p->nconns;
}

void plug_free(struct plug *p)
{
	struct list *it, *tmp;

	if (!p)
		return;
	p->config.on_idle = NULL;
	plug_stop_listening(p);
	list_each(&p->conns, it, tmp) {
		struct plug_conn *c = container_of(it, struct plug_conn, node);

		plug_conn_drop_opened(c);
		plug_conn_free(c);
	}
	plug_preds_free(p);
	mailbox_free(p->mailbox);
	mem_free(p->load);
	mem_free(p);
}
