/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_swap.c - another policy for a run, or for all runs that named one
 *
 * Theory of operation
 * ===================
 *
 * A policy is compiled on the main thread, or on the compiler's where it is a
 * large one (compiler.h), while flows go on under the old one.
 * What does not compile changes nothing but the log, the records of the runs
 * that it was for, and what whoever asked is told.  What does goes to each
 * run's worker as a mail of its own; there the sandbox takes it over in one
 * step (sandbox_set_policy()), and the mail comes back with what became of the
 * open flows.
 *
 *	PLUG_SWAP	one run, by its launcher, who may bring a policy.  From
 *			then on it does not follow the service's.
 *	a reading	of the service's policies: each that changed goes to all
 *			the runs that named it.  One that is gone can be named
 *			no more; the runs that have it keep it, and say so.
 *
 * Whoever asked for a reading is answered when the last mail of it is back, so
 * that by then every worker has what was read.
 *
 * Mail to a worker and back keeps its order.  So a swap that is sent while a
 * run is PLACING finds the sandbox made, and one is back before the end of its
 * run is; only a run that could not be placed may be gone before its swaps
 * are, and is freed behind them.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "audit/writer.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/plug_own.h"
#include "proxy/policies.h"
#include "proxy/worker.h"
#include "rules/rules.h"

/* One run's way to another policy. */
struct swap {
	struct list node;		/* plug_conn.swaps */
	struct mail mail;
	struct plug_conn *conn;
	struct ruleset *rules;		/* one reference */
	struct plug_reload *reload;	/* it is part of, or NULL */
	uint32_t serial, generation;
	struct conn_rejudged what;
	bool done;
	/* of a large one, until it is compiled */
	struct compile compile;
	int fd;
};

/* One reading of the service's policies. */
struct plug_reload {
	struct plug *plug;
	size_t left;			/* swaps on their way, and the reading */
	uint32_t serial;
	bool whole;			/* the directory was read to its end */
	struct plug_reloaded m;		/* as it will be told */
};

/* --- one run ---------------------------------------------------------------------- */

static void swap_free(struct swap *s)
{
	list_del(&s->node);
	rules_unref(s->rules);
	rules_unref(s->compile.rules);
	fd_closep(&s->fd);
	mem_free(s);
}

void plug_reload_drop(struct plug_reload *r)
{
	if (--r->left == 0)
		mem_free(r);
}

void plug_drop_swaps(struct plug_conn *c)
{
	struct list *it, *tmp;

	list_each(&c->swaps, it, tmp) {
		struct swap *s = container_of(it, struct swap, node);

		if (s->reload)
			plug_reload_drop(s->reload);
		swap_free(s);
	}
}

static void say_swapped(struct plug_conn *c, const struct swap *s)
{
	struct plug_swapped m = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_SWAPPED },
		.serial = s->serial,
		.ok = 1,
		.generation = s->generation,
		.rules = (uint32_t)rules_count(s->rules),
		.kept = s->what.kept,
		.ended = s->what.ended,
	};

	(void)!snprintf(m.digest, sizeof(m.digest), "%s",
			rules_digest(s->rules));
	(void)!snprintf(m.name, sizeof(m.name), "%s", rules_name(s->rules));
	log_info("run %s: policy %s@sha256:%s is in force (%u): %u flows kept, %u ended",
		 c->open.run, m.name, m.digest, m.generation, m.kept, m.ended);
	plug_conn_send(c, &m, sizeof(m));
}

void plug_record_failed(struct audit_sink *sink, const struct plug_why *why)
{
	char line[PLUG_TEXT_MAX];
	struct record r;
	size_t i;

	sandbox_record(RECORD_POLICY_FAILED, RECORD_ACT_NONE, REASON_ALLOWED,
		       RECORD_VIA_NONE, &r);
	/* A record is one line, and so is each of its values. */
	memcpy(line, why->text, sizeof(line));
	line[sizeof(line) - 1] = '\0';
	for (i = 0; line[i]; i++)
		line[i] = line[i] == '\n' ? ';' : line[i];
	r.error = str_from(line);
	audit_tell(sink, &r);
}

