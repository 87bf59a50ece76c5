/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn_kit.c - a sandbox to connect from, an Internet to connect to
 */
#include "tests/unit/conn_kit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <event2/event.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proxy/conn.h"
#include "proxy/quota.h"
#include "proxy/half.h"
#include "proxy/relay.h"
#include "resolver/name_map.h"
#include "resolver/name_pins.h"
#include "resolver/resolver.h"
#include "tests/unit/proxy_lab.h"

#define RECORDS_MAX	2048

struct kit kit;

const char kit_policy[] =
	"[policy]\n"
	"name = lab\n"
	"[allow web]\n"
	"hosts = api.example.org both.example.org dead.example.org"
	" gone.example.org hole.example.org\n"
	"addresses = 203.0.113.0/24 2001:db8:3::/48\n"
	"reason = lab origins\n"
	"[allow inside]\n"
	"hosts = inside.example.org\n"
	"[allow ssh]\n"
	"hosts = ssh.example.org\n"
	"ports = 22\n"
	"protocol = ssh\n"
	"addresses = 203.0.113.0/24\n"
	"reason = lab origins\n"
	"[allow literal]\n"
	"addresses = 203.0.113.40\n"
	"ports = 443\n"
	"protocol = https\n"
	"reason = lab origins\n";

/* --- the resolver -------------------------------------------------------------- */

static const struct {
	const char *name, *a, *aaaa;
} names[] = {
	{ "api.example.org", KIT_ORIGIN, NULL },
	{ "both.example.org", KIT_ORIGIN, "2001:db8:3::10" },
	{ "ssh.example.org", KIT_ORIGIN, NULL },
	{ "dead.example.org", "203.0.113.20", NULL },
	{ "hole.example.org", KIT_HOLE, NULL },
	{ "inside.example.org", "10.0.0.5", NULL },
	{ "gone.example.org", NULL, NULL },
};

int resolver_lookup(struct resolver *r, const struct resolver_asker *asker,
		    struct str name, enum resolver_type type, resolver_fn *fn,
		    void *arg, struct resolver_lookup **ret,
		    struct resolver_answer *ret_now)
{
	static struct ip_addr addr;
	size_t i;

	(void)r;
	(void)fn;
	(void)arg;
	(void)ret;
	assert_int_equal(asker->tenant, kit.sandbox.tenant);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		const char *text = type == RESOLVER_A ? names[i].a :
							names[i].aaaa;

		if (!str_eq(name, str_from(names[i].name)))
			continue;
		*ret_now = (struct resolver_answer){
			.reason = names[i].a ? REASON_DNS_NO_ADDRESS :
					       REASON_DNS_NXDOMAIN,
		};
		if (text) {
			assert_int_equal(ip_addr_parse(str_from(text), &addr),
					 0);
			*ret_now = (struct resolver_answer){
				.addr = &addr, .n = 1,
			};
		}
		return 1;
	}
	fail_msg("%.*s was looked up", STR_ARG(name));
	return -1;
}

enum reason resolver_charge(const struct resolver_asker *asker,
			    struct str name)
{
	assert_int_equal(asker->tenant, kit.sandbox.tenant);
	assert_true(name.n > 0);
	return kit.charge;
}

bool resolver_hides(struct str name)
{
	(void)name;
	return false;
}

void resolver_cancel(struct resolver_lookup *l)
{
	assert_null(l);
}

/* --- records --------------------------------------------------------------------- */

static struct record records[RECORDS_MAX];
static char text[RECORDS_MAX][5][256];
static size_t nrecords;

static struct str keep(char *to, struct str s)
{
	size_t n = MIN(s.n, (size_t)255);

	if (n)
		memcpy(to, s.p, n);
	to[n] = '\0';
	return str_make(to, n);
}

static void remember(const struct record *r)
{
	struct record *to = &records[nrecords];

	assert_true(nrecords < RECORDS_MAX);
	*to = *r;
	to->host = keep(text[nrecords][0], r->host);
	to->sni = keep(text[nrecords][1], r->sni);
	to->http_host = keep(text[nrecords][2], r->http_host);
	to->method = keep(text[nrecords][3], r->method);
	to->path = keep(text[nrecords][4], r->path);
	nrecords++;
}

int audit_post(struct audit_sink *s, const struct record *r)
{
	(void)s;
	if (kit.audit_down)
		return -1;
	remember(r);
	return 0;
}

void audit_tell(struct audit_sink *s, const struct record *r)
{
	(void)s;
	remember(r);
}

