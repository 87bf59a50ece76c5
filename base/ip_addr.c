/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ip_addr.c - addresses, networks and endpoints of both families
 *
 * Parsing is our own, since a checker and a dialler that read one text in two
 * ways are how filters are passed by: there is one spelling of an IPv4 address
 * here, four decimal numbers, and nothing else is one.
 */
#include "base/ip_addr.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse_v4(struct str text, uint8_t out[4])
{
	struct str rest = text, part;

	for (size_t i = 0; i < 4; i++) {
		unsigned long v;

		if (i < 3 && str_chr(rest, '.') == rest.n)
			return -EINVAL;
		if (!str_cut(&rest, '.', &part) || part.n > 3)
			return -EINVAL;
		if (str_to_uint(part, 255, &v))
			return -EINVAL;
		out[i] = (uint8_t)v;
	}
	/* The last part must reach the end: "1.2.3.4." is not an address. */
	return part.p + part.n == text.p + text.n ? 0 : -EINVAL;
}

static int hex_value(char c)
{
	if (ascii_is_digit(c))
		return c - '0';
	c = ascii_lower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One to four hexadecimal digits. */
static int parse_group(struct str text, uint8_t out[2])
{
	unsigned v = 0;

	if (text.n < 1 || text.n > 4)
		return -EINVAL;
	for (size_t i = 0; i < text.n; i++) {
		int digit = hex_value(text.p[i]);

		if (digit < 0)
			return -EINVAL;
		v = v << 4 | (unsigned)digit;
	}
	out[0] = (uint8_t)(v >> 8);
	out[1] = (uint8_t)v;
	return 0;
}

/*
 * Groups between single colons, the last one perhaps dotted, into at most
 * sixteen bytes; an empty text is no group.  @ret_n: bytes written.
 */
static int parse_groups(struct str text, bool may_dot, uint8_t out[16],
			size_t *ret_n)
{
	size_t n = 0;

	while (text.n > 0) {
		size_t end = str_chr(text, ':');
		struct str part = str_make(text.p, end);
		bool last = end == text.n;
		bool dotted = last && str_chr(part, '.') < part.n;
		size_t size = dotted ? 4 : 2;

		if (n + size > 16 || (dotted && !may_dot))
			return -EINVAL;
		if (dotted ? parse_v4(part, out + n) :
			     parse_group(part, out + n))
			return -EINVAL;
		n += size;
		if (last)
			break;
		text = str_make(text.p + end + 1, text.n - end - 1);
		if (str_empty(text))
			return -EINVAL;
	}
	*ret_n = n;
	return 0;
}

/* Where "::" stands in @text, or @text.n. */
static size_t find_gap(struct str text)
{
	for (size_t i = 0; i + 1 < text.n; i++) {
		if (text.p[i] == ':' && text.p[i + 1] == ':')
			return i;
	}
	return text.n;
}

static int parse_v6(struct str text, uint8_t out[16])
{
	uint8_t head[16], tail[16];
	size_t nhead = 0, ntail = 0;
	size_t gap = find_gap(text);
	struct str behind;

	if (gap == text.n) {
		if (parse_groups(text, true, out, &nhead) || nhead != 16)
			return -EINVAL;
		return 0;
	}
	behind = str_make(text.p + gap + 2, text.n - gap - 2);
	if (parse_groups(str_make(text.p, gap), false, head, &nhead) ||
	    parse_groups(behind, true, tail, &ntail))
		return -EINVAL;
	/* "::" stands for one group at least (RFC 4291 2.2). */
	if (nhead + ntail > 14)
		return -EINVAL;
	memset(out, 0, 16);
	memcpy(out, head, nhead);
	memcpy(out + 16 - ntail, tail, ntail);
	return 0;
}

int ip_addr_parse(struct str text, struct ip_addr *ret)
{
	struct ip_addr a = { 0 };
	int err;

	if (str_chr(text, ':') < text.n) {
		a.family = IP_V6;
		err = parse_v6(text, a.b);
	} else {
		a.family = IP_V4;
		err = parse_v4(text, a.b);
	}
	if (!err)
		*ret = a;
	return err;
}

static unsigned family_bits(uint8_t family)
{
	return family == IP_V4 ? 32 : 128;
}

/* The bits of byte @i that lie within the first @bits. */
static uint8_t byte_mask(unsigned bits, unsigned i)
{
	if (bits >= 8 * (i + 1))
		return 0xff;
	if (bits <= 8 * i)
		return 0;
	return (uint8_t)(0xff00u >> (bits - 8 * i));
}

int ip_net_parse(struct str text, struct ip_net *ret)
{
	size_t slash = str_chr(text, '/');
	struct ip_net net;
	unsigned long bits;

	if (ip_addr_parse(str_make(text.p, slash), &net.addr))
		return -EINVAL;
	bits = family_bits(net.addr.family);
	if (slash < text.n) {
		struct str tail = str_make(text.p + slash + 1,
					   text.n - slash - 1);

		if (str_to_uint(tail, bits, &bits))
			return -EINVAL;
	}
	for (unsigned i = 0; i < 16; i++) {
		if (net.addr.b[i] & ~byte_mask((unsigned)bits, i))
			return -ERANGE;
	}
	net.bits = (uint8_t)bits;
	*ret = net;
	return 0;
}

static int parse_port(struct str text, uint16_t *ret)
{
	unsigned long port;

	if (str_to_uint(text, 65535, &port) || port == 0)
		return -EINVAL;
	*ret = (uint16_t)port;
	return 0;
}

/* "[ADDRESS]" or "[ADDRESS]:PORT" */
static int parse_bracketed(struct str text, struct ip_endpoint *e)
{
	size_t end = str_chr(text, ']');
	struct str tail;

	if (end == text.n)
		return -EINVAL;
	if (ip_addr_parse(str_make(text.p + 1, end - 1), &e->addr) ||
	    e->addr.family != IP_V6)
		return -EINVAL;
	tail = str_make(text.p + end + 1, text.n - end - 1);
	if (str_empty(tail))
		return 0;
	if (tail.p[0] != ':')
		return -EINVAL;
	return parse_port(str_make(tail.p + 1, tail.n - 1), &e->port);
}

/* "ADDRESS" of either family or "ADDRESS:PORT" of IPv4 */
static int parse_bare(struct str text, struct ip_endpoint *e)
{
	size_t colon = str_chr(text, ':');
	struct str tail = str_make(text.p + colon, text.n - colon);

	if (colon == text.n || str_chr(text, '.') > colon)
		return ip_addr_parse(text, &e->addr);
	tail = str_make(tail.p + 1, tail.n - 1);
	if (ip_addr_parse(str_make(text.p, colon), &e->addr))
		return -EINVAL;
	return parse_port(tail, &e->port);
}

int ip_endpoint_parse(struct str text, uint16_t default_port,
		      struct ip_endpoint *ret)
{
	struct ip_endpoint e = { .port = default_port };
	int err;

	if (str_starts(text, STR("[")))
		err = parse_bracketed(text, &e);
	else
		err = parse_bare(text, &e);
	if (!err)
		*ret = e;
	return err;
}

static unsigned group_of(const struct ip_addr *a, unsigned i)
{
	return (unsigned)a->b[2 * i] << 8 | a->b[2 * i + 1];
}

/* The longest run of two or more zero groups among the first @n, leftmost. */
static void longest_zeros(const struct ip_addr *a, unsigned n, unsigned *at,
			  unsigned *len)
{
	unsigned run = 0;

	*at = n;
	*len = 1;
	for (unsigned i = 0; i < n; i++) {
		run = group_of(a, i) == 0 ? run + 1 : 0;
		if (run > *len) {
			*len = run;
			*at = i + 1 - run;
		}
	}
}

static bool is_mapped(const struct ip_addr *a)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return a->family == IP_V6 && memcmp(a->b, prefix, 12) == 0;
}

