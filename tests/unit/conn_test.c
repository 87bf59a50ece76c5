/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_test.c - the life of a connection: CONNECT, transparent TLS, the rest
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
#include "proxy/conn_own.h"
#include "resolver/name_map.h"
#include "tests/unit/conn_kit.h"
#include "tests/unit/proxy_lab.h"

#define OK_200		"HTTP/1.1 200 OK\r\n\r\n"
#define ACCESS_DENIED	"\x15\x03\x01\x00\x02\x02\x31"

/* The whole of an HTTP refusal, up to the end of the connection. */
static void expect_refusal(int fd, const char *status, const char *word)
{
	char got[4096], want[128];
	size_t n = lab_recv_all(BASE, fd, got, sizeof(got) - 1);

	got[n] = '\0';
	assert_true(snprintf(want, sizeof(want), "HTTP/1.1 %s %s\r\n", status,
			     word) > 0);
	assert_int_equal(strncmp(got, want, strlen(want)), 0);
	assert_true(snprintf(want, sizeof(want), "{\"error\":\"%s\"",
			     word) > 0);
	assert_non_null(strstr(got, want));
	assert_non_null(strstr(got, "Proxy-Status: penstock"));
	assert_non_null(strstr(got, "\r\nConnection: close\r\n"));
	assert_non_null(strstr(got, " GMT\r\n"));
	assert_null(strstr(got, "200"));
	close(fd);
}

static void expect_alert(int fd, const char *alert)
{
	kit_expect_bytes(fd, str_make(alert, 7));
	lab_expect_fin(BASE, fd);
	close(fd);
}

/* --- CONNECT -------------------------------------------------------------------- */

static void a_denied_connect_is_a_403_and_never_a_200_TUN_01(void **state)
{
	int origin = lab_listen(KIT_ORIGIN, 443, NULL);

	(void)state;
	expect_refusal(kit_connect_to("evil.example.net:443"), "403",
		       "host_not_allowed");
	assert_false(kit_was_dialled(origin));
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "evil.example.net");
	assert_int_equal(kit_record(0)->via, RECORD_VIA_CONNECT);
	assert_int_equal(kit_record(0)->dst.port, 443);
	assert_int_equal(kit_records(), 1);
	close(origin);
}

static void denial_and_outage_look_different_TUN_02(void **state)
{
	(void)state;
	expect_refusal(kit_connect_to("dead.example.org:443"), "502",
		       "connect_refused");
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "dead.example.org");
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ERROR,
			  REASON_CONNECT_REFUSED, "dead.example.org");
	assert_true(kit_same_id(0, 1));
	expect_refusal(kit_connect_to("gone.example.org:443"), "502",
		       "dns_nxdomain");
	kit_expect_record(2, RECORD_FLOW_DENY, RECORD_ERROR,
			  REASON_DNS_NXDOMAIN, "gone.example.org");
	expect_refusal(kit_connect_to("api.example.org:8443"), "403",
		       "port_not_allowed");
}

static void a_name_that_leads_inside_is_refused_by_class_ADDR_10(void **state)
{
	int bait = lab_listen("10.0.0.5", 443, NULL);

	(void)state;
	expect_refusal(kit_connect_to("inside.example.org:443"), "403",
		       "address_private");
	assert_false(kit_was_dialled(bait));
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_ADDRESS_PRIVATE, "inside.example.org");
	assert_int_equal(kit_record(0)->dst.addr.b[0], 10);
	close(bait);
}

static void a_metadata_literal_is_refused_by_class(void **state)
{
	int bait = lab_listen("169.254.169.254", 80, NULL);

	(void)state;
	expect_refusal(kit_connect_to("169.254.169.254:80"), "403",
		       "address_metadata");
	expect_refusal(kit_connect_to("[::ffff:169.254.169.254]:80"), "403",
		       "address_metadata");
	assert_false(kit_was_dialled(bait));
	close(bait);
}

static void a_tunnel_carries_and_is_recorded_LOG_10(void **state)
{
	struct str hello = kit_hello("api.example.org");
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	int client = kit_connect_to("api.example.org:443");
	const struct record *r;

	(void)state;
	lab_expect(BASE, client, OK_200);
	lab_send(BASE, client, hello);
	origin = lab_accept(door);
	kit_expect_bytes(origin, hello);
	lab_send(BASE, origin, STR("answer"));
	lab_expect(BASE, client, "answer");
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, "api.example.org");
	r = kit_record(1);
	assert_true(kit_same_id(0, 1));
	assert_int_equal(r->bytes_up, hello.n);
	assert_int_equal(r->bytes_down, 6);
	assert_true(r->dur_ms >= 0);
	assert_string_equal(r->proto, "https");
	assert_string_equal(r->rule, "web");
	assert_int_equal(r->dst.port, 443);
	assert_int_equal(r->dst.addr.b[3], 10);
	assert_int_equal(r->src.addr.b[0], 127);
	assert_string_equal(r->sni.p, "api.example.org");
	assert_int_equal(kit.sandbox.bytes_up, hello.n);
	close(door);
}

