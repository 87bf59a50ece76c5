/* SPDX-License-Identifier: Apache-2.0 */
/*
 * marker.h - the small process that may still mark sockets
 *
 * SO_MARK takes a capability, and the sealed daemon has none.  So where the
 * operator wants a mark, a process that is forked before the daemon gives up
 * its rights keeps CAP_NET_RAW and nothing else: it makes marked sockets and
 * hands them over, unconnected.  It can dial nowhere itself, and ends when the
 * daemon does.
 */
#ifndef PROXY_MARKER_H
#define PROXY_MARKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

#define MARKER_PEERS_MAX	256	/* workers */

/* What a worker asks for. */
struct marker_ask {
	uint32_t family;	/* AF_INET or AF_INET6 */
	uint32_t n;		/* sockets, 1 to FD_PASS_MAX */
};

/* The answer to each, with the sockets beside it: less than were asked for
 * where making more failed, none and the errno where the first did. */
struct marker_answer {
	uint32_t family;
	int32_t err;
};

struct marker_config {
	uint32_t mark;
	size_t npeers;		/* at most MARKER_PEERS_MAX */
	/* Runs in the marker, first: gives up what the daemon gives up too, but
	 * the right to mark. */
	int (*drop)(void *arg);
	void *drop_arg;
};

/**
 * marker_parse() - A mark, decimal or with 0x: 1 to 4294967295
 * Return: 0, or -EINVAL with @ret_why as the end of a sentence
 */
NODISCARD int marker_parse(struct str text, uint32_t *ret,
			   const char **ret_why);

/**
 * marker_check() - May this process mark sockets, and keep that right alone?
 * @private:	of the run's own daemon; else of a service
 *
 * Says what is wrong and what to do.  Return: 0 or -errno (-EPERM)
 */
NODISCARD int marker_check(uint32_t mark, bool private);

/**
 * marker_fork() - Start it
 * @ret_peer:	room for @npeers: the workers' ends, for marks_new()
 */
NODISCARD int marker_fork(const struct marker_config *config, int *ret_peer);

#endif /* PROXY_MARKER_H */