bool audit_ok(const struct audit_sink *s)
{
	(void)s;
	return !kit.audit_down;
}

void sandbox_record(enum record_event event, enum record_act act,
		    enum reason reason, enum record_via via,
		    struct record *ret)
{
	*ret = (struct record){ .event = event, .act = act, .reason = reason,
				.via = via, .rcode = -1, .dur_ms = -1 };
	id_new(&ret->id);
}

void sandbox_deny(struct sandbox *s, struct record *r)
{
	s->flows_denied++;
	audit_tell(s->sink, r);
}

size_t kit_records(void)
{
	return nrecords;
}

const struct record *kit_record(size_t i)
{
	while (i >= nrecords)
		lab_turn(kit.worker.base);
	return &records[i];
}

void kit_expect_record(size_t i, enum record_event event, enum record_act act,
		       enum reason reason, const char *host)
{
	const struct record *r = kit_record(i);

	assert_string_equal(record_event_word(r->event),
			    record_event_word(event));
	assert_string_equal(reason_word(r->reason), reason_word(reason));
	assert_string_equal(record_act_word(r->act), record_act_word(act));
	assert_string_equal(r->host.p, host);
}

/* --- worker and sandbox ----------------------------------------------------------- */

void worker_reclaim(struct worker *w)
{
	event_active(w->reclaim, 0, 0);
}

void worker_keep(struct worker *w)
{
	assert_ptr_equal(w, &kit.worker);
	kit.keep = true;
}

static void reclaim_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	conn_reclaim(arg);
}

static void on_diag(void *arg, const struct rules_diag *d)
{
	(void)arg;
	if (d->severity == RULES_ERROR)
		fail_msg("%s:%u: %s", d->file, d->line, d->message);
}

static struct ruleset *compile(const char *policy)
{
	const struct rules_source source = { .name = "lab.ini", .text = str_from(policy) };
	struct ruleset *rules = NULL;

	assert_int_equal(rules_compile(&source, 1, on_diag, NULL, &rules), 0);
	return rules;
}

static size_t fds_before;

int kit_setup(void **state)
{
	struct worker *w = &kit.worker;
	struct sandbox *s = &kit.sandbox;

	(void)state;
	fds_before = lab_open_fds();
	memset(&kit, 0, sizeof(kit));
	nrecords = 0;
	w->base = event_base_new();
	assert_int_equal(half_loop_new(w->base, &w->halves), 0);
	list_init(&w->dead);
	list_init(&w->sandboxes);
	w->reclaim = event_new(w->base, -1, 0, reclaim_cb, w);
	assert_int_equal(relay_pool_new(&w->relay), 0);
	s->worker = w;
	list_init(&s->conns);
	list_init(&s->pool);
	s->pool_ms = 1;
	s->tenant = 42;
	memcpy(s->run, "7f3a91", 7);
	assert_int_equal(name_map_new(1 << 20, &s->names), 0);
	assert_int_equal(name_pins_new(1 << 20, &s->pins), 0);
	s->rules = compile(kit_policy);
	assert_int_equal(quota_new(s->rules, NULL, &s->quota), 0);
	mem_account_init(&s->memory, quota_memory(s->quota));
	name_map_set_owner(s->names, &s->memory);
	name_pins_set_owner(s->pins, &s->memory);
	return 0;
}

struct conn_rejudged kit_set_policy(const char *policy)
{
	struct sandbox *s = &kit.sandbox;
	struct ruleset *old = s->rules;
	struct conn_rejudged what;

	s->rules = compile(policy);
	quota_set_rules(s->quota, s->rules);
	conn_rejudge_all(s, REASON_POLICY_RELOAD, &what);
	rules_unref(old);
	return what;
}

int kit_teardown(void **state)
{
	struct worker *w = &kit.worker;

	(void)state;
	conn_end_all(&kit.sandbox, REASON_RUN_ENDED);
	lab_turn(w->base);
	assert_int_equal(kit.sandbox.nconns, 0);
	assert_true(list_empty(&kit.sandbox.conns));
	assert_true(list_empty(&kit.sandbox.pool));
	/* But the halves', of which none is left. */
	assert_int_equal(event_base_get_num_events(w->base,
			 EVENT_BASE_COUNT_ADDED), 1);
	half_loop_free(w->halves);
	assert_int_equal(event_base_get_num_events(w->base,
			 EVENT_BASE_COUNT_ADDED), 0);
	/* Whoever was let in has left: unref insists on it. */
	name_map_free(kit.sandbox.names);
	name_pins_free(kit.sandbox.pins);
	/* Whatever was held for it is held no more: so insists this. */
	assert_int_equal(kit.sandbox.memory.used, 0);
	mem_account_done(&kit.sandbox.memory);
	assert_int_equal(kit.sandbox.nlean, 0);
	quota_unref(kit.sandbox.quota);
	rules_unref(kit.sandbox.rules);
	relay_pool_free(w->relay);
	event_free(w->reclaim);
	event_base_free(w->base);
	assert_int_equal(lab_open_fds(), fds_before);
	return 0;
}

