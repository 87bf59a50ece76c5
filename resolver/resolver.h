/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resolver.h - names to addresses: the upstream side, and the sandbox's door
 *
 * A resolver belongs to one worker: c-ares as transport, a cache, and lookups
 * in flight that are shared by whoever asks the same.  It knows no policy: it
 * is asked only for names that rules/ allowed.  A dns_door is the other side:
 * the four port-53 sockets of one sandbox, policy first, answers synthetic or as
 * the world gives them.
 */
#ifndef RESOLVER_RESOLVER_H
#define RESOLVER_RESOLVER_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/ip_class.h"
#include "base/reason.h"
#include "base/str.h"

struct event_base;
struct ruleset;
struct audit_sink;
struct mem_account;
struct name_map;
struct name_pins;

/* --- upstream ------------------------------------------------------------- */

#define RESOLVER_ADDRS_MAX	64	/* of one answer; the rest is dropped */
#define RESOLVER_SERVERS_MAX	8

/* These, or a type that rules_type_bit() knows. */
enum resolver_type { RESOLVER_A = 1, RESOLVER_AAAA = 28 };

struct resolver_answer {
	enum reason reason;	/* ALLOWED: found; DNS_NXDOMAIN, DNS_NO_ADDRESS (the
				 * name exists, this type does not), DNS_FAILED,
				 * DNS_TIMEOUT, DNS_TLS_FAILED; of kind LIMIT or
				 * POLICY: over the run's budget, nobody was asked;
				 * or ALIAS_NOT_ALLOWED */
	const struct ip_addr *addr;	/* borrowed for the call */
	size_t n;
	struct str rdata;	/* of another type; borrowed: dns_rdata_next() */
	uint32_t ttl_s;		/* smallest of the chain, clamped */
	bool renew;		/* of the cache alone: it should be asked anew */
};

struct resolver;
struct resolver_lookup;
struct dns_budget;

/* Who asks. */
struct resolver_asker {
	uint64_t tenant;	/* equal for those who may share lookups, e.g. a
				 * hash of run and policy digest */
	struct dns_budget *budget;	/* the run's; outlives its lookups.  NULL:
					 * nothing is charged */
};

/* Called once, from the worker's loop; never after resolver_cancel(), never
 * inside resolver_lookup() or resolver_start().  May start and cancel lookups. */
typedef void resolver_fn(void *arg, const struct resolver_answer *answer);

NODISCARD int resolver_new(struct event_base *base, struct resolver **ret);
void resolver_free(struct resolver *r);	/* pending callbacks are dropped */

struct resolver_server {
	struct ip_endpoint at;
	char zone[IF_NAMESIZE];	/* interface of a link-local address, or "" */
	bool tls;		/* DNS over TLS (RFC 7858), and nothing else */
	char tls_name[254];	/* of its certificate; "": it has the address */
};

/* What DNS over TLS needs: OpenSSL, and who may vouch for servers. */
struct resolver_tls;

struct resolver_servers {
	size_t n;
	struct resolver_server server[RESOLVER_SERVERS_MAX];
	const struct resolver_tls *tls;	/* borrowed; NULL: no server has tls */
};

#define RESOLVER_TLS_WHY_SIZE	512

/**
 * resolver_tls_new() - Load all that is needed, from files too
 * @ca_file:	certificates (PEM) of those who may vouch for servers; NULL: the
 *		system's
 * @why:	on failure, what is wrong
 *
 * May be shared by resolvers of several threads, and outlives them.
 */
NODISCARD int resolver_tls_new(const char *ca_file, struct resolver_tls **ret,
			       char why[RESOLVER_TLS_WHY_SIZE]);
void resolver_tls_free(struct resolver_tls *tls);

/**
 * resolver_set_servers() - The upstreams, in the order of preference
 *
 * None at all is fine: every lookup then fails with DNS_FAILED.  What was asked
 * of an old server may still be answered by it; whatever is asked from now on,
 * further tries too, goes to the new ones.  The cache is emptied.
 * Return: 0, or -EINVAL (a server without family or port, or with TLS where
 * there is none; nothing changed)
 */
NODISCARD int resolver_set_servers(struct resolver *r,
				   const struct resolver_servers *servers);

/**
 * resolver_parse_server() - "192.0.2.53", "[2001:db8::53]:5353",
 *                           "fe80::1%eth0", "tls://192.0.2.53#dns.example.net":
 *                           a server as people write it
 * @ret_why:	on failure, what is wrong, as the end of a sentence
 *
 * Refused is what is no server's address (unspecified, multicast), and what
 * sandboxes are given as addresses: asked there, we would ask ourselves.
 * Return: 0, -EINVAL, or -ELOOP for such an address of our own
 */
NODISCARD int resolver_parse_server(struct str text,
				    struct resolver_server *ret,
				    const char **ret_why);

/* Is one of them asked by TLS? */
bool resolver_want_tls(const struct resolver_servers *servers);

