/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker.c - the small process that may still open files
 *
 * The two talk over a SOCK_SEQPACKET pair, one message a time:
 *
 *	daemon			broker
 *			<-	BROKER_CONF + text	at start when it changed since,
 *							and at each change
 *	BROKER_REOPEN	->
 *			<-	BROKER_LOG + descriptor, or an errno
 *
 * The end of the connection ends the broker, whatever ended the daemon.
 *
 * Following a file means watching (inotify) the directory of its path, of each
 * symbolic link's target behind it, and the file at the end: editors rename,
 * resolvconf and systemd swap links, containers write through a bind mount,
 * whose directory hears nothing.  Where a directory does not exist, the
 * nearest one above it that does is watched.  Watches are set before the file
 * is read, so that no change falls in between; and the read waits until
 * BROKER_QUIET_MS have passed without an event, so that a file that is just
 * being replaced is not read half-way.
 *
 * The first look is taken BROKER_FIRST_MS after the start: it finds what has
 * changed since the daemon read the file, and until then the processor is for
 * the run that starts, which may be over by then.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/broker.h"

#define BROKER_LINKS_MAX	8	/* symbolic links in a row */
#define BROKER_WATCHES_MAX	(2 * (BROKER_LINKS_MAX + 1))
#define BROKER_FIRST_MS		200
#define BROKER_QUIET_MS		20
#define BROKER_QUIET_TURNS	50	/* then read all the same */
#define BROKER_EVENTS		(IN_CREATE | IN_DELETE | IN_MOVED_FROM | \
				 IN_MOVED_TO | IN_CLOSE_WRITE | \
				 IN_DELETE_SELF | IN_MOVE_SELF | IN_ATTRIB)

enum broker_type {
	BROKER_CONF = 1,
	BROKER_REOPEN,
	BROKER_LOG,
};

struct broker_head {
	uint32_t type;
	int32_t err;
};

struct broker_msg {
	struct broker_head head;
	char text[BROKER_CONF_MAX];
};

/* --- files --------------------------------------------------------------- */

int broker_read_conf(const char *path, struct buf *out)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC |
					 O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	return fd_read_all(fd, out);
}

int broker_open_log(const char *path, int *ret_fd)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC |
		      O_NOCTTY | O_NOFOLLOW, 0640);

	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* --- following, on the broker's side ------------------------------------------- */

struct follow {
	const char *path;
	int fd;				/* inotify */
	int watch[BROKER_WATCHES_MAX];
	size_t n;
	struct str sent;		/* as last sent, or known before */
	struct buf text;		/* where @sent is, once one was sent */
};

static bool follow_has(const int *watch, size_t n, int wd)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (watch[i] == wd)
			return true;
	return false;
}

static void follow_add(struct follow *f, const char *path)
{
	int wd = inotify_add_watch(f->fd, path, BROKER_EVENTS);

	if (wd >= 0 && f->n < BROKER_WATCHES_MAX &&
	    !follow_has(f->watch, f->n, wd))
		f->watch[f->n++] = wd;
}

/* Cut @path to its directory: "/etc/x" to "/etc", "/x" to "/", "x" to ".". */
static void follow_dirname(char path[PATH_MAX])
{
	char *slash = strrchr(path, '/');

	if (!slash)
		memcpy(path, ".", 2);
	else if (slash == path)
		path[1] = '\0';
	else
		*slash = '\0';
}

static void follow_add_dir_of(struct follow *f, const char *file)
{
	char dir[PATH_MAX];
	int n = snprintf(dir, sizeof(dir), "%s", file);

	if (n < 0 || (size_t)n >= sizeof(dir))
		return;
	do {
		follow_dirname(dir);
		if (access(dir, F_OK) == 0) {
			follow_add(f, dir);
			return;
		}
	} while (strcmp(dir, "/") != 0 && strcmp(dir, ".") != 0);
}

