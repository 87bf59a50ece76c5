/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_test.c - options, environment and summary of penstock
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "cli/odd_name.h"
#include "cli/opts.h"
#include "cli/run_env.h"
#include "cli/run_opts.h"
#include "cli/summary.h"
#include "cli/text.h"

#define ARGS(...)	((const char *[]){ "run", __VA_ARGS__, NULL })

/* --- options ---------------------------------------------------------------- */

static int parse(const char **args, struct run_opts *o, int *first)
{
	int argc = 0;

	while (args[argc])
		argc++;
	*o = (struct run_opts)RUN_OPTS_INIT;
	return run_opts_parse(argc, (char **)(uintptr_t)args, o, first);
}

static void options_end_at_the_command(void **state)
{
	struct run_opts o;
	int first;

	(void)state;
	assert_int_equal(parse(ARGS("--quiet", "ls", "--quiet", "-l"), &o,
			       &first), 0);
	assert_int_equal(first, 2);
	assert_true(o.quiet);
	run_opts_done(&o);
	assert_int_equal(parse(ARGS("--", "--observe"), &o, &first), 0);
	assert_int_equal(first, 2);
	assert_false(o.observe);
	run_opts_done(&o);
	assert_int_equal(parse(ARGS("-q", "--json=x", "--records", "r", "--",
				    "ls"), &o, &first), 0);
	assert_string_equal(o.json_file, "x");
	assert_string_equal(o.records, "r");
	run_opts_done(&o);
	/* The value of --json stands only behind '='. */
	assert_int_equal(parse(ARGS("--json", "ls"), &o, &first), 0);
	assert_null(o.json_file);
	assert_true(o.json);
	assert_int_equal(first, 2);
	run_opts_done(&o);
}

static void wrong_options_are_refused(void **state)
{
	static const char *const bad[][6] = {
		{ "run", "--alow", "x", "ls" },
		{ "run", "--allo=x.example", "ls" },	/* no abbreviations */
		{ "run", "--quiet=1", "ls" },
		{ "run", "--policy" },
		{ "run", "--policy", "a", "--policy", "b" },
		{ "run", "--policy", "", "ls" },
		{ "run", "-x", "ls" },
		{ "run", "-qq", "ls" },
		{ "run", "--name", "-x", "ls" },
		{ "run", "--name", "a b", "ls" },
		{ "run", "--private", "--plug", "p", "ls" },
		{ "run", "--policy-name", "a", "--private", "ls" },
		{ "run", "--dns-server", "192.0.2.53", "--plug", "p" },
		{ "run", "--dns-server", "", "ls" },
		{ "run", "--dns-ca", "ca.pem", "ls" },
		{ "run", "--allow", "169.254.169.254", "ls" },
		{ "run", "--allow", "a b", "ls" },
		{ "run", "--quiet" },
		{ "run", "--" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *args[7] = { NULL };
		struct run_opts o;
		int first;

		memcpy(args, bad[i], sizeof(bad[i]));
		if (parse(args, &o, &first) != -EINVAL)
			fail_msg("taken: %s %s", args[1], args[2] ? args[2] :
				 "");
		run_opts_done(&o);
	}
}

static void each_allow_becomes_a_rule_of_its_own(void **state)
{
	struct run_opts o;
	const char *text;
	int first;

	(void)state;
	assert_int_equal(parse(ARGS("--allow", "a.example.com", "--allow",
				    "b.example.com:22", "ls"), &o, &first), 0);
	text = buf_cstr(&o.allow);
	assert_non_null(strstr(text, "a.example.com"));
	assert_non_null(strstr(text, "b.example.com"));
	assert_non_null(strstr(text, "allow-1"));
	assert_non_null(strstr(text, "allow-2"));
	run_opts_done(&o);
}

/* --- environment ------------------------------------------------------------ */

static const char *value_of(char **env, const char *name)
{
	size_t n = strlen(name);

	for (; *env; env++) {
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	}
	return NULL;
}

static size_t times_in(char **env, const char *name)
{
	size_t n = strlen(name), found = 0;

	for (; *env; env++)
		found += strncmp(*env, name, n) == 0 && (*env)[n] == '=';
	return found;
}

static char *const callers[] = {
	(char *)(uintptr_t)"PATH=/bin",
	(char *)(uintptr_t)"https_proxy=http://192.0.2.9:3128",
	(char *)(uintptr_t)"Https_Proxy=http://192.0.2.9:3128",
	(char *)(uintptr_t)"ALL_PROXY=socks5h://192.0.2.9",
	(char *)(uintptr_t)"NO_PROXY=.example.com,10.0.0.0/8",
	(char *)(uintptr_t)"npm_config_https_proxy=http://192.0.2.9:3128",
	(char *)(uintptr_t)"SSH_AUTH_SOCK=/run/user/1000/agent",
	(char *)(uintptr_t)"DBUS_SESSION_BUS_ADDRESS=unix:path=/run/bus",
	(char *)(uintptr_t)"DOCKER_HOST=unix:///run/docker.sock",
	(char *)(uintptr_t)"TMPDIR=/var/tmp/mine",
	(char *)(uintptr_t)"XDG_RUNTIME_DIR=/run/user/1000",
	(char *)(uintptr_t)"HOME=/home/old",
	(char *)(uintptr_t)"USER=old",
	(char *)(uintptr_t)"PENSTOCK_RUN=fake",
	(char *)(uintptr_t)"LANG=C.UTF-8",
	(char *)(uintptr_t)"EMPTY=",
	(char *)(uintptr_t)"no equals sign",
	NULL
};

/* CLI-01, CLI-04, CLI-05, CLI-07, SBX-29 */
static void one_proxy_inside_and_none_of_the_callers(void **state)
{
	static const char *const ours[] = { "http_proxy", "HTTP_PROXY",
					    "https_proxy", "HTTPS_PROXY" };
	const struct run_env_config c = {
		.from = callers, .run_id = "abc", .home = "/home/u",
		.user = "sandbox", .runtime_dir = "/run/user/sandbox",
		.proxy = true,
	};
	const char *ignored = NULL;
	char **env;

	(void)state;
	assert_int_equal(run_env_make(&c, &env, &ignored), 0);
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++) {
		assert_string_equal(value_of(env, ours[i]),
				    "http://127.0.0.1:3128");
		assert_int_equal(times_in(env, ours[i]), 1);
	}
	assert_string_equal(value_of(env, "no_proxy"),
			    "localhost,127.0.0.1,::1");
	assert_string_equal(value_of(env, "NO_PROXY"),
			    "localhost,127.0.0.1,::1");
	assert_null(value_of(env, "ALL_PROXY"));
	assert_null(value_of(env, "all_proxy"));
	assert_null(value_of(env, "Https_Proxy"));
	assert_null(value_of(env, "npm_config_https_proxy"));
	assert_non_null(ignored);
	run_env_free(env);
}

