/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quota.c - what one run may use, counted where all its instances see it
 *
 * Budgets are counters that only rise: a chunk is added first and what was too
 * much is taken off again, so that the sum of what is handed out is never over
 * the limit, whoever asks at the same time.  The price is that one worker can
 * see another's reservation for the moment that it lasts: a budget may seem
 * spent while at most QUOTA_CHUNK_MAX bytes for each other worker are on their
 * way back.
 *
 * Rates are kept as one time each: when the bucket will be full again.  Taking
 * moves it on; it is never more than BURST_US ahead of now.  A word that is
 * compared and swapped holds all of it.
 *
 * Budgets of rules are found by the rule's name, since a policy that is loaded
 * anew has other numbers.  Their list only grows, at its head.
 */
#include "proxy/quota.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"

/* What may come at once: as much as in a second. */
#define BURST_US	1000000
/* Less than this is not worth a system call, where a rate allows more. */
#define GRAIN		4096u
/* A rate from here on is none: 1 TiB a second. */
#define RATE_MAX	(UINT64_C(1) << 40)

static_assert(QUOTA_CHUNK_MAX <= UINT32_MAX, "reservations have 32 bits");

struct rate {
	atomic_uint_fast64_t limit;		/* a second; 0: none */
	atomic_int_fast64_t full_us;		/* when it is full again */
};

struct quota_rule {
	struct quota_rule *next;
	atomic_uint_fast64_t limit[QUOTA_WAYS];
	atomic_uint_fast64_t used[QUOTA_WAYS];
	char name[];
};

struct quota_own {
	struct quota pub;
	atomic_uint refs;
	struct quota_whole *whole;
	struct mem_pot memory;
	atomic_uint connections, connections_max;
	struct rate new_connections;
	struct rate rate[QUOTA_WAYS];
	atomic_uint_fast64_t limit[QUOTA_WAYS], flow_limit[QUOTA_WAYS];
	_Atomic(struct quota_rule *) rules;
	atomic_uint n_rules;
};

#define GET(p)		atomic_load_explicit(p, memory_order_relaxed)
#define SET(p, v)	atomic_store_explicit(p, v, memory_order_relaxed)

static struct quota_own *own(const struct quota *q)
{
	return container_of((struct quota *)(uintptr_t)q, struct quota_own,
			    pub);
}

/* --- rates ------------------------------------------------------------------ */

static uint64_t rate_cost_us(uint64_t rate, uint64_t n)
{
	return MAX(n * BURST_US / rate, (uint64_t)1);
}

/* What may be taken at once, by the time that is left to fill. */
static uint64_t rate_room(uint64_t rate, int64_t full_us, int64_t now_us)
{
	int64_t ahead = MAX(full_us - now_us, (int64_t)0);

	return ahead >= BURST_US ? 0 :
	       (uint64_t)(BURST_US - ahead) * rate / BURST_US;
}

/* The least that is handed out. */
static uint64_t rate_grain(uint64_t rate, uint64_t want)
{
	return MIN(want, MIN(MAX(rate / 16, (uint64_t)1), (uint64_t)GRAIN));
}

/* The most, so that all who wait come by: a twentieth of a second's worth. */
static uint64_t rate_slice(uint64_t rate, uint64_t want)
{
	return MIN(want, MAX(rate / 20, (uint64_t)GRAIN));
}

/* Return: up to @want, or 0 when there is not even a grain. */
static uint64_t rate_take(struct rate *r, uint64_t want, int64_t now_us)
{
	uint64_t rate = GET(&r->limit), room;
	int_fast64_t full, then;

	if (rate == 0 || want == 0)
		return want;
	full = GET(&r->full_us);
	do {
		room = MIN(rate_room(rate, full, now_us), rate_slice(rate, want));
		if (room < rate_grain(rate, want))
			return 0;
		then = MAX(full, now_us) + (int64_t)rate_cost_us(rate, room);
	} while (!atomic_compare_exchange_weak_explicit(
		&r->full_us, &full, then, memory_order_relaxed,
		memory_order_relaxed));
	return room;
}

static void rate_give(struct rate *r, uint64_t n)
{
	uint64_t rate = GET(&r->limit);

	if (rate && n)
		atomic_fetch_sub_explicit(&r->full_us,
					  (int64_t)(n * BURST_US / rate),
					  memory_order_relaxed);
}

static void rate_set(struct rate *r, uint64_t limit)
{
	SET(&r->limit, limit < RATE_MAX ? limit : 0);
}

/* --- limits ------------------------------------------------------------------- */

static uint64_t way_of(const struct rules_bytes *b, enum quota_way way)
{
	return way == QUOTA_UP ? b->up : b->down;
}

