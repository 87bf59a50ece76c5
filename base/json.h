/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.h - append-only JSON writer into a buf
 *
 * Keeps the commas; escapes what JSON and a terminal demand: control bytes,
 * quote, backslash, DEL, C1 controls, U+2028/2029, marks that reorder or hide
 * text; every byte that is not part of valid UTF-8 becomes \u00NN.  The first
 * failure (buffer full) sticks, later calls are void, and json_end() reports it
 * and takes back what was written since json_begin().
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define JSON_DEPTH_MAX	8

struct json {
	struct buf *out;
	size_t start;		/* where our text begins in @out */
	int err;
	uint8_t depth;
	bool comma[JSON_DEPTH_MAX + 1];
};

void json_begin(struct json *j, struct buf *out);
NODISCARD int json_end(struct json *j);	/* 0 or the first -errno */

/* @key NULL inside an array and at the top; else a word, written as it is. */
void json_object_begin(struct json *j, const char *key);
void json_object_end(struct json *j);
void json_array_begin(struct json *j, const char *key);
void json_array_end(struct json *j);
void json_str(struct json *j, const char *key, struct str value);
void json_cstr(struct json *j, const char *key, const char *value);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_int(struct json *j, const char *key, int64_t value);
void json_bool(struct json *j, const char *key, bool value);
void json_null_value(struct json *j, const char *key);
/* Members of the object, as another json wrote them, without the brackets. */
void json_members(struct json *j, struct str members);
/* Nothing at all when the string is empty. */
void json_str_opt(struct json *j, const char *key, struct str value);

#endif /* BASE_JSON_H */
