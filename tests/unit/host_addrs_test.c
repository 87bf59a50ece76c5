/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_addrs_test.c - the host's own addresses are known, also those that come
 *                     and go while the daemon runs
 */
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>
#include <libmnl/libmnl.h>

#include "base/fd.h"
#include "proxy/host_addrs.h"
#include "proxy/host_nets.h"
#include "proxy/host_nl.h"
#include "proxy/host_route.h"
#include "proxy/worker.h"
#include "tests/unit/proxy_lab.h"

struct lab {
	struct event_base *base;
	struct worker *worker[2];
	struct host_addrs *hosts;
};

/* One rtnetlink request, acknowledged; 0 or the kernel's errno. */
static int ask(struct nlmsghdr *h)
{
	CLEANUP(fd_closep) int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
					   NETLINK_ROUTE);
	_Alignas(struct nlmsghdr) char answer[4096];
	const struct nlmsghdr *ack = (const void *)answer;

	h->nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
	assert_true(fd >= 0);
	assert_true(send(fd, h, h->nlmsg_len, 0) > 0);
	assert_true(recv(fd, answer, sizeof(answer), 0) > 0);
	assert_int_equal(ack->nlmsg_type, NLMSG_ERROR);
	return -((const struct nlmsgerr *)mnl_nlmsg_get_payload(ack))->error;
}

/* Like "ip link add ve0 up type veth peer name ve1", or "ip link del ve0". */
static int change_link(bool add)
{
	_Alignas(struct nlmsghdr) char buf[1024] = { 0 };
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct ifinfomsg *ifi;
	struct nlattr *info, *data, *peer;

	h->nlmsg_type = add ? RTM_NEWLINK : RTM_DELLINK;
	h->nlmsg_flags = add ? NLM_F_CREATE | NLM_F_EXCL : 0;
	ifi = mnl_nlmsg_put_extra_header(h, sizeof(*ifi));
	ifi->ifi_flags = ifi->ifi_change = IFF_UP;
	mnl_attr_put_strz(h, IFLA_IFNAME, "ve0");
	if (add) {
		info = mnl_attr_nest_start(h, IFLA_LINKINFO);
		mnl_attr_put_str(h, IFLA_INFO_KIND, "veth");
		data = mnl_attr_nest_start(h, IFLA_INFO_DATA);
		peer = mnl_attr_nest_start(h, VETH_INFO_PEER);
		mnl_nlmsg_put_extra_header(h, sizeof(*ifi));
		mnl_attr_put_strz(h, IFLA_IFNAME, "ve1");
		mnl_attr_nest_end(h, peer);
		mnl_attr_nest_end(h, data);
		mnl_attr_nest_end(h, info);
	}
	return ask(h);
}

static void put_addr(struct nlmsghdr *h, uint16_t type, const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(str_from(text), &a), 0);
	mnl_attr_put(h, type, a.family == IP_V4 ? 4 : 16, a.b);
}

/* Like "ip addr add LOCAL [peer PEER] /BITS dev DEV", or del. */
static int change_addr(bool add, const char *dev, const char *local,
		       const char *peer, uint8_t bits)
{
	_Alignas(struct nlmsghdr) char buf[256] = { 0 };
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct ifaddrmsg *ifa;

	h->nlmsg_type = add ? RTM_NEWADDR : RTM_DELADDR;
	h->nlmsg_flags = add ? NLM_F_CREATE | NLM_F_EXCL : 0;
	ifa = mnl_nlmsg_put_extra_header(h, sizeof(*ifa));
	ifa->ifa_family = strchr(local, ':') ? AF_INET6 : AF_INET;
	ifa->ifa_prefixlen = bits;
	ifa->ifa_flags = IFA_F_NODAD;
	ifa->ifa_index = if_nametoindex(dev);
	put_addr(h, IFA_LOCAL, local);
	put_addr(h, IFA_ADDRESS, peer ? peer : local);
	return ask(h);
}

