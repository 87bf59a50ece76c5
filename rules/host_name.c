/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_name.c - one canonical form for every host that anyone names
 *
 * Theory
 * ======
 *
 * Most ways around a host filter are two parsers that read the same bytes
 * differently.  So there is one parser, it knows few forms, and what it lets
 * through has a single spelling: a name in lower-case ASCII without the root's
 * dot, or an address in binary.
 *
 * What inet_aton() might take for an address ("127.1", "0x7f000001",
 * "010.0.0.1") is refused as a name: whatever its last label says, a number
 * there is no top level domain (RFC 3696 2), and WHATWG's "ends in a number"
 * draws the same line.
 *
 * A-labels are compared as they are, never decoded for a decision.  But one
 * that decodes to plain ASCII, or does not decode at all, is another spelling
 * waiting for a lenient peer, and is refused (RFC 5891 5.4).
 */
#include "rules/host_name.h"

#include <errno.h>

/* RFC 3492 5: the parameters of Punycode. */
enum {
	PUNY_BASE = 36,
	PUNY_TMIN = 1,
	PUNY_TMAX = 26,
	PUNY_SKEW = 38,
	PUNY_DAMP = 700,
	PUNY_INITIAL_BIAS = 72,
	PUNY_INITIAL_N = 0x80,
	UNICODE_MAX = 0x10ffff,
};

static uint32_t puny_adapt(uint32_t delta, uint32_t points, bool first)
{
	uint32_t k = 0;

	delta = first ? delta / PUNY_DAMP : delta / 2;
	delta += delta / points;
	while (delta > ((PUNY_BASE - PUNY_TMIN) * PUNY_TMAX) / 2) {
		delta /= PUNY_BASE - PUNY_TMIN;
		k += PUNY_BASE;
	}
	return k + (PUNY_BASE - PUNY_TMIN + 1) * delta / (delta + PUNY_SKEW);
}

static uint32_t puny_threshold(uint32_t k, uint32_t bias)
{
	if (k <= bias + PUNY_TMIN)
		return PUNY_TMIN;
	if (k >= bias + PUNY_TMAX)
		return PUNY_TMAX;
	return k - bias;
}

/* The value of a digit, or PUNY_BASE when it is none; lower case only. */
static uint32_t puny_digit(char c)
{
	if (c >= 'a' && c <= 'z')
		return (uint32_t)(c - 'a');
	if (ascii_is_digit(c))
		return (uint32_t)(c - '0') + 26;
	return PUNY_BASE;
}

/* One generalised variable-length integer off the front of @rest. */
static int puny_integer(struct str *rest, uint32_t bias, uint32_t *ret)
{
	uint64_t value = 0, weight = 1;

	for (uint32_t k = PUNY_BASE; rest->n > 0; k += PUNY_BASE) {
		uint32_t digit = puny_digit(rest->p[0]);
		uint32_t t = puny_threshold(k, bias);

		if (digit == PUNY_BASE)
			return -EINVAL;
		*rest = str_make(rest->p + 1, rest->n - 1);
		value += digit * weight;
		if (value > UINT32_MAX)
			return -EINVAL;
		if (digit < t) {
			*ret = (uint32_t)value;
			return 0;
		}
		weight *= PUNY_BASE - t;
		if (weight > UINT32_MAX)
			return -EINVAL;
	}
	return -EINVAL;
}

static bool is_scalar_value(uint64_t point)
{
	return point <= UNICODE_MAX && !(point >= 0xd800 && point <= 0xdfff);
}

/*
 * Does what stands behind "xn--" decode to something that is not all ASCII?
 * Every decoded point is at least 0x80, so it is enough that there is one; the
 * points themselves are not kept, only their number matters to the decoder.
 */
static bool is_a_label(struct str text)
{
	uint32_t bias = PUNY_INITIAL_BIAS, points = 0;
	uint64_t n = PUNY_INITIAL_N, i = 0;
	struct str deltas = text;

	for (size_t at = text.n; at > 0; at--) {
		if (text.p[at - 1] == '-') {
			points = (uint32_t)(at - 1);
			deltas = str_make(text.p + at, text.n - at);
			break;
		}
	}
	/* A delimiter needs something on each side of it. */
	if (str_empty(deltas) || (points == 0 && deltas.n < text.n))
		return false;
	while (!str_empty(deltas)) {
		bool first = i == 0 && n == PUNY_INITIAL_N;
		uint64_t old = i;
		uint32_t delta;

		if (puny_integer(&deltas, bias, &delta) < 0)
			return false;
		i += delta;
		points++;
		bias = puny_adapt((uint32_t)(i - old), points, first);
		n += i / points;
		i %= points;
		if (!is_scalar_value(n))
			return false;
		i++;
	}
	return true;
}

