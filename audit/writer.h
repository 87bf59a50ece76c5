/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - records from the workers to their file, in order, never blocking
 *
 * One writer thread for the process.  A sink is one destination (a descriptor
 * opened by someone with the right to).  A worker formats a record into the
 * sink's bounded queue under the sink's own short lock; the thread writes whole
 * batches of whole lines.  When the disk fails or is full, the sink is "down":
 * posts fail with -EIO, the caller refuses new flows (audit_unavailable), and
 * the thread keeps trying, so that it recovers by itself; what a down sink
 * could not take is counted and said by a log_gap record once it works again.
 * A partly written line is finished first.
 */
#ifndef AUDIT_WRITER_H
#define AUDIT_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/record.h"
#include "base/compiler.h"

struct audit_writer;
struct audit_sink;

NODISCARD int audit_writer_new(struct audit_writer **ret);
/* Writes what is queued for at most @timeout_ms, then ends the thread. */
void audit_writer_free(struct audit_writer *w, int timeout_ms);

/**
 * audit_sink_new() - A destination for records
 * @fd:		taken, also on failure; regular file, pipe or socket; -1 for a
 *		sink that drops everything
 * @labels:	copied
 */
NODISCARD int audit_sink_new(struct audit_writer *w, int fd,
			     const struct record_labels *labels,
			     struct audit_sink **ret);
/* A second descriptor that gets the same lines (the service's own log); again:
 * replaces it.  @fd is taken on success. */
NODISCARD int audit_sink_tee(struct audit_sink *s, int fd);
/* Replace the descriptor (log rotation): the old one is closed after a flush.
 * @fd is taken on success; else the old one stays. */
NODISCARD int audit_sink_reopen(struct audit_sink *s, int fd);

/**
 * audit_sink_share() - Another way into the queue of @s, for another thread
 * @ret:	with labels of its own, which audit_sink_set_policy() changes for
 *		what is posted by this way alone; it is good for that, to post
 *		by, and to be freed, before @s is
 *
 * One run on several threads, each of which may be under another policy for
 * the moment of a change, has one numbering of its records.
 */
NODISCARD int audit_sink_share(struct audit_sink *s, struct audit_sink **ret);

/* Records posted from now on are of another policy: its label, mode and
 * generation are taken from @labels; from any thread. */
void audit_sink_set_policy(struct audit_sink *s,
			   const struct record_labels *labels);

/**
 * audit_post() - Queue one record; from any thread
 * Return: 0, -ENOBUFS (queue full) or -EIO (sink down): in both cases the
 * record is counted as lost, and a new flow must be refused
 */
NODISCARD int audit_post(struct audit_sink *s, const struct record *r);
/* The same for records whose loss changes nothing any more (a close). */
void audit_tell(struct audit_sink *s, const struct record *r);
/* Would audit_post() work now? Asked before a flow is allowed. */
bool audit_ok(const struct audit_sink *s);
uint64_t audit_seq(struct audit_sink *s);	/* of the last record queued */
uint64_t audit_lost(struct audit_sink *s);	/* records lost, ever */

/* Wait until everything posted so far is written; -ETIMEDOUT, -EIO. */
NODISCARD int audit_sink_flush(struct audit_sink *s, int timeout_ms);
/* Flushes in the background, then closes. @s must not be used after. */
void audit_sink_free(struct audit_sink *s);

#endif /* AUDIT_WRITER_H */
