/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_check_test.c - what is said of a policy that is wrong, and where
 */
#include <errno.h>

#include "base/mem.h"
#include "rules/rules_ast.h"
#include "tests/unit/rules_kit.h"

struct fault {
	const char *text;
	const char *told;	/* a line of it, or its beginning */
};

static void check_told(const struct fault *f, bool error)
{
	struct told told;
	struct ruleset *rs = compile_told(f->text, &told);
	const char *all = buf_cstr(&told.text);

	assert_non_null(all);
	if ((rs == NULL) != error)
		fail_msg("%s:\n%s\ntold: %s", rs ? "taken" : "refused", f->text,
			 all);
	if (!strstr(all, f->told))
		fail_msg("of:\n%s\ntold: %s\nwanted: %s", f->text, all,
			 f->told);
	rules_unref(rs);
	buf_done(&told.text);
}

static void check_errors(const struct fault *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_told(&f[i], true);
}

static void check_warnings(const struct fault *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check_told(&f[i], false);
}

/* Nothing at all is said. */
static void check_silent(const char *text)
{
	struct told told;
	struct ruleset *rs = compile_told(text, &told);

	if (told.text.n > 0)
		fail_msg("of:\n%s\ntold: %s", text, buf_cstr(&told.text));
	rules_unref(rs);
	buf_done(&told.text);
}

#define ALLOW	"[allow a]\n"
#define HOSTS	"[allow a]\nhosts = "
#define ADDRS	"[allow a]\nreason = x\nowner = y\naddresses = "
#define PORTS	"[allow a]\nhosts = example.com\nports = "

static void sections_and_keys_are_known_or_refused(void **state)
{
	static const struct fault f[] = {
		{ "[alow x]\n", "p.ini:1:0: error: unknown section [alow x]; "
				"did "
		  "you mean [allow NAME]?" },
		{ "[polcy]\n", "1:0: error: unknown section [polcy]; did you "
			       "mean "
		  "[policy]?" },
		{ "[something]\n", "1:0: error: unknown section [something]; "
				   "there "
		  "are" },
		{ "[ALLOW x]\n", "unknown section [ALLOW x]; did you mean" },
		{ "[allow]\nhosts = a.example\n", "1:0: error: [allow] has no "
						  "name" },
		{ "[deny]\n", "1:0: error: [deny] has no name" },
		{ "[allow a b]\n",
		  "1:0: error: 'a b' cannot be a rule's name" },
		{ "[allow \"a\"]\n", "cannot be a rule's name" },
		{ "[policy x]\n", "1:0: error: [policy] has no name in its" },
		{ "[policy]\n[policy]\n", "2:0: error: [policy] stands here "
					  "again, "
		  "first in p.ini:1" },
		{ HOSTS "a.example\n[deny a]\nhosts = b.example\n[allow a]\n"
		  "hosts = c.example\n",
		  "5:0: error: [allow a] stands here again, first in p.ini:1" },
		{ HOSTS "a.example\n[allow  a ]\nhosts = c.example\n",
		  "3:0: error: [allow a] stands here again, first in p.ini:1" },
		/* ux.md */
		{ "[allow issue-tracker]\nhost = api.example.com\n",
		  "2:0: error: unknown key 'host' in [allow issue-tracker]; "
		  "did "
		  "you mean 'hosts'?" },
		{ ALLOW "frobnicate = 1\n", "2:0: error: unknown key "
		  "'frobnicate' in [allow a]; penstock.ini(5)" },
		{ ALLOW "name = x\n", "2:0: error: 'name' has no place in "
		  "[allow a]; it belongs in [policy]" },
		{ ALLOW "mode = enforce\n", "2:8: error: 'enforce' is no mode "
		  "of a rule; there is 'observe'" },
		{ "[limit]\n", "1:0: error: unknown section [limit]; did you "
		  "mean [limits]?" },
		{ "[credental x]\n", "did you mean [credential NAME]?" },
		{ "[dns x]\n", "1:0: error: [dns] has no name in its brackets" },
		{ "[dns]\n[dns]\n", "2:0: error: [dns] stands here again, first "
		  "in p.ini:1" },
		{ "[credential]\n", "1:0: error: [credential] has no name" },
		{ "[credential a]\nfile = /x\n[credential a]\n",
		  "3:0: error: [credential a] stands here again" },
		{ "[policy]\nhosts = a.example\n", "2:0: error: 'hosts' has no "
		  "place in [policy]; it belongs in [allow NAME]" },
		{ "hosts = a.example\n", "1:0: error: 'hosts' stands before "
					 "the "
		  "first section" },
		{ "[policy]\nname =\n", "2:0: error: 'name' is empty" },
		{ HOSTS "\n", "2:0: error: 'hosts' is empty" },
		{ "[policy]\nname = a\nname = b\n", "3:0: error: 'name' stands "
						    "in "
		  "[policy] twice, first in line 2" },
		{ ALLOW "reason = a\nreason = b\n", "3:0: error: 'reason' "
						    "stands "
		  "in [allow a] twice, first in line 2" },
		{ HOSTS "a.example\nprotocol = ssh\nprotocol = http\n",
		  "4:0: error: 'protocol' stands in [allow a] twice" },
		{ "[policy]\nmode = observ\n", "2:8: error: unknown mode "
					       "'observ'; "
		  "did you mean 'observe'?" },
		{ "[policy]\nmode = on\n", "2:8: error: unknown mode 'on'; "
					   "write "
		  "'enforce' or 'observe'" },
		{ "[policy]\nname = two words\n", "2:8: error: 'two words' "
						  "cannot "
		  "be a policy's name" },
		{ "[policy]\nname: x\n", "2:5: error: write 'key = value'" },
		{ "[policy\n", "1:8: error: a section line must end" },
		{ HOSTS "a.example\n  b.example\n", "3:1: error: a line that "
		  "begins with a blank continues nothing" },
	};

	(void)state;
	check_errors(f, ARRAY_SIZE(f));
}

