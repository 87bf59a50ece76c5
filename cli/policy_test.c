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

struct test_run {
	const struct ruleset *rs;
	const char *file;
	bool help, json;
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

static const char *take_verdict(struct str *rest, struct test_case *ret)
{
	struct str word;

	if (!str_word(rest, &word))
		return "an empty case";
	ret->allow = str_eq(word, STR("allow"));
	if (!ret->allow && !str_eq(word, STR("deny")))
		return "a case begins with 'allow' or 'deny'";
	return NULL;
}

static const char *take_target(struct str *rest, struct test_case *ret)
{
	const char *why = NULL;
	struct str word;

	if (!str_word(rest, &word))
		return "no target: a URL, HOST[:PORT] or ADDRESS";
	if (is_method(word)) {
		ret->ask.method = word;
		if (!str_word(rest, &word))
			return "no target behind the method";
	}
	if (rules_target_parse(word, &ret->ask.target, &why))
		return why;
	if (ret->ask.method.n > 0 && !ret->ask.target.scheme)
		return "a method needs a URL";
	return NULL;
}

static const char *take_rest(struct str *rest, struct test_case *ret)
{
	struct str word;

	while (str_word(rest, &word)) {
		if (str_eq(word, STR("at"))) {
			if (!str_word(rest, &word) ||
			    ip_addr_parse(word, &ret->ask.at))
				return "'at' needs an address";
			continue;
		}
		if (ret->reason != REASONS)
			return "more than one reason";
		ret->reason = reason_by_word(word);
		if (ret->reason == REASONS)
			return "no such reason: see penstock-audit(5) for the "
			       "words";
		if (ret->allow)
			return "an allowed target has no reason";
	}
	return NULL;
}

static const char *case_parse(struct str text, struct test_case *ret)
{
	struct str rest = text;
	const char *why;

	*ret = (struct test_case){ .text = text, .reason = REASONS };
	why = take_verdict(&rest, ret);
	if (!why)
		why = take_target(&rest, ret);
	return why ? why : take_rest(&rest, ret);
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

static int wrong_case(const struct test_run *t, struct str text,
		      const char *why)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(ROW_MAX);
	struct json j;
	int e;

	if (!t->json) {
		printf("%s:%u: error: %s\n", t->file, t->line, why);
		return 0;
	}
	json_begin(&j, &out);
	json_object_begin(&j, NULL);
	json_cstr(&j, "file", t->file);
	json_uint(&j, "line", t->line);
	json_str(&j, "case", text);
	json_cstr(&j, "error", why);
	json_object_end(&j);
	e = json_end(&j);
	if (!e)
		e = buf_add_char(&out, '\n');
	if (!e)
		text_put(&out);
	return e;
}

static int judge_case(struct test_run *t, struct str text)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(ROW_MAX);
	struct policy_answer a;
	struct test_case c;
	const char *why = case_parse(text, &c);
	int e;

	if (why) {
		t->wrong++;
		return wrong_case(t, text, why);
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
