/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_parent_test.c - flows that go through a parent proxy
 *
 * The parents are the test: it hears what they are asked, and answers well, badly
 * or in pieces.  Names that a parent is to look up are in no table of the kit, so
 * that a lookup of them fails the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/parents.h"
#include "tests/unit/conn_kit.h"
#include "tests/unit/proxy_lab.h"

#define OK_200		"HTTP/1.1 200 OK\r\n\r\n"
#define OPEN		"HTTP/1.1 200 Connection established\r\n\r\n"
#define PARENT_AT	"127.0.0.1"
#define PARENT_PORT	3199

/* Of each way that a flow may go. */
#define RULES(parent) \
	"[policy]\nname = lab\n" \
	"[defaults]\nparent = " parent "\n" \
	"[allow web]\n" \
	"hosts = api.example.org both.example.org web.example.org\n" \
	"addresses = 203.0.113.0/24 2001:db8:3::/48\n" \
	"reason = lab origins\n" \
	"[allow ssh]\nhosts = ssh.example.org\nports = 22\n" \
	"protocol = ssh\naddresses = 203.0.113.0/24\nreason = lab\n" \
	"[allow far]\nhosts = far.example.org inside.example.org\n" \
	"[allow pinned]\nhosts = pinned.example.org\n" \
	"addresses = 203.0.113.0/24\nreason = lab\n" \
	"[allow literal]\naddresses = 203.0.113.40\nports = 443\n" \
	"protocol = https\nreason = lab\n"

static struct parents parents;
static struct parent *corp, *there;
static int door;		/* where the parents listen */

static struct parent *add(const char *name, const char *url)
{
	struct parent *p = NULL;
	const char *why;

	assert_int_equal(parents_add(&parents, str_from(name), &p, &why), 0);
	assert_int_equal(parent_set_url(p, str_from(url), &why), 0);
	return p;
}

static int setup(void **state)
{
	int err = kit_setup(state);

	corp = add("corp", "http://127.0.0.1:3199");
	there = add("there", "http://127.0.0.1:3199");
	there->there = true;
	add("socks", "socks5://127.0.0.1:3199");
	kit.worker.parents = &parents;
	kit_set_policy(RULES("corp"));
	door = lab_listen(PARENT_AT, PARENT_PORT, NULL);
	return err;
}

static int teardown(void **state)
{
	close(door);
	parents_done(&parents);
	return kit_teardown(state);
}

/* What a parent of HTTP is asked for by a CONNECT to @authority. */
static void hears_connect(int parent, const char *authority)
{
	char want[256];
	int n = snprintf(want, sizeof(want), "CONNECT %s HTTP/1.1\r\n"
			 "Host: %s\r\n\r\n", authority, authority);

	assert_true(n > 0 && (size_t)n < sizeof(want));
	lab_expect(BASE, parent, want);
}

static void expect_way(size_t record, const char *parent, const char *resolved,
		       int status)
{
	const struct record *r = kit_record(record);

	if (!parent) {
		assert_null(r->parent);
		return;
	}
	assert_string_equal(r->parent, parent);
	assert_string_equal(r->resolved, resolved);
	assert_int_equal(r->parent_status, status);
}

/* The answer is a refusal with @reason, and has nothing of @secret. */
static void expect_refused(int client, const char *status, const char *reason,
			   const char *secret)
{
	char text[8192];
	size_t n = lab_recv_all(BASE, client, text, sizeof(text) - 1);

	text[n] = '\0';
	if (!strstr(text, status) || !strstr(text, reason) ||
	    (secret && strstr(text, secret)))
		fail_msg("%s %s: %s", status, reason, text);
	close(client);
}

/* A TLS tunnel to api.example.org, up to the hello at the parent. */
static int tunnel(const char *asked, int *ret_parent)
{
	int client = kit_connect_to("api.example.org:443");
	struct str hello = kit_hello("api.example.org");

	*ret_parent = kit_accept_turning(door);
	hears_connect(*ret_parent, asked);
	lab_send(BASE, *ret_parent, STR(OPEN));
	lab_expect(BASE, client, OK_200);
	lab_send(BASE, client, hello);
	kit_expect_bytes(*ret_parent, hello);
	return client;
}

