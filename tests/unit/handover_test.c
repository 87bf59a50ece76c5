/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover_test.c - what one penstockd tells the next: messages and their
 *                   refusals, what a run remembers, what two know of a budget
 */
#include "tests/unit/rules_kit.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "proxy/handover_proto.h"
#include "proxy/handover_state.h"
#include "proxy/ledger.h"
#include "proxy/plug_check.h"
#include "proxy/quota.h"
#include "proxy/sandbox.h"
#include "resolver/dns_budget.h"
#include "resolver/name_map.h"
#include "resolver/name_pins.h"

#define RULES	"[allow a]\nhosts = *.example.com\nbytes_up = 1000\n" \
		"[limits]\nnames = 3\nbytes_up = 5000\n"

/* --- messages ------------------------------------------------------------------- */

static union handover_msg m, got;
static struct plug_why why;

static int parse(size_t n, size_t nfds)
{
	why.text[0] = '\0';
	return handover_parse(str_make((const char *)&m, n), nfds, &got,
			      &why);
}

static void assert_refused(size_t n, size_t nfds, const char *words)
{
	assert_int_equal(parse(n, nfds), -EPROTO);
	if (!strstr(why.text, words))
		fail_msg("'%s' does not say '%s'", why.text, words);
}

static size_t a_run(void)
{
	size_t n = handover_begin(HANDOVER_RUN, &m);

	m.run.generation = 1;
	m.run.open.fds = BIT(PLUG_FD_HTTP) | BIT(PLUG_FD_POLICY);
	memcpy(m.run.digest, "0123", 5);
	return n;
}

static void each_message_is_what_it_was(void **state)
{
	size_t n = a_run();

	(void)state;
	assert_int_equal(handover_run_fds(&m.run), 3);
	assert_int_equal(parse(n, 3), HANDOVER_RUN);
	assert_memory_equal(&got.run, &m.run, n);
	m.run.flags = HANDOVER_OWN_POLICY | HANDOVER_OWN_RECORDS;
	assert_int_equal(parse(n, 5), HANDOVER_RUN);
	n = handover_begin(HANDOVER_HELLO, &m);
	assert_int_equal(parse(n, 0), HANDOVER_HELLO);
	n = handover_begin(HANDOVER_STATE, &m);
	m.state.n = 100;
	assert_int_equal(parse(n + 100, 0), HANDOVER_STATE);
	n = handover_begin(HANDOVER_SOCKET, &m);
	m.socket.role = SANDBOX_HTTP;
	m.socket.at = (struct ip_endpoint){ ip_addr_v4(1), 3128 };
	assert_int_equal(parse(n, 1), HANDOVER_SOCKET);
	n = handover_begin(HANDOVER_OVER, &m);
	assert_int_equal(parse(n, 0), HANDOVER_OVER);
}

static void another_version_is_refused_with_the_mend(void **state)
{
	size_t n = handover_begin(HANDOVER_HELLO, &m);

	(void)state;
	m.head.version++;
	assert_refused(n, 0, "in version 2, this one in version 1");
	assert_refused(n, 0, "stop the service and start it");
	m.head.version--;
	m.head.magic++;
	assert_refused(n, 0, "not the language");
	assert_false(handover_speaks(str_make((const char *)&m, n)));
}

static void a_message_of_another_size_is_refused(void **state)
{
	size_t n = a_run();

	(void)state;
	for (size_t cut = 0; cut < n; cut++)
		assert_int_equal(parse(cut, 3), -EPROTO);
	assert_refused(n + 1, 3, "bytes is none");
	n = handover_begin(HANDOVER_STATE, &m);
	m.state.n = HANDOVER_STATE_MAX;
	assert_refused(n + 100, 0, "bytes is none");
	m.state.n = UINT32_MAX;
	assert_refused(sizeof(m.state), 0, "bytes is none");
}