void quota_set_rules(struct quota *q, const struct ruleset *rules)
{
	const struct rules_limits *l = rules_limits(rules);
	struct quota_own *o = own(q);

	SET(&o->connections_max,
	    l->connections ? l->connections : QUOTA_CONNECTIONS);
	SET(&o->memory.limit, l->memory ? (size_t)l->memory : QUOTA_MEMORY);
	rate_set(&o->new_connections, l->new_connections);
	for (enum quota_way way = QUOTA_UP; way < QUOTA_WAYS; way++) {
		SET(&o->limit[way], way_of(&l->bytes, way));
		SET(&o->flow_limit[way], way_of(&l->flow_bytes, way));
		rate_set(&o->rate[way], way_of(&l->rate, way));
		SET(&q->limited[way], GET(&o->limit[way]) ||
		    GET(&o->flow_limit[way]) || GET(&o->rate[way].limit));
	}
}

int quota_new(const struct ruleset *rules, struct quota_whole *whole,
	      struct quota **ret)
{
	struct quota_own *o = mem_new(sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->whole = whole;
	o->memory.whole = whole ? &whole->memory : NULL;
	SET(&o->refs, 1);
	quota_set_rules(&o->pub, rules);
	*ret = &o->pub;
	return 0;
}

struct quota *quota_ref(struct quota *q)
{
	atomic_fetch_add_explicit(&own(q)->refs, 1, memory_order_relaxed);
	return q;
}

void quota_unref(struct quota *q)
{
	struct quota_rule *r, *next;
	struct quota_own *o;

	if (!q)
		return;
	o = own(q);
	/* Whoever frees it has seen all that the others did to it. */
	if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
		return;
	REQUIRE(GET(&o->connections) == 0 && GET(&o->memory.used) == 0);
	for (r = o->rules; r; r = next) {
		next = r->next;
		mem_free(r);
	}
	mem_free(o);
}

/* --- connections -------------------------------------------------------------- */

/* One more below @max; false: there are as many already. */
static bool count_up(atomic_uint *count, unsigned max)
{
	if (atomic_fetch_add_explicit(count, 1, memory_order_relaxed) < max)
		return true;
	atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
	return false;
}

static void count_down(atomic_uint *count)
{
	unsigned before = atomic_fetch_sub_explicit(count, 1,
						    memory_order_relaxed);

	REQUIRE(before > 0);
}

/* Of @w and what it is part of, up to @end, exclusive. */
static void wholes_leave(struct quota_whole *w, const struct quota_whole *end)
{
	for (; w != end; w = w->whole)
		count_down(&w->connections);
}

static enum reason wholes_enter(struct quota_whole *first)
{
	for (struct quota_whole *w = first; w; w = w->whole) {
		if (count_up(&w->connections, w->max ? w->max : UINT32_MAX))
			continue;
		wholes_leave(first, w);
		return w->why != REASON_ALLOWED ? w->why : REASON_OVERLOADED;
	}
	return REASON_ALLOWED;
}

enum reason quota_enter(struct quota *q, int64_t now_ms)
{
	struct quota_own *o = own(q);
	enum reason why;

	if (!count_up(&o->connections, GET(&o->connections_max)))
		return REASON_CONNECTIONS_EXCEEDED;
	why = wholes_enter(o->whole);
	if (why != REASON_ALLOWED) {
		count_down(&o->connections);
		return why;
	}
	if (rate_take(&o->new_connections, 1, now_ms * 1000) == 1)
		return REASON_ALLOWED;
	quota_leave(q);
	return REASON_CONNECTION_RATE_EXCEEDED;
}

void quota_leave(struct quota *q)
{
	struct quota_own *o = own(q);

	count_down(&o->connections);
	wholes_leave(o->whole, NULL);
}

unsigned quota_connections(const struct quota *q)
{
	return GET(&own(q)->connections);
}

unsigned quota_connections_max(const struct quota *q)
{
	return GET(&own(q)->connections_max);
}

struct mem_pot *quota_memory(struct quota *q)
{
	return &own(q)->memory;
}

/* --- budgets of rules ----------------------------------------------------------- */

static struct quota_rule *rule_in(struct quota_rule *list, const char *name)
{
	while (list && strcmp(list->name, name) != 0)
		list = list->next;
	return list;
}

/* Two workers may meet a rule at once: the later one finds the other's. */
static struct quota_rule *rule_push(struct quota_own *o, struct quota_rule *r)
{
	struct quota_rule *head, *found;

	head = atomic_load_explicit(&o->rules, memory_order_acquire);
	do {
		found = rule_in(head, r->name);
		if (found) {
			count_down(&o->n_rules);
			mem_free(r);
			return found;
		}
		r->next = head;
	} while (!atomic_compare_exchange_weak_explicit(
		&o->rules, &head, r, memory_order_release,
		memory_order_acquire));
	return r;
}

static struct quota_rule *rule_of(struct quota_own *o, const char *name)
{
	size_t n = strlen(name) + 1;
	struct quota_rule *r;

