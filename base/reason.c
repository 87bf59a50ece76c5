/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reason.c - the one vocabulary, as a table
 *
 * A line is word, kind, HTTP status, RFC 9209 error type, SOCKS reply, DNS
 * extended error and the sentence.  Words are an interface: once released they
 * are neither renamed nor given another meaning.
 *
 * What the columns follow:
 *  - status: policy 403, our limits 429 (the sandbox's) or 503 (ours), the
 *    network 502 or 504; 0 where no HTTP answer can be given any more.
 *  - extended error: Blocked (15) for what the policy refuses, Filtered (17)
 *    for record types, Prohibited (18) for what this client may not do,
 *    Not Ready (14) and No Reachable Authority (22) for outages.
 */
#include "base/reason.h"

/* RFC 1928 6 */
enum {
	SOCKS_SUCCEEDED, SOCKS_FAILURE, SOCKS_NOT_ALLOWED, SOCKS_NET_UNREACH,
	SOCKS_HOST_UNREACH, SOCKS_REFUSED, SOCKS_TTL, SOCKS_BAD_COMMAND,
};

/* RFC 8914 4 */
enum {
	EDE_OTHER = 0, EDE_NOT_READY = 14, EDE_BLOCKED = 15, EDE_FILTERED = 17,
	EDE_PROHIBITED = 18, EDE_NO_AUTHORITY = 22,
};

static const struct reason_info reasons[] = {
	[REASON_ALLOWED] = {
		"allowed", REASON_OK, 0,
		NULL, SOCKS_SUCCEEDED, EDE_OTHER,
		"allowed by policy" },
	[REASON_HOST_NOT_ALLOWED] = {
		"host_not_allowed", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"no rule of the policy allows this host" },
	[REASON_HOST_DENIED] = {
		"host_denied", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"a deny rule of the policy names this host" },
	[REASON_PORT_NOT_ALLOWED] = {
		"port_not_allowed", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"the policy allows this host, but not this port" },
	[REASON_PROTOCOL_NOT_ALLOWED] = {
		"protocol_not_allowed", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"the policy allows this host, but not this protocol" },
	[REASON_PROTOCOL_MISMATCH] = {
		"protocol_mismatch", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"the first bytes are not of the protocol that the rule "
		"names" },
	[REASON_NAME_MISMATCH] = {
		"name_mismatch", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"the TLS server name is not the host that was asked for" },
	[REASON_NAME_AMBIGUOUS] = {
		"name_ambiguous", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"several names have this address, the policy differs between "
		"them, and nothing shows which one is meant" },
	[REASON_HOST_MISMATCH] = {
		"host_mismatch", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"the Host header is not the host that was asked for" },
	[REASON_SNI_MISSING] = {
		"sni_missing", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"the TLS ClientHello has no server name and the rule "
		"demands one" },
	[REASON_SNI_INVALID] = {
		"sni_invalid", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"the TLS server name is not a host name" },
	[REASON_TYPE_NOT_ALLOWED] = {
		"type_not_allowed", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_FILTERED,
		"this type of DNS record is not answered under the policy" },
	[REASON_NAME_TOO_DEEP] = {
		"name_too_deep", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"the name has too many labels below the wildcard that "
		"allows it" },
	[REASON_RULE_EXPIRED] = {
		"rule_expired", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"the rule that allowed this has expired" },
	[REASON_ALIAS_NOT_ALLOWED] = {
		"alias_not_allowed", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"the name is an alias of one that stays inside networks" },
	[REASON_METHOD_NOT_ALLOWED] = {
		"method_not_allowed", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"the policy allows this host, but not this method" },
	[REASON_PATH_NOT_ALLOWED] = {
		"path_not_allowed", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"the policy allows this host, but not this path" },
	[REASON_PATH_AMBIGUOUS] = {
		"path_ambiguous", REASON_REQUEST, 400,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"the path can be read in more than one way, and the policy "
		"is about paths" },
	[REASON_INSPECTION_REQUIRED] = {
		"inspection_required", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"the policy limits the requests to this host, which cannot be "
		"seen in this connection" },
	[REASON_ADDRESS_NOT_ALLOWED] = {
		"address_not_allowed", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"no rule of the policy allows this address" },
	[REASON_ADDRESS_DENIED] = {
		"address_denied", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"a deny rule of the policy names this address" },
	[REASON_ADDRESS_UNSPECIFIED] = {
		"address_unspecified", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"the unspecified address is never dialled" },
	[REASON_ADDRESS_LOOPBACK] = {
		"address_loopback", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"a loopback address of the host is not dialled unless a "
		"rule excepts it" },
	[REASON_ADDRESS_PRIVATE] = {
		"address_private", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"a private address is not dialled unless a rule excepts it" },
	[REASON_ADDRESS_LINK_LOCAL] = {
		"address_link_local", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"a link-local address is not dialled unless a rule "
		"excepts it" },
	[REASON_ADDRESS_METADATA] = {
		"address_metadata", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"a cloud metadata service is not dialled unless a rule "
		"names its exact address" },
	[REASON_ADDRESS_CGNAT] = {
		"address_cgnat", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"a carrier's shared address is not dialled unless a rule "
		"excepts it" },
	[REASON_ADDRESS_MULTICAST] = {
		"address_multicast", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"a multicast address is not dialled unless a rule "
		"excepts it" },
	[REASON_ADDRESS_DOCUMENTATION] = {
		"address_documentation", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"a documentation address is not dialled unless a rule "
		"excepts it" },
	[REASON_ADDRESS_BENCHMARK] = {
		"address_benchmark", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"a benchmarking address is not dialled unless a rule "
		"excepts it" },
	[REASON_ADDRESS_RESERVED] = {
		"address_reserved", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"a reserved address is not dialled unless a rule excepts it" },
	[REASON_ADDRESS_HOST] = {
		"address_host", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"an address of the host itself or its own networks is "
		"not dialled unless a rule excepts it" },
	[REASON_TRANSPORT_NOT_ALLOWED] = {
		"transport_not_allowed", REASON_POLICY, 0,
		NULL, SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"only TCP and DNS leave the sandbox" },
	[REASON_IPV6_OFF] = {
		"ipv6_off", REASON_POLICY, 403,
		"destination_ip_prohibited", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"the policy has IPv6 turned off" },
	[REASON_ADDRESS_SELF] = {
		"address_self", REASON_POLICY, 403,
		"proxy_loop_detected", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"it is a listener of this proxy: it would ask itself" },
	[REASON_CLIENT_NOT_ALLOWED] = {
		"client_not_allowed", REASON_POLICY, 0,
		NULL, SOCKS_NOT_ALLOWED, EDE_PROHIBITED,
		"the client's address is not one that may use this "
		"listener" },
	[REASON_REQUEST_MALFORMED] = {
		"request_malformed", REASON_REQUEST, 400,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"the request is not well formed" },
	[REASON_AUTHORITY_INVALID] = {
		"authority_invalid", REASON_REQUEST, 400,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"the request's host and port are not a valid authority" },
	[REASON_FRAMING_INVALID] = {
		"framing_invalid", REASON_REQUEST, 400,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"the length of the request's body is ambiguous" },
	[REASON_HEADER_TOO_LARGE] = {
		"header_too_large", REASON_REQUEST, 431,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"the request's header section is too large" },
	[REASON_URI_TOO_LONG] = {
		"uri_too_long", REASON_REQUEST, 414,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"the request target is too long" },
	[REASON_METHOD_NOT_SUPPORTED] = {
		"method_not_supported", REASON_REQUEST, 501,
		"http_request_error", SOCKS_BAD_COMMAND, EDE_OTHER,
		"the request method is not supported" },
	[REASON_VERSION_NOT_SUPPORTED] = {
		"version_not_supported", REASON_REQUEST, 505,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"the protocol version is not supported" },
	[REASON_CODING_NOT_SUPPORTED] = {
		"coding_not_supported", REASON_REQUEST, 501,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"the transfer coding is not supported" },
	[REASON_EXPECTATION_FAILED] = {
		"expectation_failed", REASON_REQUEST, 417,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"the request expects what nobody here can promise" },
	[REASON_TLS_ON_PLAIN_PORT] = {
		"tls_on_plain_port", REASON_REQUEST, 400,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"TLS was spoken where a plain request to the proxy is "
		"expected" },
	[REASON_HTTP_ON_SOCKS_PORT] = {
		"http_on_socks_port", REASON_REQUEST, 400,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"HTTP was spoken on the port of the SOCKS proxy" },
	[REASON_SOCKS_ON_HTTP_PORT] = {
		"socks_on_http_port", REASON_REQUEST, 0,
		NULL, SOCKS_FAILURE, EDE_OTHER,
		"SOCKS was spoken on the port of the HTTP proxy" },
	[REASON_HEADER_TIMEOUT] = {
		"header_timeout", REASON_REQUEST, 408,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"the request's header section took too long" },
	[REASON_HELLO_INCOMPLETE] = {
		"hello_incomplete", REASON_REQUEST, 400,
		"http_request_error", SOCKS_FAILURE, EDE_OTHER,
		"the TLS ClientHello is incomplete, too large or took "
		"too long" },
	[REASON_CLIENT_CLOSED_EARLY] = {
		"client_closed_early", REASON_REQUEST, 0,
		NULL, SOCKS_FAILURE, EDE_OTHER,
		"the client closed before it said what it wants" },
	[REASON_QUERY_MALFORMED] = {
		"query_malformed", REASON_REQUEST, 0,
		NULL, SOCKS_FAILURE, EDE_OTHER,
		"the DNS question is not well formed" },
	[REASON_CONNECTIONS_EXCEEDED] = {
		"connections_exceeded", REASON_LIMIT, 429,
		"connection_limit_reached", SOCKS_FAILURE, EDE_OTHER,
		"this sandbox has as many connections as it may have" },
	[REASON_QUERIES_EXCEEDED] = {
		"queries_exceeded", REASON_LIMIT, 429,
		"connection_limit_reached", SOCKS_FAILURE, EDE_PROHIBITED,
		"this sandbox asks more DNS questions at once than it may" },
	[REASON_NAMES_EXCEEDED] = {
		"names_exceeded", REASON_LIMIT, 429,
		"proxy_internal_response", SOCKS_FAILURE, EDE_PROHIBITED,
		"this sandbox has asked for as many names as it may know" },
	[REASON_LABEL_BYTES_EXCEEDED] = {
		"label_bytes_exceeded", REASON_LIMIT, 429,
		"proxy_internal_response", SOCKS_FAILURE, EDE_PROHIBITED,
		"the names that this sandbox has asked for below wildcards "
		"are as long, together, as they may be" },
	[REASON_NXDOMAIN_EXCEEDED] = {
		"nxdomain_exceeded", REASON_LIMIT, 429,
		"proxy_internal_response", SOCKS_FAILURE, EDE_PROHIBITED,
		"too many of the names that this sandbox has asked for below "
		"wildcards do not exist" },
	[REASON_DESCRIPTORS_EXCEEDED] = {
		"descriptors_exceeded", REASON_LIMIT, 503,
		"connection_limit_reached", SOCKS_FAILURE, EDE_OTHER,
		"the proxy has no descriptor left" },
	[REASON_MEMORY_EXCEEDED] = {
		"memory_exceeded", REASON_LIMIT, 503,
		"proxy_internal_error", SOCKS_FAILURE, EDE_OTHER,
		"the memory that this sandbox may use is spent" },
	[REASON_CONNECTION_RATE_EXCEEDED] = {
		"connection_rate_exceeded", REASON_LIMIT, 429,
		"connection_limit_reached", SOCKS_FAILURE, EDE_OTHER,
		"this sandbox opens more connections in a second than it may" },
	[REASON_BYTES_EXCEEDED] = {
		"bytes_exceeded", REASON_LIMIT, 429,
		"proxy_internal_response", SOCKS_FAILURE, EDE_OTHER,
		"this sandbox has moved as many bytes as it may" },
	[REASON_FLOW_BYTES_EXCEEDED] = {
		"flow_bytes_exceeded", REASON_LIMIT, 429,
		"proxy_internal_response", SOCKS_FAILURE, EDE_OTHER,
		"this connection has moved as many bytes as one may" },
	[REASON_RULE_BYTES_EXCEEDED] = {
		"rule_bytes_exceeded", REASON_LIMIT, 429,
		"proxy_internal_response", SOCKS_FAILURE, EDE_OTHER,
		"the rule that allows this has a number of bytes, and they are "
		"used up" },
	[REASON_IDLE_TIMEOUT] = {
		"idle_timeout", REASON_LIMIT, 503,
		"proxy_internal_response", SOCKS_FAILURE, EDE_OTHER,
		"nothing passed for longer than the policy has it" },
	[REASON_FLOW_TIME_EXCEEDED] = {
		"flow_time_exceeded", REASON_LIMIT, 429,
		"proxy_internal_response", SOCKS_FAILURE, EDE_OTHER,
		"this connection has lasted as long as one may" },
	[REASON_OVERLOADED] = {
		"overloaded", REASON_LIMIT, 503,
		"connection_limit_reached", SOCKS_FAILURE, EDE_OTHER,
		"the proxy holds as much for all sandboxes as it may" },
	[REASON_CLIENT_CONNECTIONS_EXCEEDED] = {
		"client_connections_exceeded", REASON_LIMIT, 429,
		"connection_limit_reached", SOCKS_FAILURE, EDE_OTHER,
		"this client has as many connections as one may have" },
	[REASON_CLIENT_RATE_EXCEEDED] = {
		"client_rate_exceeded", REASON_LIMIT, 429,
		"connection_limit_reached", SOCKS_FAILURE, EDE_OTHER,
		"this client opens more connections in a second than one may" },
	[REASON_CLIENT_QUERIES_EXCEEDED] = {
		"client_queries_exceeded", REASON_LIMIT, 429,
		"connection_limit_reached", SOCKS_FAILURE, EDE_PROHIBITED,
		"this client asks more DNS questions in a second than one "
		"may" },
	[REASON_USER_EXCEEDED] = {
		"user_exceeded", REASON_LIMIT, 429,
		"connection_limit_reached", SOCKS_FAILURE, EDE_OTHER,
		"all sandboxes of this user hold as much as they may" },
	[REASON_DNS_NXDOMAIN] = {
		"dns_nxdomain", REASON_NETWORK, 502,
		"dns_error", SOCKS_HOST_UNREACH, EDE_OTHER,
		"the name does not exist" },
	[REASON_DNS_NO_ADDRESS] = {
		"dns_no_address", REASON_NETWORK, 502,
		"dns_error", SOCKS_HOST_UNREACH, EDE_OTHER,
		"the name has no address that this host can reach" },
	[REASON_DNS_FAILED] = {
		"dns_failed", REASON_NETWORK, 502,
		"dns_error", SOCKS_HOST_UNREACH, EDE_NO_AUTHORITY,
		"the name servers could not answer" },
	[REASON_DNS_TIMEOUT] = {
		"dns_timeout", REASON_NETWORK, 504,
		"dns_timeout", SOCKS_HOST_UNREACH, EDE_NO_AUTHORITY,
		"the name servers did not answer in time" },
	[REASON_DNS_TLS_FAILED] = {
		"dns_tls_failed", REASON_NETWORK, 502,
		"dns_error", SOCKS_HOST_UNREACH, EDE_NO_AUTHORITY,
		"no verified TLS connection to the name servers could be "
		"made" },
	[REASON_CONNECT_REFUSED] = {
		"connect_refused", REASON_NETWORK, 502,
		"connection_refused", SOCKS_REFUSED, EDE_OTHER,
		"the destination refused the connection" },
	[REASON_CONNECT_TIMEOUT] = {
		"connect_timeout", REASON_NETWORK, 504,
		"connection_timeout", SOCKS_HOST_UNREACH, EDE_OTHER,
		"the destination did not answer in time" },
	[REASON_CONNECT_UNREACHABLE] = {
		"connect_unreachable", REASON_NETWORK, 502,
		"destination_ip_unroutable", SOCKS_HOST_UNREACH, EDE_OTHER,
		"the network has no route to the destination" },
	[REASON_CONNECT_FAILED] = {
		"connect_failed", REASON_NETWORK, 502,
		"destination_unavailable", SOCKS_FAILURE, EDE_OTHER,
		"the connection to the destination failed" },
	[REASON_PROXY_LOOP] = {
		"proxy_loop", REASON_NETWORK, 502,
		"proxy_loop_detected", SOCKS_FAILURE, EDE_OTHER,
		"the request has come through this kind of proxy too often" },
	[REASON_ORIGIN_PROTOCOL] = {
		"origin_protocol", REASON_NETWORK, 502,
		"http_protocol_error", SOCKS_FAILURE, EDE_OTHER,
		"the destination's answer is not valid HTTP" },
	[REASON_ORIGIN_TRUNCATED] = {
		"origin_truncated", REASON_NETWORK, 502,
		"http_response_incomplete", SOCKS_FAILURE, EDE_OTHER,
		"the destination closed before its answer was complete" },
	[REASON_ORIGIN_TIMEOUT] = {
		"origin_timeout", REASON_NETWORK, 504,
		"http_response_timeout", SOCKS_FAILURE, EDE_OTHER,
		"the destination did not answer the request in time" },
	[REASON_PARENT_UNREACHABLE] = {
		"parent_unreachable", REASON_NETWORK, 502,
		"destination_unavailable", SOCKS_FAILURE, EDE_OTHER,
		"the parent proxy on the way there cannot be reached" },
	[REASON_PARENT_TIMEOUT] = {
		"parent_timeout", REASON_NETWORK, 504,
		"connection_timeout", SOCKS_HOST_UNREACH, EDE_OTHER,
		"the parent proxy on the way there did not answer in time" },
	[REASON_PARENT_AUTH_FAILED] = {
		"parent_auth_failed", REASON_NETWORK, 502,
		"proxy_configuration_error", SOCKS_FAILURE, EDE_OTHER,
		"the parent proxy on the way there does not accept our "
		"credentials" },
	[REASON_PARENT_REFUSED] = {
		"parent_refused", REASON_NETWORK, 502,
		"destination_unavailable", SOCKS_HOST_UNREACH, EDE_OTHER,
		"the parent proxy on the way there did not connect" },
	[REASON_PARENT_PROTOCOL] = {
		"parent_protocol", REASON_NETWORK, 502,
		"http_protocol_error", SOCKS_FAILURE, EDE_OTHER,
		"what the parent proxy on the way there answered is not "
		"valid" },
	[REASON_AUDIT_UNAVAILABLE] = {
		"audit_unavailable", REASON_INTERNAL, 503,
		"proxy_internal_error", SOCKS_FAILURE, EDE_NOT_READY,
		"the audit record cannot be written, so nothing new may "
		"leave" },
	[REASON_INTERNAL_ERROR] = {
		"internal_error", REASON_INTERNAL, 500,
		"proxy_internal_error", SOCKS_FAILURE, EDE_OTHER,
		"the proxy failed" },
	[REASON_SHUTDOWN] = {
		"shutdown", REASON_INTERNAL, 503,
		"proxy_internal_response", SOCKS_FAILURE, EDE_NOT_READY,
		"the proxy is shutting down" },
	[REASON_POLICY_RELOAD] = {
		"policy_reload", REASON_POLICY, 403,
		"http_request_denied", SOCKS_NOT_ALLOWED, EDE_BLOCKED,
		"a newly loaded policy no longer allows this flow" },
	[REASON_CLIENT_CLOSED] = {
		"client_closed", REASON_OK, 0,
		NULL, SOCKS_SUCCEEDED, EDE_OTHER,
		"the client closed the connection" },
	[REASON_ORIGIN_CLOSED] = {
		"origin_closed", REASON_OK, 0,
		NULL, SOCKS_SUCCEEDED, EDE_OTHER,
		"the destination closed the connection" },
	[REASON_CLIENT_RESET] = {
		"client_reset", REASON_OK, 0,
		NULL, SOCKS_SUCCEEDED, EDE_OTHER,
		"the client reset the connection" },
	[REASON_ORIGIN_RESET] = {
		"origin_reset", REASON_NETWORK, 0,
		"connection_terminated", SOCKS_FAILURE, EDE_OTHER,
		"the destination reset the connection" },
	[REASON_RUN_ENDED] = {
		"run_ended", REASON_OK, 0,
		NULL, SOCKS_SUCCEEDED, EDE_OTHER,
		"the run came to its end" },
};
_Static_assert(ARRAY_SIZE(reasons) == REASONS, "give every reason its line");

const struct reason_info *reason_info(enum reason r)
{
	REQUIRE(r < REASONS);
	return &reasons[r];
}

enum reason reason_by_word(struct str word)
{
	enum reason r = 0;

	while (r < REASONS && !str_eq(word, str_from(reasons[r].word)))
		r++;
	return r;
}

bool reason_is_address_class(enum reason r)
{
	return r >= REASON_ADDRESS_UNSPECIFIED && r <= REASON_ADDRESS_HOST;
}