/* Replace @path by what it links to; false when it is no link. */
static bool follow_link(char path[PATH_MAX])
{
	char to[PATH_MAX], dir[PATH_MAX];
	ssize_t n = readlink(path, to, sizeof(to) - 1);
	int len;

	if (n <= 0)
		return false;
	to[n] = '\0';
	memcpy(dir, path, PATH_MAX);
	follow_dirname(dir);
	if (to[0] == '/')
		len = snprintf(path, PATH_MAX, "%s", to);
	else
		len = snprintf(path, PATH_MAX, "%s/%s", dir, to);
	return len > 0 && len < PATH_MAX;
}

static void follow_set_watches(struct follow *f)
{
	int old[BROKER_WATCHES_MAX];
	size_t i, nold = f->n;
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s", f->path);
	unsigned links;

	if (len < 0 || (size_t)len >= sizeof(path))
		return;
	memcpy(old, f->watch, sizeof(old));
	f->n = 0;
	for (links = 0; links <= BROKER_LINKS_MAX; links++) {
		follow_add_dir_of(f, path);
		if (!follow_link(path))
			break;
	}
	follow_add(f, path);
	for (i = 0; i < nold; i++)
		if (!follow_has(f->watch, f->n, old[i]))
			(void)inotify_rm_watch(f->fd, old[i]);
}

static int broker_send(int sock, uint32_t type, int err, struct str text,
		       int fd)
{
	struct broker_msg msg;

	msg.head.type = type;
	msg.head.err = err;
	if (text.n)
		memcpy(msg.text, text.p, MIN(text.n, sizeof(msg.text)));
	return fd_send_msg(sock, &msg, sizeof(msg.head) + text.n, &fd,
			   fd >= 0 ? 1 : 0);
}

/* Send the text when it is another than the last. */
static int follow_tell(struct follow *f, int sock)
{
	struct buf now = BUF_INIT(BROKER_CONF_MAX);
	int err;

	follow_set_watches(f);
	err = broker_read_conf(f->path, &now);
	if (err < 0) {
		log_error("%s: %s; the servers known so far stay in use",
			  f->path, strerror(-err));
		buf_done(&now);
		return 0;
	}
	if (str_eq(buf_str(&now), f->sent)) {
		buf_done(&now);
		return 0;
	}
	buf_done(&f->text);
	f->text = now;
	f->sent = buf_str(&f->text);
	return broker_send(sock, BROKER_CONF, 0, f->sent, -1);
}

/* Read events away until none came for BROKER_QUIET_MS. */
static void follow_settle(struct follow *f)
{
	_Alignas(struct inotify_event) char events[4096];
	struct pollfd p = { .fd = f->fd, .events = POLLIN };
	unsigned turns = 0;

	do {
		while (read(f->fd, events, sizeof(events)) > 0)
			;
	} while (++turns < BROKER_QUIET_TURNS &&
		 poll(&p, 1, BROKER_QUIET_MS) > 0);
}

/* --- the broker's loop --------------------------------------------------- */

static int broker_answer(int sock, const struct broker_config *config)
{
	CLEANUP(fd_closep) int fd = -1;
	struct broker_head head;
	int fds[FD_PASS_MAX];
	size_t n, nfds, i;
	int err = fd_recv_msg(sock, &head, sizeof(head), &n, fds, &nfds);

	for (i = 0; err == 0 && i < nfds; i++)
		close(fds[i]);
	if (err < 0 || n == 0)
		return -EPIPE;	/* the daemon is gone */
	if (n != sizeof(head) || head.type != BROKER_REOPEN)
		return -EPROTO;
	err = -ENOENT;
	if (config->log_path)
		err = broker_open_log(config->log_path, &fd);
	return broker_send(sock, BROKER_LOG, err, STR_NONE, fd);
}

static void broker_loop(int sock, const struct broker_config *config,
			struct follow *f)
{
	struct pollfd p[] = {
		{ .fd = sock, .events = POLLIN },
		{ .fd = f->fd, .events = POLLIN },
	};
	int wait_ms = BROKER_FIRST_MS, err = 0;

	while (err == 0) {
		int n = poll(p, ARRAY_SIZE(p), wait_ms);

		if (n < 0 && errno != EINTR)
			return;
		if (p[1].revents)
			follow_settle(f);
		if (n == 0 || p[1].revents) {
			err = follow_tell(f, sock);
			wait_ms = -1;
		}
		if (err == 0 && p[0].revents)
			err = broker_answer(sock, config);
	}
}

