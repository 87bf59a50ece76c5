/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_budget.c - what one run may tell the world by the names that it asks for
 *
 * Theory
 * ======
 * A name below an allowed wildcard is a message to whoever runs that zone: its
 * labels are the asker's to choose, and the question carries them out, be it a
 * question of DNS or a connection by that name, which we look up ourselves.  So
 * everything is counted where lookups begin, in resolver_start(), and nowhere
 * else:
 *
 *	names		different names that left, which a wildcard let through
 *	label_bytes	of those, the bytes that no rule wrote out, in all
 *	nxdomain	those of them that turned out not to exist
 *	queries		questions that may leave, as tokens: so many a second
 *
 * A name that has left once is known by whoever was to learn it; asking for it
 * again costs nothing but a token.  Names that a rule has whole carry no bytes
 * of the sandbox's choice and are not counted here at all, unless the policy
 * sets `queries`: then that counts every question, answered from the cache or
 * not, for it is a wish about questions and not about what they carry.
 *
 * What is known of a name is one keyed hash of 63 bits and whether the name
 * was found missing, in an open-addressed table that doubles as it fills.  So
 * memory is bounded by the limit on names, 16 bytes each.
 *
 * A run that lives on several threads has a budget on each of them, all of what
 * is spent together: under a lock, which is held for no longer than one charge.
 *
 * All this belongs to the run: another policy brings other limits, and takes
 * nothing of the counts back.
 */
#include "resolver/dns_budget.h"

#include <errno.h>
#include <pthread.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/mem.h"
#include "rules/rules.h"

#define SLOTS_FIRST	64u
#define GONE		1u	/* bit of a slot: the name does not exist */

/* What the run has spent, wherever it asks: all of it under the lock. */
struct spent {
	pthread_mutex_t lock;
	uint8_t key[16];		/* of the hashes; kept when it moves */
	unsigned refs;
	uint64_t *slot;			/* hash | GONE; 0: empty */
	uint32_t n_slots;
	uint32_t names, nxdomain;
	uint64_t label_bytes;
	uint64_t tokens_m;		/* thousandths */
	int64_t filled_ms;		/* when tokens_m was right; -1: never */
	uint64_t refused;
};

/* One thread's way to it. */
struct dns_budget {
	struct ruleset *rules;
	struct rules_limits limit;	/* defaults filled in */
	uint32_t burst;
	bool every;			/* `queries` counts all questions */
	enum reason why;		/* of the last that was refused */
	struct spent *spent;
};

static void spent_lock(struct spent *s)
{
	int err = pthread_mutex_lock(&s->lock);

	REQUIRE(err == 0);
}

static void spent_unlock(struct spent *s)
{
	int err = pthread_mutex_unlock(&s->lock);

	REQUIRE(err == 0);
}

static int spent_new(struct spent **ret)
{
	struct spent *s = mem_new(sizeof(*s));

	if (!s)
		return -ENOMEM;
	if (pthread_mutex_init(&s->lock, NULL) != 0) {
		mem_free(s);
		return -ENOMEM;
	}
	s->refs = 1;
	s->filled_ms = -1;
	random_bytes(s->key, sizeof(s->key));
	*ret = s;
	return 0;
}

static struct spent *spent_ref(struct spent *s)
{
	spent_lock(s);
	s->refs++;
	spent_unlock(s);
	return s;
}

static void spent_unref(struct spent *s)
{
	bool last;

	spent_lock(s);
	last = --s->refs == 0;
	spent_unlock(s);
	if (!last)
		return;
	pthread_mutex_destroy(&s->lock);
	mem_free(s->slot);
	mem_free(s);
}

static uint32_t or_default(uint32_t said, uint32_t otherwise)
{
	return said ? said : otherwise;
}

/* What a policy is compared by. */
_Static_assert(DNS_BUDGET_QUERIES == RULES_LIMIT_QUERIES &&
	       DNS_BUDGET_NAMES == RULES_LIMIT_NAMES &&
	       DNS_BUDGET_NAMES_MAX == RULES_LIMIT_NAMES_MAX &&
	       DNS_BUDGET_LABEL_BYTES == RULES_LIMIT_LABEL_BYTES &&
	       DNS_BUDGET_NXDOMAIN == RULES_LIMIT_NXDOMAIN,
	       "penstock.ini(5)");

static void take_limits(struct dns_budget *b)
{
	const struct rules_limits *said = rules_limits(b->rules);

	b->every = said->queries > 0;
	b->burst = or_default(said->queries, DNS_BUDGET_BURST);
	b->limit = (struct rules_limits){
		.queries = or_default(said->queries, DNS_BUDGET_QUERIES),
		.names = MIN(or_default(said->names, DNS_BUDGET_NAMES),
			     DNS_BUDGET_NAMES_MAX),
		.label_bytes = or_default(said->label_bytes,
					  DNS_BUDGET_LABEL_BYTES),
		.nxdomain = or_default(said->nxdomain, DNS_BUDGET_NXDOMAIN),
	};
}

