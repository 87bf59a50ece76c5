/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plug_listen.c - the socket that launchers connect to
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "base/fd.h"
#include "base/log.h"
#include "proxy/plug_own.h"

#define PLUG_BACKOFF_MS		100	/* when accept() lacks descriptors */

static void plug_accept_cb(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval pause = {
		.tv_usec = PLUG_BACKOFF_MS * 1000,
	};
	struct plug *p = arg;
	unsigned i;

	(void)what;
	for (i = 0; i < PLUG_BATCH; i++) {
		int conn = accept4(fd, NULL, NULL,
				   SOCK_CLOEXEC | SOCK_NONBLOCK);
		int err = conn < 0 ? -errno : plug_attach(p, conn);

		if (err == -EAGAIN)
			return;
		if (err == 0 || err == -ECONNABORTED || err == -EINTR)
			continue;
		log_error("cannot take a plug: %s", strerror(-err));
		event_del(p->accepting);
		if (event_add(p->backoff, &pause) < 0)
			(void)event_add(p->accepting, NULL);
		return;
	}
}

static void plug_backoff_cb(evutil_socket_t fd, short what, void *arg)
{
	struct plug *p = arg;

	(void)fd;
	(void)what;
	if (p->listen_fd >= 0)
		(void)event_add(p->accepting, NULL);
}

int plug_listen(struct plug *p, int fd)
{
	int err = fd_set_nonblock(fd, true);

	p->listen_fd = fd;
	if (err < 0)
		return err;
	p->accepting = event_new(p->config.base, fd, EV_READ | EV_PERSIST,
				 plug_accept_cb, p);
	p->backoff = event_new(p->config.base, -1, 0, plug_backoff_cb, p);
	if (!p->accepting || !p->backoff ||
	    event_add(p->accepting, NULL) < 0)
		return -ENOMEM;
	return 0;
}

void plug_pause_listening(struct plug *p, bool pause)
{
	if (!p->accepting)
		return;
	event_del(p->backoff);
	if ((pause ? event_del(p->accepting)
		   : event_add(p->accepting, NULL)) < 0)
		log_error("out of memory: no plug is taken any more");
}

void plug_stop_listening(struct plug *p)
{
	if (p->accepting)
		event_free(p->accepting);
	if (p->backoff)
		event_free(p->backoff);
	p->accepting = p->backoff = NULL;
	fd_closep(&p->listen_fd);
}
