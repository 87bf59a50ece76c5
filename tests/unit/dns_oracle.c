/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_oracle.c - our codec on standard input, to be compared with another one
 *
 *	Q HEX	a question: verdict id type class edns size name-in-hex
 *	R RCODE HEX	the reply to a question: in hex, with an address
 *	A HEX HEX	an ask's packet and its answer: result rcode chain soa
 *			addresses, or RDATA of another type
 */
#include <stdio.h>
#include <stdlib.h>

#include "resolver/dns_answer.h"

#define LINE_MAX_BYTES	300000

static size_t from_hex(const char *hex, uint8_t *out, size_t cap)
{
	size_t n = 0;
	unsigned v;

	while (n < cap && sscanf(hex + 2 * n, "%2x", &v) == 1)
		out[n++] = (uint8_t)v;
	return n;
}

static void put_hex(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		printf("%02x", p[i]);
}

static void on_question(const char *hex)
{
	static uint8_t in[DNS_MSG_MAX];
	size_t n = from_hex(hex, in, sizeof(in));
	struct dns_question q;
	enum dns_parse verdict = dns_question_parse(in, n, &q);

	printf("%d %u %u %u %d %u ", verdict, q.id, q.type, q.klass, q.edns,
	       q.udp_size);
	put_hex(q.name.b, q.name.n);
	printf("\n");
}

static void on_reply(char *args)
{
	static uint8_t in[DNS_MSG_MAX], out[DNS_EDNS_SIZE];
	char *hex;
	unsigned rcode = (unsigned)strtoul(args, &hex, 10);
	size_t n = from_hex(hex + 1, in, sizeof(in));
	struct ip_addr a = { .family = IP_V4, .b = { 198, 18, 1, 2 } };
	struct dns_reply r = {
		.rcode = rcode, .addr = &a, .naddr = rcode == 0, .ttl_s = 60,
		.soa = rcode == DNS_NXDOMAIN, .soa_ttl_s = 5,
		.ede = rcode == 0 ? -1 : 15, .ede_text = STR("word"),
	};
	struct dns_question q;

	if (dns_question_parse(in, n, &q) != DNS_PARSE_OK) {
		printf("none\n");
		return;
	}
	put_hex(out, dns_reply_encode(&q, &r, sizeof(out), out));
	printf("\n");
}

static void on_answer(char *args)
{
	static uint8_t packet[DNS_MSG_MAX], in[DNS_MSG_MAX];
	char *second = strchr(args, ' ');
	struct dns_ask ask = { .n = 0 };
	struct dns_answer a = { .rcode = 0 };
	struct str rest, one;
	size_t n;
	int err;

	if (!second)
		exit(2);
	*second++ = '\0';
	n = from_hex(args, packet, sizeof(packet));
	if (n < DNS_HEADER_SIZE || n > sizeof(ask.p))
		exit(2);
	memcpy(ask.p, packet, n);
	ask.n = (uint16_t)n;
	ask.question_n = (uint16_t)(n - DNS_HEADER_SIZE);
	n = from_hex(second, in, sizeof(in));
	err = dns_answer_parse(in, n, &ask, true, &a);
	printf("%d %d %u %d", err, err ? 0 : (int)a.rcode, err ? 0 : a.chain,
	       !err && a.has_soa);
	for (size_t i = 0; !err && i < a.naddr; i++) {
		printf(" ");
		put_hex(a.addr[i].b, a.addr[i].family == IP_V4 ? 4 : 16);
	}
	rest = buf_str(&a.rdata);
	while (!err && dns_rdata_next(&rest, &one)) {
		printf(" ");
		put_hex((const uint8_t *)one.p, one.n);
	}
	dns_answer_done(&a);
	printf("\n");
}

int main(void)
{
	static char line[LINE_MAX_BYTES];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == 'Q')
			on_question(line + 2);
		else if (line[0] == 'R')
			on_reply(line + 2);
		else if (line[0] == 'A')
			on_answer(line + 2);
		fflush(stdout);
	}
	return 0;
}
