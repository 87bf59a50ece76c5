/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch.c - `penstock run`, seen from outside the sandbox
 *
 * Theory of operation
 * ===================
 *
 * Three processes start at about the same time: the private daemon (unless a
 * service is there), the setup process (S, setup.c) in the new namespaces, and,
 * from S, the command's process, which waits.  This one connects them and then
 * passes signals and bytes on until all is over.
 *
 *	MAKE ---> PLUG ---> PROVE ---> RUN ---> CLOSE ---> OVER
 *	  |         |         |         |                   ^
 *	  +---------+---------+---------+-------------------+
 *
 *	from	to	by			because
 *	MAKE	PLUG	on_sockets()		S sent what was born inside
 *	PLUG	PROVE	on_ready()		the daemon has policy and sockets
 *	PROVE	RUN	on_report()		the report pipe ended: exec'd
 *	RUN	CLOSE	on_setup_end()		the command and S have ended
 *	CLOSE	OVER	on_closed()		the last record is written
 *	any	OVER	launch_fail()		words are in the error
 *
 * Every process is tied to this one: S has PDEATHSIG and the step socket, and
 * the pid namespace dies with S; the daemon sees the plug close.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "netns-setup/control.h"
#include "netns-setup/fault.h"
#include "netns-setup/handover.h"
#include "netns-setup/host_sockets.h"
#include "netns-setup/idmap.h"
#include "netns-setup/launch.h"
#include "netns-setup/setup.h"
#include "netns-setup/step.h"
#include "netns-setup/streams.h"
#include "netns-setup/workdir.h"

/* A sandbox takes milliseconds; a loaded machine may take its time. */
#define START_MAX_MS	60000
#define CLOSE_MAX_MS	10000	/* for the daemon's last records */
#define NONCE_BYTES	16

#define NAMESPACES \
	(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID | \
	 CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

enum launch_state {
	LAUNCH_MAKE,
	LAUNCH_PLUG,
	LAUNCH_PROVE,
	LAUNCH_RUN,
	LAUNCH_CLOSE,
	LAUNCH_OVER,

	LAUNCH_STATES
};

static const struct {
	const char *name;
	uint32_t next;
} launch_states[] = {
	[LAUNCH_MAKE]  = { "make",  BIT(LAUNCH_PLUG)  | BIT(LAUNCH_OVER) },
	[LAUNCH_PLUG]  = { "plug",  BIT(LAUNCH_PROVE) | BIT(LAUNCH_OVER) },
	[LAUNCH_PROVE] = { "prove", BIT(LAUNCH_RUN)   | BIT(LAUNCH_OVER) },
	[LAUNCH_RUN]   = { "run",   BIT(LAUNCH_CLOSE) | BIT(LAUNCH_OVER) },
	[LAUNCH_CLOSE] = { "close", BIT(LAUNCH_OVER) },
	[LAUNCH_OVER]  = { "over",  0 },
};
static_assert(ARRAY_SIZE(launch_states) == LAUNCH_STATES, "name every state");

struct launch {
	enum launch_state state;
	const struct launch_spec *spec;
	struct launch_error *err;
	int failure;		/* -errno, once it failed */
	struct launch_result result;
	struct id_plan ids;
	struct streams streams;
	struct workdir workdir;
	struct host_sockets sockets;
	struct control control;
	int step, report, plug, signals;	/* -1: not (any more) open */
	pid_t setup, daemon;			/* -1: none, or waited for */
	bool ended;		/* S said how the command ended */
	bool terminated;	/* one SIGTERM was passed on */
	char nonce[2 * NONCE_BYTES + 1];
	sigset_t old_mask;
};

static void set_state(struct launch *l, enum launch_state to)
{
	REQUIRE(launch_states[l->state].next & BIT(to));
	l->state = to;
}

static void note(const struct launch *l, const char *line)
{
	if (l->spec->note)
		l->spec->note(l->spec->note_arg, line);
}

/* The first failure counts; what follows is only its consequence. */
static void launch_fail(struct launch *l, int e)
{
	if (l->state == LAUNCH_OVER)
		return;
	l->failure = e;
	set_state(l, LAUNCH_OVER);
}

/* --- start ------------------------------------------------------------------ */

static int watch_signals(struct launch *l)
{
	static const int watched[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH,
		SIGCONT, SIGCHLD,
	};
	sigset_t mask, block;

	sigemptyset(&mask);
	for (size_t i = 0; i < ARRAY_SIZE(watched); i++)
		sigaddset(&mask, watched[i]);
	block = mask;
	sigaddset(&block, SIGPIPE);	/* a write then says EPIPE */
	sigaddset(&block, SIGTTOU);	/* setting the terminal back at the end */
	if (sigprocmask(SIG_BLOCK, &block, &l->old_mask))
		return fault(l->err, errno, "cannot block signals");
	l->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->signals == -1)
		return fault(l->err, errno, "cannot watch for signals");
	return 0;
}

