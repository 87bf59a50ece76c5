/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upstreams.c - the resolvers that the workers ask: given, or as resolv.conf says
 */
#include "proxy/upstreams.h"

#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "proxy/host_addrs.h"
#include "proxy/own_doors.h"
#include "proxy/worker.h"

int upstreams_open(struct upstreams *u)
{
	char why[RESOLVER_TLS_WHY_SIZE];
	int err;

	if (!resolver_want_tls(&u->given))
		return 0;
	err = resolver_tls_new(u->tls_ca, &u->tls, why);
	if (err < 0)
		log_error("upstream resolvers: %s", why);
	u->given.tls = u->tls;
	return err;
}

void upstreams_close(struct upstreams *u)
{
	resolver_tls_free(u->tls);
	u->tls = NULL;
}

/* Leave out who is ourselves.  Return: how many */
static size_t upstreams_drop_own(const struct upstreams *u,
				 struct resolver_servers *s)
{
	const struct ip_hosts *hosts = u->hosts ? host_addrs_peek(u->hosts)
						: NULL;
	size_t i, n = 0, was = s->n;

	for (i = 0; i < was; i++)
		if (!own_doors_have(u->doors, hosts, &s->server[i].at.addr,
				    s->server[i].at.port))
			s->server[n++] = s->server[i];
	s->n = n;
	if (n < was)
		log_error("%s: %zu resolvers are listeners of this service: it would ask itself; name others in 'servers' of [dns]",
			  u->path ? u->path : "upstream resolvers", was - n);
	return was - n;
}

static unsigned upstreams_read(const struct upstreams *u, struct str conf,
			       struct resolver_servers *ret)
{
	struct resolver_conf_faults faults;

	resolver_parse_conf(conf, ret, &faults);
	if (faults.bad)
		log_warn("%s: %u nameserver lines are not usable", u->path,
			 faults.bad);
	if (faults.self)
		log_error("%s: %u nameserver lines name addresses that sandboxes are given for names: Penstock would ask itself",
			  u->path, faults.self);
	if (ret->n == 0)
		log_warn("%s names no resolver: until it does, no name is found",
			 u->path);
	return faults.self;
}

int upstreams_start(const struct upstreams *u, struct str conf,
		    struct worker *const *worker, size_t n)
{
	struct resolver_servers servers = u->given;
	int err = 0;

	if (servers.n == 0 && upstreams_read(u, conf, &servers) > 0)
		return -ELOOP;
	if (upstreams_drop_own(u, &servers) > 0)
		return -ELOOP;
	for (size_t i = 0; err == 0 && i < n; i++)
		err = resolver_set_servers(worker[i]->resolver, &servers);
	return err;
}

static void upstreams_set(struct worker *w, void *arg)
{
	struct resolver_servers *s = arg;
	int err = resolver_set_servers(w->resolver, s);

	if (err < 0)
		log_error("worker %u keeps its old resolvers: %s", w->index,
			  strerror(-err));
	mem_free(s);
}

void upstreams_on_conf(const struct upstreams *u, struct str conf,
		       struct worker *const *worker, size_t n)
{
	struct resolver_servers s, *copy;

	/* What leads back to us is left out; the others are asked. */
	(void)upstreams_read(u, conf, &s);
	(void)upstreams_drop_own(u, &s);
	log_info("%s changed: %zu resolvers", u->path, s.n);
	for (size_t i = 0; i < n; i++) {
		copy = mem_new(sizeof(*copy));
		if (copy)
			*copy = s;
		if (!copy || worker_call(worker[i], upstreams_set, copy) < 0) {
			mem_free(copy);
			log_error("worker %zu keeps its old resolvers: out of memory",
				  i);
		}
	}
}
