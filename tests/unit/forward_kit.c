/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_kit.c - the HTTP engine's program, origins and owner in a test
 */
#include "tests/unit/forward_kit.h"

struct forward_kit t;

/* --- the owner -------------------------------------------------------------- */

static void note(const char *fmt, ...) PRINTF(1, 2);
static void note(const char *fmt, ...)
{
	char line[512];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	assert_true(n > 0 && n < (int)sizeof(line));
	assert_int_equal(buf_add(&t.notes, line, (size_t)n), 0);
}

static void op_judge(void *arg, const struct forward_target *to,
		     struct rules_request *request, struct rules_answer *ret)
{
	struct str name = host_name_str(&to->name);

	assert_ptr_equal(arg, &t);
	ret->reason = REASON_ALLOWED;
	ret->rule = "r";
	assert_true(request->method.n > 0);
	if (request->renamed)
		note("renamed %.*s %.*s\n", STR_ARG(request->method),
		     STR_ARG(request->target));
	if (to->kind != HOST_NAME || str_starts(name, STR("denied"))) {
		ret->reason = REASON_HOST_NOT_ALLOWED;
		ret->rule = NULL;
	} else if (str_starts(name, STR("watched"))) {
		ret->reason = REASON_HOST_NOT_ALLOWED;
		ret->would_deny = true;
	}
}

int nonblocking_pair(int *ret_ours)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK |
				    SOCK_CLOEXEC, 0, fd), 0);
	*ret_ours = fd[1];
	return fd[0];
}

static void op_dial(void *arg, const struct forward_target *to, bool fresh)
{
	assert_ptr_equal(arg, &t);
	if (t.pooled >= 0 && !fresh) {
		note("found %s:%u\n", to->name.p, to->port);
		forward_dial_found(t.f, stream_plain(t.pooled),
				   clock_mono_ms());
		t.pooled = -1;
		return;
	}
	note("dial %s:%u\n", to->name.p, to->port);
	if (t.dial_later)
		return;
	if (t.dial_fails != REASON_ALLOWED) {
		forward_dial_failed(t.f, t.dial_fails);
		return;
	}
	assert_true(t.dials < ORIGINS_MAX);
	forward_dialed(t.f, t.layer(
		nonblocking_pair(&t.origin[t.dials++])), clock_mono_ms());
}

static void op_dial_cancel(void *arg)
{
	assert_ptr_equal(arg, &t);
	note("dial cancelled\n");
}

static void op_net_closed(void *arg, enum reason why, uint64_t up,
			  uint64_t down)
{
	assert_ptr_equal(arg, &t);
	(void)up;
	(void)down;
	note("net %s\n", reason_word(why));
}

static bool op_net_idle(void *arg, struct stream *net, uint64_t up,
			uint64_t down)
{
	assert_ptr_equal(arg, &t);
	assert_true(up > 0 && down > 0 && t.config.outlives);
	if (t.pooled >= 0)
		return false;
	note("net idle\n");
	t.pooled = stream_take(net).fd;
	return true;
}

static void op_record(void *arg, struct record *r)
{
	char addr[IP_TEXT_SIZE] = "";

	assert_ptr_equal(arg, &t);
	assert_int_equal(r->event, RECORD_HTTP);
	if (r->dst.addr.family != IP_NONE)
		ip_addr_text(&r->dst.addr, addr);
	note("%s %s %.*s %.*s%s:%u %.*s %d%s%.*s\n",
	     r->act == RECORD_ALLOW ? "allow" :
	     r->act == RECORD_DENY ? "deny" :
	     r->act == RECORD_WOULD_DENY ? "would_deny" : "error",
	     reason_word(r->reason), STR_ARG(r->method), STR_ARG(r->host),
	     addr, r->dst.port, STR_ARG(r->path), r->status,
	     r->http_host.n ? " said " : "", STR_ARG(r->http_host));
}

static void op_tunnel(void *arg, struct stream net, struct str up,
		      struct str down, uint64_t bytes_up, uint64_t bytes_down)
{
	assert_ptr_equal(arg, &t);
	assert_true(bytes_up > 0 && bytes_down > 0);
	note("tunnel\n");
	t.tunnel_net = net.fd;
	assert_int_equal(buf_add_str(&t.tunnel_up, up), 0);
	assert_int_equal(buf_add_str(&t.tunnel_down, down), 0);
	t.over = true;
	forward_free(t.f);
	t.f = NULL;
}

static void op_finish(void *arg, enum reason why, bool reset)
{
	assert_ptr_equal(arg, &t);
	assert_false(t.over);
	note("finish %s%s\n", reason_word(why), reset ? " reset" : "");
	t.over = true;
	forward_free(t.f);
	t.f = NULL;
	close(t.engine_app);
	t.engine_app = -1;
}

static void op_times(void *arg, struct forward_times *ret)
{
	(void)arg;
	*ret = t.times;
}

