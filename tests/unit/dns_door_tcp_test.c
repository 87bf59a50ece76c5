/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door_tcp_test.c - a sandbox's questions by TCP, from its side of the door
 */
#include "tests/unit/dns_door_lab.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <stdio.h>

/* --- TCP ------------------------------------------------------------------- */

static void stream_add(struct msg *s, const struct msg *m)
{
	dns_put16(s->p + s->n, (uint16_t)m->n);
	memcpy(s->p + s->n + 2, m->p, m->n);
	s->n += 2 + m->n;
}

static void stream_question(struct msg *s, const char *name, unsigned type)
{
	struct msg m;

	question(&m, name, type, true);
	stream_add(s, &m);
}

/* Read exactly @n bytes; false at the end of the stream. */
static bool stream_read(int fd, uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t got = recv(fd, p, n, MSG_DONTWAIT);

		if (got == 0 || (got < 0 && errno == ECONNRESET))
			return false;
		if (got < 0) {
			assert_int_equal(errno, EAGAIN);
			turn();
			continue;
		}
		p += got;
		n -= (size_t)got;
	}
	return true;
}

static bool stream_receive(int fd, struct reply *r)
{
	uint8_t len[2];

	if (!stream_read(fd, len, 2))
		return false;
	r->m.n = dns_get16(len);
	assert_true(r->m.n <= sizeof(r->m.p));
	assert_true(stream_read(fd, r->m.p, r->m.n));
	read_reply(r);
	return true;
}

static void dns_11_each_message_of_a_segment_is_judged(void **state)
{
	int fd = connected(SOCK_STREAM, ASKED);
	struct msg s = { .n = 0 };
	unsigned first = next_id, ok = 0;
	struct reply r;

	(void)state;
	stream_question(&s, "api.example.com", DNS_TYPE_A);
	stream_question(&s, "denied.example.net", DNS_TYPE_A);
	stream_question(&s, "v4.example.com", DNS_TYPE_A);
	tell(fd, &s);
	for (int i = 0; i < 3; i++) {
		assert_true(stream_receive(fd, &r));
		/* In any order, each as its policy says. */
		if (dns_get16(r.m.p) == first + 1) {
			assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
		} else {
			assert_int_equal(r.answers, 1);
			ok++;
		}
	}
	assert_int_equal(ok, 2);
	assert_int_equal(fake_count(upstream), 2);
	close(fd);
}

static void dns_11_a_message_may_be_split_anywhere(void **state)
{
	struct msg s = { .n = 0 };
	struct reply r;

	(void)state;
	stream_question(&s, "localhost", DNS_TYPE_A);
	stream_question(&s, "denied.example.net", DNS_TYPE_A);
	for (size_t cut = 1; cut < s.n; cut++) {
		int fd = connected(SOCK_STREAM, cut % 2 ? ASKED : "::1");

		assert_int_equal(send(fd, s.p, cut, 0), (ssize_t)cut);
		turn();
		turn_idle();
		assert_int_equal(send(fd, s.p + cut, s.n - cut, 0),
				 (ssize_t)(s.n - cut));
		assert_true(stream_receive(fd, &r));
		assert_addr(&r.addr, "127.0.0.1");
		assert_true(stream_receive(fd, &r));
		assert_int_equal(r.rcode, DNS_NXDOMAIN);
		close(fd);
		turn_idle();
	}
	assert_int_equal(door->nconns, 0);
}

static void dns_14_a_half_closed_client_gets_its_answers(void **state)
{
	int fd = connected(SOCK_STREAM, ASKED);
	struct msg s = { .n = 0 };
	struct reply r;

	(void)state;
	hold = true;
	stream_question(&s, "late.example.com", DNS_TYPE_A);
	tell(fd, &s);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	while (fake_count(upstream) == 0)
		turn();
	assert_int_equal(door->nconns, 1);
	hold = false;
	assert_true(stream_receive(fd, &r));
	assert_int_equal(r.answers, 1);
	assert_false(stream_receive(fd, &r));	/* then the end */
	assert_int_equal(door->nconns, 0);
	close(fd);
}

static void dns_14_a_client_that_leaves_leaves_nothing_behind(void **state)
{
	int fd = connected(SOCK_STREAM, ASKED);
	struct linger now = { .l_onoff = 1 };
	struct msg s = { .n = 0 };

	(void)state;
	hold = true;
	stream_question(&s, "late.example.com", DNS_TYPE_A);
	tell(fd, &s);
	while (fake_count(upstream) == 0)
		turn();
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now,
				    sizeof(now)), 0);
	close(fd);			/* a reset */
	while (door->nconns > 0)
		turn();
	assert_int_equal(door->nqueries, 1);	/* it goes on, and is recorded */
	hold = false;
	while (door->nqueries > 0)
		turn();
	LAST("\"allow\"", "\"late.example.com\"", "\"tcp\"");
}

