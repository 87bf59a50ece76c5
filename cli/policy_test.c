/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_test.c - penstock policy test FILE CASES
 *
 * A case is a line:
 *
 *	allow|deny [METHOD] TARGET [at ADDRESS] [REASON]
 *
 * TARGET is what `penstock policy explain` takes, ADDRESS what the name would
 * resolve to, REASON the word that a refusal must carry.  '#' or ';' begins a
 * comment at the start of a line or behind a blank.
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/ini.h"
#include "base/reason.h"
#include "cli/cmd.h"
#include "cli/opts.h"
#include "cli/policy_ask.h"
#include "cli/policy_cmd.h"
#include "cli/policy_text.h"
#include "cli/text.h"

#define CASES_TEXT_MAX	(16u << 20)
#define ROW_MAX		(64u << 10)

enum { ID_HELP = 1, ID_JSON };

struct test_case {
	struct policy_ask ask;
	struct str text;		/* without its comment */
	bool allow;
	enum reason reason;		/* REASONS: any */
};

/* What is wrong in a case: the word, if it is one, and behind it the rest. */
struct wrong {
	struct str word;
	const char *why, *near;		/* near: what was probably meant */
};

struct test_run {
	const struct ruleset *rs;
	const char *file;
	bool help, json;
	const char *begin;		/* of the line in the text */
	unsigned line, passed, failed, wrong;
};

static const struct opt test_opts[] = {
	{ ID_JSON, "json", 0, OPT_NONE, NULL, "one JSON object a case" },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
};

static const char *test_set(void *arg, int id, const char *value)
{
	struct test_run *t = arg;

	(void)value;
	t->help |= id == ID_HELP;
	t->json |= id == ID_JSON;
	return NULL;
}

static const struct opts_table test_table = {
	"penstock policy test", test_opts, ARRAY_SIZE(test_opts), test_set
};

static void test_usage(void)
{
	puts("Hold a policy to what its file of cases expects:\n\n"
	     "  penstock policy test agent.ini agent.cases\n\n"
	     "A case is a line 'allow|deny [METHOD] TARGET [at ADDRESS] "
	     "[REASON]':\n\n"
	     "  allow https://api.example.com/v1/items\n"
	     "  deny  DELETE https://api.example.com/v1/items  "
	     "method_not_allowed\n"
	     "  deny  build.example.com:443 at 10.0.0.5       # no private "
	     "addresses\n"
	     "  deny  169.254.169.254:80  address_metadata\n\n"
	     "Exit status: 0 all hold, 1 one does not, 2 the policy or a case "
	     "is wrong.\n\n"
	     "Usage: penstock policy test [OPTIONS] FILE CASES\n");
	opts_usage(&test_table);
}

/* --- reading a case --------------------------------------------------------- */

static struct str without_comment(struct str line)
{
	for (size_t i = 0; i < line.n; i++) {
		bool begins = i == 0 || line.p[i - 1] == ' ' ||
			      line.p[i - 1] == '\t';

		if (begins && (line.p[i] == '#' || line.p[i] == ';'))
			line.n = i;
	}
	return str_trim(line);
}

/* A method is the word before the target: letters, and no host has none. */
static bool is_method(struct str word)
{
	for (size_t i = 0; i < word.n; i++) {
		if (word.p[i] < 'A' || word.p[i] > 'Z')
			return false;
	}
	return word.n > 0;
}

static bool is_wrong(struct wrong *ret, struct str word, const char *why)
{
	*ret = (struct wrong){ .word = word, .why = why };
	return true;
}

static bool take_verdict(struct str *rest, struct test_case *ret,
			 struct wrong *w)
{
	struct str word = STR_NONE;

	(void)!str_word(rest, &word);
	ret->allow = str_eq(word, STR("allow"));
	if (!ret->allow && !str_eq(word, STR("deny")))
		return is_wrong(w, word, "begins no case; write 'allow' or "
				"'deny', then the target");
	return false;
}

static bool take_target(struct str *rest, struct test_case *ret,
			struct wrong *w)
{
	const char *why = NULL;
	struct str word;

