/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_load.c - a policy with all that it names, read from files
 *
 * Sources are read in their order, and those that one names are put behind it,
 * so that the list grows while it is walked and nothing recurses.  What a text
 * says otherwise is of no interest here: its faults are told when it is
 * compiled.
 */
#include "rules/rules_load.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/ini.h"
#include "base/mem.h"
#include "rules/rules_ast.h"
#include "rules/rules_hook.h"

#define ARENA_BYTES	(RULES_SOURCES_MAX * (sizeof(struct rules_source) + \
					      2 * RULES_PATH_TEXT_MAX + 64))
#define MESSAGE_SIZE	512
_Static_assert(RULES_FILES_MAX == RULES_SOURCES_MAX, "one text a source");

struct load {
	const struct rules_reader *reader;
	rules_diag_fn *diag;
	void *arg;
	struct rules_loaded *l;
	uint16_t at;			/* the source whose names are read */
	bool in_policy, in_rule;	/* the section */
	unsigned line;
	unsigned errors;
	int err;			/* -ENOMEM */
};

/* --- faults ----------------------------------------------------------------- */

/* The policy itself: nothing names it but who wants it. */
static void policy_fault(struct load *l, const char *path, const char *why)
{
	const struct rules_diag d = {
		.severity = RULES_ERROR, .file = path, .message = why,
	};

	l->errors++;
	if (l->diag)
		l->diag(l->arg, &d);
}

/* The column of @word in the line being read, or 0. */
static unsigned column_of(const struct load *l, struct str word)
{
	struct str rest = l->l->b.source[l->at].text, line = STR_NONE;
	size_t at;

	for (unsigned i = 0; i < l->line; i++) {
		if (!str_cut(&rest, '\n', &line))
			return 0;
	}
	at = str_empty(word) ? line.n : str_find(line, word);
	return at < line.n ? (unsigned)at + 1 : 0;
}

PRINTF(3, 4)
static void fault(struct load *l, struct str word, const char *fmt, ...)
{
	char message[MESSAGE_SIZE];
	struct rules_diag d = {
		.severity = RULES_ERROR,
		.file = l->l->b.n > l->at && l->line ?
			l->l->b.source[l->at].name : "--preset",
		.line = l->line,
		.column = column_of(l, word),
		.message = message,
	};

	va_list ap;

	/* Paths may be longer than fits: their ends are lost. */
	va_start(ap, fmt);
	if (vsnprintf(message, sizeof(message), fmt, ap) < 0)
		message[0] = '\0';
	va_end(ap);
	l->errors++;
	if (l->diag)
		l->diag(l->arg, &d);
}

/* --- sources ---------------------------------------------------------------- */

static struct str keep(struct load *l, struct str s)
{
	struct str copy = arena_str(l->l->b.arena, s);

	if (!copy.p)
		l->err = -ENOMEM;
	return copy;
}

/* Of the source that is read now; the text is the caller's to give. */
static struct rules_source *add(struct load *l, enum rules_source_kind kind,
				struct str name, struct str word)
{
	struct rules_bundle *b = &l->l->b;
	struct rules_source *s;

	if (b->n == RULES_SOURCES_MAX) {
		fault(l, word, "more than %d files make one policy; join some",
		      RULES_SOURCES_MAX);
		return NULL;
	}
	s = &b->source[b->n];
	*s = (struct rules_source){
		.kind = kind, .line = l->line, .word = keep(l, word),
		.parent = l->line ? (uint16_t)(l->at + 1) : 0,
	};
	s->name = keep(l, name).p;
	if (l->err)
		return NULL;
	b->n++;
	return s;
}

/* Takes the bytes. */
static void give_text(struct load *l, struct rules_source *s, struct buf *text)
{
	s->text = buf_str(text);
	l->l->text[l->l->n_texts++] = text->p;
	*text = BUF_INIT(0);
}

static const struct rules_source *find_same(const struct load *l,
					    enum rules_source_kind kind,
					    struct str name)
{
	for (size_t i = 0; i < l->l->b.n; i++) {
		const struct rules_source *s = &l->l->b.source[i];

		if (s->kind == kind && !s->same &&
		    str_eq(str_from(s->name), name))
			return s;
	}
	return NULL;
}