/* CLI-07: for who asks for it, and then with what goes direct. */
static void socks_is_named_only_where_it_is_asked_for(void **state)
{
	struct run_env_config c = {
		.from = callers, .run_id = "abc", .home = "/home/u",
		.user = "sandbox", .runtime_dir = "/run/user/sandbox",
		.socks = true,
	};
	const char *ignored;
	char **env;

	(void)state;
	for (int both = 0; both < 2; both++) {
		c.proxy = both;
		assert_int_equal(run_env_make(&c, &env, &ignored), 0);
		assert_string_equal(value_of(env, "ALL_PROXY"),
				    "socks5h://127.0.0.1:1080");
		assert_string_equal(value_of(env, "all_proxy"),
				    "socks5h://127.0.0.1:1080");
		assert_int_equal(times_in(env, "ALL_PROXY"), 1);
		assert_string_equal(value_of(env, "NO_PROXY"),
				    "localhost,127.0.0.1,::1");
		assert_int_equal(times_in(env, "https_proxy"), both);
		run_env_free(env);
	}
}

static void what_leads_to_the_host_is_left_out(void **state)
{
	static const char *const gone[] = { "SSH_AUTH_SOCK", "DOCKER_HOST",
		"DBUS_SESSION_BUS_ADDRESS", "TMPDIR", "http_proxy", "NO_PROXY",
		"NODE_USE_ENV_PROXY" };
	const struct run_env_config c = {
		.from = callers, .run_id = "abc", .home = "/home/u",
		.user = "sandbox", .runtime_dir = "/run/user/sandbox",
	};
	const char *ignored;
	char **env;

	(void)state;
	assert_int_equal(run_env_make(&c, &env, &ignored), 0);
	for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
		assert_null(value_of(env, gone[i]));
	assert_string_equal(value_of(env, "PATH"), "/bin");
	assert_string_equal(value_of(env, "LANG"), "C.UTF-8");
	assert_string_equal(value_of(env, "EMPTY"), "");
	assert_string_equal(value_of(env, "HOME"), "/home/u");
	assert_string_equal(value_of(env, "USER"), "sandbox");
	assert_int_equal(times_in(env, "USER"), 1);
	assert_string_equal(value_of(env, "XDG_RUNTIME_DIR"),
			    "/run/user/sandbox");
	assert_string_equal(value_of(env, "PENSTOCK_RUN"), "abc");
	assert_string_equal(value_of(env, "PENSTOCK_SANDBOX"), "1");
	run_env_free(env);
}

