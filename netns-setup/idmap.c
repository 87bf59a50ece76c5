/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap.c - plans and maps of ids, see idmap.h
 */
#include "netns-setup/idmap.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "netns-setup/fault.h"

#define SUB_FILE_MAX	(1u << 20)	/* bytes of /etc/subuid that are read */
#define INSIDE_ID	1000		/* the command's number under root */
#define NUMBER_TEXT	16

static int read_file(const char *path, struct buf *out)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd == -1 ? -errno : fd_read_all(fd, out);
}

/* --- /etc/subuid ------------------------------------------------------------ */

static bool sub_line(struct str line, struct str *ret_who,
		     struct id_range *ret)
{
	unsigned long start, count;
	struct str field;

	if (!str_cut(&line, ':', ret_who) || !str_cut(&line, ':', &field) ||
	    str_to_uint(field, UINT32_MAX, &start) ||
	    str_to_uint(str_trim(line), UINT32_MAX, &count))
		return false;
	*ret = (struct id_range){ (uint32_t)start, (uint32_t)count };
	return count > 0;
}

struct id_range id_sub_range(struct str text, uid_t uid, struct str name)
{
	struct id_range best = { 0, 0 }, r;
	struct str line, who;
	unsigned long number;

	while (str_cut(&text, '\n', &line)) {
		if (!sub_line(line, &who, &r))
			continue;
		if (!(!str_empty(name) && str_eq(who, name)) &&
		    !(!str_to_uint(who, UINT32_MAX, &number) && number == uid))
			continue;
		if (r.count > best.count)
			best = r;
	}
	best.count = MIN(best.count, ID_COUNT - 1);
	return best;
}

bool id_sub_overlaps(struct str text, struct id_range range)
{
	struct str line, who;
	struct id_range r;

	while (str_cut(&text, '\n', &line)) {
		if (sub_line(line, &who, &r) &&
		    (uint64_t)r.start < (uint64_t)range.start + range.count &&
		    (uint64_t)range.start < (uint64_t)r.start + r.count)
			return true;
	}
	return false;
}

/* The caller's name as /etc/passwd has it; without NSS, which costs a start. */
static struct str caller_name(struct str passwd, uid_t uid)
{
	struct str line, name, field;
	unsigned long number;

	while (str_cut(&passwd, '\n', &line)) {
		if (str_cut(&line, ':', &name) && str_cut(&line, ':', &field) &&
		    str_cut(&line, ':', &field) &&
		    !str_to_uint(field, UINT32_MAX, &number) && number == uid)
			return name;
	}
	return STR_NONE;
}

static void plan_sub_ranges(struct id_plan *p)
{
	CLEANUP(buf_done) struct buf passwd = BUF_INIT(SUB_FILE_MAX);
	CLEANUP(buf_done) struct buf uids = BUF_INIT(SUB_FILE_MAX);
	CLEANUP(buf_done) struct buf gids = BUF_INIT(SUB_FILE_MAX);
	struct str name = STR_NONE;

	if (access("/usr/bin/newuidmap", X_OK) ||
	    access("/usr/bin/newgidmap", X_OK) ||
	    read_file("/etc/subuid", &uids) || read_file("/etc/subgid", &gids))
		return;
	if (!read_file("/etc/passwd", &passwd))
		name = caller_name(buf_str(&passwd), p->caller_uid);
	p->sub_uid = id_sub_range(buf_str(&uids), p->caller_uid, name);
	p->sub_gid = id_sub_range(buf_str(&gids), p->caller_uid, name);
	p->many = p->sub_uid.count && p->sub_gid.count;
}

/* --- the plan --------------------------------------------------------------- */

/* Does our own namespace have these ids? A container's may not. */
static bool ids_exist(const char *path, struct id_range want)
{
	CLEANUP(buf_done) struct buf map = BUF_INIT(65536);
	struct str rest, line, word;
	unsigned long start, count;

	if (read_file(path, &map))
		return false;
	rest = buf_str(&map);
	while (str_cut(&rest, '\n', &line)) {
		if (!str_word(&line, &word) ||
		    str_to_uint(word, UINT32_MAX, &start) ||
		    !str_word(&line, &word) || !str_word(&line, &word) ||
		    str_to_uint(word, UINT32_MAX, &count))
			continue;
		if (want.start >= start && (uint64_t)want.start + want.count <=
						   (uint64_t)start + count)
			return true;
	}
	return false;
}