/* The old policy stays: on the log, on record, and told to who asked. */
static void swap_refused(struct plug_conn *c, uint32_t serial,
			 const struct plug_why *why)
{
	struct plug_swapped m = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_SWAPPED },
		.serial = serial,
		.generation = c->generation,
	};

	if (c->left)
		return;
	log_warn("run %s: its policy stays as it was: %s", c->open.run,
		 why->text);
	plug_record_failed(c->sink, why);
	if (serial == 0)
		return;
	memcpy(m.text, why->text, sizeof(m.text));
	m.text[sizeof(m.text) - 1] = '\0';
	plug_conn_send(c, &m, sizeof(m));
}

static void reload_left(struct plug_reload *r);

/* On the main thread, with the mail's return. */
static void swap_on_back(void *owner, struct mail *mail)
{
	struct swap *s = container_of(mail, struct swap, mail);
	struct plug_reload *r = s->reload;
	struct plug_conn *c = s->conn;

	(void)owner;
	if (s->done && c->state == PLUG_RUNNING)
		say_swapped(c, s);
	if (r && s->done) {
		r->m.runs++;
		r->m.kept += s->what.kept;
		r->m.ended += s->what.ended;
	}
	swap_free(s);
	if (c->state == PLUG_GONE && list_empty(&c->swaps))
		plug_conn_free(c);
	if (r)
		reload_left(r);
}

/* On the worker's thread. */
static void swap_on_worker(void *owner, struct mail *mail)
{
	struct swap *s = container_of(mail, struct swap, mail);
	struct sandbox *sandbox = s->conn->sandbox;

	(void)owner;
	if (sandbox && !sandbox->ending) {
		/* Who has the run records that it has another one. */
		(s->conn->left ? sandbox_swap_rules : sandbox_set_policy)(
			sandbox, rules_ref(s->rules), s->generation, &s->what);
		s->done = true;
	}
	mailbox_post(s->conn->plug->mailbox, mail, swap_on_back);
}

static struct swap *swap_new(struct plug_conn *c, uint32_t serial)
{
	struct swap *s = mem_new(sizeof(*s));

	if (!s)
		return NULL;
	s->conn = c;
	s->serial = serial;
	s->fd = -1;
	list_add(&c->swaps, &s->node);
	return s;
}

/* With its rules. */
static void swap_send(struct swap *s)
{
	struct plug_conn *c = s->conn;

	s->generation = ++c->generation;
	worker_post(c->plug->config.worker[c->worker], &s->mail,
		    swap_on_worker);
}

/* Takes a reference of its own.  0 or -ENOMEM. */
static int swap_start(struct plug_conn *c, struct ruleset *rules,
		      uint32_t serial, struct plug_reload *r)
{
	struct swap *s = swap_new(c, serial);

	if (!s)
		return -ENOMEM;
	s->rules = rules_ref(rules);
	s->reload = r;
	if (r)
		r->left++;
	swap_send(s);
	return 0;
}

/* --- a large one ------------------------------------------------------------------- */

/* It has a policy of its own, and the text goes along where the run goes. */
static void swap_keep(struct plug_conn *c, int *fd)
{
	c->own_policy = true;
	plug_conn_keep_policy(c, fd);
}

