/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_upstream.c - one question to the configured servers, until one answers
 *
 * Theory of operation
 * ===================
 * A transport (dns_chan.c, dns_tls.c) takes one packet to one server and says
 * what came of it.  Which server is asked, how often and for how long is decided here, as
 * is what is believed.
 *
 * An answer with the right id that does not repeat the question exactly, or is
 * malformed, is not believed: the same server is asked again over TCP, where
 * nobody can speak in its place and the case need not be kept.
 *
 *   UDP attempt --answer--> done
 *     | not believed -> TCP attempt on the same server --answer--> done
 *     | time-out, error, SERVFAIL, REFUSED, referral ... -> the next server
 *   all servers tried, DNS_ROUNDS times, or too late -> done, with the last fault
 *
 * A server with TLS is asked by TLS and in no other way, whatever fails.
 *
 * What is learnt of servers (dns_health.c): one that timed out, could not be
 * reached, or failed a question that another then answered, is asked after the
 * others for a while; so a name that no server can resolve says nothing of
 * them.  One for which TCP told that the answer by UDP was not its own is
 * asked by TCP alone for a while: a flood of forged answers then meets no
 * question any more.
 *
 *	state	left by				to
 *	NEW	run: sent			ASKED, BLOCKED
 *	ASKED	the transport: heard or failed	HEARD
 *	HEARD	run: another attempt		ASKED, BLOCKED; else ended
 *	BLOCKED	something else was heard	ASKED; else ended
 *	any	the deadline, or cancelled	ended; ASKED: told, and freed when
 *						the transport lets go of it
 *
 * A transport may call back from inside a call to it.  job_on_sent() only notes
 * what came and puts its job on the ready list; an event of our own takes it
 * from there, with no library's frame below it.
 */
#include "resolver/dns_upstream.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/time.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/list.h"
#include "base/mem.h"
#include "resolver/dns_chan.h"
#include "resolver/dns_health.h"
#include "resolver/dns_tls.h"

#define JOB_MAGIC	0x6a6f6221u

enum job_state { JOB_NEW, JOB_ASKED, JOB_HEARD, JOB_BLOCKED };

struct job {
	unsigned magic;
	enum job_state state;
	struct list node;	/* on up->waiting, ->ready or ->blocked */
	struct list age;	/* on up->by_age, until it was told */
	struct dns_upstream *up;
	struct dns_name name;
	uint16_t type;
	dns_upstream_fn *fn;	/* NULL: told */
	void *arg;
	int64_t start_ms;
	unsigned generation;	/* of the server list that @tried speaks of */
	unsigned tried;		/* servers of this round, as bits */
	unsigned failed;	/* those that gave nothing to believe */
	unsigned round;
	unsigned server;	/* of the attempt that runs */
	bool tls, tcp, bare;	/* how it is made */
	bool doubted;		/* by TCP because of what came by UDP */
	int64_t sent_ms;
	struct dns_ask ask;
	struct dns_chan_ask slot;
	struct dns_tls_ask tls_slot;
	/* What the attempt brought, noted by the call-back. */
	enum dns_sent how;
	int verdict;		/* of dns_answer_parse() */
	enum dns_outcome fault;	/* the last one */
	struct dns_answer answer;
};

struct dns_upstream {
	struct event_base *base;
	int attempt_ms, attempts_until_ms, deadline_ms, tls_idle_ms;
	struct resolver_servers servers;
	struct dns_health health[RESOLVER_SERVERS_MAX];
	unsigned generation;
	struct dns_chans *chans;
	struct dns_tls *tls[RESOLVER_SERVERS_MAX];	/* made when first asked */
	struct list waiting, ready, blocked;
	struct list by_age;	/* the oldest question first */
	unsigned njobs;
	struct event run;	/* takes jobs off @ready */
	struct event deadline;	/* of the oldest */
	bool closing;
};

/* --- the end of a question --------------------------------------------------- */

static void job_free(struct job *j)
{
	list_del(&j->node);
	list_del(&j->age);
	j->up->njobs--;
	dns_answer_done(&j->answer);
	j->magic = 0;
	mem_free(j);
}

/* Tell whoever asked.  It may ask again, so @j is out of the way before. */
static void job_tell(struct job *j, enum dns_outcome outcome)
{
	dns_upstream_fn *fn = j->fn;

	list_del(&j->age);
	j->fn = NULL;
	fn(j->arg, outcome, outcome == DNS_ANSWERED ? &j->answer : NULL);
}

