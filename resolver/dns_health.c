/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_health.c - which upstream server to ask next: what is known of them, pure
 */
#include "resolver/dns_health.h"

#include "base/compiler.h"

#define LATE_SHARE	8	/* of a new answer in the mean: one part in */

bool dns_health_pick(const struct dns_health *h, size_t n, unsigned tried,
		     int64_t now_ms, unsigned *ret)
{
	bool found = false;

	for (unsigned i = 0; i < n; i++) {
		if (tried & BIT(i))
			continue;
		if (h[i].rests_until_ms <= now_ms) {
			*ret = i;
			return true;
		}
		if (!found)
			*ret = i;
		found = true;
	}
	return found;
}

void dns_health_failed(struct dns_health *h, int64_t now_ms)
{
	/* Questions that were under way together tell of one fault. */
	if (h->rests_until_ms > now_ms)
		return;
	h->rest_ms = h->rest_ms ? MIN(h->rest_ms * 2, DNS_REST_MAX_MS)
				: DNS_REST_MS;
	h->rests_until_ms = now_ms + h->rest_ms;
}

void dns_health_good(struct dns_health *h, uint32_t took_ms, int64_t now_ms)
{
	h->rest_ms = 0;
	h->rests_until_ms = 0;
	/* From 0 on: one name that is slow to find says nothing. */
	h->late_ms -= h->late_ms / LATE_SHARE;
	h->late_ms += took_ms / LATE_SHARE;
	if (h->late_ms > DNS_LATE_MS) {
		h->late_ms = 0;
		h->rests_until_ms = now_ms + DNS_REST_MS;
	}
}

void dns_health_forged(struct dns_health *h, int64_t now_ms)
{
	h->tcp_until_ms = now_ms + DNS_TCP_MS;
}

bool dns_health_wants_tcp(const struct dns_health *h, int64_t now_ms)
{
	return h->tcp_until_ms > now_ms;
}

void dns_health_no_tcp(struct dns_health *h)
{
	h->tcp_until_ms = 0;
}
