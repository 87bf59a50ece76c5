/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sock_still.h - what the kernel holds of a direction that stands still
 */
#ifndef PROXY_SOCK_STILL_H
#define PROXY_SOCK_STILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem_account.h"

/* One direction of a flow; embedded, zeroed: it moves. */
struct sock_still {
	size_t charged;
	size_t bound;		/* of both buffers, when they were asked */
	uint64_t asked;		/* bytes that it had moved by then; 0: never */
	bool narrow;		/* the buffers are as small as they become */
};

struct sock_way {
	int from, to;		/* -1: there is none */
	size_t held;		/* beside their buffers, and charged with them */
	uint64_t moved;		/* so far, to @to */
};

/* It has come to a stand, or to an end. */
void sock_still_begin(struct sock_still *s, struct mem_account *a,
		      struct sock_way way);
static inline void sock_still_done(struct sock_still *s, struct mem_account *a)
{
	if (s->charged == 0)
		return;
	mem_account_give(a, s->charged);
	s->charged = 0;
}

/* One of its sockets is another from now on: nothing is known of that. */
static inline void sock_still_anew(struct sock_still *s, struct mem_account *a)
{
	sock_still_done(s, a);
	*s = (struct sock_still){ .charged = 0 };
}

/* Does something that was sent wait to be confirmed, and has nothing come from the
 * peer's kernel for @ms, not even a word that there is no room? */
bool sock_is_unheard(int fd, unsigned ms);

/* For each time that it is looked at: @is: bytes wait for @way.to. */
static inline void sock_still_set(struct sock_still *s, struct mem_account *a,
				  bool is, struct sock_way way)
{
	if (is == (s->charged > 0))
		return;
	if (is)
		sock_still_begin(s, a, way);
	else
		sock_still_done(s, a);
}

#endif /* PROXY_SOCK_STILL_H */
