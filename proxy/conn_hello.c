/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_hello.c - do the first bytes agree? (TLS)
 *
 * A rule that says https lets nothing through but a ClientHello whose SNI is
 * the name that was asked for.  It is read whole, over any number of records
 * and segments, before its first byte goes anywhere.
 *
 *	asked for	SNI absent		SNI there
 *	a name		sni_missing		must be that name
 *	an address	fine			must be a name that the rules
 *						permit at that address
 *	one of several	sni_missing		must be one of them that passes
 *	names (CONNECT)
 *	(first bytes)	the address decides	is the name, judged as such
 *
 * An address that the rules permit as it is needs no SNI, also where it stands
 * for a name.
 */
#include <assert.h>

#include "base/clock.h"
#include "base/mem.h"
#include "proxy/conn_names.h"
#include "proxy/conn_own.h"
#include "proxy/relay_pool.h"
#include "proxy/sniff.h"
#include "proxy/worker.h"

#define RECORD_HEAD	5	/* type, version, length (RFC 8446 5.1) */

static_assert(SNIFF_HELLO_MAX <= RELAY_CHUNK, "scratch holds a hello");
static_assert(SNIFF_HELLO_MAX <= CONN_IN_MAX, "a hello fits the buffer");

/*
 * Is there a whole record more than last time?  A client that sends single
 * bytes costs one look at them each, not a parse of everything.  @need is the
 * end of the record that is coming in.
 */
static bool hello_grew(struct conn *c)
{
	struct conn_ask *a = c->ask;
	const uint8_t *p = (const uint8_t *)a->in.p;

	if (a->in.n < a->need)
		return false;
	while (a->in.n >= a->need + RECORD_HEAD)
		a->need += RECORD_HEAD + ((size_t)p[a->need + 3] << 8 |
					  p[a->need + 4]);
	return true;
}

static enum reason first_bytes_named(struct conn *c,
				     const struct sniff_hello *hello)
{
	enum reason why;

	if (!hello->has_sni)
		return rules_passes(&c->answer) ? REASON_ALLOWED :
						  c->answer.reason;
	why = conn_target_set(c->s, &hello->sni, NULL, c->target->port,
			      c->target, &c->dns);
	if (why != REASON_ALLOWED)
		return why;
	conn_target_judge(c, c->target, &c->answer);
	if (!rules_passes(&c->answer))
		return c->answer.reason;
	return conn_protocol(c, &c->answer)->speech == SPEECH_HTTP ?
		       REASON_PROTOCOL_MISMATCH : REASON_ALLOWED;
}

static enum reason literal_named(const struct conn *c,
				 const struct sniff_hello *hello)
{
	const struct rules_question q = {
		.host = host_name_str(&hello->sni),
		.addr = &c->target->addr,
		.port = c->target->port,
		.hosts = c->s->worker->hosts,
		.now = clock_wall_s(),
	};
	struct rules_answer answer;

	rules_judge(c->rules, &q, &answer);
	return rules_passes(&answer) ? REASON_ALLOWED : REASON_NAME_MISMATCH;
}

static enum reason hello_judge(struct conn *c,
			       const struct sniff_hello *hello)
{
	if (c->by_first_bytes)
		return first_bytes_named(c, hello);
	if (c->target->name.n == 0)
		return hello->has_sni ? literal_named(c, hello) :
					REASON_ALLOWED;
	if (!hello->has_sni)
		return conn_names_literal_passes(c) ? REASON_ALLOWED :
						      REASON_SNI_MISSING;
	if (c->target->alone)
		return conn_names_pick(c, &hello->sni);
	return str_eq(host_name_str(&hello->sni),
		      host_name_str(&c->target->name)) ?
		       REASON_ALLOWED : REASON_NAME_MISMATCH;
}

/* For the record. */
static enum reason hello_keep(struct conn *c, struct str sni)
{
	mem_free(c->sni);
	c->sni = NULL;
	c->sni_n = MIN(sni.n, (size_t)CONN_SNI_MAX);
	if (c->sni_n == 0)
		return REASON_ALLOWED;
	c->sni = mem_dup_str(str_make(sni.p, c->sni_n));
	if (c->sni)
		return REASON_ALLOWED;
	c->sni_n = 0;
	return REASON_MEMORY_EXCEEDED;
}

static void hello_done(struct conn *c, const struct sniff_hello *hello)
{
	enum reason why = hello_keep(c, hello->sni_raw);

	if (why == REASON_ALLOWED)
		why = hello_judge(c, hello);
	if (why != REASON_ALLOWED)
		conn_refuse(c, why);
	else if (c->established)
		conn_start_relay(c, buf_str(&c->ask->in), STR_NONE);
	else
		conn_dial(c);
}

void conn_on_hello(struct conn *c, bool end)
{
	struct sniff_hello hello = { 0 };
	enum reason why = REASON_ALLOWED;
	enum sniff_result result = SNIFF_MORE;

	if (c->ask->in.n && hello_grew(c))
		result = sniff_hello(buf_str(&c->ask->in),
				     relay_pool_scratch(c->s->worker->relay),
				     &hello, &why);
	switch (result) {
	case SNIFF_MORE:
		if (end)
			conn_finish(c, c->ask->in.n ? REASON_HELLO_INCOMPLETE :
				    REASON_CLIENT_CLOSED_EARLY, false);
		break;
	case SNIFF_DONE:
		hello_done(c, &hello);
		break;
	case SNIFF_BAD:
		/* Nothing that could have named it: the address decides. */
		if (c->by_first_bytes && !rules_passes(&c->answer) &&
		    c->answer.reason != REASON_SNI_MISSING)
			why = c->answer.reason;
		conn_refuse(c, why);
		break;
	}
}
