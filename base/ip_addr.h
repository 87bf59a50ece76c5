/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ip_addr.h - addresses, networks and endpoints of both families
 */
#ifndef BASE_IP_ADDR_H
#define BASE_IP_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/compiler.h"
#include "base/str.h"

enum ip_family { IP_NONE = 0, IP_V4 = 4, IP_V6 = 6 };

struct ip_addr {
	uint8_t family;		/* enum ip_family */
	uint8_t b[16];		/* network order; v4 in four, rest 0 */
};

struct ip_endpoint {
	struct ip_addr addr;
	uint16_t port;		/* host order */
};

struct ip_net {
	struct ip_addr addr;	/* bits beyond @bits are zero */
	uint8_t bits;
};

#define IP_TEXT_SIZE		46	/* INET6_ADDRSTRLEN */
#define IP_ENDPOINT_TEXT_SIZE	54	/* "[v6]:65535" */

/**
 * ip_addr_parse() - Strict: four decimal numbers without leading zeros, or
 *                   RFC 4291 text without zone; never inet_aton()'s spellings
 * Return: 0 or -EINVAL
 */
NODISCARD int ip_addr_parse(struct str text, struct ip_addr *ret);
/* "ADDRESS/BITS" or a lone address; -EINVAL, or -ERANGE for set host bits. */
NODISCARD int ip_net_parse(struct str text, struct ip_net *ret);
/* "192.0.2.1", "192.0.2.1:53", "[2001:db8::1]:53", "2001:db8::1". */
NODISCARD int ip_endpoint_parse(struct str text, uint16_t default_port,
				struct ip_endpoint *ret);

/* RFC 5952 text. */
void ip_addr_text(const struct ip_addr *a, char out[IP_TEXT_SIZE]);
void ip_endpoint_text(const struct ip_endpoint *e,
		      char out[IP_ENDPOINT_TEXT_SIZE]);

bool ip_addr_eq(const struct ip_addr *a, const struct ip_addr *b);
int ip_addr_cmp(const struct ip_addr *a, const struct ip_addr *b);
bool ip_net_has(const struct ip_net *net, const struct ip_addr *a);
/* The network of @bits bits that @a lies in; @bits: up to its family's. */
struct ip_net ip_net_of(const struct ip_addr *a, unsigned bits);
/* What one machine may have all of: an IPv4 address, the /64 of an IPv6 one. */
struct ip_net ip_net_of_machine(const struct ip_addr *a);
unsigned ip_addr_bits(const struct ip_addr *a);	/* 32, 128; IP_NONE: 0 */

/**
 * ip_net_tidy() - Put networks in order, without those that lie in others
 * Return: how many of the @n are left, in front; ip_net_find() looks in them
 */
size_t ip_net_tidy(struct ip_net *net, size_t n);
bool ip_net_find(const struct ip_net *net, size_t n, const struct ip_addr *a);

/* Networks of both families, as somebody listed them. */
struct ip_nets {
	const struct ip_net *net;
	size_t n;
};

/* A mapped address is the IPv4 one that it carries. */
bool ip_nets_have(const struct ip_nets *nets, const struct ip_addr *a);

/* ::ffff:a.b.c.d becomes a.b.c.d; everything else stays. */
struct ip_addr ip_addr_unmapped(const struct ip_addr *a);
struct ip_addr ip_addr_v4(uint32_t host_order);
uint32_t ip_addr_v4_bits(const struct ip_addr *a);	/* host order; v4 */

/* -EAFNOSUPPORT for other families. */
NODISCARD int ip_endpoint_from_sockaddr(const struct sockaddr *sa, socklen_t n,
					struct ip_endpoint *ret);
socklen_t ip_endpoint_to_sockaddr(const struct ip_endpoint *e,
				  struct sockaddr_storage *ret);

#endif /* BASE_IP_ADDR_H */
