/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_explain.c - penstock policy explain FILE TARGET...
 */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/opts.h"
#include "cli/policy_ask.h"
#include "cli/policy_cmd.h"
#include "cli/policy_text.h"
#include "cli/text.h"

#define ANSWER_MAX	(64u << 10)

enum { ID_HELP = 1, ID_JSON, ID_METHOD, ID_AT };

struct explain {
	bool help, json;
	struct policy_ask ask;
};

static const struct opt explain_opts[] = {
	{ ID_METHOD, "method", 0, OPT_NEEDED, "METHOD",
	  "of the request, with a URL; else GET" },
	{ ID_AT, "at", 0, OPT_NEEDED, "ADDRESS",
	  "judge this address as what the name resolves to" },
	{ ID_JSON, "json", 0, OPT_NONE, NULL, "one JSON object a target" },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
};

static const char *explain_set(void *arg, int id, const char *value)
{
	struct explain *x = arg;

	x->help |= id == ID_HELP;
	x->json |= id == ID_JSON;
	if (id == ID_METHOD)
		x->ask.method = str_from(value);
	if (id == ID_AT && ip_addr_parse(str_from(value), &x->ask.at))
		return "is no address; write 192.0.2.1 or 2001:db8::1";
	return NULL;
}

static const struct opts_table explain_table = {
	"penstock policy explain", explain_opts, ARRAY_SIZE(explain_opts),
	explain_set
};

static void explain_usage(void)
{
	puts("Say what a policy does with a target, by which line, and what "
	     "would be needed:\n\n"
	     "  penstock policy explain agent.ini https://api.example.com/v1\n"
	     "  penstock policy explain agent.ini db.example.com:5432 "
	     "--at 10.0.0.5\n\n"
	     "Nothing is resolved or connected.  Exit status: 0 all are "
	     "allowed, 1 one is not,\n2 the policy or the target is wrong.\n\n"
	     "Usage: penstock policy explain [OPTIONS] FILE "
	     "URL|HOST[:PORT]|ADDRESS...\n");
	opts_usage(&explain_table);
}

static int show(const struct ruleset *rs, const struct explain *x,
		const char *text, const struct policy_answer *a)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	struct json j;
	int e;

	if (x->json) {
		json_begin(&j, &out);
		json_object_begin(&j, NULL);
		json_cstr(&j, "target", text);
		policy_answer_json(rs, &x->ask, a, &j);
		json_cstr(&j, "policy", rules_name(rs));
		json_cstr(&j, "digest", rules_digest(rs));
		json_object_end(&j);
		e = json_end(&j);
		if (!e)
			e = buf_add_char(&out, '\n');
	} else {
		e = policy_answer_text(rs, &x->ask, a, &out);
	}
	if (e) {
		say("cannot show the answer: %s", strerror(-e));
		return EXIT_USAGE;
	}
	text_put(&out);
	return a->allowed && !a->observed ? 0 : EXIT_NEGATIVE;
}

static int explain_one(const struct ruleset *rs, struct explain *x,
		       const char *text)
{
	const char *why = NULL;
	struct policy_answer a;

	if (rules_target_parse(str_from(text), &x->ask.target, &why)) {
		say_of(explain_table.command, "'%s' %s", text, why);
		return EXIT_USAGE;
	}
	if (x->ask.at.family != IP_NONE && x->ask.target.host.n == 0) {
		say_of(explain_table.command, "'%s' is an address itself; "
		       "--at is for names", text);
		return EXIT_USAGE;
	}
	policy_ask(rs, &x->ask, &a);
	return show(rs, x, text, &a);
}

int policy_explain(int argc, char **argv)
{
	struct explain x = { .ask.now = clock_wall_s() };
	CLEANUP(rules_unrefp) struct ruleset *rs = NULL;
	int first, code = 0;

	if (opts_parse_all(&explain_table, argc, argv, &x, &first))
		return EXIT_USAGE;
	if (x.help) {
		explain_usage();
		return 0;
	}
	if (argc - first < 2) {
		say_of(explain_table.command, "FILE, and at least one URL, "
		    "HOST[:PORT] or ADDRESS");
		return EXIT_USAGE;
	}
	if (policy_load(argv[first], NULL, NULL, &rs))
		return EXIT_USAGE;
	while (++first < argc) {
		int one = explain_one(rs, &x, argv[first]);

		code = MAX(code, one);
	}
	return code;
}
