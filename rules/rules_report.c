/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_report.c - faults of a policy, each with its place, up to a limit
 */
#include <stdarg.h>
#include <stdio.h>

#include "rules/rules_ast.h"

/* Long enough for the longest mend with two shown words and a place. */
#define MESSAGE_SIZE	1024

static void hand_out(struct rules_report *r, enum rules_severity severity,
		     struct rules_place at, const char *message)
{
	struct rules_diag diag = {
		.severity = severity,
		.file = at.source < r->n_sources ? r->source[at.source].name :
			"policy",
		.line = at.line,
		.column = at.column,
		.message = message,
	};

	/* Each severity by itself: warnings must not drown an error. */
	if (!r->fn || r->said[severity] > RULES_DIAGS_MAX)
		return;
	if (r->said[severity]++ == RULES_DIAGS_MAX) {
		diag.line = diag.column = 0;
		diag.message = "there is more; mend these first";
	}
	r->fn(r->arg, &diag);
}

PRINTF(4, 0)
static void report(struct rules_report *r, enum rules_severity severity,
		   struct rules_place at, const char *fmt, va_list ap)
	PRINTF(4, 0);

static void report(struct rules_report *r, enum rules_severity severity,
		   struct rules_place at, const char *fmt, va_list ap)
{
	char message[MESSAGE_SIZE];

	/* Words are bounded by shown(); should one not fit, its end is lost. */
	if (vsnprintf(message, sizeof(message), fmt, ap) < 0)
		message[0] = '\0';
	hand_out(r, severity, at, message);
}

void report_error(struct rules_report *r, struct rules_place at,
		  const char *fmt, ...)
{
	va_list ap;

	r->errors++;
	va_start(ap, fmt);
	report(r, RULES_ERROR, at, fmt, ap);
	va_end(ap);
}

void report_warning(struct rules_report *r, struct rules_place at,
		    const char *fmt, ...)
{
	va_list ap;

	r->warnings++;
	va_start(ap, fmt);
	report(r, RULES_WARNING, at, fmt, ap);
	va_end(ap);
}

const char *place_text(const struct rules_report *r, struct rules_place at,
		       char out[PLACE_SIZE])
{
	const char *file = at.source < r->n_sources ?
			   r->source[at.source].name : "policy";
	int n = snprintf(out, PLACE_SIZE, "%s:%u", file, (unsigned)at.line);

	if (n < 0 || n >= PLACE_SIZE)
		n = snprintf(out, PLACE_SIZE, "line %u", (unsigned)at.line);
	REQUIRE(n > 0 && n < PLACE_SIZE);
	return out;
}