NORETURN static void broker_main_child(int sock,
				       const struct broker_config *config,
				       struct str known)
{
	struct follow f = {
		.path = config->resolv_conf,
		.sent = known,
		.text = BUF_INIT(BROKER_CONF_MAX),
	};

	/* Nothing of the daemon's but stderr and our end of the pair: no end
	 * of a control connection may outlive it here. */
	if (dup2(sock, STDERR_FILENO + 1) < 0 ||
	    close_range(STDERR_FILENO + 2, ~0u, 0) < 0)
		_exit(1);
	sock = STDERR_FILENO + 1;
	(void)prctl(PR_SET_NAME, "penstock-broker", 0, 0, 0);
	f.fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (f.fd < 0)
		log_error("inotify: %s; changes of %s are not followed",
			  strerror(errno), f.path);
	if (config->drop && config->drop(config->drop_arg) < 0)
		_exit(1);
	broker_loop(sock, config, &f);
	_exit(0);
}

/* --- the daemon's side --------------------------------------------------- */

struct broker {
	int sock;
	struct event *event;
	struct broker_events events;
	void *arg;
};

int broker_fork(const struct broker_config *config, struct str known,
		struct broker **ret)
{
	CLEANUP(fd_closep) int ours = -1;
	CLEANUP(fd_closep) int theirs = -1;
	struct broker *b;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	ours = pair[0];
	theirs = pair[1];
	b = mem_new(sizeof(*b));
	if (!b)
		return -ENOMEM;
	pid = fork();
	if (pid < 0) {
		mem_free(b);
		return -errno;
	}
	if (pid == 0)
		broker_main_child(theirs, config, known);
	b->sock = fd_take(&ours);
	*ret = b;
	return 0;
}

static void broker_lost(struct broker *b)
{
	event_del(b->event);
	fd_closep(&b->sock);
	b->events.on_gone(b->arg);
}

static void broker_on_message(struct broker *b, const struct broker_msg *msg,
			      size_t n, int *fd)
{
	if (n < sizeof(msg->head))
		return;
	if (msg->head.type == BROKER_CONF)
		b->events.on_conf(b->arg, str_make(msg->text,
						   n - sizeof(msg->head)));
	else if (msg->head.type == BROKER_LOG && *fd >= 0)
		b->events.on_log(b->arg, fd_take(fd));
	else if (msg->head.type == BROKER_LOG)
		b->events.on_log(b->arg, msg->head.err < 0 ?
				 msg->head.err : -EPROTO);
}

static void broker_cb(evutil_socket_t sock, short what, void *arg)
{
	struct broker *b = arg;
	struct broker_msg msg;
	int fds[FD_PASS_MAX];
	size_t n = 0, nfds = 0, i;
	int err = fd_recv_msg(sock, &msg, sizeof(msg), &n, fds, &nfds);

	(void)what;
	if (err == -EAGAIN)
		return;
	if (err < 0 || n == 0) {
		broker_lost(b);
		return;
	}
	if (nfds == 0)
		fds[nfds++] = -1;
	broker_on_message(b, &msg, n, &fds[0]);
	for (i = 0; i < nfds; i++)
		fd_closep(&fds[i]);
}

int broker_start(struct broker *b, struct event_base *base,
		 const struct broker_events *events, void *arg)
{
	int err = fd_set_nonblock(b->sock, true);

	if (err < 0)
		return err;
	b->events = *events;
	b->arg = arg;
	b->event = event_new(base, b->sock, EV_READ | EV_PERSIST, broker_cb,
			     b);
	if (!b->event || event_add(b->event, NULL) < 0)
		return -ENOMEM;
	return 0;
}

int broker_reopen(struct broker *b)
{
	static const struct broker_head head = { .type = BROKER_REOPEN };

	if (b->sock < 0)
		return -EPIPE;
	return fd_send_msg(b->sock, &head, sizeof(head), NULL, 0);
}

void broker_free(struct broker *b)
{
	if (!b)
		return;
	if (b->event)
		event_free(b->event);
	fd_closep(&b->sock);
	mem_free(b);
}