	r = rule_in(atomic_load_explicit(&o->rules, memory_order_acquire),
		    name);
	if (r)
		return r;
	if (!count_up(&o->n_rules, QUOTA_RULES_MAX))
		return NULL;
	r = mem_new(sizeof(*r) + n);
	if (!r) {
		count_down(&o->n_rules);
		return NULL;
	}
	memcpy(r->name, name, n);
	return rule_push(o, r);
}

/* --- what is used elsewhere ---------------------------------------------------- */

int quota_tell(struct quota *q, quota_fn *fn, void *arg)
{
	uint64_t used[QUOTA_WAYS] = {
		GET(&q->used[QUOTA_UP]), GET(&q->used[QUOTA_DOWN]),
	};
	struct quota_rule *r;
	int err = fn(arg, "", used);

	r = atomic_load_explicit(&own(q)->rules, memory_order_acquire);
	for (; err == 0 && r; r = r->next) {
		used[QUOTA_UP] = GET(&r->used[QUOTA_UP]);
		used[QUOTA_DOWN] = GET(&r->used[QUOTA_DOWN]);
		err = fn(arg, r->name, used);
	}
	return err;
}

int quota_note(struct quota *q, const char *rule,
	       const uint64_t used[QUOTA_WAYS])
{
	struct quota_rule *r = rule[0] ? rule_of(own(q), rule) : NULL;

	if (rule[0] && !r)
		return -EDQUOT;
	for (enum quota_way w = QUOTA_UP; w < QUOTA_WAYS; w++)
		atomic_fetch_add_explicit(r ? &r->used[w] : &q->used[w],
					  used[w], memory_order_relaxed);
	return 0;
}

void quota_note_connections(struct quota *q, int more)
{
	struct quota_own *o = own(q);

	for (; more > 0; more--) {
		atomic_fetch_add_explicit(&o->connections, 1,
					  memory_order_relaxed);
		for (struct quota_whole *w = o->whole; w; w = w->whole)
			atomic_fetch_add_explicit(&w->connections, 1,
						  memory_order_relaxed);
	}
	for (; more < 0; more++)
		quota_leave(q);
}

/* Nothing is dialled for a flow that could move no byte. */
static enum reason is_used_up(const struct quota_flow *f)
{
	for (enum quota_way w = QUOTA_UP; f->quota && w < QUOTA_WAYS; w++) {
		uint64_t limit = GET(&own(f->quota)->limit[w]);

		if (limit && GET(&f->quota->used[w]) >= limit)
			return REASON_BYTES_EXCEEDED;
		limit = f->rule ? GET(&f->rule->limit[w]) : 0;
		if (limit && GET(&f->rule->used[w]) >= limit)
			return REASON_RULE_BYTES_EXCEEDED;
	}
	return REASON_ALLOWED;
}

/* The account of rule number @rule, where it has budgets; else NULL. */
static enum reason account_of(struct quota *q, const struct ruleset *rules,
			      size_t rule, struct quota_rule **ret)
{
	struct rules_bytes limit = rules_rule_bytes(rules, rule);
	struct rules_rule_info info;

	*ret = NULL;
	if (!q || (!limit.up && !limit.down))
		return REASON_ALLOWED;
	rules_rule_info(rules, rule, &info);
	*ret = rule_of(own(q), info.name);
	if (!*ret)
		return REASON_MEMORY_EXCEEDED;
	SET(&(*ret)->limit[QUOTA_UP], limit.up);
	SET(&(*ret)->limit[QUOTA_DOWN], limit.down);
	return REASON_ALLOWED;
}

enum reason quota_flow_begin(struct quota_flow *f, struct quota *q,
			     const struct ruleset *rules, size_t rule)
{
	struct quota_rule *r;
	enum reason why = account_of(q, rules, rule, &r);

	if (why != REASON_ALLOWED)
		return why;
	*f = (struct quota_flow){ .quota = q, .rule = r };
	return is_used_up(f);
}

enum reason quota_flow_move(struct quota_flow *f, const struct ruleset *rules,
			    size_t rule)
{
	struct quota_rule *r;
	enum reason why = account_of(f->quota, rules, rule, &r);

	if (why != REASON_ALLOWED)
		return why;
	for (enum quota_way w = QUOTA_UP; w < QUOTA_WAYS; w++) {
		REQUIRE(!f->reserved[w]);
		if (r && r != f->rule)
			atomic_fetch_add_explicit(&r->used[w], f->used[w],
						  memory_order_relaxed);
	}
	f->rule = r;
	return REASON_ALLOWED;
}

/* --- bytes -------------------------------------------------------------------- */

/* Add @want to @used as far as @limit goes. Return: how much that was. */
static uint64_t budget_take(atomic_uint_fast64_t *used, uint64_t limit,
			    uint64_t want)
{
	uint64_t before = atomic_fetch_add_explicit(used, want,
						    memory_order_relaxed);
	uint64_t room;

	if (limit == 0 || before + want <= limit)
		return want;
	room = before < limit ? limit - before : 0;
	atomic_fetch_sub_explicit(used, want - room, memory_order_relaxed);
	return room;
}

static void budget_give(atomic_uint_fast64_t *used, uint64_t n)
{
	if (n)
		atomic_fetch_sub_explicit(used, n, memory_order_relaxed);
}

static uint64_t rule_take(struct quota_rule *r, enum quota_way way,
			  uint64_t want)
{
	return r ? budget_take(&r->used[way], GET(&r->limit[way]), want) :
		   want;
}

static void rule_give(struct quota_rule *r, enum quota_way way, uint64_t n)
{
	if (r)
		budget_give(&r->used[way], n);
}

static uint64_t flow_room(const struct quota_flow *f, enum quota_way way,
			  uint64_t want)
{
	uint64_t limit = GET(&own(f->quota)->flow_limit[way]);

	if (limit == 0)
		return want;
	return f->used[way] < limit ? MIN(limit - f->used[way], want) : 0;
}

/* Of the budgets alone. @ret_room: what all of them have, and is taken; Return:
 * ALLOWED, or which of them had less than @want. */
static enum reason budgets_take(struct quota_flow *f, enum quota_way way,
				uint64_t want, uint64_t *ret_room)
{
	struct quota_own *o = own(f->quota);
	enum reason why = REASON_ALLOWED;
	uint64_t room = flow_room(f, way, want), less;

	if (room < want)
		why = REASON_FLOW_BYTES_EXCEEDED;
	less = room ? rule_take(f->rule, way, room) : 0;
	if (less < room)
		why = REASON_RULE_BYTES_EXCEEDED;
	room = less;
	less = room ? budget_take(&f->quota->used[way], GET(&o->limit[way]),
				  room) : 0;
	rule_give(f->rule, way, room - less);
	if (less < room)
		why = REASON_BYTES_EXCEEDED;
	*ret_room = less;
	return why;
}

static void budgets_give(struct quota_flow *f, enum quota_way way, uint64_t n)
{
	rule_give(f->rule, way, n);
	budget_give(&f->quota->used[way], n);
}

enum reason quota_reserve(struct quota_flow *f, enum quota_way way,
			  size_t want, int64_t now_ms, size_t *ret_room)
{
	struct rate *rate = &own(f->quota)->rate[way];
	enum reason why;
	uint64_t room, less;

	REQUIRE(want > 0 && want <= QUOTA_CHUNK_MAX && !f->reserved[way]);
	*ret_room = 0;
	why = budgets_take(f, way, want, &room);
	if (room == 0)
		return why;
	less = rate_take(rate, room, now_ms * 1000);
	budgets_give(f, way, room - less);
	f->reserved[way] = (uint32_t)less;
	*ret_room = (size_t)less;
	return REASON_ALLOWED;
}

enum reason quota_charge(struct quota_flow *f, enum quota_way way, size_t n)
{
	enum reason why;
	uint64_t room;