static void descriptors_are_as_many_as_announced(void **state)
{
	size_t n = a_run();

	(void)state;
	for (size_t nfds = 0; nfds <= 16; nfds++)
		if (nfds != 3)
			assert_int_equal(parse(n, nfds), -EPROTO);
	n = handover_begin(HANDOVER_TAKE, &m);
	assert_refused(n, 1, "with 1 descriptors");
	n = handover_begin(HANDOVER_OFFER, &m);
	assert_refused(n, 1, "with 1 descriptors");
	assert_refused(n, 4, "with 4 descriptors");
}

static void what_is_out_of_bounds_is_refused(void **state)
{
	size_t n = a_run();

	(void)state;
	m.head.type = HANDOVER_TYPES;
	assert_refused(n, 3, "no message of type");
	a_run();
	m.run.flags = 1u << 7;
	assert_refused(n, 3, "not as it should be");
	a_run();
	m.run.generation = 0;
	assert_refused(n, 3, "not as it should be");
	a_run();
	memset(m.run.digest, 'x', sizeof(m.run.digest));
	assert_refused(n, 3, "not as it should be");
	n = handover_begin(HANDOVER_TAIL, &m);
	m.tail.pred = HANDOVER_PREDS_MAX + 1;
	assert_refused(n, 1, "not as it should be");
	m.tail.pred = 1;
	m.tail.n = sizeof(m.tail.cut) + 1;
	assert_refused(n, 1, "not as it should be");
	n = handover_begin(HANDOVER_SOCKET, &m);
	m.socket.role = SANDBOX_ROLES;
	assert_refused(n, 1, "not as it should be");
	n = handover_begin(HANDOVER_PART, &m);
	memset(m.part.name, 'a', sizeof(m.part.name));
	assert_refused(n, 0, "not as it should be");
	n = handover_begin(HANDOVER_USED, &m);
	assert_refused(n, 0, "not as it should be");
	m.about.run[0] = 'r';
	assert_int_equal(parse(n, 0), HANDOVER_USED);
	memset(m.about.rule, 'a', sizeof(m.about.rule));
	assert_refused(n, 0, "not as it should be");
	n = handover_begin(HANDOVER_FAILED, &m);
	memset(m.failed.text, 'a', sizeof(m.failed.text));
	assert_refused(n, 0, "not as it should be");
}

/* --- what a run remembers -------------------------------------------------------- */

struct run {
	struct ruleset *rules;
	struct handover_memory m;
};

static struct run run_new(void)
{
	struct run r = { .rules = compile_good(RULES) };

	assert_int_equal(name_map_new(1 << 20, &r.m.names), 0);
	assert_int_equal(name_pins_new(1 << 20, &r.m.pins), 0);
	assert_int_equal(dns_budget_new(r.rules, &r.m.budget), 0);
	assert_int_equal(quota_new(r.rules, NULL, &r.m.quota), 0);
	return r;
}

static void run_free(struct run *r)
{
	name_map_free(r->m.names);
	name_pins_free(r->m.pins);
	dns_budget_free(r->m.budget);
	quota_unref(r->m.quota);
	rules_unref(r->rules);
}

static struct ip_addr v4(const char *text)
{
	struct ip_addr a;

	assert_int_equal(ip_addr_parse(str_from(text), &a), 0);
	return a;
}

static void leave(struct run *r, const char *name, enum reason want)
{
	struct dns_budget_ask ask = {
		.name = str_from(name), .chosen = 1, .leaves = true,
	};

	assert_int_equal(dns_budget_charge(r->m.budget, &ask, 1000), want);
}

/* All of it from one to the other, cut into messages of @max. */
static void pass(struct run *from, struct run *to, size_t max)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT(HANDOVER_STATE_ALL_MAX);
	struct str rest;
	size_t n;

	assert_int_equal(handover_tell(&from->m, &all), 0);
	rest = buf_str(&all);
	while ((n = handover_cut(rest, max)) > 0) {
		assert_true(n <= max);
		assert_int_equal(handover_remember(&to->m,
						   str_make(rest.p, n)), 0);
		rest = str_make(rest.p + n, rest.n - n);
	}
	assert_int_equal(rest.n, 0);
}

