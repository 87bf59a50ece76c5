/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selftest.h - is the sandbox what it should be, seen from the command's place?
 */
#ifndef NETNS_SETUP_SELFTEST_H
#define NETNS_SETUP_SELFTEST_H

#include <stdbool.h>

#include "base/compiler.h"
#include "netns-setup/launch.h"

struct selftest {
	const char *nonce;	/* the daemon answers for <nonce>.penstock.invalid */
	bool v6;
	bool firewall;		/* nftables refuse UDP; else nobody hears it */
	int keep[2];		/* descriptors that may be open beside 0, 1, 2 */
};

/* How long the daemon may take for each answer; it is on the same machine. */
#define SELFTEST_WAIT_MS	10000

/**
 * selftest_run() - Ask and look, with the command's credentials and filter
 *
 * Our own daemon answers a nonce name over IPv4 and IPv6; TCP to an address
 * that nothing allows is refused; UDP is refused at once; the only link is lo;
 * no descriptor but ours is open.  Nothing of this leaves the sandbox.
 * Return: 0, or -errno with @err filled
 */
NODISCARD int selftest_run(const struct selftest *t, struct launch_error *err);

#endif /* NETNS_SETUP_SELFTEST_H */
