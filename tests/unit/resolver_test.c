/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_test.c - lookups against servers that answer, lie, are late or dead
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/seccomp.h"
#include "resolver/dns_chan.h"
#include "tests/unit/resolver_kit.h"

static void names_become_addresses_of_the_family_asked(void **state)
{
	struct result r;

	(void)state;
	use_one(honest, NULL);
	lookup(&r, "api.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(r.n, 1);
	assert_int_equal(ip_addr_v4_bits(&r.addr[0]), 0xcb007107);
	assert_int_equal(r.ttl_s, 120);
	lookup(&r, "api.example", RESOLVER_AAAA);
	assert_int_equal(r.n, 1);
	assert_int_equal(r.addr[0].family, IP_V6);
	assert_int_equal(fake_count(first), 2);
	lookup(&r, "api.example", RESOLVER_A);	/* from the cache */
	assert_int_equal(r.n, 1);
	assert_int_equal(r.calls, 1);
	assert_int_equal(fake_count(first), 2);
	assert_int_equal(resolver_sockets(resolver), 0);
}

static void equal_lookups_share_one_question(void **state)
{
	struct result r[20], other;

	(void)state;
	use_one(honest, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(r); i++)
		start(&r[i], 1, "api.example", RESOLVER_A);
	start(&other, 2, "api.example", RESOLVER_A);	/* another tenant */
	for (size_t i = 0; i < ARRAY_SIZE(r); i++) {
		turn_until(&r[i].done);
		assert_int_equal(r[i].calls, 1);
		assert_int_equal(r[i].n, 1);
	}
	turn_until(&other.done);
	assert_int_equal(fake_count(first), 2);
}

static void a_cancelled_lookup_is_not_called(void **state)
{
	struct result a, b, c;

	(void)state;
	use_one(honest, NULL);
	resolver_cancel(start(&a, 1, "api.example", RESOLVER_A));
	start(&b, 1, "api.example", RESOLVER_A);
	/* The first of the flight cancels the last from its call-back. */
	b.cancel = start(&c, 1, "api.example", RESOLVER_A);
	turn_until(&b.done);
	lookup(&a, "other.example", RESOLVER_A);
	assert_int_equal(c.calls, 0);
	assert_int_equal(a.calls, 1);
}

struct variants {
	uint8_t seen[64][512];
	size_t n[64];
	uint16_t port[64];
	unsigned count;
};

static void keep(void *arg, const struct fake_ask *ask)
{
	struct variants *v = arg;

	assert_true(v->count < 64 && ask->n <= 512);
	memcpy(v->seen[v->count], ask->p, ask->n);
	v->n[v->count] = ask->n;
	v->port[v->count++] = fake_last_port(ask->fake);
	honest(NULL, ask);
}

static void dns_27_id_case_and_port_vary_and_nothing_else(void **state)
{
	static struct variants v;
	unsigned same_id = 0, same_case = 0, same_port = 0;
	struct result r;

	(void)state;
	use_one(keep, &v);
	for (uint64_t i = 0; i < 20; i++) {
		start(&r, i, "a-long-enough-name.example.com", RESOLVER_A);
		turn_until(&r.done);
	}
	assert_int_equal(v.count, 20);
	for (unsigned i = 1; i < v.count; i++) {
		assert_int_equal(v.n[i], v.n[0]);
		same_id += memcmp(v.seen[i], v.seen[0], 2) == 0;
		same_case += memcmp(v.seen[i], v.seen[0] + 12, 32) == 0;
		same_port += v.port[i] == v.port[i - 1];
		/* DNS-16: what is left is the same bytes each time. */
		assert_memory_equal(v.seen[i] + 2, v.seen[0] + 2, 10);
		assert_memory_equal(v.seen[i] + 44, v.seen[0] + 44,
				    v.n[0] - 44);
		assert_true(str_ieq(str_make(v.seen[i] + 12, 32),
				    str_make(v.seen[0] + 12, 32)));
	}
	/* Chance lets a few be equal, not most of them. */
	assert_true(same_id < 3 && same_case < 3 && same_port < 5);
}

static void mangling_case(void *arg, const struct fake_ask *ask)
{
	struct fake_records r = { .n = 0 };
	uint8_t out[1024];
	size_t n;

	(void)arg;
	fake_add_a(&r, ask->q.text, "203.0.113.7", 60);
	n = fake_build(ask, &r, 0, out, sizeof(out));
	for (size_t i = 12; i < 12u + ask->q.raw_n; i++)
		out[i] = (uint8_t)ascii_lower((char)out[i]);
	fake_send(ask, out, n);
}

static void a_server_that_mangles_case_is_heard_by_tcp(void **state)
{
	struct result r;

	(void)state;
	use_one(mangling_case, NULL);
	lookup(&r, "a-long-enough-name.example.com", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(r.n, 1);
}

static void without_edns(void *arg, const struct fake_ask *ask)
{
	struct fake_records none = { .n = 0 };

	(void)arg;
	if (ask->q.edns)
		fake_answer(ask, &none, DNS_FORMERR);
	else
		honest(NULL, ask);
}

static void a_server_without_edns_is_asked_without(void **state)
{
	struct result r;
	char name[32];

	(void)state;
	use_one(without_edns, NULL);
	/* More than once: c-ares strips the OPT only once for a channel. */
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "n%d.example", i);
		lookup(&r, name, RESOLVER_A);
		assert_int_equal(r.reason, REASON_ALLOWED);
	}
}

