/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_diff.c - penstock policy diff OLD NEW
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "cli/opts.h"
#include "cli/policy_cmd.h"
#include "cli/policy_text.h"
#include "cli/text.h"
#include "rules/rules_diff.h"

#define LINE_BYTES	(16u << 10)

enum { ID_HELP = 1, ID_JSON };

struct shown_diff {
	const struct ruleset *from, *to;
	bool help, json;
	uint64_t gained, lost, ways;
	uint64_t limits[RULES_DIRECTIONS];
	int err;
};

static const struct opt diff_opts[] = {
	{ ID_JSON, "json", 0, OPT_NONE, NULL, "one JSON object a change" },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
};

static const char *diff_set(void *arg, int id, const char *value)
{
	struct shown_diff *d = arg;

	(void)value;
	d->help |= id == ID_HELP;
	d->json |= id == ID_JSON;
	return NULL;
}

static const struct opts_table diff_table = {
	"penstock policy diff", diff_opts, ARRAY_SIZE(diff_opts), diff_set
};

static void diff_usage(void)
{
	puts("Say what a new policy makes reachable and what it takes away:\n\n"
	     "  penstock policy diff old.ini new.ini\n\n"
	     "Policies are compared by what they let pass, not by their "
	     "texts, now and\nwhenever a rule ends; what is only observed "
	     "passes.  Of requests, samples of\nthe patterns of paths are "
	     "tried.\n\n"
	     "Exit status: 0 no difference, 1 some, 2 a policy is wrong.\n\n"
	     "Usage: penstock policy diff [OPTIONS] OLD NEW\n");
	opts_usage(&diff_table);
}

static int put_addrs(const struct rules_change *c, struct buf *out)
{
	char lo[IP_TEXT_SIZE], hi[IP_TEXT_SIZE];

	ip_addr_text(&c->lo, lo);
	ip_addr_text(&c->hi, hi);
	if (ip_addr_eq(&c->lo, &c->hi))
		return buf_printf(out, "%s", lo);
	return buf_printf(out, "%s-%s", lo, hi);
}

static int put_ports(const struct rules_change *c, struct buf *out)
{
	if (c->port_lo == c->port_hi)
		return buf_printf(out, "%u", c->port_lo);
	if (c->port_lo == 1 && c->port_hi == UINT16_MAX)
		return buf_printf(out, "*");
	return buf_printf(out, "%u-%u", c->port_lo, c->port_hi);
}

static bool has_host(const struct rules_change *c)
{
	return c->host.n > 0 || c->wild;
}

static int put_host(const struct rules_change *c, struct buf *out)
{
	return buf_printf(out, "%s%.*s", !c->wild ? "" :
			  c->host.n > 0 ? "*." : "*", STR_ARG(c->host));
}

/* "*.example.com port 443 at 10.0.0.0-10.0.0.255" */
static int put_where(const struct rules_change *c, struct buf *out)
{
	int e = has_host(c) ? put_host(c, out) : put_addrs(c, out);

	if (!e)
		e = buf_printf(out, " port ");
	if (!e)
		e = put_ports(c, out);
	if (!e && c->was)
		e = buf_printf(out, " as %s, %s %s", c->gained ? c->is->name :
			       c->was->name, c->gained ? "was" : "now",
			       c->gained ? c->was->name : c->is->name);
	if (!e && has_host(c) && c->lo.family != IP_NONE) {
		e = buf_printf(out, " at ");
		if (!e)
			e = put_addrs(c, out);
	}
	if (!e && c->path.n > 0)
		e = buf_printf(out, "  %.*s %.*s", STR_ARG(c->method.n > 0 ?
			       c->method : STR("any method")),
			       STR_ARG(c->path));
	return e;
}

static void rule_of(const struct shown_diff *d, const struct rules_change *c,
		    struct rules_rule_info *ret)
{
	rules_rule_info(c->gained ? d->to : d->from, c->rule, ret);
}

static int put_types(const struct rules_change *c, const char *between,
		     struct buf *out)
{
	bool first = true;
	int e = 0;

	for (unsigned i = 0; i < 32 && !e; i++) {
		if (!(c->types & BIT(i)))
			continue;
		e = buf_printf(out, "%s%s", first ? "" : between,
			       rules_type_name(BIT(i)));
		first = false;
	}
	return e;
}

/* What DNS is asked about, which no port says. */
static int text_types(const struct rules_change *c, struct buf *out)
{
	int e = buf_printf(out, c->gained ? "+ DNS types  " : "- no longer  ");

	if (!e)
		e = put_host(c, out);
	if (!e)
		e = buf_printf(out, "  ");
	if (!e)
		e = put_types(c, " ", out);
	return e ? e : buf_printf(out, c->gained ? "\n" : " by DNS\n");
}