static void hosts_are_refused_with_the_mend(void **state)
{
	static const struct fault f[] = {
		/* POL-12 */
		{ HOSTS "*\n", "2:9: error: '*' would allow every host" },
		{ HOSTS "*.com\n", "2:9: error: '*.com' would allow a whole "
		  "top-level domain" },
		{ HOSTS "com\n",
		  "2:9: error: 'com' is a top-level domain alone" },
		{ HOSTS "a.example *.com\n", "2:19: error: '*.com'" },
		{ HOSTS "10.0.0.1\n", "is an address, not a name; write it "
				      "under "
		  "'addresses'" },
		{ HOSTS "2600::1\n", "is an address" },
		{ HOSTS "[2600::1]\n", "is an address" },
		{ HOSTS "10.0.0.0/8\n", "is a network" },
		{ HOSTS "https://a.example/\n", "is a URL" },
		{ HOSTS "a.example/x\n", "has a path in it" },
		{ HOSTS "a.example:22\n", "has a port in it; write the port "
					  "under "
		  "'ports'" },
		{ HOSTS "a.example, b.example\n", "has a comma in it; separate "
		  "words by blanks" },
		{ HOSTS "\"a.example\"\n", "has a quote in it" },
		{ HOSTS "me@a.example\n", "has a user name in it" },
		{ HOSTS "a%2eexample\n", "has a '%' in it" },
		{ HOSTS "^a\\.example$\n", "looks like a regular expression" },
		{ HOSTS "(a|b).example\n", "looks like a regular expression" },
		{ HOSTS "a.example ; the first\n", "2:19: error: ';' looks "
						   "like a "
		  "comment; comments stand on lines of their own" },
		{ HOSTS "a.example # x\n", "looks like a comment" },
		{ HOSTS ".a.example\n", "begins with a dot; write *.NAME" },
		{ HOSTS "a*.example.com\n", "has a '*' inside" },
		{ HOSTS "a.*.example.com\n", "has a '*' inside" },
		{ HOSTS "**.example.com\n", "has a '*' inside" },
		{ HOSTS "*.*.example.com\n", "has a '*' inside" },
		{ HOSTS "*example.com\n", "has a '*' inside" },
		{ HOSTS "a..example\n", "has an empty label" },
		{ HOSTS "a.example..\n", "has an empty label" },
		{ HOSTS "*.\n", "'*.' is no host name" },
		{ HOSTS "xn--example-.com\n", "has an \"xn--\" label that is "
					      "not" },
		{ HOSTS "127.1\n", "is no host name" },
		{ HOSTS "0x7f000001\n", "is no host name" },
		{ HOSTS "a!b.example\n", "is no host name" },
		{ HOSTS "printer.local\n", "is never asked of the DNS" },
		{ HOSTS "localhost\n", "is never asked of the DNS" },
		/* 64 bytes */
		{ HOSTS "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		  "aaaaaaaaaaaaaaaaaaaaaaaa.example\n",
		  "has a label of more than 63 bytes" },
		/* In a deny rule, too. */
		{ "[deny a]\nhosts = a,b\n", "has a comma in it" },
	};

	(void)state;
	check_errors(f, ARRAY_SIZE(f));
}

