/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_load_test.c - policies of many files, and what each may say
 *
 * Files are a table in memory, so that places, loops and what is missing can be
 * laid out in the test.
 */
#include <errno.h>

#include "base/mem.h"
#include "rules/rules_load.h"
#include "tests/unit/rules_kit.h"

struct file {
	const char *path, *text;
};

static int fake_read(void *arg, const char *path, struct buf *out)
{
	const struct file *f = arg;
	int err;

	for (; f->path; f++) {
		if (strcmp(f->path, path) != 0)
			continue;
		if (!f->text)
			return -EACCES;
		err = buf_add_str(out, str_from(f->text));
		return err == -ENOSPC ? -EFBIG : err;
	}
	return -ENOENT;
}

static int fake_list(void *arg, const char *dir, rules_file_fn *fn,
		     void *fn_arg)
{
	const struct file *f = arg;
	size_t n = strlen(dir);

	for (; f->path; f++) {
		if (strncmp(f->path, dir, n) == 0 && f->path[n] == '/' &&
		    !strchr(f->path + n + 1, '/'))
			fn(fn_arg, f->path + n + 1);
	}
	return 0;
}

#define FILES_MAX	12

struct world {
	struct file file[FILES_MAX + 1];
	const char *preset;		/* of the command line */
	const char *allow;
	const char *npm_registry;
	bool no_policy;
};

/* Loaded, carried as one text, and compiled; NULL when it was refused. */
static struct ruleset *load(const struct world *w, struct told *told)
{
	const struct rules_reader reader = {
		.read = fake_read, .list = fake_list,
		.arg = (void *)(uintptr_t)w->file, .presets = "/presets",
		.home = "/home/me", .npm_registry = w->npm_registry,
	};
	const struct rules_wanted wanted = {
		.policy = w->no_policy ? NULL : "dir/p.ini",
		.preset = &w->preset, .n_presets = w->preset != NULL,
		.allow = str_from(w->allow),
	};
	struct buf text = BUF_INIT(1 << 20);
	struct rules_loaded l;
	struct ruleset *rs = NULL;
	int err;

	*told = (struct told){ .text = BUF_INIT(1 << 20) };
	err = rules_load(&reader, &wanted, told_one, told, &l);
	assert_int_equal(err == -EINVAL, told->errors > 0);
	if (!err) {
		assert_int_equal(rules_bundle_write(l.b.source, l.b.n, &text),
				 0);
		err = rules_compile_text(buf_str(&text), "dir/p.ini",
					 told_one, told, &rs);
		assert_int_equal(err == -EINVAL, told->errors > 0);
	}
	rules_loaded_done(&l);
	buf_done(&text);
	return rs;
}

static struct ruleset *load_good(const struct world *w)
{
	struct told told;
	struct ruleset *rs = load(w, &told);

	if (!rs)
		fail_msg("refused: %s", buf_cstr(&told.text));
	buf_done(&told.text);
	return rs;
}

static void check_told(const struct world *w, const char *wanted, bool error)
{
	struct told told;
	struct ruleset *rs = load(w, &told);

	if ((rs == NULL) != error || !strstr(buf_cstr(&told.text), wanted))
		fail_msg("%s; told: %s\nwanted: %s", rs ? "taken" : "refused",
			 buf_cstr(&told.text), wanted);
	rules_unref(rs);
	buf_done(&told.text);
}

static enum reason of(const struct ruleset *rs, const char *host)
{
	return ask(rs, host, 443, NULL).reason;
}

