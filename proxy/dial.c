/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dial.c - from a permitted name or literal to a connected socket
 *
 * Theory of operation
 * ===================
 *
 * A and AAAA are asked at the same time.  Answers go into one queue per family;
 * addresses are taken from them in turn, the preferred family first (RFC 8305
 * 4), and each is judged by the rules at that moment, with the name, the port
 * and this host's own addresses as they are now.  What the rules refuse is
 * never tried, as a fallback neither; what they permit is connected to, that
 * very address.  There is no second lookup.  An address that the name was given
 * for earlier may go first, without waiting for an answer, or alone.
 *
 *	start ---> wait for an answer ---> race ---> finish
 *
 *   waiting begins   the preferred family has answered, or the other has and
 *   to race when     DIAL_RESOLUTION_MS have passed, or both have answered
 *   the next one     DIAL_NEXT_MS after the last, or at once when an attempt
 *   starts           fails
 *   it finishes      the first one connected (the others are closed), nothing
 *   when             is left to try, or DIAL_DEADLINE_MS have passed
 *
 * The reason for a failure is the most useful one: what the network said of an
 * address that was tried, before what policy said of one that was not, before
 * what the resolver said.  An answer with no address that may be dialled is
 * therefore a refusal by policy and never looks like a DNS failure.
 */
#include "base/clock.h"
#include "proxy/dial.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/mem.h"
#include "proxy/own_doors.h"
#include "proxy/sock.h"
#include "resolver/resolver.h"
#include "rules/host_name.h"

#define DIAL_MAGIC	0x4449414cu	/* "DIAL" */

enum { V6, V4, FAMILIES };

struct dial_queue {
	enum reason reason;	/* of the lookup, once it is over */
	bool over;		/* answered, failed, or never asked */
	unsigned n, next;
	struct resolver_lookup *lookup;
	struct ip_addr addr[RESOLVER_ADDRS_MAX];
};

struct dial_attempt {
	struct dial *dial;
	int fd;			/* -1: free, or over */
	struct ip_addr addr;
	struct event ev;
};

struct dial {
	uint32_t magic;
	struct dial_config c;
	struct host_name host;
	struct dial_queue queue[FAMILIES];
	unsigned turn;		/* family to take from next */
	bool racing;		/* past the wait for answers */
	bool permitted, finished;
	unsigned nattempts, nopen;
	enum reason net_reason;	/* best of the attempts; ALLOWED: none failed */
	enum reason policy_reason;	/* of the first refused address */
	struct ip_addr policy_addr;
	const char *policy_rule;
	struct dial_result result;
	struct event deadline;	/* of the whole; then runs the end */
	struct event next;	/* resolution delay, then attempt delay */
	struct dial_attempt attempt[DIAL_ATTEMPTS_MAX];
};

static int arm(struct event *ev, unsigned ms)
{
	const struct timeval tv = { ms / 1000, ms % 1000 * 1000 };

	return event_add(ev, &tv) ? -ENOMEM : 0;
}

static void limits_fill(struct dial_limits *l)
{
	if (!l->deadline_ms)
		l->deadline_ms = DIAL_DEADLINE_MS;
	if (!l->connect_ms)
		l->connect_ms = DIAL_CONNECT_MS;
	if (!l->next_ms)
		l->next_ms = DIAL_NEXT_MS;
	if (!l->resolution_ms)
		l->resolution_ms = DIAL_RESOLUTION_MS;
}

static void dial_release(struct dial *d)
{
	unsigned i;

	for (i = 0; i < FAMILIES; i++) {
		resolver_cancel(d->queue[i].lookup);
		d->queue[i].lookup = NULL;
	}
	for (i = 0; i < d->nattempts; i++) {
		if (d->attempt[i].fd < 0)
			continue;
		(void)!event_del(&d->attempt[i].ev);
		fd_closep(&d->attempt[i].fd);
	}
	d->nopen = 0;
	(void)!event_del(&d->next);
}