/* --- resolved here ----------------------------------------------------------- */

static void the_parent_is_asked_for_the_address_that_was_judged(void **state)
{
	int parent, client = tunnel("203.0.113.10:443", &parent);

	(void)state;
	lab_send(BASE, parent, STR("down"));
	lab_expect(BASE, client, "down");
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	expect_way(0, "corp", "here", 0);
	assert_int_equal(kit_record(0)->dst.addr.b[3], 10);
	close(client);
	close(parent);
	kit_record(1);
	expect_way(1, "corp", "here", 0);
}

/* TUN-04 of the other side: what stands behind the 200 is the server's. */
static void a_server_that_speaks_first_is_heard_whole(void **state)
{
	static const char answer[] = OPEN "SSH-2.0-x\r\n";
	int client, parent;

	(void)state;
	for (size_t cut = 0; cut < sizeof(answer) - 1; cut += 7) {
		client = kit_transparent(kit_synthetic("ssh.example.org"), 22);
		parent = kit_accept_turning(door);
		hears_connect(parent, "203.0.113.10:22");
		lab_send(BASE, parent, str_make(answer, cut));
		lab_turn(BASE);
		lab_send(BASE, parent, str_make(answer + cut,
						sizeof(answer) - 1 - cut));
		lab_expect(BASE, client, "SSH-2.0-x\r\n");
		lab_send(BASE, client, STR("SSH-2.0-y\r\n"));
		lab_expect(BASE, parent, "SSH-2.0-y\r\n");
		close(client);
		close(parent);
		lab_turn(BASE);
	}
}

static void a_socks_parent_is_asked_in_its_own_words(void **state)
{
	int client, parent;

	(void)state;
	kit_set_policy(RULES("socks"));
	client = kit_transparent(kit_synthetic("ssh.example.org"), 22);
	parent = kit_accept_turning(door);
	kit_expect_bytes(parent, str_make("\x05\x01\x00", 3));
	lab_send(BASE, parent, str_make("\x05\x00", 2));
	kit_expect_bytes(parent, str_make("\x05\x01\x00\x01\xcb\x00\x71\x0a"
					  "\x00\x16", 10));
	lab_send(BASE, parent, str_make("\x05\x00\x00\x01\0\0\0\0\0\0SSH", 13));
	lab_expect(BASE, client, "SSH");
	expect_way(0, "socks", "here", 0);
	close(client);
	close(parent);
}

static void a_parent_that_says_no_to_one_address_is_asked_for_the_next(
	void **state)
{
	int client = kit_connect_to("both.example.org:443");
	int parent = kit_accept_turning(door), second;

	(void)state;
	hears_connect(parent, "[2001:db8:3::10]:443");
	lab_send(BASE, parent, STR("HTTP/1.1 503 No IPv6 here\r\n\r\n"));
	second = kit_accept_turning(door);
	hears_connect(second, "203.0.113.10:443");
	lab_send(BASE, second, STR(OPEN));
	lab_expect(BASE, client, OK_200);
	close(client);
	close(parent);
	close(second);
}

static void addresses_are_judged_before_any_parent_is_asked_ADDR_10(
	void **state)
{
	int client = kit_connect_to("inside.example.org:443");

	(void)state;
	expect_refused(client, " 403 ", "address_private", NULL);
	assert_false(kit_was_dialled(door));
	expect_way(0, NULL, NULL, 0);
}

/* That the operator has a proxy there opens it for nobody. */
static void the_parent_itself_is_no_destination(void **state)
{
	int client = kit_connect_to("127.0.0.1:3199");

	(void)state;
	expect_refused(client, " 403 ", "address_loopback", NULL);
	assert_false(kit_was_dialled(door));
}

