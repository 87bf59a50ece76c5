/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_state.c - run directories and records files
 */
#include "cli/run_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "cli/caller.h"
#include "cli/opts.h"

#define ID_BYTES	3	/* random bytes of a run id, short to type */
#define ID_TRIES	64
#define RECORDS_NAME	"audit.jsonl"

static int join(char out[RUN_PATH_MAX], const char *dir, const char *name)
{
	int n = snprintf(out, RUN_PATH_MAX, "%s/%s", dir, name);

	return n < 0 || n >= RUN_PATH_MAX ? -ENAMETOOLONG : 0;
}

static int find_base(char out[RUN_PATH_MAX])
{
	const char *state = caller_path("XDG_STATE_HOME");
	const char *home = caller_path("HOME");

	if (geteuid() == 0) {
		memcpy(out, RUN_ROOT_BASE, sizeof(RUN_ROOT_BASE));
		return 0;
	}
	if (state)
		return join(out, state, "penstock");
	if (home)
		return join(out, home, ".local/state/penstock");
	return -ENOENT;
}

static int make_dirs(const char *path)
{
	char part[RUN_PATH_MAX];
	size_t n = strlen(path);

	for (size_t i = 1; i <= n; i++) {
		if (path[i] != '/' && path[i] != '\0')
			continue;
		memcpy(part, path, i);
		part[i] = '\0';
		if (mkdir(part, 0700) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

/* A directory nobody else has, by its name: that is the run's id. */
static int claim(struct run_state *s)
{
	int e = make_dirs(s->base);

	for (unsigned i = 0; !e && i < ID_TRIES; i++) {
		id_random_hex(s->id, ID_BYTES);
		e = join(s->dir, s->base, s->id);
		if (e)
			return e;
		if (mkdir(s->dir, 0700) == 0)
			return 0;
		if (errno != EEXIST)
			return -errno;
	}
	return e ? e : -EEXIST;
}

static int open_records(struct run_state *s)
{
	off_t end;

	s->fd = open(s->records, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC |
		     O_NOFOLLOW | O_NOCTTY, 0600);
	if (s->fd == -1)
		return -errno;
	end = lseek(s->fd, 0, SEEK_END);
	s->start = end > 0 ? end : 0;
	return 0;
}

static int chosen(const char *records, struct run_state *s)
{
	size_t n = strlen(records);
	char dir[RUN_PATH_MAX] = ".", real[PATH_MAX];
	const char *slash = strrchr(records, '/');

	if (n >= RUN_PATH_MAX || n == 0)
		return n ? -ENAMETOOLONG : -ENOENT;
	/* A place for the run's socket is good to have, and no condition. */
	s->own_dir = find_base(s->base) == 0 && claim(s) == 0;
	if (!s->own_dir) {
		s->base[0] = s->dir[0] = '\0';
		id_random_hex(s->id, ID_BYTES);
	}
	if (slash) {
		size_t len = slash == records ? 1 : (size_t)(slash - records);

		memcpy(dir, records, len);
		dir[len] = '\0';
	}
	/* Absolute, since the sandbox must hide it wherever it starts. */
	if (!realpath(dir, real))
		return -errno;
	return join(s->records, strcmp(real, "/") ? real : "",
		    slash ? slash + 1 : records);
}

static void complain(const char *records, const struct run_state *s, int e)
{
	const char *path = records ? records :
			   s->records[0] ? s->records : s->base;

	if (!path[0])
		say("there is no place for the records: set HOME or "
		    "XDG_STATE_HOME, or use --records FILE");
	else
		say("cannot open the records file %s: %s%s", path,
		    e == -ELOOP ? "it is a link, and links are not followed" :
				  strerror(-e),
		    records ? "" : "; set HOME or XDG_STATE_HOME to a place "
				   "that you may write, or use --records FILE");
}

int run_state_open(const char *records, struct run_state *ret)
{
	struct run_state s = RUN_STATE_INIT;
	int e = records ? chosen(records, &s) : find_base(s.base);

	if (!e && !records)
		e = claim(&s);
	if (!e && !records)
		e = join(s.records, s.dir, RECORDS_NAME);
	if (!e)
		e = open_records(&s);
	if (e) {
		complain(records, &s, e);
		run_state_done(&s);
		return e;
	}
	*ret = s;
	return 0;
}

int run_state_find_dir(const char *id, char ret_path[RUN_PATH_MAX])
{
	char base[RUN_PATH_MAX];
	size_t n = strspn(id, "0123456789abcdef");
	int e;

	if (n == 0 || n >= RUN_ID_SIZE || id[n] != '\0')
		return -EINVAL;
	e = find_base(base);
	return e ? e : join(ret_path, base, id);
}

int run_state_find(const char *id, char ret_path[RUN_PATH_MAX])
{
	char dir[RUN_PATH_MAX];
	int e = run_state_find_dir(id, dir);

	return e ? e : join(ret_path, dir, RECORDS_NAME);
}

int run_state_reopen(const struct run_state *s, int *ret_fd)
{
	char path[32];
	int n = snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return *ret_fd == -1 ? -errno : 0;
}

void run_state_forget_dir(struct run_state *s)
{
	(void)!rmdir(s->dir);
	s->dir[0] = s->base[0] = '\0';
	s->own_dir = false;
}

void run_state_done(struct run_state *s)
{
	fd_closep(&s->fd);
	if (s->own_dir)
		run_state_forget_dir(s);
}

int run_state_output(const char *path, int *ret_fd)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC |
		      O_NOFOLLOW | O_NOCTTY, 0666);

	if (fd == -1) {
		int e = errno;

		say("cannot write %s: %s", path, e == ELOOP ?
		    "it is a link, and links are not followed" : strerror(e));
		return -e;
	}
	*ret_fd = fd;
	return 0;
}
