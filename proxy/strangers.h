/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strangers.h - who tried to use a listener in vain, and was told nothing
 *
 * It is none of its clients, or one that goes on when it has had its share.
 * Anybody on a network can try as often as they like, so what they do costs
 * one record for each address in STRANGERS_MS, the first at once, and one for
 * all that came again; for STRANGERS_MAX addresses in that time, and the rest
 * together.
 */
#ifndef PROXY_STRANGERS_H
#define PROXY_STRANGERS_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/reason.h"

struct sandbox;
struct strangers;

#define STRANGERS_MAX	64
#define STRANGERS_MS	60000

/* Its records are refusals of @s, for @why. */
NODISCARD int strangers_new(struct sandbox *s, enum reason why,
			    struct strangers **ret);
/**
 * strangers_note() - One more attempt
 * @src:	whose; port 0 or family IP_NONE: not known
 * @at:		our own end, as far as it is known
 * @tcp:	or else UDP
 */
void strangers_note(struct strangers *st, const struct ip_endpoint *src,
		    const struct ip_endpoint *at, bool tcp);
/* Tells what is not told yet.  NULL is fine. */
void strangers_free(struct strangers *st);

#endif /* PROXY_STRANGERS_H */
