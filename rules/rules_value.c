/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_value.c - single words of a rule: a host, a range, some ports
 */
#include "rules/rules_value.h"

#include <errno.h>
#include <stdio.h>

#include "rules/host_idn.h"

static int refuse(const char **ret_why, const char *why)
{
	*ret_why = why;
	return -EINVAL;
}

const char *shown(struct str word, char out[SHOWN_SIZE])
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (size_t i = 0; i < word.n; i++) {
		unsigned char c = (unsigned char)word.p[i];

		/* Room for this byte's four, three dots and the NUL. */
		if (n + 8 > SHOWN_SIZE) {
			for (int dot = 0; dot < 3; dot++)
				out[n++] = '.';
			break;
		}
		if (c >= ' ' && c < 0x7f && c != '\\') {
			out[n++] = (char)c;
			continue;
		}
		out[n++] = '\\';
		out[n++] = 'x';
		out[n++] = hex[c >> 4];
		out[n++] = hex[c & 15];
	}
	out[n] = '\0';
	return out;
}

/* --- hosts ---------------------------------------------------------------- */

static bool has_any(struct str s, const char *chars)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] != '\0' && strchr(chars, s.p[i]))
			return true;
	}
	return false;
}

/* Bytes that no host may hold, each with what its writer probably meant. */
static const char *host_byte_fault(struct str word)
{
	for (size_t i = 0; i < word.n; i++) {
		unsigned char c = (unsigned char)word.p[i];

		if (c < ' ' || c == 0x7f)
			return "has a control byte in it";
	}
	if (word.p[0] == ';' || word.p[0] == '#')
		return "looks like a comment; comments stand on lines of their "
		       "own";
	if (has_any(word, ","))
		return "has a comma in it; separate words by blanks";
	if (has_any(word, "\"'`"))
		return "has a quote in it; write hosts without quotes";
	if (has_any(word, "@"))
		return "has a user name in it; write the host alone";
	if (has_any(word, "%"))
		return "has a '%' in it, which no host name may hold";
	if (has_any(word, "^$()|?+\\{}"))
		return "looks like a regular expression; write a host, or "
		       "*.NAME for all names below it";
	return NULL;
}

/* Whole forms that are something else than a host. */
static const char *host_form_fault(struct str word)
{
	struct ip_addr addr;
	struct ip_net net;

	if (ip_addr_parse(word, &addr) == 0)
		return "is an address, not a name; write it under 'addresses'";
	if (ip_net_parse(word, &net) != -EINVAL)
		return "is a network, not a name; write it under 'addresses'";
	if (word.p[0] == '[')
		return "is an address, not a name; write it under 'addresses', "
		       "without brackets";
	if (str_find(word, STR("://")) < word.n)
		return "is a URL; write its host alone, and 'ports' or "
		       "'protocol' where they are not the web's";
	if (has_any(word, "/"))
		return "has a path in it; write the host alone";
	if (has_any(word, ":"))
		return "has a port in it; write the port under 'ports'";
	return NULL;
}

/* Why host_name_parse() refused what the checks above let through. */
static const char *host_name_fault(struct str name)
{
	struct str rest = name, label;

	if (name.n > 0 && name.p[name.n - 1] == '.')
		rest.n--;
	if (rest.n > HOST_NAME_MAX_LEN)
		return "is longer than the 253 bytes of a DNS name";
	if (rest.n > 0 && rest.p[rest.n - 1] == '.')
		return "has an empty label in it (two dots in a row)";
	while (str_cut(&rest, '.', &label)) {
		if (str_empty(label))
			return "has an empty label in it (two dots in a row)";
		if (label.n > HOST_LABEL_MAX_LEN)
			return "has a label of more than 63 bytes";
		if (has_any(label, "*"))
			return "has a '*' inside; the one wildcard is \"*.\" "
			       "in front of a name, for all names below it";
		if (label.n >= 4 &&
		    str_ieq(str_make(label.p, 4), STR("xn--")))
			return "has an \"xn--\" label that is not the A-label "
			       "of anything, or ends in a number";
	}
	return "is no host name: labels are made of letters, digits, '-' and "
	       "'_', and the last one is not a number";
}

/* What an allow rule must not say, though it is well formed. */
static const char *host_allow_fault(const struct host_pattern *p)
{
	if (p->kind == HOST_ANY)
		return "would allow every host; name the hosts, or try 'mode = "
		       "observe' in [policy] to find out which are needed";
	if (host_name_is_local(host_name_str(&p->name)))
		return "is never asked of the DNS, so that the rule could not "
		       "match; use 'addresses'";
	return NULL;
}

