/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - penstockd: the order in which it starts, serves and ends
 *
 * The order is the point, so it is numbered:
 *
 *	 1 parse the command line and the configuration; with --upgrade, go to
 *	   the background
 *	 2 open what only now can be opened, or have it from the daemon before,
 *	   and block signals
 *	 3 fork the broker, which may open files later, and the marker where
 *	   sockets bear a mark
 *	 4 drop ids, capabilities, dumps; limits
 *	 5 open the log with the rights that are left; then no file any more
 *	 6 make the event loop and the workers, start the threads
 *	 7 seal: from here on only the listed system calls
 *	 8 take plugs: the first byte from a sandbox is read after 7; with
 *	   --upgrade take over all that the daemon before has, and then let the
 *	   workers go
 *	 9 drain, end every run through its last record
 *
 * The main thread does what concerns the whole: plugs, signals, the broker and
 * the host's addresses; a service has a thread that compiles large policies.
 * Flows live on the workers; the only one of a private daemon lodges on the
 * main thread, since a second would cost the start of each run more than one
 * run's plug, signals and addresses cost its flows.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <event2/event.h>

#include "audit/writer.h"
#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/broker.h"
#include "proxy/compiler.h"
#include "proxy/detach.h"
#include "proxy/handover.h"
#include "proxy/host_addrs.h"
#include "proxy/host_listen.h"
#include "proxy/main_own.h"
#include "proxy/marker.h"
#include "proxy/marks.h"
#include "proxy/notify.h"
#include "proxy/plug.h"
#include "proxy/plug_check.h"
#include "proxy/shed.h"
#include "proxy/source.h"
#include "proxy/start.h"
#include "proxy/takeover.h"
#include "proxy/worker.h"

#define MAIN_RESOLV_CONF	"/etc/resolv.conf"
#define MAIN_WRITER_MS		3000	/* for the last records at the end */

#ifdef PENSTOCK_SANITIZED
#define MAIN_FREES		true
#else
#define MAIN_FREES		false
#endif

static int main_failed(const char *what, int err)
{
	log_error("%s: %s", what, strerror(-err));
	return err;
}

/* --- 1 parse ------------------------------------------------------------------ */

static void main_take_source(struct daemon *d, const struct source *s)
{
	if (source_is_set(s))
		d->source = s;
}

static int main_configure(struct daemon *d)
{
	const struct config *c = &d->service.config;
	int err;

	d->upstreams = (struct upstreams){
		.given = d->opts.dns, .tls_ca = d->opts.tls_ca,
		.path = d->opts.resolv_conf ? d->opts.resolv_conf
					    : MAIN_RESOLV_CONF,
	};
	if (d->upstreams.given.n > 0)
		d->upstreams.path = NULL;
	d->parents = &d->opts.parents;
	d->nworkers = 1;
	d->ids = d->opts.ids;
	d->has_ids = d->opts.has_ids;
	main_take_source(d, &d->opts.source);
	d->mark = d->opts.mark;
	if (d->opts.private)
		return parents_read_logins(&d->opts.parents);
	err = service_read_config(d->opts.config, &d->service);
	if (err == 0)
		err = service_load_policies(&d->service);
	if (err < 0)
		return err;
	if (!d->opts.has_level)
		log_set_level(c->log_level);
	if (!d->opts.resolv_conf)
		d->upstreams.path = c->resolv_conf;
	if (c->dns.n > 0) {
		d->upstreams.given = c->dns;
		d->upstreams.tls_ca = c->tls_ca;
		d->upstreams.path = NULL;
	}
	d->parents = &c->parents;
	main_take_source(d, &c->source);
	d->mark = c->mark;
	d->nworkers = c->workers ? c->workers : MIN(start_cores(), CONFIG_WORKERS_MAX);
	d->ids = (struct isolate_ids){ c->uid, c->gid };
	d->has_ids = c->has_user;
	return 0;
}

/* --- 2 open ------------------------------------------------------------------- */

