/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_end_test.c - WebSocket, limits, and ends from outside
 */
#include "base/clock.h"
#include "base/mem_account.h"
#include "tests/unit/forward_kit.h"

/* --- WebSocket ------------------------------------------------------------------- */

/* The example of RFC 6455 1.3. */
#define WS_KEY	"Sec-WebSocket-Version: 13\r\n" \
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
#define WS_ACCEPT "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
#define ASK_WS	"GET /ws HTTP/1.1\r\n" H "Upgrade: WebSocket\r\n" \
	"Connection: keep-alive, Upgrade\r\n" WS_KEY "\r\n"
#define SENT_WS	"GET /ws HTTP/1.1\r\n" H "Upgrade: websocket\r\n" \
	WS_KEY VIA "Connection: Upgrade\r\n\r\n"
#define AGREED	"HTTP/1.1 101 Switching Protocols\r\n" \
	"Upgrade: websocket\r\nConnection: Upgrade\r\n"

static void tun_17_a_websocket_becomes_a_tunnel_with_all_bytes(void **state)
{
	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start_with(ASK_WS "early");
	expect(t.origin[0], SENT_WS);
	say(t.origin[0], AGREED WS_ACCEPT "\r\nframe");
	expect_notes("dial a.example.com:80\n"
		     "allow allowed GET a.example.com:80 /ws 101\n"
		     "tunnel\n");
	assert_true(str_eq(buf_str(&t.tunnel_up), STR("early")));
	assert_true(str_eq(buf_str(&t.tunnel_down),
			   STR("HTTP/1.1 101 Switching Protocols\r\n"
			       "Upgrade: websocket\r\n"
			       WS_ACCEPT VIA
			       "Connection: Upgrade\r\n\r\nframe")));
	/* The net half is the owner's, open. */
	assert_int_equal(send(t.tunnel_net, "x", 1, MSG_NOSIGNAL), 1);
	expect(t.origin[0], "x");
}

static void a_websocket_that_is_declined_is_an_ordinary_answer(void **state)
{
	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start_with(ASK_WS);
	hear(t.origin[0]);
	say(t.origin[0], OK_2);
	expect(t.app, SENT_2);
}

static void a_101_to_another_protocol_is_an_error(void **state)
{
	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start_with(ASK_WS);
	hear(t.origin[0]);
	say(t.origin[0], "HTTP/1.1 101 x\r\nUpgrade: h2c\r\n"
	    "Connection: Upgrade\r\n\r\n");
	expect_refusal(502, false);
}

/* A server that can be made to say 101 has not agreed to anything. */
static void a_101_that_does_not_answer_the_key_is_an_error(void **state)
{
	static const char *const said[] = {
		AGREED "\r\n",
		AGREED "Sec-WebSocket-Accept: x\r\n\r\n",
		AGREED WS_ACCEPT WS_ACCEPT "\r\n",
		AGREED "Sec-WebSocket-Accept: S3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"
		"\r\n",
		AGREED "Upgrade: websocket\r\n" WS_ACCEPT "\r\n",
	};

	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	start();
	for (unsigned i = 0; i < ARRAY_SIZE(said); i++) {
		say(t.app, ASK_WS);
		hear(t.origin[i]);
		say(t.origin[i], said[i]);
		expect_refusal(502, false);
	}
}

/* It goes on as the plain request that it may as well be. */
static void what_is_not_quite_a_handshake_is_not_passed_as_one(void **state)
{
	static const char *const asked[] = {
		"Sec-WebSocket-Version: 13\r\n",
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
		"Sec-WebSocket-Version: 12\r\n"
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: k\r\n",
		"Sec-WebSocket-Version: 13\r\n"
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=x\r\n",
		"Sec-WebSocket-Version: 13\r\n"
		"Sec-WebSocket-Key: dGhl!HNhbXBsZSBub25jZQ==\r\n",
		WS_KEY "Sec-WebSocket-Version: 13\r\n",
		WS_KEY "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
		WS_KEY "Content-Length: 1\r\n",
	};
	char text[512];

	(void)state;
	pin(FORWARD_PINNED, "a.example.com", 80);
	for (unsigned i = 0; i < ARRAY_SIZE(asked); i++) {
		int n = snprintf(text, sizeof(text), "GET / HTTP/1.1\r\n" H
				 "Connection: Upgrade\r\n"
				 "Upgrade: websocket\r\n%s\r\n", asked[i]);

		assert_true(n > 0 && n < (int)sizeof(text));
		start_with(text);
		assert_null(strstr(hear(t.origin[0]),
				   "Upgrade"));
		say(t.origin[0], AGREED WS_ACCEPT "\r\n");
		assert_int_equal(strncmp(hear(t.app), "HTTP/1.1 502 ", 13), 0);
		forward_kit_close(state);
		forward_kit_open(state);
		pin(FORWARD_PINNED, "a.example.com", 80);
	}
}

