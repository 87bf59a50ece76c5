/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_sockets.c - reading /proc/net/unix
 *
 *	Num: RefCount Protocol Flags Type St Inode Path
 *
 * A path may hold blanks, and relative ones do not say to what they are
 * relative; those are passed over.  A connected socket of an accepted
 * connection repeats its listener's path.
 */
#include "netns-setup/host_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

#include "base/fd.h"
#include "netns-setup/mounts.h"

#define FIELDS_BEFORE_PATH	7

/* Fresh in every sandbox: what lies there is out of sight anyway. */
static const char *const covered[] = {
	"/run", "/var/run", "/tmp", "/var/tmp", "/dev", "/proc", "/sys",
};

static bool is_covered(const char *path, const char *workdir)
{
	if (workdir && path_is_in(path, workdir))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(covered); i++) {
		if (path_is_in(path, covered[i]))
			return true;
	}
	return false;
}

static bool is_known(const struct host_sockets *s, const char *path)
{
	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->path[i], path) == 0)
			return true;
	}
	return false;
}

/* What stands behind the seventh field; empty for an unnamed socket. */
static struct str path_of(struct str line)
{
	struct str word;

	for (int i = 0; i < FIELDS_BEFORE_PATH; i++) {
		if (!str_word(&line, &word))
			return STR_NONE;
	}
	return str_trim(line);
}

int host_sockets_parse(struct host_sockets *s, const char *workdir)
{
	struct str rest = buf_str(&s->text), line;

	while (str_cut(&rest, '\n', &line)) {
		struct str path = path_of(line);
		char *own;

		if (str_empty(path) || path.p[0] != '/')
			continue;
		/* The line's end becomes the path's. */
		own = s->text.p + (path.p - s->text.p);
		if (own + path.n >= s->text.p + s->text.n)
			continue;
		own[path.n] = '\0';
		if (is_covered(own, workdir) || is_known(s, own))
			continue;
		if (s->n == HOST_SOCKETS_MAX)
			return -E2BIG;
		s->path[s->n++] = own;
	}
	return 0;
}

int host_sockets_find(struct host_sockets *s, const char *workdir)
{
	CLEANUP(fd_closep) int fd = open("/proc/self/net/unix",
					 O_RDONLY | O_CLOEXEC);
	int err;

	if (fd == -1)
		return errno == ENOENT ? 0 : -errno;
	err = fd_read_all(fd, &s->text);
	return err ? err : host_sockets_parse(s, workdir);
}

void host_sockets_done(struct host_sockets *s)
{
	buf_done(&s->text);
	s->n = 0;
}
