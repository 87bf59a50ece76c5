/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parents_rules.c - what a policy wants of the parents that are there
 */
#include <stdio.h>
#include <string.h>

#include "proxy/parents.h"

struct asked {
	const struct parents *parents;
	struct str host;
};

static bool is_resolved_there(void *arg, const char *word)
{
	const struct asked *a = arg;
	const struct parent *p;

	return parents_pick(a->parents, word, a->host, NULL, &p) == 0 && p &&
	       p->there;
}

bool parents_resolve(const struct parents *ps, const struct ruleset *rules,
		     struct str host, int64_t now)
{
	struct asked asked = { ps, host };

	/* Most daemons have none, and then it is not worth the walk. */
	return ps && ps->n > 0 &&
	       rules_name_goes(rules, host, now, is_resolved_there, &asked);
}

static bool unsuitable(const struct parents *ps, const char *word,
		       const char *file, unsigned line,
		       char why[PARENTS_WHY_SIZE])
{
	bool none = strcmp(word, RULES_PARENT_NONE) == 0;

	if (!none && !parents_find(ps, str_from(word)))
		(void)!snprintf(why, PARENTS_WHY_SIZE, "%.100s:%u: there is no parent '%s' here: name one of the operator's ([parent NAME] in penstockd(8), --parent), or write 'none'",
				file, line, word);
	else if (ps->always && parents_find(ps, str_from(word)) !=
			       ps->by_default)
		(void)!snprintf(why, PARENTS_WHY_SIZE, "%.100s:%u: 'parent = %s' has no place here: the operator has all flows go through '%s'",
				file, line, word, ps->by_default->name);
	else
		return false;
	return true;
}

bool parents_suit(const struct parents *ps, const struct ruleset *rules,
		  char why[PARENTS_WHY_SIZE])
{
	static const struct parents nobody;
	struct rules_rule_info info;
	const char *file = "";
	unsigned line = 0;
	const char *word = rules_default_parent(rules, &file, &line);

	ps = ps ? ps : &nobody;
	if (word && unsuitable(ps, word, file, line, why))
		return false;
	for (size_t i = 1; i <= rules_count(rules); i++) {
		rules_rule_info(rules, i, &info);
		if (info.parent && unsuitable(ps, info.parent, info.file,
					      info.line, why))
			return false;
	}
	return true;
}
