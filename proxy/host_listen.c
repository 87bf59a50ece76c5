/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_listen.c - listeners on addresses of this host, and their lives
 *
 * Theory of operation
 * ===================
 *
 * A listener has a part on every worker: a sandbox, with sockets of its own on
 * the same addresses.  What the parts spend of the policy's limits and of its
 * budget of names they spend together, and their records are of one run with
 * one numbering (audit_sink_share()).
 *
 *	PLACING --> SERVING --> DRAINING --> ENDING --> GONE
 *	   |           |                       ^
 *	   +-----------+-----------------------+
 *
 *   from       to         by                      because
 *   PLACING    SERVING    on_all_placed()         each worker has its part
 *   PLACING    ENDING     on_all_placed()         one could not make it
 *   SERVING    DRAINING   host_listens_drain()    the service goes down
 *   DRAINING   ENDING     on_drained()            the last flow has ended
 *   any        ENDING     listen_end()            no time is left
 *   ENDING     GONE       on_all_ended()          each worker closed everything
 *
 * In PLACING and ENDING the mail of each part is on its way to its worker and
 * back; @out counts those that are.
 */
#include "proxy/host_listen_own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "audit/writer.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/client_table.h"
#include "proxy/host_sock.h"
#include "proxy/policies.h"
#include "proxy/quota.h"
#include "proxy/worker.h"
#include "resolver/resolver.h"
#include "rules/rules.h"

#define LISTEN_PREFIX		"listen-"
#define LISTEN_ID_BYTES		3	/* of randomness, in a run's name */
#define LISTEN_WHERE_MAX	2048	/* bytes of its addresses in a log line */

_Static_assert(sizeof(LISTEN_PREFIX) + CONFIG_LISTEN_NAME_MAX +
	       2 * LISTEN_ID_BYTES + 1 <= PLUG_RUN_MAX, "a run's name fits");
_Static_assert((int)CONFIG_LISTEN_LABEL_MAX <= (int)PLUG_LABEL_MAX,
	       "labels are alike");

static const struct {
	const char *name;
	uint32_t next;
} listen_states[] = {
	[LISTEN_PLACING]  = { "placing",  BIT(LISTEN_SERVING) |
					  BIT(LISTEN_ENDING) },
	[LISTEN_SERVING]  = { "serving",  BIT(LISTEN_DRAINING) |
					  BIT(LISTEN_ENDING) },
	[LISTEN_DRAINING] = { "draining", BIT(LISTEN_ENDING) },
	[LISTEN_ENDING]   = { "ending",   BIT(LISTEN_GONE) },
	[LISTEN_GONE]     = { "gone",     0 },
};
_Static_assert(ARRAY_SIZE(listen_states) == LISTEN_STATES, "name every state");

static struct ip_nets loopback_only(void)
{
	static const struct ip_net net[] = {
		{ { IP_V4, { 127 } }, 8 },
		{ { IP_V6, { [15] = 1 } }, 128 },
	};

	return (struct ip_nets){ net, ARRAY_SIZE(net) };
}

static void listen_set_state(struct listen *l, enum listen_state to)
{
	REQUIRE(listen_states[l->state].next & BIT(to));
	log_debug("run %s: %s -> %s", l->run, listen_states[l->state].name,
		  listen_states[to].name);
	l->state = to;
	REQUIRE(l->sink || to == LISTEN_ENDING || to == LISTEN_GONE);
}

/* --- the end ---------------------------------------------------------------------- */

static void listen_record_end(struct listen *l)
{
	struct record r;
	size_t i;

	if (!l->sink)
		return;
	sandbox_record(RECORD_RUN_END, RECORD_ACT_NONE, l->why,
		       RECORD_VIA_NONE, &r);
	for (i = 0; i < l->all->c.nworkers; i++) {
		r.bytes_up += l->part[i].bytes_up;
		r.bytes_down += l->part[i].bytes_down;
	}
	r.over_budget = dns_budget_refused(l->budget);
	r.dur_ms = clock_mono_ms() - l->started_ms;
	audit_tell(l->sink, &r);
}

