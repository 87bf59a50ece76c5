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
 *	BROKER_RELOAD	->
 *			<-	BROKER_POLICIES		then, and at each change
 *			<-	BROKER_POLICY + name, descriptor	for each file
 *			<-	BROKER_POLICIES_END
 *
 * The end of the connection ends the broker, whatever ended the daemon.
 *
 * A policy's text travels as a sealed memfd, so that its size does not matter.
 * The broker waits where the daemon does not come to read; a daemon that asks
 * does not wait.
 *
 * Following a file means watching (inotify) the directory of its path, of each
 * symbolic link's target behind it, and the file at the end: editors rename,
 * resolvconf and systemd swap links, containers write through a bind mount,
 * whose directory hears nothing.  A directory is followed in the same way, and
 * hears of the files in it: a link that is swapped there, as Kubernetes does
 * with "..data", is a change like any other.  Where a directory does not exist, the
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
#include "proxy/policies.h"

#define BROKER_LINKS_MAX	8	/* symbolic links in a row */
#define BROKER_WATCHES_MAX	256	/* of a file's way, or all policies' */
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
	BROKER_RELOAD,
	BROKER_POLICIES,
	BROKER_POLICY,
	BROKER_POLICIES_END,
};

struct broker_head {
	uint32_t type;
	int32_t err;
	uint32_t serial;	/* of a RELOAD, and of what answers it */
	uint32_t asked;		/* POLICIES: by a RELOAD */
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
	bool policies;			/* a directory of them */
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

/* The directory of @path, and of each link's target behind it. */
static void follow_add_way(struct follow *f, const char *to)
{
	char path[PATH_MAX];
	int len = snprintf(path, sizeof(path), "%s", to);
	unsigned links;

	if (len < 0 || (size_t)len >= sizeof(path))
		return;
	for (links = 0; links <= BROKER_LINKS_MAX; links++) {
		follow_add_dir_of(f, path);
		if (!follow_link(path))
			break;
	}
	follow_add(f, path);
}

static int follow_add_policy(void *arg, struct str name, const char *path)
{
	char to[2];

	(void)name;
	/* A plain file's directory is watched already. */
	if (readlink(path, to, sizeof(to)) > 0)
		follow_add_way(arg, path);
	return 0;
}

static void follow_set_watches(struct follow *f)
{
	int old[BROKER_WATCHES_MAX];
	size_t i, nold = f->n;

	memcpy(old, f->watch, sizeof(old));
	f->n = 0;
	follow_add_way(f, f->path);
	/* One that cannot be listed is told of when it is read. */
	if (f->policies)
		(void)!policies_list(f->path, follow_add_policy, f);
	for (i = 0; i < nold; i++)
		if (!follow_has(f->watch, f->n, old[i]))
			(void)inotify_rm_watch(f->fd, old[i]);
}

static int broker_send(int sock, const struct broker_head *head,
		       struct str text, int fd)
{
	struct broker_msg msg;

