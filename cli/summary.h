/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.h - what a run did, for a person or as one JSON object
 */
#ifndef CLI_SUMMARY_H
#define CLI_SUMMARY_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/query.h"
#include "base/buf.h"
#include "base/compiler.h"
#include "netns-setup/launch.h"

struct summary {
	const char *run;
	const struct launch_result *result;
	const struct query_summary *flows;
	int64_t duration_ms;
	const char *records;	/* path */
	const char *home;	/* shown as "~"; or NULL */
	bool has_file;		/* its policy is a file: --allow adds to that */
	bool has_name;		/* it is the service's, by its name */
	bool observe;
};

#define SUMMARY_MAX	(4u << 20)	/* bytes of either form */

NODISCARD int summary_text(const struct summary *s, struct buf *out);
NODISCARD int summary_json(const struct summary *s, struct buf *out);

#endif /* CLI_SUMMARY_H */
