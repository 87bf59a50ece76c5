/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_settings.c - [limits], [dns], [audit] and [credential NAME]
 *
 * A table says which key there is, what a value looks like, and whether anything
 * here uses it.  What is not used yet is read and checked all the same, and
 * each section is warned of its first such key: a limit that holds nothing must
 * not look like one that does.
 */
#include "base/ini.h"
#include "rules/rules_parse.h"
#include "rules/rules_path.h"

enum value_type {
	VALUE_COUNT,		/* 1 to a milliard */
	VALUE_BYTES,		/* 64K, 10M, 2G */
	VALUE_SPAN,		/* 30s, 10m, 2h, 1d */
	VALUE_WORD,		/* one of @words */
	VALUE_WORDS,		/* some of @words */
	VALUE_YES_NO,
	VALUE_TIME,		/* RFC 3339 */
	VALUE_TEXT,
	VALUE_PATH,		/* of a file, absolute */
	VALUE_HOSTS,
	VALUE_PORTS,
	VALUE_PATHS,
	VALUE_TYPES,		/* of DNS questions */
};

static const char *const answers_words[] = { "synthetic", "real", NULL };
static const char *const ipv6_words[] = { "auto", "on", "off", NULL };
static const char *const denied_words[] = { "nxdomain", "refused", NULL };
static const char *const failure_words[] = { "refuse", "count", NULL };
static const char *const query_words[] = { "hide", "show", NULL };
static const char *const method_words[] = {
	"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", NULL,
};

static const struct setting {
	enum section_kind section;
	const char *key;
	enum value_type type;
	const char *const *words;
	bool used;
} settings[] = {
	{ SECTION_LIMITS, "connections", VALUE_COUNT, NULL, true },
	{ SECTION_LIMITS, "new_connections", VALUE_COUNT, NULL, true },
	{ SECTION_LIMITS, "queries", VALUE_COUNT, NULL, true },
	{ SECTION_LIMITS, "names", VALUE_COUNT, NULL, true },
	{ SECTION_LIMITS, "label_bytes", VALUE_BYTES, NULL, true },
	{ SECTION_LIMITS, "nxdomain", VALUE_COUNT, NULL, true },
	{ SECTION_LIMITS, "bytes_up", VALUE_BYTES, NULL, true },
	{ SECTION_LIMITS, "bytes_down", VALUE_BYTES, NULL, true },
	{ SECTION_LIMITS, "flow_bytes_up", VALUE_BYTES, NULL, true },
	{ SECTION_LIMITS, "flow_bytes_down", VALUE_BYTES, NULL, true },
	{ SECTION_LIMITS, "rate_up", VALUE_BYTES, NULL, true },
	{ SECTION_LIMITS, "rate_down", VALUE_BYTES, NULL, true },
	{ SECTION_LIMITS, "memory", VALUE_BYTES, NULL, true },
	{ SECTION_LIMITS, "header_bytes", VALUE_BYTES, NULL, true },
	{ SECTION_LIMITS, "header_time", VALUE_SPAN, NULL, true },
	{ SECTION_LIMITS, "connect_time", VALUE_SPAN, NULL, true },
	{ SECTION_LIMITS, "response_time", VALUE_SPAN, NULL, true },
	{ SECTION_LIMITS, "flow_time", VALUE_SPAN, NULL, true },
	{ SECTION_LIMITS, "idle_time", VALUE_SPAN, NULL, true },
	{ SECTION_DNS, "answers", VALUE_WORD, answers_words, true },
	{ SECTION_DNS, "ipv6", VALUE_WORD, ipv6_words, true },
	{ SECTION_DNS, "denied", VALUE_WORD, denied_words, true },
	{ SECTION_DNS, "types", VALUE_TYPES, NULL, true },
	{ SECTION_AUDIT, "on_failure", VALUE_WORD, failure_words, false },
	{ SECTION_AUDIT, "queries", VALUE_WORD, query_words, false },
	{ SECTION_CREDENTIAL, "file", VALUE_PATH, NULL, false },
	{ SECTION_CREDENTIAL, "env", VALUE_TEXT, NULL, false },
	{ SECTION_CREDENTIAL, "program", VALUE_PATH, NULL, false },
	{ SECTION_CREDENTIAL, "systemd", VALUE_TEXT, NULL, false },
	{ SECTION_CREDENTIAL, "header", VALUE_TEXT, NULL, false },
	{ SECTION_CREDENTIAL, "basic", VALUE_TEXT, NULL, false },
	{ SECTION_CREDENTIAL, "query", VALUE_TEXT, NULL, false },
	{ SECTION_CREDENTIAL, "template", VALUE_TEXT, NULL, false },
	{ SECTION_CREDENTIAL, "variable", VALUE_TEXT, NULL, false },
	{ SECTION_CREDENTIAL, "hosts", VALUE_HOSTS, NULL, false },
	{ SECTION_CREDENTIAL, "ports", VALUE_PORTS, NULL, false },
	{ SECTION_CREDENTIAL, "methods", VALUE_WORDS, method_words, false },
	{ SECTION_CREDENTIAL, "paths", VALUE_PATHS, NULL, false },
	{ SECTION_CREDENTIAL, "ttl", VALUE_SPAN, NULL, false },
	{ SECTION_CREDENTIAL, "timeout", VALUE_SPAN, NULL, false },
	{ SECTION_CREDENTIAL, "expires", VALUE_TIME, NULL, false },
	{ SECTION_CREDENTIAL, "insecure", VALUE_YES_NO, NULL, false },
	{ SECTION_CREDENTIAL, "reason", VALUE_TEXT, NULL, false },
	{ SECTION_CREDENTIAL, "owner", VALUE_TEXT, NULL, false },
};

