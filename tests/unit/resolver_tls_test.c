/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver_tls_test.c - lookups by DNS over TLS: verified, shared, never in clear
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "resolver/dns_tls.h"
#include "tests/unit/resolver_kit.h"
#include "tests/unit/tls_lab.h"

#define BY_NAME		"tls://127.0.0.1:5300#dns.example.net"
#define BY_ADDRESS	"tls://127.0.0.1:5300"

static const char *ca_file;
static struct resolver_tls *tls;
static struct tls_fake *server;
static struct fake *in_clear;	/* what must not be asked */

static void use_tls(const char *const *text, size_t n)
{
	struct resolver_servers s = { .n = n, .tls = tls };
	const char *why;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(resolver_parse_server(str_from(text[i]),
						       &s.server[i], &why), 0);
	assert_int_equal(resolver_set_servers(resolver, &s), 0);
}

static void serve(enum tls_lab_cert cert, const char *text, fake_fn *fn,
		  void *arg)
{
	tls_fake_free(server);
	server = tls_fake_new(base, "127.0.0.1", PORT, cert, fn, arg);
	use_tls(&text, 1);
}

static int tls_setup(void **state)
{
	char why[RESOLVER_TLS_WHY_SIZE];

	setup(state);
	/* Real work, under sanitizers: give it time. */
	renew(20 * ATTEMPT_MS, 2 * UNTIL_MS);
	assert_int_equal(resolver_tls_new(ca_file, &tls, why), 0);
	return 0;
}

static int tls_teardown(void **state)
{
	teardown(state);
	tls_fake_free(server);
	server = NULL;
	fake_free(in_clear);
	in_clear = NULL;
	resolver_tls_free(tls);
	tls = NULL;
	return 0;
}

static void assert_found(const char *name)
{
	struct result r;

	lookup(&r, name, RESOLVER_A);
	assert_int_equal(r.reason, REASON_ALLOWED);
	assert_int_equal(r.n, 1);
	assert_int_equal(ip_addr_v4_bits(&r.addr[0]), HONEST_V4);
}

static void questions_share_one_verified_connection(void **state)
{
	static const char *const texts[] = { BY_NAME, BY_ADDRESS };
	char name[32];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		serve(TLS_LAB_GOOD, texts[i], honest, NULL);
		for (int k = 0; k < 5; k++) {
			snprintf(name, sizeof(name), "n%d.example", k);
			assert_found(name);
		}
		assert_int_equal(tls_fake_conns(server), 1);
		assert_int_equal(tls_fake_count(server), 5);
		assert_string_equal(tls_fake_sni(server),
				    i == 0 ? "dns.example.net" : "");
	}
}

struct sizes {
	size_t n[3];
	unsigned count;
};

static void note_size(void *arg, const struct fake_ask *ask)
{
	struct sizes *s = arg;

	assert_true(s->count < 3);
	s->n[s->count++] = ask->n;
	honest(NULL, ask);
}

static void sizes_tell_nothing_of_names(void **state)
{
	struct sizes s = { .count = 0 };

	(void)state;
	serve(TLS_LAB_GOOD, BY_NAME, note_size, &s);
	assert_found("a.example");
	assert_found("a-much-longer-name-than-the-other-one.example");
	assert_found("a-name.with.so.many.labels.and.so.much.in.them.that.it."
		     "does.not.fit.into.the.first.hundred.and.twenty.eight.of."
		     "the.bytes.example");
	assert_int_equal(s.n[0], DNS_ASK_PAD);
	assert_int_equal(s.n[1], DNS_ASK_PAD);
	assert_int_equal(s.n[2], 2 * DNS_ASK_PAD);
}

static void whoever_cannot_be_verified_is_asked_nothing(void **state)
{
	static const struct {
		enum tls_lab_cert cert;
		const char *text;
	} cases[] = {
		{ TLS_LAB_STRANGER, BY_NAME },
		{ TLS_LAB_STRANGER, BY_ADDRESS },
		{ TLS_LAB_EXPIRED, BY_NAME },
		{ TLS_LAB_OTHER_NAME, BY_NAME },
		{ TLS_LAB_OTHER_NAME, BY_ADDRESS },
		{ TLS_LAB_COMMON_NAME, BY_NAME },
		{ TLS_LAB_GOOD, "tls://127.0.0.1:5300#dns.example.com" },
		{ TLS_LAB_GOOD, "tls://127.0.0.1:5300#example.net" },
	};
	struct result r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		serve(cases[i].cert, cases[i].text, honest, NULL);
		lookup(&r, "a.example", RESOLVER_A);
		assert_int_equal(r.reason, REASON_DNS_TLS_FAILED);
		assert_int_equal(tls_fake_count(server), 0);
		assert_true(tls_fake_conns(server) > 0);
	}
	serve(TLS_LAB_GOOD, BY_NAME, honest, NULL);
	assert_found("a.example");
}

