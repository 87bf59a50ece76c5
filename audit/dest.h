/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dest.h - one descriptor that takes whole lines of records (inside audit/)
 *
 * Belongs to the audit thread alone; theory in dest.c.
 */
#ifndef AUDIT_DEST_H
#define AUDIT_DEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/list.h"

#define DEST_PAUSE_MIN_MS	50
#define DEST_PAUSE_MAX_MS	5000

enum dest_kind {
	DEST_FILE,
	DEST_SOCKET,
	DEST_PIPE,		/* and whatever else there is */
};

enum dest_state {
	DEST_UP,
	DEST_BLOCKED,		/* the reader is slow */
	DEST_DOWN,		/* the last write failed */

	DEST_STATES
};

/* What all destinations of one writer share. */
struct dest_env {
	int epoll_fd;
	struct list torn;	/* dest.torn_node: files that end within a line */
};

struct dest {
	struct dest_env *env;
	void *owner;		/* what epoll gives back */
	const char *run;	/* for the log; borrowed, may be NULL */
	int fd;			/* -1: there is none */
	enum dest_kind kind;
	enum dest_state state;
	size_t off;		/* bytes of the batch that it took */
	struct list torn_node;
	off_t torn_end;		/* size of the file after the torn line */
	dev_t dev;
	ino_t ino;
	int64_t retry_at_ms;	/* blocked or down: when to try without a call */
	int pause_ms;
};

void dest_init(struct dest *d, struct dest_env *env, void *owner,
	       const char *run);
void dest_open(struct dest *d, int fd, size_t off);
void dest_close(struct dest *d);

bool dest_done(const struct dest *d, const struct buf *batch);
size_t dest_line_start(const struct buf *batch, size_t off);
void dest_pump(struct dest *d, const struct buf *batch);

#endif /* AUDIT_DEST_H */
