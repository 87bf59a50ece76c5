/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door_real_test.c - names answered with the addresses that the world gives
 */
#include "tests/unit/dns_door_lab.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define HOUR	INT64_C(3600000)

static struct name_pin *at[NAME_PINS_NAMES_MAX];

static void with_answers(const char *answers, char out[4096])
{
	assert_true(snprintf(out, 4096, "%s[dns]\nanswers = %s\n", policy,
			     answers) < 4096);
}

static void use(const char *answers, size_t budget)
{
	char text[4096];

	with_answers(answers, text);
	reopen(text, budget, log_file());
}

static int setup(void **state)
{
	int err = door_setup(state);

	use("real", 1 << 20);
	return err;
}

static int teardown(void **state)
{
	clock_test_set_ms(-1);
	return door_teardown(state);
}

static void change_answers(const char *answers)
{
	struct ruleset *rs;
	char text[4096];

	with_answers(answers, text);
	rs = compile(text);
	dns_door_set_rules(door, rs, 2);
	rules_unref(rs);
}

static struct ip_addr addr(const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(str_from(text), &a), 0);
	return a;
}

static size_t names_at(const char *text)
{
	struct ip_addr a = addr(text);

	return name_pins_at(pins, &a, clock_mono_ms(), at);
}

static void expect_pinned(const char *text, const char *name)
{
	assert_int_equal(names_at(text), 1);
	assert_true(str_eq(name_pin_name(at[0]), str_from(name)));
}

