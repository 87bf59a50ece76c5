/* SPDX-License-Identifier: Apache-2.0 */
/*
 * takeover.c - this process takes the service of one before over
 *
 * The other half of handover.c, and a plain one: it happens while this process
 * starts, before anything is served, so that it waits for each message in turn.
 * There is nothing to undo.  Until SERVING was said, everything is the other
 * one's, and all that is to be done when something fails is to end.
 *
 * It is asked early (takeover_begin()), since what it has open need not be
 * opened; and for the rest only when this process has opened, forked, dropped
 * and sealed all that it needs, so that nothing rests while that goes on, or for
 * a process that would fail.
 */
#include "proxy/takeover.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/handover_proto.h"
#include "proxy/host_listen.h"
#include "proxy/plug.h"
#include "proxy/plug_check.h"

void takeover_init(struct takeover *t)
{
	*t = (struct takeover){
		.line = -1, .plug_fd = -1, .stderr_fd = -1, .notify_fd = -1,
	};
}

void takeover_done(struct takeover *t)
{
	while (t->sockets.n > 0)
		fd_closep(&t->sockets.sock[--t->sockets.n].fd);
	mem_free(t->sockets.sock);
	fd_closep(&t->line);
	fd_closep(&t->plug_fd);
	fd_closep(&t->stderr_fd);
	fd_closep(&t->notify_fd);
	takeover_init(t);
}

void takeover_cgroup(char *ret, size_t size)
{
	CLEANUP(fd_closep) int fd = open("/proc/self/cgroup",
					 O_RDONLY | O_CLOEXEC);
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
	struct str rest, line;

	ret[0] = '\0';
	if (fd < 0 || fd_read_all(fd, &text) < 0)
		return;
	rest = buf_str(&text);
	/* The unified hierarchy; a machine without it has no such line. */
	while (str_cut(&rest, '\n', &line)) {
		if (!str_starts(line, STR("0::")) || line.n - 3 >= size)
			continue;
		memcpy(ret, line.p + 3, line.n - 3);
		ret[line.n - 3] = '\0';
	}
}

/* --- one message ------------------------------------------------------------------- */

struct message {
	union handover_msg m;
	int fd[FD_PASS_MAX];
	size_t nfds;
	char bytes[sizeof(union handover_msg) + 1];
};

static void drop_fds(struct message *in)
{
	while (in->nfds > 0)
		fd_closep(&in->fd[--in->nfds]);
}

static int failed(const struct takeover *t, const char *why)
{
	union handover_msg m;
	size_t n = handover_begin(HANDOVER_FAILED, &m);

	log_error("%s: cannot take the service over: %s", t->path, why);
	(void)!snprintf(m.failed.text, sizeof(m.failed.text), "%s", why);
	(void)!fd_send_msg(t->line, &m, n, NULL, 0);
	return -EPROTO;
}

static int gone(const struct takeover *t, int err)
{
	log_error("%s: cannot take the service over: the penstockd that has it %s",
		  t->path, err == -ETIMEDOUT ? "did not answer in time" :
		  err == -EPROTO || err == 0 ? "has hung up: its log says why" :
		  strerror(-err));
	return err < 0 ? err : -ECONNRESET;
}

/* @until_ms by the clock; Return: enum handover_type or -errno, was said */
static int hear(struct takeover *t, struct message *in, int64_t until_ms)
{
	struct pollfd p = { .fd = t->line, .events = POLLIN };
	struct plug_why why;
	size_t n = 0;
	int left, type, err;

	do {
		left = (int)MAX(until_ms - clock_mono_ms(), (int64_t)0);
		err = poll(&p, 1, left);
	} while (err < 0 && errno == EINTR);
	if (err <= 0)
		return gone(t, err < 0 ? -errno : -ETIMEDOUT);
	in->nfds = 0;
	err = fd_recv_msg(t->line, in->bytes, sizeof(in->bytes), &n, in->fd,
			  &in->nfds);
	if (err < 0 || n == 0)
		return gone(t, err);
	if (!handover_speaks(str_make(in->bytes, n)))
		return failed(t, "the penstockd that has it is too old to be replaced like this: stop it and start the new one; its runs end by that");
	type = handover_parse(str_make(in->bytes, n), in->nfds, &in->m, &why);
	if (type == HANDOVER_FAILED) {
		log_error("%s: cannot take the service over: %s", t->path,
			  in->m.failed.text);
		type = -EPROTO;
	} else if (type < 0) {
		(void)failed(t, why.text);
	}
	if (type < 0)
		drop_fds(in);
	return type;
}