/* Takes @spent on success. */
static int budget_new(struct ruleset *rules, struct spent *spent,
		      struct dns_budget **ret)
{
	struct dns_budget *b = mem_new(sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->rules = rules_ref(rules);
	b->spent = spent;
	take_limits(b);
	*ret = b;
	return 0;
}

int dns_budget_new(struct ruleset *rules, struct dns_budget **ret)
{
	struct spent *spent = NULL;
	int err = spent_new(&spent);

	if (err == 0)
		err = budget_new(rules, spent, ret);
	if (err < 0 && spent)
		spent_unref(spent);
	return err;
}

int dns_budget_share(const struct dns_budget *of, struct dns_budget **ret)
{
	struct spent *spent = spent_ref(of->spent);
	int err = budget_new(of->rules, spent, ret);

	if (err < 0)
		spent_unref(spent);
	return err;
}

void dns_budget_set_rules(struct dns_budget *b, struct ruleset *rules)
{
	struct ruleset *old = b->rules;

	b->rules = rules_ref(rules);
	rules_unref(old);
	take_limits(b);
}

void dns_budget_free(struct dns_budget *b)
{
	if (!b)
		return;
	rules_unref(b->rules);
	spent_unref(b->spent);
	mem_free(b);
}

uint64_t dns_budget_refused(const struct dns_budget *b)
{
	uint64_t n;

	spent_lock(b->spent);
	n = b->spent->refused;
	spent_unlock(b->spent);
	return n;
}

enum reason dns_budget_why(const struct dns_budget *b)
{
	return b->why;
}

/* --- names that have left ---------------------------------------------------- */

static uint64_t key_of(const struct dns_budget *b, struct str name)
{
	uint64_t key = siphash13(name.p, name.n, b->spent->key) &
		       ~(uint64_t)GONE;

	return key ? key : 2;		/* 0 is an empty slot */
}

/* The slot that has @key or would take it. */
static uint64_t *slot_of(uint64_t *slot, uint32_t n_slots, uint64_t key)
{
	uint32_t at = (uint32_t)(key >> 1) & (n_slots - 1);

	while (slot[at] != 0 && (slot[at] & ~(uint64_t)GONE) != key)
		at = (at + 1) & (n_slots - 1);
	return &slot[at];
}

static bool is_known(const struct dns_budget *b, uint64_t key)
{
	return b->spent->n_slots > 0 && *slot_of(b->spent->slot, b->spent->n_slots, key) != 0;
}

/* Room for one more; at most half of the slots are taken. */
static int make_room(struct dns_budget *b)
{
	uint32_t n = b->spent->n_slots ? 2 * b->spent->n_slots : SLOTS_FIRST;
	uint64_t *bigger;

	if (2 * b->spent->names < b->spent->n_slots)
		return 0;
	bigger = mem_new_array(n, sizeof(*bigger));
	if (!bigger)
		return -ENOMEM;
	for (uint32_t i = 0; i < b->spent->n_slots; i++) {
		uint64_t was = b->spent->slot[i];

		if (was)
			*slot_of(bigger, n, was & ~(uint64_t)GONE) = was;
	}
	mem_free(b->spent->slot);
	b->spent->slot = bigger;
	b->spent->n_slots = n;
	return 0;
}

static void note_nxdomain(struct dns_budget *b, struct str name)
{
	uint64_t *slot;

	if (b->spent->n_slots == 0)
		return;
	slot = slot_of(b->spent->slot, b->spent->n_slots, key_of(b, name));
	if (*slot == 0 || (*slot & GONE))
		return;			/* it costs nothing, or was counted */
	*slot |= GONE;
	b->spent->nxdomain++;
}

void dns_budget_on_nxdomain(struct dns_budget *b, struct str name)
{
	if (!b)
		return;
	spent_lock(b->spent);
	note_nxdomain(b, name);
	spent_unlock(b->spent);
}

/* --- charging ---------------------------------------------------------------- */

static void fill_tokens(struct dns_budget *b, int64_t now_ms)
{
	const uint64_t full = (uint64_t)b->burst * 1000;
	uint64_t ms;

	if (b->spent->filled_ms < 0)
		b->spent->tokens_m = full;
	else if (now_ms > b->spent->filled_ms) {
		/* More than fills it is not looked at, lest it overflow. */
		ms = MIN((uint64_t)(now_ms - b->spent->filled_ms),
			 full / b->limit.queries + 1);
		b->spent->tokens_m += ms * b->limit.queries;
	}
	b->spent->tokens_m = MIN(b->spent->tokens_m, full);
	b->spent->filled_ms = now_ms;
}

static unsigned labels_in(struct str name, unsigned chosen)
{
	unsigned n = 1;

	for (unsigned i = 0; i < chosen; i++)
		n += name.p[i] == '.';
	return n;
}

/* May a name that has not left yet do so? */
static enum reason new_name_fault(const struct dns_budget *b,
				  const struct dns_budget_ask *ask)
{
	if (labels_in(ask->name, ask->chosen) > DNS_BUDGET_DEPTH)
		return REASON_NAME_TOO_DEEP;
	if (b->spent->names >= b->limit.names)
		return REASON_NAMES_EXCEEDED;
	if (b->spent->label_bytes + ask->chosen > b->limit.label_bytes)
		return REASON_LABEL_BYTES_EXCEEDED;
	if (b->spent->nxdomain >= b->limit.nxdomain)
		return REASON_NXDOMAIN_EXCEEDED;
	return REASON_ALLOWED;
}

static enum reason charge(struct dns_budget *b,
			  const struct dns_budget_ask *ask, int64_t now_ms)
{
	bool counts = b->every || (ask->leaves && ask->chosen > 0);
	uint64_t key = 0;
	bool is_new = false;
	enum reason why;

	if (!counts)
		return REASON_ALLOWED;
	if (ask->leaves && ask->chosen > 0) {
		key = key_of(b, ask->name);
		is_new = !is_known(b, key);
	}
	why = is_new ? new_name_fault(b, ask) : REASON_ALLOWED;
	if (why != REASON_ALLOWED)
		return why;
	fill_tokens(b, now_ms);
	if (b->spent->tokens_m < 1000)
		return REASON_QUERIES_EXCEEDED;
	if (is_new) {
		if (make_room(b) != 0)
			return REASON_MEMORY_EXCEEDED;
		*slot_of(b->spent->slot, b->spent->n_slots, key) = key;
		b->spent->names++;
		b->spent->label_bytes += ask->chosen;
	}
	b->spent->tokens_m -= 1000;
	return REASON_ALLOWED;
}

enum reason dns_budget_charge(struct dns_budget *b,
			      const struct dns_budget_ask *ask, int64_t now_ms)
{
	enum reason why;

	spent_lock(b->spent);
	why = charge(b, ask, now_ms);
	b->spent->refused += why != REASON_ALLOWED;
	spent_unlock(b->spent);
	if (why == REASON_ALLOWED)
		return why;
	b->why = why;
	return rules_observe(b->rules) ? REASON_ALLOWED : why;
}

static bool take_token(struct dns_budget *b, int64_t now_ms)
{
	bool has;

	spent_lock(b->spent);
	fill_tokens(b, now_ms);
	has = b->spent->tokens_m >= 1000;
	if (has)
		b->spent->tokens_m -= 1000;
	spent_unlock(b->spent);
	return has;
}

bool dns_budget_renew(struct dns_budget *b, struct str name)
{
	return !b || rules_observe(b->rules) ||
	       rules_name_chosen(b->rules, name, clock_wall_s()) == 0 ||
	       take_token(b, clock_mono_ms());
}

enum reason resolver_charge(const struct resolver_asker *asker,
			    struct str name)
{
	return dns_budget_ask(asker->budget, name, true);
}

enum reason dns_budget_ask(struct dns_budget *b, struct str name, bool leaves)
{
	struct dns_budget_ask ask = { .name = name, .leaves = leaves };