struct resolver_conf_faults {
	unsigned bad;		/* nameserver lines without a usable address */
	unsigned self;		/* those that lead back to us */
};

/**
 * resolver_parse_conf() - The nameserver lines of a resolv.conf text
 *
 * search, domain, sortlist and options are passed over; of servers beyond
 * RESOLVER_SERVERS_MAX, and of one that is named twice, nothing is kept.
 */
void resolver_parse_conf(struct str text, struct resolver_servers *ret,
			 struct resolver_conf_faults *ret_faults);

/**
 * resolver_lookup() - Records of one type for a canonical name
 * @ret_now:	set when the return value is 1; borrowed until the next call
 * @ret:	handle to cancel with; set when the return value is 0
 * Return: 1: answered from the cache, or over the budget, @fn is not called;
 *         0: @fn will be called;
 *         or -ENOMEM, -EAGAIN (too many in flight), -EINVAL (not canonical)
 */
NODISCARD int resolver_lookup(struct resolver *r,
			      const struct resolver_asker *asker,
			      struct str name, enum resolver_type type,
			      resolver_fn *fn, void *arg,
			      struct resolver_lookup **ret,
			      struct resolver_answer *ret_now);

struct resolver_key {
	struct resolver_asker asker;
	struct str name;
	enum resolver_type type;
};

/* The two halves of it, for who does not know yet whether to wait: an answer of
 * the cache, borrowed until the next call; and a lookup that is waited for, with
 * -EDQUOT where the budget has something against it: dns_budget_why() says what. */
bool resolver_cached(struct resolver *r, const struct resolver_key *key,
		     struct resolver_answer *ret);
NODISCARD int resolver_start(struct resolver *r,
			     const struct resolver_key *key, resolver_fn *fn,
			     void *arg, struct resolver_lookup **ret);
void resolver_cancel(struct resolver_lookup *l);	/* NULL is fine */

/* The same, since it must not be asked for any more: when nobody else waits for it,
 * nothing more is sent. */
void resolver_abandon(struct resolver_lookup *l);

/**
 * resolver_forget() - Nobody will ask in the name of @tenant any more
 *
 * What somebody waits for is still asked for as long as he does; else nothing
 * more is sent, and nothing that comes is kept.
 */
void resolver_forget(struct resolver *r, uint64_t tenant);

/* Is @name one that the world is asked about only where a rule allows it, and
 * never because a policy merely observes? */
bool resolver_hides(struct str name);

/* --- what a run may tell the world by names ----------------------------------- */

/**
 * dns_budget_new() - One for a run, shared by every way in that leads to lookups
 * @rules:	the policy, whose limits hold; it takes a reference of its own
 */
NODISCARD int dns_budget_new(struct ruleset *rules, struct dns_budget **ret);
/* The same budget for another thread: with the rules that @of has by now, and of
 * what is spent by any of them. */
NODISCARD int dns_budget_share(const struct dns_budget *of,
			       struct dns_budget **ret);
/* Another policy brings other limits; what was spent stays spent. */
void dns_budget_set_rules(struct dns_budget *b, struct ruleset *rules);
void dns_budget_free(struct dns_budget *b);	/* NULL is fine */
/*
 * How often the run was over its budget.  Honest programs come to it by
 * mistake or not at all, so a count that rises tells of a tunnel: this is what
 * a quarantine of runs is to go by.
 */
uint64_t dns_budget_refused(const struct dns_budget *b);
/**
 * resolver_charge() - A name leaves by another way than a lookup
 *
 * To a proxy that looks it up: that tells the world as much.
 * Return: ALLOWED, or why the run may not say it
 */
enum reason resolver_charge(const struct resolver_asker *asker,
			    struct str name);
/* What a run may ask where its policy does not say: a second, and at once. */
#define RESOLVER_QUERIES	50
#define RESOLVER_QUERIES_BURST	2000
/* What a run has spent, for who takes it over; but for the names. */
struct dns_budget_spent {
	uint8_t key[16];		/* that the names are hashed with */
	uint64_t label_bytes, refused;
	uint64_t tokens_m;		/* thousandths */
	int64_t filled_ms;		/* when that was right; -1: never */
};

/* One name that has left, as a keyed hash. */
typedef int dns_budget_fn(void *arg, uint64_t name);

/* @fn: 0 to go on, or an error to stop with; called under the budget's lock.
 * Return: 0 or what @fn returned */
NODISCARD int dns_budget_tell(const struct dns_budget *b,
			      struct dns_budget_spent *ret, dns_budget_fn *fn,
			      void *arg);
/* The same into a budget of which nothing is spent: 0, or -EINVAL where
 * something is; and each name of it. */
NODISCARD int dns_budget_resume(struct dns_budget *b,
				const struct dns_budget_spent *spent);
