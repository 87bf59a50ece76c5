/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_near.c - what is nearly allowed, for who explains a refusal
 */
#include "rules/ruleset.h"

/*
 * Ports are allowed from the first of an allow's range on, or, where a deny
 * takes its beginning, from the first behind that.
 */
static bool allowed_from(const struct ruleset *rs,
			 const struct rules_question *q, uint32_t port,
			 struct rules_question *ret_q,
			 struct rules_answer *ret)
{
	if (port < 1 || port > UINT16_MAX)
		return false;
	*ret_q = *q;
	ret_q->port = (uint16_t)port;
	rules_judge(rs, ret_q, ret);
	return ret->reason == REASON_ALLOWED;
}

uint16_t rules_other_port(const struct ruleset *rs,
			  const struct rules_question *q,
			  struct rules_answer *ret)
{
	struct rules_question other;

	for (size_t i = 0; i < rs->n_rules; i++) {
		const struct rule *r = &rs->rule[i];

		for (size_t k = 0; k < r->n_ports; k++) {
			uint32_t port = r->deny ? r->port[k].hi + 1u :
					r->port[k].lo;

			if (allowed_from(rs, q, port, &other, ret))
				return other.port;
		}
	}
	return 0;
}