	msg.head = *head;
	text.n = MIN(text.n, sizeof(msg.text));
	if (text.n)
		memcpy(msg.text, text.p, text.n);
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
	return broker_send(sock, &(struct broker_head){ .type = BROKER_CONF },
			   f->sent, -1);
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

/* --- policies ------------------------------------------------------------ */

static int policy_send(void *arg, const struct policy_file *file)
{
	CLEANUP(fd_closep) int fd = -1;
	struct broker_head head = { .type = BROKER_POLICY, .err = file->err };
	const int *sock = arg;

	if (head.err == 0)
		head.err = fd_memfd("policy", file->text, &fd);
	return broker_send(*sock, &head, file->name, fd);
}

/* Watches are set before files are read: what changes meanwhile is seen. */
static int policies_send(struct follow *f, int sock, uint32_t serial,
			 bool asked)
{
	struct broker_head head = {
		.type = BROKER_POLICIES, .serial = serial, .asked = asked,
	};
	int err;

	follow_set_watches(f);
	err = broker_send(sock, &head, STR_NONE, -1);
	if (err < 0)
		return err;
	head.type = BROKER_POLICIES_END;
	head.err = policies_read(f->path, policy_send, &sock);
	if (head.err == -EPIPE || head.err == -ECONNRESET)
		return head.err;
	return broker_send(sock, &head, STR_NONE, -1);
}

/* --- the broker's loop --------------------------------------------------- */

struct broker_own {
	const struct broker_config *config;
	int sock;
	struct follow conf, policies;	/* .fd -1: not followed */
	uint32_t serial;		/* of the last RELOAD */
};

static int broker_answer(struct broker_own *o)
{
	CLEANUP(fd_closep) int fd = -1;
	struct broker_head head;
	int fds[FD_PASS_MAX];
	size_t n, nfds, i;
	int err = fd_recv_msg(o->sock, &head, sizeof(head), &n, fds, &nfds);

	for (i = 0; err == 0 && i < nfds; i++)
		close(fds[i]);
	if (err < 0 || n == 0)
		return -EPIPE;	/* the daemon is gone */
	if (n == sizeof(head) && head.type == BROKER_RELOAD &&
	    o->config->policies) {
		o->serial = head.serial;
		return policies_send(&o->policies, o->sock, o->serial, true);
	}
	if (n != sizeof(head) || head.type != BROKER_REOPEN)
		return -EPROTO;
	err = -ENOENT;
	if (o->config->log_path)
		err = broker_open_log(o->config->log_path, &fd);
	return broker_send(o->sock, &(struct broker_head){
			   .type = BROKER_LOG, .err = err }, STR_NONE, fd);
}

static void broker_loop(struct broker_own *o)
{
	struct pollfd p[] = {
		{ .fd = o->sock, .events = POLLIN },
		{ .fd = o->conf.fd, .events = POLLIN },
		{ .fd = o->policies.fd, .events = POLLIN },
	};
	int wait_ms = BROKER_FIRST_MS, err = 0;

	if (o->config->policies)
		follow_set_watches(&o->policies);
	while (err == 0) {
		int n = poll(p, ARRAY_SIZE(p), wait_ms);

		if (n < 0 && errno != EINTR)
			return;
		if (p[1].revents)
			follow_settle(&o->conf);
		if (!o->config->resolv_conf)
			wait_ms = -1;
		else if (n == 0 || p[1].revents) {
			err = follow_tell(&o->conf, o->sock);
			wait_ms = -1;
		}
		if (err == 0 && p[2].revents) {
			follow_settle(&o->policies);
			err = policies_send(&o->policies, o->sock, o->serial,
					    false);
		}
		if (err == 0 && p[0].revents)
			err = broker_answer(o);
	}
}

static int follow_open(const char *path)
{
	int fd = path ? inotify_init1(IN_CLOEXEC | IN_NONBLOCK) : -1;

	if (path && fd < 0)
		log_error("inotify: %s; changes of %s are not followed",
			  strerror(errno), path);
	return fd;
}

NORETURN static void broker_main_child(int sock,
				       const struct broker_config *config,
				       struct str known)
{
	struct broker_own o = {
		.config = config,
		.sock = STDERR_FILENO + 1,
		.conf = { .path = config->resolv_conf, .sent = known,
			  .text = BUF_INIT(BROKER_CONF_MAX) },
		.policies = { .path = config->policies, .policies = true },
	};

	/* Nothing of the daemon's but stderr and our end of the pair: no end
	 * of a control connection may outlive it here. */
	if (dup2(sock, o.sock) < 0 || close_range(o.sock + 1, ~0u, 0) < 0)
		_exit(1);
	(void)prctl(PR_SET_NAME, "penstock-broker", 0, 0, 0);
	o.conf.fd = follow_open(config->resolv_conf);
	o.policies.fd = follow_open(config->policies);
	if (config->drop && config->drop(config->drop_arg) < 0)
		_exit(1);
	broker_loop(&o);
	_exit(0);
}

/* --- the daemon's side --------------------------------------------------- */

struct broker {
	int sock;
	bool has_policies;
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
	b->has_policies = config->policies;
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
	const struct broker_head *head = &msg->head;
	const struct broker_events *on = &b->events;
	struct str text;

	if (n < sizeof(*head))
		return;
	text = str_make(msg->text, n - sizeof(*head));
	switch (head->type) {
	case BROKER_CONF:
		on->on_conf(b->arg, text);
		break;
	case BROKER_LOG:
		on->on_log(b->arg, *fd >= 0 ? fd_take(fd) :
			   head->err < 0 ? head->err : -EPROTO);
		break;
	case BROKER_POLICIES:
		on->on_policies(b->arg, head->asked);
		break;
	case BROKER_POLICY:
		on->on_policy(b->arg, text, *fd >= 0 ? 0 :
			      head->err < 0 ? head->err : -EPROTO, *fd);
		break;
	case BROKER_POLICIES_END:
		on->on_policies_end(b->arg, head->serial, head->err);
		break;
	default:
		break;
	}
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

void broker_pause(struct broker *b)
{
	event_del(b->event);
}

void broker_resume(struct broker *b)
{
	if (b->sock >= 0 && event_add(b->event, NULL) < 0)
		broker_lost(b);
}

static int broker_ask(struct broker *b, const struct broker_head *head)
{
	if (b->sock < 0)
		return -EPIPE;
	return fd_send_msg(b->sock, head, sizeof(*head), NULL, 0);
}

int broker_reopen(struct broker *b)
{
	return broker_ask(b, &(struct broker_head){ .type = BROKER_REOPEN });
}

int broker_reload(struct broker *b, uint32_t serial)
{
	if (!b->has_policies)
		return -ENOENT;
	return broker_ask(b, &(struct broker_head){
			  .type = BROKER_RELOAD, .serial = serial });
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