static int start_daemon(struct launch *l)
{
	if (l->spec->plug_path)
		return handover_connect(l->spec->plug_path, &l->plug, l->err);
	return handover_spawn(l->spec, id_of_daemon(&l->ids), &l->plug,
			      &l->daemon, l->err);
}

static int explain_clone(struct launch *l, int e)
{
	int ret = fault(l->err, e, "cannot create a user namespace");
	char restricted = '0';
	CLEANUP(fd_closep) int fd =
		open("/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
		     O_RDONLY | O_CLOEXEC);

	if (fd >= 0 && read(fd, &restricted, 1) == 1 && restricted == '1') {
		fault_mend(l->err, "This kernel restricts unprivileged user "
			   "namespaces through AppArmor (Ubuntu 23.10 and "
			   "later).");
		fault_mend(l->err, "Either:  sudo penstock run ...");
		fault_mend(l->err, "or:      allow penstock's program in an "
			   "AppArmor profile with the rule \"userns,\"");
	} else if (e == ENOSPC) {
		fault_mend(l->err, "The limit user.max_user_namespaces is "
			   "reached: raise it with sysctl.");
	} else if (e == EPERM) {
		fault_mend(l->err, "A sysctl (kernel.unprivileged_userns_clone"
			   ") or a container's seccomp profile forbids it.");
	}
	fault_mend(l->err, "See:     penstock doctor");
	return ret;
}

static int clone_setup(struct launch *l)
{
	struct setup s = {
		.spec = l->spec,
		.ids = l->ids,
		.terminal = l->streams.terminal,
		.termios = l->streams.termios,
		.winsize = l->streams.winsize,
		.workdir = l->workdir.back,
		.workdir_fd = l->workdir.fd,
		.start_dir = l->workdir.start,
		.sockets = l->sockets.path,
		.nonce = l->nonce,
		.signals = l->old_mask,
	};
	int pair[2], report[2];

	memcpy(s.std, l->streams.child, sizeof(s.std));
	memcpy(s.input, l->streams.input, sizeof(s.input));
	s.umask = umask(022);
	umask(s.umask);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ||
	    pipe2(report, O_CLOEXEC))
		return fault(l->err, errno, "cannot talk to the sandbox");
	s.step = pair[1];
	s.report = report[1];
	l->setup = (pid_t)syscall(SYS_clone, NAMESPACES | SIGCHLD, NULL, NULL,
				  NULL, NULL);
	if (l->setup == 0)
		setup_run(&s);
	l->step = pair[0];
	l->report = report[0];
	close(pair[1]);
	close(report[1]);
	fd_closep(&l->workdir.fd);
	streams_cloned(&l->streams);
	if (l->setup == -1)
		return explain_clone(l, errno);
	return 0;
}

static int tell_mapped(struct launch *l)
{
	const struct step mapped = { .type = STEP_MAPPED };
	int e = id_map_setup(&l->ids, l->setup, l->err);

	if (e)
		return e;
	/* Where it has gone, its report says why. */
	e = step_send(l->step, &mapped, NULL, 0);
	return e == -EPIPE || e == -ECONNRESET ? 0 : e;
}

static int find_sockets(struct launch *l)
{
	int e = host_sockets_find(&l->sockets, l->workdir.back);

	if (e)
		return fault(l->err, -e, "cannot list the host's sockets, "
			     "which the sandbox hides");
	return 0;
}

/* Behind the clone, so that no process of the sandbox ever held it. */
static void open_control(struct launch *l)
{
	if (l->spec->control_dir &&
	    control_open(&l->control, l->spec->control_dir))
		note(l, "no socket could be made in the run's directory: the "
		     "policy stays as it is to the end");
}

static int start(struct launch *l)
{
	const char *why = NULL;
	int e = id_plan_make(l->spec, &l->ids, &why, l->err);

	if (!e && why)
		note(l, why);
	if (!e)
		e = watch_signals(l);
	if (!e)
		e = start_daemon(l);
	if (!e)
		e = workdir_plan(l->spec, &l->ids, &l->workdir, l->err);
	if (!e && l->workdir.note)
		note(l, l->workdir.note);
	if (!e)
		e = find_sockets(l);
	if (!e)
		e = streams_init(&l->streams, l->err);
	if (!e)
		e = clone_setup(l);
	if (!e)
		open_control(l);
	return e ? e : tell_mapped(l);
}

