/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mounts.c - the sandbox's view of the file system
 *
 * The namespace is a copy of the host's.  In this order:
 *
 *   1. what must stay writable or usable is picked up first, as detached
 *      copies: the working directory, six devices, files to be shown
 *   2. everything else becomes read-only, nosuid, nodev, in one call
 *   3. fresh file systems cover what holds sockets, devices, other processes
 *      and secrets: a pathname socket is not confined by a network namespace,
 *      so the directories where they live must not be the host's
 *   4. what was picked up is put down again
 *   5. our own hosts, nsswitch.conf and resolv.conf are laid over the host's
 *   6. single files: what the command may not change or see, and those sockets
 *	of the host that lie elsewhere (to connect to one is no write to its
 *	mount, so that read-only does not shut it)
 *
 * Covering is final: nothing in the sandbox has the right to unmount, and every
 * mount that came from outside is locked by the kernel.
 */
#include "netns-setup/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "netns-setup/fault.h"
#include "netns-setup/ns_files.h"

#define SMALL_FS	"16m"	/* of /run and /dev: no place for data */
#define OPTIONS_MAX	128
#define PATH_TEXT_MAX	4096

static const char *const devices[] = {
	"/dev/null", "/dev/zero", "/dev/full",
	"/dev/random", "/dev/urandom", "/dev/tty",
};

static const struct {
	const char *name, *to;
} device_links[] = {
	{ "/dev/ptmx", "pts/ptmx" },
	{ "/dev/fd", "/proc/self/fd" },
	{ "/dev/stdin", "/proc/self/fd/0" },
	{ "/dev/stdout", "/proc/self/fd/1" },
	{ "/dev/stderr", "/proc/self/fd/2" },
};

/* Parts of /proc that speak of the whole machine; their rights are the
 * host's root's anyway, and read-only beside. */
static const char *const proc_readonly[] = {
	"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus",
};

/* What is picked up before the host becomes read-only. */
struct picked {
	int device[ARRAY_SIZE(devices)];
	int workdir;
	int show[MOUNTS_SHOW_MAX];
	struct ns_files files;
};

static void picked_done(struct picked *p)
{
	for (size_t i = 0; i < ARRAY_SIZE(p->device); i++)
		fd_closep(&p->device[i]);
	for (size_t i = 0; i < ARRAY_SIZE(p->show); i++)
		fd_closep(&p->show[i]);
	fd_closep(&p->workdir);
	ns_files_done(&p->files);
}

bool path_is_in(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	if (n == 1 && dir[0] == '/')
		return path[0] == '/';
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

/* --- single mounts ---------------------------------------------------------- */

static int attr_set(int fd, uint64_t set)
{
	struct mount_attr a = { .attr_set = set };

	if (mount_setattr(fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &a, sizeof(a)))
		return -errno;
	return 0;
}

/* A detached copy of what is mounted at @path, with @set on top. */
static int pick(const char *path, uint64_t set, int *ret_fd)
{
	CLEANUP(fd_closep) int fd = open_tree(AT_FDCWD, path,
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	int err;

	if (fd == -1)
		return -errno;
	err = attr_set(fd, set);
	if (err)
		return err;
	*ret_fd = fd_take(&fd);
	return 0;
}

static int put_down(int fd, const char *path)
{
	if (move_mount(fd, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH |
		       MOVE_MOUNT_T_SYMLINKS))
		return -errno;
	return 0;
}

static bool means_not_there(int err)
{
	return err == -ENOENT || err == -ENOTDIR || err == -EACCES;
}

/* Nothing to cover where nothing is. */
static int tmpfs_over(const char *path, const struct mounts_plan *plan,
		      unsigned mode, const char *more, struct launch_error *err)
{
	char options[OPTIONS_MAX];
	int n = snprintf(options, sizeof(options), "mode=%o,uid=%u,gid=%u%s",
			 mode, plan->uid, plan->gid, more);
	int e;

	if (n < 0 || (size_t)n >= sizeof(options))
		return fault(err, ENAMETOOLONG, "cannot cover %s", path);
	if (mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options)) {
		e = -errno;
		if (!means_not_there(e))
			return fault(err, -e, "cannot cover %s", path);
	}
	return 0;
}

/* Make @path with its parents; what is made belongs to the command. */
static int make_dirs(const char *path, const struct mounts_plan *plan)
{
	char part[PATH_TEXT_MAX];
	size_t n = strlen(path);

	if (n >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0755) == 0) {
			if (chown(part, plan->uid, plan->gid))
				return -errno;
		} else if (errno != EEXIST && errno != EROFS) {
			return -errno;
		}
	}
	return 0;
}

