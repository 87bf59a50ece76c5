/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control.h - the socket by which a run's owner reaches its launcher
 *
 * Lies in the run's own directory, which is hidden from the sandbox, takes
 * nobody but the launcher's own uid and root, and knows one question of
 * ctl_proto.h: PLUG_SWAP, another policy for the run.
 */
#ifndef NETNS_SETUP_CONTROL_H
#define NETNS_SETUP_CONTROL_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"
#include "proxy/ctl_proto.h"

#define CONTROL_CONNS	4	/* at once; one more sends the oldest away */
#define CONTROL_POLLS	(1 + CONTROL_CONNS)

/**
 * control_fn - Somebody wants another policy
 * @serial:	for control_answer(), now or later
 * @policy_fd:	borrowed; -1: the policy that the run was started with, as it
 *		is by now
 */
typedef void control_fn(void *arg, uint32_t serial, int policy_fd);

struct launch_spec;

struct control_conn {
	int fd;				/* -1: free */
	uint32_t serial;		/* of its question; 0: none yet */
	uint32_t theirs;		/* the number that they gave it */
};

struct control {
	int dir, listener;		/* -1: none */
	uint32_t serial;		/* the last one given */
	struct control_conn conn[CONTROL_CONNS];
	control_fn *fn;
	void *arg;
};

void control_init(struct control *c, control_fn *fn, void *arg);
/* Listen in directory @path; 0 or -errno. */
NODISCARD int control_open(struct control *c, const char *path);
/* Fill @p with what is to be polled; unused places have the descriptor -1. */
void control_poll(const struct control *c, struct pollfd p[CONTROL_POLLS]);
/* Act on what poll() said; calls @fn. */
void control_run(struct control *c, const struct pollfd p[CONTROL_POLLS]);
/* Tell who asked with @m->serial, and let them go; nobody waits: fine. */
void control_answer(struct control *c, const struct plug_swapped *m);
/* The same for a refusal in words. */
void control_refuse(struct control *c, uint32_t serial, const char *words);
/**
 * control_pass_on() - Send another policy over @plug; PLUG_SWAPPED follows
 * @policy_fd:	-1: @spec's own, read anew
 *
 * What cannot be sent is refused in words.
 */
void control_pass_on(struct control *c, const struct launch_spec *spec,
		     int plug, uint32_t serial, int policy_fd);
/* Stops, and removes the socket. */
void control_done(struct control *c);

/**
 * control_parse() - Is it a question? Pure
 * @nfds:	descriptors that came along
 * Return: their number of it, or 0
 */
uint32_t control_parse(struct str msg, size_t nfds);

#endif /* NETNS_SETUP_CONTROL_H */
