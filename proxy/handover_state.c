/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover_state.c - what a sandbox remembers, as bytes for another process
 */
#include "proxy/handover_state.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "proxy/handover_proto.h"
#include "proxy/quota.h"
#include "resolver/name_map.h"
#include "resolver/name_pins.h"
#include "resolver/resolver.h"
#include "rules/host_name.h"

enum item_type {
	ITEM_NAME = 1,		/* struct name_item, and the name */
	ITEM_PIN,		/* struct pin_item, and the name */
	ITEM_BUDGET,		/* struct dns_budget_spent */
	ITEM_ASKED,		/* uint64_t: a name that has left */
	ITEM_USED,		/* struct used_item, and a rule's name */
};

struct item_head {
	uint16_t type;
	uint16_t n;		/* bytes that follow */
};

struct name_item {
	struct id question;
	uint8_t v4, v6;
};

struct pin_item {
	struct id question;
	struct ip_addr addr;
	uint32_t ttl_s;
};

struct used_item {
	uint64_t bytes[QUOTA_WAYS];
};

/* --- telling ------------------------------------------------------------------ */

static int add(struct buf *out, enum item_type type, struct str first,
	       struct str rest)
{
	struct item_head head = { (uint16_t)type,
				  (uint16_t)(first.n + rest.n) };
	int err;

	REQUIRE(first.n + rest.n <= UINT16_MAX);
	err = buf_add(out, &head, sizeof(head));
	if (err == 0)
		err = buf_add_str(out, first);
	if (err == 0)
		err = buf_add_str(out, rest);
	return err;
}

static struct str bytes_of(const void *p, size_t n)
{
	return str_make(p, n);
}

static int tell_names(const struct name_map *names, struct buf *out)
{
	size_t i, n = name_map_count(names);
	int err = 0;

	for (i = 0; err == 0 && i < n; i++) {
		struct name_map_entry e;
		struct name_item item;

		name_map_entry(names, i, &e);
		item = (struct name_item){ e.question, e.v4, e.v6 };
		err = add(out, ITEM_NAME, bytes_of(&item, sizeof(item)),
			  e.name);
	}
	return err;
}

static int tell_pin(void *arg, const struct name_pins_one *pin)
{
	struct pin_item item;

	memset(&item, 0, sizeof(item));
	item.question = pin->question;
	item.addr = pin->addr;
	item.ttl_s = pin->ttl_s;
	return add(arg, ITEM_PIN, bytes_of(&item, sizeof(item)), pin->name);
}

static int tell_asked(void *arg, uint64_t name)
{
	return add(arg, ITEM_ASKED, bytes_of(&name, sizeof(name)), STR_NONE);
}

static int tell_budget(const struct dns_budget *budget, struct buf *out)
{
	struct dns_budget_spent spent = { .filled_ms = -1 };
	size_t at = out->n;
	int err = add(out, ITEM_BUDGET, bytes_of(&spent, sizeof(spent)),
		      STR_NONE);

	if (err == 0)
		err = dns_budget_tell(budget, &spent, tell_asked, out);
	if (err == 0)
		memcpy(out->p + at + sizeof(struct item_head), &spent,
		       sizeof(spent));
	return err;
}

static int tell_used(void *arg, const char *rule,
		     const uint64_t used[QUOTA_WAYS])
{
	struct used_item item;

	if (strlen(rule) >= HANDOVER_RULE_MAX)
		return 0;
	memcpy(item.bytes, used, sizeof(item.bytes));
	return add(arg, ITEM_USED, bytes_of(&item, sizeof(item)),
		   str_from(rule));
}

int handover_tell(const struct handover_memory *m, struct buf *out)
{
	int err = m->names ? tell_names(m->names, out) : 0;

	if (err == 0 && m->pins)
		err = name_pins_each(m->pins, clock_mono_ms(), tell_pin, out);
	if (err == 0 && m->budget)
		err = tell_budget(m->budget, out);
	if (err == 0 && m->quota)
		err = quota_tell(m->quota, tell_used, out);
	return err;
}

