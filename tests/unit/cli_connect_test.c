/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_connect_test.c - penstock connect: its parts, and the conversation with
 *                      a proxy that says what the test tells it to
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "cli/proxy_answer.h"
#include "cli/proxy_hop.h"
#include "cli/proxy_url.h"
#include "cli/stdio_pump.h"
#include "tests/unit/proxy_lab.h"

#define BODY \
	"{\"error\":\"host_not_allowed\",\"message\":\"no such \\\"rule\\\"\"," \
	"\"port\":22,\"request\":\"Ask.\"}\n"
#define PATIENCE_S	45	/* less than HOP_MS */

/* --- the URL -------------------------------------------------------------------- */

static void proxies_are_named_as_in_the_environment(void **state)
{
	static const struct {
		const char *url, *where;
		enum proxy_kind kind;
		const char *user, *password;	/* NULL: no login */
	} good[] = {
		{ "http://127.0.0.1:3128", "127.0.0.1:3128", PROXY_HTTP,
		  NULL, NULL },
		{ "HTTP://Proxy.Example.com/", "proxy.example.com:80",
		  PROXY_HTTP, NULL, NULL },
		{ "127.0.0.1:3128", "127.0.0.1:3128", PROXY_HTTP, NULL, NULL },
		{ "socks5h://[::1]", "[::1]:1080", PROXY_SOCKS, NULL, NULL },
		{ "socks5://localhost:9050/", "localhost:9050", PROXY_SOCKS,
		  NULL, NULL },
		{ "http://run:to%40k%25en@192.0.2.1:8080", "192.0.2.1:8080",
		  PROXY_HTTP, "run", "to@k%en" },
		{ "http://a@b:c@192.0.2.1:1", "192.0.2.1:1", PROXY_HTTP, "a@b",
		  "c" },
		{ "http://user@192.0.2.1:1", "192.0.2.1:1", PROXY_HTTP, "user",
		  "" },
		{ "http://@192.0.2.1:1", "192.0.2.1:1", PROXY_HTTP, "", "" },
	};
	char where[PROXY_URL_TEXT_SIZE];
	struct proxy_url p;
	const char *why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(proxy_url_parse(str_from(good[i].url), &p,
						 &why), 0);
		proxy_url_text(&p, where);
		assert_string_equal(where, good[i].where);
		assert_int_equal(p.kind, good[i].kind);
		assert_int_equal(p.has_login, good[i].user != NULL);
		if (!good[i].user)
			continue;
		assert_true(str_eq(str_make(p.user, p.user_n),
				   str_from(good[i].user)));
		assert_true(str_eq(str_make(p.password, p.password_n),
				   str_from(good[i].password)));
	}
}

static void what_is_no_proxy_is_told_with_the_mend(void **state)
{
	static const char *const bad[][2] = {
		{ "https://127.0.0.1:3128", "http://, socks5://" },
		{ "socks4://127.0.0.1", "http://, socks5://" },
		{ "", "HOST or HOST:PORT" },
		{ "http://", "HOST or HOST:PORT" },
		{ "http://127.0.0.1:0", "HOST or HOST:PORT" },
		{ "http://127.0.0.1:3128/path", "HOST or HOST:PORT" },
		{ "http://0x7f.1:3128", "HOST or HOST:PORT" },
		{ "http://a%4:b@127.0.0.1:1", "%25" },
		{ "http://a:b%zz@127.0.0.1:1", "%25" },
	};
	char longest[400] = "http://u:";
	struct proxy_url p;
	const char *why;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		why = NULL;
		assert_int_equal(proxy_url_parse(str_from(bad[i][0]), &p,
						 &why), -EINVAL);
		assert_non_null(strstr(why, bad[i][1]));
	}
	memset(longest + 9, 'p', 256);
	memcpy(longest + 9 + 256, "@a:1", 5);
	assert_int_equal(proxy_url_parse(str_from(longest), &p, &why),
			 -EINVAL);
	memmove(longest + 9, longest + 10, 256 + 4);
	assert_int_equal(proxy_url_parse(str_from(longest), &p, &why), 0);
	assert_int_equal(p.password_n, 255);
}

/* --- the answer ------------------------------------------------------------------- */

