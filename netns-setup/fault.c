/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.c - failures in words; text that does not fit is cut, never lost whole
 */
#include "netns-setup/fault.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static PRINTF(3, 0) size_t put(struct launch_error *err, size_t at,
			       const char *fmt, va_list ap)
{
	int n = vsnprintf(err->text + at, sizeof(err->text) - at, fmt, ap);

	if (n < 0)
		return at;
	return MIN(at + (size_t)n, sizeof(err->text) - 1);
}

static PRINTF(3, 4) size_t putf(struct launch_error *err, size_t at,
				const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	at = put(err, at, fmt, ap);
	va_end(ap);
	return at;
}

int fault(struct launch_error *err, int error, const char *fmt, ...)
{
	va_list ap;
	size_t at;

	va_start(ap, fmt);
	at = put(err, 0, fmt, ap);
	va_end(ap);
	if (error)
		(void)putf(err, at, ": %s", strerror(error));
	err->exit_code = 125;
	return error ? -error : -EINVAL;
}

void fault_mend(struct launch_error *err, const char *fmt, ...)
{
	va_list ap;
	size_t at = strnlen(err->text, sizeof(err->text) - 1);

	at = putf(err, at, "\n  ");
	va_start(ap, fmt);
	(void)put(err, at, fmt, ap);
	va_end(ap);
}
