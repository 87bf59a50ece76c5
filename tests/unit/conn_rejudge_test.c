/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_rejudge_test.c - connections in each of their states, when the policy
 * is replaced under them (POL-06)
 *
 * Each cut has a control beside it: the same flow under a policy that still
 * allows it goes on, with all of its bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/conn.h"
#include "tests/unit/conn_kit.h"
#include "tests/unit/proxy_lab.h"

#define OK_200		"HTTP/1.1 200 OK\r\n\r\n"
#define ANSWER		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define ACCESS_DENIED	"\x15\x03\x01\x00\x02\x02\x31"

#define LAB	"addresses = 203.0.113.0/24 2001:db8:3::/48\nreason = lab\n"
#define NOTHING	"[policy]\nname = shut\n"
/* What kit_policy allows, under another name for the rule. */
#define SAME \
	"[policy]\nname = same\n" \
	"[allow anew]\nhosts = api.example.org both.example.org" \
	" hole.example.org\n" LAB \
	"[allow ssh-anew]\nhosts = ssh.example.org\nports = 22\n" \
	"protocol = ssh\n" LAB

/* --- helpers -------------------------------------------------------------------- */

/* A refusal to the end of its body. */
static void expect_refusal(int fd, const char *word)
{
	char got[4096], want[128];
	size_t n = 0;

	assert_true(snprintf(want, sizeof(want), "HTTP/1.1 403 %s\r\n",
			     word) > 0);
	do {
		assert_true(n < sizeof(got) - 1);
		lab_recv(BASE, fd, got + n, 1);
		got[++n] = '\0';
	} while (!strstr(got, "}\n"));
	if (strncmp(got, want, strlen(want)))
		fail_msg("not '%s' but:\n%s", want, got);
}

static void expect_counts(struct conn_rejudged got, unsigned kept,
			  unsigned ended)
{
	assert_int_equal(got.kept, kept);
	assert_int_equal(got.ended, ended);
}

/* A TLS tunnel by CONNECT to @authority, at @door; returns the client's end. */
static int tunnel(const char *authority, const char *sni, int door,
		  int *ret_origin)
{
	int client = kit_connect_to(authority);
	struct str hello = kit_hello(sni);

	lab_expect(BASE, client, OK_200);
	lab_send(BASE, client, hello);
	*ret_origin = kit_accept_turning(door);
	kit_expect_bytes(*ret_origin, hello);
	return client;
}

static void expect_alive(int client, int origin)
{
	lab_send(BASE, client, STR("up"));
	lab_expect(BASE, origin, "up");
	lab_send(BASE, origin, STR("down"));
	lab_expect(BASE, client, "down");
}

static void expect_cut(int client, int origin)
{
	lab_expect_reset(BASE, client);
	lab_expect_reset(BASE, origin);
	close(client);
	close(origin);
}

/* --- tunnels ---------------------------------------------------------------------- */

static void a_tunnel_whose_rule_is_gone_is_reset_POL_06(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	int client = tunnel("api.example.org:443", "api.example.org", door,
			    &origin);

	(void)state;
	expect_counts(kit_set_policy(NOTHING), 0, 1);
	expect_cut(client, origin);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_POLICY_RELOAD, "api.example.org");
	assert_true(kit_record(1)->bytes_up > 0);
	assert_int_equal(kit_records(), 2);
	close(door);
}

static void a_tunnel_that_is_still_allowed_goes_on_under_its_new_rule(
	void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	int client = tunnel("api.example.org:443", "api.example.org", door,
			    &origin);

	(void)state;
	expect_counts(kit_set_policy(SAME), 1, 0);
	expect_alive(client, origin);
	expect_counts(kit_set_policy(kit_policy), 1, 0);
	expect_counts(kit_set_policy(SAME), 1, 0);
	expect_alive(client, origin);
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, "api.example.org");
	assert_string_equal(kit_record(1)->rule, "anew");
	close(door);
}

static void one_of_many_is_cut_and_the_rest_never_notice(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), a[2], b[2];

	(void)state;
	a[0] = tunnel("api.example.org:443", "api.example.org", door, &a[1]);
	b[0] = tunnel("both.example.org:443", "both.example.org", door,
		      &b[1]);
	expect_counts(kit_set_policy(SAME "[deny one]\n"
				     "hosts = both.example.org\n"), 1, 1);
	expect_cut(b[0], b[1]);
	expect_alive(a[0], a[1]);
	kit_expect_record(2, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_POLICY_RELOAD, "both.example.org");
	assert_string_equal(kit_record(2)->rule, "one");
	close(a[0]);
	lab_expect_fin(BASE, a[1]);
	close(a[1]);
	close(door);
}

