/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door_test.c - a sandbox's questions, from its side of the door
 */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/writer.h"
#include "base/fd.h"
#include "base/mem.h"
#include "resolver/dns_door.h"
#include "resolver/name_map.h"
#include "rules/rules.h"
#include "tests/unit/dns_lab.h"

#define ATTEMPT_MS	60
#define GUARD_S		90
#define ASKED		"127.0.0.9"	/* what a program takes for its server */

static const char policy[] =
	"[policy]\nname = p\n"
	"[allow lab]\n"
	"hosts = api.example.com v4.example.com v6.example.com "
	"mixed.example.com private.example.com meta.example.com "
	"half.example.com gone.example.com fail.example.com fail6.example.com "
	"silent.example.com late.example.com chain.example.com "
	"loop.example.com own.example.com *.wide.example.com\n"
	"addresses = 203.0.113.0/24 2001:db8:3::/48\nreason = the lab\n";

static struct event_base *base;
static struct audit_writer *writer;
static struct resolver *resolver;
static struct fake *upstream;
static struct name_map *names;
static struct dns_door *door;
static struct audit_sink *sink;
static struct ruleset *rules;
static const struct ip_hosts *no_hosts;
static int log_fd = -1, client = -1, client6 = -1;
static bool hold;		/* the server keeps silent about "late" */

/* --- the world ------------------------------------------------------------- */

static void zone_add(struct fake_records *r, const struct fake_ask *ask,
		     const char *owner, const char *v4, const char *v6)
{
	const char *addr = ask->q.type == DNS_TYPE_A ? v4 : v6;

	if (addr)
		fake_add_a(r, owner, addr, 300);
}

static void zone(void *arg, const struct fake_ask *ask)
{
	static const struct {
		const char *name, *v4, *v6;
	} table[] = {
		{ "api.example.com", "203.0.113.7", "2001:db8:3::7" },
		{ "v4.example.com", "203.0.113.8", NULL },
		{ "v6.example.com", NULL, "2001:db8:3::8" },
		{ "private.example.com", "10.0.0.1", "fd00::1" },
		{ "meta.example.com", "169.254.169.254", NULL },
		{ "half.example.com", "10.0.0.1", "2001:db8:3::9" },
		{ "late.example.com", "203.0.113.9", "2001:db8:3::9" },
		{ "own.example.com", "198.18.1.0", "fd70:656e:7374:6f63::100" },
		{ "new.example.net", "1.2.3.4", NULL },
	};
	const char *name = ask->q.text;
	struct fake_records r = { .n = 0 };

	(void)arg;
	if (!strcmp(name, "silent.example.com") ||
	    (hold && !strcmp(name, "late.example.com")))
		return;
	if (!strcmp(name, "gone.example.com")) {
		fake_answer(ask, &r, DNS_NXDOMAIN);
		return;
	}
	if (!strcmp(name, "fail.example.com") ||
	    (!strcmp(name, "fail6.example.com") && ask->q.type != DNS_TYPE_A)) {
		fake_answer(ask, &r, DNS_SERVFAIL);
		return;
	}
	if (!strcmp(name, "mixed.example.com")) {
		zone_add(&r, ask, name, "10.0.0.1", "::1");
		zone_add(&r, ask, name, "203.0.113.9", "2001:db8:3::9");
	} else if (!strcmp(name, "chain.example.com")) {
		fake_add_cname(&r, name, "edge.cdn.example.net", 300);
		zone_add(&r, ask, "edge.cdn.example.net", "203.0.113.20", NULL);
	} else if (!strcmp(name, "loop.example.com")) {
		fake_add_cname(&r, name, "b.example.com", 300);
		fake_add_cname(&r, "b.example.com", name, 300);
	} else if (!strcmp(name, "fail6.example.com") ||
		   strstr(name, ".wide.example.com")) {
		zone_add(&r, ask, name, "203.0.113.10", "2001:db8:3::10");
	}
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		if (!strcmp(name, table[i].name))
			zone_add(&r, ask, name, table[i].v4, table[i].v6);
	}
	fake_answer(ask, &r, 0);
}

/* --- the door -------------------------------------------------------------- */

static int bound(int family, int type)
{
	struct sockaddr_storage ss = { .ss_family = (sa_family_t)family };
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;

	assert_true(fd >= 0);
	if (family == AF_INET6) {
		struct sockaddr_in6 a = { .sin6_family = AF_INET6,
					  .sin6_port = htons(53) };

		memcpy(&ss, &a, sizeof(a));
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on,
					    sizeof(on)), 0);
	} else {
		struct sockaddr_in a = { .sin_family = AF_INET,
					 .sin_port = htons(53) };

		memcpy(&ss, &a, sizeof(a));
	}
	if (type == SOCK_DGRAM && family == AF_INET)
		assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on,
					    sizeof(on)), 0);
	if (type == SOCK_DGRAM && family == AF_INET6)
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6,
					    IPV6_RECVPKTINFO, &on,
					    sizeof(on)), 0);
	if (type == SOCK_STREAM)
		/* The clients of the test before left it in TIME_WAIT. */
		assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on,
					    sizeof(on)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&ss, family == AF_INET ?
			      sizeof(struct sockaddr_in) :
			      sizeof(struct sockaddr_in6)), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 128), 0);
	return fd;
}

static int connected(int type, const char *to)
{
	struct ip_endpoint at = { .port = 53 };
	struct sockaddr_storage ss;
	socklen_t n;
	int fd;

	assert_int_equal(ip_addr_parse(str_from(to), &at.addr), 0);
	n = ip_endpoint_to_sockaddr(&at, &ss);
	fd = socket(ss.ss_family, type | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&ss, n), 0);
	return fd;
}

static struct ruleset *compile(const char *text)
{
	struct rules_source source = { "p.ini", str_from(text) };
	struct ruleset *rs = NULL;