/* 0, -EINVAL for what is no such hash, or -ENOMEM */
NODISCARD int dns_budget_resume_name(struct dns_budget *b, uint64_t name);
/* Why the last question that it refused was. */
enum reason dns_budget_why(const struct dns_budget *b);

/* --- the sandbox's door ------------------------------------------------------- */

/* @at: our own end, as far as it is known */
typedef void dns_stranger_fn(void *arg, const struct ip_endpoint *src,
			     const struct ip_endpoint *at, bool tcp);

/* What becomes of a question, before anybody looks at it. */
enum dns_share {
	DNS_SHARE_OK,
	DNS_SHARE_SLIP,		/* UDP: "ask by TCP", and nothing else */
	DNS_SHARE_REFUSE,	/* REFUSED, with @ret_why */
	DNS_SHARE_DROP,
};

/* May @src have an answer more?  Whoever says no keeps the record of it.
 * @asked:	our own address, as the client sees it */
typedef enum dns_share dns_share_fn(void *arg, const struct ip_endpoint *src,
				    const struct ip_addr *asked, bool tcp,
				    enum reason *ret_why);

struct dns_door_config {
	struct event_base *base;
	struct resolver *resolver;
	struct ruleset *rules;		/* the door takes a reference of its own */
	struct name_map *names;		/* borrowed: outlives the door */
	struct name_pins *pins;		/* the same */
	struct audit_sink *sink;	/* borrowed: outlives the door */
	const struct ip_hosts *const *hosts;	/* the worker's current snapshot */
	uint64_t tenant;
	struct dns_budget *budget;	/* borrowed: outlives the door; or NULL */
	struct mem_account *owner;	/* the same: what the door holds is its */
	/* Its sockets, of any families: taken, on failure too. */
	const int *udp, *tcp;
	size_t nudp, ntcp;
	const char *hostname;		/* the sandbox's own; answered here; or "" */
	bool real;			/* answers, where the policy does not say */
	/* Who may ask; NULL: whoever can.  Others are passed over: they are told
	 * of, and hear nothing. */
	const struct ip_nets *clients;
	dns_stranger_fn *on_stranger;
	dns_share_fn *share;		/* NULL: whatever one asks */
	void *arg;
	/*
	 * Its share of the worker's time, as the owner deals it out.  NULL: all
	 * that there is.  @due: there is work: dns_door_turn() is to be called
	 * once, at once or when the share allows.  @spend: work was done, as
	 * much as @questions that are answered at once; false: the share is
	 * used up, what is left is for another turn.
	 */
	void (*due)(void *arg);
	bool (*spend)(void *arg, unsigned questions);
	/*
	 * Is the name for somebody else to look up, as these rules have it?
	 * Then nobody is asked for its addresses: it is given one that stands
	 * for it at once, whether it exists or not.  NULL: no name is.
	 */
	bool (*elsewhere)(void *arg, const struct ruleset *rules,
			  struct str name);
	void *elsewhere_arg;
	const char *nonce;		/* "<nonce>.penstock.invalid" is answered with
					 * DNS_SELF_TEST_A / _AAAA; marked internal */
};

#define DNS_SELF_TEST_SUFFIX	".penstock.invalid"
#define DNS_SELF_TEST_A		"192.0.2.1"
#define DNS_SELF_TEST_AAAA	"2001:db8:0:ffff::1"

struct dns_door;

NODISCARD int dns_door_new(const struct dns_door_config *config,
			   struct dns_door **ret);
/* As dns_door_config.due asked for it. */
void dns_door_turn(struct dns_door *d);
/*
 * Questions that repeat others within seconds are counted, and told of in one
 * record: write it now.  To be called before the records' policy changes.
 */
void dns_door_flush_records(struct dns_door *d);
/**
 * dns_door_set_rules() - Another policy from now on
 * @rules:	the door takes a reference of its own
 * @tenant:	its key, so that nothing looked up for the old one is found
 *
 * Questions that wait for the world are judged again at once, and those that
 * are denied now are answered so; the others go on.  Also for the rules that
 * it has, when they say something else by now.
 */
void dns_door_set_rules(struct dns_door *d, struct ruleset *rules,
			uint64_t tenant);
/*
 * Hear nothing more for a while: what comes waits in the sockets.  Questions
 * that wait for the world go on, and are answered.
 */
void dns_door_freeze(struct dns_door *d);
void dns_door_thaw(struct dns_door *d);
/* How many questions wait for the world. */
unsigned dns_door_waiting(const struct dns_door *d);
/* Frozen: drop those, each recorded, so that nothing is given out any more. */
void dns_door_forsake(struct dns_door *d);
/* Another place for its records: borrowed, outlives the door.  What is counted
 * goes to the old one first. */
void dns_door_set_sink(struct dns_door *d, struct audit_sink *sink);
/* Closes the sockets at once; pending questions are dropped, each recorded. */
void dns_door_free(struct dns_door *d);

#endif /* RESOLVER_RESOLVER_H */
