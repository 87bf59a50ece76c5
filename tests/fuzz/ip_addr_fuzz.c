/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ip_addr_fuzz.c - any bytes as an address: the C library agrees, and what is
 *                  written is read back
 */
#include <arpa/inet.h>

#include "base/ip_addr.h"
#include "base/ip_class.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Whether inet_pton(3), with the same bytes, takes @text too. */
static bool libc_agrees(struct str text, const struct ip_addr *a)
{
	char copy[IP_TEXT_SIZE + 8];
	uint8_t b[16] = { 0 };
	int family = str_chr(text, ':') < text.n ? AF_INET6 : AF_INET;

	if (text.n >= sizeof(copy) || str_chr(text, '\0') < text.n)
		return a == NULL;
	memcpy(copy, text.p, text.n);
	copy[text.n] = '\0';
	if (inet_pton(family, copy, b) != 1)
		return a == NULL;
	return a && a->family == (family == AF_INET ? IP_V4 : IP_V6) &&
	       memcmp(a->b, b, sizeof(b)) == 0;
}

static void check_addr(struct str text)
{
	struct ip_addr a, again;
	char out[IP_TEXT_SIZE];

	if (ip_addr_parse(text, &a)) {
		REQUIRE(text.n == 0 || libc_agrees(text, NULL));
		return;
	}
	REQUIRE(libc_agrees(text, &a));
	ip_addr_text(&a, out);
	REQUIRE(ip_addr_parse(str_from(out), &again) == 0);
	REQUIRE(ip_addr_eq(&a, &again));
	again = ip_addr_unmapped(&a);
	REQUIRE(ip_classify(&a) == ip_classify(&again));
	REQUIRE(ip_classify(&a) < IP_HOST);
}

static void check_endpoint(struct str text)
{
	struct ip_endpoint e, again;
	char out[IP_ENDPOINT_TEXT_SIZE];
	struct sockaddr_storage ss;
	socklen_t n;

	if (ip_endpoint_parse(text, 53, &e))
		return;
	REQUIRE(e.port != 0);
	ip_endpoint_text(&e, out);
	REQUIRE(ip_endpoint_parse(str_from(out), 1, &again) == 0);
	REQUIRE(ip_addr_eq(&e.addr, &again.addr) && e.port == again.port);
	n = ip_endpoint_to_sockaddr(&e, &ss);
	REQUIRE(ip_endpoint_from_sockaddr((struct sockaddr *)&ss, n,
					  &again) == 0);
	REQUIRE(ip_addr_eq(&e.addr, &again.addr) && e.port == again.port);
}

static void check_net(struct str text)
{
	struct ip_net net;

	if (ip_net_parse(text, &net))
		return;
	REQUIRE(net.bits <= (net.addr.family == IP_V4 ? 32 : 128));
	REQUIRE(ip_net_has(&net, &net.addr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str text = str_make(data, n);

	check_addr(text);
	check_endpoint(text);
	check_net(text);
	return 0;
}
