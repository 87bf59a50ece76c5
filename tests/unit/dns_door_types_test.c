/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_door_types_test.c - questions for records that are not addresses
 */
#include "tests/unit/dns_door_lab.h"

#include "base/clock.h"
#include "resolver/dns_rdata.h"
#include "resolver/name_pins.h"

static const char typed[] =
	"[policy]\nname = p\n"
	"[allow lab]\n"
	"hosts = types.example.com large.example.com gone.example.com "
	"fail.example.com *.2.0.192.in-addr.arpa *.8.in-addr.arpa "
	"*.10.in-addr.arpa\n"
	"types = TXT MX HTTPS PTR CAA\n"
	"[allow closed]\nhosts = api.example.com\n";

/* The RDATA of answer @i, of the type that was asked. */
static struct str data_of(const struct reply *r, unsigned i, unsigned type)
{
	struct dns_name skip;
	struct dns_record rr = { .data_n = 0 };
	size_t at;

	assert_true(i < r->answers);
	assert_int_equal(dns_name_read(r->m.p, r->m.n, DNS_HEADER_SIZE, &skip,
				       &at), 0);
	at += 4;
	for (unsigned n = 0; n <= i; n++)
		assert_int_equal(dns_record_read(r->m.p, r->m.n, &at, &rr), 0);
	assert_int_equal(rr.type, type);
	assert_true(dns_name_eq(&rr.owner, &skip));
	return str_make((const char *)r->m.p + rr.data, rr.data_n);
}

static void assert_data(const struct reply *r, unsigned i, unsigned type,
			struct str want)
{
	struct str got = data_of(r, i, type);

	assert_int_equal(got.n, want.n);
	assert_memory_equal(got.p, want.p, want.n);
}
#define BYTES(text)	str_make(text, sizeof(text) - 1)

static void what_a_rule_opens_is_answered(void **state)
{
	struct reply r;

	(void)state;
	open_with(typed);
	ask(&r, "types.example.com", DNS_TYPE_TXT);
	assert_int_equal(r.rcode, DNS_NOERROR);
	assert_int_equal(r.answers, 2);
	assert_data(&r, 0, DNS_TYPE_TXT, BYTES("\5hello"));
	assert_data(&r, 1, DNS_TYPE_TXT, BYTES("\5world\0"));
	LAST("\"allow\"", "\"qtype\":\"TXT\"", "types.example.com");
	ask(&r, "types.example.com", DNS_TYPE_MX);
	assert_data(&r, 0, DNS_TYPE_MX,
		    BYTES("\0\12\4mail\5types\7example\3com\0"));
	/* Kept, as addresses are. */
	assert_int_equal(fake_count(upstream), 2);
	ask(&r, "types.example.com", DNS_TYPE_TXT);
	assert_int_equal(r.answers, 2);
	assert_int_equal(fake_count(upstream), 2);
	/* Open, and not there: no such data. */
	ask(&r, "types.example.com", DNS_TYPE_CAA);
	assert_no(&r, DNS_NOERROR, -1, "");
	LAST("\"allow\"", "\"dns_no_address\"");
	ask(&r, "gone.example.com", DNS_TYPE_TXT);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	ask(&r, "fail.example.com", DNS_TYPE_TXT);
	assert_int_equal(r.rcode, DNS_SERVFAIL);
}

static void what_none_opens_causes_no_packet(void **state)
{
	static const uint16_t shut[] = {
		DNS_TYPE_NS, DNS_TYPE_SRV, DNS_TYPE_SVCB, DNS_TYPE_SOA, 43, 99,
		65280,
	};
	struct reply r;

	(void)state;
	open_with(typed);
	for (size_t i = 0; i < ARRAY_SIZE(shut); i++) {
		ask(&r, "types.example.com", shut[i]);
		assert_no(&r, DNS_NOERROR, 17, "type_not_allowed");
	}
	ask(&r, "api.example.com", DNS_TYPE_TXT);
	assert_no(&r, DNS_NOERROR, 17, "type_not_allowed");
	ask(&r, "denied.example.net", DNS_TYPE_TXT);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	ask(&r, "types.example.com", DNS_TYPE_ANY);
	assert_no(&r, DNS_REFUSED, 17, "type_not_allowed");
	ask(&r, "types.example.com", DNS_TYPE_NULL);
	assert_no(&r, DNS_REFUSED, 17, "type_not_allowed");
	assert_int_equal(fake_count(upstream), 0);
}

/* DNS-21: no address but by A and AAAA, and no ech. */
static void dns_21_https_comes_without_ech_and_hints(void **state)
{
	struct reply r;

	(void)state;
	open_with(typed);
	ask(&r, "types.example.com", DNS_TYPE_HTTPS);
	assert_int_equal(r.answers, 1);
	assert_data(&r, 0, DNS_TYPE_HTTPS,
		    BYTES("\0\1\0\0\3\0\2\x1f\x90"));
}

