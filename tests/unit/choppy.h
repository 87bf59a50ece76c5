/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choppy.h - a stream above a socket that is as awkward as TLS may be
 *
 * It gives few bytes at a time and holds others of which the socket shows
 * nothing, takes few, says -EAGAIN for no visible reason, wants to write before
 * it is read and to be read before it writes, cannot say at once that no more
 * comes, and knows whether its peer said so.  Always in the same way.
 */
#ifndef TESTS_UNIT_CHOPPY_H
#define TESTS_UNIT_CHOPPY_H

#include "proxy/stream.h"

struct choppy_world {
	size_t most;		/* bytes of one read; 0: one */
	bool cut;		/* ends of sockets are no ends of streams */
	bool settles;		/* no read succeeds: it waits for a write */
	bool asks;		/* no write succeeds: it waits for a read */
	unsigned open;		/* streams that were not closed */
	unsigned waits;		/* -EAGAINs for the event that is not the
				 * obvious one */
};

extern struct choppy_world choppy;

/* @fd: connected, non-blocking, taken. */
struct stream choppy_stream(int fd);

#endif /* TESTS_UNIT_CHOPPY_H */