static void includes_are_read_beside_the_file_that_names_them(void **state)
{
	const struct world w = { .file = {
		{ "dir/p.ini", "[policy]\ninclude = sub/a.ini ./b.ini\n"
		  "include = /etc/c.ini\n[allow p]\nhosts = p.example\n" },
		{ "dir/sub/a.ini", "[policy]\nname = of-its-own\n"
		  "owner = others\ninclude = deep.ini\n[allow a]\n"
		  "hosts = a.example\n" },
		{ "dir/sub/deep.ini", "[allow deep]\nhosts = deep.example\n" },
		{ "dir/b.ini", "[allow b]\nhosts = b.example\n" },
		{ "/etc/c.ini", "[deny c]\nhosts = x.p.example p.example\n" },
	} };
	struct ruleset *rs = load_good(&w);
	struct rules_rule_info info;

	(void)state;
	assert_int_equal(of(rs, "a.example"), REASON_ALLOWED);
	assert_int_equal(of(rs, "deep.example"), REASON_ALLOWED);
	assert_int_equal(of(rs, "b.example"), REASON_ALLOWED);
	assert_int_equal(of(rs, "p.example"), REASON_HOST_DENIED);
	assert_string_equal(rules_name(rs), "unnamed");
	rules_rule_info(rs, rules_rule_find(rs, false, STR("deep")), &info);
	assert_string_equal(info.file, "dir/sub/deep.ini");
	assert_int_equal(info.line, 1);
	rules_unref(rs);
}

static void a_file_named_twice_counts_once(void **state)
{
	const struct world w = { .file = {
		{ "dir/p.ini", "[policy]\ninclude = a.ini b.ini\n" },
		{ "dir/a.ini", "[policy]\ninclude = c.ini\n" },
		{ "dir/b.ini", "[policy]\ninclude = c.ini\n" },
		{ "dir/c.ini", "[allow c]\nhosts = c.example\n" },
	} };
	struct ruleset *rs = load_good(&w);

	(void)state;
	assert_int_equal(rules_count(rs), 1);
	assert_int_equal(of(rs, "c.example"), REASON_ALLOWED);
	rules_unref(rs);
}