static void a_deny_may_say_more_than_an_allow(void **state)
{
	(void)state;
	check_silent("[deny a]\nhosts = *\n");
	check_silent("[deny a]\nhosts = *.com com localhost\n");
	check_silent("[deny a]\naddresses = 0.0.0.0/0 ::/0\n");
	check_silent("[deny a]\naddresses = 10.0.0.0/8\n");
	check_silent("[deny a]\nhosts = a.example\nprotocol = ssh\n");
}

static void addresses_ports_and_protocols_are_checked(void **state)
{
	static const struct fault f[] = {
		{ ADDRS "10.0.0.1/8\n", "4:13: error: '10.0.0.1/8' has bits "
					"set "
		  "behind its prefix" },
		{ ADDRS "010.0.0.1\n", "is no address" },
		{ ADDRS "example.com\n", "is no address" },
		{ ADDRS "fe80::1%eth0\n", "has a zone" },
		{ ADDRS "[::1]\n", "has brackets" },
		{ ADDRS "10.0.0.2-10.0.0.1\n", "ends before it begins" },
		{ ADDRS "10.0.0.1-::1\n", "mixes IPv4 and IPv6" },
		{ ADDRS "::ffff:10.0.0.1\n", "is an IPv4 address written as "
					     "IPv6" },
		{ ADDRS "198.18.0.1\n", "touches 198.18.0.0/15" },
		{ ADDRS "fd00::/8\n", "touches 198.18.0.0/15 or" },
		{ ADDRS "*\n", "is no address; all of them are" },
		{ "[deny a]\naddresses = 198.19.0.0/16\n", "touches" },
		{ PORTS "0\n", "3:9: error: '0' is no port" },
		{ PORTS "22 65536\n", "3:12: error: '65536' is no port" },
		{ PORTS "https\n", "is no port; write numbers" },
		{ PORTS "90-80\n", "ends before it begins" },
		{ PORTS "22,80\n", "has a comma in it" },
		{ HOSTS "a.example\nprotocol = htps\n", "3:12: error: unknown "
		  "protocol 'htps'; did you mean 'https'?" },
		{ HOSTS "a.example\nprotocol = gopher-ng\n", "unknown protocol "
		  "'gopher-ng'; write 'tcp' with 'ports'" },
		{ HOSTS "a.example\nprotocol = tcp\n", "3:0: error: protocol "
						       "'tcp' "
		  "has no port of its own; write 'ports' in [allow a]" },
		{ "[deny a]\nhosts = a.example\nprotocol = ssh\nports = 22\n",
		  "3:0: error: [deny a] is judged by ports" },
		{ "[deny a]\nhosts = a.example\nprotocol = tcp\n",
		  "has no port" },
		{ ALLOW "reason = x\n", "1:0: error: [allow a] has nothing to "
		  "match on" },
		{ ALLOW, "1:0: error: [allow a] has nothing to match on" },
		{ "[deny a]\nports = 22\n", "1:0: error: [deny a] has nothing "
					    "to "
		  "match on; give it 'hosts' or 'addresses' (hosts = *" },
		{ ALLOW "addresses = 10.20.0.0/16\n", "2:0: error: [allow a] "
						      "opens "
		  "addresses that are not public ('10.20.0.0/16': private); "
		  "say "
		  "why with 'reason'" },
		{ HOSTS "a.example\naddresses = 9.0.0.0-10.0.0.0\n",
		  "opens addresses that are not public" },
		{ ALLOW "addresses = 169.254.169.254\n", "metadata" },
	};

	(void)state;
	check_errors(f, ARRAY_SIZE(f));
}

