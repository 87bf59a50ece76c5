/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h - the whole surface of the policy engine
 *
 * A policy text (INI, penstock.ini(5)) becomes an immutable ruleset that is
 * shared by threads through reference counts.  One question is asked of it,
 * with more or less known each time:
 *
 *	DNS question	name			rules_judge_name()
 *	DNS answer	name +        address	rules_judge_name_addr()
 *	named flow	name + port		rules_judge()
 *	about to dial	name + port + address	rules_judge()
 *	no name		       port + address	rules_judge()
 *	HTTP in clear	name + port + request	rules_judge_request()
 *
 * Permission is the union of what the allow rules permit less whatever a deny
 * rule matches; the most specific allow names the flow and gives its protocol.
 * Nothing here allocates, locks or logs while judging.
 */
#ifndef RULES_RULES_H
#define RULES_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/ip_class.h"
#include "base/reason.h"
#include "base/str.h"
#include "rules/host_name.h"

/* What a rule's protocol demands of the first bytes. */
enum rules_speech {
	SPEECH_TLS,	/* a ClientHello whose SNI is the name */
	SPEECH_HTTP,	/* HTTP/1.x, every request judged */
	SPEECH_OPAQUE,	/* dialled at once, bytes untouched */
};

struct rules_protocol {
	const char *name;	/* "https", "tcp", "ssh", "postgres", ... */
	uint16_t port;		/* its own port; 0 for tcp */
	enum rules_speech speech;
};

/* NULL when there is none of that name. */
const struct rules_protocol *rules_protocol_by_name(struct str name);
/* That port's protocol, else tcp: 443 https, 80 http, 22 ssh. */
const struct rules_protocol *rules_protocol_by_port(uint16_t port);

/* Each of them by its index, to list them; NULL behind the last. */
const struct rules_protocol *rules_protocol_at(size_t index);

/* --- making one --------------------------------------------------------- */

enum rules_severity { RULES_WARNING, RULES_ERROR };

struct rules_diag {
	enum rules_severity severity;
	const char *file;	/* the source's name */
	unsigned line;		/* 0: of the whole file */
	unsigned column;	/* 0: not known */
	const char *message;	/* what is wrong and the mend, no final dot */
};

typedef void rules_diag_fn(void *arg, const struct rules_diag *diag);

/* What a text is, which is also what it may say. */
enum rules_source_kind {
	RULES_SOURCE_POLICY,	/* the policy itself: the first, or none */
	RULES_SOURCE_INCLUDE,	/* rules; nothing that loosens the policy */
	RULES_SOURCE_PRESET,	/* rules that come with Penstock */
	RULES_SOURCE_HOSTS,	/* hosts, one a line, that `hosts` names */
	RULES_SOURCE_ALLOW,	/* what --allow stands for */

	RULES_SOURCE_KINDS
};

struct rules_source {
	const char *name;	/* a path, "preset NAME" or "--allow" */
	struct str text;
	enum rules_source_kind kind;
	/*
	 * Where it is named: @word in line @line of the source before it with
	 * the index @parent - 1; 0: on the command line.
	 */
	uint16_t parent;
	uint32_t line;
	struct str word;
	/* It is source @same - 1 again, which was named elsewhere; or 0. */
	uint16_t same;
};

struct ruleset;

/**
 * rules_compile() - Make a ruleset of one or more texts
 * @source:	in order, each behind its parent; what they name (includes,
 *		presets, lists of hosts) must be among them
 * @diag:	called for each error and warning; may be NULL
 * @ret:	one reference, the caller's
 *
 * No text, or an empty one, is a policy that denies everything.
 * Return: 0, -EINVAL (diag told why) or -ENOMEM
 */
NODISCARD int rules_compile(const struct rules_source *source, size_t n,
			    rules_diag_fn *diag, void *arg,
			    struct ruleset **ret);
struct ruleset *rules_ref(struct ruleset *rs);
void rules_unref(struct ruleset *rs);		/* NULL is fine */
static inline void rules_unrefp(struct ruleset **rs) { rules_unref(*rs); }

/**
 * rules_allow_text() - The policy text that `--allow HOST[:PORT]` stands for
 * @ordinal:	makes the section's name: [allow allow-1]
 * @out:	text is appended
 *
 * HOST alone opens https on 443 and http on 80; HOST:PORT that port with its
 * protocol.  HOST may be a name, *.name, a literal or a network; a literal
 * or network outside the public classes is refused with the mend (metadata:
 * never by --allow).
 * Return: 0 or -EINVAL with @ret_why set to words for the user
 */
struct buf;
NODISCARD int rules_allow_text(struct str argument, unsigned ordinal,
			       struct buf *out, const char **ret_why);

/* [policy] name, or "unnamed". */
const char *rules_name(const struct ruleset *rs);
/* The first 16 hex digits of the texts' SHA-256. */
const char *rules_digest(const struct ruleset *rs);
bool rules_observe(const struct ruleset *rs);	/* mode = observe */
/* As if the text said so; only while there is one reference. */
void rules_set_observe(struct ruleset *rs);
/* Another that judges as if the text said so, and shares all else with @rs,
 * which it keeps a reference to.  0 or -ENOMEM. */
