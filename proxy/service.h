/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.h - what a service opens at its start: configuration, socket, policies
 */
#ifndef PROXY_SERVICE_H
#define PROXY_SERVICE_H

#include <stddef.h>

#include "base/compiler.h"
#include "proxy/config.h"
#include "proxy/host_sock.h"
#include "proxy/policies.h"

struct takeover;

struct service {
	const char *path;		/* of the configuration; for messages */
	struct config config;
	struct policies policies;
	int listen_fd;
	struct host_socks socks;	/* of [listen NAME] */
};

/* Each of them says on the log what is wrong. */
NODISCARD int service_read_config(const char *path, struct service *ret);
/* Compile every "NAME.ini" of the policy directory; a broken one is an error. */
NODISCARD int service_load_policies(struct service *s);
/* Take them from the process before instead, and open what it does not have. */
NODISCARD int service_take(struct service *s, size_t nworkers,
			   struct takeover *t);
/* Bind and listen; a socket that nobody serves any more is replaced. @nworkers:
 * as of host_socks_open(). */
NODISCARD int service_listen(struct service *s, size_t nworkers);
/* Say on the log what is doubtful in them, as `penstock policy check` does. */
void service_warn_of_policies(const struct service *s);
void service_done(struct service *s);

#endif /* PROXY_SERVICE_H */
