/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_servers_test.c - upstream servers: how they are written, which is asked
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "resolver/dns_health.h"
#include "resolver/resolver.h"

/* --- resolv.conf ----------------------------------------------------------- */

static void nameserver_lines_are_read_and_the_rest_passed_over(void **state)
{
	struct resolver_conf_faults faults;
	struct resolver_servers s;

	(void)state;
	resolver_parse_conf(STR(
		"# nameserver 203.0.113.1\n"
		";nameserver 203.0.113.2\n"
		"search nameserver example\n"
		"options ndots:5 timeout:1\n"
		"nameserver 203.0.113.3 # the first\r\n"
		"nameserver\t2001:db8::53\n"
		"nameserver 203.0.113.3\n"
		"nameservers 203.0.113.9\n"
		"nameserver 203.0.113.9:5353\n"
		"nameserver\n"
		"nameserver 0.0.0.0\n"
		"nameserver 010.1.1.1\n"
		"nameserver 100.100.100.100"), &s, &faults);
	assert_int_equal(s.n, 3);
	assert_int_equal(faults.bad, 4);
	assert_int_equal(faults.self, 0);
	assert_int_equal(ip_addr_v4_bits(&s.server[0].at.addr), 0xcb007103);
	assert_int_equal(s.server[0].at.port, 53);
	assert_int_equal(s.server[1].at.addr.family, IP_V6);
	/* DNS-35: whatever is configured is what is used. */
	assert_int_equal(ip_addr_v4_bits(&s.server[2].at.addr), 0x64646464);
	resolver_parse_conf(STR(""), &s, &faults);
	assert_int_equal(s.n, 0);
	assert_int_equal(faults.bad, 0);
}

static void dns_29_a_link_local_server_keeps_its_interface(void **state)
{
	struct resolver_conf_faults faults;
	struct resolver_servers s;

	(void)state;
	resolver_parse_conf(STR(
		"nameserver fe80::1%eth0\n"
		"nameserver fe80::1%2\n"
		"nameserver fe80::1\n"			/* on which? */
		"nameserver fe80::1%\n"
		"nameserver fe80::1%interface-16bytes\n"
		"nameserver 2001:db8::53%eth0\n"
		"nameserver 127.0.0.53\n"), &s, &faults);
	assert_int_equal(s.n, 3);
	assert_int_equal(faults.bad, 4);
	assert_string_equal(s.server[0].zone, "eth0");
	assert_string_equal(s.server[1].zone, "2");
	assert_string_equal(s.server[2].zone, "");
}

static void dns_19_what_leads_back_to_us_is_counted_apart(void **state)
{
	struct resolver_conf_faults faults;
	struct resolver_servers s;

	(void)state;
	resolver_parse_conf(STR("nameserver 198.18.0.1\n"
				"nameserver ::ffff:198.19.255.255\n"
				"nameserver fd70:656e:7374:6f63::1\n"
				"nameserver 198.20.0.1\n"), &s, &faults);
	assert_int_equal(s.n, 1);
	assert_int_equal(faults.self, 3);
	assert_int_equal(faults.bad, 0);
}

static void servers_beyond_the_most_are_left_out(void **state)
{
	struct resolver_conf_faults faults;
	struct resolver_servers s;
	char text[512];
	size_t n = 0;

	(void)state;
	for (unsigned i = 1; i < 12; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "nameserver 192.0.2.%u\n", i);
	resolver_parse_conf(str_make(text, n), &s, &faults);
	assert_int_equal(s.n, RESOLVER_SERVERS_MAX);
	assert_int_equal(ip_addr_v4_bits(&s.server[7].at.addr), 0xc0000208);
}

/* --- servers that are given ------------------------------------------------ */