/* Like "ip route add TYPE NET [dev DEV] table TABLE", or del. */
static int change_route(bool add, unsigned char type, const char *net,
			const char *dev, unsigned char table)
{
	_Alignas(struct nlmsghdr) char buf[256] = { 0 };
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	struct ip_net dst;
	struct rtmsg *rtm;

	assert_int_equal(ip_net_parse(str_from(net), &dst), 0);
	h->nlmsg_type = add ? RTM_NEWROUTE : RTM_DELROUTE;
	h->nlmsg_flags = add ? NLM_F_CREATE | NLM_F_EXCL : 0;
	rtm = mnl_nlmsg_put_extra_header(h, sizeof(*rtm));
	rtm->rtm_family = dst.addr.family == IP_V4 ? AF_INET : AF_INET6;
	rtm->rtm_dst_len = dst.bits;
	rtm->rtm_table = table;
	rtm->rtm_protocol = RTPROT_STATIC;
	rtm->rtm_scope = type == RTN_LOCAL ? RT_SCOPE_HOST : RT_SCOPE_LINK;
	rtm->rtm_type = type;
	mnl_attr_put(h, RTA_DST, dst.addr.family == IP_V4 ? 4 : 16, dst.addr.b);
	if (dev)
		mnl_attr_put_u32(h, RTA_OIF, if_nametoindex(dev));
	return ask(h);
}

static int change_default6(bool add, unsigned char type, const char *dev)
{
	return change_route(add, type, "::/0", dev, RT_TABLE_MAIN);
}

static int change_local(bool add, const char *net, unsigned char table)
{
	return change_route(add, RTN_LOCAL, net, "lo", table);
}

static bool has(const struct ip_hosts *h, const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(str_from(text), &a), 0);
	return ip_hosts_has(h, &a);
}

static bool has_own(const struct ip_hosts *h, const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(str_from(text), &a), 0);
	return ip_hosts_own(h, &a);
}

static int open_lab(void **state)
{
	static struct lab lab;
	size_t i;

	lab = (struct lab){ 0 };
	lab.base = event_base_new();
	assert_non_null(lab.base);
	assert_int_equal(host_addrs_new(&lab.hosts), 0);
	for (i = 0; i < ARRAY_SIZE(lab.worker); i++)
		assert_int_equal(worker_new((unsigned)i, &lab.worker[i]), 0);
	assert_int_equal(host_addrs_start(lab.hosts, lab.base, lab.worker,
					  ARRAY_SIZE(lab.worker)), 0);
	*state = &lab;
	return 0;
}

static int close_lab(void **state)
{
	struct lab *l = *state;
	size_t i;

	/* Whatever mail is still under way is read before the end. */
	for (i = 0; i < ARRAY_SIZE(l->worker); i++) {
		lab_turn(l->worker[i]->base);
		host_addrs_release(l->worker[i]);
		worker_free(l->worker[i]);
	}
	host_addrs_free(l->hosts);
	event_base_free(l->base);
	return 0;
}

/* Turn until every worker's snapshot says @want of @addr; NULL: of IPv6. */
static void wait_for(struct lab *l, const char *addr, bool want)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(l->worker);) {
		const struct ip_hosts *h = l->worker[i]->hosts;

		if ((addr ? has(h, addr) : !h->no_ipv6) == want) {
			i++;
			continue;
		}
		assert_int_equal(event_base_loop(l->base, EVLOOP_ONCE), 0);
		lab_turn(l->worker[0]->base);
		lab_turn(l->worker[1]->base);
	}
}

static void loopback_is_the_hosts_own(void **state)
{
	struct lab *l = *state;
	const struct ip_hosts *h = host_addrs_peek(l->hosts);

	assert_true(has(h, "127.0.0.1"));
	assert_true(has(h, "::1"));
	/* The route that lo's address brings along. */
	assert_true(has_own(h, "127.0.0.2"));
	assert_false(has(h, "::2"));
	assert_false(has(h, "203.0.113.7"));
	assert_ptr_equal(l->worker[1]->hosts, h);
}

static void an_address_brings_its_prefix_and_goes_with_it(void **state)
{
	struct lab *l = *state;

	if (change_link(true) != 0) {
		print_message("no veth here\n");
		skip();
	}
	assert_int_equal(change_addr(true, "ve0", "203.0.113.7", NULL, 24), 0);
	wait_for(l, "203.0.113.7", true);
	assert_true(has(l->worker[0]->hosts, "203.0.113.200"));
	assert_true(has_own(l->worker[0]->hosts, "203.0.113.7"));
	assert_false(has_own(l->worker[0]->hosts, "203.0.113.200"));
	assert_false(has(l->worker[0]->hosts, "203.0.114.1"));
	assert_int_equal(change_addr(true, "ve0", "2001:db8:3:1::7", NULL, 64),
			 0);
	wait_for(l, "2001:db8:3:1::99", true);
	/* Point to point: the other end is on the link, ours is ours. */
	assert_int_equal(change_addr(true, "ve0", "198.51.100.1",
				     "198.51.100.9", 32), 0);
	wait_for(l, "198.51.100.1", true);
	assert_true(has(l->worker[0]->hosts, "198.51.100.9"));
	assert_false(has(l->worker[0]->hosts, "198.51.100.2"));
	assert_int_equal(change_addr(false, "ve0", "203.0.113.7", NULL, 24), 0);
	wait_for(l, "203.0.113.7", false);
	assert_false(has(l->worker[1]->hosts, "203.0.113.200"));
	assert_int_equal(change_link(false), 0);
	wait_for(l, "2001:db8:3:1::7", false);
}