static void on_all_ended(struct listen *l)
{
	struct host_listens *h = l->all;

	listen_record_end(l);
	listen_set_state(l, LISTEN_GONE);
	h->left--;
	if (h->left == 0)
		h->c.on_idle(h->c.arg);
}

static void part_on_ended(void *owner, struct mail *mail)
{
	struct part *p = container_of(mail, struct part, mail);

	(void)owner;
	if (--p->listen->out == 0)
		on_all_ended(p->listen);
}

/* On the worker's thread. */
static void part_end_on_worker(void *owner, struct mail *mail)
{
	struct part *p = container_of(mail, struct part, mail);

	if (p->sandbox) {
		sandbox_end(p->sandbox, p->listen->why);
		conn_reclaim(owner);
		p->bytes_up = p->sandbox->bytes_up;
		p->bytes_down = p->sandbox->bytes_down;
		audit_sink_free(sandbox_free(p->sandbox));
		p->sandbox = NULL;
	}
	mailbox_post(p->listen->all->mailbox, mail, part_on_ended);
}

static void listen_start_end(struct listen *l)
{
	size_t i;

	listen_set_state(l, LISTEN_ENDING);
	l->out = l->all->c.nworkers;
	for (i = 0; i < l->all->c.nworkers; i++)
		worker_post(l->part[i].worker, &l->part[i].mail,
			    part_end_on_worker);
}

static void listen_end(struct listen *l, enum reason why)
{
	if (!l->end_asked)
		l->why = why;
	l->end_asked = true;
	/* PLACING: on_all_placed() looks at end_asked */
	if (l->state == LISTEN_SERVING || l->state == LISTEN_DRAINING)
		listen_start_end(l);
}

void host_listens_end(struct host_listens *h, enum reason why)
{
	size_t i;

	for (i = 0; i < h->n; i++)
		listen_end(&h->listen[i], why);
}

/* --- draining ----------------------------------------------------------------------- */

static void on_drained(void *owner, struct mail *mail)
{
	struct part *p = container_of(mail, struct part, drained);
	struct listen *l = p->listen;

	(void)owner;
	if (--l->draining == 0 && l->state == LISTEN_DRAINING)
		listen_end(l, REASON_SHUTDOWN);
}

/* On the worker's thread. */
static void part_on_drained(struct sandbox *s, void *arg)
{
	struct part *p = arg;

	(void)s;
	mailbox_post(p->listen->all->mailbox, &p->drained, on_drained);
}

static void part_drain_on_worker(void *owner, struct mail *mail)
{
	struct part *p = container_of(mail, struct part, drained);

	(void)owner;
	if (p->sandbox && !p->sandbox->ending)
		sandbox_drain(p->sandbox, part_on_drained, p);
}

static void listen_drain(struct listen *l)
{
	size_t i;

	listen_set_state(l, LISTEN_DRAINING);
	l->draining = l->all->c.nworkers;
	for (i = 0; i < l->all->c.nworkers; i++)
		worker_post(l->part[i].worker, &l->part[i].drained,
			    part_drain_on_worker);
}

void host_listens_drain(struct host_listens *h)
{
	size_t i;

	for (i = 0; i < h->n; i++) {
		struct listen *l = &h->listen[i];

		if (l->state == LISTEN_SERVING)
			listen_drain(l);
		else
			listen_end(l, REASON_SHUTDOWN);
	}
}

/* --- the beginning ------------------------------------------------------------------- */

static void listen_say_where(struct buf *out, const char *word,
			     const struct listen *l, enum sandbox_role role)
{
	const struct host_socks *socks = l->all->c.socks;
	size_t which = (size_t)(l - l->all->listen), i, n = 0;
	char text[IP_ENDPOINT_TEXT_SIZE];

	for (i = 0; i < socks->n; i++) {
		const struct host_sock *s = &socks->sock[i];

		if (s->listen != which || s->role != role || s->worker > 0)
			continue;
		ip_endpoint_text(&s->at, text);
		/* What does not fit is not said. */
		(void)!buf_printf(out, "%s %s", n++ ? "" : word, text);
	}
}

