/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_repeats.c - questions that come again within seconds, counted
 *
 * An entry is one allocation: head, answers, name.  It stands in a hash table
 * and in a list in the order in which its time began; since all have the same
 * time, that is the order in which they are over, and the front goes first when
 * bytes are needed.
 */
#include "resolver/dns_repeats.h"

#include <errno.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/mem.h"
#include "resolver/dns_msg.h"

struct repeat {
	struct hash_node node;
	struct list order;
	int64_t until_ms;
	size_t bytes;
	struct id id;
	uint32_t count;			/* beyond the first */
	uint16_t type;
	bool tcp, internal, has_type;
	struct ip_addr asked;
	enum record_act act;
	enum reason reason;
	int rcode;
	const char *rule;
	struct str name;		/* behind the answers */
	size_t nanswers;
	struct ip_addr answers[];
};

struct dns_repeats {
	struct hash_table table;
	struct list order;		/* oldest first */
	uint64_t changes;		/* entries that came or went */
	struct repeat *spare;		/* the last one that went; its room */
	size_t bytes, budget;
	dns_repeats_fn *fn;
	void *arg;
};

int dns_repeats_new(size_t budget_bytes, dns_repeats_fn *fn, void *arg,
		    struct dns_repeats **ret)
{
	struct dns_repeats *t = mem_new(sizeof(*t));

	if (!t)
		return -ENOMEM;
	if (hash_init(&t->table, 64) != 0) {
		mem_free(t);
		return -ENOMEM;
	}
	list_init(&t->order);
	t->budget = budget_bytes;
	t->fn = fn;
	t->arg = arg;
	*ret = t;
	return 0;
}

static void repeat_drop(struct dns_repeats *t, struct repeat *e)
{
	hash_remove(&t->table, &e->node);
	list_del(&e->order);
	t->changes++;
	t->bytes -= e->bytes;
	mem_free(t->spare);
	t->spare = e;
}

/* Not zeroed.  What went last is mostly as large as what comes. */
static struct repeat *repeat_room(struct dns_repeats *t, size_t bytes)
{
	struct repeat *e = t->spare;

	if (!e || e->bytes != bytes)
		return mem_new(bytes);
	t->spare = NULL;
	return e;
}

/* Say how many there were, and forget it. */
static void repeat_close(struct dns_repeats *t, struct repeat *e)
{
	char type[DNS_TYPE_TEXT_SIZE];
	const struct record r = {
		.event = RECORD_DNS, .act = e->act, .reason = e->reason,
		.via = RECORD_VIA_DNS, .internal = e->internal, .id = e->id,
		.rule = e->rule, .host = e->name, .asked = e->asked,
		.transport = e->tcp ? "tcp" : "udp",
		.qtype = e->has_type ? dns_type_text(e->type, type) : NULL,
		.rcode = e->rcode, .answers = e->answers,
		.nanswers = e->nanswers, .dur_ms = -1, .count = e->count,
	};

	if (e->count > 0)
		t->fn(t->arg, &r);
	repeat_drop(t, e);
}

/* In steps, so that the room of one is good for another. */
static size_t entry_size(size_t tail)
{
	return (sizeof(struct repeat) + tail + 31) / 32 * 32;
}

static struct repeat *oldest(const struct dns_repeats *t)
{
	return list_first(&t->order, struct repeat, order);
}

void dns_repeats_flush(struct dns_repeats *t)
{
	while (!list_empty(&t->order))
		repeat_close(t, oldest(t));
}

void dns_repeats_free(struct dns_repeats *t)
{
	if (!t)
		return;
	while (!list_empty(&t->order))
		repeat_drop(t, oldest(t));
	mem_free(t->spare);
	hash_done(&t->table);
	mem_free(t);
}

int64_t dns_repeats_close(struct dns_repeats *t, int64_t now_ms)
{
	while (!list_empty(&t->order) && now_ms >= oldest(t)->until_ms)
		repeat_close(t, oldest(t));
	return list_empty(&t->order) ? -1 : oldest(t)->until_ms;
}