static void the_address_that_was_dialled_is_judged_again_too(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	int client = tunnel("api.example.org:443", "api.example.org", door,
			    &origin);

	(void)state;
	expect_counts(kit_set_policy(SAME "[deny at]\naddresses = "
				     KIT_OTHER "\n"), 1, 0);
	expect_alive(client, origin);
	expect_counts(kit_set_policy(SAME "[deny at]\naddresses = "
				     KIT_ORIGIN "\n"), 0, 1);
	expect_cut(client, origin);
	close(door);
}

static void a_server_name_beside_a_literal_is_judged_again_too(void **state)
{
	static const char literal[] = "[policy]\nname = l\n[allow l]\n"
		"addresses = " KIT_LITERAL "\nports = 443\n"
		"protocol = https\nreason = lab\n";
	int door = lab_listen(KIT_LITERAL, 443, NULL), a[2], b[2];

	(void)state;
	a[0] = tunnel(KIT_LITERAL ":443", NULL, door, &a[1]);
	b[0] = tunnel(KIT_LITERAL ":443", "api.example.org", door, &b[1]);
	/* Nothing allows the name any more; the literal needs none. */
	expect_counts(kit_set_policy(literal), 1, 1);
	expect_cut(b[0], b[1]);
	expect_alive(a[0], a[1]);
	expect_counts(kit_set_policy(NOTHING), 0, 1);
	expect_cut(a[0], a[1]);
	close(door);
}

static void bytes_that_nobody_looked_at_are_not_what_a_stricter_rule_wants(
	void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), origin;
	int client = kit_transparent(kit_synthetic("ssh.example.org"), 22);

	(void)state;
	origin = kit_accept_turning(door);
	lab_send(BASE, origin, STR("SSH-2.0-x\r\n"));
	lab_expect(BASE, client, "SSH-2.0-x\r\n");
	expect_counts(kit_set_policy(SAME), 1, 0);
	expect_alive(client, origin);
	expect_counts(kit_set_policy("[policy]\nname = tls\n[allow t]\n"
				     "hosts = ssh.example.org\nports = 22\n"
				     "protocol = https\n" LAB), 0, 1);
	expect_cut(client, origin);
	close(door);
}

static void checked_bytes_satisfy_a_rule_that_leaves_them_alone(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	int client = tunnel("api.example.org:443", "api.example.org", door,
			    &origin);

	(void)state;
	expect_counts(kit_set_policy("[policy]\nname = tcp\n[allow t]\n"
				     "hosts = api.example.org\nports = 443\n"
				     "protocol = tcp\n" LAB), 1, 0);
	expect_alive(client, origin);
	expect_counts(kit_set_policy("[policy]\nname = http\n[allow t]\n"
				     "hosts = api.example.org\nports = 443\n"
				     "protocol = http\n" LAB), 0, 1);
	expect_cut(client, origin);
	close(door);
}

static void what_a_policy_would_deny_and_only_observes_goes_on(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	int client = tunnel("api.example.org:443", "api.example.org", door,
			    &origin);

	(void)state;
	/* Address classes hold in observe mode too, so a rule opens the lab. */
	expect_counts(kit_set_policy("[policy]\nname = o\nmode = observe\n"
				     "[allow a]\nhosts = api.example.org\n"
				     LAB "[deny d]\n"
				     "hosts = api.example.org\n"), 1, 0);
	expect_alive(client, origin);
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_WOULD_DENY,
			  REASON_CLIENT_CLOSED, "api.example.org");
	close(door);
}

/* --- before it is open ------------------------------------------------------------ */

static void a_head_that_is_coming_in_is_judged_by_the_policy_at_its_end(
	void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), client = kit_explicit();

	(void)state;
	lab_send(BASE, client, STR("CONNECT api.example.org:443 HTTP/1.1\r\n"));
	lab_turn(BASE);
	expect_counts(kit_set_policy(NOTHING), 0, 0);
	lab_send(BASE, client, STR("Host: api.example.org:443\r\n\r\n"));
	expect_refusal(client, "host_not_allowed");
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "api.example.org");
	assert_false(kit_was_dialled(door));
	close(client);
	close(door);
}