int kit_transparent(const char *addr, uint16_t port)
{
	int door = lab_listen(addr, port, NULL);
	int client = lab_connect(addr, port);

	conn_start_transparent(&kit.sandbox, lab_accept(door), &lab_src);
	close(door);
	return client;
}

int kit_explicit(void)
{
	uint16_t port;
	int door = lab_listen("127.0.0.1", 0, &port);
	int client = lab_connect("127.0.0.1", port);

	conn_start_explicit(&kit.sandbox, lab_accept(door), &lab_src);
	close(door);
	return client;
}

const char *kit_synthetic(const char *name)
{
	static char out[IP_TEXT_SIZE];
	const struct id question = { { 0xd5 } };
	struct ip_addr a;

	assert_int_equal(name_map_give(kit.sandbox.names, str_from(name),
				       IP_V4, &question, &a), 0);
	ip_addr_text(&a, out);
	return out;
}

/* --- TLS ---------------------------------------------------------------------------- */

static size_t put16(uint8_t *p, size_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return 2;
}

struct str kit_hello(const char *name)
{
	static uint8_t b[512];
	uint8_t *p = b + 5 + 4;		/* behind both heads */
	size_t n = name ? strlen(name) : 0, body;

	memset(b, 0, sizeof(b));
	p += put16(p, 0x0303);
	memset(p, 0x5a, 32);		/* random */
	p += 32;
	*p++ = 0;			/* no session */
	p += put16(p, 2);
	p += put16(p, 0x1301);
	*p++ = 1;
	*p++ = 0;			/* no compression */
	p += put16(p, 4 + 5 + (name ? 9 + n : 0));
	if (name) {
		p += put16(p, 0);	/* server_name */
		p += put16(p, n + 5);
		p += put16(p, n + 3);
		*p++ = 0;
		p += put16(p, n);
		memcpy(p, name, n);
		p += n;
	}
	p += put16(p, 0x002b);		/* supported_versions */
	p += put16(p, 5);
	*p++ = 4;
	p += put16(p, 0x0304);
	p += put16(p, 0x0303);
	body = (size_t)(p - b) - 5 - 4;
	b[0] = 0x16;
	put16(b + 1, 0x0301);
	put16(b + 3, body + 4);
	b[5] = 1;
	put16(b + 7, body);
	return str_make(b, (size_t)(p - b));
}

bool kit_was_dialled(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int kit_accept_turning(int listener)
{
	lab_wait_readable(BASE, listener);
	return lab_accept(listener);
}

void kit_expect_bytes(int fd, struct str want)
{
	char got[1024];

	assert_true(want.n <= sizeof(got));
	lab_recv(BASE, fd, got, want.n);
	assert_memory_equal(got, want.p, want.n);
}

int kit_connect_to(const char *authority)
{
	char head[512];
	int fd = kit_explicit();

	assert_true(snprintf(head, sizeof(head), "CONNECT %s HTTP/1.1\r\n"
			     "Host: %s\r\n\r\n", authority, authority) > 0);
	lab_send(BASE, fd, str_from(head));
	return fd;
}

bool kit_same_id(size_t a, size_t b)
{
	return memcmp(&kit_record(a)->id, &kit_record(b)->id,
		      sizeof(struct id)) == 0;
}

void kit_expect_head(int fd, const char *want)
{
	char got[4096];
	size_t n = 0;

	do {
		assert_true(n < sizeof(got) - 1);
		lab_recv(BASE, fd, got + n, 1);
		got[++n] = '\0';
	} while (n < 4 || strcmp(got + n - 4, "\r\n\r\n"));
	if (!strstr(got, want))
		fail_msg("no '%s' in:\n%s", want, got);
}

void kit_request(int fd, const char *target, const char *host)
{
	char head[512];

	assert_true(snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\n"
			     "Host: %s\r\n\r\n", target, host) > 0);
	lab_send(BASE, fd, str_from(head));
}