static int main_open(struct daemon *d)
{
	int err;

	if (d->opts.private)
		(void)setsid();	/* no terminal; fails where we lead already */
	err = start_clean_fds(d->opts.private ? &d->opts.plug_fd :
			      d->opts.upgrade ? &d->detached_fd : NULL);
	if (err < 0)
		return main_failed("descriptors", err);
	err = start_open_signals(!d->opts.private, &d->signal_fd);
	if (err < 0)
		return main_failed("signals", err);
	err = source_open(d->source);
	if (err == 0 && d->mark)
		err = marker_check(d->mark, d->opts.private);
	if (err < 0)
		return err;
	err = plug_own_netns(&d->own_netns);
	if (err < 0)
		return main_failed("SO_NETNS_COOKIE: Linux 5.14 or newer is needed",
				   err);
	err = host_addrs_new(&d->hosts);
	if (err < 0)
		return main_failed("cannot read this host's addresses", err);
	d->conf = BUF_INIT(BROKER_CONF_MAX);
	err = d->upstreams.path
		? broker_read_conf(d->upstreams.path, &d->conf) : 0;
	if (err < 0)
		return main_failed(d->upstreams.path, err);
	err = upstreams_open(&d->upstreams);
	if (err < 0)
		return err;
	err = notify_open(d->opts.notify_socket, &d->notify_fd);
	if (err < 0)
		log_warn("NOTIFY_SOCKET: %s; the service manager is not told",
			 strerror(-err));
	if (d->opts.private)
		return 0;
	takeover_cgroup(d->cgroup, sizeof(d->cgroup));
	return d->opts.upgrade ? main_take_sockets(d) :
				 service_listen(&d->service, d->nworkers);
}

/* --- 3, 4, 5 give up rights ------------------------------------------------------ */

static struct isolate_ids *main_ids(struct daemon *d)
{
	return d->has_ids ? &d->ids : NULL;
}

static int main_fork_broker(struct daemon *d)
{
	struct broker_config config = {
		.resolv_conf = d->upstreams.path,
		.log_path = d->service.config.log,
		.policies = d->service.config.policies,
		.drop = shed_for_broker,
		.drop_arg = main_ids(d),
	};
	int err = broker_fork(&config, buf_str(&d->conf), &d->broker);

	return err < 0 ? main_failed("broker", err) : 0;
}

static int main_fork_marker(struct daemon *d)
{
	const struct marker_config config = {
		.mark = d->mark,
		.npeers = d->nworkers,
		.drop = shed_for_marker,
		.drop_arg = main_ids(d),
	};
	int err = d->mark ? marker_fork(&config, d->marks) : 0;

	return err < 0 ? main_failed("marker", err) : 0;
}

static int main_open_log(struct daemon *d)
{
	const char *path = d->service.config.log;
	int err = path ? broker_open_log(path, &d->log_fd) : 0;

	if (err < 0)
		log_error("%s: %s%s", path, strerror(-err),
			  err == -ENOENT || err == -EACCES ?
			  ": make its directory, writable by the service's user" :
			  "");
	return err;
}

/* --- 6 loop and threads ------------------------------------------------------------- */

static void main_on_conf(void *arg, struct str text)
{
	const struct daemon *d = arg;

	upstreams_on_conf(&d->upstreams, text, d->worker, d->nworkers);
}

static void main_on_log(void *arg, int fd_or_err)
{
	struct daemon *d = arg;

	if (fd_or_err < 0) {
		log_error("%s: %s; records go on into the old file",
			  d->service.config.log, strerror(-fd_or_err));
		return;
	}
	plug_set_log(d->plug, fd_or_err);
	host_listens_set_log(d->listens, fd_or_err);
	fd_closep(&d->log_fd);
	d->log_fd = fd_or_err;
	log_info("%s: opened anew", d->service.config.log);
}

static void main_on_policies(void *arg, bool asked)
{
	struct daemon *d = arg;

	reading_on_begin(&d->reading, asked);
}

static void main_on_policy(void *arg, struct str name, int err, int fd)
{
	struct daemon *d = arg;

	reading_on_file(&d->reading, name, err, fd);
}

