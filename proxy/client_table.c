/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_table.c - what each client of a listener may have of it
 *
 * Theory
 * ======
 * One client must not be able to have all that a listener has to give, and a
 * listener with a single client should give it all it can.  So where the
 * section says no number, a client is bounded only once it is in others' way:
 *
 *	connections	when CROWDED of them are in use, nobody gets more than
 *			an equal part, reckoned with one client who is yet to
 *			come.  A single client thus has that much to itself.
 *	new ones	half of the policy's new_connections, if it has them,
 *			while others connect as well
 *	questions	half of the policy's queries, or of what a run may ask
 *			by default, while others ask as well
 *
 * "While others do": within the last ALONE_US.  Clients on loopback are not
 * told apart, for they are one address, or any that they like; for them only
 * numbers of the section count.
 *
 * A rate is kept as the time when the bucket will be full again, as in
 * quota.c.  What it has at once is a second's worth, or more for the default
 * of questions.  A question by UDP that is over it is answered with TC, that
 * is, "ask by TCP": whoever forges an address within the ranges spends what
 * is that client's, who then still is answered by TCP, counted apart.  Such
 * answers are bounded likewise, and as short as the question.
 *
 * The table has a fixed size: sets of WAYS entries, found by a keyed hash.  An
 * entry that holds nothing and whose buckets are full again is as good as
 * none, and may be taken.  Where a set has no such entry its newcomers share
 * the last entry of the table, so that forged addresses make newcomers wait,
 * but push nobody out.
 *
 * It has a lock, held for some dozens of instructions: workers come by once
 * for each connection and question.
 */
#include "proxy/client_table.h"

#include <errno.h>
#include <pthread.h>

#include "base/hash.h"
#include "base/ip_class.h"
#include "base/mem.h"
#include "proxy/quota.h"
#include "resolver/resolver.h"
#include "rules/rules.h"

#define WAYS		8u
#define SETS		(CLIENT_TABLE_MAX / WAYS)
#define REST		CLIENT_TABLE_MAX	/* the entry of those without */
#define SECOND_US	INT64_C(1000000)
#define ALONE_US	(60 * SECOND_US)
/* Of the connections: three quarters. */
#define CROWDED(max)	((max) - (max) / 4)

enum bucket { NEW, UDP, TCP, BUCKETS };

struct client {
	struct ip_net who;		/* of no family: free */
	uint32_t held, refused;
	int64_t full_us[BUCKETS];
};

/* Is more than one of them active? */
struct company {
	struct ip_net last, other;
	int64_t last_us, other_us;
};

struct client_table {
	pthread_mutex_t lock;
	struct client_limits limits;
	unsigned holders;		/* entries that hold a connection */
	struct company connects, asks;
	struct client client[CLIENT_TABLE_MAX + 1];
};

_Static_assert((CLIENT_TABLE_MAX & (CLIENT_TABLE_MAX - 1)) == 0 &&
	       CLIENT_TABLE_MAX < UINT16_MAX, "an index fits a hold");

struct rate {
	uint32_t rate;			/* a second; 0: any */
	int64_t burst_us;
};

static void table_lock(struct client_table *t)
{
	int err = pthread_mutex_lock(&t->lock);

	REQUIRE(err == 0);
}

static void table_unlock(struct client_table *t)
{
	int err = pthread_mutex_unlock(&t->lock);

	REQUIRE(err == 0);
}