static void a_hello_that_is_coming_in_is_judged_by_the_policy_at_its_end(
	void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), client, origin;
	struct str hello = kit_hello("api.example.org");

	(void)state;
	client = kit_transparent(kit_synthetic("api.example.org"), 443);
	lab_send(BASE, client, str_make(hello.p, 20));
	lab_turn(BASE);
	expect_counts(kit_set_policy(SAME), 0, 0);
	lab_send(BASE, client, str_make(hello.p + 20, hello.n - 20));
	origin = kit_accept_turning(door);
	kit_expect_bytes(origin, hello);
	assert_string_equal(kit_record(0)->rule, "anew");
	close(client);
	close(origin);
	kit_record(1);

	client = kit_transparent(kit_synthetic("api.example.org"), 443);
	lab_send(BASE, client, str_make(hello.p, 20));
	lab_turn(BASE);
	expect_counts(kit_set_policy(NOTHING), 0, 0);
	kit_expect_record(2, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "api.example.org");
	kit_expect_bytes(client, str_make(ACCESS_DENIED, 7));
	assert_false(kit_was_dialled(door));
	close(client);
	close(door);
}

/* Nothing was said yet, and under the new rule nothing has to be. */
static void a_hello_that_nobody_wants_any_more_is_not_waited_for(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), client, origin;

	(void)state;
	client = kit_transparent(kit_synthetic("api.example.org"), 443);
	lab_turn(BASE);
	assert_false(kit_was_dialled(door));
	expect_counts(kit_set_policy("[policy]\nname = tcp\n[allow t]\n"
				     "hosts = api.example.org\nports = 443\n"
				     "protocol = tcp\n" LAB), 0, 0);
	origin = kit_accept_turning(door);
	lab_send(BASE, origin, STR("hello"));
	lab_expect(BASE, client, "hello");
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);

	client = kit_transparent(kit_synthetic("both.example.org"), 443);
	lab_turn(BASE);
	close(client);
	close(door);
}

static void an_address_that_needed_a_name_is_begun_anew(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), client;
	struct str hello = kit_hello("api.example.org");

	(void)state;
	/* Denied for its class: only its first bytes can name it. */
	client = kit_transparent(KIT_OTHER, 443);
	lab_turn(BASE);
	kit_set_policy(NOTHING);
	lab_send(BASE, client, hello);
	kit_expect_bytes(client, str_make(ACCESS_DENIED, 7));
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "api.example.org");
	assert_false(kit_was_dialled(door));
	close(client);

	/* And now one that is refused as soon as it is a deny's. */
	client = kit_transparent(KIT_OTHER, 443);
	lab_turn(BASE);
	kit_set_policy("[policy]\nname = d\n[deny d]\naddresses = "
		       KIT_OTHER "\n");
	kit_expect_record(1, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_ADDRESS_DENIED, "");
	close(client);
	close(door);
}

static void the_first_bytes_in_a_connect_are_judged_by_the_new_rule(
	void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), client, origin;
	struct str hello = kit_hello("api.example.org");

	(void)state;
	client = kit_connect_to("api.example.org:443");
	lab_expect(BASE, client, OK_200);
	origin = lab_accept(door);
	expect_counts(kit_set_policy(SAME), 1, 0);
	lab_send(BASE, client, hello);
	kit_expect_bytes(origin, hello);
	expect_alive(client, origin);
	close(client);
	close(origin);
	kit_record(1);

	client = kit_connect_to("api.example.org:443");
	lab_expect(BASE, client, OK_200);
	origin = lab_accept(door);
	expect_counts(kit_set_policy(NOTHING), 0, 1);
	lab_expect_reset(BASE, origin);
	close(origin);
	lab_send(BASE, client, hello);
	kit_expect_bytes(client, str_make(ACCESS_DENIED, 7));
	kit_expect_record(3, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_POLICY_RELOAD, "api.example.org");
	close(client);
	close(door);
}

/* A listener whose queue is full swallows what arrives. */
static int full_queue(uint16_t port, int *ret_plug)
{
	int door = lab_listen(KIT_HOLE, port, NULL);

	assert_int_equal(listen(door, 0), 0);
	*ret_plug = lab_connect(KIT_HOLE, port);
	lab_wait_readable(BASE, door);
	return door;
}

