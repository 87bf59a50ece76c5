/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover.c - starting or finding penstockd, and giving it a sandbox
 */
#include "netns-setup/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "netns-setup/fault.h"

#define PLUG_CHILD_FD	3
#define NUMBER_TEXT	16
#define ARGS_MAX	64	/* of penstockd, with the NULL at the end */

static int spawn_actions(posix_spawn_file_actions_t *a, int plug, int login)
{
	int last = login ? LAUNCH_LOGIN_FD : PLUG_CHILD_FD;
	int e = posix_spawn_file_actions_addopen(a, 0, "/dev/null", O_RDWR, 0);

	if (!e)
		e = posix_spawn_file_actions_adddup2(a, 2, 1);
	if (!e)
		e = posix_spawn_file_actions_adddup2(a, plug, PLUG_CHILD_FD);
	if (!e && login)
		e = posix_spawn_file_actions_adddup2(a, login,
						     LAUNCH_LOGIN_FD);
	if (!e)
		e = posix_spawn_file_actions_addclosefrom_np(a, last + 1);
	return e;
}

/* Its own session: the terminal's Ctrl-C is not meant for it. */
static int spawn_attributes(posix_spawnattr_t *a)
{
	sigset_t all, none;
	int e;

	sigfillset(&all);
	sigemptyset(&none);
	e = posix_spawnattr_setflags(a, POSIX_SPAWN_SETSID |
				     POSIX_SPAWN_SETSIGMASK |
				     POSIX_SPAWN_SETSIGDEF);
	if (!e)
		e = posix_spawnattr_setsigmask(a, &none);
	if (!e)
		e = posix_spawnattr_setsigdefault(a, &all);
	return e;
}

static int spawn(const struct launch_spec *spec, const char *const argv[ARGS_MAX],
		 int plug, pid_t *ret_pid)
{
	static char *const nothing[] = { NULL };
	char *const *env = spec->daemon_env ? spec->daemon_env : nothing;
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char *words[ARGS_MAX];		/* @argv, of a type without const */
	int e = posix_spawn_file_actions_init(&actions);

	if (e)
		return -e;
	memcpy(words, argv, sizeof(words));
	e = posix_spawnattr_init(&attributes);
	if (!e) {
		e = spawn_actions(&actions, plug, spec->login_fd);
		if (!e)
			e = spawn_attributes(&attributes);
		if (!e)
			e = posix_spawn(ret_pid, spec->daemon_path, &actions,
					&attributes, words, env);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return -e;
}

int handover_spawn(const struct launch_spec *spec, uint32_t id, int *ret_plug,
		   pid_t *ret_pid, struct launch_error *err)
{
	char number[NUMBER_TEXT];
	const char *argv[ARGS_MAX] = { "penstockd", "--private", "--plug-fd",
				       "3" };
	size_t args = 4;
	int pair[2], e, n;

	n = snprintf(number, sizeof(number), "%u", id);
	if (n < 0 || n >= NUMBER_TEXT)
		return fault(err, ENAMETOOLONG, "cannot name the daemon's id");
	if (id) {
		argv[args++] = "--uid";
		argv[args++] = number;
		argv[args++] = "--gid";
		argv[args++] = number;
	}
	for (size_t i = 0; spec->dns && spec->dns[i]; i++) {
		if (args + 4 >= ARGS_MAX)
			return fault(err, E2BIG, "cannot ask so many resolvers");
		argv[args++] = "--dns-server";
		argv[args++] = spec->dns[i];
	}
	if (spec->dns_ca) {
		argv[args++] = "--tls-ca";
		argv[args++] = spec->dns_ca;
	}
	for (size_t i = 0; spec->daemon_words && spec->daemon_words[i]; i++) {
		if (args + 1 >= ARGS_MAX)
			return fault(err, E2BIG, "too many parents");
		argv[args++] = spec->daemon_words[i];
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return fault(err, errno, "cannot make a plug");
	e = spawn(spec, argv, pair[1], ret_pid);
	close(pair[1]);
	if (e) {
		close(pair[0]);
		fault(err, -e, "cannot start %s", spec->daemon_path);
		if (e == -ENOENT)
			fault_mend(err, "Penstock is not installed whole: "
				   "penstockd belongs beside penstock or in "
				   "../sbin of it.");
		return e;
	}
	*ret_plug = pair[0];
	return 0;
}

int handover_connect(const char *path, int *ret_plug, struct launch_error *err)
{
	CLEANUP(fd_closep) int fd = -1;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t n = strlen(path);
	int e;

	if (n >= sizeof(a.sun_path))
		return fault(err, ENAMETOOLONG, "cannot use the plug %s", path);
	memcpy(a.sun_path, path, n);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return fault(err, errno, "cannot make a plug");
	if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) == -1) {
		e = fault(err, errno, "cannot reach the service at %s", path);
		fault_mend(err, "Start it (systemctl start penstockd), or use "
			   "--private for a daemon of this run's own.");
		return e;
	}
	*ret_plug = fd_take(&fd);
	return 0;
}