static void heads_of_answers_say_status_and_length(void **state)
{
	static const char text[] =
		"HTTP/1.1 403 host_not_allowed\r\nX: y\r\n"
		"content-length: 12\r\n\r\n{";
	const struct str good = str_from(text);
	struct proxy_answer a;
	size_t n;

	(void)state;
	for (n = 0; n < good.n - 1; n++)
		assert_int_equal(proxy_answer_parse(str_make(good.p, n), &a),
				 PROXY_ANSWER_MORE);
	assert_int_equal(proxy_answer_parse(good, &a), PROXY_ANSWER_DONE);
	assert_int_equal(a.status, 403);
	assert_true(str_eq(a.phrase, STR("host_not_allowed")));
	assert_int_equal(a.head, good.n - 1);
	assert_int_equal(a.length, 12);
	assert_int_equal(proxy_answer_parse(
		STR("HTTP/1.0 200\r\n\r\nSSH-2.0"), &a), PROXY_ANSWER_DONE);
	assert_int_equal(a.status, 200);
	assert_true(a.length == SIZE_MAX);
	assert_int_equal(proxy_answer_parse(STR("SSH-2.0-x"), &a),
			 PROXY_ANSWER_BAD);
	assert_int_equal(proxy_answer_parse(STR("HTTP/1.1 20\r\n\r\n"), &a),
			 PROXY_ANSWER_BAD);
	assert_int_equal(proxy_answer_parse(STR("HTTP/1.1 2000 x\r\n\r\n"),
					    &a), PROXY_ANSWER_BAD);
}

static void texts_of_a_body_are_one_printable_line(void **state)
{
	char out[32];

	(void)state;
	assert_true(proxy_answer_member(STR(BODY), STR("message"), out,
					sizeof(out)));
	assert_string_equal(out, "no such \"rule\"");
	assert_true(proxy_answer_member(STR(BODY), STR("request"), out, 4));
	assert_string_equal(out, "Ask");
	assert_true(proxy_answer_member(
		STR(" { \"a\" : [ ] }"), STR("x"), out, sizeof(out)) == false);
	assert_true(proxy_answer_member(STR("{\"m\":\"a\\n\\u001b[2J\x1b\"}"),
					STR("m"), out, sizeof(out)));
	assert_string_equal(out, "a??[2J?");
	assert_false(proxy_answer_member(STR(BODY), STR("port"), out,
					 sizeof(out)));
	assert_false(proxy_answer_member(STR("<html>"), STR("m"), out,
					 sizeof(out)));
	assert_false(proxy_answer_member(STR("{\"m\":\"no end"), STR("m"), out,
					 sizeof(out)));
}

/* --- the conversation -------------------------------------------------------------- */

struct talk {
	const char *url;	/* with %u for the port */
	const char *to;
	const char *const *script;
	size_t *sizes;
	bool stays;
	const char *lives_at;	/* NULL: 127.0.0.1 */
	const char *silent_at;	/* there, on the same port, nobody answers */
	int *silent;		/* the two descriptors that see to it */
	struct hop_why why;
	char early[64];
};

/* A proxy in a process of its own: hears each text and says the one behind it; NULL
 * ends.  @t->stays: it does not say that no more comes.  Should nobody hang up, an
 * alarm ends it, and the test fails. */
static pid_t proxy(const struct talk *t, uint16_t *port)
{
	const char *const *script = t->script;
	int door = lab_listen(t->lives_at ? t->lives_at : "127.0.0.1", 0,
			      port), fd;
	char got[2048];
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0) {
		close(door);
		return pid;
	}
	alarm(PATIENCE_S);
	fd = lab_accept(door);
	for (size_t i = 0; script[i]; i++) {
		size_t n = t->sizes[i];

		if (i % 2) {
			if (send(fd, script[i], n, MSG_NOSIGNAL) != (ssize_t)n)
				_exit(3);
			continue;
		}
		for (size_t at = 0; at < n; at++) {
			lab_wait_readable(NULL, fd);
			if (recv(fd, got + at, 1, 0) != 1)
				_exit(1);
		}
		if (memcmp(got, script[i], n) != 0)
			_exit(2);
	}
	/* The client hangs up first, so that nothing is lost by a reset; and has
	 * nothing more to say. */
	if (!t->stays)
		shutdown(fd, SHUT_WR);
	lab_wait_readable(NULL, fd);
	_exit(recv(fd, got, 1, 0) <= 0 ? 0 : 4);
}

