/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fair_test.c - what one sandbox does costs another on its worker nothing
 *
 * Two sandboxes on one worker: one is hostile, the other has one small thing to
 * do.  No clock is looked at: what counts is how often the loop has to turn for
 * the small thing, and how much the hostile one gets done meanwhile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/conn.h"
#include "proxy/quota.h"
#include "proxy/sched.h"
#include "tests/unit/conn_kit.h"
#include "tests/unit/proxy_lab.h"

#define OK_200		"HTTP/1.1 200 OK\r\n\r\n"
#define TUNNELS		60
#define IDLE		400
#define DRIPS		200
/* Loop turns that one step of the good one may take: its packets cross lo, and
 * every other event of the turn may come before. */
#define STEP_TURNS	3
#define ROUNDS		20

static struct sandbox good;

/* Once round: what is ready now, and no more. */
static void turn_once(void)
{
	assert_true(event_base_loop(BASE, EVLOOP_ONCE | EVLOOP_NONBLOCK) >= 0);
}

static int setup(void **state)
{
	struct rlimit files;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	files.rlim_cur = MIN(files.rlim_max, (rlim_t)8192);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	assert_int_equal(kit_setup(state), 0);
	assert_int_equal(sched_new(BASE, &kit.worker.sched), 0);
	sched_queue_init(&kit.sandbox.turn, kit.worker.sched);
	good = kit.sandbox;
	list_init(&good.conns);
	list_init(&good.pool);
	sched_queue_init(&good.turn, kit.worker.sched);
	assert_int_equal(quota_new(good.rules, NULL, &good.quota), 0);
	mem_account_init(&good.memory, quota_memory(good.quota));
	return 0;
}

static int teardown(void **state)
{
	conn_end_all(&good, REASON_RUN_ENDED);
	conn_end_all(&kit.sandbox, REASON_RUN_ENDED);
	lab_turn(BASE);
	/* A round may have been asked for. */
	lab_turn(BASE);
	assert_int_equal(good.nconns, 0);
	sched_queue_done(&good.turn);
	sched_queue_done(&kit.sandbox.turn);
	sched_free(kit.worker.sched);
	mem_account_done(&good.memory);
	quota_unref(good.quota);
	return kit_teardown(state);
}

static int good_connect(const char *head)
{
	uint16_t port;
	int door = lab_listen("127.0.0.1", 0, &port);
	int client = lab_connect("127.0.0.1", port);

	conn_start_explicit(&good, lab_accept(door), &lab_src);
	close(door);
	lab_send(BASE, client, str_from(head));
	return client;
}

/* --- what a hostile sandbox does, once a turn ------------------------------------ */

struct hostile {
	unsigned n;
	int client[MAX(TUNNELS, IDLE + DRIPS)], origin[TUNNELS];
	void (*act)(struct hostile *h);
};

static void fill(int fd)
{
	static const char bytes[65536];

	(void)!send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void empty(int fd)
{
	static char bytes[65536];

	(void)!recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC);
}

static void be_busy(struct hostile *h)
{
	for (unsigned i = 0; i < h->n; i++) {
		fill(h->client[i]);
		fill(h->origin[i]);
		empty(h->origin[i]);
		empty(h->client[i]);
	}
}