	if (!b || (!leaves && !b->every))
		return REASON_ALLOWED;
	if (leaves)
		ask.chosen = rules_name_chosen(b->rules, name, clock_wall_s());
	return dns_budget_charge(b, &ask, clock_mono_ms());
}

/* --- to another process ------------------------------------------------------- */

int dns_budget_tell(const struct dns_budget *b, struct dns_budget_spent *ret,
		    dns_budget_fn *fn, void *arg)
{
	struct spent *s = b->spent;
	int err = 0;

	spent_lock(s);
	*ret = (struct dns_budget_spent){
		.label_bytes = s->label_bytes, .refused = s->refused,
		.tokens_m = s->tokens_m, .filled_ms = s->filled_ms,
	};
	memcpy(ret->key, s->key, sizeof(ret->key));
	for (uint32_t i = 0; err == 0 && i < s->n_slots; i++)
		if (s->slot[i])
			err = fn(arg, s->slot[i]);
	spent_unlock(s);
	return err;
}

int dns_budget_resume(struct dns_budget *b,
		      const struct dns_budget_spent *spent)
{
	struct spent *s = b->spent;
	int err;

	spent_lock(s);
	err = s->names > 0 ? -EINVAL : 0;
	if (err < 0)
		goto out;
	s->label_bytes = spent->label_bytes;
	s->refused = spent->refused;
	s->tokens_m = spent->tokens_m;
	s->filled_ms = spent->filled_ms;
	memcpy(s->key, spent->key, sizeof(s->key));
out:
	spent_unlock(s);
	return err;
}

int dns_budget_resume_name(struct dns_budget *b, uint64_t name)
{
	struct spent *s = b->spent;
	uint64_t key = name & ~(uint64_t)GONE;
	int err = key ? 0 : -EINVAL;

	spent_lock(s);
	if (err == 0 && !is_known(b, key)) {
		err = s->names < DNS_BUDGET_NAMES_MAX ? make_room(b) : -EINVAL;
		if (err == 0) {
			*slot_of(s->slot, s->n_slots, key) = name;
			s->names++;
			s->nxdomain += name & GONE;
		}
	}
	spent_unlock(s);
	return err;
}