static bool is_label_char(char c)
{
	static const bool is[256] = {
		['a' ... 'z'] = true, ['0' ... '9'] = true,
		['-'] = true, ['_'] = true,
	};

	return is[(unsigned char)c];
}

/* Might inet_aton() or a URL parser read a number here? */
static bool is_number_like(struct str label)
{
	if (str_starts(label, STR("0x")))
		return true;
	for (size_t i = 0; i < label.n; i++) {
		if (!ascii_is_digit(label.p[i]))
			return false;
	}
	return true;
}

/* The label of @h that ends at @end, its letters are known to be such. */
static bool ends_label(const struct host_name *h, size_t begin, size_t end)
{
	struct str label = str_make(h->p + begin, end - begin);

	if (label.n == 0 || label.n > HOST_LABEL_MAX_LEN)
		return false;
	if (!str_starts(label, STR("xn--")))
		return true;
	return is_a_label(str_make(label.p + 4, label.n - 4));
}

int host_name_parse(struct str text, struct host_name *ret)
{
	struct host_name h UNINITIALIZED;
	size_t label = 0;

	if (text.n > 0 && text.p[text.n - 1] == '.')
		text.n--;
	if (text.n == 0 || text.n > HOST_NAME_MAX_LEN)
		return -EINVAL;
	for (size_t i = 0; i < text.n; i++) {
		h.p[i] = ascii_lower(text.p[i]);
		if (is_label_char(h.p[i]))
			continue;
		if (h.p[i] != '.' || !ends_label(&h, label, i))
			return -EINVAL;
		label = i + 1;
	}
	if (!ends_label(&h, label, text.n) ||
	    is_number_like(str_make(h.p + label, text.n - label)))
		return -EINVAL;
	h.p[text.n] = '\0';
	h.n = (uint8_t)text.n;
	/* Not all of it: most names are short, and lists have millions. */
	ret->n = h.n;
	memcpy(ret->p, h.p, text.n + 1);
	return 0;
}

static enum host_kind bracketed_parse(struct str inner,
				      struct ip_addr *ret_addr)
{
	struct ip_addr a;

	if (ip_addr_parse(inner, &a) < 0 || a.family != IP_V6)
		return HOST_BAD;
	*ret_addr = a;
	return HOST_ADDRESS;
}

enum host_kind host_parse(struct str text, struct host_name *ret_name,
			  struct ip_addr *ret_addr)
{
	struct ip_addr a;

	if (text.n >= 2 && text.p[0] == '[' && text.p[text.n - 1] == ']')
		return bracketed_parse(str_make(text.p + 1, text.n - 2),
				       ret_addr);
	if (str_chr(text, ':') < text.n)
		return HOST_BAD;
	if (ip_addr_parse(text, &a) == 0) {
		*ret_addr = a;
		return HOST_ADDRESS;
	}
	return host_name_parse(text, ret_name) == 0 ? HOST_NAME : HOST_BAD;
}

/* Where the host ends and ":PORT" or nothing follows; @text.n + 1: nowhere. */
static size_t host_end(struct str text)
{
	size_t at;

	if (str_empty(text) || text.p[0] != '[')
		return str_chr(text, ':');
	at = str_chr(text, ']') + 1;
	if (at < text.n && text.p[at] != ':')
		return text.n + 1;
	return at;
}

enum host_kind authority_parse(struct str text, uint16_t default_port,
			       struct host_name *ret_name,
			       struct ip_addr *ret_addr, uint16_t *ret_port)
{
	size_t end = host_end(text);
	unsigned long port = default_port;
	enum host_kind kind;

	if (end > text.n)
		return HOST_BAD;
	if (end < text.n &&
	    str_to_uint(str_make(text.p + end + 1, text.n - end - 1), 65535,
			&port) < 0)
		return HOST_BAD;
	if (port == 0)
		return HOST_BAD;
	kind = host_parse(str_make(text.p, end), ret_name, ret_addr);
	if (kind != HOST_BAD)
		*ret_port = (uint16_t)port;
	return kind;
}

bool host_name_is_local(struct str canonical)
{
	/*
	 * RFC 6761 (localhost, invalid), 6762 (local), 7686 (onion), 9476
	 * (alt). "test", "internal" and "home.arpa" are served inside many
	 * networks.
	 */
	static const char *const tops[] = {
		"localhost", "local", "invalid", "onion", "alt",
	};
	struct str last = canonical;
	size_t dot;

	while ((dot = str_chr(last, '.')) < last.n)
		last = str_make(last.p + dot + 1, last.n - dot - 1);
	for (size_t i = 0; i < ARRAY_SIZE(tops); i++) {
		if (str_eq(last, str_from(tops[i])))
			return true;
	}
	return false;
}
