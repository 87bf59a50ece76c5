/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parent_msg.c - what is said to a parent proxy, and what it may answer
 *
 *	HTTP	CONNECT ->		<- 2xx: open; 1xx: read on; else no
 *	SOCKS	methods ->		<- one of them
 *		user, password ->	<- 0, where it chose that method
 *		CONNECT ->		<- reply, with an address of any length
 *
 * What is asked for is written from what was judged; nothing that a program in
 * the sandbox wrote is sent to the parent but the name itself.
 */
#include "proxy/parent_msg.h"

#include "proxy/http1.h"

enum { TALK_HTTP, TALK_METHOD, TALK_LOGIN, TALK_REPLY };

/* RFC 1928 */
enum { SOCKS_VERSION = 5, SOCKS_LOGIN_VERSION = 1 };
enum { METHOD_NONE = 0, METHOD_LOGIN = 2, METHOD_NO = 0xff };
enum { COMMAND_CONNECT = 1 };
enum { TYPE_V4 = 1, TYPE_NAME = 3, TYPE_V6 = 4 };
enum { REPLY_TTL_EXPIRED = 6 };

int parent_msg_basic(struct str login, struct buf *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t before = out->n;
	int err = 0;

	for (size_t i = 0; i < login.n && err == 0; i += 3) {
		size_t n = MIN(login.n - i, 3u);
		uint32_t v = 0;
		char quad[4];

		for (size_t k = 0; k < 3; k++)
			v = v << 8 | (k < n ? (uint8_t)login.p[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			quad[k] = k <= n ? digits[v >> (18 - 6 * k) & 63] : '=';
		err = buf_add(out, quad, sizeof(quad));
	}
	if (err < 0)
		out->n = before;
	return err;
}

/* --- HTTP ------------------------------------------------------------------- */

static int say_authority(const struct parent_ask *a, struct buf *out)
{
	char text[IP_TEXT_SIZE];

	if (a->host.n)
		return buf_printf(out, "%.*s:%u", STR_ARG(a->host), a->port);
	ip_addr_text(&a->addr, text);
	return buf_printf(out, a->addr.family == IP_V6 ? "[%s]:%u" : "%s:%u",
			  text, a->port);
}

static int say_connect(const struct parent_ask *a, struct buf *out)
{
	int err = buf_add_str(out, STR("CONNECT "));

	if (err == 0)
		err = say_authority(a, out);
	if (err == 0)
		err = buf_add_str(out, STR(" HTTP/1.1\r\nHost: "));
	if (err == 0)
		err = say_authority(a, out);
	if (err == 0 && a->basic.n)
		err = buf_add_str(out, STR("\r\nProxy-Authorization: Basic "));
	if (err == 0)
		err = buf_add_str(out, a->basic);
	return err ? err : buf_add_str(out, STR("\r\n\r\n"));
}

static enum parent_step failed(struct parent_talk *t, enum reason why,
			       unsigned status)
{
	t->why = why;
	t->status = status;
	return PARENT_FAILED;
}

static enum parent_step refused_http(struct parent_talk *t, unsigned status)
{
	return failed(t, status == 407 ? REASON_PARENT_AUTH_FAILED :
			 status == 504 ? REASON_PARENT_TIMEOUT :
					 REASON_PARENT_REFUSED, status);
}

static enum parent_step read_http(struct parent_talk *t, struct str in,
				  size_t *ret_used)
{
	struct http1_head head;
	unsigned interim = 0;
	enum reason why;

	for (;;) {
		struct str rest = str_make(in.p + *ret_used, in.n - *ret_used);

		switch (http1_parse_answer(rest, STR("CONNECT"), &head, &why)) {
		case HTTP1_BAD:
			return failed(t, REASON_PARENT_PROTOCOL, 0);
		case HTTP1_MORE:
			*ret_used = 0;
			return in.n < PARENT_HEAD_MAX ? PARENT_MORE :
				failed(t, REASON_PARENT_PROTOCOL, 0);
		case HTTP1_DONE:
			break;
		}
		*ret_used += head.bytes;
		if (*ret_used > PARENT_HEAD_MAX || head.status == 101)
			return failed(t, REASON_PARENT_PROTOCOL, 0);
		if (head.status / 100 == 2)
			return PARENT_OPEN;
		if (head.status / 100 != 1)
			return refused_http(t, head.status);
		if (++interim > PARENT_INTERIM_MAX)
			return failed(t, REASON_PARENT_PROTOCOL, 0);
	}
}

/* --- SOCKS ------------------------------------------------------------------ */

static int say_bytes(struct buf *out, const uint8_t *p, size_t n)
{
	return buf_add(out, p, n);
}

static int say_methods(const struct parent_ask *a, struct buf *out)
{
	static const uint8_t open[] = { SOCKS_VERSION, 1, METHOD_NONE };
	static const uint8_t both[] = { SOCKS_VERSION, 2, METHOD_NONE,
					METHOD_LOGIN };

	return a->user.n ? say_bytes(out, both, sizeof(both)) :
			   say_bytes(out, open, sizeof(open));
}

static int say_counted(struct buf *out, struct str s)
{
	int err;

	REQUIRE(s.n <= 255);
	err = buf_add_char(out, (char)s.n);
	return err ? err : buf_add_str(out, s);
}

static int say_login(const struct parent_ask *a, struct buf *out)
{
	int err = buf_add_char(out, SOCKS_LOGIN_VERSION);

	if (err == 0)
		err = say_counted(out, a->user);
	return err ? err : say_counted(out, a->password);
}

static int say_request(const struct parent_ask *a, struct buf *out)
{
	const uint8_t head[] = {
		SOCKS_VERSION, COMMAND_CONNECT, 0,
		a->host.n ? TYPE_NAME :
		a->addr.family == IP_V6 ? TYPE_V6 : TYPE_V4,
	};
	const uint8_t port[] = { (uint8_t)(a->port >> 8), (uint8_t)a->port };
	int err = say_bytes(out, head, sizeof(head));

	if (err == 0 && a->host.n)
		err = say_counted(out, a->host);
	else if (err == 0)
		err = say_bytes(out, a->addr.b,
				a->addr.family == IP_V6 ? 16 : 4);
	return err ? err : say_bytes(out, port, sizeof(port));
}

/* What comes next was said, or there was no room: which is ours to fail. */
static enum parent_step said(struct parent_talk *t, uint8_t state, int err)
{
	if (err < 0)
		return failed(t, REASON_MEMORY_EXCEEDED, 0);
	t->state = state;
	return PARENT_SAY;
}

static enum parent_step read_method(struct parent_talk *t, const uint8_t *p,
				    struct buf *out)
{
	if (p[0] != SOCKS_VERSION)
		return failed(t, REASON_PARENT_PROTOCOL, 0);
	if (p[1] == METHOD_NO)
		return failed(t, REASON_PARENT_AUTH_FAILED, p[1]);
	if (p[1] == METHOD_NONE)
		return said(t, TALK_REPLY, say_request(&t->ask, out));
	if (p[1] == METHOD_LOGIN && t->ask.user.n)
		return said(t, TALK_LOGIN, say_login(&t->ask, out));
	return failed(t, REASON_PARENT_PROTOCOL, 0);
}

static enum parent_step read_login(struct parent_talk *t, const uint8_t *p,
				   struct buf *out)
{
	if (p[0] != SOCKS_LOGIN_VERSION)
		return failed(t, REASON_PARENT_PROTOCOL, 0);
	if (p[1] != 0)
		return failed(t, REASON_PARENT_AUTH_FAILED, p[1]);
	return said(t, TALK_REPLY, say_request(&t->ask, out));
}

/* The address in it says where the parent connects from: nobody asks. */
static enum parent_step read_reply(struct parent_talk *t, const uint8_t *p,
				   size_t n, size_t *ret_used)
{
	size_t size;

	if (p[0] != SOCKS_VERSION)
		return failed(t, REASON_PARENT_PROTOCOL, 0);
	/* Some say no in fewer bytes than a reply has. */
	if (p[1] != 0)
		return failed(t, p[1] == REPLY_TTL_EXPIRED ?
			      REASON_PARENT_TIMEOUT : REASON_PARENT_REFUSED,
			      p[1]);
	if (n < 5)
		return PARENT_MORE;
	if (p[2] != 0 || (p[3] != TYPE_V4 && p[3] != TYPE_V6 &&
			  p[3] != TYPE_NAME))
		return failed(t, REASON_PARENT_PROTOCOL, 0);
	size = 4u + 2u + (p[3] == TYPE_V4 ? 4u : p[3] == TYPE_V6 ? 16u :
			  1u + p[4]);
	if (n < size)
		return PARENT_MORE;
	*ret_used = size;
	return PARENT_OPEN;
}

static enum parent_step read_socks(struct parent_talk *t, struct str in,
				   size_t *ret_used, struct buf *out)
{
	const uint8_t *p = (const uint8_t *)in.p;

	if (in.n < 2)
		return PARENT_MORE;
	if (t->state == TALK_REPLY)
		return read_reply(t, p, in.n, ret_used);
	*ret_used = 2;
	return t->state == TALK_METHOD ? read_method(t, p, out) :
					 read_login(t, p, out);
}

/* --- both ------------------------------------------------------------------- */

int parent_talk_begin(struct parent_talk *t, const struct parent_ask *ask,
		      struct buf *out)
{
	size_t before = out->n;
	int err;

	*t = (struct parent_talk){ .ask = *ask };
	t->state = ask->kind == PARENT_HTTP ? TALK_HTTP : TALK_METHOD;
	err = ask->kind == PARENT_HTTP ? say_connect(ask, out) :
					 say_methods(ask, out);
	if (err < 0)
		out->n = before;
	return err;
}

enum parent_step parent_talk_read(struct parent_talk *t, struct str in,
				  size_t *ret_used, struct buf *out)
{
	*ret_used = 0;
	return t->state == TALK_HTTP ? read_http(t, in, ret_used) :
				       read_socks(t, in, ret_used, out);
}
