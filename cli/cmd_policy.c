/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_policy.c - penstock policy check
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/cmd.h"
#include "cli/opts.h"
#include "cli/policy_text.h"
#include "proxy/ctl_proto.h"

enum { ID_HELP = 1 };

static const struct opt check_opts[] = {
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
};

static const char *check_set(void *arg, int id, const char *value)
{
	(void)value;
	*(bool *)arg |= id == ID_HELP;
	return NULL;
}

static const struct opts_table check_table = {
	"penstock policy check", check_opts, ARRAY_SIZE(check_opts), check_set
};

static void check_usage(void)
{
	puts("Say what is wrong in policy files, with line and mend:\n\n"
	     "  penstock policy check coding-agent.ini\n\n"
	     "Exit status: 0 valid, 2 not.  Warnings do not count.\n\n"
	     "Usage: penstock policy check FILE...\n");
	opts_usage(&check_table);
}

static void count_line(unsigned errors, unsigned warnings)
{
	if (errors)
		printf("%u error%s%s", errors, errors == 1 ? "" : "s",
		       warnings ? ", " : "\n");
	if (warnings)
		printf("%u warning%s\n", warnings, warnings == 1 ? "" : "s");
}

/* Are these the sections of penstockd's own configuration? */
static bool is_daemons(struct str text)
{
	struct str line;

	while (str_cut(&text, '\n', &line)) {
		line = str_trim(line);
		if (str_eq(line, STR("[service]")) ||
		    str_eq(line, STR("[plug]")))
			return true;
	}
	return false;
}

static int check_file(const char *path)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PLUG_POLICY_MAX);
	CLEANUP(rules_unrefp) struct ruleset *rules = NULL;
	struct policy_said said = { .to = stdout };
	struct rules_source source = { .name = path, .text = STR_NONE };
	int e;

	if (policy_text_read(path, &text))
		return EXIT_USAGE;
	source.text = buf_str(&text);
	e = rules_compile(&source, 1, policy_text_diag, &said, &rules);
	count_line(said.errors, said.warnings);
	if (e) {
		if (!said.errors)
			say("%s: %s", path, strerror(-e));
		else if (is_daemons(source.text))
			say("%s is a configuration of the service, no policy: "
			    "penstockd --check --config %s", path, path);
		return EXIT_USAGE;
	}
	printf("%s: valid: %s@sha256:%s, %zu rule%s%s\n", path,
	       rules_name(rules), rules_digest(rules), rules_count(rules),
	       rules_count(rules) == 1 ? "" : "s", rules_count(rules) ? "" :
	       ": everything is denied");
	return 0;
}

static int policy_check(int argc, char **argv)
{
	bool help = false;
	int first, code = 0;

	if (opts_parse(&check_table, argc, argv, &help, &first))
		return EXIT_USAGE;
	if (help) {
		check_usage();
		return 0;
	}
	if (first == argc) {
		say_of(check_table.command, "which file?");
		return EXIT_USAGE;
	}
	for (; first < argc; first++) {
		int one = check_file(argv[first]);

		code = MAX(code, one);
	}
	return code;
}

int cmd_policy(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "check") == 0)
		return policy_check(argc - 1, argv + 1);
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 ||
			 strcmp(argv[1], "-h") == 0)) {
		check_usage();
		return 0;
	}
	if (argc > 1)
		say("no 'policy %s'; there is: penstock policy check FILE...",
		    argv[1]);
	else
		say("there is: penstock policy check FILE...");
	return EXIT_USAGE;
}