static void swap_on_compiled(struct compile *job)
{
	struct swap *s = container_of(job, struct swap, compile);
	struct plug_conn *c = s->conn;
	int err = job->err;

	if (err == 0)
		err = plug_suits(c->plug->config.parents, job->rules,
				 &job->why);
	/* What was said meanwhile comes after it. */
	if (c->state == PLUG_RUNNING && event_add(c->read, NULL) < 0)
		log_error("run %s: cannot be heard any more: out of memory",
			  c->open.run);
	if (c->state == PLUG_RUNNING && err == 0) {
		s->rules = job->rules;
		job->rules = NULL;
		swap_keep(c, &s->fd);
		swap_send(s);
		plug_tails_swap(c);
		return;
	}
	if (c->state == PLUG_RUNNING)
		swap_refused(c, s->serial, &job->why);
	swap_free(s);
	if (c->state == PLUG_GONE && list_empty(&c->swaps))
		plug_conn_free(c);
}

/* Takes @fd where the policy takes long: then it is on its way.  One at a time:
 * until it is back, nothing is read from the connection. */
static bool swap_compile_there(struct plug_conn *c, int *fd, uint32_t serial)
{
	struct compiler *compiler = c->plug->config.compiler;
	struct swap *s;

	if (!c->peer.may_bring || !compiler_wants_fd(compiler, *fd))
		return false;
	s = swap_new(c, serial);
	if (!s)
		return false;
	s->fd = fd_take(fd);
	s->compile = (struct compile){
		.done = swap_on_compiled,
		.name = PLUG_BROUGHT_NAME,
		.fd = s->fd,
		.observe = c->open.flags & PLUG_FLAG_OBSERVE,
	};
	event_del(c->read);
	compiler_post(compiler, &s->compile);
	return true;
}

static int swap_compile(const struct plug_conn *c, int fd,
			struct ruleset **ret, struct plug_why *why)
{
	if (!c->peer.may_bring)
		return plug_refuse(why, "uid %u may name a policy of the service but not bring one: be listed in allow_policy_uid",
				   (unsigned)c->peer.uid);
	return plug_peer_brought(&c->plug->config, fd, c->open.flags, ret,
				 why);
}

void plug_on_swap(struct plug_conn *c, struct str msg, int *fds, size_t nfds)
{
	CLEANUP(rules_unrefp) struct ruleset *rules = NULL;
	CLEANUP(fd_closep) int policy = -1;
	struct plug_swap m;
	struct plug_why why;
	size_t i;
	int err = plug_parse_swap(msg, nfds, &m, &why);
	bool sane = err == 0;

	if (sane && c->state == PLUG_RUNNING &&
	    swap_compile_there(c, &fds[0], m.serial))
		return;
	if (sane && c->state == PLUG_RUNNING)
		err = swap_compile(c, fds[0], &rules, &why);
	if (sane && c->state == PLUG_RUNNING && err == 0)
		policy = fd_take(&fds[0]);
	for (i = 0; i < nfds; i++)
		fd_closep(&fds[i]);
	if (c->state == PLUG_WAITING) {
		if (sane)
			plug_refuse(&why, "a policy can be swapped when there is a run");
		plug_conn_refuse(c, &why);
		return;
	}
	/* It ends already, or the launcher did not wait for PLUG_READY. */
	if (!sane || c->state != PLUG_RUNNING)
		return;
	if (err == 0 && swap_start(c, rules, m.serial, NULL) < 0)
		err = plug_refuse(&why, "out of memory");
	if (err < 0) {
		swap_refused(c, m.serial, &why);
		return;
	}
	swap_keep(c, &policy);
	plug_tails_swap(c);
}

void plug_leave_swap(struct plug_conn *c, int fd)
{
	CLEANUP(rules_unrefp) struct ruleset *rules = NULL;
	struct plug_why why;
	int err = plug_peer_brought(&c->plug->config, fd, c->open.flags,
				    &rules, &why);

	if (err == 0)
		err = swap_start(c, rules, 0, NULL);
	if (err == 0) {
		c->own_policy = true;
		return;
	}
	log_error("run %s: its flows here cannot be judged anew, and end",
		  c->open.run);
	plug_conn_end(c, REASON_POLICY_RELOAD);
}

/* --- the service's own --------------------------------------------------------------- */