size_t handover_cut(struct str bytes, size_t max)
{
	struct item_head head;
	size_t at = 0;

	while (bytes.n - at >= sizeof(head)) {
		memcpy(&head, bytes.p + at, sizeof(head));
		if (bytes.n - at - sizeof(head) < head.n ||
		    at + sizeof(head) + head.n > max)
			break;
		at += sizeof(head) + head.n;
	}
	return at;
}

/* --- taking in ------------------------------------------------------------------ */

static bool take(struct str *item, void *to, size_t n)
{
	if (item->n < n)
		return false;
	memcpy(to, item->p, n);
	*item = str_make(item->p + n, item->n - n);
	return true;
}

/* A name as DNS gives them out, and no other. */
static bool is_host(struct str name)
{
	struct host_name h;

	return host_name_parse(name, &h) == 0 &&
	       str_eq(name, str_make(h.p, h.n));
}

static int remember_name(struct name_map *names, struct str item)
{
	struct name_item n;
	struct ip_addr addr;
	int err = 0;

	if (!take(&item, &n, sizeof(n)) || !is_host(item) || (!n.v4 && !n.v6))
		return -EPROTO;
	if (n.v4)
		err = name_map_give(names, item, IP_V4, &n.question, &addr);
	if (err == 0 && n.v6)
		err = name_map_give(names, item, IP_V6, &n.question, &addr);
	return err;
}

static int remember_pin(struct name_pins *pins, struct str item)
{
	struct name_pins_answer a;
	struct pin_item p;

	if (!take(&item, &p, sizeof(p)) || !is_host(item) ||
	    (p.addr.family != IP_V4 && p.addr.family != IP_V6))
		return -EPROTO;
	if (p.addr.family == IP_V4)	/* the rest is 0 in all of ours */
		p.addr = ip_addr_v4(ip_addr_v4_bits(&p.addr));
	a = (struct name_pins_answer){
		.name = item, .addr = &p.addr, .n = 1, .ttl_s = p.ttl_s,
		.question = &p.question,
	};
	return name_pins_give(pins, &a, clock_mono_ms());
}

static int remember_used(struct quota *q, struct str item)
{
	char rule[HANDOVER_RULE_MAX];
	struct used_item u;

	if (!take(&item, &u, sizeof(u)) || item.n >= sizeof(rule) ||
	    memchr(item.p, '\0', item.n))
		return -EPROTO;
	memcpy(rule, item.p, item.n);
	rule[item.n] = '\0';
	return quota_note(q, rule, u.bytes);
}

static int remember_item(const struct handover_memory *m, unsigned type,
			 struct str item)
{
	struct dns_budget_spent spent;
	uint64_t asked;

	switch (type) {
	case ITEM_NAME:
		return m->names ? remember_name(m->names, item) : -EPROTO;
	case ITEM_PIN:
		return m->pins ? remember_pin(m->pins, item) : -EPROTO;
	case ITEM_BUDGET:
		if (!m->budget || !take(&item, &spent, sizeof(spent)))
			return -EPROTO;
		return dns_budget_resume(m->budget, &spent);
	case ITEM_ASKED:
		if (!m->budget || !take(&item, &asked, sizeof(asked)))
			return -EPROTO;
		return dns_budget_resume_name(m->budget, asked);
	case ITEM_USED:
		return m->quota ? remember_used(m->quota, item) : -EPROTO;
	default:
		return -EPROTO;
	}
}

int handover_remember(const struct handover_memory *m, struct str bytes)
{
	struct item_head head;
	int err = 0;

	while (err == 0 && bytes.n > 0) {
		if (!take(&bytes, &head, sizeof(head)) || bytes.n < head.n)
			return -EPROTO;
		err = remember_item(m, head.type, str_make(bytes.p, head.n));
		bytes = str_make(bytes.p + head.n, bytes.n - head.n);
	}
	return err;
}
