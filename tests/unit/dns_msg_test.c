/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_msg_test.c - DNS questions, replies, asks and answers on the wire
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "resolver/dns_answer.h"
#include "resolver/dns_msg.h"

/* --- building messages ----------------------------------------------------- */

struct msg {
	uint8_t p[16384];
	size_t n;
};

static void add(struct msg *m, const void *p, size_t n)
{
	assert_true(m->n + n <= sizeof(m->p));
	memcpy(m->p + m->n, p, n);
	m->n += n;
}

static void add16(struct msg *m, unsigned v)
{
	uint8_t b[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	add(m, b, 2);
}

static void add32(struct msg *m, uint32_t v)
{
	add16(m, v >> 16);
	add16(m, v & 0xffff);
}

/* Dotted text, or "@OFFSET" for a pointer; case is kept. */
static void add_name(struct msg *m, const char *text)
{
	unsigned pointer;

	if (sscanf(text, "@%u", &pointer) == 1) {
		add16(m, 0xc000 | pointer);
		return;
	}
	while (*text) {
		size_t n = strcspn(text, ".");
		uint8_t len = (uint8_t)n;

		add(m, &len, 1);
		add(m, text, n);
		text += n + (text[n] == '.');
	}
	add(m, "", 1);
}

static void add_header(struct msg *m, unsigned id, unsigned flags,
		       const unsigned count[4])
{
	m->n = 0;
	add16(m, id);
	add16(m, flags);
	for (int i = 0; i < 4; i++)
		add16(m, count[i]);
}

static void add_record(struct msg *m, const char *owner, unsigned type,
		       uint32_t ttl, const void *data, size_t n)
{
	add_name(m, owner);
	add16(m, type);
	add16(m, 1);
	add32(m, ttl);
	add16(m, (unsigned)n);
	add(m, data, n);
}

static void add_cname(struct msg *m, const char *owner, const char *target,
		      uint32_t ttl)
{
	struct msg data = { .n = 0 };

	add_name(&data, target);
	add_record(m, owner, 5, ttl, data.p, data.n);
}

static void add_opt(struct msg *m, unsigned size, uint32_t ttl,
		    const void *data, size_t n)
{
	add(m, "", 1);
	add16(m, 41);
	add16(m, size);
	add32(m, ttl);
	add16(m, (unsigned)n);
	add(m, data, n);
}

static void plain_question(struct msg *m, const char *name, unsigned type,
			   unsigned extra)
{
	add_header(m, 0x1234, 0x0100, (unsigned[]){ 1, 0, 0, extra });
	add_name(m, name);
	add16(m, type);
	add16(m, 1);
}

static enum dns_parse parse(const struct msg *m, struct dns_question *q)
{
	return dns_question_parse(m->p, m->n, q);
}

/* --- questions ------------------------------------------------------------- */

static void a_question_is_decoded_in_lower_case(void **state)
{
	struct dns_question q;
	struct msg m;

	(void)state;
	plain_question(&m, "API.Example.COM", 28, 0);
	assert_int_equal(parse(&m, &q), DNS_PARSE_OK);
	assert_int_equal(q.id, 0x1234);
	assert_true(q.rd && !q.cd && !q.edns && q.plain);
	assert_int_equal(q.type, 28);
	assert_int_equal(q.klass, 1);
	assert_string_equal(q.text, "api.example.com");
	assert_int_equal(q.udp_size, 512);
	assert_memory_equal(q.raw, "\3API\7Example\3COM\0\0\34\0\1", 21);
	assert_int_equal(q.raw_n, 21);
}

static void the_root_is_the_empty_text(void **state)
{
	struct dns_question q;
	struct msg m;

	(void)state;
	plain_question(&m, "", 2, 0);
	assert_int_equal(parse(&m, &q), DNS_PARSE_OK);
	assert_int_equal(q.text_n, 0);
	assert_true(q.plain);
}

static void odd_bytes_in_a_label_are_not_plain(void **state)
{
	static const char *const odd[] = {
		"a b.example", "caf\xc3\xa9.example", "a*b", "a\\b", "x\x01",
	};
	struct dns_question q;
	struct msg m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		plain_question(&m, odd[i], 1, 0);
		assert_int_equal(parse(&m, &q), DNS_PARSE_OK);
		assert_false(q.plain);
	}
	/* A dot or a NUL inside a label must not read as another name. */
	plain_question(&m, "evilXexample.com", 1, 0);
	m.p[12 + 5] = '.';
	assert_int_equal(parse(&m, &q), DNS_PARSE_OK);
	assert_false(q.plain);
	m.p[12 + 5] = '\0';
	assert_int_equal(parse(&m, &q), DNS_PARSE_OK);
	assert_false(q.plain);
	assert_int_equal(q.text_n, 16);
}

