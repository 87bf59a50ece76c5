/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox.c - one plugged sandbox: its policy, its sockets, its flows
 *
 * Lives on one worker.  Made of descriptors that plug.c has checked; ended by
 * closing every one of them, so that the sandbox is refused at once and
 * nothing is left that could answer it.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "proxy/client_table.h"
#include "proxy/conn.h"
#include "proxy/listener.h"
#include "proxy/nflog.h"
#include "proxy/parents.h"
#include "proxy/quota.h"
#include "proxy/sandbox.h"
#include "proxy/strangers.h"
#include "proxy/worker.h"
#include "resolver/name_map.h"
#include "resolver/name_pins.h"
#include "resolver/resolver.h"

/* Runs share no lookup: one must not read another's off a clock. */
static uint64_t sandbox_tenant(const struct sandbox *s)
{
	char key[PLUG_RUN_MAX + 64] = { 0 };
	const char *digest = rules_digest(s->rules);

	memcpy(key, s->run, sizeof(s->run));
	memcpy(key + sizeof(s->run), digest, MIN(strlen(digest), 64));
	return hash_bytes(key, sizeof(key));
}

void sandbox_config_add(struct sandbox_config *config, enum sandbox_role role,
			int fd)
{
	if (fd < 0)
		return;
	REQUIRE(config->nfds < SANDBOX_FDS_MAX);
	config->fd[config->nfds++] = (struct sandbox_fd){ role, fd };
}

void sandbox_config_close(struct sandbox_config *config)
{
	while (config->nfds > 0)
		fd_closep(&config->fd[--config->nfds].fd);
	quota_unref(config->quota);
	config->quota = NULL;
}

/* All descriptors of a role, taken. */
static size_t sandbox_take_fds(struct sandbox_config *config,
			       enum sandbox_role role,
			       int ret[SANDBOX_FDS_MAX])
{
	size_t i, n = 0;

	for (i = 0; i < config->nfds; i++)
		if (config->fd[i].role == role && config->fd[i].fd >= 0)
			ret[n++] = fd_take(&config->fd[i].fd);
	return n;
}

static void sandbox_on_dns_stranger(void *arg, const struct ip_endpoint *src,
				    const struct ip_endpoint *at, bool tcp)
{
	struct sandbox *s = arg;

	strangers_note(s->strangers, src, at, tcp);
}

bool sandbox_admits(struct sandbox *s, const struct ip_endpoint *src,
		    const struct ip_endpoint *at)
{
	struct strangers *noted = NULL;

	if (s->clients && !ip_nets_have(s->clients, &src->addr))
		noted = s->strangers;
	else if (s->shares && !client_table_admits(s->shares, &src->addr))
		noted = s->crowd;
	if (noted)
		strangers_note(noted, src, at, true);
	return !noted;
}

static enum dns_share sandbox_share_question(void *arg,
					     const struct ip_endpoint *src,
					     const struct ip_addr *asked,
					     bool tcp, enum reason *ret_why)
{
	static const enum dns_share share[] = {
		[CLIENT_ANSWER] = DNS_SHARE_OK,
		[CLIENT_SLIP] = DNS_SHARE_SLIP,
		[CLIENT_REFUSE] = DNS_SHARE_REFUSE,
		[CLIENT_SILENCE] = DNS_SHARE_DROP,
	};
	struct sandbox *s = arg;
	struct client_whole whole = client_whole_of(s->quota, s->rules);
	struct ip_endpoint at = { .addr = *asked };
	enum client_answer answer;

	answer = client_table_ask(s->shares, &src->addr, tcp, &whole,
				  clock_mono_us());
	if (answer != CLIENT_ANSWER)
		strangers_note(s->askers, src, &at, tcp);
	*ret_why = REASON_CLIENT_QUERIES_EXCEEDED;
	return share[answer];
}

static bool sandbox_resolves_elsewhere(void *arg, const struct ruleset *rules,
				       struct str name)
{
	const struct worker *w = arg;

	return parents_resolve(w->parents, rules, name, clock_wall_s());
}

static void sandbox_dns_turn(void *arg)
{
	struct sandbox *s = arg;

	dns_door_turn(s->dns);
}

static void sandbox_on_dns_due(void *arg)
{
	struct sandbox *s = arg;

	sched_run(&s->turn, &s->dns_turn);
}

static bool sandbox_spend_dns(void *arg, unsigned questions)
{
	struct sandbox *s = arg;

	if (questions)
		sched_spend(&s->turn,
			    (int64_t)questions * SCHED_COST_QUESTION);
	return sched_has_credit(&s->turn);
}