static void what_cannot_be_read_is_told_with_its_place(void **state)
{
	static const struct {
		struct world w;
		const char *told;
	} f[] = {
		{ { .file = { { "x", "" } } },
		  "dir/p.ini:0:0: error: there is no such file: a policy is" },
		{ { .file = { { "dir/p.ini", NULL } } },
		  "dir/p.ini:0:0: error: you may not read it" },
		{ { .file = { { "dir/p.ini", "[policy]\nname = x\n"
				"include = a.ini  no.ini\n" },
			      { "dir/a.ini", "" } } },
		  "dir/p.ini:3:18: error: cannot read 'dir/no.ini': No such" },
		{ { .file = { { "dir/p.ini", "[policy]\ninclude = a.ini\n" },
			      { "dir/a.ini", NULL } } },
		  "dir/p.ini:2:11: error: cannot read 'dir/a.ini': Permission "
		  "denied" },
		{ { .file = { { "dir/p.ini", "[policy]\ninclude = p.ini\n" } } },
		  "dir/p.ini:2:11: error: 'dir/p.ini' includes itself" },
		{ { .file = { { "dir/p.ini", "[policy]\ninclude = a.ini\n" },
			      { "dir/a.ini", "\n[policy]\ninclude = p.ini\n" } } },
		  "dir/a.ini:3:11: error: 'dir/p.ini' includes itself" },
		{ { .file = { { "dir/p.ini", "[allow a]\nhosts = a.example "
				"@no\n" } } },
		  "dir/p.ini:2:19: error: cannot read 'dir/no': No such" },
		{ { .file = { { "dir/p.ini", "[policy]\npreset = pipy\n" },
			      { "/presets/npm.ini", "" },
			      { "/presets/pypi.ini", "" } } },
		  "dir/p.ini:2:10: error: there is no preset 'pipy'; did you "
		  "mean 'pypi'?" },
		{ { .file = { { "dir/p.ini", "[policy]\npreset = frob\n" } } },
		  "dir/p.ini:2:10: error: there is no preset 'frob', nor any "
		  "other in /presets: is Penstock installed?" },
		{ { .file = { { "dir/p.ini", "[policy]\npreset = frob\n" },
			      { "/presets/pypi.ini", "" } } },
		  "dir/p.ini:2:10: error: there is no preset 'frob'; they are "
		  "in /presets" },
		{ { .file = { { "dir/p.ini", "[policy]\npreset = ../x\n" } } },
		  "dir/p.ini:2:10: error: is no preset; their names have" },
		{ { .file = { { "dir/p.ini", "[policy]\npreset = a\n" },
			      { "/presets/a.ini", "[policy]\ninclude = x\n" },
			} },
		  "preset a:2:11: error: a preset includes nothing" },
		{ { .file = { { "dir/p.ini", "[policy]\npreset = a\n" },
			      { "/presets/a.ini", "[allow a]\nhosts = "
				"@/etc/passwd\n" } } },
		  "preset a:2:9: error: a preset takes hosts from @apt" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(f); i++)
		check_told(&f[i].w, f[i].told, true);
}

static void includes_go_only_so_deep(void **state)
{
	struct world w = { .file = {
		{ "dir/p.ini", "[policy]\ninclude = 1\n" },
		{ "dir/1", "[policy]\ninclude = 2\n" },
		{ "dir/2", "[policy]\ninclude = 3\n" },
		{ "dir/3", "[policy]\ninclude = 4\n" },
		{ "dir/4", "[policy]\ninclude = 5\n" },
		{ "dir/5", "[policy]\ninclude = 6\n" },
		{ "dir/6", "[policy]\ninclude = 7\n" },
		{ "dir/7", "[policy]\ninclude = 8\n" },
		{ "dir/8", "[allow a]\nhosts = a.example\n" },
		{ "dir/9", "" },
	} };
	struct ruleset *rs = load_good(&w);

	(void)state;
	assert_int_equal(of(rs, "a.example"), REASON_ALLOWED);
	rules_unref(rs);
	w.file[8].text = "[policy]\ninclude = 9\n";
	check_told(&w, "dir/8:2:11: error: 'dir/9' is included through more "
		   "than 8 files", true);
}

/* POL-20: what is added is added as it stands, and lifts nothing. */
static void an_included_file_never_loosens_the_policy(void **state)
{
	static const struct {
		const char *text, *told;
	} bad[] = {
		{ "[policy]\nmode = observe\n",
		  "dir/a.ini:2:0: error: 'mode' of an included file would "
		  "loosen the policy that includes it" },
		{ "[policy]\nextend = yes\n", "dir/a.ini:2:0: error: 'extend' "
		  "of an included file" },
		{ "[limits]\nconnections = 5\n", "dir/a.ini:1:0: error: "
		  "[limits] has no place in an included file" },
		{ "[defaults]\nowner = x\n", "[defaults] has no place in an" },
		{ "[dns]\nipv6 = on\n", "[dns] has no place in an" },
		{ "[allow p]\nhosts = b.example\n", "dir/a.ini:1:0: error: "
		  "[allow p] stands here again, first in dir/p.ini:3" },
		{ "[allow x]\nhosts = *\n", "dir/a.ini:2:9: error: '*' would "
		  "allow every host" },
	};
	struct world w = { .file = {
		{ "dir/p.ini", "[policy]\ninclude = a.ini\n[allow p]\n"
		  "hosts = p.example\n[deny d]\nhosts = *.d.example\n" },
		{ "dir/a.ini", "[allow a]\nhosts = *.d.example a.example\n"
		  "ports = *\n" },
	} };
	struct ruleset *rs = load_good(&w);

	(void)state;
	assert_int_equal(of(rs, "x.d.example"), REASON_HOST_DENIED);
	assert_int_equal(of(rs, "a.example"), REASON_ALLOWED);
	/* No pair that no rule has: a's ports are not p's. */
	assert_int_equal(ask(rs, "p.example", 22, NULL).reason,
			 REASON_PORT_NOT_ALLOWED);
	rules_unref(rs);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		w.file[1].text = bad[i].text;
		check_told(&w, bad[i].told, true);
	}
}

