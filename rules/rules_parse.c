/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_parse.c - from INI to a list of rules, every fault with its place
 *
 * base/ini.h hands over sections and keys with their lines; a table says which
 * key may stand where and who reads it.  A fault never stops the reading, so
 * that one run of the check shows them all; a rule with a bad value is marked
 * broken and spared the complaints that would only follow from it.
 */
#include <errno.h>

#include "base/ini.h"
#include "rules/rules_parse.h"

const char *const section_words[SECTION_KINDS] = {
	[SECTION_NONE] = "",
	[SECTION_POLICY] = "policy",
	[SECTION_ALLOW] = "allow",
	[SECTION_DENY] = "deny",
	[SECTION_DEFAULTS] = "defaults",
	[SECTION_LIMITS] = "limits",
	[SECTION_DNS] = "dns",
	[SECTION_AUDIT] = "audit",
	[SECTION_CREDENTIAL] = "credential",
};

/* --- places --------------------------------------------------------------- */

/*
 * Where a part of the value stands in its line.  The value is a part of the
 * source's text (base/ini.h), so the way to the line's beginning is as short as
 * the line: what is warned of in each of a million lines costs a million steps.
 */
struct rules_place place_of(const struct parser *p, struct str part)
{
	struct str text = parser_source(p)->text;
	size_t at = (size_t)(part.p - text.p);
	struct rules_place place = here(p);
	const char *before;

	REQUIRE(part.p >= text.p && at <= text.n);
	before = memrchr(text.p, '\n', at);
	if (before)
		at = (size_t)(part.p - before - 1);
	if (at < UINT16_MAX)
		place.column = (uint16_t)(at + 1);
	return place;
}

void bad_word(struct parser *p, struct str word, const char *why)
{
	char text[SHOWN_SIZE];

	if (p->rule)
		p->rule->broken = true;
	report_error(p->report, place_of(p, word), "'%s' %s",
		     shown(word, text), why);
}

void *take(struct parser *p, size_t size)
{
	void *piece = arena_get(p->ast->arena, size);

	if (!piece)
		p->no_memory = true;
	return piece;
}

struct str keep(struct parser *p, struct str s)
{
	struct str copy = arena_str(p->ast->arena, s);

	if (!copy.p)
		p->no_memory = true;
	return copy;
}

bool first_time(struct parser *p, struct rules_place *place,
		       const char *key)
{
	if (place->line != 0) {
		report_error(p->report, here(p),
			     "'%s' stands in [%.*s] twice, first in line %u; "
			     "leave one", key, STR_ARG(p->section),
			     (unsigned)place->line);
		return false;
	}
	*place = here(p);
	return true;
}

bool is_plain_word(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = ascii_lower(s.p[i]);

		if (!(c >= 'a' && c <= 'z') && !ascii_is_digit(c) && c != '.' &&
		    c != '_' && c != '-')
			return false;
	}
	return s.n > 0;
}

/* --- sections ------------------------------------------------------------- */

static void refuse_section(struct parser *p)
{
	p->refused = true;
}

static const struct ast_rule *find_rule(const struct parser *p, bool deny,
					struct str name)
{
	struct hash_node *n = hash_first(&p->rules, hash_str(name));

	for (; n; n = hash_next(n)) {
		const struct ast_rule *r = container_of(n, struct ast_rule,
							by_name);

		if (r->deny == deny && str_eq(r->name, name))
			return r;
	}
	return NULL;
}

/* A section that may stand once: where it did. */
static struct rules_place *place_of_section(struct parser *p)
{
	switch ((int)p->kind) {
	case SECTION_POLICY:
		return &p->policy_place;
	case SECTION_DEFAULTS:
		return &p->ast->defaults_place;
	case SECTION_LIMITS:
		return &p->ast->limits_place;
	case SECTION_DNS:
		return &p->ast->dns_place;
	default:
		return &p->ast->audit_place;
	}
}

static void begin_single(struct parser *p, struct str behind)
{
	const char *word = section_words[p->kind];
	struct rules_place *place = place_of_section(p);
	char where[PLACE_SIZE];

	p->section = str_from(word);
	if (!str_empty(behind)) {
		report_error(p->report, here(p), "[%s] has no name in its "
			     "brackets; %s", word, p->kind == SECTION_POLICY ?
			     "write 'name = ...' below it" : "take it out");
		refuse_section(p);
	} else if (!source_may_have(p, p->kind)) {
		refuse_section(p);
	} else if (place->line != 0) {
		report_error(p->report, here(p),
			     "[%s] stands here again, first in %s; join the "
			     "two", word, place_text(p->report, *place, where));
		refuse_section(p);
	} else {
		*place = here(p);
		if (p->source == 0 && p->kind == SECTION_POLICY)
			p->ast->policy_place = here(p);
	}
}

