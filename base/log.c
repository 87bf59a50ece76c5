/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - the operational log
 *
 * A line is made in one piece and written with one write(2), so that lines of
 * threads and processes do not mix.  What write(2) says does not matter: there
 * is nowhere else to complain.
 *
 * Whoever reads the log may be slow, or stop.  A line waits LOG_WAIT_MS for
 * room, and once one had none the next do not wait at all until there is some:
 * then the first line says how many were lost.  Work never stands still for
 * words about it.
 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

#define LOG_WAIT_MS	100

static const struct {
	const char *journal;	/* sd-daemon(3) */
	const char *word;
} levels[] = {
	[LOG_ERROR] = { "<3>", "" },
	[LOG_WARN]  = { "<4>", "warning: " },
	[LOG_INFO]  = { "<6>", "" },
	[LOG_DEBUG] = { "<7>", "debug: " },
};
_Static_assert(ARRAY_SIZE(levels) == LOG_LEVELS, "name every level");

static char program_name[32] = "penstock";
static bool to_journal;
static int copy_fd = -1;	/* where each line goes as well; before threads */
static atomic_uint max_level = LOG_INFO;
static atomic_uint lost;	/* lines since the last one that was written */

/* JOURNAL_STREAM names the device and inode of the stream (systemd.exec(5)). */
static bool stderr_is_journal(void)
{
	const char *said = getenv("JOURNAL_STREAM");
	uintmax_t dev, ino;
	struct stat st;
	int end = 0;

	if (!said || fstat(STDERR_FILENO, &st))
		return false;
	if (sscanf(said, "%ju:%ju%n", &dev, &ino, &end) != 2 || said[end])
		return false;
	return dev == (uintmax_t)st.st_dev && ino == (uintmax_t)st.st_ino;
}

void log_init(const char *program, enum log_level level)
{
	struct str name = str_from(program);
	size_t n = MIN(name.n, sizeof(program_name) - 1);

	memcpy(program_name, name.p, n);
	program_name[n] = '\0';
	to_journal = stderr_is_journal();
	log_set_level(level);
}

void log_copy_to(int fd)
{
	copy_fd = fd;
}

bool log_is_journal(void)
{
	return to_journal;
}

void log_set_level(enum log_level level)
{
	atomic_store(&max_level, level);
}

bool log_wants(enum log_level level)
{
	return level <= atomic_load_explicit(&max_level, memory_order_relaxed);
}

/*
 * Append @text to the @n bytes of @line, escaped; what does not fit, with a
 * mark and the line's end still to come, is left out.  Return: the new length.
 */
static size_t add_escaped(char line[LOG_LINE_MAX], size_t n, struct str text)
{
	static const char hex[] = "0123456789abcdef";
	const size_t room = LOG_LINE_MAX - sizeof("...");

	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		bool plain = c >= 0x20 && c < 0x7f;

		if (n + (plain ? 1 : 4) > room) {
			memcpy(line + n, "...", 3);
			return n + 3;
		}
		if (plain) {
			line[n++] = (char)c;
			continue;
		}
		line[n++] = '\\';
		line[n++] = 'x';
		line[n++] = hex[c >> 4];
		line[n++] = hex[c & 15];
	}
	return n;
}

static bool has_room(void)
{
	struct pollfd p = { STDERR_FILENO, POLLOUT, 0 };
	int ready;

	do {
		ready = poll(&p, 1, atomic_load(&lost) ? 0 : LOG_WAIT_MS);
	} while (ready < 0 && errno == EINTR);
	/* Where it cannot be written at all, write(2) returns at once. */
	return ready != 0;
}

static void write_line(enum log_level level, struct str text)
{
	char line[LOG_LINE_MAX];
	size_t n = 0;

	if (to_journal) {
		n = add_escaped(line, n, str_from(levels[level].journal));
	} else {
		n = add_escaped(line, n, str_from(program_name));
		n = add_escaped(line, n, STR(": "));
		n = add_escaped(line, n, str_from(levels[level].word));
	}
	n = add_escaped(line, n, text);
	line[n++] = '\n';
	while (write(STDERR_FILENO, line, n) < 0 && errno == EINTR)
		;
	if (copy_fd >= 0)
		(void)!write(copy_fd, line, n);
}

static void write_lost(unsigned n)
{
	char text[64];
	int said = snprintf(text, sizeof(text),
			    "%u lines of this log had no room and are lost",
			    n);

	if (said > 0 && (size_t)said < sizeof(text))
		write_line(LOG_WARN, str_make(text, (size_t)said));
}

void log_line(enum log_level level, const char *fmt, ...)
{
	int saved_errno = errno;
	char text[LOG_LINE_MAX];
	unsigned n;
	va_list ap;
	int said;

	if (!log_wants(level))
		return;
	va_start(ap, fmt);
	said = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (said < 0)
		text[0] = '\0';
	if (has_room()) {
		n = atomic_exchange(&lost, 0);
		if (n)
			write_lost(n);
		/* Room for the one is not room for the other. */
		if (!n || has_room())
			write_line(level, str_from(text));
		else
			atomic_fetch_add(&lost, 1);
	} else {
		atomic_fetch_add(&lost, 1);
	}
	errno = saved_errno;
}