static void a_name_is_answered_with_its_own_addresses(void **state)
{
	struct reply r;

	(void)state;
	ask(&r, "API.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	assert_addr(&r.addr, "203.0.113.7");
	assert_int_equal(r.ttl, DNS_DOOR_TTL_S);
	LAST("\"answers\":[\"203.0.113.7\"]", "\"allow\"", "\"rule\":\"lab\"");
	ask(&r, "api.example.com", DNS_TYPE_AAAA);
	assert_addr(&r.addr, "2001:db8:3::7");
	expect_pinned("203.0.113.7", "api.example.com");
	expect_pinned("2001:db8:3::7", "api.example.com");
	assert_int_equal(name_map_count(names), 0);
	/* What goes wrong does so as ever. */
	ask(&r, "denied.example.net", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	ask(&r, "v4.example.com", DNS_TYPE_AAAA);
	assert_no(&r, DNS_NOERROR, -1, "");
	ask(&r, "gone.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, -1, "");
	ask(&r, "fail6.example.com", DNS_TYPE_AAAA);
	assert_no(&r, DNS_NOERROR, 22, "dns_failed");
	assert_int_equal(name_pins_count(pins), 2);
}

/* Not sent yet, and committed already: the next datagram may be a SYN. */
static void dns_32_the_pin_is_there_before_the_reply(void **state)
{
	struct reply r;

	(void)state;
	ask_only("api.example.com", DNS_TYPE_A);
	while (recv(client, r.m.p, 1, MSG_DONTWAIT | MSG_PEEK) < 0)
		turn();
	expect_pinned("203.0.113.7", "api.example.com");
	receive(client, &r);
	assert_addr(&r.addr, "203.0.113.7");
}

static void what_may_not_be_dialled_is_left_out(void **state)
{
	struct reply r;

	(void)state;
	ask(&r, "mixed.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	assert_addr(&r.addr, "203.0.113.9");
	ask(&r, "mixed.example.com", DNS_TYPE_AAAA);
	assert_int_equal(r.answers, 1);
	assert_addr(&r.addr, "2001:db8:3::9");
	assert_int_equal(names_at("10.0.0.1"), 0);
	assert_int_equal(names_at("::1"), 0);
	/* Nothing is left: the other family decides. */
	ask(&r, "private.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "address_private");
	ask(&r, "half.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NOERROR, 15, "address_private");
	ask(&r, "half.example.com", DNS_TYPE_AAAA);
	assert_addr(&r.addr, "2001:db8:3::9");
	/* Our own stand-ins are not the world's to give, here neither. */
	ask(&r, "own.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "address_reserved");
	assert_int_equal(names_at("198.18.1.0"), 0);
}

/* The question goes by TCP, as after a reply that was cut. */
static void ask_tcp(struct reply *r, const struct msg *m)
{
	int fd = connected(SOCK_STREAM, ASKED);
	uint8_t head[2];
	size_t n = 0;

	dns_put16(head, (uint16_t)m->n);
	assert_int_equal(send(fd, head, 2, MSG_MORE), 2);
	assert_int_equal(send(fd, m->p, m->n, 0), (ssize_t)m->n);
	while (n < 2 || n < 2u + dns_get16(r->m.p)) {
		ssize_t got = recv(fd, r->m.p + n, sizeof(r->m.p) - n,
				   MSG_DONTWAIT);

		assert_int_not_equal(got, 0);
		if (got > 0)
			n += (size_t)got;
		else
			turn();
	}
	r->m.n = n - 2;
	memmove(r->m.p, r->m.p + 2, r->m.n);
	read_reply(r);
	close(fd);
}

/* Sixty addresses: TC by UDP, all by TCP, and all are pinned either way. */
static void many_addresses(unsigned type, const char *first, const char *last)
{
	struct reply r;
	struct msg m;

	question(&m, "many.example.com", type, false);
	exchange(&m, &r);
	assert_true(r.m.p[2] & 2);
	assert_true(r.answers < 60);
	assert_int_equal(names_at(first), 1);
	assert_int_equal(names_at(last), 1);
	assert_int_equal(name_pins_count(pins), 60);
	ask_tcp(&r, &m);
	assert_false(r.m.p[2] & 2);
	assert_int_equal(r.answers, 60);
	assert_addr(&r.addr, first);
	assert_int_equal(name_pins_count(pins), 60);
}

static void dns_10_many_addresses_are_cut_and_all_are_pinned(void **state)
{
	(void)state;
	many_addresses(DNS_TYPE_A, "203.0.113.100", "203.0.113.159");
	LAST("\"tcp\"", "\"203.0.113.100\"", "\"203.0.113.101\"");
	use("real", 1 << 20);
	many_addresses(DNS_TYPE_AAAA, "2001:db8:3::100", "2001:db8:3::13b");
}

static void dns_18_a_chain_is_pinned_under_the_name_that_was_asked(
	void **state)
{
	struct reply r;

	(void)state;
	ask(&r, "chain.example.com", DNS_TYPE_A);
	assert_addr(&r.addr, "203.0.113.20");
	expect_pinned("203.0.113.20", "chain.example.com");
	ask(&r, "edge.cdn.example.net", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	assert_int_equal(names_at("203.0.113.20"), 1);
}

static void an_address_that_names_share_has_them_all(void **state)
{
	char id[ID_TEXT_SIZE];
	struct id question;
	struct reply r;

	(void)state;
	ask(&r, "api.example.com", DNS_TYPE_A);
	ask(&r, "twin.example.com", DNS_TYPE_A);
	assert_addr(&r.addr, "203.0.113.7");
	assert_int_equal(names_at("203.0.113.7"), 2);
	assert_true(str_eq(name_pin_name(at[0]), STR("twin.example.com")));
	assert_true(str_eq(name_pin_name(at[1]), STR("api.example.com")));
	/* By its question's id a flow is joined with its answer. */
	question = name_pin_question(at[0]);
	id_text(&question, id);
	LAST(id, "\"twin.example.com\"");
}

static void a_pin_lasts_an_hour_after_the_last_answer(void **state)
{
	struct reply r;

	(void)state;
	clock_test_set_ms(HOUR);
	ask(&r, "api.example.com", DNS_TYPE_A);
	clock_test_set_ms(2 * HOUR - 1);
	expect_pinned("203.0.113.7", "api.example.com");
	ask(&r, "api.example.com", DNS_TYPE_A);
	clock_test_set_ms(3 * HOUR - 2);
	expect_pinned("203.0.113.7", "api.example.com");
	clock_test_set_ms(3 * HOUR - 1);
	assert_int_equal(names_at("203.0.113.7"), 0);
}

static void a_name_over_the_budget_is_refused_and_means_nothing(void **state)
{
	char name[64];
	struct reply r;
	unsigned i;

	(void)state;
	use("real", 4096);
	for (i = 0; i < 1000; i++) {
		assert_true(snprintf(name, sizeof(name),
				     "n%u.wide.example.com", i) > 0);
		ask(&r, name, DNS_TYPE_A);
		if (r.rcode != DNS_NOERROR)
			break;
	}
	assert_in_range(i, 5, 40);
	assert_no(&r, DNS_REFUSED, 18, "names_exceeded");
	LAST("\"names_exceeded\"", "\"deny\"", name);
	assert_int_equal(names_at("203.0.113.10"), i);
	for (size_t k = 0; k < i; k++)
		assert_false(str_eq(name_pin_name(at[k]), str_from(name)));
	/* What was given goes on to be. */
	ask(&r, "n0.wide.example.com", DNS_TYPE_A);
	assert_addr(&r.addr, "203.0.113.10");
}

static void another_way_to_answer_takes_nothing_back(void **state)
{
	struct ip_addr synthetic;
	struct reply r;
	struct str name;
	struct id id;

	(void)state;
	ask(&r, "api.example.com", DNS_TYPE_A);
	change_answers("synthetic");
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_true(name_map_is_synthetic(&r.addr));
	synthetic = r.addr;
	expect_pinned("203.0.113.7", "api.example.com");
	change_answers("real");
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_addr(&r.addr, "203.0.113.7");
	assert_true(name_map_find(names, &synthetic, &name, &id));
	assert_true(str_eq(name, STR("api.example.com")));
}

/* The rules of the moment when it is answered count. */
static void a_question_that_waits_is_answered_the_new_way(void **state)
{
	struct reply r;

	(void)state;
	use("synthetic", 1 << 20);
	ask_held("late.example.com", DNS_TYPE_A, 1);
	change_answers("real");
	hold = false;			/* the second attempt is answered */
	receive(client, &r);
	assert_addr(&r.addr, "203.0.113.9");
	expect_pinned("203.0.113.9", "late.example.com");
}

static void what_is_not_said_is_synthetic_in_a_sandbox(void **state)
{
	struct reply r;

	(void)state;
	reopen(policy, 1 << 20, log_file());
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_true(name_map_is_synthetic(&r.addr));
	assert_int_equal(name_pins_count(pins), 0);
}

/* --- a door on an address of the host ------------------------------------------ */

static void what_is_not_said_is_real_on_the_host(void **state)
{
	struct reply r;

	(void)state;
	reopen(policy, 1 << 20, log_file());
	door->real = true;
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_addr(&r.addr, "203.0.113.7");
	/* The policy has the word. */
	use("synthetic", 1 << 20);
	door->real = true;
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_true(name_map_is_synthetic(&r.addr));
}

static unsigned by_udp, by_tcp;
static struct ip_endpoint last_src, last_at;

static void on_stranger(void *arg, const struct ip_endpoint *src,
			const struct ip_endpoint *where, bool tcp)
{
	assert_ptr_equal(arg, &by_udp);
	(*(tcp ? &by_tcp : &by_udp))++;
	last_src = *src;
	last_at = *where;
}

static void admit(const struct ip_nets *nets)
{
	door->clients = nets;
	door->on_stranger = on_stranger;
	door->arg = &by_udp;
	by_udp = by_tcp = 0;
}

/* An open resolver is an amplifier: who may not ask hears nothing at all, not
 * even that. */
static void who_may_not_ask_is_not_heard(void **state)
{
	struct ip_net net[2];
	const struct ip_nets others = { net, 1 }, both = { net, 2 };
	int fd, udp = connected(SOCK_DGRAM, ASKED);
	struct reply r;
	struct msg m;
	char byte;

	(void)state;
	assert_int_equal(ip_net_parse(STR("192.0.2.0/24"), &net[0]), 0);
	assert_int_equal(ip_net_parse(STR("127.0.0.0/8"), &net[1]), 0);
	admit(&others);
	question(&m, "api.example.com", DNS_TYPE_A, true);
	assert_int_equal(send(udp, m.p, m.n, 0), m.n);
	while (by_udp == 0)
		turn();
	assert_addr(&last_src.addr, "127.0.0.1");
	assert_int_equal(last_at.port, 53);
	turn_idle();
	assert_int_equal(recv(udp, &byte, 1, MSG_DONTWAIT), -1);
	/* A connection is reset before anything is read of it. */
	fd = connected(SOCK_STREAM, ASKED);
	while (by_tcp == 0)
		turn();
	assert_int_equal(recv(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, ECONNRESET);
	close(fd);
	assert_int_equal(door->nconns, 0);
	assert_int_equal(fake_count(upstream), 0);
	assert_int_equal(count_records("\"ev\":\"dns\""), 0);
	/* Those who may are answered: the control. */
	admit(&both);
	exchange(&m, &r);
	assert_int_equal(r.answers, 1);
	assert_int_equal(by_udp, 0);
	close(udp);
}

#define REAL_TEST(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		REAL_TEST(a_name_is_answered_with_its_own_addresses),
		REAL_TEST(dns_32_the_pin_is_there_before_the_reply),
		REAL_TEST(what_may_not_be_dialled_is_left_out),
		REAL_TEST(dns_10_many_addresses_are_cut_and_all_are_pinned),
		REAL_TEST(
		 dns_18_a_chain_is_pinned_under_the_name_that_was_asked),
		REAL_TEST(an_address_that_names_share_has_them_all),
		REAL_TEST(a_pin_lasts_an_hour_after_the_last_answer),
		REAL_TEST(a_name_over_the_budget_is_refused_and_means_nothing),
		REAL_TEST(another_way_to_answer_takes_nothing_back),
		REAL_TEST(a_question_that_waits_is_answered_the_new_way),
		REAL_TEST(what_is_not_said_is_synthetic_in_a_sandbox),
		REAL_TEST(what_is_not_said_is_real_on_the_host),
		REAL_TEST(who_may_not_ask_is_not_heard),
	};

	return door_lab_run(tests, ARRAY_SIZE(tests));
}
