/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h - the service's configuration: `penstockd --config FILE`
 *
 * INI; the keys are in penstockd(8).  Each fault is told with its line and the
 * mend, and reading goes on, so that one look shows them all.
 */
#ifndef PROXY_CONFIG_H
#define PROXY_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/log.h"
#include "base/str.h"
#include "proxy/client_table.h"
#include "proxy/parents.h"
#include "proxy/source.h"
#include "resolver/resolver.h"

#define CONFIG_FILE_MAX		(1u << 20)	/* bytes of a configuration */
#define CONFIG_RANGES_MAX	64		/* ids or ranges of one key */
#define CONFIG_WORKERS_MAX	256
#define CONFIG_DRAIN_MAX_S	3600
#define CONFIG_UPGRADE_DRAIN_MAX_S	2592000	/* 30 days */
#define CONFIG_LISTENS_MAX	32	/* [listen NAME] sections */
#define CONFIG_LISTEN_NAME_MAX	25	/* bytes with NUL */
#define CONFIG_LISTEN_LABEL_MAX	64
#define CONFIG_DOORS_MAX	16	/* addresses of one key */
#define CONFIG_CLIENTS_MAX	64

struct config_range {
	uint32_t first, last;
};

/* Who may do something: by user id, or by membership in a group. */
struct config_who {
	struct config_range uid[CONFIG_RANGES_MAX];
	struct config_range gid[CONFIG_RANGES_MAX];
	size_t nuids, ngids;
};

/* A place in the text; @line 0: none. */
struct config_place {
	unsigned line, column;
};

/* An address to listen on. */
struct config_door {
	struct ip_endpoint at;
	bool if_there;		/* "localhost", "*": not where IPv6 is off */
	struct config_place place;
};

struct config_doors {
	struct config_door door[CONFIG_DOORS_MAX];
	size_t n;
};

/* [listen NAME] */
struct config_listen {
	char name[CONFIG_LISTEN_NAME_MAX];
	char label[CONFIG_LISTEN_LABEL_MAX];
	char *policy;		/* one of the service's own */
	struct config_doors http, socks, dns;
	struct ip_net client[CONFIG_CLIENTS_MAX];
	size_t nclients;
	struct client_limits share;	/* of each client */
	struct config_place place, policy_place;
};

struct config {
	/* [service] */
	char *plug;		/* path of the plug socket */
	char *log;		/* the service's own audit log, or NULL */
	char *resolv_conf;
	unsigned workers;	/* 0: one a core */
	unsigned drain_s;
	unsigned upgrade_drain_s;	/* flows that stay behind in an upgrade */
	enum log_level log_level;
	struct source source;	/* that flows leave from */
	uint32_t mark;		/* of their sockets; 0: none */
	bool has_user;
	uid_t uid;
	gid_t gid;
	/* [plug] */
	struct config_who bring;	/* may bring a policy */
	struct config_who name;		/* may name one of the service's own */
	char *policies;			/* its directory, or NULL */
	unsigned runs_per_uid;		/* 0: PLUG_RUNS_PER_UID */
	/* [dns] */
	struct resolver_servers dns;	/* none: as resolv_conf says */
	char *tls_ca;			/* NULL: the system's certificates */
	/* [listen NAME] */
	struct config_listen *listen;
	size_t nlistens;
	/* [parent NAME] */
	struct parents parents;
	/* [limits] */
	unsigned connections;		/* of all runs together; 0: any */
	unsigned reserve;		/* descriptors; 0: ISOLATE_RESERVE */
	size_t memory;			/* bytes, the same; 0: any */
	unsigned connections_per_uid;	/* of a user's; 0: half of the above */
	size_t memory_per_uid;
};

/* @place: line 0: of the whole file; column 0: of the whole line. */
typedef void config_error_fn(void *arg, const struct config_place *place,
			     const char *message);

/**
 * config_parse() - Read a configuration; names of users become ids here
 * @ret:	for config_done(), on success only
 * Return: 0, -EINVAL (@fn told why) or -ENOMEM
 */
NODISCARD int config_parse(struct str text, config_error_fn *fn, void *arg,
			   struct config *ret);
void config_done(struct config *c);

bool config_who_has(const struct config_who *who, uid_t uid,
		    const gid_t *gid, size_t ngids);

#endif /* PROXY_CONFIG_H */