static void what_is_bypassed_goes_straight_there(void **state)
{
	int origin = lab_listen(KIT_ORIGIN, 443, NULL), client;
	const char *why;

	(void)state;
	assert_int_equal(parent_add_bypass(corp, STR("203.0.113.0/28"), &why),
			 0);
	client = kit_connect_to("api.example.org:443");
	lab_expect(BASE, client, OK_200);
	assert_true(kit_was_dialled(origin));
	assert_false(kit_was_dialled(door));
	expect_way(0, NULL, NULL, 0);
	close(client);
	close(origin);
}

/* --- resolved there ---------------------------------------------------------- */

static void a_name_goes_to_the_parent_and_to_no_resolver(void **state)
{
	int client, parent;

	(void)state;
	kit_set_policy(RULES("there"));
	client = kit_connect_to("far.example.org:443");
	parent = kit_accept_turning(door);
	hears_connect(parent, "far.example.org:443");
	lab_send(BASE, parent, STR(OPEN));
	lab_expect(BASE, client, OK_200);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "far.example.org");
	expect_way(0, "there", "parent", 0);
	assert_int_equal(kit_record(0)->dst.addr.family, IP_NONE);
	close(client);
	close(parent);
}

static void a_rule_with_addresses_permits_no_name_that_is_looked_up_there(
	void **state)
{
	int client;

	(void)state;
	kit_set_policy(RULES("there"));
	client = kit_connect_to("pinned.example.org:443");
	expect_refused(client, " 403 ", "address_not_allowed", NULL);
	assert_false(kit_was_dialled(door));
}

static void literals_are_judged_by_class_all_the_same(void **state)
{
	int client, parent;

	(void)state;
	kit_set_policy(RULES("there"));
	client = kit_connect_to("10.0.0.5:443");
	expect_refused(client, " 403 ", "address_private", NULL);
	client = kit_connect_to("169.254.169.254:80");
	expect_refused(client, " 403 ", "address_metadata", NULL);
	assert_false(kit_was_dialled(door));
	client = kit_connect_to("203.0.113.40:443");
	parent = kit_accept_turning(door);
	hears_connect(parent, "203.0.113.40:443");
	expect_way(2, "there", "here", 0);
	close(parent);
	close(client);
	while (kit_records() < 4)
		lab_turn(BASE);
}

/* What is told to a parent's resolver is told to the world. */
static void a_name_over_the_budget_does_not_leave(void **state)
{
	int client;

	(void)state;
	kit_set_policy(RULES("there"));
	kit.charge = REASON_NAMES_EXCEEDED;
	client = kit_connect_to("far.example.org:443");
	expect_refused(client, " 429 ", "names_exceeded", NULL);
	assert_false(kit_was_dialled(door));
}

/* --- a parent that is not well ------------------------------------------------- */

static void told(const char *answer, const char *status, const char *reason,
		 int number)
{
	size_t record = kit_records();
	int client = kit_connect_to("api.example.org:443");
	int parent = kit_accept_turning(door);

	hears_connect(parent, "203.0.113.10:443");
	lab_send(BASE, parent, str_from(answer));
	(void)!shutdown(parent, SHUT_WR);
	expect_refused(client, status, reason, "SECRET");
	while (kit_records() < record + 2)
		lab_turn(BASE);
	assert_int_equal(kit_record(record + 1)->act, RECORD_ERROR);
	expect_way(record + 1, "corp", "here", number);
	close(parent);
}

/* An outage, never policy, and never the parent's own words. */
static void each_failure_of_the_parent_has_its_reason(void **state)
{
	(void)state;
	told("HTTP/1.1 407 SECRET\r\nProxy-Authenticate: Basic "
	     "realm=\"SECRET\"\r\n\r\nSECRET", " 502 ", "parent_auth_failed",
	     407);
	told("HTTP/1.1 403 SECRET\r\n\r\n<b>SECRET</b>", " 502 ",
	     "parent_refused", 403);
	told("HTTP/1.1 504 SECRET\r\n\r\n", " 504 ", "parent_timeout", 504);
	told("SECRET\r\n\r\n", " 502 ", "parent_protocol", 0);
	told("HTTP/1.1 200 OK\r\nSECRET", " 502 ", "parent_unreachable", 0);
	told("", " 502 ", "parent_unreachable", 0);
}