/* Does the run have the service's policy @name, and live? */
static bool follows(const struct plug_conn *c, struct str name)
{
	return (c->state == PLUG_RUNNING || c->state == PLUG_PLACING ||
		c->state == PLUG_LEAVING) &&
	       !c->own_policy && str_eq(name, str_from(c->open.policy));
}

/* One more line for whoever asked; what does not fit is cut. */
static void reload_say(struct plug_reload *r, const char *line)
{
	size_t n = strlen(r->m.text), room = sizeof(r->m.text) - n;

	(void)!snprintf(r->m.text + n, room, "%s%s", n ? "\n" : "", line);
}

static void reload_failed(struct plug_reload *r, struct str name,
			  const struct plug_why *why)
{
	struct list *it, *tmp;

	r->m.failed++;
	reload_say(r, why->text);
	log_error("policy %.*s stays as it was: %s", STR_ARG(name), why->text);
	list_each(&r->plug->conns, it, tmp) {
		struct plug_conn *c = container_of(it, struct plug_conn, node);

		if (follows(c, name))
			swap_refused(c, 0, why);
	}
	if (r->plug->config.on_policy_failed)
		r->plug->config.on_policy_failed(r->plug->config.reading,
						 name, why);
}

static void reload_run(struct plug_reload *r, struct plug_conn *c,
		       const struct policy *policy)
{
	CLEANUP(rules_unrefp) struct ruleset *rules = NULL;
	struct plug_why why;
	int err = plug_peer_named(policy, c->open.flags, &rules, &why);

	if (err == 0 && swap_start(c, rules, 0, r) < 0)
		err = plug_refuse(&why, "out of memory");
	if (err < 0) {
		r->m.failed++;
		reload_say(r, why.text);
		swap_refused(c, 0, &why);
	}
}

static void reload_changed(struct plug_reload *r, const struct policy *policy)
{
	struct list *it, *tmp;

	r->m.changed++;
	log_info("policy %s: %s@sha256:%s is in force", policy->name,
		 rules_name(policy->rules), rules_digest(policy->rules));
	list_each(&r->plug->conns, it, tmp) {
		struct plug_conn *c = container_of(it, struct plug_conn, node);

		if (follows(c, str_from(policy->name)))
			reload_run(r, c, policy);
	}
	if (r->plug->config.on_policy)
		r->plug->config.on_policy(r->plug->config.reading, r, policy);
}

int plug_reload_begin(struct plug *p, struct plug_reload **ret)
{
	struct plug_reload *r = mem_new(sizeof(*r));
	size_t i;

	if (!r)
		return -ENOMEM;
	r->plug = p;
	r->left = 1;
	r->m.head = (struct plug_head){ PLUG_MAGIC, PLUG_VERSION,
					PLUG_RELOADED };
	for (i = 0; i < p->config.policies->n; i++)
		p->config.policies->policy[i].seen = false;
	*ret = r;
	return 0;
}

void plug_reload_file(struct plug_reload *r, const struct policy_file *file,
		      bool anew)
{
	struct policies *ps = r->plug->config.policies;
	struct policy *policy = policies_find(ps, file->name);
	struct plug_why why;
	int taken;

	if (file->err < 0) {
		if (policy)
			policy->seen = true;
		plug_refuse(&why, "%s: %s", file->path, strerror(-file->err));
		reload_failed(r, file->name, &why);
		return;
	}
	taken = policies_take(ps, file, anew, &policy, &why);
	if (taken < 0)
		reload_failed(r, file->name, &why);
	else if (taken > 0)
		reload_changed(r, policy);
}

static void reload_find_gone(struct plug_reload *r, const char *dir)
{
	const struct policies *ps = r->plug->config.policies;
	struct plug_why why;
	size_t i;

	for (i = 0; i < ps->n; i++) {
		struct policy *p = &ps->policy[i];

		if (p->seen || p->gone)
			continue;
		p->gone = true;
		plug_refuse(&why, "%s/%s%s is gone: nobody can name it any more, runs that have it keep it",
			    dir, p->name, POLICIES_ENDING);
		reload_failed(r, str_from(p->name), &why);
	}
}