static void expect_done(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define SAY(...)	((const char *const []){ __VA_ARGS__, NULL })
#define SIZES(...)	((size_t []){ __VA_ARGS__ })

/* A door whose queue is full: the kernel drops what else comes. */
static void never_answer(const char *addr, uint16_t port, int fd[2])
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(port) };

	assert_int_equal(inet_pton(AF_INET, addr, &sa.sin_addr), 1);
	for (size_t i = 0; i < 2; i++) {
		fd[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_true(fd[i] >= 0);
	}
	assert_int_equal(bind(fd[0], (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd[0], 0), 0);
	assert_int_equal(connect(fd[1], (struct sockaddr *)&sa, sizeof(sa)),
			 0);
}

static int talk(struct talk *t)
{
	struct buf early = BUF_INIT(64u << 10);
	struct rules_target to;
	struct proxy_url p;
	uint16_t port;
	const char *why;
	int fd = -1, e;
	pid_t pid = proxy(t, &port);

	if (t->silent_at)
		never_answer(t->silent_at, port, t->silent);
	assert_int_equal(proxy_url_parse(str_from(t->url), &p, &why), 0);
	p.port = port;
	assert_int_equal(rules_target_parse(str_from(t->to), &to, &why), 0);
	to.port = 22;
	e = hop_open(&p, &to, &fd, &early, &t->why);
	assert_int_equal(e == 0, fd >= 0);
	assert_true(early.n < sizeof(t->early));
	if (early.n)
		memcpy(t->early, early.p, early.n);
	t->early[early.n] = '\0';
	buf_done(&early);
	fd_closep(&fd);
	expect_done(pid);
	return e;
}

#define CONNECT_TO(where, more) \
	"CONNECT " where " HTTP/1.1\r\nHost: " where "\r\n" more "\r\n"

static void a_connect_is_asked_for_and_what_follows_is_kept(void **state)
{
	static const char ask[] = CONNECT_TO("git.example.com:22", "");
	static const char login[] = CONNECT_TO("[2001:db8::1]:22",
		"Proxy-Authorization: Basic cnVuOnRvOmtlbg==\r\n");
	static const char yes[] = "HTTP/1.1 200 OK\r\n\r\nSSH-2.0-x\r\n";
	struct talk t = {
		.url = "http://127.0.0.1:1", .to = "GIT.example.com.",
		.script = SAY(ask, yes),
		.sizes = SIZES(sizeof(ask) - 1, sizeof(yes) - 1),
	};

	(void)state;
	assert_int_equal(talk(&t), 0);
	assert_string_equal(t.early, "SSH-2.0-x\r\n");
	t.url = "http://run:to%3Aken@127.0.0.1:1";
	t.to = "[2001:db8::1]";
	t.script = SAY(login, yes);
	t.sizes = SIZES(sizeof(login) - 1, sizeof(yes) - 1);
	assert_int_equal(talk(&t), 0);
}

static void a_refusal_has_words_and_an_outage_others(void **state)
{
	static const char ask[] = CONNECT_TO("git.example.com:22", "");
	static const char no[] = "HTTP/1.1 403 host_not_allowed\r\n\r\n" BODY;
	static const char down[] = "HTTP/1.1 502 connect_refused\r\n"
				   "Content-Length: 0\r\n\r\n";
	static const char other[] = "HTTP/1.0 403 Forbidden\r\n\r\n<html>";
	static const char odd[] = "SSH-2.0-x\r\n";
	static const struct {
		const char *said;
		enum hop_fault fault;
		const char *word, *sentence, *mend;
	} all[] = {
		{ no, HOP_REFUSED, "host_not_allowed", "no such \"rule\"",
		  "Ask." },
		{ down, HOP_FAILED, "connect_refused", "", "" },
		{ other, HOP_REFUSED, "the proxy says 403 Forbidden", "", "" },
		{ odd, HOP_NO_PROXY, "what answers there is no HTTP proxy", "",
		  "" },
		{ "", HOP_NO_PROXY, "the proxy hung up", "", "" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		struct talk t = {
			.url = "http://127.0.0.1:1", .to = "git.example.com",
			.script = SAY(ask, all[i].said),
			.sizes = SIZES(sizeof(ask) - 1, strlen(all[i].said)),
		};

		assert_true(talk(&t) < 0);
		assert_int_equal(t.why.fault, all[i].fault);
		assert_string_equal(t.why.word, all[i].word);
		assert_string_equal(t.why.sentence, all[i].sentence);
		assert_string_equal(t.why.mend, all[i].mend);
	}
}

/* Its connection stays open, and how long the body is it does not say. */
static void a_refusal_without_a_length_is_told_at_once(void **state)
{
	static const char ask[] = CONNECT_TO("git.example.com:22", "");
	static const char no[] = "HTTP/1.1 403 Forbidden\r\n"
		"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
	static const char more[] = "HTTP/1.1 403 Forbidden\r\n"
		"Content-Length: 4000000000\r\n\r\n";
	static const char *const said[] = { no, more };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(said); i++) {
		struct talk t = {
			.url = "http://127.0.0.1:1", .to = "git.example.com",
			.script = SAY(ask, said[i]), .stays = true,
			.sizes = SIZES(sizeof(ask) - 1, strlen(said[i])),
		};

		assert_int_equal(talk(&t), -EACCES);
		assert_int_equal(t.why.fault, HOP_REFUSED);
		assert_string_equal(t.why.word,
				    "the proxy says 403 Forbidden");
	}
}

#define INTERIM	"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n"

static void what_comes_before_the_answer_is_read_over(void **state)
{
	static const char ask[] = CONNECT_TO("git.example.com:22", "");
	static const char yes[] = INTERIM "HTTP/1.1 103 Early Hints\r\n\r\n"
				  "HTTP/1.1 200 OK\r\n\r\nSSH-2.0-x\r\n";
	static const char flood[] = INTERIM INTERIM INTERIM INTERIM INTERIM
				    INTERIM INTERIM INTERIM INTERIM
				    "HTTP/1.1 200 OK\r\n\r\n";
	static const char turned[] = "HTTP/1.1 101 Switching Protocols\r\n\r\n";
	static const char *const no[] = { flood, turned,
					  "HTTP/1.1 099 x\r\n\r\n" };
	struct talk t = {
		.url = "http://127.0.0.1:1", .to = "git.example.com",
		.script = SAY(ask, yes),
		.sizes = SIZES(sizeof(ask) - 1, sizeof(yes) - 1),
	};

	(void)state;
	assert_int_equal(talk(&t), 0);
	assert_string_equal(t.early, "SSH-2.0-x\r\n");
	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		t.script = SAY(ask, no[i]);
		t.sizes = SIZES(sizeof(ask) - 1, strlen(no[i]));
		assert_int_equal(talk(&t), -EPROTO);
		assert_int_equal(t.why.fault, HOP_NO_PROXY);
		assert_string_equal(t.why.word,
				    "what answers there is no HTTP proxy");
	}
}

