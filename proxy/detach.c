/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detach.c - a daemon that goes to the background, and a command that waits
 *
 * It is forked twice, so that its parent is the system's first process by the
 * time a service manager is told of it: that is who hears of its end.
 */
#include "proxy/detach.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

NORETURN static void wait_for_word(int fd)
{
	char word;
	ssize_t n;

	do {
		n = read(fd, &word, 1);
	} while (n < 0 && errno == EINTR);
	_exit(n == 1 ? 0 : 1);
}

int detach(int *ret_fd)
{
	int end[2], status;
	pid_t pid;

	if (pipe2(end, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		close(end[1]);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		wait_for_word(end[0]);
	}
	if (setsid() < 0 || (pid = fork()) < 0)
		_exit(1);
	if (pid > 0)
		_exit(0);
	close(end[0]);
	*ret_fd = end[1];
	return 0;
}

void detach_tell(int fd)
{
	if (fd >= 0)
		(void)!write(fd, "", 1);
}
