/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns_nft.h - the sandbox's own firewall: one nftables table
 */
#ifndef NETNS_SETUP_NS_NFT_H
#define NETNS_SETUP_NS_NFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "netns-setup/launch.h"

#define NS_NFT_TABLE	"penstock"

struct ns_nft_config {
	uint16_t tproxy4;	/* port of the transparent listener */
	uint16_t tproxy6;	/* 0: no IPv6 */
	bool log;		/* somebody listens to PLUG_NFLOG_GROUP */
};

/**
 * ns_nft_load() - Make the table, read it back and compare
 *
 * The whole table is one transaction: there is no moment with half of it.
 * Return: 0; -EOPNOTSUPP where this kernel has no nftables or no tproxy (then
 * nothing is loaded); or another -errno with @err filled
 */
NODISCARD int ns_nft_load(const struct ns_nft_config *config,
			  struct launch_error *err);

/**
 * ns_nft_verify() - Read the table back and compare it with what it should be
 * Return: 0, or -EBADMSG with the first line that differs in @err
 */
NODISCARD int ns_nft_verify(const struct ns_nft_config *config,
			    struct launch_error *err);

/* The canonical text of what should be there, and of what is; for tests. */
NODISCARD int ns_nft_text(const struct ns_nft_config *config, struct buf *out);
NODISCARD int ns_nft_read(struct buf *out);

#endif /* NETNS_SETUP_NS_NFT_H */