static void what_cannot_be_answered_is_dropped(void **state)
{
	struct dns_question q;
	struct msg m;

	(void)state;
	plain_question(&m, "a.example", 1, 0);
	for (size_t n = 0; n < 12; n++)
		assert_int_equal(dns_question_parse(m.p, n, &q),
				 DNS_PARSE_DROP);
	m.p[2] |= 0x80;		/* a response */
	assert_int_equal(parse(&m, &q), DNS_PARSE_DROP);
}

static void every_cut_of_a_question_is_malformed(void **state)
{
	struct dns_question q;
	struct msg m;

	(void)state;
	plain_question(&m, "a.example", 1, 1);
	add_opt(&m, 1232, 0, "\0\x0a\0\2xy", 6);
	assert_int_equal(parse(&m, &q), DNS_PARSE_OK);
	for (size_t n = 12; n < m.n; n++)
		assert_int_equal(dns_question_parse(m.p, n, &q),
				 DNS_PARSE_FORMERR);
	add(&m, "!", 1);	/* and so is anything behind the end */
	assert_int_equal(parse(&m, &q), DNS_PARSE_FORMERR);
}

static void other_opcodes_are_not_implemented(void **state)
{
	struct dns_question q;
	struct msg m;

	(void)state;
	for (unsigned opcode = 1; opcode < 16; opcode++) {
		plain_question(&m, "a.example", 1, 0);
		m.p[2] = (uint8_t)(opcode << 3);
		assert_int_equal(parse(&m, &q), DNS_PARSE_NOTIMP);
		assert_int_equal(q.opcode, opcode);
		assert_false(q.has_question);
	}
}

static void section_counts_must_be_those_of_a_question(void **state)
{
	static const unsigned counts[][4] = {
		{ 0, 0, 0, 0 }, { 2, 0, 0, 0 }, { 65535, 0, 0, 0 },
		{ 1, 1, 0, 0 }, { 1, 0, 1, 0 }, { 1, 0, 0, 65 },
		{ 1, 0, 0, 1 },
	};
	struct dns_question q;
	struct msg m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		add_header(&m, 1, 0x0100, counts[i]);
		add_name(&m, "a.example");
		add32(&m, 0x00010001);
		assert_int_equal(parse(&m, &q), DNS_PARSE_FORMERR);
	}
	plain_question(&m, "a.example", 1, 0);
	m.p[2] |= 0x02;		/* TC in a question */
	assert_int_equal(parse(&m, &q), DNS_PARSE_FORMERR);
}

/* RFC 1995 3: the SOA that the client has; it is of no interest here. */
static void ixfr_alone_brings_a_record_of_authority(void **state)
{
	static const uint8_t soa[22];
	static const struct {
		unsigned type, record, count;
		enum dns_parse verdict;
	} cases[] = {
		{ DNS_TYPE_IXFR, DNS_TYPE_SOA, 1, DNS_PARSE_OK },
		{ DNS_TYPE_IXFR, DNS_TYPE_SOA, 2, DNS_PARSE_FORMERR },
		{ DNS_TYPE_IXFR, DNS_TYPE_A, 1, DNS_PARSE_FORMERR },
		{ DNS_TYPE_IXFR, DNS_TYPE_OPT, 1, DNS_PARSE_FORMERR },
		{ DNS_TYPE_A, DNS_TYPE_SOA, 1, DNS_PARSE_FORMERR },
	};
	struct dns_question q;
	struct msg m;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		plain_question(&m, "a.example", cases[i].type, 0);
		m.p[9] = (uint8_t)cases[i].count;
		for (unsigned n = 0; n < cases[i].count; n++)
			add_record(&m, "a.example", cases[i].record, 0, soa,
				   sizeof(soa));
		assert_int_equal(parse(&m, &q), cases[i].verdict);
		assert_true(q.has_question);
	}
}

