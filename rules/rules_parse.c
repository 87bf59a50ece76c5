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
#include "rules/rules_ast.h"

enum section_kind {
	SECTION_NONE,		/* before the first, or one that was refused */
	SECTION_POLICY,
	SECTION_ALLOW,
	SECTION_DENY,

	SECTION_KINDS
};

static const char *const section_words[] = {
	[SECTION_NONE] = "",
	[SECTION_POLICY] = "policy",
	[SECTION_ALLOW] = "allow",
	[SECTION_DENY] = "deny",
};
_Static_assert(ARRAY_SIZE(section_words) == SECTION_KINDS, "name each");

struct parser {
	struct rules_ast *ast;
	struct rules_report *report;
	uint16_t source;		/* being read */
	enum section_kind kind;
	bool refused;			/* the section was; skip its keys */
	struct str section;		/* "allow NAME", with one blank */
	struct ast_rule *rule;		/* of SECTION_ALLOW and SECTION_DENY */
	struct str value;		/* of the key being read */
	uint32_t line;
	bool no_memory;
};

/* --- places --------------------------------------------------------------- */

static struct rules_place here(const struct parser *p)
{
	return (struct rules_place){ .source = p->source, .line = p->line };
}

/* The source's line @number, without its end. */
static struct str find_line(struct str text, uint32_t number)
{
	struct str line = STR_NONE;

	for (uint32_t i = 0; i < number; i++) {
		if (!str_cut(&text, '\n', &line))
			return STR_NONE;
	}
	return line;
}

/*
 * Where a part of the value stands in its line.  The value may have been copied
 * on its way to us, so its place is found again behind the separator.
 */
static struct rules_place place_of(const struct parser *p, struct str part)
{
	struct str line = find_line(p->report->source[p->source].text, p->line);
	size_t eq = str_chr(line, '='), colon = str_chr(line, ':');
	size_t at = MIN(eq, colon) + 1;
	struct rules_place place = here(p);

	while (at < line.n && (line.p[at] == ' ' || line.p[at] == '\t'))
		at++;
	at += (size_t)(part.p - p->value.p);
	if (at < line.n && at < UINT16_MAX)
		place.column = (uint16_t)(at + 1);
	return place;
}

static void bad_word(struct parser *p, struct str word, const char *why)
{
	char text[SHOWN_SIZE];

	if (p->rule)
		p->rule->broken = true;
	report_error(p->report, place_of(p, word), "'%s' %s",
		     shown(word, text), why);
}

static void *take(struct parser *p, size_t size)
{
	void *piece = arena_get(p->ast->arena, size);

	if (!piece)
		p->no_memory = true;
	return piece;
}

static struct str keep(struct parser *p, struct str s)
{
	struct str copy = arena_str(p->ast->arena, s);

	if (!copy.p)
		p->no_memory = true;
	return copy;
}

/* --- values --------------------------------------------------------------- */

static void read_host(struct parser *p, struct str word)
{
	struct host_pattern pattern;
	struct ast_host *host;
	const char *why;

	if (host_pattern_parse(word, p->rule->deny, &pattern, &why) < 0) {
		bad_word(p, word, why);
		return;
	}
	host = take(p, sizeof(*host));
	if (!host)
		return;
	host->kind = pattern.kind;
	if (pattern.kind != HOST_ANY)
		host->name = keep(p, host_name_str(&pattern.name));
	/* Columns are looked for when something is wrong, not for each word. */
	host->place = here(p);
	*p->rule->hosts_end = host;
	p->rule->hosts_end = &host->next;
	p->rule->n_hosts++;
	p->ast->n_hosts++;
}

static void read_range(struct parser *p, struct str word)
{
	struct addr_range r;
	struct ast_range *range;
	const char *why;

	if (addr_range_parse(word, p->rule->deny, &r, &why) < 0) {
		bad_word(p, word, why);
		return;
	}
	range = take(p, sizeof(*range));
	if (!range)
		return;
	range->r = r;
	range->text = keep(p, word);
	range->place = here(p);
	*p->rule->ranges_end = range;
	p->rule->ranges_end = &range->next;
	p->rule->n_ranges++;
}