/* --- values ---------------------------------------------------------------- */

static bool is_count(struct str word)
{
	unsigned long n;

	return str_to_uint(word, 1000000000, &n) == 0 && n > 0;
}

static bool is_one_of(struct str word, const char *const *words)
{
	for (; *words; words++) {
		if (str_eq(word, str_from(*words)))
			return true;
	}
	return false;
}

/* "a, b or c" of the words that there are, into @out. */
static const char *listed(const char *const *words, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; words[i]; i++) {
		size_t len = strlen(words[i]);

		if (n + len + 5 > size)
			break;
		if (i > 0) {
			memcpy(out + n, words[i + 1] ? ", " : " or ",
			       words[i + 1] ? 2 : 4);
			n += words[i + 1] ? 2 : 4;
		}
		memcpy(out + n, words[i], len);
		n += len;
	}
	out[n] = '\0';
	return out;
}

static void check_known(struct parser *p, const struct setting *s,
			struct str word)
{
	const char *near = ini_did_you_mean(word, s->words);
	char text[SHOWN_SIZE], list[128];

	if (is_one_of(word, s->words))
		return;
	if (near)
		report_error(p->report, place_of(p, word),
			     "'%s' is no value of '%s'; did you mean '%s'?",
			     shown(word, text), s->key, near);
	else
		report_error(p->report, place_of(p, word),
			     "'%s' is no value of '%s'; write %s",
			     shown(word, text), s->key,
			     listed(s->words, list, sizeof(list)));
}

static void check_host(struct parser *p, struct str word)
{
	struct host_pattern pattern;
	const char *why = NULL;

	if (host_pattern_parse(word, false, &pattern, &why) == 0)
		why = host_suffix_fault(pattern.kind,
					host_name_str(&pattern.name));
	if (why)
		bad_word(p, word, why);
}

static void check_port(struct parser *p, struct str word)
{
	struct port_range r;
	const char *why;

	if (port_range_parse(word, &r, &why) < 0)
		bad_word(p, word, why);
}

static void check_path(struct parser *p, struct str word)
{
	char *pattern = take(p, word.n + 1);
	const char *why;
	size_t n;

	if (pattern && rules_path_pattern(word, pattern, &n, &why) < 0)
		bad_word(p, word, why);
}

static void check_type(struct parser *p, struct str word)
{
	const char *fault = rules_type_fault(word);

	if (fault)
		bad_word(p, word, fault);
}

static void check_word(struct parser *p, const struct setting *s,
		       struct str word)
{
	switch ((int)s->type) {
	case VALUE_HOSTS:
		check_host(p, word);
		break;
	case VALUE_PORTS:
		check_port(p, word);
		break;
	case VALUE_PATHS:
		check_path(p, word);
		break;
	case VALUE_TYPES:
		check_type(p, word);
		break;
	default:
		check_known(p, s, word);
		break;
	}
}

