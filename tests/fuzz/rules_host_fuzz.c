/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules_host_fuzz.c - any bytes as a host, an authority and an --allow argument
 *
 * What is taken must come out in one spelling that is taken again as the same,
 * and what --allow makes of it must be a policy with one rule, whatever was in
 * the argument.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/ip_addr.h"
#include "rules/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_name(const struct host_name *h)
{
	struct host_name again;

	REQUIRE(h->n > 0 && h->n <= HOST_NAME_MAX_LEN);
	REQUIRE(strlen(h->p) == h->n && h->p[h->n - 1] != '.');
	for (size_t i = 0; i < h->n; i++) {
		char c = h->p[i];

		REQUIRE((c >= 'a' && c <= 'z') || ascii_is_digit(c) ||
			c == '-' || c == '_' || c == '.');
	}
	REQUIRE(host_name_parse(host_name_str(h), &again) == 0);
	REQUIRE(str_eq(host_name_str(h), host_name_str(&again)));
}

static void check_host(enum host_kind kind, const struct host_name *name,
		       const struct ip_addr *addr)
{
	char text[IP_TEXT_SIZE];
	struct ip_addr again;

	if (kind == HOST_NAME)
		check_name(name);
	if (kind == HOST_ADDRESS) {
		ip_addr_text(addr, text);
		REQUIRE(ip_addr_parse(str_from(text), &again) == 0);
		REQUIRE(ip_addr_eq(addr, &again));
	}
}

static void try_authority(struct str text, uint16_t default_port)
{
	struct host_name name, name2;
	struct ip_addr addr, addr2;
	uint16_t port = 0, port2 = 0;
	enum host_kind kind;
	char again[HOST_NAME_MAX_LEN + 16];
	char literal[IP_TEXT_SIZE];
	int len;

	kind = authority_parse(text, default_port, &name, &addr, &port);
	REQUIRE((kind == HOST_BAD) == (port == 0));
	if (kind == HOST_BAD)
		return;
	check_host(kind, &name, &addr);
	if (kind == HOST_ADDRESS)
		ip_addr_text(&addr, literal);
	len = snprintf(again, sizeof(again),
		       kind == HOST_ADDRESS && addr.family == IP_V6 ?
		       "[%s]:%u" : "%s:%u",
		       kind == HOST_NAME ? name.p : literal, port);
	REQUIRE(len > 0 && (size_t)len < sizeof(again));
	REQUIRE(authority_parse(str_make(again, (size_t)len), 0, &name2, &addr2,
				&port2) == kind);
	REQUIRE(port == port2);
	REQUIRE(kind != HOST_NAME || str_eq(host_name_str(&name),
					    host_name_str(&name2)));
	REQUIRE(kind != HOST_ADDRESS || ip_addr_eq(&addr, &addr2));
}

static void try_allow(struct str argument)
{
	struct buf text = BUF_INIT(4096);
	struct ruleset *rs = NULL;
	struct rules_source source = { .name = "--allow", .text = STR_NONE };
	const char *why = NULL;

	if (rules_allow_text(argument, 1, &text, &why) < 0) {
		REQUIRE(why && text.n == 0);
		return;
	}
	source.text = buf_str(&text);
	REQUIRE(rules_compile(&source, 1, NULL, NULL, &rs) == 0);
	REQUIRE(rules_count(rs) == 1 && !rules_observe(rs));
	rules_unref(rs);
	buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str text = str_make(data, n);
	struct host_name name;
	struct ip_addr addr;

	if (host_name_parse(text, &name) == 0) {
		check_name(&name);
		(void)host_name_is_local(host_name_str(&name));
	}
	check_host(host_parse(text, &name, &addr), &name, &addr);
	try_authority(text, 0);
	try_authority(text, 80);
	try_allow(text);
	return 0;
}
