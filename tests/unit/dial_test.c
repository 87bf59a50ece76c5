/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial_test.c - from a name or literal to a connected socket
 *
 * The network is real (a lab of our own); the resolver and the rules are
 * replaced at link time, so that a test says when an answer comes and what
 * policy thinks of an address.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/dial.h"
#include "proxy/half.h"
#include "proxy/parents.h"
#include "proxy/sock.h"
#include "proxy/source.h"
#include "resolver/resolver.h"
#include "tests/unit/proxy_lab.h"

#define PORT	4430

static struct event_base *base;
static struct half_loop *halves;

/* --- the rules -------------------------------------------------------------- */

static bool observing;
static const char *parent_word;		/* what the rules say of parents */

/* Private and metadata addresses are refused, the rest passes. */
void rules_judge(const struct ruleset *rs, const struct rules_question *q,
		 struct rules_answer *ret)
{
	(void)rs;
	assert_int_equal(q->port, PORT);
	*ret = (struct rules_answer){ .rule = "lab", .parent = parent_word };
	if (!q->addr)
		assert_non_null(parent_word);
	else if (q->addr->family == IP_V4 && q->addr->b[0] == 10)
		ret->reason = REASON_ADDRESS_PRIVATE;
	else if (q->addr->family == IP_V4 && q->addr->b[0] == 169)
		ret->reason = REASON_ADDRESS_METADATA;
	else if (observing) {
		ret->reason = REASON_HOST_NOT_ALLOWED;
		ret->would_deny = true;
	}
}

enum reason resolver_charge(const struct resolver_asker *asker,
			    struct str name)
{
	(void)asker;
	(void)name;
	fail();
	return REASON_INTERNAL_ERROR;
}

enum rules_name_verdict rules_judge_name(const struct ruleset *rs,
					 struct str host, int64_t now,
					 struct rules_answer *ret)
{
	(void)rs;
	(void)now;
	assert_true(str_eq(host, STR("api.example.org")));
	*ret = (struct rules_answer){ .would_deny = observing };
	return RULES_NAME_ALLOWED;
}

/* --- the resolver ----------------------------------------------------------- */

struct resolver_lookup {
	resolver_fn *fn;
	void *arg;
	bool open;
};

struct known {
	bool now;		/* in the cache */
	struct resolver_answer answer;
	struct ip_addr addr[8];
};

static struct resolver_lookup lookup_a, lookup_aaaa;
static struct known cache_a, cache_aaaa;
static bool hidden;

int resolver_lookup(struct resolver *r, const struct resolver_asker *asker,
		    struct str name, enum resolver_type type, resolver_fn *fn,
		    void *arg, struct resolver_lookup **ret,
		    struct resolver_answer *ret_now)
{
	struct resolver_lookup *l = type == RESOLVER_A ? &lookup_a :
							 &lookup_aaaa;
	struct known *k = type == RESOLVER_A ? &cache_a : &cache_aaaa;

	(void)r;
	assert_int_equal(asker->tenant, 7);
	assert_true(str_eq(name, STR("api.example.org")));
	if (k->now) {
		k->answer.addr = k->addr;
		*ret_now = k->answer;
		return 1;
	}
	*l = (struct resolver_lookup){ fn, arg, true };
	*ret = l;
	return 0;
}

bool resolver_hides(struct str name)
{
	assert_true(str_eq(name, STR("api.example.org")));
	return hidden;
}

void resolver_cancel(struct resolver_lookup *l)
{
	if (l)
		l->open = false;
}

static void known_set(struct known *k, enum reason reason, const char *text)
{
	struct str rest = str_from(text), word;

	*k = (struct known){ .answer.reason = reason };
	while (str_word(&rest, &word)) {
		assert_int_equal(ip_addr_parse(word,
					       &k->addr[k->answer.n]), 0);
		k->answer.n++;
	}
	k->answer.addr = k->addr;
}

static void answer(struct resolver_lookup *l, enum reason reason,
		   const char *text)
{
	struct known k;

	assert_true(l->open);
	l->open = false;
	known_set(&k, reason, text);
	l->fn(l->arg, &k.answer);
}

