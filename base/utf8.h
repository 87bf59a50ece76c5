/* SPDX-License-Identifier: Apache-2.0 */
/*
 * utf8.h - well-formed UTF-8 (RFC 3629), one character at a time
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdint.h>

#include "base/str.h"

/**
 * utf8_next() - The character at the front of @s
 * @ret:	its code point
 *
 * Overlong forms, surrogates and what lies beyond U+10FFFF are not characters.
 *
 * Return: the bytes it takes; 0 when @s is empty or its front is not UTF-8
 */
size_t utf8_next(struct str s, uint32_t *ret);

/**
 * utf8_is_hidden() - Whether @cp can make a text look like another
 *
 * Control characters (C0, DEL, C1), line and paragraph separators, and the
 * marks that turn the direction of text around or take no room.
 */
bool utf8_is_hidden(uint32_t cp);

#endif /* BASE_UTF8_H */
