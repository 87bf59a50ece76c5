/* SPDX-License-Identifier: Apache-2.0 */
/*
 * half.h - one socket of a flow, as the loop sees it (theory in half.c)
 */
#ifndef PROXY_HALF_H
#define PROXY_HALF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/list.h"

struct event_base;
struct half_loop;

/* All that a thread watches; the last half is closed before it is freed. */
NODISCARD int half_loop_new(struct event_base *base, struct half_loop **ret);
void half_loop_free(struct half_loop *l);	/* NULL is fine */

/* The flags say more than before, or half_kick() was called.  It may close and
 * free the half. */
typedef void half_fn(void *arg);

/* Embedded, or half_new()'s; the fields are for reading, but @fn and @arg. */
struct half {
	int fd;			/* connected or connecting; -1: none */
	bool readable;		/* a read may bring something, an end or an error */
	bool writable;
	bool ending;		/* what there is to read is the last of it */
	bool failed;		/* reset, timed out, refused; or both FINs are in */
	bool watched;
	bool muted;
	uint32_t serial;	/* of being watched */
	struct half_loop *loop;
	half_fn *fn;		/* whose it is now */
	void *arg;
	struct list kicked;	/* half_loop.kicked */
};

/* Nobody wants to hear of it now; what is said is remembered. */
void half_ignore(void *arg);

/* @fd: non-blocking; taken */
void half_init(struct half *h, struct half_loop *l, int fd, half_fn *fn,
	       void *arg);
/* Hear of it until half_rest(), half_take() or half_close(); one that is watched
 * stays so.  0 or -ENOMEM. */
NODISCARD int half_watch(struct half *h);
/* Another way of watching it begins; what was said is forgotten. */
void half_rest(struct half *h);
/*
 * Bytes keep coming that nobody takes: they are not told of until the other,
 * when @readable is what it is then.  Each is a system call, so the first is for
 * who was told once too often.
 */
void half_mute(struct half *h);
void half_unmute(struct half *h);	/* nothing where it is not muted */
/* Have it called from the loop, as if the kernel had said something. */
void half_kick(struct half *h);
/* Watched no more, and the socket is the caller's. */
int half_take(struct half *h);
/* Close, as a reset where the peer is to see one; one without a socket is fine. */
void half_close(struct half *h, bool reset);

/* One that is watched and can be handed on.  @fd: taken, also on failure; NULL:
 * no memory. */
NODISCARD struct half *half_new(struct half_loop *l, int fd, half_fn *fn,
				void *arg);
/* As above; it is freed and becomes NULL; NULL is fine. */
int half_takep(struct half **h);	/* -1: there was none */
void half_closep(struct half **h, bool reset);

/* recv(2) and send(2) without waiting, which keep the flags true. */
ssize_t half_recv(struct half *h, void *p, size_t n);
ssize_t half_send(struct half *h, const void *p, size_t n);

#endif /* PROXY_HALF_H */
