/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_compile.c - from policy texts to an immutable ruleset
 *
 * What a ruleset needs is in one arena, the ruleset itself included, but for the
 * table of hosts, which is a block of its own.  It is built in passes: rules,
 * then their hosts (rules_hosts.c), then the trees of ranges.
 */
#include <errno.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>

#include "rules/rules_ast.h"
#include "rules/ruleset.h"

/*
 * What a byte of text may cost in memory, beside the table of hosts.  The
 * dearest is a host of two bytes: some 100 as it was written, then its mark.
 */
#define ARENA_PER_BYTE	64
#define ARENA_BASE	(256u << 10)
/* Bytes that a policy took while it was read, from which on it is worth it. */
#define GIVE_BACK_FROM	(4u << 20)

/* --- one rule ------------------------------------------------------------- */

static int port_cmp(const void *a, const void *b)
{
	const struct port_range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Sort @v and join what overlaps or touches; returns how many are left. */
static size_t join_ports(struct port_range *v, size_t n)
{
	size_t kept = 0;

	if (n == 0)
		return 0;
	qsort(v, n, sizeof(*v), port_cmp);
	for (size_t i = 1; i < n; i++) {
		if ((uint32_t)v[i].lo > (uint32_t)v[kept].hi + 1)
			v[++kept] = v[i];
		else
			v[kept].hi = MAX(v[kept].hi, v[i].hi);
	}
	return kept + 1;
}

static int compile_ports(struct arena *arena, const struct ast_rule *ast,
			 struct rule *rule)
{
	static const struct port_range web[] = { { 80, 80 }, { 443, 443 } };
	static const struct port_range all = { 0, UINT16_MAX };
	size_t n = 0;

	rule->own_ports = ast->n_ports > 0;
	rule->port = arena_get_array(arena, MAX(ast->n_ports, ARRAY_SIZE(web)),
				     sizeof(rule->port[0]));
	if (!rule->port)
		return -ENOMEM;
	for (const struct ast_ports *p = ast->ports; p; p = p->next)
		rule->port[n++] = p->r;
	if (n == 0 && ast->protocol) {
		rule->port[n].lo = ast->protocol->port;
		rule->port[n++].hi = ast->protocol->port;
	} else if (n == 0 && ast->deny) {
		rule->port[n++] = all;
	} else if (n == 0) {
		for (; n < ARRAY_SIZE(web); n++)
			rule->port[n] = web[n];
	}
	rule->n_ports = join_ports(rule->port, n);
	return 0;
}

static int range_cmp(const void *a, const void *b)
{
	const struct addr_range *x = a, *y = b;

	return ip_addr_cmp(&x->lo, &y->lo);
}

static int addr_cmp(const void *a, const void *b)
{
	return ip_addr_cmp(a, b);
}

static unsigned family_bytes(const struct ip_addr *a)
{
	return a->family == IP_V4 ? 4 : 16;
}

/* The address behind @a; of another family (none) behind the last one. */
static struct ip_addr next_addr(struct ip_addr a)
{
	for (unsigned i = family_bytes(&a); i > 0; i--) {
		if (++a.b[i - 1] != 0)
			return a;
	}
	a.family = IP_NONE;
	return a;
}

static size_t join_ranges(struct addr_range *v, size_t n)
{
	size_t kept = 0;

	if (n == 0)
		return 0;
	qsort(v, n, sizeof(*v), range_cmp);
	for (size_t i = 1; i < n; i++) {
		struct ip_addr next = next_addr(v[kept].hi);

		if (!addr_range_has(&v[kept], &v[i].lo) &&
		    !ip_addr_eq(&next, &v[i].lo))
			v[++kept] = v[i];
		else if (ip_addr_cmp(&v[kept].hi, &v[i].hi) < 0)
			v[kept].hi = v[i].hi;
	}
	return kept + 1;
}

static int compile_ranges(struct arena *arena, const struct ast_rule *ast,
			  struct rule *rule)
{
	size_t n = 0;

	if (ast->n_ranges == 0)
		return 0;
	rule->range = arena_get_array(arena, ast->n_ranges,
				      sizeof(rule->range[0]));
	rule->single = arena_get_array(arena, ast->n_ranges,
				       sizeof(rule->single[0]));
	if (!rule->range || !rule->single)
		return -ENOMEM;
	for (const struct ast_range *r = ast->ranges; r; r = r->next) {
		rule->range[n++] = r->r;
		if (addr_range_is_single(&r->r))
			rule->single[rule->n_single++] = r->r.lo;
	}
	if (rule->n_single > 0)
		qsort(rule->single, rule->n_single, sizeof(rule->single[0]),
		      addr_cmp);
	rule->n_ranges = join_ranges(rule->range, n);
	return 0;
}

static int compile_text(struct arena *arena, const struct ast_text *t,
			const char **ret)
{
	struct str copy;

	if (t->place.line == 0)
		return 0;
	copy = arena_str(arena, t->text);
	if (!copy.p)
		return -ENOMEM;
	*ret = copy.p;
	return 0;
}

static int compile_words(struct arena *arena, const struct ast_word *word,
			 size_t n, struct str **ret, size_t *ret_n)
{
	*ret = arena_get_array(arena, n, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (; word; word = word->next) {
		struct str copy = arena_str(arena, word->text);

		if (!copy.p)
			return -ENOMEM;
		(*ret)[(*ret_n)++] = copy;
	}
	return 0;
}

static int compile_rule(struct arena *arena, const struct ast_rule *ast,
			struct rule *rule)
{
	struct str name = arena_str(arena, ast->name);
	int err;

	if (!name.p)
		return -ENOMEM;
	rule->name = name.p;
	err = compile_text(arena, &ast->owner, &rule->owner);
	if (!err)
		err = compile_text(arena, &ast->reason, &rule->reason);
	if (!err)
		err = compile_text(arena, &ast->parent, &rule->parent);
	if (err)
		return err;
	rule->expires = ast->expires;
	rule->observe = ast->observe;
	rule->source = ast->place.source;
	rule->line = ast->place.line;
	rule->deny = ast->deny;
	rule->has_hosts = ast->hosts || ast->lists;
	rule->protocol = ast->protocol;
	rule->types = ast->types;
	rule->bytes = ast->bytes;
	rule->times = ast->times;
	err = compile_words(arena, ast->methods, ast->n_methods,
			    &rule->method, &rule->n_methods);
	if (!err)
		err = compile_words(arena, ast->paths, ast->n_paths,
				    &rule->path, &rule->n_paths);
	if (!err)
		err = compile_ports(arena, ast, rule);
	return err ? err : compile_ranges(arena, ast, rule);
}

static int compile_rules(struct ruleset *rs, const struct rules_ast *ast)
{
	int err = 0;

	rs->rule = arena_get_array(rs->arena, ast->n_rules,
				   sizeof(rs->rule[0]));
	if (!rs->rule)
		return -ENOMEM;
	for (const struct ast_rule *r = ast->rules; r && !err; r = r->next)
		err = compile_rule(rs->arena, r, &rs->rule[rs->n_rules++]);
	return err;
}

/* --- addresses ------------------------------------------------------------ */

static int compile_spans(struct ruleset *rs, bool deny, struct span_tree *tree)
{
	size_t n = 0;

	for (size_t i = 0; i < rs->n_rules; i++) {
		if (rs->rule[i].deny == deny && !rs->rule[i].has_hosts)
			n += rs->rule[i].n_ranges;
	}
	tree->span = arena_get_array(rs->arena, n, sizeof(tree->span[0]));
	if (!tree->span)
		return -ENOMEM;
	for (size_t i = 0; i < rs->n_rules; i++) {
		const struct rule *r = &rs->rule[i];

		if (r->deny != deny || r->has_hosts)
			continue;
		for (size_t k = 0; k < r->n_ranges; k++) {
			tree->span[tree->n].r = r->range[k];
			tree->span[tree->n++].owner = (uint32_t)i;
		}
	}
	span_tree_build(tree);
	return 0;
}

/* --- the whole ------------------------------------------------------------ */

/*
 * Of one text it is what sha256sum prints.  A NUL, which no text may hold,
 * keeps several apart.
 */
static void make_digest(const struct rules_report *report, char out[17])
{
	const uint8_t nul = 0;
	uint8_t sum[SHA256_DIGEST_LENGTH];
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	for (size_t i = 0; i < report->n_sources; i++) {
		struct str text = report->source[i].text;

		if (i > 0)
			SHA256Update(&ctx, &nul, 1);
		if (text.n > 0)
			SHA256Update(&ctx, (const uint8_t *)text.p, text.n);
	}
	SHA256Final(sum, &ctx);
	for (size_t i = 0; i < 16; i++) {
		unsigned nibble = i % 2 ? sum[i / 2] & 15u : sum[i / 2] >> 4;

		out[i] = "0123456789abcdef"[nibble];
	}
	out[16] = '\0';
}

static int compile_files(struct ruleset *rs, const struct rules_report *report)
{
	rs->file = arena_get_array(rs->arena, report->n_sources,
				   sizeof(rs->file[0]));
	if (!rs->file)
		return -ENOMEM;
	for (; rs->n_files < report->n_sources; rs->n_files++) {
		struct str name = str_from(report->source[rs->n_files].name);

		name = arena_str(rs->arena, name);
		if (!name.p)
			return -ENOMEM;
		rs->file[rs->n_files] = name.p;
	}
	return 0;
}

static int compile_head(struct ruleset *rs, const struct rules_ast *ast,
			const struct rules_report *report)
{
	struct str name = ast->name.text;

	name = arena_str(rs->arena, str_empty(name) ? STR("unnamed") : name);
	if (!name.p)
		return -ENOMEM;
	rs->name = name.p;
	rs->observe = ast->observe;
	rs->parent_line = ast->default_parent.place.line;
	if (compile_text(rs->arena, &ast->default_parent, &rs->parent))
		return -ENOMEM;
	rules_compile_settings(rs, ast);
	make_digest(report, rs->digest);
	return compile_files(rs, report);
}

static int compile(struct rules_ast *ast, struct rules_report *report,
		   struct arena *arena, struct ruleset **ret)
{
	struct ruleset *rs = arena_get(arena, sizeof(*rs));
	int err;

	if (!rs)
		return -ENOMEM;
	rs->arena = arena;
	atomic_init(&rs->refs, 1);
	err = compile_head(rs, ast, report);
	if (!err)
		err = compile_rules(rs, ast);
	if (!err)
		err = rules_compile_hosts(rs, ast, report);
	if (!err)
		err = compile_spans(rs, false, &rs->allow_spans);
	if (!err)
		err = compile_spans(rs, true, &rs->deny_spans);
	if (!err)
		err = rules_check_together(ast, rs, report);
	if (!err && report->errors)
		err = -EINVAL;
	if (err)
		host_table_done(&rs->hosts);
	else
		*ret = rs;
	return err;
}

static int check_sizes(struct rules_report *report, size_t *ret_bytes)
{
	struct rules_place nowhere = { 0 };
	size_t bytes = 0;

	if (report->n_sources > RULES_SOURCES_MAX) {
		report_error(report, nowhere, "a policy is made of at most %d "
			     "files; join some", RULES_SOURCES_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < report->n_sources; i++) {
		size_t n = report->source[i].text.n;

		nowhere.source = (uint16_t)i;
		if (n > RULES_TEXT_MAX || bytes + n > RULES_TEXT_MAX) {
			report_error(report, nowhere, "the policy is larger "
				     "than %u bytes in all; use wildcards and "
				     "networks", RULES_TEXT_MAX);
			return -EINVAL;
		}
		bytes += n;
	}
	*ret_bytes = bytes;
	return 0;
}

static void arena_freep(struct arena **a)
{
	arena_free(*a);
}

int rules_compile(const struct rules_source *source, size_t n,
		  rules_diag_fn *diag, void *arg, struct ruleset **ret)
{
	struct rules_report report = {
		.source = source, .n_sources = n, .fn = diag, .arg = arg,
	};
	CLEANUP(arena_freep) struct arena *scratch = NULL;
	CLEANUP(arena_freep) struct arena *arena = NULL;
	struct rules_ast ast = { 0 };
	size_t bytes;
	int err;

	if (check_sizes(&report, &bytes) < 0)
		return -EINVAL;
	scratch = arena_new(ARENA_BASE + bytes * ARENA_PER_BYTE);
	arena = arena_new(ARENA_BASE + bytes * ARENA_PER_BYTE);
	if (!scratch || !arena)
		return -ENOMEM;
	ast.arena = scratch;
	err = rules_parse(&ast, &report);
	if (err)
		return err;
	rules_check_each(&ast, &report);
	if (report.errors) {
		rules_check_lists(&ast, &report);
		return -EINVAL;
	}
	err = compile(&ast, &report, arena, ret);
	if (!err)
		arena = NULL;		/* it is the ruleset's now */
	if (arena_used(scratch) > GIVE_BACK_FROM) {
		arena_free(scratch);
		scratch = NULL;
		mem_give_back();
	}
	return err;
}

struct ruleset *rules_ref(struct ruleset *rs)
{
	atomic_fetch_add_explicit(&rs->refs, 1, memory_order_relaxed);
	return rs;
}

void rules_unref(struct ruleset *rs)
{
	if (!rs)
		return;
	if (atomic_fetch_sub_explicit(&rs->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (rs->of) {
		rules_unref(rs->of);
		mem_free(rs);
		return;
	}
	host_table_done(&rs->hosts);
	arena_free(rs->arena);
}

const char *rules_name(const struct ruleset *rs)
{
	return rs->name;
}

const char *rules_digest(const struct ruleset *rs)
{
	return rs->digest;
}

bool rules_observe(const struct ruleset *rs)
{
	return rs->observe;
}

void rules_set_observe(struct ruleset *rs)
{
	rs->observe = true;
}

int rules_observing(struct ruleset *rs, struct ruleset **ret)
{
	struct ruleset *copy = mem_new(sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	memcpy(copy, rs, sizeof(*copy));
	atomic_init(&copy->refs, 1);
	copy->observe = true;
	copy->of = rules_ref(rs);
	*ret = copy;
	return 0;
}

size_t rules_count(const struct ruleset *rs)
{
	return rs->n_rules;
}

void rules_rule_info(const struct ruleset *rs, size_t number,
		     struct rules_rule_info *ret)
{
	const struct rule *r;

	REQUIRE(number > 0 && number <= rs->n_rules);
	r = &rs->rule[number - 1];
	*ret = (struct rules_rule_info){
		.name = r->name,
		.file = rs->file[r->source],
		.line = r->line,
		.deny = r->deny,
		.observe = r->observe,
		.owner = r->owner,
		.reason = r->reason,
		.expires = r->expires,
		.parent = r->parent,
	};
}

const char *rules_default_parent(const struct ruleset *rs,
				 const char **ret_file, unsigned *ret_line)
{
	if (rs->parent) {
		*ret_file = rs->file[0];
		*ret_line = rs->parent_line;
	}
	return rs->parent;
}

size_t rules_rule_find(const struct ruleset *rs, bool deny, struct str name)
{
	for (size_t i = 0; i < rs->n_rules; i++) {
		if (rs->rule[i].deny == deny &&
		    str_eq(str_from(rs->rule[i].name), name))
			return i + 1;
	}
	return 0;
}

int64_t rules_next_expiry(const struct ruleset *rs, int64_t now)
{
	int64_t next = RULES_NEVER;

	for (size_t i = 0; i < rs->n_rules; i++) {
		if (rs->rule[i].expires > now)
			next = MIN(next, rs->rule[i].expires);
	}
	return next;
}
