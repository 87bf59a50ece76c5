/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opts.h - one table of options: the parser, the usage text and its hints
 */
#ifndef CLI_OPTS_H
#define CLI_OPTS_H

#include <stddef.h>

#include "base/compiler.h"

enum opt_value { OPT_NONE, OPT_NEEDED, OPT_MAYBE };

struct opt {
	int id;			/* the caller's; not 0 */
	const char *name;	/* without "--" */
	char letter;		/* or 0 */
	enum opt_value value;
	const char *arg;	/* what the value is called in the usage */
	const char *help;	/* NULL: works, but is not shown */
};

/* Called for each option; @value is NULL where there is none.
 * Return: 0, or a message that says what is wrong with it */
typedef const char *opts_set_fn(void *arg, int id, const char *value);

struct opts_table {
	const char *command;	/* "penstock run", for messages */
	const struct opt *opt;
	size_t n;
	opts_set_fn *set;
};

/**
 * opts_parse() - Options up to the first word that is none, or behind "--"
 * @arg:	for t->set()
 * @ret_first:	index of the first word that is not an option's
 *
 * Options are never abbreviated.  What is wrong is said on stderr, with the
 * nearest option there is.
 * Return: 0 or -EINVAL
 */
NODISCARD int opts_parse(const struct opts_table *t, int argc, char **argv,
			 void *arg, int *ret_first);

/**
 * opts_parse_all() - As opts_parse(), with options also among the other words
 *
 * For commands that start no other one.  @argv is put in another order: the
 * words that are no options stand at its end, as they followed each other.
 * Behind "--" none is an option.
 */
NODISCARD int opts_parse_all(const struct opts_table *t, int argc, char **argv,
			     void *arg, int *ret_first);

/* The lines of the usage that list the options. */
void opts_usage(const struct opts_table *t);

/* "penstock: " and a line, on stderr; bytes from outside are escaped. */
void say(const char *fmt, ...) PRINTF(1, 2);
/* The same behind "@command: ", as in "penstock run". */
void say_of(const char *command, const char *fmt, ...) PRINTF(2, 3);
/* A line that goes on from the one before. */
void say_more(const char *fmt, ...) PRINTF(1, 2);
/* Several lines: the first behind "penstock: ", the others as they are. */
void say_lines(const char *text);

#endif /* CLI_OPTS_H */
