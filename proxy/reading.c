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
#include "base/mem.h"
#include "proxy/broker.h"
#include "proxy/compiler.h"
#include "proxy/host_listen.h"
#include "proxy/plug.h"
#include "proxy/plug_check.h"
#include "proxy/policies.h"
#include "rules/rules.h"

/* A large one, on its way to the compiler and back. */
struct reading_file {
	struct reading *reading;
	struct compile compile;
	struct buf text;
	char path[PATH_MAX];
	size_t name_at, name_n;		/* in @path */
};

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

static void reading_file_free(struct reading_file *f)
{
	if (!f)
		return;
	rules_unref(f->compile.rules);
	buf_done(&f->text);
	mem_free(f);
}

void reading_break_off(struct reading *r)
{
	reading_file_free(r->file);
	r->file = NULL;
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

static void reading_on_compiled(struct compile *job)
{
	struct reading_file *f = container_of(job, struct reading_file,
					      compile);
	struct reading *r = f->reading;
	const struct policy_file file = {
		.name = str_make(f->path + f->name_at, f->name_n),
		.path = f->path,
		.text = buf_str(&f->text),
		.compiled = job,
	};

	plug_reload_file(r->now, &file, r->asked);
	r->file = NULL;
	reading_file_free(f);
	broker_resume(r->broker);
}

/* Takes @text where that is done elsewhere: the broker waits until it is. */
static bool reading_compile(struct reading *r, const struct policy_file *file,
			    struct buf *text)
{
	struct reading_file *f;

	if (!compiler_wants(r->compiler, text->n) ||
	    policies_has(r->policies, file, r->asked))
		return false;
	f = mem_new(sizeof(*f));
	if (!f)
		return false;
	f->reading = r;
	f->text = *text;
	*text = BUF_INIT(PLUG_POLICY_MAX);
	memcpy(f->path, file->path, strlen(file->path) + 1);
	f->name_at = strlen(r->dir) + 1;
	f->name_n = file->name.n;
	f->compile = (struct compile){
		.done = reading_on_compiled,
		.name = f->path,
		.fd = -1,
		.text = buf_str(&f->text),
	};
	r->file = f;
	broker_pause(r->broker);
	compiler_post(r->compiler, &f->compile);
	return true;
}

void reading_on_file(struct reading *r, struct str name, int err, int fd)
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
	if (file.err == 0 && reading_compile(r, &file, &text))
		return;
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
