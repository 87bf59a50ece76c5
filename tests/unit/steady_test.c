/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady_test.c - links on the way to our own files, where the command could
 *		   change them
 */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/steady.h"

/* --- links ------------------------------------------------------------------ */

/*
 *	DIR/work/file, /inside -> file, /away -> ../other, /loop -> loop
 *	DIR/other/file, /into -> ../work/inside
 *	DIR/way -> other
 */
static char dir[PATH_MAX];

static const char *at(const char *name)
{
	static char path[2][PATH_MAX];
	static unsigned turn;
	char *p = path[turn++ % 2];
	int n = snprintf(p, PATH_MAX, "%s%s", dir, name);

	assert_true(n > 0 && n < PATH_MAX);
	return p;
}

static int make_tree(void **state)
{
	char made[] = "/tmp/penstock-steady-XXXXXX";

	(void)state;
	if (!mkdtemp(made) || !realpath(made, dir))
		return -1;
	return mkdir(at("/work"), 0700) || mkdir(at("/other"), 0700) ||
	       symlink("file", at("/work/inside")) ||
	       symlink("../other", at("/work/away")) ||
	       symlink("loop", at("/work/loop")) ||
	       symlink("../work/inside", at("/other/into")) ||
	       symlink("loop", at("/other/loop")) ||
	       symlink("other", at("/way"));
}

static int drop_tree(void **state)
{
	static const char *const link[] = {
		"/work/inside", "/work/away", "/work/loop", "/other/into",
		"/other/loop", "/way",
	};
	int bad = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(link); i++)
		bad |= unlink(at(link[i]));
	return bad | rmdir(at("/work")) | rmdir(at("/other")) | rmdir(dir);
}

static void expect_link(const char *path, const char *want)
{
	char link[PATH_MAX] = "";
	int err = steady_find_link(path, at("/work"), link);

	assert_int_equal(err, want ? -ELOOP : 0);
	if (want)
		assert_string_equal(link, at(want));
}

static void links_in_the_directory_are_found(void **state)
{
	(void)state;
	expect_link(at("/work/inside"), "/work/inside");
	expect_link(at("/work/away/file"), "/work/away");
	expect_link(at("/work/../work//away/file"), "/work/../work//away");
	expect_link(at("/work/loop"), "/work/loop");
	/* Over links elsewhere, which then lead in. */
	expect_link(at("/other/into"), "/other/../work/inside");
	expect_link(at("/way/into"), "/other/../work/inside");
}

static void links_elsewhere_and_files_are_none(void **state)
{
	char link[PATH_MAX];

	(void)state;
	expect_link(at("/work/file"), NULL);
	expect_link(at("/way/file"), NULL);
	expect_link(at("/nothing/there"), NULL);
	expect_link("/", NULL);
	/* No end is a doubt, wherever it is. */
	assert_int_equal(steady_find_link(at("/other/loop"), at("/work"), link),
			 -ELOOP);
}

static void relative_paths_begin_where_we_are(void **state)
{
	(void)state;
	assert_int_equal(chdir(at("/work")), 0);
	expect_link("inside", "/work/inside");
	expect_link("./away/x", "/work/./away");
	expect_link("file", NULL);
	assert_int_equal(chdir("/"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_in_the_directory_are_found),
		cmocka_unit_test(links_elsewhere_and_files_are_none),
		cmocka_unit_test(relative_paths_begin_where_we_are),
	};

	return cmocka_run_group_tests_name("steady", tests, make_tree,
					   drop_tree);
}