static void main_on_policies_end(void *arg, uint32_t serial, int err)
{
	struct daemon *d = arg;

	reading_on_end(&d->reading, serial, err);
}

static void main_on_broker_gone(void *arg)
{
	const struct daemon *d = arg;

	log_error("the broker is gone: changes of resolv.conf and of policies are not followed and the log cannot be reopened until a restart");
	reading_on_gone(&d->reading);
}

static int main_make_workers(struct daemon *d)
{
	int err = 0;

	d->whole.max = d->service.config.connections;
	atomic_store(&d->whole.memory.limit, d->service.config.memory);
	isolate_reserve(d->service.config.reserve);
	for (size_t i = 0; err == 0 && i < d->nworkers; i++) {
		err = d->opts.private
			? worker_lodge((unsigned)i, d->base, &d->worker[i])
			: worker_new((unsigned)i, &d->worker[i]);
		if (err == 0) {
			d->worker[i]->doors = d->service.socks.doors;
			d->worker[i]->parents = d->parents;
			d->worker[i]->source = d->source;
			d->worker[i]->whole = &d->whole;
		}
		if (err == 0 && d->mark)
			err = marks_new(d->worker[i]->base, d->marks[i],
					&d->worker[i]->marks);
	}
	if (err < 0)
		return main_failed("workers", err);
	d->upstreams.doors = d->service.socks.doors;
	d->upstreams.hosts = d->hosts;
	err = upstreams_start(&d->upstreams, buf_str(&d->conf), d->worker,
			      d->nworkers);
	return err < 0 ? main_failed("upstream resolvers", err) : 0;
}

size_t main_left(const struct daemon *d)
{
	return plug_runs(d->plug) + host_listens_left(d->listens) +
	       plug_preds(d->plug);
}

static void main_on_idle(void *arg)
{
	struct daemon *d = arg;

	if (d->opts.private || (d->draining && main_left(d) == 0))
		event_base_loopbreak(d->base);
}

static void main_on_listens_ready(void *arg, int err)
{
	struct daemon *d = arg;

	d->err = err;
	if (err < 0)
		main_end_runs(d);
	d->serving = err == 0;
	if (d->serving && d->over && !d->draining)
		main_ready(d);
}

static int main_make_listens(struct daemon *d)
{
	struct host_listens_config config = {
		.base = d->base,
		.worker = d->worker,
		.nworkers = d->nworkers,
		.writer = d->writer,
		.config = &d->service.config,
		.policies = &d->service.policies,
		.socks = &d->service.socks,
		.log_fd = d->log_fd,
		.on_ready = main_on_listens_ready,
		.on_idle = main_on_idle,
		.arg = d,
	};

	return d->opts.private ? 0 : host_listens_new(&config, &d->listens);
}

static int main_make_plug(struct daemon *d)
{
	struct plug_config config = {
		.base = d->base,
		.worker = d->worker,
		.nworkers = d->nworkers,
		.writer = d->writer,
		.own_netns = d->own_netns,
		.service = d->opts.private ? NULL : &d->service.config,
		.policies = &d->service.policies,
		.parents = d->parents,
		.compiler = d->compiler,
		.log_fd = d->log_fd,
		.on_idle = main_on_idle,
		.arg = d,
		.on_reload = reading_on_asked,
		.on_policy = d->opts.private ? NULL : reading_on_policy,
		.on_policy_failed = d->opts.private ? NULL
						    : reading_on_policy_failed,
		.reading = &d->reading,
		.on_hello = d->opts.private ? NULL : main_on_hello,
		.on_over = main_on_over,
	};

	return plug_new(&config, &d->plug);
}

void main_end_runs(struct daemon *d)
{
	handover_break_off(d->handover, "this service is going down");
	d->draining = true;
	if (main_left(d) == 0)
		event_base_loopbreak(d->base);
	if (d->listens)
		host_listens_end(d->listens, REASON_SHUTDOWN);
	plug_end_all(d->plug, REASON_SHUTDOWN);
	plug_preds_end(d->plug);
}

static void main_drain_cb(evutil_socket_t fd UNUSED, short what UNUSED,
			  void *arg)
{
	main_end_runs(arg);
}

