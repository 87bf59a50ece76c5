/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sock.h - what every TCP socket of a flow gets, and how it goes
 */
#ifndef PROXY_SOCK_H
#define PROXY_SOCK_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/ip_addr.h"
#include "base/reason.h"

/*
 * A flow has no idle limit; a peer that is gone without a word is found by
 * keepalive within SOCK_KEEP_IDLE_S + SOCK_KEEP_PROBES * SOCK_KEEP_GAP_S.
 */
#define SOCK_KEEP_IDLE_S	60
#define SOCK_KEEP_GAP_S		15
#define SOCK_KEEP_PROBES	4

/*
 * TCP_NODELAY and keepalive; failures change nothing that we promise.  A
 * listening socket hands them on to what it accepts.
 */
void sock_tune(int fd);
/* The two parts of it: what is late to begin costs a short flow nothing. */
void sock_nodelay(int fd);
void sock_keep_alive(int fd);

/**
 * sock_reset() - Close so that the peer sees a reset (SO_LINGER 0)
 * @fd:		in: the socket or -1; out: -1
 *
 * Bytes that the peer has not taken yet are dropped.
 */
void sock_reset(int *fd);

/* Is the connection gone by now, reset or timed out, though nobody reads it? */
bool sock_is_dead(int fd);

/**
 * sock_acked() - Bytes of ours that the peer's kernel has confirmed so far
 *
 * What was sent may wait for its reader in the kernel, megabytes of it, and the
 * socket is not reported writable again before a third of that is free: this
 * tells a slow reader from one that has stopped.  0 where it cannot be asked.
 */
uint64_t sock_acked(int fd);

/* The two ends, IPv4-mapped IPv6 unwrapped; 0 or -errno. */
NODISCARD int sock_local(int fd, struct ip_endpoint *ret);
NODISCARD int sock_peer(int fd, struct ip_endpoint *ret);

/* The reason that a failed connect() or socket() stands for. */
enum reason sock_connect_reason(int err);

#endif /* PROXY_SOCK_H */