static void a_head_without_an_end_is_cut_off(void **state)
{
	int client = kit_connect_to("api.example.org:443");
	int parent = kit_accept_turning(door);
	char line[256] = "X: ";

	(void)state;
	hears_connect(parent, "203.0.113.10:443");
	lab_send(BASE, parent, STR("HTTP/1.1 200 OK\r\n"));
	memset(line + 3, 'a', sizeof(line) - 5);
	memcpy(line + sizeof(line) - 2, "\r\n", 2);
	for (size_t n = 0; n < PARENT_HEAD_MAX; n += sizeof(line))
		lab_send(BASE, parent, str_make(line, sizeof(line)));
	expect_refused(client, " 502 ", "parent_protocol", NULL);
	close(parent);
}

static void a_parent_that_is_not_there_is_an_outage(void **state)
{
	int client;

	(void)state;
	close(door);
	client = kit_connect_to("api.example.org:443");
	expect_refused(client, " 502 ", "parent_unreachable", NULL);
	door = lab_listen(PARENT_AT, PARENT_PORT, NULL);
}

/* --- another policy ------------------------------------------------------------ */

static void a_flow_ends_when_its_way_is_no_longer_the_policys(void **state)
{
	struct conn_rejudged what;
	int parent, client = tunnel("203.0.113.10:443", &parent);

	(void)state;
	what = kit_set_policy(RULES("corp"));
	assert_int_equal(what.kept, 1);
	lab_send(BASE, parent, STR("down"));
	lab_expect(BASE, client, "down");
	what = kit_set_policy(RULES("none"));
	assert_int_equal(what.ended, 1);
	lab_expect_reset(BASE, client);
	lab_expect_reset(BASE, parent);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_POLICY_RELOAD, "api.example.org");
	close(client);
	close(parent);
}

static void a_dial_under_way_is_given_up_with_its_way(void **state)
{
	int client = kit_connect_to("api.example.org:443");
	int parent = kit_accept_turning(door);

	(void)state;
	hears_connect(parent, "203.0.113.10:443");
	kit_set_policy(RULES("none"));
	lab_expect_fin(BASE, parent);
	expect_refused(client, " 403 ", "policy_reload", NULL);
	close(parent);
}

static void a_name_that_was_looked_up_there_is_judged_so_again(void **state)
{
	int client, parent;

	(void)state;
	kit_set_policy(RULES("there"));
	client = kit_connect_to("far.example.org:443");
	parent = kit_accept_turning(door);
	hears_connect(parent, "far.example.org:443");
	lab_send(BASE, parent, STR(OPEN));
	lab_expect(BASE, client, OK_200);
	lab_send(BASE, client, kit_hello("far.example.org"));
	kit_expect_bytes(parent, kit_hello("far.example.org"));
	assert_int_equal(kit_set_policy(RULES("there")).kept, 1);
	assert_int_equal(kit_set_policy(RULES("there")
					"[deny range]\n"
					"addresses = 198.51.100.0/24\n").ended,
			 1);
	lab_expect_reset(BASE, client);
	close(client);
	close(parent);
}

/* --- plain HTTP ---------------------------------------------------------------- */

static int request(const char *host)
{
	char text[512];
	int client = kit_explicit();
	int n = snprintf(text, sizeof(text), "GET http://%s/a?b HTTP/1.1\r\n"
			 "Host: %s\r\nProxy-Authorization: Basic eDp5\r\n\r\n",
			 host, host);

	assert_true(n > 0 && (size_t)n < sizeof(text));
	lab_send(BASE, client, str_make(text, (size_t)n));
	return client;
}

