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

bool utf8_is_hidden(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
	} hidden[] = {
		{ 0x0000, 0x001f }, { 0x007f, 0x009f },	/* controls */
		{ 0x00ad, 0x00ad },			/* soft hyphen */
		{ 0x061c, 0x061c },			/* Arabic letter mark */
		{ 0x200b, 0x200f },			/* zero width, marks */
		{ 0x2028, 0x202e },			/* lines, embeddings */
		{ 0x2060, 0x206f },			/* joiners, isolates */
		{ 0xfeff, 0xfeff },			/* byte order mark */
		{ 0xe0000, 0xe007f },			/* tags */
	};

	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++) {
		if (cp >= hidden[i].first && cp <= hidden[i].last)
			return true;
	}
	return false;
}
