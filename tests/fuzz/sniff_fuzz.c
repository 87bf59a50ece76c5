/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sniff_fuzz.c - any bytes as the first ones of a connection: a verdict once
 *                given stays, and a name that is given is canonical
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "proxy/http1.h"
#include "proxy/sniff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char scratch[SNIFF_HELLO_MAX];

static void check_hello(struct str in)
{
	enum reason why = REASON_ALLOWED, later;
	struct sniff_hello hello, again;
	struct host_name name;
	enum sniff_result got = sniff_hello(in, scratch, &hello, &why);

	REQUIRE(got != SNIFF_BAD || why == REASON_PROTOCOL_MISMATCH ||
		why == REASON_SNI_INVALID || why == REASON_HELLO_INCOMPLETE);
	REQUIRE(got != SNIFF_MORE || in.n < SNIFF_INPUT_MAX);
	if (got == SNIFF_DONE && hello.has_sni) {
		REQUIRE(host_name_parse(host_name_str(&hello.sni), &name) == 0);
		REQUIRE(str_eq(host_name_str(&name), host_name_str(&hello.sni)));
	}
	/* Half of it says more, or the same. */
	switch (sniff_hello(str_make(in.p, in.n / 2), scratch, &again, &later)) {
	case SNIFF_MORE:
		break;
	case SNIFF_DONE:
		REQUIRE(got == SNIFF_DONE && again.has_sni == hello.has_sni);
		break;
	case SNIFF_BAD:
		REQUIRE(got == SNIFF_BAD && why == later);
		break;
	}
}

static void check_http(struct str in)
{
	static struct http1_head head;
	enum reason why;
	enum sniff_result got = sniff_http(in);
	enum sniff_result half = sniff_http(str_make(in.p, in.n / 2));

	REQUIRE(half == SNIFF_MORE || half == got);
	/* What is taken for no request is none. */
	if (got == SNIFF_BAD)
		REQUIRE(http1_parse_request(in, &head, &why) != HTTP1_DONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str in = str_make(data, n);

	check_hello(in);
	check_http(in);
	(void)sniff_looks_tls(in);
	return 0;
}