static void read_ports(struct parser *p, struct str word)
{
	struct port_range r;
	struct ast_ports *ports;
	const char *why;

	if (port_range_parse(word, &r, &why) < 0) {
		bad_word(p, word, why);
		return;
	}
	ports = take(p, sizeof(*ports));
	if (!ports)
		return;
	ports->r = r;
	ports->place = here(p);
	*p->rule->ports_end = ports;
	p->rule->ports_end = &ports->next;
	p->rule->n_ports++;
}

static void each_word(struct parser *p,
		      void (*read)(struct parser *p, struct str word))
{
	struct str rest = p->value, word;

	while (!p->no_memory && str_word(&rest, &word))
		read(p, word);
}

static void set_hosts(struct parser *p)
{
	each_word(p, read_host);
}

static void set_addresses(struct parser *p)
{
	each_word(p, read_range);
}

static void set_ports(struct parser *p)
{
	each_word(p, read_ports);
}

/* A key that may stand once: false when it stood there before. */
static bool first_time(struct parser *p, struct rules_place *place,
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

static void set_protocol(struct parser *p)
{
	struct ast_rule *rule = p->rule;
	char text[SHOWN_SIZE];
	const char *near;

	if (!first_time(p, &rule->protocol_place, "protocol"))
		return;
	rule->protocol = rules_protocol_by_name(p->value);
	if (rule->protocol)
		return;
	near = rules_protocol_near(p->value);
	rule->broken = true;
	if (near)
		report_error(p->report, place_of(p, p->value),
			     "unknown protocol '%s'; did you mean '%s'?",
			     shown(p->value, text), near);
	else
		report_error(p->report, place_of(p, p->value),
			     "unknown protocol '%s'; write 'tcp' with 'ports' "
			     "for one that penstock.ini(5) does not list",
			     shown(p->value, text));
}

static void set_text(struct parser *p, struct ast_text *t, const char *key)
{
	if (!first_time(p, &t->place, key))
		return;
	if (p->value.n > RULES_FREE_TEXT_MAX) {
		report_error(p->report, here(p),
			     "'%s' is longer than %d bytes; say it shorter",
			     key,
			     RULES_FREE_TEXT_MAX);
		return;
	}
	t->text = keep(p, p->value);
}

static void set_reason(struct parser *p)
{
	set_text(p, p->rule ? &p->rule->reason : &p->ast->reason, "reason");
}

static void set_owner(struct parser *p)
{
	set_text(p, p->rule ? &p->rule->owner : &p->ast->owner, "owner");
}

static void set_expires(struct parser *p)
{
	const char *why;

	if (!first_time(p, &p->rule->expires_place, "expires"))
		return;
	if (rules_time_parse(p->value, &p->rule->expires, &why) < 0)
		bad_word(p, p->value, why);
}

static bool is_plain_word(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = ascii_lower(s.p[i]);

		if (!(c >= 'a' && c <= 'z') && !ascii_is_digit(c) && c != '.' &&
		    c != '_' && c != '-')
			return false;
	}
	return s.n > 0;
}

static void set_name(struct parser *p)
{
	if (p->value.n > RULES_POLICY_NAME_MAX || !is_plain_word(p->value)) {
		bad_word(p, p->value, "cannot be a policy's name; write up to "
			 "64 letters, digits, '.', '_' and '-'");
		return;
	}
	set_text(p, &p->ast->name, "name");
}