static int sandbox_open_dns(struct sandbox *s, struct sandbox_config *config)
{
	int udp[SANDBOX_FDS_MAX], tcp[SANDBOX_FDS_MAX];
	struct dns_door_config door = {
		.udp = udp,
		.nudp = sandbox_take_fds(config, SANDBOX_DNS_UDP, udp),
		.tcp = tcp,
		.ntcp = sandbox_take_fds(config, SANDBOX_DNS_TCP, tcp),
		.base = s->worker->base,
		.resolver = s->worker->resolver,
		.rules = s->rules,
		.names = s->names,
		.pins = s->pins,
		.sink = s->sink,
		.hosts = &s->worker->hosts,
		.tenant = s->tenant,
		.budget = s->budget,
		.owner = &s->memory,
		.elsewhere = sandbox_resolves_elsewhere,
		.elsewhere_arg = s->worker,
		.hostname = config->hostname ? config->hostname : "",
		.nonce = config->nonce ? config->nonce : "",
		.real = s->clients,
		.clients = s->clients,
		.on_stranger = sandbox_on_dns_stranger,
		.share = s->shares ? sandbox_share_question : NULL,
		.due = sandbox_on_dns_due,
		.spend = sandbox_spend_dns,
		.arg = s,
	};

	return dns_door_new(&door, &s->dns);
}

listener_fn *sandbox_role_accepts(enum sandbox_role role)
{
	static listener_fn *const fn[SANDBOX_ROLES] = {
		[SANDBOX_HTTP] = conn_start_explicit,
		[SANDBOX_SOCKS] = conn_start_socks,
		[SANDBOX_TPROXY] = conn_start_transparent,
	};

	return fn[role];
}

/* Numbers only: they belong to what is made of them. */
static int sandbox_note_doors(struct sandbox *s,
			      const struct sandbox_config *config)
{
	size_t i;

	s->door = mem_new_array(MAX(config->nfds, (size_t)1),
				sizeof(s->door[0]));
	if (!s->door)
		return -ENOMEM;
	for (i = 0; i < config->nfds; i++)
		s->door[i] = config->fd[i];
	s->ndoors = config->nfds;
	return 0;
}

static int sandbox_open_listeners(struct sandbox *s,
				  struct sandbox_config *config)
{
	struct listener *l;
	size_t i;
	int err = 0;

	for (i = 0; err == 0 && i < config->nfds; i++) {
		struct sandbox_fd *f = &config->fd[i];

		if (sandbox_role_accepts(f->role))
			err = listener_new(s, fd_take(&f->fd),
					   sandbox_role_accepts(f->role), &l);
	}
	return err;
}

static int sandbox_open_rest(struct sandbox *s, struct sandbox_config *config)
{
	int fd[SANDBOX_FDS_MAX];

	if (sandbox_take_fds(config, SANDBOX_DIAG, fd) > 0)
		s->diag_fd = fd[0];
	if (sandbox_take_fds(config, SANDBOX_NFLOG, fd) > 0)
		return nflog_new(s, fd[0], &s->nflog);
	return 0;
}

/* --- rules that end ------------------------------------------------------------ */

/* The timer runs by another clock than the rules, so it looks now and then. */
static void sandbox_await_expiry(struct sandbox *s)
{
	int64_t now = clock_wall_s(), left;
	struct timeval wait = { 0 };

	s->expires = rules_next_expiry(s->rules, now);
	if (s->expires == RULES_NEVER) {
		event_del(s->expiry);
		return;
	}
	left = MIN(s->expires - now, SANDBOX_EXPIRY_CHECK_S);
	wait.tv_sec = MAX(left, 1);
	if (event_add(s->expiry, &wait) < 0)
		log_error("run %s: out of memory: flows outlive their rules",
			  s->run);
}

static void sandbox_expiry_cb(evutil_socket_t fd, short what, void *arg)
{
	struct conn_rejudged ended;
	struct sandbox *s = arg;

	(void)fd;
	(void)what;
	if (clock_wall_s() >= s->expires)
		sandbox_rejudge(s, REASON_RULE_EXPIRED, &ended);
	sandbox_await_expiry(s);
}

/* --- the beginning -------------------------------------------------------------- */

static int sandbox_open_quota(struct sandbox *s, struct sandbox_config *config)
{
	int err = 0;

	s->quota = config->quota;
	config->quota = NULL;
	if (!s->quota)
		err = quota_new(s->rules, s->worker->whole, &s->quota);
	if (err < 0)
		return err;
	s->conns_max = quota_connections_max(s->quota) + SANDBOX_REFUSED_MAX;
	mem_account_init(&s->memory, quota_memory(s->quota));
	name_map_set_owner(s->names, &s->memory);
	name_pins_set_owner(s->pins, &s->memory);
	return 0;
}

