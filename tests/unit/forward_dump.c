/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_dump.c - say what the HTTP engine forwards, for the differential test
 *
 * Standard input: cases, each a line "MODE N M" (MODE of enum forward_mode),
 * N bytes that the client says before it ends its half, and M bytes that the
 * first origin answers with before it ends its own; where M is 0 it gives a
 * good answer to whatever comes.  Later origins always do.
 *
 * Standard output: a line of words for each case:
 *	R:ACT:REASON:METHOD:PATH:STATUS		a record, PATH in hex; ACT is
 *						"own" where nobody else was asked
 *	N:HEX					what one origin was sent
 *	A:HEX					what the client was sent
 *	E:END					fin, reset, or tunnel
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/mem.h"
#include "proxy/forward.h"

#define SAID_MAX	(1u << 20)
#define TURNS		4
#define GOOD		STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

static struct {
	struct event_base *base;
	struct forward *f;
	struct str answer;		/* of the first origin; or empty */
	int app, engine_app, net;
	struct buf app_heard, net_heard;
	size_t answered;		/* of @net_heard: what had an answer */
	bool over, tunnel, reset;
} w;

static int pair(int *ret_ours)
{
	int fd[2];

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
			   0, fd) == 0);
	*ret_ours = fd[1];
	return fd[0];
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* True: something came. */
static bool hear(int fd, struct buf *to)
{
	size_t before = to->n;

	while (fd >= 0) {
		ssize_t n;

		REQUIRE(buf_reserve(to, 4096) == 0);
		n = recv(fd, to->p + to->n, 4096, 0);
		if (n <= 0)
			break;
		to->n += (size_t)n;
	}
	return to->n > before;
}

static void print_hex(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		printf("%02x", (unsigned char)s.p[i]);
}

static void net_over(void)
{
	if (w.net < 0)
		return;
	hear(w.net, &w.net_heard);
	printf("N:");
	print_hex(buf_str(&w.net_heard));
	printf(" ");
	buf_reset(&w.net_heard);
	w.answered = 0;
	w.answer = STR_NONE;
	close_fd(&w.net);
}

/* None is short enough to be met here. */
static void op_times(void *arg, struct forward_times *ret)
{
	(void)arg;
	*ret = (struct forward_times){ 0 };
}

static void op_judge(void *arg, const struct forward_target *to,
		     struct rules_request *request, struct rules_answer *ret)
{
	(void)arg;
	(void)to;
	(void)request;
	ret->reason = REASON_ALLOWED;
}

static void op_dial(void *arg, const struct forward_target *to, bool fresh)
{
	(void)arg;
	(void)to;
	(void)fresh;
	net_over();
	forward_dialed(w.f, stream_plain(pair(&w.net)), clock_mono_ms());
}

static void op_dial_cancel(void *arg)
{
	(void)arg;
}

static void op_net_closed(void *arg, enum reason why, uint64_t up,
			  uint64_t down)
{
	(void)arg;
	(void)why;
	(void)up;
	(void)down;
	net_over();
}

static bool op_net_idle(void *arg, struct stream *net, uint64_t up,
			uint64_t down)
{
	(void)arg;
	(void)net;
	(void)up;
	(void)down;
	return false;
}

static const char *act_word(const struct record *r)
{
	switch (r->act) {
	case RECORD_ALLOW:
		return r->bytes_up ? "allow" : "own";
	case RECORD_DENY:
		return "deny";
	case RECORD_ACT_NONE:
	case RECORD_WOULD_DENY:
	case RECORD_ERROR:
		break;
	}
	return "error";
}

static void op_record(void *arg, struct record *r)
{
	(void)arg;
	printf("R:%s:%s:%.*s:", act_word(r),
	       reason_word(r->reason), STR_ARG(r->method));
	print_hex(r->path);
	printf(":%d ", r->status);
}

