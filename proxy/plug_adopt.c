/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_adopt.c - runs of a process before, taken in by this one
 *
 * On the main thread before anything serves: the workers' threads wait, so that
 * what is theirs is made here (worker_start_held()).  Nothing is read from a
 * launcher or accepted before plug_adopt_go(), and nothing is written: should
 * it not come to that, this process ends, and the one before goes on with what
 * it never gave up.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "audit/relay.h"
#include "audit/writer.h"
#include "base/fd.h"
#include "base/log.h"
#include "proxy/handover_state.h"
#include "proxy/plug_own.h"
#include "proxy/policies.h"
#include "proxy/quota.h"
#include "proxy/worker.h"
#include "rules/rules.h"

/* In the order of struct handover_run; all are taken. */
static void place_fds(struct plug_conn *c, const struct handover_run *m,
		      const int *fd, int *ret_pipe)
{
	uint32_t sockets = m->open.fds;
	size_t i, n = 1;

	*ret_pipe = fd[n++];
	if (m->flags & HANDOVER_OWN_POLICY)
		c->policy_fd = fd[n++];
	if (m->flags & HANDOVER_OWN_RECORDS)
		c->passed[PLUG_FD_RECORDS] = fd[n++];
	for (i = PLUG_FD_DNS_UDP4; i < PLUG_FDS; i++)
		if (sockets & BIT(i))
			c->passed[i] = fd[n++];
}

static int own_rules(struct plug_conn *c, struct plug_why *why)
{
	struct plug_why said;

	if (plug_peer_brought(&c->plug->config, c->policy_fd, c->open.flags,
			      &c->config.rules, &said) == 0)
		return 0;
	return plug_refuse(why, "run %s: its policy, by the new configuration or version: %.300s",
			   c->open.run, said.text);
}

static int named_rules(struct plug_conn *c, struct plug_why *why)
{
	const struct plug_config *config = &c->plug->config;
	const struct policy *p = policies_find(config->policies,
					       str_from(c->open.policy));

	if (p && !p->gone)
		return plug_peer_named(p, c->open.flags, &c->config.rules,
				       why);
	return plug_refuse(why, "run %s has the policy '%s', and there is no %s/%s" POLICIES_ENDING ": put it back, or wait until the run has ended",
			   c->open.run, c->open.policy,
			   config->service->policies ?
			   config->service->policies : "(no directory)",
			   c->open.policy);
}

/* Who it is may have lost rights meanwhile; the run stays. */
static int find_peer(struct plug_conn *c, struct plug_why *why)
{
	struct plug_why said;

	if (plug_peer_init(&c->plug->config, c->fd, &c->peer, &said) < 0)
		log_info("run %s: goes on, though %s", c->open.run, said.text);
	return plug_user_rejoin(&c->plug->users, &c->plug->config,
				c->peer.uid, &c->user, why);
}

static int open_sink(struct plug_conn *c, const struct handover_run *m,
		     struct plug_why *why)
{
	int err = plug_conn_open_sink(c, why);

	if (err == 0)
		audit_resume(c->sink, m->seq);
	return err;
}

static int place(struct plug_conn *c, const struct handover_run *m,
		 struct plug_why *why)
{
	struct plug *p = c->plug;
	int err;

	c->worker = plug_least_loaded(p);
	plug_to_sandbox(&c->open, c->passed, &c->config);
	c->config.self_tests = m->self_tests;
	err = sandbox_new(p->config.worker[c->worker], &c->config,
			  &c->sandbox);
	if (err < 0)
		return plug_refuse(why, "run %s: cannot take the sandbox in: %s",
				   c->open.run, strerror(-err));
	p->load[c->worker]++;
	c->config.rules = NULL;
	c->sandbox->bytes_up = m->bytes_up;
	c->sandbox->bytes_down = m->bytes_down;
	c->memory_peak = m->memory_peak;
	c->started_ms = m->started_ms;
	c->leave.quota = quota_ref(c->sandbox->quota);
	return 0;
}

static int check(struct plug_conn *c, const struct handover_run *m,
		 struct plug_why *why)
{
	const struct str open = str_make((const char *)&m->open,
					 sizeof(m->open));
	struct plug_why said;
	int err;

	err = plug_parse_open(open, (size_t)__builtin_popcount(m->open.fds),
			      &c->open, &said);
	if (err == 0)
		err = plug_check_fds(&c->open, c->passed,
				     c->plug->config.own_netns, &said);
	if (err < 0)
		return plug_refuse(why, "a run is not as it should be: %.400s",
				   said.text);
	return 0;
}

static int adopt(struct plug_conn *c, const struct handover_run *m,
		 struct plug_why *why)
{
	int err = check(c, m, why);