NODISCARD int rules_observing(struct ruleset *rs, struct ruleset **ret);
size_t rules_count(const struct ruleset *rs);	/* allow and deny rules */

/* A rule as it was written; texts live as long as the ruleset. */
struct rules_rule_info {
	const char *name;
	const char *file;		/* and line of its section */
	unsigned line;
	bool deny;
	bool observe;			/* refuses nothing, only says so */
	const char *owner, *reason;	/* NULL: not said */
	int64_t expires;		/* seconds since the epoch, or NEVER */
	const char *parent;		/* what it says itself; NULL: nothing */
};

#define RULES_NEVER	INT64_MAX

/* By its number, from 1 to rules_count(), in the order of the texts. */
void rules_rule_info(const struct ruleset *rs, size_t number,
		     struct rules_rule_info *ret);
/* Its number by its name, or 0. */
size_t rules_rule_find(const struct ruleset *rs, bool deny, struct str name);

/* `parent = none`: straight to the destination, whatever else would hold. */
#define RULES_PARENT_NONE	"none"
#define RULES_PARENT_MAX	32	/* bytes of a parent's name */

/*
 * What [defaults] says of parents, for every flow whose rule says nothing; NULL:
 * nothing.  @ret_file and @ret_line: where.
 */
const char *rules_default_parent(const struct ruleset *rs,
				 const char **ret_file, unsigned *ret_line);

/*
 * The first time after @now at which a rule ends, so that what lives by it can
 * be judged again; RULES_NEVER when none does.
 */
int64_t rules_next_expiry(const struct ruleset *rs, int64_t now);

/* --- what a policy says of DNS and of budgets ---------------------------- */

enum rules_answers {
	RULES_ANSWERS_DEFAULT,		/* as the way in has it */
	RULES_ANSWERS_SYNTHETIC,
	RULES_ANSWERS_REAL,
};

enum rules_ipv6 { RULES_IPV6_AUTO, RULES_IPV6_ON, RULES_IPV6_OFF };

struct rules_dns {			/* [dns] */
	enum rules_answers answers;
	enum rules_ipv6 ipv6;
	bool refused;			/* denied names: REFUSED, not NXDOMAIN */
};

/* Of one direction each; 0: the policy does not say. */
struct rules_bytes {
	uint64_t up, down;
};

/* Seconds without a byte either way, and for a whole flow; 0: any. */
struct rules_times {
	uint32_t idle_s, flow_s;
};

/* [limits], of one run; 0: the policy does not say, the default holds. */
struct rules_limits {
	uint32_t queries;		/* questions a second */
	uint32_t names;			/* different ones, below wildcards */
	uint32_t label_bytes;		/* of such names, in all */
	uint32_t nxdomain;		/* of such names that there are not */
	uint32_t connections;		/* at once */
	uint32_t new_connections;	/* a second */
	struct rules_bytes bytes;	/* of the run, in all */
	struct rules_bytes flow_bytes;	/* of each flow */
	struct rules_bytes rate;	/* a second, of the run */
	uint64_t memory;		/* bytes that may be held for the run */
	uint32_t header_bytes;		/* of a request's head */
	/* Seconds: for a whole head, for connecting, for the first byte of an
	 * answer. */
	uint32_t header_s, connect_s, response_s;
	struct rules_times times;	/* of each flow, see rules_times() */
};

/*
 * What holds where a policy does not say, of those limits that hold then; who
 * keeps one asserts that it is this.  Of all others: any number.
 */
#define RULES_LIMIT_CONNECTIONS		4096
#define RULES_LIMIT_QUERIES		50	/* of some questions only */
#define RULES_LIMIT_NAMES		1000
#define RULES_LIMIT_NAMES_MAX		131072
#define RULES_LIMIT_LABEL_BYTES		16384
#define RULES_LIMIT_NXDOMAIN		250
#define RULES_LIMIT_HEADER_BYTES	65536	/* and at most */
#define RULES_LIMIT_HEADER_S		60
#define RULES_LIMIT_MEMORY		(512u << 20)
#define RULES_LIMIT_CONNECT_S		30

/* What a length of time counts as at most. */
#define RULES_SPAN_MAX_S	(40u * 86400)

const struct rules_dns *rules_dns(const struct ruleset *rs);
/* Do names have IPv6 addresses?  @hosts: this host's own; NULL: not known. */
bool rules_has_ipv6(const struct ruleset *rs, const struct ip_hosts *hosts);
const struct rules_limits *rules_limits(const struct ruleset *rs);
/* The bytes that all flows of a rule may move in a run, by its number. */
struct rules_bytes rules_rule_bytes(const struct ruleset *rs, size_t number);
/**
 * rules_times() - How long what a rule permits may be silent, and may last
 * @number:	the rule's; 0 where none permits it (a policy that observes)
 *
 * Of the rule's own lengths of time and those of [limits], the shorter ones: a
 * rule, which may be an included file's, does not loosen what the policy says
 * of everything.
 */
struct rules_times rules_times(const struct ruleset *rs, size_t number);

