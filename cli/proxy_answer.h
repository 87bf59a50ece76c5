/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_answer.h - what a proxy says to a CONNECT; pure
 */
#ifndef CLI_PROXY_ANSWER_H
#define CLI_PROXY_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/str.h"

enum proxy_answer_result {
	PROXY_ANSWER_MORE,
	PROXY_ANSWER_DONE,
	PROXY_ANSWER_BAD,	/* no answer of HTTP/1 */
};

struct proxy_answer {
	unsigned status;
	struct str phrase;	/* of the status line; borrowed */
	size_t head;		/* bytes, with the empty line */
	size_t length;		/* of the body; SIZE_MAX: up to the end */
};

enum proxy_answer_result proxy_answer_parse(struct str in,
					    struct proxy_answer *ret);

/**
 * proxy_answer_member() - A text in a flat JSON object, by its name
 * @out:	what it says, in one line: what is no printable ASCII becomes
 *		'?'; cut to @cap, with a NUL
 * Return: false when there is none, or this is no such object
 */
bool proxy_answer_member(struct str json, struct str name, char *out,
			 size_t cap);

#endif /* CLI_PROXY_ANSWER_H */