static void a_server_is_an_address_and_perhaps_a_port(void **state)
{
	static const struct {
		const char *text, *at, *zone;
	} good[] = {
		{ "192.0.2.53", "192.0.2.53:53", "" },
		{ "192.0.2.53:5353", "192.0.2.53:5353", "" },
		{ "2001:db8::53", "[2001:db8::53]:53", "" },
		{ "[2001:db8::53]", "[2001:db8::53]:53", "" },
		{ "[2001:db8::53]:5353", "[2001:db8::53]:5353", "" },
		{ "[fe80::1%eth0]:5353", "[fe80::1]:5353", "eth0" },
		{ "::ffff:192.0.2.53", "192.0.2.53:53", "" },
		{ "127.0.0.1", "127.0.0.1:53", "" },
		{ "tls://192.0.2.53", "192.0.2.53:853", "" },
		{ "tls://192.0.2.53:53#dns.example.net", "192.0.2.53:53", "" },
		{ "tls://[2001:db8::53]#dns.example.net",
		  "[2001:db8::53]:853", "" },
		{ "tls://2001:db8::53#a", "[2001:db8::53]:853", "" },
	};
	char text[IP_ENDPOINT_TEXT_SIZE];
	struct resolver_server s;
	const char *why;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(resolver_parse_server(str_from(good[i].text),
						       &s, &why), 0);
		ip_endpoint_text(&s.at, text);
		assert_string_equal(text, good[i].at);
		assert_string_equal(s.zone, good[i].zone);
	}
}

static void dns_19_what_is_no_servers_address_is_refused(void **state)
{
	static const struct {
		const char *text;
		int err;
		const char *why;	/* a part of it */
	} bad[] = {
		{ "", -EINVAL, "no address" },
		{ "dns.example.net", -EINVAL, "no address" },
		{ "192.0.2.53:", -EINVAL, "port" },
		{ "192.0.2.53:0", -EINVAL, "port" },
		{ "192.0.2.53:65536", -EINVAL, "port" },
		{ "[2001:db8::53", -EINVAL, "port" },
		{ "[2001:db8::53]5353", -EINVAL, "port" },
		{ "0.0.0.0", -EINVAL, "nobody" },
		{ "[::]:53", -EINVAL, "nobody" },
		{ "224.0.0.251", -EINVAL, "many" },
		{ "255.255.255.255", -EINVAL, "many" },
		{ "ff02::fb", -EINVAL, "many" },
		{ "fe80::1", -EINVAL, "which interface" },
		{ "192.0.2.1%eth0", -EINVAL, "interface" },
		{ "192.0.2.53#dns.example.net", -EINVAL, "no address" },
		{ "tls://", -EINVAL, "no address" },
		{ "tls://dns.example.net", -EINVAL, "no address" },
		{ "tls:192.0.2.53", -EINVAL, "port" },
		{ "https://192.0.2.53", -EINVAL, "port" },
		{ "tls://192.0.2.53#", -EINVAL, "name" },
		{ "tls://192.0.2.53#192.0.2.53", -EINVAL, "name" },
		{ "tls://192.0.2.53#a..b", -EINVAL, "name" },
		{ "tls://192.0.2.53#a b", -EINVAL, "name" },
		{ "tls://192.0.2.53#*.example.net", -EINVAL, "name" },
		{ "tls://198.18.0.1#a", -ELOOP, "ask itself" },
		{ "198.18.0.1", -ELOOP, "ask itself" },
		{ "[fd70:656e:7374:6f63::7]:53", -ELOOP, "ask itself" },
	};
	struct resolver_server s = { .at.port = 7 };
	const char *why = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(resolver_parse_server(str_from(bad[i].text),
						       &s, &why), bad[i].err);
		assert_non_null(strstr(why, bad[i].why));
		assert_int_equal(s.at.port, 7);
	}
}

/* --- health ---------------------------------------------------------------- */

static unsigned picked(const struct dns_health *h, size_t n, unsigned tried,
		       int64_t now_ms)
{
	unsigned i = 99;

	return dns_health_pick(h, n, tried, now_ms, &i) ? i : 99;
}

