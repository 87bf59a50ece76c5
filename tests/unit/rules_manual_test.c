/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_manual_test.c - the examples and the manual page say what the code does
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/fd.h"
#include "rules/rules_ast.h"
#include "tests/unit/rules_kit.h"

#define FILE_MAX	(1u << 20)

static struct buf read_file(const char *name)
{
	CLEANUP(fd_closep) int fd = -1;
	struct buf text = BUF_INIT(FILE_MAX);
	const char *top = getenv("top_srcdir");
	char path[4096];
	int n;

	n = snprintf(path, sizeof(path), "%s/rules/%s", top ? top : ".", name);
	assert_true(n > 0 && (size_t)n < sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		fail_msg("cannot open %s", path);
	assert_int_equal(fd_read_all(fd, &text), 0);
	return text;
}

static uint32_t lines_in(struct str text)
{
	uint32_t n = 0;
	struct str line;

	for (; str_chr(text, '\n') < text.n; n++)
		(void)!str_cut(&text, '\n', &line);
	return n;
}

/* Without an error or a warning; what it names is pypi at most. */
static void compile_silently(const char *name, struct str text)
{
	struct buf pypi = read_file("presets/pypi.ini");
	struct str before = str_make(text.p, str_find(text, STR("preset =")));
	bool preset = before.n < text.n;
	const struct rules_source source[] = {
		{ .name = name, .text = text },
		{ .kind = RULES_SOURCE_PRESET, .name = "preset pypi",
		  .parent = 1, .line = lines_in(before) + 1,
		  .word = STR("pypi"), .text = buf_str(&pypi) },
	};
	struct told told = { .text = BUF_INIT(1 << 16) };
	struct ruleset *rs = NULL;
	int err = rules_compile(source, preset ? 2 : 1, told_one, &told, &rs);

	if (err || told.text.n > 0)
		fail_msg("%s: %d\n%s", name, err, buf_cstr(&told.text));
	rules_unref(rs);
	buf_done(&told.text);
	buf_done(&pypi);
}

static void each_example_compiles_without_a_word(void **state)
{
	const char *top = getenv("top_srcdir");
	char path[4096], name[512];
	struct dirent *e;
	unsigned seen = 0;
	DIR *dir;
	int n;

	(void)state;
	n = snprintf(path, sizeof(path), "%s/rules/examples", top ? top : ".");
	assert_true(n > 0 && (size_t)n < sizeof(path));
	dir = opendir(path);
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		struct buf text;

		if (!str_ends(str_from(e->d_name), STR(".ini")))
			continue;
		n = snprintf(name, sizeof(name), "examples/%s", e->d_name);
		assert_true(n > 0 && (size_t)n < sizeof(name));
		text = read_file(name);
		compile_silently(name, buf_str(&text));
		buf_done(&text);
		seen++;
	}
	closedir(dir);
	assert_true(seen >= 7);
}

static void the_example_of_parents_sends_flows_where_it_says(void **state)
{
	static const struct {
		const char *host, *addr, *parent;
	} cases[] = {
		{ "pypi.org", NULL, "corp" },
		{ "api.partner.example.com", NULL, "partner" },
		{ "cache.corp.example", "10.20.1.1", "none" },
	};
	struct buf text = read_file("examples/parents.ini");
	struct ruleset *rs = compile_good(buf_cstr(&text));

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ip_addr addr;
		struct rules_question q = {
			.host = str_from(cases[i].host), .port = 443,
			.addr = cases[i].addr ? &addr : NULL,
		};
		struct rules_answer a;

		if (cases[i].addr)
			assert_int_equal(ip_addr_parse(
				str_from(cases[i].addr), &addr), 0);
		rules_judge(rs, &q, &a);
		assert_int_equal(a.reason, REASON_ALLOWED);
		assert_string_equal(a.parent, cases[i].parent);
	}
	rules_unref(rs);
	buf_done(&text);
}

