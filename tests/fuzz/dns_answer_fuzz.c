/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_answer_fuzz.c - whatever a server answers is read within bounds
 *
 * The first byte chooses type (bits 0 and 2 to 4) and strictness (bit 1), the
 * next ten are the header behind the id, the rest stands behind the question: id
 * and question are put in here, so that every input gets past the check for them.
 */
#include <errno.h>
#include <stdlib.h>

#include "resolver/dns_answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static bool even(void *arg, const struct ip_addr *hint)
{
	(void)arg;
	return hint->b[3] % 2 == 0;
}

/* What was taken is whole, and is taken again as it stands. */
static void check_rdata(const struct dns_answer *a, uint16_t type)
{
	struct buf again = BUF_INIT(2 * DNS_RDATA_MAX);
	struct str rest = buf_str(&a->rdata), one;

	while (dns_rdata_next(&rest, &one)) {
		struct dns_record rr = {
			.type = type, .data_n = (uint16_t)one.n,
		};

		buf_reset(&again);
		check(dns_rdata_add(&again, (const uint8_t *)one.p, one.n,
				    &rr) == 0);
		check(again.n == one.n + 2 &&
		      memcmp(again.p + 2, one.p, one.n) == 0);
		if (type == DNS_TYPE_HTTPS || type == DNS_TYPE_SVCB) {
			int err = dns_svcb_filter(one, even, NULL, &again);

			check(err == 0 || err == -ENOENT);
		}
	}
	check(rest.n == 0);
	buf_done(&again);
}

static void check_answer(const uint8_t *msg, size_t n,
			 const struct dns_ask *ask, bool exact, uint16_t type)
{
	const bool v4 = type == DNS_TYPE_A;
	struct dns_answer a;
	int err = dns_answer_parse(msg, n, ask, exact, &a);

	check(err == 0 || err == -ENOMSG || err == -EBADMSG || err == -ELOOP);
	if (err == 0)
		check_rdata(&a, type);
	dns_answer_done(&a);
	if (err)
		return;
	check(a.naddr <= RESOLVER_ADDRS_MAX && a.chain <= DNS_CHAIN_MAX);
	check(a.tail.n > 0 && a.tail.b[a.tail.n - 1] == 0);
	for (size_t i = 0; i < a.naddr; i++)
		check(a.addr[i].family == (v4 ? IP_V4 : IP_V6));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static uint8_t msg[DNS_MSG_MAX];
	static const uint8_t mix[32] = { 0x55, 0xaa, 0x0f };
	static const uint16_t others[8] = {
		0, DNS_TYPE_TXT, DNS_TYPE_MX, DNS_TYPE_SRV, DNS_TYPE_NS,
		DNS_TYPE_CAA, DNS_TYPE_HTTPS, DNS_TYPE_PTR,
	};
	struct dns_name name;
	struct dns_ask ask;
	size_t size = DNS_HEADER_SIZE;
	uint16_t type;
	bool exact;

	if (n < 11 || n > 32768)
		return 0;
	type = others[data[0] >> 2 & 7];
	if (type == 0)
		type = data[0] & 1 ? DNS_TYPE_A : DNS_TYPE_AAAA;
	exact = data[0] & 2;
	check(dns_name_from_text(STR("api.example.com"), &name) == 0);
	dns_ask_encode(&name, type, 0x1234, mix,
		       &ask);
	memcpy(msg, ask.p, 2);
	memcpy(msg + 2, data + 1, 10);
	memcpy(msg + size, ask.p + size, ask.question_n);
	size += ask.question_n;
	memcpy(msg + size, data + 11, n - 11);
	size += n - 11;
	check_answer(msg, size, &ask, exact, type);
	/* And as it came, without our help. */
	check_answer(data, n, &ask, exact, type);
	return 0;
}