static int say(struct takeover *t, enum handover_type type)
{
	union handover_msg m;
	size_t n = handover_begin(type, &m);
	int err;

	if (type == HANDOVER_HELLO)
		m.hello.plug_version = PLUG_VERSION;
	err = fd_send_msg(t->line, &m, n, NULL, 0);
	return err < 0 ? gone(t, err) : 0;
}

static int expect(struct takeover *t, struct message *in,
		  enum handover_type wanted, int64_t until_ms)
{
	int type = hear(t, in, until_ms);

	if (type < 0 || type == (int)wanted)
		return MIN(type, 0);
	drop_fds(in);
	return failed(t, "it said something that does not come now");
}

/* --- the offer ------------------------------------------------------------------------ */

static int connect_to(struct takeover *t, const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	int err = 0;

	if (n >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	memcpy(at.sun_path, path, n);
	t->line = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (t->line < 0 ||
	    connect(t->line, (struct sockaddr *)&at, sizeof(at)) < 0)
		err = -errno;
	return err;
}

/* The last part of a unit's control group, where it is one. */
static const char *unit_of(const char *cgroup)
{
	const char *slash = strrchr(cgroup, '/');
	struct str name = str_from(slash ? slash + 1 : "");

	return str_ends(name, STR(".service")) ? name.p : NULL;
}

/* A service manager takes nothing for its service that runs elsewhere. */
static int check_place(const struct takeover *t, const char *theirs)
{
	char ours[HANDOVER_CGROUP_MAX], why[PLUG_TEXT_MAX];

	takeover_cgroup(ours, sizeof(ours));
	if (t->notify_fd < 0 || !theirs[0] || strcmp(ours, theirs) == 0)
		return 0;
	(void)!snprintf(why, sizeof(why), "a service manager runs it, in %.200s, and would not know this process: type 'systemctl reload %.100s'",
			theirs, unit_of(theirs) ? unit_of(theirs) :
			"UNIT");
	return failed(t, why);
}

/* Is it the listening socket of a plug? */
static bool is_plug(int fd)
{
	int type = 0, listens = 0;
	socklen_t n = sizeof(type), m = sizeof(listens);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &m) == 0 &&
	       type == SOCK_SEQPACKET && listens == 1;
}

static int take_socket(struct takeover *t, struct message *in)
{
	const struct handover_socket *m = &in->m.socket;
	struct host_handed *h = &t->sockets.sock[t->sockets.n];

	*h = (struct host_handed){
		.role = (enum sandbox_role)m->role, .worker = m->worker,
		.at = m->at, .fd = in->fd[0],
	};
	in->nfds = 0;
	t->sockets.n++;
	if (host_handed_check(h) < 0)
		return failed(t, "a socket of a listener is not what it is said to be");
	return 0;
}

static int take_offer(struct takeover *t, struct message *in)
{
	uint32_t left = in->m.offer.sockets;
	int64_t until_ms = clock_mono_ms() + TAKEOVER_WAIT_MS;
	int err;

	t->plug_fd = in->fd[HANDOVER_FD_PLUG];
	t->stderr_fd = in->fd[HANDOVER_FD_STDERR];
	if (in->nfds > HANDOVER_FD_NOTIFY)
		t->notify_fd = in->fd[HANDOVER_FD_NOTIFY];
	in->nfds = 0;
	if (!is_plug(t->plug_fd))
		return failed(t, "what it has is no plug");
	err = check_place(t, in->m.offer.cgroup);
	if (err == 0 && left > 0) {
		t->sockets.sock = mem_new_array(left, sizeof(struct host_handed));
		if (!t->sockets.sock)
			err = failed(t, "out of memory");
	}
	for (; err == 0 && left > 0; left--) {
		err = expect(t, in, HANDOVER_SOCKET, until_ms);
		if (err == 0)
			err = take_socket(t, in);
	}
	return err;
}

static struct message *message_new(const struct takeover *t)
{
	struct message *in = mem_new(sizeof(*in));

	if (!in)
		log_error("%s: out of memory", t->path);
	return in;
}

int takeover_begin(struct takeover *t, const char *path)
{
	struct message *in;
	int err = connect_to(t, path);

	t->path = path;
	if (err < 0) {
		log_error("%s: %s%s", path, strerror(-err),
			  err == -ENOENT || err == -ECONNREFUSED ?
			  ": no penstockd serves it, so that there is nothing to take over: start the service instead (another 'plug' in [service] needs a restart too)" :
			  err == -EACCES ? ": be root, or the service's user" :
			  "");
		return err;
	}
	in = message_new(t);
	if (!in)
		return -ENOMEM;
	err = say(t, HANDOVER_HELLO);
	if (err == 0)
		err = expect(t, in, HANDOVER_OFFER,
			     clock_mono_ms() + TAKEOVER_WAIT_MS);
	if (err == 0)
		err = take_offer(t, in);
	mem_free(in);
	return err;
}