static int make_file(const char *path, const struct mounts_plan *plan)
{
	char parent[PATH_TEXT_MAX];
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	int fd, err;

	if (n >= sizeof(parent))
		return -ENAMETOOLONG;
	memcpy(parent, path, n);
	parent[n] = '\0';
	err = n ? make_dirs(parent, plan) : 0;
	if (err)
		return err;
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
		  0444);
	if (fd == -1)
		return errno == EEXIST ? 0 : -errno;
	close(fd);
	return 0;
}

/* --- 1. picking up ---------------------------------------------------------- */

static int pick_up(const struct mounts_plan *plan, struct picked *p,
		   struct launch_error *err)
{
	int e;

	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		e = pick(devices[i], MOUNT_ATTR_NOSUID, &p->device[i]);
		if (e)
			return fault(err, -e, "cannot use %s", devices[i]);
	}
	for (size_t i = 0; plan->show && plan->show[i] && i < MOUNTS_SHOW_MAX;
	     i++) {
		e = pick(plan->show[i], MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
			 MOUNT_ATTR_NODEV, &p->show[i]);
		if (e && !means_not_there(e))
			return fault(err, -e, "cannot show %s", plan->show[i]);
	}
	if (!plan->workdir)
		return 0;
	if (plan->workdir_fd >= 0) {
		p->workdir = plan->workdir_fd;
		return 0;
	}
	e = pick(plan->workdir, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		 &p->workdir);
	if (e)
		return fault(err, -e, "cannot use the working directory %s",
			     plan->workdir);
	return 0;
}

/* --- 2. the host, read-only ------------------------------------------------- */

static int host_readonly(struct launch_error *err)
{
	struct mount_attr a = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
			    MOUNT_ATTR_NODEV,
	};

	if (mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &a, sizeof(a)))
		return fault(err, errno, "cannot make the host's files "
			     "read-only for the sandbox");
	return 0;
}

/* --- 3. fresh file systems -------------------------------------------------- */

static int readonly_again(const char *path)
{
	CLEANUP(fd_closep) int fd = -1;
	int err = pick(path, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
		       MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, &fd);

	if (!err)
		err = put_down(fd, path);
	return means_not_there(err) ? 0 : err;
}

/* One user namespace below the setup process's: the command's, and no more. */
static void limit_user_namespaces(void)
{
	int fd = open("/proc/sys/user/max_user_namespaces",
		      O_WRONLY | O_CLOEXEC);

	/* A second lock on a door that the seccomp filter keeps shut. */
	if (fd >= 0 && fd_write_all(fd, "1", 1))
		errno = 0;
	fd_closep(&fd);
}

static int fresh_proc(struct launch_error *err)
{
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL)) {
		int e = fault(err, errno, "cannot mount the sandbox's /proc");

		if (e == -EPERM)
			fault_mend(err, "Something covers parts of /proc here, "
				   "as in a container: give it an unmasked "
				   "/proc, or run Penstock outside.");
		return e;
	}
	limit_user_namespaces();
	for (size_t i = 0; i < ARRAY_SIZE(proc_readonly); i++) {
		int e = readonly_again(proc_readonly[i]);

		if (e)
			return fault(err, -e, "cannot make %s read-only",
				     proc_readonly[i]);
	}
	return 0;
}

/* The host's /sys shows the host's devices; where the kernel does not let us
 * have our own, it stays, read-only like the rest. */
static void fresh_sys(void)
{
	if (mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC |
		  MS_RDONLY, NULL))
		errno = 0;
}

static int fresh_dev(const struct mounts_plan *plan, struct picked *p,
		     struct launch_error *err)
{
	char options[OPTIONS_MAX];
	int n, e = tmpfs_over("/dev", plan, 0755, ",size=" SMALL_FS, err);

