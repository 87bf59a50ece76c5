/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_check.c - what is wrong with a policy that can be read
 *
 * Each rule by itself: does it match anything, does it open what needs a
 * reason.  What rules are to each other is looked at in rules_compare.c.
 */
#include "base/clock.h"
#include "rules/rules_ast.h"

static const char *kind_word(const struct ast_rule *r)
{
	return r->deny ? "deny" : "allow";
}

static void check_matches_something(const struct ast_rule *r,
				    struct rules_report *report)
{
	if (r->n_hosts > 0 || r->lists || r->n_ranges > 0)
		return;
	if (r->deny)
		report_error(report, r->place,
			     "[deny %.*s] has nothing to match on; give it "
			     "'hosts' or 'addresses' (hosts = * denies "
			     "everything)", STR_ARG(r->name));
	else
		report_error(report, r->place,
			     "[allow %.*s] has nothing to match on; give it "
			     "'hosts' or 'addresses', or take it out",
			     STR_ARG(r->name));
}

static void check_protocol(const struct ast_rule *r,
			   struct rules_report *report)
{
	if (!r->protocol)
		return;
	if (r->deny && r->n_ports > 0)
		report_error(report, r->protocol_place,
			     "[deny %.*s] is judged by ports; leave 'protocol' "
			     "out", STR_ARG(r->name));
	else if (r->protocol->port == 0 && r->n_ports == 0)
		report_error(report, r->protocol_place,
			     "protocol '%s' has no port of its own; write "
			     "'ports' in [%s %.*s]", r->protocol->name,
			     kind_word(r), STR_ARG(r->name));
}

/* The first port whose protocol shows no requests, or 0. */
static unsigned mute_port(const struct ast_rule *r)
{
	const struct rules_protocol *p = r->protocol;

	if (p)
		return p->speech == SPEECH_HTTP || p->port == 443 ? 0 : p->port;
	for (const struct ast_ports *a = r->ports; a; a = a->next) {
		for (unsigned port = a->r.lo; port <= a->r.hi; port++) {
			p = rules_protocol_by_port((uint16_t)port);
			if (p->speech != SPEECH_HTTP && p->port != 443)
				return port;
		}
	}
	return 0;
}

/* 443, where it is among the ports. */
static bool has_tls(const struct ast_rule *r)
{
	if (r->protocol)
		return r->protocol->speech == SPEECH_TLS;
	for (const struct ast_ports *a = r->ports; a; a = a->next) {
		if (a->r.lo <= 443 && 443 <= a->r.hi)
			return true;
	}
	return r->n_ports == 0;
}

static void check_requests(const struct ast_rule *r,
			   struct rules_report *report)
{
	const struct ast_word *first = r->methods ? r->methods : r->paths;

	if (!first)
		return;
	if (r->deny && r->n_ranges > 0)
		report_error(report, first->place,
			     "[deny %.*s] has 'addresses' beside 'methods' or "
			     "'paths'; write two rules", STR_ARG(r->name));
	if (mute_port(r) || (r->protocol && r->protocol->port == 0))
		report_error(report, first->place,
			     "[%s %.*s] has 'methods' or 'paths' for what is "
			     "not HTTP; write 'protocol = http', or leave them "
			     "out", kind_word(r), STR_ARG(r->name));
	else if (has_tls(r))
		report_warning(report, first->place, r->deny ?
			       "[deny %.*s] refuses every connection in which "
			       "requests cannot be seen, TLS above all "
			       "(inspection_required); write 'protocol = http' "
			       "if only those in clear are meant" :
			       "[allow %.*s] opens nothing by TLS "
			       "(inspection_required): requests in it cannot be "
			       "seen; leave 'methods' and 'paths' out, or write "
			       "'protocol = http'", STR_ARG(r->name));
}

static void check_types(const struct ast_rule *r, struct rules_report *report)
{
	if (r->types_place.line != 0 && !r->hosts && !r->lists)
		report_error(report, r->types_place,
			     "[allow %.*s] has 'types' and no 'hosts'; only "
			     "names are asked for, so give it some, or take "
			     "'types' out", STR_ARG(r->name));
}

/* The seconds of that key of [limits], or 0. */
static uint32_t span_of_limits(const struct rules_ast *ast, const char *key)
{
	for (const struct ast_setting *s = ast->settings; s; s = s->next) {
		if (strcmp(s->section, "limits") == 0 &&
		    strcmp(s->key, key) == 0)
			return rules_span_parse(s->value);
	}
	return 0;
}

static void check_times(const struct rules_ast *ast, const struct ast_rule *r,
			struct rules_report *report)
{
	const struct {
		const char *key;
		uint32_t own;
		struct rules_place place;
	} times[] = {
		{ "idle_time", r->times.idle_s, r->idle_place },
		{ "flow_time", r->times.flow_s, r->flow_place },
	};

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		uint32_t all = span_of_limits(ast, times[i].key);

