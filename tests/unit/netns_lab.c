/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netns_lab.c - see netns_lab.h
 */
#include "tests/unit/netns_lab.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

void lab_check(int ok, const char *cond, const char *file, int line)
{
	if (ok)
		return;
	fprintf(stderr, "# %s:%d: not so: %s (errno %s)\n", file, line, cond,
		strerror(errno));
	_exit(1);
}

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	LAB_CHECK(fd >= 0);
	LAB_CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void map_self(unsigned uid, unsigned gid)
{
	char line[64];

	write_file("/proc/self/setgroups", "deny");
	LAB_CHECK(snprintf(line, sizeof(line), "0 %u 1", uid) > 0);
	write_file("/proc/self/uid_map", line);
	LAB_CHECK(snprintf(line, sizeof(line), "0 %u 1", gid) > 0);
	write_file("/proc/self/gid_map", line);
}

int lab_run(lab_fn *fn, void *arg)
{
	unsigned uid = getuid(), gid = getgid();
	pid_t pid = fork();
	int status = 1;

	if (pid == 0) {
		LAB_CHECK(unshare(CLONE_NEWUSER | CLONE_NEWNET |
				  CLONE_NEWNS) == 0);
		map_self(uid, gid);
		fn(arg);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int lab_works(void)
{
	pid_t pid = fork();
	int status = 1;

	if (pid == 0)
		_exit(unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}
