/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams.c - relaying of terminals and sockets, see streams.h
 *
 * With a terminal on stdin the host's terminal is raw: each key, Ctrl-C too,
 * goes as a byte to the sandbox's pty, whose line discipline makes a signal of
 * it for the foreground job in there.  When stdout is not a terminal our output
 * processing stays on, because then somebody else in the pipeline writes to it.
 *
 * Descriptors that we were given stay in the mode they have, since O_NONBLOCK
 * is shared with whoever gave them: they are read once and written in small
 * pieces when poll() says so.
 */
#include "netns-setup/streams.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "netns-setup/fault.h"
#include "netns-setup/std_file.h"

#define MEM_MAJOR	1	/* of /dev/null and its kin */
#define SHARED_WRITE	512	/* bytes at once to a descriptor not ours */

enum kind {
	KIND_KEEP,
	KIND_INPUT,
	KIND_TERMINAL,
	KIND_RELAY,
};

static enum kind kind_of(int fd)
{
	struct stat st;

	if (isatty(fd))
		return KIND_TERMINAL;
	if (fstat(fd, &st))
		return KIND_RELAY;
	if (S_ISREG(st.st_mode) && std_file_is_input(fd))
		return std_file_has_name(fd) ? KIND_INPUT : KIND_RELAY;
	if (S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode))
		return KIND_KEEP;
	if (S_ISCHR(st.st_mode) && major(st.st_rdev) == MEM_MAJOR)
		return KIND_KEEP;
	return KIND_RELAY;
}

static int add_stream(struct streams *s, int from, bool own_from, int to,
		      bool own_to)
{
	struct stream *t = &s->stream[s->n];

	REQUIRE(s->n < STREAMS_MAX);
	*t = (struct stream){ from, to, own_from, own_to, 0, 0,
			      mem_new(STREAM_BUF) };
	if (!t->buf)
		return -ENOMEM;
	s->n++;
	return 0;
}

static int add_relay(struct streams *s, int i)
{
	int p[2], e;

	if (pipe2(p, O_CLOEXEC))
		return -errno;
	s->child[i] = p[i ? 1 : 0];
	s->child_own[i] = true;
	e = fd_set_nonblock(p[i ? 0 : 1], true);
	if (!e)
		e = i ? add_stream(s, p[0], true, i, false) :
			add_stream(s, 0, false, p[1], true);
	if (e)
		close(p[i ? 0 : 1]);
	return e;
}

/* What the host's terminal looks like, for the sandbox's. */
static void copy_terminal(struct streams *s, int fd)
{
	if (tcgetattr(fd, &s->termios))
		memset(&s->termios, 0, sizeof(s->termios));
	if (ioctl(fd, TIOCGWINSZ, &s->winsize))
		memset(&s->winsize, 0, sizeof(s->winsize));
	/* Ours stays cooked then, and does the output processing. */
	if (s->tty_in < 0 || !s->raw_output)
		s->termios.c_oflag &= ~(tcflag_t)OPOST;
}

int streams_init(struct streams *s, struct launch_error *err)
{
	*s = (struct streams){ .child = { 0, 1, 2 }, .tty_in = -1,
			       .tty_out = -1, .master = -1 };
	for (int i = 0; i < 3; i++) {
		int e = 0;

		switch (kind_of(i)) {
		case KIND_KEEP:
			break;
		case KIND_INPUT:
			s->input[i] = true;
			break;
		case KIND_TERMINAL:
			s->terminal = true;
			s->child[i] = -1;
			if (i == 0)
				s->tty_in = 0;
			else if (s->tty_out < 0)
				s->tty_out = i;
			s->raw_output |= i == 1;
			break;
		case KIND_RELAY:
			e = add_relay(s, i);
			break;
		}
		if (e)
			return fault(err, -e, "cannot relay stream %d", i);
	}
	if (s->terminal && s->tty_out < 0)
		s->tty_out = 0;		/* it echoes, at least */
	if (s->terminal)
		copy_terminal(s, s->tty_in >= 0 ? s->tty_in : s->tty_out);
	return 0;
}

void streams_cloned(struct streams *s)
{
	for (int i = 0; i < 3; i++) {
		if (s->child_own[i])
			close(s->child[i]);
		s->child_own[i] = false;
	}
}

void streams_foreground(struct streams *s)
{
	struct termios raw;

	if (s->tty_in < 0 || s->master < 0 ||
	    tcgetpgrp(s->tty_in) != getpgrp())
		return;
	if (!s->raw && tcgetattr(s->tty_in, &s->saved))
		return;
	raw = s->saved;
	cfmakeraw(&raw);
	if (!s->raw_output)
		raw.c_oflag = s->saved.c_oflag;
	s->raw = tcsetattr(s->tty_in, TCSANOW, &raw) == 0;
}

