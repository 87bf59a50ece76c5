/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.c - what another process knows of what a run has used
 */
#include "proxy/ledger.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"

struct account {
	struct list node;
	uint64_t known[QUOTA_WAYS];
	char rule[];
};

void ledger_init(struct ledger *l)
{
	list_init(&l->accounts);
}

void ledger_done(struct ledger *l)
{
	while (!list_empty(&l->accounts)) {
		struct account *a = list_first(&l->accounts, struct account,
					       node);

		list_del(&a->node);
		mem_free(a);
	}
}

/* NULL: out of memory. */
static struct account *account_of(struct ledger *l, const char *rule)
{
	size_t n = strlen(rule) + 1;
	struct list *it, *tmp;
	struct account *a;

	list_each(&l->accounts, it, tmp) {
		a = container_of(it, struct account, node);
		if (strcmp(a->rule, rule) == 0)
			return a;
	}
	a = mem_new(sizeof(*a) + n);
	if (!a)
		return NULL;
	memcpy(a->rule, rule, n);
	list_add(&l->accounts, &a->node);
	return a;
}

static int start_account(void *arg, const char *rule,
			 const uint64_t used[QUOTA_WAYS])
{
	struct account *a = account_of(arg, rule);

	if (!a)
		return -ENOMEM;
	memcpy(a->known, used, sizeof(a->known));
	return 0;
}

int ledger_start(struct ledger *l, struct quota *q)
{
	return quota_tell(q, start_account, l);
}

struct report {
	struct ledger *ledger;
	quota_fn *fn;
	void *arg;
};

static int report_account(void *arg, const char *rule,
			  const uint64_t used[QUOTA_WAYS])
{
	const struct report *r = arg;
	struct account *a = account_of(r->ledger, rule);
	uint64_t more[QUOTA_WAYS];
	int err;

	if (!a)
		return -ENOMEM;
	/* Less than was known: a reservation that was given back. */
	for (enum quota_way w = QUOTA_UP; w < QUOTA_WAYS; w++)
		more[w] = used[w] > a->known[w] ? used[w] - a->known[w] : 0;
	if (!more[QUOTA_UP] && !more[QUOTA_DOWN])
		return 0;
	err = r->fn(r->arg, rule, more);
	for (enum quota_way w = QUOTA_UP; err == 0 && w < QUOTA_WAYS; w++)
		a->known[w] += more[w];
	return err;
}

int ledger_report(struct ledger *l, struct quota *q, quota_fn *fn, void *arg)
{
	struct report r = { l, fn, arg };

	return quota_tell(q, report_account, &r);
}

int ledger_note(struct ledger *l, struct quota *q, const char *rule,
		const uint64_t used[QUOTA_WAYS])
{
	struct account *a = account_of(l, rule);
	int err = a ? quota_note(q, rule, used) : -ENOMEM;

	for (enum quota_way w = QUOTA_UP; err == 0 && w < QUOTA_WAYS; w++)
		a->known[w] += used[w];
	return err;
}