static void a_head_without_an_end_is_no_proxys(void **state)
{
	static const char ask[] = CONNECT_TO("git.example.com:22", "");
	static char said[80u << 10] = "HTTP/1.1 200 OK\r\nX: ";
	size_t n = strlen(said);
	struct talk t = {
		.url = "http://127.0.0.1:1", .to = "git.example.com",
		.script = SAY(ask, said), .stays = true,
		.sizes = SIZES(sizeof(ask) - 1, 64u << 10),
	};

	(void)state;
	memset(said + n, 'x', sizeof(said) - n);
	assert_int_equal(talk(&t), -EPROTO);
	assert_string_equal(t.why.word, "what answers there is no HTTP proxy");
}

static void socks_is_spoken_with_and_without_a_login(void **state)
{
	static const char ask[] = "\x05\x01\x00\x03\x0fgit.example.com\x00\x16";
	static const char yes[] = "\x05\x00\x00\x01\0\0\0\0\0\0";
	static const char name[] = "\x05\x00\x00\x03\x02hi\0\0";
	static const char no[] = "\x05\x02\x00\x01\0\0\0\0\0\0";
	struct talk t = {
		.url = "socks5h://127.0.0.1:1", .to = "git.example.com",
		.script = SAY("\x05\x01\x00", "\x05\x00", ask, yes),
		.sizes = SIZES(3, 2, sizeof(ask) - 1, sizeof(yes) - 1),
	};

	(void)state;
	assert_int_equal(talk(&t), 0);
	assert_string_equal(t.early, "");
	t.url = "socks5://u:pw@127.0.0.1:1";
	t.script = SAY("\x05\x02\x00\x02", "\x05\x02", "\x01\x01u\x02pw",
		       "\x01\x00", ask, name);
	t.sizes = SIZES(4, 2, 6, 2, sizeof(ask) - 1, sizeof(name) - 1);
	assert_int_equal(talk(&t), 0);
	t.url = "socks5h://127.0.0.1:1";
	t.script = SAY("\x05\x01\x00", "\x05\x00", ask, no);
	t.sizes = SIZES(3, 2, sizeof(ask) - 1, sizeof(no) - 1);
	assert_int_equal(talk(&t), -EACCES);
	assert_int_equal(t.why.fault, HOP_REFUSED);
	t.script = SAY("\x05\x01\x00", "\x05\xff");
	t.sizes = SIZES(3, 2);
	assert_int_equal(talk(&t), -EACCES);
	assert_string_equal(t.why.word,
			    "the proxy takes no client without more");
	t.script = SAY("\x05\x01\x00", "HT");
	assert_int_equal(talk(&t), -EPROTO);
	assert_int_equal(t.why.fault, HOP_NO_PROXY);
}