static void a_broken_rule_is_told_once(void **state)
{
	struct told told;

	(void)state;
	assert_null(compile_told("[allow a]\nhost = a.example\n", &told));
	assert_int_equal(told.errors, 1);
	buf_done(&told.text);
	assert_null(compile_told(HOSTS "*.com *\n", &told));
	assert_int_equal(told.errors, 2);
	buf_done(&told.text);
	/* What stands below a section that was refused is passed over. */
	assert_null(compile_told("[alow a]\nhosts = *\nxyz = 1\n", &told));
	assert_int_equal(told.errors, 1);
	buf_done(&told.text);
}

static void every_fault_is_told_in_one_go(void **state)
{
	struct told told;

	(void)state;
	assert_null(compile_told("[policy]\nmode = x\n[allow a]\nhosts = *\n"
				 "[deny b]\nhost = a.example\n[x]\n", &told));
	assert_int_equal(told.errors, 4);
	buf_done(&told.text);
}

static void doubts_are_warnings(void **state)
{
	static const struct fault f[] = {
		{ "[policy]\n", "1:0: warning: [policy] is empty" },
		{ "[policy]\nmode = observe\n", "2:0: warning: 'mode = "
						"observe' lets" },
		/* ux.md */
		{ "[allow build-cache]\nhosts = cache.example\n"
		  "addresses = 10.20.0.0/16\nreason = x\n",
		  "1:0: warning: [allow build-cache] opens a private range and "
		  "has no 'owner'" },
		{ ADDRS "169.254.0.0/16\n", "4:0: warning: '169.254.0.0/16' "
					    "does "
		  "not open 169.254.169.254" },
		{ HOSTS "a.example a.example\n", "2:0: warning: 'a.example' "
						 "stands "
		  "in [allow a] twice" },
		{ HOSTS "*.b.example c.b.example\n", "2:0: warning: "
						     "'c.b.example' "
		  "adds nothing: a wildcard in the same rule covers it" },
	};

	(void)state;
	check_warnings(f, ARRAY_SIZE(f));
}

/* POL-10 */
static void what_a_deny_shuts_is_told(void **state)
{
	static const struct fault f[] = {
		{ HOSTS "api.example.com\n[deny all]\nhosts = *\n",
		  "1:0: warning: [allow a] can never match: [deny all] "
		  "(p.ini:3) "
		  "denies all of it" },
		{ HOSTS "x.example.com *.y.example.com\n[deny d]\n"
		  "hosts = *.example.com\n",
		  "1:0: warning: [allow a] can never match: [deny d]" },
		{ HOSTS "x.example.com other.example.net\n[deny d]\n"
		  "hosts = *.example.com\n",
		  "2:0: warning: 'x.example.com' in [allow a] can never be "
		  "reached: "
		  "[deny d] (p.ini:3) denies it" },
		{ PORTS "22\n[deny d]\nhosts = example.com\nports = 1-100\n",
		  "1:0: warning: [allow a] can never match" },
		{ "[allow a]\naddresses = 8.8.8.0/24\n[deny d]\n"
		  "addresses = 8.0.0.0/8\n", "1:0: warning: [allow a] can "
					     "never "
		  "match: [deny d] (p.ini:3)" },
		{ "[allow a]\naddresses = 8.8.8.0/24\n[deny d]\nhosts = *\n",
		  "1:0: warning: [allow a] can never match" },
	};

	(void)state;
	check_warnings(f, ARRAY_SIZE(f));
	/* Something is left. */
	check_silent(HOSTS "*.example.com\n[deny d]\nhosts = x.example.com\n");
	check_silent(PORTS "22 443\n[deny d]\nhosts = example.com\n"
		     "ports = 22\n");
	check_silent(HOSTS "example.com\n[deny d]\nhosts = *.example.com\n");
	check_silent(HOSTS "a.example\n[deny d]\nhosts = *\n"
		     "addresses = 8.8.8.8\n");
	check_silent("[allow a]\naddresses = 8.8.8.0/24\n[deny d]\n"
		     "addresses = 8.8.8.8\n");
}