/* --- what the setup process says -------------------------------------------------- */

static void on_sockets(struct launch *l, const struct step *step,
		       const int *fds, size_t n)
{
	const struct handover h = {
		.nonce = l->nonce,
		.bits = step->number,
		.flags = step->flags & STEP_WILDCARD ? PLUG_FLAG_NO_TPROXY : 0,
		.socket = fds,
		.nsockets = n,
	};
	int e;

	if (l->state != LAUNCH_MAKE) {
		launch_fail(l, fault(l->err, EPROTO, "sockets came twice"));
		return;
	}
	l->result.tproxy = !h.flags;
	e = handover_open(l->plug, l->spec, &h, l->err);
	/* One that has ended already is heard of next, with its reason. */
	if (e && e != -EPIPE && e != -ECONNRESET)
		launch_fail(l, e);
	else
		set_state(l, LAUNCH_PLUG);
}

static void on_exited(struct launch *l, int status)
{
	l->ended = true;
	if (WIFSIGNALED(status))
		l->result.signal = WTERMSIG(status);
	else
		l->result.exit_code = WEXITSTATUS(status);
}

static void reap(pid_t *pid)
{
	while (*pid > 0 && waitpid(*pid, NULL, 0) == -1 && errno == EINTR)
		;
	*pid = -1;
}

/* S has ended, and so has every process of its pid namespace. */
static void on_setup_end(struct launch *l)
{
	fd_closep(&l->step);
	reap(&l->setup);
	if (l->state != LAUNCH_RUN)
		return;			/* the report says more */
	if (!l->ended)
		l->result.signal = SIGKILL;	/* S was killed, and so it all */
	set_state(l, LAUNCH_CLOSE);
	if (l->plug >= 0 && handover_close(l->plug)) {
		l->result.daemon_lost = true;
		fd_closep(&l->plug);
	}
}

static void on_terminal(struct launch *l, int *fds, size_t n)
{
	int e;

	if (n != 1)
		launch_fail(l, fault(l->err, EPROTO, "no terminal came"));
	else if ((e = streams_terminal(&l->streams, fd_take(&fds[0]), l->err)))
		launch_fail(l, e);
}

static void on_step(struct launch *l)
{
	int fds[FD_PASS_MAX];
	size_t n = 0;
	struct step step;
	int e = step_recv(l->step, &step, fds, &n);

	if (e) {
		on_setup_end(l);
		return;
	}
	step.text[sizeof(step.text) - 1] = '\0';
	if (step.type == STEP_SOCKETS)
		on_sockets(l, &step, fds, n);
	else if (step.type == STEP_TERMINAL)
		on_terminal(l, fds, n);
	else if (step.type == STEP_NOTE)
		note(l, step.text);
	else if (step.type == STEP_EXITED)
		on_exited(l, (int)step.number);
	for (size_t i = 0; i < n; i++)
		fd_closep(&fds[i]);
}

static void on_report(struct launch *l)
{
	struct launch_error said;
	ssize_t n = read(l->report, &said, sizeof(said));

	if (n == -1 && errno == EINTR)
		return;
	fd_closep(&l->report);
	if (n == (ssize_t)sizeof(said)) {
		said.text[sizeof(said.text) - 1] = '\0';
		*l->err = said;
		launch_fail(l, -ECANCELED);
	} else if (l->state == LAUNCH_PROVE && n == 0) {
		set_state(l, LAUNCH_RUN);
		if (l->step < 0)
			on_setup_end(l);
	} else {
		launch_fail(l, fault(l->err, 0, "the sandbox ended before the "
				     "command could start"));
	}
}

/* What is seen now may have come after the command began: look first. */
static void catch_up(struct launch *l)
{
	struct pollfd p = { l->report, POLLIN, 0 };

	if (l->state == LAUNCH_PROVE && p.fd >= 0 && poll(&p, 1, 0) == 1)
		on_report(l);
}

/* --- what the daemon says ------------------------------------------------------ */

