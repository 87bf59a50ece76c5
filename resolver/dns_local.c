/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_local.c - the names that are answered here, whatever the policy says
 *
 *	<nonce>.penstock.invalid	the launcher's self-test
 *	localhost and below		127.0.0.1 and ::1 (RFC 6761 6.3)
 *	the sandbox's own host name	the same
 *	in-addr.arpa, ip6.arpa		loopback, the sandbox's own addresses and
 *					the synthetic ones; nothing else exists, unless
 *				a rule opens PTR for a public address
 *	.local, .invalid, .onion, ...	never asked about (host_name_is_local())
 *
 * But for that the reverse trees end here: an address that the sandbox puts into
 * a question would otherwise be a message to whoever serves its zone.
 */
#include "resolver/dns_local.h"

#include "base/clock.h"
#include "resolver/resolver.h"
#include "rules/host_name.h"
#include "rules/rules.h"

#define V4_TREE	STR("in-addr.arpa")
#define V6_TREE	STR("ip6.arpa")

/* Is @name @top, or below it? */
static bool is_in_tree(struct str name, struct str top)
{
	return str_eq(name, top) ||
	       (name.n > top.n && str_ends(name, top) &&
		name.p[name.n - top.n - 1] == '.');
}

static struct ip_addr address(const char *text)
{
	struct ip_addr a;

	REQUIRE(ip_addr_parse(str_from(text), &a) == 0);
	return a;
}

static void find_address(const char *v4, const char *v6, uint16_t type,
			 struct dns_local *ret)
{
	if (type != DNS_TYPE_A && type != DNS_TYPE_AAAA) {
		ret->kind = DNS_LOCAL_NODATA;
		return;
	}
	ret->kind = DNS_LOCAL_ADDRESS;
	ret->addr = address(type == DNS_TYPE_A ? v4 : v6);
}

/* --- reverse names --------------------------------------------------------- */

enum reverse { REVERSE_BAD, REVERSE_PART, REVERSE_WHOLE };

/* "1.0.0.127" is 127.0.0.1; @labels stands before the tree's name. */
static enum reverse reverse_v4(struct str labels, struct ip_addr *ret)
{
	struct ip_addr a = { .family = IP_V4 };
	struct str label;
	unsigned n = 0;

	while (str_cut(&labels, '.', &label)) {
		unsigned long v;

		if (n == 4 || str_to_uint(label, 255, &v) != 0)
			return REVERSE_BAD;
		memmove(a.b + 1, a.b, 3);
		a.b[0] = (uint8_t)v;
		n++;
	}
	*ret = a;
	return n == 4 ? REVERSE_WHOLE : REVERSE_PART;
}

static int nibble(struct str label)
{
	if (label.n != 1)
		return -1;
	if (ascii_is_digit(label.p[0]))
		return label.p[0] - '0';
	return label.p[0] >= 'a' && label.p[0] <= 'f' ?
		label.p[0] - 'a' + 10 : -1;
}

static enum reverse reverse_v6(struct str labels, struct ip_addr *ret)
{
	struct ip_addr a = { .family = IP_V6 };
	struct str label;
	unsigned n = 0;

	while (str_cut(&labels, '.', &label)) {
		int v = nibble(label);

		if (n == 32 || v < 0)
			return REVERSE_BAD;
		/* The first label is the last nibble. */
		a.b[15 - n / 2] |= (uint8_t)(v << 4 * (n % 2));
		n++;
	}
	*ret = a;
	return n == 32 ? REVERSE_WHOLE : REVERSE_PART;
}

static struct str before_tree(struct str name, struct str top)
{
	return str_make(name.p, name.n > top.n ? name.n - top.n - 1 : 0);
}

static bool is_loopback(const struct ip_addr *a)
{
	static const struct ip_addr one = { .family = IP_V6, .b = { [15] = 1 } };

	return a->family == IP_V4 ? a->b[0] == 127 : ip_addr_eq(a, &one);
}

static bool is_own(const struct ip_addr *a)
{
	struct ip_addr v4 = address(DNS_SELF_TEST_A);
	struct ip_addr v6 = address(DNS_SELF_TEST_AAAA);

	return ip_addr_eq(a, &v4) || ip_addr_eq(a, &v6);
}

static bool is_allowed(const struct dns_local_names *names, struct str host)
{
	struct rules_answer answer;

	return rules_judge_name(names->rules, host, clock_wall_s(), &answer) ==
	       RULES_NAME_ALLOWED;
}

