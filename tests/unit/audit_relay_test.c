/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audit_relay_test.c - lines of another process get numbers of ours, or are none
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "audit/record.h"
#include "audit/relay.h"
#include "audit/writer.h"
#include "base/fd.h"
#include "base/mem.h"

#define FLUSH_MS	20000	/* never reached when all is well */

static const struct record_labels labels = { .run = "7f3a91" };

static struct record record_of(void)
{
	return (struct record){
		.event = RECORD_LIMIT, .act = RECORD_ACT_NONE,
		.rcode = -1, .dur_ms = -1,
	};
}

/* What record_render() makes is taken, and nothing but its number changes. */
static void a_line_of_ours_gets_another_number(void **state)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT(8192);
	CLEANUP(buf_done) struct buf other = BUF_INIT(8192);
	CLEANUP(buf_done) struct buf got = BUF_INIT(8192);
	struct record r = record_of();

	(void)state;
	assert_int_equal(record_render(&r, &labels, 7, 1000000, &line), 0);
	assert_int_equal(record_render(&r, &labels, 12345, 1000000, &other),
			 0);
	line.n--;			/* its newline */
	assert_int_equal(audit_renumber(buf_str(&line), 12345, &got), 0);
	assert_true(str_eq(buf_str(&got), buf_str(&other)));
}

static void what_is_no_record_is_refused(void **state)
{
	static const char *const bad[] = {
		"", "{", "{}", "x}",
		"{\"v\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"seq\":1",
		"{\"v\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"seq\":}",
		"{\"v\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"seq\":x,\"a\":1}",
		"{\"v\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"seq\":1}",
		"{\"v\":1,\"ts\":\"\\\"\",\"seq\":1,\"a\":1}",
		"{\"v\":2,\"ts\":\"2026-01-01T00:00:00Z\",\"seq\":1,\"a\":1}",
		"{\"v\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"seq\":1,\"a\":\"\n\"}",
		"{\"v\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"seq\":111111111111111111111,\"a\":1}",
	};
	CLEANUP(buf_done) struct buf out = BUF_INIT(8192);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(audit_renumber(str_from(bad[i]), 1, &out),
				 -EPROTO);
	assert_int_equal(out.n, 0);
}

static void a_line_that_would_be_too_long_is_refused(void **state)
{
	char line[RECORD_LINE_MAX + 1];
	CLEANUP(buf_done) struct buf out = BUF_INIT(8192);
	const char head[] = "{\"v\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"seq\":1,";

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, head, sizeof(head) - 1);
	line[RECORD_LINE_MAX - 3] = '}';
	assert_int_equal(audit_renumber(str_make(line, RECORD_LINE_MAX - 2),
					1, &out), 0);
	out.n = 0;
	/* One digit more is one byte more than a line may have. */
	assert_int_equal(audit_renumber(str_make(line, RECORD_LINE_MAX - 2),
					100, &out), -EPROTO);
	line[RECORD_LINE_MAX - 1] = '}';
	assert_int_equal(audit_renumber(str_make(line, RECORD_LINE_MAX), 1,
					&out), -EPROTO);
}

static int temp_file(void)
{
	char path[] = "audit_relay_test.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC | O_APPEND);

	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	return fd;
}

/* What a process before wrote ended at 40. */
static void numbers_go_on_through_both(void **state)
{
	CLEANUP(buf_done) struct buf line = BUF_INIT(8192);
	CLEANUP(buf_done) struct buf all = BUF_INIT(65536);
	int file = temp_file();
	struct record r = record_of();
	struct audit_writer *w;
	struct audit_sink *s;
	struct str rest, one;
	char want[32];
	unsigned n = 40;

	(void)state;
	assert_int_equal(record_render(&r, &labels, 1, 0, &line), 0);
	line.n--;
	assert_int_equal(audit_writer_new(&w), 0);
	assert_int_equal(audit_sink_new(w, fcntl(file, F_DUPFD_CLOEXEC, 0),
					&labels, &s), 0);
	audit_resume(s, 40);
	assert_int_equal(audit_seq(s), 40);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(audit_relay(s, buf_str(&line)), 0);
		assert_int_equal(audit_post(s, &r), 0);
		assert_int_equal(audit_relay(s, STR("{}")), -EPROTO);
	}
	assert_int_equal(audit_sink_flush(s, FLUSH_MS), 0);
	assert_int_equal(audit_lost(s), 0);
	audit_sink_free(s);
	audit_writer_free(w, FLUSH_MS);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_all(file, &all), 0);
	close(file);
	rest = buf_str(&all);
	while (str_cut(&rest, '\n', &one)) {
		if (one.n == 0)
			continue;
		assert_true(snprintf(want, sizeof(want), "\"seq\":%u,", ++n) >
			    0);
		assert_non_null(memmem(one.p, one.n, want, strlen(want)));
	}
	assert_int_equal(n, 240);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_of_ours_gets_another_number),
		cmocka_unit_test(what_is_no_record_is_refused),
		cmocka_unit_test(a_line_that_would_be_too_long_is_refused),
		cmocka_unit_test(numbers_go_on_through_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
