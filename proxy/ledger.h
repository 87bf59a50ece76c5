/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.h - what another process knows of what a run has used
 *
 * While a run has flows in two processes, each counts what its own flows use
 * and tells the other of it, so that a budget is one budget.  A ledger is kept
 * for each such pair, on either side: of each account of the run's quota, how
 * much the other one knows of.  The two are as far apart as what moves between
 * two reports.
 */
#ifndef PROXY_LEDGER_H
#define PROXY_LEDGER_H

#include <stdint.h>

#include "base/compiler.h"
#include "base/list.h"
#include "proxy/quota.h"

struct ledger {
	struct list accounts;
};

void ledger_init(struct ledger *l);
void ledger_done(struct ledger *l);
/* The other one knows all that @q has used until now. 0 or -ENOMEM */
NODISCARD int ledger_start(struct ledger *l, struct quota *q);
/* @fn is told what each account has used that the other one does not know of;
 * the other one knows it from then on.  0, what @fn returned, or -ENOMEM */
NODISCARD int ledger_report(struct ledger *l, struct quota *q, quota_fn *fn,
			    void *arg);
/* The other one has told of so much: it counts here too.  0 or -errno */
NODISCARD int ledger_note(struct ledger *l, struct quota *q, const char *rule,
			  const uint64_t used[QUOTA_WAYS]);

#endif /* PROXY_LEDGER_H */
