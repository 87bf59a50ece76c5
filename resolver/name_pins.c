/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name_pins.c - under which names a sandbox was given a real address
 *
 * Theory
 * ======
 * Three tables over three kinds of pieces, all counted against one budget:
 *
 *	pinned_name	by name: its text, once for all its addresses
 *	pinned_addr	by address; also on a list, used longest ago first
 *	name_pin	by both; on the list of its name and of its address
 *
 * A name or an address goes with its last pin.  An address that a connection
 * holds leaves the list of what may be given up, so that its head is always the
 * first one to look at; how long one may not be given up is known per address,
 * without a walk over its names.  Each question looks at a few of that list's
 * heads, so that what is over does not stay for long.
 */
#include "resolver/name_pins.h"

#include <errno.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/mem_account.h"

/* What the heap and the table's buckets take beside a piece itself. */
#define PIECE_OVERHEAD	32
/* Addresses that are looked at for what is over, at each question. */
#define SWEEP		4
/* The same for one to give up; TTLs differ, so the first may be too young. */
#define GIVE_UP_LOOKS	16

struct pinned_name {
	struct hash_node node;
	struct list pins;		/* name_pin.of_name, oldest first */
	unsigned refs;			/* pins, and a call that is under way */
	struct id question;		/* last one of the name */
	struct str name;		/* behind it */
};

struct pinned_addr {
	struct hash_node node;
	struct list used;		/* alone while it is held */
	struct list pins;		/* name_pin.of_addr, last given at the end */
	struct ip_addr addr;
	unsigned n;			/* of pins */
	unsigned holds;			/* of all its pins */
	int64_t ttl_until_ms;		/* the latest of them */
};

struct name_pin {
	struct hash_node node;
	struct list of_name, of_addr;
	struct pinned_name *name;
	struct pinned_addr *addr;
	struct id question;
	unsigned holds;
	int64_t ttl_until_ms, used_ms;
};

struct name_pins {
	struct hash_table names, addrs, pins;
	struct list used;		/* pinned_addr.used, longest ago first */
	size_t bytes, budget;
	struct mem_account *owner;	/* or NULL */
};

