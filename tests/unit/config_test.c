/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_test.c - the service's configuration, and what is said of mistakes
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "proxy/config.h"

#define WHO	"[plug]\nallow_policy_uid = 1000\n"

struct said {
	unsigned n;
	char text[2048];
};

static void on_error(void *arg, unsigned line, const char *message)
{
	struct said *s = arg;
	size_t at = strlen(s->text);
	int n = snprintf(s->text + at, sizeof(s->text) - at, "%u: %s\n", line,
			 message);

	assert_true(n > 0 && (size_t)n < sizeof(s->text) - at);
	s->n++;
}

static void expect_error(const char *text, const char *want)
{
	struct said said = { 0, "" };
	struct config c;

	assert_int_equal(config_parse(str_from(text), on_error, &said, &c),
			 -EINVAL);
	if (!strstr(said.text, want))
		fail_msg("wanted \"%s\" for:\n%s\nsaid:\n%s", want, text,
			 said.text);
}

static void an_empty_section_list_has_defaults(void **state)
{
	struct said said = { 0, "" };
	struct config c;

	(void)state;
	assert_int_equal(config_parse(STR(WHO), on_error, &said, &c), 0);
	assert_string_equal(said.text, "");
	assert_string_equal(c.plug, "/run/penstock/plug.sock");
	assert_string_equal(c.resolv_conf, "/etc/resolv.conf");
	assert_null(c.log);
	assert_int_equal(c.workers, 0);
	assert_int_equal(c.drain_s, 10);
	assert_false(c.has_user);
	config_done(&c);
}

static void every_key_is_taken(void **state)
{
	static const char text[] =
		"[service]\nplug = /run/x.sock\nlog = /var/log/x.jsonl\n"
		"resolv_conf = /etc/r\nworkers = 3\ndrain_seconds = 0\n"
		"log_level = debug\n"
		"[plug]\nallow_policy_uid = 0 1000-1999\n"
		"allow_policy_uid = 3000\nallow_named_group = 50\n"
		"policies = /etc/penstock/policies\n";
	struct said said = { 0, "" };
	const gid_t in[] = { 7, 50 };
	struct config c;

	(void)state;
	assert_int_equal(config_parse(str_from(text), on_error, &said, &c), 0);
	assert_string_equal(c.plug, "/run/x.sock");
	assert_string_equal(c.log, "/var/log/x.jsonl");
	assert_string_equal(c.policies, "/etc/penstock/policies");
	assert_int_equal(c.workers, 3);
	assert_int_equal(c.drain_s, 0);
	assert_int_equal(c.log_level, LOG_DEBUG);
	assert_true(config_who_has(&c.bring, 0, NULL, 0));
	assert_true(config_who_has(&c.bring, 1999, NULL, 0));
	assert_true(config_who_has(&c.bring, 3000, NULL, 0));
	assert_false(config_who_has(&c.bring, 2000, NULL, 0));
	assert_false(config_who_has(&c.bring, 999, in, 2));
	assert_true(config_who_has(&c.name, 4, in, 2));
	assert_false(config_who_has(&c.name, 4, in, 1));
	config_done(&c);
}

static void resolvers_are_taken_as_people_write_them(void **state)
{
	static const char text[] =
		"[dns]\nservers = 192.0.2.53 [2001:db8::53]:5353\n"
		"servers = tls://192.0.2.54#DNS.example.net\n"
		"tls_ca = /etc/penstock/ca.pem\n" WHO;
	struct said said = { 0, "" };
	struct config c;

	(void)state;
	assert_int_equal(config_parse(str_from(text), on_error, &said, &c), 0);
	assert_int_equal(c.dns.n, 3);
	assert_int_equal(c.dns.server[1].at.port, 5353);
	assert_false(c.dns.server[1].tls);
	assert_true(c.dns.server[2].tls);
	assert_int_equal(c.dns.server[2].at.port, 853);
	assert_string_equal(c.dns.server[2].tls_name, "dns.example.net");
	assert_string_equal(c.tls_ca, "/etc/penstock/ca.pem");
	config_done(&c);
}

