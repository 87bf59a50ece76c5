/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_bundle.c - a policy with all that it names, in one text
 *
 * The text comes from whoever may bring a policy, so nothing in it is believed:
 * every number is bounded, each part must stand behind the one that names it.
 * Whether a part is named there at all, and may say what it says, is looked at
 * when it is compiled.
 */
#include "rules/rules_bundle.h"

#include <errno.h>

#include "base/mem.h"
#include "rules/rules_ast.h"

#define MAGIC		"#!penstock-policies 1\n"
#define NAME_MAX_BYTES	4096
/* The array, and of each source its name with a NUL, rounded up. */
#define ARENA_BYTES	(RULES_SOURCES_MAX * (sizeof(struct rules_source) + \
					      NAME_MAX_BYTES + 64) + 4096)

static const char *const kind_words[] = {
	[RULES_SOURCE_POLICY] = "policy",
	[RULES_SOURCE_INCLUDE] = "include",
	[RULES_SOURCE_PRESET] = "preset",
	[RULES_SOURCE_HOSTS] = "hosts",
	[RULES_SOURCE_ALLOW] = "allow",
};
_Static_assert(ARRAY_SIZE(kind_words) == RULES_SOURCE_KINDS, "name each");

/* --- writing --------------------------------------------------------------- */

static int write_source(const struct rules_source *s, struct buf *out)
{
	struct str word = str_empty(s->word) ? STR("-") : s->word;
	struct str text = s->same ? STR_NONE : s->text;
	int err = buf_printf(out, "%s %u %u %u %zu %.*s ",
			     kind_words[s->kind], (unsigned)s->parent,
			     (unsigned)s->line, (unsigned)s->same, text.n,
			     STR_ARG(word));

	/* A line feed in a file's name must not end the line. */
	for (const char *p = s->name; *p && !err; p++)
		err = buf_add_char(out, *p == '\n' ? '?' : *p);
	if (!err)
		err = buf_add_char(out, '\n');
	if (!err)
		err = buf_add_str(out, text);
	return err ? err : buf_add_char(out, '\n');
}

int rules_bundle_write(const struct rules_source *source, size_t n,
		       struct buf *out)
{
	size_t before = out->n;
	int err = 0;

	if (n == 1 && source[0].kind == RULES_SOURCE_POLICY &&
	    !str_starts(source[0].text, STR(MAGIC)))
		return buf_add_str(out, source[0].text);
	err = buf_add_str(out, STR(MAGIC));
	for (size_t i = 0; i < n && !err; i++)
		err = write_source(&source[i], out);
	if (err)
		out->n = before;
	return err;
}

/* --- reading --------------------------------------------------------------- */

static int take_number(struct str *line, unsigned long max, unsigned long *ret)
{
	struct str word;

	if (!str_cut(line, ' ', &word))
		return -EINVAL;
	return str_to_uint(word, max, ret) ? -EINVAL : 0;
}

static int take_kind(struct str *line, enum rules_source_kind *ret)
{
	struct str word;

	if (!str_cut(line, ' ', &word))
		return -EINVAL;
	for (int k = 0; k < RULES_SOURCE_KINDS; k++) {
		if (str_eq(word, str_from(kind_words[k]))) {
			*ret = (enum rules_source_kind)k;
			return 0;
		}
	}
	return -EINVAL;
}

static int take_name(struct rules_bundle *b, struct str name,
		     struct rules_source *s)
{
	struct str copy;

	if (str_empty(name) || name.n > NAME_MAX_BYTES ||
	    str_chr(name, '\0') < name.n)
		return -EINVAL;
	copy = arena_str(b->arena, name);
	if (!copy.p)
		return -ENOMEM;
	s->name = copy.p;
	return 0;
}

static bool is_word(struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f)
			return false;
	}
	return s.n > 0;
}

/* The line above a part; @ret_bytes: of the part. */
static int take_head(struct rules_bundle *b, struct str line,
		     struct rules_source *s, unsigned long *ret_bytes)
{
	unsigned long parent, number, same;
	int err = take_kind(&line, &s->kind);

	if (!err)
		err = take_number(&line, b->n, &parent);
	if (!err)
		err = take_number(&line, RULES_TEXT_MAX, &number);
	if (!err)
		err = take_number(&line, b->n, &same);
	if (!err)
		err = take_number(&line, RULES_TEXT_MAX, ret_bytes);
	if (!err && (!str_cut(&line, ' ', &s->word) || !is_word(s->word)))
		err = -EINVAL;
	if (!err)
		err = take_name(b, line, s);
	if (err)
		return err;
	s->parent = (uint16_t)parent;
	s->line = (uint32_t)number;
	s->same = (uint16_t)same;
	if (str_eq(s->word, STR("-")))
		s->word = STR_NONE;
	return s->same && *ret_bytes ? -EINVAL : 0;
}

static int take_source(struct rules_bundle *b, struct str *rest)
{
	struct rules_source *s = &b->source[b->n];
	size_t end = str_chr(*rest, '\n');
	unsigned long bytes;
	int err;

	if (b->n == RULES_SOURCES_MAX || end == rest->n)
		return -EINVAL;
	err = take_head(b, str_make(rest->p, end), s, &bytes);
	if (err)
		return err;
	*rest = str_make(rest->p + end + 1, rest->n - end - 1);
	if (bytes >= rest->n || rest->p[bytes] != '\n')
		return -EINVAL;
	s->text = s->same ? b->source[s->same - 1].text :
		  str_make(rest->p, bytes);
	*rest = str_make(rest->p + bytes + 1, rest->n - bytes - 1);
	b->n++;
	return 0;
}

void rules_bundle_done(struct rules_bundle *b)
{
	arena_free(b->arena);
	*b = (struct rules_bundle)RULES_BUNDLE_INIT;
}

int rules_bundle_read(struct str text, const char *name,
		      struct rules_bundle *ret)
{
	CLEANUP(rules_bundle_done) struct rules_bundle b = RULES_BUNDLE_INIT;
	int err = 0;

	b.arena = arena_new(ARENA_BYTES);
	if (!b.arena)
		return -ENOMEM;
	b.source = arena_get_array(b.arena, RULES_SOURCES_MAX,
				   sizeof(b.source[0]));
	if (!b.source)
		return -ENOMEM;
	if (str_starts(text, STR(MAGIC))) {
		text = str_make(text.p + STR(MAGIC).n, text.n - STR(MAGIC).n);
		while (!err && !str_empty(text))
			err = take_source(&b, &text);
	} else {
		b.source[b.n].text = text;
		err = take_name(&b, str_from(name), &b.source[b.n++]);
	}
	if (err)
		return err;
	*ret = b;
	b = (struct rules_bundle)RULES_BUNDLE_INIT;
	return 0;
}

int rules_compile_text(struct str text, const char *name, rules_diag_fn *diag,
		       void *arg, struct ruleset **ret)
{
	CLEANUP(rules_bundle_done) struct rules_bundle b = RULES_BUNDLE_INIT;
	const struct rules_diag no_bundle = {
		.severity = RULES_ERROR,
		.file = name,
		.message = "is no bundle of policies; it was cut, or made by "
			   "another version of penstock",
	};
	int err = rules_bundle_read(text, name, &b);

	if (err == -EINVAL && diag)
		diag(arg, &no_bundle);
	return err ? err : rules_compile(b.source, b.n, diag, arg, ret);
}