static void many_changes_at_once_end_in_the_last_state(void **state)
{
	struct lab *l = *state;
	char addr[32];
	unsigned i;

	for (i = 1; i <= 20; i++) {
		int n = snprintf(addr, sizeof(addr), "203.0.113.%u", i);

		assert_true(n > 0 && (size_t)n < sizeof(addr));
		assert_int_equal(change_addr(true, "lo", addr, NULL, 32), 0);
	}
	wait_for(l, "203.0.113.20", true);
	assert_true(has(l->worker[0]->hosts, "203.0.113.1"));
	for (i = 1; i <= 20; i++) {
		int n = snprintf(addr, sizeof(addr), "203.0.113.%u", i);

		assert_true(n > 0 && (size_t)n < sizeof(addr));
		assert_int_equal(change_addr(false, "lo", addr, NULL, 32), 0);
	}
	wait_for(l, "203.0.113.20", false);
	assert_false(has(l->worker[0]->hosts, "203.0.113.1"));
}

/* DNS-06, SBX-36: local addresses alone lead nowhere by IPv6. */
static void a_way_out_by_ipv6_is_seen_to_come_and_go(void **state)
{
	struct lab *l = *state;

	assert_true(host_addrs_peek(l->hosts)->no_ipv6);
	if (change_link(true) != 0) {
		print_message("no veth here\n");
		skip();
	}
	/* Of one's own, and to the same link: no way to the world. */
	assert_int_equal(change_addr(true, "ve0", "fd00:1::7", NULL, 64), 0);
	wait_for(l, "fd00:1::7", true);
	assert_true(l->worker[0]->hosts->no_ipv6);
	assert_int_equal(change_default6(true, RTN_UNICAST, "ve0"), 0);
	wait_for(l, NULL, true);
	assert_int_equal(change_default6(false, RTN_UNICAST, "ve0"), 0);
	wait_for(l, NULL, false);
	/* A route that says "no" is none, and one to ourselves neither. */
	assert_int_equal(change_default6(true, RTN_UNREACHABLE, "lo"), 0);
	assert_int_equal(change_addr(true, "lo", "203.0.113.99", NULL, 32), 0);
	wait_for(l, "203.0.113.99", true);
	assert_true(l->worker[0]->hosts->no_ipv6);
	/* A network of global addresses is a way to those in it. */
	assert_int_equal(change_addr(true, "ve0", "2001:db8:3::7", NULL, 64),
			 0);
	wait_for(l, NULL, true);
	assert_int_equal(change_addr(false, "ve0", "2001:db8:3::7", NULL, 64),
			 0);
	wait_for(l, NULL, false);
	assert_int_equal(change_default6(false, RTN_UNREACHABLE, "lo"), 0);
	assert_int_equal(change_addr(false, "lo", "203.0.113.99", NULL, 32), 0);
	assert_int_equal(change_link(false), 0);
	wait_for(l, "fd00:1::7", false);
}

/* "AnyIP": addresses that no device has. */
static void a_local_route_makes_all_its_addresses_the_hosts_own(void **state)
{
	static const struct {
		const char *net, *in, *out;
		unsigned char table;
	} cases[] = {
		{ "203.0.113.0/24", "203.0.113.255", "203.0.114.0",
		  RT_TABLE_LOCAL },
		{ "203.0.113.64/26", "203.0.113.64", "203.0.113.63",
		  RT_TABLE_MAIN },
		{ "198.51.100.9/32", "198.51.100.9", "198.51.100.8",
		  RT_TABLE_LOCAL },
		{ "2001:db8:3::/48", "2001:db8:3:ffff::1", "2001:db8:4::",
		  RT_TABLE_LOCAL },
		{ "2001:db8:4::/64", "2001:db8:4::5", "2001:db8:4:1::",
		  RT_TABLE_MAIN },
	};
	struct lab *l = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_false(has(l->worker[0]->hosts, cases[i].in));
		assert_int_equal(change_local(true, cases[i].net,
					      cases[i].table), 0);
		wait_for(l, cases[i].in, true);
		assert_true(has_own(l->worker[0]->hosts, cases[i].in));
		assert_false(has(l->worker[0]->hosts, cases[i].out));
		assert_int_equal(change_local(false, cases[i].net,
					      cases[i].table), 0);
		wait_for(l, cases[i].in, false);
	}
}

