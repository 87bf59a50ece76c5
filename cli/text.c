/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - amounts and endpoints as a person reads them
 */
#include "cli/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

void text_size(uint64_t bytes, char out[TEXT_SIZE])
{
	static const char *const unit[] = { "kB", "MB", "GB", "TB", "PB" };
	double v = (double)bytes;
	size_t u = 0;
	int n;

	if (bytes < 1000) {
		n = snprintf(out, TEXT_SIZE, "%" PRIu64 " B", bytes);
	} else {
		for (v /= 1000; v >= 999.5 && u + 1 < ARRAY_SIZE(unit); u++)
			v /= 1000;
		n = snprintf(out, TEXT_SIZE, v < 9.95 && u ? "%.1f %s" :
			     "%.0f %s", v, unit[u]);
	}
	REQUIRE(n > 0 && n < TEXT_SIZE);
}

void text_endpoint(const char *host, uint16_t port, char out[TEXT_ENDPOINT])
{
	bool v6 = strchr(host, ':') != NULL;
	int n;

	if (port)
		n = snprintf(out, TEXT_ENDPOINT, "%s%s%s:%u", v6 ? "[" : "",
			     host, v6 ? "]" : "", port);
	else
		n = snprintf(out, TEXT_ENDPOINT, "%s", host);
	/* A name is at most 253 bytes; a longer text is cut, not lost. */
	if (n < 0)
		out[0] = '\0';
}

void text_put(const struct buf *text)
{
	if (text->n > 0)
		fwrite(text->p, 1, text->n, stdout);
}