static void allow_adds_to_a_file_only_where_it_says_so(void **state)
{
	struct world w = {
		.file = { { "dir/p.ini", "[allow a]\nhosts = a.example\n" } },
		.allow = "[allow allow-1]\nhosts = b.example\n",
	};
	struct ruleset *rs;

	(void)state;
	check_told(&w, "--allow:0:0: error: would add to dir/p.ini, which does "
		   "not say 'extend = yes' in its [policy]", true);
	w.file[0].text = "[policy]\nextend = no\n";
	check_told(&w, "would add to dir/p.ini", true);
	w.file[0].text = "[policy]\nextend = yes\n[allow a]\n"
			 "hosts = a.example\n[deny d]\nhosts = b.example\n";
	rs = load_good(&w);
	assert_int_equal(of(rs, "a.example"), REASON_ALLOWED);
	assert_int_equal(of(rs, "b.example"), REASON_HOST_DENIED);
	rules_unref(rs);
	w.no_policy = true;
	rs = load_good(&w);
	assert_int_equal(of(rs, "b.example"), REASON_ALLOWED);
	assert_int_equal(of(rs, "a.example"), REASON_HOST_NOT_ALLOWED);
	rules_unref(rs);
}

static void presets_of_the_command_line_add_in_the_same_way(void **state)
{
	struct world w = {
		.file = { { "dir/p.ini", "[allow a]\nhosts = a.example\n" },
			  { "/presets/b.ini", "[allow b]\nhosts = b.example\n" },
			  { "/presets/c.ini", "[policy]\nname = c\n" } },
		.preset = "b",
	};
	struct ruleset *rs;

	(void)state;
	check_told(&w, "preset b:0:0: error: would add to dir/p.ini", true);
	w.file[0].text = "[policy]\nextend = yes\n[allow a]\n"
			 "hosts = a.example\n";
	rs = load_good(&w);
	assert_int_equal(of(rs, "b.example"), REASON_ALLOWED);
	rules_unref(rs);
	w.no_policy = true;
	rs = load_good(&w);
	assert_int_equal(of(rs, "b.example"), REASON_ALLOWED);
	assert_int_equal(of(rs, "a.example"), REASON_HOST_NOT_ALLOWED);
	rules_unref(rs);
	w.preset = "c";
	check_told(&w, "preset c:1:0: error: [policy] has no place in a preset",
		   true);
}

static void lists_of_hosts_are_read_line_by_line(void **state)
{
	struct world w = { .file = {
		{ "dir/p.ini", "[allow a]\nhosts = own.example @list\n"
		  "hosts = @list2\n[deny d]\nhosts = @list3\n" },
		{ "dir/list", "\xef\xbb\xbf# a list\r\nA.example.\r\n\r\n"
		  "  *.b.example\t\n; more\nc.example" },
		{ "dir/list2", "d.example\n" },
		{ "dir/list3", "x.b.example\n" },
	} };
	static const struct {
		const char *text, *told;
	} bad[] = {
		{ "a.example\n b.example c.example\n", "dir/list:2:12: error: "
		  "'c.example' stands behind a host" },
		{ "a.example # x\n", "dir/list:1:11: error: '# x' stands behind "
		  "a host" },
		{ "a.example\nhttp://b.example\n", "dir/list:2:1: error: "
		  "'http://b.example' is a URL" },
		{ "[allow x]\n", "dir/list:1:8: error: 'x]' stands behind" },
		{ "*\n", "dir/list:1:1: error: '*' would allow every host" },
	};
	struct ruleset *rs = load_good(&w);

	(void)state;
	assert_int_equal(of(rs, "own.example"), REASON_ALLOWED);
	assert_int_equal(of(rs, "a.example"), REASON_ALLOWED);
	assert_int_equal(of(rs, "y.b.example"), REASON_ALLOWED);
	assert_int_equal(of(rs, "x.b.example"), REASON_HOST_DENIED);
	assert_int_equal(of(rs, "c.example"), REASON_ALLOWED);
	assert_int_equal(of(rs, "d.example"), REASON_ALLOWED);
	rules_unref(rs);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		w.file[1].text = bad[i].text;
		check_told(&w, bad[i].told, true);
	}
	w.file[1].text = "# nothing\n";
	check_told(&w, "dir/p.ini:2:0: warning: dir/list has no host in it",
		   false);
}

