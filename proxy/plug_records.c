/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_records.c - where the records of a run go: its own file, the service's log
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "audit/writer.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "proxy/plug_own.h"
#include "rules/rules.h"

static int dup_fd(int fd, int *ret_fd)
{
	int dup = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (dup < 0)
		return -errno;
	*ret_fd = dup;
	return 0;
}

/* Hand the service's log to the sink, as its own or as the second one. */
static int give_log(struct plug_conn *c, int log_fd)
{
	CLEANUP(fd_closep) int fd = -1;
	int err = dup_fd(log_fd, &fd);

	if (err == 0 && c->own_records)
		err = audit_sink_tee(c->sink, fd);
	else if (err == 0)
		err = audit_sink_reopen(c->sink, fd);
	if (err == 0)
		fd_take(&fd);
	return err;
}

int plug_conn_open_sink(struct plug_conn *c, struct plug_why *why)
{
	char policy[SANDBOX_POLICY_LABEL];
	struct record_labels labels = {
		.run = c->open.run,
		.sandbox = c->open.sandbox[0] ? c->open.sandbox : NULL,
		.policy = policy,
		.mode = c->ready.observe ? "observe" : "enforce",
		.generation = c->generation,
	};
	int log_fd = c->plug->config.log_fd;
	int fd = fd_take(&c->passed[PLUG_FD_RECORDS]);
	int err = 0;

	sandbox_policy_label(c->config.rules, policy);
	c->own_records = fd >= 0;
	if (fd < 0 && log_fd < 0)
		return plug_refuse(why, "there is no place for the records: send a descriptor, or give the service a 'log'");
	if (fd < 0)
		err = dup_fd(log_fd, &fd);
	else if (c->plug->config.service)
		err = dup_fd(fd, &c->records_fd);
	if (err < 0)
		fd_closep(&fd);
	if (err == 0)
		err = audit_sink_new(c->plug->config.writer, fd, &labels,
				     &c->sink);
	if (err == 0 && c->own_records && log_fd >= 0)
		err = give_log(c, log_fd);
	if (err < 0)
		return plug_refuse(why, "cannot open the records: %s",
				   strerror(-err));
	c->config.sink = c->sink;
	return 0;
}

int plug_conn_record_start(struct plug_conn *c, struct plug_why *why)
{
	struct record r;
	int err;

	c->started_ms = clock_mono_ms();
	sandbox_record(RECORD_RUN_START, RECORD_ACT_NONE, REASON_ALLOWED,
		       RECORD_VIA_NONE, &r);
	err = audit_post(c->sink, &r);
	if (err < 0)
		return plug_refuse(why, "cannot write records: %s",
				   strerror(-err));
	return 0;
}

void plug_set_log(struct plug *p, int log_fd)
{
	struct list *it, *tmp;

	p->config.log_fd = log_fd;
	list_each(&p->conns, it, tmp) {
		struct plug_conn *c = container_of(it, struct plug_conn, node);
		int err = c->sink && !c->left ? give_log(c, log_fd) : 0;

		if (err < 0)
			log_error("run %s: its records stay in the old log: %s",
				  c->open.run, strerror(-err));
	}
}
