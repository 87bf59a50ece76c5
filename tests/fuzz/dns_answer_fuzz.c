/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_answer_fuzz.c - whatever a server answers is read within bounds
 *
 * The first byte chooses type and strictness, the next ten are the header
 * behind the id, the rest stands behind the question: id and question are put
 * in here, so that every input gets past the check for them.
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

static void check_answer(const uint8_t *msg, size_t n,
			 const struct dns_ask *ask, bool exact, bool v4)
{
	struct dns_answer a;
	int err = dns_answer_parse(msg, n, ask, exact, &a);

	check(err == 0 || err == -ENOMSG || err == -EBADMSG || err == -ELOOP);
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
	struct dns_name name;
	struct dns_ask ask;
	size_t size = DNS_HEADER_SIZE;
	bool v4, exact;

	if (n < 11 || n > 32768)
		return 0;
	v4 = data[0] & 1;
	exact = data[0] & 2;
	check(dns_name_from_text(STR("api.example.com"), &name) == 0);
	dns_ask_encode(&name, v4 ? DNS_TYPE_A : DNS_TYPE_AAAA, 0x1234, mix,
		       &ask);
	memcpy(msg, ask.p, 2);
	memcpy(msg + 2, data + 1, 10);
	memcpy(msg + size, ask.p + size, ask.question_n);
	size += ask.question_n;
	memcpy(msg + size, data + 11, n - 11);
	size += n - 11;
	check_answer(msg, size, &ask, exact, v4);
	/* And as it came, without our help. */
	check_answer(data, n, &ask, exact, v4);
	return 0;
}
