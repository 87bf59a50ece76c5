/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_show.c - penstock policy show FILE
 */
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/opts.h"
#include "cli/policy_cmd.h"
#include "cli/policy_text.h"
#include "cli/text.h"
#include "rules/rules_show.h"

#define SHOWN_MAX	(256u << 20)	/* a million hosts, a line each */

enum { ID_HELP = 1, ID_EFFECTIVE };

static const struct opt show_opts[] = {
	{ ID_EFFECTIVE, "effective", 0, OPT_NONE, NULL,
	  "what is in force (there is no other view)" },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
};

static const char *show_set(void *arg, int id, const char *value)
{
	(void)value;
	*(bool *)arg |= id == ID_HELP;
	return NULL;
}

static const struct opts_table show_table = {
	"penstock policy show", show_opts, ARRAY_SIZE(show_opts), show_set
};

static void show_usage(void)
{
	puts("Show what is in force: a policy with all that it includes, as one "
	     "text:\n\n"
	     "  penstock policy show --effective coding-agent.ini\n\n"
	     "Exit status: 0, or 2 when the policy is wrong.\n\n"
	     "Usage: penstock policy show [--effective] FILE\n");
	opts_usage(&show_table);
}

static int show(const char *path)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(SHOWN_MAX);
	CLEANUP(rules_unrefp) struct ruleset *rs = NULL;
	int e;

	if (policy_load(path, NULL, NULL, &rs))
		return EXIT_USAGE;
	e = rules_show(rs, &out);
	if (e) {
		say("cannot show %s: %s", path, strerror(-e));
		return EXIT_USAGE;
	}
	text_put(&out);
	return 0;
}

int policy_show(int argc, char **argv)
{
	bool help = false;
	int first;

	if (opts_parse_all(&show_table, argc, argv, &help, &first))
		return EXIT_USAGE;
	if (help) {
		show_usage();
		return 0;
	}
	if (argc - first != 1) {
		say_of(show_table.command, "which file?");
		return EXIT_USAGE;
	}
	return show(argv[first]);
}