	if (!f->quota || n == 0)
		return REASON_ALLOWED;
	why = budgets_take(f, way, n, &room);
	if (why != REASON_ALLOWED) {
		budgets_give(f, way, room);
		return why;
	}
	f->used[way] += n;
	return REASON_ALLOWED;
}

size_t quota_pace(struct quota_flow *f, enum quota_way way, size_t n,
		  int64_t now_ms)
{
	if (!f->quota)
		return n;
	return (size_t)rate_take(&own(f->quota)->rate[way], n, now_ms * 1000);
}

void quota_return(struct quota_flow *f, enum quota_way way, size_t used)
{
	uint64_t back;

	REQUIRE(used <= f->reserved[way]);
	back = f->reserved[way] - used;
	f->reserved[way] = 0;
	budgets_give(f, way, back);
	rate_give(&own(f->quota)->rate[way], back);
}

unsigned quota_wait_ms(const struct quota_flow *f, enum quota_way way,
		       int64_t now_ms)
{
	struct rate *r = &own(f->quota)->rate[way];
	uint64_t rate = GET(&r->limit);
	int64_t need, ahead;

	if (rate == 0)
		return 1;
	/* Until a grain fits between now and the burst. */
	need = (int64_t)rate_cost_us(rate, MIN(MAX(rate / 16, (uint64_t)1),
					       (uint64_t)GRAIN));
	ahead = GET(&r->full_us) - now_ms * 1000;
	ahead = ahead + need - BURST_US;
	return ahead <= 1000 ? 1 : (unsigned)MIN(ahead / 1000 + 1, 60000);
}
