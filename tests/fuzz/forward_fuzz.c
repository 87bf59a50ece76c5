/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_fuzz.c - the HTTP engine between a program and origins that say and
 *                  do anything, in any order
 *
 * The input is a script: a byte for the way in, and whether what lies between is
 * bare sockets, then a byte that says who does what, a byte with a length for
 * those who speak, and their words.  Whatever happens, the engine keeps
 * its promises to its owner: one end, every connection told closed or handed
 * over once, one record for each request.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <event2/event.h>

#include "base/mem.h"
#include "proxy/forward.h"
#include "tests/unit/choppy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define TURNS		6
#define STEPS_MAX	64

enum act {
	ACT_APP_SAYS, ACT_NET_SAYS, ACT_APP_READS, ACT_NET_READS,
	ACT_APP_SHUTS, ACT_NET_SHUTS, ACT_APP_CLOSES, ACT_NET_CLOSES,
	ACT_DIAL_FAILS, ACT_DIAL_WAITS, ACT_DIAL_ENDS, ACT_CUT,

	ACTS
};

static struct {
	struct event_base *base;
	struct forward *f;
	int app, net;			/* the ends of others */
	struct stream engine_app;
	struct stream pooled;		/* left whole by the engine, or none */
	struct stream (*layer)(int fd);
	bool dial_fails, dial_waits;	/* what the next dial does */
	bool dialling;			/* no result yet */
	bool net_open;			/* dialled, and not told closed */
	bool over;
	unsigned dials, records;
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

static void dial_ends(void)
{
	REQUIRE(w.dialling);
	w.dialling = false;
	if (w.dial_fails) {
		forward_dial_failed(w.f, REASON_CONNECT_REFUSED);
		return;
	}
	close_fd(&w.net);
	w.net_open = true;
	forward_dialed(w.f, w.layer(pair(&w.net)), 0);
}

static void op_judge(void *arg, const struct forward_target *to,
		     struct rules_request *request, struct rules_answer *ret)
{
	(void)arg;
	REQUIRE(request->method.n > 0 && request->target.n > 0);
	REQUIRE(to->kind != HOST_BAD && to->port != 0);
	ret->reason = to->kind == HOST_NAME && to->name.p[0] == 'd' ?
		REASON_HOST_NOT_ALLOWED : REASON_ALLOWED;
}

static void op_dial(void *arg, const struct forward_target *to, bool fresh)
{
	struct rules_answer answer = { .reason = REASON_ALLOWED };
	struct rules_request request = {
		.method = STR("GET"), .target = STR("/"),
	};

	(void)arg;
	REQUIRE(!w.dialling && !w.net_open);
	op_judge(NULL, to, &request, &answer);
	REQUIRE(answer.reason == REASON_ALLOWED);
	w.dials++;
	if (stream_is_open(&w.pooled) && !fresh) {
		w.net_open = true;
		forward_dial_found(w.f, stream_take(&w.pooled), 0);
		return;
	}
	stream_close(&w.pooled);
	w.dialling = true;
	if (!w.dial_waits)
		dial_ends();
}

static void op_dial_cancel(void *arg)
{
	(void)arg;
	REQUIRE(w.dialling);
	w.dialling = false;
}

static void op_net_closed(void *arg, enum reason why, uint64_t up,
			  uint64_t down)
{
	(void)arg;
	(void)why;
	(void)up;
	(void)down;
	REQUIRE(w.net_open);
	w.net_open = false;
}

static bool op_net_idle(void *arg, struct stream *net, uint64_t up,
			uint64_t down)
{
	(void)arg;
	REQUIRE(w.net_open && down > 0 && up > 0 &&
		!stream_is_open(&w.pooled));
	w.net_open = false;
	w.pooled = stream_take(net);
	return true;
}

static void op_record(void *arg, struct record *r)
{
	(void)arg;
	REQUIRE(r->event == RECORD_HTTP && reason_info(r->reason));
	w.records++;
}

static void over(void)
{
	REQUIRE(!w.over && !w.dialling);
	w.over = true;
	forward_free(w.f);
	w.f = NULL;
}

static void op_tunnel(void *arg, struct stream net, struct str up,
		      struct str down, uint64_t bytes_up, uint64_t bytes_down)
{
	(void)arg;
	(void)up;
	REQUIRE(w.net_open && down.n > 0 && bytes_up > 0 && bytes_down > 0);
	w.net_open = false;
	stream_close(&net);
	over();
}

static void op_finish(void *arg, enum reason why, bool reset)
{
	(void)arg;
	(void)why;
	(void)reset;
	REQUIRE(!w.net_open);
	over();
	stream_close(&w.engine_app);
}

static void op_times(void *arg, struct forward_times *ret)
{
	(void)arg;
	(void)ret;
}

static const struct forward_ops ops = {
	.judge = op_judge, .dial = op_dial, .dial_cancel = op_dial_cancel,
	.net_closed = op_net_closed, .net_idle = op_net_idle,
	.record = op_record,
	.tunnel = op_tunnel, .times = op_times, .finish = op_finish,
};

static void turn(void)
{
	for (int i = 0; i < TURNS; i++)
		event_base_loop(w.base, EVLOOP_NONBLOCK);
}

static void begin(uint8_t mode)
{
	struct forward_config config = {
		.base = w.base, .mode = (mode & 3) % 3, .policy = "p", .run = "r",
		.ops = &ops, .early = STR_NONE, .outlives = mode & 4,
		.limits = { .head_ms = 600000, .idle_ms = 600000,
			    .net_idle_ms = 600000, .linger_ms = 600000 },
	};

	w.net = -1;
	w.pooled = STREAM_NONE;
	w.layer = mode & 8 ? choppy_stream : stream_plain;
	w.engine_app = w.layer(pair(&w.app));
	config.app = w.engine_app;
	if (config.mode != FORWARD_EXPLICIT)
		config.pinned.port = 80;
	if (config.mode == FORWARD_PINNED) {
		config.pinned.kind = HOST_NAME;
		REQUIRE(host_name_parse(STR("a.example.com"),
					&config.pinned.name) == 0);
	}
	REQUIRE(forward_start(&config, &w.f) == 0);
}

static void speak(int fd, struct str text)
{
	if (fd >= 0 && text.n)
		(void)!send(fd, text.p, text.n, MSG_NOSIGNAL);
}

static void read_all(int fd)
{
	static char waste[1 << 16];

	while (fd >= 0 && recv(fd, waste, sizeof(waste), 0) > 0)
		turn();
}

static void cut(void)
{
	if (!w.f)
		return;
	forward_cut(w.f, REASON_RUN_ENDED);
	REQUIRE(!w.net_open && !w.dialling);
	forward_free(w.f);
	w.f = NULL;
}

static void step(enum act act, struct str text)
{
	switch (act) {
	case ACT_APP_SAYS:
		speak(w.app, text);
		break;
	case ACT_NET_SAYS:
		speak(w.net, text);
		break;
	case ACT_APP_READS:
		read_all(w.app);
		break;
	case ACT_NET_READS:
		read_all(w.net);
		break;
	case ACT_APP_SHUTS:
		if (w.app >= 0)
			shutdown(w.app, SHUT_WR);
		break;
	case ACT_NET_SHUTS:
		if (w.net >= 0)
			shutdown(w.net, SHUT_WR);
		break;
	case ACT_APP_CLOSES:
		close_fd(&w.app);
		break;
	case ACT_NET_CLOSES:
		close_fd(&w.net);
		break;
	case ACT_DIAL_FAILS:
		w.dial_fails = !w.dial_fails;
		break;
	case ACT_DIAL_WAITS:
		w.dial_waits = !w.dial_waits;
		break;
	case ACT_DIAL_ENDS:
		if (w.dialling)
			dial_ends();
		break;
	case ACT_CUT:
		cut();
		break;
	case ACTS:
		break;
	}
	turn();
}

static void play(struct str script)
{
	for (int i = 0; i < STEPS_MAX && script.n > 0 && !w.over; i++) {
		enum act act = (uint8_t)script.p[0] % ACTS;
		struct str text = STR_NONE;
		size_t used = 1;

		if (act <= ACT_NET_SAYS && script.n > 1) {
			size_t n = (uint8_t)script.p[1] * 4u;

			text = str_make(script.p + 2, MIN(n, script.n - 2));
			used = 2 + text.n;
		}
		script = str_make(script.p + used, script.n - used);
		step(act, text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n == 0)
		return 0;
	memset(&w, 0, sizeof(w));
	w.base = event_base_new();
	REQUIRE(w.base);
	begin(data[0]);
	play(str_make(data + 1, n - 1));
	cut();
	close_fd(&w.app);
	stream_close(&w.engine_app);
	close_fd(&w.net);
	stream_close(&w.pooled);
	/* A retry is a second dial for one request, never more. */
	REQUIRE(w.dials <= 2 * w.records);
	REQUIRE(choppy.open == 0);
	event_base_free(w.base);
	return 0;
}
