/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns_query.h - what becomes of one question
 */
#ifndef RESOLVER_DNS_QUERY_H
#define RESOLVER_DNS_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

struct dns_client;
struct dns_door;

/**
 * dns_query_start() - Judge, answer and record one message of a client
 * @client:	copied; a TCP client's connection counts the question as pending
 *		until dns_conn_reply()
 * Return: true when there is or will be a reply; false when the message is
 * none that can be answered, and was passed over
 */
bool dns_query_start(struct dns_door *d, const uint8_t *msg, size_t n,
		     const struct dns_client *client);

/* The rules are others, or say something else now: judge what waits again. */
void dns_query_rejudge_all(struct dns_door *d);

/* Record and drop each question that still waits. */
void dns_query_drop_all(struct dns_door *d);

#endif /* RESOLVER_DNS_QUERY_H */
