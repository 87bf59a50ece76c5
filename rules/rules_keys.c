/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_keys.c - what a key of a policy or a rule says
 *
 * A table says which key may stand in which section and who reads it.
 */
#include "base/ini.h"
#include "rules/rules_parse.h"
#include "rules/rules_path.h"

/* --- values --------------------------------------------------------------- */

/* "*" in an allow opens everything: one preset may say so, and nobody else. */
static bool may_be_any(const struct parser *p)
{
	const struct rules_source *s = parser_source(p);

	return p->rule->deny || (s->kind == RULES_SOURCE_PRESET &&
				 str_eq(s->word, STR("open")));
}

static void add_host(struct parser *p, struct str word)
{
	bool wide = str_eq(word, STR("*")) && may_be_any(p);
	struct host_pattern pattern;
	struct ast_host *host;
	const char *why;

	if (host_pattern_parse(word, p->rule->deny || wide, &pattern,
			       &why) < 0) {
		bad_word(p, word, why);
		return;
	}
	host = take(p, sizeof(*host));
	if (!host)
		return;
	host->kind = pattern.kind;
	if (pattern.kind != HOST_ANY)
		host->name = keep(p, host_name_str(&pattern.name));
	if (!p->rule->deny)
		host->suffix_fault = host_suffix_fault(pattern.kind,
						       host->name);
	/* Columns are looked for when something is wrong, not for each word. */
	host->place = host->suffix_fault ? place_of(p, word) : here(p);
	*p->rule->hosts_end = host;
	p->rule->hosts_end = &host->next;
	p->rule->n_hosts++;
	p->ast->n_hosts++;
}