static void main_on_term(struct daemon *d)
{
	struct timeval bound = { .tv_sec = d->service.config.drain_s };

	handover_break_off(d->handover, "this service is going down");
	notify_send(d->notify_fd, "STOPPING=1");
	/* A second signal, or nothing to wait for: at once. */
	if (d->draining || d->opts.private || bound.tv_sec == 0 ||
	    main_left(d) == 0) {
		main_end_runs(d);
		return;
	}
	d->draining = true;
	plug_stop_listening(d->plug);
	host_listens_drain(d->listens);
	workers_drain(d->worker, d->nworkers);
	log_info("nothing new; %zu runs and %zu listeners may go on",
		 plug_runs(d->plug), host_listens_left(d->listens));
	if (event_add(d->drain, &bound) < 0)
		main_end_runs(d);
}

static void main_on_hup(struct daemon *d)
{
	const struct config *c = &d->service.config;
	int err;

	err = c->log ? broker_reopen(d->broker) : 0;
	if (err < 0)
		log_error("%s: cannot be reopened: %s", c->log,
			  strerror(-err));
	reading_ask(&d->reading);
}

static void main_signal_cb(evutil_socket_t fd, short what, void *arg)
{
	struct signalfd_siginfo info;
	struct daemon *d = arg;

	(void)what;
	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGHUP)
			main_on_hup(d);
		else
			main_on_term(d);
	}
}

static int main_make_events(struct daemon *d)
{
	static const struct broker_events events = {
		main_on_conf, main_on_log, main_on_policies, main_on_policy,
		main_on_policies_end, main_on_broker_gone,
	};
	int err;

	d->signals = event_new(d->base, d->signal_fd, EV_READ | EV_PERSIST,
			       main_signal_cb, d);
	d->drain = event_new(d->base, -1, 0, main_drain_cb, d);
	if (!d->signals || !d->drain || event_add(d->signals, NULL) < 0)
		return -ENOMEM;
	err = broker_start(d->broker, d->base, &events, d);
	d->reading.dir = d->service.config.policies;
	d->reading.broker = d->broker;
	d->reading.policies = &d->service.policies;
	d->reading.compiler = d->compiler;
	if (err == 0)
		err = host_addrs_start(d->hosts, d->base, d->worker,
				       d->nworkers);
	if (err == 0)
		err = main_make_plug(d);
	d->reading.plug = d->plug;
	if (err == 0)
		err = main_make_listens(d);
	d->reading.listens = d->listens;
	return err < 0 ? err : main_make_handover(d);
}

static int main_make_loop(struct daemon *d)
{
	struct event_config *config = event_config_new();

	if (!config)
		return -ENOMEM;
	if (event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK |
				  EVENT_BASE_FLAG_IGNORE_ENV) == 0)
		d->base = event_base_new_with_config(config);
	event_config_free(config);
	return d->base ? 0 : -ENOMEM;
}

static int main_start_threads(struct daemon *d)
{
	size_t i;
	int err;

	/* Only workers, and the compiler, allocate much; each further arena
	 * costs a start pages. */
	(void)mallopt(M_ARENA_MAX, (int)d->nworkers + !d->opts.private);
	err = main_make_loop(d);
	if (err < 0)
		return main_failed("threads", err);
	err = main_make_workers(d);
	if (err < 0)
		return err;
	err = audit_writer_new(&d->writer);
	if (err == 0 && !d->opts.private)
		err = compiler_new(d->base, COMPILER_HERE_MAX,
				   &d->compiler);
	if (err == 0)
		err = main_make_events(d);
	for (i = 0; err == 0 && i < d->nworkers; i++)
		err = d->opts.upgrade ? worker_start_held(d->worker[i])
				      : worker_start(d->worker[i]);
	return err < 0 ? main_failed("threads", err) : 0;
}

/* --- 8 serve, 9 end ------------------------------------------------------------------- */

