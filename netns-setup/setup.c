/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup.c - makes the sandbox from the inside, then watches over it as init
 *
 *	network	   lo, sockets, firewall; needs no user ids yet, so it goes on
 *		   while the launcher writes the id maps
 *	hand over  the sockets go to the launcher, and are closed here: from
 *		   now on nobody inside holds one
 *	ids	   root of U1, an unprivileged id outside; from here on the
 *		   launcher's death kills this process, and with it all
 *	mounts	   see mounts.c
 *	command	   cloned into U2, waits
 *	init	   reaps, passes signals on, says how the command ended
 *
 * It is undumpable and in the parent of the command's user namespace, so the
 * command can neither trace it nor look at its memory or descriptors.  Signals
 * from inside do not reach a namespace's init that has no handler for them.
 */
#include "netns-setup/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "netns-setup/command.h"
#include "netns-setup/fault.h"
#include "netns-setup/mounts.h"
#include "netns-setup/ns_link.h"
#include "netns-setup/ns_listen.h"
#include "netns-setup/ns_nft.h"
#include "netns-setup/std_file.h"
#include "netns-setup/step.h"

/* What is known once the network is there. */
struct network {
	bool v6, wildcard;
};

static int by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* Close what the launcher had open and the sandbox does not need. */
static int close_others(const struct setup *s, struct launch_error *err)
{
	int keep[] = { 0, 1, 2, s->step, s->report, s->std[0], s->std[1],
		       s->std[2], s->workdir_fd };
	int last = -1;

	qsort(keep, ARRAY_SIZE(keep), sizeof(keep[0]), by_number);
	for (size_t i = 0; i <= ARRAY_SIZE(keep); i++) {
		bool end = i == ARRAY_SIZE(keep);

		if (!end && keep[i] <= last)
			continue;
		if ((end || keep[i] > last + 1) &&
		    syscall(SYS_close_range, last + 1,
			    end ? ~0u : (unsigned)keep[i] - 1, 0))
			return fault(err, errno, "cannot close descriptors");
		if (!end)
			last = keep[i];
	}
	return 0;
}

/* Before ids change: the file is the caller's. */
static int keep_inputs(const struct setup *s, struct launch_error *err)
{
	int e = 0;

	for (int i = 0; !e && i < 3; i++) {
		if (s->input[i])
			e = std_file_readonly(s->std[i], err);
	}
	return e;
}

/* --- network ---------------------------------------------------------------- */

static int firewall(struct ns_sockets *sockets, struct network *net,
		    struct launch_error *err)
{
	const struct ns_nft_config config = {
		.tproxy4 = sockets->tproxy4,
		.tproxy6 = sockets->tproxy6,
		.log = sockets->fd[PLUG_FD_NFLOG] >= 0,
	};
	int e = ns_nft_load(&config, err);

	if (e != -EOPNOTSUPP)
		return e;
	net->wildcard = true;
	fd_closep(&sockets->fd[PLUG_FD_NFLOG]);
	return ns_listen_tproxy(sockets, net->v6, true, err);
}

static int hand_over(const struct setup *s, const struct ns_sockets *sockets,
		     const struct network *net, struct launch_error *err)
{
	struct step step = {
		.type = STEP_SOCKETS,
		.flags = (net->v6 ? STEP_HAS_V6 : 0) |
			 (net->wildcard ? STEP_WILDCARD : 0),
	};
	int fds[PLUG_FDS], e;
	size_t n = 0;

	for (unsigned i = 0; i < PLUG_FDS; i++) {
		if (sockets->fd[i] == -1)
			continue;
		fds[n++] = sockets->fd[i];
		step.number |= BIT(i);
	}
	e = step_send(s->step, &step, fds, n);
	if (e)
		return fault(err, -e, "cannot hand the sockets over");
	return 0;
}

static int make_network(const struct setup *s, struct network *net,
			struct launch_error *err)
{
	struct ns_sockets sockets = NS_SOCKETS_INIT;
	int e = ns_link_up(&net->v6, err);