/* --- everything ------------------------------------------------------------------------ */

struct taking {
	struct takeover *t;
	struct plug *plug;
	struct host_listens *listens;
	struct message *in;
	struct plug_conn *conn;		/* the last RUN, or NULL */
	bool part;			/* a PART came last */
	struct handover_part last;
	size_t runs;
	int conns[PLUG_CONNS_MAX];	/* without a run, yet */
	size_t nconns;
	struct plug_why why;
};

static int take_state(struct taking *g)
{
	const struct handover_state *m = &g->in->m.state;
	struct str bytes = str_make((const char *)m->bytes, m->n);

	if (g->conn)
		return plug_adopt_state(g->conn, bytes, &g->why);
	if (g->part)
		return host_listens_adopt_state(g->listens, &g->last, bytes,
						&g->why);
	return plug_refuse(&g->why, "state of nobody came");
}

static int take_run(struct taking *g)
{
	g->in->nfds = 0;
	g->part = false;
	g->runs++;
	return plug_adopt(g->plug, &g->in->m.run, g->in->fd, &g->conn,
			  &g->why);
}

static int take_conn(struct taking *g)
{
	if (g->nconns == ARRAY_SIZE(g->conns))
		return plug_refuse(&g->why, "too many connections");
	g->conns[g->nconns++] = g->in->fd[0];
	g->in->nfds = 0;
	return 0;
}

/* Return: 0, or -EPROTO with g->why */
static int take_one(struct taking *g, int type)
{
	struct message *in = g->in;

	switch (type) {
	case HANDOVER_RUN:
		return take_run(g);
	case HANDOVER_STATE:
		return take_state(g);
	case HANDOVER_CONN:
		return take_conn(g);
	case HANDOVER_PART:
		g->conn = NULL;
		g->part = true;
		g->last = in->m.part;
		return 0;
	case HANDOVER_PRED:
		in->nfds = 0;
		return plug_adopt_pred(g->plug, in->fd[0], in->m.pred.index,
				       &g->why);
	case HANDOVER_TAIL:
		if (!g->conn)
			return plug_refuse(&g->why, "a tail of nobody came");
		in->nfds = 0;
		return plug_adopt_tail(g->conn, &in->m.tail, in->fd[0],
				       &g->why);
	default:
		return plug_refuse(&g->why, "it said something that does not come now");
	}
}

static int take_all(struct taking *g)
{
	int64_t until_ms = clock_mono_ms() + TAKEOVER_WAIT_MS;
	int type, err = 0;

	while (err == 0) {
		type = hear(g->t, g->in, until_ms);
		if (type < 0)
			return type;
		if (type == HANDOVER_TOLD)
			return 0;
		err = take_one(g, type);
		drop_fds(g->in);
	}
	return failed(g->t, g->why.text);
}

/* From here on it is ours. */
static int serve(struct taking *g)
{
	size_t i;
	int err = plug_adopt_pred(g->plug, fd_take(&g->t->line), 0, &g->why);

	if (err == 0)
		err = plug_adopt_go(g->plug);
	if (err < 0)
		log_error("%s: out of memory: some of what was taken over is lost",
			  g->t->path);
	for (i = 0; i < g->nconns; i++)
		if (plug_attach(g->plug, g->conns[i]) < 0)
			log_error("%s: a plug is lost: out of memory",
				  g->t->path);
	log_info("%s: taken over: runs: %zu", g->t->path, g->runs);
	return 0;
}

static int take(struct taking *g)
{
	int err = say(g->t, HANDOVER_TAKE);

	if (err == 0)
		err = take_all(g);
	if (err == 0)
		err = say(g->t, HANDOVER_READY);
	if (err == 0)
		err = expect(g->t, g->in, HANDOVER_COMMIT,
			     clock_mono_ms() + TAKEOVER_WAIT_MS);
	if (err == 0)
		err = say(g->t, HANDOVER_SERVING);
	return err < 0 ? err : serve(g);
}

int takeover_take(struct takeover *t, struct plug *p, struct host_listens *h)
{
	struct taking *g = mem_new(sizeof(*g));
	int err = -ENOMEM;

	if (!g)
		return failed(t, "out of memory");
	g->t = t;
	g->plug = p;
	g->listens = h;
	g->in = message_new(t);
	if (g->in)
		err = take(g);
	mem_free(g->in);
	mem_free(g);
	return err;
}
