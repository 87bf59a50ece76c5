/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_policy.c - penstock policy VERB
 */
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/ini.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/opts.h"
#include "cli/policy_cmd.h"

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} verbs[] = {
	{ "check", policy_check, "what is wrong in policy files" },
	{ "explain", policy_explain, "what a policy does with a target, and "
	  "why" },
	{ "test", policy_test, "hold a policy to a file of cases" },
	{ "diff", policy_diff, "what becomes reachable, and what is lost" },
	{ "learn", policy_learn, "propose a policy from the records of a run" },
	{ "show", policy_show, "a policy with all that it includes" },
};

static void usage(void)
{
	puts("Write, review and test policies (penstock.ini(5)):\n\n"
	     "  penstock policy check agent.ini\n"
	     "  penstock policy show --effective agent.ini\n"
	     "  penstock policy explain agent.ini https://api.example.com/\n"
	     "  penstock policy test agent.ini agent.cases\n"
	     "  penstock policy diff old.ini new.ini\n"
	     "  penstock policy learn audit.jsonl\n\n"
	     "Usage: penstock policy VERB ...\n");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		printf("  %-8s %s\n", verbs[i].name, verbs[i].help);
	puts("\nSee `penstock policy VERB --help`.");
}

static void unknown(const char *verb)
{
	const char *words[ARRAY_SIZE(verbs) + 1];
	const char *near;
	size_t n = 0;

	for (; n < ARRAY_SIZE(verbs); n++)
		words[n] = verbs[n].name;
	words[n] = NULL;
	near = ini_did_you_mean(str_from(verb), words);
	if (near)
		say_of("penstock policy", "no verb '%s'; did you mean '%s'?",
		       verb, near);
	else
		say_of("penstock policy", "no verb '%s' "
		       "(see penstock policy --help)", verb);
}

int cmd_policy(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : NULL;

	for (size_t i = 0; verb && i < ARRAY_SIZE(verbs); i++) {
		if (strcmp(verb, verbs[i].name) == 0)
			return verbs[i].run(argc - 1, argv + 1);
	}
	if (verb && (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0)) {
		usage();
		return 0;
	}
	if (verb)
		unknown(verb);
	else
		say_of("penstock policy",
		       "which verb? (see penstock policy --help)");
	return EXIT_USAGE;
}