static void dns_24_one_that_failed_is_asked_after_the_others(void **state)
{
	struct dns_health h[3] = { { 0 } };

	(void)state;
	assert_int_equal(picked(h, 3, 0, 1000), 0);
	dns_health_failed(&h[0], 1000);
	assert_int_equal(picked(h, 3, 0, 1001), 1);
	assert_int_equal(picked(h, 3, BIT(1) | BIT(2), 1001), 0);
	assert_int_equal(picked(h, 3, 7, 1001), 99);
	assert_int_equal(picked(h, 3, 0, 1000 + DNS_REST_MS), 0);
	/* All of them: in their order, never none. */
	for (size_t i = 0; i < 3; i++)
		dns_health_failed(&h[i], 1002);
	assert_int_equal(picked(h, 3, 0, 1003), 0);
	assert_int_equal(picked(h, 0, 0, 1003), 99);
}

static void a_server_that_stays_dead_rests_longer_each_time(void **state)
{
	struct dns_health h = { 0 };
	int64_t now_ms = 1000;

	(void)state;
	for (uint32_t want = DNS_REST_MS; want < DNS_REST_MAX_MS; want *= 2) {
		dns_health_failed(&h, now_ms);
		dns_health_failed(&h, now_ms + 5);	/* the same fault */
		assert_int_equal(h.rests_until_ms, now_ms + want);
		now_ms = h.rests_until_ms;
	}
	dns_health_failed(&h, now_ms);
	dns_health_failed(&h, now_ms + DNS_REST_MAX_MS);
	assert_int_equal(h.rest_ms, DNS_REST_MAX_MS);
	dns_health_good(&h, 10, now_ms);
	assert_int_equal(h.rests_until_ms, 0);
	dns_health_failed(&h, now_ms);
	assert_int_equal(h.rest_ms, DNS_REST_MS);
}

static void dns_24_one_that_is_slow_on_the_whole_rests(void **state)
{
	struct dns_health h = { 0 };
	unsigned slow = 0;

	(void)state;
	dns_health_good(&h, 1400, 1000);	/* a name hard to find */
	assert_int_equal(h.rests_until_ms, 0);
	while (h.rests_until_ms == 0 && slow < 100) {
		dns_health_good(&h, 1400, 1000);
		slow++;
	}
	assert_in_range(slow, 1, 10);
	for (slow = 0; slow < 1000; slow++) {
		dns_health_good(&h, 300, 1000);
		assert_int_equal(h.rests_until_ms, 0);
	}
}

static void dns_27_udp_is_not_trusted_for_a_while_after_a_forgery(void **state)
{
	struct dns_health h = { 0 };

	(void)state;
	assert_false(dns_health_wants_tcp(&h, 1000));
	dns_health_forged(&h, 1000);
	assert_true(dns_health_wants_tcp(&h, 1000 + DNS_TCP_MS - 1));
	assert_false(dns_health_wants_tcp(&h, 1000 + DNS_TCP_MS));
	dns_health_no_tcp(&h);
	assert_false(dns_health_wants_tcp(&h, 1000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			nameserver_lines_are_read_and_the_rest_passed_over),
		cmocka_unit_test(
			dns_29_a_link_local_server_keeps_its_interface),
		cmocka_unit_test(dns_19_what_leads_back_to_us_is_counted_apart),
		cmocka_unit_test(servers_beyond_the_most_are_left_out),
		cmocka_unit_test(a_server_is_an_address_and_perhaps_a_port),
		cmocka_unit_test(dns_19_what_is_no_servers_address_is_refused),
		cmocka_unit_test(
			dns_24_one_that_failed_is_asked_after_the_others),
		cmocka_unit_test(
			a_server_that_stays_dead_rests_longer_each_time),
		cmocka_unit_test(dns_24_one_that_is_slow_on_the_whole_rests),
		cmocka_unit_test(
			dns_27_udp_is_not_trusted_for_a_while_after_a_forgery),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