/* The end comes from the loop, so that no caller is surprised by it. */
static void dial_finish(struct dial *d, enum reason why)
{
	if (d->finished)
		return;
	d->finished = true;
	d->result.reason = why;
	dial_release(d);
	(void)!event_del(&d->deadline);
	event_active(&d->deadline, EV_TIMEOUT, 0);
}

/* --- why it failed -------------------------------------------------------------- */

/* The more a reason says about the origin itself, the more it is worth. */
static int net_rank(enum reason r)
{
	static const enum reason worth[] = {
		REASON_CONNECT_UNREACHABLE, REASON_CONNECT_FAILED,
		REASON_CONNECT_TIMEOUT, REASON_CONNECT_REFUSED,
		REASON_MEMORY_EXCEEDED, REASON_DESCRIPTORS_EXCEEDED,
	};
	unsigned i;

	for (i = 0; i < ARRAY_SIZE(worth); i++)
		if (worth[i] == r)
			return (int)i + 1;
	return 0;
}

static void net_failed(struct dial *d, enum reason r)
{
	if (net_rank(r) > net_rank(d->net_reason))
		d->net_reason = r;
}

static bool is_ours(enum reason r)
{
	return reason_info(r)->kind == REASON_LIMIT ||
	       reason_info(r)->kind == REASON_POLICY;
}

static enum reason dns_reason(const struct dial *d)
{
	enum reason a = d->queue[V4].reason, aaaa = d->queue[V6].reason;

	/* "No such name" is of the name; the rest may be one family's. */
	if (a == REASON_DNS_NXDOMAIN || aaaa == REASON_DNS_NXDOMAIN)
		return REASON_DNS_NXDOMAIN;
	/* Nobody was asked, since the run is over its budget. */
	if (is_ours(a) || is_ours(aaaa))
		return is_ours(a) ? a : aaaa;
	if (a == REASON_DNS_TLS_FAILED || aaaa == REASON_DNS_TLS_FAILED)
		return REASON_DNS_TLS_FAILED;
	if (a == REASON_DNS_TIMEOUT || aaaa == REASON_DNS_TIMEOUT)
		return REASON_DNS_TIMEOUT;
	if (a == REASON_DNS_FAILED || aaaa == REASON_DNS_FAILED)
		return REASON_DNS_FAILED;
	return REASON_DNS_NO_ADDRESS;
}

static void dial_fail(struct dial *d)
{
	if (d->net_reason != REASON_ALLOWED) {
		dial_finish(d, d->net_reason);
	} else if (d->policy_reason != REASON_ALLOWED) {
		d->result.dst.addr = d->policy_addr;
		d->result.rule = d->policy_rule;
		dial_finish(d, d->policy_reason);
	} else {
		dial_finish(d, dns_reason(d));
	}
}

/* --- attempts ------------------------------------------------------------------- */

static bool queue_left(const struct dial *d)
{
	return d->queue[V4].next < d->queue[V4].n ||
	       d->queue[V6].next < d->queue[V6].n;
}

static bool lookups_over(const struct dial *d)
{
	return d->queue[V4].over && d->queue[V6].over;
}

/* The next address in turn; families alternate while both have some. */
static const struct ip_addr *queue_take(struct dial *d)
{
	unsigned f = d->turn;

	if (d->queue[f].next == d->queue[f].n)
		f = f == V4 ? V6 : V4;
	if (d->queue[f].next == d->queue[f].n)
		return NULL;
	d->turn = f == V4 ? V6 : V4;
	return &d->queue[f].addr[d->queue[f].next++];
}

static bool address_passes(struct dial *d, const struct ip_addr *addr,
			   struct rules_answer *ret)
{
	const struct rules_question q = {
		.host = host_name_str(&d->host),
		.addr = addr,
		.port = d->c.port,
		.hosts = *d->c.hosts,
		.now = clock_wall_s(),
	};