int streams_terminal(struct streams *s, int master, struct launch_error *err)
{
	int second, e;

	if (s->master >= 0 || !s->terminal) {
		close(master);
		return fault(err, EPROTO, "a terminal that nobody asked for");
	}
	/* Two owners, so that each direction can end by itself. */
	second = fcntl(master, F_DUPFD_CLOEXEC, 3);
	e = second == -1 ? -errno : fd_set_nonblock(master, true);
	if (!e)
		e = add_stream(s, second, true, s->tty_out, false);
	if (!e && s->tty_in >= 0)
		e = add_stream(s, s->tty_in, false, master, true);
	else if (!e)
		close(master);
	if (e)
		return fault(err, -e, "cannot relay the terminal");
	s->master = second;
	streams_foreground(s);
	return 0;
}

void streams_resize(struct streams *s)
{
	struct winsize size;
	int tty = s->tty_in >= 0 ? s->tty_in : s->tty_out;

	if (s->master >= 0 && ioctl(tty, TIOCGWINSZ, &size) == 0 &&
	    ioctl(s->master, TIOCSWINSZ, &size))
		errno = 0;		/* it has ended: nobody looks any more */
}

/* --- moving bytes ------------------------------------------------------------- */

static void end_read(struct stream *t)
{
	if (t->own_from)
		close(t->from);
	t->from = -1;
}

static void end_write(struct stream *t)
{
	if (t->own_to)
		close(t->to);
	t->to = -1;
	t->n = 0;
}

static bool is_again(void)
{
	return errno == EAGAIN || errno == EINTR;
}

static void stream_read(struct streams *s, struct stream *t)
{
	ssize_t n = read(t->from, t->buf, STREAM_BUF);

	if (n == -1 && is_again())
		return;
	if (n > 0 && t->to >= 0) {
		t->at = 0;
		t->n = (size_t)n;
		return;
	}
	if (n > 0)
		return;			/* nobody wants it */
	if (t->from == s->master)
		s->master = -1;
	end_read(t);
	/* The end of stdin: a pipe says so by closing. */
	if (t->to >= 0 && t->own_to)
		end_write(t);
}

static void stream_write(struct stream *t)
{
	size_t most = t->own_to ? t->n : MIN(t->n, (size_t)SHARED_WRITE);
	ssize_t n = write(t->to, t->buf + t->at, most);

	if (n == -1 && is_again())
		return;
	if (n == -1) {
		end_write(t);
		/* Whoever wrote it learns it the same way. */
		if (t->from >= 0 && t->own_from && t->to != -1)
			end_read(t);
		return;
	}
	t->at += (size_t)n;
	t->n -= (size_t)n;
}

size_t streams_poll(const struct streams *s, struct pollfd *ret)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct stream *t = &s->stream[i];

		ret[n++] = (struct pollfd){ t->n ? -1 : t->from, POLLIN, 0 };
		ret[n++] = (struct pollfd){ t->n ? t->to : -1, POLLOUT, 0 };
	}
	return n;
}

void streams_run(struct streams *s, const struct pollfd *p, size_t n)
{
	for (size_t i = 0; i < s->n && 2 * i + 1 < n; i++) {
		if (p[2 * i].fd >= 0 && p[2 * i].revents)
			stream_read(s, &s->stream[i]);
		if (p[2 * i + 1].fd >= 0 && p[2 * i + 1].revents)
			stream_write(&s->stream[i]);
	}
}

bool streams_drained(const struct streams *s)
{
	for (size_t i = 0; i < s->n; i++) {
		/* Those that come from the command; they end by themselves. */
		if (s->stream[i].own_from &&
		    (s->stream[i].from >= 0 || s->stream[i].n))
			return false;
	}
	return true;
}

void streams_done(struct streams *s)
{
	streams_cloned(s);
	for (size_t i = 0; i < s->n; i++) {
		struct stream *t = &s->stream[i];

		if (t->from >= 0)
			end_read(t);
		if (t->to >= 0)
			end_write(t);
		mem_free(t->buf);
	}
	s->n = 0;
	s->master = -1;
	/* TCSADRAIN would wait for a reader who may never come. */
	if (s->raw && tcsetattr(s->tty_in, TCSANOW, &s->saved))
		errno = 0;
	s->raw = false;
}
