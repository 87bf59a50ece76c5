/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - amounts and endpoints as a person reads them
 */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include <stdint.h>

#include "base/buf.h"

#define TEXT_SIZE	24
#define TEXT_ENDPOINT	300

/* "517 B", "41 kB", "1.2 MB": decimal units. */
void text_size(uint64_t bytes, char out[TEXT_SIZE]);

/* "host:443", "[2001:db8::1]:443"; without a port (0) the host alone.  A text
 * that is too long is cut. */
void text_endpoint(const char *host, uint16_t port, char out[TEXT_ENDPOINT]);

/* On standard output; whether it got there is seen when the program ends. */
void text_put(const struct buf *text);

#endif /* CLI_TEXT_H */
