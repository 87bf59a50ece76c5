/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main_upgrade.c - from the daemon before, and to the next one
 *
 * The mechanisms are in takeover.c and handover.c; here is what they mean for
 * the process as a whole: its log, its service manager, its policies, its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/fd.h"
#include "base/log.h"
#include "proxy/broker.h"
#include "proxy/handover.h"
#include "proxy/host_listen.h"
#include "proxy/main_own.h"
#include "proxy/notify.h"
#include "proxy/plug.h"
#include "proxy/worker.h"

/* --- from the daemon before ---------------------------------------------------- */

/* What the daemon before says goes to its log, and so does what we say; also to
 * where the command was typed, until all is well. */
static void main_take_stderr(struct daemon *d)
{
	if (log_is_journal() || d->takeover.stderr_fd < 0)
		return;
	d->typed_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
	if (d->typed_fd < 0)
		return;
	log_copy_to(d->typed_fd);
	if (dup2(d->takeover.stderr_fd, STDERR_FILENO) < 0)
		log_warn("the log goes where this was typed: %s",
			 strerror(errno));
}

int main_take_sockets(struct daemon *d)
{
	int err = service_take(&d->service, d->nworkers, &d->takeover);

	if (err < 0)
		return err;
	if (d->takeover.notify_fd >= 0) {
		fd_closep(&d->notify_fd);
		d->notify_fd = fd_take(&d->takeover.notify_fd);
	}
	main_take_stderr(d);
	return 0;
}

/*
 * Either all of it is ours, or this process ends here and now: what was made of
 * what is another's still must do nothing, not even end in order.
 */
void main_take_over(struct daemon *d)
{
	int err = host_listens_place_here(d->listens);

	if (err == 0)
		err = takeover_take(&d->takeover, d->plug, d->listens);
	if (err < 0)
		isolate_exit(1);
	takeover_done(&d->takeover);
	d->over = plug_preds(d->plug) == 0;
	log_copy_to(-1);
	fd_closep(&d->typed_fd);
	for (size_t i = 0; i < d->nworkers; i++)
		worker_go(d->worker[i]);
}

/* The daemon before has told its service manager of us, or has gone. */
void main_on_over(void *arg)
{
	struct daemon *d = arg;

	if (d->over)
		return;
	d->over = true;
	if (d->serving && !d->draining)
		main_ready(d);
}

void main_on_hello(void *arg, struct str msg, int fd)
{
	const struct daemon *d = arg;

	handover_on_hello(d->handover, msg, fd);
}

/* --- the next daemon --------------------------------------------------------------- */

static bool main_is_reading(void *arg)
{
	const struct daemon *d = arg;

	return d->reading.now || d->reading.file;
}

static void main_rest(void *arg, bool rest)
{
	const struct daemon *d = arg;

	(rest ? broker_pause : broker_resume)(d->broker);
}

/* The service is another's: what is open here may go on for a while. */
static void main_on_given(void *arg, int pid)
{
	struct daemon *d = arg;
	struct timeval bound = { .tv_sec = d->service.config.upgrade_drain_s };
	char state[32];
	int n = snprintf(state, sizeof(state), "MAINPID=%d", pid);

	REQUIRE(n > 0 && (size_t)n < sizeof(state));
	notify_send(d->notify_fd, state);
	fd_closep(&d->notify_fd);
	d->draining = true;
	broker_resume(d->broker);
	host_listens_drain(d->listens);
	log_info("process %d has taken the service over; %zu runs and %zu listeners have flows here",
		 pid, plug_runs(d->plug), host_listens_left(d->listens));
	if (main_left(d) == 0)
		event_base_loopbreak(d->base);
	else if (bound.tv_sec == 0 || event_add(d->drain, &bound) < 0)
		main_end_runs(d);
}

static void main_on_line_lost(void *arg)
{
	main_end_runs(arg);
}

static void main_on_reload(void *arg)
{
	struct daemon *d = arg;

	reading_ask(&d->reading);
}

int main_make_handover(struct daemon *d)
{
	const struct handover_config config = {
		.base = d->base,
		.plug = d->plug,
		.listens = d->listens,
		.notify_fd = d->notify_fd,
		.cgroup = d->cgroup,
		.reading = main_is_reading,
		.rest = main_rest,
		.on_given = main_on_given,
		.on_end = main_on_line_lost,
		.on_reload = main_on_reload,
		.arg = d,
	};

	return d->opts.private ? 0 : handover_new(&config, &d->handover);
}
