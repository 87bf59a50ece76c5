/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_hosts.c - the hosts of all rules in one table
 *
 * Rule by rule, each host goes into the table (host_table.h), and its mark a
 * step on (host_marks.h); with an allow's, so do the marks of all names above
 * it.  When all are there, the marks that some name ended at are numbered anew,
 * and each gets the slices of rules that it stands for.
 */
#include <errno.h>
#include <stdio.h>

#include "rules/host_list.h"
#include "rules/host_marks.h"
#include "rules/rules_ast.h"
#include "rules/ruleset.h"

/* Hosts of a list that are read ahead, while their cells are fetched. */
#define READ_AHEAD	16

struct planting {
	struct ruleset *rs;
	struct rules_report *report;
	struct host_build build;
	struct host_marks marks;
	uint32_t rule;			/* its index */
	bool allow;
};

static void planting_done(struct planting *p)
{
	host_build_done(&p->build);
	host_marks_done(&p->marks);
}

static int step(struct planting *p, uint32_t at, enum host_step what,
		uint32_t *ret_mark)
{
	uint32_t mark = host_build_mark(&p->build, at), before = mark;
	int err = host_marks_step(&p->marks, &mark, what,
				  what == STEP_LEADS ? 0 : p->rule);

	*ret_mark = mark;
	if (!err && mark != before)
		host_build_set_mark(&p->build, at, mark);
	return err ? err : mark != before;
}

