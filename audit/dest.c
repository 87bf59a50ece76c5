/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dest.c - one descriptor that takes whole lines of records
 *
 * Regular files get the whole rest of a batch in one write(2).  All else that
 * is not a socket is asked with poll(2) first and gets whole lines of at most
 * PIPE_BUF bytes, which a pipe takes whole or not at all: a descriptor shared
 * with somebody else is thus never made non-blocking behind his back.  Sockets
 * are written with MSG_DONTWAIT.
 *
 *   from      to        because
 *   up        blocked   the reader is slow: wait for EPOLLOUT
 *   up        down      the write failed: try again after a growing pause
 *   blocked   up, down  as above, after EPOLLOUT or the pause
 *   down      up        a write succeeded
 *   down      blocked   it works again, but the reader is slow
 *
 * A line of which only a part got into a regular file (the disk became full in
 * the middle) is "torn".  Its rest is written first once there is room, if the
 * file still ends where we left it; if it was truncated meanwhile the line is
 * written anew, and if somebody else's line stands behind it, after a newline.
 * Where two sinks share the file, the other one ends the torn line so.
 */
#include "audit/dest.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/record.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"

static_assert(RECORD_LINE_MAX <= PIPE_BUF, "a pipe takes a line whole");

static const struct {
	const char *name;
	unsigned next;		/* states that may follow, as bits */
} states[] = {
	[DEST_UP]      = { "up",      BIT(DEST_BLOCKED) | BIT(DEST_DOWN) },
	[DEST_BLOCKED] = { "blocked", BIT(DEST_UP) | BIT(DEST_DOWN) },
	[DEST_DOWN]    = { "down",    BIT(DEST_UP) | BIT(DEST_BLOCKED) },
};
static_assert(ARRAY_SIZE(states) == DEST_STATES, "name every state");

static const char *run_of(const struct dest *d)
{
	return d->run ? d->run : "-";
}

/* The only place where a destination changes state. */
static void dest_set_state(struct dest *d, enum dest_state to)
{
	if (d->state == to)
		return;
	REQUIRE(states[d->state].next & BIT(to));
	log_debug("audit: run %s: destination %d: %s -> %s", run_of(d), d->fd,
		  states[d->state].name, states[to].name);
	d->state = to;
}

/**
 * dest_init() - A destination without a descriptor
 * @env:	shared by all of the thread; borrowed
 * @owner:	what epoll_wait(2) reports when there is room again
 * @run:	borrowed, for the operational log
 */
void dest_init(struct dest *d, struct dest_env *env, void *owner,
	       const char *run)
{
	*d = (struct dest){
		.env = env, .owner = owner, .run = run, .fd = -1,
	};
	list_init(&d->torn_node);
}

static bool is_torn(const struct dest *d)
{
	return !list_empty(&d->torn_node);
}

/**
 * dest_close() - Close the descriptor; dest_open() may give another
 */
void dest_close(struct dest *d)
{
	list_del(&d->torn_node);
	/*
	 * By hand: a copy of the descriptor in another process would keep the
	 * registration alive after our close(2), with a pointer to nothing.
	 */
	if (d->fd >= 0 && d->kind != DEST_FILE)
		(void)epoll_ctl(d->env->epoll_fd, EPOLL_CTL_DEL, d->fd, NULL);
	fd_closep(&d->fd);
	dest_init(d, d->env, d->owner, d->run);
}

static enum dest_kind kind_of(mode_t mode)
{
	if (S_ISREG(mode))
		return DEST_FILE;
	return S_ISSOCK(mode) ? DEST_SOCKET : DEST_PIPE;
}

/**
 * dest_open() - Take @fd over, in place of what was there
 * @off:	where in the current batch it begins; a line's start or the end
 */
void dest_open(struct dest *d, int fd, size_t off)
{
	struct stat st;

	dest_close(d);
	d->fd = fd;
	d->off = off;
	d->kind = DEST_PIPE;
	if (fstat(fd, &st) == 0) {
		d->kind = kind_of(st.st_mode);
		d->dev = st.st_dev;
		d->ino = st.st_ino;
	}
}

/**
 * dest_line_start() - Where the line begins of which @off is within
 * Return: @off itself when it is between two lines
 */
size_t dest_line_start(const struct buf *batch, size_t off)
{
	const char *nl;

	if (off == 0)
		return 0;
	nl = memrchr(batch->p, '\n', off);
	return nl ? (size_t)(nl - batch->p) + 1 : 0;
}

/* The end of the last whole line in at most @max bytes from @off. */
static size_t lines_end(const struct buf *batch, size_t off, size_t max)
{
	const char *nl;

	if (batch->n - off <= max)
		return batch->n;
	nl = memrchr(batch->p + off, '\n', max);
	REQUIRE(nl);
	return (size_t)(nl - batch->p) + 1;
}

/**
 * dest_done() - Did it take the whole batch, or is there nobody to take it?
 */
bool dest_done(const struct dest *d, const struct buf *batch)
{
	return d->fd < 0 || d->off == batch->n;
}