/* What messages call the section: its two words, whatever stood between. */
static void set_section_text(struct parser *p, struct str name)
{
	struct str word = str_from(section_words[p->kind]);
	char *text = take(p, word.n + 1 + name.n);

	if (!text)
		return;
	memcpy(text, word.p, word.n);
	text[word.n] = ' ';
	memcpy(text + word.n + 1, name.p, name.n);
	p->section = str_make(text, word.n + 1 + name.n);
}

static void add_rule(struct parser *p, struct str name)
{
	struct ast_rule *rule;

	if (p->ast->n_rules == RULES_MAX) {
		report_error(p->report, here(p),
			     "there are more than %d rules; join those that "
			     "differ in hosts alone", RULES_MAX);
		refuse_section(p);
		return;
	}
	rule = take(p, sizeof(*rule));
	if (!rule)
		return;
	rule->deny = p->kind == SECTION_DENY;
	rule->name = keep(p, name);
	rule->place = here(p);
	rule->expires = RULES_NEVER;
	rule->hosts_end = &rule->hosts;
	rule->lists_end = &rule->lists;
	rule->ranges_end = &rule->ranges;
	rule->ports_end = &rule->ports;
	rule->methods_end = &rule->methods;
	rule->paths_end = &rule->paths;
	*p->ast->rules_end = rule;
	p->ast->rules_end = &rule->next;
	p->ast->n_rules++;
	hash_add(&p->rules, &rule->by_name, hash_str(rule->name));
	p->rule = rule;
	set_section_text(p, name);
}

/* A name behind the section's word, as every rule and credential has one. */
static bool has_name(struct parser *p, struct str name)
{
	const char *word = section_words[p->kind];
	char text[SHOWN_SIZE];

	if (str_empty(name)) {
		report_error(p->report, here(p),
			     "[%s] has no name; write [%s NAME], the name is "
			     "what records show", word, word);
		return false;
	}
	if (!is_plain_word(name)) {
		report_error(p->report, here(p),
			     "'%s' cannot be a %s's name; write letters, "
			     "digits, '.', '_' and '-'", shown(name, text),
			     p->kind == SECTION_CREDENTIAL ? word : "rule");
		return false;
	}
	return true;
}

static void begin_rule(struct parser *p, struct str name)
{
	const char *word = section_words[p->kind];
	const struct ast_rule *same;
	char where[PLACE_SIZE];

	if (!source_may_have(p, p->kind) || !has_name(p, name)) {
		refuse_section(p);
		return;
	}
	same = find_rule(p, p->kind == SECTION_DENY, name);
	if (same) {
		report_error(p->report, here(p),
			     "[%s %.*s] stands here again, first in %s; join "
			     "the two, or name this one otherwise", word,
			     STR_ARG(name),
			     place_text(p->report, same->place, where));
		refuse_section(p);
		return;
	}
	add_rule(p, name);
}

static void begin_credential(struct parser *p, struct str name)
{
	if (!source_may_have(p, p->kind) || !has_name(p, name)) {
		refuse_section(p);
		return;
	}
	for (size_t i = 0; i < p->n_credentials; i++) {
		if (!str_eq(p->credential[i], name))
			continue;
		report_error(p->report, here(p),
			     "[credential %.*s] stands here again; join the "
			     "two, or name this one otherwise", STR_ARG(name));
		refuse_section(p);
		return;
	}
	if (p->n_credentials == CREDENTIALS_MAX) {
		report_error(p->report, here(p), "there are more than %d "
			     "credentials; take out those that nothing uses",
			     CREDENTIALS_MAX);
		refuse_section(p);
		return;
	}
	p->section_name = keep(p, name);
	p->credential[p->n_credentials++] = p->section_name;
	set_section_text(p, name);
}

static void unknown_section(struct parser *p, struct str whole,
			    struct str first)
{
	const char *words[SECTION_KINDS], *near;
	char text[SHOWN_SIZE];
	bool named;

	for (int i = SECTION_POLICY; i < SECTION_KINDS; i++)
		words[i - 1] = section_words[i];
	words[SECTION_KINDS - 1] = NULL;
	near = ini_did_you_mean(first, words);
	named = near && (strcmp(near, "allow") == 0 ||
			 strcmp(near, "deny") == 0 ||
			 strcmp(near, "credential") == 0);