static void answer_a(const char *text)
{
	answer(&lookup_a, *text ? REASON_ALLOWED : REASON_DNS_NO_ADDRESS,
	       text);
}

static void answer_aaaa(const char *text)
{
	answer(&lookup_aaaa, *text ? REASON_ALLOWED : REASON_DNS_NO_ADDRESS,
	       text);
}

/* --- one dial ---------------------------------------------------------------- */

static struct {
	struct dial *dial;
	unsigned permits;
	enum reason permit_with;
	bool permit_would_deny;
	const struct parent *permit_parent;
	struct ip_endpoint permitted;
	bool over;
	struct dial_result result;
} got;

static enum reason permit(void *arg, const struct ip_endpoint *dst,
			  const struct dial_way *way,
			  const struct rules_answer *a)
{
	assert_ptr_equal(arg, &got);
	got.permit_parent = way->parent;
	got.permits++;
	got.permitted = *dst;
	got.permit_would_deny = a->would_deny;
	return got.permit_with;
}

static void over(void *arg, const struct dial_result *result)
{
	assert_ptr_equal(arg, &got);
	assert_false(got.over);
	got.over = true;
	got.result = *result;
}

static struct dial_config named(void)
{
	static const struct ip_hosts *no_hosts;

	return (struct dial_config){
		.base = base, .halves = halves,
		.hosts = &no_hosts, .asker.tenant = 7,
		.rules = (const struct ruleset *)&got,	/* never looked into */
		.host = STR("api.example.org"), .port = PORT,
		.permit = permit, .fn = over, .arg = &got,
	};
}

static void start(const struct dial_config *config)
{
	assert_int_equal(dial_start(config, &got.dial), 0);
	assert_false(got.over);
}

static void finish(enum reason reason, const char *addr)
{
	struct ip_addr want = { 0 };

	while (!got.over)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(got.result.reason, reason);
	assert_int_equal(got.result.dst.port, PORT);
	if (addr)
		assert_int_equal(ip_addr_parse(str_from(addr), &want), 0);
	assert_true(ip_addr_eq(&got.result.dst.addr, &want));
	assert_true((got.result.fd >= 0) == (reason == REASON_ALLOWED));
	assert_false(lookup_a.open);
	assert_false(lookup_aaaa.open);
	if (got.result.fd >= 0)
		close(got.result.fd);
}