	rules_judge(d->c.rules, &q, ret);
	/* Whatever the rules say, and where they merely observe. */
	if (own_doors_have(d->c.doors, q.hosts, addr, q.port))
		*ret = (struct rules_answer){ .reason = REASON_ADDRESS_SELF };
	if (rules_passes(ret))
		return true;
	if (d->policy_reason == REASON_ALLOWED) {
		d->policy_reason = ret->reason;
		d->policy_addr = *addr;
		d->policy_rule = ret->rule;
	}
	return false;
}

static void dial_connected(struct dial *d, struct dial_attempt *a)
{
	(void)!event_del(&a->ev);
	d->result.fd = fd_take(&a->fd);
	d->result.dst.addr = a->addr;
	dial_finish(d, REASON_ALLOWED);
}

static void attempt_over(struct dial_attempt *a, enum reason why)
{
	struct dial *d = a->dial;

	(void)!event_del(&a->ev);
	fd_closep(&a->fd);
	d->nopen--;
	net_failed(d, why);
}

static void dial_next(struct dial *d);

static void attempt_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dial_attempt *a = arg;
	struct dial *d = a->dial;
	int err = 0;
	socklen_t n = sizeof(err);

	REQUIRE(d->magic == DIAL_MAGIC);
	if (what & EV_TIMEOUT)
		err = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &n) == -1)
		err = errno;
	if (err == 0) {
		dial_connected(d, a);
		return;
	}
	attempt_over(a, sock_connect_reason(err));
	dial_next(d);
}

/* Return: 0 when it is under way, else the errno of an attempt that failed
 * at once (a family without a route). */
static int attempt_start(struct dial *d, const struct ip_addr *addr)
{
	struct dial_attempt *a = &d->attempt[d->nattempts];
	const struct ip_endpoint dst = { *addr, d->c.port };
	struct sockaddr_storage ss;
	socklen_t n = ip_endpoint_to_sockaddr(&dst, &ss);
	CLEANUP(fd_closep) int fd = -1;

	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    IPPROTO_TCP);
	if (fd == -1)
		return errno;
	sock_tune(fd);
	if (connect(fd, (const struct sockaddr *)&ss, n) == -1 &&
	    errno != EINPROGRESS)
		return errno;
	/* One that connected at once is writable at once. */
	if (event_assign(&a->ev, d->c.base, fd, EV_WRITE, attempt_cb, a) ||
	    arm(&a->ev, d->c.limits.connect_ms))
		return ENOMEM;
	a->dial = d;
	a->addr = *addr;
	a->fd = fd_take(&fd);
	d->nattempts++;
	d->nopen++;
	return 0;
}

/* Ask the caller once, when the first address is known. */
static bool dial_permit(struct dial *d, const struct ip_addr *addr,
			const struct rules_answer *answer)
{
	const struct ip_endpoint dst = { *addr, d->c.port };
	enum reason why;

	if (d->permitted)
		return true;
	why = d->c.permit(d->c.arg, &dst, answer);
	if (why != REASON_ALLOWED) {
		dial_finish(d, why);
		return false;
	}
	d->permitted = true;
	d->result.permitted = true;
	return true;
}

/* Begin the next attempt that gets under way, or see that it is over. */
static void dial_next(struct dial *d)
{
	const struct ip_addr *addr;
	struct rules_answer answer;
	int err;

	while (d->nattempts < DIAL_ATTEMPTS_MAX && (addr = queue_take(d))) {
		if (!address_passes(d, addr, &answer))
			continue;
		if (!dial_permit(d, addr, &answer))
			return;
		d->result.dst.addr = *addr;
		err = attempt_start(d, addr);
		if (err == 0) {
			(void)!arm(&d->next, d->c.limits.next_ms);
			return;
		}
		net_failed(d, sock_connect_reason(err));
	}
	(void)!event_del(&d->next);
	if (d->nopen == 0 &&
	    (lookups_over(d) || d->nattempts == DIAL_ATTEMPTS_MAX))
		dial_fail(d);
}

static void next_cb(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct dial *d = arg;

	REQUIRE(d->magic == DIAL_MAGIC);
	d->racing = true;
	dial_next(d);
}