	if (!str_word(rest, &word))
		return is_wrong(w, STR_NONE, "no target; write a URL, "
				"HOST[:PORT] or ADDRESS behind the verdict");
	if (is_method(word)) {
		ret->ask.method = word;
		if (!str_word(rest, &word))
			return is_wrong(w, STR_NONE, "no target behind the "
					"method; write a URL");
	}
	if (rules_target_parse(word, &ret->ask.target, &why))
		return is_wrong(w, word, why);
	if (ret->ask.method.n > 0 && !ret->ask.target.scheme)
		return is_wrong(w, word, "stands behind a method, which needs "
				"a URL; write https:// or http:// before it");
	return false;
}

static bool take_address(struct str *rest, struct test_case *ret,
			 struct wrong *w)
{
	struct str word;

	if (!str_word(rest, &word))
		return is_wrong(w, STR_NONE, "no address behind 'at'");
	if (ip_addr_parse(word, &ret->ask.at))
		return is_wrong(w, word, "is no address; write 192.0.2.1 or "
				"2001:db8::1");
	if (ret->ask.target.host.n == 0)
		return is_wrong(w, word, "stands behind an address; 'at' is "
				"for what a name resolves to");
	return false;
}

static bool take_reason(struct str word, struct test_case *ret,
			struct wrong *w)
{
	const char *words[REASONS + 1];
	size_t n = 0;

	if (ret->reason != REASONS)
		return is_wrong(w, word, "is one word too many");
	ret->reason = reason_by_word(word);
	if (ret->reason == REASONS) {
		is_wrong(w, word, "is no reason (see penstock-audit(5))");
		for (; n < REASONS; n++)
			words[n] = reason_word((enum reason)n);
		words[n] = NULL;
		w->near = ini_did_you_mean(word, words);
		return true;
	}
	if (ret->allow)
		return is_wrong(w, word, "is a reason, and what is allowed has "
				"none; take it out");
	return false;
}

static bool case_parse(struct str text, struct test_case *ret, struct wrong *w)
{
	struct str rest = text, word;
	bool wrong;

	*ret = (struct test_case){ .text = text, .reason = REASONS };
	wrong = take_verdict(&rest, ret, w) || take_target(&rest, ret, w);
	while (!wrong && str_word(&rest, &word)) {
		if (str_eq(word, STR("at")))
			wrong = take_address(&rest, ret, w);
		else
			wrong = take_reason(word, ret, w);
	}
	return !wrong;
}

/* --- holding the policy to it ------------------------------------------------- */

static bool holds(const struct test_case *c, const struct policy_answer *a)
{
	bool allowed = a->allowed && !a->observed;

	if (allowed != c->allow)
		return false;
	return c->reason == REASONS || c->reason == a->reason;
}

static int row_json(const struct test_run *t, const struct test_case *c,
		    const struct policy_answer *a, struct buf *out)
{
	struct json j;
	int e;

	json_begin(&j, out);
	json_object_begin(&j, NULL);
	json_cstr(&j, "file", t->file);
	json_uint(&j, "line", t->line);
	json_str(&j, "case", c->text);
	json_bool(&j, "holds", holds(c, a));
	policy_answer_json(t->rs, &c->ask, a, &j);
	json_object_end(&j);
	e = json_end(&j);
	return e ? e : buf_add_char(out, '\n');
}

/* Only what does not hold is said; the explanation is indented below it. */
static int row_text(const struct test_run *t, const struct test_case *c,
		    const struct policy_answer *a, struct buf *out)
{
	CLEANUP(buf_done) struct buf why = BUF_INIT(ROW_MAX);
	struct str rest, line;
	int e;

	if (holds(c, a))
		return 0;
	e = buf_printf(out, "%s:%u: does not hold: %.*s\n", t->file, t->line,
		       STR_ARG(c->text));
	if (!e)
		e = policy_answer_text(t->rs, &c->ask, a, &why);
	rest = buf_str(&why);
	while (!e && rest.n > 0 && str_cut(&rest, '\n', &line)) {
		if (line.n > 0)
			e = buf_printf(out, "  %.*s\n", STR_ARG(line));
	}
	return e;
}