/* --- limits ------------------------------------------------------------------------ */

/* Until the engine has nothing more to say, or has ended. */
static void wait_for_limits(void)
{
	for (int i = 0; i < 4 && !t.over; i++)
		event_base_loop(t.base, EVLOOP_ONCE);
}

static void http_27_a_slow_head_is_408(void **state)
{
	(void)state;
	t.config.limits.head_ms = 1;
	t.config.limits.linger_ms = 1;
	start_with("GET http://a.exam");
	wait_for_limits();
	expect_refusal(408, true);
	expect_notes("deny header_timeout  :0  408\n"
		     "finish header_timeout\n");
}

static void an_idle_connection_is_closed_without_a_word(void **state)
{
	(void)state;
	t.config.limits.idle_ms = 1;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	assert_true(send(t.origin[0], OK_2, strlen(OK_2), 0) > 0);
	wait_for_limits();
	expect(t.app, SENT_2);
	expect_notes("dial a.example.com:80\n"
		     "allow allowed GET a.example.com:80 / 200\n"
		     "net client_closed\nfinish client_closed\n");
}

static void a_kept_origin_is_let_go_before_the_client(void **state)
{
	(void)state;
	t.config.limits.net_idle_ms = 1;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	assert_true(send(t.origin[0], OK_2, strlen(OK_2), 0) > 0);
	for (int i = 0; i < 100 && forward_net_target(t.f); i++)
		event_base_loop(t.base, EVLOOP_ONCE);
	assert_null(forward_net_target(t.f));
	expect(t.app, SENT_2);
	expect_end(t.origin[0]);
	say(t.app, "GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	assert_int_equal(t.dials, 2);
}

static void who_has_gone_holds_no_origin_that_is_silent(void **state)
{
	bool closes;

	(void)state;
	t.config.limits.gone_ms = 1;
	t.config.limits.linger_ms = 1;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	turn();
	expect_notes("dial a.example.com:80\n");
	assert_int_equal(shutdown(t.app, SHUT_WR), 0);
	turn();
	clock_test_set_ms(1000);
	for (int i = 0; i < 100 && !t.over; i++)
		event_base_loop(t.base, EVLOOP_ONCE);
	assert_int_equal(refusal_status(&closes), 503);
	expect_end(t.app);
	expect_end(t.origin[0]);
	expect_notes("net idle_timeout\n"
		     "deny idle_timeout GET a.example.com:80 / 503\n"
		     "finish client_closed\n");
}

/* An answer that is all here, most of it in the engine, for app to take. */
#define LARGE	50000

static void answer_that_waits(const char *request)
{
	static char answer[LARGE];
	int small = 1024, n;

	assert_int_equal(setsockopt(t.engine_app, SOL_SOCKET, SO_SNDBUF,
				    &small, sizeof(small)), 0);
	start_with(request);
	hear(t.origin[0]);
	memset(answer, 'x', sizeof(answer));
	n = snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\n"
		     "Content-Length: %d\r\n\r\n", LARGE - 42);
	assert_int_equal(n, 42);
	answer[n] = 'x';
	say_bytes(t.origin[0], answer, sizeof(answer));
}