static void where_nobody_listens_is_no_proxy(void **state)
{
	struct buf early = BUF_INIT(1024);
	struct rules_target to;
	struct hop_why w;
	struct proxy_url p;
	const char *why;
	int fd = -1;

	(void)state;
	assert_int_equal(proxy_url_parse(STR("http://127.0.0.1:9"), &p, &why),
			 0);
	assert_int_equal(rules_target_parse(STR("a.example.com"), &to, &why),
			 0);
	assert_int_equal(hop_open(&p, &to, &fd, &early, &w), -ECONNREFUSED);
	assert_int_equal(w.fault, HOP_NO_PROXY);
	assert_string_equal(w.word, "no proxy at 127.0.0.1:9");
	assert_string_equal(w.sentence, "Connection refused");
}

/* For this process: @name is at 127.0.0.1 and 127.0.0.2. */
static void name_two_addresses(const char *name)
{
	char path[] = "/tmp/penstock-hosts-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_true(dprintf(fd, "127.0.0.1 %s\n127.0.0.2 %s\n", name, name) >
		    0);
	assert_int_equal(unshare(CLONE_NEWNS), 0);
	assert_int_equal(mount("/", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	assert_int_equal(mount(path, "/etc/hosts", NULL, MS_BIND, NULL), 0);
	assert_int_equal(unlink(path), 0);
	close(fd);
}

static void a_silent_address_does_not_hide_the_next_one(void **state)
{
	static const char asked[] = CONNECT_TO("git.example.com:22", "");
	static const char yes[] = "HTTP/1.1 200 OK\r\n\r\n";
	static const char *const at[] = { "127.0.0.1", "127.0.0.2" };
	struct talk t = {
		.url = "http://two.example:1", .to = "git.example.com",
		.script = SAY(asked, yes),
		.sizes = SIZES(sizeof(asked) - 1, sizeof(yes) - 1),
	};
	int silent[2];

	(void)state;
	name_two_addresses("two.example");
	t.silent = silent;
	/* Whichever is tried first. */
	for (size_t i = 0; i < 2; i++) {
		t.lives_at = at[i];
		t.silent_at = at[1 - i];
		assert_int_equal(talk(&t), 0);
		close(silent[0]);
		close(silent[1]);
	}
}

/* --- the copying ------------------------------------------------------------------- */

#define BULK	(1u << 20)

/* All bytes to the end of @fd. */
static size_t read_all(int fd, char *out, size_t cap)
{
	size_t n = 0;
	ssize_t got;

	while ((got = read(fd, out + n, cap - n)) > 0)
		n += (size_t)got;
	assert_int_equal(got, 0);
	return n;
}

/* What the far end of the socket does: takes all that comes, to its end, and
 * only then answers, twice as much. */
static void far_end(int fd)
{
	char *all = malloc(2 * BULK);
	size_t n, sent = 0;

	if (!all)
		_exit(1);
	n = read_all(fd, all, 2 * BULK);
	if (n != BULK || all[0] != 'x' || all[BULK - 1] != 'y')
		_exit(2);
	while (sent < n) {
		ssize_t k = write(fd, all + sent, n - sent);

		if (k <= 0)
			_exit(3);
		sent += (size_t)k;
	}
	_exit(0);
}

/* Blocking pipes for the streams, or one socket as ssh gives. */
static void pump_half_closes(bool pipes)
{
	int in[2], out[2], net[2], status;
	struct buf early = BUF_INIT(PUMP_CHUNK);
	char *got = malloc(2 * BULK);
	pid_t far, near;

	assert_non_null(got);
	assert_int_equal(pipes ? pipe(in) : socketpair(AF_UNIX, SOCK_STREAM, 0,
							in), 0);
	assert_int_equal(pipe(out), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, net), 0);
	far = fork();
	if (far == 0) {
		close(net[0]);
		close(in[0]);
		close(in[1]);
		far_end(net[1]);
	}
	close(net[1]);
	near = fork();
	if (near == 0) {
		close(in[1]);
		close(out[0]);
		if (buf_add_str(&early, STR("early")) ||
		    fcntl(net[0], F_SETFL, O_NONBLOCK))
			_exit(9);
		_exit(stdio_pump(in[0], out[1], net[0], &early) ? 8 :
		      fcntl(in[0], F_GETFL) & O_NONBLOCK ? 7 : 0);
	}
	close(net[0]);
	close(in[0]);
	close(out[1]);
	memset(got, 'x', BULK);
	got[BULK - 1] = 'y';
	assert_int_equal(fd_write_all(in[1], got, BULK), 0);
	close(in[1]);
	/* Our end was told, and the answer still comes, whole, with an end. */
	assert_int_equal(read_all(out[0], got, 2 * BULK), 5 + BULK);
	assert_memory_equal(got, "earlyx", 6);
	close(out[0]);
	assert_int_equal(waitpid(near, &status, 0), near);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(far, &status, 0), far);
	assert_int_equal(status, 0);
	free(got);
}

