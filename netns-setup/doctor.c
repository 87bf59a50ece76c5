/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.c - what this machine can do, tried and not guessed
 *
 * Each probe runs in a child with namespaces of its own, which end with it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "netns-setup/fault.h"
#include "netns-setup/idmap.h"
#include "netns-setup/launch.h"
#include "netns-setup/ns_link.h"
#include "netns-setup/ns_listen.h"
#include "netns-setup/ns_nft.h"

#define KERNEL_MAJOR	6	/* Debian 12's */
#define KERNEL_MINOR	1
#define ERRNO_MAX	250	/* what fits an exit status beside the others */

/* Exit statuses of probes beside errno values. */
enum { PROBE_OK = 0, PROBE_ODD = 255 };

struct doctor {
	struct launch_check *check;
	size_t n;
};

static struct launch_check *add(struct doctor *d, const char *what, bool needed)
{
	struct launch_check *c;

	REQUIRE(d->n < LAUNCH_CHECKS_MAX);
	c = &d->check[d->n++];
	*c = (struct launch_check){ .what = what, .needed = needed };
	return c;
}

static PRINTF(2, 3) void found(struct launch_check *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	/* Longer text is cut: it is for a person. */
	if (vsnprintf(c->detail, sizeof(c->detail), fmt, ap) < 0)
		c->detail[0] = '\0';
	va_end(ap);
}

static PRINTF(2, 3) void mend(struct launch_check *c, const char *fmt, ...)
{
	va_list ap;

	if (c->ok)
		return;
	va_start(ap, fmt);
	if (vsnprintf(c->mend, sizeof(c->mend), fmt, ap) < 0)
		c->mend[0] = '\0';
	va_end(ap);
}

/* Run @fn in a child: 0, its positive errno, or PROBE_ODD. */
static int probe(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		int e = -fn();

		_exit(e >= 0 && e < ERRNO_MAX ? e : PROBE_ODD);
	}
	while (pid > 0 && waitpid(pid, &status, 0) == -1) {
		if (errno != EINTR)
			return PROBE_ODD;
	}
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : PROBE_ODD;
}

static int write_own(const char *path, const char *text)
{
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd == -1 ? -errno : fd_write_all(fd, text, strlen(text));
}

static int map_own(const char *path, uint32_t id)
{
	char line[32];
	int n = snprintf(line, sizeof(line), "0 %u 1", id);

	return n < 0 || (size_t)n >= sizeof(line) ? -ENAMETOOLONG :
						    write_own(path, line);
}

/* One in the other, as a run needs them; the outer one's ids must be mapped. */
static int probe_userns(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int e = unshare(CLONE_NEWUSER) ? -errno : 0;

	if (!e)
		e = write_own("/proc/self/setgroups", "deny");
	if (!e)
		e = map_own("/proc/self/uid_map", uid);
	if (!e)
		e = map_own("/proc/self/gid_map", gid);
	return e ? e : unshare(CLONE_NEWUSER) ? -errno : 0;
}

static int enter_net(void)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWNET) ? -errno : 0;
}

static int probe_v6(void)
{
	struct launch_error err;
	bool v6 = false;
	int e = enter_net();

	if (!e)
		e = ns_link_up(&v6, &err);
	return e ? e : v6 ? 0 : -EAFNOSUPPORT;
}

static int load_table(bool need_log)
{
	struct ns_sockets s = NS_SOCKETS_INIT;
	struct ns_nft_config config = { 0, 0, false };
	struct launch_error err;
	bool v6 = false;
	int e = enter_net();

	if (!e)
		e = ns_link_up(&v6, &err);
	if (!e)
		e = ns_listen_open(&s, v6, &err);
	if (!e)
		e = ns_listen_tproxy(&s, v6, false, &err);
	if (!e && need_log && s.fd[PLUG_FD_NFLOG] < 0)
		e = -EPROTONOSUPPORT;
	config.tproxy4 = s.tproxy4;
	config.tproxy6 = s.tproxy6;
	config.log = need_log;
	if (!e)
		e = ns_nft_load(&config, &err);
	ns_sockets_close(&s);
	return e;
}

static int probe_nft(void)
{
	return load_table(false);
}

static int probe_nflog(void)
{
	return load_table(true);
}

static int probe_seccomp(void)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS;

	return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) ?
		       -errno : 0;
}

/* /proc for a new pid namespace: refused where parts of the old are covered. */
static int probe_proc(void)
{
	pid_t pid;
	int status;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID))
		return -errno;
	pid = fork();
	if (pid == 0)
		_exit(mount("proc", "/proc", "proc",
			    MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) ?
			      errno : 0);
	if (pid == -1 || waitpid(pid, &status, 0) != pid)
		return -errno;
	return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

static const char *word(int e)
{
	return e == PROBE_ODD ? "the probe ended oddly" : strerror(e);
}

