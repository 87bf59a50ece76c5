/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstreams.h - the resolvers that the workers ask: given, or as resolv.conf says
 *
 * Given ones are all there are: resolv.conf is not read then, nor followed.
 * Never is a resolver asked that nobody configured, and never ourselves.
 */
#ifndef PROXY_UPSTREAMS_H
#define PROXY_UPSTREAMS_H

#include "base/compiler.h"
#include "base/str.h"
#include "resolver/resolver.h"

struct host_addrs;
struct own_doors;
struct worker;

struct upstreams {
	struct resolver_servers given;	/* none: as resolv.conf says */
	const char *path;		/* resolv.conf; NULL when given */
	const char *tls_ca;		/* NULL: the system's certificates */
	const struct own_doors *doors;	/* where we listen ourselves; or NULL */
	const struct host_addrs *hosts;
	struct resolver_tls *tls;	/* by upstreams_open(), when one wants it */
};

/* What must be read from files: before the process gives them up. */
NODISCARD int upstreams_open(struct upstreams *u);
void upstreams_close(struct upstreams *u);	/* after the workers */

/**
 * upstreams_start() - The servers of workers that are not started yet
 * @conf:	text of resolv.conf
 * Return: 0, -ELOOP (a server would be ourselves) or -errno; told on the log
 */
NODISCARD int upstreams_start(const struct upstreams *u, struct str conf,
			      struct worker *const *worker, size_t n);

/* resolv.conf has another text now. */
void upstreams_on_conf(const struct upstreams *u, struct str conf,
		       struct worker *const *worker, size_t n);

#endif /* PROXY_UPSTREAMS_H */