/* Is the file one of those that lead here?  Else how deep are we? */
static bool leads_here(struct load *l, struct str name, unsigned *ret_depth)
{
	const struct rules_source *s = &l->l->b.source[l->at];
	unsigned depth = 1;

	while (!str_eq(str_from(s->name), name)) {
		if (s->parent == 0) {
			*ret_depth = depth;
			return false;
		}
		s = &l->l->b.source[s->parent - 1];
		depth++;
	}
	return true;
}

static bool add_again(struct load *l, const struct rules_source *same,
		      struct str word)
{
	struct rules_source *s = add(l, same->kind, str_from(same->name),
				     word);

	if (!s)
		return false;
	s->same = (uint16_t)(same - l->l->b.source + 1);
	s->text = same->text;
	return true;
}

static size_t bytes_left(const struct load *l)
{
	size_t used = 0;

	for (size_t i = 0; i < l->l->b.n; i++) {
		if (!l->l->b.source[i].same)
			used += l->l->b.source[i].text.n;
	}
	return used < RULES_TEXT_MAX ? RULES_TEXT_MAX - used : 0;
}

/* Why the policy itself could not be read, with what would do. */
static const char *unread_words(int err)
{
	switch (-err) {
	case ENOENT:
		return "there is no such file: a policy is one as in "
		       "penstock.ini(5), or a preset, by --preset NAME";
	case EISDIR:
		return "is a directory: name a policy file in it";
	case EINVAL:
		return "is neither a file nor a pipe; an empty file is the "
		       "policy that allows nothing";
	case EACCES:
		return "you may not read it";
	case EFBIG:
		return "is larger than any policy may be (64 MiB)";
	case ENODATA:
		return "nobody wrote a policy into this pipe";
	default:
		return strerror(-err);
	}
}

static void read_file(struct load *l, enum rules_source_kind kind,
		      const char *path, struct str name, struct str word)
{
	struct buf text = BUF_INIT(bytes_left(l));
	const struct rules_source *same = find_same(l, kind, name);
	struct rules_source *s;
	int err;

	if (same) {
		(void)add_again(l, same, word);
		return;
	}
	err = l->reader->read(l->reader->arg, path, &text);
	if (err == -ENOMEM)
		l->err = err;
	else if (err && kind == RULES_SOURCE_POLICY)
		policy_fault(l, path, unread_words(err));
	else if (err == -EFBIG)
		fault(l, word, "with '%s' the policy is larger than %u MiB",
		      path, RULES_TEXT_MAX >> 20);
	else if (err)
		fault(l, word, "cannot read '%s': %s", path, strerror(-err));
	s = err ? NULL : add(l, kind, name, word);
	if (s)
		give_text(l, s, &text);
	buf_done(&text);
}

/* --- names in texts ----------------------------------------------------------- */

/* @word as a path, beside the file that is read; false, and told. */
static bool resolve(struct load *l, struct str word,
		    char ret[RULES_PATH_TEXT_MAX])
{
	struct str file = str_from(l->l->b.source[l->at].name);
	size_t dir = file.n;
	int n;

	while (str_starts(word, STR("./")))
		word = str_make(word.p + 2, word.n - 2);
	while (dir > 0 && file.p[dir - 1] != '/')
		dir--;
	if (str_starts(word, STR("/")))
		dir = 0;
	n = snprintf(ret, RULES_PATH_TEXT_MAX, "%.*s%.*s", (int)dir, file.p,
		     STR_ARG(word));
	if (n > 0 && n < RULES_PATH_TEXT_MAX && !str_empty(word))
		return true;
	fault(l, word, "is no path of a file");
	return false;
}

static void on_include(struct load *l, struct str word)
{
	char path[RULES_PATH_TEXT_MAX];
	unsigned depth = 0;

	if (l->l->b.source[l->at].kind == RULES_SOURCE_PRESET) {
		fault(l, word, "a preset includes nothing");
		return;
	}
	if (!resolve(l, word, path))
		return;
	if (leads_here(l, str_from(path), &depth))
		fault(l, word, "'%s' includes itself, directly or through "
		      "others; take one of them out", path);
	else if (depth > RULES_DEPTH_MAX)
		fault(l, word, "'%s' is included through more than %d files",
		      path, RULES_DEPTH_MAX);
	else
		read_file(l, RULES_SOURCE_INCLUDE, path, str_from(path), word);
}

