/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ruleset.h - a policy as it is judged by: immutable, in few blocks
 *
 * Made by rules_compile.c, read by rules_match.c and by the checks that compare
 * rules with each other.  Private to rules/.
 */
#ifndef RULES_RULESET_H
#define RULES_RULESET_H

#include <stdatomic.h>

#include "base/mem.h"
#include "rules/host_table.h"
#include "rules/rules.h"
#include "rules/rules_path.h"
#include "rules/rules_value.h"
#include "rules/span_tree.h"

/*
 * Rules that speak of one name.  It bounds what a question can cost,
 * together with HOST_LABELS_MAX.
 */
#define RULES_PER_HOST_MAX	256

struct rule {
	const char *name;
	const char *owner, *reason;	/* NULL: not said */
	const char *parent;		/* NULL: not said */
	uint16_t source;
	uint32_t line;
	int64_t expires;		/* seconds since the epoch */
	bool deny;
	bool observe;			/* its refusals are only said */
	bool any_host;			/* "*", deny only */
	bool has_hosts;			/* names some, "*" included */
	bool own_ports;			/* `ports` was written */
	const struct rules_protocol *protocol;	/* NULL: each port's own */
	struct port_range *port;	/* sorted, apart */
	size_t n_ports;
	struct addr_range *range;	/* sorted, apart; none: any */
	size_t n_ranges;
	/*
	 * Addresses that stand alone in the rule.  A metadata service, or an
	 * address of this host, is opened by its own only, never by a range
	 * that merely holds it.
	 */
	struct ip_addr *single;		/* sorted */
	size_t n_single;
	struct str *method, *path;	/* of requests; none: any */
	size_t n_methods, n_paths;
	uint32_t types;			/* bits of rules_type_bit() */
	struct rules_bytes bytes;	/* of all its flows; 0: any */
	struct rules_times times;	/* of each of them */
};

/* What a mark means: slices of ruleset.entry[], rules by index. */
struct host_mark {
	uint32_t exact, below;
	uint16_t n_exact;		/* that speak of the name itself */
	uint16_t n_below;		/* that speak of every name below it */
	bool leads;			/* to names that an allow has */
};

struct ruleset {
	atomic_uint refs;
	struct arena *arena;		/* this struct is in it, too */
	const char *name;
	char digest[17];
	bool observe;
	struct ruleset *of;		/* has all that is here; NULL: itself */
	struct rules_dns dns;
	const char *parent;		/* of rules that say nothing; or NULL */
	uint32_t parent_line;
	uint32_t types;			/* of each name that is allowed */
	struct rules_limits limits;
	const char **file;		/* names of the sources */
	size_t n_files;
	struct rule *rule;
	size_t n_rules;
	struct host_table hosts;
	struct host_mark *mark;
	uint32_t n_marks;
	uint32_t *entry;
	uint32_t *any;			/* deny rules with "*" */
	size_t n_any;
	struct span_tree allow_spans;	/* of allow rules without hosts */
	struct span_tree deny_spans;	/* of deny rules without hosts */
};

/*
 * @rule: its number, as of rules_rule_info(); @name lives until it returns,
 * which is not with 0 to stop with it.
 */
typedef int ruleset_host_fn(void *arg, size_t rule,
			    enum host_pattern_kind kind, struct str name);
/*
 * Every host of every rule, in no useful order; of HOST_ANY the name is empty.
 * Return: 0, or what @fn returned.
 */
NODISCARD int ruleset_each_host(const struct ruleset *rs, ruleset_host_fn *fn,
				void *arg);

bool rule_has_port(const struct rule *r, uint16_t port);
/* Is @a in the rule's own ranges?  That is not yet a permission. */
bool rule_has_addr(const struct rule *r, const struct ip_addr *a);
/* A deny of every port, whatever the address and whatever is requested. */
bool rule_denies_all(const struct rule *r);
/* Does @outer have each port of @inner? */
bool rule_covers_ports(const struct rule *outer, const struct rule *inner);
/* Does the rule still hold?  Of a rule that ends, an unknown time is too late:
 * of an allow it is over, of a deny it is not. */
static inline bool rule_holds(const struct rule *r, int64_t now)
{
	if (r->expires == RULES_NEVER)
		return true;
	return now <= 0 ? r->deny : now < r->expires;
}

/* Does it say which requests are meant? */
static inline bool rule_is_limited(const struct rule *r)
{
	return r->n_methods > 0 || r->n_paths > 0;
}

static inline const struct rules_protocol *
rule_protocol(const struct rule *r, uint16_t port)
{
	return r->protocol ? r->protocol : rules_protocol_by_port(port);
}

/* May requests be seen on that port, as the rule's protocol has it? */
static inline bool rule_is_seen(const struct rule *r, uint16_t port)
{
	return rule_protocol(r, port)->speech == SPEECH_HTTP;
}

/* --- limits, in rules_limits.c ----------------------------------------------- */

/* Take one checked key of [limits]. */
void rules_limits_take(struct rules_limits *l, const char *key,
		       struct str value);
/* Append "KEY = VALUE" lines; nothing where nothing is said. */
struct buf;
NODISCARD int rules_limits_show(const struct rules_limits *l, struct buf *out);
/* "bytes_up   = 10M" and its kin, of a rule. */
NODISCARD int rules_rule_limits_show(const struct rule *r, struct buf *out);

/* --- requests, in rules_request.c ------------------------------------------ */

struct seen_request {
	const struct rules_request *request;
	struct rules_path path;
	bool ambiguous;			/* no path that could be compared */
};

void seen_request_init(struct seen_request *s,
		       const struct rules_request *request);
/* ALLOWED when an allow takes it; METHOD_, PATH_NOT_ALLOWED, PATH_AMBIGUOUS. */
enum reason request_is_in(struct seen_request *s, const struct rule *r);
/* ALLOWED when a deny has nothing against it; else the reason. */
enum reason request_may_be_in(struct seen_request *s, const struct rule *r);

/*
 * The rules that speak of a host, the most specific first: those that name it,
 * then wildcards from the longest to the shortest, then "*".
 */
struct host_rules {
	const struct ruleset *rs;
	const struct host_path *path;	/* the caller's */
	unsigned depth;			/* of the next mark, plus one */
	bool exact_done;
	bool any_done;
	const uint32_t *entry;		/* what is left of the slice */
	size_t n;
	unsigned rank;			/* of the rule just given */
};

/* Below it a wildcard's number of labels, and 0 for "*". */
#define HOST_RANK_EXACT	(HOST_LABELS_MAX + 1)

/* @path: of the host; the walk can be copied, to begin again, while it lives. */
void host_rules_start(struct host_rules *it, const struct ruleset *rs,
		      const struct host_path *path);
/* The same for a wildcard: the rules that speak of every name below the path's. */
void host_rules_start_below(struct host_rules *it, const struct ruleset *rs,
			    const struct host_path *path);
const struct rule *host_rules_next(struct host_rules *it);

#endif /* RULES_RULESET_H */