/*
 * The types of DNS questions that `types` can open, beside A and AAAA, which
 * every allowed name has: TXT, MX, SRV, NS, PTR, CAA, HTTPS and SVCB.
 * Return: its bit, or 0 for every other type.
 */
uint32_t rules_type_bit(uint16_t qtype);
/* "TXT" in any case; 0 for no type, or one that no rule can open. */
uint16_t rules_type_by_name(struct str name);
/* Of one bit. */
const char *rules_type_name(uint32_t bit);

/* --- asking ------------------------------------------------------------- */

struct rules_question {
	struct str host;		/* canonical, or empty: no name */
	const struct ip_addr *addr;	/* NULL: not resolved yet */
	uint16_t port;
	const struct ip_hosts *hosts;	/* this host's own; NULL: none */
	/*
	 * The wall clock, seconds since the epoch: rules that end before are
	 * no more.  0, not known: what an allow that ends permits is not.
	 */
	int64_t now;
	/*
	 * Nobody here will ever know the address: another proxy looks the name
	 * up.  What hangs on an address then permits nothing, and forbids
	 * whatever it may mean.
	 */
	bool unresolved;
};

struct rules_answer {
	enum reason reason;	/* REASON_ALLOWED, or why not */
	bool would_deny;	/* observe: allowed, though @reason says not */
	/*
	 * The deciding rule.  Of an address that is refused for its class, the
	 * allow that took name and port.  NULL: no rule.
	 */
	const char *rule;
	size_t rule_number;	/* its number; 0: no rule */
	const char *file;	/* where the rule stands; NULL: no rule */
	unsigned line;
	const struct rules_protocol *protocol;	/* NULL when no allow matched */
	enum ip_class klass;	/* of @addr, when given */
	/* The proxy that it goes through: a name, RULES_PARENT_NONE, or NULL
	 * where the policy does not say. */
	const char *parent;
};

/* May the flow go on, as far as it is known? Denied unless a rule says so. */
void rules_judge(const struct ruleset *rs, const struct rules_question *q,
		 struct rules_answer *ret);

static inline bool rules_passes(const struct rules_answer *a)
{
	return a->reason == REASON_ALLOWED || a->would_deny;
}

/* One request, as far as it can be seen. */
struct rules_request {
	struct rules_question flow;
	struct str method;
	struct str target;		/* path and query, as they are sent on */
	bool secure;			/* out of a TLS connection that is opened */
	/* A field of it renames method or path (X-HTTP-Method-Override). */
	bool renamed;
};

/*
 * rules_judge() of a flow and of the request in it: an allow with methods or
 * paths permits only what they take, and a deny with them shuts only that.
 * Where no request can be seen, rules_judge() refuses what hangs on one.
 */
void rules_judge_request(const struct ruleset *rs,
			 const struct rules_request *request,
			 struct rules_answer *ret);

enum rules_name_verdict {
	RULES_NAME_DENIED,	/* NXDOMAIN */
	RULES_NAME_ANCESTOR,	/* a name below is allowed: NODATA */
	RULES_NAME_ALLOWED,	/* on some port */
};

/*
 * @ret->reason is set as for rules_judge(); DNS does not know a port.  A deny
 * of some ports alone shuts a name only when no allowed port is left.  In
 * observe mode every name is RULES_NAME_ALLOWED, perhaps with would_deny.
 */
enum rules_name_verdict rules_judge_name(const struct ruleset *rs,
					 struct str host, int64_t now,
					 struct rules_answer *ret);

/*
 * The bits of the types that the policy opens for a name which it allows: those
 * of [dns], and of each allow that speaks of the name.  Of others: none.
 */
uint32_t rules_name_types(const struct ruleset *rs, struct str host,
			  int64_t now);

/*
 * How many leading bytes of a name that is let through are the asker's own
 * choice: those that the narrowest wildcard leaves open, dots between them
 * included; none where an allow has the whole name; all of them where nothing
 * but observing lets it through.
 */
unsigned rules_name_chosen(const struct ruleset *rs, struct str host,
			   int64_t now);

/*
 * Does @is say yes of the parent of some allow that opens the name on some port?
 * It is asked with what rules_answer.parent would be.
 */
typedef bool rules_parent_fn(void *arg, const char *parent);
bool rules_name_goes(const struct ruleset *rs, struct str host, int64_t now,
		     rules_parent_fn *is, void *arg);

/**
 * rules_judge_name_addr() - May an address that a name has be dialled at all?
 * @q:	the port is not looked at
 *
 * Allowed when rules_judge() would allow it on some port.  For answers to DNS
 * questions: what does not pass here is left out.
 */
void rules_judge_name_addr(const struct ruleset *rs,
			   const struct rules_question *q,
			   struct rules_answer *ret);

/**
 * rules_other_port() - A port on which the answer to @q would be yes
 * @ret:	that answer; undefined where there is none
 *
 * For who explains a refusal: it asks once for each range of ports there is.
 * Return: the port, or 0
 */
uint16_t rules_other_port(const struct ruleset *rs,
			  const struct rules_question *q,
			  struct rules_answer *ret);

#endif /* RULES_RULES_H */
