/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_target.c - which host a request is for: its target and its Host field
 *
 * Every host goes through authority_parse(), so that what is judged here is
 * what rules, resolver and records see.  What URI parsers are known to disagree
 * on (userinfo, fragments, backslashes) is refused, not understood.
 */
#include "proxy/http1.h"

static bool is_path_text(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c < 0x21 || c > 0x7e || c == '#' || c == '\\')
			return false;
	}
	return true;
}

static bool starts_ci(struct str s, struct str prefix)
{
	return s.n >= prefix.n && str_ieq(str_make(s.p, prefix.n), prefix);
}

static bool refuse(enum reason why, enum reason *ret_why)
{
	*ret_why = why;
	return false;
}

static bool authority_form(struct str target, struct http1_target *ret,
			   enum reason *ret_why)
{
	ret->form = HTTP1_AUTHORITY_FORM;
	ret->authority = target;
	ret->kind = authority_parse(target, 0, &ret->name, &ret->addr,
				    &ret->port);
	if (ret->kind == HOST_BAD)
		return refuse(REASON_AUTHORITY_INVALID, ret_why);
	return true;
}

static size_t authority_length(struct str s)
{
	size_t n = 0;

	while (n < s.n && s.p[n] != '/' && s.p[n] != '?')
		n++;
	return n;
}

static bool absolute_form(const struct http1_head *head,
			  struct http1_target *ret, enum reason *ret_why)
{
	static const struct str http = { "http://", 7 };
	static const struct str https = { "https://", 8 };
	struct str target = head->target;
	size_t scheme, n;

	ret->form = HTTP1_ABSOLUTE_FORM;
	ret->https = starts_ci(target, https);
	if (!ret->https && !starts_ci(target, http))
		return refuse(REASON_REQUEST_MALFORMED, ret_why);
	scheme = ret->https ? https.n : http.n;
	target = str_make(target.p + scheme, target.n - scheme);
	n = authority_length(target);
	ret->authority = str_make(target.p, n);
	/* RFC 9112 3.2.4: of the whole server, not of a path. */
	ret->path = n < target.n ? str_make(target.p + n, target.n - n) :
		    str_eq(head->method, STR("OPTIONS")) ? STR("*") : STR("/");
	ret->kind = authority_parse(ret->authority, ret->https ? 443 : 80,
				    &ret->name, &ret->addr, &ret->port);
	if (ret->kind == HOST_BAD)
		return refuse(REASON_AUTHORITY_INVALID, ret_why);
	if (!is_path_text(ret->path))
		return refuse(REASON_REQUEST_MALFORMED, ret_why);
	return true;
}

bool http1_parse_target(const struct http1_head *head,
			struct http1_target *ret, enum reason *ret_why)
{
	struct str target = head->target;

	memset(ret, 0, sizeof(*ret));
	ret->kind = HOST_BAD;
	if (str_eq(head->method, STR("CONNECT")))
		return authority_form(target, ret, ret_why);
	if (str_eq(target, STR("*"))) {
		ret->form = HTTP1_ASTERISK_FORM;
		ret->path = target;
		if (!str_eq(head->method, STR("OPTIONS")))
			return refuse(REASON_REQUEST_MALFORMED, ret_why);
		return true;
	}
	if (str_empty(target) || target.p[0] != '/')
		return absolute_form(head, ret, ret_why);
	ret->form = HTTP1_ORIGIN_FORM;
	ret->path = target;
	if (!is_path_text(target))
		return refuse(REASON_REQUEST_MALFORMED, ret_why);
	return true;
}

bool http1_host_agrees(const struct http1_head *head, enum host_kind kind,
		       const struct host_name *name,
		       const struct ip_addr *addr, uint16_t port,
		       uint16_t default_port)
{
	struct host_name host = { 0 };
	struct ip_addr literal = { 0 };
	uint16_t host_port = 0;

	if (!head->has_host || kind == HOST_BAD ||
	    authority_parse(head->host, default_port, &host, &literal,
			    &host_port) != kind)
		return false;
	if (host_port != port)
		return false;
	if (kind == HOST_ADDRESS)
		return ip_addr_eq(&literal, addr);
	return str_eq(host_name_str(&host), host_name_str(name));
}
