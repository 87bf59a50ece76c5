/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_hostile_test.c - a resolver under forged, crafted and lame answers
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "resolver/dns_chan.h"
#include "tests/unit/resolver_kit.h"

/* --- forged answers -------------------------------------------------------- */

/* To where the question came from, but from another port of the same address. */
static void from_elsewhere(const struct fake_ask *ask, const uint8_t *p,
			   size_t n)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(sendto(fd, p, n, 0,
				(const struct sockaddr *)&ask->peer,
				ask->peer_n), (ssize_t)n);
	close(fd);
}

static void spoofing(void *arg, const struct fake_ask *ask)
{
	struct fake_records bad = { .n = 0 };
	uint8_t out[1024];
	size_t n;

	(void)arg;
	if (ask->tcp) {
		honest(NULL, ask);
		return;
	}
	fake_add_a(&bad, ask->q.text, "203.0.113.66", 9999);
	n = fake_build(ask, &bad, 0, out, sizeof(out));
	out[0] ^= 1;			/* another id */
	fake_send(ask, out, n);
	out[0] ^= 1;
	out[13] = 'x';			/* another question */
	fake_send(ask, out, n);
	out[13] = ask->p[13];
	out[2] &= 0x7f;			/* no response */
	fake_send(ask, out, n);
	fake_send(ask, out, 11);	/* no header */
	out[2] |= 0x80;
	from_elsewhere(ask, out, n);	/* all of it right but the source */
	honest(NULL, ask);
}

static void dns_27_forged_answers_do_not_end_the_wait(void **state)
{
	struct result r;

	(void)state;
	use_one(spoofing, NULL);
	lookup(&r, "api.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(ip_addr_v4_bits(&r.addr[0]), HONEST_V4);
	lookup(&r, "api.example", RESOLVER_A);
	assert_int_equal(ip_addr_v4_bits(&r.addr[0]), HONEST_V4);
}

static void empty_first(void *arg, const struct fake_ask *ask)
{
	fake_send(ask, "", 0);
	honest(arg, ask);
}

/* It is the end of no stream. */
static void dns_27_an_empty_datagram_does_not_end_the_wait(void **state)
{
	struct result r;

	(void)state;
	use_one(empty_first, NULL);
	lookup(&r, "api.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(fake_count(first), 1);
}

/* By UDP what @arg says: wrong case, a cut or a malformed message. */
enum lie { LIE_CASE, LIE_TC, LIE_MALFORMED };

static void lying_by_udp(void *arg, const struct fake_ask *ask)
{
	struct fake_records r = { .n = 0 };
	enum lie lie = *(const enum lie *)arg;
	uint8_t out[1024];
	size_t n;

	if (ask->tcp) {
		honest(NULL, ask);
		return;
	}
	fake_add_a(&r, ask->q.text, "203.0.113.66", 9999);
	n = fake_build(ask, &r, lie == LIE_TC ? 0x0200 : 0, out, sizeof(out));
	if (lie == LIE_CASE)
		out[13] ^= 0x20;
	if (lie == LIE_MALFORMED)
		n -= 2;
	fake_send(ask, out, n);
}

static void dns_27_what_cannot_be_believed_is_asked_by_tcp(void **state)
{
	static const enum lie lies[] = { LIE_CASE, LIE_TC, LIE_MALFORMED };
	struct result r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		enum lie lie = lies[i];

		use_one(lying_by_udp, &lie);
		lookup(&r, "api.example", RESOLVER_A);
		assert_int_equal(r.reason, REASON_ALLOWED);
		assert_int_equal(ip_addr_v4_bits(&r.addr[0]), HONEST_V4);
		assert_int_equal(fake_count(first), 2);
		fake_free(first);
		first = NULL;
	}
}

/* As whoever knows port and name, but neither id nor case. */
#define FORGED_IDS	200

static void flooded(void *arg, const struct fake_ask *ask)
{
	struct fake_records bad = { .n = 0 };
	unsigned *by_tcp = arg;
	uint8_t out[1024];
	size_t n;

	by_tcp[ask->tcp]++;
	if (ask->tcp) {
		honest(NULL, ask);
		return;
	}
	fake_add_a(&bad, ask->q.text, "203.0.113.66", 9999);
	n = fake_build(ask, &bad, 0, out, sizeof(out));
	memset(out + 13, 'X', 1);
	for (size_t i = 13; i < 12u + ask->q.raw_n - 4; i++)
		out[i] = (uint8_t)(ask->p[i] ^ (ask->p[i] > '@' ? 0x20 : 0));
	/* The right id is among them: it is found again and again. */
	for (unsigned i = 0; i < FORGED_IDS; i++) {
		dns_put16(out, (uint16_t)(dns_get16(ask->p) + i -
					  FORGED_IDS / 2));
		fake_send(ask, out, n);
	}
	honest(NULL, ask);
}

static void dns_27_a_flood_neither_poisons_nor_denies(void **state)
{
	unsigned by_tcp[2] = { 0 };
	struct result r;
	char name[48];

	(void)state;
	use_one(flooded, by_tcp);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "name-%d.example.com", i);
		lookup(&r, name, RESOLVER_A);
		assert_int_equal(r.reason, REASON_ALLOWED);
		assert_int_equal(r.n, 1);
		assert_int_equal(ip_addr_v4_bits(&r.addr[0]), HONEST_V4);
	}
	/* From the first forgery on nothing is asked that can be forged. */
	assert_int_equal(by_tcp[false], 1);
	assert_int_equal(by_tcp[true], 20);
}