static void an_anycast_address_is_the_hosts_own(void **state)
{
	struct lab *l = *state;

	assert_int_equal(change_route(true, RTN_ANYCAST, "2001:db8:3::/128",
				      "lo", RT_TABLE_LOCAL), 0);
	wait_for(l, "2001:db8:3::", true);
	assert_true(has_own(l->worker[0]->hosts, "2001:db8:3::"));
	assert_false(has(l->worker[0]->hosts, "2001:db8:3::1"));
	assert_int_equal(change_route(false, RTN_ANYCAST, "2001:db8:3::/128",
				      "lo", RT_TABLE_LOCAL), 0);
	wait_for(l, "2001:db8:3::", false);
}

/* What came before and after it is seen in order: it was not. */
static void see_all_until_now(struct lab *l)
{
	assert_int_equal(change_local(true, "192.0.2.99/32", RT_TABLE_LOCAL),
			 0);
	wait_for(l, "192.0.2.99", true);
	assert_int_equal(change_local(false, "192.0.2.99/32", RT_TABLE_LOCAL),
			 0);
	wait_for(l, "192.0.2.99", false);
}

static void recipes_for_transparent_proxies_make_nothing_the_hosts_own(
	void **state)
{
	struct lab *l = *state;

	/* As they have it: for marked packets only, in a table of their own. */
	assert_int_equal(change_local(true, "0.0.0.0/0", 100), 0);
	assert_int_equal(change_local(true, "::/0", 100), 0);
	assert_int_equal(change_local(true, "203.0.113.0/24", 100), 0);
	see_all_until_now(l);
	assert_false(has(l->worker[0]->hosts, "203.0.113.7"));
	assert_false(has(l->worker[0]->hosts, "2001:db8::7"));
	assert_int_equal(change_local(false, "0.0.0.0/0", 100), 0);
	assert_int_equal(change_local(false, "::/0", 100), 0);
	assert_int_equal(change_local(false, "203.0.113.0/24", 100), 0);
}

static void a_local_default_route_counts_where_it_is_used(void **state)
{
	static const struct { const char *net, *other, *in; } cases[] = {
		{ "0.0.0.0/0", "192.0.0.0/24", "203.0.113.7" },
		{ "::/0", "2000::/16", "2001:db8::7" },
	};
	struct lab *l = *state;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		static const unsigned char tables[] = {
			RT_TABLE_MAIN, RT_TABLE_LOCAL,
		};
		const char *net = cases[i].net, *in = cases[i].in;

		for (size_t t = 0; t < ARRAY_SIZE(tables); t++) {
			assert_int_equal(change_local(true, net, tables[t]),
					 0);
			wait_for(l, in, true);
			assert_true(has_own(l->worker[0]->hosts, in));
			assert_false(has(l->worker[0]->hosts,
					 cases[1 - i].in));
			assert_int_equal(change_local(false, net, tables[t]),
					 0);
			wait_for(l, in, false);
		}
		/* Where another leads, and were it to nowhere, it is not. */
		assert_int_equal(change_route(true, RTN_UNREACHABLE,
					      cases[i].other, NULL,
					      RT_TABLE_MAIN), 0);
		assert_int_equal(change_local(true, net, RT_TABLE_MAIN), 0);
		see_all_until_now(l);
		assert_false(has(l->worker[0]->hosts, in));
		assert_int_equal(change_local(false, net, RT_TABLE_MAIN), 0);
		assert_int_equal(change_route(false, RTN_UNREACHABLE,
					      cases[i].other, NULL,
					      RT_TABLE_MAIN), 0);
	}
}

