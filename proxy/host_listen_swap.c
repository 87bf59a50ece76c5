/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_listen_swap.c - another policy for listeners, another log
 *
 * A policy travels by mail of its own, one for each part, and is told of when
 * the last is back.  Mail keeps its order, so a policy that is sent while parts
 * are placed finds them made, and is back before the end of them is.  From the
 * first part that has it to the last, each records under the policy that it
 * has itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "audit/writer.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/host_listen_own.h"
#include "proxy/plug.h"
#include "proxy/plug_check.h"
#include "proxy/policies.h"
#include "proxy/worker.h"
#include "resolver/resolver.h"
#include "rules/rules.h"

/* Another policy on its way. */
struct swap_part {
	struct mail mail;
	struct swap *swap;
	struct part *part;
	struct conn_rejudged what;
	bool done;
};

struct swap {
	struct list node;		/* listen.swaps */
	struct listen *listen;
	struct plug_reload *reload;
	struct ruleset *rules;		/* one reference */
	uint32_t generation;
	size_t out;
	struct swap_part part[];
};

void host_listens_set_log(struct host_listens *h, int log_fd)
{
	size_t i;

	h->c.log_fd = log_fd;
	for (i = 0; i < h->n; i++) {
		struct listen *l = &h->listen[i];
		int fd = fcntl(log_fd, F_DUPFD_CLOEXEC, 0);
		int err = fd < 0 ? -errno : audit_sink_reopen(l->sink, fd);

		if (err == 0)
			continue;
		fd_closep(&fd);
		log_error("run %s: its records stay in the old log: %s",
			  l->run, strerror(-err));
	}
}

static bool follows(const struct listen *l, struct str policy)
{
	return l->state < LISTEN_ENDING &&
	       str_eq(policy, str_from(l->c->policy));
}

static void swap_free(struct swap *s)
{
	list_del(&s->node);
	rules_unref(s->rules);
	mem_free(s);
}

void host_listen_drop_swaps(struct listen *l)
{
	struct list *it, *tmp;

	list_each(&l->swaps, it, tmp) {
		struct swap *s = container_of(it, struct swap, node);

		plug_reload_drop(s->reload);
		swap_free(s);
	}
}

/* Every part has it: from here on it is the run's. */
static void on_all_swapped(struct swap *s)
{
	char label[SANDBOX_POLICY_LABEL];
	const struct record_labels labels = {
		.policy = label,
		.mode = rules_observe(s->rules) ? "observe" : "enforce",
		.generation = s->generation,
	};
	struct conn_rejudged what = { 0, 0 };
	struct listen *l = s->listen;
	struct record r;
	size_t i, done = 0;

	for (i = 0; i < l->all->c.nworkers; i++) {
		done += s->part[i].done;
		what.kept += s->part[i].what.kept;
		what.ended += s->part[i].what.ended;
	}
	if (done > 0) {
		sandbox_policy_label(s->rules, label);
		audit_sink_set_policy(l->sink, &labels);
		dns_budget_set_rules(l->budget, s->rules);
		sandbox_record(RECORD_POLICY, RECORD_ACT_NONE, REASON_ALLOWED,
			       RECORD_VIA_NONE, &r);
		r.flows_kept = what.kept;
		r.flows_ended = what.ended;
		audit_tell(l->sink, &r);
		log_info("run %s: policy %s is in force (%u): %u flows kept, %u ended",
			 l->run, label, s->generation, what.kept, what.ended);
	}
	plug_reload_release(s->reload, done > 0 ? &what : NULL);
	swap_free(s);
}

static void swap_on_back(void *owner, struct mail *mail)
{
	struct swap_part *sp = container_of(mail, struct swap_part, mail);

	(void)owner;
	if (--sp->swap->out == 0)
		on_all_swapped(sp->swap);
}

/* On the worker's thread. */
static void swap_on_worker(void *owner, struct mail *mail)
{
	struct swap_part *sp = container_of(mail, struct swap_part, mail);
	struct sandbox *sandbox = sp->part->sandbox;

	(void)owner;
	if (sandbox && !sandbox->ending) {
		sandbox_swap_rules(sandbox, rules_ref(sp->swap->rules),
				   sp->swap->generation, &sp->what);
		sp->done = true;
	}
	mailbox_post(sp->part->listen->all->mailbox, mail, swap_on_back);
}

static int swap_start(struct listen *l, struct plug_reload *r,
		      struct ruleset *rules)
{
	size_t n = l->all->c.nworkers, i;
	struct swap *s = mem_new(sizeof(*s) + n * sizeof(s->part[0]));

	if (!s)
		return -ENOMEM;
	rules_unref(l->rules);
	l->rules = rules_ref(rules);
	s->listen = l;
	s->reload = r;
	s->rules = rules_ref(rules);
	s->generation = ++l->generation;
	s->out = n;
	list_add(&l->swaps, &s->node);
	plug_reload_hold(r);
	for (i = 0; i < n; i++) {
		s->part[i].swap = s;
		s->part[i].part = &l->part[i];
		worker_post(l->part[i].worker, &s->part[i].mail,
			    swap_on_worker);
	}
	return 0;
}

void host_listens_on_policy(struct host_listens *h, struct plug_reload *r,
			    const struct policy *policy)
{
	struct plug_why why;
	size_t i;

	for (i = 0; i < h->n; i++) {
		struct listen *l = &h->listen[i];

		if (!follows(l, str_from(policy->name)) ||
		    swap_start(l, r, policy->rules) == 0)
			continue;
		plug_refuse(&why, "out of memory");
		log_error("run %s: its policy stays as it was: %s", l->run,
			  why.text);
		plug_record_failed(l->sink, &why);
	}
}

void host_listens_on_policy_failed(struct host_listens *h, struct str name,
				   const struct plug_why *why)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		if (follows(&h->listen[i], name))
			plug_record_failed(h->listen[i].sink, why);
}