	assert_int_equal(rules_compile(&source, 1, NULL, NULL, &rs), 0);
	return rs;
}

static void open_door(const char *text, size_t names_budget, int record_fd)
{
	static const struct record_labels labels = {
		.run = "run", .policy = "p@sha256:0", .mode = "enforce",
	};
	struct dns_door_config config = {
		.base = base, .resolver = resolver, .hosts = &no_hosts,
		.tenant = 1, .hostname = "box", .nonce = "abc123",
	};

	rules = compile(text);
	assert_int_equal(name_map_new(names_budget, &names), 0);
	assert_int_equal(audit_sink_new(writer, record_fd, &labels, &sink), 0);
	config.rules = rules;
	config.names = names;
	config.sink = sink;
	config.fd[DNS_UDP4] = bound(AF_INET, SOCK_DGRAM);
	config.fd[DNS_UDP6] = bound(AF_INET6, SOCK_DGRAM);
	config.fd[DNS_TCP4] = bound(AF_INET, SOCK_STREAM);
	config.fd[DNS_TCP6] = bound(AF_INET6, SOCK_STREAM);
	assert_int_equal(dns_door_new(&config, &door), 0);
	client = connected(SOCK_DGRAM, ASKED);
	client6 = connected(SOCK_DGRAM, "::1");
}

static void close_door(void)
{
	dns_door_free(door);
	door = NULL;
	rules_unref(rules);
	rules = NULL;
	name_map_free(names);
	names = NULL;
	if (sink)
		audit_sink_free(sink);
	sink = NULL;
	fd_closep(&client);
	fd_closep(&client6);
}

static void reopen(const char *text, size_t names_budget, int record_fd)
{
	close_door();
	open_door(text, names_budget, record_fd);
}

static int log_file(void)
{
	fd_closep(&log_fd);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	assert_true(log_fd >= 0);
	return dup(log_fd);
}

static int setup(void **state)
{
	const struct dns_upstream_config config = {
		.base = base, .attempt_ms = ATTEMPT_MS,
		.attempts_until_ms = 4 * ATTEMPT_MS,
	};
	struct ip_endpoint server = { .port = 5300 };

	(void)state;
	alarm(GUARD_S);
	hold = false;
	assert_int_equal(ip_addr_parse(STR("127.0.0.1"), &server.addr), 0);
	assert_int_equal(resolver_new_with(&config, &resolver), 0);
	assert_int_equal(resolver_set_servers(resolver, &server, 1), 0);
	upstream = fake_new(base, "127.0.0.1", 5300, zone, NULL);
	open_door(policy, 1 << 20, log_file());
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close_door();
	resolver_free(resolver);
	fake_free(upstream);
	fd_closep(&log_fd);
	return 0;
}

/* --- asking ---------------------------------------------------------------- */

struct msg {
	uint8_t p[8192];
	size_t n;
};

static uint16_t next_id = 1;

static void question(struct msg *m, const char *name, unsigned type, bool edns)
{
	struct dns_name wire;

	memset(m->p, 0, 12);
	assert_int_equal(dns_name_from_text(str_from(name), &wire), 0);
	dns_put16(m->p, next_id++);
	m->p[2] = 1;
	m->p[5] = 1;
	memcpy(m->p + 12, wire.b, wire.n);
	m->n = 12u + wire.n;
	dns_put16(m->p + m->n, (uint16_t)type);
	dns_put16(m->p + m->n + 2, 1);
	m->n += 4;
	if (!edns)
		return;
	m->p[11] = 1;
	memcpy(m->p + m->n, "\0\0\x29\x10\0\0\0\0\0\0\0", 11);
	m->n += 11;
}

static void turn(void)
{
	assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

/* What the loop has to do now, without waiting for more. */
static void turn_idle(void)
{
	for (int i = 0; i < 20; i++)
		assert_int_not_equal(event_base_loop(base, EVLOOP_NONBLOCK),
				     -1);
}

struct reply {
	struct msg m;
	unsigned rcode, answers;
	struct ip_addr addr;	/* of the first answer */
	uint32_t ttl;
	int ede;		/* -1: none */
	char why[80];
};

static void read_opt(struct reply *r, const struct dns_record *rr)
{
	const uint8_t *p = r->m.p + rr->data;

	r->rcode |= rr->ttl >> 24 << 4;
	if (rr->data_n < 6)
		return;
	assert_int_equal(dns_get16(p), 15);
	assert_int_equal(dns_get16(p + 2), rr->data_n - 4);
	r->ede = dns_get16(p + 4);
	memcpy(r->why, p + 6, rr->data_n - 6u);
	r->why[rr->data_n - 6] = '\0';
}

static void read_reply(struct reply *r)
{
	struct dns_name name;
	struct dns_record rr;
	size_t off = 12;
	unsigned rest;

	assert_true(r->m.n >= 12 && (r->m.p[2] & 0x80));
	r->rcode = r->m.p[3] & 0xf;
	r->answers = dns_get16(r->m.p + 6);
	r->addr = (struct ip_addr){ .family = IP_NONE };
	r->ttl = 0;
	r->ede = -1;
	r->why[0] = '\0';
	if (dns_get16(r->m.p + 4)) {
		assert_int_equal(dns_name_read(r->m.p, r->m.n, off, &name,
					       &off), 0);
		off += 4;
	}
	rest = r->answers + dns_get16(r->m.p + 8) + dns_get16(r->m.p + 10);
	for (unsigned i = 0; i < rest; i++) {
		assert_int_equal(dns_record_read(r->m.p, r->m.n, &off, &rr), 0);
		if (rr.type == DNS_TYPE_OPT)
			read_opt(r, &rr);
		if (i > 0 || r->answers == 0)
			continue;
		r->ttl = rr.ttl;
		if (rr.type == DNS_TYPE_PTR)
			continue;
		r->addr.family = rr.data_n == 4 ? IP_V4 : IP_V6;
		memcpy(r->addr.b, r->m.p + rr.data, rr.data_n);
	}
	assert_int_equal(off, r->m.n);
}

static void receive(int fd, struct reply *r)
{
	ssize_t n;

	while ((n = recv(fd, r->m.p, sizeof(r->m.p), MSG_DONTWAIT)) < 0) {
		assert_int_equal(errno, EAGAIN);
		turn();
	}
	r->m.n = (size_t)n;
	read_reply(r);
}

static void exchange(const struct msg *m, struct reply *r)
{
	assert_int_equal(send(client, m->p, m->n, 0), (ssize_t)m->n);
	receive(client, r);
	assert_memory_equal(r->m.p, m->p, 2);
}

static void ask(struct reply *r, const char *name, unsigned type)
{
	struct msg m;

	question(&m, name, type, true);
	exchange(&m, r);
}

static void assert_addr(const struct ip_addr *a, const char *want)
{
	char text[IP_TEXT_SIZE];

	assert_int_not_equal(a->family, IP_NONE);
	ip_addr_text(a, text);
	assert_string_equal(text, want);
}

static void assert_no(const struct reply *r, unsigned rcode, int ede,
		      const char *why)
{
	assert_int_equal(r->rcode, rcode);
	assert_int_equal(r->answers, 0);
	assert_int_equal(r->ede, ede);
	assert_string_equal(r->why, why);
}

/* All records so far; the caller frees with mem_free(). */
static char *records(void)
{
	off_t end;
	char *text;

	assert_int_equal(audit_sink_flush(sink, 10000), 0);
	end = lseek(log_fd, 0, SEEK_END);
	assert_true(end >= 0);
	text = mem_new((size_t)end + 1);
	assert_non_null(text);
	assert_int_equal(pread(log_fd, text, (size_t)end, 0), end);
	return text;
}

static unsigned count_records(const char *part)
{
	char *text = records();
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, part)) != NULL; p++)
		n++;
	mem_free(text);
	return n;
}

