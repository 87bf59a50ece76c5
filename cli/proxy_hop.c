/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_hop.c - a connection through a proxy, by CONNECT or SOCKS 5
 *
 * One conversation, one step after the other, each within what is left of
 * HOP_MS.  Nothing is read that is not the proxy's own, but what stands behind
 * the head of an HTTP answer in the same read: that is handed on.
 */
#include "cli/proxy_hop.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/reason.h"
#include "cli/proxy_answer.h"

#define ANSWER_MAX	(64u << 10)	/* bytes of a head with its body */
#define READ_CHUNK	4096
#define INTERIM_MAX	8		/* answers before the one that counts */
/* A proxy is near: an address that has not answered the third SYN is not it,
 * and the next one is tried. */
#define REACH_MS	4000
#define LOGIN_TEXT_MAX	(4 * ((2 * PROXY_LOGIN_MAX + 1 + 2) / 3))

struct hop {
	int fd;
	int64_t until_ms;
	struct hop_why *why;
};

/* --- what went wrong ------------------------------------------------------------ */

static PRINTF(2, 3) void put(char out[HOP_TEXT_MAX], const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(out, HOP_TEXT_MAX, fmt, ap);
	va_end(ap);
	if (n < 0)		/* a long one is cut */
		out[0] = '\0';
}

static int fail(const struct hop *h, enum hop_fault fault, const char *word,
		int err)
{
	h->why->fault = fault;
	put(h->why->word, "%s", word);
	return err;
}

/* The conversation broke: @err is of poll(), send() or recv(). */
static int broke(const struct hop *h, int err)
{
	if (err == -EPIPE)
		return fail(h, HOP_NO_PROXY, "the proxy hung up", err);
	if (err == -ETIMEDOUT)
		return fail(h, HOP_NO_PROXY, "the proxy does not answer", err);
	put(h->why->sentence, "%s", strerror(-err));
	return fail(h, HOP_NO_PROXY, "the proxy is gone", err);
}

/* --- bytes ---------------------------------------------------------------------- */

static int await(const struct hop *h, short what)
{
	struct pollfd p = { h->fd, what, 0 };

	for (;;) {
		int64_t left = h->until_ms - clock_mono_ms();
		int n = left > 0 ? poll(&p, 1, (int)left) : 0;

		if (n > 0)
			return 0;
		if (n == 0)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return -errno;
	}
}

static int hop_send(const struct hop *h, struct str s)
{
	while (s.n) {
		ssize_t n = send(h->fd, s.p, s.n, MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN) {
			int e = await(h, POLLOUT);

			if (e)
				return broke(h, e);
			continue;
		}
		if (n < 0)
			return broke(h, -errno);
		s = str_make(s.p + n, s.n - (size_t)n);
	}
	return 0;
}

/* Up to @n bytes, one at least; -EPIPE at the end. */
static int hop_read(const struct hop *h, void *out, size_t n, size_t *ret_n)
{
	for (;;) {
		ssize_t got = recv(h->fd, out, n, 0);
		int e;

		if (got > 0) {
			*ret_n = (size_t)got;
			return 0;
		}
		if (got == 0)
			return -EPIPE;
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		e = await(h, POLLIN);
		if (e)
			return e;
	}
}

static int hop_read_all(const struct hop *h, void *out, size_t n)
{
	char *p = out;
	size_t got;
	int e;

	while (n) {
		e = hop_read(h, p, n, &got);
		if (e)
			return broke(h, e);
		p += got;
		n -= got;
	}
	return 0;
}

/* --- the way to the proxy --------------------------------------------------------- */

static int connect_to(struct hop *h, const struct addrinfo *a)
{
	CLEANUP(fd_closep) int fd = -1;
	struct hop at = { -1, MIN(h->until_ms, clock_mono_ms() + REACH_MS),
			  h->why };
	socklen_t n = sizeof(int);
	int err = 0;

	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	if (fd == -1)
		return -errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) == -1) {
		if (errno != EINPROGRESS)
			return -errno;
		at.fd = fd;
		err = await(&at, POLLOUT);
		if (!err && getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) == 0)
			err = -err;
	}
	if (!err)
		h->fd = fd_take(&fd);
	return err;
}

