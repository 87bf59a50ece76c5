/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_local.h - the names that are answered here, whatever the policy says
 */
#ifndef RESOLVER_DNS_LOCAL_H
#define RESOLVER_DNS_LOCAL_H

#include "base/str.h"
#include "resolver/dns_msg.h"
#include "resolver/name_map.h"

struct ruleset;

enum dns_local_kind {
	DNS_LOCAL_NOT,		/* none of ours: ask the policy */
	DNS_LOCAL_ADDRESS,
	DNS_LOCAL_PTR,
	DNS_LOCAL_NODATA,	/* ours, but not this type */
	DNS_LOCAL_NXDOMAIN,	/* in a tree that is ours, and not there */
	DNS_LOCAL_REVERSE,	/* the same, of a public address */
	DNS_LOCAL_SHUT,		/* in a tree that the world is never asked about */
};

struct dns_local {
	enum dns_local_kind kind;
	bool self_test;
	struct ip_addr addr;
	struct dns_name ptr;
	struct ip_addr behind;	/* of a whole reverse name; IP_NONE: none */
};

struct dns_local_names {
	struct str self_test;		/* "<nonce>.penstock.invalid", or empty */
	const struct dns_name *hostname;	/* one label; .n 0: none */
	const struct name_map *map;	/* NULL: nothing was given yet */
	const struct ruleset *rules;	/* in force: a name that they deny by now
					 * stands behind no address any more */
	const struct ip_hosts *hosts;	/* this host's own; NULL: not known */
};

/* The sandbox's own name: one label; one of several is none (.n 0). */
void dns_local_hostname(const char *text, struct dns_name *ret);

/**
 * dns_local_find() - Is the name ours to answer?
 * @host:	canonical
 * @type:	asked
 */
void dns_local_find(const struct dns_local_names *names, struct str host,
		    uint16_t type, struct dns_local *ret);

/**
 * dns_local_hidden() - Names that lead to metadata services or stay inside
 *
 * They are asked about only where a rule allows them, never because a policy
 * merely observes.
 */
bool dns_local_hidden(struct str host);

/**
 * dns_local_bars_alias() - May an alias not lead to @name?
 *
 * So with all that resolver_hides(), names of one label, and reverse names
 * of what is not public; that of a public address may be an alias of another
 * in the same tree (RFC 2317).
 */
bool dns_local_bars_alias(struct str name);

#endif /* RESOLVER_DNS_LOCAL_H */
