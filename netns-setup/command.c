/* SPDX-License-Identifier: Apache-2.0 */
/*
 * command.c - from a child with full rights over its own empty user namespace
 *             to the command with none
 *
 *   wait until the ids are mapped
 *   own session, terminal, streams; no descriptor but those and our two pipes
 *   limits, ids, capabilities, securebits, no_new_privs, filter
 *   wait until the daemon is plugged
 *   self-test, with exactly what the command will have
 *   exec
 *
 * The order is the point: whatever could fail or be wrong after the filter is
 * seen by the self-test.
 */
#include "netns-setup/command.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <linux/securebits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "netns-setup/command_filter.h"
#include "netns-setup/fault.h"
#include "netns-setup/selftest.h"
#include "netns-setup/step.h"

#define REPORT_FD	3
#define GO_FD		4
#define FIRST_SPARE	64	/* descriptors are parked above this */
#define NOFILE_SOFT	1024
#define PATH_DEFAULT	"/usr/local/bin:/usr/bin:/bin"
#define PATH_TEXT_MAX	4096
/* What the kernel takes for one argument or variable: MAX_ARG_STRLEN. */
#define ARG_TEXT_MAX	(32 * 4096)

/*
 * What --map-root keeps, over U2 only: enough for a package manager to own
 * files and drop to another id.  None of it reaches lo, nft or a mount.
 */
static const unsigned root_caps[] = {
	CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL,
	CAP_SETGID, CAP_SETUID,
};

#define BITS_COMMON \
	(SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE | \
	 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED | SECBIT_NOROOT_LOCKED | \
	 SECBIT_NO_SETUID_FIXUP_LOCKED)
#define BITS_NOBODY	(BITS_COMMON | SECBIT_NOROOT | SECBIT_NO_SETUID_FIXUP)

/* --- streams and descriptors -------------------------------------------------- */

/* A byte from the setup process; -EPIPE when it has gone. */
static int wait_for(int fd, char what)
{
	char got = 0;
	ssize_t n;

	do {
		n = read(fd, &got, 1);
	} while (n == -1 && errno == EINTR);
	if (n == -1)
		return -errno;
	return n == 1 && got == what ? 0 : -EPIPE;
}

static int park(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_SPARE);

	return high == -1 ? -errno : high;
}

/*
 * 0, 1 and 2 become the streams, 3 the report pipe, 4 the go pipe; everything
 * else is closed.  @std are numbers of their own or above 2, so that none is
 * overwritten before it is used.
 */
static int arrange(const struct command *c, struct launch_error *err)
{
	int report = park(c->report), go = park(c->go);

	if (report < 0 || go < 0)
		return fault(err, EMFILE, "cannot park descriptors");
	for (int i = 0; i < 3; i++) {
		int from = c->std[i] >= 0 ? c->std[i] : c->terminal;

		if (from != i && dup2(from, i) == -1)
			return fault(err, errno, "cannot set up stream %d", i);
	}
	if (dup3(report, REPORT_FD, O_CLOEXEC) == -1 ||
	    dup3(go, GO_FD, O_CLOEXEC) == -1 ||
	    syscall(SYS_close_range, GO_FD + 1, ~0u, 0))
		return fault(err, errno, "cannot close other descriptors");
	return 0;
}

static int own_session(const struct command *c, struct launch_error *err)
{
	if (setsid() == -1)
		return fault(err, errno, "cannot start a session");
	if (c->terminal >= 0 && ioctl(c->terminal, TIOCSCTTY, 0))
		return fault(err, errno, "cannot take the terminal");
	return 0;
}

/* --- rights ----------------------------------------------------------------- */

static int set_limits(struct launch_error *err)
{
	struct rlimit files, core = { 0, 0 };

	if (getrlimit(RLIMIT_NOFILE, &files))
		return fault(err, errno, "cannot read a limit");
	files.rlim_cur = MIN(files.rlim_max, NOFILE_SOFT);
	/* No core: a host's handler would read it outside, as root. */
	if (setrlimit(RLIMIT_NOFILE, &files) || setrlimit(RLIMIT_CORE, &core))
		return fault(err, errno, "cannot set a limit");
	return 0;
}

static bool cap_is_kept(const struct command *c, unsigned cap)
{
	for (size_t i = 0; i < ARRAY_SIZE(root_caps); i++) {
		if (root_caps[i] == cap)
			return c->ids->map_root;
	}
	return false;
}

static int drop_bounding(const struct command *c)
{
	for (unsigned cap = 0; cap < 64; cap++) {
		if (cap_is_kept(c, cap))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
			return errno == EINVAL && cap > CAP_CHOWN ? 0 : -errno;
	}
	return 0;
}

static int set_caps(const struct command *c)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = { { 0, 0, 0 }, { 0, 0, 0 } };

	for (unsigned cap = 0; cap < 32; cap++) {
		if (cap_is_kept(c, cap))
			data[0].permitted |= BIT(cap);
	}
	data[0].effective = data[0].permitted;
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