static int reach(struct hop *h, const struct proxy_url *p)
{
	const struct addrinfo hints = {
		.ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM,
	};
	char host[HOST_NAME_MAX_LEN + 1], port[STR_UINT_MAX + 1];
	struct addrinfo *all;
	int e;

	if (p->name.n)
		memcpy(host, p->name.p, p->name.n + 1u);
	else
		ip_addr_text(&p->addr, host);
	port[str_put_uint(p->port, port)] = '\0';
	e = getaddrinfo(host, port, &hints, &all);
	if (e) {
		put(h->why->sentence, "%s", gai_strerror(e));
		return -EHOSTUNREACH;
	}
	e = -EHOSTUNREACH;
	for (const struct addrinfo *a = all; a && h->fd < 0; a = a->ai_next)
		e = connect_to(h, a);
	freeaddrinfo(all);
	if (e)
		put(h->why->sentence, "%s", strerror(-e));
	return e;
}

/* --- CONNECT ---------------------------------------------------------------------- */

static void base64(const char *p, size_t n, char out[LOGIN_TEXT_MAX + 1])
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *b = (const uint8_t *)p;

	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)b[i] << 16;

		if (i + 1 < n)
			v |= (uint32_t)b[i + 1] << 8;
		if (i + 2 < n)
			v |= b[i + 2];
		*out++ = digit[v >> 18 & 63];
		*out++ = digit[v >> 12 & 63];
		*out++ = i + 1 < n ? digit[v >> 6 & 63] : '=';
		*out++ = i + 2 < n ? digit[v & 63] : '=';
	}
	*out = '\0';
}

static int add_login(struct buf *b, const struct proxy_url *p)
{
	char plain[2 * PROXY_LOGIN_MAX + 1], text[LOGIN_TEXT_MAX + 1];
	size_t n = p->user_n;

	if (!p->has_login)
		return 0;
	memcpy(plain, p->user, n);
	plain[n++] = ':';
	memcpy(plain + n, p->password, p->password_n);
	base64(plain, n + p->password_n, text);
	return buf_printf(b, "Proxy-Authorization: Basic %s\r\n", text);
}

static void target_text(const struct rules_target *to,
			char out[PROXY_URL_TEXT_SIZE])
{
	const struct proxy_url at = { .name = to->host, .addr = to->addr,
				      .port = to->port };

	proxy_url_text(&at, out);
}

