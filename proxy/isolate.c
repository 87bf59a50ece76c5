/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isolate.c - the daemon gives up, in stages, all that it does not need
 *
 * Ids and capabilities go first, then files (Landlock, which binds this thread
 * and its children and so comes before threads), then system calls (a seccomp
 * filter for all threads), before the first byte from a sandbox is read.
 *
 * The list of system calls and its filter are in isolate_filter.c.
 */
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "proxy/isolate.h"

/* --- ids and capabilities --------------------------------------------------- */

static int isolate_set_ids(const struct isolate_ids *ids,
			   const char **ret_what)
{
	*ret_what = "uid 0 was asked for";
	if (ids->uid == 0 || ids->gid == 0)
		return -EPERM;
	*ret_what = "setgroups";
	if (setgroups(0, NULL) < 0)
		return -errno;
	*ret_what = "setresgid";
	if (setresgid(ids->gid, ids->gid, ids->gid) < 0)
		return -errno;
	*ret_what = "setresuid";
	if (setresuid(ids->uid, ids->uid, ids->uid) < 0)
		return -errno;
	*ret_what = "uid 0 came back";
	return setresuid((uid_t)-1, 0, (uid_t)-1) == 0 ? -EPERM : 0;
}

/* Only with CAP_SETPCAP; without it exec could gain nothing either, since
 * no_new_privs is set. */
static void isolate_drop_bounding(void)
{
	unsigned long cap;

	for (cap = 0; prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) == 0; cap++)
		;
}

/* All but those of @keep. */
static int isolate_drop_caps(uint32_t keep, const char **ret_what)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct left[2] = {
		{ .effective = keep, .permitted = keep },
	};

	*ret_what = "capset";
	if (syscall(SYS_capset, &head, left) < 0)
		return -errno;
	/* What is not inheritable leaves the ambient set too. */
	*ret_what = "no_new_privs";
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	return 0;
}

static int isolate_drop_to(const struct isolate_ids *ids, uint32_t keep,
			   const char **ret_what)
{
	int err;

	isolate_drop_bounding();
	if (ids && (geteuid() != ids->uid || getegid() != ids->gid ||
		    getuid() != ids->uid)) {
		err = isolate_set_ids(ids, ret_what);
		if (err < 0)
			return err;
	}
	*ret_what = "the daemon must not run as uid 0";
	if (getuid() == 0 || geteuid() == 0)
		return -EPERM;
	err = isolate_drop_caps(keep, ret_what);
	if (err < 0)
		return err;
	/* After the ids: changing them makes a process dumpable as sysctl
	 * fs.suid_dumpable says. */
	*ret_what = "PR_SET_DUMPABLE";
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

int isolate_drop(const struct isolate_ids *ids, const char **ret_what)
{
	return isolate_drop_to(ids, 0, ret_what);
}

int isolate_drop_but(const struct isolate_ids *ids, unsigned cap,
		     const char **ret_what)
{
	/* Else the change of ids takes it. */
	*ret_what = "PR_SET_KEEPCAPS";
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return -errno;
	return isolate_drop_to(ids, BIT(cap), ret_what);
}

int isolate_limits(const char **ret_what)
{
	static const struct rlimit no_core = { 0, 0 };
	struct rlimit files;

	*ret_what = "RLIMIT_CORE";
	if (setrlimit(RLIMIT_CORE, &no_core) < 0)
		return -errno;
	*ret_what = "RLIMIT_NOFILE";
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return -errno;
	files.rlim_cur = files.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &files) < 0 ? -errno : 0;
}

void isolate_reserve(unsigned want)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	want = want ? want : ISOLATE_RESERVE;
	fd_set_reserve((unsigned)MIN(files.rlim_cur, (rlim_t)UINT_MAX),
		       (unsigned)MIN((rlim_t)want, files.rlim_cur / 4));
}

/* --- files -------------------------------------------------------------------- */

/* As of the newest ABI we know; older kernels get the bits they know. */
struct isolate_landlock {
	uint64_t fs, net, scoped;
};

#define LANDLOCK_FS_ABI1	((1u << 13) - 1)
#define LANDLOCK_FS_ABI2	(1u << 13)	/* REFER */
#define LANDLOCK_FS_ABI3	(1u << 14)	/* TRUNCATE */
#define LANDLOCK_FS_ABI5	(1u << 15)	/* IOCTL_DEV */
#define LANDLOCK_NET_BIND	1u		/* ABI 4 */
#define LANDLOCK_RULE_NET	2		/* a rule about ports */
#define LANDLOCK_SCOPE_ALL	3u		/* ABI 6: abstract sockets, signals */

static struct isolate_landlock isolate_landlock_for(int abi)
{
	struct isolate_landlock l = { .fs = LANDLOCK_FS_ABI1 };

	if (abi >= 2)
		l.fs |= LANDLOCK_FS_ABI2;
	if (abi >= 3)
		l.fs |= LANDLOCK_FS_ABI3;
	if (abi >= 4)
		l.net = LANDLOCK_NET_BIND;
	if (abi >= 5)
		l.fs |= LANDLOCK_FS_ABI5;
	if (abi >= 6)
		l.scoped = LANDLOCK_SCOPE_ALL;
	return l;
}

int isolate_files(bool binds, bool *ret_active, const char **ret_what)
{
	CLEANUP(fd_closep) int fd = -1;
	/* Port 0 is the one that the kernel chooses. */
	static const struct {
		uint64_t access, port;
	} unnamed = { LANDLOCK_NET_BIND, 0 };
	struct isolate_landlock l;
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
			   LANDLOCK_CREATE_RULESET_VERSION);

	*ret_active = false;
	if (abi < 0)
		return 0;	/* not built in (ENOSYS) or not enabled */
	l = isolate_landlock_for((int)abi);
	*ret_what = "landlock_create_ruleset";
	fd = (int)syscall(SYS_landlock_create_ruleset, &l, sizeof(l), 0);
	if (fd < 0)
		return -errno;
	if (binds && l.net) {
		*ret_what = "landlock_add_rule";
		if (syscall(SYS_landlock_add_rule, fd, LANDLOCK_RULE_NET,
			    &unnamed, 0) < 0)
			return -errno;
	}
	*ret_what = "landlock_restrict_self";
	if (syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		return -errno;
	*ret_active = true;
	return 0;
}

void isolate_exit(int code)
{
	_exit(code);
}
