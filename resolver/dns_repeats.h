/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_repeats.h - questions that come again within seconds, counted: pure
 *
 * Programs ask the same over and over.  What was decided is recorded before it
 * is acted on, the first time; an equal question with an equal answer within
 * DNS_REPEAT_MS of that is only counted.  When that time is over, one more record
 * with the id of the first says how many they were.  It says so earlier when the
 * bytes are spent (the oldest goes first), and when the table is flushed.
 *
 * One table per sandbox.  Time is the caller's, so that tests need no clock.
 */
#ifndef RESOLVER_DNS_REPEATS_H
#define RESOLVER_DNS_REPEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "audit/record.h"
#include "base/compiler.h"
#include "base/id.h"
#include "base/ip_addr.h"
#include "base/str.h"

#define DNS_REPEAT_MS		5000
#define DNS_REPEATS_BYTES	(256u << 10)	/* of one sandbox */

struct dns_repeats;	/* opaque */
struct repeat;		/* opaque */

/* Which question it is; how it was answered is compared apart from this. */
struct dns_repeat_key {
	struct str name;	/* borrowed, in lower case */
	uint16_t type;
	bool tcp;
	struct ip_addr asked;
	uint64_t hash;		/* dns_repeat_hash() of the rest */
};

/* What was found, as long as nothing was added or removed since. */
struct dns_repeat_found {
	struct repeat *entry;	/* NULL: nothing */
	uint64_t changes;
};

/* Writes a record that is counted; not called when nothing came again. */
typedef void dns_repeats_fn(void *arg, const struct record *r);

NODISCARD int dns_repeats_new(size_t budget_bytes, dns_repeats_fn *fn,
			      void *arg, struct dns_repeats **ret);
void dns_repeats_free(struct dns_repeats *t);	/* flush it before */

uint64_t dns_repeat_hash(const struct dns_repeat_key *key);

/**
 * dns_repeats_find() - Does this question stand recorded, whatever its answer?
 * @ret:	the id of that record
 * @ret_found:	set in any case; spares the calls below another search
 */
bool dns_repeats_find(const struct dns_repeats *t,
		      const struct dns_repeat_key *key, struct id *ret,
		      struct dns_repeat_found *ret_found);

/**
 * dns_repeats_count() - Is @r, which answers @key, what stands recorded?
 * @found:	of dns_repeats_find() with that key, at any time before
 * @ret:	the id of that record
 * Return: true: counted; false: it has to be recorded, and then added
 */
bool dns_repeats_count(struct dns_repeats *t, const struct dns_repeat_key *key,
		       struct dns_repeat_found *found, const struct record *r,
		       struct id *ret);

/**
 * dns_repeats_add() - @r was recorded; its equals are counted from now on
 *
 * Strings and answers are copied, but for the rule's name, which must last
 * until the next flush.  Without memory nothing is kept, and so each of them
 * will be recorded.
 */
void dns_repeats_add(struct dns_repeats *t, const struct dns_repeat_key *key,
		     struct dns_repeat_found *found, const struct record *r,
		     int64_t now_ms);

/**
 * dns_repeats_close() - Write the counts of what is over at @now_ms
 * Return: when to call again, or -1: nothing is counted now
 */
int64_t dns_repeats_close(struct dns_repeats *t, int64_t now_ms);

void dns_repeats_flush(struct dns_repeats *t);	/* all of them, now */
size_t dns_repeats_bytes(const struct dns_repeats *t);

#endif /* RESOLVER_DNS_REPEATS_H */