/* --- summary ------------------------------------------------------------------ */

static void sizes_read_as_people_say_them(void **state)
{
	static const struct { uint64_t bytes; const char *text; } rows[] = {
		{ 0, "0 B" }, { 517, "517 B" }, { 999, "999 B" },
		{ 1000, "1 kB" }, { 41230, "41 kB" }, { 999499, "999 kB" },
		{ 999500, "1.0 MB" }, { 1234567, "1.2 MB" },
		{ 9949999, "9.9 MB" }, { 9950000, "10 MB" },
		{ 64000000000, "64 GB" }, { UINT64_MAX, "18447 PB" },
	};
	char text[TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		text_size(rows[i].bytes, text);
		assert_string_equal(text, rows[i].text);
	}
}

#define WORD(s)	((char *)(uintptr_t)(s))

static struct query_row rows[] = {
	{ WORD("pypi.org"), 443, false, false, WORD(""), WORD("tcp"), 2, 1000,
	  41000 },
	{ WORD("telemetry.example.com"), 443, true, false,
	  WORD("host_not_allowed"), WORD("tcp"), 3, 0, 0 },
	{ WORD("telemetry.example.com"), 80, true, false,
	  WORD("host_not_allowed"), WORD("tcp"), 1, 0, 0 },
	{ WORD("git.example.com"), 22, true, false, WORD("port_not_allowed"),
	  WORD("tcp"), 1, 0, 0 },
	{ WORD("169.254.169.254"), 80, true, false, WORD("address_metadata"),
	  WORD("tcp"), 1, 0, 0 },
	{ WORD("203.0.113.9"), 443, true, false, WORD("transport_not_allowed"),
	  WORD("udp"), 4, 0, 0 },
	{ WORD("none.example.com"), 443, true, false, WORD("dns_nxdomain"),
	  WORD("tcp"), 2, 0, 0 },
};

/* What --allow could not open is never proposed, whatever was refused. */
static void the_summary_proposes_nothing_in_vain(void **state)
{
	static const char *const vain[] = {
		"localhost", "db.localhost", "printer.local", "x.invalid",
		"metadata.google.internal", "metadata.goog",
		"vault.corp.internal", "nas.home.arpa", "hidden.onion",
		"1.2.0.192.in-addr.arpa", "1.ip6.arpa", "not a name", "co.uk",
		"a..b", "127.0.0.1", "::1",
	};
	static const char *const fine[] = {
		"example.com", "internal.example.com", "localhost.example.com",
		"home.example.org", "metadata.example.net",
	};
	const struct launch_result result = { .audit_ok = true };
	struct query_row row[] = {
		{ WORD("localhost"), 8080, true, false,
		  WORD("host_not_allowed"), WORD("tcp"), 2, 0, 0 },
		{ WORD("metadata.google.internal"), 80, true, false,
		  WORD("host_not_allowed"), WORD("tcp"), 1, 0, 0 },
		{ WORD("web.example.com"), 443, true, false,
		  WORD("host_not_allowed"), WORD("tcp"), 1, 0, 0 },
	};
	struct query_summary flows = { .row = row, .n = ARRAY_SIZE(row) };
	const struct summary s = {
		.run = "7f3a91", .result = &result, .flows = &flows,
		.records = "/x/audit.jsonl",
	};
	CLEANUP(buf_done) struct buf out = BUF_INIT(SUMMARY_MAX);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(vain); i++)
		if (!vain_name(vain[i]))
			fail_msg("proposed: %s", vain[i]);
	for (size_t i = 0; i < ARRAY_SIZE(fine); i++)
		if (vain_name(fine[i]))
			fail_msg("not proposed: %s", fine[i]);
	assert_int_equal(summary_text(&s, &out), 0);
	assert_non_null(strstr(buf_cstr(&out), "refused   localhost:8080"));
	assert_non_null(strstr(buf_cstr(&out),
		"  to allow  --allow web.example.com\n"
		"            (not localhost and its like: --allow opens names "
		"of the Internet only)\n"));
	assert_null(strstr(buf_cstr(&out), "--allow localhost"));
	/* Where there is nothing else, no command is shown at all. */
	flows.n = 2;
	buf_consume(&out, out.n);
	assert_int_equal(summary_text(&s, &out), 0);
	assert_non_null(strstr(buf_cstr(&out), "  to allow  (not localhost"));
	assert_null(strstr(buf_cstr(&out), "--allow m"));
}