static int keepalive(void)
{
	struct conn *c = container_of(kit.sandbox.conns.next, struct conn,
				      node);
	int is = -1;
	socklen_t n = sizeof(is);

	assert_int_equal(getsockopt(c->net->fd, SOL_SOCKET, SO_KEEPALIVE, &is, &n),
			 0);
	return is;
}

static void a_tunnel_that_lives_on_gets_keepalive_TUN_09(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	int client = kit_connect_to("api.example.org:443");

	(void)state;
	lab_expect(BASE, client, OK_200);
	assert_false(kit.keep);
	lab_send(BASE, client, kit_hello("api.example.org"));
	origin = lab_accept(door);
	kit_expect_bytes(origin, kit_hello("api.example.org"));
	assert_true(kit.keep);
	assert_int_equal(keepalive(), 0);
	list_add(&kit.worker.sandboxes, &kit.sandbox.node);
	conn_keep_alive(&kit.worker);
	list_del(&kit.sandbox.node);
	assert_int_equal(keepalive(), 1);
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, "api.example.org");
	close(door);
}

/* The hello comes with the CONNECT in one segment; then all in single bytes. */
static void bytes_behind_the_head_are_the_tunnels_first_TUN_04(void **state)
{
	struct str hello = kit_hello("api.example.org");
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin, client;
	char all[1024];
	size_t n, i;

	(void)state;
	n = (size_t)snprintf(all, sizeof(all),
			     "CONNECT api.example.org:443 HTTP/1.1\r\n"
			     "Host: api.example.org:443\r\n\r\n");
	memcpy(all + n, hello.p, hello.n);
	n += hello.n;

	client = kit_explicit();
	lab_send(BASE, client, str_make(all, n));
	lab_expect(BASE, client, OK_200);
	origin = lab_accept(door);
	kit_expect_bytes(origin, hello);
	lab_reset(client);
	lab_expect_reset(BASE, origin);
	close(origin);

	client = kit_explicit();
	for (i = 0; i < n; i++)
		lab_send(BASE, client, str_make(all + i, 1));
	lab_expect(BASE, client, OK_200);
	origin = lab_accept(door);
	kit_expect_bytes(origin, hello);
	lab_reset(client);
	lab_expect_reset(BASE, origin);
	close(origin);
	close(door);
}

static void a_connect_with_a_body_is_refused_TUN_05(void **state)
{
	static const char *const fields[] = {
		"Content-Length: 5", "Transfer-Encoding: chunked",
	};
	char head[256];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(fields); i++) {
		int client = kit_explicit();

		assert_true(snprintf(head, sizeof(head),
			"CONNECT api.example.org:443 HTTP/1.1\r\n"
			"Host: api.example.org:443\r\n%s\r\n\r\n0\r\n\r\n",
			fields[i]) > 0);
		lab_send(BASE, client, str_from(head));
		expect_refusal(client, "400", "framing_invalid");
		kit_expect_record(i, RECORD_FLOW_DENY, RECORD_DENY,
				  REASON_FRAMING_INVALID, "");
	}
}

static void a_host_that_contradicts_the_target_is_refused_HOST_14(
	void **state)
{
	int client = kit_explicit();

	(void)state;
	lab_send(BASE, client, STR("CONNECT api.example.org:443 HTTP/1.1\r\n"
				   "Host: evil.example.net\r\n\r\n"));
	expect_refusal(client, "400", "host_mismatch");
}

static void malformed_connects_are_400_and_recorded_LOG_07(void **state)
{
	static const char *const lines[] = {
		"CONNECT api.example.org HTTP/1.1",
		"CONNECT http://api.example.org:443/ HTTP/1.1",
		"CONNECT user@api.example.org:443 HTTP/1.1",
		"CONNECT api.example.org:0443 HTTP/1.1",
		"CONNECT 0x7f000001:443 HTTP/1.1",
		"CONNECT /etc/passwd HTTP/1.1",
	};
	char head[256];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(lines); i++) {
		int client = kit_explicit();

		assert_true(snprintf(head, sizeof(head),
				     "%s\r\nHost: api.example.org\r\n\r\n",
				     lines[i]) > 0);
		lab_send(BASE, client, str_from(head));
		expect_refusal(client, "400", "authority_invalid");
		kit_expect_record(i, RECORD_FLOW_DENY, RECORD_DENY,
				  REASON_AUTHORITY_INVALID, "");
	}
}