	if (!e)
		e = ns_listen_open(&sockets, net->v6, err);
	if (!e)
		e = ns_listen_tproxy(&sockets, net->v6, false, err);
	if (!e)
		e = firewall(&sockets, net, err);
	if (!e)
		e = hand_over(s, &sockets, net, err);
	ns_sockets_close(&sockets);
	if (!e && !net->v6)
		step_note(s->step, "no IPv6 in this kernel: the sandbox has "
			  "IPv4 only");
	if (!e && net->wildcard)
		step_note(s->step, "no nftables or tproxy in this kernel: "
			  "programs that do not use the proxy reach port %d "
			  "only", NS_WILDCARD_PORT);
	return e;
}

/* --- ids and files ---------------------------------------------------------- */

static int take_ids(const struct setup *s, struct launch_error *err)
{
	struct step step;
	int e = step_recv(s->step, &step, NULL, NULL);

	if (!e && step.type != STEP_MAPPED)
		e = -EPROTO;
	if (e)
		return fault(err, -e, "the launcher did not map the ids");
	e = id_become_setup(&s->ids, err);
	if (e)
		return e;
	/*
	 * A change of ids clears both.  Should the launcher have died before
	 * the first, the next read from it says so.
	 */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) ||
	    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
		return fault(err, errno, "cannot tie the sandbox's life to "
			     "the launcher's");
	return 0;
}

static int make_files(const struct setup *s, struct launch_error *err)
{
	const struct launch_spec *spec = s->spec;
	const struct mounts_plan plan = {
		.uid = id_in_setup(&s->ids, s->ids.uid),
		.gid = id_in_setup(&s->ids, s->ids.gid),
		.inside_uid = s->ids.uid,
		.inside_gid = s->ids.gid,
		.user = spec->user,
		.hostname = spec->hostname,
		.home = spec->home,
		.runtime_dir = spec->runtime_dir,
		.all_homes = s->ids.privileged,
		.workdir = s->workdir,
		.workdir_fd = s->workdir_fd,
		.hide = spec->hide,
		.lock = spec->lock,
		.show = spec->show,
		.sockets = s->sockets,
	};

	if (sethostname(spec->hostname, strlen(spec->hostname)))
		return fault(err, errno, "cannot set the host name");
	return mounts_make(&plan, err);
}

static int make_terminal(const struct setup *s, int *ret_slave,
			 struct launch_error *err)
{
	CLEANUP(fd_closep) int master = -1, slave = -1;
	const struct step step = { .type = STEP_TERMINAL };
	int zero = 0, e;

	if (!s->terminal)
		return 0;
	master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master == -1 || ioctl(master, TIOCSPTLCK, &zero))
		return fault(err, errno, "cannot make a terminal");
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave == -1 || tcsetattr(slave, TCSANOW, &s->termios) ||
	    ioctl(slave, TIOCSWINSZ, &s->winsize))
		return fault(err, errno, "cannot set the terminal up");
	e = step_send(s->step, &step, &master, 1);
	if (e)
		return fault(err, -e, "cannot hand the terminal over");
	*ret_slave = fd_take(&slave);
	return 0;
}

/* --- the command ------------------------------------------------------------ */

struct child {
	pid_t pid;
	int go;		/* write side */
};

static int start_command(const struct setup *s, const struct network *net,
			 int terminal, struct child *ret,
			 struct launch_error *err)
{
	int go[2], e;
	struct command c = {
		.spec = s->spec,
		.ids = &s->ids,
		.start_dir = s->start_dir,
		.nonce = s->nonce,
		.std = { s->std[0], s->std[1], s->std[2] },
		.terminal = terminal,
		.report = s->report,
		.v6 = net->v6,
		.firewall = !net->wildcard,
		.umask = s->umask,
		.signals = s->signals,
	};

