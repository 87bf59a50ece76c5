/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door_turn_test.c - a flood of questions delays nobody else on its worker
 *
 * The door's sandbox and another share a worker, by the real scheduler.  No clock
 * is looked at: what counts is how much of the flood is done in each turn of the
 * loop, and that the other one is served in each.
 */
#include "tests/unit/dns_door_lab.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/sched.h"

/* More than one share, and fewer than sockets hold. */
#define FLOOD		192
/* A share, and what goes beyond it: a batch of datagrams, a message. */
#define SHARE		(SCHED_QUANTUM / SCHED_COST_QUESTION)
#define BEYOND		34

static struct sched *sched;
static struct sched_queue noisy, other;
static struct sched_work noisy_work, other_work;
static unsigned served;			/* times that the other one was */

static void door_turn(void *arg)
{
	(void)arg;
	dns_door_turn(door);
}

static void on_due(void *arg)
{
	(void)arg;
	sched_run(&noisy, &noisy_work);
}

static bool on_spend(void *arg, unsigned questions)
{
	(void)arg;
	if (questions)
		sched_spend(&noisy,
			    (int64_t)questions * SCHED_COST_QUESTION);
	return sched_has_credit(&noisy);
}

static void other_turn(void *arg)
{
	(void)arg;
	sched_spend(&other, SCHED_COST_CALL);
	served++;
}

static int setup(void **state)
{
	door_due = on_due;
	door_spend = on_spend;
	assert_int_equal(sched_new(base, &sched), 0);
	sched_queue_init(&noisy, sched);
	sched_queue_init(&other, sched);
	sched_work_init(&noisy_work, door_turn, NULL);
	sched_work_init(&other_work, other_turn, NULL);
	served = 0;
	return door_setup(state);
}

static int teardown(void **state)
{
	int err = door_teardown(state);

	sched_cancel(&noisy_work);
	sched_cancel(&other_work);
	sched_queue_done(&noisy);
	sched_queue_done(&other);
	sched_free(sched);
	door_due = NULL;
	door_spend = NULL;
	return err;
}

/* Once round, with something for the other one to do; how much was done. */
static unsigned turn_once(void)
{
	uint64_t before = noisy.spent;
	unsigned done;

	sched_run(&other, &other_work);
	assert_true(event_base_loop(base, EVLOOP_ONCE | EVLOOP_NONBLOCK) >= 0);
	done = (unsigned)((noisy.spent - before) / SCHED_COST_QUESTION);
	/* In a turn of the loop there are two shares at most: the end of one
	 * round and the beginning of the next. */
	assert_in_range(done, 0, 2 * (SHARE + BEYOND));
	return done;
}

static unsigned answers(int fd)
{
	uint8_t p[DNS_MSG_MAX];
	unsigned n = 0;

	while (recv(fd, p, sizeof(p), MSG_DONTWAIT) > 0)
		n++;
	return n;
}

static void flood(struct msg *m)
{
	question(m, "no.example.net", DNS_TYPE_A, false);
	for (unsigned i = 0; i < FLOOD; i++)
		tell(client, m);
}

/* Work is counted as it is answered, so none is done for nothing. */
static void datagrams_are_answered_by_the_share(void **state)
{
	unsigned got, turns = 0, sum = 0;
	struct msg m;

	(void)state;
	flood(&m);
	/* The whole of it is there, and the first turn ends at the share. */
	(void)turn_once();
	got = answers(client);
	assert_in_range(got, 1, SHARE + BEYOND);
	for (sum = got; sum < FLOOD; turns++) {
		unsigned before = served;

		(void)turn_once();
		assert_int_equal(served, before + 1);
		sum += answers(client);
	}
	assert_int_equal(sum, FLOOD);
	assert_true(turns >= 1);
}

