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
 * The rule that permits an address may send it through a parent proxy
 * (dial_way.c); the attempt is then the parent's to make (parent_dial.c), is raced
 * like any other, and has no time of its own but the dial's.  Where the parent
 * looks names up, there is one attempt, with the name, and no lookup.
 *
 * Where sockets are to bear a mark, they come from another process (marks.c),
 * and an attempt may have to wait for one; the race and its deadlines go on.
 *
 * The reason for a failure is the most useful one: dial_why.c.
 */
#include "proxy/dial_own.h"

#include <errno.h>
#include <event2/event.h>

#include "base/fd.h"
#include "base/mem.h"
#include "proxy/parents.h"

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
	for (i = 0; i < d->nattempts; i++)
		dial_attempt_close(d->attempt[i]);
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

static void dial_fail(struct dial *d)
{
	dial_finish(d, dial_why(d));
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

void dial_connected(struct dial *d, const struct dial_attempt *a)
{
	d->result.dst.addr = a->addr;
	d->result.way = a->way;
	dial_finish(d, REASON_ALLOWED);
}

/* Ask the caller once, when the first address is known. */
static bool dial_permit(struct dial *d, const struct ip_addr *addr,
			const struct dial_way *way,
			const struct rules_answer *answer)
{
	struct ip_endpoint dst = { .port = d->c.port };
	enum reason why;

	if (d->permitted || !d->c.permit)
		return true;
	if (addr)
		dst.addr = *addr;
	why = d->c.permit(d->c.arg, &dst, way, answer);
	if (why != REASON_ALLOWED) {
		dial_finish(d, why);
		return false;
	}
	d->permitted = true;
	d->result.permitted = true;
	return true;
}

/* @addr: as of attempt_start().  true: it is under way, or all is over. */
static bool dial_try(struct dial *d, const struct ip_addr *addr)
{
	struct rules_answer answer;
	struct dial_way way;
	enum reason why;

	if (!dial_way_of(d, addr, &answer, &way))
		return false;
	if (!dial_permit(d, addr, &way, &answer))
		return true;
	if (addr)
		d->result.dst.addr = *addr;
	d->result.way = way;
	why = dial_attempt_start(d, addr, &way);
	if (why == REASON_ALLOWED)
		return true;
	dial_why_failed(d, why, 0);
	return false;
}

/* A parent has a connection to make, too, before it can say anything. */
static unsigned next_delay(const struct dial *d)
{
	return d->c.limits.next_ms * (d->result.way.parent ? DIAL_PARENT_NEXT :
							     1);
}

void dial_next(struct dial *d)
{
	const struct ip_addr *addr;

	while (d->nattempts < DIAL_ATTEMPTS_MAX && (addr = queue_take(d))) {
		if (!dial_try(d, addr))
			continue;
		if (!d->finished)
			(void)!dial_arm(&d->next, next_delay(d));
		return;
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

static void dial_out_of_time(struct dial *d)
{
	unsigned i;

	for (i = 0; i < d->nattempts; i++) {
		const struct dial_attempt *a = d->attempt[i];

		if (a->via)
			dial_why_failed(d, REASON_PARENT_TIMEOUT, 0);
		else if (a->half)
			dial_why_failed(d, REASON_CONNECT_TIMEOUT, 0);
		else if (a->wait.queue)
			dial_why_failed(d, REASON_INTERNAL_ERROR, 0);
	}
	if (d->nopen > 0)
		return;
	if (!d->queue[V4].over)
		d->queue[V4].reason = REASON_DNS_TIMEOUT;
	else if (!d->queue[V6].over)
		d->queue[V6].reason = REASON_DNS_TIMEOUT;
}

/* In the form that was asked for. */
static void result_form(struct dial *d)
{
	struct dial_result *r = &d->result;

	if (!d->c.watched && r->half)
		r->fd = half_takep(&r->half);
	if (!d->c.watched || r->fd < 0)
		return;
	r->half = half_new(d->c.halves, fd_take(&r->fd), half_ignore,
			   NULL);
	if (!r->half)
		r->reason = REASON_MEMORY_EXCEEDED;
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
		dial_out_of_time(d);
		dial_fail(d);
	}
	result_form(d);
	result = d->result;
	d->result.fd = -1;
	d->result.half = NULL;
	dial_cancel(d);
	fn(fn_arg, &result);
}

/* --- answers -------------------------------------------------------------------- */

/* Room for @n more. */
static bool queue_grow(struct dial_queue *q, size_t n)
{
	struct ip_addr *addr;

	if (n == 0)
		return true;
	addr = mem_grow(q->addr, q->n + n, sizeof(*addr));
	if (!addr)
		return false;
	q->addr = addr;
	return true;
}

static void queue_fill(struct dial *d, unsigned f,
		       const struct resolver_answer *answer)
{
	struct dial_queue *q = &d->queue[f];
	size_t i, n = MIN(answer->n, (size_t)RESOLVER_ADDRS_MAX);

	q->over = true;
	q->lookup = NULL;
	q->reason = answer->reason;
	if (!queue_grow(q, n)) {
		q->reason = REASON_MEMORY_EXCEEDED;
		return;
	}
	for (i = 0; i < n; i++) {
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
			(void)!dial_arm(&d->next, next_delay(d));
		return;
	}
	if (lookups_over(d) || (preferred && queue_left(d))) {
		d->racing = true;
		dial_next(d);
	} else if (queue_left(d)) {
		(void)!dial_arm(&d->next, d->c.limits.resolution_ms);
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

	if (!queue_grow(&d->queue[f], 1)) {
		d->queue[f].reason = REASON_MEMORY_EXCEEDED;
		return;
	}
	d->queue[f].addr[0] = d->c.addr;
	d->queue[f].n = 1;
}

static void dial_nowhere(struct dial *d)
{
	dial_why_refused(d, REASON_HOST_NOT_ALLOWED, NULL, NULL);
	d->queue[V4].over = d->queue[V6].over = true;
}

/* One attempt, and none but the parent asks for an address. */
static void dial_by_name(struct dial *d)
{
	enum reason why = resolver_charge(&d->c.asker, host_name_str(&d->host));

	d->queue[V4].over = d->queue[V6].over = true;
	d->queue[V4].reason = d->queue[V6].reason = why;
	if (why == REASON_ALLOWED)
		(void)!dial_try(d, NULL);
}

/* Whom to try, or whom to ask. */
static void dial_fill(struct dial *d)
{
	bool alone = d->host.n == 0 || d->c.use == DIAL_ADDR_ALONE;

	if (d->host.n > 0 && dial_is_hidden(d)) {
		dial_nowhere(d);
		return;
	}
	if (!alone && dial_goes_by_name(d)) {
		dial_by_name(d);
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
	    dial_arm(&d->deadline, d->c.limits.deadline_ms)) {
		mem_free(d);
		return -ENOMEM;
	}
	dial_fill(d);
	/* What the cache knew is like an answer of the preferred family. */
	if (lookups_over(d) || d->queue[d->turn].n) {
		d->racing = true;
		dial_next(d);
	} else if (queue_left(d)) {
		(void)!dial_arm(&d->next, d->c.limits.resolution_ms);
	}
	*ret = d;
	return 0;
}

/* Connected, and the end only waits for its turn of the loop. */
static void dial_rejudge_result(struct dial *d)
{
	const struct ip_addr *addr = d->result.way.there ? NULL :
							    &d->result.dst.addr;
	struct rules_answer answer;
	struct dial_way way;
	bool passes;

	d->result.rule = NULL;
	if (d->result.fd < 0 && !d->result.half)
		return;
	passes = dial_way_of(d, addr, &answer, &way);
	if (passes && way.parent == d->result.way.parent)
		return;
	half_closep(&d->result.half, false);
	fd_closep(&d->result.fd);
	d->result.reason = passes ? REASON_POLICY_RELOAD : answer.reason;
	d->result.rule = answer.rule;
}

/* It goes on under the rules as they are now, and the way that it went. */
static bool attempt_passes(struct dial *d, const struct dial_attempt *a)
{
	const struct ip_addr *addr = a->way.there ? NULL : &a->addr;
	struct rules_answer answer;
	struct dial_way way;

	if (!dial_way_of(d, addr, &answer, &way))
		return false;
	if (way.parent == a->way.parent)
		return true;
	dial_why_refused(d, REASON_POLICY_RELOAD, addr, answer.rule);
	return false;
}

void dial_set_rules(struct dial *d, const struct ruleset *rules)
{
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
		struct dial_attempt *a = d->attempt[i];

		if (!dial_attempt_is_open(a) || attempt_passes(d, a))
			continue;
		dial_attempt_close(a);
		d->nopen--;
		gave_up = true;
	}
	if (gave_up)
		dial_next(d);
}

void dial_cancel(struct dial *d)
{
	unsigned i;

	if (!d)
		return;
	REQUIRE(d->magic == DIAL_MAGIC);
	dial_release(d);
	(void)!event_del(&d->deadline);
	half_closep(&d->result.half, false);
	fd_closep(&d->result.fd);
	for (i = 0; i < d->nattempts; i++)
		mem_free(d->attempt[i]);
	mem_free(d->queue[V4].addr);
	mem_free(d->queue[V6].addr);
	d->magic = 0;
	mem_free(d);
}