/* Everything of @r is done: answer whoever asked before it began. */
static void reload_answer(struct plug_reload *r)
{
	struct list *it, *tmp;

	r->m.ok = r->whole && r->m.failed == 0;
	r->m.policies = (uint32_t)policies_count(r->plug->config.policies);
	if (r->m.changed || r->m.failed)
		log_info("policies: %u in force, %u changed, %u failed; %u runs swapped: %u flows kept, %u ended",
			 r->m.policies, r->m.changed, r->m.failed, r->m.runs,
			 r->m.kept, r->m.ended);
	list_each(&r->plug->conns, it, tmp) {
		struct plug_conn *c = container_of(it, struct plug_conn, node);

		if (c->state != PLUG_ASKING || c->asked > r->serial)
			continue;
		plug_conn_send(c, &r->m, sizeof(r->m));
		plug_conn_gone(c);
	}
}

static void reload_left(struct plug_reload *r)
{
	if (--r->left > 0)
		return;
	reload_answer(r);
	mem_free(r);
}

void plug_reload_hold(struct plug_reload *r)
{
	r->left++;
}

void plug_reload_release(struct plug_reload *r,
			 const struct conn_rejudged *what)
{
	if (what) {
		r->m.runs++;
		r->m.kept += what->kept;
		r->m.ended += what->ended;
	}
	reload_left(r);
}

void plug_reload_end(struct plug_reload *r, uint32_t serial, const char *dir,
		     int err)
{
	struct plug_why why;

	r->serial = serial;
	r->whole = err == 0;
	if (err < 0) {
		plug_refuse(&why, "%s: %s", dir, strerror(-err));
		log_error("%s; the policies stay as they were", why.text);
		reload_say(r, why.text);
	} else {
		reload_find_gone(r, dir);
	}
	reload_left(r);
}

void plug_reload_fail(struct plug *p, const char *words)
{
	struct plug_why why;
	struct list *it, *tmp;

	plug_refuse(&why, "%s", words);
	list_each(&p->conns, it, tmp) {
		struct plug_conn *c = container_of(it, struct plug_conn, node);

		if (c->state == PLUG_ASKING)
			plug_conn_refuse(c, &why);
	}
}

uint32_t plug_reload_serial(struct plug *p)
{
	return ++p->serial;
}

/* Who may have the service read its own files again: they hold no secret of
 * the asker's, but it costs work. */
static int may_reload(const struct plug_conn *c, struct plug_why *why)
{
	const struct plug_config *config = &c->plug->config;

	if (!config->service)
		return plug_refuse(why, "this penstockd serves one run and has no policies of its own");
	if (!c->peer.may_bring && c->peer.uid != 0 && c->peer.uid != config->own_uid)
		return plug_refuse(why, "uid %u may not reload the service's policies: be root, the service's own user, or listed in allow_policy_uid",
				   (unsigned)c->peer.uid);
	if (!config->service->policies)
		return plug_refuse(why, "the service has no policies to reload: its configuration names no directory ('policies' in [plug])");
	return 0;
}

void plug_on_reload(struct plug_conn *c)
{
	const struct plug_config *config = &c->plug->config;
	struct plug_why why;
	int err = may_reload(c, &why);

	if (err == 0) {
		c->asked = plug_reload_serial(c->plug);
		err = config->on_reload(config->reading, c->asked);
		plug_preds_reload(c->plug);
		if (err < 0)
			plug_refuse(&why, "the policies cannot be read anew: %s: restart the service",
				    strerror(-err));
	}
	if (err < 0)
		plug_conn_refuse(c, &why);
	else
		plug_set_state(c, PLUG_ASKING);
}