static void on_ready(struct launch *l, const struct plug_ready *ready)
{
	const struct step go = { .type = STEP_GO };
	int e;

	if (l->state != LAUNCH_PLUG) {
		launch_fail(l, fault(l->err, EPROTO, "penstockd spoke out of "
				     "turn"));
		return;
	}
	handover_label(ready->name, ready->digest, l->result.policy);
	/* Where S has gone, its report says why. */
	e = step_send(l->step, &go, NULL, 0);
	if (e && e != -EPIPE && e != -ECONNRESET)
		launch_fail(l, fault(l->err, -e, "cannot start the command"));
	else
		set_state(l, LAUNCH_PROVE);
}

static void on_daemon_end(struct launch *l)
{
	fd_closep(&l->plug);
	catch_up(l);
	if (l->state == LAUNCH_CLOSE || l->state == LAUNCH_RUN) {
		l->result.daemon_lost = true;
		if (l->state == LAUNCH_CLOSE)
			set_state(l, LAUNCH_OVER);
		else
			note(l, "penstockd has ended: the sandbox has no "
			     "network any more");
		return;
	}
	launch_fail(l, fault(l->err, 0, "penstockd ended before it took the "
			     "sandbox%s", l->daemon > 0 ?
			     "; what it said stands above" : ""));
}

static void on_closed(struct launch *l, const struct plug_closed *closed)
{
	if (l->state != LAUNCH_CLOSE)
		return;
	l->result.audit_ok = closed->audit_ok;
	l->result.records = closed->records;
	set_state(l, LAUNCH_OVER);
}

static void on_swapped(struct launch *l, const struct plug_swapped *swapped)
{
	if (swapped->ok)
		handover_label(swapped->name, swapped->digest,
			       l->result.policy);
	control_answer(&l->control, swapped);
}

static void on_plug(struct launch *l)
{
	union handover_msg m;
	int e = handover_read(l->plug, &m);

	if (e == -EPROTO)
		launch_fail(l, fault(l->err, -e, "penstock and penstockd do "
				     "not speak the same version"));
	else if (e)
		on_daemon_end(l);
	else if (m.head.type == PLUG_REFUSED)
		launch_fail(l, fault(l->err, 0, "penstockd refuses: %s",
				     m.refused.text));
	else if (m.head.type == PLUG_READY)
		on_ready(l, &m.ready);
	else if (m.head.type == PLUG_SWAPPED)
		on_swapped(l, &m.swapped);
	else
		on_closed(l, &m.closed);
}

/* --- what the owner says: another policy ----------------------------------------- */

static void on_control(void *arg, uint32_t serial, int policy_fd)
{
	struct launch *l = arg;

	if (l->state == LAUNCH_RUN && l->plug >= 0)
		control_pass_on(&l->control, l->spec, l->plug, serial,
				policy_fd);
	else
		control_refuse(&l->control, serial, l->state < LAUNCH_RUN ?
			       "the command has not started yet" :
			       "the run is over");
}

/* --- signals ---------------------------------------------------------------- */

static void pass_on(struct launch *l, uint32_t number)
{
	const struct step step = { .type = STEP_SIGNAL, .number = number };

	catch_up(l);
	/* Before there is a command, the signal is for us. */
	if (l->state != LAUNCH_RUN) {
		launch_fail(l, fault(l->err, 0, "interrupted by %s before the "
				     "command started",
				     strsignal((int)number)));
		l->err->exit_code = 128 + (int)number;
		return;
	}
	/* Whoever asks twice means it. */
	if (number == SIGTERM && l->terminated)
		kill(l->setup, SIGKILL);
	l->terminated |= number == SIGTERM;
	if (step_send(l->step, &step, NULL, 0))
		errno = 0;		/* it has just ended */
}

static void on_signal(struct launch *l)
{
	struct signalfd_siginfo s;

	if (read(l->signals, &s, sizeof(s)) != (ssize_t)sizeof(s))
		return;
	switch (s.ssi_signo) {
	case SIGCHLD:
		break;
	case SIGWINCH:
		streams_resize(&l->streams);
		break;
	case SIGCONT:
		streams_foreground(&l->streams);
		break;
	default:
		if (l->state < LAUNCH_CLOSE)
			pass_on(l, s.ssi_signo);
		else
			streams_done(&l->streams);
		break;
	}
}

/* --- the loop --------------------------------------------------------------- */

enum watch {
	WATCH_SIGNALS, WATCH_STEP, WATCH_REPORT, WATCH_PLUG, WATCH_CONTROL,
	WATCHES = WATCH_CONTROL + CONTROL_POLLS
};

static bool is_over(const struct launch *l)
{
	return l->state == LAUNCH_OVER &&
	       (l->failure || streams_drained(&l->streams));
}