static void set_mode(struct parser *p)
{
	static const char *const modes[] = { "enforce", "observe", NULL };
	char text[SHOWN_SIZE];
	const char *near;

	if (!first_time(p, &p->ast->mode_place, "mode"))
		return;
	if (str_eq(p->value, STR("enforce")))
		return;
	p->ast->observe = str_eq(p->value, STR("observe"));
	if (p->ast->observe)
		return;
	near = ini_did_you_mean(p->value, modes);
	report_error(p->report, place_of(p, p->value),
		     "unknown mode '%s'; %s", shown(p->value, text),
		     !near ? "write 'enforce' or 'observe'" :
		     str_eq(str_from(near), STR("observe")) ?
		     "did you mean 'observe'?" : "did you mean 'enforce'?");
}

/* --- keys ----------------------------------------------------------------- */

static const struct key {
	const char *word;
	unsigned where;			/* bits of enum section_kind */
	void (*set)(struct parser *p);
} keys[] = {
	{ "hosts", BIT(SECTION_ALLOW) | BIT(SECTION_DENY), set_hosts },
	{ "addresses", BIT(SECTION_ALLOW) | BIT(SECTION_DENY), set_addresses },
	{ "ports", BIT(SECTION_ALLOW) | BIT(SECTION_DENY), set_ports },
	{ "protocol", BIT(SECTION_ALLOW) | BIT(SECTION_DENY), set_protocol },
	{ "reason", BIT(SECTION_POLICY) | BIT(SECTION_ALLOW) |
		    BIT(SECTION_DENY), set_reason },
	{ "owner", BIT(SECTION_POLICY) | BIT(SECTION_ALLOW) |
		   BIT(SECTION_DENY), set_owner },
	{ "expires", BIT(SECTION_ALLOW) | BIT(SECTION_DENY), set_expires },
	{ "name", BIT(SECTION_POLICY), set_name },
	{ "mode", BIT(SECTION_POLICY), set_mode },
};

static const struct key *find_key(struct str word)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (str_eq(word, str_from(keys[i].word)))
			return &keys[i];
	}
	return NULL;
}

static void unknown_key(struct parser *p, struct str word)
{
	const char *near_words[ARRAY_SIZE(keys) + 1];
	char text[SHOWN_SIZE];
	const char *near;
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys[i].where & BIT(p->kind))
			near_words[n++] = keys[i].word;
	}
	near_words[n] = NULL;
	near = ini_did_you_mean(word, near_words);
	if (near)
		report_error(p->report, here(p),
			     "unknown key '%s' in [%.*s]; did you mean '%s'?",
			     shown(word, text), STR_ARG(p->section), near);
	else
		report_error(p->report, here(p),
			     "unknown key '%s' in [%.*s]; penstock.ini(5) "
			     "lists the keys", shown(word, text),
			     STR_ARG(p->section));
}

/* May @key stand in the section being read? Says so when not. */
static bool key_belongs(struct parser *p, struct str word,
			const struct key *key)
{
	char text[SHOWN_SIZE];

	if (p->kind == SECTION_NONE) {
		report_error(p->report, here(p),
			     "'%s' stands before the first section; begin one "
			     "with [policy], [allow NAME] or [deny NAME]",
			     shown(word, text));
		return false;
	}
	if (!key) {
		unknown_key(p, word);
		return false;
	}
	if (!(key->where & BIT(p->kind))) {
		report_error(p->report, here(p),
			     "'%s' has no place in [%.*s]; it belongs in %s",
			     key->word, STR_ARG(p->section),
			     key->where & BIT(SECTION_POLICY) ? "[policy]" :
			     "[allow NAME] or [deny NAME]");
		return false;
	}
	return true;
}

static void on_key(void *arg, unsigned line, struct str section,
		   struct str word, struct str value)
{
	struct parser *p = arg;
	const struct key *key = find_key(word);

	(void)section;
	p->line = line;
	p->value = value;
	if (p->refused || p->no_memory)
		return;
	if (!key_belongs(p, word, key)) {
		if (p->rule)
			p->rule->broken = true;
		return;
	}
	if (str_empty(value)) {
		report_error(p->report, here(p),
			     "'%s' is empty; give it a value, or leave the "
			     "line out", key->word);
		if (p->rule)
			p->rule->broken = true;
		return;
	}
	key->set(p);
}