static void names_have_63_byte_labels_and_255_bytes(void **state)
{
	char text[300];
	struct dns_question q;
	struct msg m;

	(void)state;
	memset(text, 'a', sizeof(text));
	for (int i = 1; i < 4; i++)
		text[64 * i - 1] = '.';
	text[253] = '\0';
	plain_question(&m, text, 1, 0);
	assert_int_equal(parse(&m, &q), DNS_PARSE_OK);
	assert_int_equal(q.text_n, 253);
	assert_string_equal(q.text, text);
	text[253] = 'a';
	text[254] = '\0';
	plain_question(&m, text, 1, 0);
	assert_int_equal(parse(&m, &q), DNS_PARSE_FORMERR);
	/* 64 is no length but a reserved label type. */
	memset(text, 'a', 64);
	text[64] = '\0';
	plain_question(&m, text, 1, 0);
	assert_int_equal(parse(&m, &q), DNS_PARSE_FORMERR);
}

static void a_pointer_in_a_question_is_malformed(void **state)
{
	struct dns_question q;
	struct msg m;

	(void)state;
	for (unsigned to = 0; to < 40; to++) {
		add_header(&m, 1, 0x0100, (unsigned[]){ 1, 0, 0, 0 });
		add(&m, "\1a", 2);
		add16(&m, 0xc000 | to);
		add32(&m, 0x00010001);
		assert_int_equal(parse(&m, &q), DNS_PARSE_FORMERR);
	}
}

static void edns_is_read_and_its_options_are_passed_over(void **state)
{
	struct dns_question q;
	struct msg m;

	(void)state;
	/* DNS-16: an option of the client's choice says nothing to us. */
	plain_question(&m, "a.example", 1, 1);
	add_opt(&m, 4096, 0x8000, "\xfd\xe9\0\6secret\0\x0a\0\0", 14);
	assert_int_equal(parse(&m, &q), DNS_PARSE_OK);
	assert_true(q.edns && q.dnssec_ok);
	assert_int_equal(q.udp_size, 4096);
	assert_int_equal(dns_question_udp_limit(&q), 1232);
	plain_question(&m, "a.example", 1, 1);
	add_opt(&m, 100, 0, "", 0);
	assert_int_equal(parse(&m, &q), DNS_PARSE_OK);
	assert_int_equal(dns_question_udp_limit(&q), 512);
}

static void dns_15_three_thousand_empty_options_are_fine(void **state)
{
	static uint8_t options[3000 * 4];
	struct dns_question q;
	struct msg m;

	(void)state;
	plain_question(&m, "a.example", 1, 1);
	add_opt(&m, 1232, 0, options, sizeof(options));
	assert_int_equal(parse(&m, &q), DNS_PARSE_OK);
}

static void dns_15_bad_edns_is_refused(void **state)
{
	struct dns_question q;
	struct msg m;

	(void)state;
	plain_question(&m, "a.example", 1, 2);
	add_opt(&m, 1232, 0, "", 0);
	add_opt(&m, 1232, 0, "", 0);
	assert_int_equal(parse(&m, &q), DNS_PARSE_FORMERR);

	/* RFC 6891 6.1.1: who sent one gets one, malformed or not. */
	plain_question(&m, "a.example", 1, 1);
	add_opt(&m, 1232, 0, "\xfd\xe9\0\5abc", 7);
	assert_int_equal(parse(&m, &q), DNS_PARSE_FORMERR);
	assert_true(q.edns);

	plain_question(&m, "a.example", 1, 1);
	add_opt(&m, 1232, 0x00010000, "", 0);
	assert_int_equal(parse(&m, &q), DNS_PARSE_BADVERS);
	assert_true(q.edns && q.has_question);

	plain_question(&m, "a.example", 1, 1);
	add_opt(&m, 1232, 0, "\0\x0a\0\3xy", 6);	/* longer than RDATA */
	assert_int_equal(parse(&m, &q), DNS_PARSE_FORMERR);

	plain_question(&m, "a.example", 1, 1);
	add_record(&m, "b", 41, 0, "", 0);		/* not of the root */
	assert_int_equal(parse(&m, &q), DNS_PARSE_FORMERR);
}