static bool range_is_free(struct id_range r)
{
	CLEANUP(buf_done) struct buf uids = BUF_INIT(SUB_FILE_MAX);
	CLEANUP(buf_done) struct buf gids = BUF_INIT(SUB_FILE_MAX);
	int eu = read_file("/etc/subuid", &uids);
	int eg = read_file("/etc/subgid", &gids);

	return (eu == -ENOENT ||
		(!eu && !id_sub_overlaps(buf_str(&uids), r))) &&
	       (eg == -ENOENT || (!eg && !id_sub_overlaps(buf_str(&gids), r)));
}

static int plan_base(struct id_plan *p, struct launch_error *err)
{
	struct id_range r = { ID_HOST_BASE, ID_COUNT + ID_DAEMON };

	for (unsigned i = 0; i < ID_HOST_TRIES; i++, r.start += 0x1000000) {
		if (!ids_exist("/proc/self/uid_map", r) ||
		    !ids_exist("/proc/self/gid_map", r))
			continue;
		if (!range_is_free(r))
			continue;
		p->base = r.start;
		p->many = true;
		return 0;
	}
	/* A container's root: one id of its own that nobody is likely to be. */
	for (r = (struct id_range){ 65533, 1 }; r.start > 0; r.start /= 2) {
		if (ids_exist("/proc/self/uid_map", r) &&
		    ids_exist("/proc/self/gid_map", r)) {
			p->base = r.start;
			return 0;
		}
	}
	fault(err, 0, "no unused user id is left for the sandbox");
	fault_mend(err, "Root's sandboxes need %u ids from %u on that no line "
		   "of /etc/subuid or /etc/subgid has.", ID_COUNT,
		   ID_HOST_BASE);
	return -EBUSY;
}

/* A wish is granted where it is a number of the sandbox's, and no root's. */
static uint32_t inside_id(uint32_t wish)
{
	return wish == 0 || wish >= ID_COUNT - 2 ? INSIDE_ID : wish;
}

int id_plan_make(const struct launch_spec *spec, struct id_plan *ret,
		 const char **ret_note, struct launch_error *err)
{
	bool map_root = spec->map_root;
	struct id_plan p = {
		.privileged = geteuid() == 0,
		.map_root = map_root,
		.caller_uid = geteuid(),
		.caller_gid = getegid(),
	};
	int e = 0;

	*ret_note = NULL;
	p.uid = map_root ? 0 : p.caller_uid;
	p.gid = map_root ? 0 : p.caller_gid;
	if (p.privileged) {
		e = plan_base(&p, err);
		if (!map_root) {
			p.uid = inside_id(spec->uid);
			p.gid = inside_id(spec->gid);
		}
	} else if (map_root) {
		plan_sub_ranges(&p);
	}
	if (e)
		return e;
	if (map_root && !p.many)
		*ret_note = "--map-root has one id only: programs that change "
			    "their user need newuidmap (package uidmap) and "
			    "lines for you in /etc/subuid and /etc/subgid";
	*ret = p;
	return 0;
}

uint32_t id_in_setup(const struct id_plan *plan, uint32_t inside)
{
	return plan->privileged && plan->many ? inside : 0;
}

uint32_t id_on_host(const struct id_plan *plan, uint32_t inside)
{
	return plan->base + id_in_setup(plan, inside);
}

uint32_t id_of_daemon(const struct id_plan *plan)
{
	if (!plan->privileged)
		return 0;
	return plan->many ? plan->base + ID_DAEMON : plan->base;
}

/* --- writing maps ----------------------------------------------------------- */

static int write_proc(pid_t pid, const char *name, const char *text)
{
	CLEANUP(fd_closep) int fd = -1;
	char path[64];
	int n = snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd == -1)
		return -errno;
	return fd_write_all(fd, text, str_from(text).n);
}

static int write_map(pid_t pid, const char *name, uint32_t inside,
		     uint32_t outside, uint32_t count)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%u %u %u\n", inside, outside,
			 count);

	if (n < 0 || (size_t)n >= sizeof(text))
		return -ENAMETOOLONG;
	return write_proc(pid, name, text);
}

/*
 * 0 as 0 and the rest as the rest, on a line each: the kernel takes none that
 * spans two of the namespace above, and 0 is the caller there.
 */
static int write_all_map(pid_t pid, const char *name, uint32_t count)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "0 0 1\n1 1 %u\n", count - 1);

	if (n < 0 || (size_t)n >= sizeof(text))
		return -ENAMETOOLONG;
	return write_proc(pid, name, text);
}

/* One of the two programs that map what is granted, and for what. */
struct sub_map {
	const char *program, *file;
	uint32_t caller;
	struct id_range range;
};

