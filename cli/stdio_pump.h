/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stdio_pump.h - standard input and output, copied to and from a socket
 */
#ifndef CLI_STDIO_PUMP_H
#define CLI_STDIO_PUMP_H

#include "base/buf.h"
#include "base/compiler.h"

#define PUMP_CHUNK	(64u << 10)	/* bytes on the way, each way */

/**
 * stdio_pump() - Copy until both ways are over
 * @in, @out:	the two streams; their flags stay as they are, since others
 *		may hold them too
 * @sock:	non-blocking
 * @early:	is written to @out before anything else
 *
 * The end of @in becomes a FIN, and the FIN of the other end the end of @out,
 * which is closed: each way ends by itself.
 * Return: 0, or -errno of the way that broke; -EPIPE when it is @out that
 *         nobody reads any more
 */
NODISCARD int stdio_pump(int in, int out, int sock, struct buf *early);

#endif /* CLI_STDIO_PUMP_H */
