/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams.h - the command's standard streams: passed on, relayed, or a terminal
 *
 * A regular file, a pipe and /dev/null are inherited as they are, but for a file
 * that was opened for reading: see std_file.h.  A terminal
 * becomes a pty of the sandbox's own, relayed here.  A socket is relayed
 * through a pipe: an inherited one could be connected to another place, in the
 * namespace it came from.  So is whatever else it may be.
 */
#ifndef NETNS_SETUP_STREAMS_H
#define NETNS_SETUP_STREAMS_H

#include <poll.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "base/compiler.h"
#include "netns-setup/launch.h"

#define STREAM_BUF	16384
#define STREAMS_MAX	3	/* stdin, stdout, stderr; or two of a terminal */

/* One direction of a relay; ended when both are -1. */
struct stream {
	int from, to;
	bool own_from, own_to;	/* ours: non-blocking, closed at the end */
	size_t at, n;		/* bytes waiting in @buf */
	char *buf;		/* STREAM_BUF bytes */
};

struct streams {
	struct stream stream[STREAMS_MAX];
	size_t n;
	int child[3];		/* for the command; -1: the terminal */
	bool child_own[3];	/* ours to close after the clone */
	bool input[3];		/* a file for reading; to be kept at that */
	bool terminal;		/* at least one is */
	int tty_in, tty_out;	/* ours; -1: not a terminal */
	int master;		/* of the sandbox's pty; -1 until it comes */
	bool raw, raw_output;
	struct termios saved;	/* of tty_in */
	struct termios termios;	/* for the pty */
	struct winsize winsize;
};

NODISCARD int streams_init(struct streams *s, struct launch_error *err);
/* After the clone: close what only the command needs. */
void streams_cloned(struct streams *s);
/* The pty's master came; starts relaying. Takes @master. */
NODISCARD int streams_terminal(struct streams *s, int master,
			       struct launch_error *err);
/* The window's size changed. */
void streams_resize(struct streams *s);
/* We are (again) in the foreground: raw mode where it belongs. */
void streams_foreground(struct streams *s);

/* Fill poll entries; at most 2 * STREAMS_MAX; returns how many. */
size_t streams_poll(const struct streams *s, struct pollfd *ret);
/* Read and write what is ready by those entries. */
void streams_run(struct streams *s, const struct pollfd *p, size_t n);
/* Is nothing left that the command wrote? */
bool streams_drained(const struct streams *s);
/* Restores the terminal. */
void streams_done(struct streams *s);

#endif /* NETNS_SETUP_STREAMS_H */