const char *host_suffix_fault(enum host_pattern_kind kind, struct str name)
{
	bool below = kind == HOST_BELOW;

	if (kind == HOST_ANY || !host_is_public_suffix(name))
		return NULL;
	if (str_chr(name, '.') == name.n)
		return below ? "would allow a whole top-level domain; a "
			       "wildcard needs at least two labels behind "
			       "\"*.\"" :
			       "is a top-level domain alone; write the whole "
			       "name of the host";
	return below ? "would allow all that anybody registers there: a public "
		       "suffix; name the hosts, or say 'public_suffix = yes' "
		       "with a reason" :
		       "is a public suffix, no host of anybody's own; name the "
		       "host, or say 'public_suffix = yes' with a reason";
}

const char *host_pattern_front(enum host_pattern_kind kind)
{
	return kind == HOST_BELOW ? "*." : kind == HOST_ANY ? "*" : "";
}

/* Why @word is no pattern. */
static const char *host_pattern_fault(struct str word, struct str name)
{
	const char *fault = host_byte_fault(word);

	if (!fault)
		fault = host_form_fault(word);
	if (!fault && word.p[0] == '.')
		fault = "begins with a dot; write *.NAME for all names below "
			"NAME, and NAME itself if that is meant too";
	return fault ? fault : host_name_fault(name);
}

/* Perhaps it has letters outside ASCII; else why it is no pattern. */
static int name_fault(struct str word, struct str name, struct host_name *ret,
		      const char **ret_why)
{
	const char *fault = host_byte_fault(word);
	int err;

	if (fault)
		return refuse(ret_why, fault);
	err = host_idn_parse(name, ret, ret_why);
	if (err == -ENOENT)
		return refuse(ret_why, host_pattern_fault(word, name));
	/* Of a few hundred bytes; what cannot be had is not allowed. */
	if (err == -ENOMEM)
		return refuse(ret_why, "cannot be read: out of memory");
	return err;
}

int host_pattern_parse(struct str word, bool deny, struct host_pattern *ret,
		       const char **ret_why)
{
	struct host_pattern p UNINITIALIZED;
	const char *fault;
	struct str name = word;

	if (str_empty(word))
		return refuse(ret_why, "is empty");
	p.kind = HOST_EXACT;
	p.name.n = 0;
	if (str_eq(word, STR("*"))) {
		p.kind = HOST_ANY;
	} else {
		if (str_starts(word, STR("*."))) {
			p.kind = HOST_BELOW;
			name = str_make(word.p + 2, word.n - 2);
		}
		/* What is wrong is looked for when it is known that it is. */
		if (host_name_parse(name, &p.name) < 0 &&
		    name_fault(word, name, &p.name, &fault) < 0)
			return refuse(ret_why, fault);
	}
	fault = deny ? NULL : host_allow_fault(&p);
	if (fault)
		return refuse(ret_why, fault);
	ret->kind = p.kind;
	ret->name.n = p.name.n;
	memcpy(ret->name.p, p.name.p, p.name.n + (size_t)(p.name.n > 0));
	return 0;
}

/* --- addresses ------------------------------------------------------------ */

bool addr_range_has(const struct addr_range *r, const struct ip_addr *a)
{
	return r->lo.family == a->family && ip_addr_cmp(&r->lo, a) <= 0 &&
	       ip_addr_cmp(a, &r->hi) <= 0;
}

bool addr_range_meets(const struct addr_range *a, const struct addr_range *b)
{
	return a->lo.family == b->lo.family &&
	       ip_addr_cmp(&a->lo, &b->hi) <= 0 &&
	       ip_addr_cmp(&b->lo, &a->hi) <= 0;
}

bool addr_range_covers(const struct addr_range *outer,
		       const struct addr_range *inner)
{
	return addr_range_has(outer, &inner->lo) &&
	       addr_range_has(outer, &inner->hi);
}

static struct addr_range range_of_net(const struct ip_net *net)
{
	struct addr_range r = { .lo = net->addr, .hi = net->addr };
	unsigned all = net->addr.family == IP_V4 ? 32 : 128;

	for (unsigned bit = net->bits; bit < all; bit++)
		r.hi.b[bit / 8] |= (uint8_t)(0x80u >> (bit % 8));
	return r;
}

/* Prefixes out of which names get their addresses inside a sandbox. */
static const struct {
	const char *lo, *hi;
} synthetic[] = {
	{ "198.18.0.0", "198.19.255.255" },
	{ "fd70:656e:7374:6f63::", "fd70:656e:7374:6f63:ffff:ffff:ffff:ffff" },
};

static struct addr_range range_of_texts(const char *lo, const char *hi)
{
	struct addr_range r;
	int bad = ip_addr_parse(str_from(lo), &r.lo);

	bad |= ip_addr_parse(str_from(hi), &r.hi);
	REQUIRE(!bad);
	return r;
}

