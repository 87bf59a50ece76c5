/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_parse.h - what the files of the parser share
 *
 * rules_parse.c goes through sources and sections, rules_keys.c reads what a
 * key says, rules_sources.c knows which source is named where and what each
 * kind of source may say.
 */
#ifndef RULES_RULES_PARSE_H
#define RULES_RULES_PARSE_H

#include "rules/rules_ast.h"

enum section_kind {
	SECTION_NONE,		/* before the first, or one that was refused */
	SECTION_POLICY,
	SECTION_ALLOW,
	SECTION_DENY,
	SECTION_DEFAULTS,
	SECTION_LIMITS,
	SECTION_DNS,
	SECTION_AUDIT,
	SECTION_CREDENTIAL,

	SECTION_KINDS
};

#define SECTIONS_OF_RULES	(BIT(SECTION_ALLOW) | BIT(SECTION_DENY))
#define SECTIONS_OF_SETTINGS	(BIT(SECTION_LIMITS) | BIT(SECTION_DNS) | \
				 BIT(SECTION_AUDIT) | BIT(SECTION_CREDENTIAL))

#define CREDENTIALS_MAX	256

extern const char *const section_words[SECTION_KINDS];

struct parser {
	struct rules_ast *ast;
	struct rules_report *report;
	uint16_t source;		/* being read */
	enum section_kind kind;
	bool refused;			/* the section was; skip its keys */
	struct str section;		/* "allow NAME", with one blank */
	struct str section_name;	/* of SECTION_CREDENTIAL */
	struct ast_rule *rule;		/* of SECTION_ALLOW and SECTION_DENY */
	struct hash_table rules;	/* struct ast_rule.by_name */
	struct rules_place policy_place;	/* of this source's [policy] */
	struct rules_place own_name, own_owner, own_reason; /* an include's */
	struct ast_setting *first_setting;	/* of the section */
	bool unused_told;		/* of the section's first such key */
	struct str credential[CREDENTIALS_MAX];	/* their names */
	size_t n_credentials;
	bool *claimed;			/* by source: named where it says */
	struct str value;		/* of the key being read */
	uint32_t line;
	bool no_memory;
};

static inline const struct rules_source *parser_source(const struct parser *p)
{
	return &p->report->source[p->source];
}

static inline struct rules_place here(const struct parser *p)
{
	return (struct rules_place){ .source = p->source, .line = p->line };
}

/* Where a part of the value stands in its line. */
struct rules_place place_of(const struct parser *p, struct str part);
/* An error about a word of the value; the rule at hand is broken. */
void bad_word(struct parser *p, struct str word, const char *why);
/* Zeroed, or NULL and @p->no_memory. */
void *take(struct parser *p, size_t size);
struct str keep(struct parser *p, struct str s);
/* A key that may stand once: false, and told, when it stood there before. */
bool first_time(struct parser *p, struct rules_place *place, const char *key);
/* Letters, digits, '.', '_' and '-'. */
bool is_plain_word(struct str s);

/* --- rules_keys.c --------------------------------------------------------- */

/* The key of a section that was not refused. */
void parse_key(struct parser *p, struct str word, struct str value);

/* --- rules_settings.c ----------------------------------------------------- */

/* A key of SECTIONS_OF_SETTINGS. */
void parse_setting(struct parser *p, struct str word);

/* --- rules_sources.c ------------------------------------------------------ */

/* May the section, or a key that loosens, stand in this source? Says why not. */
bool source_may_have(struct parser *p, enum section_kind kind);
bool source_may_loosen(struct parser *p, const char *key);
/* What @word of the value names; NULL, and told, when it did not come along. */
const struct rules_source *claim_source(struct parser *p, struct str word,
					enum rules_source_kind kind);
/* Before all: is each where it may be?  After all: was each named? */
void check_sources(struct parser *p);
void check_claims(struct parser *p);

#endif /* RULES_RULES_PARSE_H */