static void other_additional_records_are_passed_over(void **state)
{
	struct dns_question q;
	struct msg m;

	(void)state;
	plain_question(&m, "a.example", 1, 2);
	add_record(&m, "@12", 16, 5, "\5hello", 6);
	add_opt(&m, 1232, 0, "", 0);
	assert_int_equal(parse(&m, &q), DNS_PARSE_OK);
	assert_true(q.edns);
}

/* --- replies --------------------------------------------------------------- */

static void ask(struct dns_question *q, const char *name, unsigned type,
		bool edns)
{
	struct msg m;

	plain_question(&m, name, type, edns);
	if (edns)
		add_opt(&m, 1232, 0, "", 0);
	assert_int_equal(parse(&m, q), DNS_PARSE_OK);
}

static void an_address_is_answered(void **state)
{
	static const uint8_t want[] =
		"\x12\x34\x81\x80\0\1\0\1\0\0\0\0"
		"\1A\2Bc\0\0\1\0\1"
		"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc6\x12\1\1";
	struct ip_addr a = { .family = IP_V4, .b = { 198, 18, 1, 1 } };
	struct dns_reply r = { .addr = &a, .naddr = 1, .ttl_s = 60, .ede = -1 };
	struct dns_question q;
	uint8_t out[512];
	size_t n;

	(void)state;
	ask(&q, "A.Bc", 1, false);
	n = dns_reply_encode(&q, &r, sizeof(out), out);
	assert_int_equal(n, sizeof(want) - 1);
	assert_memory_equal(out, want, n);
}

static void a_refusal_carries_soa_and_its_reason(void **state)
{
	static const uint8_t want[] =
		"\x12\x34\x81\x83\0\1\0\0\0\1\0\1"
		"\1a\0\0\1\0\1"
		"\0\0\6\0\1\0\0\0\5\0\x27"
		"\x8penstock\7invalid\0\0"
		"\0\0\0\1\0\0\x0e\x10\0\0\2\x58\0\1\x51\x80\0\0\0\5"
		"\0\0\x29\x04\xd0\0\0\0\0\0\x0a"
		"\0\x0f\0\6\0\x0fword";
	struct dns_reply r = {
		.rcode = DNS_NXDOMAIN, .soa = true, .soa_ttl_s = 5,
		.ede = 15, .ede_text = STR("word"),
	};
	struct dns_question q;
	uint8_t out[512];
	size_t n;

	(void)state;
	ask(&q, "a", 1, true);
	n = dns_reply_encode(&q, &r, sizeof(out), out);
	assert_int_equal(n, sizeof(want) - 1);
	assert_memory_equal(out, want, n);
	/* Without EDNS there is nothing to carry the reason. */
	ask(&q, "a", 1, false);
	n = dns_reply_encode(&q, &r, sizeof(out), out);
	assert_int_equal(n, sizeof(want) - 1 - 21);
	assert_int_equal(out[11], 0);
}

static void bad_version_needs_the_extended_rcode(void **state)
{
	struct dns_reply r = { .rcode = DNS_BADVERS, .ede = -1 };
	struct dns_question q;
	uint8_t out[512];
	size_t n;

	(void)state;
	ask(&q, "a", 1, true);
	n = dns_reply_encode(&q, &r, sizeof(out), out);
	assert_int_equal(n, 12 + 7 + 11);
	assert_int_equal(out[3] & 0xf, 0);
	assert_int_equal(out[12 + 7 + 5], 1);
}

