/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refusal.h - one refusal in the words of the protocol that asked; pure
 */
#ifndef PROXY_REFUSAL_H
#define PROXY_REFUSAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/reason.h"
#include "base/str.h"

struct refusal {
	enum reason reason;
	struct str host;	/* name or address text; may be empty */
	uint16_t port;		/* 0: not known */
	const char *policy;	/* name */
	const char *run;
	const char *rule;	/* deciding rule, or NULL */
	struct str date;	/* of now (RFC 9110 6.6.1); empty: not said */
	uint16_t status;	/* instead of the reason's own; 0: that one */
	bool head_only;		/* answer to HEAD */
	bool close;		/* say "Connection: close" */
};

/**
 * refusal_http() - A whole HTTP/1.1 answer: status line with the reason word
 *                  as phrase, Date, Proxy-Status (RFC 9209), JSON body,
 *                  lengths; Retry-After for limits; never over 2 KiB
 */
NODISCARD int refusal_http(const struct refusal *r, struct buf *out);

/* The fatal alert record for a TLS client (RFC 8446 6.2): access_denied for
 * policy, internal_error or unrecognized_name's kin for the rest. */
struct str refusal_tls_alert(enum reason reason);

#endif /* PROXY_REFUSAL_H */
