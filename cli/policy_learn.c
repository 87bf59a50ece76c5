/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_learn.c - penstock policy learn AUDIT.jsonl
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/query.h"
#include "base/fd.h"
#include "cli/cmd.h"
#include "cli/opts.h"
#include "cli/policy_cmd.h"
#include "cli/text.h"

#define POLICY_MAX	(8u << 20)

enum { ID_HELP = 1, ID_REFUSED, ID_WILDCARDS, ID_NAME };

struct learn {
	bool help;
	struct query_wish wish;
};

static const struct opt learn_opts[] = {
	{ ID_NAME, "name", 0, OPT_NEEDED, "RUN",
	  "what the run is called; else its id in the records" },
	{ ID_REFUSED, "refused", 0, OPT_NONE, NULL,
	  "rules for what was refused for lack of one, too" },
	{ ID_WILDCARDS, "wildcards", 0, OPT_NONE, NULL,
	  "one *.NAME for three or more hosts right below NAME" },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
};

static const char *learn_set(void *arg, int id, const char *value)
{
	struct learn *l = arg;

	l->help |= id == ID_HELP;
	l->wish.refused |= id == ID_REFUSED;
	l->wish.wildcards |= id == ID_WILDCARDS;
	if (id == ID_NAME)
		l->wish.run = value;
	return NULL;
}

static const struct opts_table learn_table = {
	"penstock policy learn", learn_opts, ARRAY_SIZE(learn_opts), learn_set
};

static void learn_usage(void)
{
	puts("Propose the smallest policy for what a run did, with its "
	     "evidence, on stdout:\n\n"
	     "  penstock run --observe --records audit.jsonl -- make\n"
	     "  penstock policy learn audit.jsonl > new.ini\n\n"
	     "Address classes are never opened; what is left out stands as a "
	     "comment.\n\n"
	     "Exit status: 0, 1 when no record is in the file, 2 when it cannot "
	     "be read.\n\n"
	     "Usage: penstock policy learn [OPTIONS] AUDIT.jsonl\n");
	opts_usage(&learn_table);
}

static int summarise(const char *path, struct query_summary *ret)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int e = fd == -1 ? -errno : query_summarise(fd, ret);

	if (e)
		say("cannot read the records %s: %s", path, strerror(-e));
	return e;
}

/* Records that are not all there make a policy that is too small. */
static void warn(const char *path, const struct query_summary *s)
{
	if (s->bad)
		say("%s: %llu lines are no records and were passed over", path,
		    (unsigned long long)s->bad);
	if (s->lost)
		say("%s: %llu records were lost when it was written", path,
		    (unsigned long long)s->lost);
	if (s->more)
		say("%s: %llu flows more than can be held were passed over",
		    path, (unsigned long long)s->more);
}

static int propose(const char *path, struct query_wish *wish)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(POLICY_MAX);
	struct query_summary s;
	int e;

	if (summarise(path, &s))
		return EXIT_USAGE;
	warn(path, &s);
	if (!wish->run)
		wish->run = s.run[0] ? s.run : "learnt";
	e = query_policy(&s, wish, &text);
	if (e)
		say("cannot make the policy: %s", strerror(-e));
	else
		text_put(&text);
	e = e ? EXIT_USAGE : s.records == 0 ? EXIT_NEGATIVE : 0;
	if (e == EXIT_NEGATIVE)
		say("%s: no record in it", path);
	query_summary_done(&s);
	return e;
}

int policy_learn(int argc, char **argv)
{
	struct learn l = { .wish = { .reached = true } };
	int first;

	if (opts_parse_all(&learn_table, argc, argv, &l, &first))
		return EXIT_USAGE;
	if (l.help) {
		learn_usage();
		return 0;
	}
	if (argc - first != 1) {
		say_of(learn_table.command, "one file of records");
		return EXIT_USAGE;
	}
	return propose(argv[first], &l.wish);
}