static void many_questions_on_one_stream_are_all_answered(void **state)
{
	int fd = connected(SOCK_STREAM, ASKED);
	struct msg s = { .n = 0 };
	char name[64];
	struct reply r;
	unsigned n = 150;

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "n%u.wide.example.com", i);
		stream_question(&s, name, DNS_TYPE_A);
	}
	tell(fd, &s);
	for (unsigned i = 0; i < n; i++) {
		assert_true(stream_receive(fd, &r));
		assert_int_equal(r.answers, 1);
		assert_true(door->nqueries <= 32);	/* reading waits */
	}
	close(fd);
}

static void what_is_no_question_ends_the_stream(void **state)
{
	static const uint8_t bad[][14] = {
		{ 0, 0 }, { 0, 5, 1, 2, 3, 4, 5 },
		{ 0, 12, 0, 1, 0x80, 0, 0, 1 },		/* a response */
	};
	static const size_t sizes[] = { 2, 7, 14 };
	struct reply r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int fd = connected(SOCK_STREAM, ASKED);

		assert_int_equal(send(fd, bad[i], sizes[i], 0),
				 (ssize_t)sizes[i]);
		assert_false(stream_receive(fd, &r));
		close(fd);
	}
	assert_int_equal(door->nconns, 0);
}

/* What was asked before it is answered, then the stream ends. */
static void answers_are_not_lost_to_what_is_no_question(void **state)
{
	static const uint8_t response[14] = { 0, 12, 0, 1, 0x80, 0, 0, 1 };
	int fd = connected(SOCK_STREAM, ASKED);
	struct msg s = { .n = 0 };
	struct reply r;

	(void)state;
	hold = true;
	stream_question(&s, "late.example.com", DNS_TYPE_A);
	stream_question(&s, "localhost", DNS_TYPE_A);
	memcpy(s.p + s.n, response, sizeof(response));
	s.n += sizeof(response);
	stream_question(&s, "v4.example.com", DNS_TYPE_A);
	tell(fd, &s);
	assert_true(stream_receive(fd, &r));
	assert_addr(&r.addr, "127.0.0.1");
	hold = false;
	assert_true(stream_receive(fd, &r));
	assert_int_equal(r.answers, 1);
	assert_false(stream_receive(fd, &r));
	assert_int_equal(door->nconns, 0);
	close(fd);
}

static void fill(int fd[DNS_CONNS_MAX], const struct msg *s)
{
	for (size_t i = 0; i < DNS_CONNS_MAX; i++) {
		fd[i] = connected(SOCK_STREAM, ASKED);
		assert_int_equal(send(fd[i], s->p, s->n, 0), (ssize_t)s->n);
	}
	while (door->nconns < DNS_CONNS_MAX)
		turn();
}

static void close_all(int fd[DNS_CONNS_MAX])
{
	for (size_t i = 0; i < DNS_CONNS_MAX; i++)
		close(fd[i]);
}

static void connections_that_have_work_are_bounded(void **state)
{
	int fd[DNS_CONNS_MAX], more;
	struct msg s = { .n = 0 };
	struct reply r;

	(void)state;
	hold = true;
	stream_question(&s, "late.example.com", DNS_TYPE_A);
	fill(fd, &s);
	while (door->nqueries < DNS_CONNS_MAX)
		turn();
	more = connected(SOCK_STREAM, ASKED);
	assert_false(stream_receive(more, &r));
	assert_int_equal(door->nconns, DNS_CONNS_MAX);
	close(more);
	hold = false;
	for (size_t i = 0; i < DNS_CONNS_MAX; i++)
		assert_true(stream_receive(fd[i], &r));
	close_all(fd);
}

