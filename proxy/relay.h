/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.h - bytes between the two halves of a flow (theory in relay.c)
 */
#ifndef PROXY_RELAY_H
#define PROXY_RELAY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/reason.h"
#include "base/str.h"

struct event_base;
struct half;
struct mem_account;
struct quota_flow;
struct sched_queue;

/* One read, and so the most that a direction holds in memory of its own. */
#define RELAY_CHUNK		(64u << 10)
/* One splice, where the kernel grants a pipe of this size; a direction whose
 * reader has stopped holds at most this much in one. */
#define RELAY_PIPE_SIZE		(1u << 20)
/* Bytes that may be given to relay_start() for one direction. */
#define RELAY_EARLY_MAX		(256u << 10)
/* Bytes after which a wake-up ends, so that a fast flow starves nobody. */
#define RELAY_TURN		(512u << 10)
/* Large chunks in a row before a direction goes through a pipe. */
#define RELAY_BULK_AFTER	2
/* Pipes of one worker: idle ones kept, and at most in use. */
#define RELAY_PIPES_IDLE	16
#define RELAY_PIPES_MAX		512

/* --- the worker's share ---------------------------------------------------- */

struct relay_pool;

/* Sets SIGPIPE to be ignored, for the process. */
NODISCARD int relay_pool_new(struct relay_pool **ret);
void relay_pool_free(struct relay_pool *p);	/* after its last relay */
/* Pipes at once from now on; 0 makes every relay copy. For tests and for a
 * process short of descriptors. */
void relay_pool_limit(struct relay_pool *p, unsigned pipes);
/* Bytes moved by splice(2) so far: tells tests which way was taken. */
uint64_t relay_pool_spliced(const struct relay_pool *p);

/* --- one relay -------------------------------------------------------------- */

struct relay;

/**
 * relay_fn - The relay is over; called once, from the loop
 * @why:	CLIENT_CLOSED, ORIGIN_CLOSED: both directions ended in order, by
 *		whose FIN came first; CLIENT_RESET, ORIGIN_RESET: the other
 *		half should be reset; MEMORY_EXCEEDED; what quota_take() says when
 *		no byte more may pass: both halves should be reset
 *
 * It may call relay_free().  Never called inside relay_start(), nor after
 * relay_free().
 */
typedef void relay_fn(void *arg, enum reason why);

struct relay_config {
	struct event_base *base;
	struct relay_pool *pool;
	struct half *app, *net;	/* watched; borrowed, but who hears of them */
	struct quota_flow *account;	/* borrowed; NULL: nothing is counted */
	struct sched_queue *turn;	/* of the sandbox; NULL: it has no share */
	struct mem_account *memory;	/* the same: what is held is its */
	struct str up, down;	/* already read from app, from net; copied;
				 * @account was charged with them */
	relay_fn *fn;
	void *arg;
};

/**
 * relay_start() - Move bytes both ways until both sides have closed
 *
 * The halves stay the caller's, who closes them after relay_free() and touches
 * them in no other way before.
 * Return: 0, -ENOMEM, or -EMSGSIZE for more than RELAY_EARLY_MAX early bytes
 */
NODISCARD int relay_start(const struct relay_config *config,
			  struct relay **ret);
void relay_free(struct relay *r);	/* NULL is fine */

/* Bytes that have been handed to the other side so far; of those to app without
 * the early ones. */
void relay_bytes(const struct relay *r, uint64_t *ret_up, uint64_t *ret_down);

#endif /* PROXY_RELAY_H */
