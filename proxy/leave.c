/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leave.c - one sandbox on its way to another process, as its worker is asked
 */
#include "proxy/leave.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "audit/writer.h"
#include "base/fd.h"
#include "proxy/handover_state.h"
#include "proxy/ledger.h"
#include "proxy/quota.h"
#include "proxy/sandbox.h"
#include "proxy/worker.h"
#include "resolver/resolver.h"

void leave_init(struct leave *l)
{
	l->state = BUF_INIT(HANDOVER_STATE_ALL_MAX);
	l->pipe = -1;
}

void leave_done(struct leave *l)
{
	buf_done(&l->state);
	fd_closep(&l->pipe);
	quota_unref(l->quota);
	l->quota = NULL;
}

static void on_back(void *owner, struct mail *mail)
{
	struct leave *l = container_of(mail, struct leave, mail);

	(void)owner;
	l->back(l);
}

static void send_back(struct leave *l, int err)
{
	l->err = err;
	mailbox_post(l->home, &l->mail, on_back);
}

/* On the worker's thread. */
static void freeze_on_worker(void *owner, struct mail *mail)
{
	struct leave *l = container_of(mail, struct leave, mail);
	struct sandbox *s = l->sandbox;
	int err = s->frozen ? 0 : sandbox_freeze(s);

	(void)owner;
	l->waiting = s->dns ? dns_door_waiting(s->dns) : 0;
	send_back(l, err);
}

void leave_freeze(struct leave *l)
{
	worker_post(l->worker, &l->mail, freeze_on_worker);
}

/* --- telling ------------------------------------------------------------------ */

static int open_pipe(const struct sandbox *s, struct leave *l,
		     struct audit_sink **ret)
{
	char label[SANDBOX_POLICY_LABEL];
	const struct record_labels labels = {
		.run = s->run,
		.sandbox = s->label[0] ? s->label : NULL,
		.policy = label,
		.mode = rules_observe(s->rules) ? "observe" : "enforce",
		.generation = l->generation,
	};
	int end[2], err;

	if (pipe2(end, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	sandbox_policy_label(s->rules, label);
	err = audit_sink_new(l->writer, end[1], &labels, ret);
	if (err < 0)
		fd_closep(&end[0]);
	else
		l->pipe = end[0];
	return err;
}

static void take_figures(const struct sandbox *s, struct leave *l)
{
	l->connections = quota_connections(s->quota);
	l->self_tests = s->self_tests_left;
	l->bytes_up = s->bytes_up;
	l->bytes_down = s->bytes_down;
	l->memory_peak = sandbox_memory_peak(s);
	/* It fits: as PLUG_READY has it. */
	(void)!snprintf(l->digest, sizeof(l->digest), "%s",
			rules_digest(s->rules));
}

/* On the worker's thread. */
static void tell_on_worker(void *owner, struct mail *mail)
{
	struct leave *l = container_of(mail, struct leave, mail);
	struct sandbox *s = l->sandbox;
	struct audit_sink *into = NULL;
	struct handover_memory memory = {
		.names = s->names, .pins = s->pins,
	};
	int err = 0;

	(void)owner;
	if (s->dns)
		dns_door_forsake(s->dns);
	if (l->writer) {
		memory.budget = s->budget;
		memory.quota = s->quota;
		err = open_pipe(s, l, &into);
	}
	if (err == 0)
		err = handover_tell(&memory, &l->state);
	/* Its flows are this thread's: none moves a byte in between. */
	if (err == 0 && l->ledger)
		err = ledger_start(l->ledger, s->quota);
	if (err == 0 && into) {
		take_figures(s, l);
		if (!l->quota)
			l->quota = quota_ref(s->quota);
		l->sink = sandbox_set_sink(s, into);
		l->into = into;
	} else if (into) {
		audit_sink_free(into);
	}
	send_back(l, err);
}

void leave_tell(struct leave *l)
{
	worker_post(l->worker, &l->mail, tell_on_worker);
}

/* --- back ----------------------------------------------------------------------- */

/* On the worker's thread. */
static void thaw_on_worker(void *owner, struct mail *mail)
{
	struct leave *l = container_of(mail, struct leave, mail);
	struct sandbox *s = l->sandbox;

	(void)owner;
	/* What is still in the old one's queue goes into the pipe, which then
	 * ends. */
	if (l->sink)
		audit_sink_free(sandbox_set_sink(s, l->sink));
	l->sink = l->into = NULL;
	sandbox_thaw(s);
	send_back(l, 0);
}

void leave_thaw(struct leave *l)
{
	worker_post(l->worker, &l->mail, thaw_on_worker);
}