static int copy_text(char *to, size_t cap, const char *from)
{
	size_t n = from ? strlen(from) : 0;

	if (n >= cap)
		return -ENAMETOOLONG;
	memcpy(to, from ? from : "", n);
	return 0;
}

static int fill_open(struct plug_open *o, const struct launch_spec *spec,
		     const char *nonce)
{
	int e = copy_text(o->run, sizeof(o->run), spec->run_id);

	if (!e)
		e = copy_text(o->sandbox, sizeof(o->sandbox), spec->hostname);
	if (!e)
		e = copy_text(o->nonce, sizeof(o->nonce), nonce);
	if (!e)
		e = copy_text(o->policy, sizeof(o->policy), spec->policy_name);
	return e;
}

int handover_open(int plug, const struct launch_spec *spec,
		  const struct handover *h, struct launch_error *err)
{
	CLEANUP(fd_closep) int policy = -1;
	struct plug_open o = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_OPEN },
		.fds = h->bits | BIT(PLUG_FD_RECORDS),
		.flags = h->flags | (spec->observe ? PLUG_FLAG_OBSERVE : 0),
	};
	int fds[PLUG_FDS], e = fill_open(&o, spec, h->nonce);
	size_t n = 0;

	if (e || h->nsockets > PLUG_FDS - 2)
		return fault(err, -e, "a name of the run is too long");
	if (!spec->policy_name) {
		e = fd_memfd("policy", spec->policy_text, &policy);
		if (e)
			return fault(err, -e, "cannot pass the policy on");
		fds[n++] = policy;
		o.fds |= BIT(PLUG_FD_POLICY);
	}
	fds[n++] = spec->records_fd;
	memcpy(fds + n, h->socket, h->nsockets * sizeof(int));
	n += h->nsockets;
	e = fd_send_msg(plug, &o, sizeof(o), fds, n);
	if (e)
		return fault(err, -e, "cannot hand the sandbox to penstockd");
	return 0;
}

static size_t size_of(uint16_t type)
{
	switch (type) {
	case PLUG_READY:
		return sizeof(struct plug_ready);
	case PLUG_REFUSED:
		return sizeof(struct plug_refused);
	case PLUG_CLOSED:
		return sizeof(struct plug_closed);
	case PLUG_SWAPPED:
		return sizeof(struct plug_swapped);
	default:
		return 0;
	}
}

static void end_text(char *text, size_t cap)
{
	text[cap - 1] = '\0';
}

int handover_read(int plug, union handover_msg *ret)
{
	union handover_msg m;
	int fds[FD_PASS_MAX], e;
	size_t n, nfds;

	memset(&m, 0, sizeof(m));
	e = fd_recv_msg(plug, &m, sizeof(m), &n, fds, &nfds);
	if (e)
		return e == -ECONNRESET ? -EPIPE : e;
	while (nfds > 0)
		close(fds[--nfds]);
	if (n == 0)
		return -EPIPE;
	if (n < sizeof(m.head) || m.head.magic != PLUG_MAGIC ||
	    m.head.version != PLUG_VERSION || n != size_of(m.head.type))
		return -EPROTO;
	if (m.head.type == PLUG_READY) {
		end_text(m.ready.digest, sizeof(m.ready.digest));
		end_text(m.ready.name, sizeof(m.ready.name));
	} else if (m.head.type == PLUG_REFUSED) {
		end_text(m.refused.text, sizeof(m.refused.text));
	} else if (m.head.type == PLUG_SWAPPED) {
		end_text(m.swapped.digest, sizeof(m.swapped.digest));
		end_text(m.swapped.name, sizeof(m.swapped.name));
		end_text(m.swapped.text, sizeof(m.swapped.text));
	}
	*ret = m;
	return 0;
}

void handover_label(const char *name, const char *digest,
		    char out[LAUNCH_POLICY_MAX])
{
	struct buf label = BUF_INIT(LAUNCH_POLICY_MAX - 1);

	if (!buf_printf(&label, "%s@sha256:%s", name, digest)) {
		memcpy(out, label.p, label.n);
		out[label.n] = '\0';
	}
	buf_done(&label);
}

int handover_swap(int plug, uint32_t serial, int policy_fd)
{
	const struct plug_swap m = {
		.head = { PLUG_MAGIC, PLUG_VERSION, PLUG_SWAP },
		.serial = serial,
	};

	return fd_send_msg(plug, &m, sizeof(m), &policy_fd, 1);
}

int handover_close(int plug)
{
	const struct plug_head m = { PLUG_MAGIC, PLUG_VERSION, PLUG_CLOSE };

	return fd_send_msg(plug, &m, sizeof(m), NULL, 0);
}