static bool was_dialled(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* A listener whose queue is full: the kernel drops what arrives. */
struct hole {
	int listener, client[2];
};

static void hole_open(struct hole *h, const char *addr)
{
	struct pollfd p;

	h->listener = lab_listen(addr, PORT, NULL);
	assert_int_equal(listen(h->listener, 0), 0);
	h->client[0] = lab_connect(addr, PORT);
	h->client[1] = -1;
	p = (struct pollfd){ .fd = h->listener, .events = POLLIN };
	assert_int_equal(poll(&p, 1, -1), 1);
}

static void hole_close(struct hole *h)
{
	close(h->listener);
	close(h->client[0]);
}

static size_t fds_before;

static int setup(void **state)
{
	(void)state;
	memset(&got, 0, sizeof(got));
	lookup_a.open = lookup_aaaa.open = false;
	cache_a.now = cache_aaaa.now = observing = hidden = false;
	parent_word = NULL;
	base = event_base_new();
	assert_int_equal(half_loop_new(base, &halves), 0);
	fds_before = lab_open_fds();
	return !base;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(lab_open_fds(), fds_before);
	half_loop_free(halves);
	event_base_free(base);
	return 0;
}

/* --- tests --------------------------------------------------------------------- */

static void a_literal_is_judged_and_dialled(void **state)
{
	int listener = lab_listen("203.0.113.10", PORT, NULL);
	struct dial_config c = named();

	(void)state;
	c.host = STR_NONE;
	assert_int_equal(ip_addr_parse(STR("203.0.113.10"), &c.addr), 0);
	start(&c);
	finish(REASON_ALLOWED, "203.0.113.10");
	assert_int_equal(got.permits, 1);
	assert_true(ip_addr_eq(&got.permitted.addr, &c.addr));
	assert_int_equal(got.permitted.port, PORT);
	assert_true(got.result.permitted);
	assert_true(was_dialled(listener));
	close(listener);
}

static void a_refused_literal_is_never_dialled(void **state)
{
	int listener = lab_listen("169.254.169.254", PORT, NULL);
	struct dial_config c = named();

	(void)state;
	c.host = STR_NONE;
	assert_int_equal(ip_addr_parse(STR("169.254.169.254"), &c.addr), 0);
	start(&c);
	finish(REASON_ADDRESS_METADATA, "169.254.169.254");
	assert_int_equal(got.permits, 0);
	assert_false(was_dialled(listener));
	close(listener);
}

static void v6_goes_first_and_v4_follows_a_failure(void **state)
{
	int six = lab_listen("2001:db8:3::1", PORT, NULL);
	int four = lab_listen("203.0.113.10", PORT, NULL);
	struct dial_config c = named();

	(void)state;
	start(&c);
	answer_a("203.0.113.10");
	answer_aaaa("2001:db8:3::1");
	finish(REASON_ALLOWED, "2001:db8:3::1");
	assert_true(was_dialled(six));
	assert_false(was_dialled(four));
	close(six);

	got.over = false;
	got.permits = 0;
	start(&c);
	answer_aaaa("2001:db8:3::1");	/* refuses now */
	answer_a("203.0.113.10");
	finish(REASON_ALLOWED, "203.0.113.10");
	assert_int_equal(got.permits, 1);
	close(four);
}

static void a_family_that_is_off_is_not_asked_for(void **state)
{
	int six = lab_listen("2001:db8:3::1", PORT, NULL);
	int four = lab_listen("203.0.113.10", PORT, NULL);
	struct dial_config c = named();

	(void)state;
	c.v4_only = true;
	start(&c);
	assert_false(lookup_aaaa.open);
	answer_a("203.0.113.10");
	finish(REASON_ALLOWED, "203.0.113.10");
	assert_true(was_dialled(four));
	assert_false(was_dialled(six));

	got.over = false;
	got.permits = 0;
	start(&c);
	answer(&lookup_a, REASON_DNS_NO_ADDRESS, "");
	finish(REASON_DNS_NO_ADDRESS, NULL);
	close(six);
	close(four);
}

static void a_family_without_a_route_fails_at_once(void **state)
{
	int four = lab_listen("203.0.113.10", PORT, NULL);
	struct dial_config c = named();

	(void)state;
	/* No timer may be needed. */
	c.limits = (struct dial_limits){ 3600000, 3600000, 3600000, 3600000 };
	start(&c);
	answer_aaaa("2001:db8:9::1 2001:db8:9::2");
	answer_a("203.0.113.10");
	finish(REASON_ALLOWED, "203.0.113.10");
	close(four);
}

static void refused_addresses_are_never_tried_ADDR_10(void **state)
{
	int bait = lab_listen("10.0.0.5", PORT, NULL);
	struct dial_config c = named();

	(void)state;
	start(&c);
	answer_a("10.0.0.5 203.0.113.10 10.0.0.5");	/* .10 resets */
	answer_aaaa("");
	/* What the network said of the one that was tried is worth more. */
	finish(REASON_CONNECT_REFUSED, "203.0.113.10");
	assert_false(was_dialled(bait));
	close(bait);
}

static void an_answer_of_refused_addresses_is_policy_not_dns(void **state)
{
	struct dial_config c = named();

	(void)state;
	start(&c);
	answer_aaaa("");
	answer_a("169.254.169.254 10.0.0.5");
	finish(REASON_ADDRESS_METADATA, "169.254.169.254");
	assert_string_equal(got.result.rule, "lab");
	assert_int_equal(got.permits, 0);
	assert_false(got.result.permitted);
}

/* Eight of each family, as many as a dial tries: the last one of all works. */
static void every_address_is_tried_to_the_last(void **state)
{
	int listener = lab_listen("203.0.113.18", PORT, NULL);
	struct dial_config c = named();

	(void)state;
	start(&c);
	answer_a("203.0.113.11 203.0.113.12 203.0.113.13 203.0.113.14 "
		 "203.0.113.15 203.0.113.16 203.0.113.17 203.0.113.18");
	answer_aaaa("2001:db8:3::1 2001:db8:3::2 2001:db8:3::3 2001:db8:3::4 "
		    "2001:db8:3::5 2001:db8:3::6 2001:db8:3::7 2001:db8:3::8");
	finish(REASON_ALLOWED, "203.0.113.18");
	assert_int_equal(got.permits, 1);
	assert_true(was_dialled(listener));
	close(listener);

	listener = lab_listen("2001:db8:3::8", PORT, NULL);
	got.over = false;
	c.prefer = IP_V4;
	start(&c);
	answer_aaaa("2001:db8:3::1 2001:db8:3::2 2001:db8:3::3 2001:db8:3::4 "
		    "2001:db8:3::5 2001:db8:3::6 2001:db8:3::7 2001:db8:3::8");
	answer_a("203.0.113.11 203.0.113.12 203.0.113.13 203.0.113.14 "
		 "203.0.113.15 203.0.113.16 203.0.113.17 203.0.113.18");
	finish(REASON_ALLOWED, "2001:db8:3::8");
	assert_true(was_dialled(listener));
	close(listener);
}

/* What the network says of one that was tried is more than a refusal. */
static void the_most_useful_of_all_failures_is_told(void **state)
{
	struct dial_config c = named();
	struct hole hole;

	(void)state;
	hole_open(&hole, "203.0.113.10");
	c.limits.connect_ms = 100;
	c.limits.next_ms = 10;
	start(&c);		/* private, no route, silent, refused */
	answer_aaaa("2001:db8:9::1");
	answer_a("10.0.0.5 203.0.113.10 203.0.113.11");
	while (!got.over)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(got.result.reason, REASON_CONNECT_REFUSED);
	assert_true(got.result.permitted);

	got.over = false;
	start(&c);		/* private, no route, silent */
	answer_aaaa("2001:db8:9::1");
	answer_a("10.0.0.5 203.0.113.10");
	while (!got.over)
		event_base_loop(base, EVLOOP_ONCE);
	assert_int_equal(got.result.reason, REASON_CONNECT_TIMEOUT);

	got.over = false;
	start(&c);		/* private, and one family unknown */
	answer(&lookup_aaaa, REASON_DNS_TIMEOUT, "");
	answer_a("10.0.0.5");
	finish(REASON_ADDRESS_PRIVATE, "10.0.0.5");
	hole_close(&hole);
}

static void a_silent_address_is_overtaken_and_its_socket_closed(void **state)
{
	struct dial_config c = named();
	struct hole hole;
	int listener;

	(void)state;
	hole_open(&hole, "203.0.113.11");
	listener = lab_listen("203.0.113.12", PORT, NULL);
	c.limits.next_ms = 20;
	start(&c);
	answer_aaaa("");
	answer_a("203.0.113.11 203.0.113.12");
	finish(REASON_ALLOWED, "203.0.113.12");
	assert_int_equal(got.permits, 1);
	hole_close(&hole);
	close(listener);
}

static void a_silent_origin_is_a_connect_timeout_TUN_07(void **state)
{
	struct dial_config c = named();
	struct hole hole;

	(void)state;
	hole_open(&hole, "203.0.113.11");
	c.limits.connect_ms = 30;
	start(&c);
	answer_aaaa("");
	answer_a("203.0.113.11");
	finish(REASON_CONNECT_TIMEOUT, "203.0.113.11");

	/* The whole has a bound of its own. */
	got.over = false;
	c.limits.connect_ms = 3600000;
	c.limits.deadline_ms = 30;
	start(&c);
	answer_aaaa("");
	answer_a("203.0.113.11");
	finish(REASON_CONNECT_TIMEOUT, "203.0.113.11");
	hole_close(&hole);
}

static void a_silent_resolver_is_a_dns_timeout(void **state)
{
	struct dial_config c = named();

	(void)state;
	c.limits.deadline_ms = 20;
	start(&c);
	answer_aaaa("");
	finish(REASON_DNS_TIMEOUT, NULL);
}

static void the_resolvers_words_are_kept(void **state)
{
	static const struct {
		enum reason a, aaaa, want;
	} cases[] = {
		{ REASON_DNS_NXDOMAIN, REASON_DNS_NXDOMAIN,
		  REASON_DNS_NXDOMAIN },
		{ REASON_DNS_NO_ADDRESS, REASON_DNS_NO_ADDRESS,
		  REASON_DNS_NO_ADDRESS },
		{ REASON_DNS_FAILED, REASON_DNS_NO_ADDRESS,
		  REASON_DNS_FAILED },
		{ REASON_DNS_NO_ADDRESS, REASON_DNS_TIMEOUT,
		  REASON_DNS_TIMEOUT },
		{ REASON_QUERIES_EXCEEDED, REASON_DNS_TIMEOUT,
		  REASON_QUERIES_EXCEEDED },
		{ REASON_DNS_NXDOMAIN, REASON_QUERIES_EXCEEDED,
		  REASON_DNS_NXDOMAIN },
	};
	struct dial_config c = named();
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		got.over = false;
		start(&c);
		answer(&lookup_a, cases[i].a, "");
		answer(&lookup_aaaa, cases[i].aaaa, "");
		finish(cases[i].want, NULL);
	}
}