/* NULL, or what is wrong with a value that is one word or a text. */
static const char *value_fault(const struct setting *s, struct str value)
{
	const char *why = NULL;
	int64_t time;

	switch ((int)s->type) {
	case VALUE_COUNT:
		return is_count(value) ? NULL :
		       "is no number from 1 to 1000000000";
	case VALUE_BYTES:
		return rules_bytes_parse(value) ? NULL : RULES_BYTES_FAULT;
	case VALUE_SPAN:
		return rules_span_parse(value) ? NULL : RULES_SPAN_FAULT;
	case VALUE_YES_NO:
		return str_eq(value, STR("yes")) || str_eq(value, STR("no")) ?
		       NULL : "is neither 'yes' nor 'no'";
	case VALUE_TIME:
		return rules_time_parse(value, &time, &why) ? why : NULL;
	case VALUE_PATH:
		return value.p[0] == '/' ? NULL :
		       "is no absolute path; begin it with '/'";
	default:
		return value.n <= RULES_FREE_TEXT_MAX ? NULL :
		       "is longer than 512 bytes";
	}
}

/* Several, which add to those before; of all others there is one. */
static bool has_words(const struct setting *s)
{
	return s->type == VALUE_WORDS || s->type == VALUE_HOSTS ||
	       s->type == VALUE_PORTS || s->type == VALUE_PATHS ||
	       s->type == VALUE_TYPES;
}

static void check_value(struct parser *p, const struct setting *s)
{
	struct str rest = p->value, word;
	const char *fault;

	if (has_words(s)) {
		while (!p->no_memory && str_word(&rest, &word))
			check_word(p, s, word);
		return;
	}
	if (s->type == VALUE_WORD) {
		check_known(p, s, p->value);
		return;
	}
	fault = value_fault(s, p->value);
	if (fault)
		bad_word(p, p->value, fault);
}

/* --- keys ------------------------------------------------------------------- */

static const struct setting *find_setting(struct parser *p, struct str word)
{
	const char *near_words[ARRAY_SIZE(settings) + 1], *near;
	char text[SHOWN_SIZE];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		if (settings[i].section != p->kind)
			continue;
		if (str_eq(word, str_from(settings[i].key)))
			return &settings[i];
		near_words[n++] = settings[i].key;
	}
	near_words[n] = NULL;
	near = ini_did_you_mean(word, near_words);
	report_error(p->report, here(p), "unknown key '%s' in [%.*s]; %s%s%s",
		     shown(word, text), STR_ARG(p->section),
		     near ? "did you mean '" : "penstock.ini(5) lists the keys",
		     near ? near : "", near ? "'?" : "");
	return NULL;
}

/* Words add, all else stands once. */
static bool may_stand(struct parser *p, const struct setting *s)
{
	const struct ast_setting *old = p->first_setting;

	if (has_words(s))
		return true;
	for (; old; old = old->next) {
		if (old->key != s->key)
			continue;
		report_error(p->report, here(p),
			     "'%s' stands in [%.*s] twice, first in line %u; "
			     "leave one", s->key, STR_ARG(p->section),
			     (unsigned)old->place.line);
		return false;
	}
	return true;
}

void parse_setting(struct parser *p, struct str word)
{
	const struct setting *s = find_setting(p, word);
	struct ast_setting *kept;

	if (!s || !may_stand(p, s))
		return;
	if (str_empty(p->value)) {
		report_error(p->report, here(p),
			     "'%s' is empty; give it a value, or leave the "
			     "line out", s->key);
		return;
	}
	check_value(p, s);
	kept = take(p, sizeof(*kept));
	if (!kept)
		return;
	kept->section = section_words[s->section];
	kept->key = s->key;
	kept->name = p->section_name;
	kept->value = keep(p, p->value);
	kept->place = here(p);
	if (!p->first_setting)
		p->first_setting = kept;
	if (!s->used && !p->unused_told) {
		p->unused_told = true;
		report_warning(p->report, here(p),
			       "'%s' has no effect: this version of Penstock "
			       "reads it and does nothing by it", s->key);
	}
	*p->ast->settings_end = kept;
	p->ast->settings_end = &kept->next;
	p->ast->n_settings++;
}