static void job_end(struct job *j, enum dns_outcome outcome)
{
	list_del(&j->node);
	job_tell(j, outcome);
	job_free(j);
}

static void deadline_rearm(struct dns_upstream *u)
{
	const struct job *j;
	struct timeval tv;
	int64_t ms;

	if (list_empty(&u->by_age))
		return;		/* a timer that runs out for nothing costs less */
	j = list_first(&u->by_age, struct job, age);
	ms = MAX(j->start_ms + u->deadline_ms - clock_mono_ms(), 0);
	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	event_add(&u->deadline, &tv);
}

static void deadline_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_upstream *u = arg;
	int64_t now_ms = clock_mono_ms();

	(void)fd;
	(void)what;
	while (!list_empty(&u->by_age)) {
		struct job *j = list_first(&u->by_age, struct job, age);

		if (j->start_ms + u->deadline_ms > now_ms)
			break;
		if (j->state == JOB_ASKED)
			job_tell(j, DNS_TIMED_OUT);
		else
			job_end(j, DNS_TIMED_OUT);
	}
	deadline_rearm(u);
}

/* --- attempts -------------------------------------------------------------- */

static void job_move(struct job *j, enum job_state state, struct list *to)
{
	j->state = state;
	list_del(&j->node);
	list_add(to, &j->node);
}

static void job_ready(struct job *j, enum job_state state)
{
	job_move(j, state, &j->up->ready);
	event_active(&j->up->run, EV_TIMEOUT, 0);
}

static void job_on_sent(void *arg, enum dns_sent how, const uint8_t *p,
			size_t n)
{
	struct job *j = arg;

	REQUIRE(j->magic == JOB_MAGIC && j->state == JOB_ASKED);
	if (j->up->closing)
		return;
	j->how = how;
	dns_answer_done(&j->answer);
	if (how == DNS_SENT_HEARD && j->fn)
		j->verdict = dns_answer_parse(p, n, &j->ask,
					      !j->tcp && !j->tls, &j->answer);
	job_ready(j, JOB_HEARD);
}

/* What a job knows of servers by number is of the list that it started with. */
static bool job_knows_servers(const struct job *j)
{
	return j->generation == j->up->generation;
}

/* The next server to ask; false when there is none or it is too late. */
static bool job_next_server(struct job *j)
{
	struct dns_upstream *u = j->up;
	int64_t now_ms = clock_mono_ms();
	size_t n = u->servers.n;

	if (!job_knows_servers(j)) {
		j->generation = u->generation;
		j->tried = 0;
		j->failed = 0;
	}
	if (now_ms - j->start_ms > u->attempts_until_ms)
		return false;
	if (!dns_health_pick(u->health, n, j->tried, now_ms, &j->server)) {
		if (++j->round == DNS_ROUNDS)
			return false;
		j->tried = 0;
		if (!dns_health_pick(u->health, n, 0, now_ms, &j->server))
			return false;
	}
	j->tried |= BIT(j->server);
	j->tls = u->servers.server[j->server].tls;
	j->tcp = !j->tls && dns_health_wants_tcp(&u->health[j->server], now_ms);
	j->doubted = false;
	j->bare = false;
	return true;
}

static void job_encode(struct job *j)
{
	uint8_t dice[34];

	random_bytes(dice, sizeof(dice));
	dns_ask_encode(&j->name, j->type, dns_get16(dice), dice + 2, &j->ask);
	if (j->bare)
		dns_ask_strip(&j->ask);
	else if (j->tls)
		dns_ask_pad(&j->ask);
}

static int job_send_plain(struct job *j)
{
	struct dns_upstream *u = j->up;

	job_encode(j);
	j->slot = (struct dns_chan_ask){ .fn = job_on_sent, .arg = j };
	return dns_chans_send(u->chans, &u->servers.server[j->server], j->tcp,
			      &j->ask, &j->slot);
}

static int job_send_tls(struct job *j)
{
	struct dns_upstream *u = j->up;
	const struct dns_tls_config config = {
		.base = u->base, .tls = u->servers.tls,
		.server = &u->servers.server[j->server],
		.attempt_ms = u->attempt_ms, .idle_ms = u->tls_idle_ms,
	};
	struct dns_tls **tls = &u->tls[j->server];

	if (!*tls && dns_tls_new(&config, tls) != 0)
		return -EAGAIN;
	do
		job_encode(j);
	while (dns_tls_has_id(*tls, dns_get16(j->ask.p)));
	j->tls_slot = (struct dns_tls_ask){ .fn = job_on_sent, .arg = j };
	return dns_tls_send(*tls, &j->ask, &j->tls_slot);
}