static void the_summary_says_what_to_allow_and_what_never(void **state)
{
	const struct launch_result result = { .exit_code = 4, .audit_ok = true };
	const struct query_summary flows = { .row = rows,
					     .n = ARRAY_SIZE(rows),
					     .full = 3, .over_budget = 9 };
	struct summary s = {
		.run = "7f3a91", .result = &result, .flows = &flows,
		.duration_ms = 4210, .records = "/home/u/.local/x/audit.jsonl",
		.home = "/home/u",
	};
	struct buf out = BUF_INIT(SUMMARY_MAX);
	const char *text;

	(void)state;
	s.has_file = true;
	assert_int_equal(summary_text(&s, &out), 0);
	assert_non_null(strstr(buf_cstr(&out), "'extend = yes'"));
	assert_null(strstr(buf_cstr(&out), "--policy-name"));
	buf_done(&out);
	s.has_file = false;
	s.has_name = true;
	assert_int_equal(summary_text(&s, &out), 0);
	assert_non_null(strstr(buf_cstr(&out), "(not beside --policy-name: a "
			       "rule in the service's policy does it)\n"));
	buf_done(&out);
	s.has_name = false;
	assert_int_equal(summary_text(&s, &out), 0);
	text = buf_cstr(&out);
	assert_null(strstr(text, "extend"));
	assert_non_null(strstr(text, "penstock: run 7f3a91  exit 4  4.2 s\n"));
	assert_non_null(strstr(text, "reached   pypi.org:443"));
	assert_non_null(strstr(text, "2 flows  41 kB down  1 kB up"));
	assert_non_null(strstr(text, "host_not_allowed  x3"));
	assert_non_null(strstr(text, "address_metadata  x1"));
	assert_non_null(strstr(text, "transport_not_allowed  x4  udp"));
	assert_non_null(strstr(text, "to allow  --allow telemetry.example.com "
				     "--allow git.example.com:22\n"));
	assert_null(strstr(text, "--allow 169.254"));
	/* What the network could not do is no refusal. */
	assert_non_null(strstr(text, "\n  failed    none.example.com:443   "));
	assert_non_null(strstr(text, "dns_nxdomain  x2\n"));
	assert_non_null(strstr(text, "  warning   as many connections as a "
				     "sandbox may have were open: new ones "
				     "waited  x3\n"));
	assert_non_null(strstr(text, "  warning   more names were looked up "
				     "than a run may: refused x9\n"));
	assert_non_null(strstr(text, "record    ~/.local/x/audit.jsonl\n"));
	buf_done(&out);
	assert_int_equal(summary_json(&s, &out), 0);
	text = buf_cstr(&out);
	assert_non_null(strstr(text, "\"exit\":4"));
	assert_non_null(strstr(text, "\"connections_full\":3"));
	assert_non_null(strstr(text, "\"over_budget\":9"));
	assert_non_null(strstr(text, "\"host\":\"pypi.org\""));
	assert_non_null(strstr(text, "\"failed\":[{\"host\":"
				     "\"none.example.com\""));
	buf_done(&out);
}

