/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_diff.h - what one policy permits and another does not
 *
 * Not a comparison of texts: each host pattern, port and address at which two
 * rulesets could differ is judged by both, so that a rule that was moved,
 * renamed or split is no change, and one that a deny elsewhere undoes is none
 * either.  Of requests there is no end: they are tried with each method that is
 * named and another, and with the paths of rules_samples.h.
 */
#ifndef RULES_RULES_DIFF_H
#define RULES_RULES_DIFF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/reason.h"
#include "base/str.h"
#include "rules/rules.h"

struct rules_change {
	bool gained;		/* else lost */
	bool wild;		/* every name below @host that no other change
				 * and no pattern of its own speaks of */
	struct str host;	/* empty: a flow without a name; and @wild:
				 * every name that no pattern has */
	struct ip_addr lo, hi;	/* addresses, IP_NONE: as the classes have it */
	uint16_t port_lo, port_hi;
	struct str path;	/* of requests alone, a sample; empty: of flows */
	struct str method;	/* with @path; empty: whatever it is */
	uint32_t types;		/* of DNS questions, and nothing of flows: bits
				 * of rules_type_bit(); no rule is named */
	enum reason reason;	/* why not, in the one that refuses */
	size_t rule;		/* that permits, in the one that does */
	bool observed;		/* it would refuse, and only says so */
	/* Both permit it, but demand other first bytes; else NULL. */
	const struct rules_protocol *was, *is;
	/* Both permit it, but through another proxy: rules_answer.parent of
	 * them, "" where the policy does not say; else NULL. */
	const char *was_parent, *is_parent;
	int64_t since;		/* from then on, when a rule ends; 0: now */
};

/* false: stop. */
typedef bool rules_change_fn(void *arg, const struct rules_change *change);

/**
 * rules_diff() - Tell each permission that @to has more or less than @from
 * @now:	wall clock, seconds: rules that have ended are none
 *
 * By host, then address, then port.  What a rule only observes goes on, and
 * counts as permitted.  Not so the mode of a policy, which lets everything go
 * on: see rules_observe().
 * Return: 0 or -ENOMEM
 */
NODISCARD int rules_diff(const struct ruleset *from, const struct ruleset *to,
			 int64_t now, rules_change_fn *fn, void *arg);

/* Bytes of a number of [limits] as a text, with NUL. */
#define RULES_LIMIT_TEXT	24

enum rules_direction {
	RULES_OTHER,			/* neither, or it depends */
	RULES_WIDER,
	RULES_NARROWER,

	RULES_DIRECTIONS
};

/* "other", "wider", "narrower" */
const char *rules_direction_word(enum rules_direction d);

struct rules_limit_change {
	const char *section;	/* "limits", "dns", or NULL: of @rule */
	const char *rule;	/* an allow */
	const char *key, *was, *is;	/* NULL where the policy does not say */
	enum rules_direction direction;
};
/* false: stop. */
typedef bool rules_limit_fn(void *arg, const struct rules_limit_change *c);

/**
 * rules_diff_limits() - Tell each limit, and each word of [dns], that says
 *                       something else
 *
 * Those of [limits], and those of allow rules that both have by that name.  The
 * types of [dns] are told by rules_diff(), of each name.
 *
 * Return: false when @fn stopped it
 */
bool rules_diff_limits(const struct ruleset *from, const struct ruleset *to,
		       rules_limit_fn *fn, void *arg);

#endif /* RULES_RULES_DIFF_H */