/* The last record has all of these in it. */
static void assert_last(const char *const part[])
{
	char *text = records(), *line = text;
	size_t n = strlen(text);

	assert_true(n > 0 && text[n - 1] == '\n');
	text[n - 1] = '\0';
	if (strrchr(text, '\n'))
		line = strrchr(text, '\n') + 1;
	for (; *part; part++) {
		if (!strstr(line, *part))
			fail_msg("no %s in %s", *part, line);
	}
	mem_free(text);
}

#define LAST(...)	assert_last((const char *const[]){ __VA_ARGS__, NULL })

/* --- policy ---------------------------------------------------------------- */

static void an_allowed_name_gets_its_synthetic_addresses(void **state)
{
	struct reply r;
	struct str name;
	struct id id;

	(void)state;
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.rcode, 0);
	assert_int_equal(r.answers, 1);
	assert_addr(&r.addr, "198.18.1.0");
	assert_int_equal(r.ttl, 60);
	assert_int_equal(r.ede, -1);
	/* DNS-32: known before the reply was there. */
	assert_true(name_map_find(names, &r.addr, &name, &id));
	assert_true(str_eq(name, STR("api.example.com")));
	LAST("\"dns\"", "\"allow\"", "\"api.example.com\"", "\"A\"",
	     "198.18.1.0", "\"udp\"", ASKED);
	ask(&r, "api.example.com", DNS_TYPE_AAAA);
	assert_addr(&r.addr, "fd70:656e:7374:6f63::100");
	ask(&r, "API.example.com", DNS_TYPE_A);
	assert_addr(&r.addr, "198.18.1.0");
	assert_int_equal(fake_count(upstream), 2);
	assert_int_equal(count_records("\n"), 3);
}

static void dns_02_a_denied_name_leads_to_no_packet(void **state)
{
	static const char *const denied[] = {
		"c2vjcmv0.denied.example.net", "example.net",
		"x.api.example.com", "apiexample.com",
		"metadata.google.internal", "127.1", "2130706433", "192.0.2.1",
	};
	struct reply r;
	struct msg m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(denied); i++) {
		ask(&r, denied[i], i % 2 ? DNS_TYPE_A : DNS_TYPE_AAAA);
		assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	}
	LAST("\"deny\"", "\"host_not_allowed\"", "\"192.0.2.1\"");
	question(&m, "denied.example.net", DNS_TYPE_A, false);
	exchange(&m, &r);
	assert_no(&r, DNS_NXDOMAIN, -1, "");
	assert_int_equal(fake_count(upstream), 0);
	assert_int_equal(name_map_count(names), 0);
}

static void names_that_are_no_host_names_are_denied(void **state)
{
	struct reply r;
	struct msg m;

	(void)state;
	question(&m, "apiXexample.com", DNS_TYPE_A, true);
	m.p[12 + 4] = '.';	/* one label "api.example", then "com" */
	exchange(&m, &r);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	question(&m, "a.wide.example.com", DNS_TYPE_A, true);
	m.p[13] = 0x1b;
	exchange(&m, &r);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	LAST("\\u001b.wide");
	assert_int_equal(fake_count(upstream), 0);
}

static void dns_09_ancestors_of_allowed_names_exist(void **state)
{
	static const char *const ancestors[] = {
		"example.com", "com", "wide.example.com", "",
	};
	struct reply r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ancestors); i++) {
		ask(&r, ancestors[i], DNS_TYPE_A);
		assert_int_equal(r.rcode, DNS_NOERROR);
		assert_int_equal(r.answers, 0);
		assert_int_equal(r.m.p[9], 1);		/* an SOA */
	}
	assert_int_equal(fake_count(upstream), 0);
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
}

