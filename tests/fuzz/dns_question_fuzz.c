/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_question_fuzz.c - whatever a client sends is answered within bounds
 */
#include <stdlib.h>

#include "resolver/dns_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* The reply can be read back, repeats id and question, and keeps its limit. */
static void check_reply(const struct dns_question *q, const struct dns_reply *r,
			size_t limit)
{
	static uint8_t out[DNS_MSG_MAX];
	size_t n = dns_reply_encode(q, r, limit, out), off = DNS_HEADER_SIZE;
	struct dns_name name;
	struct dns_record rr;
	unsigned records;

	check(n <= limit && n >= DNS_HEADER_SIZE);
	check(dns_get16(out) == q->id && (out[2] & 0x80));
	check(dns_get16(out + 4) == q->has_question);
	if (q->has_question) {
		check(dns_name_read(out, n, off, &name, &off) == 0);
		check(dns_name_eq(&name, &q->name));
		check(dns_get16(out + off) == q->type);
		off += 4;
	}
	records = (unsigned)dns_get16(out + 6) + dns_get16(out + 8) +
		  dns_get16(out + 10);
	for (; records > 0; records--)
		check(dns_record_read(out, n, &off, &rr) == 0);
	check(off == n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct ip_addr addrs[50] = {
		[0 ... 49] = { .family = IP_V6 },
	};
	struct dns_reply r = { .ttl_s = 60, .ede = -1 };
	struct dns_question q;
	struct dns_name name;
	enum dns_parse verdict = dns_question_parse(data, n, &q);

	if (verdict == DNS_PARSE_DROP)
		return 0;
	check(n >= DNS_HEADER_SIZE);
	check(verdict != DNS_PARSE_OK || q.has_question);
	if (q.has_question) {
		check(strlen(q.text) <= q.text_n && q.text_n <= DNS_SHOWN_MAX);
		/* What is plain says exactly which name it is. */
		if (q.plain)
			check(dns_name_from_text(dns_question_text(&q),
						 &name) == 0 &&
			      dns_name_eq(&name, &q.name));
	}
	check_reply(&q, &r, DNS_PLAIN_SIZE);
	r = (struct dns_reply){
		.rcode = DNS_NXDOMAIN, .soa = true, .ede = 15,
		.ede_text = STR("host_not_allowed"),
	};
	check_reply(&q, &r, dns_question_udp_limit(&q));
	if (!q.has_question)
		return 0;	/* there is no name to answer for */
	r = (struct dns_reply){ .addr = addrs, .naddr = ARRAY_SIZE(addrs),
				.ede = -1 };
	check_reply(&q, &r, dns_question_udp_limit(&q));
	check_reply(&q, &r, DNS_MSG_MAX);
	return 0;
}