/* What the comments of the examples claim. */
static void the_examples_do_what_they_say(void **state)
{
	static const struct {
		const char *file;
		struct verdict v;
	} cases[] = {
		{ "examples/coding-agent.ini", { "forge.example.com", 22, NULL,
		  REASON_ALLOWED, "source-over-ssh", "ssh" } },
		{ "examples/coding-agent.ini", { "uploads.forge.example.com",
		  443,
		  NULL, REASON_HOST_DENIED, "uploads", NULL } },
		{ "examples/coding-agent.ini", { "api.tracker.example.com", 80,
		  NULL, REASON_PORT_NOT_ALLOWED, NULL, NULL } },
		{ "examples/build-cache.ini", { "cache.corp.example", 443,
		  "10.20.1.1", REASON_ALLOWED, "build-cache", "https" } },
		{ "examples/build-cache.ini", { "cache.corp.example", 443,
		  "10.20.255.1", REASON_ADDRESS_DENIED, "management", NULL } },
		{ "examples/databases.ini", { "reports.db.example.com", 5432,
		  NULL,
		  REASON_ALLOWED, "reporting", "postgres" } },
		{ "examples/databases.ini", { "a.shard.db.example.com", 6545,
		  NULL,
		  REASON_ALLOWED, "shards", "tcp" } },
		{ "examples/databases.ini", { "queue.example.com", 5671, NULL,
		  REASON_ALLOWED, "queue", "tcp" } },
		{ "examples/addresses.ini", { NULL, 8081, "127.0.0.1",
		  REASON_ALLOWED, "local-test-server", "http" } },
		{ "examples/addresses.ini", { NULL, 443, "203.0.113.158",
		  REASON_ALLOWED, "partner-network", "https" } },
		{ "examples/deny-all.ini", { "example.com", 443, NULL,
		  REASON_HOST_NOT_ALLOWED, NULL, NULL } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct buf text = read_file(cases[i].file);
		struct ruleset *rs = compile_good(buf_cstr(&text));

		check_verdicts(rs, &cases[i].v, 1);
		rules_unref(rs);
		buf_done(&text);
	}
}

static void each_policy_in_the_manual_compiles(void **state)
{
	struct buf page = read_file("penstock.ini.5");
	struct str rest = buf_str(&page), line;
	const char *start = NULL;
	unsigned seen = 0;

	(void)state;
	while (str_cut(&rest, '\n', &line)) {
		if (str_starts(line, STR(".Bd -literal")))
			start = rest.p;
		if (!str_eq(line, STR(".Ed")))
			continue;
		assert_non_null(start);
		if (*start != '[')
			continue;
		compile_silently("penstock.ini.5",
				 str_make(start, (size_t)(line.p - start)));
		seen++;
	}
	assert_true(seen >= 5);
	buf_done(&page);
}

static void the_manual_lists_the_protocols_and_no_others(void **state)
{
	static const char *const speech[] = {
		[SPEECH_TLS] = "TLS", [SPEECH_HTTP] = "HTTP",
		[SPEECH_OPAQUE] = "any",
	};
	struct buf page = read_file("penstock.ini.5");
	const char *text = buf_cstr(&page);
	const struct rules_protocol *p;
	unsigned listed = 0, known = 0;

	(void)state;
	for (; (p = rules_protocol_at(known)); known++) {
		char row[128], port[8] = "-";
		int n = 1;

		if (p->port != 0)
			n = snprintf(port, sizeof(port), "%u", p->port);
		assert_true(n > 0);
		n = snprintf(row, sizeof(row), "\n.It %s Ta %s Ta %s\n",
			     p->name, port, speech[p->speech]);
		assert_true(n > 0 && (size_t)n < sizeof(row));
		if (!strstr(text, row))
			fail_msg("the manual has no row '%s'", row);
		assert_ptr_equal(rules_protocol_by_name(str_from(p->name)), p);
	}
	text = strstr(text, "\n.Sh PROTOCOLS\n");
	assert_non_null(text);
	for (const char *end = strstr(text, "\n.El"); text && text < end;
	     text = strstr(text + 1, "\n.It "))
		listed++;
	/* The section line and the row of headings are among them. */
	assert_int_equal(listed, known + 2);
	buf_done(&page);
}

static void the_manual_has_the_limits(void **state)
{
	struct buf page = read_file("penstock.ini.5");
	const char *text = buf_cstr(&page);
	char want[128];
	int n;

	(void)state;
	n = snprintf(want, sizeof(want), "at most %u MiB of text in at most %u "
		     "files, %u rules,", RULES_TEXT_MAX >> 20,
		     RULES_SOURCES_MAX, RULES_MAX);
	assert_true(n > 0 && (size_t)n < sizeof(want));
	assert_non_null(strstr(text, want));
	buf_done(&page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_example_compiles_without_a_word),
		cmocka_unit_test(the_examples_do_what_they_say),
		cmocka_unit_test(
		the_example_of_parents_sends_flows_where_it_says),
		cmocka_unit_test(each_policy_in_the_manual_compiles),
		cmocka_unit_test(the_manual_lists_the_protocols_and_no_others),
		cmocka_unit_test(the_manual_has_the_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