/* DNS-03: a connection's name leaves us as a question does. */
static void a_name_over_the_budget_is_not_dialled(void **state)
{
	static const enum reason over_budget[] = {
		REASON_NAMES_EXCEEDED, REASON_LABEL_BYTES_EXCEEDED,
		REASON_NXDOMAIN_EXCEEDED, REASON_NAME_TOO_DEEP,
	};
	struct dial_config c = named();
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(over_budget); i++) {
		got.over = false;
		known_set(&cache_a, over_budget[i], "");
		known_set(&cache_aaaa, over_budget[i], "");
		cache_a.now = cache_aaaa.now = true;
		start(&c);
		finish(over_budget[i], NULL);
	}
	assert_int_equal(got.permits, 0);
}

static void the_asked_address_and_family_go_first(void **state)
{
	int six = lab_listen("2001:db8:3::1", PORT, NULL);
	int first = lab_listen("203.0.113.10", PORT, NULL);
	int asked = lab_listen("203.0.113.12", PORT, NULL);
	struct dial_config c = named();

	(void)state;
	c.prefer = IP_V4;
	start(&c);
	answer_aaaa("2001:db8:3::1");
	answer_a("203.0.113.10 203.0.113.12");
	finish(REASON_ALLOWED, "203.0.113.10");

	got.over = false;
	assert_int_equal(ip_addr_parse(STR("203.0.113.12"), &c.addr), 0);
	start(&c);
	answer_a("203.0.113.10 203.0.113.12");
	finish(REASON_ALLOWED, "203.0.113.12");
	assert_false(was_dialled(six));

	/* It is dialled only when it is among the answers. */
	got.over = false;
	start(&c);
	answer_a("203.0.113.10");
	finish(REASON_ALLOWED, "203.0.113.10");
	close(six);
	close(first);
	close(asked);
}

