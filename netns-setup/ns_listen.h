/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ns_listen.h - the sockets that are born inside and handed to the daemon
 */
#ifndef NETNS_SETUP_NS_LISTEN_H
#define NETNS_SETUP_NS_LISTEN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "netns-setup/launch.h"
#include "proxy/ctl_proto.h"

struct ns_sockets {
	int fd[PLUG_FDS];	/* -1: none; POLICY and RECORDS never are */
	uint16_t tproxy4, tproxy6;	/* ports, host order */
};

#define NS_SOCKETS_INIT	{ .fd = { [0 ... PLUG_FDS - 1] = -1 } }

/* What a listener takes where the kernel cannot redirect: names over TLS. */
#define NS_WILDCARD_PORT	443

/**
 * ns_listen_open() - DNS, explicit proxy, firewall log and socket diagnosis
 * @v6:		IPv6 sockets too
 * Return: 0, or -errno with @err filled; what was opened stays in @s
 */
NODISCARD int ns_listen_open(struct ns_sockets *s, bool v6,
			     struct launch_error *err);

/**
 * ns_listen_tproxy() - The transparent listeners, before the firewall
 * @wildcard:	for a kernel without tproxy: every address, NS_WILDCARD_PORT
 */
NODISCARD int ns_listen_tproxy(struct ns_sockets *s, bool v6, bool wildcard,
			       struct launch_error *err);

void ns_sockets_close(struct ns_sockets *s);

#endif /* NETNS_SETUP_NS_LISTEN_H */