static void a_dial_in_flight_is_given_up_or_goes_on(void **state)
{
	int plug, door = full_queue(443, &plug), client;

	(void)state;
	client = kit_connect_to("hole.example.org:443");
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "hole.example.org");
	expect_counts(kit_set_policy(SAME), 1, 0);
	lab_turn(BASE);
	assert_int_equal(kit_records(), 1);
	expect_counts(kit_set_policy(NOTHING), 0, 1);
	expect_refusal(client, "policy_reload");
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_POLICY_RELOAD, "hole.example.org");
	close(client);

	/* The address alone can be what is not allowed any more. */
	kit_set_policy(SAME);
	client = kit_connect_to("hole.example.org:443");
	kit_record(2);
	kit_set_policy(SAME "[deny at]\naddresses = " KIT_HOLE "\n");
	expect_refusal(client, "address_denied");
	kit_expect_record(3, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_ADDRESS_DENIED, "hole.example.org");
	close(client);
	close(plug);
	close(door);
}

static void a_dial_that_goes_on_ends_in_what_the_new_rule_wants(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), client, origin;

	(void)state;
	/* Connected in the kernel, and not looked at by the loop yet. */
	client = kit_explicit();
	lab_send(BASE, client, STR("CONNECT api.example.org:443 HTTP/1.1\r\n"
				   "\r\n"));
	kit_record(0);
	expect_counts(kit_set_policy("[policy]\nname = tcp\n[allow t]\n"
				     "hosts = api.example.org\nports = 443\n"
				     "protocol = tcp\n" LAB), 1, 0);
	lab_expect(BASE, client, OK_200);
	origin = kit_accept_turning(door);
	/* No hello is asked for. */
	lab_send(BASE, origin, STR("first"));
	lab_expect(BASE, client, "first");
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	close(door);
}

/* --- HTTP -------------------------------------------------------------------------- */

static int exchange(int door, int *ret_origin)
{
	int client = kit_explicit();

	kit_request(client, "http://api.example.org/", "api.example.org");
	*ret_origin = kit_accept_turning(door);
	kit_expect_head(*ret_origin, "GET / HTTP/1.1\r\n");
	return client;
}

static void answer(int client, int origin)
{
	lab_send(BASE, origin, STR(ANSWER));
	kit_expect_head(client, "HTTP/1.1 200 OK\r\n");
	lab_expect(BASE, client, "hello");
}

static void the_next_request_of_a_connection_is_judged_by_the_new_policy(
	void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), origin;
	int client = exchange(door, &origin);

	(void)state;
	answer(client, origin);
	expect_counts(kit_set_policy(SAME), 1, 0);
	/* On the same connections. */
	kit_request(client, "http://api.example.org/2", "api.example.org");
	kit_expect_head(origin, "GET /2 HTTP/1.1\r\n");
	answer(client, origin);

	expect_counts(kit_set_policy(NOTHING), 0, 1);
	lab_expect_fin(BASE, origin);
	close(origin);
	kit_expect_record(3, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_POLICY_RELOAD, "api.example.org");
	kit_request(client, "http://api.example.org/3", "api.example.org");
	expect_refusal(client, "host_not_allowed");
	expect_counts(kit_set_policy(SAME), 0, 0);
	kit_request(client, "http://api.example.org/4", "api.example.org");
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET /4 HTTP/1.1\r\n");
	answer(client, origin);
	close(client);
	close(origin);
	close(door);
}

static void a_request_whose_answer_is_not_there_yet_is_refused_in_words(
	void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), origin;
	int client = exchange(door, &origin);

	(void)state;
	expect_counts(kit_set_policy(NOTHING), 0, 1);
	expect_refusal(client, "policy_reload");
	lab_expect_fin(BASE, origin);
	close(origin);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_POLICY_RELOAD, "api.example.org");
	kit_expect_record(2, RECORD_HTTP, RECORD_DENY, REASON_POLICY_RELOAD,
			  "api.example.org");
	/* The connection is good for the next one. */
	kit_set_policy(SAME);
	kit_request(client, "http://api.example.org/", "api.example.org");
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET / HTTP/1.1\r\n");
	answer(client, origin);
	close(client);
	close(origin);
	close(door);
}

