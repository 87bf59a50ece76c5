/* SPDX-License-Identifier: Apache-2.0 */
/*
 * listener.h - connections accepted from one listening socket of a sandbox
 */
#ifndef PROXY_LISTENER_H
#define PROXY_LISTENER_H

#include "base/compiler.h"

struct listener;
struct sandbox;
struct worker;

/* Connections taken in one turn of the loop, so that none starves the rest. */
#define LISTENER_BATCH		64
/* Pause after the process or the system ran out of descriptors or memory. */
#define LISTENER_BACKOFF_MS	50

struct ip_endpoint;

/* Takes the connection, non-blocking and close-on-exec; @src: its other end. */
typedef void listener_fn(struct sandbox *s, int fd,
			 const struct ip_endpoint *src);

/* @fd: listening and non-blocking; taken, also on failure.  It stands on the
 * sandbox's list until it is freed. */
NODISCARD int listener_new(struct sandbox *s, int fd, listener_fn *fn,
			   struct listener **ret);
void listener_free(struct listener *l);		/* NULL is fine; closes */
void listener_free_all(struct sandbox *s);

/* Listeners that waited for room go on where there is some again; called by
 * the worker after connections were reclaimed. */
void listener_resume_paused(struct worker *w);

#endif /* PROXY_LISTENER_H */
