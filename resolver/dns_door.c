/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door.c - birth and end of a sandbox's door
 */
#include "resolver/dns_door.h"

#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "resolver/dns_local.h"
#include "resolver/dns_query.h"
#include "resolver/dns_repeats.h"
#include "rules/rules.h"

static void take_nonce(struct dns_door *d, const char *nonce)
{
	char text[DNS_TEXT_MAX + 1];
	struct str n = str_from(nonce), suffix = STR(DNS_SELF_TEST_SUFFIX);

	d->self_test.n = 0;
	if (str_empty(n) || n.n + suffix.n > DNS_TEXT_MAX)
		return;
	memcpy(text, n.p, n.n);
	memcpy(text + n.n, suffix.p, suffix.n);
	if (host_name_parse(str_make(text, n.n + suffix.n), &d->self_test) != 0)
		d->self_test.n = 0;
}

static int open_sockets(struct dns_door *d,
			const struct dns_door_config *config)
{
	int err = 0;

	d->udp = mem_new_array(MAX(config->nudp, 1), sizeof(d->udp[0]));
	d->tcp = mem_new_array(MAX(config->ntcp, 1), sizeof(d->tcp[0]));
	if (!d->udp || !d->tcp)
		return -ENOMEM;
	while (err == 0 && d->nudp < config->nudp)
		err = dns_udp_open(d, config->udp[d->nudp]);
	while (err == 0 && d->ntcp < config->ntcp)
		err = dns_tcp_open(d, config->tcp[d->ntcp]);
	return err;
}

static struct dns_door *door_alloc(const struct dns_door_config *config)
{
	struct dns_door *d = mem_new(sizeof(*d));

	if (!d)
		return NULL;
	d->magic = DNS_DOOR_MAGIC;
	d->base = config->base;
	d->resolver = config->resolver;
	if (dns_door_open_repeats(d) != 0) {
		mem_free(d);
		return NULL;
	}
	d->rules = rules_ref(config->rules);
	d->names = config->names;
	d->pins = config->pins;
	d->sink = config->sink;
	d->hosts = config->hosts;
	d->real = config->real;
	d->clients = config->clients;
	d->on_stranger = config->on_stranger;
	d->share = config->share;
	d->arg = config->arg;
	d->turn_due = config->due;
	d->spend = config->spend;
	d->elsewhere = config->elsewhere;
	d->elsewhere_arg = config->elsewhere_arg;
	d->asker.tenant = config->tenant;
	d->asker.budget = config->budget;
	d->owner = config->owner;
	d->tcp_idle_ms = DNS_TCP_IDLE_MS;
	d->sifted = BUF_FOR(DNS_RDATA_MAX, config->owner);
	list_init(&d->conns);
	list_init(&d->dues);
	list_init(&d->queries);
	dns_local_hostname(config->hostname, &d->hostname);
	take_nonce(d, config->nonce);
	return d;
}

int dns_door_new(const struct dns_door_config *config, struct dns_door **ret)
{
	struct dns_door *d = door_alloc(config);
	int err = d ? open_sockets(d, config) : -ENOMEM;
	size_t i;

	if (err) {
		/* Those that the door has are closed with it. */
		for (i = d ? d->nudp : 0; i < config->nudp; i++)
			close(config->udp[i]);
		for (i = d ? d->ntcp : 0; i < config->ntcp; i++)
			close(config->tcp[i]);
		dns_door_free(d);
		return err;
	}
	*ret = d;
	return 0;
}

bool dns_door_admits(const struct dns_door *d, const struct ip_endpoint *src,
		     int fd, bool tcp)
{
	struct sockaddr_storage ss;
	struct ip_endpoint at = { .port = 0 };
	socklen_t n = sizeof(ss);

	if (!d->clients || ip_nets_have(d->clients, &src->addr))
		return true;
	if (getsockname(fd, (struct sockaddr *)&ss, &n) != 0 ||
	    ip_endpoint_from_sockaddr((struct sockaddr *)&ss, n, &at) != 0)
		at.port = 0;
	d->on_stranger(d->arg, src, &at, tcp);
	return false;
}

bool dns_door_turns_down(struct dns_door *d, const uint8_t *msg, size_t n,
			 struct dns_client *c)
{
	struct dns_reply reply = { .rcode = DNS_REFUSED, .ede = -1 };
	enum reason why = REASON_ALLOWED;
	uint8_t out[DNS_EDNS_SIZE];
	struct dns_question q;
	enum dns_share share;