static void what_another_rule_says_already_is_told(void **state)
{
	static const struct fault f[] = {
		{ HOSTS "*.example.com\n[allow b]\nhosts = x.example.com\n",
		  "3:0: warning: [allow b] adds nothing: [allow a] (p.ini:1) "
		  "covers it" },
		{ "[allow b]\nhosts = x.example.com\n" HOSTS "*.example.com\n",
		  "1:0: warning: [allow b] adds nothing: [allow a] (p.ini:3)" },
		{ HOSTS "*.example.com\n[allow b]\n"
		  "hosts = x.example.com other.example.net\n",
		  "4:0: warning: 'x.example.com' in [allow b] adds nothing" },
		{ HOSTS "x.example.com\n[allow b]\nhosts = x.example.com\n",
		  "3:0: warning: [allow b] adds nothing: [allow a] (p.ini:1)" },
		{ HOSTS "x.example.com\n[allow b]\nhosts = x.example.com\n"
		  "protocol = https\n",
		  "3:0: warning: [allow b] adds nothing" },
		{ "[deny a]\nhosts = *.example.com\n[deny b]\n"
		  "hosts = x.example.com\nports = 22\n",
		  "3:0: warning: [deny b] adds nothing: [deny a]" },
		{ "[deny a]\nhosts = x.example.com\n[deny b]\n"
		  "hosts = x.example.com\naddresses = 8.8.8.8\n",
		  "3:0: warning: [deny b] adds nothing: [deny a]" },
		{ "[allow a]\naddresses = 8.8.0.0/16\n[allow b]\n"
		  "addresses = 8.8.8.8\n", "3:0: warning: [allow b] adds "
					   "nothing" },
	};
	struct told told;

	(void)state;
	check_warnings(f, ARRAY_SIZE(f));
	/* Of two that are the same, one is told of. */
	rules_unref(compile_told(HOSTS "x.example.com\n[allow b]\n"
				 "hosts = x.example.com\n", &told));
	assert_int_equal(told.warnings, 1);
	buf_done(&told.text);
	check_silent(HOSTS "*.example.com\n[allow b]\nhosts = x.example.com\n"
		     "ports = 22 443\n");
	check_silent(HOSTS "*.example.com\n[allow b]\nhosts = example.com\n");
	check_silent(HOSTS "*.example.com\n[allow b]\nhosts = x.example.com\n"
		     "ports = 443\nprotocol = tcp\n");
	check_silent(HOSTS "x.example.com\n[allow b]\nhosts = x.example.com\n"
		     "addresses = 10.0.0.1\nreason = x\nowner = y\n");
	check_silent("[allow a]\naddresses = 8.8.8.8\n[allow b]\n"
		     "addresses = 8.8.0.0/16\nports = 22\n");
}

static void a_protocol_never_hangs_on_the_address(void **state)
{
	static const struct fault torn[] = {
		{ HOSTS "x.example.com\n[allow b]\nhosts = x.example.com\n"
		  "ports = 443\nprotocol = tcp\naddresses = 10.0.0.1\n"
		  "reason = x\nowner = y\n",
		  "4:0: error: [allow b] and [allow a] (p.ini:1) give port 443 "
		  "of "
		  "the same host different protocols (tcp, https)" },
		{ HOSTS "*.example.com\n[allow b]\nhosts = x.example.com\n"
		  "ports = 1-65535\nprotocol = tcp\naddresses = 10.0.0.1\n"
		  "reason = x\nowner = y\n", "different protocols" },
		{ "[allow b]\nhosts = *.example.com\naddresses = 8.8.8.8\n"
		  "protocol = tcp\nports = 80\n" HOSTS "x.example.com\n",
		  "give port 80 of the same host different protocols" },
	};
	static const struct fault order[] = {
		{ PORTS "443\n[allow b]\nhosts = example.com\nports = 443\n"
		  "protocol = tcp\n", "5:0: warning: [allow b] gives port 443 "
				      "of "
		  "a host another protocol than [allow a] (p.ini:1), which "
		  "stands "
		  "first and wins" },
	};

	(void)state;
	check_errors(torn, ARRAY_SIZE(torn));
	check_warnings(order, ARRAY_SIZE(order));
	check_silent(HOSTS "x.example.com\n[allow b]\nhosts = x.example.com\n"
		     "ports = 443 8443\nprotocol = https\naddresses = "
		     "10.0.0.1\n"
		     "reason = x\nowner = y\n");
	check_silent(HOSTS "x.example.com\n[allow b]\nhosts = y.example.com\n"
		     "ports = 443\nprotocol = tcp\naddresses = 10.0.0.1\n"
		     "reason = x\nowner = y\n");
}

