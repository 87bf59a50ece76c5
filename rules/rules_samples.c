/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_samples.c - requests that two policies may judge differently
 *
 * What a deny shuts of an allow lies where their patterns meet: of /x/ ** and
 * / * /secret that is /x/secret, which is a sample of neither.  So two patterns
 * are laid over one another, segment by segment: where the upper has a wildcard,
 * the lower shows through.  Whether both take what comes of it does not matter,
 * since it is judged like any other path.
 */
#include "rules/rules_samples.h"

#include <errno.h>
#include <stdlib.h>

#include "rules/rules_path.h"
#include "rules/ruleset.h"

#define SAMPLE_MAX	(6 * RULES_PATH_MAX)	/* two, percent-encoded */

struct samples {
	struct arena *arena;
	struct str *path;
	size_t n;
	struct str *pattern[2];		/* of allows, of denies */
	size_t n_patterns[2];
};

static int by_text(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Sort @v and leave each once; returns how many are left. */
static size_t keep_each(struct str *v, size_t n)
{
	size_t kept = 0;

	if (n > 0)
		qsort(v, n, sizeof(*v), by_text);
	for (size_t i = 0; i < n; i++) {
		if (kept == 0 || !str_eq(v[kept - 1], v[i]))
			v[kept++] = v[i];
	}
	return kept;
}

static int add_sample(struct samples *s, struct str pattern)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(SAMPLE_MAX);
	int e = rules_path_write(pattern, "any-name", "any-name/any-name",
				 &text);

	if (e)
		return e == -ENOSPC ? 0 : e;	/* longer than any is judged */
	s->path[s->n] = arena_str(s->arena, buf_str(&text));
	return s->path[s->n++].p ? 0 : -ENOMEM;
}

/* A segment of each: the lower one shows through the upper one's first '*'. */
static int lay_segment(struct str upper, struct str lower, struct buf *out)
{
	size_t star = str_chr(upper, PATH_ANY_BYTES);
	int e = buf_add_str(out, str_make(upper.p, star));

	if (!e && star < upper.n)
		e = buf_add_str(out, lower);
	if (!e && star < upper.n)
		e = buf_add_str(out, str_make(upper.p + star + 1,
					      upper.n - star - 1));
	return e;
}

/* Through '**' the whole rest of the lower one does. */
static int lay_over(struct str upper, struct str lower, struct buf *out)
{
	struct str u, l;
	int e = 0;

	/* Both begin with a slash. */
	(void)str_cut(&upper, '/', &u);
	(void)str_cut(&lower, '/', &l);
	while (!e && str_cut(&upper, '/', &u)) {
		bool all = str_chr(u, PATH_ANY_SEGMENTS) < u.n;
		struct str rest = lower;
		bool more = str_cut(&lower, '/', &l);

		e = buf_add_char(out, '/');
		if (e)
			break;
		if (all && more) {
			e = buf_add_str(out, rest);
			lower = STR_NONE;
		} else if (more && !(str_chr(l, PATH_ANY_SEGMENTS) < l.n)) {
			e = lay_segment(u, l, out);
		} else {
			e = buf_add_str(out, u);
		}
	}
	return e;
}

static int add_both(struct samples *s, struct str upper, struct str lower)
{
	CLEANUP(buf_done) struct buf both = BUF_INIT(2 * RULES_PATH_MAX);
	int e = lay_over(upper, lower, &both);

	if (!e)
		e = add_sample(s, buf_str(&both));
	return e == -ENOSPC ? 0 : e;
}

static int add_pairs(struct samples *s)
{
	int e = 0;

	if (MAX(s->n_patterns[0], s->n_patterns[1]) > RULES_SAMPLES_PAIRED)
		return 0;
	for (size_t i = 0; i < s->n_patterns[0]; i++) {
		for (size_t k = 0; k < s->n_patterns[1] && !e; k++) {
			e = add_both(s, s->pattern[0][i], s->pattern[1][k]);
			if (!e)
				e = add_both(s, s->pattern[1][k],
					     s->pattern[0][i]);
		}
	}
	return e;
}

static size_t count(const struct ruleset *const set[2], bool *ret_any)
{
	size_t n = 0;

	*ret_any = false;
	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < set[s]->n_rules; i++) {
			n += set[s]->rule[i].n_paths;
			*ret_any |= rule_is_limited(&set[s]->rule[i]);
		}
	}
	return n;
}

static int collect(struct samples *s, const struct ruleset *const set[2])
{
	int e = add_sample(s, STR("/any-name"));

	for (unsigned k = 0; k < 2; k++) {
		for (size_t i = 0; i < set[k]->n_rules; i++) {
			const struct rule *r = &set[k]->rule[i];

			for (size_t p = 0; p < r->n_paths; p++)
				s->pattern[r->deny][s->n_patterns[r->deny]++] =
					r->path[p];
		}
	}
	for (unsigned k = 0; k < 2; k++) {
		s->n_patterns[k] = keep_each(s->pattern[k], s->n_patterns[k]);
		for (size_t i = 0; i < s->n_patterns[k] && !e; i++)
			e = add_sample(s, s->pattern[k][i]);
	}
	return e ? e : add_pairs(s);
}

int rules_samples(const struct ruleset *const set[2], struct arena *arena,
		  struct str **ret, size_t *ret_n)
{
	struct samples s = { .arena = arena };
	bool any;
	size_t n = count(set, &any);
	int e = -ENOMEM;

	*ret = NULL;
	*ret_n = 0;
	if (!any)
		return 0;
	s.pattern[0] = mem_new_array(n + 1, sizeof(struct str));
	s.pattern[1] = mem_new_array(n + 1, sizeof(struct str));
	s.path = mem_new_array(n + 1 + 2 * RULES_SAMPLES_PAIRED *
			       RULES_SAMPLES_PAIRED, sizeof(*s.path));
	if (s.pattern[0] && s.pattern[1] && s.path)
		e = collect(&s, set);
	mem_free(s.pattern[0]);
	mem_free(s.pattern[1]);
	if (e) {
		mem_free(s.path);
		return e;
	}
	*ret = s.path;
	*ret_n = keep_each(s.path, s.n);
	return 0;
}

static void add_method(struct str *method, size_t *n, struct str name)
{
	for (size_t i = 0; i < *n; i++) {
		if (str_eq(method[i], name))
			return;
	}
	method[(*n)++] = name;
}

int rules_sample_methods(const struct ruleset *const set[2], struct str **ret,
			 size_t *ret_n)
{
	struct str *method;
	size_t n = 3;

	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < set[s]->n_rules; i++)
			n += set[s]->rule[i].n_methods;
	}
	method = mem_new_array(n, sizeof(*method));
	if (!method)
		return -ENOMEM;
	n = 0;
	add_method(method, &n, STR("GET"));
	add_method(method, &n, STR("HEAD"));
	add_method(method, &n, STR("ANY-OTHER"));
	for (unsigned s = 0; s < 2; s++) {
		for (size_t i = 0; i < set[s]->n_rules; i++) {
			const struct rule *r = &set[s]->rule[i];

			for (size_t k = 0; k < r->n_methods; k++)
				add_method(method, &n, r->method[k]);
		}
	}
	*ret = method;
	*ret_n = n;
	return 0;
}
