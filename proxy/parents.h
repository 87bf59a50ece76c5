/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parents.h - the proxies that flows may be sent through
 *
 * Said by the operator (configuration, command line) and fixed from the start
 * on; shared by all workers and never changed.  A policy only names one: what
 * it does not know is refused when the policy comes, never passed over.
 */
#ifndef PROXY_PARENTS_H
#define PROXY_PARENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/str.h"
#include "proxy/parent_msg.h"
#include "rules/host_name.h"
#include "rules/rules.h"

#define PARENTS_MAX		32
#define PARENT_BYPASS_MAX	256	/* words of one */
#define PARENTS_WHY_SIZE	256

/* A word of `bypass`: a name, or every name below it, or a network. */
struct parent_bypass {
	struct host_name name;		/* n == 0: @net */
	bool below;
	struct ip_net net;
};

struct parent {
	char name[RULES_PARENT_MAX + 1];
	enum parent_kind kind;
	bool there;			/* resolve = parent */
	bool absolute;			/* http = absolute */
	struct host_name host;		/* where it is; n == 0: @addr */
	struct ip_addr addr;
	uint16_t port;			/* 0: not said yet */
	struct str user, password;	/* heap; empty: no login */
	struct str basic;
	struct parent_bypass *bypass;
	size_t n_bypass;
	char *login_file;		/* to be read, or NULL; heap */
};

struct parents {
	struct parent *parent[PARENTS_MAX];
	size_t n;
	const struct parent *by_default;	/* or NULL: straight there */
	bool always;			/* and no policy can say otherwise */
};

/* --- saying what they are; 0, -EINVAL with @why for a person, or -ENOMEM ------- */

/* @name is a plain word, and none that is there or means something else. */
NODISCARD int parents_add(struct parents *ps, struct str name,
			  struct parent **ret, const char **why);
/* "http://HOST:PORT", "socks5://HOST[:PORT]"; "socks5h" also says who resolves. */
NODISCARD int parent_set_url(struct parent *p, struct str url,
			     const char **why);
/* A name, "*.NAME", an address or a network. */
NODISCARD int parent_add_bypass(struct parent *p, struct str word,
				const char **why);
/* "USER:PASSWORD" */
NODISCARD int parent_set_login(struct parent *p, struct str login,
			       const char **why);
/* The same from the first line of a file that nobody else may read. */
NODISCARD int parent_read_login(struct parent *p, const char *path,
				char why[PARENTS_WHY_SIZE]);
/* What only the whole can be asked for; NULL, or what is wrong. */
const char *parent_fault(const struct parent *p);
/* Read the file of each that has one; on failure it says what is wrong. */
NODISCARD int parents_read_logins(struct parents *ps);
void parents_done(struct parents *ps);

/* --- asking --------------------------------------------------------------------- */

const struct parent *parents_find(const struct parents *ps, struct str name);

/**
 * parents_pick() - Which one does a flow go through?
 * @word:	rules_answer.parent
 * @host:	or empty
 * @addr:	where it goes, as far as that is known; or NULL
 * @ret:	NULL: straight to the destination
 * Return: 0, or -ENOENT: a name that is not there, which no policy that is in
 *	   force should have
 */
NODISCARD int parents_pick(const struct parents *ps, const char *word,
			   struct str host, const struct ip_addr *addr,
			   const struct parent **ret);

/* Is the name for one of them to look up, by some rule? */
bool parents_resolve(const struct parents *ps, const struct ruleset *rules,
		     struct str host, int64_t now);

/* May the policy be used with them?  false: @why has the words. */
bool parents_suit(const struct parents *ps, const struct ruleset *rules,
		  char why[PARENTS_WHY_SIZE]);

#endif /* PROXY_PARENTS_H */
