/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_pins.h - under which names a sandbox was given a real address
 *
 * One set per sandbox, used only from its worker.  A pin says: this name was
 * answered with this address.  An address has a set of names, since many share
 * one.  A pin lasts for the larger of its TTL and NAME_PINS_GRACE_MS after its
 * last use, which is an answer or the life of a connection; while one lives, the
 * pin does not end.  Time is the caller's (clock_mono_ms()), so that tests need
 * no clock, and there is no timer: what is over is not found any more, and is
 * freed by and by when names are given.
 *
 * When the bytes are spent, what goes is, in this order: pins that are over;
 * then, of the addresses of which no name is within its TTL or in a connection,
 * the one used longest ago, with all its names, so that no address is ever left
 * with fewer names than it stands for.  If that makes no room, the name is
 * refused, and nothing of it is pinned.
 */
#ifndef RESOLVER_NAME_PINS_H
#define RESOLVER_NAME_PINS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/id.h"
#include "base/ip_addr.h"
#include "base/str.h"

#define NAME_PINS_GRACE_MS	3600000	/* after the last use */
#define NAME_PINS_NAMES_MAX	256	/* of one address */

struct mem_account;
struct name_pins;	/* opaque */
struct name_pin;	/* opaque; one name of one address */

NODISCARD int name_pins_new(size_t budget_bytes, struct name_pins **ret);
/* What it holds from now on is charged to @owner, who outlives it. */
void name_pins_set_owner(struct name_pins *p, struct mem_account *owner);
void name_pins_free(struct name_pins *p);	/* nothing may be held */

/* What a name is about to be answered with. */
struct name_pins_answer {
	struct str name;		/* canonical; copied inside */
	const struct ip_addr *addr;
	size_t n;
	uint32_t ttl_s;			/* as the sandbox hears it, or longer */
	const struct id *question;	/* of the DNS record that will carry it */
};

/**
 * name_pins_give() - Pin the addresses of an answer under its name
 *
 * All of them or, on failure, none that was not there before.
 * Return: 0; -ENOSPC when the budget or an address' set of names is full;
 * -ENOMEM
 */
NODISCARD int name_pins_give(struct name_pins *p,
			     const struct name_pins_answer *a, int64_t now_ms);

/**
 * name_pins_at() - The names that an address may stand for
 * @ret:	room for NAME_PINS_NAMES_MAX; the one given last comes first;
 *		good until the next call of name_pins_give()
 * Return: how many
 */
size_t name_pins_at(struct name_pins *p, const struct ip_addr *addr,
		    int64_t now_ms, struct name_pin **ret);

/* NULL when @addr was not given for @name, or that is over; good as above. */
struct name_pin *name_pins_find(struct name_pins *p,
				const struct ip_addr *addr, struct str name,
				int64_t now_ms);

struct str name_pin_name(const struct name_pin *pin);
/* The id of the last DNS record that handed the address out for the name. */
struct id name_pin_question(const struct name_pin *pin);

/* A connection lives by it: it stays, and its name with it, until as many
 * releases have followed; that is a use. */
void name_pin_hold(struct name_pins *p, struct name_pin *pin, int64_t now_ms);
void name_pin_release(struct name_pins *p, struct name_pin *pin,
		      int64_t now_ms);

/* The id of the last question for @name, if any: joins explicit flows too. */
bool name_pins_question(const struct name_pins *p, struct str name,
			struct id *ret_question);

/* One name of one address, for who takes the set over. */
struct name_pins_one {
	struct str name;		/* borrowed */
	struct ip_addr addr;
	struct id question;
	uint32_t ttl_s;			/* that is left; 0: only the grace is */
};

typedef int name_pins_fn(void *arg, const struct name_pins_one *pin);

/**
 * name_pins_each() - All pins that are not over
 * @fn:		may change nothing here; 0 to go on, or an error to stop with
 *
 * Those of one address in the order in which they were given: a set that is
 * given them so ranks them alike.
 * Return: 0 or what @fn returned
 */
NODISCARD int name_pins_each(const struct name_pins *p, int64_t now_ms,
			     name_pins_fn *fn, void *arg);

size_t name_pins_count(const struct name_pins *p);
size_t name_pins_bytes(const struct name_pins *p);	/* charged */

#endif /* RESOLVER_NAME_PINS_H */
