/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.c - well-formed UTF-8 (RFC 3629), one character at a time
 */
#include "base/utf8.h"

size_t utf8_next(struct str s, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint8_t first = s.n > 0 ? (uint8_t)s.p[0] : 0xff;
	uint32_t cp;
	size_t n;

	if (first < 0x80) {
		*ret = first;
		return 1;
	}
	if (first < 0xc2 || first > 0xf4)
		return 0;
	n = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
	if (s.n < n)
		return 0;
	cp = first & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		uint8_t b = (uint8_t)s.p[i];

		if ((b & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (b & 0x3f);
	}
	if (cp < least[n] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	*ret = cp;
	return n;
}
