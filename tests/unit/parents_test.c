/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parents_test.c - the proxies that flows may be sent through
 */
#include "tests/unit/rules_kit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "proxy/parents.h"

static struct parents parents;

static struct parent *add(const char *name, const char *url)
{
	struct parent *p = NULL;
	const char *why = "";

	assert_int_equal(parents_add(&parents, str_from(name), &p, &why), 0);
	if (parent_set_url(p, str_from(url), &why) < 0)
		fail_msg("%s %s", url, why);
	return p;
}

static void bypass(struct parent *p, const char *word)
{
	const char *why;

	assert_int_equal(parent_add_bypass(p, str_from(word), &why), 0);
}

static int teardown(void **state)
{
	(void)state;
	parents_done(&parents);
	return 0;
}

static void an_url_says_where_and_how(void **state)
{
	struct parent *p = add("a", "http://Proxy.Corp.Example:3128/");
	char text[IP_TEXT_SIZE];

	(void)state;
	assert_int_equal(p->kind, PARENT_HTTP);
	assert_string_equal(p->host.p, "proxy.corp.example");
	assert_int_equal(p->port, 3128);
	p = add("b", "socks5://10.0.0.9");
	assert_int_equal(p->kind, PARENT_SOCKS5);
	assert_int_equal(p->port, 1080);
	assert_int_equal(p->host.n, 0);
	ip_addr_text(&p->addr, text);
	assert_string_equal(text, "10.0.0.9");
	assert_false(p->there);
	p = add("c", "socks5h://[2001:db8::1]:9050");
	assert_true(p->there);
	assert_int_equal(p->port, 9050);
}

static void an_url_that_is_none_is_told_with_its_mend(void **state)
{
	static const char *const bad[][2] = {
		{ "proxy.example:3128", "write http://HOST:PORT" },
		{ "https://proxy.example:3128", "TLS to the parent" },
		{ "socks4://proxy.example", "is no URL" },
		{ "http://proxy.example", "has no host and port" },
		{ "http://proxy.example:0", "has no host and port" },
		{ "http://0177.0.0.1:3128", "has no host and port" },
		{ "http://u:p@proxy.example:3128", "'credentials'" },
		{ "http://198.18.0.5:3128", "no proxy can be" },
		{ "http://0.0.0.0:3128", "no proxy can be" },
		{ "http://proxy.example:3128/x", "has no host and port" },
	};
	struct parent p = { .port = 0 };
	const char *why = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(parent_set_url(&p, str_from(bad[i][0]), &why),
				 -EINVAL);
		if (!strstr(why, bad[i][1]))
			fail_msg("%s: %s", bad[i][0], why);
	}
}

static void names_are_plain_and_stand_once(void **state)
{
	static const char *const bad[] = {
		"", "none", "env", "a b", "a/b",
		"abcdefghijklmnopqrstuvwxyz0123456789", "there",
	};
	struct parent *p;
	const char *why;

	(void)state;
	add("there", "http://192.0.2.1:1");
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parents_add(&parents, str_from(bad[i]), &p,
					     &why), -EINVAL);
}

static const char *picked(const char *word, const char *host, const char *addr)
{
	const struct parent *p = NULL;
	struct ip_addr a;

	if (addr)
		assert_int_equal(ip_addr_parse(str_from(addr), &a), 0);
	if (parents_pick(&parents, word, str_from(host), addr ? &a : NULL, &p))
		return "unknown";
	return p ? p->name : "direct";
}

static void a_flow_goes_by_its_rules_word_the_default_and_the_bypass(
	void **state)
{
	struct parent *corp = add("corp", "http://10.0.0.9:3128");

	(void)state;
	add("other", "socks5://10.0.0.9:1080");
	assert_string_equal(picked(NULL, "a.example", NULL), "direct");
	assert_string_equal(picked("corp", "a.example", NULL), "corp");
	assert_string_equal(picked("gone", "a.example", NULL), "unknown");
	parents.by_default = corp;
	bypass(corp, "*.corp.example");
	bypass(corp, "api.example");
	bypass(corp, "192.0.2.0/24");
	assert_string_equal(picked(NULL, "a.example", NULL), "corp");
	assert_string_equal(picked("none", "a.example", NULL), "direct");
	assert_string_equal(picked("other", "a.example", NULL), "other");
	assert_string_equal(picked("other", "api.example", NULL), "other");
	assert_string_equal(picked(NULL, "api.example", NULL), "direct");
	assert_string_equal(picked(NULL, "x.api.example", NULL), "corp");
	assert_string_equal(picked(NULL, "x.y.corp.example", NULL), "direct");
	assert_string_equal(picked(NULL, "corp.example", NULL), "corp");
	assert_string_equal(picked(NULL, "xcorp.example", NULL), "corp");
	assert_string_equal(picked(NULL, "a.example", "192.0.2.7"), "direct");
	assert_string_equal(picked(NULL, NULL, "192.0.3.7"), "corp");
	assert_int_equal(parents_pick(NULL, NULL, STR("a.example"), NULL,
				      &(const struct parent *){ NULL }), 0);
}