/* newuidmap PID 0 CALLER 1 1 START COUNT, the only program that is run. */
static int run_newidmap(const struct sub_map *m, pid_t pid)
{
	char number[4][NUMBER_TEXT], zero[] = "0", one[] = "1";
	char one_more[] = "1", name[] = "newidmap";
	const uint32_t value[4] = { (uint32_t)pid, m->caller, m->range.start,
				    m->range.count };
	char *argv[] = { name, number[0], zero, number[1], one, one_more,
			 number[2], number[3], NULL };
	char *env[] = { NULL };
	pid_t child;
	int status, err;

	for (size_t i = 0; i < ARRAY_SIZE(value); i++) {
		int n = snprintf(number[i], NUMBER_TEXT, "%u", value[i]);

		if (n < 0 || n >= NUMBER_TEXT)
			return -ENAMETOOLONG;
	}
	err = posix_spawn(&child, m->program, NULL, NULL, argv, env);
	if (err)
		return -err;
	while (waitpid(child, &status, 0) == -1) {
		if (errno != EINTR)
			return -errno;
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

static int map_sub_range(const struct sub_map *m, pid_t pid,
			 struct launch_error *err)
{
	int e = run_newidmap(m, pid);

	if (!e)
		return 0;
	fault(err, -e, "%s did not map your ids and the %u from %u on (%s)",
	      m->program, m->range.count, m->range.start, m->file);
	fault_mend(err, "What it said is above. It must be set-user-ID root or "
		   "hold the capability,\n  and your user id needs a line in "
		   "/etc/passwd.");
	return e;
}

static int map_sub_ranges(const struct id_plan *p, pid_t pid,
			  struct launch_error *err)
{
	const struct sub_map uids = { "/usr/bin/newuidmap", "/etc/subuid",
				      p->caller_uid, p->sub_uid };
	const struct sub_map gids = { "/usr/bin/newgidmap", "/etc/subgid",
				      p->caller_gid, p->sub_gid };
	int e = map_sub_range(&uids, pid, err);

	return e ? e : map_sub_range(&gids, pid, err);
}

int id_map_setup(const struct id_plan *p, pid_t pid, struct launch_error *err)
{
	uint32_t uid = p->privileged ? p->base : p->caller_uid;
	uint32_t gid = p->privileged ? p->base : p->caller_gid;
	uint32_t count = p->privileged && p->many ? ID_COUNT : 1;
	int e = 0;

	if (!p->privileged && p->many)
		return map_sub_ranges(p, pid, err);
	if (!p->privileged)
		e = write_proc(pid, "setgroups", "deny");
	if (!e)
		e = write_map(pid, "uid_map", 0, uid, count);
	if (!e)
		e = write_map(pid, "gid_map", 0, gid, count);
	if (e)
		return fault(err, -e, "cannot map the sandbox's user ids");
	return 0;
}

int id_map_command(const struct id_plan *p, pid_t pid,
		   struct launch_error *err)
{
	bool all = p->map_root && p->many;
	uint32_t uids = p->privileged ? ID_COUNT : p->sub_uid.count + 1;
	uint32_t gids = p->privileged ? ID_COUNT : p->sub_gid.count + 1;
	int e;

	e = all ? write_all_map(pid, "uid_map", uids) :
		  write_map(pid, "uid_map", p->uid, id_in_setup(p, p->uid), 1);
	if (!e)
		e = all ? write_all_map(pid, "gid_map", gids) :
			  write_map(pid, "gid_map", p->gid,
				    id_in_setup(p, p->gid), 1);
	if (e)
		return fault(err, -e, "cannot map the command's user ids");
	return 0;
}

int id_become_setup(const struct id_plan *p, struct launch_error *err)
{
	/* Without a mapped range nobody may change groups, and nobody needs. */
	if ((p->privileged || p->many) && setgroups(0, NULL))
		return fault(err, errno, "cannot leave the caller's groups");
	if (setresgid(0, 0, 0) || setresuid(0, 0, 0))
		return fault(err, errno, "cannot take the sandbox's user id");
	return 0;
}

int id_map_mount(const struct id_plan *p, uid_t uid, gid_t gid, int *ret_fd)
{
	char path[64];
	int err, fd, n;
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL,
				   NULL, NULL, NULL);

	if (pid == 0) {
		for (;;)
			pause();
	}
	if (pid == -1)
		return -errno;
	err = write_map(pid, "uid_map", uid, id_on_host(p, p->uid), 1);
	if (!err)
		err = write_map(pid, "gid_map", gid, id_on_host(p, p->gid), 1);
	n = snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	if (!err && (n < 0 || (size_t)n >= sizeof(path)))
		err = -ENAMETOOLONG;
	fd = err ? -1 : open(path, O_RDONLY | O_CLOEXEC);
	if (!err && fd == -1)
		err = -errno;
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) == -1 && errno == EINTR)
		;
	if (!err)
		*ret_fd = fd;
	return err;
}