void main_ready(struct daemon *d)
{
	const struct service *s = &d->service;

	notify_send(d->notify_fd, "READY=1");
	detach_tell(d->detached_fd);
	fd_closep(&d->detached_fd);
	if (!d->opts.private)
		log_info("ready: %s, workers: %zu, policies: %zu, listeners: %zu",
			 s->config.plug, d->nworkers, s->policies.n,
			 s->config.nlistens);
}

static int main_serve(struct daemon *d)
{
	int err;

	d->over = !d->opts.upgrade;
	if (d->opts.upgrade)
		main_take_over(d);
	if (d->opts.private)
		err = plug_attach(d->plug, d->opts.plug_fd);
	else
		err = plug_listen(d->plug, fd_take(&d->service.listen_fd));
	if (err < 0)
		return main_failed("plug", err);
	if (d->opts.upgrade)
		host_listens_serve(d->listens);
	else if (d->listens)
		host_listens_start(d->listens);
	else
		main_ready(d);
	return event_base_loop(d->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0
		? -EIO : d->err;
}

/* For those who look for leaks: at the end of the process the kernel takes all
 * of it back at once, which is faster. */
static void main_free(struct daemon *d)
{
	size_t i;

	for (i = 0; i < d->nworkers; i++) {
		if (d->worker[i])
			host_addrs_release(d->worker[i]);
		worker_free(d->worker[i]);
	}
	upstreams_close(&d->upstreams);
	host_addrs_free(d->hosts);
	broker_free(d->broker);
	if (d->signals)
		event_free(d->signals);
	if (d->drain)
		event_free(d->drain);
	if (d->base)
		event_base_free(d->base);
	service_done(&d->service);
	parents_done(&d->opts.parents);
	buf_done(&d->conf);
}

/* Nothing is posted any more when the writer writes its last. */
static void main_end(struct daemon *d)
{
	size_t i;

	for (i = 0; i < d->nworkers; i++)
		if (d->worker[i])
			worker_join(d->worker[i]);
	compiler_free(d->compiler);
	reading_break_off(&d->reading);
	host_listens_free(d->listens);
	plug_free(d->plug);
	if (d->writer)
		audit_writer_free(d->writer, MAIN_WRITER_MS);
	if (MAIN_FREES)
		main_free(d);
}

static int main_run(struct daemon *d)
{
	int err = start_check_ids(d->has_ids, d->opts.private);

	if (err == 0)
		err = main_open(d);
	if (err == 0)
		err = main_fork_broker(d);
	if (err == 0)
		err = main_fork_marker(d);
	if (err == 0)
		err = shed_rights(main_ids(d));
	if (err == 0)
		err = main_open_log(d);
	if (err == 0)
		err = shed_files(d->source);
	if (err == 0)
		err = main_start_threads(d);
	if (err == 0)
		err = shed_calls(d->source ? ISOLATE_DAEMON_BINDS :
					     ISOLATE_DAEMON);
	if (err == 0)
		err = main_serve(d);
	main_end(d);
	return err;
}

int main(int argc, char **argv)
{
	static struct daemon daemon = {
		.service = { .listen_fd = -1 },
		.signal_fd = -1,
		.notify_fd = -1,
		.log_fd = -1,
		.detached_fd = -1,
		.typed_fd = -1,
	};
	struct daemon *d = &daemon;
	enum opts_result parsed = opts_parse(argc, argv, &d->opts);

	if (parsed != OPTS_RUN)
		return parsed == OPTS_DONE ? 0 : 2;
	log_init("penstockd", d->opts.has_level ? d->opts.level
		 : d->opts.private ? LOG_WARN : LOG_INFO);
	if (main_configure(d) < 0)
		return 1;
	if (d->opts.check) {
		int err = upstreams_open(&d->upstreams);

		service_warn_of_policies(&d->service);
		upstreams_close(&d->upstreams);
		service_done(&d->service);
		return err < 0 ? 1 : 0;
	}
	takeover_init(&d->takeover);
	if (d->opts.upgrade && detach(&d->detached_fd) < 0) {
		log_error("cannot go to the background");
		return 1;
	}
	isolate_exit(main_run(d) < 0 ? 1 : 0);
}