/* Those that the name may have, and then a connection to one is known. */
static void dns_21_real_hints_are_filtered_and_pinned(void **state)
{
	struct ip_addr hint;
	struct reply r;

	(void)state;
	open_with("[dns]\nanswers = real\n"
		  "[allow lab]\nhosts = hints.example.com\ntypes = HTTPS\n"
		  "addresses = 203.0.113.0/24\nreason = the lab\n");
	ask(&r, "hints.example.com", DNS_TYPE_HTTPS);
	assert_int_equal(r.answers, 1);
	assert_data(&r, 0, DNS_TYPE_HTTPS,
		    BYTES("\0\1\0\0\4\0\4\xcb\0\x71\7"));
	assert_int_equal(ip_addr_parse(STR("203.0.113.7"), &hint), 0);
	assert_non_null(name_pins_find(pins, &hint, STR("hints.example.com"),
				       clock_mono_ms()));
	assert_int_equal(ip_addr_parse(STR("10.0.0.1"), &hint), 0);
	assert_null(name_pins_find(pins, &hint, STR("hints.example.com"),
				   clock_mono_ms()));
}

/* DNS-30: of private addresses nothing is asked, whatever a rule says. */
static void dns_30_reverse_names_are_asked_where_a_rule_opens_them(void **state)
{
	struct reply r;

	(void)state;
	open_with(typed);
	ask(&r, "8.8.8.8.in-addr.arpa", DNS_TYPE_PTR);
	assert_int_equal(r.answers, 1);
	assert_data(&r, 0, DNS_TYPE_PTR, BYTES("\4name\7example\0"));
	assert_int_equal(fake_count(upstream), 1);
	ask(&r, "1.0.0.10.in-addr.arpa", DNS_TYPE_PTR);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	ask(&r, "1.2.0.192.in-addr.arpa", DNS_TYPE_PTR);
	assert_int_equal(r.rcode, DNS_NOERROR);	/* the sandbox's own */
	ask(&r, "9.2.0.192.in-addr.arpa", DNS_TYPE_PTR);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	ask(&r, "9.9.9.9.in-addr.arpa", DNS_TYPE_PTR);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	ask(&r, "8.8.8.8.in-addr.arpa", DNS_TYPE_TXT);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	assert_int_equal(fake_count(upstream), 1);
}

static size_t read_all(int fd, uint8_t *p, size_t room)
{
	size_t n = 0, want = 2;

	while (n < want) {
		ssize_t got = recv(fd, p + n, room - n, MSG_DONTWAIT);

		if (got > 0) {
			n += (size_t)got;
			want = n < 2 ? 2 : 2u + dns_get16(p);
			assert_true(want <= room);
		} else {
			turn();
		}
	}
	return n;
}

static void many_records_come_whole_over_tcp(void **state)
{
	static uint8_t big[1 << 16];
	uint8_t prefix[2];
	struct reply r;
	struct msg m;
	int fd;

	(void)state;
	open_with(typed);
	ask(&r, "large.example.com", DNS_TYPE_MX);
	assert_int_equal(r.answers, 0);
	assert_true(dns_get16(r.m.p + 2) & 0x0200);	/* TC */
	fd = connected(SOCK_STREAM, ASKED);
	question(&m, "large.example.com", DNS_TYPE_MX, true);
	dns_put16(prefix, (uint16_t)m.n);
	assert_int_equal(send(fd, prefix, 2, 0), 2);
	assert_int_equal(send(fd, m.p, m.n, 0), m.n);
	assert_true(read_all(fd, big, sizeof(big)) > 400 * 20);
	assert_int_equal(dns_get16(big + 2 + 6), 400);
	assert_false(dns_get16(big + 2 + 2) & 0x0200);
	close(fd);
}

static void a_new_policy_shuts_a_type_that_is_being_asked_for(void **state)
{
	struct ruleset *shut = compile("[allow a]\nhosts = late.example.com\n");
	struct reply r;

	(void)state;
	open_with("[allow a]\nhosts = late.example.com\ntypes = TXT\n");
	ask_held("late.example.com", DNS_TYPE_TXT, 1);
	dns_door_set_rules(door, shut, 7);
	rules_unref(shut);
	receive(client, &r);
	assert_no(&r, DNS_NOERROR, 17, "type_not_allowed");
	assert_true(list_empty(&door->queries));
}

static void denied_names_are_refused_where_the_policy_wants_it(void **state)
{
	struct reply r;

	(void)state;
	open_with("[dns]\ndenied = refused\n"
		  "[allow a]\nhosts = api.example.com\n");
	ask(&r, "denied.example.net", DNS_TYPE_A);
	assert_no(&r, DNS_REFUSED, 15, "host_not_allowed");
	ask(&r, "example.com", DNS_TYPE_A);
	assert_int_equal(r.rcode, DNS_NOERROR);
	ask(&r, "host.local", DNS_TYPE_A);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);	/* RFC 6762, and so on */
	assert_int_equal(fake_count(upstream), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		DOOR_TEST(what_a_rule_opens_is_answered),
		DOOR_TEST(what_none_opens_causes_no_packet),
		DOOR_TEST(dns_21_https_comes_without_ech_and_hints),
		DOOR_TEST(dns_21_real_hints_are_filtered_and_pinned),
		DOOR_TEST(dns_30_reverse_names_are_asked_where_a_rule_opens_them),
		DOOR_TEST(many_records_come_whole_over_tcp),
		DOOR_TEST(a_new_policy_shuts_a_type_that_is_being_asked_for),
		DOOR_TEST(denied_names_are_refused_where_the_policy_wants_it),
	};

	return door_lab_run(tests, ARRAY_SIZE(tests));
}
