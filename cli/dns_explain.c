/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_explain.c - penstock dns explain NAME [TYPE...]
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/dns_ask.h"
#include "cli/dns_cmd.h"
#include "cli/opts.h"
#include "cli/policy_text.h"
#include "cli/run_opts.h"
#include "cli/text.h"
#include "rules/rules.h"

#define ANSWER_MAX	(64u << 10)

enum {
	ID_HELP = 1, ID_POLICY, ID_PRESET, ID_PRESET_DIR, ID_ALLOW, ID_OBSERVE,
	ID_NAME, ID_JSON,
};

struct explain {
	bool help, json, observe;
	const char *policy, *name, *preset_dir;
	const char *preset[RUN_PRESETS_MAX];
	size_t npresets;
	struct buf allow;		/* policy text that --allow stands for */
	unsigned nallow;
	struct dns_ask ask;
};

static const struct opt explain_opts[] = {
	{ ID_POLICY, "policy", 0, OPT_NEEDED, "FILE",
	  "the policy, see penstock.ini(5)" },
	{ ID_PRESET, "preset", 0, OPT_NEEDED, "NAME",
	  "what NAME needs; may be repeated" },
	{ ID_ALLOW, "allow", 0, OPT_NEEDED, "HOST[:PORT]",
	  "as for penstock run; may be repeated" },
	{ ID_OBSERVE, "observe", 0, OPT_NONE, NULL,
	  "as for penstock run: every name is let through" },
	{ ID_NAME, "name", 0, OPT_NEEDED, "LABEL",
	  "host name inside [" RUN_LABEL_DEFAULT "]" },
	{ ID_JSON, "json", 0, OPT_NONE, NULL, "one JSON object a question" },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
	{ ID_PRESET_DIR, "preset-dir", 0, OPT_NEEDED, "DIR", NULL },
};

static const char *set_allow(struct explain *x, const char *value)
{
	const char *why = NULL;
	int e;

	if (x->nallow == RUN_ALLOW_MAX)
		return "too many: write a policy file";
	e = rules_allow_text(str_from(value), ++x->nallow, &x->allow, &why);
	if (!e)
		return NULL;
	return why ? why : strerror(-e);
}

static const char *set_preset(struct explain *x, const char *value)
{
	if (x->npresets == RUN_PRESETS_MAX)
		return "too many: write a policy file";
	x->preset[x->npresets++] = value;
	return NULL;
}

static const char *set_once(const char **to, const char *value)
{
	if (*to)
		return "given twice";
	*to = value;
	return NULL;
}

static const char *explain_set(void *arg, int id, const char *value)
{
	struct explain *x = arg;

	switch (id) {
	case ID_ALLOW:
		return set_allow(x, value);
	case ID_PRESET:
		return set_preset(x, value);
	case ID_PRESET_DIR:
		return set_once(&x->preset_dir, value);
	case ID_POLICY:
		return set_once(&x->policy, value);
	case ID_NAME:
		return set_once(&x->name, value);
	case ID_OBSERVE:
		x->observe = true;
		return NULL;
	case ID_JSON:
		x->json = true;
		return NULL;
	default:
		x->help = true;
		return NULL;
	}
}

static const struct opts_table explain_table = {
	"penstock dns explain", explain_opts, ARRAY_SIZE(explain_opts),
	explain_set
};

static void explain_usage(void)
{
	puts("Say what a sandbox's question for a name is answered with, and "
	     "why:\n\n"
	     "  penstock dns explain --policy agent.ini api.example.com\n"
	     "  penstock dns explain --allow '*.example.com' "
	     "www.example.com AAAA TXT\n"
	     "  penstock dns explain --policy agent.ini 192.0.2.7      "
	     "(its reverse name)\n\n"
	     "It is judged by the code that answers in a sandbox, and nobody "
	     "is asked: what only\nthe world can say is listed as unknown.  "
	     "Without a policy every name is refused,\nas in a run.  May an "
	     "allowed name be connected to?  penstock policy explain.\n\n"
	     "Exit status: 0 all questions are answered or asked outside, 1 "
	     "one is refused, only\nobserved, or has no answer, 2 the policy, "
	     "the name or the type is wrong.\n\n"
	     "Usage: penstock dns explain [OPTION...] NAME|ADDRESS "
	     "[TYPE...]      (A, or PTR)\n");
	opts_usage(&explain_table);
}

