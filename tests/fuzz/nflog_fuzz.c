/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nflog_fuzz.c - any bytes as a packet, and as a datagram of the firewall's log
 */
#include <linux/netlink.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "proxy/nflog.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_packet(const struct nflog_packet *p)
{
	REQUIRE(p->dst.addr.family == IP_V4 || p->dst.addr.family == IP_V6);
	REQUIRE(p->src.addr.family == p->dst.addr.family);
	REQUIRE(nflog_transport(p->proto)[0]);
}

static void on_packet(void *arg, const struct nflog_packet *p)
{
	unsigned *seen = arg;

	check_packet(p);
	++*seen;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct nflog_packet p;
	unsigned seen = 0;
	char *copy;

	if (nflog_parse_packet(str_make(data, n), &p))
		check_packet(&p);
	/* As recvmsg() gives them: aligned, and not a byte more is ours. */
	copy = mem_new(n ? n : 1);
	if (!copy)
		return 0;
	if (n)
		memcpy(copy, data, n);
	REQUIRE(nflog_parse_datagram(str_make(copy, n), on_packet, &seen) ==
		seen);
	REQUIRE(seen <= n / NLMSG_HDRLEN);
	mem_free(copy);
	return 0;
}
