/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover_own.h - what the files of the hand-over share; no one else includes it
 *
 *	handover.c		phases, the beginning, and every way out
 *	handover_tell.c		what the other process is told, in letters
 */
#ifndef PROXY_HANDOVER_OWN_H
#define PROXY_HANDOVER_OWN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/str.h"
#include "proxy/handover.h"
#include "proxy/handover_proto.h"

struct event;
struct leave;

#define HANDOVER_STEP_MS	5	/* between two looks at what settles */

enum handover_phase {
	HANDOVER_IDLE,
	HANDOVER_OFFERED,
	HANDOVER_SETTLING,
	HANDOVER_FREEZING,
	HANDOVER_TELLING,
	HANDOVER_IS_TOLD,
	HANDOVER_COMMITTED,
	HANDOVER_BACKING,
	HANDOVER_GIVEN,

	HANDOVER_PHASES
};

/* A message that waits for the other one to read; descriptors are borrowed. */
struct letter {
	struct list node;
	size_t n, nfds;
	int fd[FD_PASS_MAX];
	_Alignas(uint64_t) char bytes[];
};

struct handover {
	struct handover_config c;
	enum handover_phase phase;
	int fd;				/* -1: IDLE */
	pid_t pid;			/* who is there, as the kernel says */
	struct event *readable, *writable, *timer;
	struct event *limit;		/* of our patience */
	struct list letters;		/* struct letter.node */
	struct leave **leave;		/* all that rests */
	size_t n, room;
	size_t out;			/* steps that are under way */
	size_t next;			/* to be told of */
	unsigned waiting;		/* questions, at the last look */
	int err;			/* of a step */
	int64_t until_ms;		/* of this phase */
	int64_t since_ms;		/* that all of it rests */
	union handover_msg m;		/* to fill, and to read into */
	char bytes[sizeof(union handover_msg) + 1];
};

/* --- handover.c ------------------------------------------------------------------ */

void handover_set_phase(struct handover *h, enum handover_phase to);
void handover_wait_ms(struct handover *h, int ms);
/* Everything is as it was; @why: NULL: the other one knows, or has gone. */
void handover_give_back(struct handover *h, const char *why);
/* BACKING: the last step is back. */
void handover_go_on(struct handover *h);
/* What an error of a step means to who reads the log. */
const char *handover_words(int err);

/* --- handover_tell.c --------------------------------------------------------------- */

/* h->m, of @n bytes, and a word without more: put into the queue; 0 or -ENOMEM */
NODISCARD int handover_say(struct handover *h, size_t n, const int *fd,
			   size_t nfds);
NODISCARD int handover_say_word(struct handover *h, enum handover_type type);
NODISCARD int handover_say_offer(struct handover *h);
/* As much as the other one takes now; may give back. */
void handover_flush(struct handover *h);
void handover_drop_letters(struct handover *h);
/* Ask every worker to let its sandboxes rest, and tell of them then. */
void handover_freeze_all(struct handover *h);
/* The queue is empty: the next of them, or what comes behind the last. */
void handover_tell_next(struct handover *h);

#endif /* PROXY_HANDOVER_OWN_H */
