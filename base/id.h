/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id.h - identifiers: time-ordered flow ids, short run ids, nonces
 */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <stddef.h>
#include <stdint.h>

#define ID_TEXT_SIZE	37	/* UUID text and NUL */

struct id {
	uint8_t b[16];		/* RFC 9562, version 7 */
};

/* Random bits from a per-thread pool of getrandom(2): no call per id. */
void id_new(struct id *ret);
void id_text(const struct id *id, char out[ID_TEXT_SIZE]);
/* @nbytes random bytes as lower-case hex and a NUL: 2 * @nbytes + 1 chars. */
void id_random_hex(char *out, size_t nbytes);
void random_bytes(void *p, size_t n);	/* getrandom(2), never short */

#endif /* BASE_ID_H */
