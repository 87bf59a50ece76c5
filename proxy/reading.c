/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reading.c - a service's policies read anew: from the broker to who has them
 */
#include "proxy/reading.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "proxy/broker.h"
#include "proxy/host_listen.h"
#include "proxy/plug.h"
#include "proxy/plug_check.h"
#include "proxy/policies.h"

void reading_ask(struct reading *r)
{
	int err;

	if (!r->dir)
		return;
	err = broker_reload(r->broker, plug_reload_serial(r->plug));
	if (err < 0)
		log_error("%s: cannot be read anew: %s", r->dir,
			  strerror(-err));
}

void reading_break_off(struct reading *r)
{
	/* What was brought until then is in force. */
	if (r->now)
		plug_reload_end(r->now, 0, r->dir, -ECANCELED);
	r->now = NULL;
}

/* --- what the broker brings -------------------------------------------------------- */

void reading_on_begin(struct reading *r, bool asked)
{
	reading_break_off(r);
	r->asked = asked;
	if (plug_reload_begin(r->plug, &r->now) < 0)
		log_error("%s: out of memory; the policies stay as they were",
			  r->dir);
}

void reading_on_file(const struct reading *r, struct str name, int err,
		     int fd)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PLUG_POLICY_MAX);
	char path[PATH_MAX];
	struct policy_file file = { .name = name, .path = path, .err = err };
	struct plug_why why;
	int n = snprintf(path, sizeof(path), "%s/%.*s" POLICIES_ENDING,
			 r->dir, STR_ARG(name));

	if (!r->now || n < 0 || (size_t)n >= sizeof(path))
		return;
	if (err == 0 && plug_read_policy(fd, &text, &why) < 0)
		file.err = -EIO;
	else
		file.text = buf_str(&text);
	plug_reload_file(r->now, &file, r->asked);
}

void reading_on_end(struct reading *r, uint32_t serial, int err)
{
	struct plug_reload *now = r->now;

	r->now = NULL;
	if (now)
		plug_reload_end(now, serial, r->dir, err);
	else
		plug_reload_fail(r->plug, "out of memory; the policies stay as they were");
}

void reading_on_gone(const struct reading *r)
{
	plug_reload_fail(r->plug, "the process that reads the policies is gone: restart the service");
}

/* --- what the plug asks for, and where it leads ---------------------------------------- */

int reading_on_asked(void *arg, uint32_t serial)
{
	const struct reading *r = arg;

	return broker_reload(r->broker, serial);
}

void reading_on_policy(void *arg, struct plug_reload *reload,
		       const struct policy *policy)
{
	const struct reading *r = arg;

	host_listens_on_policy(r->listens, reload, policy);
}

void reading_on_policy_failed(void *arg, struct str name,
			      const struct plug_why *why)
{
	const struct reading *r = arg;

	host_listens_on_policy_failed(r->listens, name, why);
}
