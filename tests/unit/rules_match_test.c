/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_match_test.c - verdicts, in tables
 */
#include "tests/unit/rules_kit.h"

#define CHECK(rs, table)	check_verdicts(rs, table, ARRAY_SIZE(table))

/* Addresses that are of no special class. */
#define PUBLIC4		"8.8.8.8"
#define PUBLIC4B	"9.9.9.9"
#define PUBLIC6		"2600::1"

/* POL-01: nothing said is nothing allowed. */
static void an_empty_policy_denies_everything(void **state)
{
	static const char *const texts[] = {
		"", "\n\n", "; nothing\n", "[policy]\nname = empty\n",
	};
	static const struct verdict v[] = {
		{ "example.com", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
		{ "example.com", 80, PUBLIC4, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
		{ NULL, 443, PUBLIC4, REASON_ADDRESS_NOT_ALLOWED, NULL, NULL },
		{ NULL, 443, NULL, REASON_ADDRESS_NOT_ALLOWED, NULL, NULL },
	};
	struct rules_answer a;
	struct ruleset *rs;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		rs = compile_good(texts[i]);
		assert_int_equal(rules_count(rs), 0);
		CHECK(rs, v);
		assert_int_equal(rules_judge_name(rs, STR("example.com"), 1, &a),
				 RULES_NAME_DENIED);
		assert_int_equal(a.reason, REASON_HOST_NOT_ALLOWED);
		rules_unref(rs);
	}
	assert_int_equal(rules_compile(NULL, 0, NULL, NULL, &rs), 0);
	CHECK(rs, v);
	assert_string_equal(rules_name(rs), "unnamed");
	rules_unref(rs);
}

/* POL-07: a host without ports is the web's ports and no other. */
static void a_host_without_ports_is_the_web(void **state)
{
	static const struct verdict v[] = {
		{ "example.com", 443, NULL, REASON_ALLOWED, "a", "https" },
		{ "example.com", 80, NULL, REASON_ALLOWED, "a", "http" },
		{ "example.com", 443, PUBLIC4, REASON_ALLOWED, "a", "https" },
		{ "example.com", 443, PUBLIC6, REASON_ALLOWED, "a", "https" },
		{ "example.com", 22, NULL, REASON_PORT_NOT_ALLOWED, NULL,
		  NULL },
		{ "example.com", 9999, NULL, REASON_PORT_NOT_ALLOWED, NULL,
		  NULL },
		{ "example.com", 0, NULL, REASON_PORT_NOT_ALLOWED, NULL, NULL },
		{ "example.com", 442, NULL, REASON_PORT_NOT_ALLOWED, NULL,
		  NULL },
		{ "example.net", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
		{ "com", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL, NULL },
	};
	struct ruleset *rs = compile_good("[allow a]\nhosts = Example.COM.\n");

	(void)state;
	CHECK(rs, v);
	rules_unref(rs);
}

static void ports_and_protocols_say_what_they_open(void **state)
{
	static const struct verdict v[] = {
		{ "one.example.com", 22, NULL, REASON_ALLOWED, "ssh", "ssh" },
		{ "one.example.com", 443, NULL, REASON_PORT_NOT_ALLOWED, NULL,
		  NULL },
		{ "two.example.com", 8443, NULL, REASON_ALLOWED, "odd",
		  "https" },
		{ "two.example.com", 443, NULL, REASON_PORT_NOT_ALLOWED, NULL,
		  NULL },
		{ "three.example.com", 5432, NULL, REASON_ALLOWED, "by-port",
		  "postgres" },
		{ "three.example.com", 5433, NULL, REASON_ALLOWED, "by-port",
		  "tcp" },
		{ "three.example.com", 443, NULL, REASON_ALLOWED, "by-port",
		  "https" },
		{ "three.example.com", 8005, NULL, REASON_ALLOWED, "by-port",
		  "tcp" },
		{ "three.example.com", 8011, NULL, REASON_PORT_NOT_ALLOWED,
		  NULL, NULL },
		{ "four.example.com", 1, NULL, REASON_ALLOWED, "all", "tcp" },
		{ "four.example.com", 65535, NULL, REASON_ALLOWED, "all",
		  "tcp" },
		{ "four.example.com", 0, NULL, REASON_PORT_NOT_ALLOWED, NULL,
		  NULL },
		{ "five.example.com", 65535, NULL, REASON_ALLOWED, "range",
		  "tcp" },
	};
	struct ruleset *rs = compile_good(
		"[allow ssh]\nhosts = one.example.com\nprotocol = ssh\n"
		"[allow odd]\nhosts = two.example.com\nprotocol = https\n"
		"ports = 8443\n"
		"[allow by-port]\nhosts = three.example.com\n"
		"ports = 443 8000-8010\nports = 5432-5433\n"
		"[allow all]\nhosts = four.example.com\nports = *\n"
		"[allow range]\nhosts = five.example.com\nports = 1-65535\n");

	(void)state;
	CHECK(rs, v);
	rules_unref(rs);
}

/* POL-13, POL-26: whole labels only, and a dot is a dot. */
static void a_wildcard_stands_for_whole_labels_below(void **state)
{
	static const struct verdict v[] = {
		{ "a.example.com", 443, NULL, REASON_ALLOWED, "w", "https" },
		{ "a.b.example.com", 443, NULL, REASON_ALLOWED, "w", "https" },
		{ "a.b.c.d.e.example.com", 80, NULL, REASON_ALLOWED, "w",
		  "http" },
		{ "my_bucket.example.com", 443, NULL, REASON_ALLOWED, "w",
		  "https" },
		{ "example.com", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
		{ "xexample.com", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
		{ "example.com.evil.example.net", 443, NULL,
		  REASON_HOST_NOT_ALLOWED, NULL, NULL },
		{ "a.example.com.evil.example.net", 443, NULL,
		  REASON_HOST_NOT_ALLOWED, NULL, NULL },
		{ "apixexample.org", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
		{ "api.example.org", 443, NULL, REASON_ALLOWED, "e", "https" },
		{ "a.api.example.org", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
		/* Not canonical: nobody should ask, nothing is found. */
		{ ".example.com", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
		{ ".api.example.org", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
		{ "api.example.org.", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
		{ "api..example.org", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
	};
	struct ruleset *rs = compile_good(
		"[allow w]\nhosts = *.example.com\n"
		"[allow e]\nhosts = api.example.org\n");

	(void)state;
	CHECK(rs, v);
	rules_unref(rs);
}

static void the_most_specific_allow_names_the_flow(void **state)
{
	static const struct verdict v[] = {
		{ "x.example.com", 443, NULL, REASON_ALLOWED, "wide", "https" },
		{ "x.a.example.com", 443, NULL, REASON_ALLOWED, "narrow",
		  "tcp" },
		{ "b.a.example.com", 443, NULL, REASON_ALLOWED, "exact",
		  "https" },
		/* Written ports beat a rule's default ones. */
		{ "c.example.com", 443, NULL, REASON_ALLOWED, "written",
		  "tcp" },
		{ "c.example.com", 80, NULL, REASON_ALLOWED, "default",
		  "http" },
		/* What only the wider one permits, it permits. */
		{ "b.a.example.com", 9000, NULL, REASON_ALLOWED, "wide",
		  "tcp" },
		{ "x.a.example.com", 80, NULL, REASON_PORT_NOT_ALLOWED, NULL,
		  NULL },
	};
	struct ruleset *rs = compile_good(
		"[allow wide]\nhosts = *.example.com\nports = 443 9000\n"
		"[allow narrow]\nhosts = *.a.example.com\nports = 443\n"
		"protocol = tcp\n"
		"[allow exact]\nhosts = b.a.example.com\nprotocol = https\n"
		"[allow default]\nhosts = c.example.com\n"
		"[allow written]\nhosts = c.example.com\nports = 443\n"
		"protocol = tcp\n");

	(void)state;
	CHECK(rs, v);
	rules_unref(rs);
}

static void a_deny_takes_from_what_is_allowed(void **state)
{
	static const struct verdict v[] = {
		{ "a.example.com", 443, NULL, REASON_ALLOWED, "all", "https" },
		{ "bad.example.com", 443, NULL, REASON_HOST_DENIED, "bad",
		  NULL },
		{ "bad.example.com", 9, NULL, REASON_HOST_DENIED, "bad", NULL },
		{ "x.bad.example.com", 443, NULL, REASON_ALLOWED, "all",
		  "https" },
		{ "x.worse.example.com", 443, NULL, REASON_HOST_DENIED, "worse",
		  NULL },
		{ "worse.example.com", 443, NULL, REASON_ALLOWED, "all",
		  "https" },
		/* By port: the rest stays open. */
		{ "part.example.com", 80, NULL, REASON_HOST_DENIED, "part",
		  NULL },
		{ "part.example.com", 443, NULL, REASON_ALLOWED, "all",
		  "https" },
		{ "old.example.com", 80, NULL, REASON_HOST_DENIED,
		  "by-protocol", NULL },
		{ "old.example.com", 443, NULL, REASON_ALLOWED, "all",
		  "https" },
		/* It speaks of hosts that nothing allows as well. */
		{ "bad.example.net", 443, NULL, REASON_HOST_DENIED, "bad",
		  NULL },
	};
	struct ruleset *rs = compile_good(
		"[allow all]\nhosts = *.example.com\n"
		"[deny bad]\nhosts = bad.example.com bad.example.net\n"
		"[deny worse]\nhosts = *.worse.example.com\n"
		"[deny part]\nhosts = part.example.com\nports = 1-100\n"
		"[deny by-protocol]\nhosts = old.example.com\n"
		"protocol = http\n");

	(void)state;
	CHECK(rs, v);
	rules_unref(rs);
}

/* POL-10: deny "*" wins over everything, literals too. */
static void a_deny_of_all_shuts_all(void **state)
{
	static const struct verdict v[] = {
		{ "api.example.com", 443, NULL, REASON_HOST_DENIED,
		  "everything", NULL },
		{ "other.example.net", 1, NULL, REASON_HOST_DENIED,
		  "everything", NULL },
		{ NULL, 443, PUBLIC4, REASON_ADDRESS_DENIED, "everything",
		  NULL },
	};
	struct rules_answer a;
	struct ruleset *rs = compile_good(
		"[allow api]\nhosts = api.example.com\n"
		"[allow net]\naddresses = 8.8.8.0/24\n"
		"[deny everything]\nhosts = *\n");

	(void)state;
	CHECK(rs, v);
	assert_int_equal(rules_judge_name(rs, STR("api.example.com"), 1, &a),
			 RULES_NAME_DENIED);
	assert_int_equal(a.reason, REASON_HOST_DENIED);
	assert_string_equal(a.rule, "everything");
	assert_int_equal(rules_judge_name(rs, STR("example.com"), 1, &a),
			 RULES_NAME_DENIED);
	rules_unref(rs);
}

static void a_deny_of_all_on_some_ports_leaves_the_rest(void **state)
{
	static const struct verdict v[] = {
		{ "api.example.com", 25, NULL, REASON_HOST_DENIED, "mail",
		  NULL },
		{ "api.example.com", 443, NULL, REASON_ALLOWED, "api",
		  "https" },
		{ "other.example.com", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
		{ NULL, 25, PUBLIC4, REASON_ADDRESS_DENIED, "mail", NULL },
		{ NULL, 26, PUBLIC4, REASON_ADDRESS_NOT_ALLOWED, NULL, NULL },
	};
	struct rules_answer a;
	struct ruleset *rs = compile_good(
		"[allow api]\nhosts = api.example.com\nports = 25 443\n"
		"[deny mail]\nhosts = *\nports = 25\n");

	(void)state;
	CHECK(rs, v);
	/* A deny of port 25 is no reason for a name that nothing allows. */
	assert_int_equal(rules_judge_name(rs, STR("other.example.com"), 1, &a),
			 RULES_NAME_DENIED);
	assert_int_equal(a.reason, REASON_HOST_NOT_ALLOWED);
	assert_null(a.rule);
	rules_unref(rs);
}

/* ADDR-12, ADDR-13: literals need a rule with addresses,
names one with hosts. */
static void literals_and_names_have_rules_of_their_own(void **state)
{
	static const struct verdict v[] = {
		{ "a.example.com", 443, PUBLIC4, REASON_ALLOWED, "name",
		  "https" },
		{ NULL, 443, "7.7.7.7", REASON_ADDRESS_NOT_ALLOWED, NULL,
		  NULL },
		{ NULL, 443, PUBLIC6, REASON_ADDRESS_NOT_ALLOWED, NULL, NULL },
		{ NULL, 443, "8.8.8.9", REASON_ALLOWED, "net", "https" },
		{ NULL, 80, "8.8.8.9", REASON_ALLOWED, "net", "http" },
		{ NULL, 22, "8.8.8.9", REASON_PORT_NOT_ALLOWED, NULL, NULL },
		{ NULL, 443, "2607:f8b0::2", REASON_ALLOWED, "net", "https" },
		{ NULL, 853, "9.9.9.10", REASON_ALLOWED, "range", "tcp" },
		{ NULL, 853, "9.9.9.11", REASON_ADDRESS_NOT_ALLOWED, NULL,
		  NULL },
		/* A name is no literal, though it resolves into the range. */
		{ "other.example.net", 443, "8.8.8.9", REASON_HOST_NOT_ALLOWED,
		  NULL, NULL },
		{ "other.example.net", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL },
	};
	struct ruleset *rs = compile_good(
		"[allow name]\nhosts = *.example.com\n"
		"[allow net]\naddresses = 8.8.8.0/24 2607:f8b0::/32\n"
		"[allow range]\naddresses = 9.9.9.1-9.9.9.10\nports = 853\n");

	(void)state;
	CHECK(rs, v);
	rules_unref(rs);
}

/* The classes, for a name that is allowed and for literals. */
static void special_addresses_are_refused_by_class(void **state)
{
	static const struct {
		const char *addr;
		enum reason reason;
	} cases[] = {
		{ "0.0.0.0", REASON_ADDRESS_UNSPECIFIED },
		{ "127.0.0.1", REASON_ADDRESS_LOOPBACK },
		{ "10.0.0.1", REASON_ADDRESS_PRIVATE },
		{ "192.168.1.1", REASON_ADDRESS_PRIVATE },
		{ "169.254.1.1", REASON_ADDRESS_LINK_LOCAL },
		{ "100.64.0.1", REASON_ADDRESS_CGNAT },
		{ "224.0.0.1", REASON_ADDRESS_MULTICAST },
		{ "203.0.113.7", REASON_ADDRESS_DOCUMENTATION },
		{ "198.18.0.1", REASON_ADDRESS_BENCHMARK },
		{ "255.255.255.255", REASON_ADDRESS_RESERVED },
		{ "::", REASON_ADDRESS_UNSPECIFIED },
		{ "::1", REASON_ADDRESS_LOOPBACK },
		{ "fd00::1", REASON_ADDRESS_PRIVATE },
		{ "fe80::1", REASON_ADDRESS_LINK_LOCAL },
		{ "2001:db8::1", REASON_ADDRESS_DOCUMENTATION },
		/* ADDR-11 */
		{ "169.254.169.254", REASON_ADDRESS_METADATA },
		{ "100.100.100.200", REASON_ADDRESS_METADATA },
		{ "fd00:ec2::254", REASON_ADDRESS_METADATA },
		/* ADDR-01, ADDR-02: by what they carry. */
		{ "::ffff:127.0.0.1", REASON_ADDRESS_LOOPBACK },
		{ "::ffff:a9fe:a9fe", REASON_ADDRESS_METADATA },
		{ "::ffff:10.0.0.1", REASON_ADDRESS_PRIVATE },
		{ "64:ff9b::a9fe:a9fe", REASON_ADDRESS_METADATA },
		{ "64:ff9b::7f00:1", REASON_ADDRESS_LOOPBACK },
	};
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = *.example.com\n"
		"[allow b]\naddresses = 8.8.8.8\n");

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct verdict v[] = {
			{ "a.example.com", 443, cases[i].addr, cases[i].reason,
			  "a", "https" },
			{ NULL, 443, cases[i].addr, cases[i].reason, NULL,
			  NULL },
		};

		CHECK(rs, v);
	}
	rules_unref(rs);
}

/* POL-24: an exception is for that address and port and nothing beside. */
static void an_exception_opens_what_it_says(void **state)
{
	static const struct verdict v[] = {
		{ NULL, 8081, "127.0.0.1", REASON_ALLOWED, "local", "tcp" },
		{ NULL, 8081, "::ffff:127.0.0.1", REASON_ALLOWED, "local",
		  "tcp" },
		{ NULL, 8082, "127.0.0.1", REASON_ADDRESS_LOOPBACK, NULL,
		  NULL },
		{ NULL, 8081, "127.0.0.2", REASON_ADDRESS_LOOPBACK, NULL,
		  NULL },
		{ NULL, 8081, "169.254.169.254", REASON_ADDRESS_METADATA, NULL,
		  NULL },
		{ "cache.example.com", 443, NULL, REASON_ALLOWED, "cache",
		  "https" },
		{ "cache.example.com", 443, "10.20.3.4", REASON_ALLOWED,
		  "cache", "https" },
		{ "cache.example.com", 443, "10.21.0.1", REASON_ADDRESS_PRIVATE,
		  "cache", "https" },
		/* Addresses beside hosts restrict, too. */
		{ "cache.example.com", 443, PUBLIC4, REASON_ADDRESS_NOT_ALLOWED,
		  "cache", "https" },
		{ "cache.example.com", 22, "10.20.3.4", REASON_PORT_NOT_ALLOWED,
		  NULL, NULL },
		/* Not for another name, and not for a literal. */
		{ "web.example.com", 443, "10.20.3.4", REASON_ADDRESS_PRIVATE,
		  "web", "https" },
		{ NULL, 443, "10.20.3.4", REASON_ADDRESS_PRIVATE, NULL, NULL },
		/* Two rules together: public by one, private by the other. */
		{ "both.example.com", 443, PUBLIC4, REASON_ALLOWED, "both",
		  "https" },
		{ "both.example.com", 443, "10.30.0.1", REASON_ALLOWED,
		  "both-inside", "https" },
		{ "both.example.com", 443, "10.40.0.1", REASON_ADDRESS_PRIVATE,
		  "both", "https" },
	};
	struct ruleset *rs = compile_good(
		"[allow local]\naddresses = 127.0.0.1\nports = 8081\n"
		"reason = test server\nowner = me\n"
		"[allow cache]\nhosts = cache.example.com\n"
		"addresses = 10.20.0.0/16\nreason = cache\nowner = me\n"
		"[allow web]\nhosts = web.example.com\n"
		"[allow both]\nhosts = both.example.com\n"
		"[allow both-inside]\nhosts = both.example.com\n"
		"addresses = 10.30.0.0/16\nreason = inside\nowner = me\n");

	(void)state;
	CHECK(rs, v);
	rules_unref(rs);
}

/* ADDR-11: a metadata service is opened by its own literal alone. */
static void metadata_needs_its_exact_address(void **state)
{
	static const struct verdict v[] = {
		{ NULL, 80, "169.254.1.1", REASON_ALLOWED, "range", "http" },
		{ NULL, 80, "169.254.169.254", REASON_ADDRESS_METADATA, "range",
		  "http" },
		{ "m.example.com", 80, "169.254.169.254",
		  REASON_ADDRESS_METADATA,
		  "named-range", "http" },
		{ "m.example.com", 80, "64:ff9b::a9fe:a9fe",
		  REASON_ADDRESS_METADATA,
		  "named-range", "http" },
		{ NULL, 80, "fd00:ec2::254", REASON_ALLOWED, "exact", "http" },
		{ NULL, 80, "100.100.100.200", REASON_ALLOWED, "exact",
		  "http" },
		{ NULL, 443, "100.100.100.200", REASON_ADDRESS_METADATA, NULL,
		  NULL },
		{ "n.example.com", 80, "169.254.169.254", REASON_ALLOWED,
		  "named", "http" },
		{ "n.example.com", 80, "169.254.170.2", REASON_ADDRESS_METADATA,
		  "named", "http" },
	};
	struct ruleset *rs = compile_good(
		"[allow range]\naddresses = 169.254.0.0/16\nreason = x\n"
		"[allow named-range]\nhosts = m.example.com\n"
		"addresses = 169.254.0.0/16 64:ff9b::/96\nreason = x\n"
		"[allow exact]\naddresses = fd00:ec2::254 100.64.0.0/10\n"
		"addresses = 100.100.100.200\nreason = x\nports = 80\n"
		"[allow named]\nhosts = n.example.com\n"
		"addresses = 169.254.0.0/16 169.254.169.254\nreason = x\n");

	(void)state;
	CHECK(rs, v);
	rules_unref(rs);
}

/* POL-11: a deny inside an allowed range. */
static void a_deny_of_addresses_comes_after_resolution(void **state)
{
	static const struct verdict v[] = {
		{ NULL, 80, "198.51.100.5", REASON_ADDRESS_DENIED, "hole",
		  NULL },
		{ NULL, 80, "198.51.100.6", REASON_ALLOWED, "net", "http" },
		{ NULL, 80, "::ffff:198.51.100.5", REASON_ADDRESS_DENIED,
		  "hole", NULL },
		{ "a.example.com", 443, NULL, REASON_ALLOWED, "name", "https" },
		{ "a.example.com", 443, PUBLIC4B, REASON_ALLOWED, "name",
		  "https" },
		{ "a.example.com", 443, "8.8.4.4", REASON_ADDRESS_DENIED,
		  "sink", NULL },
		/* ADDR-02: NAT64 is a way to write it. */
		{ "a.example.com", 443, "64:ff9b::808:404",
		  REASON_ADDRESS_DENIED,
		  "sink", NULL },
		{ "a.example.com", 443, "64:ff9b::808:808", REASON_ALLOWED,
		  "name", "https" },
		{ "a.example.com", 80, "8.8.4.4", REASON_ALLOWED, "name",
		  "http" },
		/* With hosts as well, both must fit. */
		{ "b.example.com", 443, "7.7.7.7", REASON_ADDRESS_DENIED,
		  "pair", NULL },
		{ "a.example.com", 443, "7.7.7.7", REASON_ALLOWED, "name",
		  "https" },
		{ "b.example.com", 443, PUBLIC4B, REASON_ALLOWED, "name",
		  "https" },
		{ "b.example.com", 443, NULL, REASON_ALLOWED, "name", "https" },
	};
	struct ruleset *rs = compile_good(
		"[allow net]\naddresses = 198.51.100.0/24\nreason = lab\n"
		"[deny hole]\naddresses = 198.51.100.5\n"
		"[allow name]\nhosts = *.example.com\n"
		"[deny sink]\naddresses = 8.8.4.0/24\nports = 443\n"
		"[deny pair]\nhosts = b.example.com\naddresses = 7.0.0.0/8\n");

	(void)state;
	CHECK(rs, v);
	rules_unref(rs);
}

static void the_narrowest_range_names_a_literal(void **state)
{
	static const struct verdict v[] = {
		{ NULL, 443, "9.9.9.9", REASON_ALLOWED, "one", "tcp" },
		{ NULL, 443, "9.9.9.8", REASON_ALLOWED, "some", "https" },
		{ NULL, 443, "9.9.8.8", REASON_ALLOWED, "many", "https" },
		{ NULL, 80, "9.9.9.9", REASON_ALLOWED, "some", "http" },
		/* The same address, written the other way. */
		{ NULL, 443, "64:ff9b::909:909", REASON_ALLOWED, "one", "tcp" },
	};
	struct ruleset *rs = compile_good(
		"[allow many]\naddresses = 9.0.0.0/8\n"
		"[allow some]\naddresses = 9.9.9.0/24\n"
		"[allow one]\naddresses = 9.9.9.9\nports = 443\n"
		"protocol = tcp\n");

	(void)state;
	CHECK(rs, v);
	rules_unref(rs);
}

static void this_hosts_own_addresses_are_a_class(void **state)
{
	struct ip_hosts *hosts;
	struct rules_question q = { .host = STR("a.example.com"), .port = 443 };
	struct rules_answer a;
	struct ip_addr addr;
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example.com\n"
		"[allow b]\nhosts = b.example.com\naddresses = 8.8.8.8\n");

	(void)state;
	hosts = test_calloc(1, sizeof(*hosts) + sizeof(hosts->net[0]));
	hosts->n = 1;
	assert_int_equal(ip_net_parse(STR("8.8.8.0/24"), &hosts->net[0]), 0);
	assert_int_equal(ip_addr_parse(STR("8.8.8.8"), &addr), 0);
	q.addr = &addr;
	rules_judge(rs, &q, &a);
	assert_int_equal(a.reason, REASON_ALLOWED);
	q.hosts = hosts;
	rules_judge(rs, &q, &a);
	assert_int_equal(a.reason, REASON_ADDRESS_HOST);
	assert_int_equal(a.klass, IP_HOST);
	assert_false(rules_passes(&a));
	/* A rule's addresses except from this class, too. */
	q.host = STR("b.example.com");
	rules_judge(rs, &q, &a);
	assert_int_equal(a.reason, REASON_ALLOWED);
	assert_int_equal(a.klass, IP_HOST);
	test_free(hosts);
	rules_unref(rs);
}

/* Who excepts a private range means what is there, not what listens here. */
static void a_range_does_not_open_the_host_itself(void **state)
{
	static const struct { const char *host, *addr; enum reason why; } cases[] = {
		{ "a.example.com", "10.1.2.4", REASON_ALLOWED },
		{ "a.example.com", "10.1.2.3", REASON_ADDRESS_HOST },
		{ "a.example.com", "::ffff:10.1.2.3", REASON_ADDRESS_HOST },
		{ "a.example.com", "64:ff9b::a01:203", REASON_ADDRESS_HOST },
		{ "b.example.com", "10.1.2.3", REASON_ALLOWED },
		/* Its own by a local route to all of them. */
		{ "a.example.com", "10.9.8.7", REASON_ADDRESS_HOST },
		{ "a.example.com", "64:ff9b::a09:807", REASON_ADDRESS_HOST },
		{ "a.example.com", "10.10.8.7", REASON_ALLOWED },
		{ "e.example.com", "10.9.8.7", REASON_ALLOWED },
		{ "e.example.com", "10.9.8.8", REASON_ADDRESS_HOST },
		{ "c.example.com", "127.0.0.1", REASON_ALLOWED },
		{ "d.example.com", "127.0.0.1", REASON_ADDRESS_LOOPBACK },
	};
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example.com\naddresses = 10.0.0.0/8\n"
		"reason = x\nowner = y\n"
		"[allow b]\nhosts = b.example.com\naddresses = 10.1.2.3\n"
		"reason = x\nowner = y\n"
		"[allow c]\nhosts = c.example.com\naddresses = 127.0.0.0/8\n"
		"reason = x\nowner = y\n"
		"[allow d]\nhosts = d.example.com\n"
		"[allow e]\nhosts = e.example.com\naddresses = 10.9.8.7 10.9.0.0/16\n"
		"reason = x\nowner = y\n");
	struct ip_hosts *hosts = test_calloc(1, sizeof(*hosts) +
					     4 * sizeof(hosts->net[0]));

	(void)state;
	hosts->n_own = 3;
	hosts->n = 4;
	assert_int_equal(ip_net_parse(STR("10.1.2.3/32"), &hosts->net[0]), 0);
	assert_int_equal(ip_net_parse(STR("10.9.0.0/16"), &hosts->net[1]), 0);
	assert_int_equal(ip_net_parse(STR("127.0.0.1/32"), &hosts->net[2]), 0);
	assert_int_equal(ip_net_parse(STR("10.1.0.0/16"), &hosts->net[3]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct rules_question q = {
			.host = str_from(cases[i].host), .port = 443,
			.hosts = hosts,
		};
		struct rules_answer a;
		struct ip_addr addr;

		assert_int_equal(ip_addr_parse(str_from(cases[i].addr), &addr),
				 0);
		q.addr = &addr;
		rules_judge(rs, &q, &a);
		if (a.reason != cases[i].why)
			fail_msg("%s %s: %s", cases[i].host, cases[i].addr,
				 reason_word(a.reason));
	}
	test_free(hosts);
	rules_unref(rs);
}

struct observed {
	struct verdict v;
	bool would_deny;
};

static void observing_lets_names_through_only(void **state)
{
	static const struct observed o[] = {
		{ { "a.example.com", 443, NULL, REASON_ALLOWED, "a", "https" },
		  false },
		{ { "a.example.com", 22, NULL, REASON_PORT_NOT_ALLOWED, NULL,
		  "ssh" }, true },
		{ { "a.example.com", 22, PUBLIC4, REASON_PORT_NOT_ALLOWED, NULL,
		  "ssh" }, true },
		{ { "b.example.com", 443, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  "https" }, true },
		{ { "b.example.com", 9, PUBLIC4, REASON_HOST_NOT_ALLOWED, NULL,
		  "tcp" }, true },
		{ { "bad.example.com", 443, NULL, REASON_HOST_DENIED, "bad",
		  "https" }, true },
		{ { NULL, 443, PUBLIC4, REASON_ADDRESS_NOT_ALLOWED, NULL,
		  "https" }, true },
		{ { "c.example.com", 443, PUBLIC4, REASON_ADDRESS_NOT_ALLOWED,
		  "c",
		    "https" }, true },
		/* Addresses: whatever the first reason was,
		the class decides. */
		{ { "b.example.com", 443, "10.0.0.1", REASON_ADDRESS_PRIVATE,
		  NULL,
		    NULL }, false },
		{ { "bad.example.com", 443, "127.0.0.1",
		  REASON_ADDRESS_LOOPBACK, NULL,
		    NULL }, false },
		{ { "a.example.com", 443, "169.254.169.254",
		  REASON_ADDRESS_METADATA,
		    "a", "https" }, false },
		{ { NULL, 443, "10.0.0.1", REASON_ADDRESS_PRIVATE, NULL, NULL },
		  false },
		{ { NULL, 443, NULL, REASON_ADDRESS_NOT_ALLOWED, NULL, NULL },
		  false },
		{ { "b.example.com", 443, PUBLIC4B, REASON_ADDRESS_DENIED,
		  "sink",
		    NULL }, false },
		{ { NULL, 443, PUBLIC4B, REASON_ADDRESS_DENIED, "sink", NULL },
		  false },
		{ { "b.example.com", 0, NULL, REASON_HOST_NOT_ALLOWED, NULL,
		  NULL }, false },
	};
	struct rules_answer a;
	struct ruleset *rs = compile_good(
		"[policy]\nmode = observe\nreason = finding out\n"
		"[allow a]\nhosts = a.example.com\n"
		"[allow c]\nhosts = c.example.com\naddresses = 7.7.7.7\n"
		"[deny bad]\nhosts = bad.example.com\n"
		"[deny sink]\naddresses = 9.9.9.9\n");

	(void)state;
	assert_true(rules_observe(rs));
	for (size_t i = 0; i < ARRAY_SIZE(o); i++) {
		check_verdicts(rs, &o[i].v, 1);
		a = ask(rs, o[i].v.host, o[i].v.port, o[i].v.addr);
		if (a.would_deny != o[i].would_deny)
			fail_msg("case %zu: would_deny is %d", i, a.would_deny);
	}
	assert_int_equal(rules_judge_name(rs, STR("b.example.com"), 1, &a),
			 RULES_NAME_ALLOWED);
	assert_true(a.would_deny);
	assert_int_equal(a.reason, REASON_HOST_NOT_ALLOWED);
	assert_int_equal(rules_judge_name(rs, STR("a.example.com"), 1, &a),
			 RULES_NAME_ALLOWED);
	assert_false(a.would_deny);
	rules_unref(rs);
}

/* What is denied of a name's requests, or only for show, or was, hides no names
 * below it: NXDOMAIN would say that there are none (RFC 8020). */
static void a_deny_of_less_than_all_leaves_the_names_above(void **state)
{
	static const struct {
		const char *deny;
		enum rules_name_verdict above;
	} t[] = {
		{ "", RULES_NAME_DENIED },
		{ "methods = DELETE\n", RULES_NAME_ANCESTOR },
		{ "mode = observe\nreason = x\n", RULES_NAME_ANCESTOR },
		{ "expires = 2001-01-01\n", RULES_NAME_ANCESTOR },
		{ "expires = 2999-01-01\n", RULES_NAME_DENIED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct buf text = BUF_INIT(1 << 10);
		struct rules_answer a;
		struct ruleset *rs;

		assert_int_equal(buf_printf(&text, "[allow a]\n"
					    "hosts = a.example.com\n[deny d]\n"
					    "hosts = *\n%s", t[i].deny), 0);
		rs = compile_good(buf_cstr(&text));
		assert_int_equal(rules_judge_name(rs, STR("example.com"),
						  1800000000, &a),
				 t[i].above);
		rules_unref(rs);
		buf_done(&text);
	}
}

static void a_name_is_judged_without_a_port(void **state)
{
	static const struct {
		const char *name;
		enum rules_name_verdict verdict;
		enum reason reason;
		const char *rule;
	} cases[] = {
		{ "a.b.example.com", RULES_NAME_ALLOWED, REASON_ALLOWED,
		  "exact" },
		{ "b.example.com", RULES_NAME_ANCESTOR, REASON_HOST_NOT_ALLOWED,
		  NULL },
		{ "example.com", RULES_NAME_ANCESTOR, REASON_HOST_NOT_ALLOWED,
		  NULL },
		{ "com", RULES_NAME_ANCESTOR, REASON_HOST_NOT_ALLOWED, NULL },
		{ "c.example.com", RULES_NAME_DENIED, REASON_HOST_NOT_ALLOWED,
		  NULL },
		{ "x.a.b.example.com", RULES_NAME_DENIED,
		  REASON_HOST_NOT_ALLOWED, NULL },
		{ "x.example.net", RULES_NAME_ALLOWED, REASON_ALLOWED, "wild" },
		{ "example.net", RULES_NAME_ANCESTOR, REASON_HOST_NOT_ALLOWED,
		  NULL },
		{ "net", RULES_NAME_ANCESTOR, REASON_HOST_NOT_ALLOWED, NULL },
		{ "bad.example.net", RULES_NAME_DENIED, REASON_HOST_DENIED,
		  "bad" },
		/* Every port that is allowed is denied,
		by two rules together. */
		{ "web.example.net", RULES_NAME_DENIED, REASON_HOST_DENIED,
		  "web-1" },
		{ "half.example.net", RULES_NAME_ALLOWED, REASON_ALLOWED,
		  "wild" },
		/* Denied addresses are for later. */
		{ "later.example.net", RULES_NAME_ALLOWED, REASON_ALLOWED,
		  "wild" },
		/* Denied itself, but a name below is allowed: not NXDOMAIN. */
		{ "top.example.org", RULES_NAME_ANCESTOR, REASON_HOST_DENIED,
		  "bad" },
		{ "org", RULES_NAME_ANCESTOR, REASON_HOST_NOT_ALLOWED, NULL },
		{ "", RULES_NAME_DENIED, REASON_HOST_NOT_ALLOWED, NULL },
	};
	struct ruleset *rs = compile_good(
		"[allow exact]\nhosts = a.b.example.com\n"
		"[allow wild]\nhosts = *.example.net\n"
		"[allow below]\nhosts = sub.top.example.org\n"
		"[deny bad]\nhosts = bad.example.net top.example.org\n"
		"[deny web-1]\nhosts = web.example.net half.example.net\n"
		"ports = 443\n"
		"[deny web-2]\nhosts = web.example.net\nports = 1-442\n"
		"[deny later]\nhosts = later.example.net\n"
		"addresses = 9.9.9.9\n");
	struct rules_answer a;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		enum rules_name_verdict verdict;

		verdict = rules_judge_name(rs, str_from(cases[i].name), 1, &a);
		if (verdict != cases[i].verdict || a.reason != cases[i].reason)
			fail_msg("'%s': %d, %s", cases[i].name, verdict,
				 reason_word(a.reason));
		if (cases[i].rule)
			assert_string_equal(a.rule, cases[i].rule);
		else
			assert_null(a.rule);
	}
	rules_unref(rs);
}

/* What lies between two that are near stays shut. */
static void neighbours_are_joined_and_gaps_are_kept(void **state)
{
	static const struct verdict v[] = {
		{ "a.example.com", 22, NULL, REASON_ALLOWED, "a", "ssh" },
		{ "a.example.com", 23, NULL, REASON_PORT_NOT_ALLOWED, NULL,
		  NULL },
		{ "a.example.com", 24, NULL, REASON_ALLOWED, "a", "tcp" },
		{ "a.example.com", 25, NULL, REASON_ALLOWED, "a", "smtp" },
		{ "a.example.com", 26, NULL, REASON_PORT_NOT_ALLOWED, NULL,
		  NULL },
		{ NULL, 80, "8.8.8.8", REASON_ALLOWED, "b", "http" },
		{ NULL, 80, "8.8.8.9", REASON_ADDRESS_NOT_ALLOWED, NULL,
		  NULL },
		{ NULL, 80, "8.8.8.10", REASON_ALLOWED, "b", "http" },
		{ NULL, 80, "8.8.8.11", REASON_ALLOWED, "b", "http" },
		{ NULL, 80, "8.8.8.12", REASON_ADDRESS_NOT_ALLOWED, NULL,
		  NULL },
		{ NULL, 80, "255.255.255.254", REASON_ADDRESS_RESERVED, NULL,
		  NULL },
		{ NULL, 80, "255.255.255.255", REASON_ALLOWED, "last",
		  "http" },
		{ NULL, 80, "::", REASON_ALLOWED, "last", "http" },
	};
	struct ruleset *rs = compile_good(
		"[allow a]\nhosts = a.example.com\nports = 25 22 24\n"
		"[allow b]\naddresses = 8.8.8.11 8.8.8.8 8.8.8.10\n"
		"[allow last]\naddresses = 255.255.255.255 ::\n"
		"reason = ends of both families\n");

	(void)state;
	CHECK(rs, v);
	rules_unref(rs);
}

/* As many labels as fit, and one more: it is not taken for the name below. */
static void a_host_with_too_many_labels_is_no_other(void **state)
{
	struct buf text = BUF_INIT(4096);
	struct ruleset *rs;
	struct str host;
	char name[256];

	(void)state;
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 2 ? '.' : 'a';
	name[255] = '\0';
	host = str_make(name + 2, HOST_NAME_MAX_LEN);
	assert_int_equal(buf_printf(&text, "[allow a]\nhosts = %.*s\n",
				    STR_ARG(host)), 0);
	rs = compile_good(buf_cstr(&text));
	assert_int_equal(ask(rs, name + 2, 443, NULL).reason, REASON_ALLOWED);
	assert_int_equal(ask(rs, name, 443, NULL).reason,
			 REASON_HOST_NOT_ALLOWED);
	rules_unref(rs);
	buf_done(&text);
}

static void protocols_are_known_by_name_and_port(void **state)
{
	(void)state;
	assert_string_equal(rules_protocol_by_port(443)->name, "https");
	assert_string_equal(rules_protocol_by_port(80)->name, "http");
	assert_string_equal(rules_protocol_by_port(22)->name, "ssh");
	assert_string_equal(rules_protocol_by_port(8080)->name, "tcp");
	assert_string_equal(rules_protocol_by_port(0)->name, "tcp");
	assert_int_equal(rules_protocol_by_name(STR("https"))->speech,
			 SPEECH_TLS);
	assert_int_equal(rules_protocol_by_name(STR("http"))->speech,
			 SPEECH_HTTP);
	assert_int_equal(rules_protocol_by_name(STR("postgres"))->speech,
			 SPEECH_OPAQUE);
	assert_int_equal(rules_protocol_by_name(STR("tcp"))->port, 0);
	assert_null(rules_protocol_by_name(STR("HTTPS")));
	assert_null(rules_protocol_by_name(STR("")));
}

static void another_port_is_found_for_who_explains(void **state)
{
	struct ruleset *rs = compile_good("[allow a]\n"
					  "hosts = example.com\n"
					  "ports = 100-200\n"
					  "[deny a]\n"
					  "hosts = example.com\n"
					  "ports = 90-149\n"
					  "[deny all]\n"
					  "hosts = other.example.com\n"
					  "[allow other]\n"
					  "hosts = *.example.com\n"
					  "ports = 7\n");
	struct rules_question q = { .host = STR("example.com"), .port = 99 };
	struct rules_answer a;

	(void)state;
	assert_int_equal(rules_other_port(rs, &q, &a), 150);
	assert_string_equal(a.rule, "a");
	assert_int_equal(a.line, 1);
	q.host = STR("a.example.com");
	assert_int_equal(rules_other_port(rs, &q, &a), 7);
	q.host = STR("other.example.com");
	assert_int_equal(rules_other_port(rs, &q, &a), 0);
	q.host = STR("example.net");
	assert_int_equal(rules_other_port(rs, &q, &a), 0);
	rules_unref(rs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_policy_denies_everything),
		cmocka_unit_test(a_host_without_ports_is_the_web),
		cmocka_unit_test(ports_and_protocols_say_what_they_open),
		cmocka_unit_test(a_wildcard_stands_for_whole_labels_below),
		cmocka_unit_test(the_most_specific_allow_names_the_flow),
		cmocka_unit_test(a_deny_takes_from_what_is_allowed),
		cmocka_unit_test(a_deny_of_all_shuts_all),
		cmocka_unit_test(a_deny_of_all_on_some_ports_leaves_the_rest),
		cmocka_unit_test(literals_and_names_have_rules_of_their_own),
		cmocka_unit_test(special_addresses_are_refused_by_class),
		cmocka_unit_test(an_exception_opens_what_it_says),
		cmocka_unit_test(metadata_needs_its_exact_address),
		cmocka_unit_test(a_deny_of_addresses_comes_after_resolution),
		cmocka_unit_test(the_narrowest_range_names_a_literal),
		cmocka_unit_test(this_hosts_own_addresses_are_a_class),
		cmocka_unit_test(a_range_does_not_open_the_host_itself),
		cmocka_unit_test(observing_lets_names_through_only),
		cmocka_unit_test(a_name_is_judged_without_a_port),
		cmocka_unit_test(
			a_deny_of_less_than_all_leaves_the_names_above),
		cmocka_unit_test(neighbours_are_joined_and_gaps_are_kept),
		cmocka_unit_test(a_host_with_too_many_labels_is_no_other),
		cmocka_unit_test(protocols_are_known_by_name_and_port),
		cmocka_unit_test(another_port_is_found_for_who_explains),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