static int send_connect(const struct hop *h, const struct proxy_url *p,
			const struct rules_target *to)
{
	struct buf b = BUF_INIT(4096);
	char where[PROXY_URL_TEXT_SIZE];
	int e;

	target_text(to, where);
	e = buf_printf(&b, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", where, where);
	if (!e)
		e = add_login(&b, p);
	if (!e)
		e = buf_add_str(&b, STR("\r\n"));
	if (!e)
		e = hop_send(h, buf_str(&b));
	buf_done(&b);
	return e;
}

/* More of what it says, into @in; -EPIPE at the end. */
static int read_more(const struct hop *h, struct buf *in)
{
	size_t got;
	int e = buf_reserve(in, READ_CHUNK);

	if (!e)
		e = hop_read(h, in->p + in->n, READ_CHUNK, &got);
	if (!e)
		in->n += got;
	return e;
}

/* By status and, where the phrase is a reason of ours, by that. */
static enum hop_fault fault_of(const struct proxy_answer *a)
{
	enum reason r = reason_by_word(a->phrase);

	if (r != REASONS && reason_info(r)->http_status == a->status)
		return reason_info(r)->kind == REASON_POLICY ||
		       reason_info(r)->kind == REASON_REQUEST ?
			       HOP_REFUSED : HOP_FAILED;
	return a->status >= 400 && a->status < 500 ? HOP_REFUSED : HOP_FAILED;
}

static int told_no(const struct hop *h, const struct proxy_answer *a,
		   struct buf *in)
{
	struct hop_why *why = h->why;
	/* Without a length, as ours always has one, who knows where it ends:
	 * what came with the head will do. */
	size_t want = a->length > ANSWER_MAX ? 0 : a->head + a->length;
	struct str body;

	why->fault = fault_of(a);
	if (reason_by_word(a->phrase) != REASONS)
		put(why->word, "%.*s", STR_ARG(a->phrase));
	else
		put(why->word, "the proxy says %u %.*s", a->status,
		    STR_ARG(a->phrase));
	if (a->status == 407)
		put(why->mend, "It wants a user and a password: write them "
		    "into its URL.");
	while (in->n < want && read_more(h, in) == 0)
		;
	body = str_make(in->p + a->head, in->n - a->head);
	if (!proxy_answer_member(body, STR("message"), why->sentence,
				 sizeof(why->sentence)))
		why->sentence[0] = '\0';
	if (!why->mend[0] &&
	    !proxy_answer_member(body, STR("request"), why->mend,
				 sizeof(why->mend)))
		why->mend[0] = '\0';
	return -EACCES;
}

static int not_http(const struct hop *h)
{
	return fail(h, HOP_NO_PROXY, "what answers there is no HTTP proxy",
		    -EPROTO);
}

/* One head, and whatever came behind it. */
static int read_head(const struct hop *h, struct buf *in,
		     struct proxy_answer *ret)
{
	for (;;) {
		int e;

		switch (proxy_answer_parse(buf_str(in), ret)) {
		case PROXY_ANSWER_DONE:
			return 0;
		case PROXY_ANSWER_BAD:
			return not_http(h);
		case PROXY_ANSWER_MORE:
			break;
		}
		e = read_more(h, in);
		if (e == -ENOSPC)	/* a head without an end */
			return not_http(h);
		if (e)
			return broke(h, e);
	}
}

static int hear_connect(const struct hop *h, struct buf *in)
{
	struct proxy_answer a;

	for (unsigned i = 0; i <= INTERIM_MAX; i++) {
		int e = read_head(h, in, &a);

		if (e)
			return e;
		if (a.status < 100 || a.status == 101)
			break;
		if (a.status > 299)
			return told_no(h, &a, in);
		buf_consume(in, a.head);
		if (a.status > 199)
			return 0;
	}
	return not_http(h);
}

/* --- SOCKS 5 ---------------------------------------------------------------------- */

static int not_socks(const struct hop *h)
{
	return fail(h, HOP_NO_PROXY, "what answers there is no SOCKS 5 proxy",
		    -EPROTO);
}

static int socks_login(const struct hop *h, const struct proxy_url *p)
{
	char m[3 + 2 * PROXY_LOGIN_MAX], said[2];
	size_t n = 0;
	int e;

	m[n++] = 1;
	m[n++] = (char)p->user_n;
	memcpy(m + n, p->user, p->user_n);
	n += p->user_n;
	m[n++] = (char)p->password_n;
	memcpy(m + n, p->password, p->password_n);
	n += p->password_n;
	e = hop_send(h, str_make(m, n));
	if (!e)
		e = hop_read_all(h, said, sizeof(said));
	if (!e && said[1] != 0)
		e = fail(h, HOP_REFUSED, "the proxy does not take this user "
			 "and password", -EACCES);
	return e;
}

static int socks_greet(const struct hop *h, const struct proxy_url *p)
{
	char said[2];
	int e = hop_send(h, p->has_login ? STR("\x05\x02\x00\x02") :
					   STR("\x05\x01\x00"));

	if (!e)
		e = hop_read_all(h, said, sizeof(said));
	if (e)
		return e;
	if (said[0] != 5)
		return not_socks(h);
	if (said[1] == 2 && p->has_login)
		return socks_login(h, p);
	if (said[1] == 0)
		return 0;
	put(h->why->mend, "Is it the right port?  If it wants a user and a "
	    "password, write them into its URL.");
	return fail(h, HOP_REFUSED, "the proxy takes no client without more",
		    -EACCES);
}

static int socks_ask(const struct hop *h, const struct rules_target *to)
{
	char m[5 + HOST_NAME_MAX_LEN + 2] = { 5, 1, 0 };
	size_t n = 4, bytes = to->addr.family == IP_V4 ? 4 : 16;

	if (to->host.n) {
		m[3] = 3;
		m[n++] = (char)to->host.n;
		memcpy(m + n, to->host.p, to->host.n);
		n += to->host.n;
	} else {
		m[3] = bytes == 4 ? 1 : 4;
		memcpy(m + n, to->addr.b, bytes);
		n += bytes;
	}
	m[n++] = (char)(to->port >> 8);
	m[n++] = (char)to->port;
	return hop_send(h, str_make(m, n));
}

static int socks_told_no(const struct hop *h, unsigned reply)
{
	static const char *const words[] = {
		[1] = "the proxy could not do it",
		[2] = "the policy does not allow it",
		[3] = "the network cannot be reached",
		[4] = "the host cannot be reached, or there is no such name",
		[5] = "the host refused the connection",
		[6] = "the host is too far away",
		[7] = "the proxy does not connect anybody",
		[8] = "the proxy does not know this kind of address",
	};
	bool known = reply < ARRAY_SIZE(words) && words[reply];

	if (reply == 2)
		put(h->why->mend, "A proxy of HTTP would say which rule it "
		    "is: try its URL.");
	return fail(h, reply == 2 ? HOP_REFUSED : HOP_FAILED,
		    known ? words[reply] : "the proxy says no", -EACCES);
}

/* The address that it is bound to is of no use to anybody. */
static int socks_hear(const struct hop *h)
{
	char said[4], rest[255 + 2];
	uint8_t n = 4;
	int e = hop_read_all(h, said, sizeof(said));

	if (e)
		return e;
	if (said[0] != 5)
		return not_socks(h);
	if (said[1] != 0)
		return socks_told_no(h, (uint8_t)said[1]);
	if (said[3] == 4)
		n = 16;
	else if (said[3] == 3)
		e = hop_read_all(h, &n, 1);
	else if (said[3] != 1)
		return not_socks(h);
	return e ? e : hop_read_all(h, rest, (size_t)n + 2);
}

/* --- all of it -------------------------------------------------------------------- */

static int ask(const struct hop *h, const struct proxy_url *proxy,
	       const struct rules_target *to, struct buf *early)
{
	int e;

	if (proxy->kind == PROXY_HTTP) {
		e = send_connect(h, proxy, to);
		return e ? e : hear_connect(h, early);
	}
	e = socks_greet(h, proxy);
	if (!e)
		e = socks_ask(h, to);
	return e ? e : socks_hear(h);
}

int hop_open(const struct proxy_url *proxy, const struct rules_target *to,
	     int *ret_fd, struct buf *early, struct hop_why *ret_why)
{
	struct hop h = { -1, clock_mono_ms() + HOP_MS, ret_why };
	char where[PROXY_URL_TEXT_SIZE];
	int e;

	*ret_why = (struct hop_why){ .fault = HOP_NO_PROXY };
	e = reach(&h, proxy);
	if (e) {
		proxy_url_text(proxy, where);
		put(ret_why->word, "no proxy at %s", where);
		return e;
	}
	e = ask(&h, proxy, to, early);
	if (e) {
		buf_reset(early);
		fd_closep(&h.fd);
		return e;
	}
	*ret_fd = fd_take(&h.fd);
	return 0;
}
