/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relay.h - records of one run that two processes make, in one numbering
 */
#ifndef AUDIT_RELAY_H
#define AUDIT_RELAY_H

#include <stdint.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/str.h"

struct audit_sink;

/**
 * audit_renumber() - A line of another process with a number of ours; pure
 * @line:	without its newline
 * @out:	appended, with the newline; as it was on failure
 * Return: 0; -EPROTO when it is no record; -ENOSPC or -ENOMEM
 */
NODISCARD int audit_renumber(struct str line, uint64_t seq, struct buf *out);

/**
 * audit_relay() - Queue a line of another process behind what is queued
 * Return: 0; -EPROTO when it is none, and then it is dropped; or -errno, and it
 * is counted as lost
 */
NODISCARD int audit_relay(struct audit_sink *s, struct str line);

/* Go on numbering behind @seq; before anything is posted. */
void audit_resume(struct audit_sink *s, uint64_t seq);

#endif /* AUDIT_RELAY_H */
