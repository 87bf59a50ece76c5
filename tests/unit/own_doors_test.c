/* SPDX-License-Identifier: Apache-2.0 */
/*
 * own_doors_test.c - what leads back to our own listeners, in every spelling
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "proxy/own_doors.h"

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(str_from(text), &a), 0);
	return a;
}

static bool has(const char *door, const char *dst, uint16_t port)
{
	struct own_doors *d = mem_new(sizeof(*d) + sizeof(d->at[0]));
	struct ip_hosts *hosts = mem_new(sizeof(*hosts) +
					 5 * sizeof(hosts->net[0]));
	struct ip_addr a = addr(dst);
	bool found;

	assert_non_null(d);
	assert_non_null(hosts);
	d->n = 1;
	assert_int_equal(ip_endpoint_parse(str_from(door), 0, &d->at[0]), 0);
	hosts->n_own = 4;
	hosts->n = 5;
	assert_int_equal(ip_net_parse(STR("192.0.2.1"), &hosts->net[0]), 0);
	assert_int_equal(ip_net_parse(STR("203.0.113.0/24"), &hosts->net[1]),
			 0);
	assert_int_equal(ip_net_parse(STR("2001:db8::1"), &hosts->net[2]), 0);
	assert_int_equal(ip_net_parse(STR("2001:db8:3::/48"), &hosts->net[3]),
			 0);
	assert_int_equal(ip_net_parse(STR("192.0.2.0/24"), &hosts->net[4]), 0);
	found = own_doors_have(d, hosts, &a, port);
	mem_free(d);
	mem_free(hosts);
	return found;
}

static void an_address_and_port_that_we_listen_on_are_ours(void **state)
{
	(void)state;
	assert_true(has("192.0.2.1:3128", "192.0.2.1", 3128));
	assert_true(has("192.0.2.1:3128", "::ffff:192.0.2.1", 3128));
	assert_true(has("[2001:db8::1]:53", "2001:db8::1", 53));
	/* Where the kernel goes when it is asked for no address. */
	assert_true(has("127.0.0.1:3128", "0.0.0.0", 3128));
	assert_true(has("127.0.0.1:3128", "::ffff:0.0.0.0", 3128));
	assert_true(has("[::1]:3128", "::", 3128));
	/* Controls: another port, address, family. */
	assert_false(has("192.0.2.1:3128", "192.0.2.1", 3129));
	assert_false(has("192.0.2.1:3128", "192.0.2.2", 3128));
	assert_false(has("127.0.0.1:3128", "127.0.0.2", 3128));
	assert_false(has("[::1]:3128", "127.0.0.1", 3128));
}

static void a_listener_on_every_address_is_on_each_of_the_hosts_own(
	void **state)
{
	(void)state;
	assert_true(has("0.0.0.0:3128", "192.0.2.1", 3128));
	assert_true(has("0.0.0.0:3128", "127.8.9.10", 3128));
	assert_true(has("0.0.0.0:3128", "0.0.0.0", 3128));
	assert_true(has("[::]:3128", "2001:db8::1", 3128));
	assert_true(has("[::]:3128", "::1", 3128));
	/* Prefixes that a local route made the host's own, to the last one. */
	assert_true(has("0.0.0.0:3128", "203.0.113.0", 3128));
	assert_true(has("0.0.0.0:3128", "::ffff:203.0.113.255", 3128));
	assert_true(has("[::]:3128", "2001:db8:3:ffff::9", 3128));
	assert_false(has("0.0.0.0:3128", "203.0.114.0", 3128));
	assert_false(has("[::]:3128", "2001:db8:4::", 3128));
	/* A neighbour's proxy is not ours, nor is one of the other family. */
	assert_false(has("0.0.0.0:3128", "192.0.2.2", 3128));
	assert_false(has("[::]:3128", "192.0.2.1", 3128));
	assert_false(has("0.0.0.0:3128", "2001:db8::1", 3128));
}

static void without_listeners_nothing_is_ours(void **state)
{
	struct ip_addr a = addr("127.0.0.1");

	(void)state;
	assert_false(own_doors_have(NULL, NULL, &a, 3128));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_and_port_that_we_listen_on_are_ours),
		cmocka_unit_test(
			a_listener_on_every_address_is_on_each_of_the_hosts_own),
		cmocka_unit_test(without_listeners_nothing_is_ours),
	};

	return cmocka_run_group_tests_name("own_doors", tests, NULL, NULL);
}