static int load(const struct explain *x, struct ruleset **ret)
{
	CLEANUP(rules_loaded_done) struct rules_loaded l = { .n_texts = 0 };
	struct policy_said said = { .to = stderr, .errors_only = true };
	const struct rules_wanted wanted = {
		.policy = x->policy,
		.preset = x->preset,
		.n_presets = x->npresets,
		.allow = buf_str(&x->allow),
	};
	int e = policy_text_load(&wanted, x->preset_dir, policy_text_diag, &said, &l);

	if (!e)
		e = rules_compile(l.b.source, l.b.n, policy_text_diag, &said,
				  ret);
	if (e && !said.errors)
		say("cannot read the policy: %s", strerror(-e));
	if (!e && x->observe)
		rules_set_observe(*ret);
	return e;
}

static int show(const struct ruleset *rs, const struct explain *x)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(ANSWER_MAX);
	struct dns_told told;
	struct json j;
	int e;

	dns_ask(rs, &x->ask, &told);
	if (x->json) {
		json_begin(&j, &out);
		json_object_begin(&j, NULL);
		dns_told_json(rs, &x->ask, &told, &j);
		json_cstr(&j, "policy", rules_name(rs));
		json_cstr(&j, "digest", rules_digest(rs));
		json_object_end(&j);
		e = json_end(&j);
		if (!e)
			e = buf_add_char(&out, '\n');
	} else {
		e = dns_told_text(rs, &x->ask, &told, &out);
	}
	if (e) {
		say("cannot show the answer: %s", strerror(-e));
		return EXIT_USAGE;
	}
	text_put(&out);
	return dns_told_good(&told) ? 0 : EXIT_NEGATIVE;
}

static int explain_one(const struct ruleset *rs, struct explain *x,
		       const char *name, const char *type)
{
	const char *why = NULL;

	if (dns_ask_parse(name, NULL, &x->ask, &why)) {
		say_of(explain_table.command, "%s: %s", name, why);
		return EXIT_USAGE;
	}
	if (type && dns_ask_parse(name, type, &x->ask, &why)) {
		say_of(explain_table.command, "%s: %s", type, why);
		return EXIT_USAGE;
	}
	return show(rs, x);
}

static int explain_all(struct explain *x, const char *name, char **type)
{
	CLEANUP(rules_unrefp) struct ruleset *rs = NULL;
	int code = 0;

	if (load(x, &rs))
		return EXIT_USAGE;
	dns_ask_hostname(x->name ? x->name : RUN_LABEL_DEFAULT, &x->ask);
	if (!*type)
		return explain_one(rs, x, name, NULL);
	for (; *type; type++) {
		int one = explain_one(rs, x, name, *type);

		code = MAX(code, one);
	}
	return code;
}

int dns_explain(int argc, char **argv)
{
	struct explain x = {
		.allow = BUF_INIT(1u << 20), .ask.now = clock_wall_s(),
	};
	int first, code;

	if (opts_parse_all(&explain_table, argc, argv, &x, &first)) {
		code = EXIT_USAGE;
	} else if (x.help) {
		explain_usage();
		code = 0;
	} else if (first == argc) {
		say_of(explain_table.command, "which NAME or ADDRESS?");
		code = EXIT_USAGE;
	} else {
		code = explain_all(&x, argv[first], argv + first + 1);
	}
	buf_done(&x.allow);
	return code;
}
