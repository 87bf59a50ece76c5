/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.c - penstock: the table of subcommands
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/ini.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "cli/opts.h"

static const char examples[] =
	"Run a command that can reach what you allow, and nothing else:\n"
	"\n"
	"  penstock run --allow pypi.org --allow files.pythonhosted.org -- \\\n"
	"      pip install requests\n"
	"  penstock run --policy coding-agent.ini -- ./agent\n"
	"  penstock run --observe --write-policy new.ini -- make   (learn a policy)\n"
	"  penstock policy check coding-agent.ini\n"
	"  penstock flows --run 7f3a91\n"
	"  penstock doctor\n";

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int cmd_version(int argc, char **argv)
{
	if (argc == 2 && is_help(argv[1])) {
		puts("Print the version:\n\n  penstock version\n\n"
		     "Usage: penstock version");
		return 0;
	}
	if (argc > 1) {
		say_of("penstock version",
		       "'%s' is too much: it takes no argument", argv[1]);
		return EXIT_USAGE;
	}
	puts(PACKAGE_STRING);
	return 0;
}

static int cmd_help(int argc, char **argv);

static const struct subcommand {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help;
} subcommands[] = {
	{ "run", cmd_run, "run a command in a sealed sandbox" },
	{ "flows", cmd_flows, "what a run reached and was refused, flow by flow" },
	{ "reload", cmd_reload, "another policy for what runs already" },
	{ "upgrade", cmd_upgrade, "the service by the penstockd installed now" },
	{ "connect", cmd_connect, "a connection through the proxy, as for ssh" },
	{ "policy", cmd_policy, "check, explain, test and compare policies" },
	{ "dns", cmd_dns, "what a name is answered with, and why" },
	{ "doctor", cmd_doctor, "what this machine can do, and the mend" },
	{ "version", cmd_version, "print the version" },
	{ "help", cmd_help, "this text, or that of a subcommand or verb" },
};

static void usage(FILE *to)
{
	fputs(examples, to);
	fputs("\nSubcommands:\n", to);
	for (size_t i = 0; i < ARRAY_SIZE(subcommands); i++)
		fprintf(to, "  %-10s %s\n", subcommands[i].name,
			subcommands[i].help);
	fputs("\nSee `penstock SUBCOMMAND --help` and penstock(1).\n", to);
}

static const struct subcommand *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(subcommands); i++) {
		if (strcmp(subcommands[i].name, name) == 0)
			return &subcommands[i];
	}
	return NULL;
}

static int unknown(const char *word)
{
	const char *words[ARRAY_SIZE(subcommands) + 1];
	const char *near;
	size_t n = 0;

	for (; n < ARRAY_SIZE(subcommands); n++)
		words[n] = subcommands[n].name;
	words[n] = NULL;
	near = ini_did_you_mean(str_from(word), words);
	if (near)
		say("no subcommand '%s'; did you mean '%s'?", word, near);
	else
		say("no subcommand '%s' (see penstock --help)", word);
	return EXIT_USAGE;
}

static int cmd_help(int argc, char **argv)
{
	static char help[] = "--help";
	const struct subcommand *s = argc > 1 ? find(argv[1]) : NULL;

	if (s && (s->run == cmd_policy || s->run == cmd_dns) && argc > 2)
		return s->run(3, (char *[]){ argv[1], argv[2], help, NULL });
	if (s && s->run != cmd_help)
		return s->run(2, (char *[]){ argv[1], help, NULL });
	if (!s && argc > 1 && argv[1][0] != '-')
		return unknown(argv[1]);
	usage(stdout);
	return 0;
}

/* 0, 1 and 2 must be something, or what is opened next would be taken for
 * them. */
static int open_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd == -1)
		return -errno;
	close(fd);
	return 0;
}

/* What was asked for and did not reach the disk is no success. */
static int end(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	say("not everything could be written to standard output");
	return MAX(code, EXIT_USAGE);
}

static int run(int argc, char **argv)
{
	const struct subcommand *s;

	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (is_help(argv[1]))
		return cmd_help(1, argv);
	if (strcmp(argv[1], "--version") == 0)
		return cmd_version(argc - 1, argv + 1);
	s = find(argv[1]);
	return s ? s->run(argc - 1, argv + 1) : unknown(argv[1]);
}

int main(int argc, char **argv)
{
	if (open_streams())
		return EXIT_OWN;
	log_init("penstock", LOG_WARN);
	return end(run(argc, argv));
}
