/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proxy_lab.h - a network of a test's own, and ends of connections to pull at
 *
 * lab_enter() leaves the machine's network namespace for a fresh one that has
 * nothing but lo and local routes to documentation addresses and to the
 * synthetic prefixes: whatever a test dials can only reach the test itself.
 */
#ifndef TESTS_UNIT_PROXY_LAB_H
#define TESTS_UNIT_PROXY_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ip_addr.h"
#include "base/str.h"

struct event_base;

/* Skips the whole program (TAP) where namespaces cannot be made. Also sets a
 * watchdog: a test that waits for ever is killed by SIGALRM. */
void lab_enter(void);
void lab_enter_bare(void);	/* nothing but lo */

/* A listener on @addr ("203.0.113.10", "2001:db8:3::1", "0.0.0.0"); @port 0
 * picks one, told in @ret_port.  Aborts the test on failure. */
int lab_listen(const char *addr, uint16_t port, uint16_t *ret_port);
/* A blocking connect() to a listener of ours; the result is non-blocking. */
int lab_connect(const char *addr, uint16_t port);
int lab_accept(int listener);
extern struct ip_endpoint lab_src;	/* the other end of the last one */
/* Two ends of one TCP connection over lo, both non-blocking. */
void lab_pair(int ret[2]);
void lab_small_buffers(int fd);
void lab_reset(int fd);		/* close with a reset */
size_t lab_open_fds(void);

/* One non-blocking turn of @base. */
void lab_turn(struct event_base *base);
/* Turns until @fd has at least one byte or an end to read. */
void lab_wait_readable(struct event_base *base, int fd);

/* Write all, turning @base while the way is blocked. */
void lab_send(struct event_base *base, int fd, struct str s);
/* Read exactly @n bytes, turning @base meanwhile; fails on an early end. */
void lab_recv(struct event_base *base, int fd, char *out, size_t n);
void lab_expect(struct event_base *base, int fd, const char *text);
/* The next thing to read must be an orderly end, or a reset. */
void lab_expect_fin(struct event_base *base, int fd);
void lab_expect_reset(struct event_base *base, int fd);
/* Read to an end of either kind; returns bytes, at most @cap. */
size_t lab_recv_all(struct event_base *base, int fd, char *out, size_t cap);

#endif /* TESTS_UNIT_PROXY_LAB_H */
