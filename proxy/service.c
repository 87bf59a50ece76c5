/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.c - what a service opens at its start: configuration, socket, policies
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/log.h"
#include "proxy/plug_check.h"
#include "proxy/service.h"
#include "proxy/takeover.h"
#include "rules/rules_bundle.h"

#define SERVICE_BACKLOG		128

static int service_read_file(int dir, const char *path, struct buf *out)
{
	CLEANUP(fd_closep) int fd = openat(dir, path, O_RDONLY | O_CLOEXEC |
					   O_NONBLOCK | O_NOCTTY);

	return fd < 0 ? -errno : fd_read_all(fd, out);
}

/* --- configuration ----------------------------------------------------------- */

static void service_on_error(void *arg, const struct config_place *place,
			     const char *message)
{
	const char *path = arg;

	if (place->column)
		log_error("%s:%u:%u: %s", path, place->line, place->column,
			  message);
	else if (place->line)
		log_error("%s:%u: %s", path, place->line, message);
	else
		log_error("%s: %s", path, message);
}

int service_read_config(const char *path, struct service *ret)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CONFIG_FILE_MAX);
	struct service s = { .path = path, .listen_fd = -1 };
	char shown[256];
	int err = service_read_file(AT_FDCWD, path, &text);

	if (err < 0) {
		log_error("%s: %s", path, strerror(-err));
		return err;
	}
	/* The callback takes no const: it gets a copy. */
	memcpy(shown, path, MIN(strlen(path) + 1, sizeof(shown)));
	shown[sizeof(shown) - 1] = '\0';
	err = config_parse(buf_str(&text), service_on_error, shown,
			   &s.config);
	if (err == -ENOMEM)
		log_error("%s: out of memory", path);
	if (err < 0)
		return err;
	err = parents_read_logins(&s.config.parents);
	if (err < 0) {
		config_done(&s.config);
		return err;
	}
	*ret = s;
	return 0;
}

/* --- policies -------------------------------------------------------------------- */

static int service_on_policy(void *arg, const struct policy_file *file)
{
	struct service *s = arg;
	struct policy *policy;
	struct plug_why why;
	int err;

	if (file->err < 0) {
		log_error("%s: %s", file->path, strerror(-file->err));
		return file->err;
	}
	err = policies_take(&s->policies, file, false, &policy, &why);
	if (err < 0)
		log_error("%s", why.text);
	return MIN(err, 0);
}

/* Each listener's policy must be there when it begins. */
static int service_check_listens(const struct service *s)
{
	const struct config *c = &s->config;
	int err = 0;
	size_t i;

	for (i = 0; i < c->nlistens; i++) {
		const struct config_listen *l = &c->listen[i];

		if (policies_find(&s->policies, str_from(l->policy)))
			continue;
		err = -EINVAL;
		log_error("%s:%u:%u: [listen %s] has the policy '%s', and there is no %s/%s" POLICIES_ENDING,
			  s->path, l->policy_place.line,
			  l->policy_place.column, l->name, l->policy,
			  c->policies, l->policy);
	}
	return err;
}

int service_load_policies(struct service *s)
{
	const char *dir = s->config.policies;
	struct stat st;
	int err;

	if (!dir)
		return 0;
	s->policies.parents = &s->config.parents;
	/* What is wrong with a file was said. */
	if (stat(dir, &st) < 0) {
		err = -errno;
		log_error("%s: %s", dir, strerror(-err));
		return err;
	}
	err = policies_read(dir, service_on_policy, s);
	return err < 0 ? err : service_check_listens(s);
}

static void service_on_warning(void *arg, const struct rules_diag *diag)
{
	(void)arg;
	if (diag->severity != RULES_WARNING)
		return;
	if (diag->line)
		log_warn("%s:%u: %s", diag->file, diag->line, diag->message);
	else
		log_warn("%s: %s", diag->file, diag->message);
}

void service_warn_of_policies(const struct service *s)
{
	for (size_t i = 0; i < s->policies.n; i++) {
		CLEANUP(rules_unrefp) struct ruleset *rules = NULL;
		const struct policy *p = &s->policies.policy[i];
		char path[PATH_MAX];
		int n = snprintf(path, sizeof(path), "%s/%s" POLICIES_ENDING,
				 s->config.policies, p->name);

		if (n < 0 || (size_t)n >= sizeof(path))
			continue;
		/* It was compiled before: only memory could be missing now. */
		if (rules_compile_text(p->text, path, service_on_warning, NULL,
				       &rules) < 0)
			log_warn("%s: out of memory", path);
	}
}

/* --- the plug socket ---------------------------------------------------------------- */

static int service_addr(const char *path, struct sockaddr_un *ret)
{
	size_t n = strlen(path);

	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (n >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	memcpy(ret->sun_path, path, n);
	return 0;
}

/* Remove a socket that no process listens on any more. */
static int service_remove_stale(const struct sockaddr_un *at)
{
	CLEANUP(fd_closep) int fd = -1;
	struct stat st;

	if (lstat(at->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 ||
	    errno != ECONNREFUSED)
		return -EADDRINUSE;
	return unlink(at->sun_path) < 0 ? -errno : 0;
}

static int service_bind(const struct sockaddr_un *at, int *ret_fd)
{
	CLEANUP(fd_closep) int fd = -1;
	mode_t before;
	int err;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* Anyone may knock; SO_PEERCRED decides who is let in. */
	before = umask(0111);
	err = bind(fd, (const struct sockaddr *)at, sizeof(*at)) < 0
		? -errno : 0;
	umask(before);
	if (err == 0 && listen(fd, SERVICE_BACKLOG) < 0)
		err = -errno;
	if (err == 0)
		*ret_fd = fd_take(&fd);
	return err;
}

int service_listen(struct service *s, size_t nworkers)
{
	struct sockaddr_un at;
	int err = service_addr(s->config.plug, &at);

	if (err == 0)
		err = service_remove_stale(&at);
	if (err == -EADDRINUSE)
		log_error("%s: another penstockd is serving it", s->config.plug);
	else if (err == -EEXIST)
		log_error("%s: there is a file that is no socket",
			  s->config.plug);
	if (err == 0)
		err = service_bind(&at, &s->listen_fd);
	if (err < 0 && err != -EADDRINUSE && err != -EEXIST)
		log_error("%s: %s%s", s->config.plug, strerror(-err),
			  err == -ENOENT || err == -EACCES ? ": make its directory, writable by the service's user (RuntimeDirectory= in the unit)" : "");
	return err < 0 ? err : host_socks_open(&s->config, nworkers,
					       &s->socks);
}

int service_take(struct service *s, size_t nworkers, struct takeover *t)
{
	int err = takeover_begin(t, s->config.plug);

	if (err < 0)
		return err;
	s->listen_fd = fd_take(&t->plug_fd);
	return host_socks_open_with(&s->config, nworkers, &t->sockets,
				    &s->socks);
}

void service_done(struct service *s)
{
	host_socks_done(&s->socks);
	policies_done(&s->policies);
	config_done(&s->config);
	fd_closep(&s->listen_fd);
}
