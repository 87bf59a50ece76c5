/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver.c - lookups of one worker: cache, flights, and chains that go on
 *
 * Theory
 * ======
 * Those who ask the same (tenant, name, type) at the same time share a flight:
 * one question to the world, many lookups that wait for it.  A lookup can be
 * cancelled at any time, from inside a call-back too; its flight goes on and
 * fills the cache, unless its tenant was forgotten, since the policy changed or
 * the run is over: then nothing is sent that nobody waits for.  An answer of
 * the cache that is nearly over begins one for nobody, before the next one has
 * to wait.  A flight whose answer ends in a CNAME without addresses and without
 * an SOA record (a forwarder that does not follow) asks on for the name at the
 * end, until DNS_CHAIN_MAX links in all, or ASK_ON_MS are over: then who waits
 * is told so, however slowly each link is answered.
 *
 * Whoever serves the zone of an allowed name says what it is an alias of.  Of
 * addresses the class is judged by whoever asked; other records would be read
 * as they are, so those of a name that stays inside networks are none, and
 * nobody is asked about such a name for the sake of an alias.
 */
#include "resolver/resolver.h"

#include <errno.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/list.h"
#include "base/mem.h"
#include "resolver/dns_budget.h"
#include "resolver/dns_cache.h"
#include "resolver/dns_local.h"
#include "resolver/dns_upstream.h"
#include "resolver/resolver_priv.h"

#define CACHE_BYTES	(4u << 20)
#define LOOKUPS_MAX	4096	/* waiting on one worker */
#define RENEWALS_MAX	64	/* flights of one worker that nobody waited for */
#define ASK_ON_MS	5000	/* of a flight; later no link is followed */

struct flight {
	struct hash_node node;
	struct list all;
	struct resolver *r;
	uint64_t tenant;
	enum resolver_type type;
	struct dns_name name;	/* as asked: the key */
	char text[DNS_TEXT_MAX + 1];
	size_t text_n;
	unsigned chain;		/* CNAMEs followed so far */
	int64_t start_ms;
	uint32_t ttl_s;		/* smallest so far */
	bool renewal;		/* begun for nobody */
	bool stale;		/* its tenant is forgotten */
	bool landed;		/* it tells those that wait, and is over */
	struct list lookups;
};

struct resolver_lookup {
	struct list node;	/* alone once it was called or cancelled */
	struct resolver *r;
	struct flight *flight;
	struct dns_budget *budget;
	resolver_fn *fn;
	void *arg;
};

struct resolver {
	struct dns_upstream *up;
	struct dns_cache *cache;
	struct dns_batch *batch;
	struct hash_table flights;
	struct list all;
	unsigned nlookups, nrenewals;
};

int resolver_new(struct event_base *base, struct resolver **ret)
{
	const struct dns_upstream_config config = { .base = base };

	return resolver_new_with(&config, ret);
}