/* POL: what it does not know is refused in words, never silently direct. */
static void a_policy_names_only_what_is_there(void **state)
{
	struct ruleset *rs = compile_good("[allow a]\nhosts = a.example.com\n"
					  "parent = corp\n");
	char why[PARENTS_WHY_SIZE];

	(void)state;
	assert_false(parents_suit(NULL, rs, why));
	assert_non_null(strstr(why, "p.ini:1: there is no parent 'corp'"));
	add("corp", "http://10.0.0.9:3128");
	assert_true(parents_suit(&parents, rs, why));
	parents.by_default = add("other", "http://10.0.0.8:3128");
	assert_true(parents_suit(&parents, rs, why));
	parents.always = true;
	assert_false(parents_suit(&parents, rs, why));
	assert_non_null(strstr(why, "all flows go through 'other'"));
	rules_unref(rs);
	rs = compile_good("[defaults]\nparent = none\n"
			  "[allow a]\nhosts = a.example.com\n");
	assert_false(parents_suit(&parents, rs, why));
	assert_non_null(strstr(why, "p.ini:2: 'parent = none'"));
	parents.always = false;
	assert_true(parents_suit(&parents, rs, why));
	rules_unref(rs);
}

static void names_that_a_parent_looks_up_are_known(void **state)
{
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example.com\nparent = corp\n"
		"[allow b]\nhosts = b.example.com\n");
	struct parent *corp = add("corp", "http://10.0.0.9:3128");

	(void)state;
	assert_false(parents_resolve(&parents, rs, STR("a.example.com"), 1));
	corp->there = true;
	assert_true(parents_resolve(&parents, rs, STR("a.example.com"), 1));
	assert_false(parents_resolve(&parents, rs, STR("b.example.com"), 1));
	assert_false(parents_resolve(&parents, rs, STR("c.example.com"), 1));
	bypass(corp, "a.example.com");
	assert_false(parents_resolve(&parents, rs, STR("a.example.com"), 1));
	rules_unref(rs);
}

static int read_login(struct parent *p, const char *text, mode_t mode,
		      char why[PARENTS_WHY_SIZE])
{
	char path[] = "/tmp/parents_test.XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	err = parent_read_login(p, path, why);
	assert_int_equal(unlink(path), 0);
	return err;
}

/* LOG-04: neither the login nor a part of it is said anywhere. */
static void a_login_comes_from_a_file_that_others_cannot_read(void **state)
{
	struct parent *p = add("corp", "http://10.0.0.9:3128");
	char why[PARENTS_WHY_SIZE];

	(void)state;
	assert_int_equal(read_login(p, "user:pa:ss\r\nmore\n", 0640, why), 0);
	assert_true(str_eq(p->user, STR("user")));
	assert_true(str_eq(p->password, STR("pa:ss")));
	assert_true(str_eq(p->basic, STR("dXNlcjpwYTpzcw==")));
	assert_int_equal(read_login(p, "user:secret\n", 0644, why), -EINVAL);
	assert_non_null(strstr(why, "chmod 600"));
	assert_null(strstr(why, "secret"));
	assert_int_equal(read_login(p, "secret\n", 0600, why), -EINVAL);
	assert_non_null(strstr(why, "user:password"));
	assert_null(strstr(why, "secret"));
	assert_int_equal(read_login(p, "us\x01""er:secret\n", 0600, why),
			 -EINVAL);
	assert_int_equal(read_login(p, "", 0600, why), -EINVAL);
	assert_int_equal(parent_read_login(p, "/nowhere", why), -EINVAL);
	assert_non_null(strstr(why, "/nowhere"));
}

static void what_goes_together_is_checked(void **state)
{
	struct parent *p = add("corp", "http://10.0.0.9:3128");

	(void)state;
	assert_null(parent_fault(p));
	p->absolute = true;
	assert_non_null(strstr(parent_fault(p), "resolve = parent"));
	p->there = true;
	assert_null(parent_fault(p));
	p->kind = PARENT_SOCKS5;
	assert_non_null(strstr(parent_fault(p), "http://"));
	p->port = 0;
	assert_non_null(strstr(parent_fault(p), "url"));
}

#define unit(f)	cmocka_unit_test_teardown(f, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit(an_url_says_where_and_how),
		unit(an_url_that_is_none_is_told_with_its_mend),
		unit(names_are_plain_and_stand_once),
		unit(a_flow_goes_by_its_rules_word_the_default_and_the_bypass),
		unit(a_policy_names_only_what_is_there),
		unit(names_that_a_parent_looks_up_are_known),
		unit(a_login_comes_from_a_file_that_others_cannot_read),
		unit(what_goes_together_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
