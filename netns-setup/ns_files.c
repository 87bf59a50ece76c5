/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns_files.c - hosts, nsswitch.conf, resolv.conf, passwd and group inside
 *
 * The files are written to a stage that is covered later, so that the command
 * can never reach the writable side of them; what is laid over the host's
 * files are detached, read-only mounts.
 *
 * /etc/resolv.conf is often a symbolic link into /run, which is fresh here and
 * empty: then the link's target is made first.
 */
#include "netns-setup/ns_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "netns-setup/fault.h"
#include "netns-setup/mounts.h"

#define STAGE		"/run/"
#define TEXT_MAX	(1u << 20)	/* bytes of /etc/passwd that are copied */
#define PATH_TEXT_MAX	1024

/* Any address would do: our resolver answers on all of them. */
#define RESOLV_TEXT	"nameserver 127.0.0.1\noptions edns0\n"

#define NSSWITCH_TEXT \
	"passwd: files\ngroup: files\nshadow: files\ngshadow: files\n" \
	"hosts: files dns\nnetworks: files\n" \
	"protocols: files\nservices: files\nethers: files\nrpc: files\n"

#define HOSTS_TEXT \
	"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n" \
	"127.0.0.1 %s\n::1 %s\n"

static const struct {
	const char *stage, *target;
} places[NS_FILES] = {
	[NS_FILE_HOSTS] = { STAGE "hosts", "/etc/hosts" },
	[NS_FILE_NSSWITCH] = { STAGE "nsswitch", "/etc/nsswitch.conf" },
	[NS_FILE_RESOLV] = { STAGE "resolv", "/etc/resolv.conf" },
	[NS_FILE_PASSWD] = { STAGE "passwd", "/etc/passwd" },
	[NS_FILE_GROUP] = { STAGE "group", "/etc/group" },
};

static int detach(const char *path, int *ret_fd)
{
	struct mount_attr a = {
		.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
			    MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC,
	};
	CLEANUP(fd_closep) int fd = open_tree(AT_FDCWD, path,
		OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (fd == -1 || mount_setattr(fd, "", AT_EMPTY_PATH, &a, sizeof(a)))
		return -errno;
	*ret_fd = fd_take(&fd);
	return 0;
}

static int write_one(struct ns_files *f, enum ns_file which, struct str text)
{
	CLEANUP(fd_closep) int fd = open(places[which].stage,
		O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int err;

	if (fd == -1)
		return -errno;
	/* Not the umask's business: the command must be able to read it. */
	if (fchmod(fd, 0644))
		return -errno;
	err = fd_write_all(fd, text.p, text.n);
	return err ? err : detach(places[which].stage, &f->fd[which]);
}

/* Does a line of a passwd or group file have this number in its third field? */
static bool has_number(struct str text, uint32_t number)
{
	struct str line, field;
	unsigned long n;

	while (str_cut(&text, '\n', &line)) {
		if (str_cut(&line, ':', &field) &&
		    str_cut(&line, ':', &field) &&
		    str_cut(&line, ':', &field) &&
		    !str_to_uint(field, UINT32_MAX, &n) && n == number)
			return true;
	}
	return false;
}

static int read_text(const char *path, struct buf *out)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		return errno == ENOENT ? 0 : -errno;
	return fd_read_all(fd, out);
}

/* The host's file with one line more, where the command's id has none. */
static int write_ids(struct ns_files *f, enum ns_file which,
		     const struct mounts_plan *plan)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(TEXT_MAX);
	bool user = which == NS_FILE_PASSWD;
	int err = read_text(places[which].target, &text);

	if (err == -EFBIG || err == -EACCES)
		return 0;
	if (err)
		return err;
	if (has_number(buf_str(&text),
		       user ? plan->inside_uid : plan->inside_gid))
		return 0;
	if (text.n > 0 && text.p[text.n - 1] != '\n')
		err = buf_add_char(&text, '\n');
	if (!err && user)
		err = buf_printf(&text, "%s:x:%u:%u::%s:/bin/sh\n", plan->user,
				 plan->inside_uid, plan->inside_gid,
				 plan->home ? plan->home : "/");
	if (!err && !user)
		err = buf_printf(&text, "%s:x:%u:\n", plan->user,
				 plan->inside_gid);
	return err ? err : write_one(f, which, buf_str(&text));
}

int ns_files_write(struct ns_files *f, const struct mounts_plan *plan,
		   struct launch_error *err)
{
	CLEANUP(buf_done) struct buf hosts = BUF_INIT(PATH_TEXT_MAX);
	int e = buf_printf(&hosts, HOSTS_TEXT, plan->hostname, plan->hostname);

	if (!e)
		e = write_one(f, NS_FILE_HOSTS, buf_str(&hosts));
	if (!e)
		e = write_one(f, NS_FILE_NSSWITCH, STR(NSSWITCH_TEXT));
	if (!e)
		e = write_one(f, NS_FILE_RESOLV, STR(RESOLV_TEXT));
	if (!e)
		e = write_ids(f, NS_FILE_PASSWD, plan);
	if (!e)
		e = write_ids(f, NS_FILE_GROUP, plan);
	if (e)
		return fault(err, -e, "cannot write the sandbox's own files");
	return 0;
}

/* Where a dangling link points, made as an empty file; within one level. */
static int make_target(const char *link)
{
	char to[PATH_TEXT_MAX], path[PATH_TEXT_MAX + 8];
	ssize_t n = readlink(link, to, sizeof(to) - 1);
	int fd, len;

	if (n == -1)
		return -errno;
	to[n] = '\0';
	len = snprintf(path, sizeof(path), "%s%s", to[0] == '/' ? "" : "/etc/",
		       to);
	if (len < 0 || (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	for (char *p = path + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(path, 0755) && errno != EEXIST && errno != EROFS)
			return -errno;
		*p = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd == -1)
		return -errno;
	close(fd);
	return 0;
}

/*
 * A host without the file needs none of ours: libc's default is then
 * 127.0.0.1 for resolv.conf, and "dns files" for hosts.
 */
static int lay_one(int fd, const char *target)
{
	struct stat st;
	int err;

	if (stat(target, &st)) {
		if (lstat(target, &st))
			return 0;
		err = make_target(target);
		if (err)
			return err == -EROFS || err == -EACCES ? 0 : err;
	}
	if (move_mount(fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH |
		       MOVE_MOUNT_T_SYMLINKS))
		return -errno;
	return 0;
}

int ns_files_lay(struct ns_files *f, struct launch_error *err)
{
	for (size_t i = 0; i < NS_FILES; i++) {
		int e;

		if (f->fd[i] == -1)
			continue;
		e = lay_one(f->fd[i], places[i].target);
		if (e)
			return fault(err, -e, "cannot replace %s",
				     places[i].target);
	}
	return 0;
}

void ns_files_done(struct ns_files *f)
{
	for (size_t i = 0; i < NS_FILES; i++)
		fd_closep(&f->fd[i]);
}