static int drop_rights(const struct command *c, struct launch_error *err)
{
	const struct id_plan *ids = c->ids;
	int e;

	if (prctl(PR_SET_SECUREBITS, ids->map_root ? BITS_COMMON : BITS_NOBODY,
		  0, 0, 0))
		return fault(err, errno, "cannot lock the securebits");
	e = drop_bounding(c);
	if (e)
		return fault(err, -e, "cannot drop the bounding set");
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
		return fault(err, errno, "cannot drop the ambient set");
	if (ids->privileged && setgroups(0, NULL))
		return fault(err, errno, "cannot drop groups");
	if (setresgid(ids->gid, ids->gid, ids->gid) ||
	    setresuid(ids->uid, ids->uid, ids->uid))
		return fault(err, errno, "cannot take the command's ids");
	e = set_caps(c);
	if (e)
		return fault(err, -e, "cannot drop capabilities");
	/* Until exec, which decides again: the self-test reads our own /proc. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))
		return fault(err, errno, "cannot stay dumpable");
	/* Root's sandbox may write where files are root's: no id bits at all. */
	e = command_filter_load(ids->privileged ? S_ISUID | S_ISGID : S_ISUID);
	if (e)
		return fault(err, -e, "cannot load the command's seccomp "
			     "filter");
	return 0;
}

/* --- exec ------------------------------------------------------------------- */

static const char *env_value(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; *env; env++) {
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	}
	return NULL;
}

/* The largest string is the likeliest reason; a variable goes by its name. */
static void explain_too_big(const struct command *c, struct launch_error *err)
{
	const char *big = NULL;
	size_t most = 0;

	for (char *const *e = c->spec->env; *e; e++) {
		if (strlen(*e) > most) {
			most = strlen(*e);
			big = *e;
		}
	}
	if (big && most >= ARG_TEXT_MAX)
		fault_mend(err, "Variable %.*s has %zu bytes; the kernel takes "
			   "%d at most.", (int)str_chr(str_from(big), '='), big,
			   most, ARG_TEXT_MAX);
	else
		fault_mend(err, "Arguments and environment together are over "
			   "the kernel's limit (see ulimit -s).");
}

static void explain(const struct command *c, const char *path, int e,
		    struct launch_error *err)
{
	fault(err, e, "cannot run %s", path);
	err->exit_code = 126;
	if (e == ENOENT && access(path, F_OK) == 0)
		fault_mend(err, "The file is there, but the interpreter that "
			   "it asks for is not.");
	else if (e == ENOENT)
		err->exit_code = 127;
	if (e == E2BIG) {
		err->exit_code = 125;
		explain_too_big(c, err);
	}
}

/* Where PATH is searched, these say "not here, look on". */
static bool look_on(int e)
{
	return e == ENOENT || e == ENOTDIR || e == EACCES || e == ELOOP ||
	       e == ENAMETOOLONG;
}

static void exec_by_path(const struct command *c, struct launch_error *err)
{
	const char *name = c->spec->argv[0];
	const char *path = env_value(c->spec->env, "PATH");
	struct str rest = str_from(path ? path : PATH_DEFAULT), dir;
	char full[PATH_TEXT_MAX];
	int worst = ENOENT;

	while (*name && str_cut(&rest, ':', &dir)) {
		int n = snprintf(full, sizeof(full), "%.*s%s%s", STR_ARG(dir),
				 dir.n ? "/" : "", name);

		if (n < 0 || (size_t)n >= sizeof(full))
			continue;
		execve(full, c->spec->argv, c->spec->env);
		if (!look_on(errno)) {
			explain(c, full, errno, err);
			return;
		}
		if (errno == EACCES)
			worst = EACCES;
	}
	fault(err, 0, "%s: %s", name, worst == EACCES ?
	      "found in PATH, but not executable" :
	      "command not found in the sandbox's PATH");
	err->exit_code = worst == EACCES ? 126 : 127;
}

static void exec_command(const struct command *c, struct launch_error *err)
{
	const char *name = c->spec->argv[0];

	if (strchr(name, '/')) {
		execve(name, c->spec->argv, c->spec->env);
		explain(c, name, errno, err);
	} else {
		exec_by_path(c, err);
	}
}

static int prove(const struct command *c, struct launch_error *err)
{
	const struct selftest t = {
		.nonce = c->nonce,
		.v6 = c->v6,
		.firewall = c->firewall,
		.keep = { REPORT_FD, REPORT_FD },
	};

	return selftest_run(&t, err);
}

/* @report: where to say what fails; its number changes on the way. */
static int prepare(const struct command *c, int *report,
		   struct launch_error *err)
{
	int e = own_session(c, err);

	if (!e)
		e = arrange(c, err);
	if (e)
		return e;
	*report = REPORT_FD;
	e = set_limits(err);
	return e ? e : drop_rights(c, err);
}

void command_run(const struct command *c)
{
	struct launch_error err = { 0, "" };
	int report = c->report, e;

	/* The setup process has gone: it, or the launcher, says why. */
	if (wait_for(c->go, COMMAND_MAPPED))
		_exit(125);
	e = prepare(c, &report, &err);
	if (!e && wait_for(GO_FD, COMMAND_PLUGGED))
		_exit(125);
	if (!e) {
		close(GO_FD);
		e = prove(c, &err);
	}
	if (!e && chdir(c->start_dir))
		e = fault(&err, errno, "cannot start in %s", c->start_dir);
	if (!e) {
		umask(c->umask);
		sigprocmask(SIG_SETMASK, &c->signals, NULL);
		exec_command(c, &err);
	}
	step_report(report, &err);
	_exit(125);
}