static void a_connection_that_says_nothing_is_recorded_LOG_07(void **state)
{
	int client = kit_explicit();

	(void)state;
	close(client);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_CLIENT_CLOSED_EARLY, "");
	client = kit_explicit();
	lab_send(BASE, client, STR("CONNECT api.exam"));
	close(client);
	kit_expect_record(1, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_CLIENT_CLOSED_EARLY, "");
	assert_int_equal(kit_record(1)->via, RECORD_VIA_CONNECT);
}

static void a_lying_sni_ends_the_tunnel_and_its_record_LOG_08(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	int client = kit_connect_to("api.example.org:443");
	char byte;

	(void)state;
	lab_expect(BASE, client, OK_200);
	lab_send(BASE, client, kit_hello("evil.example.net"));
	expect_alert(client, ACCESS_DENIED);
	origin = lab_accept(door);
	lab_wait_readable(BASE, origin);
	assert_true(recv(origin, &byte, 1, 0) <= 0);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_DENY,
			  REASON_NAME_MISMATCH, "api.example.org");
	assert_string_equal(kit_record(1)->sni.p, "evil.example.net");
	assert_true(kit_same_id(0, 1));
	close(origin);
	close(door);
}

static void what_is_not_tls_does_not_enter_an_https_tunnel(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	int client = kit_connect_to("api.example.org:443");

	(void)state;
	lab_expect(BASE, client, OK_200);
	lab_send(BASE, client, STR("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
	expect_refusal(client, "403", "protocol_mismatch");
	client = kit_connect_to("api.example.org:443");
	lab_expect(BASE, client, OK_200);
	lab_send(BASE, client, STR("SSH-2.0-lurker\r\n"));
	lab_expect_reset(BASE, client);
	close(client);
	origin = lab_accept(door);
	close(origin);
	close(door);
}

static void a_server_may_speak_first_TUN_14(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), origin;
	int client = kit_connect_to("ssh.example.org:22");

	(void)state;
	lab_expect(BASE, client, OK_200);
	origin = lab_accept(door);
	lab_send(BASE, origin, STR("SSH-2.0-origin\r\n"));
	lab_expect(BASE, client, "SSH-2.0-origin\r\n");
	lab_send(BASE, client, STR("SSH-2.0-client\r\n"));
	lab_expect(BASE, origin, "SSH-2.0-client\r\n");
	shutdown(client, SHUT_WR);		/* TUN-10 */
	lab_expect_fin(BASE, origin);
	lab_send(BASE, origin, STR("bye"));
	lab_expect(BASE, client, "bye");
	close(origin);
	lab_expect_fin(BASE, client);
	close(client);
	close(door);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, "ssh.example.org");
	assert_string_equal(kit_record(1)->proto, "ssh");
}

static void a_synthetic_literal_is_its_name(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), origin, client;
	char authority[IP_TEXT_SIZE + 4];

	(void)state;
	assert_true(snprintf(authority, sizeof(authority), "%s:22",
			     kit_synthetic("ssh.example.org")) > 0);
	client = kit_connect_to(authority);
	lab_expect(BASE, client, OK_200);
	origin = lab_accept(door);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "ssh.example.org");
	assert_int_equal(kit_record(0)->dns.b[0], 0xd5);
	close(client);
	close(origin);
	close(door);
	expect_refusal(kit_connect_to("198.18.77.77:22"), "403",
		       "address_not_allowed");
}

static void without_audit_nothing_is_opened(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL);

	(void)state;
	kit.audit_down = true;
	expect_refusal(kit_connect_to("api.example.org:443"), "503",
		       "audit_unavailable");
	assert_false(kit_was_dialled(door));
	close(door);
}

/* --- transparent ------------------------------------------------------------------ */