static void a_text_that_names_files_needs_them_along(void **state)
{
	static const struct {
		const char *text, *told;
	} f[] = {
		{ "[policy]\ninclude = a.ini\n", "p.ini:2:11: error: 'a.ini' "
		  "(an included file) did not come along with the policy" },
		{ "[policy]\npreset = open\n", "p.ini:2:10: error: 'open' (a "
		  "preset) did not come along" },
		{ "[allow a]\nhosts = b.example @x\n", "p.ini:2:19: error: '@x' "
		  "(a list of hosts) did not come along" },
		{ "#!penstock-policies 1\npolicy 0 0 0 0 - p\n\n"
		  "include 0 0 0 0 - x\n\n", "x:0:0: error: is an included "
		  "file that nothing names" },
		{ "#!penstock-policies 1\npolicy 0 0 0 0 - p\n\n"
		  "include 1 3 0 0 x x\n\n", "x:0:0: error: is an included "
		  "file that nothing names" },
		{ "#!penstock-policies 1\npolicy 0 0 0 0 - p\n\n"
		  "allow 1 3 0 0 x x\n\n", "x:0:0: error: stands at the wrong "
		  "place of its bundle" },
	};
	struct told told;
	struct ruleset *rs = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(f); i++) {
		told = (struct told){ .text = BUF_INIT(1 << 16) };
		assert_int_equal(rules_compile_text(str_from(f[i].text),
						    "p.ini", told_one, &told,
						    &rs), -EINVAL);
		if (!strstr(buf_cstr(&told.text), f[i].told))
			fail_msg("told: %s", buf_cstr(&told.text));
		buf_done(&told.text);
	}
}

static void apt_sources_are_the_machines_own(void **state)
{
	struct world w = { .file = {
		{ "dir/p.ini", "[policy]\npreset = deb\n" },
		{ "/presets/deb.ini", "[allow deb]\n"
		  "hosts = @apt-sources/*.vendor.example\n" },
		{ "/etc/apt/sources.list", "# deb http://no.example/ x\n"
		  "deb [arch=amd64 signed-by=/x] http://Mirror.example:80/d x\n"
		  "deb-src mirror+https://two.example/d x main\n"
		  "deb cdrom:[x]/ y\ndeb http://192.0.2.1/d x\n"
		  "other http://no.example/\n" },
		{ "/etc/apt/sources.list.d/a.sources", "Types: deb\n"
		  "URIs: https://three.example/x\n  http://four.example\n"
		  "# http://no.example\nSuites: http://no.example\n\n"
		  "Types: deb\nURIs: http://no.example\nEnabled: no\n\n"
		  "uris: https://me:secret@five.example/\n" },
		{ "/etc/apt/sources.list.d/b.list", "deb http://six.example x" },
		{ "/etc/apt/sources.list.d/c.bak", "deb http://no.example x" },
	} };
	static const char *const in[] = {
		"mirror.example", "two.example", "three.example",
		"four.example", "five.example", "six.example",
	};
	struct ruleset *rs = load_good(&w);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(in); i++)
		assert_int_equal(of(rs, in[i]), REASON_ALLOWED);
	assert_int_equal(of(rs, "no.example"), REASON_HOST_NOT_ALLOWED);
	assert_int_equal(of(rs, "x.vendor.example"), REASON_HOST_NOT_ALLOWED);
	rules_unref(rs);
	for (size_t i = 2; i < 6; i++)
		w.file[i].path = "/elsewhere";
	rs = load_good(&w);
	assert_int_equal(of(rs, "x.vendor.example"), REASON_ALLOWED);
	assert_int_equal(of(rs, "mirror.example"), REASON_HOST_NOT_ALLOWED);
	rules_unref(rs);
}