static void the_other_family_waits_a_moment_for_the_preferred_one(
	void **state)
{
	int six = lab_listen("2001:db8:3::1", PORT, NULL);
	int four = lab_listen("203.0.113.10", PORT, NULL);
	struct dial_config c = named();

	(void)state;
	c.limits.resolution_ms = 3600000;
	start(&c);
	answer_a("203.0.113.10");
	lab_turn(base);
	assert_int_equal(got.permits, 0);
	answer_aaaa("2001:db8:3::1");
	finish(REASON_ALLOWED, "2001:db8:3::1");

	/* And no longer than that. */
	got.over = false;
	c.limits.resolution_ms = 10;
	start(&c);
	answer_a("203.0.113.10");
	while (!got.over)
		event_base_loop(base, EVLOOP_ONCE);
	finish(REASON_ALLOWED, "203.0.113.10");
	close(six);
	close(four);
}

static void a_late_answer_joins_a_race_under_way(void **state)
{
	int four = lab_listen("203.0.113.10", PORT, NULL);
	struct dial_config c = named();
	struct hole hole;
	int waiting;

	(void)state;
	hole_open(&hole, "2001:db8:3::2");
	c.limits.next_ms = 10;
	start(&c);
	answer_aaaa("2001:db8:3::2");
	assert_int_equal(got.permits, 1);
	waiting = event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED);
	while (event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) ==
	       waiting)
		event_base_loop(base, EVLOOP_ONCE);	/* pace timer passes */
	answer_a("203.0.113.10");
	finish(REASON_ALLOWED, "203.0.113.10");
	hole_close(&hole);
	close(four);
}

