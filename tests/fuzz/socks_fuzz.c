/* SPDX-License-Identifier: Apache-2.0 */
/*
 * socks_fuzz.c - any bytes as messages of SOCKS: nothing over the most that a
 *                message may be is awaited, a verdict once given stays, and
 *                what is asked for is canonical
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "proxy/socks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_greeting(struct str in)
{
	enum socks_method method;
	size_t bytes;

	switch (socks_greeting(in, &method, &bytes)) {
	case SOCKS_MORE:
		REQUIRE(in.n < SOCKS_GREETING_MAX);
		break;
	case SOCKS_DONE:
		REQUIRE(bytes <= in.n && bytes <= SOCKS_GREETING_MAX);
		REQUIRE(method == SOCKS_NO_LOGIN || method == SOCKS_PASSWORD ||
			method == SOCKS_NO_METHOD);
		break;
	case SOCKS_BAD:
		REQUIRE(in.p[0] != SOCKS_V5);
		break;
	}
}

static void check_login(struct str in)
{
	size_t bytes;
	enum socks_result got = socks_login(in, &bytes);

	REQUIRE(got != SOCKS_MORE || in.n < SOCKS_LOGIN_MAX);
	REQUIRE(got != SOCKS_DONE ||
		(bytes <= in.n && bytes <= SOCKS_LOGIN_MAX));
	REQUIRE(got != SOCKS_BAD || in.p[0] != 1);
}

static void check_asked(struct str in, const struct socks_request *r)
{
	struct host_name name;

	REQUIRE(r->bytes <= in.n && r->bytes <= SOCKS_REQUEST_MAX);
	REQUIRE(r->port != 0 && r->kind != HOST_BAD);
	if (r->kind == HOST_ADDRESS) {
		REQUIRE(r->addr.family != IP_NONE);
		return;
	}
	REQUIRE(host_name_parse(host_name_str(&r->name), &name) == 0);
	REQUIRE(str_eq(host_name_str(&name), host_name_str(&r->name)));
}

static void check_request(uint8_t version, struct str in)
{
	struct socks_request r, half;
	enum reason why = REASON_ALLOWED, earlier = REASON_ALLOWED;
	enum socks_result got = socks_request(version, in, &r, &why);

	REQUIRE(got != SOCKS_MORE || in.n < SOCKS_REQUEST_MAX);
	if (got == SOCKS_DONE)
		check_asked(in, &r);
	if (got == SOCKS_BAD)
		REQUIRE(r.reply != SOCKS_GRANTED &&
			(why == REASON_REQUEST_MALFORMED ||
			 why == REASON_AUTHORITY_INVALID ||
			 why == REASON_METHOD_NOT_SUPPORTED));
	switch (socks_request(version, str_make(in.p, in.n / 2), &half,
			      &earlier)) {
	case SOCKS_MORE:
		break;
	case SOCKS_DONE:
		REQUIRE(got == SOCKS_DONE && half.bytes == r.bytes);
		break;
	case SOCKS_BAD:
		REQUIRE(got == SOCKS_BAD && why == earlier);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str in = str_make(data, n);

	check_greeting(in);
	check_login(in);
	check_request(SOCKS_V4, in);
	check_request(SOCKS_V5, in);
	return 0;
}