static void drip(struct hostile *h)
{
	for (unsigned i = 0; i < h->n; i++) {
		if (h->client[i] >= 0)
			(void)!send(h->client[i], "a", 1,
				    MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

static void hostile_close(struct hostile *h)
{
	for (unsigned i = 0; i < h->n; i++) {
		close(h->client[i]);
		if (h->origin[0] >= 0)
			close(h->origin[i]);
	}
}

static bool has_byte(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

/* Turns until @fd has something, while the hostile one does its worst. */
static unsigned turns_until(struct hostile *h, int fd)
{
	unsigned n = 0;

	while (!has_byte(fd)) {
		h->act(h);
		turn_once();
		n++;
	}
	return n;
}

/* --- tests ------------------------------------------------------------------------ */

static void good_tunnel(int door, int *ret_client, int *ret_origin)
{
	*ret_client = good_connect("CONNECT ssh.example.org:22 HTTP/1.1\r\n"
				   "Host: ssh.example.org:22\r\n\r\n");
	lab_expect(BASE, *ret_client, OK_200);
	*ret_origin = lab_accept(door);
}

/* There and back, while @h is at it. */
static void echoes(struct hostile *h, int client, int origin)
{
	uint64_t before = kit.sandbox.turn.spent;
	unsigned turns = 0;
	char byte;

	for (unsigned i = 0; i < ROUNDS; i++) {
		assert_int_equal(send(client, "x", 1, MSG_NOSIGNAL), 1);
		turns += turns_until(h, origin);
		assert_int_equal(recv(origin, &byte, 1, 0), 1);
		assert_int_equal(send(origin, "y", 1, MSG_NOSIGNAL), 1);
		turns += turns_until(h, client);
		assert_int_equal(recv(client, &byte, 1, 0), 1);
	}
	assert_in_range(turns, 2 * ROUNDS, 2 * ROUNDS * STEP_TURNS);
	/* A share for each turn, and pieces of work that went beyond it. */
	assert_in_range(kit.sandbox.turn.spent - before, 1,
			(turns + 4) * (uint64_t)SCHED_QUANTUM);
}

static void busy_tunnels_of_one_delay_no_byte_of_another(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;
	struct hostile h = { .n = TUNNELS, .act = be_busy };

	(void)state;
	for (unsigned i = 0; i < h.n; i++) {
		h.client[i] = kit_connect_to("ssh.example.org:22");
		lab_expect(BASE, h.client[i], OK_200);
		h.origin[i] = lab_accept(door);
	}
	good_tunnel(door, &client, &origin);
	for (unsigned i = 0; i < 20; i++) {
		be_busy(&h);
		turn_once();
	}
	echoes(&h, client, origin);
	close(client);
	close(origin);
	hostile_close(&h);
	close(door);
}

/* OPS-03: idle ones, and heads that come byte by byte. */
static void slow_heads_of_one_delay_no_request_of_another_OPS_03(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;
	struct hostile h = { .n = IDLE + DRIPS, .act = drip,
			     .origin = { -1 } };

	(void)state;
	for (unsigned i = 0; i < h.n; i++) {
		h.client[i] = kit_explicit();
		if (i < DRIPS)
			lab_send(BASE, h.client[i],
				 STR("CONNECT a HTTP/1.1\r\nA: "));
	}
	for (unsigned i = DRIPS; i < h.n; i++) {
		close(h.client[i]);	/* as silent as it gets */
		h.client[i] = -1;
	}
	drip(&h);
	client = good_connect("CONNECT ssh.example.org:22 HTTP/1.1\r\n"
			      "Host: ssh.example.org:22\r\n\r\n");
	/* Read, looked up, dialled, connected, answered. */
	assert_in_range(turns_until(&h, client), 0, 5 * STEP_TURNS);
	lab_expect(BASE, client, OK_200);
	origin = lab_accept(door);
	echoes(&h, client, origin);
	close(client);
	close(origin);
	hostile_close(&h);
	close(door);
}

/* What cannot be served now is not reported again (half_test.c), and has all that
 * it had to say when its turn comes. */
static void what_waits_for_its_turn_loses_nothing_OPS_03(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;
	struct hostile h = { .n = DRIPS, .act = drip, .origin = { -1 } };

	(void)state;
	/* The good one keeps the other from being alone. */
	good_tunnel(door, &client, &origin);
	for (unsigned i = 0; i < h.n; i++) {
		h.client[i] = kit_explicit();
		lab_send(BASE, h.client[i],
			 STR("CONNECT ssh.example.org:22 HTTP/1.1\r\nA: "));
	}
	for (unsigned i = 0; i < ROUNDS; i++) {
		drip(&h);
		turn_once();
	}
	for (unsigned i = 0; i < h.n; i++)
		lab_send(BASE, h.client[i], STR("\r\n\r\n"));
	for (unsigned i = 0; i < h.n; i++)
		lab_expect(BASE, h.client[i], OK_200);
	close(client);
	close(origin);
	hostile_close(&h);
	close(door);
}

/* Of the sandbox itself, whoever came first is served first: none starves. */
static void no_tunnel_of_a_busy_sandbox_starves(void **state)
{
	int door = lab_listen(KIT_ORIGIN, 22, NULL), client, origin;
	struct hostile h = { .n = TUNNELS / 3, .act = be_busy };
	unsigned turns;

	(void)state;
	/* The good one keeps the other from being alone. */
	good_tunnel(door, &client, &origin);
	for (unsigned i = 0; i < h.n; i++) {
		h.client[i] = kit_connect_to("ssh.example.org:22");
		lab_expect(BASE, h.client[i], OK_200);
		h.origin[i] = lab_accept(door);
	}
	h.n--;
	for (unsigned i = 0; i < 20; i++) {
		be_busy(&h);
		turn_once();
	}
	assert_int_equal(send(h.client[h.n], "x", 1, MSG_NOSIGNAL), 1);
	turns = turns_until(&h, h.origin[h.n]);
	/* Once round the others: each has a turn of two directions. */
	assert_in_range(turns, 1, 4 * h.n);
	h.n++;
	close(client);
	close(origin);
	hostile_close(&h);
	close(door);
}

#define FAIR(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FAIR(busy_tunnels_of_one_delay_no_byte_of_another),
		FAIR(slow_heads_of_one_delay_no_request_of_another_OPS_03),
		FAIR(what_waits_for_its_turn_loses_nothing_OPS_03),
		FAIR(no_tunnel_of_a_busy_sandbox_starves),
	};

	lab_enter();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
