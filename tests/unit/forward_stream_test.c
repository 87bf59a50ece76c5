/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_stream_test.c - the HTTP engine on streams that are no bare sockets
 */
#include "tests/unit/choppy.h"
#include "tests/unit/forward_kit.h"

#include <string.h>

#define OPEN_NOTE	"dial a.example.com:80\n"
#define CHUNKED		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" VIA \
			"\r\n"

static int choppy_kit_open(void **state)
{
	int err = forward_kit_open(state);

	choppy = (struct choppy_world){ .open = 0 };
	t.layer = choppy_stream;
	t.config.app = choppy_stream(t.engine_app);
	return err;
}

/* All but the program's own stream, which is the owner's. */
static int choppy_kit_close(void **state)
{
	int err = forward_kit_close(state);

	if (choppy.open != 1)
		fail_msg("%u streams are open", choppy.open);
	t.config.app.fd = -1;	/* the kit closed it */
	t.config.app.ops->close(&t.config.app);
	return err;
}

#define C(name)	\
	cmocka_unit_test_setup_teardown(name, choppy_kit_open, \
					choppy_kit_close)

/* Until nothing comes of it any more: each byte takes some turns. */
static void settle(void)
{
	for (int i = 0; i < 400; i++)
		turn();
}

static void say_all(int fd, const char *text)
{
	say(fd, text);
	settle();
}

static void a_request_and_its_answer_come_through_byte_by_byte(void **state)
{
	(void)state;
	start();
	say_all(t.app, "POST http://a.example.com/x HTTP/1.1\r\n" H
		"Content-Length: 5\r\n\r\nhello");
	expect(t.origin[0], "POST /x HTTP/1.1\r\n" H "Content-Length: 5\r\n"
	       VIA "\r\nhello");
	say_all(t.origin[0], OK_2);
	expect(t.app, SENT_2);
	/* And the next, on both connections. */
	say_all(t.app, "GET http://a.example.com/y HTTP/1.1\r\n" H "\r\n");
	expect(t.origin[0], "GET /y HTTP/1.1\r\n" H VIA "\r\n");
	say_all(t.origin[0], "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked"
		"\r\n\r\n3\r\nyes\r\n0\r\n\r\n");
	expect(t.app, CHUNKED "3\r\nyes\r\n0\r\n\r\n");
	expect_notes(OPEN_NOTE
		     "allow allowed POST a.example.com:80 /x 200\n"
		     "allow allowed GET a.example.com:80 /y 200\n");
	/* Reading waited for writing, and writing for reading. */
	assert_true(choppy.waits > 10);
}

static void what_a_layer_holds_is_not_forgotten(void **state)
{
	(void)state;
	choppy.most = 100;
	start();
	/* All of it is off the socket before the first piece is taken. */
	say_all(t.app, "GET http://a.example.com/1 HTTP/1.1\r\n" H "\r\n"
		"GET http://a.example.com/2 HTTP/1.1\r\n" H "\r\n");
	expect(t.origin[0], "GET /1 HTTP/1.1\r\n" H VIA "\r\n");
	say_all(t.origin[0], OK_2);
	expect(t.app, SENT_2);
	expect(t.origin[0], "GET /2 HTTP/1.1\r\n" H VIA "\r\n");
}

/* More than all buffers hold, to an origin that reads late. */
static void a_slow_reader_stops_the_layer_and_starts_it_again(void **state)
{
	static char block[1 << 16], heard[8 * sizeof(block)];
	const size_t size = 6 * sizeof(block);
	size_t said = 0, n = 0;

	(void)state;
	choppy.most = 1500;
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (char)('a' + i % 23);
	start();
	say_all(t.app, "PUT http://a.example.com/ HTTP/1.1\r\n" H
		"Content-Length: 393216\r\n\r\n");
	hear(t.origin[0]);
	while (n < size) {
		ssize_t got;

		if (said < size) {
			size_t at = said % sizeof(block);

			got = send(t.app, block + at, sizeof(block) - at,
				   MSG_NOSIGNAL);
			said += got > 0 ? (size_t)got : 0;
		}
		settle();
		got = recv(t.origin[0], heard + n, sizeof(heard) - n, 0);
		assert_true(got > 0);
		n += (size_t)got;
	}
	assert_int_equal(n, size);
	for (size_t i = 0; i < size; i += sizeof(block))
		assert_memory_equal(heard + i, block, sizeof(block));
}

