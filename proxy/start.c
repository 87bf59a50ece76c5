/* SPDX-License-Identifier: Apache-2.0 */
/*
 * start.c - descriptors and signals of a daemon that begins
 */
#include "proxy/start.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

int start_clean_fds(int *plug_fd)
{
	CLEANUP(fd_closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	unsigned from = STDERR_FILENO + 1;

	if (null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	if (plug_fd) {
		if (fcntl(*plug_fd, F_GETFD) < 0)
			return -errno;
		if (*plug_fd != (int)from && dup2(*plug_fd, (int)from) < 0)
			return -errno;
		*plug_fd = (int)from;
		if (null == (int)from)
			fd_take(&null);
		from++;
	}
	if (null >= (int)from)
		fd_take(&null);
	return close_range(from, ~0u, 0) < 0 ? -errno : 0;
}

int start_open_signals(bool service, int *ret_fd)
{
	sigset_t all, wanted;
	int fd;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGILL);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGABRT);
	sigdelset(&all, SIGSYS);
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGTERM);
	if (service) {
		sigaddset(&wanted, SIGINT);
		sigaddset(&wanted, SIGHUP);
	}
	if (sigprocmask(SIG_SETMASK, &all, NULL) < 0 ||
	    signal(SIGCHLD, SIG_IGN) == SIG_ERR)
		return -errno;
	fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

int start_check_ids(bool has_ids, bool private)
{
	if (has_ids || (getuid() != 0 && geteuid() != 0))
		return 0;
	log_error("the daemon must not run as uid 0: started as root, %s",
		  private ? "give --uid and --gid of an unused id"
			  : "name another user ('user' in [service])");
	return -EPERM;
}

size_t start_cores(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (size_t)CPU_COUNT(&set);
}
