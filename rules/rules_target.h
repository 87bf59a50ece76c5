/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_target.h - what a person asks about: URL, HOST[:PORT] or ADDRESS[:PORT]
 *
 * For tools that explain and test policies; what clients send is read by the
 * stricter readers of proxy/.
 */
#ifndef RULES_RULES_TARGET_H
#define RULES_RULES_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/str.h"
#include "rules/host_name.h"
#include "rules/rules.h"

/* For a target that says no port: that of https. */
#define RULES_TARGET_PORT	443

struct rules_target {
	struct host_name host;		/* n is 0 for an address */
	struct ip_addr addr;		/* IP_NONE for a name */
	uint16_t port;
	bool port_given;		/* in the text, or by its scheme */
	const struct rules_protocol *scheme;	/* of a URL, else NULL */
	struct str path;		/* with its query, of an http(s) URL that
					 * has one, else empty; into the text */
};

/**
 * rules_target_parse() - Read a target as people write it
 * @text:	a scheme is a protocol of rules ("https://", "ssh://");
 *		"user@" and "#fragment" are passed over, as clients keep both
 *		to themselves; an IPv6 literal may stand without brackets when
 *		no port follows; a name may have letters outside ASCII
 * @ret_why:	set on failure: what is wrong and the mend, a constant to be
 *		shown behind the target in quotes
 * Return: 0 or -EINVAL
 */
NODISCARD int rules_target_parse(struct str text, struct rules_target *ret,
				 const char **ret_why);

/*
 * Why no allow rule may name the host or address of @t as it is: words as
 * @ret_why above, or NULL when one may.
 */
const char *rules_target_fault(const struct rules_target *t);

#endif /* RULES_RULES_TARGET_H */
