/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_socks.c - connections to the SOCKS port
 *
 * The same as a CONNECT in other words: a name or an address and a port, which
 * is judged, dialled, and only then answered.  What the rule's protocol demands
 * of the first bytes holds behind the answer as it does behind a 200.
 *
 *	GREETING --> REQUEST		version 5, and no login is fine
 *	   |           ^
 *	   +-> LOGIN --+		the client knows passwords only
 *	(none) ------> REQUEST		version 4, 4a
 *
 * Who is in the sandbox may use its proxy, so that a name and a password say
 * nothing: whatever is well formed is let pass, for clients that insist on them.
 * Messages may come in any pieces, all at once too; what stands behind the
 * request belongs to the tunnel.  CONNECT is all there is: BIND and UDP
 * ASSOCIATE would open sockets of ours to whom no rule speaks.
 */
#include "proxy/conn.h"
#include "proxy/conn_own.h"
#include "proxy/sniff.h"
#include "proxy/socks.h"

/* Bytes in which another protocol must have shown itself. */
#define FOREIGN_MAX	64

void conn_start_socks(struct sandbox *s, int fd,
		      const struct ip_endpoint *src)
{
	struct conn *c = conn_new(s, fd, src, RECORD_VIA_SOCKS);

	if (c)
		conn_begin_in(c, CONN_SOCKS, conn_head_ms(c));
}

bool conn_socks_begins(struct conn *c)
{
	uint8_t first = c->ask->in.n ? (uint8_t)c->ask->in.p[0] : 0;

	if (first != SOCKS_V4 && first != SOCKS_V5)
		return false;
	c->ask->socks.version = first;
	c->ask->socks.step = first == SOCKS_V5 ? CONN_SOCKS_GREETING :
					    CONN_SOCKS_REQUEST;
	return true;
}

struct str conn_socks_granted(const struct conn *c, char out[SOCKS_ANSWER_MAX])
{
	return socks_answer(c->ask->socks.version, SOCKS_GRANTED, out);
}

struct str conn_socks_refused(const struct conn *c, char out[SOCKS_ANSWER_MAX])
{
	unsigned reply = c->ask->socks.reply ? c->ask->socks.reply :
					  reason_info(c->why)->socks_reply;

	switch (c->ask->socks.step) {
	case CONN_SOCKS_GREETING:
		return STR("\x05\xff");
	case CONN_SOCKS_LOGIN:
		return STR("\x01\x01");
	case CONN_SOCKS_REQUEST:
		break;
	}
	return socks_answer(c->ask->socks.version, reply ? reply : SOCKS_FAILED,
			    out);
}

/* --- the steps: false when more bytes are needed ------------------------------ */

/* What came is no SOCKS. ALLOWED: that is too early to say. */
static enum reason foreign(struct str in)
{
	if (sniff_looks_tls(in))
		return REASON_TLS_ON_PLAIN_PORT;
	if (in.n == 1 && in.p[0] == 0x16)
		return REASON_ALLOWED;
	switch (sniff_http(in)) {
	case SNIFF_MORE:
		return in.n < FOREIGN_MAX ? REASON_ALLOWED :
					    REASON_REQUEST_MALFORMED;
	case SNIFF_DONE:
		return REASON_HTTP_ON_SOCKS_PORT;
	case SNIFF_BAD:
		break;
	}
	return REASON_REQUEST_MALFORMED;
}

static bool on_first(struct conn *c)
{
	enum reason why;

	if (c->ask->in.n == 0)
		return false;
	if (conn_socks_begins(c))
		return true;
	why = foreign(buf_str(&c->ask->in));
	if (why != REASON_ALLOWED)
		conn_refuse(c, why);
	return false;
}

static bool answer(struct conn *c, struct str s, size_t taken,
		   enum conn_socks_step next)
{
	buf_consume(&c->ask->in, taken);
	c->ask->socks.step = next;
	if (conn_send(c, s))
		return true;
	conn_finish(c, REASON_CLIENT_RESET, true);
	return false;
}

static bool on_greeting(struct conn *c)
{
	enum socks_method method = SOCKS_NO_METHOD;
	size_t taken = 0;

	if (socks_greeting(buf_str(&c->ask->in), &method, &taken) == SOCKS_MORE)
		return false;
	switch (method) {
	case SOCKS_NO_LOGIN:
		return answer(c, STR("\x05\x00"), taken, CONN_SOCKS_REQUEST);
	case SOCKS_PASSWORD:
		return answer(c, STR("\x05\x02"), taken, CONN_SOCKS_LOGIN);
	case SOCKS_NO_METHOD:
		conn_refuse(c, REASON_METHOD_NOT_SUPPORTED);
		break;
	}
	return false;
}

static bool on_login(struct conn *c)
{
	size_t taken;

	switch (socks_login(buf_str(&c->ask->in), &taken)) {
	case SOCKS_DONE:
		return answer(c, STR("\x01\x00"), taken, CONN_SOCKS_REQUEST);
	case SOCKS_BAD:
		conn_refuse(c, REASON_REQUEST_MALFORMED);
		break;
	case SOCKS_MORE:
		break;
	}
	return false;
}

static enum reason request_set(struct conn *c, const struct socks_request *r)
{
	if (r->kind == HOST_BAD)
		return REASON_AUTHORITY_INVALID;
	return conn_target_set(c->s, r->kind == HOST_NAME ? &r->name : NULL,
			       &r->addr, r->port, c->target, &c->dns);
}

static void on_asked(struct conn *c, const struct socks_request *r)
{
	enum reason why = conn_judge_tunnel(c, request_set(c, r));

	if (why != REASON_ALLOWED) {
		conn_refuse(c, why);
		return;
	}
	c->speech = conn_protocol(c, &c->answer)->speech;
	buf_consume(&c->ask->in, r->bytes);
	conn_dial(c);
}

static void on_request(struct conn *c)
{
	enum reason why = REASON_ALLOWED;
	struct socks_request r;

	switch (socks_request(c->ask->socks.version, buf_str(&c->ask->in), &r, &why)) {
	case SOCKS_DONE:
		on_asked(c, &r);
		break;
	case SOCKS_BAD:
		(void)request_set(c, &r);
		c->ask->socks.reply = (uint8_t)r.reply;
		conn_refuse(c, why);
		break;
	case SOCKS_MORE:
		break;
	}
}

static bool step(struct conn *c)
{
	if (!c->ask->socks.version)
		return on_first(c);
	switch (c->ask->socks.step) {
	case CONN_SOCKS_GREETING:
		return on_greeting(c);
	case CONN_SOCKS_LOGIN:
		return on_login(c);
	case CONN_SOCKS_REQUEST:
		on_request(c);
		break;
	}
	return false;
}

/* Half a message is answered: who sent it may still be reading. */
static void on_end(struct conn *c)
{
	if (c->ask->socks.version && c->ask->in.n)
		conn_refuse(c, REASON_CLIENT_CLOSED_EARLY);
	else
		conn_finish(c, REASON_CLIENT_CLOSED_EARLY, false);
}

void conn_on_socks(struct conn *c, bool end)
{
	while (step(c))
		;
	if (end && c->state == CONN_SOCKS)
		on_end(c);
}