static void the_one_that_is_idle_for_longest_makes_room(void **state)
{
	int fd[DNS_CONNS_MAX], more;
	struct msg s = { .n = 0 };
	struct reply r;

	(void)state;
	stream_question(&s, "localhost", DNS_TYPE_A);
	fill(fd, &s);
	for (size_t i = 0; i < DNS_CONNS_MAX; i++)
		assert_true(stream_receive(fd[i], &r));
	/* The first is at work again, and the second has half a message. */
	tell(fd[0], &s);
	assert_true(stream_receive(fd[0], &r));
	assert_int_equal(send(fd[1], s.p, 5, 0), 5);
	more = connected(SOCK_STREAM, ASKED);
	tell(more, &s);
	assert_true(stream_receive(more, &r));
	assert_int_equal(door->nconns, DNS_CONNS_MAX);
	assert_false(stream_receive(fd[2], &r));
	assert_int_equal(send(fd[1], s.p + 5, s.n - 5, 0), (ssize_t)s.n - 5);
	assert_true(stream_receive(fd[1], &r));
	close(more);
	close_all(fd);
}

static void dns_14_an_idle_client_is_sent_away(void **state)
{
	struct msg s = { .n = 0 };
	struct reply r;
	int fd, busy;

	(void)state;
	door->tcp_idle_ms = 20;
	fd = connected(SOCK_STREAM, ASKED);
	stream_question(&s, "localhost", DNS_TYPE_A);
	tell(fd, &s);
	assert_true(stream_receive(fd, &r));
	/* Half a message is no work. */
	assert_int_equal(send(fd, s.p, 5, 0), 5);
	assert_false(stream_receive(fd, &r));
	close(fd);
	/* One that waits for its answer is not idle, however long that takes. */
	busy = connected(SOCK_STREAM, ASKED);
	s.n = 0;
	stream_question(&s, "silent.example.com", DNS_TYPE_A);
	tell(busy, &s);
	assert_true(stream_receive(busy, &r));
	assert_string_equal(r.why, "dns_timeout");
	assert_false(stream_receive(busy, &r));
	close(busy);
	assert_int_equal(door->nconns, 0);
}

static void closing_ends_the_streams(void **state)
{
	int fd = connected(SOCK_STREAM, ASKED);
	struct msg s = { .n = 0 };
	struct reply r;

	(void)state;
	hold = true;
	stream_question(&s, "late.example.com", DNS_TYPE_A);
	tell(fd, &s);
	while (fake_count(upstream) == 0)
		turn();
	dns_door_free(door);
	door = NULL;
	assert_false(stream_receive(fd, &r));
	LAST("\"run_ended\"", "\"tcp\"");
	close(fd);
}

/* --- clients that never read ------------------------------------------------ */

static bool is_doors(int fd)
{
	struct sockaddr_in at;
	socklen_t n = sizeof(at);

	return getsockname(fd, (struct sockaddr *)&at, &n) == 0 &&
	       at.sin_family == AF_INET && at.sin_port == htons(53);
}

/* What the kernel holds for the door's IPv4 connections, and how many. */
static size_t kernel_bytes(unsigned *ret_conns)
{
	size_t sum = 0;

	*ret_conns = 0;
	for (int fd = 3; fd < 4 * DNS_CONNS_MAX; fd++) {
		uint32_t mem[SK_MEMINFO_VARS] = { 0 };
		socklen_t n = sizeof(mem);

		if (!is_doors(fd))
			continue;
		assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_MEMINFO, mem,
					    &n), 0);
		sum += mem[SK_MEMINFO_WMEM_QUEUED] + mem[SK_MEMINFO_RMEM_ALLOC];
		++*ret_conns;
	}
	return sum;
}

/* As many questions for large answers as fit, until there is no room at all. */
static void ask_without_reading(int fd)
{
	struct msg s = { .n = 0 };
	int little = 4096;

	/* What the client itself keeps is its own. */
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &little,
				    sizeof(little)), 0);
	stream_question(&s, "large.example.com", DNS_TYPE_MX);
	for (unsigned full = 0; full < 3; turn_idle()) {
		for (full++; send(fd, s.p, s.n, MSG_DONTWAIT | MSG_NOSIGNAL) ==
		     (ssize_t)s.n; full = 0)
			;
	}
}

static void clients_that_never_read_take_bounded_memory(void **state)
{
	int fd[DNS_CONNS_MAX], honest;
	unsigned conns;
	struct msg s = { .n = 0 };
	struct reply r;

	(void)state;
	reopen("[allow a]\nhosts = large.example.com\ntypes = MX\n", 1 << 20,
	       log_file());
	for (size_t i = 0; i < DNS_CONNS_MAX; i++) {
		fd[i] = connected(SOCK_STREAM, ASKED);
		ask_without_reading(fd[i]);
		assert_true(door->tcp_out <= DNS_TCP_OUT_MAX);
	}
	assert_true(kernel_bytes(&conns) < DNS_CONNS_MAX * (256u << 10));
	assert_true(conns > DNS_CONNS_MAX / 4);
	/* Some had to go; one that reads is served. */
	assert_true(door->nconns < DNS_CONNS_MAX);
	honest = connected(SOCK_STREAM, ASKED);
	stream_question(&s, "localhost", DNS_TYPE_A);
	tell(honest, &s);
	assert_true(stream_receive(honest, &r));
	assert_int_equal(r.answers, 1);
	close(honest);
	close_all(fd);
	while (door->nconns > 0)
		turn();
	assert_int_equal(door->tcp_out, 0);
}

