/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns_nft_rules.h - the rules as data, for the loader and the reader
 *
 * A rule is a row of terms.  Matches come first; the last term is what is done.
 */
#ifndef NETNS_SETUP_NS_NFT_RULES_H
#define NETNS_SETUP_NS_NFT_RULES_H

#include <stddef.h>
#include <stdint.h>

#include "netns-setup/ns_nft.h"

#define NFT_TERMS_MAX	9

enum nft_term_kind {
	TERM_END,
	TERM_FAMILY,	/* meta nfproto == number */
	TERM_L4,	/* meta l4proto == number */
	TERM_DPORT,	/* th dport == number */
	TERM_FLAGS,	/* tcp flags == number */
	TERM_SADDR_NOT,	/* source is not in the network @net */
	TERM_DADDR_NOT,
	TERM_DADDR,	/* destination is in the network @net */
	TERM_LOG,	/* rate limited, to PLUG_NFLOG_GROUP, prefix @text */
	TERM_ACCEPT,
	TERM_RESET,	/* reject with tcp reset */
	TERM_UNREACH,	/* reject with icmpx port-unreachable */
	TERM_TPROXY4,	/* to the listener; its port is in the config */
	TERM_TPROXY6,
	TERM_OUR_PORT4,	/* th dport == the listener's own port */
	TERM_OUR_PORT6,
};

struct nft_net {
	const char *addr;	/* text of either family */
	uint8_t bytes;		/* of the prefix: all of ours end on a byte */
};

struct nft_term {
	enum nft_term_kind kind;
	uint32_t number;
	const struct nft_net *net;
	const char *text;
};

struct nft_rule {
	const char *chain;
	struct nft_term term[NFT_TERMS_MAX + 1];	/* TERM_END ends */
};

struct nft_chain {
	const char *name;
	uint32_t hook;
	int32_t priority;
};

extern const struct nft_chain nft_chains[];
extern const size_t nft_nchains;
extern const struct nft_rule nft_rules[];
extern const size_t nft_nrules;

/* Does this rule belong into a table made for @config? */
bool nft_rule_wanted(const struct nft_rule *rule,
		     const struct ns_nft_config *config);

#endif /* NETNS_SETUP_NS_NFT_RULES_H */
