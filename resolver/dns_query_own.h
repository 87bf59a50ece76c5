/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query_own.h - what the files of a question share; no one else includes it
 *
 *	dns_query.c		states, events, beginning and end
 *	dns_query_judge.c	what policy and local names say
 *	dns_query_lookup.c	asking the world, and what its answer comes to
 *	dns_query_give.c	the addresses that a name is answered with
 *	dns_query_record.c	the record, or one more count on another
 *	dns_query_types.c	records that are not addresses
 *	dns_query_reply.c	the record, then the reply
 */
#ifndef RESOLVER_DNS_QUERY_OWN_H
#define RESOLVER_DNS_QUERY_OWN_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/record.h"
#include "base/compiler.h"
#include "base/id.h"
#include "base/ip_addr.h"
#include "base/list.h"
#include "base/reason.h"
#include "resolver/dns_door.h"
#include "resolver/dns_msg.h"
#include "resolver/dns_query.h"
#include "resolver/dns_repeats.h"
#include "rules/host_name.h"
#include "rules/rules.h"

#define DNS_QUERY_MAGIC	0x71756572u

enum dns_query_state {
	DQ_JUDGE,
	DQ_LOOKUP,
	DQ_SIBLING,
	DQ_REPLY,

	DQ_STATES
};

/* What the question comes to. */
struct dns_result {
	enum dns_rcode rcode;
	enum record_act act;
	enum reason reason;
	bool internal;
	struct ip_addr addr;		/* family IP_NONE: none */
	const struct ip_addr *given;	/* in its place, until the reply: */
	size_t ngiven;			/* the door's; 0: none */
	struct dns_name ptr;		/* .n 0: none */
	struct str records;		/* of the type asked (dns_rdata.h), good
					 * until the reply */
};

/*
 * Most questions are answered at once and never leave the stack.  One that must
 * wait is moved to the heap by the lookup that it waits for.
 */
struct dns_query {
	unsigned magic;
	bool kept;			/* on the heap */
	enum dns_query_state state;
	struct list node;		/* on door->queries while it waits */
	struct dns_door *door;
	struct dns_client client;
	struct dns_question q;
	struct host_name host;
	struct id id;
	bool borrowed;			/* the id of an earlier one, so far */
	uint64_t hash;			/* dns_repeat_hash() */
	struct dns_repeat_found found;	/* of that, at birth */
	int64_t start_ms;
	struct rules_answer verdict;	/* on the name */
	struct resolver_lookup *lookup;	/* while it waits */
	struct dns_result result;
};

/* --- dns_query.c ------------------------------------------------------------- */

/* Checks that @to may follow, traces, and checks what holds then. */
void dns_query_set_state(struct dns_query *q, enum dns_query_state to);
/* Work until it waits or is answered; it may be gone then. */
void dns_query_run(struct dns_query *q);
/* The verdict: to DQ_REPLY with it. */
void dns_query_end(struct dns_query *q, enum dns_rcode rcode,
		   enum record_act act, enum reason reason);
void dns_query_deny(struct dns_query *q, enum dns_rcode rcode,
		    enum reason reason);
/* What the policy let through, marked where it only observes. */
void dns_query_allow(struct dns_query *q, enum reason reason);

/* --- dns_query_judge.c -------------------------------------------------------- */

/* DQ_JUDGE: leads to DQ_REPLY, DQ_LOOKUP or beyond. */
void dns_query_judge(struct dns_query *q);
/* What does the policy say of the name?  Fills q->verdict. */
enum rules_name_verdict dns_query_ask_rules(struct dns_query *q);
void dns_query_deny_name(struct dns_query *q, enum rules_name_verdict v);

/* --- dns_query_lookup.c ------------------------------------------------------- */

/* The policy allows the name: ask the world, or the cache. */
void dns_query_resolve(struct dns_query *q);
/* It waits no longer; its lookup has ended or was cancelled. */
void dns_query_wake(struct dns_query *q);

/* --- dns_query_record.c ------------------------------------------------------- */

/* At birth: an id, that of the last one which asked the same if there is one. */
void dns_query_identify(struct dns_query *q);
/* One that no other record has. */
void dns_query_own_id(struct dns_query *q);
/* Write @r, or count it.  0, or what audit_post() says. */
NODISCARD int dns_query_record(struct dns_query *q, struct record *r);
/* --- dns_query_give.c --------------------------------------------------------- */

/* Does an address pass, on any port?  @ret_why tells of the first if not. */
bool dns_query_any_passes(const struct dns_query *q,
			  const struct resolver_answer *a,
			  enum reason *ret_why);
/* Some address passed: to DQ_REPLY with what the name is given. */
void dns_query_give(struct dns_query *q, const struct resolver_answer *a);
/* The same, where nobody here is to know its addresses. */
void dns_query_give_stand_in(struct dns_query *q);
/*
 * Hints of SVCB and HTTPS: may the name be answered with this one?  Those that
 * may are put into the door's @given, and pinned together: 0 or -errno.
 */
bool dns_query_may_hint(const struct dns_query *q, const struct ip_addr *addr);
NODISCARD int dns_query_pin_hints(struct dns_query *q, size_t n,
				  uint32_t ttl_s);
/* To DQ_REPLY, since what was to be given could not be remembered. */
void dns_query_deny_given(struct dns_query *q, int err);
/* The name was given with another id than q->id: say so where it is kept. */
void dns_query_stamp(struct dns_query *q);


/* --- dns_query_types.c -------------------------------------------------------- */

/* May the world be asked for records of this type? A and AAAA: always. */
bool dns_query_type_is_open(const struct dns_query *q);
/* What the world says to another type than A and AAAA: to DQ_REPLY. */
void dns_query_on_records(struct dns_query *q, const struct resolver_answer *a);

/* --- dns_query_reply.c -------------------------------------------------------- */

/* DQ_REPLY: record first; what cannot be recorded is not answered.  Frees. */
void dns_query_reply(struct dns_query *q);
/* The door shuts: record it as ended with the run.  Frees. */
void dns_query_drop(struct dns_query *q);

#endif /* RESOLVER_DNS_QUERY_OWN_H */