static void each_way_ends_by_itself_TUN_10(void **state)
{
	(void)state;
	pump_half_closes(true);
	pump_half_closes(false);
}

static void a_reader_that_left_ends_it(void **state)
{
	int in[2], out[2], net[2];
	struct buf early = BUF_INIT(PUMP_CHUNK);

	(void)state;
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
				    net), 0);
	close(out[0]);
	assert_int_equal(buf_add_str(&early, STR("x")), 0);
	assert_int_equal(stdio_pump(in[0], out[1], net[0], &early), -EPIPE);
	buf_done(&early);
	close(in[0]);
	close(in[1]);
	close(out[1]);
	close(net[0]);
	close(net[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(proxies_are_named_as_in_the_environment),
		cmocka_unit_test(what_is_no_proxy_is_told_with_the_mend),
		cmocka_unit_test(heads_of_answers_say_status_and_length),
		cmocka_unit_test(texts_of_a_body_are_one_printable_line),
		cmocka_unit_test(
			a_connect_is_asked_for_and_what_follows_is_kept),
		cmocka_unit_test(a_refusal_has_words_and_an_outage_others),
		cmocka_unit_test(a_refusal_without_a_length_is_told_at_once),
		cmocka_unit_test(what_comes_before_the_answer_is_read_over),
		cmocka_unit_test(a_head_without_an_end_is_no_proxys),
		cmocka_unit_test(socks_is_spoken_with_and_without_a_login),
		cmocka_unit_test(where_nobody_listens_is_no_proxy),
		cmocka_unit_test(a_silent_address_does_not_hide_the_next_one),
		cmocka_unit_test(each_way_ends_by_itself_TUN_10),
		cmocka_unit_test(a_reader_that_left_ends_it),
	};

	signal(SIGPIPE, SIG_IGN);
	lab_enter();
	return cmocka_run_group_tests_name("cli_connect", tests, NULL, NULL);
}
