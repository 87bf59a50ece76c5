/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_sources.c - which text is named where, and what it may say
 *
 * A policy is the one text that may loosen anything: an included file, a preset
 * and --allow can add rules, and whatever they allow, a deny of the policy still
 * shuts.  --allow and --preset of the command line add to a policy file only
 * where that file says so.
 *
 * Who reads a policy from files sends along what it names; whatever is named
 * and did not come along is an error here, and so is what came along and is
 * named nowhere.
 */
#include "rules/rules_parse.h"

static const char *const what_it_is[] = {
	[RULES_SOURCE_POLICY] = "the policy",
	[RULES_SOURCE_INCLUDE] = "an included file",
	[RULES_SOURCE_PRESET] = "a preset",
	[RULES_SOURCE_HOSTS] = "a list of hosts",
	[RULES_SOURCE_ALLOW] = "--allow",
};
_Static_assert(ARRAY_SIZE(what_it_is) == RULES_SOURCE_KINDS, "name each");

bool source_may_have(struct parser *p, enum section_kind kind)
{
	enum rules_source_kind is = parser_source(p)->kind;

	if (BIT(kind) & SECTIONS_OF_RULES)
		return true;
	if (is == RULES_SOURCE_POLICY && p->source == 0)
		return true;
	if (is == RULES_SOURCE_INCLUDE && kind == SECTION_POLICY)
		return true;
	if (is == RULES_SOURCE_POLICY)
		report_error(p->report, here(p),
			     "[%s] may stand in the first file only; take it "
			     "out here", section_words[kind]);
	else
		report_error(p->report, here(p),
			     "[%s] has no place in %s; it belongs in the "
			     "policy itself", section_words[kind],
			     what_it_is[is]);
	return false;
}

bool source_may_loosen(struct parser *p, const char *key)
{
	if (p->source == 0)
		return true;
	report_error(p->report, here(p),
		     "'%s' of an included file would loosen the policy that "
		     "includes it; take it out here, and write it there if it "
		     "is meant", key);
	return false;
}

/* --- what is named ---------------------------------------------------------- */

static void not_here(struct parser *p, struct str word,
		     enum rules_source_kind kind)
{
	char text[SHOWN_SIZE];

	report_error(p->report, place_of(p, word),
		     "'%s' (%s) did not come along with the policy; have it "
		     "read by penstock, or by a service that has it as a file",
		     shown(word, text), what_it_is[kind]);
}

const struct rules_source *claim_source(struct parser *p, struct str word,
					enum rules_source_kind kind)
{
	char text[SHOWN_SIZE];
	bool before = false;

	for (size_t i = p->source + 1u; i < p->report->n_sources; i++) {
		const struct rules_source *s = &p->report->source[i];

		if (s->kind != kind || s->parent != p->source + 1 ||
		    s->line != p->line || !str_eq(s->word, word))
			continue;
		/* It came along as often as it is named. */
		if (p->claimed[i]) {
			before = true;
			continue;
		}
		if (before)
			report_warning(p->report, place_of(p, word),
				       "'%s' stands in this line twice",
				       shown(word, text));
		p->claimed[i] = true;
		return s;
	}
	not_here(p, word, kind);
	return NULL;
}

/* Of the command line: a preset, or what --allow stands for. */
static void check_top(struct parser *p, uint16_t index)
{
	const struct rules_source *s = &p->report->source[index];
	struct rules_place at = { .source = index };

	p->claimed[index] = true;
	if (s->kind == RULES_SOURCE_INCLUDE || s->kind == RULES_SOURCE_HOSTS)
		report_error(p->report, at, "is %s that nothing names",
			     what_it_is[s->kind]);
}

void check_sources(struct parser *p)
{
	for (size_t i = 0; i < p->report->n_sources; i++) {
		const struct rules_source *s = &p->report->source[i];
		struct rules_place at = { .source = (uint16_t)i };

		if (s->parent == 0)
			check_top(p, (uint16_t)i);
		else if (s->parent > i || s->same > i ||
			 s->kind == RULES_SOURCE_POLICY ||
			 s->kind == RULES_SOURCE_ALLOW)
			report_error(p->report, at,
				     "stands at the wrong place of its bundle");
	}
}

void check_claims(struct parser *p)
{
	const struct rules_report *r = p->report;
	bool file = r->n_sources > 0 &&
		    r->source[0].kind == RULES_SOURCE_POLICY;

	for (size_t i = 0; i < r->n_sources; i++) {
		const struct rules_source *s = &r->source[i];
		struct rules_place at = { .source = (uint16_t)i };
		bool added = s->parent == 0 && !str_empty(s->text) &&
			     (s->kind == RULES_SOURCE_PRESET ||
			      s->kind == RULES_SOURCE_ALLOW);

		/* Where parts were refused, more need not be said of others. */
		if (!p->claimed[i] && r->errors == 0)
			report_error(p->report, at,
				     "is %s that nothing names",
				     what_it_is[s->kind]);
		if (file && added && !p->ast->extend)
			report_error(p->report, at,
				     "would add to %s, which does not say "
				     "'extend = yes' in its [policy]; write "
				     "that there, or the rule itself",
				     r->source[0].name);
	}
}
