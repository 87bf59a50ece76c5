/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_freeze.c - a sandbox that accepts nothing for a while
 *
 * While it changes hands, or until it turns out that it does not.  Its sockets
 * stay open and listening, so that whoever comes meanwhile waits for a moment
 * and is refused nothing.  A listener is given up for a second descriptor of its
 * socket, and made anew of it.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/fd.h"
#include "base/log.h"
#include "proxy/listener.h"
#include "proxy/nflog.h"
#include "proxy/sandbox.h"
#include "resolver/resolver.h"

/* Second descriptors of its listening sockets: all, or none. */
static int dup_doors(const struct sandbox *s, int fd[SANDBOX_FDS_MAX])
{
	size_t i;
	int err = 0;

	for (i = 0; i < s->ndoors; i++)
		fd[i] = -1;
	for (i = 0; err == 0 && i < s->ndoors; i++) {
		if (!sandbox_role_accepts(s->door[i].role))
			continue;
		fd[i] = fcntl(s->door[i].fd, F_DUPFD_CLOEXEC, 0);
		err = fd[i] < 0 ? -errno : 0;
	}
	for (i = 0; err < 0 && i < s->ndoors; i++)
		fd_closep(&fd[i]);
	return err;
}

int sandbox_freeze(struct sandbox *s)
{
	int fd[SANDBOX_FDS_MAX];
	int err = dup_doors(s, fd);
	size_t i;

	if (err < 0)
		return err;
	listener_free_all(s);
	for (i = 0; i < s->ndoors; i++)
		if (fd[i] >= 0)
			s->door[i].fd = fd[i];
	s->frozen = true;
	if (s->dns)
		dns_door_freeze(s->dns);
	if (s->nflog)
		nflog_freeze(s->nflog, true);
	return 0;
}

void sandbox_thaw(struct sandbox *s)
{
	struct listener *l;
	size_t i;

	if (!s->frozen)
		return;
	s->frozen = false;
	for (i = 0; i < s->ndoors; i++) {
		struct sandbox_fd *f = &s->door[i];

		if (sandbox_role_accepts(f->role) &&
		    listener_new(s, f->fd, sandbox_role_accepts(f->role),
				 &l) < 0)
			log_error("run %s: out of memory: one of its doors is shut",
				  s->run);
	}
	if (s->dns)
		dns_door_thaw(s->dns);
	if (s->nflog)
		nflog_freeze(s->nflog, false);
}

void sandbox_close_frozen(struct sandbox *s)
{
	size_t i;

	for (i = 0; s->frozen && i < s->ndoors; i++)
		if (sandbox_role_accepts(s->door[i].role))
			fd_closep(&s->door[i].fd);
	s->frozen = false;
}

struct audit_sink *sandbox_set_sink(struct sandbox *s,
				    struct audit_sink *sink)
{
	struct audit_sink *old = s->sink;

	if (s->dns)
		dns_door_set_sink(s->dns, sink);
	s->sink = sink;
	return old;
}
