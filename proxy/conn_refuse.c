/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_refuse.c - saying no in the client's own protocol
 *
 *	a CONNECT that has no 200 yet	an HTTP answer
 *	SOCKS, until it is granted	what the step that it is at has for it
 *	bytes that are TLS		the alert access_denied, or another
 *	bytes that are HTTP		an HTTP answer
 *	nothing yet, where the port's	wait CONN_LISTEN_MS for some, to know in
 *	protocol is TLS or HTTP		which of the two it wants to hear it
 *	anything else			a reset, at once
 *
 * The record is posted when the refusal is decided.  An answer is followed by a
 * FIN, and what the client still sends is read for a while: closing over unread
 * bytes would send a reset that overtakes the answer.
 */
#include <errno.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "proxy/conn_own.h"
#include "proxy/refusal.h"
#include "proxy/relay_pool.h"
#include "proxy/sniff.h"
#include "proxy/sock.h"
#include "proxy/worker.h"

/* Bytes in which a protocol must have shown itself. */
#define LISTEN_MAX	64

enum tell { TELL_NOW, TELL_LATER, TELL_NEVER };

static enum tell tell_http(struct conn *c)
{
	char text[IP_TEXT_SIZE] = "";
	struct refusal r = {
		.reason = c->why,
		.host = host_name_str(&c->target->name),
		.port = c->target->port,
		.policy = rules_name(c->rules),
		.run = c->s->run,
		.rule = c->answer.rule,
		.date = str_make(clock_imf_now(), CLOCK_IMF_SIZE - 1),
		.head_only = str_starts(buf_str(&c->ask->in), STR("HEAD ")),
		.close = true,
	};

	/* On this port it is the request that contradicts itself. */
	if (c->via == RECORD_VIA_CONNECT && c->why == REASON_HOST_MISMATCH)
		r.status = 400;

	if (c->target->name.n == 0 && c->target->addr.family != IP_NONE) {
		ip_addr_text(&c->target->addr, text);
		r.host = str_from(text);
	}
	return refusal_http(&r, &c->ask->out) == 0 ? TELL_NOW : TELL_NEVER;
}

static enum tell tell_tls(struct conn *c)
{
	return buf_add_str(&c->ask->out, refusal_tls_alert(c->why)) == 0 ?
		       TELL_NOW : TELL_NEVER;
}

static enum tell tell_socks(struct conn *c)
{
	char out[SOCKS_ANSWER_MAX];

	return buf_add_str(&c->ask->out, conn_socks_refused(c, out)) == 0 ?
		       TELL_NOW : TELL_NEVER;
}

static enum tell tell(struct conn *c)
{
	struct str in = buf_str(&c->ask->in);

	/* Our own protocol, until the 200: then whatever the tunnel holds. */
	if (!c->established && c->ask->socks.version)
		return tell_socks(c);
	if (!c->established && c->via != RECORD_VIA_TRANSPARENT &&
	    c->via != RECORD_VIA_SOCKS)
		return tell_http(c);
	if (in.n == 0)
		return c->established || rules_protocol_by_port(
			c->target->port)->speech != SPEECH_OPAQUE ?
			TELL_LATER : TELL_NEVER;
	if (sniff_looks_tls(in))
		return tell_tls(c);
	switch (sniff_http(in)) {
	case SNIFF_DONE:
		return tell_http(c);
	case SNIFF_MORE:
		return in.n < LISTEN_MAX ? TELL_LATER : TELL_NEVER;
	case SNIFF_BAD:
		break;
	}
	/* The one byte that a TLS record may have come with so far. */
	return in.n == 1 && in.p[0] == 0x16 ? TELL_LATER : TELL_NEVER;
}

static void out_flush(struct conn *c)
{
	ssize_t n = 0;

	while (c->ask->out.n) {
		n = half_send(&c->app, c->ask->out.p, c->ask->out.n);
		if (n < 0)
			break;
		buf_consume(&c->ask->out, (size_t)n);
	}
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		conn_finish(c, c->why, true);
		return;
	}
	if (c->ask->out.n == 0 && shutdown(c->app.fd, SHUT_WR) == -1)
		conn_finish(c, c->why, true);
}

/* Return: is there more of it to come? */
static bool drain(struct conn *c)
{
	char *scratch = relay_pool_scratch(c->s->worker->relay);
	ssize_t n = half_recv(&c->app, scratch, RELAY_CHUNK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n > 0) {
		c->ask->drained += (size_t)n;
		if (c->ask->drained <= CONN_DRAIN_MAX)
			return true;
	}
	/* A client that stopped sending may still be reading our answer. */
	if (n == 0 && c->ask->out.n)
		return false;
	conn_finish(c, c->why, n < 0);
	return false;
}

void conn_on_refuse(struct conn *c)
{
	if (c->ask->out.n && c->app.writable)
		out_flush(c);
	while (c->state == CONN_REFUSE && c->app.readable && drain(c))
		;
}

static void tell_or_wait(struct conn *c)
{
	switch (tell(c)) {
	case TELL_NOW:
		conn_quiet(c);
		conn_read_in(c, CONN_REFUSE, CONN_DRAIN_MS);
		if (c->state == CONN_REFUSE)
			out_flush(c);
		break;
	case TELL_LATER:
		if (c->state != CONN_LISTEN) {
			conn_quiet(c);
			conn_read_in(c, CONN_LISTEN, CONN_LISTEN_MS);
		}
		break;
	case TELL_NEVER:
		conn_finish(c, c->why, true);
		break;
	}
}

void conn_refuse(struct conn *c, enum reason why)
{
	c->why = why;
	conn_record_end(c, why);
	half_closep(&c->net, true);
	tell_or_wait(c);
}

void conn_on_listen(struct conn *c, bool end)
{
	if (end)
		conn_finish(c, c->why, false);
	else
		tell_or_wait(c);
}
