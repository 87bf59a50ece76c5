/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opts.h - penstockd's command line, and the environment that it heeds
 */
#ifndef PROXY_OPTS_H
#define PROXY_OPTS_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/log.h"
#include "proxy/isolate.h"
#include "proxy/parents.h"
#include "proxy/source.h"
#include "resolver/resolver.h"

struct opts {
	bool private;			/* --private --plug-fd N */
	int plug_fd;
	const char *config;		/* --config FILE */
	bool check;			/* --check: read it and stop */
	bool upgrade;			/* --upgrade: from the one that serves */
	bool has_ids;			/* --uid N --gid N */
	struct isolate_ids ids;
	const char *resolv_conf;	/* --resolv-conf FILE, or NULL */
	struct resolver_servers dns;	/* --dns-server SERVER, each */
	const char *tls_ca;		/* --tls-ca FILE, or NULL */
	struct source source;		/* --source ADDRESS */
	uint32_t mark;			/* --mark N, or 0 */
	struct parents parents;		/* --parent [NAME=]URL, each; the first
					 * is the default */
	bool has_level;
	enum log_level level;		/* --log-level WORD */
	const char *notify_socket;	/* NOTIFY_SOCKET, or NULL */
};

enum opts_result {
	OPTS_RUN,
	OPTS_DONE,	/* --help, --version: said on stdout */
	OPTS_BAD,	/* said on stderr */
};

enum opts_result opts_parse(int argc, char *const *argv, struct opts *ret);

#endif /* PROXY_OPTS_H */