static void listen_say(const struct listen *l)
{
	CLEANUP(buf_done) struct buf where = BUF_INIT(LISTEN_WHERE_MAX);

	listen_say_where(&where, " http", l, SANDBOX_HTTP);
	listen_say_where(&where, " socks", l, SANDBOX_SOCKS);
	listen_say_where(&where, " dns", l, SANDBOX_DNS_UDP);
	log_info("run %s: policy %s@sha256:%s,%.*s, clients: %s", l->run,
		 rules_name(l->rules), rules_digest(l->rules),
		 STR_ARG(buf_str(&where)),
		 l->c->nclients ? "as configured" : "of this host");
}

static void listen_on_placed(struct listen *l)
{
	struct host_listens *h = l->all;

	if (--h->placing > 0)
		return;
	h->c.on_ready(h->c.arg, h->err);
}

static void on_all_placed(struct listen *l)
{
	size_t i;
	int err = 0;

	for (i = 0; i < l->all->c.nworkers; i++) {
		struct part *p = &l->part[i];

		if (p->placed == 0)
			continue;
		err = p->placed;
		rules_unref(p->config.rules);
		audit_sink_free(p->config.sink);
	}
	if (err < 0) {
		log_error("[listen %s]: %s", l->c->name, strerror(-err));
		l->all->err = err;
		l->why = REASON_INTERNAL_ERROR;
		l->end_asked = true;
	}
	if (l->end_asked) {
		listen_start_end(l);
	} else {
		listen_set_state(l, LISTEN_SERVING);
		listen_say(l);
	}
	listen_on_placed(l);
}

static void part_on_placed(void *owner, struct mail *mail)
{
	struct part *p = container_of(mail, struct part, mail);

	(void)owner;
	if (--p->listen->out == 0)
		on_all_placed(p->listen);
}

/* On the worker's thread. */
static void part_place_on_worker(void *owner, struct mail *mail)
{
	struct part *p = container_of(mail, struct part, mail);

	p->placed = sandbox_new(owner, &p->config, &p->sandbox);
	mailbox_post(p->listen->all->mailbox, mail, part_on_placed);
}

