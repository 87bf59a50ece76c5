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

/* RFC 9110 9.3.2: HEAD is GET without the body. */
static bool has_method(const struct seen_request *s, const struct rule *r)
{
	struct str method = s->request->method;

	for (size_t i = 0; i < r->n_methods; i++) {
		if (str_eq(r->method[i], method) ||
		    (str_eq(r->method[i], STR("GET")) &&
		     str_eq(method, STR("HEAD"))))
			return true;
	}
	return r->n_methods == 0;
}

enum reason request_is_in(const struct seen_request *s, const struct rule *r)
{
	if (!has_method(s, r))
		return REASON_METHOD_NOT_ALLOWED;
	if (s->request->renamed && rule_is_limited(r))
		return REASON_PATH_AMBIGUOUS;
	if (r->n_paths == 0)
		return REASON_ALLOWED;
	if (s->ambiguous)
		return REASON_PATH_AMBIGUOUS;
	for (size_t i = 0; i < r->n_paths; i++) {
		if (rules_path_is_in(&s->path, r->path[i]))
			return REASON_ALLOWED;
	}
	return REASON_PATH_NOT_ALLOWED;
}

enum reason request_may_be_in(const struct seen_request *s,
			      const struct rule *r)
{
	if (s->request->renamed && rule_is_limited(r))
		return REASON_PATH_AMBIGUOUS;
	if (!has_method(s, r))
		return REASON_ALLOWED;
	if (r->n_paths == 0)
		return REASON_METHOD_NOT_ALLOWED;
	if (s->ambiguous)
		return REASON_PATH_AMBIGUOUS;
	for (size_t i = 0; i < r->n_paths; i++) {
		if (rules_path_may_be_in(&s->path, r->path[i]))
			return REASON_PATH_NOT_ALLOWED;
	}
	return REASON_ALLOWED;
}