	if (!d->share)
		return false;
	share = d->share(d->arg, &c->src, &c->asked, c->tcp, &why);
	if (share == DNS_SHARE_OK)
		return false;
	/* What is no question is none of a share's; it ends as ever by TCP. */
	if (dns_question_parse(msg, n, &q) != DNS_PARSE_OK)
		return !c->tcp;
	if (share == DNS_SHARE_SLIP) {
		reply.rcode = DNS_NOERROR;
		reply.cut = true;
	} else {
		reply.ede = reason_info(why)->ede;
		reply.ede_text = str_from(reason_word(why));
	}
	if (c->tcp)
		dns_conn_reply(c->conn, &c->conn_node, out,
			       dns_reply_encode(&q, &reply, sizeof(out), out));
	else if (share != DNS_SHARE_DROP)
		dns_udp_reply(d, c, out,
			      dns_reply_encode(&q, &reply, sizeof(out), out));
	return true;
}

/* --- turns --------------------------------------------------------------------- */

void dns_door_turn(struct dns_door *d)
{
	while (!list_empty(&d->dues) && dns_door_spend(d, 0)) {
		struct dns_due *due = list_first(&d->dues, struct dns_due,
						 node);

		list_del(&due->node);
		due->fn(due);
	}
	/* The share is used up, so that this is for another time. */
	if (!list_empty(&d->dues) && !d->frozen)
		d->turn_due(d->arg);
}

void dns_door_due(struct dns_door *d, struct dns_due *due)
{
	if (!d->turn_due && !d->frozen) {
		due->fn(due);
		return;
	}
	if (list_empty(&due->node))
		list_add(&d->dues, &due->node);
	if (!d->frozen)
		d->turn_due(d->arg);
}

bool dns_door_is_real(const struct dns_door *d)
{
	enum rules_answers said = rules_dns(d->rules)->answers;

	return said == RULES_ANSWERS_DEFAULT ? d->real :
					       said == RULES_ANSWERS_REAL;
}

void dns_door_flush_records(struct dns_door *d)
{
	dns_repeats_flush(d->repeats);
}

void dns_door_set_rules(struct dns_door *d, struct ruleset *rules,
			uint64_t tenant)
{
	struct ruleset *old = d->rules;
	const uint64_t old_tenant = d->asker.tenant;

	/* Counts speak of the old rules, and borrow from them. */
	dns_door_flush_records(d);
	d->rules = rules_ref(rules);
	d->asker.tenant = tenant;
	/* What waits borrows from the old rules until it was judged again. */
	dns_query_rejudge_all(d);
	rules_unref(old);
	if (old_tenant != tenant)
		resolver_forget(d->resolver, old_tenant);
}

/* --- for a while ------------------------------------------------------------------ */

static void door_watch(struct dns_door *d)
{
	size_t i;
	int err = 0;

	for (i = 0; i < d->nudp; i++)
		err |= dns_udp_watch(&d->udp[i]);
	for (i = 0; i < d->ntcp; i++)
		err |= dns_tcp_watch(&d->tcp[i]);
	if (err)
		log_error("dns: a door is shut: out of memory");
	dns_conn_watch_all(d);
}

void dns_door_freeze(struct dns_door *d)
{
	d->frozen = true;
	door_watch(d);
}

void dns_door_thaw(struct dns_door *d)
{
	d->frozen = false;
	door_watch(d);
	if (list_empty(&d->dues))
		return;
	if (d->turn_due)
		d->turn_due(d->arg);
	else
		dns_door_turn(d);
}

unsigned dns_door_waiting(const struct dns_door *d)
{
	return d->nqueries;
}

void dns_door_forsake(struct dns_door *d)
{
	REQUIRE(d->frozen);
	dns_conn_end_waiting(d);
	dns_query_drop_all(d);
}

void dns_door_set_sink(struct dns_door *d, struct audit_sink *sink)
{
	dns_door_flush_records(d);
	d->sink = sink;
}

void dns_door_free(struct dns_door *d)
{
	if (!d)
		return;
	while (d->nudp > 0)
		dns_udp_close(&d->udp[--d->nudp]);
	while (d->ntcp > 0)
		dns_tcp_close(&d->tcp[--d->ntcp]);
	dns_query_drop_all(d);
	resolver_forget(d->resolver, d->asker.tenant);
	dns_conn_end_all(d);
	dns_door_shut_repeats(d);
	buf_done(&d->sifted);
	mem_free(d->udp);
	mem_free(d->tcp);
	rules_unref(d->rules);
	d->magic = 0;
	mem_free(d);
}