static bool is_preset_name(struct str word)
{
	for (size_t i = 0; i < word.n; i++) {
		char c = word.p[i];

		if (!(c >= 'a' && c <= 'z') && !ascii_is_digit(c) && c != '-')
			return false;
	}
	return word.n > 0 && word.n < 64;
}

struct near {
	unsigned n;			/* presets that there are */
	struct str wanted;
	char best[64];
};

/* "did you mean" among the files of the presets. */
static void on_preset_file(void *arg, const char *file)
{
	struct near *near = arg;
	struct str name = str_from(file);
	const char *words[3] = { NULL }, *found;
	char word[64];

	if (!str_ends(name, STR(".ini")) || name.n - 4 >= sizeof(word))
		return;
	near->n++;
	memcpy(word, name.p, name.n - 4);
	word[name.n - 4] = '\0';
	words[0] = near->best[0] ? near->best : word;
	words[1] = near->best[0] ? word : NULL;
	found = ini_did_you_mean(near->wanted, words);
	if (found == word)
		memcpy(near->best, word, sizeof(near->best));
}

static void no_preset(struct load *l, struct str word, const struct near *near)
{
	if (near->best[0])
		fault(l, word, "there is no preset '%.*s'; did you mean '%s'?",
		      STR_ARG(word), near->best);
	else if (near->n)
		fault(l, word, "there is no preset '%.*s'; they are in %s",
		      STR_ARG(word), l->reader->presets);
	else
		fault(l, word, "there is no preset '%.*s', nor any other in "
		      "%s: is Penstock installed? ('make install' puts them "
		      "there)", STR_ARG(word), l->reader->presets);
}

static void on_preset(struct load *l, struct str word)
{
	char path[RULES_PATH_TEXT_MAX], name[80];
	struct near near = { .wanted = word };
	struct buf text = BUF_INIT(bytes_left(l));
	struct rules_source *s;
	int err, n, m;

	n = snprintf(path, sizeof(path), "%s/%.*s.ini", l->reader->presets,
		     STR_ARG(word));
	m = snprintf(name, sizeof(name), "preset %.*s", STR_ARG(word));
	if (!is_preset_name(word) || n < 0 || n >= (int)sizeof(path) || m < 0 ||
	    m >= (int)sizeof(name)) {
		fault(l, word, "is no preset; their names have small letters, "
		      "digits and '-', and files are read with 'include'");
		return;
	}
	if (find_same(l, RULES_SOURCE_PRESET, str_from(name))) {
		(void)add_again(l, find_same(l, RULES_SOURCE_PRESET,
					     str_from(name)), word);
		return;
	}
	err = l->reader->read(l->reader->arg, path, &text);
	if (err == -ENOENT) {
		(void)!l->reader->list(l->reader->arg, l->reader->presets,
				       on_preset_file, &near);
		no_preset(l, word, &near);
	} else if (err) {
		fault(l, word, "cannot read '%s': %s", path, strerror(-err));
	}
	s = err ? NULL : add(l, RULES_SOURCE_PRESET, str_from(name), word);
	if (s)
		give_text(l, s, &text);
	buf_done(&text);
}

/* How the machine is set up, for a preset. */
static void on_hook(struct load *l, struct str word)
{
	struct buf text = BUF_INIT(bytes_left(l));
	struct rules_source *s;
	const char *name;
	int err = rules_hook_hosts(l->reader, word, &text, &name);

	if (err == -ENOMEM)
		l->err = err;
	else if (err)
		fault(l, word, "a preset takes hosts from @apt-sources/HOST "
		      "and @npm-registry/HOST, and from nothing else");
	s = err ? NULL : add(l, RULES_SOURCE_HOSTS, str_from(name), word);
	if (s)
		give_text(l, s, &text);
	buf_done(&text);
}

static void on_list(struct load *l, struct str word)
{
	char path[RULES_PATH_TEXT_MAX];
	struct str file = str_make(word.p + 1, word.n - 1);

	if (l->l->b.source[l->at].kind == RULES_SOURCE_PRESET)
		on_hook(l, word);
	else if (resolve(l, file, path))
		read_file(l, RULES_SOURCE_HOSTS, path, str_from(path), word);
}