/* One after the other in a stream: small, so that one read brings hundreds. */
static void messages_of_a_stream_are_answered_by_the_share(void **state)
{
	static uint8_t out[64 << 10], in[128 << 10];
	int fd = connected(SOCK_STREAM, ASKED);
	uint64_t before;
	struct msg m;
	size_t n = 0, sum = 0, at = 0;
	unsigned got = 0;

	(void)state;
	question(&m, "no.example.net", DNS_TYPE_A, false);
	for (unsigned i = 0; i < FLOOD; i++) {
		dns_put16(out + n, (uint16_t)m.n);
		memcpy(out + n + 2, m.p, m.n);
		n += 2 + m.n;
	}
	assert_int_equal(send(fd, out, n, MSG_NOSIGNAL), (ssize_t)n);
	before = noisy.spent;
	while (got < FLOOD) {
		ssize_t more;

		(void)turn_once();
		more = recv(fd, in + sum, sizeof(in) - sum, MSG_DONTWAIT);
		assert_int_not_equal(more, 0);
		sum += more > 0 ? (size_t)more : 0;
		/* A prefix says how long each is. */
		while (sum - at > 2 && sum - at >= 2u + dns_get16(in + at)) {
			at += 2u + dns_get16(in + at);
			got++;
		}
	}
	assert_in_range((noisy.spent - before) / SCHED_COST_QUESTION, FLOOD,
			2 * FLOOD);
	close(fd);
}

static void a_question_of_one_who_asks_little_is_answered_at_once(void **state)
{
	struct msg m;

	(void)state;
	question(&m, "no.example.net", DNS_TYPE_A, false);
	for (unsigned i = 0; i < 5; i++) {
		tell(client, &m);
		assert_in_range(turn_once(), 1, 2);
		assert_int_equal(answers(client), 1);
	}
}

static void what_is_left_waits_for_its_turn_and_is_not_lost(void **state)
{
	struct msg m;

	(void)state;
	flood(&m);
	(void)turn_once();
	/* The door goes with what waits. */
	reopen(policy, 1 << 20, log_file());
	(void)turn_once();
	tell(client, &m);
	for (unsigned i = 0; answers(client) == 0; i++) {
		assert_in_range(i, 0, 4);
		(void)turn_once();
	}
}

static void send_stream(int fd, const struct msg *m)
{
	uint8_t out[2 + sizeof(m->p)];

	dns_put16(out, (uint16_t)m->n);
	memcpy(out + 2, m->p, m->n);
	assert_int_equal(send(fd, out, 2 + m->n, MSG_NOSIGNAL),
			 (ssize_t)(2 + m->n));
}

/* While it changes hands: by datagram, by a connection that is there, and by
 * one that is new. */
static void a_frozen_door_answers_nothing_and_loses_nothing(void **state)
{
	int old = connected(SOCK_STREAM, ASKED), fresh;
	uint8_t in[DNS_MSG_MAX];
	struct msg m;

	(void)state;
	question(&m, "no.example.net", DNS_TYPE_A, false);
	send_stream(old, &m);
	while (recv(old, in, sizeof(in), MSG_DONTWAIT) < 0)
		(void)turn_once();
	/* Some of it is read, and waits for its turn. */
	flood(&m);
	(void)turn_once();
	dns_door_freeze(door);
	(void)answers(client);
	fresh = connected(SOCK_STREAM, ASKED);
	send_stream(old, &m);
	send_stream(fresh, &m);
	for (unsigned i = 0; i < 20; i++) {
		(void)turn_once();
		assert_int_equal(answers(client), 0);
		assert_true(recv(old, in, sizeof(in), MSG_DONTWAIT) < 0);
		assert_true(recv(fresh, in, sizeof(in), MSG_DONTWAIT) < 0);
	}
	assert_int_equal(dns_door_waiting(door), 0);
	dns_door_thaw(door);
	for (unsigned sum = 0; sum < FLOOD - (SHARE + BEYOND);
	     sum += answers(client))
		(void)turn_once();
	while (recv(old, in, sizeof(in), MSG_DONTWAIT) < 0)
		(void)turn_once();
	while (recv(fresh, in, sizeof(in), MSG_DONTWAIT) < 0)
		(void)turn_once();
	close(old);
	close(fresh);
}

#define TURN(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TURN(datagrams_are_answered_by_the_share),
		TURN(messages_of_a_stream_are_answered_by_the_share),
		TURN(a_question_of_one_who_asks_little_is_answered_at_once),
		TURN(what_is_left_waits_for_its_turn_and_is_not_lost),
		TURN(a_frozen_door_answers_nothing_and_loses_nothing),
	};

	return door_lab_run(tests, ARRAY_SIZE(tests));
}