static int sandbox_open_strangers(struct sandbox *s)
{
	int err = 0;

	if (s->clients)
		err = strangers_new(s, REASON_CLIENT_NOT_ALLOWED,
				    &s->strangers);
	if (err == 0 && s->shares)
		err = strangers_new(s, REASON_CLIENT_CONNECTIONS_EXCEEDED,
				    &s->crowd);
	if (err == 0 && s->shares)
		err = strangers_new(s, REASON_CLIENT_QUERIES_EXCEEDED,
				    &s->askers);
	return err;
}

static int sandbox_open(struct sandbox *s, struct sandbox_config *config)
{
	int err;

	s->expiry = event_new(s->worker->base, -1, 0, sandbox_expiry_cb, s);
	err = s->expiry ? name_map_new(SANDBOX_NAMES_BYTES, &s->names) :
			  -ENOMEM;
	if (err == 0)
		err = sandbox_note_doors(s, config);
	if (err == 0)
		err = name_pins_new(SANDBOX_NAMES_BYTES, &s->pins);
	if (err == 0)
		err = config->budget ? dns_budget_share(config->budget,
							&s->budget)
				     : dns_budget_new(s->rules, &s->budget);
	if (err == 0)
		err = sandbox_open_strangers(s);
	if (err == 0)
		err = sandbox_open_quota(s, config);
	if (err == 0)
		err = sandbox_open_dns(s, config);
	if (err == 0)
		err = sandbox_open_listeners(s, config);
	if (err == 0)
		err = sandbox_open_rest(s, config);
	return err;
}

static void sandbox_name(char *to, size_t size, const char *from)
{
	size_t n = from ? strlen(from) : 0;

	REQUIRE(n < size);
	if (n)
		memcpy(to, from, n);
}

static void sandbox_init(struct sandbox *s, struct worker *w,
			 const struct sandbox_config *config)
{
	s->worker = w;
	s->rules = config->rules;
	s->sink = config->sink;
	s->diag_fd = -1;
	s->clients = config->clients;
	s->shares = config->shares;
	s->self_tests_left = config->self_tests;
	list_init(&s->node);
	list_init(&s->conns);
	list_init(&s->pool);
	sched_queue_init(&s->turn, w->sched);
	sched_work_init(&s->dns_turn, sandbox_dns_turn, s);
	list_init(&s->listeners);
	sandbox_name(s->run, sizeof(s->run), config->run);
	sandbox_name(s->label, sizeof(s->label), config->label);
	s->tenant = sandbox_tenant(s);
}

static void sandbox_close_doors(struct sandbox *s)
{
	listener_free_all(s);
	sandbox_close_frozen(s);
	if (s->dns)
		sched_cancel(&s->dns_turn);
	dns_door_free(s->dns);
	s->dns = NULL;
	strangers_free(s->strangers);
	strangers_free(s->crowd);
	strangers_free(s->askers);
	s->strangers = s->crowd = s->askers = NULL;
}

static void sandbox_close_sockets(struct sandbox *s)
{
	sandbox_close_doors(s);
	nflog_free(s->nflog);
	s->nflog = NULL;
	if (s->expiry)
		event_free(s->expiry);
	s->expiry = NULL;
	fd_closep(&s->diag_fd);
}

/**
 * sandbox_new() - Take a checked plug into service
 * @config:	descriptors are taken always, rules and sink on success
 */
int sandbox_new(struct worker *w, struct sandbox_config *config,
		struct sandbox **ret)
{
	struct sandbox *s = mem_new(sizeof(*s));
	int err = -ENOMEM;

	if (s) {
		sandbox_init(s, w, config);
		err = sandbox_open(s, config);
	}
	sandbox_config_close(config);
	if (err < 0) {
		if (s) {
			sandbox_close_sockets(s);
			dns_budget_free(s->budget);
			name_map_free(s->names);
			name_pins_free(s->pins);
			mem_account_done(&s->memory);
			quota_unref(s->quota);
			sched_queue_done(&s->turn);
			mem_free(s->door);
			mem_free(s);
		}
		return err;
	}
	list_add(&w->sandboxes, &s->node);
	sandbox_await_expiry(s);
	*ret = s;
	return 0;
}

void sandbox_policy_label(const struct ruleset *rules,
			  char out[SANDBOX_POLICY_LABEL])
{
	/* Longer names are cut; the digest tells policies apart. */
	int n = snprintf(out, SANDBOX_POLICY_LABEL, "%.*s@sha256:%s",
			 PLUG_NAME_MAX - 1, rules_name(rules),
			 rules_digest(rules));

	REQUIRE(n > 0 && n < SANDBOX_POLICY_LABEL);
}

void sandbox_rejudge(struct sandbox *s, enum reason why,
		     struct conn_rejudged *ret)
{
	dns_budget_set_rules(s->budget, s->rules);
	if (s->dns)
		dns_door_set_rules(s->dns, s->rules, s->tenant);
	conn_rejudge_all(s, why, ret);
}

