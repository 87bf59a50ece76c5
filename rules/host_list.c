/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_list.c - a list of hosts, one a line, read as it stands
 */
#include "rules/host_list.h"

void host_list_start(struct host_list *l, struct str text, bool deny,
		     bool suffixes)
{
	static const struct str bom = { "\xef\xbb\xbf", 3 };

	if (str_starts(text, bom))
		text = str_make(text.p + bom.n, text.n - bom.n);
	*l = (struct host_list){
		.rest = text, .deny = deny, .suffixes = suffixes || deny,
	};
}

/* The next line that says something, without blanks and CR at its ends. */
static bool next_line(struct host_list *l, struct str *ret)
{
	struct str line;

	while (str_cut(&l->rest, '\n', &line)) {
		l->line++;
		l->text = line;
		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line.n--;
		*ret = str_trim(line);
		if (ret->n > 0 && ret->p[0] != '#' && ret->p[0] != ';')
			return true;
	}
	return false;
}

enum host_list_step host_list_next(struct host_list *l,
				   struct host_pattern *ret)
{
	struct str rest;

	if (!next_line(l, &rest))
		return LIST_END;
	str_word(&rest, &l->word);
	rest = str_trim(rest);
	if (!str_empty(rest)) {
		l->word = rest;
		l->why = "stands behind a host; write one host a line, and "
			 "comments on lines of their own";
		return LIST_FAULT;
	}
	if (host_pattern_parse(l->word, l->deny, ret, &l->why) < 0)
		return LIST_FAULT;
	if (!l->suffixes) {
		l->why = host_suffix_fault(ret->kind,
					   host_name_str(&ret->name));
		if (l->why)
			return LIST_FAULT;
	}
	return LIST_HOST;
}