static void a_named_tls_flow_is_dialled_after_its_hello(void **state)
{
	struct str hello = kit_hello("API.example.org");
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	int client = kit_transparent(kit_synthetic("api.example.org"), 443);
	size_t i;

	(void)state;
	for (i = 0; i < hello.n; i++) {
		assert_false(kit_was_dialled(door));
		lab_send(BASE, client, str_make(hello.p + i, 1));
	}
	origin = lab_accept(door);
	kit_expect_bytes(origin, hello);
	lab_send(BASE, origin, STR("server hello"));
	lab_expect(BASE, client, "server hello");
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	assert_int_equal(kit_record(0)->via, RECORD_VIA_TRANSPARENT);
	assert_int_equal(kit_record(0)->asked.b[0], 198);
	assert_int_equal(kit_record(0)->dns.b[0], 0xd5);
	assert_int_equal(kit_record(0)->dst.addr.b[0], 203);
	conn_end_all(&kit.sandbox, REASON_RUN_ENDED);
	lab_expect_reset(BASE, client);
	lab_expect_reset(BASE, origin);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW, REASON_RUN_ENDED,
			  "api.example.org");
	close(client);
	close(origin);
	close(door);
}

static void a_name_with_both_families_survives_without_one(void **state)
{
	struct str hello = kit_hello("both.example.org");
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin;
	/* Nobody listens on the IPv6 address. */
	int client = kit_transparent(kit_synthetic("both.example.org"), 443);

	(void)state;
	lab_send(BASE, client, hello);
	while (kit_records() == 0)
		lab_turn(BASE);
	origin = lab_accept(door);
	kit_expect_bytes(origin, hello);
	close(client);
	close(origin);
	close(door);
}

static void a_hello_that_does_not_fit_the_name_is_told_by_alert(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), client;

	(void)state;
	client = kit_transparent(kit_synthetic("api.example.org"), 443);
	lab_send(BASE, client, kit_hello(NULL));
	expect_alert(client, ACCESS_DENIED);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_SNI_MISSING, "api.example.org");
	client = kit_transparent(kit_synthetic("api.example.org"), 443);
	lab_send(BASE, client, kit_hello("both.example.org"));
	expect_alert(client, ACCESS_DENIED);
	kit_expect_record(1, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_NAME_MISMATCH, "api.example.org");
	client = kit_transparent(kit_synthetic("api.example.org"), 443);
	lab_send(BASE, client, STR("GET / HTTP/1.1\r\n"));
	expect_refusal(client, "403", "protocol_mismatch");
	client = kit_transparent(kit_synthetic("api.example.org"), 443);
	lab_send(BASE, client, STR("\x16\x03"));
	close(client);
	kit_expect_record(3, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HELLO_INCOMPLETE, "api.example.org");
	client = kit_transparent(kit_synthetic("api.example.org"), 443);
	close(client);
	kit_expect_record(4, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_CLIENT_CLOSED_EARLY, "api.example.org");
	assert_false(kit_was_dialled(door));
	close(door);
}

static void a_refused_flow_is_recorded_at_once_and_told_in_its_protocol(
	void **state)
{
	int client;

	(void)state;
	client = kit_transparent(kit_synthetic("evil.example.net"), 443);
	assert_int_equal(kit_records(), 1);
	lab_send(BASE, client, kit_hello("evil.example.net"));
	expect_alert(client, ACCESS_DENIED);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "evil.example.net");

	client = kit_transparent(kit_synthetic("evil.example.net"), 80);
	lab_send(BASE, client, STR("GET / HTTP/1.1\r\nHost: evil\r\n\r\n"));
	expect_refusal(client, "403", "host_not_allowed");

	client = kit_transparent("169.254.169.254", 80);
	lab_send(BASE, client, STR("GET /latest HTTP/1.1\r\n\r\n"));
	expect_refusal(client, "403", "address_metadata");

	client = kit_transparent(kit_synthetic("evil.example.net"), 443);
	lab_send(BASE, client, STR("{neither of the two}"));
	lab_expect_reset(BASE, client);
	close(client);

	/* A port of another protocol: nothing to wait for. */
	client = kit_transparent(kit_synthetic("evil.example.net"), 25);
	lab_expect_reset(BASE, client);
	close(client);
	client = kit_transparent("10.0.0.5", 5432);
	lab_expect_reset(BASE, client);
	close(client);
	kit_expect_record(5, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_ADDRESS_PRIVATE, "");
	assert_int_equal(kit_record(5)->dst.port, 5432);
	assert_int_equal(kit_record(5)->dst.addr.b[0], 10);
	assert_int_equal(kit_records(), 6);
	assert_int_equal(kit.sandbox.flows_denied, 6);
}