static void npm_registries_are_the_users_and_the_machines(void **state)
{
	struct world w = { .file = {
		{ "dir/p.ini", "[policy]\npreset = npm\n" },
		{ "/presets/npm.ini", "[allow npm]\n"
		  "hosts = @npm-registry/vendor.example\n" },
		{ "/home/me/.npmrc", "registry = \"https://one.example/npm/\"\n"
		  "//one.example/:_authToken=x\n; registry=https://no.example\n"
		  "@acme:registry=https://two.example\n" },
		{ "/etc/npmrc", "registry=https://three.example" },
		/* What the project says is not asked. */
		{ "dir/.npmrc", "registry=https://no.example" },
		{ ".npmrc", "registry=https://no.example" },
	}, .npm_registry = "https://zero.example/" };
	static const char *const in[] = {
		"zero.example", "one.example", "two.example", "three.example",
	};
	struct ruleset *rs = load_good(&w);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(in); i++)
		assert_int_equal(of(rs, in[i]), REASON_ALLOWED);
	assert_int_equal(of(rs, "no.example"), REASON_HOST_NOT_ALLOWED);
	assert_int_equal(of(rs, "vendor.example"), REASON_HOST_NOT_ALLOWED);
	rules_unref(rs);
	/* A scope's registry leaves the rest where it is. */
	w.npm_registry = NULL;
	w.file[2].text = "@acme:registry=https://two.example\n";
	w.file[3].path = "/elsewhere";
	rs = load_good(&w);
	assert_int_equal(of(rs, "two.example"), REASON_ALLOWED);
	assert_int_equal(of(rs, "vendor.example"), REASON_ALLOWED);
	rules_unref(rs);
}

static void without_memory_nothing_is_half_loaded(void **state)
{
	const struct world w = { .file = {
		{ "dir/p.ini", "[policy]\ninclude = a.ini\npreset = b\n"
		  "[allow x]\nhosts = @l\n" },
		{ "dir/a.ini", "[allow a]\nhosts = a.example\n" },
		{ "dir/l", "l.example\n" },
		{ "/presets/b.ini", "[allow b]\nhosts = b.example\n" },
	} };
	const struct rules_reader reader = {
		.read = fake_read, .list = fake_list,
		.arg = (void *)(uintptr_t)w.file, .presets = "/presets",
	};
	const struct rules_wanted wanted = { .policy = "dir/p.ini" };
	struct rules_loaded l;
	unsigned nth = 0;
	int err;

	(void)state;
	do {
		mem_test_fail_at(++nth);
		err = rules_load(&reader, &wanted, NULL, NULL, &l);
		mem_test_fail_at(0);
		rules_loaded_done(&l);
	} while (err && nth < 100);
	assert_int_equal(err, 0);
	assert_true(nth > 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			includes_are_read_beside_the_file_that_names_them),
		cmocka_unit_test(a_file_named_twice_counts_once),
		cmocka_unit_test(what_cannot_be_read_is_told_with_its_place),
		cmocka_unit_test(includes_go_only_so_deep),
		cmocka_unit_test(an_included_file_never_loosens_the_policy),
		cmocka_unit_test(allow_adds_to_a_file_only_where_it_says_so),
		cmocka_unit_test(
			presets_of_the_command_line_add_in_the_same_way),
		cmocka_unit_test(lists_of_hosts_are_read_line_by_line),
		cmocka_unit_test(a_text_that_names_files_needs_them_along),
		cmocka_unit_test(apt_sources_are_the_machines_own),
		cmocka_unit_test(npm_registries_are_the_users_and_the_machines),
		cmocka_unit_test(without_memory_nothing_is_half_loaded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
