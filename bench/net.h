/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net.h - what the programs of the bench share: addresses, time, ends
 *
 * They are small, run for seconds and have one user, so whatever goes wrong
 * ends them with a line that says what.
 */
#ifndef BENCH_NET_H
#define BENCH_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/compiler.h"

#define NET_QUESTION_MAX	512

struct net_addr {
	struct sockaddr_storage sa;
	socklen_t n;
};

/**
 * net_fail() - End with what the last call failed with
 * @what:	was to be done
 */
NORETURN void net_fail(const char *what);

/**
 * net_usage() - End with how the program is called
 */
NORETURN void net_usage(const char *text);

/**
 * net_begin() - Ignore SIGPIPE; as many descriptors as the hard limit allows
 */
void net_begin(void);

/**
 * net_now_s() - The monotonic clock in seconds
 */
double net_now_s(void);

/**
 * net_number() - A number from 1 to @max that @text is, or the end
 */
unsigned long net_number(const char *text, unsigned long max);

/**
 * net_resolve() - The first address of a name, or the end
 * @text:	NAME:PORT, or NAME alone where there is @port
 * @port:	or NULL
 */
void net_resolve(const char *text, const char *port, struct net_addr *ret);

/**
 * net_listen() - A listening socket that does not block, or the end
 * @text:	ADDRESS:PORT; an IPv6 one in brackets; [::] takes IPv4, too
 */
int net_listen(const char *text);

/**
 * net_no_delay() - Send what is written at once (TCP_NODELAY)
 */
void net_no_delay(int fd);

/**
 * net_is_over() - Has standard input ended, or said something?
 */
bool net_is_over(void);

/**
 * net_ready() - Say "ready" to whoever started this
 */
void net_ready(void);

/**
 * net_question() - A DNS question for the IPv4 address of @name, or the end
 * @id:		of the message
 * Return: the length of the message
 */
size_t net_question(uint16_t id, const char *name, char out[NET_QUESTION_MAX]);

#endif /* BENCH_NET_H */