static const struct forward_ops ops = {
	.judge = op_judge,
	.dial = op_dial,
	.dial_cancel = op_dial_cancel,
	.net_closed = op_net_closed,
	.net_idle = op_net_idle,
	.record = op_record,
	.tunnel = op_tunnel,
	.times = op_times,
	.finish = op_finish,
};

/* --- the conversation --------------------------------------------------------- */

int forward_kit_open(void **state)
{
	(void)state;
	memset(&t, 0, sizeof(t));
	clock_test_set_ms(0);
	t.base = event_base_new();
	assert_non_null(t.base);
	t.notes = BUF_INIT(1 << 16);
	/* Notes are taken even where memory fails the engine. */
	assert_int_equal(buf_reserve(&t.notes, 1 << 14), 0);
	t.tunnel_up = BUF_INIT(1 << 20);
	t.tunnel_down = BUF_INIT(1 << 20);
	t.tunnel_net = -1;
	t.pooled = -1;
	for (int i = 0; i < ORIGINS_MAX; i++)
		t.origin[i] = -1;
	t.layer = stream_plain;
	t.engine_app = nonblocking_pair(&t.app);
	t.config = (struct forward_config){
		.base = t.base, .app = stream_plain(t.engine_app),
		.mode = FORWARD_EXPLICIT,
		.policy = "p", .run = "r1", .ops = &ops, .arg = &t,
	};
	return 0;
}

void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

int forward_kit_close(void **state)
{
	(void)state;
	forward_free(t.f);
	for (int i = 0; i < ORIGINS_MAX; i++)
		close_fd(&t.origin[i]);
	close_fd(&t.app);
	close_fd(&t.engine_app);
	close_fd(&t.tunnel_net);
	close_fd(&t.pooled);
	buf_done(&t.notes);
	buf_done(&t.tunnel_up);
	buf_done(&t.tunnel_down);
	event_base_free(t.base);
	return 0;
}

void turn(void)
{
	for (int i = 0; i < 12; i++)
		event_base_loop(t.base, EVLOOP_NONBLOCK);
}

void start_with(const char *early)
{
	t.config.early = str_from(early);
	assert_int_equal(forward_start(&t.config, &t.f), 0);
	turn();
}

void start(void)
{
	start_with("");
}

void pin(enum forward_mode mode, const char *name, uint16_t port)
{
	t.config.mode = mode;
	t.config.pinned.port = port;
	if (!name)
		return;
	t.config.pinned.kind = HOST_NAME;
	assert_int_equal(host_name_parse(str_from(name),
					 &t.config.pinned.name), 0);
}

void say_bytes(int fd, const char *p, size_t n)
{
	assert_int_equal(send(fd, p, n, MSG_NOSIGNAL), n);
	turn();
}

void say(int fd, const char *text)
{
	say_bytes(fd, text, strlen(text));
}

char *hear(int fd)
{
	static char heard[1 << 18];
	size_t n = 0;

	for (;;) {
		ssize_t got = recv(fd, heard + n, sizeof(heard) - 1 - n, 0);

		if (got <= 0)
			break;
		n += (size_t)got;
		turn();
	}
	heard[n] = '\0';
	return heard;
}

/* Most origins of a test have no clock: the date that they are given is one
 * line, always the same, and has a test of its own. */
static void cut_dates(char *text)
{
	char *at;

	while ((at = strstr(text, DATE)) != NULL)
		memmove(at, at + strlen(DATE), strlen(at + strlen(DATE)) + 1);
}

void expect(int fd, const char *want)
{
	char *got = hear(fd);

	if (fd == t.app)
		cut_dates(got);

	if (strcmp(got, want) != 0)
		fail_msg("heard:\n%s\nwanted:\n%s", got, want);
}

void expect_end(int fd)
{
	char c;

	assert_int_equal(recv(fd, &c, 1, 0), 0);
}

void expect_notes(const char *want)
{
	const char *got = buf_cstr(&t.notes);

	assert_non_null(got);
	if (strcmp(got, want) != 0)
		fail_msg("notes:\n%s\nwanted:\n%s", got, want);
	buf_reset(&t.notes);
}

unsigned refusal_status(bool *ret_close)
{
	const char *text = hear(t.app);
	struct http1_head *h = mem_new(sizeof(*h));
	enum reason why;
	unsigned status;

	assert_non_null(h);
	assert_int_equal(http1_parse_answer(str_from(text), STR("GET"), h,
					    &why), HTTP1_DONE);
	assert_int_equal(strlen(text), h->bytes + h->length);
	assert_non_null(strstr(text, "\r\nDate: Thu, 01 Jan 1970 00:"));
	status = h->status;
	*ret_close = !h->keep_alive;
	mem_free(h);
	return status;
}

void expect_refusal(unsigned status, bool closes)
{
	bool closed;

	assert_int_equal(refusal_status(&closed), status);
	assert_int_equal(closed, closes);
	if (closes)
		expect_end(t.app);
	else
		assert_true(recv(t.app, &closed, 1, 0) < 0 && errno == EAGAIN);
}
