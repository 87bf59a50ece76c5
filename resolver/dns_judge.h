/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_judge.h - what is known of a question's answer before anybody is asked
 *
 * The one place where policy, local names and types decide: a door asks it for
 * each question, and `penstock dns explain` for a person.  Pure.
 */
#ifndef RESOLVER_DNS_JUDGE_H
#define RESOLVER_DNS_JUDGE_H

#include <stdint.h>

#include "base/reason.h"
#include "resolver/dns_local.h"
#include "resolver/dns_msg.h"
#include "rules/host_name.h"
#include "rules/rules.h"

/* What decides; the order is that of the questions that are put. */
enum dns_judge {
	DNS_JUDGE_CLASS,	/* it is not IN */
	DNS_JUDGE_TYPE,		/* one that is never answered */
	DNS_JUDGE_ROOT,		/* the root is there, whatever is below it */
	DNS_JUDGE_NO_HOST,	/* no name that a host can have */
	DNS_JUDGE_LOCAL,	/* ours to answer: see @local */
	DNS_JUDGE_POLICY,	/* the name is denied, or an ancestor's: @name */
	DNS_JUDGE_TYPE_OFF,	/* the name is allowed, the type is not */
	DNS_JUDGE_NO_IPV6,	/* AAAA of an allowed name, and no IPv6 here */
	DNS_JUDGE_WORLD,	/* allowed: the world decides what there is */

	DNS_JUDGES
};

struct dns_judgement {
	/* Of all but DNS_JUDGE_WORLD. */
	enum dns_rcode rcode;
	enum reason reason;
	struct dns_local local;		/* of DNS_JUDGE_LOCAL */
	/* From DNS_JUDGE_POLICY on; @verdict is empty before. */
	enum rules_name_verdict name;
	struct rules_answer verdict;
};

/**
 * dns_judge() - What becomes of a question, as far as it is known here
 * @names:	what is ours, and the rules in force
 * @now:	the wall clock, seconds
 * @ret_host:	the canonical name; .n 0 when it has none
 */
enum dns_judge dns_judge(const struct dns_local_names *names,
			 const struct dns_question *q, int64_t now,
			 struct host_name *ret_host, struct dns_judgement *ret);

/**
 * dns_judge_name() - What does the policy say of a name that is not ours?
 *
 * As rules_judge_name(), but what leads to metadata services or stays inside is
 * not let through by a policy that merely observes, and one that is denied is
 * an ancestor where a wildcard allows what is below it.
 */
enum rules_name_verdict dns_judge_name(const struct ruleset *rules,
				       struct str host, int64_t now,
				       struct rules_answer *ret);

/* Is the type one that an allowed name may be asked for? A and AAAA always. */
bool dns_judge_type(const struct ruleset *rules, struct str host,
		    uint16_t type, int64_t now);

/* The rcode of a name that the policy does not allow. */
enum dns_rcode dns_judge_rcode(const struct ruleset *rules,
			       enum rules_name_verdict v);

#endif /* RESOLVER_DNS_JUDGE_H */
