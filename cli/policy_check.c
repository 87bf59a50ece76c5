/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_check.c - penstock policy check FILE...
 */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/cmd.h"
#include "cli/opts.h"
#include "cli/policy_cmd.h"
#include "cli/policy_text.h"
#include "cli/text.h"

#define LINE_MAX_BYTES	(16u << 10)

enum { ID_HELP = 1, ID_JSON, ID_STRICT };

struct check {
	bool help, json, strict;
	unsigned errors, warnings;	/* of the file at hand */
};

static const struct opt check_opts[] = {
	{ ID_STRICT, "strict", 0, OPT_NONE, NULL, "a warning is a failure" },
	{ ID_JSON, "json", 0, OPT_NONE, NULL,
	  "one JSON object a finding, and one a file" },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
};

static const char *check_set(void *arg, int id, const char *value)
{
	struct check *c = arg;

	(void)value;
	c->help |= id == ID_HELP;
	c->json |= id == ID_JSON;
	c->strict |= id == ID_STRICT;
	return NULL;
}

static const struct opts_table check_table = {
	"penstock policy check", check_opts, ARRAY_SIZE(check_opts), check_set
};

static void check_usage(void)
{
	puts("Say what is wrong in policy files, with line and mend:\n\n"
	     "  penstock policy check coding-agent.ini\n\n"
	     "Exit status: 0 valid, 1 warnings with --strict, 2 not valid.\n\n"
	     "Usage: penstock policy check [OPTIONS] FILE...\n");
	opts_usage(&check_table);
}

static void put_line(struct json *j, struct buf *out)
{
	json_object_end(j);
	if (json_end(j) || buf_add_char(out, '\n'))
		say("cannot show a finding: it is too long");
	else
		text_put(out);
}

static void diag_json(void *arg, const struct rules_diag *d)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(LINE_MAX_BYTES);
	bool error = d->severity == RULES_ERROR;
	struct check *c = arg;
	struct json j;

	*(error ? &c->errors : &c->warnings) += 1;
	json_begin(&j, &out);
	json_object_begin(&j, NULL);
	json_cstr(&j, "file", d->file);
	if (d->line)
		json_uint(&j, "line", d->line);
	if (d->line && d->column)
		json_uint(&j, "column", d->column);
	json_cstr(&j, "severity", error ? "error" : "warning");
	json_cstr(&j, "message", d->message);
	put_line(&j, &out);
}

static void diag_text(void *arg, const struct rules_diag *d)
{
	struct policy_said said = { .to = stdout };
	struct check *c = arg;

	policy_text_diag(&said, d);
	c->errors += said.errors;
	c->warnings += said.warnings;
}

static void result_json(const char *path, const struct check *c,
			const struct ruleset *rs)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(LINE_MAX_BYTES);
	struct json j;

	json_begin(&j, &out);
	json_object_begin(&j, NULL);
	json_cstr(&j, "file", path);
	json_bool(&j, "valid", rs != NULL);
	json_uint(&j, "errors", c->errors);
	json_uint(&j, "warnings", c->warnings);
	if (rs) {
		json_cstr(&j, "name", rules_name(rs));
		json_cstr(&j, "digest", rules_digest(rs));
		json_uint(&j, "rules", rules_count(rs));
	}
	put_line(&j, &out);
}

static void result_text(const char *path, const struct check *c,
			const struct ruleset *rs)
{
	if (c->errors)
		printf("%u error%s%s", c->errors, c->errors == 1 ? "" : "s",
		       c->warnings ? ", " : "\n");
	if (c->warnings)
		printf("%u warning%s\n", c->warnings,
		       c->warnings == 1 ? "" : "s");
	if (!rs)
		return;
	printf("%s: valid: %s@sha256:%s, %zu rule%s%s\n", path,
	       rules_name(rs), rules_digest(rs), rules_count(rs),
	       rules_count(rs) == 1 ? "" : "s", rules_count(rs) ? "" :
	       ": everything is denied");
}

static int check_file(const char *path, struct check *c)
{
	CLEANUP(rules_unrefp) struct ruleset *rs = NULL;
	int e;

	c->errors = c->warnings = 0;
	e = policy_load(path, c->json ? diag_json : diag_text, c, &rs);
	if (e && !c->errors)
		return EXIT_USAGE;	/* it was said why */
	if (c->json)
		result_json(path, c, rs);
	else
		result_text(path, c, rs);
	if (e)
		return EXIT_USAGE;
	return c->strict && c->warnings ? EXIT_NEGATIVE : 0;
}

int policy_check(int argc, char **argv)
{
	struct check c = { .help = false };
	int first, code = 0;

	if (opts_parse_all(&check_table, argc, argv, &c, &first))
		return EXIT_USAGE;
	if (c.help) {
		check_usage();
		return 0;
	}
	if (first == argc) {
		say_of(check_table.command, "which file?");
		return EXIT_USAGE;
	}
	for (; first < argc; first++) {
		int one = check_file(argv[first], &c);

		code = MAX(code, one);
	}
	return code;
}