/* The name behind an address that is ours. */
static bool name_of(const struct dns_local_names *names,
		    const struct ip_addr *a, struct dns_name *ret)
{
	struct str found;
	struct id question;

	if (is_loopback(a))
		return dns_name_from_text(STR("localhost"), ret) == 0;
	if (is_own(a)) {
		*ret = *names->hostname;
		return ret->n > 0;
	}
	return names->map && name_map_find(names->map, a, &found, &question) &&
	       is_allowed(names, found) &&
	       dns_name_from_text(found, ret) == 0;
}

static void find_reverse(const struct dns_local_names *names, enum reverse how,
			 const struct ip_addr *a, uint16_t type,
			 struct dns_local *ret)
{
	if (how == REVERSE_WHOLE)
		ret->behind = *a;
	if (how == REVERSE_PART)
		ret->kind = DNS_LOCAL_NODATA;
	else if (how == REVERSE_BAD || !name_of(names, a, &ret->ptr))
		ret->kind = how != REVERSE_BAD && ip_classify(a) == IP_PUBLIC ?
			DNS_LOCAL_REVERSE : DNS_LOCAL_NXDOMAIN;
	else
		ret->kind = type == DNS_TYPE_PTR ? DNS_LOCAL_PTR :
						   DNS_LOCAL_NODATA;
}

/* --- all of them ----------------------------------------------------------- */

static bool is_hostname(const struct dns_local_names *names, struct str host)
{
	const struct dns_name *h = names->hostname;

	/* One label: its length, its bytes, the root. */
	return h->n > 0 && host.n == h->b[0] &&
	       memcmp(host.p, h->b + 1, host.n) == 0;
}

/* A dotted one could hide a name that the policy allows. */
void dns_local_hostname(const char *text, struct dns_name *ret)
{
	struct host_name canonical;

	ret->n = 0;
	if (host_name_parse(str_from(text), &canonical) != 0 ||
	    str_chr(host_name_str(&canonical), '.') != canonical.n ||
	    dns_name_from_text(host_name_str(&canonical), ret) != 0)
		ret->n = 0;
}

void dns_local_find(const struct dns_local_names *names, struct str host,
		    uint16_t type, struct dns_local *ret)
{
	struct ip_addr a = { .family = IP_NONE };
	enum reverse how;

	*ret = (struct dns_local){ .kind = DNS_LOCAL_NOT };
	if (!str_empty(names->self_test) && str_eq(host, names->self_test)) {
		ret->self_test = true;
		find_address(DNS_SELF_TEST_A, DNS_SELF_TEST_AAAA, type, ret);
	} else if (is_in_tree(host, STR("localhost")) ||
		   is_hostname(names, host)) {
		find_address("127.0.0.1", "::1", type, ret);
	} else if (is_in_tree(host, V4_TREE)) {
		how = reverse_v4(before_tree(host, V4_TREE), &a);
		find_reverse(names, how, &a, type, ret);
	} else if (is_in_tree(host, V6_TREE)) {
		how = reverse_v6(before_tree(host, V6_TREE), &a);
		find_reverse(names, how, &a, type, ret);
	} else if (host_name_is_local(host)) {
		ret->kind = DNS_LOCAL_SHUT;
	}
}

bool resolver_hides(struct str name)
{
	return dns_local_hidden(name) || host_name_is_local(name) ||
	       is_in_tree(name, V4_TREE) || is_in_tree(name, V6_TREE);
}

/*
 * Labels that stand before the address, as "0-25" does in 0-25.2.0.192, are
 * passed over; what is left of it is a prefix, which tells the class.
 */
static bool is_public_reverse(struct str name)
{
	struct ip_addr a = { .family = IP_NONE };
	struct str labels, skip;

	if (is_in_tree(name, V6_TREE))
		return reverse_v6(before_tree(name, V6_TREE), &a) ==
		       REVERSE_WHOLE && ip_classify(&a) == IP_PUBLIC;
	labels = before_tree(name, V4_TREE);
	while (reverse_v4(labels, &a) == REVERSE_BAD)
		str_cut(&labels, '.', &skip);
	return ip_classify(&a) == IP_PUBLIC;
}

bool dns_local_bars_alias(struct str name)
{
	if (is_in_tree(name, V4_TREE) || is_in_tree(name, V6_TREE))
		return !is_public_reverse(name);
	return str_chr(name, '.') == name.n || resolver_hides(name);
}

bool dns_local_hidden(struct str host)
{
	static const char *const trees[] = {
		"internal", "home.arpa", "metadata.goog", "metadata",
		"instance-data", "instance-data.ec2",
	};

	for (size_t i = 0; i < ARRAY_SIZE(trees); i++) {
		if (is_in_tree(host, str_from(trees[i])))
			return true;
	}
	return false;
}