static int listen_open_sink(struct listen *l)
{
	char policy[SANDBOX_POLICY_LABEL];
	const struct record_labels labels = {
		.run = l->run,
		.sandbox = l->c->label[0] ? l->c->label : l->c->name,
		.policy = policy,
		.mode = rules_observe(l->rules) ? "observe" : "enforce",
		.generation = l->generation,
	};
	int fd = fcntl(l->all->c.log_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	sandbox_policy_label(l->rules, policy);
	return audit_sink_new(l->all->c.writer, fd, &labels, &l->sink);
}

/* Without a record of its beginning it does not begin. */
static void listen_record_start(struct listen *l)
{
	struct record r;
	int err;

	l->started_ms = clock_mono_ms();
	sandbox_record(RECORD_RUN_START, RECORD_ACT_NONE, REASON_ALLOWED,
		       RECORD_VIA_NONE, &r);
	err = audit_post(l->sink, &r);
	if (err == 0)
		return;
	log_error("[listen %s]: cannot write records: %s", l->c->name,
		  strerror(-err));
	l->all->err = err;
	l->end_asked = true;
	l->why = REASON_AUDIT_UNAVAILABLE;
}

static int part_init(struct part *p, struct listen *l, size_t worker)
{
	struct host_socks *socks = l->all->c.socks;
	size_t which = (size_t)(l - l->all->listen), i;

	p->listen = l;
	p->worker = l->all->c.worker[worker];
	p->config = (struct sandbox_config){
		.run = l->run,
		.label = l->c->label[0] ? l->c->label : l->c->name,
		.clients = &l->clients,
		.budget = l->budget,
		.shares = l->shares,
	};
	for (i = 0; i < socks->n; i++) {
		struct host_sock *s = &socks->sock[i];

		if (s->listen == which && s->worker == worker)
			sandbox_config_add(&p->config, s->role,
					   fd_take(&s->fd));
	}
	p->config.rules = rules_ref(l->rules);
	p->config.quota = quota_ref(l->quota);
	return audit_sink_share(l->sink, &p->config.sink);
}

static void listen_name(struct listen *l)
{
	char hex[2 * LISTEN_ID_BYTES + 1];
	int n;

	id_random_hex(hex, LISTEN_ID_BYTES);
	n = snprintf(l->run, sizeof(l->run), LISTEN_PREFIX "%s-%s",
		     l->c->name, hex);
	REQUIRE(n > 0 && (size_t)n < sizeof(l->run));
}

static int listen_open(struct listen *l)
{
	struct host_listens *h = l->all;
	const struct policy *policy = policies_find(h->c.policies,
						    str_from(l->c->policy));
	size_t i;
	int err;

	if (!policy || policy->gone)
		return -ENOENT;		/* the service looked before */
	l->generation = 1;
	l->clients = (struct ip_nets){ l->c->client, l->c->nclients };
	if (l->clients.n == 0)
		l->clients = loopback_only();
	l->rules = rules_ref(policy->rules);
	l->part = mem_new_array(h->c.nworkers, sizeof(l->part[0]));
	if (!l->part)
		return -ENOMEM;
	for (i = 0; i < h->c.nworkers; i++)
		leave_init(&l->part[i].leave);
	listen_name(l);
	err = dns_budget_new(l->rules, &l->budget);
	if (err == 0)
		err = quota_new(l->rules, h->c.worker[0]->whole, &l->quota);
	if (err == 0)
		err = client_table_new(&l->c->share, &l->shares);
	if (err == 0)
		err = listen_open_sink(l);
	for (i = 0; err == 0 && i < h->c.nworkers; i++)
		err = part_init(&l->part[i], l, i);
	return err;
}

int host_listens_new(const struct host_listens_config *config,
		     struct host_listens **ret)
{
	size_t n = config->config->nlistens, i;
	struct host_listens *h = mem_new(sizeof(*h) +
					 n * sizeof(h->listen[0]));
	int err;

	if (!h)
		return -ENOMEM;
	h->c = *config;
	err = mailbox_new(config->base, h, &h->mailbox);
	for (i = 0; err == 0 && i < n; i++) {
		h->listen[i].all = h;
		h->listen[i].c = &config->config->listen[i];
		list_init(&h->listen[i].swaps);
		h->n++;
		err = listen_open(&h->listen[i]);
	}
	if (err < 0) {
		host_listens_free(h);
		return err;
	}
	*ret = h;
	return 0;
}

void host_listens_start(struct host_listens *h)
{
	size_t i, j;

	h->left = h->placing = h->n;
	if (h->n == 0) {
		h->c.on_ready(h->c.arg, 0);
		return;
	}
	for (i = 0; i < h->n; i++) {
		struct listen *l = &h->listen[i];

		listen_record_start(l);
		l->out = h->c.nworkers;
		for (j = 0; j < h->c.nworkers; j++)
			worker_post(l->part[j].worker, &l->part[j].mail,
				    part_place_on_worker);
	}
}

void host_listens_serve(struct host_listens *h)
{
	size_t i;

	if (h->n == 0)
		h->c.on_ready(h->c.arg, 0);
	for (i = 0; i < h->n; i++) {
		listen_record_start(&h->listen[i]);
		on_all_placed(&h->listen[i]);
	}
}

size_t host_listens_left(const struct host_listens *h)
{
	return h ? h->left : 0;
}

static void listen_free(struct listen *l, size_t nworkers)
{
	size_t i;

	host_listen_drop_swaps(l);
	for (i = 0; l->part && i < nworkers; i++)
		leave_done(&l->part[i].leave);
	for (i = 0; l->part && i < nworkers; i++) {
		sandbox_config_close(&l->part[i].config);
		/* Never placed: what was meant for it is ours still. */
		if (l->state == LISTEN_PLACING && !l->part[i].sandbox) {
			rules_unref(l->part[i].config.rules);
			audit_sink_free(l->part[i].config.sink);
		}
	}
	mem_free(l->part);
	dns_budget_free(l->budget);
	quota_unref(l->quota);
	client_table_free(l->shares);
	rules_unref(l->rules);
	audit_sink_free(l->sink);
}

void host_listens_free(struct host_listens *h)
{
	size_t i;

	if (!h)
		return;
	for (i = 0; i < h->n; i++)
		listen_free(&h->listen[i], h->c.nworkers);
	mailbox_free(h->mailbox);
	mem_free(h);
}