/* Ask j->server; every end of it comes through job_on_sent(). */
static void job_send(struct job *j)
{
	struct dns_upstream *u = j->up;
	bool waited = j->state == JOB_BLOCKED;

	job_move(j, JOB_ASKED, &u->waiting);
	j->sent_ms = clock_mono_ms();
	if ((j->tls ? job_send_tls(j) : job_send_plain(j)) != 0)
		/* One that waited already keeps its place, the first. */
		job_move(j, JOB_BLOCKED, waited ? u->blocked.next
						: &u->blocked);
}

static void job_attempt(struct job *j)
{
	if (job_next_server(j))
		job_send(j);
	else
		job_end(j, j->fault);
}

/*
 * Is there another way to ask the same server?  TCP, when something came that
 * cannot be believed; UDP, when we were of that mind for earlier answers and TCP
 * does not work now; without EDNS, when the server says it knows none (the
 * first time c-ares does that by itself, and then no more on that channel).
 */
static bool job_ask_otherwise(struct job *j)
{
	struct dns_health *h = &j->up->health[j->server];

	if (!job_knows_servers(j))
		return false;
	if (j->how != DNS_SENT_HEARD) {
		if (!j->tcp || j->doubted)
			return false;
		dns_health_no_tcp(h);
		j->tcp = false;
		return j->how == DNS_SENT_FAILED;
	}
	if (j->verdict != 0 && !j->tcp && !j->tls) {
		j->tcp = true;
		j->doubted = true;
		return true;
	}
	if (j->verdict == 0 && j->answer.rcode == DNS_FORMERR && !j->bare) {
		j->bare = true;
		return true;
	}
	return false;
}

/* It was answered: what that says of the servers that were asked. */
static void job_praise(const struct job *j)
{
	struct dns_health *h = j->up->health;
	int64_t now_ms = clock_mono_ms();

	if (!job_knows_servers(j))
		return;
	dns_health_good(&h[j->server], (uint32_t)(now_ms - j->sent_ms), now_ms);
	if (j->doubted)
		dns_health_forged(&h[j->server], now_ms);
	for (unsigned i = 0; i < j->up->servers.n; i++) {
		if (j->failed & BIT(i) && i != j->server)
			dns_health_failed(&h[i], now_ms);
	}
}

static bool is_answer(const struct job *j)
{
	return j->how == DNS_SENT_HEARD && j->verdict == 0 &&
	       (j->answer.rcode == DNS_NOERROR ||
		j->answer.rcode == DNS_NXDOMAIN);
}

static void job_on_heard(struct job *j)
{
	if (!j->fn) {
		job_free(j);
		return;
	}
	if (is_answer(j)) {
		job_praise(j);
		job_end(j, DNS_ANSWERED);
		return;
	}
	if (j->how == DNS_SENT_HEARD && j->verdict == -ELOOP) {
		job_end(j, DNS_LOOPED);
		return;
	}
	/* That a server is not who it should be outweighs what else failed. */
	if (j->fault != DNS_NO_TLS)
		j->fault = j->how == DNS_SENT_NO_TLS ? DNS_NO_TLS :
			   j->how == DNS_SENT_TIMEOUT ? DNS_TIMED_OUT :
							DNS_UNANSWERED;
	if (job_ask_otherwise(j)) {
		job_send(j);
		return;
	}
	j->failed |= BIT(j->server);
	if (j->how != DNS_SENT_HEARD && job_knows_servers(j))
		dns_health_failed(&j->up->health[j->server], clock_mono_ms());
	job_attempt(j);
}

/* Something ended, so there may be room for those that found none. */
static void run_blocked(struct dns_upstream *u)
{
	while (!list_empty(&u->blocked)) {
		struct job *j = list_first(&u->blocked, struct job, node);

		if (!job_knows_servers(j)) {
			job_attempt(j);
			continue;
		}
		job_send(j);
		if (j->state == JOB_BLOCKED)
			return;
	}
}

