/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reason.h - the one vocabulary: why something was refused, failed or ended
 *
 * The word is stable and used everywhere: audit record, JSON body and
 * Proxy-Status of an HTTP refusal, DNS extended error, summary, manual.
 * docs/reasons.md is checked against this table.
 */
#ifndef BASE_REASON_H
#define BASE_REASON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum reason_kind {
	REASON_OK,		/* allowed, or an ordinary end */
	REASON_POLICY,		/* policy says no: 403 */
	REASON_REQUEST,		/* the client's bytes are wrong: 400 and kin */
	REASON_LIMIT,		/* a budget or limit of ours: 429 or 503 */
	REASON_NETWORK,		/* the outside failed: 502, 504 */
	REASON_INTERNAL,	/* we failed: 500, 503 */
};

enum reason {
	REASON_ALLOWED,
	/* policy: names, ports, protocols */
	REASON_HOST_NOT_ALLOWED,
	REASON_HOST_DENIED,		/* by a deny rule */
	REASON_PORT_NOT_ALLOWED,
	REASON_PROTOCOL_NOT_ALLOWED,
	REASON_PROTOCOL_MISMATCH,	/* first bytes against the rule */
	REASON_NAME_MISMATCH,		/* SNI is not the name that was asked */
	REASON_NAME_AMBIGUOUS,		/* which of an address' names is meant? */
	REASON_HOST_MISMATCH,		/* Host is not the request target */
	REASON_SNI_MISSING,
	REASON_SNI_INVALID,
	REASON_TYPE_NOT_ALLOWED,	/* DNS question type */
	REASON_NAME_TOO_DEEP,		/* labels below the wildcard */
	REASON_RULE_EXPIRED,		/* the rule that allowed it is over */
	REASON_ALIAS_NOT_ALLOWED,	/* a CNAME to what stays inside */
	/* policy: requests */
	REASON_METHOD_NOT_ALLOWED,
	REASON_PATH_NOT_ALLOWED,
	REASON_PATH_AMBIGUOUS,		/* origins may read it in two ways */
	REASON_INSPECTION_REQUIRED,	/* requests that cannot be seen */
	/* policy: addresses */
	REASON_ADDRESS_NOT_ALLOWED,	/* literal, or out of the range */
	REASON_ADDRESS_DENIED,
	REASON_ADDRESS_UNSPECIFIED,
	REASON_ADDRESS_LOOPBACK,
	REASON_ADDRESS_PRIVATE,
	REASON_ADDRESS_LINK_LOCAL,
	REASON_ADDRESS_METADATA,
	REASON_ADDRESS_CGNAT,
	REASON_ADDRESS_MULTICAST,
	REASON_ADDRESS_DOCUMENTATION,
	REASON_ADDRESS_BENCHMARK,
	REASON_ADDRESS_RESERVED,
	REASON_ADDRESS_HOST,
	REASON_TRANSPORT_NOT_ALLOWED,	/* UDP, ICMP, SCTP: firewall */
	REASON_IPV6_OFF,		/* an IPv6 address, and ipv6 = off */
	REASON_ADDRESS_SELF,		/* where one of our listeners is */
	REASON_CLIENT_NOT_ALLOWED,	/* a listener's, from elsewhere */
	/* the request */
	REASON_REQUEST_MALFORMED,
	REASON_AUTHORITY_INVALID,
	REASON_FRAMING_INVALID,
	REASON_HEADER_TOO_LARGE,
	REASON_URI_TOO_LONG,
	REASON_METHOD_NOT_SUPPORTED,
	REASON_VERSION_NOT_SUPPORTED,
	REASON_CODING_NOT_SUPPORTED,
	REASON_EXPECTATION_FAILED,
	REASON_TLS_ON_PLAIN_PORT,
	REASON_HTTP_ON_SOCKS_PORT,
	REASON_SOCKS_ON_HTTP_PORT,
	REASON_HEADER_TIMEOUT,
	REASON_HELLO_INCOMPLETE,
	REASON_CLIENT_CLOSED_EARLY,	/* left before saying what it wants */
	REASON_QUERY_MALFORMED,		/* DNS */
	/* limits */
	REASON_CONNECTIONS_EXCEEDED,
	REASON_QUERIES_EXCEEDED,	/* DNS questions, in flight or a second */
	REASON_NAMES_EXCEEDED,		/* different names of a run */
	REASON_LABEL_BYTES_EXCEEDED,	/* bytes of names below wildcards */
	REASON_NXDOMAIN_EXCEEDED,	/* names that do not exist */
	REASON_DESCRIPTORS_EXCEEDED,
	REASON_MEMORY_EXCEEDED,
	REASON_CONNECTION_RATE_EXCEEDED,	/* new ones in a second */
	REASON_BYTES_EXCEEDED,		/* of the run */
	REASON_FLOW_BYTES_EXCEEDED,
	REASON_RULE_BYTES_EXCEEDED,	/* of all flows of a rule */
	REASON_IDLE_TIMEOUT,		/* nothing passed for too long */
	REASON_FLOW_TIME_EXCEEDED,
	REASON_OVERLOADED,		/* all runs together */
	REASON_CLIENT_CONNECTIONS_EXCEEDED,	/* of one client of a listener */
	REASON_CLIENT_RATE_EXCEEDED,	/* the same: new ones in a second */
	REASON_CLIENT_QUERIES_EXCEEDED,	/* the same: DNS questions */
	REASON_USER_EXCEEDED,		/* all runs of one user */
	/* the network */
	REASON_DNS_NXDOMAIN,
	REASON_DNS_NO_ADDRESS,
	REASON_DNS_FAILED,
	REASON_DNS_TIMEOUT,
	REASON_DNS_TLS_FAILED,		/* name servers that must speak TLS */
	REASON_CONNECT_REFUSED,
	REASON_CONNECT_TIMEOUT,
	REASON_CONNECT_UNREACHABLE,
	REASON_CONNECT_FAILED,
	REASON_PROXY_LOOP,		/* it came by us too often */
	REASON_ORIGIN_PROTOCOL,		/* the answer is not valid HTTP */
	REASON_ORIGIN_TRUNCATED,
	REASON_ORIGIN_TIMEOUT,
	REASON_PARENT_UNREACHABLE,	/* the proxy before the destination */
	REASON_PARENT_TIMEOUT,
	REASON_PARENT_AUTH_FAILED,
	REASON_PARENT_REFUSED,
	REASON_PARENT_PROTOCOL,		/* its answer is none */
	/* ours */
	REASON_AUDIT_UNAVAILABLE,
	REASON_INTERNAL_ERROR,
	REASON_SHUTDOWN,
	REASON_POLICY_RELOAD,
	/* ordinary ends */
	REASON_CLIENT_CLOSED,
	REASON_ORIGIN_CLOSED,
	REASON_CLIENT_RESET,
	REASON_ORIGIN_RESET,
	REASON_RUN_ENDED,

	REASONS
};

struct reason_info {
	const char *word;		/* "host_not_allowed" */
	enum reason_kind kind;
	uint16_t http_status;		/* of a refusal; 0: none is sent */
	const char *proxy_error;	/* RFC 9209 2.3 error type, or NULL */
	uint8_t socks_reply;		/* RFC 1928 6 */
	uint16_t ede;			/* RFC 8914 info code */
	const char *sentence;		/* for a person, without host, port */
};

const struct reason_info *reason_info(enum reason r);
static inline const char *reason_word(enum reason r)
{
	return reason_info(r)->word;
}
/* The reason of a word, or REASONS when there is none. */
enum reason reason_by_word(struct str word);
bool reason_is_address_class(enum reason r);

#endif /* BASE_REASON_H */
