/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door_test.c - a sandbox's questions by UDP, from its side of the door
 */
#include "tests/unit/dns_door_lab.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

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
	/* The last one repeats the first. */
	assert_int_equal(count_records("\n"), 2);
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
	/* Nor does its record read like that of an allowed name. */
	LAST("\"host\":\"api\\\\.example.com\"");
	question(&m, "a.wide.example.com", DNS_TYPE_A, true);
	m.p[13] = 0x1b;
	exchange(&m, &r);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	LAST("\\u001b.wide");
	assert_int_equal(fake_count(upstream), 0);
}

static void set_policy(const char *text)
{
	struct ruleset *other = compile(text);

	dns_door_set_rules(door, other, 77);
	rules_unref(other);
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

/* What is below one that is denied may be allowed: NXDOMAIN would say it is not. */
static void dns_09_a_denied_name_above_allowed_ones_exists(void **state)
{
	struct reply r;

	(void)state;
	set_policy("[allow a]\nhosts = *.wide.example.com\n"
		   "addresses = 203.0.113.0/24\nreason = the lab\n"
		   "[deny b]\nhosts = x.wide.example.com y.wide.example.com "
		   "*.y.wide.example.com\n");
	ask(&r, "x.wide.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NOERROR, 15, "host_denied");
	assert_int_equal(fake_count(upstream), 0);
	ask(&r, "a.x.wide.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
	ask(&r, "y.wide.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_denied");
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
		struct resolver_servers servers = {
			.n = 1, .server = { { .at.port = 5300 } },
		};

		fake_free(upstream);
		upstream = fake_new(base, "127.0.0.1", 5300, keep_bytes,
				    &seen[i]);
		assert_int_equal(ip_addr_parse(STR("127.0.0.1"),
					       &servers.server[0].at.addr), 0);
		/* Empties the cache. */
		assert_int_equal(resolver_set_servers(resolver, &servers), 0);
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
	unsigned timeouts = 0, exceeded = 0;

	(void)state;
	hold = true;
	/* Distinct names, so that each is a lookup of its own. */
	fake_free(upstream);
	upstream = NULL;
	for (unsigned i = 0; i < DNS_QUERIES_MAX + 5; i++) {
		snprintf(name, sizeof(name), "n%u.wide.example.com", i);
		ask_only(name, DNS_TYPE_A);
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
		ask_only(name, DNS_TYPE_A);
		turn();
	}
	question(&m, "more.silent.example.com", DNS_TYPE_A, true);
	tell(client, &m);
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
	tell(client, &m);
	receive(client, &r);
	assert_int_equal(r.rcode, DNS_FORMERR);
	/* A response and a stump get nothing; the next one is answered. */
	question(&m, "localhost", DNS_TYPE_A, false);
	m.p[2] |= 0x80;
	tell(client, &m);
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
			if (r.answers != 1)
				fail_msg("question %u: rcode %u, %d '%s'", id,
					 r.rcode, r.ede, r.why);
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
	tell(client6, &m);
	receive(client6, &r);
	assert_int_equal(r.answers, 1);
}

/* Ancestors and other types stay empty: they are no denials of a name. */
static void a_policy_may_have_denied_names_refused(void **state)
{
	struct reply r;

	(void)state;
	set_policy("[policy]\nname = q\n[dns]\ndenied = refused\n"
		   "[allow lab]\nhosts = v4.example.com\n"
		   "addresses = 203.0.113.0/24\nreason = the lab\n");
	ask(&r, "denied.example.net", DNS_TYPE_A);
	assert_no(&r, DNS_REFUSED, 15, "host_not_allowed");
	ask(&r, "no host.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_REFUSED, 15, "host_not_allowed");
	ask(&r, "example.com", DNS_TYPE_A);
	assert_int_equal(r.rcode, DNS_NOERROR);
	ask(&r, "v4.example.com", DNS_TYPE_TXT);
	assert_int_equal(r.rcode, DNS_NOERROR);
	ask(&r, "v4.example.com", DNS_TYPE_A);
	assert_int_equal(r.answers, 1);
}

static void a_question_that_waits_is_denied_as_soon_as_the_policy_is(
	void **state)
{
	struct reply r;

	(void)state;
	ask_held("late.example.com", DNS_TYPE_A, 1);
	set_policy("[policy]\nname = q\n");
	/* The world is still silent. */
	receive(client, &r);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	LAST("\"deny\"", "\"host_not_allowed\"", "\"late.example.com\"");
}

static void a_question_that_waits_goes_on_while_its_name_is_allowed(
	void **state)
{
	struct reply r;

	(void)state;
	ask_held("late.example.com", DNS_TYPE_A, 1);
	set_policy("[policy]\nname = q\n[allow anew]\n"
		   "hosts = late.example.com\n"
		   "addresses = 203.0.113.0/24\nreason = lab\n");
	hold = false;		/* the second try is answered */
	receive(client, &r);
	assert_addr(&r.addr, "198.18.1.0");
	LAST("\"allow\"", "\"anew\"");
}

static void a_question_about_the_other_family_is_judged_again_too(
	void **state)
{
	struct reply r;

	(void)state;
	/* AAAA failed, and A is asked to know whether the name lives. */
	ask_held("fail6.example.com", DNS_TYPE_AAAA, 2);
	set_policy("[policy]\nname = q\n[allow anew]\n"
		   "hosts = fail6.example.com\n"
		   "addresses = 203.0.113.0/24\nreason = lab\n");
	while (fake_count(upstream) < 4)	/* both, for the new policy */
		turn();
	set_policy("[policy]\nname = q\n");
	receive(client, &r);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
}

static void a_name_that_is_denied_by_now_stands_behind_no_address(
	void **state)
{
	struct reply r;

	(void)state;
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_ptr("0.1.18.198.in-addr.arpa", "api.example.com");
	set_policy("[policy]\nname = q\n");
	ask(&r, "0.1.18.198.in-addr.arpa", DNS_TYPE_PTR);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	ask(&r, "api.example.com", DNS_TYPE_A);
	assert_no(&r, DNS_NXDOMAIN, 15, "host_not_allowed");
	/* The address is nobody else's meanwhile, and its own again after. */
	set_policy("[policy]\nname = q\n[allow a]\n"
		   "hosts = api.example.com v4.example.com\n"
		   "addresses = 203.0.113.0/24\nreason = lab\n");
	ask(&r, "v4.example.com", DNS_TYPE_A);
	assert_addr(&r.addr, "198.18.1.1");
	assert_ptr("0.1.18.198.in-addr.arpa", "api.example.com");
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

	(void)state;
	ask_held("late.example.com", DNS_TYPE_A, 1);
	dns_door_free(door);
	door = NULL;
	LAST("\"run_ended\"", "\"late.example.com\"");
	turn_idle();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DOOR_TEST(a_policy_may_have_denied_names_refused),
		DOOR_TEST(an_allowed_name_gets_its_synthetic_addresses),
		DOOR_TEST(dns_02_a_denied_name_leads_to_no_packet),
		DOOR_TEST(names_that_are_no_host_names_are_denied),
		DOOR_TEST(dns_09_ancestors_of_allowed_names_exist),
		DOOR_TEST(dns_09_a_denied_name_above_allowed_ones_exists),
		DOOR_TEST(dns_21_other_types_of_allowed_names_have_no_data),
		DOOR_TEST(questions_that_are_a_channel_are_refused),
		DOOR_TEST(dns_30_local_names_are_answered_here),
		DOOR_TEST(addresses_that_are_ours_lead_back_to_names),
		DOOR_TEST(dns_18_a_chain_has_the_permission_of_its_owner),
		DOOR_TEST(dns_19_a_chain_without_end_fails),
		DOOR_TEST(dns_16_nothing_of_the_clients_leaves_but_the_name),
		DOOR_TEST(filtered_addresses_are_no_addresses),
		DOOR_TEST(dns_06_a_family_that_is_missing_is_no_error),
		DOOR_TEST(dns_23_a_failure_of_aaaa_does_not_hide_a),
		DOOR_TEST(policy_and_outage_do_not_look_alike),
		DOOR_TEST(names_that_are_used_up_are_refused),
		DOOR_TEST(dns_34_questions_that_wait_are_bounded),
		DOOR_TEST(what_waits_at_most_is_said),
		DOOR_TEST(malformed_questions_are_told_so_or_dropped),
		DOOR_TEST(what_cannot_be_recorded_is_not_resolved),
		DOOR_TEST(dns_07_a_and_aaaa_from_one_socket_are_both_answered),
		DOOR_TEST(replies_come_from_the_address_that_was_asked),
		DOOR_TEST(
		 a_question_that_waits_is_denied_as_soon_as_the_policy_is),
		DOOR_TEST(
		 a_question_that_waits_goes_on_while_its_name_is_allowed),
		DOOR_TEST(
		 a_question_about_the_other_family_is_judged_again_too),
		DOOR_TEST(
		 a_name_that_is_denied_by_now_stands_behind_no_address),
		DOOR_TEST(observing_resolves_and_says_what_it_would_do),
		DOOR_TEST(the_self_test_is_answered_and_marked),
		DOOR_TEST(closing_records_what_still_waits),
	};

	return door_lab_run(tests, ARRAY_SIZE(tests));
}
