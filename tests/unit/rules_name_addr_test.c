/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_name_addr_test.c - an address of a name passes when some port is open
 */
#include "tests/unit/rules_kit.h"

static const char policy[] =
	"[policy]\nname = p\n"
	"[allow web]\nhosts = a.example.com *.w.example.com\n"
	"[allow db]\nhosts = db.example.com\nports = 5432 6000-6010\n"
	"addresses = 10.20.0.0/16 203.0.113.0/24\nreason = r\n"
	"[allow mixed]\nhosts = mixed.example.com\nports = 80\n"
	"[allow mixed-in]\nhosts = mixed.example.com\nports = 8443\n"
	"addresses = 10.1.0.0/16\nreason = r\n"
	"[allow shut]\nhosts = shut.example.com\nports = 80 443\n"
	"[deny shut-80]\nhosts = shut.example.com\nports = 80\n"
	"[deny shut-443]\naddresses = 8.8.8.0/24\nports = 443\n"
	"[deny wide]\naddresses = 9.9.9.0/24\nports = 1-65535\n"
	"[deny db-deny]\nhosts = db.example.com\naddresses = 10.20.5.0/24\n"
	"ports = 1-65535\n";

static bool open_on_some_port(const struct ruleset *rs, const char *host,
			      const char *addr)
{
	for (unsigned port = 1; port <= 65535; port++) {
		struct rules_answer a = ask(rs, host, port, addr);

		if (a.reason == REASON_ALLOWED)
			return true;
	}
	return false;
}

static struct rules_answer judge(const struct ruleset *rs, const char *host,
				 const char *addr)
{
	struct rules_question q = { .host = str_from(host) };
	struct rules_answer a;
	struct ip_addr ip;

	assert_int_equal(ip_addr_parse(str_from(addr), &ip), 0);
	q.addr = &ip;
	rules_judge_name_addr(rs, &q, &a);
	return a;
}

static void it_agrees_with_asking_every_port(void **state)
{
	static const char *const hosts[] = {
		"a.example.com", "x.w.example.com", "w.example.com",
		"db.example.com", "mixed.example.com", "shut.example.com",
		"none.example.com",
	};
	static const char *const addrs[] = {
		"1.1.1.1", "8.8.8.8", "9.9.9.9", "10.20.1.1", "10.20.5.1",
		"10.1.2.3", "203.0.113.9", "169.254.169.254", "127.0.0.1",
		"2606:4700::1", "fd00::1", "64:ff9b::a14:101",
		"64:ff9b::101:101",
	};
	struct ruleset *rs = compile_good(policy);
	unsigned allowed = 0;

	(void)state;
	for (size_t h = 0; h < ARRAY_SIZE(hosts); h++) {
		for (size_t i = 0; i < ARRAY_SIZE(addrs); i++) {
			struct rules_answer a = judge(rs, hosts[h], addrs[i]);
			bool got = a.reason == REASON_ALLOWED;

			allowed += got;
			if (got != open_on_some_port(rs, hosts[h], addrs[i]))
				fail_msg("%s at %s: %s", hosts[h], addrs[i],
					 reason_word(a.reason));
		}
	}
	assert_true(allowed > 10);
	rules_unref(rs);
}

static void it_says_why_not(void **state)
{
	static const struct {
		const char *host, *addr;
		enum reason reason;
	} cases[] = {
		{ "none.example.com", "1.1.1.1", REASON_HOST_NOT_ALLOWED },
		{ "a.example.com", "10.0.0.1", REASON_ADDRESS_PRIVATE },
		{ "a.example.com", "169.254.169.254",
		  REASON_ADDRESS_METADATA },
		{ "a.example.com", "9.9.9.9", REASON_ADDRESS_DENIED },
		{ "shut.example.com", "8.8.8.8", REASON_ADDRESS_DENIED },
		{ "db.example.com", "1.1.1.1", REASON_ADDRESS_NOT_ALLOWED },
		{ "db.example.com", "10.21.0.1", REASON_ADDRESS_PRIVATE },
		{ "db.example.com", "10.20.5.7", REASON_ADDRESS_DENIED },
	};
	struct ruleset *rs = compile_good(policy);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rules_answer a = judge(rs, cases[i].host,
					      cases[i].addr);

		if (a.reason != cases[i].reason || a.would_deny)
			fail_msg("%s at %s: %s", cases[i].host, cases[i].addr,
				 reason_word(a.reason));
	}
	rules_unref(rs);
}

static void observing_lets_names_pass_and_classes_not(void **state)
{
	struct ruleset *rs = compile_good(
		"[policy]\nname = p\nmode = observe\n"
		"[deny d]\naddresses = 9.9.9.0/24\nports = 1-65535\n");
	struct rules_answer a;

	(void)state;
	a = judge(rs, "new.example.com", "1.1.1.1");
	assert_true(rules_passes(&a) && a.would_deny);
	assert_int_equal(a.reason, REASON_HOST_NOT_ALLOWED);
	a = judge(rs, "new.example.com", "10.0.0.1");
	assert_false(rules_passes(&a));
	assert_int_equal(a.reason, REASON_ADDRESS_PRIVATE);
	a = judge(rs, "new.example.com", "9.9.9.9");
	assert_false(rules_passes(&a));
	assert_int_equal(a.reason, REASON_ADDRESS_DENIED);
	rules_unref(rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_agrees_with_asking_every_port),
		cmocka_unit_test(it_says_why_not),
		cmocka_unit_test(observing_lets_names_pass_and_classes_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
