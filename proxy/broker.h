/* SPDX-License-Identifier: Apache-2.0 */
/*
 * broker.h - the small process that may still open files
 *
 * Forked before the daemon gives up its files.  It follows resolv.conf, sends
 * its text whenever that changes, and opens the log anew on request.  It has
 * the daemon's ids, no network, and ends when the daemon does.
 */
#ifndef PROXY_BROKER_H
#define PROXY_BROKER_H

#include "base/compiler.h"
#include "base/str.h"

struct event_base;
struct broker;

#define BROKER_CONF_MAX		32768	/* bytes of resolv.conf that are read */

struct broker_config {
	const char *resolv_conf;	/* path to follow */
	const char *log_path;		/* to open on request, or NULL */
	/* Runs in the broker, first: gives up what the daemon gives up too. */
	int (*drop)(void *arg);
	void *drop_arg;
};

struct broker_events {
	/* The text changed; borrowed.  An absent or unreadable file is "". */
	void (*on_conf)(void *arg, struct str text);
	/* The answer to broker_reopen(): @fd is the callee's, or -errno. */
	void (*on_log)(void *arg, int fd_or_err);
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
void broker_free(struct broker *b);	/* NULL is fine; the broker ends */

#endif /* PROXY_BROKER_H */
