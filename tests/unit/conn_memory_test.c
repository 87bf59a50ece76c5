/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_memory_test.c - what connections hold, as one sum, and its limit
 *
 * That all of it is given back is asserted at the end of each test, by the kit,
 * as by that of each other test of connections.
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
#include "proxy/relay.h"
#include "tests/unit/conn_kit.h"
#include "tests/unit/proxy_lab.h"

#define OK_200		"HTTP/1.1 200 OK\r\n\r\n"
#define INTERNAL_ERROR	STR("\x15\x03\x01\x00\x02\x02\x50")
#define MEMORY		(&kit.sandbox.memory)
#define CHUNK		65536

static const char bytes[CHUNK];

static void tunnel(int door, int *ret_client, int *ret_origin)
{
	*ret_client = kit_connect_to("ssh.example.org:22");
	lab_expect(BASE, *ret_client, OK_200);
	*ret_origin = lab_accept(door);
}

/* All that there is but @left, as if it were held for something else. */
static size_t fill(size_t left)
{
	size_t n = QUOTA_MEMORY - left - MEMORY->used;

	mem_account_owe(MEMORY, n);
	return n;
}

static void expect_503(int fd, const char *word)
{
	char got[4096], want[128];
	size_t n = lab_recv_all(BASE, fd, got, sizeof(got) - 1);

	got[n] = '\0';
	assert_true(snprintf(want, sizeof(want), "HTTP/1.1 503 %s\r\n", word) >
		    0);
	assert_int_equal(strncmp(got, want, strlen(want)), 0);
	close(fd);
}

static void expect_echo(int client, int origin)
{
	lab_send(BASE, client, STR("up"));
	kit_expect_bytes(origin, STR("up"));
	lab_send(BASE, origin, STR("down"));
	kit_expect_bytes(client, STR("down"));
}

/* --- the limit --------------------------------------------------------------------- */

static void at_the_limit_a_connection_is_refused_in_its_own_protocol(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin, other;
	size_t held;

	(void)state;
	tunnel(door, &client, &origin);
	/* Names are given now: at the limit none would be. */
	(void)kit_synthetic("api.example.org");
	(void)kit_synthetic("ssh.example.org");
	held = fill(CONN_MEMORY / 2);
	expect_503(kit_connect_to("ssh.example.org:22"), "memory_exceeded");
	kit_expect_record(1, RECORD_FLOW_DENY, RECORD_DENY,
			  REASON_MEMORY_EXCEEDED, "ssh.example.org");
	other = kit_transparent(kit_synthetic("api.example.org"), 443);
	lab_send(BASE, other, kit_hello("api.example.org"));
	kit_expect_bytes(other, INTERNAL_ERROR);
	close(other);
	other = kit_transparent(kit_synthetic("ssh.example.org"), 22);
	lab_expect_reset(BASE, other);
	close(other);
	/* What is there goes on. */
	expect_echo(client, origin);
	close(client);
	close(origin);
	/* And so does the next one, when there is room. */
	mem_account_give(MEMORY, held);
	tunnel(door, &client, &origin);
	expect_echo(client, origin);
	close(client);
	close(origin);
	close(door);
}

static void socks_hears_of_the_limit_as_a_general_failure(void **state)
{
	size_t held = fill(0);
	uint16_t port;
	int door = lab_listen("127.0.0.1", 0, &port);
	int client = lab_connect("127.0.0.1", port);

	(void)state;
	conn_start_socks(&kit.sandbox, lab_accept(door), &lab_src);
	close(door);
	lab_send(BASE, client, STR("\x05\x01\x00"));
	kit_expect_bytes(client, STR("\x05\x00"));
	lab_send(BASE, client, STR("\x05\x01\x00\x03\x0fssh.example.org"
				   "\x00\x16"));
	kit_expect_bytes(client, STR("\x05\x01\x00"));
	close(client);
	mem_account_give(MEMORY, held);
}

static void another_request_of_a_connection_is_refused_at_the_limit(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL);
	int client = kit_explicit(), origin;
	size_t held;

	(void)state;
	kit_request(client, "http://api.example.org/", "api.example.org");
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET / HTTP/1.1\r\n");
	lab_send(BASE, origin, STR("HTTP/1.1 204 No Content\r\n\r\n"));
	kit_expect_head(client, "HTTP/1.1 204");
	held = fill(0);
	kit_request(client, "http://api.example.org/", "api.example.org");
	kit_expect_head(client, "HTTP/1.1 503 memory_exceeded\r\n");
	mem_account_give(MEMORY, held);
	close(client);
	close(origin);
	close(door);
}

static void what_all_runs_have_together_has_a_reason_of_its_own(void **state)
{
	struct mem_pot *pot = MEMORY->pot;
	struct mem_pot whole = { .limit = CONN_MEMORY / 2 };

	(void)state;
	/* No byte is counted yet. */
	assert_int_equal(MEMORY->granted, 0);
	pot->whole = &whole;
	expect_503(kit_connect_to("ssh.example.org:22"), "overloaded");
	lab_turn(BASE);
	mem_account_done(MEMORY);
	assert_int_equal(whole.used, 0);
	pot->whole = NULL;
	mem_account_init(MEMORY, pot);
}

static void a_head_that_grows_is_refused_where_there_is_no_room(void **state)
{
	int client = kit_explicit();
	size_t held;

	(void)state;
	lab_send(BASE, client, STR("CONNECT ssh.example.org:22 HTTP/1.1\r\n"
				   "A: "));
	held = fill(0);
	for (unsigned i = 0; i < 3; i++)
		lab_send(BASE, client, str_make(bytes, 4096));
	expect_503(client, "memory_exceeded");
	mem_account_give(MEMORY, held);
}