/* @fmt's result behind the @n bytes of @out; the sizes were chosen to fit. */
static size_t put(char *out, size_t cap, size_t n, const char *fmt, ...)
	PRINTF(4, 5);

static size_t put(char *out, size_t cap, size_t n, const char *fmt, ...)
{
	va_list ap;
	int more;

	va_start(ap, fmt);
	more = vsnprintf(out + n, cap - n, fmt, ap);
	va_end(ap);
	REQUIRE(more >= 0 && (size_t)more < cap - n);
	return n + (size_t)more;
}

static size_t put_v4(char *out, size_t n, const uint8_t b[4])
{
	REQUIRE(IP_TEXT_SIZE - n >= sizeof("255.255.255.255"));
	for (unsigned i = 0; i < 4; i++) {
		char digits[STR_UINT_MAX];
		size_t len = str_put_uint(b[i], digits);

		if (i > 0)
			out[n++] = '.';
		memcpy(out + n, digits, len);
		n += len;
	}
	out[n] = '\0';
	return n;
}

void ip_addr_text(const struct ip_addr *a, char out[IP_TEXT_SIZE])
{
	unsigned groups = is_mapped(a) ? 6 : 8;
	unsigned zero_at, zero_len;
	size_t n = 0;

	if (a->family == IP_V4) {
		put_v4(out, 0, a->b);
		return;
	}
	if (a->family != IP_V6) {
		put(out, IP_TEXT_SIZE, 0, "-");
		return;
	}
	longest_zeros(a, groups, &zero_at, &zero_len);
	for (unsigned i = 0; i < groups; i++) {
		if (i == zero_at) {
			n = put(out, IP_TEXT_SIZE, n, "::");
			i += zero_len - 1;
			continue;
		}
		if (n > 0 && out[n - 1] != ':')
			n = put(out, IP_TEXT_SIZE, n, ":");
		n = put(out, IP_TEXT_SIZE, n, "%x", group_of(a, i));
	}
	if (groups == 6) {
		n = put(out, IP_TEXT_SIZE, n, ":");
		put_v4(out, n, a->b + 12);
	}
}

