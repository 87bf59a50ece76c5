/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.c - the socket by which a run's owner reaches its launcher
 *
 * A connection asks once and is answered once.  Numbers of questions are the
 * launcher's on the plug and the asker's on this socket, so that an answer
 * which comes when its asker has gone finds nobody.
 *
 * The socket is bound and removed by way of its directory's descriptor: a path
 * of any length works, and the directory may be renamed meanwhile.
 */
#include "netns-setup/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fd.h"
#include "netns-setup/handover.h"
#include "netns-setup/launch.h"

void control_init(struct control *c, control_fn *fn, void *arg)
{
	*c = (struct control){ .dir = -1, .listener = -1, .fn = fn,
			       .arg = arg };
	for (size_t i = 0; i < CONTROL_CONNS; i++)
		c->conn[i].fd = -1;
}

static int bind_in(int dir, int sock)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path, sizeof(a.sun_path),
			 "/proc/self/fd/%d/" CONTROL_NAME, dir);
	mode_t before;
	int e;

	if (n < 0 || (size_t)n >= sizeof(a.sun_path))
		return -ENAMETOOLONG;
	before = umask(0177);
	e = bind(sock, (const struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
	umask(before);
	return e;
}

int control_open(struct control *c, const char *path)
{
	CLEANUP(fd_closep) int sock = -1;
	int e;

	c->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (c->dir == -1)
		return -errno;
	sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		      0);
	e = sock == -1 ? -errno : bind_in(c->dir, sock);
	if (!e && listen(sock, CONTROL_CONNS))
		e = -errno;
	if (!e)
		c->listener = fd_take(&sock);
	return e;
}

void control_poll(const struct control *c, struct pollfd p[CONTROL_POLLS])
{
	p[0] = (struct pollfd){ c->listener, POLLIN, 0 };
	for (size_t i = 0; i < CONTROL_CONNS; i++)
		p[1 + i] = (struct pollfd){ c->conn[i].fd, POLLIN, 0 };
}

static void conn_close(struct control_conn *conn)
{
	fd_closep(&conn->fd);
	conn->serial = 0;
}

/* Its own owner, or root: whoever may end the run anyhow. */
static bool peer_is_owner(int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	socklen_t n = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &n) == 0 &&
	       (peer.uid == geteuid() || peer.uid == 0);
}

static void on_connection(struct control *c)
{
	CLEANUP(fd_closep) int fd =
		accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct control_conn *place = &c->conn[0];

	if (fd == -1 || !peer_is_owner(fd))
		return;
	/* A free place; else that of the one whose question is the oldest. */
	for (size_t i = 0; i < CONTROL_CONNS; i++) {
		struct control_conn *conn = &c->conn[i];

		if (conn->fd == -1) {
			place = conn;
			break;
		}
		if (conn->serial < place->serial)
			place = conn;
	}
	conn_close(place);
	place->fd = fd_take(&fd);
}

uint32_t control_parse(struct str msg, size_t nfds)
{
	struct plug_swap m;

	if (msg.n != sizeof(m) || nfds > 1)
		return 0;
	memcpy(&m, msg.p, sizeof(m));
	if (m.head.magic != PLUG_MAGIC || m.head.version != PLUG_VERSION ||
	    m.head.type != PLUG_SWAP || m.reserved != 0)
		return 0;
	return m.serial;
}

static void on_message(struct control *c, struct control_conn *conn)
{
	char msg[sizeof(struct plug_swap) + 1];
	int fds[FD_PASS_MAX], e;
	size_t n = 0, nfds = 0;
	uint32_t theirs = 0;

	e = fd_recv_msg(conn->fd, msg, sizeof(msg), &n, fds, &nfds);
	if (e == -EAGAIN)
		return;
	if (!e)
		theirs = control_parse(str_make(msg, n), nfds);
	if (theirs == 0 || conn->serial != 0) {
		conn_close(conn);
	} else {
		conn->theirs = theirs;
		conn->serial = ++c->serial;
		c->fn(c->arg, conn->serial, nfds ? fds[0] : -1);
	}
	while (nfds > 0)
		close(fds[--nfds]);
}

void control_run(struct control *c, const struct pollfd p[CONTROL_POLLS])
{
	for (size_t i = 0; i < CONTROL_CONNS; i++) {
		struct control_conn *conn = &c->conn[i];

		if (p[1 + i].revents && conn->fd == p[1 + i].fd &&
		    conn->fd >= 0)
			on_message(c, conn);
	}
	if (p[0].revents && c->listener >= 0)
		on_connection(c);
}

void control_answer(struct control *c, const struct plug_swapped *m)
{
	struct plug_swapped out = *m;

	for (size_t i = 0; i < CONTROL_CONNS; i++) {
		struct control_conn *conn = &c->conn[i];

		if (conn->fd == -1 || conn->serial == 0 ||
		    conn->serial != m->serial)
			continue;
		out.serial = conn->theirs;
		/* Who does not take it goes without. */
		(void)!fd_send_msg(conn->fd, &out, sizeof(out), NULL, 0);
		conn_close(conn);
	}
}

void control_refuse(struct control *c, uint32_t serial, const char *words)
{
	struct plug_swapped m = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_SWAPPED },
		.serial = serial,
	};
	size_t n = MIN(strlen(words), sizeof(m.text) - 1);

	memcpy(m.text, words, n);
	control_answer(c, &m);
}

/* The policy that the run was started with, from its files as they are. */
static int read_again(const struct launch_spec *spec, int *ret_fd,
		      char why[LAUNCH_ERROR_MAX])
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PLUG_POLICY_MAX);
	int e = spec->policy_again(spec->policy_arg, &text, why);

	return e ? e : fd_memfd("policy", buf_str(&text), ret_fd);
}

void control_pass_on(struct control *c, const struct launch_spec *spec,
		     int plug, uint32_t serial, int policy_fd)
{
	CLEANUP(fd_closep) int again = -1;
	char why[LAUNCH_ERROR_MAX] = "";
	int e = 0;

	if (policy_fd < 0 && spec->policy_name) {
		control_refuse(c, serial, "it follows the service's policy that "
			       "it was given by name: penstock reload, without "
			       "--run");
		return;
	}
	if (policy_fd < 0 && !spec->policy_again) {
		control_refuse(c, serial, "its policy comes from no file: give "
			       "one with --policy");
		return;
	}
	if (policy_fd < 0)
		e = read_again(spec, &again, why);
	if (!e)
		e = handover_swap(plug, serial, policy_fd < 0 ? again :
						policy_fd);
	if (e)
		control_refuse(c, serial, why[0] ? why : strerror(-e));
}

void control_done(struct control *c)
{
	for (size_t i = 0; i < CONTROL_CONNS; i++)
		conn_close(&c->conn[i]);
	if (c->listener >= 0)
		(void)!unlinkat(c->dir, CONTROL_NAME, 0);
	fd_closep(&c->listener);
	fd_closep(&c->dir);
}
