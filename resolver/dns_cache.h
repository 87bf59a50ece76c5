/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_cache.h - what the world answered, for a while: pure, bounded in bytes
 *
 * One cache per worker.  The key is (tenant, name, type): sandboxes that may
 * not learn of each other's lookups have different tenants and never meet
 * here.  When the bytes are spent, the entry used longest ago goes.  Time is
 * the caller's, so that tests need no clock.
 */
#ifndef RESOLVER_DNS_CACHE_H
#define RESOLVER_DNS_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"
#include "resolver/resolver.h"

#define DNS_TTL_MAX_S		300	/* answers */
#define DNS_TTL_NEGATIVE_S	60	/* at most: no such name, no such type */
#define DNS_TTL_NO_SOA_S	5	/* the same without an SOA to say */
#define DNS_TTL_FAILED_S	5	/* failures and timeouts */
#define DNS_RENEW_LIFE_S	10	/* shorter lives are not renewed early */

struct dns_cache;	/* opaque */

NODISCARD int dns_cache_new(size_t budget_bytes, struct dns_cache **ret);
void dns_cache_free(struct dns_cache *c);

/**
 * dns_cache_get() - An answer that has not run out at @now_ms
 * @ret:	addresses are borrowed from the cache, until the next call of it;
 *		->renew once, in the last tenth of an answer's life
 * Return: false when there is none
 */
bool dns_cache_get(struct dns_cache *c, uint64_t tenant, struct str name,
		   enum resolver_type type, int64_t now_ms,
		   struct resolver_answer *ret);

/**
 * dns_cache_put() - Keep @answer for its ttl_s, replacing what was there
 *
 * The life is clamped by the constants above after the answer's reason; a
 * life of 0, an answer over the budget and a lack of memory keep nothing.  A
 * failure does not replace an answer that still holds.
 */
void dns_cache_put(struct dns_cache *c, uint64_t tenant, struct str name,
		   enum resolver_type type, int64_t now_ms,
		   const struct resolver_answer *answer);

void dns_cache_flush(struct dns_cache *c);	/* other servers, other answers */
size_t dns_cache_bytes(const struct dns_cache *c);

/* Hash of the key, for whoever keeps a table by the same key. */
uint64_t dns_cache_hash(uint64_t tenant, struct str name,
			enum resolver_type type);

/* The clamp that dns_cache_put() applies. */
uint32_t dns_cache_life(enum reason reason, uint32_t ttl_s);

#endif /* RESOLVER_DNS_CACHE_H */