static void a_malformed_question_is_answered_by_its_header(void **state)
{
	struct dns_reply r = { .rcode = DNS_FORMERR, .ede = -1 };
	struct dns_question q;
	uint8_t out[512];

	(void)state;
	assert_int_equal(dns_question_parse((const uint8_t *)
			 "\xab\xcd\1\0\0\7\0\0\0\0\0\0", 12, &q),
			 DNS_PARSE_FORMERR);
	assert_int_equal(dns_reply_encode(&q, &r, sizeof(out), out), 12);
	assert_memory_equal(out, "\xab\xcd\x81\x81\0\0\0\0\0\0\0\0", 12);
}

static void dns_10_of_too_many_addresses_come_those_that_fit(void **state)
{
	static const struct ip_addr a[60] = { [0 ... 59] = {
		.family = IP_V6, .b = { 0x20, 1, 0xd, 0xb8 } } };
	struct dns_reply r = { .addr = a, .naddr = 60, .ttl_s = 60, .ede = -1 };
	struct dns_question q;
	static uint8_t out[65535];
	size_t n;

	(void)state;
	ask(&q, "many.example", 28, true);
	n = dns_reply_encode(&q, &r, dns_question_udp_limit(&q), out);
	assert_int_equal(n, 12 + 14 + 4 + 42 * 28 + 11);
	assert_true(out[2] & 0x02);
	assert_int_equal(out[7], 42);
	assert_int_equal(out[11], 1);
	n = dns_reply_encode(&q, &r, sizeof(out), out);
	assert_int_equal(n, 12 + 14 + 4 + 60 * 28 + 11);
	assert_false(out[2] & 0x02);
	assert_int_equal(out[7], 60);
}

static void the_longest_name_cut_still_fits_in_512(void **state)
{
	static const struct ip_addr a[60] = { [0 ... 59] = {
		.family = IP_V4 } };
	struct dns_reply r = { .addr = a, .naddr = 60, .ede = 15,
			       .ede_text = STR("x") };
	char text[254];
	struct dns_question q;
	uint8_t out[512];

	(void)state;
	memset(text, 'a', sizeof(text));
	for (int i = 1; i < 4; i++)
		text[64 * i - 1] = '.';
	text[253] = '\0';
	ask(&q, text, 1, true);
	assert_int_equal(dns_reply_encode(&q, &r, 512, out),
			 12 + 255 + 4 + 14 * 16 + 11);
	assert_int_equal(out[7], 14);
}

static void a_pointer_record_is_answered(void **state)
{
	struct dns_name name;
	struct dns_reply r = { .ptr = &name, .ttl_s = 60, .ede = -1 };
	struct dns_question q;
	uint8_t out[512];
	size_t n;

	(void)state;
	assert_int_equal(dns_name_from_text(STR("localhost"), &name), 0);
	ask(&q, "1.0.0.127.in-addr.arpa", 12, false);
	n = dns_reply_encode(&q, &r, sizeof(out), out);
	assert_memory_equal(out + n - 11, "\x9localhost\0", 11);
	assert_int_equal(out[7], 1);
}

static void types_have_names_or_numbers(void **state)
{
	char out[DNS_TYPE_TEXT_SIZE];

	(void)state;
	assert_string_equal(dns_type_text(28, out), "AAAA");
	assert_string_equal(dns_type_text(65, out), "HTTPS");
	assert_string_equal(dns_type_text(65535, out), "TYPE65535");
}

static void text_to_name_is_strict(void **state)
{
	static const char *const bad[] = {
		".", "a.", ".a", "a..b",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	};
	struct dns_name name;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(dns_name_from_text(str_from(bad[i]), &name),
				 -EINVAL);
	assert_int_equal(dns_name_from_text(STR(""), &name), 0);
	assert_int_equal(name.n, 1);
	assert_int_equal(dns_name_from_text(STR("A.b"), &name), 0);
	assert_memory_equal(name.b, "\1a\1b\0", 5);
}

/* --- asks and answers ------------------------------------------------------ */

static const uint8_t no_mix[32];

