/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ini.c - INI through inih, with every line seen by us first
 *
 * The home of inih.  inih asks for one line after the other; what it is given
 * are only lines that were understood here already, section lines in the one
 * plain form "[name]".  So it cannot come to another reading than ours, and
 * where it nevertheless does, the line is a fault.
 */
#include "base/ini.h"

#include <errno.h>
#include <ini.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/utf8.h"

#define TEXT_OF(x)	TEXT_OF_(x)
#define TEXT_OF_(x)	#x

#define NEAR_MAX	64	/* longest word that is compared */

struct ini_source {
	const struct ini_handler *h;
	void *arg;
	struct str rest;	/* lines not read yet */
	unsigned line;
	unsigned errors;
	bool skip;		/* below a section line that was refused */
	char section_text[INI_SECTION_MAX + 1];
	struct str section;
	struct str key, value;	/* of the line that inih has now */
};

static void fault(struct ini_source *s, size_t at, const char *message)
{
	s->errors++;
	s->h->on_error(s->arg, s->line, (unsigned)at + 1, message);
	if (s->errors == INI_ERRORS_MAX) {
		s->h->on_error(s->arg, s->line, (unsigned)at + 1,
			       "too many errors, reading stops here");
		s->rest = STR_NONE;
	}
}

/* The next line without its LF or CRLF; false at the end of the text. */
static bool next_line(struct ini_source *s, struct str *ret)
{
	if (!str_cut(&s->rest, '\n', ret))
		return false;
	s->line++;
	/* The end of the text is no LF: a CR there stands alone. */
	if (ret->n > 0 && ret->p[ret->n - 1] == '\r' && s->rest.p > ret->p +
	    ret->n)
		ret->n--;
	return true;
}

/* Every byte must be of a character that a reader sees. */
static bool is_plain(struct ini_source *s, struct str line)
{
	for (size_t i = 0; i < line.n;) {
		const char *message = NULL;
		uint32_t cp;
		size_t n;

		/* Nearly all of nearly all files, in one step each. */
		if (line.p[i] >= ' ' && line.p[i] <= '~') {
			i++;
			continue;
		}
		n = utf8_next(str_make(line.p + i, line.n - i), &cp);
		if (n == 0)
			message = "not valid UTF-8; save the file as UTF-8";
		else if (cp == 0)
			message = "a NUL byte; take it out, or save the file as UTF-8";
		else if (cp == '\r')
			message = "a carriage return that ends no line";
		else if (cp != '\t' && utf8_is_hidden(cp))
			message = "a control or invisible character";
		if (message) {
			fault(s, i, message);
			return false;
		}
		i += n;
	}
	return true;
}

/* "[name]": tells on_section() of it.  Return: whether inih may see it. */
static bool take_section(struct ini_source *s, struct str line)
{
	size_t end = str_chr(line, ']');
	struct str name = str_trim(str_make(line.p + 1, MIN(end, line.n) - 1));
	const char *message = NULL;
	size_t at = 1;

	if (end == line.n) {
		message = "a section line must end with ']'";
		at = line.n;
	} else if (!str_empty(str_trim(str_make(line.p + end + 1,
						line.n - end - 1)))) {
		message = "nothing may stand behind ']'; "
			  "a comment has its own line";
		at = end + 1;
	} else if (str_empty(name)) {
		message = "a section must have a name";
	} else if (name.n > INI_SECTION_MAX) {
		message = "a section name has at most "
			  TEXT_OF(INI_SECTION_MAX) " bytes";
	} else if (str_chr(name, '[') < name.n) {
		message = "a section name must not hold '['";
	}
	s->skip = message != NULL;
	if (message) {
		fault(s, at, message);
		return false;
	}
	memcpy(s->section_text, name.p, name.n);
	s->section_text[name.n] = '\0';
	s->section = str_make(s->section_text, name.n);
	s->h->on_section(s->arg, s->line, s->section);
	return true;
}

/* "key = value".  Return: whether inih may see it. */
static bool take_key(struct ini_source *s, struct str line)
{
	size_t equals = str_chr(line, '='), colon = str_chr(line, ':');

	if (colon < equals) {
		fault(s, colon, "write 'key = value', with '='");
		return false;
	}
	if (equals == line.n) {
		fault(s, 0, "expected 'key = value' or '[section]'");
		return false;
	}
	s->key = str_trim(str_make(line.p, equals));
	s->value = str_trim(str_make(line.p + equals + 1,
				     line.n - equals - 1));
	if (str_empty(s->key)) {
		fault(s, equals, "a key must stand before '='");
		return false;
	}
	return !s->skip;
}

/*
 * Blanks around a line mean nothing (POL-16): it is trimmed here, so that inih
 * cannot take it for the continuation of the value above.
 * Return: whether inih may see the line.
 */