static void dns_21_other_types_of_allowed_names_have_no_data(void **state)
{
	static const uint16_t types[] = { 65, 64, 16, 15, 33, 2, 6, 12, 257 };
	struct reply r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		ask(&r, "api.example.com", types[i]);
		assert_no(&r, DNS_NOERROR, 17, "type_not_allowed");
		ask(&r, "denied.example.net", types[i]);
		assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	}
	assert_int_equal(fake_count(upstream), 0);
}

static void questions_that_are_a_channel_are_refused(void **state)
{
	static const uint16_t types[] = { 0, 10, 41, 249, 250, 251, 252, 255 };
	struct reply r;
	struct msg m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		ask(&r, "api.example.com", types[i]);
		assert_no(&r, DNS_REFUSED, 17, "type_not_allowed");
	}
	question(&m, "version.bind", DNS_TYPE_TXT, false);
	m.p[m.n - 1] = 3;	/* CHAOS */
	exchange(&m, &r);
	assert_int_equal(r.rcode, DNS_REFUSED);
	assert_int_equal(fake_count(upstream), 0);
}

static void dns_30_local_names_are_answered_here(void **state)
{
	static const struct {
		const char *name, *v4, *v6;
	} cases[] = {
		{ "localhost", "127.0.0.1", "::1" },
		{ "x.y.localhost", "127.0.0.1", "::1" },
		{ "box", "127.0.0.1", "::1" },
	};
	static const char *const none[] = {
		"host.local", "_x._tcp.local", "x.invalid", "x.onion",
		"8.8.8.8.in-addr.arpa", "1.0.0.10.in-addr.arpa",
		"256.0.0.10.in-addr.arpa", "1.1.0.0.10.in-addr.arpa",
		"g.ip6.arpa",
	};
	struct reply r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ask(&r, cases[i].name, DNS_TYPE_A);
		assert_addr(&r.addr, cases[i].v4);
		ask(&r, cases[i].name, DNS_TYPE_AAAA);
		assert_addr(&r.addr, cases[i].v6);
		ask(&r, cases[i].name, DNS_TYPE_TXT);
		assert_no(&r, DNS_NOERROR, -1, "");
	}
	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		ask(&r, none[i], i % 2 ? DNS_TYPE_PTR : DNS_TYPE_A);
		assert_int_equal(r.rcode, DNS_NXDOMAIN);
	}
	ask(&r, "10.in-addr.arpa", DNS_TYPE_PTR);
	assert_no(&r, DNS_NOERROR, -1, "");
	assert_int_equal(fake_count(upstream), 0);
}

static void assert_ptr(const char *name, const char *want)
{
	struct dns_name wire;
	struct reply r;

	assert_int_equal(dns_name_from_text(str_from(want), &wire), 0);
	ask(&r, name, DNS_TYPE_PTR);
	assert_int_equal(r.answers, 1);
	/* The OPT is behind it. */
	assert_memory_equal(r.m.p + r.m.n - 11 - wire.n, wire.b, wire.n);
}

static void addresses_that_are_ours_lead_back_to_names(void **state)
{
	struct reply r;

	(void)state;
	assert_ptr("1.0.0.127.in-addr.arpa", "localhost");
	assert_ptr("1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0."
		   "0.0.0.ip6.arpa", "localhost");
	assert_ptr("1.2.0.192.in-addr.arpa", "box");
	ask(&r, "0.1.18.198.in-addr.arpa", DNS_TYPE_PTR);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_ptr("0.1.18.198.in-addr.arpa", "api.example.com");
	ask(&r, "api.example.com", DNS_TYPE_AAAA);
	assert_ptr("0.0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.3.6.f.6.4.7.3.7.e.6.5.6.0."
		   "7.d.f.ip6.arpa", "api.example.com");
}