static const char *way_words(const char *parent)
{
	if (!parent[0])
		return "as the operator has it";
	return strcmp(parent, RULES_PARENT_NONE) == 0 ? "directly" : parent;
}

/* As before, by another way. */
static int text_way(const struct rules_change *c, struct buf *out)
{
	int e = buf_printf(out, "~ other way  ");

	if (!e)
		e = put_where(c, out);
	return e ? e : buf_printf(out, "   %s%s, was %s%s",
				  c->is_parent[0] &&
				  strcmp(c->is_parent, RULES_PARENT_NONE) ?
				  "through " : "", way_words(c->is_parent),
				  c->was_parent[0] &&
				  strcmp(c->was_parent, RULES_PARENT_NONE) ?
				  "through " : "", way_words(c->was_parent));
}

/* A rule that ends, or does not any more, in one of the two. */
static int put_since(const struct rules_change *c, struct buf *out)
{
	char since[CLOCK_RFC3339_SIZE];

	if (c->since == 0)
		return buf_add_char(out, '\n');
	clock_rfc3339(c->since * 1000000, since);
	return buf_printf(out, ", from %s on\n", since);
}

static int text_change(const struct shown_diff *d, const struct rules_change *c,
		       struct buf *out)
{
	struct rules_rule_info info;
	int e;

	if (c->is_parent) {
		e = text_way(c, out);
		return e ? e : put_since(c, out);
	}
	e = buf_printf(out, c->gained ? "+ reachable  " : "- no longer  ");
	rule_of(d, c, &info);
	if (!e)
		e = put_where(c, out);
	if (!e)
		e = buf_printf(out, "   %s[%s %s], %s:%u%s%s%s",
			       c->gained ? "" : "was ",
			       info.deny ? "deny" : "allow", info.name,
			       info.file, info.line,
			       c->observed ? ", only observed" : "",
			       c->gained ? "" : "; now ",
			       c->gained ? "" : reason_word(c->reason));
	return e ? e : put_since(c, out);
}

static void json_types(struct json *j, const struct rules_change *c)
{
	json_array_begin(j, "types");
	for (unsigned i = 0; i < 32; i++) {
		if (c->types & BIT(i))
			json_cstr(j, NULL, rules_type_name(BIT(i)));
	}
	json_array_end(j);
}

/* @text is for use in between. */
static int json_flow(struct json *j, const struct shown_diff *d,
		     const struct rules_change *c, struct buf *text)
{
	struct rules_rule_info info;
	int e = 0;

	if (c->lo.family != IP_NONE) {
		buf_reset(text);
		e = put_addrs(c, text);
		json_str(j, "addresses", buf_str(text));
	}
	json_uint(j, "port_from", c->port_lo);
	json_uint(j, "port_to", c->port_hi);
	json_str_opt(j, "method", c->method);
	json_str_opt(j, "path", c->path);
	if (c->was) {
		json_cstr(j, "was_protocol", c->was->name);
		json_cstr(j, "protocol", c->is->name);
	}
	if (c->is_parent) {
		json_cstr(j, "was_parent", c->was_parent);
		json_cstr(j, "parent", c->is_parent);
	}
	if (c->observed)
		json_bool(j, "observed", true);
	if (c->since)
		json_int(j, "since", c->since);
	rule_of(d, c, &info);
	json_object_begin(j, "rule");
	json_bool(j, "deny", info.deny);
	json_cstr(j, "name", info.name);
	json_cstr(j, "file", info.file);
	json_uint(j, "line", info.line);
	json_object_end(j);
	return e;
}

static int json_change(const struct shown_diff *d, const struct rules_change *c,
		       struct buf *out)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(LINE_BYTES);
	struct json j;
	int e = 0;

	json_begin(&j, out);
	json_object_begin(&j, NULL);
	json_cstr(&j, "change", c->is_parent ? "way" :
		  c->gained ? "gained" : "lost");
	if (has_host(c)) {
		e = put_host(c, &text);
		json_str(&j, "host", buf_str(&text));
	}
	if (c->types)
		json_types(&j, c);
	else if (!e)
		e = json_flow(&j, d, c, &text);
	json_cstr(&j, "reason", reason_word(c->reason));
	json_object_end(&j);
	if (json_end(&j) || e)
		return -ENOSPC;
	return buf_add_char(out, '\n');
}

static bool show_change(void *arg, const struct rules_change *c)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(LINE_BYTES);
	struct shown_diff *d = arg;

	*(c->is_parent ? &d->ways : c->gained ? &d->gained : &d->lost) += 1;
	d->err = d->json ? json_change(d, c, &out) :
		 c->types ? text_types(c, &out) : text_change(d, c, &out);
	if (!d->err)
		text_put(&out);
	return !d->err;
}