static bool take_line(struct ini_source *s, struct str *ret_line)
{
	struct str line = *ret_line, text;

	if (line.n > INI_LINE_MAX) {
		fault(s, INI_LINE_MAX, "a line has at most "
		      TEXT_OF(INI_LINE_MAX) " bytes");
		return false;
	}
	if (!is_plain(s, line))
		return false;
	text = str_trim(line);
	if (str_empty(text) || text.p[0] == ';' || text.p[0] == '#')
		return false;
	if (text.p != line.p && text.p[0] != '[' &&
	    str_chr(text, '=') == text.n) {
		fault(s, 0, "a line that begins with a blank continues nothing; "
		      "a value that goes on is written by repeating its key");
		return false;
	}
	*ret_line = text;
	return text.p[0] == '[' ? take_section(s, text) : take_key(s, text);
}

/* ini_reader: copies the next good line to @to, which has room for @room. */
static char *feed(char *to, int room, void *source)
{
	struct ini_source *s = source;
	struct str line;

	while (next_line(s, &line)) {
		if (!take_line(s, &line))
			continue;
		if (line.p[0] == '[')
			line = str_make(line.p, str_chr(line, ']') + 1);
		REQUIRE(room > 0 && line.n + 2 <= (size_t)room);
		if (line.p[0] == '[') {
			to[0] = '[';
			memcpy(to + 1, s->section.p, s->section.n);
			memcpy(to + 1 + s->section.n, "]\n", 3);
		} else {
			memcpy(to, line.p, line.n);
			memcpy(to + line.n, "\n", 2);
		}
		return to;
	}
	return NULL;
}

/* ini_handler: inih has found the key and the value of the line it was fed. */
static int on_pair(void *source, const char *section, const char *name,
		   const char *value)
{
	struct ini_source *s = source;

	if (!str_eq(str_from(section), s->section) ||
	    !str_eq(str_from(name), s->key) ||
	    !str_eq(str_from(value), s->value))
		fault(s, 0, "the INI library reads this line in another way");
	else
		s->h->on_key(s->arg, s->line, s->section, s->key, s->value);
	return 1;
}

/* inih's switches are globals of the process. */
static void set_switches(void)
{
	ini_allow_multiline = false;
	ini_allow_inline_comments = false;
	ini_allow_no_value = false;
	ini_allow_bom = false;
	ini_stop_on_first_error = false;
	ini_use_stack = false;
	ini_allow_realloc = false;
	ini_max_line = INI_LINE_MAX + 3;
	ini_initial_alloc = INI_LINE_MAX + 3;
}

int ini_read(struct str text, const struct ini_handler *h, void *arg)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static const struct str bom = { "\xef\xbb\xbf", 3 };
	struct ini_source s = {
		.h = h,
		.arg = arg,
		.rest = text,
		.section = STR(""),
	};
	int result;

	REQUIRE(pthread_once(&once, set_switches) == 0);
	if (str_starts(text, bom))
		s.rest = str_make(text.p + bom.n, text.n - bom.n);
	result = ini_parse_stream(feed, &s, on_pair, &s);
	if (result == -2)
		return -ENOMEM;
	if (result != 0 && s.errors == 0)
		fault(&s, 0, "the INI library refuses this line");
	return s.errors > 0 ? -EINVAL : 0;
}

/*
 * Optimal string alignment: insertions, deletions, changes and swaps of
 * neighbours, over three rows of the table.
 */
static size_t edit_distance(struct str a, struct str b)
{
	size_t row[3][NEAR_MAX + 1];
	size_t *before = row[0], *last = row[1], *now = row[2];

	for (size_t j = 0; j <= b.n; j++)
		last[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		size_t *spare = before;
		char ca = ascii_lower(a.p[i - 1]);

		now[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			char cb = ascii_lower(b.p[j - 1]);
			size_t best = last[j - 1] + (ca != cb);

			best = MIN(best, last[j] + 1);
			best = MIN(best, now[j - 1] + 1);
			if (i > 1 && j > 1 && ca == ascii_lower(b.p[j - 2]) &&
			    cb == ascii_lower(a.p[i - 2]))
				best = MIN(best, before[j - 2] + 1);
			now[j] = best;
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[b.n];
}

const char *ini_did_you_mean(struct str given, const char *const *words)
{
	const char *nearest = NULL;
	size_t least = NEAR_MAX;

	if (str_empty(given) || given.n > NEAR_MAX)
		return NULL;
	for (; *words; words++) {
		struct str word = str_from(*words);
		size_t d;

		if (word.n > NEAR_MAX)
			continue;
		d = edit_distance(given, word);
		/* A third of the letters may be wrong. */
		if (d < least && d <= (MAX(given.n, word.n) + 2) / 3) {
			least = d;
			nearest = *words;
		}
	}
	return nearest;
}