/* All names above it lead to a name that is allowed, or below which some are. */
static int lead(struct planting *p, const struct host_trail *trail, bool below)
{
	for (unsigned i = 0; i + !below < trail->n; i++) {
		uint32_t mark;

		if (step(p, trail->at[i], STEP_LEADS, &mark) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* @ret_twice: the rule had it already. */
static int plant(struct planting *p, enum host_pattern_kind kind,
		 const struct host_probe *probe, struct rules_place place,
		 bool *ret_twice)
{
	const struct host_mark_draft *draft;
	struct host_trail trail;
	uint32_t mark;
	int new;

	if (host_build_add(&p->build, probe, &trail) < 0)
		return -ENOMEM;
	new = step(p, trail.at[trail.n - 1], kind == HOST_EXACT ? STEP_EXACT :
		   STEP_BELOW, &mark);
	if (new < 0)
		return new;
	*ret_twice = !new;
	draft = &p->marks.draft[mark];
	if (new && MAX(draft->n_exact, draft->n_below) ==
		   RULES_PER_HOST_MAX + 1) {
		report_error(p->report, place, "more than %d rules name the "
			     "same host; join some of them",
			     RULES_PER_HOST_MAX);
		return -EINVAL;
	}
	return p->allow ? lead(p, &trail, kind == HOST_BELOW) : 0;
}

/* "*" stands in no table. */
static void plant_any(struct planting *p, struct ast_host *h)
{
	struct ruleset *rs = p->rs;

	h->twice = rs->rule[p->rule].any_host;
	rs->rule[p->rule].any_host = true;
	if (!h->twice)
		rs->any[rs->n_any++] = p->rule;
}

/* --- lists ---------------------------------------------------------------- */

static struct rules_place place_in(const struct host_list *l, uint16_t source)
{
	struct rules_place place = { .source = source, .line = l->line };
	size_t at = (size_t)(l->word.p - l->text.p);

	if (at < UINT16_MAX)
		place.column = (uint16_t)(at + 1);
	return place;
}

/* True when one more of them would not be shown. */
static bool tell_fault(const struct host_list *l, uint16_t source,
		       struct rules_report *report)
{
	char text[SHOWN_SIZE];

	report_error(report, place_in(l, source), "'%s' %s",
		     shown(l->word, text), l->why);
	return report->errors > RULES_DIAGS_MAX;
}

void rules_check_lists(const struct rules_ast *ast, struct rules_report *report)
{
	for (const struct ast_rule *r = ast->rules; r; r = r->next) {
		for (const struct ast_list *l = r->lists; l; l = l->next) {
			struct host_pattern pattern;
			enum host_list_step step;
			struct host_list reader;

			host_list_start(&reader, report->source[l->source].text,
					r->deny, r->public_suffix);
			while ((step = host_list_next(&reader, &pattern))) {
				if (step == LIST_FAULT &&
				    tell_fault(&reader, l->source, report))
					return;
			}
		}
	}
}

struct ahead {
	struct host_pattern pattern;
	struct host_probe probe;	/* of its name */
	struct rules_place place;
};

/* What is said of a list as a whole, when it has been read. */
struct list_tally {
	size_t hosts, twice;
	struct ahead first_twice;
};

static int plant_ahead(struct planting *p, const struct ahead *a,
		       struct list_tally *tally)
{
	struct ast_host any = { .kind = HOST_ANY };
	bool twice = false;
	int err = 0;

	if (a->pattern.kind == HOST_ANY) {
		plant_any(p, &any);
		twice = any.twice;
	} else {
		err = plant(p, a->pattern.kind, &a->probe, a->place, &twice);
	}
	tally->hosts++;
	if (twice && tally->twice++ == 0)
		tally->first_twice = *a;
	return err;
}

static void tell_tally(struct planting *p, const struct ast_rule *r,
		       const struct ast_list *list, const struct list_tally *t)
{
	const struct host_pattern *first = &t->first_twice.pattern;
	char more[48] = "", text[SHOWN_SIZE];

	if (t->hosts == 0)
		report_warning(p->report, list->place, "%s has no host in it",
			       p->report->source[list->source].name);
	if (t->twice == 0)
		return;
	if (t->twice > 1 &&
	    snprintf(more, sizeof(more), " (and %zu more of the list)",
		     t->twice - 1) < 0)
		more[0] = '\0';
	report_warning(p->report, t->first_twice.place,
		       "'%s%s'%s stands in [%s %.*s] twice",
		       host_pattern_front(first->kind),
		       first->kind == HOST_ANY ? "" :
		       shown(host_name_str(&first->name), text), more,
		       r->deny ? "deny" : "allow", STR_ARG(r->name));
}

static int plant_list(struct planting *p, const struct ast_rule *r,
		      const struct ast_list *list)
{
	struct rules_report *report = p->report;
	const unsigned errors = report->errors;
	struct ahead ahead[READ_AHEAD];
	struct list_tally tally = { 0 };
	struct host_list reader;
	enum host_list_step step;
	size_t n = 0, done = 0;
	int err = 0;

	host_list_start(&reader, report->source[list->source].text, r->deny,
			r->public_suffix);
	do {
		struct ahead *a = &ahead[n % READ_AHEAD];

		if (n - done == READ_AHEAD)
			err = plant_ahead(p, &ahead[done++ % READ_AHEAD],
					  &tally);
		step = host_list_next(&reader, &a->pattern);
		if (step == LIST_FAULT &&
		    tell_fault(&reader, list->source, report))
			break;
		if (step != LIST_HOST)
			continue;
		a->place = place_in(&reader, list->source);
		n++;
		if (a->pattern.kind != HOST_ANY)
			host_build_probe(&p->build,
					 host_name_str(&a->pattern.name),
					 &a->probe);
	} while (step != LIST_END && !err);
	while (done < n && !err)
		err = plant_ahead(p, &ahead[done++ % READ_AHEAD], &tally);
	if (!err && report->errors > errors)
		err = -EINVAL;
	if (!err)
		tell_tally(p, r, list, &tally);
	return err;
}

static int plant_rule(struct planting *p, struct ast_rule *r)
{
	int err = 0;

	p->allow = !r->deny;
	for (struct ast_host *h = r->hosts; h && !err; h = h->next) {
		struct host_probe probe UNINITIALIZED;

		if (h->kind == HOST_ANY) {
			plant_any(p, h);
			continue;
		}
		host_build_probe(&p->build, h->name, &probe);
		err = plant(p, h->kind, &probe, h->place, &h->twice);
	}
	for (struct ast_list *l = r->lists; l && !err; l = l->next)
		err = plant_list(p, r, l);
	return err;
}

/* Hosts and bytes of their names, at most: comments count, too. */
static void count_names(const struct rules_ast *ast,
			const struct rules_report *report, size_t *ret_names,
			size_t *ret_bytes)
{
	*ret_names = ast->n_hosts;
	*ret_bytes = 0;
	for (const struct ast_rule *r = ast->rules; r; r = r->next) {
		for (const struct ast_host *h = r->hosts; h; h = h->next)
			*ret_bytes += h->name.n + 1;
		for (const struct ast_list *l = r->lists; l; l = l->next) {
			struct str rest = report->source[l->source].text, line;

			*ret_bytes += rest.n;
			while (str_cut(&rest, '\n', &line))
				++*ret_names;
		}
	}
}

/* --- what the marks mean -------------------------------------------------- */

/* The chain of steps, from its end, into the slices of the mark. */
static void fill_mark(struct planting *p, struct host_mark *mark,
		      uint32_t draft)
{
	const struct host_mark_draft *d = &p->marks.draft[draft];
	uint32_t exact = mark->exact + d->n_exact;
	uint32_t below = mark->below + d->n_below;

	mark->n_exact = d->n_exact;
	mark->n_below = d->n_below;
	mark->leads = d->leads;
	for (; draft != HOST_MARK_NONE; draft = d->from) {
		d = &p->marks.draft[draft];
		if (d->step == STEP_EXACT)
			p->rs->entry[--exact] = d->rule;
		else if (d->step == STEP_BELOW)
			p->rs->entry[--below] = d->rule;
	}
}

static int fill_marks(struct planting *p, const uint32_t *number, uint32_t n)
{
	struct ruleset *rs = p->rs;
	uint32_t entries = 0;

	rs->n_marks = n;
	rs->mark = arena_get_array(rs->arena, n, sizeof(rs->mark[0]));
	if (!rs->mark)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->marks.n; i++) {
		const struct host_mark_draft *d = &p->marks.draft[i];
		struct host_mark *mark = &rs->mark[number[i]];

		if (number[i] == 0)
			continue;
		mark->exact = entries;
		entries += d->n_exact;
		mark->below = entries;
		entries += d->n_below;
	}
	rs->entry = arena_get_array(rs->arena, entries, sizeof(rs->entry[0]));
	if (!rs->entry)
		return -ENOMEM;
	for (uint32_t i = 1; i < p->marks.n; i++) {
		if (number[i] != 0)
			fill_mark(p, &rs->mark[number[i]], i);
	}
	return 0;
}

static int finish(struct planting *p)
{
	CLEANUP(mem_freep) uint32_t *number = NULL;
	uint32_t n;
	int err;

	number = mem_new_array(p->marks.n, sizeof(*number));
	if (!number)
		return -ENOMEM;
	n = host_build_number_marks(&p->build, number);
	err = fill_marks(p, number, n);
	return err ? err : host_build_take(&p->build, &p->rs->hosts);
}

int rules_compile_hosts(struct ruleset *rs, const struct rules_ast *ast,
			struct rules_report *report)
{
	CLEANUP(planting_done) struct planting p = {
		.rs = rs, .report = report,
	};
	size_t names, bytes;
	int err;

	rs->any = arena_get_array(rs->arena, ast->n_rules, sizeof(rs->any[0]));
	if (!rs->any)
		return -ENOMEM;
	count_names(ast, report, &names, &bytes);
	err = host_build_init(&p.build, names, bytes);
	if (!err)
		err = host_marks_init(&p.marks);
	for (struct ast_rule *r = ast->rules; r && !err; r = r->next) {
		err = plant_rule(&p, r);
		p.rule++;
	}
	return err ? err : finish(&p);
}