static void make_ask(struct dns_ask *a, const char *name, uint16_t type)
{
	struct dns_name wire;

	assert_int_equal(dns_name_from_text(str_from(name), &wire), 0);
	dns_ask_encode(&wire, type, 0x5678, no_mix, a);
}

static void answer_head(struct msg *m, const struct dns_ask *a, unsigned flags,
			unsigned answers, unsigned authority)
{
	add_header(m, 0x5678, 0x8180 | flags,
		   (unsigned[]){ 1, answers, authority, 0 });
	add(m, a->p + 12, a->question_n);
}

static void an_ask_is_name_and_type_and_a_bare_opt(void **state)
{
	static const uint8_t want[] =
		"\x56\x78\1\0\0\1\0\0\0\0\0\1"
		"\3api\7example\0\0\1\0\1"
		"\0\0\x29\x04\xd0\0\0\0\0\0\0";
	struct dns_ask a;

	(void)state;
	make_ask(&a, "api.example", 1);
	assert_int_equal(a.n, sizeof(want) - 1);
	assert_memory_equal(a.p, want, a.n);
}

static void letters_are_mixed_and_nothing_else(void **state)
{
	uint8_t mix[32];
	struct dns_name wire;
	struct dns_ask a;

	(void)state;
	memset(mix, 0xff, sizeof(mix));
	assert_int_equal(dns_name_from_text(STR("a-1.b_z"), &wire), 0);
	dns_ask_encode(&wire, 1, 1, mix, &a);
	assert_memory_equal(a.p + 12, "\3A-1\3B_Z\0", 9);
	memset(mix, 0, sizeof(mix));
	mix[0] = 0x02;
	dns_ask_encode(&wire, 1, 1, mix, &a);
	assert_memory_equal(a.p + 12, "\3A-1\3b_z\0", 9);
}

static void addresses_of_the_asked_name_are_read(void **state)
{
	struct dns_answer r;
	struct dns_ask a;
	struct msg m;

	(void)state;
	make_ask(&a, "api.example", 1);
	answer_head(&m, &a, 0, 4, 0);
	add_record(&m, "@12", 1, 300, "\xcb\0\x71\1", 4);
	add_record(&m, "API.example", 1, 200, "\xcb\0\x71\2", 4);
	/* DNS-27: out of bailiwick, and of another type: passed over. */
	add_record(&m, "www.victim.example", 1, 1, "\x7f\0\0\1", 4);
	add_record(&m, "@12", 46, 1, "rrsig", 5);
	assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r), 0);
	assert_int_equal(r.rcode, 0);
	assert_int_equal(r.naddr, 2);
	assert_memory_equal(r.addr[1].b, "\xcb\0\x71\2", 4);
	assert_int_equal(r.addr[1].family, IP_V4);
	assert_int_equal(r.ttl_s, 200);
	assert_int_equal(r.chain, 0);
}

static void dns_18_a_chain_is_followed_in_any_order(void **state)
{
	struct dns_answer r;
	struct dns_ask a;
	struct msg m;
	char text[DNS_TEXT_MAX + 1];
	size_t n;

	(void)state;
	make_ask(&a, "api.example", 28);
	answer_head(&m, &a, 0, 3, 0);
	add_record(&m, "z.cdn.example", 28, 90,
		   "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	add_cname(&m, "y.cdn.example", "Z.cdn.example", 30);
	add_cname(&m, "@12", "y.cdn.example", 60);
	assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r), 0);
	assert_int_equal(r.chain, 2);
	assert_int_equal(r.naddr, 1);
	assert_int_equal(r.ttl_s, 30);
	assert_true(dns_name_text(&r.tail, text, &n));
	assert_string_equal(text, "z.cdn.example");
}