static void op_tunnel(void *arg, struct stream net, struct str up,
		      struct str down, uint64_t bytes_up, uint64_t bytes_down)
{
	(void)arg;
	(void)up;
	(void)bytes_up;
	(void)bytes_down;
	REQUIRE(send(w.engine_app, down.p, down.n, MSG_NOSIGNAL) ==
		(ssize_t)down.n);
	stream_close(&net);
	net_over();
	w.tunnel = w.over = true;
}

static void op_finish(void *arg, enum reason why, bool reset)
{
	(void)arg;
	(void)why;
	w.reset = reset;
	w.over = true;
}

static const struct forward_ops ops = {
	.judge = op_judge, .dial = op_dial, .dial_cancel = op_dial_cancel,
	.net_closed = op_net_closed, .net_idle = op_net_idle,
	.record = op_record, .tunnel = op_tunnel, .times = op_times,
	.finish = op_finish,
};

static void begin(enum forward_mode mode)
{
	struct forward_config config = {
		.base = w.base, .mode = mode, .policy = "p", .run = "r",
		.ops = &ops, .early = STR_NONE,
	};

	w.engine_app = pair(&w.app);
	w.net = -1;
	w.over = w.tunnel = w.reset = false;
	config.app = stream_plain(w.engine_app);
	if (mode != FORWARD_EXPLICIT)
		config.pinned.port = 80;
	if (mode == FORWARD_PINNED) {
		config.pinned.kind = HOST_NAME;
		REQUIRE(host_name_parse(STR("a.example.com"),
					&config.pinned.name) == 0);
	}
	REQUIRE(forward_start(&config, &w.f) == 0);
}

/* The origin has heard all there is, and says its piece. */
static bool origin_answers(void)
{
	struct str answer = w.answer.n ? w.answer : GOOD;

	if (w.net < 0 || w.net_heard.n == w.answered)
		return false;
	w.answered = w.net_heard.n;
	(void)!send(w.net, answer.p, answer.n, MSG_NOSIGNAL);
	if (w.answer.n)
		shutdown(w.net, SHUT_WR);
	return true;
}

static void play(struct str said)
{
	bool moved = true;

	REQUIRE(send(w.app, said.p, said.n, MSG_NOSIGNAL) ==
		(ssize_t)said.n);
	shutdown(w.app, SHUT_WR);
	while (moved && !w.over) {
		moved = false;
		for (int i = 0; i < TURNS && !w.over; i++) {
			event_base_loop(w.base, EVLOOP_NONBLOCK);
			if (hear(w.net, &w.net_heard) ||
			    hear(w.app, &w.app_heard))
				moved = true;
		}
		if (!moved && !w.over)
			moved = origin_answers();
	}
}

static void end(void)
{
	if (!w.over)
		forward_cut(w.f, REASON_RUN_ENDED);
	net_over();
	forward_free(w.f);
	hear(w.app, &w.app_heard);
	printf("A:");
	print_hex(buf_str(&w.app_heard));
	printf(" E:%s\n", w.tunnel ? "tunnel" :
			  w.reset || !w.over ? "reset" : "fin");
	buf_reset(&w.app_heard);
	close_fd(&w.app);
	close_fd(&w.engine_app);
}

static char *read_bytes(size_t n)
{
	char *p = mem_new(n + 1);

	REQUIRE(p && fread(p, 1, n, stdin) == n);
	return p;
}

int main(void)
{
	unsigned mode, n, m;

	w.base = event_base_new();
	w.app_heard = BUF_INIT(SAID_MAX);
	w.net_heard = BUF_INIT(SAID_MAX);
	REQUIRE(w.base);
	while (scanf("%u %u %u", &mode, &n, &m) == 3 && getchar() == '\n') {
		char *said = read_bytes(n), *answer = read_bytes(m);

		w.answer = str_make(answer, m);
		begin(mode);
		play(str_make(said, n));
		end();
		mem_free(said);
		mem_free(answer);
	}
	buf_done(&w.app_heard);
	buf_done(&w.net_heard);
	event_base_free(w.base);
	return 0;
}