static void on_section(void *arg, unsigned line, struct str name)
{
	struct load *l = arg;
	struct str word;

	(void)line;
	l->in_policy = l->in_rule = false;
	if (!str_word(&name, &word))
		return;
	l->in_policy = str_eq(word, STR("policy"));
	l->in_rule = str_eq(word, STR("allow")) || str_eq(word, STR("deny"));
}

static void on_key(void *arg, unsigned line, struct str section,
		   struct str key, struct str value)
{
	struct load *l = arg;
	bool include = l->in_policy && str_eq(key, STR("include"));
	bool preset = l->in_policy && str_eq(key, STR("preset"));
	bool hosts = l->in_rule && str_eq(key, STR("hosts"));
	struct str word;

	(void)section;
	l->line = line;
	while (!l->err && (include || preset || hosts) &&
	       str_word(&value, &word)) {
		if (include)
			on_include(l, word);
		else if (preset)
			on_preset(l, word);
		else if (word.p[0] == '@')
			on_list(l, word);
	}
}

static void on_error(void *arg, unsigned line, unsigned column,
		     const char *message)
{
	/* The compiler tells of it. */
	(void)arg;
	(void)line;
	(void)column;
	(void)message;
}

static int read_names(struct load *l)
{
	static const struct ini_handler handler = {
		.on_section = on_section,
		.on_key = on_key,
		.on_error = on_error,
	};
	const struct rules_source *s = &l->l->b.source[l->at];
	int err;

	if (s->kind == RULES_SOURCE_HOSTS || s->kind == RULES_SOURCE_ALLOW ||
	    s->same)
		return 0;
	l->in_policy = l->in_rule = false;
	err = ini_read(s->text, &handler, l);
	l->line = 0;
	return err == -ENOMEM ? err : l->err;
}

/* --- the whole ------------------------------------------------------------------ */

static void add_allow(struct load *l, struct str allow)
{
	struct buf text = BUF_INIT(allow.n);
	struct rules_source *s;

	if (str_empty(allow))
		return;
	if (buf_add_str(&text, allow) < 0)
		l->err = -ENOMEM;
	s = l->err ? NULL : add(l, RULES_SOURCE_ALLOW, STR("--allow"),
				STR_NONE);
	if (s)
		give_text(l, s, &text);
	buf_done(&text);
}

bool rules_source_is_file(const struct rules_source *source, size_t index)
{
	const struct rules_source *s = &source[index];

	switch (s->kind) {
	case RULES_SOURCE_POLICY:
	case RULES_SOURCE_INCLUDE:
		return true;
	case RULES_SOURCE_HOSTS:
		return s->parent > 0 &&
		       source[s->parent - 1].kind != RULES_SOURCE_PRESET;
	case RULES_SOURCE_PRESET:
	case RULES_SOURCE_ALLOW:
	case RULES_SOURCE_KINDS:
		break;
	}
	return false;
}

void rules_loaded_done(struct rules_loaded *l)
{
	while (l->n_texts > 0)
		mem_free(l->text[--l->n_texts]);
	rules_bundle_done(&l->b);
}

int rules_load(const struct rules_reader *reader,
	       const struct rules_wanted *wanted, rules_diag_fn *diag,
	       void *arg, struct rules_loaded *ret)
{
	struct load l = {
		.reader = reader, .diag = diag, .arg = arg, .l = ret,
	};
	int err = 0;

	*ret = (struct rules_loaded){ .n_texts = 0 };
	ret->b.arena = arena_new(ARENA_BYTES);
	if (!ret->b.arena)
		return -ENOMEM;
	ret->b.source = arena_get_array(ret->b.arena, RULES_SOURCES_MAX,
					sizeof(ret->b.source[0]));
	if (!ret->b.source)
		return -ENOMEM;
	if (wanted->policy)
		read_file(&l, RULES_SOURCE_POLICY, wanted->policy,
			  str_from(wanted->policy), STR_NONE);
	for (size_t i = 0; i < wanted->n_presets && !l.err; i++)
		on_preset(&l, str_from(wanted->preset[i]));
	add_allow(&l, wanted->allow);
	for (; !err && !l.err && l.at < ret->b.n; l.at++)
		err = read_names(&l);
	if (err || l.err)
		return -ENOMEM;
	return l.errors ? -EINVAL : 0;
}