void ip_endpoint_text(const struct ip_endpoint *e,
		      char out[IP_ENDPOINT_TEXT_SIZE])
{
	char addr[IP_TEXT_SIZE], port[STR_UINT_MAX];
	bool v6 = e->addr.family == IP_V6;
	size_t n = 0, len;

	static_assert(IP_ENDPOINT_TEXT_SIZE >= IP_TEXT_SIZE + 3 + 5,
		      "an address, its brackets and a port");
	ip_addr_text(&e->addr, addr);
	len = strlen(addr);
	if (v6)
		out[n++] = '[';
	memcpy(out + n, addr, len);
	n += len;
	if (v6)
		out[n++] = ']';
	out[n++] = ':';
	len = str_put_uint(e->port, port);
	memcpy(out + n, port, len);
	out[n + len] = '\0';
}

static inline uint64_t load_be64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return be64toh(v);
}

bool ip_addr_eq(const struct ip_addr *a, const struct ip_addr *b)
{
	return ip_addr_cmp(a, b) == 0;
}

int ip_addr_cmp(const struct ip_addr *a, const struct ip_addr *b)
{
	uint64_t x, y;

	if (a->family != b->family)
		return a->family < b->family ? -1 : 1;
	x = load_be64(a->b);
	y = load_be64(b->b);
	if (x == y) {
		x = load_be64(a->b + 8);
		y = load_be64(b->b + 8);
	}
	return (x > y) - (x < y);
}

bool ip_net_has(const struct ip_net *net, const struct ip_addr *a)
{
	if (net->addr.family != a->family)
		return false;
	for (unsigned i = 0; 8 * i < net->bits; i++) {
		if ((net->addr.b[i] ^ a->b[i]) & byte_mask(net->bits, i))
			return false;
	}
	return true;
}

struct ip_net ip_net_of(const struct ip_addr *a, unsigned bits)
{
	struct ip_net net = { .addr = *a, .bits = (uint8_t)bits };

	REQUIRE(bits <= ip_addr_bits(a));
	for (unsigned i = 0; i < sizeof(net.addr.b); i++)
		net.addr.b[i] &= byte_mask(bits, i);
	return net;
}

struct ip_net ip_net_of_machine(const struct ip_addr *a)
{
	struct ip_addr bare = ip_addr_unmapped(a);