	c->generation = m->generation;
	c->own_policy = m->flags & HANDOVER_OWN_POLICY;
	if (err == 0)
		err = find_peer(c, why);
	if (err == 0)
		err = c->own_policy ? own_rules(c, why) : named_rules(c, why);
	if (err < 0)
		return err;
	c->swapped = strcmp(m->digest, rules_digest(c->config.rules)) != 0;
	c->generation += c->swapped;
	plug_conn_fill_ready(c);
	err = open_sink(c, m, why);
	if (err == 0)
		err = plug_user_quota(c->user, c->config.rules,
				      &c->config.quota, why);
	return err < 0 ? err : place(c, m, why);
}

int plug_adopt(struct plug *p, const struct handover_run *m, int *fd,
	       struct plug_conn **ret, struct plug_why *why)
{
	struct plug_conn *c;
	int pipe;

	if (p->nconns >= PLUG_CONNS_MAX ||
	    plug_conn_new(p, fd[0], &c) < 0)
		return plug_refuse(why, "no room for all runs: out of memory");
	place_fds(c, m, fd, &pipe);
	c->adopted_pipe = pipe;
	c->adopted_connections = m->connections;
	*ret = c;
	return adopt(c, m, why);
}

int plug_adopt_state(struct plug_conn *c, struct str bytes,
		     struct plug_why *why)
{
	const struct handover_memory memory = {
		.names = c->sandbox->names,
		.pins = c->sandbox->pins,
		.budget = c->sandbox->budget,
		.quota = c->sandbox->quota,
	};
	int err = handover_remember(&memory, bytes);

	if (err < 0)
		return plug_refuse(why, "run %s: what it remembers cannot be taken in: %s",
				   c->open.run, strerror(-err));
	return 0;
}

/* The process that hands over is in no list of its own: it is @pred 0. */
static struct plug_pred *pred_at(struct plug *p, uint32_t index)
{
	struct list *it, *tmp;

	list_each(&p->preds, it, tmp) {
		struct plug_pred *pred = container_of(it, struct plug_pred,
						      node);

		if (pred->index == index)
			return pred;
	}
	return NULL;
}

int plug_adopt_pred(struct plug *p, int fd, uint32_t index,
		    struct plug_why *why)
{
	struct plug_pred *pred;

	if (pred_at(p, index)) {
		fd_closep(&fd);
		return plug_refuse(why, "two processes before have the number %u",
				   index);
	}
	if (plug_pred_add(p, fd, &pred) < 0)
		return plug_refuse(why, "out of memory");
	pred->index = index;
	return 0;
}

/* Its flows in one process before; behind all that it remembers. */
static int add_tail(struct plug_conn *c, uint32_t index, int pipe,
		    unsigned connections, struct str cut)
{
	struct plug_pred *pred = pred_at(c->plug, index);
	struct plug_tail *t;
	int err;

	if (!pred) {
		fd_closep(&pipe);
		return -EPROTO;
	}
	err = plug_tail_add(c, pred, pipe, connections, &t);
	return err < 0 ? err : buf_add_str(&t->cut, cut);
}

int plug_adopt_tail(struct plug_conn *c, const struct handover_tail *m,
		    int pipe, struct plug_why *why)
{
	int err = fd_set_nonblock(pipe, true);

	if (err < 0)
		fd_closep(&pipe);
	else
		err = add_tail(c, m->pred, pipe, m->connections,
			       str_make(m->cut, m->n));
	if (err < 0)
		return plug_refuse(why, "run %s: its flows in a process before: %s",
				   c->open.run, strerror(-err));
	return 0;
}

/* --- from here on they are ours ------------------------------------------------------ */

/* What others have open counts from here on, where all budgets are known. */
static int adopt_go(struct plug_conn *c)
{
	struct list *it, *tmp;
	int err = add_tail(c, 0, fd_take(&c->adopted_pipe),
			   c->adopted_connections, STR_NONE);

	list_each(&c->tails, it, tmp)
		err |= plug_tail_watch(container_of(it, struct plug_tail,
						    node));
	return err < 0 || event_add(c->read, NULL) < 0 ? -ENOMEM : 0;
}

static void tell_swapped(struct plug_conn *c)
{
	struct record r;

	sandbox_record(RECORD_POLICY, RECORD_ACT_NONE, REASON_ALLOWED,
		       RECORD_VIA_NONE, &r);
	audit_tell(c->sink, &r);
	log_info("run %s: has another policy from here on (%u)", c->open.run,
		 c->generation);
}

int plug_adopt_go(struct plug *p)
{
	struct list *it, *tmp;
	int err = 0;

	list_each(&p->conns, it, tmp) {
		struct plug_conn *c = container_of(it, struct plug_conn, node);

		if (c->state != PLUG_WAITING || !c->sandbox)
			continue;
		err |= adopt_go(c);
		plug_set_state(c, PLUG_FROZEN);
		plug_set_state(c, PLUG_RUNNING);
		if (c->swapped)
			tell_swapped(c);
	}
	return err | plug_preds_watch(p);
}