static void a_refused_flow_that_says_nothing_is_reset(void **state)
{
	int client = kit_transparent(kit_synthetic("evil.example.net"), 443);

	(void)state;
	lab_expect_reset(BASE, client);
	close(client);
	assert_int_equal(kit_records(), 1);
}

static void a_synthetic_address_never_given_means_nothing(void **state)
{
	int client = kit_transparent("198.18.99.99", 22);

	(void)state;
	lab_expect_reset(BASE, client);
	close(client);
	kit_expect_record(0, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_ADDRESS_NOT_ALLOWED, "");
}

static void a_known_address_is_only_as_good_as_the_name_said_ADDR_18(
	void **state)
{
	int door = lab_listen(KIT_ORIGIN, 443, NULL), origin, client;
	struct str hello = kit_hello("api.example.org");

	(void)state;
	/* A permitted name: our own address of it is dialled. */
	client = kit_transparent(KIT_OTHER, 443);
	lab_send(BASE, client, hello);
	origin = lab_accept(door);
	kit_expect_bytes(origin, hello);
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "api.example.org");
	assert_int_equal(kit_record(0)->asked.b[3], 66);
	assert_int_equal(kit_record(0)->dst.addr.b[3], 10);
	close(client);
	lab_expect_fin(BASE, origin);
	close(origin);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, "api.example.org");

	/* Another name at the same address, and none. */
	client = kit_transparent(KIT_OTHER, 443);
	lab_send(BASE, client, kit_hello("evil.example.net"));
	expect_alert(client, ACCESS_DENIED);
	kit_expect_record(2, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_HOST_NOT_ALLOWED, "evil.example.net");
	client = kit_transparent(KIT_OTHER, 443);
	lab_send(BASE, client, kit_hello(NULL));
	expect_alert(client, ACCESS_DENIED);
	kit_expect_record(3, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_ADDRESS_DOCUMENTATION, "");
	assert_false(kit_was_dialled(door));
	close(door);
}

static void a_permitted_literal_needs_no_name_but_tolerates_no_other(
	void **state)
{
	/* The program's door and the origin are one address here, so the
	 * explicit way is taken; both judge by the same code. */
	int door = lab_listen(KIT_LITERAL, 443, NULL), origin, client;
	struct str hello = kit_hello(NULL);

	(void)state;
	client = kit_connect_to(KIT_LITERAL ":443");
	lab_expect(BASE, client, OK_200);
	lab_send(BASE, client, hello);
	origin = lab_accept(door);
	kit_expect_bytes(origin, hello);
	close(client);
	close(origin);

	client = kit_connect_to(KIT_LITERAL ":443");
	lab_expect(BASE, client, OK_200);
	lab_send(BASE, client, kit_hello("evil.example.net"));
	expect_alert(client, ACCESS_DENIED);
	origin = lab_accept(door);
	close(origin);
	close(door);
}

static void a_server_may_speak_first_to_a_program_that_asked_by_name_TUN_14(
	void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), origin;
	int client = kit_transparent(kit_synthetic("ssh.example.org"), 22);

	(void)state;
	lab_turn(BASE);
	origin = lab_accept(door);
	lab_send(BASE, origin, STR("SSH-2.0-origin\r\n"));
	lab_expect(BASE, client, "SSH-2.0-origin\r\n");
	lab_reset(origin);
	lab_expect_reset(BASE, client);
	close(client);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_ORIGIN_RESET, "ssh.example.org");
	close(door);
}

static void a_transparent_flow_whose_origin_is_down_says_so(void **state)
{
	int client = kit_transparent(kit_synthetic("dead.example.org"), 443);

	(void)state;
	lab_send(BASE, client, kit_hello("dead.example.org"));
	/* internal_error: an outage, not a denial */
	expect_alert(client, "\x15\x03\x01\x00\x02\x02\x50");
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ERROR,
			  REASON_CONNECT_REFUSED, "dead.example.org");
}

/* A listener whose queue is full swallows what arrives. */
static void a_program_that_gives_up_costs_no_dial(void **state)
{
	int door = lab_listen(KIT_HOLE, 443, NULL), plug, client;

	(void)state;
	assert_int_equal(listen(door, 0), 0);
	plug = lab_connect(KIT_HOLE, 443);
	lab_wait_readable(BASE, door);
	client = kit_connect_to("hole.example.org:443");
	kit_expect_record(0, RECORD_FLOW_OPEN, RECORD_ALLOW, REASON_ALLOWED,
			  "hole.example.org");
	assert_int_equal(kit.sandbox.nconns, 1);
	close(client);
	kit_expect_record(1, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_CLOSED, "hole.example.org");
	client = kit_connect_to("hole.example.org:443");
	kit_record(2);
	lab_reset(client);
	kit_expect_record(3, RECORD_FLOW_CLOSE, RECORD_ALLOW,
			  REASON_CLIENT_RESET, "hole.example.org");
	lab_turn(BASE);
	assert_int_equal(kit.sandbox.nconns, 0);
	close(plug);
	close(door);
}