static void refused_connections_are_not_many_at_once(void **state)
{
	int client[3];
	size_t held = fill(0);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		client[i] = kit_explicit();
	assert_int_equal(kit.sandbox.nlean, 3);
	kit.sandbox.conns_max = 1000;
	assert_false(sandbox_is_full(&kit.sandbox));
	kit.sandbox.nlean += SANDBOX_REFUSED_MAX - 3;
	assert_true(sandbox_is_full(&kit.sandbox));
	kit.sandbox.nlean -= SANDBOX_REFUSED_MAX - 3;
	for (unsigned i = 0; i < 3; i++)
		close(client[i]);
	mem_account_give(MEMORY, held);
}

/* --- what is charged ------------------------------------------------------------------ */

static void an_idle_tunnel_is_charged_itself_and_nothing_more(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;

	(void)state;
	tunnel(door, &client, &origin);
	assert_int_equal(MEMORY->used, CONN_MEMORY);
	expect_echo(client, origin);
	assert_int_equal(MEMORY->used, CONN_MEMORY);
	close(client);
	close(origin);
	close(door);
}

/* As much as goes down a tunnel whose client does not read. */
static uint64_t stuff(int origin)
{
	unsigned idle = 0;
	uint64_t n = 0;

	while (idle < 20) {
		ssize_t sent = send(origin, bytes, CHUNK,
				    MSG_NOSIGNAL | MSG_DONTWAIT);

		n += sent > 0 ? (uint64_t)sent : 0;
		idle = sent > 0 ? 0 : idle + 1;
		assert_true(event_base_loop(BASE, EVLOOP_NONBLOCK) >= 0);
	}
	return n;
}

static void drain(int client, uint64_t n)
{
	static char out[CHUNK];

	while (n > 0) {
		ssize_t got = recv(client, out, sizeof(out), MSG_DONTWAIT);

		if (got > 0)
			n -= MIN((uint64_t)got, n);
		assert_true(event_base_loop(BASE, EVLOOP_NONBLOCK) >= 0);
	}
}

static int size_of(int fd, int option)
{
	int size = 0;
	socklen_t n = sizeof(size);

	assert_int_equal(getsockopt(fd, SOL_SOCKET, option, &size, &n), 0);
	return size;
}

static struct conn *the_conn(void)
{
	return list_first(&kit.sandbox.conns, struct conn, node);
}

/* The kernel's part is by far the most of it. */
static void a_reader_that_stops_is_charged_what_stands_before_it(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;
	uint64_t n;

	(void)state;
	tunnel(door, &client, &origin);
	n = stuff(origin);
	assert_true(n > CHUNK);
	assert_in_range(MEMORY->used, CONN_MEMORY +
			(size_t)size_of(the_conn()->app.fd, SO_SNDBUF),
			SIZE_MAX);
	/* All that was sent stands somewhere, and is paid for, but for what
	 * stands in the buffers of the two ends. */
	assert_true(MEMORY->used + (size_t)size_of(client, SO_RCVBUF) +
		    (size_t)size_of(origin, SO_SNDBUF) > n);
	drain(client, n);
	lab_turn(BASE);
	assert_int_equal(MEMORY->used, CONN_MEMORY);
	close(client);
	close(origin);
	close(door);
}

static void where_much_is_held_what_stops_gets_small_buffers(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;
	size_t held;
	uint64_t n;

	(void)state;
	tunnel(door, &client, &origin);
	held = fill(QUOTA_MEMORY / 4);
	n = stuff(origin);
	assert_in_range(size_of(the_conn()->app.fd, SO_SNDBUF), 1, 256 << 10);
	assert_in_range(size_of(the_conn()->net->fd, SO_RCVBUF), 1, 256 << 10);
	assert_in_range(MEMORY->used - held, CONN_MEMORY + 1,
			CONN_MEMORY + (512 << 10));
	/* No pipe, of a megabyte each. */
	assert_int_equal(relay_pool_spliced(kit.worker.relay), 0);
	/* It is slower, and complete. */
	drain(client, n);
	expect_echo(client, origin);
	mem_account_give(MEMORY, held);
	close(client);
	close(origin);
	close(door);
}

static void a_body_whose_reader_stops_is_charged_too(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 80, NULL);
	int client = kit_explicit(), origin;

	(void)state;
	kit_request(client, "http://api.example.org/", "api.example.org");
	origin = kit_accept_turning(door);
	kit_expect_head(origin, "GET / HTTP/1.1\r\n");
	lab_send(BASE, origin, STR("HTTP/1.1 200 OK\r\n\r\n"));
	kit_expect_head(client, "HTTP/1.1 200 OK");
	stuff(origin);
	assert_in_range(MEMORY->used, CONN_MEMORY +
			(size_t)size_of(the_conn()->app.fd, SO_SNDBUF) + 65536,
			SIZE_MAX);
	close(client);
	close(origin);
	close(door);
}

#define MEM(f)	cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MEM(at_the_limit_a_connection_is_refused_in_its_own_protocol),
		MEM(socks_hears_of_the_limit_as_a_general_failure),
		MEM(another_request_of_a_connection_is_refused_at_the_limit),
		MEM(what_all_runs_have_together_has_a_reason_of_its_own),
		MEM(a_head_that_grows_is_refused_where_there_is_no_room),
		MEM(refused_connections_are_not_many_at_once),
		MEM(an_idle_tunnel_is_charged_itself_and_nothing_more),
		MEM(a_reader_that_stops_is_charged_what_stands_before_it),
		MEM(where_much_is_held_what_stops_gets_small_buffers),
		MEM(a_body_whose_reader_stops_is_charged_too),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