static const char *range_fault(const struct addr_range *r, bool deny)
{
	struct addr_range mapped = range_of_texts("::ffff:0:0",
						  "::ffff:ffff:ffff");

	if (ip_addr_cmp(&r->lo, &r->hi) > 0)
		return "ends before it begins; write the lower address first";
	if (addr_range_covers(&mapped, r))
		return "is an IPv4 address written as IPv6; write it as IPv4";
	for (size_t i = 0; i < ARRAY_SIZE(synthetic); i++) {
		struct addr_range own = range_of_texts(synthetic[i].lo,
						       synthetic[i].hi);

		/* A deny of more than that is clear, and does no harm. */
		if (deny ? addr_range_covers(&own, r) :
			   addr_range_meets(&own, r))
			return "touches 198.18.0.0/15 or "
			       "fd70:656e:7374:6f63::/64, out of which names "
			       "get their addresses in a sandbox; write the "
			       "ranges beside it";
	}
	return NULL;
}

static const char *addr_fault(struct str word)
{
	if (has_any(word, "%"))
		return "has a zone; write the address without it";
	if (word.p[0] == '[')
		return "has brackets; write the address without them, and a "
		       "port under 'ports'";
	if (word.p[0] == ';' || word.p[0] == '#')
		return "looks like a comment; comments stand on lines of their "
		       "own";
	if (has_any(word, ","))
		return "has a comma in it; separate words by blanks";
	if (str_eq(word, STR("*")))
		return "is no address; all of them are \"0.0.0.0/0 ::/0\", in "
		       "a deny rule only";
	return "is no address; write ADDRESS, ADDRESS/BITS or FIRST-LAST (IPv4 "
	       "as four decimal numbers without leading zeros), and names "
	       "under 'hosts'";
}

int addr_range_parse(struct str word, bool deny, struct addr_range *ret,
		     const char **ret_why)
{
	size_t dash = str_chr(word, '-');
	struct addr_range r;
	const char *fault;
	struct ip_net net;

	if (str_empty(word))
		return refuse(ret_why, "is empty");
	if (dash < word.n) {
		struct str hi = str_make(word.p + dash + 1, word.n - dash - 1);

		if (ip_addr_parse(str_make(word.p, dash), &r.lo) < 0 ||
		    ip_addr_parse(hi, &r.hi) < 0)
			return refuse(ret_why, addr_fault(word));
		if (r.lo.family != r.hi.family)
			return refuse(ret_why, "mixes IPv4 and IPv6; write two "
				      "ranges");
	} else {
		int err = ip_net_parse(word, &net);

		if (err == -ERANGE)
			return refuse(ret_why, "has bits set behind its "
				      "prefix; write the network's first "
				      "address (192.0.2.0/24, not "
				      "192.0.2.7/24)");
		if (err < 0)
			return refuse(ret_why, addr_fault(word));
		r = range_of_net(&net);
	}
	fault = range_fault(&r, deny);
	if (fault)
		return refuse(ret_why, fault);
	*ret = r;
	return 0;
}

/* --- ports ---------------------------------------------------------------- */

static const char *port_fault(struct str word)
{
	if (has_any(word, ","))
		return "has a comma in it; separate words by blanks";
	if (word.p[0] == ';' || word.p[0] == '#')
		return "looks like a comment; comments stand on lines of their "
		       "own";
	if (ascii_is_digit(word.p[0]) && str_chr(word, '/') == word.n)
		return "is no port; ports are 1 to 65535, without leading "
		       "zeros, ranges are FIRST-LAST";
	return "is no port; write numbers (443), ranges (8000-8100) or '*' for "
	       "all, and the name of a protocol under 'protocol'";
}

static int port_parse(struct str word, uint16_t *ret)
{
	unsigned long port;

	if (str_to_uint(word, 65535, &port) < 0 || port == 0)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

int port_range_parse(struct str word, struct port_range *ret,
		     const char **ret_why)
{
	struct port_range r = { 1, 65535 };
	size_t dash = str_chr(word, '-');

	if (str_empty(word))
		return refuse(ret_why, "is empty");
	if (str_eq(word, STR("*"))) {
		*ret = r;
		return 0;
	}
	if (port_parse(str_make(word.p, dash), &r.lo) < 0)
		return refuse(ret_why, port_fault(word));
	r.hi = r.lo;
	if (dash < word.n &&
	    port_parse(str_make(word.p + dash + 1, word.n - dash - 1),
		       &r.hi) < 0)
		return refuse(ret_why, port_fault(word));
	if (r.hi < r.lo)
		return refuse(ret_why, "ends before it begins; write the lower "
			      "port first");
	*ret = r;
	return 0;
}