static void read_host(struct parser *p, struct str word)
{
	const struct rules_source *source;
	struct ast_list *list;

	if (word.p[0] != '@') {
		add_host(p, word);
		return;
	}
	source = claim_source(p, word, RULES_SOURCE_HOSTS);
	list = source ? take(p, sizeof(*list)) : NULL;
	if (!list) {
		p->rule->broken = true;
		return;
	}
	list->source = (uint16_t)(source - p->report->source);
	list->place = here(p);
	*p->rule->lists_end = list;
	p->rule->lists_end = &list->next;
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

static struct ast_word *new_word(struct parser *p, struct str text)
{
	struct ast_word *word = take(p, sizeof(*word));

	if (!word)
		return NULL;
	word->text = text;
	word->place = here(p);
	return word;
}

static const char *method_fault(struct str word)
{
	bool lower = false;

	for (size_t i = 0; i < word.n; i++) {
		char c = word.p[i];

		lower |= c >= 'a' && c <= 'z';
		if (c == ',')
			return "has a comma in it; separate words by blanks";
		if (c != '-' && c != '_' && !ascii_is_digit(c) &&
		    !(ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z'))
			return "is no method; methods are words like GET and "
			       "POST";
	}
	/* RFC 9110 9.1: case counts, and all that are known are upper-case. */
	return lower ? "has small letters in it; methods are written as they "
		       "are sent: GET, POST, ..." : NULL;
}

static void read_method(struct parser *p, struct str word)
{
	const char *fault = method_fault(word);
	struct ast_word *method;

	if (!fault && p->rule->n_methods == RULES_METHODS_MAX)
		fault = "is one method too many for a rule; leave 'methods' "
			"out, or write a second rule";
	if (fault) {
		bad_word(p, word, fault);
		return;
	}
	method = new_word(p, keep(p, word));
	if (!method)
		return;
	*p->rule->methods_end = method;
	p->rule->methods_end = &method->next;
	p->rule->n_methods++;
}

static void read_path(struct parser *p, struct str word)
{
	char *pattern = take(p, word.n + 1);
	struct ast_word *path;
	const char *why;
	size_t n;

	if (!pattern)
		return;
	if (rules_path_pattern(word, pattern, &n, &why) < 0) {
		bad_word(p, word, why);
		return;
	}
	path = new_word(p, str_make(pattern, n));
	if (!path)
		return;
	*p->rule->paths_end = path;
	p->rule->paths_end = &path->next;
	p->rule->n_paths++;
}

/* A and AAAA are every allowed name's, and can be written for completeness. */
static void read_type(struct parser *p, struct str word)
{
	const char *fault = rules_type_fault(word);

	if (fault)
		bad_word(p, word, fault);
	else
		p->rule->types |= rules_type_bit(rules_type_by_name(word));
}

/* What a policy or an include names came along; it is read by itself. */
static void read_include(struct parser *p, struct str word)
{
	(void)claim_source(p, word, RULES_SOURCE_INCLUDE);
}

static void read_preset(struct parser *p, struct str word)
{
	if (is_plain_word(word) && word.p[0] != '.')
		(void)claim_source(p, word, RULES_SOURCE_PRESET);
	else
		bad_word(p, word, "is no preset; presets have plain names, and "
			 "files are read with 'include'");
}

static void each_word(struct parser *p,
		      void (*read)(struct parser *p, struct str word))
{
	struct str rest = p->value, word;

	while (!p->no_memory && str_word(&rest, &word)) {
		read(p, word);
		/* That it is no comment was said: not each word of it, too. */
		if ((word.p[0] == ';' || word.p[0] == '#') && p->rule &&
		    p->rule->broken)
			break;
	}
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

static void set_methods(struct parser *p)
{
	each_word(p, read_method);
}

static void set_paths(struct parser *p)
{
	each_word(p, read_path);
}

static void set_types(struct parser *p)
{
	if (p->rule->types_place.line == 0)
		p->rule->types_place = here(p);
	each_word(p, read_type);
}

static void set_include(struct parser *p)
{
	each_word(p, read_include);
}

static void set_preset(struct parser *p)
{
	each_word(p, read_preset);
}

static void set_protocol(struct parser *p)
{
	struct rules_ast *ast = p->ast;
	struct ast_rule *rule = p->rule;
	const struct rules_protocol **to = rule ? &rule->protocol :
						  &ast->default_protocol;
	char text[SHOWN_SIZE];
	const char *near;

	if (!first_time(p, rule ? &rule->protocol_place :
			&ast->default_protocol_place, "protocol"))
		return;
	*to = rules_protocol_by_name(p->value);
	if (*to)
		return;
	near = rules_protocol_near(p->value);
	if (rule)
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

/* An included file may be a policy of its own: what it says of itself as such
 * is read, and belongs to nobody here. */
static void set_policy_text(struct parser *p, struct ast_text *t,
			    struct rules_place *own, const char *key)
{
	struct ast_text unused = { .place = *own };

	if (p->source == 0) {
		set_text(p, t, key);
		return;
	}
	set_text(p, &unused, key);
	*own = unused.place;
}

static void set_reason(struct parser *p)
{
	if (p->rule)
		set_text(p, &p->rule->reason, "reason");
	else
		set_policy_text(p, &p->ast->reason, &p->own_reason, "reason");
}

static void set_owner(struct parser *p)
{
	if (p->rule)
		set_text(p, &p->rule->owner, "owner");
	else if (p->kind == SECTION_DEFAULTS)
		set_text(p, &p->ast->default_owner, "owner");
	else
		set_policy_text(p, &p->ast->owner, &p->own_owner, "owner");
}

static void set_expires(struct parser *p)
{
	const char *why;

	if (!first_time(p, p->rule ? &p->rule->expires_place :
			&p->ast->default_expires_place, "expires"))
		return;
	if (rules_time_parse(p->value, p->rule ? &p->rule->expires :
			     &p->ast->default_expires, &why) < 0)
		bad_word(p, p->value, why);
}

static void set_name(struct parser *p)
{
	if (p->value.n > RULES_POLICY_NAME_MAX || !is_plain_word(p->value)) {
		bad_word(p, p->value, "cannot be a policy's name; write up to "
			 "64 letters, digits, '.', '_' and '-'");
		return;
	}
	set_policy_text(p, &p->ast->name, &p->own_name, "name");
}

/* "enforce" changes nothing, so that it is for the policy alone to say. */
static void set_rule_mode(struct parser *p)
{
	if (!first_time(p, &p->rule->mode_place, "mode"))
		return;
	p->rule->observe = str_eq(p->value, STR("observe"));
	if (!p->rule->observe)
		bad_word(p, p->value, "is no mode of a rule; there is "
			 "'observe', and without it a rule does as the policy");
}

static void set_mode(struct parser *p)
{
	static const char *const modes[] = { "enforce", "observe", NULL };
	char text[SHOWN_SIZE];
	const char *near;

	if (p->rule) {
		set_rule_mode(p);
		return;
	}
	if (!source_may_loosen(p, "mode") ||
	    !first_time(p, &p->ast->mode_place, "mode"))
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

static bool yes_or_no(struct parser *p)
{
	if (str_eq(p->value, STR("yes")))
		return true;
	if (!str_eq(p->value, STR("no")))
		bad_word(p, p->value, "is neither 'yes' nor 'no'");
	return false;
}

static void set_extend(struct parser *p)
{
	if (source_may_loosen(p, "extend") &&
	    first_time(p, &p->ast->extend_place, "extend"))
		p->ast->extend = yes_or_no(p);
}

static void set_public_suffix(struct parser *p)
{
	if (first_time(p, &p->rule->suffix_place, "public_suffix"))
		p->rule->public_suffix = yes_or_no(p);
}

static void set_bytes(struct parser *p, struct rules_place *place,
		      const char *key, uint64_t *to)
{
	if (!first_time(p, place, key))
		return;
	*to = rules_bytes_parse(p->value);
	if (*to == 0)
		bad_word(p, p->value, RULES_BYTES_FAULT);
}

static void set_bytes_up(struct parser *p)
{
	set_bytes(p, &p->rule->up_place, "bytes_up", &p->rule->bytes.up);
}

static void set_bytes_down(struct parser *p)
{
	set_bytes(p, &p->rule->down_place, "bytes_down",
		  &p->rule->bytes.down);
}

static void set_span(struct parser *p, struct rules_place *place,
		     const char *key, uint32_t *to)
{
	if (!first_time(p, place, key))
		return;
	*to = rules_span_parse(p->value);
	if (*to == 0)
		bad_word(p, p->value, RULES_SPAN_FAULT);
}

static void set_idle_time(struct parser *p)
{
	set_span(p, &p->rule->idle_place, "idle_time",
		 &p->rule->times.idle_s);
}

static void set_flow_time(struct parser *p)
{
	set_span(p, &p->rule->flow_place, "flow_time",
		 &p->rule->times.flow_s);
}

/* Which proxy, by the name that the operator gave it: its address is never a
 * policy's to say. */
static void set_parent(struct parser *p)
{
	struct ast_text *to = p->rule ? &p->rule->parent :
					&p->ast->default_parent;

	if (p->value.n > RULES_PARENT_MAX || !is_plain_word(p->value)) {
		bad_word(p, p->value, "is no name of a parent proxy; write "
			 "that of a [parent NAME] of penstockd(8), or 'none'");
		return;
	}
	set_text(p, to, "parent");
}

/* --- keys ----------------------------------------------------------------- */

static const struct key {
	const char *word;
	unsigned where;			/* bits of enum section_kind */
	void (*set)(struct parser *p);
} keys[] = {
	{ "hosts", SECTIONS_OF_RULES, set_hosts },
	{ "addresses", SECTIONS_OF_RULES, set_addresses },
	{ "ports", SECTIONS_OF_RULES, set_ports },
	{ "protocol", SECTIONS_OF_RULES | BIT(SECTION_DEFAULTS),
	  set_protocol },
	{ "methods", SECTIONS_OF_RULES, set_methods },
	{ "paths", SECTIONS_OF_RULES, set_paths },
	{ "types", BIT(SECTION_ALLOW), set_types },
	{ "parent", BIT(SECTION_ALLOW) | BIT(SECTION_DEFAULTS), set_parent },
	{ "public_suffix", BIT(SECTION_ALLOW), set_public_suffix },
	{ "bytes_up", BIT(SECTION_ALLOW), set_bytes_up },
	{ "bytes_down", BIT(SECTION_ALLOW), set_bytes_down },
	{ "idle_time", BIT(SECTION_ALLOW), set_idle_time },
	{ "flow_time", BIT(SECTION_ALLOW), set_flow_time },
	{ "reason", SECTIONS_OF_RULES | BIT(SECTION_POLICY), set_reason },
	{ "owner", SECTIONS_OF_RULES | BIT(SECTION_POLICY) |
		   BIT(SECTION_DEFAULTS), set_owner },
	{ "expires", SECTIONS_OF_RULES | BIT(SECTION_DEFAULTS), set_expires },
	{ "mode", SECTIONS_OF_RULES | BIT(SECTION_POLICY), set_mode },
	{ "name", BIT(SECTION_POLICY), set_name },
	{ "include", BIT(SECTION_POLICY), set_include },
	{ "preset", BIT(SECTION_POLICY), set_preset },
	{ "extend", BIT(SECTION_POLICY), set_extend },
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
			     key->where & BIT(SECTION_DENY) ?
			     "[allow NAME] or [deny NAME]" : "[allow NAME]");
		return false;
	}
	return true;
}

void parse_key(struct parser *p, struct str word, struct str value)
{
	const struct key *key = find_key(word);

	p->value = value;
	if (BIT(p->kind) & SECTIONS_OF_SETTINGS) {
		parse_setting(p, word);
		return;
	}
	if (!key_belongs(p, word, key)) {
		if (p->rule)
			p->rule->broken = true;
		return;
	}
	if (p->kind == SECTION_POLICY)
		p->ast->policy_says = true;
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