static void names_that_nobody_would_write_are_odd(void **state)
{
	static const char *const odd[] = {
		"nbswy3dpeb3w64tmmqqho33snrsca5dimuqgk3te.attacker.example.net",
		"4f2a9c81d7e3b05f.attacker.example.net",
		"a.7e1d2c9b4a6f.b.example.org",
		"kqxzvwpbtrmnsdfghlqw.example.org",
	};
	static const char *const ordinary[] = {
		"files.pythonhosted.org", "pypi.org", "xn--bcher-kva.example",
		"d111111abcdef8.cloudfront.net", "api2.github.com",
		"ec2-54-12-33-1.eu-west-1.compute.amazonaws.com",
		"my-team-artifacts-production-eu.s3.amazonaws.com",
		"registry-1.docker.io", "production.cloudflare.docker.com",
		"objects.githubusercontent.com", "deb.debian.org",
		"localhost",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		assert_true(odd_name(odd[i]));
	for (size_t i = 0; i < ARRAY_SIZE(ordinary); i++)
		assert_false(odd_name(ordinary[i]));
}

/* The summary of @n refused names below one parent, and one beside them. */
static void summarise_siblings(size_t n, struct buf *out)
{
	static const struct launch_result result = { .audit_ok = true };
	char host[ODD_SIBLINGS_MAX + 1][32];
	struct query_row row[ODD_SIBLINGS_MAX + 2];
	const struct query_summary flows = { .row = row, .n = n + 1 };
	const struct summary s = { .run = "7f3a91", .result = &result,
				   .flows = &flows, .records = "/r" };

	for (size_t i = 0; i < n; i++) {
		assert_true(snprintf(host[i], sizeof(host[i]),
				     "word%zu.drop.example.net", i) > 0);
		row[i] = rows[1];
		row[i].host = host[i];
	}
	row[n] = rows[1];
	assert_int_equal(summary_text(&s, out), 0);
}

static void generated_names_are_not_proposed(void **state)
{
	struct buf out = BUF_INIT(SUMMARY_MAX);
	const char *text;

	(void)state;
	summarise_siblings(ODD_SIBLINGS_MAX, &out);
	text = buf_cstr(&out);
	assert_non_null(strstr(text, " --allow word7.drop.example.net"));
	assert_null(strstr(text, "generated"));
	buf_done(&out);
	summarise_siblings(ODD_SIBLINGS_MAX + 1, &out);
	text = buf_cstr(&out);
	assert_null(strstr(text, "--allow word"));
	assert_non_null(strstr(text,
		"  to allow  --allow telemetry.example.com\n"
		"            (not names like word0.drop.example.net, which "
		"look generated: data can leave in a name)\n"));
	buf_done(&out);
}

/* --- parents ---------------------------------------------------------------- */

static void expect_url(const char *text, const char *url, const char *login)
{
	struct buf u = BUF_INIT(256), l = BUF_INIT(256);

	assert_null(run_parent_url(str_from(text), &u, &l));
	assert_string_equal(buf_cstr(&u), url);
	assert_string_equal(buf_cstr(&l), login);
	buf_done(&u);
	buf_done(&l);
}

static void a_proxy_is_read_as_people_write_it(void **state)
{
	(void)state;
	expect_url("http://proxy:3128", "http://proxy:3128", "");
	expect_url("proxy.example", "http://proxy.example:80", "");
	expect_url("http://u%40corp:p%3a@x@proxy:3128/",
		   "http://proxy:3128", "u@corp:p:@x");
	expect_url("socks5h://me@[2001:db8::1]", "socks5h://[2001:db8::1]:1080",
		   "me:");
	expect_url("http://[2001:db8::1]:8080/x", "http://[2001:db8::1]:8080",
		   "");
}

static void exceptions_are_read_as_clients_agree_on(void **state)
{
	struct buf out = BUF_INIT(1024);
	bool all;

	(void)state;
	assert_int_equal(run_parent_bypass(STR("localhost,.corp.example, "
				"*.x.example:8080,10.0.0.0/8,[::1],a_b/,"),
				&out, &all), 1);
	assert_false(all);
	assert_string_equal(buf_cstr(&out), "localhost *.localhost "
			    "corp.example *.corp.example x.example "
			    "*.x.example 10.0.0.0/8 ::1 ");
	assert_int_equal(run_parent_bypass(STR("*"), &out, &all), 0);
	assert_true(all);
	buf_done(&out);
}

static void options_of_a_parent_come_behind_it(void **state)
{
	struct run_opts o;
	int first;

	(void)state;
	assert_int_equal(parse(ARGS("--parent", "corp=http://p:1",
				    "--parent-resolve", "parent", "true"), &o,
			       &first), 0);
	assert_int_equal(o.parent.n, 4);
	assert_string_equal(o.parent.word[3], "parent");
	run_opts_done(&o);
	assert_int_equal(parse(ARGS("--parent-resolve", "here", "true"), &o,
			       &first), -EINVAL);
	run_opts_done(&o);
	assert_int_equal(parse(ARGS("--parent", "http://p:1", "--plug", "/x",
				    "true"), &o, &first), -EINVAL);
	run_opts_done(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_end_at_the_command),
		cmocka_unit_test(wrong_options_are_refused),
		cmocka_unit_test(each_allow_becomes_a_rule_of_its_own),
		cmocka_unit_test(one_proxy_inside_and_none_of_the_callers),
		cmocka_unit_test(socks_is_named_only_where_it_is_asked_for),
		cmocka_unit_test(what_leads_to_the_host_is_left_out),
		cmocka_unit_test(sizes_read_as_people_say_them),
		cmocka_unit_test(the_summary_proposes_nothing_in_vain),
		cmocka_unit_test(the_summary_says_what_to_allow_and_what_never),
		cmocka_unit_test(names_that_nobody_would_write_are_odd),
		cmocka_unit_test(generated_names_are_not_proposed),
		cmocka_unit_test(a_proxy_is_read_as_people_write_it),
		cmocka_unit_test(exceptions_are_read_as_clients_agree_on),
		cmocka_unit_test(options_of_a_parent_come_behind_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
