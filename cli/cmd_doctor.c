/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_doctor.c - penstock doctor: what is there, what is not, and the mend
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "cli/cmd.h"
#include "cli/opts.h"
#include "netns-setup/launch.h"

#define JSON_MAX	65536

enum { ID_HELP = 1, ID_JSON };

static const struct opt opts[] = {
	{ ID_JSON, "json", 0, OPT_NONE, NULL, "one JSON object" },
	{ ID_HELP, "help", 'h', OPT_NONE, NULL, "this text" },
};

struct wish {
	bool help, json;
};

static const char *set(void *arg, int id, const char *value)
{
	struct wish *w = arg;

	(void)value;
	*(id == ID_JSON ? &w->json : &w->help) = true;
	return NULL;
}

static const struct opts_table table = {
	"penstock doctor", opts, ARRAY_SIZE(opts), set
};

static void usage(void)
{
	puts("Look whether this machine can run sealed sandboxes:\n\n"
	     "  penstock doctor\n\n"
	     "Everything is tried in throw-away namespaces.  Exit status: 0 "
	     "when all that is\nneeded works, 1 otherwise.\n\n"
	     "Usage: penstock doctor [OPTION]...\n");
	opts_usage(&table);
}

static const char *mark(const struct launch_check *c)
{
	return c->ok ? "ok" : c->needed ? "MISSING" : "without";
}

static void print_text(const struct launch_check *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct str rest = str_from(c[i].mend), line;

		printf("%-8s %-20s %s\n", mark(&c[i]), c[i].what, c[i].detail);
		while (str_cut(&rest, '\n', &line))
			printf("%-29s %.*s\n", "", STR_ARG(line));
	}
}

static int print_json(const struct launch_check *c, size_t n)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(JSON_MAX);
	struct json j;
	int e;

	json_begin(&j, &out);
	json_object_begin(&j, NULL);
	json_cstr(&j, "schema", "penstock-doctor/1");
	json_array_begin(&j, "checks");
	for (size_t i = 0; i < n; i++) {
		json_object_begin(&j, NULL);
		json_cstr(&j, "what", c[i].what);
		json_bool(&j, "ok", c[i].ok);
		json_bool(&j, "needed", c[i].needed);
		json_cstr(&j, "detail", c[i].detail);
		if (c[i].mend[0])
			json_cstr(&j, "mend", c[i].mend);
		json_object_end(&j);
	}
	json_array_end(&j);
	json_object_end(&j);
	e = json_end(&j);
	if (!e)
		e = buf_add_char(&out, '\n');
	return e ? e : fd_write_all(STDOUT_FILENO, out.p, out.n);
}

static bool all_needed(const struct launch_check *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (c[i].needed && !c[i].ok)
			return false;
	}
	return true;
}

int cmd_doctor(int argc, char **argv)
{
	struct launch_check check[LAUNCH_CHECKS_MAX];
	struct wish wish = { false, false };
	int first;
	size_t n;

	if (opts_parse_all(&table, argc, argv, &wish, &first))
		return EXIT_USAGE;
	if (first < argc) {
		say_of(table.command, "'%s' is too much: it takes no argument",
		       argv[first]);
		return EXIT_USAGE;
	}
	if (wish.help) {
		usage();
		return 0;
	}
	n = launch_doctor(check);
	if (wish.json) {
		int e = print_json(check, n);

		if (e)
			say("cannot write: %s", strerror(-e));
	} else {
		print_text(check, n);
	}
	return all_needed(check, n) ? 0 : EXIT_NEGATIVE;
}
