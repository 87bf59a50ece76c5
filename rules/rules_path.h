/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_path.h - paths of requests, and the patterns that take them
 *
 * A path is compared as an origin would understand it, decoded.  Where origins
 * are known to differ (dot segments, empty segments, encoded separators, things
 * encoded twice) there is no such understanding, and the path is ambiguous; two
 * readings that both are plain (a segment with and without ";parameters") must
 * both be taken.
 */
#ifndef RULES_RULES_PATH_H
#define RULES_RULES_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

#define RULES_PATH_MAX	4096	/* bytes of a path that is judged */

/* In patterns, decoded: any run of bytes within a segment, any segments. */
#define PATH_ANY_BYTES		'\001'
#define PATH_ANY_SEGMENTS	'\002'

/* Comparisons of bytes that a path is worth, with all patterns together. */
#define RULES_PATH_STEPS	(1u << 20)

struct rules_path {
	/* As sent, and without parameters; with room for one slash more. */
	char text[2][RULES_PATH_MAX + 1];
	size_t n[2];
	unsigned forms;			/* 1 or 2; 0: it has no path ("*") */
	/* 0: gave up; no pattern takes it any more, and each might. */
	unsigned steps_left;
};

/**
 * rules_path_read() - The path of a request target in origin-form
 * @target:	with its query, which is not looked at; "" is "/"
 * Return: 0, or -EINVAL when it is ambiguous or too long to be judged
 */
NODISCARD int rules_path_read(struct str target, struct rules_path *ret);

/**
 * rules_path_pattern() - Read one word of `paths`
 * @out:	the pattern, decoded; room for @word.n bytes
 * @ret_why:	set on failure: what is wrong and the mend
 * Return: 0 or -EINVAL
 */
NODISCARD int rules_path_pattern(struct str word, char *out, size_t *ret_n,
				 const char **ret_why);

/**
 * rules_path_write() - A pattern as it may be written
 * @bytes, @segments:	what stands for the two wildcards: "*" and "**", or a
 *			sample of what they take
 * @out:	appended; bytes that are not plain are percent-encoded
 * Return: 0, -ENOSPC or -ENOMEM
 */
NODISCARD int rules_path_write(struct str pattern, const char *bytes,
			       const char *segments, struct buf *out);

/* Is every reading of the path one that the pattern takes?  Case counts. */
bool rules_path_is_in(struct rules_path *path, struct str pattern);
/*
 * Might any origin read the path as one that the pattern takes?  Neither case
 * nor blanks and dots at the ends of segments count, nor a slash at the end.
 */
bool rules_path_may_be_in(struct rules_path *path, struct str pattern);

#endif /* RULES_RULES_PATH_H */
