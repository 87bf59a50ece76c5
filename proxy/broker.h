/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker.h - the small process that may still open files
 *
 * Forked before the daemon gives up its files.  It follows resolv.conf and the
 * directory of policies, sends their texts whenever something changes there
 * and on request, and opens the log anew on request.  It has the daemon's ids,
 * no network, and ends when the daemon does.
 */
#ifndef PROXY_BROKER_H
#define PROXY_BROKER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/str.h"

struct event_base;
struct broker;

#define BROKER_CONF_MAX		32768	/* bytes of resolv.conf that are read */

struct broker_config {
	const char *resolv_conf;	/* path to follow, or NULL */
	const char *log_path;		/* to open on request, or NULL */
	const char *policies;		/* directory to follow, or NULL */
	/* Runs in the broker, first: gives up what the daemon gives up too. */
	int (*drop)(void *arg);
	void *drop_arg;
};

struct broker_events {
	/* The text changed; borrowed.  An absent or unreadable file is "". */
	void (*on_conf)(void *arg, struct str text);
	/* The answer to broker_reopen(): @fd is the callee's, or -errno. */
	void (*on_log)(void *arg, int fd_or_err);
	/*
	 * The policies are being read: this begins it, on_policy() follows for
	 * each file, on_policies_end() ends it.  @asked: by broker_reload(),
	 * and not for a change that was seen.
	 */
	void (*on_policies)(void *arg, bool asked);
	/* @fd: sealed memfd with the text, borrowed; -1: @err says why not. */
	void (*on_policy)(void *arg, struct str name, int err, int fd);
	/* @serial: of the last broker_reload() before it began; @err: the
	 * directory could not be read to its end. */
	void (*on_policies_end)(void *arg, uint32_t serial, int err);
	/* The broker is gone: the daemon goes on with what it has. */
	void (*on_gone)(void *arg);
};

/**
 * broker_read_conf() - The text of @path as it is now
 * @out:	appended; nothing when the file is absent
 * Return: 0 or -errno (-EFBIG when it is over @out's maximum)
 */
struct buf;
NODISCARD int broker_read_conf(const char *path, struct buf *out);

/* The log, for appending: made when absent, never through a symlink. */
NODISCARD int broker_open_log(const char *path, int *ret_fd);

/**
 * broker_fork() - Start it
 * @known:	text of resolv.conf that the daemon has; sent again only when
 *		it is no longer true
 */
NODISCARD int broker_fork(const struct broker_config *config,
			  struct str known, struct broker **ret);
/* @events is copied. */
NODISCARD int broker_start(struct broker *b, struct event_base *base,
			   const struct broker_events *events, void *arg);
/* Ask for the log to be opened anew; -EPIPE when the broker is gone. */
NODISCARD int broker_reopen(struct broker *b);
/* Ask for the policies to be read; -EPIPE when the broker is gone, -ENOENT when
 * there is no directory of them. */
NODISCARD int broker_reload(struct broker *b, uint32_t serial);
/* Tell of nothing more until the other: what it says then waits with it. */
void broker_pause(struct broker *b);
void broker_resume(struct broker *b);
void broker_free(struct broker *b);	/* NULL is fine; the broker ends */

#endif /* PROXY_BROKER_H */