static void an_answer_that_nobody_takes_is_not_kept_for_ever_OPS_03(
	void **state)
{
	(void)state;
	t.times.stall_ms = 4;
	answer_that_waits("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n"
			  "GET http://a.example.com/2 HTTP/1.1\r\n" H "\r\n");
	for (int i = 0; i < 20 && !t.over; i++)
		event_base_loop(t.base, EVLOOP_ONCE);
	assert_false(t.over);
	clock_test_set_ms(1000);
	for (int i = 0; i < 20 && !t.over; i++)
		event_base_loop(t.base, EVLOOP_ONCE);
	/* The next request was not looked at. */
	expect_notes("dial a.example.com:80\n"
		     "allow allowed GET a.example.com:80 / 200\n"
		     "net idle_timeout\nfinish idle_timeout reset\n");
}

/* How long a head may take says nothing of an answer (OPS-04). */
static void an_answer_that_is_taken_slowly_comes_to_its_end_OPS_04(void **state)
{
	char *got;

	(void)state;
	t.config.limits.head_ms = t.config.limits.idle_ms = 1;
	t.times.stall_ms = 4;
	t.config.limits.linger_ms = 1;
	answer_that_waits("GET http://a.example.com/ HTTP/1.1\r\n" H
			  "Connection: close\r\n\r\n");
	for (int i = 0; i < 20 && !t.over; i++)
		event_base_loop(t.base, EVLOOP_ONCE);
	assert_false(t.over);
	got = strstr(hear(t.app), "\r\n\r\n");
	expect_notes("dial a.example.com:80\n"
		     "allow allowed GET a.example.com:80 / 200\n"
		     "net client_closed\n");
	assert_non_null(got);
	assert_int_equal(strlen(got + 4), LARGE - 42);
}

static void lingering_ends_by_itself(void **state)
{
	(void)state;
	t.config.limits.linger_ms = 1;
	start_with("GET / HTTP/3.0\r\n\r\n");
	wait_for_limits();
	expect_notes("deny version_not_supported  :0  505\n"
		     "finish version_not_supported\n");
}

/* --- ends from outside ---------------------------------------------------------- */

static void a_cut_records_what_was_in_flight_and_is_silent_after(void **state)
{
	(void)state;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	hear(t.origin[0]);
	forward_cut(t.f, REASON_RUN_ENDED);
	expect_notes("dial a.example.com:80\n"
		     "error run_ended GET a.example.com:80 / 0\n"
		     "net run_ended\n");
	say(t.app, "GET ");
	expect_notes("");
	expect_end(t.origin[0]);
}

static void a_cut_during_a_dial_cancels_it(void **state)
{
	(void)state;
	t.dial_later = true;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	forward_cut(t.f, REASON_RUN_ENDED);
	expect_notes("dial a.example.com:80\ndial cancelled\n"
		     "error run_ended GET a.example.com:80 / 0\n");
}

static void a_cut_between_dial_and_its_result_closes_the_socket(void **state)
{
	(void)state;
	t.dial_later = true;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	forward_dialed(t.f, stream_plain(nonblocking_pair(&t.origin[0])),
		       clock_mono_ms());
	forward_cut(t.f, REASON_RUN_ENDED);
	expect_notes("dial a.example.com:80\n"
		     "error run_ended GET a.example.com:80 / 0\n"
		     "net run_ended\n");
	expect_end(t.origin[0]);
}

static void freeing_at_any_time_leaves_nothing_open(void **state)
{
	(void)state;
	t.dial_later = true;
	start_with("GET http://a.example.com/ HTTP/1.1\r\n" H "\r\n");
	forward_dialed(t.f, stream_plain(nonblocking_pair(&t.origin[0])),
		       clock_mono_ms());
	forward_free(t.f);
	t.f = NULL;
	expect_end(t.origin[0]);
}

static void a_start_without_memory_is_refused(void **state)
{
	struct forward *f = NULL;

	(void)state;
	t.config.early = STR("x");
	for (unsigned nth = 1; nth <= 2; nth++) {
		mem_test_fail_at(nth);
		assert_int_equal(forward_start(&t.config, &f), -ENOMEM);
		assert_null(f);
	}
	mem_test_fail_at(0);
	t.config.early.n = FORWARD_BUF + 1;
	assert_int_equal(forward_start(&t.config, &f), -EMSGSIZE);
}