/* HTTP-14: the client's credentials go nowhere, ours to the parent alone. */
static void plain_http_is_asked_of_the_parent_whole(void **state)
{
	const char *why;
	int client, parent;

	(void)state;
	there->absolute = true;
	assert_int_equal(parent_set_login(there, STR("user:pass"), &why), 0);
	kit_set_policy(RULES("there"));
	client = request("far.example.org");
	parent = kit_accept_turning(door);
	lab_expect(BASE, parent, "GET http://far.example.org/a?b HTTP/1.1\r\n"
		   "Proxy-Authorization: Basic dXNlcjpwYXNz\r\n"
		   "Host: far.example.org\r\nVia: 1.1 penstock\r\n\r\n");
	lab_send(BASE, parent, STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
				   "Proxy-Connection: x\r\n\r\nhi"));
	kit_expect_head(client, "200 OK");
	lab_expect(BASE, client, "hi");
	/* One more on the same connection. */
	lab_send(BASE, client, STR("GET http://far.example.org/2 HTTP/1.1\r\n"
				   "Host: far.example.org\r\n\r\n"));
	kit_expect_head(parent, "GET http://far.example.org/2 HTTP/1.1");
	lab_send(BASE, parent, STR("HTTP/1.1 407 SECRET\r\nContent-Length: 0\r\n"
				   "Proxy-Authenticate: Basic\r\n\r\n"));
	kit_expect_head(client, "502 parent_auth_failed");
	close(client);
	close(parent);
}

/* HTTP-14: whoever is asked as the last one shows what it was sent. */
static void our_credentials_go_with_no_trace(void **state)
{
	const struct str trace = STR(
		"TRACE http://far.example.org/ HTTP/1.1\r\n"
		"Host: far.example.org\r\nMax-Forwards: 1\r\n\r\n");
	const char *why;
	int client = kit_explicit(), parent;

	(void)state;
	there->absolute = true;
	kit_set_policy(RULES("there"));
	lab_send(BASE, client, trace);
	parent = kit_accept_turning(door);
	kit_expect_head(parent, "Max-Forwards: 0\r\n");
	close(client);
	close(parent);
	assert_int_equal(parent_set_login(there, STR("user:pass"), &why), 0);
	client = kit_explicit();
	lab_send(BASE, client, trace);
	kit_expect_head(client, "HTTP/1.1 501 method_not_supported\r\n");
	parent = kit_accept_turning(door);
	lab_expect_fin(BASE, parent);
	close(client);
	close(parent);
}

static void plain_http_goes_through_a_tunnel_otherwise(void **state)
{
	int client = request("api.example.org");
	int parent = kit_accept_turning(door);

	(void)state;
	hears_connect(parent, "203.0.113.10:80");
	lab_send(BASE, parent, STR(OPEN));
	lab_expect(BASE, parent, "GET /a?b HTTP/1.1\r\nHost: api.example.org\r\n"
		   "Via: 1.1 penstock\r\n\r\n");
	close(client);
	close(parent);
}

#define unit(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		unit(the_parent_is_asked_for_the_address_that_was_judged),
		unit(a_server_that_speaks_first_is_heard_whole),
		unit(a_socks_parent_is_asked_in_its_own_words),
		unit(a_parent_that_says_no_to_one_address_is_asked_for_the_next),
		unit(addresses_are_judged_before_any_parent_is_asked_ADDR_10),
		unit(the_parent_itself_is_no_destination),
		unit(what_is_bypassed_goes_straight_there),
		unit(a_name_goes_to_the_parent_and_to_no_resolver),
		unit(a_rule_with_addresses_permits_no_name_that_is_looked_up_there),
		unit(literals_are_judged_by_class_all_the_same),
		unit(a_name_over_the_budget_does_not_leave),
		unit(each_failure_of_the_parent_has_its_reason),
		unit(a_head_without_an_end_is_cut_off),
		unit(a_parent_that_is_not_there_is_an_outage),
		unit(a_flow_ends_when_its_way_is_no_longer_the_policys),
		unit(a_dial_under_way_is_given_up_with_its_way),
		unit(a_name_that_was_looked_up_there_is_judged_so_again),
		unit(plain_http_is_asked_of_the_parent_whole),
		unit(our_credentials_go_with_no_trace),
		unit(plain_http_goes_through_a_tunnel_otherwise),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