/* It waits for the answer in the tunnel's queue, and then some. */
static void what_is_said_during_the_dial_is_kept_in_order_TUN_04(void **state)
{
	static char much[200 << 10];
	int door = lab_listen(KIT_ORIGIN, 22, NULL), origin;
	int client = kit_transparent(kit_synthetic("ssh.example.org"), 22);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(much); i++)
		much[i] = (char)(i % 251);
	(void)!send(client, much, 1000, 0);
	lab_send(BASE, client, str_make(much + 1000, sizeof(much) - 1000));
	shutdown(client, SHUT_WR);
	origin = kit_accept_turning(door);
	for (i = 0; i < sizeof(much); i++) {
		char c;

		lab_recv(BASE, origin, &c, 1);
		if (c != much[i])
			fail_msg("byte %zu differs", i);
	}
	lab_expect_fin(BASE, origin);
	close(origin);
	lab_expect_fin(BASE, client);
	close(client);
	close(door);
}

static void many_connections_leave_nothing_behind_TUN_11(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL);
	unsigned i;

	(void)state;
	for (i = 0; i < 30; i++) {
		int client = kit_connect_to("ssh.example.org:22"), origin;

		lab_expect(BASE, client, OK_200);
		origin = lab_accept(door);
		if (i % 2) {
			close(client);
			lab_expect_fin(BASE, origin);
			close(origin);
		} else {
			lab_reset(origin);
			lab_expect_reset(BASE, client);
			close(client);
		}
		kit_record(2 * i + 1);
		lab_turn(BASE);
		assert_int_equal(kit.sandbox.nconns, 0);
	}
	close(door);
}

#define conn_unit(f)	cmocka_unit_test_setup_teardown(f, kit_setup, \
							kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_unit(a_denied_connect_is_a_403_and_never_a_200_TUN_01),
		conn_unit(denial_and_outage_look_different_TUN_02),
		conn_unit(a_name_that_leads_inside_is_refused_by_class_ADDR_10),
		conn_unit(a_metadata_literal_is_refused_by_class),
		conn_unit(a_tunnel_carries_and_is_recorded_LOG_10),
		conn_unit(a_tunnel_that_lives_on_gets_keepalive_TUN_09),
		conn_unit(bytes_behind_the_head_are_the_tunnels_first_TUN_04),
		conn_unit(a_connect_with_a_body_is_refused_TUN_05),
		conn_unit(
		    a_host_that_contradicts_the_target_is_refused_HOST_14),
		conn_unit(malformed_connects_are_400_and_recorded_LOG_07),
		conn_unit(a_connection_that_says_nothing_is_recorded_LOG_07),
		conn_unit(a_lying_sni_ends_the_tunnel_and_its_record_LOG_08),
		conn_unit(what_is_not_tls_does_not_enter_an_https_tunnel),
		conn_unit(a_server_may_speak_first_TUN_14),
		conn_unit(a_synthetic_literal_is_its_name),
		conn_unit(without_audit_nothing_is_opened),
		conn_unit(a_named_tls_flow_is_dialled_after_its_hello),
		conn_unit(a_name_with_both_families_survives_without_one),
		conn_unit(a_hello_that_does_not_fit_the_name_is_told_by_alert),
		conn_unit(
		 a_refused_flow_is_recorded_at_once_and_told_in_its_protocol),
		conn_unit(a_refused_flow_that_says_nothing_is_reset),
		conn_unit(a_synthetic_address_never_given_means_nothing),
		conn_unit(
		 a_known_address_is_only_as_good_as_the_name_said_ADDR_18),
		conn_unit(
		 a_permitted_literal_needs_no_name_but_tolerates_no_other),
		conn_unit(
		 a_server_may_speak_first_to_a_program_that_asked_by_name_TUN_14
		),
		conn_unit(a_transparent_flow_whose_origin_is_down_says_so),
		conn_unit(a_program_that_gives_up_costs_no_dial),
		conn_unit(
		    what_is_said_during_the_dial_is_kept_in_order_TUN_04),
		conn_unit(many_connections_leave_nothing_behind_TUN_11),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