static void running_out_of_memory_never_harms(void **state)
{
	static const char text[] =
		"POST http://a.example.com/ HTTP/1.1\r\n" H
		"Content-Length: 2\r\n\r\nab"
		"GET http://denied.example.net/ HTTP/1.1\r\n"
		"Host: denied.example.net\r\n\r\n";

	for (unsigned nth = 1; nth < 40; nth++) {
		start();
		mem_test_fail_at(nth);
		say(t.app, text);
		if (t.dials > 0 && t.origin[0] >= 0) {
			send(t.origin[0], OK_2, strlen(OK_2), MSG_NOSIGNAL);
			turn();
		}
		mem_test_fail_at(0);
		turn();
		assert_int_equal(forward_kit_close(state), 0);
		assert_int_equal(forward_kit_open(state), 0);
	}
}

/* --- what the kernel holds ---------------------------------------------------------- */

static int send_buffer;		/* of connections to origins */

static struct stream sized(int fd)
{
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer,
				    sizeof(send_buffer)), 0);
	return stream_plain(fd);
}

/* The program says up to @n bytes of a body, until no more is taken. */
static size_t say_body(size_t n)
{
	static const char bytes[16384];
	size_t said = 0;
	ssize_t got;

	do {
		got = n ? send(t.app, bytes, MIN(n, sizeof(bytes)),
			       MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
		said += got > 0 ? (size_t)got : 0;
		n -= got > 0 ? (size_t)got : 0;
		turn();
	} while (got > 0);
	return said;
}

/* All that has come, however much. */
static size_t swallow(int fd)
{
	char some[16384];
	size_t n = 0;
	ssize_t got;

	while ((got = recv(fd, some, sizeof(some), MSG_DONTWAIT)) > 0)
		n += (size_t)got;
	return n;
}

/* It has other buffers, and nothing has been through them yet. */
static void another_origin_is_charged_by_its_own_buffers(void **state)
{
	static struct mem_account held;
	size_t left = 1000000, once;

	(void)state;
	held = (struct mem_account){ .pot = NULL };
	t.config.memory = &held;
	t.layer = sized;
	send_buffer = 100000;
	start();
	say(t.app, "POST http://a.example.com/ HTTP/1.1\r\n" H
	    "Content-Length: 1000000\r\n\r\n");
	left -= say_body(left);
	once = held.used;
	assert_true(once > 200000 && left > 0);
	while (left || swallow(t.origin[0])) {
		(void)swallow(t.origin[0]);
		turn();
		left -= say_body(left);
	}
	say(t.origin[0], OK_2);
	hear(t.app);
	send_buffer = 200000;
	say(t.app, "POST http://b.example.com/ HTTP/1.1\r\n"
	    "Host: b.example.com\r\nContent-Length: 1000000\r\n\r\n");
	assert_true(say_body(1000000) < 1000000);
	assert_true(held.used >= once + 150000);
	forward_free(t.f);
	t.f = NULL;
	assert_int_equal(held.used, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(tun_17_a_websocket_becomes_a_tunnel_with_all_bytes),
		T(a_websocket_that_is_declined_is_an_ordinary_answer),
		T(a_101_to_another_protocol_is_an_error),
		T(a_101_that_does_not_answer_the_key_is_an_error),
		T(what_is_not_quite_a_handshake_is_not_passed_as_one),
		T(http_27_a_slow_head_is_408),
		T(an_idle_connection_is_closed_without_a_word),
		T(a_kept_origin_is_let_go_before_the_client),
		T(who_has_gone_holds_no_origin_that_is_silent),
		T(an_answer_that_nobody_takes_is_not_kept_for_ever_OPS_03),
		T(an_answer_that_is_taken_slowly_comes_to_its_end_OPS_04),
		T(lingering_ends_by_itself),
		T(a_cut_records_what_was_in_flight_and_is_silent_after),
		T(a_cut_during_a_dial_cancels_it),
		T(a_cut_between_dial_and_its_result_closes_the_socket),
		T(freeing_at_any_time_leaves_nothing_open),
		T(a_start_without_memory_is_refused),
		T(running_out_of_memory_never_harms),
		T(another_origin_is_charged_by_its_own_buffers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
