/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolv_conf.c - the nameserver lines of resolv.conf(5)
 */
#include "resolver/resolver.h"

#define DNS_PORT	53

static bool server_parse(struct str text, struct ip_endpoint *ret)
{
	static const struct ip_addr any4 = { .family = IP_V4 };
	static const struct ip_addr any6 = { .family = IP_V6 };
	struct ip_addr a;

	if (ip_addr_parse(text, &a) != 0)
		return false;
	a = ip_addr_unmapped(&a);
	if (ip_addr_eq(&a, &any4) || ip_addr_eq(&a, &any6))
		return false;
	*ret = (struct ip_endpoint){ .addr = a, .port = DNS_PORT };
	return true;
}

static bool is_known(const struct ip_endpoint *list, size_t n,
		     const struct ip_addr *a)
{
	for (size_t i = 0; i < n; i++) {
		if (ip_addr_eq(&list[i].addr, a))
			return true;
	}
	return false;
}

size_t resolver_parse_conf(struct str text,
			   struct ip_endpoint ret[RESOLVER_SERVERS_MAX],
			   size_t *ret_bad)
{
	struct str line, word;
	size_t n = 0, bad = 0;

	while (str_cut(&text, '\n', &line)) {
		struct ip_endpoint at;

		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line.n--;
		if (!str_word(&line, &word) ||
		    !str_eq(word, STR("nameserver")))
			continue;
		if (!str_word(&line, &word) || !server_parse(word, &at))
			bad++;
		else if (n < RESOLVER_SERVERS_MAX &&
			 !is_known(ret, n, &at.addr))
			ret[n++] = at;
	}
	*ret_bad = bad;
	return n;
}