static void dns_27_without_tcp_udp_is_asked_again(void **state)
{
	unsigned by_tcp[2] = { 0 };
	struct result r;

	(void)state;
	use_one(flooded, by_tcp);
	lookup(&r, "a.example.com", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	fake_close_tcp(first);
	fake_set(first, honest, NULL);
	lookup(&r, "b.example.com", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(ip_addr_v4_bits(&r.addr[0]), HONEST_V4);
}

/* --- source ports ---------------------------------------------------------- */

#define LOAD		(DNS_CHANS_UDP_MAX * 4)	/* questions at any time */
#define LOAD_IN_ALL	6000

struct load {
	unsigned port[65536];		/* questions from each */
	unsigned started, ended;
	bool done;
};

static void load_on_answer(void *arg, const struct resolver_answer *a);

static void load_next(struct load *l)
{
	struct resolver_lookup *lookup;
	struct resolver_answer now;
	char name[32];
	int n = snprintf(name, sizeof(name), "n%u.example", l->started++);

	assert_int_equal(resolver_lookup(resolver, &anyone,
					 str_make(name, (size_t)n), RESOLVER_A,
					 load_on_answer, l, &lookup, &now), 0);
}

static void load_on_answer(void *arg, const struct resolver_answer *a)
{
	struct load *l = arg;

	assert_int_equal(a->reason, REASON_ALLOWED);
	l->done = ++l->ended == LOAD_IN_ALL;
	if (l->started < LOAD_IN_ALL)
		load_next(l);
}

static void count_ports(void *arg, const struct fake_ask *ask)
{
	struct load *l = arg;

	l->port[fake_last_port(ask->fake)]++;
	honest(NULL, ask);
}

static void dns_27_no_load_keeps_a_source_port_in_use(void **state)
{
	static struct load l;
	unsigned ports = 0;

	(void)state;
	renew(20 * ATTEMPT_MS, 20 * UNTIL_MS);
	use_one(count_ports, &l);
	for (unsigned i = 0; i < LOAD; i++)
		load_next(&l);
	while (!l.done) {
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
		assert_true(resolver_sockets(resolver) <= DNS_CHANS_UDP_MAX);
	}
	/* A port may come back by chance; none serves all the time. */
	for (size_t i = 0; i < ARRAY_SIZE(l.port); i++) {
		ports += l.port[i] > 0;
		assert_true(l.port[i] <= 4 * DNS_CHAN_WORN);
	}
	assert_true(ports >= LOAD_IN_ALL / DNS_CHAN_WORN / 2);
}

/* --- health ---------------------------------------------------------------- */

static const char *const two[] = { "127.0.0.1", "127.0.0.2" };

static void referring(void *arg, const struct fake_ask *ask)
{
	struct fake_records r = { .n = 0 };

	(void)arg;
	fake_add_authority(&r, "example", DNS_TYPE_NS, 3600, "\2ns\7example",
			   12);
	fake_answer(ask, &r, 0);
}

static void dns_24_a_server_that_others_outdo_rests(void **state)
{
	static const unsigned rcodes[] = {
		DNS_SERVFAIL, DNS_REFUSED, DNS_NOTIMP,
	};
	struct result r;

	(void)state;
	for (size_t i = 0; i <= ARRAY_SIZE(rcodes); i++) {
		unsigned rcode = rcodes[i % ARRAY_SIZE(rcodes)];
		bool lame = i == ARRAY_SIZE(rcodes);
		unsigned asked;

		first = fake_new(base, two[0], PORT,
				 lame ? referring : with_rcode, &rcode);
		second = fake_new(base, two[1], PORT, honest, NULL);
		use(two, 2);
		lookup(&r, "a.example", RESOLVER_A);
		assert_int_equal(r.reason, REASON_ALLOWED);
		asked = fake_count(first);
		assert_true(asked > 0);
		lookup(&r, "b.example", RESOLVER_A);
		assert_int_equal(r.reason, REASON_ALLOWED);
		assert_int_equal(fake_count(first), asked);
		fake_free(first);
		fake_free(second);
		first = second = NULL;
	}
}

static void a_name_that_nobody_resolves_says_nothing_of_servers(void **state)
{
	unsigned rcode = DNS_SERVFAIL;
	struct result r;

	(void)state;
	first = fake_new(base, two[0], PORT, with_rcode, &rcode);
	second = fake_new(base, two[1], PORT, with_rcode, &rcode);
	use(two, 2);
	lookup(&r, "broken.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_DNS_FAILED);
	fake_set(first, honest, NULL);
	fake_set(second, silent, NULL);
	lookup(&r, "good.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(fake_count(second), 2);	/* of the first name */
}

/* --- time ------------------------------------------------------------------ */

#define SLOW_MS		(10 * ATTEMPT_MS)

struct late {
	struct fake_ask ask;
	uint8_t p[512];
	struct event *ev;
};

static void late_cb(evutil_socket_t fd, short what, void *arg)
{
	struct late *late = arg;
	struct fake_records none = { .n = 0 };

	(void)fd;
	(void)what;
	fake_answer(&late->ask, &none, 0x0200);		/* TC */
}

/* Cut answers, just in time, that lead to a connection that says nothing. */
static void leading_on(void *arg, const struct fake_ask *ask)
{
	struct late *late = arg;
	const struct timeval tv = { .tv_usec = SLOW_MS * 1000 / 2 };

	if (ask->tcp || late->ev)
		return;
	assert_true(ask->n <= sizeof(late->p));
	late->ask = *ask;
	memcpy(late->p, ask->p, ask->n);
	late->ask.p = late->p;
	late->ev = evtimer_new(base, late_cb, late);
	assert_true(late->ev && event_add(late->ev, &tv) == 0);
}

static void dns_28_a_question_ends_in_time_whatever_servers_do(void **state)
{
	static struct late late;
	struct result r;

	(void)state;
	renew(SLOW_MS, 1);
	use_one(leading_on, &late);
	lookup(&r, "a.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_DNS_TIMEOUT);
	/* The transport has not even given up. */
	assert_true(resolver_sockets(resolver) > 0);
	while (resolver_sockets(resolver) > 0)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	assert_int_equal(r.calls, 1);
	event_free(late.ev);
}

/* Each answer takes three seconds and is one more link of a chain. */
static void one_link(void *arg, const struct fake_ask *ask)
{
	int64_t *now_ms = arg;
	struct fake_records r = { .n = 0 };
	char target[64];
	int n = snprintf(target, sizeof(target), "%u.example",
			 fake_count(ask->fake));

	assert_true(n > 0 && (size_t)n < sizeof(target));
	clock_test_set_ms(*now_ms += 3000);
	fake_add_cname(&r, ask->q.text, target, 300);
	fake_answer(ask, &r, 0);
}

static void dns_28_a_chain_of_slow_answers_ends_in_time(void **state)
{
	int64_t now_ms = clock_mono_ms();
	struct result r;

	(void)state;
	renew(10 * ATTEMPT_MS, 4000);
	use_one(one_link, &now_ms);
	lookup(&r, "a.example", RESOLVER_A);
	clock_test_set_ms(-1);
	assert_int_equal(r.reason, REASON_DNS_TIMEOUT);
	assert_int_equal(fake_count(first), 2);
}

/* --- what answers say ------------------------------------------------------ */

enum odd {
	ODD_NXDOMAIN_WITH_ADDRESS, ODD_TWO_TARGETS, ODD_REFERRAL, ODD_BADVERS,
	ODD_TTL, ODD_CLASS, ODD_NEIGHBOURS, ODD_DNAME, ODD_ORDER,
};

static void put_opt(struct fake_records *r, uint8_t rcode)
{
	const uint8_t opt[11] = { 0, 0, 41, 4, 0xd0, rcode };

	memcpy(r->p + r->n, opt, sizeof(opt));
	r->n += sizeof(opt);
	r->additional++;
}

static void odd_chain(struct fake_records *r, const char *name, enum odd odd)
{
	if (odd == ODD_TWO_TARGETS) {
		fake_add_cname(r, name, "x.example.net", 60);
		fake_add_cname(r, name, "y.example.net", 60);
		fake_add_a(r, "x.example.net", "203.0.113.7", 60);
	} else if (odd == ODD_ORDER) {
		fake_add_a(r, "c.example.net", "203.0.113.7", 60);
		fake_add_cname(r, "b.example.net", "c.example.net", 60);
		fake_add_cname(r, name, "b.example.net", 60);
		fake_add_cname(r, name, "b.example.net", 60);	/* again */
	} else {	/* RFC 6672: the CNAME made of it comes along */
		fake_add(r, "example", 39, 60, "\1x\7example\3net", 15);
		fake_add_cname(r, name, "odd.x.example.net", 60);
		fake_add_a(r, "odd.x.example.net", "203.0.113.7", 60);
	}
}

static void oddly(void *arg, const struct fake_ask *ask)
{
	struct fake_records r = { .n = 0 };
	enum odd odd = *(const enum odd *)arg;
	const char *name = ask->q.text;
	unsigned flags = 0;

	switch (odd) {
	case ODD_NXDOMAIN_WITH_ADDRESS:
		fake_add_a(&r, name, "203.0.113.66", 60);
		flags = DNS_NXDOMAIN;
		break;
	case ODD_REFERRAL:
		fake_add_authority(&r, "example", DNS_TYPE_NS, 60,
				   "\2ns\7example", 12);
		break;
	case ODD_BADVERS:
		put_opt(&r, 1);
		break;
	case ODD_TTL:
		fake_add_a(&r, name, "203.0.113.7", 0x80000001u);
		break;
	case ODD_CLASS:
		fake_add_a(&r, name, "203.0.113.66", 60);
		r.p[r.n - 11] = 3;			/* CH */
		fake_add_a(&r, name, "203.0.113.7", 60);
		break;
	case ODD_NEIGHBOURS:
		fake_add_a(&r, "example", "203.0.113.66", 60);
		fake_add_a(&r, "victim.example.com", "203.0.113.66", 60);
		fake_add_a(&r, name, "203.0.113.7", 60);
		fake_add_cname(&r, "victim.example.com", "evil.example", 60);
		break;
	case ODD_TWO_TARGETS:
	case ODD_ORDER:
	case ODD_DNAME:
		odd_chain(&r, name, odd);
		break;
	}
	fake_answer(ask, &r, flags);
}

static void what_contradicts_itself_is_no_answer(void **state)
{
	static const enum odd odds[] = {
		ODD_NXDOMAIN_WITH_ADDRESS, ODD_TWO_TARGETS, ODD_REFERRAL,
		ODD_BADVERS,
	};
	struct result r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odds); i++) {
		enum odd odd = odds[i];

		use_one(oddly, &odd);
		lookup(&r, "odd.example", RESOLVER_A);
		assert_int_equal(r.reason, REASON_DNS_FAILED);
		fake_free(first);
		first = NULL;
	}
}

static void dns_27_only_the_asked_name_is_answered_and_kept(void **state)
{
	static const enum odd odds[] = {
		ODD_CLASS, ODD_NEIGHBOURS, ODD_DNAME, ODD_ORDER,
	};
	struct result r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odds); i++) {
		enum odd odd = odds[i];

		use_one(oddly, &odd);
		lookup(&r, "odd.example", RESOLVER_A);
		assert_int_equal(r.reason, REASON_ALLOWED);
		assert_int_equal(r.n, 1);
		assert_int_equal(ip_addr_v4_bits(&r.addr[0]), HONEST_V4);
		/* The neighbour's record was not kept: it is asked for. */
		fake_set(first, honest, NULL);
		lookup(&r, "victim.example.com", RESOLVER_A);
		assert_int_equal(ip_addr_v4_bits(&r.addr[0]), HONEST_V4);
		fake_free(first);
		first = NULL;
	}
}

static void a_ttl_with_the_top_bit_set_is_none(void **state)
{
	enum odd odd = ODD_TTL;
	struct result r;

	(void)state;
	use_one(oddly, &odd);
	lookup(&r, "odd.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(r.ttl_s, 0);
	lookup(&r, "odd.example", RESOLVER_A);
	assert_int_equal(fake_count(first), 2);		/* not kept */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(dns_27_forged_answers_do_not_end_the_wait),
		T(dns_27_an_empty_datagram_does_not_end_the_wait),
		T(dns_27_what_cannot_be_believed_is_asked_by_tcp),
		T(dns_27_a_flood_neither_poisons_nor_denies),
		T(dns_27_without_tcp_udp_is_asked_again),
		T(dns_27_no_load_keeps_a_source_port_in_use),
		T(dns_24_a_server_that_others_outdo_rests),
		T(a_name_that_nobody_resolves_says_nothing_of_servers),
		T(dns_28_a_question_ends_in_time_whatever_servers_do),
		T(dns_28_a_chain_of_slow_answers_ends_in_time),
		T(what_contradicts_itself_is_no_answer),
		T(dns_27_only_the_asked_name_is_answered_and_kept),
		T(a_ttl_with_the_top_bit_set_is_none),
	};

	return run_in_lab(tests, ARRAY_SIZE(tests));
}
