/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.c - messages between the launcher and the setup process
 */
#include "netns-setup/step.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

_Static_assert(sizeof(struct launch_error) <= PIPE_BUF,
	       "a report is written in one piece");

int step_send(int sock, const struct step *s, const int *fds, size_t nfds)
{
	return fd_send_msg(sock, s, sizeof(*s), fds, nfds);
}

int step_recv(int sock, struct step *ret, int fds[FD_PASS_MAX],
	      size_t *ret_nfds)
{
	int own[FD_PASS_MAX], *to = fds ? fds : own;
	struct step s;
	size_t n, nfds = 0;
	int err = fd_recv_msg(sock, &s, sizeof(s), &n, to, &nfds);

	if (err == -ECONNRESET)
		return -EPIPE;
	if (err)
		return err;
	if (n == 0)
		return -EPIPE;
	if (n != sizeof(s) || (nfds && !fds)) {
		while (nfds > 0)
			close(to[--nfds]);
		return -EPROTO;
	}
	*ret = s;
	if (ret_nfds)
		*ret_nfds = nfds;
	return 0;
}

void step_note(int sock, const char *fmt, ...)
{
	struct step s = { .type = STEP_NOTE };
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(s.text, sizeof(s.text), fmt, ap);
	va_end(ap);
	/* A note that is lost costs nothing but the note. */
	if (n > 0 && step_send(sock, &s, NULL, 0))
		return;
}

void step_report(int fd, const struct launch_error *err)
{
	/* Nobody reads: then nobody waits for it either. */
	if (fd_write_all(fd, err, sizeof(*err)))
		return;
}
