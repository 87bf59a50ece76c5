/* SPDX-License-Identifier: Apache-2.0 */
/*
 * odd_name.h - host names that are not worth writing into a policy
 */
#ifndef CLI_ODD_NAME_H
#define CLI_ODD_NAME_H

#include <stdbool.h>

#include "audit/query.h"

/* As many refused names below one parent are ordinary; more are generated. */
#define ODD_SIBLINGS_MAX	8

/**
 * odd_name() - Does @host look as if a program had made it up?
 *
 * By its labels alone: one of 40 characters or more, one in which letters and
 * digits take turns, or a long one that nobody could pronounce.  A guess, for
 * advice only: nothing is decided by it.
 */
bool odd_name(const char *host);

/* Is the refused @row one of many names directly below the same parent? */
bool odd_siblings(const struct query_summary *q, const struct query_row *row);

/**
 * vain_name() - Would a rule with @host alone open nothing, or never be taken?
 *
 * What is never looked up or never leaves (localhost, .local, .invalid), what
 * networks have for themselves (.internal, home.arpa), whose addresses are of
 * closed classes, the reverse trees, and what no rule may name.
 */
bool vain_name(const char *host);

#endif /* CLI_ODD_NAME_H */