	/* Of loopback one address is all there is. */
	if (bare.family != IP_V6 || bare.b[0] == 0)
		return ip_net_of(&bare, ip_addr_bits(&bare));
	return ip_net_of(&bare, 64);
}

unsigned ip_addr_bits(const struct ip_addr *a)
{
	return a->family == IP_NONE ? 0 : (unsigned)family_bits(a->family);
}

/* Whatever holds another stands before it. */
static int net_cmp(const void *a, const void *b)
{
	const struct ip_net *x = a, *y = b;
	int by_addr = ip_addr_cmp(&x->addr, &y->addr);

	return by_addr ? by_addr : (int)x->bits - (int)y->bits;
}

size_t ip_net_tidy(struct ip_net *net, size_t n)
{
	size_t i, kept = 0;

	if (n > 1)
		qsort(net, n, sizeof(net[0]), net_cmp);
	/* Networks lie in each other or apart: the last one kept is the only
	 * one that can hold the next. */
	for (i = 0; i < n; i++)
		if (kept == 0 || !ip_net_has(&net[kept - 1], &net[i].addr))
			net[kept++] = net[i];
	return kept;
}

bool ip_net_find(const struct ip_net *net, size_t n, const struct ip_addr *a)
{
	size_t lo = 0, hi = n;

	/* The last one that does not begin behind @a. */
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (ip_addr_cmp(&net[mid].addr, a) <= 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo > 0 && ip_net_has(&net[lo - 1], a);
}

bool ip_nets_have(const struct ip_nets *nets, const struct ip_addr *a)
{
	struct ip_addr bare = ip_addr_unmapped(a);
	size_t i;

	for (i = 0; i < nets->n; i++)
		if (ip_net_has(&nets->net[i], &bare))
			return true;
	return false;
}

struct ip_addr ip_addr_unmapped(const struct ip_addr *a)
{
	struct ip_addr v4 = { .family = IP_V4 };

	if (!is_mapped(a))
		return *a;
	memcpy(v4.b, a->b + 12, 4);
	return v4;
}

struct ip_addr ip_addr_v4(uint32_t host_order)
{
	return (struct ip_addr){
		.family = IP_V4,
		.b = { (uint8_t)(host_order >> 24), (uint8_t)(host_order >> 16),
		       (uint8_t)(host_order >> 8), (uint8_t)host_order },
	};
}

uint32_t ip_addr_v4_bits(const struct ip_addr *a)
{
	REQUIRE(a->family == IP_V4);
	return (uint32_t)a->b[0] << 24 | (uint32_t)a->b[1] << 16 |
	       (uint32_t)a->b[2] << 8 | a->b[3];
}

int ip_endpoint_from_sockaddr(const struct sockaddr *sa, socklen_t n,
			      struct ip_endpoint *ret)
{
	struct ip_endpoint e = { .port = 0 };
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	if (n >= sizeof(in) && sa->sa_family == AF_INET) {
		memcpy(&in, sa, sizeof(in));
		e.addr.family = IP_V4;
		memcpy(e.addr.b, &in.sin_addr, 4);
		e.port = ntohs(in.sin_port);
	} else if (n >= sizeof(in6) && sa->sa_family == AF_INET6) {
		memcpy(&in6, sa, sizeof(in6));
		e.addr.family = IP_V6;
		memcpy(e.addr.b, &in6.sin6_addr, 16);
		e.port = ntohs(in6.sin6_port);
	} else {
		return -EAFNOSUPPORT;
	}
	*ret = e;
	return 0;
}

socklen_t ip_endpoint_to_sockaddr(const struct ip_endpoint *e,
				  struct sockaddr_storage *ret)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in in = { .sin_family = AF_INET };

	memset(ret, 0, sizeof(*ret));
	if (e->addr.family == IP_V4) {
		in.sin_port = htons(e->port);
		memcpy(&in.sin_addr, e->addr.b, 4);
		memcpy(ret, &in, sizeof(in));
		return sizeof(in);
	}
	REQUIRE(e->addr.family == IP_V6);
	in6.sin6_port = htons(e->port);
	memcpy(&in6.sin6_addr, e->addr.b, 16);
	memcpy(ret, &in6, sizeof(in6));
	return sizeof(in6);
}