/* POL-16 */
static void line_ends_marks_and_blanks_make_no_difference(void **state)
{
	static const char *const texts[] = {
		"[allow a]\nhosts = example.com\n",
		"[allow a]\r\nhosts = example.com\r\n",
		"\xef\xbb\xbf[allow a]\nhosts = example.com",
		"[ allow\ta ]\nhosts=example.com \t\n",
		"; a comment\n\n# another\n[allow a]\n\nhosts =\texample.com",
		"  [allow a]\n\t# note\n\thosts = example.com \n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct ruleset *rs = compile_good(texts[i]);

		assert_int_equal(ask(rs, "example.com", 443, NULL).reason,
				 REASON_ALLOWED);
		rules_unref(rs);
	}
}

static void lists_grow_by_words_and_by_repeated_keys(void **state)
{
	struct ruleset *rs = compile_good("[allow a]\nhosts = a.example  "
					  "b.example\n"
					  "hosts = c.example\nports = 22\t23\n"
					  "ports = 24\n");
	const char *const hosts[] = { "a.example", "b.example", "c.example" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		for (unsigned port = 22; port <= 24; port++)
			assert_int_equal(ask(rs, hosts[i], port, NULL).reason,
					 REASON_ALLOWED);
	}
	rules_unref(rs);
}

static void several_sources_make_one_policy(void **state)
{
	struct rules_source s[] = {
		{ .name = "one.ini",
		  .text = STR("[policy]\nname = joint\n[allow a]\n"
			      "hosts = a.example\n") },
		{ .name = "two.ini",
		  .text = STR("[deny b]\nhosts = b.example\n") },
		{ .name = "--allow",
		  .text = STR("[allow allow-1]\nhosts = *.b.example "
			      "b.example\n") },
	};
	struct told told = { .text = BUF_INIT(4096) };
	struct ruleset *rs;

	(void)state;
	assert_int_equal(rules_compile(s, 3, told_one, &told, &rs), 0);
	assert_string_equal(rules_name(rs), "joint");
	assert_int_equal(rules_count(rs), 3);
	assert_int_equal(ask(rs, "a.example", 443, NULL).reason,
	REASON_ALLOWED);
	assert_int_equal(ask(rs, "x.b.example", 443, NULL).reason,
			 REASON_ALLOWED);
	assert_int_equal(ask(rs, "b.example", 443, NULL).reason,
			 REASON_HOST_DENIED);
	assert_non_null(strstr(buf_cstr(&told.text), "--allow:2:0: warning: "
			       "'b.example' in [allow allow-1] can never be "
			       "reached: [deny b] (two.ini:1)"));
	rules_unref(rs);
	buf_reset(&told.text);
	s[1].text = STR("[policy]\nname = second\n");
	assert_int_equal(rules_compile(s, 3, told_one, &told, &rs), -EINVAL);
	assert_non_null(strstr(buf_cstr(&told.text), "two.ini:1:0: error: "
			       "[policy] may stand in the first file only"));
	buf_reset(&told.text);
	s[1].text = STR("[allow a]\nhosts = b.example\n");
	assert_int_equal(rules_compile(s, 3, told_one, &told, &rs), -EINVAL);
	assert_non_null(strstr(buf_cstr(&told.text), "two.ini:1:0: error: "
			       "[allow a] stands here again, first in "
			       "one.ini:3"));
	buf_done(&told.text);
}

static void the_digest_is_of_the_texts(void **state)
{
	struct rules_source s[] = {
		{ .name = "a", .text = STR("[allow a]\n") }, { .name = "b", .text = STR("hosts = a.example\n") },
	};
	struct ruleset *rs, *other;

	(void)state;
	/* printf '' | sha256sum */
	assert_int_equal(rules_compile(NULL, 0, NULL, NULL, &rs), 0);
	assert_string_equal(rules_digest(rs), "e3b0c44298fc1c14");
	rules_unref(rs);
	/* printf '[allow a]\nhosts = a.example\n' | sha256sum */
	rs = compile_good("[allow a]\nhosts = a.example\n");
	assert_string_equal(rules_digest(rs), "e87aea1dff6c1796");
	rules_unref(rs);
	/* Where a text ends matters. */
	s[0].text = STR("; one\n");
	s[1].text = STR("; two\n");
	assert_int_equal(rules_compile(s, 2, NULL, NULL, &rs), 0);
	s[0].text = STR("; one\n; two\n");
	assert_int_equal(rules_compile(s, 1, NULL, NULL, &other), 0);
	assert_string_not_equal(rules_digest(rs), rules_digest(other));
	rules_unref(rs);
	rules_unref(other);
}

