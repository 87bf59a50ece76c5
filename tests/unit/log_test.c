/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_test.c - lines of the operational log as they reach stderr
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"

static int real_stderr, caught;

static void catch_stderr(void)
{
	caught = memfd_create("log", MFD_CLOEXEC);
	assert_true(caught >= 0);
	real_stderr = dup(STDERR_FILENO);
	assert_true(real_stderr >= 0);
	assert_int_equal(dup2(caught, STDERR_FILENO), STDERR_FILENO);
}

/* Puts stderr back; what was written is in @out. */
static void release_stderr(struct buf *out)
{
	assert_int_equal(dup2(real_stderr, STDERR_FILENO), STDERR_FILENO);
	fd_closep(&real_stderr);
	assert_int_equal(lseek(caught, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_all(caught, out), 0);
	fd_closep(&caught);
}

static void a_line_says_who_speaks_and_how_grave_it_is(void **state)
{
	struct buf b = BUF_INIT(4096);

	(void)state;
	catch_stderr();
	log_init("penstockd", LOG_INFO);
	log_error("cannot open %s", "x");
	log_warn("w");
	log_info("i");
	log_debug("not shown");
	log_set_level(LOG_DEBUG);
	log_debug("d %d", 1);
	log_set_level(LOG_ERROR);
	log_warn("not shown");
	release_stderr(&b);
	assert_string_equal(buf_cstr(&b),
			    "penstockd: cannot open x\n"
			    "penstockd: warning: w\n"
			    "penstockd: i\n"
			    "penstockd: debug: d 1\n");
	buf_done(&b);
}

static void bytes_from_outside_are_escaped(void **state)
{
	struct buf b = BUF_INIT(4096);

	(void)state;
	catch_stderr();
	log_init("p", LOG_INFO);
	log_info("a\nfake: line\x1b[31m\x7f\xc3\xa9\r");
	release_stderr(&b);
	assert_string_equal(buf_cstr(&b),
		"p: a\\x0afake: line\\x1b[31m\\x7f\\xc3\\xa9\\x0d\n");
	buf_done(&b);
}

static void a_long_line_is_cut_and_says_so(void **state)
{
	struct buf b = BUF_INIT(8192);
	char text[3000];

	(void)state;
	memset(text, 'x', sizeof(text));
	catch_stderr();
	log_init("p", LOG_INFO);
	log_info("%.*s", 3000, text);
	memset(text, 1, sizeof(text));
	log_info("%.*s", 3000, text);
	release_stderr(&b);
	assert_true(b.n <= 2 * LOG_LINE_MAX);
	assert_memory_equal(b.p + b.n - 4, "...\n", 4);
	assert_non_null(strstr(buf_cstr(&b), "xxx...\np: \\x01"));
	buf_done(&b);
}

static void errno_survives_a_line(void **state)
{
	struct buf b = BUF_INIT(4096);

	(void)state;
	catch_stderr();
	log_init("a-program-whose-name-is-longer-than-it-may-be", LOG_INFO);
	errno = ENOTTY;
	log_info("x");
	assert_int_equal(errno, ENOTTY);
	release_stderr(&b);
	assert_string_equal(buf_cstr(&b),
			    "a-program-whose-name-is-longer-: x\n");
	buf_done(&b);
}

static void under_systemd_a_line_carries_its_priority(void **state)
{
	struct buf b = BUF_INIT(4096);
	char stream[64];
	struct stat st;
	int n;

	(void)state;
	catch_stderr();
	assert_int_equal(fstat(STDERR_FILENO, &st), 0);
	n = snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev,
		     (uintmax_t)st.st_ino);
	assert_true(n > 0 && n < (int)sizeof(stream));
	setenv("JOURNAL_STREAM", stream, 1);
	log_init("p", LOG_DEBUG);
	log_error("e");
	log_warn("w");
	log_info("i");
	log_debug("d");
	/* The journal's variable is inherited by what writes elsewhere. */
	setenv("JOURNAL_STREAM", "1:1", 1);
	log_init("p", LOG_INFO);
	log_info("i");
	unsetenv("JOURNAL_STREAM");
	release_stderr(&b);
	assert_string_equal(buf_cstr(&b), "<3>e\n<4>w\n<6>i\n<7>d\np: i\n");
	buf_done(&b);
}

/* Lines that can be read now, up to the end of what @fd holds. */
static void read_now(int fd, struct buf *out)
{
	char part[4096];
	ssize_t n;

	while ((n = read(fd, part, sizeof(part))) > 0)
		assert_int_equal(buf_add(out, part, (size_t)n), 0);
	assert_int_equal(errno, EAGAIN);
}

/* Whoever reads the log and stops must not stop the daemon. */
static void nobody_who_reads_stops_nobody(void **state)
{
	struct buf b = BUF_INIT(1u << 20);
	int p[2];

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(fd_set_nonblock(p[0], true), 0);
	real_stderr = dup(STDERR_FILENO);
	assert_true(real_stderr >= 0);
	assert_int_equal(dup2(p[1], STDERR_FILENO), STDERR_FILENO);
	log_init("p", LOG_INFO);
	alarm(60);			/* instead of hanging for ever */
	for (unsigned i = 0; i < 20000; i++)
		log_info("a line that takes some room: %u", i);
	alarm(0);
	read_now(p[0], &b);
	assert_true(b.n > 0);
	assert_memory_equal(b.p, "p: a line that takes some room: 0\n", 34);
	assert_true(b.p[b.n - 1] == '\n');
	buf_reset(&b);
	log_info("seen again");
	assert_int_equal(dup2(real_stderr, STDERR_FILENO), STDERR_FILENO);
	fd_closep(&real_stderr);
	read_now(p[0], &b);
	assert_non_null(buf_cstr(&b));
	assert_non_null(strstr(b.p, "lines of this log had no room and are "
				    "lost\np: seen again\n"));
	fd_closep(&p[0]);
	fd_closep(&p[1]);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_says_who_speaks_and_how_grave_it_is),
		cmocka_unit_test(bytes_from_outside_are_escaped),
		cmocka_unit_test(a_long_line_is_cut_and_says_so),
		cmocka_unit_test(errno_survives_a_line),
		cmocka_unit_test(under_systemd_a_line_carries_its_priority),
		cmocka_unit_test(nobody_who_reads_stops_nobody),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
