/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_transparent.c - what did the program ask for, and may it?
 *
 * getsockname() of the accepted socket is the address the program dialled.
 *
 *	a synthetic address	the name it was given for: exact
 *	permitted as it is	a rule with addresses and no hosts
 *	neither, on a port	nothing is known yet; the first bytes may name a
 *	of TLS or HTTP		permitted host, which we then resolve ourselves:
 *				the asked address is dialled only if it is
 *				among our own answers (ADDR-18)
 *	neither			refused
 *
 * A rule for tcp, ssh and the like dials at once, so that a server may speak
 * first; the rule says so, never the bytes or a clock.
 */
#include "proxy/conn.h"
#include "proxy/conn_own.h"
#include "proxy/sock.h"

/*
 * Could a name still open it?  A class that no program has honest business
 * with is refused at once, in its own words, and so is what a deny rule names;
 * documentation addresses lead nowhere, so that there is nothing to gain by it.
 */
static bool may_name_itself(const struct conn *c)
{
	switch ((int)c->answer.reason) {
	case REASON_HOST_NOT_ALLOWED:
	case REASON_PORT_NOT_ALLOWED:
	case REASON_ADDRESS_NOT_ALLOWED:
	case REASON_RULE_EXPIRED:
	case REASON_ADDRESS_DOCUMENTATION:
		return rules_protocol_by_port(c->target.port)->speech !=
		       SPEECH_OPAQUE;
	default:
		return false;
	}
}

static void begin(struct conn *c, const struct rules_protocol *protocol)
{
	c->speech = protocol->speech;
	switch (c->speech) {
	case SPEECH_TLS:
		if (c->state != CONN_HELLO)
			conn_read_in(c, CONN_HELLO, CONN_HEAD_MS);
		break;
	case SPEECH_HTTP:
		conn_start_http(c);
		break;
	case SPEECH_OPAQUE:
		conn_dial(c);
		break;
	}
}

void conn_begin_transparent(struct conn *c)
{
	c->by_first_bytes = false;
	conn_target_judge(c, &c->target, &c->answer);
	if (c->target.name.n == 0 && c->answer.reason != REASON_ALLOWED &&
	    may_name_itself(c)) {
		c->by_first_bytes = true;
		begin(c, rules_protocol_by_port(c->target.port));
	} else if (rules_passes(&c->answer)) {
		begin(c, conn_protocol(c, &c->answer));
	} else {
		conn_refuse(c, c->answer.reason);
	}
}

void conn_start_transparent(struct sandbox *s, int fd)
{
	struct conn *c = conn_new(s, fd, RECORD_VIA_TRANSPARENT);
	enum reason why;

	if (!c)
		return;
	if (sock_local(c->app, &c->asked)) {
		conn_refuse(c, REASON_INTERNAL_ERROR);
		return;
	}
	why = conn_target_set(s, NULL, &c->asked.addr, c->asked.port,
			      &c->target, &c->dns);
	if (why != REASON_ALLOWED) {
		conn_refuse(c, why);
		return;
	}
	conn_begin_transparent(c);
}
