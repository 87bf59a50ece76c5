/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_ask.h - one question of a person to a policy, and its answer in words
 */
#ifndef CLI_POLICY_ASK_H
#define CLI_POLICY_ASK_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"
#include "rules/rules.h"
#include "rules/rules_target.h"

struct policy_ask {
	struct rules_target target;
	struct str method;	/* of a request; empty: GET where a path is */
	struct ip_addr at;	/* what the name resolves to; IP_NONE: not told */
	int64_t now;		/* wall clock, seconds */
};

struct policy_answer {
	bool allowed;
	bool observed;		/* let through though @reason says not */
	enum reason reason;
	struct rules_answer flow;	/* what decided, of name, port, address */
};

/* Nothing is resolved: without @at the address of a name is left open. */
void policy_ask(const struct ruleset *rs, const struct policy_ask *ask,
		struct policy_answer *ret);

/* Several lines: the verdict, what it stands on, what would be needed. */
NODISCARD int policy_answer_text(const struct ruleset *rs,
				 const struct policy_ask *ask,
				 const struct policy_answer *a,
				 struct buf *out);

/* The same as members of the object that is open. */
void policy_answer_json(const struct ruleset *rs, const struct policy_ask *ask,
			const struct policy_answer *a, struct json *j);

/* --- words that others use, too -------------------------------------------- */

/* "[allow web], agent.ini:4" */
NODISCARD int policy_rule_text(const struct ruleset *rs, size_t number,
			       struct buf *out);
/* As the member "rule"; nothing for number 0. */
void policy_rule_json(const struct ruleset *rs, size_t number, struct json *j);
/* What would lift a refusal for @reason; NULL: it depends, or nothing does. */
const char *policy_needed_words(enum reason reason);
/* "  needed    " and the lines of @needed, those that follow below it. */
NODISCARD int policy_needed_row(struct str needed, struct buf *out);

#endif /* CLI_POLICY_ASK_H */
