/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_cache.c - what the world answered, for a while
 *
 * An entry is one allocation: head, addresses, name, other records.  It stands
 * in a hash table and in a list in the order of last use, whose front is given
 * up first.
 *
 * Names that are asked for all the time would have somebody wait each time an
 * answer runs out.  So one that is asked for in the last tenth of its life says
 * once that it should be asked anew, and answers on meanwhile.
 */
#include "resolver/dns_cache.h"

#include <errno.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/mem.h"

struct entry {
	struct hash_node node;
	struct list used;
	uint64_t tenant;
	int64_t until_ms;
	size_t bytes;
	struct str name, rdata;		/* behind the addresses */
	enum resolver_type type;
	enum reason reason;
	uint32_t ttl_s;
	int64_t renew_ms;		/* asked for from then on: ask anew */
	size_t n;
	struct ip_addr addr[];
};

struct dns_cache {
	struct hash_table table;
	struct list used;		/* oldest first */
	size_t bytes, budget;
};

int dns_cache_new(size_t budget_bytes, struct dns_cache **ret)
{
	struct dns_cache *c = mem_new(sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (hash_init(&c->table, 64) != 0) {
		mem_free(c);
		return -ENOMEM;
	}
	list_init(&c->used);
	c->budget = budget_bytes;
	*ret = c;
	return 0;
}

static void entry_drop(struct dns_cache *c, struct entry *e)
{
	hash_remove(&c->table, &e->node);
	list_del(&e->used);
	c->bytes -= e->bytes;
	mem_free(e);
}

void dns_cache_flush(struct dns_cache *c)
{
	while (!list_empty(&c->used))
		entry_drop(c, list_first(&c->used, struct entry, used));
}

void dns_cache_free(struct dns_cache *c)
{
	if (!c)
		return;
	dns_cache_flush(c);
	hash_done(&c->table);
	mem_free(c);
}

/* Tenant and type are mixed into the name's keyed hash, then compared. */
uint64_t dns_cache_hash(uint64_t tenant, struct str name,
			enum resolver_type type)
{
	uint64_t mix[3] = { tenant, (uint64_t)type, hash_str(name) };

	return hash_bytes(mix, sizeof(mix));
}

static struct entry *find(const struct dns_cache *c, uint64_t hash,
			  uint64_t tenant, struct str name,
			  enum resolver_type type)
{
	struct hash_node *node = hash_first(&c->table, hash);

	for (; node; node = hash_next(node)) {
		struct entry *e = container_of(node, struct entry, node);

		if (e->tenant == tenant && e->type == type &&
		    str_eq(e->name, name))
			return e;
	}
	return NULL;
}

bool dns_cache_get(struct dns_cache *c, uint64_t tenant, struct str name,
		   enum resolver_type type, int64_t now_ms,
		   struct resolver_answer *ret)
{
	uint64_t hash = dns_cache_hash(tenant, name, type);
	struct entry *e = find(c, hash, tenant, name, type);

	if (!e)
		return false;
	if (now_ms >= e->until_ms) {
		entry_drop(c, e);
		return false;
	}
	list_del(&e->used);
	list_add(&c->used, &e->used);
	*ret = (struct resolver_answer){
		.reason = e->reason, .addr = e->addr, .n = e->n,
		.rdata = e->rdata,
		.ttl_s = e->ttl_s, .renew = now_ms >= e->renew_ms,
	};
	if (ret->renew)
		e->renew_ms = INT64_MAX;	/* once is enough */
	return true;
}

uint32_t dns_cache_life(enum reason reason, uint32_t ttl_s)
{
	if (reason == REASON_ALLOWED)
		return MIN(ttl_s, DNS_TTL_MAX_S);
	if (reason == REASON_DNS_NXDOMAIN || reason == REASON_DNS_NO_ADDRESS)
		return MIN(ttl_s, DNS_TTL_NEGATIVE_S);
	return MIN(ttl_s, DNS_TTL_FAILED_S);
}

static bool is_failure(enum reason reason)
{
	return reason != REASON_ALLOWED && reason != REASON_DNS_NXDOMAIN &&
	       reason != REASON_DNS_NO_ADDRESS;
}

/* When an answer that is asked for is asked anew: in the last tenth. */
static int64_t renew_at(enum reason reason, uint32_t life_s, int64_t until_ms)
{
	if (reason != REASON_ALLOWED || life_s < DNS_RENEW_LIFE_S)
		return INT64_MAX;
	return until_ms - (int64_t)life_s * 1000 / 10;
}

void dns_cache_put(struct dns_cache *c, uint64_t tenant, struct str name,
		   enum resolver_type type, int64_t now_ms,
		   const struct resolver_answer *answer)
{
	uint64_t hash = dns_cache_hash(tenant, name, type);
	uint32_t life = dns_cache_life(answer->reason, answer->ttl_s);
	struct entry *e = find(c, hash, tenant, name, type);
	size_t addrs = answer->n * sizeof(e->addr[0]);
	size_t bytes = sizeof(*e) + addrs + name.n + answer->rdata.n;
	int64_t until_ms = now_ms + (int64_t)life * 1000;
	char *behind;

	REQUIRE(answer->n <= RESOLVER_ADDRS_MAX);
	/* It was asked anew in vain: what is known still holds. */
	if (e && is_failure(answer->reason) && e->reason == REASON_ALLOWED &&
	    now_ms < e->until_ms)
		return;
	if (e)
		entry_drop(c, e);
	if (life == 0 || bytes > c->budget)
		return;
	while (c->bytes + bytes > c->budget)
		entry_drop(c, list_first(&c->used, struct entry, used));
	e = mem_new(bytes);
	if (!e)
		return;
	*e = (struct entry){
		.tenant = tenant, .type = type, .reason = answer->reason,
		.ttl_s = life, .n = answer->n, .bytes = bytes,
		.until_ms = until_ms,
		.renew_ms = renew_at(answer->reason, life, until_ms),
	};
	if (addrs)
		memcpy(e->addr, answer->addr, addrs);
	behind = (char *)e->addr + addrs;
	memcpy(behind, name.p, name.n);
	e->name = str_make(behind, name.n);
	if (answer->rdata.n)
		memcpy(behind + name.n, answer->rdata.p, answer->rdata.n);
	e->rdata = str_make(behind + name.n, answer->rdata.n);
	list_add(&c->used, &e->used);
	hash_add(&c->table, &e->node, hash);
	c->bytes += bytes;
}

size_t dns_cache_bytes(const struct dns_cache *c)
{
	return c->bytes;
}