static void dest_failed(struct dest *d, int err)
{
	if (d->state != DEST_DOWN)
		log_error("audit: run %s: cannot write records: %s; "
			  "new flows are refused until it works again",
			  run_of(d), strerror(err));
	d->pause_ms = MIN(MAX(d->pause_ms * 2, DEST_PAUSE_MIN_MS),
			  DEST_PAUSE_MAX_MS);
	d->retry_at_ms = clock_mono_ms() + d->pause_ms;
	dest_set_state(d, DEST_DOWN);
}

static void dest_works(struct dest *d)
{
	if (d->state == DEST_DOWN)
		log_warn("audit: run %s: records can be written again",
			 run_of(d));
	d->pause_ms = 0;
	dest_set_state(d, DEST_UP);
}

/* Wait for room; what epoll cannot watch is looked at again after a pause. */
static void dest_blocked(struct dest *d)
{
	struct epoll_event ev = {
		.events = EPOLLOUT | EPOLLONESHOT, .data.ptr = d->owner,
	};
	int epoll_fd = d->env->epoll_fd;
	int err;

	err = epoll_ctl(epoll_fd, EPOLL_CTL_MOD, d->fd, &ev);
	if (err == -1 && errno == ENOENT)
		err = epoll_ctl(epoll_fd, EPOLL_CTL_ADD, d->fd, &ev);
	d->retry_at_ms = clock_mono_ms() +
			 (err == -1 ? DEST_PAUSE_MIN_MS : DEST_PAUSE_MAX_MS);
	dest_set_state(d, DEST_BLOCKED);
}

static ssize_t write_once(const struct dest *d, const char *p, size_t n)
{
	ssize_t got;

	do {
		if (d->kind == DEST_SOCKET)
			got = send(d->fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
		else
			got = write(d->fd, p, n);
	} while (got == -1 && errno == EINTR);
	if (got == 0) {
		errno = EIO;
		return -1;
	}
	return got;
}

static bool pipe_has_room(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };

	/* An error is room as well: the write will say which. */
	return poll(&pfd, 1, 0) != 0;
}

/* Does another sink's torn line stand at the end of this file? */
static bool torn_by_another(const struct dest *d)
{
	struct list *it, *tmp;

	list_each(&d->env->torn, it, tmp) {
		struct dest *other = container_of(it, struct dest, torn_node);

		if (other != d && other->dev == d->dev && other->ino == d->ino)
			return true;
	}
	return false;
}

/*
 * Before a regular file is written: make sure that what follows begins where
 * a line may begin.  0 or -errno.
 */
static int file_mend(struct dest *d, const struct buf *batch)
{
	bool newline = torn_by_another(d);
	struct stat st;

	if (is_torn(d)) {
		if (fstat(d->fd, &st) == -1)
			return -errno;
		if (st.st_size != d->torn_end)
			d->off = dest_line_start(batch, d->off);
		newline = st.st_size > d->torn_end;
	}
	if (newline && write_once(d, "\n", 1) == -1)
		return -errno;
	return 0;
}

/* After a write: does the file end within a line, and where? */
static void file_note(struct dest *d, const struct buf *batch)
{
	struct stat st;

	list_del(&d->torn_node);
	if (dest_line_start(batch, d->off) == d->off)
		return;
	if (fstat(d->fd, &st) == 0) {
		d->torn_end = st.st_size;
		list_add(&d->env->torn, &d->torn_node);
	}
}

/* 0 (go on), or -errno. */
static int file_write(struct dest *d, const struct buf *batch)
{
	ssize_t got;
	int err = file_mend(d, batch);

	if (err < 0)
		return err;
	got = write_once(d, batch->p + d->off, batch->n - d->off);
	if (got == -1)
		err = -errno;
	else
		d->off += (size_t)got;
	file_note(d, batch);
	return err;
}

/* 0 (go on), -EAGAIN (no room) or -errno. */
static int stream_write(struct dest *d, const struct buf *batch)
{
	size_t end = batch->n;
	ssize_t got;

	if (d->kind == DEST_PIPE) {
		if (!pipe_has_room(d->fd))
			return -EAGAIN;
		end = lines_end(batch, d->off, PIPE_BUF);
	}
	got = write_once(d, batch->p + d->off, end - d->off);
	if (got == -1)
		return -errno;
	d->off += (size_t)got;
	return 0;
}

/**
 * dest_pump() - Write what is left of the batch, until done, blocked or down
 * @batch:	whole lines, the same ones until dest_done()
 */
void dest_pump(struct dest *d, const struct buf *batch)
{
	int err = 0;

	while (err == 0 && !dest_done(d, batch)) {
		if (d->kind == DEST_FILE)
			err = file_write(d, batch);
		else
			err = stream_write(d, batch);
		if (err == 0)
			dest_works(d);
	}
	if (err == -EAGAIN)
		dest_blocked(d);
	else if (err < 0)
		dest_failed(d, -err);
}