	if (pipe2(go, O_CLOEXEC))
		return fault(err, errno, "cannot make a pipe");
	c.go = go[0];
	ret->pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL,
				  NULL, NULL, NULL);
	if (ret->pid == 0) {
		close(go[1]);
		command_run(&c);
	}
	close(go[0]);
	ret->go = go[1];
	if (ret->pid == -1)
		return fault(err, errno, "cannot start the command's process");
	e = id_map_command(&s->ids, ret->pid, err);
	if (e)
		return e;
	e = fd_write_all(ret->go, &(char){ COMMAND_MAPPED }, 1);
	return e ? fault(err, -e, "the command's process has gone") : 0;
}

/* Nothing of the command's stays open here; nobody may look in. */
static int become_init(const struct setup *s, int terminal,
		       struct launch_error *err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null == -1)
		return fault(err, errno, "cannot open /dev/null");
	for (int i = 0; i < 3; i++) {
		if (s->std[i] > 2)
			close(s->std[i]);
		if (dup2(null, i) == -1)
			return fault(err, errno, "cannot leave the streams");
	}
	close(null);
	if (terminal >= 0)
		close(terminal);
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
		return fault(err, errno, "cannot become undumpable");
	return 0;
}

/* Reap everybody; true when the command itself is among them. */
static bool reap(pid_t command, int *ret_status)
{
	bool ended = false;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == command) {
			*ret_status = status;
			ended = true;
		}
	}
	return ended;
}

/* false: the launcher has gone, or talks nonsense. */
static bool obey(const struct setup *s, struct child *child)
{
	struct step step;

	if (step_recv(s->step, &step, NULL, NULL))
		return false;
	if (step.type == STEP_GO)
		return fd_write_all(child->go, &(char){ COMMAND_PLUGGED },
				    1) == 0 || errno == EPIPE;
	if (step.type != STEP_SIGNAL || step.number >= NSIG)
		return false;
	/* It may have ended just now: then there is nobody to tell. */
	if (kill(-child->pid, (int)step.number))
		errno = 0;
	return true;
}

static NORETURN void watch(const struct setup *s, struct child *child,
			   int chld)
{
	struct pollfd p[] = { { chld, POLLIN, 0 }, { s->step, POLLIN, 0 } };
	struct signalfd_siginfo skip;
	struct step end = { .type = STEP_EXITED };
	int status;

	for (;;) {
		if (poll(p, ARRAY_SIZE(p), -1) == -1 && errno != EINTR)
			_exit(125);
		if (p[0].revents && read(chld, &skip, sizeof(skip)) > 0 &&
		    reap(child->pid, &status)) {
			end.number = (uint32_t)status;
			_exit(step_send(s->step, &end, NULL, 0) ? 125 : 0);
		}
		if (p[1].revents && !obey(s, child))
			_exit(125);
	}
}

static int watch_children(int *ret_fd, struct launch_error *err)
{
	sigset_t chld;

	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &chld, NULL))
		return fault(err, errno, "cannot block SIGCHLD");
	*ret_fd = signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
	if (*ret_fd == -1)
		return fault(err, errno, "cannot watch for children");
	return 0;
}

void setup_run(struct setup *s)
{
	struct launch_error err = { 0, "" };
	struct network net = { false, false };
	struct child child = { -1, -1 };
	int terminal = -1, chld = -1, e;

	umask(022);
	e = close_others(s, &err);
	if (!e)
		e = keep_inputs(s, &err);
	if (!e)
		e = make_network(s, &net, &err);
	if (!e)
		e = take_ids(s, &err);
	if (!e)
		e = make_files(s, &err);
	if (!e)
		e = make_terminal(s, &terminal, &err);
	if (!e)
		e = watch_children(&chld, &err);
	if (!e)
		e = start_command(s, &net, terminal, &child, &err);
	if (!e)
		e = become_init(s, terminal, &err);
	if (e) {
		step_report(s->report, &err);
		_exit(125);
	}
	close(s->report);
	watch(s, &child, chld);
}