static void cached_answers_need_no_wait(void **state)
{
	int four = lab_listen("203.0.113.10", PORT, NULL);
	struct dial_config c = named();

	(void)state;
	known_set(&cache_aaaa, REASON_DNS_NO_ADDRESS, "");
	known_set(&cache_a, REASON_ALLOWED, "203.0.113.10");
	cache_a.now = cache_aaaa.now = true;
	start(&c);
	assert_int_equal(got.permits, 1);
	finish(REASON_ALLOWED, "203.0.113.10");
	close(four);
}

static void without_a_record_nothing_is_dialled(void **state)
{
	int four = lab_listen("203.0.113.10", PORT, NULL);
	struct dial_config c = named();

	(void)state;
	got.permit_with = REASON_AUDIT_UNAVAILABLE;
	start(&c);
	answer_aaaa("");
	answer_a("203.0.113.10");
	finish(REASON_AUDIT_UNAVAILABLE, NULL);
	assert_false(was_dialled(four));
	assert_false(got.result.permitted);
	close(four);
}

static void observe_lets_a_name_through_and_says_so(void **state)
{
	int four = lab_listen("203.0.113.10", PORT, NULL);
	struct dial_config c = named();

	(void)state;
	observing = true;
	start(&c);
	answer_aaaa("");
	answer_a("10.0.0.5 203.0.113.10");
	finish(REASON_ALLOWED, "203.0.113.10");
	assert_true(got.permit_would_deny);
	close(four);
}

/* DNS-30: what leads inside is looked up where a rule allows it, or not at all. */
static void a_name_that_is_only_observed_and_hidden_is_not_looked_up(
								void **state)
{
	struct dial_config c = named();

	(void)state;
	observing = hidden = true;
	start(&c);
	assert_false(lookup_a.open || lookup_aaaa.open);
	finish(REASON_HOST_NOT_ALLOWED, NULL);
	assert_int_equal(got.permits, 0);
	observing = false;
	got.over = false;
	start(&c);
	answer_aaaa("");
	answer_a("10.0.0.5");
	finish(REASON_ADDRESS_PRIVATE, "10.0.0.5");
}

static void a_cancelled_dial_is_silent_and_leaves_nothing(void **state)
{
	struct dial_config c = named();
	struct hole hole;

	(void)state;
	start(&c);
	dial_cancel(got.dial);		/* while asking */
	assert_false(lookup_a.open);
	assert_false(lookup_aaaa.open);

	hole_open(&hole, "203.0.113.11");
	start(&c);
	answer_aaaa("");
	answer_a("203.0.113.11");
	dial_cancel(got.dial);		/* while connecting */
	hole_close(&hole);

	start(&c);
	answer_aaaa("");
	answer_a("10.0.0.5");
	dial_cancel(got.dial);		/* failed, not told yet */
	lab_turn(base);
	assert_false(got.over);
	/* But the halves', of which none is left: their loop insists. */
	assert_int_equal(event_base_get_num_events(base,
			 EVENT_BASE_COUNT_ADDED), 1);
}

/* TUN-07 through a parent: the dial's own deadline holds. */
static void a_silent_parent_is_a_parent_timeout(void **state)
{
	static struct parent corp = { .name = "corp", .port = PORT + 1 };
	const struct parents parents = { .parent = { &corp }, .n = 1 };
	int listener = lab_listen("127.0.0.1", PORT + 1, NULL);
	struct dial_config c = named();

	(void)state;
	assert_int_equal(ip_addr_parse(STR("127.0.0.1"), &corp.addr), 0);
	parent_word = "corp";
	c.parents = &parents;
	c.limits.deadline_ms = 100;
	start(&c);
	answer_aaaa("");
	answer_a("203.0.113.10");
	finish(REASON_PARENT_TIMEOUT, "203.0.113.10");
	assert_ptr_equal(got.permit_parent, &corp);
	assert_ptr_equal(got.result.way.parent, &corp);
	assert_true(was_dialled(listener));
	close(listener);
}

