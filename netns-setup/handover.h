/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover.h - the launcher's side of the plug
 */
#ifndef NETNS_SETUP_HANDOVER_H
#define NETNS_SETUP_HANDOVER_H

#include <sys/types.h>

#include "base/compiler.h"
#include "base/fd.h"
#include "netns-setup/launch.h"
#include "proxy/ctl_proto.h"

/**
 * handover_spawn() - Start spec->daemon_path for this run, beside everything
 *                    else
 * @id:		its uid and gid, or 0 to keep ours
 * @ret_plug:	our end of its plug
 */
NODISCARD int handover_spawn(const struct launch_spec *spec, uint32_t id,
			     int *ret_plug, pid_t *ret_pid,
			     struct launch_error *err);

/* Connect to a service's plug. */
NODISCARD int handover_connect(const char *path, int *ret_plug,
			       struct launch_error *err);

/* What is handed over, beside what the spec says. */
struct handover {
	const char *nonce;
	uint32_t bits;		/* which of enum plug_fd @socket has, in order */
	uint32_t flags;		/* enum plug_flag */
	const int *socket;
	size_t nsockets;
};

/* Send PLUG_OPEN with what was born inside. */
NODISCARD int handover_open(int plug, const struct launch_spec *spec,
			    const struct handover *h, struct launch_error *err);

union handover_msg {
	struct plug_head head;
	struct plug_ready ready;
	struct plug_refused refused;
	struct plug_closed closed;
	struct plug_swapped swapped;
};

/**
 * handover_read() - One message of the daemon, checked
 * Return: 0; -EPIPE at the end of the connection; -EPROTO; or -errno
 */
NODISCARD int handover_read(int plug, union handover_msg *ret);

/* "NAME@sha256:DIGEST"; as it was when that is too long. */
void handover_label(const char *name, const char *digest,
		    char out[LAUNCH_POLICY_MAX]);

/* Another policy for the run, borrowed: PLUG_SWAPPED with @serial follows. */
NODISCARD int handover_swap(int plug, uint32_t serial, int policy_fd);

/* Say that the run is over; PLUG_CLOSED follows. */
NODISCARD int handover_close(int plug);

#endif /* NETNS_SETUP_HANDOVER_H */