static void a_busy_routers_routes_are_not_even_heard(void **state)
{
	CLEANUP(fd_closep) int fd = -1;
	char net[40], first;
	unsigned i;

	(void)state;
	if (change_link(true) != 0) {
		print_message("no veth here\n");
		skip();
	}
	assert_int_equal(host_nl_hear(&fd), 0);
	for (i = 0; i < 100; i++) {
		int n = snprintf(net, sizeof(net), i % 2 ? "203.0.113.%u/32" :
				 "2001:db8:3::%u/128", i);

		assert_true(n > 0 && (size_t)n < sizeof(net));
		assert_int_equal(change_route(true, RTN_UNICAST, net, "ve0",
					      RT_TABLE_MAIN), 0);
	}
	assert_int_equal(recv(fd, &first, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
	/* Control: one to the host itself is, and so is the device's end. */
	assert_int_equal(change_local(true, "203.0.113.1/32", RT_TABLE_LOCAL),
			 0);
	assert_int_equal(recv(fd, &first, 1, MSG_DONTWAIT), 1);
	assert_int_equal(change_local(false, "203.0.113.1/32", RT_TABLE_LOCAL),
			 0);
	assert_int_equal(recv(fd, &first, 1, MSG_DONTWAIT), 1);
	assert_int_equal(change_link(false), 0);
	assert_int_equal(recv(fd, &first, 1, MSG_DONTWAIT), 1);
}

static void what_is_too_much_becomes_wider_and_is_never_forgotten(void **state)
{
	struct host_nets s = { .n = 0 };
	struct ip_addr first4 = ip_addr_v4(0x0a000000), a;
	struct ip_addr v6 = { .family = IP_V6, .b = { 0x20, 1, 0x0d, 0xb8 } };
	unsigned i;

	(void)state;
	assert_int_equal(host_nets_add(&s, &v6, 128), 0);
	/* Twice as many as fit, no two of them neighbours: every 32nd. */
	for (i = 0; i < 2 * HOST_NETS_MAX; i++) {
		a = ip_addr_v4(ip_addr_v4_bits(&first4) + 32 * i);
		assert_int_equal(host_nets_add(&s, &a, 32), 0);
		assert_true(s.n <= HOST_NETS_MAX);
	}
	host_nets_tidy(&s);
	assert_true(s.width > 0);
	for (i = 0; i < 2 * HOST_NETS_MAX; i++) {
		a = ip_addr_v4(ip_addr_v4_bits(&first4) + 32 * i);
		assert_true(ip_net_find(s.net, s.n, &a));
	}
	assert_true(ip_net_find(s.net, s.n, &v6));
	/* No wider than it takes. */
	a = ip_addr_v4(ip_addr_v4_bits(&first4) - 1);
	assert_false(ip_net_find(s.net, s.n, &a));
	host_nets_done(&s);
	/* Control: the same address, however often, is one. */
	for (i = 0; i < 2 * HOST_NETS_MAX; i++)
		assert_int_equal(host_nets_add(&s, &first4, 32), 0);
	host_nets_tidy(&s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.width, 0);
	host_nets_done(&s);
}

static void only_networks_of_global_addresses_are_a_way(void **state)
{
	static const struct {
		const char *text;
		unsigned bits;
		bool want;
	} cases[] = {
		{ "2001:db8::", 64, true }, { "3fff::", 20, true },
		{ "2001:db8::1", 128, false }, { "fd00::", 64, false },
		{ "fe80::", 64, false }, { "ff02::", 16, false },
		{ "203.0.113.0", 24, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct ip_addr a;

		assert_int_equal(ip_addr_parse(str_from(cases[i].text), &a), 0);
		assert_int_equal(host_route_is_global(&a, cases[i].bits),
				 cases[i].want);
	}
}

#define IN_LAB(f)	cmocka_unit_test_setup_teardown(f, open_lab, close_lab)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_LAB(loopback_is_the_hosts_own),
		IN_LAB(an_address_brings_its_prefix_and_goes_with_it),
		IN_LAB(many_changes_at_once_end_in_the_last_state),
		IN_LAB(a_way_out_by_ipv6_is_seen_to_come_and_go),
		IN_LAB(a_local_route_makes_all_its_addresses_the_hosts_own),
		IN_LAB(an_anycast_address_is_the_hosts_own),
		IN_LAB(recipes_for_transparent_proxies_make_nothing_the_hosts_own),
		IN_LAB(a_local_default_route_counts_where_it_is_used),
		cmocka_unit_test(a_busy_routers_routes_are_not_even_heard),
		cmocka_unit_test(
			what_is_too_much_becomes_wider_and_is_never_forgotten),
		cmocka_unit_test(only_networks_of_global_addresses_are_a_way),
	};

	lab_enter_bare();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
