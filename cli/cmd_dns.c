/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_dns.c - penstock dns VERB
 */
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/dns_cmd.h"
#include "cli/opts.h"

static void usage(void)
{
	puts("What the resolver of a sandbox does with a name (penstock.ini(5)):"
	     "\n\n"
	     "  penstock dns explain --policy agent.ini api.example.com\n\n"
	     "Usage: penstock dns VERB ...\n"
	     "  explain  what a question is answered with, and why\n\n"
	     "See `penstock dns VERB --help`.");
}

int cmd_dns(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : NULL;

	if (verb && strcmp(verb, "explain") == 0)
		return dns_explain(argc - 1, argv + 1);
	if (verb && (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0)) {
		usage();
		return 0;
	}
	if (verb)
		say_of("penstock dns", "no verb '%s'; there is 'explain' "
		       "(see penstock dns --help)", verb);
	else
		say_of("penstock dns", "which verb? (see penstock dns --help)");
	return EXIT_USAGE;
}