void sandbox_swap_rules(struct sandbox *s, struct ruleset *rules,
			uint32_t generation, struct conn_rejudged *ret)
{
	char label[SANDBOX_POLICY_LABEL];
	const struct record_labels labels = {
		.policy = label,
		.mode = rules_observe(rules) ? "observe" : "enforce",
		.generation = generation,
	};
	struct ruleset *old = s->rules;

	s->rules = rules;
	s->tenant = sandbox_tenant(s);
	quota_set_rules(s->quota, rules);
	s->conns_max = quota_connections_max(s->quota) + SANDBOX_REFUSED_MAX;
	sandbox_policy_label(rules, label);
	if (s->dns)
		dns_door_flush_records(s->dns);
	audit_sink_set_policy(s->sink, &labels);
	sandbox_rejudge(s, REASON_POLICY_RELOAD, ret);
	rules_unref(old);
	sandbox_await_expiry(s);
}

void sandbox_set_policy(struct sandbox *s, struct ruleset *rules,
			uint32_t generation, struct conn_rejudged *ret)
{
	struct record r;

	sandbox_swap_rules(s, rules, generation, ret);
	sandbox_record(RECORD_POLICY, RECORD_ACT_NONE, REASON_ALLOWED,
		       RECORD_VIA_NONE, &r);
	r.flows_kept = ret->kept;
	r.flows_ended = ret->ended;
	audit_tell(s->sink, &r);
}

static void sandbox_tell_full(struct sandbox *s)
{
	struct record r;

	sandbox_record(RECORD_LIMIT, RECORD_ACT_NONE, s->full_why,
		       RECORD_VIA_NONE, &r);
	r.count = s->full_more;
	s->full_more = 0;
	audit_tell(s->sink, &r);
}

void sandbox_on_full(struct sandbox *s)
{
	int64_t now = clock_mono_ms();

	s->full_more++;
	s->full_why = s->nlean >= SANDBOX_REFUSED_MAX ?
			      REASON_MEMORY_EXCEEDED :
			      REASON_CONNECTIONS_EXCEEDED;
	if (s->full_until_ms && now < s->full_until_ms)
		return;
	s->full_until_ms = now + SANDBOX_FULL_MS;
	sandbox_tell_full(s);
}

void sandbox_end(struct sandbox *s, enum reason why)
{
	if (s->ending)
		return;
	s->ending = true;
	if (s->full_more)
		sandbox_tell_full(s);
	sandbox_close_sockets(s);
	conn_end_all(s, why);
}

void sandbox_drain(struct sandbox *s, void (*fn)(struct sandbox *s, void *arg),
		   void *arg)
{
	sandbox_close_doors(s);
	nflog_free(s->nflog);
	s->nflog = NULL;
	s->on_drained = fn;
	s->drained_arg = arg;
	sandbox_on_less(s);
}

uint64_t sandbox_memory_peak(const struct sandbox *s)
{
	return s->memory.peak;
}

uint64_t sandbox_over_budget(const struct sandbox *s)
{
	return dns_budget_refused(s->budget);
}

struct audit_sink *sandbox_free(struct sandbox *s)
{
	struct audit_sink *sink = s->sink;

	REQUIRE(s->ending && list_empty(&s->conns) && list_empty(&s->pool));
	list_del(&s->node);
	dns_budget_free(s->budget);
	name_map_free(s->names);
	name_pins_free(s->pins);
	/* Whatever was charged has been given back by now. */
	mem_account_done(&s->memory);
	quota_unref(s->quota);
	sched_queue_done(&s->turn);
	rules_unref(s->rules);
	mem_free(s->door);
	mem_free(s);
	return sink;
}

/* Is the address one that the launcher's self-test asks for? */
static bool is_self_test(const struct ip_addr *dst)
{
	char text[IP_TEXT_SIZE];

	if (dst->family == IP_NONE)
		return false;
	ip_addr_text(dst, text);
	return strcmp(text, PLUG_TEST_ADDR4) == 0 ||
	       strcmp(text, PLUG_TEST_ADDR6) == 0;
}

void sandbox_record(enum record_event event, enum record_act act,
		    enum reason reason, enum record_via via,
		    struct record *ret)
{
	*ret = (struct record){
		.event = event,
		.act = act,
		.reason = reason,
		.via = via,
		.rcode = -1,
		.dur_ms = -1,
	};
	id_new(&ret->id);
}

void sandbox_deny(struct sandbox *s, struct record *r)
{
	/* The command may ask for these addresses too, and then it counts. */
	if (s->self_tests_left > 0 &&
	    (is_self_test(&r->dst.addr) || is_self_test(&r->asked))) {
		s->self_tests_left--;
		r->internal = true;
	} else {
		s->flows_denied += r->count > 1 ? r->count : 1;
	}
	audit_tell(s->sink, r);
}