static void limits_have_names_and_words(void **state)
{
	struct buf text = BUF_INIT(RULES_TEXT_MAX + 100);
	struct told told;
	int err = 0;

	(void)state;
	for (int i = 0; i < RULES_MAX + 1 && !err; i++)
		err = buf_printf(&text, "[allow a%d]\nhosts = h%d.example\n", i,
		i);
	assert_int_equal(err, 0);
	assert_null(compile_told(buf_cstr(&text), &told));
	assert_non_null(strstr(buf_cstr(&told.text), "there are more than 4096 "
			       "rules"));
	buf_done(&told.text);
	buf_reset(&text);
	for (int i = 0; i < 257 && !err; i++)
		err = buf_printf(&text, "[allow a%d]\nhosts = h.example\n"
				 "ports = %d\n", i, i + 1);
	assert_int_equal(err, 0);
	assert_null(compile_told(buf_cstr(&text), &told));
	assert_non_null(strstr(buf_cstr(&told.text), "more than 256 rules name "
			       "the same host"));
	buf_done(&told.text);
	buf_reset(&text);
	while (text.n <= RULES_TEXT_MAX && !err)
		err = buf_add_str(&text, STR(";\n"));
	assert_int_equal(err, 0);
	assert_null(compile_told(buf_cstr(&text), &told));
	assert_non_null(strstr(buf_cstr(&told.text),
	"the policy is larger than"));
	buf_done(&told.text);
	buf_done(&text);
	text = BUF_INIT(1 << 20);
	for (int i = 0; i < 257 && !err; i++)
		err = buf_printf(&text, "[credential c%d]\nttl = 1s\n", i);
	assert_int_equal(err, 0);
	assert_null(compile_told(buf_cstr(&text), &told));
	assert_non_null(strstr(buf_cstr(&told.text), "p.ini:513:0: error: there "
			       "are more than 256 credentials"));
	buf_done(&told.text);
	buf_done(&text);
	/* Many faults: some are told, then that there are more. */
	text = BUF_INIT(1 << 20);
	err = buf_add_str(&text, STR("[allow a]\nhosts ="));
	for (int i = 0; i < 1000 && !err; i++)
		err = buf_add_str(&text, STR(" *.x"));
	assert_int_equal(err, 0);
	assert_null(compile_told(buf_cstr(&text), &told));
	assert_int_equal(told.errors, RULES_DIAGS_MAX + 1);
	assert_non_null(strstr(buf_cstr(&told.text), "there is more"));
	buf_done(&told.text);
	buf_done(&text);
}

/* Where each of half a million words stands: were the text gone through from its
 * beginning for each, this would not end. */
static void finding_places_takes_as_long_as_the_lines(void **state)
{
	struct buf text = BUF_INIT(1 << 24);
	struct told told;
	int err;

	(void)state;
	err = buf_add_str(&text, STR("[allow a]\npublic_suffix = yes\n"
				     "reason = x\n"));
	for (int line = 0; line < 250 && !err; line++) {
		err = buf_add_str(&text, STR("hosts ="));
		for (int word = 0; word < 2000 && !err; word++)
			err = buf_add_str(&text, STR(" com"));
		if (!err)
			err = buf_add_char(&text, '\n');
	}
	if (!err)
		err = buf_add_str(&text, STR("hosts = \t org -.example..\n"));
	assert_int_equal(err, 0);
	assert_null(compile_told(buf_cstr(&text), &told));
	assert_non_null(strstr(buf_cstr(&told.text), "p.ini:254:15: error: "
			       "'-.example..' has an empty label"));
	buf_done(&told.text);
	buf_done(&text);
}