static unsigned shares;
static enum dns_share to_share;

static enum dns_share share(void *arg, const struct ip_endpoint *src,
			    const struct ip_addr *asked, bool tcp,
			    enum reason *ret_why)
{
	assert_ptr_equal(arg, &shares);
	shares++;
	assert_addr(&src->addr, "127.0.0.1");
	assert_addr(asked, ASKED);
	assert_true(tcp == (to_share == DNS_SHARE_REFUSE ||
			    to_share == DNS_SHARE_OK));
	*ret_why = REASON_CLIENT_QUERIES_EXCEEDED;
	return to_share;
}

/* DNS: a client that had its share is told to prove who it is, or nothing. */
static void more_than_a_clients_share_is_no_question(void **state)
{
	int udp = connected(SOCK_DGRAM, ASKED);
	int tcp = connected(SOCK_STREAM, ASKED);
	struct msg m, s = { .n = 0 };
	struct reply r;
	char byte;

	(void)state;
	door->share = share;
	door->arg = &shares;
	shares = 0;
	to_share = DNS_SHARE_SLIP;
	question(&m, "api.example.com", DNS_TYPE_A, true);
	tell(udp, &m);
	receive(udp, &r);
	assert_true(r.m.p[2] & 0x02);	/* TC */
	assert_int_equal(r.rcode, DNS_NOERROR);
	assert_int_equal(r.answers, 0);
	assert_true(r.m.n <= m.n);
	to_share = DNS_SHARE_DROP;
	tell(udp, &m);
	while (shares < 2)
		turn();
	turn_idle();
	assert_int_equal(recv(udp, &byte, 1, MSG_DONTWAIT), -1);
	/* Also what is no question: no address is told anything by it. */
	to_share = DNS_SHARE_SLIP;
	assert_int_equal(send(udp, "\0\0\0\0\0\3\0\0\0\0\0\0", 12, 0), 12);
	while (shares < 3)
		turn();
	turn_idle();
	assert_int_equal(recv(udp, &byte, 1, MSG_DONTWAIT), -1);
	to_share = DNS_SHARE_REFUSE;
	stream_question(&s, "api.example.com", DNS_TYPE_A);
	tell(tcp, &s);
	assert_true(stream_receive(tcp, &r));
	assert_no(&r, DNS_REFUSED, 18, "client_queries_exceeded");
	assert_int_equal(fake_count(upstream), 0);
	assert_int_equal(count_records("\"ev\":\"dns\""), 0);
	/* The control: on the same connection, within the share. */
	to_share = DNS_SHARE_OK;
	s.n = 0;
	stream_question(&s, "api.example.com", DNS_TYPE_A);
	tell(tcp, &s);
	assert_true(stream_receive(tcp, &r));
	assert_int_equal(r.answers, 1);
	assert_int_equal(shares, 5);
	close(udp);
	close(tcp);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DOOR_TEST(clients_that_never_read_take_bounded_memory),
		DOOR_TEST(dns_11_each_message_of_a_segment_is_judged),
		DOOR_TEST(dns_11_a_message_may_be_split_anywhere),
		DOOR_TEST(dns_14_a_half_closed_client_gets_its_answers),
		DOOR_TEST(dns_14_a_client_that_leaves_leaves_nothing_behind),
		DOOR_TEST(many_questions_on_one_stream_are_all_answered),
		DOOR_TEST(what_is_no_question_ends_the_stream),
		DOOR_TEST(answers_are_not_lost_to_what_is_no_question),
		DOOR_TEST(connections_that_have_work_are_bounded),
		DOOR_TEST(the_one_that_is_idle_for_longest_makes_room),
		DOOR_TEST(dns_14_an_idle_client_is_sent_away),
		DOOR_TEST(closing_ends_the_streams),
		DOOR_TEST(more_than_a_clients_share_is_no_question),
	};

	return door_lab_run(tests, ARRAY_SIZE(tests));
}