static void deadline_cb(evutil_socket_t fd UNUSED, short what UNUSED,
			void *arg)
{
	struct dial *d = arg;
	struct dial_result result;
	dial_fn *fn = d->c.fn;
	void *fn_arg = d->c.arg;

	REQUIRE(d->magic == DIAL_MAGIC);
	if (!d->finished) {
		if (d->nopen)
			net_failed(d, REASON_CONNECT_TIMEOUT);
		else if (!d->queue[V4].over)
			d->queue[V4].reason = REASON_DNS_TIMEOUT;
		else if (!d->queue[V6].over)
			d->queue[V6].reason = REASON_DNS_TIMEOUT;
		dial_fail(d);
	}
	result = d->result;
	d->result.fd = -1;
	dial_cancel(d);
	fn(fn_arg, &result);
}

/* --- answers -------------------------------------------------------------------- */

static void queue_fill(struct dial *d, unsigned f,
		       const struct resolver_answer *answer)
{
	struct dial_queue *q = &d->queue[f];
	size_t i;

	q->over = true;
	q->lookup = NULL;
	q->reason = answer->reason;
	for (i = 0; i < answer->n && q->n < RESOLVER_ADDRS_MAX; i++) {
		q->addr[q->n] = ip_addr_unmapped(&answer->addr[i]);
		if (d->c.use != DIAL_ADDR_FIRST ||
		    !ip_addr_eq(&q->addr[q->n], &d->c.addr))
			q->n++;
	}
	if (d->c.use != DIAL_ADDR_IF_ITS_OWN)
		return;
	/* The address that the program asked for goes first. */
	for (i = 0; i < q->n; i++) {
		struct ip_addr first = q->addr[0];

		if (!ip_addr_eq(&q->addr[i], &d->c.addr))
			continue;
		q->addr[0] = q->addr[i];
		q->addr[i] = first;
		break;
	}
}

/* Is it time to begin, or to go on, now that an answer has come? */
static void dial_on_answer(struct dial *d, unsigned f)
{
	bool preferred = f == d->turn;

	if (d->racing) {
		/* With attempts under way the timer paces; without, no wait. */
		if (d->nopen == 0)
			dial_next(d);
		else if (!event_pending(&d->next, EV_TIMEOUT, NULL))
			(void)!arm(&d->next, d->c.limits.next_ms);
		return;
	}
	if (lookups_over(d) || (preferred && queue_left(d))) {
		d->racing = true;
		dial_next(d);
	} else if (queue_left(d)) {
		(void)!arm(&d->next, d->c.limits.resolution_ms);
	}
}

static void dial_on_a(void *arg, const struct resolver_answer *answer)
{
	struct dial *d = arg;

	REQUIRE(d->magic == DIAL_MAGIC);
	queue_fill(d, V4, answer);
	dial_on_answer(d, V4);
}

static void dial_on_aaaa(void *arg, const struct resolver_answer *answer)
{
	struct dial *d = arg;

	REQUIRE(d->magic == DIAL_MAGIC);
	queue_fill(d, V6, answer);
	dial_on_answer(d, V6);
}

static void dial_lookup(struct dial *d, unsigned f, enum resolver_type type,
			resolver_fn *fn)
{
	struct resolver_answer now = { .reason = REASON_DNS_FAILED };
	int r = resolver_lookup(d->c.resolver, &d->c.asker,
				host_name_str(&d->host), type, fn, d,
				&d->queue[f].lookup, &now);

	if (r == 0)
		return;
	if (r < 0)
		now = (struct resolver_answer){ .reason = REASON_DNS_FAILED };
	queue_fill(d, f, &now);
}

static void dial_lookup_all(struct dial *d)
{
	if (d->c.v4_only) {
		d->queue[V6].over = true;
		d->queue[V6].reason = REASON_DNS_NO_ADDRESS;
	} else {
		dial_lookup(d, V6, RESOLVER_AAAA, dial_on_aaaa);
	}
	dial_lookup(d, V4, RESOLVER_A, dial_on_a);
}