static void large(void *arg, const struct fake_ask *ask)
{
	struct fake_records r = { .n = 0 };
	char addr[32];

	(void)arg;
	for (int i = 0; i < 40; i++) {
		snprintf(addr, sizeof(addr), "203.0.113.%d", i);
		fake_add_a(&r, ask->q.text, addr, 60);
	}
	fake_answer(ask, &r, 0);
}

static void answers_over_512_bytes_come_by_udp(void **state)
{
	struct result r;

	(void)state;
	use_one(large, NULL);
	lookup(&r, "m.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(r.n, 40);
	assert_int_equal(fake_count(first), 1);
}

static void dns_24_the_next_server_is_asked_and_the_dead_one_rests(void **state)
{
	static const char *const servers[] = {
		"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4",
	};
	unsigned refused = DNS_REFUSED;
	struct result r;

	(void)state;
	/* Silent, refusing, nobody there, good. */
	first = fake_new(base, servers[0], PORT, silent, NULL);
	second = fake_new(base, servers[1], PORT, with_rcode, &refused);
	third = fake_new(base, servers[3], PORT, honest, NULL);
	use(servers, 4);
	lookup(&r, "a.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(fake_count(first), 1);
	assert_int_equal(fake_count(third), 1);
	lookup(&r, "b.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(fake_count(first), 1);	/* it rests */
	assert_int_equal(fake_count(third), 2);
}

static void dns_35_without_servers_lookups_fail_and_ask_nobody(void **state)
{
	struct result r;

	(void)state;
	lookup(&r, "api.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_DNS_FAILED);
	assert_int_equal(r.calls, 1);
}

static void silence_is_a_timeout_and_tried_twice(void **state)
{
	struct result r;

	(void)state;
	use_one(silent, NULL);
	lookup(&r, "api.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_DNS_TIMEOUT);
	assert_int_equal(fake_count(first), 2);
	assert_int_equal(resolver_sockets(resolver), 0);
}

static void dns_34_silence_is_bounded_in_questions_and_sockets(void **state)
{
	static struct result r[3000];
	struct resolver_lookup *l = NULL;
	struct resolver_answer now;
	unsigned started = 0;
	char name[32];

	(void)state;
	use_one(silent, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(r); i++) {
		int n = snprintf(name, sizeof(name), "n%zu.example", i);
		int err = resolver_lookup(resolver, &anyone, str_make(name, (size_t)n),
					  RESOLVER_A, on_answer, &r[i], &l,
					  &now);

		assert_true(err == 0 || err == -EAGAIN);
		started += err == 0;
	}
	assert_int_equal(started, DNS_JOBS_MAX);
	for (size_t i = 0; i < started; i++) {
		while (!r[i].done) {
			assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
			assert_true(resolver_sockets(resolver) <=
				    DNS_CHANS_UDP_MAX + DNS_CHANS_TCP_MAX);
		}
		assert_int_equal(r[i].reason, REASON_DNS_TIMEOUT);
	}
	/* The last of them go with the events of this turn. */
	while (resolver_sockets(resolver))
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	lookup(&r[0], "after.example", RESOLVER_A);
	assert_int_equal(r[0].reason, REASON_DNS_TIMEOUT);
}

static void refusals_of_all_servers_are_a_failure(void **state)
{
	static const unsigned rcodes[] = {
		DNS_SERVFAIL, DNS_NOTIMP, DNS_REFUSED, 9,
	};
	struct result r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rcodes); i++) {
		unsigned rcode = rcodes[i];

		use_one(with_rcode, &rcode);
		lookup(&r, "api.example", RESOLVER_A);
		assert_int_equal(r.reason, REASON_DNS_FAILED);
		assert_int_equal(fake_count(first), 2);
		fake_free(first);
		first = NULL;
	}
}

static void no_such(void *arg, const struct fake_ask *ask)
{
	struct fake_records r = { .n = 0 };

	fake_add_soa(&r, "example", 86400);
	fake_answer(ask, &r, *(const unsigned *)arg);
}

static void no_name_and_no_address_differ(void **state)
{
	unsigned rcode = DNS_NXDOMAIN;
	struct result r;

	(void)state;
	use_one(no_such, &rcode);
	lookup(&r, "a.example", RESOLVER_AAAA);
	assert_int_equal(r.reason, REASON_DNS_NXDOMAIN);
	assert_int_equal(r.ttl_s, 60);
	rcode = DNS_NOERROR;
	lookup(&r, "b.example", RESOLVER_AAAA);
	assert_int_equal(r.reason, REASON_DNS_NO_ADDRESS);
}

/* nI -> nI+1, one link an answer, until the number in @arg; a0 <-> a1. */
static void chaining(void *arg, const struct fake_ask *ask)
{
	struct fake_records r = { .n = 0 };
	unsigned i, end = *(const unsigned *)arg;
	char target[32];

	if (sscanf(ask->q.text, "n%u.example", &i) != 1)
		i = ask->q.text[1] == '0' ? 1000 : 999;
	if (i == end) {
		fake_add_a(&r, ask->q.text, "203.0.113.7", 60);
	} else {
		snprintf(target, sizeof(target), i >= 999 ? "a%u.example" :
			 "n%u.example", i >= 999 ? i - 999 : i + 1);
		fake_add_cname(&r, ask->q.text, target, 30);
	}
	fake_answer(ask, &r, 0);
}

static void dns_19_a_chain_over_answers_has_an_end(void **state)
{
	unsigned end = 11;
	struct result r;

	(void)state;
	use_one(chaining, &end);
	lookup(&r, "n0.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(r.ttl_s, 30);
	assert_int_equal(fake_count(first), 12);
	end = 12;
	use((const char *const[]){ "127.0.0.1" }, 1);	/* empties the cache */
	lookup(&r, "n0.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_DNS_FAILED);
	assert_int_equal(fake_count(first), 24);
	lookup(&r, "a0.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_DNS_FAILED);
	assert_int_equal(fake_count(first), 36);
}

static void looping(void *arg, const struct fake_ask *ask)
{
	struct fake_records r = { .n = 0 };

	(void)arg;
	fake_add_cname(&r, ask->q.text, "b.example", 30);
	fake_add_cname(&r, "b.example", ask->q.text, 30);
	fake_answer(ask, &r, 0);
}

static void dns_19_a_circle_in_one_answer_is_a_failure(void **state)
{
	struct result r;

	(void)state;
	use_one(looping, NULL);
	lookup(&r, "a.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_DNS_FAILED);
	assert_int_equal(fake_count(first), 1);
}

static void freeing_drops_what_is_in_flight(void **state)
{
	struct result r[3];

	(void)state;
	use_one(silent, NULL);
	start(&r[0], 1, "a.example", RESOLVER_A);
	while (fake_count(first) == 0)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	start(&r[1], 1, "b.example", RESOLVER_A);	/* not sent yet */
	start(&r[2], 1, "a.example", RESOLVER_A);
	resolver_free(resolver);
	resolver = NULL;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(r[i].calls, 0);
}

static void new_servers_take_over_while_old_questions_end(void **state)
{
	struct result r;

	(void)state;
	use_one(silent, NULL);
	second = fake_new(base, "127.0.0.2", PORT, honest, NULL);
	start(&r, 1, "a.example", RESOLVER_A);
	while (fake_count(first) == 0)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	use((const char *const[]){ "127.0.0.2" }, 1);
	turn_until(&r.done);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(fake_count(first), 1);
	assert_int_equal(fake_count(second), 1);
}

static void names_that_are_not_canonical_are_refused(void **state)
{
	struct resolver_lookup *l;
	struct resolver_answer now;
	struct result r;

	(void)state;
	assert_int_equal(resolver_lookup(resolver, &anyone, STR("A.example"),
					 RESOLVER_A, on_answer, &r, &l, &now),
			 -EINVAL);
	assert_int_equal(resolver_lookup(resolver, &anyone, STR("a..example"),
					 RESOLVER_A, on_answer, &r, &l, &now),
			 -EINVAL);
}

static void ipv6_servers_are_asked_too(void **state)
{
	struct result r;

	(void)state;
	first = fake_new(base, "::1", PORT, honest, NULL);
	use((const char *const[]){ "::1" }, 1);
	lookup(&r, "a.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(fake_count(first), 1);
}

/* c-ares would like to read /dev/urandom for each channel, and need not. */
static int lookup_without_files(void)
{
	static const struct seccomp_rule no_files[] = {
		{ .syscall = "openat", .act = SECCOMP_DO_ERRNO, .err = EACCES },
		{ .syscall = "open", .act = SECCOMP_DO_ERRNO, .err = EACCES },
	};
	static const struct seccomp_policy policy = {
		.otherwise = SECCOMP_DO_ALLOW, .rule = no_files,
		.n = ARRAY_SIZE(no_files),
	};
	const char *what;
	struct result r;

	if (event_reinit(base) != 0 || seccomp_load_policy(&policy, &what) != 0)
		return 2;
	lookup(&r, "a.example", RESOLVER_A);
	return r.reason == REASON_ALLOWED ? 0 : 1;
}

static void lookups_open_no_files(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	use_one(honest, NULL);
	pid = fork();
	if (pid == 0)
		_exit(lookup_without_files());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(names_become_addresses_of_the_family_asked),
		T(equal_lookups_share_one_question),
		T(a_cancelled_lookup_is_not_called),
		T(dns_27_id_case_and_port_vary_and_nothing_else),
		T(a_server_that_mangles_case_is_heard_by_tcp),
		T(a_server_without_edns_is_asked_without),
		T(answers_over_512_bytes_come_by_udp),
		T(dns_24_the_next_server_is_asked_and_the_dead_one_rests),
		T(dns_35_without_servers_lookups_fail_and_ask_nobody),
		T(silence_is_a_timeout_and_tried_twice),
		T(dns_34_silence_is_bounded_in_questions_and_sockets),
		T(refusals_of_all_servers_are_a_failure),
		T(no_name_and_no_address_differ),
		T(dns_19_a_chain_over_answers_has_an_end),
		T(dns_19_a_circle_in_one_answer_is_a_failure),
		T(freeing_drops_what_is_in_flight),
		T(new_servers_take_over_while_old_questions_end),
		T(names_that_are_not_canonical_are_refused),
		T(ipv6_servers_are_asked_too),
		T(lookups_open_no_files),
	};

	return run_in_lab(tests, ARRAY_SIZE(tests));
}
