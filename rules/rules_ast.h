/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_ast.h - a policy as it was written, and the report of its faults
 *
 * The parser fills a struct rules_ast in the order of the text, the checks and
 * the compiler read it, and it dies with its arena when the ruleset is made.
 */
#ifndef RULES_RULES_AST_H
#define RULES_RULES_AST_H

#include "base/hash.h"
#include "base/mem.h"
#include "rules/rules.h"
#include "rules/rules_value.h"

#define RULES_SOURCES_MAX	256
#define RULES_TEXT_MAX		(64u << 20)	/* bytes of all sources */
#define RULES_MAX		4096		/* allow and deny rules */
#define RULES_DIAGS_MAX		100	/* of each severity, then one more */
#define RULES_METHODS_MAX	64		/* of a rule */
#define RULES_FREE_TEXT_MAX	512		/* reason, owner */
#define RULES_POLICY_NAME_MAX	64

/* Where something stands. */
struct rules_place {
	uint16_t source;	/* index */
	uint16_t column;	/* from 1, in bytes; 0: not known */
	uint32_t line;		/* from 1; 0: not given at all */
};

struct ast_host {
	struct ast_host *next;
	enum host_pattern_kind kind;
	struct str name;		/* STR_NONE for HOST_ANY */
	struct rules_place place;
	const char *suffix_fault;	/* of an allow: a public suffix, or NULL */
	bool twice;			/* the compiler's: was there already */
};

/* A list of hosts, which the compiler reads line by line (host_list.h). */
struct ast_list {
	struct ast_list *next;
	uint16_t source;		/* its index */
	struct rules_place place;	/* of the word that names it */
};

struct ast_range {
	struct ast_range *next;
	struct addr_range r;
	struct str text;
	struct rules_place place;
};

struct ast_ports {
	struct ast_ports *next;
	struct port_range r;
	struct rules_place place;
};

/* A key that may be given once. */
struct ast_text {
	struct str text;
	struct rules_place place;	/* line 0: not given */
};

/* A word of `methods` or `paths`, in its canonical form. */
struct ast_word {
	struct ast_word *next;
	struct str text;
	struct rules_place place;
};

/* A key of [limits], [dns], [audit] or [credential NAME]. */
struct ast_setting {
	struct ast_setting *next;
	const char *section, *key;	/* constants */
	struct str name;		/* of the credential */
	struct str value;
	struct rules_place place;
};

struct ast_rule {
	struct ast_rule *next;
	struct hash_node by_name;	/* the parser's */
	bool deny;
	bool broken;		/* a value was refused: no word of the rest */
	struct str name;
	struct rules_place place;	/* of its section line */
	struct ast_host *hosts, **hosts_end;
	struct ast_list *lists, **lists_end;
	struct ast_range *ranges, **ranges_end;
	struct ast_ports *ports, **ports_end;
	size_t n_hosts, n_ranges, n_ports;
	const struct rules_protocol *protocol;
	struct rules_place protocol_place;
	struct ast_text reason, owner;
	int64_t expires;
	struct rules_place expires_place;
	bool observe;
	struct rules_place mode_place;
	bool public_suffix;
	struct rules_place suffix_place;
	struct ast_word *methods, **methods_end;
	struct ast_word *paths, **paths_end;
	size_t n_methods, n_paths;
	struct ast_text parent;
	uint32_t types;			/* bits of rules_type_bit() */
	struct rules_place types_place;	/* of the first; line 0: none */
	struct rules_bytes bytes;
	struct rules_place up_place, down_place;
	struct rules_times times;
	struct rules_place idle_place, flow_place;
};

struct rules_ast {
	struct arena *arena;
	struct ast_rule *rules, **rules_end;
	size_t n_rules, n_hosts;
	bool observe;
	struct rules_place policy_place;	/* of [policy]; line 0: none */
	bool policy_says;		/* a key stands in it */
	struct rules_place mode_place;
	struct ast_text name, owner, reason;
	bool extend;			/* --allow may add to the file */
	struct rules_place extend_place;
	/* [defaults], of rules that do not say so themselves */
	struct rules_place defaults_place, limits_place, dns_place,
			   audit_place;
	struct ast_text default_owner, default_parent;
	int64_t default_expires;
	struct rules_place default_expires_place;
	const struct rules_protocol *default_protocol;
	struct rules_place default_protocol_place;
	struct ast_setting *settings, **settings_end;
	size_t n_settings;
};

/* --- the report ----------------------------------------------------------- */

struct rules_report {
	const struct rules_source *source;
	size_t n_sources;
	rules_diag_fn *fn;	/* or NULL */
	void *arg;
	unsigned errors, warnings;
	unsigned said[2];	/* handed out, by enum rules_severity */
};

void report_error(struct rules_report *r, struct rules_place at,
		  const char *fmt, ...) PRINTF(3, 4);
void report_warning(struct rules_report *r, struct rules_place at,
		    const char *fmt, ...) PRINTF(3, 4);

/* "FILE:LINE" of @at, for use inside a message. */
#define PLACE_SIZE	256
const char *place_text(const struct rules_report *r, struct rules_place at,
		       char out[PLACE_SIZE]);

/* --- the passes, in their order ------------------------------------------- */

/* @ast->arena is set; 0 (faults are in @report) or -ENOMEM. */
NODISCARD int rules_parse(struct rules_ast *ast, struct rules_report *report);
/* The faults of all lists, when there will be no compiler to tell them. */
void rules_check_lists(const struct rules_ast *ast,
		       struct rules_report *report);
/* What each rule must have by itself. */
void rules_check_each(const struct rules_ast *ast, struct rules_report *report);
/* [dns] and [limits], which have been checked. */
/* The number of bytes that a word of digits and K, M or G means; 0: none. */
uint64_t rules_bytes_parse(struct str word);
/* The seconds of "30s", "10m", "2h", "1d"; 0: no such word. */
uint32_t rules_span_parse(struct str word);
#define RULES_BYTES_FAULT	"is no number of bytes; write 65536, 64K, 10M " \
				"or 2G"
#define RULES_SPAN_FAULT	"is no length of time; write 30s, 10m, 2h or 1d"

void rules_compile_settings(struct ruleset *rs, const struct rules_ast *ast);
/* Of all rules, into @rs->hosts and what its marks mean; 0, -EINVAL, -ENOMEM. */
NODISCARD int rules_compile_hosts(struct ruleset *rs,
				  const struct rules_ast *ast,
				  struct rules_report *report);
/*
 * What the rules are to each other; after rules_check_each() found no error.
 * 0 (faults are in @report) or -ENOMEM.
 */
NODISCARD int rules_check_together(const struct rules_ast *ast,
				   const struct ruleset *rs,
				   struct rules_report *report);

#endif /* RULES_RULES_AST_H */