static void answer_until_the_end(bool cut)
{
	start();
	say_all(t.app, "GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	say_all(t.origin[0], "HTTP/1.1 200 OK\r\n\r\n");
	expect(t.app, CHUNKED);
	choppy.cut = cut;
	close_fd(&t.origin[0]);
	settle();
}

static void an_answer_ends_where_its_layer_said_so(void **state)
{
	(void)state;
	answer_until_the_end(false);
	expect(t.app, "0\r\n\r\n");
	expect_notes(OPEN_NOTE "allow allowed GET a.example.com:80 / 200\n"
		     "net origin_closed\n");
}

/* TLS: a FIN without a close_notify can be anybody's. */
static void http_23_an_end_that_the_layer_did_not_say_is_a_cut(void **state)
{
	(void)state;
	answer_until_the_end(true);
	expect(t.app, "");
	expect_end(t.app);
	expect_notes(OPEN_NOTE
		     "error origin_truncated GET a.example.com:80 / 200\n"
		     "net origin_truncated\n");
}

static void client_ends_in_a_body(bool cut, const char *notes)
{
	start();
	say_all(t.app, "PUT http://a.example.com/ HTTP/1.1\r\n" H
		"Content-Length: 5\r\n\r\nhe");
	hear(t.origin[0]);
	choppy.cut = cut;
	shutdown(t.app, SHUT_WR);
	settle();
	expect_notes(notes);
}

static void a_client_that_says_its_end_has_closed(void **state)
{
	(void)state;
	client_ends_in_a_body(false, OPEN_NOTE
		"allow client_closed PUT a.example.com:80 / 0\n"
		"net client_closed\nfinish client_closed\n");
}

static void a_client_that_does_not_say_it_has_broken_off(void **state)
{
	(void)state;
	client_ends_in_a_body(true, OPEN_NOTE
		"allow client_reset PUT a.example.com:80 / 0\n"
		"net client_reset\nfinish client_reset\n");
}

static void that_no_more_comes_is_said_when_it_can_be(void **state)
{
	(void)state;
	start();
	say_all(t.app, "GET http://denied.example.net/ HTTP/1.1\r\n"
		"Host: denied.example.net\r\nConnection: close\r\n\r\n");
	expect_refusal(403, true);
	shutdown(t.app, SHUT_WR);
	settle();
	expect_notes("deny host_not_allowed GET denied.example.net:80 / 403\n"
		     "finish host_not_allowed\n");
}

static void an_idle_layer_that_wants_something_is_let_go(void **state)
{
	(void)state;
	start();
	say_all(t.app, "GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	say_all(t.origin[0], OK_2);
	hear(t.origin[0]);
	expect(t.app, SENT_2);
	choppy.settles = true;
	say_all(t.origin[0], "record of a handshake");
	expect_notes(OPEN_NOTE "allow allowed GET a.example.com:80 / 200\n"
		     "net origin_closed\n");
	assert_true(choppy.waits < 1000);	/* and not asked for ever */
}

/* Its socket can be read and not written: that is no reason to ask again. */
static void a_read_that_waits_for_a_write_is_asked_when_that_can_be(
	void **state)
{
	static char block[1 << 16];
	unsigned before;

	(void)state;
	choppy.most = 1500;
	start();
	say_all(t.app, "PUT http://a.example.com/ HTTP/1.1\r\n" H
		"Content-Length: 99999999\r\n\r\n");
	while (send(t.app, block, sizeof(block), MSG_NOSIGNAL) > 0)
		settle();
	choppy.settles = true;
	before = choppy.waits;
	say_all(t.origin[0], OK_2);
	assert_in_range(choppy.waits - before, 1, 10);
	choppy.settles = false;
	hear(t.origin[0]);
	settle();
	expect(t.app, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n" VIA
	       "Connection: close\r\n\r\nok");
}

/* And one that can be written, and not read. */
static void a_write_that_waits_for_a_read_is_asked_when_that_can_be(
	void **state)
{
	unsigned before;

	(void)state;
	start();
	choppy.asks = true;
	before = choppy.waits;
	say_all(t.app, "GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	expect(t.origin[0], "");
	/* Once when it has something to say, and for each byte that is read. */
	assert_in_range(choppy.waits - before, 1, 100);
	choppy.asks = false;
	say_all(t.origin[0], OK_2);
	expect(t.origin[0], "GET / HTTP/1.1\r\n" H VIA "\r\n");
}

/* --- a bare socket -------------------------------------------------------------- */

static void a_socket_is_a_stream_of_its_own_bytes(void **state)
{
	char got[16];
	int peer;
	struct stream s = stream_plain(nonblocking_pair(&peer)), taken;

	(void)state;
	assert_true(stream_is_open(&s) && stream_is_plain(&s));
	assert_int_equal(stream_peek(&s), -EAGAIN);
	assert_int_equal(stream_read(&s, got, sizeof(got)), -EAGAIN);
	assert_int_equal(send(peer, "abc", 3, 0), 3);
	assert_int_equal(stream_peek(&s), 1);
	assert_false(stream_pending(&s));
	assert_int_equal(stream_read(&s, got, 2), 2);
	assert_int_equal(stream_read(&s, got + 2, 2), 1);
	assert_memory_equal(got, "abc", 3);
	assert_int_equal(stream_write(&s, "x", 1), 1);
	assert_int_equal(stream_shut(&s), 0);
	assert_int_equal(recv(peer, got, sizeof(got), 0), 1);
	assert_int_equal(recv(peer, got, sizeof(got), 0), 0);
	assert_int_equal(stream_write(&s, "x", 1), -EPIPE);
	taken = stream_take(&s);
	assert_false(stream_is_open(&s));
	stream_close(&s);
	shutdown(peer, SHUT_WR);
	assert_int_equal(stream_peek(&taken), 0);
	assert_int_equal(stream_read(&taken, got, 1), 0);
	stream_close(&taken);
	assert_false(stream_is_open(&taken));
	assert_int_equal(send(peer, "x", 1, MSG_NOSIGNAL), -1);
	close_fd(&peer);
}

static void a_socket_that_was_reset_is_no_end(void **state)
{
	char byte;
	int peer;
	struct stream s = stream_plain(nonblocking_pair(&peer));

	(void)state;
	assert_int_equal(stream_write(&s, "x", 1), 1);
	close_fd(&peer);	/* with a byte unread */
	assert_int_equal(stream_read(&s, &byte, 1), -ECONNRESET);
	stream_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		C(a_request_and_its_answer_come_through_byte_by_byte),
		C(what_a_layer_holds_is_not_forgotten),
		C(a_slow_reader_stops_the_layer_and_starts_it_again),
		C(an_answer_ends_where_its_layer_said_so),
		C(http_23_an_end_that_the_layer_did_not_say_is_a_cut),
		C(a_client_that_says_its_end_has_closed),
		C(a_client_that_does_not_say_it_has_broken_off),
		C(that_no_more_comes_is_said_when_it_can_be),
		C(a_read_that_waits_for_a_write_is_asked_when_that_can_be),
		C(a_write_that_waits_for_a_read_is_asked_when_that_can_be),
		C(an_idle_layer_that_wants_something_is_let_go),
		cmocka_unit_test(a_socket_is_a_stream_of_its_own_bytes),
		cmocka_unit_test(a_socket_that_was_reset_is_no_end),
	};

	return cmocka_run_group_tests_name("forward_stream", tests, NULL, NULL);
}