/* Wildcards upon wildcards: refused rather than compared for ever. */
static void comparing_rules_is_bounded(void **state)
{
	struct buf text = BUF_INIT(1 << 22);
	struct told told;
	int err = 0;

	(void)state;
	for (int rule = 0; rule < 200 && !err; rule++) {
		err = buf_printf(&text, "[allow r%d]\nports = %d\n", rule,
				 rule + 1);
		for (int depth = 2; depth < 60 && !err; depth++) {
			err = buf_add_str(&text, STR("hosts = *"));
			for (int i = 0; i < depth && !err; i++)
				err = buf_add_str(&text, STR(".a"));
			if (!err)
				err = buf_add_char(&text, '\n');
		}
	}
	assert_int_equal(err, 0);
	assert_null(compile_told(buf_cstr(&text), &told));
	assert_non_null(strstr(buf_cstr(&told.text), "too many rules speak of "
			       "the same hosts"));
	buf_done(&told.text);
	buf_done(&text);
}

/* As many rules as there may be are no more work than each of them is. */
static void rules_that_do_not_meet_cost_nothing(void **state)
{
	struct buf text = BUF_INIT(1 << 20);
	struct ruleset *rs;
	struct told told;
	int err = 0;

	(void)state;
	for (unsigned i = 0; i < 4095 && !err; i++)
		err = buf_printf(&text, "[allow r%u]\n"
				 "addresses = 8.%u.%u.0/24\n", i, i / 256,
				 i % 256);
	if (!err)
		err = buf_add_str(&text, STR("[allow last]\n"
					     "addresses = 8.1.2.128/25\n"));
	assert_int_equal(err, 0);
	rs = compile_told(buf_cstr(&text), &told);
	assert_non_null(rs);
	assert_int_equal(rules_count(rs), 4096);
	assert_string_equal(buf_cstr(&told.text),
			    "p.ini:8191:0: warning: [allow last] adds nothing: "
			    "[allow r258] (p.ini:517) covers it\n");
	rules_unref(rs);
	buf_done(&told.text);
	buf_done(&text);
}

/* At each allocation in turn: an error, no leak, no crash. */
static void running_out_of_memory_is_an_error(void **state)
{
	static const char text[] =
		"[policy]\nname = x\n[allow a]\nhosts = a.example *.b.example\n"
		"ports = 22 443\n[allow b]\naddresses = 8.8.8.0/24\n"
		"[deny c]\nhosts = *\nports = 25\n[deny d]\n"
		"addresses = 9.9.9.9\n";
	struct rules_source source = { .name = "p.ini", .text = STR("") };
	bool failed = false, done = false;

	(void)state;
	source.text = str_from(text);
	for (unsigned nth = 1; nth < 100 && !done; nth++) {
		struct ruleset *rs = NULL;
		int err;

		mem_test_fail_at(nth);
		err = rules_compile(&source, 1, NULL, NULL, &rs);
		mem_test_fail_at(0);
		failed |= err == -ENOMEM;
		done = err == 0;
		assert_true(err == 0 || err == -ENOMEM);
		assert_true((rs != NULL) == done);
		rules_unref(rs);
	}
	assert_true(failed);
	assert_true(done);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_and_keys_are_known_or_refused),
		cmocka_unit_test(hosts_are_refused_with_the_mend),
		cmocka_unit_test(a_deny_may_say_more_than_an_allow),
		cmocka_unit_test(addresses_ports_and_protocols_are_checked),
		cmocka_unit_test(a_broken_rule_is_told_once),
		cmocka_unit_test(every_fault_is_told_in_one_go),
		cmocka_unit_test(doubts_are_warnings),
		cmocka_unit_test(what_a_deny_shuts_is_told),
		cmocka_unit_test(what_another_rule_says_already_is_told),
		cmocka_unit_test(a_protocol_never_hangs_on_the_address),
		cmocka_unit_test(line_ends_marks_and_blanks_make_no_difference),
		cmocka_unit_test(lists_grow_by_words_and_by_repeated_keys),
		cmocka_unit_test(several_sources_make_one_policy),
		cmocka_unit_test(the_digest_is_of_the_texts),
		cmocka_unit_test(limits_have_names_and_words),
		cmocka_unit_test(finding_places_takes_as_long_as_the_lines),
		cmocka_unit_test(comparing_rules_is_bounded),
		cmocka_unit_test(rules_that_do_not_meet_cost_nothing),
		cmocka_unit_test(running_out_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