static int wrong_words(const struct wrong *w, struct buf *out)
{
	int e = w->word.n == 0 ? buf_printf(out, "%s", w->why) :
		buf_printf(out, "'%.*s' %s", STR_ARG(w->word), w->why);

	return e || !w->near ? e :
	       buf_printf(out, "; did you mean '%s'?", w->near);
}

static int wrong_json(const struct test_run *t, struct str text,
		      unsigned column, struct str words)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(ROW_MAX);
	struct json j;
	int e;

	json_begin(&j, &out);
	json_object_begin(&j, NULL);
	json_cstr(&j, "file", t->file);
	json_uint(&j, "line", t->line);
	json_uint(&j, "column", column);
	json_str(&j, "case", text);
	json_str(&j, "error", words);
	json_object_end(&j);
	e = json_end(&j);
	if (!e)
		e = buf_add_char(&out, '\n');
	if (!e)
		text_put(&out);
	return e;
}

static int wrong_case(const struct test_run *t, struct str text,
		      const struct wrong *w)
{
	CLEANUP(buf_done) struct buf words = BUF_INIT(ROW_MAX);
	const char *at = w->word.n > 0 ? w->word.p : text.p + text.n;
	unsigned column = (unsigned)(at - t->begin) + 1;
	int e = wrong_words(w, &words);

	if (e)
		return e;
	if (t->json)
		return wrong_json(t, text, column, buf_str(&words));
	printf("%s:%u:%u: error: %.*s\n", t->file, t->line, column,
	       STR_ARG(buf_str(&words)));
	return 0;
}

static int judge_case(struct test_run *t, struct str text)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(ROW_MAX);
	struct policy_answer a;
	struct test_case c;
	struct wrong w;
	int e;

	if (!case_parse(text, &c, &w)) {
		t->wrong++;
		return wrong_case(t, text, &w);
	}
	c.ask.now = clock_wall_s();
	policy_ask(t->rs, &c.ask, &a);
	if (holds(&c, &a))
		t->passed++;
	else
		t->failed++;
	e = t->json ? row_json(t, &c, &a, &out) : row_text(t, &c, &a, &out);
	if (!e)
		text_put(&out);
	return e;
}

static int judge_all(struct test_run *t, struct str text)
{
	struct str line;
	int e = 0;

	while (!e && text.n > 0 && str_cut(&text, '\n', &line)) {
		t->line++;
		t->begin = line.p;
		line = without_comment(line);
		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line = str_trim(str_make(line.p, line.n - 1));
		if (line.n > 0)
			e = judge_case(t, line);
	}
	return e;
}

static int finish(const struct test_run *t)
{
	if (!t->json && t->wrong)
		printf("%u passed, %u failed, %u wrong\n", t->passed,
		       t->failed, t->wrong);
	else if (!t->json)
		printf("%u passed, %u failed\n", t->passed, t->failed);
	if (t->wrong)
		return EXIT_USAGE;
	if (t->passed + t->failed == 0) {
		say("%s: no case in it", t->file);
		return EXIT_USAGE;
	}
	return t->failed ? EXIT_NEGATIVE : 0;
}

int policy_test(int argc, char **argv)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(CASES_TEXT_MAX);
	CLEANUP(rules_unrefp) struct ruleset *rs = NULL;
	struct test_run t = { .file = NULL };
	int first, e;

	if (opts_parse_all(&test_table, argc, argv, &t, &first))
		return EXIT_USAGE;
	if (t.help) {
		test_usage();
		return 0;
	}
	if (argc - first != 2) {
		say_of(test_table.command, "FILE and CASES, nothing else");
		return EXIT_USAGE;
	}
	if (policy_load(argv[first], NULL, NULL, &rs) ||
	    policy_text_read(argv[first + 1], &text))
		return EXIT_USAGE;
	t.rs = rs;
	t.file = argv[first + 1];
	e = judge_all(&t, buf_str(&text));
	if (e) {
		say("cannot show the cases: %s", strerror(-e));
		return EXIT_USAGE;
	}
	return finish(&t);
}