static void dial_addr(struct dial *d)
{
	unsigned f = d->c.addr.family == IP_V4 ? V4 : V6;

	d->queue[f].addr[0] = d->c.addr;
	d->queue[f].n = 1;
}

/* Names that lead inside are not asked for because a policy merely observes. */
static bool is_hidden(const struct dial *d)
{
	struct str host = host_name_str(&d->host);
	struct rules_answer answer;

	return resolver_hides(host) &&
	       rules_judge_name(d->c.rules, host, clock_wall_s(), &answer) ==
		       RULES_NAME_ALLOWED && answer.would_deny;
}

static void dial_nowhere(struct dial *d)
{
	d->policy_reason = REASON_HOST_NOT_ALLOWED;
	d->queue[V4].over = d->queue[V6].over = true;
}

/* Whom to try, or whom to ask. */
static void dial_fill(struct dial *d)
{
	bool alone = d->host.n == 0 || d->c.use == DIAL_ADDR_ALONE;

	if (d->host.n > 0 && is_hidden(d)) {
		dial_nowhere(d);
		return;
	}
	if (alone || d->c.use == DIAL_ADDR_FIRST)
		dial_addr(d);
	if (alone)
		d->queue[V4].over = d->queue[V6].over = true;
	else
		dial_lookup_all(d);
}

int dial_start(const struct dial_config *config, struct dial **ret)
{
	struct dial *d = mem_new(sizeof(*d));

	if (!d)
		return -ENOMEM;
	REQUIRE(config->host.n <= HOST_NAME_MAX_LEN);
	d->magic = DIAL_MAGIC;
	d->c = *config;
	d->c.host = STR_NONE;
	limits_fill(&d->c.limits);
	d->host.n = (uint8_t)config->host.n;
	if (config->host.n)
		memcpy(d->host.p, config->host.p, config->host.n);
	d->turn = config->prefer == IP_V4 ? V4 : V6;
	d->result.fd = -1;
	d->result.dst.port = config->port;
	if (event_assign(&d->deadline, d->c.base, -1, 0, deadline_cb, d) ||
	    event_assign(&d->next, d->c.base, -1, 0, next_cb, d) ||
	    arm(&d->deadline, d->c.limits.deadline_ms)) {
		mem_free(d);
		return -ENOMEM;
	}
	dial_fill(d);
	/* What the cache knew is like an answer of the preferred family. */
	if (lookups_over(d) || d->queue[d->turn].n) {
		d->racing = true;
		dial_next(d);
	} else if (queue_left(d)) {
		(void)!arm(&d->next, d->c.limits.resolution_ms);
	}
	*ret = d;
	return 0;
}

/* Connected, and the end only waits for its turn of the loop. */
static void dial_rejudge_result(struct dial *d)
{
	struct rules_answer answer;

	d->result.rule = NULL;
	if (d->result.fd < 0 ||
	    address_passes(d, &d->result.dst.addr, &answer))
		return;
	fd_closep(&d->result.fd);
	d->result.reason = answer.reason;
	d->result.rule = answer.rule;
}

void dial_set_rules(struct dial *d, const struct ruleset *rules)
{
	struct rules_answer answer;
	bool gave_up = false;
	unsigned i;

	REQUIRE(d->magic == DIAL_MAGIC);
	d->c.rules = rules;
	d->policy_rule = NULL;		/* it was the old rules' */
	if (d->finished) {
		dial_rejudge_result(d);
		return;
	}
	for (i = 0; i < d->nattempts; i++) {
		struct dial_attempt *a = &d->attempt[i];

		if (a->fd < 0 || address_passes(d, &a->addr, &answer))
			continue;
		(void)!event_del(&a->ev);
		fd_closep(&a->fd);
		d->nopen--;
		gave_up = true;
	}
	if (gave_up)
		dial_next(d);
}

void dial_cancel(struct dial *d)
{
	if (!d)
		return;
	REQUIRE(d->magic == DIAL_MAGIC);
	dial_release(d);
	(void)!event_del(&d->deadline);
	fd_closep(&d->result.fd);
	d->magic = 0;
	mem_free(d);
}