static void dns_19_circles_and_long_chains_end(void **state)
{
	char from[32], to[32];
	struct dns_answer r;
	struct dns_ask a;
	struct msg m;

	(void)state;
	make_ask(&a, "a.example", 1);
	answer_head(&m, &a, 0, 2, 0);
	add_cname(&m, "a.example", "b.example", 1);
	add_cname(&m, "b.example", "a.example", 1);
	assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r), -ELOOP);
	answer_head(&m, &a, 0, 1, 0);
	add_cname(&m, "a.example", "a.example", 1);
	assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r), -ELOOP);
	for (unsigned len = 11; len <= 12; len++) {
		make_ask(&a, "n0.example", 1);
		answer_head(&m, &a, 0, len, 0);
		for (unsigned i = 0; i < len; i++) {
			snprintf(from, sizeof(from), "n%u.example", i);
			snprintf(to, sizeof(to), "n%u.example", i + 1);
			add_cname(&m, from, to, 1);
		}
		assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r),
				 len == 11 ? 0 : -ELOOP);
	}
}

static void dns_27_what_does_not_repeat_the_ask_is_no_answer(void **state)
{
	struct dns_answer r;
	struct dns_ask a;
	struct msg m;

	(void)state;
	make_ask(&a, "api.example", 1);
	answer_head(&m, &a, 0, 0, 0);
	assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r), 0);
	for (size_t i = 0; i < m.n; i++) {
		/* Flags but QR and opcode, and the counts, may differ. */
		static const uint8_t mask[12] = { 255, 255, 0xf8, 0, 255, 255 };
		uint8_t flip = i < 12 ? mask[i] & 0x88 : 0x80;

		if (!flip)
			continue;
		m.p[i] ^= flip;
		assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r),
				 -ENOMSG);
		m.p[i] ^= flip;
	}
	m.p[13] ^= 0x20;	/* another case */
	assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r), -ENOMSG);
	assert_int_equal(dns_answer_parse(m.p, m.n, &a, false, &r), 0);
	assert_int_equal(dns_answer_parse(m.p, 11, &a, true, &r), -ENOMSG);
	assert_int_equal(dns_answer_parse(m.p, 12, &a, true, &r), -ENOMSG);
}

static void dns_28_too_many_records_are_no_answer(void **state)
{
	struct dns_answer r;
	struct dns_ask a;
	struct msg m;

	(void)state;
	make_ask(&a, "api.example", 1);
	answer_head(&m, &a, 0, 513, 0);
	for (int i = 0; i < 513; i++)
		add_record(&m, "@12", 1, 1, "\xcb\0\x71\2", 4);
	assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r), -EBADMSG);
	answer_head(&m, &a, 0, 512, 0);
	for (int i = 0; i < 512; i++)
		add_record(&m, "@12", 1, 1, "\xcb\0\x71\2", 4);
	assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r), 0);
	assert_int_equal(r.naddr, RESOLVER_ADDRS_MAX);
}

static void every_cut_of_an_answer_is_malformed(void **state)
{
	struct dns_answer r;
	struct dns_ask a;
	struct msg m;
	size_t question;

	(void)state;
	make_ask(&a, "api.example", 1);
	answer_head(&m, &a, 3, 1, 1);
	question = m.n;
	add_cname(&m, "@12", "b.example", 5);
	add_record(&m, "example", 6, 900, "\0\0\0\0\0\1\0\0\0\1\0\0\0\1"
		   "\0\0\0\1\0\0\0\x1e", 22);
	assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r), 0);
	assert_int_equal(r.rcode, DNS_NXDOMAIN);
	assert_true(r.has_soa);
	assert_int_equal(r.soa_ttl_s, 30);
	for (size_t n = question; n < m.n; n++)
		assert_int_equal(dns_answer_parse(m.p, n, &a, true, &r),
				 -EBADMSG);
	m.p[2] |= 0x02;
	assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r), -EBADMSG);
}

static void an_address_of_the_wrong_size_is_malformed(void **state)
{
	struct dns_answer r;
	struct dns_ask a;
	struct msg m;

	(void)state;
	make_ask(&a, "api.example", 1);
	answer_head(&m, &a, 0, 1, 0);
	add_record(&m, "@12", 1, 1, "\xcb\0\x71", 3);
	assert_int_equal(dns_answer_parse(m.p, m.n, &a, true, &r), -EBADMSG);
}