/* The rest of the key is compared: few names are asked about in many ways. */
uint64_t dns_repeat_hash(const struct dns_repeat_key *key)
{
	return hash_str(key->name) + key->type;
}

static struct repeat *find(const struct dns_repeats *t,
			   const struct dns_repeat_key *key)
{
	struct hash_node *node = hash_first(&t->table, key->hash);

	for (; node; node = hash_next(node)) {
		struct repeat *e = container_of(node, struct repeat, node);

		if (e->type == key->type && e->tcp == key->tcp &&
		    ip_addr_eq(&e->asked, &key->asked) &&
		    str_eq(e->name, key->name))
			return e;
	}
	return NULL;
}

bool dns_repeats_find(const struct dns_repeats *t,
		      const struct dns_repeat_key *key, struct id *ret,
		      struct dns_repeat_found *ret_found)
{
	struct repeat *e = find(t, key);

	*ret_found = (struct dns_repeat_found){ e, t->changes };
	if (e)
		*ret = e->id;
	return e;
}

static struct repeat *find_again(const struct dns_repeats *t,
				 const struct dns_repeat_key *key,
				 struct dns_repeat_found *found)
{
	if (found->changes != t->changes)
		*found = (struct dns_repeat_found){ find(t, key), t->changes };
	return found->entry;
}

static bool same_rule(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

/* Would the record say the same of what was decided? */
static bool is_equal(const struct repeat *e, const struct record *r)
{
	if (e->act != r->act || e->reason != r->reason ||
	    e->rcode != r->rcode || e->internal != r->internal ||
	    e->has_type != !!r->qtype || !same_rule(e->rule, r->rule) ||
	    e->nanswers != r->nanswers)
		return false;
	for (size_t i = 0; i < e->nanswers; i++) {
		if (!ip_addr_eq(&e->answers[i], &r->answers[i]))
			return false;
	}
	return true;
}

bool dns_repeats_count(struct dns_repeats *t, const struct dns_repeat_key *key,
		       struct dns_repeat_found *found, const struct record *r,
		       struct id *ret)
{
	struct repeat *e = find_again(t, key, found);

	if (!e || !is_equal(e, r) || e->count == UINT32_MAX)
		return false;
	e->count++;
	*ret = e->id;
	return true;
}

void dns_repeats_add(struct dns_repeats *t, const struct dns_repeat_key *key,
		     struct dns_repeat_found *found, const struct record *r,
		     int64_t now_ms)
{
	struct repeat *e = find_again(t, key, found);
	size_t answers = r->nanswers * sizeof(e->answers[0]);
	size_t bytes = entry_size(answers + key->name.n);

	/* Another answer than before: that one's time is over. */
	if (e)
		repeat_close(t, e);
	while (t->bytes + bytes > t->budget && !list_empty(&t->order))
		repeat_close(t, oldest(t));
	e = bytes > t->budget ? NULL : repeat_room(t, bytes);
	if (!e)
		return;
	*e = (struct repeat){
		.until_ms = now_ms + DNS_REPEAT_MS, .bytes = bytes,
		.id = r->id, .type = key->type, .tcp = key->tcp,
		.internal = r->internal, .has_type = r->qtype,
		.asked = key->asked, .act = r->act, .reason = r->reason,
		.rcode = r->rcode, .rule = r->rule, .nanswers = r->nanswers,
	};
	if (answers)
		memcpy(e->answers, r->answers, answers);
	memcpy((char *)e->answers + answers, key->name.p, key->name.n);
	e->name = str_make((char *)e->answers + answers, key->name.n);
	list_add(&t->order, &e->order);
	hash_add(&t->table, &e->node, key->hash);
	t->changes++;
	t->bytes += bytes;
}

size_t dns_repeats_bytes(const struct dns_repeats *t)
{
	return t->bytes;
}
