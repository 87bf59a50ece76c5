/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_ask.h - one DNS question of a person, and its answer in words
 *
 * The verdict is that of dns_judge(), which a sandbox's door asks as well; here
 * are only the words.
 */
#ifndef CLI_DNS_ASK_H
#define CLI_DNS_ASK_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/json.h"
#include "resolver/dns_judge.h"

struct dns_ask {
	struct dns_question q;
	struct dns_name hostname;	/* of the sandbox; .n 0: none */
	int64_t now;			/* wall clock, seconds */
};

struct dns_told {
	enum dns_judge by;
	struct host_name host;		/* .n 0: no name of a host */
	struct dns_judgement j;
	bool refused;			/* the policy's doing */
	bool observed;			/* let through, but only for now */
};

/**
 * dns_ask_parse() - Read a name, or an address for its reverse name
 * @type:	"AAAA", "TYPE64"; NULL: PTR for an address, else A
 * @ret_why:	set on failure: what is wrong and the mend, a constant
 * Return: 0 or -EINVAL
 */
NODISCARD int dns_ask_parse(const char *name, const char *type,
			    struct dns_ask *ret, const char **ret_why);

/* One label, as the door takes it; a name of several is none (.n 0). */
void dns_ask_hostname(const char *name, struct dns_ask *ask);

/* Nobody is asked: what hangs on the world is left open, and said so. */
void dns_ask(const struct ruleset *rs, const struct dns_ask *ask,
	     struct dns_told *ret);

/* Is the question answered as the one who asks it would like? */
bool dns_told_good(const struct dns_told *t);

/* Several lines: the verdict, what it stands on, what would be needed. */
NODISCARD int dns_told_text(const struct ruleset *rs, const struct dns_ask *ask,
			    const struct dns_told *t, struct buf *out);

/* The same as members of the object that is open. */
void dns_told_json(const struct ruleset *rs, const struct dns_ask *ask,
		   const struct dns_told *t, struct json *j);

#endif /* CLI_DNS_ASK_H */
