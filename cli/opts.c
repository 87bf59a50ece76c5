/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opts.c - parsing by table
 */
#include "cli/opts.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/ini.h"
#include "base/str.h"

#define USAGE_COLUMN	28	/* where the help of an option begins */
#define WORDS_MAX	32
#define LINE_MAX_BYTES	1024

/* A terminal that is raw for the sandbox's sake needs the carriage return. */
static const char *line_end(void)
{
	return isatty(STDERR_FILENO) ? "\r\n" : "\n";
}

/* One line whatever is in it: control bytes are shown, not sent. */
static void put_escaped(const char *p)
{
	for (; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if (c < 0x20 || c == 0x7f)
			fprintf(stderr, "\\x%02x", c);
		else
			fputc(c, stderr);
	}
}

static PRINTF(2, 0) void put_line(const char *who, const char *fmt, va_list ap)
{
	char line[LINE_MAX_BYTES];

	if (vsnprintf(line, sizeof(line), fmt, ap) < 0)
		return;
	fprintf(stderr, "%s: ", who);
	put_escaped(line);
	fputs(line_end(), stderr);
}

void say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line("penstock", fmt, ap);
	va_end(ap);
}

void say_of(const char *command, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(command, fmt, ap);
	va_end(ap);
}

void say_more(const char *fmt, ...)
{
	char line[LINE_MAX_BYTES];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n < 0)
		return;
	fputs("  ", stderr);
	put_escaped(line);
	fputs(line_end(), stderr);
}

void say_lines(const char *text)
{
	struct str rest = str_from(text), line;
	const char *before = "penstock: ";

	while (str_cut(&rest, '\n', &line)) {
		fprintf(stderr, "%s%.*s%s", before, STR_ARG(line), line_end());
		before = "";
	}
}

static const struct opt *by_name(const struct opts_table *t, struct str name)
{
	for (size_t i = 0; i < t->n; i++) {
		if (str_eq(str_from(t->opt[i].name), name))
			return &t->opt[i];
	}
	return NULL;
}

static const struct opt *by_letter(const struct opts_table *t, char letter)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->opt[i].letter && t->opt[i].letter == letter)
			return &t->opt[i];
	}
	return NULL;
}

static int unknown(const struct opts_table *t, const char *word,
		   struct str name)
{
	const char *words[WORDS_MAX + 1];
	const char *near;
	size_t n = 0;

	for (size_t i = 0; i < t->n && n < WORDS_MAX; i++) {
		if (t->opt[i].help)
			words[n++] = t->opt[i].name;
	}
	words[n] = NULL;
	near = name.n ? ini_did_you_mean(name, words) : NULL;
	if (near)
		say_of(t->command, "no option '%s'; did you mean '--%s'?", word,
		       near);
	else
		say_of(t->command, "no option '%s' (see %s --help)", word,
		       t->command);
	return -EINVAL;
}

/* The words of a command line, and the one that is read. */
struct words {
	int argc;
	char **argv;
	int at;
};

/* One word that begins with '-'; goes on when its value is the next. */
static int parse_word(const struct opts_table *t, struct words *w, void *arg)
{
	const char *word = w->argv[w->at], *value = NULL, *wrong;
	const char *equals = strchr(word, '=');
	struct str name = str_from(word + 1);
	const struct opt *o;

	if (word[1] == '-') {
		name = equals ? str_make(word + 2, (size_t)(equals - word - 2)) :
				str_from(word + 2);
		value = equals ? equals + 1 : NULL;
		o = by_name(t, name);
	} else {
		o = name.n == 1 ? by_letter(t, name.p[0]) : NULL;
	}
	if (!o)
		return unknown(t, word, name);
	if (o->value == OPT_NONE && value) {
		say_of(t->command, "--%s takes no value", o->name);
		return -EINVAL;
	}
	if (o->value == OPT_NEEDED && !value) {
		if (w->at + 1 >= w->argc) {
			say_of(t->command, "--%s needs %s behind it", o->name,
			       o->arg);
			return -EINVAL;
		}
		value = w->argv[++w->at];
	}
	wrong = t->set(arg, o->id, value);
	if (!wrong)
		return 0;
	say_of(t->command, "--%s%s%s%s: %s", o->name, value ? " '" : "",
	       value ? value : "", value ? "'" : "", wrong);
	return -EINVAL;
}

int opts_parse(const struct opts_table *t, int argc, char **argv, void *arg,
	       int *ret_first)
{
	struct words w = { argc, argv, 1 };

	for (; w.at < argc; w.at++) {
		const char *word = argv[w.at];
		int e;

		if (strcmp(word, "--") == 0) {
			w.at++;
			break;
		}
		if (word[0] != '-' || !word[1])
			break;
		e = parse_word(t, &w, arg);
		if (e)
			return e;
	}
	*ret_first = w.at;
	return 0;
}

/* The @n words from @from on are options: put them before those from @to on. */
static void move_words(char **argv, int to, int from, int n)
{
	while (n-- > 0) {
		char *word = argv[from];

		memmove(argv + to + 1, argv + to,
			(size_t)(from - to) * sizeof(*argv));
		argv[to++] = word;
		from++;
	}
}

int opts_parse_all(const struct opts_table *t, int argc, char **argv,
		   void *arg, int *ret_first)
{
	int at = 1, first = 1;	/* the others stand from @first to @at */
	bool end = false;

	while (at < argc && !end) {
		const char *word = argv[at];
		struct words w = { argc, argv, at };
		int e;

		if (word[0] != '-' || !word[1]) {
			at++;
			continue;
		}
		end = strcmp(word, "--") == 0;
		e = end ? 0 : parse_word(t, &w, arg);
		if (e)
			return e;
		w.at++;
		move_words(argv, first, at, w.at - at);
		first += w.at - at;
		at = w.at;
	}
	*ret_first = first;
	return 0;
}

void opts_usage(const struct opts_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct opt *o = &t->opt[i];
		int n;

		if (!o->help)
			continue;
		n = o->letter ? printf("  -%c, --%s", o->letter, o->name) :
				printf("      --%s", o->name);
		if (o->value == OPT_NEEDED)
			n += printf(" %s", o->arg);
		else if (o->value == OPT_MAYBE)
			n += printf("[=%s]", o->arg);
		if (n >= USAGE_COLUMN - 1) {
			putchar('\n');
			n = 0;
		}
		printf("%*s%s\n", USAGE_COLUMN - n, "", o->help);
	}
}