	if (e)
		return e;
	for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
		e = make_file(devices[i], plan);
		if (!e)
			e = put_down(p->device[i], devices[i]);
		if (e)
			return fault(err, -e, "cannot make %s", devices[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(device_links); i++) {
		if (symlink(device_links[i].to, device_links[i].name))
			return fault(err, errno, "cannot make %s",
				     device_links[i].name);
	}
	n = snprintf(options, sizeof(options), "newinstance,ptmxmode=0666,"
		     "mode=620,uid=%u,gid=%u", plan->uid, plan->gid);
	if (n < 0 || (size_t)n >= sizeof(options))
		return fault(err, ENAMETOOLONG, "cannot make /dev/pts");
	if (mkdir("/dev/pts", 0755) ||
	    mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC,
		  options))
		return fault(err, errno, "cannot make /dev/pts");
	if (mkdir("/dev/shm", 01777))
		return fault(err, errno, "cannot make /dev/shm");
	return tmpfs_over("/dev/shm", plan, 01777, "", err);
}

static bool is_real_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static int fresh_run(const struct mounts_plan *plan, struct launch_error *err)
{
	int e = tmpfs_over("/run", plan, 0755, ",size=" SMALL_FS, err);

	if (!e && is_real_dir("/var/run"))
		e = tmpfs_over("/var/run", plan, 0755, ",size=" SMALL_FS, err);
	if (!e)
		e = tmpfs_over("/tmp", plan, 01777, "", err);
	if (!e && is_real_dir("/var/tmp"))
		e = tmpfs_over("/var/tmp", plan, 01777, "", err);
	if (e)
		return e;
	/* Where /var/lock points to. */
	if (is_real_dir("/run") &&
	    (mkdir("/run/lock", 0755) || chmod("/run/lock", 01777)))
		return fault(err, errno, "cannot make /run/lock");
	return 0;
}

/* Is the home below one of the directories that are covered whole? */
static bool home_is_covered(const struct mounts_plan *plan)
{
	return plan->all_homes && (path_is_in(plan->home, "/root") ||
				   path_is_in(plan->home, "/home"));
}

static int fresh_home(const struct mounts_plan *plan, struct launch_error *err)
{
	int e = make_dirs(plan->home, plan);

	if (e && e != -EACCES)
		return fault(err, -e, "cannot make the home %s", plan->home);
	return home_is_covered(plan) ? 0 :
		tmpfs_over(plan->home, plan, 0700, "", err);
}

static int fresh_homes(const struct mounts_plan *plan, struct launch_error *err)
{
	int e = 0;

	if (plan->all_homes) {
		e = tmpfs_over("/root", plan, 0700, "", err);
		if (!e)
			e = tmpfs_over("/home", plan, 0755, "", err);
	}
	if (!e && plan->home)
		e = fresh_home(plan, err);
	if (e || !plan->runtime_dir)
		return e;
	e = make_dirs(plan->runtime_dir, plan);
	if (e)
		return fault(err, -e, "cannot make %s", plan->runtime_dir);
	return tmpfs_over(plan->runtime_dir, plan, 0700, ",size=" SMALL_FS,
			  err);
}

/* --- 4. putting down -------------------------------------------------------- */

static int put_workdir(const struct mounts_plan *plan, struct picked *p,
		       struct launch_error *err)
{
	int e;

	if (!plan->workdir)
		return 0;
	e = make_dirs(plan->workdir, plan);
	if (!e || e == -EACCES)
		e = put_down(p->workdir, plan->workdir);
	if (e) {
		fault(err, -e, "cannot put the working directory %s back",
		      plan->workdir);
		if (e == -EACCES)
			fault_mend(err, "A directory above it is closed to "
				   "other users: start from another place.");
	}
	return e;
}

static int put_shown(const struct mounts_plan *plan, struct picked *p,
		     struct launch_error *err)
{
	for (size_t i = 0; plan->show && plan->show[i] && i < MOUNTS_SHOW_MAX;
	     i++) {
		int e;

		/* Still where it was: nothing covers it. */
		if (p->show[i] == -1 || access(plan->show[i], F_OK) == 0)
			continue;
		e = make_file(plan->show[i], plan);
		if (!e)
			e = put_down(p->show[i], plan->show[i]);
		if (e)
			return fault(err, -e, "cannot show %s", plan->show[i]);
	}
	return 0;
}

/* A hidden directory is empty, a hidden file is /dev/null. */
static int hide_one(const char *path, const struct mounts_plan *plan,
		    struct launch_error *err)
{
	CLEANUP(fd_closep) int fd = -1;
	struct stat st;
	int e;