int resolver_new_with(const struct dns_upstream_config *config,
		      struct resolver **ret)
{
	struct resolver *r = mem_new(sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	list_init(&r->all);
	err = hash_init(&r->flights, 64);
	if (!err)
		err = dns_cache_new(CACHE_BYTES, &r->cache);
	if (!err)
		err = dns_upstream_new(config, &r->up);
	if (err) {
		resolver_free(r);
		return err;
	}
	*ret = r;
	return 0;
}

static void lookup_free(struct resolver_lookup *l)
{
	list_del(&l->node);
	l->r->nlookups--;
	mem_free(l);
}

/* Out of the table: whoever asks from now on does not meet it. */
static void flight_land(struct flight *f)
{
	f->landed = true;
	f->r->nrenewals -= f->renewal;
	hash_remove(&f->r->flights, &f->node);
	list_del(&f->all);
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	dns_upstream_free(r->up);
	while (!list_empty(&r->all)) {
		struct flight *f = list_first(&r->all, struct flight, all);

		while (!list_empty(&f->lookups))
			lookup_free(list_first(&f->lookups,
					       struct resolver_lookup, node));
		flight_land(f);
		mem_free(f);
	}
	hash_done(&r->flights);
	dns_cache_free(r->cache);
	mem_free(r->batch);
	mem_free(r);
}

int resolver_set_servers(struct resolver *r,
			 const struct resolver_servers *servers)
{
	for (size_t i = 0; i < servers->n; i++) {
		const struct ip_endpoint *at = &servers->server[i].at;

		if (at->port == 0 || (at->addr.family != IP_V4 &&
				      at->addr.family != IP_V6) ||
		    (servers->server[i].tls && !servers->tls))
			return -EINVAL;
	}
	dns_cache_flush(r->cache);
	dns_upstream_set_servers(r->up, servers);
	return 0;
}

struct dns_batch *resolver_batch(struct resolver *r)
{
	if (!r->batch)
		r->batch = mem_new(sizeof(*r->batch));
	return r->batch;
}

size_t resolver_sockets(const struct resolver *r)
{
	return dns_upstream_sockets(r->up);
}

/* --- flights --------------------------------------------------------------- */

static void flight_end(struct flight *f, const struct resolver_answer *answer)
{
	struct resolver_answer clamped = *answer;
	struct resolver *r = f->r;

	clamped.ttl_s = dns_cache_life(answer->reason, answer->ttl_s);
	if (!f->stale)
		dns_cache_put(r->cache, f->tenant, str_make(f->text, f->text_n),
			      f->type, clock_mono_ms(), answer);
	flight_land(f);
	while (!list_empty(&f->lookups)) {
		struct resolver_lookup *l = list_first(&f->lookups,
						struct resolver_lookup, node);
		resolver_fn *fn = l->fn;
		void *arg = l->arg;

		if (answer->reason == REASON_DNS_NXDOMAIN)
			dns_budget_on_nxdomain(l->budget, str_make(f->text,
								   f->text_n));
		lookup_free(l);
		fn(arg, &clamped);
	}
	mem_free(f);
}

static void flight_fail(struct flight *f, enum reason reason)
{
	flight_end(f, &(struct resolver_answer){
		.reason = reason, .ttl_s = DNS_TTL_FAILED_S });
}

static void flight_on_outcome(void *arg, enum dns_outcome outcome,
			      const struct dns_answer *answer);

/* The chain ended in nothing: ask on, unless the answer says it is the end. */
static bool flight_goes_on(const struct flight *f, const struct dns_answer *a)
{
	return a->chain > 0 && a->naddr == 0 && a->rdata.n == 0 &&
	       !a->has_soa &&
	       a->rcode == DNS_NOERROR && f->chain <= DNS_CHAIN_MAX;
}

static bool leads_inside(const struct flight *f, const struct dns_answer *a)
{
	char text[DNS_TEXT_MAX + 1];
	size_t n;

	if (a->chain == 0 || (a->rdata.n == 0 && !flight_goes_on(f, a)))
		return false;
	(void)dns_name_text(&a->tail, text, &n);
	return dns_local_bars_alias(str_make(text, n));
}

static void flight_ask_on(struct flight *f, const struct dns_name *name)
{
	if (clock_mono_ms() - f->start_ms >= ASK_ON_MS)
		flight_fail(f, REASON_DNS_TIMEOUT);
	else if (dns_upstream_ask(f->r->up, name, (uint16_t)f->type,
				  flight_on_outcome, f) != 0)
		flight_fail(f, REASON_DNS_FAILED);
}

static void flight_on_answer(struct flight *f, const struct dns_answer *a)
{
	struct resolver_answer end = { .reason = REASON_ALLOWED };

	f->chain += a->chain;
	f->ttl_s = MIN(f->ttl_s, a->ttl_s);
	if (f->chain > DNS_CHAIN_MAX) {
		flight_fail(f, REASON_DNS_FAILED);
		return;
	}
	if (leads_inside(f, a)) {
		flight_fail(f, REASON_ALIAS_NOT_ALLOWED);
		return;
	}
	if (flight_goes_on(f, a)) {
		flight_ask_on(f, &a->tail);
		return;
	}
	if (a->naddr > 0 || a->rdata.n > 0) {
		end.addr = a->addr;
		end.n = a->naddr;
		end.rdata = buf_str(&a->rdata);
		end.ttl_s = f->ttl_s;
	} else {
		end.reason = a->rcode == DNS_NXDOMAIN ? REASON_DNS_NXDOMAIN :
							REASON_DNS_NO_ADDRESS;
		end.ttl_s = MIN(f->ttl_s, a->has_soa ? a->soa_ttl_s :
						       DNS_TTL_NO_SOA_S);
	}
	flight_end(f, &end);
}

static void flight_on_outcome(void *arg, enum dns_outcome outcome,
			      const struct dns_answer *answer)
{
	struct flight *f = arg;

	if (outcome == DNS_ANSWERED)
		flight_on_answer(f, answer);
	else
		flight_fail(f, outcome == DNS_TIMED_OUT ? REASON_DNS_TIMEOUT :
			       outcome == DNS_NO_TLS ? REASON_DNS_TLS_FAILED :
						       REASON_DNS_FAILED);
}

static struct flight *flight_find(const struct resolver *r, uint64_t tenant,
				  struct str name, enum resolver_type type)
{
	struct hash_node *node = hash_first(&r->flights,
					    dns_cache_hash(tenant, name, type));

