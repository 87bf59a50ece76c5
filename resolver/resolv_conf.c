/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolv_conf.c - upstream servers as people write them, and in resolv.conf(5)
 */
#include <errno.h>

#include "resolver/dns_msg.h"
#include "resolver/name_map.h"
#include "resolver/resolver.h"

#define DNS_PORT	53
#define TLS_PORT	853

/* Cut "%zone" off the end of an address. */
static bool zone_take(struct str *text, struct resolver_server *s)
{
	struct str rest = *text, addr;

	str_cut(&rest, '%', &addr);
	if (addr.n == text->n)
		return true;
	if (rest.n == 0 || rest.n >= sizeof(s->zone))
		return false;
	memcpy(s->zone, rest.p, rest.n);
	*text = addr;
	return true;
}

static bool is_link_local(const struct ip_addr *a)
{
	return a->family == IP_V6 && a->b[0] == 0xfe &&
	       (a->b[1] & 0xc0) == 0x80;
}

/* What no server can have, and what would be ourselves. */
static int addr_check(const struct resolver_server *s, const char **ret_why)
{
	static const struct ip_addr none[] = {
		{ .family = IP_V4 }, { .family = IP_V6 },
	};
	const struct ip_addr *a = &s->at.addr;
	bool local = is_link_local(a);

	*ret_why = "is the address of nobody";
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		if (ip_addr_eq(a, &none[i]))
			return -EINVAL;
	*ret_why = "is the address of many";
	if (a->family == IP_V4 ? a->b[0] >= 224 : a->b[0] == 0xff)
		return -EINVAL;
	*ret_why = "is an address that sandboxes are given for names: Penstock would ask itself";
	if (name_map_is_synthetic(a))
		return -ELOOP;
	*ret_why = "is link-local: say on which interface, as in fe80::1%eth0";
	if (local && !s->zone[0])
		return -EINVAL;
	*ret_why = "has an interface ('%'), which only link-local IPv6 addresses have";
	return s->zone[0] && !local ? -EINVAL : 0;
}

/* Take "[ADDRESS]:PORT" apart, and "ADDRESS:PORT" with one colon. */
static bool port_take(struct str *text, uint16_t *ret)
{
	struct str inner = *text, port = STR_NONE;
	unsigned long v;
	size_t at;

	if (inner.n && inner.p[0] == '[') {
		at = str_chr(inner, ']');
		if (at == inner.n)
			return false;
		port = str_make(inner.p + at + 1, inner.n - at - 1);
		inner = str_make(inner.p + 1, at - 1);
		if (port.n == 0) {
			*text = inner;
			return true;
		}
	} else {
		at = str_chr(inner, ':');
		port = str_make(inner.p + at, inner.n - at);
		inner.n = at;
		if (port.n == 0 ||
		    str_chr(str_make(port.p + 1, port.n - 1), ':') + 1 < port.n)
			return true;		/* none, or an IPv6 address */
	}
	if (port.p[0] != ':' ||
	    str_to_uint(str_make(port.p + 1, port.n - 1), UINT16_MAX, &v) < 0 ||
	    v == 0)
		return false;
	*ret = (uint16_t)v;
	*text = inner;
	return true;
}

static int addr_take(struct str text, struct resolver_server *s,
		     const char **ret_why)
{
	*ret_why = "is no address (a name could not be looked up)";
	if (!zone_take(&text, s) || ip_addr_parse(text, &s->at.addr) != 0)
		return -EINVAL;
	s->at.addr = ip_addr_unmapped(&s->at.addr);
	return addr_check(s, ret_why);
}

/* "#name" of whom the certificate must be; a host name as in DNS. */
static bool tls_name_take(struct str *text, struct resolver_server *s)
{
	struct str rest = *text, front;
	struct dns_name name;
	size_t n;

	str_cut(&rest, '#', &front);
	if (front.n == text->n)
		return true;
	if (rest.n == 0 || rest.n >= sizeof(s->tls_name))
		return false;
	for (size_t i = 0; i < rest.n; i++)
		s->tls_name[i] = ascii_lower(rest.p[i]);
	*text = front;
	return dns_name_from_text(str_make(s->tls_name, rest.n), &name) == 0 &&
	       dns_name_text(&name, s->tls_name, &n) && n == rest.n &&
	       ip_addr_parse(rest, &(struct ip_addr){ 0 }) != 0;
}

int resolver_parse_server(struct str text, struct resolver_server *ret,
			  const char **ret_why)
{
	struct resolver_server s = { .at.port = DNS_PORT };
	int err;

	if (str_starts(text, STR("tls://"))) {
		text = str_make(text.p + 6, text.n - 6);
		s.tls = true;
		s.at.port = TLS_PORT;
		*ret_why = "has no right name behind '#': tls://ADDRESS#dns.example.net";
		if (!tls_name_take(&text, &s))
			return -EINVAL;
	}
	*ret_why = "has no right port: ADDRESS:PORT or [ADDRESS]:PORT";
	if (!port_take(&text, &s.at.port))
		return -EINVAL;
	err = addr_take(text, &s, ret_why);
	if (!err)
		*ret = s;
	return err;
}

bool resolver_want_tls(const struct resolver_servers *servers)
{
	for (size_t i = 0; i < servers->n; i++) {
		if (servers->server[i].tls)
			return true;
	}
	return false;
}

static bool is_known(const struct resolver_servers *list,
		     const struct resolver_server *s)
{
	for (size_t i = 0; i < list->n; i++) {
		if (ip_addr_eq(&list->server[i].at.addr, &s->at.addr) &&
		    strcmp(list->server[i].zone, s->zone) == 0)
			return true;
	}
	return false;
}

void resolver_parse_conf(struct str text, struct resolver_servers *ret,
			 struct resolver_conf_faults *ret_faults)
{
	struct str line, word;
	const char *why;

	ret->n = 0;
	*ret_faults = (struct resolver_conf_faults){ 0 };
	while (str_cut(&text, '\n', &line)) {
		struct resolver_server s = { .at.port = DNS_PORT };
		int err;

		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line.n--;
		if (!str_word(&line, &word) ||
		    !str_eq(word, STR("nameserver")))
			continue;
		err = str_word(&line, &word) ? addr_take(word, &s, &why)
					     : -EINVAL;
		if (err == -ELOOP)
			ret_faults->self++;
		else if (err)
			ret_faults->bad++;
		else if (ret->n < RESOLVER_SERVERS_MAX && !is_known(ret, &s))
			ret->server[ret->n++] = s;
	}
}