int name_pins_new(size_t budget_bytes, struct name_pins **ret)
{
	struct name_pins *p = mem_new(sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	list_init(&p->used);
	p->budget = budget_bytes;
	err = hash_init(&p->names, 16);
	if (!err)
		err = hash_init(&p->addrs, 16);
	if (!err)
		err = hash_init(&p->pins, 16);
	if (err) {
		name_pins_free(p);
		return err;
	}
	*ret = p;
	return 0;
}

void name_pins_set_owner(struct name_pins *p, struct mem_account *owner)
{
	REQUIRE(p->bytes == 0);
	p->owner = owner;
}

/* --- pieces ---------------------------------------------------------------- */

static void *piece_new(struct name_pins *p, size_t size)
{
	void *piece;

	if (mem_account_take(p->owner, size + PIECE_OVERHEAD) !=
	    REASON_ALLOWED)
		return NULL;
	piece = mem_new(size);
	if (piece)
		p->bytes += size + PIECE_OVERHEAD;
	else
		mem_account_give(p->owner, size + PIECE_OVERHEAD);
	return piece;
}

static void piece_free(struct name_pins *p, void *piece, size_t size)
{
	p->bytes -= size + PIECE_OVERHEAD;
	mem_account_give(p->owner, size + PIECE_OVERHEAD);
	mem_free(piece);
}

static uint64_t addr_hash(const struct ip_addr *a)
{
	return hash_bytes(a, sizeof(*a));
}

static uint64_t pin_hash(uint64_t addr, uint64_t name)
{
	uint64_t mix[2] = { addr, name };

	return hash_bytes(mix, sizeof(mix));
}

static struct pinned_name *find_name(const struct name_pins *p,
				     struct str name)
{
	struct hash_node *node = hash_first(&p->names, hash_str(name));

	for (; node; node = hash_next(node)) {
		struct pinned_name *n = container_of(node, struct pinned_name,
						     node);

		if (str_eq(n->name, name))
			return n;
	}
	return NULL;
}

static struct pinned_addr *find_addr(const struct name_pins *p,
				     const struct ip_addr *addr)
{
	struct hash_node *node = hash_first(&p->addrs, addr_hash(addr));

	for (; node; node = hash_next(node)) {
		struct pinned_addr *a = container_of(node, struct pinned_addr,
						     node);

		if (ip_addr_eq(&a->addr, addr))
			return a;
	}
	return NULL;
}

static struct name_pin *find_pin(const struct name_pins *p,
				 const struct ip_addr *addr, struct str name)
{
	uint64_t hash = pin_hash(addr_hash(addr), hash_str(name));
	struct hash_node *node = hash_first(&p->pins, hash);

	for (; node; node = hash_next(node)) {
		struct name_pin *pin = container_of(node, struct name_pin,
						    node);

		if (ip_addr_eq(&pin->addr->addr, addr) &&
		    str_eq(pin->name->name, name))
			return pin;
	}
	return NULL;
}

static struct pinned_name *name_new(struct name_pins *p, struct str name)
{
	struct pinned_name *n = piece_new(p, sizeof(*n) + name.n);
	char *text;

	if (!n)
		return NULL;
	text = (char *)(n + 1);
	memcpy(text, name.p, name.n);
	n->name = str_make(text, name.n);
	list_init(&n->pins);
	hash_add(&p->names, &n->node, hash_str(name));
	return n;
}

static void name_unref(struct name_pins *p, struct pinned_name *n)
{
	if (--n->refs > 0)
		return;
	hash_remove(&p->names, &n->node);
	piece_free(p, n, sizeof(*n) + n->name.n);
}

static struct pinned_addr *addr_new(struct name_pins *p,
				    const struct ip_addr *addr)
{
	struct pinned_addr *a = piece_new(p, sizeof(*a));

	if (!a)
		return NULL;
	a->addr = *addr;
	list_init(&a->pins);
	list_add(&p->used, &a->used);
	hash_add(&p->addrs, &a->node, addr_hash(addr));
	return a;
}

static void pin_drop(struct name_pins *p, struct name_pin *pin)
{
	struct pinned_addr *a = pin->addr;

	REQUIRE(pin->holds == 0);
	hash_remove(&p->pins, &pin->node);
	list_del(&pin->of_name);
	list_del(&pin->of_addr);
	name_unref(p, pin->name);
	piece_free(p, pin, sizeof(*pin));
	if (--a->n > 0)
		return;
	hash_remove(&p->addrs, &a->node);
	list_del(&a->used);
	piece_free(p, a, sizeof(*a));
}

/* All names of an address, and so the address. */
static void addr_drop(struct name_pins *p, struct pinned_addr *a)
{
	for (unsigned left = a->n; left > 0; left--)
		pin_drop(p, list_first(&a->pins, struct name_pin, of_addr));
}

void name_pins_free(struct name_pins *p)
{
	if (!p)
		return;
	while (!list_empty(&p->used))
		addr_drop(p, list_first(&p->used, struct pinned_addr, used));
	REQUIRE(p->pins.n == 0);
	hash_done(&p->names);
	hash_done(&p->addrs);
	hash_done(&p->pins);
	mem_free(p);
}

/* --- what is over, and what is given up ------------------------------------ */

static bool pin_is_over(const struct name_pin *pin, int64_t now_ms)
{
	return pin->holds == 0 && now_ms >= pin->ttl_until_ms &&
	       now_ms - pin->used_ms >= NAME_PINS_GRACE_MS;
}

/* Return: true when the address itself has gone. */
static bool addr_sweep(struct name_pins *p, struct pinned_addr *a,
		       int64_t now_ms)
{
	unsigned left = a->n;
	struct list *it, *tmp;

	list_each(&a->pins, it, tmp) {
		struct name_pin *pin = container_of(it, struct name_pin,
						    of_addr);

		if (!pin_is_over(pin, now_ms))
			continue;
		left--;
		pin_drop(p, pin);
		if (left == 0)
			return true;
	}
	return false;
}

static void sweep(struct name_pins *p, int64_t now_ms)
{
	unsigned looks = 0;
	struct list *it, *tmp;

	list_each(&p->used, it, tmp) {
		(void)addr_sweep(p, container_of(it, struct pinned_addr, used),
				 now_ms);
		if (++looks == SWEEP)
			return;
	}
}

static bool give_up_one(struct name_pins *p, int64_t now_ms)
{
	unsigned looks = 0;
	struct list *it, *tmp;

	list_each(&p->used, it, tmp) {
		struct pinned_addr *a = container_of(it, struct pinned_addr,
						     used);

		if (now_ms >= a->ttl_until_ms) {
			addr_drop(p, a);
			return true;
		}
		if (++looks == GIVE_UP_LOOKS)
			return false;
	}
	return false;
}

static bool make_room(struct name_pins *p, size_t size, int64_t now_ms)
{
	size_t need = size + PIECE_OVERHEAD;

	if (need > p->budget)
		return false;
	while (p->bytes > p->budget - need) {
		if (!give_up_one(p, now_ms))
			return false;
	}
	return true;
}

/* --- giving ---------------------------------------------------------------- */

static void addr_touch(struct name_pins *p, struct pinned_addr *a)
{
	if (a->holds > 0)
		return;
	list_del(&a->used);
	list_add(&p->used, &a->used);
}

static void pin_renew(struct name_pins *p, struct name_pin *pin,
		      uint32_t ttl_s, int64_t now_ms)
{
	int64_t until_ms = now_ms + (int64_t)ttl_s * 1000;

	pin->used_ms = now_ms;
	pin->ttl_until_ms = MAX(pin->ttl_until_ms, until_ms);
	pin->addr->ttl_until_ms = MAX(pin->addr->ttl_until_ms, until_ms);
	list_del(&pin->of_addr);
	list_add(&pin->addr->pins, &pin->of_addr);
	addr_touch(p, pin->addr);
}

static int pin_new(struct name_pins *p, struct pinned_name *name,
		   const struct ip_addr *addr, struct name_pin **ret,
		   int64_t now_ms)
{
	struct pinned_addr *a;
	struct name_pin *pin;

	/* First the room: what is given up for it may be this address. */
	if (!make_room(p, sizeof(*a) + PIECE_OVERHEAD + sizeof(*pin), now_ms))
		return -ENOSPC;
	a = find_addr(p, addr);
	if (a && a->n == NAME_PINS_NAMES_MAX && addr_sweep(p, a, now_ms))
		a = NULL;
	if (a && a->n == NAME_PINS_NAMES_MAX)
		return -ENOSPC;
	pin = piece_new(p, sizeof(*pin));
	if (pin && !a)
		a = addr_new(p, addr);
	if (!a || !pin) {
		if (pin)
			piece_free(p, pin, sizeof(*pin));
		return -ENOMEM;
	}
	pin->name = name;
	pin->addr = a;
	name->refs++;
	a->n++;
	list_add(&name->pins, &pin->of_name);
	list_add(&a->pins, &pin->of_addr);
	hash_add(&p->pins, &pin->node,
		 pin_hash(a->node.hash, name->node.hash));
	*ret = pin;
	return 0;
}

/* The last @n that were pinned under a name. */
static void take_back(struct name_pins *p, struct pinned_name *name, size_t n)
{
	for (; n > 0; n--)
		pin_drop(p, container_of(name->pins.prev, struct name_pin,
					 of_name));
}

static int give_all(struct name_pins *p, struct pinned_name *name,
		    const struct name_pins_answer *a, int64_t now_ms)
{
	uint32_t ttl_s = MAX(a->ttl_s, 1);
	size_t fresh = 0;
	int err;

	/* What is there is young again before anything is given up. */
	for (size_t i = 0; i < a->n; i++) {
		struct name_pin *pin = find_pin(p, &a->addr[i], a->name);

		if (pin)
			pin_renew(p, pin, ttl_s, now_ms);
	}
	for (size_t i = 0; i < a->n; i++) {
		struct name_pin *pin = find_pin(p, &a->addr[i], a->name);

		if (pin)
			continue;
		err = pin_new(p, name, &a->addr[i], &pin, now_ms);
		if (err) {
			take_back(p, name, fresh);
			return err;
		}
		fresh++;
		pin_renew(p, pin, ttl_s, now_ms);
	}
	return 0;
}

int name_pins_give(struct name_pins *p, const struct name_pins_answer *a,
		   int64_t now_ms)
{
	struct pinned_name *pinned;
	int err;

	sweep(p, now_ms);
	pinned = find_name(p, a->name);
	if (!pinned) {
		if (!make_room(p, sizeof(*pinned) + a->name.n, now_ms))
			return -ENOSPC;
		pinned = name_new(p, a->name);
		if (!pinned)
			return -ENOMEM;
	}
	pinned->refs++;			/* whatever is given up meanwhile */
	err = give_all(p, pinned, a, now_ms);
	if (!err) {
		pinned->question = *a->question;
		for (size_t i = 0; i < a->n; i++)
			find_pin(p, &a->addr[i], a->name)->question =
				*a->question;
	}
	name_unref(p, pinned);
	return err;
}

/* --- finding --------------------------------------------------------------- */

size_t name_pins_at(struct name_pins *p, const struct ip_addr *addr,
		    int64_t now_ms, struct name_pin **ret)
{
	struct pinned_addr *a = find_addr(p, addr);
	struct list *it;
	size_t n = 0;

	if (!a || addr_sweep(p, a, now_ms))
		return 0;
	for (it = a->pins.prev; it != &a->pins; it = it->prev)
		ret[n++] = container_of(it, struct name_pin, of_addr);
	return n;
}

struct name_pin *name_pins_find(struct name_pins *p,
				const struct ip_addr *addr, struct str name,
				int64_t now_ms)
{
	struct name_pin *pin = find_pin(p, addr, name);

	return pin && !pin_is_over(pin, now_ms) ? pin : NULL;
}

struct str name_pin_name(const struct name_pin *pin)
{
	return pin->name->name;
}

struct id name_pin_question(const struct name_pin *pin)
{
	return pin->question;
}

bool name_pins_question(const struct name_pins *p, struct str name,
			struct id *ret_question)
{
	const struct pinned_name *n = find_name(p, name);

	if (!n)
		return false;
	*ret_question = n->question;
	return true;
}

/* --- connections ----------------------------------------------------------- */

void name_pin_hold(struct name_pins *p, struct name_pin *pin, int64_t now_ms)
{
	pin->used_ms = now_ms;
	addr_touch(p, pin->addr);
	pin->holds++;
	if (pin->addr->holds++ == 0)
		list_del(&pin->addr->used);
}

void name_pin_release(struct name_pins *p, struct name_pin *pin,
		      int64_t now_ms)
{
	REQUIRE(pin->holds > 0 && pin->addr->holds > 0);
	pin->used_ms = now_ms;
	pin->holds--;
	if (--pin->addr->holds == 0)
		list_add(&p->used, &pin->addr->used);
}

/* --- all of them ----------------------------------------------------------- */

static int tell_addr(const struct pinned_addr *a, int64_t now_ms,
		     name_pins_fn *fn, void *arg)
{
	const struct list *it;
	int err = 0;

	for (it = a->pins.next; err == 0 && it != &a->pins; it = it->next) {
		const struct name_pin *pin =
			container_of((struct list *)(uintptr_t)it,
				     struct name_pin, of_addr);
		int64_t left_ms = MAX(pin->ttl_until_ms - now_ms, (int64_t)0);
		const struct name_pins_one one = {
			.name = pin->name->name, .addr = a->addr,
			.question = pin->question,
			.ttl_s = (uint32_t)MIN((left_ms + 999) / 1000,
					       (int64_t)UINT32_MAX),
		};

		if (!pin_is_over(pin, now_ms))
			err = fn(arg, &one);
	}
	return err;
}

int name_pins_each(const struct name_pins *p, int64_t now_ms,
		   name_pins_fn *fn, void *arg)
{
	struct hash_node *it, *tmp;
	size_t at;
	int err = 0;

	hash_each(&p->addrs, it, tmp, at) {
		err = tell_addr(container_of(it, struct pinned_addr, node),
				now_ms, fn, arg);
		if (err)
			return err;
	}
	return err;
}

size_t name_pins_count(const struct name_pins *p)
{
	return p->pins.n;
}

size_t name_pins_bytes(const struct name_pins *p)
{
	return p->bytes;
}