static int64_t time_left(const struct launch *l, int64_t since)
{
	int64_t most = l->state < LAUNCH_RUN ? START_MAX_MS : CLOSE_MAX_MS;
	int64_t left = since + most - clock_mono_ms();

	/* At the end only a reader of ours can be slow: it gets everything. */
	if (l->state == LAUNCH_RUN || l->state == LAUNCH_OVER)
		return -1;
	return MAX(left, 0);
}

static void too_late(struct launch *l)
{
	if (l->state < LAUNCH_RUN) {
		launch_fail(l, fault(l->err, ETIMEDOUT, "the sandbox did not "
				     "get ready (%s)",
				     launch_states[l->state].name));
	} else if (l->state == LAUNCH_CLOSE) {
		l->result.daemon_lost = true;
		set_state(l, LAUNCH_OVER);
	}
}

static void turn(struct launch *l, struct pollfd *p, size_t n)
{
	if (p[WATCH_SIGNALS].revents)
		on_signal(l);
	streams_run(&l->streams, p + WATCHES, n - WATCHES);
	if (p[WATCH_REPORT].revents && l->report >= 0)
		on_report(l);
	if (p[WATCH_STEP].revents && l->step >= 0 && l->state != LAUNCH_OVER)
		on_step(l);
	if (p[WATCH_PLUG].revents && l->plug >= 0 && l->state != LAUNCH_OVER)
		on_plug(l);
	control_run(&l->control, p + WATCH_CONTROL);
}

static void loop(struct launch *l)
{
	enum launch_state seen = l->state;
	int64_t since = clock_mono_ms();

	while (!is_over(l)) {
		struct pollfd p[WATCHES + 2 * STREAMS_MAX] = {
			[WATCH_SIGNALS] = { l->signals, POLLIN, 0 },
			[WATCH_STEP] = { l->step, POLLIN, 0 },
			[WATCH_REPORT] = { l->report, POLLIN, 0 },
			[WATCH_PLUG] = { l->plug, POLLIN, 0 },
		};
		size_t n = WATCHES + streams_poll(&l->streams, p + WATCHES);
		int ready;

		control_poll(&l->control, p + WATCH_CONTROL);
		if (l->state == LAUNCH_CLOSE && l->plug < 0) {
			set_state(l, LAUNCH_OVER);
			continue;
		}
		if (l->state != seen) {
			seen = l->state;
			since = clock_mono_ms();
		}
		ready = poll(p, n, (int)time_left(l, since));
		if (ready > 0)
			turn(l, p, n);
		else if (ready == 0)
			too_late(l);
	}
}

/* --- end -------------------------------------------------------------------- */

/* The private daemon ends when its plug does; not for ever, though. */
static void end_daemon(struct launch *l)
{
	int fd;
	struct pollfd p = { -1, POLLIN, 0 };

	fd_closep(&l->plug);
	if (l->daemon <= 0)
		return;
	fd = pidfd_open(l->daemon, 0);
	p.fd = fd;
	if (fd == -1 || poll(&p, 1, CLOSE_MAX_MS) != 1)
		kill(l->daemon, SIGKILL);
	fd_closep(&fd);
	reap(&l->daemon);
}

static void finish(struct launch *l)
{
	if (l->setup > 0) {
		kill(l->setup, SIGKILL);
		reap(&l->setup);
	}
	end_daemon(l);
	control_done(&l->control);
	streams_done(&l->streams);
	fd_closep(&l->step);
	fd_closep(&l->report);
	fd_closep(&l->signals);
	fd_closep(&l->workdir.fd);
	host_sockets_done(&l->sockets);
	sigprocmask(SIG_SETMASK, &l->old_mask, NULL);
}

int launch_run(const struct launch_spec *spec, struct launch_result *ret,
	       struct launch_error *err)
{
	struct launch l = {
		.spec = spec,
		.err = err,
		.step = -1,
		.report = -1,
		.plug = -1,
		.signals = -1,
		.setup = -1,
		.daemon = -1,
		.workdir = { .fd = -1 },
		.sockets = HOST_SOCKETS_INIT,
	};
	int e;

	*err = (struct launch_error){ 125, "" };
	control_init(&l.control, on_control, &l);
	sigprocmask(SIG_BLOCK, NULL, &l.old_mask);
	id_random_hex(l.nonce, NONCE_BYTES);
	e = start(&l);
	if (e)
		launch_fail(&l, e);
	loop(&l);
	finish(&l);
	if (l.failure)
		return l.failure;
	*ret = l.result;
	return 0;
}