	for (; node; node = hash_next(node)) {
		struct flight *f = container_of(node, struct flight, node);

		if (f->tenant == tenant && f->type == type &&
		    str_eq(str_make(f->text, f->text_n), name))
			return f;
	}
	return NULL;
}

static int flight_start(struct resolver *r, uint64_t tenant, struct str name,
			enum resolver_type type, struct flight **ret)
{
	CLEANUP(mem_freep) struct flight *f = mem_new(sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->r = r;
	f->tenant = tenant;
	f->type = type;
	f->start_ms = clock_mono_ms();
	f->ttl_s = UINT32_MAX;
	list_init(&f->lookups);
	err = dns_name_from_text(name, &f->name);
	if (err)
		return err;
	(void)dns_name_text(&f->name, f->text, &f->text_n);
	if (!str_eq(str_make(f->text, f->text_n), name))
		return -EINVAL;		/* not in lower case */
	err = dns_upstream_ask(r->up, &f->name, (uint16_t)type,
			       flight_on_outcome, f);
	if (err)
		return err;
	list_add(&r->all, &f->all);
	hash_add(&r->flights, &f->node, dns_cache_hash(tenant, name, type));
	*ret = f;
	f = NULL;
	return 0;
}

/*
 * Whoever asked is allowed to and has an answer; the next one shall have one
 * too.  Nobody waits for it, so that it may as well not be asked.
 */
static void flight_renew(struct resolver *r, const struct resolver_key *key)
{
	struct flight *f;

	if (r->nrenewals >= RENEWALS_MAX ||
	    flight_find(r, key->asker.tenant, key->name, key->type) ||
	    !dns_budget_renew(key->asker.budget, key->name) ||
	    flight_start(r, key->asker.tenant, key->name, key->type, &f) != 0)
		return;
	f->renewal = true;
	r->nrenewals++;
}

bool resolver_cached(struct resolver *r, const struct resolver_key *key,
		     struct resolver_answer *ret)
{
	struct dns_budget *budget = key->asker.budget;
	enum reason why;

	if (!dns_cache_get(r->cache, key->asker.tenant, key->name, key->type,
			   clock_mono_ms(), ret))
		return false;
	why = dns_budget_ask(budget, key->name, false);
	if (why != REASON_ALLOWED)
		*ret = (struct resolver_answer){ .reason = why };
	else if (ret->reason == REASON_DNS_NXDOMAIN)
		dns_budget_on_nxdomain(budget, key->name);
	if (ret->renew)
		flight_renew(r, key);
	return true;
}

int resolver_start(struct resolver *r, const struct resolver_key *key,
		   resolver_fn *fn, void *arg, struct resolver_lookup **ret)
{
	struct resolver_lookup *l;
	struct flight *f;
	int err;

	if (r->nlookups == LOOKUPS_MAX)
		return -EAGAIN;
	f = flight_find(r, key->asker.tenant, key->name, key->type);
	if (dns_budget_ask(key->asker.budget, key->name, !f) != REASON_ALLOWED)
		return -EDQUOT;
	l = mem_new(sizeof(*l));
	if (!l)
		return -ENOMEM;
	err = f ? 0 : flight_start(r, key->asker.tenant, key->name, key->type,
				   &f);
	if (err) {
		mem_free(l);
		return err;
	}
	l->r = r;
	l->flight = f;
	l->budget = key->asker.budget;
	l->fn = fn;
	l->arg = arg;
	list_add(&f->lookups, &l->node);
	r->nlookups++;
	*ret = l;
	return 0;
}

int resolver_lookup(struct resolver *r, const struct resolver_asker *asker,
		    struct str name, enum resolver_type type, resolver_fn *fn,
		    void *arg, struct resolver_lookup **ret,
		    struct resolver_answer *ret_now)
{
	const struct resolver_key key = { *asker, name, type };
	int err;

	if (resolver_cached(r, &key, ret_now))
		return 1;
	err = resolver_start(r, &key, fn, arg, ret);
	if (err != -EDQUOT)
		return err;
	*ret_now = (struct resolver_answer){
		.reason = dns_budget_why(asker->budget) };
	return 1;
}

/* Of a flight that is stale: is there still a reason to ask? */
static void flight_end_if_idle(struct flight *f)
{
	if (!f->stale || f->landed || !list_empty(&f->lookups))
		return;
	dns_upstream_cancel(f->r->up, f);
	flight_land(f);
	mem_free(f);
}

void resolver_cancel(struct resolver_lookup *l)
{
	struct flight *f;

	if (!l)
		return;
	f = l->flight;
	lookup_free(l);
	flight_end_if_idle(f);
}

void resolver_abandon(struct resolver_lookup *l)
{
	struct flight *f;

	if (!l)
		return;
	f = l->flight;
	lookup_free(l);
	/* Others who wait were judged for themselves. */
	f->stale |= list_empty(&f->lookups);
	flight_end_if_idle(f);
}

void resolver_forget(struct resolver *r, uint64_t tenant)
{
	struct list *it, *tmp;

	list_each(&r->all, it, tmp) {
		struct flight *f = container_of(it, struct flight, all);

		if (f->tenant != tenant)
			continue;
		f->stale = true;
		flight_end_if_idle(f);
	}
}