static void a_flow_leaves_from_its_source(void **state)
{
	int four = lab_listen("203.0.113.10", PORT, NULL), fd;
	struct dial_config c = named();
	struct source source;
	struct ip_endpoint peer;
	const char *why;
	char text[IP_TEXT_SIZE];

	(void)state;
	assert_int_equal(source_parse(STR("2001:db8:3::77 203.0.113.77"),
				      &source, &why), 0);
	c.source = &source;
	c.prefer = IP_V4;
	start(&c);
	answer_a("203.0.113.10");
	answer_aaaa("");
	finish(REASON_ALLOWED, "203.0.113.10");
	fd = lab_accept(four);
	assert_int_equal(sock_peer(fd, &peer), 0);
	ip_addr_text(&peer.addr, text);
	assert_string_equal(text, "203.0.113.77");
	close(fd);
	close(four);
}

static void a_source_is_one_address_or_one_of_each_family(void **state)
{
	struct source s;
	struct ip_addr addr;
	const char *why;

	(void)state;
	assert_int_equal(source_parse(STR("2001:db8::1"), &s, &why), 0);
	assert_int_equal(s.v4.family, IP_NONE);
	assert_int_equal(source_parse(STR(""), &s, &why), -EINVAL);
	assert_int_equal(source_parse(STR("192.0.2.1 192.0.2.2"), &s, &why),
			 -EINVAL);
	assert_int_equal(source_parse(STR("eth0"), &s, &why), -EINVAL);
	/* Nobody's here. */
	assert_int_equal(source_parse(STR("8.8.8.8"), &s, &why), 0);
	assert_int_equal(source_check(&s, &addr), -EADDRNOTAVAIL);
	assert_true(ip_addr_eq(&addr, &s.v4));
	assert_int_equal(source_parse(STR("127.0.0.1"), &s, &why), 0);
	assert_int_equal(source_check(&s, &addr), 0);
}

#define dial_unit(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		dial_unit(a_literal_is_judged_and_dialled),
		dial_unit(a_refused_literal_is_never_dialled),
		dial_unit(v6_goes_first_and_v4_follows_a_failure),
		dial_unit(a_family_that_is_off_is_not_asked_for),
		dial_unit(a_family_without_a_route_fails_at_once),
		dial_unit(refused_addresses_are_never_tried_ADDR_10),
		dial_unit(an_answer_of_refused_addresses_is_policy_not_dns),
		dial_unit(every_address_is_tried_to_the_last),
		dial_unit(the_most_useful_of_all_failures_is_told),
		dial_unit(a_silent_address_is_overtaken_and_its_socket_closed),
		dial_unit(a_silent_origin_is_a_connect_timeout_TUN_07),
		dial_unit(a_silent_parent_is_a_parent_timeout),
		dial_unit(a_flow_leaves_from_its_source),
		dial_unit(a_source_is_one_address_or_one_of_each_family),
		dial_unit(a_silent_resolver_is_a_dns_timeout),
		dial_unit(the_resolvers_words_are_kept),
		dial_unit(a_name_over_the_budget_is_not_dialled),
		dial_unit(the_asked_address_and_family_go_first),
		dial_unit(
		    the_other_family_waits_a_moment_for_the_preferred_one),
		dial_unit(a_late_answer_joins_a_race_under_way),
		dial_unit(cached_answers_need_no_wait),
		dial_unit(without_a_record_nothing_is_dialled),
		dial_unit(observe_lets_a_name_through_and_says_so),
		dial_unit(
		 a_name_that_is_only_observed_and_hidden_is_not_looked_up),
		dial_unit(a_cancelled_dial_is_silent_and_leaves_nothing),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
