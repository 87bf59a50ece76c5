/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_name.h - one canonical form for every host that anyone names
 *
 * Rules, CONNECT authorities, request targets, Host fields, SNI and DNS names
 * all pass here, so that the name that is judged, resolved, compared and
 * recorded is the same bytes: lower-case ASCII, no trailing dot, labels of
 * 1..63 bytes out of [a-z0-9_-], 253 in all.  Anything else is no name.
 */
#ifndef RULES_HOST_NAME_H
#define RULES_HOST_NAME_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/str.h"

#define HOST_NAME_MAX_LEN	253
#define HOST_LABEL_MAX_LEN	63

struct host_name {
	uint8_t n;
	char p[HOST_NAME_MAX_LEN + 1];	/* NUL-terminated */
};

enum host_kind {
	HOST_BAD,	/* neither: refuse the request as malformed */
	HOST_NAME,	/* @ret_name is set */
	HOST_ADDRESS,	/* a literal: @ret_addr is set */
};

static inline struct str host_name_str(const struct host_name *h)
{
	return (struct str){ h->p, h->n };
}

/**
 * host_name_parse() - Canonicalise a name; literals are no names
 *
 * One trailing dot is taken off.  A name whose last label is all digits or
 * "0x..." is refused (inet_aton() would read an address: 127.1, 0x7f000001,
 * 2130706433), as is an "xn--" label that is not the A-label form of
 * something (empty, or all ASCII behind the prefix: "xn--example-").
 * Return: 0 or -EINVAL
 */
NODISCARD int host_name_parse(struct str text, struct host_name *ret);

/**
 * host_parse() - A host as it stands in an authority: name, IPv4 literal, or
 *                IPv6 literal in brackets; no zone, no percent, no userinfo
 */
enum host_kind host_parse(struct str text, struct host_name *ret_name,
			  struct ip_addr *ret_addr);

/**
 * authority_parse() - HOST[:PORT] (RFC 9110 7.1 without userinfo)
 * @default_port:	0: a port must be there
 *
 * A port is 1..65535 in at most 5 digits, without leading zeros; "host:" with
 * no digits is refused.
 * Return: the kind of host; HOST_BAD for anything else
 */
enum host_kind authority_parse(struct str text, uint16_t default_port,
			       struct host_name *ret_name,
			       struct ip_addr *ret_addr, uint16_t *ret_port);

/* Names that a resolver must never ask the world (localhost, .local, ...). */
bool host_name_is_local(struct str canonical);

#endif /* RULES_HOST_NAME_H */
