/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_target.c - URL, HOST[:PORT] or ADDRESS[:PORT] of a person's question
 */
#include "rules/rules_target.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "rules/host_idn.h"
#include "rules/rules_value.h"

/* Offset of the first byte of @s that is one of @set, or its length. */
static size_t find_any(struct str s, const char *set)
{
	size_t i = 0;

	while (i < s.n && s.p[i] && !strchr(set, s.p[i]))
		i++;
	return i;
}

static struct str from(struct str s, size_t at)
{
	return str_make(s.p + at, s.n - at);
}

static bool find_scheme(struct str text, struct str *ret_scheme,
			struct str *ret_rest)
{
	size_t at = str_find(text, STR("://"));

	if (at == text.n)
		return false;
	*ret_scheme = str_make(text.p, at);
	*ret_rest = from(text, at + 3);
	return true;
}

static int take_scheme(struct str scheme, struct rules_target *ret,
		       const char **ret_why)
{
	char lower[16];

	*ret_why = "has a scheme that is no protocol of rules; write https://, "
		   "http://, ssh:// or another (PROTOCOLS in "
		   "penstock.ini(5)), or HOST:PORT";
	if (scheme.n == 0 || scheme.n > sizeof(lower))
		return -EINVAL;
	for (size_t i = 0; i < scheme.n; i++)
		lower[i] = ascii_lower(scheme.p[i]);
	ret->scheme = rules_protocol_by_name(str_make(lower, scheme.n));
	return ret->scheme ? 0 : -EINVAL;
}

static void take_path(struct str rest, size_t at, struct rules_target *ret)
{
	struct str tail = from(rest, at);

	if (!ret->scheme || ret->scheme->speech == SPEECH_OPAQUE)
		return;
	tail.n = find_any(tail, "#");
	if (tail.n > 0 && tail.p[0] == '/')
		ret->path = tail;
}

static struct str without_user(struct str authority)
{
	size_t at = authority.n;

	while (at > 0 && authority.p[at - 1] != '@')
		at--;
	return from(authority, at);
}

/* Apart from its port, if it is no literal in brackets. */
static struct str split_port(struct str text, struct str *ret_port)
{
	size_t at = text.n > 0 && text.p[0] == '[' ? text.n :
		    find_any(text, ":");

	*ret_port = from(text, at);
	return str_make(text.p, at);
}

/* inet_aton() would read an address: 1.2.3, 010.0.0.1, 0x7f000001. */
static bool is_odd_address(struct str host)
{
	for (size_t i = 0; i < host.n; i++) {
		if (!memchr("0123456789abcdefABCDEFxX.", host.p[i], 25))
			return false;
	}
	return host.n > 0 && host.p[0] >= '0' && host.p[0] <= '9';
}

/* Why authority_parse() refused it. */
static const char *authority_fault(struct str text)
{
	static const char neither[] = "is neither a name nor an address; an "
		"IPv6 address stands in brackets where a port follows";
	struct host_pattern pattern;
	struct host_name name;
	struct ip_addr addr;
	const char *why = neither;
	struct str port, host = split_port(text, &port);

	if (str_empty(host))
		return "names no host; write a URL, HOST[:PORT] or ADDRESS";
	if (host_parse(host, &name, &addr) != HOST_BAD)
		return "has no port behind ':'; write a number from 1 to "
		       "65535, or a URL (https://HOST, ssh://HOST)";
	if (str_chr(host, '*') < host.n)
		return "is a pattern; ask about one host that it holds";
	if (host.p[0] == '[' || str_chr(from(port, port.n > 0), ':') + 1 <
	    port.n)
		return neither;
	if (is_odd_address(host))
		return "is no address; write four decimal numbers without "
		       "leading zeros, as 192.0.2.1";
	(void)!host_pattern_parse(host, true, &pattern, &why);
	return why;
}

/* The same with the A-labels of a name that has letters outside ASCII. */
static enum host_kind idn_authority(struct str text, uint16_t fallback,
				    struct rules_target *ret,
				    const char **ret_why)
{
	CLEANUP(buf_done) struct buf ascii = BUF_INIT(HOST_NAME_MAX_LEN + 16);
	struct str port, host = split_port(text, &port);
	struct host_name name;

	if (host_idn_parse(host, &name, ret_why) ||
	    buf_add_str(&ascii, host_name_str(&name)) ||
	    buf_add_str(&ascii, port))
		return HOST_BAD;
	*ret_why = authority_fault(buf_str(&ascii));
	return authority_parse(buf_str(&ascii), fallback, &ret->host,
			       &ret->addr, &ret->port);
}

static bool is_ascii(struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if ((unsigned char)text.p[i] >= 0x80)
			return false;
	}
	return true;
}

static int take_authority(struct str text, struct rules_target *ret,
			  const char **ret_why)
{
	uint16_t fallback = ret->scheme && ret->scheme->port ?
			    ret->scheme->port : RULES_TARGET_PORT;
	enum host_kind kind;

	ret->port_given = ret->scheme && ret->scheme->port;
	/* Alone, the literal needs no brackets. */
	if (ip_addr_parse(text, &ret->addr) == 0) {
		ret->port = fallback;
		return 0;
	}
	if (is_ascii(text)) {
		kind = authority_parse(text, fallback, &ret->host, &ret->addr,
				       &ret->port);
		if (kind == HOST_BAD)
			*ret_why = authority_fault(text);
	} else {
		kind = idn_authority(text, fallback, ret, ret_why);
	}
	if (kind == HOST_NAME)
		ret->addr = (struct ip_addr){ .family = IP_NONE };
	else if (kind == HOST_ADDRESS)
		ret->host.n = 0;
	ret->port_given |= kind != HOST_BAD && text.p[text.n - 1] != ']' &&
			   str_chr(text, ':') < text.n;
	return kind == HOST_BAD ? -EINVAL : 0;
}

int rules_target_parse(struct str text, struct rules_target *ret,
		       const char **ret_why)
{
	struct str scheme, rest = text;
	size_t end;
	int e;

	*ret = (struct rules_target){ .path = STR_NONE };
	if (find_scheme(text, &scheme, &rest)) {
		e = take_scheme(scheme, ret, ret_why);
		if (e)
			return e;
	}
	end = find_any(rest, "/?#");
	if (!ret->scheme && end < rest.n) {
		*ret_why = "has a path; write https:// or http:// before it";
		return -EINVAL;
	}
	e = take_authority(without_user(str_make(rest.p, end)), ret, ret_why);
	if (!e)
		take_path(rest, end, ret);
	return e;
}

const char *rules_target_fault(const struct rules_target *t)
{
	struct host_pattern pattern;
	struct addr_range range;
	char text[IP_TEXT_SIZE];
	const char *why = NULL;

	if (t->host.n == 0) {
		ip_addr_text(&t->addr, text);
		(void)!addr_range_parse(str_from(text), false, &range, &why);
		return why;
	}
	if (host_pattern_parse(host_name_str(&t->host), false, &pattern, &why))
		return why;
	return host_suffix_fault(HOST_EXACT, host_name_str(&t->host));
}