static void dns_19_wrong_resolvers_are_said_with_the_mend(void **state)
{
	(void)state;
	expect_error("[dns]\nservers =\n" WHO, "2: 'servers' is empty");
	expect_error("[dns]\nservers = 192.0.2.53 dns.example.net\n" WHO,
		     "2: 'servers' is given 'dns.example.net', which is no address");
	expect_error("[dns]\nservers = 198.18.0.1\n" WHO,
		     "2: 'servers' is given '198.18.0.1', which is an address that sandboxes are given for names: Penstock would ask itself");
	expect_error("[dns]\nservers = tls://192.0.2.1#\n" WHO,
		     "no right name behind '#'");
	expect_error("[dns]\nservers = 192.0.2.1 192.0.2.2 192.0.2.3 192.0.2.4 "
		     "192.0.2.5 192.0.2.6 192.0.2.7 192.0.2.8 192.0.2.9\n" WHO,
		     "2: 'servers' has more than 8 resolvers");
	expect_error("[dns]\nservers = 192.0.2.53\ntls_ca = /ca.pem\n" WHO,
		     "tls_ca is for resolvers that are asked by TLS");
	expect_error("[service]\nresolv_conf = /etc/r\n[dns]\nservers = 192.0.2.53\n" WHO,
		     "keep one of them");
	expect_error("[dns]\nserver = 192.0.2.53\n" WHO,
		     "did you mean 'servers'?");
}

static void each_mistake_has_its_line_and_the_mend(void **state)
{
	(void)state;
	expect_error("[servise]\n" WHO,
		     "1: unknown section [servise]; did you mean [service]?");
	expect_error("[service]\n; note\nworker = 2\n" WHO,
		     "3: unknown key 'worker' in [service]; did you mean 'workers'?");
	expect_error("plug = /x\n" WHO, "1: ");
	expect_error("[service]\nworkers = 0\n" WHO,
		     "2: 'workers' wants a number from 1 to 256, not '0'");
	expect_error("[service]\nworkers = 2x\n" WHO, "not '2x'");
	expect_error("[service]\nplug = run/x\n" WHO,
		     "2: 'plug' wants an absolute path, not 'run/x'");
	expect_error("[service]\nlog_level = loud\n" WHO,
		     "2: 'log_level' wants error, warn, info or debug, not 'loud'");
	expect_error("[service]\nworkers = 1\nworkers = 2\n" WHO,
		     "3: 'workers' is given twice");
	expect_error("[service]\nuser = no-such-user-here\n" WHO,
		     "2: 'user' names 'no-such-user-here', and there is no such user");
	expect_error("[service]\nuser = root\n" WHO,
		     "2: 'user' must not be root");
	expect_error("[plug]\nallow_policy_uid = 10-5\n",
		     "2: 'allow_policy_uid' is given '10-5'");
	expect_error("[plug]\nallow_policy_uid = 4294967295\n",
		     "2: 'allow_policy_uid' is given '4294967295'");
	expect_error("[plug]\nallow_policy_uid =\n", "is empty");
	expect_error("[plug]\nallow_named_uid = 5\n",
		     "0: allow_named_uid and allow_named_group need");
	expect_error("[service]\n", "0: nobody may plug a sandbox");
	expect_error("", "0: nobody may plug a sandbox");
}

static void all_mistakes_are_told_at_once(void **state)
{
	struct said said = { 0, "" };
	struct config c;

	(void)state;
	assert_int_equal(config_parse(STR("[service]\na = 1\nb = 2\n" WHO),
				      on_error, &said, &c), -EINVAL);
	assert_int_equal(said.n, 2);
}

static void no_key_has_more_ids_than_its_bound(void **state)
{
	char text[4096] = "[plug]\nallow_policy_uid =";
	size_t n = strlen(text), i;

	(void)state;
	for (i = 0; i < CONFIG_RANGES_MAX + 1; i++) {
		memcpy(text + n, " 1", 2);
		n += 2;
	}
	expect_error(text, "more than 64 entries");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_section_list_has_defaults),
		cmocka_unit_test(every_key_is_taken),
		cmocka_unit_test(resolvers_are_taken_as_people_write_them),
		cmocka_unit_test(dns_19_wrong_resolvers_are_said_with_the_mend),
		cmocka_unit_test(each_mistake_has_its_line_and_the_mend),
		cmocka_unit_test(all_mistakes_are_told_at_once),
		cmocka_unit_test(no_key_has_more_ids_than_its_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
