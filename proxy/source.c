/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.c - the addresses that flows leave from, where the operator says so
 *
 * A socket is bound to the address alone: the port is chosen by connect(), when
 * the destination is known, so that one source has as many ports for each of
 * them as there are, and not that many in all.
 */
#include "proxy/source.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/log.h"

int source_parse(struct str text, struct source *ret, const char **ret_why)
{
	struct source s = { .v4.family = IP_NONE, .v6.family = IP_NONE };
	struct str word;

	*ret_why = "is no address, or one of each family: write 192.0.2.1 or 192.0.2.1 2001:db8::1";
	while (str_word(&text, &word)) {
		struct ip_addr a;
		struct ip_addr *to;

		if (ip_addr_parse(word, &a) < 0)
			return -EINVAL;
		to = a.family == IP_V4 ? &s.v4 : &s.v6;
		if (to->family != IP_NONE)
			return -EINVAL;
		*to = a;
	}
	if (!source_is_set(&s))
		return -EINVAL;
	*ret = s;
	return 0;
}

int source_bind(const struct source *s, int fd, int family)
{
	struct ip_endpoint at = { .port = 0 };
	struct sockaddr_storage ss;
	socklen_t n;
	int on = 1;

	if (!s)
		return 0;
	at.addr = family == AF_INET ? s->v4 : s->v6;
	if (at.addr.family == IP_NONE)
		return 0;
	n = ip_endpoint_to_sockaddr(&at, &ss);
	if (setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on,
		       sizeof(on)) == -1 ||
	    bind(fd, (const struct sockaddr *)&ss, n) == -1)
		return -errno;
	return 0;
}

int source_check(const struct source *s, struct ip_addr *ret_addr)
{
	const struct ip_addr *each[] = { &s->v4, &s->v6 };

	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		int family = each[i]->family == IP_V4 ? AF_INET : AF_INET6;
		CLEANUP(fd_closep) int fd = -1;
		int err = 0;

		if (each[i]->family == IP_NONE)
			continue;
		fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		err = fd < 0 ? -errno : source_bind(s, fd, family);
		if (err < 0) {
			*ret_addr = *each[i];
			return err;
		}
	}
	return 0;
}

int source_open(const struct source *s)
{
	char text[IP_TEXT_SIZE];
	struct ip_addr addr;
	int err = s ? source_check(s, &addr) : 0;

	if (err == 0)
		return 0;
	ip_addr_text(&addr, text);
	log_error("source: %s: %s%s", text, strerror(-err),
		  err == -EADDRNOTAVAIL ? ": no interface of this host has it: add it (ip addr add), start after it is there, or name another"
					: "");
	return err;
}