static void pointers_go_backwards_and_are_counted(void **state)
{
	struct dns_name name;
	struct msg m = { .n = 12 };
	size_t next, at;

	(void)state;
	/* A chain of 129 pointers, each to the one before it. */
	add(&m, "\1a\0", 3);
	add16(&m, 0xc000 | 12);
	for (unsigned i = 1; i < 129; i++)
		add16(&m, 0xc000 | (15 + 2 * (i - 1)));
	at = 15 + 2 * 127;
	assert_int_equal(dns_name_read(m.p, m.n, at, &name, &next), 0);
	assert_int_equal(next, at + 2);
	assert_int_equal(dns_name_read(m.p, m.n, at + 2, &name, &next),
			 -EBADMSG);
	/* To itself, forwards, into the header. */
	m.n = 12;
	add16(&m, 0xc000 | 12);
	assert_int_equal(dns_name_read(m.p, m.n, 12, &name, &next), -EBADMSG);
	m.n = 12;
	add16(&m, 0xc000 | 14);
	add(&m, "\1a\0", 3);
	assert_int_equal(dns_name_read(m.p, m.n, 12, &name, &next), -EBADMSG);
	memset(m.p, 0, 12);
	m.n = 12;
	add16(&m, 0xc000 | 4);
	assert_int_equal(dns_name_read(m.p, m.n, 12, &name, &next), -EBADMSG);
	/* A label, then a pointer to before itself but into that label. */
	m.n = 12;
	add(&m, "\1a", 2);
	add16(&m, 0xc000 | 12);
	assert_int_equal(dns_name_read(m.p, m.n, 12, &name, &next), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_question_is_decoded_in_lower_case),
		cmocka_unit_test(the_root_is_the_empty_text),
		cmocka_unit_test(odd_bytes_in_a_label_are_not_plain),
		cmocka_unit_test(what_cannot_be_answered_is_dropped),
		cmocka_unit_test(every_cut_of_a_question_is_malformed),
		cmocka_unit_test(other_opcodes_are_not_implemented),
		cmocka_unit_test(section_counts_must_be_those_of_a_question),
		cmocka_unit_test(ixfr_alone_brings_a_record_of_authority),
		cmocka_unit_test(names_have_63_byte_labels_and_255_bytes),
		cmocka_unit_test(a_pointer_in_a_question_is_malformed),
		cmocka_unit_test(edns_is_read_and_its_options_are_passed_over),
		cmocka_unit_test(dns_15_three_thousand_empty_options_are_fine),
		cmocka_unit_test(dns_15_bad_edns_is_refused),
		cmocka_unit_test(other_additional_records_are_passed_over),
		cmocka_unit_test(an_address_is_answered),
		cmocka_unit_test(a_refusal_carries_soa_and_its_reason),
		cmocka_unit_test(bad_version_needs_the_extended_rcode),
		cmocka_unit_test(a_malformed_question_is_answered_by_its_header),
		cmocka_unit_test(dns_10_of_too_many_addresses_come_those_that_fit),
		cmocka_unit_test(the_longest_name_cut_still_fits_in_512),
		cmocka_unit_test(a_pointer_record_is_answered),
		cmocka_unit_test(types_have_names_or_numbers),
		cmocka_unit_test(text_to_name_is_strict),
		cmocka_unit_test(an_ask_is_name_and_type_and_a_bare_opt),
		cmocka_unit_test(letters_are_mixed_and_nothing_else),
		cmocka_unit_test(addresses_of_the_asked_name_are_read),
		cmocka_unit_test(dns_18_a_chain_is_followed_in_any_order),
		cmocka_unit_test(dns_19_circles_and_long_chains_end),
		cmocka_unit_test(
			dns_27_what_does_not_repeat_the_ask_is_no_answer),
		cmocka_unit_test(dns_28_too_many_records_are_no_answer),
		cmocka_unit_test(every_cut_of_an_answer_is_malformed),
		cmocka_unit_test(an_address_of_the_wrong_size_is_malformed),
		cmocka_unit_test(pointers_go_backwards_and_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