int client_table_new(const struct client_limits *limits,
		     struct client_table **ret)
{
	struct client_table *t = mem_new(sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (pthread_mutex_init(&t->lock, NULL) != 0) {
		mem_free(t);
		return -ENOMEM;
	}
	t->limits = *limits;
	t->connects.last_us = t->connects.other_us = INT64_MIN / 2;
	t->asks = t->connects;
	*ret = t;
	return 0;
}

void client_table_free(struct client_table *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	mem_free(t);
}

struct client_whole client_whole_of(const struct quota *quota,
				    const struct ruleset *rules)
{
	const struct rules_limits *l = rules_limits(rules);

	return (struct client_whole){
		.used = quota_connections(quota),
		.max = quota_connections_max(quota),
		.new_connections = l->new_connections,
		.queries = l->queries,
	};
}

/* --- entries ---------------------------------------------------------------- */

static bool is_same(const struct ip_net *a, const struct ip_net *b)
{
	return a->bits == b->bits && ip_addr_eq(&a->addr, &b->addr);
}

static bool is_idle(const struct client *c, int64_t now_us)
{
	return c->held == 0 && c->refused == 0 && c->full_us[NEW] <= now_us &&
	       c->full_us[UDP] <= now_us && c->full_us[TCP] <= now_us;
}

static struct client *find(struct client_table *t, const struct ip_net *who)
{
	size_t set = hash_bytes(&who->addr, sizeof(who->addr)) & (SETS - 1);
	struct client *c = &t->client[set * WAYS];
	size_t i;

