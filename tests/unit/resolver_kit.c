/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_kit.c - a resolver in a network of the test's own, and lookups
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/resolver_kit.h"

#define GUARD_S		60	/* a test that waits longer has failed */

struct event_base *base;
struct resolver *resolver;
struct fake *first, *second, *third;

static void take(struct result *r, const struct resolver_answer *a)
{
	r->reason = a->reason;
	r->n = a->n;
	r->ttl_s = a->ttl_s;
	if (a->n)
		memcpy(r->addr, a->addr, a->n * sizeof(a->addr[0]));
	r->done = true;
	r->calls++;
}

const struct resolver_asker anyone = { .tenant = 1 };

void on_answer(void *arg, const struct resolver_answer *a)
{
	struct result *r = arg;

	take(r, a);
	resolver_cancel(r->cancel);
}

struct resolver_lookup *start(struct result *r, uint64_t tenant,
			      const char *name, enum resolver_type type)
{
	const struct resolver_asker asker = { .tenant = tenant };
	struct resolver_lookup *l = NULL;
	struct resolver_answer now;
	int err;

	memset(r, 0, sizeof(*r));
	err = resolver_lookup(resolver, &asker, str_from(name), type, on_answer,
			      r, &l, &now);
	if (err == 1)
		take(r, &now);
	else
		assert_int_equal(err, 0);
	return l;
}

void turn_until(const bool *flag)
{
	while (!*flag)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

void lookup(struct result *r, const char *name, enum resolver_type type)
{
	start(r, 1, name, type);
	turn_until(&r->done);
}

void use(const char *const *server, size_t n)
{
	struct resolver_servers s = { .n = n };

	for (size_t i = 0; i < n; i++)
		assert_int_equal(ip_endpoint_parse(str_from(server[i]), PORT,
						   &s.server[i].at), 0);
	assert_int_equal(resolver_set_servers(resolver, &s), 0);
}

void use_one(fake_fn *fn, void *arg)
{
	static const char *const one[] = { "127.0.0.1" };

	first = fake_new(base, one[0], PORT, fn, arg);
	use(one, 1);
}

void honest(void *arg, const struct fake_ask *ask)
{
	struct fake_records r = { .n = 0 };

	(void)arg;
	if (ask->q.type == DNS_TYPE_A)
		fake_add_a(&r, ask->q.text, "203.0.113.7", 120);
	else
		fake_add_a(&r, ask->q.text, "2001:db8:3::7", 240);
	fake_answer(ask, &r, 0);
}

void silent(void *arg, const struct fake_ask *ask)
{
	(void)arg;
	(void)ask;
}

void with_rcode(void *arg, const struct fake_ask *ask)
{
	struct fake_records r = { .n = 0 };

	fake_answer(ask, &r, *(const unsigned *)arg);
}

void renew(int attempt_ms, int attempts_until_ms)
{
	const struct dns_upstream_config config = {
		.base = base, .attempt_ms = attempt_ms,
		.attempts_until_ms = attempts_until_ms,
	};

	resolver_free(resolver);
	resolver = NULL;
	assert_int_equal(resolver_new_with(&config, &resolver), 0);
}

int setup(void **state)
{
	(void)state;
	alarm(GUARD_S);
	renew(ATTEMPT_MS, UNTIL_MS);
	return 0;
}

int teardown(void **state)
{
	(void)state;
	resolver_free(resolver);
	resolver = NULL;
	fake_free(first);
	fake_free(second);
	fake_free(third);
	first = second = third = NULL;
	return 0;
}

int run_in_lab(const struct CMUnitTest *tests, size_t n)
{
	int failed;

	if (!dns_lab_enter()) {
		printf("1..0 # SKIP no user and network namespaces here\n");
		return 0;
	}
	base = event_base_new();
	assert_non_null(base);
	failed = _cmocka_run_group_tests("resolver", tests, n, NULL, NULL);
	event_base_free(base);
	return failed;
}