	if (near)
		report_error(p->report, here(p),
			     "unknown section [%s]; did you mean [%s%s]?",
			     shown(whole, text), near, named ? " NAME" : "");
	else
		report_error(p->report, here(p),
			     "unknown section [%s]; there are [policy], [allow "
			     "NAME], [deny NAME], [defaults], [limits], [dns], "
			     "[audit] and [credential NAME]",
			     shown(whole, text));
	refuse_section(p);
}

static void on_section(void *arg, unsigned line, struct str name)
{
	struct parser *p = arg;
	struct str rest = name, first;

	p->line = line;
	p->kind = SECTION_NONE;
	p->rule = NULL;
	p->refused = false;
	if (p->no_memory)
		return;
	p->section = STR_NONE;
	p->section_name = STR_NONE;
	p->first_setting = NULL;
	p->unused_told = false;
	str_word(&rest, &first);
	rest = str_trim(rest);
	for (int kind = SECTION_POLICY; kind < SECTION_KINDS; kind++) {
		if (str_eq(first, str_from(section_words[kind])))
			p->kind = (enum section_kind)kind;
	}
	if (p->kind == SECTION_NONE)
		unknown_section(p, str_trim(name), first);
	else if (BIT(p->kind) & SECTIONS_OF_RULES)
		begin_rule(p, rest);
	else if (p->kind == SECTION_CREDENTIAL)
		begin_credential(p, rest);
	else
		begin_single(p, rest);
}

static void on_key(void *arg, unsigned line, struct str section,
		   struct str word, struct str value)
{
	struct parser *p = arg;

	(void)section;
	p->line = line;
	/* What would not be told need not be found, however much it is. */
	if (!p->refused && !p->no_memory && p->report->errors <= RULES_DIAGS_MAX)
		parse_key(p, word, value);
}

static void on_error(void *arg, unsigned line, unsigned column,
		     const char *message)
{
	struct parser *p = arg;
	struct rules_place at = {
		.source = p->source,
		.line = line,
		.column = column < UINT16_MAX ? (uint16_t)column : 0,
	};

	if (p->rule)
		p->rule->broken = true;
	report_error(p->report, at, "%s", message);
}

static int parse_source(struct parser *p, uint16_t source)
{
	static const struct ini_handler handler = {
		.on_section = on_section,
		.on_key = on_key,
		.on_error = on_error,
	};
	int err;

	p->source = source;
	p->kind = SECTION_NONE;
	p->refused = false;
	p->rule = NULL;
	p->section = p->section_name = STR_NONE;
	p->first_setting = NULL;
	p->unused_told = false;
	p->policy_place = p->own_name = p->own_owner = p->own_reason =
		(struct rules_place){ 0 };
	err = ini_read(p->report->source[source].text, &handler, p);
	if (err == -ENOMEM || p->no_memory)
		return -ENOMEM;
	/* -EINVAL: on_error() has told. */
	return 0;
}

/* [defaults] is about the rules that stand in the same file. */
static void apply_defaults(struct rules_ast *ast)
{
	for (struct ast_rule *r = ast->rules; r; r = r->next) {
		if (r->place.source != 0)
			continue;
		if (r->owner.place.line == 0)
			r->owner = ast->default_owner;
		if (!r->deny && r->expires_place.line == 0) {
			r->expires = ast->default_expires;
			r->expires_place = ast->default_expires_place;
		}
		if (!r->deny && !r->protocol && r->n_ports == 0) {
			r->protocol = ast->default_protocol;
			r->protocol_place = ast->default_protocol_place;
		}
	}
}

static void parser_done(struct parser *p)
{
	hash_done(&p->rules);
}

int rules_parse(struct rules_ast *ast, struct rules_report *report)
{
	CLEANUP(parser_done) struct parser p = { .ast = ast, .report = report };
	int err = 0;

	ast->rules_end = &ast->rules;
	ast->settings_end = &ast->settings;
	ast->default_expires = RULES_NEVER;
	p.claimed = take(&p, report->n_sources + 1);
	if (!p.claimed || hash_init(&p.rules, 0) < 0)
		return -ENOMEM;
	check_sources(&p);
	for (size_t i = 0; i < report->n_sources && !err; i++) {
		const struct rules_source *s = &report->source[i];

		/* A list is read where it is named, and nothing twice. */
		if (s->kind != RULES_SOURCE_HOSTS && !s->same)
			err = parse_source(&p, (uint16_t)i);
	}
	if (err)
		return err;
	check_claims(&p);
	apply_defaults(ast);
	return p.no_memory ? -ENOMEM : 0;
}
