/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_list.h - a list of hosts, one a line, read as it stands
 *
 * Lists have up to millions of lines, so no copy of them is made: whoever wants
 * its hosts reads the text, as often as need be.  Blank lines and lines that
 * begin with '#' or ';' say nothing.
 */
#ifndef RULES_HOST_LIST_H
#define RULES_HOST_LIST_H

#include "rules/rules_value.h"

struct host_list {
	struct str rest;
	bool deny;
	bool suffixes;		/* public suffixes are no fault */
	/* of what was read last */
	uint32_t line;
	struct str text;	/* the whole line */
	struct str word;	/* the host, or what is wrong */
	const char *why;	/* it is, for LIST_FAULT */
};

enum host_list_step { LIST_END, LIST_HOST, LIST_FAULT };

/*
 * @deny:	of a deny rule, whose hosts may say more
 * @suffixes:	public suffixes may stand in it, or were looked for before
 */
void host_list_start(struct host_list *l, struct str text, bool deny,
		     bool suffixes);
/* @ret is set for LIST_HOST. */
enum host_list_step host_list_next(struct host_list *l,
				   struct host_pattern *ret);

#endif /* RULES_HOST_LIST_H */
