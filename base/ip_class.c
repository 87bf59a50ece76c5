/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ip_class.c - what kind of address it is, and whether we ever dial it
 *
 * Theory
 * ======
 *
 * Two tables follow the IANA IPv4 and IPv6 special-purpose address registries
 * (RFC 6890, RFC 8190 and later entries).  The first line that holds the
 * address decides, so exact addresses stand before the blocks around them.
 * In IPv6 only 2000::/3 is handed out to the Internet (RFC 4291 2.4): what no
 * line names and does not lie there is reserved.
 *
 * Public is what the registries call globally reachable, with one difference:
 * anycast addresses of the nearest gateway (PCP, TURN, SRP) and identifiers
 * that are not places (ORCHID, DRIP) stay reserved.  A gateway that opens ports
 * on request is nothing for a sandbox to talk to.
 *
 * Forms that carry an IPv4 address are judged by what they carry, because some
 * router between here and there may unwrap them:
 *
 *   form             prefix            carried at       public inside becomes
 *   mapped           ::ffff:0:0/96     last 32 bits     public (it is IPv4)
 *   compatible       ::/96             last 32 bits     reserved, RFC 4291
 *   translated       ::ffff:0:0:0/96   last 32 bits     reserved, RFC 2765
 *   NAT64            64:ff9b::/96      last 32 bits     public, RFC 6052
 *   NAT64, local     64:ff9b:1::/48    last 32 bits     reserved, RFC 8215
 *   6to4             2002::/16         bits 16 to 47    reserved, RFC 7526
 *   Teredo           2001::/32         server, client   reserved, RFC 4380
 *   ISATAP           any, 0:5efe:      last 32 bits     public, RFC 5214
 *
 * Where inside 64:ff9b:1::/48 the operator of a translator put the address is
 * not known to us (RFC 6052 2.2 has several places), so public is never
 * believed there.  A network-specific NAT64 prefix cannot be seen from an
 * address at all; a host that has one is protected by its translator's filter.
 */
#include "base/ip_class.h"

#include <string.h>

struct class_block {
	uint8_t prefix[16];
	uint8_t bits;
	enum ip_class class;
};

#define V4(a, b, c, d)	{ (a), (b), (c), (d) }
/* Eight groups of sixteen bits, as the text has them. */
#define HI(g)		((g) >> 8)
#define LO(g)		((g) & 0xff)
#define V6(a, b, c, d, e, f, g, h) \
	{ HI(a), LO(a), HI(b), LO(b), HI(c), LO(c), HI(d), LO(d), \
	  HI(e), LO(e), HI(f), LO(f), HI(g), LO(g), HI(h), LO(h) }

static const struct class_block v4_blocks[] = {
	/* Metadata services.  169.254.169.254: EC2, Azure, Google, Oracle,
	 * OpenStack, DigitalOcean, Hetzner, Akamai and most others. */
	{ V4(169, 254, 169, 254), 32, IP_METADATA },
	/* Credentials of ECS tasks, and of EKS pods. */
	{ V4(169, 254, 170, 2), 32, IP_METADATA },
	{ V4(169, 254, 170, 23), 32, IP_METADATA },
	{ V4(169, 254, 0, 23), 32, IP_METADATA },	/* Tencent Cloud */
	{ V4(169, 254, 42, 42), 32, IP_METADATA },	/* Scaleway */
	{ V4(100, 100, 100, 200), 32, IP_METADATA },	/* Alibaba Cloud */
	{ V4(100, 96, 0, 96), 32, IP_METADATA },	/* Volcano Engine */
	{ V4(168, 63, 129, 16), 32, IP_METADATA },	/* Azure wire server */
	{ V4(192, 0, 0, 192), 32, IP_METADATA },	/* Oracle, classic */

	{ V4(0, 0, 0, 0), 8, IP_UNSPECIFIED },		/* RFC 791 3.2 */
	{ V4(10, 0, 0, 0), 8, IP_PRIVATE },		/* RFC 1918 */
	{ V4(100, 64, 0, 0), 10, IP_CGNAT },		/* RFC 6598 */
	{ V4(127, 0, 0, 0), 8, IP_LOOPBACK },		/* RFC 1122 3.2.1.3 */
	{ V4(169, 254, 0, 0), 16, IP_LINK_LOCAL },	/* RFC 3927 */
	{ V4(172, 16, 0, 0), 12, IP_PRIVATE },		/* RFC 1918 */
	/* IETF protocol assignments: DS-Lite, NAT64 discovery, PCP and TURN
	 * anycast, the dummy address (RFC 6890, 7335, 7050, 7723, 8155). */
	{ V4(192, 0, 0, 0), 24, IP_RESERVED },
	{ V4(192, 0, 2, 0), 24, IP_DOCUMENTATION },	/* RFC 5737 */
	{ V4(192, 88, 99, 0), 24, IP_RESERVED },	/* 6to4, RFC 7526 */
	{ V4(192, 168, 0, 0), 16, IP_PRIVATE },		/* RFC 1918 */
	{ V4(198, 18, 0, 0), 15, IP_BENCHMARK },	/* RFC 2544 */
	{ V4(198, 51, 100, 0), 24, IP_DOCUMENTATION },	/* RFC 5737 */
	{ V4(203, 0, 113, 0), 24, IP_DOCUMENTATION },	/* RFC 5737 */
	{ V4(224, 0, 0, 0), 4, IP_MULTICAST },		/* RFC 5771 */
	{ V4(240, 0, 0, 0), 4, IP_RESERVED },		/* RFC 1112 4, 8190 */
};