/* One turn for what is ready now; what becomes ready in it comes next turn. */
static void run_cb(evutil_socket_t fd, short what, void *arg)
{
	struct dns_upstream *u = arg;
	struct list *last = u->ready.prev;

	(void)fd;
	(void)what;
	while (!list_empty(&u->ready)) {
		struct job *j = list_first(&u->ready, struct job, node);
		bool end = &j->node == last;

		if (j->state == JOB_NEW)
			job_attempt(j);
		else
			job_on_heard(j);
		if (end)
			break;
	}
	run_blocked(u);
	if (!list_empty(&u->ready))
		event_active(&u->run, EV_TIMEOUT, 0);
}

int dns_upstream_ask(struct dns_upstream *u, const struct dns_name *name,
		     uint16_t type, dns_upstream_fn *fn, void *arg)
{
	struct job *j;

	if (u->njobs == DNS_JOBS_MAX)
		return -EAGAIN;
	j = mem_new(sizeof(*j));
	if (!j)
		return -ENOMEM;
	j->magic = JOB_MAGIC;
	j->up = u;
	j->name = *name;
	j->type = type;
	j->fn = fn;
	j->arg = arg;
	j->start_ms = clock_mono_ms();
	j->generation = u->generation;
	j->fault = DNS_UNANSWERED;
	list_init(&j->node);
	list_init(&j->age);
	list_add(&u->by_age, &j->age);
	if (!event_pending(&u->deadline, EV_TIMEOUT, NULL))
		deadline_rearm(u);
	u->njobs++;
	job_ready(j, JOB_NEW);
	return 0;
}

static void job_cancel(struct job *j)
{
	if (j->state == JOB_NEW || j->state == JOB_BLOCKED) {
		job_free(j);
		return;
	}
	/* The transport has it, or has just let go of it. */
	list_del(&j->age);
	j->fn = NULL;
}

void dns_upstream_cancel(struct dns_upstream *u, const void *arg)
{
	struct list *it, *tmp;

	list_each(&u->by_age, it, tmp) {
		struct job *j = container_of(it, struct job, age);

		if (j->arg == arg) {
			job_cancel(j);
			return;
		}
	}
}

/* --- the whole ------------------------------------------------------------- */

int dns_upstream_new(const struct dns_upstream_config *config,
		     struct dns_upstream **ret)
{
	struct dns_upstream *u = mem_new(sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->base = config->base;
	u->attempt_ms = config->attempt_ms ? config->attempt_ms :
					     DNS_ATTEMPT_MS;
	u->tls_idle_ms = config->tls_idle_ms ? config->tls_idle_ms :
					       DNS_TLS_IDLE_MS;
	u->attempts_until_ms = config->attempts_until_ms ?
		config->attempts_until_ms : DNS_ATTEMPTS_UNTIL_MS;
	u->deadline_ms = u->attempts_until_ms + u->attempt_ms;
	list_init(&u->waiting);
	list_init(&u->ready);
	list_init(&u->blocked);
	list_init(&u->by_age);
	if (event_assign(&u->run, u->base, -1, 0, run_cb, u) != 0 ||
	    evtimer_assign(&u->deadline, u->base, deadline_cb, u) != 0) {
		mem_free(u);
		return -ENOMEM;
	}
	err = dns_chans_new(u->base, u->attempt_ms, &u->chans);
	if (err) {
		mem_free(u);
		return err;
	}
	*ret = u;
	return 0;
}

static void tls_drop(struct dns_upstream *u)
{
	for (size_t i = 0; i < ARRAY_SIZE(u->tls); i++) {
		dns_tls_free(u->tls[i]);
		u->tls[i] = NULL;
	}
}

void dns_upstream_free(struct dns_upstream *u)
{
	struct list *jobs[3];

	if (!u)
		return;
	jobs[0] = &u->waiting;
	jobs[1] = &u->ready;
	jobs[2] = &u->blocked;
	u->closing = true;
	dns_chans_free(u->chans);
	tls_drop(u);
	event_del(&u->run);
	event_del(&u->deadline);
	for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
		while (!list_empty(jobs[i]))
			job_free(list_first(jobs[i], struct job, node));
	mem_free(u);
}

void dns_upstream_set_servers(struct dns_upstream *u,
			      const struct resolver_servers *servers)
{
	/* What is on its way over TLS goes on with the new ones. */
	tls_drop(u);
	u->servers = *servers;
	memset(u->health, 0, sizeof(u->health));
	u->generation++;
}

size_t dns_upstream_sockets(const struct dns_upstream *u)
{
	return dns_chans_sockets(u->chans);
}