static void old_versions_are_refused(void **state)
{
	struct result r;

	(void)state;
	serve(TLS_LAB_GOOD, BY_NAME, honest, NULL);
	tls_fake_age(server);
	lookup(&r, "a.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_DNS_TLS_FAILED);
	assert_int_equal(tls_fake_count(server), 0);
}

/* The same address and port, by UDP and by TCP, would answer in clear. */
static void nothing_falls_back_to_clear_text(void **state)
{
	static const char *const text[] = { BY_NAME };
	struct result r;

	(void)state;
	in_clear = fake_new(base, "127.0.0.1", PORT, honest, NULL);
	use_tls(text, 1);
	lookup(&r, "a.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_DNS_TLS_FAILED);
	assert_int_equal(r.n, 0);
	fake_close_tcp(in_clear);
	lookup(&r, "b.example", RESOLVER_A);
	assert_true(r.reason != REASON_ALLOWED);
	/* Of what came, nothing was a question. */
	assert_int_equal(fake_questions(in_clear), 0);
}

static void a_server_that_fails_is_followed_by_the_next(void **state)
{
	static const char *const texts[] = {
		"tls://127.0.0.2:5300#dns.example.net", BY_NAME,
	};

	(void)state;
	serve(TLS_LAB_GOOD, BY_NAME, honest, NULL);
	use_tls(texts, 2);		/* nobody is at the first */
	assert_found("a.example");
}

/* --- order ----------------------------------------------------------------- */

#define MANY	100

struct held {
	struct fake_ask ask[MANY];
	uint8_t p[MANY][512];
	unsigned n;
};

/* Answers all in the opposite order, with others among them. */
static void backwards(void *arg, const struct fake_ask *ask)
{
	struct held *h = arg;
	uint8_t junk[12] = { 0 };

	memcpy(h->p[h->n], ask->p, ask->n);
	h->ask[h->n] = *ask;
	h->ask[h->n].p = h->p[h->n];
	if (++h->n < MANY)
		return;
	while (h->n > 0) {
		const struct fake_ask *a = &h->ask[--h->n];
		struct fake_records bad = { .n = 0 };
		uint8_t out[512];
		size_t n;

		fake_send(a, junk, sizeof(junk));
		fake_send(a, junk, 3);
		fake_send(a, junk, 0);
		/* The right id, of another question. */
		fake_add_a(&bad, a->q.text, "203.0.113.66", 60);
		n = fake_build(a, &bad, 0, out, sizeof(out));
		out[13] ^= 1;
		fake_send(a, out, n);
		honest(NULL, a);
	}
}

static void answers_may_come_in_any_order(void **state)
{
	static struct held h;
	static struct result r[MANY];
	char name[32];

	(void)state;
	serve(TLS_LAB_GOOD, BY_NAME, backwards, &h);
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "n%d.example", i);
		start(&r[i], 1, name, RESOLVER_A);
	}
	for (int i = 0; i < MANY; i++) {
		turn_until(&r[i].done);
		assert_int_equal(r[i].reason, REASON_ALLOWED);
		assert_int_equal(ip_addr_v4_bits(&r[i].addr[0]), HONEST_V4);
	}
	assert_int_equal(tls_fake_conns(server), 1);
}

static void more_than_fit_wait_their_turn(void **state)
{
	static struct result r[3 * DNS_TLS_ASKS_MAX];
	char name[32];

	(void)state;
	serve(TLS_LAB_GOOD, BY_NAME, honest, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(r); i++) {
		snprintf(name, sizeof(name), "n%zu.example", i);
		start(&r[i], 1, name, RESOLVER_A);
	}
	for (size_t i = 0; i < ARRAY_SIZE(r); i++) {
		turn_until(&r[i].done);
		assert_int_equal(r[i].reason, REASON_ALLOWED);
	}
	assert_int_equal(tls_fake_conns(server), 1);
}

/* --- connections that end -------------------------------------------------- */

/* The second question, and each that is @arg's, meets a closed door. */
static void hanging_up(void *arg, const struct fake_ask *ask)
{
	unsigned *left = arg;

	if (*left > 0) {
		(*left)--;
		tls_fake_hang_up(ask->tls_fake);
		return;
	}
	honest(NULL, ask);
}