static const struct class_block v6_blocks[] = {
	/* Metadata services. */
	{ V6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128, IP_METADATA }, /* EC2 */
	{ V6(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23), 128, IP_METADATA }, /* EKS */
	/* Google */
	{ V6(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128, IP_METADATA },
	/* Oracle */
	{ V6(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe), 128, IP_METADATA },
	/* Akamai */
	{ V6(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1), 128, IP_METADATA },
	/* Scaleway */
	{ V6(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42), 128, IP_METADATA },
	/* OpenStack */
	{ V6(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe), 128, IP_METADATA },

	{ V6(0, 0, 0, 0, 0, 0, 0, 0), 128, IP_UNSPECIFIED },	/* RFC 4291 */
	{ V6(0, 0, 0, 0, 0, 0, 0, 1), 128, IP_LOOPBACK },	/* RFC 4291 */
	{ V6(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, IP_PUBLIC },	/* RFC 6052 */
	/* AMT and AS112 inside the IETF block are globally reachable
	 * (RFC 7450, 7535); the rest of the block is not (RFC 2928). */
	{ V6(0x2001, 3, 0, 0, 0, 0, 0, 0), 32, IP_PUBLIC },
	{ V6(0x2001, 4, 0x112, 0, 0, 0, 0, 0), 48, IP_PUBLIC },
	{ V6(0x2001, 2, 0, 0, 0, 0, 0, 0), 48, IP_BENCHMARK },	/* RFC 5180 */
	{ V6(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, IP_RESERVED },
	{ V6(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, IP_DOCUMENTATION },
	{ V6(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, IP_RESERVED },	/* 6to4 */
	/* RFC 9637 */
	{ V6(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, IP_DOCUMENTATION },
	{ V6(0x2000, 0, 0, 0, 0, 0, 0, 0), 3, IP_PUBLIC },	/* RFC 4291 */
	{ V6(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, IP_PRIVATE },	/* RFC 4193 */
	{ V6(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, IP_LINK_LOCAL },	/* RFC 4291 */
	{ V6(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, IP_PRIVATE },	/* RFC 3879 */
	{ V6(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, IP_MULTICAST },	/* RFC 4291 */
	/* The rest, 100::/64, 100:0:0:1::/64 and 5f00::/16 among it. */
	{ V6(0, 0, 0, 0, 0, 0, 0, 0), 0, IP_RESERVED },
};

bool ip_class_block(size_t index, struct ip_net *ret)
{
	bool v4 = index < ARRAY_SIZE(v4_blocks);
	const struct class_block *block;

	if (!v4)
		index -= ARRAY_SIZE(v4_blocks);
	if (!v4 && index >= ARRAY_SIZE(v6_blocks))
		return false;
	block = v4 ? &v4_blocks[index] : &v6_blocks[index];
	*ret = (struct ip_net){
		.addr.family = v4 ? IP_V4 : IP_V6, .bits = block->bits,
	};
	memcpy(ret->addr.b, block->prefix, sizeof(ret->addr.b));
	return true;
}

static bool has_prefix(const uint8_t *b, const uint8_t *prefix, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	if (memcmp(b, prefix, whole))
		return false;
	return rest == 0 || ((b[whole] ^ prefix[whole]) >> (8 - rest)) == 0;
}

static enum ip_class look_up(const struct class_block *block, size_t n,
			     const uint8_t *b)
{
	for (size_t i = 0; i < n; i++) {
		if (has_prefix(b, block[i].prefix, block[i].bits))
			return block[i].class;
	}
	return IP_PUBLIC;
}

static enum ip_class classify_v4(const uint8_t b[4])
{
	return look_up(v4_blocks, ARRAY_SIZE(v4_blocks), b);
}

/* The IPv4 addresses that an IPv6 address carries. */
struct carried {
	unsigned n;
	uint8_t b[2][4];
};

static void carry(struct carried *c, const uint8_t b[4], uint8_t flip)
{
	for (unsigned i = 0; i < 4; i++)
		c->b[c->n][i] = b[i] ^ flip;
	c->n++;
}

static bool is_isatap(const uint8_t b[16])
{
	/* RFC 5214 6.1: the u bit says whether the address is unique. */
	return (b[8] & 0xfd) == 0 && b[9] == 0 && b[10] == 0x5e &&
	       b[11] == 0xfe;
}

static const struct {
	uint8_t prefix[16];
	uint8_t bits;
	uint8_t at;		/* byte where the address begins */
	uint8_t flip;
} carriers[] = {
	{ V6(0, 0, 0, 0, 0, 0, 0, 0), 96, 12, 0 },		/* compatible */
	{ V6(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, 12, 0 },		/* translated */
	{ V6(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, 12, 0 },	/* NAT64 */
	{ V6(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, 12, 0 },	/* NAT64 */
	{ V6(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, 2, 0 },		/* 6to4 */
	{ V6(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, 4, 0 },	/* Teredo: server */
	{ V6(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, 12, 0xff }, /* and client */
};

static void find_carried(const uint8_t b[16], struct carried *c)
{
	c->n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(carriers); i++) {
		if (has_prefix(b, carriers[i].prefix, carriers[i].bits))
			carry(c, b + carriers[i].at, carriers[i].flip);
	}
	if (c->n == 0 && is_isatap(b))
		carry(c, b + 12, 0);
}

static enum ip_class classify_v6(const uint8_t b[16])
{
	enum ip_class own = look_up(v6_blocks, ARRAY_SIZE(v6_blocks), b);
	struct carried c;

	/* A class of its own says more than what is carried. */
	if (own != IP_PUBLIC && own != IP_RESERVED)
		return own;
	find_carried(b, &c);
	for (unsigned i = 0; i < c.n; i++) {
		enum ip_class inside = classify_v4(c.b[i]);

		if (inside != IP_PUBLIC)
			return inside;
	}
	return own;
}

enum ip_class ip_classify(const struct ip_addr *a)
{
	struct ip_addr plain = ip_addr_unmapped(a);

	if (plain.family == IP_V4)
		return classify_v4(plain.b);
	if (plain.family == IP_V6)
		return classify_v6(plain.b);
	return IP_UNSPECIFIED;
}

/* Where @block begins. */
static struct ip_addr block_first(const struct class_block *block,
				  enum ip_family family)
{
	struct ip_addr a = { .family = (uint8_t)family };

	memcpy(a.b, block->prefix, sizeof(a.b));
	return a;
}

/* The address behind @block's last; all zero when it ends the space. */
static struct ip_addr block_behind(const struct class_block *block,
				   enum ip_family family)
{
	struct ip_addr a = block_first(block, family);
	unsigned at = block->bits;

	/* Add one to the prefix, read as a number. */
	while (at > 0) {
		uint8_t bit = (uint8_t)(0x80u >> (--at % 8));

		a.b[at / 8] ^= bit;
		if (a.b[at / 8] & bit)
			return a;
	}
	return a;
}

static bool is_between(const struct ip_addr *a, const struct ip_addr *lo,
		       const struct ip_addr *hi)
{
	return ip_addr_cmp(lo, a) <= 0 && ip_addr_cmp(a, hi) <= 0;
}

enum ip_class ip_classify_range(const struct ip_addr *lo,
				const struct ip_addr *hi)
{
	enum ip_family family = lo->family == IP_V4 ? IP_V4 : IP_V6;
	const struct class_block *block =
		family == IP_V4 ? v4_blocks : v6_blocks;
	size_t n = family == IP_V4 ? ARRAY_SIZE(v4_blocks) :
				     ARRAY_SIZE(v6_blocks);
	enum ip_class class = ip_classify(lo);

	/*
	 * Within the range the class can change only where a block begins or
	 * has ended, and NAT64's only where one of IPv4 does: both ends of each
	 * block, and of what the prefix makes of it, are looked at.
	 */
	for (size_t i = 0; i < n && class == IP_PUBLIC; i++) {
		struct ip_addr first = block_first(&block[i], family);
		struct ip_addr behind = block_behind(&block[i], family);

		if (is_between(&first, lo, hi))
			class = ip_classify(&first);
		if (class == IP_PUBLIC && is_between(&behind, lo, hi))
			class = ip_classify(&behind);
	}
	for (size_t i = 0; i < ARRAY_SIZE(v4_blocks) && family == IP_V6 &&
	     class == IP_PUBLIC; i++) {
		struct ip_addr nat64 = {
			.family = IP_V6, .b = { 0x00, 0x64, 0xff, 0x9b },
		};

		memcpy(nat64.b + 12, v4_blocks[i].prefix, 4);
		if (is_between(&nat64, lo, hi))
			class = ip_classify(&nat64);
	}
	return class;
}

static const struct {
	const char *name;
	enum reason reason;
} classes[] = {
	[IP_PUBLIC]	   = { "public", REASON_ALLOWED },
	[IP_UNSPECIFIED]   = { "unspecified", REASON_ADDRESS_UNSPECIFIED },
	[IP_LOOPBACK]	   = { "loopback", REASON_ADDRESS_LOOPBACK },
	[IP_PRIVATE]	   = { "private", REASON_ADDRESS_PRIVATE },
	[IP_LINK_LOCAL]	   = { "link_local", REASON_ADDRESS_LINK_LOCAL },
	[IP_METADATA]	   = { "metadata", REASON_ADDRESS_METADATA },
	[IP_CGNAT]	   = { "cgnat", REASON_ADDRESS_CGNAT },
	[IP_MULTICAST]	   = { "multicast", REASON_ADDRESS_MULTICAST },
	[IP_DOCUMENTATION] = { "documentation", REASON_ADDRESS_DOCUMENTATION },
	[IP_BENCHMARK]	   = { "benchmark", REASON_ADDRESS_BENCHMARK },
	[IP_RESERVED]	   = { "reserved", REASON_ADDRESS_RESERVED },
	[IP_HOST]	   = { "host", REASON_ADDRESS_HOST },
};
_Static_assert(ARRAY_SIZE(classes) == IP_CLASSES, "name every class");

const char *ip_class_name(enum ip_class c)
{
	REQUIRE(c < IP_CLASSES);
	return classes[c].name;
}

enum reason ip_class_reason(enum ip_class c)
{
	REQUIRE(c < IP_CLASSES);
	return classes[c].reason;
}

bool ip_hosts_has(const struct ip_hosts *h, const struct ip_addr *a)
{
	return ip_hosts_own(h, a) ||
	       (h && ip_net_find(h->net + h->n_own, h->n - h->n_own, a));
}

bool ip_hosts_own(const struct ip_hosts *h, const struct ip_addr *a)
{
	return h && ip_net_find(h->net, h->n_own, a);
}

enum ip_class ip_classify_here(const struct ip_addr *a,
			       const struct ip_hosts *hosts)
{
	struct ip_addr plain = ip_addr_unmapped(a);
	enum ip_class class = ip_classify(&plain);
	struct carried c = { 0 };

	if (class != IP_PUBLIC)
		return class;
	if (ip_hosts_has(hosts, &plain))
		return IP_HOST;
	if (plain.family == IP_V6)
		find_carried(plain.b, &c);
	for (unsigned i = 0; i < c.n; i++) {
		struct ip_addr inside = { .family = IP_V4 };

		memcpy(inside.b, c.b[i], 4);
		if (ip_hosts_has(hosts, &inside))
			return IP_HOST;
	}
	return IP_PUBLIC;
}
