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

static void on_error(void *arg, const struct config_place *place,
		     const char *message)
{
	struct said *s = arg;
	size_t at = strlen(s->text);
	char column[16] = "";
	int n;

	if (place->column)
		n = snprintf(column, sizeof(column), "%u:", place->column);
	n = snprintf(s->text + at, sizeof(s->text) - at, "%u:%s %s\n",
		     place->line, column, message);

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
	assert_int_equal(c.mark, 0);
	assert_false(c.has_user);
	config_done(&c);
}

static void every_key_is_taken(void **state)
{
	static const char text[] =
		"[service]\nplug = /run/x.sock\nlog = /var/log/x.jsonl\n"
		"resolv_conf = /etc/r\nworkers = 3\ndrain_seconds = 0\n"
		"log_level = debug\nmark = 0x2A\n"
		"[plug]\nallow_policy_uid = 0 1000-1999\n"
		"allow_policy_uid = 3000\nallow_named_group = 50\n"
		"policies = /etc/penstock/policies\n"
		"[limits]\nconnections = 9000\ndescriptors_reserve = 16\n"
		"memory = 4G\nmemory_per_uid = 1G\nconnections_per_uid = 7\n";
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
	assert_int_equal(c.connections, 9000);
	assert_int_equal(c.memory, (size_t)4 << 30);
	assert_int_equal(c.memory_per_uid, (size_t)1 << 30);
	assert_int_equal(c.connections_per_uid, 7);
	assert_int_equal(c.reserve, 16);
	assert_int_equal(c.log_level, LOG_DEBUG);
	assert_int_equal(c.mark, 42);
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
	expect_error("[service]\nmark = 0x\n" WHO,
		     "2: 'mark' is given '0x', which is no mark");
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

/* --- [listen NAME] ----------------------------------------------------------- */

#define HOUSE	"[service]\nlog = /var/log/x.jsonl\n" \
		"[plug]\npolicies = /etc/penstock/policies\n"
/* What is behind it begins at line 5. */
#define AT_5	HOUSE

static void a_listener_has_what_its_section_says(void **state)
{
	static const char text[] = HOUSE
		"[listen web]\nhttp = 127.0.0.1:3128 [2001:db8::1]:8080\n"
		"http = localhost:3200 *:9000\nsocks = 192.0.2.1\ndns = ::1\n"
		"policy = ci\nclients = 192.0.2.0/24 192.168.1.7\n"
		"clients = 2001:db8::/32\nlabel = lan.1\n"
		"client_connections = 100\nclient_new_connections = 20\n"
		"client_queries = 7\n"
		"[listen b]\nhttp = 127.0.0.2\npolicy = ci\n";
	struct said said = { 0, "" };
	const struct config_listen *l;
	struct config c;

	(void)state;
	assert_int_equal(config_parse(str_from(text), on_error, &said, &c), 0);
	assert_int_equal(c.nlistens, 2);
	l = &c.listen[0];
	assert_string_equal(l->name, "web");
	assert_string_equal(l->policy, "ci");
	assert_string_equal(l->label, "lan.1");
	assert_int_equal(l->http.n, 6);
	assert_int_equal(l->http.door[0].at.port, 3128);
	assert_int_equal(l->http.door[1].at.port, 8080);
	/* OPS-12: both families, of which IPv6 may be missing. */
	assert_int_equal(l->http.door[2].at.addr.family, IP_V4);
	assert_int_equal(l->http.door[3].at.addr.family, IP_V6);
	assert_false(l->http.door[1].if_there || l->http.door[2].if_there);
	assert_true(l->http.door[3].if_there && l->http.door[5].if_there);
	assert_int_equal(l->http.door[3].at.addr.b[15], 1);
	assert_int_equal(l->http.door[5].at.addr.b[15], 0);
	assert_int_equal(l->socks.door[0].at.port, 1080);
	assert_int_equal(l->dns.door[0].at.port, 53);
	assert_int_equal(l->nclients, 3);
	assert_int_equal(l->client[1].bits, 32);
	/* Loopback needs no clients, and a service nobody to plug. */
	assert_int_equal(c.listen[1].nclients, 0);
	assert_int_equal(l->share.connections, 100);
	assert_int_equal(l->share.new_connections, 20);
	assert_int_equal(l->share.queries, 7);
	assert_int_equal(c.listen[1].share.connections, 0);
	config_done(&c);
}

static void who_may_use_a_listener_must_be_said_where_others_reach_it(
	void **state)
{
	(void)state;
	expect_error(AT_5 "[listen w]\npolicy = p\nhttp = localhost 192.0.2.1\n",
		     "7:18: 192.0.2.1:3128 can be reached by others than this host, and [listen w] does not say by whom: add 'clients'");
	expect_error(AT_5 "[listen w]\npolicy = p\nhttp = *:3128\n",
		     "7:8: 0.0.0.0:3128 can be reached by others");
	expect_error(AT_5 "[listen w]\npolicy = p\nhttp = [::]:3128\n",
		     "7:8: [::]:3128 can be reached by others");
	expect_error(AT_5 "[listen w]\npolicy = p\nhttp = *\n"
		     "clients = 192.0.2.0/24 0.0.0.0/0\n",
		     "8:24: 'clients' is given '0.0.0.0/0', which is nearly everybody");
	expect_error(AT_5 "[listen w]\nclients = ::/0\n",
		     "6:11: 'clients' is given '::/0', which is nearly everybody");
	/* Shorter than other ranges may be, and nobody's but one's own. */
	expect_error(AT_5 "[listen w]\nclients = fc00::/7 fe80::/10 fc00::/6\n",
		     "6:30: 'clients' is given 'fc00::/6', which is nearly everybody");
	expect_error(AT_5 "[listen w]\nclients = 128.0.0.0/1 0.0.0.0/1\n",
		     "6:23: 'clients' is given '0.0.0.0/1', which is nearly");
	expect_error(AT_5 "[listen w]\nclient_queries = 0\n",
		     "6:18: 'client_queries' is given '0': a number from 1 to");
	expect_error(AT_5 "[listen w]\nclient_connections = some\n",
		     "6:22: 'client_connections' is given 'some': a number");
	expect_error(AT_5 "[listen w]\nclient_connections = 1\n"
		     "client_connections = 2\n",
		     "7: 'client_connections' is given twice");
	expect_error(AT_5 "[listen w]\nclients = 10.0.0.1/8\n",
		     "6:11: 'clients' is given '10.0.0.1/8', an address and not a range");
	expect_error(AT_5 "[listen w]\nclients = office\n",
		     "6:11: 'clients' is given 'office', which is no address or range");
	expect_error(AT_5 "[listen w]\nclients = ::ffff:192.0.2.0/120\n",
		     "6:11: 'clients' is given '::ffff:192.0.2.0/120', IPv4 in IPv6");
	expect_error(AT_5 "[listen w]\nclients =\n", "6: 'clients' is empty");
}

static void wrong_addresses_of_listeners_are_said_with_their_column(
	void **state)
{
	(void)state;
	expect_error(AT_5 "[listen w]\nhttp = 127.0.0.1 web.example.com:3128\n",
		     "6:18: 'http' is given 'web.example.com:3128', which is no address to listen on");
	expect_error(AT_5 "[listen w]\nsocks = 127.1:1080\n",
		     "6:9: 'socks' is given '127.1:1080'");
	expect_error(AT_5 "[listen w]\nhttp = 127.0.0.1:0\n", "6:8: 'http' is");
	expect_error(AT_5 "[listen w]\nhttp = localhost:70000\n",
		     "6:8: 'http' is given 'localhost:70000', whose port is none");
	expect_error(AT_5 "[listen w]\nhttp = [::ffff:127.0.0.1]:3128\n",
		     "write it as IPv4");
	expect_error(AT_5 "[listen w]\nhttp = [fe80::1]:3128\n", "link-local");
	expect_error(AT_5 "[listen w]\ndns = 224.0.0.1:53\n", "multicast");
	expect_error(AT_5 "[listen w]\nhttp =\n", "6: 'http' is empty");
	expect_error(AT_5 "[listen w]\npolicy = p\nhttp = localhost\n"
		     "[listen x]\npolicy = p\nsocks = [::1]:3128\n",
		     "10:9: [::1]:3128 is listened on already, by line 7");
	expect_error(AT_5 "[listen w]\npolicy = p\nclients = 10.0.0.0/8\n"
		     "http = 127.0.0.1:3128 *:3128\n",
		     "8:23: 0.0.0.0:3128 is listened on already, by line 8");
}

static void what_a_listener_lacks_is_said(void **state)
{
	(void)state;
	expect_error(AT_5 "[listen]\n", "5: [listen] wants a name");
	expect_error(AT_5 "[listen Web]\n", "5: 'Web' is no name of a listener");
	expect_error(AT_5 "[listen abcdefghijklmnopqrstuvwxy]\n", "is no name");
	expect_error(AT_5 "[listen w]\n[listen w]\n",
		     "6: [listen w] is there already, at line 5");
	expect_error(AT_5 "[listen w]\nhttp = 127.0.0.1\n",
		     "5: [listen w] has no policy");
	expect_error(AT_5 "[listen w]\npolicy = p\n",
		     "5: [listen w] listens nowhere");
	expect_error(AT_5 "[listen w]\npolicy =\n", "6: 'policy' is empty");
	expect_error(AT_5 "[listen w]\npolicy = p\npolicy = q\n",
		     "7: 'policy' is given twice");
	expect_error(AT_5 "[listen w]\nlabel = a b\n", "6:9: 'label' is given");
	expect_error(AT_5 "[listen w]\nhtpp = 127.0.0.1\n",
		     "6: unknown key 'htpp' in [listen w]; did you mean 'http'?");
	expect_error("[service]\nlog = /x\n[listen w]\nhttp = 127.0.0.1\n"
		     "policy = p\n",
		     "5:10: the policy of [listen w] is one of the service's own: add 'policies = DIRECTORY'");
	expect_error("[plug]\npolicies = /p\n[listen w]\nhttp = 127.0.0.1\n"
		     "policy = p\n",
		     "3: [listen w] has no place for its records: add 'log = FILE'");
}

#define PARENT	WHO "[parent corp]\nurl = http://proxy.corp.example:3128\n"

static void parents_are_sections_with_a_name(void **state)
{
	static const char text[] =
		PARENT "resolve = parent\nhttp = absolute\ndefault = yes\n"
		"credentials = /etc/penstock/corp\n"
		"bypass = *.corp.example 10.0.0.0/8\nbypass = x.example\n"
		"[parent tor]\nurl = socks5://127.0.0.1:9050\n";
	struct said said = { 0, "" };
	const struct parent *p;
	struct config c;

	(void)state;
	assert_int_equal(config_parse(str_from(text), on_error, &said, &c), 0);
	assert_string_equal(said.text, "");
	assert_int_equal(c.parents.n, 2);
	p = c.parents.by_default;
	assert_string_equal(p->name, "corp");
	assert_true(p->there && p->absolute);
	assert_int_equal(p->n_bypass, 3);
	assert_string_equal(p->login_file, "/etc/penstock/corp");
	assert_false(c.parents.always);
	assert_int_equal(c.parents.parent[1]->kind, PARENT_SOCKS5);
	config_done(&c);
}

static void faults_of_parents_have_their_line_and_mend(void **state)
{
	(void)state;
	expect_error(WHO "[parent]\n", "3: '' is no name of a parent");
	expect_error(WHO "[parent none]\nurl = x\n",
		     "3: 'none' means something else");
	expect_error(PARENT "[parent corp]\n", "5: 'corp' is there already");
	expect_error(WHO "[parent a]\n", "[parent a] has no 'url'");
	expect_error(WHO "[parent a]\nurl = proxy:3128\n",
		     "4: 'url' is no URL of a parent");
	expect_error(PARENT "url = http://a.example:1\n",
		     "5: 'url' is given twice");
	expect_error(PARENT "credential = /x\n",
		     "5: unknown key 'credential' in [parent corp]; did you "
		     "mean 'credentials'?");
	expect_error(PARENT "credentials = x\n", "5: 'credentials' wants the "
		     "absolute path");
	expect_error(PARENT "bypass = a.example 10.0.0.1/8\n",
		     "5: 'bypass' is given '10.0.0.1/8'");
	expect_error(PARENT "resolve = there\n",
		     "5: 'there' is neither 'parent' nor 'here'");
	expect_error(PARENT "http = absolute\n", "add 'resolve = parent'");
	expect_error(PARENT "default = yes\n[parent b]\n"
		     "url = http://b.example:1\ndefault = always\n",
		     "8: [parent corp] is the default already");
	expect_error(WHO "[parents]\n", "did you mean [parent]?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_section_list_has_defaults),
		cmocka_unit_test(every_key_is_taken),
		cmocka_unit_test(resolvers_are_taken_as_people_write_them),
		cmocka_unit_test(dns_19_wrong_resolvers_are_said_with_the_mend),
		cmocka_unit_test(each_mistake_has_its_line_and_the_mend),
		cmocka_unit_test(a_listener_has_what_its_section_says),
		cmocka_unit_test(
			who_may_use_a_listener_must_be_said_where_others_reach_it),
		cmocka_unit_test(
			wrong_addresses_of_listeners_are_said_with_their_column),
		cmocka_unit_test(what_a_listener_lacks_is_said),
		cmocka_unit_test(all_mistakes_are_told_at_once),
		cmocka_unit_test(no_key_has_more_ids_than_its_bound),
		cmocka_unit_test(parents_are_sections_with_a_name),
		cmocka_unit_test(faults_of_parents_have_their_line_and_mend),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