	if (stat(path, &st))
		return means_not_there(-errno) ? 0 :
			fault(err, errno, "cannot hide %s", path);
	if (S_ISDIR(st.st_mode))
		return tmpfs_over(path, plan, 0555, ",size=4k,ro", err);
	e = pick("/dev/null", MOUNT_ATTR_NOSUID, &fd);
	if (!e)
		e = put_down(fd, path);
	if (e)
		return fault(err, -e, "cannot hide %s", path);
	return 0;
}

static bool is_mount_point(const char *path)
{
	struct statx st;

	return statx(AT_FDCWD, path, AT_NO_AUTOMOUNT, 0, &st) == 0 &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/*
 * A file that is covered stays covered under its name only while the
 * directories above it stay: what the command may write, it may rename.  A
 * mount point it cannot, so each directory from its own down to @path becomes
 * one, as writable as before.
 */
static int pin_dirs(const char *path, const struct mounts_plan *plan)
{
	char part[PATH_TEXT_MAX];
	size_t n = strlen(path);

	if (!plan->workdir || !path_is_in(path, plan->workdir))
		return 0;
	if (n >= sizeof(part))
		return -ENAMETOOLONG;
	for (size_t i = strlen(plan->workdir) + 1; i < n; i++) {
		CLEANUP(fd_closep) int fd = -1;
		int err;

		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (is_mount_point(part))
			continue;
		err = pick(part, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, &fd);
		if (!err)
			err = put_down(fd, part);
		if (err)
			return means_not_there(err) ? 0 : err;
	}
	return 0;
}

static int lock_one(const char *path, const struct mounts_plan *plan,
		    struct launch_error *err)
{
	int e = pin_dirs(path, plan);

	if (!e)
		e = readonly_again(path);
	return e ? fault(err, -e, "cannot make %s read-only", path) : 0;
}

static int hide_pinned(const char *path, const struct mounts_plan *plan,
		       struct launch_error *err)
{
	int e = pin_dirs(path, plan);

	return e ? fault(err, -e, "cannot hide %s", path) :
		   hide_one(path, plan, err);
}

/* A socket that is still there, and not beneath something that covers it. */
static bool is_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

static int hide_sockets(const struct mounts_plan *plan,
			struct launch_error *err)
{
	int e = 0;

	for (size_t i = 0; !e && plan->sockets && plan->sockets[i]; i++) {
		if (is_socket(plan->sockets[i]))
			e = hide_pinned(plan->sockets[i], plan, err);
	}
	return e;
}

static int lock_and_hide(const struct mounts_plan *plan,
			 struct launch_error *err)
{
	int e = 0;

	for (size_t i = 0; !e && plan->lock && plan->lock[i]; i++)
		e = lock_one(plan->lock[i], plan, err);
	for (size_t i = 0; !e && plan->hide && plan->hide[i]; i++)
		e = hide_pinned(plan->hide[i], plan, err);
	return e ? e : hide_sockets(plan, err);
}

static int mounts_run(const struct mounts_plan *plan, struct picked *p,
		      struct launch_error *err)
{
	int e = 0;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return fault(err, errno, "cannot part from the host's mounts");
	if (chdir("/"))
		return fault(err, errno, "cannot go to /");
	e = pick_up(plan, p, err);
	if (!e)
		e = host_readonly(err);
	/* The stage for our own files; the real /run covers it. */
	if (!e)
		e = tmpfs_over("/run", plan, 0700, ",size=" SMALL_FS, err);
	if (!e)
		e = ns_files_write(&p->files, plan, err);
	if (!e)
		e = fresh_dev(plan, p, err);
	if (!e)
		e = fresh_proc(err);
	if (!e)
		fresh_sys();
	if (!e)
		e = fresh_run(plan, err);
	if (!e)
		e = fresh_homes(plan, err);
	if (!e)
		e = put_workdir(plan, p, err);
	if (!e)
		e = put_shown(plan, p, err);
	if (!e)
		e = ns_files_lay(&p->files, err);
	return e ? e : lock_and_hide(plan, err);
}

int mounts_make(const struct mounts_plan *plan, struct launch_error *err)
{
	struct picked p = {
		.device = { [0 ... ARRAY_SIZE(devices) - 1] = -1 },
		.workdir = -1,
		.show = { [0 ... MOUNTS_SHOW_MAX - 1] = -1 },
		.files = NS_FILES_INIT,
	};
	int e = mounts_run(plan, &p, err);

	picked_done(&p);
	return e;
}
