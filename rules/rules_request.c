/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_request.c - does a rule take a request?
 *
 * Of an allow every doubt is a no, of a deny every doubt is a yes.
 */
#include "rules/ruleset.h"

void seen_request_init(struct seen_request *s,
		       const struct rules_request *request)
{
	s->request = request;
	s->ambiguous = rules_path_read(request->target, &s->path) < 0;
}

/*
 * RFC 9110 9.3.2: HEAD is GET without the body.  Case counts (9.1), but not to
 * every origin, some of which put methods into capitals before they look.
 */
static bool has_method(const struct seen_request *s, const struct rule *r)
{
	struct str method = s->request->method;
	bool (*same)(struct str a, struct str b) = r->deny ? str_ieq : str_eq;

	for (size_t i = 0; i < r->n_methods; i++) {
		if (same(r->method[i], method) ||
		    (str_eq(r->method[i], STR("GET")) &&
		     same(method, STR("HEAD"))))
			return true;
	}
	return r->n_methods == 0;
}

/* What was compared for too long is no clearer than what cannot be. */
static bool is_in_doubt(const struct seen_request *s)
{
	return s->ambiguous || s->path.steps_left == 0;
}

enum reason request_is_in(struct seen_request *s, const struct rule *r)
{
	if (!has_method(s, r))
		return REASON_METHOD_NOT_ALLOWED;
	if (s->request->renamed && rule_is_limited(r))
		return REASON_PATH_AMBIGUOUS;
	if (r->n_paths == 0)
		return REASON_ALLOWED;
	if (is_in_doubt(s))
		return REASON_PATH_AMBIGUOUS;
	for (size_t i = 0; i < r->n_paths && !is_in_doubt(s); i++) {
		if (rules_path_is_in(&s->path, r->path[i]))
			return REASON_ALLOWED;
	}
	return is_in_doubt(s) ? REASON_PATH_AMBIGUOUS : REASON_PATH_NOT_ALLOWED;
}

enum reason request_may_be_in(struct seen_request *s, const struct rule *r)
{
	if (s->request->renamed && rule_is_limited(r))
		return REASON_PATH_AMBIGUOUS;
	if (!has_method(s, r))
		return REASON_ALLOWED;
	if (r->n_paths == 0)
		return REASON_METHOD_NOT_ALLOWED;
	if (is_in_doubt(s))
		return REASON_PATH_AMBIGUOUS;
	for (size_t i = 0; i < r->n_paths && !is_in_doubt(s); i++) {
		if (rules_path_may_be_in(&s->path, r->path[i]))
			return is_in_doubt(s) ? REASON_PATH_AMBIGUOUS :
						REASON_PATH_NOT_ALLOWED;
	}
	return is_in_doubt(s) ? REASON_PATH_AMBIGUOUS : REASON_ALLOWED;
}