static void dns_18_a_chain_has_the_permission_of_its_owner(void **state)
{
	struct reply r;

	(void)state;
	ask(&r, "chain.example.com", DNS_TYPE_A);
	assert_addr(&r.addr, "198.18.1.0");
	ask(&r, "edge.cdn.example.net", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	assert_int_equal(fake_count(upstream), 1);
}

static void dns_19_a_chain_without_end_fails(void **state)
{
	struct reply r;

	(void)state;
	ask(&r, "loop.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_SERVFAIL, 22, "dns_failed");
}

static void keep_bytes(void *arg, const struct fake_ask *fa)
{
	struct msg *m = arg;

	m->n = fa->n;
	memcpy(m->p, fa->p, fa->n);
	/* What may vary: the id and the case of the letters. */
	m->p[0] = m->p[1] = 0;
	for (size_t i = 12; i < m->n; i++)
		m->p[i] = (uint8_t)ascii_lower((char)m->p[i]);
	zone(NULL, fa);
}

static void dns_16_nothing_of_the_clients_leaves_but_the_name(void **state)
{
	struct msg seen[3], m;
	struct reply r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(seen); i++) {
		struct ip_endpoint server = { .port = 5300 };

		fake_free(upstream);
		upstream = fake_new(base, "127.0.0.1", 5300, keep_bytes,
				    &seen[i]);
		assert_int_equal(ip_addr_parse(STR("127.0.0.1"), &server.addr),
				 0);
		/* Empties the cache. */
		assert_int_equal(resolver_set_servers(resolver, &server, 1), 0);
		question(&m, i == 1 ? "API.eXaMpLe.com" : "api.example.com",
			 DNS_TYPE_A, i > 0);
		m.p[2] = i == 2 ? 0 : 1;	/* RD */
		m.p[3] = i == 1 ? 0x70 : 0;	/* Z, AD, CD */
		if (i == 2) {
			memcpy(m.p + m.n - 11,
			       "\0\0\x29\x10\0\0\0\x80\0\0\x0a"
			       "\xfd\xe9\0\6secret", 21);
			m.n += 10;
		}
		exchange(&m, &r);
		assert_int_equal(r.answers, 1);
		assert_int_equal(seen[i].n, seen[0].n);
		assert_memory_equal(seen[i].p, seen[0].p, seen[0].n);
	}
}

/* --- what the world says --------------------------------------------------- */

static void filtered_addresses_are_no_addresses(void **state)
{
	struct reply r;

	(void)state;
	ask(&r, "private.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "address_private");
	LAST("\"deny\"", "\"address_private\"", "\"private.example.com\"");
	ask(&r, "private.example.com", DNS_TYPE_AAAA);
	assert_no(&r, DNS_NXDOMAIN, 15, "address_private");
	ask(&r, "meta.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "address_metadata");
	/* One good one among them is enough. */
	ask(&r, "mixed.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	ask(&r, "mixed.example.com", DNS_TYPE_AAAA);
	assert_int_equal(r.answers, 1);
	/* A name that lives on in the other family exists. */
	ask(&r, "half.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NOERROR, 15, "address_private");
	ask(&r, "half.example.com", DNS_TYPE_AAAA);
	assert_int_equal(r.answers, 1);
	/* The world cannot give out our own. */
	ask(&r, "own.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "address_reserved");
}

static void dns_06_a_family_that_is_missing_is_no_error(void **state)
{
	struct reply r;

	(void)state;
	ask(&r, "v4.example.com", DNS_TYPE_AAAA);
	assert_no(&r, DNS_NOERROR, -1, "");
	assert_int_equal(r.m.p[9], 1);
	ask(&r, "v4.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	ask(&r, "v6.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NOERROR, -1, "");
	ask(&r, "v6.example.com", DNS_TYPE_AAAA);
	assert_int_equal(r.answers, 1);
}

static void dns_23_a_failure_of_aaaa_does_not_hide_a(void **state)
{
	struct reply r;

	(void)state;
	ask(&r, "fail6.example.com", DNS_TYPE_AAAA);
	assert_int_equal(r.rcode, DNS_NOERROR);
	assert_int_equal(r.answers, 0);
	ask(&r, "fail6.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
}

static void policy_and_outage_do_not_look_alike(void **state)
{
	struct reply r;

	(void)state;
	ask(&r, "gone.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, -1, "");
	LAST("\"error\"", "\"dns_nxdomain\"");
	ask(&r, "fail.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_SERVFAIL, 22, "dns_failed");
	ask(&r, "fail.example.com", DNS_TYPE_AAAA);
	assert_no(&r, DNS_SERVFAIL, 22, "dns_failed");
	ask(&r, "silent.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_SERVFAIL, 22, "dns_timeout");
	LAST("\"error\"", "\"dns_timeout\"");
}

/* --- limits and malformed messages ----------------------------------------- */

static void names_that_are_used_up_are_refused(void **state)
{
	char name[64];
	struct reply r;
	unsigned i = 0;

	(void)state;
	reopen(policy, 8 << 10, log_file());
	do {
		snprintf(name, sizeof(name), "n%u.wide.example.com", i++);
		ask(&r, name, DNS_TYPE_A);
	} while (r.rcode == 0 && i < 1000);
	assert_no(&r, DNS_REFUSED, 18, "names_exceeded");
	assert_true(i > 10);
	ask(&r, "n0.wide.example.com", DNS_TYPE_A);
	assert_addr(&r.addr, "198.18.1.0");
}

static void dns_34_questions_that_wait_are_bounded(void **state)
{
	char name[64];
	struct reply r;
	struct msg m;
	unsigned timeouts = 0, exceeded = 0;

	(void)state;
	hold = true;
	/* Distinct names, so that each is a lookup of its own. */
	fake_free(upstream);
	upstream = NULL;
	for (unsigned i = 0; i < DNS_QUERIES_MAX + 5; i++) {
		snprintf(name, sizeof(name), "n%u.wide.example.com", i);
		question(&m, name, DNS_TYPE_A, true);
		assert_int_equal(send(client, m.p, m.n, 0), (ssize_t)m.n);
		if (i % 8 == 7)
			assert_int_not_equal(event_base_loop(base,
						EVLOOP_NONBLOCK), -1);
	}
	for (unsigned i = 0; i < DNS_QUERIES_MAX + 5; i++) {
		receive(client, &r);
		assert_int_equal(r.rcode, DNS_SERVFAIL);
		exceeded += !strcmp(r.why, "queries_exceeded");
		timeouts += !strcmp(r.why, "dns_timeout") ||
			    !strcmp(r.why, "dns_failed");
	}
	assert_int_equal(exceeded + timeouts, DNS_QUERIES_MAX + 5);
	assert_int_equal(door->nqueries, 0);
	assert_int_equal(resolver_sockets(resolver), 0);
}

static void what_waits_at_most_is_said(void **state)
{
	char name[64];
	struct reply r;
	struct msg m;

	(void)state;
	reopen("[policy]\nname = p\n[allow a]\nhosts = *.silent.example.com\n",
	       1 << 20, log_file());
	fake_free(upstream);
	upstream = NULL;	/* nobody reads: a bound socket that is silent */
	int mute = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons(5300),
				  .sin_addr.s_addr = htonl(0x7f000001) };

	assert_int_equal(bind(mute, (struct sockaddr *)&at, sizeof(at)), 0);
	for (unsigned i = 0; door->nqueries < DNS_QUERIES_MAX; i++) {
		snprintf(name, sizeof(name), "n%u.silent.example.com", i);
		question(&m, name, DNS_TYPE_A, true);
		assert_int_equal(send(client, m.p, m.n, 0), (ssize_t)m.n);
		turn();
	}
	question(&m, "more.silent.example.com", DNS_TYPE_A, true);
	assert_int_equal(send(client, m.p, m.n, 0), (ssize_t)m.n);
	do {
		receive(client, &r);
	} while (memcmp(r.m.p, m.p, 2) != 0);
	assert_int_equal(r.rcode, DNS_SERVFAIL);
	assert_string_equal(r.why, "queries_exceeded");
	close(mute);
}

static void malformed_questions_are_told_so_or_dropped(void **state)
{
	struct reply r;
	struct msg m;

	(void)state;
	question(&m, "api.example.com", DNS_TYPE_A, false);
	m.p[5] = 2;
	exchange(&m, &r);
	assert_int_equal(r.rcode, DNS_FORMERR);
	LAST("\"query_malformed\"", "\"deny\"");
	question(&m, "api.example.com", DNS_TYPE_A, false);
	m.p[2] = 4 << 3;
	exchange(&m, &r);
	assert_int_equal(r.rcode, DNS_NOTIMP);
	question(&m, "api.example.com", DNS_TYPE_A, true);
	m.p[m.n - 5] = 1;		/* DNS-15: EDNS version 1 */
	exchange(&m, &r);
	assert_int_equal(r.rcode, DNS_BADVERS);
	question(&m, "api.example.com", DNS_TYPE_A, true);
	m.n = 5000;			/* more than is read */
	assert_int_equal(send(client, m.p, m.n, 0), (ssize_t)m.n);
	receive(client, &r);
	assert_int_equal(r.rcode, DNS_FORMERR);
	/* A response and a stump get nothing; the next one is answered. */
	question(&m, "localhost", DNS_TYPE_A, false);
	m.p[2] |= 0x80;
	assert_int_equal(send(client, m.p, m.n, 0), (ssize_t)m.n);
	assert_int_equal(send(client, m.p, 11, 0), 11);
	assert_int_equal(send(client, m.p, 0, 0), 0);
	ask(&r, "localhost", DNS_TYPE_A);
	assert_addr(&r.addr, "127.0.0.1");
}

static void what_cannot_be_recorded_is_not_resolved(void **state)
{
	struct reply r;
	int pipe_fd[2];

	(void)state;
	assert_int_equal(pipe(pipe_fd), 0);
	close(pipe_fd[0]);
	reopen(policy, 1 << 20, pipe_fd[1]);
	/* The first one finds out that nobody takes the records. */
	ask(&r, "denied.example.net", DNS_TYPE_A);
	assert_int_equal(audit_sink_flush(sink, 10000), -EIO);
	assert_false(audit_ok(sink));
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_SERVFAIL, 14, "audit_unavailable");
	ask(&r, "denied.example.net", DNS_TYPE_A);
	assert_no(&r, DNS_SERVFAIL, 14, "audit_unavailable");
	assert_int_equal(fake_count(upstream), 0);
}

/* --- the life of questions ------------------------------------------------- */

static void dns_07_a_and_aaaa_from_one_socket_are_both_answered(void **state)
{
	bool seen[400] = { false };
	char name[64];
	struct reply r;
	struct msg m;

	(void)state;
	next_id = 0;
	for (unsigned i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "n%u.wide.example.com", i);
		for (int k = 0; k < 2; k++) {
			question(&m, name, k ? DNS_TYPE_AAAA : DNS_TYPE_A,
				 true);
			assert_int_equal(send(client, m.p, m.n, 0),
					 (ssize_t)m.n);
		}
		if (i % 20 != 19)
			continue;
		for (unsigned k = 0; k < 40; k++) {
			unsigned id;

			receive(client, &r);
			id = dns_get16(r.m.p);
			assert_true(id < 400 && !seen[id]);
			seen[id] = true;
			assert_int_equal(r.answers, 1);
			assert_int_equal(r.addr.family, id % 2 ? IP_V6 : IP_V4);
		}
	}
}

static void replies_come_from_the_address_that_was_asked(void **state)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ip_endpoint to = { .port = 53 }, from;
	struct sockaddr_storage ss;
	struct reply r;
	struct msg m;
	socklen_t n;

	(void)state;
	for (unsigned i = 1; i < 4; i++) {
		to.addr = ip_addr_v4(0x7f000a00 + i);
		n = ip_endpoint_to_sockaddr(&to, &ss);
		/* One from the cache side, one that has to wait. */
		question(&m, i == 2 ? "api.example.com" : "localhost",
			 DNS_TYPE_A, true);
		assert_int_equal(sendto(fd, m.p, m.n, 0, (struct sockaddr *)&ss,
					n), (ssize_t)m.n);
		memset(&ss, 0, sizeof(ss));
		n = sizeof(ss);
		while (recvfrom(fd, r.m.p, sizeof(r.m.p), MSG_DONTWAIT,
				(struct sockaddr *)&ss, &n) < 0)
			turn();
		assert_int_equal(ip_endpoint_from_sockaddr(
			(struct sockaddr *)&ss, n, &from), 0);
		assert_int_equal(from.port, 53);
		assert_true(ip_addr_eq(&from.addr, &to.addr));
	}
	close(fd);
	question(&m, "api.example.com", DNS_TYPE_A, true);
	assert_int_equal(send(client6, m.p, m.n, 0), (ssize_t)m.n);
	receive(client6, &r);
	assert_int_equal(r.answers, 1);
}

static void a_policy_that_changes_meanwhile_is_in_force(void **state)
{
	struct ruleset *other = compile("[policy]\nname = q\n");
	struct reply r;
	struct msg m;

	(void)state;
	hold = true;
	question(&m, "late.example.com", DNS_TYPE_A, true);
	assert_int_equal(send(client, m.p, m.n, 0), (ssize_t)m.n);
	while (fake_count(upstream) == 0)
		turn();
	dns_door_set_rules(door, other);
	rules_unref(other);
	hold = false;		/* the second try is answered */
	receive(client, &r);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
}

static void observing_resolves_and_says_what_it_would_do(void **state)
{
	struct reply r;

	(void)state;
	reopen("[policy]\nname = p\nmode = observe\n", 1 << 20, log_file());
	ask(&r, "new.example.net", DNS_TYPE_A);
	assert_addr(&r.addr, "198.18.1.0");
	LAST("\"would_deny\"", "\"host_not_allowed\"", "\"new.example.net\"");
	/* Address classes are never let through, nor metadata names asked. */
	ask(&r, "private.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "address_private");
	assert_int_equal(fake_count(upstream), 3);
	ask(&r, "metadata.google.internal", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	assert_int_equal(fake_count(upstream), 3);
}

static void the_self_test_is_answered_and_marked(void **state)
{
	struct reply r;

	(void)state;
	ask(&r, "abc123.penstock.invalid", DNS_TYPE_A);
	assert_addr(&r.addr, DNS_SELF_TEST_A);
	LAST("\"internal\":true");
	ask(&r, "abc123.penstock.invalid", DNS_TYPE_AAAA);
	assert_addr(&r.addr, DNS_SELF_TEST_AAAA);
	ask(&r, "abc124.penstock.invalid", DNS_TYPE_A);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	assert_int_equal(count_records("\"internal\":true"), 2);
}

static void closing_records_what_still_waits(void **state)
{
	struct msg m;

	(void)state;
	hold = true;
	question(&m, "late.example.com", DNS_TYPE_A, true);
	assert_int_equal(send(client, m.p, m.n, 0), (ssize_t)m.n);
	while (fake_count(upstream) == 0)
		turn();
	dns_door_free(door);
	door = NULL;
	LAST("\"run_ended\"", "\"late.example.com\"");
	turn_idle();
}

/* --- TCP ------------------------------------------------------------------- */

static void stream_add(struct msg *s, const struct msg *m)
{
	dns_put16(s->p + s->n, (uint16_t)m->n);
	memcpy(s->p + s->n + 2, m->p, m->n);
	s->n += 2 + m->n;
}

static void stream_question(struct msg *s, const char *name, unsigned type)
{
	struct msg m;

	question(&m, name, type, true);
	stream_add(s, &m);
}

/* Read exactly @n bytes; false at the end of the stream. */
static bool stream_read(int fd, uint8_t *p, size_t n)
{
	while (n > 0) {
		ssize_t got = recv(fd, p, n, MSG_DONTWAIT);

		if (got == 0 || (got < 0 && errno == ECONNRESET))
			return false;
		if (got < 0) {
			assert_int_equal(errno, EAGAIN);
			turn();
			continue;
		}
		p += got;
		n -= (size_t)got;
	}
	return true;
}

static bool stream_receive(int fd, struct reply *r)
{
	uint8_t len[2];

	if (!stream_read(fd, len, 2))
		return false;
	r->m.n = dns_get16(len);
	assert_true(r->m.n <= sizeof(r->m.p));
	assert_true(stream_read(fd, r->m.p, r->m.n));
	read_reply(r);
	return true;
}

static void dns_11_each_message_of_a_segment_is_judged(void **state)
{
	int fd = connected(SOCK_STREAM, ASKED);
	struct msg s = { .n = 0 };
	unsigned first = next_id, ok = 0;
	struct reply r;

	(void)state;
	stream_question(&s, "api.example.com", DNS_TYPE_A);
	stream_question(&s, "denied.example.net", DNS_TYPE_A);
	stream_question(&s, "v4.example.com", DNS_TYPE_A);
	assert_int_equal(send(fd, s.p, s.n, 0), (ssize_t)s.n);
	for (int i = 0; i < 3; i++) {
		assert_true(stream_receive(fd, &r));
		/* In any order, each as its policy says. */
		if (dns_get16(r.m.p) == first + 1) {
			assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
		} else {
			assert_int_equal(r.answers, 1);
			ok++;
		}
	}
	assert_int_equal(ok, 2);
	assert_int_equal(fake_count(upstream), 2);
	close(fd);
}

static void dns_11_a_message_may_be_split_anywhere(void **state)
{
	struct msg s = { .n = 0 };
	struct reply r;

	(void)state;
	stream_question(&s, "localhost", DNS_TYPE_A);
	stream_question(&s, "denied.example.net", DNS_TYPE_A);
	for (size_t cut = 1; cut < s.n; cut++) {
		int fd = connected(SOCK_STREAM, cut % 2 ? ASKED : "::1");

		assert_int_equal(send(fd, s.p, cut, 0), (ssize_t)cut);
		turn();
		turn_idle();
		assert_int_equal(send(fd, s.p + cut, s.n - cut, 0),
				 (ssize_t)(s.n - cut));
		assert_true(stream_receive(fd, &r));
		assert_addr(&r.addr, "127.0.0.1");
		assert_true(stream_receive(fd, &r));
		assert_int_equal(r.rcode, DNS_NXDOMAIN);
		close(fd);
		turn_idle();
	}
	assert_int_equal(door->nconns, 0);
}

static void dns_14_a_half_closed_client_gets_its_answers(void **state)
{
	int fd = connected(SOCK_STREAM, ASKED);
	struct msg s = { .n = 0 };
	struct reply r;

	(void)state;
	hold = true;
	stream_question(&s, "late.example.com", DNS_TYPE_A);
	assert_int_equal(send(fd, s.p, s.n, 0), (ssize_t)s.n);
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	while (fake_count(upstream) == 0)
		turn();
	assert_int_equal(door->nconns, 1);
	hold = false;
	assert_true(stream_receive(fd, &r));
	assert_int_equal(r.answers, 1);
	assert_false(stream_receive(fd, &r));	/* then the end */
	assert_int_equal(door->nconns, 0);
	close(fd);
}

static void dns_14_a_client_that_leaves_leaves_nothing_behind(void **state)
{
	int fd = connected(SOCK_STREAM, ASKED);
	struct linger now = { .l_onoff = 1 };
	struct msg s = { .n = 0 };

	(void)state;
	hold = true;
	stream_question(&s, "late.example.com", DNS_TYPE_A);
	assert_int_equal(send(fd, s.p, s.n, 0), (ssize_t)s.n);
	while (fake_count(upstream) == 0)
		turn();
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now,
				    sizeof(now)), 0);
	close(fd);			/* a reset */
	while (door->nconns > 0)
		turn();
	assert_int_equal(door->nqueries, 1);	/* it goes on, and is recorded */
	hold = false;
	while (door->nqueries > 0)
		turn();
	LAST("\"allow\"", "\"late.example.com\"", "\"tcp\"");
}

static void many_questions_on_one_stream_are_all_answered(void **state)
{
	int fd = connected(SOCK_STREAM, ASKED);
	struct msg s = { .n = 0 };
	char name[64];
	struct reply r;
	unsigned n = 150;

	(void)state;
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "n%u.wide.example.com", i);
		stream_question(&s, name, DNS_TYPE_A);
	}
	assert_int_equal(send(fd, s.p, s.n, 0), (ssize_t)s.n);
	for (unsigned i = 0; i < n; i++) {
		assert_true(stream_receive(fd, &r));
		assert_int_equal(r.answers, 1);
		assert_true(door->nqueries <= 32);	/* reading waits */
	}
	close(fd);
}

static void what_is_no_question_ends_the_stream(void **state)
{
	static const uint8_t bad[][14] = {
		{ 0, 0 }, { 0, 5, 1, 2, 3, 4, 5 },
		{ 0, 12, 0, 1, 0x80, 0, 0, 1 },		/* a response */
	};
	static const size_t sizes[] = { 2, 7, 14 };
	struct reply r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int fd = connected(SOCK_STREAM, ASKED);

		assert_int_equal(send(fd, bad[i], sizes[i], 0),
				 (ssize_t)sizes[i]);
		assert_false(stream_receive(fd, &r));
		close(fd);
	}
	assert_int_equal(door->nconns, 0);
}

static void connections_are_bounded(void **state)
{
	int fd[DNS_CONNS_MAX + 3];
	struct msg s = { .n = 0 };
	struct reply r;
	unsigned answered = 0;

	(void)state;
	stream_question(&s, "localhost", DNS_TYPE_A);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = connected(SOCK_STREAM, ASKED);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		(void)!send(fd[i], s.p, s.n, MSG_NOSIGNAL);
		answered += stream_receive(fd[i], &r);
		assert_true(door->nconns <= DNS_CONNS_MAX);
	}
	assert_int_equal(answered, DNS_CONNS_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	while (door->nconns > 0)
		turn();
	fd[0] = connected(SOCK_STREAM, ASKED);
	assert_int_equal(send(fd[0], s.p, s.n, 0), (ssize_t)s.n);
	assert_true(stream_receive(fd[0], &r));
	close(fd[0]);
}

static void closing_ends_the_streams(void **state)
{
	int fd = connected(SOCK_STREAM, ASKED);
	struct msg s = { .n = 0 };
	struct reply r;

	(void)state;
	hold = true;
	stream_question(&s, "late.example.com", DNS_TYPE_A);
	assert_int_equal(send(fd, s.p, s.n, 0), (ssize_t)s.n);
	while (fake_count(upstream) == 0)
		turn();
	dns_door_free(door);
	door = NULL;
	assert_false(stream_receive(fd, &r));
	LAST("\"run_ended\"", "\"tcp\"");
	close(fd);
}

#define T(fn)	cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_allowed_name_gets_its_synthetic_addresses),
		T(dns_02_a_denied_name_leads_to_no_packet),
		T(names_that_are_no_host_names_are_denied),
		T(dns_09_ancestors_of_allowed_names_exist),
		T(dns_21_other_types_of_allowed_names_have_no_data),
		T(questions_that_are_a_channel_are_refused),
		T(dns_30_local_names_are_answered_here),
		T(addresses_that_are_ours_lead_back_to_names),
		T(dns_18_a_chain_has_the_permission_of_its_owner),
		T(dns_19_a_chain_without_end_fails),
		T(dns_16_nothing_of_the_clients_leaves_but_the_name),
		T(filtered_addresses_are_no_addresses),
		T(dns_06_a_family_that_is_missing_is_no_error),
		T(dns_23_a_failure_of_aaaa_does_not_hide_a),
		T(policy_and_outage_do_not_look_alike),
		T(names_that_are_used_up_are_refused),
		T(dns_34_questions_that_wait_are_bounded),
		T(what_waits_at_most_is_said),
		T(malformed_questions_are_told_so_or_dropped),
		T(what_cannot_be_recorded_is_not_resolved),
		T(dns_07_a_and_aaaa_from_one_socket_are_both_answered),
		T(replies_come_from_the_address_that_was_asked),
		T(a_policy_that_changes_meanwhile_is_in_force),
		T(observing_resolves_and_says_what_it_would_do),
		T(the_self_test_is_answered_and_marked),
		T(closing_records_what_still_waits),
		T(dns_11_each_message_of_a_segment_is_judged),
		T(dns_11_a_message_may_be_split_anywhere),
		T(dns_14_a_half_closed_client_gets_its_answers),
		T(dns_14_a_client_that_leaves_leaves_nothing_behind),
		T(many_questions_on_one_stream_are_all_answered),
		T(what_is_no_question_ends_the_stream),
		T(connections_are_bounded),
		T(closing_ends_the_streams),
	};
	int failed;

	if (!dns_lab_enter()) {
		printf("1..0 # SKIP no user and network namespaces here\n");
		return 0;
	}
	base = event_base_new();
	assert_non_null(base);
	assert_int_equal(audit_writer_new(&writer), 0);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	audit_writer_free(writer, 1000);
	event_base_free(base);
	return failed;
}