static void names_keep_their_addresses(void **state)
{
	struct run a = run_new(), b = run_new();
	struct ip_addr was[300], now;
	char name[32];
	struct id q;
	struct str found;

	(void)state;
	id_new(&q);
	for (int i = 0; i < 300; i++) {
		assert_true(snprintf(name, sizeof(name), "n%d.example", i) >
			    0);
		assert_int_equal(name_map_give(a.m.names, str_from(name),
					       i % 2 ? IP_V4 : IP_V6, &q,
					       &was[i]), 0);
	}
	pass(&a, &b, 200);
	for (int i = 0; i < 300; i++) {
		assert_true(name_map_find(b.m.names, &was[i], &found, &q));
		assert_true(snprintf(name, sizeof(name), "n%d.example", i) >
			    0);
		assert_true(str_eq(found, str_from(name)));
	}
	/* A new one gets an address that nobody had. */
	assert_int_equal(name_map_give(b.m.names, STR("new.example"), IP_V4,
				       &q, &now), 0);
	assert_false(name_map_find(a.m.names, &now, &found, &q));
	run_free(&a);
	run_free(&b);
}

static void pins_stand_for_the_same_names(void **state)
{
	const struct ip_addr one = v4("192.0.2.1");
	struct name_pin *pin[NAME_PINS_NAMES_MAX];
	struct run a = run_new(), b = run_new();
	int64_t now = clock_mono_ms();
	struct id q1, q2, found;

	(void)state;
	id_new(&q1);
	id_new(&q2);
	for (int i = 0; i < 2; i++) {
		struct name_pins_answer answer = {
			i ? STR("b.example") : STR("a.example"), &one, 1, 60,
			i ? &q2 : &q1,
		};

		assert_int_equal(name_pins_give(a.m.pins, &answer, now), 0);
	}
	pass(&a, &b, HANDOVER_STATE_MAX);
	/* The one given last still comes first. */
	assert_int_equal(name_pins_at(b.m.pins, &one, now, pin), 2);
	assert_true(str_eq(name_pin_name(pin[0]), STR("b.example")));
	found = name_pin_question(pin[1]);
	assert_memory_equal(&found, &q1, sizeof(q1));
	run_free(&a);
	run_free(&b);
}

static void budgets_go_on(void **state)
{
	struct run a = run_new(), b = run_new();
	struct quota_flow f;
	size_t room;

	(void)state;
	leave(&a, "a.example.com", REASON_ALLOWED);
	leave(&a, "b.example.com", REASON_ALLOWED);
	assert_int_equal(quota_flow_begin(&f, a.m.quota, a.rules, 1),
			 REASON_ALLOWED);
	assert_int_equal(quota_take(&f, QUOTA_UP, 900, 0, &room),
			 REASON_ALLOWED);
	quota_settle(&f, QUOTA_UP, 900);
	pass(&a, &b, HANDOVER_STATE_MAX);
	/* A name that has left is known; of new ones there is one more. */
	leave(&b, "a.example.com", REASON_ALLOWED);
	leave(&b, "c.example.com", REASON_ALLOWED);
	leave(&b, "d.example.com", REASON_NAMES_EXCEEDED);
	assert_int_equal(atomic_load(&b.m.quota->used[QUOTA_UP]), 900);
	assert_int_equal(quota_flow_begin(&f, b.m.quota, b.rules, 1),
			 REASON_ALLOWED);
	assert_int_equal(quota_take(&f, QUOTA_UP, 500, 0, &room),
			 REASON_ALLOWED);
	assert_int_equal(room, 100);
	quota_settle(&f, QUOTA_UP, 100);
	run_free(&a);
	run_free(&b);
}

