/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marker.c - the small process that may still mark sockets
 *
 * Each worker has a SOCK_SEQPACKET pair of its own with it, so that workers
 * share nothing.  A worker asks (struct marker_ask) and is answered (struct
 * marker_answer) in turn; it has one question a family under way, so that what
 * waits in a pair is bounded and an answer never blocks for long.
 *
 * What a worker says is a family and a number, and both are checked: the mark
 * is the operator's, and cannot be asked for.  The end of any of the
 * connections ends the marker, whatever ended the daemon.
 */
#include "proxy/marker.h"

#include <errno.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

/* --- the mark -------------------------------------------------------------- */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int parse_hex(struct str digits, unsigned long *ret)
{
	unsigned long v = 0;

	if (digits.n == 0 || digits.n > 8)
		return -EINVAL;
	for (size_t i = 0; i < digits.n; i++) {
		int digit = hex_digit(digits.p[i]);

		if (digit < 0)
			return -EINVAL;
		v = v << 4 | (unsigned long)digit;
	}
	*ret = v;
	return 0;
}

int marker_parse(struct str text, uint32_t *ret, const char **ret_why)
{
	unsigned long v = 0;
	int err;

	if (text.n > 2 && text.p[0] == '0' && (text.p[1] | 0x20) == 'x')
		err = parse_hex(str_make(text.p + 2, text.n - 2), &v);
	else
		err = str_to_uint(text, UINT32_MAX, &v);
	if (err < 0 || v == 0) {
		*ret_why = "is no mark: write a number from 1 to 4294967295, or 0x1 to 0xffffffff";
		return -EINVAL;
	}
	*ret = (uint32_t)v;
	return 0;
}

static int mark_set(int fd, uint32_t mark)
{
	return setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0 ?
	       -errno : 0;
}

/* CAP_NET_ADMIN would do for SO_MARK, too, and for far more: it is not kept. */
static int may_keep(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = { { 0 } };

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	return data[0].permitted & BIT(CAP_NET_RAW) ? 0 : -EPERM;
}

int marker_check(uint32_t mark, bool private)
{
	CLEANUP(fd_closep) int fd = -1;
	int err = may_keep();

	if (err == 0) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0 && errno == EAFNOSUPPORT)
			fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
		err = fd < 0 ? -errno : mark_set(fd, mark);
	}
	if (err == -EPERM)
		log_error("mark: marking sockets needs CAP_NET_RAW, which is not here: %s",
			  private ? "start the run as root, or without --mark"
				  : "start as root with 'user' in [service], or set AmbientCapabilities=CAP_NET_RAW and CapabilityBoundingSet=CAP_NET_RAW in the unit");
	else if (err < 0)
		log_error("mark: SO_MARK: %s", strerror(-err));
	return err;
}

/* --- the marker's side ------------------------------------------------------ */

static int make_one(uint32_t family, uint32_t mark, int *ret)
{
	CLEANUP(fd_closep) int fd = socket((int)family, SOCK_STREAM |
					   SOCK_NONBLOCK | SOCK_CLOEXEC,
					   IPPROTO_TCP);
	int err = fd < 0 ? -errno : mark_set(fd, mark);

	if (err == 0)
		*ret = fd_take(&fd);
	return err;
}

static int answer_with(int sock, const struct marker_ask *ask, uint32_t mark)
{
	struct marker_answer answer = { .family = ask->family };
	int fd[FD_PASS_MAX];
	size_t n = 0;
	int err = 0;

	while (n < ask->n && answer.err == 0) {
		answer.err = make_one(ask->family, mark, &fd[n]);
		n += answer.err == 0;
	}
	if (n > 0) {
		answer.err = 0;
		err = fd_send_msg(sock, &answer, sizeof(answer), fd, n);
		/* TOOMANYREFS: they are on their way, and nobody reads. */
		if (err < 0)
			answer.err = err == -ETOOMANYREFS ? -EMFILE : err;
	}
	while (n > 0)
		close(fd[--n]);
	if (answer.err < 0)
		err = fd_send_msg(sock, &answer, sizeof(answer), NULL, 0);
	return err;
}

static int answer_one(int sock, uint32_t mark)
{
	struct marker_ask ask;
	int fds[FD_PASS_MAX];
	size_t n = 0, nfds = 0;
	int err = fd_recv_msg(sock, &ask, sizeof(ask), &n, fds, &nfds);

	while (nfds > 0)
		close(fds[--nfds]);
	if (err < 0 || n == 0)
		return -EPIPE;	/* the daemon is gone */
	if (n != sizeof(ask) || ask.n < 1 || ask.n > FD_PASS_MAX ||
	    (ask.family != AF_INET && ask.family != AF_INET6))
		return -EPROTO;
	return answer_with(sock, &ask, mark);
}

static void marker_loop(const int *sock, size_t nsocks, uint32_t mark)
{
	struct pollfd p[MARKER_PEERS_MAX];
	int err = 0;

	for (size_t i = 0; i < nsocks; i++)
		p[i] = (struct pollfd){ .fd = sock[i], .events = POLLIN };
	while (err == 0) {
		if (poll(p, nsocks, -1) < 0) {
			err = errno == EINTR ? 0 : -errno;
			continue;
		}
		for (size_t i = 0; i < nsocks && err == 0; i++)
			if (p[i].revents)
				err = answer_one(sock[i], mark);
	}
}

static int by_number(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Nothing of the daemon's but stderr and our ends: no end of a control
 * connection may outlive it here. */
static int close_others(int *keep, size_t n)
{
	unsigned from = STDERR_FILENO + 1;

	qsort(keep, n, sizeof(*keep), by_number);
	for (size_t i = 0; i < n; i++) {
		unsigned fd = (unsigned)keep[i];

		if (fd > from && close_range(from, fd - 1, 0) < 0)
			return -errno;
		from = fd + 1;
	}
	return close_range(from, ~0u, 0) < 0 ? -errno : 0;
}

NORETURN static void marker_main(const struct marker_config *config,
				 int *sock)
{
	(void)prctl(PR_SET_NAME, "penstock-marker", 0, 0, 0);
	if (close_others(sock, config->npeers) < 0 ||
	    (config->drop && config->drop(config->drop_arg) < 0))
		_exit(1);
	marker_loop(sock, config->npeers, config->mark);
	_exit(0);
}

/* --- the daemon's side ------------------------------------------------------ */

static void close_each(int *fd, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fd_closep(&fd[i]);
}

int marker_fork(const struct marker_config *config, int *ret_peer)
{
	int theirs[MARKER_PEERS_MAX], ours[MARKER_PEERS_MAX];
	size_t n;
	int err = 0;
	pid_t pid = -1;

	REQUIRE(config->npeers <= MARKER_PEERS_MAX);
	for (n = 0; n < config->npeers; n++) {
		int pair[2];

		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
			       pair) < 0) {
			err = -errno;
			break;
		}
		ours[n] = pair[0];
		theirs[n] = pair[1];
	}
	if (err == 0) {
		pid = fork();
		err = pid < 0 ? -errno : 0;
	}
	if (pid == 0)
		marker_main(config, theirs);
	close_each(theirs, n);
	if (err < 0)
		close_each(ours, n);
	else
		memcpy(ret_peer, ours, n * sizeof(*ours));
	return err;
}
