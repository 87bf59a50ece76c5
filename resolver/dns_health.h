/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_health.h - which upstream server to ask next: what is known of them, pure
 *
 * A server that was of no use rests: it is asked after the others.  It is
 * never left out, so that a fault that all share ends as soon as it is over.
 */
#ifndef RESOLVER_DNS_HEALTH_H
#define RESOLVER_DNS_HEALTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNS_REST_MS		30000	/* doubles while nothing good comes */
#define DNS_REST_MAX_MS		300000
#define DNS_LATE_MS		500	/* slower than this on the whole: rest */
#define DNS_TCP_MS		60000	/* how long UDP is not trusted */

struct dns_health {
	int64_t rests_until_ms;
	int64_t tcp_until_ms;
	uint32_t rest_ms;	/* the last rest; 0: since then it was good */
	uint32_t late_ms;	/* moving mean of how long answers take */
};

/**
 * dns_health_pick() - The server to ask next
 * @tried:	those that need not be asked again, as bits
 *
 * The first in order that does not rest; when all do, the first.
 * Return: false when all were tried
 */
bool dns_health_pick(const struct dns_health *h, size_t n, unsigned tried,
		     int64_t now_ms, unsigned *ret);

/* It did not answer, or not what another could. */
void dns_health_failed(struct dns_health *h, int64_t now_ms);
/* It gave an answer that is believed, in @took_ms. */
void dns_health_good(struct dns_health *h, uint32_t took_ms, int64_t now_ms);
/* What came by UDP was not its own: TCP told otherwise. */
void dns_health_forged(struct dns_health *h, int64_t now_ms);
bool dns_health_wants_tcp(const struct dns_health *h, int64_t now_ms);
/* TCP does not work either. */
void dns_health_no_tcp(struct dns_health *h);

#endif /* RESOLVER_DNS_HEALTH_H */