static void an_answer_that_has_begun_is_broken_off(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), origin;
	int client = exchange(door, &origin);

	(void)state;
	lab_send(BASE, origin, STR("HTTP/1.1 200 OK\r\n"
				   "Content-Length: 100\r\n\r\nhel"));
	kit_expect_head(client, "HTTP/1.1 200 OK\r\n");
	lab_expect(BASE, client, "hel");
	expect_counts(kit_set_policy(NOTHING), 0, 1);
	/* Short of 97 bytes: nobody takes it for the whole. */
	lab_expect_fin(BASE, client);
	lab_expect_fin(BASE, origin);
	close(client);
	close(origin);
	kit_expect_record(1, RECORD_HTTP, RECORD_DENY, REASON_POLICY_RELOAD,
			  "api.example.org");
	kit_expect_record(2, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_POLICY_RELOAD, "api.example.org");
	close(door);
}

static void the_dial_of_a_request_is_given_up(void **state)
{
	int plug, door = full_queue(80, &plug), client = kit_explicit();

	(void)state;
	kit_request(client, "http://hole.example.org/", "hole.example.org");
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "hole.example.org");
	expect_counts(kit_set_policy(SAME), 1, 0);
	expect_counts(kit_set_policy(NOTHING), 0, 1);
	expect_refusal(client, "policy_reload");
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_POLICY_RELOAD, "hole.example.org");
	close(client);
	close(plug);
	close(door);
}

static void a_connect_for_http_without_a_request_loses_its_origin(
	void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL), origin, client;

	(void)state;
	client = kit_connect_to("api.example.org:80");
	lab_expect(BASE, client, OK_200);
	origin = lab_accept(door);
	expect_counts(kit_set_policy(SAME), 1, 0);
	expect_counts(kit_set_policy(NOTHING), 0, 1);
	lab_expect_reset(BASE, origin);
	close(origin);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_POLICY_RELOAD, "api.example.org");
	kit_request(client, "/", "api.example.org");
	expect_refusal(client, "host_not_allowed");
	close(client);
	close(door);
}

/* --- and those that are over ------------------------------------------------------- */

static void who_was_refused_hears_of_the_policy_that_did_it(void **state)
{
	int client = kit_transparent(kit_synthetic("evil.example.org"), 80);

	(void)state;
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "evil.example.org");
	expect_counts(kit_set_policy("[policy]\nname = late\n[allow e]\n"
				     "hosts = evil.example.org\n"), 0, 0);
	kit_request(client, "/", "evil.example.org");
	expect_refusal(client, "host_not_allowed");
	assert_int_equal(kit_records(), 1);
	close(client);
}

#define rejudge_unit(f)	cmocka_unit_test_setup_teardown(f, kit_setup, \
							kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		rejudge_unit(a_tunnel_whose_rule_is_gone_is_reset_POL_06),
		rejudge_unit(
		 a_tunnel_that_is_still_allowed_goes_on_under_its_new_rule),
		rejudge_unit(one_of_many_is_cut_and_the_rest_never_notice),
		rejudge_unit(the_address_that_was_dialled_is_judged_again_too),
		rejudge_unit(
		 a_server_name_beside_a_literal_is_judged_again_too),
		rejudge_unit(
	bytes_that_nobody_looked_at_are_not_what_a_stricter_rule_wants),
		rejudge_unit(checked_bytes_satisfy_a_rule_that_leaves_them_alone),
		rejudge_unit(what_a_policy_would_deny_and_only_observes_goes_on),
		rejudge_unit(
	a_head_that_is_coming_in_is_judged_by_the_policy_at_its_end),
		rejudge_unit(
	a_hello_that_is_coming_in_is_judged_by_the_policy_at_its_end),
		rejudge_unit(a_hello_that_nobody_wants_any_more_is_not_waited_for),
		rejudge_unit(an_address_that_needed_a_name_is_begun_anew),
		rejudge_unit(
	the_first_bytes_in_a_connect_are_judged_by_the_new_rule),
		rejudge_unit(a_dial_in_flight_is_given_up_or_goes_on),
		rejudge_unit(a_dial_that_goes_on_ends_in_what_the_new_rule_wants),
		rejudge_unit(
	the_next_request_of_a_connection_is_judged_by_the_new_policy),
		rejudge_unit(
	a_request_whose_answer_is_not_there_yet_is_refused_in_words),
		rejudge_unit(an_answer_that_has_begun_is_broken_off),
		rejudge_unit(the_dial_of_a_request_is_given_up),
		rejudge_unit(
		 a_connect_for_http_without_a_request_loses_its_origin),
		rejudge_unit(who_was_refused_hears_of_the_policy_that_did_it),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
