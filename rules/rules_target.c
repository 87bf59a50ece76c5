/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_target.c - URL, HOST[:PORT] or ADDRESS[:PORT] of a person's question
 */
#include "rules/rules_target.h"

#include <errno.h>
#include <string.h>

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

	*ret_why = "no such scheme: use https://, http://, or another "
		   "protocol of rules (see penstock.ini(5)), or HOST:PORT";
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

static int take_authority(struct str text, struct rules_target *ret,
			  const char **ret_why)
{
	uint16_t fallback = ret->scheme && ret->scheme->port ?
			    ret->scheme->port : RULES_TARGET_PORT;
	enum host_kind kind;

	/* Alone, the literal needs no brackets. */
	if (ip_addr_parse(text, &ret->addr) == 0) {
		ret->port = fallback;
		ret->port_given = ret->scheme && ret->scheme->port;
		return 0;
	}
	kind = authority_parse(text, 0, &ret->host, &ret->addr, &ret->port);
	ret->port_given = kind != HOST_BAD;
	if (kind == HOST_BAD) {
		kind = authority_parse(text, fallback, &ret->host, &ret->addr,
				       &ret->port);
		ret->port_given = ret->scheme && ret->scheme->port;
	}
	if (kind == HOST_NAME)
		ret->addr = (struct ip_addr){ .family = IP_NONE };
	else if (kind == HOST_ADDRESS)
		ret->host.n = 0;
	*ret_why = "not a host: write a name, an address, or either with "
		   ":PORT (an IPv6 address then in brackets)";
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
		*ret_why = "a path needs a URL: write https:// or http:// "
			   "before it";
		return -EINVAL;
	}
	e = take_authority(without_user(str_make(rest.p, end)), ret, ret_why);
	if (!e)
		take_path(rest, end, ret);
	return e;
}