		if (all == 0 || times[i].own <= all)
			continue;
		report_warning(report, times[i].place,
			       "'%s' of [allow %.*s] has no effect: [limits] "
			       "has %us for all; give it less, or take it out",
			       times[i].key, STR_ARG(r->name), (unsigned)all);
	}
}

static void check_suffixes(const struct ast_rule *r,
			   struct rules_report *report)
{
	char text[SHOWN_SIZE];
	bool any = false;

	for (const struct ast_host *h = r->hosts; h; h = h->next) {
		any |= h->suffix_fault != NULL;
		if (h->suffix_fault && !r->public_suffix)
			report_error(report, h->place, "'%s%s' %s",
				     host_pattern_front(h->kind),
				     shown(h->name, text), h->suffix_fault);
	}
	if (!r->public_suffix)
		return;
	if (r->reason.place.line == 0)
		report_error(report, r->suffix_place,
			     "[allow %.*s] opens a public suffix; say why with "
			     "'reason'", STR_ARG(r->name));
	else if (!any && !r->lists)
		report_warning(report, r->suffix_place,
			       "[allow %.*s] has no public suffix among its "
			       "hosts; take 'public_suffix' out",
			       STR_ARG(r->name));
}

static void check_observe(const struct ast_rule *r,
			  struct rules_report *report)
{
	if (r->observe && r->reason.place.line == 0)
		report_warning(report, r->mode_place,
			       "[%s %.*s] refuses nothing; say why with "
			       "'reason'", kind_word(r), STR_ARG(r->name));
}

/* That it ends is said by whoever is refused; that it has, here. */
static void check_expiry(const struct ast_rule *r, struct rules_report *report)
{
	if (r->expires > clock_wall_s())
		return;
	report_warning(report, r->expires_place,
		       "[%s %.*s] has expired and matches nothing any more; "
		       "give it a new date, or take it out", kind_word(r),
		       STR_ARG(r->name));
}

static bool stands_alone(const struct ast_rule *r, const struct ip_addr *a)
{
	for (const struct ast_range *other = r->ranges; other;
	     other = other->next) {
		if (addr_range_is_single(&other->r) &&
		    ip_addr_eq(&other->r.lo, a))
			return true;
	}
	return false;
}

/* A range does not open the metadata services in it: say so where it is likely
 * to be expected. */
static void check_metadata(const struct ast_rule *r,
			   const struct ast_range *range,
			   struct rules_report *report)
{
	static const char *const known[] = {
		"169.254.169.254", "100.100.100.200", "fd00:ec2::254",
	};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct ip_addr a;

		if (ip_addr_parse(str_from(known[i]), &a) < 0 ||
		    !addr_range_has(&range->r, &a) || stands_alone(r, &a))
			continue;
		report_warning(report, range->place,
			       "'%.*s' does not open %s: the address of a "
			       "metadata service is opened only where it "
			       "stands by itself", STR_ARG(range->text),
			       known[i]);
		return;
	}
}

/* Ranges that are not public need a reason and should have an owner. */
static void check_exception(const struct ast_rule *r,
			    struct rules_report *report)
{
	enum ip_class class = IP_PUBLIC;
	const struct ast_range *range;

	for (range = r->ranges; range; range = range->next) {
		check_metadata(r, range, report);
		class = ip_classify_range(&range->r.lo, &range->r.hi);
		if (class != IP_PUBLIC)
			break;
	}
	if (!range)
		return;
	if (r->reason.place.line == 0)
		report_error(report, range->place,
			     "[allow %.*s] opens addresses that are not public "
			     "('%.*s': %s); say why with 'reason'",
			     STR_ARG(r->name), STR_ARG(range->text),
			     ip_class_name(class));
	if (r->owner.place.line == 0)
		report_warning(report, r->place,
			       "[allow %.*s] opens a %s range and has no "
			       "'owner'",
			       STR_ARG(r->name), ip_class_name(class));
}

static void check_policy(const struct rules_ast *ast,
			 struct rules_report *report)
{
	if (ast->observe && ast->reason.place.line == 0)
		report_warning(report, ast->mode_place,
			       "'mode = observe' lets every name through; say "
			       "why with 'reason' in [policy]");
	if (ast->policy_place.line != 0 && !ast->policy_says)
		report_warning(report, ast->policy_place,
			       "[policy] is empty; give it a 'name', or take "
			       "it out");
}

void rules_check_each(const struct rules_ast *ast, struct rules_report *report)
{
	check_policy(ast, report);
	for (const struct ast_rule *r = ast->rules; r; r = r->next) {
		check_suffixes(r, report);
		if (r->broken)
			continue;
		check_matches_something(r, report);
		check_protocol(r, report);
		check_expiry(r, report);
		check_requests(r, report);
		check_types(r, report);
		check_times(ast, r, report);
		check_observe(r, report);
		if (!r->deny)
			check_exception(r, report);
	}
}