static void what_is_no_state_is_refused(void **state)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT(1 << 20);
	struct run a = run_new(), b = run_new();
	struct handover_memory none = { .names = NULL };
	struct ip_addr addr;
	struct id q;

	(void)state;
	id_new(&q);
	assert_int_equal(name_map_give(a.m.names, STR("a.example"), IP_V4, &q,
				       &addr), 0);
	assert_int_equal(handover_tell(&a.m, &all), 0);
	assert_int_equal(handover_remember(&none, buf_str(&all)), -EPROTO);
	for (size_t n = 1; n < 24; n++)
		assert_int_equal(handover_remember(&b.m, str_make(all.p, n)),
				 -EPROTO);
	all.p[0] = 77;			/* a type that there is not */
	assert_int_equal(handover_remember(&b.m, buf_str(&all)), -EPROTO);
	all.p[0] = 1;
	/* A name that DNS would not give out. */
	all.p[4 + sizeof(struct id) + 2] = 'A';
	assert_int_equal(handover_remember(&b.m, buf_str(&all)), -EPROTO);
	assert_int_equal(name_map_count(b.m.names), 0);
	run_free(&a);
	run_free(&b);
}

/* --- two processes, one budget ------------------------------------------------------- */

static int pass_on(void *arg, const char *rule,
		   const uint64_t used[QUOTA_WAYS])
{
	struct {
		struct ledger *ledger;
		struct quota *quota;
	} *to = arg;

	return ledger_note(to->ledger, to->quota, rule, used);
}

static void spend(struct run *r, size_t n)
{
	struct quota_flow f;
	size_t room;

	assert_int_equal(quota_flow_begin(&f, r->m.quota, r->rules, 1),
			 REASON_ALLOWED);
	assert_int_equal(quota_take(&f, QUOTA_UP, n, 0, &room),
			 REASON_ALLOWED);
	assert_int_equal(room, n);
	quota_settle(&f, QUOTA_UP, n);
}

static uint64_t spent(const struct run *r)
{
	return atomic_load(&r->m.quota->used[QUOTA_UP]);
}

static void what_either_uses_counts_for_both_once(void **state)
{
	struct run a = run_new(), b = run_new();
	struct ledger la, lb;
	struct {
		struct ledger *ledger;
		struct quota *quota;
	} to_a = { &la, a.m.quota }, to_b = { &lb, b.m.quota };

	(void)state;
	spend(&a, 100);
	pass(&a, &b, HANDOVER_STATE_MAX);
	ledger_init(&la);
	ledger_init(&lb);
	assert_int_equal(ledger_start(&la, a.m.quota), 0);
	assert_int_equal(ledger_start(&lb, b.m.quota), 0);
	spend(&a, 200);
	spend(&b, 300);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ledger_report(&la, a.m.quota, pass_on, &to_b),
				 0);
		assert_int_equal(ledger_report(&lb, b.m.quota, pass_on, &to_a),
				 0);
		assert_int_equal(spent(&a), 600);
		assert_int_equal(spent(&b), 600);
	}
	/* The rule's budget of 1000 too: 400 are left, wherever. */
	spend(&b, 250);
	assert_int_equal(ledger_report(&lb, b.m.quota, pass_on, &to_a), 0);
	spend(&a, 150);
	assert_int_equal(ledger_report(&la, a.m.quota, pass_on, &to_b), 0);
	assert_int_equal(spent(&b), 1000);
	ledger_done(&la);
	ledger_done(&lb);
	run_free(&a);
	run_free(&b);
}

static void connections_elsewhere_count_here(void **state)
{
	struct run r = run_new();

	(void)state;
	quota_note_connections(r.m.quota, 3);
	assert_int_equal(quota_connections(r.m.quota), 3);
	quota_note_connections(r.m.quota, -1);
	assert_int_equal(quota_connections(r.m.quota), 2);
	quota_note_connections(r.m.quota, -2);
	run_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_message_is_what_it_was),
		cmocka_unit_test(another_version_is_refused_with_the_mend),
		cmocka_unit_test(a_message_of_another_size_is_refused),
		cmocka_unit_test(descriptors_are_as_many_as_announced),
		cmocka_unit_test(what_is_out_of_bounds_is_refused),
		cmocka_unit_test(names_keep_their_addresses),
		cmocka_unit_test(pins_stand_for_the_same_names),
		cmocka_unit_test(budgets_go_on),
		cmocka_unit_test(what_is_no_state_is_refused),
		cmocka_unit_test(what_either_uses_counts_for_both_once),
		cmocka_unit_test(connections_elsewhere_count_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
