/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door_lab.c - a sandbox's door with the world behind it, for tests
 */
#include "tests/unit/dns_door_lab.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "audit/writer.h"
#include "base/fd.h"
#include "base/mem.h"

/* Short, so that tests of silence are; many, so that a busy machine is none. */
#define ATTEMPT_MS	60
#define GUARD_S		90

const char policy[] =
	"[policy]\nname = p\n"
	"[allow lab]\n"
	"hosts = api.example.com v4.example.com v6.example.com "
	"mixed.example.com private.example.com meta.example.com "
	"half.example.com gone.example.com fail.example.com fail6.example.com "
	"silent.example.com late.example.com chain.example.com "
	"loop.example.com own.example.com twin.example.com many.example.com "
	"*.wide.example.com\n"
	"addresses = 203.0.113.0/24 2001:db8:3::/48\nreason = the lab\n";

struct event_base *base;
static struct audit_writer *writer;
struct resolver *resolver;
struct fake *upstream;
struct name_map *names;
struct name_pins *pins;
struct dns_budget *run_budget;
struct dns_door *door;
void (*door_due)(void *arg);
bool (*door_spend)(void *arg, unsigned questions);
struct mem_account held;
static struct mem_pot pot;
struct audit_sink *sink;
static struct ruleset *rules;
const struct ip_hosts *hosts;
int client = -1, client6 = -1;
static int log_fd = -1;
bool hold;

/* --- the world ------------------------------------------------------------- */

static void zone_add(struct fake_records *r, const struct fake_ask *ask,
		     const char *owner, const char *v4, const char *v6)
{
	const char *addr = ask->q.type == DNS_TYPE_A ? v4 : v6;

	if (addr)
		fake_add_a(r, owner, addr, 300);
}

/* Records of the types that a policy can open, below "types". */
static bool zone_records(struct fake_records *r, const struct fake_ask *ask)
{
	static const struct {
		unsigned type;
		const char *data;
		size_t n;
	} table[] = {
#define DATA(type, text)	{ type, text, sizeof(text) - 1 }
		DATA(DNS_TYPE_TXT, "\5hello"),
		DATA(DNS_TYPE_TXT, "\5world\0"),
		/* Its name points to the asked one, behind the header. */
		DATA(DNS_TYPE_MX, "\0\12\4mail\xc0\x0c"),
		DATA(DNS_TYPE_HTTPS, "\0\1\0\0\3\0\2\x1f\x90\0\4\0\4\12\0\0\1"
				     "\0\5\0\2xy"),
		DATA(DNS_TYPE_PTR, "\4name\7example\0"),
#undef DATA
	};
	static const char hints[] = "\0\1\0\0\4\0\10\12\0\0\1\xcb\0\x71\7"
				    "\0\6\0\20\x20\1\xd\xb8\0\3\0\0\0\0\0\0\0\0\0\7";
	const char *name = ask->q.text;

	if (!strcmp(name, "hints.example.com")) {
		fake_add(r, name, ask->q.type, 300, hints, sizeof(hints) - 1);
		return true;
	}
	if (strcmp(name, "types.example.com") != 0 &&
	    !strstr(name, ".in-addr.arpa") &&
	    strcmp(name, "large.example.com") != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		unsigned times = name[0] == 'l' ? 400 : 1;

		for (; table[i].type == ask->q.type && times > 0; times--)
			fake_add(r, name, ask->q.type, 300, table[i].data,
				 table[i].n);
	}
	return true;
}

/* Sixty of a family, and two that must not be dialled. */
static void zone_add_many(struct fake_records *r, const struct fake_ask *ask)
{
	char v4[32], v6[32];

	for (unsigned i = 0; i < 60; i++) {
		assert_true(snprintf(v4, sizeof(v4), "203.0.113.%u",
				     100 + i) > 0);
		assert_true(snprintf(v6, sizeof(v6), "2001:db8:3::%x",
				     0x100 + i) > 0);
		zone_add(r, ask, ask->q.text, v4, v6);
		if (i % 30 == 10)
			zone_add(r, ask, ask->q.text, "10.0.0.1", "fd00::1");
	}
}