/* --- sections ------------------------------------------------------------- */

static void refuse_section(struct parser *p)
{
	p->refused = true;
}

static struct ast_rule *find_rule(const struct rules_ast *ast, bool deny,
				  struct str name)
{
	for (struct ast_rule *r = ast->rules; r; r = r->next) {
		if (r->deny == deny && str_eq(r->name, name))
			return r;
	}
	return NULL;
}

static void begin_policy(struct parser *p, struct str behind)
{
	char where[PLACE_SIZE];

	p->kind = SECTION_POLICY;
	if (!str_empty(behind)) {
		report_error(p->report, here(p),
			     "[policy] has no name in its brackets; write "
			     "'name = ...' below it");
		refuse_section(p);
	} else if (p->source > 0) {
		report_error(p->report, here(p),
			     "[policy] may stand in the first file only; take "
			     "it out here");
		refuse_section(p);
	} else if (p->ast->policy_place.line != 0) {
		report_error(p->report, here(p),
			     "[policy] stands here again, first in %s; join "
			     "the two",
			     place_text(p->report, p->ast->policy_place,
					where));
		refuse_section(p);
	} else {
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
	*p->ast->rules_end = rule;
	p->ast->rules_end = &rule->next;
	p->ast->n_rules++;
	p->rule = rule;
	set_section_text(p, name);
}

static void begin_rule(struct parser *p, struct str name)
{
	const char *word = section_words[p->kind];
	const struct ast_rule *same;
	char where[PLACE_SIZE], text[SHOWN_SIZE];

	if (str_empty(name)) {
		report_error(p->report, here(p),
			     "[%s] has no name; write [%s NAME], the name is "
			     "what records show", word, word);
		refuse_section(p);
		return;
	}
	if (!is_plain_word(name)) {
		report_error(p->report, here(p),
			     "'%s' cannot be a rule's name; write letters, "
			     "digits, '.', '_' and '-'", shown(name, text));
		refuse_section(p);
		return;
	}
	same = find_rule(p->ast, p->kind == SECTION_DENY, name);
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

static void unknown_section(struct parser *p, struct str whole,
			    struct str first)
{
	static const char *const words[] = { "policy", "allow", "deny", NULL };
	const char *near = ini_did_you_mean(first, words);
	char text[SHOWN_SIZE];

	if (near)
		report_error(p->report, here(p),
			     "unknown section [%s]; did you mean [%s%s]?",
			     shown(whole, text), near,
			     str_eq(str_from(near), STR("policy")) ? "" :
			     " NAME");
	else
		report_error(p->report, here(p),
			     "unknown section [%s]; there are [policy], [allow "
			     "NAME] and [deny NAME]", shown(whole, text));
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
	p->section = str_from(section_words[SECTION_POLICY]);
	str_word(&rest, &first);
	rest = str_trim(rest);
	for (int kind = SECTION_POLICY; kind < SECTION_KINDS; kind++) {
		if (str_eq(first, str_from(section_words[kind])))
			p->kind = (enum section_kind)kind;
	}
	if (p->kind == SECTION_NONE)
		unknown_section(p, str_trim(name), first);
	else if (p->kind == SECTION_POLICY)
		begin_policy(p, rest);
	else
		begin_rule(p, rest);
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
	p->section = STR_NONE;
	err = ini_read(p->report->source[source].text, &handler, p);
	if (err == -ENOMEM || p->no_memory)
		return -ENOMEM;
	/* -EINVAL: on_error() has told. */
	return 0;
}

int rules_parse(struct rules_ast *ast, struct rules_report *report)
{
	struct parser p = { .ast = ast, .report = report };
	int err = 0;

	ast->rules_end = &ast->rules;
	for (size_t i = 0; i < report->n_sources && !err; i++)
		err = parse_source(&p, (uint16_t)i);
	return err;
}