/* The mode of a policy is about all there is. */
static void compare_modes(struct shown_diff *d)
{
	bool gained = rules_observe(d->to);

	if (rules_observe(d->from) == gained)
		return;
	*(gained ? &d->gained : &d->lost) += 1;
	if (d->json)
		printf("{\"change\":\"%s\",\"mode\":\"observe\"}\n",
		       gained ? "gained" : "lost");
	else
		puts(gained ? "+ reachable  every name on every port   "
		     "mode = observe in [policy]" : "- no longer  every name "
		     "on every port   was mode = observe in [policy]");
}

static int json_limit(const struct rules_limit_change *c, struct buf *out)
{
	struct json j;

	json_begin(&j, out);
	json_object_begin(&j, NULL);
	json_cstr(&j, "change", "limit");
	json_cstr(&j, "direction", rules_direction_word(c->direction));
	if (c->section)
		json_cstr(&j, "section", c->section);
	json_cstr(&j, "key", c->key);
	if (c->rule)
		json_cstr(&j, "rule", c->rule);
	if (c->was)
		json_cstr(&j, "was", c->was);
	if (c->is)
		json_cstr(&j, "is", c->is);
	json_object_end(&j);
	return json_end(&j) ? -ENOSPC : buf_add_char(out, '\n');
}

static int text_limit(const struct rules_limit_change *c, struct buf *out)
{
	static const char marks[] = {
		[RULES_OTHER] = '*', [RULES_WIDER] = '+',
		[RULES_NARROWER] = '-',
	};
	int e = buf_printf(out, "%c %-9s  [%s%s] %s", marks[c->direction],
			   rules_direction_word(c->direction),
			   c->rule ? "allow " : "",
			   c->rule ? c->rule : c->section, c->key);

	if (!e)
		e = c->is ? buf_printf(out, " = %s", c->is) :
			    buf_printf(out, " is not said any more");
	if (!e)
		e = c->was ? buf_printf(out, ", was %s\n", c->was) :
			     buf_printf(out, ", was not said\n");
	return e;
}

static bool show_limit(void *arg, const struct rules_limit_change *c)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(LINE_BYTES);
	struct shown_diff *d = arg;

	d->limits[c->direction]++;
	d->err = d->json ? json_limit(c, &out) : text_limit(c, &out);
	if (!d->err)
		text_put(&out);
	return !d->err;
}

static uint64_t sum_up_limits(const struct shown_diff *d)
{
	const uint64_t *n = d->limits;
	uint64_t all = n[RULES_WIDER] + n[RULES_NARROWER] + n[RULES_OTHER];

	if (!d->json && all)
		printf("limits: %" PRIu64 " wider, %" PRIu64 " narrower, %"
		       PRIu64 " other\n", n[RULES_WIDER], n[RULES_NARROWER],
		       n[RULES_OTHER]);
	return all;
}

static int compare(struct shown_diff *d)
{
	uint64_t all;
	int e;

	compare_modes(d);
	e = rules_diff(d->from, d->to, clock_wall_s(), show_change, d);
	if (!e && !d->err)
		(void)rules_diff_limits(d->from, d->to, show_limit, d);
	if (e || d->err) {
		say("cannot compare: %s", strerror(e ? -e : -d->err));
		return EXIT_USAGE;
	}
	all = d->gained + d->lost + d->ways;
	if (!d->json && all == 0)
		puts("no difference in what they permit");
	else if (!d->json && d->ways)
		printf("%" PRIu64 " gained, %" PRIu64 " lost, %" PRIu64
		       " by another way\n", d->gained, d->lost, d->ways);
	else if (!d->json)
		printf("%" PRIu64 " gained, %" PRIu64 " lost\n", d->gained,
		       d->lost);
	return all + sum_up_limits(d) ? EXIT_NEGATIVE : 0;
}

int policy_diff(int argc, char **argv)
{
	CLEANUP(rules_unrefp) struct ruleset *from = NULL, *to = NULL;
	struct shown_diff d = { .help = false };
	int first;

	if (opts_parse_all(&diff_table, argc, argv, &d, &first))
		return EXIT_USAGE;
	if (d.help) {
		diff_usage();
		return 0;
	}
	if (argc - first != 2) {
		say_of(diff_table.command, "OLD and NEW, nothing else");
		return EXIT_USAGE;
	}
	if (policy_load(argv[first], NULL, NULL, &from) ||
	    policy_load(argv[first + 1], NULL, NULL, &to))
		return EXIT_USAGE;
	d.from = from;
	d.to = to;
	return compare(&d);
}
