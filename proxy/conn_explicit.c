/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_explicit.c - connections to the proxy's own port
 *
 * What is not a CONNECT belongs to the HTTP engine, from its first byte.  A
 * CONNECT is read strictly (RFC 9110 9.3.6): an authority and nothing else, no
 * body, a Host that does not contradict it.  The 200 is sent when the origin is
 * connected, never before; bytes that came behind the head are the tunnel's
 * first (TUN-04).
 */
#include "proxy/conn.h"
#include "proxy/conn_own.h"
#include "proxy/http1.h"

void conn_start_explicit(struct sandbox *s, int fd,
			 const struct ip_endpoint *src)
{
	struct conn *c = conn_new(s, fd, src, RECORD_VIA_FORWARD);

	if (c)
		conn_begin_in(c, CONN_HEAD, conn_head_ms(c));
}

/* What is wrong with a CONNECT beside its target. */
static enum reason connect_fault(const struct http1_head *head,
				 const struct http1_target *t)
{
	if (t->form != HTTP1_AUTHORITY_FORM)
		return REASON_AUTHORITY_INVALID;
	/* TUN-05: a body in front of a tunnel can be read in two ways. */
	if (head->framing != HTTP1_NO_BODY &&
	    !(head->framing == HTTP1_LENGTH && head->length == 0))
		return REASON_FRAMING_INVALID;
	if (head->has_host &&
	    !http1_host_agrees(head, t->kind, &t->name, &t->addr, t->port,
			       t->port))
		return REASON_HOST_MISMATCH;	/* HOST-14 */
	return REASON_ALLOWED;
}

static enum reason connect_judge(struct conn *c, const struct http1_head *head)
{
	enum reason why = REASON_AUTHORITY_INVALID, meant;
	struct http1_target t;

	if (!http1_parse_target(head, &t, &why))
		return why;
	meant = conn_target_set(c->s, t.kind == HOST_NAME ? &t.name : NULL,
				&t.addr, t.port, c->target, &c->dns);
	why = connect_fault(head, &t);
	if (why != REASON_ALLOWED)
		return why;
	return conn_judge_tunnel(c, meant);
}

static void on_connect(struct conn *c, const struct http1_head *head)
{
	enum reason why = connect_judge(c, head);

	if (why != REASON_ALLOWED) {
		conn_refuse(c, why);
		return;
	}
	c->speech = conn_protocol(c, &c->answer)->speech;
	buf_consume(&c->ask->in, head->bytes);
	conn_dial(c);
}

/* -1: no; 0: too early to say; 1: yes. */
static int is_connect(struct str in)
{
	const struct str connect = STR("CONNECT ");

	if (str_starts(in, STR("\r\n")))
		in = str_make(in.p + 2, in.n - 2);
	else if (str_eq(in, STR("\r")))
		return 0;
	if (!str_starts(connect, str_make(in.p, MIN(in.n, connect.n))))
		return -1;
	return in.n >= connect.n;
}

void conn_on_head(struct conn *c, bool end)
{
	enum reason why = REASON_REQUEST_MALFORMED;
	enum http1_result result = HTTP1_MORE;
	struct http1_head head;
	int connect = is_connect(buf_str(&c->ask->in));

	if (conn_socks_begins(c)) {
		conn_refuse(c, REASON_SOCKS_ON_HTTP_PORT);
		return;
	}
	if (connect < 0 && c->admission != REASON_ALLOWED) {
		conn_refuse(c, c->admission);
		return;
	}
	if (connect < 0) {
		conn_quiet(c);
		conn_start_http(c);
		return;
	}
	if (connect > 0) {
		c->via = RECORD_VIA_CONNECT;
		if (http1_head_grew(buf_str(&c->ask->in), c->ask->seen))
			result = http1_parse_request(buf_str(&c->ask->in), &head,
						     &why);
		c->ask->seen = c->ask->in.n;
	}
	switch (result) {
	case HTTP1_MORE:
		if (end)
			conn_finish(c, REASON_CLIENT_CLOSED_EARLY, false);
		else if (c->ask->in.n >= conn_head_max(c))
			conn_refuse(c, REASON_HEADER_TOO_LARGE);
		break;
	case HTTP1_DONE:
		if (head.bytes > conn_head_max(c))
			conn_refuse(c, REASON_HEADER_TOO_LARGE);
		else
			on_connect(c, &head);
		break;
	case HTTP1_BAD:
		conn_refuse(c, why);
		break;
	}
}
