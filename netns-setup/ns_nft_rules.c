/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns_nft_rules.c - what the sandbox's firewall says, in the order it says it
 *
 * Every packet a program sends passes "out", and then, since every address is
 * local, comes back in on lo through "pre".  "Own" is loopback and the two
 * addresses of ns_link.h.
 *
 *   out  neither end is own            -> refused: a source that was made up;
 *                                         but the reset that says so passes
 *        to own addresses              -> goes on
 *        any TCP, DNS over UDP         -> goes on
 *        everything else               -> refused here, so that a datagram's
 *                                         sender is told at once
 *   pre  neither end is own            -> refused
 *        the transparent listener hit directly -> reset
 *        to own addresses              -> accepted: the program's own servers,
 *                                         and the answers of ours
 *        port 53                       -> accepted: our DNS, asked by any name
 *        other TCP                     -> tproxy; our socket then carries the
 *                                         address that was asked
 *        everything else               -> refused, TCP too once our listener
 *                                         is gone
 *
 * TCP is refused by a reset and everything else by port-unreachable, so that
 * both families give the same errno and nothing waits for a timeout.
 */
#include "netns-setup/ns_nft_rules.h"

#include <netinet/in.h>		/* before the kernel's: they give way to it */

#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>

#include "netns-setup/ns_link.h"
#include "proxy/ctl_proto.h"

const struct nft_chain nft_chains[] = {
	{ "pre", NF_INET_PRE_ROUTING, NF_IP_PRI_MANGLE },
	{ "out", NF_INET_LOCAL_OUT, NF_IP_PRI_FILTER },
};
const size_t nft_nchains = ARRAY_SIZE(nft_chains);

static const struct nft_net loop4 = { "127.0.0.0", 1 };
static const struct nft_net loop6 = { "::1", 16 };
static const struct nft_net self4 = { NS_ADDR4, 4 };
static const struct nft_net self6 = { NS_ADDR6, 16 };
static const struct nft_net door4 = { PLUG_TPROXY_ADDR4, 4 };
static const struct nft_net door6 = { PLUG_TPROXY_ADDR6, 16 };

#define V4		{ TERM_FAMILY, NFPROTO_IPV4, NULL, NULL }
#define V6		{ TERM_FAMILY, NFPROTO_IPV6, NULL, NULL }
#define TCP		{ TERM_L4, IPPROTO_TCP, NULL, NULL }
#define UDP		{ TERM_L4, IPPROTO_UDP, NULL, NULL }
#define DNS		{ TERM_DPORT, PLUG_DNS_PORT, NULL, NULL }
#define RST_ACK		{ TERM_FLAGS, 0x14, NULL, NULL }
#define TO(n)		{ TERM_DADDR, 0, &(n), NULL }
#define NOT_TO(n)	{ TERM_DADDR_NOT, 0, &(n), NULL }
#define NOT_FROM(n)	{ TERM_SADDR_NOT, 0, &(n), NULL }
#define LOG(why)	{ TERM_LOG, 0, NULL, "penstock " why " " }
#define DO(what)	{ TERM_##what, 0, NULL, NULL }

#define STRANGERS4	V4, NOT_FROM(loop4), NOT_FROM(self4), \
			NOT_TO(loop4), NOT_TO(self4)
#define STRANGERS6	V6, NOT_FROM(loop6), NOT_FROM(self6), \
			NOT_TO(loop6), NOT_TO(self6)

const struct nft_rule nft_rules[] = {
	{ "pre", { STRANGERS4, TCP, RST_ACK, DO(ACCEPT) } },
	{ "pre", { STRANGERS4, LOG("source") } },
	{ "pre", { STRANGERS4, TCP, DO(RESET) } },
	{ "pre", { STRANGERS4, DO(UNREACH) } },
	{ "pre", { STRANGERS6, TCP, RST_ACK, DO(ACCEPT) } },
	{ "pre", { STRANGERS6, LOG("source") } },
	{ "pre", { STRANGERS6, TCP, DO(RESET) } },
	{ "pre", { STRANGERS6, DO(UNREACH) } },
	{ "pre", { V4, TO(door4), TCP, DO(OUR_PORT4), DO(RESET) } },
	{ "pre", { V6, TO(door6), TCP, DO(OUR_PORT6), DO(RESET) } },
	{ "pre", { V4, TO(loop4), DO(ACCEPT) } },
	{ "pre", { V4, TO(self4), DO(ACCEPT) } },
	{ "pre", { V6, TO(loop6), DO(ACCEPT) } },
	{ "pre", { V6, TO(self6), DO(ACCEPT) } },
	{ "pre", { UDP, DNS, DO(ACCEPT) } },
	{ "pre", { TCP, DNS, DO(ACCEPT) } },
	{ "pre", { V4, TCP, DO(TPROXY4), DO(ACCEPT) } },
	{ "pre", { V6, TCP, DO(TPROXY6), DO(ACCEPT) } },
	{ "pre", { LOG("closed") } },
	{ "pre", { TCP, DO(RESET) } },
	{ "pre", { DO(UNREACH) } },

	{ "out", { STRANGERS4, TCP, RST_ACK, DO(ACCEPT) } },
	{ "out", { STRANGERS4, LOG("source") } },
	{ "out", { STRANGERS4, TCP, DO(RESET) } },
	{ "out", { STRANGERS4, DO(UNREACH) } },
	{ "out", { STRANGERS6, TCP, RST_ACK, DO(ACCEPT) } },
	{ "out", { STRANGERS6, LOG("source") } },
	{ "out", { STRANGERS6, TCP, DO(RESET) } },
	{ "out", { STRANGERS6, DO(UNREACH) } },
	{ "out", { V4, TO(loop4), DO(ACCEPT) } },
	{ "out", { V4, TO(self4), DO(ACCEPT) } },
	{ "out", { V6, TO(loop6), DO(ACCEPT) } },
	{ "out", { V6, TO(self6), DO(ACCEPT) } },
	{ "out", { TCP, DO(ACCEPT) } },
	{ "out", { UDP, DNS, DO(ACCEPT) } },
	{ "out", { LOG("transport") } },
	{ "out", { DO(UNREACH) } },	/* the last is always wanted */
};
const size_t nft_nrules = ARRAY_SIZE(nft_rules);

bool nft_rule_wanted(const struct nft_rule *rule,
		     const struct ns_nft_config *config)
{
	for (const struct nft_term *t = rule->term; t->kind; t++) {
		if (t->kind == TERM_LOG && !config->log)
			return false;
		if ((t->kind == TERM_TPROXY6 || t->kind == TERM_OUR_PORT6) &&
		    !config->tproxy6)
			return false;
	}
	return true;
}
