/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_allow.c - the policy text that `--allow HOST[:PORT]` stands for
 *
 * The argument comes from a shell, and what is made of it is read as INI again:
 * only words that passed the readers of rules_value.h are put into the text,
 * and these hold no blank, quote, bracket or control byte.
 */
#include <errno.h>

#include "base/buf.h"
#include "rules/rules.h"
#include "rules/rules_value.h"

struct allowed {
	struct str host;	/* name, wildcard, address or network */
	struct str port;	/* empty: the web's */
	bool is_address;
};

static int refuse(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EINVAL;
}

/* Any byte that could be more than a part of one word. */
static bool is_one_word(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c <= ' ' || c >= 0x7f || c == '"' || c == '\'' ||
		    c == '\\' || c == '`' || c == ';' || c == '#' || c == '=')
			return false;
	}
	return s.n > 0;
}

/* "[v6]" or "[v6]:PORT" */
static int split_bracketed(struct str s, struct allowed *a,
			   const char **ret_why)
{
	size_t end = str_chr(s, ']');

	if (end == s.n || (end + 1 < s.n && s.p[end + 1] != ':'))
		return refuse(ret_why, "is not of the form [ADDRESS]:PORT");
	a->host = str_make(s.p + 1, end - 1);
	a->is_address = true;
	if (end + 1 == s.n)
		return 0;
	a->port = str_make(s.p + end + 2, s.n - end - 2);
	return str_empty(a->port) ?
	       refuse(ret_why, "has no port behind the colon") : 0;
}

static bool is_address_or_net(struct str s)
{
	struct ip_addr addr;
	struct ip_net net;

	return ip_addr_parse(s, &addr) == 0 || ip_net_parse(s, &net) != -EINVAL;
}

static int split(struct str s, struct allowed *a, const char **ret_why)
{
	size_t colon = str_chr(s, ':');

	if (s.p[0] == '[')
		return split_bracketed(s, a, ret_why);
	a->host = s;
	/* Before the colon is looked at: an IPv6 address is made of them. */
	a->is_address = is_address_or_net(s);
	if (a->is_address || colon == s.n)
		return 0;
	a->host = str_make(s.p, colon);
	a->port = str_make(s.p + colon + 1, s.n - colon - 1);
	a->is_address = is_address_or_net(a->host);
	if (str_starts(a->port, STR("//")))
		return refuse(ret_why, "is a URL; write the host alone, and "
			      ":PORT where it is not 443 or 80");
	if (str_chr(a->port, ':') < a->port.n)
		return refuse(ret_why, "has several colons in it; an IPv6 "
			      "address has no zone, and with a port it is "
			      "written [ADDRESS]:PORT");
	if (str_empty(a->host))
		return refuse(ret_why, "has no host before the colon");
	if (str_empty(a->port))
		return refuse(ret_why, "has no port behind the colon");
	return 0;
}

static int check_address(struct str text, const char **ret_why)
{
	struct addr_range r;
	enum ip_class class;

	if (addr_range_parse(text, false, &r, ret_why) < 0)
		return -EINVAL;
	class = ip_classify_range(&r.lo, &r.hi);
	if (class == IP_METADATA)
		return refuse(ret_why, "is the address of a metadata service, "
			      "which --allow never opens");
	if (class != IP_PUBLIC)
		return refuse(ret_why, "is not a public address; open it in a "
			      "policy file: [allow NAME], 'addresses' and "
			      "'reason'");
	return 0;
}

int rules_allow_text(struct str argument, unsigned ordinal, struct buf *out,
		     const char **ret_why)
{
	struct allowed a = { 0 };
	struct host_pattern pattern;
	struct port_range ports;
	size_t before = out->n;
	int err;

	if (!is_one_word(argument))
		return refuse(ret_why, "is not one plain word: no blank, "
			      "quote, control byte or letter outside ASCII may "
			      "be in it (write a name as its A-label, "
			      "\"xn--...\")");
	if (str_chr(argument, ',') < argument.n)
		return refuse(ret_why, "has a comma in it; give an --allow for "
			      "each");
	if (split(argument, &a, ret_why) < 0)
		return -EINVAL;
	err = a.is_address ? check_address(a.host, ret_why) :
	      host_pattern_parse(a.host, false, &pattern, ret_why);
	if (!err && !a.is_address) {
		*ret_why = host_suffix_fault(pattern.kind,
					     host_name_str(&pattern.name));
		err = *ret_why ? -EINVAL : 0;
	}
	if (err)
		return err;
	if (!str_empty(a.port) &&
	    port_range_parse(a.port, &ports, ret_why) < 0)
		return -EINVAL;
	err = buf_printf(out, "[allow allow-%u]\n%s = %.*s\n", ordinal,
			 a.is_address ? "addresses" : "hosts",
			 STR_ARG(a.host));
	if (!err && !str_empty(a.port))
		err = buf_printf(out, "ports = %.*s\n", STR_ARG(a.port));
	if (!err)
		err = buf_printf(out, "reason = --allow %.*s\n",
				 STR_ARG(argument));
	if (err) {
		out->n = before;
		return refuse(ret_why, "does not fit: there are too many "
			      "--allow options");
	}
	return 0;
}