	for (i = 0; i < WAYS; i++)
		if (is_same(&c[i].who, who))
			return &c[i];
	return NULL;
}

static struct client *find_or_take(struct client_table *t,
				   const struct ip_net *who, int64_t now_us)
{
	size_t set = hash_bytes(&who->addr, sizeof(who->addr)) & (SETS - 1);
	struct client *c = find(t, who);
	size_t i;

	for (i = 0; !c && i < WAYS; i++) {
		struct client *free = &t->client[set * WAYS + i];

		if (is_idle(free, now_us)) {
			*free = (struct client){ .who = *who };
			c = free;
		}
	}
	return c ? c : &t->client[REST];
}

static bool is_alone(struct company *y, const struct ip_net *who,
		     int64_t now_us)
{
	if (!is_same(&y->last, who)) {
		y->other = y->last;
		y->other_us = y->last_us;
		y->last = *who;
	}
	y->last_us = now_us;
	return now_us - y->other_us > ALONE_US;
}

/* --- rates ------------------------------------------------------------------- */

/* Takes one.  Return: false, and nothing is taken, with @more_us above it. */
static bool rate_take(int64_t *full_us, const struct rate *r, int64_t more_us,
		      int64_t now_us)
{
	int64_t from = *full_us > now_us ? *full_us : now_us;
	int64_t cost = r->rate ? SECOND_US / r->rate : 0;

	if (from - now_us + cost > r->burst_us + more_us)
		return false;
	*full_us = from + cost;
	return true;
}

/* What is not enforced is counted nevertheless, up to its bound. */
static bool rate_holds(int64_t *full_us, const struct rate *r, bool enforced,
		       int64_t now_us)
{
	return rate_take(full_us, r, 0, now_us) || !enforced;
}

static struct rate half_of(uint32_t rate)
{
	return (struct rate){ rate ? MAX(rate / 2, 1u) : 0, SECOND_US };
}

static struct rate rate_of_new(const struct client_table *t,
			       const struct client_whole *whole)
{
	if (t->limits.new_connections)
		return (struct rate){ t->limits.new_connections, SECOND_US };
	return half_of(whole->new_connections);
}

static struct rate rate_of_queries(const struct client_table *t,
				   const struct client_whole *whole)
{
	struct rate r = half_of(RESOLVER_QUERIES);

	if (t->limits.queries)
		return (struct rate){ t->limits.queries, SECOND_US };
	if (whole->queries)
		return half_of(whole->queries);
	r.burst_us *= RESOLVER_QUERIES_BURST / RESOLVER_QUERIES;
	return r;
}

/* --- connections -------------------------------------------------------------- */

static bool has_too_many(const struct client_table *t, const struct client *c,
			 const struct client_whole *whole, bool loopback)
{
	unsigned part = whole->max / (t->holders + 1);

	if (t->limits.connections && c->held >= t->limits.connections)
		return true;
	/* When all are in use nobody gets one, and not for who he is. */
	return !loopback && whole->used >= CROWDED(whole->max) &&
	       whole->used < whole->max && c->held >= MAX(part, 1u);
}

static enum reason judge(struct client_table *t, struct client *c,
			 const struct ip_net *who,
			 const struct client_whole *whole, int64_t now_us)
{
	bool loopback = ip_classify(&who->addr) == IP_LOOPBACK;
	bool alone = is_alone(&t->connects, who, now_us);
	struct rate r = rate_of_new(t, whole);

	if (has_too_many(t, c, whole, loopback))
		return REASON_CLIENT_CONNECTIONS_EXCEEDED;
	if (!rate_holds(&c->full_us[NEW], &r, t->limits.new_connections ||
			(!loopback && !alone), now_us))
		return REASON_CLIENT_RATE_EXCEEDED;
	return REASON_ALLOWED;
}

static void hold(struct client_table *t, struct client *c)
{
	if (c->held++ == 0)
		t->holders++;
}

static void let_go(struct client_table *t, struct client *c)
{
	REQUIRE(c->held > 0);
	if (--c->held == 0)
		t->holders--;
}

bool client_table_admits(struct client_table *t, const struct ip_addr *src)
{
	struct ip_net who = ip_net_of_machine(src);
	const struct client *c;
	bool admits;

	table_lock(t);
	c = find(t, &who);
	if (!c)
		c = &t->client[REST];
	admits = c->refused < CLIENT_REFUSED_MAX ||
		 ip_classify(&who.addr) == IP_LOOPBACK;
	table_unlock(t);
	return admits;
}

enum reason client_table_enter(struct client_table *t,
			       const struct ip_addr *src,
			       const struct client_whole *whole,
			       int64_t now_us, struct client_hold *ret)
{
	struct ip_net who = ip_net_of_machine(src);
	struct client *c;
	enum reason why;

	table_lock(t);
	c = find_or_take(t, &who, now_us);
	why = judge(t, c, &who, whole, now_us);
	*ret = (struct client_hold){
		.at = (uint16_t)(c - t->client + 1),
		.refused = why != REASON_ALLOWED,
	};
	if (ret->refused)
		c->refused++;
	else
		hold(t, c);
	table_unlock(t);
	return why;
}

void client_table_refuse(struct client_table *t, struct client_hold *h)
{
	struct client *c;

	REQUIRE(h->at > 0 && !h->refused);
	table_lock(t);
	c = &t->client[h->at - 1];
	let_go(t, c);
	c->refused++;
	h->refused = true;
	table_unlock(t);
}

void client_table_leave(struct client_table *t, struct client_hold *h)
{
	struct client *c;

	if (h->at == 0)
		return;
	table_lock(t);
	c = &t->client[h->at - 1];
	if (h->refused)
		c->refused--;
	else
		let_go(t, c);
	table_unlock(t);
	*h = (struct client_hold){ 0 };
}

/* --- questions ----------------------------------------------------------------- */

enum client_answer client_table_ask(struct client_table *t,
				    const struct ip_addr *src, bool tcp,
				    const struct client_whole *whole,
				    int64_t now_us)
{
	struct ip_net who = ip_net_of_machine(src);
	struct rate r = rate_of_queries(t, whole);
	enum client_answer answer = CLIENT_ANSWER;
	struct client *c;
	bool enforced;

	table_lock(t);
	c = find_or_take(t, &who, now_us);
	enforced = !is_alone(&t->asks, &who, now_us) &&
		   ip_classify(&who.addr) != IP_LOOPBACK;
	enforced |= t->limits.queries > 0;
	if (!rate_holds(&c->full_us[tcp ? TCP : UDP], &r, enforced, now_us)) {
		if (tcp)
			answer = CLIENT_REFUSE;
		else if (rate_take(&c->full_us[UDP], &r, SECOND_US, now_us))
			answer = CLIENT_SLIP;
		else
			answer = CLIENT_SILENCE;
	}
	table_unlock(t);
	return answer;
}