static bool apparmor_restricts(void)
{
	CLEANUP(fd_closep) int fd =
		open("/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
		     O_RDONLY | O_CLOEXEC);
	char c = '0';

	return fd >= 0 && read(fd, &c, 1) == 1 && c == '1';
}

/* --- checks ----------------------------------------------------------------- */

static void check_kernel(struct doctor *d)
{
	struct launch_check *c = add(d, "kernel", true);
	struct utsname u;
	struct str rest, field;
	unsigned long major = 0, minor = 0;

	if (uname(&u)) {
		found(c, "%s", strerror(errno));
		return;
	}
	rest = str_from(u.release);
	if (str_cut(&rest, '.', &field) && str_to_uint(field, 9999, &major))
		major = 0;
	if (str_cut(&rest, '.', &field) && str_to_uint(field, 9999, &minor))
		minor = 0;
	c->ok = major > KERNEL_MAJOR ||
		(major == KERNEL_MAJOR && minor >= KERNEL_MINOR);
	found(c, "%s", u.release);
	mend(c, "Penstock is made for Linux %d.%d or later.", KERNEL_MAJOR,
	     KERNEL_MINOR);
}

static void check_userns(struct doctor *d)
{
	struct launch_check *c = add(d, "user namespaces", true);
	int e = probe(probe_userns);

	c->ok = e == PROBE_OK;
	found(c, "%s", c->ok ? "two, one in the other" : word(e));
	if (e == EPERM && apparmor_restricts())
		mend(c, "This kernel restricts unprivileged user namespaces "
		     "through AppArmor\n(Ubuntu 23.10 and later).  Either use "
		     "sudo penstock run,\nor allow penstock's program in an "
		     "AppArmor profile with \"userns,\".");
	else if (e == ENOSPC)
		mend(c, "sysctl user.max_user_namespaces is too small: raise "
		     "it.");
	else
		mend(c, "Look at sysctl kernel.unprivileged_userns_clone and "
		     "user.max_user_namespaces,\nor at the seccomp profile of "
		     "the container you are in.");
}

static void check_proc(struct doctor *d)
{
	struct launch_check *c = add(d, "own /proc", true);
	int e = probe(probe_proc);

	c->ok = e == PROBE_OK;
	found(c, "%s", c->ok ? "can be mounted" : word(e));
	mend(c, "Something covers parts of /proc, as in a container: give it "
	     "an unmasked /proc,\nor run Penstock outside.");
}

static void check_net(struct doctor *d)
{
	struct launch_check *c = add(d, "nftables, tproxy", false);
	int e = probe(probe_nft);

	c->ok = e == PROBE_OK;
	found(c, "%s", c->ok ? "loaded and read back" : word(e));
	mend(c, "Without nf_tables, nft_tproxy and nft_reject in the kernel, "
	     "programs that do not\nuse the proxy reach port 443 only: "
	     "modprobe nf_tables nft_tproxy nft_reject_inet");
	c = add(d, "nflog", false);
	e = probe(probe_nflog);
	c->ok = e == PROBE_OK;
	found(c, "%s", c->ok ? "refused datagrams are recorded" : word(e));
	mend(c, "Refused UDP and ICMP will not be recorded: modprobe nft_log "
	     "nfnetlink_log");
	c = add(d, "IPv6", false);
	e = probe(probe_v6);
	c->ok = e == PROBE_OK;
	found(c, "%s", c->ok ? "in sandboxes, too" : word(e));
	mend(c, "Sandboxes will have IPv4 only.");
}

static void check_seccomp(struct doctor *d)
{
	struct launch_check *c = add(d, "seccomp", true);
	int e = probe(probe_seccomp);

	c->ok = e == PROBE_OK;
	found(c, "%s", c->ok ? "filters, killing processes" : word(e));
	mend(c, "The kernel needs CONFIG_SECCOMP_FILTER.");
}

static void check_ids(struct doctor *d)
{
	struct launch_check *c = add(d, "ids for --map-root", false);
	const struct launch_spec spec = { .map_root = true };
	struct launch_error err = { 0, "" };
	struct id_plan plan;
	const char *why;

	if (id_plan_make(&spec, &plan, &why, &err)) {
		found(c, "%.200s", err.text);
		return;
	}
	c->ok = plan.many;
	if (plan.privileged)
		found(c, "%u from %u on", ID_COUNT, plan.base);
	else if (plan.many)
		found(c, "%u from %u on, by newuidmap", plan.sub_uid.count,
		      plan.sub_uid.start);
	else
		found(c, "one: your own");
	mend(c, "Only programs that change their user need more (apt): install "
	     "uidmap, and give\nyourself ranges: usermod --add-subuids "
	     "100000-165535 --add-subgids 100000-165535 $USER");
}

size_t launch_doctor(struct launch_check ret[LAUNCH_CHECKS_MAX])
{
	struct doctor d = { ret, 0 };

	check_kernel(&d);
	check_userns(&d);
	check_proc(&d);
	check_net(&d);
	check_seccomp(&d);
	check_ids(&d);
	return d.n;
}