static void what_a_closing_server_did_not_answer_is_asked_again(void **state)
{
	unsigned left = 0;
	struct result r;

	(void)state;
	serve(TLS_LAB_GOOD, BY_NAME, hanging_up, &left);
	assert_found("a.example");
	left = 1;
	assert_found("b.example");
	assert_int_equal(tls_fake_conns(server), 2);
	assert_int_equal(tls_fake_count(server), 3);
	/* One that only ever hangs up is given up. */
	left = 1000;
	lookup(&r, "c.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_DNS_FAILED);
	assert_true(tls_fake_conns(server) < 8);
}

static void an_idle_connection_that_the_server_closed_is_made_anew(void **state)
{
	(void)state;
	serve(TLS_LAB_GOOD, BY_NAME, honest, NULL);
	assert_found("a.example");
	tls_fake_hang_up(server);
	assert_found("b.example");
	assert_int_equal(tls_fake_conns(server), 2);
}

static void idle_connections_are_closed(void **state)
{
	const struct dns_upstream_config config = {
		.base = base, .attempt_ms = 20 * ATTEMPT_MS, .tls_idle_ms = 1,
	};

	(void)state;
	resolver_free(resolver);
	assert_int_equal(resolver_new_with(&config, &resolver), 0);
	serve(TLS_LAB_GOOD, BY_NAME, honest, NULL);
	assert_found("a.example");
	while (tls_fake_open(server) > 0)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	assert_found("b.example");
	assert_int_equal(tls_fake_conns(server), 2);
}

static void silence_is_a_timeout_and_ends_the_connection(void **state)
{
	struct result r;

	(void)state;
	serve(TLS_LAB_GOOD, BY_NAME, honest, NULL);
	assert_found("a.example");
	renew(5 * ATTEMPT_MS, UNTIL_MS);
	serve(TLS_LAB_GOOD, BY_NAME, silent, NULL);
	lookup(&r, "b.example", RESOLVER_A);
	assert_int_equal(r.reason, REASON_DNS_TIMEOUT);
	tls_fake_set(server, honest, NULL);
	assert_found("c.example");
	assert_true(tls_fake_conns(server) >= 2);
}

static void freeing_and_new_servers_drop_connections(void **state)
{
	struct result r;

	(void)state;
	serve(TLS_LAB_GOOD, BY_NAME, silent, NULL);
	start(&r, 1, "a.example", RESOLVER_A);
	while (tls_fake_count(server) == 0)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	/* What was under way goes on with the new ones. */
	serve(TLS_LAB_GOOD, BY_ADDRESS, honest, NULL);
	turn_until(&r.done);
	assert_int_equal(r.reason, REASON_ALLOWED);
	tls_fake_set(server, silent, NULL);
	start(&r, 1, "b.example", RESOLVER_A);
	while (tls_fake_count(server) == 1)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
	resolver_free(resolver);
	resolver = NULL;
	assert_int_equal(r.calls, 0);
}

/* --- what is loaded -------------------------------------------------------- */

static void without_certificates_there_is_no_tls(void **state)
{
	struct resolver_servers s = { .n = 1 };
	char why[RESOLVER_TLS_WHY_SIZE] = "";
	struct resolver_tls *none = NULL;
	const char *server_why;

	(void)state;
	assert_int_not_equal(resolver_tls_new("/nowhere/ca.pem", &none, why),
			     0);
	assert_non_null(strstr(why, "/nowhere/ca.pem"));
	assert_non_null(strstr(why, "No such file"));
	assert_int_not_equal(resolver_tls_new("/proc/self/cmdline", &none,
					      why), 0);
	assert_null(none);
	/* And a server with TLS is not taken without it. */
	assert_int_equal(resolver_parse_server(STR(BY_NAME), &s.server[0],
					       &server_why), 0);
	assert_int_equal(resolver_set_servers(resolver, &s), -EINVAL);
}

#undef T
#define T(fn)	cmocka_unit_test_setup_teardown(fn, tls_setup, tls_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(questions_share_one_verified_connection),
		T(sizes_tell_nothing_of_names),
		T(whoever_cannot_be_verified_is_asked_nothing),
		T(old_versions_are_refused),
		T(nothing_falls_back_to_clear_text),
		T(a_server_that_fails_is_followed_by_the_next),
		T(answers_may_come_in_any_order),
		T(more_than_fit_wait_their_turn),
		T(what_a_closing_server_did_not_answer_is_asked_again),
		T(an_idle_connection_that_the_server_closed_is_made_anew),
		T(idle_connections_are_closed),
		T(silence_is_a_timeout_and_ends_the_connection),
		T(freeing_and_new_servers_drop_connections),
		T(without_certificates_there_is_no_tls),
	};
	int failed;

	/* As the daemon has it: a peer that is gone is an error, no signal. */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return 1;
	ca_file = tls_lab_start();
	failed = run_in_lab(tests, ARRAY_SIZE(tests));
	tls_lab_stop();
	return failed;
}