void zone(void *arg, const struct fake_ask *ask)
{
	static const struct {
		const char *name, *v4, *v6;
	} table[] = {
		{ "api.example.com", "203.0.113.7", "2001:db8:3::7" },
		{ "twin.example.com", "203.0.113.7", "2001:db8:3::7" },
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
	    (hold && !strcmp(name, "late.example.com")) ||
	    (hold && !strcmp(name, "fail6.example.com") &&
	     ask->q.type == DNS_TYPE_A))
		return;
	if (!strcmp(name, "gone.example.com") ||
	    !strncmp(name, "gone-", 5)) {
		fake_answer(ask, &r, DNS_NXDOMAIN);
		return;
	}
	if (!strcmp(name, "fail.example.com") ||
	    (!strcmp(name, "fail6.example.com") && ask->q.type != DNS_TYPE_A)) {
		fake_answer(ask, &r, DNS_SERVFAIL);
		return;
	}
	if (zone_records(&r, ask)) {
		fake_answer(ask, &r, DNS_NOERROR);
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
	} else if (!strcmp(name, "many.example.com")) {
		zone_add_many(&r, ask);
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

int connected(int type, const char *to)
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

struct ruleset *compile(const char *text)
{
	struct rules_source source = { .name = "p.ini", .text = str_from(text) };
	struct ruleset *rs = NULL;

	assert_int_equal(rules_compile(&source, 1, NULL, NULL, &rs), 0);
	return rs;
}

static void open_door(const char *text, size_t names_budget, int record_fd)
{
	static const struct record_labels labels = {
		.run = "run", .policy = "p@sha256:0", .mode = "enforce",
	};
	const int udp[] = { bound(AF_INET, SOCK_DGRAM),
			    bound(AF_INET6, SOCK_DGRAM) };
	const int tcp[] = { bound(AF_INET, SOCK_STREAM),
			    bound(AF_INET6, SOCK_STREAM) };
	struct dns_door_config config = {
		.udp = udp, .nudp = ARRAY_SIZE(udp),
		.tcp = tcp, .ntcp = ARRAY_SIZE(tcp),
		.base = base, .resolver = resolver, .hosts = &hosts,
		.tenant = 1, .hostname = "box", .nonce = "abc123",
	};

	rules = compile(text);
	assert_int_equal(name_map_new(names_budget, &names), 0);
	assert_int_equal(name_pins_new(names_budget, &pins), 0);
	assert_int_equal(audit_sink_new(writer, record_fd, &labels, &sink), 0);
	assert_int_equal(dns_budget_new(rules, &run_budget), 0);
	config.rules = rules;
	config.budget = run_budget;
	config.names = names;
	config.pins = pins;
	config.sink = sink;
	atomic_store(&pot.limit, DOOR_MEMORY);
	mem_account_init(&held, &pot);
	name_map_set_owner(names, &held);
	name_pins_set_owner(pins, &held);
	config.owner = &held;
	config.due = door_due;
	config.spend = door_spend;
	assert_int_equal(dns_door_new(&config, &door), 0);
	client = connected(SOCK_DGRAM, ASKED);
	client6 = connected(SOCK_DGRAM, "::1");
}

static void close_door(void)
{
	dns_door_free(door);
	door = NULL;
	dns_budget_free(run_budget);
	run_budget = NULL;
	rules_unref(rules);
	rules = NULL;
	name_map_free(names);
	names = NULL;
	name_pins_free(pins);
	pins = NULL;
	assert_int_equal(held.used, 0);
	mem_account_done(&held);
	if (sink)
		audit_sink_free(sink);
	sink = NULL;
	fd_closep(&client);
	fd_closep(&client6);
}

void reopen(const char *text, size_t names_budget, int record_fd)
{
	close_door();
	open_door(text, names_budget, record_fd);
}

void open_with(const char *text)
{
	reopen(text, 1 << 20, log_file());
}

int log_file(void)
{
	fd_closep(&log_fd);
	log_fd = memfd_create("log", MFD_CLOEXEC);
	assert_true(log_fd >= 0);
	return dup(log_fd);
}

int door_setup(void **state)
{
	const struct dns_upstream_config config = {
		.base = base, .attempt_ms = ATTEMPT_MS,
		.attempts_until_ms = 12 * ATTEMPT_MS,
	};
	struct resolver_servers servers = {
		.n = 1, .server = { { .at.port = 5300 } },
	};

	(void)state;
	alarm(GUARD_S);
	hold = false;
	hosts = NULL;
	assert_int_equal(ip_addr_parse(STR("127.0.0.1"),
				       &servers.server[0].at.addr), 0);
	assert_int_equal(resolver_new_with(&config, &resolver), 0);
	assert_int_equal(resolver_set_servers(resolver, &servers), 0);
	upstream = fake_new(base, "127.0.0.1", 5300, zone, NULL);
	open_door(policy, 1 << 20, log_file());
	return 0;
}

int door_teardown(void **state)
{
	(void)state;
	close_door();
	resolver_free(resolver);
	fake_free(upstream);
	fd_closep(&log_fd);
	return 0;
}

/* --- asking ---------------------------------------------------------------- */


uint16_t next_id = 1;

void question(struct msg *m, const char *name, unsigned type, bool edns)
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

void turn(void)
{
	assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

/* What the loop has to do now, without waiting for more. */
void turn_idle(void)
{
	for (int i = 0; i < 20; i++)
		assert_int_not_equal(event_base_loop(base, EVLOOP_NONBLOCK),
				     -1);
}


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

void read_reply(struct reply *r)
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

void receive(int fd, struct reply *r)
{
	ssize_t n;

	while ((n = recv(fd, r->m.p, sizeof(r->m.p), MSG_DONTWAIT)) < 0) {
		assert_int_equal(errno, EAGAIN);
		turn();
	}
	r->m.n = (size_t)n;
	read_reply(r);
}

void tell(int fd, const struct msg *m)
{
	assert_int_equal(send(fd, m->p, m->n, 0), (ssize_t)m->n);
}

void ask_only(const char *name, unsigned type)
{
	struct msg m;

	question(&m, name, type, true);
	tell(client, &m);
}

void ask_held(const char *name, unsigned type, unsigned n)
{
	hold = true;
	ask_only(name, type);
	while (fake_count(upstream) < n)
		turn();
}

void exchange(const struct msg *m, struct reply *r)
{
	tell(client, m);
	receive(client, r);
	assert_memory_equal(r->m.p, m->p, 2);
}

void ask(struct reply *r, const char *name, unsigned type)
{
	struct msg m;

	question(&m, name, type, true);
	exchange(&m, r);
}

void assert_addr(const struct ip_addr *a, const char *want)
{
	char text[IP_TEXT_SIZE];

	assert_int_not_equal(a->family, IP_NONE);
	ip_addr_text(a, text);
	assert_string_equal(text, want);
}

void assert_no(const struct reply *r, unsigned rcode, int ede,
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

unsigned count_records(const char *part)
{
	char *text = records();
	unsigned n = 0;

	for (const char *p = text; (p = strstr(p, part)) != NULL; p++)
		n++;
	mem_free(text);
	return n;
}

/* The last record has all of these in it. */
void assert_last(const char *const part[])
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

/* --- the whole program ------------------------------------------------------ */

int door_lab_run(const struct CMUnitTest *tests, size_t n)
{
	int failed;

	if (!dns_lab_enter()) {
		printf("1..0 # SKIP no user and network namespaces here\n");
		return 0;
	}
	base = event_base_new();
	assert_non_null(base);
	assert_int_equal(audit_writer_new(&writer), 0);
	failed = _cmocka_run_group_tests("door", tests, n, NULL, NULL);
	audit_writer_free(writer, 1000);
	event_base_free(base);
	return failed;
}
