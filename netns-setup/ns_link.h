/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns_link.h - the sandbox's only link and its routes
 */
#ifndef NETNS_SETUP_NS_LINK_H
#define NETNS_SETUP_NS_LINK_H

#include <stdbool.h>

#include "base/compiler.h"
#include "netns-setup/launch.h"

/* The sandbox's own addresses, beside loopback (documentation, RFC 5737, 3849). */
#define NS_ADDR4	"192.0.2.1"
#define NS_ADDR6	"2001:db8:0:ffff::1"

/**
 * ns_link_up() - Bring lo up, give it its addresses, make every address local
 * @ret_v6:	false where this kernel or namespace has no IPv6: the sandbox
 *		then has no IPv6 at all
 *
 * Needs CAP_NET_ADMIN over the calling thread's network namespace.
 * Return: 0, or -errno with @err filled
 */
NODISCARD int ns_link_up(bool *ret_v6, struct launch_error *err);

#endif /* NETNS_SETUP_NS_LINK_H */
